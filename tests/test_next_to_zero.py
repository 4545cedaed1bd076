"""Numbers next to 0, problems at other numbers, and errors that are sent: of no room alone."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import cvxprivacy as cpv
from cvxprivacy.certificates import verify
from cvxprivacy.certificates.balls import ceil, floor
from cvxprivacy.programs.expression import Auxiliary
from cvxprivacy.programs.parameter import Scalar
from tests.frontiers.instances import D5, TINY, counted


@pytest.mark.parametrize("criterion", [cpv.MaximalLeakage, cpv.LocalPrivacy])
@pytest.mark.parametrize("number", [TINY, 1e-300, 1e-17, 1e-16])
def test_next_to_no_leakage_is_certified(criterion, number):
    problem = cpv.MinimumDistortion(counted(), cpv.hamming(5), [criterion(number)])
    solution = problem.solve()
    assert solution.status == "certified"
    assert solution.lower <= problem.greatest_distortion <= solution.upper + 1e-15
    assert solution.certificate.verify()


def test_an_exponential_is_enclosed_and_never_below_one():
    for x in (TINY, 1e-300, 1e-17, 1e-16, 1.2e-16, 2e-16, 3e-16, 1e-9, 0.3, 5.0, 690.0):
        bound = Auxiliary.of("ratio", Scalar(x).exp())
        value, radius = Fraction(bound.bound), Fraction(bound.radius)
        assert value - radius >= 1
        true = arb(x).exp()
        assert ceil(true) <= value + radius + Fraction(math.ulp(float(value)))
        assert value - radius <= floor(true) + Fraction(math.ulp(float(value)))
    none = Auxiliary.of("ratio", Scalar(0).exp())
    assert (none.bound, none.radius) == (1.0, 0.0)


@pytest.mark.parametrize("kind", ["ratio", "maximum"])
def test_an_auxiliary_that_is_just_kept_is_told_from_one_that_is_just_broken(kind):
    """In balls of 128 bits 3 · 2²⁰⁰ and 3 · 2²⁰⁰ + 1 are the same."""
    criterion = cpv.LocalPrivacy(1.0) if kind == "ratio" else cpv.MaximalLeakage(1.0)
    source = cpv.DiscreteSource([[0.3, 0.2], [0.1, 0.4]])
    document = cpv.MinimumDistortion(source, cpv.hamming(2), [criterion]).program.to_dict()
    for aux in document["auxiliaries"].values():
        aux["bound"] = [1.5, 0.0] if kind == "ratio" else [1.25, 0.0]
    proof = verify.proof_of(document)
    big = 2**200
    for more, kept in ((0, True), (1, False), (-1, True)):
        # ratios 3 : 2 of either output; Σ max = 5/4 of the whole
        (a, b), (c, d) = (3 * big, 2 * big), (2 * big, 3 * big)
        whole = 5 * big
        if kind == "maximum":
            (a, b), (c, d), whole = (5 * big, 3 * big), (3 * big, 5 * big), 8 * big
        rows = [[a + more, b - more], [c, d]]
        found = proof.upper({"numerators": rows, "denominator": whole})
        assert found.feasible is kept


def test_errors_come_back_whole_from_a_worker():
    for error in (
        cpv.InputError("a", "wrong", "do right", where=(1, 2), value=3),
        cpv.UnknownValueError("a", "wrong", "do right"),
        cpv.InfeasibleError("nothing", None, conflict=["a"], extremes={"a": 1.0}),
    ):
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert vars(back) == vars(error)


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
    with pytest.raises(cpv.InputError, match="budget"):
        problem.at(budget=-1.0)
    source = cpv.GaussianSource(np.eye(3) + 0.3, sensitive=[0], key=[1, 2], names=["w", "a", "b"])
    many = cpv.QuadraticGaussian(source, {"a": 0.3, "b": 0.4})
    assert many.at(**{"budget[b]": 0.2}).budget == {"a": 0.3, "b": 0.2}
    curve = cpv.frontier(many, "budget[a]", between=(0.1, None), tol=0.05)
    assert curve.complete
