"""Criteria and rules: satisfied exactly, certified, priced, and closed at their ends."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx as flint_context, fmpq
from scipy.optimize import linprog

import cvxprivacy as cpv
from tests import referee
from tests.lengths import rest_at_length

# ---- direct evaluation on the returned channel, in rationals and (for logs) 200-bit balls ----


def exact_channel(solution: cpv.Solution) -> list[list[Fraction]]:
    primal = solution.certificate.primal
    return [[Fraction(int(k), primal.denominator) for k in row] for row in primal.numerators]


def exact_joint(problem, channel) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Return counts-weighted J(w, x̂) and the masses of W, from the program's atoms."""
    joint = [[Fraction(0)] * problem.alphabet.m for _ in problem.alphabet.w_support]
    for (a, s), mass in np.ndenumerate(problem.alphabet.law):
        if mass:
            row = joint[problem.alphabet.w_of[a, s]]
            for y in range(problem.alphabet.m):
                row[y] += Fraction(float(mass)) * channel[s][y]
    return joint, [sum(row) for row in joint]


def ball(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def divergence(column: list[Fraction], masses: list[Fraction]) -> arb:
    """D(column ‖ masses), both normalised, exactly 0 where they are proportional."""
    q, total = sum(column), sum(masses)
    if all(j * total == m * q for j, m in zip(column, masses, strict=True)):
        return arb(0)
    terms = (
        ball(j / q) * ball(j * total / (q * m)).log()
        for j, m in zip(column, masses, strict=True)
        if j
    )
    return sum(terms, arb(0))


def satisfied(problem, solution, criterion) -> bool:
    """Decide a criterion from its definition, on the integers of the returned channel."""
    flint_context.prec = 200
    channel = exact_channel(solution)
    joint, masses = exact_joint(problem, channel)
    unit = arb(2).log() if problem.units == "bits" else arb(1)
    total = sum(masses)
    columns = [c for c in zip(*joint, strict=True) if sum(c)]
    kind = type(criterion).__name__
    if kind == "TCloseness":
        t = ball(Fraction(criterion.t)) * unit
        return all(divergence(c, masses) <= t for c in columns)
    if kind == "LDiversity":
        return (
            all(
                -sum((ball(j / sum(c)) * ball(j / sum(c)).log() for j in c if j), arb(0))
                >= ball(Fraction(criterion.l)).log()
                for c in columns
            )
            or criterion.l == 1
        )
    if kind == "KAnonymity":
        # every record of a cell that the encoder sees is released alike
        rows = []
        for s, column in enumerate(problem.alphabet.law.T):
            mass = sum(Fraction(float(a)) for a in column)
            rows.append([mass * channel[s][y] for y in range(problem.alphabet.m)])
        masses_x = [sum(row) for row in rows]
        records = problem.source.records
        limit = ball(Fraction(records) / Fraction(criterion.k)).log()
        return all(
            divergence(list(c), masses_x) <= limit for c in zip(*rows, strict=True) if sum(c)
        )
    if kind == "DeltaDisclosure":
        high, low = arb(criterion.delta).exp(), (-arb(criterion.delta)).exp()
        ratios = [
            ball(j * total / (sum(c) * m)) for c in columns for j, m in zip(c, masses, strict=True)
        ]
        exact = all(
            j * total == sum(c) * m for c in columns for j, m in zip(c, masses, strict=True)
        )
        return exact or all(low <= r <= high for r in ratios)
    if kind == "LeakageCap":
        parts = (ball(sum(c) / total) * divergence(c, masses) for c in columns)
        return sum(parts, arb(0)) <= ball(Fraction(criterion.b)) * unit
    if kind == "LocalPrivacy":
        factor = arb(criterion.epsilon).exp()
        return all(ball(max(c)) <= factor * ball(min(c)) for c in zip(*channel, strict=True))
    if kind == "MaximalLeakage":
        top = sum(max(c) for c in zip(*channel, strict=True))
        return top == 1 or ball(top).log() <= ball(Fraction(criterion.b)) * unit
    outputs, x_of = problem.alphabet.d.outputs, problem.alphabet.x_of
    own = [outputs.index(problem.source.x[x]) for x in x_of]
    if kind == "KeepProbability":
        floors = np.broadcast_to(criterion.p, len(problem.source.x))
        return all(channel[s][own[s]] >= Fraction(float(floors[x])) for s, x in enumerate(x_of))
    if kind == "ForbiddenMoves":
        return all(
            not channel[s][y] for s, x in enumerate(x_of) for y in range(problem.alphabet.m)
            if criterion.mask[x, y]
        )  # fmt: skip
    letter = [sum(Fraction(float(a)) for a in column) for column in problem.alphabet.law.T]
    released = [
        sum(m * row[y] for m, row in zip(letter, channel, strict=True))
        for y in range(problem.alphabet.m)
    ]
    before = [Fraction(0)] * problem.alphabet.m
    for s, mass in enumerate(letter):
        before[own[s]] += mass
    if kind == "PreserveMarginal":
        return released == before
    if kind == "PreserveMean":
        values = [Fraction(float(v)) for v in criterion.values]
        return sum(map(lambda p, v: p * v, released, values)) == sum(
            map(lambda p, v: p * v, before, values)
        )
    assert kind == "Linear"
    matrix = problem.alphabet.per_letter(criterion.matrix)
    value = sum(
        letter[s] * channel[s][y] * Fraction(float(matrix[s, y]))
        for s in range(problem.alphabet.n) for y in range(problem.alphabet.m)
    )  # fmt: skip
    bound = Fraction(criterion.bound) * total
    return value == bound if criterion.sense == "==" else value <= bound


# ---- random instances over all criteria and all pairs --------------------------------------


def far(n: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > max(1, (n + 1) // 2)


MAKE = {
    "t": lambda rng, s, n: cpv.TCloseness(rng.uniform(0.001, 0.3)),
    "l": lambda rng, s, n: cpv.LDiversity(1 + (2 ** s.entropy() - 1) * rng.uniform(0.3, 0.98)),
    "k": lambda rng, s, n: cpv.KAnonymity(int(rng.integers(2, max(3, s.records // 2)))),
    "delta": lambda rng, s, n: cpv.DeltaDisclosure(rng.uniform(0.05, 1.0)),
    "cap": lambda rng, s, n: cpv.LeakageCap(rng.uniform(0.1, 0.9) * s.information()),
    "epsilon": lambda rng, s, n: cpv.LocalPrivacy(rng.uniform(0.1, 3)),
    "maxl": lambda rng, s, n: cpv.MaximalLeakage(rng.uniform(0.1, 1) * math.log2(n)),
    "keep": lambda rng, s, n: cpv.KeepProbability(rng.uniform(0.05, 0.5)),
    "floors": lambda rng, s, n: cpv.KeepProbability(rng.uniform(0, 0.5, n)),
    "forbid": lambda rng, s, n: cpv.ForbiddenMoves(far(n)),
    "marginal": lambda rng, s, n: cpv.PreserveMarginal(),
    "mean": lambda rng, s, n: cpv.PreserveMean(np.arange(n)),
    "linear": lambda rng, s, n: cpv.Linear(np.eye(n), rng.uniform(0.2, 0.7), name="stay"),
}
KINDS = [(k,) for k in MAKE] + list(itertools.combinations(MAKE, 2))


def instance(seed: int):
    rng = np.random.default_rng([3, seed])
    w, n = (int(v) for v in rng.integers([2, 2], [5, 9]))
    counts = rng.integers(0, 40, (w, n))
    counts[0] += 1
    counts[:, 0] += 1
    source = cpv.DiscreteSource.from_counts(counts)
    random = cpv.Distortion(rng.random((n, n)) * (1 - np.eye(n)))
    d = cpv.ordinal(n) if rng.random() < 0.5 else random
    encoder = "wx" if rng.random() < 0.2 else "x"
    criteria = [MAKE[kind](rng, source, n) for kind in KINDS[seed % len(KINDS)]]
    if seed % 3:
        return cpv.MinimumDistortion(source, d, criteria, encoder=encoder)
    top = cpv.PrivacyDistortion(source, d, price=1).greatest_distortion
    return cpv.PrivacyDistortion(
        source, d, budget=rng.uniform(0.1, 0.9) * top, criteria=criteria, encoder=encoder
    )


def judged(seed: int) -> float | None:
    """Solve, check every criterion from its definition, return the relative width."""
    problem = instance(seed)
    solution = problem.solve(certify=False)
    if solution.gap > 1e-7 * problem.program.scale and solution.status != "infeasible":
        solution = problem.solve(certify=False, accuracy="high")
    if solution.status == "infeasible":
        assert solution.certificate.verify()
        return None
    if solution.channel is None:
        return math.inf
    for criterion in problem.criteria:
        assert satisfied(problem, solution, criterion), (seed, criterion)
    if solution.status == "certified":
        referee.check(solution, verify=seed % 10 == 0)
    return solution.gap / problem.program.scale


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_every_criterion_and_pair(seed):
    width = judged(seed)
    assert width is None or width <= 1e-7


@pytest.mark.long
def test_nearly_all_of_400_instances_are_narrow():
    widths = [w for w in (judged(seed) for seed in range(1000, 1400)) if w is not None]
    assert len(widths) >= 300
    assert np.mean(np.array(widths) <= 1e-7) >= 0.99


# ---- other methods -------------------------------------------------------------------------

COUNTS = np.array([[30, 12, 5, 3], [6, 14, 9, 4], [2, 5, 16, 21]])
SOURCE = cpv.DiscreteSource.from_counts(COUNTS)
ORDINAL = cpv.ordinal(4)


def by_rel_entr(criteria_of) -> float:
    """State least distortion by CVXPY's own atoms, on conditional probabilities, in nats."""
    law = COUNTS / COUNTS.sum()
    k = cp.Variable((4, 4), nonneg=True)
    joint = law @ k
    p_x, p_w = law.sum(axis=0), law.sum(axis=1)
    distortion = cp.sum(cp.multiply(p_x[:, None] * ORDINAL.matrix, k))
    rows = [cp.sum(k, axis=1) == 1, *criteria_of(k, joint, p_w, p_x)]
    return cp.Problem(cp.Minimize(distortion), rows).solve(solver="CLARABEL")


def kl(joint, p):
    q = cp.sum(joint, axis=0, keepdims=True)
    return cp.sum(cp.rel_entr(joint, p[:, None] @ q), axis=0), cp.sum(joint, axis=0)


STATED = {
    "t": (cpv.TCloseness(0.05), lambda k, j, w, x: [kl(j, w)[0] <= 0.05 * kl(j, w)[1]]),
    "l": (
        cpv.LDiversity(2.5),
        lambda k, j, w, x: [
            cp.sum(cp.rel_entr(j, np.ones((3, 1)) @ cp.sum(j, axis=0, keepdims=True)), axis=0)
            + math.log(2.5) * cp.sum(j, axis=0) <= 0
        ],
    ),
    "k": (
        cpv.KAnonymity(60),
        lambda k, j, w, x: [
            cp.sum(
                cp.rel_entr(
                    cp.multiply(x[:, None], k),
                    x[:, None] @ cp.sum(cp.multiply(x[:, None], k), axis=0, keepdims=True),
                ),
                axis=0,
            )
            <= math.log(127 / 60) * (x @ k)
        ],
    ),
    "delta": (
        cpv.DeltaDisclosure(0.4),
        lambda k, j, w, x: [
            j <= math.exp(0.4) * (w[:, None] @ cp.sum(j, axis=0, keepdims=True)),
            j >= math.exp(-0.4) * (w[:, None] @ cp.sum(j, axis=0, keepdims=True)),
        ],
    ),
    "cap": (cpv.LeakageCap(0.1), lambda k, j, w, x: [cp.sum(kl(j, w)[0]) <= 0.1]),
    "epsilon": (
        cpv.LocalPrivacy(1.0),
        lambda k, j, w, x: [k[s] <= math.e * k[r] for s in range(4) for r in range(4) if r != s],
    ),
    "maxl": (
        cpv.MaximalLeakage(0.6),
        lambda k, j, w, x: [cp.sum(cp.max(k, axis=0)) <= math.exp(0.6)],
    ),
}  # fmt: skip
RULES = {
    "keep": (cpv.KeepProbability(0.3), lambda k, j, w, x: [cp.diag(k) >= 0.3]),
    "forbid": (
        cpv.ForbiddenMoves(lambda a, b: abs(a - b) > 2),
        lambda k, j, w, x: [k[0, 3] == 0, k[3, 0] == 0],
    ),
    "marginal": (cpv.PreserveMarginal(), lambda k, j, w, x: [x @ k == x]),
    "mean": (
        cpv.PreserveMean([1.0, 2.0, 3.0, 4.5]),
        lambda k, j, w, x: [(x @ k) @ [1, 2, 3, 4.5] == x @ [1, 2, 3, 4.5]],
    ),
    "linear": (
        cpv.Linear(np.tri(4), 0.6),
        lambda k, j, w, x: [cp.sum(cp.multiply(np.tri(4) * x[:, None], k)) <= 0.6],
    ),
}


@pytest.mark.parametrize("privacy", STATED)
@pytest.mark.parametrize("rule", [None, *RULES])
def test_agrees_with_an_independent_statement(privacy, rule):
    stated = [STATED[privacy]] + ([RULES[rule]] if rule else [])
    problem = cpv.MinimumDistortion(SOURCE, ORDINAL, [c for c, _ in stated], units="nats")
    other = by_rel_entr(lambda *parts: [row for _, state in stated for row in state(*parts)])
    if math.isinf(other):
        with pytest.raises(cpv.InfeasibleError):
            problem.solve()
        return
    solution = problem.solve()
    referee.check(solution)
    assert solution.lower - 2e-6 <= other <= solution.upper + 2e-6


@pytest.mark.parametrize("privacy", STATED)
def test_no_channel_of_a_fine_grid_is_better(privacy):
    """Brute force over all 2 × 2 channels on a grid: feasible ones are no better."""
    source = cpv.DiscreteSource.from_counts([[30, 7], [11, 25], [4, 20]])
    criterion = STATED[privacy][0]
    problem = cpv.MinimumDistortion(source, cpv.hamming(2), [criterion], units="nats")
    try:
        solution = problem.solve()
    except cpv.InfeasibleError:
        solution = None
    best = math.inf
    law = source.pmf
    for a, b in itertools.product(np.linspace(0, 1, 101), repeat=2):
        k = np.array([[1 - a, a], [b, 1 - b]])
        if holds(criterion, law, k, source.records):
            best = min(best, float(law.sum(axis=0) @ (k * (1 - np.eye(2))).sum(axis=1)))
    if solution is None:
        assert math.isinf(best)
        return
    assert solution.lower <= best + 1e-9
    assert best <= solution.upper + 0.02  # the grid comes close


def holds(criterion, law: np.ndarray, k: np.ndarray, records: int) -> bool:
    """Decide a privacy criterion in floats, with slack for the grid."""
    joint, p_w, p_x = law @ k, law.sum(axis=1), law.sum(axis=0)
    q = joint.sum(axis=0)
    on = q > 1e-12
    posterior = joint[:, on] / q[on]
    kl_w = (posterior * np.log(np.maximum(posterior, 1e-300) / p_w[:, None])).sum(axis=0)
    kind = type(criterion).__name__
    if kind == "TCloseness":
        return bool((kl_w <= criterion.t).all())
    if kind == "LDiversity":
        entropy = -(posterior * np.log(np.maximum(posterior, 1e-300))).sum(axis=0)
        return bool((entropy >= math.log(criterion.l)).all())
    if kind == "KAnonymity":
        given = (p_x[:, None] * k)[:, on] / q[on]
        kl_x = (given * np.log(np.maximum(given, 1e-300) / p_x[:, None])).sum(axis=0)
        return bool((kl_x <= math.log(records / criterion.k)).all())
    if kind == "DeltaDisclosure":
        ratio = np.log(np.maximum(posterior, 1e-300) / p_w[:, None])
        return bool((np.abs(ratio) <= criterion.delta).all())
    if kind == "LeakageCap":
        return float(q[on] @ kl_w) <= criterion.b
    if kind == "LocalPrivacy":
        return bool((k.max(axis=0) <= math.exp(criterion.epsilon) * k.min(axis=0)).all())
    return math.log(k.max(axis=0).sum()) <= criterion.b


# ---- prices --------------------------------------------------------------------------------

PRICED = [
    (cpv.TCloseness, 0.05, "t_closeness", -1),
    (cpv.LDiversity, 2.5, "l_diversity", 1),
    (cpv.KAnonymity, 60, "k_anonymity", 1),
    (cpv.DeltaDisclosure, 0.4, "delta_disclosure", -1),
    (cpv.LeakageCap, 0.1, "leakage_cap", -1),
    (cpv.LocalPrivacy, 1.0, "local_privacy", -1),
    (cpv.MaximalLeakage, 0.6, "maximal_leakage", -1),
]


@pytest.mark.parametrize("units", ["bits", "nats"])
@pytest.mark.parametrize(("make", "at", "name", "sign"), PRICED)
def test_prices_are_certified_finite_differences(make, at, name, sign, units):
    def solve(value: float) -> cpv.Solution:
        problem = cpv.MinimumDistortion(SOURCE, ORDINAL, [make(value)], units=units)
        return problem.solve(accuracy="high")

    solution = solve(at)
    referee.check(solution)
    price, step = solution.prices[name], 2e-4 * at
    assert math.copysign(1.0, price) == sign
    left, right = solve(at - step), solve(at + step)
    backward = (solution.value - left.value) / step
    forward = (right.value - solution.value) / step
    noise = 4 * max(s.gap for s in (left, solution, right)) / step
    assert min(backward, forward) - noise <= price * (1 + 1e-3 * sign)
    assert price * (1 - 1e-3 * sign) <= max(backward, forward) + noise
    if abs(forward - backward) < 2e-3 * abs(price) and noise < 1e-5 * abs(price):
        assert price == pytest.approx((forward + backward) / 2, rel=1e-4)


def test_the_price_of_floors():
    def solve(p) -> cpv.Solution:
        criteria = [cpv.KeepProbability(p), cpv.PreserveMarginal()]
        problem = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0.5, criteria=criteria)
        return problem.solve(accuracy="high")

    scalar, step = solve(0.4), 1e-4
    slope = (solve(0.4 + step).value - solve(0.4 - step).value) / (2 * step)
    assert scalar.prices["keep_probability"] == pytest.approx(slope, rel=1e-4)
    assert scalar.prices["keep_probability"] > 0
    each = solve(np.full(4, 0.4))
    assert each.prices["keep_probability"].shape == (4,)
    assert each.prices["keep_probability"].sum() == pytest.approx(slope, rel=1e-4)
    moved = np.array([0.4 + step, 0.4, 0.4, 0.4]), np.array([0.4 - step, 0.4, 0.4, 0.4])
    first = (solve(moved[0]).value - solve(moved[1]).value) / (2 * step)
    assert each.prices["keep_probability"][0] == pytest.approx(first, rel=1e-3)
    assert "preserve_marginal" not in each.prices  # a rule without a number


def test_letters_never_seen_obey_the_rules_too():
    counts = np.insert(COUNTS, 2, 0, axis=1)  # nobody has x = 2
    source = cpv.DiscreteSource.from_counts(counts)
    rules = [cpv.KeepProbability(0.5), cpv.ForbiddenMoves(lambda a, b: abs(a - b) > 1)]
    solution = cpv.PrivacyDistortion(source, cpv.ordinal(5), criteria=rules).solve()
    channel = solution.channel
    assert channel.arbitrary.tolist() == [False, False, True, False, False]
    assert channel.matrix[2].tolist() == [0, 0, 1, 0, 0]
    local = cpv.MinimumDistortion(source, cpv.ordinal(5), [cpv.LocalPrivacy(1.0)]).solve().channel
    ratio = local.matrix.max(axis=0) / np.maximum(local.matrix.min(axis=0), 1e-300)
    assert ratio[local.matrix.max(axis=0) > 0].max() <= math.e * (1 + 1e-12)


def test_records_are_what_the_encoder_sees_of_them():
    """With (w, x) seen, a letter released for two records only hides nobody among thirty."""
    source = cpv.DiscreteSource.from_counts([[10, 10], [10, 10], [1, 1]])
    by_w = np.array([[[0, 1, 1]] * 2, [[1, 0, 1]] * 2, [[1, 1, 0]] * 2])
    d = cpv.Distortion(by_w, outputs=[0, 1, 2])
    problem = cpv.MinimumDistortion(source, d, [cpv.KAnonymity(30)], encoder="wx")
    solution = problem.solve()
    assert solution.value > 0.1
    assert satisfied(problem, solution, problem.criteria[0])


def test_two_constraints_never_share_a_name():
    shadow = cpv.Linear(np.zeros((4, 4)), 1, name="delta_disclosure.above[1]")
    with pytest.raises(cpv.InputError, match="two constraints are called"):
        cpv.MinimumDistortion(SOURCE, ORDINAL, [cpv.DeltaDisclosure(0.1), shadow])


def test_a_floor_that_bounded_ratios_forbid_is_infeasible():
    criteria = [
        cpv.LocalPrivacy(5),
        cpv.ForbiddenMoves(lambda a, b: abs(a - b) > 1),
        cpv.KeepProbability(0.1),
    ]
    with pytest.raises(cpv.InfeasibleError, match="cannot hold together"):
        cpv.MinimumDistortion(SOURCE, ORDINAL, criteria).solve()


@pytest.mark.parametrize("criterion", [cpv.LocalPrivacy(0), cpv.MaximalLeakage(0)], ids=repr)
def test_a_preserved_marginal_and_nothing_else(criterion):
    solution = cpv.MinimumDistortion(SOURCE, ORDINAL, [cpv.PreserveMarginal(), criterion]).solve()
    p = SOURCE.p_x
    assert solution.value == pytest.approx(p @ ORDINAL.matrix @ p, abs=1e-6)


def test_prices_at_an_edge_are_infinite():
    at_one = cpv.PrivacyDistortion(SOURCE, ORDINAL, criteria=[cpv.KeepProbability(1)]).solve()
    assert at_one.prices == {"keep_probability": math.inf}
    floors = np.array([0.5, 1.0, 0.5, 0.5])
    some = cpv.PrivacyDistortion(SOURCE, ORDINAL, criteria=[cpv.KeepProbability(floors)]).solve()
    assert np.isinf(some.prices["keep_probability"]).tolist() == [False, True, False, False]
    two = [cpv.KeepProbability(0.3), cpv.KeepProbability(1.0)]
    prices = cpv.PrivacyDistortion(SOURCE, ORDINAL, criteria=two).solve().prices
    assert prices == {"keep_probability": 0.0, "keep_probability[2]": math.inf}
    none = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0).solve()
    assert none.prices == {"budget": -math.inf}
    assert math.isfinite(none.duals["budget"])


# ---- trivial and impossible ends -------------------------------------------------------------


def least(*criteria, **options) -> cpv.Solution:
    solution = cpv.MinimumDistortion(SOURCE, ORDINAL, criteria, **options).solve(accuracy="high")
    referee.check(solution)
    return solution


@pytest.mark.parametrize(
    "criterion", [cpv.TCloseness(0), cpv.DeltaDisclosure(0), cpv.LeakageCap(0)], ids=repr
)
def test_no_leakage_at_all_is_a_linear_program(criterion):
    p_x, p_w = SOURCE.p_x, SOURCE.p_w
    rows, right = [], []
    for s in range(4):
        row = np.zeros((4, 4))
        row[s] = 1.0
        rows.append(row.ravel())
        right.append(1.0)
    for w, y in np.ndindex(3, 4):
        row = np.zeros((4, 4))
        row[:, y] = SOURCE.pmf[w] - p_w[w] * p_x
        rows.append(row.ravel())
        right.append(0.0)
    cost = (p_x[:, None] * ORDINAL.matrix).ravel()
    truth = linprog(cost, A_eq=rows, b_eq=right, bounds=(0, None)).fun
    solution = least(criterion)
    assert solution.value == pytest.approx(truth, abs=1e-8)
    joint, masses = exact_joint_of(solution)
    total = sum(masses)
    for column in zip(*joint, strict=True):  # independent, exactly
        assert all(j * total == m * sum(column) for j, m in zip(column, masses, strict=True))
    assert solution.prices[criterion.name] == -math.inf


def exact_joint_of(solution):
    problem = cpv.MinimumDistortion(SOURCE, ORDINAL, [])
    return exact_joint(problem, exact_channel(solution))


@pytest.mark.parametrize(
    "criterion", [cpv.LocalPrivacy(0), cpv.MaximalLeakage(0), cpv.KAnonymity(127)], ids=repr
)
def test_nothing_but_a_constant_is_left(criterion):
    solution = least(criterion)
    constant = (SOURCE.p_x @ ORDINAL.matrix).min()
    assert solution.value == pytest.approx(constant, abs=1e-8)
    assert np.ptp(solution.channel.matrix, axis=0).max() == 0


@pytest.mark.parametrize(
    "criterion",
    [
        cpv.LDiversity(1),
        cpv.KAnonymity(1),
        cpv.TCloseness(10),
        cpv.DeltaDisclosure(10),
        cpv.LeakageCap(10),
        cpv.LocalPrivacy(50),
        cpv.MaximalLeakage(2),
        cpv.KeepProbability(0),
        cpv.KeepProbability(1),
        cpv.PreserveMarginal(),
        cpv.PreserveMean([1, 2, 3, 4]),
        cpv.ForbiddenMoves(~np.eye(4, dtype=bool)),
        cpv.Linear(np.ones((4, 4)), 1.0),
    ],
    ids=repr,
)
def test_what_asks_for_nothing_costs_nothing(criterion):
    assert abs(least(criterion).value) < 1e-8


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (cpv.LDiversity(3.5), r"l: 3.5 exceeds the 3 values.*at most 3"),
        (cpv.KAnonymity(128), r"k: 128 exceeds the 127 records.*at most 127"),
        (cpv.KeepProbability(np.full(3, 0.5)), r"p: 3 floors.*4"),
        (cpv.ForbiddenMoves(np.zeros((3, 4), bool)), r"mask.*shape \(4, 4\)"),
        (cpv.ForbiddenMoves(np.zeros((4, 4))), r"mask.*booleans"),
        (cpv.ForbiddenMoves(np.ones((4, 4), bool)), r"mask\[0\]: 0 may go nowhere"),
        (cpv.PreserveMean([1, 2]), r"values: 2 numbers; pass 4"),
        (cpv.PreserveMean({0: 1.0}), r"values: none for 1"),
        (cpv.Linear(np.eye(3), 1.0), r"A: shape \(3, 3\); pass shape \(4, 4\)"),
    ],
)
def test_what_does_not_fit_the_problem_is_refused(criterion, message):
    with pytest.raises(cpv.InputError, match=message):
        cpv.MinimumDistortion(SOURCE, ORDINAL, [criterion])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cpv.TCloseness(-0.1), "t: -0.1"),
        (lambda: cpv.LDiversity(0.5), "l: 0.5"),
        (lambda: cpv.KAnonymity(0), "k: 0.0"),
        (lambda: cpv.DeltaDisclosure(math.nan), "delta: nan"),
        (lambda: cpv.LocalPrivacy(-1), "epsilon: -1 is out"),
        (lambda: cpv.LocalPrivacy(1e4), "epsilon: 10000.0.*700"),
        (lambda: cpv.MaximalLeakage(math.inf), "b: inf"),
        (lambda: cpv.KeepProbability(1.2), "p: 1.2 is above 1"),
        (lambda: cpv.KeepProbability([0.5, 2.0]), r"p\[1\]: 2.0 is above 1"),
        (lambda: cpv.Linear(np.eye(2), math.nan), "bound.*nan"),
        (lambda: cpv.Linear(np.eye(2), 1.0, sense=">="), "sense"),
    ],
)
def test_numbers_that_are_none_are_refused(make, message):
    with pytest.raises(cpv.InputError, match=message):
        make()


def test_records_are_needed_for_anonymity():
    source = cpv.DiscreteSource(COUNTS / COUNTS.sum())
    with pytest.raises(cpv.InputError, match="no number of records.*from_counts"):
        cpv.MinimumDistortion(source, ORDINAL, [cpv.KAnonymity(2)])
    known = cpv.DiscreteSource(COUNTS / COUNTS.sum(), records=127)
    referee.check(cpv.MinimumDistortion(known, ORDINAL, [cpv.KAnonymity(60)]).solve())


def test_a_floor_on_a_forbidden_move_is_named():
    criteria = [cpv.KeepProbability(0.5), cpv.ForbiddenMoves(np.eye(4, dtype=bool))]
    with pytest.raises(cpv.InputError, match="0 → 0 must have probability 0.5 and is forbidden"):
        cpv.MinimumDistortion(SOURCE, ORDINAL, criteria).solve()


# ---- conflicts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criteria", "conflict"),
    rest_at_length(
        [
            ([cpv.TCloseness(0.01)], ["budget", "t_closeness"]),
            ([cpv.LeakageCap(0.01)], ["budget", "leakage_cap"]),
            ([cpv.LocalPrivacy(0.1)], ["budget", "local_privacy"]),
            ([cpv.LDiversity(2.8)], ["budget", "l_diversity"]),
            ([cpv.KAnonymity(120)], ["budget", "k_anonymity"]),
            ([cpv.DeltaDisclosure(0.1)], ["budget", "delta_disclosure"]),
            ([cpv.MaximalLeakage(0.1)], ["budget", "maximal_leakage"]),
        ],
        3,
    ),
)
def test_conflicts_are_named_with_the_values_that_would_do(criteria, conflict):
    def problem(budget, *criteria):
        return cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=budget, criteria=criteria)

    with pytest.raises(cpv.InfeasibleError) as caught:
        problem(0.03, *criteria).solve()
    error = caught.value
    assert error.conflict == conflict
    assert error.certificate.verify()
    assert "budget 0.03" in str(error)
    assert repr(criteria[0]) in str(error)
    # the budget that would do is the least distortion under the criterion, computed apart
    apart = cpv.MinimumDistortion(SOURCE, ORDINAL, criteria).solve()
    assert error.extremes["budget"] == pytest.approx(apart.value, abs=1e-5)
    # and so is the criterion's number: feasible there, infeasible a little tighter
    if conflict[1] in error.extremes:
        value = error.extremes[conflict[1]]
        criterion = criteria[0]
        tighter = value + 0.01 * (float(criterion.value) - value)
        assert problem(0.03, criterion.at(value)).solve().status == "certified"
        with pytest.raises(cpv.InfeasibleError):
            problem(0.03, criterion.at(tighter)).solve()


def test_diversity_beyond_the_prior_is_impossible_alone():
    limit = 2 ** SOURCE.entropy()
    with pytest.raises(cpv.InfeasibleError) as caught:
        least(cpv.LDiversity(limit + 0.01))
    assert caught.value.conflict == ["l_diversity"]
    assert caught.value.extremes["l_diversity"] == pytest.approx(limit, rel=1e-3)


# ---- affine constraints from CVXPY -----------------------------------------------------------


def test_affine_constraints_of_cvxpy_become_rows():
    first = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0.2)
    q = first.variables["Q"]
    rows = cpv.Linear.from_cvxpy(cp.sum(q, axis=0)[:2] >= 0.2, first, name="share")
    assert [row.name for row in rows] == ["share[0]", "share[1]"]
    rows += cpv.Linear.from_cvxpy(q[0, 1] == q[1, 0], first, name="symmetric")
    problem = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0.2, criteria=rows)
    solution = problem.solve()
    referee.check(solution)
    for row in rows:
        assert satisfied(problem, solution, row)
    mass = SOURCE.p_x[:, None] * solution.channel.matrix
    assert mass.sum(axis=0)[0] >= 0.2 - 1e-12
    assert mass[0, 1] == pytest.approx(mass[1, 0], abs=1e-15)
    other = by_rel_entr_risk(0.2)
    assert solution.lower - 1e-6 <= other <= solution.upper + 1e-6


def by_rel_entr_risk(budget: float) -> float:
    law = COUNTS / COUNTS.sum()
    q = cp.Variable((4, 4), nonneg=True)
    joint = (law / law.sum(axis=0)) @ q
    phi, _ = kl(joint, law.sum(axis=1))
    rows = [
        cp.sum(q, axis=1) == law.sum(axis=0),
        cp.sum(cp.multiply(ORDINAL.matrix, q)) <= budget,
        cp.sum(q, axis=0)[:2] >= 0.2,
        q[0, 1] == q[1, 0],
    ]
    return cp.Problem(cp.Minimize(cp.sum(phi)), rows).solve(solver="CLARABEL") / math.log(2)


def test_what_is_not_affine_in_the_mass_is_refused():
    problem = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0.2)
    q, t = problem.variables["Q"], cp.Variable(2, name="mine")
    for constraint, message in (
        (cp.sum_squares(q) <= 1, "not affine"),
        (cp.sum(t) + cp.sum(q) <= 1, "uses mine"),
        (cp.SOC(q[0, 0], q[1]), "SOC"),
    ):
        with pytest.raises(cpv.InputError, match=message):
            cpv.Linear.from_cvxpy(constraint, problem)


def test_what_a_series_labels_is_not_counted_off():
    source = cpv.DiscreteSource.from_counts([[30, 20, 10], [5, 15, 20]], x=[1, 2, 3])
    measure = cpv.hamming(source.x)
    with pytest.raises(cpv.InputError, match=r"^p: labelled floors; pass .* in the order"):
        cpv.KeepProbability(pd.Series([0.9, 0.1, 0.5], index=[3, 2, 1]))
    with pytest.raises(cpv.InputError, match=r"^values\[1\]: 'a' labels letters 0 and 1"):
        cpv.PreserveMean(pd.Series([1.0, 2.0, 3.0], index=["a", "a", "b"]))
    plain = cpv.KeepProbability(pd.Series([0.5, 0.1, 0.9]))
    lower = cpv.MinimumDistortion(source, measure, [plain]).program.lower
    assert np.diag(lower).tolist() == [0.5, 0.1, 0.9]
    rules = [
        cpv.PreserveMean(values)
        for values in (pd.Series([9.0, 2.0, 1.0], index=[3, 2, 1]), {1: 1.0, 2: 2.0, 3: 9.0})
    ]
    series, mapping = (cpv.MinimumDistortion(source, measure, [rule]).program for rule in rules)
    assert (
        series.constraints["preserve_mean"].expression.cost
        == mapping.constraints["preserve_mean"].expression.cost
    ).all()
