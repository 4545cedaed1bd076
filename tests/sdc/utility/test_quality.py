"""Figures before and after: enumeration, other ways to compute them, draws of public tables."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import norm

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.tables import Bins, TableSchema
from cvxprivacy.typing import CountedChannel
from cvxprivacy_sdc.utility.quality import KINDS, _statistics, _Tables
from tests.engines import KINDS as ENGINES, converted
from tests.lengths import some_at_length, some_weekly
from tests.public_tables import real_folder
from tests.sdc.audits import refusal

AGES = [20, 40, 60]
SKEWED = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.3, 0.1, 0.6]])  # no transpose is it
TURNED = np.array([[0.8, 0.2], [0.3, 0.7]])


def people(records=240, seed=3):
    rng = np.random.default_rng(seed)
    age, sex = rng.choice(AGES, records, p=[0.5, 0.3, 0.2]), rng.choice(["f", "m"], records)
    debts = rng.poisson(age / 40 + (sex == "m"))
    ill = np.where(rng.random(records) < age / 100, "yes", "no")
    return pd.DataFrame({"ill": ill, "debts": debts.clip(max=3), "age": age, "sex": sex})


def channel(matrix=None, **options):
    """Return a channel of age and sex; by default one that draws them apart."""
    letters = list(itertools.product(AGES, "fm"))
    schema = TableSchema(key=("age", "sex"), sensitive=("ill", "debts"))
    matrix = np.kron(SKEWED, TURNED) if matrix is None else matrix
    how = {"inputs": letters, "outputs": letters, "schema": schema}
    return cpv.Channel(matrix, **{**how, **options})


def framed(table, of=None, seed=1, **options):
    of = channel() if of is None else of
    return sdc.quality(table, of.apply(table, seed=seed), of, **options).to_frame()


def by_name(frame, column="corrected"):
    return frame.set_index("name")[column]


# ---- each figure, and what corrects it ---------------------------------------------------


def test_all_draws_of_a_small_table_together_are_unbiased():
    """Over all 2⁴ releases, each by its probability: means, standard errors and squared errors."""
    table = pd.DataFrame({"w": list("abba"), "x": list("uvvv")})
    schema = TableSchema(key=("x",), sensitive=("w",))
    of = cpv.Channel(TURNED, inputs="uv", outputs="uv", schema=schema)
    values = []
    for letters in itertools.product("uv", repeat=4):
        places = [("uv".index(x), "uv".index(y)) for x, y in zip(table["x"], letters, strict=True)]
        frame = sdc.quality(table, table.assign(x=list(letters)), of).to_frame()
        chance = np.prod([TURNED[place] for place in places])
        values.append((chance, frame[frame["kind"].isin(KINDS[:2])]))
    first, chances = values[0][1], np.array([chance for chance, _ in values])
    corrected, released = (
        np.array([frame[name] for _, frame in values], float) for name in ("corrected", "released")
    )
    assert chances.sum() == pytest.approx(1)
    assert chances @ corrected == pytest.approx(first["before"], abs=1e-12)
    variances = chances @ (corrected - first["before"].to_numpy()) ** 2
    assert variances == pytest.approx(first["standard_error"].astype(float) ** 2, abs=1e-12)
    squares = chances @ (released - first["before"].to_numpy()) ** 2
    assert squares == pytest.approx(first["error"].astype(float) ** 2, abs=1e-12)
    assert np.abs(chances @ released - first["before"]).max() > 0.3


def test_figures_are_those_of_other_libraries():
    table = people()
    of = channel()
    released = of.apply(table, seed=1)
    figures = sdc.quality(table, released, of).to_frame()
    for column, data in (("before", table), ("released", released)):
        values = by_name(figures, column)
        assert values["age = 40"] == (data["age"] == 40).sum()
        assert values["debts = 1, sex = f"] == ((data["debts"] == 1) & (data["sex"] == "f")).sum()
        ill, male = (data["ill"] == "yes") * 1.0, (data["sex"] == "m") * 1.0
        assert values["ill = yes ~ age"] == pytest.approx(np.corrcoef(ill, data["age"])[0, 1])
        assert values["age ~ sex = m"] == pytest.approx(np.corrcoef(data["age"], male)[0, 1])
        x = np.column_stack([np.ones(len(data)), data["age"], male])
        for response, y in (("ill = yes", ill), ("debts", data["debts"])):
            beta = np.linalg.lstsq(x, y, rcond=None)[0]
            names = [f"{response} on {name}" for name in ("constant", "age", "sex = m")]
            assert values[names].tolist() == pytest.approx(beta.tolist())
    kinds = figures.groupby("kind").size()
    assert kinds.to_dict() == {"one-way": 5, "two-way": 36, "correlation": 5, "regression": 6}


def test_margins_are_corrected_as_the_channel_estimates():
    table, k = people(), SKEWED
    schema = TableSchema(key=("age",), sensitive=("ill",))
    of = cpv.Channel(k, inputs=AGES, outputs=AGES, schema=schema)
    released = of.apply(table, seed=1)
    figures = sdc.quality(table, released, of).to_frame()
    outcome = of.estimate(released)
    names = [f"age = {age}" for age in AGES]
    assert by_name(figures)[names].tolist() == pytest.approx(outcome.counts.tolist())
    stated = by_name(figures, "stated_error")[names]
    assert stated.tolist() == pytest.approx((240 * outcome.standard_errors).tolist())
    assert (by_name(figures, "standard_error")[names] < stated).all()
    for ill in ("yes", "no"):  # each class by itself
        outcome = of.estimate(released[released["ill"] == ill])
        pairs = by_name(figures)[[f"ill = {ill}, {name}" for name in names]]
        assert pairs.tolist() == pytest.approx(outcome.counts.tolist())


def test_an_influence_is_the_derivative_by_one_more_record():
    table, of = people(), channel()
    tables = _Tables.of(table, of.apply(table, seed=1), of, {})
    rng, size = np.random.default_rng(0), 1e-4
    for statistic in _statistics(tables):
        more = rng.normal(size=tables.before.shape) * size
        up, down = (statistic.values(tables.cells, tables.before + s * more) for s in (1, -1))
        slope = np.tensordot(more, statistic.influence(tables.cells, tables.before), 2)
        level = np.tensordot(tables.before, statistic.influence(tables.cells, tables.before), 2)
        assert (up - down) / 2 == pytest.approx(slope, rel=1e-4, abs=1e-11)
        if statistic.kind in KINDS[2:]:
            assert level == pytest.approx(0, abs=1e-12)


def test_values_without_a_number_are_indicators():
    table = people().assign(sex=lambda t: np.where(t["age"] == 60, "d", t["sex"]))
    letters = ["d", "f", "m"]
    schema = TableSchema(key=("sex",), sensitive=("ill",))
    of = cpv.Channel(SKEWED, inputs=letters, outputs=letters, schema=schema)
    figures = framed(table, of)
    assert set(figures["kind"]) == {"one-way", "two-way", "regression"}
    shares = (table["ill"] == "yes").groupby(table["sex"]).mean()
    before = by_name(figures, "before")
    assert before["ill = yes on constant"] == pytest.approx(shares["d"])
    assert before["ill = yes on sex = m"] == pytest.approx(shares["m"] - shares["d"])
    scored = by_name(framed(table, of, scores={"sex": {"d": 0, "f": 5, "m": 1}}), "before")
    numbers = table["sex"].map({"d": 0, "f": 5, "m": 1})
    expected = np.corrcoef(table["ill"] == "yes", numbers)[0, 1]
    assert scored["ill = yes ~ sex"] == pytest.approx(expected)
    bins = {"age": Bins((0.0, 30.0, 50.0, np.inf))}
    names = list(bins["age"].labels)
    schema = TableSchema(key=("age",), sensitive=("ill",), bins=bins)
    cut = framed(table, cpv.Channel(SKEWED, inputs=names, outputs=names, schema=schema))
    middles = table["age"].map({20: 15, 40: 40, 60: 50})
    expected = np.corrcoef(table["ill"] == "yes", middles)[0, 1]
    assert by_name(cut, "before")["ill = yes ~ age"] == pytest.approx(expected)


def test_what_is_not_determined_is_not_corrected():
    """The first two ages are drawn alike: what tells them apart is lost, other sums are not."""
    table = people()
    of = channel(matrix=np.kron(SKEWED[[0, 0, 2]], TURNED))
    result = sdc.quality(table, of.apply(table, seed=1), of)
    corrected = by_name(result.to_frame())
    lost = corrected[corrected.isna()].index
    assert {"age = 20", "age = 40", "ill = yes ~ age", "debts on sex = m"} <= {*lost}
    assert {"age = 60", "sex = f", "ill = no, age = 60", "ill = yes ~ sex = m"} <= {
        *corrected.dropna().index
    }
    assert "not determined" in str(result)
    assert result.summary["one-way"]["determined"] == 3
    never = channel(matrix=np.kron([[0.6, 0, 0.4], [0, 0, 1], [1, 0, 0]], TURNED))
    figures = framed(table, never)
    assert by_name(figures, "released")["age = 40"] == 0
    one = table.assign(sex="m")
    of = channel(matrix=np.kron(SKEWED, [[0, 1], [0, 1]]))
    assert "age ~ sex = m" not in by_name(framed(one, of)).index
    lone = channel(matrix=np.kron(SKEWED, [[1, 0], [1, 0]]))  # all are released as f
    figures = framed(table, lone)
    assert np.isnan(by_name(figures, "released")["debts on sex = m"])
    assert np.isnan(by_name(figures, "error")["age ~ sex = m"])
    json.dumps(sdc.quality(table, lone.apply(table, seed=1), lone).document(), allow_nan=False)


# ---- other ways to draw ------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_whole_counts_scatter_as_permutations_of_a_cell_do(encoder):
    """All orders in which the records of a cell are dealt their letters, each as likely."""
    table = pd.DataFrame({"w": list("aabbb"), "x": list("uuuvv")})
    schema = TableSchema(key=("x",), sensitive=("w",))
    inputs, counts = ["u", "v"], [[2, 1], [0, 2]]
    if encoder == "wx":
        inputs, counts = [("a", "u"), ("b", "u"), ("b", "v")], [[1, 1], [1, 0], [0, 2]]
    of = CountedChannel(counts, inputs=inputs, outputs="uv", schema=schema, encoder=encoder)
    frames = []
    orders = [["u", "u", "v"], ["u", "v", "u"], ["v", "u", "u"]]
    for order in orders if encoder == "x" else orders[1:]:
        released = table.assign(x=[*order, "v", "v"])
        frames.append(sdc.quality(table, released, of).to_frame())
    frame = frames[0][frames[0]["kind"].isin(KINDS[:2])]
    corrected = np.array([f["corrected"][frame.index] for f in frames], float)
    assert corrected.mean(axis=0) == pytest.approx(frame["before"], abs=1e-12)
    errors = frame["standard_error"].astype(float)
    assert corrected.std(axis=0) == pytest.approx(errors, abs=1e-12)
    assert (errors.max() > 0.1) == (encoder == "x")
    assert "whole counts" in str(sdc.quality(table, released, of))


def test_a_channel_that_sees_the_confidential_value_is_inverted_for_each():
    table = pd.DataFrame({"w": list("aaabbb"), "x": list("uuvuvv")})
    schema = TableSchema(key=("x",), sensitive=("w",))
    inputs = list(itertools.product("ab", "uv"))
    matrix = np.concatenate([TURNED, [[0.6, 0.4], [0.1, 0.9]]])
    of = cpv.Channel(matrix, inputs=inputs, outputs="uv", schema=schema, encoder="wx")
    released = table.assign(x=list("uvvuuv"))
    figures = by_name(sdc.quality(table, released, of).to_frame())
    for w, k, n in (("a", matrix[:2], [1, 2]), ("b", matrix[2:], [2, 1])):
        expected = np.linalg.solve(k.T, n)
        pairs = figures[[f"w = {w}, x = {x}" for x in "uv"]]
        assert pairs.tolist() == pytest.approx(expected.tolist())


def test_side_information_that_is_seen_stays_with_its_records():
    table = pd.DataFrame({"w": list("abab"), "x": list("uuvv"), "z": list("kkll")})
    schema = TableSchema(key=("x",), sensitive=("w",), side=("z",))
    inputs = list(itertools.product("uv", "kl"))
    matrix = np.array([TURNED[0], [0.6, 0.4], [0.1, 0.9], TURNED[1]])
    of = cpv.Channel(matrix, inputs=inputs, outputs="uv", schema=schema, encoder="xz")
    figures = by_name(sdc.quality(table, table.assign(x=list("uvuv")), of).to_frame())
    expected = np.linalg.solve(matrix[[0, 2]].T, [1, 1])  # of those with k
    assert figures["z = k, x = u"] == pytest.approx(expected[0])


# ---- PRAM beside it ----------------------------------------------------------------------


def test_pram_of_each_column_is_what_a_channel_of_both_columns_is():
    """A channel that is this very PRAM has its errors, by the matrix of all combinations."""
    table = people()
    law = [table["age"].value_counts(normalize=True).loc[AGES].to_numpy(),
           table["sex"].value_counts(normalize=True).loc[["f", "m"]].to_numpy()]  # fmt: skip
    matrices = []
    for p in law:
        plain = 0.9 * np.eye(len(p)) + 0.1 / len(p)
        joint = p[:, None] * plain
        matrices.append(plain @ (joint / joint.sum(axis=0)).T)
        assert p @ matrices[-1] == pytest.approx(p)
    of = channel(matrix=np.kron(*matrices))
    result = sdc.quality(table, of.apply(table, seed=1), of)
    figures = result.to_frame()
    assert figures["pram_error"].tolist() == pytest.approx(figures["error"].tolist(), abs=1e-9)
    errors = figures["standard_error"].tolist()
    assert figures["pram_standard_error"].tolist() == pytest.approx(errors, abs=1e-9)
    assert result.pram_information == pytest.approx(result.information)


def test_pram_changes_as_many_records_or_there_is_none():
    table, of = people(), channel()
    result = sdc.quality(table, of.apply(table, seed=1), of)
    counts = table.groupby(["age", "sex"]).size()
    stays = [of.matrix[i, i] for i in range(6)]
    assert result.changed == pytest.approx(1 - float(counts.to_numpy() @ stays) / 240)
    other = channel(matrix=np.kron(np.roll(np.eye(3), 1, axis=1), [[0, 1], [1, 0]]))
    result = sdc.quality(table, other.apply(table, seed=1), other)
    assert result.changed == 1
    assert result.pram_information is None
    assert "no PRAM beside it: 100.0% of the records change" in str(result)
    assert result.figures[0].pram_error is None
    same = channel(matrix=np.eye(6))
    result = sdc.quality(table, table, same)
    assert result.changed == 0
    assert {(f.error, f.pram_error, f.pram_standard_error) for f in result.figures} == {(0, 0, 0)}
    lone = TableSchema(key=("age",))
    of = cpv.Channel(SKEWED, inputs=AGES, outputs=AGES, schema=lone)
    assert sdc.quality(table, of.apply(table, seed=1), of).information is None


# ---- tables and refusals -----------------------------------------------------------------


@pytest.mark.parametrize("kind", some_at_length(ENGINES, 3))
def test_tables_are_counted_by_their_engine(kind):
    table, of = people(), channel()
    released = of.apply(table, seed=1)
    expected = sdc.quality(table, released, of)
    outcome = sdc.quality(converted(kind, table), converted(kind, released), of)
    assert outcome.to_frame().equals(expected.to_frame())
    assert repr(outcome) == "Quality(52 figures, 240 records)"
    assert json.loads(json.dumps(outcome.document()))["summary"] == outcome.summary
    assert len(str(outcome).splitlines()) < 30


def test_a_table_that_the_channel_never_makes_is_refused():
    people = pd.DataFrame({"k": list("aabb"), "w": list("yynn")})
    schema = TableSchema(key=("k",), sensitive=("w",))
    channel = cpv.Channel(np.eye(2), inputs="ab", outputs="ab", schema=schema)
    other = people.assign(k=list("abbb"))  # the identity makes no b of those who are y
    refusal("released", sdc.quality, people, other, channel)
    none = people[:0]
    refusal("original", sdc.quality, none, none, channel)
    scores = {"k": {"a": 1.0, "b": float("nan")}}
    refusal("scores", sdc.quality, people, people, channel, scores=scores)
    refusal("scores", sdc.quality, people, people, channel, scores={"key": {}})


def test_what_the_original_has_not_is_not_blamed_on_the_channel():
    """Of two equal columns there is no regression."""
    twice = pd.DataFrame({"k": list("abab") * 9, "l": list("abab") * 9, "w": list("yyny") * 9})
    schema = TableSchema(key=("k", "l"), sensitive=("w",))
    letters = [("a", "a"), ("b", "b")]
    flips = [[0.9, 0.1], [0.1, 0.9]]
    channel = cpv.Channel(flips, inputs=letters, outputs=letters, schema=schema)
    figures = sdc.quality(twice, channel.apply(twice, seed=1), channel)
    undefined = [figure for figure in figures.figures if figure.before is None]
    assert undefined
    assert all(f.corrected is None and f.standard_error is None for f in undefined)
    assert any("not defined in the original" in note for note in figures.notes)
    assert not any("KeepProbability" in note for note in figures.notes)


def test_what_does_not_belong_together_is_refused():
    table, of = people(), channel()
    released = of.apply(table, seed=1)
    refusal("channel", sdc.quality, table, released, SKEWED)
    refusal("channel", sdc.quality, table, released, channel(schema=None))
    refusal("original", sdc.quality, table.drop(columns="ill"), released, of)
    refusal("released", sdc.quality, table, released.drop(columns="age"), of)
    refusal("released", sdc.quality, table, released.assign(age=7), of)
    refusal("original", sdc.quality, table.assign(age=7), released, of)
    refusal("released", sdc.quality, table, released[1:], of)
    refusal("released", sdc.quality, table, released.assign(ill="no"), of)
    refusal("scores", sdc.quality, table, released, of, scores={"age": {20: 1}})
    read = cpv.Decoder([[letter] for letter in of.outputs], side=["k"])
    refusal("channel", sdc.quality, table, released, channel(decoder=read, outputs=range(6)))
    refusal("channel", sdc.quality, table, released, channel(sparse.csr_array(of.matrix)))


# ---- draws of public tables --------------------------------------------------------------


@pytest.mark.long
@pytest.mark.real
@pytest.mark.parametrize("name", some_weekly(["adult", "eia"], 1))
def test_two_hundred_draws_are_unbiased_and_within_their_standard_errors(name):
    real_folder(name)
    if name == "adult":
        table, how = cpv.datasets.load_adult(), {"sensitive": "income", "key": ["age", "sex"]}
        how["bins"] = {"age": 10}
    else:
        table = cpv.datasets.load_eia()
        how = {"sensitive": "TOTREVENUE", "key": ["RESREVENUE", "MONTH"],
               "bins": {"TOTREVENUE": "q3", "RESREVENUE": "q4"}}  # fmt: skip
    table = table[[how["sensitive"], *how["key"]]]
    source = cpv.DiscreteSource.from_table(table, **how)
    floor = [cpv.KeepProbability(0.6)]
    of = cpv.PrivacyDistortion(source, cpv.hamming(source.x), 0.1, criteria=floor).solve().channel
    frames, runs = [], 200
    for run in range(runs):
        released = of.apply(table, seed=np.random.default_rng(run))
        frames.append(sdc.quality(table, released, of).to_frame())
    first = frames[0]
    before, errors = first["before"].to_numpy(), first["standard_error"].to_numpy(float)
    corrected, released = (
        np.array([frame[column] for frame in frames], float) for column in ("corrected", "released")
    )
    sure = errors == 0  # of values that never change
    assert corrected[:, sure] == pytest.approx(np.broadcast_to(before, corrected.shape)[:, sure])
    corrected, before, errors = corrected[:, ~sure], before[~sure], errors[~sure]
    z = (corrected.mean(axis=0) - before) / errors * np.sqrt(runs)
    assert np.abs(z).max() < norm.isf(1e-4 / len(z))
    within = (np.abs(corrected - before) <= norm.ppf(0.975) * errors).mean(axis=0)
    assert np.abs(within - 0.95).max() < norm.isf(1e-4 / len(z)) * np.sqrt(0.95 * 0.05 / runs)
    squares = ((released[:, ~sure] - before) ** 2).mean(axis=0)
    assert np.sqrt(squares) == pytest.approx(
        first["error"].to_numpy(float)[~sure], rel=0.2, abs=0.01
    )
    biased = np.abs(released[:, ~sure].mean(axis=0) - before) / errors
    assert np.median(biased) > 1  # what is released as it is is not of the original


@pytest.mark.campaign
@pytest.mark.real
def test_pram_that_is_drawn_is_off_as_it_is_computed_to_be():
    """The PRAM of the room of masking, drawn two hundred times, at the same mean change."""
    masking = pytest.importorskip("cvxprivacy_sdc.masking", reason="scikit-learn is missing")
    real_folder("adult")
    table = cpv.datasets.load_adult()[["income", "sex", "race"]]
    pram = masking.PRAM(0.9, invariant=True).fit(table[["sex", "race"]])
    matrices = [one.matrix for one in pram.channels_]
    letters = list(itertools.product(*(one.inputs for one in pram.channels_)))
    schema = TableSchema(key=("sex", "race"), sensitive=("income",))
    of = cpv.Channel(np.kron(*matrices), inputs=letters, outputs=letters, schema=schema)
    runs = []
    for run in range(200):
        pram.random_state = run
        masked = table.assign(**pram.transform(table[["sex", "race"]]))
        runs.append(sdc.quality(table, masked, of).to_frame())
    corrected = np.array([frame["corrected"] for frame in runs], float)
    errors = runs[0]["standard_error"].to_numpy(float)
    z = (corrected.mean(axis=0) - runs[0]["before"]) / errors * np.sqrt(200)
    assert np.abs(z).max() < norm.isf(1e-4 / len(z))
    assert corrected.std(axis=0, ddof=1) == pytest.approx(errors, rel=0.25)
