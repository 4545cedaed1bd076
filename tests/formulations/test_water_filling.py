"""Reverse and boxed water-filling, and the closed Gaussian bound."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from tests.formulations.gaussian import (
    LN2,
    E,
    Q,
    S,
    contains,
    exactly,
    filled,
    random_source,
    solved,
    trace,
)
from tests.formulations.water_truth import contains as within, value_of
from tests.instances import as_covariance
from tests.lengths import rest_at_length
from tests.refusals import refused


def test_reverse_water_filling_is_exact() -> None:
    from cvxprivacy.formulations.water_filling import ReverseWaterFilling

    rng = np.random.default_rng(9)
    for number in range(12):
        values = 10 ** rng.uniform(-2, 2, int(rng.integers(1, 12)))
        budget = float(rng.uniform(0.001, 1.2) * values.sum())
        problem = ReverseWaterFilling(values, budget, units=("nats", "bits")[number % 2])
        solution = solved(problem)
        d = filled(values, min(budget, values.sum()))
        per = (1.0, LN2)[number % 2]
        assert math.isclose(solution.value, np.log(values / d).sum() / 2 / per, abs_tol=1e-11)
        assert np.allclose([float(v) for v in problem.allocation], d, rtol=1e-9)
        assert sum(problem.allocation) == min(Fraction(budget), sum(map(Fraction, values)))
        assert solution.gap <= 1e-13
        assert solution.log == ["closed form"]
        if budget < values.sum():
            assert all(v == min(problem.level, Fraction(c)) for v, c in
                       zip(problem.allocation, values, strict=True))  # fmt: skip
            price = -1 / (2 * float(problem.level)) / per
            assert math.isclose(solution.prices["budget"], price, rel_tol=1e-12)


def test_reverse_water_filling_of_a_covariance() -> None:
    from cvxprivacy.formulations.water_filling import ReverseWaterFilling

    source = random_source(19, 1, 4)
    law = source.block(source.x, source.x)
    problem = ReverseWaterFilling(law, 0.3, units="nats")
    assert math.isclose(problem.solve().value, solved(E(source, 0.3, units="nats")).value,
                        abs_tol=2e-9)  # fmt: skip
    sigma = problem.axes @ np.diag([float(v) for v in problem.allocation]) @ problem.axes.T
    same = S(source.covariance, sensitive=source.x, key=source.x)
    assert np.allclose(sigma, solved(Q(same, 0.3)).error_covariance, atol=1e-4)


def test_box_water_filling_is_optimal_and_within_its_boxes() -> None:
    from cvxprivacy.formulations.water_filling import BoxWaterFilling

    rng = np.random.default_rng(10)
    for _ in range(12):
        size = int(rng.integers(1, 9))
        gains, caps = 10 ** rng.uniform(-2, 2, size), 10 ** rng.uniform(-2, 2, size)
        total = float(rng.uniform(0.001, 1.2) * caps.sum())
        problem = BoxWaterFilling(gains, caps, total, units="nats")
        x = np.array([float(v) for v in problem.allocation])
        assert ((x >= 0) & (x <= caps * (1 + 1e-15))).all()
        assert math.isclose(x.sum(), min(total, caps.sum()), rel_tol=1e-12)
        # KKT: the marginal log is one level inside, above it at a cap, below it at 0
        marginal = gains / (1 + gains * x)
        if problem.level is not None:
            level = 1 / float(problem.level)
            inside = (x > 0) & (x < caps)
            assert np.allclose(marginal[inside], level, rtol=1e-9)
            assert (marginal[x >= caps] >= level * (1 - 1e-12)).all()
            assert (marginal[x <= 0] <= level * (1 + 1e-12)).all()
        solution = solved(problem)
        product = np.log1p(gains * x).sum()
        assert math.isclose(problem.log_product, product, rel_tol=1e-12)
        assert math.isclose(solution.value, (np.log1p(gains * caps).sum() - product) / 2,
                            rel_tol=1e-9, abs_tol=1e-12)  # fmt: skip
        assert solution.gap <= 1e-13


def test_the_kind_of_a_number_does_not_matter() -> None:
    from cvxprivacy.formulations.water_filling import BoxWaterFilling, ReverseWaterFilling

    large = [3_000_000_000, 4_000_000_000, 5_000_000_000]
    truth = ReverseWaterFilling([float(v) for v in large], 9e9).solve()
    for values in (large, np.array(large), np.array(large, float), list(np.array(large))):
        assert math.isclose(ReverseWaterFilling(values, 9e9).solve().value, truth.value)
    single = np.array([4, 1], np.float32)
    assert ReverseWaterFilling(single, np.float32(0.5)).level == Fraction(1, 4)
    box = BoxWaterFilling(single, single, np.float32(0.5))
    assert box.allocation == BoxWaterFilling([4, 1], [4, 1], Fraction(1, 2)).allocation


@pytest.mark.parametrize("seed", rest_at_length(range(8), 2))
def test_the_closed_bound_is_a_bound(seed: int) -> None:
    """Proposition 5; with equality below λ_min(Σ_X), and of scalars."""
    from cvxprivacy.formulations.water_filling import closed_gaussian_bound

    source = random_source(seed, 1 + seed % 3, 1 + seed % 4, condition=20)
    least = np.linalg.eigvalsh(source.block(source.x, source.x))[0]
    for units in ("nats", "bits"):
        for budget in (*(share * trace(source) for share in (0.05, 0.3, 0.7, 1.0)), least * 0.9):
            solution = solved(Q(source, budget, units=units), accuracy="default")
            closed = closed_gaussian_bound(source, budget, units=units)
            assert closed <= solution.upper + 1e-9
            if budget < least or len(source.x) == 1:
                assert abs(closed - solution.value) <= 2e-6


def test_what_water_is_refused() -> None:
    from cvxprivacy.formulations.water_filling import (
        BoxWaterFilling,
        ReverseWaterFilling,
        closed_gaussian_bound,
    )

    for values in ([], [0.0], [-1.0], [math.nan], "ab", None, [[1, 2], [3, 4]], [[1, 2, 3]]):
        refused_somehow(lambda v=values: ReverseWaterFilling(v, 0.5), "variances")
    for budget in (0, -1, math.nan, "a", None):
        refused_somehow(lambda b=budget: ReverseWaterFilling([1.0], b), "budget")
        refused_somehow(lambda b=budget: BoxWaterFilling([1.0], [1.0], b), "total")
        refused_somehow(lambda b=budget: closed_gaussian_bound(S.scalar(0.5), b), "budget")
    refused_somehow(lambda: BoxWaterFilling([1.0, 2.0], [1.0], 0.5), "caps")
    refused_somehow(lambda: BoxWaterFilling([0.0], [1.0], 0.5), "gains")
    same = S(np.eye(2), sensitive=[0], key=[0, 1])
    refused_somehow(lambda: closed_gaussian_bound(same, 0.5), "source")


def refused_somehow(call: Callable[[], Any], argument: str) -> None:
    with pytest.raises(cpv.InputError) as caught:
        call()
    assert caught.value.argument.startswith(argument), str(caught.value)
    assert "np." not in str(caught.value)


def reflected(powers: list[Fraction]) -> list[list[Fraction]]:
    """Return a covariance of these eigenvalues: Q diag Q of a rational reflection Q."""
    size = len(powers)
    v = [Fraction(k + 1) for k in range(size)]
    square = sum(x * x for x in v)
    q = [[int(i == j) - 2 * v[i] * v[j] / square for j in range(size)] for i in range(size)]
    return [[sum(q[i][k] * powers[k] * q[k][j] for k in range(size)) for j in range(size)]
            for i in range(size)]  # fmt: skip


@pytest.mark.parametrize(
    "least", [Fraction(1, 7), Fraction(1, 10**9), Fraction(1, 2**80), Fraction(1, 10**60)]
)
@pytest.mark.parametrize("share", [Fraction(1, 1000), Fraction(1, 3), Fraction(2)])
def test_reverse_water_filling_is_of_the_covariance_itself(
    least: Fraction, share: Fraction
) -> None:
    """Floats do not know the least eigenvalue: the value, ½ Σ log λ/D, changes with it."""
    powers = [least, Fraction(2, 3), Fraction(5)]
    budget = share * sum(powers)
    solution = cpv.ReverseWaterFilling(reflected(powers), budget, units="nats").solve(certify=False)
    level = cpv.ReverseWaterFilling(powers, budget).level
    with ctx.workprec(400):
        truth = sum((exactly(p / min(p, level or p)).log() for p in powers), arb(0)) / 2
        contains(solution, truth)
    assert solution.status == "certified"
    assert solution.certificate.program.covariance == tuple(map(tuple, reflected(powers)))


@pytest.mark.long
def test_the_closed_bound_is_below_the_value() -> None:
    for seed in range(30):
        rng = np.random.default_rng([4, seed])
        w, x = (int(k) for k in rng.integers(1, 5, size=2))
        a = rng.normal(size=(w + x, w + x)) * 10 ** rng.uniform(-3, 0, w + x)[:, None]
        source = S((a @ a.T + a @ a.T) / 2, sensitive=range(w), key=range(w, w + x))
        budget = float(rng.uniform(0.01, 1)) * float(np.trace(source.block(source.x, source.x)))
        units = ("bits", "nats")[seed % 2]
        bound = cpv.closed_gaussian_bound(source, budget, units=units)
        solution = Q(source, budget, units=units).solve(accuracy="high", certify=False)
        assert bound <= solution.upper
        if w == x == 1:
            assert math.isclose(bound, solution.lower, abs_tol=1e-11)


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_white_noise_on_a_coloured_source_can_be_filtered(rho: float) -> None:
    """Of white data white noise is optimal, once scaled; of coloured data it is not."""
    n, noise = 24, 0.2
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    covariance = rho**lags if rho else np.eye(n)
    power = np.linalg.eigvalsh(covariance)
    information = np.linalg.slogdet(np.eye(n) + covariance / noise)[1] / math.log(4) / n
    wiener = covariance @ np.linalg.inv(covariance + noise * np.eye(n))
    after = float(np.trace(covariance - wiener @ covariance))  # error of the best linear filter
    assert after / n < noise
    before, filtered = (
        cpv.ReverseWaterFilling(power, budget).solve().value / n for budget in (n * noise, after)
    )
    assert before < information - 0.1  # the noise as it is added is not optimal
    if rho:
        assert after / n < 0.5 * noise
        assert filtered < information - 0.05
    else:
        assert abs(filtered - information) < 1e-9


# ---- many coordinates, and numbers of every size ------------------------------------------

SIZES = st.one_of(
    st.floats(1e-3, 1e3),
    st.sampled_from([1, 2, 0.5, Fraction(1, 3), 5e-324, 1e-300, 1e300, 2**53 + 1]),
    st.fractions(Fraction(1, 30), 50, max_denominator=30),
)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=6),
    st.fractions(0, Fraction(11, 10)).filter(bool),
    st.booleans(),
    st.sampled_from(["bits", "nats"]),
)
def test_any_water_is_that_of_sixty_digits(
    pairs: Any, share: Fraction, boxed: bool, units: str
) -> None:
    gains, caps = zip(*pairs, strict=True)
    total = share * sum(map(Fraction, caps))
    if boxed:
        problem: Any = cpv.BoxWaterFilling(gains, caps, total, units=units)
    else:
        problem = cpv.ReverseWaterFilling(caps, total, units=units)
    solution = problem.solve(accuracy="high")
    truth, level = value_of(gains if boxed else None, caps, total, units)
    assert within(solution.lower, solution.upper, truth)
    assert (solution.status, problem.level) == ("certified", level)
    assert solution.gap <= 1e-13
    assert solution.certificate.verify()
    errors = np.diag(solution.error_covariance)
    assert errors.tolist() == [float(x) for x in problem.allocation]
    triples = zip(solution.release.gains, problem.allocation, map(Fraction, caps), strict=True)
    for gain, x, c in triples:  # a share of the least of all floats is none
        assert abs(gain - float(1 - x / c)) <= 1e-15 or c < 1e-300


def test_the_level_at_its_kinks() -> None:
    """On a flat piece of Σ x(v) the price is that of the least tightening."""
    flat = cpv.BoxWaterFilling([1, 0.25], [1, 1], total=1, units="nats")
    assert flat.level == 2  # the first box is full, and 4 is needed to wet the second
    assert flat.solve().prices["total"] == -0.25
    assert cpv.BoxWaterFilling([1, 0.25], [1, 1], total=1.5).level == 4.5
    kink = cpv.ReverseWaterFilling([1, 2, 4], 3, units="nats")
    assert (kink.level, kink.allocation) == (1, [1, 1, 1])
    assert kink.solve().prices["budget"] == -0.5
    for total in (7, 7 + Fraction(1, 10**30), 1e300):
        covered = cpv.ReverseWaterFilling([1, 2, 4], total)
        solution = covered.solve(accuracy="high")
        assert covered.level is None
        assert (solution.lower, solution.upper, solution.prices["budget"]) == (0.0, 0.0, 0.0)
    nearly = cpv.ReverseWaterFilling([1, 2, 4], 7 - Fraction(1, 10**30), units="nats")
    solution = nearly.solve()
    assert 0 < solution.lower <= 1.25e-31 < solution.upper * (1 + 1e-12)
    assert solution.prices["budget"] == -0.125


def test_ties_by_the_thousand() -> None:
    boxes = cpv.BoxWaterFilling([2.0] * 3000, [1.0] * 3000, 1500, units="nats")
    assert boxes.level == 1
    assert math.isclose(boxes.solve().value, 1500 * math.log(1.5 / 1.0), rel_tol=1e-14)
    poured = cpv.ReverseWaterFilling([1.0] * 2000 + [3.0] * 2000, 3000, units="nats")
    assert poured.level == Fraction(3, 4)
    value = 1000 * (math.log(4 / 3) + math.log(4))
    assert math.isclose(poured.solve().value, value, rel_tol=1e-14)


def solved_with_memory(kind: str, size: int) -> tuple[Any, int]:
    """Return the solution of many coordinates, and the most that Python held at a time."""
    rng = np.random.default_rng(size)
    gains, caps = 10 ** rng.uniform(-2, 2, (2, size))
    tracemalloc.start()
    try:
        if kind == "box":
            solution = cpv.BoxWaterFilling(gains, caps, 0.3 * caps.sum()).solve()
        else:
            solution = cpv.ReverseWaterFilling(caps, 0.3 * caps.sum()).solve()
        return solution, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["reverse", "box"])
def test_memory_is_that_of_the_numbers(kind: str) -> None:
    solution, most = solved_with_memory(kind, 40_000)
    assert solution.status == "certified"
    assert most < 1000 * 40_000
    assert solution.error_covariance.shape == (40_000,)  # the diagonal alone
    assert solution.duals["Σ ≼ Σ_X"].shape == solution.posteriors["W"].shape == (40_000,)
    release = solution.release
    assert release.gain.shape == release.noise.shape == (40_000,)
    drawn = release.apply(np.ones(40_000), seed=3)
    assert drawn.shape == (40_000,)
    assert abs((drawn - release.gains)[release.noises > 0] / np.sqrt(
        release.noises[release.noises > 0])).max() < 6  # fmt: skip


def test_what_needs_a_matrix_is_refused_beyond_some_size() -> None:
    problem = cpv.ReverseWaterFilling(np.arange(1.0, 302), 40, units="nats")
    solution = problem.solve(time_limit=5)
    assert solution.status == "certified"
    assert "W of 301, X of 301" in str(solution)
    assert r"\mathrm{tr}" in problem.latex
    for name in ("source", "program", "problem", "risk", "variables"):
        error = refused(lambda n=name: getattr(problem, n), "variances", "301 coordinates")
        assert "200" in error.remedy
    boxes = cpv.BoxWaterFilling(np.ones(301), np.ones(301), 40)
    refused(lambda: boxes.program, "caps", "301 coordinates")


def test_as_a_covariance_program_it_is_the_same() -> None:
    for problem in (
        cpv.ReverseWaterFilling([4, 1, 0.25], 1.25),
        cpv.BoxWaterFilling([1, 2, 4], [1, 1, 1], 1),
    ):
        dense, solution = as_covariance(problem), problem.solve(accuracy="high")
        assert dense.program.to_dict()["kind"] == "covariance"
        assert math.isclose(dense.lower, solution.lower, abs_tol=1e-15)
        assert math.isclose(dense.upper, solution.upper, abs_tol=1e-15)
        ruled = problem.with_constraint("mine", problem.variables["Sigma"][0, 0] <= 0.1)
        tighter = ruled.solve()
        assert tighter.status == "certified"
        assert tighter.certificate.proves(ruled)
        assert not tighter.certificate.proves(problem)
        (name,) = solution.prices
        curve = cpv.frontier(problem, name, between=(0.5, 1.0), tol=0.05)
        assert curve.complete


@pytest.mark.long
def test_thousands_of_numbers_of_any_size() -> None:
    """Kinks next to the level by the thousand, levels of many digits, sums of many fractions."""
    rng = np.random.default_rng(7)
    size = 1500
    near = 1 + np.arange(3000) * 2.0**-52
    fractions = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 10**9, (size, 2))]
    wide = 10.0 ** rng.uniform(-300, 300, (2, size))
    usual = rng.uniform(0.5, 2, (2, size))
    nearly = sum(map(Fraction, usual[1].tolist())) - Fraction(1, 10**40)
    for problem in (
        cpv.BoxWaterFilling(near, near[::-1].copy(), 3000),
        cpv.BoxWaterFilling(*wide, 1e100),
        cpv.BoxWaterFilling(*wide, 5e-324),
        cpv.BoxWaterFilling(*usual, Fraction(1, 10**900)),
        cpv.BoxWaterFilling(*usual, nearly),
        cpv.BoxWaterFilling(fractions, fractions[::-1], 1000),
        cpv.ReverseWaterFilling(fractions, 1000),
        cpv.ReverseWaterFilling(wide[0], 1e-290),
        cpv.ReverseWaterFilling(near, 3000),
    ):
        solution = problem.solve(accuracy="high")
        assert solution.status == "certified"
        assert solution.certificate.verify()
        assert problem.level is not None
        assert 0 <= problem.total - sum(problem.allocation) <= problem.total * Fraction(1, 2**99)
    too_little = cpv.BoxWaterFilling(*usual, Fraction(1, 10**1990))
    refused(too_little.solve, "total", "no proof can hold its level")


def test_where_all_of_many_is_full() -> None:
    caps = np.arange(1.0, 50_001)
    for problem in (
        cpv.ReverseWaterFilling(caps, caps.sum()),
        cpv.BoxWaterFilling(1 / caps, caps, 2 * caps.sum()),
    ):
        solution = problem.solve()
        assert (solution.lower, solution.upper, problem.level) == (0.0, 0.0, None)
        assert np.array_equal(solution.error_covariance, caps)
        assert not solution.release.gains.any()
        assert solution.certificate.verify()


def test_what_is_printed_of_many_is_rounded_about_once() -> None:
    rng = np.random.default_rng(9)
    for shift in (0, 8, 280):
        gains, caps = 10 ** rng.uniform(-shift - 1, shift + 1, (2, 400))
        problem = cpv.BoxWaterFilling(gains, caps, float(caps.sum() * rng.uniform(0.01, 0.99)))
        for many, exact in zip(
            problem._poured_floats(), problem._exactly_poured(range(400)), strict=True
        ):
            assert np.allclose(many, exact, rtol=1e-15, atol=0)


def test_budgets_of_a_billionth_are_certified_whatever_they_are_of() -> None:
    # ½ log₂ Π σ_i²/(D/n) where the budget is less than the least variance of each: det C is .7495
    law, budget = [[1, 0.5, 0.3], [0.5, 1, 0.2], [0.3, 0.2, 1]], 3e-12
    det = float(np.linalg.det(law))
    sources = [cpv.GaussianSource(law, sensitive=w, key=[0, 1, 2]) for w in ([0, 1, 2], [0])]
    scalar = cpv.GaussianSource.scalar(0.8)
    for problem, value in (
        (cpv.ReverseWaterFilling([3.0], 3e-9), math.log2(1e9) / 2),
        (cpv.ReverseWaterFilling([[3.0]], 3e-9), math.log2(1e9) / 2),
        (cpv.ReverseWaterFilling(law, budget), math.log2(det / 1e-36) / 2),
        (cpv.QuadraticGaussian(sources[0], budget), math.log2(det / 1e-36) / 2),
        (cpv.GaussianEquivocation(sources[1], budget), math.log2(det / 1e-36) / 2),
        (cpv.GaussianEquivocation(scalar, 1e-12), math.log2(1e12) / 2),
    ):
        solution = problem.solve()
        assert solution.status == "certified"
        assert solution.certificate.verify()
        assert solution.lower <= value + 1e-9
        assert value - 1e-9 <= solution.upper
    # D = 3e-12 over two of variance 1, and one that is covered
    mixed = cpv.ReverseWaterFilling(np.diag([1.0, 1e-13, 1.0]), 3e-12).solve(accuracy="high")
    assert mixed.status == "certified"
    assert mixed.value == pytest.approx(math.log2(2 / 2.9e-12), abs=1e-8)
