"""What a program minimises: one term, or the greatest of several.

Needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["parts_of"]


def parts_of(objective: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the terms of which the greatest is minimised, by name; "" where it is one alone."""
    # both kinds as one: a single term is the greatest of itself (P26)
    if set(objective) != {"worst"}:
        return {"": objective}
    parts = objective["worst"]
    if not isinstance(parts, dict) or not parts:
        raise ValueError("the worst of nothing")
    return parts
