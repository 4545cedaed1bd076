"""A statement cannot drift: what was proved of a problem stays true of it."""

from __future__ import annotations

import contextlib
import copy
import pickle
import typing
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import cvxpy as cp
import joblib
import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frozen import Frozen, FrozenDict, FrozenList, frozen
from cvxprivacy.results.solution import GaussianSolution, Solution
from cvxprivacy.solvers.driver import Outcome
from tests.formulations.gaussian import E, S
from tests.instances import BINARY, CRITERIA, DEPENDENT, MINIMAL, SCALAR, budgeted
from tests.leakage.measures import MEASURES
from tests.lengths import some_at_length


def narrow(**changes: Any) -> cpv.PrivacyDistortion:
    return budgeted(**{"budget": 0.3, "criteria": [cpv.TCloseness(0.05)], **changes})


def test_arrays_of_sources_and_releases_cannot_be_written_to() -> None:
    table = pd.DataFrame({"w": [0.0, 1, 2, 4], "x": [1.0, 0, 3, 3], "z": [2.0, 2, 1, 0]})
    source = S.from_table(table, sensitive="w", key="x", side="z", standardize=True)
    assert np.allclose(source.conditional().scale, source.scale[:2])
    release = E(source, 0.2, side_information="both").solve().release
    problem = cpv.ReverseWaterFilling([[2, 1], [1, 2]], 1)
    for one in (source, source.conditional(), release, problem, problem.source):
        arrays = [value for value in vars(one).values() if isinstance(value, np.ndarray)]
        assert arrays
        assert not any(value.flags.writeable for value in arrays)


def arrays(value: Any, path: str, again: Callable[[], Any], past: set[int]) -> Iterator[Any]:
    """Yield each array that public names lead to: its path, itself, and how it is read again."""
    if isinstance(value, np.ndarray):
        yield path, value, again
    elif isinstance(value, Mapping):
        for key in value:
            yield from arrays(value[key], f"{path}[{key!r}]", lambda k=key: again()[k], past)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from arrays(part, f"{path}[{i}]", lambda i=i: again()[i], past)
    elif type(value).__module__.startswith("cvxprivacy") and id(value) not in past:
        past.add(id(value))
        kind = type(value)
        computed = {
            name for name in dir(kind)
            if isinstance(getattr(kind, name), (property, cached_property)) and name != "problem"
        }  # fmt: skip
        for name in sorted(computed | vars(value).keys()):
            if not name.startswith("_") and path.count(".") < 5:
                read = lambda n=name: getattr(value, n)  # noqa: E731
                try:
                    part = read()
                except (AssertionError, AttributeError, TypeError, ValueError):
                    continue  # it has none
                yield from arrays(part, f"{path}.{name}", read, past)


def made_writable(array: np.ndarray) -> bool:
    """Try it with an array and with all that it is a part of."""
    part: Any = array
    for _ in range(2):  # what a base allows, its parts allow then
        part = array
        while isinstance(part, np.ndarray):
            with contextlib.suppress(ValueError):
                part.flags.writeable = True
            part = part.base
    return array.flags.writeable


def public_values() -> dict[str, Callable[[], Any]]:
    made: dict[str, Callable[[], Any]] = {
        f"source {name}": lambda s=s: s for name, s in (("X", BINARY), ("Gaussian", DEPENDENT))
    }
    made |= {f"criterion {name}": lambda c=c: c for name, c in CRITERIA.items()}
    made |= {f"measure {name}": lambda m=m: m for name, (m, _) in MEASURES.items()}
    made |= {f"problem {name}": make for name, make in MINIMAL.items()}
    made |= {f"program {name}": lambda make=make: make().program for name, make in MINIMAL.items()}
    made |= {f"solution {name}": lambda make=make: make().solve() for name, make in MINIMAL.items()}
    made["estimate"] = lambda: narrow().solve().channel.estimate([2, 1])
    made["frontier"] = lambda: cpv.frontier(narrow(criteria=[]), tol=0.05)
    return made


@pytest.mark.parametrize("name", some_at_length(public_values(), 24))
def test_no_array_of_a_value_can_be_made_writable(name: str) -> None:
    check_arrays(public_values()[name](), name)


def check_arrays(value: Any, name: str) -> None:
    """What is written into a table that is computed anew by each reading changes no value."""
    for copied in (value, pickle.loads(pickle.dumps(value))):  # deepcopy does what pickle does
        for path, array, again in arrays(copied, name, lambda v=copied: v, set()):
            if made_writable(array) and array.size:
                before = array.copy()
                array[...] = np.where(array == array.flat[0], array.dtype.type(0), array.flat[0])
                np.testing.assert_array_equal(again(), before, path)


TYPED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "source": (cpv.DiscreteSource, [[0.5, 0.25], [0.0, 0.25]]),
    "counts": (cpv.DiscreteSource.from_counts, [[2, 1], [0, 1]]),
    "labels": (lambda x: cpv.DiscreteSource([[0.5, 0.25], [0.0, 0.25]], x=x), [3, 4]),
    "identical": (cpv.DiscreteSource.identical, [0.5, 0.5]),
    "Gaussian": (lambda g: cpv.GaussianSource(g, sensitive=[0], key=[1]), [[2, 1], [1, 2]]),
    "distortion": (cpv.Distortion, [[0, 1], [2, 0]]),
    "squared error": (cpv.squared_error, [0, 1, 3]),
    "channel": (
        lambda q: cpv.Channel(q, inputs="ab", outputs="ab", p_input=q[0]), [[0.5, 0.5], [0, 1]]
    ),
    "earth mover": (
        lambda g: cpv.leakage.EarthMover(g).fitted("ab", [0, 1]), [[0, 1], [2, 0]]
    ),
    "gain": (cpv.leakage.Gain, [[1, 0], [0, 2]]),
    "t-closeness": (lambda g: cpv.TCloseness(0.1, distance=g), [[0, 1], [2, 0]]),
    "floors": (cpv.KeepProbability, [0.5, 0.25]),
    "moves": (lambda m: cpv.ForbiddenMoves(m == 1), [[0, 1], [0, 0]]),
    "mean": (cpv.PreserveMean, [0, 1]),
    "linear": (lambda a: cpv.Linear(a, 1), [[0, 1], [2, 0]]),
    "variances": (lambda v: cpv.ReverseWaterFilling(v, 1), [1, 2]),
    "boxes": (lambda g: cpv.BoxWaterFilling(g, [1, 2], 1), [1, 2]),
    "Hamming": (lambda p: cpv.HammingWaterFilling(p, 0.2), [0.5, 0.25, 0.25]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["floats", "fractions", "not writable"])
@pytest.mark.parametrize("name", TYPED)
def test_no_value_keeps_an_array_that_somebody_else_can_write_to(name: str, kind: str) -> None:
    make, numbers = TYPED[name]
    typed = np.array(numbers, float)
    if kind == "fractions":
        typed = np.array([Fraction(x) for x in typed.flat], object).reshape(typed.shape)
    handed = typed[...]
    if kind == "not writable":
        handed.flags.writeable = False
    value = make(handed)
    kept = [array for _, array, _ in arrays(value, name, lambda: value, set())]
    kept += [array for array in vars(value).values() if isinstance(array, np.ndarray)]
    assert not any(np.shares_memory(array, typed) for array in kept)
    assert not any(made_writable(array) for array in vars(value).values()
                   if isinstance(array, np.ndarray))  # fmt: skip


@pytest.mark.parametrize("name", some_at_length(MINIMAL, 4))
def test_nothing_can_be_assigned(name: str) -> None:
    problem = MINIMAL[name]()
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
    for value in (BINARY, SCALAR, measure, cpv.TCloseness(0.1), cpv.KeepProbability([0.1, 0.2])):
        for attribute in (*vars(value), "mine"):
            with pytest.raises(AttributeError, match="cannot change"):
                setattr(value, attribute, 1)
        for kept in vars(value).values():
            if isinstance(kept, np.ndarray):
                assert not kept.flags.writeable
            assert type(kept) not in (dict, list), kept
    channel = narrow().solve().channel
    assert channel is not None
    for array in (channel.matrix, channel.p_input, channel.arbitrary):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError, match="cannot be written to"):
        channel.outputs.append(1)


def test_what_was_typed_may_change_afterwards() -> None:
    """A problem keeps copies: neither its program nor ``at`` sees what becomes of the originals."""
    law, cost, floors = np.array(BINARY.law, float), 1.0 - np.eye(2), np.array([0.5, 0.5])
    criteria, budgets = [cpv.KeepProbability(floors)], {"distortion": 1.0}
    source = cpv.DiscreteSource(law)
    problem = cpv.RateDistortionEquivocation(source, cost, 0.2, minimize=budgets, criteria=criteria)
    before = problem.program.to_dict()
    law[:], cost[:], floors[:] = 0.25, 7.0, 0.9
    criteria.append(cpv.TCloseness(0.0))
    budgets["distortion"] = 5.0
    assert problem.program.to_dict() == problem.at().program.to_dict() == before
    assert problem.at(budget=0.3).program.constraints["budget"].bound == 0.3


@pytest.mark.parametrize(
    "name", some_at_length([name for name in MINIMAL if name != "minimum distortion"], 3)
)
def test_what_is_printed_is_the_program_that_was_proved(name: str) -> None:
    problem = MINIMAL[name]()
    other = problem.at(budget=0.35)
    proved = other.solve()
    printed = problem._solution(Outcome(proved.certificate, []))
    assert str(printed).splitlines()[1] == str(proved).splitlines()[1]
    assert str(printed).splitlines()[1] != str(problem.solve()).splitlines()[1]


def test_printed_criteria_are_those_that_were_proved() -> None:
    def made(b: float) -> cpv.MinimumDistortion:
        return cpv.MinimumDistortion(BINARY, cpv.hamming(2), [cpv.LeakageCap(b)])

    proved = made(0.3).solve()
    printed = str(made(0.1)._solution(Outcome(proved.certificate, [])))
    assert "LeakageCap(0.3)" in printed
    assert "LeakageCap(0.1)" not in printed


def test_a_parameter_of_a_constraint_is_read_once() -> None:
    problem, most = narrow(criteria=[]), cp.Parameter(value=0.05)
    ruled = narrow(criteria=cpv.Linear.from_cvxpy(problem.variables["Q"][0, 1] <= most, problem))
    before = ruled.solve()
    most.value = 0.0
    assert ruled.solve().upper == ruled.at(budget=0.3).solve().upper == before.upper
    assert before.lower > narrow(criteria=[]).solve().upper


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


def test_the_constraints_that_are_shown_cannot_be_added_to() -> None:
    problem = narrow()
    with pytest.raises(TypeError, match="with_constraint"):
        problem.constraints["mine"] = problem.variables["Q"][0, 1] <= 0.01
    with pytest.raises(TypeError, match="cannot be written to"):
        problem.variables["mine"] = 1
    with pytest.raises(TypeError, match="cannot be written to"):
        problem.program.constraints["budget"] = problem.program.constraints["t_closeness"]
    with pytest.raises(ValueError, match="read-only"):
        problem.program.law[0, 0] = 1.0


@pytest.mark.long
@pytest.mark.parametrize("name", MINIMAL)
def test_problems_and_solutions_are_copied_and_sent(name: str) -> None:
    problem = MINIMAL[name]()
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


@pytest.mark.long
def test_problems_are_solved_in_other_processes() -> None:
    problems = [narrow(), MINIMAL["Gaussian bound"](), MINIMAL["minimum distortion"]()]
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
    primal = MINIMAL["Gaussian bound"]().solve().certificate.primal
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
    problem = MINIMAL["Hamming of counts"]()
    other = problem.at(budget=0.1)
    assert other.records == problem.records == 10
    assert other.solve().value > problem.solve().value


# ---- equal values ------------------------------------------------------------------------

TABLE = pd.DataFrame({"w": ["a", "b", "a", "b"], "x": [1, 2, 2, 1], "z": [1, 1, 2, 2]})
STATED: dict[str, Callable[..., Any]] = {
    "pmf": lambda p=0.1: cpv.DiscreteSource([[0.5 - p, p], [p, 0.5 - p]]),
    "table": lambda key="x": cpv.DiscreteSource.from_table(TABLE, sensitive="w", key=key),
    "moments": lambda c=0.5: cpv.GaussianSource([[1, c], [c, 1]], sensitive=[0], key=[1]),
    "distortion": lambda x=2: cpv.squared_error([0, 1, x]),
    "criterion": lambda t=0.1: cpv.TCloseness(t),
    "measure": lambda gamma=2: cpv.leakage.HockeyStick(gamma),
    "budget": lambda d=0.2: cpv.PrivacyDistortion(BINARY, cpv.hamming(2), d),
    "criteria": lambda t=0.4: budgeted(criteria=[cpv.TCloseness(t), cpv.LeakageCap(1)]),
    "another measure": lambda gamma=2: budgeted(leakage=cpv.leakage.HockeyStick(gamma)),
    "laws": lambda p=0.1: budgeted(laws=[STATED["pmf"](p)]),
    "added": lambda b=0.7: budgeted().with_constraint("rate", budgeted().rate <= b),
    "Gaussian": lambda d=0.2: cpv.QuadraticGaussian(STATED["moments"](), d),
    "filling": lambda d=0.3: cpv.ReverseWaterFilling([1, 2], d),
    "categorical": lambda d=0.3: cpv.HammingWaterFilling([0.5, 0.3, 0.2], d),
    "channel": lambda k=0.7: cpv.Channel(
        [[k, 1 - k], [1 - k, k]], inputs=["a", "b"], outputs=["a", "b"]
    ),
}
OTHERS = {"pmf": 0.2, "table": "z", "moments": 0.6, "distortion": 3, "measure": 3, "laws": 0.2,
          "another measure": 3, "added": 0.8, "channel": 0.6}  # fmt: skip


@pytest.mark.parametrize("name", STATED)
def test_values_are_equal_where_what_they_were_made_of_is(name):
    one, again, other = STATED[name](), STATED[name](), STATED[name](OTHERS.get(name, 0.15))
    if isinstance(one, Problem):
        one.solve()  # what was computed does not count
        _ = one.latex
    assert one == again
    assert hash(one) == hash(again)
    assert one == pickle.loads(pickle.dumps(one)) == copy.deepcopy(one)
    assert one != other
    assert other != one
    assert len({one, again, other}) == 2
    assert one != "another kind"


def test_by_place_by_name_or_moved_there_it_is_the_same_problem():
    by_place = cpv.PrivacyDistortion(BINARY, cpv.hamming(2), 0.2)
    assert by_place == cpv.PrivacyDistortion(BINARY, cpv.hamming(2), budget=0.2, units="bits")
    assert by_place == by_place.at(budget=0.3).at(budget=0.2)
    assert by_place != cpv.PrivacyDistortion(BINARY, cpv.hamming(2), 0.2, units="nats")
    assert by_place != cpv.MinimumDistortion(BINARY, cpv.hamming(2), [cpv.LeakageCap(0.2)])
    typed = cpv.PrivacyDistortion(BINARY, cpv.hamming(2), Fraction(1, 5))
    assert by_place != typed  # the float 0.2 is another number
