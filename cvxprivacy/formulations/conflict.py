"""Why nothing is feasible: which constraints conflict, and what each could be instead."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

import numpy as np

from cvxprivacy.errors import InfeasibleError
from cvxprivacy.programs import Auxiliary, EntryBounds, Row, Term
from cvxprivacy.proving.certificate import Certificate
from cvxprivacy.solvers.driver import solve

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem

__all__ = ["explained"]


def explained(problem: ChannelProblem, certificate: Certificate) -> InfeasibleError:
    """Say in the user's words which constraints conflict, and what each could be."""
    conflict = _conflict(problem, certificate)
    extremes = {name: _extreme(problem, name) for name in conflict}
    parts = problem.parts[conflict[0]] if len(conflict) == 1 else {}
    row = parts.get(conflict[0]) if parts else None
    if isinstance(row, Row) and row.linear and not row.per_output:
        bound, least = float(row.bounds(problem.m)), problem.least_value(row.term)
        alone = (program := problem.program).lower is None and program.upper is None
        message = (
            f"{conflict[0]} {_below(bound, least)} is below {_above(least)}, the least "
            f"{row.term.name} {'of any release' if alone else 'that the other rules leave'}"
        )
    elif not conflict:
        message = "the floors and forbidden moves leave some letter no release at all"
    else:
        said = [_typed_as(problem, name) for name in conflict]
        message = f"{' and '.join(said)} cannot hold together"
        if len(conflict) == 1:
            message = f"{said[0]} cannot hold"
        could = [
            f"{name} would have to be {'at least' if up else 'at most'} {_safe(value, up)}"
            for name, (value, up) in ((k, e) for k, e in extremes.items() if e is not None)
        ]
        message += f"; with the rest as it is, {' or '.join(could)}" if could else ""
    found = {name: extreme[0] for name, extreme in extremes.items() if extreme is not None}
    return InfeasibleError(message, certificate, conflict=conflict, extremes=found)


def _conflict(problem: ChannelProblem, certificate: Certificate) -> list[str]:
    """Return the names of what the contradiction uses."""
    dual, program = certificate.dual, certificate.program
    assert dual is not None
    boxes = replace(program, lower=None, upper=None).lower_bound(dual) <= 0
    used = []
    for name, parts in problem.parts.items():
        for key, part in parts.items():
            if isinstance(part, EntryBounds):
                hit = boxes
            elif isinstance(part, Auxiliary):
                hit = any(np.any(np.asarray(x) > 0) for x in dual.auxiliaries[key])
            else:
                hit = bool(np.any(np.asarray(dual.multipliers[key]) != 0))
            if hit and name not in used:
                used.append(name)
    return used


def _typed_as(problem: ChannelProblem, name: str) -> str:
    criterion = problem.named_criteria().get(name)
    if criterion is not None:
        return f"{criterion!r}"
    row = problem.parts[name][name]
    assert isinstance(row, Row)
    return f"{name} {float(row.bounds(problem.m)) * (row.bound_slope or 1.0):.6g}"


def _extreme(problem: ChannelProblem, name: str) -> tuple[float, bool] | None:
    """Return the tightest value a number could take given the rest; True if from below.

    A bound of its own row is minimised; other numbers are bisected to three digits.
    """
    row = problem.parts[name].get(name)
    if isinstance(row, Row) and row.sense == "<=" and not row.per_output:
        rows = {key: other for key, other in problem.program.rows.items() if key != name}
        outcome = solve(replace(problem.program, objective=row.term, rows=rows))
        certificate = outcome.certificate
        if certificate.primal is None:
            return None
        sign = row.bound_slope or 1.0  # −1 of what was typed as a least value
        return certificate.upper * sign + 0.0, sign > 0
    criterion = problem.named_criteria().get(name)
    if criterion is None or criterion.loosest is None:
        return None
    tight, loose = float(criterion.value), criterion.loosest
    if not _feasible(problem, name, loose):
        return None
    up = loose > tight
    tight = max(tight, 1e-9 * loose) if up else tight
    for _ in range(40):
        if abs(math.log(loose / tight)) < 1e-3 if min(tight, loose) > 0 else loose - tight > -1e-4:
            break
        middle = math.sqrt(tight * loose) if min(tight, loose) > 0 else (tight + loose) / 2
        if _feasible(problem, name, middle):
            loose = middle
        else:
            tight = middle
    return loose, up


def _feasible(problem: ChannelProblem, name: str, value: float) -> bool:
    """Tell whether the constraints are feasible with another number in one criterion."""
    criterion = problem.named_criteria()[name]
    other = problem.with_criterion(name, criterion.at(value))
    idle = replace(other.program, objective=Term("nothing"))
    return solve(idle).certificate.primal is not None


def _safe(value: float, up: bool) -> str:
    """Return a number to four digits, rounded to the side on which it would do."""
    places = 4 - 1 - math.floor(math.log10(abs(value))) if value else 4
    digits = Decimal(value).quantize(
        Decimal(1).scaleb(-places), ROUND_CEILING if up else ROUND_FLOOR
    )
    return f"{digits.normalize():f}"


def _above(value: float) -> str:
    """Return a number to as few digits as are not below it, six at least."""
    said = (f"{value:.{digits}g}" for digits in range(6, 18))
    return next(text for text in said if float(text) >= value)


def _below(value: float, limit: float) -> str:
    """Return a number to as few digits as are below ``limit``, six at least."""
    said = (f"{value:.{digits}g}" for digits in range(6, 18))
    return next((text for text in said if float(text) < limit), repr(value))
