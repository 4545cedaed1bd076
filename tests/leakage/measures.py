"""The measures, with their definitions once more, written out for a matrix p(w, x̂)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog

import cvxprivacy as cpv
from tests.lengths import rest_at_length

Law = np.ndarray
MATRIX = [[0.944, 0.359, 0.785], [0.294, 0.923, 0.869], [-0.973, 0.225, 1.805], [0.3, 0.3, 0.3]]
GROUND = [[0, 1, 3], [0.5, 0, 0.25], [2, 2, 0]]  # neither symmetric nor a metric


def ratios(law: Law) -> tuple[Law, Law]:
    """Return p(w) p(x̂), and p(w, x̂) over that."""
    free = law.sum(axis=1, keepdims=True) * law.sum(axis=0)
    return free, np.divide(law, free, out=np.ones_like(law), where=free > 0)


def moved(law: Law, ground: Any) -> float:
    """Return Σ_x̂ of the least cost of moving p(·, x̂) to p(·) p(x̂), by linear programs."""
    free, size = ratios(law)[0], len(law)
    ends = np.vstack([np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))])
    columns = [(j, f / f.sum()) for j, f in zip(law.T, free.T, strict=True) if f.sum() > 0]
    return sum(
        j.sum() * linprog(np.ravel(ground), A_eq=ends[:-1], b_eq=np.r_[j / j.sum(), p[:-1]]).fun
        for j, p in columns
    )


def ordered(size: int) -> Law:
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / (size - 1)


def f_information(f: Callable[[Law], Law]) -> Callable[[Law], float]:
    def value(law: Law) -> float:
        free, ratio = ratios(law)
        return float((free * f(ratio)).sum())

    return value


def sibson(order: float) -> Callable[[Law], float]:
    def value(law: Law) -> float:
        prior = law.sum(axis=1, keepdims=True)
        return float(((prior ** (1 - order) * law**order).sum(axis=0) ** (1 / order)).sum())

    return value


def xlogx(x: Law) -> Law:
    return x * np.log(np.where(x > 0, x, 1.0))


def power_of(a: float) -> Callable[[Law], Law]:
    return lambda t: (t**a - 1 - a * (t - 1)) / (a * (a - 1))


def of_terms(t: Law) -> Law:
    square = 2 * (t - 3) ** 2 / (t + 0.5) - 8 / 1.5
    return xlogx((t + 1) / 2) + square - (2 * t + 1) ** 0.4 + 3**0.4


TERMS = [(1, 1, 0.5, 0.5, 0, 1), (2, 2, 1, -3, 1, 0.5), (1, 0.4, 2, 1, 0, 1)]
MEASURES: dict[str, tuple[cpv.leakage.Leakage, Callable[[Law], float]]] = {
    "information": (cpv.leakage.MutualInformation(), f_information(xlogx)),
    "chi-squared": (cpv.leakage.ChiSquared(), f_information(lambda t: (t - 1) ** 2)),
    "Hellinger": (cpv.leakage.SquaredHellinger(), f_information(lambda t: (1 - np.sqrt(t)) ** 2)),
    "variation": (cpv.leakage.TotalVariation(), f_information(lambda t: np.abs(t - 1) / 2)),
    "hockey": (cpv.leakage.HockeyStick(1.25), f_information(lambda t: np.maximum(t - 1.25, 0))),
    "Le Cam": (cpv.leakage.VinczeLeCam(), f_information(lambda t: (t - 1) ** 2 / (t + 1))),
    "Jensen": (
        cpv.leakage.JensenShannon(),
        f_information(lambda t: xlogx(t) / 2 - xlogx((t + 1) / 2)),
    ),
    "power 1.5": (cpv.leakage.PowerDivergence(1.5), f_information(power_of(1.5))),
    "power 0.3": (cpv.leakage.PowerDivergence(0.3), f_information(power_of(0.3))),
    "terms": (cpv.leakage.FInformation(TERMS), f_information(of_terms)),
    "ordered": (cpv.leakage.EarthMover(), lambda law: moved(law, ordered(len(law)))),
    "ground": (cpv.leakage.EarthMover(GROUND), lambda law: moved(law, GROUND)),
    "guess": (cpv.leakage.GuessingProbability(), lambda law: float(law.max(axis=0).sum())),
    "gain": (cpv.leakage.Gain(MATRIX), lambda law: float((MATRIX @ law).max(axis=0).sum())),
    "Sibson 2": (cpv.leakage.Sibson(2), sibson(2.0)),
    "Sibson 3.5": (cpv.leakage.Sibson(3.5), sibson(3.5)),
    "maximal": (
        cpv.leakage.Maximal("W"),
        lambda law: float((law / law.sum(axis=1, keepdims=True)).max(axis=0).sum()),
    ),
}


def powers(x: Any, y: Any, a: float) -> Any:
    """Return x^a y^(1 − a), convex for a > 1."""
    if a < 1:
        return cp.geo_mean(cp.hstack([x, y]), [a, 1 - a])
    assert a == 1.5
    return cp.quad_over_lin(x, cp.geo_mean(cp.hstack([x, y])))


def in_cvxpy(name: str, joint: Any, prior: Law) -> Any:
    """Return Σ_x̂ F of an expression p(w, x̂), by other atoms than the package's."""
    q, size, m = cp.sum(joint, axis=0), len(prior), joint.shape[1]
    pairs = [(joint[w, y], prior[w] * q[y]) for w in range(size) for y in range(m)]
    if name == "information":
        return sum(cp.kl_div(a, b) + a - b for a, b in pairs)
    if name == "chi-squared":
        return sum(cp.quad_over_lin(a, b) for a, b in pairs) - cp.sum(q)
    if name == "Hellinger":
        return 2 * cp.sum(q) - 2 * sum(cp.geo_mean(cp.hstack([a, b])) for a, b in pairs)
    if name == "Le Cam":  # (a + b) − 4 / (1/a + 1/b)
        return 2 * cp.sum(q) - 2 * sum(cp.harmonic_mean(cp.hstack(p)) for p in pairs)
    if name == "Jensen":
        return sum(cp.kl_div(x, (a + b) / 2) for a, b in pairs for x in (a, b)) / 2
    if name.startswith("power"):
        a = float(name.split()[1])
        return (sum(powers(j, e, a) for j, e in pairs) - cp.sum(q)) / (a * (a - 1))
    if name == "terms":
        first = sum(cp.kl_div((a + b) / 2, b) + (a + b) / 2 - b for a, b in pairs)
        second = sum(cp.quad_over_lin(a - 3 * b, a + b / 2) for a, b in pairs)
        third = sum(powers(2 * a + b, b, 0.4) for a, b in pairs)
        return first + 2 * second - third + cp.sum(q) * (3**0.4 - 8 / 1.5)
    if name == "variation":
        return sum(cp.abs(a - b) for a, b in pairs) / 2
    if name == "hockey":
        return sum(cp.maximum(a - 1.25 * b, 0) for a, b in pairs)
    if name == "ordered":  # distribution functions
        off = joint - prior[:, None] @ cp.reshape(q, (1, m), "C")
        return cp.sum(cp.abs(np.tril(np.ones((size, size))) @ off)) / (size - 1)
    if name == "ground":
        plans = [cp.Variable((size, size), nonneg=True) for _ in range(m)]
        penalty = sum(cp.sum(cp.multiply(np.array(GROUND), t)) for t in plans)
        ends = [cp.sum(t, axis=1) == joint[:, y] for y, t in enumerate(plans)]
        ends += [cp.sum(t, axis=0) == prior * q[y] for y, t in enumerate(plans)]
        return penalty, ends
    if name == "guess":
        return cp.sum(cp.max(joint, axis=0))
    if name == "gain":
        return cp.sum(cp.max(np.array(MATRIX) @ joint, axis=0))
    if name == "maximal":
        return sum(cp.max(cp.multiply(1 / prior, joint[:, y])) for y in range(m))
    order = float(name.split()[1])
    scale = prior ** (1 / order - 1)
    return sum(cp.pnorm(cp.multiply(scale, joint[:, y]), order) for y in range(m))


ALIKE = (
    "variation",
    "ordered",
    "power 0.3",
    "guess",
    "Sibson 3.5",
)  # there is another of that kind


def kinds_of(names: Iterable[str]) -> list[Any]:
    """Return names of measures, of which those of one kind more are for the long suite."""
    first, others = [], []
    for name in names:
        (others if name in ALIKE else first).append(name)
    return rest_at_length([*first, *others], len(first))
