"""The paper's program over channels in CVXPY: its quantities, its units, its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxprivacy.exact import FloatArray, floats
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Excess
from cvxprivacy.programs.worst import first_part
from cvxprivacy.solvers.conic.paper_problem import PaperProblem, Parameters

__all__ = ["paper_program"]


def paper_program(
    program: ChannelProgram, rules: Rules, shared: Callable[[Callable[[], Any]], Any]
) -> PaperProblem:
    """Return a program over the joint mass Q (n, m) of the encoder's letters and the outputs.

    ``shared`` returns the variable that what it is given makes, or one that was made before.
    """
    return _Statement(program, rules, shared).problem()


class _Statement:
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
