"""Formulations over discrete channels: from source, distortion and criteria to a solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from inspect import Signature
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.added import Affine, Stated
from cvxprivacy.criteria.base import Criterion, by_name, criteria_listed
from cvxprivacy.criteria.postrandomisation import ForbiddenMoves
from cvxprivacy.criteria.stated_rules import at, names_of, numbers_of, stated_rules
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.exact import Real
from cvxprivacy.formulations.candidate import candidate_rows
from cvxprivacy.formulations.problem import MadeOf, Problem
from cvxprivacy.leakage.transport import order_in_words
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.laws import scaling
from cvxprivacy.programs.alphabet import Alphabet, Laws, with_letters_of
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.channel_latex import ChannelStatement
from cvxprivacy.programs.compiler import Centre, Rules, centre_of, compiled
from cvxprivacy.programs.expression import Constraint, Expression, each_part
from cvxprivacy.programs.extremes import greatest_distortion, least_value
from cvxprivacy.programs.latex_symbols import aligned, displayed
from cvxprivacy.programs.parameter import Parameter
from cvxprivacy.results.channel import channel_solution, entry_bounds
from cvxprivacy.results.infeasible import Conflict
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.candidate import prove_channel, with_centre
from cvxprivacy.solvers.driver import Outcome, solve
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.watch import Watch

__all__ = ["ChannelProblem"]


class ChannelProblem(Problem[Solution]):
    """A formulation over discrete channels; a subclass states its program in one method.

    Parameters
    ----------
    source : DiscreteSource
        Joint law of W and X, and of Z where somebody knows it.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) or d(w, x, x̂), ≥ 0; its columns are what may be released.  An infinite d(x, x̂)
        is a move that is forbidden: :class:`ForbiddenMoves` joins the criteria.
    *values : number
        The parameters that the subclass declares, in their order.
    encoder : {"x", "wx"}
        What the randomisation sees: X alone, or W and X.
    side_information : {None, "decoder", "both"}
        Who knows Z: nobody, the user, or user and encoder.
    criteria : sequence of Criterion
        What the release must satisfy.
    units : {"bits", "nats"}
        Of information, in the program and in its answer.
    laws : sequence of DiscreteSource, or mapping of names to them, optional
        Further laws of the same letters, such as other years: the worst under ``source`` and these
        is minimised, and bounds and criteria hold under each.  Mixtures are not covered.
    **numbers : number
        The parameters that the subclass declares, by name.

    Attributes
    ----------
    program : ChannelProgram
        The canonical data.
    alphabet : Alphabet
        Letters, observers, and the quantities that programs are stated in.

    Raises
    ------
    InputError
        For anything that does not make a program.

    Examples
    --------
    A program of one's own, with one number D:

    >>> import cvxprivacy as cpv
    >>> class RatePlusLeakage(cpv.ChannelProblem):
    ...     "min I(X; X̂) + I(W; X̂)  s.t.  E d(X, X̂) ≤ D  over p(x̂ | x)."
    ...
    ...     budget = cpv.Parameter()
    ...
    ...     def formulation(self):
    ...         return self.rate + self.risk, {"budget": self.distortion <= self.budget}
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> solution = RatePlusLeakage(source, cpv.hamming(2), budget=0.2).solve()
    >>> round(solution.value, 4), round(solution.prices["budget"], 3)
    (0.3737, -2.652)

    Both terms are least at once, where X is flipped with probability 0.2: the value is
    1 − h(0.2) + 1 − h(0.32).

    >>> h = cpv.information.entropy
    >>> round(2 - h([0.2, 0.8]) - h([0.32, 0.68]), 4)
    0.3737
    """

    __signature__: ClassVar[Signature]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = Parameter.signed(cls)

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        *values: Any,
        encoder: str = "x",
        side_information: str | None = None,
        criteria: Sequence[Criterion] = (),
        units: str = "bits",
        laws: Laws = None,
        **numbers: Any,
    ) -> None:
        self.criteria = criteria_listed(criteria)
        options: Any = {"encoder": encoder, "side_information": side_information, "units": units}
        options["laws"] = with_letters_of(laws, source)
        self.alphabet, self.units = Alphabet(source, distortion, **options), units
        moves = self.alphabet.d.forbidden
        if moves is not None and ForbiddenMoves(moves) not in self.criteria:
            self.criteria = (*self.criteria, ForbiddenMoves(moves))
        Parameter.fill(self, Parameter.placed(type(self), values, numbers))
        self.alphabet = self._outputs(self.alphabet)
        _ = self.rules  # what cannot be stated is refused now

    def _outputs(self, alphabet: Alphabet) -> Alphabet:
        """Return the alphabet, with strategies as outputs if the program is over these."""
        return alphabet

    @property
    def source(self) -> DiscreteSource:
        """The joint law of W, X, and Z if there is any."""
        return self.alphabet.source

    @property
    def encoder(self) -> str:
        """What the randomisation sees: ``"x"`` or ``"wx"``."""
        return self.alphabet.encoder

    @property
    def side_information(self) -> str | None:
        """Who knows Z."""
        return self.alphabet.side_information

    # ---- quantities ----------------------------------------------------------------------

    @property
    def risk(self) -> Any:
        """I(W; X̂), or I(W; U, Z) where the user knows Z, in the problem's units."""
        return self.alphabet.under_each_law(lambda of: of.risk)

    @property
    def rate(self) -> Any:
        """I(S; X̂), S what is encoded, or I(S; U | Z), in the problem's units."""
        return self.alphabet.under_each_law(lambda of: of.rate)

    @property
    def equivocation(self) -> Any:
        """H(W | what the user has)."""
        return self.alphabet.under_each_law(lambda of: of.equivocation)

    @property
    def distortion(self) -> Any:
        """E d(X, X̂), or E d(W, X, X̂)."""
        return self.alphabet.under_each_law(lambda of: of.distortion)

    def quantities(self) -> Mapping[str, Expression]:
        return {"risk": self.risk, "distortion": self.distortion}

    # ---- the program ---------------------------------------------------------------------

    @cached_property
    def rules(self) -> Rules:
        """What is stated: under each name, constraints and entry bounds by names of their own."""
        return stated_rules(self._formulated[1], self._criteria(), self.alphabet)

    def _taken(self) -> set[str]:
        upper = {"cap"} if self.program.upper is not None else set()
        return {"mass", "floor"} | upper | {*names_of(self.rules, self._formulated[0])}

    def _numbers(self) -> list[str]:
        return numbers_of(self.rules, self._formulated[0])

    def _criteria(self) -> dict[str, Criterion]:
        """Return criteria and added constraints by their names among the constraints."""
        names = by_name(self.criteria, self._formulated[1])
        return {**names, **self._added}

    @cached_property
    def program(self) -> ChannelProgram:
        """The canonical data: what solvers see and certificates are about."""
        objective, _ = self._formulated
        terms = self.quantities()
        statement, centre = self._statement(), self._centre
        return compiled(self.alphabet, objective, self.rules, terms, statement, centre=centre)

    @cached_property
    def _centre(self) -> Centre | None:
        """The letter that is nobody's, where capacities are minimised or bounded."""
        return centre_of(self.alphabet, self._formulated[0], self.rules)

    @property
    def _program_distortion(self) -> Any:
        """The distortion as the program has it."""
        centre = self._centre
        return self.distortion if centre is None else centre.quantity(self.distortion)

    @property
    def program_rules(self) -> Rules:
        """The rules as the program has them."""
        return self.rules if self._centre is None else self._centre.rules(self.rules)

    def _in_cvxpy(self) -> Any:
        from cvxprivacy.solvers.conic.paper_problem import channel_problem

        program, of = self.program, self.alphabet
        letters = program.n, tuple(of.inputs), tuple(of.support.tolist()), tuple(of.outputs)
        return channel_problem(program, self.program_rules, partial(self._shared.one, letters))

    def _typed(self) -> dict[str, Any]:
        listed = {"criteria": self.criteria}  # what generated them is exhausted
        return {name: listed.get(name, value) for name, value in super()._typed().items()}

    def _retyped(self, made_of: MadeOf, name: str, value: Real) -> MadeOf:
        arguments, added = made_of
        criteria = by_name(arguments.get("criteria", ()), self._formulated[1])
        if moved := at(criteria, name, value):
            return {**arguments, "criteria": tuple(moved.values())}, added
        return super()._retyped(made_of, name, value)

    def _covered(self, name: str, constraint: Any) -> Criterion:
        if isinstance(constraint, Criterion):
            return constraint
        if isinstance(constraint, Constraint | Mapping):
            return Stated.of(name, constraint, self.alphabet.laws)
        if self.alphabet.several:  # Q is of a mixture
            remedy = "use Linear(A, bound), which holds under each"
            raise InputError("constraint", "a row in Q, which is of no one law", remedy)
        return Affine.from_cvxpy(name, constraint, self.variables["Q"])

    # ---- in print ------------------------------------------------------------------------

    @property
    def latex(self) -> str:
        objective, constraints = self._formulated
        lines = [row.stated() for row in each_part(constraints).values()]
        lines += [self._criterion(name) for name in self._criteria()]
        variables = self.alphabet.notation.channel
        if self._centre is not None:
            variables += r",\, r"
        return aligned(variables, objective.latex, lines, least=self.minimised)

    def _criterion(self, name: str) -> str:
        of, text = self.alphabet, self._criteria()[name].stated(self.alphabet.notation)
        each = of.several and any(rule.of_law for rule in self.rules[name].values())
        return rf"{text} \text{{ under each law}}" if each else text

    @cached_property
    def _written(self) -> ChannelStatement:
        texts = {name: self._criterion(name) for name in self._criteria()}
        return ChannelStatement(self.alphabet, self._formulated[0], self.rules, texts)

    def _repr_latex_(self) -> str:
        program, sizes = self.program, self.alphabet.sizes
        cones = sum(view.size for view in program.views.values()) * program.m
        size = (
            rf"|W| = {sizes['W']},\; |X| = {sizes['X']},\; |\hat X| = {sizes['X̂']}; \quad "
            rf"{program.n * program.m} \text{{ entries of mass, }} {cones} \text{{ cones}}"
        )
        return displayed(self.latex, size)

    def _statement(self) -> str:
        constraints = each_part(self._formulated[1]).values()
        lines = [row.stated("{:.6g}".format) for row in constraints]
        lines += [repr(criterion) for criterion in self._criteria().values()]
        plainly = self.alphabet.encoder_inputs == "x" and self.alphabet.strategies is None
        return self._sentence(lines, "" if plainly else self.alphabet.notation.channel)

    def _sizes(self) -> str:
        sizes = ", ".join(f"|{letter}| = {size}" for letter, size in self.alphabet.sizes.items())
        if self.alphabet.strategies is None:
            return sizes
        return f"{sizes}, {self.alphabet.m:,} strategies Z → X̂"

    def _notes(self) -> list[str]:
        """Return how a law was scaled, and the order of W where its values do not tell it."""
        source, ordered = self.source, any(of.ordered for of in self.program.other_measures)
        notes = [scaled] if (scaled := scaling(source.law)) else []
        evident = source.in_order or not ordered
        return notes if evident else [*notes, order_in_words(source.names[0], source.w)]

    # ---- the ends of the curve -----------------------------------------------------------

    @cached_property
    def least_distortion(self) -> float:
        """D_min = E min_x̂ d, the least budget without criteria or other constraints, rounded up."""
        return least_value(self.program, self._program_distortion)

    @cached_property
    def greatest_distortion(self) -> float:
        """D_max = min_x̂ E d: from there on a constant is released and nothing is revealed."""
        return greatest_distortion(self.program, self.alphabet, self._program_distortion)

    # ---- solving -------------------------------------------------------------------------

    def _outcome(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        return solve(self.program, family=family, **options)

    def _candidate(
        self, candidate: Any, duals: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> tuple[Outcome, float]:
        if getattr(self, "cut", False):
            remedy = "raise most_strategies, so that all are listed"
            raise InputError("candidate", "of strategies that are generated", remedy)
        rows = with_centre(self.program, candidate_rows(candidate, self.alphabet))
        outcome = prove_channel(self.program, rows, duals, **options)
        primal = outcome.certificate.primal
        return outcome, 0.0 if primal is None else float(np.abs(primal.matrix - rows).max())

    def _explained(self, certificate: Any, watch: Watch | None = None) -> InfeasibleError:
        def other(name: str, value: float) -> ChannelProgram:
            return self.at(**{name: value}).program

        conflict = Conflict(
            certificate, self.alphabet, self.program_rules, self._criteria(), other, watch
        )
        return conflict.explained()

    def _solution(self, outcome: Outcome) -> Solution:
        problem = self
        if outcome.strategies is not None:
            problem = self._with(alphabet=self.alphabet.with_strategies(outcome.strategies))
        return channel_solution(
            outcome,
            problem.alphabet,
            problem.program_rules,
            entry_bounds(problem._criteria(), problem.rules, problem.alphabet),
            independent=any(rule.independent_draws for rule in problem._criteria().values()),
            title=type(self).__name__,
            sizes=problem._sizes(),
            notes=problem._notes(),
            restated=problem.at,
        )
