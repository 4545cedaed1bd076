"""Measures of leakage in rationals: F of exact masses, and scores that are members of its set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from mpmath import iv

from tests.second_checker.numbers import (
    ONE,
    ZERO,
    Pair,
    ball,
    enclosed,
    exact,
    log,
    need,
    plus,
    table,
    times,
    unit_of,
)

CLIP = 10_000  # scores beyond e^±10000 prove nothing more
NEAR = Fraction(1, 2**50)
Numbers = Sequence[Fraction]


class Measure:
    """A view's measure; ``pi`` is its reference law."""

    def __init__(self, data: Any, pi: Numbers, units: str) -> None:
        keys = {"hockey-stick": "gamma", "transport": "ground", "gain": "matrix", "Sibson": "order"}
        self.kind, self.pi, self.units = data["kind"], pi, units
        need(self.kind in MEASURES, "no measure")
        ours = keys.get(self.kind)
        need(set(data) == {"kind", ours} - {None}, "other data of a measure")
        size = len(pi)
        self.rows, self.unit, self.step, self.number = size, ONE, ONE, ZERO
        self.table: list[list[Fraction]] = []
        if self.kind == "mutual information":
            self.unit = self.step = 1 / enclosed(lambda: unit_of(units))[0]
        if self.kind in ("hockey-stick", "Sibson"):
            self.number = exact(data[ours])
            need(self.number >= 1 and (self.number > 1 or self.kind != "Sibson"), "out of range")
        if self.kind == "transport":
            self.table = table(data[ours], size, size)
            need(min(map(min, self.table)) >= 0, "a negative distance")
            need(not any(row[i] for i, row in enumerate(self.table)), "a distance to itself")
            self.judged([c for row in self.table for c in row])
        if self.kind == "gain":
            self.table, self.rows = table(data[ours], len(data[ours]), size), len(data[ours])
            need(self.rows, "no guess")
            best = list(map(max, zip(*self.table, strict=True)))
            self.judged([b - g for row in self.table for b, g in zip(best, row, strict=True)])

    def judged(self, sizes: Numbers) -> None:
        """Set the least and the greatest size by which gaps are judged."""
        positive = [x for x in sizes if x > 0] or [ONE]
        self.step, self.unit = min(positive), max(positive)

    @property
    def divergence(self) -> bool:
        return self.kind not in ("gain", "Sibson", "maximal leakage")

    def value(self, joint: Numbers) -> Pair:
        """Return rationals at or below F, and at or above it."""
        return MEASURES[self.kind][0](self, joint)

    def below(self, column: Numbers) -> list[Fraction]:
        """Return rationals below a member of the set of scores."""
        return MEASURES[self.kind][1](self, column)

    def less_mean(self, column: Numbers, conjugate: Numbers) -> list[Fraction]:
        mean = sum((p * c for p, c in zip(self.pi, conjugate, strict=True)), ZERO)
        return [x - mean for x in column]


def information(measure: Measure, joint: Numbers) -> Pair:
    q = sum(joint)
    pairs = zip(joint, measure.pi, strict=True)
    return plus(*(times(j, log(j / (x * q), measure.units)) for j, x in pairs if j))


def log_law(measure: Measure, column: Numbers) -> list[Fraction]:
    """Return rationals below log(r/π), r ∝ π e^score."""
    scores = [min(max(x, -CLIP), CLIP) for x in column]
    if min(scores) == max(scores):
        return [ZERO] * len(scores)
    terms = (ball(x) * iv.exp(ball(z)) for x, z in zip(measure.pi, scores, strict=True))
    norm, unit = iv.log(sum(terms, iv.mpf(0))), unit_of(measure.units)
    return [enclosed(lambda z=z: (ball(z) - norm) / unit)[0] for z in scores]


def chi_squared(measure: Measure, joint: Numbers) -> Pair:
    q = sum(joint)
    value = sum((j * j / (p * q) for j, p in zip(joint, measure.pi, strict=True) if j), ZERO)
    return value - q, value - q


def chi_scores(measure: Measure, column: Numbers) -> list[Fraction]:
    return measure.less_mean(column, [x + x * x / 4 if x >= -2 else -ONE for x in column])


def hellinger(measure: Measure, joint: Numbers) -> Pair:
    q = sum(joint)
    if all(j == p * q for j, p in zip(joint, measure.pi, strict=True)):  # no root is needed
        return ZERO, ZERO
    roots = (enclosed(lambda x=j * p * q: iv.sqrt(ball(x))) for j, p in
             zip(joint, measure.pi, strict=True) if j)  # fmt: skip
    return plus((2 * q, 2 * q), *(times(Fraction(-2), root) for root in roots))


def hellinger_scores(measure: Measure, column: Numbers) -> list[Fraction]:
    kept = [min(x, 1 - NEAR) for x in column]
    return measure.less_mean(kept, [x / (1 - x) for x in kept])


def hockey_stick(measure: Measure, joint: Numbers) -> Pair:
    q = sum(joint) * measure.number
    value = sum((max(j - p * q, ZERO) for j, p in zip(joint, measure.pi, strict=True)), ZERO)
    return value, value


def hockey_scores(measure: Measure, column: Numbers) -> list[Fraction]:
    kept = [min(max(x, ZERO), ONE) for x in column]
    return measure.less_mean(kept, [measure.number * x for x in kept])


def transport(measure: Measure, joint: Numbers) -> Pair:
    """Return the least cost exactly, by augmenting along shortest paths (Bellman–Ford)."""
    n, cost = len(joint), measure.table
    left, wanted = list(joint), [p * sum(joint) for p in measure.pi]
    flow = [[ZERO] * n for _ in range(n)]
    while any(left):
        far: list[Any] = [ZERO if x else None for x in left] + [None] * n
        before = [-1] * (2 * n)
        for _ in range(2 * n):
            for i in range(n):
                for j in range(n):
                    ways = [(i, n + j, cost[i][j])]
                    ways += [(n + j, i, -cost[i][j])] if flow[i][j] else []
                    for a, b, c in ways:
                        if far[a] is not None and (far[b] is None or far[a] + c < far[b]):
                            far[b], before[b] = far[a] + c, a
        node = min((j for j in range(n, 2 * n) if wanted[j - n]), key=lambda j: far[j])
        path = []
        end = node - n
        while before[node] >= 0:
            path.append((before[node], node))
            node = before[node]
        moved = min(left[node], wanted[end], *(flow[b][a - n] for a, b in path if a >= n))
        for a, b in path:
            if a < n:
                flow[a][b - n] += moved
            else:
                flow[b][a - n] -= moved
        left[node], wanted[end] = left[node] - moved, wanted[end] - moved
    value = sum((flow[i][j] * cost[i][j] for i in range(n) for j in range(n)), ZERO)
    return value, value


def transport_scores(measure: Measure, column: Numbers) -> list[Fraction]:
    """Return f + Σ π g, g the most that f(v) + g(w) ≤ ρ(v, w) allows."""
    size = range(len(column))
    g = [min(measure.table[v][w] - column[v] for v in size) for w in size]
    return measure.less_mean(column, [-x for x in g])


def gain(measure: Measure, joint: Numbers) -> Pair:
    gains = (zip(row, joint, strict=True) for row in measure.table)
    value = max(sum((g * j for g, j in pairs), ZERO) for pairs in gains)
    return value, value


def gain_scores(measure: Measure, column: Numbers) -> list[Fraction]:
    weights = some(column)
    columns = zip(*measure.table, strict=True)
    return [sum(w * g for w, g in zip(weights, c, strict=True)) / sum(weights) for c in columns]


def norm(values: Numbers, pi: Numbers, order: Fraction) -> Pair:
    """Enclose (Σ π x^α)^{1/α}."""

    def power() -> Any:
        parts = (ball(p) * iv.exp(ball(order) * iv.log(ball(x))) for p, x in
                 zip(pi, values, strict=True) if x)  # fmt: skip
        return iv.exp(iv.log(sum(parts, iv.mpf(0))) / ball(order))

    return enclosed(power) if any(values) else (ZERO, ZERO)


def sibson(measure: Measure, joint: Numbers) -> Pair:
    ratios = [j / p for j, p in zip(joint, measure.pi, strict=True)]
    if len({*ratios}) == 1:  # the norm of a constant, exactly
        return ratios[0], ratios[0]
    return norm(ratios, measure.pi, measure.number)


def sibson_scores(measure: Measure, column: Numbers) -> list[Fraction]:
    scores = some([1 + x for x in column])
    dual = norm(scores, measure.pi, measure.number / (measure.number - 1))
    return [x / dual[1] for x in scores]


def maximal(measure: Measure, joint: Numbers) -> Pair:
    value = max(j / p for j, p in zip(joint, measure.pi, strict=True))
    return value, value


def maximal_scores(measure: Measure, column: Numbers) -> list[Fraction]:
    scores = some(column)
    return [x / sum(p * s for p, s in zip(measure.pi, scores, strict=True)) for x in scores]


def some(column: Numbers) -> list[Fraction]:
    """Return numbers ≥ 0, ones where all are 0."""
    kept = [max(x, ZERO) for x in column]
    return kept if any(kept) else [ONE] * len(kept)


MEASURES: dict[str, tuple[Callable[..., Pair], Callable[..., list[Fraction]]]] = {
    "mutual information": (information, log_law),
    "chi-squared": (chi_squared, chi_scores),
    "squared Hellinger": (hellinger, hellinger_scores),
    "hockey-stick": (hockey_stick, hockey_scores),
    "transport": (transport, transport_scores),
    "gain": (gain, gain_scores),
    "Sibson": (sibson, sibson_scores),
    "maximal leakage": (maximal, maximal_scores),
}
