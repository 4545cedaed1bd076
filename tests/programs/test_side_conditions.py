"""Bounded auxiliaries: the number that a proof is told encloses the number that was meant."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import cvxprivacy as cpv
from cvxprivacy.programs.parameter import Scalar
from cvxprivacy.programs.side_conditions import Auxiliary
from tests.instances import BINARY, HAMMING
from tests.refusals import refused

KINDS = ["ratio", "maximum"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "number", [Fraction(4, 3), Fraction(1), 1 + Fraction(1, 10**30), Fraction(10**60, 7)]
)
def test_a_rational_lies_within_the_radius(kind: Any, number: Fraction) -> None:
    made = Auxiliary.of(kind, Scalar(number))
    near, radius = Fraction(made.bound), Fraction(made.radius)
    assert 1 <= near - radius <= number <= near + radius
    assert radius <= near * Fraction(2) ** -51
    assert (radius == 0) == (near == number)


def test_an_exponential_next_to_1_is_not_below_it() -> None:
    for epsilon in (0, 1e-300, 1e-20, 1e-16, 1.0):
        made = Auxiliary.of("ratio", Scalar.named(epsilon, "epsilon").exp())
        assert made.bound - made.radius >= 1
        assert made.bound + made.radius >= math.exp(epsilon)
        assert (made.radius == 0) == (epsilon == 0)


class Ratio(cpv.Criterion):
    """p(x̂ | x) ≤ 2 p · p(x̂ | x') for every x and x'."""

    name = "ratio"
    p = cpv.Parameter(loosens="up")

    def __init__(self, p: Any) -> None:
        self.p = p

    def constraints(self, release: Any) -> dict[str, Any]:
        return {"": Auxiliary.of("ratio", 2 * self.p)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_no_channel_satisfies_is_refused_by_its_name(kind: Any) -> None:
    refused(lambda: Auxiliary.of(kind, Scalar(0.5)), "bound", f"no channel has a {kind} below 1")
    refused(lambda: Auxiliary.of(kind, Scalar(1 - Fraction(1, 10**40))), "bound")
    refused(lambda: Auxiliary.of(kind, Scalar(10**400)), "bound", "beyond the greatest float")
    problem = cpv.MinimumDistortion(BINARY, HAMMING, [Ratio(0.5)])
    assert problem.solve().value == pytest.approx(0.5)  # nothing but constants
    refused(lambda: cpv.MinimumDistortion(BINARY, HAMMING, [Ratio(0.25)]), "p", value=0.25)


@pytest.mark.parametrize("p", [Fraction(2, 3), 1.5])
def test_a_multiple_of_a_typed_number_is_stated_proved_and_priced(p: Any) -> None:
    """Randomised response lies with probability 1/(1 + r), r = 2p: by p, −2/(1 + r)²."""
    problem = cpv.MinimumDistortion(BINARY, HAMMING, [Ratio(p)])
    solution, truth = problem.solve(), 1 / (1 + 2 * Fraction(p))
    assert solution.lower <= truth <= solution.upper
    assert solution.prices["ratio"] == pytest.approx(-2 * float(truth) ** 2, rel=1e-6)
    problem.problem.solve()
    assert problem.problem.value == pytest.approx(float(truth), abs=1e-6)
