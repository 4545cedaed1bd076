"""Floats near the exact matrices of a proof, computed where no digit is lost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, array
from cvxprivacy.verifier.matrices import cholesky

__all__ = ["floats", "root_of"]

# Of the entries of a root.  Floats do up to a condition number of about 2²⁶: there L⁻¹ΣL⁻ᵀ is off
# by 2¹³ units of their last place, 2⁻⁴⁰
_BITS = (53, 128, 512, 2048)
_WHITE = 2.0**-40  # how far L⁻¹ΣL⁻ᵀ may be off I: below every tolerance of a gap


def floats(matrix: Any) -> FloatArray:
    """Return the middles of a matrix of balls or rationals."""
    balls = matrix if isinstance(matrix, arb_mat) else arb_mat(matrix)
    return np.array([[float(x) for x in row] for row in balls.tolist()])


def root_of(matrix: Any) -> tuple[Exact, Any]:
    """Return a lower triangular L with L Lᵀ near the matrix, exactly, and its exact inverse.

    L⁻¹ (matrix) L⁻ᵀ is off I by about the square root of the condition number in units of the
    last place of L: L is of floats if these do, else of as many bits as it takes.
    """
    rows = cholesky(matrix)
    if rows is None:
        problem = "not positive definite"
        raise InputError("covariance", problem, "leave out variables that others determine")
    size = len(rows)
    for bits in _BITS:
        entries = np.array([[Fraction(0)] * size for _ in range(size)], dtype=object)
        for i, row in enumerate(rows):
            entries[i, : i + 1] = [_shortened(x, bits) for x in row]
        ratios = fmpq_mat([[fmpq(*x.as_integer_ratio()) for x in row] for row in entries])
        inverse = (ratios if isinstance(matrix, fmpq_mat) else arb_mat(ratios)).inv()
        white = inverse * matrix * inverse.transpose()  # I if L Lᵀ is the matrix
        if np.abs(floats(white) - np.eye(size)).max() < _WHITE:
            break
    return array(entries), inverse


def _shortened(value: arb, bits: int) -> Fraction:
    """Return the middle of a ball, cut to so many bits."""
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    beyond = max(mantissa.bit_length() - bits, 0)
    return Fraction(mantissa >> beyond) * Fraction(2) ** (exponent + beyond)
