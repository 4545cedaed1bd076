"""The categorical example as a channel program: a water level makes its multipliers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tests.second_checker.channel import Channel
from tests.second_checker.numbers import (
    ONE,
    ZERO,
    Matrix,
    enclosed,
    exact,
    log,
    need,
    plus,
    times,
    unit_of,
)


class Hamming(Channel):
    """min I(X; X̂) s.t. Pr(X ≠ X̂) ≤ D."""

    def __init__(self, program: Any) -> None:
        law = [x for x in program["law"] if x]
        self.budget, n = exact(program["budget"]), len(law)
        need(ZERO <= self.budget <= ONE, "a budget that is no probability")
        blank: Any = {"cost": None, "cost_radius": 0, "constant": [0, 0]}
        error = [[int(x != y) for y in range(n)] for x in range(n)]
        row = {"term": {**blank, "weights": {}, "cost": error}, "sense": "<=", "radius": 0}
        super().__init__(
            {
                **dict.fromkeys(("lower", "upper")),
                "units": program["units"],
                "law": [law],
                "outputs": n,
                "views": {
                    "X": {
                        "labels": [list(range(n))],
                        "reference": None,
                        "measure": {"kind": "mutual information"},
                    }
                },
                "objective": {**blank, "weights": {"X": 1}},
                "rows": {"budget": {**row, "bound": str(self.budget), "per_output": False}},
                "auxiliaries": {},
                "terms": {},
            }
        )

    def filled(self, level: Fraction) -> tuple[list[int], Fraction]:
        """Return the letters above the water, and Pr(X ≠ X̂) of its channel."""
        dry = [x for x, p in enumerate(self.p) if p > level]
        return dry, (len(dry) - 1) * level + 1 - sum(self.p[x] for x in dry)

    def upper(self, primal: Any) -> Any:
        level = max(ZERO, exact(primal["level"]))
        (dry, error), n, top = self.filled(level), self.n, self.p.index(max(self.p))
        constant = [[Fraction(y == top) for y in range(n)] for _ in range(n)]
        channel = constant
        if len(dry) > 1:
            left = sum(self.p[y] - level for y in dry)
            q = {y: (self.p[y] - level) / left for y in dry}

            def backward(x: int, y: int) -> Fraction:
                return 1 - error if x == y else min(level, self.p[x])

            channel = [
                [q[y] * backward(x, y) / self.p[x] if y in q else ZERO for y in range(n)]
                for x in range(n)
            ]
        else:
            error = 1 - self.p[top]
        other, at = constant, 1 - self.p[top]
        if error > self.budget:
            other, at = [[Fraction(x == y) for y in range(n)] for x in range(n)], ZERO
        share = ONE if error == at else min(ONE, (self.budget - at) / (error - at))
        share = ZERO if error < self.budget and self.budget >= at else share
        mixed: Matrix = [
            [share * a + (1 - share) * b for a, b in zip(r, s, strict=True)]
            for r, s in zip(channel, other, strict=True)
        ]
        self.feasible(mixed)
        rate = self.attained(mixed)
        entropy = plus(*(times(-p, log(p, self.bits)) for p in self.p))
        equivocation = plus(entropy, times(-ONE, rate))
        distortion = self.value(self.rows["budget"][0], mixed)
        return rate, {
            "rate": rate,
            "leakage": rate,  # W = X
            "equivocation": equivocation,
            "distortion": distortion,
        }

    def lower(self, dual: Any) -> Any:
        level = max(ZERO, exact(dual["level"]))
        dry, error = self.filled(level)
        if len(dry) < 2 or not dual.get("objective", 1):
            return ZERO

        def score(x: int, y: int) -> float:
            """Return log(r(x | y)/p(x)), r of sum at most 1."""
            r = level if x in dry else self.p[x]
            if x == y:
                r = 1 - error if x in dry else self.p[x] * (1 - error) / level
            return log_of(r / self.p[x]) if r else -1e4

        scores = [[score(x, y) for y in range(self.n)] for x in range(self.n)]
        price = log_of((1 - error) / level) if level else 2e4
        price /= float(enclosed(lambda: unit_of(self.bits))[0])
        return max(ZERO, super().lower({"scores": {"X": scores}, "multipliers": {"budget": price},
                                        "auxiliaries": {}}))  # fmt: skip


def log_of(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)
