"""Moving mass at least cost: a plan in floats, and what it proves of the least cost.

Needs the standard library and python-flint only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from flint import arb

from .balls import smallest, total

__all__ = ["exact_cost", "least_cost", "moved", "plan", "worth"]

_PATHS = 8  # of a plan, for each value: two or three are enough

Costs = Sequence[Sequence[float]]


def least_cost(supply: Sequence[arb], demand: Sequence[arb], cost: Sequence[Sequence[arb]]) -> arb:
    """Enclose the least cost of moving masses ≥ 0 to others of the same sum.

    Above by a plan: what it moves too much is taken off, and what is left pays the greatest cost.
    Below by the prices that come with it.
    """
    # floats find both, and prove neither: each is evaluated in balls
    floats = [[float(c) for c in row] for row in cost]
    flow, prices = plan([float(x) for x in supply], [float(x) for x in demand], floats)
    rows = ([arb(x) for x in row] for row in flow)
    moved = [_at_most(row, most) for row, most in zip(rows, supply, strict=True)]
    columns = (_at_most(c, d) for c, d in zip(zip(*moved, strict=True), demand, strict=True))
    # after rows and columns were cut to what there is, the plan is a part of a feasible one
    paid, remainder, largest = arb(0), total(supply), arb(0)
    for to, column in enumerate(columns):
        for x, row in zip(column, cost, strict=True):
            paid, remainder = paid + x * row[to], remainder - x
            largest = largest.max(row[to])
    above = paid + remainder.max(arb(0)) * largest
    # the dual of (P12): any prices f, with the g that they allow
    below = total(s * x for s, x in zip(map(arb, prices), supply, strict=True))
    below += total(g * x for g, x in zip(worth(prices, cost), demand, strict=True))
    return below.union(above)


def exact_cost(
    supply: Sequence[int], demand: Sequence[int], cost: Sequence[Sequence[int]]
) -> int | None:
    """Return the least cost in whole numbers; None if no plan was made that prices prove."""
    flow, prices = plan(supply, demand, cost)
    columns = list(zip(*cost, strict=True))
    best = [min(map(operator.sub, column, prices)) for column in columns]  # g, as in ``worth``
    pairs = zip(flow, cost, strict=True)
    paid = sum(sum(map(operator.mul, row, costs)) for row, costs in pairs)
    proved = sum(map(operator.mul, prices, supply)) + sum(map(operator.mul, best, demand))
    ends = list(map(sum, flow)), list(map(sum, zip(*flow, strict=True)))
    # a plan and prices of one value: each proves the other to be the best
    least = min(map(min, flow)) >= 0 and ends == (list(supply), list(demand)) and paid == proved
    return paid if least else None


def moved(supply: Sequence[Any], demand: Sequence[Any], steps: Sequence[int], none: Any) -> Any:
    """Return the least cost on a line: Σ_k step_k |Σ_{v ≤ k} (supply − demand)|.

    A unit crosses from k to k + 1 for each that is too much up to k, and none needs to cross twice.
    """
    # strict=False below: past the last value nothing is left to pass
    beyond = accumulate(map(operator.sub, supply, demand))
    return sum((step * abs(x) for step, x in zip(steps, beyond, strict=False)), none)


def worth(prices: Sequence[float], cost: Sequence[Sequence[arb]]) -> list[arb]:
    """Return the most that each demand may be worth, given what each supply is: no edge gains."""
    columns = zip(*cost, strict=True)
    return [smallest([c - f for c, f in zip(column, prices, strict=True)]) for column in columns]


def _at_most(values: Sequence[arb], most: arb) -> list[arb]:
    """Return numbers ≥ 0 that are made less, where their sum may exceed the most."""
    mass = total(values)
    if mass <= most:
        return list(values)
    # by the least that there may be: what a plan moves must be there, for all numbers in the balls
    share = (most.lower().max(arb(0)) / mass).min(arb(1))
    return [x * share for x in values]


# ---- a plan ------------------------------------------------------------------------------


def plan(
    supply: Sequence[float], demand: Sequence[float], cost: Costs
) -> tuple[list[list[float]], list[float]]:
    """Return how much to move from where to where, and what a unit of each supply is worth.

    By shortest augmenting paths; of least cost but for rounding, on which no proof relies.
    """
    left, wanted, n = list(supply), list(demand), len(supply)
    none = supply[0] * 0  # floats stay floats, and whole numbers whole
    flow = [[none] * n for _ in range(n)]
    # prices with which no edge has a negative length, as Dijkstra's algorithm needs it
    out, into = [none] * n, [min(column) for column in zip(*cost, strict=True)]
    for _ in range(_PATHS * n):  # rounding may not make it go on for ever
        nearest = _nearest(left, wanted, flow, cost, (out, into))
        if nearest is None:
            break
        path, rows, columns = nearest
        start, end = path[0][0], path[-1][1]
        moved = min(left[start], wanted[end], *(flow[i][j] for i, j in path[1::2]))
        for step, (i, j) in enumerate(path):
            flow[i][j] += -moved if step % 2 else moved
        left[start], wanted[end] = left[start] - moved, wanted[end] - moved
        # distances beyond the end are cut to its own: lengths stay ≥ 0 without a search to the last
        out = [u + min(d, columns[end]) for u, d in zip(out, rows, strict=True)]
        into = [v + min(d, columns[end]) for v, d in zip(into, columns, strict=True)]
    return flow, [-u for u in out]


def _nearest(
    left: Sequence[float],
    wanted: Sequence[float],
    flow: Costs,
    cost: Costs,
    prices: tuple[Sequence[float], Sequence[float]],
) -> tuple[list[tuple[int, int]], list[float], list[float]] | None:
    """Return a path to the nearest demand that is left, and all distances; None if there is none.

    Dijkstra's algorithm from every supply that is left; every second edge is taken back.
    """
    n, (out, into) = len(left), prices
    far = [0 if x > 0 else math.inf for x in left] + [math.inf] * n  # supplies, then demands
    before, open_ = [-1] * (2 * n), set(range(2 * n))
    while open_:
        node = min(open_, key=far.__getitem__)
        if far[node] == math.inf:
            return None
        open_.remove(node)
        if node < n:
            level = out[node]
            # a length below 0 is rounding, which must not make the search turn back
            lengths = (max(c + level - v, 0) for c, v in zip(cost[node], into, strict=True))
            edges = list(enumerate(lengths, n))
        elif wanted[node - n] > 0:
            path = []
            while before[node] >= 0:
                i, j = min(node, before[node]), max(node, before[node]) - n
                path.append((i, j))
                node = before[node]
            return path[::-1], far[:n], far[n:]
        else:
            edges = [(i, 0) for i in range(n) if flow[i][node - n] > 0]  # used ones have length 0
        for other, length in edges:
            if other in open_ and far[node] + length < far[other]:
                far[other], before[other] = far[node] + length, node
    return None
