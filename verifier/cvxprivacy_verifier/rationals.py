"""Numbers of a document as rationals, and as whole numbers over a common one.

Needs the standard library only.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

__all__ = [
    "BITS",
    "Matrix",
    "UnaffordableError",
    "UnprovableError",
    "bits_of",
    "distinct",
    "integers",
    "number",
    "ratio",
]

_MODULUS = 2**61 - 1  # whole numbers that differ by it have one hash: tables would take for ever
BITS = 20_000  # of a common denominator: sums of fractions without one take for ever
_MOST_BITS = 2**31  # of all numbers of a table over their common denominator

_NUMBER = re.compile(r"-?[0-9]{1,2000}(/0*[1-9][0-9]{0,1999})?")

Matrix = list[list[Any]]


class UnprovableError(ValueError):
    """The data are no program, no channel or no multipliers."""


class UnaffordableError(UnprovableError):
    """A short file asks for more work than proofs are worth."""


def number(value: Any) -> Fraction:
    """Return a number of a document: a finite float, a whole number, or a fraction as text."""
    # True would be 1 for Python, and stands for nothing in a document
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnprovableError(f"{reprlib.repr(value)} is no number")
    if isinstance(value, int) and abs(value) >= _MODULUS:
        raise UnprovableError("a whole number of over 60 bits, which stands as text")
    if isinstance(value, float) and not math.isfinite(value):
        raise UnprovableError(f"{value!r} is not finite")
    return Fraction(*ratio(value)) if isinstance(value, str) else Fraction(value)


def ratio(text: str) -> tuple[int, int]:
    """Return numerator and denominator of a fraction in text."""
    if not _NUMBER.fullmatch(text):
        raise UnprovableError("a text that is no fraction")
    # not Fraction(text), which reads "1e999999999" and makes that number
    numerator, _, denominator = text.partition("/")
    return int(numerator), int(denominator or 1)


def distinct(
    rows: Iterable[Sequence[Any]], kind: Callable[[Any], Any]
) -> tuple[set[float], dict[Any, Any]]:
    """Return the finite floats of a table, and what ``kind`` reads in its other numbers."""
    floats: set[float] = set()
    others: dict[Any, Any] = {}
    for row in rows:
        if {*map(type, row)} == {float}:  # nearly all, and a million at a time
            floats.update(row)
            continue
        for value in row:
            if value not in others or type(value) is bool:  # which is no number, and equals one
                others[value] = kind(value)
    if not all(map(math.isfinite, floats)):
        others.update((value, kind(value)) for value in floats)
        floats = set()
    return floats, others


def integers(table: Sequence[Sequence[Any]]) -> tuple[list[list[int]], int]:
    """Return numbers of a document as whole numbers over one common denominator."""
    floats, others = distinct(table, _quotient)
    common = _common(floats, others)
    if common.bit_length() > BITS:
        raise UnprovableError(f"fractions whose common denominator has over {BITS} bits")
    # a short text may have many different fractions, and each gets the length of all
    count = len(floats) + len(others)
    if count * common.bit_length() > _MOST_BITS:
        raise UnaffordableError(f"{count:,} fractions over {common.bit_length():,} bits")
    quotients = chain(zip(floats, _quotients(floats), strict=True), others.items())
    scaled = {k: above * (common // below) for k, (above, below) in quotients}
    return [[scaled[value] for value in row] for row in table], common


def bits_of(rows: Iterable[Sequence[Any]], name: str = "") -> int:
    """Return the bits of a table's numbers over their common denominator.

    Numbers with a name are added up: they are refused where that denominator has over ``BITS``.
    """
    floats, others = distinct(rows, _quotient)
    bits = _common(floats, others).bit_length()
    if name and bits > BITS:
        raise UnaffordableError(f"{name}: fractions whose common denominator has over {BITS} bits")
    if not (floats or others):
        return 0
    quotients = chain(_quotients(floats), others.values())
    return bits + max(above.bit_length() for above, _ in quotients)


def _common(floats: set[float], others: Mapping[Any, tuple[int, int]]) -> int:
    """Return the least common denominator, or one of over ``BITS`` bits that divides it."""
    # those of floats are powers of two; no set holds the others, as whole numbers that differ by
    # multiples of 2⁶¹ − 1 have one hash, and a file of such would be compared number by number
    binary = {below for _, below in _quotients(floats)}
    common = 1
    for denominator in chain(binary, (below for _, below in others.values())):
        if common % denominator:
            common = math.lcm(common, denominator)
            if common.bit_length() > BITS:  # no further where it is too long already
                break
    return common


def _quotients(floats: set[float]) -> Iterable[tuple[int, int]]:
    """Yield floats in lowest terms: none is kept, as there may be millions."""
    return map(float.as_integer_ratio, floats)


def _quotient(value: Any) -> tuple[int, int]:
    return number(value).as_integer_ratio()
