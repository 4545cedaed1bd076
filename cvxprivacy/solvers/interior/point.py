"""A point of the interior-point method, or a step between two."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cvxprivacy.exact import FloatArray

__all__ = ["HIGH", "LOW", "WORST", "ByName", "Point"]

LOW, HIGH = "\0low", "\0high"  # pairs of entries with their bounds; no row has such a name
WORST = "\0worst"  # the level that is the greatest of several objectives

ByName = dict[str, FloatArray]


@dataclass(eq=False)
class Point:
    """A point, or a step: Q, ν, scores, multipliers of equalities, levels, slacks and prices."""

    q: FloatArray
    nu: FloatArray
    scores: list[FloatArray]
    equal: ByName
    levels: ByName
    slack: ByName
    price: ByName

    def moved(self, step: Point, t: float) -> Point:
        return Point(
            *(_moved(getattr(self, f.name), getattr(step, f.name), t) for f in fields(self))
        )

    def multiplier(self, name: str) -> FloatArray:
        return self.price[name] if name in self.price else self.equal[name]

    def longest(self, step: Point) -> float:
        """Return the length at which a slack or a price is 0."""
        most = np.inf
        for have, change in ((self.slack, step.slack), (self.price, step.price)):
            for name, value in have.items():
                ratio = np.divide(change[name], value, out=np.zeros(value.shape), where=value > 0)
                if (least := float(ratio.min())) < 0:
                    most = min(most, -1.0 / least)
        return most


def _moved(have: Any, step: Any, t: float) -> Any:
    if isinstance(have, dict):
        return {k: v + t * step[k] for k, v in have.items()}
    return (
        [v + t * d for v, d in zip(have, step, strict=True)]
        if isinstance(have, list)
        else have + t * step
    )
