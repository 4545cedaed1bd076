"""A dossier as one page of HTML that needs nothing else: made of its facts alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from cvxprivacy.cli.dossier import pictures
from cvxprivacy.cli.dossier.mathematics import mathml
from cvxprivacy.cli.dossier.tables import INFINITE

__all__ = ["html"]

SHOWN = 10  # groups in the table; all are in the picture and in the JSON
_VERDICTS = {True: "May be released", False: "Must not be released", None: "No verdict"}
_MARKS = {True: "✓ holds", False: "✗ BROKEN", None: "not checked"}


def html(facts: Mapping[str, Any]) -> str:
    """Return the page of a dossier.

    Parameters
    ----------
    facts : mapping
        As :mod:`cvxprivacy.cli.dossier.facts` makes them, or as read from the JSON of a report.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters |= {
        "number": number,
        "count": lambda value: "–" if value is None else f"{value:,.0f}",
        "share": lambda value: "–" if value is None else f"{value:.1%}",
        "mathml": mathml,
        "mark": lambda holds: _MARKS[holds],
        "css": css_string,
    }
    source = files("cvxprivacy.cli.dossier").joinpath("dossier.html.j2")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    letters, curve = facts["letters"], facts["tradeoff"]
    return template.render(
        facts=facts,
        stamp=_VERDICTS[facts["verdict"]["may_be_released"]],
        shown=SHOWN,
        letters_picture=letters and pictures.letters_svg(letters),
        curve_picture=curve and pictures.tradeoff_svg(curve),
    )


def number(value: Any, digits: int = 4) -> str:
    """Return a number as people read it; a dash for none."""
    if value is None or value == INFINITE:
        return "–" if value is None else "∞"
    if isinstance(value, int) or value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.{digits}g}"


def css_string(text: str) -> str:
    """Return text as a string of CSS."""
    return '"' + re.sub(r"[^\w .,-]", lambda mark: f"\\{ord(mark[0]):x} ", text) + '"'
