"""The one place where a solver of CVXPY is called: whatever it does is an answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import cvxpy as cp

from cvxprivacy.errors import InputError

__all__ = ["installed_solvers", "run"]


def installed_solvers() -> list[str]:
    """Return the installed solvers that have exponential cones."""
    known = {"CLARABEL", "SCS", "ECOS", "MOSEK", "CUCLARABEL", "QICS"}
    return [name for name in cp.installed_solvers() if name in known]


def run(
    problem: cp.Problem,
    solver: str,
    options: Mapping[str, Any],
    *,
    verbose: bool = False,
    user: bool = False,
) -> str:
    """Run a solver once; return what it said of itself, which nothing depends on.

    A crash of the solver is an answer too: its message is returned, and the variables keep no
    value.  ``user`` says that some of the options are the user's own, who should hear of a
    misspelled one.
    """
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
