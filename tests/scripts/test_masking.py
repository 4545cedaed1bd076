"""The scripts on masking, run small: published numbers, bounds, and what they print."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee

pytest.importorskip("sklearn", reason="the extra `masking` is not installed")


def test_script_mateosanz_tables(run, tables):
    module, result, _ = run("figures/mateosanz_tables", words=["readings were tried"])
    for name in ("Micmul3", "Scal_Micmul3"):
        if tables.real:  # the paper's, to its last digit but one
            parts = result.rows[name].parts[0]
            assert parts[1:] == pytest.approx(module.PAPER_3[name][1:], abs=1e-3)
        assert np.ptp(result.rows[name].parts[:, 1:], axis=0).max() < 1e-3  # in any order
    assert (result.rows["Rankswap7"].parts[:, :3] == 0).all()
    for name in ("Scal_Mic3mul7", "Scal_Noise16"):
        assert (result.rows[name].parts[:, 1:3] == 0).all()
    for row in result.rows.values():
        assert (row.parts >= 0).all()
        assert (row.parts <= 1).all()
    # PIL(Q) as the package defines it is one of the readings, and none is the paper's
    stated = next(
        a for a in result.attempts
        if (a.quantile, a.portion, a.density, a.width)
        == ("averaged_inverted_cdf", 1000, "original", 2)
    )  # fmt: skip
    ours = [result.rows[name].parts[0, 0] for name in module.FIXED]
    a_count = 2e-3 * 1080 / len(tables.read("census"))  # some records are at an interval's end
    assert stated.values == pytest.approx(ours, abs=a_count)
    assert result.attempts[0].off == min(a.off for a in result.attempts) > 0.005
    # ranks agree where the numbers need not
    assert len(result.losses) > 15
    assert result.losses["family"].nunique() == 6
    for r, rho in result.correlations.values():
        assert -1 <= r <= 1
        assert rho > 0.7
    assert len(list(module.maskings(quick=False))) >= 100


def test_script_compare_maskings(run, tables):
    words = ("certified", "MIUB", "times the optimum", "the least excess")
    module, result, _ = run("problems/compare_maskings", "--quick", words=words)
    assert isinstance(result, cpv.Comparison)
    assert result.source.records == len(tables.read("census"))
    for solution in result.frontier:
        referee.check(solution, status=solution.status)
        assert solution.gap < 1e-4
    for point in result.points:
        assert point.excess >= -1e-9
        assert 0 <= point.linkage <= 1
        assert 0 <= point.pil <= 100
    named = {p.method for p in result.points}
    assert named == {*module.METHODS, "optimal channel"}
    # noise leaks less than groups of k at the same distortion, both more than the optimum
    at = 0.3
    risks = {name: np.interp(at, *module.curve(result, name)) for name in ("noise", "MDAV")}
    assert float(result.upper(at)) < risks["noise"] < risks["MDAV"]
