"""Rank swapping: each attribute's values change places within a window of ranks.

R. Moore, Controlled data swapping techniques for masking public use microdata sets, U.S. Bureau
of the Census, 1996.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxprivacy.microdata.masking.base import TableMasking, generator
from cvxprivacy.validation import number

__all__ = ["RankSwapping"]


class RankSwapping(TableMasking):
    """Swap each value of an attribute with one whose rank differs by at most p % of the records.

    From the least value up, each one that still stands in its place is swapped with one drawn
    evenly from those above it in the window that do; it stays if there is none.  Each attribute
    is swapped by itself; its values, as a whole, are untouched.

    Parameters
    ----------
    p : float
        Width of the window, in percent of the records: 0 ≤ p ≤ 100.
    random_state : int, numpy.random.Generator or numpy.random.RandomState, optional
        Of the draws; fresh ones by default.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n,) or (n, p)
        The record whose value each record has received, itself if it was not swapped; one column
        per attribute where there are several.

    Notes
    -----
    Equal values are ranked in a random order, so that a swap between them changes nothing.

    Examples
    --------
    Ten ages, each swapped within two ranks: the column keeps its values.

    >>> import numpy as np
    >>> ages = np.arange(20.0, 30.0)[:, None]
    >>> swapped = RankSwapping(p=20, random_state=1).fit_transform(ages)
    >>> bool(np.all(np.sort(swapped, axis=0) == ages)), float(np.abs(swapped - ages).max())
    (True, 2.0)
    """

    def __init__(self, p: float = 5.0, *, random_state: Any = None) -> None:
        self.p, self.random_state = p, random_state

    def _masked(self, data: np.ndarray) -> np.ndarray:
        share = number(self.p, "p", below=100.0 + 1e-9) / 100
        size, draws = len(data), generator(self.random_state)
        window = int(share * size + 1e-9)  # 7 % of 100 is 7
        donors = np.empty(data.shape, dtype=np.int64)
        for j, column in enumerate(data.T):
            order = np.lexsort((draws.random(size), column))
            donors[order, j] = order[_partners(size, window, draws)]
        self.labels_ = donors[:, 0] if data.shape[1] == 1 else donors
        return np.take_along_axis(data, donors, axis=0)


def _partners(size: int, window: int, draws: np.random.Generator) -> np.ndarray:
    """Return with which rank each rank is swapped."""
    partner, free = np.arange(size), np.ones(size, dtype=bool)
    for rank in range(size if window else 0):
        if free[rank]:
            above = np.flatnonzero(free[rank + 1 : rank + 1 + window])
            if len(above):
                other = rank + 1 + int(above[draws.integers(len(above))])
                partner[rank], partner[other] = other, rank
                free[other] = False
    return partner
