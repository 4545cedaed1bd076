"""A statement cannot drift: what was proved of a problem stays true of it."""

from __future__ import annotations

import copy
import pickle
import typing
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import joblib
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frozen import Frozen, FrozenDict, FrozenList, frozen
from cvxprivacy.results.solution import GaussianSolution, Solution
from cvxprivacy.solvers.driver import Outcome

LAW = [[0.4, 0.1], [0.1, 0.4]]
SOURCE = cpv.DiscreteSource(LAW)
GAUSSIAN = cpv.GaussianSource.scalar(0.95)


def discrete(**changes: Any) -> cpv.PrivacyDistortion:
    given: dict[str, Any] = {"budget": 0.3, "criteria": [cpv.TCloseness(0.05)], **changes}
    return cpv.PrivacyDistortion(SOURCE, cpv.hamming(2), **given)


MADE: dict[str, Callable[[], Any]] = {
    "privacy-distortion": discrete,
    "minimum distortion": lambda: cpv.MinimumDistortion(
        SOURCE, cpv.hamming(2), [cpv.LocalPrivacy(1.0), cpv.KeepProbability(0.6)]
    ),
    "equivocation": lambda: cpv.RateDistortionEquivocation(
        SOURCE, cpv.hamming(2), 0.2, minimize={"rate": 1, "leakage": 2}
    ),
    "side information": lambda: cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(np.full((2, 2, 2), 0.125)), cpv.hamming(2), 0.2,
        side_information="decoder",
    ),
    "Gaussian bound": lambda: cpv.QuadraticGaussian(GAUSSIAN, 0.5),
    "Gaussian region": lambda: cpv.GaussianEquivocation(GAUSSIAN, 0.5, minimize="leakage"),
    "reverse water-filling": lambda: cpv.ReverseWaterFilling([1.0, 2.0], 1.5),
    "Hamming of counts": lambda: cpv.HammingWaterFilling.from_counts([4, 3, 2, 1], 0.2),
    "Hamming": lambda: cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], 0.2),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_nothing_can_be_assigned(name: str) -> None:
    problem = MADE[name]()
    solution = problem.solve()
    for value in (problem, solution, solution.certificate, solution.release):
        for attribute in (*vars(value), "budget", "criteria", "mine"):
            with pytest.raises(AttributeError):
                setattr(value, attribute, 1)
            with pytest.raises(AttributeError):
                delattr(value, attribute)
    with pytest.raises(AttributeError, match=r"problem\.at\(budget=…\)"):
        problem.budget = 0.1
    for mapping in (solution.terms, solution.prices, solution.duals):
        with pytest.raises(TypeError, match="cannot be written to"):
            mapping["mine"] = 1.0
    for array in (value for value in solution.duals.values() if isinstance(value, np.ndarray)):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_sources_distortions_and_criteria_cannot_change() -> None:
    measure = cpv.hamming(2)
    for value in (SOURCE, GAUSSIAN, measure, cpv.TCloseness(0.1), cpv.KeepProbability([0.1, 0.2])):
        for attribute in (*vars(value), "mine"):
            with pytest.raises(AttributeError, match="cannot change"):
                setattr(value, attribute, 1)
        for kept in vars(value).values():
            if isinstance(kept, np.ndarray):
                assert not kept.flags.writeable
            assert type(kept) not in (dict, list), kept
    channel = discrete().solve().channel
    assert channel is not None
    for array in (channel.matrix, channel.p_input, channel.arbitrary):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError, match="cannot be written to"):
        channel.outputs.append(1)


def test_what_was_typed_may_change_afterwards() -> None:
    """A problem keeps copies: neither its program nor ``at`` sees what becomes of the originals."""
    law, cost, floors = np.array(LAW), 1.0 - np.eye(2), np.array([0.5, 0.5])
    criteria, budgets = [cpv.KeepProbability(floors)], {"distortion": 1.0}
    source = cpv.DiscreteSource(law)
    problem = cpv.RateDistortionEquivocation(source, cost, 0.2, minimize=budgets, criteria=criteria)
    before = problem.program.to_dict()
    law[:], cost[:], floors[:] = 0.25, 7.0, 0.9
    criteria.append(cpv.TCloseness(0.0))
    budgets["distortion"] = 5.0
    assert problem.program.to_dict() == problem.at().program.to_dict() == before
    assert problem.at(budget=0.3).program.constraints["budget"].bound == 0.3


def test_a_gaussian_problem_does_not_drift() -> None:
    """Once: budget .5, solve, budget = .1, solve: "≤ 0.1 … optimum 0.300056"; truth 0.83632."""
    problem = cpv.GaussianEquivocation(GAUSSIAN, 0.5, minimize="leakage", units="nats")
    assert problem.solve().value == pytest.approx(0.300056, abs=1e-6)
    with pytest.raises(AttributeError):
        problem.budget = 0.1  # type: ignore[misc]
    tighter = problem.at(budget=0.1).solve()
    assert tighter.value == pytest.approx(0.83632, abs=1e-5)
    assert "≤ 0.1" in str(tighter)
    assert "≤ 0.5" in str(problem.solve())


@pytest.mark.parametrize("name", [name for name in MADE if name != "minimum distortion"])
def test_what_is_printed_is_the_program_that_was_proved(name: str) -> None:
    problem = MADE[name]()
    other = problem.at(budget=0.35)
    proved = other.solve()
    printed = problem._solution(Outcome(proved.certificate, []))
    assert str(printed).splitlines()[1] == str(proved).splitlines()[1]
    assert str(printed).splitlines()[1] != str(problem.solve()).splitlines()[1]


def test_printed_criteria_are_those_that_were_proved() -> None:
    def made(b: float) -> cpv.MinimumDistortion:
        return cpv.MinimumDistortion(SOURCE, cpv.hamming(2), [cpv.LeakageCap(b)])

    proved = made(0.3).solve()
    printed = str(made(0.1)._solution(Outcome(proved.certificate, [])))
    assert "LeakageCap(0.3)" in printed
    assert "LeakageCap(0.1)" not in printed


def test_a_parameter_of_a_constraint_is_read_once() -> None:
    problem, most = discrete(criteria=[]), cp.Parameter(value=0.05)
    ruled = discrete(criteria=cpv.Linear.from_cvxpy(problem.variables["Q"][0, 1] <= most, problem))
    before = ruled.solve()
    most.value = 0.0
    assert ruled.solve().upper == ruled.at(budget=0.3).solve().upper == before.upper
    assert before.lower > discrete(criteria=[]).solve().upper


def test_solve_says_what_it_returns() -> None:
    for kind, answer in (
        (cpv.PrivacyDistortion, Solution),
        (cpv.MinimumDistortion, Solution),
        (cpv.RateDistortionEquivocation, Solution),
        (cpv.HammingWaterFilling, Solution),
        (cpv.QuadraticGaussian, GaussianSolution),
        (cpv.GaussianEquivocation, GaussianSolution),
        (cpv.ReverseWaterFilling, GaussianSolution),
        (cpv.BoxWaterFilling, GaussianSolution),
    ):
        bases = [base for each in kind.__mro__ for base in getattr(each, "__orig_bases__", ())]
        stated = {base.__args__ for base in bases if typing.get_origin(base) is Problem}
        assert stated == {(answer,)}
    answers = typing.get_type_hints(Problem.solve, localns=vars(typing))["return"]
    assert answers.__bound__ is Solution


def test_moving_parameters_moves_no_solve() -> None:
    """Once a moved cp.Parameter made the next solve of 8 × 64 loose, after 23 seconds."""
    rng = np.random.default_rng(5)
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(32)).reshape(4, 8))
    problem = cpv.PrivacyDistortion(source, rng.random((8, 12)), budget=0.4)
    before = problem.solve()
    for parameter in problem.problem.parameters():
        parameter.value = parameter.value * 0.01
    problem.problem.solve(solver="CLARABEL")
    after = problem.solve()
    assert (after.lower, after.upper) == (before.lower, before.upper)


def test_the_constraints_that_are_shown_cannot_be_added_to() -> None:
    problem = discrete()
    with pytest.raises(TypeError, match="with_constraint"):
        problem.constraints["mine"] = problem.variables["Q"][0, 1] <= 0.01
    with pytest.raises(TypeError, match="cannot be written to"):
        problem.variables["mine"] = 1
    with pytest.raises(TypeError, match="cannot be written to"):
        problem.program.constraints["budget"] = problem.program.constraints["t_closeness"]
    with pytest.raises(ValueError, match="read-only"):
        problem.program.law[0, 0] = 1.0


@pytest.mark.parametrize("name", MADE)
def test_problems_and_solutions_are_copied_and_sent(name: str) -> None:
    problem = MADE[name]()
    first = problem.solve()
    problem.problem  # noqa: B018 - the statement for CVXPY is not sent, but made again
    for twin in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert twin.solve().upper == first.upper
        assert str(twin) == str(problem)
        with pytest.raises(AttributeError):
            twin.budget = 1.0
    for twin in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        assert (twin.lower, twin.upper, str(twin)) == (first.lower, first.upper, str(first))
        assert twin.certificate.verify()
        with pytest.raises(AttributeError):
            twin.prices = {}


def test_problems_are_solved_in_other_processes() -> None:
    problems = [discrete(), MADE["Gaussian bound"](), MADE["minimum distortion"]()]
    here = [problem.solve() for problem in problems]
    calls = (joblib.delayed(type(problem).solve)(problem) for problem in problems)
    there = joblib.Parallel(n_jobs=2)(calls)
    assert [(s.lower, s.upper) for s in there] == [(s.lower, s.upper) for s in here]


def test_containers_that_cannot_be_written_to() -> None:
    kept = frozen({"a": [1, {"b": np.zeros(2)}], "c": (np.ones(1),)})
    assert isinstance(kept, FrozenDict)
    assert isinstance(kept["a"], FrozenList)
    changes: list[Callable[[], Any]] = [
        lambda: kept.update(a=1),
        lambda: kept.pop("a"),
        lambda: kept["a"].append(2),
        lambda: kept["a"].sort(),
        lambda: kept["a"][1].clear(),
        lambda: kept["a"].__setitem__(0, 5),
        lambda: kept.__ior__({"z": 1}),
        lambda: kept["a"].__iadd__([1]),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="cannot be written to"):
            change()
    assert not kept["c"][0].flags.writeable
    assert list(kept["a"].copy()) == kept["a"]
    kept.copy()["d"] = 1
    assert pickle.loads(pickle.dumps(kept))["a"][0] == 1
    assert isinstance(copy.deepcopy(kept), FrozenDict)


def test_attributes_are_set_while_an_object_is_made_by_any_of_its_classes() -> None:
    class Base(Frozen):
        def __init__(self) -> None:
            self.a = 1

    class Derived(Base):
        def __init__(self) -> None:
            super().__init__()
            self.b = self.a + 1

    class Silent(Derived):
        pass

    for kind in (Base, Derived, Silent):
        with pytest.raises(AttributeError, match="make another one"):
            kind().a = 2


def test_what_a_program_is_made_of_cannot_be_reached() -> None:
    law = np.random.default_rng(0).dirichlet(np.ones(8)).reshape(2, 2, 2)
    problem = cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(law), cpv.hamming(2), 0.2, side_information="decoder"
    )
    for array in (
        problem.alphabet.observers[0].atoms,
        problem.program.mass,
        problem.alphabet.z_of,
        problem.alphabet.strategies,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        problem.hidden.clear()
    primal = MADE["Gaussian bound"]().solve().certificate.primal
    with pytest.raises(TypeError, match="cannot be written to"):
        primal.middle[0][0] = 5


def test_criteria_without_numbers_and_those_of_users_cannot_change() -> None:
    class Own(cpv.criteria.Criterion):
        name = "own"

    for criterion in (cpv.PreserveMarginal(), Own()):
        with pytest.raises(AttributeError, match="cannot change"):
            criterion.value = 3
    values = [0.0, 1.0]
    mean = cpv.PreserveMean(values)
    values[0] = 7.0
    assert mean.values.tolist() == [0.0, 1.0]
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([0.0, 1.0])
    mean = cpv.PreserveMean(series)
    series.iloc[0] = 7.0
    assert mean.values.tolist() == [0.0, 1.0]


def test_a_problem_of_counts_is_stated_again() -> None:
    problem = MADE["Hamming of counts"]()
    other = problem.at(budget=0.1)
    assert other.records == problem.records == 10
    assert other.solve().value > problem.solve().value
