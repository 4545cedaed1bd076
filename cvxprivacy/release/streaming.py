"""Tables larger than memory: released batch by batch, in their own order and engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import narwhals as nw

from cvxprivacy.errors import InputError
from cvxprivacy.release.draws import Draws

__all__ = ["Engine", "drawn_batches", "engine_of"]

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
    engine = _ENGINES.get(frame.implementation)
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
            yield part, child.afresh(), 0
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

    draws = draws.lasting()
    schema = release(lazy.collect_schema().to_frame(), draws.afresh(), 0).schema

    def batches(
        names: list[str] | None, predicate: Any, rows: int | None, size: int | None
    ) -> Iterator[Any]:
        first, left, replay = 0, rows, draws.afresh()
        for batch in _polars_batches(lazy):
            released = release(batch, replay, first)
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

    meta = release(frame._meta, draws.afresh(), 0)
    types = {name: meta[name].dtype for name in columns}  # partitions may have their own

    def released(part: Any, child: Draws) -> Any:
        return release(part, child.afresh(), 0).astype(types)

    parts = frame.to_delayed()
    made = [
        delayed(released)(part, child)
        for part, child in zip(parts, draws.children(len(parts)), strict=True)
    ]
    return dd.from_delayed(made, meta=meta, divisions=frame.divisions, verify_meta=False)


_ENGINES = {
    nw.Implementation.DUCKDB: Engine(_duckdb_batches, _release_duckdb),
    nw.Implementation.POLARS: Engine(_polars_batches, _release_polars),
    nw.Implementation.DASK: Engine(_dask_batches, _release_dask, partitioned=True),
}
