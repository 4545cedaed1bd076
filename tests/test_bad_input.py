"""What is refused, by which error, and whether the message helps."""

from __future__ import annotations

import copy
import math
import re
import warnings

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.programs.expression import Expression
from tests import referee

SOURCE = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
HAMMING = cpv.hamming(2)
# x is uniform on {0, 1, 2} and 1 has no near output: the least distortion is 1/3
THREE = cpv.DiscreteSource([[1 / 3, 1 / 6, 0.0], [0.0, 1 / 6, 1 / 3]])
ENDS = cpv.absolute_error([0, 1, 2], [0, 2])


def budgeted(**options) -> cpv.PrivacyDistortion:
    return cpv.PrivacyDistortion(SOURCE, HAMMING, **{"budget": 0.1, **options})


def contradictory(**options) -> cpv.PrivacyDistortion:
    """Ask for less leakage than a budget of 0.1 leaves: 1 − h(0.26) = 0.173 bits."""
    return budgeted(criteria=[cpv.LeakageCap(0.125)], **options)


def refused(call, argument: str, *pieces: str, where=None) -> None:
    """Assert that ``call`` raises an InputError about ``argument`` that says every piece."""
    with pytest.raises(cpv.InputError) as caught:
        call()
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.argument == argument, str(error)
    assert str(error).startswith(argument)
    assert error.where == where, str(error)
    for piece in (*pieces, error.remedy):
        assert piece in str(error)
    assert "np." not in str(error)
    assert len(error.remedy) > 10


# ---- numbers -----------------------------------------------------------------------------

NO_NUMBER = [-0.1, math.nan, math.inf, -math.inf, "a lot", [0.1], None, 1j]


@pytest.mark.parametrize("value", [v for v in NO_NUMBER if v is not None])
@pytest.mark.parametrize("argument", ["budget", "price"])
def test_a_budget_or_price_is_a_nonnegative_number(argument, value):
    refused(
        lambda: cpv.PrivacyDistortion(SOURCE, HAMMING, **{argument: value}), argument, repr(value)
    )


def test_a_budget_may_be_zero_and_a_price_may_not():
    assert cpv.PrivacyDistortion(SOURCE, HAMMING, budget=0).budget == 0
    refused(lambda: cpv.PrivacyDistortion(SOURCE, HAMMING, price=0), "price", "> 0")


@pytest.mark.parametrize("numbers", [{}, {"budget": 0.1, "price": 2.0}])
def test_exactly_one_of_budget_and_price(numbers):
    refused(
        lambda: cpv.PrivacyDistortion(SOURCE, HAMMING, **numbers), "budget", "price", "exactly one"
    )


@pytest.mark.parametrize("value", NO_NUMBER)
def test_a_leakage_cap_is_a_nonnegative_number(value):
    refused(lambda: cpv.LeakageCap(value), "b", repr(value))


def test_numpy_numbers_are_numbers():
    problem = budgeted(budget=np.float32(0.25), criteria=[cpv.LeakageCap(np.int64(1))])
    assert problem.budget == 0.25
    assert problem.criteria[0].b == 1.0


# ---- choices -----------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["xw", "w", "X", "", None, ["x"]])
def test_an_unknown_encoder(encoder):
    refused(lambda: budgeted(encoder=encoder), "encoder", repr(encoder), '"x" or "wx"')


@pytest.mark.parametrize("units", ["bit", "BITS", "", None, 2, ["bits"]])
def test_unknown_units(units):
    for call in (
        lambda: budgeted(units=units),
        lambda: cpv.MinimumDistortion(SOURCE, HAMMING, [cpv.LeakageCap(0.1)], units=units),
        lambda: SOURCE.entropy(units=units),
        lambda: SOURCE.information(units=units),
    ):
        refused(call, "units", repr(units), '"bits" or "nats"')


@pytest.mark.parametrize("method", ["newton", "CONIC", "", None])
def test_an_unknown_method(method):
    refused(lambda: budgeted().solve(method=method), "method", repr(method), "auto", "conic")


@pytest.mark.parametrize("accuracy", ["low", "HIGH", 1e-9, None])
def test_an_unknown_accuracy(accuracy):
    refused(
        lambda: budgeted().solve(accuracy=accuracy), "accuracy", repr(accuracy), "default", "high"
    )


@pytest.mark.parametrize("solver", ["NO_SUCH_SOLVER", None])
@pytest.mark.parametrize("budget", [0.1, 0.0, 0.5])
def test_an_unknown_solver_even_where_none_is_needed(solver, budget):
    refused(
        lambda: budgeted(budget=budget).solve(solver=solver), "solver", repr(solver), "CLARABEL"
    )


def test_a_solver_without_exponential_cones():
    refused(lambda: budgeted().solve(solver="OSQP"), "solver", "OSQP", "CLARABEL")


@pytest.mark.parametrize("certify", ["yes", "Warn", None, 2])
def test_an_unknown_certify(certify):
    refused(lambda: budgeted().solve(certify=certify), "certify", repr(certify), "True", '"warn"')


@pytest.mark.parametrize("certify", [1, np.True_])
def test_what_equals_true_is_not_silently_false(certify):
    with pytest.raises((cpv.InputError, cpv.InfeasibleError)):
        cpv.PrivacyDistortion(THREE, ENDS, budget=0.1).solve(certify=certify)


@pytest.mark.parametrize("options", [3, "max_iter", ["max_iter"]])
def test_solver_options_are_a_mapping(options):
    refused(lambda: budgeted().solve(solver_options=options), "solver_options", repr(options))


def test_misspelled_arguments_are_python_errors():
    with pytest.raises(TypeError, match="buget"):
        cpv.PrivacyDistortion(SOURCE, HAMMING, buget=0.1)
    with pytest.raises(TypeError, match="acuracy"):
        budgeted().solve(acuracy="high")


# ---- sources, distortions, criteria ------------------------------------------------------


@pytest.mark.parametrize("source", [[[0.4, 0.1], [0.1, 0.4]], np.eye(2) / 2, None, "source"])
def test_a_source_is_made_first(source):
    for call in (
        lambda: cpv.PrivacyDistortion(source, HAMMING, budget=0.1),
        lambda: cpv.MinimumDistortion(source, HAMMING, [cpv.LeakageCap(0.1)]),
    ):
        refused(call, "source", type(source).__name__, "DiscreteSource")


@pytest.mark.parametrize(
    ("distortion", "shape"),
    [
        (cpv.hamming(3), "(3, 3)"),
        ([[0, 1, 2]], "(1, 3)"),
        (np.ones((3, 2)), "(3, 2)"),
        (np.ones((3, 2, 2)), "(3, 2, 2)"),
        (np.ones((2, 3, 2)), "(2, 3, 2)"),
    ],
)
@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_a_distortion_fits_its_source(distortion, shape, encoder):
    refused(
        lambda: cpv.PrivacyDistortion(SOURCE, distortion, budget=0.1, encoder=encoder),
        "distortion",
        shape,
        "(2, 2)",
        "(2, |X̂|)",
        "(2, 2, |X̂|)",
    )


def test_a_distortion_has_a_row_for_each_key_and_not_for_each_secret():
    wide = cpv.DiscreteSource([[0.2, 0.2, 0.1], [0.1, 0.2, 0.2]])
    assert cpv.PrivacyDistortion(wide, np.ones((3, 2)), budget=1).alphabet.d.matrix.shape == (3, 2)
    refused(
        lambda: cpv.PrivacyDistortion(wide, np.ones((2, 3)), budget=1),
        "distortion", "(2, 3)", "(3, |X̂|)", "(2, 3, |X̂|)",
    )  # fmt: skip


@pytest.mark.parametrize("distortion", ["hamming", None, cpv.hamming, 1.0, [0, 1]])
def test_a_distortion_is_a_matrix(distortion):
    refused(
        lambda: cpv.PrivacyDistortion(SOURCE, distortion, budget=0.1), "distortion", "(|X|, |X̂|)"
    )


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_broken_price_in_a_matrix_is_named(value):
    refused(
        lambda: cpv.PrivacyDistortion(SOURCE, [[0, 1], [value, 0]], budget=0.1),
        "distortion", "[1, 0]", repr(value), where=(1, 0),
    )  # fmt: skip


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_a_broken_probability_is_named(value):
    refused(
        lambda: cpv.DiscreteSource([[0.5, 0.25], [value, 0.25]]),
        "pmf", "[1, 0]", repr(value), where=(1, 0),
    )  # fmt: skip


def test_a_sum_off_1_is_said():
    refused(lambda: cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.3]]), "pmf", "0.9", "1e-09")


@pytest.mark.parametrize("broken", [3.0, "leakage", None, cpv.LeakageCap, {"b": 0.1}])
def test_criteria_that_are_none(broken):
    for call in (
        lambda: budgeted(criteria=[cpv.LeakageCap(0.5), broken]),
        lambda: cpv.MinimumDistortion(SOURCE, HAMMING, [cpv.LeakageCap(0.5), broken]),
    ):
        refused(call, "criteria", repr(broken), where=1)


@pytest.mark.parametrize("criteria", [cpv.LeakageCap(0.5), None, 0.5])
def test_criteria_come_in_a_list(criteria):
    """One criterion without a list is either understood or refused by name."""
    for make in (
        lambda: budgeted(criteria=criteria),
        lambda: cpv.MinimumDistortion(SOURCE, HAMMING, criteria),
    ):
        try:
            answer = make()
        except cpv.InputError as error:
            answer = error
        if isinstance(answer, cpv.InputError):
            assert answer.argument == "criteria"
            assert "list" in str(answer) or "sequence" in str(answer)
        else:
            assert isinstance(criteria, cpv.LeakageCap)
            assert [c.b for c in answer.criteria] == [0.5]


def test_a_criterion_that_generates_is_read_once():
    caps = (cpv.LeakageCap(b) for b in (0.5, 0.25))
    problem = budgeted(criteria=caps)
    assert [c.b for c in problem.criteria] == [0.5, 0.25]
    assert len(problem.program.constraints) == 3


# ---- infeasible --------------------------------------------------------------------------


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


def said(message: str) -> list[float]:
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
    numbers = said(str(caught.value))
    assert numbers[0] == pytest.approx(budget, rel=1e-5)
    assert numbers[1] == pytest.approx(least, rel=1e-5)
    assert numbers[0] < numbers[1]
    assert caught.value.certificate.verify()


@pytest.mark.parametrize("budget", [0.1, 0.333, 0.33333, math.nextafter(1 / 3, 0)])
def test_the_number_in_the_message_is_a_remedy(budget):
    with pytest.raises(cpv.InfeasibleError) as caught:
        cpv.PrivacyDistortion(THREE, ENDS, budget=budget).solve()
    numbers = said(str(caught.value))
    assert numbers[0] == pytest.approx(budget, rel=1e-5)
    assert numbers[1] == pytest.approx(1 / 3, rel=1e-5)
    referee.check(cpv.PrivacyDistortion(THREE, ENDS, budget=numbers[1]).solve())


def test_a_cost_of_one_layer_is_of_all_atoms():
    source = cpv.DiscreteSource([[0.25, 0.25], [0.125, 0.375]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    cost = np.array([[3.0, 1.0], [2.0, 5.0]])
    for given in (cost, cost[None], np.stack([cost, cost])):
        assert (
            problem.alphabet.least(Expression("c", cost=given, constant=0.5))
            == 0.5 + 0.375 + 2 * 0.625
        )


def test_the_least_distortion_of_pairs():
    prices = np.full((2, 2, 2), 0.5)
    prices[1, 1] = 0.75  # of mass 0.4: 0.6 · 0.5 + 0.4 · 0.75 = 0.6
    problem = cpv.PrivacyDistortion(SOURCE, prices, budget=0.5, encoder="wx")
    with pytest.raises(cpv.InfeasibleError, match=r"budget 0\.5 .*0\.6.* least distortion"):
        problem.solve()


def test_infeasible_as_a_warning():
    problem = cpv.PrivacyDistortion(THREE, ENDS, budget=0.1)
    with pytest.warns(UserWarning, match=r"budget 0\.1 .*0\.333333") as caught:
        solution = problem.solve(certify="warn")
    assert caught[0].filename == __file__
    assert solution.status == "infeasible"
    assert solution.channel is None
    assert solution.release is None
    assert solution.duals == {}
    assert solution.prices == {}
    assert solution.value == solution.lower == math.inf
    assert solution.certificate.verify()
    assert "infeasible" in str(solution)
    assert "infeasible" in repr(solution)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent = problem.solve(certify=False)
    assert silent.status == "infeasible"


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
    eased = cpv.PrivacyDistortion(SOURCE, HAMMING, budget=at, units=units).solve(accuracy="high")
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


def test_a_contradiction_as_a_warning():
    with pytest.warns(UserWarning, match=r"budget.*LeakageCap.*cannot hold together"):
        solution = contradictory().solve(certify="warn")
    assert solution.status == "infeasible"
    assert solution.certificate.verify()


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


# ---- nothing proved ----------------------------------------------------------------------


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
    least = cpv.MinimumDistortion(SOURCE, HAMMING, [cpv.LeakageCap(0.1)])
    priced = cpv.PrivacyDistortion(SOURCE, HAMMING, price=0.5)  # E d + λ I is in units of d
    for solution in (least.solve(), priced.solve()):
        assert solution.value_units is None
        for said in (repr(solution), repr(solution.certificate)):
            assert said.endswith("] units of distortion)")
            assert "bits" not in said
    several = [cpv.TCloseness(0.0957), cpv.Linear(-np.eye(2), -0.8)]
    with pytest.raises(cpv.CertificationError) as caught:
        cpv.MinimumDistortion(SOURCE, HAMMING, several).solve(
            method="conic", solver_options={"max_iter": 1}
        )
    assert "inf] units of distortion; the solver said" in str(caught.value)
    assert "bits" not in str(caught.value)
    by_name = [cpv.Linear(HAMMING.matrix, 0.9, name="budget"), cpv.LeakageCap(0.1)]
    drawn = [cpv.MinimumDistortion(SOURCE, HAMMING, by_name).solve()]
    refused(lambda: cpv.plotting.tradeoff(drawn), "solutions", "no point", where=0)


@pytest.mark.parametrize("units", ["bits", "nats"])
def test_information_has_its_units(units):
    gaussian = cpv.GaussianSource.scalar(rho=0.9)
    for problem in (
        budgeted(units=units),
        cpv.RateDistortionEquivocation(SOURCE, HAMMING, 0.1, units=units),
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


# ---- solutions ---------------------------------------------------------------------------


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


def test_an_infeasible_solution_has_no_terms():
    solution = cpv.PrivacyDistortion(THREE, ENDS, budget=0.1).solve(certify=False)
    assert solution.terms == {}
    with pytest.raises(AttributeError, match="'risk'.*none"):
        _ = solution.risk


def test_an_unknown_name_of_the_package():
    with pytest.raises(AttributeError, match="PrivacyDistorsion"):
        _ = cpv.PrivacyDistorsion
