r"""The groups of a drawn table merged at least cost: an integer program, and a proved lower end.

.. math::
   \min_z Σ_{y,y'} C(y, y')\, z(y, y') \quad\text{s.t.}\quad Σ_{y'} z(y, y') = 1, \quad
   z \text{ binary}, \quad \text{the criteria at } N(w, y') = Σ_y N(w, y)\, z(y, y'),

C(y, y') what the records that were drawn as y cost if they are released as y'.  A merging is a
channel of y that is certain, so that the optimum of the convex program over all channels of y,
whose certificate is a proof, bounds every merging from below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from cvxprivacy.criteria import Criterion, KAnonymity
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.errors import CertificationError
from cvxprivacy.exact import FloatArray
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.solvers.watch import Watch
from cvxprivacy_sdc.whole_counts.moves import ALL_MOVES, Places, some_moves
from cvxprivacy_sdc.whole_counts.problem import smallest_group
from cvxprivacy_sdc.whole_counts.rounds import Answer, Broken, Rounds
from cvxprivacy_sdc.whole_counts.tally import DrawnCounts

__all__ = ["LeastMerging", "least_merging"]

_FEW = 1e-4  # of the least cost: what tells mergings of one cost apart
_GAP = 1e-6
_GROUPS = 400  # of which a program over all pairs takes a minute


@dataclass(frozen=True)
class LeastMerging:
    """What the program ends with.

    Attributes
    ----------
    places : ndarray of int, shape (|X̂|,), or None
        The output that each output is released as; None where none was found that is better.
    lower : int
        Σ C of no merging is below, by proof.
    optimal : bool
        Whether the solver claims that none costs less.
    """

    places: Places | None
    lower: int
    optimal: bool


def least_merging(
    counts: DrawnCounts, criteria: Sequence[Criterion], costs: Places, apart: FloatArray,
    units: str, *, best: Places | None = None, time_limit: float | None = None,
) -> LeastMerging | None:  # fmt: skip
    """Return the merging of least cost; None for criteria that are not of W and x̂ alone.

    Of many groups only the lower end, and of very many nothing.

    Parameters
    ----------
    counts : DrawnCounts
        In whole records.
    criteria : sequence of Criterion
    costs : ndarray of int, shape (|X̂|, |X̂|)
        C, of whole costs.
    apart : ndarray, shape (|X̂|, |X̂|)
        How far the records of an output are from another: between mergings that cost the same.
    units : {"bits", "nats"}
    best : ndarray of int, shape (|X̂|,), optional
        A merging that satisfies the criteria.
    time_limit : float, optional
        Seconds.

    Raises
    ------
    InfeasibleError
        If none satisfies the criteria, by proof.
    """
    of_table = any(rule.of_table and not isinstance(rule, KAnonymity) for rule in criteria)
    if of_table or (counts.sizes > 0).sum() > _GROUPS:
        return None
    problem = _Problem(counts, criteria, costs, units)
    if not problem.takes_all:
        return None
    watch = Watch(time_limit)
    lower = problem.lower(watch)
    if len(problem.groups) > ALL_MOVES or watch.stopped:
        return LeastMerging(None, lower, optimal=False)
    answer = problem.merged(apart, best, watch)
    places = None if answer.counts is None else problem.places(answer.counts)
    return LeastMerging(places, lower, answer.finished)


class _Problem:
    """A drawn table as a source of its own: y is what is released again."""

    def __init__(
        self, counts: DrawnCounts, criteria: Sequence[Criterion], costs: Places, units: str
    ) -> None:
        self.groups, self.units, self.criteria = np.flatnonzero(counts.sizes), units, criteria
        self.outputs, self.costs = len(counts.outputs), costs[np.ix_(self.groups, self.groups)]
        there = counts.joint.any(axis=1)
        self.joint = counts.joint[there][:, self.groups]
        self.sizes, self.group = self.joint.sum(axis=0), smallest_group(criteria)
        self.source = DiscreteSource.from_counts(self.joint)
        pairs = zip(self.costs, self.sizes.tolist(), strict=True)
        self.d = np.array([[Fraction(c, n) for c in row.tolist()] for row, n in pairs], object)
        rules = [rule for rule in criteria if not isinstance(rule, KAnonymity)]
        self.law = MinimumDistortion(self.source, self.d, rules, units=units)

    @property
    def takes_all(self) -> bool:
        """Whether the records by w and x̂ decide each criterion, in rows of the program."""
        stated = [row for rules in self.law.program_rules.values() for row in rules.values()]
        table = self._table(np.diag(self.sizes))
        return all(isinstance(row, Constraint) for row in stated) and all(
            rule.verdict(table).holds is not None and not rule.of_channel for rule in self.criteria
        )

    def lower(self, watch: Watch) -> int:
        """Return what no merging costs less than, by the certificate."""
        problem = self.law
        if self.group > 1:
            rules = [*problem.criteria, KAnonymity(self.group).relaxation]
            problem = MinimumDistortion(self.source, self.d, rules, units=self.units)
        limit = None if watch.limit is None else watch.left
        try:
            least = Fraction(max(problem.solve(time_limit=limit).lower, 0.0))
        except CertificationError:  # nothing is proved in time; but costs are ≥ 0
            return 0
        return math.ceil(least * int(self.sizes.sum()))

    def merged(self, apart: FloatArray, best: Places | None, watch: Watch) -> Answer:
        """Return counts (y, y'): all records of y or none."""
        sizes, steps = self.sizes.astype(float), apart[np.ix_(self.groups, self.groups)]
        few = _FEW * float(self.costs[self.costs > 0].min(initial=1)) / max(float(steps.max()), 1)
        unit = float(self.costs.max()) or 1.0  # HiGHS's tolerances are of costs as they are
        each = (self.costs + few * steps) / (unit * sizes[:, None])
        moves = some_moves(each, sizes, sparse.eye_array(len(sizes), format="csr"), None)
        rounds = Rounds(self.law.program, moves, group=self.group)
        highs = rounds.highs
        z = highs.add_columns(np.zeros(len(moves.source)), 0.0, 1.0)
        for place, column in enumerate(rounds.columns.tolist()):
            row = np.array([1.0, -moves.upper[place]])
            highs.add_row(0.0, 0.0, np.array([column, z + place]), row)
        first = None
        if best is not None:
            first = np.zeros(self.costs.shape, np.int64)
            to = np.searchsorted(self.groups, best[self.groups])
            first[np.arange(len(to)), to] = self.sizes
        return rounds.run(watch, _GAP, self._broken, first=first)

    def places(self, merged: Places) -> Places:
        """Return the output that each output is released as."""
        places = np.arange(self.outputs)
        places[self.groups] = self.groups[merged.argmax(axis=1)]
        return places

    def _table(self, merged: Places) -> Counts:
        joint = self.joint @ (merged > 0).astype(np.int64)
        return Counts.of_records(joint, self.units, reference=self.joint.sum(axis=1))

    def _broken(self, merged: Places) -> Broken | None:
        table, broken = self._table(merged), dict[str, Any]()
        for name, rule in self.law._criteria().items():
            verdict: Any = rule.verdict(table)
            if not verdict.holds:
                broken |= dict.fromkeys(self.law.program_rules[name], verdict.broken)
        return broken or None
