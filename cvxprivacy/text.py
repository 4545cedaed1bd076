"""Text in columns, in which combining marks (the hat of X̂) take no place."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import combining

__all__ = ["aligned", "padded"]


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
