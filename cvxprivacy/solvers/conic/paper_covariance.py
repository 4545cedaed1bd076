"""The paper's program over error covariances in CVXPY: Σ, its units, its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from cvxprivacy.exact import FloatArray, floats
from cvxprivacy.programs.covariance import CovarianceProgram
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.solvers.conic.paper_problem import PaperProblem, Parameters
from cvxprivacy.solvers.covariance.whitened import Whitened
from cvxprivacy_verifier.verify import proof_of

__all__ = ["paper_program"]


def paper_program(
    program: CovarianceProgram, shared: Callable[[Callable[[], Any]], Any]
) -> PaperProblem:
    """Return a program over Σ = Cov(V | X̂, Z), solved as one over M = L⁻¹ Σ L⁻ᵀ, Σ̄ = LLᵀ."""
    return _Statement(program, shared).problem()


class _Statement:
    """Expressions and constraints of a covariance program in CVXPY, in Σ and in M."""

    def __init__(self, program: CovarianceProgram, shared: Any) -> None:
        self.program, self.parameters, n = program, Parameters(), program.n
        self.white = Whitened(program, proof_of(program.to_dict()))
        self.root = floats(self.white.root)
        self.inverse = np.linalg.inv(self.root)
        self.sigma = shared(lambda: cp.Variable((n, n), name="Sigma", symmetric=True))
        self.middle = cp.Variable((n, n), name="M", symmetric=True)

    def problem(self) -> PaperProblem:
        program, n = self.program, self.program.n
        problem = PaperProblem(self.parameters)
        back = self._matrix_back
        problem.add("0 ≼ Σ", self.sigma >> 0, scaled=self.middle >> 0, back=back)
        above = self.root @ self.root.T
        scaled = np.eye(n) - self.middle >> 0
        problem.add("Σ ≼ Cov(V | Z)", above - self.sigma >> 0, scaled=scaled, back=back)
        for name, cap in program.caps.items():
            scaled = self.white.caps[name] - self.middle >> 0
            problem.add(name, floats(cap) - self.sigma >> 0, scaled=scaled, back=back)
        for name, row in program.constraints.items():
            span = 1.0 if row.expression.weights else self._size(row.expression)
            bound = self.parameters.bound(row)
            shown, inner = self._moving(row.expression, row.derivatives)
            problem.add(name, shown <= bound, span, scaled=inner / span <= bound / span)
        objective = program.objective
        shown, inner = self._moving(objective, objective.derivatives)
        constant = float(objective.constant)
        scale = 1.0 if objective.weights else self._size(objective)
        return problem.minimizing(
            shown + constant, scale, scaled=inner / scale, after=self._set_sigma
        )

    def _set_sigma(self) -> None:
        self.sigma.value = None
        if self.middle.value is not None:
            sigma = self.root @ self.middle.value @ self.root.T
            self.sigma.value = (sigma + sigma.T) / 2

    def _matrix_back(self, dual: FloatArray) -> FloatArray:
        """Return the multiplier of a bound on Σ from that of the same bound on M."""
        return self.inverse.T @ dual @ self.inverse

    def _both(self, expression: Expression) -> tuple[Any, Any]:
        """Return an expression without its constant, in Σ and in M."""
        program, white = self.program, self.white
        shown: Any = 0.0
        inner: Any = 0.0
        if expression.costs is not None:
            shown = cp.sum(cp.multiply(expression.costs, self.sigma))
            inner = cp.sum(cp.multiply(white.cost(expression), self.middle))
        for view, weight in expression.weights.items():
            if not weight:
                continue
            s, b = program.derived[view]
            _, s_white, t = white.views[view]
            unit = float(weight) * white.nat / 2
            reference = 2 * program.reference(view)
            shown = shown + unit * (reference - cp.log_det(s + b @ self.sigma @ b.T))
            log_det = cp.log_det(s_white + t @ self.middle @ t.T)
            inner = inner + unit * (white.reference[view] - log_det)
        return shown, inner

    def _moving(
        self, expression: Expression, derivatives: Mapping[Symbol, Expression]
    ) -> tuple[Any, Any]:
        """Return an expression without its constant, affine in the parameters, in Σ and in M."""
        fixed, moving = expression, []
        for symbol, derivative in derivatives.items():
            if derivative.weights or derivative.cost is not None:
                fixed = replace(fixed + derivative * (-symbol.value), constant=0)
                moving.append((self.parameters.of(symbol), self._both(derivative)))
        shown, inner = self._both(fixed)
        for parameter, (left, right) in moving:
            shown, inner = shown + parameter * left, inner + parameter * right
        return shown, inner

    def _size(self, expression: Expression) -> float:
        return float(np.abs(np.linalg.eigvalsh(self.white.cost(expression))).sum()) or 1.0
