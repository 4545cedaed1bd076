"""Scalars: numbers that remember which numbers were typed, and how they depend on them."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import pytest

from cvxprivacy.programs.parameter import Scalar

A, B = 3, Fraction(5, 4)


def stated(a, b):
    return Scalar.named(a, "a"), Scalar.named(b, "b")


@pytest.mark.parametrize(
    ("of", "truth"),
    [
        (lambda a, b: a + b, lambda a, b: a + b),
        (lambda a, b: a - b, lambda a, b: a - b),
        (lambda a, b: 2 * a - b / 4 + 1, lambda a, b: 2 * a - b / 4 + 1),
        (lambda a, b: 1 - (a + b) * 3, lambda a, b: 1 - (a + b) * 3),
        (lambda a, b: -a + a + b, lambda a, b: b),
        (lambda a, b: (a * 7).log() + b, lambda a, b: math.log(7 * a) + b),
        (lambda a, b: 2 - 3 * a.log("bits"), lambda a, b: 2 - 3 * math.log2(a)),
        (lambda a, b: b.exp() * 5 - a, lambda a, b: 5 * math.exp(b) - a),
        (lambda a, b: (-b).exp(2), lambda a, b: 2.0 ** -float(b)),
    ],
)
def test_values_and_slopes(of, truth):
    outcome = of(*stated(A, B))
    assert outcome.near == pytest.approx(truth(A, B), rel=1e-15)
    middle, radius = outcome.enclosure
    assert abs(middle - Fraction(truth(A, B))) <= radius + Fraction(1, 2**48)
    step = 1e-6
    for name, up, down in (
        ("a", (A + step, B), (A - step, B)),
        ("b", (A, float(B) + step), (A, float(B) - step)),
    ):
        slope = sum(s * symbol.slope for symbol, s in outcome.slopes.items() if symbol.name == name)
        assert slope == pytest.approx((truth(*up) - truth(*down)) / (2 * step), abs=1e-7)


@pytest.mark.parametrize(
    "of",
    [
        lambda a, b: a * b,
        lambda a, b: b / a,
        lambda a, b: (a + 1).log(),
        lambda a, b: (a + b).exp(),
        lambda a, b: (2 * a + 1).exp(),
        lambda a, b: a.log().log(),
        lambda a, b: (-a).log(),
    ],
)
def test_what_no_function_of_one_number_is_affine_in_is_refused(of):
    with pytest.raises(TypeError):
        of(*stated(A, B))


def test_scalars_compare_and_print_as_their_numbers():
    a, b = stated(A, B)
    assert a == 3 == Scalar(3)
    assert a != b
    assert a.__eq__("3") is NotImplemented
    assert b < 2 < a > 2.5
    assert not operator.gt(b, 2)
    assert hash(a) == hash(Fraction(3))
    assert (repr(a), repr(b)) == ("3.0", "1.25")
    assert not Scalar(0)


def test_a_number_that_is_typed_is_no_float():
    with pytest.raises(TypeError, match="state the program with its arithmetic"):
        float(stated(A, B)[0])
