"""Expressions, auxiliaries and multipliers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from cvxprivacy.errors import InputError
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.parameter import Scalar
from cvxprivacy.programs.side_conditions import Auxiliary
from cvxprivacy_verifier.balls import ceil, floor
from tests.frontiers.instances import TINY
from tests.programs.test_channel import base, cost


def test_terms_of_what_is_no_number_are_refused():
    for change, message in (
        (
            {"cost": np.full((4, 4), np.inf)},
            "^cost.*inf is not finite; forbid the move with upper = 0",
        ),
        ({"weights": {"W": math.nan}}, "^W: nan is out of range; pass a finite number"),
        ({"constant": "1/2"}, "^constant: '1/2' is no number"),
    ):
        with pytest.raises(InputError, match=message):
            Expression("", **change)
    with pytest.raises(InputError, match="negative radius"):
        replace(
            base(),
            objective=Expression("", {"W": 1}),
            constraints={"r": Expression("", cost_radius=-1) <= 1},
        )


def test_rows_are_named_not_tested():
    with pytest.raises(TypeError, match="truth value"):
        bool(Expression("d", cost=np.ones((2, 2))) <= 1.0)
    with pytest.raises(InputError, match="finite"):
        _ = Expression("d", cost=np.ones((2, 2))) <= math.nan


def test_a_number_may_stand_before_a_quantity():
    a = Expression("a", cost=np.ones((2, 2)))
    assert (Scalar(1) >= a).relation == r"\le"
    assert (Scalar(1) <= a).relation == r"\ge"
    assert (Scalar(1) <= a).bound == -1


def test_terms_form_an_algebra():
    program = base(1)
    a, b = (
        Expression("a", {"W": 2.0}, cost=cost(1)),
        Expression("b", {"W": np.arange(4.0)}, constant=1.0),
    )
    k = np.full((4, 4), 0.25)
    for combined, value in (
        (a + b, program.value(a, k) + program.value(b, k)),
        (3 * a, 3 * program.value(a, k)),
        (-a, -program.value(a, k)),
    ):
        assert program.value(combined, k) == pytest.approx(value)
    atoms = Expression("c", cost=np.random.default_rng(0).random((3, 4, 4)))
    assert program.value(a + atoms, k) == pytest.approx(
        program.value(a, k) + program.value(atoms, k)
    )


def test_multipliers_of_any_shape_are_cleaned():
    program = base(1, constraints={"budget": Expression("d", cost=cost(1)) <= 0.45})
    dual = Dual({"W": np.full((2, 2), 1.0)}, {"budget": np.array([np.nan, 1.0])})
    clean = dual.cleaned(program)
    assert clean.scores["W"].shape == (3, 4)
    assert clean.multipliers["budget"] == 0.0
    assert Dual({}, {"budget": -2.0}).violation(program) == 2.0
    assert clean.violation(program) == 0.0


def test_an_exponential_is_enclosed_and_never_below_one():
    for x in (TINY, 1e-300, 1e-17, 1e-16, 1.2e-16, 2e-16, 3e-16, 1e-9, 0.3, 5.0, 690.0):
        bound = Auxiliary.of("ratio", Scalar(x).exp())
        value, radius = Fraction(bound.bound), Fraction(bound.radius)
        assert value - radius >= 1
        with ctx.workprec(200):
            true = arb(x).exp()
        assert ceil(true) <= value + radius + Fraction(math.ulp(float(value)))
        assert value - radius <= floor(true) + Fraction(math.ulp(float(value)))
    none = Auxiliary.of("ratio", Scalar(0).exp())
    assert (none.bound, none.radius) == (1.0, 0.0)


@pytest.mark.parametrize("ours", [0, Fraction(1, 2**60)])
def test_a_factor_in_a_ball_widens_what_it_multiplies(ours):
    """By what its ends may be off, times the largest cost, and by no more."""
    factor = Scalar(3).log()
    by, radius = factor.enclosure
    assert radius > 0
    costs, constant = (7, -11), -5
    outcome = (
        Expression("t", cost=[costs], cost_radius=ours, constant=constant, constant_radius=ours)
        * factor
    )
    for value, middles, width in (
        (costs, outcome.cost[0], outcome.cost_radius),
        ((constant,), (outcome.constant,), outcome.constant_radius),
    ):
        off = [
            abs((Fraction(c) + e) * f - Fraction(m))
            for c, m in zip(value, middles, strict=True)
            for f in (by - radius, by + radius)
            for e in (-ours, ours)
        ]
        assert max(off) <= width <= 2 * max(off)
    with pytest.raises(TypeError, match="exact"):
        _ = Expression("i", {"W": 1}) * factor


def test_a_constraint_is_what_was_stated():
    """expression − bound is left − right, of either relation, whatever stands on the right."""
    program, k = base(1), np.full((4, 4), 0.25)
    a = Expression("a", cost=cost(1), constant=1.5)
    b = Expression("b", cost=cost(2), constant=2.0)
    at_a, at_b = program.value(a, k), program.value(b, k)
    third = Scalar.named(Fraction(1, 3), "third")
    for row, truth in (
        (a <= b, at_a - at_b),
        (a >= b, at_b - at_a),
        (a == b, at_a - at_b),
        (a <= 0.25, at_a - 0.25),
        (a >= 0.25, 0.25 - at_a),
        (a <= third * b + 1, at_a - at_b / 3 - 1),
        (1 - a <= third, 1 - at_a - 1 / 3),
    ):
        assert program.value(row.expression, k) - float(row.bound) == pytest.approx(truth)
    (slope,) = (a <= third * b + 1).derivatives.values()  # of left − right, by the number typed
    assert program.value(slope, k) == pytest.approx(-at_b)
