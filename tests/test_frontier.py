"""Whole curves: what is achieved never below what is proved, and both where theory says."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import signal
import stat
import subprocess
import sys
from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise

import joblib
import numpy as np
import pytest
from flint import fmpq
from scipy.optimize import linprog

import cvxprivacy as cpv
from cvxprivacy.certificates import verify
from cvxprivacy.certificates.balls import ceil
from cvxprivacy.frontiers.curve import Convex, Knot
from cvxprivacy.frontiers.family import Family, axes, knot
from tests import referee
from tests.lengths import rest_at_length
from tests.test_architecture import ROOT


def entropy(p: float) -> float:
    """h(p) in bits."""
    return 0.0 if p in (0.0, 1.0) else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def binary(error: float = 0.1) -> cpv.DiscreteSource:
    """W through a binary symmetric channel from X, both uniform."""
    same, other = (1 - error) / 2, error / 2
    return cpv.DiscreteSource([[same, other], [other, same]])


def counted(seed: int = 3, shape: tuple[int, int] = (3, 5)) -> cpv.DiscreteSource:
    return cpv.DiscreteSource.from_counts(np.random.default_rng(seed).integers(1, 30, shape))


def grid(points: int = 9, rho: float = 0.9, **options) -> cpv.PrivacyDistortion:
    source = cpv.DiscreteSource.gaussian(rho, points=points)
    error = cpv.squared_error(source.x)
    return cpv.PrivacyDistortion(source, error, budget=0.3, units="nats", **options)


def random_problem(seed: int) -> tuple[cpv.ChannelProblem, str]:
    """Return a problem of any shape, and the number that moves: a right-hand side."""
    rng = np.random.default_rng(seed)
    nw, nx = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    pmf = rng.dirichlet(np.full(nw * nx, 0.7)).reshape(nw, nx)
    source = cpv.DiscreteSource(pmf, x=np.sort(rng.normal(size=nx)).tolist())
    kind = seed % 5
    distortion = cpv.hamming(source.x) if seed % 2 else cpv.absolute_error(source.x)
    units = "bits" if seed % 3 else "nats"
    options = {"encoder": "wx" if seed % 7 == 3 else "x", "units": units}
    if kind == 0:
        cap = [cpv.LeakageCap(0.1)]
        return cpv.MinimumDistortion(source, distortion, cap, **options), "leakage_cap"
    if kind == 1:
        drawn = cpv.Distortion(rng.uniform(size=(nx, nx + 1)))
        return cpv.PrivacyDistortion(source, drawn, budget=0.1, **options), "budget"
    if kind == 2:
        keep = [cpv.KeepProbability(0.2)]
        problem = cpv.PrivacyDistortion(source, distortion, budget=0.1, criteria=keep, **options)
        return problem, "budget"
    return cpv.PrivacyDistortion(source, distortion, budget=0.1, **options), "budget"


def rational(number: float) -> fmpq:
    return fmpq(*float(number).as_integer_ratio())


def check_exactly(curve: cpv.Frontier, count: int, seed: int) -> None:
    """Compare both curves in rationals with every point's line and with the chords."""
    rng = np.random.default_rng(seed)
    first, last = curve.curve.stretch()
    places = [first, last, *rng.uniform(first, last, count).tolist()]
    inner, outer = curve.inner(places).tolist(), curve.outer(places).tolist()
    shown = [p for p in curve.points if math.isfinite(p.upper)]
    lines = []
    for point in shown:
        slope = point.solution.certificate.dual.multipliers[curve.parameter]
        lines.append((rational(point.x), rational(point.lower), rational(slope)))
    tops, places_of = [rational(p.upper) for p in shown], [p.x for p in shown]
    tiny, band = fmpq(1, 10**12), rational(curve.band)
    for place, high, low in zip(places, map(rational, inner), map(rational, outer), strict=True):
        x = rational(place)
        proved = max(lower - slope * (x - at) for at, lower, slope in lines)
        assert proved <= high  # no line of any point passes above what is achieved
        assert low <= proved  # and the outer curve is one of them,
        assert proved - low <= tiny  # the highest
        right = min(bisect_left(places_of, place), len(lines) - 1)
        left = right if places_of[right] == place else right - 1
        width = lines[right][0] - lines[left][0]
        share = (x - lines[left][0]) / width if width else fmpq(0)
        assert high <= (1 - share) * tops[left] + share * tops[right] + tiny
        assert high - low <= band


# ---- convex: lines, chords, bands --------------------------------------------------------


@pytest.mark.parametrize("seed", range(7))
def test_inner_is_never_below_outer_in_exact_arithmetic(seed):
    problem, name = random_problem(seed)
    curve = cpv.frontier(problem, name, tol=0.02)
    assert curve.complete
    assert curve.band <= 0.02
    check_exactly(curve, 100, seed)
    for point in curve.points[1:-1:3]:  # at the ends multipliers may be too large for floats
        referee.check(point.solution, status=point.status)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(50))
def test_inner_is_never_below_outer_at_ten_thousand_places(seed):
    problem, name = random_problem(1000 + seed)
    curve = cpv.frontier(problem, name, tol=3e-3)
    assert curve.band <= 3e-3
    check_exactly(curve, 10_000, seed)


@pytest.mark.parametrize("seed", [1, 4])
def test_the_inner_curve_is_the_hull_of_all_pairs(seed):
    problem, name = random_problem(seed)
    curve = cpv.frontier(problem, name, tol=0.05)
    tops = [(Fraction(p.x), Fraction(p.upper)) for p in curve.points]
    for x in np.random.default_rng(seed).uniform(tops[0][0], tops[-1][0], 20).tolist():
        chords = []
        for a, b in ((a, b) for a in tops for b in tops if a[0] <= x <= b[0] and a[0] < b[0]):
            share = (Fraction(x) - a[0]) / (b[0] - a[0])
            chords.append((1 - share) * a[1] + share * b[1])
        chords += [top for at, top in tops if at <= x]  # a tighter release is allowed too
        assert float(min(chords)) == pytest.approx(curve.inner(x), abs=1e-14)
        assert Fraction(curve.inner(x)) >= min(chords)


@pytest.mark.parametrize(
    ("problem", "name", "places"),
    [
        (grid(), "budget", (0.05, 0.4, 0.9)),
        (
            cpv.MinimumDistortion(counted(), cpv.absolute_error(range(5)), [cpv.LeakageCap(0.1)]),
            "leakage_cap",
            (0.01, 0.05, 0.12),
        ),
        (
            cpv.MinimumDistortion(counted(), cpv.hamming(5), [cpv.MaximalLeakage(0.3)]),
            "maximal_leakage",
            (0.2, 0.9, 1.7),
        ),
        (cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), 0.3), "budget", (0.1, 0.5)),
        (
            cpv.GaussianEquivocation(
                cpv.GaussianSource(
                    np.array([[2.0, 0.9, 0.3], [0.9, 1.0, 0.2], [0.3, 0.2, 1.5]]),
                    sensitive=[0], key=[1, 2],
                ),
                0.8, max_leakage=0.5,
            ),
            "max_leakage",
            (0.3, 0.4),
        ),
    ],
)  # fmt: skip
def test_a_line_is_what_its_multipliers_prove_at_other_numbers(problem, name, places):
    """The proof itself, made again at the other number, against the affine formula."""
    family = Family(problem, name)
    for x in places:
        (record,) = family.work(x)["points"]
        own = knot(record, family.problem.program.to_dict(), name, family.kind)
        curve = Convex([own], *axes(family.kind, problem.units))
        for other in (*places, 0.77 * x, 1.3 * x):
            proof = verify.proof_of(family.at(other).program.to_dict())
            proved = proof.lower(record["dual"])
            assert curve.outer(other) <= ceil(proved)
            assert curve.outer(other) == pytest.approx(float(proved), rel=1e-9, abs=1e-11)


def test_the_band_shrinks_at_the_second_order():
    bands = [
        cpv.frontier(grid(7), points=np.linspace(0.1, 0.8, count), accuracy="high").band
        for count in (3, 5, 9, 17)
    ]
    for wide, narrow in pairwise(bands):
        assert wide / narrow == pytest.approx(4.0, rel=0.25)


def test_the_number_of_solves_grows_as_the_square_root():
    few, many = (cpv.frontier(grid(7), tol=tol).solves for tol in (1.6e-2, 1e-3))
    assert 2.5 < many / few < 6  # 4, but for the ends


@pytest.mark.parametrize("units", ["bits", "nats"])
@pytest.mark.parametrize("rho", [0.3, 0.95])
def test_the_gaussian_closed_form_is_inside_the_band(rho, units):
    """Rebollo-Monedero et al. 2010, eqs. (7)–(8), and its slope."""
    unit = math.log(2) if units == "bits" else 1.0
    problem = cpv.QuadraticGaussian(cpv.GaussianSource.scalar(rho), 0.5, units=units)
    curve = cpv.frontier(problem, tol=1e-3)
    assert curve.kind == "convex"
    assert curve.curve.stretch() == (0.0, pytest.approx(1.0, abs=1e-9))
    assert curve.band <= 1e-3
    for d in np.random.default_rng(7).uniform(0.0, 1.0, 60).tolist():
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
    curve = cpv.frontier(cpv.PrivacyDistortion(binary(error), cpv.hamming(2), budget=0.2), tol=1e-3)
    assert curve.curve.stretch() == (0.0, 0.5)
    for d in np.linspace(0, 0.5, 101).tolist():
        exact = 1 - entropy(error * (1 - d) + (1 - error) * d)
        assert curve.outer(d) - 1e-12 <= exact <= curve.inner(d) + 1e-12
    assert curve.points[0].price == -math.inf
    assert curve.points[-1].price == 0.0
    assert curve.price(0.0).lower == -math.inf
    slope = (1 - 2 * error) * math.log2(error / (1 - error))
    assert curve.price(0.0).upper >= slope


def test_slopes_are_the_prices_of_the_points():
    curve = cpv.frontier(grid(7), tol=2e-3)
    for point in curve.points[1:-1]:
        assert point.price == point.solution.prices["budget"]
        price = curve.price(point.x)
        assert price.lower - 1e-6 <= point.price <= price.upper + 1e-6
    widths = [curve.price(x).upper - curve.price(x).lower for x in np.linspace(0.1, 0.8, 9)]
    assert max(widths) < 0.3
    assert curve.price(5.0).upper == 0.0


# ---- the ends ----------------------------------------------------------------------------


def test_the_ends_are_closed():
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1]])
    outputs = [0.5, 1.5, 2.5]  # no letter keeps its place
    problem = cpv.PrivacyDistortion(
        source, cpv.absolute_error([0, 1, 2, 3], outputs=outputs), budget=0.8
    )
    curve = cpv.frontier(problem)
    first, last = curve.points[0], curve.points[-1]
    assert first.x == problem.least_distortion == 0.5
    assert first.price == -math.inf
    assert curve.inner(math.nextafter(0.5, 0)) == math.inf
    assert last.upper <= 1e-12
    assert last.lower == 0.0
    assert curve.inner(100.0) == last.upper
    # the least distortion without any leakage, by a linear program of its own
    p, n, m = source.pmf, 4, 3
    cost = (source.p_x[:, None] * problem.measure.matrix).ravel()
    rows, right = [], []
    for s in range(n):
        row = np.zeros((n, m))
        row[s] = 1.0
        rows.append(row.ravel())
        right.append(1.0)
    for y in range(m):
        row = np.zeros((n, m))
        row[:, y] = p[0] - source.p_w[0] * source.p_x
        rows.append(row.ravel())
        right.append(0.0)
    least = linprog(cost, A_eq=np.array(rows), b_eq=right)
    assert last.x == pytest.approx(least.fun, abs=1e-7)
    assert last.x < problem.greatest_distortion - 0.05


def test_the_cap_begins_at_no_leakage_and_ends_where_it_costs_nothing():
    source = counted()
    problem = cpv.MinimumDistortion(source, cpv.absolute_error(source.x), [cpv.LeakageCap(0.1)])
    curve = cpv.frontier(problem, "leakage_cap")
    assert curve.curve.stretch() == (0.0, pytest.approx(source.information(), abs=1e-9))
    assert curve.points[-1].upper == 0.0
    check_exactly(curve, 50, 0)


def test_a_rare_end_where_other_constraints_decide():
    source = counted()
    problem = cpv.PrivacyDistortion(
        source, cpv.absolute_error(source.x), budget=1.0, criteria=[cpv.LeakageCap(0.03)]
    )
    curve = cpv.frontier(problem)
    other = cpv.MinimumDistortion(source, cpv.absolute_error(source.x), [cpv.LeakageCap(0.03)])
    least = other.solve()
    low, high = curve.edge
    assert low <= least.upper
    assert least.lower <= high == curve.points[0].x
    assert high - low < 1e-5
    assert curve.points[0].upper <= 0.03
    check_exactly(curve, 50, 0)
    for x in (0.6, 0.8):  # a mixture keeps the other constraint too
        solution = curve.solution_at(x)
        referee.check(solution, status=solution.status)
        assert float(solution.risk) <= 0.03


def test_nothing_feasible_is_said_with_its_reason():
    source = counted()
    problem = cpv.PrivacyDistortion(
        source, cpv.absolute_error(source.x), budget=1.0, criteria=[cpv.LeakageCap(0.03)]
    )
    with pytest.raises(cpv.InfeasibleError, match=r"0\.5231"):
        cpv.frontier(problem, between=(0.1, 0.3))
    none = [cpv.LeakageCap(0.0), cpv.KeepProbability(0.9)]
    with pytest.raises(cpv.InfeasibleError, match="cannot hold together"):
        cpv.frontier(cpv.PrivacyDistortion(source, cpv.hamming(5), budget=1.0, criteria=none))


def test_an_infeasible_stretch_is_infinite_on_both_curves():
    source = counted()
    problem = cpv.PrivacyDistortion(
        source, cpv.absolute_error(source.x), budget=1.0, criteria=[cpv.LeakageCap(0.03)]
    )
    curve = cpv.frontier(problem, points=[0.2, 0.4, 0.6, 0.8])
    assert [p.status for p in curve.points] == ["infeasible"] * 2 + ["certified"] * 2
    assert curve.edge == (0.4, 0.6)
    assert curve.outer([0.1, 0.2, 0.4]).tolist() == [math.inf] * 3
    assert curve.inner([0.1, 0.4, 0.5]).tolist() == [math.inf] * 3
    assert curve.outer(0.5) >= curve.points[2].lower  # feasible or not
    assert curve.inner(0.7) < math.inf
    assert math.isfinite(curve.band)
    whole = cpv.frontier(problem, between=(0.1, 0.7), tol=0.01)  # finds the edge by itself
    assert whole.complete
    assert whole.curve.stretch()[0] == pytest.approx(0.523086, abs=1e-5)
    with pytest.raises(cpv.InputError, match="no release is known at budget 0.5"):
        curve.release_at(0.5)
    with pytest.raises(cpv.InputError, match="no release is known at budget 0.5"):
        curve.price(0.5)


def test_a_constant_curve_is_one_point():
    source = cpv.DiscreteSource(np.outer([0.3, 0.7], [0.2, 0.3, 0.5]))
    curve = cpv.frontier(cpv.PrivacyDistortion(source, cpv.hamming(3), budget=0.3))
    assert curve.band <= 1e-30
    assert curve.inner([0.0, 0.3, 2.0]) == pytest.approx([0.0, 0.0, 0.0], abs=1e-30)
    assert curve.outer([0.0, 0.3, 2.0]).tolist() == [0.0, 0.0, 0.0]


def test_a_gaussian_rate_has_no_first_point():
    source = cpv.GaussianSource.scalar(0.8)
    problem = cpv.GaussianEquivocation(source, 0.5)
    with pytest.raises(cpv.InputError, match="between"):
        cpv.frontier(problem)
    curve = cpv.frontier(problem, between=(0.05, None), tol=0.02)
    for d in np.linspace(0.05, 1.0, 30).tolist():
        exact = -math.log2(d) / 2
        assert curve.outer(d) - 1e-12 <= exact <= curve.inner(d) + 1e-12


# ---- time-sharing ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_mixture_achieves_the_chord_or_less(seed):
    problem, name = random_problem(seed)
    curve = cpv.frontier(problem, name, tol=0.05)
    first, last = curve.curve.stretch()
    for x in np.random.default_rng(seed).uniform(first, last, 6).tolist():
        solution = curve.solution_at(x)
        assert solution.upper <= curve.inner(x) + 1e-12
        assert solution.lower >= curve.outer(x) - 1e-12
        bound = solution.certificate.program.rows[name].bound
        assert bound == Fraction(x)
        referee.check(solution, status=solution.status)
        channel = curve.release_at(x)
        assert np.allclose(channel.matrix.sum(axis=1), 1.0, atol=1e-12)
        assert np.array_equal(channel.matrix, solution.channel.matrix)
    own = curve.points[len(curve.points) // 2]
    assert curve.solution_at(own.x).upper <= own.upper


# ---- e^b, and monotone kinds ---------------------------------------------------------------


def test_maximal_leakage_is_convex_in_its_exponential():
    source = counted()
    problem = cpv.MinimumDistortion(source, cpv.hamming(5), [cpv.MaximalLeakage(0.3)])
    curve = cpv.frontier(problem, "maximal_leakage", tol=2e-3)
    assert curve.kind == "convex in exp"
    assert curve.curve.stretch() == (0.0, pytest.approx(math.log2(5), abs=1e-9))
    for b in np.random.default_rng(0).uniform(0.0, math.log2(5), 12).tolist():
        true = problem.at(maximal_leakage=b).solve()
        assert curve.outer(b) <= true.upper
        assert true.lower <= curve.inner(b)
        assert curve.inner(b) - curve.outer(b) <= curve.band
        mixed = curve.solution_at(b)
        assert mixed.upper <= curve.inner(b) + 1e-12
        assert float(np.log2(mixed.channel.matrix.max(axis=0).sum())) <= b + 1e-12
        price = curve.price(b)
        assert price.lower - 1e-4 <= true.prices["maximal_leakage"] <= price.upper + 1e-4
    nats = problem.__class__(source, cpv.hamming(5), [cpv.MaximalLeakage(0.3)], units="nats")
    other = cpv.frontier(nats, "maximal_leakage", tol=2e-3)
    assert other.inner(0.5) == pytest.approx(curve.inner(0.5 / math.log(2)), abs=4e-3)


def test_maximal_leakage_with_a_budget_begins_at_an_edge():
    source = counted()
    problem = cpv.PrivacyDistortion(
        source, cpv.absolute_error(source.x), budget=0.3, criteria=[cpv.MaximalLeakage(1.3)]
    )
    curve = cpv.frontier(problem, "maximal_leakage", tol=5e-3)
    low, high = curve.edge
    assert high - low < 5e-3
    with pytest.raises(cpv.InfeasibleError):
        problem.at(maximal_leakage=low).solve()
    assert problem.at(maximal_leakage=high).solve().status == "certified"
    assert curve.outer(low) == math.inf


D5 = cpv.absolute_error(range(5))
MONOTONE = [
    ([cpv.TCloseness(0.1)], "t_closeness", False),
    ([cpv.LocalPrivacy(1.0)], "local_privacy", False),
    ([cpv.DeltaDisclosure(0.3)], "delta_disclosure", False),
    ([cpv.LDiversity(2.0)], "l_diversity", True),
    ([cpv.KAnonymity(20)], "k_anonymity", True),
    ([cpv.KeepProbability(0.3), cpv.LeakageCap(0.08)], "keep_probability", True),
]


@pytest.mark.parametrize(("criteria", "name", "falling"), rest_at_length(MONOTONE, 2))
def test_monotone_curves_are_staircases(criteria, name, falling):
    problem = cpv.MinimumDistortion(counted(), D5, criteria)
    between = (0.0, 3.0) if name == "local_privacy" else None
    curve = cpv.frontier(problem, name, tol=0.3, between=between)
    assert curve.kind == "monotone"
    assert curve.complete
    first, last = curve.curve.stretch()
    rng = np.random.default_rng(1)
    for x in [first, last, *rng.uniform(first, last, 5).tolist()]:
        true = problem.at(**{name: x}).solve(certify="warn")
        assert curve.outer(x) <= true.upper + 1e-9
        assert true.lower - 1e-9 <= curve.inner(x)
        assert curve.inner(x) - curve.outer(x) <= curve.band
        release = curve.release_at(x)  # of a solved point: no time-sharing
        assert any(np.array_equal(release.matrix, p.solution.channel.matrix) for p in curve.points)
        assert (curve.price(x) >= 0) if falling else (curve.price(x) <= 0)
    values = curve.inner(np.linspace(first, last, 50))
    assert (np.diff(values) >= 0 if falling else np.diff(values) <= 0).all()
    # between the points, multipliers prove more than the next point's lower end does
    gains = []
    for left, right in pairwise(curve.points):
        for share in (0.1, 0.5, 0.9):
            between = left.x + share * (right.x - left.x)
            gains.append(curve.outer(between) - min(left.lower, right.lower))
    assert min(gains) >= 0
    assert max(gains) > 1e-3


def test_a_tight_budget_makes_a_monotone_edge():
    problem = cpv.PrivacyDistortion(counted(), D5, budget=0.3, criteria=[cpv.TCloseness(0.1)])
    curve = cpv.frontier(problem, "t_closeness", tol=5e-3)
    low, high = curve.edge
    assert curve.points[0].status == "infeasible"
    assert high - low < 5e-4
    with pytest.raises(cpv.InfeasibleError):
        problem.at(t_closeness=low).solve()
    assert curve.outer(low) == math.inf
    assert curve.inner(low) == math.inf


# ---- long work -----------------------------------------------------------------------------


def records(curve: cpv.Frontier) -> list[dict]:
    return [point.record for point in curve.points]


def test_the_number_of_workers_changes_nothing():
    one, two = (cpv.frontier(grid(7), tol=5e-3, n_jobs=jobs) for jobs in (1, 2))
    assert records(one) == records(two)
    assert one.band == two.band
    with joblib.parallel_config(backend="threading", n_jobs=3):
        threads = cpv.frontier(grid(7), tol=5e-3)
    assert records(one) == records(threads)


def test_a_dask_cluster_gives_the_same_points():
    distributed = pytest.importorskip("distributed")
    one = cpv.frontier(grid(7), tol=5e-3)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        many = cpv.frontier(grid(7), tol=5e-3, n_jobs=-1)
    assert records(one) == records(many)


def test_workers_keep_to_one_blas_thread(monkeypatch):
    from threadpoolctl import threadpool_info

    seen = []
    work = Family.work

    def spy(self, task):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return work(self, task)

    monkeypatch.setattr(Family, "work", spy)
    cpv.frontier(grid(5), points=[0.3])
    assert set(seen) == {1}


@pytest.fixture
def counter(monkeypatch):
    """Count what is worked on."""
    done: list = []
    work = Family.work

    def counted_work(self, task):
        done.append(task)
        return work(self, task)

    monkeypatch.setattr(Family, "work", counted_work)
    return done


def test_an_interrupt_returns_what_is_proved(counter):
    def stop(_):
        if len(counter) == 9:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted: the band is"):
        curve = cpv.frontier(grid(7), tol=1e-3, progress=stop)
    assert not curve.complete
    assert len(curve.points) == 9

    assert 1e-3 < curve.band < 0.1
    check_exactly(curve, 30, 0)


def test_one_end_alone_is_not_complete():
    def stop(_):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        curve = cpv.frontier(grid(5), tol=1e-3, progress=stop)
    assert len(curve.points) == 1
    assert not curve.complete


def test_a_limit_of_solves_is_said():
    with pytest.warns(UserWarning, match="stopped after 12 solves: the band is"):
        curve = cpv.frontier(grid(7), tol=1e-4, max_solves=12)
    assert curve.solves == 12
    assert not curve.complete


def test_progress_names_solves_and_band(capsys):
    said = []
    curve = cpv.frontier(grid(5), tol=2e-2, progress=said.append)
    assert len(said) == len(curve.points)
    assert said[-1] == f"budget: {curve.solves} solves, band {curve.band:.2e} of 0.02"
    cpv.frontier(grid(5), tol=2e-2, progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said[-1] in printed.err
    assert printed.err.endswith("\n")


KILLED = """
import os, signal, sys
import cvxprivacy as cpv
from tests.test_frontier import grid
lines = []
def stop(line):
    lines.append(line)
    if len(lines) == 8:
        os.kill(os.getpid(), signal.SIGKILL)
cpv.frontier(grid(7), tol=2e-3, checkpoint=sys.argv[1], progress=stop)
"""


def test_a_killed_run_resumes_without_solving_again(tmp_path, counter):
    path = tmp_path / "points.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], cwd=ROOT, env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = path.read_text(encoding="utf-8").splitlines()
    assert len(kept) == 1 + 8
    with path.open("a", encoding="utf-8") as file:
        file.write('{"task": [0, 0.4')  # what a crash may leave of a line
    resumed = cpv.frontier(grid(7), tol=2e-3, checkpoint=path)
    again = list(counter)
    counter.clear()
    fresh = cpv.frontier(grid(7), tol=2e-3)
    assert len(again) == len(counter) - 8
    assert records(resumed) == records(fresh)
    assert resumed.solves == fresh.solves
    counter.clear()
    finer = cpv.frontier(grid(7), tol=1e-3, checkpoint=path)  # goes on from there
    assert len(counter) == len(finer.points) - len(fresh.points)
    # the problem's own value of the budget does not matter, anything else does
    counter.clear()
    cpv.frontier(grid(7).at(budget=0.7), tol=2e-3, checkpoint=path)
    assert counter == []
    for other, options in (
        (grid(7, rho=0.8), {}),
        (grid(5), {}),
        (grid(7), {"accuracy": "high"}),
        (cpv.PrivacyDistortion(grid(7).source, grid(7).measure, budget=0.1), {}),  # bits
    ):
        with pytest.raises(cpv.InputError, match="belongs to another problem"):
            cpv.frontier(other, tol=2e-3, checkpoint=path, **options)


def test_what_is_no_checkpoint_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    for text in ("my notes", "my notes\nmore\n", '{"schema": "x"}\n', "[]\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(cpv.InputError, match="checkpoint"):
            cpv.frontier(grid(5), points=[0.3], checkpoint=path)
        assert path.read_text(encoding="utf-8") == text
    with pytest.raises(cpv.InputError, match="cannot be opened"):
        cpv.frontier(grid(5), points=[0.3], checkpoint=tmp_path / "no" / "folder")
    with pytest.raises(cpv.InputError, match="cannot be opened"):
        cpv.frontier(grid(5), points=[0.3], checkpoint=tmp_path)


# ---- kept, shown ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        (cpv.PrivacyDistortion(counted(), D5, budget=0.3), "budget"),
        (cpv.MinimumDistortion(counted(), D5, [cpv.MaximalLeakage(0.4)]), "maximal_leakage"),
        (cpv.MinimumDistortion(counted(), D5, [cpv.TCloseness(0.1)]), "t_closeness"),
        (cpv.MinimumDistortion(counted(), D5, [cpv.DeltaDisclosure(0.1)]), "delta_disclosure"),
        (cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), 0.3), "budget"),
    ],
)
def test_a_frontier_is_kept_with_its_proofs(problem, name, tmp_path):
    tol = 0.5 if name in ("t_closeness", "delta_disclosure") else 0.02
    curve = cpv.frontier(problem, name, tol=tol)
    path = curve.save(tmp_path / "curve.json")
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first, last = curve.curve.stretch()
    places = np.linspace(first, last, 13)
    plain = cpv.Frontier.load(path, verify=True)
    assert np.array_equal(plain.inner(places), curve.inner(places))
    assert plain.band == curve.band
    assert (plain.outer(places) <= curve.outer(places)).all()
    assert str(plain) == str(curve)
    assert plain.to_frame().equals(curve.to_frame())
    with pytest.raises(cpv.InputError, match="pass problem="):
        plain.release_at(last)
    whole = cpv.Frontier.load(path, problem, verify=True)
    assert np.array_equal(whole.outer(places), curve.outer(places))
    assert whole.solution_at(places[5]).upper == curve.solution_at(places[5]).upper
    assert whole.documents() == curve.documents()
    assert all(verify.disagreements(document) == [] for document in curve.documents())
    again = whole.save(tmp_path / "again.json")
    assert again.read_bytes() == path.read_bytes()


def test_a_changed_file_is_found_out(tmp_path):
    problem = cpv.PrivacyDistortion(counted(), D5, budget=0.3)
    path = cpv.frontier(problem, points=[0.2, 0.4, 0.6]).save(tmp_path / "curve.json")

    def changed(change) -> None:
        body = json.loads(path.read_text(encoding="utf-8"))
        change(body)
        (tmp_path / "changed.json").write_text(json.dumps(body), encoding="utf-8")

    def claim(body):
        body["points"][1]["claim"]["upper"] *= 0.9

    def moved(body):
        body["points"][1]["x"] = 0.3

    def multiplier(body):
        body["points"][1]["dual"]["multipliers"]["budget"] *= 1.1

    for change in (claim, moved, multiplier):
        changed(change)
        cpv.Frontier.load(tmp_path / "changed.json")  # is believed
        for known in (None, problem):
            with pytest.raises(cpv.InputError, match="fails"):
                cpv.Frontier.load(tmp_path / "changed.json", known, verify=True)
    for change in (lambda b: b.pop("points"), lambda b: b.update(schema="other")):
        changed(change)
        with pytest.raises(cpv.InputError, match="is no frontier"):
            cpv.Frontier.load(tmp_path / "changed.json")
    with pytest.raises(cpv.InputError, match="another problem"):
        cpv.Frontier.load(path, cpv.PrivacyDistortion(counted(4), D5, budget=0.3))
    with pytest.raises(cpv.InputError, match="cannot be read"):
        cpv.Frontier.load(tmp_path / "nothing.json")
    (tmp_path / "text.json").write_text("not JSON", encoding="utf-8")
    with pytest.raises(cpv.InputError, match="is no frontier"):
        cpv.Frontier.load(tmp_path / "text.json")


def test_tables_and_pictures():
    import matplotlib.pyplot as plt

    curve = cpv.frontier(grid(5), tol=2e-2)
    frame = curve.to_frame()
    assert list(frame.columns[:5]) == ["budget", "lower", "upper", "status", "price"]
    assert len(frame) == len(curve.points)
    assert (frame["lower"] <= frame["upper"]).all()
    assert (frame["distortion"] <= frame["budget"] + 1e-12).all()
    figure, ax = plt.subplots()
    assert curve.plot(ax, per=(2.0, 1.0), label="one") is ax
    assert ax.get_xlim()[1] < 0.6
    assert "nats" in ax.get_ylabel()
    assert ax.get_legend_handles_labels()[1] == ["one"]
    plt.close(figure)
    assert f"{len(curve.points)} points" in repr(curve)
    for piece in ("PrivacyDistortion over budget", "convex", "band", "solves"):
        assert piece in str(curve)


# ---- many problems ---------------------------------------------------------------------------


def hospitals() -> dict[str, cpv.PrivacyDistortion]:
    return {
        name: cpv.PrivacyDistortion(counted(seed, (2, 4)), cpv.hamming(4), budget=0.1)
        for name, seed in (("north", 1), ("south", 2))
    }


def test_a_sweep_is_one_frontier_for_each(tmp_path, counter):
    path = tmp_path / "sweep.jsonl"
    both = cpv.sweep(hospitals(), tol=0.02, checkpoint=path)
    assert list(both) == ["north", "south"]
    done = len(counter)
    for name, problem in hospitals().items():
        assert records(both[name]) == records(cpv.frontier(problem, tol=0.02))
    assert len(counter) == 2 * done
    cpv.sweep(hospitals(), tol=0.02, checkpoint=path)
    assert len(counter) == 2 * done
    assert both.complete
    assert both.band == max(both["north"].band, both["south"].band)
    frame = both.to_frame()
    assert set(frame["problem"]) == {"north", "south"}
    assert len(frame) == sum(len(curve.points) for curve in both.values())
    ax = both.plot()
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"north", "south"}
    assert "north: PrivacyDistortion over budget" in str(both)
    with pytest.raises(cpv.InputError, match="belongs to another problem"):
        cpv.sweep(dict(reversed(hospitals().items())), tol=0.02, checkpoint=path)


def test_a_sweep_says_which_problem_is_infeasible():
    problems = {
        "loose": cpv.PrivacyDistortion(counted(), D5, budget=0.6),
        "strict": cpv.PrivacyDistortion(
            counted(), D5, budget=0.6, criteria=[cpv.KeepProbability(0.9), cpv.LeakageCap(0.01)]
        ),
    }
    with pytest.raises(cpv.InfeasibleError) as caught:
        cpv.sweep(problems, points=[0.6])
    assert any("strict" in note for note in caught.value.__notes__)
    with pytest.raises(cpv.InputError, match="problems"):
        cpv.sweep([])


# ---- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"parameter": "nothing"}, "use one of budget"),
        ({"parameter": "budget", "between": (0.3, 0.2)}, "lo < hi"),
        ({"parameter": "budget", "between": 0.3}, "pass \\(lo, hi\\)"),
        ({"parameter": "budget", "between": (-1.0, 0.2)}, "out of range"),
        ({"parameter": "budget", "between": (math.nan, 0.2)}, "finite"),
        ({"parameter": "budget", "tol": 0.0}, "tol"),
        ({"parameter": "budget", "points": []}, "at least one"),
        ({"parameter": "budget", "points": [0.1, "x"]}, "points\\[1\\]"),
        ({"parameter": "budget", "max_solves": 0}, "max_solves"),
        ({"parameter": "budget", "accuracy": "best"}, "accuracy"),
    ],
)
def test_bad_input_is_refused_by_name(options, piece):
    with pytest.raises(cpv.InputError, match=piece):
        cpv.frontier(grid(5), **options)


def test_errors_come_back_whole_from_a_worker():
    for error in (
        cpv.InputError("a", "wrong", "do right", where=(1, 2), value=3),
        cpv.UnknownValueError("a", "wrong", "do right"),
        cpv.InfeasibleError("nothing", None, conflict=["a"], extremes={"a": 1.0}),
    ):
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert vars(back) == vars(error)


def test_other_bad_input():
    with pytest.raises(cpv.InputError, match="problem"):
        cpv.frontier("a problem")
    rule = [cpv.PreserveMarginal()]
    ruled = cpv.PrivacyDistortion(counted(), D5, budget=0.3, criteria=rule)
    with pytest.raises(cpv.InputError, match="cannot move"):
        cpv.frontier(ruled, "preserve_marginal")
    curve = cpv.frontier(grid(5), points=[0.3])
    with pytest.raises(cpv.InputError, match="x"):
        curve.inner(math.nan)

    class Doubled(cpv.PrivacyDistortion):
        def subject_to(self):
            return {"budget": self.distortion <= 2 * self.budget}

    with pytest.raises(cpv.InputError, match="moves more than a bound"):
        cpv.frontier(Doubled(counted(), D5, budget=0.3))


def test_a_problem_is_made_again_at_other_numbers():
    problem = cpv.PrivacyDistortion(
        counted(), D5, budget=0.3, criteria=[cpv.TCloseness(0.1), cpv.LeakageCap(0.2)]
    )
    other = problem.at(budget=0.5, t_closeness=0.3, leakage_cap=0.1)
    assert other.budget == 0.5
    assert [c.value for c in other.criteria] == [0.3, 0.1]
    assert [c.value for c in problem.criteria] == [0.1, 0.2]
    assert problem.at().solve().value == problem.solve().value
    for name in ("nothing", "t_closeness[2]"):
        with pytest.raises(cpv.InputError, match="no number of this name"):
            problem.at(**{name: 0.1})
    with pytest.raises(cpv.InputError, match="budget"):
        problem.at(budget=-1.0)
    source = cpv.GaussianSource(np.eye(3) + 0.3, sensitive=[0], key=[1, 2], names=["w", "a", "b"])
    many = cpv.QuadraticGaussian(source, {"a": 0.3, "b": 0.4})
    assert many.at(**{"budget[b]": 0.2}).budget == {"a": 0.3, "b": 0.2}
    curve = cpv.frontier(many, "budget[a]", between=(0.1, None), tol=0.05)
    assert curve.complete


def test_a_knot_that_proves_nothing_is_passed_over():
    exact = lambda x: (Fraction(x), Fraction(x))  # noqa: E731
    knots = [
        Knot(0.0, exact(0.0), 1.0, 1.0, exact(1.0)),
        Knot(0.5, exact(0.5), -math.inf, math.inf),
        Knot(1.0, exact(1.0), 0.0, 0.0, exact(0.0)),
    ]
    curve = Convex(knots, exact, float)
    assert curve.inner(0.5) == 0.5
    assert curve.outer(0.5) == 0.5
    assert curve.band <= 0.5
    empty = Convex(knots[1:2], exact, float)
    assert empty.inner(0.5) == math.inf
    assert empty.outer(0.5) == -math.inf
    assert empty.band == math.inf


def test_a_frontier_of_distortions_is_not_in_bits():
    source = counted()
    least = cpv.MinimumDistortion(source, cpv.absolute_error(source.x), [cpv.LeakageCap(0.1)])
    curve = cpv.frontier(least, "leakage_cap", tol=0.1)
    assert "units of distortion" in str(curve)
    assert "bits" not in str(curve) + curve.plot().get_ylabel()


@pytest.mark.parametrize("criteria", [[], [cpv.LocalPrivacy(2.0)]])
def test_a_frontier_is_copied_and_sent(criteria):
    source = counted()
    problem = cpv.PrivacyDistortion(
        source, cpv.absolute_error(source.x), budget=0.5, criteria=criteria
    )
    curve = cpv.frontier(problem, "local_privacy" if criteria else "budget", tol=0.2)
    x = (curve.points[0].x + curve.points[-1].x) / 2
    for other in (copy.deepcopy(curve), pickle.loads(pickle.dumps(curve))):
        assert str(other) == str(curve)
        assert (other.outer(x), other.inner(x)) == (curve.outer(x), curve.inner(x))
