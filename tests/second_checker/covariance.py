"""A covariance program in rationals: 0 ≼ Σ ≼ Σ̄ = Cov(V | Z), Σ ≼ every cap.

A view A has the information ½ log det R − ½ log det (S + B Σ Bᵀ), with R = Cov(A) or Cov(A | Z),
S = Cov(A | V, Z) and B = Cov(A, V | Z) Σ̄⁻¹; every determinant is a rational.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tests.second_checker.numbers import (
    ONE,
    ZERO,
    Matrix,
    Pair,
    enclosed,
    exact,
    interval,
    log,
    need,
    plus,
    spread,
    table,
    times,
    unit_of,
)

HALF = Fraction(1, 2)


def transpose(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def dot(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [
        [sum((x * y for x, y in zip(row, c, strict=True) if x and y), ZERO) for c in columns]
        for row in a
    ]


def add(a: Matrix, b: Matrix, factor: Any = 1) -> Matrix:
    pairs = zip(a, b, strict=True)
    return [[x + factor * y for x, y in zip(r, s, strict=True)] for r, s in pairs]


def trace(a: Matrix, b: Matrix) -> Any:
    """Return tr A B of symmetric matrices."""
    pairs = zip(a, b, strict=True)
    return sum((x * y for r, s in pairs for x, y in zip(r, s, strict=True)), ZERO)


def inverse(a: Matrix) -> Matrix:
    size = len(a)
    rows = [[*row, *(Fraction(i == j) for j in range(size))] for i, row in enumerate(a)]
    for k in range(size):
        pivot = next((i for i in range(k, size) if rows[i][k]), None)
        need(pivot is not None, "a singular matrix")
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(size):
            if i != k and rows[i][k]:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[size:] for row in rows]


def det(a: Matrix) -> Any:
    """Return det A if A is symmetric positive semidefinite, else None."""
    rows, outcome = [list(row) for row in a], ONE
    for k in range(len(a)):
        pivot = rows[k][k]
        if pivot < 0 or (not pivot and any(rows[k])):
            return None
        outcome *= pivot
        for i in range(k + 1, len(a)) if pivot else ():
            factor = rows[i][k] / pivot
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
        rows[k] = [ZERO] * len(a)
        for row in rows:
            row[k] = ZERO
    return outcome


class Covariance:
    def __init__(self, program: Any) -> None:
        self.units = unit_of(program["units"])
        size = len(program["covariance"])
        gamma = self.gamma = table(program["covariance"], size, size)
        need(gamma == transpose(gamma) and det(gamma) is not None, "no covariance")
        self.side, self.encoded = (self.places(program[k]) for k in ("given", "encoded"))
        self.n = len(self.encoded)
        self.law = gamma
        if self.side:
            z = [[gamma[i][j] for j in self.side] for i in range(size)]
            inner = inverse([z[i] for i in self.side])
            self.law = add(gamma, dot(dot(z, inner), transpose(z)), -1)
        self.bound = self.part(self.law, self.encoded, self.encoded)
        need(det(self.bound), "Cov(V | Z) is singular")
        self.size = sum(self.bound[i][i] for i in range(self.n))
        self.views = {name: self.view(view) for name, view in program["views"].items()}
        self.caps = {name: self.symmetric(cap) for name, cap in program["caps"].items()}
        self.objective = self.term(program["objective"])
        self.reported = program["terms"]
        self.rows = {}
        for name, row in program["rows"].items():
            plain = row["sense"] == "<=" and row["per_output"] is False
            need(plain and exact(row["radius"]) == 0, "no plain inequality")
            self.rows[name] = self.term(row["term"]), exact(row["bound"])

    def places(self, argument: Any) -> list[int]:
        fits = all(type(i) is int and 0 <= i < len(self.gamma) for i in argument)
        need(fits and len(set(argument)) == len(argument), "no places of variables")
        return list(argument)

    def part(self, a: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
        return [[a[i][j] for j in columns] for i in rows]

    def symmetric(self, argument: Any) -> Matrix:
        outcome = table(argument, self.n, self.n)
        need(outcome == transpose(outcome), "not symmetric")
        return outcome

    def view(self, view: Any) -> tuple[Matrix, Matrix, Pair]:
        """Return S, B and ½ log det R."""
        of, v = self.places(view["of"]), self.encoded
        need(view["reference"] in ("marginal", "conditional"), "a reference")
        full, cross = self.part(self.law, of, of), self.part(self.law, of, v)
        need(of and det(full), "Cov(A | Z) is singular")
        b = dot(cross, inverse(self.bound))
        s = add(full, dot(b, transpose(cross)), -1)
        r = self.part(self.gamma, of, of) if view["reference"] == "marginal" else full
        return s, b, times(HALF, log(det(r)))

    def term(self, term: Any, convex: bool = True) -> tuple[Any, Any, Pair, Fraction]:
        weights = {view: exact(w) for view, w in term["weights"].items()}
        need(set(weights) <= set(self.views), "no such view")
        need(not convex or all(w >= 0 for w in weights.values()), "not convex")
        if term["cost"] is None:
            return weights, None, spread(term["constant"]), ZERO
        radius = exact(term["cost_radius"])
        need(radius >= 0, "a negative radius")
        return weights, self.symmetric(term["cost"]), spread(term["constant"]), radius

    def factored(self, pair: Any, size: int) -> tuple[Matrix, Matrix]:
        root, middle = (table(pair[k], size, size) for k in ("root", "middle"))
        need(middle == transpose(middle), "not symmetric")
        return root, middle

    # ---- upper end -----------------------------------------------------------------------

    def upper(self, primal: Any) -> Any:
        root, middle = self.factored(primal, self.n)
        sigma = dot(dot(root, middle), transpose(root))
        self.feasible(sigma)
        terms = {k: self.value(self.term(t, convex=False), sigma) for k, t in self.reported.items()}
        return self.attained(sigma), terms

    def attained(self, sigma: Any) -> Any:
        """Return the objective at an error covariance."""
        return self.value(self.objective, sigma)

    def feasible(self, sigma: Matrix) -> None:
        need(det(sigma) is not None, "0 ≼ Σ")
        for above in (self.bound, *self.caps.values()):
            need(det(add(above, sigma, -1)) is not None, "Σ above its bound")
        for name, (term, bound) in self.rows.items():
            need(self.value(term, sigma)[1] <= bound, name)

    def value(self, term: Any, sigma: Matrix) -> Pair:
        weights, cost, outcome, radius = term
        for view, w in weights.items():
            s, b, ours = self.views[view]
            left = det(add(s, dot(dot(b, sigma), transpose(b))))
            if not left:
                return outcome[0], math.inf
            information = plus(ours, times(-HALF, log(left)))
            information = enclosed(
                lambda information=information: interval(information) / self.units
            )
            outcome = plus(outcome, times(w, information))
        if cost is None:
            return outcome
        off = radius * sum(abs(x) for row in sigma for x in row)
        value = trace(cost, sigma)
        return plus(outcome, (value - off, value + off))

    # ---- lower end -----------------------------------------------------------------------

    def lower(self, dual: Any) -> Any:
        """Return a number below the minimum; −∞ if the multipliers prove none."""
        nats = enclosed(lambda: interval((ONE, ONE)) * self.units)
        total, omega = (ZERO, ZERO), dict.fromkeys(self.views, ZERO)
        plain = mixed = [[ZERO] * self.n for _ in range(self.n)]  # costs, and costs per unit
        parts = [(self.objective, ONE, ZERO)] if dual.get("objective", 1) else []
        for name, (term, bound) in self.rows.items():
            weight = exact(dual["multipliers"].get(name, 0))
            parts += [(term, weight, bound)] if weight > 0 else []
        for (weights, cost, constant, radius), lam, bound in parts:
            off = plus(constant, (-bound, -bound))
            if weights:
                off = enclosed(lambda off=off: interval(off) * self.units)
            total = plus(total, times(lam, off))
            most = radius * self.n * self.size  # |⟨Δ, Σ⟩| ≤ r (Σ_i √Σ̄_ii)², in any unit
            total = plus(total, (-lam * most, lam * most))
            for view, w in weights.items():
                omega[view] += lam * w
            if cost is not None and weights:
                mixed = add(mixed, cost, lam)
            elif cost is not None:
                plain = add(plain, cost, lam)
        for view, o in omega.items():
            if o:
                s, b, ours = self.views[view]
                root, middle = self.factored(dual["posteriors"][view], len(s))
                back = inverse(root)
                y = dot(dot(transpose(back), middle), back)
                if not det(y):
                    return -math.inf
                information = plus(log(det(y)), (len(s) - trace(y, s),) * 2)
                total = plus(total, times(o, plus(ours, times(HALF, information))))
                plain = add(plain, dot(dot(transpose(b), y), b), -o / 2)
        values = []
        for unit in nats if nats[0] != nats[1] and any(map(any, mixed)) else nats[:1]:
            least = self.least(add(plain, mixed, unit), dual["parts"])
            if least is None:  # linear in the unit: the least of both ends bounds what is between
                return -math.inf
            values.append(plus(total, (least, least)))
        pair = min(p[0] for p in values), max(p[1] for p in values)
        if self.objective[0]:
            return enclosed(lambda: interval(pair) / self.units)[0]
        return pair[0]

    def least(self, gradient: Matrix, parts: Any) -> Any:
        """Return a number below ⟨G, Σ⟩ from P ≽ 0 with G + Σ P ≽ 0."""
        value = ZERO
        for name, above in {"": self.bound, **self.caps}.items():
            if name in parts:
                root, part = self.factored(parts[name], self.n)
                back = inverse(root)
                p = dot(dot(transpose(back), part), back)
                if det(p) is None:
                    return None
                gradient, value = add(gradient, p), value - trace(p, above)
        return None if det(gradient) is None else value

    def unit(self, upper: Any) -> Fraction:
        """Return what the gap of a certified document is small against."""
        weights, cost, constant, _ = self.objective
        nats = sum(weights.values(), ZERO) / enclosed(lambda: interval((ONE, ONE)) * self.units)[0]
        most = ZERO if cost is None else abs(trace(cost, self.bound))
        return nats + min(most, abs(upper - sum(constant) / 2)) or most or ONE
