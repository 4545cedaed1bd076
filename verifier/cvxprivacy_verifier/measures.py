"""Measures of leakage, F(J) = sup {⟨s, J⟩ : s ∈ 𝒮} of the joint masses J ≥ 0 at an output (P10).

Each encloses F in a ball, and brings untrusted numbers into 𝒮 (C2): whatever they are, ⟨s, J⟩ is
then a minorant of F.  With q = Σ J and π the reference law.  Needs the standard library and
python-flint only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from flint import arb, fmpq, fmpz

from .balls import (
    Matrix,
    UnprovableError,
    ball,
    exactly,
    integers,
    number,
    power,
    smallest,
    total,
)
from .costs import steps_of
from .perspectives import ConvexFunction
from .transport import exact_cost, least_cost, moved, worth

__all__ = ["KINDS", "Measure", "measure_of"]

_CLIP = 1e4  # scores beyond e^±10000 prove nothing more
_LOGARITHMS = -200.0, 50.0  # of points of tangency: at e^−200 f is nearly f(0), and t ≤ 1/π
_FEW = 8  # values of W: fractions of many denominators take for ever to add up
_NEAR = 2.0**-50  # how near 1 a score of Hellinger's measure comes: f* is infinite at 1
Column = Sequence[float]


class Measure:
    """A measure of one view.

    Parameters
    ----------
    data : mapping
        What a document says of it.
    reference : list of arb
        π.
    nat : arb
        A nat in the program's units of information.

    Attributes
    ----------
    rows : int
        Numbers that an untrusted score has at an output.
    step, unit : arb
        The least and the greatest size of F by which a gap may be judged.
    divergence : bool
        Whether F is 0 where J = π q, and nowhere below.
    relative : bool
        Whether π may be that of other letters than those that are seen.
    """

    parameters: tuple[str, ...] = ()
    divergence = True
    relative = True

    def __init__(self, data: Mapping[str, Any], reference: list[arb], nat: arb) -> None:
        if set(data) != {"kind", *self.parameters}:
            raise UnprovableError(f"a measure of other data than {('kind', *self.parameters)}")
        self.reference, self.nat = reference, nat
        self.rows, self.step, self.unit = len(reference), arb(1), arb(1)

    def value(self, joint: Sequence[arb]) -> arb:
        """Enclose F(J)."""
        raise NotImplementedError

    def exactly(self, joint: Sequence[fmpz], masses: Sequence[int]) -> fmpq | None:
        """Return F of whole numbers J where it is known to be rational, of π in whole masses.

        By default where J = π q, which no ball can tell: there it is 0, or q.
        """
        mass, q = sum(masses), sum(joint, fmpz(0))
        # J = π q, times the two denominators: no ball tells that something is 0
        if any(j * mass != p * q for j, p in zip(joint, masses, strict=True)):
            return None
        return fmpq(0) if self.divergence else fmpq(q)

    def inside(self, column: Column) -> list[arb]:
        """Return a member of 𝒮."""
        raise NotImplementedError

    def _less_mean(self, column: Sequence[arb], conjugate: Sequence[arb]) -> list[arb]:
        """Return s − Σ π f*(s), as f(t) ≥ s t − f*(s) (P11)."""
        mean = total(p * c for p, c in zip(self.reference, conjugate, strict=True))
        return [s - mean for s in column]


class MutualInformation(Measure):
    """F = Σ J log(J/πq), a release's part of I(V; X̂), in the program's units (P4)."""

    def __init__(self, data: Mapping[str, Any], reference: list[arb], nat: arb) -> None:
        super().__init__(data, reference, nat)
        self.step = self.unit = nat

    def value(self, joint: Sequence[arb]) -> arb:
        return _divergence(joint, self.reference) * self.nat

    def inside(self, column: Column) -> list[arb]:
        """Return log(r/π), r ∝ π e^s (P9)."""
        column = [max(-_CLIP, min(_CLIP, x)) for x in column]
        if min(column) == max(column):  # r = π, exactly: nothing is told, and 0 has no radius
            return [arb(0)] * len(column)
        balls = [arb(x) for x in column]
        # log Σ π eˢ of (P8), in balls: with it s is in 𝒮, whatever the rounding before
        mean = total(p * x.exp() for p, x in zip(self.reference, balls, strict=True)).log()
        return [(x - mean) * self.nat for x in balls]


class ChiSquared(Measure):
    """F = Σ J²/(πq) − q: f(t) = (t − 1)²."""

    def value(self, joint: Sequence[arb]) -> arb:
        q = total(joint)
        pairs = list(zip(joint, self.reference, strict=True))
        if q > 0:
            off = [(j - p * q, p * q) for j, p in pairs]
            return total(x * x / y for x, y in off)  # no power of a ball around 0
        if q.is_zero():
            return q
        # q may be 0, and J/q anything: J²/(πq) ≤ J/π, as J ≤ q
        return arb(0).union(total(j.upper() / p for j, p in pairs).upper())

    def exactly(self, joint: Sequence[fmpz], masses: Sequence[int]) -> fmpq:
        """Return F(J), which has no roots or logarithms."""
        mass, q = sum(masses), sum(joint, fmpz(0))
        squares = (fmpq(j * j * mass, p * q) for j, p in zip(joint, masses, strict=True) if j)
        return sum(squares, fmpq(-q))

    def inside(self, column: Column) -> list[arb]:
        scores = [arb(x) for x in column]
        # f* of x ≥ 0 alone: below s = −2 the supremum is at x = 0
        return self._less_mean(scores, [s + s * s / 4 if s >= -2 else arb(-1) for s in scores])


class SquaredHellinger(Measure):
    """F = 2q − 2 Σ √(Jπq): f(t) = (1 − √t)²."""

    def value(self, joint: Sequence[arb]) -> arb:
        q = total(joint)
        roots = (_root(j * p * q) for j, p in zip(joint, self.reference, strict=True))
        return (2 * q - 2 * total(roots)).max(arb(0))  # a sum of squares

    def inside(self, column: Column) -> list[arb]:
        scores = [arb(min(x, 1.0 - _NEAR)) for x in column]
        return self._less_mean(scores, [s / (1 - s) for s in scores])


class HockeyStick(Measure):
    """F = Σ (J − γπq)₊, γ ≥ 1; with γ = 1 it is the total variation ½ Σ |J − πq|."""

    parameters = ("gamma",)

    def __init__(self, data: Mapping[str, Any], reference: list[arb], nat: arb) -> None:
        super().__init__(data, reference, nat)
        self.gamma = exactly(data["gamma"])
        self._gamma = arb(self.gamma)
        if self.gamma < 1:  # f(1) = (1 − γ)₊ would not be 0: no divergence
            raise UnprovableError("a hockey-stick measure with γ < 1")

    def value(self, joint: Sequence[arb]) -> arb:
        q = total(joint) * self._gamma
        return total((j - p * q).max(arb(0)) for j, p in zip(joint, self.reference, strict=True))

    def exactly(self, joint: Sequence[fmpz], masses: Sequence[int]) -> fmpq:
        """Return F(J), which has no roots or logarithms."""
        # both sides of J > γπq times the denominators of γ and π
        by, q = self.gamma.q * sum(masses), self.gamma.p * sum(joint, fmpz(0))
        beyond = (by * j - p * q for j, p in zip(joint, masses, strict=True))
        return fmpq(sum((x for x in beyond if x > 0), fmpz(0)), by)

    def inside(self, column: Column) -> list[arb]:
        scores = [arb(max(0.0, min(x, 1.0))) for x in column]  # f* = ∞ above; below 0 it is 0
        return self._less_mean(scores, [self._gamma * s for s in scores])


class FInformation(Measure):
    """F = Σ πq f(J/πq) − f(1) q, f a sum of perspectives; scores are told by the logarithms of t.

    (P11): the tangents of f at any t(v) > 0 make a score, f'(t) − Σ π (t f'(t) − f(t) + f(1)), and
    no number is trusted to be a value of f*.
    """

    parameters: tuple[str, ...] = ("terms",)

    def __init__(self, data: Mapping[str, Any], reference: list[arb], nat: arb) -> None:
        super().__init__(data, reference, nat)
        self._f, self._scale = ConvexFunction(self._terms(data)), self._factor()
        # as F grows with its terms, so does the size by which a gap is judged
        self.step = self.unit = self._f.curvature * self._scale

    def _terms(self, data: Mapping[str, Any]) -> Any:
        """Return the rows of f."""
        return data["terms"]

    def _factor(self) -> arb:
        """Return what F is multiplied by."""
        return arb(1)

    def value(self, joint: Sequence[arb]) -> arb:
        q = total(joint)
        pairs = zip(joint, self.reference, strict=True)
        value = total(self._f.value(j, p * q, (1 / p).upper()) for j, p in pairs)
        return (self._scale * (value - self._f.at_one * q)).max(arb(0))  # Jensen's inequality

    def exactly(self, joint: Sequence[fmpz], masses: Sequence[int]) -> fmpq | None:
        """Return F(J) where f is rational and W has few values, or J = π q."""
        mass, q = sum(masses), sum(joint, fmpz(0))
        if not self._f.rational or len(joint) > _FEW:
            return super().exactly(joint, masses)
        pairs = zip(joint, masses, strict=True)
        value = sum((self._f.exactly(fmpq(j), fmpq(p * q, mass)) for j, p in pairs), fmpq(0))
        return value - self._f.exactly(fmpq(1), fmpq(1)) * q

    def inside(self, column: Column) -> list[arb]:
        if not any(column):  # t = 1: nothing is told, and 0 has no radius
            return [arb(0)] * len(column)
        low, high = _LOGARITHMS
        points = (arb(max(low, min(high, x))).exp() for x in column)
        slopes, conjugates = zip(*map(self._f.tangent, points), strict=True)
        scores = self._less_mean(slopes, [c + self._f.at_one for c in conjugates])
        return [self._scale * s for s in scores]


class VinczeLeCam(FInformation):
    """F = Σ (J − πq)²/(J + πq): f(t) = (t − 1)²/(t + 1)."""

    parameters = ()

    def _terms(self, data: Mapping[str, Any]) -> Any:
        return [[1, 2, 1, -1, 1, 1]]


class JensenShannon(FInformation):
    """F = ½ Σ (J log(J/M) + πq log(πq/M)), M = (J + πq)/2, in the program's units."""

    parameters = ()

    def _terms(self, data: Mapping[str, Any]) -> Any:
        return [[0.5, 1, 1, 0, 0.5, 0.5], [0.5, 1, 0, 1, 0.5, 0.5]]

    def _factor(self) -> arb:
        return self.nat


class PowerDivergence(FInformation):
    """F = (Σ J^a (πq)^{1 − a} − q)/(a(a − 1)), a > 0, a ≠ 1."""

    parameters = ("order",)

    def _terms(self, data: Mapping[str, Any]) -> Any:
        order = number(data["order"])
        if order <= 0 or order == 1:
            raise UnprovableError("a power divergence of an order ≤ 0, or of order 1")
        weight = 1 / abs(order * (order - 1))
        return [[weight, order, 1, 0, 0, 1]]


class Transport(Measure):
    """F = the least cost of moving J to πq, earth mover's distance times q."""

    parameters = ("ground",)

    def __init__(self, data: Mapping[str, Any], reference: list[arb], nat: arb) -> None:
        super().__init__(data, reference, nat)
        self._ground = _matrix(data["ground"], self.rows, self.rows)
        # symmetry and the triangle inequality are not needed: (P12) is a linear program without
        if any(not c >= 0 for row in self._ground for c in row):
            raise UnprovableError("a ground distance that is negative")
        if any(not row[i].is_zero() for i, row in enumerate(self._ground)):
            raise UnprovableError("a ground distance from a value to itself")
        self.step, self.unit = _sizes([c for row in self._ground for c in row])
        try:
            self._integer_ground, self._common = integers(data["ground"])
        except UnprovableError:  # balls hold them all the same
            self._integer_ground, self._common = [], 0
        self._steps = steps_of(self._integer_ground)  # values on a line need no plan

    def value(self, joint: Sequence[arb]) -> arb:
        q = total(joint)
        demand = [p * q for p in self.reference]
        if self._steps is None:
            return least_cost(joint, demand, self._ground).max(arb(0))  # costs are ≥ 0
        return moved(joint, demand, self._steps, arb(0)) / self._common

    def exactly(self, joint: Sequence[fmpz], masses: Sequence[int]) -> fmpq | None:
        """Return F(J) by a plan in whole numbers, and prices that prove it to be of least cost.

        None where the distances have no common denominator, or no plan is proved to be the best.
        """
        mass, q = sum(masses), sum(map(int, joint))
        # J and πq over one denominator, so that they have the same sum in whole numbers
        supply, demand = [int(j) * mass for j in joint], [int(p) * q for p in masses]
        if self._steps is not None:
            return fmpq(moved(supply, demand, self._steps, 0), self._common * mass)
        if not self._common:
            return None
        paid = exact_cost(supply, demand, self._integer_ground)
        return None if paid is None else fmpq(paid, self._common * mass)

    def inside(self, column: Column) -> list[arb]:
        """Return f + Σ π g with g the most that f(v) + g(v') ≤ ρ(v, v') allows (P12)."""
        # Σ f J + q Σ π g with q = Σ J: the mean of g is a part of every score
        return self._less_mean([arb(x) for x in column], [-g for g in worth(column, self._ground)])


class Gain(Measure):
    """F = max_g Σ_v G(g, v) J(v), what the best guess gains."""

    parameters = ("matrix",)
    divergence = False

    def __init__(self, data: Mapping[str, Any], reference: list[arb], nat: arb) -> None:
        super().__init__(data, reference, nat)
        self._entries = data["matrix"]
        self._gains = _matrix(self._entries, len(self._entries), self.rows)
        self.rows = len(self._gains)
        if not self.rows:
            raise UnprovableError("a gain of no guess")
        # a gap is judged by what a wrong guess loses: a constant added to G changes no choice
        best = [_largest(column) for column in zip(*self._gains, strict=True)]
        lost = [b - g for row in self._gains for b, g in zip(best, row, strict=True)]
        self.step, self.unit = _sizes(lost)

    @cached_property
    def _nonzero(self) -> list[list[tuple[int, arb]]]:
        """The gains of each guess that are not 0: of guesses of W itself one of hundreds."""
        return [[(v, g) for v, g in enumerate(row) if not g.is_zero()] for row in self._gains]

    def value(self, joint: Sequence[arb]) -> arb:
        return _largest([total(g * joint[v] for v, g in row) for row in self._nonzero])

    def exactly(self, joint: Sequence[fmpz], masses: Sequence[int]) -> fmpq:
        """Return F(J), which has no roots or logarithms."""
        gains, common = self._integer_gains
        return fmpq(max(sum(map(operator.mul, row, joint), fmpz(0)) for row in gains), common)

    @cached_property
    def _integer_gains(self) -> tuple[Matrix, int]:
        """G in whole numbers over one denominator."""
        return integers(self._entries)

    def inside(self, column: Column) -> list[arb]:
        """Return a mixture of the rows of G, of weights that are made ≥ 0 and of sum 1."""
        # 𝒮 is their hull: the greatest of linear functions is no less than any mean
        weights = _some([arb(max(x, 0.0)) for x in column])
        scores = [arb(0)] * len(self.reference)
        for weight, row in zip(weights, self._nonzero, strict=True):
            for v, gain in row:
                scores[v] += weight * gain
        total_weight = total(weights)
        return [score / total_weight for score in scores]


class Sibson(Measure):
    """F = (Σ π^{1−α} J^α)^{1/α}, α > 1: Sibson's information is α/(α − 1) log Σ_y F."""

    parameters = ("order",)
    divergence = False

    def __init__(self, data: Mapping[str, Any], reference: list[arb], nat: arb) -> None:
        super().__init__(data, reference, nat)
        self._order = ball(data["order"])
        if not self._order > 1:  # F is concave below 1
            raise UnprovableError("Sibson's measure of an order ≤ 1")

    def value(self, joint: Sequence[arb]) -> arb:
        return self._norm([j / p for j, p in zip(joint, self.reference, strict=True)], self._order)

    def inside(self, column: Column) -> list[arb]:
        """Return scores ≥ 0 of dual norm 1, which are told by what they exceed 1."""
        # Hölder's inequality; told so, zeros mean the score 1 of a release that tells nothing
        scores = _some([(1 + arb(x)).max(arb(0)) for x in column])
        norm = self._norm(scores, self._order / (self._order - 1))
        return [s / norm for s in scores]

    def _norm(self, values: Sequence[arb], order: arb) -> arb:
        """Enclose (Σ π x^α)^{1/α}, x ≥ 0."""
        most = _largest(values)
        if not most > 0:  # a weighted mean of powers is no more than the greatest
            return arb(0).union(most.upper().max(arb(0)))
        # by the greatest: at any order the powers are then at most 1
        powers = (power(x / most, order) for x in values)
        return most * total(map(operator.mul, self.reference, powers)) ** (1 / order)


class MaximalLeakage(Measure):
    """F = max_v J/π: maximal leakage is log Σ_y F, Sibson's information of order ∞."""

    divergence = False

    def value(self, joint: Sequence[arb]) -> arb:
        return _largest([j / p for j, p in zip(joint, self.reference, strict=True)])

    def exactly(self, joint: Sequence[fmpz], masses: Sequence[int]) -> fmpq:
        """Return F(J), which has no roots or logarithms."""
        mass = sum(masses)
        return max(fmpq(j * mass, p) for j, p in zip(joint, masses, strict=True))

    def inside(self, column: Column) -> list[arb]:
        """Return scores ≥ 0 with Σ π s = 1."""
        # Σ s J = Σ (π s)(J/π), a mean of the ratios
        scores = _some([arb(max(x, 0.0)) for x in column])
        norm = total(map(operator.mul, self.reference, scores))
        return [s / norm for s in scores]


class RelativeEntropy(Measure):
    """F = J₁ f(t), t = (J₀/π₀)/(J₁/π₁), f(t) = t log t − t + 1, of two labels alone.

    ΣF is the share of J₁ times D(V₀ ‖ V₁), V the laws of outputs that both labels are released by.
    """

    relative = False

    def __init__(self, data: Mapping[str, Any], reference: list[arb], nat: arb) -> None:
        super().__init__(data, reference, nat)
        if len(reference) != 2:
            raise UnprovableError("a relative entropy of other than two labels")
        self.rows, self._ratio = 1, reference[1] / reference[0]
        # of all that is seen J₁ has the share π₁: a rare label makes no wide gap look narrow
        self.step = self.unit = nat * reference[1]

    def value(self, joint: Sequence[arb]) -> arb:
        of_w, of_r = joint[0] * self._ratio, joint[1]
        if of_w.is_zero():  # 0 log 0 = 0
            return of_r * self.nat
        if not of_r > 0:  # beyond every number, unless there is nothing there
            return arb(0).union(arb.pos_inf())
        if of_w > 0:
            log = of_w * (of_w / of_r).log()
        else:  # x log(x/b) between 0 and the greatest x, least at x = b/e: there it is −b/e
            most = of_w.upper()
            log = arb(0).union(most * (most / of_r).log()).union(-of_r / arb(1).exp())
        return ((log - of_w + of_r) * self.nat).max(arb(0))

    def inside(self, column: Column) -> list[arb]:
        """Return (τ π₁/π₀, −f*(τ)) of any τ: J₁ (τ t − f*(τ)) ≤ J₁ f(t), f*(τ) = e^τ − 1."""
        tau = max(-_CLIP, min(_CLIP, column[0]))
        if not tau:  # nothing is told, and 0 has no radius
            return [arb(0), arb(0)]
        point = arb(tau)
        return [point * self._ratio * self.nat, (1 - point.exp()) * self.nat]


_MEASURES: dict[str, Callable[[Mapping[str, Any], list[arb], arb], Measure]] = {
    "mutual information": MutualInformation,
    "chi-squared": ChiSquared,
    "squared Hellinger": SquaredHellinger,
    "Vincze-Le Cam": VinczeLeCam,
    "Jensen-Shannon": JensenShannon,
    "power divergence": PowerDivergence,
    "f-information": FInformation,
    "hockey-stick": HockeyStick,
    "transport": Transport,
    "gain": Gain,
    "Sibson": Sibson,
    "maximal leakage": MaximalLeakage,
    "relative entropy": RelativeEntropy,
}
KINDS = frozenset(_MEASURES)


def measure_of(data: Any, reference: list[arb], nat: arb) -> Measure:
    """Return the measure that a document names."""
    if not isinstance(data, dict) or data.get("kind") not in _MEASURES:
        raise UnprovableError("a view without a measure that is known")
    return _MEASURES[data["kind"]](data, reference, nat)


# ---- balls -------------------------------------------------------------------------------


def _matrix(rows: Any, count: int, width: int) -> list[list[arb]]:
    if not isinstance(rows, list) or len(rows) != count:
        raise UnprovableError(f"a measure whose matrix has not {count} rows")
    if any(not isinstance(row, list) or len(row) != width for row in rows):
        raise UnprovableError(f"a measure whose matrix has not {width} columns")
    return [[ball(x) for x in row] for row in rows]


def _some(numbers: Sequence[arb]) -> Sequence[arb]:
    """Return numbers ≥ 0, ones where all of them are 0."""
    # normalising divides by their sum
    return numbers if any(x > 0 for x in numbers) else [arb(1)] * len(numbers)


def _largest(values: Sequence[arb]) -> arb:
    return -smallest([-x for x in values])


def _sizes(numbers: Sequence[arb]) -> tuple[arb, arb]:
    """Return the least and the greatest of some numbers that are positive, 1 if none is."""
    positive = [x for x in numbers if x > 0] or [arb(1)]
    return smallest(positive), _largest(positive)


def _root(x: arb) -> arb:
    """Enclose the root of a number ≥ 0."""
    if x > 0 or x.is_zero():
        return x.sqrt()
    # the number is ≥ 0 though its ball is not: arb's root of the rest would be no number
    return arb(0).union(x.upper().max(arb(0)).sqrt())


def _divergence(joint: Sequence[arb], reference: Sequence[arb]) -> arb:
    """Enclose Σ_v J_v log(J_v / (π_v q)), q = Σ_v J_v, for J ≥ 0 known to lie in the balls."""
    q = total(joint)
    if q.is_zero():  # an output that is not used: 0 log 0 = 0
        return q
    if q > 0 and all(j.is_zero() or j > 0 for j in joint):
        pairs = zip(joint, reference, strict=True)
        return total(j * (j / (p * q)).log() for j, p in pairs if not j.is_zero())
    # some ball touches 0: Σ J log(J/q) − Σ J log π, by parts (C14)
    value, top = arb(0), q.upper()
    for j, p in zip(joint, reference, strict=True):
        high = j.upper()
        value -= (j if j > 0 else arb(0).union(high)) * p.log()
        if j > 0 and q > 0:
            value += j * (j / q).log()
        elif high > 0:  # 0 ≥ J log(J/q) ≥ J log(J/top), least at J = top/e or at the high end
            # 3 is above e: up to top/3 it falls, and beyond −top is below all of it
            value += arb(0).union(high * (high / top).log() if high * 3 < top else -top)
    return value
