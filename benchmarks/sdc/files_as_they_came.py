"""Release public tables in every format, verify each, and compare what came back with its library.

    python benchmarks/sdc/files_as_they_came.py folder [tables]

The folder has delimited text, at any depth, such as that of Rdatasets or of R's own packages.  Each
table is written as text with names of rows and comments, Parquet of pandas with categories and a
zone, a workbook with formats, SPSS, Stata and SAS with labels; each of these is released, its proof
verified against the file, and every other value, type and label compared.
"""

from __future__ import annotations

import io
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pyreadstat

from cvxprivacy_sdc.commands import main

MOST = 2_000  # records of a table
LEVELS = range(2, 25)  # of a key and of a confidential column


def table_of(path: Path) -> pd.DataFrame | None:
    """Return a table with a key column k and a confidential one w, or None."""
    try:
        frame = pd.read_csv(path, nrows=MOST, index_col=0)
    except (ValueError, UnicodeError):
        return None
    frame.columns = [f"v{i}" for i in range(frame.shape[1])]
    frame.index = frame.index.astype(str)
    levels = [n for n in frame if frame[n].notna().all() and frame[n].nunique() in LEVELS]
    if len(levels) < 2 or len(frame) < 20 or frame.shape[1] > 60:
        return None
    return frame.rename(columns={levels[0]: "k", levels[1]: "w"}).rename_axis(None)


def text(frame: pd.DataFrame, path: Path) -> tuple[str, ...]:
    """Write text with names of rows, a blank line and comments."""
    body = frame.to_csv(quoting=2, lineterminator="\n")
    path.write_text(f'# a table, as "they" come\n\n{body}# its end\n')
    return ("--comment", "#")


def parquet(frame: pd.DataFrame, path: Path) -> tuple[str, ...]:
    """Write what pandas knows: an index, categories, a zone."""
    zone = pd.date_range("2026-03-28", periods=len(frame), freq="h", tz="Europe/Paris")
    frame = frame.assign(when=zone, kind=frame["w"].astype("category"))
    frame.astype({"k": "category"}).to_parquet(path, row_group_size=500, compression="zstd")
    return ()


def workbook(frame: pd.DataFrame, path: Path) -> tuple[str, ...]:
    """Write a sheet with names of rows, formats and widths."""
    with pd.ExcelWriter(path, engine="openpyxl") as book:
        frame.to_excel(book, sheet_name="Data 1")
        sheet = book.sheets["Data 1"]
        sheet.column_dimensions["B"].width = 33
        for cell in sheet["B"][1:]:
            cell.number_format = "0.000"
    return ()


def packages(kind: str) -> Callable[[pd.DataFrame, Path], tuple[str, ...]]:
    """Return what writes a file of a statistical package, with labels."""

    def write(frame: pd.DataFrame, path: Path) -> tuple[str, ...]:
        labels = {name: f"Label of {name}" for name in frame}
        flat = frame.reset_index(names="row").convert_dtypes(dtype_backend="numpy_nullable")
        flat = flat.astype({n: "object" for n in flat if flat[n].dtype == "boolean"})
        getattr(pyreadstat, f"write_{kind}")(flat, path, column_labels=labels)
        return ()

    return write


WRITERS = {
    "csv": text, "parquet": parquet, "xlsx": workbook, "sav": packages("sav"),
    "zsav": packages("sav"), "dta": packages("dta"), "xpt": packages("xport"),
}  # fmt: skip


def difference(before: Path, after: Path) -> str:
    """Return how a released file differs from the original outside of k, as its library sees it."""
    ending = before.suffix[1:]
    if ending == "csv":
        return compared_text(before, after)
    if ending == "parquet":
        files = [pq.ParquetFile(path) for path in (before, after)]
        one, other = (file.schema_arrow for file in files)
        places = [i for i, field in enumerate(one) if field.name != "k"]
        if any(not one.field(i).equals(other.field(i), check_metadata=True) for i in places):
            return "types"
        metadata = [file.metadata for file in files]
        groups = [[m.row_group(i).num_rows for i in range(m.num_row_groups)] for m in metadata]
        frames = [pd.read_parquet(path).drop(columns="k") for path in (before, after)]
        return "" if groups[0] == groups[1] and frames[0].equals(frames[1]) else "values"
    if ending == "xlsx":
        return compared_sheets(before, after)
    readers = {"dta": pyreadstat.read_dta, "xpt": pyreadstat.read_xport}
    read = readers.get(ending, pyreadstat.read_sav)
    (old, metadata), (new, again) = read(before), read(after)
    if metadata.column_names_to_labels != again.column_names_to_labels:
        return "labels"
    kinds = [(m.readstat_variable_types, m.original_variable_types) for m in (metadata, again)]
    if not all(a[n] == b[n] for a, b in zip(*kinds, strict=True) for n in a if n != "k"):
        return "types"
    return "" if old.drop(columns="k").equals(new.drop(columns="k")) else "values"


def compared_text(before: Path, after: Path) -> str:
    """Return how lines differ outside of the key, as pandas sees it, and of comments at all."""
    lines = [path.read_text().splitlines() for path in (before, after)]
    comments = [[line for line in of if line[:1] in ("", "#")] for of in lines]
    frames = [
        pd.read_csv(p, skiprows=2, skipfooter=1, dtype=str, keep_default_na=False, engine="python")
        for p in (before, after)
    ]  # fmt: skip
    same = frames[0].drop(columns="k").equals(frames[1].drop(columns="k"))
    return "" if same and comments[0] == comments[1] else "values"


def compared_sheets(before: Path, after: Path) -> str:
    """Return how cells, their formats, the sheet's name and widths differ outside of the key."""
    one, other = (openpyxl.load_workbook(path) for path in (before, after))
    if one.sheetnames != other.sheetnames:
        return "names"
    (old, new), key = (one.active, other.active), None
    if old.column_dimensions["B"].width != new.column_dimensions["B"].width:
        return "widths"
    for row, again in zip(old.iter_rows(), new.iter_rows(), strict=True):
        key = key or next(i for i, cell in enumerate(row) if cell.value == "k")
        for i, (cell, now) in enumerate(zip(row, again, strict=True)):
            if i == key and cell.row > 1:
                continue
            if cell.value != now.value or cell.number_format != now.number_format:
                return f"{cell.coordinate}: {cell.value!r}, {now.value!r}"
    return ""


def command(*typed: Any) -> tuple[int, str]:
    """Run a command; return its exit code and what it says of an error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(word) for word in typed], prog_name="cvxprivacy")
        except SystemExit as done:
            return int(done.code or 0), err.getvalue() or out.getvalue()
    return 0, ""


def tried(frame: pd.DataFrame, ending: str, folder: Path) -> str:
    """Return what became of a table in one format; "same" where nothing differs."""
    before, after, proof = folder / f"t.{ending}", folder / f"o.{ending}", folder / "p.json"
    try:
        typed = WRITERS[ending](frame, before)
    except Exception as error:
        return f"not written by its library ({type(error).__name__})"
    how = ("--sensitive", "w", "--key", "k", "--budget", "0.1", "--seed", 1, "--no-untouched")
    code, words = command("release", before, *how, *typed, "--out", after, "--certificate", proof)
    if code:
        return f"refused: {words.strip()[:150]}".replace(str(folder), "")
    code, words = command("verify", proof, "--table", before)
    if code:
        return f"not verified: {words.strip()[:150]}"
    unlike = difference(before, after)
    return f"differs: {unlike}" if unlike else "same"


def run() -> None:
    """Try tables in an order drawn by chance; print what became of them."""
    paths = sorted(Path(sys.argv[1]).rglob("*.csv"))
    random.Random(47).shuffle(paths)
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    outcome, tables = Counter[tuple[str, str]](), 0
    for path in paths:
        if tables == wanted:
            break
        if (frame := table_of(path)) is None:
            continue
        tables += 1
        for ending in WRITERS:
            with tempfile.TemporaryDirectory() as folder:
                became = tried(frame, ending, Path(folder))
            outcome[ending, became.partition(":")[0]] += 1
            if became != "same":
                print(path.name, ending, became, flush=True)
    print(f"{tables} tables")
    for (ending, became), count in sorted(outcome.items()):
        print(f"  {ending:<8} {became:<40} {count}")


if __name__ == "__main__":
    run()
