r"""A table of whole counts m(s, x̂) by outer approximation: integer programs and tangent scores.

.. math::
   \min ⟨d, m⟩ \quad\text{s.t.}\quad Σ_{\hat x} m(s, \hat x) = n(s), \quad m \text{ whole},
   \quad \text{the rows of a channel program at } m/N, \quad Σ_s m(s, \hat x) ∈ \{0\} ∪ [k, ∞).

Rows are the program's own.  One with leakage in it, ⟨C, J⟩ + Σ α F(J) ≤ b, is ⟨C + α s, J⟩ ≤ b
for every score s ∈ 𝒮 (P10): what a solution breaks is cut off by the score that is tight on the way
from it to the law at large, where the row begins to hold (Duran and Grossmann 1986).  First rounds
are of the continuous relaxation.  The integer programs are HiGHS's, and so is their bound.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxprivacy.exact import FloatArray, rational
from cvxprivacy.highs import quiet_highs
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.solvers.watch import Watch

__all__ = ["Answer", "Places", "least_table", "one_hamming"]

_logger = logging.getLogger("cvxprivacy.tables")
_NEAR = 1e-7  # records by which a row may be broken before it is cut: HiGHS is asked for 1e-9
_TIGHTER = 1e-6  # records by which a row is tightened that holds in floats and not exactly
_RELAXED = 60  # rounds of the relaxation at most
_ROUNDS = 400
_SHARED = 2  # tangents for each value of W that all outputs have
_HALVINGS = 40
_COARSE = 0.01  # the first gap of whole numbers
_FINE = 1e-6  # a gap below which nothing is gained by a coarser one
_ALL_ARCS = 100  # letters up to which every record may go everywhere
_TARGETS = 40  # cheapest ones of a letter, beyond

Places = npt.NDArray[np.int64]
Judge = Callable[[Places], npt.NDArray[np.bool_] | None]


@dataclass
class Answer:
    """What the rounds end with.

    Attributes
    ----------
    counts : ndarray of int, shape (n, m), or None
        The best table that every criterion holds of.
    claimed : float
        HiGHS's own lower bound of ⟨d, m⟩; −inf where it is of a part of all tables.
    finished : bool
        Whether the last program was solved to the gap that was asked for.
    infeasible : bool
        Whether HiGHS says that there is no table.
    rounds, cuts : int
        Programs that were solved, and rows that were added.
    """

    counts: Places | None = None
    claimed: float = -math.inf
    finished: bool = False
    infeasible: bool = False
    rounds: int = 0
    cuts: int = 0


@dataclass
class _Columns:
    """The unknowns: records of a letter that go to an output, or that arrive there from anywhere.

    ``pool`` numbers the sums that are kept: of a letter's records, or of all those that differ in
    nothing that a row sees.
    """

    letter: Places
    output: Places
    cost: FloatArray
    upper: FloatArray
    lower: FloatArray
    pool: Places
    pools: FloatArray
    stays: int | None = None  # the first columns, of letters that stay, where others arrive
    arcs: bool = False  # whether some are left out


# ---- the unknowns ------------------------------------------------------------------------


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
    costs = program.cost(program.objectives[""])
    if costs[stay].any() or (costs[~stay] != costs.max()).any() or costs.max() <= 0:
        return None
    if program.floor is not None and program.floor[~stay].any():
        return None
    tables = [np.zeros((program.n, 1))]
    for row in program.constraints.values():
        tables.append(np.asarray(program.cost(row.expression)))
        tables += [_shares(program, view).T for view in row.expression.weights]
    together = np.concatenate(tables, axis=1)
    return np.unique(together, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def _columns(
    program: ChannelProgram, n: Places, home: Places, support: npt.NDArray[np.bool_] | None
) -> _Columns:
    costs = program.cost(program.objectives[""])
    least = _records(program.lower, n, math.ceil, costs.shape, 0)
    most = _records(program.upper, n, math.floor, costs.shape, 1)
    pool = one_hamming(program, home)
    if pool is not None:
        first = np.unique(pool, return_index=True)[1]
        size = np.bincount(pool, n).astype(float)
        letter = np.concatenate([np.arange(program.n), np.repeat(first, program.m)])
        output = np.concatenate([home, np.tile(np.arange(program.m), len(first))])
        moved = np.full(len(first) * program.m, costs.max())
        return _Columns(
            letter, output,
            cost=np.concatenate([np.zeros(program.n), moved]),
            upper=np.concatenate([n, np.repeat(size, program.m)]).astype(float),
            lower=np.concatenate([least[np.arange(program.n), home], np.zeros(len(moved))]),
            pool=np.concatenate([pool, np.repeat(np.arange(len(first)), program.m)]),
            pools=size, stays=program.n,
        )  # fmt: skip
    open_ = np.ones(costs.shape, bool)
    if program.m > _ALL_ARCS:
        rank = np.argsort(np.argsort(costs, axis=1, kind="stable"), axis=1, kind="stable")
        open_ = (rank < _TARGETS) | (least > 0)
        open_ = open_ if support is None else open_ | support
    left_out = not open_.all()
    letter, output = np.nonzero(open_ & (most > 0))
    at = letter, output
    sizes = n.astype(float)
    return _Columns(*at, costs[at], most[at], least[at], letter, sizes, arcs=left_out)


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


def _table(columns: _Columns, x: FloatArray, shape: tuple[int, int]) -> Places | None:
    """Return whole m(s, x̂) of a solution: those that leave go to those that arrive, in order.

    None for what is not within the bounds of all columns, or leaves other sums of pools.
    """
    exact = np.rint(x[: len(columns.letter)])
    if not ((columns.lower <= exact) & (exact <= columns.upper)).all():
        return None
    x = exact.astype(np.int64)
    if (np.bincount(columns.pool, x, len(columns.pools)) != columns.pools).any():
        return None
    counts = np.zeros(shape, np.int64)
    if columns.stays is None:
        counts[columns.letter, columns.output] = x
        return counts
    stay, home = x[: columns.stays], columns.output[: columns.stays]
    for pool in range(len(columns.pools)):
        letters = np.flatnonzero(columns.pool[: columns.stays] == pool)
        mine = np.flatnonzero(columns.pool[columns.stays :] == pool) + columns.stays
        arrive = x[mine].copy()
        leave = columns.upper[letters].astype(np.int64) - stay[letters]
        back = np.minimum(leave, arrive[home[letters]])  # who leaves and comes back has not moved
        leave -= back
        np.subtract.at(arrive, home[letters], back)
        counts[letters, home[letters]] = columns.upper[letters].astype(np.int64) - leave
        ends, starts = np.cumsum(leave), np.cumsum(arrive)
        marks = np.unique(np.concatenate([[0], ends, starts]))
        for low, high in zip(marks[:-1].tolist(), marks[1:].tolist(), strict=True):
            s, y = np.searchsorted(ends, low, "right"), np.searchsorted(starts, low, "right")
            counts[letters[s], y] += high - low
    return counts


# ---- rows --------------------------------------------------------------------------------


def _shares(program: ChannelProgram, view: str) -> FloatArray:
    """Return p(v | s), shape (|V|, n)."""
    shares: FloatArray = program.view_matrix(view).toarray() / program.mass
    return shares


class _Row:
    """A constraint of the program: its value at the letters' masses u(s, x̂), and its tangents."""

    def __init__(self, program: ChannelProgram, row: Constraint) -> None:
        self.row, self.program = row, program
        self.cost = np.asarray(program.cost(row.expression))
        self.weights = row.expression.columns(program.m)
        self.shares = {view: _shares(program, view) for view in self.weights}
        self.bound = np.broadcast_to(row.bounds(program.m), program.m)
        self.constant = float(row.expression.constant)
        numbers = [self.cost, self.bound, *self.weights.values()]
        self.alike = all((each == each[..., :1]).all() for each in numbers)  # of all outputs

    def values(self, u: FloatArray, outputs: Places) -> FloatArray:
        """Return what each of some outputs contributes, u of shape (n, outputs)."""
        value: FloatArray = (self.cost[:, outputs] * u).sum(axis=0)
        for view, weight in self.weights.items():
            measure, reference = self.program.views[view].measure, self.program.reference(view)
            leaked = measure.value(self.shares[view] @ u, reference) * self.program.unit(view)
            value = value + weight[outputs] * leaked
        return value

    def tangents(self, u: FloatArray, outputs: Places) -> FloatArray:
        """Return coefficients (n, outputs) of rows ≤ the row itself that are equal to it at u."""
        slope = self.cost[:, outputs].copy()
        for view, weight in self.weights.items():
            measure, reference = self.program.views[view].measure, self.program.reference(view)
            scores = measure.scores(self.shares[view] @ u, reference)
            unit = weight[outputs] * self.program.unit(view)
            slope += unit * (self.shares[view].T @ measure.inside(scores, reference))
        return slope

    def edge(self, u: FloatArray, outputs: Places) -> FloatArray:
        """Return where the row begins to hold between u and as much mass of the law at large."""
        law = self.program.mass[:, None] * u.sum(axis=0)
        low, high, bound = np.zeros(len(outputs)), np.ones(len(outputs)), self.bound[outputs]
        for _ in range(_HALVINGS):
            half = (low + high) / 2
            holds = self.values(law + half * (u - law), outputs) <= bound
            low, high = np.where(holds, half, low), np.where(holds, high, half)
        return law + np.maximum(high, 1e-3) * (u - law)

    def independent(self) -> Iterator[FloatArray]:
        """Yield what is 0 where J = π q, by letters (n,): of a row that allows nothing else."""
        [view] = self.weights
        shares, reference = self.shares[view], self.program.reference(view)
        for share, prior in zip(shares[:-1], reference[:-1].tolist(), strict=True):
            yield share - prior * shares.sum(axis=0)

    @property
    def forbids_all(self) -> bool:
        """Whether nothing but independence satisfies it: a divergence of at most 0."""
        if len(self.weights) != 1 or self.cost.any() or not self.row.per_output:
            return False
        [view] = self.weights
        return self.program.views[view].measure.divergence and not self.bound.any()


# ---- HiGHS -------------------------------------------------------------------------------


class _Highs:
    """An integer program that grows by rows."""

    def __init__(self, columns: _Columns, outputs: int, group: int, total: int) -> None:
        import highspy

        self.highs, self.columns = highspy, columns
        self.solver = quiet_highs(
            primal_feasibility_tolerance=1e-9,
            mip_feasibility_tolerance=1e-9,
            mip_abs_gap=0.0,
            threads=1,
        )
        self.free: Places = np.zeros(0, np.int64)  # columns that are continuous always
        self.start: FloatArray | None = None  # a solution to go on from
        self.none = False  # whether there is none, as HiGHS says
        self.size, self.outputs, self.inf = len(columns.letter), outputs, highspy.kHighsInf
        self.by_output = [np.flatnonzero(columns.output == y) for y in range(outputs)]
        self._stop = threading.Event()
        self.solver.setCallback(self._interrupt, None)
        self.solver.startCallback(highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
        self.add_columns(columns.cost, columns.lower, columns.upper)
        place = np.argsort(columns.pool, kind="stable")
        for pool, on in enumerate(np.split(place, np.cumsum(np.bincount(columns.pool))[:-1])):
            size = columns.pools[pool]
            self.add_row(size, size, on, np.ones(len(on)))
        if group > 1:
            self._grouped(group, total)

    def _grouped(self, group: int, total: int) -> None:
        """State that an output has no records or as many as ``group``, by a binary z(x̂)."""
        columns = self.columns
        first = self.add_columns(
            np.zeros(self.outputs), np.zeros(self.outputs), np.ones(self.outputs)
        )
        for y, on in enumerate(self.by_output):
            z, ones = first + y, np.ones(len(on))
            self.add_row(0.0, self.inf, np.append(on, z), np.append(ones, -float(group)))
            self.add_row(-self.inf, 0.0, np.append(on, z), np.append(ones, -float(total)))
            for column in on[columns.upper[on] > 0].tolist():
                links = np.array([column, z]), np.array([1.0, -columns.upper[column]])
                self.add_row(-self.inf, 0.0, *links)

    def add_columns(self, cost: FloatArray, lower: FloatArray, upper: FloatArray) -> int:
        """Add columns, and return the number of the first."""
        first, count = self.solver.getNumCol(), len(cost)
        none = np.zeros(0)
        starts, places = np.zeros(count, np.int32), np.zeros(0, np.int32)
        self.solver.addCols(count, cost, lower, upper, 0, starts, places, none)
        return int(first)

    def add_row(self, low: float, high: float, places: Any, values: Any) -> int:
        """Add a row, and return its number."""
        there = np.flatnonzero(values)
        at = np.asarray(places)[there].astype(np.int32)
        self.solver.addRow(low, high, len(there), at, np.asarray(values, float)[there])
        return int(self.solver.getNumRow()) - 1

    def solve(self, watch: Watch, *, whole_numbers: bool, gap: float) -> tuple[Any, bool, float]:
        """Return the solution, if there is one, whether it is optimal, and the solver's bound."""
        kinds = self.highs.HighsVarType
        count = self.solver.getNumCol()
        kind = np.full(count, kinds.kInteger if whole_numbers else kinds.kContinuous)
        kind[self.free] = kinds.kContinuous
        self.solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kind)
        self.solver.setOptionValue("mip_rel_gap", gap)
        if whole_numbers and self.start is not None:
            first = self.highs.HighsSolution()
            first.col_value = self.start.tolist()
            self.solver.setSolution(first)
        self.solver.setOptionValue("time_limit", self.solver.getRunTime() + min(watch.left, 1e9))
        self._run(watch)
        status, info = self.solver.getModelStatus(), self.solver.getInfo()
        solved = status == self.highs.HighsModelStatus.kOptimal
        self.none = status in (
            self.highs.HighsModelStatus.kInfeasible,
            self.highs.HighsModelStatus.kUnboundedOrInfeasible,
        )
        bound = info.mip_dual_bound if whole_numbers else info.objective_function_value
        there = info.primal_solution_status == 2  # a feasible point
        x = np.asarray(self.solver.getSolution().col_value) if there else None
        return x, solved, float(bound) if whole_numbers or solved else -math.inf

    def _run(self, watch: Watch) -> None:
        """Run in a thread, so that Ctrl-C is heard, and what is best so far is kept."""
        self._stop.clear()
        thread = threading.Thread(target=self.solver.run)
        thread.start()
        while thread.is_alive():
            try:
                thread.join(0.1)
            except KeyboardInterrupt:
                watch.interrupted = True
                self._stop.set()

    def _interrupt(self, *call: Any) -> None:
        if self._stop.is_set():
            call[3].user_interrupt = True


# ---- the rounds --------------------------------------------------------------------------


class _Rounds:
    """Programs solved one after the other, each with the rows that the last solution broke."""

    def __init__(
        self, program: ChannelProgram, n: Places, columns: _Columns, group: int, judge: Judge
    ) -> None:
        self.program, self.n, self.columns, self.judge = program, n, columns, judge
        self.total, self.group = int(n.sum()), group
        self.highs = _Highs(columns, program.m, group, self.total)
        self.costs = program.cost(program.objectives[""])
        self.rows = [_Row(program, row) for row in program.constraints.values()]
        self.epigraphs: dict[int, int] = {}  # first columns of t(x̂) ≥ N α F, by number of the row
        self.bounded: dict[tuple[int, int], int] = {}  # HiGHS's rows, by row and output
        self.shared: dict[int, set[bytes]] = {}  # tangents that all outputs have, by row
        self.cuts = 0
        for number, row in enumerate(self.rows):
            self._state(number, row)

    def _state(self, number: int, row: _Row) -> None:
        """State a linear row, the rows of independence, or the sum of an epigraph."""
        letter, highs = self.columns.letter, self.highs
        exact = row.row.sense == "=="
        if row.row.per_output and not row.weights:
            for y, on in enumerate(highs.by_output):
                high = row.bound[y] * self.total
                place = highs.add_row(
                    high if exact else -highs.inf, high, on, row.cost[letter[on], y]
                )
                self.bounded[number, y] = place
        elif row.forbids_all:
            for direction in row.independent():
                for on in highs.by_output:
                    highs.add_row(0.0, 0.0, on, direction[letter[on]])
        elif not row.row.per_output:
            high = (row.bound[0] - row.constant) * self.total
            places, values = np.arange(highs.size), row.cost[letter, self.columns.output]
            if row.weights:
                m = self.program.m
                free = np.full(m, highs.inf)
                first = highs.add_columns(np.zeros(m), -free, free)
                self.epigraphs[number], more = first, first + np.arange(m)
                highs.free = np.concatenate([highs.free, more])
                places, values = np.append(places, more), np.append(values, np.ones(m))
            place = highs.add_row(high if exact else -highs.inf, high, places, values)
            self.bounded[number, -1] = place

    def _masses(self, x: FloatArray) -> FloatArray:
        """Return u(s, x̂), shape (n, m), as rows see it."""
        columns = self.columns
        entries = x[: len(columns.letter)] / self.total, (columns.letter, columns.output)
        dense: FloatArray = sparse.coo_array(
            entries, shape=(self.program.n, self.program.m)
        ).toarray()
        return dense

    def cut(self, x: FloatArray) -> int:
        """Add the tangent of each row that a solution breaks, and return how many there are."""
        u, added = self._masses(x), 0
        filled = np.flatnonzero(u.sum(axis=0) > 0)
        for number, row in enumerate(self.rows):
            if not row.weights or row.forbids_all:
                continue
            values = row.values(u[:, filled], filled)
            epigraph = self.epigraphs.get(number)
            if epigraph is None:
                over = values - row.bound[filled]
            else:  # t(x̂) has the leakage alone
                spent = (row.cost[:, filled] * u[:, filled]).sum(axis=0)
                over = values - spent - x[epigraph + filled] / self.total
            broken = filled[over * self.total > _NEAR]
            if not len(broken):
                continue
            if epigraph is None:
                slopes = row.tangents(row.edge(u[:, broken], broken), broken)
            else:
                near = u[:, broken] + 1e-9 * self.program.mass[:, None] * u[:, broken].sum(axis=0)
                slopes = row.tangents(near, broken) - row.cost[:, broken]
            for y, slope in zip(broken.tolist(), slopes.T, strict=True):
                for output in self._sharing(number, row, y, slope):
                    self._add(output, slope, row.bound[y], epigraph)
                    added += 1
        self.cuts += added
        return added

    def _sharing(self, number: int, row: _Row, y: int, slope: FloatArray) -> list[int]:
        """Return the outputs that a tangent is added to: all, of the first ones of like rows."""
        shared = self.shared.setdefault(number, set())
        key = slope.round(7).tobytes()
        if not row.alike or len(shared) >= _SHARED * max(map(len, row.shares.values())):
            return [y]
        if key in shared:
            return [y]  # it was not tight enough: a digit more
        shared.add(key)
        return list(range(self.program.m))

    def _add(self, y: int, slope: FloatArray, bound: float, epigraph: int | None) -> None:
        on = self.highs.by_output[y]
        places, values = on, slope[self.columns.letter[on]]
        if epigraph is not None:
            bound = 0.0
            places, values = np.append(on, epigraph + y), np.append(values, -1.0)
        self.highs.add_row(-self.highs.inf, bound * self.total, places, values)

    def tighten(self, x: FloatArray, broken: npt.NDArray[np.bool_] | None) -> None:
        """Tighten the rows that hold in floats and not exactly, at the groups that break them."""
        u = self._masses(x)
        outputs = np.arange(self.program.m) if broken is None else np.flatnonzero(broken)
        outputs = outputs[u.sum(axis=0)[outputs] > 0]
        for number, row in enumerate(self.rows):
            if row.row.sense == "==":
                continue
            if not row.row.per_output:
                place = self.bounded[number, -1]
                high = (row.bound[0] - row.constant) * self.total - _TIGHTER
                self.highs.solver.changeRowBounds(place, -self.highs.inf, high)
                continue
            near = row.values(u[:, outputs], outputs) - row.bound[outputs]
            for y in outputs[near * self.total > -_TIGHTER].tolist():
                high = row.bound[y] * self.total - _TIGHTER
                if (number, y) in self.bounded:
                    place = self.bounded[number, y]
                    self.highs.solver.changeRowBounds(place, -self.highs.inf, high)
                elif not row.forbids_all:
                    at = np.array([y])
                    slope = row.tangents(u[:, at], at)[:, 0]
                    self._add(y, slope, high / self.total, None)
        self.cuts += 1

    def run(self, watch: Watch, gap: float) -> Answer:
        """Return the best table: relaxations until nothing is cut, then whole numbers."""
        answer, relaxed, coarse = Answer(), True, max(gap, _COARSE)
        best = self._constant(answer)
        for number in range(_ROUNDS):
            x, solved, bound = self.highs.solve(watch, whole_numbers=not relaxed, gap=coarse)
            if self.highs.none:
                answer.infeasible = answer.counts is None
                return answer
            added = 0 if x is None else self.cut(x)
            answer.rounds, answer.cuts = number + 1, self.cuts
            kind = "relaxed" if relaxed else "whole numbers"
            line = (
                f"round {number + 1}: {kind}, bound {bound:g}, {added} cuts, {watch.seconds:.1f} s"
            )
            _logger.debug("%s", line)
            if watch.verbose:
                print(line, file=sys.stderr)
            if relaxed:
                relaxed = bool(added) and number < _RELAXED
            elif not added and x is not None:
                counts = _table(self.columns, x, (self.program.n, self.program.m))
                if counts is None or not self._grouped(counts):
                    _logger.debug("round %d: HiGHS's solution is no table", number + 1)
                    return answer
                broken, cost = self.judge(counts), float((self.costs * counts).sum())
                if broken is not None:
                    self.tighten(x, broken if broken.any() else None)
                elif cost <= best:
                    best, answer.counts = cost, counts
                    self.highs.start = x
                if broken is None and solved:
                    answer.finished = (
                        coarse <= gap or best - max(answer.claimed, bound) <= gap * best
                    )
                    coarse = gap if coarse / 100 < max(gap, _FINE) else coarse / 100
            answer.claimed = max(answer.claimed, bound)
            if answer.finished or watch.stopped:
                return answer
        return answer

    def _grouped(self, counts: Places) -> bool:
        sizes = counts.sum(axis=0)
        return bool(((sizes == 0) | (sizes >= self.group)).all())

    def _constant(self, answer: Answer) -> float:
        """Take the cheapest table of one group, if it satisfies all, and return its cost."""
        costs = self.n @ self.costs
        counts = np.zeros((self.program.n, self.program.m), np.int64)
        counts[:, int(costs.argmin())] = self.n
        if self.judge(counts) is not None:
            return math.inf
        answer.counts = counts
        return float(costs.min())


def least_table(
    program: ChannelProgram,
    n: Places,
    home: Places,
    judge: Judge,
    *,
    group: int = 1,
    support: npt.NDArray[np.bool_] | None = None,
    gap: float = 1e-6,
    watch: Watch | None = None,
) -> Answer:
    """Return whole counts of least cost under a program's rows.

    Parameters
    ----------
    program : ChannelProgram
        Least cost under rows and entry bounds, without auxiliaries.
    n : ndarray of int, shape (n,)
        Records of each letter.
    home : ndarray of int, shape (n,)
        The output that is a letter's own value, −1 for none.
    judge : callable
        Which outputs of a table (n, m) break a criterion, decided exactly; None where all hold.
    group : int
        The least size of a group that is not empty.
    support : ndarray of bool, shape (n, m), optional
        Entries that are among the unknowns in any case, where these are not all.
    gap : float
        Of the cost, relatively.
    watch : Watch, optional
        The clock.
    """
    watch = Watch() if watch is None else watch
    columns = _columns(program, n, home, support)
    answer = _Rounds(program, n, columns, group, judge).run(watch, gap)
    if columns.arcs:  # a bound, and a refusal, of some moves alone
        answer.claimed, answer.infeasible = -math.inf, False
    return answer
