r"""Measures with a gradient and a Hessian at every J > 0, for the interior-point method.

A function that is homogeneous of degree 1 has :math:`∇^2 F\, J = 0`; those here have

.. math:: ∇^2 F(J) = K^\top \mathrm{diag}(1/ω)\, K, \qquad K = I - u\, η^\top, \quad η^\top u = 1,

with u along J.
"""

from __future__ import annotations

from typing import NamedTuple

from cvxprivacy.exact import FloatArray
from cvxprivacy.leakage.base import Leakage

__all__ = ["Curvature", "Smooth"]


class Curvature(NamedTuple):
    """A Hessian (I − u ηᵀ)ᵀ diag(1/ω) (I − u ηᵀ) for every column, ``mean`` being ω."""

    mean: FloatArray
    along: FloatArray
    normal: FloatArray


class Smooth(Leakage):
    """A measure that states its own Hessian."""

    def gradient(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return ∇F of every column: the scores in 𝒮 at which the supremum is attained."""
        return self.inside(self.scores(joint, reference), reference)

    def curvature(self, joint: FloatArray, reference: FloatArray, slopes: FloatArray) -> Curvature:
        """Return ∇²F half-way between J and where the gradient is ``slopes``, by J's own mass.

        At either end alone far more steps are taken: outputs that lose their mass are the reason.
        """
        raise NotImplementedError

    def bend(self, joint: FloatArray, change: FloatArray, reference: FloatArray) -> FloatArray:
        """Return what ∇F has of second order in a change of J, relative changes clipped at 2."""
        raise NotImplementedError
