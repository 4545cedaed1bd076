"""Values that cannot change: what was proved of one stays true of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

__all__ = ["Frozen", "FrozenDict", "frozen"]


class FrozenDict(dict[Any, Any]):
    """A dictionary that cannot be written to; ``dict(…)`` copies it into one that can."""

    def _refused(self, *given: Any, **named: Any) -> NoReturn:
        raise TypeError("this mapping cannot be written to: copy it with dict(…)")

    __setitem__ = __delitem__ = _refused
    clear = pop = popitem = setdefault = update = __ior__ = _refused  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return type(self), (dict(self),)

    def __repr__(self) -> str:
        return dict.__repr__(self)

    def copy(self) -> dict[Any, Any]:
        return dict(self)


class _Sealing(type):
    """Seals an object once it is made, whatever its ``__init__`` and those it calls."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        self = super().__call__(*given, **named)
        self.__dict__["_sealed"] = True
        return self


class Frozen(metaclass=_Sealing):
    """An object whose attributes are set while it is made, and never again.

    Properties that are computed when they are first asked for are kept all the same.
    """

    def _remedy(self, name: str) -> str:
        return "make another one"

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse(name)
        super().__delattr__(name)

    def _refuse(self, name: str) -> None:
        if self.__dict__.get("_sealed"):
            said = f"{name!r} of a {type(self).__name__} cannot change: {self._remedy(name)}"
            raise AttributeError(said)


def frozen(value: Any) -> Any:
    """Return a copy of arrays and containers that cannot be written to; other things as they are.

    A list becomes a tuple.
    """
    if isinstance(value, np.ndarray):
        if value.flags.writeable or value.base is not None:
            value = value.copy()
            value.flags.writeable = False
        return value
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen(entry) for key, entry in value.items()})
    if isinstance(value, list):
        return tuple(map(frozen, value))
    if type(value) is tuple:
        return tuple(map(frozen, value))
    if hasattr(value, "to_numpy") and hasattr(value, "copy"):  # a pandas frame
        return value.copy()
    return value
