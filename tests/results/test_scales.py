"""Statuses, values and labels of prices are the same in any unit of variances and of costs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from tests.formulations.gaussian import S

LAW = [[0.3, 0.05, 0.02], [0.1, 0.2, 0.05], [0.03, 0.05, 0.2]]
STEPS = np.abs(np.subtract.outer(range(3), range(3)))
VECTOR = [[1, 0.5, 0.3], [0.5, 1, 0.2], [0.3, 0.2, 1]]


def scaled(rows: Any, c: Fraction) -> list[list[Fraction]]:
    return [[Fraction(str(x)) * c for x in row] for row in rows]


def gaussian(c: Fraction) -> cpv.GaussianSource:
    return S(scaled(VECTOR, c), sensitive=[0], key=[1, 2])


def costs(c: Fraction) -> list[list[float]]:
    return (STEPS * float(c)).tolist()


def boxes(caps: list[float], total: float) -> Callable[[Fraction], Any]:
    def problem(c: Fraction) -> Any:
        exact = [Fraction(str(cap)) * c for cap in caps]
        return cpv.BoxWaterFilling([1 / c, 2 / c], exact, Fraction(str(total)) * c)

    return problem


# the name of the number that scales, whether the value does, and the problem in units of 1/c
PROBLEMS: dict[str, tuple[str, bool, Callable[[Fraction], Any]]] = {
    "boxes": ("total", False, boxes([1, 2], 1.5)),
    "boxes that are full": ("total", False, boxes([1e-9, 2e-9], 3e-9)),
    "boxes that are all but full": ("total", False, boxes([1e-9, 2e-9], 2.9e-9)),
    "variances": ("budget", False, lambda c: cpv.ReverseWaterFilling([4 * c, c, c / 4], 5 * c / 4)),
    "covariance": ("budget", False, lambda c: cpv.ReverseWaterFilling(scaled(VECTOR, c), c)),
    "covered": ("budget", False, lambda c: cpv.ReverseWaterFilling([4 * c, c], 5 * c)),
    "QGLB": ("budget", False, lambda c: cpv.QuadraticGaussian(gaussian(c), c / 2)),
    "QGLB without loss": ("budget", False, lambda c: cpv.QuadraticGaussian(gaussian(c), 2 * c)),
    "rate": ("budget", False, lambda c: cpv.GaussianEquivocation(gaussian(c), c / 2)),
    "risk": (
        "budget",
        False,
        lambda c: cpv.PrivacyDistortion(cpv.DiscreteSource(LAW), costs(c), budget=0.3 * float(c)),
    ),
    "risk of all": (
        "budget",
        False,
        lambda c: cpv.PrivacyDistortion(cpv.DiscreteSource(LAW), costs(c), budget=3 * float(c)),
    ),
    "distortion": (
        "leakage_cap",
        True,
        lambda c: cpv.MinimumDistortion(
            cpv.DiscreteSource(LAW), costs(c), [cpv.LeakageCap(0.1)]
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_units_change_no_label(name: str) -> None:
    number, value_scales, problem = PROBLEMS[name]
    (first, *others) = (problem(Fraction(10) ** k).solve() for k in (0, -12, 12))
    for c, solution in zip((1e-12, 1e12), others, strict=True):
        size = c if value_scales else 1.0
        price, other = first.prices[number], solution.prices[number]
        assert (solution.status, other.kind) == (first.status, price.kind)
        assert solution.value / size == pytest.approx(first.value, rel=1e-6, abs=1e-12)
        per_unit = 1 / c if value_scales else c
        assert other * per_unit == pytest.approx(price, rel=1e-5, abs=1e-9)
        if price.kind == "two-sided" and price != 0:
            assert other.words[0] == price.words[0]


def test_boxes_that_hold_next_to_nothing_have_the_labels_of_others() -> None:
    # at a total of all caps the last bit was worth 1/(2 (1/gain + cap)), and the next is worth 0
    for gain, cap in ((1, 1), (1, 1e-9), (1e9, 1), (1e-12, 1)):
        solution = cpv.BoxWaterFilling([gain], [cap], cap, units="nats").solve()
        price, last = solution.prices["total"], -1 / (2 * (1 / gain + cap))
        assert price.kind == "not determined"
        assert price.lower <= last * (1 - 1e-12)
        assert price.upper == 0
        assert price.lower == pytest.approx(last, rel=1e-2)
    for mass in (1e-12, 0.3):  # R(D) = h(p) − h(D) has the slope log₂(p/(1 − p)) at p, and then 0
        price = cpv.HammingWaterFilling([1 - mass, mass], mass).solve().prices["budget"]
        assert price.kind == "not determined"
        assert price.lower == pytest.approx(np.log2(mass / (1 - mass)), rel=1e-2)


@pytest.mark.parametrize("power", [155, 250, 300, -155, -300])
def test_costs_whose_squares_are_no_floats_have_prices(power: int) -> None:
    source, c = cpv.DiscreteSource(LAW), 10.0**power
    one = cpv.PrivacyDistortion(source, STEPS, budget=0.3).solve().prices["budget"]
    far = cpv.PrivacyDistortion(source, STEPS * c, budget=0.3 * c).solve().prices["budget"]
    assert far.kind == one.kind == "two-sided"
    assert far * c == pytest.approx(one, rel=1e-6)
