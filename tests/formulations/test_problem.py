"""A problem stated again at other numbers."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.formulations.problem import Variables
from tests.frontiers.instances import D5, counted
from tests.refusals import refused


def test_a_problem_is_made_again_at_other_numbers():
    problem = cpv.PrivacyDistortion(
        counted(), D5, budget=0.3, criteria=[cpv.TCloseness(0.1), cpv.LeakageCap(0.2)]
    )
    other = problem.at(budget=0.5, t_closeness=0.3, leakage_cap=0.1)
    assert other.budget == 0.5
    assert [c.value for c in other.criteria] == [0.3, 0.1]
    assert [c.value for c in problem.criteria] == [0.1, 0.2]
    assert problem.at().solve().value == problem.solve().value
    for name in ("nothing", "t_closeness[2]"):
        with pytest.raises(cpv.InputError, match="no number of this name"):
            problem.at(**{name: 0.1})
    generated = cpv.PrivacyDistortion(counted(), D5, budget=0.3, criteria=iter(problem.criteria))
    assert repr(generated.at(budget=0.3)) == repr(problem)
    with pytest.raises(cpv.InputError, match="budget"):
        problem.at(budget=-1.0)
    source = cpv.GaussianSource(np.eye(3) + 0.3, sensitive=[0], key=[1, 2], names=["w", "a", "b"])
    many = cpv.QuadraticGaussian(source, {"a": 0.3, "b": 0.4})
    assert many.at(**{"budget[b]": 0.2}).budget == {"a": 0.3, "b": 0.2}
    curve = cpv.frontier(many, "budget[a]", between=(0.1, None), tol=0.05)
    assert curve.complete


def test_a_variable_that_two_threads_make_at_once_is_one():
    variables, made = Variables(), []

    def slowly():
        made.append(variables.one("Q", object))  # another thread's, before this one is kept
        return object()

    assert variables.one("Q", slowly) is made[0]
    assert variables.one("Q", object) is made[0]


class Both(cpv.Criterion):
    """Leakage at most p and distortion at most d."""

    name = "both"
    p = cpv.Parameter()
    d = cpv.Parameter()

    def constraints(self, release):
        return {"leakage": release.risk <= self.p, "distortion": release.distortion <= self.d}


@pytest.mark.parametrize("added", [False, True])
def test_a_criterion_of_several_numbers_moves_by_the_names_of_its_prices(added):
    problem = cpv.PrivacyDistortion(
        counted(), D5, budget=0.5, criteria=[] if added else [Both(0.2, 0.4)]
    )
    if added:
        problem = problem.with_constraint("both", Both(0.2, 0.4))
    assert problem.solve().prices.keys() == {"budget", "both.p", "both.d"}
    other = problem.at(**{"both.p": 0.1, "both.d": 0.3})
    assert "Both(p=0.1, d=0.3)" in repr(other)
    assert "Both(p=0.2, d=0.4)" in repr(problem)
    assert other.at(**{"both.d": 0.4, "both.p": 0.2}).solve().value == problem.solve().value
    error = refused(lambda: problem.at(both=0.1), "both")
    assert error.remedy == "use both.p or both.d"
    refused(lambda: problem.at(**{"both.q": 0.1}), "both.q")
    refused(lambda: problem.at(**{"both.p": -1}), "p", value=-1)


def stated(formulation):
    """Return a class of problems with a budget that states a formulation."""
    return type(
        "Own", (cpv.ChannelProblem,), {"budget": cpv.Parameter(), "formulation": formulation}
    )


def test_what_one_who_begins_may_write_is_refused_in_words():
    def stated_by(formulation):
        return stated(formulation)(counted(), D5, budget=0.3)

    for wrong in (lambda p: p.risk, lambda p: (p.risk, [p.distortion <= p.budget])):
        refused(lambda wrong=wrong: stated_by(wrong), "formulation", "constraints by name")
    with pytest.raises(NotImplementedError, match="Own states no formulation"):
        stated_by(cpv.ChannelProblem.formulation)
    with pytest.raises(TypeError, match="a product of two quantities"):
        stated_by(lambda p: (p.risk * p.rate, {"budget": p.distortion <= p.budget}))
    for strict in (lambda p: p.distortion < p.budget, lambda p: p.budget > p.distortion):
        with pytest.raises(TypeError, match="strict"):
            stated_by(lambda p, strict=strict: (p.risk, {"budget": strict(p)}))
    least = lambda p: (p.distortion, {"rate": p.rate >= p.budget})  # noqa: E731
    refused(lambda: stated_by(least), "rate", "from above")
    kind = type("Bare", (cpv.ChannelProblem,), {"formulation": lambda p: (p.risk, {})})
    refused(lambda: kind(counted(), D5, budget=0.3), "budget", "cpv.Parameter()")


def test_a_measure_that_no_proof_knows_is_refused():
    kind = type("Mine", (cpv.leakage.TotalVariation,), {"kind": "mine"})
    for state in (
        lambda: cpv.PrivacyDistortion(counted(), D5, budget=0.3, leakage=kind()),
        lambda: cpv.PerLetter(kind(), 0.3),
        lambda: cpv.LeakageCap(0.3, leakage=kind()),
    ):
        refused(state, "leakage", "'mine'", "subclass")
    bare = type("Bare", (cpv.leakage.Leakage,), {})
    refused(lambda: cpv.LeakageCap(0.3, leakage=bare()), "leakage", "'Bare'", "subclass")


@pytest.mark.parametrize(
    ("problem", "numbers"),
    [
        (cpv.PrivacyDistortion(counted(), D5, 0.5, criteria=[Both(0.2, 0.4), cpv.TCloseness(0.1)]),
         "budget or both.p or both.d or t_closeness"),
        (cpv.MinimumDistortion(counted(), D5, [cpv.TCloseness(0.1)]), "t_closeness"),
        (cpv.PrivacyDistortion(counted(), D5, price=0.1), "price"),
        (cpv.RateDistortionEquivocation(counted(), D5, 0.5, max_leakage=0.2),
         "budget or max_leakage"),
        (cpv.HammingWaterFilling([0.5, 0.5], 0.1), "budget"),
        (cpv.BoxWaterFilling([0.5, 1], [1, 1], 0.1), "total"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_misspelt_number_is_told_what_there_is(problem, numbers):
    assert refused(lambda: problem.at(bugdet=0.1), "bugdet").remedy == f"use {numbers}"


class TwoNumbers(cpv.ChannelProblem):
    budget = cpv.Parameter()
    most = cpv.Parameter(optional=True)

    def formulation(self):
        rows = {"budget": self.distortion <= self.budget}
        return self.risk, rows | ({} if self.most is None else {"most": self.rate <= self.most})


def test_numbers_are_passed_by_place_or_by_name():
    by_place = TwoNumbers(counted(), D5, 0.3, 1.5)
    assert (by_place.budget, by_place.most) == (0.3, 1.5)
    assert by_place == TwoNumbers(counted(), D5, most=1.5, budget=0.3)
    assert by_place.at(most=1.2) == TwoNumbers(counted(), D5, 0.3, most=1.2)
    assert TwoNumbers(counted(), D5, 0.3).most is None
    names = list(inspect.signature(TwoNumbers).parameters)
    assert names[:5] == ["source", "distortion", "budget", "most", "encoder"]
    refused(lambda: TwoNumbers(counted(), D5, 0.3, budget=0.3), "budget")
    refused(lambda: TwoNumbers(counted(), D5, 1, 2, 3), "TwoNumbers")
    refused(lambda: TwoNumbers(counted(), D5), "budget")
