r"""Measures that are the largest of linear functions, stated once as a linear program (P12):

.. math:: F(J) = \min \{ρ^\top T : T ≥ 0,\ P T = x + b q\}
               = \max \{f^\top (x + b q) : P^\top f ≤ ρ\},

with x = A J from :meth:`~cvxprivacy.leakage.Leakage.lifted` in the first rows and 0 in others: T
is the *recourse* that J calls for, as in stochastic programming, and the first of f tell a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.leakage.base import Leakage

__all__ = ["Entries", "Polyhedral", "Recourse"]


class Recourse(NamedTuple):
    """P, shape (r, t); b, shape (r,); and ρ, shape (t,)."""

    matrix: FloatArray
    mass: FloatArray
    cost: FloatArray


class Entries(NamedTuple):
    """F(J) = max_v w(v) J(v), or Σ (J(v) − w(v) q)₊ if it is an ``excess``.

    ``parameters`` are by what multipliers of these rows are to be weighed to tell a score.
    """

    weights: FloatArray
    excess: bool
    parameters: FloatArray


class Polyhedral(Leakage):
    """A measure that states its linear program, which the interior-point method takes in.

    Examples
    --------
    The program of total variation, for a letter with the masses (0.4, 0.1) and a fair W.  Its
    optimum is q TV(p(w | x̂), p(w)) = 0.5 · 0.3:

    >>> import cvxprivacy as cpv
    >>> import numpy as np
    >>> from scipy.optimize import linprog
    >>> joint, prior = np.array([[0.4], [0.1]]), np.array([0.5, 0.5])
    >>> measure = cpv.leakage.TotalVariation()
    >>> matrix, mass, cost = measure.recourse(prior)
    >>> x = measure.lifted(joint, prior)[:, 0]  # J − π q
    >>> round(linprog(cost, A_eq=matrix, b_eq=x + mass * 0.5).fun, 6)
    0.15
    >>> measure.value(joint, prior).round(6).tolist()
    [0.15]
    """

    def recourse(self, reference: FloatArray) -> Recourse:
        """Return the linear program of which F is the value: P, b and ρ.

        Parameters
        ----------
        reference : ndarray, shape (|W|,)
            π.
        """
        raise NotImplementedError

    def entries(self, reference: FloatArray) -> Entries | None:
        """Return a statement with a row for each entry of J, if it has one.

        Parameters
        ----------
        reference : ndarray, shape (|W|,)
            π.
        """
        return None

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        matrix, share, cost = self.recourse(reference)
        moved = cp.Variable((matrix.shape[1], x.shape[1]), nonneg=True)
        first = np.eye(len(matrix), x.shape[0])
        return cost @ moved, {"recourse": matrix @ moved == first @ x + share[:, None] @ mass}
