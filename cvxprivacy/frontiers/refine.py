"""Where to solve next: the ends first, then every gap whose band is still too wide."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cvxprivacy.frontiers.axis import CONVEX, Number
from cvxprivacy.frontiers.curve import Breakpoint, Curve, Gap, curve_of
from cvxprivacy.frontiers.ends import FEASIBILITY_END, INACTIVE_END, solve_task
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.point import breakpoint_of
from cvxprivacy.frontiers.stored import to_json
from cvxprivacy.verifier.balls import decode

__all__ = ["Refinement"]

EDGE = 1e-3  # of the whole range: how closely an unknown edge of feasibility is searched


class Refinement:
    """The search for one frontier.

    A gap is split or not by what is known of it alone, so that the points that are solved in the
    end are the same in whatever order they came.  ``between`` has None for an end of the curve;
    ``points`` are solved whatever the band; without ``tol`` nothing else is.
    """

    def __init__(
        self,
        problem: ParametricProblem,
        *,
        between: tuple[Number | None, Number | None] = (None, None),
        points: Sequence[Number] = (),
        tol: float | None,
        max_solves: int,
    ) -> None:
        self.problem, self.tol, self.max_solves = problem, tol, max_solves
        self.digest = problem.digest
        self.work: Callable[[Any], dict[str, Any]] = partial(solve_task, problem)
        self.points = list(points)
        self.tightest, self.loosest = between[:: -1 if problem.axis.falling else 1]
        self.program = problem.document()
        self.records: dict[Number, dict[str, Any]] = {}
        self.solves = 0
        self._breakpoints: dict[Number, Breakpoint] = {}
        self._done: set[Any] = set()
        self._edge: tuple[float, float] | None = None  # of feasibility, as its end found it
        self._curve: Curve | None = None

    # ---- as a search ---------------------------------------------------------------------

    def next_tasks(self) -> list[Any]:
        """Return the points asked for and the ends, then the middles of open gaps."""
        if (first := self._first()) or self.tol is None:
            return first
        widest = sorted(self.open_gaps(), key=lambda gap: -gap.band)
        room = max(0, self.max_solves - self.solves)
        return [gap.split for gap in widest][:room]

    def _first(self) -> list[Any]:
        """Return the points that were asked for and the ends, as far as they are not solved."""
        tasks: list[Any] = [to_json(x) for x in self.points]
        if self.tol is not None:
            ends = ((self.tightest, FEASIBILITY_END), (self.loosest, INACTIVE_END))
            tasks += [end if x is None else to_json(x) for x, end in ends]
            closed = self.problem.axis.kind == CONVEX and self.infeasible_at(self.tightest)
            if closed and not self.infeasible_at(self.loosest):
                tasks.append(FEASIBILITY_END)
        return [task for task in dict.fromkeys(tasks) if task not in self._done]

    def infeasible_at(self, x: Number | None) -> bool:
        """Tell whether it is proved that nothing is feasible at a solved x."""
        return x in self._breakpoints and self._breakpoints[x].infeasible

    def open_gaps(self) -> list[Gap]:
        """Return the gaps to split: too wide a band, or an edge of feasibility."""
        assert self.tol is not None
        gaps = [g for g in self.curve.gaps() if g.band > self.tol and g.split is not None]
        edge = self.edge
        if edge is not None and self.problem.axis.kind != CONVEX:
            low, high = edge
            split = float(low + (high - low) / 2)
            if high - low > EDGE * self.curve.width and low < split < high:
                gaps.append(Gap(math.inf, split))
        return gaps

    def take(self, task: Any, result: dict[str, Any]) -> None:
        """Take solved points, and what an end tells of where feasibility begins."""
        self.solves += result["solves"]
        if "edge" in result:
            low, high = decode(result["edge"][0]), result["edge"][1]
            self._edge = (low, high) if low < high else None
        for record in result["points"]:
            point = breakpoint_of(record, self.program, self.problem.axis)
            self.records[point.x], self._breakpoints[point.x] = record, point
            self._done.add(record["x"])
        self._done.add(task)
        self._curve = None

    def progress(self) -> str:
        """Return solves and band, in a line."""
        tol = "" if self.tol is None else f" of {self.tol:.2g}"
        return f"{self.problem.parameter}: {self.solves} solves, band {self.curve.band:.2e}{tol}"

    # ---- what is known -------------------------------------------------------------------

    @property
    def curve(self) -> Curve:
        """The curves that the points so far prove."""
        if self._curve is None:
            self._curve = curve_of(list(self._breakpoints.values()), self.problem.axis)
        return self._curve

    @property
    def edge(self) -> tuple[Number, Number] | None:
        """Where it is unknown whether anything is feasible: before the first point that is."""
        if self._edge is not None:
            return self._edge
        return self.curve.edge

    @property
    def complete(self) -> bool:
        """Whether every point asked for is solved, and the band as narrow as was asked."""
        if self._first():
            return False
        curve = self.curve
        return self.tol is None or (curve.solved_range is not None and curve.band <= self.tol)

    @property
    def facts(self) -> dict[str, Any]:
        """What a frontier says of its search."""
        edge = self.edge and [to_json(x) for x in self.edge]
        return {"tol": self.tol, "complete": self.complete, "solves": self.solves, "edge": edge}
