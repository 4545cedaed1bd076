"""Reverse water-filling of a covariance as plain data; nearly its eigenvectors as proof."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cvxprivacy.exact import Exact, FloatArray, listed
from cvxprivacy.frozen import FrozenFields

__all__ = ["SpectralDual", "SpectralPrimal", "SpectralProgram"]


@dataclass(frozen=True, eq=False)
class SpectralProgram(FrozenFields):
    """min ½ log det Γ − ½ log det Σ s.t. 0 ≼ Σ ≼ Γ, tr Σ ≤ D.

    Attributes
    ----------
    covariance : array of float or Fraction, shape (n, n)
        Γ, symmetric.
    budget : Fraction
        D > 0.
    units : {"bits", "nats"}
    statement : str
        The program in one line, for people; no proof reads it.
    """

    covariance: Exact
    budget: Fraction
    units: str = "bits"
    statement: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the program in lists, numbers and strings: what a proof file stores."""
        return {
            "kind": "spectral",
            "units": self.units,
            "covariance": listed(self.covariance),
            "budget": str(self.budget),
        }


@dataclass(frozen=True, eq=False)
class SpectralPrimal(FrozenFields):
    """Σ = Γ − V diag(r) Vᵀ; the columns of V are ``axes``."""

    axes: FloatArray
    removed: FloatArray

    def to_dict(self) -> dict[str, Any]:
        return {"axes": self.axes.tolist(), "removed": self.removed.tolist()}


@dataclass(frozen=True, eq=False)
class SpectralDual(FrozenFields):
    """Y = V diag(y) Vᵀ, the inverse of Σ at the optimum, and the price μ of the budget in nats."""

    axes: FloatArray
    precisions: FloatArray
    price: float
    objective: int = 1

    def to_dict(self) -> dict[str, Any]:
        return {
            "axes": self.axes.tolist(),
            "precisions": self.precisions.tolist(),
            "price": self.price,
            "objective": self.objective,
        }
