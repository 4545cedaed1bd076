"""The base of what is maximised one output at a time: a linear program over rays of its rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.formulations.candidate import candidate_rows
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.compiler import Rules, compiled
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.side_conditions import Auxiliary, Rule
from cvxprivacy.programs.useful import UsefulProgram, plain, rays_written
from cvxprivacy.release.channel import Channel
from cvxprivacy.results.infeasible import Conflict
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import Outcome
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.task import refuse_choice
from cvxprivacy.solvers.useful import master_of, prover_of, solve_useful
from cvxprivacy.solvers.watch import Watch

__all__ = ["RayProblem"]


class RayProblem(ChannelProblem):
    """A formulation that maximises, over any number of outputs, of which each has rules of its own.

    Its objective is what is leaked in some measures, and ``formulation`` returns it as any other.
    """

    minimised: ClassVar[bool] = False
    budget: Any = None

    @cached_property
    def rules(self) -> Rules:
        """What is stated: under each name, constraints by names of their own."""
        rules = super().rules
        for name, group in rules.items():
            for rule in group.values():
                _refuse_joint(name, rule)
        return rules

    @cached_property
    def program(self) -> UsefulProgram:
        """The canonical data: what solvers see and certificates are about."""
        objective, terms, statement = self._formulated[0], self.quantities(), self._statement()
        return compiled(self.alphabet, objective, self.rules, terms, statement, UsefulProgram)

    @property
    def _written(self) -> Any:
        return rays_written(self.alphabet.notation.s, self.budget)

    def _in_cvxpy(self) -> Any:
        from cvxprivacy.solvers.conic.rays import weights_program

        return weights_program(master_of(prover_of(self.program).proof, self.program))

    def _covered(self, name: str, constraint: Any) -> Criterion:
        if isinstance(constraint, Criterion | Constraint | Mapping):
            return super()._covered(name, constraint)
        problem, remedy = "a row in the weights of rays", "state a criterion, such as Linear"
        raise InputError("constraint", problem, remedy)

    # ---- solving -------------------------------------------------------------------------

    def _outcome(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        problem = "the linear program over rays has one solver"
        remedy = "leave it out: accuracy=, time_limit=, progress=, verbose= and certify= are taken"
        refuse_choice(options, problem, remedy)
        return solve_useful(self.program, accuracy=options["accuracy"], watch=options.get("watch"))

    def _candidate(
        self, candidate: Any, duals: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> tuple[Outcome, float]:
        if duals is not None:
            remedy = "leave them out: those of the linear program are taken"
            raise InputError("duals", "of a program that is not convex", remedy)
        rows, accuracy = candidate_rows(candidate, self.alphabet), options["accuracy"]
        outcome = solve_useful(self.program, accuracy=accuracy, candidate=rows)
        primal = outcome.certificate.primal
        return outcome, 0.0 if primal is None else float(np.abs(primal.matrix - rows).max())

    def _explained(self, certificate: Any, watch: Watch | None = None) -> InfeasibleError:
        def other(name: str, value: float) -> ChannelProgram:
            return plain(self.at(**{name: value}).program)

        return Conflict(
            certificate, self.alphabet, self.rules, self._criteria(), other, watch
        ).explained()

    def _solution(self, outcome: Outcome) -> Solution:
        solution = super()._solution(outcome)
        channel = solution.channel
        return solution if channel is None else solution._with(release=_used(channel))


def _refuse_joint(name: str, rule: Rule) -> None:
    """Refuse a rule that is not of every output by itself."""
    if isinstance(rule, Auxiliary) and rule.kind == "ratio":
        return
    problem = "a rule that is not linear in every output by itself"
    remedy = (
        "use LocalPrivacy, PointwiseMaximalLeakage, LocalInformationPrivacy or linear rows; a cap "
        "on all that is leaked makes it the privacy funnel, of which nobody has a global optimum"
    )
    if isinstance(rule, Constraint):
        bounded = any(rule.bound if isinstance(rule.bound, tuple) else (rule.bound,))
        costs = rule.expression.costs
        alike = costs is None or bool((costs == costs[..., :1]).all())
        if rule.linear and (not rule.per_output or (alike and not bounded)):
            return
        if rule.per_output and rule.expression.weights and not bounded:
            remedy = (
                "where a number is 0, pass a small one: perfect privacy is stated as information"
            )
    raise InputError("criteria", problem, remedy, where=name)


def _used(channel: Channel) -> Channel:
    """Return a channel without the outputs that never occur."""
    some = np.flatnonzero(channel.matrix.any(axis=0))
    return Channel(
        channel.matrix[:, some],
        inputs=channel.inputs,
        outputs=[channel.outputs[y] for y in some],
        p_input=channel.p_input,
        schema=channel.schema,
        encoder=channel.encoder,
        arbitrary=channel.arbitrary,
        independent=channel.independent,
    )
