"""Whether a point can be achieved: each answer has its certificate, checked by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from tests.instances import BINARY
from tests.refusals import refused


@cache
def curve():
    return cpv.frontier(cpv.PrivacyDistortion(BINARY, cpv.hamming(2), 0.2), tol=1e-2)


@cache
def stairs():
    problem = cpv.MinimumDistortion(BINARY, cpv.hamming(2), [cpv.LDiversity(1.5)])
    return cpv.frontier(problem, "l_diversity", tol=0.3)


def truth(d: float) -> float:
    p = 0.2 + 0.6 * min(d, 0.5)  # X̂ differs from W with this probability
    return 1 - cpv.information.entropy([p, 1 - p])


@settings(max_examples=80, deadline=None)
@given(st.floats(0, 0.6), st.floats(-0.1, 0.4))
def test_no_answer_contradicts_the_closed_form(x, y):
    answer = curve().contains((x, y))
    if answer == "inside":
        assert y >= truth(x) - 1e-12
        points = [(curve().points[i], share) for i, share in answer.weights.items()]
        assert sum(share for _, share in points) == 1
        assert sum(share * Fraction(point.x) for point, share in points) <= Fraction(x)
        assert sum(share * Fraction(point.upper) for point, share in points) <= Fraction(y)
    elif answer == "outside":
        assert y < answer.bound <= truth(x) + 1e-12
    else:
        assert abs(y - truth(x)) <= curve().band


def test_ends_and_solved_points():
    for point in curve().points:
        i = curve().points.index(point)
        assert curve().contains((point.x, point.upper)).weights == {i: 1}
        assert curve().contains((point.x, np.nextafter(point.lower, -1.0))) == "outside"
    assert curve().contains((3, 0)) == "inside"


def test_below_the_least_budget_nothing_is_inside():
    costs = np.array([[0.25, 1.0], [1.0, 0.25]])
    curve = cpv.frontier(cpv.PrivacyDistortion(BINARY, costs, 0.5), tol=0.1)
    assert curve.contains((0.2, 5.0)) != "inside"
    proved = cpv.frontier(cpv.PrivacyDistortion(BINARY, costs, 0.5), points=[0.2, 0.3, 0.5])
    answer = proved.contains((0.1, 5.0))
    assert (answer, answer.bound) == ("outside", math.inf)
    assert curve.contains((0.25, 1.0)) == "inside"


def test_a_staircase_mixes_nothing():
    for x in np.linspace(1.05, 1.95, 10):
        low, high = stairs().outer(x), stairs().inner(x)
        assert stairs().contains((x, high)) == "inside"
        assert len(stairs().contains((x, high)).weights) == 1
        if low > -math.inf:
            assert stairs().contains((x, low - 1e-6)) == "outside"


@pytest.mark.parametrize("point", [0.2, (0.2,), (0.1, 0.2, 0.3), [[0.1, 0.2]]])
def test_what_is_no_point_is_refused(point):
    refused(lambda: curve().contains(point), "point", "two numbers")


@pytest.mark.parametrize("point", [(math.nan, 0.1), (0.1, math.inf), ("a", 0.1)])
def test_what_is_no_number_is_refused(point):
    refused(lambda: curve().contains(point), "point")
