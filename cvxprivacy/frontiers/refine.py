"""Where to solve next: the ends first, then every stretch whose band is still too wide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cvxprivacy.certificates.balls import decode
from cvxprivacy.frontiers.curve import Convex, Curve, Gap, Knot, Staircase
from cvxprivacy.frontiers.family import CONVEX, MONOTONE, Family, axes, knot

__all__ = ["Refinement"]

EDGE = 1e-3  # of the whole stretch: how closely an unknown edge of feasibility is searched


class Refinement:
    """The search for one frontier.

    A stretch is split or not by what is known of it alone, so that the points that are solved in
    the end are the same in whatever order they came.

    Parameters
    ----------
    worker : Family
    between : (float or None, float or None)
        Ends of the stretch; None for the closed ends of the curve.
    points : sequence of float
        Numbers to solve at, whatever the band.
    tol : float or None
        Band to reach; None solves at the points alone.
    max_solves : int
    """

    def __init__(
        self,
        worker: Family,
        *,
        between: tuple[float | None, float | None] = (None, None),
        points: Sequence[float] = (),
        tol: float | None,
        max_solves: int,
    ) -> None:
        self.worker, self.tol, self.max_solves = worker, tol, max_solves
        self.between, self.points = between, list(points)
        self.records: dict[float, dict[str, Any]] = {}
        self.knots: dict[float, Knot] = {}
        self._program = worker.problem.program.to_dict()
        self.done: set[Any] = set()
        self.solves = 0
        self._edge: tuple[float, float] | None = None  # of feasibility, as the tight end found it
        self._curve: Curve | None = None

    # ---- as a search ---------------------------------------------------------------------

    def wanted(self) -> list[Any]:
        if (first := self._first()) or self.tol is None:
            return first
        widest = sorted(self.open(), key=lambda gap: -gap.band)
        room = max(0, self.max_solves - self.solves)
        return [gap.middle for gap in widest][:room]

    def _first(self) -> list[Any]:
        """Return the points that were asked and the ends, as far as they are not solved."""
        asked: list[Any] = list(self.points)
        if self.tol is not None:
            low, high = self.between
            tight, loose = (high, low) if self.worker.falling else (low, high)
            asked += ["tight" if tight is None else tight, "loose" if loose is None else loose]
            if self.shut(tight) and not self.shut(loose) and self.worker.kind == CONVEX:
                asked.append("tight")
        return [task for task in dict.fromkeys(asked) if task not in self.done]

    def shut(self, x: float | None) -> bool:
        """Tell whether it is proved that nothing is feasible at x."""
        return x in self.knots and self.knots[x].infeasible

    def open(self) -> list[Gap]:
        """Return the stretches to split: too wide a band, or an edge of feasibility."""
        assert self.tol is not None
        curve = self.curve
        found = [gap for gap in curve.gaps() if gap.band > self.tol and gap.middle is not None]
        edge = self.edge
        if edge is not None and self.worker.kind != CONVEX:
            middle = edge[0] + (edge[1] - edge[0]) / 2
            wide = edge[1] - edge[0] > EDGE * (curve.places[-1] - curve.places[0])
            if wide and edge[0] < middle < edge[1]:
                found.append(Gap(*edge, math.inf, middle))
        return found

    def take(self, task: Any, result: dict[str, Any]) -> None:
        self.done.add(task)
        self.solves += result["solves"]
        if "edge" in result:
            low, high = decode(result["edge"][0]), result["edge"][1]
            self._edge = (low, high) if low < high else None
        for record in result["points"]:
            x = record["x"]
            self.records[x] = record
            self.knots[x] = knot(record, self._program, self.worker.parameter, self.worker.kind)
            self.done.add(x)
        self._curve = None

    def said(self) -> str:
        tol = "" if self.tol is None else f" of {self.tol:.2g}"
        return f"{self.worker.parameter}: {self.solves} solves, band {self.curve.band:.2e}{tol}"

    # ---- what is known -------------------------------------------------------------------

    @property
    def curve(self) -> Curve:
        if self._curve is None:
            worker = self.worker
            knots = list(self.knots.values())
            if worker.kind == MONOTONE:
                self._curve = Staircase(knots, worker.falling)
            else:
                self._curve = Convex(knots, *axes(worker.kind, worker.problem.units))
        return self._curve

    @property
    def edge(self) -> tuple[float, float] | None:
        """Where it is unknown whether anything is feasible: before the first point that is."""
        if self._edge is not None:
            return self._edge
        curve = self.curve
        stretch = curve.stretch()
        closed = [k.x for k in curve.knots if k.infeasible]
        if stretch is None or not closed:
            return None
        if self.worker.falling:
            return stretch[1], min(closed)
        return max(closed), stretch[0]

    @property
    def complete(self) -> bool:
        """Whether every point that was asked is solved, and the band as narrow as was asked."""
        if self._first():
            return False
        return self.tol is None or (bool(self.curve.stretch()) and self.curve.band <= self.tol)
