r"""The capacity of a channel V: who believes what is told most by it.

.. math:: C = \max_{π : ⟨c, π⟩ ≤ Γ} I(π; V)
            = \min_{r,\, λ ≥ 0} \max_w \{ D(V_w \| r) - λ c_w \} + λ Γ

Any π that costs no more than Γ proves a lower end, any r and λ an upper one.  Shannon, *A
mathematical theory of communication*, 1948; the right-hand side is that of Gallager and of
Csiszár.  Proposed by the iteration of Arimoto and of Blahut (IEEE Transactions on Information
Theory 18, 1972), and by Newton's method on the inputs that it leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb, ctx

from cvxprivacy.exact import TINY, Exact, FloatArray, Real, floats, rational
from cvxprivacy_verifier.balls import PRECISION, ball, ceil, floor, total

__all__ = ["ProvedCapacity", "best_prior", "capacity_of_table", "proved_capacity"]

_ITERATIONS = 200  # of Arimoto and Blahut, which converge slowly where inputs run to 0
_USED = 1e-7  # prior of an input that counts
_STEPS = 200  # of Newton's method, each with another set of them, at most
_ROUNDED = 1e-13  # how even divergences are enough
_RIDGE = 1e-10  # where more inputs count than there are outputs, the farthest gain and others go
_INSIDE = 0.99  # share of the way to a prior of 0
_GONE = 1e-14  # … and what counts as none
_STEEP = 1e9  # the greatest price that is looked for
_SHORT = 2**60  # the denominator of a prior that is evaluated
_SOME = 2.0**-40  # of the uniform law in r: an output that no prior favours is used all the same


class ProvedCapacity(NamedTuple):
    """Both ends in nats, the prior that proves one, and the law and the price that prove the other.

    Attributes
    ----------
    lower, upper : arb
    prior : list of Fraction
    law : (m,) array
    price : float
    """

    lower: arb
    upper: arb
    prior: list[Fraction]
    law: FloatArray
    price: float

    def ends(self, units: str) -> tuple[float, float]:
        """Return both ends in bits or nats, rounded outwards."""
        with ctx.workprec(PRECISION):
            unit = arb(1) if units == "nats" else 1 / arb(2).log()
            return max(floor(self.lower * unit), 0.0), ceil(self.upper * unit)


def best_prior(
    rows: FloatArray, cost: FloatArray | None = None, at_most: float = 0.0
) -> tuple[FloatArray, float]:
    """Return a prior π that nearly maximises I(π; V), ⟨c, π⟩ ≤ Γ, and the multiplier of that.

    Parameters
    ----------
    rows : (n, m) array
        V, a law of outputs for each input.
    cost : (n,) array, optional
        c.
    at_most : float
        Γ.
    """
    negentropy = np.where(rows > 0, rows * np.log(np.where(rows > 0, rows, 1.0)), 0.0).sum(axis=1)
    prior, price = np.full(len(rows), 1.0 / len(rows)), 0.0
    for _ in range(_ITERATIONS):
        prior, price = _tilted(prior, _beyond(rows, negentropy, prior), cost, at_most)
    return _polished(rows, negentropy, prior, price, cost, at_most)


def _beyond(rows: FloatArray, negentropy: FloatArray, prior: FloatArray) -> FloatArray:
    """Return D(V_w ‖ πV) of each input."""
    # outputs of unused inputs alone: far away, and no infinity that others are subtracted from
    return np.asarray(negentropy - rows @ np.log(np.maximum(prior @ rows, TINY)))


def _tilted(
    prior: FloatArray, beyond: FloatArray, cost: FloatArray | None, at_most: float
) -> tuple[FloatArray, float]:
    """Return π e^{D − λc}, normalised, with the least λ ≥ 0 at which it costs no more than Γ."""

    def at(price: float) -> FloatArray:
        charged = beyond if cost is None else beyond - price * cost
        grown = prior * np.exp(charged - charged.max())
        return np.asarray(grown / grown.sum())

    def over(price: float) -> float:
        return 0.0 if cost is None else float(cost @ at(price)) - at_most

    if over(0.0) <= 0.0:
        return at(0.0), 0.0
    from scipy.optimize import brentq  # which commands that compute no capacity do not wait for

    high = 1.0
    while over(high) > 0.0 and high < _STEEP:
        high *= 8.0
    price = high if over(high) >= 0.0 else float(brentq(over, 0.0, high))
    return at(price), price


def _polished(
    rows: FloatArray,
    negentropy: FloatArray,
    prior: FloatArray,
    price: float,
    cost: FloatArray | None,
    at_most: float,
) -> tuple[FloatArray, float]:
    """Make D(V_w ‖ πV) − λ c_w the same for all inputs that count, by Newton's method.

    Those whose π runs to 0 are left out, those that are farther away than all others taken in.
    """
    priced = cost is not None and price > _USED
    charge = np.zeros(len(rows)) if cost is None else cost
    used = prior > _USED
    best = np.where(used, prior, 0.0)
    best /= best.sum()
    for _ in range(_STEPS):
        law = best @ rows
        beyond = _beyond(rows, negentropy, best) - price * charge
        level = float(best[used] @ beyond[used])
        farthest = int(np.where(used, -np.inf, beyond).argmax())
        even = np.ptp(beyond[used]) < _ROUNDED * (1.0 + abs(level))
        over = cost is not None and float(charge @ best) > at_most + _ROUNDED
        if even and (price < 0 if priced else over):  # less is to be spent, or not so much
            priced, price = not priced, 0.0
            continue
        if even and (used[farthest] or beyond[farthest] <= level + _ROUNDED):
            break
        if even:
            used[farthest] = True
            best = (1.0 - _USED) * best
            best[farthest] = _USED
            continue
        # unknown: π on the inputs that count, the level C, and λ where the cost binds
        there, binds = law > 0, bool(priced and np.ptp(charge[used]) > 0)
        some, count = rows[np.ix_(used, there)], int(used.sum())
        system, right = np.zeros((count + 1 + binds,) * 2), np.zeros(count + 1 + binds)
        system[:count, :count] = (some / law[there]) @ some.T + _RIDGE * np.eye(count)
        system[:count, count] = system[count, :count] = 1.0
        right[:count] = beyond[used] - level
        if binds:
            system[:count, -1] = system[-1, :count] = charge[used]
            right[-1] = at_most - charge @ best
        change = np.linalg.solve(system, right)
        step = change[:count]
        falls = step < 0
        length = min(1.0, *(_INSIDE * best[used][falls] / -step[falls])) if falls.any() else 1.0
        best[used] += length * step
        price += length * float(change[-1]) if binds else 0.0
        used &= best > _GONE
        best = np.where(used, best, 0.0)
        best /= best.sum()
    return best, max(price, 0.0)


def proved_capacity(
    rows: Sequence[Sequence[Fraction]], cost: Exact | None = None, at_most: Real = 0
) -> ProvedCapacity:
    """Return the capacity of exact rows, each of sum 1, with what proves both ends.

    Parameters
    ----------
    rows : (n, m) Fractions
        V.
    cost : (n,) array, optional
        c, each the rational that it is.
    at_most : number
        Γ ≥ min c.
    """
    table = np.array([[float(p) for p in row] for row in rows])
    unit, span, limit = None, 1.0, 0.0
    if cost is not None:  # costs from 0 to 1: of other sizes no price would be found
        near = floats(cost)
        low, span = float(near.min()), float(np.ptp(near)) or 1.0
        unit, limit = (near - low) / span, (float(at_most) - low) / span
    prior, price = best_prior(table, unit, limit)
    exact = _affordable(prior, cost, at_most)
    law = (1 - _SOME) * (np.array([float(p) for p in exact]) @ table) + _SOME / table.shape[1]
    if unit is not None:
        price = _best_price(table, law / law.sum(), unit, limit) / span
    with ctx.workprec(PRECISION):  # other code may have changed what is one for all
        lower, upper = _ends(rows, exact, law, cost, at_most, price)
    return ProvedCapacity(lower, upper, exact, law, price)


def capacity_of_table(joint: Sequence[Sequence[Real]]) -> ProvedCapacity:
    """Return the capacity of W → X̂ of a table of masses, whose rows without mass do not count."""
    rows = [list(map(rational, row)) for row in joint if any(row)]
    return proved_capacity([[mass / sum(row) for mass in row] for row in rows])


def _best_price(rows: FloatArray, law: FloatArray, cost: FloatArray, at_most: float) -> float:
    """Return λ ≥ 0 at which max_w D(V_w ‖ r) − λ (c_w − Γ) is least, a maximum of lines."""
    from scipy.optimize import linprog

    safe = np.where(rows > 0, rows, 1.0)
    beyond = np.where(rows > 0, rows * np.log(safe / law), 0.0).sum(axis=1)
    lines = np.column_stack([at_most - cost, -np.ones(len(cost))])
    best = linprog([0.0, 1.0], lines, -beyond, bounds=[(0.0, None), (None, None)])
    # whatever a solver says: with λ < 0 nothing would be proved
    return 0.0 if best.x is None else max(float(best.x[0]), 0.0)


def _affordable(prior: FloatArray, charge: Exact | None, limit: Real) -> list[Fraction]:
    """Return a prior near one, of sum 1 exactly, that costs no more than the limit, exactly."""
    parts = [Fraction(round(p * _SHORT), _SHORT) for p in (prior / prior.sum()).tolist()]
    most = max(range(len(parts)), key=parts.__getitem__)
    parts[most] += 1 - sum(parts, Fraction(0))
    if charge is None:
        return parts
    costs = list(map(rational, charge.tolist()))
    over = sum((c * p for c, p in zip(costs, parts, strict=True)), Fraction(0)) - rational(limit)
    if over <= 0:
        return parts
    least = min(costs)
    cheap = [p if c == least else Fraction(0) for p, c in zip(parts, costs, strict=True)]
    if not any(cheap):
        cheap[costs.index(least)] = Fraction(1)
    share = over / (over + rational(limit) - least)  # of the cheapest inputs, mixed in
    mass = sum(cheap, Fraction(0))
    return [(1 - share) * p + share * q / mass for p, q in zip(parts, cheap, strict=True)]


def _ends(
    rows: Sequence[Sequence[Fraction]],
    prior: list[Fraction],
    law: FloatArray,
    charge: Exact | None,
    limit: Real,
    price: float,
) -> tuple[arb, arb]:
    """Return what π proves from below, and r and λ from above, in nats."""
    balls = [[ball(p) for p in row] for row in rows]
    shares = [ball(p) for p in prior]
    mixed = [
        sum((p * row[y] for p, row in zip(prior, rows, strict=True)), Fraction(0))
        for y in range(len(rows[0]))
    ]
    marginal = [ball(p) for p in mixed]
    lower = total(
        p * _divergence(row, marginal) for p, row in zip(shares, balls, strict=True) if p > 0
    )
    away = [ball(p) for p in map(Fraction, law.tolist())]
    norm = total(away)
    away = [p / norm for p in away]
    beyond = [_divergence(row, away) for row in balls]
    factor = arb(price)
    if charge is not None:
        beyond = [d - factor * ball(c) for d, c in zip(beyond, charge.tolist(), strict=True)]
    worst = beyond[0]
    for value in beyond[1:]:
        worst = worst.max(value)
    return lower, worst + (0 if charge is None else factor * ball(rational(limit)))


def _divergence(row: list[arb], law: list[arb]) -> arb:
    """Enclose D(V ‖ r)."""
    pairs = zip(row, law, strict=True)
    return total(v * (v / r).log() for v, r in pairs if not v.is_zero())
