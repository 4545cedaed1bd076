"""A release of somebody else: repaired, and proved at both ends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy import reference
from tests.lengths import rest_at_length, some_at_length
from tests.refusals import refused

AGES = [25, 40, 55, 70]
SOURCE = cpv.DiscreteSource.from_counts(
    [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]],
    w=["none", "mild", "severe"], x=AGES, names=["illness", "age"],
)  # fmt: skip
YEARS = cpv.absolute_error(AGES)
OTHER = cpv.DiscreteSource.from_counts(
    [[30, 25, 9, 4], [18, 40, 21, 10], [5, 12, 28, 33]], w=SOURCE.w, x=AGES
)
PROBLEMS = {
    "budget": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0),
    "price": cpv.PrivacyDistortion(SOURCE, YEARS, price=20.0),
    "t-closeness": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, criteria=[cpv.TCloseness(0.2)]),
    "per output": cpv.MinimumDistortion(SOURCE, YEARS, [cpv.DeltaDisclosure(0.5)]),
    "ratio": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, criteria=[cpv.LocalPrivacy(3)]),
    "maximum": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, criteria=[cpv.MaximalLeakage(1.6)]),
    "floor": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, criteria=[cpv.KeepProbability(0.7)]),
    "equality": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, criteria=[cpv.PreserveMarginal()]),
    "chi-squared": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, leakage=cpv.leakage.ChiSquared()),
    "informed": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, encoder="wx"),
    "worst law": cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, laws=[OTHER]),
}


@pytest.mark.parametrize("name", some_at_length(PROBLEMS, 5))
def test_the_optimum_certifies_itself(name):
    problem = PROBLEMS[name]
    best = problem.solve(accuracy="high")
    answer = problem.certify(best.channel)  # no multiplier is handed over
    assert answer.status == "certified", (answer.gap, answer.log)
    assert answer.certificate.verify()
    assert answer.certificate.proves(problem)
    assert answer.lower <= best.upper
    assert best.lower <= answer.upper


@pytest.mark.parametrize("name", some_at_length(PROBLEMS, 5))
@pytest.mark.parametrize("digits", rest_at_length([2, 3], 1))
def test_digits_that_were_printed_are_repaired_and_enclosed(name, digits):
    problem = PROBLEMS[name]
    best = problem.solve(accuracy="high")
    answer = problem.certify(best.channel.matrix.round(digits))
    assert answer.lower <= best.upper + 1e-12
    assert best.lower <= answer.upper
    assert answer.certificate.verify()
    assert math.isfinite(answer.upper), answer.notes
    nearer = problem.certify(best.channel.matrix.round(digits), solve=True)
    assert nearer.upper == answer.upper
    assert nearer.lower >= max(answer.lower, best.lower - 2e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 20.0))
def test_no_candidate_is_proved_better_or_worse_than_it_is(seed, concentration):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(4, concentration), 4)
    problem = PROBLEMS["budget"]
    answer = problem.certify(matrix)
    assert answer.lower <= 0.1136640619508  # the optimum
    assert answer.upper >= 0.1136640619507
    if float(np.sum(SOURCE.p_x[:, None] * matrix * YEARS.matrix)) <= 5.0:
        joint = SOURCE.pmf @ matrix
        assert answer.upper == pytest.approx(cpv.information.mutual_information(joint), abs=1e-9)


def test_blahut_and_arimoto_meet_the_optimum():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    d = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
    rate, distortion, channel = reference.blahut_arimoto(p, d, slope=1.5)
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource.identical(p), d, distortion, units="nats")
    answer = problem.certify(channel)
    assert answer.status == "certified"
    assert answer.upper == pytest.approx(rate, abs=1e-6)
    assert answer.duals["budget"] == pytest.approx(1.5, abs=1e-3)


def test_multipliers_that_come_with_it_are_used_and_wrong_ones_only_cost():
    problem = PROBLEMS["budget"]
    best = problem.solve(accuracy="high")
    mine = problem.certify(best.channel, {"budget": best.duals["budget"]})
    assert mine.status == "certified"
    refused_at_any_place(lambda: problem.certify(best.channel, {"budget": -1.0}), "duals")
    refused_at_any_place(lambda: problem.certify(best.channel, {"budget": "a"}), "duals")
    assert problem.certify(best.channel, best.duals).status == "certified"
    for factor in (0.0, 0.3, 1.7):
        other = problem.certify(best.channel, {"budget": factor * best.duals["budget"]})
        assert other.lower < best.lower
        assert other.certificate.verify()
    assert problem.certify(best.channel, {}).lower <= 1e-9  # all multipliers are 0


def test_labels_decide_where_there_are_any():
    problem = PROBLEMS["budget"]
    best = problem.solve(accuracy="high").channel
    frame = best.to_frame()
    value = problem.certify(best).upper
    assert problem.certify(frame.iloc[::-1, [2, 0, 3, 1]]).upper == value
    assert problem.certify(frame.iloc[:, :4]).notes[0].startswith("the candidate")
    constant = pd.DataFrame({40: [1.0] * 4}, index=AGES)
    silent = cpv.PrivacyDistortion(SOURCE, YEARS, 30.0).certify(constant)
    assert silent.status == "certified"
    assert silent.upper == pytest.approx(0, abs=1e-12)


LAWS = [[0.81, 0.19, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0.3, 0, 0.7]]


@pytest.mark.parametrize(
    ("candidate", "pieces"),
    [
        (np.eye(3), ["(3, 3)", "4 rows"]),
        ([0.5, 0.5], ["(2,)"]),
        (np.full((4, 4), 0.5), ["a sum of 2"]),
        ([[1.2, -0.2, 0, 0], *LAWS[1:]], ["an entry of -0.2"]),
        ([[math.nan, 1, 0, 0], *LAWS[1:]], ["nan"]),
        (pd.DataFrame(LAWS, index=AGES, columns=[25, 40, 55, 71]), ["71 is no output"]),
        (pd.DataFrame(LAWS, index=[25, 40, 55, 80], columns=AGES), ["80 is no input"]),
        (pd.DataFrame(LAWS[:3], index=AGES[:3], columns=AGES), ["no row for 70"]),
        (pd.DataFrame(LAWS, index=[25, 40, 55, 55], columns=AGES), ["named twice"]),
        ("a text", ["not numbers"]),
    ],
    ids=range(10),
)
def test_what_is_no_release_of_the_problem_is_refused(candidate, pieces):
    error = refused_at_any_place(lambda: PROBLEMS["budget"].certify(candidate), "candidate")
    for piece in pieces:
        assert piece in str(error)


def refused_at_any_place(call, argument):
    with pytest.raises(cpv.InputError) as caught:
        call()
    assert caught.value.argument == argument
    assert caught.value.remedy
    return caught.value


def test_other_arguments_are_refused_by_name():
    problem = PROBLEMS["budget"]
    refused(lambda: problem.certify(LAWS, {"bugdet": 1.0}), "duals", "use budget", value="bugdet")
    refused(lambda: problem.certify(LAWS, 3), "duals", "by the names", value=3)
    refused(lambda: problem.certify(LAWS, accuracy="best"), "accuracy")


def test_a_demand_that_nothing_satisfies_stays_uncertified():
    problem = cpv.PrivacyDistortion(SOURCE, YEARS, 0.0, criteria=[cpv.PerfectPrivacy()])
    answer = problem.certify(LAWS)
    assert answer.upper == math.inf
    assert answer.release is None
    assert "no repair" in answer.notes[0]


# ---- Gaussian ----------------------------------------------------------------------------

GAUSSIAN = cpv.GaussianSource(
    [[2, 0.8, 0.5], [0.8, 1, 0.3], [0.5, 0.3, 1]], sensitive=[0], key=[1, 2]
)
GAUSSIAN_PROBLEMS = {
    "log-det": cpv.QuadraticGaussian(GAUSSIAN, 0.8),
    "nats": cpv.QuadraticGaussian(GAUSSIAN, 0.8, units="nats"),
    "two rows": cpv.GaussianEquivocation(GAUSSIAN, 0.8, max_leakage=0.15),
}


@pytest.mark.parametrize("name", some_at_length(GAUSSIAN_PROBLEMS, 1))
def test_an_error_covariance_and_a_release(name):
    problem = GAUSSIAN_PROBLEMS[name]
    best = problem.solve(accuracy="high")
    for candidate in (best.release, best.error_covariance):
        answer = problem.certify(candidate)
        assert answer.gap < 1e-5
        assert answer.certificate.verify()
        assert answer.lower <= best.upper
        assert best.lower <= answer.upper
    rounded = problem.certify(best.error_covariance.round(2))
    assert rounded.lower <= best.upper
    assert best.lower <= rounded.upper < best.upper + 0.05
    with_duals = problem.certify(best.release, best.duals)
    assert with_duals.gap < 1e-5


@pytest.mark.parametrize("seed", some_at_length(range(6), 3))
def test_no_error_covariance_is_proved_better_than_it_is(seed):
    problem, rng = GAUSSIAN_PROBLEMS["log-det"], np.random.default_rng(seed)
    root = rng.normal(size=(2, 2))
    answer = problem.certify(root @ root.T)
    best = problem.solve(accuracy="high")
    assert answer.lower <= best.upper
    assert best.lower <= answer.upper
    assert answer.certificate.verify()


def test_no_error_at_all_is_a_candidate():
    answer = GAUSSIAN_PROBLEMS["log-det"].certify(np.zeros((2, 2)))
    assert answer.lower <= GAUSSIAN_PROBLEMS["log-det"].solve().upper <= answer.upper + 1e-9


def test_what_is_no_error_covariance_is_refused():
    problem = GAUSSIAN_PROBLEMS["log-det"]
    refused(lambda: problem.certify(np.eye(3)), "candidate", "(2, 2)")
    refused(lambda: problem.certify([[0.4, 0.1], [0.2, 0.4]]), "candidate", "not symmetric")


# ---- outputs that are never released, and water ------------------------------------------


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_an_optimum_that_leaves_outputs_out_certifies_itself(seed):
    rng = np.random.default_rng(seed)
    w, x = (int(k) for k in rng.integers(2, 5, 2))
    law = rng.dirichlet(np.full(w * x, 0.5)).reshape(w, x) + 1e-3
    source = cpv.DiscreteSource(law / law.sum())
    d = np.abs(np.subtract.outer(np.arange(x), np.arange(x + 2))) ** 1.5  # outputs to spare
    problem = cpv.PrivacyDistortion(source, d, budget=float(rng.uniform(0.1, 1.0)))
    best = problem.solve(accuracy="high")
    rare = best.channel.matrix.max(axis=0) < 1e-5
    matrix = np.where(rare, 0.0, best.channel.matrix)
    answer = problem.certify(matrix / matrix.sum(axis=1, keepdims=True))
    assert answer.gap < (2e-4 if rare.any() else 1e-6)  # what those columns told
    assert answer.lower <= best.upper
    assert best.lower <= answer.upper


@pytest.mark.parametrize(
    "measure",
    [
        cpv.leakage.ChiSquared(),
        cpv.leakage.SquaredHellinger(),
        cpv.leakage.PowerDivergence(1.5),
        cpv.leakage.Sibson(2),
    ],
    ids=repr,
)
def test_outputs_are_left_out_of_other_measures_too(measure):
    d = np.column_stack([YEARS.matrix, 100.0 + YEARS.matrix])  # four more, which nobody would use
    problem = cpv.PrivacyDistortion(SOURCE, d, 5.0, leakage=measure)
    best = problem.solve(accuracy="high")
    matrix = np.where(best.channel.matrix.max(axis=0) < 1e-6, 0.0, best.channel.matrix)
    answer = problem.certify(matrix / matrix.sum(axis=1, keepdims=True))
    assert not answer.channel.matrix[:, 4:].any()
    assert answer.gap < 1e-4 * max(best.upper, 1e-2)
    assert answer.lower <= best.upper


@pytest.mark.parametrize("least", some_at_length([0.0, 1e-6], 1))
def test_outputs_with_next_to_no_mass_are_as_those_without(least):
    """A solver leaves some mass on each output, and an output may be rare for one z alone."""
    pmf = np.random.default_rng(1).dirichlet(np.ones(24)).reshape(3, 4, 2)
    problems = [
        cpv.MinimumDistortion(
            cpv.DiscreteSource([[0.3, 0.1], [0.2, 0.4]]), cpv.hamming(2), [cpv.TCloseness(1e-4)]
        ),
        *(
            cpv.RateDistortionEquivocation(
                cpv.DiscreteSource(pmf), cpv.hamming(4), D, minimize=what, side_information="both"
            )
            for what, D in (("rate", 0.3), ("rate", 0.5), ("leakage", 0.4))
        ),
    ]
    for problem in problems:
        best = problem.solve(accuracy="high")
        matrix = np.where(best.channel.matrix < least, 0.0, best.channel.matrix)
        answer = problem.certify(matrix / matrix.sum(axis=1, keepdims=True))
        assert answer.gap < 1e-6, problem
        assert answer.lower <= best.upper


def test_multipliers_of_an_optimum_prove_it_where_outputs_are_left_out():
    letters = cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], 0.4)
    solution = letters.solve(accuracy="high")
    price = solution.duals["budget"]
    assert letters.certify(solution.channel, {"budget": price}).status == "certified"
    wrong = letters.certify(solution.channel, {"budget": 2 * price})
    assert wrong.lower < solution.lower - 0.01


WATER = {
    "variances": cpv.ReverseWaterFilling([4, 1, 0.25], budget=1.25),
    "covariance": cpv.ReverseWaterFilling([[4, 1], [1, 2]], budget=1.25),
    "boxes": cpv.BoxWaterFilling([1, 2, 4], [1, 1, 1], total=1),
    "letters": cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], 0.25),
}


@pytest.mark.parametrize("solve", [False, True])
@pytest.mark.parametrize("name", WATER)
def test_a_water_level_is_a_candidate(name, solve):
    problem = WATER[name]
    best = problem.solve(accuracy="high")
    answer = problem.certify(problem.level, solve=solve)
    assert answer.status == "certified"
    assert abs(answer.value - best.value) < 1e-6
    lower = problem.certify(problem.level * 3 / 4, solve=solve)  # too little is poured
    assert lower.status == "loose"
    assert lower.lower <= best.upper < lower.upper
    higher = problem.certify(problem.level * 5 / 4, solve=solve)  # too much: repaired
    assert higher.lower <= best.upper
    assert best.lower <= higher.upper < math.inf
    if name != "letters":
        poured = problem.certify([float(x) for x in problem.allocation], solve=solve)
        assert poured.status == "certified"


@pytest.mark.parametrize("level", [1e-320, Fraction(1, 10**400), Fraction(10) ** 300])
def test_extreme_levels_prove_little_and_nothing_false(level):
    for name in ("variances", "covariance", "boxes"):
        problem = WATER[name]
        answer, best = problem.certify(level), problem.solve()
        assert answer.lower <= best.upper
        assert best.lower <= answer.upper
        assert answer.certificate.verify()


def test_what_is_poured_along_axes_may_be_far_too_much():
    problem = WATER["covariance"]
    poured = np.array([float(x) for x in problem.allocation])
    assert problem.certify(1e9 * poured).upper >= problem.solve().lower


def test_what_is_no_level_is_refused():
    letters, water = WATER["letters"], WATER["variances"]
    for problem, candidate, words in [
        (letters, 0.41, "above every probability"),
        (letters, -0.1, "out of range"),
        (letters, "high", "is no number"),
        (letters, [[1.0, 0.0]], "shape"),
        (water, 0, "out of range"),
        (water, [0.5, 0.5], "2 numbers"),
        (water, np.nan, "out of range"),
    ]:
        refused(lambda p=problem, c=candidate: p.certify(c), "candidate", words)
