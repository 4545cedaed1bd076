"""Values that cannot change: what was proved of one stays true of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, wraps
from numbers import Real
from typing import Any, NoReturn, Self

import numpy as np

__all__ = [
    "Frozen",
    "FrozenDict",
    "FrozenFields",
    "FrozenList",
    "core",
    "equal",
    "frozen",
    "is_owned",
    "owned",
]


class FrozenDict(dict[Any, Any]):
    """A dictionary that cannot be written to; ``dict(…)`` copies it into one that can.

    Parameters
    ----------
    entries : mapping
    remedy : str
        What one who tries to write to it is told to do instead.
    """

    def __init__(self, entries: Any = (), remedy: str = "copy it with dict(…)") -> None:
        super().__init__(entries)
        self._remedy = remedy

    def _refused(self, *arguments: Any, **keywords: Any) -> NoReturn:
        raise TypeError(f"this mapping cannot be written to: {self._remedy}")

    __setitem__ = __delitem__ = _refused
    clear = pop = popitem = setdefault = update = __ior__ = _refused  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return _frozen_dict, (dict(self), self._remedy)

    def copy(self) -> dict[Any, Any]:
        return dict(self)


class FrozenList(list[Any]):
    """A list that cannot be written to; ``list(…)`` copies it into one that can."""

    def _refused(self, *arguments: Any, **keywords: Any) -> NoReturn:
        raise TypeError("this list cannot be written to: copy it with list(…)")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused  # type: ignore[assignment]
    append = extend = insert = remove = pop = clear = sort = reverse = _refused  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return frozen, (list(self),)

    def copy(self) -> list[Any]:
        return list(self)


class Frozen:
    """An object whose attributes are set while it is made, and never again.

    At the end its arrays and containers are exchanged for copies that cannot be written to.
    Properties that are computed when they are first asked for are kept all the same.  Two of one
    class are equal where what they were made of is.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = _sealing(cls.__init__)  # type: ignore[method-assign]

    def __init__(self) -> None:
        if "_depth" not in self.__dict__:  # no subclass has an __init__ of its own
            self._seal()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._seal()  # arrays that were sent or copied can be written to

    def _remedy(self, name: str) -> str:
        return "make another one"

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse(name)
        super().__delattr__(name)

    def _seal(self) -> Self:
        """Allow no change from here on."""
        attributes = self.__dict__
        attributes.update({name: frozen(value) for name, value in attributes.items()}, _sealed=True)
        return self

    def _stored(self) -> dict[str, Any]:
        """Return the attributes, without what was computed from them when it was asked for."""
        kind = type(self)
        return {
            name: value
            for name, value in self.__dict__.items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }

    def _with(self, **changes: Any) -> Self:
        """Return a copy with other attributes, and nothing kept that was computed from them."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self._stored() | changes)
        return twin._seal()

    def _compared(self) -> dict[str, Any]:
        """Return what decides whether two of one class are equal."""
        return self._stored()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Frozen) or type(self) is not type(other):
            return NotImplemented
        return equal(self._compared(), other._compared())

    def __hash__(self) -> int:
        plain = (v for v in self._compared().values() if isinstance(v, str | Real | None))
        return hash((type(self), *plain))

    def _refuse(self, name: str) -> None:
        if self.__dict__.get("_sealed"):
            problem = f"{name!r} of a {type(self).__name__} cannot change: {self._remedy(name)}"
            raise AttributeError(problem)


class FrozenFields:
    """A frozen dataclass, the arrays and containers of which cannot be written to either."""

    def __post_init__(self) -> None:
        self.__setstate__(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: frozen(value) for name, value in state.items()})


def _sealing(made: Callable[..., None]) -> Callable[..., None]:
    """Seal an object at the end of the outermost ``__init__``."""

    @wraps(made)
    def sealed(self: Any, *arguments: Any, **keywords: Any) -> None:
        depth = self.__dict__.get("_depth", 0)
        self.__dict__["_depth"] = depth + 1
        made(self, *arguments, **keywords)
        if depth:
            self.__dict__["_depth"] = depth
        else:
            del self.__dict__["_depth"]
            self._seal()

    return sealed


class Memory:
    """The memory of an array, which NumPy may read, and lets nobody make writable."""

    __slots__ = ("__array_interface__", "_array")

    def __init__(self, array: np.ndarray) -> None:
        layout = array.__array_interface__
        self.__array_interface__ = {**layout, "data": (layout["data"][0], True)}
        self._array = array


def owned(value: np.ndarray) -> np.ndarray:
    """Return an array that was just made here as one that nobody can write to."""
    return value if is_owned(value) else np.asarray(Memory(value))


def is_owned(value: np.ndarray) -> bool:
    """Tell whether an array is one that :func:`owned` returned.

    Of others that cannot be written to, somebody may hold a part that can.
    """
    return isinstance(value.base, Memory)


def core(value: np.ndarray) -> np.ndarray:
    """Return an array without what it repeats: one entry of each axis that has no stride."""
    if all(value.strides):
        return value
    return value[tuple(slice(None) if stride else slice(1) for stride in value.strides)]


def equal(a: Any, b: Any) -> bool:
    """Tell whether two values are of the same numbers and names, arrays and containers by parts."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        alike = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape
        return alike and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if is_dataclass(a) and type(a) is type(b):  # also where == states a constraint
        return all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if hasattr(a, "equals"):  # a frame
        return type(a) is type(b) and bool(a.equals(b))
    return bool(a == b)


def frozen(value: Any) -> Any:
    """Return arrays and containers in copies that cannot be written to, the rest as it is."""
    if isinstance(value, np.ndarray):
        # what is repeated is stored once
        return value if is_owned(value) else owned(np.broadcast_to(core(value).copy(), value.shape))
    if isinstance(value, FrozenDict | FrozenList):
        return value
    if isinstance(value, Mapping):
        return _frozen_dict(value)
    if isinstance(value, list):
        return FrozenList(value if _plain(value) else map(frozen, value))
    if type(value) is tuple:
        return value if _plain(value) else tuple(map(frozen, value))
    if hasattr(value, "to_numpy") and hasattr(value, "copy"):  # a pandas frame
        return value.copy()
    return value


def _frozen_dict(entries: Mapping[Any, Any], *remedy: str) -> FrozenDict:
    return FrozenDict({key: frozen(entry) for key, entry in entries.items()}, *remedy)


def _plain(values: list[Any] | tuple[Any, ...]) -> bool:
    """Tell whether nothing in a list can be written to, without a look at each of a million."""
    return {type(value) for value in values} <= {str, int, float, bool, type(None)}
