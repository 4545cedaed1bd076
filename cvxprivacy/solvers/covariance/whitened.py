"""A covariance program in coordinates in which nothing is ill-conditioned.

Σ = L M Lᵀ with Σ̄ = L Lᵀ: 0 ≼ M ≼ I; each view likewise, S' + T'M T'ᵀ = R⁻¹(S + BΣBᵀ)R⁻ᵀ with
R Rᵀ = Cov(A | Z), so that it is I at M = I.  At a condition number of 1e12 the plain form
returns points that are infeasible by more than any certificate allows; this one does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import flint
import numpy as np
from scipy.linalg import eigh

from cvxprivacy.certificates.factors import floats, root_of
from cvxprivacy.exact import Exact, FloatArray
from cvxprivacy.programs.covariance import CovarianceDual, CovarianceProgram
from cvxprivacy.programs.expression import Expression
from cvxprivacy.verifier.covariance_proof import CovarianceProof

__all__ = ["SMALLEST", "Whitened"]

SMALLEST = 1e-300  # in place of 0 where it is divided by: near the least normal float


class Whitened:
    """A covariance program in floats, in coordinates in which nothing is ill-conditioned.

    Attributes
    ----------
    root : (n, n) array
        L, lower triangular and exact.
    views : mapping of str to (R, S', T')
    reference : mapping of str to float
        log det R_A − log det Cov(A | Z), in nats: 0 unless A depends on Z.
    """

    def __init__(self, program: CovarianceProgram, proof: CovarianceProof) -> None:
        self.program, self.proof = program, proof
        self.nat = float(1 / proof.units)
        flint.ctx.prec = proof.precision
        self.root, inverse = root_of(proof.bound)
        self._root = proof.matrix(self.root)
        self._costs: dict[int, tuple[Expression, FloatArray]] = {}
        self.views: dict[str, tuple[Exact, FloatArray, FloatArray]] = {}
        self.reference: dict[str, float] = {}
        for name, (s, b, reference) in proof.views.items():
            whole = proof.whole(name)
            root, own = root_of(whole)
            s_white = floats(proof.product(own, s, own.transpose()))
            spread = floats(proof.product(own, b, self._root))
            self.views[name] = root, (s_white + s_white.T) / 2, spread
            self.reference[name] = float(2 * reference - proof.log_det(whole))
        self.inverse = inverse
        self.caps = {
            name: floats(proof.product(inverse, cap, inverse.transpose()))
            for name, cap in proof.caps.items()
        }

    def cost(self, term: Expression) -> FloatArray:
        """Return LᵀCL, from the exact cost: it may be far smaller than C and L are."""
        if term.cost is None:
            return np.zeros((self.program.n, self.program.n))
        if id(term) not in self._costs:  # the term is kept, so that its id stays its own
            flint.ctx.prec = self.proof.precision
            cost = self.proof.matrix(term.cost)
            white = floats(self.proof.product(self._root.transpose(), cost, self._root))
            self._costs[id(term)] = term, (white + white.T) / 2
        return self._costs[id(term)][1]

    def unit(self, term: Expression) -> float:
        """Return a nat in the units of a term with information, 1 for others."""
        return self.nat if term.weights else 1.0

    def spread(self, view: str, whitened: FloatArray) -> FloatArray:
        """Return R⁻¹(S + BΣBᵀ)R⁻ᵀ at Σ = L M Lᵀ."""
        _, s, t = self.views[view]
        spread = s + t @ whitened @ t.T
        return (spread + spread.T) / 2

    def value(self, term: Expression, whitened: FloatArray) -> float:
        """Return a term at Σ = L M Lᵀ, in the program's units; ∞ where it has none."""
        value = float(term.constant) + float((self.cost(term) * whitened).sum())
        for view, weight in term.weights.items():
            sign, log_det = np.linalg.slogdet(self.spread(view, whitened))
            if sign <= 0:
                return np.inf
            value += float(weight) * self.nat * (self.reference[view] - log_det) / 2
        return value

    def dual(
        self,
        whitened: FloatArray,
        multipliers: Mapping[str, float],
        psd_multipliers: Mapping[str, FloatArray] | None = None,
        objective: int = 1,
    ) -> CovarianceDual:
        """Return multipliers whose posteriors are those of M, and the best P of Σ ≼ Σ̄ for them.

        ``multipliers`` are those of the program in nats, ``psd_multipliers`` those of
        the caps.
        """
        program = self.program
        lam = {name: max(float(multipliers.get(name, 0.0)), 0.0) for name in program.constraints}
        gradient, size = np.zeros((program.n, program.n)), 0.0
        omega = dict.fromkeys(self.views, 0.0)
        terms = [(program.objective, float(objective))]
        terms += [(row.expression, lam[name]) for name, row in program.constraints.items()]
        for term, weight in terms:
            pull = weight * self.cost(term) / self.unit(term)
            gradient, size = gradient + pull, size + float(np.abs(pull).max())
            for view, beta in term.weights.items():
                omega[view] += weight * float(beta)
        posteriors = {}
        for view, (root, _, t) in self.views.items():
            if omega[view] == 0:
                continue
            y = np.linalg.inv(self.spread(view, whitened))
            y = (y + y.T) / 2
            posteriors[view] = (root, y)
            pull = omega[view] / 2 * (t.T @ y @ t)
            gradient, size = gradient - pull, size + float(np.abs(pull).max())
        psd = {
            k: (self.root, self.psd_multiplier(-p, 0.0)) for k, p in (psd_multipliers or {}).items()
        }
        gradient = (gradient + gradient.T) / 2 + sum((p for _, p in psd.values()), 0.0)
        psd[""] = self.root, self.psd_multiplier(gradient, size)
        return CovarianceDual(lam, posteriors, psd, objective)

    def last_price(self, name: str) -> float:
        """Return the least λ of a linear row under which Σ = 0 is stationary."""
        nothing = np.zeros((self.program.n, self.program.n))
        pull = nothing
        for view, weight in self.program.objective.weights.items():
            _, _, t = self.views[view]
            y = np.linalg.pinv(self.spread(view, nothing))
            pull = pull + float(weight) / 2 * (t.T @ y @ t)
        cost = self.cost(self.program.constraints[name].expression)
        least = float(np.linalg.eigvalsh(cost)[0])
        if least <= 0:
            return 0.0
        return float(eigh(pull, cost, eigvals_only=True)[-1]) * (1 + 1e-9)

    def psd_multiplier(self, gradient: FloatArray, size: float) -> FloatArray:
        """Return N = (−G)₊, a little more, so that N and N + G are proved semidefinite.

        ``size`` is that of the terms of G, which may be far above that of their sum.
        """
        values, vectors = np.linalg.eigh(-gradient)
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        jitter = 2.0**-49 * self.program.n * (size + np.abs(values).max() + 2.0**-900)
        return (positive + positive.T) / 2 + jitter * np.eye(self.program.n)
