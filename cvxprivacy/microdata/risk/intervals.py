"""Interval disclosure, and the score of loss and risk together.

J. Domingo-Ferrer and V. Torra, A quantitative comparison of disclosure control methods for
microdata, in: Confidentiality, Disclosure and Data Access, North-Holland (2001) 111–134.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from cvxprivacy.microdata.arrays import paired
from cvxprivacy.validation import array, number, one_of

PERCENTS = tuple(range(1, 11))  # of Domingo-Ferrer and Torra


def interval_disclosure(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    percents: Sequence[float] = PERCENTS,
    by: str = "rank",
) -> float:
    """Return the share of original values in an interval about their masked value.

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p)
        Finite numbers, record i the same in both.
    columns : sequence of str, optional
        Of frames, by default all of the original.
    percents : sequence of float
        Half widths p; the share is averaged over them and over the attributes.
    by : {"rank", "deviation"}
        The interval reaches from the masked value as far as p % of the records rank, in the
        masked table, or p % of a standard deviation of the original.

    Returns
    -------
    float
        In [0, 1]; 1 where nothing was changed.

    Examples
    --------
    The numbers 1 to 100, each raised by 3, lie within 5 ranks of where they were, except the three
    least; within 2 ranks none does:

    >>> import numpy as np
    >>> numbers = np.arange(1.0, 101)[:, None]
    >>> interval_disclosure(numbers, numbers + 3, percents=[5])
    0.97
    >>> interval_disclosure(numbers, numbers + 3, percents=[2])
    0.0
    """
    before, after, _ = paired(original, masked, columns)
    widths = array(percents, "percents", "pass percentages ≥ 0", axes=(1,)) / 100
    one_of(by, "by", "rank", "deviation")
    size, shares = len(after), []
    for x, y in zip(before.T, after.T, strict=True):
        ranked = np.sort(y)
        first, last = (np.searchsorted(ranked, y, side=side) for side in ("left", "right"))
        for width in widths:
            if by == "rank":
                reach = int(width * size + 1e-9)
                low = ranked[np.maximum(first - reach, 0)]
                high = ranked[np.minimum(last - 1 + reach, size - 1)]
            else:
                low, high = y - width * x.std(), y + width * x.std()
            shares.append(((low <= x) & (x <= high)).mean())
    return float(np.mean(shares))


def score(
    loss: float, *, linkage: float, interval: float, probabilistic: float | None = None
) -> float:
    """Return the score of Domingo-Ferrer and Torra 2001, the mean of loss and risk in percent.

    ½ loss + ½ · 100 (½ linkage + ½ interval): 0 is best.  With a bounded loss, such as PIL, it
    is at most 100.

    Parameters
    ----------
    loss : float
        In percent: ``InformationLoss.total`` or ``ProbabilisticLoss.total``.
    linkage, interval : float
        ``distance_linkage`` and :func:`interval_disclosure`, shares in [0, 1].
    probabilistic : float, optional
        ``probabilistic_linkage``; linkage is then the mean of both.

    Returns
    -------
    float
        The score, at least 0.

    Examples
    --------
    A loss of 20 %, three records in ten linked, half of the values within their intervals:
    ½ · 20 + ½ · 100 · (0.15 + 0.25)

    >>> score(20, linkage=0.3, interval=0.5)
    30.0
    """
    shares = {"linkage": linkage, "interval": interval, "probabilistic": probabilistic}
    for name, share in shares.items():
        if share is not None:
            number(share, name, below=1.0 + 1e-9)
    linked = linkage if probabilistic is None else (linkage + probabilistic) / 2
    return number(loss, "loss") / 2 + 100 * (linked + interval) / 4
