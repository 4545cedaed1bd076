"""Tables as files: read for counting, and written back with some columns released.

Delimited text (``.csv``, ``.tsv``, through gzip too) is written back byte for byte outside the
columns that are released; Parquet is streamed; workbooks and the tables of SPSS, Stata and SAS
are read as a whole (``memory_table``, ``statistical``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import IO, TYPE_CHECKING, Any

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.tables.engines import python_values
from cvxprivacy_sdc.formats.delimited import DelimitedTable, EncodedText, Spelling, marked
from cvxprivacy_sdc.formats.framed import (
    TABS,
    Columns,
    FramedTable,
    Keep,
    Progress,
    are_numbers,
    ending_of,
    format_of,
    output_format,
    packed,
)
from cvxprivacy_sdc.formats.parquet import ParquetTable, in_memory

if TYPE_CHECKING:
    from cvxprivacy_sdc.formats.memory_table import MemoryTable

__all__ = ["ParquetTable", "TextTable", "copies", "in_memory", "open_table"]

_KINDS = {
    "delimiter": str, "encoding": str, "na": list, "numbers": list, "decimal": str, "comment": str,
    "codes": Mapping, "dates": Mapping,
}  # fmt: skip


def open_table(
    path: str | os.PathLike[str],
    reading: Mapping[str, Any] | None = None,
    *,
    recorded: Mapping[str, Any] | None = None,
    out: str | None = None,
) -> TextTable | ParquetTable | MemoryTable:
    """Return a table by its file's name: text, Parquet, a workbook, or SPSS, Stata and SAS.

    Parameters
    ----------
    reading : mapping, optional
        ``delimiter``, ``decimal``, ``encoding``, ``comment``, ``na`` and ``numbers`` of a text file
        and ``sheet`` of a workbook, as the user gives them; None stands for the usual.  What means
        nothing to the format is passed over, since tables of two formats may share it.
    recorded : mapping, optional
        The same as a table recorded them, for what the user does not say.
    out : path, optional
        Where the table will be released: its name tells the format.

    Raises
    ------
    InputError
        For files that cannot be read, and for an ``out`` that this table cannot be written as.
    """
    kind, written = format_of(path), output_format(path, out)
    if kind == "parquet":
        return ParquetTable(path)
    typed = {k: v for k, v in (reading or {}).items() if v is not None}
    options = {k: v for k, v in {**(recorded or {}), **typed}.items() if v is not None}
    if "na" in typed and "codes" not in typed:  # and nothing else is missing
        options.pop("codes", None)
    elif "na" not in options:
        options.setdefault("codes", {})
    if kind == "text":
        other = ending_of(path)[0] in TABS or options.get("decimal") == ","
        if other and "delimiter" not in typed and options.get("delimiter") == ",":  # recorded
            del options["delimiter"]
        return TextTable(path, out=out, **{k: options[k] for k in _KINDS if k in options})
    if kind == "excel":
        from cvxprivacy_sdc.formats.memory_table import Workbook

        return Workbook(path, options, typed.get("sheet"), out=out, written=written)
    from cvxprivacy_sdc.formats.statistical import StatisticalTable

    if (recorded or {}).get("format", kind) != kind and "encoding" not in typed:
        options.pop("encoding", None)  # of a file of another format
    return StatisticalTable(path, options, out=out, written=written)


def copies(
    path: str | os.PathLike[str],
    recorded: Mapping[str, Any],
    typed: Mapping[str, Any],
    names: Sequence[str],
) -> Iterator[TextTable | ParquetTable | MemoryTable]:
    """Open a file in every way in which it may hold the columns of a table read before.

    A copy may have another delimiter, decimal sign or encoding.  The first way is that of the
    file's ending or mark, or else that of the recorded table; where none has the columns, it
    alone is tried.

    Parameters
    ----------
    recorded : mapping
        How the table was read.
    typed : mapping
        What the user says of this file, which is not guessed; None stands for nothing said.
    """
    if format_of(path) != "text":
        kinds = {**_KINDS, "sheet": str, "format": str}
        kept = {k: v for k, v in recorded.items() if k in kinds and isinstance(v, kinds[k])}
        yield open_table(path, typed, recorded=kept)
        return
    typed = {k: v for k, v in typed.items() if v is not None}
    base = {k: v for k, v in recorded.items() if k in _KINDS and isinstance(v, _KINDS[k])} | typed
    if "na" in typed:
        base.pop("codes", None)
    suffix = ending_of(path)[0]
    tried = {
        "encoding": [*filter(None, [marked(path)]), base.get("encoding", "utf-8"), "utf-8"],
        "delimiter": [*(["\t"] if suffix in TABS else []), base.get("delimiter", ","), *",\t;| "],
        "decimal": [base.get("decimal", "."), ".", ","],
    }
    tried |= {name: [typed[name]] for name in tried if name in typed}
    ways = [
        {**base, "encoding": encoding, "delimiter": delimiter, "decimal": decimal}
        for encoding, delimiter, decimal in product(*map(dict.fromkeys, tried.values()))
        if delimiter != decimal or len(tried["delimiter"]) == len(tried["decimal"]) == 1
    ]
    opened = False
    for way in ways:
        try:
            table = open_table(path, way)
        except InputError:  # no text of this encoding, or no header; said below if none is
            continue
        if set(names) <= set(table.header):
            opened = True
            yield table
    if not opened:
        yield open_table(path, ways[0])


class TextTable(DelimitedTable, FramedTable):
    """A delimited text file; a column is numbers if all its cells are.

    Parameters
    ----------
    delimiter : str, optional
        By default a tab for ``.tsv``; else a comma, or the first of semicolon, tab and bar that
        the header has where it has no comma outside quotes, or the blank between quoted names.
        Semicolons if ``decimal`` is a comma.
    numbers : sequence of str, optional
        The columns that are numbers; by default those whose cells all look so.
    decimal : {".", ","}, optional
        By default a point; but where the comma is no delimiter, a column that would be numbers
        with a decimal comma is refused until this is said.
    codes : mapping of str to sequence of str, optional
        Texts that are missing in one column; with it, even an empty one, the usual ones are
        wherever a column is else of numbers.
    dates : mapping of str to str, optional
        How columns of dates are spelled that could be spelled in several ways.
    out : path, optional
        Where the table will be released: through gzip if its name ends in ``.gz``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delimiter: str | None = None,
        numbers: Sequence[str] | None = None,
        decimal: str | None = None,
        codes: Mapping[str, Sequence[str]] | None = None,
        dates: Mapping[str, str] | None = None,
        out: str | None = None,
        **options: Any,
    ) -> None:
        if decimal not in (None, ".", ","):
            raise InputError("decimal", repr(decimal), "pass a point or a comma", value=decimal)
        text = EncodedText(path, options.pop("encoding", "utf-8"))
        if delimiter is None:
            delimiter = _delimiter_of(text, decimal, options.get("comment"))
        if delimiter == decimal:
            problem = f"{decimal!r} is the delimiter, too"
            raise InputError("decimal", problem, "pass another --delimiter", value=decimal)
        ending = "" if out is None else ending_of(out)[0]
        other = ending in (*TABS, ".csv") and ending != ending_of(path)[0]
        if other and (ending in TABS) != (delimiter == "\t"):
            problem = f"{out} would have {delimiter!r} between its fields, as {os.fspath(path)} has"
            raise InputError("--out", problem, "give both the same ending", value=out)
        super().__init__(text, delimiter=delimiter, **options)
        self.codes, self.taken = codes, {}
        self.dates, self.spelled = dates or {}, {}
        self.size, self.numbers, self.decimal = self.path.stat().st_size, numbers, decimal
        self.compressed = out is not None and ending_of(out)[1]

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        return {
            "format": "text",
            "delimiter": self.delimiter,
            "decimal": self.decimal or ".",
            "encoding": self.encoding,
            "na": list(self.na),
            "numbers": [n for n in names if are_numbers(frame[n])],
            **({} if self.comment is None else {"comment": self.comment}),
            **self._recorded(names),
        }

    def write(self, file: IO[bytes], values: Columns, keep: Keep, progress: Progress) -> list[str]:
        """Write the file with new cells in some columns, byte for byte elsewhere.

        A value is written as the column spells it most often: the same in all records, so that it
        does not tell which of them were kept.
        """
        codes = {name: self.gaps(name) for name in values}
        spellings, cells = self.spellings(values, codes), {}
        for name, column in values.items():
            texts = self._texts(name, spellings[name])
            made = {value: texts.get(value, self._cell(value)) for value in dict.fromkeys(column)}
            cells[name] = [made[value] for value in column]
        with packed(file, compressed=self.compressed) as into:
            order = None if self.shuffle is None else self.shuffle.lines
            for chunk in self.rewritten(
                cells, keep=keep, spellings=spellings, without=self.dropped, order=order
            ):
                into.write(chunk)
                if progress is not None:
                    progress(len(chunk))
        notes = [*self.remarks]
        if self.comments:
            notes.append("lines of comment are copied as they are: read what they tell")
        return [f"{self.path.name}: {note}" for note in notes]

    def _texts(self, name: str, spelling: Spelling) -> dict[Any, str]:
        """Return the text by which most records of each value have it."""
        first: list[str] = list(spelling.texts)[::-1]  # of those that are as many, the last one
        texts = sorted(first, key=spelling.texts.__getitem__)
        series = self._series(name, texts, name in (self.numbers or ()))
        return dict(
            zip(python_values(nw.from_native(series, series_only=True)), texts, strict=True)
        )

    def _cell(self, value: Any) -> str | None:
        """Return the text of a released value."""
        if isinstance(value, float | Decimal) and self.decimal == ",":
            return str(value).replace(".", ",")
        return None if value is None else str(value)


def _delimiter_of(text: EncodedText, decimal: str | None, comment: str | None) -> str:
    """Return the delimiter that a file's ending or its header tells."""
    if ending_of(text.path)[0] in TABS:
        return "\t"
    skipped = tuple(filter(None, [comment]))
    line = next((s for s in text.lines() if s.strip() and not s.startswith(skipped)), "")
    usual = ";" if decimal == "," else ","
    if re.fullmatch(r'"[^"]*"( "[^"]*")+\s*', line):  # as R's write.table does
        return " "
    bare = re.sub(r'"[^"]*"', "", line)
    return next((d for d in (usual, *";\t|") if d in bare), usual)
