"""What scripts are measured against: CVXPY's own words, sums by hand."""

from __future__ import annotations

import math
import warnings

import cvxpy as cp
import numpy as np
from scipy.special import rel_entr

import cvxprivacy as cpv
from cvxprivacy.typing import GaussianSolution

BITS = np.log(2.0)


def plogp(masses) -> float:
    """Σ p log₂ p, one by one."""
    return math.fsum(p * math.log2(p) for p in np.ravel(masses).tolist() if p > 0)


def h(p: float) -> float:
    """Binary entropy in bits."""
    return -plogp([p, 1 - p])


def star(a: float, b: float) -> float:
    """Chance of one flip in two: a (1 − b) + b (1 − a)."""
    return a * (1 - b) + b * (1 - a)


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


def proved(solution: GaussianSolution) -> None:
    """Raise AssertionError unless the proof holds and is tight."""
    assert solution.status == "certified", solution
    assert solution.lower <= solution.upper <= solution.lower + 1e-6
    assert solution.certificate.verify()


def program(
    law: np.ndarray, w: list[int], x: list[int], budget: float, weights: np.ndarray
) -> float:
    """Solve the covariance program as it is written, from the joint covariance."""
    ours, cross = law[np.ix_(x, x)], law[np.ix_(w, x)]
    b = np.linalg.solve(ours, cross.T).T
    s = law[np.ix_(w, w)] - b @ cross.T
    sigma = cp.Variable(ours.shape, symmetric=True)
    inner = (s + s.T) / 2 + b @ sigma @ b.T
    rules = [sigma >> 0, ours - sigma >> 0, weights @ cp.diag(sigma) <= budget]
    after = solved(cp.Maximize(cp.log_det((inner + inner.T) / 2)), rules)
    return (np.linalg.slogdet(law[np.ix_(w, w)])[1] - after) / 2 / BITS


def revealed(law: np.ndarray, w: list[int], x: list[int], release: cpv.GaussianRelease) -> float:
    """I(W; X̂) in bits of Gaussians, from what the release does: X̂ = gain X + noise."""
    ours, cross = law[np.ix_(x, x)], law[np.ix_(w, x)] @ release.gain.T
    recorded = release.gain @ ours @ release.gain.T + release.noise
    after = (
        law[np.ix_(w, w)] - cross @ np.linalg.pinv(recorded, rcond=1e-9, hermitian=True) @ cross.T
    )
    before = np.linalg.slogdet(law[np.ix_(w, w)])[1]
    return (before - np.linalg.slogdet(after)[1]) / 2 / BITS
