"""Parameters of which only some are tried every time; the others are for the long suite."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest


def rest_at_length(values: Collection[Any], often: int) -> list[Any]:
    """Return parameters of which the first ``often`` are tried every time."""
    return _marked(values, set(range(often)))


def some_at_length(values: Collection[Any], often: int) -> list[Any]:
    """Return parameters of which ``often``, spread over all of them, are tried every time."""
    return _marked(values, {i * len(values) // often for i in range(often)})


def _marked(values: Collection[Any], always: set[int]) -> list[Any]:
    marked = []
    for i, value in enumerate(values):
        if i in always:
            marked.append(value)
        elif hasattr(value, "marks"):  # of pytest.param
            marked.append(value._replace(marks=(*value.marks, pytest.mark.long)))
        else:
            arguments = value if isinstance(value, tuple) else (value,)
            marked.append(pytest.param(*arguments, marks=pytest.mark.long))
    return marked
