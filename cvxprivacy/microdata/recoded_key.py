r"""A key recoded to few cells: intervals, levels and most frequent values, chosen together.

.. math::
   \max_{\text{recodings}} \; I(W; X̃) \qquad \text{s.t.} \quad
       \text{at most } n \text{ observed cells of } X̃ = (X̃_1, …, X̃_m)

Each column has a chain of recodings, from coarse to fine: of a number the best intervals by
dynamic programming, 1, 2, … of them; of a hierarchy its levels; of any other column its 1, 2, …
most frequent values and the rest.  The number of groups is allotted to the columns greedily, by
information gained per cell added, from the coarsest key on; then columns give way to each other
as long as that gains, and the intervals are cut anew for what the other columns tell already.
The last two are what makes the search a local one of the joint key: no other column's step or cut
improves it, but a better key may be there.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.microdata.hierarchy import Hierarchy
from cvxprivacy.microdata.intervals import cuts_by_number
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.tables.bins import Bins
from cvxprivacy.tables.counting import Counts, count_records
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.groups import Groups, Ungrouped, without_group
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS, value_counts
from cvxprivacy.validation import whole

__all__ = ["KeyRecoding", "recoded_key"]

FINEST = 200  # intervals of equal counts that a number of more values is cut into first
STEPS = (1, 2, 4, 8, 16, 32, 64, 128)  # along a chain
ROUNDS = 4
MOST_TERMS = 2e8  # of intervals that are cut anew, given the other columns
LEAST = 1e-12  # nats: what two sums of floats may be apart

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyRecoding:
    """Recodings chosen for the columns of a key, and what they lose.

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


@dataclass(frozen=True, eq=False)
class Cut:
    """One recoding of a column: the group of each of its levels, and how it is asked for."""

    groups: Codes
    role: str  # "bins", "levels", "top" or "unchanged"
    spec: Any = None


@dataclass(eq=False)
class Search:
    """The fine cells, and for each column a chain of recodings from coarse to fine."""

    codes: list[Codes]  # of each key column: the level of each fine cell
    w: Codes
    masses: npt.NDArray[np.float64]
    chains: list[list[Cut]]
    most: int
    seen: dict[tuple[int, ...], tuple[int, float]] = field(default_factory=dict)

    def cell_codes(self, state: Sequence[int], without: int | None = None) -> Codes:
        """Return the number of each fine cell's recoded cell, 0 to one less than there are."""
        found = np.zeros(len(self.w), np.int64)
        for i, at in enumerate(state):
            if i != without:
                groups = self.chains[i][at].groups
                found = found * (int(groups.max()) + 1) + groups[self.codes[i]]
                if found.max() > 1 << 20:
                    found = np.unique(found, return_inverse=True)[1]
        return np.unique(found, return_inverse=True)[1]

    def measured(self, state: Sequence[int]) -> tuple[int, float]:
        """Return the observed cells and I(W; X̃) in nats, less a constant."""
        key = tuple(state)
        if key not in self.seen:
            cells = self.cell_codes(key)
            table = _table(cells, self.w, self.masses)
            self.seen[key] = len(table), _information(table)
        return self.seen[key]

    def filled(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Refine columns as long as the cells allow, by information per cell added."""
        while True:
            cells, information = self.measured(state)
            best, refined = 0.0, None
            for i, at in enumerate(state):
                for step in STEPS:
                    if at + step >= len(self.chains[i]):
                        break
                    other = (*state[:i], at + step, *state[i + 1 :])
                    more, gained = self.measured(other)
                    if more > self.most:
                        break
                    rate = (gained - information) / max(more - cells, 0.5)
                    if gained > information + LEAST and rate > best:
                        best, refined = rate, other
            if refined is None:
                return state
            state = refined

    def exchanged(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Coarsen one column and refine others in its place, as long as that gains."""
        for _ in range(ROUNDS):
            best = state
            for i, at in enumerate(state):
                for step in STEPS:
                    if at - step < 0:
                        break
                    lower = (*state[:i], at - step, *state[i + 1 :])
                    if self.measured(lower)[0] <= self.most:
                        other = self.filled(lower)
                        if self.measured(other)[1] > self.measured(best)[1] + LEAST:
                            best = other
            if best == state:
                break
            state = best
        return state


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
    frame, sensitive, key, weights, missing : as in :meth:`cvxprivacy.DiscreteSource.from_table`
    cells : int
        Observed cells of the key, at most.
    bins, groups : mapping of column, optional
        Recodings of columns that are not to be chosen.
    hierarchies : mapping of column to Hierarchy, optional
        Of which a level is chosen.

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
    search = _search(counts, fine, cells)
    search.chains = [
        _chain(search, i, n, fine, counts, hierarchies.get(n), lazy)
        if n in free
        else [_unchanged(len(counts.levels[n]))]
        for i, n in enumerate(schema.key)
    ]
    state = _best(search, cells, fine, counts)
    chosen = {n: c[at] for n, c, at in zip(schema.key, search.chains, state, strict=True)}
    found: dict[str, dict[str, Any]] = {
        role: {n: chosen[n].spec for n in free if chosen[n].role == role}
        for role in ("bins", "levels", "top", "unchanged")
    }
    levels = {n: hierarchies[n].mapping(at) for n, at in found["levels"].items()}
    all_bins: dict[Any, Any] = {**(bins or {}), **found["bins"]}
    all_groups: dict[Any, Any] = {**(groups or {}), **levels, **found["top"]}
    source = DiscreteSource.from_table(
        frame, sensitive=sensitive, key=key, weights=weights, missing=missing, bins=all_bins,
        groups=all_groups,
    )  # fmt: skip
    table = _table(np.unique(_codes_of(search), return_inverse=True)[1], search.w, search.masses)
    observed = np.count_nonzero(table) - len(table) - table.shape[1] + 1
    return KeyRecoding(
        source, found["bins"], found["levels"], found["top"], tuple(found["unchanged"]),
        cells=len(table),
        before=(_information(table) - _information(table.sum(axis=0)[None])) / math.log(2),
        bias=observed / (2 * counts.effective) / math.log(2),
    )  # fmt: skip


# ---- the fine cells ----------------------------------------------------------------------


def _search(counts: Counts, schema: TableSchema, most: int) -> Search:
    """Return the fine cells as codes: of each key column's levels, and of W."""
    places = [{v: i for i, v in enumerate(counts.levels[n])} for n in schema.key]
    rows = [x if len(schema.key) > 1 else (x,) for _, x in counts.cells]
    codes = [np.array([place[row[i]] for row in rows], np.int64) for i, place in enumerate(places)]
    numbers: dict[Any, int] = {}
    w = np.array([numbers.setdefault(cell[0], len(numbers)) for cell in counts.cells], np.int64)
    return Search(codes, w, counts.masses, [], most)


def _codes_of(search: Search) -> Codes:
    """Return the number of each fine cell's key."""
    found = np.zeros(len(search.w), np.int64)
    for codes in search.codes:
        found = np.unique(found * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return found


def _table(cells: Codes, w: Codes, masses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the masses of (x̃, w), shape (cells, |W|)."""
    size = int(w.max()) + 1
    flat = np.bincount(cells * size + w, masses, (int(cells.max()) + 1) * size).astype(float)
    return flat.reshape(-1, size)


def _information(table: npt.NDArray[np.float64]) -> float:
    """Return Σ p(w, x̃) log p(w, x̃) / p(x̃) = −H(W | X̃) in nats: I(W; X̃) less H(W)."""
    rows = np.broadcast_to(table.sum(axis=1, keepdims=True), table.shape)
    on = table > 0
    return float((table[on] * np.log(table[on] / rows[on])).sum() / table.sum())


# ---- chains of recodings -----------------------------------------------------------------


def _unchanged(levels: int) -> Cut:
    return Cut(np.arange(levels), "unchanged")


def _chain(
    search: Search, i: int, name: str, schema: TableSchema, counts: Counts,
    hierarchy: Hierarchy | None, lazy: nw.LazyFrame[Any],
) -> list[Cut]:  # fmt: skip
    """Return the recodings of a column from coarse to fine."""
    levels = counts.levels[name]
    if hierarchy is not None:
        return _levels(name, levels, hierarchy)
    if name in schema.bins or lazy.collect_schema()[name].is_numeric():
        return _intervals(search, i, np.zeros(len(search.w), np.int64), schema, counts)
    values = value_counts(lazy, name)
    chain, last = [], min(len(set(values) - {None}) - 2, search.most)
    kept = {k for k in range(1, last + 1) if k <= FINEST or k % (FINEST // 4) == 0}
    for number in sorted(kept):
        groups = Groups.most_frequent(values, number)
        chain.append(Cut(_coded(groups.named(levels)), "top", number))
    return [*chain, _unchanged(len(levels))]


def _levels(name: str, levels: Sequence[Any], hierarchy: Hierarchy) -> list[Cut]:
    """Return the levels of a hierarchy, of two with as many groups the lower one."""
    chain: dict[int, Cut] = {}
    for number in reversed(range(len(hierarchy.levels))):
        named = Groups(hierarchy.mapping(number)).named(levels)
        unknown = [v for v in named if isinstance(v, Ungrouped)]
        if unknown:
            raise without_group(name, unknown)
        groups = _coded(named)
        chain[int(groups.max())] = Cut(groups, "levels", number)
    return list(chain.values())


def _coded(named: Sequence[Any]) -> Codes:
    places: dict[Any, int] = {}
    return np.array([places.setdefault(group, len(places)) for group in named], np.int64)


def _intervals(
    search: Search, i: int, rest: Codes, schema: TableSchema, counts: Counts
) -> list[Cut]:
    """Return the best 1, 2, … intervals of a number, given the cell of the other columns.

    Parameters
    ----------
    rest : ndarray of int
        The number of each fine cell's cell of the other columns.
    """
    name = schema.key[i]
    levels = counts.levels[name]
    known = len(levels) - (None in levels)
    size = int(search.w.max()) + 1
    flat = (rest * size + search.w) * len(levels) + search.codes[i]
    table = np.bincount(flat, search.masses, (int(rest.max()) + 1) * size * len(levels)).astype(
        float
    )
    table = table.reshape(-1, size, len(levels))[:, :, :known]
    starts: list[float] = []
    if name in schema.bins:
        bins = schema.bins[name]
        starts = [bins.edges[bins.labels.index(label)] for label in levels[:known]]
    else:
        starts = [float(v) for v in levels[:known]]
    chain = []
    for edges in cuts_by_number(_gains(table), min(known, search.most)) if known else ():
        assert edges is not None
        groups = np.searchsorted(edges, np.arange(known), side="right") - 1
        coded = np.append(groups, [len(edges) - 1] * (len(levels) - known)).astype(np.int64)
        spec = [-math.inf, *(starts[e] for e in edges[1:-1]), math.inf]
        chain.append(Cut(coded, "bins", spec))
    if known <= search.most and name not in schema.bins:
        chain[known - 1 :] = [_unchanged(len(levels))]
    return chain


def _gains(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return −H(W | rest, group) of the group of levels first … last, times its mass.

    Parameters
    ----------
    table : ndarray, shape (rest, |W|, levels)
    """
    levels = table.shape[2]
    before = np.concatenate([np.zeros((*table.shape[:2], 1)), table.cumsum(axis=2)], axis=2)
    gain = np.full((levels, levels), -math.inf)
    for first in range(levels):
        groups = before[:, :, first + 1 :] - before[:, :, first : first + 1]
        groups = np.where(groups > 1e-9 * table.max(), groups, 0.0)  # of weights: what is left of 0
        gain[first, first:] = (_times_log(groups).sum(axis=1) - _times_log(groups.sum(axis=1))).sum(
            axis=0
        )
    return gain


def _times_log(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return x * np.log(np.where(x > 0, x, 1.0))


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
    rest = search.cell_codes(state, without=i)
    levels = len(counts.levels[name])
    if (int(rest.max()) + 1) * (int(search.w.max()) + 1) * levels**2 > MOST_TERMS:
        return state
    best, chain = search.measured(state)[1], search.chains[i]
    old = search.seen
    search.chains[i], search.seen = _intervals(search, i, rest, schema, counts), {}
    allowed = [0] if search.measured((*state[:i], 0, *state[i + 1 :]))[0] <= search.most else []
    for at in range(1, len(search.chains[i])):
        if search.measured((*state[:i], at, *state[i + 1 :]))[0] <= search.most:
            allowed.append(at)
        elif at > state[i]:
            break
    found = [(*state[:i], at, *state[i + 1 :]) for at in allowed]
    other = search.exchanged(search.filled(max(found, key=lambda s: search.measured(s)[1])))
    if search.measured(other)[1] > best + LEAST:
        return other
    search.chains[i], search.seen = chain, old
    return state
