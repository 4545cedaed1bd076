"""Convex functions f(t), t ≥ 0, that are so by their form: sums of perspectives of powers (P11).

A row (c, a, α, β, γ, δ) is the term c v φ(u/v), u = αt + β, v = γt + δ, with φ(r) = r log r for
a = 1, |r|^a for a > 1, −r^a for 0 < a < 1.  φ is convex, so v φ(u/v) is convex in (u, v) for v > 0,
and both are affine in t.  Nothing else need be known of f: its tangent at any t > 0 is below it.
Needs the standard library and python-flint only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from flint import arb, fmpq

from .balls import UnprovableError, ball, exactly, power, total

__all__ = ["MOST_TERMS", "ConvexFunction"]

MOST_TERMS = 64
_WIDTH = 6
_FEW_TERMS = 4  # that are added up in rationals


class ConvexFunction:
    """f(t) = Σ c v φ(u/v).

    Attributes
    ----------
    at_one, curvature : arb
        f(1), and f''(1) > 0.
    """

    def __init__(self, rows: Any) -> None:
        if not isinstance(rows, list) or not 0 < len(rows) <= MOST_TERMS:
            raise UnprovableError(f"a convex function of no terms, or of over {MOST_TERMS}")
        if any(not isinstance(row, list) or len(row) != _WIDTH for row in rows):
            raise UnprovableError(f"a convex function whose terms have not {_WIDTH} numbers")
        self._exact = [[exactly(x) for x in row] for row in rows]
        if not all(map(_convex, self._exact)):
            raise UnprovableError("a function that is not convex by its form, or not finite at 0")
        self._terms = [_Term([ball(x) for x in row], exact[1])
                       for row, exact in zip(rows, self._exact, strict=True)]  # fmt: skip
        self.at_one = total(term.value(arb(1), arb(1), arb(1)) for term in self._terms)
        self.curvature = total(term.curvature() for term in self._terms)
        if not self.curvature > 0:
            raise UnprovableError("a function that is not curved, by which nothing is leaked")

    def value(self, j: arb, e: arb, most: arb) -> arb:
        """Enclose e f(j/e), its limit where e is 0, for j, e ≥ 0 with j ≤ most e."""
        return total(term.value(j, e, most) for term in self._terms)

    @cached_property
    def rational(self) -> bool:
        """Whether f is a sum of few ratios of polynomials, of low order."""
        few = len(self._exact) <= _FEW_TERMS
        return few and all(row[1] in (2, 3) for row in self._exact)

    def exactly(self, j: fmpq, e: fmpq) -> fmpq:
        """Return e f(j/e), j = 0 where e = 0, of a rational f."""
        value = fmpq(0)
        for c, a, alpha, beta, gamma, delta in self._exact if e else []:  # e = 0: j is 0 too
            u, v = alpha * j + beta * e, gamma * j + delta * e
            value += c * v * (u / v) ** int(a.p)
        return value

    def tangent(self, t: arb) -> tuple[arb, arb]:
        """Return f'(t) and f*(f'(t)) = t f'(t) − f(t), t > 0."""
        slopes, conjugates = zip(*(term.tangent(t) for term in self._terms), strict=True)
        return total(slopes), total(conjugates)


class _Term:
    """c v φ(u/v)."""

    def __init__(self, row: Sequence[arb], order: fmpq) -> None:
        self._c, self._order, self._alpha, self._beta, self._gamma, self._delta = row
        self._entropy, self._square, self._concave = order == 1, order == 2, order < 1
        self._determinant = self._alpha * self._delta - self._gamma * self._beta  # v² (u/v)'

    def value(self, j: arb, e: arb, most: arb) -> arb:
        """Enclose c v φ(u/v), v = γj + δe, for j, e ≥ 0 with j ≤ most e."""
        u, v = self._alpha * j + self._beta * e, self._gamma * j + self._delta * e
        if self._concave:
            return -self._c * power(u, self._order) * power(v, 1 - self._order)
        if v.is_zero():  # an output that is not used; beside, a slope of f that grows for ever
            return v if u.is_zero() else arb.pos_inf()
        # |u/v| ≤ (|α| j + |β| e)/(δ e), which bounds φ where v may be 0
        ratio = (abs(self._alpha) * most + abs(self._beta)) / self._delta
        if self._entropy:
            return self._c * _entropy(u, v, ratio)
        if v > 0:
            u = abs(u) if self._square else u
            return self._c * v * power(u / v, self._order)
        return arb(0).union((self._c * abs(u) * ratio ** (self._order - 1)).upper())

    def tangent(self, t: arb) -> tuple[arb, arb]:
        """Return what the term adds to f'(t), and to t f'(t) − f(t)."""
        v = self._gamma * t + self._delta
        r, turn = (self._alpha * t + self._beta) / v, self._determinant / v
        if self._entropy:
            slope, more = r.log(), arb(1)
        else:  # φ(r)/r and what a slope of φ exceeds it by
            slope = r if self._square else r ** (self._order - 1)
            slope = -slope if self._concave else slope
            more = (self._order - 1) * slope
        conjugate = turn * t * more - self._beta * slope
        return self._c * (self._alpha * slope + turn * more), self._c * conjugate

    def curvature(self) -> arb:
        """Return the second derivative at 1, φ''(r) (u/v)'² v."""
        v = self._gamma + self._delta
        r = (self._alpha + self._beta) / v
        second = 1 / r if self._entropy else abs(self._order * (self._order - 1))
        if not (self._entropy or self._square):
            second *= r ** (self._order - 2)
        return self._c * second * self._determinant**2 / v**3


def _convex(row: Sequence[fmpq]) -> bool:
    """Tell whether a term is convex by its form, and finite at t = 0."""
    c, order, alpha, beta, gamma, delta = row
    # u ≥ 0, and > 0 for t > 0: a square alone is convex on both sides of 0
    argument = order == 2 or (alpha >= 0 and beta >= 0 and alpha + beta > 0)
    return bool(c > 0 and order > 0 and argument and gamma >= 0 and delta > 0)


def _entropy(u: arb, v: arb, ratio: arb) -> arb:
    """Enclose u log(u/v) of numbers ≥ 0, 0 where u is 0, with u ≤ ratio v."""
    if u.is_zero() or (u > 0 and v > 0):
        return u * (u / v).log() if u > 0 else u
    high, top = u.upper().max(arb(0)), v.upper()
    # it falls up to v/e and is at least −v/e: 3 is above e
    least = high * (high / top).log() if high > 0 and high * 3 < v.lower() else -top
    return least.union((high * ratio.log().max(arb(0))).upper()).union(arb(0))
