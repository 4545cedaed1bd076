"""The interior-point method where the worst of several laws counts, and near a marginal."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy.solvers.interior.newton import Newton, Residuals
from cvxprivacy.solvers.interior.program import ScaledProgram
from tests import referee
from tests.leakage.measures import MEASURES

NEAR = [cpv.MarginalDistance(0.04)]


def tables(rng: np.random.Generator, count: int, shape: tuple[int, int]) -> list[Any]:
    laws = rng.integers(0, 30, (count, *shape)) * (rng.random((count, *shape)) < 0.9)
    laws[:, 0, 0] += 1
    if rng.random() < 0.5:
        laws += 1
    return [cpv.DiscreteSource.from_counts(law) for law in laws]


def posed(name: str, count: int, criteria: Any, price: float | None = None) -> Any:
    rng = np.random.default_rng(4)
    first, *laws = tables(rng, count, (3, 5))
    error = np.round(rng.random((5, 5)), 2) * (1 - np.eye(5))
    worst = max(float((law.p_x @ error).min()) for law in (first, *laws))
    return cpv.PrivacyDistortion(
        first, error, budget=None if price else 0.4 * worst, price=price, laws=laws,
        leakage=MEASURES[name][0], criteria=criteria, units="nats",
    )  # fmt: skip


CASES = {
    "three laws": lambda: posed("information", 3, []),
    "a price": lambda: posed("information", 2, [], price=0.7),
    "near": lambda: posed("information", 1, NEAR),
    "laws and near": lambda: posed("information", 2, NEAR),
    "smooth": lambda: posed("chi-squared", 3, NEAR),
    "polyhedral": lambda: posed("guess", 3, NEAR),
    "rows": lambda: posed("variation", 2, [cpv.TCloseness(0.3), cpv.LeakageCap(0.2)]),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_it_reaches_what_the_conic_solver_finds(case: str) -> None:
    problem = CASES[case]()
    referee.check_against_conic(problem)
    assert problem.solve(accuracy="high").status == "certified"


def residuals_of(program: ScaledProgram, x: Any) -> dict[str, np.ndarray]:
    """Return what each equation lacks at a point."""
    at = Residuals(program, x)
    results = {"dual": at.dual, "letters": at.row_sums, "shares": np.asarray(at.shares)}
    results |= {f"row {name}": at.primal[name] for name in program.rows}
    results |= {f"scores {i}": part for i, part in enumerate(at.posterior)}
    for name, term in program.recourses.items():
        results[f"plan {name}"] = term.short(x)
        priced = term.omega(x)[:, None] * term.cost - x.equal[name] @ term.matrix
        results[f"price {name}"] = priced - x.price[name]
    return results


@pytest.mark.parametrize("case", CASES)
def test_a_step_leaves_in_every_equation_what_it_should(case: str) -> None:
    program, path = ScaledProgram(CASES[case]().program), []
    for iterate in interior.central_path(program):
        path.append(iterate.point)
        if iterate.gap < 1e-6:
            break
    for x in path[1::3]:
        x = replace(x, scores=program.joints(x.q)[1])
        newton, before = Newton(program, x), residuals_of(program, x)
        mu = 0.3 * program.complementarity(x) / program.count
        step = newton.step({key: mu * share for key, share in program.shares.items()}, 1.0)
        after = {t: residuals_of(program, x.moved(step, t)) for t in (1e-3, 1e-4)}
        for key, was in before.items():
            left = [np.abs(after[t][key] - (1 - t) * was).max(initial=0.0) for t in (1e-3, 1e-4)]
            assert left[1] <= 0.02 * left[0] + 1e-9, key
        assert sum(step.price[row] for row in program.worst) == pytest.approx(
            before["shares"] if program.worst else 0.0, abs=1e-8
        )


def campaign(seeds: range) -> tuple[float, float]:
    """Return the share that is certified, or proved infeasible, and the median of steps."""
    names, settled, steps = list(MEASURES), [], []
    for seed in seeds:
        rng = np.random.default_rng([9, seed])
        first, *laws = tables(rng, int(rng.integers(1, 4)), tuple(rng.integers(2, [5, 9])))
        size = len(first.x)
        error = np.round(rng.random((size, size)), 2) * (1 - np.eye(size))
        rules = [
            [], NEAR, [cpv.TCloseness(0.3)], [cpv.LeakageCap(0.05)], [cpv.DeltaDisclosure(1.0)],
            [cpv.LocalPrivacy(2.0), cpv.MarginalDistance(0.1)], [cpv.MarginalDistance(0.2)],
        ][rng.integers(7)]  # fmt: skip
        measure = MEASURES[names[rng.integers(len(names))]][0]
        try:
            measure.fitted(first.w, range(len(first.w)))
        except cpv.InputError:  # a table for another number of values
            measure = cpv.leakage.ChiSquared()
        worst = max(float((law.p_x @ error).min()) for law in (first, *laws))
        problem = cpv.PrivacyDistortion(
            first, error, budget=float(rng.uniform(0.1, 0.95)) * worst, laws=laws,
            criteria=rules, leakage=measure, encoder=str(rng.choice(["x", "wx"])),
        )  # fmt: skip
        solution = problem.solve(method="structured", certify=False)
        settled.append(solution.status in ("certified", "infeasible"))
        values = [line.split() for line in solution.log if "steps, gap" in line]
        steps += [int(words[words.index("steps,") - 1]) for words in values]
        if seed % 5 == 0:
            conic = problem.solve(method="conic", certify=False)
            assert solution.lower <= conic.upper, seed
            assert conic.lower <= solution.upper, seed
    return sum(settled) / len(settled), median(steps)


@pytest.mark.long
def test_laws_at_random() -> None:
    share, steps = campaign(range(4))
    assert share >= 0.97
    assert steps <= 25


@pytest.mark.campaign
def test_a_campaign_over_laws() -> None:
    share, steps = campaign(range(1000, 1120))
    assert share >= 0.98
    assert steps <= 25
