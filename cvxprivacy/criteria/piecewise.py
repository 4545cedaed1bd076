r"""A convex piecewise linear constraint of CVXPY is the greatest of affine ones, each a row.

.. math:: \max_k \left(⟨A_k, Q⟩ + c_k\right) ≤ b.

A maximum of affine expressions has one piece for each, ∣z∣ has z and −z, and a sum has a piece
for each choice of pieces of its summands: ‖z‖₁ of r entries has 2^r.  CVXPY itself need not be
imported for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray

__all__ = ["pieces", "spread"]

MOST = 1024  # pieces of a constraint: rows of the program
CONVEX = ("max", "maximum", "abs", "norm1", "norm_inf", "sum_largest")
CONCAVE = ("min", "minimum")
Pieces = list[FloatArray]  # of each entry, in Fortran's order: a row (A_k, c_k) for each piece


def pieces(expression: Any, variable: Any, sign: int = 1) -> Pieces:
    """Return the affine pieces of each entry of sign · expression, convex in one variable.

    Raises
    ------
    InputError
        For what is not convex and piecewise linear, or has more than 1,024 pieces.
    """
    entries = _pieces(expression, variable, sign)
    _refuse_more(sum(map(len, entries)), expression)
    return entries


def _affine_parts(expression: Any, *variables: Any) -> tuple[list[FloatArray], FloatArray]:
    """Return what an affine expression is by each variable, and its value at 0.

    A row stands for each entry, in Fortran's order: what CVXPY computes, in floats.
    """
    kept = [variable.value for variable in variables]
    for variable in variables:
        variable.value = np.zeros(variable.shape)
    try:
        constants = np.asarray(expression.value, float).ravel(order="F")
        gradient = expression.grad if expression.variables() else {}
    finally:
        for variable, value in zip(variables, kept, strict=True):
            variable.value = value
    slopes = []
    for variable in variables:
        slope = gradient.get(variable, np.zeros((variable.size, constants.size)))
        slopes.append(np.atleast_2d(slope.toarray() if hasattr(slope, "toarray") else slope).T)
    return slopes, constants


def _pieces(expression: Any, variable: Any, sign: int) -> Pieces:
    """Return the pieces of sign · expression, which has to be convex."""
    if expression.is_affine():
        (slopes,), constants = _affine_parts(expression, variable)
        return [sign * row[None] for row in np.column_stack([slopes, constants])]
    name = type(expression).__name__
    if expression.is_atom_affine():
        return _combined(expression, variable, sign)
    if name not in (CONVEX if sign > 0 else CONCAVE):
        remedy = (
            f"pass an affine one in {variable.name()}, or a bound from above on max, maximum, "
            "abs, norm1, norm_inf or sum_largest of such; a cap on information is LeakageCap(b)"
        )
        raise InputError("constraint", f"{expression} is not convex piecewise linear", remedy)
    if name in ("maximum", "minimum"):
        each = [
            spread(_pieces(argument, variable, sign), argument.shape, expression.shape)
            for argument in expression.args
        ]
        return [np.vstack(entry) for entry in zip(*each, strict=True)]
    (argument,) = expression.args
    entries = _pieces(argument, variable, sign)
    if name in ("abs", "norm1", "norm_inf") and not argument.is_nonneg():
        below = _pieces(argument, variable, -1)
        entries = [np.vstack(both) for both in zip(entries, below, strict=True)]
    if name == "abs":
        return entries
    groups = _along(entries, argument.shape, getattr(expression, "axis", None))
    if name == "norm1":
        return [_sums(group, expression) for group in groups]
    if name == "sum_largest":
        count = min(int(expression.k), len(groups[0]))
        if expression.k != int(expression.k):
            remedy = "pass a whole number of entries"
            raise InputError("constraint", f"a share of an entry in {expression}", remedy)
        _refuse_more(comb(argument.size, count), expression)
        return [
            np.vstack([_sums(chosen, expression) for chosen in combinations(group, count)])
            for group in groups
        ]
    return [np.vstack(group) for group in groups]


def spread(entries: Pieces, shape: tuple[int, ...], onto: tuple[int, ...]) -> Pieces:
    """Return entries of one shape broadcast to another, in Fortran's order."""
    places = np.arange(len(entries)).reshape(shape, order="F")
    return [entries[i] for i in np.broadcast_to(places, onto).ravel(order="F")]


def _combined(expression: Any, variable: Any, sign: int) -> Pieces:
    """Return the pieces of an affine function of arguments that are not, Σ_j L_ij a_j + …."""
    inner = [argument for argument in expression.args if not argument.is_affine()]
    stand_ins = [type(variable)(argument.shape) for argument in inner]
    exchanged = {id(a): stand_in for a, stand_in in zip(inner, stand_ins, strict=True)}
    outer = expression.copy([exchanged.get(id(a), a) for a in expression.args])
    (direct, *slopes), constants = _affine_parts(outer, variable, *stand_ins)
    summands = [[sign * row[None]] for row in np.column_stack([direct, constants])]
    for argument, by_argument in zip(inner, slopes, strict=True):
        for way in (1, -1):
            weights = np.maximum(way * sign * by_argument, 0.0)
            entries = _pieces(argument, variable, way) if weights.any() else []
            for i, j in np.argwhere(weights):
                summands[i].append(weights[i, j] * entries[j])
    return [_sums(each, expression) for each in summands]


def _sums(summands: Sequence[FloatArray], expression: Any) -> FloatArray:
    """Return a piece for each choice of one piece of each summand."""
    _refuse_more(prod(map(len, summands)), expression)
    return np.array([np.sum(choice, axis=0) for choice in product(*summands)])


def _along(entries: Pieces, shape: tuple[int, ...], axis: int | None) -> list[Pieces]:
    """Return the entries in groups: all, or those along an axis, in Fortran's order."""
    if axis is None or len(shape) < 2:
        return [entries]
    places = np.arange(len(entries)).reshape(shape, order="F")
    lines = np.moveaxis(places, axis, -1).reshape((-1, shape[axis]), order="F")
    return [[entries[i] for i in line] for line in lines]


def _refuse_more(count: int, expression: Any) -> None:
    if count > MOST:
        problem = f"{expression} has {count:,} affine pieces"
        remedy = f"use at most {MOST:,}: norm1 of 10 entries; of a marginal's change, the criterion"
        raise InputError("constraint", problem, f"{remedy} MarginalDistance(t)")
