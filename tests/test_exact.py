"""From the number typed to the number proved: nothing is rounded on the way, or by a known ball."""

from __future__ import annotations

import gc
import json
import math
import pickle
import weakref
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import cvxprivacy as cpv
from cvxprivacy import exact
from cvxprivacy.programs.expression import Expression
from cvxprivacy.validation import typed
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ball, number
from tests.refusals import refused

NUMBERS = st.one_of(
    st.floats(-1e6, 1e6),
    st.integers(-(2**70), 2**70),
    st.fractions(-100, 100, max_denominator=1000),
    st.decimals(-100, 100, places=6),
)


LAW = [[0.4, 0.1], [0.1, 0.4]]


def as_fractions(values: Any) -> list[Fraction]:
    return [Fraction(v) for v in np.asarray(values, dtype=object).ravel()]


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_an_array_holds_the_numbers_that_were_typed(values: list[Any]) -> None:
    outcome = exact.array(values)
    assert as_fractions(outcome) == [Fraction(v) for v in values]
    assert (outcome.dtype == object) == any(float(v) != Fraction(v) for v in values)
    assert not outcome.flags.writeable
    assert json.loads(json.dumps([exact.written(v) for v in outcome])) == [
        float(v) if float(v) == v else str(v) for v in as_fractions(values)
    ]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8), NUMBERS)
def test_sums_and_products_are_exact(pairs: list[tuple[Any, Any]], factor: Any) -> None:
    a, b = (exact.array(list(side)) for side in zip(*pairs, strict=True))
    left, right = as_fractions(a), as_fractions(b)
    assert as_fractions(exact.plus(a, b)) == [x + y for x, y in zip(left, right, strict=True)]
    assert as_fractions(exact.times(a, factor)) == [x * Fraction(factor) for x in left]


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.lists(NUMBERS, min_size=1, max_size=5))
def test_distances_are_exact(values: list[Any], outputs: list[Any]) -> None:
    for made, power in ((cpv.squared_error, 2), (cpv.absolute_error, 1)):
        outcome = made(np.array(values, dtype=object), np.array(outputs, dtype=object)).cost
        wanted = [[abs(Fraction(a) - Fraction(b)) ** power for b in outputs] for a in values]
        assert as_fractions(outcome) == [d for row in wanted for d in row]


def test_distances_of_whole_numbers_beyond_64_bits_are_exact() -> None:
    values = [0, 1, 2**31, 2**31 + 1, 3 * 2**40]
    outcome = cpv.squared_error(values).cost
    assert as_fractions(outcome) == [Fraction((a - b) ** 2) for a in values for b in values]


def test_equal_numbers_are_one_object() -> None:
    outcome = cpv.squared_error([Fraction(i, 3) for i in range(5)]).cost
    assert outcome.dtype == object
    assert outcome[0, 2] is outcome[4, 2]
    assert outcome[1, 0] is not outcome[2, 0]


def test_what_is_known_of_an_array_is_forgotten_with_it_and_where_it_can_change() -> None:
    values = np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    assert exact.floats(values).tolist() == [1 / 3, 2 / 3]
    values[0] = Fraction(10**2001)
    assert exact.unwritable(values) == (0,)
    values[0] = Fraction(1, 7)
    assert exact.floats(values)[0] == 1 / 7
    assert exact.unwritable(values) is None
    for _ in range(50):  # other arrays in the same place
        kept = exact.array(
            [Fraction(int(k), 7) for k in np.random.default_rng(_).integers(1, 7, 3)]
        )
        assert exact.floats(kept).tolist() == [float(v) for v in kept]
        assert exact.floats(kept) is exact.floats(kept)
        del kept


def test_what_is_no_number_is_none() -> None:
    for bad in (math.nan, math.inf, "1", None, [1], 1j):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            exact.rational(bad)
    assert exact.rational(np.float32(0.1)) == Fraction(float(np.float32(0.1)))
    assert exact.rational(np.array(0.5)) == exact.rational(True) / 2
    assert exact.plain(Fraction(10) ** 400) == Fraction(10) ** 400
    assert exact.plain(Fraction(1, 2)) == 0.5
    assert isinstance(exact.plain(Fraction(1, 2)), float)


@pytest.mark.parametrize("value", [math.nan, -1, "5", None])
def test_a_number_is_refused_by_name_value_and_remedy(value: Any) -> None:
    refused(lambda: typed(value, "budget"), "budget", "pass a", value=value)


@pytest.mark.parametrize("huge", [Decimal("1e10000000"), Decimal("1e-10000000")])
def test_a_decimal_that_would_take_all_memory_is_refused(huge: Decimal) -> None:
    refused(lambda: cpv.TCloseness(huge), "t", "more than 2,000 digits")


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=2), NUMBERS)
def test_the_algebra_of_terms_is_exact(costs: list[tuple[Any, Any]], factor: Any) -> None:
    one, two = (
        Expression("t", {"W": row[0]}, np.array([row], object), constant=row[1]) for row in costs
    )
    outcome = factor * one + two
    by, (a, b), (c, d) = Fraction(factor), *([Fraction(v) for v in row] for row in costs)
    assert as_fractions(outcome.cost) == [by * a + c, by * b + d]
    assert Fraction(outcome.weights["W"]) == by * a + c
    assert Fraction(outcome.constant) == by * b + d
    document = json.loads(json.dumps(outcome.to_dict()))
    assert [number(v) for v in document["cost"][0]] == [by * a + c, by * b + d]
    assert number(document["weights"]["W"]) == by * a + c


def test_radii_add_up_to_no_less_than_their_sum() -> None:
    tiny = Expression("t", constant=1.0, constant_radius=0.1, cost=np.ones((1, 1)), cost_radius=0.1)
    outcome = sum([tiny] * 9, tiny)
    assert Fraction(outcome.constant_radius) == Fraction(outcome.cost_radius) == 10 * Fraction(0.1)
    assert Fraction((-0.3 * tiny).constant_radius) == Fraction(0.3) * Fraction(0.1)


def test_a_weight_times_a_cost_is_not_rounded_up() -> None:
    """0.1 · 3.0 is less than the float 0.30000000000000004 that was once proved."""
    source = cpv.DiscreteSource(LAW)
    problem = cpv.RateDistortionEquivocation(
        source, [[3.0, 3.0], [3.0, 3.0]], minimize={"distortion": 0.1}
    )
    solution = problem.solve()
    truth = Fraction(0.1) * 3
    assert Fraction(solution.lower) <= truth <= Fraction(solution.upper)
    assert solution.upper == math.nextafter(0.3, 1)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_weighted_sums_enclose_the_rational_truth(a: float, b: float, c: float) -> None:
    """A distortion that is c wherever one goes: Σ weights · c, in rationals."""
    source = cpv.DiscreteSource(LAW)
    measure = a * cpv.Distortion(np.full((2, 2), c)) * b
    solution = cpv.MinimumDistortion(source, measure, [cpv.KeepProbability(0.5)]).solve()
    truth = Fraction(a) * Fraction(b) * Fraction(c)
    assert Fraction(solution.lower) <= truth <= Fraction(solution.upper)
    assert solution.upper - solution.lower <= 4 * math.ulp(float(truth))


@pytest.mark.parametrize("budget", [Fraction(1, 3), Decimal("0.1"), 0.1, np.float32(0.3), 1])
def test_a_budget_is_the_number_typed(budget: Any) -> None:
    source = cpv.DiscreteSource(LAW)
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=budget)
    assert problem.program.constraints["budget"].bound == Fraction(
        *[int(part) for part in budget.as_integer_ratio()]
    )
    assert problem.solve().certificate.verify()


def test_distortions_are_exact() -> None:
    points = [0.1, 0.2, 0.7]
    squared = cpv.squared_error(points)
    assert as_fractions(squared.exact) == [
        (Fraction(x) - Fraction(y)) ** 2 for x in points for y in points
    ]
    ranks = cpv.ordinal(4)
    assert as_fractions(ranks.exact)[:4] == [Fraction(k, 3) for k in range(4)]
    both = cpv.per_attribute(
        {"a": cpv.ordinal(4), "b": squared}, weights={"a": 0.1, "b": Fraction(1, 7)}
    )
    first = as_fractions(both.exact)
    assert first[1] == Fraction(1, 7) * (Fraction(0.1) - Fraction(0.2)) ** 2
    assert first[3] == Fraction(0.1) * Fraction(1, 3)
    paths = cpv.hierarchy_distance({"a": ("u", "r", "t"), "b": ("v", "r", "t")})
    assert as_fractions(paths.exact)[1] == Fraction(2, 3)
    decimal = cpv.Distortion([[0, Decimal("0.1")], [Fraction(1, 3), 0]])
    assert as_fractions(decimal.exact)[1:3] == [Fraction(1, 10), Fraction(1, 3)]
    assert decimal.matrix.dtype == float
    assert decimal.matrix[1, 0] == 1 / 3


def test_a_budget_at_the_least_distortion_is_met_exactly() -> None:
    """Thirds: no float is a third, and a ball around one would refuse the only release."""
    source = cpv.DiscreteSource.from_counts([[5, 1], [1, 3]])
    third = Fraction(1, 3)
    problem = cpv.PrivacyDistortion(source, [[third, 1], [1, third]], budget=third)
    solution = problem.solve()
    assert solution.status == "certified"
    assert solution.value == pytest.approx(source.information(), abs=1e-9)
    assert problem.at(budget=third + Fraction(1, 10**9)).solve().value < solution.value
    with pytest.raises(cpv.InfeasibleError):
        problem.at(budget=third - Fraction(1, 10**30)).solve()


def test_floors_are_kept_exactly() -> None:
    """No leakage and floors of 1/3: K(0 | x) = 2/3 whatever x, at .6/3 + .4 · 2/3 = 7/15."""
    source = cpv.DiscreteSource.from_counts([[5, 1], [1, 3]])
    third = Fraction(1, 3)
    criteria = [cpv.KeepProbability(third), cpv.TCloseness(0)]
    solution = cpv.MinimumDistortion(source, cpv.hamming(2), criteria).solve()
    primal = solution.certificate.primal
    assert all(
        Fraction(int(primal.numerators[i, i]), primal.denominator) >= third for i in range(2)
    )
    assert solution.status == "certified"
    assert solution.value == pytest.approx(7 / 15, abs=1e-9)


@pytest.mark.parametrize(
    "criterion",
    [
        cpv.TCloseness(Fraction(1, 7)),
        cpv.LDiversity(Decimal("1.3")),
        cpv.DeltaDisclosure(Fraction(1, 3)),
        cpv.LocalPrivacy(Decimal("0.7")),
        cpv.MaximalLeakage(Fraction(1, 3)),
        cpv.LeakageCap(Fraction(1, 9)),
        cpv.PreserveMean([Fraction(1, 3), Decimal("0.1")]),
        cpv.Linear([[0, Fraction(1, 3)], [Decimal("0.1"), 0]], Fraction(1, 9)),
    ],
)
def test_criteria_take_exact_numbers(criterion: Any) -> None:
    source = cpv.DiscreteSource(LAW)
    problem = cpv.MinimumDistortion(source, cpv.hamming(2), [criterion])
    solution = problem.solve()
    assert solution.status == "certified"
    assert solution.certificate.verify()
    assert str(criterion) in str(solution)


def test_balls_of_criteria_do_not_depend_on_flints_precision() -> None:
    from flint import ctx

    source = cpv.DiscreteSource.from_counts([[5, 3], [2, 7]])
    criteria = [cpv.LDiversity(1.2), cpv.DeltaDisclosure(0.4), cpv.LocalPrivacy(1.1)]
    criteria += [cpv.RecordEntropy(2), cpv.MaximalLeakage(0.3)]
    documents = []
    for precision in (53, 128, 300):
        with ctx.workprec(precision):
            problem = cpv.MinimumDistortion(source, cpv.hamming(2), criteria)
            documents.append(problem.program.to_dict())
    assert documents[0] == documents[1] == documents[2]


def test_a_forbidding_cost_does_not_make_a_wide_enclosure_certified() -> None:
    """One cost of 1e9 among costs of 1: gaps are judged by the others."""
    rng = np.random.default_rng(0)
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(9)).reshape(3, 3))
    d = 1.0 - np.eye(3)
    plain = cpv.MinimumDistortion(source, d, [cpv.LeakageCap(0.05)]).solve()
    d[0, 2] = 1e9
    solution = cpv.MinimumDistortion(source, d, [cpv.LeakageCap(0.05)]).solve(certify=False)
    document = solution.certificate.document()
    proof = verify.proof_of(document["program"])
    assert proof.unit(0.63) == 1.0
    assert proof.unit(math.inf) == 1e9
    document["dual"]["multipliers"]["leakage_cap"] = 0.0  # proves 0 only
    loose = verify.recompute(document)
    assert loose["status"] == "loose"
    assert loose["lower"] <= 0.0 < plain.value <= loose["upper"]


def test_a_heavy_weight_does_not_either() -> None:
    source = cpv.DiscreteSource(LAW)
    problem = cpv.RateDistortionEquivocation(
        source, cpv.hamming(2), 0.2, minimize={"rate": 1.0, "leakage": 1e9}
    )
    proof = verify.proof_of(problem.program.to_dict())
    nat = 1 / math.log(2)
    assert proof.unit(0.5) == pytest.approx(nat)
    assert proof.unit(1e12) == pytest.approx(1e9 * nat)


def test_a_ball_of_a_document_contains_its_ends() -> None:
    outcome = ball("1/3", "1/7")
    third = Fraction(1, 3)
    for end in (third - Fraction(1, 7), third, third + Fraction(1, 7)):
        from flint import arb, fmpq

        assert outcome.contains(arb(fmpq(end.numerator, end.denominator)))


def test_whole_numbers_next_to_two_to_the_53_are_told_apart() -> None:
    """Once an array of integers was rounded before it was asked whether floats hold it."""
    big = 2**53
    for typed_ in (np.array([big, big + 1]), [big, big + 1], np.array([big, big + 1], np.uint64)):
        assert as_fractions(exact.array(typed_)) == [big, big + 1]
    source = cpv.DiscreteSource(LAW)
    never = cpv.Linear(np.full((2, 2), big + 1), big)
    with pytest.raises(cpv.InfeasibleError):
        cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, criteria=[never]).solve()
    always = cpv.Linear(np.full((2, 2), -big - 1), -big - 1)
    fine = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, criteria=[always]).solve()
    assert fine.status == "certified"


@pytest.mark.parametrize("flavour", ["pandas", "polars"])
def test_columns_of_frames_are_not_cast_to_each_other(flavour: str) -> None:
    library = pytest.importorskip(flavour)
    frame = library.DataFrame({"a": [2**60 + 1, 1], "b": [2.0**60, 0.5]})
    assert as_fractions(exact.array(frame)) == [2**60 + 1, 2**60, 1, Fraction(1, 2)]
    assert as_fractions(cpv.Linear(frame, 1).matrix) == [2**60 + 1, 2**60, 1, Fraction(1, 2)]
    assert as_fractions(exact.array(frame["a"])) == [2**60 + 1, 1]


def test_the_least_distortion_of_floors_that_are_no_floats_is_rounded_up() -> None:
    source = cpv.DiscreteSource(LAW)
    for floor in (Fraction(1, 3), Fraction(1, 6), Fraction(2, 7)):
        problem = cpv.PrivacyDistortion(
            source, [[1, 0], [0, 1]], budget=0.9, criteria=[cpv.KeepProbability(floor)]
        )
        assert Fraction(problem.least_distortion) >= floor
        assert problem.least_distortion <= math.nextafter(float(floor), 1)
        assert problem.at(budget=problem.least_distortion).solve().status == "certified"
        with pytest.raises(cpv.InfeasibleError):
            problem.at(budget=floor - Fraction(1, 10**20)).solve()


def test_a_floor_that_is_no_float_and_forbidden_is_named() -> None:
    criteria = [cpv.KeepProbability(Fraction(1, 3))]
    criteria += [cpv.ForbiddenMoves([[True, False], [False, False]])]  # type: ignore[list-item]
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource(LAW), cpv.hamming(2), budget=0.5, criteria=criteria
    )
    with pytest.raises(cpv.InputError, match="probability 0.333333 and is forbidden"):
        problem.solve()


@pytest.mark.parametrize("price", [1e-9, 1e-6, 1.0])
def test_a_small_price_certifies_no_wide_enclosure(price: float) -> None:
    """Once [0, 2.8e-10] of a price of 1e-9 was certified, all of it gap."""
    source = cpv.DiscreteSource(LAW)
    solution = cpv.PrivacyDistortion(source, cpv.hamming(2), price=price).solve(certify=False)
    truth = price * source.information()  # no price is worth an error until it is steep
    assert solution.lower <= min(truth, 0.5) + 1e-12
    if solution.status == "certified":
        assert solution.gap <= 2e-6 * max(price, solution.upper)


def test_a_constraint_of_cvxpy_covers_letters_that_solvers_leave_out() -> None:
    source = cpv.DiscreteSource([[0.5, 0.2, 1e-15], [0.1, 0.2 - 1e-15, 0.0]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(3), budget=0.2)
    q = problem.variables["Q"]
    assert q.shape == (3, 3)
    ruled = problem.with_constraint("mine", q[2, 2] <= 1e-16)
    assert float(ruled.solve().channel.matrix[2, 2]) <= 0.1


def test_a_radius_counts_where_all_costs_are_next_to_zero() -> None:
    term = Expression("t", {"W": 1}, np.zeros((2, 2)), cost_radius=2.0**-100)
    assert term.to_dict()["cost"] is not None
    source = cpv.DiscreteSource(LAW)
    rows = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.LDiversity(2)]).program.constraints
    assert (
        rows["l_diversity"].expression.cost is not None
        or not rows["l_diversity"].expression.cost_radius
    )


def test_an_array_of_floats_is_kept_by_nobody() -> None:
    values = exact.array(np.arange(3.0))
    exact.floats(values)
    there = weakref.ref(values)
    del values
    gc.collect()
    assert there() is None


def test_what_somebody_can_still_write_to_is_copied() -> None:
    """An array that is read-only may have a part that is not, or be made writable again."""
    for dtype in (float, object):
        values = np.array([[0, Fraction(1, 4)], [Fraction(1, 4), 0]], dtype=dtype)
        part = values[:]
        values.flags.writeable = False
        outcome = exact.array(values)
        expected = exact.floats(outcome).tolist()
        part[0, 1] = Fraction(-7) if dtype is object else -7.0
        assert exact.floats(outcome).tolist() == expected == [[0.0, 0.25], [0.25, 0.0]]
        with pytest.raises(cpv.InputError, match="negative"):
            cpv.Distortion(values)
        assert exact.array(outcome) is outcome  # its own are not copied again


def test_what_repeats_is_written_once_however_it_is_held() -> None:
    """A pickled cost no longer knows that its layers were one."""
    table = np.arange(6.0).reshape(2, 3)
    written = []
    for full in (np.broadcast_to(table, (4, 2, 3)), np.stack([table] * 4)):
        cost = Expression("e", cost=full).to_dict({})["cost"]
        written.append(cost)
        assert cost == [table.tolist()]
        again = pickle.loads(pickle.dumps(Expression("e", cost=full)))
        assert again.to_dict({})["cost"] == cost
    assert np.array_equal(exact.alike(np.stack([table, table + 1])), [table, table + 1])
