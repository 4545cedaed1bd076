"""Rows for inputs that the source never had: allowed ones, or none.

No optimum depends on them and no proof covers them, but a record may have such a value next month:
what the criteria say of every single input is kept for it too, or it is not released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cvxprivacy.certificates.exact_channel import DENOMINATOR
from cvxprivacy.criteria.base import Criterion
from cvxprivacy.exact import FloatArray, is_sparse
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import ChannelProgram, Matrix
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.side_conditions import EntryBounds

__all__ = ["Entries", "entry_bounds", "restored_rows"]

Entries = Callable[[int, Mapping[int, FloatArray]], tuple[FloatArray, FloatArray] | None]

_SLACK = 1e-12  # of rounding


def restored_rows(
    program: ChannelProgram,
    alphabet: Alphabet,
    channel: Matrix,
    letters: Sequence[Any],
    entries_of: Entries,
) -> list[FloatArray | None]:
    """Return a row for each input that has no mass, or None where the criteria allow none.

    It is the released marginal, which bounded ratios tolerate, or the letter itself where entries
    have bounds and nothing else speaks of single inputs; and the law nearest to the released
    marginal where neither is allowed.

    Parameters
    ----------
    channel : array, shape (n, m)
        The rows of the inputs with mass.
    letters : sequence
        The key letter x of each input without.
    entries_of : callable
        Bounds (m,) on the row of a key letter, by its number and the rows of others; None where
        they are not known, or nothing is within.
    """
    marginal = program.mass[: alphabet.n] @ channel  # of all letters but the centre
    least, most = (extreme(axis=0) for extreme in (channel.min, channel.max))
    if is_sparse(channel):
        least, most = (extreme.toarray().ravel() for extreme in (least, most))
    # without what a bound may be off, or a product with it is rounded: a row kept at 1 is the same
    ratios = [
        max(1.0, (float(a.bound) - float(a.radius)) * (1 - 2.0**-51))
        for a in program.auxiliaries.values()
        if a.kind == "ratio"
    ]
    totals = [float(a.bound) for a in program.auxiliaries.values() if a.kind == "maximum"]
    bounded = program.lower is not None or program.upper is not None
    identical = bounded and not program.auxiliaries and alphabet.strategies is None
    places = {x: alphabet.source.x.index(x) for x in dict.fromkeys(letters)}
    present = {} if is_sparse(channel) else dict(zip(alphabet.x_of.tolist(), channel, strict=True))
    rows: list[FloatArray | None] = []
    for x in letters:
        row = None
        if (entries := entries_of(places[x], present)) is not None:
            lower, upper = entries
            if ratios:
                # in whole draws, which _drawable moves no further out
                fewest = np.ceil(most / min(ratios) * DENOMINATOR)
                largest = np.floor(np.minimum(least * min(ratios), 1.0) * DENOMINATOR)
                lower = np.maximum(lower, fewest / DENOMINATOR)
                upper = np.minimum(upper, largest / DENOMINATOR)
            row = _nearest(marginal / marginal.sum(), lower, upper, most)
            if identical and x in alphabet.outputs:
                same = np.array([y == x for y in alphabet.outputs], float)
                row = same if (lower <= same).all() and (same <= upper).all() else row
        if row is not None and totals and np.maximum(row, most).sum() > min(totals) + _SLACK:
            row = None
        if row is not None:  # those that follow are compared with it too
            least, most = np.minimum(least, row), np.maximum(most, row)
            present[places[x]] = row
        rows.append(row)
    return rows


def entry_bounds(criteria: Mapping[str, Criterion], rules: Rules, alphabet: Alphabet) -> Entries:
    """Return what gives the bounds (m,) of a key letter's row; None where they are not known."""

    def bounds(x: int, rows: Mapping[int, FloatArray]) -> tuple[FloatArray, FloatArray] | None:
        lower, upper = np.zeros(alphabet.m), np.ones(alphabet.m)
        for name, criterion in criteria.items():
            overridden = type(criterion).entries_of is not Criterion.entries_of
            silent = not any(isinstance(rule, EntryBounds) for rule in rules[name].values())
            entries = criterion.entries_of(alphabet, x) if overridden or silent else None
            for part in (entries, criterion.row_bounds(alphabet, x, rows)):
                if part is None:
                    return None
                lower, upper = np.maximum(lower, part[0]), np.minimum(upper, part[1])
        return lower, upper

    return bounds


def _nearest(
    marginal: FloatArray, lower: FloatArray, upper: FloatArray, most: FloatArray
) -> FloatArray | None:
    """Return a law within bounds, which exceeds ``most`` by the least; None if there is none."""
    if (lower > upper + _SLACK).any() or lower.sum() > 1 + _SLACK or upper.sum() < 1 - _SLACK:
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
    return _drawable(row / row.sum(), lower, upper)


def _drawable(row: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray | None:
    """Return a law of whole numbers over 2⁵², which it is drawn by, within bounds.

    If none is, one that leaves them by less than a draw, and None if there is none either: bounds
    that are kept in any case are whole draws.
    """
    scaled_lower, scaled_upper = lower * DENOMINATOR, upper * DENOMINATOR
    low, high = np.ceil(scaled_lower - _SLACK), np.floor(scaled_upper + _SLACK)
    if low.sum() > DENOMINATOR or high.sum() < DENOMINATOR:  # a third is no multiple of 2⁻⁵²
        low, high = np.floor(scaled_lower), np.ceil(scaled_upper)
    low = np.maximum(low, lower > 0)  # no floor above 0 is kept at 0
    k = np.minimum(np.maximum(np.rint(row * DENOMINATOR), low), high)
    short = DENOMINATOR - k.sum()
    room = np.maximum(high - k if short > 0 else k - low, 0.0)
    moved = np.clip(abs(short) - (np.cumsum(room) - room), 0.0, room)
    k += np.sign(short) * moved
    return np.asarray(k / DENOMINATOR) if k.sum() == DENOMINATOR else None
