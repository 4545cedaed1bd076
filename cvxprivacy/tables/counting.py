"""Records counted, by one group-by in the frame's own engine.

Nothing larger than the table of counts is ever collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw, pd
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.tables.bins import Bins, edge_of, in_order, short
from cvxprivacy.tables.engines import as_narwhals, coded, collect, is_missing, python_values
from cvxprivacy.tables.groups import Ungrouped, without_group
from cvxprivacy.tables.labels import as_label
from cvxprivacy.tables.periods import Periods, months_of
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS, compares, ranked

__all__ = ["Counts", "count_letters", "count_records", "natural_order"]

PART = 1 << 20  # records of Arrow that are counted at once
MOST_LEVELS = 10_000  # of a column: distances between its values are a table


@dataclass(frozen=True)
class Counts(FrozenFields):
    """A table of counts: one mass per observed cell (w, x) or (w, x, z)."""

    cells: list[tuple[Any, ...]]
    masses: npt.NDArray[np.float64]  # records, or the sum of their weights
    records: int
    effective: float  # (Σ weight)² / Σ weight², the number of records without weights
    levels: dict[str, list[Any]]  # observed values of each column, in order
    dropped: int  # records left out for missing values

    def ordered(self, columns: Sequence[str], axis: int) -> list[Any]:
        """Return the distinct letters of an axis, in the order of its columns' levels."""
        ranks = [{v: i for i, v in enumerate(self.levels[c])} for c in columns]

        def rank(letter: Any) -> tuple[int, ...]:
            values = letter if len(columns) > 1 else (letter,)
            return tuple(rank[v] for rank, v in zip(ranks, values, strict=True))

        return sorted({entry[axis] for entry in self.cells}, key=rank)


def count_records(schema: TableSchema, frame: Any, *, most: int = MOST_LEVELS) -> Counts:
    """Count a frame's records as a schema says.

    Parameters
    ----------
    frame : as in :meth:`cvxprivacy.DiscreteSource.from_table`
    most : int
        Values of a column that are allowed: by default as many as a program could use.

    Raises
    ------
    InputError
        For missing values that are refused, values outside the bins, weights that are
        negative or missing, no records, or more cells than any program could use.
    """
    lazy = as_narwhals(frame).lazy()
    schema.check(lazy, schema.columns)
    heaviest, weights = _heaviest(schema, lazy), dict[str, nw.Expr]()
    if schema.weights is not None:
        weight = nw.col(schema.weights).cast(nw.Float64)
        weights = {"weight": weight, "square": (weight / heaviest) * (weight / heaviest)}
    values, sums = _grouped(schema, lazy, schema.columns, weights)
    records = np.array(sums["records"], dtype=np.int64)
    _check_cells(schema, frame, values, records, most)
    counted = np.ones(len(records), bool)
    if schema.missing == "drop":
        counted = np.array([None not in row for row in zip(*values.values(), strict=True)])
    dropped, kept = int(records[~counted].sum()), int(records[counted].sum())
    if not kept:
        remedy = 'pass missing="level", or name other columns'
        raise InputError("missing", "every record misses a value", remedy)
    masses = np.array(sums["weight" if weights else "records"], float)[counted]
    total, squares = masses.sum(), masses.sum()
    if weights:
        total, squares = (masses / heaviest).sum(), np.array(sums["square"])[counted].sum()
    if not squares:
        raise InputError("weights", "all weights are zero", "pass weights of the records left")
    values = {n: [v[i] for i in np.flatnonzero(counted)] for n, v in values.items()}
    roles = [role for role in ("sensitive", "key", "side") if getattr(schema, role)]
    groups = [getattr(schema, role) for role in roles]
    axes = [[as_label(row) for row in zip(*(values[n] for n in g), strict=True)] for g in groups]
    levels = {n: ranked(set(v), natural_order(schema, frame, n, v)) for n, v in values.items()}
    cells, masses = _merged(list(zip(*axes, strict=True)), masses)
    return Counts(cells, masses, kept, float(total**2 / squares), levels, dropped)


def _merged(
    cells: list[tuple[Any, ...]], masses: npt.NDArray[np.float64]
) -> tuple[list[tuple[Any, ...]], npt.NDArray[np.float64]]:
    """Add up cells that were counted apart and are grouped alike."""
    places: dict[tuple[Any, ...], int] = {}
    at = [places.setdefault(cell, len(places)) for cell in cells]
    return list(places), np.bincount(at, masses).astype(np.float64)


def count_letters(
    schema: TableSchema, frame: Any, groups: Sequence[Sequence[str]]
) -> dict[Any, int]:
    """Return the distinct letters of groups of columns, and how many records have each."""
    lazy = as_narwhals(frame).lazy()
    names = [name for group in groups for name in group]
    schema.check(lazy, names)
    values, sums = _grouped(schema, lazy, names, {})
    letters: dict[Any, int] = {}
    for i, records in enumerate(sums["records"]):
        letter = as_label([as_label([values[name][i] for name in group]) for group in groups])
        letters[letter] = letters.get(letter, 0) + int(records)
    return letters


def _grouped(
    schema: TableSchema, lazy: nw.LazyFrame[Any], names: Sequence[str], weights: dict[str, nw.Expr]
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return each observed cell's value in each column, and its records and sums of weights."""
    lazy, decoded = _encoded(schema, lazy, names)
    codes = {
        f"c{i}": nw.col(name) if name in decoded else code(schema, lazy, name)
        for i, name in enumerate(names)
    }
    sums = [nw.len().alias("records"), *(nw.col(name).sum() for name in weights)]
    parts = [
        collect(
            lambda part=part: (  # type: ignore[misc]
                part.select(**codes, **weights).group_by(*codes).agg(*sums).head(MOST_CELLS + 1)
            )
        )
        for part in _parts(lazy, weights)
    ]
    table = parts[0]
    if len(parts) > 1:
        table = nw.concat(parts).group_by(*codes).agg(nw.col("records").sum())
    if len(table) > MOST_CELLS:
        widest = max(range(len(names)), key=lambda i: table[f"c{i}"].n_unique())
        problem = f"more than {MOST_CELLS:,} observed cells, most for column {names[widest]!r}"
        remedy = "bin numbers with bins=, group values with groups=, or name fewer columns"
        raise InputError("key", problem, remedy, value=names[widest])
    cells = {name: python_values(table[f"c{i}"].alias(name)) for i, name in enumerate(names)}
    for name, values_of_it in decoded.items():
        cells[name] = [None if v is None else values_of_it[v] for v in cells[name]]
    values = {name: _values(schema, name, column) for name, column in cells.items()}
    return values, {name: python_values(table[name]) for name in ("records", *weights)}


def _parts(lazy: nw.LazyFrame[Any], weights: Mapping[str, Any]) -> list[nw.LazyFrame[Any]]:
    """Return records of Arrow a million at a time: each expression of them is a column more."""
    if weights or not lazy.implementation.is_pyarrow():
        return [lazy]
    table: Any = nw.to_native(lazy)
    starts = range(0, max(len(table), 1), PART)
    return [nw.from_native(table.slice(start, PART)).lazy() for start in starts]


def _encoded(
    schema: TableSchema, lazy: nw.LazyFrame[Any], names: Sequence[str]
) -> tuple[nw.LazyFrame[Any], dict[str, list[Any]]]:
    """Return records with numbers of values where their engine does not group a column exactly.

    These are objects of Python, and decimals with bins in Dask.

    Returns
    -------
    lazy : narwhals.LazyFrame
    values : dict of str to list
        Of each column that is replaced, what its numbers stand for.
    """
    values = dict[str, list[Any]]()
    native: Any = nw.to_native(lazy)
    for name in names:
        bins = schema.bins.get(name)
        if compares(lazy, name):
            continue
        if lazy.implementation.is_dask():
            if isinstance(bins, Bins):
                edges, of_it = [str(edge) for edge in bins.edges], (name, "Int64")
                made = native[name].map_partitions(_places, edges, meta=of_it)
                native, values[name] = native.assign(**{name: made}), list(range(len(edges) + 1))
        elif lazy.implementation.is_pandas_like():
            codes, distinct = coded(nw.from_native(native[name], series_only=True))
            try:
                set(distinct)
            except TypeError as error:
                problem = f"column {name!r} cannot be counted ({error})"
                remedy = "use columns of strings, numbers or categories"
                raise InputError("frame", problem, remedy, value=name) from None
            native = native.assign(**{name: codes})
            values[name] = bins.numbers(distinct) if isinstance(bins, Bins) else distinct
    return (nw.from_native(native).lazy() if values else lazy), values


def _places(column: Any, edges: Sequence[str]) -> Any:
    values = python_values(nw.from_native(column, series_only=True))
    return pd.Series(Bins(tuple(map(edge_of, edges))).numbers(values), column.index, "Int64")


def code(schema: TableSchema, lazy: nw.LazyFrame[Any], name: str) -> nw.Expr:
    """Return what a column's records are grouped by: their values, or the numbers of their bins."""
    value = nw.col(name)
    bins = schema.bins.get(name)
    if bins is None:
        return value
    dtype = lazy.select(name).collect_schema()[name]
    if isinstance(bins, Periods):
        number = bins.number(months_of(value, dtype, bins))
    else:
        number = bins.number(value, dtype)
    return nw.when(~is_missing(lazy, name)).then(number)


def _values(schema: TableSchema, name: str, codes: list[Any]) -> list[Any]:
    """Name groups, and the numbers of bins; what is outside of them becomes no letter."""
    if name in schema.groups:
        return schema.groups[name].named(codes)
    bins = schema.bins.get(name)
    if bins is None:
        return codes
    if isinstance(bins, Periods):
        return [None if v is None else bins.label(int(v)) for v in codes]
    labels = [0, *bins.labels, len(bins.edges)]
    return [None if v is None else labels[int(v)] for v in codes]


# ---- what can be counted -----------------------------------------------------------------


def _heaviest(schema: TableSchema, lazy: nw.LazyFrame[Any]) -> float:
    """Return the greatest weight, 1 without weights; others than finite ones ≥ 0 are refused."""
    if schema.weights is None:
        return 1.0
    schema.check(lazy, [schema.weights])
    weight = nw.col(schema.weights)
    bad = (weight < 0) | is_missing(lazy, schema.weights) | (weight > 1e300)
    bad, records = bad.cast(nw.Int64).sum().alias("bad"), nw.len().alias("records")
    table = collect(lambda: lazy.select(records, bad, weight.max().alias("heaviest")))
    summary = {column.name: python_values(column)[0] or 0 for column in table.iter_columns()}
    if summary["records"] and (summary["bad"] or not summary["heaviest"]):
        problem = f"{int(summary['bad']):,} weights are negative, missing or infinite"
        if not summary["bad"]:
            problem = "all weights are zero"
        raise InputError("weights", problem, "pass finite weights ≥ 0", value=schema.weights)
    return float(summary["heaviest"])


def _check_cells(
    schema: TableSchema,
    frame: Any,
    values: dict[str, list[Any]],
    records: npt.NDArray[np.int64],
    most: int,
) -> None:
    """Refuse no records, missing values, values outside the bins, and too many of them."""
    if not records.sum():
        raise InputError("frame", "no records", "pass a table with at least one row")
    roles = ("sensitive", "key", "side")
    gaps = [
        (role, name, missing)
        for role in roles
        for name in (getattr(schema, role) if schema.missing == "refuse" else ())
        if (missing := records[[v is None for v in values[name]]].sum())
    ]
    if gaps:
        first, column, missing = gaps[0]
        others = [f", {n:,} in {name!r}" + f" ({role})" * (role != first) for role, name, n in gaps]
        problem = "".join([f"{missing:,} missing values in column {column!r}", *others[1:]])
        remedy = 'pass missing="level" (a letter of their own) or missing="drop"'
        raise InputError(first, problem, remedy, where=_first_missing(frame, column))
    for argument in roles:
        for name in getattr(schema, argument):
            levels = len(set(values[name]))
            if levels > most:
                problem = f"column {name!r} has {levels:,} different values"
                remedy = (
                    "give it bins (a width, or edges; of dates a unit, such as year) if it is a "
                    "number or a date, groups= if it is not, or "
                )
                remedy += "leave it out; what is recoded later is counted by "
                remedy += f"DiscreteSource.from_table(…, most={levels})"
                raise InputError(argument, problem, remedy, value=name)
            ungrouped = {v for v in values[name] if isinstance(v, Ungrouped)}
            if ungrouped:
                raise without_group(name, ungrouped)
            if isinstance(bins := schema.bins.get(name), Bins):
                edges = bins.edges
                outside = records[[isinstance(v, int) for v in values[name]]].sum()
                if outside:
                    problem = f"{outside:,} values of column {name!r} lie outside "
                    problem += f"[{short(edges[0])}, {short(edges[-1])})"
                    raise InputError("bins", problem, "add edges, such as −inf or inf", value=name)


def _first_missing(frame: Any, name: str) -> int | None:
    """Return the first row without a value, where rows are in memory and have an order."""
    table = as_narwhals(frame)
    return python_values(table[name]).index(None) if isinstance(table, nw.DataFrame) else None


# ---- the order of values -----------------------------------------------------------------


def natural_order(
    schema: TableSchema, frame: Any, name: str, values: Iterable[Any]
) -> list[Any] | None:
    """Return the order that a column's own type gives its values, those named at least.

    Bins, numbers, dates and ordered categories have one; text has not.  Groups are in the order
    in which they were stated.
    """
    if name in schema.bins:
        return in_order(schema.bins[name], values)
    if name in schema.groups:
        return list(schema.groups[name].labels)
    dtype = as_narwhals(frame).lazy().collect_schema()[name]
    if dtype.is_numeric() or dtype.is_temporal():
        return sorted(set(values) - {None})
    if isinstance(dtype, nw.Enum):
        return list(dtype.categories)
    if isinstance(dtype, nw.Categorical) and hasattr(frame, "combine_chunks"):  # pyarrow
        column = frame[name].unify_dictionaries()
        if column.type.ordered and column.num_chunks:
            return list(column.chunk(0).dictionary.to_pylist())
    return None
