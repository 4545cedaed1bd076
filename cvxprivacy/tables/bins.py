"""Numbers cut into intervals: named, kept, and cut again the same way."""

from __future__ import annotations

import math
import re
import reprlib
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.tables.labels import as_fraction, canonical
from cvxprivacy.tables.periods import Periods
from cvxprivacy.validation import number

__all__ = [
    "Bins", "bins_of", "edge_of", "in_order", "middles_of", "quantile_bins", "quantiles_in",
    "short",
]  # fmt: skip

MOST_BINS = 1_000
_ROOM = 10  # as a part of an interval's records, by which edges may be off their quantiles


@dataclass(frozen=True)
class Bins:
    """Intervals of a number, closed below and open above, named like ``[20, 30)``.

    Values and edges are compared exactly, as their digits say: 0.1 is a tenth.

    Parameters
    ----------
    edges : tuple of numbers
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

    edges: tuple[Any, ...]

    def __post_init__(self) -> None:
        edges = self.edges
        sound = len(edges) >= 2 and all(map(_is_finite, edges[1:-1]))
        ends = [as_fraction(edge) if _is_finite(edge) else edge for edge in edges]
        if not sound or not all(a < b for a, b in pairwise(ends)):
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
            finite = [as_fraction(edge) for edge in (low, high) if _is_finite(edge)]
            middles.append(float(sum(finite) / len(finite)) if finite else 0.0)
        return middles

    def number(self, value: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr:
        """Return how many edges are at or below a value; 0 and ``len(edges)`` are outside.

        Parameters
        ----------
        value : narwhals.Expr
            A column of numbers, in any engine; a missing value counts as below all.
        dtype : narwhals data type
            Of the column, in which each edge is the least value that is not below it.
        """
        count = value.is_null().cast(nw.Int64) * 0 + int(self.edges[0] == -math.inf)
        cuts: list[Any]
        if dtype.is_float():
            value, cuts = value.cast(nw.Float64), self._floats
        elif isinstance(dtype, nw.Decimal):
            places, precision = dtype.scale, dtype.precision
            units = [math.ceil(cut * 10**places) for cut in self._cuts]
            count = count + sum(unit <= -(10**precision) for unit in units)
            cuts = [Decimal(f"{unit}E-{places}") for unit in units if abs(unit) < 10**precision]
        else:
            small = dtype not in (nw.UInt64, nw.Int128, nw.UInt128)
            value = value.fill_null(0).cast(nw.Int64) if small else value
            least, most = (-(2**63), 2**63) if small else (0, 2**64)
            if dtype in (nw.Int128, nw.UInt128):
                least, most = (-(2**127), 2**127) if dtype == nw.Int128 else (0, 2**128)
            units = [math.ceil(cut) for cut in self._cuts]
            count = count + sum(unit <= least for unit in units)
            inside = [unit for unit in units if least < unit < most]
            # Arrow compares unsigned integers with signed ones only where both are below 2⁶³
            cuts = inside if small else list(map(Decimal, inside))
        for cut in cuts:
            count = count + (value >= cut).fill_null(False).cast(nw.Int64)
        return count

    @cached_property
    def _cuts(self) -> list[Fraction]:
        """The finite edges."""
        return [as_fraction(edge) for edge in self.edges if _is_finite(edge)]

    @cached_property
    def _floats(self) -> list[float]:
        """For each finite edge the least float that is not below it."""
        floats = map(float, self._cuts)
        return [
            f if not math.isfinite(f) or as_fraction(f) >= cut else math.nextafter(f, math.inf)
            for f, cut in zip(floats, self._cuts, strict=True)
        ]

    def numbers(self, values: Iterable[Any]) -> list[int | None]:
        """Return the same of values in Python, None where one is missing.

        Parameters
        ----------
        values : iterable of number
            NaN is missing, as None is.

        Raises
        ------
        TypeError, ValueError
            If a value is not a number.
        """
        listed, first = list(values), int(self.edges[0] == -math.inf)
        floats = [v if isinstance(v, float) else math.nan for v in listed]
        places = np.searchsorted(self._floats, floats, side="right").tolist()
        return [
            None
            if v is None or v != v
            else first + (p if isinstance(v, float) else bisect_right(self._cuts, as_fraction(v)))
            for v, p in zip(listed, places, strict=True)
        ]

    def named(self, values: Sequence[Any]) -> list[Any]:
        """Return each value's interval, a value outside of all as it is.

        Parameters
        ----------
        values : sequence of number
            NaN and None are outside of all.
        """
        names = [None, *self.labels, None]
        numbers = self.numbers(values)
        return [
            v if p is None or names[p] is None else names[p]
            for v, p in zip(values, numbers, strict=True)
        ]

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
        values = [v for v in counts if v is not None and _is_finite(v)]
        below = np.cumsum([counts[v] for v in values])  # records up to each value
        inner = set[Fraction]()
        for k in range(1, number) if len(values) > 1 else ():
            distance = np.abs(below[:-1] * number - k * below[-1])  # of whole numbers: exact
            nearest = int(distance.argmin())
            if exact:
                inner.add(as_fraction(values[nearest + 1]))
                continue
            near = np.flatnonzero(_ROOM * distance <= below[-1])
            first, last = (near[0], near[-1]) if len(near) else (nearest, nearest)
            inner.add(_roundest(as_fraction(values[first]), as_fraction(values[last + 1])))
        return cls((-math.inf, *map(_edge, sorted(inner)), math.inf))

    @classmethod
    def of_width(cls, width: Any, least: Any, greatest: Any) -> Bins:
        """Return bands of one width, anchored at 0, that cover [least, greatest].

        Parameters
        ----------
        width : number
            Of each band, above 0, in the unit of the values.
        least, greatest : number
            The range of the values.

        Raises
        ------
        InputError
            For a width that makes more than 1,000 bands.
        """
        size = as_fraction(width)
        low, high = (math.floor(as_fraction(end) / size) for end in (least, greatest))
        if high - low >= MOST_BINS:
            problem = f"a width of {short(width)} makes {_counted(high - low + 1)} intervals"
            raise InputError("bins", problem, f"make it wider: {MOST_BINS:,} are allowed")
        return cls(tuple(_edge(k * size) for k in range(low, high + 2)))


def _counted(number: int) -> str:
    """Return a count with all its digits, or as about 4e302."""
    return f"{number:,}" if number <= 10**15 else f"about {Decimal(number):.0e}".replace("+", "")


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _edge(value: Fraction) -> Any:
    """Return an edge as a number of few digits is typed, or else exactly."""
    few = abs(value) < 1e15 and as_fraction(float(value)) == value
    return float(value) if few else canonical(value)


def _roundest(low: Fraction, high: Fraction) -> Fraction:
    """Return the number of fewest digits in (low, high]; of several the one next to the middle."""
    digits = len(str(int(max(abs(low), abs(high)))))
    for exponent in range(digits, -330, -1):
        unit = Fraction(10) ** exponent
        below, most = (math.floor(end / unit) for end in (low, high))
        if most > below:
            middle = round((low + high) / 2 / unit)
            return min(max(middle, below + 1), most) * unit
    return high


def short(value: Any) -> str:
    """Return a number as people write it."""
    if not isinstance(value, float):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(float(value))


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
    edges: tuple[Any, ...] | None = None
    try:
        if isinstance(spec, Iterable) and not isinstance(spec, str):
            edges = tuple(edge_of(e) for e in spec)
        else:
            number(spec, "bins", zero=False)
    except (TypeError, ValueError, ArithmeticError) as error:
        problem = error.problem if isinstance(error, InputError) else f"{spec!r}"
        remedy = "pass a width, such as 10, the edges of the intervals, or q10 for ten quantiles"
        raise InputError("bins", problem, remedy, where=name, value=spec) from None
    for end in (least, most) if edges is None else ():
        if end is not None and not _is_finite(end):
            remedy = "pass edges of which the outermost are −inf and inf, or make it missing"
            raise InputError("frame", f"column {name!r} has {end!r}", remedy, value=end)
    try:
        return Bins.of_width(spec, least or 0, most or 0) if edges is None else Bins(edges)
    except InputError as error:
        raise InputError("bins", error.problem, error.remedy, where=name, value=spec) from None


def edge_of(value: Any) -> Any:
    """Return an edge that is typed, or written in JSON: a number, or its text.

    Parameters
    ----------
    value : number or str
        Such as 20, ``"-inf"``, ``"123456789012345678.12"``.

    Raises
    ------
    InputError
        For a number beyond all floats, which is not infinite, and for one of a huge exponent.
    """
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number):
        return _edge(as_fraction(value))
    if re.search("[0-9]", str(value)):
        problem = f"the edge {reprlib.repr(value)}"
        raise InputError("bins", problem, "pass inf, or a smaller number", value=value)
    return number
