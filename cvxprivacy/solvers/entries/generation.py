"""Programs of thousands of letters: the central path on few entries, others by their prices.

At an optimum almost all of Q is 0.  Each round follows the central path on a growing set of entries
and prices the rest; none is ever dropped.  The first rounds know a few outputs alone, which
cover all letters: prices mean little before they are about right.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.solvers.entries.pricing import Pricing
from cvxprivacy.solvers.interior.layout import Layout
from cvxprivacy.solvers.interior.method import Iterate, central_path
from cvxprivacy.solvers.interior.point import LOW, Point
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy.solvers.interior.residuals import Residuals
from cvxprivacy.solvers.interior.views import labels_differ

__all__ = ["Round", "rounds", "suits", "table_size"]

_ROUNDS = 60
_NEAREST = 8  # outputs of each letter to begin with
_COVER = 0.5  # share of the room of all rows at which the first outputs cover all letters
_FIRST = 1e-2  # gap of the first round, in the scale of the objective
_OPEN = 1e-3  # gap at which all outputs are priced
_INNER = 0.1  # gap of a round, in terms of the last one's gap over all entries
_WARM = 100.0  # gap at which a round goes on from the last one's path, in terms of what was missing
_LARGE = 10.0  # size of a new entry, in terms of its letter's share for each
_TRIED = 3  # steps from a point in which the gap is to halve
_KEPT = 12  # points of a path
_UNMET = 15.0  # of a score below the largest: a label that only new entries may meet


def suits(program: ChannelProgram) -> bool:
    """Tell whether most entries may be 0, all rows are linear, and no view tells letters apart.

    Pricing knows the scores of information alone.

    Ceilings forbid entries or are none.
    """
    rows = program.constraints.values()
    linear = all(row.linear and row.sense == "<=" and not row.per_output for row in rows)
    labelled = any(labels_differ(program.view_matrix(view)) for view in program.views)
    floors = 0 if program.floor is None else int(np.count_nonzero(program.floor))
    if program.ceiling is not None and not np.isin(program.ceiling, (0.0, 1.0)).all():
        return False
    known = not (program.other_measures or program.auxiliaries or program.objectives.keys() != {""})
    return known and linear and not labelled and floors <= _NEAREST * program.n


def table_size(program: ChannelProgram) -> int:
    """Return how many numbers tables of all entries have."""
    return program.n * program.m * (8 + 3 * len(program.constraints))


@dataclass(frozen=True, eq=False)
class Round(Iterate):
    """A point of some entries, with scores of all outputs.

    ``gap`` is that of all entries, infinite within a round; ``expected`` is what is known of it.
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


def rounds(program: ChannelProgram, goal: Callable[[], float]) -> Iterator[Round]:
    """Yield the points of all rounds; the last of each has a gap.

    Parameters
    ----------
    goal : callable
        Returns the gap to reach, which may depend on what is proved by then.
    """
    scale = program.scale
    whole = ScaledProgram(program, Layout.whole(program.n, program.m))
    pricing, chosen = Pricing(whole), _beginning(whole)
    among, everywhere = np.nonzero(chosen.any(axis=1))[0], np.arange(program.m)
    scaled, begin = ScaledProgram(program, Layout.of(chosen)), None
    taken, inner, known = -1, _FIRST * scale, np.inf
    for _ in range(_ROUNDS):
        kept: deque[Iterate] = deque(maxlen=_KEPT)
        scores = pricing.copied()
        for iterate in _path(scaled, begin):
            kept.append(iterate)
            taken += 1
            if iterate.gap <= inner:
                break
            yield _round(iterate, taken, np.inf, min(known, iterate.gap), scores)
        if not kept:
            return
        wanted = goal()
        tolerance = 0.05 * wanted / scale
        missing, below = pricing.missing(iterate, chosen, among, tolerance)
        gap = iterate.gap + below * scale
        if len(among) < program.m and (gap <= max(_OPEN * scale, wanted) or not missing.any()):
            among = everywhere
            missing, below = pricing.missing(iterate, chosen, among, tolerance)
            gap = iterate.gap + below * scale
        if len(among) == program.m:
            known = gap
            yield _round(iterate, taken, gap, gap, pricing.copied())
            wanted = goal()
            stalled = iterate.gap > inner or inner <= _INNER * wanted
            if gap <= wanted or (stalled and not missing.any()):
                return
        new = (missing.any(axis=1) & ~chosen.any(axis=1)).any()
        chosen |= missing
        reached = gap if missing.any() else min(gap, iterate.gap)
        inner = max(min(_INNER * reached, inner), _INNER * wanted)
        scaled = ScaledProgram(program, Layout.of(chosen))
        warm = [point for point in kept if point.gap >= _WARM * below * scale]
        # an output that enters has no score yet that lies with those of others
        begin = _continued(warm[-1], scaled) if warm and not new else None


def _path(scaled: ScaledProgram, begin: Point | None) -> Iterator[Iterate]:
    """Follow the path from a point if that gets anywhere, else from the start."""
    if begin is not None:
        gaps: list[float] = []
        for iterate in central_path(scaled, begin):
            gaps.append(iterate.gap)
            yield replace(iterate, breach=0.0)  # of a point that was made, not of the rows
            if len(gaps) > _TRIED and gaps[-1] > 0.5 * gaps[-1 - _TRIED]:
                break
        else:
            return
    yield from central_path(scaled)


def _round(
    iterate: Iterate, taken: int, gap: float, expected: float, scores: tuple[FloatArray, ...]
) -> Round:
    return Round(iterate.program, iterate.point, taken, gap, iterate.breach, scores, expected)


def _continued(iterate: Iterate, scaled: ScaledProgram) -> Point:
    """Return a point of more entries of the same outputs, about as well centred."""
    x, old, new, m = iterate.point, iterate.program.layout, scaled.layout, scaled.program.m
    share = scaled.shares[LOW] * iterate.program.complementarity(x) / iterate.program.count
    q, z = (new.take(old.put(values, m)) for values in (x.q, x.price[LOW]))
    fresh = scaled.free & (z == 0)
    each = scaled.masses / np.maximum(new.spread(new.total(scaled.free.astype(float))), 1.0)
    _, logs = scaled.joints(np.where(fresh, each, q))
    scores = []
    for s, log in zip(x.scores, logs, strict=True):
        unmet = s < s.max(axis=1, keepdims=True) - _UNMET
        scores.append(np.where(unmet, np.maximum(s, log), s))

    def point(q: FloatArray, z: FloatArray) -> Point:
        slack = {**x.slack, LOW: np.where(scaled.free, q - scaled.low, 1.0)}
        return replace(x, q=q, scores=scores, slack=slack, price={**x.price, LOW: z})

    reduced = Residuals(scaled, point(q, z)).dual + z
    z = np.where(fresh, np.maximum(reduced, share / (_LARGE * each)), z)
    q = np.where(fresh, share / np.where(fresh, z, 1.0), q)
    above, left = q - scaled.low, scaled.mass - new.total(scaled.low)
    total = new.total(above)
    return point(scaled.low + above * new.spread(left / np.where(total > 0, total, 1.0)), z)


def _beginning(whole: ScaledProgram) -> np.ndarray:
    """Return entries (m, n): a few outputs that cover all letters, and what is near to them."""
    rows = whole.rows.values()
    cost = sum((row.cost for row in rows), np.zeros((whole.m, whole.n)))
    cost = np.where(whole.free, cost, np.inf)
    least = cost.min(axis=0)
    room = sum(float(row.bound) for row in rows) - float(
        least[least < np.inf] @ whole.mass[least < np.inf]
    )
    radius = _COVER * max(room, 0.0)
    outputs: list[int] = []
    nearest = np.full(whole.n, np.inf)
    for s in np.argsort(-whole.mass, kind="stable"):
        if nearest[s] > least[s] + radius or not outputs:
            outputs.append(int(cost[:, s].argmin()))
            nearest = np.minimum(nearest, cost[outputs[-1]])
    some = np.array(outputs)
    chosen = np.zeros((whole.m, whole.n), dtype=bool)
    count = min(_NEAREST, len(some))
    close = np.argpartition(cost[some], count - 1, axis=0)[:count]
    chosen[some[close], np.arange(whole.n)] = True
    for view in whole.views:  # of every label, or its score has no end
        for seen in view.matrix:
            weighed = cost[some] - radius * np.log(np.maximum(seen, 1e-9))
            chosen[some, np.where(seen > 0, weighed, np.inf).argmin(axis=1)] = True
    return (chosen & whole.free) | (whole.low > 0)
