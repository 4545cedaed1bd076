"""The first entries: what a proximal gradient method on all of them points at.

A few steps tell what each letter costs at each output; central paths take it from there.  Equations
are those of ``docs/theory/entries.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.settings import EntryGeneration, MirrorDescent
from cvxprivacy.solvers.bregman import method as bregman
from cvxprivacy.solvers.bregman.release import Release
from cvxprivacy.solvers.interior.program import ScaledProgram

__all__ = ["Start", "first_steps"]


def first_steps(
    program: ChannelProgram, alone: bool, stopped: Callable[[], bool]
) -> Generator[Start, None, Start | None]:
    """Yield steps on all entries, and return one that is near enough.

    Or none, where there is an alternative and they show that few entries do not pay.
    """
    settings = EntryGeneration.current()
    relaxed, judged = bregman.Relaxed(program), alone
    for iterate in relaxed.steps():
        start = Start(program, relaxed, iterate, stopped)
        yield start
        gap = iterate.gap / program.scale
        if not judged and gap <= settings.judged:
            judged = True
            if start.breadth > settings.broad:
                return None
        if gap <= MirrorDescent.current().gap or iterate.number >= settings.first_steps:
            break
    return start


@dataclass(frozen=True, eq=False)
class Start:
    """A step on all entries: where it points, and what would be released if it were the last."""

    program: ChannelProgram
    relaxed: bregman.Relaxed
    iterate: bregman.Iterate
    stopped: Callable[[], bool]
    gap: ClassVar[float] = np.inf
    breach: ClassVar[float] = 0.0
    stage: ClassVar[str] = "first entries"

    @property
    def number(self) -> int:
        return self.iterate.number - 1  # from 0, as those of paths

    @property
    def progress(self) -> float:
        """The gap that is shown."""
        return self.iterate.gap

    @cached_property
    def _channel(self) -> FloatArray:
        """A release of few entries that is about as good."""
        enough = self.iterate.lower + MirrorDescent.current().release_gap * self.iterate.gap
        release = Release(self.relaxed, self.iterate, enough, self.stopped)
        channel: FloatArray = release.channel().toarray()
        return channel

    @cached_property
    def _dual(self) -> Dual:
        return self.relaxed.dual(self.iterate.sums)

    def proposal(self, objective: int = 1) -> tuple[FloatArray, Dual]:
        """Return a channel of few entries and the multipliers, for the prover."""
        return self._channel, self._dual

    @property
    def costs(self) -> FloatArray:
        """What an entry costs at the scores and prices so far, (E2) but for ν; shape (n, m)."""
        ((_, g),) = self._dual.tables(self.program, [np.arange(self.program.n)])
        if self.program.ceiling is not None:
            g[self.program.ceiling <= 0] = np.inf
        costs: FloatArray = g / self.program.mass[:, None]
        return costs

    @property
    def breadth(self) -> float:
        """How many entries of a letter, in the mean, are cheapest but for the gap (E8)."""
        costs = self.costs
        near = costs <= costs.min(axis=1, keepdims=True) + self.iterate.gap
        return float(near.sum() / self.program.n)

    def entries(self, full: ScaledProgram) -> tuple[np.ndarray, list[FloatArray]]:
        """Return entries (m, n) to begin with, and the scores (m, |V|) of all outputs."""
        dual, cost = self._dual, self.costs
        popular = np.argsort(-self.iterate.mass)[: MirrorDescent.current().popular]
        chosen = (self._channel > 0).T
        for outputs in (np.arange(full.m), popular):
            count = min(EntryGeneration.current().cheapest, len(outputs))
            cheap = np.argpartition(cost[:, outputs], count - 1, axis=1)[:, :count]
            chosen[outputs[cheap], np.arange(full.n)[:, None]] = True
        chosen &= full.free
        for view in full.views:  # of every label, or its score has no end (E9)
            for likelihood in view.matrix:
                there = chosen[:, likelihood > 0].any(axis=1)
                unmet = np.nonzero(chosen.any(axis=1) & ~there)[0]
                rare = self.program.scale * np.log(np.maximum(likelihood, 1e-9))
                weighed = cost[:, unmet] - rare[:, None]
                bring = np.where(likelihood[:, None] > 0, weighed, np.inf).argmin(axis=0)
                chosen[unmet, bring] = True
        scores = [dual.scores[view.name].T.copy() for view in full.views]
        return (chosen & full.free) | (full.low > 0), scores
