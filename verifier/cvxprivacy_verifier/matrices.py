"""Matrices in rationals or in balls: products, factors, and what is proved semidefinite.

A proof of A ≻ 0 is a Cholesky factor whose pivots are proved positive, (G27) of
``docs/theory/covariance.md``; a sign that balls cannot tell is that of a determinant, (G28).
Needs the standard library and python-flint only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpq_mat

from .balls import (
    PRECISION,
    Matrix,
    UnaffordableError,
    UnprovableError,
    exactly,
    total as _sum,
)
from .work import BURDEN

__all__ = [
    "BURDEN",
    "basis",
    "block",
    "cholesky",
    "definite",
    "eliminable",
    "known_log_det",
    "log_det",
    "minus",
    "plus",
    "rational",
    "real",
    "scaled",
    "semidefinite",
    "sign",
    "times",
    "trace",
]

LOST = 2  # bits that balls lose with a pivot: up to log₂ 3 where all are correlated
MOST = 16_384  # bits of balls, beyond which a sign that is not known is not asked further
# Of a determinant that tells a sign for whom waits: at most 4 s where n = 500 floats are alike, and
# a minute and a half where numbers have a thousand bits (n = 260)
PATIENT = 10**13
SHARP = 2.0**-64  # of a log det in nats: far below every tolerance, and above the balls of 128 bits


def rational(rows: Any) -> fmpq_mat:
    """Return a matrix of a document exactly."""
    if not rows or {type(row) for row in rows} != {list} or len({len(row) for row in rows}) != 1:
        raise UnprovableError("a matrix without entries, or ragged")
    return fmpq_mat([[exactly(x) for x in row] for row in rows])


def scaled(matrix: Any, factor: fmpq) -> Any:
    """Return a matrix times a rational."""
    return matrix * (factor if isinstance(matrix, fmpq_mat) else arb(factor))


def block(matrix: fmpq_mat, rows: Sequence[int], columns: Sequence[int]) -> fmpq_mat:
    """Return the block of some rows and columns."""
    return fmpq_mat([[matrix[i, j] for j in columns] for i in rows])


def _same(a: Any, b: Any) -> tuple[Any, ...]:
    """Return two matrices of one kind: rational if both are, else in balls."""
    if isinstance(a, fmpq_mat) and isinstance(b, fmpq_mat):  # exact as long as both are
        return a, b
    return tuple(x if isinstance(x, arb_mat) else arb_mat(x) for x in (a, b))


def times(a: Any, b: Any) -> Any:
    """Return a b."""
    a, b = _same(a, b)
    return a * b


def plus(a: Any, b: Any) -> Any:
    """Return a + b."""
    a, b = _same(a, b)
    return a + b


def minus(a: Any, b: Any) -> Any:
    """Return a − b."""
    a, b = _same(a, b)
    return a - b


def trace(matrix: Any) -> Any:
    """Return the trace."""
    return sum((matrix[i, i] for i in range(1, matrix.nrows())), matrix[0, 0])


def real(value: Any) -> arb:
    """Return a number in balls."""
    return value if isinstance(value, arb) else arb(value)


def cholesky(matrix: Any) -> Matrix | None:
    """Return the rows of a Cholesky factor in balls; None unless its diagonal is proved > 0."""
    rows, unproved = _factor(matrix)
    return rows if unproved is None else None


def _factor(matrix: Any) -> tuple[Matrix, arb | None]:
    """Return rows of a Cholesky factor, and the first pivot that is not proved > 0, if any."""
    size = matrix.nrows()
    entries = matrix if isinstance(matrix, arb_mat) else arb_mat(matrix)
    rows: Matrix = []
    for i in range(size):
        row: list[arb] = []
        for j in range(i + 1):
            other = rows[j] if j < i else row
            # (G27): a_ij − Σ_k<j l_ik l_jk, on the diagonal the pivot
            remainder = entries[i, j] - _sum(a * b for a, b in zip(row, other, strict=False))
            if j < i:
                row.append(remainder / rows[j][j])
            elif remainder > 0:
                row.append(remainder.sqrt())
            else:
                return rows, remainder
        rows.append(row)
    return rows, None


def log_det(matrix: Any) -> arb | None:
    """Return log det of a symmetric matrix proved positive definite, else None."""
    rows = cholesky(matrix)
    return None if rows is None else 2 * _sum(row[-1].log() for row in rows)


def known_log_det(matrix: Any) -> arb | None:
    """Return log det if it is known to 64 bits after the point, so that factors are worth much."""
    value = log_det(matrix)
    return None if value is None or value.rad() > SHARP else value


def semidefinite(matrix: Any) -> bool:
    """Tell whether a symmetric matrix is proved positive semidefinite.

    One of balls by a Cholesky factor; a rational one as :func:`sign` does.
    """
    if isinstance(matrix, fmpq_mat):
        return sign(matrix, patient=False) in (0, 1)
    return _factor(matrix)[1] is None


def eliminable(matrix: fmpq_mat) -> bool:
    """Tell whether exact elimination is worth its time."""
    return _burden(matrix, BURDEN) <= BURDEN


def _burden(matrix: fmpq_mat, most: int) -> int:
    """Return the size of the numbers that exact elimination multiplies, times their count.

    Of what is beyond ``most``, only that it is.
    """
    # n³ products, of numbers that grow up to n-fold
    entries, count = [x for row in matrix.tolist() for x in row], matrix.nrows() ** 4
    bits, common = max(int(x.p).bit_length() for x in entries), 1
    for denominator in (int(x.q) for x in entries):  # elimination has one common denominator
        if common % denominator:
            common = math.lcm(common, denominator)
            if count * common.bit_length() > most:
                break
    return count * (bits + common.bit_length())


def basis(matrix: fmpq_mat) -> list[int]:
    """Return the first columns that the others are combinations of."""
    reduced, rank = matrix.rref()  # whose pivots are in the columns that are no combinations
    columns = range(matrix.ncols())
    return [next(j for j in columns if reduced[i, j] != 0) for i in range(rank)]


def definite(matrix: fmpq_mat) -> bool:
    """Tell whether a rational symmetric matrix is positive definite; raise if that is undecided."""
    if (side := sign(matrix)) is None:
        size = matrix.nrows()
        raise UnaffordableError(f"undecided: whether {size} × {size} numbers are positive definite")
    return side == 1


def sign(matrix: fmpq_mat, *, patient: bool = True) -> int | None:
    """Return 1 for a positive definite rational matrix, 0 for a singular semidefinite one, else −1.

    A Cholesky factor in balls tells it, or the first pivot that is no positive ball.  If that ball
    holds 0, the pivot has the sign of an exact determinant, which is computed if its work, n⁴ times
    the bits of its numbers, is at most ``PATIENT``, or ``BURDEN`` for who is not patient.  Beyond,
    balls get up to ``MOST`` bits; None, for undecided, where these do not tell it either.
    """
    some = [i for i, row in enumerate(matrix.tolist()) if any(x != 0 for x in row)]
    if not some:
        return 0
    inner = block(matrix, some, some)  # variables that are exactly 0 have no say
    most = PATIENT if patient else BURDEN
    exact = _burden(inner, most) <= most
    precision = max(PRECISION, flint.ctx.prec) + LOST * len(some)
    while exact or precision <= MOST:
        with flint.ctx.workprec(precision):
            rows, unproved = _factor(inner)
        if unproved is None:
            return int(len(some) == matrix.nrows())
        if unproved < 0:
            return -1
        if exact:
            # the pivots before it are positive, so that it has the sign of its leading minor, (G28)
            leading = range(len(rows) + 1)
            minor = block(inner, leading, leading).det()
            if minor == 0:  # (G29)
                kept = basis(inner)
                singular = len(kept) < len(some)
                return 0 if singular and definite(block(inner, kept, kept)) else -1
            if minor < 0:
                return -1
        precision *= 4  # a positive pivot is proved so with enough digits
    return None
