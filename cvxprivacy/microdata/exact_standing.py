"""Whether the records of a table meet a bound: decided in whole numbers, and in balls.

A sum of logarithms of rationals is enclosed at a precision that grows; where no ball can tell it
from zero, it is zero just if the product of the rationals' powers is 1, which their prime factors
tell.  Other measures are rational, with a denominator that is known, or they are proved to meet
the bound only where a ball says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq, fmpz

from cvxprivacy.criteria import (
    Criterion,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    PerfectPrivacy,
    PerLetter,
    PointwiseMaximalLeakage,
    TCloseness,
)
from cvxprivacy.exact import rational
from cvxprivacy.leakage import Leakage
from cvxprivacy.verifier.measures import measure_of
from cvxprivacy.verifier.rationals import whole
from cvxprivacy.verifier.transport import plan

__all__ = ["leaks_at_most", "meets"]

_RATIONAL = {"chi-squared", "hockey-stick", "transport", "gain", "maximal leakage"}
_BITS = 4096  # the most that a ball gets to tell an irrational number from a bound
Logarithms = list[tuple[int, Fraction]]  # Σ n log r
Counts = Sequence[int]


def meets(criterion: Criterion, joint: Counts, masses: Counts, units: str) -> bool:
    """Tell whether the records of one released letter satisfy a criterion.

    Parameters
    ----------
    criterion : one per letter
    joint, masses : sequence of int, shape (|W|,)
        Records of each value of W, with the letter and in all; of values that no record has, too.
    units : {"bits", "nats"}
        Of a t-closeness by divergence.
    """
    q, total = sum(joint), sum(masses)
    pairs = [(j, p) for j, p in zip(joint, masses, strict=True) if p or j]
    if not q:
        return True
    alike = all(j * total == p * q for j, p in pairs)
    if isinstance(criterion, PerfectPrivacy):
        return alike
    bound = rational(criterion.value)
    if isinstance(criterion, KAnonymity):
        return q >= bound
    if isinstance(criterion, LDiversity):  # Σ J log(q/J) ≥ q log ℓ, over the denominator of none
        form = [(j, Fraction(q, j)) for j, _ in pairs if j] + [(-q, bound)]
        return _at_least_zero(form)
    if isinstance(criterion, DeltaDisclosure | PointwiseMaximalLeakage):
        if not bound:
            return alike
        ratios = [Fraction(j * total, p * q) for j, p in pairs]
        below = isinstance(criterion, DeltaDisclosure)
        return _within(max(ratios), bound) and (not below or _within_below(min(ratios), bound))
    assert isinstance(criterion, TCloseness | PerLetter)
    return leaks_at_most(criterion.leakage, [joint], masses, bound, units)


def leaks_at_most(
    leakage: Leakage, columns: Iterable[Counts], masses: Counts, bound: Fraction, units: str
) -> bool:
    """Tell whether Σ F(J) of some letters is at most ``bound`` times their records."""
    there = [i for i, p in enumerate(masses) if p]
    table = [[column[i] for i in there] for column in columns]
    table = [column for column in table if any(column)]
    own, q = [masses[i] for i in there], sum(map(sum, table))
    if leakage.informs:
        return _informs_at_most(table, own, bound * q, units)
    return _measures_at_most(leakage.fitted(range(len(masses)), there), table, own, bound * q)


def _informs_at_most(table: list[list[int]], own: list[int], most: Fraction, units: str) -> bool:
    """Tell whether Σ J log(J/(π q)) ≤ most, in bits or in nats."""
    total, form = sum(own), Logarithms()
    for column in table:
        q = sum(column)
        form += [(-j, Fraction(j * total, p * q)) for j, p in zip(column, own, strict=True) if j]
    if units == "bits":  # times the bound's denominator, all coefficients are whole
        form = [(n * most.denominator, r) for n, r in form] + [(most.numerator, Fraction(2))]
        return _at_least_zero(form)
    if not most:
        return _at_least_zero(form)
    return bool(_sign(form, most) >= 0)  # e to a rational power is no rational


def _at_least_zero(form: Logarithms) -> bool:
    """Tell whether Σ n log r ≥ 0."""
    for bits in (128, 512):
        with ctx.workprec(bits):
            value = _sum(form)
            if value > 0 or value < 0:
                return bool(value > 0)
    return _is_one(form) or _sign(form, Fraction(0)) > 0


def _sign(form: Logarithms, added: Fraction) -> int:
    """Return the sign of Σ n log r + added, which is not zero."""
    bits = 128
    while True:
        with ctx.workprec(bits):
            value = _sum(form) + arb(_fmpq(added))
            if value > 0 or value < 0:
                return 1 if value > 0 else -1
        bits *= 2


def _sum(form: Logarithms) -> arb:
    return sum((n * arb(_fmpq(r)).log() for n, r in form), arb(0))


def _is_one(form: Logarithms) -> bool:
    """Tell whether Π r^n is 1, by prime factors."""
    powers: dict[int, int] = {}
    for n, r in form:
        for sign, part in ((1, r.numerator), (-1, r.denominator)):
            for prime, power in fmpz(part).factor() if part > 1 else ():
                powers[int(prime)] = powers.get(int(prime), 0) + sign * n * int(power)
    return not any(powers.values())


def _within(ratio: Fraction, exponent: Fraction) -> bool:
    """Tell whether r ≤ e^ε, ε > 0: they are never equal."""
    return ratio <= 1 or _sign([(-1, ratio)], exponent) > 0


def _within_below(ratio: Fraction, exponent: Fraction) -> bool:
    """Tell whether r ≥ e^−ε, ε > 0."""
    return ratio >= 1 or (ratio > 0 and _sign([(1, ratio)], exponent) > 0)


def _measures_at_most(
    leakage: Leakage, table: list[list[int]], own: list[int], most: Fraction
) -> bool:
    """Tell whether Σ F(J) ≤ most: in rationals, or in balls that tell."""
    data, total = leakage.data(), sum(own)
    if data["kind"] == "transport" and _moved_at_most(data["ground"], table, own, most):
        return True
    multiple = _denominator(table, own, most, data) if data["kind"] in _RATIONAL else 0
    bits, limit = 128, 2 * multiple.bit_length() + 256 if multiple else _BITS
    while True:
        with ctx.workprec(bits):
            reference = [arb(fmpq(p, total)) for p in own]
            measure = measure_of(data, reference, arb(1))
            exact = [measure.exactly([fmpz(j) for j in column], own) for column in table]
            known = sum((x for x in exact if x is not None), fmpq(0))
            others = [c for c, x in zip(table, exact, strict=True) if x is None]
            if not others:
                return bool(known <= _fmpq(most))
            value = sum((measure.value([arb(j) for j in column]) for column in others), arb(0))
            off = value + arb(known - _fmpq(most))
            if off > 0 or off <= 0:
                return bool(off <= 0)
            if bits >= limit:  # a rational nearer to zero than one over its denominator is zero
                return bool(multiple and abs(off) < arb(fmpq(1, multiple)))
        bits = min(2 * bits, limit)


def _moved_at_most(ground: Any, table: list[list[int]], own: list[int], most: Fraction) -> bool:
    """Tell whether plans in whole numbers move the letters' records at no more than ``most``."""
    cost, common = whole(ground)
    floats, total, paid = [[c / common for c in row] for row in cost], sum(own), 0
    for column in table:
        supply, demand = [j * total for j in column], [p * sum(column) for p in own]
        flow = [list(map(int, row)) for row in plan(supply, demand, floats)[0]]
        if [*map(sum, flow)] != supply or [*map(sum, zip(*flow, strict=True))] != demand:
            return False  # no plan: of more records than floats can count
        paid += sum(x * c for row, costs in zip(flow, cost, strict=True)
                    for x, c in zip(row, costs, strict=True))  # fmt: skip
    return Fraction(paid, common * total) <= most


def _denominator(
    table: list[list[int]], own: list[int], most: Fraction, data: Mapping[str, Any]
) -> int:
    """Return a multiple of the denominator of what is leaked, less the bound."""
    common = most.denominator * sum(own)
    for name in {"matrix", "ground"} & {*data}:
        common *= whole(data[name])[1]
    return common * math.prod(own) * math.prod(sum(column) for column in table)


def _fmpq(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)
