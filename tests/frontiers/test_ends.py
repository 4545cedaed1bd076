"""Where curves begin and end, releases next to solved points and to 0, and what is infeasible."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import cvxprivacy as cpv
from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.frontiers import parametric
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.sweep import INACTIVE_END, _float_between, solve_task
from tests import referee
from tests.frontiers.instances import (
    D5,
    H5,
    THREE,
    TINY,
    check_exactly,
    check_releases,
    counted,
    gaussian,
    least_distortion,
    least_risk,
    near,
    quadratic,
    region,
    total_variance,
)
from tests.lengths import rest_at_length, some_at_length

# ---- the feasibility end and the inactive end ------------------------------------------------


def test_the_ends_are_closed():
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1]])
    outputs = [0.5, 1.5, 2.5]  # no letter keeps its place
    error = cpv.absolute_error([0, 1, 2, 3], outputs=outputs)
    problem = cpv.PrivacyDistortion(source, error, budget=0.8)
    curve = cpv.frontier(problem)
    assert curve.tol == pytest.approx(1e-3 / math.log(2))  # a thousandth of a nat, in bits
    assert curve.complete
    first, last = curve.points[0], curve.points[-1]
    assert first.x == problem.least_distortion == 0.5
    assert first.price == -math.inf
    assert curve.inner(math.nextafter(0.5, 0)) == math.inf
    assert last.upper <= 1e-12
    assert last.lower == 0.0
    assert curve.inner(100.0) == last.upper
    # the least distortion without any leakage, by a linear program of its own
    n, m = 4, 3
    stochastic = np.kron(np.eye(n), np.ones(m))
    silent = np.kron(source.pmf[0] - source.p_w[0] * source.p_x, np.eye(m))
    cost = (source.p_x[:, None] * problem.alphabet.d.matrix).ravel()
    right = np.repeat([1.0, 0.0], [n, m])
    least = linprog(cost, A_eq=np.vstack([stochastic, silent]), b_eq=right)
    assert last.x == pytest.approx(least.fun, abs=1e-7)
    assert last.x < problem.greatest_distortion - 0.05


def test_where_no_letters_look_the_same_only_a_constant_reveals_nothing():
    source = counted(shape=(4, 3))
    problem = cpv.PrivacyDistortion(source, cpv.absolute_error(range(3)), budget=0.3)
    last = cpv.frontier(problem, tol=0.1).points[-1]
    assert last.x == pytest.approx(problem.greatest_distortion, rel=1e-12)


@pytest.mark.long
def test_the_cap_begins_at_no_leakage_and_ends_where_it_costs_nothing():
    problem = least_distortion(cpv.LeakageCap(0.1), distortion=D5)
    curve = cpv.frontier(problem, "leakage_cap", tol=0.02)
    assert curve.solved_range == (0.0, pytest.approx(counted().information(), abs=1e-9))
    assert curve.points[-1].upper == 0.0
    check_exactly(curve, 50)


LEAKS = cpv.leakage
FROM_NO_LEAKAGE = {  # where letters look alike, so that the first point is no constant
    "hockey-stick": (LEAKS.HockeyStick(1.25), 0.0, 20),
    "guess": (LEAKS.GuessingProbability(), 164 / 357, 20),
    "maximal": (LEAKS.Maximal(), 1.0, 25),
    "variation": (LEAKS.TotalVariation(), 0.0, 20),
    "Sibson": (LEAKS.Sibson(2), 1.0, 55),
}


@pytest.mark.parametrize("name", rest_at_length(FROM_NO_LEAKAGE, 1))
def test_caps_in_other_measures_begin_at_what_is_leaked_without_a_release(name):
    """Bounds next to the first, of which the optimum falls steeply, are not tried for ever."""
    measure, first, most = FROM_NO_LEAKAGE[name]
    counts = np.random.default_rng(5).integers(1, 50, (3, 6))
    source = cpv.DiscreteSource.from_counts(counts)
    problem = cpv.MinimumDistortion(
        source, cpv.hamming(6), [cpv.LeakageCap(first, leakage=measure)]
    )
    curve = cpv.frontier(problem, "leakage_cap", tol=1e-3, max_solves=most)
    assert curve.complete
    assert curve.solves <= most
    start = curve.points[0]
    assert 0 <= start.x - first <= 1e-15
    assert start.status == "certified"
    assert start.price == -math.inf
    assert start.upper < 1 - max(source.p_x) - 1e-3
    check_exactly(curve, 20)


def test_a_feasibility_end_where_other_constraints_decide():
    curve = cpv.frontier(least_risk(cpv.LeakageCap(0.03)))
    least = least_distortion(cpv.LeakageCap(0.03), distortion=D5).solve()
    low, high = curve.edge
    assert low <= least.upper
    assert least.lower <= high == curve.points[0].x
    assert high - low < 1e-5
    assert curve.points[0].upper <= 0.03
    assert "edge    feasibility begins between" in str(curve)
    check_exactly(curve, 50)
    for x in (0.6, 0.8):  # a mixture keeps the other constraint too
        solution = curve.solution_at(x)
        referee.check(solution, status=solution.status)
        assert float(solution.risk) <= 0.03


def test_an_infeasible_stretch_is_infinite_on_both_curves():
    problem = least_risk(cpv.LeakageCap(0.03))
    curve = cpv.frontier(problem, points=[0.2, 0.4, 0.6, 0.8])
    assert [p.status for p in curve.points] == ["infeasible"] * 2 + ["certified"] * 2
    assert curve.edge == (0.4, 0.6)
    assert curve.outer([0.1, 0.2, 0.4]).tolist() == [math.inf] * 3
    assert curve.inner([0.1, 0.4, 0.5]).tolist() == [math.inf] * 3
    assert curve.outer(0.5) >= curve.points[2].lower  # feasible or not
    assert curve.inner(0.7) < math.inf
    assert math.isfinite(curve.band)
    for ask in (curve.release_at, curve.price):
        with pytest.raises(cpv.InputError, match=r"no release is known at budget 0.5") as caught:
            ask(0.5)
        assert (caught.value.argument, caught.value.value) == ("x", 0.5)
    full = cpv.frontier(problem, between=(0.1, 0.7), tol=0.01)  # finds the edge by itself
    assert full.complete
    assert full.solved_range[0] == pytest.approx(0.523086, abs=1e-5)


def test_a_constant_curve_is_one_point():
    source = cpv.DiscreteSource(np.outer([0.3, 0.7], [0.2, 0.3, 0.5]))
    curve = cpv.frontier(cpv.PrivacyDistortion(source, cpv.hamming(3), budget=0.3))
    assert curve.band <= 1e-30
    assert curve.inner([0.0, 0.3, 2.0]) == pytest.approx([0.0, 0.0, 0.0], abs=1e-30)
    assert curve.outer([0.0, 0.3, 2.0]).tolist() == [0.0, 0.0, 0.0]


def test_a_gaussian_rate_has_no_first_point():
    problem = cpv.GaussianEquivocation(cpv.GaussianSource.scalar(0.8), 0.5)
    with pytest.raises(cpv.InputError) as caught:
        cpv.frontier(problem)
    assert caught.value.argument == "between"
    curve = cpv.frontier(problem, between=(0.05, None), tol=0.02)
    for d in np.linspace(0.05, 1.0, 30).tolist():
        exact = -math.log2(d) / 2
        assert curve.outer(d) - 1e-12 <= exact <= curve.inner(d) + 1e-12


@pytest.mark.parametrize(
    ("criteria", "name"),
    [
        ([cpv.MaximalLeakage(1.3)], "maximal_leakage"),
        pytest.param([cpv.TCloseness(0.1)], "t_closeness", marks=pytest.mark.long),
        pytest.param(
            [cpv.RecordEntropy(20), cpv.LeakageCap(0.3)], "record_entropy", marks=pytest.mark.long
        ),
    ],
)
def test_a_tight_budget_makes_an_edge(criteria, name):
    problem = least_risk(*criteria, budget=0.3)
    curve = cpv.frontier(problem, name, tol=0.3)
    low, high = curve.edge
    assert abs(high - low) <= 1e-3 * abs(curve.points[-1].x - curve.points[0].x)
    closed, open_ = (high, low) if name == "record_entropy" else (low, high)
    with pytest.raises(cpv.InfeasibleError):
        problem.at(**{name: closed}).solve()
    assert problem.at(**{name: open_}).solve().status == "certified"
    assert curve.outer(closed) == curve.inner(closed) == math.inf
    assert curve.inner(open_) < math.inf


def test_a_floor_that_costs_nothing_only_at_zero(monkeypatch):
    """Towards 0 halving passes a thousand floats and never ends: [5e-324, 0] has no middle."""
    count, at = 0, ParametricProblem.at

    def counting(self, x):
        nonlocal count
        count += 1
        assert count < 500, "a search without end"
        return at(self, x)

    monkeypatch.setattr(ParametricProblem, "at", counting)
    problem = least_risk(cpv.KeepProbability(0.3), distortion=H5, budget=0.9)
    curve = cpv.frontier(problem, "keep_probability", tol=0.3)
    assert curve.solved_range == (0.0, 1.0)
    assert curve.inner(0.0) == 0.0


@pytest.mark.parametrize(
    ("criterion", "sign"), [(cpv.TCloseness(0.1), -1), (cpv.KeepProbability(0.3), 1)]
)
def test_the_inactive_end_of_a_criterion_is_tight(criterion, sign):
    problem = least_risk(criterion, distortion=H5, budget=0.5)
    parametric = ParametricProblem(problem, criterion.name)
    (record,) = solve_task(parametric, INACTIVE_END)["points"]
    primal = parametric.solution(record["x"], record).certificate.primal
    assert parametric.allows(record["x"], primal)
    assert not parametric.allows(record["x"] * (1 + sign * 1e-9), primal)


def test_the_middle_among_floats():
    assert _float_between(0.0, TINY) == 0.0  # no float is strictly between
    assert _float_between(0.0, 2 * TINY) == TINY
    assert _float_between(1.0, 4.0) == 2.0
    for a, b in ((0.0, 1.0), (1.0, 0.0), (1e-300, 64.0), (0.0, 1.7e308)):
        low, high, steps = a, b, 0
        while (x := _float_between(low, high)) not in (low, high):
            low, steps = x, steps + 1
        assert steps <= 64


# ---- next to a solved point ----------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("problem", "name"),
    some_at_length(
        [
            (quadratic(1), "budget"),
            (quadratic(5, units="nats"), "budget"),
            (region(2, max_leakage=0.9), "max_leakage"),
            (region(4, minimize="leakage", max_rate=1.5, units="nats"), "max_rate"),
            (region(2, minimize="leakage", max_rate=1.5, units="nats"), "budget"),
            (least_risk(distortion=H5, budget=0.3), "budget"),
            (least_distortion(cpv.LeakageCap(0.1)), "leakage_cap"),
            (least_distortion(cpv.MaximalLeakage(0.1)), "maximal_leakage"),
            (least_risk(cpv.LeakageCap(0.03)), "budget"),
        ],
        4,
    ),
)
def test_a_release_next_to_a_solved_point_achieves_the_curve(problem, name):
    """One ulp to the left of a point the share of the other release is 2⁻⁵³ or less."""
    curve = cpv.frontier(problem, name, tol=0.1)
    some = [curve.points[0], *curve.points[1 : -1 : max(1, len(curve.points) // 3)]]
    places = [x for point in [*some, curve.points[-1]] for x in near(point.x, 1)]
    check_releases(
        curve, [*places, *np.random.default_rng(0).uniform(*curve.solved_range, 3).tolist()]
    )


def test_a_share_below_every_float():
    curve = cpv.frontier(quadratic(3), points=[0.0, 2.5])
    check_releases(curve, [*near(0.0), 1e-300, 1e-17])
    short = cpv.frontier(quadratic(3), points=[0.0, 10 * TINY, 0.0])
    assert [point.x for point in short.points] == [0.0, 10 * TINY]
    check_releases(short, [k * TINY for k in range(12)])
    discrete = cpv.frontier(least_risk(distortion=H5), points=[0.0, 0.5])
    check_releases(discrete, [*near(0.0), 1e-300, 1e-17])


def test_a_mixture_goes_back_until_it_is_proved(monkeypatch):
    """A release that is just beyond the bound, and 2⁻²⁰⁰ of one that is well within it."""
    problem, tiny = region(3, max_leakage=0.9), Fraction(1, 2**200)
    within, beyond = (problem.at(max_leakage=x).solve() for x in (0.08, 0.23))
    program = problem.at(max_leakage=math.nextafter(beyond.leakage.lower, 0.0)).program
    primals = [(within.certificate.primal, tiny), (beyond.certificate.primal, 1 - tiny)]
    mixed = parametric.mixture(program, "default", primals, [], beyond.upper)
    assert mixed.upper == pytest.approx(beyond.upper, rel=1e-6)
    monkeypatch.setattr(parametric, "INWARD", (None,))
    assert parametric.mixture(program, "default", primals, [], beyond.upper).primal is None


def test_mixed_roots_are_one_covariance():
    """A release between the last of the curve and the one that tells nothing, for one X."""
    most = total_variance(gaussian(1))
    curve = cpv.frontier(quadratic(1), points=[0.4 * most, 2 * most])
    first, last = (point.solution.error_covariance[0, 0] for point in curve.points)
    mixed = curve.solution_at(1.2 * most)
    assert mixed.error_covariance[0, 0] == pytest.approx((first + last) / 2, rel=1e-12)
    check_releases(curve, [0.7 * most, 1.2 * most, *near(2 * most)])


# ---- next to 0, and beyond every float -------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "criterion",
    rest_at_length([cpv.MaximalLeakage, cpv.LocalPrivacy, cpv.TCloseness, cpv.LeakageCap], 3),
)
def test_a_release_at_numbers_next_to_zero(criterion):
    """Where a ball around e^b cannot tell it from 1, a release that reveals nothing is allowed."""
    curve = cpv.frontier(least_distortion(criterion(0.3)), criterion.name, tol=0.3)
    check_releases(curve, [0.0, TINY, 3 * TINY, 1e-300, 1e-17, 1e-16, 1e-15])
    assert curve.release_at(TINY) is not None


def test_what_is_not_proved_at_a_number_is_refused_with_the_one_to_pass(monkeypatch):
    curve = cpv.frontier(least_distortion(cpv.TCloseness(0.3)), "t_closeness", tol=0.3)
    monkeypatch.setattr(parametric.BestBounds, "take_primal", lambda *value, **named: False)
    with pytest.raises(cpv.InputError, match="no release is proved at t_closeness 0.01; pass 0.0"):
        curve.release_at(0.01)


def test_exponentials_that_balls_cannot_tell_apart():
    problem = least_distortion(cpv.MaximalLeakage(0.3))
    curve = cpv.frontier(problem, "maximal_leakage", points=[0.0, 2 * TINY, 1e-300, 1.0])
    check_releases(curve, [TINY, 2 * TINY, 3 * TINY, 1e-310, 1e-300, 1e-200])


@pytest.mark.parametrize("units", ["bits", "nats"])
def test_an_exponential_beyond_every_float_is_refused(units):
    problem = least_distortion(cpv.MaximalLeakage(0.3), units=units)
    curve = cpv.frontier(problem, "maximal_leakage", tol=0.3)
    for ask in (curve.inner, curve.outer, curve.price, curve.solution_at):
        with pytest.raises(cpv.InputError, match="out of range") as caught:
            ask(1e6)
        assert (caught.value.argument, caught.value.value) == ("x", 1e6)


def test_gaussian_budgets_next_to_zero():
    """Newton's steps overflow there, and a view that X determines has no posterior."""
    for size, key in ((1e-12, 2), (1e-100, 2), (1e-12, 3)):
        problem = cpv.QuadraticGaussian(gaussian(key, seed=18, size=size), 0.0)
        curve = cpv.frontier(problem, points=[TINY, 0.1 * size, size])
        assert "infeasible" not in [point.status for point in curve.points]
        assert curve.points[-1].status == "certified"
        check_releases(curve, [0.5 * size, 0.9 * size, *near(size, 1)])


# ---- nothing feasible ----------------------------------------------------------------------


def infeasible() -> list[tuple[cpv.ChannelProblem, str, set[str]]]:
    """Problems of which nothing is feasible, whatever one number is, and why."""
    keep = cpv.KeepProbability(0.9)
    other = "keep_probability"
    cases = [
        ("budget", {"leakage_cap", other}, cpv.LeakageCap(0.0)),
        ("t_closeness", {"local_privacy", other}, cpv.TCloseness(0.1), cpv.LocalPrivacy(0.1)),
        (other, {"budget", "maximal_leakage"}, cpv.MaximalLeakage(0.1)),
        ("t_closeness", {"maximal_leakage", other}, cpv.MaximalLeakage(0.1), cpv.TCloseness(0.1)),
        ("budget", {"t_closeness", other}, cpv.TCloseness(0.01)),
        ("local_privacy", {"t_closeness", other}, cpv.LocalPrivacy(0.1), cpv.TCloseness(0.001)),
    ]
    return [
        (least_risk(*criteria, keep, distortion=H5, budget=0.5), name, conflict)
        for name, conflict, *criteria in cases
    ]


@pytest.mark.long
@pytest.mark.parametrize(("problem", "name", "conflict"), rest_at_length(infeasible(), 3))
def test_an_infeasible_problem_is_said_to_be_so(problem, name, conflict):
    with pytest.raises(cpv.InfeasibleError, match="cannot hold together") as caught:
        cpv.frontier(problem, name, tol=0.1)
    error = caught.value
    assert set(error.conflict) == conflict
    assert name not in error.conflict  # its number does not matter
    assert error.certificate.status == "infeasible"
    rows = error.certificate.document()["program"]["rows"]
    assert rows.keys() == problem.program.to_dict()["rows"].keys()
    assert error.certificate.verify()


def test_an_infeasible_gaussian_problem_is_said_to_be_so():
    problem = cpv.GaussianEquivocation(THREE, 0.5, max_rate=0.01, max_leakage=1.0)
    with pytest.raises(cpv.InfeasibleError) as solved:
        problem.solve()
    with pytest.raises(cpv.InfeasibleError) as caught:
        cpv.frontier(problem, "max_leakage", tol=0.1)
    assert str(caught.value) == str(solved.value)
    assert caught.value.conflict == ["budget", "max_rate"]
    assert caught.value.certificate.proves(problem)
    assert caught.value.certificate.verify()
    with pytest.raises(cpv.InfeasibleError, match="budget 0.5 and max_rate 0.02 cannot hold"):
        cpv.frontier(problem, "max_rate", points=[0.005, 0.02])


def test_an_infeasible_stretch_is_said_with_its_reason():
    with pytest.raises(cpv.InfeasibleError, match=r"0\.5231"):
        cpv.frontier(least_risk(cpv.LeakageCap(0.03)), between=(0.1, 0.3))


@pytest.mark.long
def test_an_infeasible_surface_is_said_to_be_so():
    criteria = [cpv.KeepProbability(0.9), cpv.TCloseness(0.0)]
    problem = cpv.RateDistortionEquivocation(
        counted(), H5, budget=0.3, max_leakage=0.5, criteria=criteria
    )
    with pytest.raises(cpv.InfeasibleError) as caught:
        cpv.surface(problem, ("budget", "max_leakage"))
    assert set(caught.value.conflict) == {"keep_probability", "t_closeness"}
    assert caught.value.certificate.proves(problem)
    assert caught.value.certificate.verify()


def test_a_curve_without_any_release_known_is_said_to_be_so(monkeypatch):
    monkeypatch.setattr(Prover, "take_primal", lambda *value, **named: False)
    with pytest.raises(cpv.CertificationError, match="no release was found") as caught:
        cpv.frontier(least_distortion(cpv.LeakageCap(0.1)), "leakage_cap", tol=0.1)
    assert caught.value.upper == math.inf
    pair = cpv.RateDistortionEquivocation(counted(), H5, budget=0.3, max_leakage=0.5)
    with pytest.raises(cpv.CertificationError, match="no release was found"):
        cpv.surface(pair, ("budget", "max_leakage"))
