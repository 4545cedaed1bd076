r"""Linear programs with many rows of few letters, as metric privacy states them.

.. math:: \min_{K ≥ 0} ⟨C_0, K⟩ \quad\text{s.t.}\quad K 1 = 1, \quad
          \sum_s p(s)\, C_j(s)\, K(s, y) ≤ b_j \text{ for every } y

A block of one output is tridiagonal for letters on a line, and what a Newton step of the package's
own methods takes, n³ for each output, is lost on it.  Clarabel factors the sparse system.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.settings import SparseRows
from cvxprivacy.solvers.watch import Watch

__all__ = ["optimum", "pays"]


def pays(program: ChannelProgram) -> bool:
    """Tell whether a program is linear, with as many rows of each output as letters or more."""
    numbers = SparseRows.current()
    terms = [*program.objectives.values(), *(r.expression for r in program.constraints.values())]
    if program.n < numbers.letters or len(program.objectives) > 1 or program.auxiliaries:
        return False
    if any(term.weights for term in terms) or not program.dense:
        return False
    rows = [row for row in program.constraints.values() if row.per_output]
    if len(rows) < program.n:
        return False
    count = sum(int((program.cost(row.expression)[:, 0] != 0).sum()) for row in rows)
    return count <= numbers.share * program.n * len(rows)


def optimum(program: ChannelProgram, watch: Watch) -> tuple[FloatArray, Dual, str]:
    """Return the channel and the multipliers that Clarabel has in the end, and its own words."""
    import clarabel

    n, m = program.n, program.m
    (objective,) = program.objectives.values()
    mass = program.mass[:, None]
    left: list[Any] = [sparse.kron(sparse.eye_array(n), np.ones((1, m)))]
    right, equal = [np.ones(n)], [True]
    for row in program.constraints.values():
        cost = mass * program.cost(row.expression)
        if row.per_output:  # diagonal in the output
            s, y = np.nonzero(cost)
            left.append(sparse.csr_array((cost[s, y], (y, s * m + y)), shape=(m, n * m)))
            right.append(row.bounds(m))
        else:
            left.append(sparse.csr_array(cost.reshape(1, -1)))
            right.append(np.array([float(row.bounds(m)) - float(row.expression.constant)]))
        equal.append(row.sense == "==")
    low = np.zeros((n, m)) if program.floor is None else program.floor
    bounds = [(-1.0, -low)] + ([] if program.ceiling is None else [(1.0, program.ceiling)])
    for sign, ends in bounds:
        left.append(sign * sparse.eye_array(n * m))
        right.append(ends.ravel())
        equal.append(False)
    cones = [
        (clarabel.ZeroConeT if zero else clarabel.NonnegativeConeT)(len(b))
        for zero, b in zip(equal, right, strict=True)
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = watch.verbose
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, SparseRows.current().tolerance)
    if watch.limit is not None:
        settings.time_limit = max(watch.left, 1e-3)
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((n * m, n * m)),
        (mass * program.cost(objective)).ravel(),
        sparse.csc_matrix(sparse.vstack(left)),
        np.concatenate(right),
        cones,
        settings,
    ).solve()
    ends = np.cumsum([len(b) for b in right])
    prices = np.split(np.array(solution.z), ends[:-1])[1 : 1 + len(program.constraints)]
    multipliers: dict[str, Any] = {}
    for (name, row), price in zip(program.constraints.items(), prices, strict=True):
        multipliers[name] = price if row.per_output else float(price[0])
    channel = raised(program, np.array(solution.x).reshape(n, m))
    words = f"Clarabel, sparse rows: {solution.status}, {solution.iterations} steps"
    return channel, Dual({}, multipliers), words


def raised(program: ChannelProgram, channel: FloatArray) -> FloatArray:
    """Return a channel near one in which all ratios hold, if every row is K(a, y) ≤ g K(b, y).

    Entries that the solver cannot tell from 0 break such rows, and to mix a constant in until they
    hold costs the diameter of the letters: so K(b, y) is raised to K(a, y)/g.  What rows of the
    channel then lack of 1, nearly the same for all letters, goes to the outputs by their marginal.
    """
    numbers = SparseRows.current()
    pairs, mass = [], program.mass[:, None]
    for row in program.constraints.values():
        cost = mass * program.cost(row.expression)
        s = np.flatnonzero(cost.any(axis=1))
        zero = row.per_output and row.sense == "<=" and not row.bounds(program.m).any()
        if not zero or len(s) != 2 or not (cost[s].prod(axis=0) < 0).all():
            return channel
        a, b = s if (cost[s[0]] > 0).all() else s[::-1]
        pairs.append((a, b, -cost[a] / cost[b]))
    least = min(float((1 / ratio).min()) for *_, ratio in pairs)  # g
    if program.floor is not None or program.ceiling is not None or least <= 1:
        return channel
    closed = np.clip(channel, 0.0, 1.0)
    for _ in range(numbers.sweeps):
        before = closed.copy()
        for a, b, ratio in (*pairs, *reversed(pairs)):
            np.maximum(closed[b], closed[a] * ratio, out=closed[b])
        if (closed <= before * (1 + 1e-15)).all():
            break
    sums = closed.sum(axis=1)
    off = float(np.ptp(sums) / sums.max()) + 1e-15
    share = numbers.ratio_factor * off / (least - 1)
    closed *= (1 - share) / sums.max()
    lacking = 1 - closed.sum(axis=1, keepdims=True)
    return closed + lacking * (program.mass @ closed) / (program.mass @ closed).sum()
