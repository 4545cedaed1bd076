"""A problem of which two numbers are free: weighted sums of what they bound and of its value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np

from cvxprivacy.certificates.bounds import BestBounds
from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.stored import dual_of, primal_of
from cvxprivacy.errors import InputError
from cvxprivacy.frontiers.curve import CONVEX, Number
from cvxprivacy.frontiers.parametric import ParametricProblem, mixed_at, refuse_nothing
from cvxprivacy.frontiers.stored import digest
from cvxprivacy.model.information import nat
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Expression, Worst
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import solve, solve_gaussian
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ceil, floor

__all__ = ["WeightedProblem"]


class WeightedProblem:
    """A problem seen by two constraints and its objective: their weighted sums are minimised.

    ``units``, shape (3,), are a nat of information and the span of a distortion; ``words`` what
    each is in, "" of a distortion; ``digest`` is of all but the two bounds.
    """

    def __init__(self, problem: Any, names: tuple[str, str], accuracy: str) -> None:
        for name in names:
            axis = ParametricProblem(problem, name, accuracy).axis
            if axis.kind != CONVEX or len(axis.rows) != 1:
                remedy = "use two constraints with a bound of their own"
                raise InputError("parameter", f"{name!r} spans no surface", remedy, value=name)
        self.names, self.accuracy = names, accuracy
        self._problem: Any = problem.at()
        program = self._problem.program
        if isinstance(program.objective, Worst):
            remedy = "use a problem under one law"
            raise InputError("problem", "its optimum is the worst of several laws", remedy)
        self._discrete = isinstance(program, ChannelProgram)
        if not (self._discrete or program.objective.weights):
            problem_, remedy = "its optimum is a distortion", "minimise information under bounds"
            raise InputError("problem", problem_, remedy)
        rows = program.constraints
        others = {name: row for name, row in rows.items() if name not in names}
        self._terms = [*(rows[name].expression for name in names), program.objective]
        terms = dict(zip("xyv", self._terms, strict=True))
        self._unbounded = replace(program, constraints=others, terms=terms)
        zero = {name: replace(rows[name], bound=Fraction(0)) for name in names}
        self._at_zero = replace(program, constraints={**rows, **zero})
        self.units = np.array([self._unit(term) for term in self._terms])
        self.words = tuple(program.units if term.weights else "" for term in self._terms)
        self.digest = digest([*names, accuracy, self._at_zero.to_dict()])

    def _unit(self, term: Expression) -> float:
        """Return a nat in the units of information, or the span of a distortion."""
        if self._discrete:
            return float(replace(self._unbounded, objective=term).scale)
        if term.weights:
            return nat(self._problem.units)
        return float((np.asarray(term.costs) * self._unbounded.above).sum())  # nothing released

    @property
    def latex(self) -> str:
        """The objective."""
        return cast(str, self._problem.program.objective.latex)

    def solve(self, weights: Sequence[float]) -> dict[str, Any]:
        """Minimise x w₁ + y w₂ + v w₀ over all releases, w₀ being 0 or 1."""
        first, *others = (w * term for w, term in zip(weights, self._terms, strict=True) if w)
        program = replace(self._unbounded, objective=sum(others, first))
        solved = solve if self._discrete else solve_gaussian
        certificate = solved(program, accuracy=self.accuracy).certificate
        if certificate.status == "infeasible":
            self.refuse_nothing(certificate)
        record: dict[str, Any] = {"weights": list(weights)}
        if certificate.dual is not None:
            record["dual"] = self._at_bounds(certificate.dual, weights).to_dict()
        if certificate.primal is not None:
            record["primal"] = certificate.primal.to_dict()
        return {"record": self.proved(record), "solves": 1}

    def _at_bounds(self, dual: Any, weights: Sequence[float]) -> Any:
        """Return multipliers of a weighted sum as those of the problem, whose rows it weighs."""
        multipliers = {**dual.multipliers, **self._row_multipliers(weights)}
        if not self._discrete:
            return replace(dual, multipliers=multipliers, objective=int(weights[2]))
        weighed = Dual(dual.scores, multipliers, dual.auxiliaries, int(weights[2]))
        return weighed.cleaned(self._at_zero)

    def _row_multipliers(self, weights: Sequence[float]) -> dict[str, float]:
        """Return the multipliers of the two rows: their weights, of a Gaussian program in nats."""
        if self._discrete:
            return dict(zip(self.names, weights, strict=False))
        scales = [self._at_zero.in_nats(term) for term in self._terms]
        size = scales[2] if self._informs(weights) else 1.0  # the objective is information
        pairs = zip(self.names, weights, scales, strict=False)
        return {name: weight * size / scale for name, weight, scale in pairs}

    def _informs(self, weights: Sequence[float]) -> bool:
        """Tell whether any information is weighed."""
        return any(w and bool(t.weights) for w, t in zip(weights, self._terms, strict=True))

    def proved(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record with the half-space and the vertex that it proves.

        Raises
        ------
        ValueError
            For weights that are not those of its multipliers, of which alone the half-space holds.
        """
        support, point, weights = -math.inf, None, record["weights"]
        if len(weights) != 3 or weights[2] not in (0, 1):  # a proof's objective is in it or not
            raise ValueError(f"weights {weights} are not two and a last one of 0 or 1")
        if "dual" in record:
            stated = record["dual"]["multipliers"]
            rows = self._row_multipliers(weights)
            alike = all(Fraction(stated[name]) == Fraction(rows[name]) for name in self.names)
            if not alike or record["dual"]["objective"] != weights[2] or min(weights) < 0:
                raise ValueError(f"weights {weights} are not those of its multipliers")
            lower = self._zero_proof.lower(record["dual"])
            if not self._discrete and not self._informs(weights):
                lower = lower * self._zero_proof.units  # of costs alone, which are in no bits
            support = floor(lower)
        if "primal" in record:
            evaluation = self._free_proof.upper(record["primal"])
            if evaluation.feasible:
                point = [ceil(evaluation.terms[k]) for k in "xyv"]
        kept = {k: record[k] for k in ("weights", "dual", "primal") if k in record}
        return {**kept, "support": support if math.isfinite(support) else "-inf", "point": point}

    @cached_property
    def _zero_proof(self) -> Any:
        return verify.proof_of(self._at_zero.to_dict())

    @cached_property
    def _free_proof(self) -> Any:
        return verify.proof_of(self._unbounded.to_dict())

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the proofs' programs, whose numbers are sent nowhere."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_zero_proof", "_free_proof")}

    def refuse_nothing(self, certificate: Certificate | None = None) -> None:
        """Raise what ``solve()`` raises where no release is known, whatever the bounds are."""
        if certificate is None:
            certificate = BestBounds(self._problem.program, self.accuracy).certificate()
        refuse_nothing(self._problem, certificate, self.names)

    def mixed(
        self,
        x: Sequence[Number],
        records: Iterable[tuple[Mapping[str, Any], Fraction]],
        bound: Mapping[str, Any],
        most: float,
    ) -> Solution:
        """Return what is proved at two bounds of a mixture of solved releases."""
        problem = self._problem.at(**dict(zip(self.names, x, strict=True)))
        primals = [(primal_of(r["primal"], self._at_zero), share) for r, share in records]
        return mixed_at(
            problem, self.accuracy, primals, [dual_of(bound["dual"], self._at_zero)], most
        )
