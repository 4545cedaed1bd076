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
from cvxprivacy.formulations.side import who
from cvxprivacy.frozen import frozen
from cvxprivacy.model.gaussian import GaussianSource, entropy
from cvxprivacy.model.matrices import PRECISIONS, diagonal, rationals
from cvxprivacy.programs import CovarianceDual, ErrorCovariance, Minimize, Row, Term
from cvxprivacy.validation import typed

__all__ = ["GaussianEquivocation", "QuadraticGaussian"]


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
        self.budget = frozen(budget)
        self.entropy = None if entropy is None else typed(entropy, "entropy", negative=True)
        self._budgets = self._read(budget)

    def _read(self, budget: Any) -> dict[str, Row]:
        if not isinstance(budget, Mapping):
            bound = typed(budget, "budget")
            if bound == 0 and not definite(rationals(self.cost)):
                remedy = "pass a budget > 0, or weigh every key variable"
                raise InputError("budget", "0 where some error counts nothing", remedy)
            return {"budget": self.distortion <= bound}
        rows, size = {}, len(self.source.x)
        names = [self.source.names[i] for i in self.source.x]
        for name, value in budget.items():
            if name not in names:
                remedy = f"use one of {', '.join(names)}"
                raise InputError("budget", f"no key variable {name!r}", remedy, value=name)
            own = diagonal([int(i == names.index(name)) for i in range(size)])
            latex = rf"\mathrm{{E}}\, (X - \hat X)_{{\text{{{name}}}}}^2"
            term = Term(name, cost=self.embedded(own), latex=latex)
            rows[f"budget[{name}]"] = term <= typed(value, "budget", zero=False, where=name)
        if not rows:
            raise InputError("budget", "no budget", "pass a number, or one per attribute")
        return rows

    @cached_property
    def risk(self) -> Term:
        """I(W; X̂), or its lower bound where h(W) was given."""
        middle, radius = self._excess()
        return Term(
            "risk",
            {"W": 1},
            constant=middle,
            constant_radius=radius,
            latex=r"I(W; \hat X)",
        )

    def _excess(self) -> tuple[Fraction, Fraction]:
        """Return what the h(W) given is more than that of Gaussian W, and how far that is off."""
        if self.entropy is None:
            return Fraction(0), Fraction(0)
        law = self.source.law(self.source.w, self.source.w)
        with ctx.workprec(PRECISIONS[0]):
            value = arb(fmpq(*self.entropy.as_integer_ratio())) - entropy(law, self.units)
            return _ratio(value.mid()), _ratio(value.rad())

    def notes(self) -> list[str]:
        if self.entropy is not None:
            return ["with the h(W) given, a lower bound of I(W; X̂) of any release in the budget"]
        if self.source.records is None:
            return []
        return ["of Gaussian variables with these moments; pass entropy= to bound other laws"]

    def proposal(self) -> tuple[ErrorCovariance, CovarianceDual] | None:
        """Return eqs. (7)–(8), exact, for one W, one X and D < σ_X²: Σ = D."""
        source = self.source
        if len(source.w) != 1 or len(source.x) != 1 or source.w == source.x or self.caps:
            return None
        (i,), (j,), law = source.w, source.x, source.exact
        scale = rational(self.cost[0, 0])
        rows = list(self._budgets.values())
        if isinstance(self.budget, Mapping) or not 0 < rows[0].bound < scale * law[j][j]:  # type: ignore[operator]
            return None
        error = rows[0].bound / scale  # type: ignore[operator]
        b = law[i][j] / law[j][j]
        posterior = 1 / (law[i][i] - b * law[i][j] + b * b * error)
        one = [[Fraction(1)]]
        return ErrorCovariance(one, [[error]]), CovarianceDual(
            {"budget": b * b * posterior / 2 / scale},
            {"W": (one, [[posterior]])},
            {"": (one, [[Fraction(0)]])},
        )

    def objective(self) -> Term:
        return Minimize(self.risk)  # h(W) − ½ log det 2πe(Σ_W|X + BΣBᵀ)

    def subject_to(self) -> Mapping[str, Row]:
        return self._budgets  # tr Σ ≤ D


class GaussianEquivocation(CovarianceProblem):
    """Least rate under a leakage cap, or least leakage under a rate cap, at distortion D.

    Over Σ = Cov(X | U, Z) with 0 ≼ Σ ≼ Σ_X|Z and tr Σ ≤ D:

        rate     R = ½ log det Σ_X|Z − ½ log det Σ
        leakage  L = I(W; U, Z) = h(W) − ½ log det 2πe(Σ_W|XZ + BΣBᵀ),  B = Σ_WX|Z Σ_X|Z⁻¹

    Parameters
    ----------
    source : GaussianSource
        With ``side=`` where Z is known.
    budget : number
        D.
    minimize : {"rate", "leakage"}
    max_leakage, max_rate : number, optional
        In the problem's units.
    side_information : {None, "decoder", "both"}
        Who knows Z: nobody, the user, or user and encoder.  For Gaussians the last two have the
        same region (no rate loss).
    encoder : {"x", "wx"}
        What is encoded: X, or W and X.
    units : {"bits", "nats"}
    """

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
        if minimize not in ("rate", "leakage"):
            raise InputError("minimize", f"{minimize!r}", 'use "rate" or "leakage"')
        if encoder not in ("x", "wx"):
            raise InputError("encoder", f"{encoder!r} is unknown", 'use "x" or "wx"')
        who(side_information)
        super().__init__(source, given=side_information is not None, encoder=encoder, units=units)
        if self.given and not source.z:
            raise InputError("source", "no side information", "make it with side=")
        self.minimize, self.side_information = minimize, side_information
        self.budget = typed(budget, "budget", zero=False)
        self.limits = {
            name: typed(value, name)
            for name, value in (("max_leakage", max_leakage), ("max_rate", max_rate))
            if value is not None
        }

    def objective(self) -> Term:
        return Minimize(self.rate if self.minimize == "rate" else self.risk)

    def subject_to(self) -> Mapping[str, Row]:
        named = {"max_leakage": self.risk, "max_rate": self.rate}
        limits = {name: named[name] <= value for name, value in self.limits.items()}
        return {"budget": self.distortion <= self.budget, **limits}

    def terms(self) -> dict[str, Term]:
        return {"rate": self.rate, "leakage": self.risk, "distortion": self.distortion}

    @property
    def entropy(self) -> float:
        """h(W): the equivocation h(W | U, Z) is this less the leakage."""
        return float(entropy(self.source.law(self.source.w, self.source.w), self.units))


def _ratio(value: arb) -> Fraction:
    """Return the number that a ball of radius 0 is."""
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
