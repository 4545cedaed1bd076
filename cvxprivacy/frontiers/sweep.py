"""One frontier, or one for each of many problems: refined together, on the same workers.

The ends come first, then every gap whose band is still too wide.  Both ends are closed where a
closed form knows them: the least distortion of any release, no leakage at all, and from the other
side the tightest of the releases that are optimal without the constraint.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.exact import Real
from cvxprivacy.extras import pd
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frontiers.curve import (
    CONCAVE,
    CONVEX,
    MONOTONE,
    Breakpoint,
    Curve,
    Gap,
    Number,
    curve_of,
)
from cvxprivacy.frontiers.explore import Progress, explore
from cvxprivacy.frontiers.frontier import Frontier
from cvxprivacy.frontiers.many import labelled
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.point import breakpoint_of
from cvxprivacy.frontiers.stored import from_json, to_json
from cvxprivacy.frozen import Frozen
from cvxprivacy.text import above
from cvxprivacy.validation import integer, number, typed
from cvxprivacy_verifier.balls import decode

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "FEASIBILITY_END",
    "INACTIVE_END",
    "Refinement",
    "Sweep",
    "frontier",
    "solve_task",
    "sweep",
]

Between = tuple[Real | None, Real | None]


class Sweep(Frozen, Mapping[Hashable, Frontier]):
    """Frontiers by the labels of their problems, a mapping: see :func:`sweep`.

    Attributes
    ----------
    band : float
        The widest of their bands.
    complete : bool
        Whether each has the band that was asked.

    Examples
    --------
    What X tells of W in two regions, 1 − h(0.4) and 1 − h(0.2) bits, and the same once one letter
    in ten may change:

    >>> import cvxprivacy as cpv
    >>> regions = {"north": [[0.3, 0.2], [0.2, 0.3]], "south": [[0.4, 0.1], [0.1, 0.4]]}
    >>> problems = {
    ...     name: cpv.PrivacyDistortion(cpv.DiscreteSource(pmf), cpv.hamming(2), budget=0.1)
    ...     for name, pmf in regions.items()
    ... }
    >>> curves = cpv.sweep(problems, points=[0, 0.1])
    >>> {name: curve.inner([0, 0.1]).round(3).tolist() for name, curve in curves.items()}
    {'north': [0.029, 0.019], 'south': [0.278, 0.173]}
    >>> curves.to_frame()[["problem", "budget", "status"]]
      problem  budget     status
    0   north     0.0  certified
    1   north     0.1  certified
    2   south     0.0  certified
    3   south     0.1  certified
    """

    def __init__(self, frontiers: Mapping[Hashable, Frontier]) -> None:
        self._frontiers = dict(frontiers)

    def __getitem__(self, label: Hashable) -> Frontier:
        return self._frontiers[label]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._frontiers)

    def __len__(self) -> int:
        return len(self._frontiers)

    @property
    def band(self) -> float:
        """The widest band."""
        return max(curve.band for curve in self.values())

    @property
    def complete(self) -> bool:
        """Whether every frontier is."""
        return all(curve.complete for curve in self.values())

    def to_frame(self) -> pd.DataFrame:
        """Return all points as one pandas frame, the label in its first column.

        That is ``"problem"``, or ``"label"`` where the number that moves has that name.
        """
        frames = {label: curve.to_frame() for label, curve in self.items()}
        name = "label" if any("problem" in frame for frame in frames.values()) else "problem"
        for label, frame in frames.items():
            frame.insert(0, name, [label] * len(frame))
        return pd.concat(frames.values(), ignore_index=True)

    def plot(self, ax: Axes | None = None, *, per: tuple[float, float] = (1.0, 1.0)) -> Axes:
        """Draw the frontiers on one pair of axes, with a legend.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The current axes by default.
        per : (float, float)
            Units of the axes: abscissa and optimum are divided by these.
        """
        for label, curve in self.items():
            ax = curve.plot(ax, per=per, label=str(label))
        assert ax is not None
        ax.legend()
        return ax

    def __repr__(self) -> str:
        return f"Sweep({len(self)} frontiers, band {self.band:.2e})"

    def __str__(self) -> str:
        title = ", ".join(dict.fromkeys(curve.parameter for curve in self.values()))
        rows: list[tuple[str, ...]]
        rows = [("problem", title, "optimum", "band", "solves", "points")]
        rows += [(str(label), *_row(curve)) for label, curve in self.items()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)


def _row(curve: Frontier) -> tuple[str, ...]:
    """Return a curve in a line: where it begins and ends, its band and its points."""
    kinds = Counter(point.status for point in curve.points)
    points = ", ".join(f"{count} {status}" for status, count in kinds.items())
    solved = [point for point in curve.points if point.status != "infeasible"]
    ends = [solved[0], solved[-1]] if len(solved) > 1 else solved
    x = " to ".join(f"{float(point.x):.4g}" for point in ends)
    optimum = " to ".join(f"{point.upper:.4g}" for point in ends)
    return x, optimum, f"{curve.band:.1e}", str(curve.solves), points


def frontier(
    problem: Problem,
    parameter: str = "budget",
    *,
    between: Between | None = None,
    tol: float | None = None,
    points: Sequence[Real] | None = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = False,
    accuracy: str = "default",
    max_solves: int = 1000,
) -> Frontier:
    """Enclose an optimum as a function of one of its numbers, everywhere.

    A gap between two solved points is split, where their lines meet, until what is achieved
    and what is proved are within ``tol`` of each other; the number of points grows as 1/√tol (as
    1/tol where the optimum is only monotone).

    Parameters
    ----------
    problem : Problem
        Its own value of the parameter does not matter.
    parameter : str
        The name of a constraint: ``"budget"``, ``"max_rate"``, a criterion such as
        ``"leakage_cap"``, ``"maximal_leakage"`` or ``"t_closeness"``, one of several numbers of a
        criterion such as ``"local_privacy.delta"``; or a number that weighs a term of the
        objective and stands nowhere else, such as ``"price"``.
    between : (number, number), optional
        Where to begin and to end; None for an end that is to be found: the least number that is
        feasible, and the least from which on the constraint costs nothing.  A weight has neither,
        and is asked for both.
    tol : float, optional
        Band to reach, in the unit of the optimum; by default a thousandth of a nat, or of the
        span of the distortion that is minimised.
    points : sequence of number, optional
        Numbers to solve at, as they are typed (``Fraction(1, 3)`` is no float), in any case;
        without ``tol`` only these.
    n_jobs : int, optional
        Workers, as joblib counts them (−1: all cores).  None is 1, or what
        ``joblib.parallel_config`` says, whose backend is used: Dask and Ray serve clusters.
    checkpoint : path, optional
        Each solved point is appended to this file as it comes; if the file is there, its points
        are not solved again.  It holds the joint law: it is readable by its owner only.
    progress : bool or callable
        Write a line to standard error after each solve, or hand it to a function.
    accuracy : {"default", "high"}
        Of each solve, as of ``solve``.
    max_solves : int
        After so many the frontier is returned as it is, with a warning.

    Returns
    -------
    Frontier
        Also after an interrupt (Ctrl-C), with what is proved so far.

    Raises
    ------
    InfeasibleError
        If nothing is feasible.
    CertificationError
        If no release was found for an end of the curve, and it is not proved that there is none.
    InputError
        For a parameter that cannot move, or a checkpoint of another problem.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    >>> curve = cpv.frontier(problem, tol=1e-3)
    >>> curve.band <= 1e-3, round(curve.inner(0.2), 3)
    (True, 0.096)
    """
    search = _search(problem, parameter, between, tol, points, accuracy, max_solves)
    finished = explore([search], n_jobs=n_jobs, checkpoint=checkpoint, progress=progress)
    return _result(search, finished)


def sweep(
    problems: Mapping[Hashable, Problem] | Sequence[Problem],
    parameter: str = "budget",
    *,
    between: Between | None = None,
    tol: float | None = None,
    points: Sequence[Real] | None = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = False,
    accuracy: str = "default",
    max_solves: int = 1000,
) -> Sweep:
    """Enclose the frontiers of several problems: one for each hospital, or for each criterion.

    Every round solves what all of them want, on the same workers, with one checkpoint.

    Parameters
    ----------
    problems : mapping of label to Problem, or list of Problem
        Each has the parameter; otherwise they may differ in everything.  Those of a list are
        called by their places; without a number that moves :func:`solve_all` solves them.
    parameter : str
        The name of a constraint, as of :func:`frontier`.
    between : (number, number), optional
        Where each curve begins and ends; by default each finds its own ends.
    tol : float, optional
        Band that each is to reach, in the unit of its optimum; by default as of :func:`frontier`.
    points : sequence of number, optional
        Numbers to solve each at, in any case; without ``tol`` only these.
    n_jobs : int, optional
        Workers, as of :func:`frontier`; they serve all curves.
    checkpoint : path, optional
        One file of all solved points, as of :func:`frontier`.
    progress : bool or callable
        Whom to tell of each solve, as of :func:`frontier`: ``37/200, hospital-12, 4 s left``.
    accuracy : {"default", "high"}
        Of each solve, as of ``solve``.
    max_solves : int
        Per problem; after so many its frontier is returned as it is, with a warning.

    Returns
    -------
    Sweep
        A mapping of label to Frontier.

    Raises
    ------
    InfeasibleError
        If nothing is feasible in one of the problems, which the error names.
    InputError
        For anything but problems, and as of :func:`frontier`.

    Examples
    --------
    One curve for each rule.  No posterior probability may exceed e^0.3 · ½ = 0.675: at distortion
    0.1 no release keeps to that, and at 0.3 the best release does so by itself, 1 − h(0.38) bits:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rules = {"none": [], "every letter": [cpv.PointwiseMaximalLeakage(0.3)]}
    >>> problems = {
    ...     name: cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, criteria=criteria)
    ...     for name, criteria in rules.items()
    ... }
    >>> curves = cpv.sweep(problems, points=[0.1, 0.3])
    >>> {name: curve.inner([0.1, 0.3]).round(3).tolist() for name, curve in curves.items()}
    {'none': [0.173, 0.042], 'every letter': [inf, 0.042]}
    """
    problems = labelled(problems)
    searches = [
        _search(problem, parameter, between, tol, points, accuracy, max_solves)
        for problem in problems.values()
    ]
    finished = explore(
        searches,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        progress=progress,
        labels=list(problems),
    )
    curves = {}
    for label, search in zip(problems, searches, strict=True):
        try:
            curves[label] = _result(search, finished, f"of {label!r} ")
        except InfeasibleError as error:
            error.add_note(f"in the problem {label!r}")
            raise
    return Sweep(curves)


def _search(
    problem: Problem,
    parameter: str,
    between: Between | None,
    tol: float | None,
    points: Sequence[Real] | None,
    accuracy: str,
    max_solves: int,
) -> Refinement:
    """Return the search for a frontier, its arguments checked."""
    parametric = ParametricProblem(problem, parameter, accuracy)
    try:
        low, high = (None, None) if between is None else between
    except (TypeError, ValueError):
        remedy = "pass (lo, hi), None for a closed end"
        raise InputError("between", f"{between!r}", remedy, value=between) from None
    low, high = (
        None if x is None else _numbers([x], parametric, "between")[0] for x in (low, high)
    )
    if low is not None and high is not None and not low < high:
        raise InputError("between", f"{between!r}", "pass lo < hi", value=between)
    if tol is not None:
        tol = number(tol, "tol", zero=False)
    elif points is None:
        tol = 1e-3 * parametric.unit
    if parametric.axis.kind == CONCAVE and tol is not None and None in (low, high):
        problem_ = f"the weight {parameter!r} has no least and no greatest value of its own"
        raise InputError("between", problem_, "pass between=(lo, hi)", value=between)
    return Refinement(
        parametric,
        between=(low, high),
        points=[] if points is None else _numbers(points, parametric, "points"),
        tol=tol,
        max_solves=integer(max_solves, "max_solves", least=1),
    )


def _numbers(values: Any, problem: ParametricProblem, argument: str) -> list[Number]:
    """Return numbers at which the problem can be stated, in order."""
    if isinstance(values, Iterable) and not isinstance(values, str):
        values = list(values)
    if np.ndim(values) != 1:
        remedy = "pass a list of them, such as numpy.linspace(0, 1, 11)"
        raise InputError(argument, f"{values!r} is no list of numbers", remedy, value=values)
    numbers = {typed(x, argument, negative=True, where=i) for i, x in enumerate(values)}
    for x in numbers:
        problem.at(x)  # refuses what cannot be typed
    if not numbers:
        raise InputError(argument, "no number", "pass at least one")
    return sorted(numbers)


def _result(search: Refinement, finished: bool, whose: str = "") -> Frontier:
    """Return the frontier of a search; say so if it is not what was asked."""
    facts = {**search.problem.facts, **search.facts}
    curve = Frontier(facts, search.records.values(), search.program, search.problem)
    if finished and curve.points and curve.solved_range is None:
        loosest = curve.points[0 if search.problem.axis.falling else -1]
        if loosest.status == "infeasible":
            raise search.problem.infeasible(loosest.x, loosest._solution().certificate)
    if not search.complete:
        why = "interrupted"
        if finished:
            why = f"stopped after {search.solves} solves"
            why += "" if search.open_gaps() else ", with no stretch left to split"
        asked = "" if search.tol is None else f", asked was {search.tol:.2g}"
        message = f"{why}: the band {whose}is {curve.band:.2e}{asked}"
        warnings.warn(message, stacklevel=3)
    return curve


# ---- the ends -----------------------------------------------------------------------------


FEASIBILITY_END = "feasibility end"
INACTIVE_END = "inactive end"


def solve_task(problem: ParametricProblem, task: float | str) -> dict[str, Any]:
    """Solve at a number, as JSON has it, or at an end of the curve."""
    if task == FEASIBILITY_END:
        return _feasibility_end(problem)
    if task == INACTIVE_END:
        return _inactive_end(problem)
    return {"points": [problem.record(from_json(task))], "solves": 1}


def _feasibility_end(problem: ParametricProblem) -> dict[str, Any]:
    """Solve at the tightest number that is feasible; ``edge`` says below what none is, by proof."""
    if problem.axis.kind != CONVEX:
        primal = problem.revealing_nothing()
        record = problem.record(problem.tightest, primal)
        return {"points": [record], "solves": 1 if primal is None else 2}
    low, least, primal = problem.least_bound()
    remedy = f"pass between=(lo, hi) with lo above {above(least)}"
    try:
        record = problem.record(least, primal)
    except InputError as error:
        refused = f"the least {problem.parameter} is refused: {error}"
        raise InputError("between", refused, remedy) from None
    if decode(record["claim"]["upper"]) == math.inf:
        unbounded = f"the optimum has no bound towards {problem.parameter} {above(least)}"
        raise InputError("between", unbounded, remedy)
    edge = [to_json(low), least]
    return {"edge": edge, "points": [record], "solves": 1 if primal is None else 2}


def _inactive_end(problem: ParametricProblem) -> dict[str, Any]:
    """Solve without the constraint; return the point from which on it costs nothing."""
    optimum = problem.without_constraint()
    best, solves = optimum.primal, 1
    if problem.axis.kind != CONVEX:
        x = _tightest_allowing(problem, best)
    else:
        if (tighter := problem.tightest_optimum(optimum)) is not None:
            best, solves = tighter, 2
        x = problem.left_side(best)
    return {"points": [problem.record(x, best, optimum.dual)], "solves": solves}


def _tightest_allowing(problem: ParametricProblem, primal: Any) -> float:
    """Return the tightest number at which a release is allowed, to twelve digits."""
    refused, allowed = problem.tightest, problem.loosest
    if problem.allows(refused, primal):
        return refused
    while abs(allowed - refused) > 1e-12 * max(allowed, refused):
        x = _float_between(refused, allowed)
        if x in (refused, allowed):
            break
        refused, allowed = (refused, x) if problem.allows(x, primal) else (x, allowed)
    return allowed


def _float_between(a: float, b: float) -> float:
    """Return the float with as many floats below it, down to a ≥ 0, as above it, up to b ≥ 0.

    A bisection by it ends within 64 steps, also towards 0, which halving the distance reaches
    after a thousand.
    """
    one, other = (struct.unpack("<q", struct.pack("<d", abs(x)))[0] for x in (a, b))
    return float(struct.unpack("<d", struct.pack("<q", (one + other) // 2))[0])


# ---- where to solve next ------------------------------------------------------------------


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
        gaps = [g for g in self.curve.gaps if g.band > self.tol and g.split is not None]
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

    @property
    def share(self) -> float:
        """About how much is done: points grow as 1/√tol, or as 1/tol."""
        first = self._first()
        if self.tol is None:
            return 1.0 - len(first) / len(self.points)
        share = 0.0 if first else self.tol / max(self.curve.band, self.tol)
        return share if self.problem.axis.kind == MONOTONE else math.sqrt(share)

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
