r"""The covariance program as plain data: every Gaussian formulation is an instance.

Gaussian variables of joint covariance Γ, conditioned on those given (Z); the error covariance
Σ = Cov(V | X̂, Z) of those encoded (V) is chosen:

.. math::
   \begin{aligned}
   \min_Σ \quad & f_0(Σ) \\
   \text{s.t.} \quad & f_j(Σ) ≤ b_j, \qquad 0 ≼ Σ ≼ Σ̄ = Cov(V | Z), \qquad Σ ≼ M_c
   \end{aligned}

where each f is a sum of ⟨C, Σ⟩ and, with weights ≥ 0, of informations about views A,

.. math:: Φ_A(Σ) = ½ \log\det R_A − ½ \log\det (S + B Σ Bᵀ),

S = Cov(A | V, Z), B = Cov(A, V | Z) Σ̄⁻¹: convex, since log det is concave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.information import nat
from cvxprivacy.programs.channel import Row, Term

__all__ = ["CovarianceDual", "CovarianceProgram", "ErrorCovariance", "GaussianView"]

Factors = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class GaussianView:
    """Variables A, and whether information about them counts from Cov(A) or Cov(A | Z)."""

    of: tuple[int, ...]
    reference: Literal["marginal", "conditional"] = "marginal"

    def to_dict(self) -> dict[str, Any]:
        return {"of": list(self.of), "reference": self.reference}


@dataclass(frozen=True, eq=False)
class CovarianceProgram:
    """A covariance program (see the module's docstring) as plain data.

    Attributes
    ----------
    covariance : sequence of sequences of float or Fraction
        Γ, exact and symmetric.
    encoded, given : tuple of int
        V and Z among its variables.
    views : mapping of str to GaussianView
        Each is part of V, or has nothing of it.
    objective : Term
    rows : mapping of str to Row
        Inequalities.
    caps : mapping of str to (n, n) array
        Further bounds Σ ≼ M.
    terms : mapping of str to Term
        Quantities that are reported with the solution.
    units : {"bits", "nats"}
    """

    covariance: Sequence[Sequence[float | Fraction]]
    encoded: tuple[int, ...]
    given: tuple[int, ...]
    views: Mapping[str, GaussianView]
    objective: Term
    rows: Mapping[str, Row] = field(default_factory=dict)
    caps: Mapping[str, FloatArray] = field(default_factory=dict)
    terms: Mapping[str, Term] = field(default_factory=dict)
    units: str = "bits"

    @property
    def n(self) -> int:
        return len(self.encoded)

    def gradient(self, dual: CovarianceDual) -> FloatArray:
        """Return G = C_0 + Σ_j λ_j C_j − ½ Σ_k ω_k BᵀYB, of the program in nats, in floats."""
        found: FloatArray = np.zeros((self.n, self.n))
        for term, weight in self._weighted(dual):
            if term.costs is not None:
                found = found + weight * self._nats(term) * term.costs
        for view, (omega, y) in self._posteriors(dual).items():
            b = self._spread(view, found)[1]
            found = found - omega / 2 * b.T @ y @ b
        return (found + found.T) / 2

    def residuals(self, sigma: FloatArray, dual: CovarianceDual) -> dict[str, float]:
        """Return complementarity and stationarity, in floats; they add up to the gap.

        Stationarity is Σ_k ω_k KL of Gaussians of covariances S + BΣBᵀ and Y⁻¹, complementarity
        ⟨P, Σ̄ − Σ⟩ + ⟨P + G, Σ⟩ + Σ_j λ_j (b_j − f_j).
        """
        stationarity = 0.0
        for view, (omega, y) in self._posteriors(dual).items():
            x, _ = self._spread(view, sigma)
            kl = float(np.trace(y @ x)) - len(x) - np.linalg.slogdet(y @ x)[1]
            stationarity += omega / 2 * kl
        complementarity = float((self.gradient(dual) * sigma).sum())
        for name, p in self.parts(dual).items():
            above = self._conditional(self.encoded, self.encoded) if not name else self.caps[name]
            complementarity += float((p * above).sum())
        for name, row in self.rows.items():
            value = float(row.term.constant)
            if row.term.costs is not None:
                value += float((row.term.costs * sigma).sum())
            for view, beta in row.term.weights.items():
                value += float(beta) * self._information(view, sigma) * nat(self.units)
            slack = (float(row.bounds(1)) - value) * self._nats(row.term)
            complementarity += float(dual.multipliers.get(name, 0.0)) * slack
        size = 1.0 / self._nats(self.objective)
        return {
            "complementarity": complementarity * size,
            "stationarity": float(stationarity * size),
        }

    def parts(self, dual: CovarianceDual) -> dict[str, FloatArray]:
        """Return P of each bound, under "" that of Σ ≼ Σ̄."""
        return {name: _unfolded(*factors) for name, factors in dual.parts.items()}

    def _nats(self, term: Term) -> float:
        """Return what a unit of a term is in nats, if it has information."""
        return 1.0 / nat(self.units) if term.weights else 1.0

    def _weighted(self, dual: CovarianceDual) -> list[tuple[Term, float]]:
        rows = self.rows.items()
        given = [(row.term, float(dual.multipliers.get(name, 0.0))) for name, row in rows]
        return [(self.objective, float(bool(dual.objective))), *given]

    def _posteriors(self, dual: CovarianceDual) -> dict[str, tuple[float, FloatArray]]:
        """Return the weight and Y of each view that has any."""
        omega = dict.fromkeys(self.views, 0.0)
        for term, weight in self._weighted(dual):
            for view, beta in term.weights.items():
                omega[view] += weight * float(beta)
        return {view: (omega[view], _unfolded(*f)) for view, f in dual.posteriors.items()}

    def _conditional(self, a: Sequence[int], b: Sequence[int]) -> FloatArray:
        """Return Cov(A, B | Z)."""
        gamma, z = np.array(self.covariance, float), list(self.given)
        own = gamma[np.ix_(a, b)]
        if not z:
            return own
        cross = np.linalg.solve(gamma[np.ix_(z, z)], gamma[np.ix_(z, b)])
        return own - gamma[np.ix_(a, z)] @ cross

    def _spread(self, view: str, sigma: FloatArray) -> Factors:
        """Return S + BΣBᵀ and B."""
        of, v = list(self.views[view].of), list(self.encoded)
        if set(of) <= set(v):
            b = np.array([[float(i == j) for j in v] for i in of])
            return b @ sigma @ b.T, b
        b = np.asarray(np.linalg.solve(self._conditional(v, v), self._conditional(v, of)).T, float)
        x = self._conditional(of, of) - b @ self._conditional(v, of) + b @ sigma @ b.T
        return (x + x.T) / 2, b

    def _information(self, view: str, sigma: FloatArray) -> float:
        """Return Φ in nats."""
        of = list(self.views[view].of)
        whole = np.array(self.covariance, float)[np.ix_(of, of)]
        if self.views[view].reference == "conditional":
            whole = self._conditional(of, of)
        spread, _ = self._spread(view, sigma)
        return float(np.linalg.slogdet(whole)[1] - np.linalg.slogdet(spread)[1]) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return the program in lists, numbers and strings: what a proof file stores."""
        return {
            "kind": "covariance",
            "units": self.units,
            "covariance": [[_exactly(x) for x in row] for row in self.covariance],
            "encoded": list(self.encoded),
            "given": list(self.given),
            "views": {name: view.to_dict() for name, view in self.views.items()},
            "objective": self.objective.to_dict(),
            "rows": {name: row.to_dict() for name, row in self.rows.items()},
            "caps": {name: np.asarray(cap, float).tolist() for name, cap in self.caps.items()},
            "terms": {name: term.to_dict() for name, term in self.terms.items()},
        }


@dataclass(frozen=True, eq=False)
class ErrorCovariance:
    """Σ = L M Lᵀ: a lower triangular root and a symmetric middle, exact."""

    root: Any
    middle: Any

    @property
    def matrix(self) -> FloatArray:
        root, middle = (np.array(x, float) for x in (self.root, self.middle))
        sigma = root @ middle @ root.T
        return (sigma + sigma.T) / 2

    def to_dict(self) -> dict[str, Any]:
        return {"root": _matrix(self.root), "middle": _matrix(self.middle)}


@dataclass(frozen=True, eq=False)
class CovarianceDual:
    """Untrusted multipliers of a covariance program.

    Attributes
    ----------
    multipliers : mapping of str to float
        λ_j ≥ 0 of each row, of the program in nats.
    posteriors : mapping of str to (root R, middle Y')
        Y = R⁻ᵀ Y' R⁻¹ of each view, at the optimum Cov(A | X̂, Z)⁻¹.
    parts : mapping of str to (root L, part N)
        P = L⁻ᵀ N L⁻¹ ≽ 0, the multiplier of Σ ≼ Σ̄ under "" and of each cap under its name.
    objective : {1, 0}
    """

    multipliers: Mapping[str, Any]
    posteriors: Mapping[str, tuple[Any, Any]]
    parts: Mapping[str, tuple[Any, Any]]
    objective: int = 1

    def to_dict(self) -> dict[str, Any]:
        def factors(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
            return {
                name: {"root": _matrix(root), "middle": _matrix(middle)}
                for name, (root, middle) in pairs.items()
            }

        return {
            "multipliers": {k: _exactly(x) for k, x in self.multipliers.items()},
            "posteriors": factors(self.posteriors),
            "parts": factors(self.parts),
            "objective": self.objective,
        }


def _exactly(value: Any) -> float | str:
    """Return a number for JSON: a float, or a fraction as text."""
    return str(value) if isinstance(value, Fraction) else float(value)


def _matrix(rows: Any) -> list[list[float | str]]:
    return [[_exactly(x) for x in row] for row in rows]


def _unfolded(root: Any, middle: Any) -> FloatArray:
    """Return L⁻ᵀ M L⁻¹."""
    inverse = np.linalg.inv(np.array(root, float))
    found = inverse.T @ np.array(middle, float) @ inverse
    return (found + found.T) / 2
