"""Measures of leakage in rationals: F of exact masses, and scores that are members of its set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from mpmath import iv

from tests.second_checker.numbers import (
    BITS,
    ONE,
    ZERO,
    Pair,
    ball,
    enclosed,
    exact,
    interval,
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
        keys = {"hockey-stick": "gamma", "transport": "ground", "gain": "matrix", "Sibson": "order",
                "power divergence": "order", "f-information": "terms"}  # fmt: skip
        self.kind, self.pi, self.units = data["kind"], pi, units
        need(self.kind in MEASURES, "no measure")
        ours = keys.get(self.kind)
        need(set(data) == {"kind", ours} - {None}, "other data of a measure")
        size = len(pi)
        self.rows, self.unit, self.step, self.number = size, ONE, ONE, ZERO
        self.table: list[list[Fraction]] = []
        if self.kind == "relative entropy":
            need(size == 2, "not two labels")
            self.rows = 1
        if self.kind in ("mutual information", "relative entropy"):
            self.unit = self.step = 1 / enclosed(lambda: unit_of(units))[0]
        if self.kind == "relative entropy":  # of what is seen, the share that it is a divergence of
            self.unit = self.step = self.step * pi[1]
        if self.kind in ("hockey-stick", "Sibson"):
            self.number = exact(data[ours])
            need(self.number >= 1 and (self.number > 1 or self.kind != "Sibson"), "out of range")
        self.f = CONVEX[self.kind](data) if self.kind in CONVEX else None
        if self.f is not None:
            need(self.f.steep > 0, "nothing is leaked")
            self.unit = self.step = enclosed(lambda: ball(self.f.steep) * self.factor())[0]
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

    def factor(self) -> Any:
        """Return what f is in: a nat in the units of information, for Jensen and Shannon's."""
        return 1 / unit_of(self.units) if self.kind == "Jensen-Shannon" else iv.mpf(1)

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


def relative_entropy(measure: Measure, joint: Numbers) -> Pair:
    """Return J₁ (t log t − t + 1), t = (J₀/π₀)/(J₁/π₁)."""
    first, other = joint[0] * measure.pi[1] / measure.pi[0], joint[1]
    need(other or not first, "beyond every number")
    nats = plus(
        times(first, log(first / other)) if first else (ZERO, ZERO), (other - first, other - first)
    )
    low, high = enclosed(lambda: interval(nats) / unit_of(measure.units))
    return max(low, ZERO), max(high, ZERO)


def centred_scores(measure: Measure, column: Numbers) -> list[Fraction]:
    """Return rationals below (τ π₁/π₀, 1 − e^τ): τ t + 1 − e^τ touches t log t − t + 1 at e^τ."""
    tau = min(max(column[0], -CLIP), CLIP)
    rise = ball(tau * measure.pi[1] / measure.pi[0])
    scores = (lambda: rise, lambda: 1 - iv.exp(ball(tau)))
    return [enclosed(lambda s=s: s() / unit_of(measure.units))[0] for s in scores]


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


class LeCam:
    """f(t) = (t − 1)²/(t + 1); times a mass e where t = j/e."""

    steep: Any = ONE  # f''(1)
    rational = True

    def __init__(self, data: Any) -> None:
        pass

    def times(self, j: Fraction, e: Fraction) -> Any:
        return (j - e) ** 2 / (j + e) if j or e else ZERO

    def tangent(self, t: Any) -> tuple[Any, Any]:
        """Return f'(t), and f(t) − t f'(t) where the tangent meets t = 0."""
        slope = 1 - 4 / (t + 1) ** 2
        return slope, (t - 1) ** 2 / (t + 1) - t * slope


class Shannon(LeCam):
    """f(t) = ½ t log(2t/(t + 1)) + ½ log(2/(t + 1))."""

    steep, rational = Fraction(1, 4), False

    def times(self, j: Fraction, e: Fraction) -> Any:
        return (self.part(j, j + e) + self.part(e, j + e)) / 2

    def part(self, x: Fraction, both: Fraction) -> Any:
        return ball(x) * iv.log(ball(2 * x / both)) if x else iv.mpf(0)

    def tangent(self, t: Any) -> tuple[Any, Any]:
        return iv.log(2 * t / (t + 1)) / 2, iv.log(2 / (t + 1)) / 2


class Powers(LeCam):
    """f(t) = (t^a − 1)/(a (a − 1))."""

    rational = False

    def __init__(self, data: Any) -> None:
        self.order = exact(data["order"])
        need(self.order > 0 and self.order != 1, "out of range")

    def times(self, j: Fraction, e: Fraction) -> Any:
        a = self.order
        power = raised(ball(j), a) * raised(ball(e), 1 - a) if j else iv.mpf(0)
        return (power - ball(e)) / ball(a * (a - 1))

    def tangent(self, t: Any) -> tuple[Any, Any]:
        a = self.order
        slope = raised(t, a - 1) / ball(a - 1)
        return slope, (raised(t, a) - 1) / ball(a * (a - 1)) - t * slope


class Terms(LeCam):
    """f(t) = Σ c v φ(u/v), with f(1) taken off."""

    rational = False

    def __init__(self, data: Any) -> None:
        need(isinstance(data["terms"], list) and 0 < len(data["terms"]) <= 64, "terms")
        self.terms = table(data["terms"], len(data["terms"]), 6)
        self.one: Any = None
        for c, a, al, be, ga, de in self.terms:
            need(c > 0 and a > 0 and ga >= 0 and de > 0, "not convex")
            need(a == 2 or (al >= 0 and be >= 0 and al + be > 0), "not convex")
        self.one = enclosed(lambda: self.times(ONE, ONE))  # before which nothing is taken off
        self.steep = enclosed(lambda: sum((self.second(row) for row in self.terms), iv.mpf(0)))[0]

    def second(self, row: Numbers) -> Any:
        c, a, al, be, ga, de = row
        v, r = ga + de, (al + be) / (ga + de)
        curve = raised(ball(r), a - 2) if a != 2 else iv.mpf(1)
        return ball(c * (abs(a * (a - 1)) or ONE) * (al * de - ga * be) ** 2 / v**3) * curve

    def phi(self, r: Any, a: Fraction) -> tuple[Any, Any]:
        """Return φ(r), r > 0 or a = 2, and its slope."""
        if a == 2:
            return r * r, 2 * r
        if a == 1:
            return r * iv.log(r), iv.log(r) + 1
        sign = 1 if a > 1 else -1
        return sign * raised(r, a), sign * ball(a) * raised(r, a - 1)

    def times(self, j: Fraction, e: Fraction) -> Any:
        value = iv.mpf(0)
        for c, a, al, be, ga, de in self.terms if e else []:
            u, v = al * j + be * e, ga * j + de * e
            value += ball(c * v) * self.phi(ball(u / v), a)[0] if u else 0
        return value - (interval(self.one) * ball(e) if self.one else 0)

    def tangent(self, t: Any) -> tuple[Any, Any]:
        slope = value = iv.mpf(0)
        for c, a, al, be, ga, de in self.terms:
            u, v = ball(al) * t + ball(be), ball(ga) * t + ball(de)
            height, rise = self.phi(u / v, a)
            slope += ball(c) * (ball(ga) * height + rise * ball(al * de - ga * be) / v)
            value += ball(c) * v * height
        return slope, value - interval(self.one) - t * slope


def raised(x: Any, order: Fraction) -> Any:
    return iv.exp(ball(order) * iv.log(x))


def of_convex(measure: Measure, joint: Numbers) -> Pair:
    q = sum(joint)
    pairs = [(j, p * q) for j, p in zip(joint, measure.pi, strict=True)]
    if all(j == e for j, e in pairs):
        return ZERO, ZERO
    if measure.f.rational:
        value = sum((measure.f.times(j, e) for j, e in pairs), ZERO)
        return value, value
    low, high = enclosed(lambda: sum((measure.f.times(j, e) for j, e in pairs), iv.mpf(0))
                         * measure.factor())  # fmt: skip
    return max(low, ZERO), high


def tangents(measure: Measure, column: Numbers) -> list[Fraction]:
    """Return rationals below f'(t) + Σ π (f(t) − t f'(t)), a number told for log t."""
    if not any(column):
        return [ZERO] * len(column)
    iv.prec = BITS
    points = [iv.exp(ball(min(max(x, Fraction(-200)), Fraction(50)))) for x in column]
    pairs = [measure.f.tangent(t) for t in points]
    mean = sum((ball(p) * at for p, (_, at) in zip(measure.pi, pairs, strict=True)), iv.mpf(0))
    return [enclosed(lambda s=s: (s + mean) * measure.factor())[0] for s, _ in pairs]


CONVEX: dict[str, Callable[[Any], Any]] = {
    "Vincze-Le Cam": LeCam, "Jensen-Shannon": Shannon,
    "power divergence": Powers, "f-information": Terms,
}  # fmt: skip


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
    **dict.fromkeys(CONVEX, (of_convex, tangents)),
    "hockey-stick": (hockey_stick, hockey_scores),
    "transport": (transport, transport_scores),
    "gain": (gain, gain_scores),
    "Sibson": (sibson, sibson_scores),
    "maximal leakage": (maximal, maximal_scores),
    "relative entropy": (relative_entropy, centred_scores),
}
