"""What can be done with a quantity of a release, and in which words the rest is refused.

A quantity is added, weighed by numbers and compared, as in CVXPY; no other function of it is
stated by a program.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np

__all__ = ["Quantity"]

_REMEDY = (
    "quantities are added, weighed by numbers and compared; of a maximum, bound each by itself"
)
_REFLECTED = {  # what NumPy calls the operators of a number of its own on the left
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "less_equal": "__ge__",
    "greater_equal": "__le__",
    "equal": "__eq__",
}


class Quantity:
    """A quantity with ``+``, ``*`` by numbers, ``<=``, ``>=`` and ``==``, and what these make."""

    def __add__(self, other: Any) -> Any:
        raise NotImplementedError

    def __mul__(self, factor: Any) -> Self:
        raise NotImplementedError

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other)

    def __rmul__(self, factor: Any) -> Self:
        return self.__mul__(factor)

    def __neg__(self) -> Self:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    # ---- what is refused ------------------------------------------------------------------

    def __rtruediv__(self, other: Any) -> NoReturn:
        remedy = "1/quantity <= b is stated as quantity >= 1/b, where that is convex"
        raise TypeError(f"a reciprocal of a quantity of a release is not taken: {remedy}")

    def __pow__(self, exponent: Any) -> NoReturn:
        remedy = "bound the quantity itself by the root of the bound"
        raise TypeError(f"a power of a quantity of a release is not taken: {remedy}")

    def __abs__(self) -> NoReturn:
        remedy = "bound it from both sides, by two names: quantity <= b and quantity >= -b"
        raise TypeError(f"an absolute value of a quantity of a release is not taken: {remedy}")

    def __lt__(self, bound: Any) -> NoReturn:  # which max and min ask for, too
        remedy = f"state it with <= or >= (and of max or min: {_REMEDY})"
        raise TypeError(f"a strict inequality has no optimum: {remedy}")

    __gt__ = __lt__

    # NumPy and CVXPY would take a quantity for an array of objects

    def __array__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise TypeError(f"a quantity of a release is no array: {_REMEDY}")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        reflected, number = _REFLECTED.get(function.__name__), inputs[0]
        if reflected is None or isinstance(number, Quantity):
            raise TypeError(f"numpy.{function.__name__} of a quantity of a release: {_REMEDY}")
        return getattr(self, reflected)(number if np.ndim(number) else number.item())
