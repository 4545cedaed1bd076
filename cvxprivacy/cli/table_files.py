"""Tables as files: read for counting, and written back with some columns released."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import narwhals as nw

from cvxprivacy.cli.delimited import DelimitedTable, as_numbers
from cvxprivacy.cli.encoded import marked
from cvxprivacy.errors import InputError, UnknownValueError, UnseenValueWarning
from cvxprivacy.tables.engines import python_values
from cvxprivacy.tables.labels import as_label

if TYPE_CHECKING:
    from cvxprivacy.release.channel import Channel

__all__ = ["ParquetTable", "TextTable", "copies", "open_table"]

Progress = Callable[[int], object]

PARQUET, TABS = (".parquet", ".pq"), (".tsv", ".tab")


def open_table(
    path: str | os.PathLike[str], reading: Mapping[str, Any] | None = None
) -> TextTable | ParquetTable:
    """Return a table by its file's name: Parquet, or delimited text.

    Parameters
    ----------
    reading : mapping, optional
        ``delimiter``, ``encoding``, ``na`` and ``numbers`` of a text file, as a table recorded
        them or as the user gives them; None stands for the usual.
    """
    if Path(path).suffix.lower() in PARQUET:
        return ParquetTable(path)
    options = {k: v for k, v in (reading or {}).items() if v is not None and k != "format"}
    return TextTable(path, **options)


def copies(
    path: str | os.PathLike[str],
    recorded: Mapping[str, Any],
    typed: Mapping[str, Any],
    names: Sequence[str],
) -> Iterator[TextTable | ParquetTable]:
    """Open a file in every way in which it may hold the columns of a table read before.

    A copy may have another delimiter or encoding.  The first way is that of the file's ending or
    mark, or else that of the recorded table; where none has the columns, it alone is tried.

    Parameters
    ----------
    recorded : mapping
        How the table was read.
    typed : mapping
        What the user says of this file, which is not guessed; None stands for nothing said.
    """
    typed = {k: v for k, v in typed.items() if v is not None}
    kinds = {"delimiter": str, "encoding": str, "na": list, "numbers": list}
    known = {k: v for k, v in recorded.items() if k in kinds and isinstance(v, kinds[k])} | typed
    suffix = Path(path).suffix.lower()
    delimiters = [*(["\t"] if suffix in TABS else []), known.get("delimiter", ","), *",\t;|"]
    encodings = [*filter(None, [marked(path)]), known.get("encoding", "utf-8"), "utf-8"]
    ways = [
        {**known, "encoding": encoding, "delimiter": delimiter}
        for encoding in dict.fromkeys([typed["encoding"]] if "encoding" in typed else encodings)
        for delimiter in dict.fromkeys([typed["delimiter"]] if "delimiter" in typed else delimiters)
    ]
    opened = False
    for way in [] if suffix in PARQUET else ways:
        try:
            table = open_table(path, way)
        except InputError:  # no text of this encoding, or no header; said below if none is
            continue
        if set(names) <= set(table.header):
            opened = True
            yield table
    if not opened:
        yield open_table(path, ways[0])


class TextTable(DelimitedTable):
    """A delimited text file; a column is numbers if all its cells are.

    Parameters
    ----------
    numbers : sequence of str, optional
        The columns that are numbers; by default those whose cells all look so.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delimiter: str | None = None,
        numbers: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        if delimiter is None:
            delimiter = "\t" if Path(path).suffix.lower() in TABS else ","
        super().__init__(path, delimiter=delimiter, **options)
        self.size, self.numbers = self.path.stat().st_size, numbers

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        return {
            "format": "text",
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "na": list(self.na),
            "numbers": [n for n in names if frame[n].dtype.kind in "iuf"],
        }

    def frame(
        self,
        names: Sequence[str] | None = None,
        *,
        binned: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Any:
        """Return columns as a pandas frame: numbers where they are, else text."""
        import pandas as pd

        columns = self.columns(names, progress=progress)
        numeric = binned if self.numbers is None else self.numbers
        return pd.DataFrame(
            {name: self._series(name, cells, name in numeric) for name, cells in columns.items()}
        )

    def _series(self, name: str, cells: list[str | None], numeric: bool) -> Any:
        """Return a column; one that has to be numeric is refused at its first other cell."""
        import pandas as pd

        values: Any = None
        if numeric or self.numbers is None:
            values = as_numbers(cells, strict=not numeric)
        if numeric and values is None:
            row = next(i for i, c in enumerate(cells) if as_numbers([c], strict=False) is None)
            problem = f"column {name!r} has {cells[row]!r}, which is no number"
            remedy = "mend it, or name it as missing (--na)"
            where = f"{self.path.name}, record {row + 1:,}"
            raise InputError(where, problem, remedy, value=cells[row])
        if values is None or any(isinstance(v, int) and abs(v) >= 2**63 for v in values):
            return pd.Series(cells, dtype="str")
        whole = not any(isinstance(v, float) for v in values)
        return pd.Series(values, dtype="Int64" if whole else "Float64")

    def release(
        self, channel: Channel, file: IO[bytes], used: Sequence[str], seed: int,
        row_id: str | None = None, progress: Progress | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Write the released table into an open file; return what was done.

        ``used`` are the columns whose missing values leave a record out, if the channel drops them.
        """
        schema = channel.schema
        assert schema is not None
        names = list(dict.fromkeys([*used, *([row_id] if row_id else [])]))
        if self.numbers is None and schema.reading.get("format") == "text":
            self.numbers = schema.reading["numbers"]
        frame = self.frame(names, binned=list(schema.bins))
        kept = frame.dropna(subset=list(used)) if schema.missing == "drop" else frame
        with _applied(self.path, kept.index) as notes:
            released = channel.apply(kept, seed=seed, row_id=row_id)
        before = schema.letters(nw.from_native(kept), schema.key)
        columns = [
            python_values(nw.from_native(released[name], series_only=True)) for name in schema.key
        ]
        after = [as_label(letters) for letters in zip(*columns, strict=True)]
        changed = sum(a != b for a, b in zip(before, after, strict=True))
        replacements: dict[str, list[str | None]] = {}
        for name, values in zip(schema.key, columns, strict=True):
            cells = {i: str(v) for i, v in zip(kept.index, values, strict=True) if v is not None}
            replacements[name] = [cells.get(i) for i in frame.index]
        keep = None if len(kept) == len(frame) else frame.index.isin(kept.index).tolist()
        for chunk in self.rewritten(replacements, keep=keep):
            file.write(chunk)
            if progress is not None:
                progress(len(chunk))
        dropped = len(frame) - len(kept)
        return {"records": len(kept), "dropped": dropped, "changed": changed, "notes": notes}


class ParquetTable:
    """A Parquet file, counted by DuckDB and streamed through in Arrow batches."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            import duckdb
            import pyarrow  # noqa: F401
        except ImportError as error:
            remedy = "install them with: pip install 'cvxprivacy[tables]'"
            raise InputError("table", f"Parquet needs {error.name}", remedy) from None
        self.path = Path(path)
        try:
            with self.path.open("rb"):
                self.size = self.path.stat().st_size  # bytes
            self.connection = duckdb.connect()
            self.relation = self.connection.sql(  # floats may be NaN, whatever the statistics say
                "FROM read_parquet($pattern, can_have_nan = true)",
                params={"pattern": glob.escape(str(path))},
            )
            self.header: list[str] = list(self.relation.columns)
        except (OSError, duckdb.Error) as error:
            said = getattr(error, "strerror", None) or str(error).splitlines()[0]
            remedy = "pass a Parquet file that can be read"
            raise InputError("table", f"{os.fspath(path)!r}: {said}", remedy) from None

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        return {"format": "parquet"}

    def frame(self, names: Sequence[str] | None = None, **_: Any) -> Any:
        """Return the table as a DuckDB relation, whatever columns are asked for."""
        return self.relation

    def release(
        self, channel: Channel, file: IO[bytes], used: Sequence[str], seed: int,
        row_id: str | None = None, progress: Progress | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Write the released table into an open file; return what was done."""
        import pyarrow.parquet as pq

        assert channel.schema is not None
        relation: Any = self.relation
        records = relation.count("*").fetchall()[0][0]
        if channel.schema.missing == "drop":
            types = dict(zip(relation.columns, map(str, relation.types), strict=True))
            for name in used:
                quoted = '"' + name.replace('"', '""') + '"'
                nan = f" AND NOT isnan({quoted})" if types[name] in ("FLOAT", "DOUBLE") else ""
                relation = relation.filter(f"{quoted} IS NOT NULL{nan}")
        kept = 0
        with _applied(self.path) as notes:
            reader = channel.apply(relation, seed=seed, row_id=row_id)
        with pq.ParquetWriter(file, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                kept += len(batch)
                if progress is not None:
                    progress(self.size * len(batch) // max(records, 1))
        return {"records": kept, "dropped": records - kept, "notes": notes}


@contextmanager
def _applied(path: Path, rows: Sequence[int] | None = None) -> Iterator[list[str]]:
    """Collect what is to be said of values that the channel's source never had.

    A value that is no input is refused by its record, counted from 1; ``rows`` are the places of
    the records in the file, if some are left out.
    """
    notes: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnseenValueWarning)
            yield notes
    except UnknownValueError as error:
        row = int(error.where if rows is None else rows[error.where])
        remedy = "nothing is written: mend the record, or make a channel from this table"
        where = f"{path.name}, record {row + 1:,}"
        raise UnknownValueError(where, error.problem, remedy, value=error.value) from None
    for warning in caught:
        if isinstance(warning.message, UnseenValueWarning):
            notes.append(str(warning.message))
        else:
            warnings.warn(warning.message, stacklevel=2)
