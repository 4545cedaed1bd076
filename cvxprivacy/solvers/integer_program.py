"""An integer program of HiGHS that grows by rows and columns, and that Ctrl-C ends."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.highs import quiet_highs
from cvxprivacy.solvers.watch import Watch

__all__ = ["IntegerProgram"]

_SAME = 1e-6  # relatively: what a solution's value and what HiGHS says of it may be apart


class IntegerProgram:
    """min ⟨c, x⟩ over rows and columns that are added one after the other.

    Attributes
    ----------
    costs : ndarray, shape (columns,)
    free : list of int
        Columns that are continuous always.
    start : ndarray or None
        A solution that the next search of whole numbers begins with.
    infeasible : bool
        Whether the last program has no solution, as HiGHS says.
    patience : float
        How often a search of whole numbers asks whether to go on, at each round of HiGHS's cuts.
    """

    def __init__(self) -> None:
        import highspy

        self._highs = highspy
        self.inf: float = highspy.kHighsInf
        self.solver = quiet_highs(
            primal_feasibility_tolerance=1e-9,
            mip_feasibility_tolerance=1e-9,
            threads=1,
        )
        self.free: list[int] = []
        self.costs: FloatArray = np.zeros(0)
        self.start: FloatArray | None = None
        self.infeasible = False
        self.patience = self._patient = math.inf
        self._stop = threading.Event()
        self.solver.setCallback(self._interrupt, None)
        for kind in ("kCallbackMipInterrupt", "kCallbackSimplexInterrupt"):
            self.solver.startCallback(getattr(highspy.cb.HighsCallbackType, kind))

    def add_columns(self, cost: FloatArray, lower: Any, upper: Any, entries: Any = None) -> int:
        """Add columns, and return the number of the first.

        Parameters
        ----------
        cost, lower, upper : ndarray, shape (columns,)
        entries : sparse array, shape (columns, rows), optional
            Their coefficients in the rows that there are.
        """
        first, count = int(self.solver.getNumCol()), len(cost)
        self.costs = np.append(self.costs, cost)
        starts, places, values = np.zeros(count, np.int32), np.zeros(0, np.int32), np.zeros(0)
        if entries is not None:
            table = entries.tocsr()
            starts, places, values = table.indptr[:-1], table.indices, table.data
        bounds = (np.broadcast_to(np.asarray(b, float), count).copy() for b in (lower, upper))
        self.solver.addCols(
            count, np.asarray(cost, float), *bounds, len(values),
            starts.astype(np.int32), places.astype(np.int32), np.asarray(values, float),
        )  # fmt: skip
        return first

    def add_rows(self, low: FloatArray, high: FloatArray, entries: Any) -> None:
        """Add rows.

        Parameters
        ----------
        low, high : ndarray, shape (rows,)
        entries : sparse array, shape (rows, columns)
            Their coefficients in the columns that there are.
        """
        table = entries.tocsr()
        starts, places = table.indptr[:-1].astype(np.int32), table.indices.astype(np.int32)
        self.solver.addRows(len(low), low, high, len(places), starts, places, table.data)

    def add_row(self, low: float, high: float, places: Any, values: Any) -> int:
        """Add a row, and return its number."""
        there = np.flatnonzero(values)
        at = np.asarray(places)[there].astype(np.int32)
        self.solver.addRow(low, high, len(there), at, np.asarray(values, float)[there])
        return int(self.solver.getNumRow()) - 1

    def solve(
        self, watch: Watch, *, integral: bool = False, gap: float = 0.0, slack: float = 0.0
    ) -> tuple[FloatArray | None, bool, float]:
        """Return the solution, if there is one, whether it is optimal, and the solver's bound.

        Optimal to a relative ``gap`` or an absolute ``slack``, of whole numbers.
        """
        kinds, states = self._highs.HighsVarType, self._highs.HighsModelStatus
        count = self.solver.getNumCol()
        kind = np.full(count, kinds.kInteger if integral else kinds.kContinuous)
        kind[self.free] = kinds.kContinuous
        self.solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kind)
        self.solver.setOptionValue("mip_rel_gap", gap)
        self.solver.setOptionValue("mip_abs_gap", slack)
        if integral:
            self.solver.clearSolver()  # a basis of the relaxation has made false optima of it
        if integral and self.start is not None:
            first = self._highs.HighsSolution()
            first.col_value = np.append(self.start, np.zeros(count - len(self.start))).tolist()
            self.solver.setSolution(first)
        self._patient = self.patience if integral else math.inf
        spent = 0.0 if integral else self.solver.getRunTime()  # simplex counts what was run before
        self.solver.setOptionValue("time_limit", spent + min(watch.left, 1e9))
        self._run(watch)
        status, info = self.solver.getModelStatus(), self.solver.getInfo()
        solved = status == states.kOptimal
        self.infeasible = status in (states.kInfeasible, states.kUnboundedOrInfeasible)
        bound = info.mip_dual_bound if integral else info.objective_function_value
        if info.primal_solution_status != 2:  # no feasible point
            return None, solved, float(bound) if integral or solved else -math.inf
        x = np.asarray(self.solver.getSolution().col_value)
        value, reported = float(self.costs @ x), info.objective_function_value
        if abs(value - reported) > _SAME * max(
            1.0, abs(value)
        ):  # it does not know its own solution
            return x, False, -math.inf
        return x, solved, float(bound) if integral or solved else -math.inf

    @property
    def broken_off(self) -> bool:
        """Whether the last search of whole numbers was at the end of its patience."""
        return self._patient < 0

    @property
    def prices(self) -> FloatArray:
        """The multipliers of the rows of the last program, which was of no whole numbers."""
        return np.asarray(self.solver.getSolution().row_dual)

    def _run(self, watch: Watch) -> None:
        """Run in a thread, so that Ctrl-C is heard, and what is best so far is kept."""
        self._stop.clear()
        done = threading.Event()  # an interrupted join takes a thread for ended

        def work() -> None:
            try:
                self.solver.run()
            finally:
                done.set()

        threading.Thread(target=work).start()
        while not done.is_set():
            try:
                done.wait(0.1)
            except KeyboardInterrupt:
                watch.interrupted = True
                self._stop.set()

    def _interrupt(self, *call: Any) -> None:
        self._patient -= 1
        if self._stop.is_set() or self._patient < 0:
            call[3].user_interrupt = True
