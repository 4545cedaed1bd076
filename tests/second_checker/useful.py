"""What is maximised one output at a time: every vertex of the rules, found from what is active."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

from tests.second_checker.channel import Channel
from tests.second_checker.numbers import (
    ONE,
    ZERO,
    Matrix,
    Pair,
    guessed,
    need,
    plus,
    times,
)

Numbers = Any


class Useful(Channel):
    """max Σ μ(c_y), c_y in a cone, as the least of −Σ μ(c_y)."""

    greatest = True

    def __init__(self, program: Any) -> None:
        super().__init__(program)
        need(program["lower"] is None and program["upper"] is None, "bounds of entries")
        need(not self.excesses and len(self.objectives) == 1, "another objective")
        (term,) = self.objectives.values()
        need(term[4] is None and term[2] == (0, 0), "an objective that costs")
        need(all(len(set(w)) == 1 for w in term[0].values()), "weights of outputs")
        stated = program["objective"]
        parts = stated["worst"].values() if {*stated} == {"worst"} else [stated]
        need(not any(isinstance(w, list) for t in parts for w in t["weights"].values()), "weights")
        need(all(kind == "ratio" for kind, _ in self.auxiliaries.values()), "no ratio")
        need(all(not row[0][0] for row in self.rows.values()), "a row that is not linear")
        self.kinds = {view["measure"]["kind"] for view in program["views"].values()}
        self.plain = all(v["reference"] in (None, v["labels"]) for v in program["views"].values())

    def attained(self, channel: Matrix) -> Pair:
        low, high = super().attained(channel)
        return -high, -low

    def lower(self, dual: Any) -> Any:
        if not dual["objective"]:
            return -math.inf
        argument = dual.get("letters")
        shaped = isinstance(argument, list) and len(argument) == self.n
        lam = [guessed(x) for x in argument] if shaped else [ZERO] * self.n
        bound, costs = sum(lam), [[ZERO] * self.m for _ in range(self.n)]
        for name, (term, sense, many, bounds) in self.rows.items():
            if many:
                continue
            kappa = guessed(dual["multipliers"].get(name, 0))
            kappa = kappa if sense == "==" else max(kappa, ZERO)
            bound += plus(times(kappa, bounds[0]), times(-kappa, term[2]))[1]
            for s, y in product(range(self.n), range(self.m)):
                costs[s][y] += kappa * term[1][s][y] - abs(kappa) * term[3] * self.p[s]
        (term,) = self.objectives.values()
        most = -math.inf
        for ray in self.rays(lam):
            size = sum(p * r for p, r in zip(self.p, ray, strict=True))
            worth = -sum(x * r for x, r in zip(lam, ray, strict=True))
            worth -= min(sum(c[y] * r for c, r in zip(costs, ray, strict=True))
                         for y in range(self.m))  # fmt: skip
            for view, w in term[0].items():
                recorded, measure = self.views[view]
                joint = [sum(a * r for a, r in zip(row, ray, strict=True)) for row in recorded]
                worth += times(w[0], measure.value(joint))[1]
            most = max(most, worth / size)
        return -(bound + most)

    def rays(self, prices: Numbers) -> Iterator[Numbers]:
        """Yield points of which every direction of the cone is a mixture.

        Of more than 20 letters they are the best at some prices, if letters are as probable as
        each other; where an output costs, and other measures are told, that is not known.
        """
        each = [(row, sense) for row, sense, many, _ in self.rows.values() if many]
        ratios = [bound for _, (_, bound) in self.auxiliaries.values()]
        if ratios and not each and self.n <= 20:
            yield from product((ONE, min(ratios)), repeat=self.n)
            return
        if ratios and not each:
            need(not self.rows, "costs of many letters")
            need(self.kinds <= {"mutual information", "chi-squared"}, "another measure of many")
            need(all(sum(map(bool, line)) == 1
                     for law, _ in self.views.values() for line in (*law, *zip(*law, strict=True))),
                 "not the letters themselves")  # fmt: skip
            marginals = [[sum(c) for c in zip(*law, strict=True)] for law, _ in self.views.values()]
            need(self.plain and all(of == list(self.p) for of in marginals), "a part of the law")
            groups = [[s for s in range(self.n) if self.p[s] == p] for p in sorted(set(self.p))]
            for group in groups:
                group.sort(key=lambda s: prices[s])
            for counts in product(*(range(len(group) + 1) for group in groups)):
                high = {s for k, group in zip(counts, groups, strict=True) for s in group[:k]}
                yield tuple(min(ratios) if s in high else ONE for s in range(self.n))
            return
        for name, (_, _, many, bounds) in self.rows.items():
            need(not many or all(b == (0, 0) for b in bounds), f"{name}: not 0")
        rows = []
        for term, sense in each:
            need(all(len(set(row)) == 1 for row in term[1]), "a rule of some outputs")
            for sign in (1, -1) if sense == "==" else (1,):
                rows.append([sign * row[0] - term[3] * p
                             for row, p in zip(term[1], self.p, strict=True)])  # fmt: skip
        for bound in [min(ratios)] if ratios else []:
            for s, other in permutations(range(self.n), 2):
                rows.append([Fraction(k == s) - bound * (k == other) for k in range(self.n)])
        walls = rows + [[Fraction(-(k == s)) for k in range(self.n)] for s in range(self.n)]
        for active in combinations(walls, self.n - 1):
            point = solved([*active, self.p], [ZERO] * (self.n - 1) + [ONE])
            if point and all(sum(a * x for a, x in zip(w, point, strict=True)) <= 0 for w in walls):
                yield point


def solved(matrix: Matrix, right: Numbers) -> Numbers | None:
    """Return the one solution of a square system, or nothing."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = next((r for r in rows[i:] if r[i]), None)
        if pivot is None:
            return None
        place = rows.index(pivot, i)
        rows[i], rows[place] = rows[place], rows[i]
        rows[i] = [x / pivot[i] for x in pivot]
        for k, row in enumerate(rows):
            if k != i and row[i]:
                rows[k] = [x - row[i] * y for x, y in zip(row, rows[i], strict=True)]
    return [row[-1] for row in rows]
