"""A covariance program in CVXPY: solved in whitened coordinates M, shown as the paper's in Σ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp
import numpy as np

from cvxprivacy.exact import FloatArray, floats
from cvxprivacy.programs.covariance import CovarianceProgram
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.solvers.conic.paper_problem import PaperProblem, Parameters
from cvxprivacy.solvers.conic.run import ConicStatement
from cvxprivacy.solvers.covariance.whitened import Whitened
from cvxprivacy_verifier.verify import proof_of

__all__ = ["LogDetModel", "covariance_problem"]


def covariance_problem(
    program: CovarianceProgram, shared: Callable[[Callable[[], Any]], Any]
) -> PaperProblem:
    """Return a program over Σ = Cov(V | X̂, Z), solved as one over M = L⁻¹ Σ L⁻ᵀ, Σ̄ = LLᵀ.

    ``shared`` returns the variable that what it is given makes, or one that was made before.
    """
    white, parameters, n = Whitened(program, proof_of(program.to_dict())), Parameters(), program.n
    root = floats(white.root)
    inverse, above = np.linalg.inv(root), root @ root.T
    sigma = shared(lambda: cp.Variable((n, n), name="Sigma", symmetric=True))
    paper = _Coordinates(
        sigma,
        lambda term: term.costs,
        lambda view: (*program.derived[view], 2 * program.reference(view)),
        parameters,
    )
    model, problem = LogDetModel(white, parameters=parameters), PaperProblem(parameters)
    shown = {"0 ≼ Σ": sigma >> 0, "Σ ≼ Cov(V | Z)": above - sigma >> 0}
    shown |= {name: floats(cap) - sigma >> 0 for name, cap in program.caps.items()}
    for name, constraint in shown.items():
        scaled = model.constraints[name]
        problem.add(name, constraint, scaled=scaled, back=lambda dual: inverse.T @ dual @ inverse)
    for name, row in program.constraints.items():
        left = paper.expression(row.expression, row.derivatives, white.nat)
        span = model.scales[name] * white.unit(row.expression)
        constraint = left <= parameters.bound(row)
        problem.add(name, constraint, span, scaled=model.constraints[name])

    def set_sigma() -> None:
        middle = model.variables["M"].value
        sigma.value = None if middle is None else _symmetric(root @ middle @ root.T)

    objective = program.objective
    value = paper.expression(objective, objective.derivatives, white.nat)
    scale = model.scale * white.unit(objective)
    return problem.minimizing(
        value + float(objective.constant), scale, scaled=model.objective, after=set_sigma
    )


@dataclass(frozen=True)
class _Coordinates:
    """A covariance as a variable, and what costs, views S + B Σ Bᵀ and references are of it."""

    covariance: cp.Variable
    cost: Callable[[Expression], FloatArray | None]
    view: Callable[[str], tuple[FloatArray, FloatArray, float]]
    parameters: Parameters | None
    log_dets: dict[str, Any] = field(default_factory=dict)

    def expression(self, term: Expression, slopes: Mapping[Symbol, Expression], nat: float) -> Any:
        """Return a term without its constant, affine in the parameters, a nat being ``nat``."""
        fixed, moving = term, []
        for symbol, slope in slopes.items():
            if self.parameters and (slope.weights or slope.cost is not None):
                fixed = replace(fixed + slope * (-symbol.value), constant=0)
                moving.append(self.parameters.of(symbol) * self._fixed(slope, nat))
        return self._fixed(fixed, nat) + sum(moving)

    def _fixed(self, term: Expression, nat: float) -> Any:
        value: Any = 0.0
        if term.cost is not None:
            value = value + cp.sum(cp.multiply(self.cost(term), self.covariance))
        for view, weight in term.weights.items():
            s, b, reference = self.view(view)
            if view not in self.log_dets:
                self.log_dets[view] = cp.log_det(s + b @ self.covariance @ b.T)
            value = value + float(weight) * nat * (reference - self.log_dets[view]) / 2
        return value


class LogDetModel(ConicStatement):
    """A covariance program as an ordinary ``cp.Problem`` with named constraints.

    Attributes
    ----------
    problem : cp.Problem
    variables : dict of str to cp.Variable
        ``M`` (n, n), the whitened error covariance, and ``tau`` in phase one.
    constraints : dict of str to cp.Constraint
        ``0 ≼ Σ``, ``Σ ≼ Cov(V | Z)``, each cap and each row under its own name.
    scale, scales : float, and dict of str to float
        What the objective and each row are divided by, in nats if they have information.
    phase_one : bool
        Minimise the largest scaled violation τ of the rows instead.
    parameters : Parameters, optional
        What holds the numbers that were typed, if they are to be moved.
    """

    def __init__(
        self, white: Whitened, *, phase_one: bool = False, parameters: Parameters | None = None
    ) -> None:
        super().__init__()
        self.white, self.phase_one = white, phase_one
        program, n = white.program, white.program.n
        m = self.variables["M"] = cp.Variable((n, n), symmetric=True, name="M")
        within = _Coordinates(
            m, white.cost, lambda v: (*white.views[v][1:], white.reference[v]), parameters
        )
        self._add("0 ≼ Σ", m >> 0)
        self._add("Σ ≼ Cov(V | Z)", np.eye(n) - m >> 0)
        for name, cap in white.caps.items():
            self._add(name, cap - m >> 0)
        goal, slack = program.objective, 0.0
        self.scale = 1.0 if phase_one else self._size(goal)
        self.scales: dict[str, float] = {}
        if phase_one:
            slack = self.objective = self._violation()
        else:
            value = within.expression(goal, goal.derivatives, white.nat)
            self.objective = value / white.unit(goal) / self.scale
        for name, row in program.constraints.items():
            span = self.scales[name] = self._size(row.expression)
            value = within.expression(row.expression, row.derivatives, white.nat)
            bound: Any = float(row.bounds(1)) - float(row.expression.constant)
            bound = parameters.bound(row) if parameters else bound
            self._add(name, (value - bound) / white.unit(row.expression) / span <= slack)
        self.problem = cp.Problem(cp.Minimize(self.objective), self._all)

    def _size(self, term: Expression) -> float:
        """Return what a term is of the size of: a nat, or the sum of its cost's eigenvalues."""
        if term.weights:
            return 1.0
        return float(np.abs(np.linalg.eigvalsh(self.white.cost(term))).sum()) or 1.0

    @property
    def whitened_covariance(self) -> FloatArray | None:
        """M with its eigenvalues in [0, 1], or None without one."""
        n = self.white.program.n
        value = _finite(self.variables["M"].value, (n, n))
        if value is None:
            return None
        try:
            values, vectors = np.linalg.eigh(_symmetric(value))
        except np.linalg.LinAlgError:
            return None
        return (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T

    @property
    def multipliers(self) -> dict[str, float]:
        """λ of each row, of the program in nats; 0 of a row without one."""
        values = {k: _finite(self.constraints[k].dual_value, ()) for k in self.scales}
        spans = {k: self.scales[k] / self.scale for k in values}
        return {k: 0.0 if v is None else float(v) / spans[k] for k, v in values.items()}

    @property
    def psd_multipliers(self) -> dict[str, FloatArray]:
        """The multiplier of each cap, in whitened coordinates; 0 of a cap without one."""
        shape = (self.white.program.n,) * 2
        values = {k: _finite(self.constraints[k].dual_value, shape) for k in self.white.caps}
        return {k: np.zeros(shape) if v is None else v * self.scale for k, v in values.items()}

    @property
    def violation(self) -> float | None:
        """τ of phase one, or None without one."""
        value = _finite(self.variables["tau"].value, ())
        return None if value is None else float(value)


def _finite(value: Any, shape: tuple[int, ...]) -> FloatArray | None:
    """Return what a solver left in a variable, if it is numbers of that shape."""
    try:
        numbers: FloatArray = np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None
    if numbers.size == 1 and not shape:
        numbers = numbers.reshape(())
    return numbers if numbers.shape == shape and np.isfinite(numbers).all() else None


def _symmetric(matrix: FloatArray) -> FloatArray:
    return (matrix + matrix.T) / 2
