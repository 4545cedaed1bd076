"""Numbers as documents and as LaTeX hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxprivacy.exact import each, written

__all__ = ["above", "listed", "tex"]


def listed(values: Any) -> Any:
    """Return numbers in lists, as JSON can hold them."""
    if not np.ndim(values):
        return written(values)
    return values.tolist() if values.dtype != object else each(written, values).tolist()


def above(number: float) -> str:
    """Return a number to as few digits as are not below it, six at least."""
    said = (f"{number:.{digits}g}" for digits in range(6, 18))
    return next(text for text in said if float(text) >= number)


def tex(number: float) -> str:
    """Return a number in LaTeX, to six digits."""
    mantissa, _, exponent = f"{number:.6g}".partition("e")
    if not exponent:
        return mantissa
    power = rf"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"
