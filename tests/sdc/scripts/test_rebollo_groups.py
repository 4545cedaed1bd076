"""The groups of Rebollo-Monedero et al. 2010: Figs. 8 and 9, and the claims of §6.2."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import cvxprivacy as cpv
from cvxprivacy_sdc.partitions import mdav, means
from tests.scripts.test_rebollo import RHO, exact


@pytest.mark.long
def test_script_rebollo_figs8_9(run):
    ran = run("figures/rebollo_figs8_9", "--quick")
    result, table = ran.result, ran.result.table
    methods = ("MDAV", "μ-Approx")
    assert ran.differing == {f"{name}: share of the gap above eq. 8" for name in methods}
    for d, solution in zip(ran.module.PLACES, result.optima, strict=True):
        assert solution.status == "certified"
        assert solution.lower - 1e-12 <= exact(d) <= solution.upper + 1e-12
    before = exact(0)
    for row in table.itertuples():
        bound = exact(row.D)
        assert pytest.approx(row.above + bound) == row.R
        assert bound - 1e-9 <= row.R <= (1 - row.D) * before  # QGLB, MIUB
        # the records' risk is the law's, less what steps of 0.15 lose (0.017 of I(W; X))
        error = table.loc[row.Index, "error"]
        assert table.loc[row.Index, "R seen"] == pytest.approx(row.R, abs=0.037 + 4 * error)
        assert table.loc[row.Index, "D seen"] == pytest.approx(row.D, abs=0.05)
    least = table.set_index(["k/n", "method"])["D seen"].unstack()
    assert (least["least error"] <= least["MDAV"] + 1e-12).all()
    assert (least["least error"] <= least["μ-Approx"].fillna(1) + 1e-12).all()
    for d, risk in result.two:
        assert exact(d) < risk < (1 - d) * before

    # two halves, by another integration: I(W; sign X) and 1 − 2/π
    x = np.concatenate([-np.linspace(0.01, 4, 500), np.linspace(0.01, 4, 500)])
    d, risk = ran.module.of_sample(x, (x > 0).astype(int))

    def piece(w):
        p = norm.cdf(RHO * w / math.sqrt(1 - RHO**2))
        terms = [q * math.log(2 * q) for q in (p, 1 - p) if q > 0]
        return norm.pdf(w) * sum(terms)

    assert risk == pytest.approx(quad(piece, -8, 8, limit=200)[0], abs=1e-5)
    assert d == pytest.approx(1 - 2 / math.pi, abs=1e-9)


@pytest.mark.long
def test_several_key_attributes_deviate_more():
    """§6.2's conjecture, on independent attributes and a W that copies their sum."""
    records, k, w = 4096, 400, np.linspace(-6, 6, 401)
    excess = {}
    for n in (1, 2, 3, 5):
        x = np.random.default_rng(n).standard_normal((records, n))
        x -= x.mean(axis=0)
        x = x @ np.linalg.inv(np.linalg.cholesky(x.T @ x / records)).T  # Σ_X = I
        law = np.eye(n + 1)
        law[0, 1:] = law[1:, 0] = RHO / math.sqrt(n)
        value = norm.pdf(w[:, None], x @ law[0, 1:], math.sqrt(1 - RHO**2))
        labels = mdav(x, k)
        joint = value / value.sum(axis=0) @ np.eye(labels.max() + 1)[labels] / records
        d = ((x - means(x, labels)) ** 2).sum(axis=1).mean()
        p = joint.sum(axis=1)
        source = cpv.GaussianSource(law, sensitive=[0], key=range(1, n + 1))
        entropy = -p @ np.log(p / 0.03)  # h(W): cells of 0.03
        bound = cpv.QuadraticGaussian(source, d, units="nats", entropy=entropy).solve()
        risk = cpv.information.mutual_information(joint, units="nats")
        excess[n] = risk - max(bound.lower, 0)
        assert excess[n] > 0
    assert 4 * excess.pop(1) < min(excess.values())
