"""The numbers of a method: one frozen class for each, in the method's own file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Self, dataclass_transform

from cvxprivacy.errors import InputError
from cvxprivacy.validation import integer, number

__all__ = ["Settings", "using"]

_passed: ContextVar[Mapping[type, Any]] = ContextVar("settings", default=MappingProxyType({}))


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Settings:
    """Base class: subclasses are frozen dataclasses, whose fields are checked by their defaults.

    A count is a whole number of at least 1; a share, whose default is below 1, is between 0 and 1;
    any other number is positive.
    """

    _usual: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        cls._usual = dataclass(frozen=True, kw_only=True)(cls)()

    def __post_init__(self: Any) -> None:
        for field in fields(self):
            usual: Any = field.default
            value = getattr(self, field.name)
            if isinstance(usual, int):
                value = integer(value, field.name, least=1)
            else:
                below = 1.0 if usual < 1 else math.inf
                value = number(value, field.name, zero=False, below=below)
            object.__setattr__(self, field.name, value)

    @classmethod
    def current(cls) -> Self:
        """Return what the solve that is under way was passed, or the defaults."""
        settings: Self = _passed.get().get(cls, cls._usual)
        return settings


@contextmanager
def using(settings: Settings | Iterable[Settings]) -> Iterator[None]:
    """Let methods read these settings, of each class the last."""
    passed = dict(_passed.get())
    for one in settings if isinstance(settings, Iterable) else [settings]:
        if not isinstance(one, Settings):
            remedy = "pass one or several of cvxprivacy.settings"
            raise InputError("settings", f"a {type(one).__name__}", remedy, value=one)
        passed[type(one)] = one
    token = _passed.set(passed)
    try:
        yield
    finally:
        _passed.reset(token)
