"""Rules of post-randomisation: floors, forbidden moves, affine constraints of CVXPY."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Solution
from tests import referee
from tests.criteria.definitions import COUNTS, ORDINAL, SOURCE, kl, satisfied
from tests.refusals import refused


def test_the_price_of_floors():
    def solve(p) -> Solution:
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


def test_a_floor_on_a_forbidden_move_is_named():
    criteria = [cpv.KeepProbability(0.5), cpv.ForbiddenMoves(np.eye(4, dtype=bool))]
    with pytest.raises(cpv.InputError, match="0 → 0 must have probability 0.5 and is forbidden"):
        cpv.MinimumDistortion(SOURCE, ORDINAL, criteria).solve()


def test_affine_constraints_of_cvxpy_become_rows():
    first = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0.2)
    q = first.variables["Q"]
    rows = cpv.Linear.from_cvxpy(cp.sum(q, axis=0)[:2] >= 0.2, first, name="share")
    assert [row.name for row in rows] == ["share[0]", "share[1]"]
    rows += cpv.Linear.from_cvxpy(q[0, 1] == q[1, 0], first, name="symmetric")
    problem = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0.2, criteria=rows)
    solution = problem.solve()
    referee.check(solution, problem=problem)
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
        (cp.sum_squares(q) <= 1, "not convex piecewise linear"),
        (cp.sum(t) + cp.sum(q) <= 1, "uses mine"),
        (cp.SOC(q[0, 0], q[1]), "SOC"),
    ):
        with pytest.raises(cpv.InputError, match=message):
            cpv.Linear.from_cvxpy(constraint, problem)


@pytest.mark.parametrize(
    "other",
    [3, "problem", None, cpv.QuadraticGaussian(cpv.GaussianSource.scalar(rho=0.9), 0.5)],
    ids=lambda other: type(other).__name__,
)
def test_a_rule_of_cvxpy_is_of_a_discrete_problem(other):
    q = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0.2).variables["Q"]
    refused(lambda: cpv.Linear.from_cvxpy(q[0, 1] <= 0.1, other), "problem", "discrete")


@pytest.mark.parametrize("name", [3, None, ""])
def test_a_rule_has_a_name(name):
    problem = cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=0.2)
    q = problem.variables["Q"]
    rules = [
        lambda: cpv.Linear(np.eye(4), 0.5, name=name),
        lambda: cpv.Linear.from_cvxpy(q[0, 1] <= 0.1, problem, name=name),
        lambda: cpv.Linear.from_cvxpy(q[:, 1] <= 0.1, problem, name=name),
        lambda: problem.with_constraint(name, q[0, 1] <= 0.1),
    ]
    for rule in rules:
        refused(rule, "name", "pass a text", value=name)


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
