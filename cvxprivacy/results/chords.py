r"""Chords of the optimum as a function of the room in some bounds: they enclose its slopes.

Let V(r) be the optimum where each of these bounds b_j is b_j + a_j r, a_j > 0.  It is convex and
never rises, so that for any h > 0, any proved lower bound L of V(0), and any release of objective
U and of room −h or h (C17),

.. math:: \frac{L - U(-h)}{h} ≤ V'(0^-) ≤ V'(0^+) ≤ \min\Big\{0, \frac{U(h) - L}{h}\Big\}.

Releases and multipliers may be anybody's: what they prove is all that counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from flint import arb

from cvxprivacy_verifier.balls import UnprovableError, ball, ceil, floor

__all__ = ["Chords"]


class Chords:
    """Proved ends of V'(0⁻) and V'(0⁺).

    Parameters
    ----------
    proof : ChannelProof or CovarianceProof
        Of the program at r = 0.
    rates : mapping of str to Fraction
        a_j of each row or auxiliary that moves.
    """

    def __init__(self, proof: Any, rates: Mapping[str, Fraction]) -> None:
        self.proof = proof
        self.rates = {name: ball(rate) for name, rate in rates.items()}
        self.least = arb.neg_inf()
        self.steepest, self.flattest = arb.neg_inf(), arb(0)
        self._points: list[tuple[arb, arb]] = []

    @property
    def ends(self) -> tuple[float, float]:
        """A number at or below V'(0⁻), and one at or above V'(0⁺)."""
        return floor(self.steepest), ceil(self.flattest)

    def take_dual(self, dual: Any) -> None:
        """Raise L to the bound that multipliers prove."""
        bound = self.proof.lower(dual.to_dict()).lower()
        if bound.is_finite() and bound > self.least:
            self.least = bound
            for point in self._points:
                self._draw(*point)

    def take_primal(self, primal: Any) -> bool:
        """Draw the chord to a release that breaks nothing but the bounds that move, if it does."""
        try:
            evaluation = self.proof.upper(primal.to_dict())
        except UnprovableError:
            return False
        if not (set(evaluation.broken) <= self.rates.keys() <= evaluation.violation.keys()):
            return False
        room = arb.neg_inf()
        for name, rate in self.rates.items():
            violation = evaluation.violation[name]
            for excess in violation if isinstance(violation, list) else [violation]:
                # the least r for which the release is feasible, rounded up: V(r) is then no more
                room = room.max((excess / rate).upper())
        objective = evaluation.objective.upper()
        if not (room.is_finite() and objective.is_finite()):
            return False
        self._points.append((room, objective))
        self._draw(room, objective)
        return True

    def _draw(self, room: arb, objective: arb) -> None:
        # of (C17) the left side, and the right one; the best of all chords so far is kept
        if room < 0:
            self.steepest = self.steepest.max(((self.least - objective) / -room).lower())
        elif room > 0:
            self.flattest = self.flattest.min(((objective - self.least) / room).upper())
