"""The comparison: marks counted from the table, bounds in order, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy_sdc import loss, risk
from cvxprivacy_sdc.utility.compare import cell_finder, classes_of
from tests import referee
from tests.sdc.audits import WHY, refusal, wealth

masking = pytest.importorskip(
    "cvxprivacy_sdc.masking", reason="the extra `masking` is not installed"
)

FEW = {"cells": 16, "classes": 4, "shares": (0.05, 0.2, 0.5)}
LEAST = {**FEW, "cells": 6, "shares": (0.3,)}
BOTH = {"sensitive": "pay", "key": ["a", "b"]}


@pytest.fixture(scope="module")
def result():
    frame = wealth()
    methods = {
        "MDAV": [masking.MDAV(k) for k in (3, 30, 200)],
        "noise": {f"s{s}": masking.AdditiveNoise(s, random_state=1) for s in (0.2, 1.0)},
        "swap": masking.RankSwapping(10, random_state=2),
        "mine": frame[["b", "a"]] * [1, 1],
        "mean": np.broadcast_to(frame[["a", "b"]].mean().to_numpy(), (600, 2)).copy(),
    }
    return sdc.compare(frame, methods, **BOTH, **FEW)


def test_the_frontier_is_certified_and_in_order(result):
    for solution in result.frontier:
        referee.check(solution, status="certified")
    for point in result.points:
        assert point.optimum <= float(result.upper(point.cut)) + 1e-9
    cut = np.linspace(result.within, 1, 50)
    assert (result.lower(cut) <= result.upper(cut) + 1e-9).all()
    assert (result.upper(cut) <= result.chord(cut) + 1e-9).all()
    assert result.upper(result.within) == pytest.approx(result.information)
    assert result.lower(result.within / 2) == result.information  # nothing of cells is there
    assert float(result.lower(1.0)) == 0.0
    assert result.chord([0.0, result.within, 1.0]) == pytest.approx(
        [result.information, result.information, 0.0]
    )


def test_points_mean_what_they_say(result):
    frame = wealth()
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
    assert point.leakage == risk.estimated_leakage(
        frame["pay"].to_numpy(), masked, method="neighbours"
    )
    shares = {"linkage": point.linkage, "interval": point.interval}
    assert point.score == pytest.approx(risk.score(point.pil, **shares))
    untouched = named["mine", "1"]
    assert untouched.distortion == untouched.pil == 0.0
    assert untouched.linkage == untouched.interval == 1.0
    assert untouched.cut == pytest.approx(result.within)
    assert untouched.risk == pytest.approx(result.information)
    nothing = named["mean", "1"]
    assert nothing.distortion == pytest.approx(1.0)
    assert nothing.risk == pytest.approx(0.0, abs=1e-12)
    row = result.to_frame().iloc[1]
    assert row["leakage [bits]"] == point.leakage.value
    assert row["excess"] == point.excess == point.risk - point.optimum
    assert (row["cut distortion"], row["linked"]) == (point.cut, point.linkage)


def test_the_risk_of_cells_by_hand(result):
    """I(W; X̂) of the table cut into cells, from the records."""
    frame = wealth()
    data = frame[["a", "b"]].to_numpy()
    cell_of = cell_finder(data, 16)
    x, w = cell_of(data), classes_of(as_narwhals(frame), ["pay"], 4)[0]
    released = cell_of(masking.MDAV(30).fit_transform(data))
    joint = pd.crosstab(w, released, normalize=True).to_numpy()
    p, q = joint.sum(axis=1, keepdims=True), joint.sum(axis=0)
    on = joint > 0
    point = next(p for p in result.points if p.setting == "k = 30")
    assert point.risk == pytest.approx((joint[on] * np.log2((joint / (p * q))[on])).sum())
    centre = np.array([data[x == i].mean(0) for i in range(x.max() + 1)])
    error = [
        ((d - centre[y]) ** 2 / data.var(0)).mean() for d, y in zip(data, released, strict=True)
    ]
    assert point.cut == pytest.approx(np.mean(error))
    assert np.bincount(w).min() >= 100  # quantiles
    assert len(centre) <= 16


@pytest.mark.long
def test_other_measures_of_the_cells_by_hand():
    """Of the same counts, the classes in the order of the numbers that they cut."""
    frame, of = wealth(), cpv.leakage
    masked = masking.MDAV(30).fit_transform(frame[["a", "b"]].to_numpy())
    measures = [of.MutualInformation(), of.GuessingProbability(), of.EarthMover()]
    methods = {"m": pd.DataFrame(masked, columns=["a", "b"])}
    result = sdc.compare(frame, methods, **BOTH, **FEW, leakage=measures, units="nats")
    w = pd.qcut(frame["pay"], 4, labels=False)
    cell_of = cell_finder(frame[["a", "b"]].to_numpy(), 16)
    joint, before = (
        pd.crosstab(w, cell_of(data), normalize=True).to_numpy()
        for data in (masked, frame[["a", "b"]].to_numpy())
    )
    beyond = joint - joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    point = result.points[0]
    assert point.measures == pytest.approx({
        "mutual information": point.risk,
        "guessing probability": joint.max(axis=0).sum(),
        "earth mover's distance (ordered)": np.abs(beyond.cumsum(axis=0)).sum() / 3,
    })  # fmt: skip
    ends = result.ends
    assert ends["mutual information"] == pytest.approx(
        {"nothing": 0.0, "untouched": result.information, "everything": math.log(4)}
    )
    information = {"nothing": 0.25, "untouched": before.max(axis=0).sum(), "everything": 1.0}
    assert ends["guessing probability"] == pytest.approx(information)
    row = result.to_frame().iloc[0]
    assert row["mutual information [nats]"] == pytest.approx(row["risk [nats]"])
    assert row["guessing probability"] == point.measures["guessing probability"]
    assert "in the order" not in str(result)


def test_the_order_of_classes_is_declared_or_said():
    frame = wealth(200)
    steps = pd.cut(frame["pay"], 3, labels=["low", "mid", "high"])
    how = {"sensitive": "pay", "key": "a", **FEW, "leakage": cpv.leakage.EarthMover()}
    graded, text = (
        sdc.compare(frame.assign(pay=w), MDAV, **how) for w in (steps, steps.astype(str))
    )
    assert graded.source.w == ["low", "mid", "high"]
    assert "takes W in the order low, mid, high" in str(graded)
    assert "takes W in the order high, low, mid, which is the alphabet's" in str(text)
    shares = steps.value_counts(normalize=True)
    for each in (graded, text):
        assert each.source.p_w == pytest.approx(shares[each.source.w].to_numpy())
    both = sdc.compare(frame.assign(step=steps), MDAV, **{**how, "sensitive": ["step", "name"]})
    assert both.source.w == [("low", "x"), ("mid", "x"), ("high", "x")]


def test_a_method_that_tells_what_the_cell_does_not():
    """W is finer than the cells, and the release tells it: a bit, not the nothing of cells."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1.5, -0.5, 1000), rng.uniform(0.5, 1.5, 1000)])
    high = np.abs(x) > 1
    frame = pd.DataFrame({"x": x, "w": np.where(high, "high", "low")})
    methods = {"tells": pd.DataFrame({"x": np.where(high, 1.0, -1.0)})}
    comparison = sdc.compare(frame, methods, sensitive="w", key="x", cells=2, shares=(0.1, 0.5))
    p = high.mean()
    assert comparison.points[0].risk == pytest.approx(
        -p * math.log2(p) - (1 - p) * math.log2(1 - p)
    )
    assert comparison.information < 0.01


def test_the_optimal_channel_does_what_it_says(result):
    points = [p for p in result.points if p.method == "optimal channel"]
    assert len(points) == 3
    for point, solution in zip(points, result.frontier, strict=True):
        assert point.cut == pytest.approx(result.within + float(solution.distortion), abs=0.05)
        assert point.distortion == pytest.approx(point.cut, abs=0.05)
        assert point.risk == pytest.approx(solution.value, abs=0.15)
        heuristics = [p for p in result.points if p.method in ("MDAV", "noise", "swap")]
        assert all(point.excess < p.excess for p in heuristics if p.cut >= point.cut)


@pytest.mark.long
def test_the_quadratic_gaussian_bound():
    """Of jointly Gaussian records the QGLB with the estimated h(W) is nearly the Gaussian one."""
    frame = wealth(4000, seed=3)
    some = sdc.compare(frame, {"m": masking.MDAV(400)}, **BOTH, **FEW)
    source = cpv.GaussianSource.from_table(frame, **BOTH, standardize=True)
    for share, bound in some.gaussian.items():
        assert bound.status == "certified"
        exact = cpv.QuadraticGaussian(source, share * 2 * (1 - 1 / 4000)).solve()
        assert bound.value == pytest.approx(exact.value, abs=0.05)
    for point in some.points:
        near = min(some.gaussian, key=lambda d: abs(d - point.distortion))
        if near >= point.distortion:  # no release is below, but for errors of estimation
            allowed = 4 * point.leakage.standard_error + 0.05
            assert point.leakage.value >= some.gaussian[near].lower - allowed


def test_tables_of_categories_and_of_ties():
    frame = wealth(200)
    frame["illness"] = np.where(frame["pay"] > 4, "ill", "well")
    frame["level"] = frame["pay"].round()
    mdav = {"m": masking.MDAV(5)}
    words = sdc.compare(frame, mdav, sensitive=["illness", "name"], key="a", **LEAST)
    assert (words.gaussian, words.entropy, len(words.source.w)) == ({}, None, 2)
    ties = sdc.compare(frame, mdav, sensitive="level", key="a", **LEAST)
    assert ties.entropy is None  # no density; the optimum of Gaussians remains
    source = cpv.GaussianSource.from_table(frame, sensitive="level", key="a", standardize=True)
    exact = cpv.QuadraticGaussian(source, 0.3 * (1 - 1 / 200)).solve()
    assert ties.gaussian[0.3].value == pytest.approx(exact.value, abs=1e-5)
    few = frame.assign(a=np.arange(200) % 3)  # fewer values than cells
    pram = {"m": masking.PRAM(0.5, random_state=0)}
    three = sdc.compare(few, pram, sensitive="pay", key="a", **LEAST)
    assert three.within == pytest.approx(0.0, abs=1e-15)
    assert len(three.source.x) == 3
    nats = sdc.compare(few, {"m": few[["a"]]}, sensitive="pay", key="a", units="nats", **LEAST)
    assert nats.information == pytest.approx(three.information * math.log(2))
    assert "risk [nats]" in nats.to_frame().columns


def test_optimal_pram_is_given_the_classes():
    few = wealth(400).assign(a=lambda t: t["a"].round().clip(-2, 2))
    methods = {
        "optimal": masking.OptimalPRAM(0.3, distortion="squared_error", random_state=0),
        "plain": masking.PRAM(0.8, random_state=0),
    }
    optimal, plain, *_ = sdc.compare(few, methods, sensitive="pay", key="a", **FEW).points
    assert optimal.excess < plain.excess


@pytest.mark.parametrize("full", [True, False])
def test_cells_of_few_records_and_of_ties(full):
    for seed in range(8):
        data = np.random.default_rng(seed).normal(size=(150, 2))
        data = np.round(data * 20) if full else np.exp(data)
        x = cell_finder(data, 64)(data)
        assert (np.bincount(x) > 0).all()
        assert 20 <= x.max() + 1 <= 64


@pytest.mark.long
def test_other_flavours_of_frames_and_repeatability(result):
    polars = pytest.importorskip("polars", reason=WHY)
    again = sdc.compare(
        polars.from_pandas(wealth().drop(columns="name")), {"MDAV": masking.MDAV(30)}, **BOTH, **FEW
    )
    named = {(p.method, p.setting): p for p in result.points}
    assert all(named[p.method, p.setting] == p for p in again.points)


@pytest.mark.long
def test_estimators_are_copied_and_seeded():
    methods = {
        "state": masking.AdditiveNoise(0.5, random_state=np.random.default_rng(0)),
        "none": masking.Rescaled(masking.AdditiveNoise(0.5)),
    }
    one, other, third = (
        sdc.compare(wealth(100), methods, **BOTH, **LEAST, seed=seed).points for seed in (0, 0, 1)
    )
    assert one == other
    assert one[0] == third[0]
    assert one[1] != third[1]
    assert not hasattr(methods["none"], "method_")


def test_text_and_picture(result, tmp_path):
    text = str(result)
    for piece in ("k = 30", "optimal channel", "certified", "counted from the table", "bias"):
        assert piece in text
    assert "nan" not in text
    figure, axes = plt.subplots(1, 2, figsize=(14, 7))
    bounds = {
        "cells": {"frontier of releases of X's cell, certified", "MIUB: the cell, or the mean"},
        "records": {"QGLB, from estimates of h(W) and Σ"},
    }
    for ax, (of, names) in zip(axes, bounds.items(), strict=True):
        result.draw(ax, of=of, parameters={"mine": "m"})
        handles, labels = ax.get_legend_handles_labels()
        assert names | {"MDAV", "noise", "swap", "mine"} <= set(labels)
        lines = [h for h in handles if hasattr(h, "get_xdata")]
        assert all(np.isfinite(line.get_xdata()).any() for line in lines)  # each is drawn
        assert not (bounds["records" if of == "cells" else "cells"] & set(labels))
    assert axes[0].get_ylim() == axes[1].get_ylim()
    figure.savefig(tmp_path / "plane.png")
    plt.close(figure)


def test_every_point_is_labelled_and_no_label_hides_another(result):
    figure, ax = plt.subplots(figsize=(7, 7))
    result.draw(ax, parameters={"mine": "m"})
    points = [p for p in result.points if p.method != "optimal channel"]
    texts = [t for t in ax.texts if t.get_text()]
    expected = [f"m = {p.setting}" if p.method == "mine" else p.setting for p in points]
    assert [t.get_text() for t in texts] == expected
    boxes = [t.get_window_extent() for t in texts]
    spots = [ax.transData.transform((p.cut, p.risk)) for p in points]
    for i, box in enumerate(boxes):
        assert ax.get_window_extent().padded(1).containsx(box.x0)
        assert not any(box.overlaps(other) for other in boxes[:i]), texts[i]
        assert not any(box.contains(*spot) for spot in spots), texts[i]
    plt.close(figure)


def test_a_point_below_the_frontier_is_ringed_and_said(result):
    """The frontier lies below the points, or the legend says why not."""
    why = "below the frontier: by sampling, or as more than the cell was used"
    for shift in (0.0, 5.0):
        points = [replace(p, risk=p.risk + 5.0 - shift * 2) for p in result.points[:1]]
        figure, ax = plt.subplots()
        replace(result, points=points).draw(ax)
        handles = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
        assert (why in handles) is (shift > 0) is (points[0].excess < 0)
        if shift:
            assert handles[why].get_xydata().tolist() == [[points[0].cut, points[0].risk]]
        plt.close(figure)


class Broken:
    def fit_transform(self, table, y):
        raise RuntimeError("no ink")


MDAV = {"m": masking.MDAV(5)}


@pytest.mark.parametrize(
    ("argument", "options", "pieces"),
    [
        ("methods", {"methods": {}}, ()),
        ("methods", {"methods": {"optimal channel": MDAV["m"]}}, ()),
        ("methods", {"methods": {"m": masking.MDAV(99)}}, ("k: groups of 99 from 50",)),
        ("methods", {"methods": {"m": wealth(49)[["a"]]}}, ("masked: 49 records",)),
        ("methods", {"methods": {"m": wealth(50)[["b"]]}}, ("masked: no column 'a'",)),
        ("methods", {"methods": {"m": masking.AdditiveNoise(1e200)}}, ("scale",)),
        ("methods", {"methods": {"m": masking.MDAV}}, ("MDAV is a class",)),
        ("methods", {"methods": {"m": Broken()}}, ("fit_transform: RuntimeError: no ink",)),
        ("methods", {"methods": {"m": []}}, ("an empty curve",)),
        ("methods", {"methods": {"m": {}}}, ("an empty curve",)),
        ("original", {"original": np.zeros((3, 2))}, ("a ndarray",)),
        ("original", {"key": "name"}, ("[0, name]", "'x' is no number")),
        ("original", {"key": "c"}, ("there are pay, a, b, name",)),
        ("original", {"key": ["a", "a"]}, ("'a' is named twice",)),
        ("original", {"original": pd.concat([wealth(50), wealth(50)[["b"]]], axis=1)}, ()),
        ("original", {"original": wealth(50).assign(a=[1, 2, None] + [4] * 47)}, ("[2, a]",)),
        ("key", {"original": wealth(50).assign(a=1.0)}, ("'a' is constant",)),
        ("key", {"key": ["a", "pay"]}, ("'pay' is confidential, too",)),
        ("sensitive", {"sensitive": "c"}, ()),
        ("sensitive", {"sensitive": ["pay", "pay"]}, ("'pay' is named twice",)),
        ("sensitive", {"original": wealth(50).assign(name=["x", None] * 25), "sensitive": "name"},
         ("[1, name]: a missing value",)),
        ("leakage", {"leakage": "gossip"}, ()),
        ("matrix", {"leakage": cpv.leakage.Gain([[1, 0, 0]])}, ("where W has 4",)),
        ("cells", {"cells": 1}, ()),
        ("classes", {"classes": 0}, ()),
        ("seed", {"seed": -1}, ()),
        *(("shares", {"shares": s}, ()) for s in ((), (-0.1,), (0.2, 1.5), (0.0,), "many")),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(argument, options, pieces):
    base = {"original": wealth(50), "methods": MDAV, "sensitive": "pay", "key": "a", **LEAST}
    error = refusal(argument, sdc.compare, **{**base, **options})
    for piece in pieces:
        assert piece in str(error)
    if argument == "methods" and pieces:
        assert error.where == "m" or "empty" in str(error)
