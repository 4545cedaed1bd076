"""The Gaussian scripts: against closed forms, CVXPY's own words, and simulated records."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import cvxprivacy as cpv
from tests.scripts.oracles import BITS, program, proved, revealed


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
        found = h(w) + h(released) - h(np.column_stack([w, released]))
        assert found == pytest.approx(risk, abs=0.03)
        kept = np.corrcoef(x - released, released if name == "optimal" else x)[0, 1]
        assert abs(kept) < 5 / np.sqrt(size)


@pytest.mark.long
def test_script_colored_source(run):
    words = ("certified", "water level", "contains", "Proposition 5", "code made for X")
    module, result, _ = run("problems/colored_source", words=words)
    size = module.READINGS
    own = np.array([[0.9 ** abs(s - t) for t in range(size)] for s in range(size)])
    power = np.linalg.eigvalsh(own)
    assert np.allclose(result.own, own, rtol=1e-14)
    for share, point in result.points.items():
        for solution in (point.closed, point.general, point.private):
            proved(solution)
        budget = share * size
        level = brentq(lambda v, b=budget: np.minimum(v, power).sum() - b, 0, power[-1], xtol=1e-14)
        rate = np.log2(power / np.minimum(level, power)).sum() / 2
        assert float(point.filling.level) == pytest.approx(level, rel=1e-10)
        assert point.closed.value == pytest.approx(rate, abs=1e-9)
        assert point.general.lower - 1e-9 <= rate <= point.general.upper + 1e-9
        for solution in (point.closed, point.general):
            price = -1 / (2 * level * BITS)
            assert solution.prices["budget"] == pytest.approx(price, rel=1e-4)
        spectrum = result.spectrum(point.general.error_covariance)[::-1]
        assert spectrum == pytest.approx(np.minimum(level, power), abs=1e-6)

        # the code for X is feasible for the other problem, whose closed bound is below
        sigma = point.private.error_covariance
        assert result.leakage(sigma) == pytest.approx(point.private.value, abs=1e-8)
        assert result.leakage(point.general.error_covariance) >= point.private.lower
        assert point.bound <= point.private.upper + 1e-9
        assert np.trace(sigma) <= budget + 1e-9
        assert np.linalg.eigvalsh(own - sigma)[0] >= -1e-9
    # fast variation is left alone where compression drops it
    fast = result.spectrum(result.chosen.private.error_covariance)[8:]
    assert (fast < 0.1 * result.spectrum(own)[8:]).all()
    assert result.chosen.general.lower > result.chosen.private.upper

    # ten readings: CVXPY's own words, and what releases do to records
    small = module.study((0.004, 0.1, 0.4), readings=10, taps=4)
    x, w = list(range(10)), list(range(10, 17))
    for share, point in small.points.items():
        found = program(small.source.covariance, w, x, 10 * share, np.ones(10))
        assert found == pytest.approx(point.private.value, abs=2e-5)
        risk = revealed(small.source.covariance, w, x, point.private.release)
        assert risk == pytest.approx(point.private.value, abs=1e-5)
    assert np.linalg.eigvalsh(small.own)[0] > 0.04  # Proposition 6: Σ ≼ Σ_X is idle
    idle, most = small.points[0.004], small.points[0.4]
    assert idle.bound == pytest.approx(idle.private.value, abs=1e-6)
    assert most.bound < most.private.lower
    root = np.linalg.cholesky(small.own)
    records = np.random.default_rng(2).standard_normal((20_000, 10)) @ root.T
    for solution in (most.general, most.private):
        released = solution.release.apply(records, seed=3)
        error = np.cov((records - released).T)
        assert np.abs(error - solution.error_covariance).max() < 0.03
        cross = (records - released).T @ released / len(records)
        assert np.abs(cross).max() < 0.03  # the error is uncorrelated with what is released
