"""How long balanced draws take, beside independent ones.

    pytest benchmarks/test_balanced.py --benchmark-enable -m "" -p no:xdist -s

Target: a million records of 500 cells in at most 5 s.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.tables import TableSchema

CELLS, VALUES, LETTERS, RECORDS = 500, 5, 12, 1_000_000


@pytest.fixture(scope="module")
def million():
    """Return a channel of twelve letters for each cell, and a table."""
    rng = np.random.default_rng(0)
    matrix = np.zeros((CELLS, CELLS))
    for row in matrix:
        row[rng.choice(CELLS, LETTERS, replace=False)] = rng.dirichlet(np.ones(LETTERS))
    schema = TableSchema(key=("cell",), sensitive=("w",))
    channel = cpv.Channel(matrix, inputs=range(CELLS), outputs=range(CELLS), schema=schema)
    cells, w = rng.integers(0, CELLS, RECORDS), rng.integers(0, VALUES, RECORDS)
    return channel, pd.DataFrame({"w": w, "cell": cells})


@pytest.mark.parametrize("draw", ["independent", "balanced"])
def test_a_million_records(benchmark, million, draw):
    channel, frame = million
    released = benchmark.pedantic(
        lambda: channel.apply(frame, seed=np.random.default_rng(1), draw=draw), rounds=1
    )
    counts, expected = np.zeros(CELLS), channel.matrix.T @ np.bincount(frame["cell"])
    np.add.at(counts, released["cell"].to_numpy(), 1)
    assert draw == "independent" or (abs(counts - expected) < 1 + 1e-6).all()
    print(f"\n{RECORDS:,} records, {draw}: {benchmark.stats['median']:.1f} s (target 5)")
