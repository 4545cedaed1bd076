"""Infeasible problems: the conflict by name, with the number that would do."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee
from tests.criteria.definitions import ORDINAL, SOURCE, least
from tests.instances import BINARY, ENDS, HAMMING, SCALAR, THREE, budgeted, contradictory
from tests.lengths import rest_at_length, some_at_length


@pytest.mark.parametrize(
    ("criteria", "conflict"),
    rest_at_length(
        [
            ([cpv.TCloseness(0.01)], ["budget", "t_closeness"]),
            ([cpv.LeakageCap(0.01)], ["budget", "leakage_cap"]),
            ([cpv.LocalPrivacy(0.1)], ["budget", "local_privacy"]),
            ([cpv.LDiversity(2.8)], ["budget", "l_diversity"]),
            ([cpv.RecordEntropy(120)], ["budget", "record_entropy"]),
            ([cpv.DeltaDisclosure(0.1)], ["budget", "delta_disclosure"]),
            ([cpv.MaximalLeakage(0.1)], ["budget", "maximal_leakage"]),
        ],
        1,
    ),
)
def test_conflicts_are_named_with_the_values_that_would_do(criteria, conflict):
    def problem(budget, *criteria):
        return cpv.PrivacyDistortion(SOURCE, ORDINAL, budget=budget, criteria=criteria)

    with pytest.raises(cpv.InfeasibleError) as caught:
        problem(0.03, *criteria).solve()
    error = caught.value
    assert error.conflict == conflict
    assert error.certificate.verify()
    assert "budget 0.03" in str(error)
    assert repr(criteria[0]) in str(error)
    # the budget that would do is the least distortion under the criterion, computed apart
    apart = cpv.MinimumDistortion(SOURCE, ORDINAL, criteria).solve()
    assert error.extremes["budget"] == pytest.approx(apart.value, abs=1e-5)
    # and so is the criterion's number: feasible there, infeasible a little tighter
    if conflict[1] in error.extremes:
        value = error.extremes[conflict[1]]
        criterion = criteria[0]
        tighter = value + 0.01 * (float(criterion.value) - value)
        assert problem(0.03, criterion.at(value)).solve().status == "certified"
        with pytest.raises(cpv.InfeasibleError):
            problem(0.03, criterion.at(tighter)).solve()


def test_rules_without_a_number_conflict_by_name():
    source = cpv.DiscreteSource([[0.4, 0.1], [0.3, 0.2]])
    rules = [cpv.PreserveMarginal(), cpv.ForbiddenMoves(np.eye(2, dtype=bool))]
    with pytest.raises(cpv.InfeasibleError) as caught:  # all must move, and the halves differ
        cpv.MinimumDistortion(source, HAMMING, rules).solve()
    error = caught.value
    assert (error.conflict, error.extremes) == (["preserve_marginal", "forbidden_moves"], {})
    assert str(error) == "PreserveMarginal() and ForbiddenMoves(2 of 4 moves) cannot hold together"
    assert error.certificate.residuals == {}  # there is no gap to explain


@pytest.mark.long
def test_a_bisected_number_is_said_to_be_near_and_would_do():
    rules = [cpv.LocalPrivacy(0.1), cpv.KeepProbability(0.9)]
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    with pytest.raises(cpv.InfeasibleError) as caught:  # one bit kept with 0.9 needs ε = ln 9
        cpv.MinimumDistortion(source, HAMMING, rules).solve()
    epsilon = caught.value.extremes["local_privacy"]
    assert np.log(9) <= epsilon < np.log(9) * 1.002
    assert "local_privacy would have to be at least about 2.199" in str(caught.value)


def test_diversity_beyond_the_prior_is_impossible_alone():
    limit = 2 ** SOURCE.entropy()
    with pytest.raises(cpv.InfeasibleError) as caught:
        least(cpv.LDiversity(limit + 0.01))
    assert caught.value.conflict == ["l_diversity"]
    assert caught.value.extremes["l_diversity"] == pytest.approx(limit, rel=1e-3)


def test_a_budget_below_the_least_distortion():
    problem = cpv.PrivacyDistortion(THREE, ENDS, budget=0.1)
    with pytest.raises(cpv.InfeasibleError) as caught:
        problem.solve()
    error = caught.value
    assert isinstance(error, ValueError)
    assert not isinstance(error, cpv.InputError)
    for piece in ("budget", "0.1", "below", "0.333333", "least distortion"):
        assert piece in str(error)
    certificate = error.certificate
    assert certificate.status == "infeasible"
    assert certificate.verify()
    assert certificate.primal is None
    assert certificate.dual.objective == 0
    assert float(certificate.dual.multipliers["budget"]) > 0
    assert (certificate.lower, certificate.upper) == (math.inf, math.inf)


def numbers_of(message: str) -> list[float]:
    return [float(number) for number in re.findall(r"[0-9][0-9.e+-]*(?<![.,])", message)]


@pytest.mark.parametrize("mass", [1 / 3, 0.3, 0.1, 0.7])
@pytest.mark.parametrize("share", [0.0, 0.5, 1 - 1e-4, 1 - 1e-7, 1 - 1e-9, math.nextafter(1, 0)])
def test_the_message_tells_the_two_numbers_apart(mass, share):
    source = cpv.DiscreteSource([[1 - mass, 0.0], [mass / 2, mass / 2]])
    prices = [[0.0, 0.1], [0.1, 0.7]]  # least in every row: 0 and 0.1
    least = cpv.PrivacyDistortion(source, prices, budget=1.0).least_distortion
    assert least == pytest.approx(0.1 * mass / 2, rel=1e-12)
    budget = min(share * least, math.nextafter(least, 0))
    with pytest.raises(cpv.InfeasibleError) as caught:
        cpv.PrivacyDistortion(source, prices, budget=budget).solve()
    numbers = numbers_of(str(caught.value))
    assert numbers[0] == pytest.approx(budget, rel=1e-5)
    assert numbers[1] == pytest.approx(least, rel=1e-5)
    assert numbers[0] < numbers[1]  # and the number that was said is a remedy
    at_least = max(numbers[1], least)
    assert cpv.PrivacyDistortion(source, prices, budget=at_least).solve().status == "certified"
    assert caught.value.certificate.verify()


def test_the_least_distortion_of_pairs():
    prices = np.full((2, 2, 2), 0.5)
    prices[1, 1] = 0.75  # of mass 0.4: 0.6 · 0.5 + 0.4 · 0.75 = 0.6
    problem = cpv.PrivacyDistortion(BINARY, prices, budget=0.5, encoder="wx")
    with pytest.raises(cpv.InfeasibleError, match=r"budget 0\.5 .*0\.6.* least distortion"):
        problem.solve()


@pytest.mark.parametrize("units", ["bits", "nats"])
def test_a_budget_and_a_cap_contradict_each_other(units):
    cap = 0.125 if units == "bits" else 0.08
    problem = budgeted(criteria=[cpv.LeakageCap(cap)], units=units)
    with pytest.raises(cpv.InfeasibleError) as caught:
        problem.solve()
    for piece in ("budget 0.1", f"LeakageCap({cap})", "together", "at least"):
        assert piece in str(caught.value)
    assert caught.value.conflict == ["budget", "leakage_cap"]
    unit = 1.0 if units == "bits" else math.log(2)
    least = (1 + 0.26 * math.log2(0.26) + 0.74 * math.log2(0.74)) * unit  # 1 − h(0.26)
    assert caught.value.extremes["leakage_cap"] == pytest.approx(least, abs=1e-6)
    at = caught.value.extremes["budget"]  # there the cap is just met
    eased = cpv.PrivacyDistortion(BINARY, HAMMING, budget=at, units=units).solve(accuracy="high")
    assert eased.value == pytest.approx(cap, abs=2e-6)
    certificate = caught.value.certificate
    assert certificate.status == "infeasible"
    assert certificate.verify()
    assert float(certificate.dual.multipliers["budget"]) > 0
    assert float(certificate.dual.multipliers["leakage_cap"]) > 0


def test_the_cap_that_contradicts_is_the_one_named():
    problem = budgeted(criteria=[cpv.LeakageCap(0.5), cpv.LeakageCap(0.125)])
    with pytest.raises(cpv.InfeasibleError) as caught:
        problem.solve()
    assert "LeakageCap(0.125)" in str(caught.value)
    assert "LeakageCap(0.5)" not in str(caught.value)
    assert caught.value.conflict == ["budget", "leakage_cap[2]"]
    assert caught.value.certificate.verify()


def test_the_same_numbers_are_feasible_in_the_other_unit():
    # 0.125 nats are 0.180 bits, above the 0.173 bits that a budget of 0.1 leaves
    referee.check(contradictory(units="nats").solve())


def test_a_false_contradiction_does_not_verify():
    with pytest.raises(cpv.InfeasibleError) as caught:
        contradictory().solve()
    certificate = caught.value.certificate
    feasible = budgeted(criteria=[cpv.LeakageCap(0.9)]).program
    forged = certificate._with(program=feasible)
    with pytest.raises(ValueError, match="not verified"):
        forged.verify()


@pytest.mark.parametrize("budget", some_at_length([0.1, 0.12, 0.13, 0.17], 2))
def test_what_would_do_is_not_rounded_to_what_would_not(budget):
    problem = cpv.GaussianEquivocation(SCALAR, budget, minimize="leakage", max_rate=0.1)
    with pytest.raises(cpv.InfeasibleError) as caught:
        problem.solve()
    sufficient = re.findall(r"(\w+) would have to be at least about ([\d.]+)", str(caught.value))
    assert sufficient  # rounded up, so that "at least" alone would be false of the digits
    for name, number in sufficient:
        assert caught.value.extremes[name] < float(number)
        assert problem.at(**{name: float(number)}).solve().status == "certified"


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (cpv.PrivacyDistortion(THREE, ENDS, budget=0.1), r"budget 0\.1 .*0\.333333"),
        (contradictory(), r"budget.*LeakageCap.*cannot hold together"),
        (
            cpv.GaussianEquivocation(SCALAR, 0.1, minimize="leakage", max_rate=0.1),
            "max_rate would have to be at least",
        ),
    ],
    ids=["budget", "cap", "Gaussian"],
)
def test_infeasible_as_a_warning(problem, text):
    with pytest.raises(cpv.InfeasibleError, match=text):
        problem.solve()
    with pytest.warns(UserWarning, match=text) as caught:
        warned = problem.solve(certify="warn")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unasked = problem.solve(certify=False)
    for solution in (warned, unasked):
        assert solution.status == "infeasible"
        assert solution.release is None
        assert getattr(solution, "error_covariance", None) is None
        assert (solution.duals, solution.prices, solution.terms) == ({}, {}, {})
        assert solution.value == solution.lower == math.inf
        assert solution.certificate.verify()
        assert "infeasible" in repr(solution)
        assert "infeasible" in str(solution)
