"""Rate, distortion and equivocation of a database, with and without side information.

Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An Information-Theoretic
Approach*, IEEE TIFS 8(6), 2013.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.formulations.strategies import StrategyProblem
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs.expression import Expression, Minimize
from cvxprivacy.programs.parameter import AttributeParameter, Parameter, Scalar, indexed
from cvxprivacy.validation import integer, typed

__all__ = ["RateDistortionEquivocation"]

_QUANTITIES = ("rate", "leakage", "distortion")


class RateDistortionEquivocation(StrategyProblem):
    """Least rate, least leakage or a weighted sum, under the bounds given.

    Over the releases X̂ (or U, which a user who knows Z reads as x̂ = f(u, z)) of what the encoder
    sees, S = X or (W, X), the achievable (R, D, E) are all with E d(X, X̂) ≤ D and

    ================  =============  ================  ============================
    Z known to        rate R ≥       equivocation E ≤  over
    ================  =============  ================  ============================
    nobody            I(S; X̂)        H(W | X̂)          p(x̂ | s)         (Prop. 2)
    the user          I(S; U | Z)    H(W | U, Z)       p(u | s), f      (Theorem 2)
    user and encoder  I(S; X̂ | Z)    H(W | X̂, Z)       p(x̂ | s, z)      (Theorem 3)
    ================  =============  ================  ============================

    of Sankar et al. 2013.  In Theorem 2 the strategies t: Z → X̂ are all the u that are needed:
    t = f(u, ·) is a function of u, so that rate and leakage can only fall.  E is H(W) less leakage.

    Parameters
    ----------
    source : DiscreteSource
        Joint law of W, X, and Z where it is known to somebody.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) or d(w, x, x̂).
    budget : float or mapping, optional
        D; or one for each attribute of a ``per_attribute`` distortion, or for several together:
        ``{"age": 1.0, ("age", "sex"): 1.2}`` (Remark 2).
    minimize : {"rate", "leakage", "distortion"} or mapping
        Γ(D) is H(W) less the least leakage; ``{"rate": 1, "leakage": 2}`` is a weighted sum.
    max_rate : float, optional
        The most that the rate may be, in ``units``.
    max_leakage : float or mapping, optional
        The most that may leak, in ``units``, or of each hidden attribute, by name.
    min_equivocation : float, optional
        The least H(W | what the user has), in ``units``.
    side_information : {None, "decoder", "both"}
        Who knows Z: nobody (Prop. 2), the user (Theorem 2), or user and encoder (Theorem 3).
    encoder : {"x", "wx"}
        What is encoded: X alone, or W and X (Remark 3).
    criteria : sequence of Criterion
        What the release must satisfy besides.
    units : {"bits", "nats"}
        Of rate, leakage and equivocation.
    most_strategies : int
        With Z at the user alone, up to so many are all listed; beyond, Theorem 3 bounds.

    Raises
    ------
    InputError
        For anything that does not make a program.

    Examples
    --------
    Without Z and with W = X the least rate is R(D) = 1 − h(D) of a fair bit (Shannon):

    >>> import cvxprivacy as cpv
    >>> bit = cpv.DiscreteSource.identical([0.5, 0.5])
    >>> round(cpv.RateDistortionEquivocation(bit, cpv.hamming(2), 0.07).solve().value, 4)
    0.6341
    >>> round(1 - cpv.information.entropy([0.07, 0.93]), 4)
    0.6341

    A user who knows a Z that tells nearly all about X needs far less:

    >>> law = [[[0.45, 0.05], [0, 0]], [[0, 0], [0.05, 0.45]]]  # W = X, Z differs with 0.1
    >>> problem = cpv.RateDistortionEquivocation(
    ...     cpv.DiscreteSource(law), cpv.hamming(2), 0.07, side_information="decoder"
    ... )
    >>> round(problem.solve().value, 4)
    0.1375
    """

    survives_informed_encoder = True
    budget = AttributeParameter(optional=True)
    max_leakage = AttributeParameter(optional=True)
    max_rate = Parameter(optional=True)
    min_equivocation = Parameter(optional=True)

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        budget: Real | Mapping[Any, Real] | None = None,
        *,
        minimize: str | Mapping[str, Real] = "rate",
        max_rate: Real | None = None,
        max_leakage: Real | Mapping[Any, Real] | None = None,
        min_equivocation: Real | None = None,
        side_information: str | None = None,
        encoder: str = "x",
        criteria: Sequence[Criterion] = (),
        units: str = "bits",
        most_strategies: int = 1024,
    ) -> None:
        self.minimize, self._weights = minimize, _weights(minimize)
        self.most_strategies = integer(most_strategies, "most_strategies", least=1)
        super().__init__(
            source, distortion, encoder=encoder, side_information=side_information,
            criteria=criteria, units=units, budget=budget, max_rate=max_rate,
            max_leakage=max_leakage, min_equivocation=min_equivocation,
        )  # fmt: skip

    def formulation(self) -> Formulation:
        of, quantities, kind = self.alphabet, self.quantities(), type(self)
        objective = sum(weight * quantities[name] for name, weight in self._weights.items())
        constraints = {}
        for names, bound in kind.budget.each(self).items():  # E d(X, X̂) ≤ D
            constraints[indexed("budget", names)] = of.distortion_of(names) <= bound
        for names, bound in kind.max_leakage.each(self).items():  # I(W; X̂, Z) ≤ L
            constraints[indexed("max_leakage", names)] = of.leakage_of(names) <= bound
        if self.max_rate is not None:
            constraints["max_rate"] = self.rate <= self.max_rate  # I(S; X̂ | Z) ≤ R
        if self.min_equivocation is not None:
            constraints["min_equivocation"] = self.equivocation >= self.min_equivocation
        return Minimize(objective), constraints

    def quantities(self) -> Mapping[str, Expression]:
        of = self.alphabet
        terms = {"rate": self.rate, "leakage": of.leakage_of()}
        terms |= {"equivocation": self.equivocation, "distortion": self.distortion}
        hidden = [names for names in type(self).max_leakage.each(self) if names]
        return terms | {f"leakage of {', '.join(names)}": of.leakage_of(names) for names in hidden}


def _weights(minimize: str | Mapping[str, Real]) -> dict[str, Scalar]:
    remedy = f"use {', '.join(_QUANTITIES)}, or a mapping of them to weights"
    if not isinstance(minimize, str | Mapping):
        raise InputError("minimize", f"{minimize!r}", remedy, value=minimize)
    for name in [minimize] if isinstance(minimize, str) else minimize:
        if name not in _QUANTITIES:
            raise InputError("minimize", f"{name!r}", remedy, value=name)
    if isinstance(minimize, str):
        return {minimize: Scalar(1)}
    weights = {name: typed(w, "minimize", where=name) for name, w in minimize.items()}
    if not any(weights.values()):
        raise InputError("minimize", f"{minimize!r}", "pass at least one weight > 0")
    return {name: Scalar.named(w, f"minimize[{name}]") for name, w in weights.items()}
