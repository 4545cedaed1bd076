"""Full-domain generalisation: one level of a hierarchy per attribute, searched with pruning.

Merging groups never breaks a criterion per released letter: divergences are convex, entropy is
concave, and sizes add.  So what satisfies the criteria does so at every coarser level, and what
breaks them does so at every finer one.

With a limit of suppression that is true only of criteria that no company breaks, as k-anonymity: a
coarser level may join a group that is kept with one that is not, and suppress both.  Under others
every node is asked that those do not decide.

What such levels, or intervals, cost as deterministic releases is set against the certified optimum.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.base import criteria_listed
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real, rational
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.one_symbol import SLACK
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.solution import Solution
from cvxprivacy.tables.arrays import codes
from cvxprivacy.tables.labels import as_label
from cvxprivacy.validation import ABOVE_ONE, one_of, typed
from cvxprivacy_sdc.recoding.generalisation import (
    Generalisation,
    Hierarchy,
    allowed,
    checked,
    counted,
    fitted_to,
    grouped_table,
    refuse_hopeless,
    represented,
)
from cvxprivacy_sdc.recoding.intervals import optimal_intervals
from cvxprivacy_sdc.recoding.lattice import Node, best_of, least, monotone_verdicts
from cvxprivacy_sdc.recoding.recoding_costs import OBJECTIVES, RecodedTable, Recodings, cost_of

__all__ = ["PriceOfDeterminism", "full_domain", "price_of_determinism"]

MOST_NODES = 1_000_000


def full_domain(
    source: DiscreteSource,
    hierarchies: Mapping[str, Hierarchy],
    criteria: Sequence[Criterion],
    *,
    keep: str = "W",
    suppress: Real = 0,
    distortion: Distortion | None = None,
    units: str = "bits",
) -> Generalisation:
    """Find the finest levels, one per attribute, that satisfy the criteria, and the best of them.

    At each node, a level of every attribute, the groups that break a criterion are suppressed; it
    satisfies the criteria if no more than a share ``suppress`` of the records is.  Nodes that do
    with no finer one that does are ``minimal``; without suppression the best node is among them,
    else it is the best of all that satisfy the criteria.

    Parameters
    ----------
    source : DiscreteSource
        Counted from a table, so that its key columns have names; ``sensitive=None`` where there is
        nothing confidential, for k-anonymity alone and another ``keep`` than ``"W"``.
    hierarchies : mapping of key column to Hierarchy
        A column without one stays as it is.
    criteria : sequence of Criterion
        Whatever is decided on counts: of each group, as ``KAnonymity``, ``LDiversity``,
        ``TCloseness``, ``DeltaDisclosure``, ``BetaLikeness``; or of the released table, as
        ``LeakageCap``.  What compares with p(w) takes it of all records, suppressed ones too.
    keep : {"W", "X", "discernibility", "class size", "non-uniform entropy", "loss"}
        By what the best is kept.  It has the greatest I(X̃; W), the utility of Bezzi 2010, §4, or
        I(X̃; X) = H(X̃); or the least of a cost, of N records:

        - *discernibility*, Σ |E|² over the groups, and N for each suppressed record (Bayardo and
          Agrawal 2005);
        - *class size*, N by the number of groups, those suppressed being one: k C_AVG (LeFevre,
          DeWitt and Ramakrishnan 2006);
        - *non-uniform entropy*, −Σ log p(value | released value) over records and columns (de Waal
          and Willenborg 1999; Gionis and Tassa 2009).  Of a suppressed record it is also which of
          the values of these levels it has, among those suppressed;
        - *loss*, the mean of (|g| − 1)/(|D| − 1) over records and columns, of the group g of a
          value in the hierarchy D, in leaves, and 1 where it is suppressed (Iyengar 2002).
    suppress : number
        The greatest share of the records, or of their weights, that may be suppressed: released as
        one group in which every key column is missing (``None``).  The criteria exempt that group,
        as they do in ARX.
    distortion : Distortion, optional
        The best has the least E d(X, X̂) instead, each group released as its best letter; each had
        to satisfy the criteria by itself, before groups released as one letter become one.
    units : {"bits", "nats"}
        Of information, in the criteria and in what is returned.

    Returns
    -------
    Generalisation
        The best levels, with ``minimal``, ``score``, what is ``suppressed``, and whether that group
        satisfies the criteria too.

    Raises
    ------
    InputError
        If no levels satisfy the criteria, a hierarchy lacks a value of its column, or a criterion
        cannot be decided on counts.

    Examples
    --------
    Twelve people, and k = 3: either the sex goes and the ages stay, or the other way round.  The
    second keeps more of what the key tells about the illness:

    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> table = pd.DataFrame({
    ...     "age": [18, 22, 37, 41] * 3, "sex": list("ffmmmmffmfmf"), "ill": list("nnynnynyynnn"),
    ... })
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key=["age", "sex"])
    >>> hierarchies = {
    ...     "age": sdc.Hierarchy.intervals([18, 22, 37, 41], 10, 20),
    ...     "sex": sdc.Hierarchy.suppression(["f", "m"]),
    ... }
    >>> recoding = full_domain(source, hierarchies, [cpv.KAnonymity(3)])
    >>> list(map(dict, recoding.minimal)), dict(recoding.levels)
    ([{'age': 0, 'sex': 1}, {'age': 3, 'sex': 0}], {'age': 3, 'sex': 0})
    >>> recoding.evaluated, recoding.nodes
    (5, 8)

    If a fifth of the records may be suppressed, bands of twenty years and the sex will do for
    k = 2: two of the twelve go.  But each of them costs as much as one that nothing tells from any
    other; by discernibility it is better that the sex goes, and nobody is suppressed:

    >>> for keep in ("W", "discernibility"):
    ...     few = full_domain(source, hierarchies, [cpv.KAnonymity(2)], keep=keep, suppress=0.2)
    ...     print(dict(few.levels), round(few.score, 4), round(few.share_suppressed, 4))
    {'age': 2, 'sex': 0} 0.3554 0.1667
    {'age': 0, 'sex': 1} 36.0 0.0
    """
    criteria = criteria_listed(criteria)
    limit = _share(suppress)
    one_of(keep, "keep", *OBJECTIVES)
    checked(source, [], units)
    grouped, overall = _parted(source, criteria, units)
    if not limit:
        for i, criterion in enumerate(criteria):
            if criterion.survives_merging and criterion in grouped:
                refuse_hopeless(source, i, criterion, units)
    if limit and distortion is not None:
        problem = "beside a distortion, which does not say what a suppressed record costs"
        raise InputError("suppress", problem, "leave one of them out, or use keep=", value=suppress)
    measure = fitted_to(source, distortion)
    lattice = _Lattice(
        source, hierarchies, grouped, overall, limit, keep if measure is None else measure, units
    )
    if keep == "W" and distortion is None and len(source.w) == 1:
        problem = "'W', of which there is one value, so that no levels tell more than others"
        remedy = "keep 'X', or the least 'loss' or another cost"
        raise InputError("keep", problem, remedy, value=keep)
    minimal, best, score = lattice.best()
    groups, lost = _released(lattice.columns, hierarchies, lattice.suppressing(best))
    loss = None
    if measure is not None:
        groups, loss = represented(source, measure, groups)
    return Generalisation(
        source,
        groups,
        tuple(criteria),
        units,
        loss,
        levels=dict(zip(hierarchies, best, strict=True)),
        minimal=[dict(zip(hierarchies, node, strict=True)) for node in minimal],
        evaluated=len(lattice.evaluated),
        nodes=math.prod(lattice.heights),
        keep="" if measure is not None else keep,
        score=-score if keep in ("W", "X") and measure is None else score,
        suppressed=lost,
    )


class _Lattice:
    """The levels of a table: what is released at a node, whether that will do, and its cost.

    The ``objective`` is a distortion, or the name of what is kept.
    """

    def __init__(
        self, source: DiscreteSource, hierarchies: Mapping[str, Hierarchy],
        grouped: Sequence[Criterion], overall: Sequence[Criterion], limit: Fraction,
        objective: Distortion | str, units: str,
    ) -> None:  # fmt: skip
        self.source, self.grouped, self.overall, self.units = source, grouped, overall, units
        self.objective, self.columns = objective, _columns(source, hierarchies)
        self.names = list(hierarchies)
        self.heights = [len(hierarchy.levels) for hierarchy in hierarchies.values()]
        if math.prod(self.heights) > MOST_NODES:
            problem = f"{math.prod(self.heights):,} combinations of levels"
            remedy = f"{MOST_NODES:,} are allowed: use fewer levels"
            raise InputError("hierarchies", problem, remedy)
        self.counts = counted(source, source.joint)
        self.recodings = _recodings(self.columns, hierarchies, self.counts.sum(axis=0))
        integral = grouped_table(source, self.counts, units).integral
        slack = 0 if integral else rational(SLACK)  # of weights
        self.limit, self.most = limit, (limit + slack) * rational(float(self.counts.sum()))
        self.evaluated: set[Node] = set()
        self.recoded = lru_cache(maxsize=64)(self._recoded)
        self.suppressing = lru_cache(maxsize=64)(self._suppressing)
        self.satisfied = cache(self._satisfied)

    def best(self) -> tuple[list[Node], Node, float]:
        """Return the minimal nodes, the best of all, and its cost; refuse where none will do."""
        if all(map(self._is_monotone, (*self.grouped, *self.overall))):  # a few nodes are asked
            verdicts = monotone_verdicts(self.heights, self.satisfied)
            starts = minimal = least(self.heights, verdicts, verdicts.__getitem__)
            satisfies: Callable[[Node], bool] = verdicts.__getitem__
        else:
            possible = monotone_verdicts(self.heights, self._possibly)
            minimal = least(self.heights, possible, self.satisfied)
            starts = least(self.heights, possible, possible.__getitem__)
            satisfies = self.satisfied
        if not minimal:
            remedy = "add coarser levels, such as suppression, or relax the criteria, or suppress "
            remedy += "more" if self.limit else "some records (suppress=0.02)"
            raise InputError("hierarchies", "no levels satisfy the criteria", remedy)
        best, score = best_of(
            starts, self.heights, bound=lambda node: self._cost(node, self.recoded),
            cost=lambda node: self._cost(node, self.suppressing), satisfied=satisfies,
        )  # fmt: skip
        if math.isinf(score):
            problem = "no levels satisfy the criteria without a move of infinite distortion"
            raise InputError("hierarchies", problem, "relax the criteria, or allow more moves")
        return minimal, best, score

    def _recoded(self, node: Node) -> RecodedTable:
        """Return the table at a node with nothing suppressed."""
        self.evaluated.add(node)
        levels = dict.fromkeys(self.columns, 0) | dict(zip(self.names, node, strict=True))
        at = self.recodings.groups(levels)
        joint = np.array([np.bincount(at, row) for row in self.counts])
        return RecodedTable(levels, at, joint, np.ones(joint.shape[1], bool))

    def _suppressing(self, node: Node) -> RecodedTable:
        """Return the table at a node without the groups that break a criterion."""
        return self._without(node, self.grouped)

    def _without(self, node: Node, rules: Sequence[Criterion]) -> RecodedTable:
        table = self.recoded(node)
        return replace(table, kept=allowed(self.source, rules, table.joint, self.units))

    def _is_monotone(self, criterion: Criterion) -> bool:
        """Tell whether what satisfies a criterion does so at every coarser level."""
        return criterion.survives_company if self.limit else criterion.survives_merging

    def _possibly(self, node: Node) -> bool:
        """Tell whether a node satisfies the monotone criteria of groups."""
        some = self._without(node, [*filter(self._is_monotone, self.grouped)])
        return rational(some.suppressed) <= self.most

    def _satisfied(self, node: Node) -> bool:
        """Tell whether a node satisfies all criteria."""
        table = self.suppressing(node)
        if rational(table.suppressed) > self.most:
            return False
        released = grouped_table(self.source, table.released, self.units)
        return all(criterion.verdict(released).holds is True for criterion in self.overall)

    def _cost(self, node: Node, table_at: Callable[[Node], RecodedTable]) -> float:
        """Return what the table at a node loses."""
        if isinstance(self.objective, Distortion):
            at = self.recoded(node).at.tolist()
            value = represented(self.source, self.objective, at)[1]
        else:
            value = cost_of(self.objective, table_at(node), self.recodings, self.units)
        return float(f"{value:.12e}")  # equal ones are equal, whatever the order of their sums


def _share(suppress: Any) -> Fraction:
    """Return a share as the decimal that was typed: 0.29 of 100 records are 29."""
    remedy = "pass a share of the records, from 0 to 1"
    share = typed(suppress, "suppress", below=ABOVE_ONE, remedy=remedy)
    return Fraction(str(float(share))) if isinstance(share, float) else Fraction(share)


def _parted(
    source: DiscreteSource, criteria: Sequence[Criterion], units: str
) -> tuple[list[Criterion], list[Criterion]]:
    """Return the criteria of each group by itself, and those of the released table."""
    grouped: list[Criterion] = []
    overall: list[Criterion] = []
    table = grouped_table(source, counted(source, source.joint), units)
    for i, criterion in enumerate(criteria):
        verdict = criterion.verdict(table)
        if verdict.met is None and verdict.value is None and verdict.holds is None:
            problem = f"{criterion!r} is not decided on counts"
            remedy = "use one of each group, or of the released table"
            raise InputError("criteria", problem, remedy, where=i)
        (overall if verdict.met is None else grouped).append(criterion)
    return grouped, overall


def _released(
    columns: Mapping[str, Sequence[Any]],
    hierarchies: Mapping[str, Hierarchy],
    table: RecodedTable,
) -> tuple[list[Any], np.ndarray]:
    """Return what each key letter is released as, and which are suppressed."""
    values = {n: _at(columns[n], hierarchies.get(n), level) for n, level in table.levels.items()}
    groups = [as_label(row) for row in zip(*values.values(), strict=True)]
    lost = ~table.kept[table.at]
    if lost.any():
        nobody = as_label([None] * len(columns))
        if any(group == nobody for group, gone in zip(groups, lost, strict=True) if not gone):
            problem = "records that miss every key column look like those that are suppressed"
            raise InputError("suppress", problem, "name the missing values, or leave them out")
        groups = [nobody if gone else group for group, gone in zip(groups, lost, strict=True)]
    return groups, lost


def _at(column: Sequence[Any], hierarchy: Hierarchy | None, level: int) -> list[Any]:
    """Return the values of a column at a level."""
    if hierarchy is None:
        return list(column)
    names = hierarchy.mapping(level)
    return [names[value] for value in column]


def _recodings(
    columns: Mapping[str, Sequence[Any]], hierarchies: Mapping[str, Hierarchy], masses: np.ndarray
) -> Recodings:
    """Return the columns of the key letters at every level."""
    numbers: dict[str, list[np.ndarray]] = {}
    shares: dict[str, list[np.ndarray]] = {}
    for name, column in columns.items():
        hierarchy = hierarchies.get(name)
        levels = [None] if hierarchy is None else hierarchy.levels
        values = [_at(column, hierarchy, i) for i in range(len(levels))]
        numbers[name], shares[name] = [codes(level) for level in values], []
        for level, named in zip(levels, values, strict=True):
            leaves = Counter(level or named)
            sizes = np.array([leaves[value] for value in named]) if level else np.ones(len(named))
            shares[name].append((sizes - 1) / max(len(level or ()) - 1, 1))
    return Recodings(numbers, shares, masses)


def _columns(source: DiscreteSource, hierarchies: Mapping[str, Hierarchy]) -> dict[str, list[Any]]:
    """Return each key column's value for every key letter; its hierarchy must know them."""
    if source.schema is None:
        remedy = "make it with DiscreteSource.from_table"
        raise InputError("source", "its key columns have no names", remedy)
    keys = source.schema.key
    rows = [x if len(keys) > 1 else (x,) for x in source.x]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(keys)}
    if not isinstance(hierarchies, Mapping) or not hierarchies:
        problem = "none" if not hierarchies else f"{hierarchies!r} is no mapping"
        raise InputError(
            "hierarchies", problem, "pass {column: Hierarchy}, of one key column or more"
        )
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
        The optimum over all p(x̂ | x), proved; under what the criteria imply of a law, where they
        are of tables alone: ``RecordEntropy`` of ``KAnonymity``.
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
        criteria = self.deterministic.criteria
        of_law = [f"{c.relaxation!r} for {c!r}" for c in criteria if c.of_table]
        under = f", under {', '.join(of_law)}" if of_law else ""
        return "\n".join(
            [
                "least distortion under " + ", ".join(map(repr, criteria)),
                f"  {'best ' + kind:<16} {cost:.6g} ({len(self.deterministic.outputs)} groups)",
                f"  {'randomised':<16} {best.value:.6g} ({best.status}, gap {best.gap:.1e}){under}",
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
    hierarchies; the difference is an upper bound of what determinism alone costs.  For
    ``KAnonymity(k)``, which is of tables, randomisations satisfy ``RecordEntropy(k)``: the same of
    partitions.

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
    every second person by one; a randomisation that leaves as open whose record it was, though its
    groups may be smaller, does so for half of that:

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
    of_law = [criterion.relaxation for criterion in criteria]
    problem = MinimumDistortion(source, distortion, of_law, units=units)
    return PriceOfDeterminism(best, problem.solve(**solve))
