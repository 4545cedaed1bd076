"""What the columns that are left alone reveal."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from tests.microdata.helpers import WHY, refusal


def table(records=800):
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 2, records)
    return pd.DataFrame({
        "ill": ill, "age": rng.integers(0, 5, records), "twin": np.where(ill, "yes", "no"),
        "pay": ill + rng.normal(size=records), "name": [f"n{i}" for i in range(records)],
        "tags": [[i] for i in range(records)],
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb"])
def test_every_other_column_is_measured(kind):
    frame = table()
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="age")
    if kind == "polars":
        frame = pytest.importorskip("polars", reason=WHY).from_pandas(frame).lazy()
    elif kind == "duckdb":
        pa, duckdb = (pytest.importorskip(name, reason=WHY) for name in ("pyarrow", "duckdb"))
        frame = duckdb.connect().from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    calls = []
    leaks = cpv.untouched(frame, source.schema, progress=calls.append)
    assert calls == [1] * 4
    twin, pay, *unknown = leaks
    assert (twin.column, twin.values, twin.intervals) == ("twin", 2, None)
    assert twin.information == pytest.approx(source.entropy())  # it is W by another name
    assert twin.corrected == pytest.approx(twin.information - twin.bias)
    assert (pay.column, pay.values, pay.intervals) == ("pay", 800, 20)
    assert 0.1 < pay.corrected < twin.corrected
    assert {leak.column for leak in unknown} == {"name", "tags"}
    for leak in unknown:  # as many values as records, or none that can be counted
        assert (leak.information, leak.bias, leak.corrected) == (None, None, 0.0)


def test_columns_and_units():
    frame = table()
    schema = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="age").schema
    (bits,) = cpv.untouched(frame, schema, columns=["twin"])
    (nats,) = cpv.untouched(frame, schema, columns=["twin"], units="nats")
    assert nats.information == pytest.approx(bits.information * np.log(2))
    refusal("columns", cpv.untouched, frame, schema, columns=["town"])
    gap = frame.assign(pay=frame["pay"].where(frame["pay"] > 0))  # missing is a letter of its own
    (leak,) = cpv.untouched(gap, schema, columns=["pay"])
    assert leak.information > 0.1
    (few,) = cpv.untouched(frame[:99].assign(few=range(99))[["ill", "few"]] // 10, schema)
    assert (few.values, few.intervals) == (10, 10)  # 20 parts of ten values: no more than these
