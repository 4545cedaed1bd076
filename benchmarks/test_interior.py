"""How the interior-point method compares with the same program in bare CVXPY + Clarabel.

Other measures than information are compared with the package's own conic statement.

    OPENBLAS_NUM_THREADS=1 pytest benchmarks/test_interior.py -m "" -s -p no:xdist

Both are timed end to end in one run, the package's own with its proof.  ``-m long`` adds the
sizes at which the bare solve takes minutes, and those that it cannot do.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from benchmarks.memory import peak
from benchmarks.test_channel import bare, grid_problem, seconds


def smooth_problem(labels: int, letters: int) -> cpv.PrivacyDistortion:
    """x_i = i/n, p(w, x) ∝ exp(−(x − c_w)²/0.05), squared error, a fifth of the variance."""
    x, centre = np.arange(1, letters + 1) / letters, np.linspace(0, 1, labels)
    law = np.exp(-((x - centre[:, None]) ** 2) / 0.05)
    source = cpv.DiscreteSource(law / law.sum(), x=x.tolist())
    variance = source.p_x @ x**2 - (source.p_x @ x) ** 2
    return cpv.PrivacyDistortion(source, cpv.squared_error(x), budget=variance / 5, units="nats")


KEY = ["age", "sex", "race", "education-num"]


def adult_frame(band: int) -> pd.DataFrame:
    """Marital status, and age in bands, sex, race and education: 318 cells at 40 years."""
    adult = cpv.datasets.load_adult()
    return adult[[*KEY, "marital-status"]].assign(age=adult["age"] // band)


def adult_problem(band: int) -> cpv.PrivacyDistortion:
    """Marital status against the other columns."""
    frame, key = adult_frame(band), KEY
    source = cpv.DiscreteSource.from_table(frame, sensitive="marital-status", key=key)
    kinds = dict(zip(key, ["absolute_error", "hamming", "hamming", "absolute_error"], strict=True))
    spans = dict(zip(key, [np.ptp(frame["age"]), 1, 1, 15], strict=True))
    weights = {name: 1 / (4 * float(span)) for name, span in spans.items()}
    d = cpv.per_attribute(kinds, source, weights=weights)
    budget = 0.3 * float((source.p_x @ np.asarray(d.cost)).min())
    return cpv.PrivacyDistortion(source, d, budget=budget, units="nats")


SHORT = {
    "grid 31": (lambda: grid_problem(31), 3, 3),
    "grid 51": (lambda: grid_problem(51), 3, 3),
    "smooth (4, 64)": (lambda: smooth_problem(4, 64), None, 3),
    "smooth (4, 128)": (lambda: smooth_problem(4, 128), None, 1),
}
LONG = {
    "grid 101": (lambda: grid_problem(101), 30, 1),
    "smooth (4, 256)": (lambda: smooth_problem(4, 256), 60, 1),
}


@pytest.mark.parametrize("name", SHORT)
def test_short_solves(name):
    compared(name, *SHORT[name])


def test_scs_once():
    """A first-order method, at the accuracy that it has by default."""
    own = seconds(lambda: grid_problem(31).solve())
    value = grid_problem(31).solve().value
    problem, found = grid_problem(31), []
    other = seconds(lambda: found.append(bare(problem, solver="SCS")))
    print(
        f"\ngrid 31: {other / own:.1f} times as fast as SCS, which is off by {found[0] - value:.1e}"
    )


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_solves_of_minutes(name):
    compared(name, *LONG[name])


def compared(name, make, target, rounds):
    make().solve()
    pairs = [
        (seconds(lambda: make().solve()), seconds(lambda: bare(make()))) for _ in range(rounds)
    ]
    solution = make().solve()
    assert solution.status == "certified"
    own, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    aim = "" if target is None else f" (target {target})"
    steps = next(line for line in solution.log if "steps" in line)
    print(f"\n{name}: {other / own:.1f} times as fast as bare CVXPY{aim}; {steps}")


MEASURES = {
    "chi-squared": cpv.leakage.ChiSquared(),
    "Hellinger": cpv.leakage.SquaredHellinger(),
    "Sibson": cpv.leakage.Sibson(2),
    "variation": cpv.leakage.TotalVariation(),
    "hockey-stick": cpv.leakage.HockeyStick(1.25),
    "earth mover": cpv.leakage.EarthMover(),
    "guessing": cpv.leakage.GuessingProbability(),
    "maximal": cpv.leakage.Maximal("W"),
}


@pytest.mark.parametrize("name", MEASURES)
def test_measures(name):
    against_conic(name, 128)


@pytest.mark.long
@pytest.mark.parametrize("name", MEASURES)
def test_measures_of_400_letters(name):
    against_conic(name, 400)


def against_conic(name, letters):
    """Compare with the conic solver on the same program, both with their proofs."""
    given = smooth_problem(4, letters)
    error, budget = cpv.squared_error(np.arange(1, letters + 1) / letters), given.budget
    problem = cpv.PrivacyDistortion(
        given.source, error, budget=budget, leakage=MEASURES[name], units="nats"
    )
    found = {}

    def timed(method):
        return seconds(lambda: found.update({method: problem.solve(method=method)}))

    own, other = timed("structured"), timed("conic")
    assert found["structured"].status == "certified"
    steps = next(line for line in found["structured"].log if "steps" in line)
    ratio = f"{other / own:.0f} times as fast as the conic solver ({other:.1f} s)"
    print(f"\n{name} (4, {letters}): {ratio}; {steps}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "make", "target"),
    [
        ("grid 201", lambda: grid_problem(201), 10),
        ("smooth (7, 300)", lambda: smooth_problem(7, 300), None),
        ("smooth (7, 1000)", lambda: smooth_problem(7, 1000), 12),
        ("Adult, 318 cells", lambda: adult_problem(40), 2),
        ("Adult, 470 cells", lambda: adult_problem(20), 5),
        ("Adult, 742 cells", lambda: adult_problem(10), 25),
        ("Adult, 3,355 cells", lambda: adult_problem(1), 900),
    ],
)
def test_what_conic_solvers_cannot_do(name, make, target):
    problem = make()
    start = time.perf_counter()
    solution = problem.solve()
    taken = time.perf_counter() - start
    assert solution.status == "certified"
    print(f"\n{name}: {taken:.1f} s (target {target}), {peak():.1f} GiB so far; {solution.log[-1]}")
    print(f"  n = {problem.program.n}, [{solution.lower:.9f}, {solution.upper:.9f}] nats")


@pytest.mark.long
def test_growth_in_letters():
    """Seconds against n at seven labels: ∝ n^k."""
    sizes, times = (250, 500, 1000), []
    for n in sizes:
        problem = smooth_problem(7, n)
        times.append(seconds(problem.solve))
    k = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"\n7 labels: seconds ∝ n^{k:.1f} between {sizes[0]} and {sizes[-1]} (target at most 3)")
