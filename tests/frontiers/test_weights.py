"""Frontiers over a weight of the objective: concave, between lines and chords."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar

import cvxprivacy as cpv
from cvxprivacy.frontiers.curve import CONCAVE, Axis, Breakpoint, Concave
from cvxprivacy.typing import Frontier
from tests.instances import BINARY
from tests.refusals import refused

PROBLEM = cpv.PrivacyDistortion(BINARY, cpv.hamming(2), price=0.5)
CURVE = cpv.frontier(PROBLEM, "price", between=(0.05, 5), tol=2e-3)


def h(p: float) -> float:
    return float(cpv.information.entropy([p, 1 - p]))


def truth(price: float) -> float:
    """min D + λ (1 − h(0.2 ∗ D)) over 0 ≤ D ≤ ½."""

    def cost(d: float) -> float:
        return d + price * (1 - h(0.2 + 0.6 * d))

    inner = minimize_scalar(cost, bounds=(0, 0.5), method="bounded", options={"xatol": 1e-12})
    return min(inner.fun, cost(0.0), cost(0.5))


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 5))
def test_it_encloses_the_closed_form(price):
    low, high, optimum = CURVE.outer(price), CURVE.inner(price), truth(price)
    assert low <= optimum + 1e-9
    assert optimum <= high + 1e-9
    assert high - low <= CURVE.band + 1e-12
    assert CURVE.contains((price, optimum + 2e-3 + 1e-9)) == "inside"
    assert CURVE.contains((price, optimum - 2e-3 - 1e-9)) == "outside"
    step = 1e-4 * price  # the slope is what is leaked, of the optimum, by differences
    between = truth(price) - truth(price - step), truth(price + step) - truth(price)
    slopes = CURVE.price(price)
    assert slopes.lower <= between[0] / step + 1e-4
    assert slopes.upper >= between[1] / step - 1e-4


def test_it_is_concave_and_complete_and_says_so():
    assert CURVE.complete
    assert CURVE.kind == "concave"
    assert CURVE.solved_range == (0.05, 5)
    places = np.linspace(0.05, 5, 40)
    for curve in (CURVE.inner(places), CURVE.outer(places)):
        assert (np.diff(curve) >= -1e-9).all()
    assert (np.diff(CURVE.inner(places), 2) <= 1e-9).all()
    assert "over price, from 0.05 to 5: concave" in str(CURVE)
    assert CURVE._facts["ordinate"].endswith(r"\lambda\, I(W; \hat X)")
    assert CURVE.outer(0.01) == -math.inf  # nothing is proved beyond the ends
    assert CURVE.inner(20.0) >= 0.5  # above, each release achieves its line everywhere


@pytest.mark.parametrize("price", [0.05, 0.7, 1.234, 4.9])
def test_a_release_between_solved_points_is_one_of_theirs(price):
    solution = CURVE.solution_at(price)
    assert solution.certificate.verify()
    assert solution.certificate.proves(PROBLEM.at(price=price))
    assert solution.upper <= CURVE.inner(price) + 1e-12
    assert truth(price) - 1e-9 <= solution.upper
    assert CURVE.outer(price) - 1e-9 <= solution.lower <= truth(price) + 1e-9  # the chord or more
    answer = CURVE.contains((price, CURVE.inner(price)))
    assert len(answer.weights) == 1


def test_a_number_of_ones_own_weighs_by_the_same_rule():
    class RateAndRisk(cpv.ChannelProblem):
        budget = cpv.Parameter()
        weight = cpv.Parameter()

        def formulation(self):
            return self.rate + self.weight * self.risk, {"budget": self.distortion <= self.budget}

    problem = RateAndRisk(BINARY, cpv.hamming(2), 0.2, 1.0)
    curve = cpv.frontier(problem, "weight", between=(0, 2), tol=1e-2)
    rate, risk = 1 - h(0.2), 1 - h(0.32)  # both are least at once
    for weight in (0.0, 0.3, 2.0):
        assert curve.outer(weight) <= rate + weight * risk + 1e-9
        assert curve.inner(weight) == pytest.approx(rate + weight * risk, abs=1e-6)
    assert cpv.frontier(problem, "budget", tol=5e-2).kind == "convex"

    class Twice(cpv.ChannelProblem):
        weight = cpv.Parameter()

        def formulation(self):
            rows = {"budget": self.distortion <= self.weight}
            return self.rate + self.weight * self.risk, rows

    class Logarithm(cpv.ChannelProblem):
        weight = cpv.Parameter(zero=False)

        def formulation(self):
            return self.rate + self.weight * self.risk + self.weight.log() * self.distortion, {}

    refused(lambda: cpv.frontier(Logarithm(BINARY, cpv.hamming(2), 2.0), "weight"), "parameter")
    refused(lambda: cpv.frontier(Twice(BINARY, cpv.hamming(2), 0.2), "weight"), "parameter")


def test_it_is_kept_with_its_proofs_and_needs_its_problem(tmp_path):
    path = CURVE.save(tmp_path / "curve.json")
    again = Frontier.load(path, PROBLEM.at(price=3), verify=True)
    assert again.band == CURVE.band
    assert again.solution_at(1.234).upper == CURVE.solution_at(1.234).upper
    refused(lambda: Frontier.load(path, verify=True), "problem")
    other = cpv.PrivacyDistortion(BINARY, [[0, 2], [1, 0]], price=0.5)
    refused(lambda: Frontier.load(path, other, verify=True), "problem")
    assert pickle.loads(pickle.dumps(CURVE)).inner(1.0) == CURVE.inner(1.0)
    refused(lambda: CURVE.to_json(tmp_path / "picture.json"), "parameter", "save()")


@pytest.mark.parametrize("change", ["lower", "risk", "rows"])
def test_what_was_tampered_with_is_refused(tmp_path, change):
    path = CURVE.save(tmp_path / "curve.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    claim = document["points"][3]["claim"]
    if change == "lower":
        claim["lower"] += 1e-4
    elif change == "risk":
        claim["terms"]["risk"] = [0.0, 0.0]
    else:
        document["facts"]["rows"] = ["distortion"]
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(cpv.InputError) as caught:
        Frontier.load(path, PROBLEM, verify=True)
    assert caught.value.argument == "path"


def test_lines_and_chords_by_hand():
    """V(x) = min(x, 1): lines of the releases (0, 1) and (1, 0), exactly."""
    axis = Axis(CONCAVE, "bits", rows=("risk",))
    one, nothing = (Fraction(1), Fraction(1)), (Fraction(0), Fraction(0))
    points = [Breakpoint(0.5, (0, 0), 0.5, 0.5, one), Breakpoint(2.0, (0, 0), 1.0, 1.0, nothing)]
    curve = Concave(points, axis)
    assert [curve.inner(x) for x in (0.5, 0.75, 1.0, 1.5, 2.0)] == [0.5, 0.75, 1.0, 1.0, 1.0]
    assert curve.outer(1.0) == pytest.approx(2 / 3)
    assert curve.outer(1.0) <= 2 / 3
    (gap,) = curve.gaps
    assert gap.split == 1.0  # where the lines meet
    assert gap.band == pytest.approx(1 / 3)
    wrong = [points[0], Breakpoint(2.0, (0, 0), 1.5, 1.0, nothing)]  # more than is achieved
    with pytest.raises(ArithmeticError, match="contradict"):
        _ = Concave([*wrong, Breakpoint(3.0, (0, 0), 1.5, 1.0, nothing)], axis).band


def test_a_weight_has_no_ends_of_its_own():
    error = refused(lambda: cpv.frontier(PROBLEM, "price", tol=0.1), "between", "(lo, hi)")
    assert "no least" in error.problem
    some = cpv.frontier(PROBLEM, "price", points=[0.2, 1.0, 4.0])
    assert len(some.points) == 3
    assert some.outer(0.5) <= truth(0.5) <= some.inner(0.5)
