"""Formats of tables, by the endings of files: which are read, and which of them are written."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

from cvxprivacy.errors import InputError

__all__ = ["ENDINGS", "TABS", "ending_of", "format_of", "imported", "output_format"]

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
READ_ONLY = (".xlsm", ".xlsb", ".xls", ".ods", ".sas7bdat")
UNCONVERTED = ("text", "parquet")  # written as what they were read from, and as nothing else


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


def imported(module: str, kind: str) -> ModuleType:
    """Return a library that reads or writes a kind of file, or say how to install it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        package = module.replace("_", "-")
        remedy = f"install it with: pip install {package}, or pip install 'cvxprivacy[files]'"
        raise InputError("table", f"{kind} needs {package}", remedy) from None
