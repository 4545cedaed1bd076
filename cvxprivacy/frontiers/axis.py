"""The axis of a curve: which right-hand side a typed number stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from cvxprivacy.errors import InputError
from cvxprivacy.model.information import nat
from cvxprivacy.verifier.balls import ball, ceil, floor

__all__ = ["CONVEX", "EXPONENTIAL", "MONOTONE", "Axis", "Interval", "Number", "interval"]

CONVEX = "convex"
EXPONENTIAL = "convex in exp"
MONOTONE = "monotone"

Number = float | Fraction
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Axis:
    """How an optimum depends on its number.

    It is convex in the number, a right-hand side; or in its exponential, which is one (of an
    exponent in ``units``); or only monotone, ``falling`` where a greater number is the tighter one.
    ``rows`` are the constraints, or the auxiliary, whose right-hand side it is: several under
    several laws.
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
