"""Privacy criteria: satisfied exactly, certified, priced, and closed at their ends."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import cvxprivacy as cpv
from tests import referee
from tests.criteria.definitions import (
    COUNTS,
    ORDINAL,
    SOURCE,
    exact_joint_of,
    kl,
    least,
    satisfied,
)
from tests.frontiers.instances import TINY, counted
from tests.lengths import rest_at_length, some_at_length
from tests.refusals import UNSAID, refused


def far(n: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > max(1, (n + 1) // 2)


MAKE = {
    "t": lambda rng, s, n: cpv.TCloseness(rng.uniform(0.001, 0.3)),
    "l": lambda rng, s, n: cpv.LDiversity(1 + (2 ** s.entropy() - 1) * rng.uniform(0.3, 0.98)),
    "k": lambda rng, s, n: cpv.RecordEntropy(int(rng.integers(2, max(3, s.records // 2)))),
    "delta": lambda rng, s, n: cpv.DeltaDisclosure(rng.uniform(0.05, 1.0)),
    "cap": lambda rng, s, n: cpv.LeakageCap(rng.uniform(0.1, 0.9) * s.information()),
    "capacity": lambda rng, s, n: cpv.CapacityCap(rng.uniform(0.1, 0.9) * s.information()),
    "epsilon": lambda rng, s, n: cpv.LocalPrivacy(rng.uniform(0.1, 3)),
    "metric": lambda rng, s, n: cpv.LocalPrivacy(
        rng.uniform(0.1, 3), metric=cpv.absolute_error(rng.integers(0, 4, n))
    ),
    "but for": lambda rng, s, n: cpv.LocalPrivacy(rng.uniform(0, 2), delta=rng.uniform(0.001, 0.5)),
    "maxl": lambda rng, s, n: cpv.MaximalLeakage(rng.uniform(0.1, 1) * math.log2(n)),
    "keep": lambda rng, s, n: cpv.KeepProbability(rng.uniform(0.05, 0.5)),
    "floors": lambda rng, s, n: cpv.KeepProbability(rng.uniform(0, 0.5, n)),
    "forbid": lambda rng, s, n: cpv.ForbiddenMoves(far(n)),
    "marginal": lambda rng, s, n: cpv.PreserveMarginal(),
    "near": lambda rng, s, n: cpv.MarginalDistance(rng.uniform(0.01, 0.3)),
    "mean": lambda rng, s, n: cpv.PreserveMean(np.arange(n)),
    "linear": lambda rng, s, n: cpv.Linear(np.eye(n), rng.uniform(0.2, 0.7), name="stay"),
    "conditional": lambda rng, s, n: cpv.ConditionalLeakageCap(rng.uniform(0.001, 0.1)),
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
    kinds = KINDS[seed % len(KINDS)]
    informed = rng.random() < 0.2 or "conditional" in kinds
    encoder = "wx" if informed and "metric" not in kinds else "x"
    criteria = [MAKE[kind](rng, source, n) for kind in kinds]
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


@pytest.mark.parametrize("seed", rest_at_length(range(len(KINDS)), len(MAKE)))
def test_every_criterion_and_pair(seed):
    width = judged(seed)
    assert width is None or width <= 1e-7


def by_rel_entr(criteria_of) -> float:
    """State least distortion by CVXPY's own atoms, on conditional probabilities, in nats."""
    law = COUNTS / COUNTS.sum()
    k = cp.Variable((4, 4), nonneg=True)
    joint = law @ k
    p_x, p_w = law.sum(axis=0), law.sum(axis=1)
    distortion = cp.sum(cp.multiply(p_x[:, None] * ORDINAL.matrix, k))
    rows = [cp.sum(k, axis=1) == 1, *criteria_of(k, joint, p_w, p_x)]
    return cp.Problem(cp.Minimize(distortion), rows).solve(solver="CLARABEL")


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
        cpv.RecordEntropy(60),
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
    "metric": (
        cpv.LocalPrivacy(0.5, metric=cpv.absolute_error([0, 1, 3, 3])),
        lambda k, j, w, x: [
            k[s] <= math.exp(0.5 * abs(a - b)) * k[r]
            for s, a in enumerate((0, 1, 3, 3)) for r, b in enumerate((0, 1, 3, 3)) if r != s
        ],
    ),
    "but for": (
        cpv.LocalPrivacy(0.5, delta=0.1),
        lambda k, j, w, x: [
            cp.sum(cp.pos(k[s] - math.exp(0.5) * k[r])) <= 0.1
            for s in range(4) for r in range(4) if r != s
        ],
    ),
    "maxl": (
        cpv.MaximalLeakage(0.6),
        lambda k, j, w, x: [cp.sum(cp.max(k, axis=0)) <= math.exp(0.6)],
    ),
}  # fmt: skip


RULES = {
    "marginal": (cpv.PreserveMarginal(), lambda k, j, w, x: [x @ k == x]),
    "keep": (cpv.KeepProbability(0.3), lambda k, j, w, x: [cp.diag(k) >= 0.3]),
    "forbid": (
        cpv.ForbiddenMoves(lambda a, b: abs(a - b) > 2),
        lambda k, j, w, x: [k[0, 3] == 0, k[3, 0] == 0],
    ),
    "near": (
        cpv.MarginalDistance(0.05),
        lambda k, j, w, x: [cp.norm1(x @ k - x) / 2 <= 0.05],
    ),
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
@pytest.mark.parametrize("rule", rest_at_length([None, *RULES], 1))
def test_agrees_with_an_independent_statement(privacy, rule):
    stated = [STATED[privacy]] + ([RULES[rule]] if rule else [])
    problem = cpv.MinimumDistortion(SOURCE, ORDINAL, [c for c, _ in stated], units="nats")
    other = by_rel_entr(lambda *parts: [row for _, state in stated for row in state(*parts)])
    if math.isinf(other):
        with pytest.raises(cpv.InfeasibleError):
            problem.solve()
        return
    solution = problem.solve()
    referee.check(solution, problem=problem)
    assert solution.lower - 2e-6 <= other <= solution.upper + 2e-6


def test_records_are_what_the_encoder_sees_of_them():
    """With (w, x) seen, a letter released for two records only hides nobody among thirty."""
    source = cpv.DiscreteSource.from_counts([[10, 10], [10, 10], [1, 1]])
    by_w = np.array([[[0, 1, 1]] * 2, [[1, 0, 1]] * 2, [[1, 1, 0]] * 2])
    d = cpv.Distortion(by_w, outputs=[0, 1, 2])
    problem = cpv.MinimumDistortion(source, d, [cpv.RecordEntropy(30)], encoder="wx")
    solution = problem.solve()
    assert solution.value > 0.1
    assert satisfied(problem, solution, problem.criteria[0])


@pytest.mark.parametrize("criterion", [cpv.LocalPrivacy(0), cpv.MaximalLeakage(0)], ids=repr)
def test_a_preserved_marginal_and_nothing_else(criterion):
    solution = cpv.MinimumDistortion(SOURCE, ORDINAL, [cpv.PreserveMarginal(), criterion]).solve()
    p = SOURCE.p_x
    assert solution.value == pytest.approx(p @ ORDINAL.matrix @ p, abs=1e-6)


@pytest.mark.parametrize(
    "criterion",
    some_at_length([cpv.TCloseness(0), cpv.DeltaDisclosure(0), cpv.LeakageCap(0)], 1),
    ids=repr,
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


@pytest.mark.parametrize(
    "criterion", [cpv.LocalPrivacy(0), cpv.MaximalLeakage(0), cpv.RecordEntropy(127)], ids=repr
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
        cpv.RecordEntropy(1),
        cpv.TCloseness(10),
        cpv.DeltaDisclosure(10),
        cpv.LeakageCap(10),
        cpv.CapacityCap(10),
        cpv.ConditionalLeakageCap(10),
        cpv.LocalPrivacy(50),
        cpv.MaximalLeakage(2),
        cpv.KeepProbability(0),
        cpv.KeepProbability(1),
        cpv.PreserveMarginal(),
        cpv.MarginalDistance(1e-9),
        cpv.PreserveMean([1, 2, 3, 4]),
        cpv.ForbiddenMoves(~np.eye(4, dtype=bool)),
        cpv.Linear(np.ones((4, 4)), 1.0),
    ],
    ids=repr,
)
def test_what_asks_for_nothing_costs_nothing(criterion):
    assert abs(least(criterion).value) < 1e-8


REFUSED = [  # a criterion that does not fit the problem, or is none; argument, value, place
    (lambda: cpv.LDiversity(3.5), "l", 3.5, None),
    (lambda: cpv.RecordEntropy(128), "k", 128.0, None),
    (lambda: cpv.KeepProbability(np.full(3, 0.5)), "p", UNSAID, None),
    (lambda: cpv.ForbiddenMoves(np.zeros((3, 4), bool)), "mask", UNSAID, None),
    (lambda: cpv.ForbiddenMoves(np.zeros((4, 4))), "mask", UNSAID, None),
    (lambda: cpv.ForbiddenMoves(np.ones((4, 4), bool)), "mask", UNSAID, 0),
    (lambda: cpv.PreserveMean([1, 2]), "values", UNSAID, None),
    (lambda: cpv.PreserveMean({0: 1.0}), "values", UNSAID, None),
    (lambda: cpv.Linear(np.eye(3), 1.0), "A", UNSAID, None),
    (lambda: cpv.TCloseness(-0.1), "t", -0.1, None),
    (lambda: cpv.MarginalDistance(-0.1), "t", -0.1, None),
    (lambda: cpv.LDiversity(0.5), "l", 0.5, None),
    (lambda: cpv.RecordEntropy(0), "k", 0.0, None),
    (lambda: cpv.DeltaDisclosure(math.nan), "delta", math.nan, None),
    *((lambda v=v: cpv.LocalPrivacy(v), "epsilon", v, None) for v in (-1, 1e4)),
    (lambda: cpv.MaximalLeakage(math.inf), "b", math.inf, None),
    *((lambda v=v: cpv.CapacityCap(v), "b", v, None) for v in (-0.1, math.nan, "a")),
    *((lambda v=v: cpv.ConditionalLeakageCap(v), "c", v, None) for v in (-0.1, math.nan, "a")),
    *((lambda v=v: cpv.LeakageCap(v), "b", v, None) for v in (-0.1, math.nan, "a", None, 1j)),
    (lambda: cpv.KeepProbability(1.2), "p", 1.2, None),
    (lambda: cpv.KeepProbability([0.5, 2.0]), "p", 2.0, 1),
    (lambda: cpv.Linear(np.eye(2), math.nan), "bound", math.nan, None),
    (lambda: cpv.Linear(np.eye(2), 1.0, sense=">="), "sense", ">=", None),
]  # fmt: skip


@pytest.mark.parametrize(("make", "argument", "value", "where"), REFUSED)
def test_what_is_no_criterion(make, argument, value, where):
    call = lambda: cpv.MinimumDistortion(SOURCE, ORDINAL, [make()])  # noqa: E731
    refused(call, argument, value=value, where=where)


def test_records_are_needed_for_anonymity():
    source = cpv.DiscreteSource(COUNTS / COUNTS.sum())
    with pytest.raises(cpv.InputError, match="no number of records.*from_counts"):
        cpv.MinimumDistortion(source, ORDINAL, [cpv.RecordEntropy(2)])
    expected = cpv.DiscreteSource(COUNTS / COUNTS.sum(), records=127)
    referee.check(cpv.MinimumDistortion(expected, ORDINAL, [cpv.RecordEntropy(60)]).solve())


@pytest.mark.parametrize("criterion", [cpv.MaximalLeakage, cpv.LocalPrivacy])
@pytest.mark.parametrize("number", some_at_length([TINY, 1e-300, 1e-17, 1e-16], 2))
def test_next_to_no_leakage_is_certified(criterion, number):
    problem = cpv.MinimumDistortion(counted(), cpv.hamming(5), [criterion(number)])
    solution = problem.solve()
    assert solution.status == "certified"
    assert solution.lower <= problem.greatest_distortion <= solution.upper + 1e-15
    assert solution.certificate.verify()


@pytest.mark.parametrize("ratio", [1.5, 3, 10])
def test_what_differential_privacy_costs_at_equal_leakage(ratio):
    """The private channel is one of those with its leakage, and by far not the best of them."""
    source = cpv.DiscreteSource(np.random.default_rng(3).dirichlet(np.full(15, 0.5)).reshape(3, 5))
    private = [cpv.LocalPrivacy(math.log(ratio))]
    local = cpv.MinimumDistortion(source, cpv.hamming(5), criteria=private).solve()
    leak = cpv.information.mutual_information(source.pmf @ local.channel.matrix)
    capped = cpv.RateDistortionEquivocation(
        source, cpv.hamming(5), minimize="distortion", max_leakage=leak + 1e-12
    ).solve()
    referee.check(capped)
    assert capped.upper < 0.75 * local.lower  # of this law
