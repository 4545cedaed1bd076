"""Optima that a formula gives: what formulations propose in place of a solver."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb, ctx, fmpq

from cvxprivacy.exact import rational
from cvxprivacy.model.covariances import entropy
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.matrices import PRECISIONS
from cvxprivacy.programs.covariance import CovarianceDual, ErrorCovariance

__all__ = ["entropy_excess", "scalar_optimum", "water_level"]


def water_level(
    offsets: Sequence[Fraction], caps: Sequence[Fraction], total: Fraction
) -> Fraction | None:
    """Return v with Σ clip(v − offset, 0, cap) = total, exactly; None if no level reaches it."""
    if total >= sum(caps):
        return None
    steps = sorted(
        [(o, 1) for o in offsets] + [(o + c, -1) for o, c in zip(offsets, caps, strict=True)]
    )
    level, slope, poured = steps[0][0], 0, Fraction(0)
    for place, change in steps:
        if slope and poured + slope * (place - level) >= total:
            break
        poured += slope * (place - level)
        level, slope = place, slope + change
    return level + (total - poured) / slope


def scalar_optimum(
    source: GaussianSource, scale: Fraction, budget: Fraction
) -> tuple[ErrorCovariance, CovarianceDual] | None:
    """Return Σ = D / c and its multipliers, exact, for one W and one X ≠ W with 0 < D < c σ_X².

    Rebollo-Monedero et al. 2010, eqs. (7) and (8); None of any other source or budget.
    """
    if len(source.w) != 1 or len(source.x) != 1 or source.w == source.x:
        return None
    (i,), (j,), law = source.w, source.x, source.exact
    if not 0 < budget < scale * law[j][j]:
        return None
    error, b = budget / scale, law[i][j] / law[j][j]
    posterior = 1 / (law[i][i] - b * law[i][j] + b * b * error)
    one = [[Fraction(1)]]
    return ErrorCovariance(one, [[error]]), CovarianceDual(
        {"budget": b * b * posterior / 2 / scale},
        {"W": (one, [[posterior]])},
        {"": (one, [[Fraction(0)]])},
    )


def entropy_excess(
    source: GaussianSource, given: float | Fraction | None, units: str
) -> tuple[Fraction, Fraction]:
    """Return what an h(W) is more than that of Gaussian W, and how far that may be off."""
    if given is None:
        return Fraction(0), Fraction(0)
    with ctx.workprec(PRECISIONS[0]):
        gaussian = entropy(source.law(source.w, source.w), units)
        value = arb(fmpq(*rational(given).as_integer_ratio())) - gaussian
        return _rational(value.mid()), _rational(value.rad())


def _rational(value: arb) -> Fraction:
    """Return the number that a ball of radius 0 is."""
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
