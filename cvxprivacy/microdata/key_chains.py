"""The recodings of each key column from coarse to fine, and the search for the best of a key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.microdata.hierarchy import Hierarchy
from cvxprivacy.microdata.intervals import cuts_by_number
from cvxprivacy.tables.counting import Counts
from cvxprivacy.tables.groups import Groups, Ungrouped, without_group
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import value_counts

__all__ = [
    "FINEST",
    "LEAST",
    "ROUNDS",
    "Cut",
    "Search",
    "chain_of",
    "information_less",
    "intervals_of",
    "search_of",
    "tabulated",
    "unchanged",
]

FINEST = 200  # intervals of equal counts that a number of more values is cut into first
STEPS = (1, 2, 4, 8, 16, 32, 64, 128)  # along a chain
ROUNDS = 4
LEAST = 1e-12  # nats: what two sums of floats may be apart

Codes = npt.NDArray[np.int64]


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
        for codes in self.codes:
            cells = np.unique(cells * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
        return cells

    def measured(self, state: Sequence[int]) -> tuple[int, float]:
        """Return the observed cells and I(W; X̃) in nats, less a constant."""
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
    codes = [np.array([place[row[i]] for row in rows], np.int64) for i, place in enumerate(places)]
    numbers: dict[Any, int] = {}
    w = np.array([numbers.setdefault(cell[0], len(numbers)) for cell in counts.cells], np.int64)
    return Search(codes, w, counts.masses, [], most)


def tabulated(cells: Codes, w: Codes, masses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the masses of (x̃, w), shape (cells, |W|)."""
    size = int(w.max()) + 1
    flat = np.bincount(cells * size + w, masses, (int(cells.max()) + 1) * size).astype(float)
    return flat.reshape(-1, size)


def information_less(table: npt.NDArray[np.float64]) -> float:
    """Return Σ p(w, x̃) log p(w, x̃) / p(x̃) = −H(W | X̃) in nats: I(W; X̃) less H(W)."""
    rows = table.sum(axis=1)
    return float((_times_log(table).sum() - _times_log(rows).sum()) / rows.sum())


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
    if name in schema.bins or lazy.collect_schema()[name].is_numeric():
        return intervals_of(search, i, np.zeros(len(search.w), np.int64), schema, counts)
    values = value_counts(lazy, name)
    chain, last = [], min(len(set(values) - {None}) - 2, search.most)
    kept = {k for k in range(1, last + 1) if k <= FINEST or k % (FINEST // 4) == 0}
    for number in sorted(kept):
        groups = Groups.most_frequent(values, number)
        chain.append(Cut(_coded(groups.named(levels)), "top", number))
    return [*chain, unchanged(len(levels))]


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
    table = np.bincount(flat, search.masses, (int(others.max()) + 1) * size * len(levels)).astype(
        float
    )
    table = table.reshape(-1, size, len(levels))[:, :, :present]
    starts: list[float] = []
    if name in schema.bins:
        bins = schema.bins[name]
        low = dict(zip(bins.labels, bins.edges, strict=False))
        starts = [low[label] for label in levels[:present]]
    else:
        starts = [float(v) for v in levels[:present]]
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
        gain[first, first:] = (_times_log(groups).sum(axis=1) - _times_log(groups.sum(axis=1))).sum(
            axis=0
        )
    return gain


def _times_log(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return x * np.log(np.where(x > 0, x, 1.0))
