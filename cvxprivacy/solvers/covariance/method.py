"""An interior-point method for covariance programs, which uses their structure.

In whitened coordinates 0 ≼ M ≼ I the barrier −μ (log det M + log det (I − M)) has a diagonal
Hessian in the eigenbasis of M, so that a Newton step costs a small dense system, one unknown for
each pair of variables of a view, where a general cone solver factorises one for each pair of
entries of M.  At the central point of μ the multipliers are explicit, with a gap of
(2n + rows) μ:  λ_j = μ / σ_j, σ_j the slack of row j, and Y_k = X_k⁻¹.

    (diag h + K Kᵀ) svec(dM) = −svec(∇)                           one Newton step, (G19)

Equations (G14) to (G24) are derived in ``docs/theory/covariance.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.programs.expression import Expression
from cvxprivacy.settings import CovariancePath
from cvxprivacy.solvers.covariance.whitened import Whitened

__all__ = ["Iterate", "central_path", "entries", "step_size"]


Factors = dict[str, FloatArray]  # F_k of each view, F Fᵀ = T'ᵀ Y' T', the gradient of −2 Φ


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point of the path, strictly within the constraints, and the last centre before it.

    Attributes
    ----------
    number : int
    whitened, centre : (n, n) arrays
    gap : float
        That of the centre: on the way to the next one there is no better proof.
    """

    path: _Path
    number: int
    whitened: FloatArray
    centre: FloatArray
    mu: float

    @property
    def gap(self) -> float:
        return self.mu * self.path.pairs

    def multipliers(self) -> dict[str, float]:
        """Return those of the rows at the centre, of the program in nats."""
        return self.path.multipliers(self.centre, self.mu)


def entries(n: int) -> int:
    """Return how many different entries a symmetric matrix has."""
    return n * (n + 1) // 2


def step_size(white: Whitened) -> int:
    """Return how many numbers a Newton step works on: √h⁻¹ K of (G19)."""
    n, rows = white.program.n, len(white.program.constraints)
    pairs = sum(entries(min(len(t), n)) for _, _, t in white.views.values())
    return entries(n) * (pairs + rows)


def central_path(white: Whitened, start: FloatArray, gap: float) -> Iterator[Iterate]:
    """Yield the points of the path from a strictly feasible M until the gap is as small as asked.

    Parameters
    ----------
    white : Whitened
        A program without caps.
    start : (n, n) array
        Strictly between 0 and I, and strictly within every row.
    gap : float
        In nats, or in the unit of an objective without information.
    """
    path, number = _Path(white), 0
    newest, mu = start, 1.0  # of the size of the objective, which is in nats
    centre, last = (newest, mu), gap / path.pairs  # (G17)
    while True:
        for whitened in path.centred(newest, mu):
            yield Iterate(path, number, whitened, *centre)
            newest, number = whitened, number + 1
        centre = newest, mu
        yield Iterate(path, number, newest, *centre)
        number += 1
        smaller = max(mu * CovariancePath.current().shrink, last)
        if not smaller < mu:
            return
        mu = smaller


@dataclass(frozen=True, eq=False)
class _Point:
    """The barrier function at M, to first order.

    Attributes
    ----------
    values, basis : arrays
        m and U of M = U diag(m) Uᵀ.
    slacks : dict of str to float
        σ_j.
    omega : dict of str to float
        ω_k at λ = μ / σ.
    factors : dict of str to array
        F_k.
    gradient : (n, n) array
        ∇ of the barrier function.
    """

    values: FloatArray
    basis: FloatArray
    slacks: dict[str, float]
    omega: dict[str, float]
    factors: Factors
    gradient: FloatArray

    def in_eigenbasis(self) -> Factors:
        """Return Uᵀ F_k."""
        return {view: self.basis.T @ factor for view, factor in self.factors.items()}


class _Path:
    def __init__(self, white: Whitened) -> None:
        self.white, self.settings, program = white, CovariancePath.current(), white.program
        self.n, self.objective = program.n, program.objective
        self.pairs = 2 * program.n + len(program.constraints)
        self.upper = np.triu_indices(self.n)
        self.weight = np.where(self.upper[0] == self.upper[1], 1.0, np.sqrt(2.0))  # of svec
        self.terms = {name: row.expression for name, row in program.constraints.items()}
        both = {"": self.objective, **self.terms}
        self.costs = {name: white.cost(term) / white.unit(term) for name, term in both.items()}
        self.bounds = {
            name: float(row.bounds(1)) / white.unit(row.expression)
            for name, row in program.constraints.items()
        }

    def centred(self, whitened: FloatArray, mu: float) -> Iterator[FloatArray]:
        """Yield M ever nearer the minimiser of (G14), the last as near as floats allow."""
        previous = np.inf
        for _ in range(self.settings.steps):
            point = self._evaluated(whitened, mu)
            if point is None:
                raise np.linalg.LinAlgError("no point strictly within the constraints")
            dM, decrement, longest = self._newton(point, mu)
            stalled = decrement < self.settings.nearly_centred * mu and decrement > previous / 2
            if decrement < self.settings.centred * mu or stalled:
                return
            previous = decrement
            trial = self._moved(whitened, dM, decrement, longest, mu)
            if trial is None:
                return
            whitened = trial
            yield whitened

    def multipliers(self, whitened: FloatArray, mu: float) -> dict[str, float]:
        """Return λ that make M stationary (G24); μ / σ has lost the digits that σ has."""
        if not self.terms:
            return {}
        values, basis = np.linalg.eigh(whitened)
        beyond = 1 - values
        scale = np.sqrt(values * beyond)
        factors = {view: basis.T @ factor for view, factor in self._factors(whitened).items()}

        def scaled(name: str, term: Expression) -> FloatArray:
            return self._svec(self._slope(name, term, basis, factors) * np.outer(scale, scale))

        jacobian = np.array([scaled(name, term) for name, term in self.terms.items()]).T
        rhs_dual = -scaled("", self.objective) - self._svec(np.diag(mu * (values - beyond)))
        # λ σ = μ tells apart rows whose gradients are parallel
        slacks = np.diag(list(self._slacks(whitened).values()))
        rhs_pair = np.full(len(self.terms), mu)
        system, rhs = np.vstack([jacobian, slacks]), np.append(rhs_dual, rhs_pair)
        prices = np.linalg.lstsq(system, rhs, rcond=None)[0]
        return dict(zip(self.terms, np.maximum(prices, 0.0).tolist(), strict=True))

    # ---- the barrier function ------------------------------------------------------------

    def _evaluated(self, whitened: FloatArray, mu: float) -> _Point | None:
        """Return the barrier function's gradient at M and what it is made of, None outside."""
        slacks = self._slacks(whitened)
        values, basis = np.linalg.eigh(whitened)
        beyond = 1 - values
        if not all(s > 0 for s in slacks.values()) or values[0] <= 0 or beyond[-1] <= 0:
            return None
        omega = {view: float(w) for view, w in self.objective.weights.items()}
        # (G15), term by term: C'_0 + μ (I − M)⁻¹ − μ M⁻¹ …
        gradient = self.costs[""] + (basis * (mu / beyond - mu / values)) @ basis.T
        for name, term in self.terms.items():  # … + Σ λ_j C'_j, λ_j = μ / σ_j …
            gradient = gradient + mu / slacks[name] * self.costs[name]
            for view, beta in term.weights.items():
                omega[view] = omega.get(view, 0.0) + mu / slacks[name] * float(beta)
        factors = self._factors(whitened)
        for view, weight in omega.items():  # … − ½ Σ ω_k F_k F_kᵀ
            gradient = gradient - weight / 2 * factors[view] @ factors[view].T
        return _Point(values, basis, slacks, omega, factors, (gradient + gradient.T) / 2)

    def _slacks(self, whitened: FloatArray) -> dict[str, float]:
        """Return σ_j = b_j − f_j(M), in nats."""
        return {
            name: self.bounds[name] - self.white.value(term, whitened) / self.white.unit(term)
            for name, term in self.terms.items()
        }

    def _slope(
        self, name: str, term: Expression, basis: FloatArray, factors: Factors
    ) -> FloatArray:
        """Return the gradient of a term in a basis, from the factors of its views there."""
        slope = basis.T @ self.costs[name] @ basis
        for view, beta in term.weights.items():
            slope = slope - float(beta) / 2 * factors[view] @ factors[view].T  # (G16)
        return slope

    def _factors(self, whitened: FloatArray) -> Factors:
        """Return F of every view, F Fᵀ = T'ᵀ Y' T' and Y' the inverse of X'."""
        factors = {}
        for view, (_, _, t) in self.white.views.items():
            values, vectors = np.linalg.eigh(self.white.spread(view, whitened))
            factor = t.T @ (vectors / np.sqrt(np.maximum(values, TINY)))
            if factor.shape[1] > self.n:  # the same product from fewer columns
                left, sizes, _ = np.linalg.svd(factor, full_matrices=False)
                factor = left * sizes
            factors[view] = factor
        return factors

    # ---- a Newton step -------------------------------------------------------------------

    def _newton(self, point: _Point, mu: float) -> tuple[FloatArray, float, float]:
        """Return dM, its decrement, and the longest multiple of it within 0 and I."""
        root, columns = self._hessian(point, mu)
        rhs = -self._svec(point.basis.T @ point.gradient @ point.basis) / root
        z = _solved(columns, rhs)
        decrement = float(rhs @ z)  # (G21)
        rotated = self._smat(z / root)  # Uᵀ dM U
        return point.basis @ rotated @ point.basis.T, decrement, _longest(rotated, point.values)

    def _hessian(self, point: _Point, mu: float) -> tuple[FloatArray, FloatArray]:
        """Return √h and Q = diag(√h)⁻¹ K of the Hessian diag h + K Kᵀ in the eigenbasis, (G19)."""
        values, beyond = point.values, 1 - point.values
        h = mu * (1 / np.outer(values, values) + 1 / np.outer(beyond, beyond))
        factors = point.in_eigenbasis()
        columns = []  # of K
        for view, weight in point.omega.items():
            columns.append(np.sqrt(weight / 2) * self._pairs(factors[view]))
        for name, term in self.terms.items():
            slope = self._slope(name, term, point.basis, factors)
            columns.append((np.sqrt(mu) / point.slacks[name] * self._svec(slope))[:, None])
        root = np.sqrt(h[self.upper])
        scaled = np.hstack(columns) / root[:, None] if columns else np.zeros((len(root), 0))
        if not np.isfinite(scaled).all():
            raise np.linalg.LinAlgError("derivatives beyond floats")
        return root, scaled

    def _moved(
        self, whitened: FloatArray, dM: FloatArray, decrement: float, longest: float, mu: float
    ) -> FloatArray | None:
        """Return M + t dM, t halved until (G23) holds; None if it never does.

        Slopes keep their digits where the function's own values have lost theirs.
        """
        t, most = min(1.0, self.settings.boundary * longest), decrement * self.settings.descent
        while t > self.settings.shortest:
            trial = whitened + t * dM
            trial = (trial + trial.T) / 2
            point = self._evaluated(trial, mu)
            if point is not None and float((point.gradient * dM).sum()) <= most:
                return trial
            t /= 2
        return None

    # ---- symmetric matrices as vectors ---------------------------------------------------

    def _svec(self, matrix: FloatArray) -> FloatArray:
        """Return svec, with ⟨A, B⟩ = svec(A)ᵀ svec(B): entries off the diagonal times √2."""
        return matrix[self.upper] * self.weight

    def _smat(self, vector: FloatArray) -> FloatArray:
        """Return the symmetric matrix of svec(A)."""
        matrix = np.zeros((self.n, self.n))
        matrix[self.upper] = vector / self.weight
        return matrix + matrix.T - np.diag(np.diag(matrix))

    def _pairs(self, factor: FloatArray) -> FloatArray:
        """Return the columns svec(F E Fᵀ), E an orthonormal basis of the symmetric matrices."""
        a, b = np.triu_indices(factor.shape[1])
        i, j = self.upper
        half = np.where(a == b, 0.5, np.sqrt(0.5))  # E has norm 1
        products = factor[i][:, a] * factor[j][:, b] + factor[i][:, b] * factor[j][:, a]
        return products * half * self.weight[:, None]


def _solved(columns: FloatArray, rhs: FloatArray) -> FloatArray:
    """Return z with (I + Q Qᵀ) z = rhs, in the smaller of two ways, (G20)."""
    size, rank = columns.shape
    if rank < size:
        inner = cho_factor(np.eye(rank) + columns.T @ columns)
        return rhs - columns @ cho_solve(inner, columns.T @ rhs)
    return cho_solve(cho_factor(np.eye(size) + columns @ columns.T), rhs)


def _longest(rotated: FloatArray, values: FloatArray) -> float:
    """Return the greatest t with 0 ≼ M + t dM ≼ I, from Uᵀ dM U, (G22)."""
    beyond = 1 - values
    down = np.linalg.eigvalsh(rotated / np.sqrt(np.outer(values, values)))[0]
    up = np.linalg.eigvalsh(rotated / np.sqrt(np.outer(beyond, beyond)))[-1]
    return min(1 / max(-down, TINY), 1 / max(up, TINY))
