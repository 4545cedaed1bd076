"""Divergences by sums of perspectives: identities, what is refused, and what a forger may try."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpz
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.plotting import tradeoff
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import PRECISION, UnprovableError
from cvxprivacy_verifier.measures import measure_of
from cvxprivacy_verifier.perspectives import ConvexFunction
from cvxprivacy_verifier.statement import stated
from tests.claims import claimed
from tests.leakage.measures import MEASURES, TERMS
from tests.leakage.test_measures import SEEDS, honest, instance, law_of, optimum, problem_of
from tests.lengths import rest_at_length, some_at_length
from tests.second_checker import check
from tests.second_checker.measures import Measure
from tests.second_checker.numbers import Refused

L = cpv.leakage
NAMES = ["Le Cam", "Jensen", "power 1.5", "power 0.3", "terms"]
JENSEN = [(0.5, 1, 1, 0, 0.5, 0.5), (0.5, 1, 0, 1, 0.5, 0.5)]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", rest_at_length(range(200, 202), 1))
def test_optima_are_those_of_cvxpy(name: str, seed: int) -> None:
    optimum(name, seed)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_optima_are_those_of_cvxpy_at_length(name: str) -> None:
    for seed in range(202, 209):
        optimum(name, seed)


# ---- identities ------------------------------------------------------------------------------

ALIKE = {
    "χ² is twice order 2": (L.PowerDivergence(2), L.ChiSquared(), 0.5),
    "Hellinger is half of order ½": (L.PowerDivergence(0.5), L.SquaredHellinger(), 2.0),
    "Le Cam without a square of a sign": (
        L.FInformation([(4, 2, 0, 1, 1, 1)]), L.VinczeLeCam(), 1.0
    ),
    "order 0.4 of J is 0.6 of πq": (
        L.FInformation([(1, 0.6, 0, 1, 1, 1), (1, 0.4, 1, 0, 0, 1)]),
        L.FInformation([(1, 0.4, 1, 1, 0, 1), (1, 0.4, 1, 0, 0, 1)]), 1.0,
    ),
    "Jensen and Shannon": (L.FInformation(JENSEN), L.JensenShannon(), 1.0),
    "information": (L.FInformation([(1, 1, 1, 0, 0, 1)]), L.MutualInformation(), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
@given(seed=SEEDS)
@settings(max_examples=20)
def test_one_measure_by_two_names(name: str, seed: int) -> None:
    one, other, factor = ALIKE[name]
    law = law_of(np.random.default_rng(seed))
    prior = law.sum(axis=1)
    ours, theirs = one.value(law, prior), factor * other.value(law, prior)
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("name", some_at_length(ALIKE, 1))
def test_one_optimum_by_two_names(name: str) -> None:
    """Their proofs are of other data, and of scores that are told in another way."""
    one, other, factor = ALIKE[name]
    source, d, budget = instance(np.random.default_rng(17))
    options: Any = {"budget": budget, "units": "nats"}
    first, second = (
        cpv.PrivacyDistortion(source, d, leakage=m, **options).solve() for m in (one, other)
    )
    assert first.status == second.status == "certified"
    assert first.lower <= factor * second.upper * (1 + 1e-12)
    assert factor * second.lower <= first.upper * (1 + 1e-12)


def test_orders_around_1_enclose_information() -> None:
    law = law_of(np.random.default_rng(3))
    below, above = (L.PowerDivergence(order).total(law) for order in (0.99, 1.01))
    information = L.MutualInformation().total(law)
    assert abs(below - information) + abs(above - information) < 0.02 * information
    assert (below - information) * (above - information) < 0


def test_f_is_its_formula() -> None:
    t = np.linspace(0, 5, 41)
    assert L.VinczeLeCam().f(t) == pytest.approx((t - 1) ** 2 / (t + 1), abs=1e-14)
    f = np.log(np.where(t > 0, 2 * t / (t + 1), 1.0)) * t
    assert L.FInformation([(1, 1, 1, 0, 0.5, 0.5)]).f(t) == pytest.approx(f, abs=1e-14)
    power = L.PowerDivergence(3).f(t)
    assert power - power[t == 1] == pytest.approx((t**3 - 1) / 6, abs=1e-12)


def test_jensen_and_shannon_are_in_the_units_of_the_problem() -> None:
    source, d, budget = instance(np.random.default_rng(19))
    measure = L.JensenShannon()
    ends = {}
    for units in ("bits", "nats"):
        problem = cpv.PrivacyDistortion(source, d, budget=budget, leakage=measure, units=units)
        for method in ("auto", "conic"):
            solution = problem.solve(method=method)
            assert solution.status == "certified"
            assert check(solution.certificate.document())[2] == "certified"
            ends[units, method] = solution
            text = "\n".join(stated(solution.certificate.document()))
            assert 'Jensen-Shannon divergence of "W' in text
            assert f", in {units}" in text
        cap = cpv.LeakageCap(solution.upper, leakage=measure)
        capped = cpv.MinimumDistortion(source, d, [cap], units=units).solve()
        assert capped.value == pytest.approx(budget, abs=1e-4)
    for method in ("auto", "conic"):
        bits, nats = ends["bits", method], ends["nats", method]
        assert bits.value * math.log(2) == pytest.approx(nats.value, rel=1e-5)
    # all that a fair bit is: ½ f(2) + ½ f(0), f(2) = log 2 − 3/2 log 3/2, f(0) = ½ log 2
    by_hand = 0.75 * math.log(4 / 3)
    assert measure.total(np.eye(2) / 2) == pytest.approx(by_hand, rel=1e-12)
    table = Counts.of_records(np.array([[7, 0], [0, 7]]), "bits")
    for off, holds in ((1e-9, True), (-1e-9, False)):
        bound = Fraction(by_hand / math.log(2) + off)
        assert cpv.PerLetter(measure, bound).verdict(table).holds is holds
        assert cpv.LeakageCap(bound, leakage=measure).verdict(table).holds is holds


def test_a_table_at_the_very_bound_is_decided_where_f_is_rational() -> None:
    """(J − e)²/(J + e) of 6, 2 and halves of 8: 2 · (2²/10) + 2 · (2²/6) over 16 records."""
    table = Counts.of_records(np.array([[6, 2], [2, 6]]))
    exact = (Fraction(4, 10) + Fraction(4, 6)) / 8
    for measure, value in (
        (L.VinczeLeCam(), exact),
        (L.PowerDivergence(2), Fraction(1, 8)),
        (L.FInformation([(2, 2, 1, -1, 1, 1)]), 2 * exact),
    ):
        for rule in (cpv.PerLetter, lambda m, b: cpv.LeakageCap(b, leakage=m)):
            assert rule(measure, value).verdict(table).holds is True
            assert rule(measure, value - Fraction(1, 10**40)).verdict(table).holds is False


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "place", "words"),
    [
        (lambda t: t * math.log(t), None, "nobody who checks"),
        ("t*log(t)", None, "nobody who checks"),
        ([(1, 2, 1, -1, 1)], None, "shape"),
        (np.zeros((0, 6)), None, ""),
        ([(1, 2, 1, -1, 1, math.nan)], (0, 5), ""),
        ([(1, 2, 1, -1, 1, 1), (-1, 2, 1, 0, 0, 1)], (1, 0), "c ≤ 0"),
        ([(1, 0, 1, 0, 0, 1)], (0, 1), "rules out a value"),
        ([(1, -1, 1, 0, 0, 1)], (0, 1), "rules out a value"),
        ([(1, 1.001, 1, 0, 0, 1)], (0, 1), "too near 1"),
        ([(1, 50, 1, 0, 0, 1)], (0, 1), "out of range"),
        ([(1, 2, 1, 0, -1, 1)], (0, 4), "γ"),
        ([(1, 1, 0, 1, 1, 0)], (0, 5), "infinite at 0"),
        ([(1, 3, 1, -1, 0, 1)], (0, 2), "not positive"),
        ([(1, 1, 0, 0, 0, 1)], (0, 2), "not positive"),
        ([(1, 2, 1, 1, 1, 1)], None, "affine"),
        ([(1, 1, 0, 1, 0, 1)], None, "affine"),
    ],
)
def test_what_is_not_convex_by_its_form_is_refused(terms: Any, place: Any, words: str) -> None:
    with pytest.raises(cpv.InputError) as caught:
        L.FInformation(terms)
    assert (caught.value.argument, caught.value.where) == ("terms", place)
    assert words in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("order", "words"),
    [(1, "MutualInformation"), (0, "rules out"), (-1, "rules out"), (1.001, "near 1"),
     (0.01, "range"), (11, "range"), ("a", "no number"), (math.inf, "range")],
)  # fmt: skip
def test_orders_that_cannot_be_certified_are_refused(order: Any, words: str) -> None:
    with pytest.raises(cpv.InputError, match=words) as caught:
        L.PowerDivergence(order)
    assert caught.value.argument == "order"


FORGED = {
    "concave": [[-1, 2, 1, 0, 0, 1]],
    "concave by a sum": [[3, 2, 1, 0, 0, 1], [-1, 2, 1, 0, 0, 1]],
    "a weight of 0": [[0, 2, 1, 0, 0, 1]],
    "a negative order": [[1, -1, 1, 0, 0, 1]],
    "order 0": [[1, 0, 1, 0, 0, 1]],
    "a logarithm of a negative": [[1, 1, 1, -1, 0, 1]],
    "a cube with a sign": [[1, 3, 1, -1, 0, 1]],
    "a pole within": [[1, 2, 1, 0, -1, 1]],
    "a pole at 0": [[1, 2, 0, 1, 1, 0]],
    "a negative denominator": [[1, 2, 1, 0, 1, -1]],
    "affine": [[1, 2, 2, 2, 1, 1]],
    "none": [],
    "no list": "t log t",
    "too many": [[1, 2, 1, 0, 0, 1]] * 65,
    "five numbers": [[1, 2, 1, 0, 0]],
    "a text": [[1, 2, "1/0", 0, 0, 1]],
    "no number": [[1, 2, None, 0, 0, 1]],
    "true": [[True, 2, 1, 0, 0, 1]],
}


@pytest.mark.parametrize("name", FORGED)
def test_both_checkers_refuse_terms_that_are_not_convex(name: str) -> None:
    data = {"kind": "f-information", "terms": FORGED[name]}
    ctx.prec = PRECISION
    with pytest.raises(UnprovableError):
        measure_of(data, [arb(0.5)] * 2, arb(1))
    with pytest.raises((Refused, ValueError, ZeroDivisionError)):
        Measure(data, [Fraction(1, 2)] * 2, "nats")
    document = copy.deepcopy(honest("terms"))
    (view,) = (v for v in document["program"]["views"].values()
               if v["measure"]["kind"] == "f-information")  # fmt: skip
    view["measure"]["terms"] = FORGED[name]
    assert verify.disagreements(document)


@pytest.mark.parametrize("name", ["Le Cam", "Jensen", "power 1.5", "terms"])
def test_another_function_than_the_one_proved_is_another_claim(name: str) -> None:
    """A measure that is exchanged is recomputed: the file's claim does not hold of it."""
    document = copy.deepcopy(honest(name))
    assert verify.disagreements(document) == []
    (view,) = (v for v in document["program"]["views"].values()
               if v["measure"]["kind"] != "mutual information")  # fmt: skip
    view["measure"] = {"kind": "f-information", "terms": [[3, 2, 1, -1, 2, 1]]}
    assert verify.disagreements(document)
    again = claimed({k: v for k, v in document.items() if k not in ("claim", "sha256")})
    lower, upper, _ = check(again)
    assert lower <= again["claim"]["upper"]
    assert upper >= again["claim"]["lower"]


def test_a_bound_that_is_raised_is_refused() -> None:
    document = copy.deepcopy(honest("Le Cam"))
    document["claim"]["lower"] = document["claim"]["lower"] * 1.01
    assert verify.disagreements(document)


def test_differences_of_two_functions_are_named() -> None:
    certificate = problem_of(L.FInformation(TERMS)).solve().certificate
    more = L.FInformation([*TERMS[:2], (1, 0.5, 2, 1, 0, 1)])
    assert certificate.differences(problem_of(L.FInformation(TERMS))) == []
    assert "|2 t + 1|^0.4" in " ".join(certificate.differences(problem_of(more)))
    order = problem_of(L.PowerDivergence(1.5)).solve().certificate
    named = " ".join(order.differences(problem_of(L.PowerDivergence(1.25))))
    assert "of order 1.5" in named


def test_rationals_are_for_few_values_and_low_orders() -> None:
    """A short file cannot ask for sums of a thousand fractions of a thousand powers."""
    ctx.prec = PRECISION
    masses = [2 * i + 3 for i in range(1000)]
    joint = [fmpz(m * (i % 7 + 1)) for i, m in enumerate(masses)]
    total = sum(masses)
    reference = [arb(m) / total for m in masses]
    for data in ({"kind": "Vincze-Le Cam"}, {"kind": "power divergence", "order": 10**15}):
        assert measure_of(data, reference, arb(1)).exactly(joint, masses) is None
        few = measure_of(data, reference[:2], arb(1)).exactly(joint[:2], masses[:2])
        assert (few is None) == ("order" in data)
        equal = [fmpz(m) for m in masses]  # J = π q, which needs no fraction
        assert measure_of(data, reference, arb(1)).exactly(equal, masses) == 0


# ---- wrong signs -----------------------------------------------------------------------------


def tangents_hold(function: ConvexFunction, rng: np.random.Generator) -> bool:
    """Tell whether f(x) ≥ s x − f*(s) at random x, s the slope at a random t; equal at x = t."""
    ctx.prec = PRECISION
    for _ in range(50):
        t, x = (arb(float(v)) for v in np.exp(rng.normal(size=2) * 2))
        slope, conjugate = function.tangent(t)
        most = arb(2) ** 200
        below = function.value(x, arb(1), most) - (slope * x - conjugate)
        at = function.value(t, arb(1), most) - (slope * t - conjugate)
        if below < 0 or not at.contains(0):
            return False
    return True


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_tangents_are_below_any_sum_of_perspectives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(int(rng.integers(1, 4))):
        order = float(rng.choice([1.0, 2.0, rng.uniform(0.1, 0.9), rng.uniform(1.1, 5)]))
        u = rng.normal(size=2) if order == 2 else rng.random(2) * (rng.random(2) < 0.7) + 1e-3
        v = rng.random() * (rng.random() < 0.7), rng.random() + 1e-3
        rows.append([rng.random() + 1e-3, order, *map(float, u), *v])
    assert tangents_hold(ConvexFunction(rows), rng)


@pytest.mark.parametrize("wrong", ["slope", "conjugate", "determinant", "weight"])
def test_a_wrong_sign_in_a_tangent_is_seen(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above would have said of each."""
    right = ConvexFunction.tangent

    def other(self: ConvexFunction, t: arb) -> tuple[arb, arb]:
        slope, conjugate = right(self, t)
        signs = {"slope": (-1, 1), "conjugate": (1, -1), "weight": (-1, -1)}
        a, b = signs.get(wrong, (1, 1))
        return a * slope, b * conjugate

    function = ConvexFunction(TERMS_AS_LISTS)
    assert tangents_hold(function, np.random.default_rng(0))
    if wrong == "determinant":
        for term in function._terms:
            term._determinant = -term._determinant
    else:
        monkeypatch.setattr(ConvexFunction, "tangent", other)
    assert not tangents_hold(function, np.random.default_rng(0))


TERMS_AS_LISTS = [list(row) for row in TERMS]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_spoiled_measure_proves_nothing_false(name: str) -> None:
    """Of a class whose floats point the wrong way, both ends are true all the same."""
    measure = MEASURES[name][0]

    class Spoiled(type(measure)):  # type: ignore[misc]
        def value(self, joint: Any, reference: Any) -> Any:
            return 0.5 * super().value(joint, reference)

        def parameters(self, slopes: Any, reference: Any) -> Any:
            return -super().parameters(slopes, reference)

    spoiled = Spoiled.__new__(Spoiled)
    spoiled.__dict__.update(measure.__dict__)
    truth = problem_of(measure).solve()
    other = problem_of(spoiled).solve(certify=False)
    assert other.lower <= truth.upper
    assert truth.lower <= other.upper
    assert verify.disagreements(other.certificate.document()) == []


# ---- beside ----------------------------------------------------------------------------------


def test_a_proof_says_what_f_is() -> None:
    terms = [(2, 2, 1, -3, 1, 0.5), (1, 1, 1, 0, Fraction(1, 3), 1)]
    solution = problem_of(L.FInformation(terms)).solve()
    text = "\n".join(stated(solution.certificate.document()))
    assert "f(t) = 2 |t - 3|^2 (t + 0.5)^(-1) + 1 (t) log((t)/(1/3 t + 1)), less f(1), of" in text


def test_two_functions_are_two_views() -> None:
    source, d, _ = instance(np.random.default_rng(9))
    one, other = L.FInformation([(1, 2, 1, 0, 0, 1)]), L.FInformation([(1, 2, 0, 1, 1, 1)])
    rules = [cpv.LeakageCap(0.05, leakage=one), cpv.LeakageCap(0.05, leakage=other)]
    solution = cpv.MinimumDistortion(source, d, rules).solve()
    assert solution.status == "certified"
    joint = source.pmf @ solution.channel.matrix
    assert max(one.total(joint), other.total(joint)) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("name", some_at_length(NAMES, 3))
def test_a_letter_that_is_released_for_one_value_alone(name: str) -> None:
    """Zeros in the released law: f(0) is finite, and so are both ends."""
    law = np.array([[0.3, 0.0, 0.0], [0.0, 0.2, 0.1], [0.0, 0.1, 0.3]])
    d = 1 - np.eye(3)
    d[0, 1:] = d[1:, 0] = 50.0
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource(law), d, budget=0.05, leakage=MEASURES[name][0]
    )
    solution = problem.solve()
    assert solution.status == "certified"
    assert check(solution.certificate.document())[2] == "certified"


def test_what_is_drawn_as_information_is_information() -> None:
    problem = problem_of(L.JensenShannon())
    solution = problem.solve()
    assert solution.value_units == problem.units
    assert repr(solution.certificate).endswith(f"] {problem.units})")
    with pytest.raises(cpv.InputError, match="least information"):
        tradeoff([solution])


def forged(rng: np.random.Generator) -> dict[str, Any]:
    """Return a proof in which numbers of f, or what is told of the scores, are other ones."""
    document = copy.deepcopy(honest("terms"))
    del document["claim"], document["sha256"]
    (name,) = (k for k, v in document["program"]["views"].items()
               if v["measure"]["kind"] == "f-information")  # fmt: skip
    terms = document["program"]["views"][name]["measure"]["terms"]
    scores = document["dual"]["scores"][name]
    for _ in range(int(rng.integers(1, 4))):
        row = terms[rng.integers(len(terms))]
        number = rng.choice([0.0, 1.0, 2.0, -1.0, 0.5, 3.0, 1e-9, float(rng.normal())])
        row[rng.integers(6)] = float(number)
        if rng.random() < 0.5:
            scores[rng.integers(3)][rng.integers(4)] = float(rng.normal() * 10.0 ** rng.integers(4))
    return document


def outcome_of(prove: Any, document: dict[str, Any]) -> tuple[float, float] | None:
    """Return what a checker makes of a document, nothing if it refuses."""
    try:
        return prove(document)
    except (UnprovableError, Refused, ValueError, ZeroDivisionError):
        return None


def both_agree(seed: int) -> bool:
    """Assert that both checkers say the same; return whether they proved something."""
    document = forged(np.random.default_rng(seed))

    def ours(document: dict[str, Any]) -> tuple[float, float]:
        again = verify.recompute(document)
        return again["lower"], again["upper"]

    def theirs(document: dict[str, Any]) -> tuple[float, float]:
        lower, upper, _ = check(document)
        return float(lower), float(upper)

    first, second = outcome_of(ours, document), outcome_of(theirs, document)
    assert (first is None) == (second is None), document["program"]["views"]
    if first is None or second is None:
        return False
    assert first[0] <= second[1] + 1e-12
    assert second[0] <= first[1] + 1e-12
    assert first == pytest.approx(second, rel=1e-9, abs=1e-9)
    return True


def test_both_checkers_agree_of_forged_functions() -> None:
    proved = [both_agree(seed) for seed in range(25)]
    assert 5 < sum(proved) < 25


@pytest.mark.long
def test_both_checkers_agree_of_hundreds_of_forged_functions() -> None:
    assert sum(both_agree(seed) for seed in range(1000, 1400)) > 80
