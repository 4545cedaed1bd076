"""Bounds of what is leaked without any release: the faces of measures, and what is proved there."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import cvxprivacy as cpv
from cvxprivacy.exact import floats, fractions
from tests import referee
from tests.leakage.measures import MATRIX, MEASURES, kinds_of
from tests.leakage.test_measures import law_of
from tests.lengths import rest_at_length, some_at_length
from tests.second_checker import check

CLASSES = cpv.leakage.EarthMover([[0, 0, 1], [0, 0, 2], [1, 1, 0]])
ALL = {name: measure for name, (measure, _) in MEASURES.items()} | {"classes": CLASSES}
GUESSES = {"guess": np.eye(3), "gain": np.array(MATRIX)}
SEEDS = st.integers(0, 2**32 - 1)


# ---- faces -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@given(seed=SEEDS)
@settings(max_examples=10)
def test_scores_of_a_face_are_the_measure_there_and_less_elsewhere(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = law_of(rng)
    prior, measure = law.sum(axis=1), ALL[name].fitted(range(3), range(3))
    face = measure.face(fractions(prior), fractions(prior) / fractions(prior).sum())
    score, directions = floats(face.score), floats(face.directions)
    none = measure.value(prior[:, None], prior)[0]
    assert score @ prior == pytest.approx(none, abs=1e-12)
    tied = np.abs(directions @ prior) < 1e-12
    assert (directions @ prior <= 1e-12).all()
    for share in (0.0, 1e-3, 0.5):  # of any posterior, and near the prior
        joint = share * law + (1 - share) * np.outer(prior, law.sum(axis=0))
        above = measure.value(joint, prior) - score @ joint
        broken = np.where(tied[:, None], np.abs(directions @ joint), directions @ joint)
        most = broken.max(axis=0)
        assert (above >= -1e-12).all()
        assert (above[most <= 1e-15] <= 1e-12).all()
        assert (above[most > 1e-3] > 0).all()


@pytest.mark.parametrize("name", ALL)
def test_what_is_told_of_a_face_is_its_score_and_moves_along_its_directions(name: str) -> None:
    prior = np.array([0.5, 0.3, 0.2])
    measure = ALL[name].fitted(range(3), range(3))
    face = measure.face(fractions(prior), fractions(prior) / fractions(prior).sum())
    at = measure.inside(face.parameters[:, None], prior)[:, 0]
    assert at == pytest.approx(floats(face.score), abs=1e-12)
    for parameters, direction in zip(
        face.parameter_directions, floats(face.directions), strict=True
    ):
        for step in (1e-3, 1e-5):
            moved = measure.inside((face.parameters + step * parameters)[:, None], prior)[:, 0]
            assert (moved - at) / step == pytest.approx(direction, abs=20 * step)


def test_values_at_distance_0_that_are_no_classes_have_no_face() -> None:
    prior = fractions(np.array([0.5, 0.25, 0.25]))
    for ground in ([[0, 0, 1], [1, 0, 1], [1, 1, 0]], [[0, 0, 1], [0, 0, 0], [1, 0, 0]]):
        mover = cpv.leakage.EarthMover(ground).fitted(range(3), range(3))
        assert mover.face(prior, prior) is None


# ---- bounds that leave no room ---------------------------------------------------------------


def instance(seed: int, dyadic: bool) -> tuple[Any, np.ndarray]:
    """Return a source of which some combinations of letters look alike, and a distortion."""
    rng = np.random.default_rng(seed)
    law = law_of(rng, (3, 5))
    if dyadic:
        law = rng.integers(1, 17, (3, 5)).astype(float)
        law[0, 0] += 256 - law.sum()
        law /= 256
    d = rng.random((5, 5))
    np.fill_diagonal(d, 0.0)
    return cpv.DiscreteSource(law), d


def prior_of(source: Any) -> np.ndarray:
    """Return the law of W, exactly."""
    law = fractions(cpv.MinimumDistortion(source, cpv.hamming(len(source.x)), []).program.law)
    return law.sum(axis=1) / law.sum()


def least_of(name: str, source: Any) -> Fraction:
    """Return what is leaked without a release, exactly."""
    prior = prior_of(source)
    if name in GUESSES:
        return max(fractions(GUESSES[name]) @ prior)
    return Fraction(name.startswith(("Sibson", "maximal")))


def linear(name: str, source: Any, d: np.ndarray, *, each: bool) -> float:
    """Return the least distortion where no more is leaked than without a release, as an LP."""
    law, (n, m) = source.pmf, d.shape
    prior, q = law.sum(axis=1), law.sum(axis=0)
    merged = np.array([[1.0, 1, 0], [0, 0, 1]]) if name == "classes" else np.eye(3)
    rows, equal = np.zeros((0, n)), merged @ (law - prior[:, None] * q)
    if name == "hockey":
        rows, equal = law - 1.25 * prior[:, None] * q, np.zeros((0, n))
    if name in GUESSES:
        gains = GUESSES[name]
        at_once = gains @ prior
        rows = gains @ law - (at_once.max() * q if each else gains[at_once.argmax()] @ law)
        equal = rows[at_once.argmax()][None]
    sums, none = np.kron(np.eye(n), np.ones(m)), np.zeros(len(equal) * m)
    return linprog(
        (source.p_x[:, None] * d).ravel(),
        A_ub=np.kron(rows, np.eye(m)),
        b_ub=np.zeros(len(rows) * m),
        A_eq=np.vstack([sums, np.kron(equal, np.eye(m))]),
        b_eq=np.r_[np.ones(n), none],
    ).fun


def rule_of(name: str, bound: Any, *, each: bool) -> cpv.Criterion:
    measure = ALL[name]
    return cpv.PerLetter(measure, bound) if each else cpv.LeakageCap(bound, leakage=measure)


@pytest.mark.long
@pytest.mark.parametrize(("each", "dyadic"), [(False, False), (True, True)])
@pytest.mark.parametrize("name", kinds_of(ALL))
def test_a_bound_of_what_is_leaked_without_a_release_is_certified(
    name: str, dyadic: bool, each: bool
) -> None:
    source, d = instance(4, dyadic)
    rule = rule_of(name, least_of(name, source), each=each)
    solution = cpv.MinimumDistortion(source, d, [rule], units="nats").solve(accuracy="high")
    referee.check(solution)
    expected = linear(name, source, d, each=each)
    assert solution.lower - 1e-8 <= expected <= solution.upper + 1e-8
    assert expected < (source.p_x @ d).min() - 1e-3  # a constant would be worse
    assert solution.prices[rule.name] == -math.inf
    lower, upper, status = check(solution.certificate.document())
    assert status == "certified"
    assert float(lower) == pytest.approx(solution.lower, abs=1e-10)
    assert float(upper) == pytest.approx(solution.upper, abs=1e-10)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", rest_at_length(["variation", "Sibson 2", "gain", "maximal", "hockey", "guess"], 3)
)
def test_next_to_it_the_bound_leaves_little_doubt(name: str) -> None:
    """Where F grows as a distance the optimum is certified, else its enclosure is small."""
    source, d = instance(4, True)
    least = least_of(name, source)
    before = linear(name, source, d, each=False)
    for digits in (16, 11, 6):
        rule = rule_of(name, least + Fraction(1, 10**digits), each=False)
        solution = cpv.MinimumDistortion(source, d, [rule], units="nats").solve(certify=False)
        assert solution.status == "certified" or name == "Sibson 2", digits
        assert solution.gap <= 2e-5
        assert solution.lower <= before + 1e-9
        assert solution.certificate.verify()


@pytest.mark.long
@pytest.mark.parametrize("name", kinds_of(["variation", "guess", "gain", "hockey", "Sibson 2"]))
@pytest.mark.parametrize(
    "others",
    [
        lambda least, rule: [rule, rule],
        lambda least, rule: [rule, cpv.KeepProbability(0.05)],
        lambda least, rule: [rule, cpv.PreserveMarginal()],
        lambda least, rule: [rule, cpv.LocalPrivacy(0)],
        lambda least, rule: [rule, rule.at(least + 1), cpv.LeakageCap(0.01)],
    ],
    ids=["twice", "floors", "marginal", "constants", "looser"],
)
def test_beside_other_rules_and_in_the_objective(name: str, others: Any) -> None:
    source, d = instance(4, True)
    least = least_of(name, source)
    criteria = others(least, rule_of(name, least, each=False))
    problem = cpv.PrivacyDistortion(source, d, price=0.25, criteria=criteria, leakage=ALL[name])
    solution = problem.solve()
    referee.check(solution)
    assert solution.risk.upper <= float(least) + 1e-12
    assert solution.lower >= linear(name, source, d, each=False) + 0.25 * float(least) - 1e-7


@pytest.mark.parametrize("side", rest_at_length(["decoder", "both"], 1))
@pytest.mark.parametrize("each", rest_at_length([False, True], 1))
@pytest.mark.parametrize(
    "name", rest_at_length(["information", "guess", "maximal", "variation", "Sibson 2"], 1)
)
def test_for_those_who_know_a_z_that_tells_nothing(name: str, each: bool, side: str) -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 9, (3, 4))[:, :, None] * np.array([1, 3])
    source, d = cpv.DiscreteSource.from_counts(counts), rng.random((4, 4))
    rule = rule_of(name, least_of(name, cpv.DiscreteSource.from_counts(counts.sum(2))), each=each)
    options = {"side_information": side, "minimize": "distortion", "criteria": [rule]}
    with_z = cpv.RateDistortionEquivocation(source, d, **options).solve()
    alone = cpv.MinimumDistortion(cpv.DiscreteSource.from_counts(counts.sum(2)), d, [rule]).solve()
    assert with_z.status == "certified"
    assert with_z.lower <= alone.upper + 1e-9
    assert with_z.certificate.verify()
    assert check(with_z.certificate.document())[2] == "certified"


@pytest.mark.parametrize("each", rest_at_length([True, False], 1))
@pytest.mark.parametrize("name", some_at_length(["variation", "hockey", "Sibson 2", "maximal"], 2))
def test_under_each_of_two_laws(name: str, each: bool) -> None:
    rng = np.random.default_rng(1)
    laws = [cpv.DiscreteSource.from_counts(rng.integers(1, 17, (2, 6))) for _ in range(2)]
    d, rule = rng.random((6, 6)), rule_of(name, least_of(name, laws[0]), each=each)
    np.fill_diagonal(d, 0.0)
    solution = cpv.MinimumDistortion(laws[0], d, [rule], laws=laws[1:]).solve()
    assert solution.status == "certified"
    assert check(solution.certificate.document())[2] == "certified"
    k = cp.Variable((6, 6), nonneg=True)
    rows = [cp.sum(k, axis=1) == 1]
    costs = []
    for law in laws:
        joint, prior = law.pmf @ k, law.p_w[:, None]
        q = cp.reshape(cp.sum(joint, axis=0), (1, 6), "C")
        rows += [joint <= 1.25 * prior @ q] if name == "hockey" else [joint == prior @ q]
        costs.append(cp.sum(cp.multiply(law.p_x[:, None] * d, k)))
    expected = cp.Problem(cp.Minimize(cp.maximum(*costs)), rows).solve(solver="CLARABEL")
    assert solution.lower - 1e-6 <= expected <= solution.upper + 1e-6


# ---- below it --------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("name", ["guess", "gain", "Sibson 2", "maximal"])
def test_below_it_nothing_is_feasible_and_what_is_advised_is(name: str, each: bool) -> None:
    source, d = instance(4, False)
    least = least_of(name, source)
    problem = cpv.MinimumDistortion(source, d, [rule_of(name, least / 2, each=each)])
    with pytest.raises(cpv.InfeasibleError) as caught:
        problem.solve()
    assert caught.value.certificate.verify()
    assert problem.solve(certify=False).log == ["closed form: infeasible"]
    ((key, value),) = caught.value.extremes.items()
    text = float(str(caught.value).split()[-1])
    assert least <= Fraction(value) <= Fraction(text)
    for bound in (value, text):
        assert problem.at(**{key: bound}).solve().status == "certified"
    barely = problem.at(**{key: least - Fraction(1, 10**30)}).solve(certify=False)
    assert barely.status == "infeasible"


def test_gains_that_are_losses_have_negative_bounds() -> None:
    source, d = instance(4, True)
    losses = cpv.leakage.Gain(np.array(MATRIX) - 3)
    least = max(fractions(np.array(MATRIX) - 3) @ prior_of(source))
    assert least < -1
    for each in (False, True):
        expected = linear("gain", source, d, each=False)
        rule = cpv.PerLetter(losses, least) if each else cpv.LeakageCap(least, leakage=losses)
        solution = cpv.MinimumDistortion(source, d, [rule]).solve()
        assert solution.upper >= expected - 1e-9
        assert each or solution.lower <= expected + 1e-9
        with pytest.raises(cpv.InfeasibleError, match=r"at least (about )?-\d"):
            cpv.MinimumDistortion(source, d, [rule.at(least - 1)]).solve()
    for measure in (None, cpv.leakage.ChiSquared(), cpv.leakage.Gain(MATRIX[:2])):
        with pytest.raises(cpv.InputError) as caught:
            cpv.LeakageCap(-0.5, leakage=measure)
        assert (caught.value.argument, caught.value.value) == ("b", -0.5)
    with pytest.raises(cpv.InputError) as caught:
        cpv.PerLetter(cpv.leakage.Sibson(2), -0.5)
    assert caught.value.argument == "bound"
