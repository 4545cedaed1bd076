"""Values that remember what they were made of, and can be made again with other numbers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Self

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real
from cvxprivacy.frozen import Frozen, FrozenDict, frozen

__all__ = ["MadeOf", "Restatable"]

MadeOf = tuple[Mapping[str, Any], Mapping[str, Any]]  # arguments, and added constraints, by name


class Restatable(Frozen):
    """What was made of arguments, and of constraints that were added by name."""

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]  # a problem is what it was made of
    _added: Mapping[str, Any] = FrozenDict()  # constraints besides, by name

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        self = super().__new__(cls)
        self._arguments = tuple(map(frozen, arguments)), frozen(named)
        return self

    def __reduce__(self) -> Any:
        arguments, named = self._arguments
        return _made, (self._maker, arguments, dict(named), dict(self._added))

    @property
    def _maker(self) -> Callable[..., Self]:
        """What made the problem of its arguments: its class, or another way into it."""
        return type(self)

    def _remedy(self, name: str) -> str:
        return f"a problem is a value; problem.at({name}=…) returns another one"

    def at(self, **numbers: Real) -> Self:
        """Return the same problem with other numbers typed.

        Parameters
        ----------
        **numbers : float
            By the names of their constraints: ``problem.at(budget=0.2, leakage_cap=0.1)``; of a
            criterion with several numbers as in prices, ``problem.at(**{"both.p": 0.3})``.

        Raises
        ------
        InputError
            If the problem has no such number, or refuses the value.

        Examples
        --------
        >>> import cvxprivacy as cpv
        >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
        >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
        >>> [round(problem.at(budget=d).solve().value, 4) for d in (0.1, 0.2, 0.3)]
        [0.1733, 0.0956, 0.042]
        """
        made_of: MadeOf = self._typed(), self._added
        for name, value in numbers.items():
            made_of = self._retyped(made_of, name, value)
        return self._remade(*made_of)

    def _typed(self) -> dict[str, Any]:
        """Return the arguments that the problem was made of, by name."""
        arguments, named = self._arguments
        return inspect.signature(self._maker).bind(*arguments, **named).arguments

    def _remade(self, arguments: Mapping[str, Any], added: Mapping[str, Any]) -> Self:
        made: Self = _made(self._maker, (), arguments, added)
        return made._stated() if added else made

    def _stated(self) -> Self:
        """Return the problem itself, once all that it states was looked at."""
        return self

    def _retyped(self, made_of: MadeOf, name: str, value: Real) -> MadeOf:
        """Return what a problem is made of with another number of this name."""
        arguments, added = made_of
        if name in arguments or name in inspect.signature(self._maker).parameters:
            return {**arguments, name: value}, added
        part = re.fullmatch(r"(\w+)\[(.+)\]", name)
        if part and isinstance(arguments.get(part[1]), Mapping) and part[2] in arguments[part[1]]:
            return {**arguments, part[1]: {**arguments[part[1]], part[2]: value}}, added
        problem = f"a {type(self).__name__} has no number of this name"
        raise InputError(name, problem, "use the name of one of its constraints")


def _made(
    maker: Callable[..., Any],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    added: Mapping[str, Any],
) -> Any:
    problem = maker(*arguments, **named)
    return problem._with(_added=FrozenDict(added)) if added else problem
