"""Programs of thousands of letters: the central path on few entries, others by their prices.

At an optimum almost all of Q is 0 (E4).  Each round follows the central path on a growing set of
entries and prices the others; none is ever dropped.  The first are those that the proximal gradient
method on all entries points at.  Equations are those of ``docs/theory/entries.md``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.settings import EntryGeneration
from cvxprivacy.solvers.entries.pricing import Pricing
from cvxprivacy.solvers.entries.start import Start, first_steps
from cvxprivacy.solvers.interior.method import Iterate, central_path
from cvxprivacy.solvers.interior.newton import Residuals
from cvxprivacy.solvers.interior.point import LOW, Layout, Point
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy.solvers.interior.views import labels_differ

__all__ = ["Round", "rounds", "suits", "table_size"]


def suits(program: ChannelProgram) -> bool:
    """Tell whether a program is (E1): most entries may be 0, all rows are linear.

    Pricing knows the scores of information alone, and no view tells letters apart: its posteriors
    would have as many labels as there are letters.  Ceilings forbid entries or are none.
    """
    rows = program.constraints.values()
    linear = all(row.linear and row.sense == "<=" and not row.per_output for row in rows)
    labelled = any(labels_differ(program.view_matrix(view)) for view in program.views)
    floors = 0 if program.floor is None else int(np.count_nonzero(program.floor))
    few = floors <= EntryGeneration.current().floors * program.n
    if program.ceiling is not None and not np.isin(program.ceiling, (0.0, 1.0)).all():
        return False
    plain = not (program.other_measures or program.auxiliaries or program.objectives.keys() != {""})
    # entries with a floor are all in the working set, which is to stay small
    return plain and linear and not labelled and few


def table_size(program: ChannelProgram) -> int:
    """Return how many numbers tables of all entries have (E13)."""
    return program.n * program.m * (8 + 3 * len(program.constraints))


@dataclass(frozen=True, eq=False)
class Round(Iterate):
    """A point of some entries, with scores of all outputs.

    ``gap`` is that of all entries, infinite within a round; ``expected`` is the best estimate then.
    """

    scores: tuple[FloatArray, ...]
    expected: float

    @property
    def progress(self) -> float:
        return self.expected

    def proposal(self, objective: int = 1) -> tuple[FloatArray, Dual]:
        """Return the channel and the multipliers, for the prover."""
        channel, dual = super().proposal(objective)
        views = zip(self.program.views, self.scores, strict=True)
        return channel, replace(dual, scores={view.name: s.T for view, s in views})


def rounds(
    program: ChannelProgram,
    goal: Callable[[], float],
    alone: bool = True,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Start | Round]:
    """Yield the steps before the first round, and the points of all; the last of each has a gap.

    Parameters
    ----------
    goal : callable
        Returns the gap to reach, which may depend on what is proved by then.
    alone : bool
        Whether to go on where all entries at once would be faster.
    stopped : callable
        Tells whether time is up.
    """
    settings = EntryGeneration.current()
    start = yield from first_steps(program, alone, stopped)
    if start is None or stopped():
        return
    working = _WorkingSet(start)
    for _ in range(settings.rounds):
        yield from working.followed()
        if not working.path:
            return
        missing, below = working.priced(goal())
        gap = working.path[-1].gap + below * program.scale  # (E10)
        yield working.ended(gap)
        wanted = goal()
        if gap <= wanted or (working.stalled(wanted) and not missing.any()):
            return
        if not alone and working.taken > settings.long:
            return
        working.enlarge(missing, below, gap, wanted)


class _WorkingSet:
    """Entries that only grow in number, and the last path on them.

    Attributes
    ----------
    chosen : (m, n) array of bool
        The entries.
    begin : Point, optional
        Where the next path begins.
    path : deque of Iterate
        The last points of the path.
    taken : int
        Steps of all rounds.
    inner : float
        The gap to which the path is followed.
    estimate : float
        The gap over all entries of the last round that has one (E10).
    """

    def __init__(self, start: Start) -> None:
        self.program, self.settings = start.program, EntryGeneration.current()
        full = ScaledProgram(self.program, Layout.full(self.program.n, self.program.m))
        self.chosen, scores = start.entries(full)
        self.pricing = Pricing(full, scores)
        self.scaled = ScaledProgram(self.program, Layout.of(self.chosen))
        self.begin: Point | None = None
        self.path: deque[Iterate] = deque(maxlen=self.settings.points)
        width = start.progress if np.isfinite(start.progress) else self.program.scale
        self.taken, self.inner, self.estimate = -1, self.settings.first_gap * max(width, 0.0), width

    def followed(self) -> Iterator[Round]:
        """Follow the path to the inner gap, and yield its points before that."""
        self.path = deque(maxlen=self.settings.points)
        scores = self.pricing.copied()  # one copy for all points of the round
        for iterate in _path(self.scaled, self.begin):
            self.path.append(iterate)
            self.taken += 1
            if iterate.gap <= self.inner:
                return
            expected = min(self.estimate, iterate.gap)
            yield _round(iterate, self.taken, np.inf, expected, scores)

    def priced(self, wanted: float) -> tuple[np.ndarray, float]:
        """Return entries (m, n) that are missing, and what all take off the bound, in its scale."""
        iterate = self.path[-1]
        tolerance = max(0.05 * wanted, self.settings.reduced_cost * iterate.gap)
        return self.pricing.missing(iterate, self.chosen, tolerance / self.program.scale)

    def ended(self, gap: float) -> Round:
        """Return the round's last point, with the scores of all outputs and the gap."""
        self.estimate = gap
        return _round(self.path[-1], self.taken, gap, gap, self.pricing.copied())

    def stalled(self, wanted: float) -> bool:
        """Tell whether the path got no further, or no closer path is of use."""
        return self.path[-1].gap > self.inner or self.inner <= self.settings.round_gap * wanted

    def enlarge(self, missing: np.ndarray, below: float, gap: float, wanted: float) -> None:
        """Add entries, never dropping any, and tell where and how far the next path goes."""
        self.chosen |= missing
        reached = gap if missing.any() else min(gap, self.path[-1].gap)
        inner = self.settings.round_gap
        self.inner = max(min(inner * reached, self.inner), inner * wanted)
        self.scaled = ScaledProgram(self.program, Layout.of(self.chosen))
        wide = self.settings.warm * below * self.program.scale
        warm = [point for point in self.path if point.gap >= wide]
        self.begin = _continued(warm[-1], self.scaled, self.pricing.scores) if warm else None


def _path(scaled: ScaledProgram, begin: Point | None) -> Iterator[Iterate]:
    """Follow the path from a point if that gets anywhere, else from the start."""
    settings = EntryGeneration.current()
    if begin is not None:
        gaps: list[float] = []
        for iterate in central_path(scaled, begin):
            gaps.append(iterate.gap)
            yield replace(iterate, breach=0.0)  # of a point that was made, not of the rows
            if len(gaps) > settings.tried and gaps[-1] > 0.5 * gaps[-1 - settings.tried]:
                break
        else:
            return
    yield from central_path(scaled)


def _round(
    iterate: Iterate, taken: int, gap: float, expected: float, scores: tuple[FloatArray, ...]
) -> Round:
    return Round(iterate.program, iterate.point, taken, gap, iterate.breach, scores, expected)


def _continued(iterate: Iterate, scaled: ScaledProgram, priced: Sequence[FloatArray]) -> Point:
    """Return a point of more entries, about as well centred (E12).

    New outputs have the scores with which they were priced.
    """
    settings = EntryGeneration.current()
    x, old, new, m = iterate.point, iterate.program.layout, scaled.layout, scaled.program.m
    # a μ of the pairs of entries
    share = scaled.shares[LOW] * iterate.program.complementarity(x) / iterate.program.count
    q, z = (new.take(old.put(values, m)) for values in (x.q, x.price[LOW]))
    fresh = scaled.free & (z == 0)
    each = scaled.masses / np.maximum(new.spread(new.total(scaled.free.astype(float))), 1.0)  # q̄
    _, logs = scaled.joints(np.where(fresh, each, q))
    scores = []
    for path, every, log in zip(x.scores, priced, logs, strict=True):
        every = every.copy()
        every[old.outputs] = path
        s = every[new.outputs]
        # the score of a label without mass says nothing once an entry brings it
        unmet = s < s.max(axis=1, keepdims=True) - settings.unmet_score
        scores.append(np.where(unmet, np.maximum(s, log), s))

    def point(q: FloatArray, z: FloatArray) -> Point:
        slack = {**x.slack, LOW: np.where(scaled.free, q - scaled.low, 1.0)}
        return replace(x, q=q, scores=scores, slack=slack, price={**x.price, LOW: z})

    reduced = Residuals(scaled, point(q, z)).dual + z
    z = np.where(fresh, np.maximum(reduced, share / (settings.share * each)), z)  # (E12)
    q = np.where(fresh, share / np.where(fresh, z, 1.0), q)
    # what new entries have is taken from the others, in proportion: the row sums hold
    above, left = q - scaled.low, scaled.mass - new.total(scaled.low)
    total = new.total(above)
    return point(scaled.low + above * new.spread(left / np.where(total > 0, total, 1.0)), z)
