"""The scripts that draw whole curves: closed forms, and proved bounds on the right side."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import rel_entr

import cvxprivacy as cpv
from cvxprivacy.reference import mixture_of_trivial_rules, projected_descent
from tests import referee


def performance(source, channel):
    """Return E (x − x̂)² and I(W; X̂) in nats, term by term."""
    x = np.array(source.x)
    joint = source.pmf @ channel
    risk = rel_entr(joint, np.outer(source.p_w, joint.sum(axis=0))).sum()
    return (source.p_x[:, None] * channel * np.subtract.outer(x, x) ** 2).sum(), risk


@pytest.mark.long
def test_script_rebollo_fig6(run):
    module, result, _ = run("figures/rebollo_fig6", words=["above its certified optimum"])
    source, rho = result.source, 0.95
    variance = source.p_x @ np.array(source.x) ** 2
    before = source.information(units="nats")
    assert (len(source.x), source.x[0], source.x[-1]) == (31, -3.0, 3.0)
    assert variance == pytest.approx(0.974496, abs=1e-6)

    for curve in (result.covariance, result.curve):
        assert curve.complete
        assert curve.band <= curve.tol <= 0.01
    budgets = np.linspace(0, 1, 201)
    exact = -np.log(1 - (1 - budgets) * rho**2) / 2
    assert (result.covariance.outer(budgets) - 1e-12 <= exact).all()
    assert (exact <= result.covariance.inner(budgets) + 1e-12).all()
    for point in result.covariance.points[1:-1]:  # the ends are closed, not solved
        assert point.solution.status == "certified"
        assert module.closed_form(point.x) == pytest.approx(
            -math.log(1 - (1 - point.x) * rho**2) / 2, abs=1e-14
        )
        price = -1 / point.solution.prices["budget"]  # λ is minus the inverse of the slope
        assert price == pytest.approx(module.price_at(point.x), rel=1e-4)
    assert module.closed_form(0.0) == pytest.approx(result.gaussian.information(units="nats"))
    assert module.closed_form(1.0) == 0.0

    for point in result.curve.points[1:-1]:
        referee.check(point.solution)
    budgets = np.linspace(0, result.curve.points[-1].x, 201)
    inner, outer = result.curve.inner(budgets), result.curve.outer(budgets)
    assert (outer <= inner).all()
    assert (inner <= result.upper_bound(budgets, before, variance) + 1e-9).all()  # MIUB of the grid
    assert (np.diff(inner) <= 0).all()
    for share in module.SHARES:
        assert result.curve.solution_at(share).gap < 1e-6  # solved, not mixed
    # enclosures proved elsewhere, at 0.25, 0.5 and 0.75 of the sampled variance
    for share, known in ((0.25, 0.5614509863), (0.5, 0.2985066976), (0.75, 0.1271793656)):
        assert result.curve.outer(share * variance) <= known + 1e-8
        assert known - 1e-8 <= result.curve.inner(share * variance)
    referee.check(result.wide)
    assert result.wide.value == pytest.approx(module.closed_form(0.5), abs=1e-5)

    error = cpv.squared_error(source.x).matrix
    for each in result.descents:
        referee.check(each.optimum)
        assert each.price == pytest.approx(2 * (1 / rho**2 - 1 + each.share))
        risk, distortion = each.path[0]
        assert distortion == pytest.approx(each.share * variance)
        assert risk <= (1 - each.share) * before
        start = mixture_of_trivial_rules(source.x, source.p_x, each.share)
        again = projected_descent(source.pmf, error, each.price, start, iterations=each.iterations)
        assert each.end == again[:2]  # in pieces or in one go
        for risk, distortion in [*each.path.values(), *each.away.values()]:
            assert risk >= result.curve.outer(distortion) - 1e-12
            assert distortion + each.price * risk >= each.optimum.lower - 1e-12
        assert 0.02 < each.excess(each.end) < each.excess(each.path[0])
        # started at the certified optimum, the descent leaves it
        assert abs(each.excess(each.away[0])) < 1e-9
        assert each.excess(each.away[each.iterations]) > 0.005


def test_script_rebollo_fig7(run):
    ran = run("figures/rebollo_fig7", "--quick")
    result = ran.result
    assert len(ran.differing) == len(ran.claims) == 4
    referee.check(result.optimum)
    source = cpv.GaussianSource.scalar(0.95).discretise(31, 3.0)
    price = 2 * (1 / 0.95**2 - 0.5)
    for name, channel in result.channels.items():
        assert channel.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        assert channel.min() >= 0
        distortion, risk = performance(source, channel)
        found = tuple(result.table.loc[name, ["D", "R", "C"]])
        assert found == pytest.approx((distortion, risk, distortion + price * risk))
        assert found[2] >= result.optimum.lower - 1e-12
    start, found, longer, shape, best = result.table["C"]
    assert best == pytest.approx(result.optimum.value, abs=1e-12)
    assert best < shape < longer < found < start
    assert shape < 1.002 * best
    for path in result.paths.values():
        assert len(path) == len(result.stops)
        assert (np.diff(path) < 0).all()
        assert (path > 0).all()
    paper, exact = result.paths.values()
    assert (exact[1:] > paper[1:]).all()  # clipping and renormalising is not what holds it up here
    x, shape = result.x, result.channels["Gaussian shape"]
    middle = np.abs(x) < 1.5  # away from the cut, mean and variance of the theory
    mean = shape @ x
    spread = (shape * np.subtract.outer(mean, x) ** 2).sum(axis=1)
    assert mean[middle] == pytest.approx(x[middle] / 2, abs=1e-3)
    assert spread[middle] == pytest.approx(0.25, abs=5e-3)


def test_script_what_does_a_bit_cost(run):
    words = ("592 students", "convex", "band", "price", "a kink", "certified")
    module, result, _ = run("problems/what_does_a_bit_cost", words=words)

    # facts of the 592 students, known beforehand
    source = result.source
    assert source.records == 592
    assert source.p_x * 592 == pytest.approx([108, 286, 71, 127])
    assert source.p_w * 592 == pytest.approx([220, 215, 93, 64])

    curve, inverse = result.curve, result.inverse
    assert curve.band <= module.TOL
    for point in curve.points[1::6]:
        referee.check(point.solution)
    referee.check(result.chosen)
    # everybody under the commonest hair colour tells nothing, and costs 1 − 286/592
    assert curve.points[-1].x <= 1 - 286 / 592 + 1e-12
    assert curve.points[-1].upper <= 1e-9
    assert curve.inner(0.0) == pytest.approx(source.information(), abs=1e-6)

    # the two programs are one curve: inverse functions, with inverse prices
    for share in (0.03, 0.1, 0.17):
        bits = (curve.inner(share) + curve.outer(share)) / 2
        assert inverse.outer(bits) - 2e-3 <= share <= inverse.inner(bits) + 2e-3
        forth, back = curve.price(share), inverse.price(bits)
        assert float(forth) * float(back) == pytest.approx(1.0, rel=0.1)

    # the optimality conditions, recomputed from the channel alone
    channel, price = result.chosen.channel.matrix, -result.chosen.prices["budget"]
    given = source.pmf / source.p_x
    joint = source.pmf @ channel
    told = np.log2(joint / np.outer(source.p_w, joint.sum(axis=0)))
    cost = given.T @ told + price * (1 - np.eye(4))
    reduced = cost - cost.min(axis=1, keepdims=True)
    assert reduced == pytest.approx(result.reduced, abs=1e-6)
    assert (channel * reduced).max() < 1e-7
    assert (reduced[channel < 1e-9] > 0.01).all()
    assert all(abs(value) < 1e-6 for value in result.residuals().values())
    slope = (curve.inner(0.1 + 0.02) - curve.inner(0.1 - 0.02)) / 0.04
    assert -price == pytest.approx(slope, rel=0.02)


def test_script_cholesterol(run):
    pytest.importorskip("sklearn", reason="the extra `examples` is not installed")
    words = ("certified", "enclosure", "risk before", "risk after", "price", "MIUB", "bias")
    module, results, _ = run("problems/cholesterol", words=words)
    weight, cholesterol = results
    for result in results:
        referee.check(result.chosen)
        curve = result.curve
        assert curve.complete
        assert curve.band <= 1e-3
        for point in curve.points[1:-1]:  # the ends are closed, not solved
            referee.check(point.solution)
        shares = np.linspace(0, curve.points[-1].x / result.variance, 201)
        inner = curve.inner(shares * result.variance)
        assert (inner <= result.upper_bound(shares) + 1e-9).all()  # the optimum is below the chord
        known = curve.solution_at(module.SHARE * result.variance)
        assert known.lower <= result.chosen.upper
        assert result.chosen.lower <= known.upper <= result.chosen.upper + 1e-3
    # facts of the 442 patients, known beforehand
    assert weight.source.records == 442
    assert weight.source.information() == pytest.approx(0.134, abs=5e-4)
    assert cholesterol.source.information() == pytest.approx(0.937, abs=5e-4)
    assert weight.source.bias() == pytest.approx(0.044, abs=5e-4)
    assert weight.chosen.value / weight.source.information() == pytest.approx(0.35, abs=0.005)
    assert cholesterol.chosen.value / cholesterol.source.information() == pytest.approx(
        0.68, abs=0.005
    )
