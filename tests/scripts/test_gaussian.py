"""The Gaussian scripts: against closed forms, CVXPY's own words, and simulated records."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import cvxprivacy as cpv
from tests.scripts.oracles import BITS, program, proved, revealed


@pytest.mark.long
def test_script_gaussian_scalar(run):
    ran = run("problems/gaussian_scalar")
    module, result = ran.module, ran.result
    assert ran.differing == set()
    assert sum(claim.where == "eq. 8" for claim in ran.claims.values()) == len(module.BUDGETS)
    rho = 0.95
    for d, solution in result.optima.items():
        proved(solution)
        closed = -np.log2(1 - (1 - d) * rho**2) / 2
        assert solution.lower - 1e-12 <= closed <= solution.upper + 1e-12
        assert module.closed(d) == pytest.approx(closed, abs=1e-12)
        release, error = solution.release, solution.error_covariance[0, 0]
        assert error == pytest.approx(d, abs=1e-6)
        assert release.gain[0, 0] == pytest.approx(1 - d, abs=1e-6)
        assert release.noise[0, 0] == pytest.approx(d * (1 - d), abs=1e-6)
    # the paper's multipliers, 𝒞 = D + λR in nats (§6.2)
    for d, multiplier in ((0.25, 0.716), (0.5, 1.216), (0.75, 1.716)):
        price = -result.optima[d].prices["budget"] * BITS
        assert 1 / price == pytest.approx(multiplier, abs=5e-4)
    for d in (0.1, 0.5, 1.0, 3.0):  # plain noise: from its correlation with W
        assert module.added(d) == pytest.approx(-np.log2(1 - rho**2 / (1 + d)) / 2, abs=1e-12)

    # 100,000 records: five standard errors, and without assuming a law
    d, size = module.CHOSEN, module.RECORDS
    for name, variance, risk in (("optimal", 1 - d, module.closed(d)),
                                 ("plain", 1 + d, module.added(d))):  # fmt: skip
        w, x, released = result.records[name]
        assert released.var() == pytest.approx(variance, rel=5 * np.sqrt(2 / size))
        h = cpv.information.differential_entropy
        outcome = h(w) + h(released) - h(np.column_stack([w, released]))
        assert outcome == pytest.approx(risk, abs=0.03)
        kept = np.corrcoef(x - released, released if name == "optimal" else x)[0, 1]
        assert abs(kept) < 5 / np.sqrt(size)


@pytest.mark.long
def test_script_colored_source(run):
    ran = run("problems/colored_source", "--quick")
    assert ran.differing == set()
    check_colored(ran, 10, 4)
    result, module = ran.result, ran.module

    # CVXPY's own words, and what releases do to records
    x, w, law = list(range(10)), list(range(10, 17)), result.source.covariance
    for share, point in result.points.items():
        outcome = program(law, w, x, 10 * share, np.ones(10))
        assert outcome == pytest.approx(point.best.value, abs=2e-5)
        risk = revealed(law, w, x, point.best.release)
        assert risk == pytest.approx(point.best.value, abs=1e-5)
    idle, most = (result.points[share] for share in (0.004, 0.5))
    assert np.linalg.eigvalsh(result.own)[0] > 0.04  # Proposition 6: Σ ≼ Σ_X is idle
    bound = result.leaks["closed bound"]
    assert bound[0.004] == pytest.approx(idle.best.value, abs=1e-6)
    assert bound[0.5] < most.best.lower
    rng = np.random.default_rng(2)
    records = rng.standard_normal((20_000, 10)) @ np.linalg.cholesky(result.own).T
    for solution in (most.code, most.best):
        released = solution.release.apply(records, seed=3)
        error = np.cov((records - released).T)
        assert np.abs(error - solution.error_covariance).max() < 0.03
        cross = (records - released).T @ released / len(records)
        assert np.abs(cross).max() < 0.03  # the error is uncorrelated with what is released

    # white noise, filtered: on records, by least squares
    share = module.SHARE
    noise = brentq(lambda v: np.mean(1 / (1 / result.power + 1 / v)) - share, 1e-9, 1e9)
    noisy = records + np.sqrt(noise) * rng.standard_normal(records.shape)
    best = noisy @ np.linalg.lstsq(noisy, records)[0]
    assert np.mean((records - best) ** 2) == pytest.approx(share, rel=0.02)
    recorded = result.own + noise * np.eye(10)
    joint = np.block([[law[10:, 10:], law[10:, :10]], [law[:10, 10:], recorded]])
    information = np.linalg.slogdet(law[10:, 10:])[1] + np.linalg.slogdet(recorded)[1]
    information = (information - np.linalg.slogdet(joint)[1]) / 2 / BITS
    assert result.leaks["white, filtered"][share] == pytest.approx(information, abs=1e-8)


def check_colored(ran, size, taps):
    """Compare both problems with water-filling, and with each other."""
    result = ran.result
    values = np.array([[0.9 ** abs(s - t) for t in range(size)] for s in range(size)])
    power = np.linalg.eigvalsh(values)
    assert np.allclose(result.own, values, rtol=1e-14)
    average = np.array([[(i <= t < i + taps) / taps for t in range(size)]
                        for i in range(size - taps + 1)])  # fmt: skip
    assert np.allclose(result.source.covariance[size:, :size], average @ values)
    for share, point in result.points.items():
        proved(point.code)
        proved(point.best)
        budget = share * size
        level = brentq(lambda v, b=budget: np.minimum(v, power).sum() - b, 0, power[-1], xtol=1e-14)
        rate = np.log2(power / np.minimum(level, power)).sum() / 2
        assert point.code.lower - 1e-9 <= rate <= point.code.upper + 1e-9
        price = -1 / (2 * level * BITS)
        assert point.code.prices["budget"] == pytest.approx(price, rel=1e-4)
        assert point.spectra[0][::-1] == pytest.approx(np.minimum(level, power), abs=1e-6)

        # other errors of the same size are feasible for W, whose closed bound is below
        leaks, sigma = result.leaks.loc[share], point.best.error_covariance
        assert leaks["made for W"] == pytest.approx(point.best.value, abs=1e-8)
        assert min(leaks["made for X"], leaks["white, filtered"]) >= point.best.lower
        assert leaks["closed bound"] <= point.best.upper + 1e-9
        assert np.trace(sigma) <= budget + 1e-9
        assert np.linalg.eigvalsh(values - sigma)[0] >= -1e-9
        assert [sum(each) for each in point.spectra] == pytest.approx([budget] * 3, abs=1e-6)


@pytest.mark.long
def test_a_day_of_readings(run):
    ran = run("problems/colored_source")
    assert ran.differing == set()
    check_colored(ran, 24, 7)
    # fast variation is left alone where compression drops it
    result, point = ran.result, ran.result.points[ran.module.SHARE]
    assert (point.spectra[2][8:] < 0.1 * result.power[8:]).all()
    assert point.spectra[0][8:] == pytest.approx(result.power[8:], abs=1e-6)
    assert result.leaks["made for X"][ran.module.SHARE] > 1.5 * point.best.upper
