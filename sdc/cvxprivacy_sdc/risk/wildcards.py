"""Records that agree where neither misses a value: a missing value matches every value.

Under local suppression an intruder cannot rule out a record whose value is withheld, so that a
record hides among all those that are compatible with it.  That is how sdcMicro counts (M. Templ,
A. Kowarik and B. Meindl, Statistical disclosure control for micro-data using the R package
sdcMicro, Journal of Statistical Software 67(4), 2015).  The relation is not transitive: records of
two classes may match a third one without matching each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.tables.arrays import codes
from cvxprivacy.validation import one_of

__all__ = ["MATCHED", "convention", "matched"]

MATCHED = "a missing value matches every value"
_MOST = 2**62  # combinations of values that one whole number tells apart
_PATTERNS = 1_000  # of missing values, beyond which their pairs take more than the classes do

Codes = npt.NDArray[np.int64]


def convention(missing: str) -> tuple[str, bool]:
    """Return how a table's missing values are counted, and whether they are wildcards."""
    one_of(missing, "missing", "refuse", "level", "drop", "wildcard")
    wild = missing == "wildcard"
    return "level" if wild else missing, wild


def matched(
    letters: Sequence[Any], columns: int, masses: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return, for each class of a key, what the classes compatible with it have, itself among them.

    Classes that miss values in the same columns are taken together, and those of two such patterns
    compared in the columns where neither misses one: the values there are numbered once for all
    pairs of patterns with these columns in common.  Of more than a thousand patterns the classes
    are compared one by one.

    Parameters
    ----------
    letters : sequence
        Values of the key, tuples of several columns; ``None`` is a missing one.
    columns : int
        Of the key.
    masses : ndarray, shape (classes,)
        Records of each class, or what else is added up.

    Examples
    --------
    The last class may be any of the others, which are not all compatible with each other:

    >>> matched([("f", 30), ("f", None), ("m", 30), (None, 30)], 2, np.array([1.0, 1, 1, 1]))
    array([3., 3., 2., 4.])
    """
    rows = [(letter,) for letter in letters] if columns == 1 else letters
    table = np.array([codes(column) for column in zip(*rows, strict=True)])
    there = np.array([[v is not None for v in column] for column in zip(*rows, strict=True)])
    patterns, pattern = np.unique(there.T, axis=0, return_inverse=True)
    if len(patterns) > _PATTERNS:
        return _one_by_one(table, there, masses)
    places = [np.flatnonzero(pattern.ravel() == p) for p in range(len(patterns))]
    masks = [sum(1 << j for j, present in enumerate(row) if present) for row in patterns.tolist()]
    pairs: dict[int, dict[int, list[int]]] = {}  # patterns and their others, by columns in common
    for (p, mine), (q, other) in product(enumerate(masks), repeat=2):
        pairs.setdefault(mine & other, {}).setdefault(p, []).append(q)
    total, number = np.zeros_like(masses), np.zeros(len(masses), np.int64)
    for common, others in pairs.items():
        everyone = np.concatenate([places[p] for p in others])
        columns_in_common = [j for j in range(columns) if common >> j & 1]
        number[everyone] = _numbered(table[columns_in_common], everyone)
        values = int(number[everyone].max()) + 1
        for asking, answering in others.items():
            at = np.concatenate([places[p] for p in answering])
            sums = np.bincount(number[at], masses[at], values)
            total[places[asking]] += sums[number[places[asking]]]
    return total


def _numbered(columns: Codes, places: Codes) -> Codes:
    """Number the values that classes have in several columns together."""
    joint, values = np.zeros(len(places), np.int64), 1
    for column in columns[:, places]:
        size = int(column.max()) + 1
        if values * size > _MOST:
            joint = np.unique(joint, return_inverse=True)[1]
            values = len(joint)
        joint, values = joint * size + column, values * size
    return np.unique(joint, return_inverse=True)[1]


def _one_by_one(
    table: Codes, there: npt.NDArray[np.bool_], masses: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the sums by comparing each class with all: n² time and n memory."""
    total = np.empty_like(masses)
    for place in range(len(masses)):
        alike = np.ones(len(masses), bool)
        for column in np.flatnonzero(there[:, place]):
            alike &= (table[column] == table[column, place]) | ~there[column]
        total[place] = masses[alike].sum()
    return total
