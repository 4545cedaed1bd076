"""Records chosen by the letters of their key, in memory and by an engine."""

from __future__ import annotations

import itertools

import narwhals as nw
import pytest

import cvxprivacy as cpv
from cvxprivacy.tables import Bins, Groups, TableSchema
from cvxprivacy_sdc.auditing.selection import records_with
from tests.engines import KINDS, LAZY, collected, column, made, people
from tests.lengths import rest_at_length, some_at_length
from tests.tables import test_periods as periods

COLUMNS = people(300) | {"id": ("int", list(range(300)))}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["level", "drop"])
@pytest.mark.parametrize(
    "key", rest_at_length([("sex", "town", "age"), ("town",), (("age", "sex"),)], 2)
)
def test_records_are_those_whose_letters_are_named(kind, missing, key):
    schema = TableSchema(key, ("ill",), bins={"age": Bins((-20, 0, 20, 40))}, missing=missing)
    letters = schema.letters(nw.from_native(made("polars", COLUMNS)), key)
    rows = [x if isinstance(x, tuple) else (x,) for x in letters]
    counted = [i for i, row in enumerate(rows) if missing == "level" or None not in row]
    for chosen in (letters[:1], letters[3:9], [], letters):
        outcome = records_with(schema, made(kind, COLUMNS), chosen)
        assert type(outcome) is type(made(kind, COLUMNS))
        assert sorted(column(outcome, "id")) == [i for i in counted if letters[i] in set(chosen)]


@pytest.mark.parametrize("kind", rest_at_length(LAZY, 2))
def test_many_letters_make_no_deep_expression(kind):
    pairs = list(itertools.product(range(60), range(60)))
    columns = {n: ("int", [p[i] for p in pairs]) for i, n in enumerate("ab")}
    schema = TableSchema(("a", "b"))
    chosen = [(a, b) for a, b in pairs if (a + b) % 2]
    outcome = records_with(schema, made(kind, columns), chosen)
    assert len(collected(outcome)) == 1800


def test_a_table_without_the_key_is_refused():
    with pytest.raises(cpv.InputError, match="^frame: no column 'b'; there are note"):
        records_with(TableSchema(("b",)), made("polars", COLUMNS), [1])


@pytest.mark.parametrize("kind", rest_at_length(KINDS, 5))
@pytest.mark.parametrize("missing", rest_at_length(["level", "drop"], 1))
def test_records_are_chosen_by_their_groups(kind, missing):
    columns = people(200) | {"id": ("int", list(range(200)))}
    groups = {"sex": Groups({"f": "a", "m": "b"}), "age": Groups.most_frequent(
        {i: 50 - i for i in range(-5, 40)}, 3)}  # fmt: skip
    schema = TableSchema(("age", "sex"), ("ill",), groups=groups, missing=missing)
    letters = schema.letters(nw.from_native(made("polars", columns)), schema.key)
    for chosen in (letters[:2], [("other", "b"), ("-5", None)]):
        outcome = records_with(schema, made(kind, columns), chosen)
        counted = [i for i, x in enumerate(letters) if missing == "level" or None not in x]
        assert sorted(column(outcome, "id")) == [i for i in counted if letters[i] in set(chosen)]


@pytest.mark.parametrize("kind", some_at_length(KINDS, 3))
def test_records_are_those_of_an_interval(kind):
    schema = TableSchema(("born",), ("ill",), bins={"born": "decade"}, missing="level")
    frame = periods.table(kind, "date", id=("int", list(range(len(periods.DAYS)))))
    for letters in (["1970-1979"], ["1960-1969", None]):
        chosen = [i for i, day in enumerate(periods.DAYS) if periods.name(day, "decade") in letters]
        assert sorted(column(records_with(schema, frame, letters), "id")) == chosen
