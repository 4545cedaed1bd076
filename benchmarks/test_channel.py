"""How much a proof costs: ratios within one run, because machines differ.

    pytest benchmarks --benchmark-enable -m "" -p no:xdist

Targets: certified ``solve()`` at most twice the same cones in bare CVXPY; the certificate
alone at most 0.05 s on the 31-point and 0.5 s on the 201-point Gaussian grid.
"""

from __future__ import annotations

import statistics
import time

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.programs.dual import Dual
from tests.public_tables import real_folder


def grid_problem(points: int) -> cpv.PrivacyDistortion:
    source = cpv.DiscreteSource.gaussian(0.95, points=points)
    grid = np.array(source.x)
    variance = source.p_x @ grid**2 - (source.p_x @ grid) ** 2
    return cpv.PrivacyDistortion(source, cpv.squared_error(grid), budget=variance / 2, units="nats")


def bare(problem: cpv.PrivacyDistortion, **options: object) -> float:
    """State the same cones by hand in CVXPY, as a user without this package would."""
    law, d = problem.source.pmf, problem.alphabet.d.matrix / problem.alphabet.d.matrix.max()
    p_x, p_w = law.sum(axis=0), law.sum(axis=1)
    q = cp.Variable(d.shape)
    t, j, y = cp.Variable(law.shape), cp.Variable(law.shape), cp.Variable((1, d.shape[1]))
    constraints = [
        cp.sum(q, axis=1) == p_x,
        q >= 0,
        j == (law / p_x) @ q,
        y == cp.sum(j, axis=0, keepdims=True),
        cp.ExpCone(-t, j, p_w[:, None] @ y),
        cp.sum(cp.multiply(d, q)) <= problem.budget / problem.alphabet.d.matrix.max(),
    ]
    return cp.Problem(cp.Minimize(cp.sum(t)), constraints).solve(
        **{"solver": "CLARABEL", **options}
    )


def near_optimum(problem: cpv.PrivacyDistortion) -> tuple[np.ndarray, Dual]:
    """A good primal and dual without a solver: the Gaussian closed form, sampled (eq. 8)."""
    rho, grid = 0.95, np.array(problem.source.x)
    share = 0.5
    spread = share * (1 - share)
    channel = np.exp(-((grid - (1 - share) * grid[:, None]) ** 2) / (2 * spread))
    channel /= channel.sum(axis=1, keepdims=True)
    joint = problem.source.pmf @ channel
    ratio = joint / np.outer(problem.source.p_w, joint.sum(axis=0))
    slope = rho**2 / (2 * (1 - (1 - share) * rho**2))
    return channel, Dual({"W": np.log(ratio)}, {"budget": slope})


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def test_a_certified_solve_costs_at_most_twice_the_bare_one(benchmark):
    grid_problem(11).solve()
    bare(grid_problem(11))  # imports are paid for
    problem = grid_problem(31)
    assert bare(problem) == pytest.approx(problem.solve().value, abs=1e-6)
    pairs = [
        (seconds(lambda: grid_problem(31).solve()), seconds(lambda: bare(grid_problem(31))))
        for _ in range(7)
    ]
    ratio = statistics.median(a / b for a, b in pairs)
    benchmark.extra_info["ratio to bare CVXPY"] = ratio
    benchmark.pedantic(lambda: grid_problem(31).solve(), rounds=5)
    print(f"\ncertified solve / bare CVXPY: {ratio:.2f} (target 2)")


def test_ages_and_sexes_of_adult_against_bare_cvxpy(benchmark):
    """The figures of the documentation's front page."""
    real_folder("adult")
    source = cpv.DiscreteSource.from_table(
        cpv.datasets.load_adult(), sensitive="marital-status", key=["age", "sex"]
    )
    years = {"age": "absolute_error", "sex": "hamming"}
    d = cpv.per_attribute(years, source, weights={"age": 0.1, "sex": 5})
    problem = cpv.PrivacyDistortion(source, d, budget=0.5)
    problem.solve()  # imports are paid for
    solution = benchmark.pedantic(problem.solve, rounds=5)
    assert solution.status == "certified"
    by_hand = seconds(lambda: problem._in_cvxpy().solve(solver=cp.CLARABEL))
    ours = benchmark.stats["median"]
    print(
        f"\n{len(source.x)} groups: gap {solution.gap:.0e} bits, {ours:.2f} s; "
        f"bare CVXPY takes {by_hand / ours:.0f} times as long"
    )


@pytest.mark.parametrize(("points", "target"), [(31, 0.05), (201, 0.5)])
def test_the_certificate_alone(benchmark, points, target):
    problem = grid_problem(points)
    program = problem.program
    channel, dual = near_optimum(problem)

    def prove() -> Prover:
        prover = Prover(program)
        prover.offer_dual(dual)
        prover.offer_channel(channel)
        return prover

    prover = benchmark.pedantic(prove, rounds=5)
    assert prover.lower < prover.upper < np.inf
    print(f"\ncertificate at {points} points: {benchmark.stats['median']:.3f} s (target {target})")
