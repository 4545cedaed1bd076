"""Prices: d value / d (number typed), from multipliers, and what chords prove of them.

The multipliers' prices are ∂f/∂θ + Σ_j λ_j ∂g_j/∂θ.  They are worth what the multipliers are, which
an optimum certified to within 1e-6 says little of where the bound itself is 1e-9.  Of a number that
is the bound of constraints, the optimum is convex in it (P27), and
:mod:`~cvxprivacy.results.chords` prove ends of its slopes (C17).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram, Matrix
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds
from cvxprivacy.results.chords import Chords
from cvxprivacy.results.neighbours import (
    FEW,
    LEAST,
    MANY,
    is_edge,
    is_least,
    near_channels,
    rescored,
    solved,
    solved_nearby,
    span_of,
    trivial,
)
from cvxprivacy.results.price import NEGLIGIBLE, SHARP, Kind, Price, useful
from cvxprivacy.results.shifted import Shifted
from cvxprivacy_verifier import verify

__all__ = ["ChannelPrices", "Moving", "constants", "enclosed", "moving"]

# Of the bound, by which neighbours have less or more room: the best step (C18) depends on a
# curvature that is not known, and a chord of any is sound.
_SHARES = (0.1, 1e-2, 1e-4, 1.0)
_STEPS = (1e-6, 1e-4, 1e-2)  # of the row's span, by which they have more
_NEAR = Fraction(1, 1024)  # of a number, to which a mean slope is taken
_LEAST = Fraction(1, 2**20)  # that far, where ends are too wide for less
_ROOM, _ZERO = 0.01, 1e-6  # share, and part of a unit, by which that may be another one


class Moving:
    """A number typed that is the right-hand side of some bounds, and of nothing else.

    Attributes
    ----------
    rates : dict of str to Fraction
        By how much each bound rises per unit of room.
    factor : float
        d room / d (number typed): negative where a greater number leaves less room.
    """

    def __init__(self, rates: Mapping[str, Fraction], factor: float) -> None:
        self.rates, self.factor = dict(rates), factor


def moving(name: str, places: Iterable[tuple[str, Any]]) -> Moving | None:
    """Return how a number moves bounds, or None where it does anything else.

    Parameters
    ----------
    places : iterable of (str, derivatives)
        Of each rule ``≤`` its name and how its left side less its bound depends on what was typed;
        under "" what else depends on it.
    """
    rates: dict[str, Fraction] = {}
    symbols: set[Symbol] = set()
    for key, derivatives in places:
        for symbol, slope in derivatives.items():
            if symbol.name != name:
                continue
            if not key or slope is None:
                return None
            symbols.add(symbol)
            rates[key] = -slope
    if len(symbols) != 1 or not all(rates.values()):
        return None
    (symbol,) = symbols
    signs = {rate > 0 for rate in rates.values()}
    if np.ndim(symbol.typed) or len(signs) != 1:
        return None
    sign = 1 if signs.pop() else -1
    return Moving({key: abs(rate) for key, rate in rates.items()}, sign * symbol.slope)


def enclosed(
    multiplier: float, ends: tuple[float, float], factor: float, unit: float, least: bool
) -> Price:
    """Return the price of a number from the ends of V' by the room that it leaves."""
    low, high = sorted(0.0 if end == 0 else end * factor for end in ends)
    for _ in range(4):  # the factor is a float, and so is the product
        low = math.nextafter(low, -math.inf) if low else low
        high = math.nextafter(high, math.inf) if high else high
    if least:
        ends = (-math.inf, high) if factor > 0 else (low, math.inf)
        return Price(multiplier, *ends, "one-sided")
    kind: Any = "two-sided" if useful(low, high, unit * abs(factor)) else "not determined"
    return Price(multiplier, low, high, kind)


class ChannelPrices:
    """The prices of a channel program's numbers: those of its multipliers, and proved ones.

    Parameters
    ----------
    edges : collection of str
        Rows whose bounds a solver took for the least that is feasible.
    nearby : bool
        Whether programs nearby may be solved: not where this one was broken off.
    restated : callable, optional
        Returns the problem with another number of this name.
    """

    def __init__(
        self,
        program: ChannelProgram,
        rules: Rules,
        primal: Any,
        dual: Dual,
        edges: Collection[str] = (),
        nearby: bool = True,
        restated: Callable[..., Any] | None = None,
    ) -> None:
        self.program, self.rules, self.primal, self.dual = program, rules, primal, dual
        self.upper, self.edges = program.attained(primal.matrix), tuple(edges)
        self.settled, self.restated = nearby, restated
        self.nearby = nearby and program.n**2 * program.m <= FEW

    def by_multipliers(self) -> dict[str, Any]:
        """Return what the multipliers say, whatever they are worth."""
        floors = None
        if self.program.lower is not None:
            g, _ = self.dual.minorant(self.program)
            floors = np.maximum(g - self.program.least(g)[1][:, None], 0.0)
        edges = [name for name in self.edges if is_edge(self.program, name)]
        return _amounts(self.program, self.rules, self.primal.matrix, self.dual, floors, edges)

    @np.errstate(all="ignore")  # what is no number proves nothing
    def proved(self) -> dict[str, Any]:
        """Return the prices with the ends that are proved of them."""
        prices = self.by_multipliers()
        large = not self.program.dense or self.program.n * self.program.m > MANY
        proof = None if large else verify.proof_of(self.program.to_dict())
        for name, amount in prices.items():
            if np.ndim(amount):
                continue
            of = moving(name, self._places())
            if of is not None and proof is not None:
                prices[name] = self._proved(amount, of, Chords(proof, of.rates))
            elif self.nearby:
                unit = float(verify.proof_of(self.program.to_dict()).unit(self.upper))
                price = Shifted(self.program, self.rules, name).price(amount, unit)
                if price.kind == "not proved" and not self._confirmed(name, amount, unit):
                    price = Price(amount, -math.inf, math.inf, "not determined")
                prices[name] = price
            else:  # too large, or broken off before multipliers were any good
                kind: Kind = "not proved" if self.settled else "not determined"
                prices[name] = Price(amount, -math.inf, math.inf, kind)
        return prices

    def _confirmed(self, name: str, amount: float, unit: float) -> bool:
        """Tell whether what multipliers say is the mean slope to numbers next to this one.

        That proves nothing of a derivative, where no convexity is known; but multipliers that are
        wrong are found out.
        """
        typed = self._typed(name)
        if self.restated is None or typed is None or math.isinf(amount):
            return True
        here, number = solved(self.program), Fraction(typed)
        off = max(_ROOM * abs(amount), _ZERO * unit / max(abs(float(number)), 1.0))
        for step in filter(None, dict.fromkeys((number * _NEAR, max(number * _NEAR, _LEAST)))):
            ends, apart = [], math.inf
            for moved in (number + step, number - step):
                try:
                    there = solved(self.restated(**{name: moved}).program)
                except InputError:  # more or less than may be typed
                    continue
                rises = sorted((there.lower - here.upper, there.upper - here.lower))
                ends += [rise / float(moved - number) for rise in rises]
                apart = min(apart, (rises[1] - rises[0]) / float(step))
            if apart <= off:
                return all(abs(end - amount) <= off for end in ends)
        return False

    def _typed(self, name: str) -> Any:
        """Return the one number that was typed for a name, or None."""
        rules = [rule for group in self.rules.values() for rule in group.values()]
        places: list[Any] = [*rules, *self.program.objectives.values()]
        numbers = {s.typed for p in places for s in p.derivatives if s.name == name}
        return numbers.pop() if len(numbers) == 1 and not np.ndim(next(iter(numbers))) else None

    def _places(self) -> Iterable[tuple[str, Any]]:
        for group in self.rules.values():
            for name, rule in group.items():
                if isinstance(rule, Constraint):
                    bound = rule.sense == "<="
                    yield name if bound else "", constants(rule.derivatives)
                elif isinstance(rule, Auxiliary):
                    slopes = {s: -Fraction(slope) for s, slope in rule.derivatives.items()}
                    yield name, {s: slope for s, slope in slopes.items() if rule.in_bound(s)}
                    yield "", dict.fromkeys(s for s in slopes if not rule.in_bound(s))
                else:
                    yield "", dict.fromkeys(rule.derivatives)
        for part in self.program.objectives.values():
            yield "", dict.fromkeys(part.derivatives)

    def _proved(self, amount: float, of: Moving, chords: Chords) -> Price:
        program, name = self.program, next(iter(of.rates))
        unit = self._unit(of, chords)
        points = [self.primal.matrix]
        chords.take_dual(self.dual)
        chords.take_primal(self.primal)
        for exact in near_channels(program, self.primal.matrix, of.rates):
            if chords.take_primal(exact):
                points.append(exact.matrix)
            if useful(*chords.ends, unit, SHARP):
                break
        if not useful(*chords.ends, unit):
            for dual in rescored(program, self.dual, [points[0], *points[-3:]], name):
                chords.take_dual(dual)
        least = is_least(program, chords, name)
        if self.nearby and not useful(*chords.ends, unit):
            rooms = _rooms(program, of.rates)
            self._solve_nearby(of, chords, unit, rooms[-2:] if least else rooms)
        if math.isinf(amount) and not least:  # a solver took the bound for the least
            low, high = sorted(end * of.factor for end in chords.ends)
            amount = min(max(amount, low), high)
        return enclosed(amount, chords.ends, of.factor, unit, least)

    def _solve_nearby(
        self, of: Moving, chords: Chords, unit: float, rooms: Iterable[float]
    ) -> None:
        program, name = self.program, next(iter(of.rates))
        for room in rooms:
            if (near := solved_nearby(program, of.rates, room)) is None:
                continue
            primal, dual = near
            chords.take_primal(primal)
            for each in rescored(program, dual, [primal.matrix, self.primal.matrix], name):
                chords.take_dual(each)
            if useful(*chords.ends, unit):
                return

    def _unit(self, of: Moving, chords: Chords) -> float:
        """Return what a price of 1 is where value and bounds move by all that they can.

        The value by no more than it is worth at releases that cost or tell least.
        """
        program, unit = self.program, float(chords.proof.unit(self.upper))
        spans = [
            span_of(program, program.constraints[name].expression) / float(rate)
            for name, rate in of.rates.items()
            if name in program.constraints
        ]
        values = [self.upper, *map(program.attained, trivial(program, of.rates))]
        unit = min(unit, max(float(np.ptp(values)), NEGLIGIBLE * unit))
        return unit / min(spans, default=1.0)


def _rooms(program: ChannelProgram, rates: Mapping[str, Fraction]) -> list[float]:
    """Return by how much neighbours have less room or more: of the bound, and of its span."""
    name, rate = next(iter(rates.items()))
    if (aux := program.auxiliaries.get(name)) is not None:
        bound = (float(aux.bound) - LEAST.get(aux.kind, 0.0)) / float(rate)
        rooms = [_STEPS[-1] / float(rate)]  # along which optima are mostly straight
        rooms += [side * share * bound for share in _SHARES if share < 1 for side in (-1, 1)]
        return [room for room in (*rooms, *(step / float(rate) for step in _STEPS[-2::-1])) if room]
    row = program.constraints[name]
    bound = float(np.max(np.abs(row.bounds(program.m)))) / float(rate)
    span = span_of(program, row.expression) / float(rate)
    rooms = [side * share * bound for share in _SHARES for side in (-1, 1)]
    return [room for room in (*rooms, *(step * span for step in reversed(_STEPS))) if room]


def constants(derivatives: Mapping[Symbol, Any]) -> dict[Symbol, Fraction | None]:
    """Return derivatives that are numbers, and None for those that are quantities of a release."""
    return {
        symbol: None if d.weights or d.cost is not None else Fraction(d.constant)
        for symbol, d in derivatives.items()
    }


def _amounts(
    program: ChannelProgram,
    rules: Rules,
    channel: Matrix,
    dual: Dual,
    floors: FloatArray | None,
    edges: Collection[str],
) -> dict[str, Any]:
    """Return ∂f/∂θ + Σ_j λ_j ∂g_j/∂θ of every number typed."""
    amounts: dict[str, Any] = {}

    def add(symbol: Symbol, marginal: Any) -> None:
        amounts[symbol.name] = amounts.get(symbol.name, 0.0) + symbol.slope * marginal

    for name, rule in ((k, r) for group in rules.values() for k, r in group.items()):
        derivative: Any
        for symbol, derivative in rule.derivatives.items():
            if isinstance(rule, Constraint):
                columns = program.columns(derivative, channel) + float(derivative.constant) / (
                    1 if rule.per_output else program.m
                )
                if name in edges:
                    add(symbol, math.copysign(math.inf, columns.sum()))
                else:
                    multiplier = np.asarray(dual.multipliers[name], dtype=float)
                    add(symbol, float((multiplier * columns).sum()))
            elif isinstance(rule, Auxiliary):
                marginal = rule.marginal(symbol, dual.auxiliaries[name], program.mass, channel)
                add(symbol, derivative * marginal)
            else:
                add(symbol, _of_floors(program, rule, derivative, floors, symbol.typed))
    for share, part in dual.weighed(program):
        for symbol, derivative in part.derivatives.items():
            add(symbol, share * program.value(derivative, channel))
    return {name: amount + 0.0 for name, amount in amounts.items()}


def _of_floors(
    program: ChannelProgram, rule: EntryBounds, derivative: Any, floors: Any, typed: Any
) -> Any:
    """Return d value / d floor; ∞ in a full row, where any more is infeasible."""
    assert program.lower is not None
    effective = (rule.lower == program.lower) * derivative
    full = program.lower.sum(axis=1, keepdims=True) >= 1.0
    binding = np.where(full & (effective > 0), math.inf, effective * floors).sum(axis=1)
    if rule.entry is None:
        return float(binding.sum())
    prices = np.zeros(np.shape(typed))
    np.add.at(prices, rule.entry, binding)
    return prices
