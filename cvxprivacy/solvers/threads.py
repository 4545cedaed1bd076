"""One thread for small dense matrices: on a busy machine many of them wait for each other.

A central path of 0.2 seconds has taken 45 with as many BLAS threads as the machine has cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]

_lock = Lock()
_limits: list[Any] = []  # of whoever came first, as often as there is someone within


@cache
def _pools() -> ThreadpoolController:
    """Return the libraries with threads of their own; to look for them takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread; the first to come limits it, and the last to go restores it."""
    with _lock:
        _limits.append(_limits[0] if _limits else _pools().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()
