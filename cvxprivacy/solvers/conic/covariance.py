"""The conic statement of a covariance program, in CVXPY, in whitened coordinates."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.solvers.conic.run import ConicStatement
from cvxprivacy.solvers.covariance.whitened import Whitened

__all__ = ["LogDetModel"]


class LogDetModel(ConicStatement):
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
        super().__init__()
        self.white, self.phase_one = white, phase_one
        program, n = white.program, white.program.n
        m = self.variables["M"] = cp.Variable((n, n), symmetric=True, name="M")
        self._log_dets: dict[str, Any] = {}
        self._scales: dict[str, float] = {}
        self._add("0 ≼ Σ", m >> 0)
        self._add("Σ ≼ Cov(V | Z)", np.eye(n) - m >> 0)
        for name, cap in white.caps.items():
            self._add(name, cap - m >> 0)
        slack: Any = 0.0
        objective = self._expression(program.objective)
        if phase_one:
            slack = objective = self._violation()
        for name, row in program.constraints.items():
            scale = self._scales[name] = self._scale(row)
            bound = float(row.bounds(1)) / white.unit(row.expression)
            self._add(name, (self._expression(row.expression) - bound) / scale <= slack)
        self.problem = cp.Problem(cp.Minimize(objective), self._all)

    def _scale(self, row: Constraint) -> float:
        if row.expression.weights:
            return 1.0
        return float(np.abs(np.linalg.eigvalsh(self.white.cost(row.expression))).sum()) or 1.0

    def _expression(self, term: Expression) -> Any:
        """Return a term in nats if it has information, else in its own unit."""
        white = self.white
        value: Any = float(term.constant) / white.unit(term)
        if term.cost is not None:
            cost = white.cost(term) / white.unit(term)
            value = value + cp.sum(cp.multiply(cost, self.variables["M"]))
        for view, weight in term.weights.items():
            if view not in self._log_dets:
                _, s, t = white.views[view]
                self._log_dets[view] = cp.log_det(s + t @ self.variables["M"] @ t.T)
            log_det = self._log_dets[view]
            value = value + float(weight) * (white.reference[view] - log_det) / 2
        return value

    @property
    def whitened_covariance(self) -> FloatArray | None:
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
        values = {k: _finite(self.constraints[k].dual_value, ()) for k in self._scales}
        return {k: 0.0 if v is None else float(v) / self._scales[k] for k, v in values.items()}

    @property
    def psd_multipliers(self) -> dict[str, FloatArray]:
        """The multiplier of each cap, in whitened coordinates; 0 of a cap without one."""
        shape = (self.white.program.n,) * 2
        values = {k: _finite(self.constraints[k].dual_value, shape) for k in self.white.caps}
        return {k: np.zeros(shape) if v is None else v for k, v in values.items()}

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
