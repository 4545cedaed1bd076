"""No lower end below what is proved without a solver, no upper end above a release without one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import cvxprivacy as cpv
from tests.lengths import rest_at_length, some_at_length

mp.mp.dps = 50
LAW = cpv.DiscreteSource([[0.3, 0.1], [0.1, 0.5]])
ZERO = cpv.DiscreteSource([[0.3, 0.2, 0.0], [0.1, 0.1, 0.3]])


def verified(problem: Any, **options: Any) -> Any:
    solution = problem.solve(certify="warn", **options)
    assert solution.certificate.verify()
    return solution


@pytest.mark.filterwarnings("ignore:only:UserWarning")
@pytest.mark.parametrize("price", [1e4, 1e8, 1e15, 1e100, 1e300])
def test_a_large_price_of_information_costs_no_more_than_a_constant(price):
    """W tells X, so that nothing is told by constants alone: 0.4 are moved."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        solution = verified(cpv.PrivacyDistortion(LAW, cpv.hamming(2), price=price))
    assert solution.upper == 0.4
    if price <= 1e15:  # balls of 128 bits times what is more prove nothing
        assert solution.status == "certified"
        assert solution.lower >= 0.4 - 1e-15
        assert solution.prices["price"].kind == "two-sided"
    else:
        assert solution.lower >= 0
        assert solution.prices["price"].kind == "not determined"


@pytest.mark.parametrize("price", [1e8, 1e15])
def test_nothing_is_told_by_more_than_constants_where_letters_are_alike(price):
    """Two laws p(w | x) and one between: J = π q leaves 0.3, as LeakageCap(0) does."""
    solution = verified(cpv.PrivacyDistortion(ZERO, cpv.hamming(3), price=price))
    silent = cpv.MinimumDistortion(ZERO, cpv.hamming(3), [cpv.LeakageCap(0)]).solve()
    assert solution.status == "certified"
    assert silent.lower - 1e-9 <= solution.upper <= silent.upper + 1e-7


@pytest.mark.parametrize(("p", "accuracy"), some_at_length(
    [(p, a) for p in (1e-6, 1e-9, 1e-12, 1e-15, 1e-20) for a in ("default", "high")], 4
))  # fmt: skip
def test_the_ends_are_narrow_against_a_small_value(p, accuracy):
    """R(D) = h(p) − h(D), in 50 digits."""

    def h(x: Any) -> Any:
        return -(x * mp.log(x) + (1 - x) * mp.log1p(-x)) / mp.log(2)

    source = cpv.DiscreteSource.identical([1 - p, p])
    solution = verified(cpv.PrivacyDistortion(source, cpv.hamming(2), p / 2), accuracy=accuracy)
    rare = mp.mpf(p) / (mp.mpf(1 - p) + mp.mpf(p))  # the law is these floats
    truth = h(rare) - h(mp.mpf(p / 2))
    assert 0 <= solution.lower <= truth <= solution.upper
    assert solution.gap <= {"default": 1e-6, "high": 1e-9}[accuracy] * solution.upper


def test_a_letter_next_to_nothing_warns_nobody():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for p, budgets in (1e-40, (0, 0.1)), (1e-300, (5e-301, 1e-300)), (5e-324, (0, 5e-324)):
            source = cpv.DiscreteSource.identical([1 - p, p])
            for budget in budgets:
                solution = verified(cpv.PrivacyDistortion(source, cpv.hamming(2), budget))
                assert 0 <= solution.lower <= solution.upper < 1e-37
                price = solution.prices["budget"]
                assert price.kind != "one-sided" or budget == 0 or p == 5e-324


@pytest.mark.parametrize("measure", rest_at_length(
    [cpv.leakage.MutualInformation(), cpv.leakage.SquaredHellinger(), cpv.leakage.ChiSquared(),
     cpv.leakage.TotalVariation()], 2,
))  # fmt: skip
@pytest.mark.parametrize("short", [0, 1e-15, 1e-12, 1e-9])
def test_a_budget_next_to_what_needs_no_leakage(measure, short):
    """Beyond D_max = 0.4 nothing is told, and next to it next to nothing: never less than 0."""
    problem = cpv.PrivacyDistortion(LAW, cpv.hamming(2), 0.4 - short, leakage=measure)
    solution = verified(problem)
    assert 0 <= solution.lower <= solution.upper <= max(1e-7, 3 * short)
    if not short:
        assert solution.upper == 0


RULES = [
    cpv.TCloseness(1e-12), cpv.TCloseness(1e-9, "tv"), cpv.TCloseness(1e-9, "emd"),
    cpv.DeltaDisclosure(1e-9), cpv.LocalInformationPrivacy(1e-9), cpv.PerfectPrivacy(),
    cpv.PointwiseMaximalLeakage(1e-9), cpv.LocalPrivacy(1e-9), cpv.MaximalLeakage(1e-9),
    cpv.LeakageCap(1e-12), cpv.LeakageCap(1e-9, leakage=cpv.leakage.ChiSquared()),
    cpv.PerLetter(cpv.leakage.SquaredHellinger(), 1e-9), cpv.LocalPrivacy(0, delta=1e-12),
]  # fmt: skip


@pytest.mark.parametrize("rule", some_at_length(RULES, 5), ids=str)
@pytest.mark.parametrize("source", [LAW, ZERO], ids=["all", "a zero cell"])
def test_no_rule_costs_more_than_a_constant(source, rule):
    """The cheapest constant keeps the likeliest letter."""
    letters = len(source.x)
    solution = verified(cpv.MinimumDistortion(source, cpv.hamming(letters), [rule]))
    cheapest = 1 - float(source.p_x.max())
    assert 0 <= solution.lower <= solution.upper <= cheapest + 1e-16


def test_the_worst_of_several_laws_is_no_less_than_any():
    other = cpv.DiscreteSource([[0.35, 0.15], [0.2, 0.3]])
    problem = cpv.MinimumDistortion(
        LAW, cpv.hamming(2), [cpv.LeakageCap(1.0)], laws=[other], units="bits"
    )
    assert problem.solve().lower >= 0
    silent = cpv.MinimumDistortion(LAW, cpv.hamming(2), [cpv.LeakageCap(0)], laws=[other])
    solution = verified(silent)
    assert solution.lower <= 0.5 <= solution.upper  # both letters alike: 0.6 - 0.2 q = 0.45 + 0.1 q


@pytest.mark.parametrize("share", [1, 1 - 1e-12, 1 - 1e-6, 1.5, math.nextafter(1, 0)])
def test_an_error_of_all_there_is_leaves_nothing(share):
    source = cpv.GaussianSource(
        [[1, 0.6, 0.3], [0.6, 1, 0], [0.3, 0, 1]], sensitive=[0], key=[1, 2]
    )
    for problem in (
        cpv.QuadraticGaussian(source, 2 * share),
        cpv.GaussianEquivocation(source, 2 * share, minimize="leakage"),
    ):
        solution = verified(problem)
        assert 0 <= solution.lower <= solution.upper <= 1e-7
        if share >= 1:
            assert solution.upper == 0


def test_counts_of_outputs_do_not_matter():
    """Twenty letters, of which all but one are rare: the constant of the likely one is best."""
    rng = np.random.default_rng(0)
    rare = rng.dirichlet(np.ones(19)) * 1e-9
    law = np.vstack([np.append(rare, 0.5 - rare.sum()), np.full(20, 0.5 / 20)])
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource(law / law.sum()), cpv.hamming(20), 0.99)
    solution = problem.solve()
    assert (solution.lower, solution.upper) == (0, 0)
