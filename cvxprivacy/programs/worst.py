"""A quantity under several laws: minimised, it is the greatest (P26); bounded, each of them is.

That holds under each law by itself, and not under their mixtures: two laws under each of which W is
constant tell nothing about it, and their mixture may tell everything.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cvxprivacy.frozen import FrozenDict
from cvxprivacy.programs.expression import Constraint, Expression, Quantity

__all__ = ["Worst", "each_part", "first_part", "indexed", "parts_of"]


@dataclass(frozen=True, eq=False)
class Worst(Quantity):
    """The greatest of several quantities, each by the name of its law ("" that of the source).

    Sums, multiples and comparisons are those of the parts, law by law.  Where the parts are all
    ``over`` a letter, such as the values w of W, and not each of a law of its own, a quantity is
    the same for all of them.
    """

    parts: Mapping[str, Expression]
    over: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", FrozenDict(self.parts))

    @property
    def name(self) -> str:
        return next(iter(self.parts.values())).name

    @property
    def latex(self) -> str:
        shown = dict.fromkeys(part.latex for part in self.parts.values())
        if self.over:
            return rf"\max_{{{self.over}}} {{{next(iter(shown))}}}"
        return rf"\max\{{{', '.join(shown)}\}}"

    def named(self, name: str, latex: str = "") -> Worst:
        """Return the same quantities under another name; ``latex`` is of that under the source."""
        return self._each(lambda part: part.named(name, latex and part.latex))

    def each(self) -> Worst:
        """Return the values for each output by itself: constraints of it are one per output."""
        return self._each(lambda part: part.each())

    def to_dict(self, lists: dict[int, Any] | None = None) -> dict[str, Any]:
        """Return the data as a proof file stores it."""
        shared: dict[int, Any] = {} if lists is None else lists
        return {"worst": {name: part.to_dict(shared) for name, part in self.parts.items()}}

    # ---- algebra -------------------------------------------------------------------------

    def _each(self, of: Callable[[Expression], Expression]) -> Worst:
        return replace(self, parts={name: of(part) for name, part in self.parts.items()})

    def _paired(self, other: Any, combined: Callable[[Any, Any], Any]) -> Any:
        """Return each part combined with what it meets in another operand, if that has all."""
        mixed = isinstance(other, Expression) and not self.over  # of one law alone
        if mixed or (isinstance(other, Worst) and other.parts.keys() != self.parts.keys()):
            return NotImplemented
        others = other.parts if isinstance(other, Worst) else dict.fromkeys(self.parts, other)
        return {name: combined(part, others[name]) for name, part in self.parts.items()}

    def __add__(self, other: Any) -> Worst:
        parts = self._paired(other, operator.add)
        return parts if parts is NotImplemented else replace(self, parts=parts)

    def __mul__(self, factor: Any) -> Worst:
        return self._each(lambda part: part * factor)

    def __truediv__(self, divisor: Any) -> Worst:
        return self._each(lambda part: part / divisor)

    def __le__(self, bound: Any) -> Mapping[str, Constraint]:
        return self._paired(bound, operator.le)

    def __ge__(self, bound: Any) -> Mapping[str, Constraint]:
        return self._paired(bound, operator.ge)

    def __eq__(self, bound: object) -> Mapping[str, Constraint]:  # type: ignore[override]
        return self._paired(bound, operator.eq)

    __hash__ = None  # type: ignore[assignment]  # equality is a constraint


def parts_of(objective: Expression | Worst) -> Mapping[str, Expression]:
    """Return what is minimised the greatest of, by name; "" where it is one alone."""
    return objective.parts if isinstance(objective, Worst) else {"": objective}


def first_part(objective: Expression | Worst) -> Expression:
    """Return what says in which units a program's value is: its objective, or one of several."""
    return next(iter(parts_of(objective).values()))


def indexed(name: str, law: str) -> str:
    """Return what a quantity or a constraint is called under a law."""
    return f"{name}[{law}]" if law else name


def each_part(quantities: Mapping[str, Any]) -> dict[str, Any]:
    """Return quantities, or what compares them, by name, those under several laws one by one."""
    named = {}
    for name, quantity in quantities.items():
        parts = quantity.parts if isinstance(quantity, Worst) else quantity
        by_law = parts if isinstance(parts, Mapping) else {"": parts}
        named.update({indexed(name, law): part for law, part in by_law.items()})
    return named
