"""Numbers cut into intervals: named, kept, and cut again the same way."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.tables.periods import Periods
from cvxprivacy.validation import array, number

__all__ = ["Bins", "bins_of", "in_order", "middles_of", "quantile_bins", "quantiles_in", "short"]

MOST_BINS = 1_000
_ROOM = 10  # as a part of an interval's records, by which edges may be off their quantiles


@dataclass(frozen=True)
class Bins:
    """Intervals of a number, closed below and open above, named like ``[20, 30)``.

    Parameters
    ----------
    edges : tuple of float
        Increasing; the first may be −∞ and the last ∞.

    Raises
    ------
    InputError
        For edges that do not increase, and for more than 1,000 intervals.

    Examples
    --------
    >>> ages = Bins((0, 18, 65, float("inf")))
    >>> ages.labels, ages.middles
    (['[0, 18)', '[18, 65)', '≥ 65'], [9.0, 41.5, 65.0])
    >>> ages.named([17.9, 18, 99, -1])
    ['[0, 18)', '[18, 65)', '≥ 65', -1]

    Widths and quantiles are settled on the values of a column, and stay:

    >>> Bins.of_width(10, 12, 31).labels
    ['[10, 20)', '[20, 30)', '[30, 40)']
    >>> Bins.of_quantiles({1: 50, 2: 30, 3: 10, 4: 10}, 2).labels
    ['< 2', '≥ 2']
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = self.edges
        sound = len(edges) >= 2 and all(a < b for a, b in pairwise(edges))
        if not sound or not all(map(math.isfinite, edges[1:-1])):
            remedy = "pass two or more increasing numbers; the outermost may be −inf and inf"
            raise InputError("bins", f"edges {list(edges)!r}", remedy, value=list(edges))
        if len(edges) > MOST_BINS + 1:
            remedy = f"make them wider: {MOST_BINS:,} are allowed"
            raise InputError("bins", f"{len(edges) - 1:,} intervals", remedy)

    @property
    def labels(self) -> list[str]:
        """Names of the intervals."""
        names = []
        for low, high in pairwise(self.edges):
            if low == -math.inf:
                names.append("all" if high == math.inf else f"< {short(high)}")
            elif high == math.inf:
                names.append(f"≥ {short(low)}")
            else:
                names.append(f"[{short(low)}, {short(high)})")
        return names

    @property
    def middles(self) -> list[float]:
        """What each interval stands for: its middle, or its finite end."""
        middles = []
        for low, high in pairwise(self.edges):
            finite = [edge for edge in (low, high) if math.isfinite(edge)]
            middles.append(sum(finite) / len(finite) if finite else 0.0)
        return middles

    def number(self, value: nw.Expr) -> nw.Expr:
        """Return how many edges are at or below a value; 0 and ``len(edges)`` are outside.

        Parameters
        ----------
        value : narwhals.Expr
            A column of numbers, in any engine; a missing value counts as 0.
        """
        value = value.cast(nw.Float64).fill_null(0.0)
        count = (value >= 0).cast(nw.Int64) * 0
        for edge in self._finite:
            count = count + (value >= edge).cast(nw.Int64)
        return count + int(self.edges[0] == -math.inf)

    @property
    def _finite(self) -> list[float]:
        return [e for e in self.edges if math.isfinite(e)]

    def named(self, values: Sequence[Any]) -> list[Any]:
        """Return each value's interval, a value outside of all as it is.

        Parameters
        ----------
        values : sequence of number
            NaN is outside of all.
        """
        labels = [None, *self.labels, None]
        places = np.searchsorted(self._finite, np.array(values, float), side="right")
        names = [labels[p + (self.edges[0] == -math.inf)] for p in places]
        return [v if name is None else name for name, v in zip(names, values, strict=True)]

    @classmethod
    def of_quantiles(cls, counts: Mapping[Any, int], number: int, *, exact: bool = False) -> Bins:
        """Return intervals of about equal counts, the outermost open to −∞ and ∞.

        The k-th edge is near the value below which k / ``number`` of the records are.  Edges are
        published, and a quantile is the value of a record: so each is the roundest number off
        which a tenth of an interval's records are at most, on either side.  Records of one value
        stay together: where they are many, edges fall together and there are fewer intervals.

        Parameters
        ----------
        counts : mapping of value to number of records
            In increasing order of the values; a missing one is passed over.
        number : int
            Of intervals, from 2 to 1,000.
        exact : bool
            Whether edges are values of records: of two that are as near, the lower one.
        """
        if not 2 <= number <= MOST_BINS:
            remedy = f"pass a number from 2 to {MOST_BINS:,}"
            raise InputError("bins", f"{number:,} quantile intervals", remedy, value=number)
        values = [v for v in counts if v is not None and math.isfinite(v)]
        below = np.cumsum([counts[v] for v in values])  # records up to each value
        inner = set[float]()
        for k in range(1, number) if len(values) > 1 else ():
            distance = np.abs(below[:-1] * number - k * below[-1])  # of whole numbers: exact
            nearest = int(distance.argmin())
            if exact:
                inner.add(float(values[nearest + 1]))
                continue
            near = np.flatnonzero(_ROOM * distance <= below[-1])
            first, last = (near[0], near[-1]) if len(near) else (nearest, nearest)
            inner.add(_roundest(float(values[first]), float(values[last + 1])))
        return cls((-math.inf, *sorted(inner), math.inf))

    @classmethod
    def of_width(cls, width: float, least: float, greatest: float) -> Bins:
        """Return bands of one width, anchored at 0, that cover [least, greatest].

        Parameters
        ----------
        width : float
            Of each band, above 0, in the unit of the values.
        least, greatest : float
            The range of the values.

        Raises
        ------
        InputError
            For a width that makes more than 1,000 bands.
        """
        low, high = math.floor(least / width), math.floor(greatest / width)
        if high - low >= MOST_BINS:
            problem = f"a width of {short(width)} makes {high - low + 1:,} intervals"
            raise InputError("bins", problem, f"make it wider: {MOST_BINS:,} are allowed")
        low, exact = low - 1, Decimal(repr(width))  # 3 × 0.1 is 0.3, as people write it
        edges = [float(k * exact) for k in range(low, high + 3)]
        first = max(i for i, edge in enumerate(edges) if edge <= least)
        last = min(i for i, edge in enumerate(edges) if edge > greatest)
        return cls(tuple(edges[first : last + 1]))


def _roundest(low: float, high: float) -> float:
    """Return the number of fewest digits in (low, high]; of several the one next to the middle."""
    ends = [Decimal(repr(end)) for end in (low, high)]
    for exponent in range(max(end.adjusted() for end in ends) + 1, -330, -1):
        unit = Decimal(1).scaleb(exponent)
        below, most = ((end / unit).to_integral(ROUND_FLOOR) for end in ends)
        if most > below:
            middle = ((ends[0] + ends[1]) / 2 / unit).to_integral(ROUND_HALF_EVEN)
            return float(min(max(middle, below + 1), most) * unit) + 0.0  # no −0
    return high


def short(value: float) -> str:
    """Return a number as people write it."""
    if not math.isfinite(value):
        return repr(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def quantiles_in(spec: Any) -> int | None:
    """Return how many quantile intervals a text such as "q10", or "q10:exact", asks for.

    None if it is no such text.
    """
    match = re.fullmatch(r"q([0-9]{1,9})(:exact)?", spec) if isinstance(spec, str) else None
    return int(match[1]) if match else None


def quantile_bins(name: Hashable, spec: str, counts: Mapping[Any, int]) -> Bins:
    """Return the quantile intervals of a column of which the values are counted."""
    number = quantiles_in(spec)
    assert number is not None
    try:
        return Bins.of_quantiles(counts, number, exact=spec.endswith("exact"))
    except InputError as error:
        more = {"where": name, "value": spec}
        raise InputError("bins", error.problem, error.remedy, **more) from None


def middles_of(bins: Bins | Periods | None, levels: Iterable[Any]) -> dict[Any, float]:
    """Return the number that each interval among some levels counts as; nothing without bins."""
    if isinstance(bins, Periods):
        return bins.years(levels)
    return {} if bins is None else dict(zip(bins.labels, bins.middles, strict=True))


def in_order(bins: Bins | Periods, levels: Iterable[Any]) -> list[Any]:
    """Return the names of intervals in their order: all bins, or the periods among some levels."""
    return sorted({*levels} - {None}) if isinstance(bins, Periods) else list(bins.labels)


def bins_of(name: Hashable, spec: Any, least: Any, most: Any) -> Bins:
    """Return the bins that a width or edges mean for a column of values in [least, most]."""
    if isinstance(spec, Bins):
        return spec
    edges: tuple[float, ...] | None = None
    try:
        if isinstance(spec, Iterable) and not isinstance(spec, str):
            edges = tuple(float(e) for e in spec)
        else:
            width = number(spec, "bins", zero=False)
            span = array([least or 0, most or 0], "bins", "bin finite numbers", negative=True)
    except (TypeError, ValueError) as error:
        problem = error.problem if isinstance(error, InputError) else f"{spec!r}"
        remedy = "pass a width, such as 10, the edges of the intervals, or q10 for ten quantiles"
        raise InputError("bins", problem, remedy, where=name, value=spec) from None
    try:
        return Bins.of_width(width, *map(float, span)) if edges is None else Bins(edges)
    except InputError as error:
        raise InputError("bins", error.problem, error.remedy, where=name, value=spec) from None
