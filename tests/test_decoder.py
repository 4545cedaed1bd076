"""The user's side of a release: tables of u and z become tables of x̂, and channels keep it."""

from __future__ import annotations

import itertools
import json
import math

import narwhals as nw
import numpy as np
import pytest
from scipy.stats import chi2

import cvxprivacy as cpv
from cvxprivacy.tables.frames import plain
from tests.test_streaming import column, whole

WHY = "the extra `tables` is not installed"
pd = pytest.importorskip("pandas", reason=WHY)
pl = pytest.importorskip("polars", reason=WHY)
pa = pytest.importorskip("pyarrow", reason=WHY)
duckdb = pytest.importorskip("duckdb", reason=WHY)
dd = pytest.importorskip("dask.dataframe", reason=WHY)

KINDS = ["pandas", "polars", "pyarrow", "lazy", "duckdb", "dask"]


def people(records: int = 600, seed: int = 3):
    rng = np.random.default_rng(seed)
    town = rng.choice(["A", "B"], records, p=[0.6, 0.4])
    ill = np.where(rng.random(records) < 0.5, np.where(town == "A", "flu", "no"), "hiv")
    age = 10 * rng.choice([2, 3], records) + 10 * (ill == "flu")
    sex = np.where(rng.random(records) < 0.8, np.where(age > 20, "m", "f"), "f")
    return pd.DataFrame(
        {"id": np.arange(records), "age": age, "ill": ill, "sex": sex, "town": town}
    )


def frame_of(kind: str, frame=None):
    frame = people() if frame is None else frame
    if kind == "pandas":
        return frame
    if kind in ("polars", "lazy"):
        made = pl.from_pandas(frame)
        return made if kind == "polars" else made.lazy()
    if kind == "dask":
        return dd.from_pandas(frame, npartitions=3)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table if kind == "pyarrow" else duckdb.connect().from_arrow(table)


def problem(frame=None, *, key=("age", "sex"), side="town", budget=4.0, **options):
    """Return a problem whose user knows the town."""
    bins = options.pop("bins", None)
    missing = options.pop("missing", "refuse")
    source = cpv.DiscreteSource.from_table(
        people() if frame is None else frame,
        sensitive="ill", key=list(key), side=side, bins=bins, missing=missing,
    )  # fmt: skip
    parts = {name: {"age": "absolute_error"}.get(name, "hamming") for name in key}
    measure = cpv.per_attribute(parts, source)
    options = {"side_information": "decoder", **options}
    return cpv.RateDistortionEquivocation(source, measure, budget, **options)


@pytest.fixture(scope="module")
def channel() -> cpv.Channel:
    return problem().solve().channel


def truth(released, decoder: cpv.Decoder) -> list:
    """Return what f(u, z) makes of each record."""
    return [
        decoder(u, z) for u, z in zip(column(released, "U"), column(released, "town"), strict=True)
    ]


# ---- tables ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row_id", [None, "id"])
def test_a_table_is_released_and_read_in_its_kind(kind, row_id, channel):
    """u in place of the key columns; then x̂ = f(u, z) in place of u, other columns as they were."""
    frame = frame_of(kind)
    released = whole(channel.apply(frame, seed=11, row_id=row_id))
    assert list(nw.from_native(released, eager_only=True).columns) == ["id", "U", "ill", "town"]
    read = channel.decoder.apply(released)
    assert type(read) is type(released)
    known = nw.from_native(read, eager_only=True)
    assert sorted(known.columns) == ["age", "id", "ill", "sex", "town"]
    before = people()
    for name in ("id", "ill", "town"):
        assert known[name].to_list() == before[name].tolist()
    assert known["age"].dtype == nw.Int64
    pairs = list(zip(known["age"].to_list(), known["sex"].to_list(), strict=True))
    assert pairs == truth(released, channel.decoder)
    if kind != "dask" or row_id:  # the draws of a Dask frame are spawned for each partition
        plainly = channel.apply(people(), seed=11, row_id=row_id)
        assert column(released, "U") == plainly["U"].tolist()


def test_the_index_and_the_order_of_rows_are_kept(channel):
    frame = people().set_index(pd.Index([f"r{i % 5}" for i in range(600)], name="who"))
    frame = frame.sample(frac=1.0, random_state=1)
    released = channel.apply(frame, seed=1)
    read = channel.decoder.apply(released)
    assert released.index.equals(frame.index)
    assert read.index.equals(frame.index)
    assert read.index.name == "who"
    assert read["id"].tolist() == frame["id"].tolist()


def test_types_of_the_key_columns_come_back():
    """Integers, text, categories, booleans, floats, dates and a missing level."""
    rng = np.random.default_rng(2)
    days = pd.to_datetime(["2026-01-01", "2026-01-02"]).date
    columns = {
        "half": rng.choice([0.5, 1.5], 200),
        "flag": rng.choice([True, False], 200),
        "kind": pd.Categorical(rng.choice(["a", "b"], 200)),
        "day": rng.choice(np.array(days, dtype=object), 200),
        "gap": rng.choice(np.array(["x", None], dtype=object), 200),
    }
    for name, values in columns.items():
        frame = pd.DataFrame({name: values, "ill": rng.choice(["y", "n"], 200)})
        frame["town"] = rng.choice(["A", "B"], 200)
        made = problem(frame, key=(name,), budget=0.3, missing="level")
        found = made.solve().channel
        for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            released = found.apply(table, seed=1)
            read = plain(nw.from_native(found.decoder.apply(released), eager_only=True)[name])
            assert read == truth(released, found.decoder)
            assert set(read) <= set(made.source.x)


def test_side_information_of_several_columns_bins_and_missing_values():
    rng = np.random.default_rng(4)
    frame = people()
    frame["income"] = rng.integers(0, 40, 600) + 20 * (frame["town"] == "A")
    frame["club"] = rng.choice(np.array(["c", None], dtype=object), 600)
    options = {"bins": {"income": 30}, "missing": "level", "most_strategies": 64}
    made = problem(frame, key=("age",), side=["income", "club"], budget=4.0, **options)
    assert all(isinstance(z, tuple) for z in made.source.z)
    assert any(None in z for z in made.source.z)
    channel = made.solve(certify="warn").channel
    read = channel.decoder.apply(channel.apply(frame, seed=5))
    band = [f"[{30 * (i // 30)}, {30 * (i // 30) + 30})" for i in frame["income"].tolist()]
    club = [c if isinstance(c, str) else None for c in frame["club"]]
    z = list(zip(band, club, strict=True))
    u = channel.apply(frame, seed=5)["U"].tolist()
    assert read["age"].tolist() == [channel.decoder(a, b) for a, b in zip(u, z, strict=True)]
    assert read["income"].tolist() == frame["income"].tolist()


def test_no_rows_and_one_row(channel):
    for kind in KINDS:
        for count in (0, 1):
            frame = frame_of(kind, people().head(count)) if kind != "dask" or count else None
            if frame is None:
                continue
            read = channel.decoder.apply(whole(channel.apply(frame, seed=1)))
            assert len(nw.from_native(read, eager_only=True)) == count


def test_a_table_in_another_order_of_columns_and_with_a_key_column_left(channel):
    frame = people()[["town", "sex", "id", "age", "ill"]]
    released = channel.apply(frame, seed=1)
    assert released["U"].tolist() == channel.apply(people(), seed=1)["U"].tolist()
    read = channel.decoder.apply(released[["U", "town", "id"]].assign(age=-1))
    pairs = list(zip(read["age"], read["sex"], strict=True))
    assert pairs == truth(released, channel.decoder)


def test_the_released_u_tells_the_town_to_nobody_who_lacks_it(channel):
    """The encoder sees X alone: a column of towns is not even asked for."""
    frame = people().drop(columns="town")
    assert channel.apply(frame, seed=1)["U"].tolist() == (
        channel.apply(people(), seed=1)["U"].tolist()
    )


# ---- frequencies -------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["decoder", "both"])
@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_released_tables_have_the_laws_of_the_solution(case, encoder):
    """(x̂ | w, x, z) of 60,000 drawn records, by Pearson's χ²; distortion to four deviations."""
    made = problem(side_information=case, encoder=encoder, budget=3.0)
    solution = made.solve()
    channel, source = solution.channel, made.source
    frame = pd.concat([people()] * 100, ignore_index=True)
    read = channel.apply(frame, seed=2026)
    read = read if channel.decoder is None else channel.decoder.apply(read)
    statistic, freedom = 0.0, 0
    place = {label: i for i, label in enumerate(channel.inputs)}
    ages, sexes = read["age"].to_numpy(), read["sex"].to_numpy()
    for (ill, age, sex, town), rows in frame.groupby(["ill", "age", "sex", "town"]).indices.items():
        label = tuple({"w": ill, "x": (age, sex), "z": town}[name] for name in channel.encoder)
        row = channel.matrix[place[label if len(label) > 1 else label[0]]]
        law: dict = {}
        for u, mass in zip(channel.outputs, row, strict=True):
            x = u if channel.decoder is None else channel.decoder(u, town)
            law[x] = law.get(x, 0.0) + mass
        seen = list(zip(ages[rows].tolist(), sexes[rows].tolist(), strict=True))
        assert all(law.get(x, 0.0) > 0 for x in set(seen))
        expected = np.array([p * len(rows) for p in law.values()])
        counts = np.array([seen.count(x) for x in law])
        big = expected > 5
        statistic += float(((counts - expected)[big] ** 2 / expected[big]).sum())
        freedom += int(big.sum()) - 1
    assert freedom >= 10
    assert chi2.sf(statistic, freedom) > 1e-5
    price = np.abs(read["age"] - frame["age"]) + (read["sex"] != frame["sex"])
    error = 4 * price.std() / math.sqrt(len(frame))
    assert abs(price.mean() - float(solution.distortion)) < error
    assert source.records == 600


# ---- letters and sequences ---------------------------------------------------------------


def test_sequences_of_u_and_z(channel):
    decoder = channel.decoder
    u = channel.apply(list(zip(people()["age"], people()["sex"], strict=True)), seed=11)
    z = people()["town"]
    expected = [decoder(int(a), b) for a, b in zip(u, z, strict=True)]
    for us, zs in itertools.product(
        (u, u.tolist(), pd.Series(u), tuple(u.tolist()), u.astype(float)),
        (z, z.tolist(), z.to_numpy(), pl.Series(z.tolist())),
    ):
        assert decoder.apply(us, zs) == expected
    assert decoder.apply([], []) == []
    assert u.tolist() == channel.apply(people(), seed=11)["U"].tolist()


def test_a_decoder_made_by_hand():
    decoder = cpv.Decoder([["a", "b"], ["b", "b"]], side=["p", None])
    assert decoder(0, None) == "b"
    assert decoder.apply([1, 0], ["p", "p"]) == ["b", "a"]
    assert repr(decoder) == "Decoder(2 letters u, 2 values of Z)"
    assert decoder.to_frame().loc[0].tolist() == ["a", "b"]
    with pytest.raises(cpv.InputError, match="the decoder knows no columns; pass sequences"):
        decoder.apply(pd.DataFrame({"U": [0], "z": ["p"]}))


def test_the_strategies_shown_are_those_that_are_played(channel):
    shown = channel.decoder.to_frame()
    assert shown.shape == (len(channel.outputs), 2)
    for u, z in itertools.product(channel.outputs, ("A", "B")):
        assert shown.loc[u, z] == channel.decoder(u, z)


# ---- kept --------------------------------------------------------------------------------


def test_a_saved_channel_keeps_its_decoder(channel, tmp_path):
    kept = cpv.Channel.load(channel.save(tmp_path / "channel.json"))
    assert kept.decoder.table == channel.decoder.table
    assert kept.decoder.side == channel.decoder.side
    assert kept.outputs == channel.outputs
    frame = people()
    read = kept.decoder.apply(kept.apply(frame, seed=8))
    assert read.equals(channel.decoder.apply(channel.apply(frame, seed=8)))
    # a file of a channel from before there were decoders is one of a channel without
    path = tmp_path / "old.json"
    both = problem(side_information="both").solve().channel
    both.save(path)
    document = json.loads(path.read_text())
    document.pop("decoder")
    path.write_text(json.dumps(document))
    assert cpv.Channel.load(path).decoder is None
    assert cpv.Channel.load(path).encoder == "xz"
    assert cpv.Channel.load(path).apply(frame, seed=8).equals(both.apply(frame, seed=8))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("table", [[[20, "f"], [20, "f"]]]),  # fewer strategies than outputs
        ("table", "ab"),
        ("side", ["A"]),
        ("side", ["A", "A"]),
        ("side", None),
    ],
)
def test_a_broken_file_is_no_channel(key, value, channel, tmp_path):
    path = channel.save(tmp_path / "channel.json")
    document = json.loads(path.read_text())
    document["decoder"][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(cpv.InputError, match="is no channel"):
        cpv.Channel.load(path)


def test_estimates_are_made_from_the_column_of_u(channel):
    """EM from released letters u: a law of X under which they are as likely as can be."""
    released = channel.apply(pd.concat([people()] * 20, ignore_index=True), seed=5)
    for frame in (released, pl.from_pandas(released)):
        found = channel.estimate(frame, method="em")
        counts = np.bincount(released["U"], minlength=len(channel.outputs))
        assert found.law @ channel.matrix == pytest.approx(counts / counts.sum(), abs=0.02)
    counts = dict.fromkeys(channel.outputs, 10)
    assert channel.estimate(counts, method="em").law.sum() == pytest.approx(1.0)


# ---- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tables_that_cannot_be_read(kind, channel):
    def frame(**columns):
        base = channel.apply(people(40), seed=1).assign(**columns)
        return frame_of(kind, base.drop(columns=[k for k, v in columns.items() if v is None]))

    decoder = channel.decoder
    with pytest.raises(cpv.InputError, match=r"values: no column 'U'; there are id, ill, town"):
        decoder.apply(frame(U=None))
    with pytest.raises(cpv.InputError, match=r"values: no column 'town'; there are id, U, ill"):
        decoder.apply(frame(town=None))
    with pytest.raises(cpv.UnknownValueError, match=r"z\[0\]: 'Q'; use values that the source had"):
        decoder.apply(frame(town="Q"))
    many = len(channel.outputs)
    for wrong in (many, -1, 0.5, "0"):
        with pytest.raises(cpv.UnknownValueError, match=r"u\[0\]: .*; decode a table"):
            decoder.apply(frame(U=wrong))
    with pytest.raises(cpv.UnknownValueError, match=r"u\[0\]: None"):
        decoder.apply(frame(U=np.nan))
    with pytest.raises(cpv.InputError, match=r"values: a column 'U' is there already; rename it"):
        channel.apply(frame(age=20, sex="m"), seed=1)


@pytest.mark.parametrize("kind", ["lazy", "duckdb", "dask"])
def test_a_column_u_in_the_way_is_met_before_anything_is_drawn(kind, channel):
    with pytest.raises(cpv.InputError, match=r"values: a column 'U' is there already"):
        channel.apply(frame_of(kind, people().assign(U=1)), seed=1)
    frame = people()
    frame.loc[500, "age"] = 99
    with pytest.raises(cpv.UnknownValueError, match=r"values\[500\]: \(99, .* is no input"):
        channel.apply(frame_of(kind, frame), seed=1)


def test_a_lazy_table_of_u_is_to_be_collected_first(channel):
    released = channel.apply(frame_of("lazy"), seed=1)
    with pytest.raises(cpv.InputError, match="values: a lazy frame; collect it first"):
        channel.decoder.apply(released)
    with pytest.raises(cpv.InputError, match=r"a RecordBatchReader"):
        channel.decoder.apply(channel.apply(frame_of("duckdb"), seed=1))


def test_one_u_and_one_z(channel):
    decoder = channel.decoder
    with pytest.raises(cpv.InputError, match="side: missing; pass one z for each u"):
        decoder.apply([0, 1])
    with pytest.raises(cpv.UnknownValueError, match=r"z\[0\]: 'Q'"):
        decoder(0, "Q")
    with pytest.raises(cpv.UnknownValueError, match=r"u\[1\]: 999"):
        decoder.apply([0, 999], ["A", "B"])
    with pytest.raises(cpv.InputError, match=r"table\[0\]: 1 letters; pass one letter for each"):
        cpv.Decoder([["a"]], side=["p", "q"])
    with pytest.raises(cpv.InputError, match=r"side\[1\]: 'p' labels letters 0 and 1"):
        cpv.Decoder([["a", "b"]], side=["p", "p"])
    rule = cpv.Decoder([["a"]], side=["p"])
    with pytest.raises(cpv.InputError, match=r"decoder: 1 strategies; pass one for each output"):
        cpv.Channel([[0.5, 0.5]], inputs=["a"], outputs=[0, 1], decoder=rule)


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_an_encoder_with_z_asks_for_its_column_and_its_letters(encoder):
    channel = problem(side_information="both", encoder=encoder).solve().channel
    assert channel.encoder == encoder + "z"
    frame = people(30)
    with pytest.raises(cpv.InputError, match=r"values: no column 'town'; there are"):
        channel.apply(frame.drop(columns="town"), seed=1)
    with pytest.raises(cpv.UnknownValueError, match=r"values\[4\]: .*'Q'\) is no input"):
        channel.apply(frame.assign(town=["A"] * 4 + ["Q"] * 26), seed=1)
    for kind in KINDS:
        released = whole(channel.apply(frame_of(kind, frame), seed=1, row_id="id"))
        assert column(released, "town") == frame["town"].tolist()
        assert column(released, "age") == channel.apply(frame, seed=1, row_id="id")["age"].tolist()
