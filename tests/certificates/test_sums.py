"""Sums of v log v with a proved radius, against 400 bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from cvxprivacy.certificates.sums import exact_sum, rounded_down, sum_of_v_log_v
from cvxprivacy_verifier.hamming_proof import Letters
from tests.formulations.hamming_truth import part


def awkward(rng: np.random.Generator, kind: str) -> np.ndarray:
    """Return positive floats that tempt an algorithm to round wrongly."""
    size = int(rng.integers(1, 300))
    if kind == "tiny":
        return 10.0 ** -rng.uniform(280, 323.2, size) + 5e-324
    if kind == "near one":
        return 1.0 + rng.integers(-9, 9, size) * 2.0**-53
    if kind == "edges":  # of the table's intervals, and their neighbours
        edge = rng.integers(4096, 8193, size) / 8192 * 2.0 ** rng.integers(-30, 30, size)
        return np.nextafter(edge, rng.choice([0.0, edge[0], 1e300], size))
    if kind == "counts":
        return rng.integers(1, 2**53, size).astype(float)
    if kind == "mixed":
        return 10.0 ** rng.uniform(-300, 15, size)
    p = rng.dirichlet(np.full(size, 0.2)) + 1e-310
    return p / p.sum()


KINDS = ("tiny", "near one", "edges", "counts", "mixed", "law")


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_logarithms_are_proved(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(12):
        v = awkward(rng, kind)
        assert exact_sum(v) == sum(map(Fraction, v.tolist()))
        assert exact_sum(-v) == -exact_sum(v)
        letters = Letters(np.sort(v).tolist())  # without NumPy
        assert letters.total == exact_sum(v)
        with ctx.workprec(400):
            exact = sum((part(Fraction(x)) for x in v.tolist()), arb(0))
            outcome = sum_of_v_log_v(v)
            assert outcome.contains(exact)
            with ctx.workprec(160):
                assert letters.m_log_m(0, len(v)).contains(exact)
            size = sum(x * (abs(math.log2(x)) + 2) for x in v.tolist())
            assert float(outcome.rad()) <= 2.0**-51 * 1.01 * size + 1e-300  # and no more
            # the error of a single logarithm is within its own share of the radius
            for x in v[:20].tolist():
                assert sum_of_v_log_v(np.array([x])).contains(part(Fraction(x)))


def test_constants_of_the_logarithm():
    from cvxprivacy.certificates import sums

    with ctx.workprec(400):
        assert abs(arb(2).log() - arb(sums._LN2)) < arb(2) ** -54
        for i, value in enumerate(sums._table().tolist()):
            assert abs((arb(2 * (i + 4096) + 1) / 16384).log() - arb(value)) <= arb(2) ** -54
    # |log(1 + r) − series| as stated, in units of 2⁻⁵³, for |r| ≤ 2⁻¹³
    r = np.linspace(-(2.0**-13), 2.0**-13, 999)
    series = sums._log1p(r)
    with ctx.workprec(400):
        worst = max(
            abs((1 + arb(x)).log() - arb(s))
            for x, s in zip(r.tolist(), series.tolist(), strict=True)
        )
        assert 2.0**-70 < float(worst) < 2.0**-62


def test_rounded_down():
    for value in (
        Fraction(1, 3),
        Fraction(2, 3),
        Fraction(5),
        Fraction(-1, 3),
        Fraction(1, 10**330),
    ):
        outcome = rounded_down(value)
        assert Fraction(outcome) <= value < Fraction(math.nextafter(outcome, math.inf))
