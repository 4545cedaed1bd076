"""What the numbers of a variable of SPSS, Stata or SAS are, by the format that shows them.

A number is a date only if its format is one of dates, and a year only if its format is one of plain
numbers; any other format is refused where dates are needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, partial
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.extras import required
from cvxprivacy.tables.periods import Periods

__all__ = ["NumberFormat", "number_format"]

_DAY = 86_400_000_000  # microseconds
_EPOCH = {"spss": datetime(1582, 10, 14), "sas": datetime(1960, 1, 1)}
_PLAIN = {
    "sas": ("", "BEST", "BESTD", "COMMA", "COMMAX", "D", "DOLLAR", "DOLLARX", "E", "F", "NEGPAREN",
            "NUMX", "PERCENT", "PERCENTN", "Z"),
    "spss": ("CCA", "CCB", "CCC", "CCD", "CCE", "COMMA", "DOLLAR", "DOT", "E", "F", "IB", "N", "P",
             "PCT", "PIB", "PIBHEX", "PK", "RB", "RBHEX", "Z"),
}  # fmt: skip
_YEARS = ("WKYR", "YEAR", "DTYEAR")  # show neither months nor quarters


@dataclass(frozen=True)
class NumberFormat:
    """A format of numbers.

    Attributes
    ----------
    name : str
        As the file has it.
    date_of : callable or None
        Returns the day or the moment of a number; None where numbers are no dates.
    months : int
        Length of the shortest calendar interval that it shows, 1 for days; 0 where it shows none.
    plain : bool
        Whether it is of plain numbers, which may be years.
    """

    name: str = ""
    date_of: Callable[[float], date] | None = None
    months: int = 0
    plain: bool = False

    def cell(self, value: float) -> Any:
        """Return the date of a number; a number that is outside of the calendar stays."""
        if self.date_of is None:
            return value
        try:
            return self.date_of(value)
        except (OverflowError, ValueError):
            return value

    def check(self, file: str, column: str, periods: Periods) -> None:
        """Refuse calendar intervals that the format does not show."""
        if self.plain or (self.months and periods.months % self.months == 0):
            return
        if self.months:
            problem = f"shows no {periods.unit}"
            remedy = "take quarter or year" if self.months == 3 else "take year"
        else:
            problem = "is not one of dates that can be read"
            remedy = "give it a format of dates, or of plain numbers if these are years"
        problem = f"the format {self.name} of column {column!r} {problem}"
        raise InputError(file, problem, remedy, value=self.name)


def number_format(package: str, name: str) -> NumberFormat:
    """Return what a format of numbers means.

    Parameters
    ----------
    package : {"spss", "stata", "sas"}
    name : str
        As the file has it, with its width; empty where the file has none.

    Examples
    --------
    >>> number_format("stata", "%tq").cell(-1), number_format("spss", "MOYR8").cell(12219379200)
    (datetime.date(1959, 10, 1), datetime.date(1970, 1, 1))
    >>> number_format("spss", "F8.2").plain, number_format("spss", "TIME8").plain
    (True, False)
    """
    if package == "stata":  # %d is an old name of %td, and %-td is the same to the left
        match = re.match(r"%-?(?:t([cwmqh])|t?d)", name)
        if match is None:
            return NumberFormat(name, plain=re.match("%-?([0-9]|ty)", name) is not None)
        return NumberFormat(name, *_STATA[match[1] or "d"])
    base = name.upper().rstrip("0123456789.")
    days, moments = _dates_of(package)
    months = 12 if base in _YEARS else 3 if re.match("QYR|QTR|YYQ", base) else 1
    moment = partial(_moment, _EPOCH[package], 86_400)
    if base in moments:
        return NumberFormat(name, moment, months)
    if base in days:
        return NumberFormat(name, _day if package == "sas" else lambda v: moment(v).date(), months)
    return NumberFormat(name, plain=base in _PLAIN[package])


@cache
def _dates_of(package: str) -> tuple[set[str], set[str]]:
    """Return the formats of days and of moments; those of SAS are pandas', with other names.

    TOD is shown of times, too, whose numbers are no moments.
    """
    if package == "spss":
        days = {"DATE", "ADATE", "EDATE", "SDATE", "JDATE", "MOYR", "QYR", "WKYR"}
        return days, {"DATETIME", "YMDHMS"}
    pandas = required("pandas.io.sas.sas_constants", "cvxprivacy-sdc[files]", "SAS")
    days = {*pandas.sas_date_formats, "IS8601DA", "MMDDYYB", "WEEKU", "WEEKW", "YYQZ"}
    return days, {*pandas.sas_datetime_formats, "IS8601DT", "IS8601DN"} - {"TOD"}


def _units(value: float) -> int:
    """Return whole units; on a part of one before the epoch, programs disagree."""
    if value < int(value):
        raise ValueError(value)
    return int(value)


def _day(value: float) -> date:
    """Return the day of a number of days from 1960 on."""
    return date(1960, 1, 1) + timedelta(_units(value))


def _moment(epoch: datetime, per_day: int, value: float) -> datetime:
    """Return a moment to the microsecond, which is on the day of the number."""
    days, remainder = divmod(value, per_day)
    microseconds = min(round(remainder * (_DAY // per_day)), _DAY - 1)
    return epoch + timedelta(days, microseconds=microseconds)


def _part_of_year(parts: int, value: float) -> date:
    """Return the first day of a part of a year; the last of 52 weeks has 8 days, or 9."""
    year, part = divmod(_units(value), parts)
    first = date(1960 + year, 1, 1)
    if parts == 52:
        return first + timedelta(weeks=part)
    return first.replace(month=1 + 12 // parts * part)


_STATA: dict[str, tuple[Callable[[float], date], int]] = {
    "d": (_day, 1),
    "c": (partial(_moment, datetime(1960, 1, 1), 86_400_000), 1),
    "w": (partial(_part_of_year, 52), 12),
    "m": (partial(_part_of_year, 12), 1),
    "q": (partial(_part_of_year, 4), 3),
    "h": (partial(_part_of_year, 2), 6),
}
