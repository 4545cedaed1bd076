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

from cvxprivacy.cli.delimited import DelimitedTable, as_numbers, marked
from cvxprivacy.errors import InputError, UnknownValueError, UnseenValueWarning
from cvxprivacy.tables.frames import cell, plain

if TYPE_CHECKING:
    from cvxprivacy.release.channel import Channel

__all__ = ["ParquetTable", "TextTable", "alike", "open_table"]

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
    given = {k: v for k, v in (reading or {}).items() if v is not None}
    if Path(path).suffix.lower() in PARQUET:
        return ParquetTable(path)
    return TextTable(path, **{k: v for k, v in given.items() if k != "format"})


def alike(
    path: str | os.PathLike[str],
    recorded: Mapping[str, Any],
    given: Mapping[str, Any],
    names: Sequence[str],
) -> Iterator[TextTable | ParquetTable]:
    """Open a file in every way in which it may hold the columns of a table read before.

    A copy may have another delimiter or encoding.  The first way is that of the file's ending or
    mark, or else that of the recorded table; where none has the columns, it alone is tried.

    Parameters
    ----------
    recorded : mapping
        How the table was read.
    given : mapping
        What the user says of this file, which is not guessed; None stands for nothing said.
    """
    told = {k: v for k, v in given.items() if v is not None}
    kinds = {"delimiter": str, "encoding": str, "na": list, "numbers": list}
    known = {k: v for k, v in recorded.items() if k in kinds and isinstance(v, kinds[k])} | told
    suffix = Path(path).suffix.lower()
    delimiters = [*(["\t"] if suffix in TABS else []), known.get("delimiter", ","), *",\t;|"]
    encodings = [*filter(None, [marked(path)]), known.get("encoding", "utf-8"), "utf-8"]
    ways = [
        {**known, "encoding": encoding, "delimiter": delimiter}
        for encoding in dict.fromkeys([told["encoding"]] if "encoding" in told else encodings)
        for delimiter in dict.fromkeys([told["delimiter"]] if "delimiter" in told else delimiters)
    ]
    found = False
    for way in [] if suffix in PARQUET else ways:
        try:
            table = open_table(path, way)
        except InputError:  # no text of this encoding, or no header; said below if there is none
            continue
        if set(names) <= set(table.header):
            found = True
            yield table
    if not found:
        yield open_table(path, ways[0])


class TextTable:
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
        encoding: str = "utf-8",
        na: Sequence[str] = ("",),
        numbers: Sequence[str] | None = None,
    ) -> None:
        if delimiter is None:
            delimiter = "\t" if Path(path).suffix.lower() in TABS else ","
        self.path = Path(path)
        self.text = DelimitedTable(path, delimiter=delimiter, encoding=encoding, na=na)
        self.numbers = numbers

    @property
    def header(self) -> list[str]:
        return self.text.header

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        return {
            "format": "text",
            "delimiter": self.text.delimiter,
            "encoding": self.text.encoding,
            "na": list(self.text.na),
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

        columns: dict[str, Any] = {}
        for name, cells in self.text.columns(names, progress=progress).items():
            told = name in binned if self.numbers is None else name in self.numbers
            values: Any = None
            if told or self.numbers is None:
                values = as_numbers(cells, strict=not told)
            if told and values is None:
                row = next(i for i, c in enumerate(cells) if as_numbers([c], strict=False) is None)
                problem = f"column {name!r} has {cells[row]!r}, which is no number"
                remedy = "mend it, or name it as missing (--na)"
                where = f"{self.path.name}, record {row + 1:,}"
                raise InputError(where, problem, remedy, value=cells[row])
            if values is None or any(isinstance(v, int) and abs(v) >= 2**63 for v in values):
                columns[name] = pd.Series(cells, dtype="str")
            elif any(isinstance(v, float) for v in values):
                columns[name] = pd.Series(values, dtype="Float64")
            else:
                columns[name] = pd.Series(values, dtype="Int64")
        return pd.DataFrame(columns)

    def release(
        self,
        channel: Channel,
        file: IO[bytes],
        *,
        seed: Any,
        row_id: str | None,
        used: Sequence[str],
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Write the released table into an open file; return what was done."""
        coding = channel.coding
        assert coding is not None
        names = list(dict.fromkeys([*used, *([row_id] if row_id else [])]))
        if self.numbers is None and coding.reading.get("format") == "text":
            self.numbers = coding.reading["numbers"]
        frame = self.frame(names, binned=list(coding.bins))
        kept = frame.dropna(subset=list(used)) if coding.missing == "drop" else frame
        try:
            with _noted() as notes:
                released = channel.apply(kept, seed=seed, row_id=row_id)
        except UnknownValueError as error:
            raise _unknown(self.path, error, int(kept.index[error.where])) from None
        before = coding.letters(nw.from_native(kept), coding.key)
        columns = [plain(nw.from_native(released[name], series_only=True)) for name in coding.key]
        after = [cell(letters) for letters in zip(*columns, strict=True)]
        changed = sum(a != b for a, b in zip(before, after, strict=True))
        cells = released[list(coding.key)].reindex(frame.index)
        replacements = {
            name: [
                None if v is None else str(v)
                for v in plain(nw.from_native(cells[name], series_only=True))
            ]
            for name in coding.key
        }
        keep = None if len(kept) == len(frame) else frame.index.isin(kept.index).tolist()
        for chunk in self.text.rewritten(replacements, keep=keep):
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
                pass
            self.connection = duckdb.connect()
            self.relation = _parquet(self.connection, glob.escape(str(path)))
            self.header: list[str] = list(self.relation.columns)
        except (OSError, duckdb.Error) as error:
            said = getattr(error, "strerror", None) or str(error).splitlines()[0]
            remedy = "pass a Parquet file that can be read"
            raise InputError("table", f"{os.fspath(path)!r}: {said}", remedy) from None

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        return {"format": "parquet"}

    def frame(
        self,
        names: Sequence[str] | None = None,
        *,
        binned: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Any:
        """Return the table as a DuckDB relation."""
        return self.relation

    def release(
        self,
        channel: Channel,
        file: IO[bytes],
        *,
        seed: Any,
        row_id: str | None,
        used: Sequence[str],
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Write the released table into an open file; return what was done."""
        import pyarrow.parquet as pq

        assert channel.coding is not None
        relation: Any = self.relation
        records = relation.count("*").fetchall()[0][0]
        if channel.coding.missing == "drop":
            floats = {
                name
                for name, kind in zip(relation.columns, relation.types, strict=True)
                if str(kind) in ("FLOAT", "DOUBLE")
            }
            for name in used:
                quoted = '"' + name.replace('"', '""') + '"'
                rule = f"{quoted} IS NOT NULL"
                relation = relation.filter(
                    rule + (f" AND NOT isnan({quoted})" if name in floats else "")
                )
        kept = 0
        try:
            with _noted() as notes:
                reader = channel.apply(relation, seed=seed, row_id=row_id)
        except UnknownValueError as error:
            raise _unknown(self.path, error, int(error.where)) from None
        with pq.ParquetWriter(file, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                kept += len(batch)
                if progress is not None:
                    progress(self.size * len(batch) // max(records, 1))
        return {"records": kept, "dropped": records - kept, "notes": notes}


def _parquet(connection: Any, pattern: str) -> Any:
    """Return a Parquet file whose floats may be NaN, whatever its statistics say."""
    import duckdb

    try:
        return connection.sql(
            "FROM read_parquet($pattern, can_have_nan = true)", params={"pattern": pattern}
        )
    except duckdb.BinderException:  # an older one, which does not trust the statistics
        return connection.read_parquet(pattern)


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect what is to be said of values that the channel's source never had."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnseenValueWarning)
        yield notes
    for warning in caught:
        if isinstance(warning.message, UnseenValueWarning):
            notes.append(str(warning.message))
        else:
            warnings.warn(warning.message, stacklevel=2)


def _unknown(path: Path, error: UnknownValueError, row: int) -> UnknownValueError:
    """Return the error with the file and the record, counted from 1."""
    remedy = "nothing is written: mend the record, or make a channel from this table"
    where = f"{path.name}, record {row + 1:,}"
    return UnknownValueError(where, error.problem, remedy, value=error.value)
