"""The comparison: marks counted from the table, bounds in order, and the command."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import cvxprivacy as cpv
from cvxprivacy.cli import main
from cvxprivacy.microdata import loss, risk
from cvxprivacy.microdata.compare import Point, _cells, _classes
from cvxprivacy.tables.frames import narwhal
from tests import referee
from tests.lengths import rest_at_length

masking = pytest.importorskip(
    "cvxprivacy.microdata.masking", reason="the extra `masking` is not installed"
)

FEW = {"cells": 16, "classes": 4, "shares": (0.05, 0.2, 0.5)}


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    key = rng.multivariate_normal([0, 5], [[1, 0.5], [0.5, 2]], n)
    pay = key @ [1.0, 0.5] + rng.normal(size=n) * 0.4
    return pd.DataFrame({"pay": pay, "a": key[:, 0], "b": key[:, 1] * 100, "name": "x"})


@pytest.fixture(scope="module")
def result():
    methods = {
        "MDAV": [masking.MDAV(k) for k in (3, 30, 200)],
        "noise": {f"s{s}": masking.AdditiveNoise(s, random_state=1) for s in (0.2, 1.0)},
        "swap": masking.RankSwapping(10, random_state=2),
        "mine": people()[["b", "a"]] * [1, 1],
        "mean": np.broadcast_to(people()[["a", "b"]].mean().to_numpy(), (600, 2)).copy(),
    }
    return cpv.compare(people(), methods, sensitive="pay", key=["a", "b"], **FEW)


def test_the_frontier_is_certified_and_in_order(result):
    for solution in result.frontier:
        referee.check(solution, status=solution.status)
        assert solution.status == "certified"
    for point in result.points:
        assert point.optimum <= float(result.upper(point.cut)) + 1e-9
    cut = np.linspace(result.within, 1, 50)
    assert (result.lower(cut) <= result.upper(cut) + 1e-9).all()
    assert (result.upper(cut) <= result.chord(cut) + 1e-9).all()
    assert result.upper(result.within) == pytest.approx(result.information)
    assert result.lower(result.within / 2) == result.information  # nothing of cells is there
    assert float(result.lower(1.0)) == 0.0


def test_points_mean_what_they_say(result):
    frame = people()
    named = {(p.method, p.setting): p for p in result.points}
    assert [p.method for p in result.points[:3]] == ["MDAV"] * 3
    assert named.keys() >= {("MDAV", "k = 30"), ("noise", "s0.2"), ("swap", "p = 10")}
    x = frame[["a", "b"]].to_numpy()
    masked = masking.MDAV(30).fit_transform(x)
    point = named["MDAV", "k = 30"]
    assert point.distortion == pytest.approx((((x - masked) ** 2).mean(0) / x.var(0)).mean())
    assert point.pil == loss.probabilistic_loss(x, masked).total
    assert point.il == loss.information_loss(x, masked).total
    assert point.linkage == risk.distance_linkage(x, masked)
    assert point.interval == risk.interval_disclosure(x, masked)
    assert point.leakage == risk.leakage(frame["pay"].to_numpy(), masked, method="neighbours")
    assert point.score == pytest.approx(
        risk.score(point.pil, linkage=point.linkage, interval=point.interval)
    )
    untouched = named["mine", "1"]
    assert untouched.distortion == untouched.pil == 0.0
    assert untouched.linkage == untouched.interval == 1.0
    assert untouched.cut == pytest.approx(result.within)
    assert untouched.risk == pytest.approx(result.information)
    nothing = named["mean", "1"]
    assert nothing.distortion == pytest.approx(1.0)
    assert nothing.risk == pytest.approx(0.0, abs=1e-12)


def test_the_risk_of_cells_by_hand(result):
    """I(W; X̂) of the table cut into cells, from the records."""
    frame = people()
    data = frame[["a", "b"]].to_numpy()
    cell_of = _cells(data, 16)
    x, w = cell_of(data), _classes(narwhal(frame), ["pay"], 4)
    released = cell_of(masking.MDAV(30).fit_transform(data))
    joint = {}
    for v, y in zip(w, released, strict=True):
        joint[v, y] = joint.get((v, y), 0) + 1 / len(w)
    p_w, p_y = {}, {}
    for (v, y), mass in joint.items():
        p_w[v] = p_w.get(v, 0) + mass
        p_y[y] = p_y.get(y, 0) + mass
    bits = sum(m * math.log2(m / (p_w[v] * p_y[y])) for (v, y), m in joint.items())
    point = next(p for p in result.points if p.setting == "k = 30")
    assert point.risk == pytest.approx(bits)
    centre = np.array([data[x == i].mean(0) for i in range(x.max() + 1)])
    error = [
        ((d - centre[y]) ** 2 / data.var(0)).mean() for d, y in zip(data, released, strict=True)
    ]
    assert point.cut == pytest.approx(np.mean(error))
    assert np.bincount(w).min() >= 100  # quantiles
    assert len(centre) <= 16


def test_a_method_that_tells_what_the_cell_does_not():
    """W is finer than the cells, and the release tells it: a bit, not the nothing of cells."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1.5, -0.5, 1000), rng.uniform(0.5, 1.5, 1000)])
    high = np.abs(x) > 1
    frame = pd.DataFrame({"x": x, "w": np.where(high, "high", "low")})
    methods = {"tells": pd.DataFrame({"x": np.where(high, 1.0, -1.0)})}
    found = cpv.compare(frame, methods, sensitive="w", key="x", cells=2, shares=(0.1, 0.5))
    p = high.mean()
    assert found.points[0].risk == pytest.approx(-p * math.log2(p) - (1 - p) * math.log2(1 - p))
    assert found.information < 0.01


def test_the_optimal_channel_does_what_it_says(result):
    points = [p for p in result.points if p.method == "optimal channel"]
    assert len(points) == 3
    for point, solution in zip(points, result.frontier, strict=True):
        assert point.cut == pytest.approx(result.within + float(solution.distortion), abs=0.05)
        assert point.distortion == pytest.approx(point.cut, abs=0.05)
        assert point.risk == pytest.approx(solution.value, abs=0.15)
        heuristics = [p for p in result.points if p.method in ("MDAV", "noise", "swap")]
        worse = [p for p in heuristics if p.cut >= point.cut]
        assert all(point.excess < p.excess for p in worse)


def test_the_quadratic_gaussian_bound(result):
    """Of jointly Gaussian records the QGLB with the estimated h(W) is nearly the Gaussian one."""
    frame = people(4000, seed=3)
    some = cpv.compare(frame, {"m": masking.MDAV(400)}, sensitive="pay", key=["a", "b"], **FEW)
    source = cpv.GaussianSource.from_table(frame, sensitive="pay", key=["a", "b"], standardise=True)
    for share, bound in some.gaussian.items():
        assert bound.status == "certified"
        exact = cpv.QuadraticGaussian(source, share * 2 * (1 - 1 / 4000)).solve()
        assert bound.value == pytest.approx(exact.value, abs=0.05)
    for point in some.points:
        near = min(some.gaussian, key=lambda d: abs(d - point.distortion))
        if near >= point.distortion:  # no release is below, but for errors of estimation
            allowed = 4 * point.leakage.standard_error + 0.05
            assert point.leakage.value >= some.gaussian[near].lower - allowed


def test_tables_of_letters_and_of_ties():
    frame = people(200)
    frame["illness"] = np.where(frame["pay"] > 4, "ill", "well")
    frame["level"] = frame["pay"].round()
    words = cpv.compare(
        frame, {"m": masking.MDAV(5)}, sensitive=["illness", "name"], key="a", **FEW
    )
    assert words.gaussian == {}
    assert words.entropy is None
    assert len(words.source.w) == 2
    ties = cpv.compare(frame, {"m": masking.MDAV(5)}, sensitive="level", key="a", **FEW)
    assert ties.entropy is None  # no density; the optimum of Gaussians remains
    assert ties.gaussian
    few = frame.assign(a=np.arange(200) % 3)  # fewer values than cells
    three = cpv.compare(
        few, {"m": masking.PRAM(0.5, random_state=0)}, sensitive="pay", key="a", **FEW
    )
    assert three.within == pytest.approx(0.0, abs=1e-15)
    assert len(three.source.x) == 3
    nats = cpv.compare(few, {"m": few[["a"]]}, sensitive="pay", key="a", units="nats", **FEW)
    assert nats.information == pytest.approx(three.information * math.log(2))
    assert "risk [nats]" in nats.to_frame().columns


def test_optimal_pram_is_given_the_classes():
    few = people(400).assign(a=lambda t: t["a"].round().clip(-2, 2))
    methods = {
        "optimal": masking.OptimalPRAM(0.3, distortion="squared_error", random_state=0),
        "plain": masking.PRAM(0.8, random_state=0),
    }
    found = cpv.compare(few, methods, sensitive="pay", key="a", **FEW)
    optimal, plain = found.points[:2]
    assert optimal.excess < plain.excess


@pytest.mark.parametrize("whole", rest_at_length([True, False], 1))
def test_cells_of_few_records_and_of_ties(whole):
    for seed in range(8):
        data = np.random.default_rng(seed).normal(size=(150, 2))
        data = np.round(data * 20) if whole else np.exp(data)
        x = _cells(data, 64)(data)
        assert (np.bincount(x) > 0).all()
        assert 20 <= x.max() + 1 <= 64
    frame = people(150).round().astype({"a": int, "b": int}) if whole else people(150)
    found = cpv.compare(frame, {"m": masking.MDAV(5)}, sensitive="pay", key=["a", "b"])
    assert found.source.records == 150


def test_other_flavours_of_frames():
    polars = pytest.importorskip("polars", reason="the extra `tables` is not installed")
    frame = people(200).drop(columns="name")
    one, other = (
        cpv.compare(f, {"m": masking.MDAV(5)}, sensitive="pay", key=["a", "b"], **FEW)
        for f in (frame, polars.from_pandas(frame))
    )
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame())


def test_repeatable(result):
    again = cpv.compare(
        people(), {"MDAV": masking.MDAV(30)}, sensitive="pay", key=["a", "b"], **FEW
    )
    named = {(p.method, p.setting): p for p in result.points}
    assert all(named[p.method, p.setting] == p for p in again.points)
    assert isinstance(again.points[0], Point)


def test_estimators_are_copied_and_seeded():
    frame = people(100)
    methods = {
        "state": masking.AdditiveNoise(0.5, random_state=np.random.default_rng(0)),
        "none": masking.Rescaled(masking.AdditiveNoise(0.5)),
    }
    one, other = (
        cpv.compare(frame, methods, sensitive="pay", key=["a", "b"], **FEW) for _ in range(2)
    )
    assert one.points == other.points
    assert not hasattr(methods["none"], "method_")


def test_text_and_picture(result, tmp_path):
    import matplotlib.pyplot as plt

    text = str(result)
    for piece in ("k = 30", "optimal channel", "certified", "counted from the table", "bias"):
        assert piece in text
    assert "nan" not in text
    figure, ax = plt.subplots()
    result.draw(ax)
    labels = ax.get_legend_handles_labels()[1]
    assert labels[:3] == [
        "frontier of releases of X's cell, certified", "MIUB: the cell, or the mean",
        "QGLB, from estimates of h(W) and Σ",
    ]  # fmt: skip
    assert {"MDAV", "noise", "swap", "mine"} <= set(labels)
    figure.savefig(tmp_path / "plane.png")
    plt.close(figure)


def test_what_cannot_be_compared():
    frame = people(50)
    mdav = {"m": masking.MDAV(5)}

    def refused(match, methods=mdav, table=frame, sensitive="pay", key="a", **options):
        with pytest.raises(cpv.InputError, match=match):
            cpv.compare(table, methods, sensitive=sensitive, key=key, **{**FEW, **options})

    refused("methods: {}", methods={})
    refused("original: a ndarray; pass a frame", table=np.zeros((3, 2)))
    refused("no column 'c'; there are pay, a, b, name", key="c")
    refused("sensitive: no column 'c'", sensitive="c")
    refused(r"original\[0, name\]: 'x' is no number", key="name")
    refused("column 'pay' is confidential, too", key=["a", "pay"])
    refused("column 'a' is constant", table=frame.assign(a=1.0))
    refused(
        r"original\[2, a\]: a missing value",
        table=frame.assign(a=frame["a"].where(frame.index != 2)),
    )
    refused(r"methods\[m\]: k: groups of 99 from 50 samples", methods={"m": masking.MDAV(99)})
    refused(r"methods\[m\]: masked: 49 records", methods={"m": frame[["a"]][:49]})
    refused(r"methods\[m\]: masked: no column 'a'", methods={"m": frame[["b"]]})
    refused(r"methods\[m\]: scale", methods={"m": masking.AdditiveNoise(1e200)})
    refused("cells: 1", cells=1)
    for shares in ((), (-0.1,), (0.2, 1.5), (0.0,), "many"):
        refused("shares", shares=shares)
    refused("'optimal channel' is the frontier's own name", methods={"optimal channel": mdav["m"]})
    refused(r"methods\[m\]: method: MDAV is a class", methods={"m": masking.MDAV})
    for empty in ([], {}):
        refused("an empty curve", methods={"m": empty})
    refused("'pay' is named twice", sensitive=["pay", "pay"])
    refused("'a' is named twice", key=["a", "a"])
    refused("original: two columns of one name", table=pd.concat([frame, frame[["b"]]], axis=1))
    refused(
        r"sensitive\[3, name\]: a missing value",
        table=frame.assign(name=frame["name"].where(frame.index != 3)),
        sensitive="name",
    )

    class Broken:
        def fit_transform(self, table, y):
            raise RuntimeError("no ink")

    refused(r"methods\[m\]: fit_transform: RuntimeError: no ink", methods={"m": Broken()})
    refused("classes: 0", classes=0)


# ---- the command -------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    people(200).to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


SMALL = ("--sensitive", "pay", "--key", "a,b", "--cells", "9", "--classes", "3")


def test_the_command(table, tmp_path):
    masked = tmp_path / "masked.csv"
    people(200).assign(a=0.0, b=500.0).to_csv(masked, index=False)
    out, picture = tmp_path / "found.csv", tmp_path / "plane.svg"
    done = run(table, *SMALL, "--method", "mdav=3,20", "--method", "scaled-noise=0.5",
               "--masked", f"mine={masked}", "--out", out, "--picture", picture)  # fmt: skip
    assert done.exit_code == 0, done.output
    for piece in ("mdav", "scaled-noise", "mine", "optimal channel", "certified", str(out)):
        assert piece in done.output
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [r["method"] for r in rows[:4]] == ["mdav", "mdav", "scaled-noise", "mine"]
    assert [r["setting"] for r in rows[:3]] == ["3", "20", "0.5"]
    assert float(rows[3]["risk [bits]"]) == pytest.approx(0.0, abs=1e-12)
    frame = pd.read_csv(table)
    expected = cpv.compare(
        frame, {"mdav": masking.MDAV(20)}, sensitive="pay", key=["a", "b"], cells=9, classes=3
    ).points[0]
    assert float(rows[1]["excess"]) == pytest.approx(expected.excess)
    assert "<svg" in picture.read_text(encoding="utf-8")[:2000]


def test_a_method_named_twice_is_one_curve(table):
    done = run(table, *SMALL, "--method", "mdav=3", "--method", "mdav=20", "--json")
    points = json.loads(done.output)["points"]
    assert [p["setting"] for p in points[:2]] == ["3", "20"]


def test_the_command_as_json(table):
    done = run(table, *SMALL, "--method", "rank-swapping=5", "--units", "nats", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.output)
    assert document["units"] == "nats"
    assert document["records"] == 200
    assert document["points"][0]["setting"] == "5"
    assert all(f["lower"] <= f["upper"] for f in document["frontier"])
    assert all(f["status"] == "certified" for f in document["frontier"])
    assert document["qglb"]


def test_a_parquet_table(table, tmp_path):
    pytest.importorskip("duckdb", reason="the extra `tables` is not installed")
    path = tmp_path / "people.parquet"
    pd.read_csv(table).to_parquet(path)
    one, other = (run(t, *SMALL, "--method", "mdav=20", "--json") for t in (table, path))
    assert other.exit_code == 0, other.output
    assert json.loads(one.output) == json.loads(other.output)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--method", "mdav"), "--method: 'mdav'; write it like mdav=3,10,30"),
        (("--method", "median=3"), "--method: 'median' is unknown; use one of mdav,"),
        (("--method", "mdav=three"), "--method: 'three' of mdav is no number"),
        (("--method", "mdav=999"), "--method[mdav]: k: groups of 999 from 200 samples"),
        (("--method", "mdav=2.5"), "--method[mdav]: k: 2.5"),
        (("--masked", "mine=nowhere.csv"), "nowhere.csv"),
        (("--picture", "plane.doc"), "--picture: plane.doc is no kind of picture"),
        (("--out", "no/such/folder.csv"), "there is no folder"),
        (("--cells", "1"), "--cells: 1"),
        (("--seed", "-1"), "--seed: -1"),
        (("--sensitive", "b"), "--key: column 'b' is confidential, too"),
        (("--key", "name"), "TABLE[0, name]: 'x' is no number"),
        (("--key", "zz"), "no column 'zz'; there are pay, a, b, name"),
    ],
)
def test_the_command_refuses(table, options, said):
    done = run(table, *SMALL, *options)
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert "Traceback" not in done.output


def test_the_command_does_not_write_over_its_input(table):
    before = table.read_bytes()
    done = run(table, *SMALL, "--method", "mdav=3", "--out", table)
    assert done.exit_code == 2
    assert table.read_bytes() == before
