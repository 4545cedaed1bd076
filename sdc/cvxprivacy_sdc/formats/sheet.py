"""How a sheet of a workbook looks, and what a reader of its values would lose."""

from __future__ import annotations

import io
import re
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError, iterparse
from xml.parsers.expat import ExpatError, ParserCreate

from cvxprivacy.errors import InputError
from cvxprivacy.extras import required

__all__ = [
    "Look", "look_of", "refuse_large", "refuse_lost", "refuse_lost_of_ods", "shows_numbers",
]  # fmt: skip

_STYLES = ("font", "fill", "border", "alignment", "number_format")
_FORMULA = re.compile(rb"[<:]f[\s/>]")
_BOOK = re.compile(r"(.*/)?workbook\d*\.xml", re.IGNORECASE)
_INFLATED = 64 << 20, 200  # bytes that may come of any file, and of how many times as few
_SPARSE = 10_000_000, 20  # cells of any sheet, and of how many times as few that are filled
_BLOCK = 1 << 20
_WITHIN = frozenset({"v", "is", "t", "f"})  # most elements of a sheet, apart from its cells
_BROKEN = (  # what zipfile, expat and openpyxl raise of files that are not as they should be
    *(zipfile.BadZipFile, zlib.error, struct.error, ExpatError, ParseError, EOFError, RuntimeError),
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
)
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
    openpyxl = required("openpyxl", "cvxprivacy-sdc[files]", "writing Excel")
    with (
        _refused_if_broken(path),
        closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book,
    ):
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
        widths = _widths(_markup(path, sheet), max(columns, default=0))
    return Look(
        sheet, None, [widths.get(column) for column in columns], header, formats, others, _KEPT
    )


def _widths(markup: bytes, last: int) -> dict[int, float]:
    """Return the widths that columns have of their own, up to the last one of interest."""
    widths: dict[int, float] = {}
    for _, node in iterparse(io.BytesIO(markup), events=("start",)):
        name = _local(node.tag)
        if name == "sheetData":  # all that follows are cells
            break
        if name == "col" and "width" in node.attrib:
            columns = range(int(node.attrib["min"]) - 1, min(int(node.attrib["max"]), last + 1))
            widths |= dict.fromkeys(columns, float(node.attrib["width"]))
    return widths


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
        For what inflates to far more than it is, for a cell far away from all others, as readers
        lay out every cell between them, and for a broken archive or XML.
    """
    if not zipfile.is_zipfile(path):
        return
    size, (usual, times), inflated = path.stat().st_size, _INFLATED, 0
    with _refused_if_broken(path), zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            cells = _Cells(part.filename)
            for block in _inflated(archive, part):
                inflated += len(block)
                if inflated > max(usual, times * size):
                    problem = f"{path}: {size / 1e6:.3g} MB that inflate to over "
                    problem += f"{max(usual, times * size) / 1e6:,.0f} MB"
                    remedy = f"{times} times the size is the limit: save the table anew, or "
                    raise InputError("table", problem, remedy + "export it as .csv", value=size)
                cells.feed(block)
            cells.refuse(path)


def _inflated(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield all that comes of a part: by the size in its directory, zipfile would stop early."""
    if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{part.filename}: compressed as no workbook is")
    stated, part.file_size, length = part.file_size, sys.maxsize, 0
    with archive.open(part) as file:
        while block := file.read(_BLOCK):
            length += len(block)
            yield block
    if length != stated:
        raise zipfile.BadZipFile(f"{part.filename}: {length:,} bytes, and not {stated:,}")


class _Cells:
    """Where the cells are in a part of a workbook, if it is a sheet, whatever its name is.

    A part that is no XML may be a picture.  It is refused where a reader that takes more for XML
    might find a sheet in it, and so is a DOCTYPE, whose entities could grow without bounds.
    """

    def __init__(self, name: str) -> None:
        self.name, self.wrong = name, ""
        self.must_be_xml = name.lower().endswith((".xml", ".rels")) and "META-INF" not in name
        self.left, self.right, self.top, self.bottom = sys.maxsize, 0, sys.maxsize, 0
        self.count, self.row, self.column, self.digits, self.far = 0, 0, 0, "", (1, 1)
        self.across: dict[str, int] = {}
        self._end = b""
        self._parser = ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._before

    def feed(self, block: bytes, *, final: bool = False) -> None:
        """Read on; what is wrong is kept, as the part may inflate to too much besides."""
        self.must_be_xml |= b"sheetData" in self._end + block
        self._end = block[-8:]
        if self.wrong:
            return
        try:
            self._parser.Parse(block, final)
        except (ExpatError, LookupError, ValueError) as error:
            self.wrong = str(error)

    def refuse(self, path: Path) -> None:
        """Refuse a sheet with a cell far away from all others, and what is no XML but has to be."""
        self.feed(b"", final=True)
        if self.wrong and self.must_be_xml:
            raise ValueError(f"{self.name}: {self.wrong}")
        area, (usual, times) = (self.right - self.left + 1) * (self.bottom - self.top + 1), _SPARSE
        if self.count and area > max(usual, times * self.count):
            far = f"{_letters(self.far[0] - 1)}{self.far[1]}"
            problem = f"{path}: {self.count:,} cells, of which {far} is far from the others"
            remedy = "delete what is in it and its row and column, and save the workbook"
            raise InputError("table", problem, remedy, value=far)

    def _doctype(self, *_: Any) -> None:
        raise ValueError("a DOCTYPE, which workbooks have not")

    def _before(self, tag: str, _: Mapping[str, str]) -> None:
        if _local(tag) == "sheetData":  # else cells of other parts, such as the chain of formulas
            self._parser.StartElementHandler = self._inside

    def _inside(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Note where a cell is: without a place it is beside the last one, or in the next row."""
        if tag in _WITHIN:
            return
        place, name = attributes.get("r"), tag if tag == "c" else _local(tag)
        if name == "c":
            self.count += 1
            if place is None:
                self._reach(self.column + 1, self.row)
                return
            letters = place.rstrip("0123456789")
            self.column = self.across.get(letters) or _number(letters)
            digits = place[len(letters) :]
            if digits != self.digits or letters not in self.across:  # else it is between others
                self.across[letters], self.digits = self.column, digits
                self._reach(self.column, int(digits))
        elif name == "row":
            self.row, self.column = self.row + 1 if place is None else int(place), 0

    def _reach(self, column: int, row: int) -> None:
        """Take a cell into the area of all."""
        self.column = column
        if column > self.right or row > self.bottom:
            self.far = column, row
        self.left, self.right = min(self.left, column), max(self.right, column)
        self.top, self.bottom = min(self.top, row), max(self.bottom, row)


def _number(letters: str) -> int:
    """Return the place of a column of this name, counted from 1."""
    if not re.fullmatch("[A-Za-z]{1,3}", letters):
        raise ValueError(f"a cell in column {letters!r}")
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
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
    with _refused_if_broken(path):
        cells = _markup(path, sheet)
        if not _FORMULA.search(cells):
            return
        anew = _computed_anew(path)
        for _, node in iterparse(io.BytesIO(cells)):
            name = _local(node.tag)
            inside = {_local(child.tag): child.text or "" for child in node} if name == "c" else {}
            if "f" in inside:
                stored, address = inside.get("v"), node.get("r", "?")
                if stored is None or (not stored and node.get("t") != "str"):
                    raise _lost(path, sheet, address, "without a stored value")
                if anew and stored == "0":
                    wrong = "of 0 that is to be computed when the workbook is opened"
                    raise _lost(path, sheet, address, f"{wrong} (fullCalcOnLoad)")
            if name in ("c", "row"):
                node.clear()


def _computed_anew(path: Path) -> bool:
    """Tell whether a workbook asks for its formulas to be computed when it is opened."""
    with zipfile.ZipFile(path) as archive:
        for part in filter(_BOOK.fullmatch, archive.namelist()):
            for _, node in iterparse(io.BytesIO(archive.read(part))):
                asks = _local(node.tag) == "calcPr" and node.get("fullCalcOnLoad")
                if asks in ("1", "true"):
                    return True
    return False


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
    with (
        _refused_if_broken(path),
        zipfile.ZipFile(path) as archive,
        archive.open("content.xml") as content,
    ):
        row = column = 0
        inside = False
        for event, node in iterparse(content, events=("start", "end")):
            name = _local(node.tag)
            attributes = {_local(key): value for key, value in node.attrib.items()}
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


@contextmanager
def _refused_if_broken(path: Path) -> Iterator[None]:
    """Refuse a workbook by its name where its archive or its XML cannot be read."""
    try:
        yield
    except InputError:
        raise
    except _BROKEN as error:
        why = " ".join(str(error).split()) or type(error).__name__
        problem = f"{path}: a broken archive, or broken XML ({why})"
        remedy = "save the workbook anew, without a password, or export the table as .csv"
        raise InputError("table", problem, remedy) from None


def _local(tag: str) -> str:
    """Return a name without its namespace."""
    return tag[max(tag.rfind(":"), tag.rfind("}")) + 1 :]


def _markup(path: Path, sheet: str) -> bytes:
    """Return the XML of a sheet, which the relations of the workbook name."""
    reader = required("openpyxl.reader.excel", "cvxprivacy-sdc[files]", "Excel").ExcelReader(
        path, read_only=True
    )
    with reader.archive as archive:
        reader.read_manifest()
        reader.read_workbook()
        names = {one.name: relation.target for one, relation in reader.parser.find_sheets()}
        return bytes(archive.read(names[sheet]))
