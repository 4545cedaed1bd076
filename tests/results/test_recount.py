"""A proof and the table it speaks of: counted again, record by record."""

from __future__ import annotations

import contextlib
import copy
import json
import re

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.results.recount import agreement, recount
from tests.engines import ASKED, INF, KINDS, made, pd, people
from tests.lengths import some_at_length

from_table = cpv.DiscreteSource.from_table


def solved(**options) -> dict:
    source = from_table(made("pandas", people()), **ASKED, **options)
    measure = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source)
    solution = cpv.PrivacyDistortion(source, measure, budget=0.3).solve()
    assert solution.certificate.verify()
    return json.loads(json.dumps(solution.certificate.document()))


@pytest.fixture(scope="module")
def proof():
    return solved()


@pytest.mark.parametrize(
    "options", some_at_length([{}, {"side": "town"}, {"weights": "weight"}], 1)
)
def test_a_table_is_recognised_in_whatever_frame_and_order(options):
    document, order = solved(**options), np.random.default_rng(1).permutation(90)
    columns = {n: (t, [v[i] for i in order]) for n, (t, v) in people().items()}
    for kind in KINDS:
        assert recount(document, made(kind, columns, 3)) == []
    assert ("1e-12 of their sum" in agreement(document)) == ("weights" in options)
    assert agreement(document).startswith("90 records")


def put(name, old, new, back=None):
    """Return an edit: one record's value, and another's to make up for it."""

    def edit(columns):
        values = columns[name][1]
        places = values.index(old), values.index(new) if back else 0
        values[places[0]] = new
        values[places[1]] = back or values[places[1]]

    return edit


@pytest.mark.parametrize("kind", ["pandas", "duckdb"])
@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (put("ill", "flu", "cold", "flu"), r"[234] cells differ: \d+ records with ill = '"),
        (put("sex", "f", "m"), r"2 cells differ: \d+ records with ill = '.* and age, sex = \("),
        (put("age", 39, 77), "1 values of column 'age' lie outside"),
        (put("age", 39, None), "no known letter"),
        (lambda c: [v.append(v[0]) for _, v in c.values()], "91 records, where the proof has 90"),
        (lambda c: [v.pop() for _, v in c.values()], "89 records, where the proof has 90"),
        (lambda c: c.pop("sex"), "no column 'sex'"),
    ],
    ids=range(7),
)
def test_one_record_more_or_less_or_other_is_named(kind, edit, text, proof):
    columns = people()
    edit(columns)
    (first, *_) = recount(proof, made(kind, columns))
    assert re.search(text, first)


def test_one_record_among_millions_is_named():
    counts = {"w": ("bool", [True, False]), "x": ("int", [0, 1]), "n": ("int", [9_999_999, 7])}
    source = from_table(made("polars", counts), sensitive="w", key="x", weights="n")
    solution = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=1e-8).solve()
    counts["n"][1][0] += 1
    (text,) = recount(solution.certificate.document(), made("duckdb", counts))
    assert re.search("10,?000,?000.* 9,?999,?999", text)


@pytest.mark.parametrize(
    "change",
    [
        {"bins": [["age", [-20, 10, 40]]]}, {"bins": []}, {"bins": 5}, {"bins": ...},
        {"records": 89}, {"records": "90"}, {"records": None}, {"records": ...},
        {"missing": "drop"}, {"missing": "refuse"}, {"missing": "as it was"}, {"missing": ...},
        {"key": ["sex", "age"]}, {"key": ["age", "who"]}, {"key": []}, {"sensitive": ["note"]},
        {"side": ["town"]}, {"weights": "weight"}, {"weights": "who"}, {"reading": None},
        {"encoder": "wx"}, {"encoder": ...}, {"letters": []}, {"letters": None}, {"alive": [0]},
        {"letters": 0}, {"letters": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_changed_record_of_the_table_fails(change, proof):
    document, ((name, value),) = copy.deepcopy(proof), change.items()
    if name == "letters" and value in (0, 1):  # of an axis, in another order
        document["table"]["letters"][value].reverse()
    elif value is ...:
        del document["table"][name]
    else:
        document["table"][name] = value
    with contextlib.suppress(cpv.InputError):
        assert recount(document, made("polars", people())) != []


def test_a_program_of_other_letters_fails(proof):
    document = copy.deepcopy(proof)
    labels = document["program"]["views"]["W"]["labels"]
    labels[0], labels[1] = labels[1], labels[0]
    (text,) = recount(document, made("polars", people()))
    assert text == "the letters that occur are not those of the proof"


def test_a_source_of_counts_has_no_table():
    source = cpv.DiscreteSource.from_counts([[3, 1], [1, 3]])
    certificate = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1).solve().certificate
    assert certificate.table is None
    for ask in (agreement, lambda document: recount(document, made("pandas", people()))):
        with pytest.raises(cpv.InputError, match="^table: .* not counted from a table"):
            ask(certificate.document())


@pytest.mark.parametrize("x", [[INF, 1.0, -INF, 0.0], pd.cut([1, 2, 3, 4], 2)], ids=["inf", "cut"])
def test_letters_that_json_lacks_are_no_obstacle(x):
    frame = pd.DataFrame({"w": [1, 2, 2, 1], "x": x})
    source = from_table(frame, sensitive="w", key="x")
    solution = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.2).solve()
    assert solution.certificate.verify()
    assert solution.channel.apply(frame, seed=0)["x"].dtype == frame["x"].dtype
    assert x[0] != INF or recount(solution.certificate.document(), frame) == []
