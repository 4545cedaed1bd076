"""The certificate of Hamming water-filling, over a million letters in a fraction of a second.

What it claims is what :mod:`cvxprivacy_verifier.hamming_proof` proves of the exact level, but
with NumPy's sums (:mod:`cvxprivacy.certificates.sums`) in place of a logarithm for each letter,
and wider on both sides by more than that proof is unsure of.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb, ctx

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.sums import PRECISION, exact_sum, rounded_down, sum_of_v_log_v
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.hamming import HammingProgram
from cvxprivacy.programs.water import LevelDual, WaterLevel
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ball, ceil, floor
from cvxprivacy_verifier.hamming_proof import ABSOLUTE, RELATIVE, Filling, Letters, scale

__all__ = ["HammingCertificate", "Masses", "enclosed"]


# log₂ of how many times a claim is wider than a sharp value: units and ends are rounded in between
ROUNDINGS, UNDERFLOWS = 4, 10


class Masses(Letters):
    """Masses > 0 of letters, increasing, with sums that are fast."""

    def __init__(self, masses: FloatArray, total: Fraction) -> None:
        self.masses, self.total = masses, total

    def below(self, mass: Fraction) -> int:
        below = np.searchsorted(self.masses, rounded_down(mass), side="right")
        return min(int(below), len(self) - 1)

    def mass(self, start: int, stop: int) -> Fraction:
        return exact_sum(self.masses[start:stop])

    def m_log_m(self, start: int, stop: int) -> arb:
        return sum_of_v_log_v(self.masses[start:stop])


def enclosed(lower: arb, upper: arb, units: str) -> tuple[float, float]:
    """Return an interval of nonnegative information in ``units`` that is proved once more."""
    unit = arb(2).log() if units == "bits" else arb(1)
    return max(floor(_wider(lower / unit)), 0.0), ceil(_wider(upper / unit))


def _wider(value: arb) -> arb:
    """Return a ball around every ball with a radius as of ``hamming_proof.sharp``."""
    if value.is_exact():  # and so is the other
        return value
    relative, absolute = arb(2) ** -(RELATIVE - ROUNDINGS), arb(2) ** -(ABSOLUTE - UNDERFLOWS)
    return value * arb(1, relative) + arb(0, absolute)


class HammingCertificate(Certificate):
    """What is proved of a Hamming water-filling problem with its own level."""

    def __init__(self, program: HammingProgram, accuracy: str, filling: Filling) -> None:
        budget, units = program.budget, program.units
        with ctx.workprec(PRECISION):
            rate = enclosed(filling.rate, filling.rate, units)
            left, distortion = filling.equivocation, _wider(ball(filling.distortion))
            terms = {
                "rate": rate,
                "leakage": rate,  # W = X
                "equivocation": enclosed(left, left, units),
                "distortion": (floor(distortion), ceil(distortion)),
            }
            lower, upper = enclosed(filling.lower(budget), filling.upper(budget), units)
        status = verify.status(lower, upper, verify.TOLERANCE[accuracy] * scale(units))
        primal, dual = WaterLevel(filling.level), LevelDual(filling.level)
        raw = {"primal": 0.0, "dual": 0.0}
        super().__init__(program, accuracy, status, lower, upper, primal, dual, terms, raw)
        self.slope = filling.slope  # s, in nats
        self._slack = float(budget - filling.distortion)

    @property
    def value_units(self) -> str:
        return str(self.program.units)  # the rate is minimised

    @property
    def residuals(self) -> dict[str, float]:
        """The optimality conditions at the exact level; the gap is rounding alone."""
        complementarity = self.slope * self._slack if self._slack else 0.0
        # the posteriors are the release's own
        return {**self.raw, "complementarity": complementarity, "stationarity": 0.0}
