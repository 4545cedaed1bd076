"""Gaussian rate, distortion and equivocation, with and without side information.

Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An Information-Theoretic
Approach*, IEEE TIFS 8(6), 2013, Example 2, and its vector form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvxprivacy.formulations.covariance import CovarianceProblem
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.matrices import entropy
from cvxprivacy.programs.alphabet import check_side_information
from cvxprivacy.programs.expression import Expression, Minimize
from cvxprivacy.programs.parameter import Parameter
from cvxprivacy.validation import one_of

__all__ = ["GaussianEquivocation"]


class GaussianEquivocation(CovarianceProblem):
    """Least rate under a leakage cap, or least leakage under a rate cap, at distortion D.

    Over Σ = Cov(X | U, Z) with 0 ≼ Σ ≼ Σ_X|Z and tr Σ ≤ D:

    - rate R = ½ log det Σ_X|Z − ½ log det Σ,
    - leakage L = I(W; U, Z) = h(W) − ½ log det 2πe(Σ_W|XZ + BΣBᵀ), with B = Σ_WX|Z Σ_X|Z⁻¹.

    Sankar et al. 2013, Example 2, in vector form.

    Parameters
    ----------
    source : GaussianSource
        With ``side=`` where Z is known.
    budget : number
        D > 0, in squared units of X.
    minimize : {"rate", "leakage"}
        Which of the two is least; the other may be bounded.
    max_leakage : number, optional
        The most that may leak, in the problem's units.
    max_rate : number, optional
        The most that the rate may be, in the problem's units.
    side_information : {None, "decoder", "both"}
        Who knows Z: nobody, the user, or user and encoder.  For Gaussians the last two have the
        same region (no rate loss).
    encoder : {"x", "wx"}
        What is encoded: X, or W and X.
    units : {"bits", "nats"}
        Of rate and leakage.

    Raises
    ------
    InputError
        For anything that does not make a program.

    Examples
    --------
    One X of variance 1 at D = ¼ has the rate ½ log₂ 1/D = 1 bit; a W of correlation ρ = 0.8 then
    leaks −½ log₂(1 − ρ²(1 − D)) = 0.4717 bits:

    >>> import cvxprivacy as cpv
    >>> problem = cpv.GaussianEquivocation(cpv.GaussianSource.scalar(0.8), 0.25)
    >>> solution = problem.solve()
    >>> round(solution.rate, 4), round(solution.leakage, 4)
    (1.0, 0.4717)
    >>> from math import log2
    >>> round(-0.5 * log2(1 - 0.8**2 * (1 - 0.25)), 4)
    0.4717

    A cap below that leaves no release at this budget:

    >>> try:
    ...     problem.with_constraint("cap", problem.risk <= 0.3).solve()
    ... except cpv.InfeasibleError as error:
    ...     print(sorted(error.conflict))
    ['budget', 'cap']
    """

    budget = Parameter(zero=False)
    max_leakage = Parameter(optional=True)
    max_rate = Parameter(optional=True)

    def __init__(
        self,
        source: GaussianSource,
        budget: Any,
        *,
        minimize: str = "rate",
        max_leakage: Any = None,
        max_rate: Any = None,
        side_information: str | None = None,
        encoder: str = "x",
        units: str = "bits",
    ) -> None:
        one_of(minimize, "minimize", "rate", "leakage")
        conditional = side_information is not None
        super().__init__(source, given=conditional, encoder=encoder, units=units)
        check_side_information(source, side_information)
        self.minimize, self.side_information = minimize, side_information
        self.budget, self.max_leakage, self.max_rate = budget, max_leakage, max_rate

    def formulation(self) -> Formulation:
        rows = {"budget": self.distortion <= self.budget}  # tr Σ ≤ D
        if self.max_leakage is not None:
            rows["max_leakage"] = self.risk <= self.max_leakage  # I(W; U, Z) ≤ L
        if self.max_rate is not None:
            rows["max_rate"] = self.rate <= self.max_rate  # I(X; U | Z) ≤ R
        return Minimize(self.rate if self.minimize == "rate" else self.risk), rows

    def quantities(self) -> Mapping[str, Expression]:
        return {"rate": self.rate, "leakage": self.risk, "distortion": self.distortion}

    @property
    def entropy(self) -> float:
        """h(W): the equivocation h(W | U, Z) is this less the leakage."""
        return float(entropy(self.source.law(self.source.w, self.source.w), self.units))
