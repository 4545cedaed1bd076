"""Floats near the exact matrices of a proof, computed where no digit is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb_mat, fmpq_mat

from cvxprivacy.certificates.covariance import cholesky
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray

__all__ = ["floats", "root_of"]


def floats(matrix: Any) -> FloatArray:
    """Return the middles of a matrix of balls or rationals."""
    balls = matrix if isinstance(matrix, arb_mat) else arb_mat(matrix)
    return np.array([[float(x) for x in row] for row in balls.tolist()])


def root_of(matrix: Any) -> tuple[FloatArray, Any]:
    """Return a lower triangular L with L Lᵀ near the matrix, and its exact inverse.

    L is rounded from a factor of high precision, so that L⁻¹ (matrix) L⁻ᵀ is off I by about
    the square root of the condition number in units of the last place, not by all of it.
    """
    rows = cholesky(matrix)
    if rows is None:
        problem = "not positive definite"
        raise InputError("covariance", problem, "leave out variables that others determine")
    root = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        root[i, : i + 1] = [float(x) for x in row]
    exact = fmpq_mat([[_ratio(x) for x in row] for row in root.tolist()])
    return root, (exact if isinstance(matrix, fmpq_mat) else arb_mat(exact)).inv()


def _ratio(value: float) -> Any:
    from flint import fmpq

    return fmpq(*value.as_integer_ratio())
