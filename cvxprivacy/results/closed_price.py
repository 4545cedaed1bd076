"""The price of the one number of a closed form, from certificates of the numbers next to it.

The optimum V is convex in what is poured, and falls.  With proved ends L ≤ V ≤ U at t and at t ± h

    (L(t) − U(t − h))/h  ≤  V'(t−)  ≤  V'(t+)  ≤  (U(t + h) − L(t))/h,      V'(t+) ≤ 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb

from cvxprivacy.model.information import nat
from cvxprivacy.results.price import Kind, Price, useful
from cvxprivacy_verifier.balls import ceil, exactly, floor

__all__ = ["ClosedFormPrice"]

_LEAST, _MOST = Fraction(1, 2**40), Fraction(1, 2**10)  # shares of the number
_SMALL = Fraction(1, 2**30)  # beyond a budget of 0


class ClosedFormPrice:
    """What a closed form says of its price, and what is proved of it.

    Parameters
    ----------
    problem : Problem
        That was solved.
    name : str
        Of its number.
    slope : float
        V' as the closed form has it.
    certificate : Certificate
        Of V(t).
    most : int, optional
        The greatest number that may be typed, at which V = 0.
    """

    def __init__(
        self, problem: Any, name: str, slope: float, certificate: Any, most: int | None = None
    ) -> None:
        self.problem, self.name, self.slope = problem, name, slope
        self.number: Fraction = certificate.program.budget
        self.lower, self.upper, self.most = certificate.lower, certificate.upper, most

    def by_multipliers(self) -> dict[str, float]:
        """Return what the closed form says."""
        return {self.name: self.slope}

    def proved(self) -> dict[str, Price]:
        """Return the price with the ends that are proved of it."""
        t, step = self.number, self._step
        high = 0.0
        if self.upper > 0:
            more = step if self.most is None else min(step, self.most - t)
            high = min(ceil(_slope(self.lower, self._ends(t + more)[1], more)), 0.0)
        if not t:
            return {self.name: Price(self.slope, -math.inf, high, "one-sided")}
        low = min(floor(_slope(self._ends(t - step)[1], self.lower, step)), high)
        kind: Kind = "two-sided" if useful(low, high, self._unit(low)) else "not determined"
        return {self.name: Price(self.slope, low, high, kind)}

    def _unit(self, low: float) -> float:
        """Return what a price is next to 0 by: its mean from t/2 to t, at most a nat per t."""
        size = float(self.number)  # 0 of a number beyond floats: then nothing is next to 0
        if not (size and low < 0):
            return 0.0
        most = max(self._ends(self.number / 2)[1] - self.lower, 0.0)
        return min(nat(self.problem.units), 2 * most) / size

    @property
    def _step(self) -> Fraction:
        """h, at which what the gap and what the curvature add to the width are alike."""
        if not self.number:
            return _SMALL
        gap, fall = self.upper - self.lower, -self.slope * float(self.number)
        share = Fraction(math.sqrt(gap / fall)) if 0 < gap < fall < math.inf else Fraction(0)
        return self.number * min(max(share, _LEAST), _MOST)

    def _ends(self, number: Fraction) -> tuple[float, float]:
        """Return what the closed form proves of V at another number."""
        certificate = self.problem.at(**{self.name: number})._closed_form("default")
        return certificate.lower, certificate.upper


def _slope(start: float, end: float, step: Fraction) -> arb:
    """Return (end − start)/h, which may be infinite where little is proved."""
    if not math.isfinite(end - start):
        return arb.pos_inf() if end > start else arb.neg_inf()
    return arb((exactly(end) - exactly(start)) / exactly(step))
