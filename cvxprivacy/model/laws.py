"""A law as it is typed: exact masses, and the labels of a frame, a series or a distribution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, entries
from cvxprivacy.extras import is_of_engine, nw
from cvxprivacy.validation import labels, table

__all__ = [
    "SHAPE",
    "Table",
    "axes_of",
    "frequencies",
    "index_of",
    "probabilities",
    "scaling",
    "tabulated",
]

SHAPE = "pass finite nonnegative masses of shape (|W|, |X|) or (|W|, |X|, |Z|)"
SUM_TOLERANCE = 1e-9
ROUNDINGS = 8  # of the type that masses have: by so many units in 1 their sum may be off
_SHORTER = {"float16", "float32"}
_ROUGH = ROUNDINGS * float(np.finfo("float16").eps)
MOST = 2**53  # beyond it a float need not be the whole number that was meant


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
    if isinstance(values, Table):
        return values
    if is_of_engine(values):
        return _framed(values)
    if hasattr(values, "outcomes") and hasattr(values, "pmf"):
        return _distribution(values, variables)
    return Table(values)


def _framed(values: Any) -> Table:
    """Return what a frame or a series holds."""
    if nw.dependencies.is_pandas_like_dataframe(values):
        axes = values.index, values.columns
        return Table(values, [_index(axis) for axis in axes], [_name(axis) for axis in axes])
    if nw.dependencies.is_pandas_like_series(values):
        return Table(values, [index_of(values)], [_name(values.index)])
    frame = nw.from_native(values, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _columns(frame)
    return Table(values)


def index_of(values: Any) -> list[Any] | None:
    """Return what labels the entries of a pandas series; None of anything else."""
    framed = is_of_engine(values) and nw.dependencies.is_pandas_like_series(values)
    return _index(values.index) if framed else None


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
    return Table(frame.select(names), [rows, names], [of_rows, None])


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
    observed = (dict.fromkeys(axis) for axis in zip(*outcomes, strict=True))
    letters = [list(axis) for axis in getattr(law, "alphabet", None) or observed]
    places = [{label: place for place, label in enumerate(axis)} for axis in letters]
    values = np.zeros([len(axis) for axis in letters], dtype=object)
    for outcome, mass in zip(outcomes, law.pmf, strict=True):
        values[tuple(place[x] for place, x in zip(places, outcome, strict=True))] += mass
    names = law.get_rv_names() if hasattr(law, "get_rv_names") else None
    return Table(values, letters, [str(name) for name in names or ()])


def axes_of(
    law: FloatArray, typed: Table, chosen: Sequence[Any], names: Any
) -> tuple[tuple[Any, Any, Any], tuple[str, ...]]:
    """Return labels of w, x and z (None without the axis), and the names of the axes.

    They are those ``chosen``, by default those that were typed with the law.
    """
    pairs = itertools.zip_longest(chosen, typed.labels)
    w, x, z = (label if choice is None else choice for choice, label in pairs)
    if law.ndim == 2 and z is not None:
        raise InputError("z", "labels for an axis that pmf lacks", "pass a pmf with three axes")
    if names is None:
        defaults = itertools.zip_longest(typed.names, "WXZ"[: law.ndim])
        names = [name or default for name, default in defaults]
    named = () if isinstance(names, str) else tuple(names)[: law.ndim]
    if len(named) != law.ndim:
        raise InputError("names", f"{names!r}", f"pass {law.ndim} names")
    third = labels(z, law.shape[2], "z") if law.ndim == 3 else None
    return (labels(w, law.shape[0], "w"), labels(x, law.shape[1], "x"), third), named


# ---- masses ------------------------------------------------------------------------------


def probabilities(
    values: Any, argument: str, remedy: str, *, axes: Sequence[int], otherwise: str
) -> FloatArray:
    """Return masses in exactly the ratios of the probabilities typed.

    They are these floats; Fractions and Decimals that floats would round are multiplied by their
    common denominator.  Where they are floats of 32 or 16 bits, their sum is 1 to that precision.

    Parameters
    ----------
    remedy : str
        What to pass instead, such as "pass shape (|X|,)".
    otherwise : str
        What takes numbers that sum to anything.

    Raises
    ------
    InputError
        For no array of finite numbers ≥ 0, a sum off 1 by more than 1e-9, or than 8 units in the
        last place of the type of the numbers, or numbers with a common denominator that floats do
        not hold.
    """
    law, common = table(values, argument, remedy, axes=axes, massive=True).copy(), 1
    if law.dtype == object:
        law, common = _multiplied(law, values, argument)
    total = math.fsum(law.ravel().tolist()) / common if law.max() <= MOST else math.inf
    tolerance = max(SUM_TOLERANCE, ROUNDINGS * _precision(values))
    if abs(total - 1.0) > tolerance:
        raise InputError(
            argument,
            f"the entries sum to {total!r}, off 1 by more than {tolerance:.2g}",
            f"normalise it yourself, or use {otherwise}",
            value=total,
        )
    return law


def scaling(law: FloatArray) -> str:
    """Return what was done to masses whose sum is 1 but for the rounding of a shorter type, if so.

    Of masses that are counts, or within 1e-9 of a law, nothing.
    """
    total = math.fsum(law.ravel().tolist())
    if not SUM_TOLERANCE < abs(total - 1.0) < _ROUGH:
        return ""
    return f"the masses sum to {total:.10g}, and each is divided by that"


def _precision(values: Any) -> float:
    """Return the unit in the last place of 1 in the least precise type that numbers have."""
    if is_of_engine(values):
        frame = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
        if isinstance(frame, nw.Series):
            types = {frame.dtype}
        else:
            types = set(frame.schema.values()) if isinstance(frame, nw.DataFrame) else set()
        names = {str(of).lower() for of in types}
    else:
        array = values if isinstance(values, np.ndarray) else entries(values)
        boxed = array.dtype == object
        names = {str(np.dtype(type(v))) for v in array.flat if isinstance(v, np.floating)}
        names = names if boxed else {str(array.dtype)}
    return max((float(np.finfo(name).eps) for name in names & _SHORTER), default=0.0)


def frequencies(
    values: Any, argument: str, remedy: str, *, axes: Sequence[int]
) -> tuple[FloatArray, int]:
    """Return whole numbers from 0 to 2⁵³, as floats, and their sum.

    Raises
    ------
    InputError
        For anything else.
    """
    law = table(values, argument, remedy, axes=axes, massive=True).copy()
    broken = np.argwhere((law % 1 != 0) | (law > MOST))
    if len(broken):
        where = tuple(map(int, broken[0]))
        large, value = law[where] > MOST, entries(values)[where]
        problem = f"{value} is {'more than 2**53' if large else 'not a count'}"
        remedy = f"{'scale the table down' if large else 'pass whole numbers'}, or pass a pmf"
        raise InputError(argument, problem, remedy, where=where, value=value)
    return law, sum(map(int, law.ravel().tolist()))


def _multiplied(law: Exact, values: Any, argument: str) -> tuple[FloatArray, int]:
    """Return fractions times their common denominator, and that; ``values`` as they were typed."""

    def refused(where: tuple[int, ...]) -> InputError:
        value = entries(values)[where]
        problem = f"{value} has no denominator in common with the rest that floats hold"
        remedy = "round them all to floats yourself, or pass counts of at most 2**53"
        return InputError(argument, problem, remedy, where=where, value=value)

    common = 1
    for where, value in np.ndenumerate(law):
        common = math.lcm(common, value.denominator)
        if common > MOST * law.size:  # and so is the sum of the numerators
            raise refused(where)
    numerators = law * common
    greatest = np.unravel_index(np.argmax(numerators), numerators.shape)
    if numerators[greatest] > MOST:
        raise refused(tuple(map(int, greatest)))
    return numerators.astype(float), common
