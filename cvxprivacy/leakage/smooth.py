r"""Measures with a gradient and a Hessian at every J > 0, for the interior-point method.

A function that is homogeneous of degree 1 has :math:`∇^2 F\, J = 0`; those here have

.. math:: ∇^2 F(J) = K^\top \mathrm{diag}(1/ω)\, K, \qquad K = I - u\, η^\top, \quad η^\top u = 1,

with u along J; of information that is (P5), summed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.leakage.base import Leakage

__all__ = ["GUARD", "Curvature", "Smooth", "relative_change"]

GUARD = 2.0**-60  # least ratio of a posterior to π that derivatives are taken at
_GREATEST = 2.0  # relative change of a mass that a second order is taken of


class Curvature(NamedTuple):
    """A Hessian (I − u ηᵀ)ᵀ diag(1/ω) (I − u ηᵀ) for every column, ``mean`` being ω."""

    mean: FloatArray
    along: FloatArray
    normal: FloatArray


class Smooth(Leakage):
    """A measure that states its own gradient and Hessian, which the interior-point method follows.

    Examples
    --------
    F is homogeneous of degree 1, so that its gradient says all: F(J) = ⟨∇F(J), J⟩.

    >>> import cvxprivacy as cpv
    >>> import numpy as np
    >>> joint, prior = np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([0.5, 0.5])
    >>> measure = cpv.leakage.ChiSquared()
    >>> isinstance(measure, cpv.leakage.Smooth)
    True
    >>> (measure.gradient(joint, prior) * joint).sum(axis=0).round(6).tolist()
    [0.18, 0.18]
    >>> measure.value(joint, prior).round(6).tolist()
    [0.18, 0.18]
    """

    def gradient(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return ∇F of every column: the scores in 𝒮 at which the supremum is attained (P7, P9).

        Parameters
        ----------
        joint : ndarray, shape (|W|, m)
            J > 0, for each released letter.
        reference : ndarray, shape (|W|,)
            π.
        """
        return self.inside(self.scores(joint, reference), reference)

    def curvature(self, joint: FloatArray, reference: FloatArray, slopes: FloatArray) -> Curvature:
        """Return ∇²F half-way between J and where the gradient is ``slopes``, by J's own mass.

        At either end alone far more steps are taken: outputs that lose their mass are the reason.

        Parameters
        ----------
        joint : ndarray, shape (|W|, m)
            J > 0, for each released letter.
        reference : ndarray, shape (|W|,)
            π.
        slopes : ndarray, shape (|W|, m)
            The gradient at the other end.
        """
        raise NotImplementedError

    def second_order(
        self, joint: FloatArray, change: FloatArray, reference: FloatArray
    ) -> FloatArray:
        """Return what ∇F has of second order in a change of J, relative changes clipped at 2.

        Parameters
        ----------
        joint : ndarray, shape (|W|, m)
            J > 0, for each released letter.
        change : ndarray, shape (|W|, m)
            What is added to J.
        reference : ndarray, shape (|W|,)
            π.
        """
        raise NotImplementedError


def relative_change(change: FloatArray, masses: FloatArray) -> FloatArray:
    """Return changes as shares of the masses > 0 that change, clipped at 2."""
    return np.clip(change / masses, -_GREATEST, _GREATEST)
