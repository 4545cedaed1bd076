"""Labels of letters as JSON holds them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from cvxprivacy.errors import InputError

__all__ = ["read", "written"]


def written(label: Any) -> Any:
    """Return a label for JSON: a tuple as a list, a date as ``{"date": "2026-11-21"}``.

    Raises
    ------
    InputError
        For a label that JSON cannot hold.
    """
    if isinstance(label, tuple):
        return [written(part) for part in label]
    if isinstance(label, datetime):
        return {"datetime": label.isoformat()}
    if isinstance(label, date):
        return {"date": label.isoformat()}
    if label is None or isinstance(label, str | bool | int | float):
        return label
    problem = f"the label {label!r} is a {type(label).__name__}"
    raise InputError("labels", problem, "use text, numbers or dates in the table", value=label)


def read(label: Any) -> Any:
    """Return what :func:`written` was given."""
    if isinstance(label, dict):
        ((kind, text),) = label.items()
        return {"datetime": datetime, "date": date}[kind].fromisoformat(text)
    return tuple(read(part) for part in label) if isinstance(label, list) else label
