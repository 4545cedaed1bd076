"""Affine constraints of CVXPY as exact coefficients; CVXPY itself need not be imported for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray

__all__ = ["affine_rows"]


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
