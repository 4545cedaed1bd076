"""Hamming water-filling: closed forms, the certified program, exact channels, honest rounding.

The truth is computed here from the definition: every K is tried in rationals, logarithms are
400-bit balls.  It shares no line with the package.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.certificates import verify
from cvxprivacy.certificates.balls import UnprovableError, ceil, floor
from cvxprivacy.certificates.hamming_proof import Filling, HammingProof, Letters, nonnegative
from cvxprivacy.model.information import entropy, mutual_information
from cvxprivacy.proving.hamming import Masses, _wider
from cvxprivacy.proving.sums import exact_sum, rounded_down, sum_of_v_log_v
from cvxprivacy.reference import blahut_arimoto
from tests import referee

PMF = (0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02)
KNOWN = {0.05: 1.2730369840, 0.1: 1.0568812805, 0.2: 0.7066760108, 0.3: 0.4366338891,
         0.4: 0.2306454879, 0.5: 0.0819482950}  # fmt: skip


def rationals(masses) -> list[Fraction]:
    """Return the law, largest first, zeros left out."""
    exact = sorted((Fraction(m) for m in np.asarray(masses, float).tolist() if m), reverse=True)
    total = sum(exact)
    return [m / total for m in exact]


def level_of(masses, budget: Fraction) -> Fraction:
    """Return λ by trying every number of letters that might be kept."""
    p = rationals(masses)
    if budget >= 1 - p[0]:
        return p[0]
    for k in range(2, len(p) + 1):
        level = (budget - sum(p[k:])) / (k - 1)
        if level < p[k - 1] and (k == len(p) or p[k] <= level):
            return level
    raise AssertionError("no number of letters fits")


def poured(masses, level: Fraction) -> Fraction:
    """D(λ) = Σ min(p, λ) − λ."""
    return sum(min(p, level) for p in rationals(masses)) - level


def ball(value: Fraction) -> arb:
    return arb(fmpq(*value.as_integer_ratio()))


def part(value: Fraction) -> arb:
    return ball(value) * ball(value).log() if value else arb(0)


def truth(masses, budget) -> arb:
    """R(D) in nats, to 400 bits (call it with ``ctx.workprec(400)``)."""
    budget = Fraction(budget)
    level = level_of(masses, budget)
    p = rationals(masses)
    if level == p[0]:
        return arb(0)
    kept = [q for q in p if q > level]
    inside = sum((-part(q) for q in kept), arb(0))
    return inside + part(1 - budget) + (len(kept) - 1) * part(level)


def contains(enclosure, value: arb) -> bool:
    """Tell whether a value is inside, or 400 bits do not tell it from an end."""
    ends = arb(enclosure.lower), arb(enclosure.upper)
    return not ends[0] > value and not value > ends[1] and float(value.rad()) < 1e-100


def random_pmf(rng: np.random.Generator, letters: int) -> np.ndarray:
    """Return a law with ties, zeros or tiny letters now and then."""
    p = rng.dirichlet(np.full(letters, rng.choice([0.3, 1.0, 5.0])))
    kind = rng.integers(5)
    if kind == 0 and letters > 2:
        p[rng.integers(letters)] = p[rng.integers(letters)]
    if kind == 1 and letters > 2:
        p[rng.integers(letters)] = 0.0
    if kind == 2:
        p = rng.integers(1, 4, letters).astype(float)
    if kind == 3:
        p[rng.integers(letters)] = 10.0 ** rng.uniform(-12, -4)
    return p / p.sum()


def random_budget(rng: np.random.Generator, p: np.ndarray) -> float:
    """Return a D from the whole range, its ends and its kinks included."""
    most = 1 - p.max()
    kink = float(poured(p, Fraction(float(rng.choice(p[p > 0]))) / sum(map(Fraction, p.tolist()))))
    ends = [0.0, most, min(1.0, 1.05 * most), kink, 1e-6 * most, (1 - 1e-6) * most]
    return float(rng.choice(ends)) if rng.random() < 0.3 else rng.uniform(0, most)


# ---- closed forms ------------------------------------------------------------------------


@pytest.mark.parametrize("budget", KNOWN)
def test_known_values(budget):
    solution = cpv.HammingWaterFilling(PMF, budget, units="nats").solve()
    assert solution.status == "certified"
    assert solution.gap < 1e-14
    assert solution.lower == pytest.approx(KNOWN[budget], abs=1e-9)
    assert solution.upper == pytest.approx(KNOWN[budget], abs=1e-9)
    bits = cpv.HammingWaterFilling(PMF, budget).solve()
    assert bits.value == pytest.approx(KNOWN[budget] / math.log(2), abs=1e-9)
    for found, unit in ((solution, 1.0), (bits, math.log(2))):
        before = entropy(PMF, units=found.units)
        assert found.rate == found.leakage == pytest.approx(found.value, abs=1e-13)
        assert found.equivocation == pytest.approx(before - found.value, abs=1e-13)
        assert found.distortion == budget
        level = float(found.certificate.primal.level)
        assert found.prices["budget"] == pytest.approx(-math.log((1 - budget) / level) / unit)
        assert found.certificate.verify()


@pytest.mark.parametrize("letters", [2, 3, 10, 1000])
def test_equal_letters(letters):
    """R(D) = log n − h(D) − D log(n − 1) for the uniform law: Fano's inequality is tight."""
    most = 1 - 1 / letters
    for budget in np.linspace(0, most, 7)[:-1]:
        found = cpv.HammingWaterFilling.from_counts(np.ones(letters), budget, units="nats").solve()
        noise = entropy([budget, 1 - budget], units="nats")
        exact = math.log(letters) - noise - budget * math.log(letters - 1)
        assert found.value == pytest.approx(exact, abs=1e-12)
        assert found.release.kept == list(range(letters))
    assert cpv.HammingWaterFilling.from_counts(np.ones(letters), Fraction(letters - 1, letters)
                                               ).solve().upper == 0  # fmt: skip


def test_the_ends_of_the_curve():
    nothing = cpv.HammingWaterFilling(PMF, 0, units="nats").solve()
    assert nothing.value == pytest.approx(entropy(PMF, units="nats"))
    assert nothing.prices["budget"] == -math.inf
    assert np.array_equal(nothing.release.matrix, np.eye(7))
    assert (nothing.equivocation.lower, nothing.equivocation.upper) == (0, 0)
    for budget in (Fraction(3, 5) + Fraction(1, 10**9), 0.7, 1.0):
        everything = cpv.HammingWaterFilling(PMF, budget).solve()
        assert (everything.lower, everything.upper) == (0, 0)
        assert everything.prices["budget"] == 0
        assert everything.release.kept == [0]
        assert everything.distortion == pytest.approx(0.6)
        assert set(everything.release.apply(range(7), seed=1)) == {0}
        assert everything.certificate.verify()
    alone = cpv.HammingWaterFilling([0.0, 1.0], 0.0).solve()
    assert (alone.value, alone.release.kept, alone.prices["budget"]) == (0, [1], 0)
    twins = cpv.HammingWaterFilling([0.5, 0.5], 0.5).solve()
    assert (twins.value, len(twins.release.kept)) == (0, 1)


def test_the_slope_is_a_derivative():
    for budget in KNOWN:
        low, middle, high = (
            cpv.HammingWaterFilling(PMF, budget + step, units="nats").solve()
            for step in (-1e-6, 0.0, 1e-6)
        )
        slope = (high.value - low.value) / 2e-6
        assert middle.prices["budget"] == pytest.approx(slope, rel=1e-4)
        assert middle.duals["budget"] == -middle.prices["budget"]


# ---- beside the certified program --------------------------------------------------------


def compare(rng: np.random.Generator) -> float:
    """Solve a random problem both ways; return the difference of the values in nats."""
    p = random_pmf(rng, int(rng.integers(2, 7)))
    budget = random_budget(rng, p)
    problem = cpv.HammingWaterFilling(p, budget, units="nats")
    closed, solved = problem.solve(), problem.channel_problem().solve()
    assert closed.certificate.verify()
    referee.check(solved, verify=False)
    assert closed.gap < 1e-13
    # each proof bounds what the other one says
    assert closed.lower <= solved.upper
    assert solved.lower <= closed.upper
    # the implicit channel does what the closed form claims, in the program's own terms
    channel = closed.release.to_channel()
    assert channel.outputs == solved.channel.outputs
    program = solved.certificate.program
    alive = program.value(program.objective, channel.matrix[p > 0])
    assert alive == pytest.approx(closed.value, abs=1e-12)
    changed = 1 - float(closed.release.p_input @ channel.matrix.diagonal())
    assert changed <= budget + 1e-15
    return abs(closed.value - solved.value)


def test_equal_to_the_certified_program():
    rng = np.random.default_rng(0)
    assert max(compare(rng) for _ in range(30)) < 1e-6


@pytest.mark.long
def test_equal_to_the_certified_program_a_thousand_times():
    rng = np.random.default_rng(1)
    worst = max(compare(rng) for _ in range(1000))
    print(f"\nworst difference of 1,000 values: {worst:.2e} nats")
    assert worst < 1e-6


def test_multipliers_are_those_of_the_program():
    problem = cpv.HammingWaterFilling(PMF, 0.3)
    closed = problem.solve()
    solved = problem.channel_problem().solve(accuracy="high")
    assert closed.prices["budget"] == pytest.approx(solved.prices["budget"], abs=1e-5)
    assert closed.duals["mass"] == pytest.approx(solved.duals["mass"], abs=1e-4)
    assert closed.certificate.residuals == dict.fromkeys(solved.certificate.residuals, 0.0)
    # strong duality: Σ p(x) ν(x) − s D
    dual = -np.array(PMF) @ closed.duals["mass"] - 0.3 * closed.duals["budget"]
    assert dual == pytest.approx(closed.value, abs=1e-12)


def test_counts_are_the_same_law():
    counts = [40, 25, 15, 10, 5, 3, 2, 0]
    problem = cpv.HammingWaterFilling.from_counts(counts, Fraction(3, 10), x=list("abcdefgh"))
    solution = problem.solve()
    assert problem.level == Fraction(1, 15)
    assert problem.records == 100
    assert solution.value == pytest.approx(KNOWN[0.3] / math.log(2), abs=1e-9)
    assert solution.release.kept == ["a", "b", "c", "d"]
    bridge = problem.channel_problem()
    assert bridge.source.records == 100
    assert problem.program.to_dict() == bridge.program.to_dict()
    assert set(problem.constraints) == set(bridge.constraints)
    referee.check(bridge.solve())


def test_many_letters_beside_blahut_and_arimoto():
    p = 1 / np.arange(1.0, 41)
    p /= p.sum()
    for slope in (1.5, 2.5, 4.0):
        rate, budget, channel = blahut_arimoto(p, 1 - np.eye(40), slope)
        found = cpv.HammingWaterFilling(p, budget, units="nats").solve()
        assert found.value == pytest.approx(rate, abs=1e-6)
        assert found.prices["budget"] == pytest.approx(-slope, abs=1e-2)
        assert found.lower <= rate + 1e-12
        dense = np.zeros((40, 40))
        dense[:, found.release.kept] = found.release.matrix
        assert dense == pytest.approx(channel, abs=1e-2)


@pytest.mark.long
def test_a_million_letters():
    p = 1 / (np.arange(1.0, 1_000_001) + 2.7)
    p /= p.sum()
    problem = cpv.HammingWaterFilling(p, 0.3, units="nats")
    solution = problem.solve()
    assert solution.status == "certified"
    assert solution.gap < 1e-13
    assert solution.certificate.verify()  # a million balls
    level, kept = problem.level, len(solution.release.kept)
    assert solution.release.kept == list(range(kept))  # the most frequent
    assert Fraction(float(p[kept])) <= level * problem.total < Fraction(float(p[kept - 1]))
    assert (kept - 1) * level + exact_sum(p[kept:]) / problem.total == Fraction(0.3)
    q, s = solution.release.released_marginal, float(level)
    log = math.log
    rate = entropy(p, units="nats") + 0.7 * log(0.7) + (kept - 1) * s * log(s)
    rate += float(p[kept:] @ np.log(p[kept:]))
    assert solution.value == pytest.approx(rate, abs=1e-10)
    assert q.sum() == pytest.approx(1, abs=1e-12)
    even = cpv.HammingWaterFilling.from_counts(np.full(10**6, 7), 0.3, units="nats").solve()
    exact = log(10**6) - entropy([0.3, 0.7], units="nats") - 0.3 * log(10**6 - 1)
    assert even.value == pytest.approx(exact, abs=1e-12)  # a tie of all


# ---- the channel in rationals ------------------------------------------------------------

MASSES = st.lists(
    st.one_of(st.integers(0, 20), st.integers(0, 10**6), st.sampled_from([1, 7])),
    min_size=1,
    max_size=9,
).filter(any)
SHARES = st.fractions(0, 1, max_denominator=1000)


@settings(max_examples=150)
@given(MASSES, SHARES)
def test_the_level_and_the_channel_are_exact(counts, budget):
    problem = cpv.HammingWaterFilling.from_counts(counts, budget)
    p = [Fraction(c, sum(counts)) for c in counts]
    assert problem.level == level_of(counts, budget)
    assert problem.level == cpv.HammingWaterFilling.from_counts(counts[::-1], budget).level
    release = problem.solve().release
    reached = min(budget, 1 - max(p))
    assert release.distortion == reached == poured(counts, problem.level)
    assert set(release.kept) >= {i for i, q in enumerate(p) if q > problem.level}
    rows = [release.row(x, exact=True) for x in release.inputs]
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
    marginal = [sum(q * row[j] for q, row in zip(p, rows, strict=True))
                for j in range(len(release.kept))]  # fmt: skip
    assert sum(marginal) == 1
    stay = sum(p[x] * rows[x][j] for j, x in enumerate(release.kept))
    assert 1 - stay == reached  # Pr(X ≠ X̂), exactly
    for j, x_hat in enumerate(release.kept):  # the reverse channel is Bayes' rule
        posterior = release.posterior_of(x_hat, exact=True)
        assert sum(posterior) == 1
        for x, row in enumerate(rows):
            assert p[x] * row[j] == marginal[j] * posterior[x]
            if p[x] <= problem.level and x != x_hat:
                assert posterior[x] == p[x]  # nothing is learned about it
    # floats say the same
    assert release.released_marginal == pytest.approx([float(m) for m in marginal], abs=1e-12)
    for x, row in enumerate(rows):
        floats = [float(v) for v in row]
        assert release.row(x) == pytest.approx(floats, abs=1e-12)
        assert release.matrix[x] == pytest.approx(floats, abs=1e-12)
    for x_hat in release.kept:
        exact = [float(v) for v in release.posterior_of(x_hat, exact=True)]
        assert release.posterior_of(x_hat) == pytest.approx(exact, abs=1e-15)
        assert release.posterior[release.kept.index(x_hat)] == pytest.approx(exact, abs=1e-12)


@settings(max_examples=100)
@given(MASSES, SHARES, SHARES, SHARES)
def test_the_curve_is_convex_and_falls(counts, one, other, share):
    low, high = sorted((one, other))
    between = share * low + (1 - share) * high
    ends = [cpv.HammingWaterFilling.from_counts(counts, d).enclosure() for d in (low, high)]
    middle = cpv.HammingWaterFilling.from_counts(counts, between).enclosure()
    assert ends[1].lower <= ends[0].upper
    mixed = float(share) * ends[0].upper + float(1 - share) * ends[1].upper
    assert middle.lower <= mixed + 1e-15
    before = entropy(counts)
    assert ends[0].upper <= before + 1e-12


@settings(max_examples=100)
@given(MASSES, SHARES, SHARES)
def test_the_level_rises_with_the_budget(counts, one, other):
    low, high = sorted((one, other))
    first, second = (cpv.HammingWaterFilling.from_counts(counts, d) for d in (low, high))
    assert first.level <= second.level
    assert set(first.solve().release.kept) >= set(second.solve().release.kept)
    levels = sorted({first.level, (first.level + second.level) / 2, second.level})
    assert all(poured(counts, a) < poured(counts, b) or poured(counts, a) == poured(counts, b)
               >= min(high, 1 - max(rationals(counts))) for a, b in pairwise(levels))  # fmt: skip


def test_the_level_of_floats_is_exact_however_badly_they_add_up():
    rng = np.random.default_rng(3)
    for spread in (1, 20, 300):
        for letters in (2, 50, 400):
            p = 10.0 ** -rng.uniform(0, spread, letters)
            p = np.repeat(p, rng.integers(1, 4, letters))  # ties
            p /= p.sum()
            exact = rationals(p)
            for budget in (1e-300, 1e-17, 0.1 * (1 - p.max()), 0.999 * (1 - p.max())):
                problem = cpv.HammingWaterFilling(p, budget)
                assert poured(p, problem.level) == min(Fraction(budget), 1 - exact[0])


@pytest.mark.parametrize("gap", [1e-12, 1e-16, 2e-17, Fraction(1, 10**30), Fraction(1, 10**400)])
def test_a_level_next_to_the_greatest_letters(gap):
    """All that is released is p − λ, of which floats see nothing."""
    budget = Fraction(3, 4) - Fraction(gap)
    problem = cpv.HammingWaterFilling.from_counts([2, 2, 2, 1, 1], budget)
    release = problem.solve().release
    assert release.kept == [0, 1, 2]
    assert release.released_marginal == pytest.approx([1 / 3] * 3, rel=1e-12)
    assert release.matrix == pytest.approx(np.full((5, 3), 1 / 3), rel=1e-6)
    assert set(release.apply(list(range(5)) * 20, seed=1)) == {0, 1, 2}
    assert release.distortion == budget == poured(problem.law, problem.level)


def test_what_is_barely_above_the_level_is_accurate():
    p = 0.25 * (1 + np.array([9, 5, 2, -16]) * 2.0**-50)
    for level in (Fraction(1, 4) + Fraction(k, 2**54) for k in (1, 2, 3)):
        problem = cpv.HammingWaterFilling(p, poured(p, level / exact_sum(p)))
        release = problem.solve().release
        assert problem.level * exact_sum(p) == level
        exact = [float(q) for q in release.row(3, exact=True)]
        assert release.released_marginal == pytest.approx(exact, rel=1e-14)
        keep = [float(1 - problem.level / q) for q in rationals(p)[:3]]
        own = release.matrix[range(3), range(3)]
        assert own == pytest.approx([k + (1 - k) * q for k, q in zip(keep, exact, strict=True)])


# ---- rounding ----------------------------------------------------------------------------


def awkward(rng: np.random.Generator, kind: str) -> np.ndarray:
    """Return positive floats that tempt an algorithm to round wrongly."""
    size = int(rng.integers(1, 300))
    if kind == "tiny":
        return 10.0 ** -rng.uniform(280, 323.2, size) + 5e-324
    if kind == "near one":
        return 1.0 + rng.integers(-9, 9, size) * 2.0**-53
    if kind == "edges":  # of the table's intervals, and their neighbours
        edge = rng.integers(4096, 8193, size) / 8192 * 2.0 ** rng.integers(-30, 30, size)
        return np.nextafter(edge, rng.choice([0.0, edge[0], 1e300], size))
    if kind == "counts":
        return rng.integers(1, 2**53, size).astype(float)
    if kind == "mixed":
        return 10.0 ** rng.uniform(-300, 15, size)
    p = rng.dirichlet(np.full(size, 0.2)) + 1e-310
    return p / p.sum()


KINDS = ("tiny", "near one", "edges", "counts", "mixed", "law")


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_logarithms_are_proved(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(12):
        v = awkward(rng, kind)
        assert exact_sum(v) == sum(map(Fraction, v.tolist()))
        assert exact_sum(-v) == -exact_sum(v)
        letters = Letters(np.sort(v).tolist())  # without NumPy
        assert letters.total == exact_sum(v)
        with ctx.workprec(400):
            exact = sum((part(Fraction(x)) for x in v.tolist()), arb(0))
            found = sum_of_v_log_v(v)
            assert found.contains(exact)
            with ctx.workprec(160):
                assert letters.m_log_m(0, len(v)).contains(exact)
            size = sum(x * (abs(math.log2(x)) + 2) for x in v.tolist())
            assert float(found.rad()) <= 2.0**-51 * 1.01 * size + 1e-300  # and no more
            # the error of a single logarithm is within its own share of the radius
            for x in v[:20].tolist():
                assert sum_of_v_log_v(np.array([x])).contains(part(Fraction(x)))


def test_constants_of_the_logarithm():
    from cvxprivacy.proving import sums

    with ctx.workprec(400):
        assert abs(arb(2).log() - arb(sums._LN2)) < arb(2) ** -54
        for i, value in enumerate(sums._table().tolist()):
            assert abs((arb(2 * (i + 4096) + 1) / 16384).log() - arb(value)) <= arb(2) ** -54
    # |log(1 + r) − series| as stated, in units of 2⁻⁵³, for |r| ≤ 2⁻¹³
    r = np.linspace(-(2.0**-13), 2.0**-13, 999)
    series = sums._log1p(r)
    with ctx.workprec(400):
        worst = max(
            abs((1 + arb(x)).log() - arb(s))
            for x, s in zip(r.tolist(), series.tolist(), strict=True)
        )
        assert 2.0**-70 < float(worst) < 2.0**-62


def test_rounded_down():
    for value in (
        Fraction(1, 3),
        Fraction(2, 3),
        Fraction(5),
        Fraction(-1, 3),
        Fraction(1, 10**330),
    ):
        found = rounded_down(value)
        assert Fraction(found) <= value < Fraction(math.nextafter(found, math.inf))


WRONG = (0.0, 1e-9, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-9, 1 + 1e-9, 1.0001, 1.01, 1.1, 2.0, 50.0)


def water(problem: cpv.HammingWaterFilling, level: Fraction) -> Filling:
    return Filling(Masses(problem.masses, problem.total), level)


def test_both_ends_hold_at_any_level():
    rng = np.random.default_rng(4)
    for _ in range(40):
        p = random_pmf(rng, int(rng.integers(2, 12)))
        budget = random_budget(rng, p)
        problem = cpv.HammingWaterFilling(p, budget, units="nats")
        with ctx.workprec(400):
            exact = truth(p, budget)
            best = problem.enclosure()
            assert contains(best, exact)
            assert best.upper - best.lower < 1e-14
            for factor in WRONG:
                assert contains(problem.enclosure(float(problem.level) * factor), exact)


@pytest.mark.parametrize("budget", KNOWN)
def test_a_wrong_level_is_looser_and_proves_nothing_false(budget):
    problem = cpv.HammingWaterFilling(PMF, budget, units="nats")
    with ctx.workprec(400):
        exact = truth(PMF, budget)
        for factor in (0.99, 1.01):
            level = problem.level * Fraction(factor)
            ends, filling = problem.enclosure(level), water(problem, level)
            off = filling.distortion - Fraction(budget)
            assert (off > 0) == (factor > 1)
            # strictly looser at both ends: the error of the lower one is of second order
            assert 1e-9 < float(exact) - ends.lower < 1e-3
            assert 1e-6 < ends.upper - float(exact) < 1e-1
            # the channel's own information is a lower end on one side and an upper one on the
            # other, and mirrored tangents or chords would be false: such a proof would be caught
            own, slope = float(filling.rate), filling.slope
            assert (own < float(exact)) == (factor > 1)
            mirrored = own - slope * float(off)
            assert own + slope * float(off) == pytest.approx(ends.lower, abs=1e-13)
            assert (mirrored > float(exact)) == (factor < 1)
            assert abs(mirrored - float(exact)) > 1e-4


@pytest.mark.parametrize("factor", [0.3, 0.9, 1.0, 1.05, 1.5])
def test_the_lower_end_is_the_bound_of_explicit_multipliers(factor):
    """Build r(x | x̂) for every output, also those under water, and minimise over x̂ by hand."""
    p, budget = np.array([*PMF[:5], 0.05]), 0.25
    problem = cpv.HammingWaterFilling(p, budget, units="nats")
    level = float(problem.level) * factor
    kept = p > level
    delta = (kept.sum() - 1) * level + p[~kept].sum()
    slope = math.log((1 - delta) / level)
    scores = np.empty((6, 6))
    for x_hat in range(6):
        r = np.minimum(p, level)
        if kept[x_hat]:
            r[x_hat] = 1 - delta
            assert r.sum() == pytest.approx(1, abs=1e-15)
        else:
            r[x_hat] = p[x_hat] * (1 - delta) / level
            assert r.sum() <= 1 + 1e-15
            r[x_hat] += 1 - r.sum()
        scores[:, x_hat] = np.log(r / p) + slope * (np.arange(6) != x_hat)
    bound = p @ scores.min(axis=1) - slope * budget
    assert problem.enclosure(level).lower == pytest.approx(max(bound, 0.0), abs=1e-14)
    dense = cpv.HammingWaterFilling(p, budget, units="nats").channel_problem().program
    assert (
        bound <= dense.value(dense.objective, problem.solve().release.to_channel().matrix) + 1e-14
    )


@pytest.mark.parametrize("factor", [0.3, 0.9, 1.05, 1.5, 9.0])
def test_the_upper_end_is_above_a_feasible_channel(factor):
    p, budget = np.array(PMF), 0.25
    problem = cpv.HammingWaterFilling(p, budget, units="nats")
    filling = water(problem, problem.level * Fraction(factor))
    own = filling.distortion
    other = cpv.HammingWaterFilling(p, own).solve().release.to_channel().matrix
    if own > budget:
        share, simple = float(budget / own), np.eye(7)
    else:
        share = float((filling.most - Fraction(budget)) / (filling.most - own))
        simple = np.tile(np.eye(7)[0], (7, 1))
    mixed = share * other + (1 - share) * simple
    assert 1 - p @ mixed.diagonal() == pytest.approx(budget, abs=1e-15)
    revealed = mutual_information(p[:, None] * mixed, units="nats")
    upper = problem.enclosure(filling.level).upper
    assert problem.enclosure().lower <= revealed <= upper + 1e-14
    chord = share * mutual_information(p[:, None] * other, units="nats")
    chord += (1 - share) * mutual_information(p[:, None] * simple, units="nats")
    assert upper == pytest.approx(chord, abs=1e-13)


def test_ends_are_on_their_sides_of_the_truth():
    """A thousand ends against 400 bits: unrounded ones would be false half of the time."""
    rng = np.random.default_rng(5)
    tiny = 0
    for _ in range(500):
        p = random_pmf(rng, int(rng.integers(2, 8)))
        if rng.random() < 0.3:
            p[0] = 1e-300
            p[1:] /= math.fsum(p[1:])
        budget = random_budget(rng, p)
        units = ("bits", "nats")[int(rng.integers(2))]
        found = cpv.HammingWaterFilling(p, budget, units=units).enclosure()
        with ctx.workprec(400):
            exact = truth(p, budget) / (arb(2).log() if units == "bits" else 1)
            assert contains(found, exact)
            tiny += float(exact) > 0 and found.upper - found.lower < 1e-14
    assert tiny > 300


# ---- the proof file ----------------------------------------------------------------------

LN2 = 0.6931471805599453


def exact(document: dict) -> dict[str, tuple[arb, arb]]:
    """Return what is true of a document's program and release, to 400 bits, by definition.

    The release is written out as a matrix in rationals, and the mutual information taken of it.
    """
    program = document["program"]
    p = [Fraction(m) for m in program["law"]]
    p = [q / sum(p) for q in p]
    budget, unit = Fraction(program["budget"]), 1 if program["units"] == "nats" else arb(2).log()
    level = min(max(Fraction(document["primal"]["level"]), Fraction(0)), max(p))
    size, first = len(p), max(range(len(p)), key=p.__getitem__)
    above = [max(q - level, Fraction(0)) for q in p]
    drawn = (
        [a / sum(above) for a in above]
        if any(above)
        else [Fraction(i == first) for i in range(size)]
    )
    channel = [[(1 - a / q) * d if q else d for d in drawn] for q, a in zip(p, above, strict=True)]
    for i in range(size):
        channel[i][i] += above[i] / p[i] if p[i] else 0

    def changed(matrix) -> Fraction:
        return 1 - sum(q * row[i] for i, (q, row) in enumerate(zip(p, matrix, strict=True)))

    own, most = changed(channel), 1 - max(p)
    share, other = Fraction(1), [[Fraction(j == first) for j in range(size)] for _ in p]
    if own > budget:
        share, other = budget / own, [[Fraction(i == j) for j in range(size)] for i in range(size)]
    elif own < budget and own < most:
        share = max(most - budget, Fraction(0)) / (most - own)
    release = [
        [share * k + (1 - share) * o for k, o in zip(*rows, strict=True)]
        for rows in zip(channel, other, strict=True)
    ]
    marginal = [sum(q * row[j] for q, row in zip(p, release, strict=True)) for j in range(size)]
    rate = sum((-part(m) for m in marginal), arb(0))
    for q, row in zip(p, release, strict=True):
        rate += sum((ball(q) * part(k) for k in row), arb(0))
    before = sum((-part(q) for q in p), arb(0))
    return {
        "value": truth(program["law"], budget) / unit,
        "rate": rate / unit,
        "leakage": rate / unit,
        "equivocation": (before - rate) / unit,
        "distortion": ball(changed(release)),
    }


def false_claims(document: dict) -> list[str]:
    """Return which claims of a document are false, whatever its proof says."""
    claim = document["claim"]
    ends = {"value": (claim["lower"], claim["upper"]), **claim["terms"]}
    with ctx.workprec(400):
        return [
            name
            for name, value in exact(document).items()
            if arb(float(ends[name][0])) > value or arb(float(ends[name][1])) < value
        ]


def signed(document: dict) -> dict:
    """Return a copy that is nowhere the same object, under its own digest."""
    copied = json.loads(json.dumps(document))
    copied["sha256"] = verify.digest(copied)
    return copied


def reclaimed(document: dict) -> dict:
    """Return the document with the claims that it proves."""
    proved = verify.recompute(document)
    claim = {name: proved[name] for name in ("status", "lower", "upper", "terms")}
    return signed({**document, "claim": claim})


HARD_LAWS = (
    [1.0, 1e-30, 1e-50],
    [1.0, 1e-300, 5e-324],
    [1 - 2.0**-53, 2.0**-53],
    [0.5, 0.5],
    [0.25, 0.25, 0.25, 0.25 - 2.0**-54],
    [1.0, *[5e-324] * 3],
    [0.4, 0.35, 0.25 - 1e-17, 1e-17, 1e-40, 0.0],
    [1.0],
)


def hard_budgets(law) -> list[Fraction]:
    p = rationals(law)
    most, kinks = 1 - p[0], [poured(law, q) for q in p]
    found = [Fraction(0), Fraction(5e-324), Fraction(1, 10**900), most / 2, most, Fraction(1)]
    found += [most - Fraction(1, 10**k) for k in (17, 40, 900)]
    found += [end for k in kinks for end in (k, k / 2, k * (1 - Fraction(1, 2**60)))]
    near = float(most)
    found += [Fraction(math.nextafter(near, side)) for side in (0.0, 1.0)] + [Fraction(near)]
    return sorted({budget for budget in found if 0 <= budget <= 1})


@pytest.mark.parametrize("law", HARD_LAWS, ids=str)
def test_honest_claims_verify_however_small_the_masses(law):
    for budget in hard_budgets(law):
        for units in ("bits", "nats"):
            solution = cpv.HammingWaterFilling(law, budget, units=units).solve(accuracy="high")
            assert solution.status == "certified"
            assert solution.certificate.verify()
            assert not false_claims(solution.certificate.document())


@pytest.mark.parametrize("law", HARD_LAWS, ids=str)
def test_what_is_small_is_known_as_precisely_as_what_is_large(law):
    """Next to a letter of nearly all mass entropies are tiny, and their digits are not lost."""
    for budget in (Fraction(0), (1 - rationals(law)[0]) / 2):
        solution = cpv.HammingWaterFilling(law, budget, units="nats").solve()
        for name in ("rate", "equivocation"):
            term = solution.terms[name]
            assert term.upper - term.lower <= 1e-13 * term.upper + 1e-303, name
            assert (term.upper == 0) == (term.lower == 0) or term.upper < 1e-300


@settings(max_examples=60)
@given(
    st.lists(st.floats(0, 1e3, allow_subnormal=True), min_size=1, max_size=6).filter(any),
    st.fractions(0, 1),
    st.sampled_from(["bits", "nats"]),
)
def test_every_honest_certificate_verifies(law, share, units):
    total = sum(map(Fraction, law))
    law = [float(Fraction(m) / total) for m in law]
    problem = cpv.HammingWaterFilling(law, share * (1 - Fraction(max(law))), units=units)
    certificate = problem.solve().certificate
    assert certificate.verify()
    assert not false_claims(certificate.document())


def test_a_proof_file_is_read_without_the_package_s_arrays(tmp_path, capsys):
    solution = cpv.HammingWaterFilling(PMF, Fraction(3, 10), x=list("abcdefg")).solve()
    path = solution.certificate.to_json(tmp_path / "proof.json")
    assert verify.main([str(path)]) == 0
    assert "verified, certified, value in [0.629929" in capsys.readouterr().out
    document = verify.read_document(str(path))
    assert document["program"] == {
        "kind": "hamming", "units": "bits", "law": list(PMF), "budget": "3/10"
    }  # fmt: skip
    level = str(level_of(PMF, Fraction(3, 10)))
    assert document["primal"] == {"level": level}
    assert document["dual"] == {"level": level, "objective": 1}
    code = "from cvxprivacy.certificates import verify; import sys; verify.main(sys.argv[1:]); "
    code += "assert not {'numpy', 'cvxpy', 'narwhals'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)


def moved(document: dict, path: tuple[str, ...], value) -> dict:
    """Return a signed copy with another value in one place."""
    copied = json.loads(json.dumps(document))
    place = copied
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return signed(copied)


FIELDS = [("lower",), ("upper",), *(("terms", name, end) for name in
          ("rate", "leakage", "equivocation", "distortion") for end in (0, 1))]  # fmt: skip


@pytest.mark.parametrize("budget", [0.0, 0.05, 0.3, 0.6, 0.9])
def test_a_claim_moved_inwards_is_refused(budget):
    document = cpv.HammingWaterFilling(PMF, budget).solve().certificate.document()
    proved = verify.recompute(document)
    assert verify.disagreements(document) == []
    for field in FIELDS:
        end = proved
        for key in field:
            end = end[key]
        inwards = field[-1] in ("lower", 0)
        for far in (False, True):
            value = end + (1e-6 if inwards else -1e-6) if far else math.nextafter(
                end, math.inf if inwards else -math.inf
            )  # fmt: skip
            wrong = verify.disagreements(moved(document, ("claim", *field), value))
            name = field[1] if len(field) == 3 else "the value"
            assert any(problem.startswith(name) for problem in wrong), (field, wrong)
        outwards = math.nextafter(end, -math.inf if inwards else math.inf)
        assert verify.disagreements(moved(document, ("claim", *field), outwards)) == []


GARBAGE = (-1, -1e300, 0, "0", "-7/3", 5e-324, "1/" + "9" * 1999, 0.02, 0.1, 0.26, 0.4, 0.5, 1, 2.0,
           1.7e308, "9" * 2000)  # fmt: skip


def test_every_level_proves_true_ends():
    rng = np.random.default_rng(11)
    laws = [list(PMF), *HARD_LAWS, *(random_pmf(rng, 5).tolist() for _ in range(6))]
    for law in laws:
        if abs(math.fsum(law) - 1) > 1e-9:
            continue
        budgets = hard_budgets(law)
        problem = cpv.HammingWaterFilling(law, budgets[len(budgets) // 2])
        document = problem.solve().certificate.document()
        for _ in range(12):
            primal, dual = (GARBAGE[i] for i in rng.integers(len(GARBAGE), size=2))
            budget = budgets[rng.integers(len(budgets))]
            forged = {
                **document,
                "program": {**document["program"], "budget": str(budget)},
                "primal": {"level": primal},
                "dual": {"level": dual, "objective": 1},
            }
            proved = reclaimed(forged)
            assert verify.disagreements(proved) == []
            assert false_claims(proved) == [], (law, budget, primal, dual)


def forgeries(document: dict, rng: np.random.Generator) -> list[dict]:
    """Return documents in which something is wrong: levels, law, budget, claims, kinds of value."""
    program, claim = document["program"], document["claim"]
    law = [float(m) for m in rng.permutation(program["law"])]
    scaled = [m * 2.0 ** int(rng.integers(-30, 30)) for m in program["law"]]
    tiny = [*program["law"][:-1], float(rng.choice([0.0, 5e-324, 1e-300, 1e300]))]
    level = GARBAGE[rng.integers(len(GARBAGE))]
    budget = str(hard_budgets(program["law"])[rng.integers(4)])
    found = [
        *(moved(document, ("program", "law"), changed) for changed in (law, scaled, tiny)),
        moved(document, ("program", "budget"), budget),
        moved(document, ("program", "units"), {"bits": "nats", "nats": "bits"}[program["units"]]),
        moved(document, ("primal", "level"), level),
        moved(document, ("dual", "level"), level),
        signed({**document, "claim": {**claim, "lower": claim["upper"], "upper": claim["lower"]}}),
        moved(document, ("dual", "objective"), 0),
        moved(document, ("claim", "status"), "infeasible"),
    ]
    for field in FIELDS:
        end = claim
        for key in field:
            end = end[key]
        for value in (end + float(rng.normal()), "inf", "-inf", -end, 0.0, end * (1 - 2.0**-40),
                      end * (1 + 2.0**-40)):  # fmt: skip
            found.append(moved(document, ("claim", *field), value))
    return found


NONSENSE = (None, [], {}, "x", "1/0", "nan", "1e5", True, math.nan, math.inf, -math.inf, [[1.0]],
            "1" * 5000, {"level": 1}, "١/٢", 10**400, -1)  # fmt: skip


def attacked(law, budget, units: str, rng: np.random.Generator) -> int:
    """Forge a document in many ways; return how many of them verify, none with a false claim."""
    document = cpv.HammingWaterFilling(law, budget, units=units).solve().certificate.document()
    verified = 0
    for forged in forgeries(document, rng):
        if not verify.disagreements(forged):
            assert false_claims(forged) == [], forged
            verified += 1
    return verified


def test_no_forged_document_proves_what_is_false():
    rng = np.random.default_rng(12)
    verified = attacked(PMF, 0.3, "bits", rng) + attacked([1.0, 1e-30, 1e-50], 1e-31, "nats", rng)
    assert verified > 0  # a law in another order or unit, and claims that are wider, are true


@pytest.mark.long
def test_no_forged_document_proves_what_is_false_at_length():
    rng = np.random.default_rng(13)
    verified = forged = 0
    for _ in range(250):
        law = random_pmf(rng, int(rng.integers(1, 6))).tolist()
        if rng.random() < 0.5:
            law = (10.0 ** -rng.uniform(0, rng.choice([1, 20, 300]), len(law))).tolist()
            law = [m / math.fsum(law) for m in law]
        units = ("bits", "nats")[int(rng.integers(2))]
        budgets = hard_budgets(law)
        verified += attacked(law, budgets[rng.integers(len(budgets))], units, rng)
        forged += 10 + 7 * len(FIELDS)
    print(f"\n{forged:,} forged documents: {verified:,} verify, none with a false claim")
    assert 0 < verified < forged


@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_nonsense_is_no_certificate(value):
    document = cpv.HammingWaterFilling(PMF, 0.3).solve().certificate.document()
    for path in (("program",), ("program", "law"), ("program", "budget"), ("program", "units"),
                 ("primal",), ("primal", "level"), ("dual",), ("dual", "level"),
                 ("program", "law", 2)):  # fmt: skip
        if value is None and path in (("primal",), ("dual",)):
            continue  # which claims nothing of that end
        copied = json.loads(json.dumps(document))
        place = copied
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        copied["sha256"] = "" if value == 10**400 else verify.digest(copied)
        wrong = verify.disagreements(copied)
        assert wrong
        if path in (("program", "budget"), ("program", "law"), ("program", "units")):
            with pytest.raises(UnprovableError):
                HammingProof(copied["program"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rows": {}}, "has a kind, units, a law and a budget"),
        ({"units": "bans"}, "'bans'"),
        ({"law": [0.5, 1]}, "no list of floats"),
        ({"law": (0.5, 0.5)}, "no list of floats"),
        ({"law": [0.5, -0.5]}, "negative"),
        ({"law": [0.5, math.inf]}, "infinite"),
        ({"law": [0.5, math.nan]}, "infinite"),
        ({"law": [0.0, -0.0]}, "no mass"),
        ({"law": []}, "no mass"),
        ({"budget": "-1/10"}, "no probability"),
        ({"budget": "11/10"}, "no probability"),
        ({"budget": 1e-400 - 1}, "no probability"),
        ({"budget": "1/0"}, "no fraction"),
        ({"budget": "0.5"}, "no fraction"),
        ({"budget": math.inf}, "not finite"),
    ],
)
def test_what_is_no_program_is_refused(changed, said):
    program = {"kind": "hamming", "units": "bits", "law": [0.5, 0.5], "budget": "1/4"}
    assert HammingProof(program).unit(1.0) == pytest.approx(1 / LN2)
    with pytest.raises(UnprovableError, match=said):
        HammingProof({**program, **changed})


def test_huge_masses_are_exact_too():
    program = {"kind": "hamming", "units": "bits", "law": [1.7e308] * 4 + [5e-324], "budget": "0"}
    proof = HammingProof(program)
    level = {"level": 0}
    assert floor(proof.lower(level)) <= 2.0 <= ceil(proof.upper(level).objective)
    assert proof.lower({"level": 0, "objective": 0}) == 0  # which contradicts nothing


def test_both_ends_are_sharp_where_nearly_everything_cancels():
    """R(D) next to 1 − max p: with 160 bits nothing would be left of it."""
    for law in ([0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [1.0, 1e-30, 1e-50]):
        budget = (1 - rationals(law)[0]) * (1 - Fraction(1, 10**60))
        program = {"kind": "hamming", "units": "nats", "law": law, "budget": str(budget)}
        level = {"level": str(level_of(law, budget))}
        proof = HammingProof(program)
        ends = proof.lower(level), proof.upper(level).objective
        for end in ends:
            assert end > 0
            assert end.rad() <= end.mid() * arb(2) ** -99
        with ctx.workprec(2000):
            exact = truth(law, budget)
            assert all(end.overlaps(exact) for end in ends)  # both ends meet at it


def test_a_claim_is_wider_than_the_proof_is_unsure_of():
    for value, radius in ((1.0, 2.0**-50), (1e-30, 0.0), (3.0, 2.0**-200), (0.0, 1e-300)):
        with ctx.workprec(200):
            found = arb(value, radius) * arb(1, arb(2) ** -150)
            unsure = max(found.mid() * arb(2) ** -100, arb(2) ** -1100)
            for edge in (found.lower() - unsure, found.upper() + unsure):
                assert _wider(found).contains(edge + arb(0, unsure))
            assert _wider(arb(value)).is_exact()


def test_nothing_below_zero_is_left_of_a_nonnegative_ball():
    for precision in (53, 128, 1280):
        with ctx.workprec(precision):
            for found in (arb(1e-20, 1e-19), arb(0, 1e-300), arb(-1, 2), arb(0, arb(2) ** -3000)):
                left = nonnegative(found)
                assert left.lower() == 0
                assert left.upper() >= found.upper()
                assert floor(left) == 0
            assert nonnegative(arb(2, 1)).lower() == arb(2, 1).lower()


def test_a_certificate_finds_a_false_claim():
    for name, change in (
        ("the value", lambda c: {"lower": c.upper + 1e-12}),
        ("the value", lambda c: {"upper": c.lower - 1e-12}),
        ("rate", lambda c: {"terms": {**c.terms, "rate": (0.0, 0.1)}}),
        ("equivocation", lambda c: {"terms": {**c.terms, "equivocation": (9.0, 9.1)}}),
        ("distortion", lambda c: {"terms": {**c.terms, "distortion": (0.0, 0.29)}}),
        ("the value", lambda c: {"dual": replace(c.dual, level=c.dual.level * 2)}),
        ("rate", lambda c: {"primal": replace(c.primal, level=c.primal.level / 2)}),
        ("distortion", lambda c: {"program": replace(c.program, budget=Fraction(1, 4))}),
    ):
        certificate = cpv.HammingWaterFilling(PMF, 0.3).solve().certificate
        assert certificate.verify()
        false = certificate._with(**change(certificate))
        with pytest.raises(ValueError, match=f"not verified.*{name} in"):
            false.verify()


# ---- the release, drawn ------------------------------------------------------------------


def test_the_drawn_release_has_the_promised_law():
    letters = list("abcdefg")
    solution = cpv.HammingWaterFilling(PMF, 0.3, x=letters).solve()
    rng = np.random.default_rng(6)
    size = 200_000
    original = rng.choice(letters, size, p=PMF)
    released = solution.release.apply(original, seed=7)
    assert list(released[:5]) == list(solution.release.apply(original[:5], seed=7))
    counts = Counter(zip(original.tolist(), released.tolist(), strict=True))
    for x in letters:
        row = solution.release.row(x)
        seen = sum(n for (a, _), n in counts.items() if a == x)
        for x_hat, p in zip(solution.release.kept, row, strict=True):
            assert counts[x, x_hat] == pytest.approx(seen * p, abs=5 * math.sqrt(seen * p) + 5)
    assert {x_hat for _, x_hat in counts} == set(solution.release.kept) == set("abcd")
    changed = (original != released).mean()
    assert changed == pytest.approx(0.3, abs=5 * math.sqrt(0.21 / size))


def test_every_uniform_number_meets_the_right_letter():
    """Integrate the draw over a fine grid of uniform numbers: no chance is involved."""

    for budget in (0.0, 0.05, 0.3, 0.5, 0.6, 0.9):
        release = cpv.HammingWaterFilling([*PMF, 0.0], budget).solve().release
        for x in range(8):
            size = 20_000
            drawn = release._draw(np.full(size, x), (np.arange(size) + 0.5) / size)
            shares = np.bincount(drawn, minlength=len(release.kept)) / size
            assert shares == pytest.approx(release.row(x), abs=2.5 / size)


def test_a_vanished_letter_never_stays():
    for budget in (0.3, 0.5, 0.6, 0.9):
        release = cpv.HammingWaterFilling([*PMF, 0.0], budget).solve().release
        for x in range(8):
            drawn = release._draw(np.full(2, x), np.array([0.0, 1 - 2.0**-53]))
            assert ((drawn >= 0) & (drawn < len(release.kept))).all()
            if x in release.kept:
                assert release.kept[drawn[0]] == x


def test_the_last_uniform_number_is_a_letter_too():
    rng = np.random.default_rng(8)
    for _ in range(200):
        p = rng.dirichlet(np.ones(5))
        release = cpv.HammingWaterFilling(p, rng.uniform(0, 1 - p.max())).solve().release
        assert release._draw(np.arange(5), np.full(5, 1 - 2.0**-53)).max() < len(release.kept)


def test_frames_series_and_names_of_records():
    letters = ["Smith", "Johnson", "Poor", "Sankar"]
    release = cpv.HammingWaterFilling([0.5, 0.3, 0.15, 0.05], 0.3, x=letters).solve().release
    frame = pd.DataFrame({"name": letters * 25, "id": range(100)}, index=range(7, 107))
    once = release.apply(frame["name"], seed=1)
    assert once.index.equals(frame.index)
    assert once.name == "name"
    assert list(once) == list(release.apply(frame["name"].to_numpy(), seed=1))
    assert list(release.apply(frame[["name"]], seed=1)["name"]) == list(once)
    keyed = release.apply(frame["name"], seed=2, row_id=frame["id"])
    order = np.random.default_rng(0).permutation(100)
    mixed = release.apply(frame["name"].iloc[order], seed=2, row_id=frame["id"].iloc[order])
    assert mixed.sort_index().equals(keyed)
    pl = pytest.importorskip("polars", reason="the extra `tables` is not installed")
    lazy = release.apply(pl.DataFrame({"name": letters * 25}).lazy(), seed=1).collect()
    assert lazy["name"].to_list() == list(once)
    with pytest.raises(cpv.UnknownValueError, match="'Rajagopalan' is no input"):
        release.apply(["Rajagopalan"], seed=1)


def test_a_dense_channel_is_the_same_and_does_all_that_channels_do(tmp_path):
    release = cpv.HammingWaterFilling([0.0, *PMF], 0.3).solve().release
    dense = release.to_channel()
    assert dense.arbitrary.tolist() == [True] + [False] * 7
    assert dense.matrix[:, release.kept] == pytest.approx(release.matrix, abs=0)
    assert dense.matrix.sum() == pytest.approx(8)
    assert dense.matrix[0, release.kept] == pytest.approx(release.released_marginal)
    assert dense.released_marginal[release.kept] == pytest.approx(release.released_marginal)
    again = cpv.Channel.load(release.save(tmp_path / "channel.json"))
    assert again.matrix == pytest.approx(release.matrix, abs=0)
    assert again.outputs == release.outputs
    assert release.then(cpv.HammingWaterFilling([0.0, *PMF], 0.0).solve().release)
    estimate = dense.to_sdcmicro(tmp_path / "pd.csv")
    assert estimate.read_text().count("\n") == 9


# ---- bad input, and print ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([0.5, -0.5, 1.0], 0.1), r"pmf\[1\]: -0.5 is negative"),
        (([0.5, math.nan], 0.1), r"pmf\[1\]: nan is not finite"),
        (([0.5, 0.4], 0.1), r"pmf: the entries sum to 0.9, off 1 .*from_counts"),
        (([0.5, 0.5 + 1e-8], 0.1), "off 1 by more than 1e-09"),
        (([0.0, 0.0], 0.1), "pmf: no mass at all"),
        (([[0.5, 0.5]], 0.1), r"pmf: shape \(1, 2\); pass the law of X"),
        (([], 0.1), "pmf: shape"),
        ((["a"], 0.1), r"pmf\[0\]: 'a' is no number"),
        ((PMF, -0.1), "budget: -0.1 is out of range"),
        ((PMF, math.nan), "budget: nan is out of range"),
        ((PMF, math.inf), "budget: inf is out of range"),
        ((PMF, "much"), "budget: 'much' is no number"),
        ((PMF, 10), "budget: 10.0 is no probability; pass a number from 0 to 1"),
    ],
)
def test_bad_laws_and_budgets_are_refused(given, said):
    with pytest.raises(cpv.InputError, match=said):
        cpv.HammingWaterFilling(*given)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([3, 2.5], r"counts\[1\]: 2.5 is not a count; pass whole numbers, or pass a pmf"),
        ([3, 2.0**54], r"counts\[1\]: 1.8014398509481984e\+16 is more than 2\*\*53; scale"),
        ([3, -1], r"counts\[1\]: -1.0 is negative"),
        ([0, 0], "counts: no mass at all"),
    ],
)
def test_bad_counts_are_refused(counts, said):
    with pytest.raises(cpv.InputError, match=said):
        cpv.HammingWaterFilling.from_counts(counts, 0.1)


def test_other_bad_input_is_refused():
    with pytest.raises(cpv.InputError, match="x: 2 labels; pass 7"):
        cpv.HammingWaterFilling(PMF, 0.1, x=["a", "b"])
    with pytest.raises(cpv.InputError, match="make labels distinct"):
        cpv.HammingWaterFilling([0.5, 0.5], 0.1, x=["a", "a"])
    with pytest.raises(cpv.InputError, match="'bans' is no unit"):
        cpv.HammingWaterFilling(PMF, 0.1, units="bans")
    problem = cpv.HammingWaterFilling(PMF, 0.3)
    with pytest.raises(cpv.InputError, match="level: -1.0 is out of range"):
        problem.enclosure(-1.0)
    for options in ({"method": "conic"}, {"solver": "SCS"}, {"solver_options": {"max_iter": 3}}):
        with pytest.raises(cpv.InputError, match="needs no solver; solve channel_problem"):
            problem.solve(**options)
    solution = problem.solve(accuracy="high")
    assert solution.status == "certified"
    with pytest.raises(cpv.UnknownValueError, match="x: 9 is no letter"):
        solution.release.row(9)
    with pytest.raises(cpv.UnknownValueError, match="x_hat: 6 is never released"):
        solution.release.posterior_of(6)
    with pytest.raises(
        AttributeError, match="no 'risk'; its terms are rate, leakage, equivocation"
    ):
        _ = solution.risk
    large = cpv.HammingWaterFilling.from_counts(np.ones(2001), 0.1)
    release = large.solve().release
    for wanted in (large.channel_problem, release.to_channel, lambda: release.matrix,
                   lambda: large.problem):  # fmt: skip
        with pytest.raises(cpv.InputError, match="2,001 letters, too many for a"):
            wanted()


def test_the_labels_of_a_series():
    names = pd.Series(["Smith", "Poor", "Smith", "Sankar"], name="name")
    problem = cpv.HammingWaterFilling.from_counts(names.value_counts(), 0.2)
    assert problem.x[0] == "Smith"
    assert problem.records == 4
    assert set(problem.solve().release.apply(names, seed=1)) <= set(names)
    law = pd.Series([0.5, 0.3, 0.2], index=[3, 2, 1])
    assert cpv.HammingWaterFilling(law, 0.1).x == [3, 2, 1]
    assert cpv.HammingWaterFilling(law, 0.1, x="abc").x == list("abc")


def test_fractions_and_decimals_are_not_rounded():
    third = Fraction(1, 3)
    problem = cpv.HammingWaterFilling([third, third, third], Decimal("0.1"))
    assert problem.budget == Fraction(1, 10)
    assert problem.level == Fraction(1, 20)
    assert problem.solve().release.row(0, exact=True)[0] == Fraction(9, 10)
    same = problem.channel_problem()
    assert same.source.law.tolist() == np.eye(3).tolist()
    assert problem.solve().lower <= same.solve().upper
    for budget in (Fraction(1, 10**2001), Decimal("1e-99999999999")):
        with pytest.raises(cpv.InputError, match="^budget: a number of more than 2,000 digits"):
            cpv.HammingWaterFilling(PMF, budget)
    longest = cpv.HammingWaterFilling([1.0, 5e-324], Fraction(1, 10**1999)).solve()
    assert longest.certificate.verify()


def test_it_prints_like_every_solution():
    problem = cpv.HammingWaterFilling(PMF, 0.3, units="nats")
    assert repr(problem) == (
        "HammingWaterFilling(min I(X; X̂)  s.t.  Pr(X ≠ X̂) ≤ 0.3; |X| = |X̂| = 7)"
    )
    text = str(problem.solve())
    for piece in (
        "certified (information in nats)",
        "4 of them released",
        "0.436633889",
        "-2.3514",
    ):
        assert piece in text
    html = problem.solve()._repr_html_()
    assert "<th" in html
    assert "4 of them released" in html
    assert repr(problem.solve().release) == "HammingChannel(7 letters → 4)"
    assert r"\Pr(X \ne \hat X) \le 0.3" in problem._repr_latex_()
    assert problem.solve().channel is not None
