"""Metric privacy, and local privacy but for a probability: by hand, closed forms, prices."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import cvxprivacy as cpv
from cvxprivacy.criteria.decisions import within
from cvxprivacy.criteria.local_privacy import generating_pairs
from cvxprivacy.solvers.channel import _weighable
from tests import referee
from tests.refusals import refused


def by_hand(p, d, rows, extra=0, rights=None):
    """Return the least E d over channels that satisfy linear rows, by HiGHS."""
    n, m = d.shape
    equal = np.zeros((n, n * m + extra))
    for i in range(n):
        equal[i, i * m : (i + 1) * m] = 1
    cost = np.concatenate([(p[:, None] * d).ravel(), np.zeros(extra)])
    right = np.zeros(len(rows)) if rights is None else rights
    done = linprog(cost, A_ub=np.array(rows), b_ub=right, A_eq=equal, b_eq=np.ones(n))
    assert done.status == 0
    return done.fun


def of_metric(p, d, metric, epsilon):
    n, m = d.shape
    rows = []
    for i, j in itertools.permutations(range(n), 2):
        for y in range(m):
            row = np.zeros((n, m))
            row[i, y], row[j, y] = 1.0, -math.exp(epsilon * metric[i, j])
            rows.append(row.ravel())
    return by_hand(p, d, rows)


def but_for(p, d, epsilon, delta):
    n, m = d.shape
    pairs = list(itertools.permutations(range(n), 2))
    extra = len(pairs) * m
    rows, rights = [], []
    for k, (i, j) in enumerate(pairs):
        for y in range(m):
            row = np.zeros(n * m + extra)
            row[i * m + y], row[j * m + y] = 1.0, -math.exp(epsilon)
            row[n * m + k * m + y] = -1.0
            rows.append(row)
            rights.append(0.0)
        total = np.zeros(n * m + extra)
        total[n * m + k * m : n * m + (k + 1) * m] = 1.0
        rows.append(total)
        rights.append(delta)
    return by_hand(p, d, rows, extra, rights)


def distances(rng, n):
    """Return distances that may be 0, tied, or longer than a way round."""
    metric = rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, rng.uniform(0, 3)], (n, n))
    metric = np.triu(metric, 1)
    return metric + metric.T


def at_length(test):
    """Return a few examples of a property, and many that only a long run tries."""
    few = settings(max_examples=8, deadline=None)(given(st.integers(0, 2**32 - 1))(test))
    many = settings(max_examples=60, deadline=None)(given(st.integers(0, 2**32 - 1))(test))
    return few, pytest.mark.long(many)


def generating_pairs_bound_as_all_pairs_do(seed):
    rng = np.random.default_rng(seed)
    n, m = (int(k) for k in rng.integers(2, 6, 2))
    p, d, metric = rng.dirichlet(np.ones(n)), rng.random((n, m)), distances(rng, n)
    epsilon = float(rng.uniform(0.1, 2))
    rule = cpv.LocalPrivacy(epsilon, metric=metric)
    solution = cpv.MinimumDistortion(cpv.DiscreteSource.identical(p), d, [rule]).solve()
    assert solution.status == "certified"
    truth = of_metric(p, d, metric, epsilon)
    assert solution.lower - 1e-8 <= truth <= solution.upper + 1e-8
    channel = solution.channel.matrix
    for i, j in itertools.permutations(range(n), 2):
        assert (channel[i] <= math.exp(epsilon * metric[i, j]) * channel[j] + 1e-12).all()


test_generating_pairs, test_generating_pairs_at_length = at_length(
    generating_pairs_bound_as_all_pairs_do
)


def but_for_a_probability_it_is_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    n, m = (int(k) for k in rng.integers(2, 5, 2))
    p, d = rng.dirichlet(np.ones(n)), rng.random((n, m))
    epsilon, delta = float(rng.uniform(0, 2)), float(rng.uniform(0.005, 0.6))
    rule = cpv.LocalPrivacy(epsilon, delta=delta)
    solution = cpv.MinimumDistortion(cpv.DiscreteSource.identical(p), d, [rule]).solve()
    assert solution.status == "certified"
    truth = but_for(p, d, epsilon, delta)
    assert solution.lower - 1e-8 <= truth <= solution.upper + 1e-8


test_but_for_a_probability, test_but_for_a_probability_at_length = at_length(
    but_for_a_probability_it_is_the_linear_program
)


def test_pairs_that_generate():
    line = np.abs(np.subtract.outer(range(6), range(6)))
    assert len(generating_pairs(line)) == 2 * 5
    grid = np.array([[i, j] for i in range(4) for j in range(3)])
    city = np.abs(grid[:, None] - grid).sum(axis=2)
    edges = {(i, j) for i, j in itertools.permutations(range(12), 2) if city[i, j] == 1}
    assert {*generating_pairs(city)} == edges
    assert len(generating_pairs(1 - np.eye(5))) == 20  # ε-local privacy: all of them
    apart = generating_pairs([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    assert apart == {(0, 2): 1, (2, 0): 1, (1, 0): 0}
    # a way round that is shorter is what bounds
    assert generating_pairs([[0, 5, 1], [5, 0, 1], [1, 1, 0]]).keys() == {
        (0, 2), (2, 0), (1, 2), (2, 1)
    }  # fmt: skip
    assert generating_pairs([[0, 5, 0], [5, 0, 0], [0, 0, 0]]) == {(1, 0): 0, (2, 0): 0}
    thirds = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]) / 3  # 1/3 + 1/3 is 2/3 in floats
    assert len(generating_pairs(thirds)) == 4
    tenths = np.abs(np.subtract.outer(np.arange(4) / 10, np.arange(4) / 10))
    kept = set(generating_pairs(tenths))  # 0.1 + 0.2 is no 0.3 in floats: exactly, not nearly
    for i, j in itertools.permutations(range(4), 2):
        through = [k for k in range(4) if k not in (i, j)]
        if all(tenths[i, k] + tenths[k, j] > tenths[i, j] + 1e-12 for k in through):
            assert (i, j) in kept


def test_a_metric_of_ones_is_local_privacy():
    rng = np.random.default_rng(5)
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(12)).reshape(3, 4))
    for kind in (cpv.MinimumDistortion, cpv.PrivacyDistortion):
        options = {} if kind is cpv.MinimumDistortion else {"budget": 0.65}
        both = [
            kind(source, cpv.hamming(4), criteria=[rule], **options).solve(accuracy="high")
            for rule in (cpv.LocalPrivacy(0.8), cpv.LocalPrivacy(0.8, metric=1 - np.eye(4)))
        ]
        assert both[0].value == pytest.approx(both[1].value, abs=1e-8)
        assert both[0].prices["local_privacy"] == pytest.approx(
            both[1].prices["local_privacy"], rel=1e-5, abs=1e-8
        )


def geometric(n, epsilon):
    """Return the truncated geometric mechanism on a line."""
    a = math.exp(-epsilon)
    matrix = np.empty((n, n))
    for x in range(n):
        for y in range(n):
            end = y in (0, n - 1)
            matrix[x, y] = a ** abs(x - y) * (1 / (1 + a) if end else (1 - a) / (1 + a))
    return matrix / matrix.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_on_a_line_the_geometric_mechanism_is_an_upper_end(epsilon):
    n = 8
    line = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    rule, source = cpv.LocalPrivacy(epsilon, metric=line), cpv.DiscreteSource.identical([1 / n] * n)
    problem = cpv.MinimumDistortion(source, line, [rule])
    solution, mechanism = problem.solve(accuracy="high"), geometric(n, epsilon)
    steps = mechanism[:-1] / mechanism[1:]
    assert np.allclose(np.abs(np.log(steps)), epsilon)  # it satisfies the rule, with equality
    remap = np.array([min(range(n), key=lambda z, y=y: mechanism[:, y] @ line[:, z])
                      for y in range(n)])  # fmt: skip
    reached = float((mechanism * line[:, remap]).sum() / n)
    assert solution.lower <= reached + 1e-9
    assert solution.upper >= reached - 1e-6  # it is optimal (Ghosh, Roughgarden, Sundararajan)
    answer = problem.certify(mechanism)
    assert answer.lower <= solution.upper
    assert answer.upper >= solution.lower


@pytest.mark.parametrize("p", [0.5, 0.3, 0.05])
@pytest.mark.parametrize("delta", [0.001, 0.2, 0.7])
def test_two_letters_and_no_epsilon(p, delta):
    source = cpv.DiscreteSource.identical([p, 1 - p])
    rule = cpv.LocalPrivacy(0, delta=delta)
    solution = cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve(accuracy="high")
    assert solution.lower - 1e-12 <= (1 - delta) * p <= solution.upper + 1e-12
    assert solution.prices["local_privacy.delta"] == pytest.approx(-p, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("how", ["metric", "delta"])
def test_prices_are_slopes(how):
    rng = np.random.default_rng(8)
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(12)).reshape(3, 4))
    d = cpv.absolute_error([0, 1, 2, 4])
    options = {"metric": d} if how == "metric" else {"delta": 0.15}
    problem = cpv.PrivacyDistortion(source, d, 1.1, criteria=[cpv.LocalPrivacy(0.7, **options)])
    solution, step = problem.solve(accuracy="high"), 1e-4
    referee.check(solution)
    names = (
        ["local_privacy"] if how == "metric" else ["local_privacy.epsilon", "local_privacy.delta"]
    )
    for name in names:
        number = problem.parameters[name].value
        low, high = (
            problem.at(**{name: float(number) + side}).solve(accuracy="high").value
            for side in (-step, step)
        )
        assert solution.prices[name] == pytest.approx((high - low) / 2 / step, abs=2e-3)
        assert abs(solution.prices[name]) > 1e-3


def test_the_problem_in_cvxpy_is_the_same():
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    d = cpv.absolute_error([0, 1, 3])
    for options in ({"metric": d}, {"delta": 0.1}):
        rule = cpv.LocalPrivacy(0.4, **options)
        problem = cpv.PrivacyDistortion(source, d, 1.1, criteria=[rule])
        solution = problem.solve(accuracy="high")
        stated = problem.problem
        assert stated.solve(solver="CLARABEL") == pytest.approx(solution.value, abs=1e-6)
        name = "local_privacy" if "metric" in options else "local_privacy.epsilon"
        problem.parameters[name].value = 0.9  # the parameter moves e^ε everywhere
        moved = problem.at(**{name: 0.9}).solve(accuracy="high")
        assert stated.solve(solver="CLARABEL") == pytest.approx(moved.value, abs=1e-6)


def test_what_is_no_metric_is_refused():
    for metric, words, where in [
        ([[0, 1], [2, 0]], "not symmetric", (0, 1)),
        ([[0, 1], [1, 1]], "not 0 on the diagonal", (1, 1)),
        ([[0, -1], [-1, 0]], "negative", (0, 1)),
        ([[0, 1, 2], [1, 0, 1]], "shape (2, 3)", None),
    ]:
        refused(lambda m=metric: cpv.LocalPrivacy(1, metric=m), "metric", words, where=where)
    refused(lambda: cpv.LocalPrivacy(1, metric=1 - np.eye(2), delta=0.1), "delta", "one of them")
    for delta in (0, 1, -0.1, math.nan, "a"):
        refused(lambda v=delta: cpv.LocalPrivacy(1, delta=v), "delta")
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    rule = cpv.LocalPrivacy(1, metric=1 - np.eye(3))
    refused(lambda: cpv.MinimumDistortion(source, cpv.hamming(2), [rule]), "metric", "shape")
    pair = cpv.LocalPrivacy(1, metric=1 - np.eye(2))
    refused(
        lambda: cpv.MinimumDistortion(source, cpv.hamming(2), [pair], encoder="wx"),
        "metric", "not x alone",
    )  # fmt: skip


def test_letters_without_mass_are_in_no_pair():
    source = cpv.DiscreteSource.identical([0.5, 0.0, 0.5])
    line = np.abs(np.subtract.outer(range(3), range(3)))
    rule = cpv.LocalPrivacy(math.log(2), metric=line)  # the two others are two apart: a factor 4
    solution = cpv.MinimumDistortion(source, cpv.hamming(3), [rule]).solve()
    assert solution.value == pytest.approx(0.2, abs=1e-6)


def test_of_each_law_it_is_the_same():
    one, other = (
        cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]),
        cpv.DiscreteSource([[0.3, 0], [0, 0.7]]),
    )
    for options in ({"metric": 1 - np.eye(2)}, {"delta": 0.1}):
        rule = cpv.LocalPrivacy(1, **options)
        problem = cpv.MinimumDistortion(one, cpv.hamming(2), [rule], laws=[other])
        solution = problem.solve()
        assert solution.status == "certified"
        a, b = solution.channel.matrix
        excess = np.maximum(np.subtract(a, math.e * b), 0).sum()
        assert excess <= options.get("delta", 0) + 1e-12


def test_rows_of_letters_without_mass_keep_the_metric_rule_or_are_left_out():
    line = np.abs(np.subtract.outer(range(4), range(4)))
    rule = cpv.LocalPrivacy(1.0, metric=line)
    for law in ([0.5, 0.0, 0.0, 0.5], [0.3, 0.7, 0.0, 0.0], [0.0, 0.4, 0.6, 0.0]):
        source = cpv.DiscreteSource.identical(law)
        for distortion in (cpv.absolute_error(range(4)), cpv.hamming(4)):
            channel = cpv.MinimumDistortion(source, distortion, [rule]).solve().channel
            kept = line[np.ix_(channel.inputs, channel.inputs)]
            assert cpv.PrivacyProfile(channel, metric=kept).epsilon.upper <= 1.0
    # three leaves of a star are two apart; at u = e^ε each has its own output u² times as often as
    # the others, so that a row of the centre, one apart, would have 3 u/(u² + 2) in all, and not 1
    source = cpv.DiscreteSource.identical([0, 1 / 3, 1 / 3, 1 / 3])
    for far, inputs in ((1, [1, 2, 3]), (2, [0, 1, 2, 3])):
        star = 2.0 * (1 - np.eye(4))
        star[0, 1:] = star[1:, 0] = far
        rule = cpv.LocalPrivacy(math.log(1.5), metric=star)
        channel = cpv.MinimumDistortion(source, cpv.hamming(4), [rule]).solve().channel
        assert channel.inputs == inputs
        kept = star[np.ix_(inputs, inputs)]
        assert cpv.PrivacyProfile(channel, metric=kept).epsilon.upper <= math.log(1.5)


def test_a_factor_that_no_float_holds_forbids_as_little_as_none():
    far = np.array([[0, 1, 9], [1, 0, 9], [9, 9, 0]])
    source = cpv.DiscreteSource.identical([0.3, 0.3, 0.4])
    for epsilon in (78, 690):  # e^702, e^6210
        rule = cpv.LocalPrivacy(epsilon, metric=far)
        solution = cpv.MinimumDistortion(source, cpv.hamming(3), [rule]).solve()
        assert solution.status == "certified"
        assert solution.upper < 1e-14
        assert solution.certificate.verify()
        assert (solution.channel.matrix > 0).all()  # as even that factor asks for


def test_a_rule_that_hardly_forbids_anything_costs_no_proof():
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    free = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve()
    rules = [cpv.LocalPrivacy, cpv.MaximalLeakage, cpv.DeltaDisclosure, cpv.PointwiseMaximalLeakage]
    rules.append(lambda epsilon: cpv.LocalPrivacy(epsilon, delta=0.1))
    rules.append(lambda epsilon: cpv.LocalPrivacy(epsilon, metric=1 - np.eye(2)))
    for rule, number in itertools.product(rules, (30, 200, 699)):
        problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, criteria=[rule(number)])
        solution = problem.solve()
        assert solution.status == "certified"
        assert solution.lower <= free.upper
        assert free.lower <= solution.upper
        assert solution.prices["budget"] == pytest.approx(free.prices["budget"], rel=1e-6)


def test_a_row_without_mass_keeps_the_metric_rule_of_numbers_that_floats_round():
    """ε and m are each rounded upwards, and so is their product: by 24 units of e^−16 in all."""
    near = 1 + 47453135 * 2.0**-52
    below = Fraction(near) - Fraction(499, 1000) / 2**52
    rule = cpv.LocalPrivacy(below, metric=np.array([[0, 16 * below], [16 * below, 0]]))
    assert float(rule.epsilon) == near
    k = 4185673581583421
    lower, _ = rule.row_bounds(None, 0, {1: np.array([k * 2.0**-52])})
    assert not within(Fraction(k, 471035349), 16 * below**2)
    assert lower[0] == 471035350 * 2.0**-52


def test_a_factor_is_made_smaller_once():
    source = cpv.DiscreteSource.identical([0.08, 0.92])
    rule = cpv.LocalPrivacy(40, delta=0.1)
    program = cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).program
    for auxiliary in program.auxiliaries.values():
        smaller, share = _weighable(auxiliary, program)
        assert share < 1e-5
        assert _weighable(smaller, program) == (smaller, 1.0)


def test_entries_that_are_all_but_nought_stay_above_it_in_rows_without_mass():
    for law in ([0.0, 0.3, 0.7], [0.0, 0.0, 0.2, 0.8], [0.1, 0.0, 0.9, 0.0]):
        source, size = cpv.DiscreteSource.identical(law), len(law)
        for distortion in (cpv.hamming(size), cpv.absolute_error(range(size))):
            for epsilon in (1.0, 40.0, 100.0):
                problem = cpv.MinimumDistortion(source, distortion, [cpv.LocalPrivacy(epsilon)])
                channel = problem.solve().channel
                assert len(channel.inputs) == size
                assert cpv.PrivacyProfile(channel).epsilon.upper <= epsilon
