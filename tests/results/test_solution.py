"""What a solution says: units, terms, and nothing proved."""

from __future__ import annotations

import copy
import math
import warnings

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy import plotting
from tests.instances import BINARY, HAMMING, budgeted
from tests.refusals import refused


def stopped(certify):
    """Solve a narrow program with one iteration per attempt: no release is found."""
    problem = budgeted(budget=0.2, criteria=[cpv.TCloseness(0.0957)])
    return problem.solve(method="conic", solver_options={"max_iter": 1}, certify=certify)


def test_nothing_finite_is_an_error_with_the_best_bounds():
    with pytest.raises(cpv.CertificationError) as caught:
        stopped(True)
    error = caught.value
    assert not isinstance(error, ValueError)
    assert error.certificate.status == "uncertified"
    assert error.lower == error.certificate.lower
    assert error.upper == error.certificate.upper == math.inf
    assert error.lower <= 0.0957
    assert error.certificate.verify()
    for piece in ("[", "inf]", "bits", "CLARABEL"):
        assert piece in str(error)


def test_a_distortion_is_never_called_bits():
    least = cpv.MinimumDistortion(BINARY, HAMMING, [cpv.LeakageCap(0.1)])
    priced = cpv.PrivacyDistortion(BINARY, HAMMING, price=0.5)  # E d + λ I is in units of d
    for solution in (least.solve(), priced.solve()):
        assert solution.value_units is None
        for text in (repr(solution), repr(solution.certificate)):
            assert text.endswith("] units of distortion)")
            assert "bits" not in text
    several = [cpv.TCloseness(0.0957), cpv.Linear(-np.eye(2), -0.8)]
    with pytest.raises(cpv.CertificationError) as caught:
        cpv.MinimumDistortion(BINARY, HAMMING, several).solve(
            method="conic", solver_options={"max_iter": 1}
        )
    assert "inf] units of distortion; the solver said" in str(caught.value)
    assert "bits" not in str(caught.value)
    by_name = [cpv.Linear(HAMMING.matrix, 0.9, name="budget"), cpv.LeakageCap(0.1)]
    drawn = [cpv.MinimumDistortion(BINARY, HAMMING, by_name).solve()]
    refused(lambda: plotting.tradeoff(drawn), "solutions", "no point", where=0)


@pytest.mark.parametrize("units", ["bits", "nats"])
def test_information_has_its_units(units):
    gaussian = cpv.GaussianSource.scalar(rho=0.9)
    for problem in (
        budgeted(units=units),
        cpv.RateDistortionEquivocation(BINARY, HAMMING, 0.1, units=units),
        cpv.QuadraticGaussian(gaussian, budget=0.3, units=units),
        cpv.GaussianEquivocation(gaussian, 0.3, units=units),
        cpv.HammingWaterFilling([0.5, 0.3, 0.2], 0.1, units=units),
    ):
        solution = problem.solve()
        assert solution.value_units == units
        assert repr(solution).endswith(f"] {units})")
        assert repr(solution.certificate).endswith(f"] {units})")


def test_nothing_finite_as_a_warning():
    with pytest.warns(UserWarning, match="inf"):
        solution = stopped("warn")
    assert solution.status == "uncertified"
    assert solution.channel is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent = stopped(False)
    assert silent.status == "uncertified"


def test_an_unknown_term_lists_what_exists():
    solution = budgeted().solve()
    with pytest.raises(AttributeError) as caught:
        _ = solution.rate
    for piece in ("'rate'", "risk", "distortion"):
        assert piece in str(caught.value)
    assert not hasattr(solution, "leakage")
    assert solution.risk == solution.terms["risk"]
    assert solution.distortion == solution.terms["distortion"]
    assert {"risk", "distortion"} <= set(dir(solution))
    assert copy.copy(solution).risk == solution.risk
