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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from flint import arb_mat

from cvxprivacy.exact import Exact, FloatArray, floats as exact_floats, written
from cvxprivacy.frozen import FrozenFields, frozen, owned
from cvxprivacy.model.information import nat
from cvxprivacy.model.matrices import block, identity, rationals, rounded
from cvxprivacy.programs.expression import Constraint, Expression

__all__ = ["CovarianceDual", "CovarianceProgram", "ErrorCovariance", "GaussianView"]


@dataclass(frozen=True)
class GaussianView:
    """Variables A, and whether information about them counts from Cov(A) or Cov(A | Z)."""

    of: tuple[int, ...]
    reference: Literal["marginal", "conditional"] = "marginal"

    def to_dict(self) -> dict[str, Any]:
        return {"of": list(self.of), "reference": self.reference}


@dataclass(frozen=True, eq=False)
class CovarianceProgram(FrozenFields):
    """A covariance program (see the module's docstring) as plain data.

    Attributes
    ----------
    covariance : sequence of sequences of float or Fraction
        Γ, exact and symmetric.
    encoded, given : tuple of int
        V and Z among its variables.
    views : mapping of str to GaussianView
        Each is part of V, or has nothing of it.
    objective : Expression
    constraints : mapping of str to Constraint
        Inequalities.
    caps : mapping of str to (n, n) array
        Further bounds Σ ≼ M, exact.
    terms : mapping of str to Expression
        Quantities that are reported with the solution.
    units : {"bits", "nats"}
    statement : str
        The program in one line, for people; no proof reads it.
    """

    covariance: Sequence[Sequence[float | Fraction]]
    encoded: tuple[int, ...]
    given: tuple[int, ...]
    views: Mapping[str, GaussianView]
    objective: Expression
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    caps: Mapping[str, Exact] = field(default_factory=dict)
    terms: Mapping[str, Expression] = field(default_factory=dict)
    units: str = "bits"
    statement: str = ""

    @property
    def n(self) -> int:
        return len(self.encoded)

    def in_nats(self, term: Expression) -> float:
        """Return what a unit of an expression is in nats, if it has information."""
        return 1.0 / nat(self.units) if term.weights else 1.0

    def _conditional(self, a: Sequence[int], b: Sequence[int]) -> Any:
        """Return Cov(A, B | Z), exactly or in balls."""
        gamma, z = self.covariance, self.given
        marginal = block(gamma, a, b)
        if not z:
            return marginal
        inner = arb_mat(block(gamma, z, z)).solve(arb_mat(block(gamma, z, b)))
        return arb_mat(marginal) - arb_mat(block(gamma, a, z)) * inner

    @cached_property
    def above(self) -> FloatArray:
        """Σ̄ in floats."""
        return owned(rounded(lambda: self._conditional(self.encoded, self.encoded)))

    @cached_property
    def derived(self) -> Mapping[str, tuple[FloatArray, FloatArray]]:
        """S and B of each view in floats, derived where no digit is lost."""
        pairs, v = {}, self.encoded
        for name, view in self.views.items():
            of = view.of

            def spread(of: Sequence[int] = of) -> Any:
                return arb_mat(self._conditional(v, v)).solve(arb_mat(self._conditional(v, of)))

            def residual(of: Sequence[int] = of) -> Any:
                across = arb_mat(self._conditional(of, v))
                return arb_mat(self._conditional(of, of)) - across * spread(of)

            if set(of) <= set(v):
                b = np.array([[float(i == j) for j in v] for i in of])
                pairs[name] = np.zeros((len(of), len(of))), b
            else:
                least = min(float(self.covariance[i][i]) for i in of)
                most = max(float(self.covariance[i][i]) for i in v)
                pairs[name] = rounded(residual, least), rounded(spread, math.sqrt(least / most)).T
        return frozen(pairs)

    def spread(self, view: str, sigma: FloatArray) -> FloatArray:
        """Return S + BΣBᵀ."""
        s, b = self.derived[view]
        x = s + b @ sigma @ b.T
        return (x + x.T) / 2

    def reference(self, view: str) -> float:
        """Return ½ log det R_A, in nats."""
        of = list(self.views[view].of)
        covariance = np.array(self.covariance, float)[np.ix_(of, of)]
        if self.views[view].reference == "conditional":
            covariance = rounded(lambda: self._conditional(of, of))
        return float(np.linalg.slogdet(covariance)[1]) / 2

    def value(self, expression: Expression, sigma: FloatArray) -> float:
        """Return an expression at Σ, in the program's units."""
        value = float(expression.constant)
        if expression.costs is not None:
            value += float((expression.costs * sigma).sum())
        for view, weight in expression.weights.items():
            value += float(weight) * self.information(view, sigma) * nat(self.units)
        return value

    def information(self, view: str, sigma: FloatArray) -> float:
        """Return Φ in nats."""
        return self.reference(view) - float(np.linalg.slogdet(self.spread(view, sigma))[1]) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return the program in lists, numbers and strings: what a proof file stores."""
        return {
            "kind": "covariance",
            "units": self.units,
            "covariance": _matrix(self.covariance),
            "encoded": list(self.encoded),
            "given": list(self.given),
            "views": {name: view.to_dict() for name, view in self.views.items()},
            "objective": self.objective.to_dict(),
            "rows": {name: row.to_dict() for name, row in self.constraints.items()},
            "caps": {name: _matrix(cap) for name, cap in self.caps.items()},
            "terms": {name: term.to_dict() for name, term in self.terms.items()},
        }


@dataclass(frozen=True, eq=False)
class ErrorCovariance(FrozenFields):
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
class CovarianceDual(FrozenFields):
    """Untrusted multipliers of a covariance program.

    Attributes
    ----------
    multipliers : mapping of str to float
        λ_j ≥ 0 of each row, of the program in nats.
    posteriors : mapping of str to (root R, middle Y')
        Y = R⁻ᵀ Y' R⁻¹ of each view, at the optimum Cov(A | X̂, Z)⁻¹.
    psd_multipliers : mapping of str to (root L, N)
        P = L⁻ᵀ N L⁻¹ ≽ 0, the multiplier of Σ ≼ Σ̄ under "" and of each cap under its name.
    objective : {1, 0}
    """

    multipliers: Mapping[str, Any]
    posteriors: Mapping[str, tuple[Any, Any]]
    psd_multipliers: Mapping[str, tuple[Any, Any]]
    objective: int = 1

    def gradient(self, program: CovarianceProgram) -> FloatArray:
        """Return G = C_0 + Σ_j λ_j C_j − ½ Σ_k ω_k BᵀYB, of the program in nats, in floats."""
        gradient: FloatArray = np.zeros((program.n, program.n))
        for term, weight in self._weighted(program):
            if term.costs is not None:
                gradient = gradient + weight * program.in_nats(term) * term.costs
        for view, (omega, y) in self._posteriors(program).items():
            _, b = program.derived[view]
            gradient = gradient - omega / 2 * b.T @ y @ b
        return (gradient + gradient.T) / 2

    def residuals(self, program: CovarianceProgram, sigma: FloatArray) -> dict[str, float]:
        """Return complementarity and stationarity, in floats; they add up to the gap.

        Stationarity is Σ_k ω_k KL of Gaussians of covariances S + BΣBᵀ and Y⁻¹, complementarity
        ⟨P, Σ̄ − Σ⟩ + ⟨P + G, Σ⟩ + Σ_j λ_j (b_j − f_j).
        """
        stationarity = 0.0
        for view, (omega, y) in self._posteriors(program).items():
            x = program.spread(view, sigma)
            kl = float(np.trace(y @ x)) - len(x) - np.linalg.slogdet(y @ x)[1]
            stationarity += omega / 2 * kl
        complementarity = float((self.gradient(program) * sigma).sum())
        for name, p in self.matrices().items():
            above = exact_floats(program.caps[name]) if name else program.above
            complementarity += float((p * above).sum())
        for name, row in program.constraints.items():
            slack = float(row.bounds(1)) - program.value(row.expression, sigma)
            slack *= program.in_nats(row.expression)
            complementarity += float(self.multipliers.get(name, 0.0)) * slack
        size = 1.0 / program.in_nats(program.objective)
        return {
            "complementarity": complementarity * size,
            "stationarity": float(stationarity * size),
        }

    def matrices(self) -> dict[str, FloatArray]:
        """Return P of each bound, under "" that of Σ ≼ Σ̄."""
        return {name: _unfolded(*factors) for name, factors in self.psd_multipliers.items()}

    def _weighted(self, program: CovarianceProgram) -> list[tuple[Expression, float]]:
        rows = program.constraints.items()
        weighted = [(row.expression, float(self.multipliers.get(name, 0.0))) for name, row in rows]
        return [(program.objective, float(bool(self.objective))), *weighted]

    def _posteriors(self, program: CovarianceProgram) -> dict[str, tuple[float, FloatArray]]:
        """Return the weight and Y of each view that has any."""
        omega = dict.fromkeys(program.views, 0.0)
        for term, weight in self._weighted(program):
            for view, beta in term.weights.items():
                omega[view] += weight * float(beta)
        return {view: (omega[view], _unfolded(*f)) for view, f in self.posteriors.items()}

    def to_dict(self) -> dict[str, Any]:
        def factors(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
            return {
                name: {"root": _matrix(root), "middle": _matrix(middle)}
                for name, (root, middle) in pairs.items()
            }

        return {
            "multipliers": {k: written(x) for k, x in self.multipliers.items()},
            "posteriors": factors(self.posteriors),
            "parts": factors(self.psd_multipliers),
            "objective": self.objective,
        }


def _matrix(rows: Any) -> list[list[float | str]]:
    """Return rows of exact numbers as JSON can hold them."""
    return [
        [x if type(x) is float and math.isfinite(x) else written(x) for x in row]
        for row in (rows.tolist() if isinstance(rows, np.ndarray) else rows)
    ]


def _unfolded(root: Any, middle: Any) -> FloatArray:
    """Return L⁻ᵀ M L⁻¹."""

    def folded() -> Any:
        inverse = arb_mat(rationals(root)).solve(arb_mat(identity(len(root))))
        return inverse.transpose() * arb_mat(rationals(middle)) * inverse

    matrix = rounded(folded)
    return (matrix + matrix.T) / 2
