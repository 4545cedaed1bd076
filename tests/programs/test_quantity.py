"""What is done with quantities of a release, and in which words the rest is refused."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from tests.instances import BINARY

PROBLEM = cpv.PrivacyDistortion(BINARY, cpv.hamming(2), 0.2)
WORST = cpv.PrivacyDistortion(BINARY, cpv.hamming(2), 0.2, laws=[BINARY]).risk
RISK, RATE = PROBLEM.risk, PROBLEM.rate


def parts(of: object) -> list:
    """What is stated under each law."""
    return list(of.values() if isinstance(of, Mapping) else getattr(of, "parts", {"": of}).values())


@pytest.mark.parametrize("quantity", [RISK, WORST], ids=["one law", "two laws"])
@pytest.mark.parametrize("number", [2, 0.5, Fraction(1, 3), np.float64(4), np.int64(3)], ids=repr)
def test_numbers_of_any_kind_weigh_and_shift_from_either_side(quantity, number):
    exact = Fraction(number if isinstance(number, Fraction) else float(number))

    def weights(of):
        return [Fraction(weight) for part in parts(of) for weight in part.weights.values()]

    once = weights(quantity)
    assert weights(number * quantity) == weights(quantity * number) == [exact * w for w in once]
    assert weights(quantity / number) == [w / exact for w in once]
    for total, sign in ((number + quantity, 1), (quantity + number, 1), (number - quantity, -1)):
        assert weights(total) == [sign * w for w in once]
        assert {Fraction(part.constant) for part in parts(total)} == {exact}
    for row in [*parts(quantity <= number), *parts(number >= quantity)]:
        assert (row.bound, row.relation) == (exact, r"\le")
    for row in [*parts(quantity >= number), *parts(number <= quantity)]:
        assert (row.bound, row.relation) == (-exact, r"\ge")


REFUSED = {
    "a ratio": (lambda a, b: a / b, "numerator <= b"),
    "a reciprocal": (lambda a, b: 1 / a, ">= 1/b"),
    "one of NumPy": (lambda a, b: np.float64(1) / a, ">= 1/b"),
    "a square": (lambda a, b: a**2, "root"),
    "a product": (operator.mul, "weigh each"),
    "an absolute value": (lambda a, b: abs(a), "both sides"),
    "max": (max, "bound each by itself"),
    "CVXPY's maximum": (cp.maximum, "bound each by itself"),
    "NumPy's maximum": (np.maximum, "bound each by itself"),
    "a logarithm": (lambda a, b: np.log(a), "added, weighed"),
    "strictly less": (operator.lt, "<= or >="),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("pair", [(RISK, RATE), (WORST, WORST)], ids=["one law", "two laws"])
def test_what_is_not_convex_or_not_stated_is_refused_in_words(case, pair):
    refused, remedy = REFUSED[case]
    with pytest.raises(TypeError, match=remedy) as error:
        refused(*pair)
    assert "unsupported operand" not in str(error.value)


def test_quantities_of_one_law_and_of_several_do_not_mix():
    for mixed in (lambda: RISK + WORST, lambda: WORST + RISK, lambda: RISK - WORST):
        with pytest.raises(TypeError, match="unsupported operand"):
            mixed()


def test_nothing_is_divided_by_nothing():
    with pytest.raises(ZeroDivisionError, match="risk"):
        _ = RISK / 0


def test_what_is_not_convex_is_refused_when_it_is_stated():
    class Difference(cpv.ChannelProblem):
        budget = cpv.Parameter()

        def formulation(self):
            return self.risk - self.rate, {"budget": self.distortion <= self.budget}

    class LeastRisk(cpv.ChannelProblem):
        least = cpv.Parameter()

        def formulation(self):
            return self.distortion, {"least": self.risk >= self.least}

    class GaussianDifference(cpv.CovarianceProblem):
        budget = cpv.Parameter()

        def __init__(self, source, budget):
            super().__init__(source)
            self.budget = budget

        def formulation(self):
            return self.risk - self.rate, {"budget": self.distortion <= self.budget}

    gaussian = cpv.GaussianSource([[1, 0.5], [0.5, 1]], sensitive=[0], key=[1])
    for state, argument in (
        (lambda: Difference(BINARY, cpv.hamming(2), 0.2), "objective"),
        (lambda: LeastRisk(BINARY, cpv.hamming(2), 0.1), "least"),
        (lambda: GaussianDifference(gaussian, 0.2), "objective"),
    ):
        with pytest.raises(cpv.InputError, match="not convex") as error:
            state()
        assert error.value.argument == argument


@pytest.mark.parametrize(
    ("stated", "argument"),
    [
        ((1.0, {}), "objective"),
        ((PROBLEM.risk, {"budget": True}), "budget"),
        ((PROBLEM.risk, {"budget": PROBLEM.distortion}), "budget"),
        ((PROBLEM.distortion <= 1, {}), "objective"),
    ],
)
def test_a_formulation_is_of_quantities_and_comparisons(stated, argument):
    class Stated(cpv.ChannelProblem):
        def formulation(self):
            return stated

    with pytest.raises(cpv.InputError, match=r"self\.risk") as error:
        Stated(BINARY, cpv.hamming(2))
    assert error.value.argument == argument
