"""Bounds of corners that are too many to look at, beside all corners of few letters."""

from __future__ import annotations

import math
from itertools import product

import flint
import numpy as np
import pytest
from flint import arb, fmpq

from cvxprivacy_verifier import corners as looked_at
from cvxprivacy_verifier.balls import PRECISION
from cvxprivacy_verifier.corners import Corners, by_mass
from cvxprivacy_verifier.measures import measure_of
from tests.lengths import seeds

KINDS = [
    {"kind": "mutual information"},
    {"kind": "chi-squared"},
    {"kind": "hockey-stick", "gamma": 1},
]


@pytest.mark.parametrize("seed", seeds(600, 90))
def test_no_corner_is_dearer_than_the_bound(seed, monkeypatch):
    """Whatever prices are, and after a few steps too; and a corner attains what it is said to."""
    flint.ctx.prec = PRECISION
    rng = np.random.default_rng(seed)
    n, weight = int(rng.integers(1, 9)), float(rng.uniform(0.5, 3))
    counts = rng.integers(1, [2, 4, 50][seed % 3], n).tolist()
    masses = [fmpq(x, sum(counts)) for x in counts]
    reference = [arb(p) for p in masses]
    measure = measure_of(KINDS[seed % 7 % 3], reference, 1 / arb(2).log())
    ratio = math.exp(rng.uniform(0.05, 5))
    prices = rng.normal(size=n) * rng.choice([0.01, 0.1, 1, 10]) * np.array(counts) / sum(counts)
    prices = np.round(prices, 2) if seed % 5 == 0 else prices * weight
    monkeypatch.setattr(looked_at, "STEPS", int(rng.choice([1, 3, 4000])))
    factor, curve = by_mass(measure)
    corners = Corners(masses, arb(ratio), arb(weight) * factor, curve)
    bound, attained = corners.dearest([arb(x) for x in prices.tolist()])
    left = {}
    for corner in product((False, True), repeat=n):
        ray = [arb(ratio) if high else arb(1) for high in corner]
        value = measure.value([p * r for p, r in zip(reference, ray, strict=True)])
        left[corner] = float(
            weight * value - sum(arb(x) * r for x, r in zip(prices.tolist(), ray, strict=True))
        )
    greatest = max(left.values())
    size = 1e-12 * max(1.0, *map(abs, left.values()))
    assert greatest <= float(bound.upper()) + size
    if attained is not None:
        assert left[tuple(attained)] == pytest.approx(float(bound), abs=size)
    elif looked_at.STEPS > 3:
        assert float(bound) <= 1e-11 * weight


def test_a_bound_holds_whatever_the_prices():
    corners = Corners([fmpq(1, 3)] * 3, arb(2), arb(1), looked_at._information)
    for prices in ([math.inf, 1.0, 0.0], [1e308, -1e308, 1e-308], [0.0, 0.0, 0.0]):
        bound = corners.dearest([arb(x) for x in prices])[0]
        assert not bound < 0 or math.isinf(prices[0])


def test_other_measures_have_no_such_bound():
    reference = [arb(1) / 2] * 2
    for data in ({"kind": "squared Hellinger"}, {"kind": "hockey-stick", "gamma": 1.5}):
        assert by_mass(measure_of(data, reference, arb(1))) is None
