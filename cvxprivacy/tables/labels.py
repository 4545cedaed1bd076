"""Labels of letters as JSON holds them, and as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError

__all__ = ["as_label", "printable", "read", "shown", "written"]


def as_label(values: Sequence[Any]) -> Any:
    """Return one value as it is, several as a tuple: what labels a letter."""
    return values[0] if len(values) == 1 else tuple(values)


def written(label: Any, *, lenient: bool = False) -> Any:
    """Return a label for JSON: a tuple as a list, a date as ``{"date": "2026-11-21"}``.

    Parameters
    ----------
    lenient : bool
        Write a label that JSON cannot hold as text, which :func:`read` refuses.

    Raises
    ------
    InputError
        For a label that JSON cannot hold.
    """
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [written(part, lenient=lenient) for part in label]
    if isinstance(label, datetime) and datetime.fromisoformat(label.isoformat()[:26]) == label:
        return {"datetime": label.isoformat()}
    if isinstance(label, date) and not isinstance(label, datetime):
        return {"date": label.isoformat()}
    if isinstance(label, float) and not math.isfinite(label):
        return {"float": repr(label)}
    if isinstance(label, str):
        kept = label.encode("utf-8", "replace").decode() == label  # half a surrogate pair is not
        if kept:
            return label
    elif label is None or isinstance(label, bool | int | float):
        return label
    if lenient:
        return {"other": repr(label)}
    problem = f"the label {label!r} is a {type(label).__name__}"
    raise InputError("labels", problem, "use text, numbers or dates in the table", value=label)


def read(label: Any) -> Any:
    """Return what :func:`written` was given."""
    if isinstance(label, dict):
        ((kind, text),) = label.items()
        readers: dict[str, Callable[[str], Any]] = {"float": float}
        readers |= {"datetime": datetime.fromisoformat, "date": date.fromisoformat}
        return readers[kind](text)
    return tuple(read(part) for part in label) if isinstance(label, list) else label


def shown(letter: Any) -> str:
    """Return a letter as people read it."""
    if isinstance(letter, tuple):
        return f"({', '.join(map(shown, letter))})"
    return "missing" if letter is None else printable(str(letter))


def printable(text: str) -> str:
    """Return text in which no character commands a terminal: those are escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
