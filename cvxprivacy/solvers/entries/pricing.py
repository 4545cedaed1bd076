r"""Reduced costs of all entries, from the central path on some of them.

With its thresholds ν and multipliers λ, entry (x, y) can lower the optimum only where

.. math:: r(x, y) = \sum_k α_k \sum_v p_k(v|x)\, s_k(v, y) + (C_0 + \sum_j λ_j C_j)(x, y) - ν(x)

is negative (E2).  The scores of an output without mass are free, so that it stays out if *some*
normalised scores make all its reduced costs nonnegative.  The largest least of them (E5) is
computed by Newton's method on a soft minimum, for all such outputs at once, until it is known
whether the output stays out; the scores are its certificate.

Equations are those of ``docs/theory/entries.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.settings import EntryGeneration
from cvxprivacy.solvers.interior.method import Iterate
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy.solvers.interior.views import Observer

__all__ = ["Pricing"]

_BARRED = 1e6  # reduced cost of an entry that has no choice: above any other, which are about 1


@dataclass(frozen=True, eq=False)
class _Prices:
    """What prices of some outputs are made of: costs (m, n) but for scores, α of each view."""

    views: Sequence[Observer]
    base: FloatArray
    weights: list[FloatArray]

    def at(self, rows: np.ndarray) -> _Prices:
        return _Prices(self.views, self.base[rows], [w[rows] for w in self.weights])

    def reduced(self, scores: list[FloatArray]) -> FloatArray:
        """Return r, shape (m, n)."""
        r = self.base.copy()
        for view, weight, s in zip(self.views, self.weights, scores, strict=True):
            r += (weight[:, None] * _normalised(s, view.reference)) @ view.matrix  # (E2)
        return r


@dataclass(frozen=True, eq=False)
class _Judged:
    """Reduced costs (m, n) of some outputs: as they count in the bound, and for what enters."""

    bound: FloatArray
    entering: FloatArray


class Pricing:
    """Prices in the scale of the interior-point method; ``scores`` (m, |V|) are kept.

    Parameters
    ----------
    full : ScaledProgram
        The program of all entries.
    scores : sequence of (m, |V|) array
        Those to begin with.
    """

    def __init__(self, full: ScaledProgram, scores: Sequence[FloatArray]) -> None:
        self.full, self.scores, self.settings = full, scores, EntryGeneration.current()
        # where there is a floor its cost counts, not only the least
        self.floored = np.asarray((full.low > 0).any(axis=1))
        self.labels = sum(s.shape[1] for s in self.scores)

    def copied(self) -> tuple[FloatArray, ...]:
        """Return the scores as they are now."""
        return tuple(s.copy() for s in self.scores)

    def missing(
        self, iterate: Iterate, chosen: np.ndarray, tolerance: float
    ) -> tuple[np.ndarray, float]:
        """Return entries (m, n) to add, and what all reduced costs below 0 take off the bound.

        Parameters
        ----------
        iterate : Iterate
            Of the entries that are ``chosen``, (m, n).
        tolerance : float
            Reduced cost that counts as 0, in the scale of the method.
        """
        n, m = self.full.n, self.full.m
        present, massless = self._taken_over(iterate)
        entering, least = np.zeros_like(chosen), np.zeros(n)
        nearest, choice = np.full(n, -tolerance), np.full(n, -1)  # of each letter, and its output
        count = max(self.settings.chunk // n, 1)
        for first in range(0, m, count):
            outputs = np.arange(first, min(first + count, m))
            closed = chosen[outputs] | ~self.full.free[outputs]
            judged = self._judged(iterate, outputs, closed, present, massless, tolerance)
            least = np.minimum(least, judged.bound.min(axis=0))
            reduced = judged.entering
            reduced[closed] = np.inf
            self._by_output(entering, outputs, reduced, present, tolerance)
            best = reduced.argmin(axis=0)
            value = reduced[best, np.arange(n)]
            better = value < nearest
            nearest[better], choice[better] = value[better], outputs[best[better]]
        _by_letter(entering, nearest, choice)
        return entering, float(-least @ self.full.mass)  # (E10): what the bound loses

    def _taken_over(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray]:
        """Take the scores of a path's outputs; return which it has, and which have no mass.

        A label that an output has not met has no least score: it is cut off below the largest.
        """
        layout, x = iterate.program.layout, iterate.point
        present, massless = np.zeros(self.full.m, bool), np.ones(self.full.m, bool)
        present[layout.outputs] = True
        mass = x.q.sum(axis=1)
        order = np.argsort(mass)
        # the lightest of them, as long as their masses add up to next to nothing
        little = self.settings.massless * iterate.gap / self.full.program.scale
        heavy = np.cumsum(mass[order]) > little
        massless[layout.outputs[order[heavy]]] = False
        for kept, s in zip(self.scores, x.scores, strict=True):
            deepest = s.max(axis=1, keepdims=True) - self.settings.score_depth
            kept[layout.outputs] = np.maximum(s, deepest)
        return present, massless

    def _judged(
        self,
        iterate: Iterate,
        outputs: np.ndarray,
        closed: np.ndarray,
        present: np.ndarray,
        massless: np.ndarray,
        tolerance: float,
    ) -> _Judged:
        """Return reduced costs with the scores that there are or better ones, which are kept."""
        prices = self._prices(iterate, outputs)
        reduced = prices.reduced([s[outputs] for s in self.scores])
        # only an output with a negative reduced cost needs a certificate
        below = np.nonzero((reduced.min(axis=1) < -tolerance) & ~self.floored[outputs])[0]
        trial, scores = self._improved(prices.at(below), outputs[below], tolerance)
        gains = self._lost(trial) < self._lost(reduced[below])
        for kept, s in zip(self.scores, scores, strict=True):
            kept[outputs[below[gains]]] = s[gains]
        bound = reduced.copy()
        bound[below[gains]] = trial[gains]
        # scores of the path show what an output with mass needs beside what it has; priced ones
        # stand for new outputs, for those that they clear, and for massless ones that they do not
        free = ~present[outputs[below]] | (trial.min(axis=1) >= -tolerance)
        free |= massless[outputs[below]] & ((trial < -tolerance) & ~closed[below]).any(axis=1)
        reduced[below[gains & free]] = trial[gains & free]
        return _Judged(bound, reduced)

    def _lost(self, reduced: FloatArray) -> FloatArray:
        """Return what reduced costs below 0 take off the bound, if no other output did (E3)."""
        return np.maximum(-reduced, 0.0) @ self.full.mass

    def _prices(self, iterate: Iterate, outputs: np.ndarray) -> _Prices:
        full, x = self.full, iterate.point
        # (E2) without scores; all rows are linear, so that α is the objective's alone
        base = np.where(full.free[outputs], full.cost[outputs], _BARRED) - x.nu
        for name, row in full.rows.items():
            base += x.multiplier(name) * row.cost[outputs]
        weights = [np.zeros(len(outputs)) for _ in full.views]
        for i, weight in full.weights.items():
            weights[i] = weights[i] + weight[outputs]
        return _Prices(full.views, base, weights)

    def _improved(
        self, prices: _Prices, outputs: np.ndarray, tolerance: float
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return reduced costs with scores that make the least of each output large, and those.

        An output is done with when it is cleared, or when a column shows that it cannot be (E5).
        """
        best = [s[outputs] for s in self.scores]
        reduced = prices.reduced(best)
        if not any(w.any() for w in prices.weights):
            return reduced, best
        least = reduced.min(axis=1)
        # of the outputs that are not done with: their places, and where they stand
        rows, scores, current = np.arange(len(outputs)), best, reduced
        active = np.zeros((len(outputs), 0), dtype=np.intp)
        sharpness = np.maximum(1.0 / np.maximum(-least, tolerance), self.settings.first_sharpness)
        for _ in range(self.settings.passes):
            if not len(rows):
                break
            # letters that have become the cheapest join those before
            active = _joined(active, current, 2 * (2 + self.labels))
            part = prices.at(rows)
            scores, gain, most = _SoftMinimum(part, active, sharpness).maximised(scores)
            current = part.reduced(scores)
            low = current.min(axis=1)
            better = low > least[rows]
            least[rows[better]], reduced[rows[better]] = low[better], current[better]
            for kept, s in zip(best, scores, strict=True):
                kept[rows[better]] = s[better]
            # the least of all letters, but for what the soft minimum is off anyway (E6)
            covered = (
                np.take_along_axis(current, active, axis=1).min(axis=1) <= low + 1.0 / sharpness
            )
            settled = covered & (gain < 0.1 / sharpness)
            sharpness = np.where(settled, self.settings.sharpness_factor * sharpness, sharpness)
            width = np.where(most < -tolerance, -self.settings.width * most, tolerance)
            on = (least[rows] < -tolerance) & (most - least[rows] >= width)
            on &= sharpness < self.settings.last_sharpness / tolerance
            rows, active, sharpness = rows[on], active[on], sharpness[on]
            current, scores = current[on], [s[on] for s in scores]
        return reduced, best

    def _by_output(
        self,
        entering: np.ndarray,
        outputs: np.ndarray,
        reduced: FloatArray,
        present: np.ndarray,
        tolerance: float,
    ) -> None:
        """Mark the cheapest letters of every output with one below 0; a new one needs more (E11).

        Its scores have as many unknowns as there are labels, which fewer letters would not fix.
        """
        count = min(2 * (self.labels + 2), self.full.n)
        low = np.nonzero(reduced.min(axis=1) < -tolerance)[0]
        cheap = np.argpartition(reduced[low], count - 1, axis=1)[:, :count]
        values = np.take_along_axis(reduced[low], cheap, axis=1)
        new = ~present[outputs[low], None] & np.isfinite(values)
        rows, columns = np.nonzero((values < -tolerance) | new)
        entering[outputs[low[rows]], cheap[rows, columns]] = True


class _SoftMinimum:
    """m_κ(r) = −log Σ exp(−κ r)/κ of the letters ``cheap`` (m, l) of some outputs (E6)."""

    def __init__(self, prices: _Prices, cheap: np.ndarray, sharpness: FloatArray) -> None:
        self.views, self.weights, self.sharpness = prices.views, prices.weights, sharpness
        self.settings = EntryGeneration.current()
        self.base = np.take_along_axis(prices.base, cheap, axis=1)
        self.columns = [view.matrix.T[cheap] for view in self.views]

    def at(self, rows: np.ndarray) -> _SoftMinimum:
        """Return that of some of the outputs."""
        soft = copy(self)
        soft.sharpness, soft.base = self.sharpness[rows], self.base[rows]
        soft.weights = [weight[rows] for weight in self.weights]
        soft.columns = [columns[rows] for columns in self.columns]
        return soft

    def value(self, scores: list[FloatArray]) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Return values (m,), weights c of the letters (m, l), and normalised scores."""
        normal = [_normalised(s, v.reference) for s, v in zip(scores, self.views, strict=True)]
        reduced = self.base
        for columns, weight, s in zip(self.columns, self.weights, normal, strict=True):
            reduced = reduced + weight[:, None] * (columns @ s[:, :, None])[:, :, 0]  # (E2)
        low = reduced.min(axis=1)
        share = np.exp(-self.sharpness[:, None] * (reduced - low[:, None]))
        total = share.sum(axis=1)
        return low - np.log(total) / self.sharpness, share / total[:, None], normal  # (E6)

    def column_cost(self, share: FloatArray) -> FloatArray:
        """Return Σ α F(M c) + ⟨a, c⟩ of the weights c: no scores make the least larger (E5)."""
        cost = (self.base * share).sum(axis=1)
        for view, columns, weight in zip(self.views, self.columns, self.weights, strict=True):
            joint = np.maximum((share[:, None, :] @ columns)[:, 0], TINY)
            logs = np.log(joint / (view.reference * joint.sum(axis=1, keepdims=True)))
            cost += weight * (joint * logs).sum(axis=1)
        return cost

    def maximised(
        self, scores: list[FloatArray]
    ) -> tuple[list[FloatArray], FloatArray, FloatArray]:
        """Return scores a few steps of Newton's method on, their last gain, and what bounds all."""
        value, share, scores = self.value(scores)
        gain = np.zeros(len(value))
        for _ in range(self.settings.newton_steps):
            before = value.copy()
            self._search(value, share, scores, self._step(share, scores))
            gain = value - before
            if (gain < 0.01 / self.sharpness).all():  # log(l)/κ is more, and the next κ's (E6)
                break
        return scores, gain, self.column_cost(share)

    def _search(
        self,
        value: FloatArray,
        share: FloatArray,
        scores: list[FloatArray],
        change: list[FloatArray],
    ) -> None:
        """Move each output along its step, by a length at which it is better, if there is one."""
        rows, length, soft = np.arange(len(value)), 1.0, self
        for _ in range(self.settings.halvings):
            trial = [s[rows] + length * d[rows] for s, d in zip(scores, change, strict=True)]
            after, weights, trial = soft.value(trial)
            better = after >= value[rows]  # NaN is not
            done = rows[better]
            value[done], share[done] = after[better], weights[better]
            for s, t in zip(scores, trial, strict=True):
                s[done] = t[better]
            rows, length = rows[~better], 0.3 * length
            if not len(rows):
                break
            soft = soft.at(~better)

    def _step(self, share: FloatArray, scores: list[FloatArray]) -> list[FloatArray]:
        """Return Δs of the Newton system, for every output: one of all its views (E7)."""
        slopes, blocks = [], []
        parts = zip(self.views, self.columns, self.weights, scores, strict=True)
        for view, columns, weight, s in parts:
            posterior = np.exp(s) * view.reference
            sums = columns.sum(axis=2)
            # g_x = α (M_x − (1ᵀM_x) ϱ)
            slopes.append(
                weight[:, None, None] * (columns - sums[:, :, None] * posterior[:, None, :])
            )
            # α ⟨1ᵀM, c⟩ (diag ϱ − ϱϱᵀ): of log Σ π exp(s), by which scores are normalised
            curvature = posterior[:, :, None] * (np.eye(s.shape[1]) - posterior[:, None, :])
            blocks.append((weight * (share * sums).sum(axis=1))[:, None, None] * curvature)
        slope = np.concatenate(slopes, axis=2)
        mean = (share[:, None, :] @ slope)[:, 0]
        system = (share[:, :, None] * slope).transpose(0, 2, 1) @ slope
        system = self.sharpness[:, None, None] * (
            system - mean[:, :, None] * mean[:, None, :]
        )  # κ Cov_c(g)
        ends = np.cumsum([block.shape[1] for block in blocks])
        for block, end in zip(blocks, ends, strict=True):
            place = slice(end - block.shape[1], end)
            system[:, place, place] += block
        diagonal = np.arange(system.shape[1])
        trace = np.einsum("yii->y", system)[:, None]
        system[:, diagonal, diagonal] += self.settings.shift * (1.0 + trace)
        change = np.linalg.solve(system, mean[:, :, None])[:, :, 0]  # (E7)
        largest = np.maximum(np.abs(change).max(axis=1, keepdims=True), TINY)
        change = change * np.minimum(1.0, self.settings.score_change / largest)
        return np.split(change, ends[:-1], axis=1)


def _by_letter(entering: np.ndarray, nearest: FloatArray, choice: np.ndarray) -> None:
    """Mark the output that each letter would choose, where few letters choose the same (E11)."""
    letters = np.nonzero(choice >= 0)[0]
    letters = letters[np.lexsort((nearest[letters], choice[letters]))]
    outputs = choice[letters]
    rank = np.arange(len(outputs)) - np.searchsorted(outputs, outputs)
    letters = letters[rank < EntryGeneration.current().choosers]
    entering[choice[letters], letters] = True


def _joined(active: np.ndarray, reduced: FloatArray, count: int) -> np.ndarray:
    """Return letters (m, l) with the cheapest others added."""
    others = reduced.copy()
    np.put_along_axis(others, active, np.inf, axis=1)
    count = min(count, reduced.shape[1] - active.shape[1])
    if not count:
        return active
    cheapest = np.argpartition(others, count - 1, axis=1)[:, :count]
    return np.concatenate([active, cheapest], axis=1)


def _normalised(scores: FloatArray, reference: FloatArray) -> FloatArray:
    """Return scores with Σ π exp(s) = 1."""
    top = scores.max(axis=1, keepdims=True)
    return scores - top - np.log(np.exp(scores - top) @ reference)[:, None]
