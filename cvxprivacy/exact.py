"""Numbers as they were typed: a float where a float is the number, a rational where it is not.

A float is the dyadic rational that it is, so that most arrays stay arrays of floats; a
``Fraction``, a ``Decimal``, a whole number beyond 2⁵³, or a sum or product that no float is, makes
an array of ``Fraction``s.  Nothing here rounds: what enters a proof has been through here.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxprivacy.extras import is_of_engine, nw
from cvxprivacy.frozen import core, is_owned, owned

__all__ = [
    "DIGITS",
    "TINY",
    "Exact",
    "Real",
    "alike",
    "array",
    "each",
    "entries",
    "floats",
    "fractions",
    "listed",
    "over",
    "plain",
    "plus",
    "rational",
    "short",
    "times",
    "typed_most",
    "unwritable",
    "written",
]

TINY = 1e-300  # in place of masses that underflow, and of 0 where it is divided by
DIGITS = 2000  # of a numerator or a denominator, which proofs can hold
_LONG = 10**DIGITS
_Result = TypeVar("_Result")
FloatArray = npt.NDArray[np.float64]
Exact = npt.NDArray[Any]  # of floats, or of Fractions
Number = int | float | Fraction | Decimal | np.floating | np.integer
_NATIVE = (float, int, np.integer, np.bool_, np.float16, np.float32)  # within 2⁵³ all are floats
Real = float | Fraction | Decimal  # what a number may be typed as


def is_sparse(values: Any) -> bool:
    """Tell a sparse array, which a channel is where tables would be too large."""
    return bool(sparse.issparse(values))


def rational(value: Any) -> Fraction:
    """Return a finite number as the rational that it is.

    Raises
    ------
    TypeError, ValueError, OverflowError
        For what is no number, NaN, and an infinity.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Decimal) and value.is_finite():
        size = max(abs(value.adjusted()), len(value.as_tuple().digits))
        if size > DIGITS:
            raise OverflowError(f"more than {DIGITS:,} digits")
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, str | bytes) or not hasattr(value, "as_integer_ratio"):
        if isinstance(value, np.integer | np.bool_):
            return Fraction(int(value))
        raise TypeError(f"{value!r} is no number")
    return Fraction(*(int(part) for part in value.as_integer_ratio()))


def short(value: Fraction) -> bool:
    """Tell whether a proof can hold a rational."""
    return max(abs(value.numerator), value.denominator) < _LONG


def _remembered(function: Callable[[Exact], _Result]) -> Callable[[Exact], _Result]:
    """Keep what a function finds of an array of rationals of our own, while there is one."""
    results: dict[int, tuple[weakref.ref[Exact], _Result]] = {}

    @wraps(function)
    def lookup(values: Exact) -> _Result:
        key = id(values)
        if key in results and results[key][0]() is values:
            return results[key][1]
        result = function(values)
        if is_owned(values):
            results[key] = weakref.ref(values, lambda _: results.pop(key, None)), result
        return result

    return lookup


def alike(values: Exact) -> Exact:
    """Return a table with one row where all are equal, one column where all are, or one layer."""
    values = core(values)
    for axis in range(values.ndim):
        first = values.take([0], axis)
        if values.dtype == object:  # what repeats is mostly one object
            pairs = zip(values.flat, np.broadcast_to(first, values.shape).flat, strict=True)
            equal = all(a is b or a == b for a, b in pairs)
        else:
            equal = bool((values == first).all())
        values = first if equal else values
    return values


def _of_core(function: Callable[..., Exact]) -> Callable[..., Exact]:
    """Apply a function of each entry to what an array does not repeat."""

    @wraps(function)
    def applied(values: Exact, *others: Any) -> Exact:
        if (once := core(values)).size == values.size:
            return function(values, *others)
        return owned(np.broadcast_to(function(once, *others), values.shape))

    return applied


def unwritable(values: Exact) -> tuple[int, ...] | None:
    """Return where an array's first rational is that a proof cannot hold, or None."""
    return _unwritable(core(values)) if values.dtype == object else None


@_remembered
def _unwritable(values: npt.NDArray[np.object_]) -> tuple[int, ...] | None:
    long = {id(value) for value in _distinct(values) if not short(value)}
    places = (where for where, value in np.ndenumerate(values) if id(value) in long)
    return next(places, None) if long else None


def plain(value: Fraction) -> float | Fraction:
    """Return a rational as a float if it is one, else as it is."""
    numerator, denominator = value.as_integer_ratio()
    if denominator & (denominator - 1):  # no power of two
        return value
    if numerator & 1 and numerator.bit_length() > 53:  # more digits than a float has
        return value
    if numerator.bit_length() > 1100 or denominator.bit_length() > 1100:
        return value
    try:
        near = float(value)
    except OverflowError:
        return value
    return near if near.as_integer_ratio() == (numerator, denominator) else value


def array(values: Any) -> Exact:
    """Return numbers as an array that cannot be written to, of floats if all of them are floats.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As :func:`rational`; infinite and undefined floats of an array of floats are kept.
    """
    if type(values) is np.ndarray and is_owned(values) and _exact(values):
        return values  # as is: what is the same is stored once
    if type(values) is np.ndarray and (once := core(values)).size < values.size:
        return owned(np.broadcast_to(array(once), values.shape))
    if type(values) is not np.ndarray:
        values = entries(values)
        if values.dtype == object:
            if any(isinstance(v, np.ndarray) for v in values.flat):  # numbers without axes
                values = np.array([v[()] for v in values.flat], object).reshape(values.shape)
            values = _typed_alike(values)
    if values.dtype.kind in "mM":
        raise TypeError("dates and times are no numbers")
    if values.dtype.kind == "f" and values.dtype.itemsize <= 8:
        return owned(values.astype(float))
    if values.dtype.kind in "biu" and (np.abs(values.astype(float)) < 2.0**53).all():
        return owned(values.astype(float))
    return _lowered(each(rational, values))


def floats(values: Exact) -> FloatArray:
    """Return the nearest floats."""
    return values if values.dtype.kind == "f" else _floats(values)


@_remembered
@_of_core
def _floats(values: npt.NDArray[np.object_]) -> FloatArray:
    near = {id(value): float(value) for value in _distinct(values)}
    flat = np.fromiter((near[id(value)] for value in values.flat), float, values.size)
    return owned(flat.reshape(values.shape))


def fractions(values: Exact) -> npt.NDArray[np.object_]:
    """Return an array of ``Fraction``s."""
    return values if values.dtype == object else each(rational, values)


def plus(a: Exact, b: Exact) -> Exact:
    """Return a + b."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = core(a), core(b)
    total = _plus(a, b)
    return total if total.shape == shape else owned(np.broadcast_to(total, shape))


def _plus(a: Exact, b: Exact) -> Exact:
    if a.dtype.kind == b.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            total = a + b
            other = total - a
            error = (a - (total - other)) + (b - other)  # of a rounded sum
        if (error == 0).all():
            return owned(total)
    one, two = np.broadcast_arrays(fractions(a), fractions(b))
    sums: dict[tuple[int, int], Fraction] = {}  # tables repeat few entries, as the same objects
    result = np.empty(one.shape, dtype=object)
    for place, pair in enumerate(zip(one.flat, two.flat, strict=True)):
        key = id(pair[0]), id(pair[1])
        if key not in sums:
            sums[key] = pair[0] + pair[1]
        result.flat[place] = sums[key]
    return _lowered(result)


@_of_core
def times(a: Exact, factor: Number) -> Exact:
    """Return the products with one number."""
    by = rational(factor)
    if by == 1:
        return a
    return _of_distinct(lambda value: rational(value) * by, a)


def over(numerators: npt.NDArray[Any], denominator: int) -> Exact:
    """Return whole numbers over a common denominator; what is equal is one object."""
    if numerators.dtype == object:
        place: dict[int, int] = {}
        places = np.array([place.setdefault(k, len(place)) for k in numerators.flat], np.intp)
        numbers: Iterable[Any] = place
    else:
        numbers, places = np.unique(numerators, return_inverse=True)
    values = np.array([Fraction(int(k), denominator) for k in numbers], dtype=object)
    return owned(_lowered(values)[places].reshape(numerators.shape))


def written(value: Number) -> float | str:
    """Return a number as JSON can hold it: a float, or a fraction as text."""
    number = plain(rational(value))
    return number if isinstance(number, float) else str(number)


def _of_distinct(function: Callable[[Any], Fraction], values: Exact) -> Exact:
    """Apply a function of each entry, once for each distinct one."""
    if values.dtype == object:
        return _lowered(each(function, values))
    distinct, places = np.unique(values, return_inverse=True)
    return owned(_lowered(each(function, distinct))[places].reshape(values.shape))


def entries(values: Any) -> npt.NDArray[Any]:
    """Return what a list, a series or a frame holds, no column cast to the type of another.

    What is masked is no number; what a sparse array does not store is 0.
    """
    if is_sparse(values):
        return np.asarray(values.toarray())
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(object), math.nan)
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if hasattr(values, "iloc"):  # pandas
        return np.asarray(values.to_numpy(dtype=object))
    if not is_of_engine(values):
        return np.array(values, dtype=object)
    frame = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        rows = list(zip(*(column.to_list() for column in frame.iter_columns()), strict=True))
        return np.array(rows, dtype=object).reshape(len(frame), len(frame.columns))
    return np.array(frame.to_list() if isinstance(frame, nw.Series) else values, dtype=object)


def _typed_alike(values: npt.NDArray[np.object_]) -> npt.NDArray[Any]:
    """Return numbers that are all floats, or all small, as an array of floats; else as they are."""
    kinds = set(map(type, values.flat))
    if not all(issubclass(kind, _NATIVE) for kind in kinds):
        return values
    try:
        near = values.astype(float)
    except OverflowError:
        return values
    floating = all(issubclass(kind, float) for kind in kinds)
    return near if floating or (np.abs(near) < 2.0**53).all() else values


def each(function: Callable[[Any], Any], values: Exact) -> npt.NDArray[np.object_]:
    """Return what a function makes of the entries, each object once."""
    if (once := core(values)).size < values.size:
        return np.broadcast_to(each(function, once), values.shape)
    if values.dtype != object:
        values = values.astype(object)
    images = {id(value): function(value) for value in _distinct(values)}
    result = np.empty(values.shape, dtype=object)
    result.ravel()[:] = [images[id(value)] for value in values.flat]
    return result


def listed(values: Any) -> Any:
    """Return numbers in lists, as JSON can hold them."""
    if not np.ndim(values):
        return written(values)
    return values.tolist() if values.dtype != object else each(written, values).tolist()


def _distinct(values: npt.NDArray[np.object_]) -> list[Any]:
    """Return the entries, each object once: tables repeat few of them."""
    return list({id(value): value for value in values.flat}.values())


def _lowered(values: npt.NDArray[np.object_]) -> Exact:
    """Return Fractions as floats if all of them are floats."""
    near = {id(value): plain(value) for value in _distinct(values)}
    if all(isinstance(value, float) for value in near.values()):
        flat = [near[id(value)] for value in values.flat]
        return owned(np.array(flat, dtype=float).reshape(values.shape))
    return owned(values)


def _exact(values: npt.NDArray[Any]) -> bool:
    """Tell whether an array is of floats, or of rationals, as this module makes them."""
    return values.dtype == float or (
        values.dtype == object and {*map(type, core(values).flat)} == {Fraction}
    )


def typed_most(value: Any) -> Any:
    """Return a bound from above as it was typed: 3 of 10 records are within 0.3.

    Of a float that is a little less than the decimal that it is typed as, that decimal.
    """
    if not (isinstance(value, float) and 0 < value < math.inf):
        return value
    decimal = Fraction(repr(float(value)))
    return decimal if decimal > rational(value) else value
