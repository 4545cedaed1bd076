"""Matrices that are computed exactly, or in balls as narrow as it takes, and rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

from cvxprivacy.exact import Exact, FloatArray, array as exact_array

__all__ = ["array", "block", "diagonal", "fractions", "identity", "rationals", "rounded"]

PRECISIONS = (192, 768, 3072, 12288)  # of balls, in bits


def rationals(values: Any) -> fmpq_mat:
    """Return rows of exact numbers, or a rational matrix, as a rational matrix."""
    if isinstance(values, fmpq_mat):
        return values
    rows = values.tolist() if isinstance(values, np.ndarray) else values
    width = len(rows[0]) if len(rows) else 0
    return fmpq_mat(len(rows), width, [fmpq(*v.as_integer_ratio()) for row in rows for v in row])


def diagonal(values: Sequence[Any]) -> fmpq_mat:
    """Return a rational matrix of exact numbers on the diagonal."""
    size = len(values)
    matrix = fmpq_mat(size, size)
    for i, value in enumerate(values):
        matrix[i, i] = fmpq(*value.as_integer_ratio())
    return matrix


def identity(size: int) -> fmpq_mat:
    """Return the identity."""
    return diagonal([1] * size)


def block(matrix: Any, rows: Sequence[int], columns: Sequence[int]) -> fmpq_mat:
    """Return a part of rows of exact numbers, or of a rational matrix."""
    if isinstance(matrix, fmpq_mat):
        return fmpq_mat(len(rows), len(columns), [matrix[i, j] for i in rows for j in columns])
    some = [fmpq(*matrix[i][j].as_integer_ratio()) for i in rows for j in columns]
    return fmpq_mat(len(rows), len(columns), some)


def fractions(matrix: fmpq_mat) -> list[list[Fraction]]:
    """Return the entries of a rational matrix."""
    return [[Fraction(int(v.p), int(v.q)) for v in row] for row in matrix.tolist()]


def array(matrix: fmpq_mat) -> Exact:
    """Return a rational matrix as an exact array."""
    return exact_array(
        np.array(fractions(matrix), dtype=object).reshape(matrix.nrows(), matrix.ncols())
    )


def rounded(compute: Callable[[], Any], size: float = 0.0) -> FloatArray:
    """Return floats next to a matrix of balls, whatever precision it takes to know them.

    The largest entry is known to 60 bits, or ``size`` if that is larger; all others are known as
    nearly as it.

    Raises
    ------
    ZeroDivisionError
        Where it cannot be known: a matrix that is inverted is singular.
    """
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            try:
                balls = arb_mat(compute())
            except ZeroDivisionError:
                continue
            entries = [x for row in balls.tolist() for x in row]
            largest = max((abs(x).lower() for x in entries), default=arb(0))
            if all(x.rad() <= max(largest, arb(size)) * 2.0**-60 for x in entries):
                flat: FloatArray = np.array([float(x.mid()) for x in entries], dtype=float)
                return flat.reshape(balls.nrows(), balls.ncols())
    raise ZeroDivisionError("a singular matrix")
