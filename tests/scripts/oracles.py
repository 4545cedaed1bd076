"""What scripts are measured against: CVXPY's own words, SciPy's sums."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
from scipy.special import rel_entr

BITS = np.log(2.0)


def solved(objective: cp.Minimize | cp.Maximize, rules: list[cp.Constraint]) -> float:
    """Return the optimum of a program as it is written."""
    problem = cp.Problem(objective, rules)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # its value is compared
        problem.solve(solver="CLARABEL")
    assert problem.status in ("optimal", "optimal_inaccurate")
    return problem.value


def information(joint: cp.Expression, rows, columns) -> cp.Expression:
    """I in bits of a joint law with these marginals, column by column."""
    return cp.sum(cp.rel_entr(joint, cp.outer(rows, columns)), axis=0) / BITS


def letters(source, channel):
    """Return p(x̂), D(p(w | x̂) ‖ p(w)) and H(W | x̂) in bits, of the letters that are released."""
    joint = source.pmf @ channel
    joint = joint[:, joint.sum(axis=0) > 0]
    q = joint.sum(axis=0)
    i1 = rel_entr(joint, np.outer(source.p_w, q)).sum(axis=0) / q / BITS
    return q, i1, -rel_entr(joint / q, 1.0).sum(axis=0) / BITS
