r"""Exact sums of many floats, and Σ v log v of many floats in a proved interval.

Only IEEE additions, subtractions, multiplications and divisions are trusted, no logarithm of
NumPy's.  With v = f 2^e, 1/2 ≤ f < 1, and c the middle of one of 2¹² equal intervals of f,

.. math:: \log v = e \log 2 + \log c + \log(1 + r), \qquad r = (f - c)/c, \quad |r| ≤ 2^{-13}.

f − c is exact; log 2 and log c are the floats next to balls; log(1 + r) is its series up to r⁴.
In units of u = 2⁻⁵³ the errors are at most: e log 2, 1.2 |e|; log c, 1/2; the series, 2⁻⁹ (its
rest is below |r|⁵/4.99); two additions, 1.39 (|e| + 1) + 0.01; and the product with v,
0.7 (|e| + 1) times v.  Together they are below 4 (|e| + 1) v, and 2⁻¹⁰²¹ covers underflow.  The
sums are those of (G42) and (G43) in ``docs/theory/covariance.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb, ctx

from cvxprivacy.exact import FloatArray
from cvxprivacy_verifier.balls import ball

__all__ = ["PRECISION", "exact_sum", "rounded_down", "sum_of_v_log_v"]

PRECISION = 128  # of balls, in bits
_STEPS = 2**12  # intervals of the table
_SOME = 2**16  # numbers at a time: their scratch stays in the cache
_LN2 = math.log(2.0)  # its distance from log 2 is tested to be below 2⁻⁵⁴


def rounded_down(value: Fraction) -> float:
    """Return the largest float that is not above a rational."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def exact_sum(values: FloatArray) -> Fraction:
    """Return the sum of finite floats as the rational that it is.

    Each is M 2^e with whole |M| < 2⁵³.  Halves of M are added up for each e, in floats that
    stay whole and below 2⁵³.
    """
    total = Fraction(0)
    for start in range(0, len(values), _SOME):
        mantissa, exponent = np.frexp(values[start : start + _SOME])
        integer = (mantissa * 2.0**53).astype(np.int64)
        least = int(exponent.min())
        place = exponent - least
        # 2¹⁶ halves of at most 27 bits: their sums in floats are below 2⁴³, and exact
        parts = [np.bincount(place, part) for part in (integer >> 27, integer & (2**27 - 1))]
        part = 0
        for high, low in zip(*(np.flip(p).tolist() for p in parts), strict=True):
            part = 2 * part + (int(high) << 27) + int(low)
        total += Fraction(part) * Fraction(2) ** (least - 53)
    return total


def sum_of_v_log_v(values: FloatArray) -> arb:
    """Return a ball that contains Σ v log v of floats 0 < v < 2¹⁰⁰⁰; see the module."""
    table, total, spread = _table(), Fraction(0), 0.0
    for start in range(0, len(values), _SOME):
        v = values[start : start + _SOME]
        f, e = np.frexp(v)
        i = (f * (2.0 * _STEPS)).astype(np.int64)  # floor, _STEPS ≤ i < 2 _STEPS
        c = (i + 0.5) / (2.0 * _STEPS)
        # the products are rounded, which (C21) counts; their sum is exact
        total += exact_sum(v * ((e * _LN2 + table[i - _STEPS]) + _log1p((f - c) / c)))  # (C20)
        spread += float(v @ (np.abs(e) + 1.0))
    radius = 2.0**-51 * (1.0 + 2.0**-20) * spread + len(values) * 2.0**-1021  # (C21), rounded too
    return ball(total) + arb(0, radius)


def _log1p(r: FloatArray) -> FloatArray:
    """Return log(1 + r), |r| ≤ 2⁻¹³, to 2⁻⁶²."""
    return r * (1.0 - r * (0.5 - r * (1.0 / 3.0 - r * 0.25)))


@cache
def _table() -> FloatArray:
    """Return log c of the middle of each interval, to the nearest float."""
    with ctx.workprec(PRECISION):
        middles = (arb(2 * i + 1) / (4 * _STEPS) for i in range(_STEPS, 2 * _STEPS))
        return np.array([float(c.log()) for c in middles])
