"""Edges of floats on a curve: next to a solved point, next to 0, beyond every number."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import cvxprivacy as cpv
from cvxprivacy.certificates import verify
from cvxprivacy.certificates.balls import ceil, floor
from cvxprivacy.criteria.privacy import _exponential
from cvxprivacy.frontiers.ends import _between
from cvxprivacy.frontiers.family import Family
from tests.lengths import rest_at_length

TINY = 5e-324  # the least float above 0


def counted(shape: tuple[int, int] = (3, 5)) -> cpv.DiscreteSource:
    return cpv.DiscreteSource.from_counts(np.random.default_rng(3).integers(1, 30, shape))


def gaussian(key: int, seed: int = 1) -> cpv.GaussianSource:
    """Return one W and some X, coupled."""
    factor = np.random.default_rng(seed).normal(size=(key + 1, key + 3))
    return cpv.GaussianSource(factor @ factor.T, sensitive=[0], key=range(1, key + 1))


def spread(source: cpv.GaussianSource) -> float:
    return float(np.trace(source.block(source.x, source.x)))


def leaking(key: int) -> cpv.GaussianEquivocation:
    source = gaussian(key)
    return cpv.GaussianEquivocation(source, 0.3 * spread(source), max_leakage=0.9)


def rated(key: int) -> cpv.GaussianEquivocation:
    source = gaussian(key)
    budget = 0.3 * spread(source)
    return cpv.GaussianEquivocation(source, budget, minimize="leakage", max_rate=1.5, units="nats")


def quadratic(key: int, **options) -> cpv.QuadraticGaussian:
    source = gaussian(key)
    return cpv.QuadraticGaussian(source, 0.3 * spread(source), **options)


def near(x: float, steps: int = 3) -> list[float]:
    """Return a number and its neighbours among floats."""
    found = [x]
    for side in (-math.inf, math.inf):
        other = x
        for _ in range(steps):
            other = math.nextafter(other, side)
            found.append(other)
    return sorted(found)


def check_releases(curve: cpv.Frontier, places: list[float]) -> None:
    """Prove, wherever a release is known, that one within the bound achieves the inner curve."""
    checked = 0
    for x in places:
        inner = curve.inner(x)
        if inner == math.inf:
            with pytest.raises(cpv.InputError, match="no release is known"):
                curve.solution_at(x)
            continue
        solution = curve.solution_at(x)
        assert solution.release is not None
        assert solution.upper <= inner + 1e-12 * abs(inner)
        assert curve.outer(x) <= solution.upper
        assert solution.certificate.verify()
        row = solution.certificate.program.rows.get(curve.parameter)
        if row is not None and not row.per_output:
            assert row.bound == Fraction(x)  # the proof is of the very number asked
        checked += 1
    assert checked


# ---- next to a solved point ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        (quadratic(1), "budget"),
        (quadratic(3), "budget"),
        (quadratic(5, units="nats"), "budget"),
        (leaking(3), "max_leakage"),
        (leaking(6), "max_leakage"),
        (rated(6), "max_rate"),
        (rated(2), "budget"),
        (cpv.PrivacyDistortion(counted(), cpv.hamming(5), budget=0.3), "budget"),
        (
            cpv.MinimumDistortion(counted(), cpv.hamming(5), [cpv.LeakageCap(0.1)]),
            "leakage_cap",
        ),
        (
            cpv.MinimumDistortion(counted(), cpv.hamming(5), [cpv.MaximalLeakage(0.1)]),
            "maximal_leakage",
        ),
        (
            cpv.PrivacyDistortion(
                counted(),
                cpv.absolute_error(range(5)),
                budget=1.0,
                criteria=[cpv.LeakageCap(0.03)],
            ),
            "budget",
        ),
    ],
)
def test_a_release_next_to_a_solved_point_achieves_the_curve(problem, name):
    """One ulp to the left of a point the share of the other release is 2⁻⁵³ or less."""
    curve = cpv.frontier(problem, name, tol=0.1)
    chosen = [curve.points[0], *curve.points[1 : -1 : max(1, len(curve.points) // 3)]]
    places = [x for point in [*chosen, curve.points[-1]] for x in near(point.x)]
    first, last = curve.curve.stretch()
    check_releases(curve, [*places, *np.random.default_rng(0).uniform(first, last, 3).tolist()])


@pytest.mark.parametrize("width", [2, 3, 1000])
@pytest.mark.parametrize("problem", [quadratic(3), leaking(3)])
def test_a_stretch_of_few_floats(problem, width):
    name = "budget" if isinstance(problem, cpv.QuadraticGaussian) else "max_leakage"
    start = 1.3
    end = start + width * math.ulp(start)
    curve = cpv.frontier(problem, name, points=[start, end, start])
    assert [point.x for point in curve.points] == [start, end]
    check_releases(curve, [*near(start, 2), *near(end, 2)])


def test_a_share_below_every_float():
    curve = cpv.frontier(quadratic(3), points=[0.0, 2.5])
    assert float(curve.curve.mixture(TINY)[2]) in (0.0, TINY)
    check_releases(curve, [*near(0.0), 1e-300, 1e-17])
    short = cpv.frontier(quadratic(3), points=[0.0, 10 * TINY])
    check_releases(short, [k * TINY for k in range(12)])
    problem = cpv.PrivacyDistortion(counted(), cpv.hamming(5), budget=0.3)
    check_releases(cpv.frontier(problem, points=[0.0, 0.5]), [*near(0.0), 1e-300, 1e-17])


def test_mixed_roots_are_one_covariance():
    """For one X the closed form below D_max has another root than the release at D_max."""
    problem = quadratic(1)
    most = spread(gaussian(1))
    curve = cpv.frontier(problem, points=[0.4 * most, 2 * most])
    roots = {str(point.solution.certificate.primal.root) for point in curve.points}
    assert len(roots) == 2
    first, last = (point.solution.error_covariance[0, 0] for point in curve.points)
    middle = curve.solution_at(1.2 * most)
    assert middle.error_covariance[0, 0] == pytest.approx((first + last) / 2, rel=1e-12)
    check_releases(curve, [0.7 * most, 1.2 * most, *near(2 * most)])


# ---- next to 0 -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "criterion", [cpv.MaximalLeakage, cpv.LocalPrivacy, cpv.TCloseness, cpv.LeakageCap]
)
def test_a_release_at_numbers_next_to_zero(criterion):
    """Where a ball around e^b cannot tell it from 1, a release that reveals nothing is allowed."""
    problem = cpv.MinimumDistortion(counted(), cpv.hamming(5), [criterion(0.3)])
    curve = cpv.frontier(problem, criterion.name, tol=0.3)
    check_releases(curve, [0.0, TINY, 3 * TINY, 1e-300, 1e-17, 1e-16, 1e-15])
    assert curve.release_at(TINY) is not None


@pytest.mark.parametrize("criterion", [cpv.MaximalLeakage, cpv.LocalPrivacy])
@pytest.mark.parametrize("number", [TINY, 1e-300, 1e-17, 1e-16])
def test_next_to_no_leakage_is_certified(criterion, number):
    problem = cpv.MinimumDistortion(counted(), cpv.hamming(5), [criterion(number)])
    solution = problem.solve()
    assert solution.status == "certified"
    assert solution.lower <= problem.greatest_distortion <= solution.upper + 1e-15
    assert solution.certificate.verify()


def test_an_exponential_is_enclosed_and_never_below_one():
    for x in (TINY, 1e-300, 1e-17, 1e-16, 1.2e-16, 2e-16, 3e-16, 1e-9, 0.3, 5.0, 690.0):
        value, radius = map(Fraction, _exponential(arb(x)))
        assert value - radius >= 1
        true = arb(x).exp()
        assert ceil(true) <= value + radius + Fraction(math.ulp(float(value)))
        assert value - radius <= floor(true) + Fraction(math.ulp(float(value)))
    assert _exponential(arb(0)) == (1.0, 0.0)


@pytest.mark.parametrize("kind", ["ratio", "maximum"])
def test_an_auxiliary_that_is_just_kept_is_told_from_one_that_is_just_broken(kind):
    """In balls of 128 bits 3 · 2²⁰⁰ and 3 · 2²⁰⁰ + 1 are the same."""
    criterion = cpv.LocalPrivacy(1.0) if kind == "ratio" else cpv.MaximalLeakage(1.0)
    source = cpv.DiscreteSource([[0.3, 0.2], [0.1, 0.4]])
    document = cpv.MinimumDistortion(source, cpv.hamming(2), [criterion]).program.to_dict()
    for aux in document["auxiliaries"].values():
        aux["bound"] = [1.5, 0.0] if kind == "ratio" else [1.25, 0.0]
    proof = verify.proof_of(document)
    big = 2**200
    for more, kept in ((0, True), (1, False), (-1, True)):
        # ratios 3 : 2 of either output; Σ max = 5/4 of the whole
        (a, b), (c, d) = (3 * big, 2 * big), (2 * big, 3 * big)
        whole = 5 * big
        if kind == "maximum":
            (a, b), (c, d), whole = (5 * big, 3 * big), (3 * big, 5 * big), 8 * big
        rows = [[a + more, b - more], [c, d]]
        found = proof.upper({"numerators": rows, "denominator": whole})
        assert found.feasible is kept


def test_what_is_not_proved_at_a_number_is_refused_with_the_one_to_pass(monkeypatch):
    from cvxprivacy.frontiers import mixing

    problem = cpv.MinimumDistortion(counted(), cpv.hamming(5), [cpv.TCloseness(0.3)])
    curve = cpv.frontier(problem, "t_closeness", tol=0.3)
    monkeypatch.setattr(mixing.Ends, "take_primal", lambda *given, **named: False)
    with pytest.raises(cpv.InputError, match="no release is proved at t_closeness 0.01; pass 0.0"):
        curve.release_at(0.01)


def test_exponentials_that_balls_cannot_tell_apart():
    problem = cpv.MinimumDistortion(counted(), cpv.hamming(5), [cpv.MaximalLeakage(0.3)])
    curve = cpv.frontier(problem, "maximal_leakage", points=[0.0, 2 * TINY, 1e-300, 1.0])
    check_releases(curve, [TINY, 2 * TINY, 3 * TINY, 1e-310, 1e-300, 1e-200])


@pytest.mark.parametrize("units", ["bits", "nats"])
def test_an_exponential_beyond_every_float_is_refused(units):
    criteria = [cpv.MaximalLeakage(0.3)]
    problem = cpv.MinimumDistortion(counted(), cpv.hamming(5), criteria, units=units)
    curve = cpv.frontier(problem, "maximal_leakage", tol=0.3)
    for ask in (curve.inner, curve.outer, curve.price, curve.solution_at):
        with pytest.raises(cpv.InputError, match="out of range"):
            ask(1e6)


def scaled(size: float, key: int) -> cpv.GaussianSource:
    factor = np.random.default_rng(18).normal(size=(key + 1, key + 2))
    covariance = size * (factor @ factor.T)
    return cpv.GaussianSource(covariance, sensitive=[0], key=range(1, key + 1))


def test_gaussian_budgets_next_to_zero():
    """Newton's steps overflow there, and a view that X determines has no posterior."""
    for size, key in ((1e-12, 2), (1e-100, 2), (1e-12, 3)):
        problem = cpv.QuadraticGaussian(scaled(size, key), 0.0)
        curve = cpv.frontier(problem, points=[TINY, 0.1 * size, size])
        assert "infeasible" not in [point.status for point in curve.points]
        assert curve.points[-1].status == "certified"
        check_releases(curve, [0.5 * size, 0.9 * size, *near(size, 1)])
    source = scaled(1e-100, 3)
    problem = cpv.GaussianEquivocation(source, 1e-20 * spread(source), max_leakage=1e-9)
    for cap in (0.1, 1.0):
        found = problem.at(max_leakage=cap).solve(certify=False)
        assert found.lower <= found.upper


# ---- where a curve ends --------------------------------------------------------------------


def test_a_floor_that_costs_nothing_only_at_zero(monkeypatch):
    """Towards 0 halving passes a thousand floats and never ends: [5e-324, 0] has no middle."""
    count, at = 0, Family.at

    def counting(self, x):
        nonlocal count
        count += 1
        assert count < 500, "a search without end"
        return at(self, x)

    monkeypatch.setattr(Family, "at", counting)
    criteria = [cpv.KeepProbability(0.3)]
    problem = cpv.PrivacyDistortion(counted(), cpv.hamming(5), budget=0.9, criteria=criteria)
    curve = cpv.frontier(problem, "keep_probability", tol=0.3)
    assert curve.curve.stretch() == (0.0, 1.0)
    assert curve.inner(0.0) == 0.0


def test_the_middle_among_floats():
    assert _between(0.0, TINY) == 0.0  # no float is strictly between
    assert _between(0.0, 2 * TINY) == TINY
    assert _between(1.0, 4.0) == 2.0
    for a, b in ((0.0, 1.0), (1.0, 0.0), (1e-300, 64.0), (0.0, 1.7e308)):
        low, high, steps = a, b, 0
        while (middle := _between(low, high)) not in (low, high):
            low, steps = middle, steps + 1
        assert steps <= 64


def infeasible() -> list[tuple[cpv.ChannelProblem, str, set[str]]]:
    """Return problems of which nothing is feasible, whatever one number is."""

    def stated(*criteria, **options):
        return cpv.PrivacyDistortion(
            counted(), cpv.hamming(5), budget=0.5, criteria=criteria, **options
        )

    keep = cpv.KeepProbability(0.9)
    return [
        (stated(cpv.LeakageCap(0.0), keep), "budget", {"leakage_cap", "keep_probability"}),
        (stated(cpv.TCloseness(0.01), keep), "budget", {"t_closeness", "keep_probability"}),
        (
            stated(cpv.TCloseness(0.1), cpv.LocalPrivacy(0.1), keep),
            "t_closeness",
            {"local_privacy", "keep_probability"},
        ),
        (
            stated(cpv.MaximalLeakage(0.1), keep),
            "keep_probability",
            {"budget", "maximal_leakage"},
        ),
        (
            stated(cpv.MaximalLeakage(0.1), keep, cpv.TCloseness(0.1)),
            "t_closeness",
            {"maximal_leakage", "keep_probability"},
        ),
        (
            stated(cpv.LocalPrivacy(0.1), keep, cpv.MaximalLeakage(1.0)),
            "maximal_leakage",
            {"local_privacy", "keep_probability"},
        ),
        (
            stated(cpv.LocalPrivacy(0.1), keep, cpv.TCloseness(0.001)),
            "local_privacy",
            {"t_closeness", "keep_probability"},
        ),
    ]


@pytest.mark.parametrize(("problem", "name", "conflict"), rest_at_length(infeasible(), 4))
def test_an_infeasible_problem_is_said_to_be_so(problem, name, conflict):
    with pytest.raises(cpv.InfeasibleError) as solved:
        problem.solve()
    with pytest.raises(cpv.InfeasibleError) as found:
        cpv.frontier(problem, name, tol=0.1)
    error = found.value
    assert set(error.conflict) == conflict
    assert name not in error.conflict  # its number does not matter
    assert "cannot hold together" in str(error)
    if set(solved.value.conflict) == conflict and problem.named_criteria().get(name) is None:
        assert str(error) == str(solved.value)
    assert error.certificate.status == "infeasible"
    assert set(error.certificate.program.rows) == set(problem.program.rows)
    assert error.certificate.verify()


def test_an_infeasible_gaussian_problem_is_said_to_be_so():
    source = cpv.GaussianSource(
        np.array([[2.0, 0.9, 0.3], [0.9, 1.0, 0.2], [0.3, 0.2, 1.5]]), sensitive=[0], key=[1, 2]
    )
    problem = cpv.GaussianEquivocation(source, 0.5, max_rate=0.01, max_leakage=1.0)
    with pytest.raises(cpv.InfeasibleError) as solved:
        problem.solve()
    with pytest.raises(cpv.InfeasibleError) as found:
        cpv.frontier(problem, "max_leakage", tol=0.1)
    assert str(found.value) == str(solved.value)
    assert found.value.conflict == ["budget", "max_rate"]
    assert set(found.value.certificate.program.rows) == {"budget", "max_rate", "max_leakage"}
    assert found.value.certificate.verify()
    with pytest.raises(cpv.InfeasibleError, match="budget 0.5 and max_rate 0.02 cannot hold"):
        cpv.frontier(problem, "max_rate", points=[0.005, 0.02])


def test_an_infeasible_surface_is_said_to_be_so():
    criteria = [cpv.KeepProbability(0.9), cpv.TCloseness(0.0)]
    problem = cpv.RateDistortionEquivocation(
        counted(), cpv.hamming(5), budget=0.3, max_leakage=0.5, criteria=criteria
    )
    with pytest.raises(cpv.InfeasibleError) as found:
        cpv.surface(problem, ("budget", "max_leakage"))
    assert set(found.value.conflict) == {"keep_probability", "t_closeness"}
    assert set(found.value.certificate.program.rows) == set(problem.program.rows)
    assert found.value.certificate.verify()


def test_a_curve_without_any_release_known_is_said_to_be_so(monkeypatch):
    from cvxprivacy.proving.certificate import Prover

    monkeypatch.setattr(Prover, "take_primal", lambda *given, **named: False)
    criteria = [cpv.LeakageCap(0.1)]
    problem = cpv.MinimumDistortion(counted(), cpv.hamming(5), criteria)
    with pytest.raises(cpv.CertificationError, match="no release was found") as found:
        cpv.frontier(problem, "leakage_cap", tol=0.1)
    assert found.value.upper == math.inf
    pair = cpv.RateDistortionEquivocation(counted(), cpv.hamming(5), budget=0.3, max_leakage=0.5)
    with pytest.raises(cpv.CertificationError, match="no release was found"):
        cpv.surface(pair, ("budget", "max_leakage"))


def test_a_closed_form_has_no_curve_and_says_what_has():
    problem = cpv.HammingWaterFilling([0.5, 0.3, 0.2], 0.2)
    with pytest.raises(cpv.InputError, match=r"pass its channel_problem\(\)"):
        cpv.frontier(problem, "budget")
    assert cpv.frontier(problem.channel_problem(), "budget", tol=0.05).complete
