"""Channels applied to records: a list, a column, a table in memory, or one beyond it in batches."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError, UnknownValueError, UnseenValueWarning
from cvxprivacy.extras import nw
from cvxprivacy.release.draws import Draws, Numbers
from cvxprivacy.tables.counting import count_letters
from cvxprivacy.tables.engines import (
    as_narwhals,
    crossed,
    is_frame,
    is_missing,
    python_values,
    replace_columns,
    series_like,
    series_of,
)
from cvxprivacy.tables.groups import raw
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.validation import present

__all__ = [
    "Engine",
    "Mechanism",
    "Places",
    "by_row",
    "check_letters",
    "drawn_batches",
    "engine_of",
    "inverse_transform",
    "rows_of",
]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Mechanism:
    """What applies a channel: its letters, the columns where they stand, and how it draws."""

    rows: Mapping[Any, int]  # of each input
    outputs: Sequence[Any]
    arbitrary: npt.NDArray[np.bool_]  # rows that no proof covers
    draw: Callable[[Places, Numbers], Places]  # of rows and numbers below 2⁵²: outputs
    each: int  # numbers that a record takes
    balanced: Callable[[Places, Sequence[Any] | None, Draws, Any], Places]  # all records at once
    schema: TableSchema | None
    encoder: str
    column: str | None  # of u, where outputs are u = 0, 1, … for a decoder

    def apply(self, values: Any, draws: Draws, row_id: Any) -> Any:
        """Return a released letter for each record, in the flavour of ``values``."""
        if not is_frame(values):
            rows = rows_of(self.rows, _letters(values))
            self._warn(self._counts(rows))
            names = None if row_id is None else _letters(row_id)
            return self._column(values, self._drawn(rows, draws, names))
        frame = as_narwhals(values, "values")
        if isinstance(frame, nw.LazyFrame):
            _refuse_balanced(draws)
            engine = engine_of(frame)
            self._warn(self._survey(values, frame, engine, row_id))

            def released(batch: Any, draws: Draws, first: int) -> Any:
                return self._released(batch, draws, row_id, first)

            columns = self._columns(frame.collect_schema().names())[1]
            return engine.release(values, draws, released, columns)
        rows = self._rows(frame)
        self._warn(self._counts(rows))
        return self._released(values, draws, row_id, rows=rows)

    def tallied(
        self, values: Any, draws: Draws, row_id: Any
    ) -> tuple[dict[tuple[Any, Any, int], int], dict[tuple[Any, Any, int], float], Places | None]:
        """Return how many records :meth:`apply` releases, what they weigh, and what is drawn.

        By letters w, x and the number of x̂; the weights are empty where there are none.  What is
        drawn is the number of x̂ of each record, of a frame in memory.
        """
        frame = as_narwhals(values, "values")
        batches: Iterable[tuple[Any, Draws, int]] = [(values, draws, 0)]
        places: Places | None = None
        if isinstance(frame, nw.LazyFrame):
            _refuse_balanced(draws)
            batches = drawn_batches(engine_of(frame), values, draws)
        counts: Counter[tuple[Any, Any, int]] = Counter()
        masses: dict[tuple[Any, Any, int], float] = {}
        inputs, schema = list(self.rows), self.schema
        assert schema is not None
        axis = self.encoder.index("x")
        x_of = [s if self.encoder == "x" else s[axis] for s in inputs]
        for batch, batch_draws, first in batches:
            table = as_narwhals(batch, "values")
            assert isinstance(table, nw.DataFrame)
            rows = self._rows(table, first)
            codes, letters = schema.coded(table, schema.sensitive)
            w = [letters[code] for code in codes.tolist()] if batch_draws.balanced else None
            drawn = self._drawn(rows, batch_draws, self._names(table, row_id), first, w)
            if isinstance(frame, nw.DataFrame):
                places = drawn
            parts = [(codes, letters), (rows, x_of), (drawn, range(len(self.outputs)))]
            cells, triples = crossed(parts)
            records, came = np.bincount(cells).tolist(), np.empty(len(triples), np.int64)
            came[cells[::-1]] = np.arange(len(cells))[::-1]  # the first record of each
            for i in np.argsort(came).tolist():
                counts[triples[i]] += records[i]
            if schema.weights is not None:
                weights = python_values(table[schema.weights])
                for code, weight in zip(cells.tolist(), weights, strict=True):
                    cell = triples[code]
                    masses[cell] = masses.get(cell, 0.0) + float(weight)
        return dict(counts), masses, places

    def _drawn(
        self,
        rows: Places,
        draws: Draws,
        names: Sequence[Any] | None,
        first: int = 0,
        w: Sequence[Any] | None = None,
    ) -> Places:
        """Return the number of each record's output; w is its confidential value, if it is there.

        Balanced draws are of all records at once, and count those of each w.
        """
        if draws.balanced:
            return self.balanced(rows, w, draws, names)
        return self.draw(rows, draws(len(rows), names, first, self.each))

    def _confidential(self, frame: nw.DataFrame[Any]) -> Sequence[Any] | None:
        """Return the letter w of each record, where the channel knows its columns."""
        columns = () if self.schema is None else self.schema.sensitive
        if self.schema is None or not columns or not set(columns) <= set(frame.columns):
            return None
        return self.schema.letters(frame, columns)

    def _names(self, frame: nw.DataFrame[Any], row_id: Any) -> list[Any] | None:
        """Return the names of the records, where they have any."""
        if row_id is None:
            return None
        present(row_id, frame.columns, "row_id")
        return python_values(frame[str(row_id)])

    def _released(
        self, values: Any, draws: Draws, row_id: Any, first: int = 0, rows: Places | None = None
    ) -> Any:
        """Return a frame in memory with its key columns replaced; ``rows`` if they are known."""
        frame = as_narwhals(values, "values")
        assert isinstance(frame, nw.DataFrame)
        if rows is None:
            rows = self._rows(frame, first)
        w = self._confidential(frame) if draws.balanced else None
        drawn = self._drawn(rows, draws, self._names(frame, row_id), first, w)
        if self.column is not None:
            assert self.schema is not None
            return replace_columns(values, {self.column: drawn}, instead_of=self.schema.key)
        return self.replaced(values, frame, drawn)

    def replaced(self, values: Any, frame: nw.DataFrame[Any], drawn: Places) -> Any:
        """Return a frame in memory with the outputs of these numbers in its key columns."""
        columns = self._columns(frame.columns)[1]
        letters = [y if len(columns) > 1 else (y,) for y in self.outputs]
        return replace_columns(
            values,
            {
                name: series_like([y[i] for y in letters], frame[name])[drawn]
                for i, name in enumerate(columns)
            },
        )

    def _column(self, values: Any, drawn: Places) -> Any:
        """Return the letters drawn, as a series where ``values`` are one, else as an array."""
        series = series_of(values)
        if series is None:
            return self._output_array[drawn]
        released = nw.to_native(series_like(self.outputs, series)[drawn].alias(series.name))
        return released.set_axis(values.index) if hasattr(values, "set_axis") else released

    @cached_property
    def _output_array(self) -> np.ndarray:
        kinds = {type(label) for label in self.outputs}
        if len(kinds) > 1 or tuple in kinds:
            array = np.empty(len(self.outputs), dtype=object)
            array[:] = self.outputs
            return array
        return np.asarray(self.outputs)

    # ---- columns -------------------------------------------------------------------------

    def _columns(self, names: Sequence[str]) -> tuple[list[Sequence[str]], list[str]]:
        """Return the groups of columns that make an input, and the columns that are released."""
        if self.schema is None:
            return self._counted_off(names)
        groups = self.schema.input_columns(self.encoder)
        for name in (name for group in groups for name in group):
            present(name, names, "values")
        if self.column is None:
            return groups, list(self.schema.key)
        if self.column in names:
            problem = f"a column {self.column!r} is there already"
            remedy = "rename it, or use channel.named(…), which releases u in a column of another "
            raise InputError("values", problem, remedy + "name", value=self.column)
        return groups, [self.column]

    def _counted_off(self, names: Sequence[str]) -> tuple[list[Sequence[str]], list[str]]:
        """Return the columns of a table whose names the channel does not know."""
        first = next(iter(self.rows))
        parts = len(first) if isinstance(first, tuple) else 1
        if len(names) != parts:
            problem = f"{len(names)} columns where an input has {parts}"
            raise InputError("values", problem, "pass the key columns alone, in their order")
        if self.column is not None:
            remedy = "make the source with from_table, or pass a list of letters"
            raise InputError("values", "columns that the channel does not know", remedy)
        check_letters("outputs", self.outputs, [names])
        return [list(names)], list(names)

    # ---- inputs --------------------------------------------------------------------------

    def _rows(self, frame: nw.DataFrame[Any], first: int = 0) -> Places:
        """Return the row of each record of a frame in memory."""
        groups = self._columns(frame.columns)[0]
        schema = self.schema or TableSchema(key=tuple(groups[0]))
        codes, letters = crossed([schema.coded(frame, group) for group in groups])
        places = np.array([_row_of(self.rows, letter) for letter in letters], np.int64)[codes]
        for i in np.flatnonzero(places < 0)[:1].tolist():  # refuse the first such record
            rows_of(self.rows, [letters[codes[i]]], first + i)
        return places

    def _survey(
        self, values: Any, frame: nw.LazyFrame[Any], engine: Engine, row_id: Any
    ) -> dict[Any, int]:
        """Return how many records have each arbitrary input, as the table's engine counts them.

        That every value is an input, and every record's name its own, is made sure of first, so
        that nothing is released of a table that cannot be released whole.
        """
        columns = frame.collect_schema().names()
        groups = self._columns(columns)[0]
        if row_id is not None:
            present(row_id, columns, "row_id")
            _check_names(frame, str(row_id))
        schema = self.schema or TableSchema(key=tuple(groups[0]))
        counts = count_letters(schema, frame, groups)
        if any(letter not in self.rows for letter in counts):  # find the first such record
            first = 0
            for batch in engine.batches(values):
                eager = nw.from_native(batch, eager_only=True)
                self._rows(eager, first)
                first += len(eager)
        return {x: n for x, n in counts.items() if self.arbitrary[self.rows[x]]}

    def _counts(self, rows: Places) -> dict[Any, int]:
        """Return how many records have each arbitrary input."""
        places, counts = np.unique(rows[self.arbitrary[rows]], return_counts=True)
        inputs = list(self.rows) if len(places) else []
        return {inputs[i]: n for i, n in zip(places.tolist(), counts.tolist(), strict=True)}

    def _warn(self, counts: Mapping[Any, int]) -> None:
        """Warn the caller of ``Channel.apply`` of inputs that the source never had."""
        if counts:
            warnings.warn(UnseenValueWarning(counts), stacklevel=4)


def _refuse_balanced(draws: Draws) -> None:
    """Refuse to count what is streamed before it is drawn."""
    if draws.balanced:
        problem = "'balanced', of a table that is read in batches"
        raise InputError("draw", problem, "collect it into a frame in memory first")


def rows_of(rows: Mapping[Any, int], letters: Sequence[Any], first: int = 0) -> Places:
    """Return each letter's row of a matrix; ``first`` is the number of the first record."""
    places = np.empty(len(letters), dtype=np.int64)
    for i, letter in enumerate(letters):
        try:
            places[i] = rows[letter]
        except (KeyError, TypeError):
            problem = f"{letter!r} is no input of the channel"
            remedy = "release only values that the source had, or rebuild it from this table"
            raise UnknownValueError(
                "values", problem, remedy, where=first + i, value=raw(letter)
            ) from None
    return places


def _row_of(rows: Mapping[Any, int], letter: Any) -> int:
    """Return a letter's row, or −1 where it has none."""
    try:
        return rows[letter]
    except (KeyError, TypeError):
        return -1


def inverse_transform(cumulative: Numbers, rows: Places, numbers: Numbers) -> Places:
    """Return the column at which a record's row of cumulative sums exceeds its number."""
    drawn = np.empty(len(rows), dtype=np.int64)
    for row, on in by_row(rows, len(cumulative)):
        drawn[on] = np.searchsorted(cumulative[row], numbers[on], side="right")
    return drawn


def inverse_transform_sparse(laws: Any, rows: Places, numbers: Numbers) -> Places:
    """Do the same of a ``csr_array`` of the laws themselves."""
    drawn = np.empty(len(rows), dtype=np.int64)
    for row, on in by_row(rows, laws.shape[0]):
        entries = slice(laws.indptr[row], laws.indptr[row + 1])
        place = np.searchsorted(np.cumsum(laws.data[entries]), numbers[on], side="right")
        drawn[on] = laws.indices[entries][place]
    return drawn


def by_row(rows: Places, count: int) -> Iterator[tuple[int, Places]]:
    """Yield each row that records have, with their places."""
    few = count <= np.iinfo(np.uint16).max  # small numbers are sorted by their digits
    order = np.argsort(rows.astype(np.uint16) if few else rows, kind="stable")
    ends = np.cumsum(np.bincount(rows, minlength=count))
    for row, on in enumerate(np.split(order, ends[:-1])):
        if len(on):
            yield row, on


def check_letters(argument: str, letters: Sequence[Any], groups: Sequence[Sequence[str]]) -> None:
    """Refuse letters that have not one value per column of each group."""
    for i, letter in enumerate(letters):
        if not _fits(letter, groups):
            names = ", ".join(name for group in groups for name in group)
            problem = f"{letter!r} is no letter of the columns {names}"
            remedy = "pass one value per column, in a tuple where there are several"
            raise InputError(argument, problem, remedy, where=i, value=letter)


def _fits(letter: Any, groups: Sequence[Sequence[str]]) -> bool:
    if len(groups) > 1:
        many = isinstance(letter, tuple) and len(letter) == len(groups)
        return many and all(_fits(x, [g]) for x, g in zip(letter, groups, strict=True))
    if len(groups[0]) == 1:
        return not isinstance(letter, tuple)
    return isinstance(letter, tuple) and len(letter) == len(groups[0])


def _check_names(frame: nw.LazyFrame[Any], row_id: Hashable) -> None:
    """Refuse a table beyond memory whose records are not named each by itself."""
    name, missing = nw.col(str(row_id)), is_missing(frame, str(row_id))
    query = frame.select((nw.len() - name.n_unique()).alias("twice"), missing.any().alias("gaps"))
    survey = query.collect()
    if survey["twice"].to_list()[0] or survey["gaps"].to_list()[0]:
        problem = f"column {row_id!r} names some records alike, or not at all"
        raise InputError("row_id", problem, "name every record by itself", value=row_id)


def _letters(values: Any) -> list[Any]:
    """Return one hashable label per record of a series, an array or a list."""
    series = series_of(values)
    if series is not None:
        items = python_values(series)
    elif isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError("values", f"{values!r}", "pass a column or a list of letters")
    elif hasattr(values, "tolist"):
        items = values.tolist()
    else:
        return list(values)
    return [tuple(item) if isinstance(item, list) else item for item in items]


# ---- batches of what is larger than memory ------------------------------------------------


BATCH = 131_072  # records

# Makes of a table in memory, draws, and the number of its first record what is released of it.
ReleaseOfBatch = Callable[[Any, Draws, int], Any]


class Engine(NamedTuple):
    """How the tables of an engine are read in batches, and released as they are read.

    ``release`` is given a table, draws, what releases a batch, and the released columns.
    """

    batches: Callable[[Any], Iterator[Any]]
    release: Callable[[Any, Draws, ReleaseOfBatch, list[str]], Any]
    partitioned: bool = False  # whether each batch has draws of its own


def engine_of(frame: nw.LazyFrame[Any]) -> Engine:
    """Return the engine of a lazy frame; one that cannot be streamed is refused."""
    engine = _ENGINES.get(frame.implementation.value)
    if engine is None:
        problem = f"a lazy {frame.implementation.value} frame"
        raise InputError("values", problem, "collect it first, or stream it from DuckDB or Dask")
    return engine


def drawn_batches(engine: Engine, values: Any, draws: Draws) -> Iterator[tuple[Any, Draws, int]]:
    """Yield tables with the draws that a release of them takes, and their first record's number."""
    batches = engine.batches(values)
    if engine.partitioned:
        parts = list(batches)
        for part, child in zip(parts, draws.children(len(parts)), strict=True):
            yield part, child, 0
        return
    first = 0
    for batch in batches:
        yield batch, draws, first
        first += len(batch)


# ---- DuckDB: a reader of Arrow batches ---------------------------------------------------


def _duckdb_batches(relation: Any) -> Iterator[Any]:
    import pyarrow as pa

    for batch in relation.to_arrow_reader(BATCH):
        yield pa.Table.from_batches([batch])


def _release_duckdb(
    relation: Any, draws: Draws, release: ReleaseOfBatch, columns: list[str]
) -> Any:
    import pyarrow as pa

    schema = release(relation.limit(0).to_arrow_table(), draws, 0).schema
    records = relation.count("*").fetchall()[0][0]

    def batches() -> Iterator[Any]:
        first = 0
        for table in _duckdb_batches(relation):  # opened when it is read
            yield from release(table, draws, first).cast(schema).to_batches()
            first += len(table)
        if first != records:
            problem = f"{first:,} of {records:,} records came: the connection was used meanwhile"
            raise InputError("values", problem, "read the release before you query again")

    return pa.RecordBatchReader.from_batches(schema, batches())


# ---- polars: a LazyFrame again -----------------------------------------------------------


def _polars_batches(lazy: Any) -> Iterator[Any]:
    yield from lazy.collect_batches(chunk_size=BATCH, maintain_order=True)


def _release_polars(lazy: Any, draws: Draws, release: ReleaseOfBatch, columns: list[str]) -> Any:
    from polars.io.plugins import register_io_source

    schema = release(lazy.collect_schema().to_frame(), draws, 0).schema

    def batches(
        names: list[str] | None, predicate: Any, rows: int | None, size: int | None
    ) -> Iterator[Any]:
        first, left = 0, rows
        for batch in _polars_batches(lazy):
            released = release(batch, draws, first)
            first += len(released)
            if left is not None:  # a limit counts records before the predicate
                released, left = released.head(left), left - min(left, len(released))
            if predicate is not None:
                released = released.filter(predicate)
            yield released if names is None else released.select(names)
            if left == 0:
                return

    return register_io_source(batches, schema=schema, is_pure=True)


# ---- Dask: partition by partition --------------------------------------------------------


def _dask_batches(frame: Any) -> Iterator[Any]:
    for partition in frame.partitions:
        yield partition.compute()


def _release_dask(frame: Any, draws: Draws, release: ReleaseOfBatch, columns: list[str]) -> Any:
    import dask.dataframe as dd
    from dask.delayed import delayed

    meta = release(frame._meta, draws, 0)
    types = {name: meta[name].dtype for name in columns}  # partitions may have their own

    def released(part: Any, child: Draws) -> Any:
        return release(part, child, 0).astype(types)

    parts = frame.to_delayed()
    made = [
        delayed(released)(part, child)
        for part, child in zip(parts, draws.children(len(parts)), strict=True)
    ]
    return dd.from_delayed(made, meta=meta, divisions=frame.divisions, verify_meta=False)


_ENGINES = {
    "duckdb": Engine(_duckdb_batches, _release_duckdb),
    "polars": Engine(_polars_batches, _release_polars),
    "dask": Engine(_dask_batches, _release_dask, partitioned=True),
}
