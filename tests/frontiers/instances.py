"""Problems that have curves, and what must be true of every curve."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Frontier

TINY = 5e-324  # the least float above 0
D5, H5 = cpv.absolute_error(range(5)), cpv.hamming(5)


def entropy(p: float) -> float:
    """h(p) in bits."""
    return 0.0 if p in (0.0, 1.0) else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def binary(error: float = 0.1) -> cpv.DiscreteSource:
    """W through a binary symmetric channel from X, both uniform."""
    same, other = (1 - error) / 2, error / 2
    return cpv.DiscreteSource([[same, other], [other, same]])


def counted(seed: int = 3, shape: tuple[int, int] = (3, 5)) -> cpv.DiscreteSource:
    return cpv.DiscreteSource.from_counts(np.random.default_rng(seed).integers(1, 30, shape))


def grid(points: int = 9, rho: float = 0.9, **options) -> cpv.PrivacyDistortion:
    source = cpv.DiscreteSource.gaussian(rho, points=points)
    error = cpv.squared_error(source.x)
    return cpv.PrivacyDistortion(source, error, budget=0.3, **{"units": "nats", **options})


def least_risk(*criteria, distortion=D5, budget=1.0) -> cpv.PrivacyDistortion:
    return cpv.PrivacyDistortion(counted(), distortion, budget=budget, criteria=criteria)


def least_distortion(*criteria, distortion=H5, **options) -> cpv.MinimumDistortion:
    return cpv.MinimumDistortion(counted(), distortion, criteria, **options)


def gaussian(key: int, seed: int = 1, size: float = 1.0) -> cpv.GaussianSource:
    """One W and some X, coupled."""
    factor = np.random.default_rng(seed).normal(size=(key + 1, key + 3))
    return cpv.GaussianSource(size * factor @ factor.T, sensitive=[0], key=range(1, key + 1))


def total_variance(source: cpv.GaussianSource) -> float:
    return float(np.trace(source.block(source.x, source.x)))


def quadratic(key: int, **options) -> cpv.QuadraticGaussian:
    source = gaussian(key)
    return cpv.QuadraticGaussian(source, 0.3 * total_variance(source), **options)


def region(key: int, **options) -> cpv.GaussianEquivocation:
    source = gaussian(key)
    return cpv.GaussianEquivocation(source, 0.3 * total_variance(source), **options)


THREE = cpv.GaussianSource(
    np.array([[2.0, 0.9, 0.3], [0.9, 1.0, 0.2], [0.3, 0.2, 1.5]]), sensitive=[0], key=[1, 2]
)


def random_problem(seed: int) -> tuple[cpv.ChannelProblem, str]:
    """A problem of any shape, and the number that moves: a right-hand side."""
    rng = np.random.default_rng(seed)
    nw, nx = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    pmf = rng.dirichlet(np.full(nw * nx, 0.7)).reshape(nw, nx)
    source = cpv.DiscreteSource(pmf, x=np.sort(rng.normal(size=nx)).tolist())
    distortion = cpv.hamming(source.x) if seed % 2 else cpv.absolute_error(source.x)
    options = {"encoder": "wx" if seed % 7 == 3 else "x", "units": "bits" if seed % 3 else "nats"}
    kind = seed % 5
    if kind == 0:
        cap = [cpv.LeakageCap(0.1)]
        return cpv.MinimumDistortion(source, distortion, cap, **options), "leakage_cap"
    if kind == 1:
        distortion = cpv.Distortion(rng.uniform(size=(nx, nx + 1)))
    if kind == 2:
        options["criteria"] = [cpv.KeepProbability(0.2)]
    return cpv.PrivacyDistortion(source, distortion, budget=0.1, **options), "budget"


def check_exactly(curve: Frontier, count: int, seed: int = 0) -> None:
    """Compare both curves in rationals with every point's line and with the chords."""
    rng = np.random.default_rng(seed)
    first, last = curve.solved_range
    places = [first, last, *rng.uniform(first, last, count).tolist()]
    shown = [point for point in curve.points if math.isfinite(point.upper)]
    lines = []
    for point in shown:
        slope = point.solution.certificate.dual.multipliers[curve.parameter]
        lines.append((Fraction(point.x), Fraction(point.lower), Fraction(float(slope))))
    tops = [Fraction(point.upper) for point in shown]
    tiny, band = Fraction(1, 10**12), Fraction(curve.band)
    for place in places:
        x, high, low = Fraction(place), Fraction(curve.inner(place)), Fraction(curve.outer(place))
        proved = max(lower - slope * (x - at) for at, lower, slope in lines)
        assert proved <= high  # no line of any point passes above what is achieved
        assert low <= proved <= low + tiny  # and the outer curve is the highest of them
        right = next(i for i, (at, _, _) in enumerate(lines) if x <= at)
        left = right if lines[right][0] == x else right - 1
        width = lines[right][0] - lines[left][0]
        share = (x - lines[left][0]) / width if width else 0
        assert high <= (1 - share) * tops[left] + share * tops[right] + tiny
        assert high - low <= band + tiny  # of curves that are rounded outwards


def check_releases(curve: Frontier, places: list[float]) -> None:
    """Prove, wherever a release is known, that one within the bound achieves the inner curve."""
    checked = 0
    for x in places:
        inner = curve.inner(x)
        if inner == math.inf:
            with pytest.raises(cpv.InputError, match="no release is known"):
                curve.solution_at(x)
            continue
        solution = curve.solution_at(x)
        assert solution.release is not None
        assert curve.outer(x) <= solution.upper <= inner + 1e-12 * abs(inner)
        assert solution.certificate.verify()
        bound = solution.certificate.program.to_dict()["rows"].get(curve.parameter)
        if bound is not None and not bound["per_output"]:
            assert Fraction(bound["bound"]) == Fraction(x)  # the proof is of the very number
        checked += 1
    assert checked


def near(x: float, steps: int = 3) -> list[float]:
    """A number and its neighbours among floats."""
    places = [x]
    for side in (-math.inf, math.inf):
        other = x
        for _ in range(steps):
            other = math.nextafter(other, side)
            places.append(other)
    return sorted(places)


def records(curve: Frontier) -> list[dict]:
    return [point._record for point in curve.points]
