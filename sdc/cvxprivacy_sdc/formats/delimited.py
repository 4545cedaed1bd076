"""Delimited text, written back byte for byte but for the fields that are released.

A file is read line by line, once it is known that it can be written back as it is.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import IO, Any

from cvxprivacy.errors import InputError

__all__ = [
    "CODES",
    "DelimitedTable",
    "EncodedText",
    "Spelling",
    "addresses",
    "as_numbers",
    "marked",
]

CODES = (  # of missing values, where a column is of numbers but for them
    *("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "Null", "null", "None", "none"),
    *(".", "..", "-", "?", "*"),
)
CHUNK = 1 << 18  # bytes read, or characters written, at a time
LONGEST = 1 << 26  # characters of a line
NAMED = 10_000  # records whose names are looked at, where the header is one field short
MARKS = {  # UTF-32 first: the little-endian mark of UTF-16 begins that of UTF-32
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-8": codecs.BOM_UTF8,
}
INTEGER = re.compile(r"0|-?[1-9][0-9]*")
DECIMAL = re.compile(r"0|-?[1-9][0-9]*|-?(?:0|[1-9][0-9]*)\.[0-9]+")


class DelimitedTable:
    """A delimited text file: read as text, written back byte for byte but for chosen fields.

    The first record with any text is the header.  A column without a name is called by its place,
    ``#1`` for the first; so is the first field of each record where the header is one field short,
    as R's ``write.table`` leaves it; of several with one name, each by its place among them,
    ``note#1`` and ``note#2``.  A field is quoted as a whole, with each quote inside it
    doubled, or has no quote at all.  Lines end in LF, CRLF or CR, mixed at will.  A line of comment
    is no record and is copied, and so is a blank line; only in a table of one column, and between
    the header and a record, is it a record whose cell is empty.

    Parameters
    ----------
    path : EncodedText, or a path
        A byte order mark is copied and is part of no name.
    encoding : str
        As of :class:`EncodedText`.
    delimiter : str
        One character.
    na : sequence of str
        Texts of a missing cell; the first is written where the column has none.
    comment : str, optional
        What a line of comment begins with.

    Attributes
    ----------
    header : list of str
        What the columns are called.
    titles : list of str
        What stands in the header above each.
    remarks : list of str
        What is to be said of columns without names.
    comments : int
        Lines of comment that were seen when it was last read.
    replaced : sequence of str
        Columns that will be rewritten: while they are read it is noted how their cells are written.

    Raises
    ------
    InputError
        Here and while reading: names the file, the line and what is wrong with it.
    """

    replaced: Sequence[str] = ()

    def __init__(
        self,
        path: str | os.PathLike[str] | EncodedText,
        *,
        delimiter: str = ",",
        encoding: str = "utf-8",
        na: Sequence[str] = ("",),
        comment: str | None = None,
    ) -> None:
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n\0':
            remedy = "pass one character other than a quote or a line end, such as ; or a tab"
            raise InputError("delimiter", repr(delimiter), remedy, value=delimiter)
        if isinstance(na, str) or not na or not all(isinstance(token, str) for token in na):
            raise InputError("na", repr(na), "pass at least one text, in a list", value=na)
        if comment is not None and (not comment or set(comment) & {*'"\r\n\0', delimiter}):
            remedy = "pass what lines of comment begin with, such as #, and no delimiter"
            raise InputError("comment", repr(comment), remedy, value=comment)
        self.text = path if isinstance(path, EncodedText) else EncodedText(path, encoding)
        self.path, self.encoding = self.text.path, self.text.encoding
        self.delimiter, self.comment, self.na = delimiter, comment, tuple(na)
        self._fields: dict[str, Counter[str]] = {}  # how often each is in a column, as it stands
        d = re.escape(delimiter)
        self._field = re.compile(rf'{d}("[^"]*(?:""[^"]*)*"|[^"{d}]*)')
        self._special = re.compile(rf'["\r\n{d}]')
        records = self._records()
        _, names, _ = next(records, ("", [], []))
        if not names:
            raise self.text.error("line 1: no header", "put the columns' names in the first line")
        try:
            first: list[str] = next((fields for _, fields, _ in records if fields), [])
        except InputError:  # said when records are wanted: the columns may not be there, either
            first = []
        short = len(first) > len(names)  # by one field: else it is refused
        try:
            self.header = addresses([""] * short + names)
        except InputError as error:
            line = 1 + self._before
            raise self.text.error(f"line {line}: {error.problem}", error.remedy) from None
        self.titles = [""] * short + names
        bare = [f"#{i + 1}" for i, column in enumerate(names) if not column and not short]
        self.remarks = [
            f"column {name[1:]} has no name, and is called {name} here" for name in bare
        ]
        if short:
            self.remarks.append(
                "the header is one field short: the first field of each record is its name, and is "
                "called #1 here"
            )

    def columns(
        self, names: Sequence[str] | None = None, *, progress: Callable[[int], object] | None = None
    ) -> dict[str, list[str | None]]:
        """Return whole columns, None where a cell is missing; equal cells are one object.

        Parameters
        ----------
        names : sequence of str, optional
            All columns by default.
        progress : callable, optional
            Is given the number of bytes read since it was last called.
        """
        wanted = self.header if names is None else names
        columns: dict[str, list[str | None]] = {name: [] for name in wanted}
        plan = [
            (self._index(name), cells.append, dict.fromkeys(self.na).setdefault)
            for name, cells in columns.items()
        ]
        written = {name: Counter[str]() for name in self.replaced if name in columns}
        counters = [(self._index(name), counter) for name, counter in written.items()]
        records = self._records(progress)
        next(records)
        for _, fields, pieces in records:
            if fields:
                for index, append, shared in plan:
                    append(shared(fields[index], fields[index]))
                for index, counter in counters:
                    counter[pieces[index]] += 1
        self._fields |= written
        return columns

    def spellings(
        self, names: Iterable[str], codes: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, Spelling]:
        """Return how the cells of columns are written.

        Parameters
        ----------
        names : iterable of str
            The columns.
        codes : mapping of str to sequence of str, optional
            Texts of a missing cell in one column, besides those in all.
        """
        names = list(names)
        if unread := [name for name in names if name not in self._fields]:
            self.replaced = unread
            self.columns(unread)
        return {
            name: Spelling.of(self._fields[name], [*self.na, *(codes or {}).get(name, ())])
            for name in names
        }

    def rewritten(
        self,
        replacements: Mapping[str, Sequence[str | None]],
        *,
        keep: Sequence[bool] | None = None,
        spellings: Mapping[str, Spelling] | None = None,
        without: Iterable[str] = (),
        order: Callable[[Iterable[tuple[str, bool]]], Iterable[str]] | None = None,
    ) -> Iterator[bytes]:
        """Yield the bytes of the file with new cells in some columns.

        A new cell is quoted if its column's are, or if its text demands it, whatever the old cell
        looked like: else quotes would tell which cells the release has kept.

        Parameters
        ----------
        replacements : mapping of str to sequence of str or None
            One new cell per record; None is written as a missing cell, whatever the old cell was.
        keep : sequence of bool, optional
            Whether each record is written; all are by default.
        spellings : mapping of str to Spelling, optional
            How cells of a column are written.  By default without quotes, a missing one as
            ``na[0]``.
        without : iterable of str
            Columns that are left out.  Where one column is left, blank lines are too: they would
            be records of it.
        order : callable, optional
            Of lines, each with whether it is a record, returns them as they are written; the first
            is the header.
        """
        spellings = spellings or {}
        usual = Spelling()
        sizes = [(repr(name), len(cells)) for name, cells in replacements.items()]
        sizes += [] if keep is None else [("keep", len(keep))]
        plan = [
            (self._index(name), cells, self._forms(name, cells, spellings.get(name, usual)))
            for name, cells in replacements.items()
        ]
        gone = {self._index(name) for name in without}
        alone = len(self.header) - len(gone) == 1 < len(self.header)
        encoder = codecs.getincrementalencoder(self.text.codec)()
        least = min((size for _, size in sizes), default=0)

        def pieces() -> Iterator[tuple[str, bool]]:
            records, count = self._records(), 0
            yield self._header_without(gone, *next(records)), False
            for raw, fields, parts in records:
                text = raw
                if alone and not fields and not self._is_comment(raw):
                    continue
                if (sizes or gone) and fields:
                    count += 1
                    if sizes and (count > least or not (keep is None or keep[count - 1])):
                        continue
                    # of a blank one, quotes: else the last may be a blank line
                    written = ['""'] if parts == [""] else parts.copy()
                    for index, cells, forms in plan:
                        written[index] = forms[cells[count - 1]]
                    if gone:
                        written = [piece for i, piece in enumerate(written) if i not in gone]
                        written = ['""'] if written == [""] else written
                    text = self.delimiter.join(written) + raw[len(raw.rstrip("\r\n")) :]
                    if self._is_comment(text):
                        text = _quoted(written[0]) + text[len(written[0]) :]
                yield text, bool(fields)
            for name, size in sizes:
                if size != count:
                    remedy = "pass one per record, or run again if the file has changed"
                    raise self.text.error(f"{count} records, and {size} entries for {name}", remedy)

        texts, length = [], 0
        yield self.text.mark
        for text in (piece[0] for piece in pieces()) if order is None else order(pieces()):
            texts.append(text)
            length += len(text)
            if length > CHUNK:
                yield encoder.encode("".join(texts))
                texts, length = [], 0
        yield encoder.encode("".join(texts), True)

    def _header_without(
        self, gone: Collection[int], text: str, fields: Sequence[str], pieces: Sequence[str]
    ) -> str:
        """Return what stands before the first record, less the names of columns left out."""
        body = self.delimiter.join(pieces)
        end = len(text.rstrip("\r\n"))
        shift = len(self.header) - len(fields)  # by one where the header is one field short
        kept = [piece for i, piece in enumerate(pieces) if i + shift not in gone]
        if gone and shift and len(kept) == 1 and 0 not in gone:  # which has the look of a full one
            problem = "one name is left above the records' names and a column"
            raise InputError("--drop", problem, "drop #1, too, or keep another column")
        if gone and self._is_comment(self.delimiter.join(kept)):
            kept[0] = _quoted(kept[0])
        return text[: end - len(body)] + self.delimiter.join(kept) + text[end:]

    def _forms(
        self, column: str, cells: Sequence[str | None], spelling: Spelling
    ) -> dict[str | None, str]:
        """Return what stands in the file for each text, and for None."""
        forms: dict[str | None, str] = {}
        for cell in dict.fromkeys(self.na) | dict.fromkeys(cells):
            if cell is None:
                continue
            try:
                if not isinstance(cell, str) or "\0" in cell:
                    raise ValueError
                cell.encode(self.text.codec)
            except ValueError:  # as is UnicodeError
                problem = f"{cell!r} for {column!r} is no text in {self.encoding}"
                remedy = "pass text that can be written, or None for a missing cell"
                raise InputError("replacements", problem, remedy, value=cell) from None
            demanded = self._special.search(cell) or (not cell and len(self.header) == 1)
            forms[cell] = _quoted(cell) if demanded or spelling.quoted else cell
        missing = self.na[0] if spelling.missing is None else spelling.missing
        bare = self._special.search(missing) and not missing.startswith('"')
        forms[None] = (
            _quoted(missing) if bare or (not missing and len(self.header) == 1) else missing
        )
        return forms

    def _index(self, name: str) -> int:
        if name not in self.header:
            remedy = f"choose from {', '.join(map(repr, self.header))}"
            if len(self.header) == 1:
                remedy += f", or pass another --delimiter than {self.delimiter!r}"
            raise self.text.error(f"no column {name!r}", remedy)
        return self.header.index(name)

    def _records(
        self, progress: Callable[[int], object] | None = None
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield the text, its fields, and these as they stand in it; the header comes first.

        A line that is no record has no fields.
        """
        taken: list[str] = []  # lines since the last record
        self._before = self.comments = 0

        def feed() -> Iterator[str]:
            for line in self.text.lines(progress):
                comment = not taken and self._is_comment(line)
                self.comments += comment
                taken.append(line)
                yield "\n" if comment else line

        reader = csv.reader(feed(), delimiter=self.delimiter, strict=True)
        width, blank, before, names = 0, [], "", set[str]()
        count, short = 0, False  # records, and whether the header is one field short of them
        try:
            for fields in reader:
                raw = "".join(taken)
                if not width and not any(fields):
                    before += raw
                    self._before = reader.line_num
                    taken.clear()
                    continue
                if not fields:
                    blank.append(raw)
                    taken.clear()
                    continue
                body = raw.rstrip("\r\n")
                pieces = fields if '"' not in raw else self._field.findall(self.delimiter + body)
                if len(pieces) != len(fields) or self.delimiter.join(pieces) != body:
                    raise csv.Error("a quote inside a field that does not begin with one")
                if width and not count:
                    short = _is_short(width, fields)
                    width += short
                if width and len(fields) != width:
                    number = f"{len(fields)} field{'s' * (len(fields) != 1)}"
                    raise csv.Error(f"{number} where the header has {width - short}")
                if width and short and count < NAMED:
                    if fields[0] in names:
                        raise csv.Error(
                            f"{width} fields where the header has {width - 1}, and the first is no "
                            f"name of a record: {fields[0]!r} is there twice"
                        )
                    names.add(fields[0])
                taken.clear()
                for line in blank:
                    record = width == 1 and not self._is_comment(line)
                    yield (line, [""], [""]) if record else (line, [], [])
                blank.clear()
                count += width > 0
                width = len(fields)
                yield before + raw, fields, pieces
                before = ""
        except csv.Error as error:
            last, problem = reader.line_num, str(error)
            first = last - len(taken) + 1
            if "unexpected end" in problem:
                last, problem = first, "a quote is opened and never closed"
            elif "limit" in problem:
                problem = f"a field of more than {csv.field_size_limit()} characters"
            lines = f"line {last}" if first == last else f"lines {first} to {last}"
            remedy = f"quote a field with a quote or {self.delimiter!r} inside it, and double each "
            raise self.text.error(f"{lines}: {problem}", f"{remedy}quote inside it") from None
        yield from ((line, [], []) for line in blank)

    def _is_comment(self, line: str) -> bool:
        return self.comment is not None and line.startswith(self.comment)


def addresses(titles: Sequence[str], *, fold: bool = False) -> list[str]:
    """Return what each column is called: by its name, or what tells it from others of that name.

    Parameters
    ----------
    titles : sequence of str
        Names in the order of the columns; an empty one is none.
    fold : bool
        Whether names that differ in case alone are to be told apart, too.

    Raises
    ------
    InputError
        Where another column has the name that tells one from others.

    Examples
    --------
    >>> addresses(["age", "note", "", "note"])
    ['age', 'note#1', '#3', 'note#2']
    >>> addresses(["k", "K"], fold=True)
    ['k', 'K#2']
    """
    several, places, names = Counter(titles), Counter[str](), list[str]()
    taken = Counter[str]()
    for i, title in enumerate(titles):
        name = title or f"#{i + 1}"
        places[title] += 1
        if title and several[title] > 1:
            name = f"{title}#{places[title]}"
        elif fold and taken[title.lower()]:
            name = f"{title}#{taken[title.lower()] + 1}"
        taken[title.lower()] += 1
        if name in names or (fold and name.lower() in map(str.lower, names)):
            problem = f"column {i + 1} is the second that is named {name!r}"
            raise InputError("table", problem, "make the names distinct", value=name)
        names.append(name)
    return names


@dataclass(frozen=True)
class Spelling:
    """How the cells of a column are written.

    Attributes
    ----------
    texts : mapping of str to int
        How many cells have each text, in the order of the file.
    quoted : bool
        Whether most cells that are not missing are in quotes.
    missing : str or None
        What stands for a missing cell most often; None where none is missing.
    """

    texts: Mapping[str, int] = field(default_factory=dict)
    quoted: bool = False
    missing: str | None = None

    @classmethod
    def of(cls, fields: Mapping[str, int], na: Sequence[str]) -> Spelling:
        """Return how a column is written.

        Parameters
        ----------
        fields : mapping of str to int
            How often each field is there, as it stands in the file.
        na : sequence of str
            Texts of a missing cell.
        """
        texts, missing, quoted = Counter[str](), Counter[str](), 0
        for piece, count in fields.items():
            text = piece[1:-1].replace('""', '"') if piece.startswith('"') else piece
            if text in na:
                missing[piece] += count
            else:
                texts[text] += count
                quoted += count if piece.startswith('"') else -count
        return cls(texts, quoted > 0, max(missing, key=missing.__getitem__, default=None))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _is_short(width: int, fields: Sequence[str]) -> bool:
    """Tell whether a header of so many fields has none for the names of records.

    One field may be a text with a delimiter in it; an empty last one is a delimiter too many.
    """
    return 1 < width == len(fields) - 1 and fields[-1] != ""


def as_numbers(
    cells: Sequence[str | None], *, strict: bool = True, decimal: str = "."
) -> list[Any] | None:
    """Return the numbers that all cells are, or None if some cell is text.

    They are integers if each cell is written as Python writes integers: 0, 12, -3.  Otherwise they
    are floats if each is such an integer or has one point and digits on both sides (1.50, -0.25),
    and either is 15 digits long at most or is what Python writes for the float, so that unequal
    numbers stay unequal.  007, +1, 1e5, .5, nan and 1,000 are text.

    Parameters
    ----------
    cells : sequence of str or None
        None is missing and stays so.
    strict : bool
        If False, all that Python reads as a finite number is one, blanks around it too; of more
        digits than a float has it is an integer or a decimal.
    decimal : {".", ","}
        The decimal sign.  With a comma, a cell with a point is text.
    """
    bare = {cell: cell if strict else cell.strip() for cell in cells if cell is not None}
    if decimal != ".":
        bare = {c: "." if "." in text else text.replace(decimal, ".") for c, text in bare.items()}
    integral = all(map(INTEGER.fullmatch, bare.values()))
    numbers: dict[str, Any] = {}
    try:
        for cell, text in bare.items():
            numbers[cell] = int(text) if integral else float(text)
            if not integral and not _is_float(text, numbers[cell], strict):
                return None
            if not integral and len(text) > 15 and numbers[cell]:
                from cvxprivacy.tables.labels import canonical  # which loads NumPy

                numbers[cell] = canonical(Fraction(text))
    except ValueError:  # or an integer of more digits than Python converts
        return None
    return [None if cell is None else numbers[cell] for cell in cells]


def _is_float(text: str, value: float, strict: bool) -> bool:
    if not strict:
        return math.isfinite(value) and "_" not in text
    digits = text.lstrip("-0.").replace(".", "")
    return bool(DECIMAL.fullmatch(text)) and (len(digits) <= 15 or repr(value) == text)


# ---- text, its encoding and its mark -----------------------------------------------------


class EncodedText:
    """A text file, its encoding and its byte order mark.

    Parameters
    ----------
    path : path
        A regular file, since it is read several times; it must not change meanwhile.  One that
        ends in ``.gz`` is read through gzip.
    encoding : str
        Any that writes the text back as it was read.

    Attributes
    ----------
    codec : str
        The encoding without its mark, or with the byte order that the mark names.
    mark : bytes
        The byte order mark, or nothing.
    digest : object with ``update``, or None
        Is given the bytes of the file when it is read the next time.

    Raises
    ------
    InputError
        Here and while reading: names the file, the line and what is wrong with it.
    """

    digest: Any = None

    def __init__(self, path: str | os.PathLike[str], encoding: str) -> None:
        try:
            name = codecs.lookup(encoding).name.removesuffix("-sig")
            "".encode(name)  # refuses those that are not of text
            if name in ("idna", "punycode"):  # of domain names
                raise LookupError
        except (LookupError, TypeError, ValueError):
            remedy = "pass a text encoding, such as utf-8, latin-1, cp1252 or utf-16"
            raise InputError("encoding", repr(encoding), remedy, value=encoding) from None
        self.path, self.encoding = Path(path), encoding
        with self._open() as file:
            size = max(CHUNK, 4)  # of which 4 may be a mark
            start, self._stamp = self._read(file, size), _stamp(os.fstat(file.fileno()))
        self._short = len(start) < size
        if not start:
            raise self.error("an empty file", "put the columns' names in the first line")
        self.codec = _mark_of(start) or name
        self.mark = MARKS[self.codec] if _mark_of(start) else b""
        self._start = start[len(self.mark) :]  # kept, so that a header is not read again
        if not self.codec.startswith(name):
            problem = f"it begins with the byte order mark of {self.codec}, not as {encoding}"
            raise self.error(problem, f"pass --encoding {self.codec}")
        if not self.mark and name in ("utf-16", "utf-32"):
            raise self.error("no byte order mark", f"pass --encoding {name}-le or {name}-be")

    def error(self, problem: str, remedy: str) -> InputError:
        """Return an error of the file."""
        return InputError(str(self.path), problem, remedy)

    def lines(self, progress: Callable[[int], object] | None = None) -> Iterator[str]:
        """Yield lines with their ends; ``progress`` is given the number of bytes of each read."""
        decoder = codecs.getincrementaldecoder(self.codec)()
        encoder = codecs.getincrementalencoder(self.codec)("replace")
        count, tail, owed = 0, "", b""  # lines, text without a line end, bytes not written back

        def fault(before: str | bytes, problem: str, remedy: str) -> InputError:
            if isinstance(before, bytes):
                before = before.decode(self.codec, "ignore")
            line = count + len(StringIO(f"{tail}{before}.", newline="").readlines())
            return self.error(f"line {line}: {problem}", remedy)

        for chunk in self._chunks(progress):
            owed += chunk
            try:
                text = decoder.decode(chunk, not chunk)
                copy = encoder.encode(text, not chunk)
            except UnicodeError as error:
                before, problem = b"", f"no {self.encoding} ({error})"  # an escape without end
                if isinstance(error, UnicodeDecodeError):
                    before = error.object[: error.start]
                    problem = f"byte 0x{error.object[error.start]:02x} is not {self.encoding}"
                remedy = "pass the text's own, such as --encoding latin-1; export a binary file"
                raise fault(before, problem, f"{remedy} as text") from None
            if not owed.startswith(copy) or (not chunk and owed != copy):
                pairs = enumerate(zip(owed, copy, strict=False))
                same = next((i for i, (a, b) in pairs if a != b), 0)
                problem = f"{self.encoding} does not write these bytes as they are"
                raise fault(owed[:same], problem, "convert the file to UTF-8")
            owed = owed[len(copy) :]
            if "\0" in text:
                remedy = "export a binary file as text; for UTF-16, pass --encoding utf-16-le"
                raise fault(text[: text.index("\0")], "a NUL character", remedy)
            lines = StringIO(tail + text, newline="").readlines()
            tail = lines.pop() if chunk and lines else ""  # may end with half a CRLF
            if len(tail) > LONGEST:
                remedy = "pass a text file that has line ends"
                raise fault("", f"more than {LONGEST} characters", remedy)
            count += len(lines)
            yield from lines

    def _chunks(self, progress: Callable[[int], object] | None) -> Iterator[bytes]:
        """Yield the bytes after the mark; the last chunk is empty."""
        digest, self.digest = self.digest, None
        if digest is not None:
            digest.update(self.mark + self._start)
        if self._start:
            yield self._start
        if self._short:
            self._refuse_changed(self.path.stat())
            if progress is not None:
                progress(self._stamp[2])
            yield b""
            return
        with self._open() as file:
            chunk, place = self._read(file, len(self.mark + self._start)), 0
            raw = getattr(file, "fileobj", None) or file
            while chunk:
                chunk = self._read(file, CHUNK)
                self._refuse_changed(os.fstat(file.fileno()))
                if digest is not None:
                    digest.update(chunk)
                if progress is not None:  # of a compressed file, of the bytes on the disk
                    progress(raw.tell() - place)
                    place = raw.tell()
                yield chunk

    def _refuse_changed(self, status: os.stat_result) -> None:
        if _stamp(status) != self._stamp:
            raise self.error("changed while it was read", "run again when it is at rest")

    def _read(self, file: IO[bytes], size: int) -> bytes:
        try:
            return file.read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            remedy = "pass a whole gzip file, or drop .gz from its name"
            raise self.error(f"no gzip file that can be read ({error})", remedy) from None

    def _open(self) -> IO[bytes]:
        try:
            if self.path.exists() and not self.path.is_file():
                raise OSError(0, "not a regular file")
            return _opened(self.path)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            remedy = "pass the path of a text file that can be read"
            raise self.error(problem, remedy) from None


def marked(path: str | os.PathLike[str]) -> str | None:
    """Return the encoding that a file's byte order mark names, or None."""
    try:
        with _opened(Path(path)) as file:
            return _mark_of(file.read(4))
    except (OSError, EOFError, zlib.error):  # who reads it will say so
        return None


def _opened(path: Path) -> IO[bytes]:
    """Open a file for reading, through gzip if its name ends so."""
    file: Any = gzip.GzipFile(path) if path.suffix.lower() == ".gz" else path.open("rb")
    return file


def _mark_of(start: bytes) -> str | None:
    return next((name for name, mark in MARKS.items() if start.startswith(mark)), None)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    """Return what changes if the file does."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
