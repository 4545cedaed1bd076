"""Parameters of which only some are tried every time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_at_length(values: Iterable[Any], often: int) -> list[Any]:
    """Return parameters of which all but the first ``often`` are for the long suite."""
    found = list(values)
    rest = [value if isinstance(value, tuple) else (value,) for value in found[often:]]
    return found[:often] + [pytest.param(*value, marks=pytest.mark.long) for value in rest]
