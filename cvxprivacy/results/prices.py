"""The prices of a channel program: multipliers, and nearby programs that prove what they are worth.

The multipliers' price of a number θ is ∂f/∂θ + Σ_j λ_j ∂g_j/∂θ.  Multipliers of an optimum that is
certified to 1e-6 may be off by far more.  So
:class:`~cvxprivacy.results.price_bounds.PriceBounds` encloses the price by two nearby programs,
in which θ is a little less and a little more.  They are found in two ways.  A release that moves
along the gradient is feasible there and costs an evaluation; if that does not do, the programs
are solved.  Nothing is known of a number in which the optimum is neither convex nor concave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, fractions
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.extremes import least_value
from cvxprivacy.programs.least_leakage import breach
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds
from cvxprivacy.results.nearby_releases import extreme_releases, moved_releases
from cvxprivacy.results.price_bounds import (
    FIVE_DIGITS,
    NEXT_TO_ZERO,
    WITHIN,
    Kind,
    Price,
    PriceBounds,
    is_narrow,
    price_within,
)
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.interior.method import foreign_measures
from cvxprivacy.solvers.presolve import zero_multipliers
from cvxprivacy_verifier import verify

__all__ = [
    "LEAST_UNIT",
    "ChannelPrices",
    "MovingBounds",
    "constant_rate",
    "nearby_steps",
]

MOST_ENTRIES = 20_000  # n m, beyond which neither prices nor greatest values are proved
MOST_SOLVED = 1_200  # n² m, up to which nearby programs are solved
LEAST_UNIT = 1e-9  # of the optimum's unit: smaller differences are those of proofs
LEAST_BOUND = {"maximum": 1.0, "excess": 0.0}  # of auxiliaries: nothing is feasible below
# steps to both sides, as shares of the number: where programs are linear, optima are straight along
# long steps, and the ends narrow; where they are curved, short steps have narrower ones
NEARBY_SHARES = (1e-2, 1e-4, 0.1, 1.0, 1e-6)
NEARBY_SPANS = (1e-6, 1e-8)  # steps to more room, as shares of what the left-hand side spans
TINY = 1e-6  # share of that span: for smaller numbers, steps of the second kind come first
RAISED = (1e-9, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3)  # shares by which multipliers are raised
# a mean slope that confirms multipliers: how far from the number, and how close to them
MEAN_SHARE, LEAST_MEAN_STEP = Fraction(1, 1024), Fraction(1, 2**20)


class MovingBounds:
    """A number that is the right-hand side of some bounds ≤, and nothing else.

    Attributes
    ----------
    rates : dict of str to Fraction
        By how much each bound rises per unit of room.
    factor : float
        d room / d number: negative if a greater number leaves less room.
    """

    def __init__(self, rates: Mapping[str, Fraction], factor: float) -> None:
        self.rates, self.factor = dict(rates), factor

    @classmethod
    def of(cls, places: Iterable[tuple[str, Symbol, Fraction | None]]) -> MovingBounds | None:
        """Return how a number moves bounds, or None if it does anything else.

        Parameters
        ----------
        places : iterable of (str, Symbol, Fraction or None)
            Where the number occurs: the bound, the function of the number that it depends on, and
            its rate; None for what is no bound ≤.
        """
        listed = list(places)
        symbols, rates = {symbol for _, symbol, _ in listed}, {k: rate for k, _, rate in listed}
        signs = {math.copysign(1, rate) for rate in rates.values() if rate}
        if len(symbols) != 1 or not all(rates.values()) or len(signs) != 1:
            return None
        (symbol,), (sign,) = symbols, signs
        if np.ndim(symbol.typed):
            return None
        moved = {name: abs(rate) for name, rate in rates.items() if rate}
        return cls(moved, sign * symbol.slope)


def constant_rate(derivative: Any) -> Fraction | None:
    """Return by how much a bound rises, from d (left side − bound); None if that is no constant."""
    if derivative.weights or derivative.cost is not None:
        return None
    return -Fraction(derivative.constant)


def nearby_steps(size: float, span: float) -> list[float]:
    """Return steps to nearby programs; the best one (C18) depends on an unknown curvature.

    Parameters
    ----------
    size : float
        The number.
    span : float
        By how much the constraint's left-hand side can differ.
    """
    both = [side * share * size for share in NEARBY_SHARES for side in (-1.0, 1.0)]
    more = [share * span for share in NEARBY_SPANS]
    return [step for step in (more + both if size < TINY * span else both + more) if step]


class _Number:
    """A number that was typed: where it occurs, and the program with another one in its place.

    Attributes
    ----------
    symbol : Symbol or None
        The function of the number in which the program is affine, if there is only one.
    bounds : MovingBounds or None
    curvature : int
        1 if the optimum is convex in ``symbol``, −1 if it is concave, 0 if neither is known.
    """

    def __init__(self, program: ChannelProgram, rules: Rules, name: str) -> None:
        owners: list[tuple[str, Any]] = []
        for group in rules.values():
            owners += group.items()
        owners += [("", part) for part in program.objectives.values()]
        places = [(k, o, s) for k, o in owners for s in o.derivatives if s.name == name]
        self.name, self.program = name, program
        self.floors = [o for _, o in owners if isinstance(o, EntryBounds)]
        self.typed = {symbol.typed for *_, symbol in places if not np.ndim(symbol.typed)}
        symbols = {symbol for *_, symbol in places}
        self.symbol: Any = symbols.pop() if len(symbols) == 1 else None
        self.in_floors = any(isinstance(owner, EntryBounds) for _, owner, _ in places)
        rates = {key: _rate(owner, symbol) for key, owner, symbol in places}
        self.bounds = MovingBounds.of(
            (key, symbol, None if getattr(owner, "sense", "<=") == "==" else rates[key])
            for key, owner, symbol in places
        )
        self.rates = {key: rate for key, rate in rates.items() if rate is not None}
        if self.bounds is not None:
            self.rates = self.bounds.rates
        self.curvature = 0
        if self.symbol is not None and len(self.typed) == 1:
            if all(isinstance(owner, Expression) for _, owner, _ in places):
                self.curvature = -1 if len(program.objectives) == 1 else 0
            elif self.bounds is not None or all(_is_affine(o, rates[key]) for key, o, _ in places):
                self.curvature = 1

    def moved(self, step: Fraction) -> tuple[ChannelProgram, Fraction] | None:
        """Return the program with ``step`` more room, or more of the symbol, and that step.

        None if nothing is feasible there.  Bounds of auxiliaries are floats: what they move by is
        rounded, and so is the step.
        """
        program, exact = self.program, step
        rows, auxiliaries = dict(program.constraints), dict(program.auxiliaries)
        for name, rate in self.rates.items():
            if name in rows:
                bound: Any = rows[name].bound
                each = isinstance(bound, tuple)
                more: Any = tuple(b + rate * step for b in bound) if each else bound + rate * step
                rows[name] = replace(rows[name], bound=more)
            else:
                aux = auxiliaries[name]
                more = float(Fraction(aux.bound) + rate * step)
                if more <= LEAST_BOUND.get(aux.kind, 0.0):
                    return None
                exact = max(exact, (Fraction(more) - Fraction(aux.bound)) / rate)
                auxiliaries[name] = replace(aux, bound=more)
        lower = self._floors(step) if self.in_floors else program.lower
        if lower is not None and (lower > (1 if program.upper is None else program.upper)).any():
            return None
        objective = program.objective
        if isinstance(objective, Expression) and self.symbol in objective.derivatives:
            objective = objective + objective.derivatives[self.symbol] * step
        changes: dict[str, Any] = {"constraints": rows, "auxiliaries": auxiliaries}
        return replace(program, lower=lower, objective=objective, **changes), exact

    def _floors(self, step: Fraction) -> Any:
        """Return the greatest of all floors, of which some move."""
        floors: list[Any] = []
        for rule in self.floors:
            if rule.lower is not None:
                slope = rule.derivatives.get(self.symbol, np.zeros(1))
                lower: Any = fractions(rule.lower) + fractions(slope) * step
                lower[lower < 0] = Fraction(0)
                floors.append(lower)
        return np.maximum.reduce(floors)


def _is_affine(owner: Any, rate: Fraction | None) -> bool:
    """Return whether a number is all of a right-hand side or a floor, in which V is convex."""
    if isinstance(owner, EntryBounds):
        return owner.lower is not None and owner.entry is None
    return isinstance(owner, Constraint) and rate is not None


def _rate(owner: Any, symbol: Symbol) -> Fraction | None:
    """Return by how much a bound rises per unit of a symbol; None if that moves anything else."""
    if isinstance(owner, Constraint):
        return constant_rate(owner.derivatives[symbol])
    if isinstance(owner, Auxiliary) and owner.in_bound(symbol):
        return Fraction(owner.derivatives[symbol])
    return None


class ChannelPrices:
    """The prices of a channel program's numbers.

    Parameters
    ----------
    edges : collection of str
        Rows whose bounds a solver took for the least that is feasible.
    nearby : bool
        Whether nearby programs may be solved: not if this one was broken off.
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
        self.edges, self.finished, self.restated = tuple(edges), nearby, restated
        self.nearby = nearby and program.n**2 * program.m <= MOST_SOLVED

    def by_multipliers(self) -> dict[str, Any]:
        """Return ∂f/∂θ + Σ_j λ_j ∂g_j/∂θ of every number θ, which is not proved."""
        program, channel, dual = self.program, self.primal.matrix, self.dual
        edges = [name for name in self.edges if _is_edge(program, name)]
        prices: dict[str, Any] = {}

        def add(symbol: Symbol, price: Any) -> None:
            prices[symbol.name] = prices.get(symbol.name, 0.0) + symbol.slope * price

        for name, rule in ((k, r) for group in self.rules.values() for k, r in group.items()):
            derivative: Any
            for symbol, derivative in rule.derivatives.items():
                if isinstance(rule, Constraint):
                    each = 1 if rule.per_output else program.m
                    columns = program.columns(derivative, channel)
                    columns = columns + float(derivative.constant) / each
                    multiplier = np.asarray(dual.multipliers[name], dtype=float)
                    edge = math.copysign(math.inf, columns.sum())
                    add(symbol, edge if name in edges else float((multiplier * columns).sum()))
                elif isinstance(rule, Auxiliary):
                    price = rule.marginal(symbol, dual.auxiliaries[name], program.mass, channel)
                    add(symbol, derivative * price)
                else:
                    add(symbol, self._of_floors(rule, derivative, symbol.typed))
        for share, part in dual.weighed(program):
            for symbol, derivative in part.derivatives.items():
                add(symbol, share * program.value(derivative, channel))
        return {name: price + 0.0 for name, price in prices.items()}

    def _of_floors(self, rule: EntryBounds, derivative: Any, typed: Any) -> Any:
        """Return d value / d floor; ∞ in a full row, where any more is infeasible."""
        lower = self.program.lower
        assert lower is not None
        effective = (rule.lower == lower) * derivative
        binding = effective * self._floor_multipliers
        full = lower.sum(axis=1) >= 1 - 1e-9
        full[full] = fractions(lower[full]).sum(axis=1) >= 1  # exactly, as it is said of ∞
        binding = np.where(full[:, None] & (effective > 0), math.inf, binding).sum(axis=1)
        if rule.entry is None:
            return float(binding.sum())
        prices = np.zeros(np.shape(typed))
        np.add.at(prices, rule.entry, binding)
        return prices

    @cached_property
    def _floor_multipliers(self) -> FloatArray:
        g, _ = self.dual.minorant(self.program)
        return np.maximum(g - self.program.least(g)[1][:, None], 0.0)

    @np.errstate(all="ignore")  # what is no number proves nothing
    def proved(self) -> dict[str, Any]:
        """Return the prices with their proved ends."""
        prices = self.by_multipliers()
        for name, multiplier in prices.items():
            if not np.ndim(multiplier):
                prices[name] = self._proved(_Number(self.program, self.rules, name), multiplier)
        return prices

    @cached_property
    def _proof(self) -> Any:
        return verify.proof_of(self.program.to_dict())

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_proof"}  # has balls

    def _proved(self, number: _Number, multiplier: float) -> Price:
        program, bounds, primal = self.program, number.bounds, self.primal
        small = bounds is not None and program.n * program.m <= MOST_ENTRIES
        if not number.curvature or not (small or self.nearby):
            return self._unproved(number, multiplier)
        slopes = PriceBounds(falls=bounds is not None, concave=number.curvature < 0)
        self._add_here(slopes, primal, [self.dual])
        unit, factor, least = self._unit(number), number.symbol.slope, False
        if bounds is not None:
            factor = bounds.factor
            slopes.add_release(self._proof, bounds.rates, primal)
            for release in moved_releases(program, primal.matrix, bounds.rates):
                slopes.add_release(self._proof, bounds.rates, release)
                if is_narrow(*slopes.ends, unit, FIVE_DIGITS):
                    break
            least = self._is_least(next(iter(bounds.rates)))
        if self.nearby and not is_narrow(*slopes.ends, unit):
            self._add_solved(slopes, number, unit, least)
        low, high = slopes.ends
        if math.isinf(multiplier) and bounds is not None and not least:
            # the solver took the bound for the least, which it is not proved to be
            left, right = sorted((low * factor, high * factor))
            multiplier = min(max(multiplier, left), right)
        one_sided = least or (number.in_floors and math.isinf(multiplier))
        return price_within(
            multiplier, (-math.inf if least else low, high), factor, unit, one_sided
        )

    def _add_here(self, slopes: PriceBounds, primal: Any, duals: Iterable[Dual]) -> None:
        """Add what a release and multipliers prove of the optimum itself."""
        if slopes.concave:
            evaluation = self._proof.upper(primal.to_dict())
            if not evaluation.broken:
                slopes.add_here(evaluation.objective)
            return
        for dual in duals:
            slopes.add_here(self._proof.lower(dual.to_dict()))

    def _add_solved(self, slopes: PriceBounds, number: _Number, unit: float, least: bool) -> None:
        """Solve nearby programs until the ends are narrow."""
        for step in self._steps(number, least):
            if (moved := number.moved(Fraction(step))) is None:
                continue
            there = _solved(moved[0])
            if there.primal is None or there.dual is None:
                continue
            slopes.add_nearby(moved[1], there.lower if slopes.concave else there.upper)
            # its multipliers are feasible here (P27); so is its release, if only weights move
            rescored = _rescored(self.program, there.dual, self.primal.matrix)
            self._add_here(slopes, there.primal, [there.dual, *rescored])
            if is_narrow(*slopes.ends, unit):
                return

    def _steps(self, number: _Number, least: bool) -> list[float]:
        if number.bounds is None:
            return nearby_steps(abs(float(number.symbol.value)) or 1.0, 0.0)
        name, rate = next(iter(number.bounds.rates.items()))
        if (aux := self.program.auxiliaries.get(name)) is not None:
            size, span = float(aux.bound) - LEAST_BOUND.get(aux.kind, 0.0), 1.0
        else:
            row = self.program.constraints[name]
            size = float(np.max(np.abs(row.bounds(self.program.m))))
            span = _span(self.program, row.expression)
        return nearby_steps(0.0 if least else size / float(rate), span / float(rate))

    def _unit(self, number: _Number) -> float:
        """Return the price at which the optimum moves by all that it can as the number does.

        The optimum moves by no more than what releases of least cost and constant ones differ by.
        """
        program, bounds = self.program, number.bounds
        unit = float(self._proof.unit(program.attained(self.primal.matrix)))
        if bounds is None:
            return unit / (abs(float(number.symbol.value)) or 1.0)
        spans = [
            _span(program, program.constraints[name].expression) / float(rate)
            for name, rate in bounds.rates.items()
            if name in program.constraints
        ]
        releases = [self.primal.matrix, *extreme_releases(program, bounds.rates)]
        moved = float(np.ptp([program.attained(release) for release in releases]))
        return min(unit, max(moved, LEAST_UNIT * unit)) / min(spans, default=1.0)

    def _is_least(self, name: str) -> bool:
        """Return whether a bound is proved to be the least that is feasible, up to its rounding.

        The proof is that of a contradiction, without the objective.
        """
        if (aux := self.program.auxiliaries.get(name)) is not None:
            least = LEAST_BOUND.get(aux.kind)
            return least is not None and not aux.radius and bool(aux.bound <= least)
        row = self.program.constraints[name]
        if row.per_output:
            return False
        span = _span(self.program, row.expression)
        dual = zero_multipliers(self.program, {name: 1.0 / span}, objective=0)
        rounding = 2.0**-52 * abs(float(row.number)) / span if row.number else 1e-30
        return bool(self._proof.lower(dual.to_dict()).lower() >= -rounding)

    # ---- where no convexity is known ---------------------------------------------------------

    def _unproved(self, number: _Number, multiplier: float) -> Price:
        kind: Kind = "not proved" if self.finished else "not determined"
        if self.nearby and number.in_floors and math.isinf(multiplier):
            kind = "one-sided"
        elif self.nearby and not self._confirmed(number, multiplier):
            kind = "not determined"
        return Price(multiplier, -math.inf, math.inf, kind)

    def _confirmed(self, number: _Number, multiplier: float) -> bool:
        """Return whether the multipliers' price is the mean slope to numbers next to this one.

        That proves nothing of a derivative without convexity, but it detects wrong multipliers.
        """
        if self.restated is None or len(number.typed) != 1 or math.isinf(multiplier):
            return True
        (typed,) = number.typed
        here, at = _solved(self.program), Fraction(typed)
        unit = float(self._proof.unit(self.program.attained(self.primal.matrix)))
        off = NEXT_TO_ZERO * unit / max(abs(float(at)), 1.0)
        off = max(WITHIN * abs(multiplier), off)
        steps = (at * MEAN_SHARE, max(at * MEAN_SHARE, LEAST_MEAN_STEP))
        for step in filter(None, dict.fromkeys(steps)):
            slopes, widest = [], math.inf
            for moved in (at + step, at - step):
                with suppress(InputError):  # more or less than may be typed
                    there = _solved(self.restated(**{number.name: moved}).program)
                    rises = sorted((there.lower - here.upper, there.upper - here.lower))
                    slopes += [rise / float(moved - at) for rise in rises]
                    widest = min(widest, (rises[1] - rises[0]) / float(step))
            if widest <= off:
                return all(abs(slope - multiplier) <= off for slope in slopes)
        return False


def _solved(program: ChannelProgram) -> Any:
    """Return the certificate of a nearby program.

    CVXPY's solvers are asked only for measures that the package's own method does not know: where
    that is not enough, they take long and gain little.
    """
    method = "auto" if foreign_measures(program) else "structured"
    return solve(program, accuracy="high", method=method).certificate


def _rescored(program: ChannelProgram, dual: Dual, channel: FloatArray) -> Iterator[Dual]:
    """Yield multipliers with the scores of a release, raised by ever greater shares.

    Outputs that the release does not use keep their scores.  Reduced costs that are equal at the
    optimum get some slack, which floats can keep, and which costs that share of the bounds.
    """
    scores = {}
    for name, view in program.views.items():
        joint = program.joint(channel, name)
        used = joint.sum(axis=0) > 1e-9
        of_channel = view.measure.scores(joint, program.reference(name))
        scores[name] = np.where(used, of_channel, dual.scores[name])
    in_objective = {view for part in program.objectives.values() for view in part.weights}
    for share in RAISED:
        yield replace(
            dual,
            multipliers={j: np.asarray(lam) * (1 + share) for j, lam in dual.multipliers.items()},
            # what only constraints weigh stays in balance
            scores={v: s if v in in_objective else s / (1 + share) for v, s in scores.items()},
        )


def _span(program: ChannelProgram, term: Expression) -> float:
    """Return by how much a left-hand side can differ, or 1 if it cannot."""
    return (float(np.ptp(program.cost(term))) + sum(program.sizes(term))) or 1.0


def _is_edge(program: ChannelProgram, name: str) -> bool:
    """Return whether a bound is the least that is feasible, up to its rounding."""
    row = program.constraints.get(name)
    if row is None:
        return False
    if row.linear and not row.per_output:
        return bool(float(row.bounds(program.m)) <= least_value(program, row.expression))
    broken, bounds, cost = breach(program, row), row.bounds(program.m), program.cost(row.expression)
    size = float(max(np.abs(bounds).max(), np.abs(cost).max()))  # a bound may be in the cost
    return broken is not None and broken >= -(2.0**-50) * size
