r"""The blocks of the interior-point method: one matrix for each output, kept by its inverse.

The block of output y is

.. math:: H_y = \mathrm{diag}(D) + \sum_k ω_k F_k^\top F_k + \sum_j \tfrac{λ_j}{σ_j} a_j a_j^\top,
          \qquad F_k = \mathrm{diag}(ω̃)^{-1/2} (M_k - u\, η^\top M_k),

(N13) with ω̃, u and η from the Hessian of a smooth measure (for information ω̃ is the logarithmic
mean of J and π q exp(s), u = ω̃/Σω̃ and η = 1), F from its linear program for a polyhedral one, and
j over the rows of that output alone.  A rate's F is diagonal but for one negative square, and so is
an auxiliary once its level is eliminated; all others have few rows.  So

.. math:: H_y^{-1} = \mathrm{diag}(1/D') + U^\top U - T^\top T

(N16), where T has a row for each row of the F and a, and U one for each negative square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.solvers.interior.point import Layout

__all__ = ["Blocks", "Square", "factor"]

_CACHED = 400_000  # numbers that stay in a cache of a few MB between two uses
_SHIFTS = (0.0, 1e-14, 1e-12, 1e-10)  # of a diagonal of 1, which rounding leaves not positive


@dataclass(frozen=True, eq=False)
class Square:
    """diag(added) − N Nᵀ with N² = share · (added − remainder), Σ share = 1; arrays (m, n)."""

    share: FloatArray
    added: FloatArray
    remainder: FloatArray | float = 0.0


@dataclass(frozen=True, eq=False)
class Blocks:
    """Inverses of m blocks: of a diagonal (m, n), or in full (m, n, n), less ``down``, plus ``up``.

    ``root`` and ``scale`` are the factor of I + G G⁺ of the rows G that were added, and ``lost``
    the negative squares N, such that H⁻¹ x = H₁⁻¹ (x + lostᵀ up x) with H₁ as H without them.
    """

    diagonal: FloatArray
    full: FloatArray | None
    down: FloatArray
    root: FloatArray
    scale: FloatArray
    up: FloatArray
    lost: FloatArray

    @classmethod
    def of(
        cls, diagonal: FloatArray, squares: Sequence[Square], rows: FloatArray, free: np.ndarray
    ) -> Blocks:
        """Return the inverses of diag(diagonal) + Σ rowsᵀ rows + Σ squares; 0 where not free.

        ``rows`` are overwritten: a new array of that size costs more than what is computed in it.

        The negative squares come last: of I − N H₁⁻¹ Nᵀ nothing cancels if the part of the
        diagonal is summed as Σ share (D' − added + remainder)/D'.
        """
        total = diagonal + sum(square.added for square in squares)
        inverse = np.where(free, 1.0 / total, 0.0)
        blocks = cls._plus(inverse, None, rows)
        if not squares:
            return blocks
        (m, n), count = diagonal.shape, np.arange(len(squares))
        lost, corner = np.empty((m, len(squares), n)), np.empty((m, len(squares)))
        behind: list[FloatArray | float] = [0.0]  # what squares after each add, and before it
        for square in squares[:0:-1]:
            behind.append(square.added + behind[-1])
        before: FloatArray | float = 0.0
        for i, square in enumerate(squares):
            lost[:, i] = np.sqrt(square.share * np.maximum(square.added - square.remainder, 0.0))
            others = diagonal + square.remainder + (before + behind.pop())
            before = before + square.added
            corner[:, i] = (square.share * np.where(free, others * inverse, 1.0)).sum(axis=1)
        inner = -(lost * inverse[:, None, :]) @ lost.transpose(0, 2, 1)
        inner[:, count, count] = np.maximum(corner, TINY)
        met = blocks.down @ lost.transpose(0, 2, 1)
        inner += met.transpose(0, 2, 1) @ met
        both = np.concatenate([blocks.rows(lost), lost], axis=2)
        up, lost = np.split(_halved(*factor(inner), both), 2, axis=2)
        return replace(blocks, up=up, lost=lost)

    @classmethod
    def dense(
        cls, diagonal: FloatArray, tall: FloatArray, rows: FloatArray, free: np.ndarray
    ) -> Blocks:
        """Return the inverses of diag(diagonal) + Σ tallᵀ tall, in full, + Σ rowsᵀ rows.

        ``rows`` are overwritten.
        """
        blocks = tall.transpose(0, 2, 1) @ tall
        place = np.arange(diagonal.shape[1])
        blocks[:, place, place] += np.where(free, diagonal, 1.0)
        scale = free / np.sqrt(blocks[:, place, place])
        blocks *= scale[:, :, None] * scale[:, None, :]
        blocks[:, place, place] = 1.0
        inverse = _inverted(blocks)
        inverse *= scale[:, :, None] * scale[:, None, :]
        return cls._plus(np.zeros_like(diagonal), inverse, rows)

    @classmethod
    def _plus(cls, diagonal: FloatArray, full: FloatArray | None, rows: FloatArray) -> Blocks:
        m, count = len(diagonal), np.arange(rows.shape[1])
        none = np.zeros((m, 0, diagonal.shape[1]))
        root, scale = np.empty((m, len(count), len(count))), np.empty((m, len(count)))
        for some in _together(rows):
            part = rows[some]
            half = part * diagonal[some, None, :] if full is None else part @ full[some]
            inner = half @ part.transpose(0, 2, 1)  # I + G H₁⁻¹ Gᵀ (N16)
            inner[:, count, count] += 1.0
            root[some], scale[some] = factor(inner)
            rows[some] = _halved(root[some], scale[some], half)
        return cls(diagonal, full, rows, root, scale, none, none)

    def rows(self, rows: FloatArray) -> FloatArray:
        """Return rows (m, r, n) times the inverses."""
        if self.up.shape[1]:
            rows = rows + (rows @ self.up.transpose(0, 2, 1)) @ self.lost
        times = rows * self.diagonal[:, None, :] if self.full is None else rows @ self.full
        if self.down.shape[1]:
            for some in _together(self.down):
                down = self.down[some]
                times[some] -= (rows[some] @ down.transpose(0, 2, 1)) @ down
        return times

    def rows_of(self, outputs: np.ndarray, rows: FloatArray) -> FloatArray:
        """Return rows (e, n), each of one output, times its inverse."""
        part = replace(
            self,
            diagonal=self.diagonal[outputs],
            full=None if self.full is None else self.full[outputs],
            down=self.down[outputs],
            up=self.up[outputs],
            lost=self.lost[outputs],
        )
        return part.rows(rows[:, None, :])[:, 0, :]

    def times(self, x: FloatArray) -> FloatArray:
        """Return H⁻¹ x of every output, x (m, n)."""
        return self.rows(x[:, None, :])[:, 0, :]

    def reached(self, x: FloatArray) -> FloatArray:
        """Return G H⁻¹ x, (m, r), of the rows G that were added, where it is next to nothing."""
        if self.up.shape[1]:
            x = x + np.einsum("yk,ykn->yn", np.einsum("ykn,yn->yk", self.up, x), self.lost)
        half = np.einsum("yrn,yn->yr", self.down, x)
        # G H⁻¹x = s L⁻ᵀ T x: no difference of what is large
        solved = np.linalg.solve(self.root.transpose(0, 2, 1), half[:, :, None])[:, :, 0]
        return solved * self.scale

    def total(self, layout: Layout) -> FloatArray:
        """Return Σ_y H_y⁻¹, shape (n, n)."""
        total = layout.square(self.full, self.down, self.up)
        total[np.diag_indices_from(total)] += layout.total(self.diagonal)
        return total


def _together(rows: FloatArray) -> list[slice]:
    """Return outputs whose rows (m, r, n) fit a processor's cache, so that each is read once."""
    step = max(_CACHED // max(rows[:1].size, 1), 1)
    return [slice(y, y + step) for y in range(0, len(rows), step)]


def _inverted(blocks: FloatArray) -> FloatArray:
    """Return the inverses of symmetric blocks; half the time of one that knows no symmetry."""
    try:
        inverse = np.linalg.cholesky(blocks)
    except np.linalg.LinAlgError:  # which rounding left not positive
        inverse = 0.5 * np.linalg.inv(blocks)
    else:
        for lower in inverse:  # LAPACK's order is by columns: the transpose of NumPy's
            lapack.dpotri(lower.T, overwrite_c=1)
        np.einsum("yii->yi", inverse)[...] *= 0.5
    return inverse + inverse.transpose(0, 2, 1)


def factor(inner: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return L and s with s inner s = L Lᵀ, s the scale that makes the diagonal 1."""
    scale = 1.0 / np.sqrt(np.einsum("yii->yi", inner))
    scaled = inner * scale[:, :, None] * scale[:, None, :]
    for shift in _SHIFTS:
        try:
            return np.linalg.cholesky(scaled + shift * np.eye(inner.shape[1])), scale
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("a block that is singular")


def _halved(lower: FloatArray, scale: FloatArray, half: FloatArray) -> FloatArray:
    """Return L⁻¹ s half: its square is halfᵀ inner⁻¹ half, of the factor of ``inner``."""
    return (np.linalg.inv(lower) * scale[:, None, :]) @ half
