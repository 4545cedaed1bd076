"""What tables have in common, in whichever format: its name, types of columns, the release."""

from __future__ import annotations

import gzip
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from cvxprivacy.errors import InputError, UnknownValueError, UnseenValueWarning
from cvxprivacy.extras import nw, pd
from cvxprivacy.tables.engines import python_values
from cvxprivacy.tables.labels import as_label
from cvxprivacy.tables.periods import Periods, periods_of
from cvxprivacy_sdc.formats.dates import ISO, dates_of, in_years, spellings_of
from cvxprivacy_sdc.formats.delimited import CODES, as_numbers

if TYPE_CHECKING:
    from cvxprivacy.release.apply import Places
    from cvxprivacy.release.channel import Channel
    from cvxprivacy_sdc.formats.shuffle import Shuffle

__all__ = [
    "NAMES", "TABS", "Columns", "FramedTable", "Keep", "Progress", "applied", "are_numbers",
    "ending_of", "format_of", "output_format", "packed",
]  # fmt: skip

Columns = Mapping[str, Sequence[Any]]
Keep = Sequence[bool] | None  # which records; all where None
Progress = Callable[[int], object] | None  # is given the number of bytes since it was last called

TABS = (".tsv", ".tab")
ENDINGS = {  # all others are delimited text
    "parquet": (".parquet", ".pq"),
    "excel": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
    "spss": (".sav", ".zsav"),
    "stata": (".dta",),
    "sas": (".sas7bdat", ".xpt"),
}
NAMES = {
    "text": "text", "parquet": "Parquet", "excel": "Excel", "spss": "SPSS", "stata": "Stata",
    "sas": "SAS",
}  # fmt: skip
_MOST = 12  # columns that a note lists
_DAYS = "datetime64[s]"  # from the year 1 to 9999
READ_ONLY = (".xlsm", ".xlsb", ".xls", ".ods", ".sas7bdat")
UNCONVERTED = ("text", "parquet")  # written as what they were read from, and as nothing else


# ---- a frame, and its release ------------------------------------------------------------


class FramedTable:
    """A table whose columns become a pandas frame: numbers if all their cells are, else text.

    Attributes
    ----------
    path : Path
    header : list of str
    size : int
        Bytes of the file, in which progress is counted.
    numbers : sequence of str or None
        The columns that are numbers; None for those whose cells all look so.
    decimal : str or None
        The decimal sign of numbers in text; None for a point, and for a refusal of a column
        that would be numbers with a comma.
    titles : list of str
        What stands above each column, an empty text where nothing does.
    folds : bool
        Whether names that differ in case alone are told apart by a number.
    replaced : sequence of str
        Columns that will be released: what is noted of them while they are read is not read again.
    dropped : sequence of str
        Columns that are not in the released table.
    dropping : mapping
        How these were asked for: ``drop`` or ``keep``, and columns.
    shuffle : Shuffle or None
        The secret order in which records are released; None for that of the file.
    codes : mapping of str to sequence of str, or None
        Texts that are missing in one column, as it was read before; besides, the usual ones are
        wherever a column is else of numbers.  None where the user said what is missing.
    taken : dict of str to dict of str to int
        Which of these were, by column, and how often.
    labels : mapping of str to mapping of value to str
        What the file calls the codes of a column.
    dates : mapping of str to str
        How columns of dates were spelled when the table was read before, for those that could be
        spelled in several ways.
    spelled : dict of str to str
        How they are spelled.
    """

    path: Path
    header: list[str]
    titles: list[str]
    size: int
    numbers: Sequence[str] | None = None
    decimal: str | None = None
    folds = False
    replaced: Sequence[str] = ()
    dropped: Sequence[str] = ()
    dropping: Mapping[str, Sequence[str]] = MappingProxyType({})
    shuffle: Shuffle | None = None
    codes: Mapping[str, Sequence[str]] | None = None
    taken: dict[str, dict[str, int]]
    labels: Mapping[str, Mapping[Any, str]] = MappingProxyType({})
    dates: Mapping[str, str] = MappingProxyType({})
    spelled: dict[str, str]

    @property
    def notes(self) -> list[str]:
        """What is to be said of how it was read: what was taken as missing, and how often."""
        if not self.taken:
            return []
        listed = [
            f"{name} ({', '.join(f'{code} {count:,}' for code, count in of_it.items())})"
            for name, of_it in self.taken.items()
        ]
        text = ", ".join(listed[:_MOST]) + f" and {len(listed) - _MOST} more" * (
            len(listed) > _MOST
        )
        return [f"{self.path.name}: taken as missing where a column is else of numbers "
                f"or dates: {text}; "
                "--na says what is missing instead"]  # fmt: skip

    def frame(
        self,
        names: Sequence[str] | None = None,
        *,
        binned: Mapping[str, Any] = MappingProxyType({}),
        dates: bool = False,
        progress: Progress = None,
    ) -> Any:
        """Return columns as a pandas frame: numbers where they are, else text.

        Parameters
        ----------
        names : sequence of str, optional
            All columns by default.
        binned : mapping of str to bins
            Columns that have to be numbers; or dates, where the bins are calendar intervals.
        dates : bool
            Whether columns of text that are dates are, too.
        progress : callable, optional
            Is given the number of bytes read since it was last called.
        """
        columns = self.columns(names, progress=progress)
        numeric = binned if self.numbers is None else self.numbers
        made = {}
        for name, cells in columns.items():
            if (periods := periods_of(binned.get(name))) is not None:
                made[name] = self._dates(name, cells, periods)
                continue
            made[name] = self._series(name, cells, name in numeric)
            made[name] = self._dated(made[name]) if dates else made[name]
        return pd.DataFrame(made)

    def columns(self, names: Sequence[str] | None = None, *, progress: Progress = None) -> Any:
        """Return whole columns by name: text, numbers or None in each cell."""
        raise NotImplementedError

    def refuse_unwritable(self) -> None:
        """Refuse a table that its own format cannot hold as it is, before any work."""

    def write(self, file: IO[bytes], values: Columns, keep: Keep, progress: Progress) -> list[str]:
        """Write the table with new values in some columns; return what is to be said of it."""
        raise NotImplementedError

    def _series(self, name: str, cells: Sequence[Any], numeric: bool) -> Any:
        """Return a column; one that has to be numeric is refused at its first other cell."""
        values: Any = None
        usual = self.codes is not None and (numeric or self.numbers is None)
        cells = self._without(cells, name, (self.codes or {}).get(name, ()))
        if numeric or self.numbers is None:
            values = self._numbers(cells, strict=not numeric)
            codes = {*CODES}.intersection(cells) if values is None and usual else set()
            if codes and {*cells} - codes - {None}:
                fewer = [None if cell in codes else cell for cell in cells]
                values = self._numbers(fewer, strict=not numeric)
                cells = cells if values is None else self._without(cells, name, [*codes])
            if values is None:
                self._refuse_comma(name, cells, numeric)
        if numeric and values is None:
            row = next(i for i, c in enumerate(cells) if self._numbers([c], strict=False) is None)
            problem = f"column {name!r} has {cells[row]!r}, which is no number"
            remedy = "mend it, or name it as missing (--na)"
            where = f"{self.path.name}, record {row + 1:,}"
            if spellings_of([str(cells[row])]):
                remedy = f"of dates take calendar intervals, such as --bins {name}=year"
            raise InputError(where, problem, remedy, value=cells[row])
        large = [v for v in values or () if isinstance(v, int) and abs(v) > 2**53]
        if values is None or (not numeric and any(abs(v) >= 2**63 for v in large)):
            return pd.Series([None if c is None else str(c) for c in cells], dtype="str")
        kinds = set(map(type, values)) - {type(None)}
        if kinds <= {int} and all(abs(v) < 2**63 for v in large):
            return pd.Series(values, dtype="Int64")
        exact = kinds <= {int, float} and not (large and numeric)
        return pd.Series(values, dtype="Float64" if exact else object)

    def _dates(self, name: str, cells: Sequence[Any], periods: Periods) -> Any:
        """Return a column of dates, or of years; it is refused at its first other cell."""
        cells = self._without(cells, name, (self.codes or {}).get(name, ()))
        texts = list(dict.fromkeys(str(cell) for cell in cells if cell is not None))
        if self.codes is not None and (codes := {*CODES}.intersection(texts)):  # none is a date
            cells = self._without(cells, name, [*codes])
            texts = [text for text in texts if text not in codes]
        if periods.in_years and in_years(texts):
            return pd.Series([None if c is None else int(float(c)) for c in cells], dtype="Int64")
        try:
            spelling, dates = dates_of(texts, periods, self.dates.get(name))
        except InputError as error:
            row = next(i for i, cell in enumerate(cells) if str(cell) == error.value)
            where = f"{self.path.name}, record {row + 1:,}"
            problem = f"column {name!r} has {error.problem}"
            raise InputError(where, problem, error.remedy, value=error.value) from None
        self.spelled[name] = spelling
        return pd.Series([None if c is None else dates[str(c)] for c in cells], dtype=_DAYS)

    def _dated(self, column: Any) -> Any:
        """Return a column of text as dates, if that is what all of it is and can be."""
        if column.dtype != "str":
            return column
        possible = spellings_of(column.dropna().unique())
        if len(possible) != 1:
            return column
        return column.map(*possible.values()).astype(_DAYS)

    def _without(self, cells: Sequence[Any], name: str, codes: Sequence[str]) -> Sequence[Any]:
        """Return cells without texts of missing ones, and note how many these were."""
        counts = Counter(cell for cell in cells if cell in codes) if codes else Counter()
        if not counts:
            return cells
        self.taken[name] = dict(counts)
        return [None if cell in counts else cell for cell in cells]

    def gaps(self, name: str) -> list[str]:
        """Return the texts that were taken as missing in a column."""
        return [*(self.codes or {}).get(name, ()), *self.taken.get(name, ())]

    def _recorded(self, names: Sequence[str]) -> dict[str, Any]:
        """Return what is recorded of how dates are spelled, and of texts missing in one column."""
        spelled = {n: how for n, how in self.spelled.items() if n in names and how != ISO}
        dates = {"dates": spelled} if spelled else {}
        if self.codes is None:
            return dates
        codes = {name: list(dict.fromkeys(self.gaps(name))) for name in names}
        return {**dates, "codes": {name: of_it for name, of_it in codes.items() if of_it}}

    def _numbers(self, cells: Sequence[Any], *, strict: bool) -> Any:
        """Return the numbers that all cells are, or None; those stored as numbers are."""
        if any(isinstance(cell, int | float) for cell in cells):
            if all(isinstance(cell, int | float | None) for cell in cells):
                return cells
            cells = [None if cell is None else str(cell) for cell in cells]
        return as_numbers(cells, strict=strict, decimal=self.decimal or ".")

    def _refuse_comma(self, name: str, cells: Sequence[Any], numeric: bool) -> None:
        """Refuse to guess whether 1,5 is a number or text, where the comma is no delimiter."""
        if self.decimal is not None or getattr(self, "delimiter", ",") == ",":
            return
        if self.codes is not None:  # beside 1,5 and NA, too
            cells = [None if cell in CODES else cell for cell in cells]
        if as_numbers(cells, strict=not numeric, decimal=",") is not None and any(cells):
            row, cell = next((i, c) for i, c in enumerate(cells) if c is not None and "," in c)
            problem = f"column {name!r} has {cell!r}: a number with a decimal comma, or text"
            where = f"{self.path.name}, record {row + 1:,}"
            remedy = "pass --decimal , for numbers, or --decimal . for text"
            raise InputError(where, problem, remedy, value=cell)

    def release(
        self, channel: Channel, file: IO[bytes], used: Sequence[str], seed: int,
        row_id: str | None = None, draw: str = "independent", progress: Progress = None, *,
        frame: Any = None, places: Places | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Write the released table into an open file; return what was done.

        ``used`` are the columns whose missing values leave a record out, if the channel drops
        them.  A released letter that is None, or has None in a column, is written as a missing
        cell there.  ``frame`` are these columns where they were read before, as the channel's
        schema says; ``places`` are the numbers of the outputs where they were drawn before.
        """
        schema = channel.schema
        assert schema is not None
        names = list(dict.fromkeys([*used, *([row_id] if row_id else [])]))
        if self.numbers is None:
            self.numbers = schema.reading.get("numbers")
        self.dates = self.dates or schema.reading.get("dates", {})
        if frame is None:
            self.replaced = schema.key
            frame = self.frame(names, binned=schema.bins)
        frame = frame[names]
        kept = frame.dropna(subset=list(used)) if schema.missing == "drop" else frame
        with applied(self.path, kept.index) as notes:
            how = {"draw": draw} if draw == "balanced" else {}  # sequels are drawn in one way
            if places is None or channel.arbitrary.any():  # of which is said who needs them
                released = channel.apply(kept, seed=seed, row_id=row_id, **how)
            else:
                released = channel._mechanism.replaced(kept, nw.from_native(kept), places)
        before = schema.letters(nw.from_native(kept), schema.key)
        columns = [
            python_values(nw.from_native(released[name], series_only=True)) for name in schema.key
        ]
        after = [as_label(letters) for letters in zip(*columns, strict=True)]
        changed = sum(a != b for a, b in zip(before, after, strict=True))
        replacements: dict[str, list[Any]] = {}
        for name, values in zip(schema.key, columns, strict=True):
            cells = dict(zip(kept.index, values, strict=True))
            replacements[name] = [cells.get(i) for i in frame.index]
        keep = None if len(kept) == len(frame) else frame.index.isin(kept.index).tolist()
        notes += self.write(file, replacements, keep, progress)
        dropped = len(frame) - len(kept)
        return {
            "records": len(kept), "dropped": dropped, "changed": changed, "notes": notes,
        }  # fmt: skip


def are_numbers(column: Any) -> bool:
    """Tell whether a column of a frame was read as numbers, of whichever size."""
    return column.dtype.kind in "iuf" or column.dtype == object


@contextmanager
def applied(path: Path, rows: Sequence[int] | None = None) -> Iterator[list[str]]:
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


# ---- formats, by the endings of files ----------------------------------------------------


def ending_of(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return the ending that tells the format, and whether the file is compressed by gzip.

    Examples
    --------
    >>> ending_of("adult.CSV.gz")
    ('.csv', True)
    """
    file = Path(path)
    if file.suffix.lower() == ".gz":
        return Path(file.stem).suffix.lower(), True
    return file.suffix.lower(), False


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format of a file of this name, one of ``NAMES``; only text may be compressed.

    Examples
    --------
    >>> format_of("survey.sav"), format_of("survey.csv.gz"), format_of("survey")
    ('spss', 'text', 'text')
    """
    ending, compressed = ending_of(path)
    kind = next((name for name, endings in ENDINGS.items() if ending in endings), "text")
    if compressed and kind != "text":
        problem = f"{os.fspath(path)}: {NAMES[kind]} inside gzip"
        raise InputError("table", problem, "decompress it first", value=os.fspath(path))
    return kind


def output_format(path: str | os.PathLike[str], out: str | None) -> str:
    """Return the format in which a table is released as ``out``; one that cannot be is refused.

    Text is released as text and Parquet as Parquet.  Workbooks and the tables of statistical
    packages are released in their own format, as text, as Parquet or as ``.xlsx``.
    """
    original = format_of(path)
    if out is None:
        return original
    wanted, ending = format_of(out), ending_of(out)[0]
    endings = " or ".join(ENDINGS.get(original, ()))
    native = {"excel": ".xlsx", "sas": ".xpt"}.get(original, endings)
    if original in UNCONVERTED and wanted != original:
        problem = f"{out} would hold {NAMES[original]}, as {os.fspath(path)} does"
        raise InputError("--out", problem, "give both the same ending", value=out)
    if original not in UNCONVERTED and wanted not in (original, "text", "parquet", "excel"):
        problem = f"{os.fspath(path)} cannot be written as {NAMES[wanted]}"
        remedy = f"choose {native}, .xlsx, .csv or .parquet"
        raise InputError("--out", problem, remedy, value=out)
    if ending in READ_ONLY:
        problem = f"{ending} is read and not written"
        others = ".csv or .parquet" if native == ".xlsx" else ".xlsx, .csv or .parquet"
        raise InputError("--out", problem, f"choose {native}, {others}", value=out)
    return wanted


@contextmanager
def packed(file: IO[bytes], *, compressed: bool) -> Iterator[IO[bytes]]:
    """Lend the file, or what writes into it through gzip: the same table is the same file."""
    if not compressed:
        yield file
        return
    packing: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0)  # neither time nor name
    with packing:
        yield packing
