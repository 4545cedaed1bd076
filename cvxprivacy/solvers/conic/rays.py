"""The linear program over rays in CVXPY, for the most useful release."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.solvers.useful import Master

__all__ = ["WeightsProblem", "weights_program"]

_MOST = 10_000  # weights


class WeightsProblem(cp.Problem):  # type: ignore[misc]  # CVXPY has no types
    """max Σ α μ(r) over weights α ≥ 0 of rays; ``rays`` has one in each row."""

    def __init__(self, master: Master) -> None:
        self.rays, self.typed = master.rays, dict[str, cp.Parameter]()
        classes = master.costs.shape[2]
        alpha = cp.Variable((len(self.rays), classes), name="alpha", nonneg=True)
        weights = cp.sum(alpha, axis=1)
        constraints = [(self.rays.T @ weights == np.ones(master.program.n)).set_label("mass")]
        for (name, row), cost, bound in zip(
            master.rows.items(), master.costs, master.bounds, strict=True
        ):
            spent = cp.sum(cp.multiply(self.rays @ cost, alpha))
            compared = spent <= bound if row.sense == "<=" else spent == bound
            constraints.append(compared.set_label(name))
        super().__init__(cp.Maximize(master.values @ weights), constraints)


def weights_program(master: Master) -> WeightsProblem:
    """Return the linear program of all columns.

    Raises
    ------
    InputError
        For more than 10,000 weights.
    """
    count = master.count
    if count > _MOST:
        problem = f"{count:,} weights of rays to look at in CVXPY"
        raise InputError("source", problem, "take fewer letters; solve() needs no such table")
    return WeightsProblem(master)
