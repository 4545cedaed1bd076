"""Labels of letters: the one value that stands for equal ones, in JSON, and as people read it."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from operator import methodcaller
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import pd

__all__ = [
    "LongDecimal", "as_fraction", "as_label", "canonical", "printable", "read", "shown", "written",
]  # fmt: skip

FARTHEST = 400  # decimal exponents, of which floats have 324: 1e999999999 would fill the memory
_MICROSECOND = timedelta(microseconds=1)


class LongDecimal(Decimal):
    """A decimal that no float is written as; it is compared with floats by their digits.

    A float of many digits can equal it as a number, and stand for another decimal:

    >>> LongDecimal("1234567890123.10009765625") == 1234567890123.1
    False
    """

    __slots__ = ()
    __hash__ = Decimal.__hash__

    def __eq__(self, other: object) -> bool:
        return super().__eq__(_digits(other))

    def __ne__(self, other: object) -> bool:
        return super().__ne__(_digits(other))

    def __lt__(self, other: Any) -> bool:
        return super().__lt__(_digits(other))

    def __le__(self, other: Any) -> bool:
        return super().__le__(_digits(other))

    def __gt__(self, other: Any) -> bool:
        return super().__gt__(_digits(other))

    def __ge__(self, other: Any) -> bool:
        return super().__ge__(_digits(other))

    def __str__(self) -> str:
        return f"{self:f}"


def _digits(value: Any) -> Any:
    return Decimal(repr(value)) if isinstance(value, float) else value


def as_fraction(value: Any) -> Fraction:
    """Return a finite number as its digits say, 0.1 as a tenth, and refuse a huge exponent."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal) or (isinstance(value, str) and "e" in value.lower()):
        try:
            far = abs(Decimal(value).adjusted()) > FARTHEST
        except ArithmeticError:  # farther than decimals are
            far = True
        if far:
            remedy = f"pass one with an exponent of at most ±{FARTHEST}"
            raise InputError("number", reprlib.repr(value), remedy, value=value)
    return Fraction(repr(value) if isinstance(value, float) else value)


def canonical(value: Any) -> Any:
    """Return the one value that stands for all that are equal to this one.

    Whole decimals and fractions are integers.  A decimal with a fractional part is the float that
    is written with its digits, if there is one, so that 1.50 of a database is 1.5 of a text; else
    it stays exact.  A decimal NaN is missing.

    Examples
    --------
    >>> canonical(Decimal("2.00")), canonical(Decimal("0.10")), canonical(Fraction(1, 4))
    (2, 0.1, 0.25)
    >>> str(canonical(Decimal("123456789012345678.120")))
    '123456789012345678.12'
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal) and not value.is_finite():
        return None if value.is_nan() else float(value)
    if not isinstance(value, Decimal | Fraction):
        return value
    ratio = Fraction(value)
    if ratio.denominator == 1:
        return int(ratio)
    places = ratio.denominator.bit_length()
    if 10**places % ratio.denominator:
        return ratio
    number = float(ratio)
    if math.isfinite(number) and Fraction(repr(number)) == ratio:
        return number
    text = f"{Decimal(f'{ratio.numerator * 10**places // ratio.denominator}E-{places}'):f}"
    return LongDecimal(text.rstrip("0"))


def as_label(values: Sequence[Any]) -> Any:
    """Return one value as it is, several as a tuple: what labels a letter."""
    return values[0] if len(values) == 1 else tuple(values)


def written(label: Any, *, lenient: bool = False) -> Any:
    """Return a label for JSON: a tuple as a list, others as ``{"date": "2026-11-21"}``.

    Parameters
    ----------
    lenient : bool
        Write a label that JSON cannot hold as text, which :func:`read` refuses.

    Raises
    ------
    InputError
        For a label that JSON cannot hold.
    """
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [written(part, lenient=lenient) for part in label]
    for kind, (of, text_of, _) in _KINDS.items():
        if isinstance(label, of) and not (isinstance(label, float) and math.isfinite(label)):
            return {kind: text_of(label)}
    if isinstance(label, str):
        kept = label.encode("utf-8", "replace").decode() == label  # half a surrogate pair is not
        if kept:
            return label
    elif label is None or isinstance(label, bool | int | float):
        return label
    if lenient:
        return {"other": repr(label)}
    problem = f"the label {label!r} is a {type(label).__name__}"
    raise InputError("labels", problem, "use text, numbers or dates in the table", value=label)


def read(label: Any) -> Any:
    """Return what :func:`written` was given.

    Raises
    ------
    InputError
        For what it does not write.
    """
    if isinstance(label, dict):
        try:
            ((kind, text),) = label.items()
            return _KINDS[kind][2](text)
        except (ValueError, LookupError, TypeError, ArithmeticError):
            problem = f"{reprlib.repr(label)} is no label"
            remedy = "keep the file as it was written"
            raise InputError("labels", problem, remedy, value=label) from None
    return tuple(read(part) for part in label) if isinstance(label, list) else label


def _moment(text: str) -> datetime:
    """Return a moment, of nanoseconds where it has them."""
    precise = re.search(r"\.[0-9]{9}", text) is not None
    return pd.Timestamp(text) if precise else datetime.fromisoformat(text)


def _nanoseconds(duration: timedelta) -> str:
    return str(duration // _MICROSECOND * 1000 + getattr(duration, "nanoseconds", 0))


def _duration(text: str) -> timedelta:
    """Return a duration of so many nanoseconds."""
    microseconds, nanoseconds = divmod(int(text), 1000)
    duration = timedelta(microseconds=microseconds)
    return duration + pd.Timedelta(nanoseconds) if nanoseconds else duration


def _decimal(text: str) -> LongDecimal:
    as_fraction(number := LongDecimal(text))  # which refuses what is far, and what is not finite
    return number


def _fraction(text: str) -> Fraction:
    if not re.fullmatch("-?[0-9]+(/[0-9]+)?", text):
        raise ValueError("no fraction")
    return Fraction(text)


_ISO = methodcaller("isoformat")  # pandas' own of its moments, with their nanoseconds
# what JSON does not hold, as text and back
_KINDS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "datetime": (datetime, _ISO, _moment),
    "date": (date, _ISO, date.fromisoformat),
    "time": (time, _ISO, time.fromisoformat),
    "duration": (timedelta, _nanoseconds, _duration),
    "float": (float, repr, float),
    "decimal": (Decimal, str, _decimal),
    "fraction": (Fraction, str, _fraction),
}


def shown(letter: Any) -> str:
    """Return a letter as people read it."""
    if isinstance(letter, tuple):
        return f"({', '.join(map(shown, letter))})"
    return "missing" if letter is None else printable(str(letter))


def printable(text: str) -> str:
    """Return text in which no character commands a terminal: those are escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
