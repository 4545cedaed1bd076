r"""The relative entropy of what one value of W is released as from a law r of outputs.

With J₀ the joint mass of a value w and x̂, and J₁ that of a letter that is nobody's, whose row is r,

.. math:: F(J) = J_1\, f(t), \qquad f(t) = t \log t - t + 1, \qquad
          t = \frac{J_0 / π_0}{J_1 / π_1} = \frac{p(x̂ \mid w)}{r(x̂)},

(A3) is convex and homogeneous, and ΣF is the share of J₁ times D(p(x̂ | w) ‖ r).  The least over r
of the greatest over w is the capacity of W → X̂: Gallager, *Source coding with side information and
universal coding*, MIT LIDS report 937, 1979; Csiszár, *A class of measures of informativity of
observation channels*, Periodica Mathematica Hungarica 2, 1972.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxprivacy.exact import TINY, Exact, FloatArray, floats, fractions
from cvxprivacy.leakage.base import GUARD, Curvature, Face, Places, Smooth, relative_change
from cvxprivacy.leakage.f_information import logarithmic_mean

__all__ = ["RelativeEntropy"]


class RelativeEntropy(Smooth):
    """D(p(x̂ | w) ‖ r) of one value of W, which has the label 0; the label 1 is that of r.

    No measure of W by itself: a problem with ``prior="any"`` is of one for each value.

    Examples
    --------
    A bit that is told rightly with probability 0.8 is, for both values together, least from the
    even law, by log 2 − h(0.8) nats:

    >>> import cvxprivacy as cpv
    >>> import numpy as np
    >>> from cvxprivacy.leakage.relative_entropy import RelativeEntropy
    >>> joint = np.array([[0.4, 0.1], [0.25, 0.25]])  # p(x̂ | w) and r, each half of the mass
    >>> value = RelativeEntropy().value(joint, np.array([0.5, 0.5])).sum() / 0.5
    >>> print(round(value, 4), round(np.log(2) * (1 - cpv.information.entropy([0.2, 0.8])), 4))
    0.1927 0.1927
    """

    kind = "relative entropy"
    in_units = centred = True
    meaning = "how far what a value of W is released as is from the law of what is released"

    @property
    def symbol(self) -> str:
        return "D"

    def latex(self, at: Places) -> str:
        law = rf"\frac{{{at.j}}}{{{at.pi}}}"
        return rf"{law} \, {at.log} \frac{{{at.j}}}{{{at.pi} \, r({at.observation})}}"

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        """Return log v/r of any v, for which Σ p(x̂ | w) log v/r is a minorant."""
        score = at.score("s")
        return score, []

    def rows(self, values: int) -> int:
        return 1

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        first, other = self._laws(joint, reference)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(first > 0, first * np.log(first / other), 0.0)
        value: FloatArray = logs - first + other
        return np.maximum(value, 0.0)

    def _laws(self, joint: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return t J₁ and J₁, which differ as p(x̂ | w) and r do."""
        return joint[0] * (reference[1] / reference[0]), joint[1]

    def _logs(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return log t."""
        first, other = self._laws(joint, reference)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(first) - np.log(other)
        logs = np.where(np.isfinite(logs), logs, np.where(first > 0, -np.log(GUARD), 0.0))
        return np.maximum(logs, np.log(GUARD))

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return self._logs(joint, reference)[None]

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        """Return (τ π₁/π₀, −f*(τ)), f*(τ) = e^τ − 1 (A4)."""
        logs = np.minimum(scores[0], 700.0)
        return np.stack([logs * (reference[1] / reference[0]), -np.expm1(logs)])

    def parameters(self, slopes: FloatArray, reference: FloatArray) -> FloatArray:
        return slopes[:1] * (reference[0] / reference[1])

    def curvature(self, joint: FloatArray, reference: FloatArray, slopes: FloatArray) -> Curvature:
        logs = self.parameters(slopes, reference)[0]
        first, other = self._laws(joint, reference)
        # of t J₁ between both ends; J₁ is the same at both, and has no curvature of its own
        mean = logarithmic_mean(first, self._logs(joint, reference) - logs)
        ratio = reference[0] / reference[1]
        mean = np.stack([mean * ratio**2, np.ones_like(mean)])
        along = np.stack([mean[0] / (ratio * np.maximum(other, TINY)), np.ones_like(other)])
        return Curvature(mean, along, np.stack([np.zeros_like(other), np.ones_like(other)]))

    def second_order(
        self, joint: FloatArray, change: FloatArray, reference: FloatArray
    ) -> FloatArray:
        first, other = self._laws(joint, reference)
        a, b = relative_change(change, np.maximum(joint, TINY))
        ratio = reference[1] / reference[0]
        return np.stack([
            0.5 * ratio * (b**2 - a**2),
            first / np.maximum(other, TINY) * b * (a - b),
        ])  # fmt: skip

    def face(self, prior: Exact, reference: Exact) -> Face | None:
        """Return the face of a law, J = π q: near t = 1 a score is τ (π₁/π₀, −1)."""
        direction = fractions(np.array([reference[1], -reference[0]]))[None]
        tau = floats(fractions(np.array([[reference[0]]])))
        return Face(fractions(np.zeros(2)), direction, np.zeros(1), tau)

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        first = x[0] * (reference[1] / reference[0])
        return cp.rel_entr(first, x[1]) - first + x[1], {}
