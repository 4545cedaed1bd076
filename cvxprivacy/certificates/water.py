"""The certificate of water in boxes, over a million boxes in a second.

What it claims is what :mod:`cvxprivacy_verifier.water_proof` proves of the same level, by the same
functions; arrays only part the boxes, and add up floats, faster.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.sums import exact_sum
from cvxprivacy.exact import Exact, floats, plain, rational
from cvxprivacy.programs.water import LevelDual, WaterLevel, WaterProgram
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ceil, exactly, floor
from cvxprivacy_verifier.water_proof import (
    MARGIN,
    Boxes,
    Parts,
    WaterProof,
    exact_place,
    floor_float,
)

__all__ = ["TypedBoxes", "WaterCertificate", "boxes_of", "places"]

Places = npt.NDArray[np.int64]
SMALL = 2.0**-1000  # below, a float of a rational has lost digits, or is 0


class TypedBoxes(Boxes):
    """Boxes of numbers as they were typed: floats, or rationals."""

    _last: tuple[int, Any, arb] | None = None  # a sum of reciprocals, for the level and its proof

    def reciprocals(self, gains: Any) -> arb:
        if self._last is None or self._last[0] != ctx.prec or self._last[1] != gains:
            self._last = ctx.prec, gains, super().reciprocals(gains)
        return self._last[2]

    def some(self, values: Exact, where: Any = slice(None)) -> list[Any]:
        """Return some numbers as the proof reads them in a document: floats where they are."""
        return [_typed(value) for value in values[where].tolist()]


class FloatBoxes(TypedBoxes):
    """Boxes of floats in arrays."""

    def some(self, values: Exact, where: Any = slice(None)) -> list[Any]:
        return values[where].tolist()

    def at(self, level: Fraction) -> Parts:
        if self.gains is None:
            full = self.caps <= floor_float(level)  # exactly c ≤ v, as c is a float
            return Parts(self.caps[full], self.some(self.caps, ~full), [], [], [])
        where = places(self.gains, self.caps, level, level)  # exactly, but for 0
        for i in np.flatnonzero(where == 0).tolist():
            where[i] = exact_place(float(self.gains[i]), float(self.caps[i]), exactly(level))
        pairs = [(values, where == place) for place in (2, 1) for values in (self.caps, self.gains)]
        return Parts(self.caps[where == -1], *(self.some(*pair) for pair in pairs))

    def summed(self, values: Any) -> Any:
        return exactly(exact_sum(np.asarray(values, float))) if len(values) else exactly(0)


def places(gains: Exact | None, caps: Exact, low: Fraction, high: Fraction) -> Places:
    """Return −1 for a box that is full from low to high, 1 for a dry one, 2 for a wet one.

    0 where floats do not know.  Everything is taken in units of a power of two next to ``low``,
    so that what is lost beyond the range of floats is far from both levels.
    """
    shift = low.numerator.bit_length() - low.denominator.bit_length()
    ends = (floor_float(level / Fraction(2) ** shift) for level in (low, high))
    least, most = (end * (1.0 + sign * MARGIN) for end, sign in zip(ends, (-1, 1), strict=True))
    size = floats(caps)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        offset = np.zeros(len(size))
        if gains is not None:
            mantissa, exponent = np.frexp(floats(gains))  # 1/g without over- or underflow
            offset = np.ldexp(1.0 / mantissa, -exponent - shift)
        top = offset + np.ldexp(size, -shift)
    full, dry, wet = top < least, offset > most, (offset < least) & (most < top)
    where = np.select([full, dry, wet], [-1, 1, 2], 0)
    for values in (gains, caps):
        if values is not None and values.dtype.kind != "f":  # rationals that no float is near
            where[floats(values) < SMALL] = 0
    return where


def boxes_of(gains: Exact | None, caps: Exact) -> TypedBoxes:
    """Return boxes of numbers as they were typed."""
    if caps.dtype.kind == "f" and (gains is None or gains.dtype.kind == "f"):
        return FloatBoxes(gains, caps)
    read = TypedBoxes(None, []).some
    return TypedBoxes(None if gains is None else read(gains), read(caps))


def _typed(value: Any) -> Any:
    """Return a number as the proof reads it in a document: a float where it is one."""
    number = plain(rational(value))
    return number if type(number) is float else exactly(number)


class _Proof(WaterProof):
    """The proof of boxes that were typed, and not read from a document."""

    def __init__(self, program: WaterProgram, boxes: Boxes) -> None:
        self.units, self.boxes, self.budget = program.units, boxes, program.budget


class WaterCertificate(Certificate):
    """What is proved of water in boxes by a level."""

    def __init__(
        self, program: WaterProgram, accuracy: str, boxes: Boxes, level: Fraction, price: float
    ) -> None:
        proof, dual = _Proof(program, boxes), LevelDual(level)
        primal: WaterLevel | None = WaterLevel(level)
        with ctx.workprec(ctx.prec):  # which the proof sets
            evaluation = proof.upper(dual.to_dict())  # primal and dual are the same level
            lower = proof.lower(dual.to_dict())
        upper, terms = ceil(evaluation.objective), evaluation.terms
        if not evaluation.feasible:  # which would be an error of the level that was proposed
            upper, terms, primal = math.inf, {}, None
        ends = floor(lower), upper
        status = verify.status(*ends, verify.TOLERANCE[accuracy] * proof.unit(upper))
        claims = {name: (floor(value), ceil(value)) for name, value in terms.items()}
        raw = {"primal": 0.0, "dual": 0.0}
        super().__init__(program, accuracy, status, *ends, primal, dual, claims, raw)
        self._price = price
        self._slack = (
            float(max(exactly(program.budget) - exactly(claims["distortion"][1]), 0))
            if claims
            else 0.0
        )

    @property
    def value_units(self) -> str:
        return str(self.program.units)  # information is minimised

    @property
    def residuals(self) -> dict[str, float]:
        """The optimality conditions at the level; the gap is rounding alone."""
        complementarity = self._price * self._slack
        return {**self.raw, "complementarity": complementarity, "stationarity": 0.0}
