"""Dates put into calendar intervals: months, quarters, years, or several years together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw

__all__ = ["Periods", "are_dates", "is_unit", "months_of", "periods_of"]

UNITS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}  # months
_ISO = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ][0-9]{2}.*)?)?)?", re.DOTALL)
_REMEDY = "write dates as 1987-02-03, or name the value as missing"
_FIRST = 1000  # year that a number may be: 37 is an age


@dataclass(frozen=True)
class Periods:
    """Calendar intervals of a date, named like ``1987-02``, ``1987-Q1``, ``1987``, ``1985-1989``.

    They are the same for every table: neither their ends nor their number depend on its values.

    Parameters
    ----------
    unit : str
        ``"month"``, ``"quarter"``, ``"year"``, ``"decade"``, or a number of years, ``"5years"``,
        which begin at multiples of it.

    Raises
    ------
    InputError
        For another unit.

    Examples
    --------
    >>> days = [date(1987, 2, 3), "1991-11-30", None]
    >>> Periods("quarter").named(days), Periods("5years").named(days)
    (['1987-Q1', '1991-Q4', None], ['1985-1989', '1990-1994', None])

    They count as their middles, in years:

    >>> Periods("5years").years(["1985-1989", "1990-1994"])
    {'1985-1989': 1987.5, '1990-1994': 1992.5}
    """

    unit: str

    def __post_init__(self) -> None:
        if not is_unit(self.unit):
            units = ", ".join(UNITS)
            remedy = f"pass {units}, or years, such as 5years"
            raise InputError("bins", f"{self.unit!r}", remedy, value=self.unit)

    @property
    def months(self) -> int:
        """How long they are."""
        return UNITS.get(self.unit) or 12 * int(self.unit.removesuffix("years"))

    @property
    def in_years(self) -> bool:
        """Whether a year is enough to tell them."""
        return self.months >= UNITS["year"]

    def number(self, months: nw.Expr) -> nw.Expr:
        """Return the number of the period of a month.

        Parameters
        ----------
        months : narwhals.Expr
            From year 0 on, as :func:`months_of` counts them.
        """
        return months // self.months

    def label(self, number: int) -> str:
        """Return the name of a period.

        Parameters
        ----------
        number : int
            Of periods of this length, from year 0 on.
        """
        year, month = divmod(number * self.months, 12)
        if self.months == 1:
            return f"{year:04d}-{month + 1:02d}"
        if not self.in_years:
            return f"{year:04d}-Q{month // 3 + 1}"
        last = year + self.months // 12 - 1
        return f"{year:04d}" if last == year else f"{year:04d}-{last:04d}"

    def place(self, label: Any) -> int | None:
        """Return the number of the period of a name; None for what is none.

        Parameters
        ----------
        label : object
            Such as ``"1987-Q1"``.
        """
        match = re.fullmatch(r"([0-9]{4})(?:-(?:Q([1-4])|([0-9]{2,5})))?", str(label))
        if match is None:
            return None
        year, quarter, other = match.groups()
        month = 3 * int(quarter) - 2 if quarter else int(other) if self.months == 1 and other else 1
        number = (12 * int(year) + month - 1) // self.months
        return number if self.label(number) == label else None

    def named(self, values: Sequence[Any]) -> list[Any]:
        """Return the name of each value's period; a missing value and a name stay as they are.

        Parameters
        ----------
        values : sequence
            Dates, moments, text as ISO 8601 writes it; for years, numbers such as 1987, too.

        Raises
        ------
        InputError
            For what is no date.
        """
        names: dict[Any, Any] = {None: None}
        for value in dict.fromkeys(values):
            if value is not None and value == value and self.place(value) is None:
                names[value] = self.label(self._month(value) // self.months)
        return [names.get(value, value) for value in values]

    def years(self, labels: Iterable[Any]) -> dict[Any, float]:
        """Return what names stand for, by name: the middle of the period, in years.

        Parameters
        ----------
        labels : iterable
            What is no name of a period is passed over.
        """
        places = ((label, self.place(label)) for label in labels)
        return {k: (number + 0.5) * self.months / 12 for k, number in places if number is not None}

    def check(self, values: Iterable[Any]) -> None:
        """Refuse values of which one is no date.

        Parameters
        ----------
        values : iterable
            As of :meth:`named`; None and NaT are passed over.

        Raises
        ------
        InputError
            Whose value is the first that is no date.
        """
        for value in values:
            if value is not None and value == value:
                self._month(value)

    def _month(self, value: Any) -> int:
        """Return the number of the month of a date."""
        if isinstance(value, date):
            return 12 * value.year + value.month - 1
        text, number = value, isinstance(value, int | float | Decimal)
        if number and _FIRST <= value < 10_000 and value == int(value):
            text = str(int(value))
        match = _ISO.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InputError("bins", f"{value!r} is no date", _REMEDY, value=value)
        year, month, day = (int(part or 0) for part in match.groups())
        if not month and not self.in_years:
            remedy = 'write dates as 1987-02-03, or take "year"'
            raise InputError("bins", f"{value!r} has no {self.unit}", remedy, value=value)
        try:
            date(year, month or 1, day or 1)
        except ValueError:
            raise InputError("bins", f"{value!r} is no date", _REMEDY, value=value) from None
        return 12 * year + (month or 1) - 1


def is_unit(spec: Any) -> bool:
    """Tell a text that names calendar intervals."""
    years = r"[1-9][0-9]{0,2}years"
    return isinstance(spec, str) and (spec in UNITS or re.fullmatch(years, spec) is not None)


def periods_of(spec: Any) -> Periods | None:
    """Return the calendar intervals that are meant; None for bins of numbers, and for no bins."""
    return Periods(spec) if is_unit(spec) else spec if isinstance(spec, Periods) else None


def are_dates(values: Iterable[Any]) -> bool:
    """Tell whether values are dates, or text that is one day each; None may be among them."""
    present = [value for value in values if value is not None]
    try:
        Periods("month").check(present)
    except InputError:
        return False
    return bool(present) and all(isinstance(v, date) or len(str(v)) >= 10 for v in present)


def months_of(value: nw.Expr, dtype: nw.dtypes.DType, periods: Periods) -> nw.Expr:
    """Return the number of months from year 0 to that of a column, in any engine.

    Parameters
    ----------
    value : narwhals.Expr
        A column of dates, of years, or of text that :meth:`Periods.check` allows.
    dtype : narwhals data type
        Of the column.
    periods : Periods
        Where they are years, text need not have a month.
    """
    if dtype.is_numeric():
        return value.cast(nw.Float64).fill_null(0.0).cast(nw.Int64) * 12
    if dtype in (nw.Date, nw.Datetime):
        years, months = value.dt.year(), value.dt.month()
        return years.fill_null(0).cast(nw.Int64) * 12 + months.fill_null(1).cast(nw.Int64) - 1
    text = value.cast(nw.String).fill_null("0000-01")
    months = text.str.slice(0, 4).cast(nw.Int64) * 12
    return months if periods.in_years else months + text.str.slice(5, 2).cast(nw.Int64) - 1
