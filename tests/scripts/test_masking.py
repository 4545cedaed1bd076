"""The scripts on masking, run small: published numbers, bounds, and what they print."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

pytest.importorskip("sklearn", reason="the extra `masking` is not installed")


def test_script_rebollo_figs8_9(run):
    module, result, _ = run("figures/rebollo_figs8_9", words=["certified"])
    exact_information = -math.log(1 - 0.95**2) / 2
    assert result.information == pytest.approx(exact_information)
    assert 0 < exact_information - result.cut < 0.03
    lost = exact_information - result.cut
    optimum = result.curves["exact optimum of the groups"]
    for name, curve in result.curves.items():
        for group, best in zip(curve, optimum, strict=True):
            # exact risks never are below the QGLB, estimates not beyond their errors
            assert group.above >= -1e-9
            error = 4 * group.estimate.standard_error
            assert group.estimated_above >= -lost - error
            # the records' risk is the law's, less what the steps lose, but for its errors
            assert group.estimate.value == pytest.approx(group.exact, abs=lost + error + 0.02)
            assert group.distortion == pytest.approx(group.expected, abs=0.05)
            assert group.distortion >= best.distortion - 1e-12
            if name != "μ-Approx":
                assert group.above < 0.08
            # MIUB
            assert group.exact <= (1 - group.expected) * exact_information + 1e-9
    for release, solution in zip(result.releases, result.solutions, strict=True):
        assert solution.status == "certified"
        exact = -math.log(1 - (1 - release.share) * 0.95**2) / 2
        assert solution.lower - 1e-12 <= exact <= solution.upper + 1e-12
        assert release.distortion == pytest.approx(release.share, abs=0.03)
        error = 4 * release.estimate.standard_error
        assert release.estimate.value == pytest.approx(exact, abs=lost + error + 0.02)

    # two halves, by another integration: I(W; sign X) and 1 − 2/π
    x = np.concatenate([-np.linspace(0.01, 4, 500), np.linspace(0.01, 4, 500)])
    labels = (x > 0).astype(int)
    risk, _ = module.law_of(x, labels)

    def piece(w):
        p = norm.cdf(0.95 * w / math.sqrt(1 - 0.95**2))
        terms = [q * math.log(2 * q) for q in (p, 1 - p) if q > 0]
        return norm.pdf(w) * sum(terms)

    assert risk == pytest.approx(quad(piece, -8, 8, limit=200)[0], abs=1e-5)
    x *= math.sqrt(2 / math.pi) / np.abs(x).mean()  # the halves' means are those of the law
    assert module.law_of(x, labels)[1] == pytest.approx(1 - 2 / math.pi, abs=1e-9)
