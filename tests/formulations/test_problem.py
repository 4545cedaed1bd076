"""A problem stated again at other numbers."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from tests.frontiers.instances import D5, counted


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
