"""A problem of which one number is free: what is solved at each value of it, and how.

Everything here runs in a worker, and returns what JSON can hold.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, cast

from flint import arb

from cvxprivacy.certificates.balls import ceil, decode, floor
from cvxprivacy.errors import InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.covariance import CovarianceProblem
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frontiers.curve import Interval, Knot
from cvxprivacy.frontiers.mixing import offer
from cvxprivacy.model.information import nat
from cvxprivacy.programs import Row
from cvxprivacy.proving.certificate import Ends
from cvxprivacy.proving.stored import restored
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import Outcome, checked

__all__ = ["CONVEX", "EXPONENTIAL", "MONOTONE", "Family", "axes", "digest", "knot", "written"]

CONVEX = "convex"
EXPONENTIAL = "convex in exp"
MONOTONE = "monotone"

_kept = threading.local()  # a worker's conic models, by family: some backends work in threads
_MODELS = 4


class Family:
    """A problem, and the name of the number that moves.

    Attributes
    ----------
    kind : {"convex", "convex in exp", "monotone"}
        The optimum is convex in the number, a right-hand side; or in its exponential, which is
        one; or only monotone in it.
    falling : bool
        Whether a greater number is the tighter one.
    digest : str
        SHA-256 of all that does not move.
    """

    def __init__(self, problem: Problem, parameter: str, accuracy: str = "default") -> None:
        if not isinstance(problem, Problem):
            remedy = "pass a problem such as PrivacyDistortion(...)"
            raise InputError("problem", f"a {type(problem).__name__}", remedy)
        if not isinstance(problem, ChannelProblem | CovarianceProblem):
            said = f"a {type(problem).__name__} has a closed form and no curve"
            raise InputError("problem", said, "pass its channel_problem()")
        self.options = checked("auto", "CLARABEL", accuracy, None)
        self.problem = cast(Any, problem.at())  # as it was made, without a solver's model
        self.parameter, self.accuracy = parameter, accuracy
        self.falling = False
        program = self.problem.program
        if getattr(self.problem, "cut", False):
            problem_ = f"only {self.problem.m:,} of its strategies are listed"
            remedy = "raise most_strategies: a cut list proves nothing from below"
            raise InputError("problem", problem_, remedy)
        row = program.rows.get(parameter)
        if row is not None and row.bound_slope < 0:
            remedy = "move max_leakage = H(W) − E instead"
            raise InputError("parameter", f"{parameter!r} is a least value", remedy)
        auxiliary = getattr(program, "auxiliaries", {}).get(parameter)
        if row is not None and row.sense == "<=" and not row.per_output:
            self.kind = CONVEX
            own = float(row.bounds(1))
            frame = self._frame(own)
            if frame["off by"] != "0" or frame != self._frame(own / 2 if own else 1.0):
                remedy = "use a number that is the bound of one constraint"
                raise InputError("parameter", f"{parameter!r} moves more than a bound", remedy)
        else:
            criteria = problem.named_criteria() if isinstance(problem, ChannelProblem) else {}
            typed = criteria.get(parameter)
            if typed is None or typed.loosest is None:
                said = ", ".join(self._names(program.rows, criteria)) or "none"
                remedy = f"use one of {said}"
                raise InputError("parameter", f"{parameter!r} cannot move", remedy)
            maximum = auxiliary is not None and auxiliary.kind == "maximum"
            self.kind = EXPONENTIAL if maximum else MONOTONE
            self.loosest = float(typed.at(1.0).loosest or 0.0)
            self.falling = self.loosest <= 1.0
            frame = self._frame(self.loosest)
        self.digest = digest([parameter, accuracy, frame])

    @staticmethod
    def _names(rows: Mapping[str, Row], criteria: Mapping[str, Any]) -> list[str]:
        found = [k for k, row in rows.items() if row.sense == "<=" and not row.per_output]
        return [*found, *(k for k, c in criteria.items() if c.loosest is not None)]

    def _frame(self, x: float) -> dict[str, Any]:
        """Return the program at x without the right-hand side itself."""
        frame: dict[str, Any] = self.at(x).program.to_dict()
        if self.kind != MONOTONE:
            part = "rows" if self.kind == CONVEX else "auxiliaries"
            bound = frame[part][self.parameter].pop("bound")
            if self.kind == CONVEX:
                frame["off by"] = str(Fraction(bound) - Fraction(x))
        return frame

    def at(self, x: float) -> Any:
        """Return the problem at x."""
        return self.problem.at(**{self.parameter: x})

    # ---- solving -------------------------------------------------------------------------

    def work(self, task: Any) -> dict[str, Any]:
        """Solve at a number, or at the ``"tight"`` or ``"loose"`` end of the curve."""
        from cvxprivacy.frontiers import ends

        if task in ("tight", "loose"):
            return ends.tight(self) if task == "tight" else ends.loose(self)
        return {"points": [self.record(float(task))], "solves": 1}

    def certificate(self, x: float, primal: Any = None, dual: Any = None) -> Outcome:
        """Solve at x, unless what is offered is proved to be optimal."""
        problem = self.at(x)
        ends = Ends(problem.program, self.accuracy)
        offer(ends, primal, dual)
        if ends.status == "certified":
            return Outcome(ends.certificate())
        kept = self.kind == CONVEX and isinstance(problem, ChannelProblem)
        model = self._model(problem) if kept else None
        outcome: Outcome = problem._outcome({**self.options, "verbose": False}, model=model)
        found = outcome.certificate
        if primal is None or found.status in ("certified", "infeasible"):
            return outcome
        offer(ends, found.primal, found.dual)
        return replace(outcome, certificate=ends.certificate())

    def _model(self, problem: ChannelProblem) -> Any:
        """Return the family's conic model with the bounds of ``problem``, stated once a worker."""
        models: dict[str, Any] = _kept.__dict__
        if self.digest not in models:
            while len(models) >= _MODELS:
                models.pop(next(iter(models)))
            models[self.digest] = problem.model
        model = models[self.digest]
        model.set_bounds(problem.program.rows)
        return model

    def record(self, x: float, primal: Any = None, dual: Any = None) -> dict[str, Any]:
        """Return all that is known at x, as JSON can hold it."""
        outcome = self.certificate(x, primal, dual)
        certificate = outcome.certificate
        price = self.at(x)._solution(outcome).prices.get(self.parameter)
        return {
            "x": x,
            "price": None if price is None else written(float(price)),
            "edges": outcome.edges,
            "raw": certificate.raw,
            **certificate.answer(),
        }

    def solution(self, record: Mapping[str, Any]) -> Solution:
        """Return the solution of which ``record`` was made."""
        problem = self.at(record["x"])
        certificate = restored(record, problem.program)
        found: Solution = problem._solution(Outcome(certificate, [], list(record["edges"])))
        return found


def digest(parts: Any) -> str:
    """Return the SHA-256 of what JSON can hold."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def written(number: float) -> float | str:
    """Return a number as JSON can hold it: infinities as text."""
    return number if math.isfinite(number) else str(number)


# ---- the axis, and the lines -------------------------------------------------------------


def axes(kind: str, units: str) -> tuple[Callable[[float], Interval], Callable[[Fraction], float]]:
    """Return the right-hand side of a number, enclosed, and a number near a right-hand side."""
    if kind != EXPONENTIAL:
        return _itself, float
    return partial(_exponential, units), partial(_logarithm, units)


def _itself(x: float) -> Interval:
    return Fraction(x), Fraction(x)


def _exponential(units: str, x: float) -> Interval:
    ball = (arb(x) * (arb(2).log() if units == "bits" else 1)).exp()
    if ceil(ball) == math.inf:
        raise InputError("x", f"{x!r} is out of range", "pass a number < 700", value=x)
    return _interval(ball)


def _logarithm(units: str, u: Fraction) -> float:
    return math.log(u) * nat(units)


def knot(record: Mapping[str, Any], program: Mapping[str, Any], parameter: str, kind: str) -> Knot:
    """Return a solved point with the slope of its line.

    The bound that its multipliers prove is affine in the right-hand side: the slope is the
    multiplier itself, in the units of the optimum.
    """
    x, claim, dual = float(record["x"]), record["claim"], record["dual"]
    at = axes(kind, program["units"])[0](x)
    ends = decode(claim["lower"]), decode(claim["upper"])
    if dual is None or not dual["objective"] or kind == MONOTONE:
        return Knot(x, at, *ends)
    if kind == EXPONENTIAL:  # the summand −e^b max_y Σ_s p(s) μ(s, y)
        (mu,) = dual["auxiliaries"][parameter]
        mass = [sum(map(arb, column), arb(0)) for column in zip(*program["law"], strict=True)]
        total = sum(mass, arb(0))
        found = [_interval(_dot(mass, column) / total) for column in zip(*mu, strict=True)]
        return Knot(x, at, *ends, (max(low for low, _ in found), max(high for _, high in found)))
    slope = max(Fraction(dual["multipliers"].get(parameter, 0.0)), Fraction(0))
    inner, outer = (
        bool(term["weights"]) for term in (program["rows"][parameter]["term"], program["objective"])
    )
    if program["kind"] == "channel" or program["units"] == "nats" or inner == outer:
        return Knot(x, at, *ends, (slope, slope))
    # a covariance program's multipliers are those of the program in nats
    low, high = _interval(arb(2).log() if inner else 1 / arb(2).log())
    return Knot(x, at, *ends, (slope * low, slope * high))


def _interval(ball: arb) -> Interval:
    return Fraction(floor(ball)), Fraction(ceil(ball))


def _dot(mass: Sequence[arb], column: Sequence[float]) -> arb:
    return sum((p * max(x, 0.0) for p, x in zip(mass, column, strict=True)), arb(0))
