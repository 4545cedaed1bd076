"""A ``cvxpy.Problem`` that shows a paper's program and solves it well scaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.expressions.constants.callback_param import CallbackParam

from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.parameter import Symbol

__all__ = ["PaperProblem", "Parameters"]

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
