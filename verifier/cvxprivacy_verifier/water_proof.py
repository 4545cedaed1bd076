r"""Both ends of water in boxes, from offsets, caps, an amount and any water level.

    minimise  f(x) = ½ Σ log((o_i + c_i)/(o_i + x_i))   s.t.  0 ≤ x_i ≤ c_i,  Σ x_i ≤ t

of caps c_i > 0, t > 0 and offsets o_i = 1/g_i of gains g_i > 0, or o_i = 0 without gains (reverse
water-filling).  It is what the covariance program min I(W; X̂), tr Σ ≤ t, 0 ≼ Σ ≼ Σ_X is for
independent X_i of variance c_i and W_i = X_i + independent noise of variance o_i: with diagonal
Σ_X, B = I and S, log det (S + Σ) ≤ Σ log (o_i + Σ_ii) (Hadamard), 0 ≤ Σ_ii ≤ c_i, and diagonal Σ
attain it.  All numbers are rational, and so is what follows from them without a logarithm.

For a level v > 0 let x_i(v) = clip(v − o_i, 0, c_i), X(v) = Σ x_i(v).

*Lower end.*  With μ = 1/2v ≥ 0, weak duality has

    f(x) ≥ Σ_i min_{0 ≤ x ≤ c_i} {½ log((o_i + c_i)/(o_i + x)) + μ x} − μ t
         = f(x(v)) + (X(v) − t)/2v,

since the derivative μ − 1/(2(o_i + x)) of the braces increases and is 0 where o_i + x = v.  And
f ≥ 0.

*Upper end.*  f(x(v)), if X(v) ≤ t; a level that pours more is refused.

A box is *full* if o_i + c_i ≤ v, *dry* if o_i ≥ v and *wet* otherwise.  With K wet boxes

    2 f(x(v)) = log Π_{dry or wet} (1 + g_i c_i) / Π_wet g_i v,

Π_wet c_i / v^K without gains: one logarithm of a product in balls.  The product of n balls of
precision p is off by about n 2⁻ᵖ of itself.  X(v) = K v − Σ_wet o_i + Σ_full c_i; sums of floats
are exact, of reciprocals and fractions where the common denominator is short, and in balls
elsewhere.  The work is a few operations for each number of the document, at up to six
precisions.  These are (G32) to (G36) of ``docs/theory/covariance.md``.  Needs the standard library
and python-flint only.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import flint
from flint import arb, ctx, fmpq

from .balls import PRECISION, UnprovableError, ball, exactly, number
from .hamming_proof import (
    exact_sum,
    in_units,
    information_unit,
    nonnegative,
    scale,
    sharp,
)
from .work import LONG

__all__ = [
    "Boxes",
    "Filling",
    "Parts",
    "WaterProof",
    "exact_place",
    "floor_float",
    "of_reciprocals",
]

# Of X(v) − t, where it is not known exactly; the last is nearly the bits of a level (LONG)
PRECISIONS = (160, 320, 640, 1280, 2560, 5120)
DISTINCT = 1000  # reciprocals that are added up exactly: more have no short denominator as a rule
SAFE = 1e290  # of a level, which down to 1/SAFE is a normal float together with its margins
MARGIN = 2.0**-50  # more than two roundings of 1/g + c
Number = Any  # a float, or an fmpq
Numbers = Any  # a sequence of them


def floor_float(value: Fraction) -> float:
    """Return the largest float that is not above a rational ≥ 0."""
    if value >= sys.float_info.max:
        return sys.float_info.max
    nearest = float(value)
    return nearest if nearest <= value else math.nextafter(nearest, -math.inf)


class Parts(NamedTuple):
    """The boxes at a level: caps of the full ones, caps and gains of the wet and dry ones."""

    full: Numbers
    wet: Numbers
    wet_gains: Numbers
    dry: Numbers
    dry_gains: Numbers


class Boxes:
    """Gains (or None) and caps: positive floats, and rationals that are none."""

    def __init__(self, gains: Numbers | None, caps: Numbers) -> None:
        self.gains, self.caps = gains, caps

    def __len__(self) -> int:
        return len(self.caps)

    def at(self, level: Fraction) -> Parts:
        """Return which boxes are full, wet and dry at a level > 0, exactly."""
        # a float is above v if and only if it is above the largest float that is not
        least, exact = floor_float(level), exactly(level)
        if self.gains is None:
            above = [c > (least if type(c) is float else exact) for c in self.caps]
            full = [c for c, more in zip(self.caps, above, strict=True) if not more]
            return Parts(full, [c for c, m in zip(self.caps, above, strict=True) if m], [], [], [])
        parts = Parts([], [], [], [], [])
        sure = 1 / SAFE < least < SAFE
        low, high = least * (1.0 - MARGIN), least * (1.0 + MARGIN)
        for g, c in zip(self.gains, self.caps, strict=True):
            place = 0
            if sure and type(g) is type(c) is float:
                offset = 1.0 / g
                top = offset + c
                place = -1 if top < low else 1 if offset > high else 2 * (offset < low < high < top)
            if not place:  # next to a kink, or beyond the usual range: in rationals
                place = exact_place(g, c, exact)
            if place == -1:
                parts.full.append(c)
            else:
                caps, gains = (parts.dry, parts.dry_gains) if place == 1 else (parts[1], parts[2])
                caps.append(c)
                gains.append(g)
        return parts

    def summed(self, values: Numbers) -> fmpq | None:
        """Return Σ v exactly; None if that is too long."""
        floats = [v for v in values if type(v) is float]
        others = [v for v in values if type(v) is not float] if len(floats) < len(values) else []
        of_others = of_short(counted(others))
        return None if of_others is None else exactly(exact_sum(floats)) + of_others

    def balled_sum(self, values: Numbers) -> arb:
        """Return Σ v in a ball."""
        exact = self.summed(values)
        return sum(map(arb, values), arb(0)) if exact is None else arb(exact)

    def reciprocals(self, gains: Numbers) -> arb:
        """Return Σ 1/g in a ball."""
        return sum([1 / g for g in map(arb, gains)], arb(0))


def exact_place(gain: Number, cap: Number, level: fmpq) -> int:
    """Return −1 for a full box, 1 for a dry and 2 for a wet one."""
    g, c = (exactly(v) if type(v) is float else v for v in (gain, cap))
    return 1 if g * level <= 1 else -1 if g * (level - c) >= 1 else 2  # v ≤ 1/g, v ≥ 1/g + c


def counted(values: Numbers) -> list[tuple[fmpq, int]]:
    """Return rationals, and how often each is there.

    They are told apart by their text: numbers that differ by multiples of 2⁶¹ − 1 have one hash,
    and a file of such would be compared number by number.
    """
    by_text = {str(value): value for value in values}
    counts = [(by_text[text], times) for text, times in Counter(map(str, values)).items()]
    return [(exactly(v) if type(v) is float else v, times) for v, times in counts]


def of_short(counts: Sequence[tuple[fmpq, int]]) -> fmpq | None:
    """Return Σ of rationals as often as each is there; None if the common denominator is long."""
    common = 1
    for value, _ in counts:
        if common % (denominator := int(value.q)):
            common = math.lcm(common, denominator)
            if common.bit_length() > LONG:
                return None
    parts = (times * int(value.p) * (common // int(value.q)) for value, times in counts)
    return fmpq(sum(parts), common)


def of_reciprocals(values: Numbers) -> fmpq | None:
    """Return Σ 1/v exactly; None if the common denominator is long, or of many numbers."""
    if len(set(map(str, values[: 2 * DISTINCT]))) > DISTINCT:  # without going through all of them
        return None
    counts = counted(values)
    return of_short([(1 / g, times) for g, times in counts]) if len(counts) <= DISTINCT else None


class Filling:
    """Water up to a level v > 0; what has a logarithm is in nats, at the precision of the moment.

    Attributes
    ----------
    level : Fraction
        v.
    parts : Parts
        The boxes at v.
    """

    def __init__(self, boxes: Boxes, level: Fraction) -> None:
        self.boxes, self.level, self.parts = boxes, level, boxes.at(level)
        self._computed: dict[tuple[str, int], arb] = {}  # the same for both ends

    @cached_property
    def poured(self) -> fmpq | None:
        """X(v) exactly; None if that is too long."""
        full, offsets = self.boxes.summed(self.parts.full), of_reciprocals(self.parts.wet_gains)
        if full is None or offsets is None:
            return None
        return full + len(self.parts.wet) * exactly(self.level) - offsets  # (G36)

    def beyond(self, total: Fraction) -> arb:
        """Return X(v) − t."""
        if self.poured is not None:
            return arb(self.poured - exactly(total))
        base = len(self.parts.wet) * exactly(self.level) - exactly(total)
        return arb(base) + self._once("apart", self._apart)

    def _apart(self) -> arb:
        """Return X(v) − K v."""
        return self.boxes.balled_sum(self.parts.full) - self.boxes.reciprocals(self.parts.wet_gains)

    def _once(self, name: str, value: Callable[[], arb]) -> arb:
        """Return a value at the precision of the moment, computed once."""
        key = name, ctx.prec
        if key not in self._computed:
            self._computed[key] = value()
        return self._computed[key]

    def within(self, total: Fraction) -> bool:
        """Tell whether X(v) ≤ t is proved."""
        for precision in PRECISIONS:
            with ctx.workprec(precision):
                beyond = self.beyond(total)
                if beyond <= 0 or beyond > 0:
                    break
        return bool(beyond <= 0)

    @property
    def information(self) -> arb:
        """f(x(v))."""
        return self._once("information", self._information)

    def _information(self) -> arb:
        parts = self.parts
        if not parts.wet and not parts.dry:  # x = c
            return arb(0)
        below = ball(self.level) ** len(parts.wet)  # (G35): one logarithm of a product
        if self.boxes.gains is None:
            above = math.prod(parts.wet, start=arb(1))
        else:
            pairs = zip((*parts.wet, *parts.dry), (*parts.wet_gains, *parts.dry_gains), strict=True)
            above = math.prod([1 + arb(g) * c for c, g in pairs], start=arb(1))
            below *= math.prod(parts.wet_gains, start=arb(1))  # Π g_i v
        return (above / below).log() / 2

    def lower(self, total: Fraction) -> arb:
        """Return the lower end."""
        return self.information + self.beyond(total) / ball(2 * self.level)  # (G34)


class WaterProof:
    """The exact program behind ``WaterProgram.to_dict()``, and the ends it proves."""

    _last: Filling | None = None

    def __init__(self, program: Mapping[str, Any]) -> None:
        flint.ctx.prec = PRECISION
        caps, gains = positive(program["variances"], "variances"), program["gains"]
        if gains is not None:
            gains = positive(gains, "gains")
            if len(gains) != len(caps):
                raise UnprovableError("as many gains as variances are needed")
        self.units, self.boxes = information_unit(program), Boxes(gains, caps)
        self.budget = number(program["budget"])
        if self.budget <= 0:
            raise UnprovableError("the budget is not positive")

    def unit(self, upper: float) -> float:
        """Return the size by which a gap is judged: a nat of information."""
        return scale(self.units)

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return the bound that a level proves, in the program's units."""
        flint.ctx.prec = PRECISION
        level = number(dual["level"])
        if level <= 0 or not dual.get("objective", 1):  # x = 0 is feasible, and f ≥ 0
            return arb(0)
        filling = self._filling(level)
        bound = sharp(lambda: in_units(filling.lower(self.budget), self.units))
        return bound if bound > 0 else arb(0)

    def upper(self, primal: Mapping[str, Any]) -> WaterEvaluation:
        """Evaluate what is poured up to a level."""
        flint.ctx.prec = PRECISION
        level = number(primal["level"])
        if level <= 0:
            raise UnprovableError("the level is not positive")
        return WaterEvaluation(self, self._filling(level))

    def _filling(self, level: Fraction) -> Filling:
        """Return the water up to a level, which mostly is that of both ends."""
        if self._last is None or self._last.level != level:
            self._last = Filling(self.boxes, level)
        return self._last


class WaterEvaluation:
    """What is poured up to a level: whether it is too much, and what it is worth."""

    def __init__(self, proof: WaterProof, filling: Filling) -> None:
        self.feasible = filling.within(proof.budget)
        self.broken = [] if self.feasible else ["budget"]
        self.objective = nonnegative(sharp(lambda: in_units(filling.information, proof.units)))
        zero = Fraction(0)
        self.terms = {
            "risk": self.objective,
            "distortion": nonnegative(sharp(lambda: filling.beyond(zero))),
        }


def positive(values: Any, name: str) -> list[Number]:
    """Return a list of positive numbers, floats as they are and others as rationals."""
    if not isinstance(values, list) or not values:
        raise UnprovableError(f"the {name} are no list of numbers")
    numbers = [v if type(v) is float and 0 < v < math.inf else exactly(v) for v in values]
    if not all(v > 0 for v in numbers):
        raise UnprovableError(f"the {name} are not all positive")
    return numbers
