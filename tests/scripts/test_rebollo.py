"""The scripts on Rebollo-Monedero et al. 2010: their figures, and the claims of §§6–7."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import norm

import cvxprivacy as cpv
from cvxprivacy.reference import mixture_of_trivial_rules, projected_descent
from tests import referee
from tests.lengths import rest_at_length

RHO = 0.95
UNCLOSE = "printed: share of gap"


def exact(d, rho=RHO):
    """Eq. 8, in nats."""
    return -math.log(1 - (1 - d) * rho**2) / 2


def sampled(rho=RHO):
    """The law of Fig. 6, and its squared errors."""
    source = cpv.GaussianSource.scalar(rho).discretise(31, 3.0)
    return source, cpv.squared_error(source.x)


def price(d, rho=RHO):
    """λ of §6.1."""
    return 2 * (1 / rho**2 - 1 + d)


def performance(source, channel):
    """Return E (x − x̂)² and I(W; X̂) in nats, term by term."""
    x = np.array(source.x)
    joint = source.pmf @ channel
    risk = rel_entr(joint, np.outer(source.p_w, joint.sum(axis=0))).sum()
    return (source.p_x[:, None] * channel * np.subtract.outer(x, x) ** 2).sum(), risk


@pytest.mark.long
def test_script_rebollo_fig6(run):
    ran = run("figures/rebollo_fig6", "--quick")
    result = ran.result
    assert ran.differing == {UNCLOSE, "projected: share of gap"}  # after 1,000 iterations
    for d, bound in zip((0.25, 0.5, 0.75), result.bounds, strict=True):
        assert bound.lower - 1e-12 <= exact(d) <= bound.upper + 1e-12
    assert ran.module.qglb(0.5) == pytest.approx(exact(0.5), abs=1e-14)
    source, error = sampled()
    assert source.pmf == pytest.approx(result.source.pmf, abs=0)
    for point in result.curve.points[1:-1:6]:  # the ends are closed, not solved
        referee.check(point.solution)
    variance = source.p_x @ np.square(source.x)
    assert variance == pytest.approx(0.974496, abs=1e-6)
    budgets = np.linspace(0, result.curve.points[-1].x, 101)
    inner, outer = result.curve.inner(budgets), result.curve.outer(budgets)
    assert (outer <= inner).all()
    chord = (1 - budgets / variance) * source.information(units="nats")  # MIUB of the grid
    assert (inner <= chord + 1e-9).all()
    # enclosures proved elsewhere, at 0.25, 0.5 and 0.75 of the sampled variance
    for share, expected in ((0.25, 0.5614509863), (0.5, 0.2985066976), (0.75, 0.1271793656)):
        assert result.curve.outer(share * variance) <= expected + 1e-8
        assert expected - 1e-8 <= result.curve.inner(share * variance)
    best, var = {}, {}
    for rho in (0.8, RHO):
        law, error = sampled(rho)
        var[rho] = law.p_x @ np.square(law.x)
        for d in (0.25, 0.5, 0.75):
            problem = cpv.PrivacyDistortion(law, error, price=price(d, rho), units="nats")
            best[rho, d] = problem.solve().upper
    for (rho, way, d), path in result.paths.items():
        distortion, risk, above, gap, excess = path.T
        assert risk - above == pytest.approx([exact(each, rho) for each in distortion])
        line = [(1 - each) * exact(0, rho) for each in distortion]
        assert risk - above + gap == pytest.approx(line)
        cost = distortion + price(d, rho) * risk
        assert excess == pytest.approx(100 * (cost / best[rho, d] - 1))
        assert excess.min() > -1e-9
        if way == "reset, from the optimum":
            assert abs(excess[0]) < 1e-7
            assert excess[-1] > 0.5  # the printed steps leave it
        else:
            assert distortion[0] == pytest.approx(d * var[rho])
            assert excess[-1] < excess[0]
    way = {"step": 1e-3, "exact": True}  # in pieces or in one go
    start = mixture_of_trivial_rules(source.x, source.p_x, 0.5)
    again = projected_descent(source.pmf, error.matrix, price(0.5), start, iterations=1000, **way)
    ends = result.paths[RHO, "projected, 1e-3", 0.5][-1]
    assert ends[:2] == pytest.approx(again[1::-1], abs=1e-12)
    assert performance(source, again[2]) == pytest.approx(again[1::-1])


@pytest.mark.campaign
def test_rebollo_fig6_at_full_length(run):
    ran = run("figures/rebollo_fig6")
    assert ran.differing == {UNCLOSE}
    ends = {key: path[-1] for key, path in ran.result.paths.items()}
    above = [ends[RHO, "reset, 1e-4", d][2] for d in (0.25, 0.5, 0.75)]
    assert above == pytest.approx([0.069, 0.043, 0.019], abs=1e-3)
    # steps jitter: a change of 1e-15 at the start moves these ends by up to two percent of C
    for d in (0.25, 0.5, 0.75):
        *_, above, gap, excess = ends[RHO, "projected, 1e-3", d]
        assert above < 0.1 * gap
        assert 0.5 < excess < 6
        for way in ("reset, 1e-3", "projected, 1e-4"):  # either change alone
            assert ends[RHO, way, d][4] > excess + 0.5
    for rho in (0.5, 0.8):  # "similarity with results for other values of ρ"
        assert max(ends[rho, "projected, 1e-3", d][4] for d in (0.25, 0.5, 0.75)) < 2.5


@pytest.mark.campaign
def test_no_mixture_of_the_trivial_rules_brings_the_descent_near():
    """§6.1 does not say from which one a λ starts."""
    source, error = sampled()
    for d in (0.25, 0.5, 0.75):
        best = cpv.PrivacyDistortion(source, error, price=price(d), units="nats").solve()
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            start = mixture_of_trivial_rules(source.x, source.p_x, share)
            risk, distortion, _ = projected_descent(source.pmf, error.matrix, price(d), start)
            assert distortion + price(d) * risk > 1.055 * best.upper
            assert risk > exact(distortion) + 0.018


def test_newton_steps_are_few():
    """§6.1 expects of Newton's method fewer iterations than the descent's 32,000."""
    source, error = sampled()
    for d in (0.25, 0.5, 0.75):
        solution = cpv.PrivacyDistortion(source, error, price=price(d), units="nats").solve()
        assert int(re.findall(r"(\d+) steps", solution.log[0])[0]) < 50
        assert solution.gap < 1e-8


def test_the_gap_of_the_bounds_widens_with_the_correlation():
    """§6.1 says so: ∂/∂ρ² of MIUB − QGLB is ½(1 − d)(1/(1 − ρ²) − 1/(1 − (1 − d)ρ²)) ≥ 0."""
    rhos = np.linspace(0.01, 0.99, 50)
    for d in np.linspace(0.01, 0.99, 25):
        gap = np.array([(1 - d) * exact(0, rho) - exact(d, rho) for rho in rhos])
        assert (np.diff(gap) > 0).all()


@pytest.mark.long
def test_sampled_far_enough_the_gaussian_optimum_comes_back():
    source = cpv.GaussianSource.scalar(RHO).discretise(51, 5.0)
    error = cpv.squared_error(source.x)
    solution = cpv.PrivacyDistortion(source, error, budget=0.5, units="nats").solve()
    referee.check(solution)
    assert solution.value == pytest.approx(exact(0.5), abs=1e-5)


@pytest.mark.long
def test_script_rebollo_fig7(run):
    ran = run("figures/rebollo_fig7", "--quick")
    result = ran.result
    assert len(ran.differing) == len(ran.claims) == 3
    referee.check(result.optimum)
    source = cpv.GaussianSource.scalar(0.95).discretise(31, 3.0)
    price = 2 * (1 / 0.95**2 - 0.5)
    for name, channel in result.channels.items():
        assert channel.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        assert channel.min() >= 0
        distortion, risk = performance(source, channel)
        outcome = tuple(result.table.loc[name, ["D", "R", "C"]])
        assert outcome == pytest.approx((distortion, risk, distortion + price * risk))
        assert outcome[2] >= result.optimum.lower - 1e-12
    start, outcome, longer, shape, best = result.table["C"]
    assert best == pytest.approx(result.optimum.value, abs=1e-12)
    assert best < shape < longer < outcome < start
    assert shape < 1.002 * best
    paper, exact, climbing = result.paths.values()
    for path in (paper, exact):
        assert (np.diff(path) < 0).all()
        assert (path > 0).all()
    assert (exact > paper).all()  # resetting is faster at first …
    assert (climbing > 0).all()  # … but does not stay at the optimum, even if started there
    assert climbing.iloc[-1] > 10 * climbing.iloc[0]
    x, shape = result.x, result.channels["Gaussian shape"]
    middle = np.abs(x) < 1.5  # away from the cut, mean and variance of the theory
    mean = shape @ x
    spread = (shape * np.subtract.outer(mean, x) ** 2).sum(axis=1)
    assert mean[middle] == pytest.approx(x[middle] / 2, abs=1e-3)
    assert spread[middle] == pytest.approx(0.25, abs=5e-3)


@pytest.mark.long
def test_two_groups_leak_about_as_much_as_the_descent():
    """§7's "better performance" of rules on a grid holds of the optimum, not of the descent."""
    source, error = sampled()
    margins = []
    for d in (0.25, 0.5, 0.75):
        start = mixture_of_trivial_rules(source.x, source.p_x, d)
        outcome, at, _ = projected_descent(source.pmf, error.matrix, price(d), start)

        def wrong(c):  # E (X − X̂)² of X̂ = E[X | side of c]
            return 1 - norm.pdf(c) ** 2 / (norm.cdf(c) * norm.sf(c))

        cut = brentq(lambda c, at=at: wrong(c) - at, 0, 6)
        w = np.linspace(-8, 8, 4001)
        side = norm.cdf((cut - RHO * w) / math.sqrt(1 - RHO**2))
        joint = norm.pdf(w)[:, None] * np.stack([side, 1 - side], axis=1)
        risk = cpv.information.mutual_information(joint / joint.sum(), units="nats")
        assert exact(at) < min(risk, outcome)
        margins.append(risk - outcome)
    assert margins == pytest.approx([-0.019, 0.004, 0.008], abs=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("constants", rest_at_length([{"TOL": 2e-2}, {}], 1))
def test_script_cholesterol(run, constants):
    pytest.importorskip("sklearn", reason="the extra `examples` is not installed")
    ran = run("problems/cholesterol", **constants)
    assert not ran.differing
    weight, cholesterol = ran.result.values()
    for each in ran.result.values():
        referee.check(each.chosen)
        curve = each.curve
        assert curve.complete
        assert curve.band <= ran.module.TOL
        for point in curve.points[1:-1:3]:  # the ends are closed, not solved
            referee.check(point.solution)
        shares = np.linspace(0, curve.points[-1].x / each.variance, 201)
        chord = (1 - shares) * each.source.information()
        assert (curve.inner(shares * each.variance) <= chord + 1e-9).all()
        expected = curve.solution_at(ran.module.SHARE * each.variance)
        assert expected.lower <= each.chosen.upper
        assert each.chosen.lower <= expected.upper <= each.chosen.upper + ran.module.TOL
        # the simple rule: x, or the overall mean, which is no bin's
        channel = np.hstack([0.9 * np.eye(10), np.full((10, 1), 0.1)])
        leaked = cpv.information.mutual_information(each.source.pmf @ channel)
        assert leaked == pytest.approx(0.9 * each.source.information())
    # facts of the 442 patients, known beforehand
    assert weight.source.records == 442
    assert weight.source.information() == pytest.approx(0.134, abs=5e-4)
    assert cholesterol.source.information() == pytest.approx(0.937, abs=5e-4)
    assert weight.source.bias() == pytest.approx(0.044, abs=5e-4)
    kept = [each.chosen.value / each.source.information() for each in ran.result.values()]
    assert kept == pytest.approx([0.35, 0.68], abs=0.005)
    assert "35% of it" in ran.text
