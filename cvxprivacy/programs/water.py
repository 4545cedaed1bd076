"""Water in boxes as plain data: gains, caps and an amount; levels as primal and dual."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cvxprivacy.exact import Exact, listed
from cvxprivacy.frozen import FrozenFields

__all__ = ["LevelDual", "WaterLevel", "WaterProgram"]


@dataclass(frozen=True, eq=False)
class WaterProgram(FrozenFields):
    """min ½ Σ log((1/g_i + c_i)/(1/g_i + x_i)) s.t. 0 ≤ x_i ≤ c_i, Σ x_i ≤ t.

    The covariance program of independent X_i of variances c_i and W_i = X_i + noise of variances
    1/g_i, whose matrices are all diagonal.

    Attributes
    ----------
    gains : array of float or Fraction, shape (n,), or None
        g_i > 0; None stands for no noise, W = X.
    variances : array of float or Fraction, shape (n,)
        c_i > 0.
    budget : Fraction
        t > 0.
    units : {"bits", "nats"}
    statement : str
        The program in one line, for people; no proof reads it.
    """

    gains: Exact | None
    variances: Exact
    budget: Fraction
    units: str = "bits"
    statement: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the program in lists, numbers and strings: what a proof file stores."""
        return {
            "kind": "water",
            "units": self.units,
            "gains": None if self.gains is None else listed(self.gains),
            "variances": listed(self.variances),
            "budget": str(self.budget),
        }


@dataclass(frozen=True)
class WaterLevel:
    """A level as a release: of letters, x is kept with probability (1 − λ/p(x))⁺; of boxes,
    x_i = clip(v − 1/g_i, 0, c_i).
    """

    level: Fraction

    def to_dict(self) -> dict[str, Any]:
        return {"level": str(self.level)}


@dataclass(frozen=True)
class LevelDual:
    """A level as a multiplier: what a letter under water adds to the bound of a smaller budget;
    of boxes, the price 1/2v of what is poured.
    """

    level: Fraction
    objective: int = 1

    def to_dict(self) -> dict[str, Any]:
        return {"level": str(self.level), "objective": self.objective}
