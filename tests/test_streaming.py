"""Channels applied to tables of every kind, streamed or not, and kept from month to month."""

from __future__ import annotations

import csv
import datetime
import json
import stat

import narwhals as nw
import numpy as np
import pytest
from scipy import stats

import cvxprivacy as cpv
from cvxprivacy.release import streaming
from cvxprivacy.tables import frames
from tests.test_frames import ASKED, INF, KINDS, MEMORY, NAN, dd, duckdb, made, pa, pd, people, pl

LETTERS = ["cold", "flu", "none"]
MATRIX = np.array([[0.5, 0.3, 0.2], [0.1, 0.9, 0.0], [0.25, 0.25, 0.5]])
TURN = np.roll(np.eye(3), 1, axis=1)
TABLE = people(400) | {"id": ("int", list(range(1000, 1400)))}


def channel(matrix=MATRIX, key="ill", **options):
    coding = cpv.Coding(key=(key,), **options)
    return cpv.Channel(matrix, inputs=LETTERS, outputs=LETTERS, coding=coding)


def whole(released):
    """Return a frame in memory."""
    if isinstance(released, pl.LazyFrame):
        return released.collect()
    if isinstance(released, pa.RecordBatchReader):
        return released.read_all()
    return released.compute() if hasattr(released, "compute") else released


def column(released, name: str = "ill") -> list:
    return nw.from_native(whole(released), eager_only=True)[name].to_list()


def types(frame) -> dict:
    return dict(nw.from_native(frame).collect_schema())


# ---- what comes back -----------------------------------------------------------------------

RETURNED = dict(zip(MEMORY, (pd.DataFrame, pl.DataFrame, pa.Table), strict=True)) | {
    "lazy": pl.LazyFrame, "duckdb": pa.RecordBatchReader, "dask": dd.DataFrame,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row_id", [None, "id"])
def test_a_frame_comes_back_in_its_kind_with_its_key_replaced(kind, row_id):
    frame = made(kind, TABLE)
    before = whole(frame.to_arrow_reader() if kind == "duckdb" else frame)
    released = channel().apply(frame, seed=3, row_id=row_id)
    assert isinstance(released, RETURNED[kind])
    declared = types(released) if kind in ("lazy", "dask") else types(before)
    after = whole(released)
    assert types(after) == types(before) == declared
    assert list(types(after)) == list(TABLE)
    for name in TABLE:
        assert (column(after, name) == column(before, name)) == (name != "ill")
    assert column(channel().apply(made(kind, TABLE), seed=3, row_id=row_id)) == column(after)
    if kind != "dask" or row_id:  # the draws of a Dask frame are spawned for each partition
        pandas = channel().apply(made("pandas", TABLE), seed=3, row_id=row_id)
        assert column(after) == column(pandas)


@pytest.mark.parametrize("kind", ["lazy", "duckdb"])
@pytest.mark.parametrize("batch", [1, 7, 399, 400])
def test_batches_change_nothing(kind, batch, monkeypatch):
    expected = column(channel().apply(made("polars", TABLE), seed=np.random.default_rng(3)))
    monkeypatch.setattr(streaming, "BATCH", batch)
    sizes, released = [], cpv.Channel.released
    monkeypatch.setattr(
        cpv.Channel, "released", lambda *a, **k: sizes.append(len(a[1])) or released(*a, **k)
    )
    found = channel().apply(made(kind, TABLE), seed=np.random.default_rng(3))
    assert column(found) == expected
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
    for outputs in [source.x, *([["other", *source.x[1:]]] if source.x[0] == "a" else [])]:
        one = cpv.Channel(
            np.eye(len(source.x)), inputs=source.x, outputs=outputs, coding=source.coding
        )
        found = one.apply((series if alone else frame).to_native(), seed=0)
        found = nw.from_native(found, allow_series=True)
        found = found if alone else found["x"]
        expected = [outputs[source.x.index(v)] for v in frames.plain(series)]
        assert frames.plain(found) == expected
        native = (found.to_native(), series.to_native())
        said = [one.type if isinstance(one, pa.ChunkedArray) else one.dtype for one in native]
        assert outputs is not source.x or said[0] == said[1]


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


@pytest.mark.parametrize("kind", KINDS)
def test_no_records_are_released_as_none(kind):
    frame = made(kind, {name: (t, []) for name, (t, _) in TABLE.items()}, 1)
    assert column(channel().apply(frame, seed=0)) == []


@pytest.mark.parametrize("letters", [["xy", "zw"], [5, 6]])
@pytest.mark.parametrize(("key", "encoder"), [(("a", "b"), "x"), (None, "x"), (None, "wx")])
def test_letters_that_do_not_fit_the_columns_are_refused(letters, key, encoder):
    frame = pd.DataFrame({"a": ["u", "v"], "b": ["f", "m"]})
    coding = cpv.Coding(key=key) if key else None
    with pytest.raises(cpv.InputError):  # rather than "x" in one column and "y" in the other
        cpv.Channel(
            np.eye(2), inputs=[("u", "f"), ("v", "m")], outputs=letters, coding=coding,
            encoder=encoder,
        ).apply(frame, seed=0)  # fmt: skip


# ---- lazy results --------------------------------------------------------------------------

FLU = pl.col("ill") == "flu"
QUERIES = {
    "filter": lambda f: f.filter(FLU),
    "filter kept": lambda f: f.filter(pl.col("id") % 7 == 0).select("ill"),
    "select": lambda f: f.select("age", "ill"),
    "select kept": lambda f: f.select("id"),
    "head": lambda f: f.head(33),
    "slice tail": lambda f: f.slice(90, 250).tail(33),
    "filter head": lambda f: f.filter(FLU).head(9),
    "head filter": lambda f: f.head(99).filter(FLU).select("id"),
    "count": lambda f: f.group_by("ill").len().sort("ill"),
    "itself": lambda f: f.join(f, on=["id", "ill"]).select(pl.len()),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("row_id", [None, "id"])
def test_a_lazy_frame_is_one_release_however_it_is_asked(query, row_id, monkeypatch, tmp_path):
    monkeypatch.setattr(streaming, "BATCH", 64)
    lazy = channel().apply(made("lazy", TABLE), seed=3, row_id=row_id)
    once, ask = lazy.collect(), QUERIES[query]
    assert lazy.collect().equals(once)
    for engine in ("in-memory", "streaming"):
        assert ask(lazy).collect(engine=engine).equals(ask(once.lazy()).collect())
    lazy.sink_parquet(tmp_path / "released.parquet")
    assert pl.read_parquet(tmp_path / "released.parquet").equals(once)


@pytest.mark.parametrize("kind", ["lazy", "dask"])
@pytest.mark.parametrize("generator", [False, True])
def test_a_frame_is_one_release_however_often_it_is_computed(kind, generator):
    seed = np.random.default_rng(3) if generator else 3
    released = channel().apply(made(kind, TABLE), seed=seed)
    once = column(released)
    assert column(released) == once
    assert column(released[["ill"]] if kind == "dask" else released.select("ill")) == once


@pytest.mark.parametrize("kind", KINDS)
def test_a_generator_never_draws_twice_alike(kind):
    rng = np.random.default_rng(3)
    first = column(channel().apply(made(kind, TABLE), seed=rng))
    assert first != column(channel().apply(made(kind, TABLE), seed=rng))


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
    assert column(channel(TURN).apply(frame, seed=0)) == ["none", "flu", "cold", "none"]


# ---- records with names --------------------------------------------------------------------

IDS = {
    "int": list(range(1000, 1400)),
    "float": list(map(float, range(400))),
    "text": [f"p{i}" for i in range(400)],
    "date": [datetime.date(2026, 1, 1) + datetime.timedelta(i) for i in range(400)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", IDS)
def test_a_named_record_has_one_draw_wherever_it_stands(kind, names):
    columns = TABLE | {"id": (names, IDS[names])}
    first = column(channel().apply(made("pandas", columns), seed=3, row_id="id"))
    some = np.random.default_rng(0).permutation(400)[:250]
    moved = {name: (t, [v[i] for i in some]) for name, (t, v) in columns.items()}
    for partitions in (1, 4) if kind == "dask" else (1,):
        released = channel().apply(made(kind, moved, partitions), seed=3, row_id="id")
        assert column(released) == [first[i] for i in some]
    assert column(channel().apply(made("pandas", columns), seed=4, row_id="id")) != first


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


# ---- what is drawn -------------------------------------------------------------------------


@pytest.mark.parametrize("row_id", [None, "id"])
@pytest.mark.parametrize("kind", ["pandas", "lazy", "duckdb", "dask"])
def test_shares_are_the_rows_of_the_matrix(kind, row_id, monkeypatch):
    monkeypatch.setattr(streaming, "BATCH", 2048)
    n, ill = 30_000, np.repeat(LETTERS, 10_000)
    frame = made(kind, {"ill": ("text", ill.tolist()), "id": ("int", list(range(n)))}, 3)
    drawn = np.array(column(channel().apply(frame, seed=11, row_id=row_id)))
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
    monkeypatch.setattr(streaming, "BATCH", 100)
    ill, rng = list(TABLE["ill"][1]), np.random.default_rng(8)
    ill[250] = ill[300] = value
    with pytest.raises(cpv.UnknownValueError) as caught:
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
    bins = {"age": cpv.Bins((0, 20, 40, 60))} if sort == "text" else {}
    with pytest.raises(cpv.InputError):
        channel(key="age", bins=bins).apply(made(kind, {"age": (sort, age)}), seed=0)


# ---- kept and passed on --------------------------------------------------------------------

DAY, HOUR = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    "letters",
    [["a", "é☃"], [1, 2**70], [0.1, 1e-300], [True, False], ["a", None], [(1, "f"), (2, None)],
     [("u", (1, "f")), ("v", (2.5, True))], [DAY, HOUR], [(DAY, 1), ()]],
    ids=str,
)  # fmt: skip
def test_a_channel_is_read_as_it_was_saved(letters, tmp_path):
    matrix = [[0.1, 0.9], [1 / 3, 2 / 3]]
    one = cpv.Channel(matrix, inputs=letters, outputs=letters, arbitrary=[True, False])
    path = one.save(tmp_path / "channel.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = cpv.Channel.load(path)
    assert repr((again.inputs, again.outputs)) == repr((letters, letters))
    assert again.matrix.tolist() == matrix
    assert (again.arbitrary.tolist(), again.p_input, again.coding) == ([True, False], None, None)


INSTANT = pd.Timestamp("2026-01-01") + pd.Timedelta(1)  # a nanosecond


@pytest.mark.parametrize("label", [np.int64(3), INF, NAN, b"a", INSTANT, "\ud800"], ids=repr)
def test_letters_come_back_or_are_refused(label, tmp_path):
    one = cpv.Channel([[1.0]], inputs=[label], outputs=["x"])
    try:
        path = one.save(tmp_path / "channel.json")
    except cpv.InputError:
        assert list(tmp_path.iterdir()) == []
        assert not isinstance(label, np.int64)  # a number like any other
    else:
        (again,) = cpv.Channel.load(path).inputs
        assert again == label or again != again != label


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return an encoder of (w, x), with bands and a missing level, and the text of its file."""
    source = cpv.DiscreteSource.from_table(made("pandas", people()), **ASKED)
    measure = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source)
    one = cpv.PrivacyDistortion(source, measure, budget=0.3, encoder="wx").solve().channel
    return one, one.save(tmp_path_factory.mktemp("saved") / "channel.json").read_text()


@pytest.mark.filterwarnings("ignore::cvxprivacy.UnseenValueWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_next_months_table_goes_through_the_same_channel(kind, saved, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "BATCH", 64)
    one, path = saved[0], tmp_path / "channel.json"
    path.write_text(saved[1])
    again = cpv.Channel.load(path)
    assert again.coding == one.coding
    later = people(300, seed=5) | {"id": ("int", list(range(300)))}
    here = one.apply(made("pandas", later), seed=2, row_id="id")
    there = whole(again.apply(made(kind, later), seed=2, row_id="id"))
    for name in ("ill", "age", "id"):
        assert column(there, name) == here[name].tolist()
    assert set(column(there, "age")) == {"[-20, 0)", "[0, 20)", "[20, 40)"}


DAMAGE = [
    {"schema": "another"}, {"schema": ...}, {"inputs": 5}, {"inputs": []}, {"inputs": "abc"},
    {"outputs": 5}, {"outputs": ["ab"] * 9}, {"matrix": 5},
    {"matrix": [[10**400]]}, {"matrix": [[0.5] * 9] * 27}, {"p_input": [1]}, {"p_input": ["no"]},
    {"arbitrary": ["no"] * 27}, {"arbitrary": 5}, {"encoder": "y"}, {"coding": []}, {"coding": {}},
    {"coding": {"key": "age"}}, {"coding": {"key": []}}, {"coding": {"key": [5]}},
    {"coding": {"bins": 5}}, {"coding": {"bins": [["age", [1]]]}}, {"coding": {"missing": "x"}},
    {"coding": {"bins": [["age", ["a", "b"]]]}}, {"coding": {"weights": 5}},
    {"inputs": [{"date": 5}]}, {"inputs": [{"when": "x"}]},
]  # fmt: skip


@pytest.mark.parametrize(
    "damage", [*DAMAGE, "cut", "empty", "deep", "bytes"], ids=lambda d: str(d)[:60]
)
def test_a_damaged_file_is_no_channel(damage, saved, tmp_path):
    text, path = saved[1], tmp_path / "channel.json"
    if isinstance(damage, dict):
        document, ((field, value),) = json.loads(text), damage.items()
        document[field] = document[field] | value if value and isinstance(value, dict) else value
        text = json.dumps({k: v for k, v in document.items() if v is not ...})
    text = {"cut": text[:-20], "empty": "", "deep": "[" * 100_000}.get(str(damage), text)
    path.write_bytes(b"\xff\xfe\x00" if damage == "bytes" else text.encode())
    with pytest.raises(cpv.InputError, match="^path: .*channel.json"):
        cpv.Channel.load(path)


def test_one_channel_after_another_is_their_product():
    first = cpv.Channel(
        MATRIX, inputs="abc", outputs="rst", p_input=[0.2, 0.7, 0.1], arbitrary=[0, 0, 1],
        coding=cpv.Coding(key=("x",)),
    )  # fmt: skip
    second = cpv.Channel([[1, 0], [0.5, 0.5], [0.3, 0.7], [0, 1]], inputs="tsrq", outputs="yn")
    both, expected = first.then(second), MATRIX @ [[0.3, 0.7], [0.5, 0.5], [1, 0]]
    assert both.matrix == pytest.approx(expected, abs=1e-15)
    assert (both.inputs, both.outputs, both.coding) == (list("abc"), list("yn"), first.coding)
    assert both.arbitrary.tolist() == [False, False, True]
    twice = second.apply(first.apply(["a"] * 20_000, seed=1), seed=2)
    assert stats.binomtest(int((twice == "y").sum()), 20_000, expected[0, 0]).pvalue > 1e-3
    with pytest.raises(cpv.UnknownValueError, match=r"^other\[0\]: 'y'"):
        second.then(first)


def test_the_posterior_is_bayes_rule():
    matrix = [[0.5, 0.5, 0], [0.25, 0.75, 0]]
    one = cpv.Channel(matrix, inputs="ab", outputs="rst", p_input=[0.2, 0.8])
    assert one.posterior[:2] == pytest.approx(np.array([[1 / 3, 2 / 3], [1 / 7, 6 / 7]]))
    assert np.isnan(one.posterior[2]).all()
    with pytest.raises(cpv.InputError, match="^p_input"):
        _ = cpv.Channel(matrix, inputs="ab", outputs="rst").posterior


def test_sdcmicro_gets_rows_and_columns_in_one_order(tmp_path):
    letters, path = [("[0, 20)", "f"), ("[0, 20)", None), ('say "hi"', "m")], tmp_path / "pd.csv"
    cpv.Channel(MATRIX, inputs=letters, outputs=letters[::-1]).to_sdcmicro(path)
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["", "[0, 20)|f", "[0, 20)|NA", 'say "hi"|m']
    assert [row[0] for row in rows] == header[1:]
    assert [list(map(float, row[1:])) for row in rows] == MATRIX[:, ::-1].tolist()


@pytest.mark.parametrize(("inputs", "outputs"), [(["a|b", ("a", "b")],) * 2, ("ab", "ac")])
def test_sdcmicro_takes_no_other_letters(inputs, outputs, tmp_path):
    with pytest.raises(cpv.InputError):
        cpv.Channel(np.eye(2), inputs=inputs, outputs=outputs).to_sdcmicro(tmp_path / "pd.csv")
    assert list(tmp_path.iterdir()) == []
