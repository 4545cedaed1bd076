"""Constraints that no release can break, or that are the same number for every release."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cvxprivacy.additive import AdditiveCost, dense, floats
from cvxprivacy.certificates.exact_channel import ExactChannel
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.extremes import least_value
from cvxprivacy.programs.latex_symbols import plain
from cvxprivacy.results.prices import MOST_ENTRIES
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ceil

__all__ = ["inactive_notes", "is_constant"]

CLOSE = 1e-9  # relative distance to the bound, within which a greatest value is not proved


def inactive_notes(program: ChannelProgram) -> Iterator[str]:
    """Yield a note on each constraint that is proved not to bind."""
    for name, row in program.constraints.items():
        if row.sense != "<=" or row.per_output:
            continue
        if is_constant(row) and row.expression.cost is None and row.expression.latex:
            of, number = plain(row.expression.latex), float(row.expression.constant)
            yield f"{name} binds nothing: {of} is {number:g} for every release"
        elif is_constant(row):
            yield f"{name} binds nothing: {_CONSTANT}"
        elif (greatest := _greatest(program, row)) is not None and greatest < row.number:
            yield f"{name} cannot bind: no release has more than {greatest:.6g}"


def is_constant(row: Constraint) -> bool:
    """Return whether a left-hand side is the same number for every release."""
    cost = row.expression.cost
    if row.per_output or row.expression.weights or isinstance(cost, AdditiveCost):
        return False
    if cost is None:
        return True
    near, table = floats(cost), dense(cost)  # rationals are compared where floats cannot tell
    return bool((near == near[..., :1]).all() and (table == table[..., :1]).all())


_CONSTANT = (
    "its left-hand side is the same for every release (of a quantity for each output, state it "
    "with .each())"
)


def _greatest(program: ChannelProgram, row: Constraint) -> float | None:
    """Return the greatest value of a row, rounded up; None if it may reach the bound."""
    if program.n * program.m > MOST_ENTRIES or row.radius or row.expression.cost_radius:
        return None
    return _greatest_cost(program, row) if row.linear else _greatest_leakage(program, row)


def _greatest_cost(program: ChannelProgram, row: Constraint) -> float | None:
    cost = -program.mass[:, None] * program.cost(row.expression)
    near = float(row.expression.constant) - float((cost * program.least(cost)[0]).sum())
    if near >= float(row.number) - CLOSE * abs(float(row.number)):
        return None
    return -math.nextafter(least_value(program, -row.expression), -math.inf)


def _greatest_leakage(program: ChannelProgram, row: Constraint) -> float | None:
    """Return what the letters themselves leak: no release leaks more, by a convex measure."""
    term, n = row.expression, program.n
    if term.cost is not None or any(np.ndim(weight) for weight in term.weights.values()):
        return None
    views = {view: program.views[view] for view in term.weights}
    near = float(term.constant) + sum(
        float(weight) * program.information(np.eye(n), view).sum()
        for view, weight in term.weights.items()
    )
    if near >= float(row.number) - CLOSE * abs(float(row.number)):
        return None
    shown = ChannelProgram(program.law, n, views, replace(term, name="all"), units=program.units)
    letters = ExactChannel(np.eye(n, dtype=np.int64), 1)
    return ceil(verify.proof_of(shown.to_dict()).upper(letters.to_dict()).objective)
