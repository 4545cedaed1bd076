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
from fractions import Fraction
from functools import cached_property
from typing import Any

from flint import arb, ctx, fmpq

from cvxprivacy.certificates.covariance_proof import definite
from cvxprivacy.errors import InputError
from cvxprivacy.exact import rational
from cvxprivacy.formulations.covariance import CovarianceProblem
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.model.gaussian import GaussianSource, entropy
from cvxprivacy.model.matrices import PRECISIONS, diagonal, rationals
from cvxprivacy.programs.covariance import CovarianceDual, ErrorCovariance
from cvxprivacy.programs.expression import Expression, Minimize
from cvxprivacy.programs.parameter import AttributeParameter
from cvxprivacy.validation import typed

__all__ = ["QuadraticGaussian"]


class QuadraticGaussian(CovarianceProblem):
    """min I(W; X̂) s.t. E ‖X − X̂‖² ≤ D for jointly Gaussian W and X: the QGLB.

    Parameters
    ----------
    source : GaussianSource
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

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.GaussianSource.scalar(0.95)
    >>> solution = cpv.QuadraticGaussian(source, budget=0.5, units="nats").solve()
    >>> solution.status, round(solution.value, 6)
    ('certified', 0.300056)
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
        if self.budget == 0 and not definite(rationals(self.cost)):
            remedy = "pass a budget > 0, or weigh every key variable"
            raise InputError("budget", "0 where some error counts nothing", remedy)
        _ = self._formulated  # refuses a budget of what is no key variable

    def formulation(self) -> Formulation:
        budgets = QuadraticGaussian.budget.each(self)
        rows = {
            f"budget[{', '.join(names)}]" if names else "budget": self._error(names) <= budget
            for names, budget in budgets.items()
        }
        return Minimize(self.risk), rows  # h(W) − ½ log det 2πe(Σ_W|X + BΣBᵀ) s.t. tr Σ ≤ D

    def _error(self, names: tuple[str, ...]) -> Expression:
        """E ‖X − X̂‖², or of some attributes."""
        if not names:
            return self.distortion
        known = [self.source.names[i] for i in self.source.x]
        for name in names:
            if name not in known:
                remedy = f"use one of {', '.join(known)}"
                raise InputError("budget", f"no key variable {name!r}", remedy, value=name)
        said = ", ".join(names)
        cost = self._embedded(diagonal([int(name in names) for name in known]))
        latex = rf"\mathrm{{E}}\, (X - \hat X)_{{\text{{{said}}}}}^2"
        return Expression(said, cost=cost, latex=latex)

    @cached_property
    def risk(self) -> Expression:  # type: ignore[override]
        """I(W; X̂), or its lower bound where h(W) was given."""
        middle, radius = self._excess()
        return Expression(
            "risk",
            {"W": 1},
            constant=middle,
            constant_radius=radius,
            latex=r"I(W; \hat X)",
            views=self._views("W"),
        )

    def _excess(self) -> tuple[Fraction, Fraction]:
        """Return what the h(W) given is more than that of Gaussian W, and how far that is off."""
        if self.entropy is None:
            return Fraction(0), Fraction(0)
        law = self.source.law(self.source.w, self.source.w)
        with ctx.workprec(PRECISIONS[0]):
            value = arb(fmpq(*self.entropy.as_integer_ratio())) - entropy(law, self.units)
            return _ratio(value.mid()), _ratio(value.rad())

    def _notes(self) -> list[str]:
        if self.entropy is not None:
            return ["with the h(W) given, a lower bound of I(W; X̂) of any release in the budget"]
        if self.source.records is None:
            return []
        return ["of Gaussian variables with these moments; pass entropy= to bound other laws"]

    def _proposal(self) -> tuple[ErrorCovariance, CovarianceDual] | None:
        """Return eqs. (7)–(8), exact, for one W, one X and D < σ_X²: Σ = D."""
        source = self.source
        if len(source.w) != 1 or len(source.x) != 1 or source.w == source.x or self.caps:
            return None
        (i,), (j,), law = source.w, source.x, source.exact
        scale = rational(self.cost[0, 0])
        budget = None if isinstance(self.budget, Mapping) else Fraction(self.budget)
        if budget is None or not 0 < budget < scale * law[j][j]:
            return None
        error = budget / scale
        b = law[i][j] / law[j][j]
        posterior = 1 / (law[i][i] - b * law[i][j] + b * b * error)
        one = [[Fraction(1)]]
        return ErrorCovariance(one, [[error]]), CovarianceDual(
            {"budget": b * b * posterior / 2 / scale},
            {"W": (one, [[posterior]])},
            {"": (one, [[Fraction(0)]])},
        )


def _ratio(value: arb) -> Fraction:
    """Return the number that a ball of radius 0 is."""
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
