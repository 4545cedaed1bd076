"""Tables in memory written in another format than they were read in: text, Parquet, Excel."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime, time
from typing import IO, Any

from cvxprivacy.cli.formats import TABS, ending_of, format_of, imported
from cvxprivacy.errors import InputError

__all__ = ["write_converted"]

Columns = Mapping[str, Sequence[Any]]


def write_converted(
    file: IO[bytes], out: str, columns: Columns, options: Mapping[str, Any]
) -> list[str]:
    """Write columns in the format of a name; return what is to be said of it.

    Parameters
    ----------
    columns : mapping of str to sequence
        Numbers, texts, truth values, dates and times, None where a cell is missing.
    options : mapping
        ``delimiter``, ``decimal``, ``encoding`` and ``na`` of text.

    Raises
    ------
    InputError
        For what the format cannot hold.
    """
    write = {"text": _write_text, "parquet": _write_parquet, "excel": _write_workbook}
    return write[format_of(out)](file, out, columns, options)


def _write_text(
    file: IO[bytes], out: str, columns: Columns, options: Mapping[str, Any]
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

    with ExitStack() as stack:
        into: Any = file
        if compressed:
            into = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        text = io.TextIOWrapper(into, encoding, newline="")
        stack.callback(text.detach)
        rows = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        try:
            rows.writerow(columns)
            rows.writerows(zip(*(map(cell, column) for column in columns.values()), strict=True))
            text.flush()
        except UnicodeError as error:
            problem = f"{out} cannot be written in {encoding} ({error})"
            raise InputError("encoding", problem, "leave it out, for UTF-8") from None
    return []


def _write_parquet(file: IO[bytes], out: str, columns: Columns, _: Any) -> list[str]:
    pa, pq = imported("pyarrow", "Parquet"), imported("pyarrow.parquet", "Parquet")
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


def _write_workbook(file: IO[bytes], out: str, columns: Columns, _: Any) -> list[str]:
    """Write one sheet of values, and see that it reads as what was to be written."""
    openpyxl = imported("openpyxl", "writing Excel")
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("released")

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        made = WriteOnlyCell(sheet, value)
        made.data_type = "s"  # and no formula, whatever it begins with
        return made

    try:
        sheet.append([cell(name) for name in columns])
        for row in zip(*columns.values(), strict=True):
            sheet.append([cell(value) for value in row])
        made = io.BytesIO()
        book.save(made)
    except (IllegalCharacterError, ValueError) as error:
        problem = f"{out} cannot hold a value ({type(error).__name__})"
        raise InputError("--out", problem, "choose .csv or .parquet", value=out) from None
    _see_that_it_reads(made, out, columns)
    file.write(made.getvalue())
    return ["values alone, in one sheet: formats, formulas and other sheets are not in it"]


def _see_that_it_reads(made: io.BytesIO, out: str, columns: Columns) -> None:
    calamine = imported("python_calamine", "Excel")
    made.seek(0)
    book = calamine.CalamineWorkbook.from_filelike(made)
    read = book.get_sheet_by_index(0).to_python(skip_empty_area=False)
    width = len(columns)
    rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    for i, row in enumerate(rows):
        again = [*(read[i] if i < len(read) else []), *[""] * width][:width]
        for name, value, other in zip(columns, row, again, strict=True):
            if _as_excel(value) != _as_excel(other):
                where = f"{name!r}, record {i}"
                problem = f"{out} would not hold a value as it is ({where})"
                raise InputError("--out", problem, "choose .csv or .parquet", value=out)


def _as_excel(value: Any) -> Any:
    """Return a value as far as a workbook keeps it: 16 digits of a number, no empty text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.16g}"
    if isinstance(value, datetime) and value.time() == time():
        return value.date()
    return None if value == "" else value


def _textual(value: Any) -> Any:
    """Return the text of a cell that is no number."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date | time) else value
