"""How a sheet of a workbook looks, and what a reader of its values would lose."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import iterparse

from cvxprivacy.errors import InputError
from cvxprivacy.extras import required

__all__ = [
    "Look", "look_of", "refuse_large", "refuse_lost", "refuse_lost_of_ods", "shows_numbers",
]  # fmt: skip

_STYLES = ("font", "fill", "border", "alignment", "number_format")
_CELL = re.compile(rb"<(?:\w+:)?c\b([^>]*?)(?:/>|>(.*?)</(?:\w+:)?c>)", re.DOTALL)
_FORMULA = re.compile(rb"<(?:\w+:)?f\b")
_STORED = re.compile(rb"<(?:\w+:)?v\b[^>]*>([^<]+)<")
_EMPTY = re.compile(rb'\bt="str"[^>]*>.*<(?:\w+:)?v\b', re.DOTALL)  # a stored text, of no letters
_WIDTHS = re.compile(rb"<(?:\w+:)?col\b([^>]*?)/?>")
_BOOK = re.compile(r"xl/workbook\d*\.xml")
_SHEET = re.compile(r"xl/worksheets/[^/]*\.xml")
_PLACE = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{1,3})(\d+)"')
_INFLATED = 64 << 20, 200  # bytes that may come of any file, and of how many times as few
_SPARSE = 10_000_000, 20  # cells of any sheet, and of how many times as few that are filled
_ATTRIBUTE = re.compile(rb'(\w+)="([^"]*)"')
_LITERAL = re.compile(r'"[^"]*"|\\.|[_*].|\[[^\]]*\]|general|e[+-]', re.IGNORECASE)
_PLAIN = "values alone, in one sheet: formats, formulas, comments and other sheets are not in it"
_KEPT = (
    "values alone, in one sheet with its name, widths, number formats and the style of its header: "
    "formulas, comments and other sheets are not in it, as they may hold what is confidential"
)


@dataclass(frozen=True)
class Look:
    """How a sheet looks; rows and columns are counted from the header and the first column.

    Attributes
    ----------
    title : str
        The name of the sheet.
    titles : list or None
        What stands in the header; None for the names of the columns.
    widths : list of float or None
        Of each column, where it has one of its own.
    header : list of mapping of str to style
        Of each cell of the header.
    formats : mapping of (row, column) to str
        Number formats, where they are not the general one.
    others : mapping of (row, column) to (str, str)
        Cells that count as empty, with their types in the file: #N/A and the like, and blanks.
    remark : str
        What is to be said of it.
    """

    title: str = "released"
    titles: Sequence[Any] | None = None
    widths: Sequence[float | None] = ()
    header: Sequence[Mapping[str, Any]] = ()
    formats: Mapping[tuple[int, int], str] = field(default_factory=dict)
    others: Mapping[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    remark: str = _PLAIN

    def of(self, titles: Sequence[Any], released: Sequence[bool], records: int) -> Look:
        """Return it with a header, and released columns of one format each, and of no width.

        The format is that of most of their cells: one of its own would tell what a cell was.  A
        width that fits the cells would tell how long the longest of the original is.

        Parameters
        ----------
        titles : sequence
            What stands in the header.
        released : sequence of bool
            Of each column.
        records : int
            Rows below the header.
        """
        formats = {place: shown for place, shown in self.formats.items() if not released[place[1]]}
        for column in (i for i, one in enumerate(released) if one):
            rows = range(1, records + 1)
            counts = Counter(self.formats.get((row, column)) for row in rows)
            usual = max(counts, key=counts.__getitem__, default=None)
            if usual is not None:
                formats |= {(row, column): usual for row in rows}
        others = {place: other for place, other in self.others.items() if not released[place[1]]}
        widths = [None if one else w for w, one in zip(self.widths, released, strict=True)]
        return replace(self, titles=titles, formats=formats, others=others, widths=widths)


def look_of(path: Path, sheet: str, rows: Sequence[int], columns: Sequence[int]) -> Look:
    """Return how a sheet of an ``.xlsx`` file looks.

    Parameters
    ----------
    path : Path
    sheet : str
        Its name.
    rows, columns : sequence of int
        Places of the header and the records, and of the columns, counted from 0.
    """
    openpyxl = required("openpyxl", "files", "writing Excel")
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        place = {row: i for i, row in enumerate(rows)}
        across = {column: i for i, column in enumerate(columns)}
        header: list[dict[str, Any]] = [{} for _ in columns]
        formats, others = {}, {}
        for line in book[sheet].iter_rows():
            for cell in line:
                at = place.get((cell.row or 0) - 1 if hasattr(cell, "row") else -1)
                column = across.get(cell.column - 1) if at is not None else None
                if at is None or column is None:
                    continue
                if at == 0:
                    header[column] = {name: getattr(cell, name) for name in _STYLES}
                    continue
                if cell.number_format != "General":
                    formats[at, column] = cell.number_format
                blank = isinstance(cell.value, str) and cell.value and not cell.value.strip()
                if cell.data_type == "e" or blank:
                    others[at, column] = str(cell.value), "e" if cell.data_type == "e" else "s"
    finally:
        book.close()
    widths: dict[int, float] = {}
    for match in _WIDTHS.finditer(_markup(path, sheet)[0]):
        attributes = {k.decode(): v.decode() for k, v in _ATTRIBUTE.findall(match[1])}
        last = min(int(attributes["max"]), 1 + max(columns, default=0))
        if "width" in attributes:
            widths |= dict.fromkeys(
                range(int(attributes["min"]) - 1, last), float(attributes["width"])
            )
    return Look(
        sheet, None, [widths.get(column) for column in columns], header, formats, others, _KEPT
    )


def shows_numbers(number_format: str) -> bool:
    """Tell a number format of numbers from one of dates or times, whose codes are letters.

    Examples
    --------
    >>> [shows_numbers(code) for code in ("General", "[Red]0.0E+00", "[$-411]e", "yyyy")]
    [True, True, False, False]
    """
    return re.search("[A-Za-z]", _LITERAL.sub("", number_format)) is None


def refuse_large(path: Path) -> None:
    """Refuse a workbook that would not fit into memory, though its file is small.

    Parameters
    ----------
    path : Path

    Raises
    ------
    InputError
        For what inflates to far more than it is, and for a cell far away from all others: readers
        lay out every cell between them.
    """
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        parts, size = archive.infolist(), path.stat().st_size
        inflated, (usual, times) = sum(part.file_size for part in parts), _INFLATED
        if inflated > usual and inflated > times * size:
            problem = f"{path}: {size / 1e6:.3g} MB that inflate to {inflated / 1e6:,.0f} MB"
            remedy = (
                f"{times} times the size is the limit: save the table anew, or export it as .csv"
            )
            raise InputError("table", problem, remedy, value=inflated)
        for part in (part for part in parts if _SHEET.fullmatch(part.filename)):
            _refuse_sparse(path, archive.read(part))


def _refuse_sparse(path: Path, cells: bytes) -> None:
    """Refuse a sheet with a cell far away from all others."""
    across: dict[bytes, int] = {}
    count, left, right, top, bottom, far = 0, 1 << 14, 0, 1 << 20, 0, b""
    for match in _PLACE.finditer(cells):
        letters, row = match[1], int(match[2])
        column = across.get(letters) or across.setdefault(letters, _number(letters))
        if column > right or row > bottom:
            far = letters + match[2]
        left, right = min(left, column), max(right, column)
        top, bottom, count = min(top, row), max(bottom, row), count + 1
    area, (usual, times) = (right - left + 1) * (bottom - top + 1), _SPARSE
    if area > usual and area > times * count:
        problem = f"{path}: {count:,} cells, of which {far.decode()} is far from the others"
        remedy = "delete what is in it and its row and column, and save the workbook"
        raise InputError("table", problem, remedy, value=far.decode())


def _number(letters: bytes) -> int:
    """Return the place of a column of this name, counted from 1."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def refuse_lost(path: Path, sheet: str) -> None:
    """Refuse a sheet with a formula whose value is not in the file, or was never computed.

    Programs that compute nothing store 0 beside their formulas, and ask for all to be computed when
    the workbook is opened; another value beside a formula is one.

    Parameters
    ----------
    path : Path
        Of an ``.xlsx`` file.
    sheet : str
        Its name.

    Raises
    ------
    InputError
        Which names the cell.
    """
    cells, book = _markup(path, sheet)
    if not _FORMULA.search(cells):
        return
    anew = re.search(rb'fullCalcOnLoad="(?:1|true)"', book) is not None
    for match in _CELL.finditer(cells):
        inside = match[2] or b""
        if not _FORMULA.search(inside):
            continue
        stored, address = _STORED.search(inside), dict(_ATTRIBUTE.findall(match[1])).get(b"r", b"?")
        if stored is None and not _EMPTY.search(match[0]):
            raise _lost(path, sheet, address.decode(), "without a stored value")
        if anew and stored is not None and stored[1] == b"0":
            wrong = "of 0 that is to be computed when the workbook is opened (fullCalcOnLoad)"
            raise _lost(path, sheet, address.decode(), wrong)


def refuse_lost_of_ods(path: Path, sheet: str) -> None:
    """Refuse a sheet of an ``.ods`` file with a formula whose value is not in the file.

    Parameters
    ----------
    path : Path
        Of an ``.ods`` file.
    sheet : str
        Its name.

    Raises
    ------
    InputError
        Which names the cell.
    """
    with zipfile.ZipFile(path) as archive, archive.open("content.xml") as content:
        row = column = 0
        inside = False
        for event, node in iterparse(content, events=("start", "end")):
            name = node.tag.rpartition("}")[2]
            attributes = {key.rpartition("}")[2]: value for key, value in node.attrib.items()}
            if name == "table" and event == "start":
                inside, row = attributes.get("name") == sheet, 0
            elif not inside or event == "start":
                column = 0 if name == "table-row" else column
            elif name == "table-row":
                row += int(attributes.get("number-rows-repeated", 1))
                node.clear()
            elif name in ("table-cell", "covered-table-cell"):
                if "formula" in attributes and not _has_value(node, attributes):
                    address = f"{_letters(column)}{row + 1}"
                    raise _lost(path, sheet, address, "without a stored value")
                column += int(attributes.get("number-columns-repeated", 1))


def _has_value(node: Any, attributes: Mapping[str, str]) -> bool:
    """Tell whether a cell of an ``.ods`` file holds what its formula came to."""
    stored = any(name.endswith("value") for name in attributes)
    return stored or attributes.get("value-type") == "string" or any(node.itertext())


def _letters(column: int) -> str:
    """Return what a column, counted from 0, is called in an address."""
    text = ""
    while column >= 0:
        text, column = chr(ord("A") + column % 26) + text, column // 26 - 1
    return text


def _lost(path: Path, sheet: str, address: str, wrong: str) -> InputError:
    problem = f"{path}: {address} of sheet {sheet!r} is a formula {wrong}"
    remedy = "open the workbook in a spreadsheet program and save it, or write values"
    return InputError("table", problem, remedy, value=address)


def _markup(path: Path, sheet: str) -> tuple[bytes, bytes]:
    """Return the XML of a sheet, and that of the workbook."""
    openpyxl = required("openpyxl", "files", "Excel")
    book = openpyxl.load_workbook(path, read_only=True)
    try:
        name = book[sheet]._worksheet_path
    finally:
        book.close()
    with zipfile.ZipFile(path) as archive:
        parts = [part for part in archive.namelist() if _BOOK.fullmatch(part)]
        return archive.read(name), b"".join(map(archive.read, parts))
