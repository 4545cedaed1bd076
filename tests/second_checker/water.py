"""Water in boxes as a covariance program: a level makes an error covariance and multipliers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tests.second_checker.covariance import Covariance
from tests.second_checker.numbers import ONE, ZERO, Matrix, exact, need


def diagonal(values: Any) -> Matrix:
    values = list(values)
    return [[x if i == j else ZERO for j in range(len(values))] for i, x in enumerate(values)]


def texts(rows: Matrix) -> list[list[str]]:
    return [[str(x) for x in row] for row in rows]


class Water(Covariance):
    """min I(W; X̂) s.t. tr Σ ≤ t of independent X_i, and W_i = X_i + noise of variance 1/g_i."""

    def __init__(self, program: Any) -> None:
        need(set(program) == {"kind", "units", "gains", "variances", "budget"}, "no water")
        need(type(program["variances"]) is list and program["variances"], "no variances")
        self.caps_of = [exact(v) for v in program["variances"]]
        size, noisy = len(self.caps_of), program["gains"] is not None
        need(not noisy or type(program["gains"]) is list, "no gains")
        gains = [exact(g) for g in program["gains"]] if noisy else []
        need(all(v > 0 for v in (*self.caps_of, *gains)), "not positive")
        need(not noisy or len(gains) == size, "as many gains as variances")
        need(exact(program["budget"]) > 0, "no budget")
        self.offsets = [1 / g for g in gains] or [ZERO] * size
        law = diagonal(self.caps_of)
        if noisy:
            full = diagonal(o + c for o, c in zip(self.offsets, self.caps_of, strict=True))
            law = [a + b for a, b in zip(law * 2, [*law, *full], strict=True)]
        identity = [[int(i == j) for j in range(size)] for i in range(size)]
        blank: Any = {"cost": None, "cost_radius": 0, "constant": [0, 0], "weights": {}}
        view, trace = {**blank, "weights": {"W": 1}}, {**blank, "cost": identity}
        super().__init__(
            {
                "units": program["units"],
                "covariance": texts(law),
                "encoded": list(range(size)),
                "given": [],
                "views": {"W": {"of": [size * noisy + i for i in range(size)],
                                "reference": "marginal"}},
                "objective": view,
                "rows": {"budget": {"term": trace, "sense": "<=", "bound": program["budget"],
                                    "radius": 0, "per_output": False}},
                "caps": {},
                "terms": {"risk": view, "distortion": trace},
            }
        )  # fmt: skip

    def poured(self, level: Fraction) -> list[Fraction]:
        pairs = zip(self.offsets, self.caps_of, strict=True)
        return [min(max(level - o, ZERO), c) for o, c in pairs]

    def factors(self, values: Any) -> Any:
        outcome = diagonal(values)
        return {"root": texts(diagonal([ONE] * len(outcome))), "middle": texts(outcome)}

    def upper(self, primal: Any) -> Any:
        level = exact(primal["level"])
        need(level > 0, "no level")
        return super().upper(self.factors(self.poured(level)))

    def lower(self, dual: Any) -> Any:
        level = exact(dual["level"])
        if level <= 0 or not dual.get("objective", 1):
            return ZERO
        price = 1 / (2 * level)
        spread = [o + x for o, x in zip(self.offsets, self.poured(level), strict=True)]
        above = [max(1 / (2 * s) - price, ZERO) for s in spread]
        outcome = super().lower(
            {
                "multipliers": {"budget": str(price)},
                "posteriors": {"W": self.factors(1 / s for s in spread)},
                "parts": {"": self.factors(above)},
            }
        )
        return max(outcome, ZERO)
