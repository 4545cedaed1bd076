"""Tables in memory as arrays of numbers or codes, and what is refused of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.tables import engines
from cvxprivacy.tables.engines import (
    as_narwhals,
    finite_numbers,
    in_memory,
    python_values,
    replace_columns,
)
from cvxprivacy.validation import array, present

__all__ = [
    "Codes",
    "codes",
    "complete",
    "deviations",
    "distinct",
    "is_frame",
    "is_numeric",
    "like",
    "numbers",
    "paired",
    "same_records",
]

Codes = npt.NDArray[np.int64]


# ---- refusals ----------------------------------------------------------------------------


def distinct(names: Sequence[str], argument: str) -> None:
    """Refuse a column that is named twice."""
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(argument, f"column {twice!r} is named twice", "name it once", value=twice)


def same_records(size: int, argument: str, expected: int, other: str) -> None:
    """Refuse another number of records than a table's."""
    if size != expected:
        problem = f"{size:,} records beside {expected:,} of {other}"
        raise InputError(argument, problem, "pass the same records, in the same order")


def complete(values: Sequence[Any], argument: str, name: Any) -> Sequence[Any]:
    """Return a column in which no value is missing."""
    if None in values:
        where = (values.index(None), name)
        raise InputError(argument, "a missing value", "fill or drop it", where=where)
    return values


def is_frame(table: Any, argument: str) -> bool:
    """Tell a frame from an array; a frame that is not in memory is refused."""
    framed = engines.is_frame(table)
    if framed:
        engines.in_memory(table, argument)
    return framed


# ---- columns -----------------------------------------------------------------------------


def codes(values: Iterable[Any]) -> Codes:
    """Number values of any kind as they first occur."""
    place: dict[Any, int] = {}
    return np.array([place.setdefault(value, len(place)) for value in values], dtype=np.int64)


def deviations(data: np.ndarray) -> np.ndarray:
    """Return the standard deviations of columns, exactly 0 where they are constant."""
    return np.where(np.ptp(data, axis=0) > 0, data.std(axis=0), 0.0)


def is_numeric(column: nw.Series[Any]) -> bool:
    """Tell whether a column holds numbers, whatever its type says; missing values aside."""
    if column.dtype.is_numeric():
        return True
    return all(isinstance(v, Number | None) for v in python_values(column))


def like(table: Any, values: np.ndarray, names: Sequence[str] | None = None) -> Any:
    """Return values, shape (n, p), as the table came: a frame with these columns replaced."""
    if not is_frame(table, "table"):
        return values
    names = as_narwhals(table).columns if names is None else names
    return replace_columns(table, dict(zip(names, values.T, strict=True)))


def numbers(
    table: Any, argument: str, columns: Sequence[Hashable] | None = None
) -> tuple[np.ndarray, list[str]]:
    """Return the columns of a table as finite numbers, shape (n, p), and their names.

    Parameters
    ----------
    table : frame, or array_like of shape (n, p) or (n,)
    columns : sequence of str, optional
        Of a frame, by default all.

    Raises
    ------
    InputError
        For a column that is not there or not of numbers, a missing or infinite value, or no
        records.
    """
    if not is_frame(table, argument):
        remedy = "pass a table of finite numbers, shape (n, p)"
        if np.ndim(table) == 2 and not len(table):
            raise InputError(argument, "no records", "pass at least one")
        data = array(table, argument, remedy, axes=(1, 2), negative=True)
        data = data[:, None] if data.ndim == 1 else data
        return data, [f"x{j}" for j in range(data.shape[1])]
    frame = in_memory(table, argument)
    names = list(frame.columns) if columns is None else list(map(str, columns))
    distinct(names, argument)
    if not names:
        raise InputError(argument, "no columns", "pass a table with at least one")
    if not len(frame):
        raise InputError(argument, "no records", "pass at least one")
    for name in names:
        present(name, frame.columns, argument)
    return np.array([finite_numbers(frame[name], argument) for name in names]).T, names


def paired(
    original: Any, masked: Any, columns: Sequence[Hashable] | None = None, *, records: bool = True
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return an original and a masked table as numbers, their columns in one order.

    Parameters
    ----------
    records : bool
        Demand as many masked records as original ones: record i is the same person.
    """
    before, names = numbers(original, "original", columns)
    after, _ = numbers(masked, "masked", names if is_frame(masked, "masked") else None)
    if after.shape[1] != before.shape[1]:
        problem = f"{after.shape[1]} columns beside {before.shape[1]} of the original"
        raise InputError("masked", problem, "mask every column, or name columns=")
    if records:
        same_records(len(after), "masked", len(before), "the original")
    return before, after, names
