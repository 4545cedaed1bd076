"""Channels and measures as documents hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

INFORMATION = {"kind": "mutual information"}


def listed(numerators: Sequence[Sequence[int]], denominator: int) -> dict[str, Any]:
    """Return the primal of a table of whole numbers over one denominator."""
    return {
        "outputs": [[y for y, k in enumerate(row) if k] for row in numerators],
        "numerators": [[int(k) for k in row if k] for row in numerators],
        "denominator": denominator,
    }


def tabulated(primal: dict[str, Any], m: int) -> list[list[int]]:
    """Return the table of whole numbers that a primal lists."""
    table = [[0] * m for _ in primal["outputs"]]
    for row, *listed in zip(table, primal["outputs"], primal["numerators"], strict=True):
        for y, k in zip(*listed, strict=True):
            row[y] = k
    return table
