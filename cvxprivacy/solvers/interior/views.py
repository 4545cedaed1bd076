"""Views as the interior-point method reads them: their matrices, and Hessians of their measures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.leakage import Leakage, Smooth
from cvxprivacy.solvers.interior.blocks import Square
from cvxprivacy.solvers.interior.point import Layout

__all__ = ["Hessian", "Observer", "SmoothView", "labels_differ"]

# Share of an output's mass below which a label has no curvature of its own: 1/ω̃ times a rounding
# of M, which a factor of lower rank has, would be more than the curvature.
_FAINT = 1e-12


def labels_differ(matrix: Any) -> bool:
    """Tell whether a view, dense or sparse, sees no two letters under one label, as a rate's."""
    on = matrix > 0
    return bool(on.shape[0] > 1 and on.sum(axis=0).max() <= 1 and on.sum(axis=1).max() <= 1)


@dataclass(frozen=True, eq=False)
class Observer:
    """A view: M (|V|, n) with columns p(v | s), its reference π, and its measure."""

    name: str
    matrix: FloatArray
    reference: FloatArray
    layout: Layout
    measure: Leakage

    @cached_property
    def columns(self) -> FloatArray:
        """M, or for each output the columns of its letters."""
        return self.layout.gathered(self.matrix)

    @cached_property
    def sums(self) -> FloatArray:
        """Σ_v p(v | s) of every entry."""
        return self.layout.spread(self.matrix.sum(axis=0))

    def joint(self, q: FloatArray) -> FloatArray:
        """Return J = M q of every output, shape (m, |V|)."""
        if self.layout.letters is None:
            return q @ self.matrix.T
        return (self.columns @ q[:, :, None])[:, :, 0]

    def along(self, s: FloatArray) -> FloatArray:
        """Return Mᵀ s of every output, s (m, |V|)."""
        if self.layout.letters is None:
            return s @ self.matrix
        return (s[:, None, :] @ self.columns)[:, 0, :]

    def inside(self, parameters: FloatArray) -> FloatArray:
        """Return the scores, (m, |V|), that are made of any numbers (m, r)."""
        return self.measure.inside(parameters.T, self.reference).T


@dataclass(frozen=True, eq=False)
class SmoothView(Observer):
    """A view in a smooth measure, and how its M is best kept; other arrays are (m, |V|).

    ``label`` is the one label of each letter (−1: none) where labels differ by letter, as for a
    rate, and the measure is information; elsewhere M = ``left @ right`` where that is of lower
    rank.
    """

    measure: Smooth

    @cached_property
    def label(self) -> np.ndarray | None:
        if not (self.measure.informs and labels_differ(self.matrix)):
            return None
        on = self.matrix > 0
        return np.where(on.any(axis=0), on.argmax(axis=0), -1)

    @cached_property
    def factors(self) -> tuple[FloatArray, FloatArray] | None:
        """(|V|, r) and (r, n) or (m, r, k) with product M, if r is well below both sizes."""
        if min(self.matrix.shape) < 16:
            return None
        left, singular, right = np.linalg.svd(self.matrix, full_matrices=False)
        rank = int((singular > 1e-13 * singular[0]).sum())
        if rank > 0.8 * min(self.matrix.shape):
            return None
        return left[:, :rank] * singular[:rank], self.layout.gathered(right[:rank])

    @cached_property
    def labelled(self) -> tuple[np.ndarray, np.ndarray, FloatArray] | None:
        """Labels and letters of the only entries of M, and these, where labels differ by letter."""
        if self.label is None or self.layout.letters is not None:
            return None
        letters = np.nonzero(self.label >= 0)[0]
        labels = self.label[letters]
        return labels, letters, self.matrix[labels, letters]

    def joint(self, q: FloatArray) -> FloatArray:
        if self.labelled is None:
            return super().joint(q)
        labels, letters, entries = self.labelled
        joint = np.zeros((len(q), len(self.matrix)))
        joint[:, labels] = q[:, letters] * entries
        return joint

    def along(self, s: FloatArray) -> FloatArray:
        if self.labelled is None:
            return super().along(s)
        labels, letters, entries = self.labelled
        along = np.zeros((len(s), self.layout.n))
        along[:, letters] = s[:, labels] * entries
        return along

    def gradient(self, joint: FloatArray) -> FloatArray:
        """Return ∇F of every output."""
        return self.measure.gradient(joint.T, self.reference).T

    def second_order(self, joint: FloatArray, change: FloatArray) -> FloatArray:
        """Return what ∇F has of second order in a change of J (N24)."""
        return self.measure.second_order(joint.T, change.T, self.reference).T

    def parameters(self, s: FloatArray) -> FloatArray:
        """Return the parameters of scores."""
        return self.measure.parameters(s.T, self.reference).T


class Hessian:
    """∇²F of every output, (I − u ηᵀ)ᵀ diag(1/ω̃) (I − u ηᵀ) (N12); arrays (m, |V|)."""

    def __init__(self, view: SmoothView, joint: FloatArray, slopes: FloatArray) -> None:
        self.view = view
        parts = view.measure.curvature(joint.T, view.reference, slopes.T)
        self.mean, self.u, self.normal = (np.ascontiguousarray(part.T) for part in parts)

    def times(self, change: FloatArray) -> FloatArray:
        """Return ∇²F ΔJ."""
        total = (self.normal * change).sum(axis=1, keepdims=True)
        y = (change - self.u * total) / self.mean
        return y - self.normal * (self.u * y).sum(axis=1, keepdims=True)

    def square(self, label: np.ndarray, weight: FloatArray) -> Square:
        """Return ω Mᵀ ∇²F M where labels differ by letter: diagonal, less one square (N16)."""
        view, mean = self.view, self.mean
        label = np.broadcast_to(view.layout.spread(label), view.layout.shape)
        labelled = label >= 0
        of_letter = np.take_along_axis(mean, np.maximum(label, 0), axis=1)
        of_letter = np.where(labelled, of_letter, 0.0)
        added = weight[:, None] * view.sums**2 / np.maximum(of_letter, TINY)
        added = np.where(labelled, added, 0.0)
        return Square(of_letter / mean.sum(axis=1, keepdims=True), added)

    def rows(self, weight: FloatArray) -> FloatArray:
        """Return rows (m, r, k) with Σ rowsᵀ rows = ω Mᵀ ∇²F M.

        A reflection that takes η √ω̃, which diag(ω̃)^−½ (I − u ηᵀ) does not reach, to the axis of
        its largest entry leaves one row less: all that differs by output is a small matrix
        before M.
        """
        mean, u, normal, view = self.mean, self.u, self.normal, self.view
        if view.factors is not None:  # F M = (F left) right: what differs by output is F left
            left, right = view.factors
            rows = left - u[:, :, None] * (normal @ left)[:, None, :]
            floor = np.maximum(mean, _FAINT * mean.sum(axis=1, keepdims=True))
            rows *= np.sqrt(weight[:, None] / floor)[:, :, None]
            return _fewest(rows) @ right
        root = normal * np.sqrt(mean)
        root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
        most = root.argmax(axis=1)
        outputs, count = np.arange(len(u)), u.shape[1]
        axis = root.copy()
        axis[outputs, most] += 1.0
        small = np.eye(count) - root[:, :, None] * (axis / axis[outputs, most, None])[:, None, :]
        small *= np.sqrt(weight[:, None] / mean)[:, None, :]
        others = np.arange(count) != most[:, None]
        small = small[others].reshape(len(u), count - 1, count)
        if not view.measure.informs:  # there u lies along what is reflected
            small -= (small @ u[:, :, None]) * normal[:, None, :]
        return _fewest(small @ view.columns)


def _fewest(rows: FloatArray) -> FloatArray:
    """Return rows (m, r, k) of the same square, no more than k."""
    if rows.shape[1] > rows.shape[2]:
        triangle: Any = np.linalg.qr(rows, mode="r")
        rows = triangle
    return rows
