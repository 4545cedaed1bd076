"""How records become letters: which columns, of what types, and what is refused by name."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest

import cvxprivacy as cpv
from tests.engines import INF, pd

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
    schema = cpv.TableSchema(key=("age",), bins={"age": cpv.Bins((0, 20, INF))})
    one = cpv.Channel([[1.0]], inputs=["[0, 20)"], outputs=["x"], schema=schema)
    with pytest.raises(cpv.InputError, match="column 'age' has 'old', which no bin can hold"):
        one.apply(pd.DataFrame({"age": [3, "old"]}), seed=1)
    for edges in ((3,), (2, 1), (0, math.nan, 2), (0, INF, 2), tuple(range(1_002))):
        with pytest.raises(cpv.InputError, match="^bins"):
            cpv.Bins(edges)
    assert cpv.Bins((-INF, 0, 10, INF)).middles == [0, 5, 10]
    with pytest.raises(cpv.InputError, match=r"^bins\[age\]: a width of 0.001 makes"):
        from_table(**ROLES | {"bins": {"age": 0.001}})
