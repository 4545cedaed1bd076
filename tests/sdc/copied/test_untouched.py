"""What the columns that are left alone reveal."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy_sdc.copied import sample
from tests import engines
from tests.sdc.audits import WHY, refusal


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
    leaks = sdc.untouched(frame, source.schema, progress=calls.append)
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
    (bits,) = sdc.untouched(frame, schema, columns=["twin"])
    (nats,) = sdc.untouched(frame, schema, columns=["twin"], units="nats")
    assert nats.information == pytest.approx(bits.information * np.log(2))
    refusal("columns", sdc.untouched, frame, schema, columns=["town"])
    gap = frame.assign(pay=frame["pay"].where(frame["pay"] > 0))  # missing is a letter of its own
    (leak,) = sdc.untouched(gap, schema, columns=["pay"])
    assert leak.information > 0.1
    rare = frame.assign(rare=np.where(np.arange(800) < 780, 0, range(800)))  # of 21 values
    (leak,) = sdc.untouched(rare, schema, columns=["rare"])
    assert leak.values == 21
    assert leak.otherwise is not None  # in intervals too, all but one of which are empty


# ---- what is told is what is there -------------------------------------------------------


def against(w, column, **options):
    """Return what a column tells of W."""
    frame = pd.DataFrame({"w": w, "x": np.arange(len(w)) % 3, "column": column})
    schema = cpv.DiscreteSource.from_table(frame, sensitive="w", key="x").schema
    (leak,) = sdc.untouched(frame, schema, units="nats", **options)
    return leak


def information(law):
    law = law / law.sum()
    product = law.sum(axis=1)[:, None] * law.sum(axis=0)
    return float((law[law > 0] * np.log(law[law > 0] / product[law > 0])).sum())


def test_an_identifier_is_counted_value_by_value():
    """259 plants in 50 states, 16 records each: their numbers are of no order, their states are."""
    rng = np.random.default_rng(0)
    plant = np.repeat(np.arange(259), 16)
    number, state = rng.permutation(10_000)[:259], rng.integers(0, 50, 259)
    leak = against(state[plant], number[plant])
    truth = against(state[plant], state[plant]).information
    assert leak.intervals is None
    assert leak.otherwise < truth / 2 < leak.corrected
    assert leak.lower <= truth <= leak.upper
    as_text = against(state[plant], [f"no. {n}" for n in number[plant]])
    assert as_text.corrected == pytest.approx(leak.corrected, rel=0.01)


def test_what_chance_shows_is_no_information():
    rng = np.random.default_rng(0)
    dice = rng.integers(0, 400, 1080)
    taxes = rng.permutation(1080) * 7  # each of another value
    leak = against(taxes, dice)
    assert leak.coarse
    assert leak.lower == 0.0
    assert not leak.exceeds(0.0)
    assert "nothing beyond chance" in str(leak)
    for many in (dice.astype(str), [f"n{i}" for i in range(1080)]):
        leak = against([f"t{tax}" for tax in taxes], many)  # texts have no intervals
        assert (leak.information, leak.lower, leak.corrected) == (None, None, 0.0)
        assert "cannot be told" in str(leak)
        assert leak.kind(0.1) in ("look", "drop")
        assert not any(digit in leak.advice(0.1) for digit in "0123456789")


@pytest.mark.long
def test_independent_columns_reveal_nothing():
    rng = np.random.default_rng(1)
    revealed = 0
    for _ in range(200):
        w, c = rng.integers(0, rng.integers(2, 8), 300), rng.integers(0, rng.integers(2, 90), 300)
        revealed += against(w, c).exceeds(0.0)
    assert revealed <= 8  # of 200, at a level of 1 % for each of two countings


@pytest.mark.long
@pytest.mark.parametrize("values", [4, 40])
def test_dependent_columns_are_covered(values):
    """Of 300 records, by 200 laws that are drawn; those of 40 values have 2 records per cell."""
    rng, covered, errors = np.random.default_rng(values), 0, []
    for _ in range(200):
        law = rng.dirichlet(np.full(4, 0.4), values).T / values
        w, c = np.divmod(rng.choice(4 * values, 300, p=law.ravel()), values)
        leak, truth = against(w, c.astype(str)), information(law)
        covered += leak.lower <= truth <= leak.upper
        errors.append(leak.corrected - truth)
    assert covered >= 190
    assert abs(np.mean(errors)) < 0.03


def test_weights_count():
    rng = np.random.default_rng(0)
    w = rng.integers(0, 2, 600)
    frame = pd.DataFrame({"w": w, "x": 0, "c": w, "weight": np.where(np.arange(600) < 300, 0.0, 1)})
    frame.loc[:299, "c"] = 1 - w[:300]
    schema = cpv.DiscreteSource.from_table(frame, sensitive="w", key="x", weights="weight").schema
    (leak,) = sdc.untouched(frame, schema, columns=["c"])
    assert leak.information == pytest.approx(leak.entropy)
    assert against(frame["w"], frame["c"]).upper < 0.1  # half of them say the opposite


# ---- many columns, many records ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_column_costs_the_same_among_many(kind, monkeypatch):
    """Types of all columns are asked for as often, however many there are."""
    frame = pd.DataFrame({f"c{i}": np.arange(60) % (i + 2) for i in range(40)})
    schema = cpv.DiscreteSource.from_table(frame, sensitive="c0", key="c1").schema
    calls = []
    for name in ("collect_schema", "select"):
        for owner in (nw.DataFrame, nw.LazyFrame):
            original = getattr(owner, name)

            def spy(self, *args, original=original, **options):
                calls.append(original)
                return original(self, *args, **options)

            monkeypatch.setattr(owner, name, spy)

    counts = []
    for columns in (10, 40):
        narrow = frame.iloc[:, :columns]
        if kind == "polars":
            narrow = pytest.importorskip("polars", reason=WHY).from_pandas(narrow)
        calls.clear()
        assert len(sdc.untouched(narrow, schema)) == columns - 2
        counts.append(len(calls))
    assert counts[0] == counts[1] < 20


def test_large_tables_are_sampled_and_say_so(monkeypatch):
    frame = table(4000)
    schema = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="age").schema
    monkeypatch.setattr(sample, "SAMPLE", 1000)
    leaks = {leak.column: leak for leak in sdc.untouched(frame, schema)}
    assert leaks["twin"].records == 1000
    assert leaks["name"].names_records
    assert "in 1,000 records drawn of all" in str(leaks["twin"])
    assert sdc.untouched(frame, schema)[0] == leaks["twin"]  # by a fixed seed


@pytest.mark.parametrize("kind", engines.LAZY)
def test_nothing_larger_than_a_sample_is_collected(kind, monkeypatch):
    columns = engines.people(3000) | {"zip": ("int", list(range(3000)))}
    frame = engines.made(kind, columns)
    source = cpv.DiscreteSource.from_table(frame, side="town", weights="weight", **engines.ASKED)
    sizes = engines.collections(monkeypatch)
    monkeypatch.setattr(sample, "SAMPLE", 150)
    leaks = sdc.untouched(frame, source.schema)
    assert {leak.records for leak in leaks} == {max(sizes)} == {150}
    assert all(leak.sampled for leak in leaks)
