"""What a release must satisfy besides constraints: bounded auxiliaries and entry bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cvxprivacy.exact import Exact, FloatArray, written
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.parameter import Scalar, Symbol

__all__ = ["Auxiliary", "EntryBounds", "Rule", "renamed"]


@dataclass(frozen=True, eq=False)
class Auxiliary:
    """A bounded auxiliary: ``ratio`` with factor e^ε, or ``maximum`` with total e^b.

    ``bound`` is that exponential as a float, within ``radius`` of the number meant;
    ``derivatives`` are d bound by each function of a number that was typed.
    """

    kind: Literal["ratio", "maximum"]
    bound: float
    radius: float = 0.0
    derivatives: Mapping[Symbol, float] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: Literal["ratio", "maximum"], bound: Scalar) -> Auxiliary:
        """Return it with an exponential ≥ 1; its least is not below 1, as a constant's is."""
        value, radius = bound.enclosure
        if value - radius < 1:  # where floats cannot tell it from 1
            value, radius = Fraction(1 + 2.0**-52), Fraction(2.0**-52)
        return cls(kind, float(value), float(radius), bound.slopes)

    def marginal(self, duals: Sequence[FloatArray], mass: FloatArray, channel: FloatArray) -> float:
        """Return d value / d bound; −inf at ratio or total 1, the least there is."""
        if self.bound == 1.0 and not self.radius:
            return -math.inf
        last = mass[:, None] * np.asarray(duals[-1], float)
        if self.kind == "ratio":
            return -float((last.sum(axis=0) * channel.min(axis=0)).sum())
        return -float(last.sum(axis=0).max())

    def to_dict(self) -> dict[str, Any]:
        """Return the data as a proof file stores it."""
        return {"kind": self.kind, "bound": [written(self.bound), written(self.radius)]}


@dataclass(frozen=True, eq=False)
class EntryBounds:
    """Bounds (n, m) on the channel's entries.

    ``derivatives`` are d lower by each number that was typed; where that is a vector, ``entry``
    says which of its entries bounds each row.
    """

    lower: Exact | None = None
    upper: Exact | None = None
    derivatives: Mapping[Symbol, FloatArray] = field(default_factory=dict)
    entry: npt.NDArray[np.int64] | None = None


Rule = Constraint | Auxiliary | EntryBounds


def renamed(rule: Rule, names: Mapping[str, str]) -> Rule:
    """Return a rule with other names of the numbers that were typed."""
    if not rule.derivatives:
        return rule
    derivatives: Any = {
        replace(symbol, name=names.get(symbol.name, symbol.name)): slope
        for symbol, slope in rule.derivatives.items()
    }
    return replace(rule, derivatives=derivatives)
