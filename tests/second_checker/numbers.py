"""Exact numbers, and logarithms between two of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from mpmath import iv, libmp

ZERO, ONE = Fraction(0), Fraction(1)
BITS = 160  # of mpmath's intervals
Pair = tuple[Any, Any]  # a rational at or below a number, and one at or above it
Matrix = list[list[Any]]
_NUMBER = re.compile(r"-?[0-9]+(/[0-9]+)?", re.ASCII)


class Refused(ValueError):  # noqa: N818
    """The document holds no program, or a primal that is not feasible."""


def need(condition: Any, problem: str) -> None:
    if not condition:
        raise Refused(problem)


def exact(value: Any) -> Fraction:
    need(type(value) in (int, float, str), "no number")
    need(not isinstance(value, str) or _NUMBER.fullmatch(value), "a text that is no fraction")
    return Fraction(value)  # raises for nan, infinities and a denominator of 0


def guessed(value: Any) -> Fraction:
    """Return a multiplier; what is no number within floats, a text for instance, counts as 0."""
    try:
        return exact(value) if type(value) in (int, float) and math.isfinite(value) else ZERO
    except OverflowError:
        return ZERO


def spread(pair: Any) -> Pair:
    value, radius = map(exact, pair)
    need(radius >= 0, "a negative radius")
    return value - radius, value + radius


def enclosed(compute: Callable[[], Any]) -> Pair:
    """Return rationals below and above what an expression in intervals is worth."""
    iv.prec = BITS
    low, high = compute()._mpi_
    return Fraction(*libmp.to_rational(low)), Fraction(*libmp.to_rational(high))


def ball(x: Fraction) -> Any:
    return iv.mpf(x.numerator) / iv.mpf(x.denominator)


def interval(pair: Pair) -> Any:
    return iv.mpf([ball(pair[0]).a, ball(pair[1]).b])


@cache
def unit_of(units: str) -> Any:
    """Return a unit of information in nats."""
    iv.prec = BITS
    return {"nats": iv.mpf(1), "bits": iv.log(iv.mpf(2))}[units]


@lru_cache(maxsize=4096)
def log(x: Fraction, units: str = "nats") -> Pair:
    return (ZERO, ZERO) if x == 1 else enclosed(lambda: iv.log(ball(x)) / unit_of(units))


def plus(*pairs: Pair) -> Pair:
    return sum((p[0] for p in pairs), ZERO), sum((p[1] for p in pairs), ZERO)


def times(x: Fraction, pair: Pair) -> Pair:
    return (x * pair[0], x * pair[1]) if x >= 0 else (x * pair[1], x * pair[0])


def table(rows: Any, n: int, m: int, read: Callable[[Any], Fraction] = exact) -> Matrix:
    shaped = isinstance(rows, list) and len(rows) == n
    need(shaped and all(isinstance(r, list) and len(r) == m for r in rows), "another shape")
    return [[read(x) for x in row] for row in rows]


def guessed_table(rows: Any, n: int, m: int) -> Matrix:
    try:
        return table(rows, n, m, guessed)
    except Refused:
        return [[ZERO] * m] * n
