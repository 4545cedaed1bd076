"""Few entries and the prices of the others, against the path of all entries and by hand."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.programs.channel import View
from cvxprivacy.settings import EntryGeneration, InteriorPoint, Stages, using
from cvxprivacy.solvers import driver
from cvxprivacy.solvers.entries import generation as entry_generation
from cvxprivacy.solvers.entries.pricing import Pricing
from cvxprivacy.solvers.interior.method import central_path
from cvxprivacy.solvers.interior.point import Layout
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy_verifier import work
from tests import referee
from tests.lengths import rest_at_length, some_at_length


def line(letters: int = 40, labels: int = 4):
    """Return a smooth source on a line, and its squared error."""
    x, centre = np.arange(1, letters + 1) / letters, np.linspace(0, 1, labels)
    law = np.exp(-((x - centre[:, None]) ** 2) / 0.05)
    return cpv.DiscreteSource(law / law.sum(), x=x.tolist()), cpv.squared_error(x)


def random_source(seed: int, letters: int = 25, labels: int = 3):
    """Return a source of rare letters and of labels that single letters have not."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(labels * letters, 0.2)).reshape(labels, letters)
    law[:, law.sum(axis=0) < 1e-9] += 1e-6
    error = rng.random((letters, letters))
    np.fill_diagonal(error, 0.0)
    return cpv.DiscreteSource(law / law.sum()), error


def problems():
    source, error = line()
    yield cpv.PrivacyDistortion(source, error, budget=0.02)
    yield cpv.PrivacyDistortion(source, error, price=0.1)
    yield cpv.PrivacyDistortion(source, error, budget=0.02, encoder="wx", units="nats")
    yield cpv.PrivacyDistortion(source, error, budget=0.05, criteria=[cpv.KeepProbability(0.2)])
    far = np.abs(np.subtract.outer(range(40), range(40))) > 12
    yield cpv.PrivacyDistortion(source, error, budget=0.02, criteria=[cpv.ForbiddenMoves(far)])
    cost = np.abs(np.subtract.outer(range(40), range(40))) / 40.0
    rows = [cpv.Linear(cost, 0.09, name="shift")]
    yield cpv.PrivacyDistortion(source, error, budget=0.02, criteria=rows)
    for seed in range(4):
        source, error = random_source(seed)
        yield cpv.PrivacyDistortion(source, error, budget=0.1)
    source, error = random_source(9)
    yield cpv.PrivacyDistortion(source, error[:, :6], budget=0.4)


PROBLEMS = list(problems())


# all programs begin with few entries, and are followed as those that are large
ALWAYS = Stages(few_entries_beyond=1, never_refused=1, all_entries_up_to=1, small_work=1.0)


@pytest.fixture
def always():
    with using(ALWAYS):
        yield


@pytest.mark.parametrize("number", rest_at_length(range(len(PROBLEMS)), 1))
def test_the_optimum_is_that_of_all_entries(number):
    problem = PROBLEMS[number]
    assert entry_generation.suits(problem.program)
    few = problem.solve(method="structured", settings=ALWAYS)
    referee.check(few)
    solution = problem.solve(method="structured", accuracy="high")
    assert few.lower <= solution.upper
    assert solution.lower <= few.upper


@pytest.mark.long
@pytest.mark.parametrize("number", rest_at_length(range(len(PROBLEMS)), 3))
def test_the_gap_is_no_less_than_what_the_bound_and_the_channel_leave(number):
    program = PROBLEMS[number].program
    with np.errstate(all="ignore"):
        values = list(entry_generation.rounds(program, lambda: 1e-7 * program.scale))
    assert values[-1].gap <= 1e-7 * program.scale
    for each in {id(r.point): r for r in values if np.isfinite(r.gap)}.values():
        matrix, dual = each.proposal()
        upper = program.value(program.objective, matrix)
        lower = dual.cleaned(program).lower_bound(program)
        assert upper - lower <= 1.001 * each.gap + 1e-12 * program.scale
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("limit", [3, 150])
def test_all_entries_follow_where_few_do_not_pay(limit, always):
    """After few steps, or where outputs multiply, as those of a smooth law between points do."""
    source, error = line(120)
    problem = cpv.PrivacyDistortion(source, error, budget=0.05)
    few = entry_generation.rounds(problem.program, lambda: 1e-7, alone=limit > 3)
    with np.errstate(all="ignore"), using(EntryGeneration(long=limit)):
        last = list(few)[-1]
    assert (last.gap <= 1e-7) == (limit > 3)
    referee.check(problem.solve(method="structured", settings=EntryGeneration(long=limit)))


def stopped(problem, after: int):
    """Return what a stop after some steps leaves, and the steps that were told."""
    learned = []

    def progress(now):
        learned.append(now.step)
        if len(learned) == after:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        return problem.solve(progress=progress, certify=False), learned


@pytest.mark.long
def test_a_stop_leaves_the_best_of_what_was_reached(always):
    outcome, information = zip(*(stopped(PROBLEMS[0], after) for after in (1, 8, 20)), strict=True)
    assert [steps[0] for steps in information] == [0, 0, 0]
    assert all(steps == sorted(set(steps)) for steps in information)
    value = PROBLEMS[0].solve().value
    for each in outcome:
        referee.check(each, status=each.status)
        assert each.lower <= value <= each.upper + 1e-6
    assert outcome[1].upper < outcome[0].upper
    assert outcome[2].gap < 0.1 * outcome[0].gap


@pytest.mark.parametrize("bound", [-0.3, -0.2])
def test_rows_that_contradict_each_other_are_proved_to(bound, always):
    source, error = line()
    far = np.abs(np.subtract.outer(range(40), range(40))) / 40.0
    rows = [cpv.Linear(-far, bound, name="away")]
    problem = cpv.PrivacyDistortion(source, error, budget=0.01, criteria=rows)
    assert entry_generation.suits(problem.program)
    solution = problem.solve(method="structured", certify=False)
    assert solution.status == "infeasible"
    assert solution.log[-1].endswith("infeasible")
    assert int(solution.log[-1].split(": ")[1].split()[0]) < 60


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_end_as_with_all_entries(seed):
    """Of skewed masses, with rows that may contradict each other; no two rounds are alike."""
    rng = np.random.default_rng([736, seed])
    n, m = int(rng.integers(3, 12)), int(rng.integers(2, 12))
    law = rng.dirichlet(np.full(3 * n, 0.05 if seed % 2 else 1.0)).reshape(3, n) + 1e-9
    error, cost = rng.random((n, m)), rng.random((n, m)) - 0.5
    source = cpv.DiscreteSource(law / law.sum())
    p = source.p_x
    least, most = float(p @ error.min(axis=1)), float((p @ error).min())
    row = float(p @ cost.min(axis=1)) + rng.uniform(0.0, 0.4)
    problem = cpv.PrivacyDistortion(
        source, error, budget=least + rng.uniform(0.05, 0.9) * (most - least),
        criteria=[cpv.Linear(cost, row, name="row")],
    )  # fmt: skip
    few = problem.solve(method="structured", certify=False, settings=ALWAYS)
    solution = problem.solve(method="structured", certify=False)
    assert few.status == solution.status in ("certified", "infeasible")
    assert few.status == "infeasible" or (
        few.lower <= solution.upper and solution.lower <= few.upper
    )


@pytest.mark.long
@pytest.mark.parametrize("views", [("A", "W"), ("W", "A"), ("A",), ()])
def test_views_are_those_that_the_objective_weighs(views):
    """In the order of its weights, whatever views a program has beside them."""
    source, error = line()
    program = cpv.PrivacyDistortion(source, error, budget=0.02).program
    coarse = View(program.views["W"].labels // 2)  # W in two halves
    both = {"A": coarse, **program.views}
    weights = dict.fromkeys(views, 0.5)
    objective = replace(program.objective, weights=weights, cost=error.matrix / 7)
    changed = replace(program, views=both, objective=objective)
    with using(ALWAYS):
        few = driver.solve(changed, method="structured").certificate
    every = driver.solve(changed, method="structured").certificate
    assert few.status == every.status == "certified"
    assert few.lower <= every.upper
    assert every.lower <= few.upper


def test_a_distortion_without_information_is_solved_so_too(always):
    source, error = line()
    far = cpv.Linear(np.abs(np.subtract.outer(range(40), range(40))) / 40.0, 0.3, name="row")
    referee.check(cpv.MinimumDistortion(source, error, criteria=[far]).solve())


@pytest.mark.long
def test_what_steps_on_all_entries_proved_outlasts_the_first_round(always):
    """A stop in a round, of which no gap is known yet, falls back on what came before it."""
    problem, steps = PROBLEMS[0], []

    def progress(now):
        steps.append(now.step)
        if len(steps) > 3 and steps[-1] > begun:
            raise KeyboardInterrupt

    begun = int(problem.solve(method="structured").log[0].split(": ")[1].split()[0])
    with pytest.warns(UserWarning, match="interrupted"):
        solution = problem.solve(progress=progress, certify=False)
    assert solution.log[0] == f"first entries: {begun} steps on all"
    assert solution.gap < 2e-3


def test_what_has_curved_rows_or_labels_by_letter_keeps_all_entries():
    source, error = line(12)
    for problem in (
        cpv.PrivacyDistortion(source, error, budget=0.02, criteria=[cpv.TCloseness(0.5)]),
        cpv.PrivacyDistortion(source, error, budget=0.02, criteria=[cpv.LocalPrivacy(2.0)]),
        cpv.PrivacyDistortion(source, error, budget=0.02, criteria=[cpv.PreserveMarginal()]),
        cpv.RateDistortionEquivocation(source, error, 0.02),
    ):
        assert not entry_generation.suits(problem.program)


@pytest.mark.parametrize("criteria", [[], [cpv.TCloseness(0.5)]], ids=["few", "all"])
def test_what_does_not_fit_is_refused_with_what_would(criteria, always):
    source, error = line(12)
    problem = cpv.PrivacyDistortion(source, error, budget=0.02, criteria=criteria)
    most = 9 if not criteria else 6
    text = rf"12 letters to release as 12, which takes 0.0 GiB; about {most} of each fit"
    with pytest.raises(cpv.InputError, match=text):
        problem.solve(settings=InteriorPoint(most_numbers=900))


def test_what_no_proof_would_be_read_of_is_refused(monkeypatch):
    source, error = line(12)
    problem = cpv.PrivacyDistortion(source, error, budget=0.02)
    monkeypatch.setattr(work, "WORK", 200)
    text = r"12 letters to release as 12 are more than a proof holds \([0-9,]+ products \(--work"
    with pytest.raises(cpv.InputError, match=text):
        problem.solve()


# ---- prices ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", some_at_length(range(5), 2))
def test_scores_of_an_output_that_nobody_uses_separate_as_well_as_can_be(seed):
    """max over scores of the least reduced cost, as far as it decides, against CVXPY."""
    source, error = random_source(seed, letters=12)
    full = ScaledProgram(cpv.PrivacyDistortion(source, error, budget=0.1).program)
    layout = Layout.of(np.eye(12, dtype=bool)[:, :12] | (np.arange(12) == 0)[:, None])
    scaled = ScaledProgram(full.program, layout)
    with np.errstate(all="ignore"):
        iterate = next(i for i in central_path(scaled) if i.gap < 1e-6)
    view = full.views[0]
    pricing = Pricing(full, [np.zeros((full.m, len(view.matrix)))])
    outputs = np.arange(12)
    prices = pricing._prices(iterate, outputs)
    reduced, _ = pricing._improved(prices, outputs, 1e-8)
    for y in range(12):
        s, least = cp.Variable(len(view.matrix)), cp.Variable()
        rows = prices.base[y] + prices.weights[0][y] * (view.matrix.T @ s)
        normal = cp.log_sum_exp(s + np.log(view.reference)) <= 0
        best = cp.Problem(cp.Maximize(least), [rows >= least, normal]).solve()
        assert reduced[y].min() <= best + 2e-6
        assert reduced[y].min() >= min(1.1 * best, 0.0) - 2e-6


# ---- where entries stand -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_list_of_entries_stands_for_its_table(seed):
    rng = np.random.default_rng(seed)
    n, m = 7, 5
    chosen = rng.random((m, n)) < 0.5
    chosen[0], chosen[3, 0] = False, True
    layout, table = Layout.of(chosen), np.where(chosen.T, rng.random((n, m)), 0.0)
    entries = layout.take(table)
    assert layout.m == chosen.any(axis=1).sum()
    assert (layout.put(entries, m) == table).all()
    assert layout.total(entries) == pytest.approx(table.sum(axis=1))
    assert (layout.extreme(np.maximum, entries, 0.0, layout.present) == table.max(axis=1)).all()
    ours = rng.random(n)
    assert (
        layout.take(np.tile(ours[:, None], (1, m))) == layout.spread(ours) * layout.present
    ).all()
    down, up = (rng.random((layout.m, 2, layout.shape[1])) * layout.present[:, None] for _ in "du")
    diagonal = rng.random(layout.shape) * layout.present
    square = np.zeros((n, n))
    for y, output in enumerate(layout.outputs):
        place = np.nonzero(chosen[output])[0]
        minus, plus = down[y, :, : len(place)], up[y, :, : len(place)]
        square[np.ix_(place, place)] += plus.T @ plus - minus.T @ minus
    assert layout.square(None, down, up) == pytest.approx(square)
    outputs = np.repeat(np.arange(layout.m), 2)
    rows = layout.lifted(down.reshape(-1, layout.shape[1]), outputs).reshape(layout.m, 2, n)
    assert rows.sum(axis=0) == pytest.approx(layout.total(down))
    assert layout.widened(np.arange(layout.m), m)[layout.outputs].tolist() == list(range(layout.m))
    assert diagonal.sum() == pytest.approx(layout.total(diagonal).sum())


@pytest.mark.parametrize("number", range(0, len(PROBLEMS), 3))
def test_the_path_of_all_entries_in_a_list_is_that_of_the_table(number):
    program = PROBLEMS[number].program
    every = Layout.of(np.ones((program.m, program.n), dtype=bool))
    with np.errstate(all="ignore"):
        lists, tables = (
            [it.proposal()[0] for it, _ in zip(central_path(scaled), range(8), strict=False)]
            for scaled in (ScaledProgram(program, every), ScaledProgram(program))
        )
    for one, other in zip(lists, tables, strict=True):
        assert one == pytest.approx(other, abs=1e-9)
