"""Frames of every engine, seen one way: pandas, polars, pyarrow, DuckDB, polars lazily, Dask."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.extras import is_of_engine, nw, pd, required
from cvxprivacy.tables.labels import canonical

__all__ = [
    "Codes",
    "as_narwhals",
    "coded",
    "collect",
    "crossed",
    "finite_numbers",
    "in_memory",
    "is_frame",
    "is_missing",
    "python_values",
    "replace_columns",
    "sampled",
    "series_like",
    "series_of",
    "whole_records",
]

Codes = npt.NDArray[np.int64]


def is_frame(values: Any) -> bool:
    """Tell a table with named columns, of any library, from a series, an array or a list."""
    return any(hasattr(type(values), name) for name in ("columns", "column_names", "schema"))


def as_narwhals(frame: Any, argument: str = "frame") -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """Return a frame as narwhals sees it, its column names as strings."""
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return frame
    pandas = nw.dependencies.is_pandas_like_dataframe(frame)
    if pandas or nw.dependencies.is_dask_dataframe(frame):  # columns of any name, and twice
        names = [str(name) for name in frame.columns]
        twice = next((name for name, times in Counter(names).items() if times > 1), None)
        if twice is not None:
            problem = f"two columns of one name, {twice!r}"
            raise InputError(argument, problem, "give each its own name", value=twice)
        if pandas and names != list(frame.columns):
            frame = frame.set_axis(names, axis=1)
    try:
        return nw.from_native(frame)
    except TypeError:
        remedy = "pass a pandas, polars or pyarrow frame, a DuckDB relation or a Dask frame"
        raise InputError(argument, f"a {type(frame).__name__}", remedy) from None
    except nw.exceptions.DuplicateError as error:
        raise InputError(argument, str(error), "give each column its own name") from None


def in_memory(frame: Any, argument: str) -> nw.DataFrame[Any]:
    """Return a frame as narwhals sees it; one that is not in memory is refused."""
    table = as_narwhals(frame, argument)
    if isinstance(table, nw.LazyFrame):
        raise InputError(argument, f"a lazy {type(frame).__name__}", "collect it first")
    return table


def collect(query: Callable[[], nw.LazyFrame[Any]]) -> nw.DataFrame[Any]:
    """Return what an engine computes, or say that it cannot."""
    try:
        return query().collect()
    except (MemoryError, InputError):
        raise
    except Exception as error:  # each engine has its own; a column of lists, say
        lines = str(error).strip().splitlines() or [type(error).__name__]
        remedy = "use columns of strings, numbers or categories"
        raise InputError("frame", f"cannot be counted ({lines[0]})", remedy) from None


def is_missing(lazy: nw.LazyFrame[Any], name: str) -> nw.Expr:
    """Return whether a value of a column is missing; NaN is."""
    value = nw.col(name)
    floating = lazy.select(name).collect_schema()[name].is_float()  # not the types of all columns
    return value.is_null() | value.is_nan() if floating else value.is_null()


def whole_records(frame: Any, names: Sequence[str]) -> Any:
    """Return the records of a frame that miss none of these columns' values, in its flavour."""
    table = as_narwhals(frame)
    for name in names:
        table = table.filter(~is_missing(table.lazy(), name))
    return nw.to_native(table)


def sampled(frame: Any, most: int, *, seed: int) -> tuple[nw.DataFrame[Any], int]:
    """Return a frame's records in memory, or so many drawn of them, and how many it has.

    Parameters
    ----------
    frame : frame of any kind
        Of a lazy one no more than ``most`` records are collected.
    most : int
        Records that are drawn, without replacement, in their order.
    seed : int
        Of the draw.  What an engine draws in parallel may differ from one machine to another.
    """
    table = as_narwhals(frame)
    if isinstance(table, nw.DataFrame):
        records = len(table)
        return (table if records <= most else table[_drawn(records, most, seed)]), records
    records = int(collect(lambda: table.select(nw.len().alias("records")))["records"][0])
    drawn, native = table, nw.to_native(table)
    if records > most and table.implementation.is_duckdb():
        draw = f"reservoir({most} ROWS) REPEATABLE ({seed})"
        drawn = nw.from_native(native.query("records", f"FROM records USING SAMPLE {draw}"))
    elif records > most and table.implementation.is_dask():
        drawn = nw.from_native(native.sample(frac=most / records, random_state=seed))
    elif records > most and table.implementation.is_polars():
        pl = required("polars", "cvxprivacy[engines]", "a polars frame")
        place = "place".ljust(1 + max(map(len, table.collect_schema().names())), "_")  # unused
        places = pl.col(place).is_in(_drawn(records, most, seed))
        drawn = nw.from_native(native.with_row_index(place).filter(places).drop(place))
    return collect(lambda: drawn.head(most)), records


def _drawn(records: int, most: int, seed: int) -> list[int]:
    chosen = np.random.default_rng(seed).choice(records, most, replace=False)
    return np.sort(chosen).tolist()


def python_values(series: nw.Series[Any]) -> list[Any]:
    """Return a column as Python objects, ``None`` where a value is missing."""
    missing = series.is_null()
    if series.dtype.is_float():
        missing = missing | series.is_nan()
    try:
        values = series.to_list()
    except OverflowError:  # Python has none, Arrow has
        problem = f"column {series.name!r} has dates before the year 1 or after 9999"
        raise InputError("frame", problem, "mend them, or make them missing") from None
    if not set(map(type, values)) <= _CANONICAL:
        values = [canonical(v) for v in values]
    values = _with_nanoseconds(series, values)
    if not missing.any():
        return values
    return [None if gone else v for gone, v in zip(missing.to_list(), values, strict=True)]


_CANONICAL = {int, float, str, bool, type(None)}


def _with_nanoseconds(series: nw.Series[Any], values: list[Any]) -> list[Any]:
    """Return moments and durations with the nanoseconds that Python's own types lack."""
    dtype, native = series.dtype, nw.to_native(series)
    arrow, polars = (getattr(series.implementation, f"is_{n}")() for n in ("pyarrow", "polars"))
    if dtype == nw.Time and (polars or (arrow and native.type.bit_width == 64)):
        ticks = native.to_physical().to_list() if polars else native.cast("time64[ns]")
        ticks = ticks if polars else ticks.cast("int64").to_pylist()
        if any(tick is not None and tick % 1000 for tick in ticks):
            problem = f"column {series.name!r} has times of nanoseconds"
            raise InputError("frame", problem, "make them text, or times of microseconds")
    if not polars or not isinstance(dtype, nw.Datetime | nw.Duration) or dtype.time_unit != "ns":
        return values
    of = "Timestamp" if isinstance(dtype, nw.Datetime) else "Timedelta"
    zone = getattr(dtype, "time_zone", None)
    for i, tick in enumerate(native.to_physical().to_list()):
        if tick is not None and tick % 1000:
            value = getattr(pd, of)(tick, unit="ns")
            values[i] = value.tz_localize("UTC").tz_convert(zone) if zone else value
    return values


def coded(series: nw.Series[Any]) -> tuple[Codes, list[Any]]:
    """Return a column as numbers of its values, and the values, each once and as Python objects.

    Values are in the order in which they come first; those that cannot be compared may come twice.
    """
    if series.implementation.is_pyarrow():
        pa = required("pyarrow", "cvxprivacy[engines]", "a pyarrow table")
        column: Any = nw.to_native(series)
        if pa.types.is_dictionary(column.type):  # of which a value may be there twice, or unused
            column = column.cast(column.type.value_type)
        try:
            column = column.dictionary_encode("encode").unify_dictionaries()
        except pa.ArrowException:  # of a type that is not compared
            return _coded(python_values(series), typed=True)
        codes = [chunk.indices.to_numpy() for chunk in column.chunks]
        values = pa.chunked_array(
            [column.chunk(0).dictionary] if codes else [], column.type.value_type
        )
        distinct = python_values(nw.from_native(values, series_only=True))
        return np.concatenate([np.zeros(0, np.int64), *codes]).astype(np.int64), distinct
    return _coded(python_values(series), typed=series.dtype == nw.Object)


def _coded(values: Sequence[Any], *, typed: bool) -> tuple[Codes, list[Any]]:
    """Number values; ``typed`` if True is not the same as 1."""
    places: dict[Any, int] = {}
    keys = [(type(v), v) for v in values] if typed else values
    try:
        codes = [places.setdefault(key, len(places)) for key in keys]
    except TypeError:
        return np.arange(len(values)), list(values)
    return np.array(codes, np.int64), [key[1] for key in places] if typed else list(places)


def crossed(columns: Sequence[tuple[Codes, Sequence[Any]]]) -> tuple[Codes, list[Any]]:
    """Return numbers of the combinations of values that occur, and these: of one column its own.

    Parameters
    ----------
    columns : sequence of (codes, values)
        Each record's number in the values of a column.
    """
    codes, values = columns[0][0], list(columns[0][1])
    if len(columns) == 1:
        return codes, values
    values = [(value,) for value in values]
    for others, more in columns[1:]:
        joint, size = codes * len(more) + others, len(values) * len(more)
        if size <= max(4 * len(joint), 1 << 16):
            places = np.flatnonzero(np.bincount(joint, minlength=size))
            number = np.zeros(size, np.int64)
            number[places] = np.arange(len(places))
            codes = number[joint]
        else:
            places, codes = np.unique(joint, return_inverse=True)
        pairs = zip(*(side.tolist() for side in np.divmod(places, len(more))), strict=True)
        values = [(*values[i], more[j]) for i, j in pairs]
    return codes, values


def finite_numbers(series: nw.Series[Any], argument: str) -> np.ndarray:
    """Return a column as finite numbers; anything else is refused, with its row and column."""
    if series.dtype.is_numeric() and not series.is_null().any():
        column = np.asarray(series.to_numpy(), dtype=float)
    else:
        values = python_values(series)
        for row, value in enumerate(values):
            if not isinstance(value, numbers.Number | None):
                problem, where = f"{value!r} is no number", (row, series.name)
                remedy = "leave the column out"
                raise InputError(argument, problem, remedy, where=where, value=value)
        column = np.array(values, dtype=float)  # NaN where a value is missing
    if not np.isfinite(column).all():
        row = int(np.isfinite(column).argmin())
        value, where = float(column[row]), (row, series.name)
        problem = "a missing value (NaN)" if np.isnan(value) else f"{value!r} is not finite"
        raise InputError(argument, problem, "fill or drop it", where=where, value=value)
    return column


def series_of(values: Any) -> nw.Series[Any] | None:
    """Return a series as narwhals sees it, None of anything else."""
    if not is_of_engine(values):
        return None
    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def replace_columns(
    frame: Any, columns: Mapping[str, Any], *, instead_of: Sequence[str] | None = None
) -> Any:
    """Return a frame in memory with columns replaced, in its own flavour, index and order.

    Parameters
    ----------
    frame : pandas, polars or pyarrow frame
    columns : mapping of name to narwhals Series or array
        The new columns.
    instead_of : sequence of str, optional
        The columns that they replace, together, at the place of the first; by default each
        replaces the one of its own name.
    """
    table = in_memory(frame, "frame")
    order = table.columns
    if instead_of is not None:
        kept = [n for n in order if n == instead_of[0] or n not in (*columns, *instead_of)]
        place = kept.index(instead_of[0])
        order = [*kept[:place], *columns, *kept[place + 1 :]]
    made = [
        column.alias(name)
        if isinstance(column, nw.Series)
        else nw.new_series(name, column, backend=table.implementation)
        for name, column in columns.items()
    ]
    released = nw.to_native(table.with_columns(*made).select(order))  # which gives them its index
    if order == table.columns and hasattr(frame, "set_axis"):  # pandas: names of any type
        return released.set_axis(frame.columns, axis=1)
    return released


def series_like(values: Sequence[Any], like: nw.Series[Any]) -> nw.Series[Any]:
    """Return values as a series of the type of ``like``, or of their own where it has no room."""
    native, made = nw.to_native(like), list(values)
    if isinstance(like.dtype, nw.Decimal) or any(map(_is_decimal, made)) or _holds_decimals(like):
        made = [Decimal(str(v)) if isinstance(v, int | float | Decimal) else v for v in made]
    for attempt in _attempts(made, native, like.implementation):
        try:
            series = nw.from_native(attempt(), series_only=True)
            if python_values(series) == list(values):
                return series
        except Exception as error:  # each library has its own
            refused = error
    problem = f"{like.name!r} cannot hold {made!r} ({refused})"
    raise InputError("outputs", problem, "use letters of one kind")


def _is_decimal(value: Any) -> bool:
    return isinstance(value, Decimal)


def _holds_decimals(series: nw.Series[Any]) -> bool:
    """Tell whether the values of a column of objects are decimals."""
    objects = series.drop_nulls() if series.dtype in (nw.Object, nw.Unknown) else series.head(0)
    return len(objects) > 0 and all(map(_is_decimal, objects.to_list()))


def _attempts(values: list[Any], like: Any, engine: nw.Implementation) -> list[Callable[[], Any]]:
    """Return ways to make a native series, of the type of ``like`` first."""
    if engine.is_pandas_like():
        objects = pd.Series(values, dtype=object)
        inferred = [] if None in values else [lambda: pd.Series(values)]  # which makes None NaN
        room: Any = {"i": "Int64", "u": "UInt64", "b": "boolean"}.get(
            getattr(like.dtype, "kind", "")
        )
        if None in values and room is not None:  # for a missing value
            inferred = [lambda: objects.astype(room)]
        return [lambda: objects.astype(like.dtype), *inferred, lambda: objects]
    if engine.is_pyarrow():
        pa = required("pyarrow", "cvxprivacy[engines]", "a pyarrow table")
        return [
            lambda: pa.chunked_array([pa.array(values, type=like.type)]),
            lambda: pa.chunked_array([pa.array(values)]),
        ]
    pl = required("polars", "cvxprivacy[engines]", "a polars frame")
    precise = getattr(like.dtype, "time_unit", None) == "ns"

    def ticks() -> Any:
        of = pd.Timestamp if hasattr(like.dtype, "time_zone") else pd.Timedelta
        return pl.Series([None if v is None else of(v).value for v in values]).cast(like.dtype)

    return [
        *([ticks] if precise else []),
        lambda: pl.Series(values, dtype=like.dtype, strict=True),
        lambda: pl.Series(values),
        lambda: pl.Series(values, dtype=pl.Object),
    ]
