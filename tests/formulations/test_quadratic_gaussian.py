"""The quadratic Gaussian lower bound: closed forms, invariances, prices, refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from tests.formulations.gaussian import (
    LN2,
    E,
    Q,
    S,
    check,
    middle_of,
    random_source,
    solved,
    trace,
)
from tests.lengths import rest_at_length, some_at_length
from tests.model.test_gaussian import TWO
from tests.refusals import UNSAID, refused


def widths(seed: int, count: int, largest: int = 30) -> np.ndarray:
    """Return the enclosures' widths in nats over random problems at high accuracy."""
    values = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        x, w = (int(k) for k in rng.integers(1, largest + 1, size=2))
        source = random_source([seed, number, 1], w, x, condition=10 ** rng.uniform(0, 12))
        budget = 10 ** rng.uniform(-3, 0) * trace(source)
        solution = Q(source, budget, units="nats").solve(accuracy="high", certify=False)
        if number % 10 == 0:
            check(solution, status=None)
        values.append(solution.gap)
    return np.array(values)


@pytest.mark.parametrize(
    ("seed", "count", "largest"), [(2, 5, 16), pytest.param(1, 40, 30, marks=pytest.mark.campaign)]
)
def test_enclosures_are_narrow(seed: int, count: int, largest: int) -> None:
    gaps = widths(seed, count, largest)
    assert np.median(gaps) <= 1e-9
    assert np.count_nonzero(gaps > 1e-7) <= count // 40


@pytest.mark.long
@pytest.mark.parametrize(("w", "x"), rest_at_length([(10, 30), (20, 60)], 1))
def test_many_key_and_confidential_variables(w: int, x: int) -> None:
    a = np.random.default_rng(0).normal(size=(w + x, w + x))
    source = S(a @ a.T / (w + x), sensitive=range(w), key=range(w, w + x))
    check(Q(source, 0.3 * trace(source)).solve(accuracy="high"))


@pytest.mark.long
def test_the_scalar_bound_is_its_closed_form() -> None:
    """R = −½ log(1 − (1 − d)ρ²), and λ = 2σ_X²(1/ρ² − 1 + d) = −dD/dR."""
    rng = np.random.default_rng(1)
    for number in range(30):
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
        if number % 10 == 0:
            check(solution)


@pytest.mark.parametrize("method", ["structured", "conic"])
@pytest.mark.parametrize("rho", [0.2, 0.95, -0.999])
@pytest.mark.parametrize("d", some_at_length([0.01, 0.25, 0.5, 0.999], 2))
def test_the_solvers_know_the_scalar_closed_form(rho: float, d: float, method: str) -> None:
    """One W and a key of two variables, one of them noise: no closed form is taken."""
    law = [[1, rho, 0], [rho, 1, 0], [0, 0, 1]]
    source = S(law, sensitive=[0], key=[1, 2])
    solution = Q(source, d, units="nats", weights=[1.0, 0.0]).solve(method=method)
    check(solution)
    assert abs(solution.value - -0.5 * math.log(1 - (1 - d) * rho**2)) <= 1e-6
    assert math.isclose(-1 / solution.prices["budget"], 2 * (1 / rho**2 - 1 + d), rel_tol=1e-2)


@pytest.mark.parametrize("seed", some_at_length(range(6), 3))
def test_structured_and_conic_agree(seed: int) -> None:
    source = random_source(seed, 1 + seed % 3, 2 + seed % 4, condition=10 ** (1 + seed))
    budget = 0.05 * (1 + seed) * trace(source)
    one = Q(source, budget, units="nats").solve(method="structured")
    two = Q(source, budget, units="nats").solve(method="conic")
    check(one)
    check(two, status=None)
    assert max(one.lower, two.lower) <= min(one.upper, two.upper) + 1e-12
    assert abs(one.value - two.value) <= 1e-6


@pytest.mark.long
@pytest.mark.parametrize("seed", some_at_length(range(4), 2))
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


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_at_length(range(3), 1))
def test_less_is_said_where_more_may_be_lost_at_a_falling_price(seed: int) -> None:
    source = random_source(seed, 2, 3)
    grid = np.linspace(0.02, 1.1, 8) * trace(source)
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
        others = gradient + solution.duals["budget"] * np.eye(3) + solution.duals["Σ ≼ Σ_X"]
        assert np.allclose(others, solution.duals["0 ≼ Σ"], atol=1e-4)
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
            residuals = solution.certificate.residuals
            assert set(residuals) == {"primal", "dual", "complementarity", "stationarity"}
            parts = residuals["complementarity"] + residuals["stationarity"]
            assert math.isclose(parts, solution.gap, rel_tol=1e-3, abs_tol=1e-10)
            assert min(residuals["complementarity"], residuals["stationarity"]) >= -1e-10


def test_w_may_be_a_part_of_x() -> None:
    source = random_source(2, 1, 3)
    part = S(source.covariance, sensitive=[1], key=[1, 2, 3])
    solution = solved(Q(part, 0.2, units="nats"))
    # of one variable itself: nothing but its own error counts
    truth = 0.5 * math.log(source.covariance[1, 1] / 0.2)
    assert solution.value >= truth - 1e-9
    weighted = solved(Q(part, 0.2, units="nats", weights=[1, 0, 0]))
    assert abs(weighted.value - truth) <= 1e-8


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


@pytest.mark.parametrize("seed", rest_at_length(range(6), 1))
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
    table = pd.DataFrame({"a": [1, 5, 2, 8], "b": [4, 4, 0, 1]})
    full = S.from_table(table.assign(c=table["a"] + table["b"]), sensitive="c", key=["a", "b"])
    assert full.information() == math.inf
    assert solved(Q(full, 5.0)).value > 0
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


def test_a_singular_w_names_the_variable() -> None:
    law = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    source = S(law, sensitive=["a", "b"], key=["x"], names=["a", "b", "x"])
    for make in (lambda: Q(source, 0.5), lambda: E(source, 0.5)):
        refused(make, "sensitive", "singular", "'b'", "leave it out")
    inside = S(np.eye(2), sensitive=[0, 1], key=[0, 1])
    with pytest.raises(cpv.InputError):  # (W, X) together is singular, where W is in X
        E(inside, 0.5, encoder="wx").solve()


# ---- bad input ---------------------------------------------------------------------------

SCALAR = S(TWO, sensitive=["w"], key=["x"], names=["w", "x"])
NUMBERS = (-0.1, math.nan, math.inf, -math.inf, "a lot", [0.1], 1j)
# formulation, budget, options; argument, value, place
REFUSED: list[tuple[Any, Any, dict[str, Any], str, Any, Any]] = [
    *((kind, v, {}, "budget", v, None) for kind in (Q, E) for v in (*NUMBERS, None)),
    *((E, 0.5, {name: v}, name, v, None) for name in ("max_leakage", "max_rate") for v in NUMBERS),
    *((Q, {"x": v}, {}, "budget", v, "x") for v in (-0.1, math.nan, "a lot", None)),
    *((Q, {v: 0.5}, {}, "budget", v, None) for v in ("w", "age")),
    (Q, {1: 0.5}, {}, "budget", UNSAID, None),
    (Q, {}, {}, "budget", UNSAID, None),
    (E, 0, {}, "budget", 0, None),
    (Q, 0.5, {"weights": [-1.0]}, "weights", -1.0, (0,)),
    (Q, 0.5, {"weights": [[-1.0]]}, "weights", -1.0, (0, 0)),
    (Q, 0.5, {"weights": [math.nan]}, "weights", math.nan, (0,)),
    *((Q, 0.5, {"weights": v}, "weights", UNSAID, None) for v in ([1.0, 2.0], TWO, 2.0, "a")),
    (Q, 0.5, {"cap": [[-1.0]]}, "cap", -1.0, (0, 0)),
    (Q, 0.5, {"cap": [[math.nan]]}, "cap", math.nan, (0, 0)),
    *((Q, 0.5, {"cap": v}, "cap", UNSAID, None) for v in ([1.0], [[0.0]], np.eye(2), 1.0, "a")),
    *((Q, 0.5, {"entropy": v}, "entropy", v, None) for v in (math.nan, math.inf, "a", [1.0])),
    (E, 0.5, {"minimize": "risk"}, "minimize", "risk", None),
    (E, 0.5, {"encoder": "w"}, "encoder", "w", None),
    (E, 0.5, {"units": "bit"}, "units", "bit", None),
    (E, 0.5, {"side_information": "yes"}, "side_information", "yes", None),
    (E, 0.5, {"side_information": True}, "side_information", True, None),
    (E, 0.5, {"side_information": "both"}, "source", UNSAID, None),
]


@pytest.mark.parametrize(("kind", "budget", "options", "argument", "value", "where"), REFUSED)
def test_what_is_no_problem(
    kind: Any, budget: Any, options: dict[str, Any], argument: str, value: Any, where: Any
) -> None:
    refused(lambda: kind(SCALAR, budget, **options), argument, value=value, where=where)


@pytest.mark.parametrize("source", [None, "source", np.eye(2), cpv.DiscreteSource([[0.5, 0.5]])])
def test_a_gaussian_source_is_made_first(source: Any) -> None:
    for make in (lambda: Q(source, 0.5), lambda: E(source, 0.5)):
        refused(make, "source", type(source).__name__, "GaussianSource")
    refused(
        lambda: cpv.PrivacyDistortion(SCALAR, cpv.hamming(2), budget=0.1),
        "source", "GaussianSource", "DiscreteSource",
    )  # fmt: skip


def test_matrices_are_symmetric_and_numbers_may_be_numpys() -> None:
    source = random_source(20, 1, 2)
    lopsided = np.array([[1.0, 0.5], [0.0, 1.0]])
    refused(lambda: Q(source, 0.5, weights=lopsided), "weights", where=(0, 1))
    refused(lambda: Q(source, 0.5, cap=lopsided), "cap", where=(0, 1))
    one = Q(SCALAR, np.float32(0.5), entropy=1)
    assert one.budget == 0.5
    for entropy in (np.float64(1), np.float32(1)):
        assert Q(SCALAR, 0.5, entropy=entropy).risk.constant == one.risk.constant


@pytest.mark.parametrize(
    ("argument", "value"),
    [("method", "newton"), ("solver", "OSQP"), ("solver", None), ("accuracy", "low"),
     ("solver_options", 3), ("certify", "yes")],
)  # fmt: skip
def test_unknown_ways_to_solve(argument: str, value: Any) -> None:
    for problem in (Q(SCALAR, 0.5), E(SCALAR, 0.5)):
        refused(lambda p=problem: p.solve(**{argument: value}), argument, value=value)


def test_a_cap_that_binds_nothing_has_the_multiplier_nought() -> None:
    source = S([[1, 0.5, 0.3], [0.5, 1, 0.2], [0.3, 0.2, 1]], sensitive=[0], key=[1, 2])
    for budget, binds in ((0.2, False), (5, False), (5, True)):
        solution = Q(source, budget, cap=np.eye(2) * (0.3 if binds else 10)).solve()
        multiplier = solution.duals["cap"]
        assert multiplier.shape == (2, 2)
        assert (np.abs(multiplier).max() > 0.1) == binds
