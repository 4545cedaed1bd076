r"""Deterministic generalisation: the special channels in which every x has one x̃.

A *hierarchy* coarsens an attribute level by level: intervals, a tree, suppression.  Among
groupings of an ordered attribute into intervals the best is found exactly, by dynamic programming
over cut points:

.. math::
   \begin{aligned}
   \max_{\text{cuts}} \quad & I(X̃; W) = Σ_g p(g) I_1(g)
       \qquad\text{or}\qquad \min Σ_g \min_{x̂} Σ_{x ∈ g} p(x) d(x, x̂) \\
   \text{s.t.} \quad & \text{every group } g \text{ satisfies the criteria, such as }
       I_1(g) ≤ t,\; H(W|g) ≥ \log ℓ,\; N_g ≥ k
   \end{aligned}

Both objectives are sums over groups, and the criteria speak of one group each (Bezzi 2010, §4,
where the search was heuristic).  Over several attributes, one level for each (*full-domain*
generalisation) is searched with pruning: merging groups never breaks a criterion (divergences are
convex, entropy is concave, sizes add), so what satisfies them does so at every coarser level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cvxprivacy.bins import bins_of, short
from cvxprivacy.checks import array, labels, whole
from cvxprivacy.criteria import Criterion, KAnonymity
from cvxprivacy.distortion import Distortion
from cvxprivacy.errors import InputError
from cvxprivacy.formulations import MinimumDistortion
from cvxprivacy.frames import cell
from cvxprivacy.information import entropy, mutual_information
from cvxprivacy.microdata.measures import size, standing
from cvxprivacy.release import Channel
from cvxprivacy.solution import Enclosure, Solution
from cvxprivacy.sources import DiscreteSource

__all__ = [
    "Generalisation",
    "Hierarchy",
    "PriceOfDeterminism",
    "full_domain",
    "optimal_intervals",
    "price_of_determinism",
]

MOST_LETTERS = 3_000  # of an attribute cut into intervals: all pairs of cuts are visited


# ---- hierarchies -------------------------------------------------------------------------


class Hierarchy:
    """Coarser and coarser groupings of an attribute's letters.

    Parameters
    ----------
    letters : sequence
        The attribute's values, distinct.
    levels : sequence of sequence
        For each level above the letters themselves, the group of each letter.  Letters of one
        group stay together above.

    Raises
    ------
    InputError
        For a level that is no coarsening of the one below, with two letters that it parts.

    Examples
    --------
    >>> ages = Hierarchy.intervals([18, 22, 37, 41], 10, 20)
    >>> ages.levels[1:]
    [['[10, 20)', '[20, 30)', '[30, 40)', '[40, 50)'], ['[0, 20)', '[20, 40)', '[20, 40)', \
'[40, 60)'], ['*', '*', '*', '*']]
    """

    def __init__(self, letters: Sequence[Hashable], levels: Sequence[Sequence[Hashable]]) -> None:
        self.letters = labels(letters, None, "letters")
        self.levels: list[list[Any]] = [self.letters]
        for number, level in enumerate(levels, 1):
            groups = list(level)
            if len(groups) != len(self.letters):
                problem = f"{len(groups)} groups for {len(self.letters)} letters"
                raise InputError("levels", problem, "name each letter's group", where=number)
            above: dict[Any, tuple[Any, Any]] = {}
            for letter, below, group in zip(self.letters, self.levels[-1], groups, strict=True):
                first = above.setdefault(below, (letter, group))
                if first[1] != group:
                    problem = f"{first[0]!r} and {letter!r} share {below!r} below and part here"
                    remedy = "make each level a coarsening of the one before"
                    raise InputError("levels", problem, remedy, where=number, value=letter)
            self.levels.append(groups)

    @classmethod
    def intervals(
        cls, letters: Sequence[float], *levels: float | Sequence[float], suppress: bool = True
    ) -> Hierarchy:
        """Group numbers into intervals, closed below.

        Parameters
        ----------
        letters : sequence of numbers
        levels : number, or sequence of numbers
            The width of bands anchored at 0, or edges, which may begin with −inf and end with inf;
            from fine to coarse.
        suppress : bool
            Whether a last level has all letters in one group ``*``.
        """
        ends = array(letters, "letters", "pass finite numbers", axes=(1,), negative=True)
        found = []
        for number, spec in enumerate(levels, 1):
            bins = bins_of(f"level {number}", spec, ends.min(), ends.max())
            groups = bins.named(list(letters))
            outside = next((x for x, g in zip(letters, groups, strict=True) if x is g), None)
            if outside is not None:
                problem = f"{outside!r} is in no interval"
                remedy = "add edges, such as −inf or inf"
                raise InputError("levels", problem, remedy, where=number, value=outside)
            found.append(groups)
        return cls(letters, [*found, *([["*"] * len(letters)] if suppress else [])])

    @classmethod
    def tree(cls, paths: Mapping[Hashable, Sequence[Hashable]]) -> Hierarchy:
        """Group letters by their ancestors in a tree.

        Parameters
        ----------
        paths : mapping of letter to sequence
            Ancestors of each letter from the nearest up to the root, all of one length:
            ``{"Paris": ("France", "Europe"), "Rome": ("Italy", "Europe")}``, as for
            :func:`cvxprivacy.hierarchy_distance`.
        """
        if not isinstance(paths, Mapping):
            remedy = "pass {letter: (parent, …, root)}"
            raise InputError("paths", f"a {type(paths).__name__}", remedy)
        heights = {len(path) for path in paths.values()}
        if len(heights) != 1:
            remedy = "give every letter one path to the root"
            raise InputError("paths", "none, or of different lengths", remedy)
        return cls(list(paths), [[path[i] for path in paths.values()] for i in range(*heights)])

    @classmethod
    def suppression(cls, letters: Sequence[Hashable], mark: Hashable = "*") -> Hierarchy:
        """Keep the letters, or put all of them into one group."""
        return cls(letters, [[mark] * len(letters)])

    def __repr__(self) -> str:
        sizes = " → ".join(str(len(set(level))) for level in self.levels)
        return f"Hierarchy({sizes} groups)"

    def channel(self, level: int) -> Channel:
        """Return a level as a channel from letters to groups."""
        groups = self._at(level)
        outputs = list(dict.fromkeys(groups))
        return Channel(_indicator(groups), inputs=self.letters, outputs=outputs)

    def _at(self, level: int, name: str = "level") -> list[Any]:
        if whole(level, name, least=0) >= len(self.levels):
            remedy = f"the levels are 0 to {len(self.levels) - 1}"
            raise InputError(name, f"{level}", remedy, value=level)
        return self.levels[level]


def _indicator(groups: Sequence[Any]) -> np.ndarray:
    """Return which letter is in which group, the groups as they first occur."""
    place = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    matrix = np.zeros((len(groups), len(place)))
    matrix[np.arange(len(groups)), [place[group] for group in groups]] = 1.0
    return matrix


def _merged(table: np.ndarray, groups: Sequence[Any]) -> np.ndarray:
    """Add up the columns of each group, the groups as they first occur."""
    place = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    at = [place[group] for group in groups]
    return np.array([np.bincount(at, row, len(place)) for row in table])


def _fitted(source: DiscreteSource, distortion: Distortion | None) -> Distortion | None:
    """Return a distortion with its rows in the source's order."""
    if distortion is None:
        return None
    measure = distortion.fitted(len(source.w), source.x)
    if measure.matrix.ndim != 2:
        raise InputError("distortion", "d(w, x, x̂)", "pass d(x, x̂), shape (|X|, |X̂|)")
    return measure


def _represented(
    source: DiscreteSource, measure: Distortion, groups: Sequence[Any]
) -> tuple[list[Any], float]:
    """Release each group as its best letter; return the letters and E d(X, X̂)."""
    costs = _indicator(groups).T @ (source.p_x[:, None] * measure.matrix)
    names = dict(zip(dict.fromkeys(groups), costs.argmin(axis=1).tolist(), strict=True))
    return [measure.outputs[names[group]] for group in groups], float(costs.min(axis=1).sum())


# ---- what a generalisation does ----------------------------------------------------------


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
        return _merged(self.source.joint, self.groups)

    @property
    def information(self) -> float:
        """I(X̃; W)."""
        return mutual_information(self.joint, units=self.units)

    @property
    def standing(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Measure of each released letter and whether it satisfies, by criterion."""
        counts = _counted(self.source, self.joint)
        return {str(c): standing(c, counts, units=self.units) for c in self.criteria}

    @cached_property
    def channel(self) -> Channel:
        """The release as a channel, to be applied to tables."""
        return Channel(
            _indicator(self.groups),
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


def _counted(source: DiscreteSource, joint: np.ndarray) -> np.ndarray:
    """Return records per cell where they are known, else the masses."""
    return joint if source.records is None else joint * (source.records / source.law.sum())


def _allowed(
    source: DiscreteSource, criteria: Sequence[Criterion], counts: np.ndarray, units: str
) -> np.ndarray:
    """Return which columns of a table of groups satisfy every criterion."""
    found = np.ones(counts.shape[1], bool)
    for criterion in criteria:
        prior = source.joint.sum(axis=1)
        found &= standing(criterion, counts, reference=prior, units=units)[1]
    return found


def _checked(source: DiscreteSource, criteria: Sequence[Criterion], units: str) -> None:
    """Refuse what not even one group of all records satisfies."""
    if not isinstance(source, DiscreteSource):
        raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource")
    if any(isinstance(c, KAnonymity) for c in criteria) and (
        source.records is None or source.weighted
    ):
        remedy = "make it with DiscreteSource.from_counts, or from_table without weights"
        raise InputError("source", "no number of records behind it", remedy)
    whole_table = _counted(source, source.joint.sum(axis=1, keepdims=True))
    for i, criterion in enumerate(criteria):
        if not _allowed(source, [criterion], whole_table, units)[0]:
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
    """Cut an ordered attribute into the best intervals, exactly.

    Parameters
    ----------
    source : DiscreteSource
        Its key letters are taken in their order: an attribute of numbers, or of ordered classes.
    criteria : sequence of Criterion
        Per letter: ``TCloseness``, ``LDiversity``, ``KAnonymity``, ``DeltaDisclosure``.
    groups : int, optional
        Exactly this number of intervals; by default any.
    distortion : Distortion, optional
        Minimise E d(X, X̂), each group released as its best letter, instead of maximising
        I(X̃; W).  Groups released as one letter are one group.
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
    _checked(source, criteria, units)
    alive = np.flatnonzero(source.joint.sum(axis=0) > 0)
    n = len(alive)
    if n > MOST_LETTERS:
        remedy = f"bin it: {MOST_LETTERS:,} are allowed"
        raise InputError("source", f"{n:,} key letters", remedy, value=n)
    most = n if groups is None else whole(groups, "groups", least=1)
    if most > n:
        raise InputError("groups", f"{most} of {n} letters", f"pass at most {n}", value=most)
    table = _counted(source, source.joint[:, alive])
    measure = _fitted(source, distortion)
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
    for first, last in pairwise(ends):
        label = _interval(source.x[alive[first]], source.x[alive[last - 1]])
        stop = len(source.x) if last == n else alive[last]
        for x in range(0 if first == 0 else alive[first], stop):  # letters without mass go along
            found[x] = label
    cost = None
    if measure is not None:
        found, cost = _represented(source, measure, found)
    return Generalisation(source, found, tuple(criteria), units, cost, nodes=2 ** (n - 1))


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
        allowed = _allowed(source, criteria, groups, units)
        if measure is None:
            records = groups.sum(axis=0)
            ratio = np.divide(groups, prior * records, out=np.ones_like(groups), where=groups > 0)
            added = (groups * np.log(ratio)).sum(axis=0) / mass
        else:
            added = -(costs[first + 1 :] - costs[first]).min(axis=1)
        gain[first, first:] = np.where(allowed, added, -math.inf)
    return gain


def _interval(first: Any, last: Any) -> str:
    low, high = (short(v) if isinstance(v, int | float) else str(v) for v in (first, last))
    return low if first == last else f"[{low}, {high}]"


# ---- one level per attribute -------------------------------------------------------------


def full_domain(
    source: DiscreteSource,
    hierarchies: Mapping[str, Hierarchy],
    criteria: Sequence[Criterion],
    *,
    keep: str = "W",
    distortion: Distortion | None = None,
    units: str = "bits",
) -> Generalisation:
    """Find the finest levels, one per attribute, that satisfy the criteria, and the best of them.

    Every satisfying combination of levels has all coarser ones behind it; those with no finer
    satisfying one are ``minimal``, and the best combination is among them.

    Parameters
    ----------
    source : DiscreteSource
        Counted from a table, so that its key columns have names.
    hierarchies : mapping of key column to Hierarchy
        A column without one stays as it is.
    criteria : sequence of Criterion
        Per letter: ``TCloseness``, ``LDiversity``, ``KAnonymity``, ``DeltaDisclosure``.
    keep : {"W", "X"}
        What the best keeps most of: I(X̃; W), the utility of Bezzi 2010, §4, or I(X̃; X) = H(X̃).
    distortion : Distortion, optional
        The best has the least E d(X, X̂) instead, each group released as its best letter.
    units : {"bits", "nats"}

    Returns
    -------
    Generalisation
        With ``levels``, ``minimal``, ``evaluated`` and ``nodes``.
    """
    _checked(source, criteria, units)
    if keep not in ("W", "X"):
        raise InputError("keep", f"{keep!r} is unknown", 'use "W" or "X"', value=keep)
    columns = _columns(source, hierarchies)
    names = list(hierarchies)
    heights = [len(hierarchies[name].levels) for name in names]
    numbers = {}
    for name in names:  # each key letter's group at every level, numbered
        place = {letter: i for i, letter in enumerate(hierarchies[name].letters)}
        at = [place[value] for value in columns[name]]
        for level, of in enumerate(hierarchies[name].levels):
            number = {group: i for i, group in enumerate(dict.fromkeys(of))}
            numbers[name, level] = np.array([number[of[i]] for i in at])
    rest = [v for name, v in columns.items() if name not in hierarchies]
    fixed = np.unique([repr(key) for key in zip(*rest, strict=True)], return_inverse=True)[1] \
        if rest else np.zeros(len(source.x), int)  # fmt: skip
    counts = _counted(source, source.joint)

    def group_of(node: tuple[int, ...]) -> list[int]:
        keys = [fixed, *(numbers[pair] for pair in zip(names, node, strict=True))]
        shape = [int(k.max()) + 1 for k in keys]
        return np.unique(np.ravel_multi_index(keys, shape), return_inverse=True)[1].tolist()

    satisfies: dict[tuple[int, ...], bool] = {}
    evaluated = 0
    nodes = sorted(itertools.product(*map(range, heights)), key=sum)
    unknown = set(nodes)

    def tagged(node: tuple[int, ...], verdict: bool) -> None:
        """Tell a node and all coarser, or all finer, ones."""
        ranges = [
            range(level, top) if verdict else range(level + 1)
            for level, top in zip(node, heights, strict=True)
        ]
        known = dict.fromkeys(itertools.product(*ranges), verdict)
        satisfies.update(known)
        unknown.difference_update(known)

    for start in nodes:
        if start in unknown:  # bisect a chain of unknown nodes from here upwards
            chain = [start]
            while True:
                steps = (_step(chain[-1], i) for i in range(len(names)))
                above = [s for s in steps if s in unknown]
                if not above:
                    break
                chain.append(above[0])
            low, high = 0, len(chain)
            while low < high:
                middle = (low + high) // 2
                evaluated += 1
                groups = _merged(counts, group_of(chain[middle]))
                verdict = bool(_allowed(source, criteria, groups, units).all())
                tagged(chain[middle], verdict)
                low, high = (low, middle) if verdict else (middle + 1, high)
    minimal = [
        node
        for node in nodes
        if satisfies[node]
        and not any(level and satisfies[_step(node, i, -1)] for i, level in enumerate(node))
    ]
    if not minimal:
        remedy = "add coarser levels, such as suppression, or relax the criteria"
        raise InputError("hierarchies", "no levels satisfy the criteria", remedy)

    measure = _fitted(source, distortion)

    def kept(node: tuple[int, ...]) -> float:
        if measure is not None:
            return -_represented(source, measure, group_of(node))[1]
        joint = _merged(counts, group_of(node))
        return mutual_information(joint) if keep == "W" else entropy(joint.sum(axis=0))

    best = max(minimal, key=kept)
    levels = dict(zip(names, best, strict=True))
    parts = []
    for name, values in columns.items():
        if name in levels:
            hierarchy = hierarchies[name]
            group = dict(zip(hierarchy.letters, hierarchy.levels[levels[name]], strict=True))
            values = [group[value] for value in values]
        parts.append(values)
    groups, cost = [cell(values) for values in zip(*parts, strict=True)], None
    if measure is not None:
        groups, cost = _represented(source, measure, groups)
    return Generalisation(
        source,
        groups,
        tuple(criteria),
        units,
        cost,
        levels=levels,
        minimal=[dict(zip(names, node, strict=True)) for node in minimal],
        evaluated=evaluated,
        nodes=len(nodes),
    )


def _step(node: tuple[int, ...], axis: int, by: int = 1) -> tuple[int, ...]:
    return (*node[:axis], node[axis] + by, *node[axis + 1 :])


def _columns(source: DiscreteSource, hierarchies: Mapping[str, Hierarchy]) -> dict[str, list[Any]]:
    """Return each key column's value for every key letter; its hierarchy must know them."""
    if source.coding is None:
        remedy = "make it with DiscreteSource.from_table"
        raise InputError("source", "its key columns have no names", remedy)
    keys = source.coding.key
    rows = [x if len(keys) > 1 else (x,) for x in source.x]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(keys)}
    if not hierarchies:
        raise InputError("hierarchies", "none", "pass at least one key column's")
    for name, hierarchy in hierarchies.items():
        if name not in columns:
            remedy = f"use key columns: {', '.join(keys)}"
            raise InputError("hierarchies", f"{name!r} is no key column", remedy, value=name)
        if not isinstance(hierarchy, Hierarchy):
            problem = f"a {type(hierarchy).__name__}"
            raise InputError("hierarchies", problem, "pass a Hierarchy", where=name)
        known = set(hierarchy.letters)
        unknown = next((value for value in columns[name] if value not in known), None)
        if not known.issuperset(columns[name]):
            remedy = "make the hierarchy of source.levels"
            problem = f"{unknown!r} is not among its letters"
            raise InputError("hierarchies", problem, remedy, where=name, value=unknown)
    return columns


# ---- what determinism costs --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PriceOfDeterminism:
    """The least distortion of groupings, and of all randomisations, under one promise.

    Attributes
    ----------
    deterministic : Generalisation
        The best grouping into intervals, or the best levels, exactly.
    randomised : Solution
        The optimum over all p(x̂ | x), proved.
    """

    deterministic: Generalisation
    randomised: Solution

    @property
    def gap(self) -> Enclosure:
        """Distortion that determinism adds, enclosed as the optimum is."""
        cost = self.deterministic.distortion
        assert cost is not None
        return Enclosure(cost - self.randomised.upper, cost - self.randomised.lower)

    def __str__(self) -> str:
        cost, best = self.deterministic.distortion, self.randomised
        assert cost is not None
        share = f" ({self.gap / cost:.1%} of it)" if cost else ""
        return "\n".join(
            [
                "least distortion under " + ", ".join(map(repr, self.deterministic.criteria)),
                f"  deterministic    {cost:.6g} (exact, {len(self.deterministic.outputs)} groups)",
                f"  randomised       {best.value:.6g} ({best.status}, gap {best.gap:.1e})",
                f"  determinism adds {self.gap:.6g}{share}",
            ]
        )


def price_of_determinism(
    source: DiscreteSource,
    distortion: Distortion,
    criteria: Sequence[Criterion],
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    units: str = "bits",
    **solve: Any,
) -> PriceOfDeterminism:
    """Compare the best deterministic release with the best randomisation under the same criteria.

    The claim of Rebollo-Monedero et al. 2010, that post-randomisation does what no partition can,
    made measurable: both minimise E d(X, X̂) subject to the same criteria per released letter.

    Parameters
    ----------
    source, distortion, criteria, units : as in :func:`optimal_intervals`
    hierarchies : mapping of key column to Hierarchy, optional
        Search their levels (:func:`full_domain`) instead of intervals.
    **solve
        Passed to ``MinimumDistortion(…).solve``.
    """
    if hierarchies is None:
        best = optimal_intervals(source, criteria, distortion=distortion, units=units)
    else:
        best = full_domain(source, hierarchies, criteria, distortion=distortion, units=units)
    problem = MinimumDistortion(source, distortion, criteria, units=units)
    return PriceOfDeterminism(best, problem.solve(**solve))
