"""Tables of every kind, counted in their own engine as their records say."""

from __future__ import annotations

import bisect
import datetime
from decimal import Decimal

import narwhals as nw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.tables import Bins, TableSchema
from cvxprivacy.tables.bins import bins_of
from tests.engines import (
    ASKED,
    INF,
    KINDS,
    LAZY,
    MEMORY,
    NAN,
    collections,
    dd,
    duckdb,
    made,
    pa,
    pd,
    people,
    pl,
)  # fmt: skip
from tests.lengths import rest_at_length

from_table = cpv.DiscreteSource.from_table

# ---- counted -------------------------------------------------------------------------------

VALUES = {
    "int": st.integers(-3, 12),
    "float": st.sampled_from([-2.5, -0.1, 0.0, 0.1, 0.2, 0.3, 0.6, 0.7, 1.0, 1.5, 7.0]),
    "text": st.sampled_from(["a", "b", "é", "", " a"]),
    "bool": st.booleans(),
    "date": st.integers(1, 4).map(lambda d: datetime.date(2026, 1, d)),
    "time": st.integers(1, 4).map(lambda d: datetime.datetime(2026, 1, d, 12)),
    "category": st.sampled_from(["p", "q", "r"]),
}
ROLES = {"w": "sensitive", "v": "sensitive", "x": "key", "y": "key", "z": "side"}
EDGES = [[-3, 0, 0.1, 0.3, 1, 13], [-INF, 0.7, 13], [-INF, 0.1, INF], [0, 13]]


@st.composite
def tables(draw):
    """Return columns, and the arguments of from_table."""
    records = draw(st.integers(1, 12))
    names = ["w", "x", *draw(st.lists(st.sampled_from("vyz"), unique=True))]
    columns, bins = {}, {}
    for name in names:
        kind = draw(st.sampled_from(sorted(VALUES)))
        values = VALUES[kind] | st.none() if draw(st.booleans()) else VALUES[kind]
        if kind == "float" and draw(st.booleans()):
            values |= st.just(NAN)
        columns[name] = (kind, draw(st.lists(values, min_size=records, max_size=records)))
        if kind in ("int", "float") and draw(st.booleans()):
            bins[name] = draw(st.sampled_from([0.1, 0.5, 5, *EDGES]))
    asked = {role: [n for n in names if ROLES[n] == role] for role in ("sensitive", "key", "side")}
    asked |= {"side": asked["side"] or None, "bins": bins}
    asked["missing"] = draw(st.sampled_from(["refuse", "level", "drop"]))
    if draw(st.booleans()):
        weight = st.sampled_from([0.0, 0.5, 1.0, 2.5, 1 / 3])
        columns["weight"] = ("float", draw(st.lists(weight, min_size=records, max_size=records)))
        asked["weights"] = "weight"
    return columns, asked


def by_hand(columns: dict, asked: dict, edges: dict) -> tuple[list, np.ndarray, np.ndarray] | None:
    """Return (letters per axis, law, weights of the records counted); None if refused."""
    groups = [asked[role] for role in ("sensitive", "key", "side") if asked[role]]
    names = [name for group in groups for name in group]
    records = range(len(columns["w"][1]))

    def ranked(name, value):  # (order, letter) of a value
        if value is None or value != value:
            return (1, 0), None
        if name not in edges:
            return (0, value), value
        place = bisect.bisect_right(edges[name], value)
        inside = 0 < place < len(edges[name])
        return (0, place), Bins(tuple(edges[name])).labels[place - 1] if inside else NAN

    def letter(i, group):
        letters = [rows[i][n][1] for n in group]
        return letters[0] if len(group) == 1 else tuple(letters)

    rows = [{n: ranked(n, columns[n][1][i]) for n in names} for i in records]
    weights = columns["weight"][1] if "weights" in asked else [1.0 for _ in records]
    values = [all(letter is not None for _, letter in row.values()) for row in rows]
    kept = [i for i in records if values[i] or asked["missing"] == "level"]
    outside = any(letter != letter for row in rows for _, letter in row.values())
    gaps = asked["missing"] == "refuse" and not all(values)
    if outside or gaps or not sum(weights[i] for i in kept):
        return None
    axes = []
    for group in groups:
        order = {letter(i, group): [rows[i][n][0] for n in group] for i in kept}
        axes.append(sorted(order, key=order.__getitem__))
    law = np.zeros([len(axis) for axis in axes])
    for i in kept:
        place = tuple(a.index(letter(i, g)) for a, g in zip(axes, groups, strict=True))
        law[place] += weights[i]
    return axes, law, np.array([weights[i] for i in kept])


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, suppress_health_check=[HealthCheck.differing_executors])
@given(table=tables())
def test_a_table_is_counted_as_its_records_say(kind, table):
    columns, asked = table
    edges = dict(asked["bins"])
    for name, width in edges.items():
        present = [v for v in columns[name][1] if v is not None and v == v] or [0]
        if not isinstance(width, list):  # bands of one width that begin and end with the values
            edges[name] = list(bins_of(name, width, min(present), max(present)).edges)
            assert edges[name][0] <= min(present) < edges[name][1]
            assert edges[name][-2] <= max(present) < edges[name][-1]
            assert np.diff(edges[name]) == pytest.approx(width)
    expected = by_hand(columns, asked, edges)
    if expected is None:
        with pytest.raises(cpv.InputError):
            from_table(made(kind, columns), **asked)
        return
    source, (axes, law, weights) = from_table(made(kind, columns), **asked), expected
    assert {name: list(bins.edges) for name, bins in source.schema.bins.items()} == edges
    assert [source.w, source.x, source.z][: len(axes)] == axes
    assert source.law == pytest.approx(law, rel=1e-14, abs=0)
    assert source.records == len(weights) == len(columns["w"][1]) - source.dropped
    assert source.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)
    recorded = source.joint > 0
    cells = recorded.sum() - recorded.any(axis=1).sum() - recorded.any(axis=0).sum() + 1
    assert source.bias(units="nats") == pytest.approx(cells / (2 * source.effective), abs=1e-12)


@pytest.mark.parametrize("weights", rest_at_length(["weight", None], 1))
def test_one_table_gives_one_mechanism_in_whatever_frame(weights):
    first = None
    for kind in KINDS:
        source = from_table(made(kind, people()), side="town", weights=weights, **ASKED)
        measure = cpv.per_attribute({"age": "absolute_error", "sex": "hamming"}, source)
        solution = cpv.PrivacyDistortion(source, measure, budget=4.0).solve()
        first = first or solution
        assert solution.status == "certified"
        assert solution.channel.inputs == first.channel.inputs
        assert np.array_equal(solution.channel.matrix, first.channel.matrix)
        assert (solution.lower, solution.upper) == (first.lower, first.upper)
        assert solution.certificate.table == first.certificate.table


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_categories_with_an_order_keep_it_and_others_are_sorted(kind, ordered):
    levels = ["low", "mid", "high"]
    codes = pa.array([2, 0, 1, 0], pa.int8())
    x = pa.DictionaryArray.from_arrays(codes, levels, ordered=ordered)
    frame = pa.table({"w": [1, 2, 1, 2], "x": x})
    if kind in ("pandas", "dask"):
        frame = frame.to_pandas()
        frame = dd.from_pandas(frame, npartitions=2) if kind == "dask" else frame
    elif kind in ("polars", "lazy"):
        frame = pl.from_arrow(frame).lazy()
        frame = frame.with_columns(pl.col("x").cast(pl.Enum(levels))) if ordered else frame
        frame = frame.collect() if kind == "polars" else frame
    elif kind == "duckdb":
        enum = "enum('low', 'mid', 'high')" if ordered else "varchar"
        frame = duckdb.connect().from_arrow(frame).project(f"w, x::varchar::{enum} as x")
    letters = from_table(frame, sensitive="w", key="x").x
    assert letters == (levels if ordered else sorted(levels))


@pytest.mark.parametrize("kind", LAZY)
def test_nothing_larger_than_the_counts_is_collected(kind, monkeypatch):
    frame = made(kind, people(3000) | {"zip": ("int", list(range(3000)))})
    sizes = collections(monkeypatch)
    source = from_table(frame, side="town", weights="weight", **ASKED)
    assert max(sizes) == (source.law > 0).sum() < 200
    sizes.clear()
    channel = cpv.Channel(
        np.eye(len(source.x)), inputs=source.x, outputs=source.x, schema=source.schema
    )
    channel.apply(frame, seed=0, row_id="zip")
    assert max(sizes) == len(source.x)


# ---- bins ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", ["0.1", "0.2", "0.7", "0.05"])
def test_the_edges_of_a_decimal_width_are_decimals(width):
    edges = [float(k * Decimal(width)) for k in range(-12, 31)]
    columns = {"w": ("int", list(range(42))), "x": ("float", edges[:-1])}
    outcome = from_table(made("polars", columns), sensitive="w", key="x", bins={"x": float(width)})
    assert outcome.x == Bins(tuple(edges)).labels


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("number", "ends"), rest_at_length([("float", INF), ("single", 9e9), ("float", 9e9)], 2)
)
@pytest.mark.parametrize(
    "edges", rest_at_length([[0.1, 0.3, 0.6, 0.7], []], 1), ids=["several", "all"]
)
def test_records_get_the_letters_that_were_counted(kind, number, ends, edges):
    values = [-ends, -3.0, 0.1, 0.3, 0.6, 0.7, 1e6, ends]
    columns, edges = {"w": ("int", list(range(8))), "x": (number, values)}, [-INF, *edges, INF]
    source = from_table(made(kind, columns), sensitive="w", key="x", bins={"x": edges})
    counted = [source.x[i] for i in source.law.argmax(axis=1)]
    stored = np.array(values, "f4" if number == "single" else "f8").astype(float)
    labels = source.schema.bins["x"].labels
    assert counted == [labels[bisect.bisect_right(edges[:-1], v) - 1] for v in stored]
    assert counted == source.schema.letters(nw.from_native(made("pyarrow", columns)), ["x"])


# ---- what cannot be counted ----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nothing", [None, NAN])
def test_a_missing_value_is_named_with_its_row_in_memory(kind, nothing):
    columns = {"w": ("bool", [True, False, True, False]), "x": ("float", [1, 2, nothing, nothing])}
    with pytest.raises(cpv.InputError, match="2 missing values in column 'x'") as caught:
        from_table(made(kind, columns), sensitive="w", key="x")
    assert caught.value.argument == "key"
    assert caught.value.where == (2 if kind in MEMORY else None)


@pytest.mark.parametrize("kind", ["pandas", "duckdb"])
def test_all_columns_that_miss_values_are_named_at_once(kind):
    columns = {
        "a": ("text", ["x", "y", "x", "y"]), "w": ("text", ["n", None, "y", "n"]),
        "x": ("float", [1, 2, NAN, None]), "z": ("text", [None, None, None, "o"]),
    }  # fmt: skip
    roles = {"sensitive": "w", "key": ["a", "x"], "side": "z"}
    with pytest.raises(cpv.InputError) as caught:
        from_table(made(kind, columns), **roles)
    problem = "1 missing values in column 'w', 2 in 'x' (key), 3 in 'z' (side)"
    assert caught.value.problem == problem
    with pytest.raises(cpv.InputError, match=r"^key.*: 2 missing values in column 'x', 1 in 'w'; "):
        from_table(made(kind, columns), sensitive="a", key=["x", "w"])


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("x", "asked", "text"),
    [
        (("float", [1.0, -1.0]), {"weights": "x"}, "^weights: 1 weights are negative"),
        (("float", [1.0, NAN]), {"weights": "x"}, "^weights: 1 weights .* missing"),
        (("float", [1.0, None]), {"weights": "x"}, "^weights: 1 weights .* missing"),
        (("float", [INF, 1.0]), {"weights": "x"}, "^weights: 1 weights .* infinite"),
        (("float", [1e301, 1.0]), {"weights": "x"}, "^weights: 1 weights .* infinite"),
        (("float", [0.0, 0.0]), {"weights": "x"}, "^weights: all weights are zero"),
        (("list", [[1], [2]]), {"key": "x"}, "strings, numbers or categories"),
        (("int", list(range(20_000))), {"key": "x"}, "^key: column 'x' has 20,000 different"),
        (("int", []), {"key": "x", "bins": {"x": 2}}, "^frame: no records"),
        (("text", ["1", "2"]), {"key": "x", "bins": {"x": 2}}, "^bins: .* not numbers"),
        (("float", [1.0, INF]), {"key": "x", "bins": {"x": 2}}, "^frame: column 'x' has inf; "),
        (("int", [10, 40]), {"key": "x", "bins": {"x": [-INF, 30]}}, "1 values .* lie outside"),
        (("int", [10, 40]), {"key": "x", "bins": {"x": [20, INF]}}, "1 values .* lie outside"),
    ],
    ids=range(13),
)
def test_what_makes_no_law_is_refused(kind, x, asked, text):
    if kind == "dask" and x[0] == "list":
        pytest.skip("Dask makes text of lists")
    columns = {"w": ("int", [0] * len(x[1])), "k": ("int", [1] * len(x[1])), "x": x}
    with pytest.raises(cpv.InputError, match=text):
        from_table(made(kind, columns, 1), **({"sensitive": "w", "key": "k"} | asked))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "schema",
    [{"key": ("elsewhere",)}, {"key": ("note",), "bins": {"note": Bins((0, 9))}}],
    ids=["column", "type"],
)
def test_a_table_of_other_columns_or_types_is_refused(kind, schema):
    schema = TableSchema(sensitive=("ill",), **schema)
    with pytest.raises(cpv.InputError, match=schema.key[0]):
        cpv.DiscreteSource.from_schema(made(kind, people()), schema)


def test_a_law_that_no_memory_holds_is_refused():
    columns = dict.fromkeys("wxz", ("int", list(range(10_000))))
    with pytest.raises(cpv.InputError, match="10000 × 10000 × 10000"):
        from_table(made("polars", columns), sensitive="w", key="x", side="z")


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_unit_of_weights_does_not_matter(unit):
    weights = ("float", [w * unit for w in people()["weight"][1]])
    asked = {"sensitive": "ill", "key": "town", "weights": "weight"}
    source = from_table(made("polars", people() | {"weight": weights}), **asked)
    assert source.bias() == pytest.approx(from_table(made("polars", people()), **asked).bias())


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "dask"])
def test_two_columns_of_one_name_are_refused(kind):
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
    if kind == "pyarrow":
        frame = pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "b", "a"])
    frame = dd.from_pandas(frame, npartitions=1) if kind == "dask" else frame
    with pytest.raises(cpv.InputError, match="^frame"):
        from_table(frame, sensitive="a", key="b")
