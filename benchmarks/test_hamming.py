"""How much a proved water level over a million letters costs: ratios within one run.

    pytest benchmarks --benchmark-enable -m "" -p no:xdist -s

Target: construction, level, enclosure of both ends and release in less than a second.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Solution

LETTERS = 1_000_000


OTHERS = {"Pareto", "Zipf", "counts", "wide"}  # -m long


def laws() -> dict[str, np.ndarray]:
    """A law whose sum is rounded, one that falls, ties, and letters of all sizes."""
    rng = np.random.default_rng(0)
    found = {
        "Pareto": rng.pareto(1.2, LETTERS) + 1e-9,
        "Zipf": 1 / (np.arange(1.0, LETTERS + 1) + 2.7),
        "uniform": np.ones(LETTERS),
        "counts": rng.geometric(1e-3, LETTERS).astype(float),
        "wide": 10.0 ** -rng.uniform(0, 300, LETTERS),
    }
    return {name: p / p.sum() for name, p in found.items()}


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


@pytest.mark.parametrize(
    "name", ["uniform", *(pytest.param(name, marks=pytest.mark.long) for name in sorted(OTHERS))]
)
def test_a_million_letters(benchmark, name):
    p = laws()[name]

    def solve() -> Solution:
        return cpv.HammingWaterFilling(p, 0.3 * (1 - p.max())).solve()

    solution = solve()
    assert solution.status == "certified"
    ratio = statistics.median(seconds(solve) / seconds(lambda: np.sort(p)) for _ in range(5))
    logs = statistics.median(seconds(solve) / seconds(lambda: p @ np.log(p)) for _ in range(5))
    benchmark.extra_info["ratio to np.sort"] = ratio
    benchmark.pedantic(solve, rounds=5)
    print(
        f"\n{name}: {benchmark.stats['median']:.2f} s (target 1), {ratio:.0f} times np.sort, "
        f"{logs:.0f} times p @ np.log(p); gap {solution.gap:.1e} bits"
    )


def test_a_million_records(benchmark):
    p = laws()["Zipf"]
    release = cpv.HammingWaterFilling(p, 0.3).solve().release
    values = np.random.default_rng(0).choice(LETTERS, 1_000_000, p=p)
    release.apply(values[:10], seed=1)
    benchmark.pedantic(lambda: release.apply(values, seed=1), rounds=3)
    ratio = benchmark.stats["median"] / seconds(
        lambda: np.random.default_rng(0).choice(LETTERS, 1_000_000, p=p)
    )
    print(f"\na million records: {benchmark.stats['median']:.2f} s, {ratio:.1f} times choice(p=)")
