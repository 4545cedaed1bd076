r"""A table of whole counts m(s, x̂) by outer approximation: integer programs and tangent scores.

.. math::
   \min ⟨d, m⟩ \quad\text{s.t.}\quad Σ_{\hat x} m(s, \hat x) = n(s), \quad m \text{ whole},
   \quad \text{the rows of a channel program at } m/N, \quad Σ_s m(s, \hat x) ∈ \{0\} ∪ [k, ∞).

Rows are the program's own.  Under a budget ⟨d, m⟩ ≤ N D the leakage is minimised, by its epigraph:
Σ t(x̂) over tangents N α F ≤ t.  First rounds are of the continuous relaxation; its prices tell
which moves that were left out could make a better table, and those are let in.  The integer
programs are HiGHS's, and so is their bound.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.solvers.integer_program import IntegerProgram
from cvxprivacy.solvers.watch import Watch
from cvxprivacy_sdc.whole_counts.moves import (
    BUDGET,
    Booleans,
    Moves,
    Places,
    budgeted,
    distances,
    every_move,
)
from cvxprivacy_sdc.whole_counts.rows import TableRow

__all__ = ["Answer", "Judge", "Rounds", "least_table"]

_logger = logging.getLogger("cvxprivacy.tables")
_NEAR = 1e-7  # records by which a row may be broken before it is cut: HiGHS is asked for 1e-9
_TIGHTER = 1e-6  # records by which a row is tightened first that holds in floats and not exactly
_TIGHTEST = 1e-5  # beyond which nothing is claimed: a table might be cut off
_FLAT = 1e-6  # relatively: what tangents of the objective have to gain, for more of them
_RELAXED = 100  # rounds of the relaxation at most
_ROUNDS = 400
_RATIOS = 0.5, 2.0  # of posterior and prior, at which each value has a tangent from the start
_SHARED = 2  # tangents for each value of W that all outputs have
_COARSE = 0.01  # the first gap of whole numbers
_FINE = 1e-6  # a gap below which nothing is gained by a coarser one
_CHEAPER = 1e-7  # by which a move has to be worth it
_MOVED = 1e-6  # probability of a move that a law makes
_AT_ONCE = 10  # moves of a source that are let into a relaxation together
_BROKEN = 1e-6  # records by which rows may be broken in all, where that is paid for
_UNPAID = 1e4  # times the greatest cost: of a record that a row is broken by

Broken = Mapping[str, npt.NDArray[np.bool_] | None]
Judge = Callable[[Places], Broken | None]


@dataclass
class Answer:
    """What the rounds end with.

    Attributes
    ----------
    counts : ndarray of int, shape (n, m), or None
        The best table that every criterion holds of.
    claimed : float
        HiGHS's own lower bound of what is minimised, over all tables; −inf where there is none.
    finished : bool
        Whether the last program was solved to the gap that was asked for.
    infeasible : bool
        Whether HiGHS says that there is no table.
    nearest : ndarray of int, shape (n, m), or None
        Then a table that breaks rows of outputs alone, by few records.
    rounds, cuts : int
        Programs that were solved, and rows that were added.
    """

    counts: Places | None = None
    claimed: float = -math.inf
    finished: bool = False
    infeasible: bool = False
    nearest: Places | None = None
    rounds: int = 0
    cuts: int = 0


class Rounds:
    """Programs solved one after the other, each with the rows that the last solution broke.

    Parameters
    ----------
    program : ChannelProgram
        Whose rows they are.
    moves : Moves
        The unknowns.
    group : int
        The least size of a group that is not empty.
    margin : float
        By how many records every row of an output is to hold: times how far the coefficients of
        its records are apart.
    elastic : bool
        Whether a row of an output may be broken, at a cost beyond all others.
    budget : float, optional
        What all moves may cost together; what the program's objective leaks is minimised.
    spent : ndarray, shape (columns,), optional
        What counts for the budget, if that is not the moves' cost, which then is minimised.
    """

    def __init__(
        self, program: ChannelProgram, moves: Moves, *,
        group: int = 1, margin: float = 0.0, elastic: bool = False,
        budget: float | None = None, spent: FloatArray | None = None,
    ) -> None:  # fmt: skip
        self.program, self.moves, self.group, self.margin = program, moves, group, margin
        self.total, self.outputs = float(moves.pools.sum()), moves.outputs.tolist()
        self.highs = highs = IntegerProgram()
        leaks = budget is not None and spent is None
        cost = np.zeros(len(moves.cost)) if leaks else moves.cost
        self.leaked: TableRow | None = None  # what is minimised, if that is no cost
        first = highs.add_columns(cost, moves.lower, moves.upper)
        self.columns = first + np.arange(len(moves.source))
        self.unpaid = _UNPAID * max(float(moves.costs.max()), 1.0) if elastic else None
        self.slacks: list[int] = []
        self.empty: int | None = None  # first column of z(x̂)
        self.of_output: list[list[tuple[int, FloatArray]]] = [[] for _ in range(program.m)]
        self.of_all: list[tuple[int, FloatArray]] = []
        self.reduced: FloatArray | None = None  # costs of moves by the prices of the relaxation
        place = np.argsort(moves.pool, kind="stable")
        for pool, on in enumerate(
            np.split(place, np.cumsum(np.bincount(moves.pool, minlength=len(moves.pools)))[:-1])
        ):
            size = moves.pools[pool]
            highs.add_row(size, size, self.columns[on], np.ones(len(on)))
        if group > 1:
            self._grouped()
        stated = {name: row for name, row in program.constraints.items() if name != BUDGET}
        self.names, self.rows = list(stated), [TableRow(program, row) for row in stated.values()]
        self.epigraphs: dict[int, int] = {}  # first columns of t(x̂) ≥ N α F, by number of the row
        self.values: dict[int, int] = {}  # first columns of t(x̂, v) ≥ N α π q f, likewise
        self.bounded: dict[tuple[int, int], tuple[int, float]] = {}  # HiGHS's rows, and bounds
        self.off: dict[tuple[int, int], float] = {}  # records by which rows were tightened
        self.shared: dict[int, set[bytes]] = {}  # tangents that all outputs have, by row
        self.cuts = 0
        for number, row in enumerate(self.rows):
            self._state(number, row)
        if budget is not None:
            self.names.append(BUDGET)
            costs = moves.cost if spent is None else spent
            number = highs.add_row(-highs.inf, budget, self.columns, costs)
            self.of_all.append((number, moves.costs))
            self.bounded[len(self.rows), -1] = number, budget
        if leaks:
            self._minimised()

    # ---- rows ----------------------------------------------------------------------------

    def _grouped(self) -> None:
        """State that an output has no records or as many as ``group``, by a binary z(x̂)."""
        m, highs, total = self.program.m, self.highs, self.total
        self.empty = highs.add_columns(np.zeros(m), 0.0, 1.0)
        for y in self.outputs:
            z, ones = self.empty + y, np.ones(self.moves.spread.shape[0])
            self._over(y, 0.0, highs.inf, ones, z, -float(self.group))
            self._over(y, -highs.inf, 0.0, ones, z, -total)
        self._linked(np.arange(len(self.moves.source)))

    def _linked(self, some: Places) -> None:
        """State of some moves that they are to a group that there is."""
        assert self.empty is not None
        for place in some[self.moves.upper[some] > 0].tolist():
            at = np.array([self.columns[place], self.empty + self.moves.output[place]])
            self.highs.add_row(-self.highs.inf, 0.0, at, np.array([1.0, -self.moves.upper[place]]))

    def _over(
        self, y: int, low: float, high: float, by_source: FloatArray,
        columns: int | Places | tuple[()] = (), value: float = 0.0,
    ) -> int:  # fmt: skip
        """Add a row over what goes to an output, and perhaps columns more; return its number."""
        on = np.flatnonzero(self.moves.output == y)
        places, values = self.columns[on], by_source[self.moves.source[on]]
        more = np.atleast_1d(np.asarray(columns, np.int64))
        places, values = np.append(places, more), np.append(values, np.full(len(more), value))
        row = self.highs.add_row(low, high, places, values)
        if self.moves.left_out is not None:
            self.of_output[y].append((row, by_source))
        return row

    def _below(self, y: int, slope: FloatArray, high: float) -> int:
        """State ⟨slope, N(·, x̂)⟩ ≤ high, slopes by the program's letters, with the margin."""
        by_source = self.moves.spread @ slope
        high -= self.margin * float(np.ptp(slope))
        return self._breakable(self._over(y, -self.highs.inf, high, by_source))

    def _breakable(self, row: int) -> int:
        """Let a row be broken at a cost, if that is wanted; return its number."""
        if self.unpaid is not None:
            entry = sparse.csr_array(([-1.0], ([0], [row])), shape=(1, row + 1))
            cost = np.array([self.unpaid])
            self.slacks.append(self.highs.add_columns(cost, 0.0, self.highs.inf, entry))
            self.highs.free.append(self.slacks[-1])
        return row

    def fill(self, least: float) -> None:
        """State that every output that there are moves to has so many records."""
        for y in self.outputs:
            self._over(y, least, self.highs.inf, np.ones(self.moves.spread.shape[0]))

    def _state(self, number: int, row: TableRow) -> None:
        """State a linear row, the rows of independence, or the sum of an epigraph."""
        highs, m, moves = self.highs, self.program.m, self.moves
        exact = row.row.sense == "=="
        if row.row.per_output and not row.weights:
            for y in self.outputs:
                high = row.bound[y] * self.total
                if exact:
                    self._over(y, high, high, moves.spread @ row.cost[:, y])
                else:
                    place = self._below(y, row.cost[:, y], high)
                    self.bounded[number, y] = place, high - self.margin * np.ptp(row.cost[:, y])
        elif row.row.per_output and row.view is not None and not self.margin:
            self._taken_apart(number, row)
        elif row.forbids_all:
            for direction in row.independent():
                for y in self.outputs:
                    self._over(y, 0.0, 0.0, moves.spread @ direction)
        elif not row.row.per_output:
            high = (row.bound[0] - row.constant) * self.total
            costs = np.asarray(moves.spread @ row.cost)
            scale = max(1.0, float(np.abs(costs).max()))  # HiGHS's tolerance is of rows as they are
            costs, high = costs / scale, high / scale
            places, values = self.columns, costs[moves.source, moves.output]
            if row.weights:
                self.epigraphs[number] = first = self._epigraph(0.0)
                more = first + np.arange(m)
                places, values = np.append(places, more), np.append(values, np.full(m, 1 / scale))
            place = highs.add_row(high if exact else -highs.inf, high, places, values)
            self.of_all.append((place, costs))
            self.bounded[number, -1] = place, high

    def _minimised(self) -> None:
        """State the epigraph of what the program's objective leaks, as one row more."""
        self.leaked = TableRow.minimised(self.program)
        self.epigraphs[len(self.rows)] = first = self._epigraph(1.0)
        self.rows.append(self.leaked)
        outputs, nothing = np.array(self.outputs), np.zeros((self.program.n, len(self.outputs)))
        slopes = self.leaked.tangents(self._within(nothing), outputs)
        for y, slope in zip(self.outputs, slopes.T, strict=True):  # without which t has no end
            self._tangent(self.leaked, y, slope, first)

    def _taken_apart(self, number: int, row: TableRow) -> None:
        """State a row of each output as a sum over values, each with tangents of its own.

        2 |W| of them say what takes 2^|W| of the sum: Hijazi, Bonami and Ouorou 2014.
        """
        assert row.view is not None
        count = len(row.shares[row.view])
        self.values[number] = first = self._epigraph(0.0, count)
        for y in self.outputs:
            high, cost = row.bound[y] * self.total, self.moves.spread @ row.cost[:, y]
            columns = first + count * y + np.arange(count)
            place = self._breakable(self._over(y, -self.highs.inf, high, cost, columns, 1.0))
            self.bounded[number, y] = place, high
            for ratio in _RATIOS:
                self._tangents_of_values(number, row, y, np.full(count, ratio), range(count))

    def _tangents_of_values(
        self, number: int, row: TableRow, y: int, ratio: FloatArray, values: Iterable[int]
    ) -> None:
        """State the tangents of what some values add at an output."""
        assert row.view is not None
        first = self.values[number] + len(row.shares[row.view]) * y
        slopes = row.tangents_of_values(ratio, y)
        for v in values:
            self._over(y, -self.highs.inf, 0.0, self.moves.spread @ slopes[v], first + v, -1.0)
            self.cuts += 1

    def _epigraph(self, cost: float, count: int = 1) -> int:
        """Add so many free columns for each output that there are moves to; return the first."""
        m, highs = self.program.m, self.highs
        free = np.where(np.isin(np.arange(m), self.outputs), highs.inf, 0.0).repeat(count)
        first = highs.add_columns(np.full(m * count, cost), -free, free)
        highs.free += (first + np.arange(m * count)).tolist()
        return first

    def _masses(self, x: FloatArray) -> FloatArray:
        """Return u(s, x̂), shape (n, m), as rows see it."""
        moves = self.moves
        shape = moves.spread.shape[0], self.program.m
        at = moves.source, moves.output
        records = np.maximum(x[self.columns], 0.0)  # HiGHS keeps bounds to its tolerance
        by_source = sparse.coo_array((records / self.total, at), shape=shape)
        masses: FloatArray = moves.spread.T @ by_source.toarray()
        return masses

    def cut(self, x: FloatArray) -> int:
        """Add the tangent of each row that a solution breaks, and return how many there are."""
        u, before = self._masses(x), self.cuts
        for number, row in enumerate(self.rows):
            if row is not self.leaked and row.weights and not row.forbids_all:
                if number in self.values:
                    self._cut_values(number, row, u, x)
                elif (epigraph := self.epigraphs.get(number)) is None:
                    self._cut_each(number, row, u)
                else:
                    self._cut_sum(number, row, u, epigraph, x)
        return self.cuts - before

    def steepen(self, x: FloatArray) -> int:
        """Add the tangents of what is minimised that a solution is below, and count them."""
        if self.leaked is None:
            return 0
        before, number = self.cuts, self.rows.index(self.leaked)
        self._cut_sum(number, self.leaked, self._masses(x), self.epigraphs[number], x)
        return self.cuts - before

    def cost(self, counts: Places) -> float:
        """Return what is minimised, of whole counts (n, m)."""
        if self.leaked is None:
            return float((self.moves.costs * counts).sum())
        return self.leaked.total(counts)

    def touch(self, u: FloatArray) -> None:
        """Add the tangents at some masses u(s, x̂), shape (n, m), near which the optimum may be.

        Where an output has none, at the law at large.
        """
        outputs = np.array(self.outputs)
        near = self._within(u[:, outputs])
        for number, row in enumerate(self.rows):
            if number in self.values:
                for y, masses in zip(self.outputs, near.T, strict=True):
                    ratio = row.ratios(masses)
                    self._tangents_of_values(number, row, y, ratio, range(len(ratio)))
            elif row.weights and not row.forbids_all:
                epigraph = self.epigraphs.get(number)
                at = near if epigraph is not None else row.edge(near, outputs)
                for y, slope in zip(self.outputs, row.tangents(at, outputs).T, strict=True):
                    self._tangent(row, y, slope, epigraph)

    def _within(self, u: FloatArray) -> FloatArray:
        """Return masses with a little of the law at large, which alone is where there are none."""
        sizes, law = u.sum(axis=0), self.program.mass[:, None]
        masses: FloatArray = u + law * np.where(sizes > 0, 1e-9 * sizes, 1.0)
        return masses

    def _tangent(self, row: TableRow, y: int, slope: FloatArray, epigraph: int | None) -> None:
        """State a tangent of an output's row, or of what it adds to a sum, with the margin."""
        if epigraph is None:
            self._below(y, slope, row.bound[y] * self.total)
        else:
            by_source = self.moves.spread @ (slope - row.cost[:, y])
            high = -self._share_of_margin(slope - row.cost[:, y])
            self._over(y, -self.highs.inf, high, by_source, epigraph + y, -1.0)
        self.cuts += 1

    def _share_of_margin(self, slope: FloatArray) -> float:
        """Return the margin of what one output adds: together they are off as their root."""
        return self.margin * float(np.ptp(slope)) / math.sqrt(len(self.outputs))

    def _cut_each(self, number: int, row: TableRow, u: FloatArray) -> None:
        """Cut off the outputs that break a row of theirs, or are nearer to it than the margin."""
        outputs = np.flatnonzero(u.sum(axis=0) > 0)
        if not self.margin:
            over = row.values(u[:, outputs], outputs) - row.bound[outputs]
            outputs = outputs[over * self.total > _NEAR]
        if not len(outputs):
            return
        slopes = row.tangents(row.edge(u[:, outputs], outputs), outputs)
        for y, slope in zip(outputs.tolist(), slopes.T, strict=True):
            high = row.bound[y] * self.total
            if slope @ u[:, y] * self.total > high - self.margin * np.ptp(slope) + _NEAR:
                for output in self._sharing(number, row, y, slope):
                    self._tangent(row, output, slope, None)

    def _cut_values(self, number: int, row: TableRow, u: FloatArray, x: FloatArray) -> None:
        """Cut off what values add to outputs that break their row."""
        outputs = np.flatnonzero(u.sum(axis=0) > 0)
        over = row.values(u[:, outputs], outputs) - row.bound[outputs]
        for y in outputs[over * self.total > _NEAR].tolist():
            ratio = row.ratios(u[:, y])
            first, count = self.values[number] + len(ratio) * y, len(ratio)
            added = row.tangents_of_values(ratio, y) @ u[:, y] * self.total
            short = added - x[first : first + count] > _NEAR / (2 * count)
            self._tangents_of_values(number, row, y, ratio, np.flatnonzero(short).tolist())

    def _cut_sum(
        self, number: int, row: TableRow, u: FloatArray, epigraph: int, x: FloatArray
    ) -> None:
        """Cut off t(x̂) that is below what an output leaks."""
        outputs = np.array(self.outputs)
        spent = (row.cost[:, outputs] * u[:, outputs]).sum(axis=0)  # of which t has nothing
        t = x[epigraph + outputs] / self.total
        if not self.margin:
            over = row.values(u[:, outputs], outputs) - spent - t
            outputs = outputs[over * self.total > _NEAR]
        if not len(outputs):
            return
        near = self._within(u[:, outputs])
        for y, slope in zip(outputs.tolist(), row.tangents(near, outputs).T, strict=True):
            leaked = slope - row.cost[:, y]
            least = leaked @ u[:, y] * self.total + self._share_of_margin(leaked)
            if least - x[epigraph + y] > _NEAR:
                for output in self._sharing(number, row, y, slope):
                    self._tangent(row, output, slope, epigraph)

    def _sharing(self, number: int, row: TableRow, y: int, slope: FloatArray) -> list[int]:
        """Return the outputs that a tangent is added to: all, of the first ones of like rows."""
        shared = self.shared.setdefault(number, set())
        key = slope.round(7).tobytes()
        if not row.alike or len(shared) >= _SHARED * max(map(len, row.shares.values())):
            return [y]
        if key in shared:
            return [y]  # it was not tight enough: a digit more
        shared.add(key)
        return list(self.outputs)

    def tighten(self, x: FloatArray, broken: Broken) -> bool:
        """Tighten the rows that hold in floats and not exactly; tell whether there are any.

        Parameters
        ----------
        x : ndarray
            A solution that breaks no row in floats.
        broken : mapping of str to ndarray of bool, shape (m,), or None
            The rows that it breaks exactly, and at which outputs.
        """
        u, before = self._masses(x), self.cuts
        filled = u.sum(axis=0) > 0
        for number, name in enumerate(self.names):
            if name not in broken:
                continue
            row = None if name == BUDGET else self.rows[number]
            if row is not None and (row.row.sense == "==" or row.forbids_all):
                continue
            if row is None or not row.row.per_output:
                self._tightened(number, -1, None)
                continue
            at = broken[name]
            outputs = np.flatnonzero(filled if at is None else filled & at)
            near = row.values(u[:, outputs], outputs) - row.bound[outputs]
            for y in outputs[near * self.total > -_NEAR - 2 * _TIGHTER].tolist():
                self._tightened(number, y, u)
        return self.cuts > before

    def _tightened(self, number: int, y: int, u: FloatArray | None) -> None:
        """Tighten a row by a millionth of a record, and twice as much each time again."""
        off = 2 * self.off.get((number, y), _TIGHTER / 2)
        self.off[number, y] = off
        self.cuts += 1
        if (number, y) in self.bounded:
            place, high = self.bounded[number, y]
            self.highs.solver.changeRowBounds(place, -self.highs.inf, high - off)
        elif u is not None:
            row, at = self.rows[number], np.array([y])
            slope = row.tangents(u[:, at], at)[:, 0]
            self._below(y, slope, row.bound[y] * self.total - off)

    # ---- moves that were left out --------------------------------------------------------

    def _priced(self) -> FloatArray:
        """Return the cost of every move less what the rows pay for it, of the last relaxation.

        The links of a move to its group are left out: they would pay no less.
        """
        prices, moves = self.highs.prices, self.moves
        of_objective = moves.costs if self.leaked is None else np.zeros(moves.costs.shape)
        reduced: FloatArray = of_objective - prices[: len(moves.pools), None]
        for y, stated in enumerate(self.of_output):
            paid = [(row, by_source) for row, by_source in stated if prices[row]]
            if paid:
                rows, coefficients = zip(*paid, strict=True)
                reduced[:, y] -= prices[list(rows)] @ np.array(coefficients)
        for row, costs in self.of_all:
            reduced -= prices[row] * costs
        return reduced

    def _open(self, chosen: Booleans) -> int:
        """Let moves in, and return how many there are."""
        if not chosen.any():
            return 0
        moves, before = self.moves, len(self.columns)
        s, y = moves.open(chosen)
        entries = [(np.arange(len(s)), s, np.ones(len(s)))]
        for output in np.unique(y).tolist():
            [mine] = np.nonzero(y == output)
            for row, by_source in self.of_output[output]:
                entries.append((mine, np.full(len(mine), row), by_source[s[mine]]))
        for row, costs in self.of_all:
            entries.append((np.arange(len(s)), np.full(len(s), row), costs[s, y]))
        column, row, value = (np.concatenate(part) for part in zip(*entries, strict=True))
        shape = len(s), int(self.highs.solver.getNumRow())
        table = sparse.coo_array((value, (column, row)), shape=shape)
        table.eliminate_zeros()
        cost = moves.cost[before:] if self.leaked is None else np.zeros(len(s))
        lower, upper = moves.lower[before:], moves.upper[before:]
        first = self.highs.add_columns(cost, lower, upper, table)
        self.columns = np.append(self.columns, first + np.arange(len(s)))
        if self.empty is not None:
            self._linked(np.arange(before, len(self.columns)))
        return len(s)

    def _worthwhile(self) -> int:
        """Let in moves that would lower the relaxation, some of each source; tell how many."""
        if self.moves.left_out is None or self.reduced is None:
            return 0
        worth = np.where(self.moves.left_out, self.reduced, 0.0)
        few = min(_AT_ONCE, worth.shape[1]) - 1
        most = np.partition(worth, few, axis=1)[:, [few]]
        return self._open((worth <= most) & (worth < -_CHEAPER))

    # ---- the rounds ----------------------------------------------------------------------

    def relax(self, watch: Watch, answer: Answer) -> FloatArray | None:
        """Solve the relaxation until no row is broken and no move is worth it.

        Returns
        -------
        ndarray, or None
            The columns of the solution, if it came to that and breaks no row.
        """
        before = -math.inf
        for number in range(_RELAXED):
            x, solved, bound = self.highs.solve(watch)
            if x is None or not solved:
                return None
            unpaid = x[self.slacks].sum() > _BROKEN
            if self.moves.left_out is not None:  # by prices, which are gone once a row is added
                self.reduced = self._priced()
            added = self.cut(x)
            if bound - before > _FLAT * abs(bound):
                added += self.steepen(x)
            before, worthwhile = bound, self._worthwhile()  # columns that x has not come last
            answer.rounds, answer.cuts = answer.rounds + 1, self.cuts
            self._tell(watch, f"round {number + 1}: relaxed, {bound:g}, {added} cuts")
            if not worthwhile:
                answer.claimed = max(answer.claimed, bound)
            if watch.stopped or (unpaid and not worthwhile):
                return None
            if not (added or worthwhile):
                return x
        self.reduced = None  # prices of what was still changing
        return None

    def run(self, watch: Watch, gap: float, judge: Judge, *, first: Places | None = None) -> Answer:
        """Return the best table: relaxations until nothing is cut, then whole numbers.

        Parameters
        ----------
        watch : Watch
        gap : float
            Of the cost, relatively; of what leaks also in its unit per record.
        judge : callable
            Which outputs of a table (n, m) break a criterion, decided exactly; None where all hold.
        first : ndarray of int, shape (n, m), optional
            A table that satisfies all.
        """
        answer = Answer(counts=first)
        try:
            self._run(watch, gap, judge, answer)
        except KeyboardInterrupt:
            watch.interrupted = True
        if max(self.off.values(), default=0.0) > _TIGHTEST:
            answer.claimed, answer.finished, answer.infeasible = -math.inf, False, False
        return answer

    def _run(self, watch: Watch, gap: float, judge: Judge, answer: Answer) -> None:
        shape = self.program.n, self.program.m
        best = math.inf if answer.counts is None else self.cost(answer.counts)
        if not watch.stopped:
            self.relax(watch, answer)
        coarse, slack = max(gap, _COARSE), 0.0 if self.leaked is None else gap * self.total
        for number in range(_ROUNDS):
            if watch.stopped:
                return
            x, solved, bound = self.highs.solve(watch, integral=True, gap=coarse, slack=slack)
            left_out = self.moves.left_out
            if self.highs.infeasible:
                if left_out is not None and self._open(left_out):
                    continue
                answer.infeasible = answer.counts is None
                return
            added, steeper = (0, 0) if x is None else (self.cut(x), self.steepen(x))
            answer.rounds, answer.cuts = answer.rounds + 1, self.cuts
            line = f"round {number + 1}: whole numbers, {bound:g} to {best:g}, {added} cuts"
            self._tell(watch, line)
            if not added and x is not None:
                counts = self.moves.table(x[self.columns], shape)
                if counts is None or not self._filled(counts):
                    _logger.debug("round %d: HiGHS's solution is no table", number + 1)
                    return
                broken, cost = judge(counts), self.cost(counts)
                if broken is not None:
                    if not self.tighten(x, broken):
                        return  # it would be the same again
                elif cost <= best:
                    best, answer.counts, self.highs.start = cost, counts, x
                if broken is None and solved:
                    near = best - bound <= max(coarse * abs(best), slack) + _NEAR
                    if not (near or steeper):
                        return  # HiGHS says that it is optimal, and is not
                    enough = best - bound <= max(gap * best, slack)
                    answer.finished = near and (coarse <= gap or enough)
                    if near:
                        coarse = gap if coarse / 100 < max(gap, _FINE) else coarse / 100
            if answer.finished and self._cheaper(best, answer.claimed):
                answer.finished = False  # some move that was left out may make a better table
            elif answer.finished or left_out is None:
                answer.claimed = max(answer.claimed, min(bound, best))
            if answer.finished or x is None:
                return
            if self.highs.broken_off and answer.counts is not None:
                return  # it would be broken off again

    def least_broken(self, watch: Watch) -> Places | None:
        """Return a table that breaks the rows of outputs by as few records as it can, about."""
        shape = self.program.n, self.program.m
        self.relax(watch, Answer())
        for _ in range(_RELAXED):
            x, _, _ = self.highs.solve(watch, integral=True, gap=_COARSE)
            if x is None or watch.stopped:
                return None
            if not self.cut(x):
                return self.moves.table(x[self.columns], shape)
        return None

    def nearest(self, counts: Places) -> Places:
        """Return the same table with moves of one cost to the nearest outputs."""
        if self.moves.apart is None or self.moves.stays is None or self.highs.start is None:
            return counts
        table = self.moves.table(self.highs.start[self.columns], counts.shape, nearest=True)
        return counts if table is None else table

    def _cheaper(self, best: float, relaxed: float) -> int:
        """Let in the moves that a table of less than ``best`` might make; tell how many."""
        if self.moves.left_out is None:
            return 0
        if self.reduced is None or relaxed == -math.inf:  # no prices: it might be any
            return self._open(self.moves.left_out)
        return self._open(self.moves.left_out & (self.reduced < best - relaxed - _CHEAPER))

    def _filled(self, counts: Places) -> bool:
        sizes = counts.sum(axis=0)
        return bool(((sizes == 0) | (sizes >= self.group)).all())

    def _tell(self, watch: Watch, line: str) -> None:
        line = f"{line}, {watch.seconds:.1f} s"
        _logger.debug("%s", line)
        if watch.verbose:
            print(line, file=sys.stderr)


def least_table(
    program: ChannelProgram,
    n: Places,
    home: Places,
    judge: Judge,
    *,
    group: int = 1,
    law: FloatArray | None = None,
    apart: FloatArray | None = None,
    first: Places | None = None,
    gap: float = 1e-6,
    watch: Watch | None = None,
) -> Answer:
    """Return whole counts of least cost under a program's rows.

    Parameters
    ----------
    program : ChannelProgram
        Least cost under rows and entry bounds, without auxiliaries; or least leakage, with a row
        ``BUDGET`` that bounds the cost.
    n : ndarray of int, shape (n,)
        Records of each letter.
    home : ndarray of int, shape (n,)
        The output that is a letter's own value, −1 for none.
    judge : callable
        Which outputs of a table (n, m) break a criterion, decided exactly; None where all hold.
    group : int
        The least size of a group that is not empty.
    law : ndarray, shape (n, m), optional
        p(x̂ | s) of the best channel: its moves are among the unknowns from the start.
    apart : ndarray, shape (n, m), optional
        How far letters and outputs are apart, where moves cost the same.
    first : ndarray of int, shape (n, m), optional
        A table that satisfies all.
    gap : float
        Of the cost, relatively.
    watch : Watch, optional
        The clock.
    """
    watch = Watch() if watch is None else watch
    costs, budget = distances(program), budgeted(program, n)
    together = np.zeros((program.n, program.m), np.int64)  # the cheapest table of one group
    together[:, int((n @ costs).argmin())] = n
    if first is None and judge(together) is None:
        first = together
    support = None if law is None else law > _MOVED
    unit = float(costs.max()) or 1.0  # HiGHS's tolerances are of costs as they are

    def all_moves() -> Moves:
        moves = every_move(program, n, home, support, apart)
        moves.cost, moves.costs = moves.cost / unit, moves.costs / unit
        return moves

    at_most = None if budget is None else budget / unit
    try:
        rounds = Rounds(program, all_moves(), group=group, budget=at_most)
        if law is not None:
            rounds.touch(law * program.mass[:, None])
    except KeyboardInterrupt:
        watch.interrupted = True
        return Answer(first)
    answer = rounds.run(watch, gap, judge, first=first)
    if answer.infeasible and not watch.stopped:
        elastic = Rounds(program, all_moves(), group=group, elastic=True, budget=at_most)
        answer.nearest = elastic.least_broken(watch)
    if budget is None:
        answer.claimed *= unit
    if answer.counts is not None and answer.counts is not first:
        answer.counts = rounds.nearest(answer.counts)
    return answer
