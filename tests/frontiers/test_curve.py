"""Lines, chords and bands: what is achieved never below what is proved."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.frontiers.curve import MONOTONE, Axis, Breakpoint, Convex, Staircase, rounded
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.point import breakpoint_of
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ceil
from tests import referee
from tests.frontiers.instances import (
    D5,
    THREE,
    binary,
    check_exactly,
    entropy,
    grid,
    least_distortion,
    random_problem,
)
from tests.lengths import some_at_length, some_weekly

AXIS = Axis("convex", "bits")


def breakpoint_at(x, lower: float, upper: float, slope: float = 0.0) -> Breakpoint:
    return Breakpoint(x, AXIS.bound(x), lower, upper, AXIS.bound(slope))


@pytest.mark.long
@pytest.mark.parametrize("seed", some_weekly(range(25), 6))
def test_inner_is_never_below_outer_in_exact_arithmetic(seed):
    problem, name = random_problem(seed)
    tol, count = (0.02, 100) if seed < 7 else (3e-3, 10_000)
    curve = cpv.frontier(problem, name, tol=tol)
    assert curve.complete
    assert curve.band <= tol
    check_exactly(curve, count, seed)
    for point in curve.points[1:-1:3]:  # at the ends multipliers may be too large for floats
        referee.check(point.solution, status=point.status)
    for x in np.random.default_rng(seed).uniform(*curve.solved_range, 3).tolist():
        mixed = curve.solution_at(x)
        referee.check(mixed, status=mixed.status)
        assert curve.outer(x) - 1e-12 <= mixed.lower
        assert mixed.upper <= curve.inner(x) + 1e-12
        assert mixed.certificate.proves(problem.at(**{name: x}))


@pytest.mark.parametrize(
    ("problem", "name", "places"),
    some_at_length(
        [
            (grid(), "budget", (0.05, 0.4, 0.9)),
            (
                least_distortion(cpv.LeakageCap(0.1), distortion=D5),
                "leakage_cap",
                (0.01, 0.05, 0.12),
            ),
            (least_distortion(cpv.MaximalLeakage(0.3)), "maximal_leakage", (0.2, 0.9, 1.7)),
            (cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), 0.3), "budget", (0.1, 0.5)),
            (cpv.GaussianEquivocation(THREE, 0.8, max_leakage=0.5), "max_leakage", (0.3, 0.4)),
            (cpv.GaussianEquivocation(THREE, 0.8), "budget", (0.6, 1.2)),
        ],
        3,
    ),
)
def test_a_line_is_what_its_multipliers_prove_at_other_numbers(problem, name, places):
    """The proof itself, made again at the other number, against the affine formula."""
    parametric = ParametricProblem(problem, name)
    for x in places:
        record = parametric.record(x)
        ours = breakpoint_of(record, parametric.document(), parametric.axis)
        curve = Convex([ours], parametric.axis)
        for other in (*places, 0.77 * x, 1.3 * x):
            proved = verify.proof_of(parametric.document(other)).lower(record["dual"])
            assert curve.outer(other) <= ceil(proved)
            assert curve.outer(other) == pytest.approx(float(proved), rel=1e-9, abs=1e-11)


@pytest.mark.long
def test_the_band_shrinks_at_the_second_order():
    bands = [cpv.frontier(grid(7), points=np.linspace(0.1, 0.8, count)).band for count in (3, 5, 9)]
    for wide, narrow in pairwise(bands):
        assert wide / narrow == pytest.approx(4.0, rel=0.25)
    few, many = (cpv.frontier(grid(7), tol=tol).solves for tol in (1.6e-2, 1e-3))
    assert 2.5 < many / few < 6  # 4, but for the ends


@pytest.mark.parametrize(("rho", "units"), [(0.3, "bits"), (0.95, "nats")])
def test_the_gaussian_closed_form_is_inside_the_band(rho, units):
    """Rebollo-Monedero et al. 2010, eqs. (7)–(8), and its slope."""
    unit = math.log(2) if units == "bits" else 1.0
    problem = cpv.QuadraticGaussian(cpv.GaussianSource.scalar(rho), 0.5, units=units)
    curve = cpv.frontier(problem, tol=5e-3)
    assert curve.solved_range == (0.0, pytest.approx(1.0, abs=1e-9))
    assert curve.band <= 5e-3
    for d in np.random.default_rng(7).uniform(0.0, 1.0, 15).tolist():
        exact = -math.log(1 - (1 - d) * rho**2) / 2 / unit
        slope = -(rho**2) / (1 - (1 - d) * rho**2) / 2 / unit
        assert curve.outer(d) <= exact + 1e-13
        assert exact - 1e-13 <= curve.inner(d)
        price = curve.price(d)
        assert price.lower <= slope <= price.upper
        release = curve.solution_at(d)
        assert float(release.distortion) <= d
        assert release.upper <= curve.inner(d) + 1e-12


def test_the_binary_closed_form_is_inside_the_band():
    """W – X – X̂ with X ~ Bern(½): R(D) = 1 − h(p ∗ D)."""
    error = 0.1
    curve = cpv.frontier(cpv.PrivacyDistortion(binary(error), cpv.hamming(2), budget=0.2), tol=4e-3)
    assert curve.solved_range == (0.0, 0.5)
    for d in np.linspace(0, 0.5, 26).tolist():
        exact = 1 - entropy(error * (1 - d) + (1 - error) * d)
        assert curve.outer(d) - 1e-12 <= exact <= curve.inner(d) + 1e-12
    assert curve.points[0].price == curve.price(0.0).lower == -math.inf
    assert curve.points[-1].price == 0.0
    assert curve.price(0.0).upper >= (1 - 2 * error) * math.log2(error / (1 - error))


def test_slopes_are_the_prices_of_the_points():
    curve = cpv.frontier(grid(7), tol=5e-3)
    for point in curve.points[1:-1]:
        assert point.price == point.solution.prices["budget"].multiplier
        price = curve.price(point.x)
        assert price.lower - 1e-6 <= point.price <= price.upper + 1e-6
    widths = [curve.price(x).upper - curve.price(x).lower for x in np.linspace(0.1, 0.8, 9)]
    assert max(widths) < 0.3
    assert curve.price(5.0).upper == 0.0


# ---- curves of a few numbers ---------------------------------------------------------------


def test_a_point_that_proves_nothing_is_passed_over():
    points = [
        breakpoint_at(0.0, 1.0, 1.0, 1.0),
        breakpoint_at(0.5, -math.inf, math.inf),
        breakpoint_at(1.0, 0.0, 0.0),
    ]
    curve = Convex(points, AXIS)
    assert curve.inner(0.5) == curve.outer(0.5) == 0.5
    assert curve.band <= 0.5
    empty = Convex(points[1:2], AXIS)
    assert (empty.inner(0.5), empty.outer(0.5), empty.band) == (math.inf, -math.inf, math.inf)
    nothing = Convex([], AXIS)
    assert (nothing.inner(0.5), nothing.outer(0.5), nothing.band) == (math.inf, -math.inf, math.inf)
    assert nothing.gaps == []


def test_a_line_is_rounded_down():
    one, two, three, four = map(Fraction, range(1, 5))
    point = Breakpoint(1.0, (one, two), 10.0, 10.0, (three, four))
    assert point.line((Fraction(5), Fraction(6))) == 10 - 4 * 5
    assert point.line((Fraction(-5), Fraction(-4))) == 10 + 3 * 5
    assert point.line(point.bound) == 10 - 4


def test_the_hull_by_hand():
    upper = [4.0, 3.5, 1.0, 1.5, 1.2]  # at 1 above the chord, at 3 and 4 above what 2 achieves
    points = [breakpoint_at(float(x), 0.0, value) for x, value in enumerate(upper)]
    curve = Convex(points, AXIS)
    assert curve.mixture(0.5) == (points[0], points[2], Fraction(1, 4))
    assert [curve.inner(x) for x in (-0.1, 0.0, 0.5, 1.0, 2.0, 3.0, 9.0)] == [
        math.inf, 4.0, 3.25, 2.5, 1.0, 1.0, 1.0,
    ]  # fmt: skip
    assert curve.mixture(4.0)[0] == points[2]
    assert curve.band == 4.0
    # lines that support V at 1, V(1) ∈ [0, 2.5]: no steeper than from 4 at 0, no flatter than 0
    assert curve.slopes(1.0) == (-4.0, 0.0)
    steep = Convex([*points[:1], breakpoint_at(1.0, 2.0, 2.5), points[2]], AXIS)
    assert steep.slopes(1.0) == (-2.0, -1.0)
    infeasible = breakpoint_at(-1.0, math.inf, math.inf)
    edge = Convex([infeasible, *points], AXIS)
    assert [edge.outer(x) for x in (-2.0, -1.0, -0.5, 0.0)] == [math.inf, math.inf, 0.0, 0.0]
    assert edge.solved_range == (0.0, 4.0)


class Blurred(Axis):
    """Right-hand sides known to an eighth."""

    def bound(self, x):
        return Fraction(x) - Fraction(1, 8), Fraction(x) + Fraction(1, 8)


def test_slopes_in_balls_by_hand():
    points = [breakpoint_at(0.0, 2.0, 4.0), breakpoint_at(2.0, 0.0, 1.0)]
    low, high = Convex(points, Blurred("convex", "bits")).slopes(1.0)
    assert low == pytest.approx(-2 / (7 / 8), rel=1e-15)
    assert high == pytest.approx(-1 / (9 / 8), rel=1e-15)
    assert Blurred("convex", "bits").slopes(1.0, -3.0, -2.0) == (-3.0, -2.0)
    scaled = Blurred("convex in exp", "nats").slopes(1.0, -3.0, -2.0)
    assert scaled == pytest.approx((-3 * 9 / 8, -2 * 7 / 8), rel=1e-15)


def test_a_gap_too_narrow_is_not_split():
    places = (0.0, 2.0**-42, 1.0)
    gaps = Convex([breakpoint_at(x, 0, 1 - x) for x in places], AXIS).gaps
    assert [gap.split is None for gap in gaps] == [True, False]
    places = (0.0, 1e-7, 1.0)
    gaps = Staircase([breakpoint_at(x, 0, 1) for x in places], Axis(MONOTONE, "bits")).gaps
    assert [gap.split is None for gap in gaps] == [True, False]


def test_a_gap_is_split_where_the_lines_meet():
    """Chord 1 − u/4 on [0, 4]; lines 1 − u and 0: farthest apart at u = 1, by 3/4."""
    (gap,) = Convex([breakpoint_at(0.0, 1, 1, 1.0), breakpoint_at(4.0, 0, 0)], AXIS).gaps
    assert (gap.split, gap.band) == (1.0, 0.75)
    # one line alone: the far end is where it is lowest, so that the middle is tried
    left, right = breakpoint_at(0.0, 1, 1, 1.0), breakpoint_at(4.0, -math.inf, 0)
    (gap,) = Convex([left, right], AXIS).gaps
    assert (gap.split, gap.band) == (2.0, 3.0)
    (gap,) = Convex([breakpoint_at(0.0, 1, 1), breakpoint_at(math.ulp(0.0), 0, 0)], AXIS).gaps
    assert gap.split is None  # no float is strictly between


def test_a_staircase_by_hand():
    """Values at 0, 1, 2 of a number that relaxes; the same turned round, that tightens."""
    upper, lower = [5.0, math.inf, 2.0], [4.0, 1.0, 1.5]
    for falling, sign in ((False, 1.0), (True, -1.0)):
        points = [breakpoint_at(sign * x, lower[x], upper[x]) for x in range(3)]
        curve = Staircase(points, Axis(MONOTONE, "bits", falling=falling))
        places = [sign * x for x in (-0.5, 0.0, 0.5, 1.0, 2.0, 3.0)]
        assert [curve.inner(x) for x in places] == [math.inf, 5.0, 5.0, 5.0, 2.0, 2.0]
        assert [curve.outer(x) for x in places] == [4.0, 4.0, 1.5, 1.5, 1.5, -math.inf]
        assert [(gap.band, gap.split) for gap in curve.gaps] == [
            (3.5, sign * 0.5), (3.5, sign * 1.5),
        ]  # fmt: skip
        assert curve.band == 3.5


def test_rounding_is_outwards():
    third, huge = Fraction(1, 3), Fraction(10) ** 400
    assert Fraction(rounded(third, -math.inf)) < third < Fraction(rounded(third, math.inf))
    assert rounded(Fraction(1, 2), math.inf) == rounded(Fraction(1, 2), -math.inf) == 0.5
    assert (rounded(huge, -math.inf), rounded(-huge, math.inf)) == (math.inf, -math.inf)
