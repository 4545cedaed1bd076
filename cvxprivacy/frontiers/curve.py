r"""What solved points prove of the values between them, in exact arithmetic.

A program's optimum V is a function of one number x.  Each solved point x_k has an enclosure
V(x_k) ∈ [lower_k, upper_k].

*Where x is a right-hand side* u of a constraint f ≤ u, V is convex and non-increasing in u.  The
bound that multipliers prove (:mod:`cvxprivacy_verifier.verify`) contains u in the one summand
−λ_k u, λ_k ≥ 0 the multiplier of the constraint, so that, in real numbers,

.. math:: V(u) ≥ lower_k − λ_k (u − u_k) \quad\text{for every } u,

a supporting line; a ball's rounding was spent in ``lower_k``, and λ_k is the very float that the
proof used.  Above, mixtures of two releases achieve what lies on their chord or less, as
information is convex in the channel and costs are linear: the lower convex hull of the achieved
points.  Between neighbours a and b the two are farthest apart where the lines of a and b meet,
which is where to solve next (the sandwich algorithm); the distance is of second order in b − a.

*Where x weighs a part of the objective*, V(x) = min a + x b over releases that are allowed whatever
x is, V is a least of linear functions and so concave.  Above, each solved release achieves a line,
a_k + x b_k, everywhere; below, the chord between two proved ends.

*Elsewhere* (t, ℓ, k, ε, δ) V is monotone but need not be convex, and mixing is not allowed: from
above the staircase of achieved points, from below that of proved ones.

Floats are the rationals that they are; every result is rounded outwards.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from flint import arb

from cvxprivacy.errors import InputError
from cvxprivacy.model.information import nat
from cvxprivacy_verifier.balls import ball, ceil, floor

__all__ = [
    "CONCAVE",
    "CONVEX",
    "EXPONENTIAL",
    "MONOTONE",
    "Axis",
    "Breakpoint",
    "Concave",
    "Convex",
    "Curve",
    "Gap",
    "Interval",
    "Mixture",
    "Number",
    "Staircase",
    "curve_of",
    "interval",
    "rounded",
]

CONVEX = "convex"
EXPONENTIAL = "convex in exp"
MONOTONE = "monotone"
CONCAVE = "concave"

Number = float | Fraction
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Axis:
    """How an optimum depends on its number.

    It is convex in the number, a right-hand side; or in its exponential, which is one (of an
    exponent in ``units``); or only monotone, ``falling`` where a greater number is the tighter one.
    ``rows`` are the constraints, or the auxiliary, whose right-hand side it is: several under
    several laws; or the quantity that it weighs in the objective, in which the optimum is concave.
    """

    kind: str
    units: str
    falling: bool = False
    rows: tuple[str, ...] = ()

    def bound(self, x: Number) -> Interval:
        """Enclose the right-hand side of a number."""
        if self.kind != EXPONENTIAL:
            return Fraction(x), Fraction(x)
        power = (ball(x) * (arb(2).log() if self.units == "bits" else 1)).exp()
        if ceil(power) == math.inf:
            raise InputError("x", f"{x!r} is out of range", "pass a number < 700", value=x)
        return interval(power)

    def number(self, bound: Fraction) -> float:
        """Return a number near the one whose right-hand side this is."""
        return math.log(bound) * nat(self.units) if self.kind == EXPONENTIAL else float(bound)

    def slopes(self, x: Number, low: float, high: float) -> tuple[float, float]:
        """Return slopes in the number, given those in its right-hand side."""
        if self.kind != EXPONENTIAL:
            return low, high
        first, last = (float(end) for end in self.bound(x))
        scaled = np.array([low * last, high * first]) / nat(self.units)
        below, above = np.nextafter(scaled, [-math.inf, math.inf]).tolist()
        return below, above


def interval(enclosure: arb) -> Interval:
    """Return floats around a ball, as rationals."""
    return Fraction(floor(enclosure)), Fraction(ceil(enclosure))


# ---- curves -------------------------------------------------------------------------------


NARROWEST = Fraction(1, 2**40)  # of the whole range: no narrower gap is split,
STEP = 1e-6  # nor, of a staircase, a narrower one than this


@dataclass(frozen=True)
class Breakpoint:
    """A solved point.

    Attributes
    ----------
    x : float or Fraction
        The number typed.
    bound : (Fraction, Fraction)
        Encloses the right-hand side that it stands for.
    lower, upper : float
        Enclose the optimum; both infinite where nothing is feasible, by proof.
    slope : (Fraction, Fraction)
        Encloses the multiplier λ ≥ 0 of that right-hand side, or what the number weighs of the
        release.
    """

    x: Number
    bound: Interval
    lower: float
    upper: float
    slope: Interval = (Fraction(0), Fraction(0))

    @property
    def feasible(self) -> bool:
        """Whether a release is known."""
        return math.isfinite(self.upper)

    @property
    def infeasible(self) -> bool:
        """Whether it is proved that there is none."""
        return self.lower == math.inf

    def line(self, bound: Interval) -> Fraction:
        """Return what this point's multipliers prove of the optimum at another right-hand side."""
        falls = self.slope[1] * max(bound[1] - self.bound[0], Fraction(0))
        rises = self.slope[0] * max(self.bound[0] - bound[1], Fraction(0))
        return Fraction(self.lower) - falls + rises


class Gap(NamedTuple):
    """Between two solved points: how far apart the curves are, and where to solve next."""

    band: float
    split: float | None  # None: too narrow to split


def _gap(band: Fraction, split: float | None) -> Gap:
    """Return a gap; points of which one achieves what another proves impossible are no curve."""
    if band < 0:
        raise ArithmeticError(
            f"the points contradict each other: a release achieves {float(-band):.3g} less than is "
            "proved to be possible"
        )
    return Gap(rounded(band, math.inf), split)


Mixture = tuple[Breakpoint, Breakpoint, Fraction]


class Curve:
    """Points in the order of the number typed, and the two curves that they prove."""

    def __init__(self, breakpoints: Sequence[Breakpoint], axis: Axis) -> None:
        self.breakpoints = sorted(breakpoints, key=lambda point: point.x)
        self.axis = axis

    def mixture(self, x: Number) -> Mixture | None:
        """Return points a, b and θ: (1 − θ) of a's release and θ of b's achieve the inner curve.

        None where no release is known.
        """
        raise NotImplementedError

    def achieved(self, x: Number) -> Fraction | None:
        """Return the inner curve exactly."""
        if (mixture := self.mixture(x)) is None:
            return None
        a, b, share = mixture
        return (1 - share) * Fraction(a.upper) + share * Fraction(b.upper)

    def inner(self, x: Number) -> float:
        """Return what a release is known to achieve at x; +inf where none is known."""
        value = self.achieved(x)
        return math.inf if value is None else rounded(value, math.inf)

    def outer(self, x: Number) -> float:
        """Return what is proved that no release undercuts at x; +inf where none is feasible."""
        raise NotImplementedError

    @cached_property
    def gaps(self) -> list[Gap]:
        """The gaps between neighbours of which both curves are known."""
        raise NotImplementedError

    @property
    def band(self) -> float:
        """The greatest distance between the curves, from the first point achieved to the last."""
        widths = [point.upper - point.lower for point in self.breakpoints if point.feasible]
        if len(widths) < 2:
            return widths[0] if widths else math.inf
        return max(gap.band for gap in self.gaps)

    @property
    def solved_range(self) -> tuple[Number, Number] | None:
        """The first and the last number at which a release was found."""
        places = [point.x for point in self.breakpoints if point.feasible]
        return (places[0], places[-1]) if places else None

    @property
    def edge(self) -> tuple[Number, Number] | None:
        """The last number at which nothing is feasible, by proof, and the first feasible one."""
        reach = self.solved_range
        infeasible = [point.x for point in self.breakpoints if point.infeasible]
        if reach is None or not infeasible:
            return None
        return (reach[1], min(infeasible)) if self.axis.falling else (max(infeasible), reach[0])

    @property
    def width(self) -> float:
        """From the first point to the last."""
        return float(self.breakpoints[-1].x - self.breakpoints[0].x) if self.breakpoints else 0.0


class Convex(Curve):
    """Of a right-hand side."""

    def __init__(self, breakpoints: Sequence[Breakpoint], axis: Axis) -> None:
        super().__init__(breakpoints, axis)
        # The lower convex hull of achieved points: where, and the point whose release it is.
        self._hull: list[tuple[Breakpoint, Breakpoint]] = []
        for point in self.breakpoints:
            if point.feasible:
                self._append(point)
        self._supports = [point for point in self.breakpoints if math.isfinite(point.lower)]
        lines = [(float(p.bound[0]), p.lower, float(p.slope[0])) for p in self._supports]
        self._lines = np.array(lines).reshape(-1, 3).T

    def _append(self, point: Breakpoint) -> None:
        """Add to the hull; where a tighter release achieves less, it is of use here too."""
        hull = self._hull
        owner = hull[-1][1] if hull and point.upper > hull[-1][1].upper else point
        while len(hull) > 1:
            u0, u1, u = (place.bound[1] for place in (hull[-2][0], hull[-1][0], point))
            v0, v1, v = (Fraction(p.upper) for p in (hull[-2][1], hull[-1][1], owner))
            if (v1 - v0) * (u - u0) <= (v - v0) * (u1 - u0):
                break
            hull.pop()
        hull.append((point, owner))

    def mixture(self, x: Number) -> Mixture | None:
        """Return the corners of the hull on both sides of x, and the share of the second."""
        i = bisect_right(self._hull, x, key=lambda corner: corner[0].x)
        if not i:
            return None
        bound = self.axis.bound(x)[0]
        (first, owner), (second, other) = self._hull[i - 1], self._hull[min(i, len(self._hull) - 1)]
        left, right = first.bound[1], second.bound[1]
        if first.x == x or right <= left:  # or exponentials that balls cannot tell apart
            return owner, owner, Fraction(0)
        share = (bound - left) / (right - left)
        return owner, other, min(max(share, Fraction(0)), Fraction(1))

    def outer(self, x: Number) -> float:
        """Return the highest supporting line at x."""
        if any(point.infeasible and x <= point.x for point in self.breakpoints):
            return math.inf
        best = self.highest(x)
        return -math.inf if best is None else rounded(best.line(self.axis.bound(x)), -math.inf)

    def highest(self, x: Number) -> Breakpoint | None:
        """Return the point whose line is highest at x, in floats: any line is sound."""
        if not self._supports:
            return None
        bounds, lower, slopes = self._lines
        heights = lower - slopes * (float(self.axis.bound(x)[1]) - bounds)
        return self._supports[int(np.argmax(heights))]

    @cached_property
    def gaps(self) -> list[Gap]:
        """The gaps from the first point achieved to the last."""
        reach = self.solved_range
        if reach is None:
            return []
        inside = [point for point in self.breakpoints if reach[0] <= point.x <= reach[1]]
        span = inside[-1].bound[1] - inside[0].bound[0]
        return [self._gap(a, b, span) for a, b in pairwise(inside)]

    def _gap(self, a: Breakpoint, b: Breakpoint, span: Fraction) -> Gap:
        """Maximise the least of chord − line of a and chord − line of b; both are linear."""
        left, right = a.bound[1], b.bound[1]
        tops = [(point.bound[1], self.achieved(point.x)) for point in (a, b)]
        heights = [
            [top - point.line((u, u)) for u, top in tops if top is not None]
            for point in (a, b)
            if math.isfinite(point.lower)
        ]
        share, band = _greatest_minimum(heights) if heights else (Fraction(1, 2), None)
        candidates = [self.axis.number(left + s * (right - left)) for s in (share, Fraction(1, 2))]
        wide = right - left > NARROWEST * span
        split = next((x for x in candidates if wide and a.x < x < b.x), None)
        return Gap(math.inf, split) if band is None else _gap(band, split)

    def slopes(self, x: Number) -> tuple[float, float]:
        """Enclose the slopes dV/du of lines that support V at x: from convexity."""
        low, high = self.axis.bound(x)
        outer, bottom, top = Fraction(self.outer(x)), -math.inf, 0.0
        for point, owner in self._hull:
            u, rise = point.bound[1], outer - Fraction(owner.upper)
            if point.x < x and u < low:  # rise ≤ 0, as the optimum falls
                bottom = max(bottom, rounded(rise / (low - u), -math.inf))
            elif point.x > x and u > high:  # of use where rise > 0
                top = min(top, rounded(-rise / (u - low), math.inf))
        return bottom, top


class Concave(Curve):
    """Of a number that weighs a part of the objective."""

    def _achieving(self, point: Breakpoint, x: Number) -> Fraction:
        """Return at most what a solved release achieves at x: its line, rounded up."""
        step = Fraction(x) - Fraction(point.x)
        return Fraction(point.upper) + max(step * end for end in point.slope)

    def mixture(self, x: Number) -> Mixture | None:
        """Return the point whose release is the best at x, twice."""
        points = [point for point in self.breakpoints if point.feasible]
        if not points:
            return None
        best = min(points, key=lambda point: (self._achieving(point, x), point.x != x))
        return best, best, Fraction(0)

    def achieved(self, x: Number) -> Fraction | None:
        mixture = self.mixture(x)
        return None if mixture is None else self._achieving(mixture[0], x)

    def outer(self, x: Number) -> float:
        """Return the chord of the proved ends; outside of these nothing is proved."""
        if any(point.infeasible for point in self.breakpoints):  # whatever the weight
            return math.inf
        chord = self._chord(x)
        return -math.inf if chord is None else rounded(chord, -math.inf)

    def _chord(self, x: Number) -> Fraction | None:
        proved = [point for point in self.breakpoints if math.isfinite(point.lower)]
        i = bisect_right(proved, x, key=lambda point: point.x)
        if not i or (i == len(proved) and proved[-1].x < x):
            return None
        left, right = proved[i - 1], proved[min(i, len(proved) - 1)]
        width = Fraction(right.x) - Fraction(left.x)
        share = (Fraction(x) - Fraction(left.x)) / width if width else Fraction(0)
        return (1 - share) * Fraction(left.lower) + share * Fraction(right.lower)

    @cached_property
    def gaps(self) -> list[Gap]:
        """The gaps between neighbours of which both curves are known."""
        solved = [point for point in self.breakpoints if point.feasible]
        return [self._gap(a, b) for a, b in pairwise(solved)]

    def _gap(self, a: Breakpoint, b: Breakpoint) -> Gap:
        """Maximise the least of line of a − chord and line of b − chord; all are linear."""
        ends = [(point.x, self._chord(point.x)) for point in (a, b)]
        heights = [
            [self._achieving(point, x) - below for x, below in ends if below is not None]
            for point in (a, b)
        ]
        if any(len(pair) < 2 for pair in heights):
            return Gap(math.inf, float((a.x + b.x) / 2))
        share, band = _greatest_minimum(heights)
        candidates = [float(a.x + s * (b.x - a.x)) for s in map(float, (share, Fraction(1, 2)))]
        wide = b.x - a.x > STEP * self.width
        return _gap(band, next((x for x in candidates if wide and a.x < x < b.x), None))

    def slopes(self, x: Number) -> tuple[float, float]:
        """Enclose the slopes of lines that support V at x from above: from concavity."""
        top, low, high = self.achieved(x), -math.inf, math.inf
        for point in self.breakpoints:
            if top is None or point.x == x or not math.isfinite(point.lower):
                continue
            slope = (Fraction(point.lower) - top) / (Fraction(point.x) - Fraction(x))
            if point.x > x:
                low = max(low, rounded(slope, -math.inf))
            else:
                high = min(high, rounded(slope, math.inf))
        return low, high


class Staircase(Curve):
    """Of a number that relaxes the constraints when it grows, or, ``falling``, tightens them."""

    def __init__(self, breakpoints: Sequence[Breakpoint], axis: Axis) -> None:
        super().__init__(breakpoints, axis)
        self._order = self.breakpoints[:: -1 if axis.falling else 1]  # the tightest first
        self._tops = list(accumulate((point.upper for point in self._order), min))
        self._floors = list(accumulate((point.lower for point in self._order[::-1]), max))[::-1]

    def _tightness(self, x: Number) -> Number:
        return -x if self.axis.falling else x

    def mixture(self, x: Number) -> Mixture | None:
        """Return the point whose release is the best of those allowed at x, twice."""
        key = self._tightness(x)
        allowed = [p for p in self._order if self._tightness(p.x) <= key and p.feasible]
        if not allowed:
            return None
        best = min(allowed, key=lambda point: point.upper)
        return best, best, Fraction(0)

    def outer(self, x: Number) -> float:
        """Return the best proved end of those at or beyond x."""
        key = self._tightness(x)
        first = bisect_left(self._order, key, key=lambda point: self._tightness(point.x))
        return self._floors[first] if first < len(self._order) else -math.inf

    @cached_property
    def gaps(self) -> list[Gap]:
        """The gaps behind the first point achieved."""
        gaps = []
        narrowest = STEP * self.width
        ends = zip(self._order, self._tops, self._floors, strict=True)
        for (a, top, _), (b, _, below) in pairwise(ends):
            if math.isfinite(top):
                low, high = sorted((a.x, b.x))
                split = float(a.x + (b.x - a.x) / 2)
                wide = low < split < high and high - low > narrowest
                gaps.append(_gap(Fraction(top) - Fraction(below), split if wide else None))
        return gaps


def curve_of(breakpoints: Sequence[Breakpoint], axis: Axis) -> Curve:
    """Return the curve that an axis has."""
    kinds: dict[str, type[Curve]] = {MONOTONE: Staircase, CONCAVE: Concave}
    return kinds.get(axis.kind, Convex)(breakpoints, axis)


def rounded(value: Fraction, side: float) -> float:
    """Return a float at or beyond ``value`` on the side of ``±inf``."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    wrong = near < value if side > 0 else near > value
    return math.nextafter(near, side) if math.isfinite(near) and wrong else near


def _greatest_minimum(lines: Sequence[Sequence[Fraction]]) -> tuple[Fraction, Fraction]:
    """Return where in [0, 1] the least of one or two linear functions is greatest, and how great.

    The functions are given by their values at 0 and 1.
    """
    shares = [Fraction(0), Fraction(1)]
    ahead, behind = (lines[-1][end] - lines[0][end] for end in (0, 1))
    if ahead * behind < 0:
        shares.append(ahead / (ahead - behind))
    least = {share: min(a + share * (b - a) for a, b in lines) for share in shares}
    return max(least.items(), key=lambda pair: pair[1])
