"""Groups of at least k records and nothing else, under one Hamming distance: a knapsack.

A cell of fewer than k records is emptied (E) or filled up (F).  Moved are max(Σ_E n, Σ_F (k − n))
records: what is emptied fills, larger cells spare what lacks as long as they can, and what is left
over joins any group.  To empty a larger cell, too, is never better: one that it fills could be
emptied instead.  Among sets E of as many records, one of the most cells leaves least to fill;
dynamic programming over that number is exact.
"""

from __future__ import annotations

import numpy as np

from cvxprivacy_sdc.whole_counts.moves import Places

__all__ = ["least_grouping"]


def least_grouping(n: Places, k: int) -> Places:
    """Return the sizes of the groups, shape (m,), that the fewest records move into.

    Parameters
    ----------
    n : ndarray of int, shape (m,)
        Records of each value.
    k : int
        At most their sum.

    Examples
    --------
    Groups of five: the ten fill up both of the others.

    >>> import numpy as np
    >>> least_grouping(np.array([3, 4, 10, 0]), 5).tolist()
    [5, 5, 7, 0]
    """
    cells = np.flatnonzero((n > 0) & (n < k))
    spare = int((n - k)[n >= k].sum())
    sizes = n[cells].astype(np.int64)
    room = int(sizes.sum())
    most = np.full(room + 1, -1)  # cells in E, by the records in it; −1 for none
    most[0] = 0
    taken = []  # bits: whether a cell is in E, by the records in it
    for size in sizes.tolist():
        better = most[:-size] + 1 > most[size:]
        better &= most[:-size] >= 0
        taken.append(np.packbits(better))
        most[size:] = np.where(better, most[:-size] + 1, most[size:])
    emptied = np.arange(room + 1)
    filled = len(cells) - most
    lacking = k * filled - (room - emptied)  # records that fill up what is not emptied
    possible = (most >= 0) & (lacking - emptied <= spare)
    possible &= (filled > 0) | bool((n >= k).any())
    cost = np.where(possible, np.maximum(emptied, lacking), np.iinfo(np.int64).max)
    left, groups = int(np.argmin(cost)), n.astype(np.int64).copy()
    short = int(lacking[left] - left)
    for cell, size, bits in zip(cells[::-1], sizes[::-1].tolist(), taken[::-1], strict=True):
        at = left - size
        if at >= 0 and np.unpackbits(bits)[at]:
            groups[cell], left = 0, at
        else:
            groups[cell] = k
    for cell in np.argsort(-groups, kind="stable").tolist():  # the largest first
        if groups[cell] >= k:
            off = max(-short, k - int(groups[cell]))
            groups[cell] += off
            short += off
    return groups
