"""Tables in memory, which the library of their format reads as a whole; workbooks are some.

They are released in their own format, or in another: as text, Parquet or a workbook.
"""

from __future__ import annotations

import csv
import io
import os
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import IO, Any

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw, required
from cvxprivacy.tables.engines import python_values
from cvxprivacy.tables.periods import Periods
from cvxprivacy_sdc.formats.delimited import addresses
from cvxprivacy_sdc.formats.framed import (
    TABS,
    Columns,
    FramedTable,
    Keep,
    Progress,
    are_numbers,
    ending_of,
    format_of,
    packed,
)
from cvxprivacy_sdc.formats.sheet import (
    Look,
    look_of,
    refuse_large,
    refuse_lost,
    refuse_lost_of_ods,
    shows_numbers,
)
from cvxprivacy_sdc.formats.shuffle import in_order

__all__ = ["MemoryTable", "Workbook", "plain"]


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
    if isinstance(value, timedelta):
        return str(value)
    return value if isinstance(value, float) and abs(value) >= 2.0**63 else _textual(value)


def _textual(value: Any) -> Any:
    """Return a cell as text files hold it: whole numbers as integers, ISO 8601."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date | time) else value


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
        self.titles = [self._title(name) for name in self.header]
        self.size = self.path.stat().st_size
        self.na = tuple(options.get("na", ("",)))
        self.numbers = options.get("numbers")
        self.codes, self.taken = options.get("codes"), {}
        self.dates, self.spelled = options.get("dates") or {}, {}
        self.options, self.out, self.written = options, out, written

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        numbers = [n for n in names if are_numbers(frame[n])]
        more = self._recorded(names)
        return {"format": self.format, "na": list(self.na), "numbers": numbers, **more}

    def columns(
        self, names: Sequence[str] | None = None, *, progress: Progress = None
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

    def write(self, file: IO[bytes], values: Columns, keep: Keep, progress: Progress) -> list[str]:
        """Write the released table in the format of its name."""
        rows: Sequence[int] = range(len(self.cells[self.header[0]]))
        rows = in_order(self.shuffle, [i for i in rows if keep is None or keep[i]])
        new = {}
        for name, column in values.items():
            stored = self._stored(name)
            new[name] = [stored.get(column[i], column[i]) for i in rows]
        if self.written == self.format and self.written != "excel":
            notes = self.write_native(file, new, rows)
        else:
            shown = {}
            for name, cells in self.cells.items():
                if name in self.dropped:
                    continue
                show = self._shown(name)
                shown[name] = [show(v) for v in new.get(name) or [cells[i] for i in rows]]
            assert self.out is not None
            look = self._look(rows, new) if self.written == "excel" else None
            titles = {name: self._title(name) for name in shown}
            notes = _write_converted(file, self.out, shown, self.options, titles, look)
            notes = [*self.remarks, *notes, *self.left_behind()]
        if progress is not None:
            progress(self.size)
        return [f"{Path(self.out or '').name}: {note}" for note in notes]

    def _stored(self, name: str) -> dict[Any, Any]:
        """Return the cell that stands for each value of a column most often.

        It is the same for all records, and does not tell which of them were kept.
        """
        values = python_values(nw.from_native(self.frame([name])[name], series_only=True))
        kinds = Counter((v, type(c), c) for v, c in zip(values, self.cells[name], strict=True))
        stored = {value: cell for (value, _, cell), _ in reversed(kinds.most_common())}
        return {**stored, None: None}

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

    @property
    def nameless(self) -> Sequence[str]:
        """Columns without a name, which are called by their places."""
        return ()

    def _title(self, name: str) -> str:
        """Return what stands above a column."""
        return name

    @property
    def remarks(self) -> list[str]:
        """What is to be said of columns without names."""
        return [f"column {n[1:]} has no name, and is called {n} here" for n in self.nameless]

    def _look(self, places: Sequence[int], new: Columns) -> Look:
        """Return how a sheet of these records looks, whose columns ``new`` are released."""
        return Look()


# ---- workbooks ---------------------------------------------------------------------------


class Workbook(MemoryTable):
    """One sheet of a workbook (``.xlsx``, ``.xls``, ``.ods``, …), read with python-calamine.

    The first row that is not empty has the names of the columns; one without a name is called by
    its place, ``#1`` for the first.  Rows without any cell are no records.  A formula is its value,
    which the file must have, and an error such as #N/A is missing.

    Parameters
    ----------
    options : mapping
        As of :class:`MemoryTable`; ``sheet`` is taken if the workbook has it.
    sheet : str, optional
        The sheet, which must be there.  By default the only one with cells.

    Raises
    ------
    InputError
        For a file that is no workbook, a sheet that is not there, several sheets to choose from,
        a formula without its value, or one that is far larger than its cells.
    """

    format = "excel"

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, Any],
        sheet: str | None,
        *,
        out: str | None,
        written: str,
    ) -> None:
        calamine = required("python_calamine", "cvxprivacy-sdc[files]", "Excel")
        if written == "excel" and out is not None:
            required("openpyxl", "cvxprivacy-sdc[files]", "writing Excel")  # before any work
        shown = os.fspath(path)
        refuse_large(Path(path))
        try:
            book = calamine.CalamineWorkbook.from_path(shown)
            kinds = {
                m.name: m.typ == calamine.SheetTypeEnum.WorkSheet for m in book.sheets_metadata
            }
            sheets = {n: book.get_sheet_by_name(n) for n in book.sheet_names if kinds.get(n, True)}
            self.sheet = self._chosen(sheets, shown, sheet, options.get("sheet"))
            rows = sheets[self.sheet].to_python()
        except (OSError, calamine.CalamineError) as error:
            problem = f"{shown!r}: {str(error) or type(error).__name__}"
            remedy = "pass a workbook that can be read, without a password"
            raise InputError("table", problem, remedy) from None
        self._titles: dict[str, Any] = {}
        self._across: dict[str, int] = {}
        columns = self._columns(rows, sheets[self.sheet].start, shown)
        super().__init__(path, columns, options, out=out, written=written)
        if self.path.suffix.lower() in (".xlsx", ".xlsm"):
            refuse_lost(self.path, self.sheet)
        elif self.path.suffix.lower() == ".ods":
            refuse_lost_of_ods(self.path, self.sheet)

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        return {**super().reading(names, frame), "sheet": self.sheet}

    @property
    def nameless(self) -> Sequence[str]:
        """Columns without a name, which are called by their places."""
        return [name for name, title in self._titles.items() if plain(title) is None]

    def _title(self, name: str) -> str:
        """Return what stands above a column, which others may have above them, too."""
        return str(_textual(self._titles[name])) if plain(self._titles[name]) is not None else ""

    def _dates(self, name: str, cells: Sequence[Any], periods: Periods) -> Any:
        """Return a column of dates, or of years; numbers that are shown as dates are refused."""
        numbers = {i + 1 for i, cell in enumerate(cells) if isinstance(cell, int | float)}
        if numbers and self.path.suffix.lower() in (".xlsx", ".xlsm"):
            look = look_of(self.path, self.sheet, self._down, [self._across[name]])
            for (row, _), shown in look.formats.items():
                if row in numbers and not shows_numbers(shown):
                    problem = f"column {name!r} has a number that is shown as {shown!r}"
                    remedy = "give it a format of dates, or of numbers if these are years"
                    where = f"{self.path.name}, record {row:,}"
                    raise InputError(where, problem, remedy, value=shown)
        return super()._dates(name, cells, periods)

    def _look(self, places: Sequence[int], new: Columns) -> Look:
        """Return how the sheet looks, of these records; of released columns as most cells do."""
        names = [name for name in self.header if name not in self.dropped]
        titles = [self._titles[name] for name in names]
        if self.path.suffix.lower() not in (".xlsx", ".xlsm"):
            return Look(self.sheet, titles)
        rows = [self._down[0], *(self._down[1 + i] for i in places)]
        look = look_of(self.path, self.sheet, rows, [self._across[name] for name in names])
        return look.of(titles, [name in new for name in names], len(places))

    @staticmethod
    def _chosen(
        sheets: Mapping[str, Any], path: str, typed: str | None, recorded: str | None
    ) -> str:
        """Return the name of the sheet that is the table."""
        names = ", ".join(map(repr, sheets))
        if typed is not None and typed not in sheets:
            remedy = f"choose from {names}"
            raise InputError("sheet", f"{path} has no sheet {typed!r}", remedy, value=typed)
        if typed is not None or recorded in sheets:
            return typed or str(recorded)
        filled = [name for name, sheet in sheets.items() if sheet.total_height]
        if len(filled) > 1:
            problem = f"{path} has the sheets {', '.join(map(repr, filled))}"
            raise InputError("sheet", problem, "pass --sheet NAME")
        if not filled:
            raise InputError("table", f"{path}: no cells", "put the columns' names in row 1")
        return filled[0]

    def _columns(
        self, rows: Sequence[Sequence[Any]], start: tuple[int, int] | None, path: str
    ) -> dict[str, list[Any]]:
        """Return the columns below the first row; what has neither name nor cells is none."""
        if not rows:
            raise InputError("table", f"{path}: no cells", "put the columns' names in row 1")
        header, records, (top, left) = rows[0], list(rows[1:]), start or (0, 0)
        while records and not any(v != "" for v in records[-1]):
            records.pop()
        alone = len(header) == 1  # where an empty row is a record
        filled = [i for i, row in enumerate(records) if alone or any(v != "" for v in row)]
        records = [records[i] for i in filled]
        self._down = [top, *(top + 1 + i for i in filled)]
        try:
            names = addresses(["" if plain(t) is None else str(plain(t)) for t in header])
        except InputError as error:
            raise InputError("table", f"{path}: {error.problem}", error.remedy) from None
        columns: dict[str, list[Any]] = {}
        for i, (name, title) in enumerate(zip(names, header, strict=True)):
            cells = [None if row[i] == "" else row[i] for row in records]
            if plain(title) is None and all(cell is None for cell in cells):
                continue
            columns[name], self._titles[name], self._across[name] = cells, title, left + i
        return columns


# ---- written in another format -----------------------------------------------------------


def _write_converted(
    file: IO[bytes],
    out: str,
    columns: Columns,
    options: Mapping[str, Any],
    titles: Mapping[str, str],
    look: Look | None,
) -> list[str]:
    """Write columns in the format of a name; return what is to be said of it.

    Parameters
    ----------
    columns : mapping of str to sequence
        Numbers, texts, truth values, dates and times, None where a cell is missing.
    options : mapping
        ``delimiter``, ``decimal``, ``encoding`` and ``na`` of text.
    titles : mapping of str to str
        What stands above each column of text.
    look : Look, optional
        How a sheet looks.

    Raises
    ------
    InputError
        For what the format cannot hold.
    """
    kind = format_of(out)
    if kind == "text":
        return _write_text(file, out, columns, options, titles)
    if kind == "parquet":
        return _write_parquet(file, columns)
    return _write_workbook(file, out, columns, look or Look())


def _write_text(
    file: IO[bytes],
    out: str,
    columns: Columns,
    options: Mapping[str, Any],
    titles: Mapping[str, str],
) -> list[str]:
    ending, compressed = ending_of(out)
    decimal, missing = options.get("decimal", "."), options.get("na", ("",))[0]
    usual = "\t" if ending in TABS else ";" if decimal == "," else ","
    delimiter, encoding = options.get("delimiter") or usual, options.get("encoding", "utf-8")
    if len(delimiter) != 1 or delimiter in '"\r\n\0' or delimiter == decimal:
        remedy = "pass one character that is no quote, line end or decimal sign"
        raise InputError("delimiter", repr(delimiter), remedy, value=delimiter)
    if decimal not in (".", ","):
        raise InputError("decimal", repr(decimal), "pass a point or a comma", value=decimal)

    def cell(value: Any) -> str:
        text = missing if value is None else str(_textual(value))
        return text.replace(".", decimal) if isinstance(value, float) else text

    with packed(file, compressed=compressed) as into:
        text = io.TextIOWrapper(into, encoding, newline="")
        rows = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        try:
            rows.writerow(titles[name] for name in columns)
            rows.writerows(zip(*(map(cell, column) for column in columns.values()), strict=True))
            text.flush()
        except UnicodeError as error:
            problem = f"{out} cannot be written in {encoding} ({error})"
            raise InputError("encoding", problem, "leave it out, for UTF-8") from None
        finally:
            text.detach()
    return []


def _write_parquet(file: IO[bytes], columns: Columns) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, column in columns.items():
        values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in column]
        kinds = {type(v) for v in values} - {type(None)}
        if kinds == {int, float}:
            values = [v if v is None else float(v) for v in column]
        elif len(kinds) > 1:
            values = [v if v is None else str(_textual(v)) for v in column]
        arrays[name] = pa.array(values, type=None if kinds else pa.string())
    pq.write_table(pa.table(arrays), file)
    return []


def _write_workbook(file: IO[bytes], out: str, columns: Columns, look: Look) -> list[str]:
    """Write one sheet of values, and see that it reads as what was to be written."""
    openpyxl = required("openpyxl", "cvxprivacy-sdc[files]", "writing Excel")
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils import get_column_letter
    from openpyxl.utils.exceptions import IllegalCharacterError
    from openpyxl.worksheet._writer import WorksheetWriter
    from openpyxl.writer.excel import ExcelWriter

    class Archive(zipfile.ZipFile):
        """An archive that takes a sheet from memory."""

        def write(self, filename: Any, arcname: Any = None, *_: Any, **__: Any) -> None:
            """Write a sheet as a member of this name."""
            self.writestr(arcname, filename.getvalue())

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(look.title)
    for i, width in enumerate(look.widths):
        if width is not None:
            sheet.column_dimensions[get_column_letter(i + 1)].width = width
    # by default it is written to a temporary file, which a killed process would leave
    sheet._writer = WorksheetWriter(sheet, io.BytesIO())
    sheet._writer.cleanup = lambda: None
    sheet._writer.write_top()

    titles = list(columns) if look.titles is None else look.titles

    def cell(value: Any, row: int, column: int) -> Any:
        shown, other = look.formats.get((row, column)), look.others.get((row, column))
        digits = isinstance(value, float) and float(f"{value:.16g}") != value
        if not (isinstance(value, str) or digits) and shown is None and other is None and row:
            return value
        made = WriteOnlyCell(sheet, value)
        if isinstance(value, str):
            made.data_type = "s"  # and no formula, whatever it begins with
        elif digits:  # openpyxl writes 16 of them
            made._value = repr(value)
        if other is not None:
            made.value, made.data_type = other
        if shown is not None:
            made.number_format = shown
        if not row and look.header:
            for name, style in look.header[column].items():
                setattr(made, name, copy(style))
        return made

    try:
        sheet.append([cell(title, 0, i) for i, title in enumerate(titles)])
        for row, values in enumerate(zip(*columns.values(), strict=True)):
            sheet.append([cell(value, row + 1, i) for i, value in enumerate(values)])
        made = io.BytesIO()
        ExcelWriter(book, Archive(made, "w", zipfile.ZIP_DEFLATED)).save()
    except (IllegalCharacterError, ValueError) as error:
        problem = f"{out} cannot hold a value ({type(error).__name__})"
        raise InputError("--out", problem, "choose .csv or .parquet", value=out) from None
    _see_that_it_reads(made, out, columns, titles)
    file.write(made.getvalue())
    return [look.remark]


def _see_that_it_reads(made: io.BytesIO, out: str, columns: Columns, titles: Sequence[Any]) -> None:
    calamine = required("python_calamine", "cvxprivacy-sdc[files]", "Excel")
    made.seek(0)
    book = calamine.CalamineWorkbook.from_filelike(made)
    read = book.get_sheet_by_index(0).to_python(skip_empty_area=False)
    width = len(columns)
    rows = [list(titles), *map(list, zip(*columns.values(), strict=True))]
    for i, row in enumerate(rows):
        again = [*(read[i] if i < len(read) else []), *[""] * width][:width]
        for name, value, other in zip(columns, row, again, strict=True):
            if _as_excel(value) != _as_excel(other):
                where = f"{name!r}, record {i}"
                problem = f"{out} would not hold a value as it is ({where})"
                raise InputError("--out", problem, "choose .csv or .parquet", value=out)


def _as_excel(value: Any) -> Any:
    """Return a value as far as a workbook keeps it: no empty text, and days as dates."""
    if isinstance(value, datetime) and value.time() == time():
        return value.date()
    return None if value == "" else value
