"""How much proved water-filling of a million variances costs: ratios within one run.

    pytest benchmarks/test_water.py --benchmark-enable -m "" -p no:xdist -s

Targets: construction, level, enclosure of both ends and release of 10³, 10⁵ and 10⁶ variances in
0.03, 0.2 and 2 seconds, in memory of their number.
"""

from __future__ import annotations

import resource
import statistics
import time
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv

TARGETS = {1_000: 0.03, 100_000: 0.2, 1_000_000: 2.0}


def laws(size: int) -> dict[str, np.ndarray]:
    """Variances that fall, that are spread over many powers of ten, equal ones, and ties."""
    rng = np.random.default_rng(0)
    return {
        "spectrum": 1 / (1 + np.arange(size) / 50.0) ** 1.5,
        "wide": 10.0 ** rng.uniform(-9, 9, size),
        "equal": np.ones(size),
        "ties": rng.integers(1, 100, size).astype(float),
    }


def stated(kind: str, caps: np.ndarray) -> Any:
    if kind == "reverse":
        return cpv.ReverseWaterFilling(caps, 0.3 * caps.sum())
    gains = np.random.default_rng(1).uniform(0.1, 10, len(caps)) / caps
    return cpv.BoxWaterFilling(gains, caps, 0.3 * caps.sum())


def seconds(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


@pytest.mark.parametrize("kind", ["reverse", "box"])
@pytest.mark.parametrize("size", TARGETS)
@pytest.mark.parametrize("name", laws(1))
def test_water_over_many_variances(benchmark: Any, kind: str, size: int, name: str) -> None:
    caps = laws(size)[name]
    solution = stated(kind, caps).solve(accuracy="high")
    assert solution.status == "certified"
    ratio = statistics.median(
        seconds(lambda: stated(kind, caps).solve()) / seconds(lambda: np.sort(caps))
        for _ in range(3)
    )
    benchmark.extra_info["ratio to np.sort"] = ratio
    benchmark.pedantic(lambda: stated(kind, caps).solve(), rounds=3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\n{kind} {name}, {size:,}: {benchmark.stats['median']:.4f} s (target {TARGETS[size]}), "
        f"{ratio:.0f} times np.sort; gap {solution.gap:.1e} of {solution.value:.6g} bits; "
        f"peak of the process so far {peak:.0f} MiB"
    )


@pytest.mark.parametrize("kind", ["reverse", "box"])
def test_a_proof_of_a_million_variances_is_read_again(kind: str, tmp_path: Any) -> None:
    certificate = stated(kind, laws(1_000_000)["spectrum"]).solve().certificate
    written = seconds(lambda: certificate.to_json(tmp_path / "proof.json"))
    print(f"\n{kind}: written in {written:.1f} s, proved again in "
          f"{seconds(certificate.verify):.1f} s")  # fmt: skip
