"""How long the groupings take.

    pytest benchmarks/sdc/test_masking.py --benchmark-enable -m "" -p no:xdist -s

Targets: MDAV of 32,768 scalars at most 2 s, of 30,162 × 6 with k = 5 at most 60 s; μ-Approx of
32,768 scalars at most 10 s.
"""

from __future__ import annotations

import numpy as np
import pytest

from cvxprivacy_sdc.partitions import hansen_mukherjee, mdav, mu_approx

SCALARS = np.random.default_rng(0).standard_normal(32_768)
RECORDS = np.random.default_rng(1).standard_normal((30_162, 6))


@pytest.mark.parametrize("k", [3, 100, 3277])
@pytest.mark.parametrize(
    ("partition", "target"), [(mdav, 2), (mu_approx, 10), (hansen_mukherjee, 10)]
)
def test_scalars(benchmark, partition, target, k):
    labels = benchmark.pedantic(lambda: partition(SCALARS, k), rounds=3, warmup_rounds=1)
    assert np.bincount(labels).min() >= k
    print(f"\n{partition.__name__}, 32,768 scalars, k = {k}: {benchmark.stats['median']:.3f} s "
          f"(target {target})")  # fmt: skip


@pytest.mark.parametrize(("partition", "target"), [(mdav, 60), (mu_approx, 60)])
def test_records(benchmark, partition, target):
    labels = benchmark.pedantic(lambda: partition(RECORDS, 5), rounds=1)
    assert np.bincount(labels).min() >= 5
    print(f"\n{partition.__name__}, 30,162 × 6, k = 5: {benchmark.stats['median']:.3f} s "
          f"(target {target})")  # fmt: skip
