"""Text in columns, in which combining marks (the hat of X̂) take no place, tables in HTML, names."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from html import escape
from typing import Any
from unicodedata import combining

from cvxprivacy.errors import InputError

__all__ = [
    "SHOWN",
    "above",
    "aligned",
    "brief",
    "cells",
    "facts_html",
    "in_place",
    "matrix_html",
    "named",
    "near",
    "one_sided",
    "padded",
    "plain",
    "sufficient",
    "upwards",
]

SHOWN = 12  # rows and columns of a table in HTML
_SHADE = "0, 114, 178"  # the blue of ``style.BLUE``


def _width(text: str) -> int:
    return sum(not combining(mark) for mark in text)


def padded(text: str, width: int) -> str:
    """Fill up to a width."""
    return text + " " * (width - _width(text))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of equally many cells as lines, two blanks between columns."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(padded(cell, w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def one_sided(number: Decimal, digits: int, *, up: bool) -> Decimal:
    """Return a number to so many digits, rounded up or down."""
    if not number or not number.is_finite():
        return number
    unit = Decimal(1).scaleb(number.adjusted() - digits + 1)
    return number.quantize(unit, ROUND_CEILING if up else ROUND_FLOOR)


def sufficient(value: float, *, up: bool, near: bool = False) -> str:
    """Return a bound to four digits, rounded to where it suffices, as "about" unless that is exact.

    ``near`` tells that the bound itself is only known about.
    """
    number = one_sided(Decimal(value), 4, up=up)
    exact = not near and math.isclose(float(number), value, rel_tol=1e-12)
    return f"{'' if exact else 'about '}{number.normalize():f}"


def plain(value: float, digits: int = 4) -> str:
    """Return a number to so many digits, without an exponent."""
    return f"{Decimal(f'{value:.{digits}g}'):f}"


def upwards(value: float, digits: int = 4) -> str:
    """Return a bound from above to so many digits, rounded up."""
    return f"{float(one_sided(Decimal(repr(float(value))), digits, up=True)):.{digits}g}"


def above(number: float) -> str:
    """Return a number to as few digits as are not below it, six at least."""
    texts = (f"{number:.{digits}g}" for digits in range(6, 18))
    return next(text for text in texts if float(text) >= number)


def in_place(text: str, number: str, name: str) -> str:
    """Return a text with a name in the place of the last number that is written so."""
    *before, last = re.split(rf"(?<![\w.]){re.escape(number)}(?![\w.])", text)
    return number.join(before) + name + last if before else text


def brief(labels: Sequence[Any], most: int = 6) -> str:
    """Return the first of some labels as text."""
    text = ", ".join(map(_label, labels[:most]))
    return f"{text}, …" if len(labels) > most else text


def _label(label: Any) -> str:
    if isinstance(label, tuple):
        return ", ".join(map(_label, label))
    return f"{label:.4g}" if isinstance(label, float) else str(label)


def cells(names: Sequence[str]) -> str:
    """Return names as a phrase: age, sex and race; empty of none."""
    *most, last = names or [""]
    return f"{', '.join(most)} and {last}" if most else last


def facts_html(title: str, rows: Iterable[tuple[str, str]], after: str = "") -> str:
    """Return a table of names and texts under a title; ``after`` is HTML as it is."""
    left = "style='text-align:left'"
    body = "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(text)}</td></tr>"
        for name, text in rows
    )
    return f"<div><b>{escape(title)}</b><table>{body}</table>{after}</div>"


def matrix_html(
    title: str,
    matrix: Any,
    rows: Sequence[Any],
    columns: Sequence[Any],
    *,
    corner: str = "",
    shaded: bool = True,
) -> str:
    """Return a matrix with its labels, the first rows and columns of a large one.

    Parameters
    ----------
    matrix : ndarray
        Numbers from 0 to 1 where ``shaded``; the rows that are shown are enough.
    """
    high, wide = min(len(rows), SHOWN), min(len(columns), SHOWN)
    cell = "padding:0.15em 0.5em;text-align:right"

    def shade(p: float) -> str:
        """Return what a cell looks like, the darker the greater."""
        if not shaded:
            return cell
        background = f"{cell};background-color:rgba({_SHADE}, {min(max(p, 0.0), 1.0):.2f})"
        return background + ";color:white" * (p > 0.55)

    head = "".join(f"<th style='{cell}'>{escape(_label(y))}</th>" for y in columns[:wide])
    body = "".join(
        f"<tr><th>{escape(_label(rows[i]))}</th>"
        + "".join(f"<td style='{shade(p)}'>{p:{'.3f' if shaded else '.4g'}}</td>" for p in numbers)
        + "</tr>"
        for i, numbers in enumerate(matrix[:high, :wide].tolist())
    )
    cut = [
        f"{shown} of {len(labels):,} {what}"
        for shown, labels, what in ((high, rows, "rows"), (wide, columns, "columns"))
        if shown < len(labels)
    ]
    caption = ": ".join(filter(None, (corner, ", ".join(cut))))
    note = f"<div><small>{escape(caption)}</small></div>" if caption else ""
    table = f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><b>{escape(title)}</b>{note}{table}</div>"


def named(
    value: Any, argument: str, names: Mapping[str, Sequence[str]], what: str, where: Any = None
) -> str:
    """Return the name that a text means, whatever its case, hyphens, underscores and blanks.

    Parameters
    ----------
    names : mapping of str to sequence of str
        What else each name is called.
    what : str
        What they are names of.

    Examples
    --------
    >>> named("TV", "kind", {"total-variation": ("tv",)}, "measure")
    'total-variation'
    """
    called = {_bare(alias): name for name, also in names.items() for alias in (name, *also)}
    if isinstance(value, str) and _bare(value) in called:
        return called[_bare(value)]
    close = near(value, called) if isinstance(value, str) else []
    remedy = f"did you mean {called[close[0]]!r}?" if close else f"use one of {', '.join(names)}"
    raise InputError(argument, f"{value!r} is no {what}", remedy, where=where, value=value)


def near(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that are spelled almost so, the nearest first.

    Examples
    --------
    >>> near("incom", ["age", "Income"])
    ['Income']
    """
    spelled: dict[str, str] = {}
    for other in names:
        spelled.setdefault(_bare(other), other)
    return [spelled[text] for text in difflib.get_close_matches(_bare(name), spelled, cutoff=0.7)]


def _bare(name: str) -> str:
    """Return a name without what spellings of it differ in."""
    return "".join(name.casefold().replace("-", " ").replace("_", " ").split())
