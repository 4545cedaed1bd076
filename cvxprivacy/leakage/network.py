"""What masses are worth that are moved at least cost, by HiGHS' simplex, letter after letter.

The letters differ in their masses alone, so that the dual simplex goes on from the last basis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.highs import quiet_highs

__all__ = ["worth"]

_TOLERANCE = 1e-10  # the least that HiGHS takes, of masses of 1 and costs of at most 1
_CLOSE = 1e-11  # of the least cost, within which prices prove it, or they are not returned


def worth(costs: FloatArray, supply: FloatArray, demand: FloatArray) -> FloatArray:
    """Return f of the most Σ supply f + Σ demand g with f(v) + g(w) ≤ costs(v, w), by letter.

    Where no way over a third value is cheaper, mass moves over arcs between the values, and what
    a value has of its own demand stays; else from every value to each of another side.

    Parameters
    ----------
    costs : ndarray, shape (values, values)
        At least 0, and 0 on the diagonal.
    supply, demand : ndarray, shape (values, letters)
        Of each letter of one sum.

    Returns
    -------
    ndarray, shape (values, letters)
        NaN in letters for which the solver is not exact, as among costs of many sizes.
    """
    size, letters = supply.shape
    unit, mass = float(costs.max(initial=0.0)) or 1.0, supply.sum(axis=0)
    if all((costs[:, [u]] + costs[u] >= costs - 1e-12 * unit).all() for u in range(size)):
        nodes, (tail, head) = size, np.nonzero(~np.eye(size, dtype=bool))
        excess = supply - demand
    else:
        nodes, (tail, head) = 2 * size, np.indices((size, size)).reshape(2, -1)
        excess = np.vstack([supply, -demand])
    length = costs[tail, head] / unit
    if nodes > size:
        head = head + size
    excess = np.divide(excess, mass, out=np.zeros_like(excess), where=mass > 0)
    solver = _program(nodes, tail, head, length)
    prices = np.full((size, letters), np.nan)
    least = float(costs.min(initial=unit, where=costs > 0))
    for letter in range(letters):
        for node, amount in enumerate(excess[:-1, letter].tolist()):
            solver.changeRowBounds(node, amount, amount)
        solver.run()
        cost = solver.getInfo().objective_function_value * unit * mass[letter]
        price = np.append(solver.getSolution().row_dual, 0.0)[:size] * unit
        other = (costs - price[:, None]).min(axis=0)
        proved = price @ supply[:, letter] + other @ demand[:, letter]
        if abs(cost - proved) <= _CLOSE * cost + 1e-15 * least:
            prices[:, letter] = price
    return prices


def _program(nodes: int, tail: Any, head: Any, length: FloatArray) -> Any:
    """Return HiGHS with a flow along arcs, of what leaves each node but the last, which follows."""
    import highspy

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(tail), nodes - 1
    program.col_cost_, program.col_lower_ = length, np.zeros(len(tail))
    program.col_upper_ = np.full(len(tail), highspy.kHighsInf)
    program.row_lower_ = program.row_upper_ = np.zeros(nodes - 1)
    ends, signs = np.stack([tail, head], axis=1), np.tile([1.0, -1.0], (len(tail), 1))
    there = ends < nodes - 1
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_ = np.append(0, np.cumsum(there.sum(axis=1))).astype(np.int32)
    matrix.index_, matrix.value_ = ends[there].astype(np.int32), signs[there]
    solver = quiet_highs(
        presolve="off",
        solver="simplex",
        primal_feasibility_tolerance=_TOLERANCE,
        dual_feasibility_tolerance=_TOLERANCE,
    )
    solver.passModel(program)
    return solver
