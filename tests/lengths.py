"""Parameters of which only some are tried every time."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest


def rest_at_length(values: Collection[Any], often: int) -> list[Any]:
    """Return parameters of which all but the first ``often`` are for the long suite."""
    always, later = list(values)[:often], list(values)[often:]
    arguments = [value if isinstance(value, tuple) else (value,) for value in later]
    return always + [pytest.param(*each, marks=pytest.mark.long) for each in arguments]
