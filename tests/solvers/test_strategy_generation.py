"""Cut lists of strategies: both ends hold, and the search comes near."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.settings import StrategyGeneration, using
from cvxprivacy.solvers import strategy_generation
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.typing import Progress
from cvxprivacy_verifier.__main__ import main
from tests import referee
from tests.formulations.regions import ENCODERS, agree, between, costs, random_law, rde
from tests.lengths import rest_at_length


def cut_problem(seed: int, most: int):
    """Return a problem whose strategies are more than ``most``, bounds met by a full list."""
    rng = np.random.default_rng([27, seed])
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3, 0.6)), costs(rng, 3, 3)
    options = {"side_information": "decoder", "encoder": ENCODERS[seed % 2]}
    budget = between(lambda **o: rde(source, d, **options, **o), rng.uniform(0.1, 0.6))
    bounds = [
        {"minimize": "rate"},
        {"minimize": "leakage"},
        {"minimize": {"rate": 1.0, "leakage": 0.5}},
        {"minimize": "rate", "max_leakage": math.inf},
        {"minimize": "distortion", "criteria": [cpv.LocalPrivacy(0.2)]},
        {"minimize": "distortion", "criteria": [cpv.MaximalLeakage(0.05)]},
        {"minimize": "rate", "criteria": [cpv.PreserveMean([0.0, 1.0, 3.0])]},
        {"minimize": {"rate": 1.0, "distortion": 2.0}, "criteria": [cpv.TCloseness(1.5)]},
    ][seed % 8]
    if "max_leakage" in bounds:
        least = rde(source, d, budget, minimize="leakage", **options).solve().upper
        bounds["max_leakage"] = least + 0.01
    free = bounds["minimize"] == "distortion"
    return rde(source, d, None if free else budget, most_strategies=most, **options, **bounds)


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_at_length([3, 0, 1, 2, 4, 5, 6, 7], 2))
def test_a_cut_list_encloses_the_optimum_of_the_whole_list(seed, tmp_path):
    """Also under LocalPrivacy and MaximalLeakage: the lower end leaves them out, and is lower."""
    full, cut = cut_problem(seed, 27), cut_problem(seed, 26)
    assert full.alphabet.m == 27
    assert not full.cut
    assert cut.cut
    exact = full.solve(accuracy="high")
    referee.check(exact, status=exact.status)
    for most in (1, 26)[: 1 + seed % 2]:
        problem = cut_problem(seed, most)
        solution = problem.solve(accuracy="high")
        assert solution.lower <= exact.upper + 1e-12
        assert exact.lower <= solution.upper + 1e-12
        near = 1e-2 if problem.program.auxiliaries else 1e-4
        assert solution.upper == pytest.approx(exact.upper, abs=near)
        assert (solution.status == "certified") == (solution.gap <= 1e-9 * problem.program.scale)
        assert solution.certificate.verify()
        referee.check(solution, status=solution.status)
        agree(problem, solution)
        informed = problem.informed.solve(accuracy="high")
        referee.check(informed, status=informed.status)
        assert solution.lower <= informed.upper
        for name, price in solution.prices.items():
            if name in ("budget", "max_leakage"):
                assert price <= 1e-9
        path = solution.certificate.to_json(tmp_path / "proof.json")
        assert main([str(path)]) == 0
        claim = json.loads(path.read_text())["claim"]
        assert claim["status"] == "uncertified"  # of a release alone: nothing from below
        assert claim["lower"] == "-inf"
        assert float(claim["upper"]) == solution.upper
        path = solution.certificate.relaxation.to_json(tmp_path / "bound.json")
        assert main([str(path)]) == 0
        assert json.loads(path.read_text())["claim"]["lower"] == solution.lower
        again = problem.solve(accuracy="high")
        assert again.upper <= solution.upper + 1e-7
        assert solution.certificate.verify()


def test_a_cut_list_that_is_infeasible_proves_nothing(monkeypatch):
    """Its few strategies break the rules, others might not: the answer is no contradiction."""
    rng = np.random.default_rng(28)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3)), cpv.hamming(3)
    options = {"side_information": "decoder", "most_strategies": 1}
    problem = rde(source, d, 0.3, **options)
    none = np.zeros((0, 3), dtype=np.int64)
    with monkeypatch.context() as patch:
        patch.setattr(strategy_generation, "_coupled", lambda *_: none)
        patch.setattr(strategy_generation, "_better", lambda *_: none)
        constant = np.zeros((1, 3), dtype=np.int64)
        few = problem._with(alphabet=problem.alphabet.with_strategies(constant))  # too far off
        assert solve(few.program).certificate.status == "infeasible"
        problem = few
        with pytest.raises(cpv.CertificationError, match="nothing finite is proved") as caught:
            problem.solve()
    assert caught.value.certificate.status == "uncertified"
    assert caught.value.certificate.verify()
    assert caught.value.certificate.upper == math.inf
    assert problem.solve().status in ("certified", "loose")
    least = rde(source, d, minimize="leakage", **options).solve().lower
    with pytest.raises(cpv.InfeasibleError, match="max_leakage") as caught:
        rde(source, d, max_leakage=0.9 * least, **options).solve()
    assert caught.value.certificate.verify()
    quiet = rde(source, d, max_leakage=0.9 * least, **options).solve(certify=False)
    assert quiet.status == "infeasible"
    assert quiet.channel is None
    with pytest.warns(UserWarning, match="max_leakage"):
        rde(source, d, max_leakage=0.9 * least, **options).solve(certify="warn")


@pytest.mark.parametrize("most", rest_at_length([5, 256, 1], 1))
def test_generated_strategies_come_near_the_best(most):
    """Four letters and four z: 256 strategies, of which a few dozen suffice."""
    rng = np.random.default_rng(29)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 4, 4, 0.5)), costs(rng, 4, 4)
    options = {"side_information": "decoder", "most_strategies": most}
    budget = between(lambda **o: rde(source, d, **options, **o), 0.3)
    problem = rde(source, d, budget, minimize={"rate": 1.0, "leakage": 1.0}, **options)
    solution = problem.solve()
    agree(problem, solution)
    referee.check(solution, status=solution.status)
    assert problem.cut == (most < 256)
    truth = rde(
        source, d, budget, minimize={"rate": 1.0, "leakage": 1.0}, side_information="decoder"
    ).solve()
    assert truth.lower - 1e-9 <= solution.upper <= truth.upper + 1e-4
    assert solution.lower <= truth.upper


@pytest.fixture
def slow_search(monkeypatch):
    """A problem whose strategies come one a round, from a few: at least four rounds."""
    none = np.zeros((0, 4), dtype=np.int64)
    monkeypatch.setattr(strategy_generation, "_coupled", lambda *_: none)
    rng = np.random.default_rng(29)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 4, 4, 0.5)), costs(rng, 4, 4)
    options = {"side_information": "decoder", "most_strategies": 1}
    problem = rde(source, d, 0.6, minimize={"rate": 1.0, "leakage": 1.0}, **options)
    with using(StrategyGeneration(added=1)):
        solution = problem.solve()
        assert len(rounds(solution)) >= 4
        yield problem, solution


def rounds(solution) -> list[str]:
    return [line for line in solution.log if " strategies: " in line]


class Stop:
    """Counts solves by their first steps; at a step of the last one it ends, or time is up."""

    def __init__(self, solves: int, step: int, patch: pytest.MonkeyPatch | None) -> None:
        self.solves, self.step, self.patch = solves, step, patch

    def __call__(self, now: Progress) -> None:
        self.solves -= now.step == 0
        if self.solves == 0 and now.step == self.step:
            if self.patch is None:
                raise KeyboardInterrupt
            self.patch.setattr(Watch, "left", 0.0)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:interrupted")
@pytest.mark.parametrize(
    ("solves", "timed"),
    rest_at_length([(1, False), (2, True), (1, True), (2, False), (3, False), (3, True)], 2),
)
def test_after_a_stop_no_round_begins(slow_search, solves, timed, monkeypatch):
    """Solve 1 is the relaxation: a stop in it leaves one round."""
    problem, full = slow_search
    with monkeypatch.context() as patch:
        stop = Stop(solves, 9, patch if timed else None)
        solution = problem.solve(progress=stop, time_limit=100.0, certify=False)
    assert solution.log[-1] == f"stopped: {'time limit of 100 s' if timed else 'interrupted'}"
    assert len(rounds(solution)) == max(solves - 1, 1)
    assert solution.lower <= full.upper
    assert full.lower <= solution.upper
    if solves == 3:  # of a round that was cut short the one before it is the better
        first = float(rounds(solution)[0].split(", ")[-1].split("]")[0])
        assert solution.upper <= first
    assert solution.certificate.verify()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:interrupted")
@pytest.mark.parametrize("timed", rest_at_length([False, True], 1))
def test_a_stop_between_rounds_keeps_what_was_solved(slow_search, timed, monkeypatch):
    problem, _ = slow_search
    honest, asked = strategy_generation._better, []

    def better(*value):
        asked.append(value)
        if len(asked) == 2:
            if not timed:
                raise KeyboardInterrupt
            patch.setattr(Watch, "left", 0.0)
        return honest(*value)

    with monkeypatch.context() as patch:
        patch.setattr(strategy_generation, "_better", better)
        solution = problem.solve(time_limit=100.0)
        assert len(rounds(solution)) == len(asked) == 2
        assert solution.log[-1].startswith("stopped: ")
        assert solution.status == "loose"
        assert solution.certificate.verify()
        if not timed:
            asked.clear()
            with pytest.raises(KeyboardInterrupt):
                problem._outcome({})  # nobody watches: the interrupt is the caller's
