"""Parameters of which only some are tried every time; the others are for the long suite.

Of many seeds most are for campaigns, which are run once a week.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest


def rest_at_length(values: Collection[Any], often: int) -> list[Any]:
    """Return parameters of which the first ``often`` are tried every time."""
    return _marked(values, set(range(often)))


def some_at_length(values: Collection[Any], often: int, long: int | None = None) -> list[Any]:
    """Return parameters of which ``often``, spread over all of them, are tried every time.

    Where there are more than ``long`` of them, the long suite tries about so many, campaigns all.
    """
    if long is not None:
        values = some_weekly(values, long)
    return _marked(values, _spread(values, often))


def some_weekly(values: Collection[Any], often: int) -> list[Any]:
    """Return parameters of a long test, of which ``often`` are tried each time and all weekly."""
    return _marked(values, _spread(values, often), pytest.mark.campaign)


def seeds(number: int, often: int) -> list[Any]:
    """Return seeds: ``often`` are tried every time, twice as many at length, the rest in campaigns.

    Those of each kind are spread over all of them.
    """
    always, long = (_spread(range(number), n) for n in (often, min(3 * often, number)))
    marks = {i: [pytest.mark.long if i in long else pytest.mark.campaign] for i in range(number)}
    return [pytest.param(i, marks=[] if i in always else marks[i]) for i in range(number)]


def _spread(values: Collection[Any], often: int) -> set[int]:
    return {i * len(values) // often for i in range(often)}


def _marked(values: Collection[Any], always: set[int], mark: Any = pytest.mark.long) -> list[Any]:
    marked = []
    for i, value in enumerate(values):
        if i in always:
            marked.append(value)
        elif hasattr(value, "marks"):  # of pytest.param
            marked.append(value._replace(marks=(*value.marks, mark)))
        else:
            arguments = value if isinstance(value, tuple) else (value,)
            marked.append(pytest.param(*arguments, marks=mark))
    return marked
