r"""What solved points prove of the values between them, in exact arithmetic.

A program's optimum V is a function of one number x.  Each solved point x_k has an enclosure
V(x_k) ∈ [lower_k, upper_k].

*Where x is a right-hand side* u of a constraint f ≤ u, V is convex and non-increasing in u.  The
bound that multipliers prove (:mod:`cvxprivacy.certificates.verify`) contains u in the one summand
−λ_k u, λ_k ≥ 0 the multiplier of the constraint, so that, in real numbers,

.. math:: V(u) ≥ lower_k − λ_k (u − u_k) \quad\text{for every } u,

a supporting line; a ball's rounding was spent in ``lower_k``, and λ_k is the very float that the
proof used.  Above, mixtures of two releases achieve what lies on their chord or less, as
information is convex in the channel and costs are linear: the lower convex hull of the achieved
points.  Between neighbours a and b the two are farthest apart where the lines of a and b meet,
which is where to solve next (the sandwich algorithm); the distance is of second order in b − a.

*Elsewhere* (t, ℓ, k, ε, δ) V is monotone but need not be convex, and mixing is not allowed: from
above the staircase of achieved points, from below that of proved ones.

Floats are the rationals that they are; every result is rounded outwards.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

__all__ = ["Convex", "Curve", "Gap", "Interval", "Knot", "Staircase", "rounded"]

Interval = tuple[Fraction, Fraction]

NARROWEST = Fraction(1, 2**40)  # of the whole stretch: no narrower gap is split,
STEP = 1e-6  # nor, of a staircase, a narrower one than this


@dataclass(frozen=True)
class Knot:
    """A solved point.

    Attributes
    ----------
    x : float
        The number typed.
    at : (Fraction, Fraction)
        Encloses the right-hand side that it stands for.
    lower, upper : float
        Enclose the optimum; both infinite where nothing is feasible, by proof.
    slope : (Fraction, Fraction)
        Encloses the multiplier λ ≥ 0 of that right-hand side.
    """

    x: float
    at: Interval
    lower: float
    upper: float
    slope: Interval = (Fraction(0), Fraction(0))

    @property
    def feasible(self) -> bool:
        return math.isfinite(self.upper)

    @property
    def infeasible(self) -> bool:
        return self.lower == math.inf

    def line(self, at: Interval) -> Fraction:
        """Return what this point's multipliers prove of the optimum at ``at``."""
        falls = self.slope[1] * max(at[1] - self.at[0], Fraction(0))
        rises = self.slope[0] * max(self.at[0] - at[1], Fraction(0))
        return Fraction(self.lower) - falls + rises


@dataclass(frozen=True)
class Gap:
    """A stretch between two solved points: how far apart the curves are, and where to solve."""

    left: float
    right: float
    band: float
    middle: float | None  # None: too narrow to split


def rounded(value: Fraction, side: float) -> float:
    """Return a float at or beyond ``value`` on the side of ``±inf``."""
    try:
        found = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    wrong = found < value if side > 0 else found > value
    return math.nextafter(found, side) if math.isfinite(found) and wrong else found


class Curve:
    """Points in the order of the number typed, and the two curves that they prove."""

    def __init__(self, knots: Sequence[Knot]) -> None:
        self.knots = sorted(knots, key=lambda knot: knot.x)
        self.places = [knot.x for knot in self.knots]

    def inner(self, x: float) -> float:
        """Return what a release is known to achieve at x; +inf where none is known."""
        raise NotImplementedError

    def outer(self, x: float) -> float:
        """Return what is proved that no release undercuts at x; +inf where none is feasible."""
        raise NotImplementedError

    def mixture(self, x: float) -> tuple[Knot, Knot, Fraction] | None:
        """Return knots a, b and θ: (1 − θ) of a's release and θ of b's achieve the inner curve.

        None where no release is known.
        """
        raise NotImplementedError

    def gaps(self) -> list[Gap]:
        """Return the stretches between neighbours of which both curves are known."""
        raise NotImplementedError

    @property
    def band(self) -> float:
        """The greatest distance between the curves, from the first point achieved to the last."""
        own = [k.upper - k.lower for k in self.knots if k.feasible]
        if len(own) < 2:
            return own[0] if own else math.inf
        return max(gap.band for gap in self.gaps())

    def stretch(self) -> tuple[float, float] | None:
        """Return the ends of what is achieved."""
        found = [knot.x for knot in self.knots if knot.feasible]
        return (found[0], found[-1]) if found else None


class Convex(Curve):
    """Of a right-hand side.

    Parameters
    ----------
    knots : sequence of Knot
    axis, back : callable
        The right-hand side of a number typed, enclosed, and a number near a right-hand side.

    Attributes
    ----------
    corners : list of (Knot, Fraction, Knot)
        The lower convex hull of achieved points: where, how much, and by whose release.
    """

    def __init__(
        self,
        knots: Sequence[Knot],
        axis: Callable[[float], Interval],
        back: Callable[[Fraction], float],
    ) -> None:
        super().__init__(knots)
        self.axis, self.back = axis, back
        self.corners: list[tuple[Knot, Fraction, Knot]] = []
        for knot in self.knots:
            if knot.feasible:
                self._append(knot)
        self._proved = [knot for knot in self.knots if math.isfinite(knot.lower)]
        lines = [(float(k.at[0]), k.lower, float(k.slope[0])) for k in self._proved]
        self._lines = np.array(lines).reshape(-1, 3).T

    def _append(self, knot: Knot) -> None:
        """Add to the hull; where a tighter release achieves less, it is of use here too."""
        corners, value, holder = self.corners, Fraction(knot.upper), knot
        if corners and value > corners[-1][1]:
            value, holder = corners[-1][1:]
        while len(corners) > 1:
            (first, v0, _), (second, v1, _) = corners[-2:]
            u0, u1, u = first.at[1], second.at[1], knot.at[1]
            if (v1 - v0) * (u - u0) <= (value - v0) * (u1 - u0):
                break
            corners.pop()
        corners.append((knot, value, holder))

    def _place(self, x: float) -> tuple[int, int, Fraction] | None:
        """Return corners i, j and θ, as ``mixture``."""
        i = bisect_right([knot.x for knot, _, _ in self.corners], x) - 1
        if i < 0:
            return None
        knot, last, low = self.corners[i][0], len(self.corners) - 1, self.axis(x)[0]
        if i == last or knot.x == x:
            return i, i, Fraction(0)
        left, right = knot.at[1], self.corners[i + 1][0].at[1]
        if right <= left:  # exponentials that balls cannot tell apart
            return i, i, Fraction(0)
        theta = (low - left) / (right - left)
        return i, i + 1, min(max(theta, Fraction(0)), Fraction(1))

    def mixture(self, x: float) -> tuple[Knot, Knot, Fraction] | None:
        found = self._place(x)
        return found and (self.corners[found[0]][2], self.corners[found[1]][2], found[2])

    def chord(self, x: float) -> Fraction | None:
        """Return the inner curve exactly."""
        found = self._place(x)
        if found is None:
            return None
        i, j, theta = found
        return (1 - theta) * self.corners[i][1] + theta * self.corners[j][1]

    def inner(self, x: float) -> float:
        chord = self.chord(x)
        return math.inf if chord is None else rounded(chord, math.inf)

    def outer(self, x: float) -> float:
        if any(knot.infeasible and x <= knot.x for knot in self.knots):
            return math.inf
        best = self.highest(x)
        return -math.inf if best is None else rounded(best.line(self.axis(x)), -math.inf)

    def highest(self, x: float) -> Knot | None:
        """Return the knot whose line is highest at x, in floats: any line is sound."""
        if not self._proved:
            return None
        places, low, slope = self._lines
        return self._proved[int(np.argmax(low - slope * (float(self.axis(x)[1]) - places)))]

    def gaps(self) -> list[Gap]:
        reach = self.stretch()
        if reach is None:
            return []
        kept = [knot for knot in self.knots if reach[0] <= knot.x <= reach[1]]
        span = kept[-1].at[1] - kept[0].at[0]
        return [self._gap(a, b, span) for a, b in pairwise(kept)]

    def _gap(self, a: Knot, b: Knot, span: Fraction) -> Gap:
        """Maximise the least of chord − line of a and chord − line of b; both are linear."""
        ends = [(knot.at[1], self.chord(knot.x)) for knot in (a, b)]
        off = [
            [top - knot.line((u, u)) for u, top in ends if top is not None]
            for knot in (a, b)
            if math.isfinite(knot.lower)
        ]
        share = Fraction(1, 2)
        if len(off) == 1:
            share = Fraction(int(off[0][1] > off[0][0]))
        elif off:
            (rise, fall) = off
            tilt = (rise[1] - rise[0]) - (fall[1] - fall[0])
            ahead = fall[0] - rise[0]
            share = min(ahead / tilt, Fraction(1)) if tilt > 0 else Fraction(1)
            share = share if ahead > 0 else Fraction(0)
        band = [pair[0] + share * (pair[1] - pair[0]) for pair in off]
        (ua, _), (ub, _) = ends
        tried = [self.back(ua + part * (ub - ua)) for part in (share, Fraction(1, 2))]
        wide = ub - ua > NARROWEST * span
        middle = next((x for x in tried if wide and a.x < x < b.x), None)
        return Gap(a.x, b.x, rounded(min(band), math.inf) if band else math.inf, middle)

    def slopes(self, x: float) -> tuple[float, float]:
        """Enclose the slopes dV/du of lines that support V at x: from convexity."""
        low, high = self.axis(x)
        least, bottom, top = Fraction(self.outer(x)), -math.inf, 0.0
        for knot, value, _ in self.corners:
            u, rise = knot.at[1], least - value
            if knot.x < x and u < low:
                width = low - u if rise < 0 else high - u
                bottom = max(bottom, rounded(rise / width, -math.inf))
            elif knot.x > x and u > high:
                width = u - low if rise > 0 else u - high
                top = min(top, rounded(-rise / width, math.inf))
        return bottom, top


class Staircase(Curve):
    """Of a number that relaxes the constraints when it grows, or, ``falling``, tightens them.

    ``certified`` returns what the multipliers of solved points prove at other numbers.
    """

    def __init__(
        self,
        knots: Sequence[Knot],
        falling: bool = False,
        certified: Callable[[float], float] | None = None,
    ) -> None:
        super().__init__(knots)
        self.falling, self.certified = falling, certified
        order = self.knots[::-1] if falling else self.knots  # from tight to loose
        tops: list[float] = []
        floors: list[float] = []
        for knot in order:
            tops.append(min(knot.upper, tops[-1] if tops else math.inf))
        for knot in reversed(order):
            floors.append(max(knot.lower, floors[-1] if floors else -math.inf))
        self.order, self.tops, self.floors = order, tops, floors[::-1]

    def _tightness(self, x: float) -> float:
        return -x if self.falling else x

    def mixture(self, x: float) -> tuple[Knot, Knot, Fraction] | None:
        """Return the knot whose release is the best of those allowed at x, twice."""
        key = self._tightness(x)
        allowed = [k for k in self.order if self._tightness(k.x) <= key and k.feasible]
        if not allowed:
            return None
        best = min(allowed, key=lambda knot: knot.upper)
        return best, best, Fraction(0)

    def inner(self, x: float) -> float:
        found = self.mixture(x)
        return math.inf if found is None else found[0].upper

    def outer(self, x: float) -> float:
        key = self._tightness(x)
        first = bisect_left([self._tightness(knot.x) for knot in self.order], key)
        proved = self.floors[first] if first < len(self.order) else -math.inf
        on = first < len(self.order) and self.order[first].x == x
        if self.certified is None or on or proved == math.inf:
            return proved
        return max(proved, self.certified(x))

    def gaps(self) -> list[Gap]:
        found = []
        span = abs(self.places[-1] - self.places[0]) if self.places else 0.0
        known = zip(self.order, self.tops, self.floors, strict=True)
        for (a, top, _), (b, _, low) in pairwise(known):
            if math.isfinite(top):
                middle = a.x + (b.x - a.x) / 2
                fine = min(a.x, b.x) < middle < max(a.x, b.x) and abs(b.x - a.x) > STEP * span
                band = rounded(Fraction(top) - Fraction(low), math.inf)
                left, right = sorted((a.x, b.x))
                found.append(Gap(left, right, band, middle if fine else None))
        return found
