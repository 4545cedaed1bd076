r"""Where the interior-point method begins: an analytic centre, in closed form but for one number.

Of {Q1 = p, ⟨d, Q⟩ ≤ D'}, with d the sum of all linear rows and D' almost as far from the
least to the bound, the centre with weights a is Q = a μ/(κ d + c_s): one Newton method for each
letter, within a bisection on κ (N29).  Where rows of other kinds are broken there, κ is as large as
they allow: one linear row that is broken costs fewer steps than one for every output.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.settings import InteriorPoint
from cvxprivacy.solvers.interior.point import HIGH, LOW, WORST, ByName, Layout, Point
from cvxprivacy.solvers.interior.program import ScaledProgram

__all__ = ["start"]


def start(program: ScaledProgram) -> tuple[Point, float]:
    """Return the point at which to start, and its μ."""
    settings = InteriorPoint.current()
    weights = np.where(program.free, program.share, 0.0)
    q, threshold, kappa = _centre(program, weights)
    if program.capped.any():
        width = program.high - program.low
        q = np.where(program.capped, np.minimum(q, program.low + 0.5 * width), q)
    room = np.where(program.free, q - program.low, 1.0)
    size = room * program.free / program.share
    largest = program.layout.extreme(np.maximum, size, 0.0, program.free)
    positive = largest[largest > 0]
    mu = settings.start_mu * float(np.median(positive)) if positive.size else 1.0  # (N30)
    for recourse in program.recourses.values():
        mu = max(mu, settings.start_recourse * float((recourse.weight * q.sum(axis=1)).mean()))
    joint, gradients = program.joints(q)
    information = program.information(joint, gradients)
    slack: ByName = {LOW: room}
    if HIGH in program.shares:
        slack[HIGH] = np.where(program.capped, program.high - q, 1.0)
    equal: ByName = {}
    levels: ByName = {}
    price: ByName = {}
    x = Point(q, -mu * threshold, gradients, equal, levels, slack, price)
    for name, recourse in program.recourses.items():
        slack[name] = q.sum(axis=1)[:, None] * np.ones_like(recourse.cost)
    plain = _plain(program)
    if program.worst:  # multipliers of sum 1, or nearly
        levels[WORST] = np.zeros(())
        values = [program.excess(name, x, information) for name in program.worst]
        levels[WORST] = np.asarray(np.mean(values) + len(values) * mu)
    for name, row in program.rows.items():
        if name in program.worst:
            room = -program.excess(name, x, information)
            slack[name] = np.maximum(room, 0.1 * len(program.worst) * mu)
            continue
        if row.equal:
            equal[name] = np.zeros(program.m if row.per_output else ())
            continue
        free = -program.excess(name, x, information)
        least = 0.1 * q.sum(axis=1) + 1e-3 / program.m if row.per_output else 0.03
        slack[name] = np.where(free > 1e-3 * least, free, least)
        if 0.0 < kappa < np.inf and name in plain:  # κ is its price there
            slack[name] = np.minimum(slack[name], 1.0 / kappa)
    for name, level in program.levels.items():
        channel = q / program.masses
        if level.total is None:
            above = level.sides[1][2]
            a = np.sqrt(channel.min(axis=1) * channel.max(axis=1) / above)
            a = np.clip(a, channel.max(axis=1) / above * 0.5, None)
        else:
            a = channel.max(axis=1) * 1.1
            slack[name] = np.maximum(level.total - a.sum(), 0.1 * level.total)
        levels[name] = a
        for side, sign, factor in level.sides:
            least = 0.1 * program.masses * a[:, None]
            slack[side] = np.maximum(sign * (q - factor * program.masses * a[:, None]), least)
    price.update((name, mu * program.shares[name] / value) for name, value in slack.items())
    for recourse in program.recourses.values():
        recourse.centre(x, mu)
    return x, mu


def _plain(program: ScaledProgram) -> list[str]:
    """Return the rows that bound a linear function of all outputs from above."""
    return [
        name
        for name, row in program.rows.items()
        if not (row.equal or row.per_output or row.weights or program.recourses_of(name))
        and name not in program.worst
    ]


def _centre(program: ScaledProgram, weights: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return Q, the threshold c_s of each letter, and κ."""
    rows = [program.rows[name] for name in _plain(program)]
    cost = sum((row.cost for row in rows), np.zeros(program.layout.shape))
    layout = program.layout
    left = program.mass - layout.total(program.low)

    def centre(kappa: float) -> tuple[FloatArray, FloatArray]:
        priced = kappa * cost
        base = layout.extreme(np.minimum, priced, np.inf, program.free)
        base = np.where(base < np.inf, base, 0.0)  # of a letter that has no choice
        above = np.where(program.free, priced - layout.spread(base), 0.0)
        room, c = _rows(layout, weights, above, left)
        return program.low + room, c - base

    cheapest = layout.extreme(np.minimum, cost, np.inf, program.free)
    least = float(cheapest[cheapest < np.inf] @ left[cheapest < np.inf])
    least += float((program.low * cost).sum())
    bound, share = sum(float(row.bound) for row in rows), InteriorPoint.current().start_inside

    def inside(q: FloatArray) -> bool:
        return bound <= least or float((cost * q).sum()) <= least + share * (bound - least)

    best = centre(0.0)
    if not rows or inside(best[0]):
        return *best, 0.0
    low, high = 0.0, float(np.median(best[1]))
    for _ in range(40):
        if inside(centre(high)[0]):
            break
        low, high = high, 8.0 * high
    _, kappa = _bisected(low, high, lambda kappa: inside(centre(kappa)[0]))
    if not _others_hold(program, centre(kappa)[0]):
        kappa, _ = _bisected(0.0, kappa, lambda kappa: not _others_hold(program, centre(kappa)[0]))
    return *centre(kappa), kappa


def _bisected(low: float, high: float, above: Callable[[float], bool]) -> tuple[float, float]:
    """Return numbers ≥ 0 next to each other, of which the greater one is above."""
    for _ in range(20):
        if high <= 1.1 * low:
            break
        middle = 0.25 * high if low == 0.0 else float(np.sqrt(low * high))
        low, high = (low, middle) if above(middle) else (middle, high)
    return low, high


def _others_hold(program: ScaledProgram, q: FloatArray) -> bool:
    """Tell whether all inequalities hold that are not plain."""
    plain, information = _plain(program), program.information(*program.joints(q))
    return all(
        bool((program.left(name, q, information) <= row.bound).all())
        for name, row in program.rows.items()
        if not (row.equal or name in plain or name in program.worst or program.recourses_of(name))
    )


def _rows(
    layout: Layout, weights: FloatArray, cost: FloatArray, left: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve Σ_y weights/(cost + c) = left for each letter, by Newton's method on its inverse."""
    largest = layout.extreme(np.maximum, weights, 0.0, weights > 0)
    some = largest > 0
    left = np.where(some, left, 1.0)
    c = np.where(some, largest / left, 1.0)
    for _ in range(60):
        above = cost + layout.spread(c)
        room = weights / above
        total = layout.total(room)
        slope = layout.total(room / above)
        # Newton's method on 1/Σ, which is concave in c and nearly linear: no safeguard is needed
        change = np.where(some, (total / left - 1.0) * total / np.where(some, slope, 1.0), 0.0)
        c = c + change
        if (np.abs(change) <= 1e-12 * c).all():
            break
    room = weights / (cost + layout.spread(c))
    return room * layout.spread(left / np.where(some, layout.total(room), 1.0)), c
