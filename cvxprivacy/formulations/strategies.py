"""Formulations in which the user may know Z, and outputs may be strategies Z → X̂."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from cvxprivacy.certificates.relaxed import Relaxed
from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.privacy import LocalPrivacy, MaximalLeakage
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.solvers import strategy_generation
from cvxprivacy.solvers.driver import Outcome

__all__ = ["StrategyProblem"]


class StrategyProblem(ChannelProblem):
    """A formulation whose outputs are strategies where the user alone knows Z.

    Attributes
    ----------
    most_strategies : int
        Up to so many are all listed; where there are more, good ones are generated while the
        problem is solved.
    """

    most_strategies = 1024

    def _outputs(self, alphabet: Alphabet) -> Alphabet:
        if alphabet.side_information != "decoder":
            return alphabet
        rules = alphabet.all_strategies(self.most_strategies)
        return alphabet.with_strategies(
            strategy_generation.initial_strategies(alphabet) if rules is None else rules
        )

    @property
    def cut(self) -> bool:
        """Whether there are too many strategies for all of them to be listed."""
        decoded = self.side_information == "decoder"
        return decoded and self.alphabet.all_strategies(self.most_strategies) is None

    @property
    def informed(self) -> Self:
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

    def _outcome(
        self, options: Mapping[str, Any], model: Callable[[], Any] | None = None
    ) -> Outcome:
        if not self.cut:
            return super()._outcome(options, model)
        informed = self.informed
        generation = strategy_generation.Generation(
            self.alphabet,
            lambda alphabet: self._with(alphabet=alphabet).program,
            informed.alphabet,
            informed.program,
        )
        return strategy_generation.solve_generated(generation, options)

    def _explained(self, certificate: Any) -> InfeasibleError:
        if isinstance(certificate, Relaxed):
            return self.informed._explained(certificate.relaxation)
        return super()._explained(certificate)
