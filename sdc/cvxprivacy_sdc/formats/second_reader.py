"""Tables read a second time, for a second count: by another library than the one that writes them.

A release writes Parquet with Arrow, workbooks with openpyxl and tables of Stata with pyreadstat.
They are read here by DuckDB, calamine and pandas, into rows as delimited text has them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import pd, required
from cvxprivacy_sdc.formats.delimited import addresses
from cvxprivacy_sdc.formats.framed import NAMES, format_of
from cvxprivacy_sdc.formats.parquet import days_of_zone, records_of

__all__ = ["prepared"]

Rows = Iterator[list[Any]]
Reader = Callable[[str, Mapping[str, Any]], Rows]
BATCH = 10_000  # records that DuckDB hands over at a time
_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)")
_ARROW = re.compile(r"u?int[0-9]+|halffloat|float|double|decimal.*")
_MONTHS = {"m": 1, "q": 3, "h": 6}  # of Stata's %tm, %tq and %th


def prepared(document: dict[str, Any], original: str) -> tuple[dict[str, Any], Reader | None]:
    """Return a report as a second count takes it, and what reads its tables.

    Returns
    -------
    document : dict
        The report, whose coding says what is missing and what is a number, as text has it.
    reader : callable or None
        Of a path, and of how it was read, yields the names of the columns and the records, as cells
        of text; None for delimited text, which the second count reads by itself.

    Raises
    ------
    InputError
        For a format that nothing but the library that writes it can read.
    """
    coding = document.get("asked", {}).get("coding", {})
    kind = coding.get("reading", {}).get("format", "text")
    if kind == "text":
        return document, None
    if kind not in _READERS:
        problem = f"{original}: nothing reads {NAMES[kind]} but what writes it"
        raise InputError("--released", problem, "export it as .csv, and release that")
    _refuse_other(original, kind)
    single: list[str] = []
    if kind == "stata":
        single = [*_of_stata(original).select_dtypes("float32")]

    def rows(path: str, _: Mapping[str, Any]) -> Rows:
        _refuse_other(path, kind)
        return _READERS[kind](path, {**coding, "original": original, "single": single})

    if kind != "parquet":
        return document, rows
    _, records, titles = _queried(original, {**coding, "original": original})
    types = zip(addresses(titles, fold=True), records.types, strict=True)
    numbers = [name for name, of in types if _NUMBERS.fullmatch(str(of))]
    import pyarrow.parquet as pq

    bins = dict(coding["bins"])
    for name, field in zip(addresses(titles, fold=True), pq.read_schema(original), strict=True):
        extension = b"ARROW:extension:name" in (field.metadata or {})
        plain = _ARROW.fullmatch(str(getattr(field.type, "value_type", field.type)))
        if name in numbers and isinstance(bins.get(name), str) and (extension or not plain):
            raise ValueError(f"{original}: numbers of {name!r} are {field.type}, and no years")
    coding = {**coding, "reading": {**coding["reading"], "na": [None], "numbers": numbers}}
    return {**document, "asked": {**document["asked"], "coding": coding}}, rows


def _refuse_other(path: str, kind: str) -> None:
    """Refuse a table of another format than the report is of."""
    if format_of(path) != kind:
        problem = f"{path} is no table of {NAMES[kind]}, as the report is of"
        raise InputError("--released", problem, "pass tables of one format", value=path)


def _queried(path: str, coding: Mapping[str, Any]) -> tuple[Any, Any, list[str]]:
    """Return a connection, all records in it, and what the columns are called."""
    import duckdb
    import pyarrow.parquet as pq

    try:
        connection, titles = duckdb.connect(), pq.read_schema(path).names
        days_of_zone(connection, pq.read_schema(coding["original"]), dict(coding["bins"]))
        return connection, records_of(connection, Path(path)), titles
    except duckdb.Error as error:
        raise ValueError(str(error).splitlines()[0]) from None


def _parquet(path: str, coding: Mapping[str, Any]) -> Rows:
    connection, records, titles = _queried(path, coding)
    yield titles
    names = (('"' + name.replace('"', '""') + '"', str(of))
             for name, of in zip(records.columns, records.types, strict=True))  # fmt: skip
    # Python has no nanoseconds
    cells = ", ".join(f"{name}::VARCHAR" if of.endswith("_NS") else name for name, of in names)
    connection.register("records", records)
    connection.execute(f"SELECT {cells} FROM records")
    while batch := connection.fetchmany(BATCH):
        for record in batch:
            yield [None if v is None or v != v else _text(v) for v in record]


def _workbook(path: str, coding: Mapping[str, Any]) -> Rows:
    calamine = required("python_calamine", "cvxprivacy-sdc[files]", "Excel")
    try:
        book = calamine.CalamineWorkbook.from_path(path)
        names, wanted = book.sheet_names, coding["reading"].get("sheet")
        if path != coding["original"] and len(names) > 1:
            raise ValueError(f"{path} has the sheets {names}, and one is released")
        header, *records = book.get_sheet_by_name(
            wanted if wanted in names else names[0]
        ).to_python()
    except (OSError, calamine.CalamineError) as error:
        raise ValueError(f"{path}: {error}") from None
    kept = [i for i, name in enumerate(header) if name != "" or any(r[i] != "" for r in records)]
    while records and not any(v != "" for v in records[-1]):
        records.pop()
    yield [_text(header[i]) for i in kept]
    for record in records:
        if len(header) == 1 or any(v != "" for v in record):
            yield [_text(record[i]) for i in kept]


def _stata(path: str, coding: Mapping[str, Any]) -> Rows:
    """Yield cells: those that are counted with dates, others as they are stored."""
    stored = _of_stata(path, convert_dates=False, convert_missing=True)
    counted = [n for n in (*coding["key"], *coding["sensitive"]) if n in stored]
    numbers = _of_stata(path, columns=counted, convert_dates=False)
    opened: Any = pd.read_stata(path, iterator=True)
    with opened as reader:
        reader.variable_labels()  # which reads the formats, too
        formats = dict(zip(stored.columns, reader._fmtlist, strict=True))
    yield [str(name) for name in stored.columns]
    columns: dict[str, list[str]] = {name: list(map(_text, stored[name])) for name in stored}
    for name in counted:
        cells, kind = numbers[name].tolist(), numbers[name].dtype.kind
        match = re.match("%-?(t.|d)", formats[name]) if kind in "iuf" else None
        unit = match[1][-1] if match else "y"
        if unit not in "ycdwmqh" and isinstance(dict(coding["bins"]).get(name), str):
            raise ValueError(f"{path}: numbers of {name!r} are {formats[name]}, and no years")
        if kind == "f" and unit == "y" and name in coding["single"]:  # 0.7, as it is written
            cells = [float(str(np.float32(v))) for v in cells]
        columns[name] = ["" if v is None or v != v else _stata_text(v, unit) for v in cells]
    yield from map(list, zip(*columns.values(), strict=True))


def _stata_text(value: Any, unit: str) -> str:
    """Return a number as text, or the date that it is; what is outside of the calendar stays."""
    try:
        if unit == "c":
            return str(datetime(1960, 1, 1) + timedelta(milliseconds=value))
        if unit == "d":
            return str(date(1960, 1, 1) + timedelta(days=int(value)))
        if unit == "w":
            years, weeks = divmod(int(value), 52)
            return str(date(1960 + years, 1, 1) + timedelta(weeks=weeks))
        if unit in _MONTHS:
            years, months = divmod(_MONTHS[unit] * int(value), 12)
            return str(date(1960 + years, 1 + months, 1))
    except (OverflowError, ValueError):
        pass
    return _text(value)


def _of_stata(path: str, **how: Any) -> Any:
    """Return a table of Stata with codes in place of their labels."""
    try:
        return pd.read_stata(path, convert_categoricals=False, preserve_dtypes=True, **how)
    except struct.error as error:
        raise ValueError(f"{path}: {error}") from None


_READERS = {"parquet": _parquet, "excel": _workbook, "stata": _stata}


def _text(value: Any) -> str:
    """Return a cell as text holds it: whole numbers without a point, dates as ISO 8601 has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    return str(value).removesuffix(".0")
