"""What the columns that a release leaves alone reveal by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.tables.bins import Bins
from cvxprivacy.tables.engines import as_narwhals, collect, is_missing, python_values
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.validation import present

__all__ = ["Leak", "undone", "undone_words", "untouched"]

MOSTLY = 0.25  # of a key column's entropy, told by a column that is copied

FEW = 20  # records per value, under which a column's values are not compared one by one
PARTS = 20  # intervals of a number with more values than that


@dataclass(frozen=True)
class Leak:
    """What one column reveals about the confidential attribute.

    Attributes
    ----------
    column : str
    information : float or None
        I(W; column) in the units asked for; None where its values are too many to tell.
    bias : float or None
        Its small-sample bias (Miller–Madow); negative where fewer cells occur than values of
        both less one, and the information is expected to be too low.
    values : int
        Number of different values.
    intervals : int or None
        Of 20 parts of equal counts, how many hold records: so the column was cut, which can only
        lose information; None where its values are compared one by one.
    """

    column: str
    information: float | None
    bias: float | None
    values: int
    intervals: int | None = None

    @property
    def binned(self) -> bool:
        """Whether the column was cut into intervals."""
        return self.intervals is not None

    @property
    def corrected(self) -> float:
        """Information less bias, at least 0; 0 where nothing is known."""
        if self.information is None or self.bias is None:
            return 0.0
        return max(0.0, self.information - self.bias)

    def names_records(self, records: int) -> bool:
        """Tell whether its values differ from record to record: most, of so many."""
        return self.values * 2 > records

    def exceeds(self, after: float) -> bool:
        """Tell whether it reveals more than what the released columns do, and than its bias."""
        return self.corrected > max(after, self.bias or 0.0)


def untouched(
    frame: Any,
    schema: TableSchema,
    *,
    units: str = "bits",
    columns: Sequence[str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[Leak]:
    """Measure I(W; column) of every column neither confidential nor released, greatest first.

    Parameters
    ----------
    frame : frame of any kind
        The table, as :meth:`cvxprivacy.DiscreteSource.from_table` takes it.  Each column is
        counted by one group-by in its engine.
    schema : TableSchema
        ``source.schema``.
    units : {"bits", "nats"}
        Of information.
    columns : sequence of str, optional
        All others by default.
    progress : callable, optional
        Given 1 after each column.

    Returns
    -------
    list of Leak
        With ``column``, ``information``, its small-sample ``bias``, and ``values``, the number of
        different ones.

    Raises
    ------
    InputError
        For a column that is not there.

    Examples
    --------
    A release changes the age alone.  The ward, which is copied, tells the illness outright, and the
    town tells nothing:

    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> people = pd.DataFrame({
    ...     "age": [20, 20, 30, 30] * 10, "ward": list("xyxy") * 10, "town": list("aabb") * 10,
    ...     "ill": ["no", "yes", "no", "yes"] * 10,
    ... })
    >>> source = cpv.DiscreteSource.from_table(people, sensitive="ill", key="age")
    >>> [(leak.column, round(leak.information, 3)) for leak in untouched(people, source.schema)]
    [('ward', 1.0), ('town', 0.0)]
    """
    lazy = as_narwhals(frame).lazy()
    types = lazy.collect_schema()
    others = [n for n in types.names() if n not in (*schema.columns, schema.weights)]
    schema.check(lazy, schema.sensitive)
    leaks = []
    for name in others if columns is None else columns:
        present(name, types.names(), "columns")
        leaks.append(_leak(frame, _surveyed(lazy, name), schema, units))
        if progress is not None:
            progress(1)
    return sorted(leaks, key=lambda leak: -leak.corrected)


def undone(frame: Any, source: DiscreteSource) -> list[dict[str, Any]]:
    """Find copied columns that tell most of a key column, and so undo what is changed of it.

    Returns
    -------
    list of dict
        ``key``, the released column; ``column``, the copied one; ``share``, the share of the key
        column's entropy that it tells, bias taken off; the greatest first.
    """
    schema, entries = source.schema, []
    assert schema is not None
    lazy = as_narwhals(frame).lazy()
    others = lazy.collect_schema().names()
    copied = [_surveyed(lazy, c) for c in others if c not in (*schema.columns, schema.weights)]
    for name in schema.key:
        swapped = replace(schema, sensitive=(name,), key=schema.sensitive, side=(), weights=None)
        try:
            entropy = DiscreteSource.from_schema(frame, swapped).entropy()
        except InputError:  # more values than can be counted
            continue
        leaks = [_leak(frame, column, swapped, "bits") for column in copied] if entropy else []
        for leak in sorted(leaks, key=lambda leak: -leak.corrected):
            names_records = leak.names_records(source.records or 0)  # as is told elsewhere
            if not names_records and leak.corrected > MOSTLY * entropy:
                share = min(leak.corrected / entropy, 1.0)
                entries.append({"key": name, "column": leak.column, "share": share})
    return sorted(entries, key=lambda entry: -entry["share"])


def undone_words(entry: Mapping[str, Any]) -> str:
    """Say what a copied column undoes."""
    return (
        f"{entry['column']} is copied and tells {entry['share']:.0%} of {entry['key']}: whoever "
        f"has both sees where {entry['key']} was changed; drop or coarsen it"
    )


@dataclass(frozen=True)
class _Column:
    """A column as it is counted: its values one by one, or cut; neither where it cannot be."""

    name: str
    values: int
    bins: Bins | None = None
    countable: bool = True


def _surveyed(lazy: nw.LazyFrame[Any], name: str) -> _Column:
    """Return how a column is to be counted."""
    statistics = [nw.len().alias("records"), nw.col(name).n_unique().alias("values")]
    if lazy.collect_schema()[name].is_numeric():
        filled = nw.when(~is_missing(lazy, name)).then(nw.col(name))
        statistics += [filled.min().alias("least"), filled.max().alias("most")]
    try:
        row = collect(lambda: lazy.select(statistics))
    except InputError:  # a column of lists, say
        return _Column(name, 0, countable=False)
    summary = {column: python_values(row[column])[0] for column in row.columns}
    values = int(summary["values"])
    if values * FEW <= int(summary["records"]):
        return _Column(name, values)
    least, most = summary.get("least"), summary.get("most")
    if least is None or most is None or least >= most:
        return _Column(name, values, countable=False)
    return _Column(name, values, _parts(lazy, name, float(least), float(most)))


def _leak(frame: Any, column: _Column, schema: TableSchema, units: str) -> Leak:
    """Return what a column reveals about the confidential columns of a schema."""
    name, nothing = column.name, Leak(column.name, None, None, column.values)
    if not column.countable:
        return nothing
    bins = dict(schema.bins) | ({} if column.bins is None else {name: column.bins})
    missing = "drop" if schema.missing == "drop" else "level"
    schema = replace(schema, key=(name,), side=(), bins=bins, missing=missing)
    try:
        source = DiscreteSource.from_schema(frame, schema)
    except InputError:
        return nothing
    intervals = len(set(source.x) - {None}) if name in bins else None
    information, bias = source.information(units=units), source.bias(units=units)
    return Leak(name, information, bias, column.values, intervals)


def _parts(lazy: nw.LazyFrame[Any], name: str, least: float, most: float) -> Bins:
    """Cut a number into parts of equal counts; of one width in an engine without quantiles."""
    filled = nw.when(~is_missing(lazy, name)).then(nw.col(name)).cast(nw.Float64)
    quantiles = [filled.quantile(k / PARTS, "linear").alias(f"q{k}") for k in range(1, PARTS)]
    try:
        row = collect(lambda: lazy.select(quantiles))
        edges = [python_values(row[column])[0] for column in row.columns]
    except InputError:
        edges = np.linspace(least, most, PARTS + 1)[1:-1].tolist()
    inner = sorted({float(e) for e in edges if e is not None and np.isfinite(e)})
    return Bins((-math.inf, *inner, math.inf))
