r"""A key recoded to few cells: intervals, levels and most frequent values, chosen together.

.. math::
   \max_{\text{recodings}} \; I(W; X̃) \qquad \text{s.t.} \quad
       \text{at most } n \text{ observed cells of } X̃ = (X̃_1, …, X̃_m)

Each column has a chain of recodings, from coarse to fine: of a number the best intervals by
dynamic programming, 1, 2, … of them; of a hierarchy its levels; of any other column its 1, 2, …
most frequent values and the rest.  The number of groups is allotted to the columns greedily, by
information gained per cell added, from the coarsest key on; then columns give way to each other
as long as that gains, and the intervals are cut anew for what the other columns tell already.
It is a local search of a few rounds: a better key of as
many cells may be there.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.microdata.hierarchy import Hierarchy
from cvxprivacy.microdata.key_chains import (
    FINEST,
    LEAST,
    ROUNDS,
    Search,
    chain_of,
    information_less,
    intervals_of,
    search_of,
    tabulated,
    unchanged,
)
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.tables.bins import Bins
from cvxprivacy.tables.counting import Counts, count_records
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS, value_counts
from cvxprivacy.validation import whole

__all__ = ["KeyRecoding", "recoded_key"]

MOST_TERMS = 2e8  # of intervals that are cut anew, given the other columns


@dataclass(frozen=True, eq=False)
class KeyRecoding:
    """Recodings chosen for the columns of a key by :func:`recoded_key`, and what they lose.

    Attributes
    ----------
    source : DiscreteSource
        The records, counted with all recodings.
    bins : dict of str to list of float
        Edges of intervals, of columns of numbers.
    levels : dict of str to int
        Levels of hierarchies.
    top : dict of str to int
        Most frequent values kept.
    unchanged : tuple of str
        Columns that are kept as they are.
    cells : int
        Observed cells of the key before.
    before : float
        I(W; X) of the key before, in bits; of numbers with more than 200 values, in 200 intervals.
    bias : float
        Its small-sample bias (Miller–Madow), in bits.

    Examples
    --------
    Those under 8 are well and the others ill, so that two intervals lose nothing of one bit:

    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [1, 2, 8, 9] * 9, "ill": ["no", "no", "yes", "yes"] * 9})
    >>> recoding = recoded_key(people, sensitive="ill", key="age", cells=2)
    >>> recoding
    KeyRecoding(4 → 2 cells)
    >>> round(recoding.before, 6), round(recoding.after, 6), dict(recoding.bins)
    (1.0, 1.0, {'age': [-inf, 8.0, inf]})

    ``found.source`` goes into a problem:

    >>> import cvxprivacy as cpv
    >>> problem = cpv.PrivacyDistortion(recoding.source, cpv.hamming(recoding.source.x), budget=0.1)
    >>> round(problem.solve().value, 3)  # 1 − h(0.1)
    0.531
    """

    source: DiscreteSource
    bins: Mapping[str, list[float]]
    levels: Mapping[str, int]
    top: Mapping[str, int]
    unchanged: tuple[str, ...]
    cells: int
    before: float
    bias: float

    @property
    def after(self) -> float:
        """I(W; X̃) of the recoded key, in bits."""
        return self.source.information()

    def __repr__(self) -> str:
        return f"KeyRecoding({self.cells:,} → {len(self.source.x):,} cells)"


def recoded_key(
    frame: Any,
    *,
    sensitive: Hashable | Sequence[Hashable],
    key: Hashable | Sequence[Hashable],
    cells: int,
    weights: Hashable | None = None,
    bins: Mapping[Hashable, Any] | None = None,
    groups: Mapping[Hashable, Any] | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    missing: str = "refuse",
) -> KeyRecoding:
    """Choose bins, levels and most frequent values so that a key has few cells and loses little.

    Looking at the confidential column to choose them is a use of it: the choice itself tells a
    little, which no certificate of the release covers.

    Parameters
    ----------
    frame : frame of any kind
        The table, as :meth:`cvxprivacy.DiscreteSource.from_table` takes it.
    sensitive : column name, or several
        W.
    key : column name, or several
        X, the columns to recode.
    cells : int
        Observed cells of the key, at most.
    weights : column name, optional
        Survey weights.
    bins, groups : mapping of column, optional
        Recodings of columns that are not to be chosen.
    hierarchies : mapping of column to Hierarchy, optional
        Of which a level is chosen.
    missing : {"refuse", "level", "drop"}
        What becomes of missing values.

    Returns
    -------
    KeyRecoding
        The recodings, the source counted with them, and what is lost.

    Raises
    ------
    InputError
        As ``from_table``; and where the coarsest key still has more cells, or no column is free.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [1, 2, 8, 9] * 9, "ill": ["no", "no", "yes", "yes"] * 9})
    >>> recoded_key(people, sensitive="ill", key="age", cells=2).bins
    {'age': [-inf, 8.0, inf]}
    """
    cells = whole(cells, "cells", least=1)
    hierarchies = hierarchies or {}
    roles: dict[str, Any] = {"sensitive": sensitive, "key": key, "side": None, "weights": weights}
    schema = TableSchema.of(frame, **roles, bins=bins, groups=groups, missing=missing)
    free = [n for n in schema.key if n not in schema.bins and n not in schema.groups]
    lazy = as_narwhals(frame).lazy()
    types, first = lazy.collect_schema(), dict(schema.bins)
    for name in (n for n in free if n not in hierarchies and types[n].is_numeric()):
        values = value_counts(lazy, name)
        if len(values) > FINEST:
            first[name] = Bins.of_quantiles(values, FINEST)
    fine = TableSchema(
        schema.key, schema.sensitive, (), schema.weights, first, missing, {}, schema.groups
    )
    counts = count_records(fine, frame, most=MOST_CELLS)
    search = search_of(counts, fine, cells)
    search.chains = [
        chain_of(search, i, n, fine, counts, hierarchies.get(n), lazy)
        if n in free
        else [unchanged(len(counts.levels[n]))]
        for i, n in enumerate(schema.key)
    ]
    state = _best(search, cells, fine, counts)
    chosen = {n: c[at] for n, c, at in zip(schema.key, search.chains, state, strict=True)}
    by_role = {role: {n: chosen[n].spec for n in free if chosen[n].role == role}
               for role in ("bins", "levels", "top", "unchanged")}  # fmt: skip
    levels = {n: hierarchies[n].mapping(at) for n, at in by_role["levels"].items()}
    all_bins: dict[Any, Any] = {**(bins or {}), **by_role["bins"]}
    all_groups: dict[Any, Any] = {**(groups or {}), **levels, **by_role["top"]}
    source = DiscreteSource.from_table(
        frame, sensitive=sensitive, key=key, weights=weights, missing=missing, bins=all_bins,
        groups=all_groups,
    )  # fmt: skip
    table = tabulated(search.fine, search.w, search.masses)
    excess = np.count_nonzero(table) - len(table) - table.shape[1] + 1  # Miller and Madow's
    return KeyRecoding(
        source, by_role["bins"], by_role["levels"], by_role["top"], tuple(by_role["unchanged"]),
        cells=len(table),
        before=(information_less(table) - information_less(table.sum(axis=0)[None])) / math.log(2),
        bias=excess / (2 * counts.effective) / math.log(2),
    )  # fmt: skip


# ---- the search --------------------------------------------------------------------------


def _best(search: Search, cells: int, schema: TableSchema, counts: Counts) -> tuple[int, ...]:
    """Return the places in the chains that are found best."""
    state = tuple(0 for _ in search.chains)
    least = search.measured(state)[0]
    if least > cells:
        problem = f"{cells:,}, where the coarsest key has {least:,} observed cells"
        remedy = "allow more, give columns a hierarchy that ends in one group, or name fewer"
        raise InputError("cells", problem, remedy, value=cells)
    state = search.exchanged(search.filled(state))
    for _ in range(ROUNDS):
        before = search.measured(state)[1]
        for i, name in enumerate(schema.key):
            if any(cut.role == "bins" for cut in search.chains[i]):
                state = _recut(search, state, i, name, schema, counts)
        if search.measured(state)[1] <= before + LEAST:
            break
    return state


def _recut(
    search: Search, state: tuple[int, ...], i: int, name: str, schema: TableSchema, counts: Counts
) -> tuple[int, ...]:
    """Cut a number anew, given what the other columns tell; keep the cuts if they gain."""
    others = search.cell_codes(state, without=i)
    levels = len(counts.levels[name])
    if (int(others.max()) + 1) * (int(search.w.max()) + 1) * levels**2 > MOST_TERMS:
        return state
    best, chain = search.measured(state)[1], search.chains[i]
    old = search.memo
    search.chains[i], search.memo = intervals_of(search, i, others, schema, counts), {}
    allowed = [0] if search.measured((*state[:i], 0, *state[i + 1 :]))[0] <= search.most else []
    for at in range(1, len(search.chains[i])):
        if search.measured((*state[:i], at, *state[i + 1 :]))[0] <= search.most:
            allowed.append(at)
        elif at > state[i]:
            break
    candidates = [(*state[:i], at, *state[i + 1 :]) for at in allowed]
    other = search.exchanged(search.filled(max(candidates, key=lambda s: search.measured(s)[1])))
    if search.measured(other)[1] > best + LEAST:
        return other
    search.chains[i], search.memo = chain, old
    return state
