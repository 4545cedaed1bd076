r"""The level at which water in boxes is a given amount: a sort and a sum.

X(v) = Σ clip(v − o_i, 0, c_i) is increasing and piecewise linear.  A sort of its kinks in floats
finds the piece but for rounding; the kinks next to it are then looked at exactly, and the piece is
solved for v: exactly, or where its sums have no short common denominator from below, with at most
2⁻¹⁰⁰ of the amount left over.  (G36) and (G45) of ``docs/theory/covariance.md``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from cvxprivacy.certificates.sums import exact_sum, rounded_down
from cvxprivacy.certificates.water import TypedBoxes, places
from cvxprivacy.exact import Exact, FloatArray, floats, rational, short
from cvxprivacy_verifier.balls import exactly
from cvxprivacy_verifier.water_proof import PRECISIONS, of_reciprocals

__all__ = ["box_level", "common_level", "rational_of", "writable"]

# −log₂ of how far from the piece kinks are looked at exactly: sums of 2²⁰ floats are off by 2⁻³³
AROUND = (36, 24, 8, 0)
BISECTIONS = 70  # of log v: from a ratio of e³⁰⁰⁰ of the ends to beyond a float's last digit
LEFT = 100  # −log₂ of what may be left over: far below every tolerance
GUARD = 4  # bits by which parts are sharper than what may be left over
USUAL = 1e150  # between its reciprocal and it, products of two numbers are normal floats


def common_level(increasing: FloatArray, total: Fraction, *, fewer: int = 0) -> Fraction:
    """Return the λ of Σ min(m, λ) − ``fewer`` λ = total, exactly.

    The left-hand side is concave, so that Newton's method in rationals ends after finitely many
    steps, mostly one.  It must exceed the total where λ is the greatest m.
    """
    size, top = len(increasing), len(increasing) - 1
    # the left-hand side at each m: those below it, and λ = m of each that is above
    with np.errstate(over="ignore", invalid="ignore"):
        others = np.arange(top - fewer, -1.0 - fewer, -1.0)  # how many are above, less ``fewer``
        kinks = np.cumsum(increasing) + others * increasing
    drowned = min(int(np.searchsorted(kinks, float(total), side="right")), top - fewer)
    tail = exact_sum(increasing[:drowned])
    while True:
        level = (total - tail) / (size - drowned - fewer)  # (G45)
        below = np.searchsorted(increasing, rounded_down(level), side="right")
        place = min(int(below), top)
        if place == drowned:  # the piece is that of its level
            return level
        between = exact_sum(increasing[min(place, drowned) : max(place, drowned)])
        tail += between if place > drowned else -between
        drowned = place


def box_level(
    boxes: TypedBoxes, gains: Exact | None, caps: Exact, total: Fraction
) -> Fraction | None:
    """Return the least v with Σ clip(v − 1/g_i, 0, c_i) = total, or one next below it.

    None where the total covers all caps.  ``boxes`` are those of gains and caps.
    """
    capacity = boxes.summed(boxes.caps)
    with ctx.workprec(PRECISIONS[-1]):
        most = boxes.balled_sum(boxes.caps).upper() if capacity is None else capacity
        if exactly(total) >= most:
            return None
    if gains is None and caps.dtype.kind == "f":
        return _short(common_level(np.sort(caps), total), total)
    sums = capacity, of_reciprocals([] if gains is None else boxes.some(gains))
    exact, start = None not in sums, _nearly(gains, caps, total)
    for factor in (*(1 + Fraction(2) ** -bits for bits in AROUND), None):  # nearest first
        ends = (start / factor, start * factor) if factor else _all_levels(gains, caps, total)
        level = _Piece(boxes, gains, caps, total, *ends, exact).level()
        if level is not None:
            return _short(level, total / len(caps), exact=exact)
    raise ArithmeticError("X(v) ≤ n v, and X is Σ c where all is full")


def _all_levels(gains: Exact | None, caps: Exact, total: Fraction) -> tuple[Fraction, Fraction]:
    """Return levels at which less is poured, and more: X(v) ≤ n v, and all is full at the other."""
    most = max(map(rational, caps.tolist()))
    if gains is not None:
        most += 1 / min(map(rational, gains.tolist()))
    return total / (2 * len(caps)), 2 * most


def writable(level: Fraction) -> Fraction:
    """Return a level at which all is full that is full at ``level``, and that a proof can hold."""
    return level if short(level) else Fraction(-(-level.numerator // level.denominator))


def _short(level: Fraction, amount: Fraction, *, exact: bool = True) -> Fraction:
    """Return a level if it is exact and a proof can hold it, else one a little below it."""
    if exact and short(level):
        return level
    bits = LEFT + _bits_below(amount)
    return _floored(level, bits) - Fraction(1, 1 << bits)


def _bits_below(amount: Fraction) -> int:
    """Return −log₂ of what is below 1, or nearly."""
    return max(amount.denominator.bit_length() - amount.numerator.bit_length(), 0)


def _floored(value: Fraction, bits: int) -> Fraction:
    return Fraction((value.numerator << bits) // value.denominator, 1 << bits)


def _nearly(gains: Exact | None, caps: Exact, total: Fraction) -> Fraction:
    """Return a level near the truth, as long as floats go."""
    sizes, slopes = floats(caps), np.ones(len(caps)) if gains is None else floats(gains)
    extremes = [float(end) for v in (sizes, slopes) for end in (v.min(), v.max())]
    usual = all(1 / USUAL < end < USUAL for end in (*extremes, float(total)))
    kind: Any = float if usual else np.longdouble  # of a wider range, where there is one
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        offsets = np.zeros(len(caps), kind) if gains is None else 1 / slopes.astype(kind)
        ends = [np.sort(offsets), np.sort(offsets + sizes.astype(kind))]
        sums = [np.concatenate([[kind(0)], np.cumsum(values)]) for values in ends]
        wanted = _long(total, kind)

        def wet_at(level: Any) -> tuple[int, Any]:
            """Return K, and X(v) − K v: boxes that have begun less those that have ended."""
            begun, done = (int(np.searchsorted(values, level)) for values in ends)
            return begun - done, sums[1][done] - sums[0][begun]

        low, high = wanted / (2 * kind(len(caps))), 2 * ends[1][-1]
        for _ in range(BISECTIONS):
            level = np.sqrt(low) * np.sqrt(high)
            slope, constant = wet_at(level)
            low, high = (level, high) if slope * level + constant < wanted else (low, level)
        slope, constant = wet_at(high)
        level = (wanted - constant) / slope if slope else high
        mantissa, exponent = np.frexp(level if low <= level <= high else high)
    return Fraction(float(mantissa)) * Fraction(2) ** int(exponent)


def _long(value: Fraction, kind: Any) -> Any:
    """Return the nearest number of a kind, but for a rounding or two."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return np.ldexp(kind(float(value / Fraction(2) ** shift)), shift)


class _Piece:
    """X(v) − t between two levels: a line, and boxes with kinks there, which are kept apart."""

    def __init__(
        self,
        boxes: TypedBoxes,
        gains: Exact | None,
        caps: Exact,
        total: Fraction,
        low: Fraction,
        high: Fraction,
        exact: bool,
    ) -> None:
        where = places(gains, caps, low, high)
        self.low, self.high = exactly(low), exactly(high)
        self.near: Counter[tuple[fmpq, fmpq]] = Counter()
        bits = LEFT + GUARD + _bits_below(total / len(caps))
        for i in np.flatnonzero(where == 0).tolist():
            offset = Fraction(0) if gains is None else 1 / rational(gains[i])
            cap = rational(caps[i])
            if not exact:  # short, and so that no less is poured than by the two
                offset, cap = _floored(offset, bits), -_floored(-cap, bits)
            self.near[exactly(offset), exactly(cap)] += 1
        wet = [] if gains is None else boxes.some(gains, where == 2)
        full = boxes.some(caps, where == -1)
        self.slope, amount = int((where == 2).sum()), exactly(total)
        if exact:
            self.room = amount + of_reciprocals(wet) - boxes.summed(full)  # (G36): K v = room
            return
        for precision in PRECISIONS:
            with ctx.workprec(precision):
                part = boxes.reciprocals(wet) - boxes.balled_sum(full)
                if part.rad() <= arb(amount) * arb(2) ** -(LEFT + GUARD):
                    break
        self.room = amount + rational_of(part.lower())  # so that the level is not above the truth

    def beyond(self, level: fmpq) -> fmpq:
        """Return X(v) − t."""
        excess = self.slope * level - self.room
        for (offset, cap), times in self.near.items():
            if level > offset:
                excess += times * min(level - offset, cap)
        return excess

    def level(self) -> Fraction | None:
        """Return the least v with X(v) = t; None if it is not between the two levels."""
        inner = {kink for o, c in self.near for kink in (o, o + c) if self.low < kink < self.high}
        kinks = [self.low, *sorted(inner), self.high]
        place = bisect_left(kinks, 0, key=self.beyond)
        if not 0 < place < len(kinks):
            return None
        low, high = kinks[place - 1], kinks[place]
        before, after = self.beyond(low), self.beyond(high)
        level = low - before * (high - low) / (after - before)  # the chord: there is no kink inside
        return Fraction(int(level.p), int(level.q))


def rational_of(value: arb) -> fmpq:
    """Return the number that a ball of radius 0 is."""
    mantissa, exponent = value.man_exp()
    return fmpq(int(mantissa)) * fmpq(2) ** int(exponent)
