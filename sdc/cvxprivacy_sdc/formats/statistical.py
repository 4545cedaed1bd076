"""Tables of SPSS, Stata and SAS, with what these packages know of their variables.

Values are codes and not their labels: codes are what is counted, released and written, and the
labels stay beside them.  Missing are the system's missing value, an empty text, what SPSS
declares as missing, and Stata's ``.a`` to ``.z``; whichever it was, a released missing value is
the system's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from cvxprivacy.errors import InputError
from cvxprivacy.extras import pd, required
from cvxprivacy.files import is_device
from cvxprivacy.tables.periods import Periods
from cvxprivacy_sdc.formats.framed import NAMES, Progress, ending_of, format_of
from cvxprivacy_sdc.formats.memory_table import MemoryTable, plain
from cvxprivacy_sdc.formats.number_formats import NumberFormat, number_format
from cvxprivacy_sdc.formats.storage_types import stored_as

__all__ = ["StatisticalTable"]

_READERS = {
    ".sav": "read_sav", ".zsav": "read_sav", ".dta": "read_dta", ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}  # fmt: skip
_RELEASES = {b"117": 13, b"118": 14, b"119": 15, b"\x73": 12, b"\x72": 10, b"\x71": 8}


class StatisticalTable(MemoryTable):
    """A table of SPSS, Stata or SAS, read with pyreadstat.

    Parameters
    ----------
    options : mapping
        As of :class:`MemoryTable`; ``encoding``, for files that do not tell theirs.

    Raises
    ------
    InputError
        For a file that cannot be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, Any],
        *,
        out: str | None,
        written: str,
    ) -> None:
        self.format = format_of(path)
        self.package = required("pyreadstat", "cvxprivacy-sdc[files]", NAMES[self.format])
        if written == "excel":
            required("openpyxl", "cvxprivacy-sdc[files]", "writing Excel")  # before any work
        self.encoding = options.get("encoding")
        self.data, self.meta = self._read(os.fspath(path), ending_of(path)[0])
        self.labels = self.meta.variable_value_labels
        if not self.meta.column_names:
            problem = f"{os.fspath(path)!r}: no variables"
            raise InputError("table", problem, "pass a table with variables")
        cells = {
            str(name): [None if v is None or v != v else v for v in self.data[name].tolist()]
            for name in self.data.columns
        }
        super().__init__(path, cells, options, out=out, written=written)
        self.declared: dict[str, dict[Any, int]] = {}
        self.wider: list[str] = []

    def reading(self, names: Sequence[str], frame: Any) -> dict[str, Any]:
        """Return how these columns were read, to read another table likewise."""
        coded = {} if self.encoding is None else {"encoding": self.encoding}
        return {**super().reading(names, frame), **coded}

    def _read(self, path: str, ending: str) -> tuple[Any, Any]:
        """Return the cells and what is known of the variables; dates stay numbers."""
        how: dict[str, Any] = {"disable_datetime_conversion": True, "output_format": "pandas"}
        if self.encoding is not None:
            how["encoding"] = self.encoding
        if ending != ".xpt":
            how["user_missing"] = True
        try:
            with Path(path).open("rb"):
                pass
            read = getattr(self.package, _READERS[ending])
            data, meta = read(path, **how)
            letters = [name for name in meta.missing_user_values
                       if meta.readstat_variable_types[name].startswith("int")]  # fmt: skip
            if letters:  # after one, pyreadstat 1.3 reads the system's missing value as 0
                present, _ = read(path, **{**how, "user_missing": False, "usecols": letters})
                for name in letters:
                    texts = data[name].map(lambda v: isinstance(v, str))
                    data[name] = data[name].where(texts | present[name].notna(), float("nan"))
        except MemoryError:
            raise
        except Exception as error:  # the library has its own, and those of decoding
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            kind = NAMES[self.format]
            remedy = f"pass a file of {kind} that can be read; --encoding if its text has another"
            raise InputError("table", f"{path!r}: {reason}", remedy) from None
        return data, meta

    # ---- cells, as they are counted ----------------------------------------------------------

    @property
    def notes(self) -> list[str]:
        """What is to be said of how it was read: which cells the file declares as missing."""
        lines = []
        for name, counts in self.declared.items():
            codes = ", ".join(f"{plain(code)} {count:,}" for code, count in counts.items())
            lines.append(f"{name} ({codes})")
        package, listed = NAMES[self.format], ", ".join(lines)
        words = f"{self.path.name}: {package} declares as missing, and --missing is of: {listed}"
        return [*super().notes, *([words] if lines else [])]

    def columns(
        self, names: Sequence[str] | None = None, *, progress: Progress = None
    ) -> dict[str, list[Any]]:
        """Return whole columns of numbers and texts, None where a cell is missing."""
        columns = super().columns(names, progress=progress)
        for name in columns:
            missing = self._declares(name)
            counts = Counter(filter(missing, self.cells[name])) if missing else Counter()
            self.declared |= {name: dict(sorted(counts.items(), key=str))} if counts else {}
        return columns

    def _plain(self, name: str) -> Any:
        """Return what makes a cell that which is counted: missing if it is declared so."""
        shown, missing = self._shown(name), self._declares(name)
        if missing is None:
            return lambda value: plain(shown(value))
        return lambda value: None if missing(value) else plain(shown(value))

    def _declares(self, name: str) -> Callable[[Any], bool] | None:
        """Return what tells a value that the file declares as missing; None where it does none."""
        ranges, letters = self.meta.missing_ranges.get(name, ()), self._letters(name)
        if not ranges and not letters:
            return None
        return lambda v: v is not None and (v in letters or any(_within(v, of) for of in ranges))

    def _letters(self, name: str) -> Sequence[str]:
        """Return Stata's missing values that a variable of numbers has besides the system's."""
        kind = self.meta.readstat_variable_types.get(name)
        return () if kind == "string" else self.meta.missing_user_values.get(name, ())

    def _format(self, name: str) -> NumberFormat:
        """Return how a variable's numbers are shown; texts are what they look like."""
        if self.meta.readstat_variable_types.get(name) == "string":
            return NumberFormat(plain=True)
        return number_format(self.format, str(self.meta.original_variable_types.get(name) or ""))

    def _dates(self, name: str, cells: Sequence[Any], periods: Periods) -> Any:
        """Return a column of dates, or of years; a format that does not show them is refused."""
        self._format(name).check(self.path.name, name, periods)
        return super()._dates(name, cells, periods)

    def _shown(self, name: str) -> Any:
        """Return what makes the numbers of a date or a time a date or a time, and floats short."""
        single = self.meta.readstat_variable_types.get(name) == "float"
        letters, form = self._letters(name), self._format(name)

        def shown(value: Any) -> Any:
            if value is None or isinstance(value, str):
                return None if value in letters else value
            if single and form.date_of is None:
                import numpy as np

                return float(str(np.float32(value)))
            return form.cell(value)

        return shown

    # ---- cells, as they are written ----------------------------------------------------------

    def write_native(
        self, file: IO[bytes], values: Mapping[str, list[Any]], rows: Sequence[int]
    ) -> list[str]:
        """Write these rows with what is known of the variables, and see that they read so."""
        data = self.data.drop(columns=list(self.dropped)).iloc[list(rows)].reset_index(drop=True)
        changed = []
        for name, column in values.items():
            string = self.meta.readstat_variable_types[name] == "string"
            text = string or any(isinstance(v, str) for v in column)
            changed += [name] if text and not string else []
            cells: Any = column
            if text:  # a number that is a date stands among texts as that date
                shown = map(plain, map(self._shown(name), column))
                cells = ["" if v is None else str(v) for v in shown]
            data[name] = _column(cells, "object" if text else "float64")
        metadata = _metadata(self.meta, changed, self.dropped)
        for name in values:
            self._forget(name, metadata, {*data[name].tolist()})
        integers = {
            name: _column(data[name].tolist(), "Int32")
            for name, kind in self.meta.readstat_variable_types.items()
            if self.format == "stata" and kind.startswith("int") and name in data
            and name not in changed and _are_whole(data[name].tolist())
        }  # fmt: skip
        with self._place(file) as path:
            self._write_and_read(data, integers, path, metadata)
        notes = ["values are codes, and their labels are kept"] if metadata["value_labels"] else []
        if changed:
            texts = ", ".join(changed)
            notes.append(f"now text, without labels of values: {texts}")
        if self.format == "spss" and self.meta.notes:
            notes.append("its notes are copied as they are: read what they tell")
        if self.wider:
            listed = ", ".join(self.wider)
            notes.append(f"stored as long or double, as what is released needs it: {listed}")
        lost = [("multiple response sets", self.meta.mr_sets)]
        lost += [("notes", self.meta.notes if self.format != "spss" else [])]
        return notes + [f"the {what} are not kept" for what, there in lost if there]

    def refuse_unwritable(self) -> None:
        """Refuse names and labels that the format cannot hold, with a table of no records."""
        if self.out is None or self.written != self.format or is_device(self.out):
            return
        data = self.data.drop(columns=list(self.dropped)).head(0)
        metadata = _metadata(self.meta, (), self.dropped)
        with _unnamed(ending_of(self.out)[0]) as path:
            self._write_and_read(data, {}, path, metadata)

    def _write_and_read(
        self, data: Any, integers: Mapping[str, Any], path: str, metadata: dict[str, dict[str, Any]]
    ) -> None:
        """Write a table, some columns as whole numbers, and see that it reads as it is."""
        assert self.out is not None
        ending = ending_of(self.out)[0]
        try:
            self._write_file(data.assign(**integers), path, ending, metadata)
            if self.format == "stata":
                self._store(path, data)
        except Exception as error:  # the library has its own
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise self._unfaithful(f"cannot be written ({reason})") from None
        self._see_that_it_reads(path, ending, data, metadata)

    def _store(self, path: str, data: Any) -> None:
        """Store numbers as the original does, where these types hold what is released."""
        kinds = self.meta.readstat_variable_types
        with Path(path).open("r+b") as file:
            content, stored = stored_as(file.read(), [kinds[name] for name in data.columns])
            file.seek(0)
            file.write(content)
            file.truncate()
        pairs = zip(data.columns, stored, strict=True)
        self.wider = [n for n, kind in pairs if kind in ("int32", "double") and kind != kinds[n]]

    def _forget(self, name: str, metadata: dict[str, dict[str, Any]], there: set[Any]) -> None:
        """Leave out what a released column has of the original alone.

        That is labels of values that no record is released with, but for those that are declared as
        missing; and the width that its longest text had.
        """
        missing, labels = self._declares(name), dict(metadata["value_labels"])
        if name in labels:
            labels[name] = {
                value: label for value, label in labels[name].items()
                if value in there or (missing is not None and missing(value))
            }  # fmt: skip
        metadata["value_labels"] = {n: of for n, of in labels.items() if of}
        if any(isinstance(value, str) for value in there):
            for kind in ("formats", "widths"):
                metadata[kind].pop(name, None)

    @contextmanager
    def _place(self, file: IO[bytes]) -> Iterator[str]:
        """Lend a path of an output, which the library opens by itself: no copy is left anywhere."""
        assert self.out is not None
        if not is_device(self.out):
            yield file.name
            return
        with tempfile.TemporaryFile() as made:  # of a pipe, which has a name with such an ending
            yield f"/proc/self/fd/{made.fileno()}"
            shutil.copyfileobj(made, file)

    def _write_file(
        self, data: Any, path: str, ending: str, metadata: Mapping[str, dict[str, Any]]
    ) -> None:
        meta = self.meta
        same = {
            "file_label": meta.file_label or "",
            "column_labels": metadata["labels"],
            "variable_format": metadata["formats"],
        }
        if self.format == "spss":
            self.package.write_sav(
                data, path, **same, variable_value_labels=metadata["value_labels"],
                missing_ranges=metadata["missing_ranges"], variable_measure=metadata["measures"],
                variable_display_width=metadata["widths"], note=list(meta.notes) or None,
                **({"compress": True} if ending == ".zsav" else {"row_compress": True}),
            )  # fmt: skip
        elif self.format == "stata":
            self.package.write_dta(
                data, path, **same, variable_value_labels=metadata["value_labels"],
                missing_user_values=metadata["missing_letters"], version=_release(self.path),
            )  # fmt: skip
        else:
            self.package.write_xport(data, path, **same, table_name=meta.table_name)

    def _see_that_it_reads(
        self, path: str, ending: str, data: Any, metadata: Mapping[str, dict[str, Any]]
    ) -> None:
        """Refuse a file that does not read as what was to be written."""
        again, meta = self._read(path, ending)
        if list(again.columns) != list(data.columns) or len(again) != len(data):
            raise self._unfaithful("would lack variables or records")
        for name in data.columns:
            pairs = zip(data[name].tolist(), again[name].tolist(), strict=True)
            row = next((i for i, (a, b) in enumerate(pairs) if not _same(a, b)), None)
            if row is not None:
                raise self._unfaithful(f"would change {name!r} of record {row + 1:,}")
        read = _metadata(meta, (), ())
        for kind, words in {
            "labels": "label", "value_labels": "labels of values",
            "missing_ranges": "missing values", "missing_letters": "missing values",
        }.items():  # fmt: skip
            for name, value in metadata[kind].items():
                lost = read[kind].get(name) != value
                if lost and kind == "missing_letters":  # which matter where one stands
                    lost = any(v in value for v in data[name].tolist())
                if lost:
                    raise self._unfaithful(f"would lose the {words} of {name!r}")

    def _unfaithful(self, problem: str) -> InputError:
        remedy = "choose .csv, .parquet or .xlsx"
        return InputError("--out", f"{self.out} {problem}", remedy, value=self.out)

    def left_behind(self) -> list[str]:
        """Return what a table in another format lacks."""
        remarks, dropped = [], {*self.dropped}
        if self.meta.variable_value_labels.keys() - dropped:
            remarks.append("values are codes; their labels are not in it")
        if self.meta.missing_ranges.keys() - dropped:
            remarks.append("codes declared as missing stay where a column is copied")
        return remarks


@contextmanager
def _unnamed(ending: str) -> Iterator[str]:
    """Lend a path of a file in memory, or of one in a folder that goes where there are none."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("names")
        try:
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield os.fspath(Path(folder) / f"names{ending}")


def _column(values: Sequence[Any], dtype: Any) -> Any:
    """Return a column of this type, or as objects where Stata's letters stand among numbers."""
    if dtype != "object" and any(isinstance(v, str) for v in values):
        dtype = "object"
    return pd.Series([None if v is None or v != v else v for v in values], dtype=dtype)


def _are_whole(values: Sequence[Any]) -> bool:
    """Tell whether numbers are whole, and of Stata's long; its letters may stand among them."""
    numbers = [v for v in values if isinstance(v, int | float) and v == v]
    return all(v == int(v) and abs(v) < 2**31 - 30 for v in numbers)


def _within(value: Any, of: Any) -> bool:
    """Tell whether a value is in a range that SPSS declares as missing."""
    if not isinstance(of, Mapping):
        return bool(value == of)
    low, high = of["lo"], of["hi"]
    if isinstance(value, str) != isinstance(low, str):
        return False
    return bool(low <= value <= high)


def _same(one: Any, other: Any) -> bool:
    """Tell whether two cells are the same, missing ones and empty texts among them."""
    gone, empty = (v is None or v == "" or v != v for v in (one, other))
    if gone or empty:
        return gone and empty
    return bool(one == other) and isinstance(one, str) == isinstance(other, str)


def _metadata(
    meta: Any, changed: Sequence[str], dropped: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return what is known of the variables that are kept, less what text has no use for."""
    everything = {
        "labels": {n: label for n, label in meta.column_names_to_labels.items() if label},
        "value_labels": meta.variable_value_labels,
        "missing_ranges": meta.missing_ranges,
        "missing_letters": {n: list(v) for n, v in meta.missing_user_values.items()},
        "measures": meta.variable_measure,
        "widths": meta.variable_display_width,
        "formats": {n: f for n, f in meta.original_variable_types.items() if f},
    }
    return {
        kind: {
            name: value
            for name, value in of.items()
            if name not in dropped and (name not in changed or kind == "labels")
        }
        for kind, of in everything.items()
    }


def _release(path: Path) -> int:
    """Return the version of Stata whose format a file has, as pyreadstat counts them."""
    with path.open("rb") as file:
        start = file.read(80)
    mark = start.partition(b"<release>")[2][:3] if start.startswith(b"<stata_dta>") else start[:1]
    return _RELEASES.get(mark, 14)
