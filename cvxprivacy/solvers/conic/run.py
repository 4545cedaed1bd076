"""The one place where a solver of CVXPY is called: whatever it does is an answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import cvxpy as cp

from cvxprivacy.errors import InputError

__all__ = ["ConicStatement", "installed_solvers"]


def installed_solvers() -> list[str]:
    """Return the installed solvers that have exponential cones."""
    exponential = {"CLARABEL", "SCS", "ECOS", "MOSEK", "CUCLARABEL", "QICS"}
    return [name for name in cp.installed_solvers() if name in exponential]


class ConicStatement:
    """An ordinary ``cp.Problem`` whose constraints and variables have names."""

    problem: cp.Problem

    def __init__(self) -> None:
        self.variables: dict[str, cp.Variable] = {}
        self.constraints: dict[str, cp.Constraint] = {}
        self._all: list[cp.Constraint] = []

    def _add(self, name: str, constraint: cp.Constraint) -> cp.Constraint:
        """Label a constraint and list it; where two have one name, the last is the one listed."""
        constraint.set_label(name)
        self.constraints[name] = constraint
        self._all.append(constraint)
        return constraint

    def _violation(self) -> cp.Variable:
        """Return τ, the largest violation, to be minimised in phase one; it is bounded below."""
        tau = self.variables["tau"] = cp.Variable(name="tau")
        self._add("bounded", tau >= -1.0)
        return tau

    def solve(
        self,
        solver: str,
        options: Mapping[str, Any],
        *,
        verbose: bool = False,
        user: bool = False,
        problem: cp.Problem | None = None,
    ) -> str:
        """Run a solver once; return what it said of itself, which nothing depends on.

        A crash of the solver is an answer too: its message is returned, and the variables keep no
        value.  ``user`` says that some of the options are the user's own, who should hear of a
        misspelled one.  ``problem`` is another one of the same variables and constraints.
        """
        problem = self.problem if problem is None else problem
        for variable in problem.variables():
            variable.value = None
        for constraint in problem.constraints:
            for dual in constraint.dual_variables:
                dual.value = None
        # a warm start would keep the settings of the attempt before
        settings = {"warm_start": False, **options}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            try:
                problem.solve(solver=solver, verbose=verbose, **settings)
            except BaseException as error:
                # Clarabel's Rust panics are no Exceptions; an interrupt is no failure
                name = type(error).__name__
                if not isinstance(error, Exception) and name != "PanicException":
                    raise
                if user and isinstance(error, Exception) and not isinstance(error, cp.SolverError):
                    remedy = f"pass settings that {solver} knows"
                    raise InputError("solver_options", f"{name}: {error}", remedy) from error
                return f"{name}: {error}".splitlines()[0][:200]
        return str(problem.status)
