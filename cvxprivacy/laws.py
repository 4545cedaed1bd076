"""A law as it is typed: exact masses, and the labels of a frame, a series or a distribution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.checks import array
from cvxprivacy.errors import InputError

__all__ = ["Table", "exactly", "frequencies", "probabilities", "tabulated"]

SUM_TOLERANCE = 1e-9
MOST = 2**53  # beyond it a float need not be the whole number that was meant
_DIGITS = 2000  # of a numerator or a denominator


@dataclass(frozen=True)
class Table:
    """Numbers with what labels their axes.

    Attributes
    ----------
    values : array_like
    labels : list of list or None, one for each axis, or empty
        None where letters are only counted.
    names : list of str or None, one for each axis, or empty
    """

    values: Any
    labels: Sequence[list[Any] | None] = ()
    names: Sequence[str | None] = ()


def tabulated(values: Any, *, variables: Sequence[int] = (2, 3)) -> Table:
    """Return what a frame, a series or a distribution holds; of anything else, its values.

    The rows of a pandas frame are labelled by its index and the columns by their names, each with
    the name of that index; a fresh ``RangeIndex`` labels nothing.  In polars and pyarrow frames
    the columns have names, and a first column that is not numeric labels the rows.  An object
    with ``outcomes`` and ``pmf`` is read as a distribution of the package ``dit``.

    Parameters
    ----------
    variables : sequence of int
        How many random variables a distribution may have.

    Raises
    ------
    InputError
        For a distribution of another number of variables.
    """
    if nw.dependencies.is_pandas_like_dataframe(values):
        axes = values.index, values.columns
        columns = [values.iloc[:, place] for place in range(len(values.columns))]
        numbers = values.to_numpy() if _floats(columns) else _stacked(columns)
        return Table(numbers, [_index(axis) for axis in axes], [_name(axis) for axis in axes])
    if nw.dependencies.is_pandas_like_series(values):
        return Table(values, [_index(values.index)], [_name(values.index)])
    frame = nw.from_native(values, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _columns(frame)
    if hasattr(values, "outcomes") and hasattr(values, "pmf"):
        return _distribution(values, variables)
    return Table(values)


def _index(axis: Any) -> list[Any] | None:
    """Return the labels of a pandas index; None of one that counts from 0 and has no name."""
    if hasattr(axis, "step") and (axis.start, axis.step, axis.name) == (0, 1, None):
        return None
    return axis.tolist()


def _name(axis: Any) -> str | None:
    names = list(axis.names)
    return None if None in names else ", ".join(map(str, names))


def _columns(frame: nw.DataFrame[Any]) -> Table:
    """Return the numbers of a frame without an index."""
    names, rows, of_rows = frame.columns, None, None
    if len(names) > 1 and not frame[names[0]].dtype.is_numeric():
        of_rows, *names = names
        rows = frame[of_rows].to_list()
    columns = [frame[name] for name in names]
    exact = _floats(columns)
    values = np.column_stack([c.to_numpy() for c in columns]) if exact else _stacked(columns)
    return Table(values, [rows, names], [of_rows, None])


def _floats(columns: Sequence[Any]) -> bool:
    return bool(columns) and all(str(column.dtype).lower() == "float64" for column in columns)


def _stacked(columns: Sequence[Any]) -> npt.NDArray[np.object_]:
    """Return the entries as they are: an array of one type would round some of them."""
    return np.array([column.to_list() for column in columns], dtype=object).T


def _distribution(law: Any, variables: Sequence[int]) -> Table:
    if hasattr(law, "is_log") and law.is_log():
        law = law.copy(base="linear")
    joint = not hasattr(law, "is_joint") or law.is_joint()
    outcomes = [
        tuple(x) if joint and isinstance(x, str | tuple | list) else (x,) for x in law.outcomes
    ]
    many = len(outcomes[0]) if outcomes else 0
    if many not in variables:
        problem = f"a distribution of {many} random variable{'s' * (many != 1)}"
        remedy = f"pass one of {' or '.join(map(str, variables))}: see its marginal and coalesce"
        raise InputError("pmf", problem, remedy, value=many)
    seen = (dict.fromkeys(axis) for axis in zip(*outcomes, strict=True))
    letters = [list(axis) for axis in getattr(law, "alphabet", None) or seen]
    places = [{label: place for place, label in enumerate(axis)} for axis in letters]
    values = np.zeros([len(axis) for axis in letters], dtype=object)
    for outcome, mass in zip(outcomes, law.pmf, strict=True):
        values[tuple(place[x] for place, x in zip(places, outcome, strict=True))] += mass
    names = law.get_rv_names() if hasattr(law, "get_rv_names") else None
    return Table(values, letters, [str(name) for name in names or ()])


# ---- masses ------------------------------------------------------------------------------


def exactly(value: Any, argument: str, where: Any = None) -> Fraction:
    """Return a finite number as the rational that it is.

    Raises
    ------
    InputError
        For more than 2,000 digits above or below the line.
    """
    if isinstance(value, Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, Decimal) and abs(int(value.as_tuple().exponent)) > 2 * _DIGITS:
        exact = None  # it would take all memory
    elif isinstance(value, Decimal):
        exact = Fraction(value)
    elif isinstance(value, np.floating):
        exact = Fraction(*value.as_integer_ratio())
    else:
        exact = Fraction(float(value))
    if exact is None or max(abs(exact.numerator), exact.denominator) >= 10**_DIGITS:
        problem = f"a number of more than {_DIGITS:,} digits"
        raise InputError(argument, problem, "round it yourself", where=where, value=value)
    return exact


def probabilities(
    values: Any, argument: str, remedy: str, *, axes: Sequence[int], otherwise: str
) -> npt.NDArray[np.float64]:
    """Return masses in exactly the ratios of the probabilities typed.

    They are these floats; Fractions and Decimals that floats would round are multiplied by their
    common denominator.

    Parameters
    ----------
    remedy : str
        What to pass instead, such as "pass shape (|X|,)".
    otherwise : str
        What takes numbers that sum to anything.

    Raises
    ------
    InputError
        For no array of finite numbers ≥ 0, a sum off 1 by more than 1e-9, or numbers with a
        common denominator that floats do not hold.
    """
    law, common = array(values, argument, remedy, axes=axes, massive=True), 1
    if next(_rounded(values, law, argument), None) is not None:
        law, common = _multiplied(values, law.shape, argument)
    total = math.fsum(law.ravel().tolist()) / common if law.max() <= MOST else math.inf
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(
            argument,
            f"the entries sum to {total!r}, off 1 by more than {SUM_TOLERANCE:g}",
            f"normalise it yourself, or use {otherwise}",
            value=total,
        )
    return law


def frequencies(
    values: Any, argument: str, remedy: str, *, axes: Sequence[int]
) -> tuple[npt.NDArray[np.float64], int]:
    """Return whole numbers from 0 to 2⁵³, as floats, and their sum.

    Raises
    ------
    InputError
        For anything else.
    """
    law = array(values, argument, remedy, axes=axes, massive=True)
    broken = (law != np.floor(law)) | (law > MOST)
    found = ((tuple(map(int, place)), float(law[tuple(place)])) for place in np.argwhere(broken))
    wrong = next(itertools.chain(_rounded(values, law, argument), found), None)
    if wrong is not None:
        where, value = wrong
        large = value > MOST
        problem = f"{value!r} is {'more than 2**53' if large else 'not a count'}"
        remedy = f"{'scale the table down' if large else 'pass whole numbers'}, or pass a pmf"
        raise InputError(argument, problem, remedy, where=where, value=value)
    return law, sum(map(int, law.ravel().tolist()))


def _rounded(
    values: Any, law: npt.NDArray[np.float64], argument: str
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield place and value of each number that is not the float that was made of it."""
    dtype = getattr(values, "dtype", None)
    if dtype in (np.float64, np.float32, np.float16, np.bool_):
        return
    if getattr(dtype, "kind", "") in ("i", "u") and law.max() < MOST:
        return
    for where, value in _entries(values, law.shape):
        if isinstance(value, float) or (isinstance(value, int) and abs(value) <= MOST):
            continue
        if isinstance(value, Rational | Decimal | np.floating):
            exact = exactly(value, argument, where)
            if exact != Fraction(float(law[where])):
                yield where, value


def _entries(values: Any, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield place and value of each number as it was typed."""
    typed = np.array(values, dtype=object).reshape(shape)
    return zip(itertools.product(*map(range, shape)), typed.ravel().tolist(), strict=True)


def _multiplied(
    values: Any, shape: tuple[int, ...], argument: str
) -> tuple[npt.NDArray[np.float64], int]:
    """Return probabilities times their common denominator, and that."""

    def refused(where: Any, value: Any) -> InputError:
        problem = f"{value!r} has no denominator in common with the rest that floats hold"
        remedy = "round them all to floats yourself, or pass counts of at most 2**53"
        return InputError(argument, problem, remedy, where=where, value=value)

    exact, common = [], 1
    for where, value in _entries(values, shape):
        exact.append(exactly(value, argument, where))
        common = math.lcm(common, exact[-1].denominator)
        if common > MOST * math.prod(shape):  # and so is the sum of the numerators
            raise refused(where, value)
    whole = [int(value * common) for value in exact]
    greatest = max(range(len(whole)), key=whole.__getitem__)
    if whole[greatest] > MOST:
        where, value = next(itertools.islice(_entries(values, shape), greatest, None))
        raise refused(where, value)
    return np.array(whole, float).reshape(shape), common
