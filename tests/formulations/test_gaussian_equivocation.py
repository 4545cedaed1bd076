"""The Gaussian region: side information, caps, what Z or X determine."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy_verifier.balls import UnprovableError
from tests.formulations.gaussian import (
    LN2,
    E,
    Q,
    S,
    check,
    filled,
    random_source,
    solved,
    trace,
)
from tests.formulations.test_quadratic_gaussian import SCALAR
from tests.lengths import rest_at_length, some_at_length
from tests.refusals import refused


@pytest.mark.parametrize("seed", rest_at_length(range(5), 1))
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


@pytest.mark.parametrize(("units", "rho"), [("nats", 0.3), ("bits", 0.9)])
@pytest.mark.parametrize("rho_xz", some_at_length([0.0, 0.5, 0.95], 2))
@pytest.mark.parametrize("share", rest_at_length([0.05, 1.0, 0.5], 2))
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
        arguments: dict[str, Any] = {"side_information": side, "units": units}
        one = E(source, budget, minimize="rate", **arguments).solve(accuracy="high")
        two = E(source, budget, minimize="leakage", **arguments).solve(accuracy="high")
        for solution in (one, two):
            check(solution, status=None)
            assert math.isclose(solution.distortion, budget, rel_tol=1e-7)
        assert abs(one.value - rate) <= 2e-9
        assert abs(two.value - leakage) <= 2e-9
        assert math.isclose(one.leakage, leakage, abs_tol=1e-7)
        assert math.isclose(two.rate, rate, abs_tol=1e-6)
    if share == 1.0:  # nothing is sent, and Z tells what it tells
        information = -0.5 * math.log(1 - (rho * rho_xz) ** 2) / per
        assert abs(two.value - information) <= 2e-9


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
    value = source.conditional()
    information = value.covariance[:2, :2], source.covariance[:2, :2]
    i_wz = (np.linalg.slogdet(information[1])[1] - np.linalg.slogdet(information[0])[1]) / 2
    budget = 0.3 * trace(value)
    side: dict[str, Any] = {"side_information": "both", "units": "nats"}
    for minimize in ("rate", "leakage"):
        one = solved(E(source, budget, minimize=minimize, **side))
        two = solved(E(value, budget, minimize=minimize, units="nats"))
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


@pytest.mark.long
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


@pytest.mark.parametrize("d", some_at_length([0.5, 0.1, 0.01, 1e-4], 2))
@pytest.mark.parametrize("method", ["structured", "auto"])
def test_a_cap_that_does_not_bind_does_no_harm(d: float, method: str) -> None:
    """One variable and two rows: the multipliers are not those of least squares."""
    problem = E(S.scalar(0.5), d, max_leakage=1.0, units="nats")
    solution = problem.solve(accuracy="high", method=method)
    assert abs(solution.value + 0.5 * math.log(d)) <= 1e-9
    assert abs(solution.prices["max_leakage"]) <= 1e-6
    check(solution)


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


def test_a_key_may_tell_nothing_beyond_what_the_user_knows() -> None:
    """W = Z + N₁ and X = Z + N₂: the regression of W on X given Z is 0, and a ball around it."""
    z = Fraction(1, 3)
    gamma = [[z + Fraction(1, 7), z, z], [z, z + Fraction(1, 11), z], [z, z, z]]
    source = cpv.GaussianSource(gamma, sensitive=[0], key=[1], side=[2])
    for expected in ("decoder", "both"):
        solution = cpv.GaussianEquivocation(
            source, Fraction(1, 50), side_information=expected, minimize="leakage", units="nats"
        ).solve()
        assert solution.status == "certified"
        held = np.log1p(float(z * 7)) / 2  # I(W; Z)
        assert solution.lower - 1e-12 <= held <= solution.upper + 1e-12
