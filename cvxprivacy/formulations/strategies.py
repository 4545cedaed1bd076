"""Formulations in which the user may know Z, and outputs may be strategies Z → X̂."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from cvxprivacy.certificates.certificate import Relaxed
from cvxprivacy.criteria.base import Criterion, by_name, reset_claims
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.results.infeasible import Conflict
from cvxprivacy.solvers import strategy_generation
from cvxprivacy.solvers.driver import Outcome
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.watch import Watch

__all__ = ["StrategyProblem"]

_STATEMENTS = {"formulation", "quantities", "rate", "risk", "distortion", "equivocation"}


class StrategyProblem(ChannelProblem):
    """A formulation whose outputs are strategies where the user alone knows Z.

    Attributes
    ----------
    most_strategies : int
        Up to so many are all listed; where there are more, good ones are generated while the
        problem is solved.
    survives_informed_encoder : bool
        Whether its optimum is no greater if the encoder knows Z too, as Theorem 3's is: what bounds
        it where strategies are generated.  A subclass with another ``formulation``, or with other
        quantities that this reads, claims nothing.
    """

    most_strategies = 1024
    survives_informed_encoder: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        reset_claims(cls, StrategyProblem, {"survives_informed_encoder"}, _STATEMENTS)

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
            For a formulation that does not say that its optimum is no greater then, or that is
            made with criteria which do not survive whatever it is asked for.
        """
        if not self.survives_informed_encoder:
            kind = type(self).__name__
            problem = f"strategies are generated, and {kind} has no bound for them all"
            remedy = "raise most_strategies, or declare survives_informed_encoder in its class"
            raise InputError("most_strategies", problem, remedy, value=self.most_strategies)
        kept = tuple(self._kept.values())
        arguments = {**self._typed(), "side_information": "both", "criteria": kept}
        informed = self._remade(arguments, {})
        if informed.side_information != "both" or informed.criteria != kept:
            problem = (
                f"{type(self).__name__} has other criteria or knowledge of Z than it is made of"
            )
            remedy = "raise most_strategies, or take both as arguments"
            raise InputError("most_strategies", problem, remedy, value=self.most_strategies)
        return informed

    @property
    def _kept(self) -> dict[str, Criterion]:
        """The criteria of ``informed``, by their names here."""
        named = by_name(self.criteria, self._formulated[1])
        return {name: rule for name, rule in named.items() if rule.survives_informed_encoder}

    def over(self, strategies: Any) -> Self:
        """Return the problem with these strategies as its outputs, however they came about.

        Parameters
        ----------
        strategies : array_like of int, shape (m, |Z|)
            The place among the released letters that each output means for each z.

        Raises
        ------
        InputError
            For what are no strategies of this problem, or the same twice.
        """
        letters, size = len(self.alphabet.d.outputs), len(self.source.z or ())
        remedy = f"pass different rows of {size} whole numbers below {letters}"
        try:
            rules = np.asarray(strategies)
        except ValueError:  # rows of several lengths
            raise InputError("strategies", "no table", remedy) from None
        if rules.ndim != 2 or 0 in rules.shape or rules.shape[1] != size or rules.dtype.kind != "i":
            raise InputError("strategies", f"shape {rules.shape}, {rules.dtype}", remedy)
        wrong = np.flatnonzero(((rules < 0) | (rules >= letters)).any(axis=1))
        if len(wrong):
            where = int(wrong[0])
            value = rules[where].tolist()
            raise InputError("strategies", f"{value}", remedy, where=where, value=value)
        if len(np.unique(rules, axis=0)) < len(rules):
            raise InputError("strategies", "one is there twice", remedy)
        return self._with(alphabet=self.alphabet.with_strategies(rules.astype(np.int64)))

    def _covered(self, name: str, constraint: Any) -> Criterion:
        if self.cut:
            problem, remedy = "strategies are generated", "raise most_strategies, or use criteria"
            raise InputError("constraint", problem, remedy)
        return super()._covered(name, constraint)

    def _outcome(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        if not self.cut:
            return super()._outcome(options, family)
        informed = self.informed
        generation = strategy_generation.Generation(
            self.alphabet,
            lambda alphabet: self.over(alphabet.strategies).program,
            informed.alphabet,
            informed.program,
        )
        outcome = strategy_generation.solve_generated(generation, options)
        if outcome.certificate.lower > outcome.certificate.upper:
            problem = "the bound for all strategies is above what a release attains"
            remedy = (
                "raise most_strategies: a class that declares survives_informed_encoder does not"
            )
            raise InputError("most_strategies", problem, remedy, value=self.most_strategies)
        return outcome

    def _explained(self, certificate: Any, watch: Watch | None = None) -> InfeasibleError:
        """Say why nothing is feasible even if the encoder knows Z too, and fewer rules hold."""
        if not isinstance(certificate, Relaxed):
            return super()._explained(certificate, watch)
        informed, kept = self.informed, self._kept
        names = dict(zip(informed._criteria(), kept, strict=True))
        typed = {name: other for other, name in names.items()}
        rules = {names.get(name, name): group for name, group in informed.rules.items()}

        def other(name: str, value: float) -> ChannelProgram:
            return informed.at(**{typed.get(name, name): value}).program

        of = certificate.relaxation, informed.alphabet
        because = Conflict(*of, rules, kept, other, watch).explained()
        left_out = [repr(rule) for name, rule in self._criteria().items() if name not in kept]
        without = f" and without {', '.join(left_out)}" if left_out else ""
        return InfeasibleError(
            f"{because}, even if the encoder knows Z too{without}",
            certificate,
            conflict=because.conflict,
            extremes=because.extremes,
        )
