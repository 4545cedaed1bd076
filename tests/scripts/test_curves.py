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


@pytest.mark.long
def test_script_sankar_fig5(run):
    module, result, _ = run("figures/sankar_fig5", words=["lost in the text"])
    for g in result.gaussian:
        greatest = 1 - g.rho_xz**2
        budgets = np.linspace(0.01, greatest, 101)
        for curve, exact in (
            (g.rate, np.log2(greatest / budgets) / 2),
            (g.leakage, -np.log2(1 - g.rho_wx**2 * (1 - budgets)) / 2),
        ):
            assert curve.complete
            assert all(point.status == "certified" for point in curve.points)
            assert (curve.outer(budgets) - 1e-9 <= exact).all()
            assert (exact <= curve.inner(budgets) + 1e-9).all()
            assert (curve.inner(budgets) <= curve.outer(budgets) + 0.1).all()
        # one code does both, and Z alone leaks what is left at the greatest distortion
        for budget in g.budgets:
            least = g.leakage.solution_at(budget)
            assert least.gap < 1e-6  # solved, not mixed
            assert float(g.rate.solution_at(budget).leakage) == pytest.approx(least.value, abs=1e-6)
        held = -math.log2(1 - (g.rho_wx * g.rho_xz) ** 2) / 2
        assert g.budgets[-1] == greatest
        assert g.leakage.points[-1].x == pytest.approx(greatest)
        assert g.leakage.inner(greatest) == pytest.approx(held, abs=1e-6)
        assert min(point.upper for point in g.leakage.points) >= held - 1e-12
    for rho_xz in (0.5, 0.8):  # no rate loss: the encoder need not know Z
        source = cpv.GaussianSource.scalar(0.8, rho_xz=rho_xz)
        values = [
            cpv.GaussianEquivocation(source, 0.2, side_information=who).solve().value
            for who in ("decoder", "both")
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-9)

    growing = [s for results in result.growing.values() for s in results]
    for s in [*result.fixed, *growing]:
        assert s.solution.gap < 1e-6
        referee.check(s.solution, status=s.solution.status)
        closed = module.rate(s.budget) if s.kind == "rate" else module.leakage(s.budget, s.rho_wx)
        assert s.gaussian == closed
        # the moments of the grid explain most of the error
        assert abs(s.solution.value - s.matched) < 0.2 * s.error
    for (_, rho), results in result.growing.items():
        orders = module.orders(results)
        assert orders == sorted(orders)  # faster than any power
        assert orders[-1] > 5
        if rho < 0.95:  # there the first grid is too coarse for the sign
            assert all(s.errors[1] < 0 for s in results)
    assert [s.error for s in result.fixed] == sorted(s.error for s in result.fixed)
    assert result.fixed[-1].errors[1] < -1e-2
    assert result.sampled.complete
    assert result.sampled.band <= 0.1
    for (kind, rho), curve in result.sampled.items():
        for point in curve.points[:-1]:  # the last is closed, not solved
            referee.check(point.solution, status=point.status)
        budgets = np.linspace(0.1, 0.9, 81)
        exact = [module.rate(d) if kind == "rate" else module.leakage(d, rho) for d in budgets]
        off = 1e-3 if kind == "leakage" else 1e-2  # agree in the picture
        assert (curve.outer(budgets) - off <= exact).all()
        assert (exact <= curve.inner(budgets) + off).all()


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
