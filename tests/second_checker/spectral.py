"""Reverse water-filling of a covariance, in rationals: axes make an error covariance and bounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tests.second_checker.covariance import Covariance, add, dot, transpose
from tests.second_checker.numbers import ONE, ZERO, Matrix, exact, need, table
from tests.second_checker.water import diagonal, texts


class Spectral(Covariance):
    """min I(X; X̂) s.t. tr Σ ≤ D."""

    def __init__(self, program: Any) -> None:
        need(set(program) == {"kind", "units", "covariance", "budget"}, "no spectrum")
        need(exact(program["budget"]) > 0, "no budget")
        size = len(program["covariance"])
        identity = [[int(i == j) for j in range(size)] for i in range(size)]
        blank: Any = {"cost": None, "cost_radius": 0, "constant": [0, 0], "weights": {}}
        view, trace = {**blank, "weights": {"W": 1}}, {**blank, "cost": identity}
        row = {"term": trace, "sense": "<=", "bound": program["budget"]}
        places = list(range(size))
        super().__init__(
            {
                "units": program["units"],
                "covariance": program["covariance"],
                "encoded": places,
                "given": [],
                "views": {"W": {"of": places, "reference": "marginal"}},
                "objective": view,
                "rows": {"budget": {**row, "radius": 0, "per_output": False}},
                "caps": {},
                "terms": {"risk": view, "distortion": trace},
            }
        )

    def around(self, axes: Any, values: list[Fraction]) -> Matrix:
        """Return V diag Vᵀ."""
        need(all(value >= 0 for value in values), "negative")
        v = table(axes, self.n, self.n)
        return dot(dot(v, diagonal(values)), transpose(v))

    def plain(self, matrix: Matrix) -> Any:
        return {"root": texts(diagonal([ONE] * self.n)), "middle": texts(matrix)}

    def upper(self, primal: Any) -> Any:
        removed = self.around(primal["axes"], table([primal["removed"]], 1, self.n)[0])
        return super().upper(self.plain(add(self.bound, removed, -1)))

    def lower(self, dual: Any) -> Any:
        v, (y,) = table(dual["axes"], self.n, self.n), table([dual["precisions"]], 1, self.n)
        price = exact(dual["price"])
        if price < 0 or not all(y) or not dual.get("objective", 1):
            return ZERO
        widest = max(sum(map(abs, row)) for row in dot(transpose(v), v))
        p = [max(value / 2 - price / widest, ZERO) for value in y]
        outcome = super().lower(
            {
                "multipliers": {"budget": str(price)},
                "posteriors": {"W": self.plain(self.around(dual["axes"], y))},
                "parts": {"": self.plain(self.around(dual["axes"], p))},
            }
        )
        return max(outcome, ZERO)
