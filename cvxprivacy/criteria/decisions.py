"""Whether what records leak is at most a bound: decided in whole numbers, and in balls.

A sum of logarithms of rationals is enclosed at a precision that grows; where no ball can tell it
from zero, it is zero just if the product of the rationals' powers is 1, which their prime factors
tell.  Measures without roots are rational.  A measure is read as proofs read it, from its data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq, fmpz

from cvxprivacy_verifier.measures import Measure, measure_of

__all__ = ["LeakageTerm", "at_least_zero", "at_most", "common", "within"]

_BITS = 4096  # the most that a ball gets to tell an irrational number from a bound
_FACTORED = 512  # bits at which a sum of logarithms that no ball tells from zero is factored
Logarithms = Sequence[tuple[Fraction | int, Fraction]]  # Σ c log r


@dataclass(frozen=True)
class LeakageTerm:
    """weight · F(J): what the records J of some values leak in a measure, π in whole masses.

    Attributes
    ----------
    data : mapping
        The measure, as proofs read it.
    joint, masses : sequence of int
        J, and the masses whose shares are π > 0.
    weight : Fraction
    """

    data: Mapping[str, Any]
    joint: Sequence[int]
    masses: Sequence[int]
    weight: Fraction = Fraction(1)

    @property
    def logarithms(self) -> Logarithms | None:
        """Σ J log(J/(π q)), if the measure is mutual information."""
        if self.data["kind"] != "mutual information":
            return None
        total, q = sum(self.masses), sum(self.joint)
        pairs = zip(self.joint, self.masses, strict=True)
        return [(self.weight * j, Fraction(j * total, p * q)) for j, p in pairs if j]

    def measure(self, nat: arb) -> Measure:
        total = sum(self.masses)
        return measure_of(self.data, [arb(fmpq(p, total)) for p in self.masses], nat)

    def exactly(self) -> Fraction | None:
        """Return the value, where it is known to be rational."""
        value = self.measure(arb(1)).exactly([fmpz(j) for j in self.joint], self.masses)
        return None if value is None else self.weight * Fraction(int(value.p), int(value.q))

    def enclosure(self, nat: arb) -> arb:
        """Return the value in a ball of the precision at work, a nat being in its units."""
        value = self.measure(nat).value([arb(j) for j in self.joint])
        return arb(_fmpq(self.weight)) * value


def at_most(
    leaked: Iterable[LeakageTerm], most: Fraction, units: str, off: Fraction = Fraction(0)
) -> bool | None:
    """Tell whether Σ F(J) ≤ a bound that is within ``off`` of ``most``; None where no ball tells.

    Parameters
    ----------
    units : {"bits", "nats"}
        Of information.
    """
    form: list[tuple[Fraction | int, Fraction]] = []
    others: list[LeakageTerm] = []
    for each in leaked:
        if (logarithms := each.logarithms) is not None:
            form += logarithms
        elif (value := each.exactly()) is not None:
            most -= value
        else:
            others.append(each)
    if not others and not off:
        return _informs_at_most(form, most, units)
    bits = 128
    while bits <= _BITS:
        with ctx.workprec(bits):
            nat = 1 / arb(2).log() if units == "bits" else arb(1)
            value = _sum(form) * nat + sum((each.enclosure(nat) for each in others), arb(0))
            spare = arb(_fmpq(most)) - value
            if spare >= arb(_fmpq(off)):
                return True
            if spare < -arb(_fmpq(off)):
                return False
        bits *= 2
    return None


def within(ratio: Fraction, exponent: Fraction) -> bool:
    """Tell whether r ≤ e^ε; for ε ≠ 0 they are never equal."""
    return at_least_zero([(-1, ratio)], exponent) if ratio else True


def _informs_at_most(form: Logarithms, most: Fraction, units: str) -> bool:
    """Tell whether Σ c log r ≤ most, in bits or in nats."""
    negative: Logarithms = [(-c, r) for c, r in form]
    if units == "bits":  # most · log 2 is one more logarithm
        return at_least_zero([*negative, (most, Fraction(2))])
    return at_least_zero(negative, most)


def at_least_zero(form: Logarithms, added: Fraction = Fraction(0)) -> bool:
    """Tell whether Σ c log r + added ≥ 0: exactly, as e to a rational power ≠ 0 is no rational."""
    bits = 128
    while True:
        with ctx.workprec(bits):
            value = _sum(form) + arb(_fmpq(added))
            if value > 0 or value < 0:
                return bool(value > 0)
        if bits == _FACTORED and _is_one(form):
            return added >= 0
        bits *= 2


def _sum(form: Logarithms) -> arb:
    return sum((arb(_fmpq(Fraction(c))) * arb(_fmpq(r)).log() for c, r in form), arb(0))


def _is_one(form: Logarithms) -> bool:
    """Tell whether Π r^c is 1, by prime factors."""
    powers: dict[int, Fraction] = {}
    for c, r in form:
        for sign, part in ((1, r.numerator), (-1, r.denominator)):
            for prime, power in fmpz(part).factor() if part > 1 else ():
                powers[int(prime)] = powers.get(int(prime), Fraction(0)) + sign * c * int(power)
    return not any(powers.values())


def _fmpq(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def common(masses: Iterable[float | Fraction]) -> list[int]:
    """Return masses in whole numbers of one unit."""
    exact = [Fraction(mass) for mass in masses]
    unit = math.lcm(*(mass.denominator for mass in exact)) if exact else 1
    return [int(mass * unit) for mass in exact]
