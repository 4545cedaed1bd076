"""Dates as text files spell them: the one spelling that all values of a column have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.tables.periods import Periods

__all__ = ["ISO", "as_dates", "dates_of", "in_years", "spellings_of"]

ISO = "year-month-day"
_REMEDY = "write dates as 1987-02-03"
_TIME = r"(?:[T ]\s*[0-9]{1,2}:.*)?"
SPELLINGS = {  # by the order of year, month and day, as a remedy names it
    ISO: rf"(?P<y>[0-9]{{4}})-(?P<m>[0-9]{{2}})(?:-(?P<d>[0-9]{{2}}){_TIME})?",
    "year/month/day": rf"(?P<y>[0-9]{{4}})[/.](?P<m>[0-9]{{1,2}})[/.](?P<d>[0-9]{{1,2}}){_TIME}",
    "yearmonthday": r"(?P<y>[0-9]{4})(?P<m>[0-9]{2})(?P<d>[0-9]{2})",
    "day.month.year": rf"(?P<d>[0-9]{{1,2}})\.(?P<m>[0-9]{{1,2}})\.(?P<y>[0-9]{{4}}){_TIME}",
    "day/month/year": rf"(?P<d>[0-9]{{1,2}})[/-](?P<m>[0-9]{{1,2}})[/-](?P<y>[0-9]{{4}}){_TIME}",
    "month/day/year": rf"(?P<m>[0-9]{{1,2}})[/-](?P<d>[0-9]{{1,2}})[/-](?P<y>[0-9]{{4}}){_TIME}",
}


def as_dates(cells: Iterable[str], spelling: str) -> dict[str, date | None]:
    """Return the date of each text, None where it is none that is spelled so.

    Examples
    --------
    >>> as_dates(["3.2.1987", "31.02.1987"], "day.month.year")
    {'3.2.1987': datetime.date(1987, 2, 3), '31.02.1987': None}
    """
    pattern = re.compile(SPELLINGS[spelling], re.DOTALL)
    dates: dict[str, date | None] = {}
    for cell in cells:
        match = pattern.fullmatch(cell.strip())
        dates[cell] = None
        if match is not None:
            try:
                dates[cell] = date(int(match["y"]), int(match["m"]), int(match["d"] or 1))
            except ValueError:
                continue
    return dates


def spellings_of(cells: Iterable[str]) -> dict[str, Mapping[str, date]]:
    """Return the spellings in which all of some texts are dates, with these.

    Examples
    --------
    >>> list(spellings_of(["3/2/1987", "2/25/1991"])), list(spellings_of(["3/2/1987"]))
    (['month/day/year'], ['day/month/year', 'month/day/year'])
    """
    listed = [*cells]
    possible: dict[str, Any] = {}
    for spelling in SPELLINGS if listed else ():
        if None not in as_dates(listed[:1], spelling).values():
            dates = as_dates(listed, spelling)
            if None not in dates.values():
                possible[spelling] = dates
    return possible


def dates_of(
    cells: Sequence[str], periods: Periods, usual: str | None
) -> tuple[str, Mapping[str, date]]:
    """Return how texts are spelled, and the date of each.

    Parameters
    ----------
    cells : sequence of str
        Each once.
    periods : Periods
        Of two spellings that both can be meant, any will do if these are the same.
    usual : str or None
        Which of such two is meant.

    Raises
    ------
    InputError
        Whose value is the first text that is no date, or tells no day from its month.
    """
    if not cells:
        return ISO, {}
    possible = spellings_of(cells)
    if usual in possible:
        return usual, possible[usual]
    for cell in cells:
        if len({*periods.named([dates[cell] for dates in possible.values()])}) > 1:
            problem = f"{cell!r}: no value of it tells the day from the month"
            raise InputError("bins", problem, _REMEDY, value=cell)
    if possible:
        return next(iter(possible.items()))
    spelled = {how: as_dates(cells, how) for how in SPELLINGS}
    most = max(spelled, key=lambda how: sum(day is not None for day in spelled[how].values()))
    cell = next(cell for cell, day in spelled[most].items() if day is None)
    what = "a year alone" if in_years([cell]) else "no date"
    like = f", as {most} is" if any(spelled[most].values()) else ""
    remedy = f"mend it, or name it as missing (--na); else {_REMEDY}"
    raise InputError("bins", f"{cell!r}, which is {what}{like}", remedy, value=cell)


def in_years(cells: Iterable[str]) -> bool:
    """Tell whether each of some texts is a year, as 1987 or 1987.0."""
    return all(re.fullmatch(r"[1-9][0-9]{3}(\.0+)?", cell.strip()) for cell in cells)
