"""Where a curve begins and ends: its feasibility end, and where the constraint is inactive.

Both are closed where a closed form knows them: the least distortion of any release, no leakage at
all, and from the other side the tightest of the releases that are optimal without the constraint.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.frontiers.axis import CONVEX
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.stored import from_json, to_json
from cvxprivacy.programs.notation import above
from cvxprivacy.verifier.balls import decode

__all__ = ["FEASIBILITY_END", "INACTIVE_END", "solve_task"]

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
