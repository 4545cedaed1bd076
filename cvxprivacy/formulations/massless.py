"""Rows for inputs that the source never had: allowed ones, or none.

No optimum depends on them and no proof covers them, but a record may have such a value next month:
what the criteria say of every single input is kept for it too, or it is not released.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.criteria import ForbiddenMoves, KeepProbability, PreserveMarginal
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs import EntryBounds

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem

__all__ = ["restored"]

SLACK = 1e-12  # of rounding


def restored(
    problem: ChannelProblem, kept: FloatArray, letters: Sequence[Any]
) -> list[FloatArray | None]:
    """Return a row for each input that has no mass, or None where the criteria allow none.

    It is the released marginal, which bounded ratios tolerate, or the letter itself where entries
    have bounds and nothing else speaks of single inputs; and the law nearest to the released
    marginal where neither is allowed.

    Parameters
    ----------
    kept : ndarray, shape (n, m)
        The channel's rows of the inputs with mass.
    letters : sequence
        The key letter x of each input without.
    """
    program, outputs = problem.program, problem.outputs
    marginal = program.mass @ kept
    least, most = kept.min(axis=0), kept.max(axis=0)
    ratios = [float(a.bound) for a in program.auxiliaries.values() if a.kind == "ratio"]
    totals = [float(a.bound) for a in program.auxiliaries.values() if a.kind == "maximum"]
    bounded = program.lower is not None or program.upper is not None
    identical = bounded and not program.auxiliaries and problem.strategies is None
    bounds = {x: _bounds(problem, x) for x in dict.fromkeys(letters)}
    found: list[FloatArray | None] = []
    for x in letters:
        lower, upper = bounds[x]
        if ratios:
            lower = np.maximum(lower, most / min(ratios))
            upper = np.minimum(upper, least * min(ratios))
        row = _near(marginal / marginal.sum(), lower, upper, most)
        if identical and x in outputs:
            same = np.array([y == x for y in outputs], float)
            row = same if (lower <= same).all() and (same <= upper).all() else row
        if row is not None and totals and np.maximum(row, most).sum() > min(totals) + SLACK:
            row = None
        if row is not None:  # those that follow are compared with it too
            least, most = np.minimum(least, row), np.maximum(most, row)
        found.append(row)
    return found


def _bounds(problem: ChannelProblem, x: Any) -> tuple[FloatArray, FloatArray]:
    """Return what the criteria ask of the entries of x's row; lower > upper if there is none.

    ``PreserveMarginal`` bounds a marginal that such a letter has no part in.  A strategy must be
    allowed at every z, and one that keeps x at every z takes the whole floor.
    """
    upper, rules = np.ones(problem.m), problem.strategies
    outputs, at = problem.measure.outputs, problem.source.x.index(x)
    same, floor = np.array([[y == x for y in outputs]]), 0.0
    if rules is not None:
        rules = rules[:, np.array([observer.z for observer in problem.observers])].T
    for name, criterion in problem.named_criteria().items():
        if isinstance(criterion, ForbiddenMoves):
            mask = criterion.mask
            banned = np.array([mask(x, y) for y in outputs] if callable(mask) else mask[at], bool)
            upper[banned if rules is None else banned[rules].any(axis=0)] = 0.0
        elif isinstance(criterion, KeepProbability):
            floor = max(floor, float(np.broadcast_to(criterion.p, len(problem.source.x))[at]))
        elif not isinstance(criterion, PreserveMarginal) and any(
            isinstance(part, EntryBounds) for part in problem.parts[name].values()
        ):
            upper[:] = -1.0  # what another rule says of this letter is not known
    places = np.flatnonzero((same if rules is None else same[0][rules]).all(axis=0) & (upper > 0))
    if floor > 0 and not len(places):
        upper[:] = -1.0
    lower = np.zeros(problem.m)
    lower[places[:1]] = floor
    return lower, upper


def _near(
    marginal: FloatArray, lower: FloatArray, upper: FloatArray, most: FloatArray
) -> FloatArray | None:
    """Return a law within bounds, which exceeds ``most`` by the least; None if there is none."""
    if (lower > upper + SLACK).any() or lower.sum() > 1 + SLACK or upper.sum() < 1 - SLACK:
        return None
    upper = np.maximum(lower, upper)
    row = np.clip(marginal, lower, upper)
    spare, over = row - lower, row.sum() - 1.0
    if over > 0 and spare.any():
        row = row - spare * min(1.0, over / spare.sum())
    for limit in (np.minimum(upper, most), upper):
        room, short = np.maximum(limit - row, 0.0), 1.0 - row.sum()
        if short > 0 and room.any():
            row = row + room * min(1.0, short / room.sum())
    return np.asarray(row / row.sum())
