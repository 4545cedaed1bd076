r"""Both ends of reverse water-filling of a covariance, from axes that are nearly its eigenvectors.

    minimise  f(Σ) = ½ log det Γ − ½ log det Σ   s.t.  0 ≼ Σ ≼ Γ,  tr Σ ≤ D

of a rational Γ, which is proved positive definite, and D > 0.  For any square matrix V let
K = VᵀΓV and G = VᵀV, in balls.

*Lemma.*  Let A be symmetric with diagonal a > 0, F = a^(−½) A a^(−½) − I, which has a diagonal of
zeros, and φ < 1 its greatest sum of absolute values of a row.  The eigenvalues of F are within
[−φ, φ] and add up to 0, and f − f²/2(1 − φ)² ≤ log(1 + f) ≤ f there, so that A ≻ 0 and

    Σ log a_i − |F|²/2(1 − φ)² ≤ log det A ≤ Σ log a_i,      |F|² = Σ F_ij².

K must be so, which makes V regular and Γ ≻ 0.

*Upper end.*  Σ = Γ − V diag(r) Vᵀ with r ≥ 0 is at most Γ; A = VᵀΣV = K − G diag(r) G must be as in
the lemma, so that Σ ≻ 0; tr Σ = tr Γ − Σ r_i G_ii ≤ D; and f(Σ) = ½ (log det K − log det A).

*Lower end.*  Let y > 0, μ ≥ 0, Y = V diag(y) Vᵀ ≻ 0, g the greatest sum of absolute values of a row
of G and p_i = (y_i/2 − μ/g)⁺.  Since V diag(y/2 − p) Vᵀ ≼ (μ/g) VVᵀ ≼ μ I, P = V diag(p) Vᵀ makes

    f(Σ) ≥ ½ (log det Γ + log det Y + n − tr YΣ) + μ (tr Σ − D) ≥ ½ (log det K + Σ log y_i + n)
           − tr PΓ − μ D,      tr PΓ = Σ p_i K_ii.

And f ≥ 0.  The work is five products of n × n matrices in balls.  The lemma is (G38) of
``docs/theory/covariance.md``, the ends are (G39) and (G40).  Needs the standard library and
python-flint only.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import flint
from flint import arb, arb_mat

from .balls import PRECISION, UnprovableError, exactly, number, total
from .hamming_proof import in_units, information_unit, nonnegative, scale
from .matrices import rational

__all__ = ["SpectralProof"]


def log_det(matrix: arb_mat) -> arb:
    """Return log det by the lemma; NaN unless it proves the matrix positive definite."""
    rows = matrix.tolist()
    diagonal = [row[i] for i, row in enumerate(rows)]
    if not all(a > 0 for a in diagonal):
        return arb.nan()
    roots = [1 / a.sqrt() for a in diagonal]
    phi, square = arb(0), arb(0)  # φ and |F|²
    for i, row in enumerate(rows):
        scaled = [abs(x) * root for x, root in zip(row, roots, strict=True)]
        scaled[i] = arb(0)  # F has no diagonal
        phi = phi.max(total(scaled) * roots[i])
        square += total(x * x for x in scaled) / diagonal[i]
    if not phi < 1:
        return arb.nan()
    below = square / (2 * (1 - phi) ** 2)
    return total(a.log() for a in diagonal) - below.union(arb(0))  # (G38)


class SpectralProof:
    """The exact program behind ``SpectralProgram.to_dict()``, and the ends it proves."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        flint.ctx.prec = PRECISION
        self.units, self.n = information_unit(program), len(program["covariance"])
        exact = rational(program["covariance"])
        if exact.ncols() != self.n or exact != exact.transpose():
            raise UnprovableError("the covariance is not symmetric")
        self.gamma = arb_mat(exact)
        self.trace = total(self.gamma[i, i] for i in range(self.n))
        self.budget = number(program["budget"])
        if self.budget <= 0:
            raise UnprovableError("the budget is not positive")
        self._last: tuple[Any, Any] = None, None

    def unit(self, upper: float) -> float:
        """Return the size by which a gap is judged: a nat of information."""
        return scale(self.units)

    def along(self, axes: Any) -> tuple[arb_mat, arb_mat]:
        """Return K and G of axes, the columns of V."""
        exact = rational(axes)
        if (exact.nrows(), exact.ncols()) != (self.n, self.n):
            raise UnprovableError("axes of another shape")
        if self._last[0] != exact:  # which mostly are the same for both ends
            v = arb_mat(exact)
            across = v.transpose()
            self._last = exact, (across * self.gamma * v, across * v)
        congruent: tuple[arb_mat, arb_mat] = self._last[1]
        return congruent

    def numbers(self, values: Any) -> list[Fraction]:
        """Return n numbers ≥ 0."""
        if not isinstance(values, list) or len(values) != self.n:
            raise UnprovableError("not a number for each axis")
        numbers = [number(value) for value in values]
        if min(numbers) < 0:
            raise UnprovableError("a negative number")
        return numbers

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return the bound that axes, precisions y and a price μ prove, in the program's units."""
        flint.ctx.prec = PRECISION
        k, g = self.along(dual["axes"])
        y, price = self.numbers(dual["precisions"]), number(dual["price"])
        if not dual.get("objective", 1) or min(y) == 0 or price < 0:
            return arb(0)
        widest, mu = arb(0), arb(exactly(price))
        for row in g.tolist():  # the greatest sum of a row, at least the greatest eigenvalue
            widest = widest.max(total(map(abs, row)))
        shared = mu / widest  # μ/g, which μ I allows along every axis
        bound = (log_det(k) + self.n) / 2 - mu * arb(exactly(self.budget))
        for i, value in enumerate(y):  # (G40), axis by axis: ½ log y_i − p_i K_ii
            precision = arb(exactly(value))
            bound += precision.log() / 2 - (precision / 2 - shared).max(arb(0)) * k[i, i]
        bound = in_units(bound, self.units)
        return bound if bound > 0 else arb(0)  # f ≥ 0; NaN proves no more

    def upper(self, primal: Mapping[str, Any]) -> SpectralEvaluation:
        """Evaluate Γ − V diag(r) Vᵀ: ``axes`` V and ``removed`` r."""
        flint.ctx.prec = PRECISION
        k, g = self.along(primal["axes"])
        return SpectralEvaluation(self, k, g, self.numbers(primal["removed"]))


class SpectralEvaluation:
    """An error covariance: whether it is one within the budget, and what it is worth."""

    def __init__(
        self, proof: SpectralProof, k: arb_mat, g: arb_mat, removed: list[Fraction]
    ) -> None:
        n, r = proof.n, [arb(exactly(value)) for value in removed]
        scaled = arb_mat([[x * r[j] for j, x in enumerate(row)] for row in g.tolist()])
        before, after = log_det(k), log_det(k - scaled * g)  # of VᵀΓV and of A = VᵀΣV
        left = proof.trace - total(scaled[i, i] for i in range(n))  # tr Σ = tr Γ − Σ r_i G_ii
        self.broken = []
        if not after.is_finite() or not before.is_finite():
            self.broken.append("0 ≼ Σ")
        if not left <= arb(exactly(proof.budget)):
            self.broken.append("budget")
        self.feasible = not self.broken
        value = (before - after) / 2 if any(removed) else arb(0)  # (G39)
        self.objective = nonnegative(in_units(value, proof.units))
        self.terms = {"risk": self.objective, "distortion": left}
