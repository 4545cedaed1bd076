r"""The dearest of all corners {1, γ}ⁿ, where they are too many to look at: branch and bound.

What a corner r tells of the letters themselves depends on its mass t = ⟨p, r⟩ alone.  For mutual
information, χ² and the total variation it is a concave M(t), so that for every τ

    M(⟨p, r⟩) − ⟨l, r⟩ ≤ M(τ) − τ M'(τ) + ⟨M'(τ) p − l, r⟩                              (U6)

of which the right side is greatest letter by letter.  At the best τ one letter at most is
undecided: if none is, that corner attains the bound; else corners are split by that letter.  Of
letters that are as probable as each other the cheaper are γ first.  Floats choose the steps, balls
bound what they lead to.  Needs the standard library and python-flint only.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from flint import arb, fmpq

from .measures import ChiSquared, HockeyStick, Measure, MutualInformation
from .work import STEPS

__all__ = ["Corners", "by_mass"]

_ENOUGH = 1e-13  # of what is told at most: no bound need be smaller
_HALVINGS = 60
Logarithm = Callable[[Any], Any]
ByMass = Callable[[Any, Any, Logarithm], tuple[Any, Any]]  # M and M' at t, γ: floats or balls


def by_mass(measure: Measure) -> tuple[arb, ByMass] | None:
    """Return a factor and M of a measure of the letters, where it is concave: M(1) = M(γ) = 0."""
    if isinstance(measure, MutualInformation):
        return measure.nat, _information
    if isinstance(measure, ChiSquared):
        return arb(1), _chi_squared
    if isinstance(measure, HockeyStick) and measure.gamma == 1:
        return arb(1), _total_variation
    return None


def _information(t: Any, high: Any, log: Logarithm) -> tuple[Any, Any]:
    slope = high * log(high) / (high - 1)  # of Σ p r log r, less t log t
    return (t - 1) * slope - t * log(t), slope - log(t) - 1


def _chi_squared(t: Any, high: Any, _: Logarithm) -> tuple[Any, Any]:
    return (t - 1) * (high - t) / t, high / (t * t) - 1


def _total_variation(t: Any, high: Any, _: Logarithm) -> tuple[Any, Any]:
    return (t - 1) * (high - t) / (high - 1), (high + 1 - 2 * t) / (high - 1)


class _Part(NamedTuple):
    """Corners of which some letters are decided; the least is that of the greatest bound."""

    order: tuple[float, int]
    bound: arb
    raised: list[bool | None]  # γ or 1, or undecided
    best: list[bool]
    split: int | None  # the letter to decide next; None where the best attains the bound


class Corners:
    """Corners {1, γ}ⁿ of letters with masses p of sum 1, γ > 1, that tell a weight times M."""

    def __init__(self, masses: Sequence[fmpq], ratio: arb, weight: arb, curve: ByMass) -> None:
        self.masses, self.ratio = [arb(p) for p in masses], ratio
        self.weight, self.curve = weight, curve
        groups: dict[tuple[int, int], list[int]] = {}
        for s, p in enumerate(masses):
            groups.setdefault((int(p.p), int(p.q)), []).append(s)
        self.alike = list(groups.values())

    def told(self, t: arb) -> tuple[arb, arb]:
        """Return what is told at a mass, and its slope."""
        value, slope = self.curve(t, self.ratio, arb.log)
        return self.weight * value, self.weight * slope

    def dearest(self, prices: Sequence[arb]) -> tuple[arb, list[bool] | None]:
        """Return a bound of what any corner tells less its price, and a corner that attains it.

        It is the letters which are γ, or None: the bound holds in any case.
        """
        search = _Search(self, prices)
        enough = _ENOUGH * self.told((self.ratio + 1) / 2)[0].upper()
        parts = [search.part([None] * len(prices))]
        while parts[0].split is not None and search.count < STEPS and parts[0].bound > enough:
            for raised in search.halves(heapq.heappop(parts)):
                heapq.heappush(parts, search.part(raised))
        bound: arb = reduce(arb.max, (part.bound for part in parts))
        return bound, parts[0].best if parts[0].split is None else None


class _Search:
    """Parts of all corners, under one list of prices."""

    def __init__(self, corners: Corners, prices: Sequence[arb]) -> None:
        self.count, self._corners = 0, corners
        self._prices = [price.lower() for price in prices]  # r > 0: nothing costs less
        pairs, self._high = zip(self._prices, corners.masses, strict=True), float(corners.ratio)
        self._steps = [(self._high - 1) * float(p) for p in corners.masses]
        rates = [float(price / p) for price, p in pairs]  # p may be less than any float
        self._until = [self._level(rate) for rate in rates]  # the mass up to which γ pays
        self._order = sorted(range(len(rates)), key=lambda s: -self._until[s])
        # with a letter all cheaper ones of its probability are γ, or all dearer ones are 1
        self._cheaper, self._dearer = dict[int, list[int]](), dict[int, list[int]]()
        for group in corners.alike:
            ranked = sorted(group, key=self._prices.__getitem__)
            for i, s in enumerate(ranked):
                self._cheaper[s], self._dearer[s] = ranked[: i + 1], ranked[i:]

    def _level(self, rate: float) -> float:
        """Return about the t at which M'(t), which falls, is a price of a unit of mass."""
        weight, low, high = float(self._corners.weight), 1.0, self._high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            dear = weight * self._corners.curve(middle, self._high, math.log)[1] <= rate
            low, high = (low, middle) if dear else (middle, high)
        return low

    def part(self, raised: list[bool | None]) -> _Part:
        """Bound what the corners tell of which some letters are decided."""
        self.count += 1
        tau = 1.0 + sum(step for step, up in zip(self._steps, raised, strict=True) if up)
        best, split = [bool(up) for up in raised], None
        for s in self._order:
            if raised[s] is None:
                if self._until[s] <= tau:
                    break  # and so it is of all that follow
                if self._until[s] < tau + self._steps[s]:
                    tau, split = self._until[s], s
                    break
                tau, best[s] = tau + self._steps[s], True
        corners = self._corners
        value, slope = corners.told(arb(tau))
        bound = value - arb(tau) * slope
        for p, price, up in zip(corners.masses, self._prices, raised, strict=True):
            left = slope * p - price
            above = left * corners.ratio
            bound += left.max(above) if up is None else above if up else left
        return _Part((-float(bound), self.count), bound, raised, best, split)

    def halves(self, part: _Part) -> Iterator[list[bool | None]]:
        """Yield the corners where the letter is γ, and those where it is 1."""
        assert part.split is not None
        for value, decided in (
            (True, self._cheaper[part.split]),
            (False, self._dearer[part.split]),
        ):
            raised = list(part.raised)
            for s in decided:
                raised[s] = value
            yield raised
