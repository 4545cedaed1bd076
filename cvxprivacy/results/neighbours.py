"""Releases and multipliers near an optimum, from which chords prove its slopes.

None of them is believed: :class:`~cvxprivacy.results.chords.Chords` proves what each is
worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from cvxprivacy.certificates.exact_channel import round_channel
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.extremes import least_value
from cvxprivacy.programs.least_leakage import breach
from cvxprivacy.results.chords import Chords
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.interior.method import foreign_measures
from cvxprivacy.solvers.presolve import zero_multipliers

__all__ = [
    *("is_edge", "is_least", "near_channels", "rescored"),
    *("roomier", "solved", "solved_nearby", "trivial"),
]

MANY = 20_000  # entries, beyond which no proof is made again for a price
LEAST = {"maximum": 1.0, "excess": 0.0}  # bounds of auxiliaries, below which nothing is feasible
FEW = 1_200  # entries times letters, up to which neighbours are solved
_NEAR = 1e-6  # of the scale: what is so near the worst of several counts as that
_ACTIVE = 60  # rows that moves are kept on
_RAISED = (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 3e-3)  # shares by which multipliers are raised
_POWERS = (10, 13, 16, 7, 19, 22, 25, 4, 28, 32, 36, 2, 0)  # of steps, halves of the longest
_PROVED = 4  # of multipliers, that are best in floats


# ---- releases --------------------------------------------------------------------------------


def near_channels(
    program: ChannelProgram, channel: FloatArray, rates: Mapping[str, Fraction]
) -> Iterator[Any]:
    """Yield releases on both sides of one: moved within its support, and trivial ones."""
    for candidate in chain(_moved(program, channel, rates), trivial(program, rates)):
        if (exact := round_channel(program, candidate)) is not None:
            yield exact


def trivial(program: ChannelProgram, rates: Mapping[str, Fraction]) -> Iterator[FloatArray]:
    """Yield what costs least in the rows that move, in the objective, and if it is constant."""
    rows = [program.constraints[name].expression for name in rates if name in program.constraints]
    tables = [program.cost(row) for row in rows if row.cost is not None]
    tables += [program.cost(part) for part in program.objectives.values()]
    for table in tables:
        cost = program.mass[:, None] * table
        yield program.completed(program.least(cost)[0])
        yield np.tile(np.eye(program.m)[cost.sum(axis=0).argmin()], (program.n, 1))


def _moved(
    program: ChannelProgram, channel: FloatArray, rates: Mapping[str, Fraction]
) -> Iterator[FloatArray]:
    """Yield K + tD, D within the support and along the other rows that hold with equality.

    Of all such D the objective changes by −λ per unit of room, as reduced costs are 0 there.
    """
    mass = program.mass[:, None]
    turned, others = np.zeros_like(channel), []
    for name, row in program.constraints.items():
        for part, tight in _gradients(program, row, channel):
            if name in rates:
                turned = turned + part / float(rates[name])
            elif tight:
                others.append(part)
    # what is as great as the worst is to change as that does
    parts = [(program.value(part, channel), part) for part in program.objectives.values()]
    greatest = max(value for value, _ in parts)
    first, *more = (
        _gradient(program, part, channel)
        for value, part in parts
        if value > greatest - _NEAR * program.scale
    )
    others += [gradient - first for gradient in more]
    if len(others) > _ACTIVE or not turned.any():
        return
    gradients = [turned, *others]

    def within(gradient: FloatArray) -> FloatArray:
        steps = gradient / mass
        return channel * (steps - (channel * steps).sum(axis=1, keepdims=True))

    # the sizes of gradients, whose squares may be no floats, are those of costs: of a direction
    # alone the way it points is used, of what is kept that it hardly changes
    gradients = [gradient / (np.abs(gradient).max() or 1.0) for gradient in gradients]
    steps = np.array([within(gradient).ravel() for gradient in gradients])
    gram = np.array([g.ravel() for g in gradients]) @ steps.T
    lengths: list[tuple[FloatArray, float]] = []
    for kept in (0.0, -1e-6, -1e-3) if others else (0.0,):
        for sign in (-1.0, 1.0):  # less room, and more
            goal = np.array([sign, *[kept] * len(others)])
            direction = (np.linalg.lstsq(gram, goal, rcond=1e-13)[0] @ steps).reshape(channel.shape)
            shrinking = direction < 0
            if shrinking.any():
                most = float((channel[shrinking] / -direction[shrinking]).min())
                lengths.append((direction, most))
    for power in _POWERS:
        for direction, most in lengths:
            yield channel + most * 2.0**-power * direction


def _gradient(program: ChannelProgram, term: Expression, channel: FloatArray) -> FloatArray:
    """Return the gradient by K of a quantity."""
    gradient = program.mass[:, None] * program.cost(term)
    for view, weight in term.columns(program.m).items():
        measure = program.views[view].measure
        scores = measure.scores(program.joint(channel, view), program.reference(view))
        slopes = weight * measure.inside(scores, program.reference(view)) * program.unit(view)
        gradient = gradient + np.asarray(program.view_matrix(view).T @ slopes)
    return gradient


def _gradients(
    program: ChannelProgram, row: Constraint, channel: FloatArray
) -> Iterator[tuple[FloatArray, bool]]:
    """Yield the gradient by K of a row, or of it at each output, and whether it is tight."""
    term = row.expression
    gradient = _gradient(program, term, channel)
    value = program.columns(term, channel)
    if not row.per_output:
        excess = float(value.sum()) + float(term.constant) - float(row.bounds(program.m))
        yield gradient, row.sense == "==" or excess > -1e-6
        return
    off = value - row.bounds(program.m)
    for y in np.flatnonzero((off > -1e-6) & (channel.max(axis=0) > 0)):
        yield np.where(np.arange(program.m) == y, gradient, 0.0), True


# ---- multipliers -----------------------------------------------------------------------------


def rescored(
    program: ChannelProgram, dual: Dual, channels: list[FloatArray], row: str
) -> list[Dual]:
    """Return multipliers whose scores are those of releases, with the best λ of one row.

    Raised a little, multipliers give room to inequalities among reduced costs that are equalities
    at the optimum, which float multipliers cannot keep: that costs the room times the row's bound.
    """
    dual = dual.cleaned(program)
    candidates = [dual, zero_multipliers(program)]
    scored = [_scored_by(program, dual, channel) for channel in channels]
    if row in program.constraints and not program.constraints[row].per_output:
        scored = [_best_multiplier(program, each, row) for each in [dual, *scored]]
    for each in scored:
        candidates += [_raised(program, each, share) for share in _RAISED]
    with np.errstate(all="ignore"):
        return sorted(candidates, key=lambda d: -_value(program, d))[:_PROVED]


def _value(program: ChannelProgram, dual: Dual) -> float:
    value = dual.lower_bound(program)
    return value if np.isfinite(value) else -np.inf


def _scored_by(program: ChannelProgram, dual: Dual, channel: FloatArray) -> Dual:
    """Return the scores of a release, and those of ``dual`` at outputs that it does not use."""
    scores = {}
    for name, view in program.views.items():
        joint = program.joint(channel, name)
        present = joint.sum(axis=0) > 1e-9
        of_channel = view.measure.scores(joint, program.reference(name))
        scores[name] = np.where(present, of_channel, dual.scores[name])
    return replace(dual, scores=scores)


def _best_multiplier(program: ChannelProgram, dual: Dual, row: str) -> Dual:
    """Return the multipliers with the λ of one row that proves most: a concave function of it.

    With scores as they are, the minorant is affine in λ.
    """

    def at(lam: float) -> Dual:
        return replace(dual, multipliers={**dual.multipliers, row: np.array(lam)})

    start = float(np.asarray(dual.multipliers[row])) or 1.0
    (g, c), (unit_g, unit_c) = at(0.0).minorant(program), at(start).minorant(program)
    unit_g, unit_c = unit_g - g, unit_c - c

    def value(share: float) -> float:
        table = g + share * unit_g
        return float((table * program.least(table)[0]).sum()) + c + share * unit_c

    low, high, golden = 1 / 64, 64.0, (5**0.5 - 1) / 2
    for _ in range(90):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (a, high) if value(a) < value(b) else (low, b)
    return at(start * (low + high) / 2)


def _raised(program: ChannelProgram, dual: Dual, share: float) -> Dual:
    """Return multipliers times 1 + share; scores of what only they weigh stay in balance."""
    if not share:
        return dual
    multipliers = {name: np.asarray(lam) * (1 + share) for name, lam in dual.multipliers.items()}
    free = {view for part in program.objectives.values() for view in part.weights}
    scores = {
        view: s if view in free else np.asarray(s) / (1 + share) for view, s in dual.scores.items()
    }
    return replace(dual, scores=scores, multipliers=multipliers)


# ---- neighbours ------------------------------------------------------------------------------


def roomier(
    program: ChannelProgram, rates: Mapping[str, Fraction], room: Fraction
) -> ChannelProgram:
    """Return the program with more room in the bounds that move, or less."""
    rows, auxiliaries = dict(program.constraints), dict(program.auxiliaries)
    for name, rate in rates.items():
        if name in rows:
            bound: Any = rows[name].bound
            each = isinstance(bound, tuple)
            moved: Any = tuple(b + rate * room for b in bound) if each else bound + rate * room
            rows[name] = replace(rows[name], bound=moved)
        else:
            more = Fraction(auxiliaries[name].bound) + rate * room
            auxiliaries[name] = replace(auxiliaries[name], bound=float(more))
    return replace(program, constraints=rows, auxiliaries=auxiliaries)


def solved(program: ChannelProgram) -> Any:
    """Return the certificate of a program nearby, with the package's own method where it knows all.

    CVXPY's solvers are patient, and gain next to nothing where that is not enough.
    """
    method = "auto" if foreign_measures(program) else "structured"
    return solve(program, accuracy="high", method=method).certificate


def solved_nearby(
    program: ChannelProgram, rates: Mapping[str, Fraction], room: float
) -> tuple[Any, Any] | None:
    """Return the release and multipliers that a solver proposes with other room; None if none."""
    certificate = solved(roomier(program, rates, Fraction(room)))
    if certificate.primal is None or certificate.dual is None:
        return None
    return certificate.primal, certificate.dual


def is_least(program: ChannelProgram, chords: Chords, name: str) -> bool:
    """Tell whether a bound is, but for a rounding of it, proved to be the least that is feasible.

    That is a contradiction of a bound that is less.
    """
    if (aux := program.auxiliaries.get(name)) is not None:
        least = LEAST.get(aux.kind)
        return least is not None and not aux.radius and bool(aux.bound <= least)
    row = program.constraints.get(name)
    if row is None or row.sense != "<=" or row.per_output:
        return False
    span = float(np.ptp(program.cost(row.expression))) + sum(program.sizes(row.expression))
    dual = zero_multipliers(program, {name: 1.0 / (span or 1.0)}, objective=0)
    rounding = 2.0**-52 * abs(float(row.number)) / (span or 1.0) if row.number else 1e-30
    return bool(chords.proof.lower(dual.to_dict()).lower() >= -rounding)


def is_edge(program: ChannelProgram, name: str) -> bool:
    """Tell whether a bound is the least that is feasible, but for a rounding of the bound."""
    row = program.constraints.get(name)
    if row is None:
        return False
    if row.linear and not row.per_output:
        return bool(float(row.bounds(program.m)) <= least_value(program, row.expression))
    broken, bounds, cost = breach(program, row), row.bounds(program.m), program.cost(row.expression)
    size = float(max(np.abs(bounds).max(), np.abs(cost).max()))  # a bound may be in the cost
    return broken is not None and broken >= -(2.0**-50) * size


def span_of(program: ChannelProgram, term: Expression) -> float:
    """Return what a row's left-hand side can differ by, as 1 where that is nothing."""
    return (float(np.ptp(program.cost(term))) + sum(program.sizes(term))) or 1.0
