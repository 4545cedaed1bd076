r"""Deterministic generalisation: the special channels in which every x has one x̃.

Among groupings of an ordered attribute into intervals the best is found exactly, by dynamic
programming over cut points:

.. math::
   \begin{aligned}
   \max_{\text{cuts}} \quad & I(X̃; W) = Σ_g p(g) I_1(g)
       \qquad\text{or}\qquad \min Σ_g \min_{x̂} Σ_{x ∈ g} p(x) d(x, x̂) \\
   \text{s.t.} \quad & \text{every group } g \text{ satisfies the criteria, such as }
       I_1(g) ≤ t,\; H(W|g) ≥ \log ℓ,\; N_g ≥ k
   \end{aligned}

Both objectives are sums over groups, and the criteria speak of one group each (Bezzi 2010, §4,
where the search was heuristic).  Best means best among intervals, each of which satisfies the
criteria by itself: other groupings, of letters that are no neighbours, are not searched, nor are
intervals that satisfy them only together with others that are released as the same letter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.base import criteria_listed
from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.tables.bins import Bins, short
from cvxprivacy.validation import integer
from cvxprivacy_sdc.recoding.generalisation import (
    Generalisation,
    allowed,
    checked,
    counted,
    fitted_to,
    parted,
    represented,
)

__all__ = ["cuts_by_number", "optimal_intervals"]

MOST_LETTERS = 3_000  # of an attribute cut into intervals: all pairs of cuts are visited


def optimal_intervals(
    source: DiscreteSource,
    criteria: Sequence[Criterion] = (),
    *,
    groups: int | None = None,
    distortion: Distortion | None = None,
    units: str = "bits",
) -> Generalisation:
    """Cut an ordered attribute into the best intervals, each of which satisfies the criteria.

    Parameters
    ----------
    source : DiscreteSource
        Its key letters are taken in their order: one attribute of numbers, bins, or ordered
        classes, without a missing value.
    criteria : sequence of Criterion
        Per letter: ``TCloseness``, ``LDiversity``, ``KAnonymity``, ``DeltaDisclosure``.
    groups : int, optional
        Exactly this number of intervals; by default any.
    distortion : Distortion, optional
        Minimise E d(X, X̂), each group released as its best letter, instead of maximising
        I(X̃; W).  Intervals released as one letter are one group in the end, but each had to
        satisfy the criteria by itself.
    units : {"bits", "nats"}
        Of information, in the criteria and in what is returned.

    Returns
    -------
    Generalisation
        The intervals, their information or distortion, and how they stand.

    Raises
    ------
    InputError
        If no grouping satisfies the criteria, or for criteria that are not per letter.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> source = cpv.DiscreteSource.from_counts([[9, 8, 2, 1], [1, 2, 8, 9]])
    >>> sdc.optimal_intervals(source, [cpv.KAnonymity(20)]).groups
    ['[0, 1]', '[0, 1]', '[2, 3]', '[2, 3]']
    """
    criteria = criteria_listed(criteria)
    checked(source, criteria, units)
    _one_axis(source)
    support = np.flatnonzero(source.joint.sum(axis=0) > 0)
    n = len(support)
    if n > MOST_LETTERS:
        remedy = f"bin it: {MOST_LETTERS:,} are allowed"
        raise InputError("source", f"{n:,} key letters", remedy, value=n)
    most = n if groups is None else integer(groups, "groups", least=1)
    if most > n:
        raise InputError("groups", f"{most} of {n} letters", f"pass at most {n}", value=most)
    measure = fitted_to(source, distortion)
    gain = _gains(source, criteria, support, units, measure)
    edges = _best_cuts(gain, groups)
    if edges is None:
        wanted = "intervals" if groups is None else f"{most} intervals"
        problem = f"no {wanted} satisfy the criteria"
        if measure is not None and np.isinf(measure.matrix).any():
            problem += " without a move of infinite distortion"
        remedy = "allow another number of groups, or relax the criteria"
        raise InputError("groups", problem, remedy, value=most)
    names = _names(source, [(support[a], support[b - 1]) for a, b in pairwise(edges)])
    starts = [0, *support[edges[1:-1]], len(source.x)]  # letters without mass go along
    released = [
        name for name, (first, stop) in zip(names, pairwise(starts), strict=True)
        for _ in range(first, stop)
    ]  # fmt: skip
    cost = None
    if measure is not None:
        released, cost = represented(source, measure, released)
    return Generalisation(source, released, tuple(criteria), units, cost)


def _best_cuts(gain: np.ndarray, groups: int | None) -> list[int] | None:
    """Return the edges of the intervals of the greatest gain: of any number, or of ``groups``.

    ``value[j]`` is the most that the letters before j add: in any number of groups, which one
    pass from left to right finds.
    """
    if groups is not None:
        return cuts_by_number(gain, groups)[-1]
    n = len(gain)
    value = np.full(n + 1, -math.inf)
    value[0] = 0.0
    cuts = np.zeros(n + 1, int)
    for j in range(1, n + 1):
        options = value[:j] + gain[:j, j - 1]
        cuts[j] = int(options.argmax())
        value[j] = options[cuts[j]]
    if value[n] == -math.inf:
        return None
    edges = [n]
    while edges[0]:
        edges.insert(0, int(cuts[edges[0]]))
    return edges


def cuts_by_number(gain: np.ndarray, most: int) -> list[list[int] | None]:
    """Return the edges of 1, 2, …, ``most`` intervals of the greatest gain, None where none are.

    Parameters
    ----------
    gain : ndarray, shape (n, n)
        Entry (first, last) is what the interval of these letters adds, −∞ if it is not allowed.
    most : int
        At most n.
    """
    n = len(gain)
    value = np.full(n + 1, -math.inf)
    value[0] = 0.0
    cuts: list[np.ndarray] = []  # where the last group begins, by number of groups
    by_number: list[list[int] | None] = []
    for number in range(1, most + 1):
        options = value[:-1, None] + gain
        cuts.append(np.concatenate([[0], options.argmax(axis=0)]))
        value = np.concatenate([[-math.inf], options.max(axis=0)])
        edges = [n]
        for before in reversed(cuts[:number] if value[n] > -math.inf else []):
            edges.insert(0, int(before[edges[0]]))
        by_number.append(edges if len(edges) > 1 else None)
    return by_number


def _gains(
    source: DiscreteSource,
    criteria: Sequence[Criterion],
    support: np.ndarray,
    units: str,
    measure: Distortion | None,
) -> np.ndarray:
    """Return what the group of letters first … last adds, −∞ if it is not allowed.

    That is also where no letter is one that all of them may be released as.
    """
    table = counted(source, source.joint[:, support])
    n, mass = len(support), table.sum()
    prior = table.sum(axis=1, keepdims=True) / mass
    before = np.insert(table.cumsum(axis=1), 0, 0.0, axis=1)
    if measure is not None:
        finite, forbidden = (part[support] for part in parted(measure))
        weighted = (table.sum(axis=0) / mass)[:, None] * finite
        costs = np.insert(weighted.cumsum(axis=0), 0, 0.0, axis=0)
        barred = np.insert(forbidden.cumsum(axis=0), 0, 0, axis=0)
    gain = np.full((n, n), -math.inf)
    for first in range(n):
        groups = before[:, first + 1 :] - before[:, first : first + 1]
        if measure is None:
            records = groups.sum(axis=0)
            ratio = np.divide(groups, prior * records, out=np.ones_like(groups), where=groups > 0)
            added = (groups * np.log(ratio)).sum(axis=0) / mass
        else:
            possible = barred[first + 1 :] == barred[first]
            added = -np.where(possible, costs[first + 1 :] - costs[first], np.inf).min(axis=1)
        satisfied = allowed(source, criteria, groups, units)
        gain[first, first:] = np.where(satisfied, added, -math.inf)
    return gain


def _one_axis(source: DiscreteSource) -> None:
    """Refuse letters of several columns, and a missing one: they have no place on a line."""
    several = source.schema is not None and len(source.schema.key) > 1
    if several or None in source.x:
        problem = "a missing value has no place in an order"
        if several:
            problem = f"{source.names[1]}: letters of several columns have no order"
        remedy = "make the source of one key column, without missing values"
        raise InputError("source", problem, remedy)


def _names(source: DiscreteSource, intervals: Sequence[tuple[int, int]]) -> list[Any]:
    """Name intervals by their first and last letter, bins by their edges; a lone letter is itself.

    All are text as soon as one is.
    """
    if all(first == last for first, last in intervals):
        return [source.x[first] for first, _ in intervals]
    schema = source.schema
    bins = None if schema is None else schema.bins.get(schema.key[0])

    def named(first: Any, last: Any) -> str:
        if isinstance(bins, Bins):
            at = [bins.labels.index(letter) for letter in (first, last)]
            return Bins((bins.edges[at[0]], bins.edges[at[1] + 1])).labels[0]
        low, high = (short(v) if isinstance(v, float) else str(v) for v in (first, last))
        return low if first == last else f"[{low}, {high}]"

    names = [named(source.x[first], source.x[last]) for first, last in intervals]
    twice = next((label for i, label in enumerate(names) if label in names[:i]), None)
    if twice is not None:
        remedy = "give the key letters names that differ as text"
        raise InputError("source", f"two intervals would be called {twice!r}", remedy)
    return names
