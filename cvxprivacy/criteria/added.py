"""Constraints that a user adds to a problem, as criteria.

Those of CVXPY become exact coefficients; CVXPY itself need not be imported for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.piecewise import pieces, spread
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, Real
from cvxprivacy.frozen import owned
from cvxprivacy.programs.compiler import is_centred
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.latex_symbols import Notation, PrintedCost, plain, tex, upright
from cvxprivacy.programs.parameter import Parameter, Scalar
from cvxprivacy.programs.side_conditions import Rule
from cvxprivacy.validation import table, typed

__all__ = ["Affine", "Stated", "cvxpy_rows"]


@dataclass(frozen=True)
class Row:
    """⟨A, Q⟩ + c ≤ b, ≥ b or = b, b the number of this place among those that were typed."""

    coefficients: Exact
    constant: float
    place: int
    relation: str


def cvxpy_rows(constraint: Any, variable: Any) -> tuple[list[Row], list[float]]:
    """Return the rows of a constraint of CVXPY on one variable, and the numbers of its entries.

    One row for each affine piece of each entry; the coefficients are those that CVXPY computes, in
    floats.

    Raises
    ------
    InputError
        For what is no equality or inequality, not piecewise linear and convex, or uses another
        variable or a parameter without a value.
    """
    kind = type(constraint).__name__
    if kind not in ("Inequality", "Equality") or not hasattr(constraint, "expr"):
        remedy = "pass a <= or == of CVXPY"
        raise InputError("constraint", f"a {kind}", remedy, value=constraint)
    expression, name = constraint.expr, variable.name()
    foreign = {name: f"the {name} of another problem"}
    others = [foreign.get(v.name(), v.name()) for v in expression.variables() if v is not variable]
    if others or not expression.variables():
        problem = f"{constraint} uses {', '.join(others) or 'no variable'}"
        raise InputError("constraint", problem, f'use problem.variables["{name}"] alone')
    for parameter in expression.parameters():
        if parameter.value is None:
            problem = f"{constraint} has a parameter {parameter.name()} without a value"
            raise InputError("constraint", problem, "give it one: a proof is of numbers")
    affine = expression.is_affine()
    if kind == "Equality" and not affine:
        raise InputError("constraint", f"{constraint} is not affine", "pass a <= of CVXPY")
    left, right = constraint.args
    swapped = kind == "Inequality" and not left.variables()  # b ≤ ⟨A, Q⟩ was typed as ≥ b
    sign, relation = (-1, ">=") if swapped else (1, "==" if kind == "Equality" else "<=")
    if affine:  # all constants stand on the right
        entries = pieces(expression, variable)
        numbers = [-sign * float(entry[0, -1]) for entry in entries]
    elif swapped or not right.variables():
        side = right if swapped else left
        entries = spread(pieces(side, variable, sign), side.shape, expression.shape)
        number = np.asarray((left if swapped else right).value, float)
        numbers = np.broadcast_to(number, expression.shape).ravel(order="F").tolist()
    else:
        entries = pieces(expression, variable)
        numbers = [0.0] * len(entries)
    rows = [
        Row(
            owned((sign * piece[:-1]).reshape(variable.shape, order="F")),
            0.0 if affine else sign * float(piece[-1]),
            place,
            relation,
        )
        for place, entry in enumerate(entries)
        for piece in entry
    ]
    return rows, numbers


# ---- what is added, as a criterion --------------------------------------------------------


class Stated(Criterion):
    """A comparison of a problem's quantities: ``problem.risk <= 0.1``.

    Of a quantity under several laws it is one comparison for each of them.
    """

    of_releases = "this"
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
        compared = all(isinstance(row, Constraint) for row in rows.values())
        complete = "" in rows and (len(rows) == 1 or rows.keys() == set(laws))
        if not (compared and (complete or is_centred(rows.values()))):
            remedy = "compare a quantity of this very problem: problem.risk <= 0.1"
            raise InputError("constraint", "no comparison under this problem's laws", remedy)
        return cls(name, rows)

    def stated(self, of: Notation) -> str:
        return self.constraint.stated(y=of.y)

    def __repr__(self) -> str:
        return plain(self.latex)

    def at(self, value: Real) -> Criterion:
        bound = Fraction(typed(value, self.name, negative=True)) * self.sign
        rows = {law: replace(row, bound=bound) for law, row in self.rows.items()}
        return Stated(self.name, rows)

    def constraints(self, release: Any) -> Mapping[str, Rule]:
        """Return the comparison, its number traced; of any program's quantities."""
        if is_centred(self.rows.values()):  # of each value of W
            return {name: self._traced(row) for name, row in self.rows.items()}
        stated = self.rows.get(getattr(release, "under", ""))
        return {} if stated is None else {"": self._traced(stated)}

    def _traced(self, stated: Constraint) -> Constraint:
        left, number = stated.expression, self.bound * self.sign
        row = left <= number if stated.sense == "<=" else left == number
        notation = {"relation": stated.relation, "right": stated.right}
        return replace(row, radius=stated.radius, **notation)


class Affine(Criterion):
    """⟨A, Q⟩ + c ≤ b, ≥ b or = b in the joint mass Q of the encoder's letters and the outputs.

    Several rows may share one number: together they bound the greatest of them.
    """

    of_releases = "this"
    by_law = False

    def __init__(self, name: str, rows: Sequence[Row], bounds: Sequence[Any]) -> None:
        self.name, self.rows = name, tuple(rows)
        for row in self.rows:
            table(row.coefficients, "constraint", "use finite numbers", negative=True)
        self.bounds = tuple(typed(bound, name, negative=True) for bound in bounds)

    @classmethod
    def from_cvxpy(cls, name: str, constraint: Any, variable: Any) -> Affine:
        """Return what a constraint of CVXPY says of one variable."""
        return cls(name, *cvxpy_rows(constraint, variable))

    @property
    def value(self) -> Any:
        return self.bounds[0] if len(self.bounds) == 1 else None

    def stated(self, of: Notation) -> str:
        relation = {"<=": r"\le", ">=": r"\ge", "==": "="}[self.rows[0].relation]
        name = upright(self.name)
        bound = rf"b_{{{name}, i}}" if self.value is None else tex(float(self.value))
        if len(self.rows) == 1:
            return rf"\langle A_{{{name}}}, Q \rangle {relation} {bound}"
        if len(self.rows) == len(self.bounds):
            return rf"\langle A_{{{name}, i}}, Q \rangle {relation} {bound} \quad \forall\, i"
        greatest = r"\min_k" if self.rows[0].relation == ">=" else r"\max_k"
        each, index = ("", "k") if self.value is not None else (r" \quad \forall\, i", "ik")
        left = rf"\langle A_{{{name}, {index}}}, Q \rangle + c_{{{name}, {index}}}"
        return rf"{greatest} \left( {left} \right) {relation} {bound}{each}"

    def __repr__(self) -> str:
        if self.value is None:
            return self.name
        relation = {"<=": "≤", ">=": "≥", "==": "="}[self.rows[0].relation]
        return f"{self.name} {relation} {float(self.value):.6g}"

    @property
    def numbers(self) -> Mapping[str, Any]:
        """The numbers by their places, where there are several."""
        return dict(zip(map(str, count()), self.bounds, strict=False)) if self.value is None else {}

    def at(self, value: Real) -> Criterion:
        return Affine(self.name, self.rows, [value])

    def with_number(self, key: str, value: Real) -> Criterion:
        bounds = [value if str(i) == key else bound for i, bound in enumerate(self.bounds)]
        return Affine(self.name, self.rows, bounds)

    def constraints(self, release: Any) -> Mapping[str, Rule]:
        """Return its rows; of any program's variable."""
        rules: dict[str, Rule] = {}
        single, subscript = len(self.rows) == 1, upright(self.name)
        for i, row in enumerate(self.rows):
            key = "p" if self.value is not None else f"p.{row.place}"
            number = Scalar.named(self.bounds[row.place], key) - Fraction(row.constant)
            words = PrintedCost(
                f"A_{{{subscript if single else f'{subscript}, i'}}}(@s)",
                "x",
                () if single else ("i",),
            )
            total = Expression(self.name, cost=row.coefficients, latex=subscript).printed_as(words)
            rule = {"<=": total.__le__, ">=": total.__ge__, "==": total.__eq__}[row.relation]
            level = "" if single else f"b_{{{subscript}, i}}"
            rules["" if single else str(i)] = replace(rule(number), level=level)
        return rules


def symmetrized(rule: Affine) -> Affine:
    """Return a rule of a symmetric matrix with symmetric coefficients."""

    def symmetric(row: Row) -> Row:
        return replace(row, coefficients=owned((row.coefficients + row.coefficients.T) / 2))

    return Affine(rule.name, [symmetric(row) for row in rule.rows], rule.bounds)
