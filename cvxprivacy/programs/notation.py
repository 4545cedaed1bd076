"""Numbers as documents and as LaTeX hold them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from cvxprivacy.exact import each, written

__all__ = ["above", "in_place", "listed", "logarithm", "tex", "upright"]

_SIGNS = {"\\": r"\backslash ", "~": r"\sim ", "^": r"\wedge "} | {c: "\\" + c for c in "_%&#${}"}


def listed(values: Any) -> Any:
    """Return numbers in lists, as JSON can hold them."""
    if not np.ndim(values):
        return written(values)
    return values.tolist() if values.dtype != object else each(written, values).tolist()


def above(number: float) -> str:
    """Return a number to as few digits as are not below it, six at least."""
    texts = (f"{number:.{digits}g}" for digits in range(6, 18))
    return next(text for text in texts if float(text) >= number)


def in_place(text: str, number: str, name: str) -> str:
    """Return a text with a name in the place of the last number that is written so."""
    *before, last = re.split(rf"(?<![\w.]){re.escape(number)}(?![\w.])", text)
    return number.join(before) + name + last if before else text


def tex(number: float) -> str:
    """Return a number in LaTeX, to six digits."""
    mantissa, _, exponent = f"{number:.6g}".partition("e")
    if not exponent:
        return mantissa
    power = rf"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"


def logarithm(units: str) -> str:
    """Return the logarithm of units in LaTeX."""
    return r"\log_2" if units == "bits" else r"\ln"


def upright(name: str) -> str:
    """Return text as LaTeX sets it within mathematics, with all signs that it knows as its own.

    They stand between pieces of text: MathJax knows no such sign within one.
    """
    pieces = re.split(r"([\\~^_%&#${}<>])", name)
    return "".join(
        _SIGNS.get(piece, piece) if i % 2 else rf"\text{{{piece}}}"
        for i, piece in enumerate(pieces)
        if piece
    )
