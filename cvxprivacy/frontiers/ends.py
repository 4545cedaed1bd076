"""Where a curve begins and ends: the least number that is feasible, and where it costs nothing.

Both are closed where a closed form knows them: the least distortion of any release, no leakage at
all, and from the other side the tightest of the releases that are optimal without the constraint.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.certificates import verify
from cvxprivacy.certificates.balls import ceil, decode
from cvxprivacy.criteria import TCloseness
from cvxprivacy.errors import CertificationError, InputError
from cvxprivacy.frontiers.family import CONVEX, Family, written
from cvxprivacy.programs import ChannelProgram, Row
from cvxprivacy.proving.certificate import Certificate, Ends
from cvxprivacy.solvers.driver import Outcome, solve, solve_gaussian

__all__ = ["loose", "refuse_nothing", "tight"]

FEW = 100  # equalities up to which releases that reveal nothing are searched exactly


def tight(family: Family) -> dict[str, Any]:
    """Solve at the tightest number that is feasible; ``edge`` says below what none is, by proof."""
    if family.kind != CONVEX:
        primal = _silent(family)
        record = family.record(_tightest(family), primal)
        return {"points": [record], "solves": 1 if primal is None else 2}
    problem, program = family.problem, family.problem.program
    row, others = _split(program, family.parameter)
    primal, solves = None, 1
    if row.linear and not others and not getattr(program, "auxiliaries", {}):
        discrete = isinstance(program, ChannelProgram)
        low = least = problem.least_value(row.term) if discrete else 0.0  # ⟨C, Σ⟩ ≥ 0, C ≽ 0
    else:
        found = _settled(family, replace(program, objective=row.term, rows=others))
        low, least, primal, solves = found.lower, found.upper, found.primal, 2
    remedy = f"pass between=(lo, hi) with lo above {least:g}"
    try:
        record = family.record(least, primal)
    except InputError as error:
        found_ = f"the least {family.parameter} is refused: {error}"
        raise InputError("between", found_, remedy) from None
    if decode(record["claim"]["upper"]) == math.inf:
        found_ = f"the optimum has no bound towards {family.parameter} {least:g}"
        raise InputError("between", found_, remedy)
    return {"edge": [written(low), least], "points": [record], "solves": solves}


def loose(family: Family) -> dict[str, Any]:
    """Solve without the constraint; return the point from which on it costs nothing."""
    if family.kind != CONVEX:
        free = family.certificate(family.loosest).certificate
        refuse_nothing(family.at(family.loosest), free)
        x = _bisected(family, free)
        return {"points": [family.record(x, free.primal, free.dual)], "solves": 1}
    program = family.problem.program
    row, others = _split(program, family.parameter)
    idle = dict(others)
    if isinstance(program, ChannelProgram) and row.linear:  # then the cheapest constant is found
        top = float(program.cost(row.term).max()) + float(row.term.constant)
        idle[family.parameter] = replace(row, bound=Fraction(top) + 1)
    free, solves = _settled(family, replace(program, rows=idle)), 1
    best = free.primal
    if free.gap <= 1e-12 * abs(free.upper) and _few(program):
        rows = {**others, "the optimum": program.objective <= free.upper}
        found = _settled(family, replace(program, objective=row.term, rows=rows))
        best, solves = best if found.primal is None else found.primal, 2
    cost = verify.proof_of(replace(program, objective=row.term, rows={}).to_dict())
    x = ceil(cost.upper(best.to_dict()).objective)
    return {"points": [family.record(x, best, free.dual)], "solves": solves}


def _few(program: Any) -> bool:
    """Tell whether the tightest optimum is worth a program of its own.

    Of a linear objective it is on a face; without information it satisfies J = π q, where only
    constant releases do unless some combination of letters looks the same to the view.
    """
    if not isinstance(program, ChannelProgram):
        return False
    views = [program.view_matrix(view).toarray() for view in program.objective.weights]
    dependent = all(np.linalg.matrix_rank(view / program.mass) < program.n for view in views)
    equalities = program.n + sum(program.m * (len(view) - 1) for view in views)
    return not views or (dependent and equalities <= FEW)


def _tightest(family: Family) -> float:
    """Return the tightest number that can be typed."""
    source = family.problem.source
    if family.parameter.startswith("l_diversity"):  # on average H(W | x̂) is at most H(W)
        return math.exp(source.entropy(units="nats")) * (1 - 1e-12)
    if family.parameter.startswith("k_anonymity"):
        return float(source.records)
    return 1.0 if family.falling else 0.0


def _silent(family: Family) -> Any:
    """Return the best release that reveals nothing, where the tightest number allows no other."""
    if not family.parameter.startswith("l_diversity"):
        return None
    other = family.problem.with_criterion(family.parameter, TCloseness(0.0))
    found: Certificate = other.solve(accuracy=family.accuracy, certify=False).certificate
    return found.primal


def _bisected(family: Family, free: Certificate) -> float:
    """Return the tightest number at which a release is allowed, to twelve digits."""

    def allowed(x: float) -> bool:
        proof = verify.proof_of(family.at(x).program.to_dict())
        return bool(proof.upper(free.primal.to_dict()).feasible)

    shut, open_ = _tightest(family), family.loosest
    if allowed(shut):
        return shut
    while abs(open_ - shut) > 1e-12 * max(open_, shut):
        middle = _between(shut, open_)
        if middle in (shut, open_):
            break
        shut, open_ = (shut, middle) if allowed(middle) else (middle, open_)
    return open_


def _between(a: float, b: float) -> float:
    """Return the float with as many floats below it, down to a ≥ 0, as above it, up to b ≥ 0.

    A search by it ends within 64 steps, also towards 0, which halving the distance reaches after
    a thousand.
    """
    one, other = (struct.unpack("<q", struct.pack("<d", abs(x)))[0] for x in (a, b))
    return float(struct.unpack("<d", struct.pack("<q", (one + other) // 2))[0])


def _split(program: Any, name: str) -> tuple[Row, dict[str, Row]]:
    return program.rows[name], {key: row for key, row in program.rows.items() if key != name}


def _settled(family: Family, program: Any) -> Certificate:
    """Solve another program of the same variables; say why if nothing is feasible."""
    run: Any = solve if isinstance(program, ChannelProgram) else solve_gaussian
    outcome: Outcome = run(program, accuracy=family.accuracy)
    refuse_nothing(family.problem, outcome.certificate, [family.parameter])
    return outcome.certificate


def refuse_nothing(problem: Any, certificate: Certificate, moved: Sequence[str] = ()) -> None:
    """Raise what ``solve()`` raises where no release is known.

    ``certificate`` is of the problem's program without the rows ``moved``: a contradiction in it
    is one whatever their bounds are.
    """
    if certificate.status == "infeasible":
        multipliers = {**dict.fromkeys(moved, 0.0), **certificate.dual.multipliers}
        ends = Ends(problem.program, certificate.accuracy)
        ends.take_dual(replace(certificate.dual, multipliers=multipliers))
        raise problem._explained(ends.certificate())
    if certificate.primal is None:
        message = "no release was found, and it is not proved that there is none"
        raise CertificationError(message, certificate)
