"""Records against bounds: ties, and what is nearly one, told as rationals and logarithms are."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.criteria.decisions import at_least_zero
from tests.criteria.definitions import standing

NEXT = math.nextafter


def meets(rule, joint, masses):
    """Tell whether one group of records satisfies a criterion, of masses of W in all."""
    group = Counts.of_records(np.array(joint)[:, None], reference=np.array(masses))
    return rule.verdict(group).holds


def leaks_at_most(measure, columns, masses, bound):
    table = Counts(np.array(columns).T, reference=np.array(masses))
    return table.leaked_in_all(measure, Fraction(bound)).holds


TINY = Fraction(1, 10**30)
RULES = {
    "k": cpv.KAnonymity,
    "l": cpv.LDiversity,
    "t": cpv.TCloseness,
    "tv": lambda t: cpv.TCloseness(t, "tv"),
    "emd": lambda t: cpv.TCloseness(t, "emd"),
    "chi": lambda t: cpv.PerLetter(cpv.leakage.ChiSquared(), t),
    "hellinger": lambda t: cpv.PerLetter(cpv.leakage.SquaredHellinger(), t),
    "guess": lambda t: cpv.PerLetter(cpv.leakage.GuessingProbability(), t),
    "delta": cpv.DeltaDisclosure,
    "pml": cpv.PointwiseMaximalLeakage,
}


@pytest.mark.parametrize(
    ("rule", "bound", "joint", "masses"),
    [  # met with equality
        ("k", 7, [3, 4], [30, 40]),
        ("l", 2, [5, 5, 0], [9, 9, 9]),
        ("l", 4, [3, 3, 3, 3], [9, 9, 9, 9]),
        ("t", 1, [6, 0], [20, 20]),  # one bit is told
        ("t", 2, [0, 6, 0, 0], [7, 7, 7, 7]),
        ("tv", Fraction(1, 2), [6, 0], [20, 20]),
        ("tv", Fraction(1, 3), [2, 0], [20, 10]),
        ("emd", Fraction(1, 2), [6, 0, 0], [10, 10, 10]),
        ("chi", Fraction(1, 9), [2, 1], [5, 5]),
        ("guess", Fraction(2, 3), [2, 1], [5, 5]),
        ("delta", 0, [2, 4], [5, 10]),
        ("pml", 0, [2, 4], [5, 10]),
    ],
)
def test_equality_is_met_and_the_least_excess_is_not(rule, bound, joint, masses):
    rule, least = RULES[rule], rule in ("k", "l")
    assert meets(rule(bound), joint, masses)
    if bound:
        worse = bound + TINY if least else bound - TINY
        assert not meets(rule(worse), joint, masses)
        assert meets(rule(bound - TINY if least else bound + TINY), joint, masses)
    else:
        assert not meets(rule(bound), [joint[0] + 1, *joint[1:]], masses)


def test_a_bound_between_two_floats():
    """log2 3 is no float: one of its neighbours is met by three equal values, the other is not."""
    joint, masses = [4, 0, 0], [9, 9, 9]
    with mpmath.workprec(200):
        exact = mpmath.log(3, 2)
        low, high = float(mpmath.floor(exact * 2**50)) / 2**50, 0.0
    while mpmath.mpf(low) < exact:
        high, low = low, NEXT(low, 9)
    assert meets(cpv.TCloseness(low), joint, masses)
    assert not meets(cpv.TCloseness(high), joint, masses)
    holds = standing(cpv.TCloseness(high), np.array([[4, 5], [0, 9], [0, 9]]))[1]
    assert holds.tolist() == [False, True]


counts = st.integers(2, 4).flatmap(
    lambda w: st.lists(
        st.tuples(st.integers(0, 6), st.integers(1, 9)), min_size=w, max_size=w
    ).filter(lambda pairs: sum(j for j, _ in pairs))
)


def measured(rule, joint, masses):
    """Return the measure in 60 digits, by the field's formulas."""
    with mpmath.workdps(60):
        mp = mpmath.mpf
        q, total = mp(sum(joint)), mp(sum(masses))
        p, prior = [mp(j) / q for j in joint], [mp(m) / total for m in masses]
        ratios = [a / b for a, b in zip(p, prior, strict=True)]
        steps = [sum(p[: i + 1]) - sum(prior[: i + 1]) for i in range(len(p) - 1)]
        return {
            "k": lambda: q,
            "l": lambda: mpmath.exp(-sum(a * mpmath.log(a) for a in p if a)),
            "t": lambda: sum(a * mpmath.log(r, 2) for a, r in zip(p, ratios, strict=True) if a),
            "tv": lambda: sum(abs(a - b) for a, b in zip(p, prior, strict=True)) / 2,
            "emd": lambda: sum(map(abs, steps)) / (len(p) - 1),
            "chi": lambda: sum(b * (r - 1) ** 2 for b, r in zip(prior, ratios, strict=True)),
            "hellinger": lambda: sum(
                (mpmath.sqrt(a) - mpmath.sqrt(b)) ** 2 for a, b in zip(p, prior, strict=True)
            ),
            "guess": lambda: max(p),
            "delta": lambda: max(abs(mpmath.log(r)) if r else mpmath.inf for r in ratios),
            "pml": lambda: max(map(mpmath.log, filter(None, ratios))),
        }[rule]()


@given(counts, st.sampled_from(list(RULES)), st.sampled_from([-1, 1]), st.integers(2, 25))
@settings(max_examples=100, deadline=None)
def test_against_sixty_digits(pairs, rule, side, digits):
    joint, masses = [j for j, _ in pairs], [j + m for j, m in pairs]
    value = measured(rule, joint, masses)
    if not mpmath.isfinite(value) or value > 100 or value < 1e-9:
        return
    with mpmath.workdps(60):
        at = value * (1 + side * mpmath.mpf(10) ** -digits)
        bound = Fraction(int(mpmath.floor(at * mpmath.mpf(10) ** 50)), 10**50)
    if rule in ("k", "l"):
        bound, holds = max(bound, Fraction(1)), value >= max(at, 1)
    else:
        holds = side > 0
    if abs(value - 1) < 1e-9:
        return
    assert meets(RULES[rule](bound), joint, masses) == holds


def test_all_letters_together():
    table, masses = [[3, 0], [1, 4]], [4, 4]
    joint = np.array(table).T / 8
    exact = cpv.leakage.MutualInformation().total(joint) / math.log(2)
    bound = Fraction(exact)
    information = cpv.leakage.MutualInformation()
    assert leaks_at_most(information, table, masses, bound + Fraction(1, 10**12))
    assert not leaks_at_most(information, table, masses, bound - Fraction(1, 10**12))
    guess = cpv.leakage.GuessingProbability()
    assert leaks_at_most(guess, table, masses, Fraction(7, 8))
    assert not leaks_at_most(guess, table, masses, Fraction(7, 8) - TINY)
    assert leaks_at_most(information, [[4, 0], [0, 4]], [4, 4], Fraction(1))
    assert not leaks_at_most(information, [[4, 0], [0, 4]], [4, 4], 1 - TINY)


class RateAtMost(cpv.Criterion):
    """I(X; X̂) ≤ r: a rule of the key letters, of whatever is confidential."""

    name = "rate_at_most"
    r = cpv.Parameter()

    def constraints(self, release):
        return {self.name: release.information("X") <= self.r}


@pytest.mark.parametrize("r", [0, 0.1, 100])
def test_what_is_of_the_key_is_not_decided_without_it(r):
    assert meets(RateAtMost(r), [6, 0], [20, 20]) is None


@pytest.mark.parametrize(
    "form",
    [
        [(1, Fraction(3, 2)), (1, Fraction(2, 3))],
        [(2, Fraction(1, 2)), (1, Fraction(4))],
        [(Fraction(1, 2), Fraction(9, 4)), (-1, Fraction(3, 2))],
    ],
)
def test_logarithms_that_cancel_are_told_by_their_primes(form):
    """No ball tells them from 0, and what is added has the last word."""
    assert at_least_zero(form)
    for added in (TINY, -TINY):
        assert at_least_zero(form, added) is (added > 0)
    assert at_least_zero([*form, (TINY, Fraction(2))])
    assert not at_least_zero([*form, (-TINY, Fraction(2))])


class LeaksInAll(cpv.Criterion):
    """Σ F ≤ b in a measure: what ``LeakageCap`` states, decided by its rows alone."""

    name = "leaks_in_all"
    b = cpv.Parameter()

    def __init__(self, b, measure):
        self.b, self.leaks = b, measure

    def constraints(self, release):
        return {self.name: release.leaked(self.leaks) <= self.b}


@pytest.mark.parametrize("units", ["bits", "nats"])
@pytest.mark.parametrize(
    "measure",
    [cpv.leakage.MutualInformation(), cpv.leakage.TotalVariation(), cpv.leakage.ChiSquared()],
    ids=repr,
)
def test_rows_alone_have_the_value_of_the_measure(measure, units):
    joint = np.array([[6, 1, 3], [2, 5, 1]])
    verdict = LeaksInAll(10, measure).verdict(Counts.of_records(joint, units))
    nats = measure.total(joint / joint.sum())
    assert verdict.holds
    assert verdict.value == pytest.approx(nats * measure.unit(units), rel=1e-12)
