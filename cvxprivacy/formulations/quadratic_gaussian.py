r"""The quadratic-Gaussian lower bound, and Gaussian rate, distortion and equivocation.

.. math::
   \begin{aligned}
   R_{QGLB}(D) = \min_{Σ} \quad & h(W) − ½ \log\det 2πe (Σ_{W|X} + B Σ Bᵀ), \quad
                                                                   B = Σ_{WX} Σ_X^{-1} \\
   \text{subject to} \quad & \mathrm{tr}\, Σ ≤ D, \quad 0 ≼ Σ ≼ Σ_X
   \end{aligned}

Rebollo-Monedero, Forné and Domingo-Ferrer, *From t-Closeness-Like Privacy to Postrandomization
via Information Theory*, IEEE TKDE 22(11), 2010, eq. (6): a lower bound of the privacy–distortion
function of every law with these second moments, and equal to it where W and X are jointly
Gaussian (Theorem 2).  With side information Z: Sankar, Rajagopalan and Poor, *Utility–Privacy
Tradeoffs in Databases: An Information-Theoretic Approach*, IEEE TIFS 8(6), 2013, Example 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from cvxprivacy.exact import rational
from cvxprivacy.formulations.covariance import CovarianceProblem
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.programs.covariance import CovarianceDual, ErrorCovariance
from cvxprivacy.programs.expression import Expression, Minimize
from cvxprivacy.programs.parameter import AttributeParameter
from cvxprivacy.solvers.closed_forms import entropy_excess, scalar_optimum
from cvxprivacy.validation import typed

__all__ = ["QuadraticGaussian"]


class QuadraticGaussian(CovarianceProblem):
    """min I(W; X̂) s.t. E ‖X − X̂‖² ≤ D for jointly Gaussian W and X: the QGLB.

    That is h(W) − ½ log det 2πe(Σ_W|X + BΣBᵀ), with B = Σ_WX Σ_X⁻¹, at its least over the error
    covariances 0 ≼ Σ ≼ Σ_X with tr Σ ≤ D: Rebollo-Monedero et al. 2010, eq. (6).  It bounds every
    law with these second moments from below (Theorem 2).

    Parameters
    ----------
    source : GaussianSource
        Second moments of W and X.
    budget : number or mapping of key variable to number
        D ≥ 0 on the trace of Σ, or one budget > 0 per attribute.
    weights : array_like, shape (|X|,) or (|X|, |X|), optional
        C of tr CΣ in place of the identity.
    cap : array_like, shape (|X|, |X|), optional
        M of a further constraint Σ ≼ M.
    entropy : number, optional
        h(W) in the problem's units, if W is not Gaussian: the value is then a lower bound of
        I(W; X̂) for any release within the budget, which may be negative
        (:func:`cvxprivacy.model.information.differential_entropy` estimates h from a sample).
    units : {"bits", "nats"}
        Of information.

    Raises
    ------
    InputError
        For anything that does not make a program.

    Examples
    --------
    One W and one X of correlation ρ have R(D) = −½ ln(1 − ρ²(1 − D)) (eqs. 7 and 8):

    >>> import cvxprivacy as cpv
    >>> source = cpv.GaussianSource.scalar(0.95)
    >>> solution = cpv.QuadraticGaussian(source, budget=0.5, units="nats").solve()
    >>> solution.status, round(solution.value, 6)
    ('certified', 0.300056)
    >>> from math import log
    >>> round(-0.5 * log(1 - 0.95**2 * 0.5), 6)
    0.300056
    """

    budget = AttributeParameter()

    def __init__(
        self,
        source: GaussianSource,
        budget: Any,
        *,
        weights: Any = None,
        cap: Any = None,
        entropy: Any = None,
        units: str = "bits",
    ) -> None:
        super().__init__(source, weights=weights, cap=cap, units=units)
        self.budget = budget
        self.entropy = None if entropy is None else typed(entropy, "entropy", negative=True)
        self._refuse_nothing(self.budget)

    def formulation(self) -> Formulation:
        budgets = QuadraticGaussian.budget.each(self)
        rows = {
            f"budget[{', '.join(names)}]" if names else "budget": self.distortion_of(names)
            <= budget
            for names, budget in budgets.items()
        }
        return Minimize(self.risk), rows  # h(W) − ½ log det 2πe(Σ_W|X + BΣBᵀ) s.t. tr Σ ≤ D

    @cached_property
    def risk(self) -> Expression:
        """I(W; X̂), or its lower bound where h(W) was given."""
        middle, radius = entropy_excess(self.source, self.entropy, self.units)
        return Expression(
            "risk",
            {"W": 1},
            constant=middle,
            constant_radius=radius,
            latex=rf"I({self._hidden}; \hat X)",
            views=self._views("W"),
        )

    def _notes(self) -> list[str]:
        if self.entropy is not None:
            return ["with the h(W) given, a lower bound of I(W; X̂) of any release in the budget"]
        if self.source.records is None:
            return []
        return ["of Gaussian variables with these moments; pass entropy= to bound other laws"]

    def _proposal(self) -> tuple[ErrorCovariance, CovarianceDual] | None:
        """Return eqs. (7)–(8), exact, for one W, one X and D < σ_X²: Σ = D."""
        if isinstance(self.budget, Mapping) or self.caps:
            return None
        return scalar_optimum(self.source, rational(self.cost[0, 0]), rational(self.budget))
