r"""The categorical example: W = X, and every change of a letter costs the same.

.. math::
   \begin{aligned}
   R(D) = \min_{p(x̂ | x)} \quad & I(X; X̂) \\
   \text{subject to}      \quad & \Pr(X ≠ X̂) ≤ D
   \end{aligned}

has a closed form: Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An
Information-Theoretic Approach*, IEEE TIFS 8(6), 2013, Example 1, eqs. (13)–(18).  A water level λ
is poured until D(λ) = Σ_x min(p(x), λ) − λ is D.  Letters with p(x) ≤ λ are never released, and

.. math:: p(x̂) ∝ (p(x̂) − λ)^+, \qquad
          p(x | x̂) = \begin{cases} 1 − D & x = x̂ \\ \min(p(x), λ) & x ≠ x̂ \end{cases}

so that a release says nothing about letters under the water.  With A = {x : p(x) > λ}, K = |A|
and τ = Σ_{x ∉ A} p(x), the equivocation is Γ(D) = −(1 − D) log(1 − D) − (K − 1) λ log λ −
Σ_{x ∉ A} p(x) log p(x), and R(D) = H(X) − Γ(D).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy.typing as npt

from cvxprivacy.exact import Real
from cvxprivacy.formulations.categorical import SHAPE, CategoricalProblem
from cvxprivacy.model.laws import frequencies, probabilities, tabulated

__all__ = ["HammingWaterFilling"]


class HammingWaterFilling(CategoricalProblem):
    """min I(X; X̂) s.t. Pr(X ≠ X̂) ≤ D over p(x̂ | x), in closed form and proved.

    Parameters
    ----------
    pmf : array_like, shape (|X|,)
        Law of X; letters of probability zero are allowed.  The sum may be off 1 by at most 1e-9
        and is then divided out exactly.  Fractions and Decimals are kept exactly, or refused.
    budget : float, Fraction or Decimal
        D, 0 ≤ D ≤ 1; from 1 − max p on nothing is revealed.
    x : sequence, optional
        Labels of the letters, by default the index of a pandas series, or 0, 1, ….
    units : {"bits", "nats"}

    Attributes
    ----------
    law : ndarray, shape (|X|,)
        The masses as given; ``masses`` are the positive ones, increasing, and ``total`` their sum.
    level : Fraction
        λ, the exact solution of D(λ) = D; max p where D ≥ 1 − max p.
    records : int or None
        Number of records, of a problem made by :meth:`from_counts`.

    Raises
    ------
    InputError
        For masses that make no law, labels that do not fit, or a D that is no probability.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> problem = cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], 0.4, units="nats")
    >>> solution = problem.solve()
    >>> solution.status, round(solution.value, 6), solution.release.kept
    ('certified', 0.173964, [0, 1, 2])

    A level of somebody else's stands for its release:

    >>> problem.certify(problem.level).status, problem.certify(0.05).status
    ('certified', 'loose')
    """

    def __init__(
        self,
        pmf: npt.ArrayLike,
        budget: Real,
        *,
        x: Sequence[Hashable] | None = None,
        units: str = "bits",
    ) -> None:
        table, otherwise = tabulated(pmf, variables=[1]), "HammingWaterFilling.from_counts"
        law = probabilities(table.values, "pmf", SHAPE, axes=(1,), otherwise=otherwise)
        self._set(law, table, budget, x, units, None)

    @classmethod
    def from_counts(
        cls,
        counts: npt.ArrayLike,
        budget: Real,
        *,
        x: Sequence[Hashable] | None = None,
        units: str = "bits",
    ) -> HammingWaterFilling:
        """State the problem of a table with these numbers of records of each letter.

        Parameters
        ----------
        counts : array_like, shape (|X|,)
            Records of each letter, whole numbers from 0 to 2⁵³; the law is exactly counts / N.
        budget : float, Fraction or Decimal
            D, 0 ≤ D ≤ 1.
        x : sequence, optional
            Labels of the letters, by default the index of a pandas series, or 0, 1, ….
        units : {"bits", "nats"}
            Of the value.

        Raises
        ------
        InputError
            For entries that are not whole numbers from 0 to 2⁵³, or no record at all.
        """
        table, problem = tabulated(counts), cls.__new__(cls, counts, budget, x=x, units=units)
        law, records = frequencies(table.values, "counts", SHAPE, axes=(1,))
        problem._set(law, table, budget, x, units, records)
        return problem._seal()

    @property
    def _maker(self) -> Any:
        return type(self) if self.records is None else type(self).from_counts
