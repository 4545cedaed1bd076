"""Constraints that a user adds to a problem, as criteria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cvxprivacy.criteria.affine import affine_rows
from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, Real
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.expression import Constraint, Expression, Rule
from cvxprivacy.programs.parameter import Parameter, Scalar

__all__ = ["Affine", "Stated"]


class Stated(Criterion):
    """A comparison of a problem's quantities: ``problem.risk <= 0.1``."""

    bound = Parameter(negative=True)

    def __init__(self, name: str, constraint: Constraint) -> None:
        if isinstance(constraint.bound, tuple) or constraint.derivatives:
            remedy = "compare a quantity of the problem with a number"
            raise InputError("constraint", "more than one number in it", remedy)
        sign = -1 if constraint.relation == r"\ge" else 1
        self.name, self.constraint, self.sign = name, constraint, sign
        self.bound = sign * constraint.bound

    @property
    def latex(self) -> str:
        left = self.constraint.expression.latex or self.name
        return rf"{left} {self.constraint.relation} {float(self.bound):g}"

    def __repr__(self) -> str:
        return f"{self.name} {float(self.bound):.6g}"

    def at(self, value: Real) -> Criterion:
        moved = replace(self.constraint, bound=self.sign * Scalar(value))
        return Stated(self.name, moved)

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        left, bound = self.constraint.expression, self.sign * self.bound
        return {"": left <= bound if self.constraint.sense == "<=" else left == bound}


class Affine(Criterion):
    """⟨A, Q⟩ ≤ b or = b in the joint mass Q of the encoder's letters and the outputs."""

    def __init__(self, name: str, rows: Sequence[tuple[FloatArray, Real, str]]) -> None:
        self.name = name
        self.rows = tuple((np.array(a), bound, sense) for a, bound, sense in rows)

    @classmethod
    def from_cvxpy(cls, name: str, constraint: Any, variable: Any) -> Affine:
        """Return what an affine constraint of CVXPY says of one variable."""
        return cls(name, affine_rows(constraint, variable))

    @property
    def value(self) -> Any:
        return self.rows[0][1] if len(self.rows) == 1 else None

    @property
    def latex(self) -> str:
        return rf"\text{{{self.name}}}"

    def __repr__(self) -> str:
        return self.name if self.value is None else f"{self.name} {float(self.value):.6g}"

    def at(self, value: Real) -> Criterion:
        return Affine(self.name, [(a, value, sense) for a, _, sense in self.rows[:1]])

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        rules: dict[str, Rule] = {}
        for i, (a, bound, sense) in enumerate(self.rows):
            name = str(i) if len(self.rows) > 1 else ""
            typed = Scalar.named(bound, "p") if len(self.rows) == 1 else Scalar(bound)
            total = Expression(self.name, cost=a)
            rules[name] = total <= typed if sense == "<=" else total == typed
        return rules
