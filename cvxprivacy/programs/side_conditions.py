"""What a release must satisfy besides constraints: bounded auxiliaries and entry bounds.

=============  =============================================  ====================================
``ratio``      a_y ≤ K(s, y) ≤ e^ε a_y for some a             local differential privacy
``maximum``    K(s, y) ≤ u_y, Σ u_y ≤ e^b for some u          maximal leakage
``excess``     Σ_s a(s) p(s) K(s, y) ≤ b_y + u_y, Σ u_y ≤ t   total variation of the marginal from b
               for some u ≥ 0
=============  =============================================  ====================================

Their multipliers, and what those add to the dual, are in (P23), (P24) and (P25).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, floats, listed, written
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.latex_symbols import tex
from cvxprivacy.programs.parameter import Scalar, Symbol

__all__ = ["Auxiliary", "EntryBounds", "Excess", "Rule", "renamed"]


@dataclass(frozen=True, eq=False)
class Auxiliary(FrozenFields):
    """A bounded auxiliary: ``ratio`` with factor e^ε, or ``maximum`` with total e^b.

    ``bound`` is that exponential as a float, within ``radius`` of the number meant;
    ``derivatives`` are d bound by each function of a number that was typed; ``latex`` is how that
    is written.  Those in ``moving`` do not move the bound, but the left side, as that says.
    """

    kind: Literal["ratio", "maximum", "excess"]
    bound: Any
    radius: float = 0.0
    derivatives: Mapping[Symbol, float] = field(default_factory=dict)
    latex: str = ""
    moving: Mapping[Symbol, FloatArray] = field(default_factory=dict)

    @property
    def of_law(self) -> bool:
        """Whether it is of a law, and not of the channel alone."""
        return False

    @classmethod
    def of(cls, kind: Literal["ratio", "maximum"], bound: Scalar, latex: str = "") -> Auxiliary:
        """Return it with a number ≥ 1; its least is not below 1, as a constant's is.

        Raises
        ------
        InputError
            For a number below 1, which no channel satisfies, or beyond all floats.
        """
        value, radius = bound.enclosure
        low, high = value - radius, value + radius
        if not 1 <= high <= sys.float_info.max:
            symbol = next(iter(bound.slopes), Symbol("bound", typed=bound.number))
            below = f"no channel has a {kind} below 1"
            problem = below if high < 1 else "beyond the greatest float"
            remedy = f"pass a number that bounds the {kind} by 1 or more"
            raise InputError(symbol.name, problem, remedy, value=symbol.typed)
        if low < 1 + 2.0**-52 and high > 1:  # where floats cannot tell it from 1
            near = math.nextafter(float(high), math.inf)
            return cls(kind, near, near - 1.0, bound.slopes, latex)
        near = float(value)
        off = radius + abs(value - Fraction(near))
        outwards = (
            float(off) if Fraction(float(off)) >= off else math.nextafter(float(off), math.inf)
        )
        return cls(kind, near, outwards, bound.slopes, latex)

    @property
    def written(self) -> str:
        """``bound`` in LaTeX."""
        return self.latex or tex(float(self.bound))

    def shapes(self, n: int, m: int) -> list[tuple[int, ...]]:
        """Return the shapes of its multipliers: (μ, η) of a ratio, (μ,) of the others."""
        return [(n, m), (n, m)] if self.kind == "ratio" else [(n, m)]

    def in_bound(self, symbol: Symbol) -> bool:
        """Tell whether a number moves the bound alone, in which the optimum is convex."""
        return self.kind != "ratio" and symbol not in self.moving

    def marginal(
        self, symbol: Symbol, duals: Sequence[FloatArray], mass: FloatArray, channel: FloatArray
    ) -> float:
        """Return d value / d what a number moves; −inf at ratio or total 1, the least there is."""
        if self.bound == 1.0 and not self.radius:
            return -math.inf
        last = mass[:, None] * np.asarray(duals[-1], float)
        if self.kind == "ratio":
            return -float((last.sum(axis=0) * channel.min(axis=0)).sum())
        return -float(last.sum(axis=0).max())

    def to_dict(self) -> dict[str, Any]:
        """Return the data as a proof file stores it."""
        return {"kind": self.kind, "bound": [written(self.bound), written(self.radius)]}


@dataclass(frozen=True, eq=False, kw_only=True)
class Excess(Auxiliary):
    """The ``excess`` of a marginal above its levels, t in all, of which ``bound`` is the number.

    ``share`` is a, shape (n,), and ``levels`` is b, shape (m,), both exact.  Of one letter above
    e^ε times another, ``pair`` has the places of both, and ``moving`` is d a by e^ε.
    """

    kind: Literal["ratio", "maximum", "excess"] = "excess"
    share: Exact
    levels: Exact
    pair: tuple[int, int] | None = None

    @classmethod
    def above(cls, levels: Exact, share: Exact, bound: Scalar) -> Excess:
        """Return one by which a marginal may exceed its levels in all."""
        value, radius = bound.enclosure
        options: dict[str, Any] = {"radius": float(radius), "derivatives": bound.slopes}
        return cls(bound=value, share=share, levels=levels, **options)

    def exceeded(self, mass: FloatArray, channel: FloatArray) -> FloatArray:
        """Return what each output has above its level, in floats."""
        return (floats(self.share) * mass) @ channel - floats(self.levels)

    @property
    def of_law(self) -> bool:
        return self.pair is None

    def shapes(self, n: int, m: int) -> list[tuple[int, ...]]:
        return [(m,)]

    def marginal(
        self, symbol: Symbol, duals: Sequence[FloatArray], mass: FloatArray, channel: FloatArray
    ) -> float:
        if self.in_bound(symbol):
            return -float(np.max(duals[0]))
        return float((self.moving[symbol] * mass) @ (channel @ duals[0]))

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "share": listed(self.share), "levels": listed(self.levels)}


@dataclass(frozen=True, eq=False)
class EntryBounds(FrozenFields):
    """Bounds (n, m) on the channel's entries.

    ``derivatives`` are d lower by each number that was typed; where that is a vector, ``entry``
    says which of its entries bounds each row.
    """

    lower: Exact | None = None
    upper: Exact | None = None
    of_law: ClassVar[bool] = False
    derivatives: Mapping[Symbol, FloatArray] = field(default_factory=dict)
    entry: npt.NDArray[np.int64] | None = None


Rule = Constraint | Auxiliary | EntryBounds


def renamed(rule: Rule, names: Mapping[str, str]) -> Rule:
    """Return a rule with other names of the numbers that were typed."""
    if not rule.derivatives:
        return rule

    def named(slopes: Mapping[Symbol, Any]) -> Any:
        return {replace(s, name=names.get(s.name, s.name)): slope for s, slope in slopes.items()}

    changes: dict[str, Any] = {"derivatives": named(rule.derivatives)}
    if isinstance(rule, Auxiliary):
        changes["moving"] = named(rule.moving)
    return replace(rule, **changes)
