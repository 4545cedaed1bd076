"""What needs no iterations: contradictions, constant channels and faces.

A row whose bound equals its minimum leaves no interior.  A linear one (a budget D = D_min)
leaves the *face* of least-cost moves; an information row with bound 0 (t = 0, no leakage at all)
leaves the linear space J = π q.  The face is solved as a smaller program, and its multipliers are
those of the full program with the row's own multiplier large enough; the certificate never
hears of faces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.model.information import nat
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression

__all__ = ["Face", "constant", "contradictions", "face", "idle", "tightened"]

_EDGE = 1e-11  # a bound within this share of the row's span of its minimum is at the edge


def _zero(program: ChannelProgram, multipliers: Mapping[str, float], objective: int) -> Dual:
    """Return these multipliers, and the posteriors of a release that tells nothing: r = p_k."""
    scores = {}
    for view, seen in program.views.items():
        if seen.reference is None:
            continue  # r = π
        prior = program.prior(view) / program.reference(view)
        column = np.log(np.maximum(prior, 1e-300))
        scores[view] = np.tile(column[:, None], (1, program.m))
    given = {name: np.asarray(value, float) for name, value in multipliers.items()}
    return Dual(scores, given, {}, objective).cleaned(program)


def idle(program: ChannelProgram) -> Dual:
    """Return zero multipliers and r = p_k: the bound that needs no solver, exact where R = 0."""
    return _zero(program, {}, 1)


def known(program: ChannelProgram, term: Expression) -> float:
    """Return what a term's observers know before any release, such as I(W; Z)."""
    weights = term.columns(program.m).items()
    value = 0.0
    for view, weight in weights:
        prior, seen = program.prior(view), program.view_matrix(view).sum()
        on = prior > 0
        told = (prior[on] * np.log(prior[on] / program.reference(view)[on])).sum()
        value += float(weight.min() * seen * told) * nat(program.units)
    return value


def least(program: ChannelProgram, name: str) -> tuple[float, float, FloatArray]:
    """Return the minimum of a row's linear part, its span, and its costs p(s)C(s, y)."""
    term = program.constraints[name].expression
    cost = program.mass[:, None] * program.cost(term)
    value = float((cost * program.least(cost)[0]).sum()) + float(term.constant)
    span = float(np.ptp(program.cost(term))) or 1.0
    return value, span, cost


def contradictions(program: ChannelProgram) -> list[Dual]:
    """Return multipliers that might prove, row by row, that nothing is feasible."""
    found = []
    low = program.lower is not None and (program.lower.sum(axis=1) > 1).any()
    high = program.upper is not None and (program.upper.sum(axis=1) < 1).any()
    if low or high:
        found.append(_zero(program, {}, 0))
    for name, row in program.constraints.items():
        if row.per_output or row.sense == "==":
            continue
        value, span, _ = least(program, name)
        value, span = (value, span) if row.linear else (value + known(program, row.expression), 1.0)
        if float(row.bounds(program.m)) < value + _EDGE * span:
            found.append(_zero(program, {name: 1.0 / span}, 0))
    return found


def constant(program: ChannelProgram) -> tuple[FloatArray, Dual] | None:
    """Return a channel and zero multipliers if they close the gap, else None.

    Where the letters reveal nothing by themselves, each stays where its rows cost least.
    Beyond D_max = min_y E d(X, y) nothing need be revealed: a constant channel.  Where no
    constraint binds and information is free, every letter makes its cheapest move.
    """
    moves = np.zeros((program.n, program.m))
    for row in program.constraints.values():
        if row.linear and row.sense == "<=" and not row.per_output:
            span = float(np.ptp(program.cost(row.expression))) or 1.0
            moves = moves + program.cost(row.expression) / span
    cost = program.mass[:, None] * moves
    objective = program.mass[:, None] * program.cost(program.objective)
    same = np.zeros((program.n, program.m))
    same[:, np.lexsort((cost.sum(axis=0), objective.sum(axis=0)))[0]] = 1.0
    dual = idle(program)
    stay = program.least(cost)[0]
    for channel in (stay, same, _by_group(program, objective + cost), program.least(objective)[0]):
        gap = program.value(program.objective, channel) - dual.lower_bound(program)
        if program.violation(channel) <= 0 and gap <= 1e-12 * program.scale:
            return channel, dual
    return None


def _by_group(program: ChannelProgram, cost: FloatArray) -> FloatArray:
    """Return the cheapest channel that is constant for all letters that one observer sees.

    Where user and encoder know Z, that reveals nothing beyond it.
    """
    groups = {tuple(program.view_matrix(view).sum(axis=0) > 0) for view in program.views}
    channel = np.zeros((program.n, program.m))
    for group in sorted(groups, key=sum, reverse=True):  # the smallest have the last word
        seen = np.array(group)
        channel[seen] = np.eye(program.m)[(cost[seen]).sum(axis=0).argmin()]
    return channel


@dataclass(frozen=True, eq=False)
class Face:
    """A smaller program with the feasible set of ``parent``, and the way back.

    ``lift(dual, λ)`` returns multipliers of the parent that lose nothing if λ is large enough,
    in units of ``unit``; ``edge`` tells that ``name``'s bound is the least that is feasible.
    """

    parent: ChannelProgram
    name: str
    program: ChannelProgram
    lift: Callable[[Dual, float], Dual]
    unit: float
    edge: bool = True

    def dual(self, dual: Dual) -> Dual:
        """Return multipliers of the parent with the least λ that loses nothing."""
        tried = [self.lift(dual, self.unit * 2.0**power) for power in range(-8, 41)]
        bounds = [whole.lower_bound(self.parent) for whole in tried]
        enough = max(bounds) - 1e-12 * self.parent.scale
        return next(whole for whole, bound in zip(tried, bounds, strict=True) if bound >= enough)


def face(program: ChannelProgram) -> Face | None:
    """Return the first face that a row or an auxiliary leaves, or None."""
    for name, row in program.constraints.items():
        if row.silences:
            return _silence(program, name)
        if row.linear and row.sense == "<=" and not row.per_output:
            value, span, cost = least(program, name)
            if float(row.bounds(program.m)) <= value + _EDGE * span:
                return _least_moves(program, name, span, cost)
    for name, aux in program.auxiliaries.items():
        if aux.kind == "ratio" and program.upper is not None:
            shut = (program.upper == 0).any(axis=0) & (program.upper > 0).any(axis=0)
            if program.lower is not None:  # a floor there is a contradiction, for phase one
                shut &= (program.lower == 0).all(axis=0)
            if shut.any():
                return _shut(program, name, shut)
    return None


def _least_moves(program: ChannelProgram, name: str, span: float, cost: FloatArray) -> Face:
    """Allow only moves of least cost, and drop the row."""
    excess = cost - program.least(cost)[1][:, None]
    tie = 1e-14 * span * program.mass[:, None]
    low = np.zeros_like(cost) if program.lower is None else program.lower
    high = np.ones_like(cost) if program.upper is None else program.upper
    upper = np.where(excess > tie, low, high)
    lower = np.where(excess < -tie, high, low)
    rows = {key: other for key, other in program.constraints.items() if key != name}
    inner = replace(program, constraints=rows, lower=lower, upper=upper)

    def lift(dual: Dual, lam: float) -> Dual:
        return replace(dual, multipliers={**dual.multipliers, name: np.array(lam)})

    return Face(program, name, inner, lift, program.scale / span)


def _silence(program: ChannelProgram, name: str) -> Face:
    """Demand J = π q instead of no information.

    Multipliers μ of J = π q enter the posterior of the view: with weight ω large,
    ω log(r/π) → α log(r₀/π) + μ for r ∝ π exp((α log(r₀/π) + μ)/ω).
    """
    row = program.constraints[name]
    rows = {key: other for key, other in program.constraints.items() if key != name}
    inner = replace(program, constraints={**rows, **_independence(program, name)})

    def lift(dual: Dual, lam: float) -> Dual:
        value = np.full(program.m, lam) if row.per_output else np.array(lam)
        multipliers = {k: v for k, v in dual.multipliers.items() if k in program.constraints}
        whole = Dual(dual.scores, {**multipliers, name: value}, dual.auxiliaries)
        scores, before, after = dict(dual.scores), dual.weights(inner), whole.weights(program)
        for view in row.expression.weights:
            mu = np.zeros((program.views[view].size, program.m))
            for v in range(len(mu) - 1):
                mu[v] = dual.multipliers[_equality(name, view, v)]
            kept = before[view] * dual.log_posterior(inner, view)
            scores[view] = (kept + mu / nat(program.units)) / after[view]
        return replace(whole, scores=scores)

    return Face(program, name, inner, lift, program.scale)


def _equality(row: str, view: str, v: int) -> str:
    return f"{row}: {view} = {v}"


def _independence(program: ChannelProgram, name: str) -> dict[str, Constraint]:
    """Return J(v, y) = π(v) q(y), one row per output, for every v but the last of each view.

    The last follows from the others; rounded on its own it would contradict them.
    """
    rows: dict[str, Constraint] = {}
    for view in program.constraints[name].expression.weights:
        matrix = program.view_matrix(view).toarray()
        seen = matrix.sum(axis=0)
        for v, share in enumerate(program.reference(view)[:-1]):
            cost = np.tile(((matrix[v] - share * seen) / program.mass)[:, None], (1, program.m))
            term = Expression("independence", cost=cost, per_output=True)
            bounds = (Fraction(0),) * program.m
            rows[_equality(name, view, v)] = Constraint(term, "==", bounds)
    return rows


def _shut(program: ChannelProgram, name: str, shut: np.ndarray) -> Face:
    """Forbid an output to all letters where bounded ratios and one forbidden move do so.

    With multipliers λ of K(s, y) ≤ e^ε a_y, and the same weight on a_y ≤ K(s₀, y) = 0.
    """
    assert program.upper is not None
    inner = replace(program, upper=np.where(shut, 0.0, program.upper))
    barred = program.upper == 0

    def lift(dual: Dual, lam: float) -> Dual:
        mu, eta = (np.array(part) for part in dual.auxiliaries[name])
        eta[:, shut] = np.where(barred, 0.0, lam)[:, shut]
        weight = (program.mass[:, None] * eta).sum(axis=0) * program.auxiliaries[name].bound
        share = np.where(barred, 1.0, 0.0) / (program.mass[:, None] * barred).sum(axis=0).clip(
            1e-300
        )
        mu[:, shut] = (share * weight * (1 + 1e-9))[:, shut]
        return replace(dual, auxiliaries={**dual.auxiliaries, name: (mu, eta)})

    return Face(program, name, inner, lift, program.scale, edge=False)


def tightened(program: ChannelProgram, share: float) -> ChannelProgram:
    """Return the program with every inequality stricter by ``share`` of its span.

    A row per output is tightened in proportion to the output's mass, so that an output of mass
    0 still satisfies it: some criteria leave certain outputs no other choice.
    """
    rows: dict[str, Constraint] = {}
    for name, row in program.constraints.items():
        rows[name] = row
        if row.sense == "==" or row.silences:
            continue
        cost = program.cost(row.expression)
        weights = [
            float(np.max(w, initial=0.0)) for w in row.expression.columns(program.m).values()
        ]
        span = (float(np.abs(cost).max()) if row.per_output else float(np.ptp(cost))) or sum(
            weights
        )
        if row.per_output:
            stricter = row.expression + Expression(
                cost=np.full((program.n, program.m), share * span)
            )
            rows[name] = replace(row, expression=stricter)
        else:
            rows[name] = replace(row, bound=row.bound - Fraction(share * span))  # type: ignore[operator]
    auxiliaries = {
        name: replace(aux, bound=1.0 + (aux.bound - 1.0) * (1.0 - share))
        for name, aux in program.auxiliaries.items()
    }
    return replace(program, constraints=rows, auxiliaries=auxiliaries)
