"""A whole curve: how many solves, how long, and what a grid of points would have left open.

    pytest benchmarks/test_frontier.py --benchmark-enable -m "" -p no:xdist -s

Target: the 31-point Gaussian grid, ρ = 0.95, band ≤ 1e-4 nats with at most 130 solves in at most
3 s on a quiet machine of two cores.
"""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Frontier


def grid_problem() -> cpv.PrivacyDistortion:
    source = cpv.DiscreteSource.gaussian(0.95, points=31)
    return cpv.PrivacyDistortion(source, cpv.squared_error(source.x), budget=0.5, units="nats")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_curve_of_the_31_point_grid(benchmark, n_jobs):
    def run() -> Frontier:
        return cpv.frontier(grid_problem(), tol=1e-4, n_jobs=n_jobs)

    curve = benchmark.pedantic(run, rounds=1, warmup_rounds=1 if n_jobs == 2 else 0)
    seconds = benchmark.stats["median"]
    benchmark.extra_info.update(solves=curve.solves, band=curve.band)
    print(
        f"\n{n_jobs} workers: band {curve.band:.2e} nats, {curve.solves} solves (target 130), "
        f"{seconds:.1f} s (target 3)"
    )
    assert curve.band <= 1e-4
    assert curve.solves <= 130


def test_fifty_points_do_not_do(benchmark):
    equal = np.linspace(0.0, grid_problem().greatest_distortion, 50)

    def run() -> tuple[Frontier, Frontier]:
        with pytest.warns(UserWarning, match="stopped after 50 solves"):
            chosen = cpv.frontier(grid_problem(), tol=1e-4, max_solves=50, n_jobs=2)
        return chosen, cpv.frontier(grid_problem(), points=equal, n_jobs=2)

    chosen, steps = benchmark.pedantic(run, rounds=1)
    print(f"\n50 points: band {chosen.band:.2e} nats, in equal steps {steps.band:.2e} nats")
    assert 1e-4 < chosen.band < steps.band
