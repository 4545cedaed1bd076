"""Channels applied to tables of every kind, streamed or not, and with named records."""

from __future__ import annotations

import datetime
from types import SimpleNamespace

import narwhals as nw
import numpy as np
import pytest
from scipy import stats

import cvxprivacy as cpv
from cvxprivacy.errors import UnknownValueError, UnseenValueWarning
from cvxprivacy.release import apply
from cvxprivacy.tables import Bins, TableSchema
from cvxprivacy.tables.engines import python_values
from tests.engines import (
    ASKED,
    INF,
    KINDS,
    MEMORY,
    NAN,
    collected,
    column,
    dd,
    duckdb,
    made,
    pa,
    pd,
    people,
    pl,
)
from tests.lengths import rest_at_length, some_at_length

LETTERS = ["cold", "flu", "none"]
MATRIX = np.array([[0.5, 0.3, 0.2], [0.1, 0.9, 0.0], [0.25, 0.25, 0.5]])
TURN = np.roll(np.eye(3), 1, axis=1)
TABLE = people(400) | {"id": ("int", list(range(1000, 1400)))}


def channel(matrix=MATRIX, key="ill", **options):
    schema = TableSchema(key=(key,), **options)
    return cpv.Channel(matrix, inputs=LETTERS, outputs=LETTERS, schema=schema)


def types(frame) -> dict:
    return dict(nw.from_native(frame).collect_schema())


def ills(released) -> list:
    return column(released, "ill")


# ---- what comes back -----------------------------------------------------------------------

RETURNED = dict(zip(MEMORY, (pd.DataFrame, pl.DataFrame, pa.Table), strict=True)) | {
    "lazy": pl.LazyFrame, "duckdb": pa.RecordBatchReader, "dask": dd.DataFrame,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row_id", some_at_length([None, "id"], 1))
def test_a_frame_comes_back_in_its_kind_with_its_key_replaced(kind, row_id):
    frame = made(kind, TABLE)
    before = collected(frame.to_arrow_reader() if kind == "duckdb" else frame)
    released = channel().apply(frame, seed=3, row_id=row_id)
    assert isinstance(released, RETURNED[kind])
    declared = types(released) if kind in ("lazy", "dask") else types(before)
    after = collected(released)
    assert types(after) == types(before) == declared
    assert list(types(after)) == list(TABLE)
    for name in TABLE:
        assert (column(after, name) == column(before, name)) == (name != "ill")
    assert ills(channel().apply(made(kind, TABLE), seed=3, row_id=row_id)) == ills(after)
    if kind != "dask" or row_id:  # the draws of a Dask frame are spawned for each partition
        assert ills(after) == ills(channel().apply(made("pandas", TABLE), seed=3, row_id=row_id))


@pytest.mark.parametrize("kind", ["lazy", "duckdb"])
@pytest.mark.parametrize("batch", rest_at_length([7, 399, 1, 400], 2))
def test_batches_change_nothing(kind, batch, monkeypatch):
    expected = ills(channel().apply(made("polars", TABLE), seed=np.random.default_rng(3)))
    monkeypatch.setattr(apply, "BATCH", batch)
    sizes, draw = [], cpv.Channel._draw
    monkeypatch.setattr(
        cpv.Channel, "_draw", lambda self, rows, u: sizes.append(len(rows)) or draw(self, rows, u)
    )
    outcome = channel().apply(made(kind, TABLE), seed=np.random.default_rng(3))
    assert ills(outcome) == expected
    assert (max(sizes), sum(sizes)) == (batch, 400)


SEEN = ["b", "a", "c", "b"]
KEPT = [
    pd.Series(SEEN, dtype="category"), pd.Series(SEEN, dtype=object), pd.Series(SEEN, dtype="str"),
    pd.Series(SEEN, dtype=pd.CategoricalDtype(["c", "b", "a", "never"], ordered=True)),
    pd.Series(SEEN, dtype="string"), pd.Series(SEEN, dtype=pd.ArrowDtype(pa.string())),
    pd.Series([1, None, 3, 1], dtype="Int64"), pd.Series([1, 2, 3, 1], dtype="int8"),
    pd.Series([1.5, NAN, 3], dtype="float32"), pd.Series([True, None, False], dtype="boolean"),
    pl.Series(SEEN, dtype=pl.Categorical), pl.Series(SEEN, dtype=pl.Enum(["c", "b", "a", "never"])),
    pl.Series([1, 2, 3], dtype=pl.UInt8), pl.Series([True, False, None]),
    pl.Series([datetime.date(2026, 1, d) for d in (1, 2, 3)]),
    pl.Series(["1.0", "1.5", "2.0"]).cast(pl.Decimal(5, 1)),
    pa.chunked_array([SEEN]).dictionary_encode(), pa.chunked_array([SEEN], pa.large_string()),
    pa.chunked_array([[True, False, None]]),
    pa.chunked_array([["1.0", "1.5", "2.0"]]).cast(pa.decimal128(5, 1)),
]  # fmt: skip


@pytest.mark.parametrize("kept", KEPT, ids=range(len(KEPT)))
@pytest.mark.parametrize("alone", [True, False], ids=["series", "frame"])
def test_types_are_kept_where_they_hold_the_letters(kept, alone):
    series = nw.from_native(kept, series_only=True).alias("x")
    w = nw.new_series("w", list(range(len(kept))), backend=series.implementation)
    frame = series.to_frame().with_columns(w=w)
    source = cpv.DiscreteSource.from_table(frame, sensitive="w", key="x", missing="level")
    assert len(source.x) == series.n_unique()
    for outputs in [source.x, *([["other", *source.x[1:]]] if source.x[0] == "a" else [])]:
        same = np.eye(len(source.x))
        one = cpv.Channel(same, inputs=source.x, outputs=outputs, schema=source.schema)
        summary = one.apply((series if alone else frame).to_native(), seed=0)
        summary = nw.from_native(summary, allow_series=True)
        summary = summary if alone else summary["x"]
        expected = [outputs[source.x.index(v)] for v in python_values(series)]
        assert python_values(summary) == expected
        native = (summary.to_native(), series.to_native())
        messages = [one.type if isinstance(one, pa.ChunkedArray) else one.dtype for one in native]
        assert outputs is not source.x or messages[0] == messages[1]


@pytest.mark.parametrize(
    "index",
    [[7, 7, -1, 0], list("abca"), pd.MultiIndex.from_tuples([(1, 2), (1, 2), (0, 1), (3, 3)]),
     pd.date_range("2026-01-01", periods=4, name="day")],
    ids=["twice", "text", "multi", "days"],
)  # fmt: skip
def test_an_index_is_kept(index):
    frame = pd.DataFrame({"kept": range(4), "ill": ["flu", "cold", "none", "flu"]}, index=index)
    released = channel(TURN).apply(frame, seed=0)
    assert released.equals(frame.assign(ill=["none", "flu", "cold", "none"]))
    assert released.index.names == frame.index.names
    assert frame["ill"].tolist() == ["flu", "cold", "none", "flu"]


@pytest.mark.parametrize("dtype", ["int64", "category"])
def test_names_of_columns_may_be_numbers(dtype):
    frame = pd.DataFrame({0: ["a", "b"] * 3, 1: pd.Series([1, 2, 3] * 2, dtype=dtype), "1x": 0})
    source = cpv.DiscreteSource.from_table(frame, sensitive=0, key=1)
    assert (source.names, source.x) == (("0", "1"), [1, 2, 3])
    turn = cpv.Channel(TURN, inputs=source.x, outputs=source.x, schema=source.schema)
    released = turn.apply(frame, seed=0)
    assert released.columns.tolist() == [0, 1, "1x"]
    assert released[1].tolist() == [2, 3, 1] * 2


@pytest.mark.parametrize("kind", MEMORY)
def test_letters_that_a_type_would_round_change_it(kind):
    halves = cpv.Channel(np.eye(2), inputs=[1, 2], outputs=[1.5, 2.5], schema=TableSchema(("age",)))
    released = halves.apply(made(kind, {"age": ("int", [2, 1])}), seed=0)
    assert column(released, "age") == [2.5, 1.5]


@pytest.mark.parametrize("kind", KINDS)
def test_no_records_are_released_as_none(kind):
    frame = made(kind, {name: (t, []) for name, (t, _) in TABLE.items()}, 1)
    assert ills(channel().apply(frame, seed=0)) == []


@pytest.mark.parametrize("encoder", ["x", "wx"])
@pytest.mark.parametrize("key", ["age", ["age", "kids"]])
def test_columns_are_found_by_name(encoder, key):
    table = pd.DataFrame(
        {"note": [f"n{i}" for i in range(40)], "kids": [0, 1, 1, 0] * 10,
         "age": [0, 0, 1, 1] * 10, "ill": ["yes", "no", "no", "yes", "no"] * 8},
        index=range(100, 140),
    )  # fmt: skip
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key=key)
    keep = cpv.hamming(source.x)
    same = cpv.PrivacyDistortion(source, keep, budget=0, encoder=encoder).solve().channel
    for names in (list(table), ["ill", "kids", "note", "age"]):
        assert same.apply(table[names], seed=0).equals(table[names])  # budget 0 changes nothing
    moved = cpv.Channel(
        np.full(same.matrix.shape, 1 / len(same.outputs)), inputs=same.inputs,
        outputs=same.outputs, schema=same.schema, encoder=encoder,
    )  # fmt: skip
    released, keys = moved.apply(table, seed=1), [key] if isinstance(key, str) else key
    assert released.drop(columns=keys).equals(table.drop(columns=keys))
    assert not released[keys].equals(table[keys])


def test_without_names_the_columns_are_counted_off():
    same = cpv.Channel(np.eye(2), inputs=[(1, "f"), (2, "m")], outputs=[(1, "f"), (2, "m")])
    frame = pd.DataFrame({"a": [1, 2], "b": ["f", "m"]})
    assert same.apply(frame, seed=0).equals(frame)
    assert collected(same.apply(pl.from_pandas(frame).lazy(), seed=0)).equals(pl.from_pandas(frame))
    with pytest.raises(cpv.InputError, match="3 columns where an input has 2"):
        same.apply(frame.assign(c=0), seed=0)


@pytest.mark.parametrize("letters", [["xy", "zw"], [5, 6]])
@pytest.mark.parametrize(("key", "encoder"), [(("a", "b"), "x"), (None, "x"), (None, "wx")])
def test_letters_that_do_not_fit_the_columns_are_refused(letters, key, encoder):
    frame = pd.DataFrame({"a": ["u", "v"], "b": ["f", "m"]})
    schema = TableSchema(key=key) if key else None
    with pytest.raises(cpv.InputError):  # rather than "x" in one column and "y" in the other
        cpv.Channel(
            np.eye(2), inputs=[("u", "f"), ("v", "m")], outputs=letters, schema=schema,
            encoder=encoder,
        ).apply(frame, seed=0)  # fmt: skip


def test_letters_that_the_source_never_had_are_warned_of_where_it_is_called():
    one = cpv.Channel(MATRIX, inputs=LETTERS, outputs=LETTERS, arbitrary=[True, False, False])
    with pytest.warns(UnseenValueWarning) as caught:
        one.apply(["cold", "flu", "cold"], seed=1)
    assert (caught[0].message.counts, caught[0].filename) == ({"cold": 2}, __file__)


# ---- lazy results --------------------------------------------------------------------------

FLU = pl.col("ill") == "flu"
QUERIES = {
    "filter": lambda f: f.filter(FLU),
    "filter kept": lambda f: f.filter(pl.col("id") % 7 == 0).select("ill"),
    "select kept": lambda f: f.select("id"),
    "head": lambda f: f.head(33),
    "slice tail": lambda f: f.slice(90, 250).tail(33),
    "filter head": lambda f: f.filter(FLU).head(9),
    "head filter": lambda f: f.head(99).filter(FLU).select("id"),
    "count": lambda f: f.group_by("ill").len().sort("ill"),
    "itself": lambda f: f.join(f, on=["id", "ill"]).select(pl.len()),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("row_id", rest_at_length(["id", None], 1))
def test_a_lazy_frame_is_one_release_however_it_is_asked(query, row_id, monkeypatch, tmp_path):
    monkeypatch.setattr(apply, "BATCH", 64)
    lazy = channel().apply(made("lazy", TABLE), seed=3, row_id=row_id)
    once, ask = lazy.collect(), QUERIES[query]
    assert lazy.collect().equals(once)
    for engine in ("in-memory", "streaming"):
        assert ask(lazy).collect(engine=engine).equals(ask(once.lazy()).collect())
    lazy.sink_parquet(tmp_path / "released.parquet")
    assert pl.read_parquet(tmp_path / "released.parquet").equals(once)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "bits", some_at_length([np.random.PCG64, np.random.SFC64], 1)
)  # one cannot jump
def test_a_generator_never_draws_twice_alike_and_a_release_always_does(kind, bits):
    rng = np.random.Generator(bits(3))
    released = channel().apply(made(kind, TABLE), seed=rng)
    first = ills(released)
    if kind in ("lazy", "dask"):
        assert ills(released) == first
        assert ills(released[["ill"]] if kind == "dask" else released.select("ill")) == first
    assert first != ills(channel().apply(made(kind, TABLE), seed=rng))


def test_a_reader_that_waits_leaves_its_connection_free():
    connection = duckdb.connect()
    relation = connection.from_arrow(made("pyarrow", TABLE))
    one, other = (channel().apply(relation, seed=seed) for seed in (1, 2))
    assert connection.sql("select 42").fetchall() == [(42,)]
    assert (one.read_all().num_rows, other.read_all().num_rows) == (400, 400)


def test_partitions_may_differ_in_their_categories():
    parts = [pd.DataFrame({"ill": pd.Categorical(v)}) for v in (["flu", "cold", "none"], ["flu"])]
    unknown = pd.Categorical([], categories=["__UNKNOWN_CATEGORIES__"])
    frame = dd.from_map(lambda i: parts[i], [0, 1], meta=parts[0].iloc[:0].assign(ill=unknown))
    assert ills(channel(TURN).apply(frame, seed=0)) == ["none", "flu", "cold", "none"]


# ---- records with names --------------------------------------------------------------------

IDS = {
    "int": list(range(1000, 1400)),
    "float": list(map(float, range(400))),
    "text": [f"p{i}" for i in range(400)],
    "date": [datetime.date(2026, 1, 1) + datetime.timedelta(i) for i in range(400)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", rest_at_length(IDS, 1))
def test_a_named_record_has_one_draw_wherever_it_stands(kind, names):
    columns = TABLE | {"id": (names, IDS[names])}
    first = ills(channel().apply(made("pandas", columns), seed=3, row_id="id"))
    some = np.random.default_rng(0).permutation(400)[:250]
    moved = {name: (t, [v[i] for i in some]) for name, (t, v) in columns.items()}
    for partitions in (1, 4) if kind == "dask" else (1,):
        released = channel().apply(made(kind, moved, partitions), seed=3, row_id="id")
        assert ills(released) == [first[i] for i in some]
    assert ills(channel().apply(made("pandas", columns), seed=4, row_id="id")) != first


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("number", "value"), [("int", 1003), ("int", None), ("float", None), ("float", NAN)]
)
def test_a_record_without_a_name_of_its_own_is_refused(kind, number, value):
    frame = made(kind, TABLE | {"id": (number, [*range(1000, 1399), value])})
    with pytest.raises(cpv.InputError, match="^row_id"):
        channel().apply(frame, seed=0, row_id="id")


def test_names_in_a_list_are_names():
    named = channel().apply(LETTERS, seed=0, row_id=[1.5, INF, "t"]).tolist()
    assert channel().apply(LETTERS[1:], seed=0, row_id=[INF, "t"]).tolist() == named[1:]


@pytest.mark.parametrize("name", ["r", 1.0, None, NAN, pd.NA, pd.NaT], ids=repr)
def test_a_list_of_names_lacks_and_repeats_none(name):
    with pytest.raises(cpv.InputError, match=r"^row_id\[2\]: "):
        channel().apply(LETTERS, seed=0, row_id=["r", 1, name])
    with pytest.raises(cpv.InputError, match="^row_id: 1 names; pass 3"):
        channel().apply(LETTERS, seed=0, row_id=[name])


@pytest.mark.parametrize("row_id", some_at_length([None, "id"], 1))
@pytest.mark.parametrize("kind", ["pandas", "lazy", "duckdb", "dask"])
def test_shares_are_the_rows_of_the_matrix(kind, row_id, monkeypatch):
    monkeypatch.setattr(apply, "BATCH", 2048)
    n, ill = 30_000, np.repeat(LETTERS, 10_000)
    frame = made(kind, {"ill": ("text", ill.tolist()), "id": ("int", list(range(n)))}, 3)
    drawn = np.array(ills(channel().apply(frame, seed=11, row_id=row_id)))
    for letter, row in zip(LETTERS, MATRIX, strict=True):
        counts = np.array([(drawn[ill == letter] == y).sum() for y in LETTERS])
        assert counts[row == 0].sum() == 0
        assert stats.chisquare(counts[row > 0], row[row > 0] * n / 3).pvalue > 1e-3
    pairs = drawn[ill == "none"].reshape(-1, 2)  # neighbours are independent
    assert stats.chi2_contingency(pd.crosstab(pairs[:, 0], pairs[:, 1])).pvalue > 1e-3


# ---- what cannot be released ---------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", ["gout", "", None])
def test_an_unknown_value_is_named_with_its_row_and_nothing_is_drawn(kind, value, monkeypatch):
    monkeypatch.setattr(apply, "BATCH", 100)
    ill, rng = list(TABLE["ill"][1]), np.random.default_rng(8)
    ill[250] = ill[300] = value
    with pytest.raises(UnknownValueError) as caught:
        channel().apply(made(kind, TABLE | {"ill": ("text", ill)}), seed=rng)
    assert (caught.value.argument, caught.value.where, caught.value.value) == ("values", 250, value)
    assert rng.random() == np.random.default_rng(8).random()


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_column_is_named_beside_the_others(kind):
    with pytest.raises(cpv.InputError, match="^values: no column 'sick'.*ill"):
        channel(key="sick").apply(made(kind, TABLE), seed=0)
    with pytest.raises(cpv.InputError, match="^row_id: no column 'name'.*ill"):
        channel().apply(made(kind, TABLE), seed=0, row_id="name")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("sort", "age"), [("list", [[0], [1]]), ("text", ["n0", "n1"])])
def test_a_column_of_another_type_is_refused(kind, sort, age):
    bins = {"age": Bins((0, 20, 40, 60))} if sort == "text" else {}
    with pytest.raises(cpv.InputError):
        channel(key="age", bins=bins).apply(made(kind, {"age": (sort, age)}), seed=0)


def test_a_table_that_no_engine_streams_is_refused():
    unknown = type("Frame", (), {"columns": ["ill"]})()
    with pytest.raises(cpv.InputError, match="^values: a Frame; pass a pandas"):
        channel().apply(unknown, seed=0)
    spark = SimpleNamespace(implementation=nw.Implementation.PYSPARK)
    with pytest.raises(cpv.InputError, match="^values: a lazy pyspark frame; collect it first"):
        apply.engine_of(spark)


@pytest.mark.filterwarnings("ignore::cvxprivacy.errors.UnseenValueWarning")
@pytest.mark.parametrize("kind", some_at_length(KINDS, 3))
def test_next_months_table_goes_through_the_same_channel(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(apply, "BATCH", 64)
    source = cpv.DiscreteSource.from_table(made("pandas", people()), **ASKED)
    measure = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source)
    one = cpv.PrivacyDistortion(source, measure, budget=0.3, encoder="wx").solve().channel
    again = cpv.Channel.load(one.save(tmp_path / "channel.json"))
    assert again.schema == one.schema
    later = people(300, seed=5) | {"id": ("int", list(range(300)))}
    here = one.apply(made("pandas", later), seed=2, row_id="id")
    there = collected(again.apply(made(kind, later), seed=2, row_id="id"))
    for name in ("ill", "age", "id"):
        assert column(there, name) == here[name].tolist()
    assert set(column(there, "age")) == {"[-20, 0)", "[0, 20)", "[20, 40)"}
