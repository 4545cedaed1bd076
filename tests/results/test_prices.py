"""Prices: enclosures of one-sided derivatives that closed forms know, or said not to be known."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.results.prices import ChannelPrices
from tests.lengths import rest_at_length, some_at_length

mp.mp.dps = 40
COUNTS = cpv.DiscreteSource.from_counts([[90, 10], [10, 90]])
SKEWED = cpv.DiscreteSource([[0.3, 0.1], [0.1, 0.5]])
GAUSSIAN = cpv.GaussianSource([[1, 0.6, 0.3], [0.6, 1, 0], [0.3, 0, 1]], sensitive=[0], key=[1, 2])


def binary_slope(budget: float) -> float:
    """R(D) = 1 − h(0.1 + 0.8 D) of two fair bits that differ with probability 0.1."""
    q = mp.mpf(1) / 10 + mp.mpf(8) / 10 * mp.mpf(budget)
    return float(mp.mpf(8) / 10 * mp.log(q / (1 - q), 2))


def first_slope() -> float:
    """Return d E d / d cap of SKEWED where nothing may leak.

    A rare letter x̂ = 0 of posterior a = p(x = 0 | x̂ = 0) saves 2a − 1 of distortion and leaks
    KL(r_a ‖ p_w), r_a = a (¾, ¼) + (1 − a) (⅙, ⅚); the best ratio of them is the slope.
    """

    def ratio(a: Any) -> Any:
        r = a * mp.mpf(3) / 4 + (1 - a) / 6
        p = mp.mpf(4) / 10
        return (2 * a - 1) / (r * mp.log(r / p, 2) + (1 - r) * mp.log((1 - r) / (1 - p), 2))

    low, high = mp.mpf("0.5"), mp.mpf(1)
    for _ in range(200):  # the ratio has one summit
        a, b = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (a, high) if ratio(a) < ratio(b) else (low, b)
    return -float(ratio(low))


def gaussian_slope(budget: float) -> float:
    """I = −½ log(0.55 + 0.45 D), as all error is along the regression of W on X, of norm² 0.45."""
    return float(-mp.mpf("0.225") / (mp.mpf("0.55") + mp.mpf("0.45") * budget) / mp.log(2))


def test_the_slope_of_the_first_leak_is_five():
    assert first_slope() == pytest.approx(-5.0004, abs=1e-3)


def near(price: Any, truth: float) -> None:
    """Check a price that is proved: within 1 % of the truth, which its ends enclose."""
    assert price.kind == "two-sided"
    assert price.lower - 1e-12 * abs(truth) <= truth <= price.upper + 1e-12 * abs(truth)
    assert float(price) == pytest.approx(truth, rel=0.01)


# ---- bounds next to the end of the curve -----------------------------------------------------


@pytest.mark.parametrize("accuracy", rest_at_length(["default", "high"], 1))
@pytest.mark.parametrize("budget", [1e-11, 1e-8, 1e-5, 0.2])
def test_a_small_budget_has_the_slope_of_the_curve(budget, accuracy):
    problem = cpv.PrivacyDistortion(COUNTS, cpv.hamming(2), budget=budget)
    solution = problem.solve(accuracy=accuracy)
    near(solution.prices["budget"], binary_slope(budget))


@pytest.mark.long
@pytest.mark.parametrize("cap", rest_at_length([1e-9, 1e-15, 1e-12], 2))
def test_a_small_cap_has_the_slope_of_the_first_leak(cap):
    problem = cpv.MinimumDistortion(SKEWED, cpv.hamming(2), [cpv.LeakageCap(cap)])
    price = problem.solve().prices["leakage_cap"]
    assert price.kind == "two-sided"
    assert float(price) == pytest.approx(first_slope(), rel=0.01)
    assert price.lower <= first_slope() * (1 - 1e-4)
    assert price.upper >= first_slope() * (1 + 1e-4)


@pytest.mark.parametrize("p", some_at_length([1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-20], 3))
def test_a_rare_letter_has_the_slope_of_shannon(p):
    """R(D) = h(p) − h(D) of a letter of probability p ≤ ½: its slope at p/2 is log D/(1 − D)."""
    source = cpv.DiscreteSource.identical([1 - p, p])
    solution = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=p / 2).solve()
    truth = float(mp.log(mp.mpf(p / 2) / (1 - mp.mpf(p / 2)), 2))
    near(solution.prices["budget"], truth)
    assert solution.gap <= 1e-6 * solution.upper


def test_what_is_finer_than_a_proof_is_said():
    """A letter of probability 1e-40: proofs have 128 bits, next to what is merely small."""
    source = cpv.DiscreteSource.identical([1 - 1e-40, 1e-40])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=5e-41)
    solution = problem.solve(accuracy="high")
    price = solution.prices["budget"]
    assert (price.kind, price.number) == ("not determined", None)
    assert price.lower <= -133.877 <= price.upper
    assert "not determined" in str(price)
    (note,) = solution.notes
    assert note.startswith("high accuracy is relative to a nat, not to the value")
    assert solution.lower >= 0


@pytest.mark.parametrize("accuracy", rest_at_length(["default", "high"], 1))
@pytest.mark.parametrize("budget", [1e-15, 1e-12, 1e-9, 1e-6, 0.1, 0.5])
def test_a_small_budget_of_a_gaussian_has_the_slope_of_the_curve(budget, accuracy):
    problem = cpv.QuadraticGaussian(GAUSSIAN, budget=budget)
    near(problem.solve(accuracy=accuracy).prices["budget"], gaussian_slope(budget))


def test_a_gaussian_without_error_has_the_slope_on_the_side_that_there_is():
    price = cpv.QuadraticGaussian(GAUSSIAN, budget=0).solve().prices["budget"]
    assert price.kind == "one-sided"
    assert float(price) == pytest.approx(gaussian_slope(0), rel=1e-6)
    assert price.lower == -math.inf
    assert gaussian_slope(0) * (1 + 1e-12) <= price.upper <= gaussian_slope(0) * 0.99


# ---- ends of the curve, and kinks --------------------------------------------------------------


def test_the_least_budget_has_one_side():
    price = cpv.PrivacyDistortion(COUNTS, cpv.hamming(2), budget=0).solve().prices["budget"]
    assert (float(price), price.kind, price.lower) == (-math.inf, "one-sided", -math.inf)
    assert binary_slope(0) <= price.upper <= 0.99 * binary_slope(0)
    assert "nothing is feasible with less" in str(price)


def test_the_greatest_budget_costs_nothing_to_within_what_is_said():
    """R(D) of two bits is smooth at D_max = ½, where its slope is 0."""
    price = cpv.PrivacyDistortion(COUNTS, cpv.hamming(2), budget=0.5).solve().prices["budget"]
    assert price == 0
    assert -1e-3 <= price.lower <= 0 == price.upper


def kinked(bound: float) -> Any:
    """Each of two letters of mass ½ may move for 1, and to stay weighs 1 and 2.

    The second is the first to move: the least distortion of 1.5 − b falls by ½ b, and below b = ½,
    when that has moved, by b.
    """
    source = cpv.DiscreteSource([[0.5, 0.0], [0.0, 0.5]])
    problem = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.LeakageCap(2.0)])
    q = problem.variables["Q"]
    return problem.with_constraint("load", q[0, 0] + 2 * q[1, 1] <= bound)


@pytest.mark.parametrize(("bound", "left", "right"), some_at_length([
    (0.25, -1.0, -1.0), (0.5, -1.0, -0.5), (0.75, -0.5, -0.5), (1.5, -0.5, 0.0), (1.7, 0.0, 0.0),
], 2))  # fmt: skip
def test_a_kink_is_no_slope(bound, left, right):
    price = kinked(bound).solve().prices["load"]
    assert price.lower <= left + 1e-9
    assert price.upper >= right - 1e-9
    assert price.lower <= float(price) <= price.upper
    assert (price.kind == "two-sided") == (left == right)
    if left == right:
        assert float(price) == pytest.approx(left, abs=1e-5)


def test_a_kink_of_the_chance_of_a_guess():
    """The chance of the best guess is max(p_1, 1 − D): −1 before the kink, 0 after it."""
    source = cpv.DiscreteSource.identical([0.5, 0.3, 0.2])
    measure = cpv.leakage.GuessingProbability()
    for budget, ends in ((0.2, (-1, -1)), (0.5, (-1, 0)), (0.7, (0, 0))):
        problem = cpv.PrivacyDistortion(source, cpv.hamming(3), budget=budget, leakage=measure)
        price = problem.solve().prices["budget"]
        assert price.lower <= ends[0] + 1e-9
        assert price.upper >= ends[1] - 1e-9
        assert (price.kind == "two-sided") == (ends[0] == ends[1])


# ---- closed forms ------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(
    p=st.lists(st.integers(1, 1000), min_size=2, max_size=4),
    share=st.floats(0.01, 0.99) | st.sampled_from([1e-9, 1e-6, 1e-3, 1 - 1e-6]),
)
def test_hamming_water_filling_is_enclosed(p, share):
    """R'(D) = −log (1 − D)/level, or has other sides where a letter is dropped: reverse filling."""
    masses = np.array(p) / np.sum(p)
    budget = share * float(1 - masses.max())
    if min(p) == max(p) and share > 0.999:
        budget *= 0.9
    source = cpv.DiscreteSource.from_counts(np.diag(p))
    problem = cpv.PrivacyDistortion(source, cpv.hamming(len(p)), budget=budget)
    price = problem.solve().prices["budget"]
    for d in (budget * (1 - 1e-9), budget * (1 + 1e-9)):
        truth = -float(mp.log((1 - mp.mpf(d)) / level(p, d), 2))
        room = 1e-6 * max(1.0, abs(truth))  # of d, which is a little off
        assert price.lower - room <= truth <= price.upper + room


def level(counts: list[int], budget: float) -> Any:
    """Return λ with Σ min(λ, p) over all but one letter = D: what is wrong of each letter."""
    total = mp.mpf(sum(counts))
    masses = sorted(mp.mpf(c) / total for c in counts)
    low = mp.mpf(0)
    for i, mass in enumerate(masses):  # letters below the level are not released
        left = len(masses) - i
        if left == 1:
            return masses[-2]
        lam = (mp.mpf(budget) - low) / (left - 1)
        if lam <= mass:
            return lam
        low += mass
    raise AssertionError


@settings(max_examples=30, deadline=None)
@given(rho=st.floats(0.05, 0.99), share=st.floats(0.001, 0.999) | st.sampled_from([1e-12, 1e-6]))
def test_the_scalar_gaussian_is_enclosed(rho, share):
    """Eq. 8: R' = −ρ² / 2 (1 − (1 − d) ρ²)."""
    source = cpv.GaussianSource.scalar(rho)
    r, d = mp.mpf(float(rho)), mp.mpf(share)
    truth = float(-(r**2) / (1 - (1 - d) * r**2) / 2 / mp.log(2))
    price = cpv.QuadraticGaussian(source, budget=share).solve().prices["budget"]
    assert price.lower - 1e-9 <= truth <= price.upper + 1e-9


@settings(max_examples=6, deadline=None)
@given(
    error=st.floats(0.01, 0.49), budget=st.floats(0, 0.49) | st.sampled_from([1e-12, 1e-9, 1e-4])
)
def test_the_binary_closed_form_is_enclosed(error, budget):
    law = [[0.5 * (1 - error), 0.5 * error], [0.5 * error, 0.5 * (1 - error)]]
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource(law), cpv.hamming(2), budget=budget)
    q = mp.mpf(error) + (1 - 2 * mp.mpf(error)) * mp.mpf(budget)
    truth = float((1 - 2 * mp.mpf(error)) * mp.log(q / (1 - q), 2))
    price = problem.solve().prices["budget"]
    room = 1e-9 * abs(truth)  # laws are rounded
    assert price.lower - room <= truth <= price.upper + room


# ---- anybody's multipliers ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", rest_at_length(range(12), 2))
def test_wrong_multipliers_exclude_no_truth(seed):
    """Multipliers and releases are turned, scaled and exchanged: ends stay ends."""
    rng, budget = (
        np.random.default_rng(seed),
        float(np.random.default_rng(seed).uniform(0.01, 0.45)),
    )
    problem = cpv.PrivacyDistortion(COUNTS, cpv.hamming(2), budget=budget)
    certificate = problem.solve().certificate
    dual = certificate.dual
    wrong = replace(
        dual,
        multipliers={name: rng.normal(scale=4) * v for name, v in dual.multipliers.items()},
        scores={name: rng.permutation(v) * rng.uniform(0, 2) for name, v in dual.scores.items()},
    )
    other = problem.at(budget=0.5 * budget).solve().certificate.primal
    for primal in (certificate.primal, other):
        cleaned = wrong.cleaned(problem.program)
        made = ChannelPrices(certificate.program, problem.rules, primal, cleaned)
        price = made.proved()["budget"]
        assert price.lower <= binary_slope(budget) <= price.upper


# ---- numbers that are other than bounds --------------------------------------------------------


def difference(problem: Any, name: str, at: float, step: float) -> float:
    up, down = (problem.at(**{name: at + s}).solve(accuracy="high") for s in (step, -step))
    return (up.value - down.value) / (2 * step)


def test_a_floor_an_equality_and_a_weight_are_enclosed_by_programs_nearby():
    kept = cpv.PrivacyDistortion(SKEWED, cpv.hamming(2), criteria=[cpv.KeepProbability(0.6)])
    weighed = cpv.PrivacyDistortion(SKEWED, cpv.hamming(2), price=2.0)
    equal = cpv.PrivacyDistortion(SKEWED, cpv.hamming(2), budget=0.2)
    equal = equal.with_constraint("equal", equal.variables["Q"][0, 1] == 0.05)
    for problem, name, at in (
        (kept, "keep_probability", 0.6), (weighed, "price", 2.0), (equal, "equal", 0.05),
    ):  # fmt: skip
        price = problem.solve().prices[name]
        near(price, difference(problem, name, at, 1e-4))


def test_what_is_no_bound_is_said_not_to_be_proved():
    problem = cpv.MinimumDistortion(SKEWED, cpv.hamming(2), [cpv.TCloseness(0.1)])
    price = problem.solve().prices["t_closeness"]
    assert (price.kind, price.lower, price.upper) == ("not proved", -math.inf, math.inf)
    assert "by the multipliers, not proved" in str(price)
    assert float(price) == pytest.approx(difference(problem, "t_closeness", 0.1, 1e-4), rel=1e-3)


@pytest.mark.parametrize(
    "rule",
    some_at_length(
        [cpv.TCloseness(1e-9), cpv.PointwiseMaximalLeakage(1e-9), cpv.DeltaDisclosure(1e-9),
         cpv.TCloseness(1e-9, "tv")], 2,
    ),
)  # fmt: skip
def test_what_mean_slopes_deny_is_not_determined(rule):
    """Nothing is better than a constant next to no leakage: the slope is 0, multipliers say −8."""
    price = cpv.MinimumDistortion(SKEWED, cpv.hamming(2), [rule]).solve().prices[rule.name]
    assert price.kind == "not determined"
    assert str(price) == "not determined"
    assert price.number is None


@pytest.mark.parametrize("delta", [1e-11, 1e-9, 1e-3])
def test_a_small_excess_has_the_slope_of_the_closed_form(delta):
    """ε = 0: the least E d is (1 − δ) min p, so that a share δ of the letters may be told."""
    rule = cpv.LocalPrivacy(0, delta=delta)
    problem = cpv.MinimumDistortion(SKEWED, cpv.hamming(2), [rule])
    near(problem.solve().prices["local_privacy.delta"], -0.4)


# ---- rows of a vector, and constraints that do nothing -----------------------------------------


def test_each_row_of_a_vector_has_a_price():
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.hamming(2), budget=0.2
    )
    problem = problem.with_constraint("v", problem.variables["Q"][0] <= np.array([0.45, 0.06]))
    solution = problem.solve()
    assert set(solution.prices) == {"budget", "v.0", "v.1"} <= {*solution.duals, "budget"}
    assert set(problem.parameters) == {"budget", "v.0", "v.1"}
    assert solution.prices["v.0"] == pytest.approx(0, abs=1e-6)
    assert solution.prices["v"].tolist() == [solution.prices["v.0"], solution.prices["v.1"]]
    assert solution.duals["v"].tolist() == [solution.duals["v.0"], solution.duals["v.1"]]
    assert (pickle.loads(pickle.dumps(solution)).duals["v"] == solution.duals["v"]).all()
    with pytest.raises(KeyError, match="w"):
        solution.prices["w"]
    near(solution.prices["v.1"], difference(problem, "v.1", 0.06, 1e-4))
    with pytest.raises(cpv.InputError, match=r"v\.0 or v\.1") as caught:
        problem.at(v=0.1)
    assert caught.value.argument == "v"


def test_a_bound_that_nothing_reaches_is_said():
    solution = cpv.PrivacyDistortion(COUNTS, cpv.hamming(2), budget=10).solve()
    assert solution.notes == ["budget cannot bind: no release has more than 1"]
    assert solution.prices["budget"] == 0
    assert solution.prices["budget"].kind == "two-sided"
    capped = cpv.MinimumDistortion(COUNTS, cpv.hamming(2), [cpv.LeakageCap(0.6)]).solve()
    (note,) = capped.notes
    assert note.startswith("leakage_cap cannot bind: no release has more than 0.531")
    for bound in (0.3, 0.53):
        tight = cpv.MinimumDistortion(COUNTS, cpv.hamming(2), [cpv.LeakageCap(bound)]).solve()
        assert tight.notes == []


class Guessed(cpv.Criterion):
    """Rows for all outputs together: by mistake, as .each() is missing."""

    name = "guessed"
    p = cpv.Parameter(loosens="up")

    def constraints(self, release: Any) -> Mapping[str, Any]:
        return {str(w): release.mass(w) <= self.p * release.mass() for w in range(2)}


def test_a_constraint_that_no_release_changes_is_said():
    solution = cpv.MinimumDistortion(COUNTS, cpv.hamming(2), [Guessed(0.7)]).solve()
    assert len(solution.notes) == 2
    assert all("same for every release" in n and ".each()" in n for n in solution.notes)
    with pytest.raises(cpv.InfeasibleError, match=r"the same for every release.*\.each\(\)"):
        cpv.MinimumDistortion(COUNTS, cpv.hamming(2), [Guessed(0.4)]).solve()


# ---- as an object ------------------------------------------------------------------------------


def test_a_price_is_a_float_that_is_copied_and_stored():
    solution = cpv.PrivacyDistortion(COUNTS, cpv.hamming(2), budget=0.1).solve()
    for twin in (
        pickle.loads(pickle.dumps(solution)),
        copy.deepcopy(solution),
    ):  # before it is read
        price = twin.prices["budget"]
        assert isinstance(price, float)
        again = pickle.loads(pickle.dumps(price))
        for name in ("lower", "upper", "kind", "multiplier"):
            assert getattr(again, name) == getattr(price, name)
        assert float(again) == float(price) == float(solution.prices["budget"])
    assert json.loads(json.dumps(price)) == float(price)
    with pytest.raises(AttributeError, match="cannot change"):
        price.lower = 0.0


def undetermined():
    source = cpv.DiscreteSource.identical([1 - 1e-40, 1e-40])
    return cpv.PrivacyDistortion(source, cpv.hamming(2), budget=5e-41).solve()


def test_what_is_shown_states_no_number_that_is_not_determined():
    solution = undetermined()
    assert "not determined, in [" in str(solution)
    assert "not determined" in solution._repr_html_()


@pytest.mark.long
def test_a_forbidding_cost_widens_no_tolerance():
    """A price is next to 0 only in what can be reached: moves of 1e9 are not."""
    source = cpv.DiscreteSource([[0.3, 0.1, 0.05], [0.1, 0.25, 0.2]])
    costs = np.array([[0, 1, 1e9], [1, 0, 1], [1e9, 1, 0]])
    near_end = cpv.MinimumDistortion(source, costs, [cpv.LeakageCap(1e-9)]).solve()
    price = near_end.prices["leakage_cap"]
    assert price.lower < -5.4
    assert price.upper > -5.6
    assert price.upper - price.lower <= 0.01 * 5.4 or price.kind == "not determined"
    assert not str(price).startswith("+0")


@pytest.mark.parametrize("rule", [cpv.MaximalLeakage(0), cpv.LeakageCap(0)])
def test_the_tightest_criterion_has_one_side(rule):
    price = cpv.MinimumDistortion(SKEWED, cpv.hamming(2), [rule]).solve().prices[rule.name]
    assert (float(price), price.kind, price.lower) == (-math.inf, "one-sided", -math.inf)
    assert price.upper < 0


def test_a_price_of_what_was_broken_off_solves_nothing_more(monkeypatch):
    """Releases nearby prove what they can, and no solver is asked again."""
    problem = cpv.PrivacyDistortion(COUNTS, cpv.hamming(2), budget=0.2)
    certificate = problem.solve().certificate
    refused = "cvxprivacy.results.prices.solve"
    monkeypatch.setattr(refused, lambda *_, **__: pytest.fail("solved"))
    prices = ChannelPrices(
        certificate.program, problem.rules, certificate.primal, certificate.dual, nearby=False
    )
    near(prices.proved()["budget"], binary_slope(0.2))
