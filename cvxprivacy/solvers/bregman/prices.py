"""Prices of rows, moved until what is spent at them is about what is to be."""

from __future__ import annotations

import numpy as np

from cvxprivacy.exact import TINY, FloatArray

__all__ = ["Prices"]

_TOLD = 1e-15  # of a price, that floats tell apart
_BOUNDLESS = 1e20  # a price that no bound has


class Prices:
    """Prices that are being moved, one at a time: that of the row which is off most.

    What is chosen softly minimises a convex function of the prices, which coordinates descend.
    Newton's method moves one, between what was too little and too much.
    """

    def __init__(self, prices: FloatArray) -> None:
        self.prices = prices.copy()
        self._row, self._low, self._high = -1, 0.0, np.inf

    def settled(self, excess: FloatArray, tolerance: FloatArray, answers: FloatArray) -> bool:
        """Tell whether the excess of every row will do, or move a price."""
        off = np.where((self.prices > 0) | (excess > 0), np.abs(excess), 0.0)
        beyond = off / np.maximum(tolerance, TINY)
        if not (beyond > 1).any():
            return True
        row = int(beyond.argmax())
        if row != self._row:
            self._row, self._low, self._high = row, 0.0, np.inf
        price = float(self.prices[row])
        if excess[row] > 0:
            self._low = price
        else:
            self._high = price
        # no float is between them, or nothing is feasible
        if self._low >= (1 - _TOLD) * self._high or price > _BOUNDLESS:
            return True
        with np.errstate(divide="ignore"):
            moved = price + float(np.clip(excess[row] / answers[row, row], -price, 1.0 + price))
        if not self._low < moved < self._high:
            moved = (self._low + self._high) / 2 if self._high < np.inf else 1.0 + 2.0 * price
        self.prices[row] = moved
        return False
