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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cvxprivacy.criteria import Criterion, KAnonymity
from cvxprivacy.criteria.privacy import criteria_listed
from cvxprivacy.errors import InputError
from cvxprivacy.microdata.hierarchy import indicator, numbered
from cvxprivacy.microdata.measures import size, standing
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.information import entropy, mutual_information
from cvxprivacy.release.channel import Channel
from cvxprivacy.tables.bins import Bins, short
from cvxprivacy.validation import whole

__all__ = ["Generalisation", "optimal_intervals"]

MOST_LETTERS = 3_000  # of an attribute cut into intervals: all pairs of cuts are visited


@dataclass(frozen=True, eq=False)
class Generalisation:
    """A deterministic release, and how it stands.

    Attributes
    ----------
    source : DiscreteSource
    groups : list
        The released letter of each of the source's key letters.
    criteria : tuple of Criterion
    units : {"bits", "nats"}
    distortion : float or None
        E d(X, X̂), where one was minimised.
    levels : dict of str to int
        Level of each attribute's hierarchy, in a full-domain generalisation.
    minimal : list of dict
        All levels of a full-domain search that satisfy the criteria and no finer ones do.
    evaluated, nodes : int
        Generalisations looked at, of how many.
    """

    source: DiscreteSource
    groups: list[Any]
    criteria: tuple[Criterion, ...]
    units: str = "bits"
    distortion: float | None = None
    levels: Mapping[str, int] | None = None
    minimal: Sequence[Mapping[str, int]] = ()
    evaluated: int = 1
    nodes: int = 1

    @cached_property
    def outputs(self) -> list[Any]:
        """The released letters, in the order of the key letters."""
        return list(dict.fromkeys(self.groups))

    @cached_property
    def joint(self) -> np.ndarray:
        """Masses of (w, x̃), shape (|W|, |X̃|), in the source's unit."""
        return merged(self.source.joint, self.groups)

    @property
    def information(self) -> float:
        """I(X̃; W)."""
        return mutual_information(self.joint, units=self.units)

    @property
    def standing(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Measure of each released letter and whether it satisfies, by criterion."""
        counts = counted(self.source, self.joint)
        return {str(c): standing(c, counts, units=self.units) for c in self.criteria}

    @cached_property
    def channel(self) -> Channel:
        """The release as a channel, to be applied to tables."""
        return Channel(
            indicator(self.groups),
            inputs=self.source.x,
            outputs=self.outputs,
            p_input=self.source.p_x,
            coding=self.source.coding,
        )

    def __repr__(self) -> str:
        return f"Generalisation({len(self.groups)} → {len(self.outputs)} letters)"

    def __str__(self) -> str:
        before = self.source.information(units=self.units)
        lines = [
            f"{len(self.groups)} key letters in {len(self.outputs)} groups",
            f"  I(X̃; W) = {self.information:.4f} {self.units} of {before:.4f}",
        ]
        if self.levels is not None:
            said = ", ".join(f"{name} {level}" for name, level in self.levels.items())
            lines.append(
                f"  levels {said}; {len(self.minimal)} minimal of {self.nodes:,} "
                f"generalisations, {self.evaluated:,} looked at"
            )
        if self.distortion is not None:
            lines.append(f"  E d(X, X̂) = {self.distortion:.6g}")
        for name, (values, holds) in self.standing.items():
            seen = values[~np.isnan(values)]
            ends = f"{seen.min():.4g} to {seen.max():.4g}"
            lines.append(f"  {name:<18} {ends} over the groups, {int((~holds).sum())} break it")
        return "\n".join(lines)


# ---- shared by the searches --------------------------------------------------------------


def merged(table: np.ndarray, groups: Sequence[Any]) -> np.ndarray:
    """Add up the columns of each group."""
    at = numbered(groups)
    return np.array([np.bincount(at, row) for row in table])


def fitted_to(source: DiscreteSource, distortion: Distortion | None) -> Distortion | None:
    """Return a distortion with its rows in the source's order."""
    if distortion is None:
        return None
    measure = distortion.fitted(len(source.w), source.x)
    if measure.matrix.ndim != 2:
        raise InputError("distortion", "d(w, x, x̂)", "pass d(x, x̂), shape (|X|, |X̂|)")
    return measure


def represented(
    source: DiscreteSource, measure: Distortion, groups: Sequence[Any]
) -> tuple[list[Any], float]:
    """Release each group as its best letter; return the letters and E d(X, X̂)."""
    costs = indicator(groups).T @ (source.p_x[:, None] * measure.matrix)
    names = dict(zip(dict.fromkeys(groups), costs.argmin(axis=1).tolist(), strict=True))
    return [measure.outputs[names[group]] for group in groups], float(costs.min(axis=1).sum())


def counted(source: DiscreteSource, joint: np.ndarray) -> np.ndarray:
    """Return records per cell where they are known, else the masses."""
    return joint if source.records is None else joint * (source.records / source.law.sum())


def allowed(
    source: DiscreteSource, criteria: Sequence[Criterion], counts: np.ndarray, units: str
) -> np.ndarray:
    """Return which columns of a table of groups satisfy every criterion."""
    found = np.ones(counts.shape[1], bool)
    for criterion in criteria:
        prior = source.joint.sum(axis=1)
        found &= standing(criterion, counts, reference=prior, units=units)[1]
    return found


def checked(source: DiscreteSource, criteria: Sequence[Criterion], units: str) -> None:
    """Refuse what not even one group of all records satisfies."""
    if not isinstance(source, DiscreteSource):
        raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource")
    if any(isinstance(c, KAnonymity) for c in criteria) and (
        source.records is None or source.weighted
    ):
        remedy = "make it with DiscreteSource.from_counts, or from_table without weights"
        raise InputError("source", "no number of records behind it", remedy)
    whole_table = counted(source, source.joint.sum(axis=1, keepdims=True))
    for i, criterion in enumerate(criteria):
        if not allowed(source, [criterion], whole_table, units)[0]:
            most = 2 ** entropy(whole_table.ravel())
            problem = f"{criterion!r} fails even with all records in one group"
            remedy = f"relax it: ℓ is {most:.4g} and k {size(whole_table)[0]:,.0f} there"
            raise InputError("criteria", problem, remedy, where=i)


# ---- the best intervals ------------------------------------------------------------------


def optimal_intervals(
    source: DiscreteSource,
    criteria: Sequence[Criterion] = (),
    *,
    groups: int | None = None,
    distortion: Distortion | None = None,
    units: str = "bits",
) -> Generalisation:
    """Cut an ordered attribute into the best intervals.

    They are the best, exactly, of all cuts into intervals each of which satisfies the criteria by
    itself.  Groupings of letters that are no neighbours are not searched.

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

    Returns
    -------
    Generalisation

    Raises
    ------
    InputError
        If no grouping satisfies the criteria, or for criteria that are not per letter.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[9, 8, 2, 1], [1, 2, 8, 9]])
    >>> cpv.optimal_intervals(source, [cpv.KAnonymity(20)]).groups
    ['[0, 1]', '[0, 1]', '[2, 3]', '[2, 3]']
    """
    criteria = criteria_listed(criteria)
    checked(source, criteria, units)
    _one_axis(source)
    alive = np.flatnonzero(source.joint.sum(axis=0) > 0)
    n = len(alive)
    if n > MOST_LETTERS:
        remedy = f"bin it: {MOST_LETTERS:,} are allowed"
        raise InputError("source", f"{n:,} key letters", remedy, value=n)
    most = n if groups is None else whole(groups, "groups", least=1)
    if most > n:
        raise InputError("groups", f"{most} of {n} letters", f"pass at most {n}", value=most)
    table = counted(source, source.joint[:, alive])
    measure = fitted_to(source, distortion)
    gain = _gains(source, criteria, table, units, measure, alive)

    # value[j]: the best of the letters before j, in any number of groups, or in exactly so many
    rounds = 1 if groups is None else most
    value = np.full(n + 1, -math.inf)
    value[0] = 0.0
    cuts: list[np.ndarray] = []
    for _ in range(rounds):
        if groups is None:
            cut = np.zeros(n + 1, int)
            for j in range(1, n + 1):
                options = value[:j] + gain[:j, j - 1]
                cut[j] = int(options.argmax())
                value[j] = options[cut[j]]
        else:
            options = value[:-1, None] + gain
            cut = np.concatenate([[0], options.argmax(axis=0)])
            value = np.concatenate([[-math.inf], options.max(axis=0)])
        cuts.append(cut)
    if value[n] == -math.inf:
        remedy = "allow another number of groups, or relax the criteria"
        raise InputError("groups", f"no {most} intervals satisfy the criteria", remedy, value=most)
    ends = [n]
    while ends[-1]:
        ends.append(int(cuts[-1][ends[-1]]))
        if groups is not None:
            cuts.pop()
    ends.reverse()

    found: list[Any] = [None] * len(source.x)
    labels = _intervals(source, [(alive[a], alive[b - 1]) for a, b in pairwise(ends)])
    for label, (first, last) in zip(labels, pairwise(ends), strict=True):
        stop = len(source.x) if last == n else alive[last]
        for x in range(0 if first == 0 else alive[first], stop):  # letters without mass go along
            found[x] = label
    cost = None
    if measure is not None:
        found, cost = represented(source, measure, found)
    return Generalisation(source, found, tuple(criteria), units, cost)


def _gains(
    source: DiscreteSource,
    criteria: Sequence[Criterion],
    table: np.ndarray,
    units: str,
    measure: Distortion | None,
    alive: np.ndarray,
) -> np.ndarray:
    """Return what the group of letters first … last adds, −∞ if it is not allowed."""
    n = table.shape[1]
    gain = np.full((n, n), -math.inf)
    before = np.concatenate([np.zeros((len(table), 1)), table.cumsum(axis=1)], axis=1)
    mass = table.sum()
    if measure is not None:
        law = table.sum(axis=0) / mass
        costs = np.concatenate(
            [np.zeros((1, measure.matrix.shape[1])),
             (law[:, None] * measure.matrix[alive]).cumsum(axis=0)]
        )  # fmt: skip
    prior = table.sum(axis=1, keepdims=True) / mass
    for first in range(n):
        groups = before[:, first + 1 :] - before[:, first : first + 1]
        fine = allowed(source, criteria, groups, units)
        if measure is None:
            records = groups.sum(axis=0)
            ratio = np.divide(groups, prior * records, out=np.ones_like(groups), where=groups > 0)
            added = (groups * np.log(ratio)).sum(axis=0) / mass
        else:
            added = -(costs[first + 1 :] - costs[first]).min(axis=1)
        gain[first, first:] = np.where(fine, added, -math.inf)
    return gain


def _one_axis(source: DiscreteSource) -> None:
    """Refuse letters of several columns, and a missing one: they have no place on a line."""
    several = source.coding is not None and len(source.coding.key) > 1
    if several or None in source.x:
        problem = "a missing value has no place in an order"
        if several:
            problem = f"{source.names[1]}: letters of several columns have no order"
        remedy = "make the source of one key column, without missing values"
        raise InputError("source", problem, remedy)


def _intervals(source: DiscreteSource, ends: Sequence[tuple[int, int]]) -> list[Any]:
    """Name intervals by their first and last letter, bins by their edges; a lone letter is itself.

    All are text as soon as one is.
    """
    if all(first == last for first, last in ends):
        return [source.x[first] for first, _ in ends]
    coding = source.coding
    bins = None if coding is None else coding.bins.get(coding.key[0])

    def named(first: Any, last: Any) -> str:
        if bins is not None:
            at = [bins.labels.index(letter) for letter in (first, last)]
            return Bins((bins.edges[at[0]], bins.edges[at[1] + 1])).labels[0]
        low, high = (short(v) if isinstance(v, float) else str(v) for v in (first, last))
        return low if first == last else f"[{low}, {high}]"

    found = [named(source.x[first], source.x[last]) for first, last in ends]
    twice = next((label for i, label in enumerate(found) if label in found[:i]), None)
    if twice is not None:
        remedy = "give the key letters names that differ as text"
        raise InputError("source", f"two intervals would be called {twice!r}", remedy)
    return found
