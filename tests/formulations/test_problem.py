"""A problem stated again at other numbers."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
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
