"""How records become letters: which columns, of what types, and what is refused by name."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.tables import Bins, TableSchema, engines
from tests.engines import INF, MEMORY, NAN, made, nw, pa, pd

FRAME = pd.DataFrame(
    {
        "diagnosis": ["flu", "flu", "cold", "flu", "cold", "none"],
        "age": [30, 30, 40, 40, 40, 30],
        "sex": ["f", "m", "f", "f", "f", "m"],
        "town": ["B", "A", "A", "B", "A", "A"],
    },
    index=[7, 7, 3, 1, 0, 100],
)
ROLES = {"sensitive": "diagnosis", "key": ["age", "sex"], "side": "town"}


def from_table(frame=FRAME, **columns) -> cpv.DiscreteSource:
    return cpv.DiscreteSource.from_table(frame, **columns)


def test_columns_make_axes_and_several_make_tuples():
    source = from_table(**ROLES)
    assert source.x == [(30, "f"), (30, "m"), (40, "f")]
    assert source.law[:, :, 0].tolist() == [[0, 0, 2], [0, 1, 0], [0, 1, 0]]  # town A
    assert source.law[:, :, 1].tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    assert (source.w, source.z, source.records) == (["cold", "flu", "none"], ["A", "B"], 6)
    assert source.names == ("diagnosis", "age, sex", "town")
    assert from_table(sensitive="diagnosis", key=["age"]).x == [30, 40]
    assert source.schema.columns == ["diagnosis", "age", "sex", "town"]
    assert source.schema.input_columns("xz") == [("age", "sex"), ("town",)]
    gaps = from_table(FRAME.assign(town=None), sensitive="diagnosis", key="age")
    assert gaps.records == 6  # of a column that is not asked about


def test_categories_without_records_are_no_letters():
    frame = FRAME.assign(
        sex=pd.Categorical(FRAME["sex"], categories=["x", "m", "f"]),
        diagnosis=FRAME["diagnosis"].astype("category"),
    )
    source = from_table(frame, sensitive="diagnosis", key="sex")
    assert set(source.x) == {"m", "f"}
    assert source.law[source.w.index("cold"), source.x.index("f")] == 2


def test_columns_of_other_types():
    day, other = datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)
    frame = FRAME.assign(
        day=[day, day, other, other, other, day], size=["1-4", 0, "1-4", 0, "5+", 0],
        smoker=[True, False, False, True, True, True],
        visits=pd.array([1, 2, 2, 1, 1, 2], dtype="Int64"),
    )  # fmt: skip
    by_day = from_table(frame, sensitive="diagnosis", key="day")
    assert (by_day.x, by_day.law.tolist()) == ([day, other], [[0, 2], [2, 1], [1, 0]])
    by_size = from_table(frame, sensitive="diagnosis", key="size")
    assert by_size.law[1, by_size.x.index(0)] == 2
    assert set(by_size.x) == {"1-4", 0, "5+"}
    by_smoker = from_table(frame, sensitive="smoker", key="visits")
    assert (by_smoker.w, by_smoker.x) == ([False, True], [1, 2])
    assert by_smoker.law.tolist() == [[0, 2], [3, 1]]


@pytest.mark.parametrize(
    ("argument", "columns"),
    [
        ("sensitive", {"sensitive": "disease"}),
        ("key", {"key": "disease"}),
        ("key", {"key": ["age", "disease"]}),
        ("side", {"side": "disease"}),
        ("weights", {"weights": "disease"}),
        ("bins", {"bins": {"disease": 5}}),
        ("bins", {"side": None, "weights": "age", "key": "sex", "bins": {"age": 5}}),
        ("key", {"sensitive": "age", "key": ["sex", "age"]}),
        ("key", {"key": ["sex", "sex"]}),
        ("side", {"side": "diagnosis"}),
        ("key", {"key": []}),
        ("missing", {"missing": "ignore"}),
        ("frame", {"frame": [["flu", 30]]}),
        ("frame", {"frame": FRAME.iloc[:0]}),
        ("frame", {"frame": FRAME.set_axis(["diagnosis", "age", "sex", "age"], axis=1)}),
    ],
    ids=range(15),
)
def test_what_makes_no_schema_is_refused_by_name(argument, columns):
    with pytest.raises(cpv.InputError) as caught:
        from_table(**ROLES | columns)
    assert caught.value.argument == argument
    if "disease" in str(columns):
        assert caught.value.value == "disease"
        assert "age" in caught.value.remedy


@pytest.mark.parametrize("nothing", [None, math.nan, pd.NA])
@pytest.mark.parametrize(
    ("argument", "column"), [("sensitive", "diagnosis"), ("key", "sex"), ("side", "town")]
)
def test_a_missing_value_is_named_with_its_column_and_row(argument, column, nothing):
    values = FRAME[column].astype(object).tolist()
    values[2] = values[4] = nothing
    with pytest.raises(cpv.InputError, match=f"2 missing values in column {column!r}") as caught:
        from_table(FRAME.assign(**{column: values}), **ROLES)
    assert (caught.value.argument, caught.value.where) == (argument, 2)
    dropped = from_table(FRAME.assign(**{column: values}), **ROLES, missing="drop")
    assert (dropped.records, dropped.dropped) == (4, 2)


def test_no_record_is_left_where_each_misses_a_value():
    with pytest.raises(cpv.InputError, match="^missing: every record misses a value"):
        from_table(FRAME.assign(town=None), **ROLES, missing="drop")
    weights = FRAME.assign(weight=[0, 0, 0, 0, 0, 1], town=[*FRAME["town"][:5], None])
    with pytest.raises(cpv.InputError, match="^weights: all weights are zero"):
        from_table(weights, **ROLES, missing="drop", weights="weight")


def test_too_many_cells_are_refused_with_the_widest_column(monkeypatch):
    from cvxprivacy.tables import counting

    frame = pd.DataFrame({"w": [0, 1] * 50, "x": np.arange(100) % 7, "id": range(100)})
    monkeypatch.setattr(counting, "MOST_CELLS", 50)
    with pytest.raises(cpv.InputError, match="more than 50 observed cells") as caught:
        from_table(frame, sensitive="w", key=["x", "id"])
    assert (caught.value.argument, caught.value.value) == ("key", "id")
    wide = pd.DataFrame({"w": [0, 1] * 10_000, "a": np.arange(20_000) % 200})
    wide["b"] = np.arange(20_000) // 200
    monkeypatch.setattr(counting, "MOST_CELLS", 10**6)
    assert len(from_table(wide, sensitive="w", key=["a", "b"]).x) == 20_000


def test_bins_of_text_are_refused_where_they_are_used():
    schema = TableSchema(key=("age",), bins={"age": Bins((0, 20, INF))})
    one = cpv.Channel([[1.0]], inputs=["[0, 20)"], outputs=["x"], schema=schema)
    with pytest.raises(cpv.InputError, match="column 'age' has 'old', which no bin can hold"):
        one.apply(pd.DataFrame({"age": [3, "old"]}), seed=1)
    for edges in ((3,), (2, 1), (0, math.nan, 2), (0, INF, 2), tuple(range(1_002))):
        with pytest.raises(cpv.InputError, match="^bins"):
            Bins(edges)
    assert Bins((-INF, 0, 10, INF)).middles == [0, 5, 10]
    with pytest.raises(cpv.InputError, match=r"^bins\[age\]: a width of 0.001 makes"):
        from_table(**ROLES | {"bins": {"age": 0.001}})


# ---- letters as numbers --------------------------------------------------------------------

CODED = {
    "n": ("int", [3, None, 1, 3, 1, 2]),
    "x": ("float", [0.0, NAN, None, 2.5, 2.5, -0.0]),
    "t": ("text", ["b", "a", None, "b", "", "a"]),
    "c": ("category", ["b", "a", None, "b", "c", "a"]),
    "d": ("date", [datetime.date(2026, 11, day) for day in (3, 1, 3, 2, 1, 1)]),
    "l": ("list", [[1], [1], None, [2, 3], [], [1]]),
    "b": ("bool", [True, False, None, True, True, False]),
}


@pytest.mark.parametrize("kind", MEMORY)
def test_records_are_numbered_by_the_letters_that_they_have(kind):
    frame = nw.from_native(made(kind, CODED))
    for name in CODED:
        codes, values = engines.coded(frame[name])
        assert [values[code] for code in codes] == engines.python_values(frame[name])
        assert codes.dtype == np.int64
    bins = {"n": Bins((0, 2.5, INF))}
    schema = TableSchema(key=("n", "t", "c", "d"), bins=bins)
    for names in (("n",), ("t", "n"), ("n", "t", "c", "d")):
        codes, letters = schema.coded(frame, names)
        assert [letters[code] for code in codes] == schema.letters(frame, names)
    empty = frame.head(0)
    assert [len(part) for part in schema.coded(empty, ("n", "c"))] == [0, 0]


def test_values_that_are_equal_and_not_the_same_are_kept_apart():
    mixed = nw.from_native(pd.DataFrame({"m": pd.Series([1, True, "1", [2], 1.0], dtype=object)}))
    codes, values = engines.coded(mixed["m"])
    assert [repr(values[code]) for code in codes] == ["1", "True", "'1'", "[2]", "1.0"]
    plain = nw.from_native(pd.DataFrame({"m": pd.Series([1, True, 1], dtype=object)}))
    codes, values = engines.coded(plain["m"])
    assert (codes.tolist(), [repr(value) for value in values]) == ([0, 1, 0], ["1", "True"])


def test_categories_in_several_chunks_and_there_twice_are_one_value():
    twice = pa.DictionaryArray.from_arrays([0, 1, 2], pa.array(["a", "a", "b"]))
    other = pa.DictionaryArray.from_arrays([1, 0], pa.array(["b", "c"]))
    table = nw.from_native(pa.table({"c": pa.chunked_array([twice, other])}))
    codes, values = engines.coded(table["c"])
    assert (codes.tolist(), values) == ([0, 0, 1, 2, 1], ["a", "b", "c"])


def test_combinations_of_many_values_are_those_that_occur():
    rng = np.random.default_rng(0)
    columns = [(rng.integers(0, 3000, 500), list(range(3000))) for _ in range(4)]
    codes, letters = engines.crossed(columns)
    rows = list(zip(*(side.tolist() for side, _ in columns), strict=True))
    assert [letters[code] for code in codes] == rows
    assert len(letters) == len(set(rows))
