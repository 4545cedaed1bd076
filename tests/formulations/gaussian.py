"""Random Gaussian problems, solved and refereed, and the forms that they are compared with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import arb, fmpq

import cvxprivacy as cpv
from cvxprivacy.programs.water import WaterProgram
from tests.formulations import water_truth
from tests.verifier.test_covariance_proof import check

LN2 = math.log(2)


Q, E, S = cpv.QuadraticGaussian, cpv.GaussianEquivocation, cpv.GaussianSource


def solved(problem: cpv.CovarianceProblem, *, status: str = "certified", **options: Any) -> Any:
    """Solve, and let the referee look at the solution."""
    solution = problem.solve(**{"accuracy": "high", "certify": False, **options})
    poured = isinstance(solution.certificate.program, WaterProgram)
    (water_truth.check if poured else check)(solution, status=status)
    return solution


def random_law(rng: np.random.Generator, size: int, condition: float) -> np.ndarray:
    vectors = np.linalg.qr(rng.normal(size=(size, size)))[0]
    law = (vectors * np.geomspace(1.0, 1 / condition, size) * 10 ** rng.uniform(-2, 2)) @ vectors.T
    return (law + law.T) / 2


def random_source(
    seed: Any, w: int, x: int, z: int = 0, condition: float = 100.0
) -> cpv.GaussianSource:
    law = random_law(np.random.default_rng(seed), w + x + z, condition)
    places = range(w + x + z)
    return S(law, sensitive=places[:w], key=places[w : w + x], side=places[w + x :])


def middle_of(solution: Any) -> float:
    return (solution.lower + solution.upper) / 2


def trace(source: cpv.GaussianSource) -> float:
    return float(np.trace(source.block(source.x, source.x)))


def filled(variances: np.ndarray, budget: float) -> np.ndarray:
    """Return D_i = min(θ, σ_i²) by bisection."""
    low, high = 0.0, float(variances.max())
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.minimum(level, variances).sum() < budget else (low, level)
    return np.minimum(high, variances)


def exactly(value: Any) -> arb:
    return arb(fmpq(*value.as_integer_ratio()))


def contains(solution: Any, truth: arb) -> None:
    assert exactly(solution.lower) <= truth.upper(), (solution, truth)
    assert truth.lower() <= exactly(solution.upper), (solution, truth)
