"""A channel in integers over one denominator: its rows sum to one exactly (C8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cvxprivacy.exact import Exact, is_sparse
from cvxprivacy.frozen import FrozenFields, owned
from cvxprivacy.programs.channel import ChannelProgram, Matrix

__all__ = ["DENOMINATOR", "ExactChannel", "round_channel"]

DENOMINATOR = 2**52  # every multiple of 2⁻⁵² up to 1 is a float64: the matrix is the proof's


@dataclass(frozen=True, eq=False)
class ExactChannel(FrozenFields):
    """A channel as integers ``numerators`` (n, m) over ``denominator``; rows sum to it.

    Of a program that is not dense the numerators are a sparse array, over 2⁵².
    """

    numerators: Any
    denominator: int = DENOMINATOR

    @cached_property
    def matrix(self) -> Matrix:
        """The channel in floats: exact over 2⁵², to half an ulp otherwise."""
        if is_sparse(self.numerators):
            return self.numerators.astype(float) / self.denominator
        if self.denominator == DENOMINATOR:
            matrix = self.numerators.astype(float) / DENOMINATOR
        else:
            rows = [[int(k) / self.denominator for k in row] for row in self.numerators]
            matrix = np.array(rows, dtype=float)
        return owned(matrix)

    def to_dict(self) -> dict[str, Any]:
        """Return what a proof file stores: of each letter the outputs that it has, with what."""
        if is_sparse(self.numerators):
            ends = self.numerators.indptr[1:-1]
            outputs = np.split(self.numerators.indices, ends)
            numerators = np.split(self.numerators.data, ends)
        else:
            outputs = [np.flatnonzero(row) for row in self.numerators]
            rows = zip(self.numerators, outputs, strict=True)
            numerators = [row[places] for row, places in rows]
        return {
            "outputs": [places.tolist() for places in outputs],
            "numerators": [row.tolist() for row in numerators],
            "denominator": self.denominator,
        }


def round_channel(program: ChannelProgram, channel: Matrix) -> ExactChannel | None:
    """Round to integers over 2⁵², rows summing to one within the entry bounds.

    Over a finer power of two where the bounds themselves need one (an entry fixed at 0.3);
    None if no row of sum one is within the bounds.
    """
    if is_sparse(channel):
        return _round_entries(channel)
    # whatever a solver returned is a start: that it is near the optimum is not assumed
    k = np.nan_to_num(np.asarray(channel, float), nan=0.0, posinf=1.0, neginf=0.0)
    k = np.clip(k, 0.0, 1.0)
    sums = k.sum(axis=1, keepdims=True)
    k = np.where(sums > 0, k / np.where(sums > 0, sums, 1.0), 1.0 / program.m)
    shape = (program.n, program.m)
    low, high = np.zeros(shape, np.int64), np.full(shape, DENOMINATOR)
    # bounds are rounded inwards: an integer between them is between the exact ones
    if program.lower is not None:
        low = _numerators(program.lower, math.ceil)
    if program.upper is not None:
        high = _numerators(program.upper, math.floor)
    numerators = _fill(np.rint(k * DENOMINATOR).astype(np.int64), low, high, DENOMINATOR)
    if numerators is not None:
        return ExactChannel(numerators)
    # the multiples of 2⁻⁵² between the bounds have no sum of 1: the bounds themselves may have
    bounds = [b.ravel() for b in (program.lower, program.upper) if b is not None]
    fine = {Fraction(b).denominator for b in np.concatenate(bounds).tolist()}
    scale = math.lcm(DENOMINATOR, *fine)
    lower = np.zeros(shape) if program.lower is None else program.lower
    upper = np.ones(shape) if program.upper is None else program.upper
    low, high = _numerators(lower, math.ceil, scale), _numerators(upper, math.floor, scale)
    numerators = _fill(_numerators(k, math.floor, scale), low, high, scale)
    return None if numerators is None else ExactChannel(numerators, scale)


def _round_entries(channel: Any) -> ExactChannel | None:
    """Round what a sparse channel has; its rows have no bounds, and some entry each."""
    k = channel.copy()
    k.sum_duplicates()
    k.data = np.clip(np.nan_to_num(k.data, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    sums = k.sum(axis=1)
    if not (sums > 0).all():
        return None
    k.data /= np.repeat(sums, np.diff(k.indptr))
    numerators = k.astype(np.int64)
    numerators.data = np.rint(k.data * DENOMINATOR).astype(np.int64)
    for first, last in pairwise(k.indptr):  # the largest makes up for what is missing: (C9)
        row = numerators.data[first:last]
        row[row.argmax()] += DENOMINATOR - row.sum()
    numerators.eliminate_zeros()
    return ExactChannel(numerators)


def _numerators(
    values: Exact, rounded: Callable[[Any], int], scale: int = DENOMINATOR
) -> np.ndarray:
    """Return values times ``scale``, rounded to one side; floats are enough for the coarse one."""
    if scale == DENOMINATOR and values.dtype != object:
        ends: Any = {math.ceil: np.ceil, math.floor: np.floor}
        return ends[rounded](values * DENOMINATOR).astype(np.int64)
    integers = [[rounded(Fraction(v) * scale) for v in row] for row in values.tolist()]
    return np.array(integers, np.int64 if scale == DENOMINATOR else object)  # beyond 63 bits


def _fill(
    numerators: np.ndarray, low: np.ndarray, high: np.ndarray, total: int
) -> np.ndarray | None:
    """Clip to the bounds and move the largest entries until every row sums to ``total``."""
    if (low > high).any():
        return None
    numerators = np.clip(numerators, low, high)
    for s in range(len(numerators)):
        row = numerators[s]
        missing = total - sum(row.tolist())  # at most m/2 without bounds: (C9)
        # from the largest: relative to it the change is least, and zeros stay zeros
        for y in np.argsort(-row, kind="stable") if missing else ():
            old = int(row[y])
            row[y] = min(max(old + missing, int(low[s, y])), int(high[s, y]))
            missing -= int(row[y]) - old
            if not missing:
                break
        if missing:  # the bounds of this row do not allow any sum of 1
            return None
    return numerators
