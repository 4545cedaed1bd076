"""Tables in memory as arrays of numbers, with the names of their columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.tables.frames import narwhal, plain, replaced
from cvxprivacy.validation import array, present

__all__ = ["deviations", "framed", "is_numeric", "like", "numbers", "paired"]


def framed(table: Any, argument: str) -> bool:
    """Tell a frame from an array; a frame that is not in memory is refused."""
    try:
        seen = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError:
        problem, remedy = "two columns of one name", "give each column its own name"
        raise InputError(argument, problem, remedy) from None
    if isinstance(seen, nw.LazyFrame):
        raise InputError(argument, f"a lazy {type(table).__name__}", "collect it first")
    return isinstance(seen, nw.DataFrame)


def deviations(data: np.ndarray) -> np.ndarray:
    """Return the standard deviations of columns, exactly 0 where they are constant."""
    return np.where(np.ptp(data, axis=0) > 0, data.std(axis=0), 0.0)


def is_numeric(column: nw.Series[Any]) -> bool:
    """Tell whether a column holds numbers, whatever its type says; missing values aside."""
    if column.dtype.is_numeric():
        return True
    return all(isinstance(v, int | float | None) for v in plain(column))


def like(table: Any, values: np.ndarray, names: Sequence[str] | None = None) -> Any:
    """Return values, shape (n, p), as the table came: a frame with these columns replaced."""
    if not framed(table, "table"):
        return values
    names = narwhal(table).columns if names is None else names
    return replaced(table, dict(zip(names, values.T, strict=True)))


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
    if not framed(table, argument):
        remedy = "pass a table of finite numbers, shape (n, p)"
        if np.ndim(table) == 2 and not len(table):
            raise InputError(argument, "no records", "pass at least one")
        data = array(table, argument, remedy, axes=(1, 2), negative=True)
        data = data[:, None] if data.ndim == 1 else data
        return data, [f"x{j}" for j in range(data.shape[1])]
    frame = narwhal(table)
    assert isinstance(frame, nw.DataFrame)
    names = list(frame.columns) if columns is None else list(map(str, columns))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(argument, f"column {twice!r} is named twice", "name it once", value=twice)
    if not names:
        raise InputError(argument, "no columns", "pass a table with at least one")
    if not len(frame):
        raise InputError(argument, "no records", "pass at least one")
    found = []
    for name in names:
        present(name, frame.columns, argument)
        series = frame[name]
        if series.dtype.is_numeric() and not series.is_null().any():
            column = np.asarray(series.to_numpy(), dtype=float)
        else:
            column = np.array(
                [_number(v, argument, (i, name)) for i, v in enumerate(plain(series))]
            )
        if not np.isfinite(column).all():
            row = int(np.isfinite(column).argmin())
            value, where = float(column[row]), (row, name)
            problem = "a missing value (NaN)" if np.isnan(value) else f"{value!r} is not finite"
            raise InputError(argument, problem, "fill or drop it", where=where, value=value)
        found.append(column)
    return np.array(found).T, names


def _number(value: Any, argument: str, where: tuple[int, str]) -> float:
    """Return a number, NaN for a missing one; anything else is refused."""
    if value is not None and not isinstance(value, int | float):
        problem, remedy = f"{value!r} is no number", "leave the column out"
        raise InputError(argument, problem, remedy, where=where, value=value)
    return float("nan") if value is None else float(value)


def paired(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    records: bool = True,
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return an original and a masked table as numbers, their columns in one order.

    Parameters
    ----------
    records : bool
        Demand as many masked records as original ones: record i is the same person.
    """
    before, names = numbers(original, "original", columns)
    after, _ = numbers(masked, "masked", names if framed(masked, "masked") else None)
    if after.shape[1] != before.shape[1]:
        problem = f"{after.shape[1]} columns beside {before.shape[1]} of the original"
        raise InputError("masked", problem, "mask every column, or name columns=")
    if records and len(after) != len(before):
        problem = f"{len(after):,} records beside {len(before):,} of the original"
        raise InputError("masked", problem, "pass the same records, in the same order")
    return before, after, names
