r"""Closed forms of covariance programs: water poured into boxes, and over them.

.. math:: \max_x \prod_i (1 + λ_i x_i) \quad\text{s.t.}\quad 0 ≤ x_i ≤ y_i, \; \sum_i x_i ≤ t

has x_i = clip(v − 1/λ_i, 0, y_i) with one level v for all (Rebollo-Monedero et al. 2010,
Lemma 4).  With 1/λ_i = 0 it is reverse water-filling, D_i = min(θ, σ_i²), the Gaussian
rate–distortion function.  Σ x_i is piecewise linear in v, so that v is found exactly; primal and
multipliers are rational, and the same certificate proves them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.checks import array, number
from cvxprivacy.errors import InputError
from cvxprivacy.formulations.gaussian_base import CovarianceProblem
from cvxprivacy.gaussian import GaussianSource, rational
from cvxprivacy.information import nat
from cvxprivacy.programs import CovarianceDual, ErrorCovariance, Minimize, Row, Term
from cvxprivacy.release import GaussianRelease

__all__ = ["BoxWaterFilling", "ReverseWaterFilling", "closed_gaussian_bound", "water_level"]


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
            return level + (total - poured) / slope
        poured += slope * (place - level)
        level, slope = place, slope + change
    return level


class _Filling(CovarianceProblem):
    """Independent coordinates of variances ``caps``: W_i = X_i + noise of variance ``offsets``."""

    def __init__(
        self,
        offsets: Sequence[Fraction],
        caps: Sequence[Fraction],
        total: Fraction,
        units: str,
    ) -> None:
        self.offsets, self.caps_of, self.total = list(offsets), list(caps), total
        size = len(self.caps_of)
        noisy = any(self.offsets)
        law = [[Fraction(0)] * (size * (1 + noisy)) for _ in range(size * (1 + noisy))]
        for i, (offset, cap) in enumerate(zip(self.offsets, self.caps_of, strict=True)):
            law[i][i] = cap
            if noisy:
                law[size + i][size + i] = cap + offset
                law[i][size + i] = law[size + i][i] = cap
        places = list(range(size))
        hidden = [size + i for i in places] if noisy else places
        super().__init__(GaussianSource(law, sensitive=hidden, key=places), units=units)
        self.level = water_level(self.offsets, self.caps_of, total)

    @property
    def allocation(self) -> list[Fraction]:
        """x_i, exactly."""
        if self.level is None:
            return list(self.caps_of)
        pairs = zip(self.offsets, self.caps_of, strict=True)
        return [min(max(self.level - offset, Fraction(0)), cap) for offset, cap in pairs]

    def objective(self) -> Term:
        return Minimize(self.risk)

    def subject_to(self) -> Mapping[str, Row]:
        return {"budget": Term("distortion", cost=self.cost, latex=r"\mathrm{tr}\,\Sigma")
                <= self.total}  # fmt: skip

    def proposal(self) -> tuple[ErrorCovariance, CovarianceDual]:
        """Return diag(x), λ = 1/2v, and the parts of the multiplier of Σ ≼ Σ_X, all exact."""
        size, x = len(self.caps_of), self.allocation
        price = Fraction(0) if self.level is None else 1 / (2 * self.level)
        identity = _diagonal([Fraction(1)] * size)
        spread = [offset + own for offset, own in zip(self.offsets, x, strict=True)]
        pulls = [1 / (2 * s) if s else Fraction(0) for s in spread]
        posterior = identity, _diagonal([2 * p or Fraction(1) for p in pulls])
        parts = {"": (identity, _diagonal([max(p - price, Fraction(0)) for p in pulls]))}
        dual = CovarianceDual({"budget": price}, {"W": posterior}, parts)
        return ErrorCovariance(identity, _diagonal(x)), dual


class ReverseWaterFilling(_Filling):
    """min ½ Σ log(σ_i²/D_i) s.t. Σ D_i ≤ D, 0 ≤ D_i ≤ σ_i²: D_i = min(θ, σ_i²).

    The rate–distortion function of a Gaussian vector under squared error.

    Parameters
    ----------
    variances : array_like, shape (n,) or (n, n)
        σ_i² > 0, floats or ``Fraction``s; a covariance stands for its eigenvalues.
    budget : float or Fraction
        D > 0.
    units : {"bits", "nats"}

    Attributes
    ----------
    level : Fraction or None
        θ; None where D covers all variances.
    allocation : list of Fraction
        D_i.
    axes : ndarray, shape (n, n)
        Eigenvectors of a covariance, as columns; the identity for variances.  ``level`` and
        ``allocation`` are along them, in increasing order of σ_i² then; the solution's
        ``error_covariance`` and ``release`` are in the coordinates given.
    """

    def __init__(self, variances: Any, budget: float | Fraction, *, units: str = "bits") -> None:
        remedy = "pass variances > 0, or a positive definite covariance"
        given = array(variances, "variances", remedy, axes=(1, 2), negative=np.ndim(variances) == 2)
        self.axes: np.ndarray = np.eye(given.shape[0])
        exact = list(variances)
        if given.ndim == 2:
            if given.shape[0] != given.shape[1] or not np.allclose(given, given.T, rtol=1e-12):
                raise InputError("variances", f"shape {given.shape}, or asymmetric", remedy)
            exact, self.axes = np.linalg.eigh(given)  # type: ignore[assignment]
        for i, value in enumerate(exact):
            if not value > 0:
                raise InputError("variances", f"{value!r}", remedy, where=i, value=value)
        number(budget, "budget", zero=False)
        caps = [rational(v) for v in exact]
        super().__init__([Fraction(0)] * len(caps), caps, rational(budget), units)

    def _expanded(self, sigma: np.ndarray) -> np.ndarray:
        return self.axes @ sigma @ self.axes.T

    def _release(self, sigma: np.ndarray) -> GaussianRelease:
        """Return the release in the coordinates of the covariance given."""
        names, size = self.source.names, len(sigma)
        return GaussianRelease(
            self._expanded(sigma),
            covariance=self._expanded(np.diag([float(cap) for cap in self.caps_of])),
            mean=np.zeros(size),
            mean_out=np.zeros(size),
            given=0,
            expansion=np.eye(size),
            inputs=names,
            outputs=names,
        )


class BoxWaterFilling(_Filling):
    """max Π (1 + λ_i x_i) s.t. 0 ≤ x_i ≤ y_i, Σ x_i ≤ t.

    Solved as the covariance program of W_i = X_i + noise of variance 1/λ_i, Var X_i = y_i: its
    value is ½ Σ log((1 + λ_i y_i)/(1 + λ_i x_i)).

    Parameters
    ----------
    gains, caps : array_like, shape (n,)
        λ_i > 0 and y_i > 0, floats or ``Fraction``s.
    total : float or Fraction
        t > 0.
    units : {"bits", "nats"}

    Attributes
    ----------
    level : Fraction or None
        v; None where t covers all caps.
    allocation : list of Fraction
        x_i.
    log_product : float
        log Π (1 + λ_i x_i), in ``units``.
    """

    def __init__(
        self, gains: Any, caps: Any, total: float | Fraction, *, units: str = "bits"
    ) -> None:
        remedy = "pass numbers > 0, as many gains as caps"
        for argument, values in (("gains", gains), ("caps", caps)):
            found = array(values, argument, remedy, axes=(1,))
            if (found == 0).any() or len(found) != len(gains):
                raise InputError(argument, f"{list(values)!r}", remedy)
        number(total, "total", zero=False)
        self.gains = [rational(v) for v in gains]
        offsets = [1 / gain for gain in self.gains]
        super().__init__(offsets, [rational(v) for v in caps], rational(total), units)

    @property
    def log_product(self) -> float:
        pairs = zip(self.gains, self.allocation, strict=True)
        return math.fsum(math.log1p(float(g * x)) for g, x in pairs) * nat(self.units)


def closed_gaussian_bound(source: GaussianSource, budget: float, *, units: str = "bits") -> float:
    """Return a lower bound of the QGLB in closed form.

    With S = Σ_W|X, BᵀS⁻¹B = VΛVᵀ of rank r and x the box water-filling of gains λ_i and caps
    (VᵀΣ_X V)_ii, i ≤ r, it is ½ log det Σ_W − ½ log det S − ½ Σ log(1 + λ_i x_i); equal to the
    QGLB where VᵀΣ_X V is diagonal, and where D < λ_min(Σ_X), as the constraint Σ ≼ Σ_X is then
    idle (Rebollo-Monedero et al. 2010, Propositions 5 and 6).

    Parameters
    ----------
    source : GaussianSource
        With Σ_W|X positive definite.
    budget : float
        D > 0.
    """
    number(budget, "budget", zero=False)
    x = [source.x[i] for i in source.basis]
    if len(x) < len(source.x):
        remedy = "leave out key variables that others determine"
        raise InputError("source", "a singular Σ_X", remedy)
    cross, own = source.block(source.w, x), source.block(x, x)
    b = np.linalg.solve(own, cross.T).T
    s = source.block(source.w, source.w) - b @ cross.T
    if math.isinf(source.information()) or not np.linalg.eigvalsh(s)[0] > 0:
        raise InputError("source", "Σ_W|X is singular", "pass a W that X does not determine")
    values, vectors = np.linalg.eigh(b.T @ np.linalg.solve(s, b))
    rank = min(len(source.w), len(x))
    gains, axes = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    keep = gains > 1e-14 * gains.max() if rank and gains.max() > 0 else np.zeros(rank, bool)
    before = np.linalg.slogdet(source.block(source.w, source.w))[1] - np.linalg.slogdet(s)[1]
    gained = 0.0
    if keep.any():
        caps = np.einsum("ij,ik,kj->j", axes, own, axes)[keep]
        gained = BoxWaterFilling(gains[keep], caps, budget, units="nats").log_product
    return float(before - gained) / 2 * nat(units)


def _diagonal(values: Sequence[Fraction]) -> list[list[Fraction]]:
    size = len(values)
    return [[values[i] if i == j else Fraction(0) for j in range(size)] for i in range(size)]
