"""Values in groups and quantile bins: in memory and in an engine, kept in schemas and channels."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, strategies as st

import cvxprivacy as cpv
from cvxprivacy.errors import UnknownValueError
from cvxprivacy.results.recount import recount
from cvxprivacy.tables import Bins, Groups, TableSchema
from cvxprivacy.tables.groups import Ungrouped
from cvxprivacy_verifier.statement import stated
from tests.engines import INF, KINDS, MEMORY, collected, column, converted, made, pd, people
from tests.lengths import rest_at_length
from tests.refusals import refused

SCHOOL = {"9th": "school", "10th": "school", "BSc": "higher", "MSc": "higher"}
TOWNS = ["Rome"] * 5 + ["Oslo"] * 3 + ["Bern"] * 3 + ["Kyiv"] * 2 + ["Lima"]


def table(records=120, seed=3):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "ill": rng.choice(["no", "yes"], records),
            "school": rng.choice([*SCHOOL], records),
            "town": rng.choice(TOWNS, records),
            "grade": rng.integers(1, 7, records),
        }
    )


FRAME = table()
GRADES = {1: "good", 2: "good", 3: "fair", 4: "fair", 5: "poor", 6: "poor"}
KEY = ["school", "town", "grade"]
GROUPS = {"school": SCHOOL, "town": 2, "grade": GRADES}


def recoded_first(frame, kept):
    """Recode by pandas, and count then."""
    town = frame["town"].where(frame["town"].isin(kept), "other")
    return frame.assign(
        school=frame["school"].map(SCHOOL), town=town, grade=frame["grade"].map(GRADES)
    )


def source_of(frame, groups=None, **more):
    groups = GROUPS if groups is None else groups
    return cpv.DiscreteSource.from_table(frame, sensitive="ill", key=KEY, groups=groups, **more)


# ---- groups ------------------------------------------------------------------------------


def test_groups_by_hand():
    groups = Groups({"b": "late", "a": "early", 3.0: "late"})
    assert groups.labels == ["late", "early"]  # in the order in which they are stated
    assert groups.named(["a", 3, "3", None, "z"]) == ["early", "late", "late", None, Ungrouped("z")]
    assert Groups.from_list(json.loads(json.dumps(groups.to_list()))) == groups


def test_the_most_frequent_values_are_kept_and_the_first_of_equals():
    counts = {name: TOWNS.count(name) for name in sorted(set(TOWNS))} | {None: 99}
    two = Groups.most_frequent(counts, 2)
    assert two.labels == ["Bern", "Rome", "other"]  # Bern before Oslo, both with 3
    assert two.named(["Oslo", "Rome", None, "never seen"]) == ["other", "Rome", None, "other"]
    every = Groups.most_frequent(counts, 5)
    assert (every.rest, every.of("Paris")) == (None, Ungrouped("Paris"))
    assert Groups.from_list(two.to_list()) == two


def test_a_value_that_is_called_other_stays_apart_from_the_rest():
    kept = Groups.most_frequent({"a": 1, "b": 1, "other": 5}, 1)
    assert kept.named(["other", "a", "b"]) == ["other", "other[2]", "other[2]"]
    left = Groups.most_frequent({"a": 5, "b": 1, "other": 1}, 1)
    assert left.named(["a", "b", "other"]) == ["a", "other", "other"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_counts_as_a_table_recoded_first(kind):
    kept = sorted(FRAME["town"].value_counts().index[:2])
    first = cpv.DiscreteSource.from_table(recoded_first(FRAME, kept), sensitive="ill", key=KEY)
    source = source_of(converted(kind, FRAME))
    assert source.records == first.records == 120
    law = {(w, x): first.law[i, j] for i, w in enumerate(first.w) for j, x in enumerate(first.x)}
    assert set(source.x) == set(first.x)
    for (i, w), (j, x) in itertools.product(enumerate(source.w), enumerate(source.x)):
        assert source.law[i, j] == law[w, x]
    assert source.levels["school"] == ["school", "higher"]
    assert source.levels["grade"] == ["good", "fair", "poor"]
    assert source.levels["town"] == [*kept, "other"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_channel_recodes_every_engine_s_table_likewise(kind, tmp_path):
    source = source_of(FRAME)
    same = cpv.Channel(
        np.eye(len(source.x)), inputs=source.x, outputs=source.x, schema=source.schema
    )
    same.write(file := (tmp_path / "c.json").open("w"))
    file.close()
    again = cpv.Channel.load(tmp_path / "c.json")
    assert again.schema == source.schema
    released = collected(again.apply(converted(kind, FRAME), seed=1))
    kept = sorted(FRAME["town"].value_counts().index[:2])
    expected = recoded_first(FRAME, kept)
    for name in FRAME.columns:
        assert column(released, name) == expected[name].tolist()


@pytest.mark.parametrize("kind", rest_at_length(KINDS, 5))
def test_an_unknown_value_is_refused_by_name_and_an_unknown_town_is_another(kind):
    source = source_of(FRAME)
    same = cpv.Channel(
        np.eye(len(source.x)), inputs=source.x, outputs=source.x, schema=source.schema
    )
    other = FRAME.copy()
    other.loc[7, "town"] = "Atlantis"
    assert column(same.apply(converted(kind, other), seed=1), "town")[7] == "other"
    other.loc[5, "school"] = "school"  # what a group is called is no value
    with pytest.raises(UnknownValueError, match="'school'") as caught:
        collected(same.apply(converted(kind, other), seed=1))
    assert caught.value.where == 5
    assert caught.value.value[0] == "school"
    with pytest.raises(cpv.InputError, match="^groups: column 'school' has values of no group: 's"):
        source_of(converted(kind, other))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_stay_missing(kind):
    source = cpv.DiscreteSource.from_table(
        made(kind, people()), sensitive="ill", key="sex", groups={"sex": 1}, missing="level"
    )
    assert source.x == ["m", "other", None]


def test_what_makes_no_groups_is_refused_by_name():
    for spec in (0, -1, 1.5, True, "20", {}, {"9th": None}, {None: "x"}, {1: "a", "1": "b"},
                 {"9th": math.nan}, [("9th", "a")]):  # fmt: skip
        with pytest.raises(cpv.InputError) as caught:
            source_of(FRAME, groups={"school": spec})
        assert (caught.value.argument, caught.value.where) == ("groups", "school")
    refused(lambda: source_of(FRAME, groups={"disease": 2}), "groups", "school", value="disease")
    refused(lambda: source_of(FRAME, groups=5), "groups", value=5)
    both = {"groups": {"grade": 2}, "bins": {"grade": 2}}
    refused(lambda: source_of(FRAME, **both), "groups", "bins", value="grade")
    some = dict.fromkeys(("9th", "BSc"), "x")
    refused(lambda: source_of(FRAME, groups={"school": some}), "groups", "'10th', 'MSc'",
            value="school")  # fmt: skip


def test_a_schema_without_groups_is_written_as_before_and_read():
    schema = TableSchema(("age",), bins={"age": Bins((0, 9))})
    data = schema.to_dict()
    assert "groups" not in data
    assert TableSchema.from_dict(data) == schema
    grouped = source_of(FRAME).schema
    assert TableSchema.from_dict(json.loads(json.dumps(grouped.to_dict()))) == grouped


def test_a_proof_is_tied_to_its_recoded_table():
    source = source_of(FRAME)
    solution = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.2).solve()
    document = solution.certificate.document()
    assert recount(document, FRAME) == []
    moved = FRAME.replace({"school": {"9th": "10th"}})  # of one group
    assert recount(document, moved) == []
    assert recount(document, FRAME.replace({"school": {"9th": "BSc"}})) != []
    (text,) = recount(document, FRAME.replace({"school": {"9th": "8th"}}))
    assert "'8th'" in text


# ---- quantiles ---------------------------------------------------------------------------


def quantiles(counts, number):
    return Bins.of_quantiles(counts, number, exact=True).edges


def test_quantiles_by_hand():
    counts = {1: 3, 2: 1, 5: 4, 9: 2, None: 7}
    assert quantiles(counts, 2) == (-INF, 5, INF)  # 4 below, 6 not, as 5 wanted
    assert quantiles(counts, 9) == (-INF, 2, 5, 9, INF)
    assert quantiles({4: 9}, 5) == (-INF, INF)
    assert quantiles({1: 1, 2: 2, 3: 1}, 2) == (-INF, 2, INF)  # the lower of two


SPREAD = st.dictionaries(st.integers(-99, 99), st.integers(1, 30), min_size=1, max_size=40)


@given(SPREAD, st.integers(2, 50))
def test_quantiles_are_equal_but_for_ties(outcome, number):
    counts = dict(sorted(outcome.items()))
    edges = quantiles(counts, number)
    total = sum(counts.values())
    below = [sum(n for v, n in counts.items() if v < e) for e in edges[1:-1]]
    assert all(0 < n < total for n in below)  # no interval is empty
    inside = np.cumsum(list(counts.values()))[:-1]
    for n in below:  # each edge is as near to some quantile as any value is
        assert any(
            math.isclose(abs(n - k * total / number), min(abs(inside - k * total / number)))
            for k in range(1, number)
        )
    for k in range(1, number if below else 1):  # and each quantile has its edge
        best = min(abs(inside - k * total / number))
        assert min(abs(n - k * total / number) for n in below) <= best + 1e-9
    assert len(edges) - 1 <= min(number, len(counts))


@given(SPREAD, st.integers(2, 20), st.sampled_from([1e-5, 0.01, 1.0, 137.0]))
def test_edges_that_are_published_are_round_and_near_their_quantiles(outcome, number, unit):
    counts = {v * unit: n for v, n in sorted(outcome.items())}
    edges = Bins.of_quantiles(counts, number).edges[1:-1]
    values, total = list(counts), sum(counts.values())
    inside = np.cumsum(list(counts.values()))[:-1]
    assert len(edges) == len(set(edges)) <= number - 1
    for edge in edges:
        n = sum(n for v, n in counts.items() if v < edge)
        assert 0 < n < total
        off = [abs(n - k * total / number) for k in range(1, number)]
        nearest = [min(abs(inside - k * total / number)) for k in range(1, number)]
        room = total / number / 10
        assert any(o <= max(room, near) + 1e-9 for o, near in zip(off, nearest, strict=True))
        above = values[int(np.searchsorted(values, edge))]
        last = [Decimal(repr(e)).normalize().as_tuple().exponent for e in (edge, above)]
        assert last[0] >= last[1] or edge == 0 or above == 0  # no digit more


def test_a_band_has_no_record_s_value_for_an_edge():
    """Of 1,080 amounts no two alike, every quantile is one record's own."""
    amounts = np.unique(np.random.default_rng(0).lognormal(10, 1, 1080).round(2))
    counts = dict.fromkeys(amounts.tolist(), 1)
    for number in (4, 6, 10):
        exact = quantiles(counts, number)[1:-1]
        assert set(exact) <= set(counts)
        edges = Bins.of_quantiles(counts, number).edges[1:-1]
        assert len(edges) == number - 1
        assert not set(edges) & set(counts)
        assert all(len(f"{edge:g}".strip("0")) <= 3 for edge in edges)


@pytest.mark.parametrize("kind", rest_at_length(KINDS, 5))
def test_quantiles_are_the_same_in_every_engine(kind):
    columns = people(90) | {"size": ("float", [None, *(float(i * i % 31) for i in range(89))])}
    ask = {"sensitive": "ill", "key": ["age", "size"], "missing": "level"}
    source = cpv.DiscreteSource.from_table(
        made(kind, columns), **ask, bins={"age": "q4", "size": "q3"}
    )
    first = cpv.DiscreteSource.from_table(made("pandas", columns), **ask,
                                          bins={"age": "q4", "size": "q3"})  # fmt: skip
    assert source.schema.bins == first.schema.bins
    assert source.x == first.x
    ages = np.array(columns["age"][1])
    below = [(ages < e).sum() for e in source.schema.bins["age"].edges[1:-1]]
    assert below == pytest.approx([22.5, 45, 67.5], abs=3)


@pytest.mark.parametrize("spec", ["q1", "q0", "q1001", "q", "ten", "q-3", "q2.5"])
def test_what_is_no_number_of_quantiles_is_refused(spec):
    with pytest.raises(cpv.InputError, match=r"^bins\[age\]"):
        cpv.DiscreteSource.from_table(
            made("pandas", people()), sensitive="ill", key="age", bins={"age": spec}
        )


@pytest.mark.parametrize("kind", MEMORY)
def test_quantiles_of_text_are_refused(kind):
    with pytest.raises(cpv.InputError, match=r"^bins: column 'note'"):
        cpv.DiscreteSource.from_table(
            made(kind, people()), sensitive="ill", key="note", bins={"note": "q4"}
        )


@pytest.mark.parametrize(
    "groups",
    [
        5, [5], [["school", [["a", "b"]]]], [["school", 5, None]], [["school", [["a"]], None]],
        [["school", [["9th", ["x"]]], None]], [["school", [], None]],
        [["school", [["9th", None]], None]], [["school", [[["9th"], "a"]], None]],
        {"school": 2}, "abc", None,
    ],
    ids=str,
)  # fmt: skip
def test_a_malformed_record_of_groups_is_a_difference_and_no_crash(groups):
    source = source_of(FRAME)
    solution = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.2).solve()
    document = json.loads(json.dumps(solution.certificate.document()))
    document["table"]["groups"] = groups
    assert any("table" in line for line in stated(document))
    try:
        assert recount(document, FRAME) != []
    except cpv.InputError as error:
        assert error.argument == "table"  # noqa: PT017
