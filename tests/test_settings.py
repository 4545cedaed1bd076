"""Numbers of methods that a user passes: taken, refused, and never a proof of what is false."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates import stored
from cvxprivacy.programs import channel as programs
from cvxprivacy.settings import CovariancePath, InteriorPoint, MirrorDescent, Settings, Stages
from tests.lengths import some_at_length
from tests.solvers.test_bregman import people, problem_of

EVERY = Settings.__subclasses__()
SOURCE = cpv.DiscreteSource.from_counts([[9, 2, 1, 3], [1, 4, 8, 2], [2, 3, 1, 6]])
GAUSSIAN = cpv.GaussianSource(
    [[1.0, 0.5, 0.3], [0.5, 1.0, 0.4], [0.3, 0.4, 1.0]], sensitive=[0], key=[1, 2]
)
LINE = cpv.absolute_error(range(4))
PROBLEMS = {
    "information": cpv.PrivacyDistortion(SOURCE, LINE, budget=0.4),
    "rows": cpv.MinimumDistortion(SOURCE, LINE, [cpv.TCloseness(0.05), cpv.LocalPrivacy(1.5)]),
    "guesses": cpv.PrivacyDistortion(
        SOURCE, LINE, 0.4, leakage=cpv.leakage.GuessingProbability(), criteria=[cpv.LeakageCap(0.3)]
    ),
    "chi": cpv.PrivacyDistortion(SOURCE, LINE, 0.4, leakage=cpv.leakage.ChiSquared()),
    "contradiction": cpv.PrivacyDistortion(SOURCE, LINE, 0.1, criteria=[cpv.LeakageCap(0.001)]),
    "useful": cpv.MostUsefulRelease(SOURCE, [cpv.LocalPrivacy(1.0)]),
    "strategies": cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(np.random.default_rng(3).dirichlet(np.ones(24)).reshape(2, 3, 4)),
        cpv.absolute_error(range(3)),
        0.4,
        side_information="decoder",
        most_strategies=1,
    ),
    "covariance": cpv.GaussianEquivocation(GAUSSIAN, 0.5, max_leakage=0.2),
}


def steps_of(problem, **options):
    steps = []
    problem.solve(method="structured", certify=False, progress=steps.append, **options)
    return len(steps)


def test_a_method_takes_what_it_is_passed():
    problem, gaussian = PROBLEMS["information"], PROBLEMS["covariance"]
    assert steps_of(problem, settings=InteriorPoint(steps=3)) == 3
    both = [InteriorPoint(steps=4), Stages(small_work=1.0)]
    assert steps_of(problem, settings=both) == 4 < steps_of(problem)
    assert problem.solve(settings=Stages(few_entries_beyond=1)).log[0].startswith("first entries")
    assert steps_of(gaussian, settings=CovariancePath(shrink=0.9)) > steps_of(gaussian)


def test_settings_are_values():
    usual = InteriorPoint()
    assert usual == InteriorPoint.current() == replace(InteriorPoint(steps=2), steps=usual.steps)
    with pytest.raises(FrozenInstanceError):
        usual.steps = 2
    with pytest.raises(ZeroDivisionError):
        PROBLEMS["chi"].solve(settings=InteriorPoint(steps=2), progress=lambda _: 1 / 0)
    assert InteriorPoint.current() == usual


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0), ("steps", 2.5), ("steps", "3"), ("boundary", 1.0), ("boundary", 0.0),
        ("boundary", float("nan")), ("score_change", -1.0), ("score_change", float("inf")),
    ],
)  # fmt: skip
def test_what_is_out_of_range_is_refused(name, value):
    with pytest.raises(cpv.InputError, match=name) as caught:
        InteriorPoint(**{name: value})
    assert caught.value.argument == name


@pytest.mark.parametrize("name", ["gain_decrease", "gain_increase"])
@pytest.mark.parametrize("value", [1e-3, 1.0, 1e100])
def test_factors_are_above_one_and_moderate(name, value):
    with pytest.raises(cpv.InputError, match="from 1 to 10") as caught:
        MirrorDescent(**{name: value})
    assert caught.value.argument == name


class Mine(InteriorPoint):
    steps: int = 2


@pytest.mark.parametrize(
    "value", ["steps", {"steps": 3}, 3, [InteriorPoint(), None], Mine(), Settings()]
)
def test_what_are_no_settings_is_refused(value):
    with pytest.raises(cpv.InputError, match=r"cvxprivacy\.settings") as caught:
        PROBLEMS["information"].solve(settings=value)
    assert caught.value.argument == "settings"


# with little room a program is refused
ROOM = ("most_numbers", "most_bytes", "never_refused", "conic_refused_beyond", "letters")


def hostile(rng):
    """Yield settings of all methods, with about half of their numbers far from the usual ones."""
    for method in EVERY:
        drawn = {}
        for field in fields(method):
            ends = (1e-9, 0.5, 1 - 1e-9) if field.default < 1 else (1e-6, 1.0, 1e6)
            choice = (1, 2, 3) if isinstance(field.default, int) else ends
            choice = (
                (1 + 1e-9, 1.01, 10.0)
                if field.name in ("gain_decrease", "gain_increase")
                else choice
            )
            if field.name not in ROOM and rng.random() < 0.5:
                drawn[field.name] = choice[rng.integers(3)]
        yield method(**drawn)


@pytest.mark.parametrize("seed", some_at_length(range(12), 3))
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_numbers_prove_what_is_false(name, seed):
    check(PROBLEMS[name], seed)


@pytest.mark.parametrize("seed", some_at_length(range(12), 1))
def test_no_numbers_of_mirror_descent_prove_what_is_false(seed, monkeypatch):
    for module in (programs, stored):
        monkeypatch.setattr(module, "DENSE", 100)
    check(problem_of(people()), seed)


def check(problem, seed):
    truth = problem.solve(certify=False)
    numbers = list(hostile(np.random.default_rng([63, seed])))
    solution = problem.solve(settings=numbers, certify=False, time_limit=5)
    if truth.status == "infeasible":
        assert solution.status in ("infeasible", "uncertified")
    else:
        assert solution.lower <= truth.upper
        assert truth.lower <= solution.upper
        assert solution.certificate.verify()
