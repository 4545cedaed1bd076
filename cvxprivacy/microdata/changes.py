"""What a release changes, in the units of its columns: shares of records, years, amounts."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.tables.schema import TableSchema

__all__ = ["Change", "changes"]


@dataclass(frozen=True)
class Change:
    """What becomes of one key column.

    Attributes
    ----------
    column : str or None
        None for all key columns together.
    changed, suppressed : float
        Share of the records whose value is released as another one, or withheld.
    mean : float or None
        Mean absolute change of those released as another number, in the column's own unit; bands
        count as their middles.  None where the column is no number, or nothing is changed.
    """

    column: str | None
    changed: float
    suppressed: float
    mean: float | None = None

    def __str__(self) -> str:
        text = f"{self.column or 'any key column'}: {_share(self.changed)} of the records change"
        if self.mean is not None:
            text += f", by {self.mean:.4g} on average"
        if self.suppressed:
            text += f"; withheld in {_share(self.suppressed)}"
        return text


def changes(
    joint: np.ndarray, x: Sequence[Any], outputs: Sequence[Any], schema: TableSchema
) -> list[Change]:
    """Return what a release changes: all key columns together first, then each by itself.

    Parameters
    ----------
    joint : ndarray, shape (|X|, |X̂|)
        Records, or masses, of each key letter and what it is released as.
    x, outputs : sequence
        The letters.
    """
    several = len(schema.key) > 1
    before, after = ([v if several else (v,) for v in side] for side in (x, outputs))
    total = joint.sum()
    gone = np.array([None in cell for cell in after])
    number = {cell: i for i, cell in enumerate(dict.fromkeys([*before, *after]))}
    codes = [np.array([number[cell] for cell in side]) for side in (before, after)]
    moved = codes[0][:, None] != codes[1]
    listed = []
    if several:
        lost = gone & ~np.isin(codes[1], codes[0])
        listed.append(Change(None, _part(joint, moved & ~lost, total),
                             _part(joint, moved & lost, total)))  # fmt: skip
    for axis, name in enumerate(schema.key):
        was, now = ([cell[axis] for cell in side] for side in (before, after))
        places = {v: i for i, v in enumerate(dict.fromkeys([*was, *now]))}
        rows, columns = ([places[v] for v in side] for side in (was, now))
        counts = _summed(_summed(joint, rows, len(places)).T, columns, len(places)).T
        levels = list(places)
        withheld = np.array([v is None for v in levels])
        off = ~np.eye(len(levels), dtype=bool)
        other = off & ~withheld & ~withheld[:, None]
        mean, values = None, _numbers(name, levels, schema)
        if values is not None and (counts * other).any():
            distance = np.abs(values[:, None] - values)
            mean = float((counts * other * distance).sum() / (counts * other).sum())
        changed = off & ~withheld
        listed.append(Change(name, _part(counts, changed, total),
                             _part(counts, off & withheld, total), mean))  # fmt: skip
    return listed


def _summed(table: np.ndarray, places: Sequence[int], size: int) -> np.ndarray:
    """Return the sums of a table's rows that have the same place."""
    sums = np.zeros((size, table.shape[1]))
    np.add.at(sums, places, table)
    return sums


def _part(joint: np.ndarray, chosen: np.ndarray, total: float) -> float:
    return float((joint * chosen).sum() / total)


def _numbers(name: str, levels: Sequence[Any], schema: TableSchema) -> np.ndarray | None:
    """Return what the levels of a column stand for, NaN for a missing one; None if no numbers."""
    bins = schema.bins.get(name)
    middles = dict(zip(bins.labels, bins.middles, strict=True)) if bins else {}
    values = [middles.get(v, v) for v in levels]
    if not all(isinstance(v, numbers.Real) for v in values if v is not None):
        return None
    return np.array([0.0 if v is None else float(v) for v in values])


def _share(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")
