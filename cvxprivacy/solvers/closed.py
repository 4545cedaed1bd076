"""What needs no iterations: contradictions, constant channels and faces.

A linear row whose bound equals its minimum over the simple set (a budget D = D_min) leaves no
interior: its feasible set is the *face* of least-cost moves.  The face is solved as a smaller
program, and its multipliers are those of the full program with the row's own multiplier large
enough; the certificate never hears of faces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cvxprivacy.programs import ChannelProgram, Dual
from cvxprivacy.programs.channel import FloatArray

__all__ = ["Face", "constant", "contradictions", "face", "idle"]

_EDGE = 1e-11  # a bound within this share of the row's span of its minimum is at the edge


def _zero(program: ChannelProgram, multipliers: Mapping[str, float], objective: int) -> Dual:
    dual = Dual({}, {name: np.asarray(v, float) for name, v in multipliers.items()}, {}, objective)
    return dual.cleaned(program)


def idle(program: ChannelProgram) -> Dual:
    """Return zero multipliers and r = π: the bound that needs no solver, exact where R = 0."""
    return _zero(program, {}, 1)


def least(program: ChannelProgram, name: str) -> tuple[float, float, FloatArray]:
    """Return a linear row's minimum over the simple set, its span, and its costs p(s)C(s, y)."""
    term = program.rows[name].term
    cost = program.mass[:, None] * program.cost(term)
    value = float((cost * program.least(cost)[0]).sum()) + term.constant
    span = float(np.ptp(program.cost(term))) or 1.0
    return value, span, cost


def contradictions(program: ChannelProgram) -> list[Dual]:
    """Return multipliers that might prove, row by row, that nothing is feasible."""
    found = []
    low = program.lower is not None and (program.lower.sum(axis=1) > 1).any()
    high = program.upper is not None and (program.upper.sum(axis=1) < 1).any()
    if low or high:
        found.append(_zero(program, {}, 0))
    for name, row in program.rows.items():
        if row.per_output or row.sense == "==":
            continue
        value, span, _ = least(program, name) if row.linear else (row.term.constant, 1.0, None)
        if float(row.bounds(program.m)) < value + _EDGE * span:
            found.append(_zero(program, {name: 1.0 / span}, 0))
    return found


def constant(program: ChannelProgram) -> tuple[FloatArray, Dual] | None:
    """Return a constant channel and zero multipliers if they close the gap, else None.

    Beyond D_max = min_y E d(X, y) nothing need be revealed.
    """
    cost = np.zeros(program.m)
    for row in program.rows.values():
        if row.linear and row.sense == "<=" and not row.per_output:
            span = float(np.ptp(program.cost(row.term))) or 1.0
            cost = cost + program.mass @ program.cost(row.term) / span
    objective = program.mass @ program.cost(program.objective)
    channel = np.zeros((program.n, program.m))
    channel[:, np.lexsort((cost, objective))[0]] = 1.0
    dual = idle(program)
    gap = program.value(program.objective, channel) - program.lower_bound(dual)
    if program.violation(channel) > 0 or gap > 1e-12 * program.scale:
        return None
    return channel, dual


@dataclass(frozen=True, eq=False)
class Face:
    """The face of ``parent`` on which the row ``row`` is at its minimum."""

    parent: ChannelProgram
    row: str
    program: ChannelProgram

    def dual(self, dual: Dual) -> Dual:
        """Return multipliers of the parent: the least λ of the row that loses nothing."""
        span = least(self.parent, self.row)[1]
        unit = self.parent.scale / span
        best: list[tuple[float, float, Dual]] = []
        for power in range(-8, 41):
            lam = unit * 2.0**power
            whole = replace(dual, multipliers={**dual.multipliers, self.row: np.array(lam)})
            best.append((self.parent.lower_bound(whole), lam, whole))
        top = max(value for value, _, _ in best)
        return next(d for value, _, d in best if value >= top - 1e-12 * self.parent.scale)


def face(program: ChannelProgram) -> Face | None:
    """Return the face of the first row whose bound is its minimum, or None."""
    for name, row in program.rows.items():
        if not row.linear or row.per_output or row.sense == "==":
            continue
        value, span, cost = least(program, name)
        if float(row.bounds(program.m)) > value + _EDGE * span:
            continue
        excess = cost - program.least(cost)[1][:, None]
        tie = 1e-14 * span * program.mass[:, None]
        low = np.zeros_like(cost) if program.lower is None else program.lower
        high = np.ones_like(cost) if program.upper is None else program.upper
        upper = np.where(excess > tie, low, high)
        lower = np.where(excess < -tie, high, low)
        rows = {key: other for key, other in program.rows.items() if key != name}
        return Face(program, name, replace(program, rows=rows, lower=lower, upper=upper))
    return None
