"""An interior-point method for covariance programs, which uses their structure.

In whitened coordinates 0 ≼ M ≼ I the barrier −μ (log det M + log det (I − M)) has a diagonal
Hessian in the eigenbasis of M, so that a Newton step costs a small dense system, one unknown for
each pair of variables of a view, where a general cone solver factorises one for each pair of
entries of M.  At the central point of μ the multipliers are explicit, with a gap of
(2n + rows) μ:  λ_j = μ / slack_j,  Y = (S + BΣBᵀ)⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.expression import Expression
from cvxprivacy.solvers.covariance.whitened import Whitened

__all__ = ["central_path"]

SHRINK = 0.15  # of μ from one centre to the next
STEPS = 60  # Newton steps per centre, at most

Factors = dict[str, FloatArray]  # F of each view, F Fᵀ the slope of −2 Φ


def central_path(
    white: Whitened, start: FloatArray, gap: float
) -> tuple[FloatArray, dict[str, float]]:
    """Follow the central path from a strictly feasible M until the gap is as small as asked.

    Parameters
    ----------
    white : Whitened
        A program without caps.
    start : (n, n) array
        Strictly between 0 and I, and strictly within every row.
    gap : float
        In nats, or in the unit of an objective without information.

    Returns
    -------
    whitened : (n, n) array
    multipliers : dict of str to float
        Of the program in nats.
    """
    path = _Path(white)
    whitened, mu = start, 1.0
    last = gap / (2 * white.program.n + len(white.program.constraints))
    while True:
        whitened = path.centred(whitened, mu)
        nearer = max(mu * SHRINK, last)
        if not nearer < mu:
            return whitened, path.multipliers(whitened, mu)
        mu = nearer


@dataclass(frozen=True, eq=False)
class _Point:
    """The barrier at M: its eigenvalues and vectors, slacks, weights of views, F, gradient."""

    values: FloatArray
    basis: FloatArray
    slacks: dict[str, float]
    omega: dict[str, float]
    factors: Factors
    gradient: FloatArray


class _Path:
    def __init__(self, white: Whitened) -> None:
        self.white, program = white, white.program
        self.n, self.objective = program.n, program.objective
        self.upper = np.triu_indices(self.n)
        self.weight = np.where(self.upper[0] == self.upper[1], 1.0, np.sqrt(2.0))
        self.terms = {name: row.expression for name, row in program.constraints.items()}
        both = {"": self.objective, **self.terms}
        self.costs = {name: white.cost(term) / white.unit(term) for name, term in both.items()}
        self.bounds = {
            name: float(row.bounds(1)) / white.unit(row.expression)
            for name, row in program.constraints.items()
        }

    def _slope(
        self, name: str, term: Expression, basis: FloatArray, factors: Factors
    ) -> FloatArray:
        """Return the gradient of a term in a basis, from the factors of its views there."""
        slope = basis.T @ self.costs[name] @ basis
        for view, beta in term.weights.items():
            slope = slope - float(beta) / 2 * factors[view] @ factors[view].T
        return slope

    def multipliers(self, whitened: FloatArray, mu: float) -> dict[str, float]:
        """Return λ that make M stationary; μ / slack has lost the digits that the slack has."""
        values, basis = np.linalg.eigh(whitened)
        rest = 1 - values
        size = np.sqrt(values * rest)
        factors = {view: basis.T @ factor for view, factor in self._factors(whitened).items()}

        def pull(name: str, term: Expression) -> FloatArray:
            return self._vector(self._slope(name, term, basis, factors) * np.outer(size, size))

        if not self.terms:
            return {}
        pulls = np.array([pull(name, term) for name, term in self.terms.items()]).T
        right = -pull("", self.objective) - self._vector(np.diag(mu * (values - rest)))
        slacks = np.diag(list(self._slacks(whitened).values()))
        left = np.vstack([pulls, slacks])  # λ slack = μ tells rows apart that pull alike
        right = np.append(right, np.full(len(self.terms), mu))
        prices = np.linalg.lstsq(left, right, rcond=None)[0]
        return dict(zip(self.terms, np.maximum(prices, 0.0).tolist(), strict=True))

    def _slacks(self, whitened: FloatArray) -> dict[str, float]:
        return {
            name: self.bounds[name] - self.white.value(term, whitened) / self.white.unit(term)
            for name, term in self.terms.items()
        }

    def centred(self, whitened: FloatArray, mu: float) -> FloatArray:
        """Return the minimiser of the barrier function, as nearly as floats allow.

        A step is as long as the slope along it stays downhill: slopes keep their digits where
        the function's own values have lost theirs.
        """
        last = np.inf
        for _ in range(STEPS):
            here = self._at(whitened, mu)
            if here is None:
                raise np.linalg.LinAlgError("no point strictly within the constraints")
            step, decrement, longest = self._newton(here, mu)
            if decrement < 1e-12 * mu or (decrement < 1e-3 * mu and decrement > last / 2):
                break
            last, t = decrement, min(1.0, 0.97 * longest)
            while t > 1e-12:
                trial = whitened + t * step
                trial = (trial + trial.T) / 2
                there = self._at(trial, mu)
                if there is not None and float((there.gradient * step).sum()) <= decrement / 4:
                    break
                t /= 2
            else:
                break
            whitened = trial
        return whitened

    def _at(self, whitened: FloatArray, mu: float) -> _Point | None:
        """Return the barrier's derivatives at M, None outside."""
        slacks = self._slacks(whitened)
        values, basis = np.linalg.eigh(whitened)
        rest = 1 - values
        if not all(s > 0 for s in slacks.values()) or values[0] <= 0 or rest[-1] <= 0:
            return None
        omega = {view: float(w) for view, w in self.objective.weights.items()}
        gradient = self.costs[""] + (basis * (mu / rest - mu / values)) @ basis.T
        for name, term in self.terms.items():
            gradient = gradient + mu / slacks[name] * self.costs[name]
            for view, beta in term.weights.items():
                omega[view] = omega.get(view, 0.0) + mu / slacks[name] * float(beta)
        factors = self._factors(whitened)
        for view, weight in omega.items():
            gradient = gradient - weight / 2 * factors[view] @ factors[view].T
        return _Point(values, basis, slacks, omega, factors, (gradient + gradient.T) / 2)

    def _newton(self, here: _Point, mu: float) -> tuple[FloatArray, float, float]:
        """Return the Newton step, its decrement, and the longest multiple of it within 0 and I."""
        values, basis, rest = here.values, here.basis, 1 - here.values
        h = mu * (1 / np.outer(values, values) + 1 / np.outer(rest, rest))
        factors = {view: basis.T @ factor for view, factor in here.factors.items()}
        columns = []
        for view, weight in here.omega.items():
            columns.append(np.sqrt(weight / 2) * self._pairs(factors[view]))
        for name, term in self.terms.items():
            slope = self._slope(name, term, basis, factors)
            columns.append((np.sqrt(mu) / here.slacks[name] * self._vector(slope))[:, None])
        root = np.sqrt(h[self.upper])
        g = self._vector(basis.T @ here.gradient @ basis) / root
        low = np.hstack(columns) / root[:, None] if columns else np.zeros((len(g), 0))
        if not np.isfinite(low).all():
            raise np.linalg.LinAlgError("derivatives beyond floats")
        if low.shape[1] < len(g):
            inner = cho_factor(np.eye(low.shape[1]) + low.T @ low)
            step = -(g - low @ cho_solve(inner, low.T @ g))
        else:
            step = -cho_solve(cho_factor(np.eye(len(g)) + low @ low.T), g)
        decrement = -float(g @ step)
        matrix = np.zeros((self.n, self.n))
        matrix[self.upper] = step / root / self.weight
        matrix = matrix + matrix.T - np.diag(np.diag(matrix))
        down = np.linalg.eigvalsh(matrix / np.sqrt(np.outer(values, values)))[0]
        up = np.linalg.eigvalsh(matrix / np.sqrt(np.outer(rest, rest)))[-1]
        longest = min(1 / max(-down, 1e-300), 1 / max(up, 1e-300))
        return basis @ matrix @ basis.T, decrement, longest

    def _factors(self, whitened: FloatArray) -> Factors:
        """Return F of every view, F Fᵀ = T'ᵀ Y T'."""
        factors = {}
        for view, (_, _, t) in self.white.views.items():
            values, vectors = np.linalg.eigh(self.white.spread(view, whitened))
            factor = t.T @ (vectors / np.sqrt(np.maximum(values, 1e-300)))
            if factor.shape[1] > self.n:  # the same product from fewer columns
                left, sizes, _ = np.linalg.svd(factor, full_matrices=False)
                factor = left * sizes
            factors[view] = factor
        return factors

    def _vector(self, matrix: FloatArray) -> FloatArray:
        return matrix[self.upper] * self.weight

    def _pairs(self, factor: FloatArray) -> FloatArray:
        """Return the columns vec(F B Fᵀ), B an orthonormal basis of the symmetric matrices."""
        a, b = np.triu_indices(factor.shape[1])
        i, j = self.upper
        half = np.where(a == b, 0.5, np.sqrt(0.5))
        products = factor[i][:, a] * factor[j][:, b] + factor[i][:, b] * factor[j][:, a]
        return products * half * self.weight[:, None]
