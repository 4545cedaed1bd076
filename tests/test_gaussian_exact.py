"""From the number typed to the number proved, of Gaussian problems.

The same law in another order, or in other units, is the same problem: its enclosures overlap, and
contain the value where a closed form knows it, however nearly singular it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from flint import arb, ctx, fmpq
from threadpoolctl import threadpool_info, threadpool_limits

import cvxprivacy as cpv
from cvxprivacy import solvers
from cvxprivacy.certificates import verify
from cvxprivacy.certificates.covariance import semidefinite
from cvxprivacy.gaussian import entropy
from cvxprivacy.matrices import rationals
from tests.test_bad_input import refused

Q, E, S = cpv.QuadraticGaussian, cpv.GaussianEquivocation, cpv.GaussianSource
F = Fraction


def law_of(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the covariance of combinations of independent standard normals."""
    return [[sum((a * b for a, b in zip(p, q, strict=True)), F(0)) for q in rows] for p in rows]


def overlap(solutions: list[Any]) -> None:
    lower, upper = (
        max(s.lower for s in solutions),
        min(s.upper for s in solutions),
    )
    assert lower <= upper, [(s.lower, s.upper) for s in solutions]


def exactly(value: Any) -> arb:
    return arb(fmpq(*value.as_integer_ratio()))


def contains(solution: Any, truth: arb) -> None:
    assert exactly(solution.lower) <= truth.upper(), (solution, truth)
    assert truth.lower() <= exactly(solution.upper), (solution, truth)


# ---- the same problem in another order, and in other units -------------------------------


def random_problems(seed: Any) -> tuple[list[cpv.CovarianceProblem], arb | None]:
    """Return one problem four times: two orders, two scales; and its value where it is known."""
    rng = np.random.default_rng(seed)
    w, x = (int(k) for k in rng.integers(1, 4, size=2))
    kind = ("full", "singular", "nearly", "copies")[int(rng.integers(4))]
    latent = w + x

    def ratio(size: int = 9) -> Fraction:
        return F(int(rng.integers(-size, size + 1)), int(rng.integers(1, size)))

    hidden = [[ratio() for _ in range(latent)] for _ in range(w)]
    for i in range(w):  # noise of its own, so that W is regular and X does not determine it
        hidden[i] = [*hidden[i], *(F(int(i == j)) for j in range(w))]
    rows = [[ratio() for _ in range(latent)] + [F(0)] * w for _ in range(x)]
    for i in range(x):
        rows[i][i] += 20
    if kind != "full":
        mix = [ratio() for _ in range(x)]
        mix[0] = mix[0] or F(1)
        extra = [sum((c * row[k] for c, row in zip(mix, rows, strict=True)), F(0))
                 for k in range(latent + w)]  # fmt: skip
        if kind == "nearly":
            tiny = F(1, 3 * 2 ** int(rng.integers(4, 90)))
            extra = [v + tiny * ratio() for v in extra[:latent]] + [F(0)] * w
        if kind == "copies":
            extra = [3 * v for v in rows[0]]
            rows = rows[:1]
        rows.append(extra)
        x = len(rows)
    sizes = [sum((v * v for v in row), F(0)) for row in rows]
    share = F(int(rng.integers(1, 100)), 100)
    units = ("bits", "nats")[int(rng.integers(2))]
    form = ("trace", "attributes", "entropy", "rate", "leakage")[int(rng.integers(5))]
    capped = F(int(rng.integers(1, 30)), 10)
    found, truth = [], None
    for k in range(4):
        order = list(rng.permutation(x)) if k % 2 else list(range(x))
        hide = list(rng.permutation(w)) if k % 2 else list(range(w))
        factors = [F(int(rng.integers(1, 50)), int(rng.integers(1, 50))) for _ in range(x)]
        if k < 2 or form in ("rate", "leakage"):
            factors = [F(1)] * x
        if k >= 2 and form in ("rate", "leakage"):
            factors = [F(7, 3)] * x
        scaled = [[factors[i] * v for v in rows[i]] for i in order]
        names = [f"w{i}" for i in hide] + [f"x{i}" for i in order]
        source = S(
            law_of([hidden[i] for i in hide] + scaled),
            sensitive=range(w), key=range(w, w + x), names=names,
        )  # fmt: skip
        total = share * sum(sizes, F(0))
        if form == "trace":
            found.append(Q(source, total, weights=[1 / factors[i] ** 2 for i in order], units=units))
        elif form == "attributes":
            chosen = range(x) if capped < 2 else [x - 1]
            limits = {f"x{i}": share * sizes[i] * factors[i] ** 2 for i in chosen if sizes[i]}
            found.append(Q(source, limits, units=units))
        elif form == "entropy":
            weights = [1 / factors[i] ** 2 for i in order]
            found.append(Q(source, total, weights=weights, entropy=capped, units=units))
        else:
            options: dict[str, Any] = {"minimize": form, "units": units}
            if form == "leakage":
                options["max_rate"] = 6 + capped
            found.append(E(source, total * factors[0] ** 2, **options))
    if kind == "copies" and w == 1 and form == "trace":
        with ctx.workprec(200):  # −½ log(1 − (1 − d)ρ²)
            law = law_of([hidden[0], rows[0]])
            square = law[0][1] ** 2 / (law[0][0] * law[1][1])
            truth = -exactly(1 - (1 - share) * square).log() / 2
            truth = truth / arb(2).log() if units == "bits" else truth
    return found, truth


def one_value(seed: Any) -> list[str]:
    problems, truth = random_problems(seed)
    solutions = []
    for problem in problems:
        solution = problem.solve(certify=False)
        if solution.status == "infeasible":
            assert isinstance(problem, E)  # a cap on the rate that the budget does not allow
        solutions.append(solution)
    statuses = [s.status for s in solutions]
    if "infeasible" in statuses:
        assert all(s.lower == math.inf or s.upper == math.inf for s in solutions), statuses
        return statuses
    overlap(solutions)
    if truth is not None:
        for solution in solutions:
            contains(solution, truth)
    assert solutions[0].certificate.verify()
    return statuses


@pytest.mark.parametrize("seed", range(30))
def test_orders_and_units_change_no_value(seed: int) -> None:
    one_value([1, seed])


@pytest.mark.long
def test_orders_and_units_change_no_value_at_length() -> None:
    statuses: list[str] = []
    for seed in range(2000):
        statuses += one_value([2, seed])
    counts = {status: statuses.count(status) for status in set(statuses)}
    print(counts)
    assert counts["certified"] > 0.97 * len(statuses)
