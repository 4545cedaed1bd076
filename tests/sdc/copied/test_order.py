"""Orders that tell of a protected column, and those that do not: at which rate."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from cvxprivacy.tables.schema import TableSchema
from cvxprivacy_sdc.copied import order
from cvxprivacy_sdc.copied.order import LEVEL, OrderTest
from tests.public_tables import real_folder

SCHEMA = TableSchema(key=("town", "age"), sensitive=("ill",))


def people(records=600, seed=0):
    chance = np.random.default_rng(seed)
    return pd.DataFrame({
        "town": chance.choice(list("abcdef"), records), "age": chance.integers(20, 60, records),
        "ill": chance.choice(["no", "yes"], records, p=[0.7, 0.3]),
    })  # fmt: skip


def findings_of(frame, **options):
    """Return which orders tell of which columns."""
    test = OrderTest.of(frame, SCHEMA, **options)
    return {(one.by, one.about) for one in test.findings}


def sorted_by(*names):
    return people().sort_values(list(names), kind="stable", ignore_index=True)


def periodic(period):
    frame = people()
    frame["ill"] = np.where(np.arange(len(frame)) % period == 0, "yes", "no")
    return frame


def blockwise():
    """Towns one after the other in parts that are not all of a town, and no order within them."""
    frame = people(3000)
    share = np.where(np.arange(3000) < 1500, 0.35, 0.65)
    frame["ill"] = np.where(np.random.default_rng(1).random(3000) < share, "yes", "no")
    return frame


ARRANGED = {
    "by the key": (sorted_by("town"), "town"),
    "by a number": (sorted_by("age"), "age"),
    "by several": (sorted_by("town", "age"), "town"),
    "within groups": (sorted_by("town", "age"), "age"),
    "by what is confidential": (sorted_by("ill"), "ill"),
    "backwards": (people().sort_values("age", ascending=False, ignore_index=True), "age"),
    "every third": (periodic(3), "ill"),
    "every 31st": (periodic(31), "ill"),
    "a slow drift": (blockwise(), "ill"),
    "too regular": (periodic(2), "ill"),
}


@pytest.mark.parametrize("name", ARRANGED)
def test_an_order_that_tells_is_seen(name):
    frame, about = ARRANGED[name]
    assert ("", about) in findings_of(frame)
    shuffled = frame.sample(frac=1, random_state=3, ignore_index=True)
    assert not findings_of(shuffled)


def test_a_copied_column_gives_an_order_back():
    """A running number, a time stamp with gaps, and names whose digits count as a number."""
    frame = sorted_by("town")
    frame["number"] = range(len(frame))
    frame["when"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(frame["number"] ** 2, "min")
    frame["minute"] = frame["when"].min() + pd.to_timedelta(frame["number"], "s")  # of one day
    dates = pd.Timestamp("2025-11-20") + pd.to_timedelta(frame["number"] // 6, "D")
    frame["day"], frame["us"] = dates.dt.strftime("%d.%m.%Y"), dates.dt.strftime("%m/%d/%Y")
    frame["name"] = [f"P{i}" for i in frame["number"]]
    frame["chance"] = np.random.default_rng(5).random(len(frame))
    mixed = frame.sample(frac=1, random_state=1, ignore_index=True)
    columns = ["number", "when", "minute", "day", "us", "name"]
    expected = {(name, "town") for name in columns}
    assert findings_of(mixed) == expected
    assert findings_of(frame) == {("", "town"), *expected}
    assert findings_of(mixed, dropped=columns[1:]) == {("number", "town")}
    assert findings_of(mixed, unseen=columns) == set()


@pytest.mark.parametrize("shape", ["name", "ISO", "day", "datetime", "time", "integer", "padded"])
@pytest.mark.parametrize("role", ["key", "sensitive"])
def test_an_order_by_values_that_are_all_different_is_seen(shape, role):
    """No two records are alike: what tells is that neighbours are in the same part of the range."""
    days = pd.Timestamp("1960-03-01") + pd.to_timedelta(np.arange(600) * 17, "D")
    values = {
        "name": [f"{'abcdefghijkl'[i // 50]}{i * 7919 % 600:x}" for i in range(600)],
        "ISO": days.strftime("%Y-%m-%d"), "day": days.strftime("%d.%m.%Y"), "datetime": days,
        "time": [t.time() for t in pd.date_range("2026-01-01", periods=600, freq="2min")],
        "integer": np.array([10**400 + i for i in range(600)], object),
        "padded": [f"P{i}" for i in range(600)],
    }  # fmt: skip
    frame = people().assign(t=values[shape])
    schema = TableSchema(**{"key": ("town",), "sensitive": ("ill",)} | {role: ("t",)})
    assert [one.about for one in OrderTest.of(frame, schema).findings] == ["t"]
    mixed = frame.sample(frac=1, random_state=3, ignore_index=True)
    assert OrderTest.of(mixed, schema, dropped=["age"]).findings == ()


def undoing(frame, **options):
    schema = TableSchema(key=("town",), sensitive=("ill",))
    mixed = frame.sample(frac=1, random_state=3, ignore_index=True)
    test = OrderTest.of(mixed, schema, shuffled=True, dropped=["age"], **options)
    assert not {one.by for one in test.findings if one.undoes} - {"by"}
    return bool(test.refusals)


@pytest.mark.parametrize("period", [2, 3])
def test_neighbours_that_always_differ_undo_a_release_too(period):
    frame = people(3000)
    frame["town"] = [list("abc")[i % period] for i in range(3000)]
    frame["by"] = np.arange(3000) * 3
    assert undoing(frame)


def test_long_numbers_are_ordered_by_all_of_their_digits():
    frame = people(3000).assign(by=2**60 + np.arange(3000))
    frame["town"] = np.repeat(np.random.default_rng(0).choice(list("abc"), 375), 8)
    assert undoing(frame)


@pytest.mark.parametrize("shape", ["%d.%m.%y %H:%M", "%m/%d/%y", "%d %b %Y", "%b %d, %Y %H:%M",
                                   "%d-%b-%Y", "%d.%m.%Y"])  # fmt: skip
def test_dates_are_ordered_in_all_usual_spellings(shape):
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.arange(3000), "D")
    frame = people(3000).assign(by=days.strftime(shape))
    frame["town"] = [list("ab")[i // 150 % 2] for i in range(3000)]
    assert undoing(frame)


@pytest.mark.parametrize(("alone", "refused"), [(0, True), (1200, True), (2900, False)])
def test_households_tell_of_each_other(alone, refused):
    """With ``alone`` of 3,000 people in households of one, the others are in fives."""
    by = np.concatenate([np.repeat(np.arange((3000 - alone) // 5), 5), 10_000 + np.arange(alone)])
    town = np.random.default_rng(0).choice(list("abcdef"), by.max() + 1)[by]
    assert undoing(people(3000).assign(by=by, town=town)) == refused


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_a_large_table_is_looked_at_in_the_order_of_each_column(engine, monkeypatch):
    """Stretches of the file hold few neighbours of a household."""
    monkeypatch.setattr(order, "WINDOW", 64)
    monkeypatch.setattr(order, "WINDOWS", 8)
    by = np.repeat(np.arange(1000), 4)
    frame = people(4000).assign(by=[f"H{i}" for i in by])
    frame["town"] = np.random.default_rng(0).choice(list("abcdef"), 1000)[by]
    mixed = frame.drop(columns="age").sample(frac=1, random_state=3, ignore_index=True)
    if engine == "duckdb":
        mixed = pytest.importorskip("duckdb").sql("FROM mixed")
    schema = TableSchema(key=("town",), sensitive=("ill",))
    (refusal,) = OrderTest.of(mixed, schema, shuffled=True).refusals
    assert refusal == "the order of by, which is copied, tells of town: drop or coarsen it"


@pytest.mark.parametrize("names", [("year", "month", "day"), ("month", "day", "year"),
                                   ("block", "number")])  # fmt: skip
def test_columns_that_give_an_order_together_are_named(names):
    """None of them tells much by itself."""
    frame = people(2000).sort_values("age", kind="stable", ignore_index=True)
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(np.arange(2000), "D")
    parts = {"year": days.year, "month": days.month, "day": days.day,
             "block": np.arange(2000) // 400, "number": np.arange(2000) % 400}  # fmt: skip
    frame = frame.assign(**{name: parts[name] for name in names})
    mixed = frame.sample(frac=1, random_state=3, ignore_index=True)
    (refusal,) = OrderTest.of(mixed, SCHEMA, shuffled=True).refusals
    assert refusal.endswith(", which is copied, tells of age: drop or coarsen it")
    assert all(name in refusal for name in names if name != "day")  # a month is enough
    dropped = names[:1] if names[0] == "block" else ["year", "month"]
    assert OrderTest.of(mixed, SCHEMA, shuffled=True, dropped=dropped).refusals == []


def test_what_is_refused_is_what_shuffling_and_dropping_do_not_mend():
    frame = sorted_by("town")
    as_it_is = OrderTest.of(frame, SCHEMA)
    assert as_it_is.refusals == ["the order of records tells of town: release it with --shuffle"]
    assert OrderTest.of(frame, SCHEMA, shuffled=True).refusals == []
    frame["number"] = range(len(frame))
    (refusal,) = OrderTest.of(frame, SCHEMA, shuffled=True).refusals
    assert refusal == "the order of number, which is copied, tells of town: drop or coarsen it"
    # a column that is a little alike in like records is told, and refused by nobody
    frame["number"] = np.random.default_rng(0).normal(frame["town"].map("abcdef".index), 2)
    test = OrderTest.of(frame, SCHEMA, shuffled=True)
    assert test.refusals == []
    assert test.hints == "copied columns whose order tells something: number (of town)"
    frame["number"] = frame.groupby("town").cumcount()  # they start anew in each town
    assert OrderTest.of(frame, SCHEMA, shuffled=True).refusals == []


def test_numbers_in_the_order_of_appearance_name_the_first_record():
    frame = people()
    schema = TableSchema(key=("town",), sensitive=("ill",))
    frame["town"] = pd.factorize(frame["town"])[0]
    (one,) = OrderTest.of(frame, schema).findings
    assert (one.kind, one.about) == ("numbering", "town")
    assert OrderTest.of(frame, schema, shuffled=True).refusals == []
    frame["town"] = (5 - frame["town"]) % 6
    assert OrderTest.of(frame, schema).findings == ()


def test_mean_and_variance_are_those_of_all_arrangements():
    """Of seven records in each arrangement: no tail is less than half of the true one."""
    codes = np.array([0, 0, 0, 1, 1, 2, 2])
    counts = {lag: [] for lag in (1, 2, 3)}
    bounds = []
    for arranged in {*permutations(codes.tolist())}:
        along = np.array(arranged)
        share, chance, tails = order._lagged(along, 3)
        bounds.append(tails)
        for lag, of_lag in counts.items():
            of_lag.append(share[lag - 1])
    assert chance == pytest.approx(5 / 21)
    for lag, shares in counts.items():
        assert np.mean(shares) == pytest.approx(5 / 21)
        far = np.abs(np.array(shares) - 5 / 21)
        for value, tail in zip(shares, np.array(bounds)[:, lag - 1], strict=True):
            assert np.mean(far >= abs(value - 5 / 21) - 1e-12) <= 2 * tail


@pytest.mark.parametrize("kinds", [2, 7, 60])
def test_false_alarms_are_rare(kinds):
    """The bound is a bound of the tail: a hundred times the level is no more often exceeded."""
    chance, wrong, trials = np.random.default_rng(kinds), 0, 300
    for _ in range(trials):
        codes = chance.choice(kinds, int(chance.integers(30, 400)))
        wrong += bool(order._findings("", {"w": codes}, np.arange(len(codes)), [], 1, order.LAGS))
    assert wrong <= 2  # 0.3 are expected at most, and 3 or more in 0.4 % of such tests
    assert LEVEL == 1e-3


def test_stretches_of_a_large_table_are_looked_at(monkeypatch):
    """Of a table in memory and of one that DuckDB streams, the same ones."""
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setattr(order, "WINDOW", 64)
    monkeypatch.setattr(order, "WINDOWS", 8)
    frame = sorted_by("town")
    connection = duckdb.connect()
    connection.register("frame", frame)
    tests = [OrderTest.of(table, SCHEMA) for table in (frame, connection.sql("FROM frame"))]
    assert [one.records for one in tests] == [512, 512]
    assert tests[0] == tests[1]
    assert [one.about for one in tests[0].findings] == ["town"]


@pytest.mark.real
def test_what_is_said_of_public_tables():
    """Adult is in no order that tells; those of utilities come back month by month, 341 apart."""
    folder = real_folder("adult", "eia")
    schema = TableSchema(key=("age", "sex"), sensitive=("marital-status",))
    adult = OrderTest.of(pd.read_csv(folder / "adult.csv"), schema)
    assert adult.refusals == []
    assert {one.by for one in adult.findings} == {"fnlwgt"}
    schema = TableSchema(key=("STATE",), sensitive=("UTILNAME",))
    utilities = OrderTest.of(pd.read_csv(folder / "eia.csv", usecols=["STATE", "UTILNAME"]), schema)
    assert {(one.about, one.lag) for one in utilities.findings} >= {("UTILNAME", 341)}
