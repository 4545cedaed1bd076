"""Hamming water-filling: closed forms, the certified program, exact levels and channels."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.certificates.sums import exact_sum
from cvxprivacy.model.information import entropy
from tests import referee
from tests.formulations.hamming_truth import (
    KNOWN,
    PMF,
    level_of,
    poured,
    random_budget,
    random_pmf,
    rationals,
)
from tests.refusals import UNSAID, refused


@pytest.mark.parametrize("budget", KNOWN)
def test_known_values(budget):
    solution = cpv.HammingWaterFilling(PMF, budget, units="nats").solve()
    assert solution.status == "certified"
    assert solution.gap < 1e-14
    assert solution.lower == pytest.approx(KNOWN[budget], abs=1e-9)
    assert solution.upper == pytest.approx(KNOWN[budget], abs=1e-9)
    bits = cpv.HammingWaterFilling(PMF, budget).solve()
    assert bits.value == pytest.approx(KNOWN[budget] / math.log(2), abs=1e-9)
    for outcome, unit in ((solution, 1.0), (bits, math.log(2))):
        before = entropy(PMF, units=outcome.units)
        assert outcome.rate == outcome.leakage == pytest.approx(outcome.value, abs=1e-13)
        assert outcome.equivocation == pytest.approx(before - outcome.value, abs=1e-13)
        assert outcome.distortion == budget
        level = float(outcome.certificate.primal.level)
        assert outcome.prices["budget"] == pytest.approx(-math.log((1 - budget) / level) / unit)
        assert outcome.certificate.verify()


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


@pytest.mark.parametrize(("seed", "count"), [(0, 8), pytest.param(1, 200, marks=pytest.mark.long)])
def test_equal_to_the_certified_program(seed, count):
    rng = np.random.default_rng(seed)
    assert max(compare(rng) for _ in range(count)) < 1e-6


def test_multipliers_are_those_of_the_program():
    problem = cpv.HammingWaterFilling(PMF, 0.3)
    closed = problem.solve()
    solved = problem.channel_problem().solve(accuracy="high")
    assert closed.prices["budget"] == pytest.approx(solved.prices["budget"], abs=1e-5)
    assert closed.duals["mass"] == pytest.approx(solved.duals["mass"], abs=1e-4)
    assert closed.certificate.residuals == dict.fromkeys(solved.certificate.residuals, 0.0)
    # strong duality: Σ p(x) ν(x) − s D
    dual = np.array(PMF) @ closed.duals["mass"] - 0.3 * closed.duals["budget"]
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


MASSES = st.lists(
    st.one_of(st.integers(0, 20), st.integers(0, 10**6), st.sampled_from([1, 7])),
    min_size=1,
    max_size=9,
).filter(any)


SHARES = st.fractions(0, 1, max_denominator=1000)


@settings(max_examples=50)
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
        ours = release.matrix[range(3), range(3)]
        assert ours == pytest.approx([k + (1 - k) * q for k, q in zip(keep, exact, strict=True)])


H = cpv.HammingWaterFilling
REFUSED = [
    *(
        (lambda law=law: H(law, 0.1), "pmf", value, where)
        for law, value, where in (
            ([0.5, -0.5, 1.0], -0.5, (1,)),
            ([0.5, math.nan], math.nan, (1,)),
            ([0.5, 0.4], 0.9, None),
            ([0.5, 0.5 + 1e-8], UNSAID, None),
            ([0.0, 0.0], UNSAID, None),
            ([[0.5, 0.5]], UNSAID, None),
            ([], UNSAID, None),
            (["a"], "a", (0,)),
        )
    ),
    *(
        (lambda v=v: H(PMF, v), "budget", v, None)
        for v in (-0.1, math.nan, math.inf, "much", "0.25", 10)
    ),
    *(
        (lambda v=v: H(PMF, v), "budget", UNSAID, None)
        for v in (Fraction(-1, 10**400), Fraction(1, 10**2001), Decimal("1e-99999999999"))
    ),
    (lambda: H.from_counts([3, 2.5], 0.1), "counts", 2.5, (1,)),
    (lambda: H.from_counts([3, 2.0**54], 0.1), "counts", 2.0**54, (1,)),
    (lambda: H.from_counts([3, -1], 0.1), "counts", -1.0, (1,)),
    (lambda: H.from_counts([0, 0], 0.1), "counts", UNSAID, None),
    (lambda: H(PMF, 0.1, x=["a", "b"]), "x", UNSAID, None),
    (lambda: H([0.5, 0.5], 0.1, x=["a", "a"]), "x", "a", 1),
    (lambda: H(PMF, 0.1, units="bans"), "units", "bans", None),
    (lambda: H(PMF, 0.3).enclosure(-1.0), "level", -1.0, None),
    (lambda: H(PMF, 0.3).solve(method="conic"), "method", "conic", None),
    (lambda: H(PMF, 0.3).solve(solver="SCS"), "solver", "SCS", None),
    (lambda: H(PMF, 0.3).solve(solver_options={"a": 3}), "solver_options", {"a": 3}, None),
    (lambda: H(PMF, 0.3).solve().release.row(9), "x", 9, None),
    (lambda: H(PMF, 0.3).solve().release.posterior_of(6), "x_hat", 6, None),
]


@pytest.mark.parametrize(("call", "argument", "value", "where"), REFUSED)
def test_what_is_refused(call, argument, value, where):
    refused(call, argument, value=value, where=where)


def test_what_is_too_large_for_a_matrix_is_refused():
    large = H.from_counts(np.ones(2001), 0.1)
    release = large.solve().release
    for wanted in (large.channel_problem, release.to_channel, lambda: release.matrix,
                   lambda: large.problem):  # fmt: skip
        with pytest.raises(cpv.InputError, match="2,001 letters, too many for a"):
            wanted()


def test_it_prints_like_every_solution():
    problem = H(PMF, 0.3, units="nats")
    solution = problem.solve(accuracy="high")
    assert repr(problem) == (
        "HammingWaterFilling(min I(X; X̂)  s.t.  Pr(X ≠ X̂) ≤ 0.3; |X| = |X̂| = 7)"
    )
    for piece in (
        "certified (information in nats)",
        "4 of them released",
        "0.436633889",
        "-2.3514",
    ):
        assert piece in str(solution)
    assert "4 of them released" in solution._repr_html_()
    assert repr(solution.release) == "HammingChannel(7 letters → 4)"
    assert r"\Pr(X \ne \hat X) \le 0.3" in problem._repr_latex_()
    with pytest.raises(AttributeError, match="no 'risk'; its terms are rate, leakage, equiv"):
        _ = solution.risk


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
    longest = cpv.HammingWaterFilling([1.0, 5e-324], Fraction(1, 10**1999)).solve()
    assert longest.certificate.verify()


def test_the_rarer_a_letter_the_less_of_it_is_kept():
    p = np.array([0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02])
    for budget in (0.1, 0.3, 0.5):
        matrix = cpv.HammingWaterFilling(p, budget).solve().release.matrix
        kept = np.pad(np.diag(matrix), (0, len(p) - matrix.shape[1]))
        assert (np.diff(kept) <= 0).all()
        assert p @ kept == pytest.approx(1 - budget, abs=1e-12)


def test_the_optimum_of_a_large_table_is_that_of_its_law():
    """R of the counts of n records approaches R of the law as n^−½."""
    p, budget = [0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02], Fraction(3, 10)
    truth, errors = cpv.HammingWaterFilling(p, budget).solve().value, []
    for records in (100, 10_000, 1_000_000):
        rng = np.random.default_rng(1)
        tables = rng.multinomial(records, p, size=40).tolist()
        values = [cpv.HammingWaterFilling.from_counts(t, budget).solve().value for t in tables]
        errors.append(np.sqrt(np.mean(np.subtract(values, truth) ** 2)))
    ratios = np.divide(errors[:-1], errors[1:])
    assert ((ratios > 5) & (ratios < 20)).all()  # 10, but for chance
    assert errors[-1] < 2e-3
