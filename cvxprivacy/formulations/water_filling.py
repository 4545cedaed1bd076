r"""Closed forms of covariance programs: water poured into boxes, and over them.

.. math:: \max_x \prod_i (1 + λ_i x_i) \quad\text{s.t.}\quad 0 ≤ x_i ≤ y_i, \; \sum_i x_i ≤ t

has x_i = clip(v − 1/λ_i, 0, y_i) with one level v for all (Rebollo-Monedero et al. 2010,
Lemma 4).  With 1/λ_i = 0 it is reverse water-filling, D_i = min(θ, σ_i²), the Gaussian
rate–distortion function.  Σ x_i is piecewise linear in v, so that v is found exactly; primal and
multipliers are rational, and the same certificate proves them.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.certificates.water import boxes_of
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, floats, rational
from cvxprivacy.formulations.filling import FillingProblem, positive
from cvxprivacy.formulations.quadratic_gaussian import QuadraticGaussian
from cvxprivacy.formulations.spectral import DENSE, SpectralFilling
from cvxprivacy.frozen import owned
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.information import nat
from cvxprivacy.model.matrices import array, proved, symmetric
from cvxprivacy.programs.covariance import CovarianceDual
from cvxprivacy.solvers.covariance.whitened import Whitened
from cvxprivacy.solvers.task import UNUSABLE
from cvxprivacy.solvers.water_level import box_level
from cvxprivacy.validation import typed
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import floor

__all__ = ["BoxWaterFilling", "ReverseWaterFilling", "closed_gaussian_bound"]


class ReverseWaterFilling(SpectralFilling):
    """min ½ Σ log(σ_i²/D_i) s.t. Σ D_i ≤ D, 0 ≤ D_i ≤ σ_i²: D_i = min(θ, σ_i²).

    The rate–distortion function of a Gaussian vector under squared error.  Variances take time
    O(n log n) and memory O(n); a covariance one
    eigendecomposition, whose errors are proved to be harmless.

    Parameters
    ----------
    variances : array_like, shape (n,) or (n, n)
        σ_i² > 0, or a covariance, which stands for its eigenvalues; each number as it is typed.
    budget : number
        D > 0.
    units : {"bits", "nats"}
        Of the rate.

    Attributes
    ----------
    level : Fraction or None
        θ, exactly (rounded down where it has more than 2,000 digits); None where D covers all
        variances.  Of a covariance it is that of the eigenvalues in floats, near the truth; the
        program that is certified is that of the covariance itself.
    allocation : list of Fraction
        D_i, likewise.
    axes : ndarray, shape (n, n)
        Eigenvectors of a covariance, as columns; the identity for variances.  ``level`` and
        ``allocation`` are along them, in increasing order of σ_i² then; the solution's
        ``error_covariance`` and ``release`` are in the coordinates given.

    Raises
    ------
    InputError
        For variances that are not positive, or a covariance that is not definite.

    Examples
    --------
    The water covers the variance ¼ and stands at ½ over the others:

    >>> import cvxprivacy as cpv
    >>> problem = cpv.ReverseWaterFilling([4, 1, 0.25], budget=1.25)
    >>> problem.level, problem.allocation
    (Fraction(1, 2), [Fraction(1, 2), Fraction(1, 2), Fraction(1, 4)])

    The rate is ½ log₂ 8 + ½ log₂ 2 + 0 = 2 bits:

    >>> solution = problem.solve()
    >>> solution.status, round(solution.value, 9)
    ('certified', 2.0)

    A hundred thousand take a tenth of a second; what would be a matrix is then its diagonal:

    >>> import numpy as np
    >>> spectrum = 1 / np.arange(1, 100_001) ** 2
    >>> solution = cpv.ReverseWaterFilling(spectrum, budget=0.01).solve(accuracy="high")
    >>> solution.status, round(solution.value, 4), solution.error_covariance.shape
    ('certified', 282.7436, (100000,))
    """

    def __init__(self, variances: Any, budget: Any, *, units: str = "bits") -> None:
        remedy = "pass variances > 0, or a positive definite covariance"
        total = rational(typed(budget, "budget", zero=False))
        if np.ndim(variances) != 2:
            self._pour(None, positive(variances, "variances", remedy), total, units)
            return
        covariance = symmetric(variances, "variances", remedy)
        powers, vectors = np.linalg.eigh(np.array(array(covariance), dtype=float))
        sure = len(powers) > DENSE and powers[0] > 1e-10 * powers[-1]  # then it is proved later
        if not (sure or proved(covariance, "variances", remedy)):
            raise InputError("variances", "a singular covariance", remedy)
        self._covariance, self._vectors = covariance, owned(vectors)
        near = np.maximum(powers, 2.0**-53 * powers[-1])  # what floats make of the least
        self._pour(None, owned(near), total, units)

    def _proposal(self) -> Any:
        return super()._proposal() if self._covariance is None else self._poured

    def _poured(self, white: Whitened) -> tuple[FloatArray, dict[str, float]]:
        """Return M = min(1, θ / κ), κ the eigenvalues of LᵀL, which are those of LLᵀ, and λ."""
        cost = white.cost(white.program.constraints["budget"].expression)
        powers, vectors = np.linalg.eigh(cost)
        powers = np.maximum(powers, 2.0**-53 * powers[-1])
        level = _level(None, powers, self.total)
        if level is None:
            return np.eye(len(powers)), {}
        shares = np.minimum(1.0, float(level) / powers)
        return (vectors * shares) @ vectors.T, {"budget": 1 / (2 * float(level))}


class BoxWaterFilling(FillingProblem):
    """max Π (1 + λ_i x_i) s.t. 0 ≤ x_i ≤ y_i, Σ x_i ≤ t.

    Rebollo-Monedero et al. 2010, Lemma 4.  It is the covariance program of W_i = X_i + noise of
    variance 1/λ_i, Var X_i = y_i: its value is ½ Σ log((1 + λ_i y_i)/(1 + λ_i x_i)), solved and
    proved for each i alone in time O(n log n) and memory O(n).

    Parameters
    ----------
    gains, caps : array_like, shape (n,)
        λ_i > 0 and y_i > 0, each number as it is typed.
    total : number
        t > 0, what is poured.
    units : {"bits", "nats"}
        Of the value and of ``log_product``.

    Attributes
    ----------
    level : Fraction or None
        v, exactly, or rounded down where no proof could hold its digits, with at most 2⁻¹⁰⁰ of t
        left over; the least one where several do; None where t covers all caps.
    allocation : list of Fraction
        x_i.

    Raises
    ------
    InputError
        For numbers that are not positive, or gains and caps of different lengths.

    Examples
    --------
    One unit is poured into boxes of gains 1, 2 and 4.  The first stays dry, as 1/λ_1 = 1 is above
    the level 7/8; the others have v − 1/λ_i:

    >>> import cvxprivacy as cpv
    >>> problem = cpv.BoxWaterFilling([1, 2, 4], [1, 1, 1], total=1)
    >>> problem.level, problem.allocation
    (Fraction(7, 8), [Fraction(0, 1), Fraction(3, 8), Fraction(5, 8)])

    The product is (1 + 2 · 3/8)(1 + 4 · 5/8) = 1.75 · 3.5, and at the caps 2 · 3 · 5:

    >>> round(2**problem.log_product, 6)
    6.125
    >>> from math import log2
    >>> round(problem.solve().value, 6), round(0.5 * log2(30 / 6.125), 6)
    (1.14609, 1.14609)

    At t = 1 one box of two is full and the other dry at all levels from 2 to 4: the last bit of
    water was worth 1/(2 · 2) nats, and the next is worth 1/(2 · 4):

    >>> flat = cpv.BoxWaterFilling([1, 0.25], [1, 1], total=1, units="nats")
    >>> flat.level, flat.solve().prices["total"]
    (Fraction(2, 1), not determined, in [-0.25, -0.125])
    """

    _total = "total"
    _boxes = "x_i", r"\lambda_i^{-1}", "y_i"

    def __init__(self, gains: Any, caps: Any, total: Any, *, units: str = "bits") -> None:
        remedy = "pass numbers > 0, as many gains as caps"
        slopes, sizes = positive(gains, "gains", remedy), positive(caps, "caps", remedy)
        if len(slopes) != len(sizes):
            problem = f"{len(sizes):,} of them, and {len(slopes):,} gains"
            raise InputError("caps", problem, remedy, value=len(sizes))
        self._pour(slopes, sizes, rational(typed(total, "total", zero=False)), units)

    @cached_property
    def gains(self) -> tuple[Fraction, ...]:
        """λ_i."""
        return tuple(1 / offset for offset in self._offsets)

    @property
    def log_product(self) -> float:
        """The logarithm of Π (1 + λ_i x_i), in the problem's units."""
        poured, _, _ = self._poured_floats()
        slopes = floats(self._gains)  # type: ignore[arg-type]  # of boxes there are
        return math.fsum(np.log1p(slopes * poured).tolist()) * nat(self.units)


def closed_gaussian_bound(source: GaussianSource, budget: Any, *, units: str = "bits") -> float:
    """Return a lower bound of the QGLB in closed form, proved and rounded down.

    With S = Σ_W|X, BᵀS⁻¹B = VΛVᵀ of rank r and x the box water-filling of gains λ_i and caps
    (VᵀΣ_X V)_ii, i ≤ r, it is ½ log det Σ_W − ½ log det S − ½ Σ log(1 + λ_i x_i); equal to the
    QGLB where VᵀΣ_X V is diagonal, and where D < λ_min(Σ_X), as the constraint Σ ≼ Σ_X is then
    idle (Rebollo-Monedero et al. 2010, Propositions 5 and 6).

    It is the bound that the multipliers of the box water-filling prove of the QGLB: Y is
    (S + BVxVᵀBᵀ)⁻¹, the price 1/2v, and Vdiag(p)Vᵀ belongs to Σ ≼ Σ_X.  Rounded multipliers
    prove a bound too, a little lower than the closed form.

    Parameters
    ----------
    source : GaussianSource
        With Σ_W|X positive definite.
    budget : number
        D > 0.
    units : {"bits", "nats"}
        Of the bound.

    Returns
    -------
    float
        At most the QGLB at D.

    Raises
    ------
    InputError
        For a singular Σ_X or Σ_W|X, or a budget that is not positive.

    Examples
    --------
    Of one W and one X it is R(D) = −½ ln(1 − ρ²(1 − D)) itself:

    >>> import cvxprivacy as cpv
    >>> source = cpv.GaussianSource.scalar(0.95)
    >>> bound = cpv.closed_gaussian_bound(source, 0.5, units="nats")
    >>> round(bound, 6), bound <= cpv.QuadraticGaussian(source, 0.5, units="nats").solve().upper
    (0.300056, True)
    """
    bound = rational(typed(budget, "budget", zero=False))
    if len(source.basis) < len(source.x):
        remedy = "leave out key variables that others determine"
        raise InputError("source", "a singular Σ_X", remedy)
    if math.isinf(source.information()):
        raise InputError("source", "Σ_W|X is singular", "pass a W that X does not determine")
    program = QuadraticGaussian(source, bound, units=units).program
    white = Whitened(program, verify.proof_of(program.to_dict()))
    least = floor(white.proof.lower(white.dual(np.eye(program.n), {}).to_dict()))
    with suppress(*UNUSABLE):  # beyond floats: then no more is proved than that I ≥ 0
        least = max(least, floor(white.proof.lower(_box_dual(white, bound).to_dict())))
    return least


def _level(gains: FloatArray | None, caps: FloatArray, total: Fraction) -> Fraction | None:
    """Return the water level of boxes that were computed; None if the total covers all caps."""
    if not all(np.isfinite(values).all() for values in (gains, caps) if values is not None):
        raise ValueError("boxes beyond floats")
    return box_level(boxes_of(gains, caps), gains, caps, total)


def _box_dual(white: Whitened, total: Fraction) -> CovarianceDual:
    """Return the multipliers of the box water-filling, as those of the QGLB."""
    root, s, t = white.views["W"]
    # BᵀS⁻¹B = V diag(gains) Vᵀ, and the caps (VᵀΣ_X V)_ii as sums of squares, (G37)
    l_inverse = np.linalg.inv(floats(white.root))
    values, vectors = np.linalg.eigh(l_inverse.T @ t.T @ np.linalg.solve(s, t) @ l_inverse)
    rank = min(len(s), len(t.T))
    gains, axes = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    keep = (gains > 1e-14 * gains.max()) & (gains > 0)
    gains, above = gains[keep], floats(white.root).T @ axes[:, keep]
    caps = (above**2).sum(axis=0)
    level = _level(gains, caps, total)
    price = 0.0 if level is None else float(1 / (2 * level))
    poured = caps if level is None else np.clip(float(level) - 1 / gains, 0.0, caps)
    prices = np.maximum(1 / (2 * (1 / gains + poured)) - price, 0.0)  # of the caps, 0 below them
    images = t @ l_inverse @ axes[:, keep]
    y = np.linalg.inv(s + (images * poured) @ images.T)  # Y' = X'⁻¹ at Σ = V diag(x) Vᵀ, (G11)
    part, cost = (
        (above * prices) @ above.T,
        white.cost(white.program.constraints["budget"].expression),
    )
    slope = t.T @ y @ t / 2
    size = sum(float(np.abs(m).max()) for m in (price * cost, slope, part))
    part = (part + part.T) / 2
    # N = part + (−G − part)₊: rounding, and what Σ ≼ Σ_X costs beyond its diagonal
    remainder = white.psd_multiplier(price * cost - (slope + slope.T) / 2 + part, size)
    return CovarianceDual(
        {"budget": price}, {"W": (root, (y + y.T) / 2)}, {"": (white.root, part + remainder)}
    )
