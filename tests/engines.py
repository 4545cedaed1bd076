"""One table as a frame of every engine."""

from __future__ import annotations

import datetime
import math

import narwhals as nw
import numpy as np
import pytest

WHY = "the extra `tables` is not installed"
pd = pytest.importorskip("pandas", reason=WHY)
pl = pytest.importorskip("polars", reason=WHY)
pa = pytest.importorskip("pyarrow", reason=WHY)
duckdb = pytest.importorskip("duckdb", reason=WHY)
dd = pytest.importorskip("dask.dataframe", reason=WHY)

MEMORY, LAZY = ["pandas", "polars", "pyarrow"], ["lazy", "duckdb", "dask"]
KINDS = MEMORY + LAZY
INF, NAN = math.inf, math.nan

TYPES = {
    "int": pa.int64(), "float": pa.float64(), "single": pa.float32(), "bool": pa.bool_(),
    "text": pa.string(), "date": pa.date32(), "time": pa.timestamp("us"),
    "category": pa.dictionary(pa.int8(), pa.string()), "list": pa.list_(pa.int64()),
}  # fmt: skip
PANDAS = {pa.date32(): pd.ArrowDtype(pa.date32())}
NULLABLE = {**PANDAS, pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def made(kind: str, columns: dict, partitions: int = 2):
    """Return a frame of ``{name: (type, values)}``."""
    table = pa.table({n: pa.array(values, TYPES[t]) for n, (t, values) in columns.items()})
    if kind == "pyarrow":
        return table
    if kind == "duckdb":
        return duckdb.connect().from_arrow(table)
    if kind in ("polars", "lazy"):
        return pl.from_arrow(table) if kind == "polars" else pl.from_arrow(table).lazy()
    gaps = any(None in values for _, values in columns.values())
    frame = table.to_pandas(types_mapper=(NULLABLE if gaps else PANDAS).get)
    for name in (n for n, (t, _) in columns.items() if t == "category"):  # sorted, as elsewhere
        frame[name] = frame[name].cat.reorder_categories(sorted(frame[name].cat.categories))
    return frame if kind == "pandas" else dd.from_pandas(frame, npartitions=partitions)


def converted(kind: str, frame):
    """Return a pandas frame as one of another engine."""
    if kind == "pandas":
        return frame
    if kind in ("polars", "lazy"):
        return pl.from_pandas(frame) if kind == "polars" else pl.from_pandas(frame).lazy()
    if kind == "dask":
        return dd.from_pandas(frame, npartitions=3)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table if kind == "pyarrow" else duckdb.connect().from_arrow(table)


def collected(released):
    """Return a frame in memory."""
    if isinstance(released, pl.LazyFrame):
        return released.collect()
    if isinstance(released, pa.RecordBatchReader):
        return released.read_all()
    if isinstance(released, duckdb.DuckDBPyRelation):
        return released.to_arrow_table()
    return released.compute() if hasattr(released, "compute") else released


def column(released, name: str) -> list:
    return nw.from_native(collected(released), eager_only=True)[name].to_list()


def people(records: int = 90, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    return {
        "note": ("text", [f"n{i}" for i in range(records)]),
        "ill": ("text", rng.choice(["flu", "cold", "none"], records).tolist()),
        "age": ("int", rng.integers(-5, 40, records).tolist()),
        "sex": ("category", [[None, "f", "m", "m"][i] for i in rng.integers(0, 4, records)]),
        "town": ("date", [datetime.date(2026, 1, d) for d in rng.integers(1, 4, records).tolist()]),
        "weight": ("float", (rng.integers(1, 9, records) / 4).tolist()),
    }


# The arguments with which ``people`` are counted.
ASKED = {"sensitive": "ill", "key": ["age", "sex"], "bins": {"age": 20}, "missing": "level"}


def collections(monkeypatch) -> list[int]:
    """Return a list that grows by the length of whatever is collected from an engine."""
    sizes: list[int] = []
    collect = nw.LazyFrame.collect

    def spy(self, *args, **options):
        outcome = collect(self, *args, **options)
        sizes.append(len(outcome))
        return outcome

    monkeypatch.setattr(nw.LazyFrame, "collect", spy)
    return sizes
