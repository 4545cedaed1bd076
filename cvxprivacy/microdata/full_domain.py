"""Full-domain generalisation: one level of a hierarchy per attribute, searched with pruning.

Merging groups never breaks a criterion per released letter: divergences are convex, entropy is
concave, and sizes add.  So what satisfies the criteria does so at every coarser level, and what
breaks them does so at every finer one.

What such levels, or intervals, cost as deterministic releases is set against the certified optimum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.base import criteria_listed
from cvxprivacy.errors import InputError
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.microdata.generalisation import (
    Generalisation,
    Hierarchy,
    allowed,
    checked,
    counted,
    fitted_to,
    merged,
    represented,
)
from cvxprivacy.microdata.intervals import optimal_intervals
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.information import entropy, mutual_information
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.solution import Solution
from cvxprivacy.tables.arrays import codes
from cvxprivacy.tables.labels import as_label
from cvxprivacy.validation import one_of

__all__ = ["PriceOfDeterminism", "full_domain", "price_of_determinism"]

MOST_NODES = 1_000_000

Node = tuple[int, ...]  # a level of each hierarchy


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
        The best has the least E d(X, X̂) instead, each group released as its best letter; each had
        to satisfy the criteria by itself, before groups released as one letter become one.
    units : {"bits", "nats"}
        Of information, in the criteria and in what is returned.

    Returns
    -------
    Generalisation
        The best of the minimal levels, with all of them in ``minimal``.

    Raises
    ------
    InputError
        If no levels satisfy the criteria, or a hierarchy lacks a value of its column.

    Examples
    --------
    Twelve people, and k = 3: either the sex goes and the ages stay, or the other way round.  The
    second keeps more of what the key tells about the illness:

    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> table = pd.DataFrame({
    ...     "age": [18, 22, 37, 41] * 3, "sex": list("ffmmmmffmfmf"), "ill": list("nnynnynyynnn"),
    ... })
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key=["age", "sex"])
    >>> hierarchies = {
    ...     "age": cpv.Hierarchy.intervals([18, 22, 37, 41], 10, 20),
    ...     "sex": cpv.Hierarchy.suppression(["f", "m"]),
    ... }
    >>> recoding = full_domain(source, hierarchies, [cpv.KAnonymity(3)])
    >>> list(map(dict, recoding.minimal)), dict(recoding.levels)
    ([{'age': 0, 'sex': 1}, {'age': 3, 'sex': 0}], {'age': 3, 'sex': 0})
    >>> recoding.evaluated, recoding.nodes
    (5, 8)
    """
    criteria = criteria_listed(criteria)
    checked(source, criteria, units)
    for i, criterion in enumerate(criteria):
        if not criterion.survives_merging:  # a coarser table might break it
            problem = f"{criterion!r} does not say that it holds of unions of groups"
            remedy = "declare survives_merging, if it does"
            raise InputError("criteria", problem, remedy, where=i)
    one_of(keep, "keep", "W", "X")
    columns = _columns(source, hierarchies)
    names = list(hierarchies)
    heights = [len(hierarchies[name].levels) for name in names]
    if math.prod(heights) > MOST_NODES:
        problem = f"{math.prod(heights):,} combinations of levels"
        raise InputError("hierarchies", problem, f"{MOST_NODES:,} are allowed: use fewer levels")
    grouped: dict[str, list[list[Any]]] = {}  # of each value at every level
    for name, hierarchy in hierarchies.items():
        place = {letter: i for i, letter in enumerate(hierarchy.letters)}
        grouped[name] = [[level[place[v]] for v in columns[name]] for level in hierarchy.levels]
    numbers = {name: [codes(level) for level in levels] for name, levels in grouped.items()}
    fixed = [codes(column) for name, column in columns.items() if name not in hierarchies]
    counts = counted(source, source.joint)

    def group_of(node: Node) -> list[int]:
        keys = [*fixed, *(numbers[name][level] for name, level in zip(names, node, strict=True))]
        return np.unique(np.array(keys), axis=1, return_inverse=True)[1].ravel().tolist()

    def satisfied(node: Node) -> bool:
        return bool(allowed(source, criteria, merged(counts, group_of(node)), units).all())

    minimal, evaluated = _minimal(heights, satisfied)
    if not minimal:
        remedy = "add coarser levels, such as suppression, or relax the criteria"
        raise InputError("hierarchies", "no levels satisfy the criteria", remedy)
    measure = fitted_to(source, distortion)

    def utility(node: Node) -> float:
        if measure is not None:
            return -represented(source, measure, group_of(node))[1]
        joint = merged(counts, group_of(node))
        return mutual_information(joint) if keep == "W" else entropy(joint.sum(axis=0))

    best: Node = max(minimal, key=utility)
    levels = dict(zip(names, best, strict=True))
    columns |= {name: grouped[name][level] for name, level in levels.items()}
    groups, cost = [as_label(values) for values in zip(*columns.values(), strict=True)], None
    if measure is not None:
        groups, cost = represented(source, measure, groups)
    return Generalisation(
        source,
        groups,
        tuple(criteria),
        units,
        cost,
        levels=levels,
        minimal=[dict(zip(names, node, strict=True)) for node in minimal],
        evaluated=evaluated,
        nodes=math.prod(heights),
    )


def _minimal(heights: Sequence[int], satisfied: Callable[[Node], bool]) -> tuple[list[Node], int]:
    """Return the least nodes of a lattice where a monotone condition holds, and the count tried.

    Chains of undecided nodes are bisected; every verdict decides all nodes above, or below.
    """
    verdicts: dict[Node, bool] = {}
    nodes = sorted(itertools.product(*map(range, heights)), key=sum)
    undecided, evaluated = set(nodes), 0
    for start in nodes:
        chain = [start] if start in undecided else []
        while chain:
            above = (_step(chain[-1], axis) for axis in range(len(heights)))
            successor = next((node for node in above if node in undecided), None)
            if successor is None:
                break
            chain.append(successor)
        low, high = 0, len(chain)
        while low < high:
            half = (low + high) // 2
            verdict, evaluated = satisfied(chain[half]), evaluated + 1
            ranges = [
                range(level, height) if verdict else range(level + 1)
                for level, height in zip(chain[half], heights, strict=True)
            ]
            decided = dict.fromkeys(itertools.product(*ranges), verdict)
            verdicts.update(decided)
            undecided.difference_update(decided)
            low, high = (low, half) if verdict else (half + 1, high)

    def finer(node: Node) -> bool:
        return any(level and verdicts[_step(node, i, -1)] for i, level in enumerate(node))

    return [node for node in nodes if verdicts[node] and not finer(node)], evaluated


def _step(node: Node, axis: int, by: int = 1) -> Node:
    return (*node[:axis], node[axis] + by, *node[axis + 1 :])


def _columns(source: DiscreteSource, hierarchies: Mapping[str, Hierarchy]) -> dict[str, list[Any]]:
    """Return each key column's value for every key letter; its hierarchy must know them."""
    if source.schema is None:
        remedy = "make it with DiscreteSource.from_table"
        raise InputError("source", "its key columns have no names", remedy)
    keys = source.schema.key
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
        letters = set(hierarchy.letters)
        unknown = [value for value in columns[name] if value not in letters]
        if unknown:
            remedy = "make the hierarchy of source.levels"
            problem = f"{unknown[0]!r} is not among its letters"
            raise InputError("hierarchies", problem, remedy, where=name, value=unknown[0])
    return columns


# ---- the price of determinism ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PriceOfDeterminism:
    """The least distortion of intervals or levels, and of all randomisations, under one promise.

    Attributes
    ----------
    deterministic : Generalisation
        The best intervals that satisfy the criteria each by itself, or the best minimal levels.
    randomised : Solution
        The optimum over all p(x̂ | x), proved.
    """

    deterministic: Generalisation
    randomised: Solution

    @property
    def gap(self) -> Enclosure:
        """Distortion that intervals or levels add, enclosed as the optimum is.

        It is the cost of determinism and of their form together: some other grouping may do with
        less.
        """
        cost = self.deterministic.distortion
        assert cost is not None
        return Enclosure(cost - self.randomised.upper, cost - self.randomised.lower)

    def __str__(self) -> str:
        cost, best = self.deterministic.distortion, self.randomised
        assert cost is not None
        share = f" ({self.gap / cost:.1%} of it)" if cost else ""
        kind = "intervals" if self.deterministic.levels is None else "levels"
        return "\n".join(
            [
                "least distortion under " + ", ".join(map(repr, self.deterministic.criteria)),
                f"  {'best ' + kind:<16} {cost:.6g} ({len(self.deterministic.outputs)} groups)",
                f"  {'randomised':<16} {best.value:.6g} ({best.status}, gap {best.gap:.1e})",
                f"  {kind + ' add':<16} {self.gap:.6g}{share}",
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
    """Compare the best intervals, or levels, with the best randomisation under the same criteria.

    After the claim of Rebollo-Monedero et al. 2010, that post-randomisation does what no partition
    can: both minimise E d(X, X̂) subject to the same criteria per released letter.  The partitions
    searched are intervals, each satisfying the criteria by itself, or the minimal levels of
    hierarchies; the difference is an upper bound of what determinism alone costs.

    Parameters
    ----------
    source : DiscreteSource
        As of :func:`optimal_intervals`, or with ``hierarchies`` of :func:`full_domain`.
    distortion : Distortion
        d(x, x̂), of which the mean is minimised.
    criteria : sequence of Criterion
        Per letter: ``TCloseness``, ``LDiversity``, ``KAnonymity``, ``DeltaDisclosure``.
    hierarchies : mapping of key column to Hierarchy, optional
        Search their levels (:func:`full_domain`) instead of intervals.
    units : {"bits", "nats"}
        Of information, in the criteria.
    **solve
        Passed to ``MinimumDistortion(…).solve``.

    Returns
    -------
    PriceOfDeterminism
        With ``deterministic``, a :class:`Generalisation`, ``randomised``, a :class:`Solution`, and
        their ``gap`` in distortion.

    Raises
    ------
    InputError
        If no partition satisfies the criteria.

    Examples
    --------
    Four ages of ten persons each, and k = 20.  The best intervals join two ages each, which moves
    every second person by one; a randomisation keeps the same promise for half of that:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[9, 8, 2, 1], [1, 2, 8, 9]])
    >>> measure = cpv.absolute_error([0, 1, 2, 3])
    >>> price = price_of_determinism(source, measure, [cpv.KAnonymity(20)])
    >>> price.deterministic.groups, price.deterministic.distortion
    ([0, 0, 2, 2], 0.5)
    >>> price.randomised.status, round(price.randomised.value, 4), round(price.gap, 4)
    ('certified', 0.2637, 0.2363)
    """
    if hierarchies is None:
        best = optimal_intervals(source, criteria, distortion=distortion, units=units)
    else:
        best = full_domain(source, hierarchies, criteria, distortion=distortion, units=units)
    problem = MinimumDistortion(source, distortion, criteria, units=units)
    return PriceOfDeterminism(best, problem.solve(**solve))
