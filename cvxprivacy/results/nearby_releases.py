"""Releases near an optimum, which need less room or more: they are cheap, and prove prices.

None of them is trusted: :class:`~cvxprivacy.results.price_bounds.PriceBounds` has each evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from cvxprivacy.certificates.exact_channel import round_channel
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Constraint, Expression

__all__ = ["extreme_releases", "moved_releases"]

ACTIVE_WITHIN = 1e-6  # of its bound: a constraint so near is active
MOST_ACTIVE = 60  # active constraints, up to which releases are moved along them
INWARDS = (0.0, -1e-6, -1e-3)  # by which active constraints gain slack, where room changes by 1
HALVINGS = (10, 13, 16, 7, 19, 22, 25, 4, 28, 32, 36, 2, 0)  # of the longest step, in this order


def moved_releases(
    program: ChannelProgram, channel: FloatArray, rates: Mapping[str, Fraction]
) -> Iterator[Any]:
    """Yield releases with less room and with more: along a gradient, and extreme ones."""
    along = _along_gradient(program, channel, rates)
    for candidate in chain(along, extreme_releases(program, rates)):
        if (exact := round_channel(program, candidate)) is not None:
            yield exact


def extreme_releases(
    program: ChannelProgram, rates: Mapping[str, Fraction]
) -> Iterator[FloatArray]:
    """Yield releases of least cost, and constant ones, by the moving rows and the objective."""
    rows = [program.constraints[name].expression for name in rates if name in program.constraints]
    tables = [program.cost(row) for row in rows if row.cost is not None]
    tables += [program.cost(part) for part in program.objectives.values()]
    for table in tables:
        cost = program.mass[:, None] * table
        yield program.completed(program.least(cost)[0])
        yield np.tile(np.eye(program.m)[cost.sum(axis=0).argmin()], (program.n, 1))


def _along_gradient(
    program: ChannelProgram, channel: FloatArray, rates: Mapping[str, Fraction]
) -> Iterator[FloatArray]:
    r"""Yield K + tD for directions D that change the room, and keep other active constraints.

    With step S(g) = K ∘ (g/p − Σ_y K g/p), which keeps the support and the row sums, D solves

    .. math:: D = \sum_i x_i S(g_i), \qquad ⟨g_j, D⟩ = ∓1 \text{ for the moving row, else } ≤ 0 .

    Reduced costs are 0 on the support, so that the objective changes by −λ per unit of room.
    """
    mass = program.mass[:, None]
    moving, active = np.zeros_like(channel), []
    for name, row in program.constraints.items():
        for gradient, is_active in _row_gradients(program, row, channel):
            if name in rates:
                moving = moving + gradient / float(rates[name])
            elif is_active:
                active.append(gradient)
    # of the worst of several objectives, all that are greatest must change alike
    parts = [(program.value(part, channel), part) for part in program.objectives.values()]
    greatest = max(value for value, _ in parts) - ACTIVE_WITHIN * program.scale
    first, *more = (_gradient(program, part, channel) for value, part in parts if value > greatest)
    active += [gradient - first for gradient in more]
    if len(active) > MOST_ACTIVE or not moving.any():
        return

    def step(gradient: FloatArray) -> FloatArray:
        change = gradient / mass
        return channel * (change - (channel * change).sum(axis=1, keepdims=True))

    # normalised, as squares of costs may be no floats; only the direction of D matters
    gradients = [gradient / (np.abs(gradient).max() or 1.0) for gradient in [moving, *active]]
    steps = np.array([step(gradient).ravel() for gradient in gradients])
    gram = np.array([g.ravel() for g in gradients]) @ steps.T
    directions: list[tuple[FloatArray, float]] = []
    for kept in INWARDS if active else INWARDS[:1]:
        for sign in (-1.0, 1.0):  # less room, and more
            goal = np.array([sign, *[kept] * len(active)])
            direction = (np.linalg.lstsq(gram, goal, rcond=1e-13)[0] @ steps).reshape(channel.shape)
            shrinking = direction < 0
            if shrinking.any():
                most = float((channel[shrinking] / -direction[shrinking]).min())
                directions.append((direction, most))
    for halvings in HALVINGS:
        for direction, most in directions:
            yield channel + most * 2.0**-halvings * direction


def _gradient(program: ChannelProgram, term: Expression, channel: FloatArray) -> FloatArray:
    """Return the gradient by K of a quantity."""
    gradient = program.mass[:, None] * program.cost(term)
    for view, weight in term.columns(program.m).items():
        measure = program.views[view].measure
        scores = measure.scores(program.joint(channel, view), program.reference(view))
        slopes = weight * measure.inside(scores, program.reference(view)) * program.unit(view)
        gradient = gradient + np.asarray(program.view_matrix(view).T @ slopes)
    return gradient


def _row_gradients(
    program: ChannelProgram, row: Constraint, channel: FloatArray
) -> Iterator[tuple[FloatArray, bool]]:
    """Yield the gradient by K of a row, or of it at each output, and whether it is active."""
    term = row.expression
    gradient = _gradient(program, term, channel)
    value = program.columns(term, channel)
    if not row.per_output:
        excess = float(value.sum()) + float(term.constant) - float(row.bounds(program.m))
        yield gradient, row.sense == "==" or excess > -ACTIVE_WITHIN
        return
    off = value - row.bounds(program.m)
    for y in np.flatnonzero((off > -ACTIVE_WITHIN) & (channel.max(axis=0) > 0)):
        yield np.where(np.arange(program.m) == y, gradient, 0.0), True
