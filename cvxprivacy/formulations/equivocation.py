r"""Rate, distortion and equivocation of a database, with and without side information.

Over the releases X̂ (or U, which a user who knows Z reads as x̂ = f(u, z)) of what the encoder sees,
S = X or (W, X), the achievable (R, D, E) are all with

====================  ===============  ==================  ============================
Z known to            rate R ≥         equivocation E ≤    over
====================  ===============  ==================  ============================
nobody                I(S; X̂)          H(W | X̂)            p(x̂ | s)         (Prop. 2)
the user              I(S; U | Z)      H(W | U, Z)         p(u | s), f      (Theorem 2)
user and encoder      I(S; X̂ | Z)      H(W | X̂, Z)         p(x̂ | s, z)      (Theorem 3)
====================  ===============  ==================  ============================

and E d(X, X̂) ≤ D: Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An
Information-Theoretic Approach*, IEEE TIFS 8(6), 2013.  In Theorem 2 the strategies t: Z → X̂ are
all the u that are needed: t = f(u, ·) is a function of u, so that rate and leakage can only fall.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.privacy import LocalPrivacy, MaximalLeakage
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.exact import Real
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.expression import Expression, Minimize
from cvxprivacy.programs.parameter import AttributeParameter, Parameter, Scalar
from cvxprivacy.proving.relaxed import Relaxed
from cvxprivacy.solvers import strategies
from cvxprivacy.solvers.driver import Outcome
from cvxprivacy.validation import typed, whole

__all__ = ["RateDistortionEquivocation"]

_QUANTITIES = ("rate", "leakage", "distortion")


class RateDistortionEquivocation(ChannelProblem):
    """Least rate, least leakage or a weighted sum, under the bounds given.

    Parameters
    ----------
    source : DiscreteSource
        Joint law of W, X, and Z where it is known to somebody.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
    budget : float or mapping, optional
        D; or one for each attribute of a ``per_attribute`` distortion, or for several together:
        ``{"age": 1.0, ("age", "sex"): 1.2}`` (Remark 2; ``"age, sex"`` is the same key).  None
        leaves distortion free.
    minimize : {"rate", "leakage", "distortion"} or mapping
        Γ(D) is H(W) less the least leakage; ``{"rate": 1, "leakage": 2}`` is a weighted sum.
    max_rate, min_equivocation : float, optional
        In the problem's units.
    max_leakage : float or mapping, optional
        For all of W; or for hidden attributes and sets of them, by column (Remark 2).  With Z no
        less than I(W; Z).
    side_information : {None, "decoder", "both"}
        Who knows Z: nobody, the user, or user and encoder.
    encoder : {"x", "wx"}
        What is encoded: the public attributes, or the private ones too (Remark 3).
    criteria : sequence of Criterion
        For each released letter, and each z where the user knows Z.
    units : {"bits", "nats"}
    most_strategies : int
        With Z at the user alone, up to so many strategies are all listed, and the optimum is
        exact.  Where there are more, good ones are generated while the problem is solved, which
        then has these outputs: the release is of them, and the lower end that of Theorem 3.
        Rates, leakages and distortions guide the search, criteria per letter do not.

    Raises
    ------
    InputError
        For anything that does not make a program.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> law = [[[0.45, 0.05], [0, 0]], [[0, 0], [0.05, 0.45]]]  # W = X, Z tells nearly all
    >>> source = cpv.DiscreteSource(law)
    >>> problem = cpv.RateDistortionEquivocation(
    ...     source, cpv.hamming(2), 0.07, side_information="decoder"
    ... )
    >>> round(problem.solve().value, 4)
    0.1375
    """

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
        self.most_strategies = whole(most_strategies, "most_strategies", least=1)
        super().__init__(
            source,
            distortion,
            side_information=side_information,
            encoder=encoder,
            criteria=criteria,
            units=units,
            budget=budget,
            max_rate=max_rate,
            max_leakage=max_leakage,
            min_equivocation=min_equivocation,
        )

    def formulation(self) -> Formulation:
        of, quantities = self.alphabet, self.quantities()
        objective = sum(weight * quantities[name] for name, weight in self._weights.items())
        constraints = {}
        for names, bound in RateDistortionEquivocation.budget.each(self).items():
            constraints[_indexed("budget", names)] = of.distortion_of(names) <= bound
        for names, bound in RateDistortionEquivocation.max_leakage.each(self).items():
            constraints[_indexed("max_leakage", names)] = of.leakage_of(names) <= bound
        if self.max_rate is not None:
            constraints["max_rate"] = self.rate <= self.max_rate  # I(S; X̂ | Z) ≤ R
        if self.min_equivocation is not None:
            constraints["min_equivocation"] = self.equivocation >= self.min_equivocation
        return Minimize(objective), constraints

    def quantities(self) -> Mapping[str, Expression]:
        of = self.alphabet
        hidden = [names for names in RateDistortionEquivocation.max_leakage.each(self) if names]
        return {
            "rate": self.rate,
            "leakage": of.leakage_of(),
            "equivocation": self.equivocation,
            "distortion": self.distortion,
            **{f"leakage of {', '.join(names)}": of.leakage_of(names) for names in hidden},
        }

    # ---- strategies ----------------------------------------------------------------------

    def _outputs(self, alphabet: Alphabet) -> Alphabet:
        if alphabet.side_information != "decoder":
            return alphabet
        rules = alphabet.all_strategies(self.most_strategies)
        return alphabet.with_strategies(strategies.first(alphabet) if rules is None else rules)

    @property
    def cut(self) -> bool:
        """Whether there are too many strategies for all of them to be listed."""
        decoded = self.side_information == "decoder"
        return decoded and self.alphabet.all_strategies(self.most_strategies) is None

    @property
    def informed(self) -> RateDistortionEquivocation:
        """The problem with Z at the encoder too: its optimum is no greater (Theorem 3).

        Auxiliaries are left out, as a release may satisfy them only because it does not see Z.
        """
        kept = [c for c in self.criteria if not isinstance(c, LocalPrivacy | MaximalLeakage)]
        arguments = {**self._typed(), "side_information": "both", "criteria": kept}
        return self._remade(arguments, {})

    def _covered(self, name: str, constraint: Any) -> Criterion:
        if self.cut:
            problem, remedy = "strategies are generated", "raise most_strategies, or use criteria"
            raise InputError("constraint", problem, remedy)
        return super()._covered(name, constraint)

    def _outcome(self, options: Mapping[str, Any], model: Any = None) -> Outcome:
        if not self.cut:
            return super()._outcome(options, model)
        informed = self.informed
        generation = strategies.Generation(
            self.alphabet,
            lambda alphabet: self._with(alphabet=alphabet).program,
            informed.alphabet,
            informed.program,
        )
        return strategies.generated(generation, options)

    def _explained(self, certificate: Any) -> InfeasibleError:
        if isinstance(certificate, Relaxed):
            return self.informed._explained(certificate.relaxation)
        return super()._explained(certificate)


def _weights(minimize: str | Mapping[str, Real]) -> dict[str, Scalar]:
    remedy = f"use {', '.join(_QUANTITIES)}, or a mapping of them to weights"
    if not isinstance(minimize, str | Mapping):
        raise InputError("minimize", f"{minimize!r}", remedy)
    for name in [minimize] if isinstance(minimize, str) else minimize:
        if name not in _QUANTITIES:
            raise InputError("minimize", f"{name!r}", remedy, value=name)
    if isinstance(minimize, str):
        return {minimize: Scalar(1)}
    weights = {name: typed(w, "minimize", where=name) for name, w in minimize.items()}
    if not any(weights.values()):
        raise InputError("minimize", f"{minimize!r}", "pass at least one weight > 0")
    return {name: Scalar.named(w, f"minimize[{name}]") for name, w in weights.items()}


def _indexed(name: str, names: tuple[str, ...]) -> str:
    return f"{name}[{', '.join(names)}]" if names else name
