"""Parquet tables: counted by DuckDB, and streamed through Arrow, with every type as it came.

DuckDB reads what is counted and drawn alone.  All other columns go from the file to the released
one as Arrow holds them: types, nullability, metadata, row groups and codecs.
"""

from __future__ import annotations

import glob
import io
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from cvxprivacy.errors import InputError
from cvxprivacy.tables.periods import periods_of
from cvxprivacy_sdc.formats.delimited import addresses
from cvxprivacy_sdc.formats.framed import Columns, Keep, Progress, applied

if TYPE_CHECKING:
    from cvxprivacy.release.channel import Channel
    from cvxprivacy_sdc.formats.shuffle import Shuffle

__all__ = ["ParquetTable", "days_of_zone", "in_memory", "records_of"]

BATCH = 1 << 16  # records read at a time
_POLARS = b"_PL_"  # what Polars notes of a field: its categories, in their order
GROUP = 1 << 27  # bytes of a row group in memory; a larger one is written in pieces


def in_memory(frame: Any, names: Iterable[str]) -> Any:
    """Return all records at once, for draws that count them before they draw any.

    Of what is not in memory only the columns that are named.
    """
    if not hasattr(frame, "to_arrow_table"):
        return frame
    return frame.project(", ".join(map(_quoted, names))).to_arrow_table()


class ParquetTable:
    """A Parquet file, counted by DuckDB and streamed through in Arrow batches."""

    notes: tuple[str, ...] = ()  # its types say which cells are missing
    folds = True  # as DuckDB does not tell names apart that differ in case alone
    dropped: Sequence[str] = ()  # columns that are not in the released table
    dropping: Mapping[str, Sequence[str]] = MappingProxyType({})  # how these were asked for
    shuffle: Shuffle | None = None  # the secret order in which records are released
    labels: Mapping[str, Mapping[Any, str]] = MappingProxyType({})  # it has none of values

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import duckdb
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = Path(path)
        try:
            with self.path.open("rb"):
                self.size = self.path.stat().st_size  # bytes
            self.connection = duckdb.connect()
            self.relation = records_of(self.connection, self.path)
            self.file = pq.ParquetFile(self.path, pre_buffer=False)
        except (OSError, duckdb.Error, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            remedy = "pass a Parquet file that can be read"
            raise InputError("table", f"{os.fspath(path)!r}: {reason}", remedy) from None
        self.titles: list[str] = self.file.schema_arrow.names
        names = addresses(self.titles, fold=self.folds)
        if names != self.relation.columns:
            pairs = zip(self.relation.columns, names, strict=True)  # DuckDB has others for twins
            self.relation = self.relation.project(
                ", ".join(f"{_quoted(old)} AS {_quoted(new)}" for old, new in pairs)
            )
        self.header: list[str] = list(self.relation.columns)

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        return {"format": "parquet"}

    def frame(
        self,
        names: Sequence[str] | None = None,
        *,
        binned: Mapping[str, Any] = MappingProxyType({}),
        dates: bool = False,
        **_: Any,
    ) -> Any:
        """Return the table as a DuckDB relation, whatever columns are asked for.

        Its days are those of the zone of the columns that are put into calendar intervals, or
        may be, where ``dates`` is true.
        """
        may_be = dict.fromkeys(names or (), "year") if dates else {}
        _refuse_other_numbers(self.file.schema_arrow, binned)
        days_of_zone(self.connection, self.file.schema_arrow, {**may_be, **binned})
        return self.relation

    def write(self, file: IO[bytes], values: Columns, keep: Keep, progress: Progress) -> list[str]:
        """Write the table with new values in some columns."""
        import pyarrow as pa

        made = {name: pa.array(column) for name, column in values.items()}
        released = _Released(self, made, dropped=keep is not None)
        place = 0

        def replaced(records: Any) -> tuple[Any, Any]:
            nonlocal place
            first, place = place, place + len(records)
            kept = None if keep is None else pa.array(keep[first:place], pa.bool_())
            part = pa.table({name: column[first:place] for name, column in made.items()})
            return kept, part if kept is None else part.filter(kept)

        return released.write(file, replaced, progress, self.file.metadata.num_rows)

    def release(
        self, channel: Channel, file: IO[bytes], used: Sequence[str], seed: int,
        row_id: str | None = None, draw: str = "independent", progress: Progress = None, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Write the released table into an open file; return what was done.

        It is read and drawn batch by batch, whatever is known of it.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        schema = channel.schema
        assert schema is not None
        names = list(dict.fromkeys([*used, *([row_id] if row_id else [])]))
        _refuse_other_numbers(self.file.schema_arrow, schema.bins)
        days_of_zone(self.connection, self.file.schema_arrow, schema.bins)
        relation: Any = self.relation.project(", ".join(map(_quoted, names)))
        records, kept = self.file.metadata.num_rows, None
        if schema.missing == "drop":
            types = dict(zip(relation.columns, map(str, relation.types), strict=True))
            for name in used:
                quoted = _quoted(name)
                nan = f" AND NOT isnan({quoted})" if types[name] in ("FLOAT", "DOUBLE") else ""
                relation = relation.filter(f"{quoted} IS NOT NULL{nan}")
            kept = relation.count("*").fetchall()[0][0]
        together = draw == "balanced" or channel.drawn_jointly
        table: Any = in_memory(relation, names) if together else relation
        how = {"draw": draw} if together else {}

        def drawing() -> Any:
            records = channel.apply(table, seed=seed, row_id=row_id, **how)
            return records.to_reader() if together else records

        with applied(self.path) as notes:
            occurring = self._occurring(drawing, schema.key)
            reader = drawing()
        places = [self.header.index(name) for name in used]
        drawn = _Drawn(reader, schema.key)

        def replaced(batch: Any) -> tuple[Any, Any]:
            if kept is None:
                return None, drawn.taken(len(batch))
            counted = pa.array([True] * len(batch), pa.bool_())
            for place in places:
                missing = pc.is_null(_plain(batch.column(place)), nan_is_null=True)
                counted = pc.and_not(counted, missing)
            return counted, drawn.taken(counted.true_count)

        kinds = {name: reader.schema.field(name).type for name in schema.key}
        letters = _letters(channel)
        made = {
            name: _array(
                [y[i] for y in letters if y[i] in occurring.get(name, (y[i],))], kinds[name]
            )
            for i, name in enumerate(schema.key)
        }
        released = _Released(self, made, dropped=kept not in (None, records))
        notes += released.write(file, replaced, progress, records if kept is None else kept)
        if not drawn.drained() or released.records != (records if kept is None else kept):
            problem = f"{released.records:,} records came where {kept or records:,} were counted"
            raise InputError("table", problem, "run again when the file is at rest")
        return {
            "records": released.records, "dropped": records - released.records, "notes": notes,
        }  # fmt: skip

    def refuse_unwritable(self) -> None:
        """Parquet holds whatever it held."""

    def _occurring(self, drawing: Callable[[], Any], key: Sequence[str]) -> dict[str, set[Any]]:
        """Return the values that are released in columns of categories: no others are listed."""
        schema = self.file.schema_arrow
        used = {
            n: set[Any]() for n in key if _is_dictionary(schema.field(self.header.index(n)).type)
        }
        for batch in drawing() if used else ():
            for name, values in used.items():
                values.update(batch.column(name).unique().to_pylist())
        return used


def records_of(connection: Any, path: Path) -> Any:
    """Return a Parquet file as DuckDB has it; decimals that are wider than its own are text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    decimals = [i for i, kind in enumerate(schema.types) if pa.types.is_decimal256(kind)]
    wide = {i: f"wide decimal {i}" for i in decimals}
    # floats may be NaN, whatever the statistics say
    query = "FROM read_parquet($pattern, can_have_nan = true, hive_partitioning = false)"
    if wide:
        table = pq.ParquetFile(path).read(columns=[schema.names[i] for i in wide])
        texts = [column.cast(pa.string()) for column in table.columns]
        connection.register("wide_decimals", pa.table(texts, [*wide.values()]))
        query += " POSITIONAL JOIN wide_decimals"
    records = connection.sql(query, params={"pattern": glob.escape(str(path))})
    names = [_quoted(name) for name in records.columns[: len(schema)]]
    return records.project(
        ", ".join(f"{_quoted(wide[i])} AS {n}" if i in wide else n for i, n in enumerate(names))
    )


def days_of_zone(connection: Any, schema: Any, bins: Mapping[str, Any]) -> None:
    """Let DuckDB tell days as the zone of the columns in calendar intervals has them.

    By itself it takes those of the machine's zone.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the file.
    bins : mapping of str to bins
        Of columns as :func:`addresses` calls them.
    """
    import duckdb

    columns = zip(addresses(schema.names, fold=True), schema, strict=True)
    zones = {name: zone for name, field in columns if (zone := getattr(field.type, "tz", None))
             and periods_of(bins.get(name)) is not None}  # fmt: skip
    remedy = "make dates or moments without a zone of them"
    if len({*zones.values()}) > 1:
        raise InputError("bins", f"columns of several time zones: {zones}", remedy)
    for name, zone in zones.items():
        if hours := re.fullmatch(r"([+-])([0-9]{2}):?00", zone):
            sign = "-" if hours[1] == "+" else "+"  # which Etc has the other way round
            zone = f"Etc/GMT{sign}{int(hours[2])}"
        try:
            connection.execute("SET TimeZone = ?", [zone])
        except duckdb.Error:
            problem = f"column {name!r} is of the time zone {zone!r}, which DuckDB has not"
            raise InputError("bins", problem, remedy, value=name) from None


def _refuse_other_numbers(schema: Any, bins: Mapping[str, Any]) -> None:
    """Refuse calendar intervals of durations, and of what another program stores as numbers.

    DuckDB reads both as numbers; a period of pandas is one.
    """
    import pyarrow as pa

    for name, field in zip(addresses(schema.names, fold=True), schema, strict=True):
        extension = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
        kind = field.type.value_type if _is_dictionary(field.type) else field.type
        other = extension or isinstance(kind, pa.BaseExtensionType) or pa.types.is_duration(kind)
        if other and periods_of(bins.get(name)):
            problem = f"column {name!r} is {extension or field.type}, and not dates"
            raise InputError("bins", problem, "make dates of it", value=name)


class _Drawn:
    """Columns of a reader, so many records at a time."""

    def __init__(self, reader: Any, names: Sequence[str]) -> None:
        import pyarrow as pa

        self.names, self.batches = list(names), iter(reader)
        self.held = pa.Table.from_batches([], reader.schema).select(self.names)

    def taken(self, count: int) -> Any:
        """Return the next records; the table is too short where there are no more."""
        import pyarrow as pa

        while self.held.num_rows < count and (batch := next(self.batches, None)) is not None:
            more = pa.Table.from_batches([batch]).select(self.names)
            self.held = pa.concat_tables([self.held, more])
        part, self.held = self.held.slice(0, count), self.held.slice(count)
        return part

    def drained(self) -> bool:
        """Tell whether all were taken; an open reader would be in the way of other queries."""
        return self.held.num_rows + sum(map(len, self.batches)) == 0


class _Released:
    """What is written: the schema of a table whose key columns have new values.

    Parameters
    ----------
    table : ParquetTable
    made : mapping of str to pyarrow.Array
        Of each column that is replaced, the values that it may have, or all of them.
    dropped : bool
        Whether records are left out.

    Attributes
    ----------
    records : int
        That were written.
    """

    def __init__(self, table: ParquetTable, made: Mapping[str, Any], *, dropped: bool) -> None:
        import pyarrow as pa

        self.table, self.file, self.made, self.records = table, table.file, made, 0
        original = self.file.schema_arrow
        counted = table.relation.limit(0).to_arrow_table().schema
        self.places = {name: table.header.index(name) for name in made}
        self.dictionaries: dict[str, Any] = {}
        fields, changed, notes = list(original), dict[str, Any](), []
        for name, values in made.items():
            field, kind = original.field(self.places[name]), values.type
            dictionary = None
            if _is_dictionary(field.type):
                field, dictionary = self._dictionary(field, values)
                notes += [f"the categories of {name} are no longer marked as ordered: their order "
                          "was that in which they first stand"] * (
                    original.field(self.places[name]).type.ordered > field.type.ordered
                )  # fmt: skip
            if kind == counted.field(self.places[name]).type or _are_numbers(kind, field.type):
                kind = field.type if _holds(field.type, values, dictionary) else kind
            if _is_dictionary(kind):
                self.dictionaries[name] = dictionary
                changed[field.name] = _cast(dictionary, kind, dictionary)
            elif kind != field.type:
                changed[field.name] = values
                notes += _outdated(original.metadata or {}, field.name)
                field = _without_extension(field)
            nullable = field.nullable or values.null_count > 0
            fields[self.places[name]] = field.with_type(kind).with_nullable(nullable)
        gone = {table.header.index(name) for name in table.dropped}
        self.kept = [i for i in range(len(fields)) if i not in gone]
        names = {fields[i].name for i in gone} - {fields[i].name for i in self.kept}
        metadata = _metadata(original.metadata, changed, names, dropped=dropped)
        others = sorted({*(original.metadata or {})} - {b"pandas", *(metadata or {})})
        if gone and others:
            kept = b", ".join(others).decode(errors="replace")
            notes.append(f"metadata that may be of the columns left out are left out, too: {kept}")
        schema = pa.schema([fields[i] for i in self.kept], metadata)
        key = {fields[place].name for place in self.places.values()}
        schema, hiding = _unnamed(schema, key, self._names)
        if hiding:
            kept = ", ".join(hiding)
            notes.append(f"metadata that name values of the key are left out: {kept}")
        self.schema, self.notes = schema, notes

    @cached_property
    def _values(self) -> dict[str, bool]:
        """The values that the key had, in small letters, and whether all are released."""
        texts: dict[str, bool] = {}
        for name, values in self.made.items():
            original = self.table.relation.project(_quoted(name)).distinct().fetchall()
            released = {*map(str, values.unique().to_pylist())}
            for value in (str(v) for (v,) in original if v is not None and v != ""):
                small = value.casefold()
                texts[small] = texts.get(small, True) and value in released
        return texts

    def _names(self, text: str) -> bool:
        """Tell whether a text names a value that is not released, or lists several values.

        Those of text are found between letters and digits, too; numbers as words of their own.
        """
        text = text.casefold()
        words = {*re.findall(r"\w+", text)}
        named = [
            value for value in self._values
            if value in words or (len(value) > 2 and not value.isdecimal() and value in text)
        ]  # fmt: skip
        return len(named) > 1 or not all(self._values[value] for value in named)

    def write(
        self, file: IO[bytes], replaced: Callable[[Any], tuple[Any, Any]], progress: Progress,
        records: int,
    ) -> list[str]:  # fmt: skip
        """Write the table, a row group at a time; return what is to be said of it.

        Parameters
        ----------
        file : binary file
        replaced : callable
            Given records as they were, in their order, returns which of them are kept, or None
            for all, and their new columns.
        progress : callable or None
        records : int
            That are kept.
        """
        import pyarrow.parquet as pq

        how, lost = self._manner()
        shuffle, cut = self.table.shuffle, False

        def parts(group: int) -> Iterator[Any]:
            total = max(self.file.metadata.num_rows, 1)
            for batch in self.file.iter_batches(BATCH, row_groups=[group]):
                yield self._part(batch, *replaced(batch))
                if progress is not None:
                    progress(self.table.size * len(batch) // total)

        groups = range(self.file.num_row_groups)
        with pq.ParquetWriter(file, self.schema, **how) as writer, _Behind(writer) as behind:
            if shuffle is not None:
                every = (part for group in groups for part in parts(group))
                for table in shuffle.tables(every, records, GROUP):
                    self.records += behind.write([_alphabetical(table)])
            for group in groups if shuffle is None else ():
                held: list[Any] = []
                for part in parts(group):
                    if sum(each.nbytes for each in held) > GROUP:
                        self.records += behind.write(held)
                        held, cut = [], True
                    held.append(part)
                self.records += behind.write(held)
        pieces = f"row groups of more than {GROUP >> 20} MiB are written in pieces"
        notes = [*self.notes, *lost, *([pieces] if cut else [])]
        return [f"{self.table.path.name}: {note}" for note in notes]

    def _part(self, batch: Any, kept: Any, new: Any) -> Any:
        """Return records as they are written."""
        import pyarrow as pa

        batch = batch if kept is None else batch.filter(kept)
        columns = list(batch.columns)
        for name, place in self.places.items():
            kind = self.schema.field(self.kept.index(place)).type
            columns[place] = _cast(new[name], kind, self.dictionaries.get(name))
        return pa.Table.from_arrays([columns[i] for i in self.kept], schema=self.schema)

    def _dictionary(self, field: Any, values: Any) -> tuple[Any, Any]:
        """Return a column of categories and those that are released: sorted, or as declared.

        A declared order in which they also first stand in the file may be made of it, and would
        tell the key of the first record; in a shuffled table it is of no record.
        """
        released = sorted(dict.fromkeys(v for v in values.to_pylist() if v is not None))
        if field.type.ordered:
            declared, first = dict[Any, None](), dict[Any, None]()
            for batch in self.file.iter_batches(BATCH, columns=[field.name]):
                column = batch.column(0)
                declared |= dict.fromkeys(column.dictionary.to_pylist())
                first |= dict.fromkeys(column.unique().to_pylist())
            there = [v for v in declared if v in first]
            if self.table.shuffle is not None or there != [v for v in first if v is not None]:
                rank = {value: i for i, value in enumerate(declared)}
                released.sort(key=lambda value: rank.get(value, len(rank)))
            elif released != [v for v in declared if v in released]:
                field = field.with_type(_unordered(field.type))
        return field, _array(released, field.type.value_type)

    def _manner(self) -> tuple[dict[str, Any], list[str]]:
        """Return how the file is written, and what is lost: an empty table tells it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        metadata = self.file.metadata
        paths = [self.file.schema.column(i).path for i in range(metadata.num_columns)]
        here = {*self.schema.names}
        places = [i for i, p in enumerate(paths) if {p, p.partition(".")[0]} & here]
        leaves = [self.file.schema.column(i) for i in places]
        moments = {
            leaf.physical_type for leaf in leaves
            if leaf.physical_type == "INT96" or leaf.logical_type.type == "TIMESTAMP"
        }  # fmt: skip
        how: dict[str, Any] = {
            "use_deprecated_int96_timestamps": moments == {"INT96"},
            "use_compliant_nested_type": not any(".list.item" in leaf.path for leaf in leaves),
        }
        blank = io.BytesIO()
        try:
            pq.ParquetWriter(blank, self.schema, **how).close()
        except pa.ArrowException as error:
            problem = f"{self.table.path.name}: {str(error).splitlines()[0]}"
            raise InputError("table", problem, "leave the column out") from None
        again = pq.ParquetFile(blank)
        lost = [
            f"{old.name}: {old.type} becomes {new.type}"
            for old, new in zip(self.schema, again.schema_arrow, strict=True)
            if old.type != new.type
        ]
        paths = [again.schema.column(i).path for i in range(len(again.schema))]
        if len(paths) == len(leaves):
            lost += [
                f"{leaf.path} is not marked as {leaf.logical_type.type}, which it was"
                for i, leaf in enumerate(leaves)
                if again.schema.column(i).logical_type.type == "NONE" != leaf.logical_type.type
                and leaf.path.partition(".")[0] not in self.places
            ]
            if metadata.num_row_groups:
                first = metadata.row_group(0)
                codecs = [first.column(i).compression for i in places]
                names = {"UNCOMPRESSED": "NONE", "UNKNOWN": "LZ4"}  # of Hadoop, which framed it
                listed = {path: names.get(c, c) for path, c in zip(paths, codecs, strict=True)}
                several = len(set(listed.values())) > 1
                how["compression"] = listed if several else listed[paths[0]]
        return how, lost


class _Behind:
    """Writes a row group while the next one is made; no more than one waits."""

    def __init__(self, writer: Any) -> None:
        self.writer, self.pool = writer, ThreadPoolExecutor(1)
        self.group: Future[None] | None = None

    def __enter__(self) -> _Behind:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.pool.shutdown()
        if kind is None:
            self._ended()

    def _ended(self) -> None:
        if self.group is not None:
            self.group.result()  # which raises what went wrong

    def write(self, parts: list[Any]) -> int:
        """Write records as one row group; return how many they are."""
        import pyarrow as pa

        records = sum(part.num_rows for part in parts)
        if records:
            self._ended()
            group = pa.concat_tables(parts)
            self.group = self.pool.submit(self.writer.write_table, group, row_group_size=records)
        return records


# ---- types -------------------------------------------------------------------------------


def _letters(channel: Any) -> list[tuple[Any, ...]]:
    """Return the values of the key columns that a channel releases."""
    drawing = getattr(channel, "alone", channel)  # a sequel's two channels have the same outputs
    return [y if len(drawing.schema.key) > 1 else (y,) for y in drawing.outputs]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_dictionary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind))


def _plain(column: Any) -> Any:
    """Return a column whose missing values are missing entries, and not of its dictionary."""
    return column.dictionary_decode() if _is_dictionary(column.type) else column


def _are_numbers(*kinds: Any) -> bool:
    import pyarrow as pa

    return all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)


def _array(values: Sequence[Any], kind: Any) -> Any:
    """Return values as an array of a type; decimals from the numbers that they were counted as."""
    import pyarrow as pa

    made = list(values)
    if pa.types.is_decimal(kind):
        made = [v if v is None or isinstance(v, str) else Decimal(str(v)) for v in made]
    return pa.array(made, type=kind)


def _holds(kind: Any, values: Any, dictionary: Any) -> bool:
    """Tell whether a type holds values, all of them and as they are."""
    import pyarrow as pa

    try:
        return bool(_plain(_cast(values, kind, dictionary)).cast(values.type).equals(values))
    except pa.ArrowException:
        return False


def _cast(values: Any, kind: Any, dictionary: Any) -> Any:
    """Return values as a type; of categories those of the dictionary, and others behind them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_dictionary(kind):
        return values.cast(kind)
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays([pa.array([], values.type), *values.chunks])
    values = values.cast(kind.value_type)
    places = pc.index_in(values, value_set=dictionary, skip_nulls=True).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(places, dictionary, ordered=kind.ordered)


def _unordered(kind: Any) -> Any:
    import pyarrow as pa

    return pa.dictionary(kind.index_type, kind.value_type, ordered=False)


def _alphabetical(table: Any) -> Any:
    """Return records whose columns of categories list them sorted, but for those that are ordered.

    In the order of the original they would tell which of its records came first.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if _is_dictionary(field.type) and not field.type.ordered:
            plain = column.cast(field.type.value_type)
            listed = plain.unique().drop_null()
            listed = listed.take(pc.sort_indices(listed))
            column = _cast(plain, field.type, listed)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=table.schema)


def _without_extension(field: Any) -> Any:
    """Return a field without what says of which extension type it was."""
    extension = b"ARROW:extension:"
    metadata = field.metadata or {}
    kept = {k: v for k, v in metadata.items() if not k.startswith(extension)}
    return field.with_metadata(kept or None)


# ---- metadata ----------------------------------------------------------------------------


def _outdated(metadata: Mapping[bytes, bytes], name: str) -> list[str]:
    """Return what is to be said of metadata that speak of a column whose type has changed."""
    keys = [
        key.decode("utf-8", "replace")
        for key, value in metadata.items()
        if key != b"pandas" and json.dumps(name).encode() in value
    ]
    return [f"the metadata {key!r} are kept, and may tell a former type of {name}" for key in keys]


def _metadata(
    metadata: Mapping[bytes, bytes] | None,
    changed: Mapping[str, Any],
    gone: Collection[str],
    *,
    dropped: bool,
) -> dict[bytes, bytes] | None:
    """Return a schema's metadata, its part for pandas with what has changed.

    Parameters
    ----------
    changed : mapping of str to pyarrow.Array
        Columns of another type, or other categories, with their values.
    gone : collection of str
        Columns that are left out.
    dropped : bool
        Whether records were left out: an index that counts them is then none.
    """
    import pyarrow as pa

    metadata = dict(metadata or {})
    if gone:  # what other programs keep there names columns, and may list their values
        metadata = {k: v for k, v in metadata.items() if k == b"pandas"}
    if b"pandas" not in metadata:
        return metadata or None
    try:
        described = json.loads(metadata[b"pandas"])
        described["columns"] = [
            entry
            for entry in described["columns"]
            if entry.get("field_name", entry["name"]) not in gone
        ]
        described["index_columns"] = [
            i for i in described["index_columns"] if not isinstance(i, str) or i not in gone
        ]
        for entry in described["columns"]:
            name = entry.get("field_name", entry["name"])
            if name in changed:
                frame = pa.table({name: changed[name]}).to_pandas()
                schema = pa.Table.from_pandas(frame, preserve_index=False).schema
                new = json.loads(schema.metadata[b"pandas"])["columns"][0]
                entry |= {k: new[k] for k in ("pandas_type", "numpy_type", "metadata")}
        if dropped:
            described["index_columns"] = [
                i for i in described["index_columns"] if not isinstance(i, dict)
            ]
        metadata[b"pandas"] = json.dumps(described).encode()
    except (KeyError, ValueError, TypeError, AttributeError):  # not of pandas' own making
        del metadata[b"pandas"]
    return metadata


def _unnamed(
    schema: Any, key: Collection[str], names: Callable[[str], bool]
) -> tuple[Any, list[str]]:
    """Return a schema without metadata, its own and of fields, that name values of the key."""
    import pyarrow as pa

    gone: list[str] = []

    def kept(metadata: Mapping[bytes, bytes] | None, of_key: bool) -> dict[bytes, bytes] | None:
        left = dict(metadata or {})
        for key, value in (metadata or {}).items():
            if key == b"pandas":  # its columns are described anew; what a user attached is not
                described = json.loads(value)
                attached = described.pop("attributes", None)
                if attached and names(json.dumps(attached, ensure_ascii=False)):
                    gone.append("pandas: attributes")
                    left[key] = json.dumps(described).encode()
            elif (of_key and key.startswith(_POLARS)) or names(value.decode(errors="replace")):
                gone.append(key.decode(errors="replace"))
                del left[key]
        return left or None

    fields = [field.with_metadata(kept(field.metadata, field.name in key)) for field in schema]
    return pa.schema(fields, kept(schema.metadata, False)), list(dict.fromkeys(gone))
