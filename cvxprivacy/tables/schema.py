"""How a record of a table becomes letters: its columns, bins, groups, missing values."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import MAXYEAR
from functools import partial
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.frozen import frozen
from cvxprivacy.tables.bins import Bins, bins_of, edge_of, quantile_bins, quantiles_in
from cvxprivacy.tables.engines import (
    Codes,
    as_narwhals,
    coded,
    collect,
    crossed,
    is_missing,
    python_values,
    whole_records,
)
from cvxprivacy.tables.groups import Groups, groups_of
from cvxprivacy.tables.periods import Periods, periods_of
from cvxprivacy.tables.values import compares, value_counts
from cvxprivacy.validation import one_of, present

__all__ = ["TableSchema", "column_names"]


@dataclass(frozen=True)
class TableSchema:
    """How a record becomes letters: columns, bins, groups, and what becomes of missing values.

    Parameters
    ----------
    key : tuple of column names
        Columns of X, which are released.
    sensitive : tuple of column names
        Columns of W.
    side : tuple of column names
        Columns of Z, side information of the user.
    weights : column name, optional
        Survey weights, nonnegative.
    bins : mapping of column to Bins, Periods or text
        How columns of numbers are cut, and dates put into calendar intervals, which their name is
        enough for: ``"year"``.
    missing : {"refuse", "level", "drop"}
        A missing value is an error, is a letter (``None``), or leaves its record uncounted.
    reading : mapping
        How the file was read, for whom it may concern.
    groups : mapping of column to Groups
        How values of other columns are put together.
    earlier : int
        Of how many earlier releases ``side`` is the letters: these are no columns of the table.

    Examples
    --------
    >>> schema = TableSchema(key=("age", "sex"), bins={"age": Bins((0, 18, 65, 120))})
    >>> schema.columns, schema.bins["age"].labels
    (['age', 'sex'], ['[0, 18)', '[18, 65)', '[65, 120)'])

    The schema of a source says how its table was counted, and goes with a channel:

    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> table = pd.DataFrame({"age": [23, 37, 39, 61], "ill": ["no", "no", "yes", "yes"]})
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age", bins={"age": 20})
    >>> source.schema.columns, source.schema.bins["age"].edges
    (['ill', 'age'], (20.0, 40.0, 60.0, 80.0))
    """

    key: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    side: tuple[str, ...] = ()
    weights: str | None = None
    bins: Mapping[str, Bins | Periods] = field(default_factory=dict)
    missing: str = "refuse"
    reading: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Groups] = field(default_factory=dict)
    earlier: int = 0

    def __post_init__(self) -> None:
        calendar = {name: periods_of(spec) or spec for name, spec in self.bins.items()}
        object.__setattr__(self, "bins", calendar)
        for name in ("key", "sensitive", "side", "bins", "reading", "groups"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        one_of(self.missing, "missing", "refuse", "level", "drop")

    @property
    def columns(self) -> list[str]:
        """W's columns, then X's, then Z's where these are the table's."""
        return [*self.sensitive, *self.key, *(() if self.earlier else self.side)]

    def after(self, releases: int) -> TableSchema:
        """Return it with the letters of earlier releases of the key as Z.

        Parameters
        ----------
        releases : int
            How many.
        """
        numbers = [""] if releases == 1 else [f", {i + 1}" for i in range(releases)]
        side = tuple(f"{name} released before{i}" for i in numbers for name in self.key)
        return replace(self, side=side, earlier=releases)

    def input_columns(self, encoder: str) -> list[Sequence[str]]:
        """Return the groups of columns that make an input of an encoder.

        Parameters
        ----------
        encoder : {"x", "wx", "xz", "wxz"}
            What the encoder sees.
        """
        groups = {"w": self.sensitive, "x": self.key, "z": self.side}
        return [groups[axis] for axis in encoder]

    @classmethod
    def of(
        cls,
        frame: Any,
        *,
        sensitive: Hashable | Sequence[Hashable] | None,
        key: Hashable | Sequence[Hashable],
        side: Hashable | Sequence[Hashable] | None,
        weights: Hashable | None,
        bins: Mapping[Hashable, Any] | None,
        missing: str,
        groups: Mapping[Hashable, Any] | None = None,
    ) -> TableSchema:
        """Check the columns named against a frame, and settle its bins and groups.

        Parameters
        ----------
        frame : frame of any kind
            As :meth:`cvxprivacy.DiscreteSource.from_table` takes it.
        sensitive, key, side : column name, or several
            W, X and Z; None for no W or Z.
        weights : column name or None
            Survey weights.
        bins : mapping of column to number, text, edges, Bins or Periods, or None
            A width, such as 10; ``"q10"`` for ten intervals of about equal counts, with round
            edges (``"q10:exact"``: with values of records); or increasing edges.  Of dates
            ``"month"``, ``"quarter"``, ``"year"``, ``"decade"`` or years, such as ``"5years"``.
        missing : {"refuse", "level", "drop"}
            What becomes of missing values.
        groups : mapping of column to mapping, number or Groups, optional
            The group of each value, or how many of the most frequent values are kept.

        Raises
        ------
        InputError
            For a column that is not there, is named twice, or cannot be binned or grouped.
        """
        w = () if sensitive is None else column_names(sensitive, "sensitive")
        x = column_names(key, "key")
        z = () if side is None else column_names(side, "side")
        weight = () if weights is None else (str(weights),)
        lazy = as_narwhals(frame).lazy()
        columns = lazy.collect_schema().names()
        used: list[str] = []
        for argument, names in (("sensitive", w), ("key", x), ("side", z), ("weights", weight)):
            for name in names:
                present(name, columns, argument)
                if name in used:
                    problem = f"column {name!r} named twice"
                    raise InputError(argument, problem, "name each column once", value=name)
                used.append(name)
        schema = cls(x, w, z, weight[0] if weight else None, missing=missing)
        wanted, grouped = _specs(bins, "bins"), _specs(groups, "groups")
        for argument, specs in (("bins", wanted), ("groups", grouped)):
            for name in specs:
                if name not in schema.columns:
                    problem = f"column {name!r} is neither key, sensitive nor side"
                    remedy = f"use one of {schema.columns}"
                    raise InputError(argument, problem, remedy, value=name)
        for name in wanted.keys() & grouped.keys():
            problem = f"column {name!r} has bins too"
            raise InputError("groups", problem, "pass one of the two for it", value=name)
        calendar = {name: periods_of(spec) for name, spec in wanted.items()}
        periods = {name: spec for name, spec in calendar.items() if spec is not None}
        any_number = dict.fromkeys(wanted, Bins((-math.inf, math.inf)))
        replace(schema, bins={**any_number, **periods}).check(lazy, used)
        settled = {name: groups_of(name, spec, partial(value_counts, lazy, name))
                   for name, spec in grouped.items()}  # fmt: skip
        return replace(
            schema,
            bins={**_settled_bins(lazy, wanted, periods), **periods},
            groups={name: kept for name, kept in settled.items() if kept is not None},
        )

    def check(self, lazy: nw.LazyFrame[Any], names: Sequence[str]) -> None:
        """Refuse a table that lacks a column, or has text where numbers or dates are needed.

        Parameters
        ----------
        lazy : narwhals.LazyFrame
            The table.
        names : sequence of str
            Columns that it must have.

        Raises
        ------
        InputError
            Which names the column.
        """
        types = lazy.collect_schema()
        for name in names:
            present(name, types.names(), "frame")
            bins = self.bins.get(name)
            if isinstance(bins, Periods):
                _check_dates(lazy, name, types[name], bins)
            elif bins and types[name] == nw.Object and not lazy.implementation.is_polars():
                _check_numbers(name, value_counts(lazy, name))
            elif (bins or name == self.weights) and not types[name].is_numeric():
                argument = "weights" if name == self.weights else "bins"
                problem = f"column {name!r} is {types[name]}, not numbers"
                remedy = "convert it to numbers"
                if types[name] in (nw.Date, nw.Datetime):
                    remedy = f'pass a calendar interval, {{{name!r}: "year"}}'
                raise InputError(argument, problem, remedy, value=name)
            interval = lazy.implementation.is_duckdb() and types[name] == nw.Duration
            if types[name].is_nested() or interval:  # months and days of no common length
                remedy = "use columns of strings, numbers or categories"
                problem = f"column {name!r} is {types[name]}, which cannot be counted"
                raise InputError("frame", problem, remedy, value=name)

    def counted_records(self, frame: Any) -> Any:
        """Return the records of a frame that are counted: whole ones, if others are dropped.

        Parameters
        ----------
        frame : frame of any kind
            Returned in its own flavour.
        """
        return whole_records(frame, self.columns) if self.missing == "drop" else frame

    def letters(self, frame: nw.DataFrame[Any], names: Sequence[str]) -> list[Any]:
        """Return one letter of these columns per record of a frame in memory.

        Parameters
        ----------
        frame : narwhals.DataFrame
            The records.
        names : sequence of str
            Columns; several make letters that are tuples.
        """
        columns = [self._letters(name, python_values(frame[name])) for name in names]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def coded(self, frame: nw.DataFrame[Any], names: Sequence[str]) -> tuple[Codes, list[Any]]:
        """Return the same as numbers in a list of letters, which has each letter at least once.

        Parameters
        ----------
        frame : narwhals.DataFrame
            The records.
        names : sequence of str
            Columns, as of :meth:`letters`.
        """
        columns = []
        for name in names:
            codes, values = coded(frame[name])
            columns.append((codes, self._letters(name, values)))
        return crossed(columns)

    def _letters(self, name: str, values: list[Any]) -> list[Any]:
        if name in self.groups:
            return self.groups[name].named(values)
        bins = self.bins.get(name)
        if bins is None:
            return values
        if isinstance(bins, Periods):
            try:
                return bins.named(values)
            except InputError as error:
                problem = f"column {name!r}: {error.problem}"
                raise InputError("values", problem, error.remedy, value=error.value) from None
        try:
            return bins.named(values)
        except (TypeError, ValueError):
            value = next(v for v in values if not isinstance(v, numbers.Number | None))
            problem = f"column {name!r} has {value!r}, which no bin can hold"
            raise InputError("values", problem, "pass numbers", value=value) from None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        groups = [[name, *groups.to_list()] for name, groups in self.groups.items()]
        return {
            "sensitive": list(self.sensitive),
            "key": list(self.key),
            "side": list(self.side),
            "weights": self.weights,
            "bins": [
                [
                    name,
                    bins.unit
                    if isinstance(bins, Periods)
                    else [
                        e if isinstance(e, int | float) and math.isfinite(e) else str(e)
                        for e in bins.edges
                    ],
                ]
                for name, bins in self.bins.items()
            ],
            **({"groups": groups} if groups else {}),
            "missing": self.missing,
            "reading": dict(self.reading),
            **({"earlier": self.earlier} if self.earlier else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableSchema:
        """Return what :meth:`to_dict` wrote.

        Parameters
        ----------
        data : mapping
            As read from JSON.

        Raises
        ------
        ValueError
            If the columns are not named as ``to_dict`` names them.
        """
        names = {role: data[role] for role in ("key", "sensitive", "side")}
        text = all(isinstance(name, str) for group in names.values() for name in group)
        lists = all(isinstance(group, list) for group in names.values()) and names["key"]
        if not (text and lists and isinstance(data["weights"], str | None)):
            raise ValueError(f"columns {names}")
        return cls(
            **{role: tuple(group) for role, group in names.items()},
            weights=data["weights"],
            bins={
                name: Periods(edges) if isinstance(edges, str) else Bins(tuple(map(edge_of, edges)))
                for name, edges in data["bins"]
            },
            missing=data["missing"],
            reading=dict(data["reading"]),
            groups={name: Groups.from_list(listed) for name, *listed in data.get("groups", ())},
            earlier=int(data.get("earlier", 0)),
        )


def _specs(specs: Any, argument: str) -> dict[str, Any]:
    """Return what is asked for each column; what is no mapping is refused."""
    if specs is not None and not isinstance(specs, Mapping):
        remedy = f"pass {{column: …}}, as {argument}={{'age': 10}}"
        raise InputError(argument, f"{specs!r}", remedy, value=specs)
    return {str(name): spec for name, spec in (specs or {}).items()}


def _check_numbers(name: str, values: Iterable[Any]) -> None:
    """Refuse objects to be binned of which one is not a number."""
    other = next((v for v in values if not isinstance(v, numbers.Number | None)), None)
    if other is not None:
        problem = f"column {name!r} has {other!r}, which is not a number"
        raise InputError("bins", problem, "convert it to numbers", value=name)


def _check_dates(
    lazy: nw.LazyFrame[Any], name: str, dtype: nw.dtypes.DType, periods: Periods
) -> None:
    """Refuse a column that has something else than dates, with the first record of it."""
    if dtype in (nw.Date, nw.Datetime):
        year = nw.col(name).dt.year()
        usual = ((year >= 1) & (year <= MAXYEAR)).fill_null(False)
        other = lazy.filter(~is_missing(lazy, name) & ~usual).select(nw.len().alias("records"))
        if records := int(collect(lambda: other)["records"][0]):
            problem = f"column {name!r}: {records:,} dates before the year 1 or after 9999"
            raise InputError("bins", problem, "mend them, or make them missing", value=name)
        return
    try:
        if dtype.is_nested() or dtype.is_temporal() or dtype == nw.Boolean:
            raise InputError("bins", f"it is {dtype}", "convert it to dates")
        periods.check(value_counts(lazy, name))
    except InputError as error:
        where = None
        if error.value is not None and not (
            lazy.implementation.is_duckdb() or lazy.implementation.is_dask()
        ):
            column = python_values(collect(lambda: lazy.select(name))[name])
            where = column.index(error.value)
        problem = f"column {name!r}: {error.problem}"
        raise InputError("bins", problem, error.remedy, where=where, value=error.value) from None


def _settled_bins(
    lazy: nw.LazyFrame[Any], wanted: Mapping[str, Any], periods: Mapping[str, Periods]
) -> dict[str, Bins]:
    """Return bins with edges: those of a width cover the values, quantiles are those of them."""
    wanted = {name: spec for name, spec in wanted.items() if name not in periods}
    ends = dict.fromkeys(wanted, (None, None))
    ranged = [name for name, spec in wanted.items() if isinstance(spec, numbers.Number)]
    if ranged:
        ends |= dict(zip(ranged, _ranges(lazy, ranged), strict=True))
    return {
        name: bins_of(name, spec, *ends[name])
        if quantiles_in(spec) is None
        else quantile_bins(name, spec, value_counts(lazy, name))
        for name, spec in wanted.items()
    }


def _ranges(lazy: nw.LazyFrame[Any], names: Sequence[str]) -> list[tuple[Any, Any]]:
    """Return the least and the greatest value of columns of numbers, None without any."""
    ends, queries = dict[str, tuple[Any, Any]](), []
    for name in names:
        value = nw.when(~is_missing(lazy, name)).then(nw.col(name))
        if compares(lazy, name):
            queries += [value.min().alias(f"least {name}"), value.max().alias(f"greatest {name}")]
        else:
            values = [v for v in value_counts(lazy, name) if v is not None] or [None]
            ends[name] = values[0], values[-1]
    if queries:
        table = collect(lambda: lazy.select(queries))
        most = [python_values(column)[0] for column in table.iter_columns()]
        compared = [name for name in names if name not in ends]
        ends |= zip(compared, zip(most[::2], most[1::2], strict=True), strict=True)
    return [ends[name] for name in names]


def column_names(names: Hashable | Sequence[Hashable], argument: str) -> tuple[str, ...]:
    """Return the names of one column, or of several, as text."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        return (str(names),)
    columns = tuple(map(str, names))
    if not columns:
        raise InputError(argument, "no column", "name at least one column")
    return columns
