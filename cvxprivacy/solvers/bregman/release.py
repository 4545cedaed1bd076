"""A release of few entries, by the method's own steps on these alone.

The first entries are those that weigh most where the steps on all of them ended; those that its own
posteriors make cheap join in rounds.  Equations are those of ``docs/theory/large_tables.md``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.programs.channel import IntArray
from cvxprivacy.solvers.bregman.entries import SomeEntries, Sums
from cvxprivacy.solvers.bregman.method import Iterate, Relaxed
from cvxprivacy.solvers.bregman.prices import Prices

__all__ = ["Release"]

# shares of a letter that a release drops, if it is about as good without
_DROPPED = (1e-3, 1e-4, 1e-6, 1e-9)


class Release:
    """A channel of few entries on its way to the optimum.

    Parameters
    ----------
    relaxed : Relaxed
    iterate : Iterate
        Where to begin; steps that gain next to nothing of its gap end.
    enough : float
        A value that will do.
    stopped : callable
        Tells whether time is up.
    """

    def __init__(
        self, relaxed: Relaxed, iterate: Iterate, enough: float, stopped: Callable[[], bool]
    ) -> None:
        self.relaxed, self.iterate, self.enough, self.stopped = relaxed, iterate, enough, stopped
        self.settings, sums = relaxed.settings, iterate.sums
        self.slow = self.settings.slow * iterate.gap
        self.rates = sums.prices / sums.weight
        self.some = self._some(*self._nearest(sums, iterate.mass, self.settings.first_entries))
        g = self.some.slope(sums.slopes) + (sums.weight - 1.0) * self.some.costs[0]
        self._settle(-g / relaxed.smoothness, sums.prices)

    def channel(self) -> sparse.csr_array:
        """Return the channel, of as few entries as are about as good."""
        self._polish()
        for _ in range(self.settings.rounds):
            before = self.value
            if self._done():
                break
            self._enlarge()
            self._polish()
            if before - self.value < self.settings.round_gain * self.iterate.gap:
                break
        self._thin()
        some, shape = self.some, (self.relaxed.program.n, self.relaxed.program.m)
        return sparse.csr_array((self.shares, (some.letters, some.outputs)), shape=shape)

    def _done(self) -> bool:
        return self.value <= self.enough or self.stopped()

    def _some(self, letters: IntArray, outputs: IntArray) -> SomeEntries:
        of = self.relaxed
        return SomeEntries(of.program, of.likelihood, of.law, of.smoothness, letters, outputs)

    def _nearest(self, sums: Sums, mass: FloatArray, most: int) -> tuple[IntArray, IntArray]:
        return self.relaxed.all.nearest(sums, np.argsort(-mass)[: self.settings.popular], most)

    def _settle(self, weights: FloatArray, prices: FloatArray) -> None:
        """Take the shares that weights choose within the bounds."""
        self.shares, _ = self._within(self.some, weights, prices, self.settings.release_tolerance)
        self.value = self.relaxed.value(self.some.of(self.shares))

    def _within(
        self, some: SomeEntries, weights: FloatArray, prices: FloatArray, tolerance: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the shares that weights choose at prices that keep the bounds, and these."""
        of, search = self.relaxed, Prices(prices)
        size = of.sizes
        bounds = of.bounds - self.settings.release_margin * size
        for _ in range(self.settings.release_trials):
            shares = some.law_of(weights - search.prices @ some.costs[1:] / of.smoothness)
            z = some.of(shares)
            if search.settled(z.spent - bounds, tolerance * size, z.answers):
                break
        return shares, search.prices

    def _polish(self) -> None:
        """Take steps on the entries there are, with momentum (B3)."""
        of, some = self.relaxed, self.some
        q = z = self.shares
        weights, k, history = np.log(np.maximum(q, TINY)), 0, [self.value]
        for _ in range(self.settings.release_steps):
            share = 2.0 / (k + 2.0)
            mean = some.of((1 - share) * q + share * z)
            g = some.slope(of.slopes(mean.joint)) / (share * of.smoothness)
            moved, prices = self._within(
                some, weights - g, self.rates / share, self.settings.least_step_tolerance
            )
            mixed = (1 - share) * q + share * moved
            value = of.value(some.of(mixed))
            if value > self.value and k:  # momentum led astray: begin again from what is best
                k, weights, z = 0, np.log(np.maximum(q, TINY)), q
                continue
            weights, self.rates = np.log(np.maximum(moved, TINY)), prices * share
            q, z, self.value, k = mixed, moved, value, k + 1
            history.append(value)
            slow = len(history) > 10 and history[-11] - value < self.slow
            if slow or self._done():
                break
        self._settle(np.log(np.maximum(q, TINY)), 0.0 * self.rates)

    def _enlarge(self) -> None:
        """Let the entries join that the release's own posteriors and prices make cheap."""
        of, some, settings = self.relaxed, self.some, self.settings
        joint, sums = some.of(self.shares).joint, self.iterate.sums
        # an output without mass keeps the scores of the steps on all entries
        slopes = np.where(joint[-1] > settings.unused, of.slopes(joint), sums.slopes / sums.weight)
        letters, outputs = self._nearest(Sums(slopes, 1.0, self.rates), joint[-1], settings.joining)
        m, kept = of.program.m, self.shares >= settings.unused
        there = some.letters[kept] * m + some.outputs[kept]
        joined = np.union1d(letters * m + outputs, there)
        shares = np.full(len(joined), settings.joining_share / settings.joining)
        shares[np.searchsorted(joined, there)] = self.shares[kept]
        self.some = self._some(*np.divmod(joined, m))
        self._settle(np.log(shares), 0.0 * self.rates)

    def _thin(self) -> None:
        """Drop the smallest shares, as many as cost next to nothing."""
        of, exact = self.relaxed, self.settings.release_tolerance
        for least in _DROPPED:
            kept = self.shares >= least
            few = self._some(self.some.letters[kept], self.some.outputs[kept])
            shares, _ = self._within(few, np.log(self.shares[kept]), 0.0 * self.rates, exact)
            z = few.of(shares)
            if (z.spent <= of.bounds).all() and of.value(z) - self.value < self.slow:
                self.some, self.shares = few, shares
                return
