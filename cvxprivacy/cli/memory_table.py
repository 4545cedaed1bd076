"""Tables that the library of their format reads as a whole: workbooks, SPSS, Stata, SAS."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import IO, Any

import narwhals as nw

from cvxprivacy.cli.converted import write_converted
from cvxprivacy.cli.framed import FramedTable, Progress
from cvxprivacy.errors import InputError
from cvxprivacy.tables.engines import python_values

__all__ = ["MemoryTable", "plain"]


def plain(value: Any) -> Any:
    """Return a cell as it is counted: a number or a text, None where it is missing.

    Whole numbers are integers; truth values are TRUE and FALSE; dates and times are text as
    ISO 8601 writes them, with a blank before the time.  That is what text files of the same
    table hold, so that they are counted alike.

    Examples
    --------
    >>> plain(39.0), plain(True), plain(""), plain(date(2026, 11, 21))
    (39, 'TRUE', None, '2026-11-21')
    """
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2.0**63 else value
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    return value


class MemoryTable(FramedTable):
    """A table in memory, with its cells as the library of its format holds them.

    Parameters
    ----------
    path : path
    cells : mapping of str to list
        The columns.  Cells are numbers, texts, truth values, dates or times; None if missing.
    options : mapping
        ``na``: texts of a missing cell besides the empty one; ``numbers``, ``delimiter`` and
        ``decimal`` as of text.
    out : path, optional
        Where the table will be released, in the format ``written``.
    """

    format = ""

    def __init__(
        self,
        path: str | os.PathLike[str],
        cells: Mapping[str, list[Any]],
        options: Mapping[str, Any],
        *,
        out: str | None,
        written: str,
    ) -> None:
        self.path, self.cells = Path(path), dict(cells)
        self.header = list(self.cells)
        self.size = self.path.stat().st_size
        self.na = tuple(options.get("na", ("",)))
        self.numbers = options.get("numbers")
        self.options, self.out, self.written = options, out, written

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        numbers = [n for n in names if frame[n].dtype.kind in "iuf"]
        return {"format": self.format, "na": list(self.na), "numbers": numbers}

    def columns(
        self, names: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> dict[str, list[Any]]:
        """Return whole columns of numbers and texts, None where a cell is missing."""
        columns = {}
        for name in self.header if names is None else names:
            if name not in self.cells:
                remedy = f"choose from {', '.join(map(repr, self.header))}"
                raise InputError(str(self.path), f"no column {name!r}", remedy)
            columns[name] = [
                None if v in self.na else v for v in map(self._plain(name), self.cells[name])
            ]
        if progress is not None:
            progress(self.size)
        return columns

    def _plain(self, name: str) -> Any:
        """Return what makes a column's cells those that are counted."""
        return plain

    def write(
        self,
        file: IO[bytes],
        values: Mapping[str, Sequence[Any]],
        keep: Sequence[bool] | None,
        progress: Progress | None,
    ) -> list[str]:
        """Write the released table in the format of its name."""
        rows = [i for i in range(len(self.cells[self.header[0]])) if keep is None or keep[i]]
        new = {}
        for name, column in values.items():
            stored = self._stored(name)
            new[name] = [stored.get(column[i], column[i]) for i in rows]
        if self.written == self.format and self.written != "excel":
            notes = self.write_native(file, new, rows)
        else:
            shown = {}
            for name, cells in self.cells.items():
                show = self._shown(name)
                shown[name] = [show(v) for v in new.get(name) or [cells[i] for i in rows]]
            assert self.out is not None
            notes = [*write_converted(file, self.out, shown, self.options), *self.left_behind()]
        if progress is not None:
            progress(self.size)
        return [f"{Path(self.out or '').name}: {note}" for note in notes]

    def _stored(self, name: str) -> dict[Any, Any]:
        """Return a cell that stands for each value of a column, the first that does.

        It is the same for all records, and does not tell which of them were kept.
        """
        first: dict[Any, Any] = {}
        counted = python_values(nw.from_native(self.frame([name])[name], series_only=True))
        for value, cell in zip(counted, self.cells[name], strict=True):
            first.setdefault(value, cell)
        first[None] = None
        return first

    def _shown(self, name: str) -> Any:
        """Return what makes a column's cells those of another format."""
        return lambda value: value

    def write_native(
        self, file: IO[bytes], values: Mapping[str, list[Any]], rows: Sequence[int]
    ) -> list[str]:
        """Write these rows in the table's own format; return what is to be said of it."""
        raise NotImplementedError

    def left_behind(self) -> list[str]:
        """Return what a table in another format lacks."""
        return []
