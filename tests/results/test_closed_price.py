"""The price of what is poured is proved by certificates of other amounts, not by its formula."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.results.price_bounds import ClosedFormPrice
from cvxprivacy.typing import Price
from tests.lengths import rest_at_length

SPECTRUM = np.array([4.0, 1.0, 0.25])


def price(problem: Any) -> Price:
    (outcome,) = problem.solve().prices.values()
    return outcome


@pytest.mark.parametrize("units", ["nats", "bits"])
@pytest.mark.parametrize(("budget", "level"), [(1.25, 0.5), (0.3, 0.1), (3.0, 1.75), (1e-300, 0)])
def test_the_price_of_a_variance_is_half_of_one_over_the_level(
    budget: float, level: float, units: str
) -> None:
    outcome = price(cpv.ReverseWaterFilling(SPECTRUM, budget, units=units))
    truth = -1 / (2 * (level or budget / 3)) / (1 if units == "nats" else np.log(2))
    assert outcome.lower <= truth * (1 - 1e-15)
    assert truth * (1 + 1e-15) <= outcome.upper
    assert outcome.kind == "two-sided"


def test_both_slopes_of_a_kink_are_enclosed() -> None:
    """One box of two is full and the other dry from level 2 to 4; then all variances are met."""
    flat = price(cpv.BoxWaterFilling([1, 0.25], [1, 1], total=1, units="nats"))
    assert flat.kind == "not determined"
    assert flat.lower <= -1 / 4 < -1 / 8 <= flat.upper
    assert flat.upper - flat.lower < 1 / 8 + 1e-6
    met = price(cpv.ReverseWaterFilling(SPECTRUM, 5.25, units="nats"))
    assert met.lower <= -1 / 8 < met.upper == 0
    assert met.lower > -1 / 8 - 1e-3


def test_nothing_is_paid_for_what_is_not_used() -> None:
    for problem in (
        cpv.ReverseWaterFilling(SPECTRUM, 6),
        cpv.BoxWaterFilling([1, 2], [1, 1], total=3),
        cpv.HammingWaterFilling([0.5, 0.3, 0.2], 0.9),
        cpv.HammingWaterFilling([0.5, 0.3, 0.2], 1),
    ):
        outcome = price(problem)
        assert (float(outcome), outcome.lower, outcome.upper, outcome.kind) == (
            0,
            0,
            0,
            "two-sided",
        )


@pytest.mark.parametrize("budget", [0.01, 0.2, 0.4, 0.49])
def test_the_price_of_a_change_is_the_derivative_of_the_rate(budget: float) -> None:
    """R'(D) = log λ − log (1 − D), λ = D/(n − 1) of n letters above the water."""
    p = [0.5, 0.3, 0.2]
    outcome = price(cpv.HammingWaterFilling(p, budget, units="nats"))
    level = budget / 2 if budget <= 0.4 else budget - 0.2  # the rarest letter is released no more
    truth = float(mpmath.log(level) - mpmath.log(1 - budget))
    assert outcome.lower <= truth <= outcome.upper
    assert outcome.kind == "two-sided"
    assert outcome.upper - outcome.lower < 1e-4 * abs(truth)


def test_the_first_change_is_worth_without_bound() -> None:
    outcome = price(cpv.HammingWaterFilling([0.5, 0.3, 0.2], 0))
    assert (outcome.kind, outcome.lower, float(outcome)) == ("one-sided", -np.inf, -np.inf)
    assert -np.inf < outcome.upper < -20
    assert "-inf" in str(outcome)


def test_a_budget_next_to_one_is_not_exceeded() -> None:
    many = np.full(5000, 1 / 5000)
    outcome = price(cpv.HammingWaterFilling(many, 0.9997, units="nats"))
    truth = np.log(0.9997 / 4999) - np.log(1 - 0.9997)
    assert outcome.lower <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) <= outcome.upper


def test_along_eigenvectors_it_is_that_of_the_eigenvalues() -> None:
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(60, 60)))
    full = (turn * rng.uniform(1, 2, 60)) @ turn.T
    outcome = price(cpv.ReverseWaterFilling((full + full.T) / 2, 30, units="nats"))
    assert outcome.lower < -1.0 < outcome.upper  # the level is 1/2, under all
    assert outcome.kind == "two-sided"
    assert outcome.upper - outcome.lower < 1e-4


@pytest.mark.parametrize("wrong", [1.0, 0.0, -100.0, -np.inf])
def test_a_wrong_formula_changes_no_proved_end(wrong: float) -> None:
    problem = cpv.ReverseWaterFilling(SPECTRUM, 1.25, units="nats")
    lie = ClosedFormPrice(problem, "budget", wrong, problem.solve().certificate)
    outcome = lie.proved()["budget"]
    assert outcome.lower <= -1.0 <= outcome.upper
    assert outcome.lower <= float(outcome) <= outcome.upper
    assert outcome.multiplier == wrong


def test_a_price_is_proved_of_a_solution_that_was_stored() -> None:
    solution = cpv.BoxWaterFilling([1, 2, 4], [1, 1, 1], total=1).solve()
    again = pickle.loads(pickle.dumps(solution))
    assert again.prices == solution.prices
    assert again.prices["total"].kind == "two-sided"


@pytest.mark.parametrize(
    "problem",
    [
        cpv.ReverseWaterFilling([4, 1], Fraction(1, 10**400)),
        cpv.BoxWaterFilling([1, 2], [1, 1], Fraction(1, 10**400)),
        cpv.HammingWaterFilling([0.5, 0.3, 0.2], Fraction(1, 10**400)),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_of_a_number_beyond_floats_a_price_is_none_or_enclosed(problem: Any) -> None:
    outcome = price(problem)
    assert outcome.lower <= outcome <= outcome.upper <= 0


@pytest.mark.long
@pytest.mark.parametrize("budget", rest_at_length([1e-300, 1e-14], 1))
def test_where_hardly_anything_is_proved_no_price_is(budget: float) -> None:
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(210, 210)))
    full = (turn * rng.uniform(1, 2, 210)) @ turn.T
    problem = cpv.ReverseWaterFilling((full + full.T) / 2, budget, units="nats")
    solution = problem.solve(certify=False)
    assert solution.status == "uncertified"
    outcome = solution.prices["budget"]
    assert outcome.kind == "not determined"
    assert outcome.lower <= -210 / (2 * budget) * (1 - 1e-12)
