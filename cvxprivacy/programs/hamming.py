"""The program of the categorical example as plain data: a law, and how often it may change."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cvxprivacy.exact import FloatArray
from cvxprivacy.frozen import FrozenFields

__all__ = ["HammingProgram"]


@dataclass(frozen=True, eq=False)
class HammingProgram(FrozenFields):
    """min I(X; X̂) s.t. Pr(X ≠ X̂) ≤ D over p(x̂ | x), on letters that nothing else tells apart.

    Attributes
    ----------
    law : ndarray, shape (|X|,)
        Masses ≥ 0 in any unit, each the dyadic rational that it is.
    budget : Fraction
        D, 0 ≤ D ≤ 1.
    units : {"bits", "nats"}
    statement : str
        The program in one line, for people; no proof reads it.
    """

    law: FloatArray
    budget: Fraction
    units: str = "bits"
    statement: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the program in lists, numbers and strings: what a proof file stores."""
        return {
            "kind": "hamming",
            "units": self.units,
            "law": self.law.tolist(),
            "budget": str(self.budget),
        }
