"""A channel applied to tables larger than memory: batch by batch, in the table's own order."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import narwhals as nw

from cvxprivacy.errors import InputError
from cvxprivacy.tables.frames import Coding, absent, narwhal

if TYPE_CHECKING:
    from cvxprivacy.release.channel import Channel
    from cvxprivacy.release.draws import Draws

__all__ = ["streamed"]

BATCH = 131_072  # records


def streamed(
    channel: Channel,
    values: Any,
    frame: nw.LazyFrame[Any],
    draws: Draws,
    row_id: Hashable | None,
) -> Any:
    """Return the released table, computed as it is read.

    That every value is an input, and every record's name its own, is asked of the table's
    engine first, so that nothing is released of a table that cannot be released whole.
    """
    known = list(frame.collect_schema().names())
    groups, outputs = channel.columns_of(known)
    if row_id is not None:
        row_id = channel._id(row_id, known)
        name = nw.col(row_id)
        gone = absent(frame, row_id)
        asked = frame.select(
            (nw.len() - name.n_unique()).alias("twice"), gone.any().alias("missing")
        ).collect()
        if asked["twice"].to_list()[0] or asked["missing"].to_list()[0]:
            problem = f"column {row_id!r} names some records alike, or not at all"
            raise InputError("row_id", problem, "name every record by itself", value=row_id)
    coding = channel.coding or Coding(key=tuple(groups[0]))
    cells = coding.cells(frame, groups)
    unknown = [c for c in cells if c not in channel._places]
    batches = _BATCHES.get(frame.implementation)
    if batches is None:
        problem = f"a lazy {frame.implementation.value} frame"
        raise InputError("values", problem, "collect it first, or stream it from DuckDB or Dask")
    if unknown:  # find the first such record and say so
        first = 0
        for batch in batches(values):
            eager = nw.from_native(batch, eager_only=True)
            channel.rows(channel._letters(eager, groups), first)
            first += len(eager)
    channel.warn_of_unseen(cells, stacklevel=4)
    return _STREAMS[frame.implementation](channel, values, draws, row_id, outputs)


# ---- DuckDB: a reader of Arrow batches ---------------------------------------------------


def _duckdb_batches(relation: Any) -> Iterator[Any]:
    import pyarrow as pa

    for batch in relation.to_arrow_reader(BATCH):
        yield pa.Table.from_batches([batch])


def _from_duckdb(
    channel: Channel, relation: Any, draws: Draws, row_id: Hashable | None, outputs: list[str]
) -> Any:
    import pyarrow as pa

    empty = relation.limit(0).to_arrow_table()

    def released(table: Any, first: int) -> Any:
        return channel.released(narwhal(table), table, draws, row_id, first=first)  # type: ignore[arg-type]

    schema = released(empty, 0).schema

    records = relation.count("*").fetchall()[0][0]

    def batches() -> Iterator[Any]:
        first, reader = 0, relation.to_arrow_reader(BATCH)  # opened when it is read
        for batch in reader:
            yield from released(pa.Table.from_batches([batch]), first).cast(schema).to_batches()
            first += len(batch)
        if first != records:
            problem = f"{first:,} of {records:,} records came: the connection was used meanwhile"
            raise InputError("values", problem, "read the release before you query again")

    return pa.RecordBatchReader.from_batches(schema, batches())


# ---- polars: a LazyFrame again -----------------------------------------------------------


def _polars_batches(lazy: Any) -> Iterator[Any]:
    yield from lazy.collect_batches(chunk_size=BATCH, maintain_order=True)


def _from_polars(
    channel: Channel, lazy: Any, draws: Draws, row_id: Hashable | None, outputs: list[str]
) -> Any:
    from polars.io.plugins import register_io_source

    draws = draws.lasting()
    empty = lazy.collect_schema().to_frame()
    schema = channel.released(narwhal(empty), empty, draws.afresh(), row_id).schema  # type: ignore[arg-type]

    def batches(
        columns: list[str] | None, predicate: Any, rows: int | None, size: int | None
    ) -> Iterator[Any]:
        first, left, drawn = 0, rows, draws.afresh()
        for batch in _polars_batches(lazy):
            whole = channel.released(narwhal(batch), batch, drawn, row_id, first=first)  # type: ignore[arg-type]
            first += len(whole)
            if left is not None:  # a limit counts records before the predicate
                whole, left = whole.head(left), left - min(left, len(whole))
            if predicate is not None:
                whole = whole.filter(predicate)
            yield whole if columns is None else whole.select(columns)
            if left == 0:
                return

    return register_io_source(batches, schema=schema, is_pure=True)


# ---- Dask: partition by partition --------------------------------------------------------


def _dask_batches(frame: Any) -> Iterator[Any]:
    for partition in frame.partitions:
        yield partition.compute()


def _from_dask(
    channel: Channel, frame: Any, draws: Draws, row_id: Hashable | None, outputs: list[str]
) -> Any:
    import dask.dataframe as dd
    from dask.delayed import delayed

    def released(part: Any, own: Draws) -> Any:
        done = channel.released(narwhal(part), part, own.afresh(), row_id)  # type: ignore[arg-type]
        return done.astype(types)

    types: dict[str, Any] = {}
    meta = released(frame._meta, draws)
    types = {name: meta[name].dtype for name in outputs}  # partitions may have their own
    parts = frame.to_delayed()
    made = [
        delayed(released)(part, own)
        for part, own in zip(parts, draws.children(len(parts)), strict=True)
    ]
    return dd.from_delayed(made, meta=meta, divisions=frame.divisions, verify_meta=False)


_BATCHES = {
    nw.Implementation.DUCKDB: _duckdb_batches,
    nw.Implementation.POLARS: _polars_batches,
    nw.Implementation.DASK: _dask_batches,
}
_STREAMS = {
    nw.Implementation.DUCKDB: _from_duckdb,
    nw.Implementation.POLARS: _from_polars,
    nw.Implementation.DASK: _from_dask,
}
