"""The unknowns of a program over whole counts: how many records go where.

A *source* is whatever moves as one: a letter of the program; all letters that every row sees alike;
or an x whose records go blindly, a share of each (w, x) with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from cvxprivacy.exact import FloatArray, rational
from cvxprivacy.programs.channel import ChannelProgram

__all__ = [
    "BUDGET", "Booleans", "Moves", "Places", "bounds_in_records", "budgeted", "distances",
    "every_move", "letters_alike", "matched", "nearest_counts",
    "one_hamming", "roundings", "some_moves",
]  # fmt: skip

BUDGET = "budget"  # the row that bounds the distortion where something else is minimised

ALL_MOVES = 100  # letters up to which every record may go everywhere
_TARGETS = 40  # cheapest ones of a letter, beyond
_MATCHED = 4000  # records up to which those that leave and those that arrive are matched

Places = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass
class Moves:
    """Columns of an integer program: records of a source that go to an output.

    Attributes
    ----------
    source, output : ndarray of int, shape (columns,)
    cost, lower, upper : ndarray, shape (columns,)
        Of a record, and how many there may be; under a budget a cost is spent, not minimised.
    pool : ndarray of int, shape (columns,)
        Number of the sum that is kept: of a source's records, or of all like sources'.
    pools : ndarray, shape (sums,)
        Those sums.
    spread : sparse array, shape (sources, n)
        Which share of a source's records are of each letter of the program.
    stays : int or None
        How many of the first columns are of letters that stay, where others arrive from anywhere.
    left_out : ndarray of bool, shape (sources, m), or None
        Moves that might be columns, too.
    costs : ndarray, shape (sources, m)
        Of all moves.
    most : ndarray, shape (sources, m), or None
        How many records may make each of them, where that is not all.
    apart : ndarray, shape (n, m), or None
        How far letters and outputs are apart, where moves cost the same.
    """

    source: Places
    output: Places
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    pool: Places
    pools: FloatArray
    spread: Any
    costs: FloatArray
    stays: int | None = None
    left_out: Booleans | None = None
    most: FloatArray | None = None
    apart: FloatArray | None = None

    @property
    def outputs(self) -> Places:
        """The outputs that there are moves to, of columns or left out."""
        there = np.unique(self.output)
        if self.left_out is not None:
            there = np.union1d(there, np.flatnonzero(self.left_out.any(axis=0)))
        return there.astype(np.int64)

    def open(self, chosen: Booleans) -> tuple[Places, Places]:
        """Make columns of some moves that were left out, and return their sources and outputs."""
        assert self.left_out is not None
        self.left_out = self.left_out & ~chosen
        s, y = np.nonzero(chosen)
        self.source, self.output = np.append(self.source, s), np.append(self.output, y)
        self.cost = np.append(self.cost, self.costs[s, y])
        self.lower = np.append(self.lower, np.zeros(len(s)))
        self.upper = np.append(self.upper, self.pools[s] if self.most is None else self.most[s, y])
        self.pool = np.append(self.pool, s)
        return s, y

    def table(
        self, x: FloatArray, shape: tuple[int, int], *, nearest: bool = False
    ) -> Places | None:
        """Return whole m(s, x̂) of a solution: those that leave go to those that arrive.

        In order, or to the ``nearest``, which takes its time.  None for what is not within the
        bounds of all columns, or leaves other sums of pools.
        """
        exact = np.rint(x)
        if not ((self.lower <= exact) & (exact <= self.upper)).all():
            return None
        records: Places = exact.astype(np.int64)
        if (np.bincount(self.pool, records, len(self.pools)) != self.pools).any():
            return None
        counts = np.zeros(shape, np.int64)
        if self.stays is None:
            counts[self.source, self.output] = records
            return counts
        stay, home = records[: self.stays], self.output[: self.stays]
        size = self.upper.astype(np.int64)
        for pool in range(len(self.pools)):
            letters = np.flatnonzero(self.pool[: self.stays] == pool)
            mine = np.flatnonzero(self.pool[self.stays :] == pool) + self.stays
            arrive = records[mine].copy()
            leave: Places = size[letters] - stay[letters]
            back = np.minimum(leave, arrive[home[letters]])  # who leaves and is back has not moved
            leave = leave - back
            np.subtract.at(arrive, home[letters], back)
            apart = None if self.apart is None or not nearest else self.apart[letters]
            counts[letters] = matched(leave, arrive, apart)
            counts[letters, home[letters]] += size[letters] - leave
        return counts


def matched(leave: Places, arrive: Places, apart: FloatArray | None) -> Places:
    """Return how many records of each letter go to each output, the nearest together.

    Parameters
    ----------
    leave : ndarray of int, shape (letters,)
    arrive : ndarray of int, shape (m,)
        As many in all.
    apart : ndarray, shape (letters, m), or None
        How far an output is: without, or of very many records, they go in order.
    """
    rows, columns = (np.repeat(np.arange(len(n)), n) for n in (leave, arrive))
    if apart is not None and len(rows) <= _MATCHED:
        columns = columns[linear_sum_assignment(apart[np.ix_(rows, columns)])[1]]
    counts = np.zeros((len(leave), len(arrive)), np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts


# ---- every move, or letters that are pooled ----------------------------------------------


def distances(program: ChannelProgram) -> FloatArray:
    """Return d(s, x̂): what is minimised, or what a budget bounds."""
    row = program.constraints.get(BUDGET)
    return program.cost(program.objectives[""] if row is None else row.expression)


def budgeted(program: ChannelProgram, n: Places) -> float | None:
    """Return what n records may cost together, if there is such a bound."""
    row = program.constraints.get(BUDGET)
    return None if row is None else float(cast("Fraction", row.bound) * int(n.sum()))


def one_hamming(program: ChannelProgram, home: Places) -> Places | None:
    """Return the pool of each letter where it costs the same wherever a record moves, else None.

    Parameters
    ----------
    program : ChannelProgram
        Least cost under rows.
    home : ndarray of int, shape (n,)
        The output that is a letter's own value, −1 for none.

    Returns
    -------
    ndarray of int, shape (n,)
        Equal numbers for letters that every row sees alike.
    """
    if (home < 0).any() or (program.ceiling is not None and (program.ceiling < 1).any()):
        return None
    stay = np.arange(program.m) == home[:, None]
    costs = distances(program)
    if costs[stay].any() or (costs[~stay] != costs.max()).any() or costs.max() <= 0:
        return None
    if program.floor is not None and program.floor[~stay].any():
        return None
    return letters_alike(program)


def letters_alike(program: ChannelProgram) -> Places:
    """Return equal numbers for letters that every row sees alike, shape (n,)."""
    tables = [np.zeros((program.n, 1))]
    rows = {name: row.expression for name, row in program.constraints.items() if name != BUDGET}
    if len(rows) < len(program.constraints):
        rows[BUDGET] = program.objectives[""]
    for row in rows.values():
        tables.append(np.asarray(program.cost(row)))
        tables += [(program.view_matrix(view).toarray() / program.mass).T for view in row.weights]
    together = np.concatenate(tables, axis=1)
    return np.unique(together, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def every_move(
    program: ChannelProgram, n: Places, home: Places, support: Booleans | None = None,
    apart: FloatArray | None = None,
) -> Moves:  # fmt: skip
    """Return the moves of all letters; of many letters the cheapest and those of a law first.

    Parameters
    ----------
    program : ChannelProgram
    n : ndarray of int, shape (n,)
        Records of each letter.
    home : ndarray of int, shape (n,)
        The output that is a letter's own value, −1 for none.
    support : ndarray of bool, shape (n, m), optional
        Moves that are not left out.
    apart : ndarray, shape (n, m), optional
        How far letters and outputs are apart, where moves cost the same.
    """
    costs = distances(program)
    least, most = bounds_in_records(program, n)
    spread, sizes = sparse.eye_array(program.n, format="csr"), n.astype(float)
    pool = one_hamming(program, home)
    if pool is None:
        moves = some_moves(costs, sizes, spread, support, least > 0, most > 0)
        at = moves.source, moves.output
        moves.lower, moves.upper, moves.most = least[at], most[at], most
        return moves
    first = np.unique(pool, return_index=True)[1]
    size = np.bincount(pool, n).astype(float)
    moved = np.full(len(first) * program.m, costs.max())
    return Moves(
        source=np.concatenate([np.arange(program.n), np.repeat(first, program.m)]),
        output=np.concatenate([home, np.tile(np.arange(program.m), len(first))]),
        cost=np.concatenate([np.zeros(program.n), moved]),
        lower=np.concatenate([least[np.arange(program.n), home], np.zeros(len(moved))]),
        upper=np.concatenate([n, np.repeat(size, program.m)]).astype(float),
        pool=np.concatenate([pool, np.repeat(np.arange(len(first)), program.m)]),
        pools=size, spread=spread, costs=costs, stays=program.n, apart=apart,
    )  # fmt: skip


def some_moves(
    costs: FloatArray, sizes: FloatArray, spread: Any,
    support: Booleans | None, forced: Booleans | None = None, possible: Booleans | None = None,
) -> Moves:  # fmt: skip
    """Return moves of sources of some sizes: all of few, else the cheapest and some others.

    Parameters
    ----------
    costs : ndarray, shape (sources, m)
    sizes : ndarray, shape (sources,)
    spread : sparse array, shape (sources, n)
    support, forced : ndarray of bool, shape (sources, m), optional
        Moves that are not left out.
    possible : ndarray of bool, shape (sources, m), optional
        All that there are.
    """
    possible = np.ones(costs.shape, bool) if possible is None else possible
    there, left_out = possible, None
    if costs.shape[1] > ALL_MOVES:
        rank = np.argsort(np.argsort(costs, axis=1, kind="stable"), axis=1, kind="stable")
        there = rank < _TARGETS
        for further in (support, forced):
            there = there if further is None else there | further
        there = there & possible
        left_out = possible & ~there
    s, y = np.nonzero(there)
    return Moves(
        s, y, costs[s, y], np.zeros(len(s)), sizes[s], s, sizes, spread, costs, left_out=left_out
    )


def roundings(expected: FloatArray, n: Places, cost: FloatArray) -> Moves:
    """Return the moves that round expected counts up or down.

    Parameters
    ----------
    expected : ndarray, shape (n, m)
        Σ over outputs is ``n``.
    n : ndarray of int, shape (n,)
    cost : ndarray, shape (n, m)
        Of a record.
    """
    near = np.rint(expected)
    exact = np.where(np.abs(expected - near) < _WHOLE, near, expected)
    s, y = np.nonzero(exact)
    return Moves(
        s, y, cost[s, y], np.floor(exact[s, y]), np.ceil(exact[s, y]), s, n.astype(float),
        sparse.eye_array(len(n), format="csr"), cost,
    )  # fmt: skip


def nearest_counts(expected: FloatArray) -> Places:
    """Return whole counts of the same sums, rounded up where most is left; shape (n, m)."""
    least = np.floor(expected + _WHOLE)
    missing = np.rint((expected - least).sum(axis=1))
    rank = np.argsort(np.argsort(least - expected, axis=1, kind="stable"), axis=1, kind="stable")
    counts: Places = (least + (rank < missing[:, None])).astype(np.int64)
    return counts


_WHOLE = 1e-7  # records by which an expected count may miss a whole number that it is


def bounds_in_records(program: ChannelProgram, n: Places) -> tuple[FloatArray, FloatArray]:
    """Return the least and the most records of each entry, whole numbers, shape (n, m)."""
    shape = program.n, program.m
    least = _records(program.lower, n, math.ceil, shape, 0)
    return least, _records(program.upper, n, math.floor, shape, 1)


def _records(
    bounds: Any, n: Places, rounded: Callable[[Any], int], shape: tuple[int, ...], other: int
) -> FloatArray:
    """Return bounds on entries of a channel in whole records, of exact numbers."""
    table = np.multiply.outer(n, np.full(shape[1], float(other)))
    if bounds is not None:
        exact = np.broadcast_to(np.asarray(bounds), shape)
        for s, y in np.argwhere(exact != other).tolist():
            table[s, y] = rounded(rational(exact[s, y]) * int(n[s]))
    return table
