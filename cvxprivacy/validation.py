"""Validation of what comes in: each check returns the clean value or says what is wrong.

Every message names the argument, the place, the value and the remedy.
"""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Collection, Hashable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.exact import (
    DIGITS,
    Exact,
    array as exact_array,
    entries,
    floats,
    plain,
    rational,
    short,
    unwritable,
)
from cvxprivacy.text import near

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ABOVE_ONE",
    "array",
    "axes_of",
    "generator",
    "integer",
    "labels",
    "number",
    "one_of",
    "present",
    "table",
    "text",
    "typed",
    "untaken",
]

ABOVE_ONE = math.nextafter(1.0, 2.0)  # what a share of at most 1 is below
_NO_NUMBERS = (bool, np.bool_, str, bytes)  # whatever Python makes of them


def array(
    values: npt.ArrayLike,
    argument: str,
    remedy: str,
    *,
    axes: Sequence[int] | None = None,
    negative: bool = False,
    massive: bool = False,
) -> np.ndarray:
    """Return a new float array of finite entries.

    Parameters
    ----------
    remedy : str
        What to pass instead, such as "pass shape (|W|, |X|)".
    axes : sequence of int, optional
        Numbers of axes allowed.
    negative : bool
        Allow negative entries.
    massive : bool
        Demand at least one positive entry.
    """
    try:
        numbers = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(argument, f"not numbers ({error})", remedy) from None
    if (axes is not None and numbers.ndim not in axes) or (axes is not None and not numbers.size):
        raise InputError(argument, f"shape {numbers.shape}", remedy)
    bad = ~np.isfinite(numbers) | (numbers < 0) * (not negative)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        value = float(numbers[where])
        kind = "negative" if value < 0 and math.isfinite(value) else "not finite"
        raise InputError(argument, f"{value!r} is {kind}", remedy, where=where or None, value=value)
    if massive and not numbers.any():
        raise InputError(argument, "no mass at all", "pass at least one positive number")
    return numbers


def number(
    value: Any, argument: str, *, zero: bool = True, below: float = math.inf, where: Any = None
) -> float:
    """Return a finite float ≥ 0 (> 0 unless ``zero``), and less than ``below``."""
    try:
        if isinstance(value, _NO_NUMBERS):
            raise TypeError
        real = float(value)
    except (TypeError, ValueError, OverflowError):
        problem = f"{value!r} is no number"
        raise InputError(argument, problem, "pass a number", where=where, value=value) from None
    if not (0 <= real < below) or (real == 0 and not zero):
        limit = "" if below == math.inf else f" and < {below:g}"
        remedy = f"pass a finite number {'≥' if zero else '>'} 0{limit}"
        raise InputError(argument, f"{real!r} is out of range", remedy, where=where, value=real)
    return real


def typed(
    value: Any,
    argument: str,
    *,
    zero: bool = True,
    negative: bool = False,
    below: float = math.inf,
    where: Any = None,
    remedy: str = "",
) -> float | Fraction:
    """Return the very number that was typed: as a float if it is one, else as a ``Fraction``.

    It is finite, ≥ 0 (> 0 unless ``zero``, anything if ``negative``), and less than ``below``.
    ``remedy`` is said in place of that.
    """
    limit = "" if below == math.inf else f" and < {below:g}"
    sign = "" if negative else f" {'≥' if zero else '>'} 0"
    other, remedy = remedy or "pass a number", remedy or f"pass a finite number{sign}{limit}"
    try:
        if isinstance(value, _NO_NUMBERS):
            raise TypeError
        exact = rational(value)
    except TypeError:
        problem = f"{value!r} is no number"
        raise InputError(argument, problem, other, where=where, value=value) from None
    except (ValueError, OverflowError):  # NaN, infinite, or with a huge exponent
        exact = None
    long = isinstance(value, Decimal) and value.is_finite() if exact is None else not short(exact)
    if long:
        raise _long(value, argument, where)
    if (
        exact is None
        or abs(exact) > sys.float_info.max
        or not (negative or exact >= 0)
        or not exact < below
        or (exact == 0 and not zero)
    ):
        problem = (
            f"{reprlib.repr(value) if isinstance(value, int) else repr(value)} is out of range"
        )
        raise InputError(argument, problem, remedy, where=where, value=value)
    return plain(exact)


def table(
    values: Any,
    argument: str,
    remedy: str,
    *,
    axes: Sequence[int] | None = None,
    negative: bool = False,
    massive: bool = False,
) -> Exact:
    """Return the very numbers that were typed, in an array that cannot be written to.

    Arguments are those of :func:`array`.
    """
    try:
        exact = exact_array(values)
        near = floats(exact)
    except (TypeError, ValueError, OverflowError):  # said by the checks of floats, or of each
        try:
            array(values, argument, remedy, axes=axes, negative=negative, massive=massive)
        except InputError as error:
            if error.where is None:
                _each_typed(values, argument, remedy)
            raise
        _each_typed(values, argument, remedy)
        raise InputError(argument, "not finite numbers", remedy) from None
    array(near, argument, remedy, axes=axes, negative=negative, massive=massive)
    where = unwritable(exact)
    if where is not None:
        raise _long(exact[where], argument, where or None)
    return exact


def _each_typed(values: Any, argument: str, remedy: str) -> None:
    """Refuse the first entry that is no number, of what has entries that are no lists."""
    for where, value in np.ndenumerate(entries(values)):
        if where and not isinstance(value, list | tuple | np.ndarray):
            typed(value, argument, negative=True, where=where, remedy=remedy)


def _long(value: Any, argument: str, where: Any) -> InputError:
    problem = f"a number of more than {DIGITS:,} digits"
    return InputError(argument, problem, "round it to fewer digits", where=where, value=value)


def integer(value: Any, argument: str, *, least: int) -> int:
    """Return a whole number of at least ``least``."""
    try:
        truncated = int(value)
        if truncated != value or truncated < least:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        remedy = f"pass a whole number of at least {least}"
        raise InputError(argument, f"{value!r}", remedy, value=value) from None
    return truncated


def axes_of(ax: Axes | None) -> Axes:
    """Return axes to draw on: those that are passed, or the current ones."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.gca()
    from matplotlib.axes import Axes

    if isinstance(ax, Axes):
        return ax
    problem, remedy = f"a {type(ax).__name__}", "pass axes of matplotlib, such as plt.subplots()[1]"
    raise InputError("ax", problem, remedy, value=ax)


def generator(seed: Any) -> np.random.Generator:
    """Return chance: of a seed, as it was given, or another every time for None."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        remedy = "pass a whole number ≥ 0 or a numpy.random.Generator"
        raise InputError("seed", f"{seed!r} ({error})", remedy, value=seed) from None


def labels(names: Sequence[Hashable] | None, size: int | None, argument: str) -> list[Any]:
    """Return distinct labels, ``size`` of them; 0, 1, … if none are given."""
    if names is None:
        return list(range(size or 0))
    listed = list(names)
    if size is not None and len(listed) != size:
        raise InputError(argument, f"{len(listed)} labels", f"pass {size}, one per letter")
    first_places: dict[Any, int] = {}
    for i, label in enumerate(listed):
        try:
            first = first_places.setdefault(label, i)
        except TypeError:
            remedy = "use strings, numbers or tuples"
            raise InputError(argument, f"{label!r} cannot label", remedy, where=i) from None
        if first != i:
            problem = f"{label!r} labels letters {first} and {i}"
            raise InputError(argument, problem, "make labels distinct", where=i, value=label)
    return listed


def text(value: Any, argument: str, remedy: str = "pass a text") -> str:
    """Return a text that is not empty: a name."""
    if not isinstance(value, str) or not value:
        raise InputError(argument, f"{value!r} is no name", remedy, value=value)
    return value


def one_of(
    value: Any, argument: str, *options: Any, problem: str = "is unknown", where: Any = None
) -> None:
    """Refuse what is none of the options, such as a name that is not one of a few."""
    if not any(isinstance(value, type(option)) and value == option for option in options):
        *others, last = (f'"{o}"' if isinstance(o, str) else f"{o}" for o in options)
        remedy = f"use {', '.join(others)} or {last}" if others else f"use {last}"
        raise InputError(argument, f"{value!r} {problem}", remedy, where=where, value=value)


def untaken(name: str, taken: Collection[str]) -> str:
    """Return a name, or the first of name[2], name[3], … that is not taken."""
    copies, candidate = 1, name
    while candidate in taken:
        copies += 1
        candidate = f"{name}[{copies}]"
    return candidate


def present(name: Hashable, columns: Iterable[str], argument: str) -> None:
    """Refuse a column that is none of a table's."""
    names = list(columns)
    if str(name) not in names:
        close = near(str(name), names)
        remedy = f"there are {', '.join(names)}"
        remedy = f"did you mean {' or '.join(map(repr, close))}?" if close else remedy
        raise InputError(argument, f"no column {name!r}", remedy, value=name)
