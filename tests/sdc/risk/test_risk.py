"""Disclosure risk: linkage and intervals by hand, leakage against known laws, the score."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.errors import MissingPackageError
from cvxprivacy_sdc.risk import (
    distance_linkage,
    estimated_leakage,
    interval_disclosure,
    probabilistic_linkage,
    score,
)
from tests.sdc.audits import refusal

# ---- linkage -----------------------------------------------------------------------------


def naive_linkage(x, y):
    """Link each masked record by hand, ties shared."""
    linked = 0.0
    for i, record in enumerate(y):
        distance = ((x - record) ** 2).sum(axis=1)
        nearest = np.flatnonzero(distance <= distance.min() * (1 + 1e-9) + 1e-18)
        linked += (i in nearest) / len(nearest)
    return linked / len(y)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 3), st.booleans())
@settings(max_examples=80)
def test_linkage_is_what_is_written_down(seed, n, p, tied):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (n, p)).astype(float) if tied else rng.normal(size=(n, p))
    y = x + rng.integers(-1, 2, (n, p)) * rng.random()
    outcome = distance_linkage(x, y, standardize=False)
    assert outcome == pytest.approx(naive_linkage(x, y), abs=1e-12)
    assert 0.0 <= outcome <= 1.0
    # untouched, each record is guessed among its equals
    groups = np.unique(x, axis=0, return_inverse=True)[1]
    assert distance_linkage(x, x) == pytest.approx(len(np.unique(groups)) / n)


def test_linkage_by_hand():
    x = [[0.0], [1.0], [5.0]]
    assert distance_linkage(x, [[0.4], [0.4], [5.0]]) == pytest.approx(2 / 3)
    assert distance_linkage(x, [[0.5], [0.5], [5.0]]) == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert distance_linkage([[7.0]], [[-3.0]]) == 1.0  # there is nobody else
    constant = np.full((5, 2), 2.0)
    assert distance_linkage(constant, constant) == pytest.approx(1 / 5)


def test_standard_deviations_decide_who_is_nearest():
    x = np.array([[0.0, 0.0], [1.0, 1000.0], [2.0, 0.0]])
    y = np.array([[0.0, 600.0], [1.0, 1000.0], [2.0, 600.0]])
    assert distance_linkage(x, y, standardize=False) == pytest.approx(1 / 3)
    assert distance_linkage(x, y) == pytest.approx(naive_linkage(x / x.std(0), y / x.std(0)))


def test_columns_the_intruder_knows():
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [0.0, 0.0, 0.0]})
    masked = frame.assign(a=1.0)
    assert distance_linkage(frame, masked) == pytest.approx(1 / 3)
    assert distance_linkage(frame, masked, ["b"]) == pytest.approx(1 / 3)
    assert distance_linkage(frame, masked[["b", "a"]], ["a"]) == pytest.approx(1 / 3)


def test_a_constant_column_of_any_size_changes_no_link():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2))
    y = x + rng.normal(size=x.shape) * 0.01
    wide = [np.column_stack([data, np.full(100, 1e12)]) for data in (x, y)]
    assert distance_linkage(*wide) == pytest.approx(distance_linkage(x, y))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("p", [1, 2, 3])
def test_one_to_one_linkage_by_all_permutations(seed, p):
    """The mean over all bijections of the least sum of squares; some records are equal."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(6, p))
    y = x + rng.normal(size=(6, p))
    if seed % 2:
        y[[0, 1, 2]], x[4] = y[[0, 1, 2]].mean(axis=0), x[5]
    apart = ((y[:, None] - x) ** 2).sum(axis=2)
    every = [np.array(order) for order in itertools.permutations(range(6))]
    costs = np.array([apart[np.arange(6), order].sum() for order in every])
    best = np.flatnonzero(costs <= costs.min() + 1e-9)
    expected = np.mean([(every[i] == np.arange(6)).mean() for i in best])
    outcome = distance_linkage(x, y, standardize=False, one_to_one=True)
    assert outcome == pytest.approx(expected)
    shuffled = rng.permutation(6)
    again = distance_linkage(x[shuffled], y[shuffled], standardize=False, one_to_one=True)
    assert again == pytest.approx(outcome)


def test_one_to_one_linkage_of_many_records():
    x = np.random.default_rng(3).normal(size=(20_000, 1))
    assert distance_linkage(x, 2 * x + 1, one_to_one=True) == 1.0  # the order is kept
    error = refusal("masked", distance_linkage, np.hstack([x, x]), np.hstack([x, x]),
                    one_to_one=True)  # fmt: skip
    assert "draw 5,000" in str(error)
    table = np.random.default_rng(4).normal(size=(300, 2))
    masked = table + 0.3 * np.random.default_rng(5).normal(size=(300, 2))
    shares = [distance_linkage(table, masked, one_to_one=how) for how in (False, True)]
    assert 0.1 < shares[0] < shares[1]
    nobody = distance_linkage(table, table.mean(axis=0) + 0 * table, one_to_one=True)
    assert nobody == pytest.approx(1 / 300)


@pytest.mark.long
def test_probabilistic_linkage():
    pytest.importorskip("splink", reason="cvxprivacy-sdc[linkage] is not installed")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    near = probabilistic_linkage(x, x + 0.02 * rng.normal(size=x.shape))
    far = probabilistic_linkage(x, x + 1.0 * rng.normal(size=x.shape))
    assert near > 0.9
    assert far < 0.4
    assert near == probabilistic_linkage(x, x + 0.02 * np.random.default_rng(0).normal(
        size=(120, 3))[60:])  # fmt: skip


def test_steps_of_probabilistic_linkage_increase():
    pytest.importorskip("splink", reason="cvxprivacy-sdc[linkage] is not installed")
    refusal("steps", probabilistic_linkage, [[1.0]], [[1.0]], steps=(0.3, 0.1))


def test_the_extra_of_probabilistic_linkage_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "splink", None)
    with pytest.raises(MissingPackageError, match=r"cvxprivacy-sdc\[linkage\]"):
        probabilistic_linkage([[1.0]], [[1.0]])


# ---- intervals and score -----------------------------------------------------------------


def test_intervals_by_hand():
    x = np.arange(10.0)[:, None]
    assert interval_disclosure(x, x) == 1.0
    shifted = x + 1.5  # one rank and a half, in a table whose ranks are steps of 1
    # half a rank within 10 %: one rank up and down reaches 1 from the masked value
    assert interval_disclosure(x, shifted, percents=[10]) == pytest.approx(0.0)
    assert interval_disclosure(x, shifted, percents=[20]) == pytest.approx(0.8)  # not the ends
    sd = x.std()
    assert interval_disclosure(x, shifted, percents=[150 / sd + 1], by="deviation") == 1.0
    assert interval_disclosure(x, shifted, percents=[150 / sd - 1], by="deviation") == 0.0
    both = interval_disclosure(x, shifted, percents=[10, 20])
    assert both == pytest.approx(0.4)


def test_rank_swapping_within_the_interval_is_disclosed():
    masking = pytest.importorskip("cvxprivacy_sdc.masking")
    x = np.random.default_rng(0).normal(size=(400, 2))
    masked = masking.RankSwapping(5, random_state=0).fit_transform(x)
    assert interval_disclosure(x, masked, percents=[5]) == 1.0
    assert interval_disclosure(x, masked, percents=[1]) < 0.5


def test_score():
    assert score(0.0, linkage=0.0, interval=0.0) == 0.0
    assert score(100.0, linkage=1.0, interval=1.0) == 100.0
    assert score(30.0, linkage=0.2, interval=0.5) == pytest.approx(15 + 100 * 0.7 / 4)
    assert score(30.0, linkage=0.2, interval=0.5, probabilistic=0.4) == pytest.approx(15 + 20)


# ---- leakage -----------------------------------------------------------------------------


def gaussian(rho, n, seed=0):
    w, e = np.random.default_rng(seed).normal(size=(2, n))
    return w, rho * w + math.sqrt(1 - rho**2) * e


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
def test_leakage_of_gaussians(rho):
    w, x = gaussian(rho, 20_000)
    exact = -0.5 * math.log(1 - rho**2)
    near = estimated_leakage(w, x, method="neighbours", units="nats")
    assert near.value == pytest.approx(exact, abs=4 * near.standard_error + 0.01)
    cut = estimated_leakage(w, x, units="nats")
    assert cut.raw > cut.value
    assert cut.value == pytest.approx(exact, abs=4 * cut.standard_error + 0.03)
    coarse = estimated_leakage(w, x, step=1.0, units="nats")  # cutting can only lose
    assert coarse.value < exact + 3 * coarse.standard_error
    assert cut.value < exact + 3 * cut.standard_error + 0.01
    if rho:
        assert coarse.value < cut.value


def test_the_bias_of_sparse_cells_is_mostly_removed():
    values, raw = [], []
    for seed in range(5):
        w, x = gaussian(0.0, 5000, seed)
        outcome = estimated_leakage(w, x, units="nats")
        values.append(outcome.value)
        raw.append(outcome.raw)
    assert np.mean(raw) > 0.14
    assert np.mean(values) < 0.035
    assert estimated_leakage([1.0], [2.0]).value == 0.0


def test_leakage_of_several_attributes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 2))
    w = np.column_stack([x[:, 0] + rng.normal(size=6000), rng.normal(size=6000)])
    outcome = estimated_leakage(w, x, method="neighbours", units="nats")
    assert outcome.value == pytest.approx(math.log(2) / 2, abs=0.08)
    table = cpv.GaussianSource(np.cov(np.column_stack([w, x]).T), sensitive=[0, 1], key=[2, 3])
    assert outcome.value == pytest.approx(table.information(units="nats"), abs=0.08)


def test_leakage_of_letters_is_the_plug_in():
    rng = np.random.default_rng(0)
    joint = np.array([[30, 10, 0], [5, 20, 35]])
    w, x = (np.repeat(v.ravel(), joint.ravel()) for v in np.indices(joint.shape))
    order = rng.permutation(len(w))
    illness, band = np.array(["ill", "well"])[w[order]], np.array(["a", "b", "c"])[x[order]]
    outcome = estimated_leakage(illness, band)
    assert outcome.raw == pytest.approx(cpv.information.mutual_information(joint))

    # the jackknife, one record left out after the other
    def without(i):
        keep = np.arange(len(w)) != i
        return estimated_leakage(illness[keep], band[keep]).raw

    n = len(w)
    jackknife = (n - 1) * (np.mean([without(i) for i in range(n)]) - outcome.raw)
    assert outcome.bias == pytest.approx(jackknife, abs=1e-9)
    assert outcome.bias == pytest.approx(cpv.information.miller_madow(joint), rel=0.3)
    frame = pd.DataFrame({"illness": illness, "band": band})
    assert estimated_leakage(frame[["illness"]], frame[["band"]]).raw == pytest.approx(outcome.raw)
    # numbers as letters, and beside letters
    assert estimated_leakage(w, x, step=None).raw == pytest.approx(outcome.raw)
    mixed = pd.DataFrame({"band": band, "same": x[order].astype(float)})
    assert estimated_leakage(frame[["illness"]], mixed, step=0.5).raw == pytest.approx(outcome.raw)
    # neighbours of letters: many ties, no distances
    near = estimated_leakage(illness, band, method="neighbours")
    assert near.value == pytest.approx(outcome.raw - outcome.bias, abs=0.03)


def test_leakage_of_a_release_that_is_partly_discrete():
    """W Gaussian, X̂ its sign: I = H(sign) = 1 bit; or W itself half of the time."""
    w, _ = gaussian(0.5, 20_000, seed=3)
    sign = (w > 0).astype(float)
    assert estimated_leakage(w, sign, method="neighbours").value == pytest.approx(1.0, abs=0.02)
    assert estimated_leakage(w, sign, step=[0.15, 1.0]).value == pytest.approx(1.0, abs=0.02)
    # cells of width 0.15 about 0 are cut at 0: nothing is lost
    constant = np.zeros(len(w))
    for method in ("neighbours", "quantised"):
        assert estimated_leakage(w, constant, method=method).value == pytest.approx(0.0, abs=1e-3)


def test_categories_are_all_equally_far():
    """The order in which they occur, and so their numbers, changes nothing."""
    rng = np.random.default_rng(0)
    w, letters = rng.normal(size=90), rng.choice(list("abcdefghijklmnopqrst"), 90)
    order = rng.permutation(90)
    one = estimated_leakage(w, letters, method="neighbours")
    other = estimated_leakage(w[order], letters[order], method="neighbours")
    assert one.raw == pytest.approx(other.raw, abs=1e-12)


def test_the_standard_error_covers():
    """Over repeated samples the deviation is of the size of the standard error."""
    exact = -0.5 * math.log(1 - 0.64)
    z = []
    for seed in range(60):
        w, x = gaussian(0.8, 1000, seed)
        outcome = estimated_leakage(w, x, method="neighbours", units="nats")
        z.append((outcome.raw - exact) / outcome.standard_error)
    assert 0.6 < np.std(z) < 1.5
    assert abs(np.mean(z)) < 1.0


def test_units_and_what_cannot_be_measured():
    w, x = gaussian(0.9, 500)
    for method in ("quantised", "neighbours"):
        bits, nats = (estimated_leakage(w, x, method=method, units=u) for u in ("bits", "nats"))
        assert bits.raw * math.log(2) == pytest.approx(nats.raw)
        assert bits.bias * math.log(2) == pytest.approx(nats.bias)
        assert bits.standard_error * math.log(2) == pytest.approx(nats.standard_error)
    one, two, three = [[1.0]], np.zeros((2, 1)), np.zeros((3, 1))
    missing = np.array(["a", None, "b"], dtype=object)
    for argument, call, arguments, options in (
        ("released", estimated_leakage, (w, x[1:]), {}),
        ("method", estimated_leakage, (w, x), {"method": "kde"}),
        ("step", estimated_leakage, (w, x), {"step": [1, 2, 3]}),
        ("step", estimated_leakage, (w, x), {"step": 0.0}),
        ("sensitive", estimated_leakage, (w[:3], x[:3]), {"method": "neighbours"}),
        ("sensitive", estimated_leakage, ([1.0, np.nan], [1.0, 2.0]), {}),
        ("sensitive", estimated_leakage, ("ill", 1.0), {}),
        ("sensitive", estimated_leakage, (pd.DataFrame(), [1.0]), {}),
        ("sensitive", estimated_leakage, (missing, three), {}),
        ("sensitive", estimated_leakage, (pd.DataFrame({"w": missing}), three), {}),
        ("percents", interval_disclosure, (one, one), {"percents": [-1]}),
        ("by", interval_disclosure, (one, one), {"by": "value"}),
        ("masked", interval_disclosure, (three, two), {}),
        ("masked", distance_linkage, (three, two), {}),
        ("linkage", score, (30.0,), {"linkage": 20.0, "interval": 0.5}),
        ("loss", score, (-1.0,), {"linkage": 0.2, "interval": 0.5}),
    ):  # fmt: skip
        refusal(argument, call, *arguments, **options)
    assert refusal("sensitive", estimated_leakage, pd.DataFrame({"w": missing}), three).where == (
        1,
        "w",
    )
