"""Numbers of a document, exactly or in balls; what both proofs stand on."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from flint import arb, fmpq

from .rationals import (
    Matrix,
    UnaffordableError,
    UnprovableError,
    integers,
    number,
    ratio,
)

__all__ = [
    "PRECISION",
    "Matrix",
    "UnaffordableError",
    "UnprovableError",
    "ball",
    "ceil",
    "decode",
    "enclosure",
    "exactly",
    "floor",
    "integers",
    "number",
    "power",
    "smallest",
    "total",
]

# bits of a ball's middle: a sum of 10⁶ products is known to 10⁻³² then, where a claim is a float of
# 53 bits and a gap 10⁻⁹; the upper end of a grid of 201 points took 0.16 s with it
PRECISION = 128


def exactly(value: Any) -> fmpq:
    """Return a number of a document, or a rational, as FLINT has it."""
    if _is_float(value):  # a dyadic rational, and meant as such: 0.1 is not 1/10
        return fmpq(*value.as_integer_ratio())
    if isinstance(value, str):
        return fmpq(*ratio(value))
    fraction = value if isinstance(value, Fraction) else number(value)
    return fmpq(*fraction.as_integer_ratio())


def enclosure(pair: Sequence[Any]) -> arb:
    """Return a ball of a document, its middle and its radius."""
    middle, radius = pair
    return ball(middle, radius)


def ball(middle: Any, radius: Any = 0) -> arb:
    """Return a ball around a number of a document, or a rational."""
    # a float is a ball of radius 0, a fraction one that holds it
    value = arb(middle if _is_float(middle) else exactly(middle))
    if type(radius) is int and radius == 0:
        return value
    off = exactly(radius)
    if off < 0:
        raise UnprovableError("a negative radius")
    # the radius that is stated is rounded up: what is proved holds for every number meant
    return value + arb(0, arb(off).upper()) if off else value


def _is_float(value: Any) -> bool:
    """Tell the numbers that most are, and that FLINT takes as they are."""
    return type(value) is float and math.isfinite(value)


def total(values: Iterable[Any]) -> arb:
    """Return the sum of balls."""
    return sum(values, arb(0))


def smallest(values: Sequence[arb]) -> arb:
    """Return a ball that holds the least of some numbers."""
    # of each end apart: which of the numbers is the least need not be known
    return reduce(arb.min, values)


def power(x: arb, order: arb) -> arb:
    """Enclose the power of a number ≥ 0, of an order > 0."""
    if x > 0:
        return x**order
    return arb(0).union(x.upper() ** order) if x.upper() > 0 else arb(0)


def floor(value: arb) -> float:
    """Return a float at or below every number of the ball; −inf if there is none."""
    return _outward(value.lower(), -math.inf)


def ceil(value: arb) -> float:
    """Return a float at or above every number of the ball; +inf if there is none."""
    return _outward(value.upper(), math.inf)


def _outward(end: arb, side: float) -> float:
    value = float(end)
    if math.isnan(value):  # a ball of everything proves nothing: −∞ or ∞
        return side
    # FLINT rounds to nearest; (C15) needs a side, and the comparison of balls decides it
    for _ in range(4):
        near = arb(value)
        if (near <= end) if side < 0 else (near >= end):
            return value
        value = math.nextafter(value, side)
    return side  # sound whatever went wrong


def decode(end: Any) -> float:
    """Return an end of a claim exactly, or raise ``UnprovableError``."""
    # JSON has no infinities, and an end that is no number must not compare as one
    if end in ("inf", "-inf") or (isinstance(end, float) and math.isfinite(end)):
        return float(end)
    raise UnprovableError(f"{reprlib.repr(end)} is no end of an enclosure")
