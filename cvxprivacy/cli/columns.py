"""Columns as they are typed: one rule for every option of every command.

A name is that of a column; or of the only one that differs in case, or in blanks around it, which
is then taken and said; else it is refused, with the names that it may have been meant for.  Of
several columns of one name each is called by its place among them: ``Note#2`` for the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cvxprivacy.cli.exits import note
from cvxprivacy.errors import InputError
from cvxprivacy.text import near

__all__ = ["column_of", "columns_of", "refuse_unknown"]

_MOST = 30  # names that an error lists


def column_of(name: str, header: Sequence[str], option: str, what: str = "column") -> str:
    """Return the column that a name means.

    Parameters
    ----------
    name : str
        As it was typed.
    header : sequence of str
        The columns that there are, each by a name of its own.
    option : str
        Which an error names.
    what : str
        What the header's names are of.

    Raises
    ------
    InputError
        For a name that is of none or may be of several.
    """
    if name in header:
        return name
    wanted = _plain(name)
    alike = [other for other in header if _plain(other) == wanted]
    numbered = [
        n for n in header if wanted and re.fullmatch(re.escape(wanted) + "#[0-9]+", _plain(n))
    ]
    if len(alike) == 1 and not numbered:
        note(f"{option} {name}: taken as the {what} {alike[0]!r}")
        return alike[0]
    several = [*alike, *numbered]
    if several:
        listed = f"{', '.join(map(repr, several[:-1]))} or {several[-1]!r}"
        problem = f"{name!r} is the name of {len(several)} columns"
        raise InputError(option, problem, f"write {listed}", value=name)
    raise _unknown(name, header, option, what)


def refuse_unknown(option: str, names: Iterable[str], header: Sequence[str]) -> None:
    """Refuse the first name that is none of a column, as a file has it and not as it was typed.

    Parameters
    ----------
    option, header
        As of :func:`column_of`.
    names : iterable of str
        Which have to be there as they are.
    """
    for name in names:
        if name not in header:
            raise _unknown(name, header, option, "column")


def _unknown(name: str, header: Sequence[str], option: str, what: str) -> InputError:
    """Return an error with the names that one may have been meant for."""
    close = near(name, header)
    if close:
        remedy = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        listed = ", ".join(map(repr, header[:_MOST])) + ", …" * (len(header) > _MOST)
        remedy = f"use one of {listed}"
    if len(header) == 1 and any(mark in header[0] for mark in ",;\t|"):
        remedy += ", or pass another --delimiter"
    return InputError(option, f"no {what} {name!r}", remedy, value=name)


def columns_of(
    texts: Iterable[str], header: Sequence[str], option: str, what: str = "column"
) -> list[str]:
    """Return the columns that texts mean, split at commas, except where a column's name has one.

    Parameters
    ----------
    texts : iterable of str
        As they were typed.
    header, option, what
        As of :func:`column_of`.

    Raises
    ------
    InputError
        As :func:`column_of`.
    """
    names: list[str] = []
    for text in texts:
        names += [text] if text in header else [part.strip() for part in text.split(",")]
    return [column_of(name, header, option, what) for name in names]


def _plain(name: str) -> str:
    return name.strip().casefold()
