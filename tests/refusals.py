"""Refusals by argument, value and place; wording only where the remedy has to name something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cvxprivacy as cpv

UNSAID = object()


def refused(
    call: Callable[[], Any], argument: str, *pieces: str, value: Any = UNSAID, where: Any = None
) -> cpv.InputError:
    """Assert that ``call`` raises an InputError about ``argument``, and return it."""
    with pytest.raises(cpv.InputError) as caught:
        call()
    error, text = caught.value, str(caught.value)
    assert isinstance(error, ValueError)
    assert error.argument == argument, text
    assert text.startswith(argument)
    assert error.where == where, text
    if value is not UNSAID:  # as it was typed, or at least in so many words
        assert repr(value) in (repr(error.value), repr(value) if repr(value) in text else ""), text
    for piece in (*pieces, error.remedy):
        assert piece in text
    assert "np." not in text
    assert len(error.remedy) > 4
    return error
