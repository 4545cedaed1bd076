"""Costs that are sums of small tables, C(s, y) = Σ_i table_i[rows_i[s], columns_i[y]], exactly.

A distortion per attribute is one: thousands of letters have millions of entries, and few numbers.
The functions here take such costs and arrays (:mod:`cvxprivacy.exact`) alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy import exact
from cvxprivacy.exact import Exact, FloatArray
from cvxprivacy.frozen import FrozenFields, frozen, owned
from cvxprivacy_verifier.rationals import BITS

__all__ = [
    *("AdditiveCost", "Cost", "Part"),
    *("dense", "entries", "floats", "in_blocks", "of_letters", "plus", "span", "times"),
]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part(FrozenFields):
    """A table in which letters and outputs have their places."""

    table: Exact
    rows: IntArray
    columns: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", frozen(self.table))
        for name in ("rows", "columns"):
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name), np.int64)))


@dataclass(frozen=True, eq=False)
class AdditiveCost:
    """A cost C(s, y) by parts; ``np.asarray`` of it are the nearest floats."""

    parts: tuple[Part, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.parts[0].rows), len(self.parts[0].columns)

    @property
    def ndim(self) -> int:
        return 2

    def any(self) -> bool:
        """Tell whether some number in the tables is not 0."""
        return any(bool(part.table.any()) for part in self.parts)

    @cached_property
    def floats(self) -> FloatArray:
        """The nearest floats to the sums."""
        values, numbers = self.numbered()
        sums: FloatArray = owned(exact.floats(values)[numbers])
        return sums

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.floats, dtype=dtype, copy=bool(copy) or None)

    def at(self, letters: IntArray, outputs: IntArray) -> FloatArray:
        """Return the floats of some entries, of letters and outputs, as sums of floats."""
        first, *others = (t[p.rows[letters], p.columns[outputs]] for p, t in self._tables)
        return sum(others, first)

    def of(self, letters: IntArray) -> FloatArray:
        """Return the floats of some letters' rows, as sums of floats."""
        first, *others = (t[p.rows[letters]].take(p.columns, axis=1) for p, t in self._tables)
        return sum(others, first)

    def weighted(self, weights: FloatArray) -> FloatArray:
        """Return Σ_s weights(s) C(s, y) in floats, shape (m,)."""
        first, *others = (
            (np.bincount(p.rows, weights, len(t)) @ t)[p.columns] for p, t in self._tables
        )
        return sum(others, first)

    @cached_property
    def cheapest(self) -> IntArray:
        """The first output of each letter that costs it least, in floats."""
        blocks = [self.of(letters).argmin(axis=1) for letters in in_blocks(*self.shape)]
        return owned(np.concatenate(blocks))

    @cached_property
    def _tables(self) -> list[tuple[Part, FloatArray]]:
        return [(part, exact.floats(part.table)) for part in self.parts]

    def numbered(self) -> tuple[Exact, IntArray]:
        """Return the distinct sums, and for each entry which of them it is.

        Sums are made of distinct numbers, not for each entry: there are few of them.
        """
        values: Exact = np.zeros(1)
        numbers = np.zeros(self.shape, np.int64)
        for part in self.parts:
            entries = part.table.ravel().tolist()
            place = {value: i for i, value in enumerate(dict.fromkeys(entries))}
            indices = np.array([place[value] for value in entries]).reshape(part.table.shape)
            numbers = numbers * len(place) + indices[part.rows][:, part.columns]
            used, numbers = _renumbered(numbers, len(values) * len(place))
            pairs = values[used // len(place)], exact.array(list(place))[used % len(place)]
            values = exact.plus(*pairs)
        return values, numbers

    @property
    def largest(self) -> Fraction:
        """The largest absolute value of an entry."""
        blocks = (self.of_letters(letters).numbered() for letters in in_blocks(*self.shape))
        values = (value for distinct, _ in blocks for value in distinct.tolist())
        return max(abs(exact.rational(value)) for value in values)

    def of_letters(self, letters: Sequence[int] | IntArray) -> AdditiveCost:
        """Return the cost of some letters."""
        shared: dict[int, IntArray] = {}  # parts of one attribute share their places
        places = [shared.setdefault(id(p.rows), owned(p.rows[letters])) for p in self.parts]
        pairs = zip(self.parts, places, strict=True)
        return AdditiveCost(tuple(replace(part, rows=rows) for part, rows in pairs))

    def least(self) -> Iterator[Exact]:
        """Yield the least number of each letter, for a block of letters at a time."""
        for letters in in_blocks(*self.shape):
            values, numbers = self.of_letters(letters).numbered()
            order = np.argsort(values, kind="stable")
            yield values[order][np.argsort(order)[numbers].min(axis=1)]

    @cached_property
    def _dense(self) -> Exact | None:
        """All entries, where there is no common denominator that proofs take."""
        common = 1
        for part in self.parts:
            for value in set(part.table.ravel().tolist()):
                common = math.lcm(common, value.as_integer_ratio()[1])
                if common.bit_length() > BITS:
                    return dense(self)
        return None

    def to_dict(self, listed: Callable[[Any], Any]) -> Any:
        """Return the data as a proof file stores it; ``listed`` returns the list of an array.

        By parts, where their numbers have a common denominator to be added over.
        """
        if self._dense is not None:
            return listed(self._dense)
        names = ("table", "rows", "columns")
        return {"parts": [{k: listed(getattr(part, k)) for k in names} for part in self.parts]}


Cost = Exact | AdditiveCost

_BLOCK = 4_000_000  # entries that are looked at together: 32 MB a table


def in_blocks(n: int, m: int) -> Iterator[IntArray]:
    """Yield numbers of letters, a block of rows of length m at a time."""
    most = max(_BLOCK // m, 1)
    for first in range(0, n, most):
        yield np.arange(first, min(first + most, n))


def dense(cost: Cost) -> Exact:
    """Return an array of the very numbers."""
    if not isinstance(cost, AdditiveCost):
        return cost
    values, numbers = cost.numbered()
    return owned(values[numbers])


def floats(cost: Cost) -> FloatArray:
    """Return the nearest floats."""
    return cost.floats if isinstance(cost, AdditiveCost) else exact.floats(cost)


def entries(cost: Cost, letters: IntArray, outputs: IntArray) -> FloatArray:
    """Return the floats of some entries, of letters and outputs."""
    if isinstance(cost, AdditiveCost):
        return cost.at(letters, outputs)
    return exact.floats(cost)[letters, outputs]


def span(cost: Cost | None) -> float:
    """Return the largest entry less the least, or no less than that where they are not looked at.

    Of parts, the sum of what each spans.
    """
    if cost is None:
        return 0.0
    if not isinstance(cost, AdditiveCost):
        return float(np.ptp(exact.floats(cost)))
    return float(sum(np.ptp(table) for _, table in cost._tables))


def of_letters(cost: Cost, letters: Sequence[int] | IntArray) -> Cost:
    """Return the rows of some letters, of the last two axes; the cost itself if they are all."""
    if np.array_equal(letters, np.arange(cost.shape[-2])):
        return cost
    if not isinstance(cost, AdditiveCost):
        return cost[..., letters, :]
    return cost.of_letters(letters)


def plus(a: Cost, b: Cost) -> Cost:
    """Return a + b, by parts if both are; tables of the same places are added."""
    if not isinstance(a, AdditiveCost) or not isinstance(b, AdditiveCost):
        return exact.plus(dense(a), dense(b))
    parts = list(a.parts)
    for part in b.parts:
        for i, other in enumerate(parts):
            if _same(other, part):
                parts[i] = replace(other, table=exact.plus(other.table, part.table))
                break
        else:
            parts.append(part)
    return AdditiveCost(tuple(parts))


def times(cost: Cost, factor: Any) -> Cost:
    """Return the products with one number."""
    if not isinstance(cost, AdditiveCost):
        return exact.times(cost, factor)
    parts = (replace(part, table=exact.times(part.table, factor)) for part in cost.parts)
    return AdditiveCost(tuple(parts))


def _same(a: Part, b: Part) -> bool:
    return a.table.shape == b.table.shape and all(
        np.array_equal(getattr(a, k), getattr(b, k)) for k in ("rows", "columns")
    )


def _renumbered(numbers: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return which of ``size`` numbers there are, and their places among those."""
    if size > numbers.size:
        used, places = np.unique(numbers, return_inverse=True)
        return used, places.reshape(numbers.shape)
    there = np.zeros(size, bool)
    there[numbers.ravel()] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]
