"""A problem of which two numbers are free: weighted sums of what they bound and of its value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from cvxprivacy.certificates.bounds import BestBounds
from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.stored import channel, multipliers
from cvxprivacy.errors import InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frontiers.curve import CONVEX, Number
from cvxprivacy.frontiers.parametric import ParametricProblem, mixed_at, refuse_nothing
from cvxprivacy.frontiers.stored import digest
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.worst import Worst
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import solve
from cvxprivacy.verifier import verify
from cvxprivacy.verifier.balls import ceil, floor

__all__ = ["WeightedProblem"]


class WeightedProblem:
    """A problem seen by two constraints and its objective: their weighted sums are minimised.

    ``units``, shape (3,), are a nat of information and the span of a distortion; ``digest`` is of
    all but the two bounds.
    """

    def __init__(self, problem: ChannelProblem, names: tuple[str, str], accuracy: str) -> None:
        for name in names:
            axis = ParametricProblem(problem, name, accuracy).axis
            single = axis.kind == CONVEX and len(axis.rows) == 1
            if not single or not isinstance(problem, ChannelProblem):
                remedy = "use two constraints of a discrete problem with a bound of their own"
                raise InputError("parameter", f"{name!r} spans no surface", remedy, value=name)
        self.names, self.accuracy = names, accuracy
        self._problem: Any = problem.at()
        program = self._problem.program
        if isinstance(program.objective, Worst):
            remedy = "use a problem under one law"
            raise InputError("problem", "its optimum is the worst of several laws", remedy)
        rows = program.constraints
        others = {name: row for name, row in rows.items() if name not in names}
        self._terms = [*(rows[name].expression for name in names), program.objective]
        terms = dict(zip("xyv", self._terms, strict=True))
        self._unbounded = replace(program, constraints=others, terms=terms)
        zero = {name: replace(rows[name], bound=Fraction(0)) for name in names}
        self._at_zero = replace(program, constraints={**rows, **zero})
        self.units = np.array([replace(program, objective=term).scale for term in self._terms])
        self.digest = digest([*names, accuracy, self._at_zero.to_dict()])

    @property
    def latex(self) -> str:
        """The objective."""
        return cast(str, self._problem.program.objective.latex)

    def solve(self, weights: Sequence[float]) -> dict[str, Any]:
        """Minimise x w₁ + y w₂ + v w₀ over all releases, w₀ being 0 or 1."""
        first, *others = (w * term for w, term in zip(weights, self._terms, strict=True) if w)
        program = replace(self._unbounded, objective=sum(others, first))
        certificate = solve(program, accuracy=self.accuracy).certificate
        primal, dual = certificate.primal, certificate.dual
        if certificate.status == "infeasible":
            self.refuse_nothing(certificate)
        record: dict[str, Any] = {"weights": list(weights), "support": "-inf", "point": None}
        if dual is not None:
            bounds = {**dual.multipliers, **dict(zip(self.names, weights, strict=False))}
            dual = Dual(dual.scores, bounds, dual.auxiliaries, int(weights[2]))
            record["dual"] = dual.cleaned(self._at_zero).to_dict()
            support = floor(verify.proof_of(self._at_zero.to_dict()).lower(record["dual"]))
            record["support"] = support if math.isfinite(support) else "-inf"
        if primal is not None:
            record["primal"] = primal.to_dict()
            evaluation = verify.proof_of(self._unbounded.to_dict()).upper(record["primal"])
            record["point"] = [ceil(evaluation.terms[k]) for k in "xyv"]
        return {"record": record, "solves": 1}

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
        primals = [(channel(r["primal"], self._at_zero.m), share) for r, share in records]
        return mixed_at(problem, self.accuracy, primals, [multipliers(bound["dual"])], most)
