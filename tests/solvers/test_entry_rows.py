"""Guesses, maximal leakage and total variation of W itself: the simplex method, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.settings import EntryRows, using
from cvxprivacy.solvers import entry_rows
from tests.lengths import rest_at_length, seeds, some_at_length

MEASURES = {
    "guess": cpv.leakage.GuessingProbability(),
    "bet": cpv.leakage.Gain(np.diag([1.0, 2.0, 0.5, 3.0, 1.0, 1.5])),
    "maximal": cpv.leakage.Maximal(),
    "variation": cpv.leakage.TotalVariation(),
    "hockey": cpv.leakage.HockeyStick(1.5),
}
N = 6


def letters(seed: int) -> tuple[cpv.DiscreteSource, np.ndarray]:
    rng = np.random.default_rng([20, seed])
    source = cpv.DiscreteSource.identical(rng.dirichlet(np.ones(N)))
    return source, rng.integers(0, 5, (N, N)) * (1.0 - np.eye(N))


def problems(measure, seed):
    """Yield the measure as objective, with a price, and as a cap, with rules beside it."""
    source, d = letters(seed)
    yield cpv.PrivacyDistortion(source, d, 0.6, leakage=measure)
    yield cpv.PrivacyDistortion(source, d, price=0.8, leakage=measure, encoder="wx")
    keep = [cpv.KeepProbability(0.2), cpv.PreserveMarginal()]
    yield cpv.PrivacyDistortion(source, d, 0.6, leakage=measure, criteria=keep)
    least = cpv.PrivacyDistortion(source, d, 0.6, leakage=measure).solve().value
    yield cpv.MinimumDistortion(source, d, [cpv.LeakageCap(least, leakage=measure)])


@pytest.mark.parametrize("seed", some_at_length(range(3), 1))
@pytest.mark.parametrize("name", rest_at_length(MEASURES, 2))
def test_the_optimum_is_that_of_the_central_path(name, seed, monkeypatch):
    ways = []
    for problem in problems(MEASURES[name], seed):
        by_simplex = problem.solve(accuracy="high")
        assert by_simplex.status == "certified"
        ways.append(
            by_simplex.log[-1].split(":")[0]
        )  # the path, after a face or an accuracy missed
        with monkeypatch.context() as patch:
            patch.setattr(entry_rows, "pays", lambda program: False)
            by_path = problem.solve(accuracy="high")
        assert by_simplex.lower <= by_path.upper
        assert by_path.lower <= by_simplex.upper
    assert ways.count("HiGHS, entry by entry") >= 1


# from one entry of a letter, and one more of each in a round
FEW = EntryRows(listed=1, cheapest=1, added=1)


@pytest.mark.parametrize("seed", seeds(20, 2))
@pytest.mark.parametrize("name", MEASURES)
def test_entries_that_pay_are_generated(name, seed):
    """From one entry of a letter, and one more of each in a round, to the optimum of all."""
    stated = list(problems(MEASURES[name], seed))
    enclosures = [problem.solve(accuracy="high") for problem in stated]
    logs = []
    for problem, at_once in zip(stated, enclosures, strict=True):
        grown = problem.at().solve(accuracy="high", settings=FEW)
        assert grown.status == "certified"
        assert grown.lower <= at_once.upper
        assert at_once.lower <= grown.upper
        logs += grown.log
    rounds = [int(log.split()[4]) for log in logs if log.startswith("HiGHS, entry by entry")]
    assert max(rounds) > 1


def test_where_the_first_entries_allow_no_release_all_are_taken():
    source, d = letters(0)
    rules = [cpv.PreserveMarginal(), cpv.LeakageCap(0.001, leakage=MEASURES["variation"])]
    problem = cpv.MinimumDistortion(source, d, rules)
    at_once = problem.solve()
    grown = problem.at().solve(settings=FEW)
    assert "HiGHS, entry by entry: 2 rounds" in grown.log[0]
    assert grown.status == "certified"
    assert grown.lower <= at_once.upper
    assert at_once.lower <= grown.upper


def test_the_first_entries_are_of_moves_that_are_allowed():
    """Where every letter's cheapest is forbidden, the next is there: all would take minutes."""
    source, _ = letters(0)
    line = np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    rules = [cpv.ForbiddenMoves(line < 2)]
    problem = cpv.PrivacyDistortion(
        source, line / N, 0.9, leakage=MEASURES["guess"], criteria=rules
    )
    at_once = problem.solve()
    with using(FEW):
        first = entry_rows._Statement(problem.program).first().reshape(N, N)
    assert (first.sum(axis=1) < N - np.count_nonzero(line < 2, axis=1)).all()
    assert (first & (line == 2)).any(axis=1).all()
    assert not first[line < 2].any()
    grown = problem.at().solve(settings=FEW)
    assert grown.status == "certified"
    assert grown.lower <= at_once.upper
    assert at_once.lower <= grown.upper


def test_out_of_time_the_last_round_is_what_is_proved(monkeypatch):
    """A clock that stops after two rounds: both ends are there, and no path is begun."""
    source, d = letters(2)
    best = cpv.PrivacyDistortion(source, d, 0.6, leakage=MEASURES["variation"])
    optimum, solve, calls = best.solve(), entry_rows.IntegerProgram.solve, []

    def out_of_time(program, watch, **options):
        calls.append(watch)
        if len(calls) > 2:
            watch.interrupted = True
        return solve(program, watch, **options)

    monkeypatch.setattr(entry_rows.IntegerProgram, "solve", out_of_time)
    with pytest.warns(UserWarning, match="interrupted"):
        stopped = best.at().solve(settings=FEW)
    assert len(calls) == 3
    assert optimum.lower - 1e-9 <= stopped.upper <= 1
    assert stopped.lower <= optimum.upper
    assert not any("central path" in line for line in stopped.log)


def test_other_measures_and_other_letters_go_their_way():
    source, d = letters(0)
    ground = cpv.leakage.EarthMover(1.0 - np.eye(N))
    others = [
        cpv.PrivacyDistortion(source, d, 0.6, leakage=ground),
        cpv.PrivacyDistortion(source, d, 0.6),
        cpv.PrivacyDistortion(
            cpv.DiscreteSource(np.array([[0.3, 0.1], [0.2, 0.4]])),
            cpv.hamming(2),
            0.2,
            leakage=MEASURES["guess"],
        ),
        cpv.PrivacyDistortion(
            source, d, 0.6, leakage=MEASURES["guess"], criteria=[cpv.MaximalLeakage(1)]
        ),
    ]
    assert not any(entry_rows.pays(problem.program) for problem in others)


def test_without_time_nothing_is_returned_and_the_rest_goes_on(monkeypatch):
    source, d = letters(1)
    monkeypatch.setattr(entry_rows, "optimum", lambda program, watch: None)
    solution = cpv.PrivacyDistortion(source, d, 0.6, leakage=MEASURES["guess"]).solve()
    assert solution.status == "certified"
