r"""A key recoded to few cells: intervals, levels and most frequent values, chosen together.

.. math::
   \max_{\text{recodings}} \; I(W; X̃) \qquad \text{s.t.} \quad
       \text{at most } n \text{ observed cells of } X̃ = (X̃_1, …, X̃_m)

Each column has a chain of recodings, from coarse to fine: of a number the best intervals by
dynamic programming, 1, 2, … of them; of dates centuries, decades, years, quarters, months, days; of
a hierarchy its levels; of any other column its 1, 2, … most frequent values and the rest.  The
number of groups is allotted to the columns greedily, by information gained per cell added, from the
coarsest key on; then columns give way to each other as long as that gains, and the intervals are
cut anew for what the other columns tell already.
It is a local search of a few rounds: a better key of as many cells may be there.

The search takes what chance shows for information.  Miller and Madow's formula does not know of it;
what the same search gains on tables whose confidential column is shuffled does.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.tables.arrays import Codes, codes
from cvxprivacy.tables.bins import Bins
from cvxprivacy.tables.counting import Counts, count_records
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.groups import Groups, Ungrouped, without_group
from cvxprivacy.tables.periods import Periods, are_dates
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS, value_counts
from cvxprivacy.validation import integer
from cvxprivacy_sdc.recoding.generalisation import Hierarchy
from cvxprivacy_sdc.recoding.intervals import cuts_by_number

__all__ = ["FINEST", "KeyRecoding", "recoded_key"]

FINEST = 200  # intervals of equal counts that a number of more values is cut into first
STEPS = (1, 2, 4, 8, 16, 32, 64, 128)  # along a chain
ROUNDS = 4
SHUFFLES = 5  # tables: their I(W; X̃) differ by a tenth or so
_PERIODS = (  # of dates, from coarse to fine
    "100years", "50years", "20years", "decade", "5years", "year", "quarter", "month",
)  # fmt: skip
LEAST = 1e-12  # bits: what two sums of floats may be apart
MOST_TERMS = 2e8  # of intervals that are cut anew, given the other columns


@dataclass(frozen=True, eq=False)
class KeyRecoding:
    """Recodings chosen for the columns of a key by :func:`recoded_key`, and what they lose.

    Attributes
    ----------
    source : DiscreteSource
        The records, counted with all recodings.
    bins : dict of str to list of float or str
        Edges of intervals, of columns of numbers; calendar intervals, such as "year", of dates.
    levels : dict of str to int
        Levels of hierarchies.
    top : dict of str to int
        Most frequent values kept.
    unchanged : tuple of str
        Columns that are kept as they are.
    cells : int
        Observed cells of the key before.
    before : float
        I(W; X) of the key before, in bits; of numbers with more than 200 values in 200 intervals,
        of more than 200 days in months.
    bias : float
        Its small-sample bias (Miller–Madow), in bits.
    chance : float
        I(W; X̃) that the same search finds on average where W is shuffled, in bits: what of
        ``after`` may be chance and choice.  NaN for weighted records.

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

    ``recoding.source`` goes into a problem:

    >>> import cvxprivacy as cpv
    >>> problem = cpv.PrivacyDistortion(recoding.source, cpv.hamming(recoding.source.x), budget=0.1)
    >>> round(problem.solve().value, 3)  # 1 − h(0.1)
    0.531
    """

    source: DiscreteSource
    bins: Mapping[str, list[float] | str]
    levels: Mapping[str, int]
    top: Mapping[str, int]
    unchanged: tuple[str, ...]
    cells: int
    before: float
    bias: float
    chance: float

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
    cells = integer(cells, "cells", least=1)
    hierarchies = hierarchies or {}
    roles: dict[str, Any] = {"sensitive": sensitive, "key": key, "side": None, "weights": weights}
    schema = TableSchema.of(frame, **roles, bins=bins, groups=groups, missing=missing)
    free = [n for n in schema.key if n not in schema.bins and n not in schema.groups]
    lazy = as_narwhals(frame).lazy()
    types, first = lazy.collect_schema(), dict(schema.bins)
    for name in (n for n in free if n not in hierarchies):
        values = value_counts(lazy, name)
        if len(values) <= FINEST:
            continue
        if types[name].is_numeric():
            first[name] = Bins.of_quantiles(values, FINEST)
        elif are_dates(values):
            first[name] = Periods(_PERIODS[-1])
    fine = TableSchema(
        schema.key, schema.sensitive, (), schema.weights, first, missing, {}, schema.groups
    )
    counts = count_records(fine, frame, most=MOST_CELLS)

    def searched(search: Search) -> tuple[int, ...]:
        search.chains = [
            chain_of(search, i, n, fine, counts, hierarchies.get(n), lazy)
            if n in free
            else [unchanged(len(counts.levels[n]))]
            for i, n in enumerate(schema.key)
        ]
        return _best(search, cells, fine, counts)

    search = search_of(counts, fine, cells)
    state, chance = searched(search), math.nan
    if weights is None:
        generator = np.random.default_rng(0)
        shuffled = [search.shuffled(generator) for _ in range(SHUFFLES)]
        chance = float(np.mean([each.information(searched(each)) for each in shuffled]))
    chosen = {n: c[at] for n, c, at in zip(schema.key, search.chains, state, strict=True)}
    by_role = {role: {n: chosen[n].spec for n in free if chosen[n].role == role}
               for role in ("bins", "periods", "levels", "top", "unchanged")}  # fmt: skip
    by_role["bins"] |= by_role["periods"]
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
        before=information_less(table) - information_less(table.sum(axis=0)[None]),
        bias=excess / (2 * counts.effective) / math.log(2), chance=chance,
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


@dataclass(frozen=True, eq=False)
class Cut:
    """One recoding of a column: the group of each of its levels, and how it is asked for."""

    groups: Codes
    role: str  # "bins", "periods", "levels", "top" or "unchanged"
    spec: Any = None


@dataclass(eq=False)
class Search:
    """The fine cells, and for each column a chain of recodings from coarse to fine."""

    codes: list[Codes]  # of each key column: the level of each fine cell
    w: Codes
    masses: npt.NDArray[np.float64]
    chains: list[list[Cut]]
    most: int
    memo: dict[tuple[int, ...], tuple[int, float]] = field(default_factory=dict)

    def cell_codes(self, state: Sequence[int], without: int | None = None) -> Codes:
        """Return the number of each fine cell's recoded cell, 0 to one less than there are."""
        cells = np.zeros(len(self.w), np.int64)
        for i, at in enumerate(state):
            if i != without:
                groups = self.chains[i][at].groups
                cells = cells * (int(groups.max()) + 1) + groups[self.codes[i]]
                if cells.max() > 1 << 20:
                    cells = _ranks(cells)
        return _ranks(cells)

    @property
    def fine(self) -> Codes:
        """The number of each fine cell's key."""
        cells = np.zeros(len(self.w), np.int64)
        for levels in self.codes:
            cells = np.unique(cells * (int(levels.max()) + 1) + levels, return_inverse=True)[1]
        return cells

    def shuffled(self, generator: np.random.Generator) -> Search:
        """Return the cells of as many records whose W are in another order; chains are none."""
        cells = np.repeat(np.arange(len(self.w)), self.masses.astype(np.int64))
        w, size = generator.permutation(self.w[cells]), int(self.w.max()) + 1
        pairs, first, masses = np.unique(
            self.fine[cells] * size + w, return_index=True, return_counts=True
        )
        places = [levels[cells[first]] for levels in self.codes]
        return Search(places, pairs % size, masses.astype(float), [], self.most)

    def information(self, state: Sequence[int]) -> float:
        """Return I(W; X̃) in bits."""
        of_w = np.bincount(self.w, self.masses).astype(float)[None]
        return self.measured(state)[1] - information_less(of_w)

    def measured(self, state: Sequence[int]) -> tuple[int, float]:
        """Return the observed cells and I(W; X̃) in bits, less a constant."""
        key = tuple(state)
        if key not in self.memo:
            cells = self.cell_codes(key)
            table = tabulated(cells, self.w, self.masses)
            self.memo[key] = len(table), information_less(table)
        return self.memo[key]

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


def _ranks(codes: Codes) -> Codes:
    """Return the rank of each number among those that occur."""
    most = int(codes.max())
    if most > 1 << 22:
        return np.unique(codes, return_inverse=True)[1]
    occurs = np.zeros(most + 1, np.int64)
    occurs[codes] = 1
    return (np.cumsum(occurs) - 1)[codes]


# ---- the fine cells ----------------------------------------------------------------------


def search_of(counts: Counts, schema: TableSchema, most: int) -> Search:
    """Return the fine cells as codes: of each key column's levels, and of W."""
    places = [{v: i for i, v in enumerate(counts.levels[n])} for n in schema.key]
    rows = [x if len(schema.key) > 1 else (x,) for _, x in counts.cells]
    fine = [np.array([place[row[i]] for row in rows], np.int64) for i, place in enumerate(places)]
    return Search(fine, codes(w for w, _ in counts.cells), counts.masses, [], most)


def tabulated(cells: Codes, w: Codes, masses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the masses of (x̃, w), shape (cells, |W|)."""
    size = int(w.max()) + 1
    flat = np.bincount(cells * size + w, masses, (int(cells.max()) + 1) * size).astype(float)
    return flat.reshape(-1, size)


def information_less(table: npt.NDArray[np.float64]) -> float:
    """Return Σ p(w, x̃) log₂ p(w, x̃) / p(x̃) = −H(W | X̃) in bits: I(W; X̃) less H(W)."""
    rows = table.sum(axis=1)
    return float((_times_log(table).sum() - _times_log(rows).sum()) / rows.sum() / math.log(2))


# ---- chains of recodings -----------------------------------------------------------------


def unchanged(levels: int) -> Cut:
    """Return the recoding that leaves every level as it is."""
    return Cut(np.arange(levels), "unchanged")


def chain_of(
    search: Search, i: int, name: str, schema: TableSchema, counts: Counts,
    hierarchy: Hierarchy | None, lazy: nw.LazyFrame[Any],
) -> list[Cut]:  # fmt: skip
    """Return the recodings of a column from coarse to fine."""
    levels = counts.levels[name]
    if hierarchy is not None:
        return _levels(name, levels, hierarchy)
    if isinstance(schema.bins.get(name), Bins) or lazy.collect_schema()[name].is_numeric():
        return intervals_of(search, i, np.zeros(len(search.w), np.int64), schema, counts)
    values = value_counts(lazy, name)
    if are_dates(values):
        return _periods(levels, binned=name in schema.bins)
    chain, last = [], min(len(set(values) - {None}) - 2, search.most)
    kept = {k for k in range(1, last + 1) if k <= FINEST or k % (FINEST // 4) == 0}
    for number in sorted(kept):
        groups = Groups.most_frequent(values, number)
        chain.append(Cut(codes(groups.named(levels)), "top", number))
    return [*chain, unchanged(len(levels))]


def _periods(levels: Sequence[Any], *, binned: bool) -> list[Cut]:
    """Return calendar intervals of months, or of days; of two with as many the coarser one."""
    chain: dict[int, Cut] = {}
    for unit in _PERIODS:
        groups = codes(Periods(unit).named(levels))
        chain.setdefault(int(groups.max()), Cut(groups, "periods", unit))
    if not binned:
        chain.setdefault(len(levels) - 1, unchanged(len(levels)))
    return list(chain.values())


def _levels(name: str, levels: Sequence[Any], hierarchy: Hierarchy) -> list[Cut]:
    """Return the levels of a hierarchy, of two with as many groups the lower one."""
    chain: dict[int, Cut] = {}
    for number in reversed(range(len(hierarchy.levels))):
        named = Groups(hierarchy.mapping(number)).named(levels)
        unknown = [v for v in named if isinstance(v, Ungrouped)]
        if unknown:
            raise without_group(name, unknown)
        groups = codes(named)
        chain[int(groups.max())] = Cut(groups, "levels", number)
    return list(chain.values())


def intervals_of(
    search: Search, i: int, others: Codes, schema: TableSchema, counts: Counts
) -> list[Cut]:
    """Return the best 1, 2, … intervals of a number, given the cell of the other columns.

    Parameters
    ----------
    others : ndarray of int
        The number of each fine cell's cell of the other columns.
    """
    name = schema.key[i]
    levels = counts.levels[name]
    present = len(levels) - (None in levels)
    size = int(search.w.max()) + 1
    flat = (others * size + search.w) * len(levels) + search.codes[i]
    cells = (int(others.max()) + 1) * size * len(levels)
    table = np.bincount(flat, search.masses, cells).astype(float)
    table = table.reshape(-1, size, len(levels))[:, :, :present]
    bins = schema.bins.get(name)
    low = dict(zip(bins.labels, bins.edges, strict=False)) if isinstance(bins, Bins) else {}
    starts = [float(low.get(v, v)) for v in levels[:present]]
    chain = []
    for edges in cuts_by_number(_gains(table), min(present, search.most)) if present else ():
        assert edges is not None
        groups = np.searchsorted(edges, np.arange(present), side="right") - 1
        coded = np.append(groups, [len(edges) - 1] * (len(levels) - present)).astype(np.int64)
        spec = [-math.inf, *(starts[e] for e in edges[1:-1]), math.inf]
        chain.append(Cut(coded, "bins", spec))
    if present <= search.most and name not in schema.bins:
        chain[present - 1 :] = [unchanged(len(levels))]
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
        parts = _times_log(groups).sum(axis=1) - _times_log(groups.sum(axis=1))
        gain[first, first:] = parts.sum(axis=0)
    return gain


def _times_log(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return x * np.log(np.where(x > 0, x, 1.0))
