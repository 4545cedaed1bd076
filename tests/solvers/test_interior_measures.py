"""The interior-point method with other measures of leakage than information."""

from __future__ import annotations

import itertools
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy.solvers.interior.newton import Newton, Residuals
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy.solvers.interior.start import start
from tests import referee
from tests.leakage.measures import MATRIX, MEASURES, kinds_of
from tests.lengths import rest_at_length, some_at_length

OTHERS = {name: measure for name, (measure, _) in MEASURES.items() if name != "information"}
OTHERS["losses"] = cpv.leakage.Gain(np.array(MATRIX) - 0.45)  # each may lose
KINDS = ("cap", "wx", "budget", "price", "letter")


def alternating(names: Any, values: Any) -> list[Any]:
    """Return each name with one value, which are taken in turn."""
    return list(zip(names, itertools.cycle(values), strict=False))


# each measure in all places at once, and in one by itself
PLACES = [(name, "all") for name in OTHERS] + alternating(OTHERS, KINDS)


def instance(seed: int) -> tuple[cpv.DiscreteSource, np.ndarray]:
    rng = np.random.default_rng(seed)
    law, error = rng.dirichlet(np.full(15, 0.7)).reshape(3, 5), rng.random((5, 5))
    np.fill_diagonal(error, 0.0)
    return cpv.DiscreteSource(law), error


def bounds(measure: cpv.leakage.Leakage, law: np.ndarray, share: float) -> tuple[float, float]:
    """Return a bound of the whole and one of each letter, between the least and the most."""
    prior, fitted = law.sum(axis=1), measure.fitted(range(len(law)), range(len(law)))
    none = float(fitted.value(prior[:, None], prior)[0])
    values, mass = fitted.value(law, prior), law.sum(axis=0)
    most = float((values / mass).max())
    return none + share * (float(values.sum()) - none), none + share * (most - none)


def posed(measure: cpv.leakage.Leakage, kind: str, seed: int = 5, share: float = 0.3) -> Any:
    """Return a problem that has the measure in one place, or in all, beside information."""
    source, error = instance(seed)
    budget = share * float((source.p_x @ error).min())
    full, letter = bounds(measure, source.pmf, share)
    cap, per = cpv.LeakageCap(full, leakage=measure), cpv.PerLetter(measure, letter)
    if kind in ("budget", "wx"):
        encoder = "wx" if kind == "wx" else "x"
        return cpv.PrivacyDistortion(
            source, error, budget=budget, leakage=measure, encoder=encoder, units="nats"
        )
    if kind == "price":
        return cpv.PrivacyDistortion(source, error, price=0.7, leakage=measure, units="nats")
    if kind == "all":
        rules = [cap, per, cpv.TCloseness(0.3)]
        return cpv.PrivacyDistortion(
            source, error, budget=3 * budget, leakage=measure, criteria=rules
        )
    return cpv.MinimumDistortion(source, error, [cap if kind == "cap" else per])


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), PLACES)
def test_it_reaches_what_the_conic_solver_finds(name: str, kind: str) -> None:
    referee.check_against_conic(posed(OTHERS[name], kind))


@pytest.mark.long
@pytest.mark.parametrize("name", kinds_of(OTHERS))
def test_no_conic_solver_is_asked_by_default(name: str) -> None:
    log = posed(OTHERS[name], "budget").solve().log
    assert not any("CLARABEL" in line for line in log)


@pytest.mark.parametrize("name", some_at_length(kinds_of(OTHERS), 5))
def test_high_accuracy(name: str) -> None:
    referee.check(posed(OTHERS[name], "budget").solve(accuracy="high"))


# ---- a step --------------------------------------------------------------------------------


def path_of(problem: Any) -> tuple[ScaledProgram, list[Any]]:
    """Return a program and some points of its path, to where the gap is 1e-6."""
    iterates = []
    for iterate in interior.central_path(ScaledProgram(problem.program)):
        iterates.append(iterate)
        if iterate.gap < 1e-6:
            break
    return iterates[0].program, [iterate.point for iterate in iterates[::3]]


def residuals_of(program: ScaledProgram, x: Any) -> dict[str, np.ndarray]:
    """Return what each equation lacks at a point, from the measures' own statements."""
    at = Residuals(program, x)
    results = {"dual": at.dual, "letters": at.row_sums}
    results |= {f"row {name}": at.primal[name] for name in program.rows}
    results |= {f"scores {i}": part for i, part in enumerate(at.posterior)}
    for name, term in program.recourses.items():
        measure, reference = term.view.measure, term.view.reference
        matrix, mass, cost = measure.recourse(reference)
        joint = x.q @ term.view.matrix.T
        lifted = measure.lifted(joint.T, reference).T
        target = joint.sum(axis=1, keepdims=True) * mass
        target[:, : lifted.shape[1]] += lifted
        omega = term.weight * (x.multiplier(term.row) if term.row else 1.0)
        results[f"plan {name}"] = target - x.slack[name] @ matrix.T
        results[f"price {name}"] = omega[:, None] * cost - x.price[name] - x.equal[name] @ matrix
    return results


@pytest.mark.parametrize("kind", rest_at_length(["all", "letter", "budget", "cap"], 1))
@pytest.mark.parametrize("name", some_at_length(kinds_of(OTHERS), 6))
def test_a_step_leaves_in_every_equation_what_it_should(name: str, kind: str) -> None:
    """A wrong sign or a part left out is of first order in the length of the step."""
    program, path = path_of(posed(OTHERS[name], kind))
    for x in path[1:]:
        x = replace(x, scores=program.joints(x.q)[1])  # where ∇²F is that at J
        newton, before = Newton(program, x), residuals_of(program, x)
        mu = 0.3 * program.complementarity(x) / program.count
        targets = {key: mu * share for key, share in program.shares.items()}
        step = newton.step(targets, 1.0)
        after = {t: residuals_of(program, x.moved(step, t)) for t in (1e-3, 1e-4)}
        for key, was in before.items():
            left = [np.abs(after[t][key] - (1 - t) * was).max(initial=0.0) for t in (1e-3, 1e-4)]
            assert left[1] <= 0.02 * left[0] + 1e-9, key
        for key, target in targets.items():
            pair = x.slack[key] * x.price[key] + step.slack[key] * x.price[key]
            pair = pair + x.slack[key] * step.price[key]
            assert pair[program.shares[key] > 0] == pytest.approx(
                target[program.shares[key] > 0], abs=1e-6 * mu + 1e-10
            )


@pytest.mark.parametrize("name", kinds_of(OTHERS))
def test_recourse_starts_at_its_centre(name: str) -> None:
    program = ScaledProgram(posed(OTHERS[name], "budget").program)
    x, mu = start(program)
    left = residuals_of(program, x)
    for key in program.recourses:
        assert (x.slack[key] > 0).all()
        assert (x.price[key] > 0).all()
        assert x.slack[key] * x.price[key] == pytest.approx(
            np.full_like(x.slack[key], mu), rel=1e-3
        )
        assert left[f"plan {key}"] == pytest.approx(0.0, abs=1e-10 * np.abs(x.slack[key]).max())
        assert left[f"price {key}"] == pytest.approx(0.0, abs=1e-10 * np.abs(x.price[key]).max())


# ---- what is degenerate --------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("name", "size"), alternating(OTHERS, [1e-6, 1e6]))
def test_sizes_of_costs_change_nothing(name: str, size: float) -> None:
    source, error = instance(5)
    budget = 0.3 * float((source.p_x @ error).min())
    problem = cpv.PrivacyDistortion(
        source, error * size, budget=budget * size, leakage=OTHERS[name], units="nats"
    )
    solution, truth = problem.solve(method="structured"), posed(OTHERS[name], "budget").solve()
    referee.check(solution)
    assert solution.value == pytest.approx(truth.value, abs=2e-7)


@pytest.mark.long
@pytest.mark.parametrize("name", kinds_of(OTHERS))
def test_zeros_and_ties(name: str) -> None:
    """Letters that tell W, letters that tell the same, and costs that are equal."""
    law = np.array([[4, 0, 1, 1, 0], [0, 3, 1, 1, 0], [0, 0, 2, 2, 5]]) / 20
    source, error = cpv.DiscreteSource(law), 1.0 - np.eye(5)
    problem = cpv.PrivacyDistortion(source, error, budget=0.1, leakage=OTHERS[name])
    referee.check_against_conic(problem)


@pytest.mark.parametrize("name", some_at_length(kinds_of(OTHERS), 5))
def test_letters_that_are_the_private_ones(name: str) -> None:
    """W = X: as many labels as letters, and no matrix of low rank."""
    source = cpv.DiscreteSource(np.diag([0.5, 0.3, 0.2]))
    problem = cpv.PrivacyDistortion(source, cpv.hamming(3), budget=0.2, leakage=OTHERS[name])
    referee.check(problem.solve(method="structured"))


@pytest.mark.parametrize("name", some_at_length(kinds_of(OTHERS), 5))
def test_outputs_that_nothing_is_released_as(name: str) -> None:
    """One that is forbidden to all, and one that all letters leave no share to: J = 0 there."""
    source, error = instance(5)
    forbidden = np.zeros((5, 5), dtype=bool)
    forbidden[:, 2] = True
    budget = float(source.p_x @ np.sort(error, axis=1)[:, 1])
    problem = cpv.PrivacyDistortion(
        *(source, error), budget=budget, leakage=OTHERS[name],
        criteria=[cpv.ForbiddenMoves(forbidden)], units="nats",
    )  # fmt: skip
    solution = problem.solve(method="structured")
    referee.check(solution)
    assert (solution.channel.matrix[:, 2] == 0).all()
    stay = np.eye(5)[[0, 1, 0, 3, 4]]
    program = replace(problem.program, lower=stay, upper=None, constraints={})
    certificate = solve(program, method="structured").certificate
    assert certificate.status == "certified"
    assert certificate.upper == pytest.approx(program.value(program.objective, stay), abs=1e-9)


def test_a_private_value_that_is_known() -> None:
    """|W| = 1: nothing can be told of it, at any price."""
    source = cpv.DiscreteSource([[0.5, 0.25, 0.25]])
    measures = (
        *(cpv.leakage.ChiSquared(), cpv.leakage.Sibson(2), cpv.leakage.TotalVariation()),
        *(cpv.leakage.EarthMover(), cpv.leakage.GuessingProbability()),
    )
    for measure in measures:
        problem = cpv.PrivacyDistortion(source, cpv.hamming(3), price=0.3, leakage=measure)
        solution = problem.solve(method="structured")
        referee.check(solution)
        none, _ = bounds(measure, source.pmf, 0.0)
        assert solution.distortion.upper < 1e-6
        assert solution.risk.upper == pytest.approx(none, abs=1e-9)


# ---- measures of one's own ------------------------------------------------------------------


class Near(cpv.leakage.Gain):
    """The probability of guessing an ordered W to within one of its values."""

    def __init__(self) -> None:
        super().__init__(np.eye(3) + np.eye(3, k=1) + np.eye(3, k=-1))


class Bare(cpv.leakage.Leakage):
    """Total variation, as one who knows no linear program of it would state it."""

    kind = "hockey-stick"
    meaning = "total variation"

    def data(self) -> dict[str, Any]:
        return cpv.leakage.TotalVariation().data()

    def value(self, joint: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return cpv.leakage.TotalVariation().value(joint, reference)

    def scores(self, joint: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return cpv.leakage.TotalVariation().scores(joint, reference)

    def inside(self, scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return cpv.leakage.TotalVariation().inside(scores, reference)

    def lifted(self, joint: Any, reference: np.ndarray) -> Any:
        return cpv.leakage.TotalVariation().lifted(joint, reference)

    def cone(self, x: Any, mass: Any, reference: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return cpv.leakage.TotalVariation().cone(x, mass, reference)


def test_a_gain_of_ones_own_follows_the_path() -> None:
    solution = posed(Near(), "budget").solve(method="structured")
    referee.check(solution)
    same = posed(cpv.leakage.Gain(np.array(Near().matrix, float)), "budget").solve()
    assert solution.value == pytest.approx(same.value, abs=1e-6)


@pytest.mark.parametrize("method", ["structured", "conic"])
@pytest.mark.parametrize("size", some_at_length([1.0, 7.0, 0.01], 2))
def test_one_who_may_stay_away(method: str, size: float) -> None:
    """A guess that gains 0 whatever is true: once the weights of the others were scaled up."""
    students = [[68, 119, 26, 7], [20, 84, 17, 94], [15, 54, 14, 10], [5, 29, 14, 16]]
    source, gains = cpv.DiscreteSource.from_counts(students), size * (2 * np.eye(4) - 1)
    thief = np.vstack([gains, np.zeros((1, 4))])
    ends = []
    for shift in (0.0, size):  # the same measure, and one whose every guess gains so much more
        measure = cpv.leakage.Gain(thief + shift)
        problem = cpv.PrivacyDistortion(source, cpv.hamming(4), budget=0.1, leakage=measure)
        solution = problem.solve(method=method)
        referee.check(solution)
        ends.append(solution.value - shift)
    assert ends[0] == pytest.approx(ends[1], abs=2e-6 * size)
    assert ends[0] == pytest.approx(0.0451387 * size, abs=2e-6 * max(size, 1.0))


def test_a_measure_that_states_neither_is_left_to_the_conic_solver() -> None:
    problem = posed(Bare(), "budget")
    solution = problem.solve()
    assert all("CLARABEL" in line for line in solution.log)
    truth = posed(cpv.leakage.TotalVariation(), "budget").solve()
    assert solution.value == pytest.approx(truth.value, abs=1e-6)
    with pytest.raises(cpv.InputError, match="neither a Hessian") as caught:
        problem.solve(method="structured")
    assert (caught.value.argument, caught.value.value) == ("method", "structured")


# ---- at random ------------------------------------------------------------------------------


def at_random(rng: np.random.Generator) -> Any:
    """Return a program with some measures in some places, strictly feasible by far."""
    w, n = int(rng.integers(2, 8)), int(rng.integers(2, 21))
    law = rng.dirichlet(np.full(w * n, rng.choice([0.1, 0.3, 1.0, 3.0]))).reshape(w, n) + 1e-9
    law = law / law.sum()
    source, m = cpv.DiscreteSource(law), n if rng.random() < 0.7 else int(rng.integers(2, 21))
    error = rng.random((n, m)) * 10.0 ** int(rng.choice([-6, 0, 0, 6]))
    if m == n:
        np.fill_diagonal(error, 0.0)
    measures = [
        *(cpv.leakage.MutualInformation(), cpv.leakage.ChiSquared()),
        *(cpv.leakage.SquaredHellinger(), cpv.leakage.Sibson(float(rng.uniform(1.1, 6)))),
        *(cpv.leakage.TotalVariation(), cpv.leakage.HockeyStick(float(rng.uniform(1, 2)))),
        *(cpv.leakage.EarthMover(), cpv.leakage.EarthMover(rng.random((w, w)) * (1 - np.eye(w)))),
        *(cpv.leakage.GuessingProbability(), cpv.leakage.Maximal("W")),
        cpv.leakage.Gain(rng.normal(size=(int(rng.integers(2, 2 * w)), w))),
        *(cpv.leakage.VinczeLeCam(), cpv.leakage.JensenShannon()),
        cpv.leakage.PowerDivergence(
            float(rng.choice([rng.uniform(0.1, 0.9), rng.uniform(1.1, 5)]))
        ),
        cpv.leakage.FInformation(
            [(1, 1, *rng.random(2), 0.5, 1), (1, 2, *rng.normal(size=2), 1, 1)]
        ),
    ]
    one, other = (measures[i] for i in rng.integers(len(measures), size=2))
    least, most = float(source.p_x @ error.min(axis=1)), float((source.p_x @ error).min())
    budget = least + float(rng.uniform(0.02, 0.98)) * (most - least)
    kind = rng.choice(["budget", "price", "wx", "cap", "letter", "rules"])
    if kind == "price":
        price = float(10.0 ** rng.uniform(-2, 1)) * error.max()
        return cpv.PrivacyDistortion(source, error, price=price, leakage=one).program
    if kind in ("budget", "wx"):
        encoder = "wx" if kind == "wx" else "x"
        problem = cpv.PrivacyDistortion(source, error, budget=budget, leakage=one, encoder=encoder)
        return problem.program
    share = float(rng.uniform(0.05, 0.9))
    cap = cpv.LeakageCap(max(bounds(one, law, share)[0], 1e-3), leakage=one)
    letter = cpv.PerLetter(other, max(bounds(other, law, share)[1], 1e-3))
    rules = {"cap": [cap], "letter": [letter], "rules": [cap, letter]}[str(kind)]
    return cpv.MinimumDistortion(source, error, rules).program


def campaign(count: int) -> tuple[list[Any], list[int]]:
    """Return what is not certified, and the steps of the rest."""
    rng, open_, steps = np.random.default_rng(8), [], []
    for trial in range(count):
        outcome = solve(at_random(rng), method="structured")
        status = outcome.certificate.status
        if status not in ("certified", "infeasible"):
            open_.append((trial, status, outcome.log))
        taken = [line.split(": ")[1].split() for line in outcome.log if "steps" in line]
        steps += [int(words[0]) for words in taken[-1:]]
    return open_, steps


def test_measures_at_random() -> None:
    open_, steps = campaign(5)
    assert open_ == []
    assert median(steps) <= 20


@pytest.mark.campaign
def test_a_campaign_over_all_measures() -> None:
    """Certified, or proved infeasible, in 99 % by the path alone; half of them in 20 steps."""
    open_, steps = campaign(150)
    assert len(open_) <= 1, open_
    assert median(steps) <= 20
