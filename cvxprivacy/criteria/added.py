"""Constraints that a user adds to a problem, as criteria.

Those of CVXPY become exact coefficients; CVXPY itself need not be imported for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, Real
from cvxprivacy.frozen import frozen
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.latex import plain
from cvxprivacy.programs.lettering import Lettering, Wording
from cvxprivacy.programs.notation import tex, upright
from cvxprivacy.programs.parameter import Parameter, Scalar
from cvxprivacy.programs.side_conditions import Rule
from cvxprivacy.validation import table, typed

__all__ = ["Affine", "Stated", "affine_rows"]


def affine_rows(constraint: Any, variable: Any) -> list[tuple[FloatArray, float, str]]:
    """Return (coefficients, bound, relation) of each scalar row of a constraint on one variable.

    The coefficients are those that CVXPY computes, in floats.

    Raises
    ------
    InputError
        For what is no equality or inequality, not affine, or uses another variable or a
        parameter without a value.
    """
    kind = type(constraint).__name__
    if kind not in ("Inequality", "Equality") or not hasattr(constraint, "expr"):
        remedy = "pass an affine <= or == of CVXPY"
        raise InputError("constraint", f"a {kind}", remedy, value=constraint)
    expression, name = constraint.expr, variable.name()
    if not expression.is_affine():
        remedy = f"pass an affine one in {name}; a cap on information is LeakageCap(b)"
        raise InputError("constraint", f"{constraint} is not affine", remedy)
    foreign = {name: f"the {name} of another problem"}
    others = [foreign.get(v.name(), v.name()) for v in expression.variables() if v is not variable]
    if others or not expression.variables():
        problem = f"{constraint} uses {', '.join(others) or 'no variable'}"
        raise InputError("constraint", problem, f'use problem.variables["{name}"] alone')
    for parameter in expression.parameters():
        if parameter.value is None:
            problem = f"{constraint} has a parameter {parameter.name()} without a value"
            raise InputError("constraint", problem, "give it one: a proof is of numbers")
    kept, variable.value = variable.value, np.zeros(variable.shape)
    try:
        gradient = expression.grad[variable].toarray()
        offset = np.asarray(expression.value, float).ravel(order="F")
    finally:
        variable.value = kept
    relation = "==" if kind == "Equality" else "<="
    sign = 1.0
    if relation == "<=" and not constraint.args[0].variables():  # b ≤ ⟨A, Q⟩ was typed as ≥ b
        relation, sign = ">=", -1.0
    return [
        (sign * column.reshape(variable.shape, order="F"), -sign * float(constant), relation)
        for column, constant in zip(gradient.T, offset, strict=True)
    ]


# ---- what is added, as a criterion --------------------------------------------------------


class Stated(Criterion):
    """A comparison of a problem's quantities: ``problem.risk <= 0.1``.

    Of a quantity under several laws it is one comparison for each of them.
    """

    bound = Parameter(negative=True)

    def __init__(self, name: str, constraint: Constraint | Mapping[str, Constraint]) -> None:
        self.rows = constraint if isinstance(constraint, Mapping) else {"": constraint}
        first = self.constraint = next(iter(self.rows.values()))
        several = any(row.bound != first.bound or row.derivatives for row in self.rows.values())
        if isinstance(first.bound, tuple) or several:
            remedy = "compare a quantity of the problem with a number"
            raise InputError("constraint", "more than one number in it", remedy)
        self.name = name
        self.sign = -1 if first.relation == r"\ge" else 1
        self.bound = self.sign * first.bound

    @classmethod
    def of(cls, name: str, stated: Any, laws: Collection[str]) -> Stated:
        """Return a comparison, or one under each of these laws; what is neither is refused."""
        rows = stated if isinstance(stated, Mapping) else {"": stated}
        complete = len(rows) == 1 or rows.keys() == set(laws)
        if not (complete and "" in rows and all(isinstance(r, Constraint) for r in rows.values())):
            remedy = "compare a quantity of this very problem: problem.risk <= 0.1"
            raise InputError("constraint", "no comparison under this problem's laws", remedy)
        return cls(name, rows)

    def stated(self, of: Lettering) -> str:
        right = self.constraint.right or tex(float(self.bound))
        each = rf" \quad \forall\, {of.y}" if self.constraint.per_output else ""
        return f"{self.constraint.expression.latex} {self.constraint.relation} {right}{each}"

    def __repr__(self) -> str:
        return plain(self.latex)

    def at(self, value: Real) -> Criterion:
        bound = Fraction(typed(value, self.name, negative=True)) * self.sign
        rows = {law: replace(row, bound=bound) for law, row in self.rows.items()}
        return Stated(self.name, rows)

    def constraints(self, release: Any) -> Mapping[str, Rule]:
        """Return the comparison, its number traced; of any program's quantities."""
        stated = self.rows.get(getattr(release, "under", ""))
        if stated is None:
            return {}
        left, number = stated.expression, self.bound * self.sign
        row = left <= number if stated.sense == "<=" else left == number
        notation = {"relation": stated.relation, "right": stated.right}
        return {"": replace(row, radius=stated.radius, **notation)}


class Affine(Criterion):
    """⟨A, Q⟩ ≤ b, ≥ b or = b in the joint mass Q of the encoder's letters and the outputs."""

    by_law = False

    def __init__(self, name: str, rows: Sequence[tuple[Exact, Any, str]]) -> None:
        self.name = name
        self.rows = tuple(
            (
                table(a, "constraint", "use finite numbers", negative=True),
                typed(bound, name, negative=True),
                relation,
            )
            for a, bound, relation in rows
        )

    @classmethod
    def from_cvxpy(cls, name: str, constraint: Any, variable: Any) -> Affine:
        """Return what an affine constraint of CVXPY says of one variable."""
        return cls(name, affine_rows(constraint, variable))

    @property
    def value(self) -> Any:
        return self.rows[0][1] if len(self.rows) == 1 else None

    def stated(self, of: Lettering) -> str:
        relation = {"<=": r"\le", ">=": r"\ge", "==": "="}[self.rows[0][2]]
        name, one = upright(self.name), self.value is not None
        bound = tex(float(self.value)) if one else rf"b_{{{name}, i}} \quad \forall\, i"
        return rf"\langle A_{{{name if one else f'{name}, i'}}}, Q \rangle {relation} {bound}"

    def __repr__(self) -> str:
        if self.value is None:
            return self.name
        relation = {"<=": "≤", ">=": "≥", "==": "="}[self.rows[0][2]]
        return f"{self.name} {relation} {float(self.value):.6g}"

    @property
    def numbers(self) -> Mapping[str, Any]:
        """The bound of each row by its number, where there are several."""
        several = self.rows if len(self.rows) > 1 else ()
        return {str(i): bound for i, (_, bound, _) in enumerate(several)}

    def at(self, value: Real) -> Criterion:
        ((a, _, relation),) = self.rows
        return Affine(self.name, [(a, value, relation)])

    def with_number(self, key: str, value: Real) -> Criterion:
        rows = [
            (a, value if str(i) == key else bound, relation)
            for i, (a, bound, relation) in enumerate(self.rows)
        ]
        return Affine(self.name, rows)

    def constraints(self, release: Any) -> Mapping[str, Rule]:
        """Return its rows; of any program's variable."""
        rules: dict[str, Rule] = {}
        for i, (a, bound, relation) in enumerate(self.rows):
            single = len(self.rows) == 1
            number = Scalar.named(bound, "p" if single else f"p.{i}")
            subscript = upright(self.name)
            words = Wording(
                f"A_{{{subscript if single else f'{subscript}, i'}}}(@s)",
                "x",
                () if single else ("i",),
            )
            total = Expression(self.name, cost=a, latex=subscript).worded(words)
            sides = {"<=": total <= number, "==": total == number}
            row = total >= number if relation == ">=" else sides[relation]
            level = "" if single else f"b_{{{subscript}, i}}"
            rules["" if single else str(i)] = replace(row, level=level)
        return rules


def symmetrized(rule: Affine) -> Affine:
    """Return a rule of a symmetric matrix with symmetric coefficients."""
    rows = [((np.asarray(a) + np.asarray(a).T) / 2, b, relation) for a, b, relation in rule.rows]
    return Affine(rule.name, frozen(rows))
