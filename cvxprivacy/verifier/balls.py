"""Numbers of a document, exactly or in balls; what both proofs stand on."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

__all__ = [
    "MOST",
    "PRECISION",
    "Matrix",
    "UnaffordableError",
    "UnprovableError",
    "affordable",
    "ball",
    "ceil",
    "decode",
    "enclosure",
    "exactly",
    "floor",
    "number",
    "total",
    "whole",
]

PRECISION = 128
MOST = 2_000_000  # entries of all tables that a program makes: a short file must not ask for more
BITS = 20_000  # of a common denominator: sums of fractions without one take for ever

_NUMBER = re.compile(r"-?[0-9]{1,2000}(/0*[1-9][0-9]{0,1999})?")

Matrix = list[list[Any]]


class UnprovableError(ValueError):
    """The data are no program, no channel or no multipliers."""


class UnaffordableError(UnprovableError):
    """A short file asks for more work than proofs are worth."""


def number(value: Any) -> Fraction:
    """Return a number of a document: a finite float, a whole number, or a fraction as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnprovableError(f"{reprlib.repr(value)} is no number")
    if isinstance(value, float) and not math.isfinite(value):
        raise UnprovableError(f"{value!r} is not finite")
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise UnprovableError("a text that is no fraction")
    return Fraction(value)


def exactly(value: Any) -> fmpq:
    """Return a number of a document, or a rational, as FLINT has it."""
    if _is_float(value):
        return fmpq(*value.as_integer_ratio())
    found = value if isinstance(value, Fraction) else number(value)
    return fmpq(*found.as_integer_ratio())


def whole(table: Sequence[Sequence[Any]]) -> tuple[list[list[int]], int]:
    """Return numbers of a document as whole numbers over one common denominator."""
    known = {value: number(value) for row in table for value in row}
    common = 1
    for denominator in {value.denominator for value in known.values()}:
        common = math.lcm(common, denominator)
        if common.bit_length() > BITS:
            raise UnprovableError(f"fractions whose common denominator has over {BITS} bits")
    scaled = {k: v.numerator * (common // v.denominator) for k, v in known.items()}
    return [[scaled[value] for value in row] for row in table], common


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


def affordable(work: int) -> None:
    """Refuse a program whose tables would have too many entries, before any is made."""
    if work > MOST:
        raise UnaffordableError(f"tables of {work:,} entries, where {MOST:,} are the most")


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
