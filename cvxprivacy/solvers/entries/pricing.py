r"""Reduced costs of all entries, from the central path on some of them.

With its thresholds ν and multipliers λ, entry (s, y) can lower the optimum only where

.. math:: r(s, y) = \sum_k ω_k \sum_v p(v \mid s)\, s_k(v, y) + (C_0 + \sum_j λ_j C_j)(s, y) - ν(s)

is negative.  The scores of an output without mass are free, so that it stays out if *some*
normalised scores make all its reduced costs nonnegative.  The largest least of them is found by
Newton's method on a soft minimum, for all such outputs at once; the scores are its certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.solvers.interior.method import Iterate
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy.solvers.interior.views import Observer

__all__ = ["Pricing"]

_BARRED = 1e6  # reduced cost of an entry that has no choice
_CHUNK = 4_000_000  # entries that are priced at once
_MASSLESS = 0.1  # share of the gap that all outputs of free scores may have in mass
_DEEPEST = 20.0  # of a score below the largest: a label that an output has not met
_CROWD = 12  # letters that may choose one output in a round, beside those that it chooses
_SHARPNESS = tuple(30.0 * 10.0**i for i in range(8))  # of the soft minimum
_CUTS = 4  # times that letters join at each
_HALVINGS = 12  # of the length of a step, or about that
_STEPS = 12  # of Newton's method at each


@dataclass(frozen=True, eq=False)
class _Prices:
    """What prices of some outputs are made of: costs (m, n) but for scores, ω of each view."""

    views: Sequence[Observer]
    base: FloatArray
    weights: list[FloatArray]

    def at(self, rows: np.ndarray) -> _Prices:
        return _Prices(self.views, self.base[rows], [w[rows] for w in self.weights])

    def reduced(self, scores: list[FloatArray]) -> FloatArray:
        """Return r, shape (m, n)."""
        found = self.base.copy()
        for view, weight, s in zip(self.views, self.weights, scores, strict=True):
            found += (weight[:, None] * _normalised(s, view.reference)) @ view.matrix
        return found


class Pricing:
    """Prices in the scale of the interior-point method; ``scores`` (m, |V|) are kept."""

    def __init__(self, whole: ScaledProgram) -> None:
        self.whole = whole
        self.scores = [np.zeros((whole.m, len(view.matrix))) for view in whole.views]
        # where there is a floor its cost counts, not only the least
        self.floored = np.asarray((whole.low > 0).any(axis=1))
        self.labels = sum(s.shape[1] for s in self.scores)

    def copied(self) -> tuple[FloatArray, ...]:
        """Return the scores as they are now."""
        return tuple(s.copy() for s in self.scores)

    def missing(
        self, iterate: Iterate, chosen: np.ndarray, among: np.ndarray, tolerance: float
    ) -> tuple[np.ndarray, float]:
        """Return entries (m, n) to add, and what all reduced costs below 0 take off the bound.

        Parameters
        ----------
        iterate : Iterate
            Of the entries that are ``chosen``, (m, n).
        among : (m',) array
            Outputs to look at.
        tolerance : float
            Reduced cost that counts as 0, in the scale of the method.
        """
        layout, x = iterate.program.layout, iterate.point
        present, massless = np.zeros(self.whole.m, bool), np.ones(self.whole.m, bool)
        present[layout.outputs] = True
        mass = x.q.sum(axis=1)
        order = np.argsort(mass)
        heavy = np.cumsum(mass[order]) > _MASSLESS * iterate.gap / self.whole.program.scale
        massless[layout.outputs[order[heavy]]] = False
        for own, s in zip(self.scores, x.scores, strict=True):
            own[layout.outputs] = np.maximum(s, s.max(axis=1, keepdims=True) - _DEEPEST)
        found, least = np.zeros_like(chosen), np.zeros(self.whole.n)
        nearest, where = np.full(self.whole.n, -tolerance), np.full(self.whole.n, -1)
        step = max(_CHUNK // self.whole.n, 1)
        for first in range(0, len(among), step):
            outputs = among[first : first + step]
            prices = self._prices(iterate, outputs)
            reduced = prices.reduced([s[outputs] for s in self.scores])
            closed = chosen[outputs] | ~self.whole.free[outputs]
            below = np.nonzero((reduced.min(axis=1) < -tolerance) & ~self.floored[outputs])[0]
            trial, scores = self._improved(prices.at(below), outputs[below], tolerance)
            gains = self._paid(trial) > self._paid(reduced[below])
            for own, s in zip(self.scores, scores, strict=True):
                own[outputs[below[gains]]] = s[gains]
            best = reduced.copy()
            best[below[gains]] = trial[gains]
            least = np.minimum(least, best.min(axis=0))
            # scores that lie with those of the path show what an output with mass lacks
            free = ~present[outputs[below]] | (trial.min(axis=1) >= -tolerance)
            free |= massless[outputs[below]] & ((trial < -tolerance) & ~closed[below]).any(axis=1)
            reduced[below[gains & free]] = trial[gains & free]
            reduced[closed] = np.inf
            self._cheapest(found, outputs, reduced, present, tolerance)
            own = reduced.argmin(axis=0)
            value = reduced[own, np.arange(self.whole.n)]
            better = value < nearest
            nearest[better], where[better] = value[better], outputs[own[better]]
        self._crowded(found, nearest, where)
        return found, float(-least @ self.whole.mass)

    def _paid(self, reduced: FloatArray) -> FloatArray:
        """Return what reduced costs below 0 take off the bound, if no other output did."""
        return np.minimum(reduced, 0.0) @ self.whole.mass

    def _prices(self, iterate: Iterate, outputs: np.ndarray) -> _Prices:
        whole, x, layout = self.whole, iterate.point, iterate.program.layout
        base = np.where(whole.free[outputs], whole.cost[outputs], _BARRED) - x.nu
        weights = [np.zeros(len(outputs)) for _ in whole.views]
        for i, weight in whole.weights.items():
            weights[i] = weights[i] + weight[outputs]
        for name, row in whole.rows.items():
            price = layout.widened(np.asarray(x.multiplier(name)), whole.m)
            price = np.broadcast_to(price, whole.m)[outputs]
            base += price[:, None] * row.cost[outputs]
            for i, weight in row.weights.items():
                weights[i] = weights[i] + weight[outputs] * price
        return _Prices(whole.views, base, weights)

    def _improved(
        self, prices: _Prices, outputs: np.ndarray, tolerance: float
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return reduced costs with scores that make the least of each output large, and those."""
        scores = [s[outputs] for s in self.scores]
        reduced = prices.reduced(scores)
        if not len(outputs) or not any(w.any() for w in prices.weights):
            return reduced, scores
        active = np.zeros((len(outputs), 0), dtype=np.intp)
        for sharpness in _SHARPNESS:
            if sharpness > 10.0 / tolerance:
                break
            for _ in range(_CUTS):  # letters that have become the cheapest join those before
                active = _joined(active, reduced, 4 * (1 + self.labels))
                known = _Separation(prices, active, sharpness)
                scores = known.largest(scores)
                reduced = prices.reduced(scores)
                met = np.take_along_axis(reduced, active, axis=1).min(axis=1)
                if (reduced.min(axis=1) >= met - 1.0 / sharpness).all():
                    break
        return reduced, scores

    def _cheapest(
        self,
        found: np.ndarray,
        outputs: np.ndarray,
        reduced: FloatArray,
        present: np.ndarray,
        tolerance: float,
    ) -> None:
        """Mark the cheapest letters of every output that has one below 0; a new one needs more."""
        count = min(2 * (self.labels + 2), self.whole.n)
        low = np.nonzero(reduced.min(axis=1) < -tolerance)[0]
        cheap = np.argpartition(reduced[low], count - 1, axis=1)[:, :count]
        values = np.take_along_axis(reduced[low], cheap, axis=1)
        new = ~present[outputs[low], None] & np.isfinite(values)
        rows, columns = np.nonzero((values < -tolerance) | new)
        found[outputs[low[rows]], cheap[rows, columns]] = True

    def _crowded(self, found: np.ndarray, nearest: FloatArray, where: np.ndarray) -> None:
        """Mark the output that each letter would choose, where few letters choose the same."""
        letters = np.nonzero(where >= 0)[0]
        letters = letters[np.lexsort((nearest[letters], where[letters]))]
        own = where[letters]
        rank = np.arange(len(own)) - np.searchsorted(own, own)
        letters = letters[rank < _CROWD]
        found[where[letters], letters] = True


class _Separation:
    """−log Σ_s exp(−κ r)/κ of the letters ``cheap`` (m, l) of some outputs, in their scores."""

    def __init__(self, prices: _Prices, cheap: np.ndarray, sharpness: float) -> None:
        self.views, self.weights, self.sharpness = prices.views, prices.weights, sharpness
        self.base = np.take_along_axis(prices.base, cheap, axis=1)
        self.columns = [view.matrix[:, cheap].transpose(1, 2, 0) for view in self.views]

    def value(self, scores: list[FloatArray]) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Return values (m,), shares of the letters (m, l), and normalised scores."""
        normal = [_normalised(s, v.reference) for s, v in zip(scores, self.views, strict=True)]
        reduced = self.base
        for columns, weight, s in zip(self.columns, self.weights, normal, strict=True):
            reduced = reduced + weight[:, None] * (columns @ s[:, :, None])[:, :, 0]
        low = reduced.min(axis=1)
        share = np.exp(-self.sharpness * (reduced - low[:, None]))
        total = share.sum(axis=1)
        return low - np.log(total) / self.sharpness, share / total[:, None], normal

    def largest(self, scores: list[FloatArray]) -> list[FloatArray]:
        """Return better scores, a few steps of Newton's method on."""
        value, share, scores = self.value(scores)
        for _ in range(_STEPS):
            change = self._step(share, scores)
            length = np.ones(len(value))
            for _ in range(_HALVINGS):
                trial = [s + length[:, None] * d for s, d in zip(scores, change, strict=True)]
                after, new_share, trial = self.value(trial)
                worse = ~(after >= value)
                if not worse.any():
                    break
                length[worse] *= 0.3
            better = after > value
            scores = [np.where(better[:, None], t, s) for t, s in zip(trial, scores, strict=True)]
            share = np.where(better[:, None], new_share, share)
            gain = float((after - value)[better].max(initial=0.0))
            value = np.where(better, after, value)
            if gain < 0.01 / self.sharpness:
                break
        return scores

    def _step(self, share: FloatArray, scores: list[FloatArray]) -> list[FloatArray]:
        slopes, blocks = [], []
        parts = zip(self.views, self.columns, self.weights, scores, strict=True)
        for view, columns, weight, s in parts:
            posterior = np.exp(s) * view.reference
            sums = columns.sum(axis=2)
            slope = columns - sums[:, :, None] * posterior[:, None, :]
            slopes.append(weight[:, None, None] * slope)
            bend = posterior[:, :, None] * (np.eye(s.shape[1]) - posterior[:, None, :])
            blocks.append((weight * (share * sums).sum(axis=1))[:, None, None] * bend)
        slope = np.concatenate(slopes, axis=2)
        mean = (share[:, None, :] @ slope)[:, 0]
        system = (share[:, :, None] * slope).transpose(0, 2, 1) @ slope
        system = self.sharpness * (system - mean[:, :, None] * mean[:, None, :])
        ends = np.cumsum([block.shape[1] for block in blocks])
        for block, end in zip(blocks, ends, strict=True):
            own = slice(end - block.shape[1], end)
            system[:, own, own] += block
        place = np.arange(system.shape[1])
        system[:, place, place] += 1e-9 * (1.0 + np.einsum("yii->y", system)[:, None])
        change = np.linalg.solve(system, mean[:, :, None])[:, :, 0]
        largest = np.maximum(np.abs(change).max(axis=1, keepdims=True), 1e-300)
        return np.split(change * np.minimum(1.0, 4.0 / largest), ends[:-1], axis=1)


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
