r"""A price, and the proof that encloses it by two nearby programs.

Let V(s) be the optimum where a number is s more than what was typed.  If V is convex, a lower bound
L ≤ V(0) and upper bounds U(±h) ≥ V(±h), all proved, enclose its slopes (C17):

.. math:: \frac{L - U(-h)}{h} ≤ V'(0^-) ≤ V'(0^+) ≤ \frac{U(h) - L}{h} .

If V is concave, the same holds of −V.  Whoever proposes the programs is not trusted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

from flint import arb, ctx

from cvxprivacy.model.information import nat
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy_verifier.balls import PRECISION, UnprovableError, ball, ceil, floor

__all__ = [
    "FIVE_DIGITS",
    "NEXT_TO_ZERO",
    "WITHIN",
    "ClosedFormPrice",
    "Price",
    "PriceBounds",
    "is_narrow",
    "price_within",
]

FIVE_DIGITS = 2e-4  # relative distance of the ends, up to which five digits are printed
WITHIN = 0.01  # relative distance of the ends, up to which a price is determined
NEXT_TO_ZERO = 1e-6  # distance of ends around 0, in the price's unit, up to which it is

Kind = Literal["two-sided", "one-sided", "not determined", "not proved"]


class Price(Enclosure):
    """d optimum / d (a number that was typed), with the ends that are proved of it.

    As a float it is what the multipliers say, or the middle of the ends if that is not between
    them.

    Attributes
    ----------
    lower, upper : float
        Proved: the left and the right derivative are both within; either end may be infinite.
    kind : {"two-sided", "one-sided", "not determined", "not proved"}
        ``two-sided``: the ends are within 1 % of each other, or around 0 and within a millionth of
        what the optimum falls by on average.  ``one-sided``: nothing is feasible with the least
        tightening, which costs ∞; the ends enclose the other derivative.  ``not determined``: the
        ends are farther apart, as at a kink.  ``not proved``: what the multipliers say of a number
        in which the optimum need not be convex (t, ε, ℓ, k), or in a program that is too large; in
        a small program only if difference quotients agree to 1 %, else it is not determined.

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
            near = self.upper - self.lower <= FIVE_DIGITS * abs(self)
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


def is_narrow(lower: float, upper: float, unit: float, share: float = WITHIN) -> bool:
    """Return whether ends determine a price: relative to it, or next to 0 in its ``unit``."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return False
    if lower <= 0 <= upper:
        return upper - lower <= NEXT_TO_ZERO * unit
    return upper - lower <= share * min(abs(lower), abs(upper))


def price_within(
    multiplier: float, ends: tuple[float, float], factor: float, unit: float, one_sided: bool
) -> Price:
    """Return the price of a number from ends of V'(s) and ``factor`` = ds / d (number)."""
    low, high = sorted(0.0 if end == 0 else end * factor for end in ends)
    for _ in range(4):  # the factor is a float, and so is the product
        low = math.nextafter(low, -math.inf) if low else low
        high = math.nextafter(high, math.inf) if high else high
    kind: Kind = "one-sided" if one_sided else "not determined"
    if not one_sided and is_narrow(low, high, unit * abs(factor)):
        kind = "two-sided"
    return Price(multiplier, low, high, kind)


class PriceBounds:
    """Proved bounds on V'(0⁻) and V'(0⁺), by (C17).

    Parameters
    ----------
    falls : bool
        Whether V is known not to rise.
    concave : bool
        Whether V is concave; it is convex otherwise.
    """

    def __init__(self, *, falls: bool = False, concave: bool = False) -> None:
        self.concave = concave
        self._sign = -1 if concave else 1  # the bounds kept are those of sign · V, which is convex
        self._here = arb.neg_inf()
        self._left, self._right = arb.neg_inf(), arb(0) if falls else arb.pos_inf()
        self._points: list[tuple[arb, arb]] = []

    @property
    def ends(self) -> tuple[float, float]:
        """A lower bound of both slopes, and an upper bound of both."""
        if self._sign < 0:
            return floor(-self._right), ceil(-self._left)
        return floor(self._left), ceil(self._right)

    def add_here(self, bound: arb | float) -> None:
        """Add a bound of V(0): a lower one, or an upper one where V is concave."""
        with ctx.workprec(PRECISION):
            bound = (self._sign * arb(bound)).lower()
            if bound.is_finite() and bound > self._here:
                self._here = bound
                for point in self._points:
                    self._enclose(*point)

    def add_nearby(self, step: arb | Fraction, bound: arb | float) -> None:
        """Add a bound of V(step): an upper one, or a lower one where V is concave."""
        with ctx.workprec(PRECISION):
            step = step if isinstance(step, arb) else ball(step)
            bound = (self._sign * arb(bound)).upper()
            if step.is_finite() and bound.is_finite():
                self._points.append((step, bound))
                self._enclose(step, bound)

    def add_release(self, proof: Any, rates: Mapping[str, Fraction], primal: Any) -> None:
        """Add the bound of V(room) by a release that needs this room, and breaks nothing else.

        Parameters
        ----------
        proof : ChannelProof or CovarianceProof
            Of the program itself.
        rates : mapping of str to Fraction
            By how much each bound that moves rises per unit of room.
        """
        try:
            evaluation = proof.upper(primal.to_dict())
        except UnprovableError:
            return
        if not set(evaluation.broken) <= rates.keys() <= evaluation.violation.keys():
            return
        room = arb.neg_inf()
        for name, rate in rates.items():
            violation = evaluation.violation[name]
            for excess in violation if isinstance(violation, list) else [violation]:
                # the least room in which the release is feasible, rounded up: V is then no more
                room = room.max((excess / ball(rate)).upper())
        self.add_nearby(room, evaluation.objective)

    def _enclose(self, step: arb, bound: arb) -> None:
        # (L − U(−h)) / h ≤ V'(0⁻) and V'(0⁺) ≤ (U(h) − L) / h
        if step < 0:
            self._left = self._left.max(((self._here - bound) / -step).lower())
        elif step > 0:
            self._right = self._right.min(((bound - self._here) / step).upper())


class ClosedFormPrice:
    """The price of a closed form's one number, in which the optimum is convex and falls.

    Parameters
    ----------
    problem : Problem
        That was solved.
    name : str
        Of its number.
    slope : float
        The derivative by the closed form, which is not trusted.
    certificate : Certificate
        Of the optimum.
    most : int, optional
        The greatest number that may be typed, at which the optimum is 0.
    """

    _SHARES = Fraction(1, 2**40), Fraction(1, 2**10)  # least and greatest h, of the number
    _FIRST = Fraction(1, 2**30)  # h, where the number is 0

    def __init__(
        self, problem: Any, name: str, slope: float, certificate: Any, most: int | None = None
    ) -> None:
        self.problem, self.name, self.slope = problem, name, slope
        self.number: Fraction = certificate.program.budget
        self.lower, self.upper, self.most = certificate.lower, certificate.upper, most

    def by_multipliers(self) -> dict[str, float]:
        """Return what the closed form says, which is not proved."""
        return {self.name: self.slope}

    def proved(self) -> dict[str, Price]:
        """Return the price with its proved ends."""
        number, step, bounds = self.number, self._step, PriceBounds(falls=True)
        bounds.add_here(self.lower)
        if self.upper > 0:  # else V is 0 from here on
            more = step if self.most is None else min(step, self.most - number)
            bounds.add_nearby(more, self._upper_at(number + more))
        if not number:
            return {self.name: Price(self.slope, -math.inf, bounds.ends[1], "one-sided")}
        bounds.add_nearby(-step, self._upper_at(number - step))
        low, high = bounds.ends
        narrow = is_narrow(low, high, self._unit(low) if low <= 0 <= high else 0.0)
        kind: Kind = "two-sided" if narrow else "not determined"
        return {self.name: Price(self.slope, low, high, kind)}

    def _unit(self, low: float) -> float:
        """Return the mean price from half the number to it, at most a nat per number."""
        size = float(self.number)  # 0 of a number beyond floats: then nothing is next to 0
        if not (size and low < 0):
            return 0.0
        most = max(self._upper_at(self.number / 2) - self.lower, 0.0)
        return min(nat(self.problem.units), 2 * most) / size

    @property
    def _step(self) -> Fraction:
        """h, at which the gap and the curvature widen the ends alike (C18)."""
        if not self.number:
            return self._FIRST
        gap, fall = self.upper - self.lower, -self.slope * float(self.number)
        share = Fraction(math.sqrt(gap / fall)) if 0 < gap < fall < math.inf else Fraction(0)
        least, greatest = self._SHARES
        return self.number * min(max(share, least), greatest)

    def _upper_at(self, number: Fraction) -> float:
        """Return the upper end that the closed form proves at another number."""
        certificate = self.problem.at(**{self.name: number})._closed_form("default")
        return float(certificate.upper)
