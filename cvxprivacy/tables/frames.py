"""From the records of a table to letters, in whatever kind of frame the table comes.

Frames come in through narwhals: pandas, polars and pyarrow in memory, DuckDB relations, polars
LazyFrames and Dask frames beyond it.  Counting is one group-by in the frame's own engine, and
nothing larger than the table of counts is ever collected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.frozen import frozen
from cvxprivacy.tables.bins import Bins, bins_of, short
from cvxprivacy.validation import present

__all__ = [
    "Coding",
    "Counts",
    "absent",
    "cell",
    "collected",
    "listed",
    "narwhal",
    "own_order",
    "palette",
    "plain",
    "replaced",
]

MOST_LEVELS = 10_000  # of a column, or of the cells of several
MOST_CELLS = 1_000_000
_MISSING = ("refuse", "level", "drop")


# ---- how records become letters ----------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """A table of counts: one mass per observed cell (w, x) or (w, x, z).

    Attributes
    ----------
    cells : list of tuple
        Letters (w, x) or (w, x, z) of each observed cell.
    masses : ndarray
        Records, or the sum of their weights.
    records : int
        Number of records counted.
    effective : float
        (Σ weight)² / Σ weight², the number of records without weights.
    levels : dict of column to list
        Observed values of each column, in order.
    dropped : int
        Records left out for missing values.
    """

    cells: list[tuple[Any, ...]]
    masses: npt.NDArray[np.float64]
    records: int
    effective: float
    levels: dict[str, list[Any]]
    dropped: int

    def ordered(self, columns: Sequence[str], axis: int) -> list[Any]:
        """Return the distinct letters of an axis, in the order of its columns' levels."""
        ranks = [{v: i for i, v in enumerate(self.levels[c])} for c in columns]

        def rank(letter: Any) -> tuple[int, ...]:
            values = letter if len(columns) > 1 else (letter,)
            return tuple(rank[v] for rank, v in zip(ranks, values, strict=True))

        return sorted({entry[axis] for entry in self.cells}, key=rank)


@dataclass(frozen=True)
class Coding:
    """How a record becomes letters: columns, bins, and what becomes of missing values.

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
    bins : mapping of column to Bins
    missing : {"refuse", "level", "drop"}
        A missing value is an error, is a letter (``None``), or leaves its record uncounted.
    reading : mapping
        How the file was read, for whom it may concern.
    """

    key: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    side: tuple[str, ...] = ()
    weights: str | None = None
    bins: Mapping[str, Bins] = field(default_factory=dict)
    missing: str = "refuse"
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("key", "sensitive", "side", "bins", "reading"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.missing not in _MISSING:
            remedy = f"use one of {', '.join(map(repr, _MISSING))}"
            raise InputError("missing", f"{self.missing!r} is unknown", remedy, value=self.missing)

    @property
    def columns(self) -> list[str]:
        """W's columns, then X's, then Z's."""
        return [*self.sensitive, *self.key, *self.side]

    @classmethod
    def of(
        cls,
        frame: Any,
        *,
        sensitive: Hashable | Sequence[Hashable],
        key: Hashable | Sequence[Hashable],
        side: Hashable | Sequence[Hashable] | None,
        weights: Hashable | None,
        bins: Mapping[Hashable, float | Sequence[float]] | None,
        missing: str,
    ) -> Coding:
        """Check the columns named against a frame, and settle the edges of its bins."""
        groups = {"sensitive": listed(sensitive, "sensitive"), "key": listed(key, "key")}
        groups["side"] = () if side is None else listed(side, "side")
        lazy = narwhal(frame).lazy()
        known = _columns(lazy)
        used: list[str] = []
        weights = None if weights is None else str(weights)
        for argument, name in [
            *((argument, name) for argument, names in groups.items() for name in names),
            *([("weights", weights)] if weights is not None else []),
        ]:
            if name not in known:
                said = ", ".join(map(str, known))
                raise InputError(argument, f"no column {name!r}", f"use one of {said}", value=name)
            if name in used:
                problem = f"column {name!r} named twice"
                raise InputError(argument, problem, "name each column once", value=name)
            used.append(name)
        wanted = {str(name): spec for name, spec in (bins or {}).items()}
        for name in wanted:
            if name not in used:
                problem = f"column {name!r} is neither key, sensitive nor side"
                raise InputError("bins", problem, f"use one of {used}", value=name)
        ends: dict[str, Any] = {}
        roles = groups["key"], groups["sensitive"], groups["side"]
        anything = dict.fromkeys(wanted, Bins((-math.inf, math.inf)))
        cls(*roles, weights=weights, bins=anything).known(lazy, used)
        if wanted:
            asked = []
            for i, name in enumerate(wanted):
                value = nw.col(name)
                seen = nw.when(~absent(lazy, name)).then(value)
                asked += [seen.min().alias(f"least{i}"), seen.max().alias(f"most{i}")]
            found = collected(lambda: lazy.select(asked))
            ends = {name: plain(found[name])[0] for name in found.columns}
        made = {
            name: bins_of(name, spec, ends[f"least{i}"], ends[f"most{i}"])
            for i, (name, spec) in enumerate(wanted.items())
        }
        return cls(*roles, weights=weights, bins=made, missing=missing)

    # ---- counting ------------------------------------------------------------------------

    def count(self, frame: Any, *, most: int = MOST_LEVELS) -> Counts:
        """Count a frame's records by one group-by in its own engine.

        Parameters
        ----------
        frame : as in :meth:`cvxprivacy.DiscreteSource.from_table`
        most : int
            Letters allowed: by default as many as a program could use.

        Raises
        ------
        InputError
            For missing values that are refused, values outside the bins, weights that are
            negative or missing, no records, or more cells than any program could use.
        """
        lazy = narwhal(frame).lazy()
        absent, kept, heaviest = self._surveyed(lazy, frame, most)
        coded = {f"c{i}": self._code(lazy, name) for i, name in enumerate(self.columns)}
        weight = None if self.weights is None else nw.col(self.weights).cast(nw.Float64)
        sums = [nw.len().alias("records")]
        extra = {}
        if weight is not None:
            extra = {"weight": weight, "square": (weight / heaviest) * (weight / heaviest)}
            sums += [nw.col("weight").sum(), nw.col("square").sum()]
        counted = self._present(lazy) if self.missing == "drop" else lazy
        found = collected(
            lambda: (
                counted.select(**coded, **extra).group_by(*coded).agg(*sums).head(MOST_CELLS + 1)
            )
        )
        if len(found) > MOST_CELLS:
            remedy = "bin numbers with bins=, or name fewer columns"
            raise InputError("key", f"more than {MOST_CELLS:,} observed cells", remedy)
        values = {
            name: self._read(name, plain(found[f"c{i}"])) for i, name in enumerate(self.columns)
        }
        try:
            levels = {n: _levels(set(v), own_order(self, frame, n, v)) for n, v in values.items()}
        except TypeError as error:
            remedy = "use columns of strings, numbers or categories"
            raise InputError("frame", f"cannot be counted ({error})", remedy) from None
        masses = np.array(plain(found["records" if weight is None else "weight"]), float)
        squares = masses.sum() if weight is None else float(sum(plain(found["square"])))
        total = masses.sum() if weight is None else float((masses / heaviest).sum())
        if not squares:
            raise InputError("weights", "all weights are zero", "pass weights of the records left")
        groups = [g for g in (self.sensitive, self.key, self.side) if g]
        cells = [
            tuple(cell([values[name][i] for name in group]) for group in groups)
            for i in range(len(masses))
        ]
        for argument, axis in (("sensitive", 0), ("key", -1 if not self.side else 1)):
            many = len({entry[axis] for entry in cells})
            if many > most:
                names = ", ".join(map(str, getattr(self, argument)))
                problem = f"{names} has {many:,} observed cells"
                remedy = f"{most:,} are allowed: bin numbers, or name fewer columns"
                raise InputError(argument, problem, remedy)
        return Counts(
            cells,
            masses,
            records=kept,
            effective=float(total**2 / squares),
            levels=levels,
            dropped=absent if self.missing == "drop" else 0,
        )

    def _surveyed(self, lazy: nw.LazyFrame[Any], frame: Any, most: int) -> tuple[int, int, float]:
        """Return how many records miss a value, how many count, and the greatest weight.

        What cannot be counted is refused.
        """
        self.known(lazy, [*self.columns, *([] if self.weights is None else [self.weights])])
        names = self.columns
        asked = [nw.len().alias("records")]
        for i, name in enumerate(names):
            asked.append(absent(lazy, name).cast(nw.Int64).sum().alias(f"absent{i}"))
            if name not in self.bins:
                asked.append(nw.col(name).n_unique().alias(f"levels{i}"))
            else:
                edges = self.bins[name]
                code = edges.number(nw.col(name))
                out = ((code == 0) | (code == len(edges.edges))) & ~absent(lazy, name)
                asked.append(out.cast(nw.Int64).sum().alias(f"outside{i}"))
        none = ~absent(lazy, names[0])
        for name in names[1:]:
            none = none & ~absent(lazy, name)
        asked.append(none.cast(nw.Int64).sum().alias("whole"))
        if self.weights is not None:
            weight = nw.col(self.weights)
            bad = (weight < 0) | absent(lazy, self.weights) | (weight > 1e300)
            asked += [bad.cast(nw.Int64).sum().alias("bad"), weight.max().alias("most")]
        found = collected(lambda: lazy.select(asked))
        said = {name: plain(found[name])[0] or 0 for name in found.columns}
        records = int(said["records"])
        if not records:
            raise InputError("frame", "no records", "pass a table with at least one row")
        for i, name in enumerate(names):
            argument = self._argument(name)
            if said[f"absent{i}"] and self.missing == "refuse":
                problem = f"{int(said[f'absent{i}']):,} missing values in column {name!r}"
                remedy = 'pass missing="level" (a letter of their own) or missing="drop"'
                raise InputError(argument, problem, remedy, where=_first(frame, name))
            if said.get(f"levels{i}", 0) > most:
                problem = f"column {name!r} has {int(said[f'levels{i}']):,} different values"
                remedy = "give it bins (a width, or edges) if it is a number, or leave it out"
                raise InputError(argument, problem, remedy, value=name)
            if said.get(f"outside{i}", 0):
                ends = self.bins[name].edges
                problem = f"{int(said[f'outside{i}']):,} values of column {name!r} lie outside "
                problem += f"[{short(ends[0])}, {short(ends[-1])})"
                raise InputError("bins", problem, "add edges, such as −inf or inf", value=name)
        if said.get("bad") or (self.weights is not None and not said["most"]):
            problem = f"{int(said['bad']):,} weights are negative, missing or infinite"
            if not said["bad"]:
                problem = "all weights are zero"
            raise InputError("weights", problem, "pass finite weights ≥ 0", value=self.weights)
        kept = int(said["whole"]) if self.missing == "drop" else records
        if not kept:
            remedy = 'pass missing="level", or name other columns'
            raise InputError("missing", "every record misses a value", remedy)
        return records - int(said["whole"]), kept, float(said.get("most", 1.0))

    def known(self, lazy: nw.LazyFrame[Any], names: Sequence[str]) -> None:
        """Refuse a table that lacks a column, or has text where numbers are needed."""
        schema = lazy.collect_schema()
        for name in names:
            present(name, schema.names(), "frame")
            if (name in self.bins or name == self.weights) and not schema[name].is_numeric():
                argument = "weights" if name == self.weights else "bins"
                problem = f"column {name!r} is {schema[name]}, not numbers"
                raise InputError(argument, problem, "convert it to numbers", value=name)
            if schema[name].is_nested():
                remedy = "use columns of strings, numbers or categories"
                problem = f"column {name!r} is {schema[name]}, which cannot be counted"
                raise InputError("frame", problem, remedy, value=name)

    def _argument(self, name: str) -> str:
        roles = {"sensitive": self.sensitive, "key": self.key, "side": self.side}
        return next(role for role, names in roles.items() if name in names)

    def _present(self, lazy: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        for name in self.columns:
            lazy = lazy.filter(~absent(lazy, name))
        return lazy

    def _code(self, lazy: nw.LazyFrame[Any], name: str) -> nw.Expr:
        value = nw.col(name)
        if name in self.bins:
            value = self.bins[name].number(value)
        return nw.when(~absent(lazy, name)).then(value) if name in self.bins else value

    def _read(self, name: str, values: list[Any]) -> list[Any]:
        """Name the numbers of bins; those outside are kept as numbers, which no letter is."""
        if name not in self.bins:
            return values
        labels = [0, *self.bins[name].labels, len(self.bins[name].edges)]
        return [None if v is None else labels[int(v)] for v in values]

    # ---- records -------------------------------------------------------------------------

    def letters(self, frame: nw.DataFrame[Any], names: Sequence[str]) -> list[Any]:
        """Return one letter of these columns per record of a frame in memory."""
        columns = []
        for name in names:
            values = plain(frame[name])
            if name in self.bins:
                try:
                    given = [math.nan if v is None else float(v) for v in values]
                except (TypeError, ValueError):
                    said = next(v for v in values if not isinstance(v, int | float | None))
                    problem = f"column {name!r} has {said!r}, which no bin can hold"
                    raise InputError("values", problem, "pass numbers", value=said) from None
                named = self.bins[name].named(given)
                values = [
                    None if v is None else (v if isinstance(n, float) else n)
                    for v, n in zip(values, named, strict=True)
                ]
            columns.append(values)
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def cells(self, frame: Any, groups: Sequence[Sequence[str]]) -> dict[Any, int]:
        """Return the distinct letters of groups of columns and their records, by the engine."""
        lazy = narwhal(frame).lazy()
        names = [name for group in groups for name in group]
        self.known(lazy, names)
        coded = {f"c{i}": self._code(lazy, name) for i, name in enumerate(names)}
        size = nw.len().alias("records")
        table = collected(
            lambda: lazy.select(**coded).group_by(*coded).agg(size).head(MOST_CELLS + 1)
        )
        columns = {n: self._read(n, plain(table[f"c{i}"])) for i, n in enumerate(names)}
        parts = [
            [cell([columns[name][i] for name in group]) for group in groups]
            for i in range(len(table))
        ]
        found: dict[Any, int] = {}
        for part, records in zip(parts, plain(table["records"]), strict=True):
            found[cell(part)] = found.get(cell(part), 0) + int(records)
        return found

    def only(self, frame: Any, letters: Sequence[Any]) -> Any:
        """Return the records of a frame whose key is one of some letters, in its own flavour.

        Records in memory are compared by their letters, as they were counted; those of an engine
        are filtered by it.
        """
        seen = narwhal(frame)
        self.known(seen.lazy(), self.key)
        if self.missing == "drop":
            for name in self.columns:
                seen = seen.filter(~absent(seen.lazy(), name))
        if isinstance(seen, nw.DataFrame):
            chosen = set(letters)
            return nw.to_native(seen.filter([x in chosen for x in self.letters(seen, self.key)]))
        return nw.to_native(seen.filter(self._among(seen, letters)))

    def _among(self, lazy: nw.LazyFrame[Any], letters: Sequence[Any]) -> nw.Expr:
        """Return whether a record's key is one of some letters, by few and shallow terms."""
        rows = [letter if len(self.key) > 1 else (letter,) for letter in letters]
        schema = lazy.collect_schema()

        def one_of(axis: int, values: Iterable[Any]) -> nw.Expr:
            name, wanted = self.key[axis], set(values)
            listed = list(wanted - {None})
            if name in self.bins:
                listed = [self.bins[name].labels.index(v) + 1 for v in listed]
            elif isinstance(schema[name], nw.Decimal):
                listed = [Decimal(str(v)) for v in listed]
            gone = absent(lazy, name)
            found = gone if None in wanted else nw.lit(False)
            return found | (~gone & self._code(lazy, name).is_in(listed)) if listed else found

        # letters that differ in one column alone are one term: the column of the most values
        axis = max(range(len(self.key)), key=lambda i: len({row[i] for row in rows}), default=0)
        terms: dict[tuple[Any, ...], list[Any]] = {}
        for row in rows:
            terms.setdefault((*row[:axis], *row[axis + 1 :]), []).append(row[axis])
        found = [nw.lit(False)]
        for rest, values in terms.items():
            here = one_of(axis, values)
            for i, value in zip((i for i in range(len(self.key)) if i != axis), rest, strict=True):
                here = here & one_of(i, [value])
            found.append(here)
        while len(found) > 1:  # a balanced tree: engines limit the depth of an expression
            pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
            found = [pair[0] | pair[1] if len(pair) > 1 else pair[0] for pair in pairs]
        return found[0]

    # ---- as text -------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "sensitive": list(self.sensitive),
            "key": list(self.key),
            "side": list(self.side),
            "weights": self.weights,
            "bins": [[name, [_end(e) for e in bins.edges]] for name, bins in self.bins.items()],
            "missing": self.missing,
            "reading": dict(self.reading),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coding:
        """Return what :meth:`to_dict` wrote."""
        names = {role: data[role] for role in ("key", "sensitive", "side")}
        named = all(isinstance(name, str) for group in names.values() for name in group)
        listed = all(isinstance(group, list) for group in names.values()) and names["key"]
        if not (named and listed and isinstance(data["weights"], str | None)):
            raise ValueError(f"columns {names}")
        return cls(
            **{role: tuple(group) for role, group in names.items()},
            weights=data["weights"],
            bins={name: Bins(tuple(float(e) for e in edges)) for name, edges in data["bins"]},
            missing=data["missing"],
            reading=dict(data["reading"]),
        )


def _end(edge: float) -> float | str:
    return edge if math.isfinite(edge) else str(edge)


def listed(given: Hashable | Sequence[Hashable], argument: str) -> tuple[str, ...]:
    """Return the names of one column, or of several."""
    one = isinstance(given, str) or not isinstance(given, Iterable)
    names = (str(given),) if one else tuple(map(str, given))  # type: ignore[arg-type]
    if not names:
        raise InputError(argument, "no column", "name at least one column")
    return names


# ---- narwhals ----------------------------------------------------------------------------


def narwhal(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """Return a frame as narwhals sees it, its column names as strings."""
    remedy = "pass a pandas, polars or pyarrow frame, a DuckDB relation or a Dask frame"
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return frame
    pandas = hasattr(frame, "set_axis") and hasattr(frame, "columns")
    if pandas or hasattr(frame, "npartitions"):  # where a column may have any name, and twice
        names = [str(name) for name in frame.columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError("frame", f"two columns are called {twice!r}", "give each its own name")
        if pandas and names != list(frame.columns):
            frame = frame.set_axis(names, axis=1)
    try:
        return nw.from_native(frame)
    except TypeError:
        raise InputError("frame", f"a {type(frame).__name__}", remedy) from None
    except nw.exceptions.DuplicateError as error:
        raise InputError("frame", str(error), "give each column its own name") from None


def plain(series: nw.Series[Any]) -> list[Any]:
    """Return Python objects, ``None`` where a value is missing."""
    gone = series.is_null()
    if series.dtype.is_float():
        gone = gone | series.is_nan()
    values = series.to_list()
    if any(isinstance(v, np.generic | Decimal) for v in values):
        values = [_python(v) for v in values]
    if not gone.any():
        return values
    return [None if g else v for g, v in zip(gone.to_list(), values, strict=True)]


def _python(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value.item() if isinstance(value, np.generic) else value


def replaced(values: Any, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
    """Return a frame in memory with columns replaced, in its flavour, with its index and names."""
    frame = narwhal(values)
    assert isinstance(frame, nw.DataFrame)
    made = [
        nw.new_series(name, column, backend=frame.implementation)
        for name, column in columns.items()
    ]
    if not hasattr(values, "set_axis"):
        return nw.to_native(frame.with_columns(*made))
    made = [nw.maybe_set_index(column, index=values.index) for column in made]  # pandas aligns
    return nw.to_native(frame.with_columns(*made)).set_axis(values.columns, axis=1)


def cell(values: Sequence[Any]) -> Any:
    """Return one value as it is, several as a tuple: what labels a letter."""
    return values[0] if len(values) == 1 else tuple(values)


def _columns(lazy: nw.LazyFrame[Any]) -> list[str]:
    return list(lazy.collect_schema().names())


def absent(lazy: nw.LazyFrame[Any], name: str) -> nw.Expr:
    """Return whether a value is missing; NaN is."""
    value = nw.col(name)
    if lazy.collect_schema()[name].is_float():
        return value.is_null() | value.is_nan()
    return value.is_null()


def _first(frame: Any, name: str) -> int | None:
    """Return the first row without a value, where rows are in memory and have an order."""
    seen = narwhal(frame)
    return plain(seen[name]).index(None) if isinstance(seen, nw.DataFrame) else None


def collected(asked: Callable[[], nw.LazyFrame[Any]]) -> nw.DataFrame[Any]:
    """Return what an engine counts, or say that it cannot."""
    try:
        return asked().collect()
    except (MemoryError, InputError):
        raise
    except Exception as error:  # each engine has its own; a column of lists, say
        said = str(error).strip().splitlines() or [type(error).__name__]
        remedy = "use columns of strings, numbers or categories"
        raise InputError("frame", f"cannot be counted ({said[0]})", remedy) from None


def own_order(coding: Coding, frame: Any, name: str, seen: Iterable[Any]) -> list[Any] | None:
    """Return the order that a column's own type gives its values, those seen at least.

    Bins, numbers, dates and ordered categories have one; text has not.
    """
    if name in coding.bins:
        return list(coding.bins[name].labels)
    dtype = narwhal(frame).lazy().collect_schema()[name]
    if dtype.is_numeric() or dtype.is_temporal():
        return sorted(set(seen) - {None})
    if isinstance(dtype, nw.Enum):
        return list(dtype.categories)
    if isinstance(dtype, nw.Categorical) and hasattr(frame, "combine_chunks"):  # pyarrow
        column = frame[name].unify_dictionaries()
        if column.type.ordered and column.num_chunks:
            return list(column.chunk(0).dictionary.to_pylist())
    return None


def _levels(found: set[Any], order: list[Any] | None) -> list[Any]:
    """Sort values: as their type says, else by size, else by kind and text; missing last."""
    values = found - {None}
    last = [None] if None in found else []
    if order is not None and values <= set(order):
        return [v for v in order if v in values] + last
    try:
        return sorted(values) + last
    except TypeError:
        return sorted(values, key=lambda v: (type(v).__name__, repr(v))) + last


def palette(letters: Sequence[Any], like: nw.Series[Any]) -> nw.Series[Any]:
    """Return letters as a series of the type of ``like``, or of their own where it has no room."""
    native, made = nw.to_native(like), list(letters)
    if isinstance(like.dtype, nw.Decimal):
        made = [v if v is None or isinstance(v, str) else Decimal(str(v)) for v in made]
    tries: list[Callable[[], Any]]
    if like.implementation.is_pandas_like():
        import pandas as pd

        own = pd.Series(made, dtype=object)
        tries = [lambda: own.astype(native.dtype)]
        tries += [] if None in made else [lambda: pd.Series(made)]  # which makes None NaN
        tries.append(lambda: own)
    elif like.implementation.is_pyarrow():
        import pyarrow as pa

        tries = [lambda: pa.chunked_array([pa.array(made, type=native.type)])]
        tries.append(lambda: pa.chunked_array([pa.array(made)]))
    else:
        import polars as pl

        tries = [lambda: pl.Series(made, dtype=native.dtype, strict=True)]
        tries.append(lambda: pl.Series(made))
        tries.append(lambda: pl.Series(made, dtype=pl.Object))
    for attempt in tries:
        try:
            series = nw.from_native(attempt(), series_only=True)
            if plain(series) == list(letters):
                return series
        except Exception as error:
            refused = error
    remedy = "use letters of one kind"
    raise InputError("outputs", f"{like.name!r} cannot hold {made!r} ({refused})", remedy)
