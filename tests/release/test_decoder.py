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
from cvxprivacy.errors import UnknownValueError
from cvxprivacy.tables.engines import python_values
from tests.engines import KINDS, collected, column, converted, pa, pd, pl
from tests.lengths import rest_at_length, some_at_length


def people(records: int = 600, seed: int = 3):
    rng = np.random.default_rng(seed)
    town = rng.choice(["A", "B"], records, p=[0.6, 0.4])
    ill = np.where(rng.random(records) < 0.5, np.where(town == "A", "flu", "no"), "hiv")
    age = 10 * rng.choice([2, 3], records) + 10 * (ill == "flu")
    sex = np.where(rng.random(records) < 0.8, np.where(age > 20, "m", "f"), "f")
    return pd.DataFrame(
        {"id": np.arange(records), "age": age, "ill": ill, "sex": sex, "town": town}
    )


def problem(frame=None, *, key=("age", "sex"), side="town", budget=4.0, **options):
    """Return a problem whose user knows the town."""
    table = {"bins": options.pop("bins", None), "missing": options.pop("missing", "refuse")}
    source = cpv.DiscreteSource.from_table(
        people() if frame is None else frame, sensitive="ill", key=list(key), side=side, **table
    )
    parts = {name: {"age": "absolute_error"}.get(name, "hamming") for name in key}
    options = {"side_information": "decoder", **options}
    return cpv.RateDistortionEquivocation(
        source, cpv.per_attribute(parts, source), budget, **options
    )


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
@pytest.mark.parametrize("row_id", some_at_length([None, "id"], 1))
def test_a_table_is_released_and_read_in_its_kind(kind, row_id, channel):
    """u in place of the key columns; then x̂ = f(u, z) in place of u, other columns as they were."""
    released = collected(channel.apply(converted(kind, people()), seed=11, row_id=row_id))
    assert list(nw.from_native(released, eager_only=True).columns) == ["id", "U", "ill", "town"]
    read = channel.decoder.apply(released)
    assert type(read) is type(released)
    expected = nw.from_native(read, eager_only=True)
    assert expected.columns == ["id", "age", "sex", "ill", "town"]
    before = people()
    for name in ("id", "ill", "town"):
        assert expected[name].to_list() == before[name].tolist()
    assert expected["age"].dtype == nw.Int64
    pairs = list(zip(expected["age"].to_list(), expected["sex"].to_list(), strict=True))
    assert pairs == truth(released, channel.decoder)
    if kind != "dask" or row_id:  # the draws of a Dask frame are spawned for each partition
        plainly = channel.apply(people(), seed=11, row_id=row_id)
        assert column(released, "U") == plainly["U"].tolist()
    for count in (0, 1) if kind != "dask" else (1,):
        few = channel.apply(converted(kind, people().head(count)), seed=1)
        read = channel.decoder.apply(collected(few))
        assert len(nw.from_native(read, eager_only=True)) == count


def test_the_index_and_the_order_of_rows_are_kept(channel):
    frame = people().set_index(pd.Index([f"r{i % 5}" for i in range(600)], name="who"))
    frame = frame.sample(frac=1.0, random_state=1)
    released = channel.apply(frame, seed=1)
    read = channel.decoder.apply(released)
    for table in (released, read):
        assert table.index.equals(frame.index)
        assert table.index.name == "who"
    assert read["id"].tolist() == frame["id"].tolist()


def test_types_of_the_key_columns_come_back():
    """Floats, booleans, categories, dates and a missing level."""
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
        outcome = made.solve().channel
        for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            released = outcome.apply(table, seed=1)
            read = nw.from_native(outcome.decoder.apply(released), eager_only=True)[name]
            assert python_values(read) == truth(released, outcome.decoder)
            assert set(python_values(read)) <= set(made.source.x)


def test_side_information_of_several_columns_bins_and_missing_values():
    rng = np.random.default_rng(4)
    frame = people()
    frame["income"] = rng.integers(0, 40, 600) + 20 * (frame["town"] == "A")
    frame["club"] = rng.choice(np.array(["c", None], dtype=object), 600)
    options = {"bins": {"income": 30}, "missing": "level", "most_strategies": 64}
    made = problem(frame, key=("age",), side=["income", "club"], **options)
    channel = made.solve(certify="warn").channel
    released = channel.apply(frame, seed=5)
    read = channel.decoder.apply(released)
    band = [f"[{30 * (i // 30)}, {30 * (i // 30) + 30})" for i in frame["income"].tolist()]
    club = [c if isinstance(c, str) else None for c in frame["club"]]
    records = zip(released["U"].tolist(), zip(band, club, strict=True), strict=True)
    assert read["age"].tolist() == [channel.decoder(u, z) for u, z in records]
    assert read["income"].tolist() == frame["income"].tolist()


def test_a_table_in_another_order_of_columns_and_with_a_key_column_left(channel):
    """The encoder sees X alone: a column of towns is not even asked for."""
    released = channel.apply(people()[["town", "sex", "id", "age", "ill"]], seed=1)
    assert released.columns.tolist() == ["town", "id", "U", "ill"]
    without = channel.apply(people().drop(columns="town"), seed=1)
    assert released["U"].tolist() == without["U"].tolist()
    read = channel.decoder.apply(released[["U", "town", "id"]].assign(age=-1))
    assert read.columns.tolist() == ["age", "sex", "town", "id"]
    assert list(zip(read["age"], read["sex"], strict=True)) == truth(released, channel.decoder)


@pytest.mark.parametrize(
    ("case", "encoder"),
    rest_at_length([("decoder", "wx"), ("both", "x"), ("decoder", "x"), ("both", "wx")], 2),
)
def test_released_tables_have_the_laws_of_the_solution(case, encoder):
    """(x̂ | w, x, z) of 60,000 drawn records, by Pearson's χ²; distortion to four deviations."""
    made = problem(side_information=case, encoder=encoder, budget=3.0)
    solution = made.solve()
    channel = solution.channel
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
        values = list(zip(ages[rows].tolist(), sexes[rows].tolist(), strict=True))
        assert all(law.get(x, 0.0) > 0 for x in set(values))
        expected = np.array([p * len(rows) for p in law.values()])
        counts = np.array([values.count(x) for x in law])
        big = expected > 5
        statistic += float(((counts - expected)[big] ** 2 / expected[big]).sum())
        freedom += int(big.sum()) - 1
    assert freedom >= 10
    assert chi2.sf(statistic, freedom) > 1e-5
    price = np.abs(read["age"] - frame["age"]) + (read["sex"] != frame["sex"])
    error = 4 * price.std() / math.sqrt(len(frame))
    assert abs(price.mean() - float(solution.distortion)) < error


# ---- letters and sequences ---------------------------------------------------------------


def test_sequences_of_u_and_z(channel):
    decoder = channel.decoder
    u = channel.apply(list(zip(people()["age"], people()["sex"], strict=True)), seed=11)
    z = people()["town"]
    expected = [decoder(int(a), b) for a, b in zip(u, z, strict=True)]
    for us, zs in itertools.product(
        (u, pd.Series(u), tuple(u.tolist()), u.astype(float)),
        (z, z.tolist(), z.to_numpy(), pl.Series(z.tolist())),
    ):
        assert decoder.apply(us, zs) == expected
    assert decoder.apply([], []) == []
    assert u.tolist() == channel.apply(people(), seed=11)["U"].tolist()


def test_a_decoder_made_by_hand(channel):
    decoder = cpv.Decoder([["a", "b"], ["b", "b"]], side=["p", None])
    assert decoder(0, None) == "b"
    assert decoder.apply([1, 0], ["p", "p"]) == ["b", "a"]
    assert repr(decoder) == "Decoder(2 letters u, 2 values of Z)"
    with pytest.raises(cpv.InputError, match="the decoder knows no columns; pass sequences"):
        decoder.apply(pd.DataFrame({"U": [0], "z": ["p"]}))
    shown = channel.decoder.to_frame()
    assert shown.shape == (len(channel.outputs), 2)
    for u, z in itertools.product(channel.outputs, ("A", "B")):
        assert shown.loc[u, z] == channel.decoder(u, z)


def test_a_saved_channel_keeps_its_decoder(channel, tmp_path):
    path = channel.named("V").save(tmp_path / "channel.json")
    kept = cpv.Channel.load(path)
    assert (kept.decoder.table, kept.decoder.side) == (channel.decoder.table, channel.decoder.side)
    released = kept.apply(people(), seed=8)
    assert released.columns.tolist() == ["id", "V", "ill", "town"]
    expected = channel.decoder.apply(channel.apply(people(), seed=8))
    assert kept.decoder.apply(released).equals(expected)
    first = cpv.Channel(np.eye(len(channel.inputs)), inputs=channel.inputs, outputs=channel.inputs)
    composed = first.then(channel)
    assert (composed.decoder, composed.outputs) == (channel.decoder, channel.outputs)
    both = problem(side_information="both").solve().channel
    again = cpv.Channel.load(both.save(path))
    assert (again.decoder, again.encoder) == (None, "xz")
    assert again.apply(people(), seed=8).equals(both.apply(people(), seed=8))


@pytest.mark.parametrize(
    ("key", "value"),
    [("table", [[[20, "f"], [20, "f"]]]),  # fewer strategies than outputs
     ("table", "ab"), ("side", ["A"]), ("side", ["A", "A"]), ("side", None)],
)  # fmt: skip
def test_a_broken_file_is_no_channel(key, value, channel, tmp_path):
    path = channel.save(tmp_path / "channel.json")
    document = json.loads(path.read_text())
    document["decoder"][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(cpv.InputError, match="is no channel"):
        cpv.Channel.load(path)


# ---- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tables_that_cannot_be_read(kind, channel):
    def frame(**columns):
        base = channel.apply(people(40), seed=1).assign(**columns)
        return converted(kind, base.drop(columns=[k for k, v in columns.items() if v is None]))

    decoder = channel.decoder
    with pytest.raises(cpv.InputError, match=r"values: no column 'U'; there are id, ill, town"):
        decoder.apply(frame(U=None))
    with pytest.raises(cpv.InputError, match=r"values: no column 'town'"):
        decoder.apply(frame(town=None))
    with pytest.raises(UnknownValueError, match=r"z\[0\]: 'Q'; use values that the source had"):
        decoder.apply(frame(town="Q"))
    for wrong in (len(channel.outputs), -1, 0.5, "0", np.nan):
        with pytest.raises(UnknownValueError, match=r"u\[0\]: .*; decode a table"):
            decoder.apply(frame(U=wrong))


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_u_in_the_way_is_met_before_anything_is_drawn(kind, channel):
    with pytest.raises(cpv.InputError, match=r"values: a column 'U' is there already; rename it"):
        channel.apply(converted(kind, people().assign(U=1)), seed=1)
    frame = people()
    frame.loc[500, "age"] = 99
    with pytest.raises(UnknownValueError, match=r"values\[500\]: \(99, .* is no input"):
        channel.apply(converted(kind, frame), seed=1)


def test_a_lazy_table_of_u_is_to_be_collected_first(channel):
    released = channel.apply(converted("lazy", people()), seed=1)
    with pytest.raises(cpv.InputError, match="values: a lazy LazyFrame; collect it first"):
        channel.decoder.apply(released)
    with pytest.raises(cpv.InputError, match=r"a RecordBatchReader"):
        channel.decoder.apply(channel.apply(converted("duckdb", people()), seed=1))


@pytest.mark.parametrize(
    ("call", "argument", "where"),
    [
        (lambda d: d.apply([0, 1]), "side", None),
        (lambda d: d.apply([0, 1], ["A"]), "side", None),
        (lambda d: d.apply("01", ["A", "B"]), "values", None),
        (lambda d: d(0, "Q"), "z", 0),
        (lambda d: d.apply([0, 999], ["A", "B"]), "u", 1),
        (lambda d: cpv.Decoder(5, side=["p"]), "table", None),
        (lambda d: cpv.Decoder([["a"]], side=["p", "q"]), "table", 0),
        (lambda d: cpv.Decoder([["a", "b"]], side=["p", "p"]), "side", 1),
        (lambda d: cpv.Channel([[0.5, 0.5]], inputs=["a"], outputs=[0, 1],
                               decoder=cpv.Decoder([["a"]], side=["p"])), "decoder", None),
        (lambda d: cpv.Channel([[1.0]], inputs=[3], outputs=[0], decoder=cpv.Decoder(
            [["a"]], side=["p"])).apply(pd.DataFrame({"x": [3]}), seed=1), "values", None),
    ],
)  # fmt: skip
def test_what_decodes_nothing_is_refused(call, argument, where, channel):
    with pytest.raises(cpv.InputError) as caught:
        call(channel.decoder)
    assert (caught.value.argument, caught.value.where) == (argument, where)


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_an_encoder_with_z_asks_for_its_column_and_its_letters(encoder):
    channel = problem(side_information="both", encoder=encoder).solve().channel
    assert channel.encoder == encoder + "z"
    frame = people(30)
    with pytest.raises(cpv.InputError, match=r"values: no column 'town'; there are"):
        channel.apply(frame.drop(columns="town"), seed=1)
    with pytest.raises(UnknownValueError, match=r"values\[4\]: .*'Q'\) is no input"):
        channel.apply(frame.assign(town=["A"] * 4 + ["Q"] * 26), seed=1)
    here = channel.apply(frame, seed=1, row_id="id")
    for kind in KINDS:
        released = collected(channel.apply(converted(kind, frame), seed=1, row_id="id"))
        assert column(released, "town") == frame["town"].tolist()
        assert column(released, "age") == here["age"].tolist()
