"""Exact matrices, rounded once, and covariances: symmetric, proved semidefinite."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, array as exact_array, floats as exact_floats
from cvxprivacy.validation import table
from cvxprivacy_verifier.matrices import basis, definite, log_det, sign

__all__ = [
    "array",
    "block",
    "diagonal",
    "entropy",
    "fractions",
    "identity",
    "independent",
    "proved",
    "rationals",
    "rounded",
    "symmetric",
    "volume",
]

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


def symmetric(values: Any, argument: str, remedy: str) -> fmpq_mat:
    """Return a symmetric matrix of typed numbers exactly, or say what is wrong with it.

    Where (i, j) and (j, i) differ by rounding their mean is taken, whatever their order.
    """
    entries = np.asarray(table(values, argument, remedy, axes=(2,), negative=True))
    if entries.shape[0] != entries.shape[1]:
        raise InputError(argument, f"shape {entries.shape}", remedy)
    near = exact_floats(entries)
    for i, variance in enumerate(near.diagonal().tolist()):
        if variance < 0:
            raise InputError(argument, f"{variance!r}", remedy, where=(i, i), value=variance)
    scale = np.sqrt(np.abs(near.diagonal()))
    off = np.abs(near - near.T) > 1e-12 * np.outer(scale, scale)
    if off.any():
        i, j = (int(k) for k in np.argwhere(off)[0])
        problem = (
            f"asymmetric, {float(near[i, j])!r} at ({i}, {j}), {float(near[j, i])!r} at ({j}, {i})"
        )
        raise InputError(argument, problem, remedy, where=(i, j), value=float(near[i, j]))
    exact = rationals(entries)
    return (exact + exact.transpose()) / 2


def proved(matrix: fmpq_mat, argument: str, remedy: str) -> bool:
    """Tell whether a matrix is positive definite rather than semidefinite; refuse any other.

    One of which it is undecided, too, as it may be of very many numbers, or very long ones.
    """
    if (side := sign(matrix)) in (0, 1):
        return side == 1
    if side is None:
        problem = (
            "undecided: a pivot cannot be told from 0, and its determinant takes too long; it can "
            f"be told of one that is semidefinite with its diagonal times {1 + 2.0**-50!r}"
        )
        raise InputError(argument, problem, remedy)
    least, factor = _lacking(matrix)
    problem = f"indefinite: the least eigenvalue of its correlations is {least:.3g}"
    if factor is not None:
        problem += f"; multiply its diagonal by {factor!r} to lift it above 0"
    raise InputError(argument, problem, remedy, value=least)


def _lacking(matrix: fmpq_mat) -> tuple[float, float | None]:
    """Return the least eigenvalue of the correlations, and what the diagonal lacks a factor of.

    Where floats cannot tell it from 0, it is known to a factor of two: what is undecided counts as
    too little, as a diagonal that is lifted by more is proved to be enough.
    """
    size = matrix.nrows()
    diagonal = [matrix[i, i] for i in range(size)]
    if any(variance == 0 and any(matrix[i, j] != 0 for j in range(size))
           for i, variance in enumerate(diagonal)):  # fmt: skip
        return -math.inf, None
    near = exact_floats(array(matrix))
    norm = np.sqrt(np.where(near.diagonal() > 0, near.diagonal(), 1.0))
    least = float(np.linalg.eigvalsh(near / norm[:, None] / norm)[0])
    if least > -1e-12:
        low, high = -1074, -39  # 2^low is too little, 2^high enough
        while high - low > 1:
            middle = (low + high) // 2
            enough = sign(_lifted(matrix, Fraction(2) ** middle), patient=False) in (0, 1)
            low, high = (low, middle) if enough else (middle, high)
        least = -(2.0**high)
    return least, 1 + max(-2 * least, 2.0**-50)


def _lifted(matrix: fmpq_mat, share: Fraction) -> fmpq_mat:
    """Return the matrix with (1 + share) times its diagonal."""
    lifted = fmpq_mat(matrix)
    by = rationals([[1 + share]])[0, 0]
    for i in range(matrix.nrows()):
        lifted[i, i] = by * matrix[i, i]
    return lifted


def independent(law: fmpq_mat, near: np.ndarray, argument: str) -> tuple[int, ...]:
    """Return the places of variables that determine all of them.

    All of them, unless their covariance is exactly singular; then variables that are as
    little correlated as can be, so that the others are moderate combinations.

    Parameters
    ----------
    law : fmpq_mat
        Their covariance, positive semidefinite.
    near : ndarray
        The floats next to it.
    argument : str
        What is refused if all variables are constant.
    """
    if definite(law):
        return tuple(range(len(near)))
    order = _apart(near)
    pivots = basis(block(law, order, order))
    if not pivots:
        raise InputError(argument, "constant variables", "name variables that vary")
    return tuple(sorted(order[i] for i in pivots))


def _apart(law: np.ndarray) -> list[int]:
    """Return variables in order, each one that those before it explain least, in floats."""
    norm = np.sqrt(np.where(law.diagonal() > 0, law.diagonal(), 1.0))
    left, order = law / norm[:, None] / norm, []
    remaining = list(range(len(law)))
    while remaining:
        first = max(remaining, key=lambda i: (left[i, i], -i))
        remaining.remove(first)
        order.append(first)
        if left[first, first] > 0:
            left = left - np.outer(left[first], left[first]) / left[first, first]
    return order


def volume(law: fmpq_mat) -> arb:
    """Return log det of a positive definite matrix, to a hundred bits at least."""
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            ball = log_det(law)
            if ball is not None and ball.rad() <= 2.0**-100 * (1 + abs(ball)).lower():
                return ball
    raise InputError("covariance", "too nearly singular", "leave out what others determine")


def entropy(law: fmpq_mat, units: str) -> arb:
    """Return h(W) = ½ log det 2πe Cov(W) of Gaussian W in a ball, about thirty digits of it."""
    with ctx.workprec(PRECISIONS[0]):
        nats = (volume(law) + law.nrows() * (1 + (2 * arb.pi()).log())) / 2
        return nats / arb(2).log() if units == "bits" else nats
