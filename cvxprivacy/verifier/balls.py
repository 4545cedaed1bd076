"""Numbers of a document, exactly or in balls; what both proofs stand on."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from cvxprivacy.verifier.rationals import (
    Matrix,
    UnaffordableError,
    UnprovableError,
    number,
    ratio,
    whole,
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
    "number",
    "smallest",
    "total",
    "whole",
]

PRECISION = 128


def exactly(value: Any) -> fmpq:
    """Return a number of a document, or a rational, as FLINT has it."""
    if _is_float(value):
        return fmpq(*value.as_integer_ratio())
    if isinstance(value, str):
        return fmpq(*ratio(value))
    found = value if isinstance(value, Fraction) else number(value)
    return fmpq(*found.as_integer_ratio())


def enclosure(pair: Sequence[Any]) -> arb:
    """Return a ball of a document, its middle and its radius."""
    middle, radius = pair
    return ball(middle, radius)


def ball(middle: Any, radius: Any = 0) -> arb:
    """Return a ball around a number of a document, or a rational."""
    value = arb(middle if _is_float(middle) else exactly(middle))
    if type(radius) is int and radius == 0:
        return value
    off = exactly(radius)
    if off < 0:
        raise UnprovableError("a negative radius")
    return value + arb(0, arb(off).upper()) if off else value


def _is_float(value: Any) -> bool:
    """Tell the numbers that most are, and that FLINT takes as they are."""
    return type(value) is float and math.isfinite(value)


def total(values: Iterable[Any]) -> arb:
    """Return the sum of balls."""
    return sum(values, arb(0))


def smallest(values: Sequence[arb]) -> arb:
    """Return a ball that holds the least of some numbers."""
    least = values[0]
    for value in values[1:]:
        least = least.min(value)
    return least


def floor(value: arb) -> float:
    """Return a float at or below every number of the ball; −inf if there is none."""
    return _outward(value.lower(), -math.inf)


def ceil(value: arb) -> float:
    """Return a float at or above every number of the ball; +inf if there is none."""
    return _outward(value.upper(), math.inf)


def _outward(end: arb, side: float) -> float:
    value = float(end)
    if math.isnan(value):
        return side
    for _ in range(4):
        near = arb(value)
        if (near <= end) if side < 0 else (near >= end):
            return value
        value = math.nextafter(value, side)
    return side


def decode(end: Any) -> float:
    """Return an end of a claim exactly, or raise ``UnprovableError``."""
    if end in ("inf", "-inf") or (isinstance(end, float) and math.isfinite(end)):
        return float(end)
    raise UnprovableError(f"{reprlib.repr(end)} is no end of an enclosure")
