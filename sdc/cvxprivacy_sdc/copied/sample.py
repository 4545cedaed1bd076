"""A sample of a table's records, column by column as numbers that are counted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.tables.engines import python_values, sampled
from cvxprivacy.tables.schema import TableSchema

__all__ = ["FEW", "PARTS", "SAMPLE", "Column", "Sample", "codes_of", "joint_codes", "parts_of"]

SAMPLE = 50_000  # records: what a column tells of them is within a hundredth of a bit or two
FEW = 20  # records per value, under which the values of a number are also put into intervals
PARTS = 20  # intervals of equal counts

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """A column of the sample.

    Attributes
    ----------
    name : str
    codes : array of int
        The number of each record's value, 0, 1, …; a missing value is one.
    numbers : array of float or None
        The values themselves, of dates the days, NaN where one is missing; None where they are
        neither numbers nor dates.
    """

    name: str
    codes: Codes
    numbers: npt.NDArray[np.float64] | None

    @property
    def values(self) -> int:
        """Number of different values."""
        return int(self.codes.max(initial=-1)) + 1


@dataclass(frozen=True)
class Sample:
    """Records of a table, all of them or 50,000 that were drawn with a fixed seed.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"ill": list("ynn"), "age": [20, 30, 30], "pay": [5.0, 7.0, None]})
    >>> sample = Sample.of(people, TableSchema(key=("age",), sensitive=("ill",)))
    >>> sample.copied, sample.letters(("age",)), sample.column("pay").codes
    (['pay'], array([0, 1, 1]), array([0, 1, 2]))
    """

    frame: nw.DataFrame[Any]
    schema: TableSchema
    sampled: bool = False

    @classmethod
    def of(cls, frame: Any, schema: TableSchema) -> Sample:
        """Draw from the records that a schema counts."""
        drawn, records = sampled(schema.counted_records(frame), SAMPLE, seed=0)
        return cls(drawn, schema, len(drawn) < records)

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.frame)

    @cached_property
    def copied(self) -> list[str]:
        """Columns that a release copies, but for W; survey weights are copied too."""
        return [name for name in self.frame.columns if name not in self.schema.columns]

    @cached_property
    def weights(self) -> npt.NDArray[np.float64] | None:
        """Survey weights, if there are any."""
        name = self.schema.weights
        return None if name is None else np.array(python_values(self.frame[name]), float)

    def letters(self, names: tuple[str, ...]) -> Codes:
        """Return the numbers of the letters of columns, binned and grouped as the schema says."""
        return codes_of(self.schema.letters(self.frame, names))

    def values(self, name: str) -> list[Any]:
        """Return a column as objects of Python; those that cannot be compared, as text."""
        series = self.frame[name]
        try:
            values = python_values(series)
        except InputError:  # a date after 9999
            values = python_values(series.cast(nw.String))
        try:
            set(values)
        except TypeError:  # lists, for instance
            return [None if value is None else str(value) for value in values]
        return values

    def column(self, name: str) -> Column:
        """Return a column as it is."""
        series, values = self.frame[name], self.values(name)
        codes = codes_of(values)
        days = series.dtype in (nw.Date, nw.Datetime)
        if days and not any(isinstance(day, str) for day in values):
            values = [None if day is None else day.toordinal() for day in values]
        elif not series.dtype.is_numeric():
            return Column(name, codes, None)
        return Column(name, codes, np.array(values, float))


def codes_of(values: Iterable[Hashable]) -> Codes:
    """Number values by their first appearance."""
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(value, len(places)) for value in values], np.int64)


def parts_of(numbers: npt.NDArray[np.float64]) -> Codes:
    """Number 20 intervals of equal counts; a missing number is in one of its own."""
    missing = np.isnan(numbers)
    quantiles = np.arange(1, PARTS) / PARTS
    finite = numbers[np.isfinite(numbers)]
    edges = np.unique(np.quantile(finite, quantiles)) if finite.size else np.zeros(0)
    parts = np.where(missing, -1, np.searchsorted(edges, numbers, side="right"))
    return np.unique(parts, return_inverse=True)[1].astype(np.int64)


def joint_codes(columns: Sequence[Codes]) -> Codes:
    """Number the values that records have in several columns together."""
    joint = np.zeros(len(columns[0]) if columns else 0, np.int64)
    for codes in columns:
        joint = np.unique(joint * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return joint
