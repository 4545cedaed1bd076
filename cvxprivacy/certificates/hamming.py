r"""Both ends of R(D) = min I(X; X̂) s.t. Pr(X ≠ X̂) ≤ D, proved with any water level whatever.

Let λ ≥ 0, A = {x : p(x) > λ}, K = |A| ≥ 1, τ = Σ_{x ∉ A} p(x) and δ = (K − 1) λ + τ.

*Lower end.*  Any posteriors r(· | x̂) and s ≥ 0 prove R(D) ≥ Σ_x p(x) min_x̂ {log(r(x | x̂)/p(x))
+ s 1[x ≠ x̂]} − s D.  Take s = log((1 − δ)/λ) and, for x̂ in A, r(x | x̂) = 1 − δ at x = x̂, λ at
other x in A and p(x) outside A, in all 1.  The braces are then log((1 − δ)/p(x)) for x in A and s
for other x, whatever x̂ in A.  For x̂ outside A a law r with braces at least these exists: it needs
λ on A, p(x) outside and p(x̂)(1 − δ)/λ at x̂, in all 1 − (1 − δ − λ)(1 − p(x̂)/λ), which is at most
1, because p(x̂) ≤ λ and 1 − δ − λ = Σ_A (p − λ) ≥ 0.  Hence

.. math:: R(D) ≥ −\sum_A p \log p + (1 − D) \log(1 − δ) + (D − τ) \log λ = I_λ − s (D − δ),

a line in D that touches R at δ, where I_λ = −Σ_A p log p + (1 − δ) log(1 − δ) + (K − 1) λ log λ is
the mutual information of the channel of level λ.

*Upper end.*  That channel has Pr(X ≠ X̂) = δ.  If δ > D it is mixed with the identity, which has
(0, H(X)), and if δ < D with a constant, which has (1 − max p, 0), so that D is met.  I(X; X̂) is
convex in the channel: the chord is no less than what the mixture reveals.

λ, τ, δ and D are exact rationals, logarithms are in balls, ends are rounded outwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx

from cvxprivacy.certificates import verify
from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.sums import PRECISION, ball, exact_sum, rounded_down, sum_of_v_log_v
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray
from cvxprivacy.information import nat

__all__ = ["Filling", "HammingCertificate", "below", "interval"]


def below(masses: FloatArray, mass: Fraction) -> int:
    """Return how many of the increasing ``masses`` are at most ``mass``; never all of them."""
    found = np.searchsorted(masses, rounded_down(mass), side="right")
    return min(int(found), len(masses) - 1)


def interval(lower: arb, upper: arb, units: str) -> tuple[float, float]:
    """Return an interval of nonnegative information in ``units``, rounded outwards."""
    unit = arb(2).log() if units == "bits" else arb(1)
    return max(verify.floor(lower / unit), 0.0), verify.ceil(upper / unit)


@dataclass(frozen=True)
class Filling:
    """Water of level λ ≤ max p, in nats; the letters are those of the module's text."""

    level: Fraction  # λ
    kept: int  # K
    tail: Fraction  # τ
    most: Fraction  # 1 − max p
    inside: arb  # −Σ_A p log p
    outside: arb  # −Σ p log p of the others

    @classmethod
    def poured(
        cls,
        masses: FloatArray,
        total: Fraction,
        level: Fraction,
        sum_of: Callable[[FloatArray], arb] = sum_of_v_log_v,
    ) -> Filling:
        """Pour water over letters of the increasing ``masses`` > 0, whose sum is ``total``."""
        top = Fraction(float(masses[-1])) / total
        level = min(level, top)
        drowned = below(masses, level * total)
        tail = exact_sum(masses[:drowned])

        def entropy(part: FloatArray, mass: Fraction) -> arb:
            return (ball(mass) * ball(total).log() - sum_of(part)) / ball(total)

        inside = entropy(masses[drowned:], total - tail)
        outside = entropy(masses[:drowned], tail)
        return cls(level, len(masses) - drowned, tail / total, 1 - top, inside, outside)

    @property
    def distortion(self) -> Fraction:
        """δ."""
        return (self.kept - 1) * self.level + self.tail

    @property
    def rate(self) -> arb:
        """I_λ."""
        return self.inside - self._spread if self.kept > 1 else arb(0)  # one letter tells nothing

    @property
    def equivocation(self) -> arb:
        """H(X | X̂) of the channel of level λ."""
        return self.outside + self._spread

    @property
    def _spread(self) -> arb:
        """−(1 − δ) log(1 − δ) − (K − 1) λ log λ."""
        return -_v_log_v(1 - self.distortion) - (self.kept - 1) * _v_log_v(self.level)

    @property
    def slope(self) -> float:
        """s; 0 where nothing is revealed."""
        if self.kept == 1:
            return 0.0
        if not self.level:
            return math.inf
        return float((ball(1 - self.distortion) / ball(self.level)).log())

    def lower(self, budget: Fraction) -> arb:
        """Return the lower end of R(``budget``)."""
        if self.kept == 1:
            return arb(0)
        if not self.level:  # s = ∞ proves R(0) = H(X), and nothing about other D
            return arb(0) if budget else self.inside
        known = ball(1 - budget) * ball(1 - self.distortion).log()
        return self.inside + known + ball(budget - self.tail) * ball(self.level).log()

    def upper(self, budget: Fraction) -> arb:
        """Return the upper end of R(``budget``)."""
        own = self.distortion
        if own > budget:
            share = budget / own
            return ball(share) * self.rate + ball(1 - share) * (self.inside + self.outside)
        if budget >= self.most:
            return arb(0)
        return ball((self.most - budget) / (self.most - own)) * self.rate


class HammingCertificate(Certificate):
    """What is proved of a Hamming water-filling problem with its own level.

    ``program`` is the problem, ``primal`` its release and ``dual`` the slope s, in nats.  There is
    no proof file; that of a small alphabet is the one of ``channel_problem().solve()``.
    """

    def __init__(self, program: Any, accuracy: str, release: Any) -> None:
        filling, claims = self._proved(program, sum_of_v_log_v)
        lower, upper = claims.pop("optimum")
        status = verify.status(lower, upper, verify.TOLERANCE[accuracy] * nat(program.units))
        raw = {"primal": 0.0, "dual": 0.0}
        super().__init__(
            program, accuracy, status, lower, upper, release, filling.slope, claims, raw
        )

    @staticmethod
    def _proved(
        program: Any, sum_of: Callable[[FloatArray], arb]
    ) -> tuple[Filling, dict[str, tuple[float, float]]]:
        """Return the filling, and what it proves of the optimum and of the release."""
        with ctx.workprec(PRECISION):
            filling = Filling.poured(program.masses, program.total, program.level, sum_of)
            budget, units = program.budget, program.units
            own, rate = ball(filling.distortion), interval(filling.rate, filling.rate, units)
            return filling, {
                "optimum": interval(filling.lower(budget), filling.upper(budget), units),
                "rate": rate,
                "leakage": rate,  # W = X
                "equivocation": interval(filling.equivocation, filling.equivocation, units),
                "distortion": (verify.floor(own), verify.ceil(own)),
            }

    @property
    def residuals(self) -> dict[str, float]:  # type: ignore[override]
        """The optimality conditions at the exact level; the gap is rounding alone."""
        slack = float(self.program.budget - self.primal.distortion)
        return {
            "primal": max(-slack, 0.0),
            "dual": max(-self.dual, 0.0),
            "complementarity": self.dual * slack if slack else 0.0,
            "stationarity": 0.0,  # the posteriors are the release's own
        }

    def document(self) -> dict[str, Any]:
        problem, remedy = "a closed form has no proof file", "write that of channel_problem()"
        raise InputError("certificate", problem, remedy)

    def verify(self) -> bool:
        """Prove every claim again, with one ball for each distinct logarithm.

        Raises
        ------
        ValueError
            If a claim is not proved; the message lists which.
        """
        filling, proved = self._proved(self.program, _sum_in_balls)
        claims = {"optimum": (self.lower, self.upper), **self.terms}
        wrong = [
            f"the {name} is in [{low!r}, {high!r}]"
            for name, (low, high) in proved.items()
            if not (claims[name][0] <= low and high <= claims[name][1])
        ]
        if filling.distortion > self.program.budget or filling.distortion != self.primal.distortion:
            wrong.append(f"Pr(X ≠ X̂) is {float(filling.distortion)!r}")
        if wrong:
            raise ValueError("not verified: " + "; ".join(wrong))
        return True


def _v_log_v(value: Fraction) -> arb:
    return ball(value) * ball(value).log() if value else arb(0)


def _sum_in_balls(values: FloatArray) -> arb:
    """Return Σ v log v, one ball for each distinct v."""
    total = arb(0)
    distinct, times = np.unique(values, return_counts=True)
    for value, count in zip(distinct.tolist(), times.tolist(), strict=True):
        v = arb(value)
        total += count * v * v.log()
    return total
