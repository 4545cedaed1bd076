"""The scripts that draw whole curves: closed forms, and proved bounds on the right side."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee


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
