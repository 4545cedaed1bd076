"""A price: a derivative of the optimum, with the ends that are proved of it."""

from __future__ import annotations

import math
from typing import Literal

from cvxprivacy.results.enclosure import Enclosure

__all__ = ["NEGLIGIBLE", "SHARP", "Price", "useful"]

SHARP = 2e-4  # share within which ends are, where five digits are printed
NEGLIGIBLE = 1e-9  # of a nat, below which differences of an optimum are those of proofs
_USEFUL = 0.01

Kind = Literal["two-sided", "one-sided", "not determined", "not proved"]


class Price(Enclosure):
    """d optimum / d (a number that was typed), with the ends that are proved of it.

    The optimum is convex in the bound of a constraint, so that chords to releases that other
    bounds allow enclose its slopes.  As a float it is what the multipliers say, or the middle
    where that is not between the proved ends.

    Attributes
    ----------
    lower, upper : float
        Proved: the left and the right derivative are both within; either end may be infinite.
    kind : {"two-sided", "one-sided", "not determined", "not proved"}
        ``two-sided``: the ends are within 1 % of each other, so that it is the derivative, or both
        one-sided ones, to that accuracy; or next to 0, as by a millionth of what the optimum falls
        by on average.  ``one-sided``:
        nothing is feasible with the least tightening, which costs ∞; ``lower`` and ``upper``
        enclose the other derivative.  ``not determined``: the ends are farther apart.  ``not
        proved``: what the multipliers say of a number that is no bound (t, ε, ℓ, k), or in a
        program that is too large; of small programs only where mean slopes to numbers nearby say
        the same to 1 %, else it is not determined.

    Examples
    --------
    Of the next hundredth of distortion, where R(D) = 1 − h(0.2 + 0.6 D):

    >>> import math
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve()
    >>> price = solution.prices["budget"]
    >>> price.lower <= 0.6 * math.log2(0.32 / 0.68) <= price.upper, price.kind
    (True, 'two-sided')
    """

    kind: Kind
    multiplier: float

    def __new__(cls, multiplier: float, lower: float, upper: float, kind: Kind) -> Price:
        number = multiplier
        if not lower <= multiplier <= upper:  # as it is, where the multipliers are wrong
            bounded = math.isfinite(lower) and math.isfinite(upper)
            number = (lower + upper) / 2 if bounded else min(max(multiplier, lower), upper)
        price = float.__new__(cls, number + 0.0)
        price.multiplier, price.lower, price.upper, price.kind = multiplier, lower, upper, kind
        return price

    @property
    def determined(self) -> bool:
        """Whether the number may be used: it is proved to within 1 %, or infinite on one side."""
        return self.kind in ("two-sided", "one-sided")

    @property
    def number(self) -> float | None:
        """The price as a document may state it: None where it is not determined."""
        return None if self.kind == "not determined" else float(self)

    @property
    def words(self) -> str:
        """How it is printed: never a number that is not proved without saying so."""
        if self.kind == "two-sided":
            if self.lower <= 0 <= self.upper:
                off = max(-self.lower, self.upper)
                return f"+0 (within {off:.0e})" if off else "+0"
            near = self.upper - self.lower <= SHARP * abs(self)
            return f"{self:+.5g}" if near else f"{self:+.3g}"
        if self.kind == "one-sided":
            other = f"{self.upper:+.3g}" if self.lower < 0 else f"{self.lower:+.3g}"
            most = "at most" if self.lower < 0 else "at least"
            more = f"with more room {most} {other}, nothing is feasible with less"
            return f"{self:+.5g} (one-sided: {more})"
        if self.kind == "not proved":
            return f"{self:+.5g} (by the multipliers, not proved)"
        if math.isinf(self.lower) and math.isinf(self.upper):
            return "not determined"
        return f"not determined, in [{self.lower:.3g}, {self.upper:.3g}]"

    def __repr__(self) -> str:
        return self.words

    __str__ = __repr__

    def __getnewargs__(self) -> tuple[float, float, float, Kind]:  # type: ignore[override]
        return self.multiplier, self.lower, self.upper, self.kind


def useful(lower: float, upper: float, unit: float, share: float = _USEFUL) -> bool:
    """Tell whether ends determine a price: within 1 %, or next to 0 in its ``unit``."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return False
    if lower <= 0 <= upper:
        return upper - lower <= 1e-6 * unit
    return upper - lower <= share * min(abs(lower), abs(upper))
