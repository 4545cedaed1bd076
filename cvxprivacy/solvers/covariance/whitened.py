"""A covariance program in coordinates in which nothing is ill-conditioned.

    Σ = L M Lᵀ, Σ̄ = L Lᵀ:   0 ≼ M ≼ I,   ⟨C, Σ⟩ = ⟨C', M⟩,   C' = LᵀCL                       (G12)
    X' = R⁻¹(S + BΣBᵀ)R⁻ᵀ = S' + T'M T'ᵀ,   R Rᵀ = Cov(A | Z),   X' = I at M = I              (G13)

At a condition number of 1e12 the plain form returns points that are infeasible by more than any
certificate allows; this one does not.  Derived in ``docs/theory/covariance.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat
from scipy.linalg import eigh

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, array
from cvxprivacy.model.matrices import array as matrix_array, rationals
from cvxprivacy.programs.covariance import CovarianceDual, CovarianceProgram, ErrorCovariance
from cvxprivacy.programs.expression import Expression
from cvxprivacy_verifier.covariance_proof import CovarianceProof
from cvxprivacy_verifier.matrices import cholesky

__all__ = ["Whitened", "floats", "root_of"]

# eigh has eigenvalues to about n 2⁻⁵³ ‖G‖, of which this is 16 times; the bound loses n² 2⁻⁴⁹ ‖G‖
JITTER = 2.0**-49
_LEAST = 2.0**-900  # added to ‖G‖, so that N is positive definite also where G = 0
ABOVE = 1e-9  # share by which the price of no error is raised: eigh has it to fewer digits than N


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
            covariance = proof.covariance(name)  # Cov(A | Z)
            root, root_inverse = root_of(covariance)
            s_white = floats(proof.product(root_inverse, s, root_inverse.transpose()))
            t = floats(proof.product(root_inverse, b, self._root))
            self.views[name] = root, (s_white + s_white.T) / 2, t  # (G13)
            self.reference[name] = float(2 * reference - proof.log_det(covariance))
        self.inverse = inverse
        self.caps = {
            name: floats(proof.product(inverse, cap, inverse.transpose()))
            for name, cap in proof.caps.items()
        }

    def cost(self, term: Expression) -> FloatArray:
        """Return LᵀCL, from the exact cost: it may be far smaller than C and L are."""
        if term.cost is None:
            return np.zeros((self.program.n, self.program.n))
        if id(term) not in self._costs:  # the term is kept, so that its id is not used again
            flint.ctx.prec = self.proof.precision  # of the product, before it is rounded
            cost = self.proof.matrix(term.cost)
            white = floats(self.proof.product(self._root.transpose(), cost, self._root))  # (G12)
            self._costs[id(term)] = term, (white + white.T) / 2
        return self._costs[id(term)][1]

    def unit(self, term: Expression) -> float:
        """Return a nat in the units of a term with information, 1 for others."""
        return self.nat if term.weights else 1.0

    def spread(self, view: str, whitened: FloatArray) -> FloatArray:
        """Return X' = R⁻¹(S + BΣBᵀ)R⁻ᵀ at Σ = L M Lᵀ."""
        _, s, t = self.views[view]
        spread = s + t @ whitened @ t.T  # (G13)
        return (spread + spread.T) / 2

    def value(self, term: Expression, whitened: FloatArray) -> float:
        """Return a term at Σ = L M Lᵀ, in the program's units; ∞ where it has none."""
        value = float(term.constant) + float((self.cost(term) * whitened).sum())
        for view, weight in term.weights.items():
            sign, log_det = np.linalg.slogdet(self.spread(view, whitened))
            if sign <= 0:
                return np.inf
            # (G2): log det R_A − log det X = reference − log det X'
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
        omega, gradient, size = self._linear_part(lam, objective)
        posteriors = {}
        for view, (root, _, t) in self.views.items():
            if omega[view] == 0:
                continue
            y = np.linalg.inv(self.spread(view, whitened))  # Y' = X'⁻¹, the best for M
            y = (y + y.T) / 2
            posteriors[view] = (root, y)
            slope = omega[view] / 2 * (t.T @ y @ t)  # (G6)
            gradient, size = gradient - slope, size + float(np.abs(slope).max())
        # what a solver proposes for a cap may be indefinite by rounding: its positive part
        psd = {
            name: (self.root, self.psd_multiplier(-part, 0.0))
            for name, part in (psd_multipliers or {}).items()
        }
        gradient = (gradient + gradient.T) / 2 + sum((part for _, part in psd.values()), 0.0)
        psd[""] = self.root, self.psd_multiplier(gradient, size)
        return CovarianceDual(lam, posteriors, psd, objective)

    def scaled_dual(
        self, primal: ErrorCovariance, dual: CovarianceDual, share: float
    ) -> CovarianceDual | None:
        """Return a dual in coordinates of Σ itself, with multipliers that are greater by a share.

        Where errors are a billionth of variances, so are the terms of G along them greater than
        others, and what rounding loses of these is all but 0 in coordinates in which Σ is I.  The
        share pays for what it loses there; None where there are no such coordinates.
        """
        proof, size = self.proof, self.program.n
        flint.ctx.prec = proof.precision
        root, middle = proof.factors(primal.to_dict(), size)
        sigma = proof.product(root, middle, root.transpose())
        roots: dict[str, Any] = {"": _near_root(sigma)}
        for view in dual.posteriors:
            s, b, _ = proof.views[view]
            roots[view] = _near_root(s + proof.product(b, sigma, b.transpose()))
        if any(each is None for each in roots.values()):
            return None
        factor = roots.pop("")
        scaled = replace(
            dual,
            multipliers={name: float(v) * (1 + share) for name, v in dual.multipliers.items()},
            posteriors={view: (each, np.eye(len(each))) for view, each in roots.items()},
            psd_multipliers={**dual.psd_multipliers, "": (factor, np.zeros((size, size)))},
        )
        if (minorant := proof.minorant(scaled.to_dict())) is None:
            return None
        exact = proof.matrix(factor)
        gradient = floats(proof.product(exact.transpose(), minorant[1], exact))
        values, vectors = np.linalg.eigh((gradient + gradient.T) / 2)
        short = np.maximum(-values, 0.0) * (1 + share)  # N = (−G)₊ has a share more, too
        part = rationals(vectors * np.sqrt(short))
        product = matrix_array(part * part.transpose())  # exactly, as it is singular
        psd = {**scaled.psd_multipliers, "": (factor, product)}
        return replace(scaled, psd_multipliers=psd)

    def _linear_part(
        self, lam: Mapping[str, float], objective: int
    ) -> tuple[dict[str, float], FloatArray, float]:
        """Return ω, and C'_0 + Σ λ_j C'_j with the size of its terms, (G6)."""
        gradient, size = np.zeros((self.program.n, self.program.n)), 0.0
        omega = dict.fromkeys(self.views, 0.0)
        terms = [(self.program.objective, float(objective))]
        terms += [(row.expression, lam[name]) for name, row in self.program.constraints.items()]
        for term, weight in terms:
            slope = weight * self.cost(term) / self.unit(term)
            gradient, size = gradient + slope, size + float(np.abs(slope).max())
            for view, beta in term.weights.items():
                omega[view] += weight * float(beta)
        return omega, gradient, size

    def last_price(self, name: str) -> float:
        """Return the least λ of a linear row under which Σ = 0 is stationary, (G30)."""
        nothing = np.zeros((self.program.n, self.program.n))
        slope = nothing
        for view, weight in self.program.objective.weights.items():
            _, _, t = self.views[view]
            y = np.linalg.pinv(self.spread(view, nothing))
            slope = slope + float(weight) / 2 * (t.T @ y @ t)
        cost = self.cost(self.program.constraints[name].expression)
        least = float(np.linalg.eigvalsh(cost)[0])
        if least <= 0:
            return 0.0
        return float(eigh(slope, cost, eigvals_only=True)[-1]) * (1 + ABOVE)

    def psd_multiplier(self, gradient: FloatArray, size: float) -> FloatArray:
        """Return N = (−G)₊, a little more, so that N and N + G are proved semidefinite.

        ``size`` is that of the terms of G, which may be far above that of their sum.
        """
        values, vectors = np.linalg.eigh(-gradient)
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T  # (G8)
        jitter = JITTER * self.program.n * (size + np.abs(values).max() + _LEAST)
        return (positive + positive.T) / 2 + jitter * np.eye(self.program.n)  # (G25)


# ---- floats near exact matrices -----------------------------------------------------------


# Of the entries of a root.  Floats do up to a condition number of about 2²⁶: there L⁻¹ΣL⁻ᵀ is off
# by 2¹³ units of their last place, 2⁻⁴⁰
_BITS = (53, 128, 512, 2048)
_WHITE = 2.0**-40  # how far L⁻¹ΣL⁻ᵀ may be off I: below every tolerance of a gap


def floats(matrix: Any) -> FloatArray:
    """Return the middles of a matrix of balls or rationals."""
    balls = matrix if isinstance(matrix, arb_mat) else arb_mat(matrix)
    return np.array([[float(x) for x in row] for row in balls.tolist()])


def root_of(matrix: Any) -> tuple[Exact, Any]:
    """Return a lower triangular L with L Lᵀ near the matrix, exactly, and its exact inverse.

    L⁻¹ (matrix) L⁻ᵀ is off I by about the square root of the condition number in units of the
    last place of L: L is of floats if these do, else of as many bits as it takes.
    """
    rows = cholesky(matrix)
    if rows is None:
        problem = "not proved positive definite"
        raise InputError("covariance", problem, "leave out variables that others determine")
    size = len(rows)
    for bits in _BITS:
        entries = np.array([[Fraction(0)] * size for _ in range(size)], dtype=object)
        for i, row in enumerate(rows):
            entries[i, : i + 1] = [_shortened(x, bits) for x in row]
        ratios = fmpq_mat([[fmpq(*x.as_integer_ratio()) for x in row] for row in entries])
        inverse = (ratios if isinstance(matrix, fmpq_mat) else arb_mat(ratios)).inv()
        white = inverse * matrix * inverse.transpose()  # I if L Lᵀ is the matrix
        if np.abs(floats(white) - np.eye(size)).max() < _WHITE:
            break
    return array(entries), inverse


def _near_root(matrix: Any) -> FloatArray | None:
    """Return floats next to the entries of a Cholesky factor; None unless there is one."""
    rows = cholesky(matrix)
    if rows is None:
        return None
    root = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        root[i, : i + 1] = [float(x) for x in row]
    return root


def _shortened(value: arb, bits: int) -> Fraction:
    """Return the middle of a ball, cut to so many bits."""
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    beyond = max(mantissa.bit_length() - bits, 0)
    return Fraction(mantissa >> beyond) * Fraction(2) ** (exponent + beyond)
