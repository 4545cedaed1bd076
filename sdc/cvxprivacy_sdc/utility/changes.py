"""What a release changes, in the units of its columns: shares of records, years, amounts."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.tables.bins import middles_of
from cvxprivacy.tables.schema import TableSchema

__all__ = ["Change", "Entries", "changes"]

Entries = tuple[Any, Any, Any]  # arrays of one length


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
            mean = f"{self.mean:,.0f}" if self.mean >= 1e4 else f"{self.mean:.4g}"
            text += f", by {mean} on average"
        if self.suppressed:
            some = "something is withheld" if self.column is None else "withheld"
            text += " with nothing withheld" if self.column is None else ""
            text += f"; {some} in {_share(self.suppressed)}"
        return text


def changes(
    entries: Entries, x: Sequence[Any], outputs: Sequence[Any], schema: TableSchema
) -> list[Change]:
    """Return what a release changes: all key columns together first, then each by itself.

    Parameters
    ----------
    entries : (rows, columns, masses)
        Places of key letters and of what they are released as, and their records or masses.
    x, outputs : sequence
        The letters.
    """
    several = len(schema.key) > 1
    before, after = ([v if several else (v,) for v in side] for side in (x, outputs))
    at_x, at_y, masses = entries
    total = masses.sum()
    gone = np.array([None in cell for cell in after])
    number = {cell: i for i, cell in enumerate(dict.fromkeys([*before, *after]))}
    codes = [np.array([number[cell] for cell in side]) for side in (before, after)]
    moved = codes[0][at_x] != codes[1][at_y]
    listed = []
    if several:
        lost = (gone & ~np.isin(codes[1], codes[0]))[at_y]
        changed, suppressed = (masses[moved & part].sum() / total for part in (~lost, lost))
        listed.append(Change(None, float(changed), float(suppressed)))
    for axis, name in enumerate(schema.key):
        was, now = ([cell[axis] for cell in side] for side in (before, after))
        places = {v: i for i, v in enumerate(dict.fromkeys([*was, *now]))}
        rows, columns = (np.array([places[v] for v in side]) for side in (was, now))
        counts = np.zeros((len(places), len(places)))
        np.add.at(counts, (rows[at_x], columns[at_y]), masses)
        levels = list(places)
        withheld = np.array([v is None for v in levels])
        off = ~np.eye(len(levels), dtype=bool)
        other = off & ~withheld & ~withheld[:, None]
        mean, values = None, _numbers(name, levels, schema)
        if values is not None and (counts * other).any():
            distance = np.abs(values[:, None] - values)
            mean = float((counts * other * distance).sum() / (counts * other).sum())
        shares = [float(counts[part].sum() / total) for part in (off & ~withheld, off & withheld)]
        listed.append(Change(name, shares[0], shares[1], mean))
    return listed


def _numbers(name: str, levels: Sequence[Any], schema: TableSchema) -> np.ndarray | None:
    """Return what the levels of a column stand for, NaN for a missing one; None if no numbers."""
    middles = middles_of(schema.bins.get(name), levels)
    values = [middles.get(v, v) for v in levels]
    if not all(isinstance(v, numbers.Number) for v in values if v is not None):
        return None
    return np.array([0.0 if v is None else float(v) for v in values])


def _share(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")
