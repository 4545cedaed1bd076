"""The paper's program in CVXPY, in its units and parameters, solved well scaled; over channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.expressions.constants.callback_param import CallbackParam

from cvxprivacy.exact import FloatArray, floats
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.expression import Constraint, Expression, first_part
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Excess

__all__ = ["PaperProblem", "Parameters", "channel_problem"]

_DIGITS = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


class Parameters:
    """A ``cvxpy.Parameter`` for each number typed, and for each function of one."""

    def __init__(self) -> None:
        self.typed: dict[str, cp.Parameter] = {}
        self._functions: dict[Symbol, cp.Parameter] = {}

    def of(self, symbol: Symbol) -> cp.Parameter:
        """Return the parameter of a function of a typed number."""
        if symbol.name not in self.typed:
            value = np.asarray(symbol.typed, float)
            options = {"name": symbol.name, "value": value, "nonneg": bool((value >= 0).all())}
            self.typed[symbol.name] = cp.Parameter(value.shape, **options)
        theta = self.typed[symbol.name]
        if not symbol.function:
            return theta
        if symbol not in self._functions:
            usual = symbol.function == "log" or abs(symbol.rate) in (1.0, math.log(2))
            name = f"{symbol.function}({'' if usual else f'{symbol.rate:g} '}{symbol.name})"
            nonneg = {"nonneg": True} if symbol.function == "exp" else {}
            self._functions[symbol] = CallbackParam(
                callback=lambda: symbol.at(float(theta.value)), name=name, **nonneg
            )
        return self._functions[symbol]

    def constant(self, expression: Expression) -> Any:
        """Return the constant of an expression, affine in the parameters."""
        slopes = {s: float(each.constant) for s, each in expression.derivatives.items()}
        return self.affine(float(expression.constant), slopes)

    def bound(self, rule: Constraint, m: int = 1) -> Any:
        """Return what the left-hand side without its constant is compared with, affine in them."""
        value = rule.bounds(m) - float(rule.expression.constant)
        return self.affine(value, {s: -float(d.constant) for s, d in rule.derivatives.items()})

    def affine(self, value: Any, slopes: Mapping[Symbol, Any]) -> Any:
        """Return what has a value at the numbers typed, and these slopes in them."""
        for symbol, slope in slopes.items():
            if np.any(slope):
                value = value - slope * symbol.value + slope * self.of(symbol)
        return value


class PaperProblem(cp.Problem):  # type: ignore[misc]  # CVXPY has no types
    """A program as its paper has it, in its units.

    ``solve`` hands the solver the same program with every row and the objective divided by their
    spans, so that d · 1e±12 changes nothing, and multiplies values and multipliers back.

    Attributes
    ----------
    typed : dict of str to cvxpy.Parameter
        The numbers that were typed, by name.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.typed = parameters.typed
        self._rows: list[_Row] = []
        self._cones: list[cp.Constraint] = []
        self._scaled: cp.Problem | None = None

    def add(
        self,
        name: str,
        constraint: cp.Constraint,
        span: float = 1.0,
        *,
        scaled: cp.Constraint | None = None,
        back: Callable[[Any], Any] | None = None,
    ) -> None:
        """Add a constraint under a name.

        Parameters
        ----------
        span : float
            What the scaled constraint is divided by.
        scaled : cvxpy constraint, optional
            What the solver sees instead, where that is not the same divided by ``span``.
        back : callable, optional
            Turns the multiplier of ``scaled`` into that of ``constraint``.
        """
        constraint.set_label(name)
        scaled = _divided(constraint, span) if scaled is None else scaled
        self._rows.append(_Row(constraint, scaled, back or (lambda dual: dual / span)))

    def add_cone(self, name: str, constraint: cp.Constraint) -> None:
        """Add a constraint that states what an expression means, and is the same for the solver."""
        constraint.set_label(name)
        self._cones.append(constraint)

    def minimizing(
        self,
        expression: Any,
        scale: float,
        offset: float = 0.0,
        *,
        scaled: Any = None,
        after: Callable[[], None] = lambda: None,
    ) -> PaperProblem:
        """Return the problem with its objective, which is ``scale`` large beside ``offset``.

        Parameters
        ----------
        scaled : cvxpy expression, optional
            The solver's objective, where that is not (expression − offset) / scale.
        after : callable
            Sets the paper's variables after a solve.
        """
        shown = [row.shown for row in self._rows]
        super().__init__(cp.Minimize(expression), [*shown, *self._cones])
        self._scale, self._after = scale, after
        objective = (expression - offset) / scale if scaled is None else scaled
        rows = [row.scaled for row in self._rows]
        self._scaled = cp.Problem(cp.Minimize(objective), [*rows, *self._cones])
        return self

    def solve(self, *arguments: Any, **options: Any) -> Any:
        """Solve the program; arguments are those of ``cvxpy.Problem.solve``.

        Without any, Clarabel is asked for more digits than by default.
        """
        assert self._scaled is not None
        if not arguments and not options:
            options = {"solver": "CLARABEL", **_DIGITS}
        self._scaled.solve(*arguments, **options)
        solved = self._scaled.value is not None and np.isfinite(self._scaled.value)
        for row, dual in [(row, row.duals) for row in self._rows]:
            for variable in row.shown.dual_variables:
                variable.save_value(None)
            if solved and dual is not None:
                row.shown.save_dual_value(row.back(dual) * self._scale)
        self._after()
        return self.value

    @property
    def value(self) -> float | None:
        """The objective at the variables, after a solve."""
        if self._scaled is None or self._scaled.value is None:
            return None
        if not np.isfinite(self._scaled.value):
            return float(self._scaled.value)
        return float(np.asarray(self.objective.value).item())

    @property
    def status(self) -> str | None:
        return None if self._scaled is None else self._scaled.status

    @property
    def solver_stats(self) -> Any:
        return None if self._scaled is None else self._scaled.solver_stats


@dataclass(frozen=True)
class _Row:
    shown: cp.Constraint
    scaled: cp.Constraint
    back: Callable[[Any], Any]

    @property
    def duals(self) -> Any:
        value = self.scaled.dual_value
        return None if value is None else np.asarray(value, float)


def _divided(constraint: cp.Constraint, span: float) -> cp.Constraint:
    if span == 1.0:
        return constraint
    left = constraint.expr / span
    return left == 0 if isinstance(constraint, cp.constraints.Equality) else left <= 0


def channel_problem(
    program: ChannelProgram, rules: Rules, shared: Callable[[Callable[[], Any]], Any]
) -> PaperProblem:
    """Return a program over the joint mass Q (n, m) of the encoder's letters and the outputs.

    ``shared`` returns the variable that what it is given makes, or one that was made before.
    """
    return _ChannelStatement(program, rules, shared).problem()


class _ChannelStatement:
    """Expressions and constraints of a channel program in CVXPY."""

    def __init__(self, program: ChannelProgram, rules: Rules, shared: Any) -> None:
        self.program, self.rules, self.parameters = program, rules, Parameters()
        self.q = shared(lambda: cp.Variable((program.n, program.m), name="Q", nonneg=True))
        self._information: dict[str, Any] = {}
        self._cones: dict[str, Any] = {}  # of measures that take constraints of their own

    def problem(self) -> PaperProblem:
        program, mass = self.program, self.program.mass
        problem = PaperProblem(self.parameters)
        # in this order its multiplier is ν of (P17)
        problem.add("mass", cp.Constant(mass) == cp.sum(self.q, axis=1))
        for group in self.rules.values():
            for name, rule in group.items():
                if isinstance(rule, Constraint):
                    columns = self._columns(rule.expression, rule.derivatives)
                    left = columns if rule.per_output else cp.sum(columns)
                    right = self.parameters.bound(rule, program.m)
                    problem.add(name, _compared(left, right, rule.sense), self._span(rule))
                elif isinstance(rule, Auxiliary):
                    for part, constraint in self._auxiliary(name, rule).items():
                        problem.add(f"{name}.{part}", constraint)
                else:
                    for part, constraint in self._entry_bounds(rule).items():
                        problem.add(f"{name}.{part}" if part == "cap" else name, constraint)
        totals = [
            cp.sum(self._columns(part, part.derivatives)) + self.parameters.constant(part)
            for part in program.objectives.values()
        ]
        for name, constraint in self._cones.items():
            problem.add_cone(name, constraint)
        objective = cp.maximum(*totals) if totals[1:] else totals[0]
        offset = float(first_part(program.objective).constant)
        return problem.minimizing(objective, program.scale, offset)

    def _phi(self, view: str) -> Any:
        """Return Φ_k(y) for every y, in the program's units."""
        if view not in self._information:
            program, reference = self.program, self.program.reference(view)
            conditional = program.view_matrix(view) / program.mass[None, :]
            joint, measure = conditional @ self.q, program.views[view].measure
            x = measure.lifted(joint, reference)
            marginal = cp.sum(joint, axis=0, keepdims=True)
            phi, parts = measure.cone(x, marginal, reference)
            for part, constraint in parts.items():
                self._cones[f"{part}[{view}]"] = constraint
            self._information[view] = phi * program.unit(view)
        return self._information[view]

    def _columns(self, expression: Expression, derivatives: Mapping[Symbol, Expression]) -> Any:
        """Return the contribution of each output, without constants, affine in the parameters."""
        weights = {view: w.copy() for view, w in expression.columns(self.program.m).items()}
        cost = self.program.cost(expression)
        moving: list[Any] = []
        for symbol, derivative in derivatives.items():
            cost_slope = self.program.cost(derivative)
            cost = cost - symbol.value * cost_slope
            for view, weight in derivative.columns(self.program.m).items():
                weights[view] = weights.get(view, np.zeros(self.program.m)) - symbol.value * weight
            if derivative.weights or derivative.cost is not None:
                part = self._fixed_columns(derivative.columns(self.program.m), cost_slope)
                moving.append(self.parameters.of(symbol) * part)
        return self._fixed_columns(weights, cost) + sum(moving)

    def _fixed_columns(self, weights: Mapping[str, FloatArray], cost: FloatArray) -> Any:
        parts: list[Any] = [
            cp.multiply(w, self._phi(view))
            for view, w in weights.items()
            if np.abs(w).max() > 1e-300
        ]
        if cost.any():
            parts.append(cp.sum(cp.multiply(cost, self.q), axis=0))
        return sum(parts) if parts else cp.Constant(np.zeros(self.program.m))

    def _span(self, rule: Constraint) -> float:
        bound = np.abs(rule.bounds(self.program.m)).max()
        cost = bound if bound and rule.linear else np.abs(self.program.cost(rule.expression)).max()
        return float(cost + sum(self.program.sizes(rule.expression))) or 1.0

    def _auxiliary(self, name: str, rule: Auxiliary) -> dict[str, Any]:
        slopes = {s: slope for s, slope in rule.derivatives.items() if s not in rule.moving}
        bound = self.parameters.affine(float(rule.bound), slopes)
        p = self.program.mass[:, None]
        if rule.kind == "ratio":
            a = cp.Variable((1, self.program.m), name=f"a[{name}]", nonneg=True)
            return {"floor": p @ a <= self.q, "cap": self.q <= bound * (p @ a)}
        if isinstance(rule, Excess):
            share = self.parameters.affine(floats(rule.share), rule.moving)
            above = share @ self.q - floats(rule.levels)
            return {"total": cp.sum(cp.pos(above)) <= bound}
        u = cp.Variable((1, self.program.m), name=f"u[{name}]", nonneg=True)
        return {"cap": self.q <= p @ u, "total": cp.sum(u) <= bound}

    def _entry_bounds(self, rule: EntryBounds) -> dict[str, Any]:
        p, bounds = self.program.mass[:, None], {}
        if rule.lower is not None:
            lower: Any = p * np.asarray(rule.lower, float)
            for symbol, derivative in rule.derivatives.items():
                theta = self.parameters.of(symbol)
                if rule.entry is None:
                    lower = cp.multiply(p * derivative, theta)
                else:
                    lower = cp.multiply(p * derivative, cp.reshape(theta[rule.entry], (-1, 1), "C"))
            bounds["floor"] = self.q >= lower
        if rule.upper is not None:
            bounds["cap"] = self.q <= p * np.asarray(rule.upper, float)
        return bounds


def _compared(left: Any, right: Any, sense: str) -> Any:
    return left <= right if sense == "<=" else left == right
