"""Gaussian sources and formulations: closed forms, prices, theorems by simulation, tables."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates import verify
from cvxprivacy.certificates.balls import UnprovableError
from cvxprivacy.certificates.covariance_proof import CovarianceProof
from tests.test_bad_input import refused
from tests.test_covariance_proof import check

LN2 = math.log(2)
Q, E, S = cpv.QuadraticGaussian, cpv.GaussianEquivocation, cpv.GaussianSource


def solved(problem: cpv.CovarianceProblem, *, status: str = "certified", **options: Any) -> Any:
    """Solve, and let the referee look at the solution."""
    solution = problem.solve(**{"accuracy": "high", "certify": False, **options})
    check(solution, status=status)
    return solution


def random_law(rng: np.random.Generator, size: int, condition: float) -> np.ndarray:
    vectors = np.linalg.qr(rng.normal(size=(size, size)))[0]
    law = (vectors * np.geomspace(1.0, 1 / condition, size) * 10 ** rng.uniform(-2, 2)) @ vectors.T
    return (law + law.T) / 2


def random_source(
    seed: Any, w: int, x: int, z: int = 0, condition: float = 100.0
) -> cpv.GaussianSource:
    law = random_law(np.random.default_rng(seed), w + x + z, condition)
    places = range(w + x + z)
    return S(law, sensitive=places[:w], key=places[w : w + x], side=places[w + x :])


def middle_of(solution: Any) -> float:
    return (solution.lower + solution.upper) / 2


def trace(source: cpv.GaussianSource) -> float:
    return float(np.trace(source.block(source.x, source.x)))


# ---- what must be shown ------------------------------------------------------------------


def widths(seed: int, count: int, largest: int = 30) -> np.ndarray:
    """Return the enclosures' widths in nats over random problems at high accuracy."""
    found = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        x, w = (int(k) for k in rng.integers(1, largest + 1, size=2))
        source = random_source([seed, number, 1], w, x, condition=10 ** rng.uniform(0, 12))
        budget = 10 ** rng.uniform(-3, 0) * trace(source)
        solution = Q(source, budget, units="nats").solve(accuracy="high", certify=False)
        if number % 10 == 0:
            check(solution, status=None)
        found.append(solution.gap)
    return np.array(found)


def test_enclosures_are_narrow() -> None:
    found = widths(2, 20, largest=16)
    assert np.median(found) <= 1e-9
    assert found.max() <= 1e-7


@pytest.mark.long
def test_enclosures_are_narrow_at_length() -> None:
    found = widths(1, 100)
    print(f"median {np.median(found):.2e}, 99 % {np.quantile(found, 0.99):.2e}, {found.max():.2e}")
    assert np.median(found) <= 1e-9
    assert np.mean(found <= 1e-7) >= 0.99


def test_sixty_key_and_twenty_confidential_variables() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(80, 80))
    source = S(a @ a.T / 80, sensitive=range(20), key=range(20, 80))
    check(Q(source, 0.3 * trace(source)).solve(accuracy="high"))


def test_the_scalar_bound_is_its_closed_form() -> None:
    """R = −½ log(1 − (1 − d)ρ²), and λ = 2σ_X²(1/ρ² − 1 + d) = −dD/dR."""
    rng = np.random.default_rng(1)
    for number in range(1000):
        rho, d = (float(v) for v in rng.uniform(0.01, 0.999, 2))
        rho *= float(rng.choice([-1, 1]))
        scale_w, scale_x = (float(v) for v in 10 ** rng.uniform(-2, 2, 2))
        source = S.scalar(rho, sigma_w=scale_w, sigma_x=scale_x)
        variance = Fraction(scale_x) ** 2
        units = ("nats", "bits")[number % 2]
        per = (1.0, LN2)[number % 2]
        problem = Q(source, float(variance) * d, units=units)
        solution = problem.solve(accuracy="high")
        truth = -0.5 * math.log(1 - (1 - d) * rho**2) / per
        assert abs(solution.value - truth) <= 1e-9
        assert abs(solution.lower - truth) <= 1e-9
        slope = 2 * scale_x**2 * (1 / rho**2 - 1 + d)
        assert math.isclose(-1 / solution.prices["budget"], slope * per, rel_tol=1e-6)
        if number % 50 == 0:
            check(solution)


@pytest.mark.parametrize("method", ["structured", "conic"])
@pytest.mark.parametrize("rho", [0.2, 0.95, -0.999])
@pytest.mark.parametrize("d", [0.01, 0.25, 0.5, 0.999])
def test_the_solvers_know_the_scalar_closed_form(rho: float, d: float, method: str) -> None:
    """One W and a key of two variables, one of them noise: no closed form is taken."""
    law = [[1, rho, 0], [rho, 1, 0], [0, 0, 1]]
    source = S(law, sensitive=[0], key=[1, 2])
    solution = Q(source, d, units="nats", weights=[1.0, 0.0]).solve(method=method)
    check(solution)
    assert abs(solution.value - -0.5 * math.log(1 - (1 - d) * rho**2)) <= 1e-6
    assert math.isclose(-1 / solution.prices["budget"], 2 * (1 / rho**2 - 1 + d), rel_tol=1e-2)


def test_the_papers_slopes() -> None:
    """λ = 0.716, 1.216, 1.716 at d = ¼, ½, ¾ for ρ = .95."""
    for d, slope in ((0.25, 0.716), (0.5, 1.216), (0.75, 1.716)):
        solution = Q(S.scalar(0.95), d, units="nats").solve()
        assert abs(-1 / solution.prices["budget"] - slope) < 5e-4


@pytest.mark.parametrize("seed", range(6))
def test_structured_and_conic_agree(seed: int) -> None:
    source = random_source(seed, 1 + seed % 3, 2 + seed % 4, condition=10 ** (1 + seed))
    budget = 0.05 * (1 + seed) * trace(source)
    one = Q(source, budget, units="nats").solve(method="structured")
    two = Q(source, budget, units="nats").solve(method="conic")
    check(one)
    check(two, status=None)
    assert max(one.lower, two.lower) <= min(one.upper, two.upper) + 1e-12
    assert abs(one.value - two.value) <= 1e-6


def test_cvxpy_in_sight_has_the_same_optimum() -> None:
    problem = Q(random_source(3, 2, 3), 0.3, units="nats")
    value = problem.problem.solve(solver="CLARABEL")
    assert abs(value - problem.solve().value) < 1e-6
    assert {"0 ≼ Σ", "Σ ≼ Cov(V | Z)", "budget"} == set(problem.constraints)


# ---- invariances and shape ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_only_what_matters_matters(seed: int) -> None:
    """Neither linear maps of W, nor rotations of X, nor the unit of X and D."""
    rng = np.random.default_rng(seed)
    w, x = 2, 3
    source = random_source(seed, w, x, condition=50)
    budget = 0.3 * trace(source)
    law = source.covariance
    plain = solved(Q(source, budget, units="nats"))
    maps = {
        "W": np.block([[rng.normal(size=(w, w)), np.zeros((w, x))], [np.zeros((x, w)), np.eye(x)]]),
        "X": np.block(
            [
                [np.eye(w), np.zeros((w, x))],
                [np.zeros((x, w)), np.linalg.qr(rng.normal(size=(x, x)))[0]],
            ]
        ),
        "unit": np.diag([1.0] * w + [1e-3] * x),
    }
    for name, a in maps.items():
        moved = a @ law @ a.T
        other = S((moved + moved.T) / 2, sensitive=range(w), key=range(w, w + x))
        same = solved(Q(other, budget * (1e-6 if name == "unit" else 1.0), units="nats"))
        assert abs(middle_of(same) - middle_of(plain)) <= 5e-9, name


@pytest.mark.parametrize("seed", range(3))
def test_less_is_said_where_more_may_be_lost_at_a_falling_price(seed: int) -> None:
    source = random_source(seed, 2, 3)
    grid = np.linspace(0.02, 1.1, 12) * trace(source)
    values, prices = [], []
    for budget in grid:
        solution = Q(source, budget, units="nats").solve(accuracy="high")
        values.append(middle_of(solution))
        prices.append(solution.prices["budget"])
    change = np.diff(values)
    assert (change <= 2e-9).all()
    assert (np.diff(change) >= -5e-9).all()
    assert (np.diff(prices) >= -1e-6).all()
    assert abs(values[-1]) <= 1e-9
    # each solution's multiplier supports the curve everywhere
    for i, price in enumerate(prices):
        assert (np.array(values) >= values[i] + price * (grid - grid[i]) - 5e-9).all()


def test_bits_are_nats() -> None:
    source = random_source(5, 2, 3, 1)
    problems: list[Callable[[str, float], cpv.CovarianceProblem]] = [
        lambda units, _: Q(source, 0.5, units=units),
        lambda units, per: E(source, 0.5, max_leakage=3 / per, units=units),
        lambda units, per: E(
            source, 0.5, minimize="leakage", max_rate=9 / per, side_information="both", units=units
        ),
    ]
    for make in problems:
        nats, bits = (solved(make(u, p)) for u, p in (("nats", 1.0), ("bits", LN2)))
        assert abs(nats.value - bits.value * LN2) <= 2e-9
        for name, term in nats.terms.items():
            unit = 1.0 if name == "distortion" else LN2
            assert math.isclose(term, float(bits.terms[name]) * unit, abs_tol=1e-6)
        assert math.isclose(nats.prices["budget"], bits.prices["budget"] * LN2, rel_tol=1e-4)
        for name in set(nats.prices) - {"budget"}:  # nats per nat, bits per bit
            assert math.isclose(nats.prices[name], bits.prices[name], rel_tol=1e-4, abs_tol=1e-8)
        for name in ("0 ≼ Σ", f"Σ ≼ {'Σ_X|Z' if make(('nats'), 1.0).given else 'Σ_X'}"):
            assert np.allclose(nats.duals[name], bits.duals[name] * LN2, atol=1e-3)


def test_duals_are_those_of_the_program_as_written() -> None:
    """∇ of the objective at Σ, the rows' and the bounds' multipliers add up to nothing."""
    source = random_source(7, 2, 3, condition=20)
    x, w = source.block(source.x, source.x), source.block(source.w, source.w)
    cross = source.block(source.w, source.x)
    for units, per in (("nats", 1.0), ("bits", LN2)):
        solution = solved(Q(source, 0.4 * trace(source), units=units))
        sigma = solution.error_covariance
        b = cross @ np.linalg.inv(x)
        left = w - cross @ b.T + b @ sigma @ b.T
        assert np.allclose(solution.posteriors["W"], left, rtol=1e-4, atol=1e-6)
        gradient = -b.T @ np.linalg.inv(left) @ b / 2 / per
        rest = gradient + solution.duals["budget"] * np.eye(3) + solution.duals["Σ ≼ Σ_X"]
        assert np.allclose(rest, solution.duals["0 ≼ Σ"], atol=1e-4)
        assert np.allclose(solution.duals["0 ≼ Σ"] @ sigma, 0, atol=1e-4)
        assert np.allclose(solution.duals["Σ ≼ Σ_X"] @ (x - sigma), 0, atol=1e-4)


def test_the_residuals_add_up_to_the_gap() -> None:
    source = random_source(8, 2, 3, 1)
    for problem in (
        Q(source, 0.3 * trace(source)),
        Q(source, 0.3 * trace(source), cap=source.block(source.x, source.x) / 2),
        E(source, 0.3, minimize="leakage", max_rate=9, side_information="both", encoder="wx"),
    ):
        for units in ("bits", "nats"):
            solution = problem.at(units=units).solve()
            found = solution.certificate.residuals
            assert set(found) == {"primal", "dual", "complementarity", "stationarity"}
            parts = found["complementarity"] + found["stationarity"]
            assert math.isclose(parts, solution.gap, rel_tol=1e-3, abs_tol=1e-10)
            assert min(found["complementarity"], found["stationarity"]) >= -1e-10


# ---- prices ------------------------------------------------------------------------------


def slope(make: Callable[[float], cpv.CovarianceProblem], at: float) -> float:
    """Return the central difference of the value at a number that is typed."""
    step = 1e-3 * at
    up, down = (middle_of(make(at + s).solve(accuracy="high")) for s in (step, -step))
    return (up - down) / (2 * step)


def priced(
    make: Callable[[float], cpv.CovarianceProblem], at: float, name: str, least: float = 1e-3
) -> None:
    solution = make(at).solve(accuracy="high")
    check(solution, status=None)
    price = solution.prices[name]
    assert price < -least, "the constraint does not bind: the test would show nothing"
    assert math.isclose(price, slope(make, at), rel_tol=1e-3)


@pytest.mark.parametrize("units", ["bits", "nats"])
@pytest.mark.parametrize("seed", range(3))
def test_the_price_of_a_budget(seed: int, units: str) -> None:
    source = random_source(seed, 2, 3)
    size = trace(source)
    priced(lambda b: Q(source, b, units=units), 0.2 * size, "budget", 1e-3 / size)
    weights = [1.0, 2.0, 0.5]
    priced(lambda b: Q(source, b, weights=weights, units=units), 0.2 * size, "budget", 1e-3 / size)
    cap = source.block(source.x, source.x) * 0.4
    priced(lambda b: Q(source, b, cap=cap, units=units), 0.2 * size, "budget", 1e-3 / size)


@pytest.mark.parametrize("units", ["bits", "nats"])
@pytest.mark.parametrize("name", ["V2", "V3", "V4"])
def test_the_price_of_an_attributes_budget(name: str, units: str) -> None:
    source = random_source(3, 2, 3)
    size = source.covariance.diagonal()
    budgets = {n: 0.2 * size[int(n[1])] for n in ("V2", "V3", "V4")}
    priced(
        lambda b: Q(source, {**budgets, name: b}, units=units),
        budgets[name],
        f"budget[{name}]",
        1e-3,
    )


@pytest.mark.parametrize("units", ["bits", "nats"])
@pytest.mark.parametrize("side", [None, "decoder"])
def test_the_prices_of_caps_on_leakage_and_rate(side: str | None, units: str) -> None:
    source = random_source(4, 2, 3, 1)
    budget = 0.1 * trace(source.conditional() if side else source)
    given: dict[str, Any] = {"side_information": side, "units": units}
    leak = E(source, budget, minimize="leakage", **given).solve(accuracy="high")
    rate = E(source, budget, minimize="rate", **given).solve(accuracy="high")
    cap = (leak.upper + float(rate.leakage)) / 2
    priced(lambda c: E(source, budget, max_leakage=c, **given), cap, "max_leakage")
    priced(lambda b: E(source, b, max_leakage=cap, **given), budget, "budget")
    cap = 1.1 * rate.upper
    priced(lambda c: E(source, budget, minimize="leakage", max_rate=c, **given), cap, "max_rate")
    priced(lambda b: E(source, b, minimize="leakage", max_rate=cap, **given), budget, "budget")


# ---- reverse water-filling, W = X --------------------------------------------------------


def filled(variances: np.ndarray, budget: float) -> np.ndarray:
    """Return D_i = min(θ, σ_i²) by bisection."""
    low, high = 0.0, float(variances.max())
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.minimum(level, variances).sum() < budget else (low, level)
    return np.minimum(high, variances)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_revealing_all_of_x_is_rate_distortion(seed: int, share: float) -> None:
    source = random_source(seed, 1, 4, condition=30)
    values = np.linalg.eigvalsh(source.block(source.x, source.x))
    budget = share * values.sum()
    d = filled(values, budget)
    truth = np.log(values / d).sum() / 2
    same = S(source.covariance, sensitive=source.x, key=source.x)
    both = E(same, budget, units="nats")
    for problem in (Q(same, budget, units="nats"), both, E(source, budget, units="nats")):
        assert abs(solved(problem).value - truth) <= 1e-8
    assert math.isclose(both.solve().leakage, truth, abs_tol=1e-6)


def test_w_may_be_a_part_of_x() -> None:
    source = random_source(2, 1, 3)
    part = S(source.covariance, sensitive=[1], key=[1, 2, 3])
    solution = solved(Q(part, 0.2, units="nats"))
    # of one variable itself: nothing but its own error counts
    truth = 0.5 * math.log(source.covariance[1, 1] / 0.2)
    assert solution.value >= truth - 1e-9
    weighted = solved(Q(part, 0.2, units="nats", weights=[1, 0, 0]))
    assert abs(weighted.value - truth) <= 1e-8


# ---- side information --------------------------------------------------------------------


@pytest.mark.parametrize("units", ["nats", "bits"])
@pytest.mark.parametrize("rho", [0.3, 0.9])
@pytest.mark.parametrize("rho_xz", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_scalar_markov_side_information(
    rho: float, rho_xz: float, share: float, units: str
) -> None:
    """R = ½ log(σ_X²(1 − ρ_XZ²)/D) and L = −½ log(1 − ρ²_WX + ρ²_WX D/σ_X²)."""
    per = 1.0 if units == "nats" else LN2
    sigma = 3.0
    source = S.scalar(rho, sigma_x=sigma, rho_xz=rho_xz)
    most = sigma**2 * (1 - rho_xz**2)
    budget = share * most
    rate = max(0.0, math.log(most / budget)) / 2 / per
    leakage = -0.5 * math.log(1 - rho**2 + rho**2 * budget / sigma**2) / per
    for side in ("decoder", "both"):
        given: dict[str, Any] = {"side_information": side, "units": units}
        one = E(source, budget, minimize="rate", **given).solve(accuracy="high")
        two = E(source, budget, minimize="leakage", **given).solve(accuracy="high")
        for solution in (one, two):
            check(solution, status=None)
            assert math.isclose(solution.distortion, budget, rel_tol=1e-7)
        assert abs(one.value - rate) <= 2e-9
        assert abs(two.value - leakage) <= 2e-9
        assert math.isclose(one.leakage, leakage, abs_tol=1e-7)
        assert math.isclose(two.rate, rate, abs_tol=1e-6)
    if share == 1.0:  # nothing is sent, and Z tells what it tells
        told = -0.5 * math.log(1 - (rho * rho_xz) ** 2) / per
        assert abs(two.value - told) <= 2e-9


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_side_information_at_one_end_is_as_good_as_at_both(encoder: str) -> None:
    source = random_source(6, 2, 2, 2)
    values = {}
    for side in ("decoder", "both"):
        problem = E(source, 0.2, side_information=side, max_leakage=3.0, encoder=encoder)
        values[side] = solved(problem, accuracy="default").value
    assert math.isclose(values["decoder"], values["both"], abs_tol=2e-6)


def test_z_is_conditioned_on_and_no_more() -> None:
    """The rate given Z is that of the source given Z; the leakage has I(W; Z) besides."""
    source = random_source(9, 2, 3, 2)
    given = source.conditional()
    told = given.covariance[:2, :2], source.covariance[:2, :2]
    i_wz = (np.linalg.slogdet(told[1])[1] - np.linalg.slogdet(told[0])[1]) / 2
    budget = 0.3 * trace(given)
    side: dict[str, Any] = {"side_information": "both", "units": "nats"}
    for minimize in ("rate", "leakage"):
        one = solved(E(source, budget, minimize=minimize, **side))
        two = solved(E(given, budget, minimize=minimize, units="nats"))
        more = i_wz if minimize == "leakage" else 0.0
        assert abs(one.value - two.value - more) <= 2e-9


def test_who_encodes_w_too_can_leak_less() -> None:
    source = random_source(10, 2, 2)
    budget = 0.3 * trace(source)
    x, wx = (
        solved(E(source, budget, minimize="leakage", encoder=encoder, units="nats"))
        for encoder in ("x", "wx")
    )
    assert wx.value <= x.value + 1e-9
    assert wx.error_covariance.shape == (2, 2)
    # and rate alone has no use for W
    rates = [solved(E(source, budget, encoder=encoder)).value for encoder in ("x", "wx")]
    assert math.isclose(*rates, abs_tol=1e-8)


def test_the_region_is_traced_by_either_cap() -> None:
    """R at leakage ℓ, and L at that rate, are the same point."""
    source = random_source(11, 2, 3)
    budget = 0.1 * trace(source)
    least = E(source, budget, minimize="leakage", units="nats").solve(accuracy="high")
    free = E(source, budget, units="nats").solve(accuracy="high")
    for share in (0.2, 0.5, 0.8):
        cap = least.upper + share * (float(free.leakage) - least.upper)
        one = solved(E(source, budget, max_leakage=cap, units="nats"))
        two = solved(E(source, budget, minimize="leakage", max_rate=one.upper, units="nats"))
        assert math.isclose(one.leakage, cap, abs_tol=1e-7)
        assert abs(two.value - cap) <= 1e-6
        assert free.value <= one.value + 1e-9
    assert math.isclose(
        E(source, budget, units="nats").entropy,
        np.linalg.slogdet(2 * math.pi * math.e * source.covariance[:2, :2])[1] / 2,
    )


@pytest.mark.parametrize("d", [0.5, 0.1, 0.01, 1e-4])
@pytest.mark.parametrize("method", ["structured", "auto"])
def test_a_cap_that_does_not_bind_does_no_harm(d: float, method: str) -> None:
    """One variable and two rows: the multipliers are not those of least squares."""
    problem = E(S.scalar(0.5), d, max_leakage=1.0, units="nats")
    solution = problem.solve(accuracy="high", method=method)
    assert abs(solution.value + 0.5 * math.log(d)) <= 1e-9
    assert abs(solution.prices["max_leakage"]) <= 1e-6
    check(solution)


# ---- the paper's propositions ------------------------------------------------------------


def unbounded(source: cpv.GaussianSource, budget: float) -> float:
    """Return the QGLB in nats without Σ ≼ Σ_X: water-filling over the eigenvalues of BᵀS⁻¹B."""
    x, w = source.block(source.x, source.x), source.block(source.w, source.w)
    b = np.linalg.solve(x, source.block(source.x, source.w)).T
    s = w - b @ x @ b.T
    gains = np.linalg.eigvalsh(b.T @ np.linalg.solve(s, b))
    gains = gains[gains > 1e-12 * gains.max()]
    low, high = 0.0, budget + 1 / gains.min()
    for _ in range(300):
        level = (low + high) / 2
        poured = np.maximum(level - 1 / gains, 0).sum()
        low, high = (level, high) if poured < budget else (low, level)
    spread = np.log1p(gains * np.maximum(low - 1 / gains, 0)).sum()
    return float(np.linalg.slogdet(w)[1] - np.linalg.slogdet(s)[1] - spread) / 2


@pytest.mark.parametrize("seed", range(6))
def test_below_the_least_eigenvalue_sigma_x_is_no_bound(seed: int) -> None:
    """Proposition 6."""
    source = random_source(seed, 1 + seed % 3, 2 + seed % 2, condition=20)
    least = np.linalg.eigvalsh(source.block(source.x, source.x))[0]
    for share in (0.1, 0.5, 0.999):
        solution = solved(Q(source, share * least, units="nats"))
        assert abs(solution.value - unbounded(source, share * least)) <= 2e-9
        assert np.abs(solution.duals["Σ ≼ Σ_X"]).max() <= 1e-4 * solution.duals["budget"]
    wide = solved(Q(source, 0.9 * trace(source), units="nats"))
    assert wide.value >= unbounded(source, 0.9 * trace(source)) - 1e-9


def test_a_density_costs_what_its_entropy_lacks() -> None:
    """h(W) given: the bound moves by the difference, and may be negative."""
    source = random_source(12, 2, 2)
    law = source.block(source.w, source.w)
    for units, per in (("nats", 1.0), ("bits", LN2)):
        h = np.linalg.slogdet(2 * math.pi * math.e * law)[1] / 2 / per
        plain = solved(Q(source, 0.3, units=units))
        same = solved(Q(source, 0.3, units=units, entropy=float(h)))
        less = solved(Q(source, 0.3, units=units, entropy=float(h) - 5))
        assert math.isclose(same.value, plain.value, abs_tol=3e-9)
        assert math.isclose(less.value, plain.value - 5, abs_tol=3e-9)
        assert math.isclose(less.risk, less.value, abs_tol=1e-9)
        assert math.isclose(less.prices["budget"], plain.prices["budget"], rel_tol=1e-4)


def test_the_bound_is_not_one_of_the_grids() -> None:
    """On 31 points at d = .5 the discretised optimum is 0.29851 < 0.30006."""
    source = S.scalar(0.95)
    grid = source.discretise(31)
    x = np.array(grid.x)
    variance = grid.p_x @ x**2
    problem = cpv.PrivacyDistortion(grid, cpv.squared_error(x), budget=variance / 2, units="nats")
    value = problem.solve().value
    bound = Q(source, 0.5, units="nats").solve().value
    assert abs(bound - 0.30006) < 1e-5
    assert value < bound
    assert abs(value - 0.29851) < 5e-4


# ---- Theorem 2, by simulation ------------------------------------------------------------

N = 200_000


def sample(source: cpv.GaussianSource, seed: int) -> np.ndarray:
    """Draw records of a law that may be singular."""
    values, vectors = np.linalg.eigh(source.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    noise = np.random.default_rng(seed).standard_normal((N, len(values)))
    return noise @ root.T + source.mean


def simulated(source: cpv.GaussianSource, problem: cpv.CovarianceProblem) -> tuple[Any, ...]:
    """Return the solution, the records, and what is released of them."""
    solution = solved(problem, accuracy="default")
    data = sample(source, 1)
    seen = [source.names.index(name) for name in solution.release.inputs]
    return solution, data, solution.release.apply(data[:, seen], seed=2)


def told(one: np.ndarray, other: np.ndarray) -> float:
    """Return I of two samples of Gaussians, in nats."""
    law = np.cov(one, other, rowvar=False)
    k = one.shape[1]
    parts = (law[:k, :k], law[k:, k:], law)
    a, b, c = (np.linalg.slogdet(part)[1] for part in parts)
    return float(a + b - c) / 2


def released_as_told(source: cpv.GaussianSource, solution: Any, data: Any, out: Any) -> None:
    """Cov(X − X̂) = Σ, E[X | X̂] = X̂, and E X̂ = E X."""
    x = data[:, source.x]
    law = source.block(source.x, source.x)
    size = np.sqrt(law.diagonal())
    room = 6 / math.sqrt(N)
    error = x - out
    found = np.cov(error, rowvar=False).reshape(law.shape)
    assert (np.abs(found - solution.error_covariance) <= room * np.outer(size, size)).all()
    assert np.trace(found) <= float(solution.distortion) + 3 * room * np.trace(law)
    assert (np.abs(out.mean(axis=0) - source.mean[list(source.x)]) <= room * size).all()
    # the error has nothing to do with what is released: the regression of X on X̂ is I
    across = (error - error.mean(axis=0)).T @ (out - out.mean(axis=0)) / N
    assert (np.abs(across) <= room * np.outer(size, size)).all()


def test_the_release_has_the_error_covariance_and_the_leakage() -> None:
    rng = np.random.default_rng(3)
    law = random_law(rng, 5, 30)
    source = S(law, sensitive=[0, 1], key=[2, 3, 4], mean=[5, -3, 100, 20, -7])
    for share in (0.05, 0.6):
        problem = Q(source, share * trace(source), units="nats")
        solution, data, out = simulated(source, problem)
        released_as_told(source, solution, data, out)
        # some direction may not be released at all: there, a little noise tells nothing
        blurred = out + 1e-6 * np.random.default_rng(4).standard_normal(out.shape)
        assert abs(told(data[:, source.w], blurred) - solution.value) <= 0.01


def test_the_release_given_z() -> None:
    source = random_source(13, 2, 2, 2, condition=30)
    given = source.conditional()
    problem = E(
        source, 0.3 * trace(given), minimize="leakage", side_information="both", units="nats"
    )
    solution, data, out = simulated(source, problem)
    assert solution.release.inputs == tuple(source.names[i] for i in source.x + source.z)
    released_as_told(source, solution, data, out)
    z = data[:, source.z]
    error = data[:, source.x] - out  # nor has it to do with Z
    across = (error - error.mean(axis=0)).T @ (z - z.mean(axis=0)) / N
    size = np.sqrt(source.covariance.diagonal())
    both = np.outer(size[list(source.x)], size[list(source.z)])
    assert (np.abs(across) <= 6 / math.sqrt(N) * both).all()
    noise = 1e-6 * np.random.default_rng(4).standard_normal(out.shape)
    held = np.hstack([out + noise, z])
    assert abs(told(data[:, source.w], held) - solution.value) <= 0.01


def test_the_release_of_an_encoder_that_sees_w() -> None:
    source = random_source(14, 2, 2, condition=30)
    problem = E(
        source, 0.2 * trace(source), minimize="leakage", encoder="wx", max_rate=2.5, units="nats"
    )
    solution, data, out = simulated(source, problem)
    assert solution.release.inputs == tuple(source.names[i] for i in source.w + source.x)
    released_as_told(source, solution, data, out)
    blurred = out + 1e-6 * np.random.default_rng(4).standard_normal(out.shape)
    assert told(data[:, source.w], blurred) <= solution.leakage.upper + 0.01


def test_the_release_where_a_column_is_a_sum_of_others() -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.integers(-40, 40, (400, 3)), columns=["a", "b", "w"])
    table["w"] += table["a"]
    table["c"] = table["a"] + table["b"]
    source = S.from_table(table, sensitive="w", key=["a", "b", "c"])
    assert [source.names[source.x[i]] for i in source.basis] == ["a", "b"]
    solution, data, out = simulated(source, Q(source, 300.0, units="nats"))
    released_as_told(source, solution, data, out)
    assert np.allclose(out[:, 2], out[:, 0] + out[:, 1], atol=1e-9)
    assert abs(told(data[:, source.w], out[:, :2]) - solution.value) <= 0.01


@pytest.mark.parametrize("condition", [1e2, 1e6, 1e12])
def test_gain_and_noise_make_the_error_covariance(condition: float) -> None:
    """(I − A) Σ_X = Cov(X̂, X) = Cov(X̂) and Cov(N') ≽ 0, however ill-conditioned."""
    for seed in range(3):
        source = random_source(seed, 3, 6, condition=condition)
        solution = Q(source, 0.05 * trace(source)).solve(accuracy="high")
        x = source.block(source.x, source.x)
        x = np.tril(x) + np.tril(x, -1).T
        gain, noise = solution.release.gain, solution.release.noise
        rest = np.eye(6) - gain
        error = rest @ x @ rest.T + noise
        assert np.allclose(error, solution.error_covariance, atol=1e-9 * np.abs(x).max())
        assert np.trace(error) <= 0.05 * trace(source) * (1 + 1e-9)
        assert np.linalg.eigvalsh(noise)[0] >= -1e-12 * np.abs(x).max()
        assert np.allclose(gain @ x @ gain.T + noise, gain @ x, atol=1e-9 * np.abs(x).max())


# ---- edges -------------------------------------------------------------------------------


@pytest.mark.parametrize("units", ["bits", "nats"])
def test_a_budget_of_nothing_reveals_all(units: str) -> None:
    """At D = 0 the value is I(W; X)."""
    per = LN2 if units == "bits" else 1.0
    source = S.scalar(0.95)
    solution = Q(source, 0, units=units).solve(accuracy="high")
    assert abs(solution.value + 0.5 * math.log(1 - 0.95**2) / per) <= 1e-9
    vector = random_source(15, 2, 3)
    solution = Q(vector, 0.0, units=units).solve(accuracy="high")
    assert abs(solution.value - vector.information(units=units)) <= 1e-9
    assert np.allclose(solution.error_covariance, 0, atol=1e-12)
    assert solution.status == "certified"
    out = solution.release.apply([[1.0, 2.0, 3.0]], seed=1)
    assert np.allclose(out, [[1.0, 2.0, 3.0]])


def test_all_of_x_exactly_tells_infinitely_much() -> None:
    source = random_source(17, 1, 2)
    same = S(source.covariance, sensitive=[1], key=[1, 2])
    assert same.information() == math.inf
    with pytest.raises((cpv.InputError, cpv.InfeasibleError, cpv.CertificationError)):
        Q(same, 0.0).solve()


@pytest.mark.parametrize("budget", [1e-30, 1e-9, 1e9, 1e300])
def test_budgets_of_any_size(budget: float) -> None:
    source = random_source(18, 2, 3)
    solution = Q(source, budget).solve()
    check(solution)
    assert -1e-9 <= solution.value <= source.information() + 1e-6


def test_the_sum_of_the_key_is_known_to_be_determined() -> None:
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.integers(0, 50, (100, 2)), columns=["a", "b"])
    table["c"] = table["a"] + table["b"]
    source = S.from_table(table, sensitive="c", key=["a", "b"])
    assert source.information() == math.inf
    assert solved(Q(source, 50.0)).value > 0


def test_rank_is_decided_in_rationals() -> None:
    """A column that is a sum but for the last place is no sum."""
    for k in (20, 60, 200):
        tiny = Fraction(1, 2**k)
        law = [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0], [1, 1, 0, 2 + tiny]]
        near = S(law, sensitive=[2], key=[0, 1, 3])
        assert near.basis == (0, 1, 2)
        law[3][3] = 2
        assert S(law, sensitive=[2], key=[0, 1, 3]).basis == (0, 1)


def test_whole_numbers_in_a_float_column_are_whole_numbers() -> None:
    """Pandas makes floats of integers as soon as one was missing."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame(rng.integers(0, 50, (200, 3)), columns=["a", "b", "w"]).astype(float)
    table["c"] = table["a"] + table["b"]
    source = S.from_table(table, sensitive="w", key=["a", "b", "c"])
    solution = Q(source, 50.0).solve()
    check(solution)


# ---- closed forms ------------------------------------------------------------------------


def test_reverse_water_filling_is_exact() -> None:
    from cvxprivacy.formulations.water_filling import ReverseWaterFilling

    rng = np.random.default_rng(9)
    for number in range(40):
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
    for _ in range(40):
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


@pytest.mark.parametrize("seed", range(8))
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


# ---- what is refused: sources ------------------------------------------------------------

TWO = [[1.0, 0.5], [0.5, 1.0]]
SCALAR = S(TWO, sensitive=["w"], key=["x"], names=["w", "x"])


def source_of(law: Any = TWO, **options: Any) -> cpv.GaussianSource:
    return S(law, **{"sensitive": [0], "key": [1], **options})


def test_an_asymmetric_covariance_names_both_entries() -> None:
    refused(
        lambda: source_of([[1.0, 0.5], [0.25, 1.0]]),
        "covariance", "0.5 at (0, 1)", "0.25 at (1, 0)", "symmetric", where=(0, 1),
    )  # fmt: skip
    source_of([[1.0, 0.5], [0.5 * (1 + 1e-14), 1.0]])  # which is rounding


def test_an_indefinite_covariance_is_none() -> None:
    refused(lambda: source_of([[1, 2], [2, 1]]), "covariance", "indefinite", "-1", "semidefinite")
    refused(lambda: source_of([[0, 1], [1, 0]]), "covariance", "indefinite", "semidefinite")


def test_a_negative_variance_names_its_place() -> None:
    with pytest.raises(cpv.InputError, match=r"covariance\[0, 0\].*-1\.0"):
        source_of([[-1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_covariance_is_finite(value: float) -> None:
    refused(
        lambda: source_of([[1.0, value], [value, 1.0]]),
        "covariance", repr(value), "finite", where=(0, 1),
    )  # fmt: skip


@pytest.mark.parametrize(
    "law",
    [[], [[]], [1, 2], [[1, 2], [3]], np.ones((2, 3)), np.ones((2, 2, 2)), "ab", None, {"a": 1},
     1.0],
)  # fmt: skip
def test_a_covariance_is_a_square_of_numbers(law: Any) -> None:
    refused(lambda: source_of(law), "covariance", "symmetric positive semidefinite matrix")


@pytest.mark.parametrize("value", ["a", 10**400])
def test_what_is_no_number_of_a_covariance_is_named(value: Any) -> None:
    what = "symmetric positive semidefinite matrix"
    refused(lambda: source_of([[1, 0], [value, 1]]), "covariance", what, where=(1, 0))


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        np.matrix,
        pd.DataFrame,
        lambda law: np.array(law, np.float32),
        lambda law: [list(map(np.float32, row)) for row in law],
        lambda law: [np.array(row) for row in law],
        lambda law: tuple(map(tuple, law)),
        lambda law: [[Fraction(v) for v in row] for row in law],
        lambda law: np.array([[Fraction(v) for v in row] for row in law]),
        lambda law: pd.DataFrame(law, columns=["w", "x"], index=["w", "x"]),
    ],
)
def test_a_covariance_may_come_in_any_kind_of_array(make: Callable[[Any], Any]) -> None:
    source = source_of(make(TWO))
    assert source.exact == ((1, Fraction(1, 2)), (Fraction(1, 2), 1))
    assert all(type(v) is Fraction for row in source.exact for v in row)


@pytest.mark.parametrize(
    ("options", "argument", "piece"),
    [
        ({"sensitive": [7]}, "sensitive", "7"),
        ({"sensitive": ["age"]}, "sensitive", "'age'"),
        ({"sensitive": [-1]}, "sensitive", "-1"),
        ({"sensitive": [0.0]}, "sensitive", "0.0"),
        ({"sensitive": [None]}, "sensitive", "None"),
        ({"sensitive": None}, "sensitive", "None"),
        ({"sensitive": 1.5}, "sensitive", "1.5"),
        ({"sensitive": []}, "sensitive", "no variable"),
        ({"sensitive": [0, 0]}, "sensitive", "twice"),
        ({"key": []}, "key", "no variable"),
        ({"key": [2]}, "key", "2"),
        ({"key": None}, "key", "None"),
        ({"side": [1]}, "side", "shares"),
        ({"side": [0]}, "side", "shares"),
        ({"side": ["q"]}, "side", "'q'"),
        ({"names": ["a"]}, "names", "2 distinct names"),
        ({"names": ["a", "a"]}, "names", "2 distinct names"),
        ({"names": 3}, "names", "3"),
        ({"mean": [0]}, "mean", "2 finite numbers"),
        ({"mean": [0, math.nan]}, "mean", "nan"),
        ({"mean": "ab"}, "mean", "2 finite numbers"),
        ({"records": 0}, "records", "0"),
        ({"records": 2.5}, "records", "2.5"),
        ({"records": "many"}, "records", "many"),
    ],
)
def test_what_is_no_source(options: dict[str, Any], argument: str, piece: str) -> None:
    with pytest.raises(cpv.InputError) as caught:
        source_of(**options)
    assert caught.value.argument == argument
    assert piece in str(caught.value)
    assert len(caught.value.remedy) > 10


def test_places_may_be_numpys() -> None:
    assert source_of(sensitive=np.array([0]), key=np.array([1])).w == (0,)
    assert source_of(sensitive=np.int64(0), key=np.int64(1)).x == (1,)


def test_w_is_in_x_altogether_or_not_at_all() -> None:
    refused(lambda: S(np.eye(3), sensitive=[0, 1], key=[1, 2]), "sensitive", "shares", "altogether")
    assert S(np.eye(3), sensitive=[1], key=[1, 2]).w == (1,)


@pytest.mark.parametrize("rho", [1, -1, 1.5, math.nan, "a", None, 1j])
@pytest.mark.parametrize("argument", ["rho", "rho_xz"])
def test_a_correlation_is_between_minus_one_and_one(argument: str, rho: Any) -> None:
    if argument == "rho_xz" and rho is None:
        return
    given = {"rho": 0.5, argument: rho}
    refused(lambda: S.scalar(**given), argument, repr(rho), "strictly between")


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "a", None])
@pytest.mark.parametrize("argument", ["sigma_w", "sigma_x"])
def test_a_standard_deviation_is_positive(argument: str, value: Any) -> None:
    with pytest.raises(cpv.InputError) as caught:
        S.scalar(0.5, **{argument: value})
    assert caught.value.argument == argument


def test_correlations_may_be_numpys_and_fractions() -> None:
    for rho in (np.float64(0.5), np.float32(0.5), Fraction(1, 2)):
        assert S.scalar(rho).exact[0][1] == Fraction(1, 2)


def test_singular_z_is_named() -> None:
    law = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], float)
    source = S(law, sensitive=[0], key=[1], side=[2, 3])
    refused(source.conditional, "side", "singular")
    with pytest.raises(cpv.InputError) as caught:
        E(source, 0.5, side_information="both").solve()
    assert caught.value.argument in ("side", "source")
    refused(lambda: SCALAR.conditional(), "side", "none")


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_what_z_or_x_determine_is_an_input_error_that_says_so(encoder: str) -> None:
    """Never an error of the proof's own."""
    rng = np.random.default_rng(11)
    table = pd.DataFrame(rng.integers(0, 50, (100, 3)), columns=["a", "b", "w"])
    table["c"], table["v"] = table["a"] + table["b"], table["b"] + table["w"]
    cases = [  # sensitive, key, side
        (["w"], ["a", "b"], ["c"]),  # Z determines a direction of X
        (["w"], ["a", "c"], ["b"]),  # Z turns one column of X into the other
        (["v"], ["a"], ["b", "w"]),  # Z determines W
        (["w"], ["v"], ["a", "b", "c"]),  # Z is singular
        (["c"], ["a", "b"], []),  # X determines W
    ]
    for w, x, z in cases:
        source = S.from_table(table, sensitive=w, key=x, side=z or None)
        problem = E(source, 50.0, side_information="both" if z else None, encoder=encoder)
        try:
            solution = problem.solve()
        except (cpv.InputError, cpv.InfeasibleError) as error:
            assert not isinstance(error, UnprovableError)  # noqa: PT017
            assert "singular" in str(error) or "determine" in str(error)  # noqa: PT017
        else:
            check(solution)


def test_a_singular_w_names_the_variable() -> None:
    law = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    source = S(law, sensitive=["a", "b"], key=["x"], names=["a", "b", "x"])
    for make in (lambda: Q(source, 0.5), lambda: E(source, 0.5)):
        refused(make, "sensitive", "singular", "'b'", "leave it out")
    inside = S(np.eye(2), sensitive=[0, 1], key=[0, 1])
    with pytest.raises(cpv.InputError):  # (W, X) together is singular, where W is in X
        E(inside, 0.5, encoder="wx").solve()


def test_a_key_of_constants_is_refused() -> None:
    refused(lambda: S(np.diag([1.0, 0.0]), sensitive=[0], key=[1]), "key", "constant")


# ---- what is refused: problems -----------------------------------------------------------


@pytest.mark.parametrize("source", [None, "source", np.eye(2), cpv.DiscreteSource([[0.5, 0.5]])])
def test_a_gaussian_source_is_made_first(source: Any) -> None:
    for make in (lambda: Q(source, 0.5), lambda: E(source, 0.5)):
        refused(make, "source", type(source).__name__, "GaussianSource")
    refused(
        lambda: cpv.PrivacyDistortion(SCALAR, cpv.hamming(2), budget=0.1),
        "source", "GaussianSource", "DiscreteSource",
    )  # fmt: skip


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, -math.inf, "a lot", None, [0.1], 1j])
def test_budgets_and_limits_are_nonnegative_numbers(value: Any) -> None:
    refused(lambda: Q(SCALAR, value), "budget", repr(value))
    refused(lambda: E(SCALAR, value), "budget", repr(value))
    if value is not None:
        refused(lambda: E(SCALAR, 0.5, max_leakage=value), "max_leakage", repr(value))
        refused(lambda: E(SCALAR, 0.5, max_rate=value), "max_rate", repr(value))


@pytest.mark.parametrize("value", [-0.1, math.nan, "a lot", None])
def test_an_attributes_budget_is_named(value: Any) -> None:
    refused(lambda: Q(SCALAR, {"x": value}), "budget", repr(value), where="x")


def test_budgets_are_of_key_variables() -> None:
    refused(lambda: Q(SCALAR, {}), "budget", "no budget")
    for name in ("w", "age", 1):
        refused(lambda n=name: Q(SCALAR, {n: 0.5}), "budget", repr(name), "use one of x")
    refused(lambda: E(SCALAR, 0), "budget", "0", "> 0")
    assert Q(SCALAR, np.float32(0.5)).budget == 0.5


@pytest.mark.parametrize(
    ("weights", "piece"),
    [([-1.0], "-1.0 is negative"), ([1.0, 2.0], "(2,)"), ([[1.0, 2.0], [2.0, 1.0]], "(2, 2)"),
     ([[-1.0]], "-1.0"), ([math.nan], "nan"), (2.0, "shape ()"), ("a", "not numbers")],
)  # fmt: skip
def test_weights_fit_the_key(weights: Any, piece: str) -> None:
    with pytest.raises(cpv.InputError, match="one weight ≥ 0 per key variable") as caught:
        Q(SCALAR, 0.5, weights=weights)
    assert caught.value.argument == "weights"
    assert piece in str(caught.value)


@pytest.mark.parametrize(
    ("cap", "piece"),
    [([1.0], "(1,)"), ([[0.0]], "not positive definite"), ([[-1.0]], "-1.0"),
     (np.eye(2), "(2, 2)"), ([[math.nan]], "nan"), (1.0, "shape ()"), ("a", "not numbers")],
)  # fmt: skip
def test_caps_fit_the_key(cap: Any, piece: str) -> None:
    with pytest.raises(cpv.InputError, match="positive definite matrix of shape") as caught:
        Q(SCALAR, 0.5, cap=cap)
    assert caught.value.argument == "cap"
    assert piece in str(caught.value)


def test_asymmetric_weights_and_caps() -> None:
    source = random_source(20, 1, 2)
    lopsided = np.array([[1.0, 0.5], [0.0, 1.0]])
    refused(lambda: Q(source, 0.5, weights=lopsided), "weights", "asymmetric", where=(0, 1))
    refused(lambda: Q(source, 0.5, cap=lopsided), "cap", "asymmetric", where=(0, 1))


@pytest.mark.parametrize("value", [math.nan, math.inf, "a", [1.0]])
def test_an_entropy_is_a_finite_number(value: Any) -> None:
    refused(lambda: Q(SCALAR, 0.5, entropy=value), "entropy", repr(value))


def test_an_entropy_may_be_numpys() -> None:
    one = Q(SCALAR, 0.5, entropy=1).risk.constant
    assert Q(SCALAR, 0.5, entropy=np.float64(1)).risk.constant == one
    assert Q(SCALAR, 0.5, entropy=np.float32(1)).risk.constant == one


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"minimize": "risk"}, "minimize"), ({"encoder": "w"}, "encoder"), ({"units": "bit"}, "units"),
     ({"side_information": "yes"}, "side_information"), ({"side_information": True},
      "side_information"), ({"side_information": "both"}, "source")],
)  # fmt: skip
def test_unknown_choices(options: dict[str, Any], argument: str) -> None:
    value = next(iter(options.values()))
    pieces = () if argument == "source" else (repr(value),)
    refused(lambda: E(SCALAR, 0.5, **options), argument, *pieces)


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"method": "newton"}, "method"), ({"solver": "OSQP"}, "solver"), ({"solver": None},
      "solver"), ({"accuracy": "low"}, "accuracy"), ({"solver_options": 3}, "solver_options"),
     ({"certify": "yes"}, "certify")],
)  # fmt: skip
def test_unknown_ways_to_solve(options: dict[str, Any], argument: str) -> None:
    for problem in (Q(SCALAR, 0.5), E(SCALAR, 0.5)):
        refused(lambda p=problem: p.solve(**options), argument, repr(next(iter(options.values()))))


def test_structured_means_structured() -> None:
    """Either it is, or it says why it cannot be."""
    problem = Q(random_source(22, 1, 2), 0.5, cap=np.eye(2) / 4)
    try:
        solution = problem.solve(method="structured")
    except cpv.InputError as error:
        assert error.argument == "method"  # noqa: PT017
    else:
        assert not any("CLARABEL" in line for line in solution.log)


def test_certify_says_what_to_do_without_a_release() -> None:
    problem = E(SCALAR, 0.1, minimize="leakage", max_rate=0.1)
    with pytest.raises(cpv.InfeasibleError, match="max_rate would have to be at least"):
        problem.solve()
    with pytest.warns(UserWarning, match="cannot hold together"):
        warned = problem.solve(certify="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent = problem.solve(certify=False)
    for solution in (warned, silent):
        assert solution.status == "infeasible"
        assert solution.release is None
        assert solution.error_covariance is None
        assert "no release satisfies" in str(solution)
        assert solution.certificate.verify()


@pytest.mark.long
def test_nothing_numerical_is_raised_but_errors_that_say_so() -> None:
    """Whatever the solvers do inside, what comes out is an error of this package or a proof."""
    tried = 0
    for seed in range(12):
        rng = np.random.default_rng([99, seed])
        source = random_source([99, seed], 2, 3, 1, condition=10 ** rng.uniform(0, 15))
        size = trace(source)
        for budget in 10.0 ** np.array([-300, -100, -12, -3, 0, 12, 300]) * size:
            kinds: tuple[dict[str, Any], ...] = ({}, {"max_leakage": 1e-9}, {"max_rate": 1e-9})
            for options in kinds[: 1 + (seed < 3) * 2]:
                problem = E(source, budget, minimize="leakage", units="nats", **options)
                for chosen in (problem, Q(source, budget)):
                    try:
                        solution = chosen.solve(certify=False)
                    except cpv.InputError:
                        continue
                    assert solution.certificate.verify()
                    tried += 1
    assert tried > 150


# ---- tables ------------------------------------------------------------------------------


def census(size: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(12)
    table = pd.DataFrame(rng.integers(-30, 50, (size, 3)), columns=["age", "hours", "income"])
    table["income"] += 2 * table["age"]
    table["note"] = [f"n{i}" for i in range(size)]
    return table[["note", "age", "income", "hours"]]


FLAVOURS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda t: t,
    "polars": pl.from_pandas,
    "lazy": lambda t: pl.from_pandas(t).lazy(),
    "pyarrow": lambda t: pa.Table.from_pandas(t, preserve_index=False),
    "nullable": lambda t: t.convert_dtypes(),
    "narrow": lambda t: t.astype({"age": "int8", "hours": "int8"}),
}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_moments_of_whole_numbers_are_exact(flavour: str) -> None:
    table = census()
    source = S.from_table(
        FLAVOURS[flavour](table), sensitive="income", key=["age", "hours"], side=None
    )
    names = ["income", "age", "hours"]
    assert source.names == tuple(names)
    assert source.records == len(table)
    data = table[names].to_numpy()
    assert np.allclose(source.covariance, np.cov(data, rowvar=False), rtol=1e-12)
    assert np.allclose(source.mean, data.mean(axis=0))
    size = len(data)
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            one, two = ([Fraction(v) for v in table[n].tolist()] for n in (a, b))
            product = sum(u * v for u, v in zip(one, two, strict=True))
            assert source.exact[i][j] == (product - sum(one) * sum(two) / size) / (size - 1)


def test_moments_of_large_whole_numbers_are_exact() -> None:
    """numpy.cov of 10^17 + {0, 1, 2} knows nothing of the last digits."""
    table = pd.DataFrame({"w": [0, 1, 2, 3], "x": [10**17, 10**17 + 1, 10**17 + 1, 10**17 + 2]})
    source = S.from_table(table, sensitive="w", key="x")
    assert source.exact[1][1] == Fraction(2, 3)
    assert source.exact[0][1] == 1


def test_columns_are_named_by_anything_that_names_them() -> None:
    table = census().rename(columns={"age": 0, "income": 1})
    source = S.from_table(table, sensitive=1, key=[0, "hours"])
    assert source.names == ("1", "0", "hours")
    assert S.from_table(table, sensitive=[1], key=(0,)).x == (1,)
    same = S.from_table(census(), sensitive="age", key=["age", "hours"])
    assert same.w == (0,)
    assert same.x == (0, 1)


def test_shrinkage_keeps_the_total_variance_and_shrinks() -> None:
    sklearn = pytest.importorskip("sklearn.covariance")
    table = census(12)
    data = table[["income", "age", "hours"]].to_numpy(float)
    plain = np.cov(data, rowvar=False)
    for name, kind in (("ledoit-wolf", sklearn.LedoitWolf), ("oas", sklearn.OAS)):
        source = S.from_table(table, sensitive="income", key=["age", "hours"], shrinkage=name)
        assert math.isclose(np.trace(source.covariance), np.trace(plain), rel_tol=1e-12)
        ratio = source.covariance[0, 1] / plain[0, 1]
        assert math.isclose(ratio, 1 - kind().fit(data).shrinkage_, rel_tol=1e-9)
        assert np.ptp(np.linalg.eigvalsh(source.covariance)) < np.ptp(np.linalg.eigvalsh(plain))
        check(Q(source, 50.0).solve())
    for bad in ("lw", True, 0.1):
        refused(
            lambda b=bad: S.from_table(table, sensitive="income", key="age", shrinkage=b),
            "shrinkage", repr(bad), "ledoit-wolf",
        )  # fmt: skip


def test_standardised_is_correlations() -> None:
    table = census()
    source = S.from_table(table, sensitive="income", key=["age", "hours"], standardise=True)
    truth = np.corrcoef(table[["income", "age", "hours"]].to_numpy(), rowvar=False)
    assert np.allclose(source.covariance, truth, atol=1e-12)


def test_a_standardised_release_fits_the_table_it_was_made_from() -> None:
    """The noise is that of the units of the table that is released."""
    table = census(4000)
    source = S.from_table(table, sensitive="income", key=["age", "hours"], standardise=True)
    solution = Q(source, 1.0).solve()
    try:
        out = solution.release.apply(table, seed=1)
    except cpv.InputError:
        return
    scale = table[["age", "hours"]].std()
    error = ((table[["age", "hours"]] - out[["age", "hours"]]) / scale).var()
    assert math.isclose(error.sum(), 1.0, rel_tol=0.15)


@pytest.mark.parametrize(
    ("change", "pieces"),
    [
        (lambda t: t.assign(age=1), ("'age'", "constant")),
        (lambda t: t.assign(age="old"), ("'age'", "String")),
        (lambda t: t.assign(age=t.age > 3), ("'age'", "Boolean")),
        (lambda t: t.assign(age=pd.Timestamp("2020-01-01")), ("'age'", "Datetime")),
        (lambda t: t.assign(age=t.age.astype("category")), ("'age'", "Categorical")),
        (lambda t: t.drop(columns="age"), ("'age'", "note, income, hours")),
        (lambda t: t.iloc[:1], ("1 records",)),
        (lambda t: t.iloc[:0], ("0 records",)),
        (lambda t: t.assign(age=[math.inf, *t.age[1:]]), ("not finite",)),
        (lambda t: t.to_numpy(), ("ndarray",)),
        (lambda t: t.to_dict("list"), ("dict",)),
        (lambda t: [1, 2], ("list",)),
        (lambda t: None, ("NoneType",)),
    ],
)
def test_tables_without_moments(change: Callable[[Any], Any], pieces: tuple[str, ...]) -> None:
    refused(
        lambda: S.from_table(change(census()), sensitive="income", key=["age", "hours"]),
        "frame", *pieces,
    )  # fmt: skip


def test_a_missing_value_is_found() -> None:
    table = census().astype({"age": float})
    table.loc[7, "age"] = math.nan
    for frame in (table, pl.from_pandas(table), table.convert_dtypes()):
        refused(
            lambda f=frame: S.from_table(f, sensitive="income", key=["age", "hours"]),
            "frame", "'age'", "missing", where=7,
        )  # fmt: skip


def test_columns_in_two_roles() -> None:
    table = census()
    with pytest.raises(cpv.InputError, match="altogether"):
        S.from_table(table, sensitive=["age", "income"], key=["age", "hours"])
    with pytest.raises(cpv.InputError, match="twice"):
        S.from_table(table, sensitive="income", key=["age", "age"])
    with pytest.raises(cpv.InputError, match="side"):
        S.from_table(table, sensitive="income", key=["age"], side="age")
    with pytest.raises(cpv.InputError, match="no column"):
        S.from_table(table, sensitive=[], key=["age"])


def test_what_a_source_says_of_itself() -> None:
    table = census()
    table["sum"] = table["age"] + table["hours"]
    source = S.from_table(table, sensitive="income", key=["age", "hours", "sum"], side="note2") \
        if "note2" in table else S.from_table(
            table, sensitive="income", key=["age", "hours", "sum"])  # fmt: skip
    assert repr(source) == "GaussianSource(W: 1, X: 3 of rank 2, 60 records)"
    assert "Z: 1" in repr(S.scalar(0.5, rho_xz=0.5))
    problem = Q(source, 100.0)
    assert "rank 2" in repr(problem)
    assert r"\min_{\Sigma}" in problem.latex
    text = str(problem.solve())
    assert "need not be Gaussian" in text or "Gaussian variables" in text
    with pytest.raises(AttributeError, match="release"):
        _ = problem.solve().channel


def test_information_is_that_of_the_formula() -> None:
    for rho in (0.0, 0.3, -0.99):
        for units, per in (("nats", 1.0), ("bits", LN2)):
            truth = -0.5 * math.log(1 - rho**2) / per
            assert math.isclose(S.scalar(rho).information(units=units), truth, abs_tol=1e-14)


def test_the_source_given_z_is_exact() -> None:
    law = [[Fraction(v) for v in row] for row in ([3, 1, 1], [1, 2, 1], [1, 1, 1])]
    given = S(law, sensitive=[0], key=[1], side=[2], mean=[1, 2, 3]).conditional()
    assert given.exact == ((2, 0), (0, 1))
    assert given.mean.tolist() == [1, 2]
    assert given.names == ("V0", "V1")


# ---- releasing tables --------------------------------------------------------------------


@pytest.fixture(scope="module")
def release() -> cpv.GaussianRelease:
    source = S.from_table(census(), sensitive="income", key=["hours", "age"])
    return Q(source, 300.0).solve().release


def test_a_frame_comes_back_whole(release: cpv.GaussianRelease) -> None:
    table = census().set_index(pd.Index(range(100, 160), name="id"))
    out = release.apply(table, seed=5)
    assert isinstance(out, pd.DataFrame)
    assert out.index.equals(table.index)
    assert out.index.name == "id"
    assert list(out.columns) == list(table.columns)
    assert out[["note", "income"]].equals(table[["note", "income"]])
    assert not np.allclose(out["age"], table["age"])
    assert release.apply(table, seed=5).equals(out)
    assert not release.apply(table, seed=6).equals(out)
    shuffled = table[["income", "hours", "note", "age"]]
    assert release.apply(shuffled, seed=5)[list(table.columns)].equals(out)
    table_before = census().set_index(pd.Index(range(100, 160), name="id"))
    assert table.equals(table_before)  # and is not written into
    plain = release.apply(table[["hours", "age"]].to_numpy(), seed=5)
    assert np.array_equal(plain, out[["hours", "age"]].to_numpy())


@pytest.mark.parametrize(
    "index",
    [pd.Index([1] * 60), pd.MultiIndex.from_arrays([range(60), ["a"] * 60])],
    ids=["repeated", "many levels"],
)
def test_any_index(release: cpv.GaussianRelease, index: pd.Index) -> None:
    table = census().set_axis(index)
    out = release.apply(table, seed=5)
    assert out.index.equals(index)
    assert np.array_equal(out["age"], release.apply(census(), seed=5)["age"])


def test_names_that_are_no_strings_stay_so() -> None:
    table = census().rename(columns={"age": 0, "hours": 1, "note": 2})
    source = S.from_table(table, sensitive="income", key=[1, 0])
    out = Q(source, 300.0).solve().release.apply(table, seed=5)
    assert list(out.columns) == list(table.columns) == [2, 0, "income", 1]


@pytest.mark.parametrize("flavour", ["polars", "pyarrow", "nullable", "narrow"])
def test_every_flavour_comes_back_in_its_own(release: cpv.GaussianRelease, flavour: str) -> None:
    frame = FLAVOURS[flavour](census())
    out = release.apply(frame, seed=5)
    assert type(out) is type(frame)
    names = out.column_names if flavour == "pyarrow" else list(out.columns)
    assert names == ["note", "age", "income", "hours"]
    truth = release.apply(census(), seed=5)
    assert np.allclose(np.asarray(out["age"], float), truth["age"])
    assert np.asarray(out["note"]).tolist() == census()["note"].tolist()


def test_a_generator_moves_on(release: cpv.GaussianRelease) -> None:
    values = np.ones((3, 2))
    chance = np.random.default_rng(5)
    first, second = release.apply(values, seed=chance), release.apply(values, seed=chance)
    assert np.array_equal(first, release.apply(values, seed=5))
    assert not np.array_equal(first, second)


def test_one_record_or_many(release: cpv.GaussianRelease) -> None:
    one = release.apply([20.0, 30.0], seed=5)
    assert one.shape == (2,)
    many = release.apply([[20.0, 30.0]], seed=5)
    assert np.array_equal(many, [one])
    assert release.apply(np.ones((0, 2)), seed=5).shape == (0, 2)
    assert len(release.apply(census().iloc[:0], seed=5)) == 0


@pytest.mark.parametrize("seed", [None, -1, "a", 1.5])
def test_chance_needs_a_seed(release: cpv.GaussianRelease, seed: Any) -> None:
    refused(lambda: release.apply([[1.0, 2.0]], seed=seed), "seed", repr(seed))


def test_what_cannot_be_released(release: cpv.GaussianRelease) -> None:
    refused(lambda: release.apply([[1.0]], seed=1), "values", "(1, 1)", "2 in each row")
    refused(lambda: release.apply(1.0, seed=1), "values", "shape ()")
    refused(lambda: release.apply([[1.0, math.nan]], seed=1), "values", "nan", where=(0, 1))
    refused(lambda: release.apply("text", seed=1), "values", "not numbers")
    refused(lambda: release.apply(pl.from_pandas(census()).lazy(), seed=1), "values", "lazy")
    refused(lambda: release.apply(census().drop(columns="age"), seed=1), "values", "'age'")
    with pytest.raises(cpv.InputError, match=r"'age'\[3\]"):
        release.apply(census().assign(age=[1.0, 2, 3, None] * 15), seed=1)
    with pytest.raises(cpv.InputError, match="'age'.*not numbers"):
        release.apply(census().assign(age="old"), seed=1)


def test_the_release_reads_w_and_z_where_the_encoder_does() -> None:
    table = census()
    source = S.from_table(table, sensitive="income", key="age", side="hours")
    both = E(source, 20.0, side_information="both", encoder="wx").solve().release
    assert (both.inputs, both.outputs) == (("income", "age", "hours"), ("age",))
    out = both.apply(table, seed=1)
    assert out.drop(columns="age").equals(table.drop(columns="age"))
    refused(lambda: both.apply(table[["age", "hours"]], seed=1), "values", "'income'")


# ---- the proof of the widths' worst ------------------------------------------------------


def test_a_proof_of_thirty_variables_reads_back() -> None:
    source = random_source(24, 10, 20, condition=1e12)
    solution = Q(source, 0.1 * trace(source), units="nats").solve(accuracy="high", certify=False)
    document = json.loads(json.dumps(solution.certificate.document()))
    assert verify.disagreements(document) == []
    assert isinstance(verify.proof_of(document["program"]), CovarianceProof)
    tighter = replace(
        solution.certificate.program,
        constraints={
            "budget": replace(solution.certificate.program.constraints["budget"], bound=Fraction(1))
        },
    )
    evaluation = verify.proof_of(tighter.to_dict()).upper(document["primal"])
    assert evaluation.feasible == (0.1 * trace(source) <= 1)


def test_a_standardised_release_is_in_the_units_of_the_table() -> None:
    rng = np.random.default_rng(31)
    base = rng.normal(size=(20_000, 2))
    table = pd.DataFrame({"w": base.sum(axis=1) * 7 + 3, "x": base[:, 0] * 15 + 25})
    source = S.from_table(table, sensitive="w", key="x", standardise=True)
    solution = Q(source, 0.5).solve()
    released = solution.release.apply(table, seed=1)
    error = (table["x"] - released["x"]) / table["x"].std()
    assert (error**2).mean() == pytest.approx(0.5, abs=0.02)
    assert released["x"].mean() == pytest.approx(25, abs=0.5)
    with pytest.raises(cpv.InputError, match="no side information|there is none"):
        source.conditional()
