"""The conic statement of a covariance program, in CVXPY, in whitened coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.solvers.cvxpy_run import run
from cvxprivacy.solvers.whitened import Whitened

__all__ = ["LogDetModel"]


class LogDetModel:
    """A covariance program as an ordinary ``cp.Problem`` with named constraints.

    Attributes
    ----------
    problem : cp.Problem
    variables : dict of str to cp.Variable
        ``M`` (n, n), the whitened error covariance, and ``tau`` in phase one.
    constraints : dict of str to cp.Constraint
        ``0 ≼ Σ``, ``Σ ≼ Cov(V | Z)``, each cap and each row under its own name.
    phase_one : bool
        Minimise the largest scaled violation τ of the rows instead.
    """

    def __init__(self, white: Whitened, *, phase_one: bool = False) -> None:
        self.white, self.phase_one = white, phase_one
        program, n = white.program, white.program.n
        m = cp.Variable((n, n), symmetric=True, name="M")
        self.variables = {"M": m}
        self.constraints: dict[str, cp.Constraint] = {}
        self._log_dets: dict[str, Any] = {}
        self._scales: dict[str, float] = {}
        self._name("0 ≼ Σ", m >> 0)
        self._name("Σ ≼ Cov(V | Z)", np.eye(n) - m >> 0)
        for name, cap in white.caps.items():
            self._name(name, cap - m >> 0)
        slack: Any = 0.0
        objective = self._expression(program.objective)
        if phase_one:
            slack = objective = self.variables["tau"] = cp.Variable(name="tau")
            self._name("bounded", slack >= -1.0)
        for name, row in program.constraints.items():
            scale = self._scales[name] = self._scale(row)
            bound = float(row.bounds(1)) / (white.nat if row.expression.weights else 1.0)
            self._name(name, (self._expression(row.expression) - bound) / scale <= slack)
        self.problem = cp.Problem(cp.Minimize(objective), list(self.constraints.values()))

    def _name(self, name: str, constraint: cp.Constraint) -> None:
        constraint.set_label(name)
        self.constraints[name] = constraint

    def _scale(self, row: Constraint) -> float:
        if row.expression.weights:
            return 1.0
        return float(np.trace(self.white.cost(row.expression))) or 1.0

    def _expression(self, term: Expression) -> Any:
        """Return a term in nats if it has information, else in its own unit."""
        white = self.white
        unit = 1.0 if not term.weights else 1.0 / white.nat
        value: Any = float(term.constant) * unit
        if term.cost is not None:
            value = value + cp.sum(cp.multiply(white.cost(term) * unit, self.variables["M"]))
        for view, weight in term.weights.items():
            if view not in self._log_dets:
                _, s, t = white.views[view]
                self._log_dets[view] = cp.log_det(s + t @ self.variables["M"] @ t.T)
            log_det = self._log_dets[view]
            value = value + float(weight) * (white.reference[view] - log_det) / 2
        return value

    def solve(self, solver: str, options: Mapping[str, Any], *, verbose: bool = False) -> str:
        """Run one solver once; return what it said of itself, for the log."""
        return run(self.problem, solver, options, verbose=verbose)

    @property
    def middle(self) -> FloatArray | None:
        """M with its eigenvalues in [0, 1], or None without one."""
        n = self.white.program.n
        value = _finite(self.variables["M"].value, (n, n))
        if value is None:
            return None
        try:
            values, vectors = np.linalg.eigh((value + value.T) / 2)
        except np.linalg.LinAlgError:
            return None
        return (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T

    @property
    def multipliers(self) -> dict[str, float]:
        """λ of each row, of the program in nats; 0 of a row without one."""
        found = {}
        for name, scale in self._scales.items():
            value = _finite(self.constraints[name].dual_value, ())
            found[name] = 0.0 if value is None else float(value) / scale
        return found

    @property
    def parts(self) -> dict[str, FloatArray]:
        """The multiplier of each cap, in whitened coordinates; 0 of a cap without one."""
        found, n = {}, self.white.program.n
        for name in self.white.caps:
            value = _finite(self.constraints[name].dual_value, (n, n))
            found[name] = np.zeros((n, n)) if value is None else value
        return found

    @property
    def violation(self) -> float | None:
        """τ of phase one, or None without one."""
        value = _finite(self.variables["tau"].value, ())
        return None if value is None else float(value)


def _finite(value: Any, shape: tuple[int, ...]) -> FloatArray | None:
    """Return what a solver left in a variable, if it is numbers of that shape."""
    try:
        found: FloatArray = np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None
    if found.size == 1 and not shape:
        found = found.reshape(())
    return found if found.shape == shape and np.isfinite(found).all() else None
