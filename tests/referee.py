"""The referee: every solved problem of the tests, problems/ and figures/ passes through it.

It recomputes the optimality conditions from the program's data in plain loops of its own,
in nats per atom, and shares no formula with the package: primal feasibility in exact
rationals, dual feasibility, complementarity, stationarity, and the enclosure they imply.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.additive import dense
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Expression
from cvxprivacy.solvers.strategy_generation import Relaxed
from cvxprivacy.typing import Solution
from tests.second_checker.measures import Measure


def atoms_of(program: ChannelProgram) -> list[tuple[int, int, float]]:
    total = program.law.sum()
    return [(a, s, v / total) for (a, s), v in np.ndenumerate(program.law) if v > 0]


def unit(program: ChannelProgram) -> float:
    return math.log(2.0) if program.units == "bits" else 1.0


def joint_of(program: ChannelProgram, view: str, channel: np.ndarray) -> np.ndarray:
    """Return J(v, y) by visiting every atom."""
    labels = program.views[view].labels
    joint = np.zeros((program.views[view].size, program.m))
    for a, s, mass in atoms_of(program):
        if labels[a, s] >= 0:
            joint[labels[a, s]] += mass * channel[s]
    return joint


def reference_of(program: ChannelProgram, view: str) -> np.ndarray:
    labels = program.views[view].reference
    labels = program.views[view].labels if labels is None else labels
    pi = np.zeros(program.views[view].size)
    for a, s, mass in atoms_of(program):
        if labels[a, s] >= 0:
            pi[labels[a, s]] += mass
    return pi / pi.sum()


def cost_of(program: ChannelProgram, term: Expression) -> np.ndarray:
    """Return the coefficient of K(s, y) in a term."""
    out = np.zeros((program.n, program.m))
    if term.cost is None:
        return out
    cost = dense(term.cost)
    for a, s, mass in atoms_of(program):
        layer = cost if cost.ndim == 2 else cost[a if len(cost) > 1 else 0]
        out[s] += mass * np.asarray(layer[s], float)
    return out


def columns_of(program: ChannelProgram, term: Expression, channel: np.ndarray) -> np.ndarray:
    """Return each output's share of a term."""
    value = (cost_of(program, term) * channel).sum(axis=0)
    for view, weight in term.weights.items():
        joint, pi = joint_of(program, view, channel), reference_of(program, view)
        for y in range(program.m):
            phi = leaked(program, view, joint[:, y], pi)
            value[y] += float(np.broadcast_to(weight, program.m)[y]) * phi
    return value


def leaked(program: ChannelProgram, view: str, joint: np.ndarray, pi: np.ndarray) -> float:
    """Return Φ of a column: information in floats, other measures as the second checker has it."""
    if program.views[view].informs:
        q, pairs = joint.sum(), zip(joint, pi, strict=True)
        return sum(j * math.log(j / (p * q)) for j, p in pairs if j > 0) / unit(program)
    low, high = measure_of(program, view, pi).value([Fraction(float(j)) for j in joint])
    return float(low + high) / 2


def measure_of(program: ChannelProgram, view: str, pi: np.ndarray) -> Measure:
    law = [Fraction(float(p)) for p in pi]
    data = json.loads(json.dumps(program.views[view].measure.data()))
    return Measure(data, [p / sum(law) for p in law], program.units)


def exact_linear(
    program: ChannelProgram, term: Expression, numerators: list[list[int]], denominator: int
) -> Fraction:
    law = [[Fraction(float(v)) for v in row] for row in program.law]
    cost = dense(term.cost)
    layers = cost if cost.ndim == 3 else cost[None]
    value = Fraction(0)
    for a, layer in enumerate(layers):  # one for all a, or one for each
        for s, row in enumerate(numerators):
            mass = law[a][s] if len(layers) > 1 else sum(atoms[s] for atoms in law)
            if mass:
                pairs = zip(layer[s].tolist(), row, strict=True)
                value += mass * sum(Fraction(c) * k for c, k in pairs if c and k)
    return Fraction(term.constant) + value / denominator / sum(map(sum, law))


def size_of(program: ChannelProgram, solution: Solution) -> float:
    """Return the size by which the gap is judged, from its definition."""
    values = [steps_of(program, part) for part in program.objectives.values()]
    step, most, least = (np.array(column) for column in zip(*values, strict=True))
    return max(step.min(), min(solution.upper - least.max(), most.max()))


def steps_of(program: ChannelProgram, objective: Expression) -> tuple[float, float, float]:
    """Return the least step of an objective, the greatest, and its least cost."""
    weights = {view: float(np.max(w)) for view, w in objective.weights.items()}
    uniform = np.full((program.n, program.m), 1.0 / program.m)
    for view, weight in weights.items():
        share = joint_of(program, view, uniform).sum()
        weights[view] = min(weight, max(weight * share, 1.0))
    information = {k: measure_of(program, k, reference_of(program, k)) for k in weights}
    nats = [w * float(information[view].step) for view, w in weights.items() if w > 0]
    highest = [w * float(information[view].unit) for view, w in weights.items() if w > 0]
    mass = program.law.sum(axis=0) / program.law.sum()
    steps, most, least = list(nats), max(highest, default=0.0), float(objective.constant)
    for view, measure in information.items():
        if not measure.divergence:
            joint = joint_of(program, view, uniform).sum(axis=1)
            none = leaked(program, view, joint, reference_of(program, view))
            least += float(np.min(objective.weights[view])) * none
    if objective.cost is not None:
        cost = cost_of(program, objective) / mass[:, None]
        if program.upper is not None:
            cost = np.where(np.asarray(program.upper, float) > 0, cost, np.nan)
        above = cost - np.nanmin(cost, axis=1, keepdims=True)
        positive = above[above > 1e-12 * np.nanmax(np.abs(cost), initial=1e-300)]
        steps += positive.tolist()
        most += float(positive.max(initial=0.0))
        least += float(mass @ np.nanmin(cost, axis=1))
    return min(steps, default=1.0), most or 1.0, least


def means_of(program: ChannelProgram, dual: Any) -> dict[str, float]:
    """Return the weights of the objectives, of which the first has what is left of 1."""
    first, *others = program.objectives
    shares = {k: dual.shares.get(k, 0.0) for k in others}
    assert all(share >= 0.0 for share in shares.values())
    total = sum(shares.values())
    means = {k: share / max(total, 1.0) for k, share in shares.items()}
    return {first: max(1.0 - total, 0.0), **means}


def by_hand(problem: Any, solution: Solution | None = None) -> None:
    """Compare a solution with the paper's program, ``problem.problem``, solved by CVXPY alone."""
    solution, shown = solution or problem.solve(), problem.problem
    assert shown.is_dcp(dpp=True)
    value = shown.solve()
    scale = float(getattr(problem.program, "scale", 1.0))  # one nat, or the span of the costs
    assert abs(value - solution.value) <= 1e-5 * max(abs(solution.value), 1e-3 * scale), (
        value,
        solution.value,
    )
    assert shown.value == float(shown.objective.value)
    for name in ("budget", "leakage_cap", "max_leakage", "max_rate"):
        if name in solution.prices:
            laws = getattr(getattr(problem, "alphabet", None), "laws", [""])
            rows = [f"{name}[{law}]" if law else name for law in laws]
            price = -sum(float(problem.constraints[row].dual_value) for row in rows)
            room = 1e-5 * max(abs(solution.prices[name]), 1e-3) + 1e-7
            assert abs(price - solution.prices[name]) <= room, name
    assert set(solution.prices) <= set(problem.parameters), solution.prices


def check(
    solution: Solution,
    *,
    problem: Any = None,
    status: str = "certified",
    verify: bool = True,
) -> None:
    """Raise AssertionError unless the solution is what its status says.

    Given its problem, the solution is also compared with that problem solved by hand in CVXPY:
    value and multipliers to the solver's accuracy, so pass small and well-conditioned ones.
    """
    if problem is not None:
        by_hand(problem, solution)
    certificate, program = solution.certificate, solution.certificate.program
    assert solution.status == status, solution
    tolerance = {"default": 1e-6, "high": 1e-9}[certificate.accuracy] * size_of(program, solution)
    assert solution.lower <= solution.upper
    slack = 1e-9 * tolerance  # of floats here
    assert not (status == "certified" and solution.gap > tolerance + slack)
    assert not (status == "loose" and solution.gap < tolerance - slack)
    if verify:
        assert certificate.verify()

    # primal: the channel's integers satisfy every linear constraint exactly
    primal, dual = certificate.primal, certificate.dual
    numerators = [[int(k) for k in row] for row in primal.numerators]
    full = int(primal.denominator)
    assert all(sum(row) == full and min(row) >= 0 for row in numerators)
    channel = np.array([[k / full for k in row] for row in numerators])
    flat = [k for row in numerators for k in row]
    if program.lower is not None:
        lower = program.lower.ravel().tolist()
        assert all(Fraction(b) <= Fraction(k, full) for k, b in zip(flat, lower, strict=True))
    if program.upper is not None:
        upper = program.upper.ravel().tolist()
        assert all(Fraction(b) >= Fraction(k, full) for k, b in zip(flat, upper, strict=True))
    slack = 0.0
    for name, row in program.constraints.items():
        value = columns_of(program, row.expression, channel)
        value = (
            value if row.per_output else np.array([value.sum() + float(row.expression.constant)])
        )
        bound = np.atleast_1d(row.bounds(program.m))
        violation = value - bound
        if row.sense == "==":
            assert np.abs(violation).max() <= 1e-12 * max(1.0, np.abs(bound).max()), name
        else:
            assert violation.max() <= 1e-12 * max(1.0, np.abs(bound).max()), name
        if row.linear and not row.per_output and row.expression.cost is not None:
            left = exact_linear(program, row.expression, numerators, full)
            assert left == row.bound if row.sense == "==" else left <= row.bound, name
        lam = np.atleast_1d(np.asarray(dual.multipliers[name], float))
        assert row.sense == "==" or (lam >= 0).all(), f"{name}: a multiplier of the wrong sign"
        slack += float((lam * -violation).sum())

    # value and terms: what the solution says is what the channel does
    worst = program.objectives
    values = {k: columns_of(program, part, channel).sum() for k, part in worst.items()}
    value = max(values[k] + float(part.constant) for k, part in worst.items())
    assert math.isclose(value, solution.value, rel_tol=1e-11, abs_tol=1e-12)
    for name, term in program.terms.items():
        outcome = columns_of(program, term, channel).sum() + float(term.constant)
        assert math.isclose(outcome, float(solution.terms[name]), rel_tol=1e-11, abs_tol=1e-12), (
            name
        )

    if isinstance(certificate, Relaxed):  # its lower end is another program's
        assert solution.lower == certificate.relaxation.lower
        return

    # dual: posteriors are laws, reduced costs are nonnegative, and both make the lower end
    assert dual.objective == 1
    means = means_of(program, dual)
    g = sum(mean * cost_of(program, worst[k]) for k, mean in means.items())
    constant = sum(mean * float(worst[k].constant) for k, mean in means.items())
    slack += value - sum(means[k] * (values[k] + float(worst[k].constant)) for k in means)
    stationarity = largest = 0.0
    for view in program.views:
        pi, joint = reference_of(program, view), joint_of(program, view, channel)
        omega = np.zeros(program.m)
        for k, mean in means.items():
            omega = omega + mean * np.asarray(worst[k].weights.get(view, 0.0), float)
        for name, row in program.constraints.items():
            beta = np.asarray(row.expression.weights.get(view, 0.0), float)
            omega = omega + np.asarray(dual.multipliers[name]) * beta
        largest = max(largest, float(np.max(omega)))
        score = np.asarray(dual.scores[view], float)
        labels = program.views[view].labels
        if not program.views[view].informs:
            if not omega.any():
                continue
            information = measure_of(program, view, pi)
            columns = [
                information.below([Fraction(float(x)) for x in column]) for column in score.T
            ]
            slopes = np.array(columns, float).T
            for a, s, mass in atoms_of(program):
                if labels[a, s] >= 0:
                    g[s] += omega * mass * slopes[labels[a, s]]
            for y in range(program.m):
                lost = leaked(program, view, joint[:, y], pi) - joint[:, y] @ slopes[:, y]
                stationarity += omega[y] * float(lost)
            continue
        posterior = solution.posteriors[view]
        assert np.allclose(posterior.sum(axis=0), 1.0, atol=1e-12)
        assert (posterior > 0).all()
        top = score.max(axis=0)
        less = (pi[:, None] * np.expm1(score - top)).sum(axis=0)
        norm = np.where(less > -0.5, np.log1p(np.maximum(less, -0.5)), 0.0)
        norm = np.where(less > -0.5, norm, np.log((pi[:, None] * np.exp(score - top)).sum(axis=0)))
        log_ratio = score - top - norm
        assert np.allclose(pi[:, None] * np.exp(log_ratio), posterior, atol=1e-12)
        for a, s, mass in atoms_of(program):
            if labels[a, s] >= 0:
                g[s] += omega * mass * log_ratio[labels[a, s]] / unit(program)
        for y in range(program.m):
            q = joint[:, y].sum()
            for v in range(len(pi)):
                if joint[v, y] > 0:
                    posterior_log = math.log(joint[v, y] / (q * pi[v])) - log_ratio[v, y]
                    stationarity += omega[y] * joint[v, y] * posterior_log / unit(program)
    for name, row in program.constraints.items():
        lam = np.asarray(dual.multipliers[name], float)
        g = g + cost_of(program, row.expression) * lam
        constant += float((lam * (float(row.expression.constant) - row.bounds(program.m))).sum())
    entries = 0.0
    if program.auxiliaries:
        return  # their rows are refereed by the certificate's own verification
    if program.lower is None and program.upper is None:
        entries = float((channel * (g - g.min(axis=1, keepdims=True))).sum())
        lower = g.min(axis=1).sum() + constant
        noise = 1e-10 * program.scale + 1e-15 * largest  # a huge multiplier times rounding
        assert math.isclose(lower, solution.lower, rel_tol=1e-9, abs_tol=noise)
        reduced = solution.duals["floor"]
        assert (reduced >= 0).all()
        letters = len(reduced)  # of all, or but for one that is nobody's
        mass = program.mass[:letters, None]
        mass = mass if letters == program.n else mass / mass.sum()
        left = g[:letters] - solution.duals["mass"][:, None] * mass - reduced * mass
        assert np.allclose(left, 0, atol=1e-9 + noise + 1e-15 * np.abs(g).max())
        # complementarity and stationarity are what separates the two ends, and nothing else
        assert entries >= -1e-12
        assert slack >= -noise
        assert stationarity >= -noise
        parts = entries + slack + stationarity
        assert math.isclose(parts, solution.gap, rel_tol=1e-3, abs_tol=noise)
    residuals = certificate.residuals
    assert set(residuals) == {"primal", "dual", "complementarity", "stationarity"}
    assert math.isclose(
        residuals["complementarity"] + residuals["stationarity"],
        solution.gap,
        rel_tol=1e-3,
        abs_tol=1e-10 * program.scale + 1e-15 * max(largest, np.abs(g).max()),
    )


def check_against_conic(problem: Any) -> None:
    """Check the own solver's optimum, found without another's help, beside the conic one."""
    solution = problem.solve(method="structured")
    check(solution)
    assert not any("CLARABEL" in line for line in solution.log)
    conic = problem.solve(method="conic")
    assert solution.lower <= conic.upper
    assert conic.lower <= solution.upper
