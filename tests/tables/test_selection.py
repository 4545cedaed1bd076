"""Records chosen by the letters of their key, in memory and by an engine."""

from __future__ import annotations

import itertools

import narwhals as nw
import pytest

import cvxprivacy as cpv
from cvxprivacy.tables.selection import records_with
from tests.engines import KINDS, LAZY, collected, column, made, people
from tests.lengths import rest_at_length

COLUMNS = people(300) | {"id": ("int", list(range(300)))}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["level", "drop"])
@pytest.mark.parametrize(
    "key", rest_at_length([("sex", "town", "age"), ("town",), (("age", "sex"),)], 2)
)
def test_records_are_those_whose_letters_are_named(kind, missing, key):
    schema = cpv.TableSchema(
        key, ("ill",), bins={"age": cpv.Bins((-20, 0, 20, 40))}, missing=missing
    )
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
    schema = cpv.TableSchema(("a", "b"))
    chosen = [(a, b) for a, b in pairs if (a + b) % 2]
    outcome = records_with(schema, made(kind, columns), chosen)
    assert len(collected(outcome)) == 1800


def test_a_table_without_the_key_is_refused():
    with pytest.raises(cpv.InputError, match="^frame: no column 'b'; there are note"):
        records_with(cpv.TableSchema(("b",)), made("polars", COLUMNS), [1])
