"""Optima that a formula gives: what formulations propose in place of a solver."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx, fmpq

from cvxprivacy.exact import rational
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.matrices import PRECISIONS, entropy
from cvxprivacy.programs.covariance import CovarianceDual, ErrorCovariance
from cvxprivacy.solvers.water_level import rational_of

__all__ = ["entropy_excess", "scalar_optimum"]


def scalar_optimum(
    source: GaussianSource, scale: Fraction, budget: Fraction
) -> tuple[ErrorCovariance, CovarianceDual] | None:
    """Return Σ = D / c and its multipliers, exact, for one W and one X ≠ W with 0 < D < c σ_X².

    Rebollo-Monedero et al. 2010, eqs. (7) and (8), (G31); None of any other source or budget.
    """
    if len(source.w) != 1 or len(source.x) != 1 or source.w == source.x:
        return None
    (i,), (j,), law = source.w, source.x, source.exact
    if not 0 < budget < scale * law[j][j]:
        return None
    error, b = budget / scale, law[i][j] / law[j][j]
    posterior = 1 / (law[i][i] - b * law[i][j] + b * b * error)  # Y = 1/(S + B²Σ), (G11)
    one = [[Fraction(1)]]
    return ErrorCovariance(one, [[error]]), CovarianceDual(
        {"budget": b * b * posterior / 2 / scale},  # G = λ c − ½ B²Y = 0, (G6)
        {"W": (one, [[posterior]])},
        {"": (one, [[Fraction(0)]])},  # Σ ≤ σ_X² is slack
    )


def entropy_excess(
    source: GaussianSource, entropy_of_w: float | Fraction | None, units: str
) -> tuple[Fraction, Fraction]:
    """Return what an h(W) is more than that of Gaussian W, and how far that may be off."""
    if entropy_of_w is None:
        return Fraction(0), Fraction(0)
    with ctx.workprec(PRECISIONS[0]):
        gaussian = entropy(source.law(source.w, source.w), units)
        excess = arb(fmpq(*rational(entropy_of_w).as_integer_ratio())) - gaussian
        middle, radius = (rational_of(part) for part in (excess.mid(), excess.rad()))
        return Fraction(int(middle.p), int(middle.q)), Fraction(int(radius.p), int(radius.q))
