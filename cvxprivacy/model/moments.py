"""Means and covariances of a table's columns, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.tables.engines import as_narwhals, collect, python_values
from cvxprivacy.validation import one_of, present

__all__ = ["Moments", "moments_of"]

_DIGIT = 20  # bits

Covariance = list[list[Fraction]]


@dataclass(frozen=True)
class Moments:
    """Second moments of columns, in units of ``scale`` each."""

    covariance: Covariance
    mean: list[float]
    scale: list[float]
    records: int


def moments_of(
    frame: Any, names: Sequence[Any], shrinkage: str | None, standardize: bool
) -> Moments:
    """Return the moments of a table's columns; parameters as of ``GaussianSource.from_table``."""
    lazy = as_narwhals(frame).lazy()
    schema = lazy.collect_schema()
    for name in names:
        present(name, schema.names(), "frame")
        if not schema[name].is_numeric():
            problem = f"column {name!r} is {schema[name]}, not numbers"
            raise InputError("frame", problem, "convert it, or leave it out", value=name)
    records = collect(lambda: lazy.select(*names))
    columns = [python_values(records[name]) for name in names]
    for name, column in zip(names, columns, strict=True):
        if None in column:
            problem = f"a missing value in column {name!r}"
            raise InputError(
                "frame", problem, "fill or drop such records", where=column.index(None)
            )
    if len(records) < 2:
        raise InputError("frame", f"{len(records)} records", "pass at least two")
    data = np.array(columns, float).T
    if not np.isfinite(data).all():
        raise InputError("frame", "numbers that are not finite", "drop such records")
    columns = [records[name].to_list() for name in names]  # decimals as they are
    means, law = _moments(columns)
    for i, name in enumerate(names):
        if not law[i][i]:
            raise InputError("frame", f"column {name!r} is constant", "leave it out", value=name)
    spread = [1.0] * len(names)
    if standardize:
        spread = [_deviation(law[i][i], name) for i, name in enumerate(names)]
    if standardize:
        units = [1 / Fraction(s) for s in spread]
        law = [[v * a * b for v, b in zip(row, units, strict=True)]
               for row, a in zip(law, units, strict=True)]  # fmt: skip
    if shrinkage is not None:
        law = _shrunk(law, data / spread, shrinkage)
    mean = [float(mean / Fraction(unit)) for mean, unit in zip(means, spread, strict=True)]
    return Moments(law, mean, spread, len(data))


def _moments(columns: Sequence[Sequence[Any]]) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Return means and covariances of columns of numbers exactly, divided by N − 1.

    Each number is split into digits below 2²⁰ in absolute value.  Of 2¹³ records at a time, sums
    of products of digits are whole numbers below 2⁵³, whatever order floats add them in.
    """
    size, split = len(columns[0]), [_digits(column) for column in columns]
    ends = np.cumsum([len(digits) for digits, _ in split]).tolist()
    places = [range(end - len(digits), end) for end, (digits, _) in zip(ends, split, strict=True)]
    table = np.vstack([*(digits for digits, _ in split), np.ones(size)]).T
    sums = np.zeros((ends[-1] + 1,) * 2, dtype=object)
    for start in range(0, size, 2**13):
        some = table[start : start + 2**13]
        sums += (some.T @ some).astype(np.int64).astype(object)

    def together(rows: Sequence[int], of: Sequence[int]) -> int:
        return sum(int(sums[i, j]) << _DIGIT * (i - rows[0] + j - of[0]) for i in rows for j in of)

    units = [unit for _, unit in split]
    totals = [together(column, [ends[-1]]) for column in places]
    law = [
        [
            Fraction(size * together(one, two) - s * t, size * (size - 1)) * a * b
            for two, t, b in zip(places, totals, units, strict=True)
        ]
        for one, s, a in zip(places, totals, units, strict=True)
    ]
    return [total * unit / size for total, unit in zip(totals, units, strict=True)], law


def _digits(column: Sequence[Any]) -> tuple[np.ndarray, Fraction]:
    """Return digits of numbers in units of a rational, the last ones first, and the unit."""
    near = np.array(column, dtype=float)
    small = (np.abs(near) <= 2.0**53).tolist()
    if all(type(v) is float or (type(v) is int and s) for v, s in zip(column, small, strict=True)):
        fraction, exponent = np.frexp(near)
        mantissa = np.abs(fraction * 2.0**53).astype(np.uint64)
        mantissa[mantissa == 0], sign = 2**52, np.sign(near)
        last = np.frexp((mantissa & (~mantissa + np.uint64(1))).astype(float))[1] - 1
        least = int(np.where(sign == 0, exponent.max(), exponent + last).min())
        shift = exponent - least  # the number is mantissa 2^shift, in units of 2^(least − 53)
        count = int(shift.max() + 52) // _DIGIT + 1
        digits = np.empty((count, len(near)))
        for k in range(count):
            left = shift - _DIGIT * k
            up = np.where(left > -64, mantissa >> np.clip(-left, 0, 63).astype(np.uint64), 0)
            up = np.where(left < _DIGIT, up << np.clip(left, 0, _DIGIT).astype(np.uint64), 0)
            digits[k] = sign * (up & np.uint64(2**_DIGIT - 1)).astype(float)
        return digits, Fraction(2) ** (least - 53)
    ratios = [value.as_integer_ratio() for value in column]
    unit = math.lcm(*{below for _, below in ratios})
    numbers = [above * (unit // below) for above, below in ratios]
    count = max(abs(number).bit_length() for number in numbers) // _DIGIT + 1
    mask = 2**_DIGIT - 1
    digits = np.array(
        [[(abs(n) >> _DIGIT * k & mask) * (-1 if n < 0 else 1) for n in numbers]
         for k in range(count)], dtype=float,
    )  # fmt: skip
    return digits, Fraction(1, unit)


def _deviation(variance: Fraction, name: str) -> float:
    """Return the square root of a column's variance."""
    try:
        deviation = math.sqrt(variance)
    except OverflowError:
        deviation = math.inf
    if not 0 < deviation < math.inf:
        problem = f"the variance of column {name!r} is no float"
        raise InputError("frame", problem, "choose another unit of it", value=name)
    return deviation


def _shrunk(
    law: Sequence[Sequence[Fraction]], data: np.ndarray, shrinkage: str
) -> list[list[Fraction]]:
    """Return (1 − α) S + α (tr S / k) I, with scikit-learn's α."""
    try:
        from sklearn import covariance
    except ImportError:
        remedy = "install it with: pip install 'cvxprivacy[examples]'"
        raise InputError("shrinkage", "needs scikit-learn", remedy) from None
    estimators: Mapping[str, Any] = {"ledoit-wolf": covariance.LedoitWolf, "oas": covariance.OAS}
    one_of(shrinkage, "shrinkage", *estimators)
    size, share = len(law), Fraction(float(estimators[shrinkage]().fit(data).shrinkage_))
    mean = sum((law[i][i] for i in range(size)), Fraction(0)) / size
    return [
        [(1 - share) * law[i][j] + (share * mean if i == j else 0) for j in range(size)]
        for i in range(size)
    ]
