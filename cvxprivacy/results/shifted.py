"""Prices of numbers that programs nearby must be solved for: floors, equalities, and weights.

The optimum is convex in a floor of entries and in the right-hand side of an equality, and concave
in a number that weighs a part of the objective.  With proved ends L ≤ V(θ) ≤ U at θ and at θ ± h
the difference quotients enclose its slopes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.exact import fractions
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.programs.side_conditions import EntryBounds, Rule
from cvxprivacy.results.neighbours import solved
from cvxprivacy.results.price import Kind, Price, useful

__all__ = ["Shifted"]

_SHARES = (1e-3, 1e-2, 1e-5)  # of the number, to both sides


class Shifted:
    """A number typed, and the program with another one in its place.

    Parameters
    ----------
    rules : mapping
        What the program was compiled from.
    name : str
        Of the number.
    """

    def __init__(
        self, program: ChannelProgram, rules: Mapping[str, Mapping[str, Rule]], name: str
    ) -> None:
        self.program = program
        self.rules = {key: rule for group in rules.values() for key, rule in group.items()}
        places: list[Any] = [*self.rules.values(), *program.objectives.values()]
        self.places = [p for p in places if any(s.name == name for s in p.derivatives)]
        symbols = {s for p in self.places for s in p.derivatives if s.name == name}
        self.symbol: Symbol | None = symbols.pop() if len(symbols) == 1 else None

    @property
    def _bends(self) -> int:
        """1 where the optimum is convex in it, −1 where it is concave, 0 where neither is known."""
        if self.symbol is None or np.ndim(self.symbol.typed):
            return 0
        if all(isinstance(place, Expression) for place in self.places):
            return -1 if len(self.program.objectives) == 1 else 0
        return 1 if all(map(self._is_bound, self.places)) else 0

    def _is_bound(self, place: Any) -> bool:
        if isinstance(place, EntryBounds):
            return place.lower is not None and place.entry is None
        if not isinstance(place, Constraint):
            return False
        derivative = place.derivatives[self.symbol]  # type: ignore[index]  # there is one
        return not derivative.weights and derivative.cost is None

    def price(self, multiplier: float, unit: float) -> Price:
        """Return the price with the ends that difference quotients prove.

        ``unit`` is what is 1 of the optimum.
        """
        bends, low, high = self._bends, -math.inf, math.inf
        if bends:
            assert self.symbol is not None
            unit = unit / (abs(float(self.symbol.value)) or 1.0)
            for low, high in self._ends(bends):
                if useful(low, high, unit):
                    break
        kind: Kind = "not determined" if bends else "not proved"
        if bends and useful(low, high, unit):
            kind = "two-sided"
        elif math.isinf(multiplier) and self._is_full():
            kind = "one-sided"
        slope = 1.0 if self.symbol is None else self.symbol.slope
        low, high = sorted((low * slope, high * slope)) if bends else (low, high)
        return Price(multiplier, low, high, kind)

    def _is_full(self) -> bool:
        """Tell whether floors leave some row no room, so that none of its entries may have more."""
        full = (
            (fractions(rule.lower).sum(axis=1) >= 1)
            & (np.asarray(rule.derivatives[symbol]) > 0).any(axis=1)
            for rule in self.places
            for symbol in rule.derivatives
            if isinstance(rule, EntryBounds) and rule.lower is not None
        )
        return any(rows.any() for rows in full)

    def _ends(self, bends: int) -> Iterator[tuple[float, float]]:
        """Yield better and better ends of the slopes by what the program is affine in."""
        low, high = -math.inf, math.inf
        here = solved(self.program)
        assert self.symbol is not None
        size = abs(float(self.symbol.value)) or 1.0
        for step in (Fraction(share * size) for share in _SHARES):
            for side in (-1, 1):
                moved = self._at(side * step)
                if moved is None:
                    continue
                there = solved(moved)
                if there.primal is None or there.dual is None:
                    continue
                ends = (here.lower, there.upper) if bends > 0 else (here.upper, there.lower)
                quotient = (ends[1] - ends[0]) / float(step) * side
                room = 1e-15 * abs(quotient) + 1e-300  # of the roundings of a few floats
                if bends * side > 0:
                    high = min(high, quotient + room)
                else:
                    low = max(low, quotient - room)
            yield low, high

    def _at(self, step: Fraction) -> ChannelProgram | None:
        """Return the program with this much more of what it is affine in; None if it has none."""
        program, symbol = self.program, self.symbol
        assert symbol is not None
        rows = dict(program.constraints)
        for name, rule in self.rules.items():
            if isinstance(rule, Constraint) and symbol in rule.derivatives:
                rows[name] = _moved(rule, rule.derivatives[symbol], step)
        lowers = [self._floors(r, step) for r in self.rules.values() if isinstance(r, EntryBounds)]
        lowers = [lower for lower in lowers if lower is not None]
        objective = program.objective
        if isinstance(objective, Expression) and symbol in objective.derivatives:
            objective = objective + objective.derivatives[symbol] * step
        lower = np.maximum.reduce(lowers) if lowers else program.lower
        most = 1 if program.upper is None else program.upper
        if lower is not None and (lower > most).any():
            return None
        return replace(
            program,
            constraints=rows,
            lower=lower,
            objective=objective,
        )

    def _floors(self, rule: EntryBounds, step: Fraction) -> Any:
        slope = None if self.symbol is None else rule.derivatives.get(self.symbol)
        if rule.lower is None or slope is None:
            return rule.lower
        floors: Any = fractions(rule.lower) + fractions(slope) * step
        floors[floors < 0] = Fraction(0)
        return floors


def _moved(rule: Constraint, derivative: Expression, step: Fraction) -> Constraint:
    more = -Fraction(derivative.constant) * step
    bound: Any = rule.bound
    each = isinstance(bound, tuple)
    return replace(rule, bound=tuple(b + more for b in bound) if each else bound + more)
