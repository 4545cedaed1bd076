"""What needs no iterations: contradictions, constant channels and facial reduction.

A row whose bound equals its minimum leaves no interior.  A linear one (a budget D = D_min)
leaves the *face* of least-cost moves; a bound of what is leaked without a release (t = 0, or the
chance of the best guess) leaves that of :mod:`~cvxprivacy.programs.least_leakage`, such as J = π q.
The face is solved as a smaller program, and its multipliers are those of the full program with
the row's own multiplier large enough; the certificate never hears of faces.  Equations are those of
``docs/theory/entries.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.additive import span as span_of
from cvxprivacy.exact import TINY, Exact, FloatArray, floats
from cvxprivacy.programs.channel import ChannelProgram, Matrix
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.least_leakage import LeastLeakage, breach, least_leakage, prior_leakage
from cvxprivacy.programs.side_conditions import Auxiliary, Excess
from cvxprivacy.solvers.constant_channel import constant_channel

__all__ = [
    "FacialReduction",
    "constant",
    "contradictions",
    "facial_reduction",
    "facial_reductions",
    "tightened",
    "trivial",
    "zero_multipliers",
]

_ROUNDED = 1e-15  # of a sum, or of a channel's violation: a few units in the last place
_EDGE = 1e-11  # a bound within this share of the row's span of its minimum is at the edge
_NEAR = 2e-5  # within this share of a measure's span it is near
_CLOSED = 1e-12  # gap, in the objective's scale, that is closed: rounding of floats
_TIE = 1e-14  # difference of costs, in a row's span, that rounding makes
_POWERS = range(-8, 61)  # of 2, which are tried as λ of a face in units of its own (E20)
TIGHTENINGS = (0.1, 1e-2, 1e-3, 1e-5)  # of rows in turn, as shares of their spans
_LARGE = 500_000  # entries in the equalities of a face that is near, beyond which it is left alone


# ---- contradictions and constant channels ----------------------------------------------------


def zero_multipliers(
    program: ChannelProgram, multipliers: Mapping[str, Any] | None = None, objective: int = 1
) -> Dual:
    """Return the scores of a release that tells nothing, and no multipliers but these.

    Without any, this is the bound that needs no solver, exact where no more need be leaked.
    """
    scores = {}
    for name, view in program.views.items():
        if view.reference is not None or not view.measure.divergence:  # elsewhere they are 0
            prior, reference = program.prior(name), program.reference(name)
            if view.informs:  # with r = 0 where there is no prior
                column = np.log(np.maximum(prior / reference, TINY))[:, None]  # of (E18)
            else:
                column = view.measure.scores(prior[:, None], reference)
            scores[name] = np.tile(column, (1, program.m))
    rows = {name: np.asarray(value, float) for name, value in (multipliers or {}).items()}
    return Dual(scores, rows, {}, objective).cleaned(program)


def contradictions(program: ChannelProgram) -> list[Dual]:
    """Return multipliers that might prove, row by row, that nothing is feasible."""
    candidates = []
    low = program.lower is not None and (program.lower.sum(axis=1) > 1).any()
    high = program.upper is not None and (program.upper.sum(axis=1) < 1).any()
    if low or high:  # entry bounds alone: no multiplier is needed
        candidates.append(zero_multipliers(program, objective=0))
    fixed = constant_channel(program, zero_multipliers)
    if fixed is not None and fixed.law is None:
        candidates.append(fixed.dual)
    for name, row in program.constraints.items():
        if row.per_output or row.sense == "==":
            # of a release that tells nothing, in every output; an edge is offered too, since only
            # the proof decides
            excess = breach(program, row)
            if excess is not None and excess > -_EDGE:
                candidates.append(zero_multipliers(program, {name: np.ones(program.m)}, 0))
            continue
        value, span = _least_cost(program, name)
        if not row.linear:
            value, span = value + _prior_information(program, row.expression), 1.0
        if float(row.bounds(program.m)) < value + _EDGE * span + _ROUNDED * abs(value):  # (E18)
            candidates.append(zero_multipliers(program, {name: 1.0 / span}, 0))
    return candidates


def _least_cost(program: ChannelProgram, name: str) -> tuple[float, float]:
    """Return the minimum of a row's linear part, and its span."""
    term = program.constraints[name].expression
    value = program.value(replace(term, weights={}), program.cheapest([term]))
    return value, _span(program, term)


def _span(program: ChannelProgram, term: Expression) -> float:
    return (float(np.ptp(program.cost(term))) if program.dense else span_of(term.cost)) or 1.0


def _prior_information(program: ChannelProgram, term: Expression) -> float:
    """Return Σ β F(M p): what a term's observers know before any release, such as I(W; Z)."""
    columns = term.columns(program.m).items()
    return sum(float(weight.min()) * prior_leakage(program, view) for view, weight in columns)


def constant(program: ChannelProgram) -> tuple[Matrix, Dual] | None:
    """Return a channel and zero multipliers if they close the gap, else None.

    Where the letters reveal nothing by themselves, each stays where its rows cost least.
    Beyond D_max = min_y E d(X, y) nothing need be revealed: a constant channel.  Where no
    constraint binds and information is free, every letter makes its cheapest move.
    """
    if not program.dense:
        return _constant_in_blocks(program)
    moves = np.zeros((program.n, program.m))
    for row in program.constraints.values():
        if row.linear and row.sense == "<=" and not row.per_output:
            moves = moves + program.cost(row.expression) / _span(program, row.expression)
    cost = program.mass[:, None] * moves
    costs = [program.cost(part) for part in program.objectives.values()]
    objective = program.mass[:, None] * sum(costs)
    # the output that is best for all letters, ties broken by the rows
    same = np.zeros((program.n, program.m))
    same[:, np.lexsort((cost.sum(axis=0), objective.sum(axis=0)))[0]] = 1.0
    dual = zero_multipliers(program)
    bound = dual.lower_bound(program)
    stay, cheapest = program.least(cost)[0], program.least(objective)[0]
    for channel in (stay, same, _by_group(program, objective + cost), cheapest):
        feasible = program.violation(channel) <= _ROUNDED
        if feasible and program.attained(channel) - bound <= _CLOSED * program.scale:
            return channel, dual
    return None


def trivial(program: ChannelProgram, most: float) -> Iterator[Matrix]:
    """Yield what is feasible in floats and worth less than ``most``: constants, and least costs."""
    n, m = program.n, program.m
    costs = [program.mass[:, None] * program.cost(part) for part in program.objectives.values()]
    laws = []  # of what releases that keep margins have in common
    for row in program.constraints.values():
        if row.sense == "==" and isinstance(row.bound, tuple) and sum(row.bound) == 1:
            laws.append(np.array([float(b) for b in row.bound]))
    for aux in program.auxiliaries.values():
        if isinstance(aux, Excess) and aux.pair is None:
            laws.append(floats(aux.levels))
    rows = (row.expression for row in program.constraints.values() if row.linear)
    linear = [program.mass[:, None] * program.cost(term) for term in rows if not term.per_output]
    least = (program.completed(program.least(cost)[0]) for cost in (*costs, *linear))
    for channel in (*(np.tile(law, (n, 1)) for law in laws), *least):
        if program.attained(channel) < most and program.violation(channel) <= _ROUNDED:
            yield channel
    # what all constants tell is left out where it is nothing: a price of it makes much of rounding
    prior = [sum(_silent(program, part)) for part in program.objectives.values()]
    worth = np.max([t + cost.sum(axis=0) for t, cost in zip(prior, costs, strict=True)], axis=0)
    for y in np.argsort(worth, kind="stable"):
        if worth[y] >= most:
            return
        channel = np.tile(np.eye(m)[y], (n, 1))
        if program.violation(channel) <= _ROUNDED:
            yield channel
            return


def _silent(program: ChannelProgram, term: Expression) -> Iterator[float]:
    """Yield what a term has of a release that tells nothing, beyond costs of moves."""
    yield float(term.constant)
    for view, weights in term.columns(program.m).items():
        observer = program.views[view]
        if observer.reference is not None or not observer.measure.divergence:
            yield float(weights.max()) * prior_leakage(program, view)


def _constant_in_blocks(program: ChannelProgram) -> tuple[Matrix, Dual] | None:
    """Return the same of a program that is not dense, whose observers see all letters."""
    rows = [row.expression for row in program.constraints.values() if row.linear]
    objectives = [part for part in program.objectives.values() if part.cost is not None]
    sums = [sum(program.weighted(t, program.mass) for t in some) for some in (rows, objectives)]
    costs = [np.broadcast_to(total, program.m) for total in sums]
    same = np.full(program.n, np.lexsort(costs)[0])
    channels = [
        program.deterministic(same),
        *(program.cheapest(t) for t in (rows, objectives) if t),
    ]
    dual = zero_multipliers(program)
    if objectives:
        bound = dual.lower_bound(program)
    else:  # what scores alone prove is the same at every entry: none is gone through
        terms = program.objectives.values()
        bound = dual.constant(program) + sum(_prior_information(program, t) for t in terms)
    for channel in channels:
        feasible = program.violation(channel) <= _ROUNDED
        if feasible and program.attained(channel) - bound <= _CLOSED * program.scale:
            return channel, dual
    return None


def _by_group(program: ChannelProgram, cost: FloatArray) -> FloatArray:
    """Return the cheapest channel that is constant for all letters that one observer sees.

    Where user and encoder know Z, that reveals nothing beyond it.
    """
    groups = {tuple(program.view_matrix(view).sum(axis=0) > 0) for view in program.views}
    channel = np.zeros((program.n, program.m))
    for group in sorted(groups, key=sum, reverse=True):  # the smallest have the last word
        letters = np.array(group)
        channel[letters] = np.eye(program.m)[cost[letters].sum(axis=0).argmin()]
    return channel


# ---- facial reduction --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FacialReduction:
    """A smaller program with the feasible set of ``parent``, and the way back.

    ``lift(dual, λ)`` returns multipliers of the parent that lose nothing if λ is large enough,
    in units of ``unit``; ``edge`` tells that ``name``'s bound is the least that is feasible, and
    ``lost`` what of the objective's scale is next to nothing.  What is ``near`` has some of the
    feasible set alone, where its best is.
    """

    parent: ChannelProgram
    name: str
    program: ChannelProgram
    lift: Callable[[Dual, float], Dual]
    unit: float
    edge: bool = True
    lost: float = _CLOSED
    near: bool = False

    def duals(self, dual: Dual) -> Iterator[Dual]:
        """Yield multipliers of the parent with the least λ that loses nothing, then with more.

        Of a contradiction, that loses at most half of it.  Floats cannot always tell.
        """
        lifted = [self.lift(dual, self.unit * 2.0**power) for power in _POWERS]
        bounds = [candidate.lower_bound(self.parent) for candidate in lifted]  # B(λ) (E20)
        # no more than the face has: beyond it are rounding errors of a large λ
        enough = min(max(bounds), dual.lower_bound(self.program))
        enough -= self.lost * self.parent.scale if dual.objective else 0.5 * abs(enough)
        first = next((i for i, bound in enumerate(bounds) if bound >= enough), 0)
        yield from lifted[first::3]  # a proof of each is dear


def facial_reductions(program: ChannelProgram) -> Iterator[FacialReduction]:
    """Yield the first reduction that a row or an auxiliary allows.

    Without one, what rows would leave whose bound is next to what is leaked without a release.
    The optimum there is allowed here, with room, and next to the best.
    """
    if (first := facial_reduction(program)) is not None:
        yield first
        return
    for name, row in program.constraints.items():
        rows = program.n + program.m * sum(program.views[v].size for v in row.expression.weights)
        if row.linear or rows * program.n * program.m > _LARGE:
            continue
        if (least := least_leakage(program, name, _NEAR)) is not None:
            yield replace(_to_least_leakage(program, name, least), edge=False, near=True)


def facial_reduction(program: ChannelProgram) -> FacialReduction | None:
    """Return the first reduction that a row or an auxiliary allows, or None."""
    fixed = constant_channel(program, zero_multipliers)
    if fixed is not None and fixed.law is not None:
        return _to_constant(program, fixed.name, fixed.law, fixed.dual)
    for name, row in program.constraints.items():
        if (least := least_leakage(program, name)) is not None:
            return _to_least_leakage(program, name, least)
        if row.linear and row.sense == "<=" and not row.per_output:
            value, span = _least_cost(program, name)
            if float(row.bounds(program.m)) <= value + _EDGE * span:  # b_j is the row's minimum
                cost = program.mass[:, None] * program.cost(row.expression)
                return _to_least_moves(program, name, span, cost)
    for name, aux in program.auxiliaries.items():
        if aux.kind == "ratio" and program.upper is not None:
            # outputs that are forbidden to some letters: a_y ≤ 0, and so to all
            forbidden = (program.upper == 0).any(axis=0) & (program.upper > 0).any(axis=0)
            if program.lower is not None:  # a floor there is a contradiction, for phase one
                forbidden &= (program.lower == 0).all(axis=0)
            if forbidden.any():
                return _to_other_outputs(program, name, forbidden)
    return None


def _to_constant(program: ChannelProgram, name: str, law: Exact, dual: Dual) -> FacialReduction:
    """Allow the best constant channel alone: its multipliers are known."""
    only = np.tile(law, (program.n, 1))
    inner = replace(program, constraints={}, auxiliaries={}, lower=only, upper=only)
    return FacialReduction(program, name, inner, lambda *_: dual, program.scale, edge=False)


def _without(program: ChannelProgram, name: str) -> dict[str, Constraint]:
    return {key: row for key, row in program.constraints.items() if key != name}


def _to_least_moves(
    program: ChannelProgram, name: str, span: float, cost: FloatArray
) -> FacialReduction:
    """Allow only moves of least cost, and drop the row (E19), which leaves no point as in (P19).

    Where floors and ceilings make moves of different costs necessary, all below the dearest of them
    are at their ceilings, all above it at their floors.
    """
    excess = cost - program.least(cost)[1][:, None]
    tie = _TIE * span * program.mass[:, None]
    low = np.zeros_like(cost) if program.lower is None else program.lower
    high = np.ones_like(cost) if program.upper is None else program.upper
    upper = np.where(excess > tie, low, high)
    lower = np.where(excess < -tie, high, low)
    inner = replace(program, constraints=_without(program, name), lower=lower, upper=upper)

    def lift(dual: Dual, lam: float) -> Dual:
        return replace(dual, multipliers={**dual.multipliers, name: np.array(lam)})

    return FacialReduction(program, name, inner, lift, program.scale / span)


def _to_least_leakage(program: ChannelProgram, name: str, least: LeastLeakage) -> FacialReduction:
    """Demand what a row says of the faces of its views.

    With weight ω large, multipliers of directions are worth what they move the scores by, but for
    O(1/ω) (E21).
    """
    row, inner = program.constraints[name], least.program

    def lift(dual: Dual, lam: float) -> Dual:
        value = np.full(program.m, lam) if row.per_output else np.array(lam)
        if least.score:
            value = value + _nonnegative(dual, inner, least.score)
        multipliers = {k: v for k, v in dual.multipliers.items() if k in program.constraints}
        lifted = replace(dual, multipliers={**multipliers, name: value})
        scores, weights = dict(dual.scores), lifted.weights(program)
        for view, face in least.faces.items():
            scores[view] = np.tile(face.parameters[:, None], (1, program.m))
        for key, (view, i) in least.directions.items():
            share = _nonnegative(dual, inner, key) / (weights[view] * program.unit(view))
            # s + Σ_i μ_i u_i/ω (E21)
            scores[view] += np.outer(least.faces[view].parameter_directions[i], share)
        return replace(lifted, scores=scores)

    rounded = any(face.score.any() for face in least.faces.values())  # λ F(p) − λ b, in floats
    lost = 1e-9 if rounded else 1e-12
    return FacialReduction(program, name, inner, lift, program.scale, lost=lost)


def _nonnegative(dual: Dual, inner: ChannelProgram, name: str) -> FloatArray:
    """Return multipliers of a row for each output, made ≥ 0.

    Of an equality by what is the same at every output: its rows add up to 0.
    """
    each = np.array(dual.multipliers[name], float)
    if inner.constraints[name].sense == "==":
        each[-1] = 0.0  # whose row is empty
        each -= each.min()
    return each


def _to_other_outputs(program: ChannelProgram, name: str, forbidden: np.ndarray) -> FacialReduction:
    """Forbid an output to all letters where bounded ratios and one forbidden move do so.

    With multipliers η = λ of K(s, y) ≤ e^ε a_y, and μ of a_y ≤ K(s₀, y) = 0 of the same weight.
    """
    assert program.upper is not None
    inner = replace(program, upper=np.where(forbidden, 0.0, program.upper))
    barred = program.upper == 0
    mass, bound = program.mass[:, None], program.auxiliaries[name].bound

    def lift(dual: Dual, lam: float) -> Dual:
        mu, eta = (np.array(side) for side in dual.auxiliaries[name])
        eta[:, forbidden] = np.where(barred, 0.0, lam)[:, forbidden]
        weight = (mass * eta).sum(axis=0) * bound  # e^ε Σ p η of each output
        share = np.where(barred, 1.0, 0.0) / (mass * barred).sum(axis=0).clip(TINY)
        # (E22), and a little more: a_y may have a price, but none below 0
        mu[:, forbidden] = (share * weight * (1 + 1e-9))[:, forbidden]
        return replace(dual, auxiliaries={**dual.auxiliaries, name: (mu, eta)})

    return FacialReduction(program, name, inner, lift, program.scale, edge=False)


# ---- a strictly feasible channel ---------------------------------------------------------------


def _stricter(aux: Auxiliary, share: float) -> float:
    least = 0.0 if isinstance(aux, Excess) else 1.0  # of constant channels: δ = 0, e^ε = 1
    return least + (float(aux.bound) - least) * (1.0 - share)


def tightened(program: ChannelProgram, share: float) -> ChannelProgram:
    """Return the program with every inequality stricter by ``share`` of its span.

    A row per output is tightened in proportion to the output's mass, so that an output of mass
    0 still satisfies it: some criteria leave certain outputs no other choice.
    """
    rows: dict[str, Constraint] = dict(program.constraints)
    for name, row in program.constraints.items():
        if row.sense == "==" or least_leakage(program, name) is not None:
            continue
        cost = program.cost(row.expression)
        span = float(np.abs(cost).max() if row.per_output else np.ptp(cost))
        stricter = share * (span or sum(program.sizes(row.expression)))
        if row.per_output:
            cost = np.broadcast_to(stricter, (program.n, program.m))
            tighter = Expression(cost=cost, per_output=True)
            rows[name] = replace(row, expression=row.expression + tighter)
        else:
            rows[name] = replace(row, bound=row.number - Fraction(stricter))
    auxiliaries = {
        name: replace(aux, bound=_stricter(aux, share)) for name, aux in program.auxiliaries.items()
    }
    return replace(program, constraints=rows, auxiliaries=auxiliaries)
