"""Formulations in which the user may know Z, and outputs may be strategies Z → X̂."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from cvxprivacy.certificates.relaxed import Relaxed
from cvxprivacy.criteria.base import Criterion
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
    survives_informed_encoder : bool
        Whether its optimum is no greater if the encoder knows Z too, as Theorem 3's is: what bounds
        it where strategies are generated.  A subclass with another ``formulation`` claims nothing.
    """

    most_strategies = 1024
    survives_informed_encoder: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "formulation" in vars(cls) and "survives_informed_encoder" not in vars(cls):
            cls.survives_informed_encoder = False

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

        Only criteria are kept that survive this: a release may satisfy others because it does not
        see Z.

        Raises
        ------
        InputError
            For a formulation that does not say that its optimum is no greater then.
        """
        if not self.survives_informed_encoder:
            kind = type(self).__name__
            problem = f"strategies are generated, and {kind} has no bound for them all"
            remedy = "raise most_strategies, or declare survives_informed_encoder in its class"
            raise InputError("most_strategies", problem, remedy, value=self.most_strategies)
        kept = [criterion for criterion in self.criteria if criterion.survives_informed_encoder]
        arguments = {**self._typed(), "side_information": "both", "criteria": kept}
        return self._remade(arguments, {})

    def over(self, strategies: Any) -> Self:
        """Return the problem with these strategies as its outputs, however they came about.

        Parameters
        ----------
        strategies : array_like of int, shape (m, |Z|)
            The place among the released letters that each output means for each z.

        Raises
        ------
        InputError
            For what are no strategies of this problem.
        """
        rules, letters = np.asarray(strategies), len(self.alphabet.d.outputs)
        shape = (len(self.source.z or ()),)
        listed = rules.ndim == 2 and len(rules) and rules.shape[1:] == shape
        if not listed or rules.dtype.kind != "i" or rules.min() < 0 or rules.max() >= letters:
            remedy = f"pass whole numbers below {letters} of shape (m, {shape[0]})"
            raise InputError("strategies", f"shape {rules.shape}, {rules.dtype}", remedy)
        return self._with(alphabet=self.alphabet.with_strategies(rules.astype(np.int64)))

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
            lambda alphabet: self.over(alphabet.strategies).program,
            informed.alphabet,
            informed.program,
        )
        return strategy_generation.solve_generated(generation, options)

    def _explained(self, certificate: Any) -> InfeasibleError:
        if isinstance(certificate, Relaxed):
            return self.informed._explained(certificate.relaxation)
        return super()._explained(certificate)
