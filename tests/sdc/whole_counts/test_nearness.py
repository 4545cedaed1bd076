"""How far apart letters are: columns with an order and without, by hand."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.tables import TableSchema
from cvxprivacy_sdc.whole_counts.nearness import orders_of, steps_apart
from tests.tables import test_periods as periods

PEOPLE = pd.DataFrame({
    "age": [23, 37, 61, 88], "sex": list("fmfm"), "work": ["mine", "shop", "bank", "shop"],
    "grade": pd.Categorical(["poor", "top", "mid", "poor"], ["poor", "mid", "top"], ordered=True),
    "born": pd.to_datetime(["1990-01-01", "1991-01-01", "1992-01-01", "1992-01-01"]),
    "ill": [0, 1, 0, 1],
})  # fmt: skip


def counted(key, **how):
    source = cpv.DiscreteSource.from_table(PEOPLE, sensitive="ill", key=key, **how)
    return source.schema, source.levels


def apart(first, second, key, **how):
    return steps_apart([first], [second], *counted(key, **how))[0, 0]


@pytest.mark.parametrize(
    ("key", "how", "first", "second", "steps"),
    [
        ("age", {"bins": {"age": 10}}, "[20, 30)", "[30, 40)", 1 / 6),
        ("age", {"bins": {"age": 10}}, "[20, 30)", "[80, 90)", 1),
        ("age", {}, 23, 61, 2 / 3),  # steps between levels, not years
        ("grade", {}, "poor", "top", 1),
        ("grade", {}, "poor", "mid", 1 / 2),
        ("work", {}, "bank", "mine", 1),
        ("work", {"groups": {"work": {"shop": "a", "bank": "b", "mine": "c"}}}, "a", "b", 1 / 2),
        ("work", {"groups": {"work": 1}}, "shop", "other", 1),
        ("age", {"bins": {"age": 10}}, "[20, 30)", None, 1),
        (["age", "sex"], {"bins": {"age": 10}}, ("[80, 90)", "f"), ("[60, 70)", "m"), 1 + 1 / 3),
        (["age", "sex"], {"bins": {"age": 10}}, ("[80, 90)", None), ("[80, 90)", "m"), 1),
    ],
)
def test_steps_by_hand(key, how, first, second, steps):
    assert apart(first, second, key, **how) == pytest.approx(steps)
    assert apart(second, first, key, **how) == pytest.approx(steps)
    assert apart(first, first, key, **how) == 0


def test_dates_have_an_order_and_text_has_none():
    schema, levels = counted(["born", "grade", "work", "sex"])
    assert [*orders_of(schema, levels)] == ["born", "grade"]
    days = [date(2026, 1, day) for day in (1, 2, 3)]
    away = steps_apart(days, days, TableSchema(key=("day",)), {"day": days})
    assert away.tolist() == [[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]]


def test_letters_that_no_table_had():
    """A number between levels, or a column of one value, is as far as any other."""
    schema, levels = counted("age")
    assert steps_apart([23], [30.5, 37], schema, levels).tolist() == [[1, pytest.approx(1 / 3)]]
    one = steps_apart(["a"], ["a", "b"], TableSchema(key=("only",)), {"only": ["a"]})
    assert np.array_equal(one, [[0, 1]])


@pytest.mark.parametrize("unit", ["month", "quarter", "5years", "decade"])
def test_calendar_intervals_are_in_the_order_of_time(unit):
    source = cpv.DiscreteSource.from_table(
        periods.table("polars", "date"), sensitive="ill", key="born", bins={"born": unit},
        missing="drop",
    )  # fmt: skip
    assert list(orders_of(source.schema, source.levels)["born"]) == source.x
