"""Released groups that break a criterion, merged into others.

A change of labels after the draw tells nobody more about anything: whatever the map g of released
letters, I(W; g(X̂)) ≤ I(W; X̂), in every measure of leakage.  Groups that break a criterion are
merged one by one: with the group, or into the suppressed letter, at which the distortion of the
table's records rises least among those with which every criterion is satisfied; else where it rises
least.  They are taken from the smallest to the largest, and the other way round, and what costs
less is kept: a rule of thumb, not an optimum.  Which groups are merged depends on the table, the
confidential column included, as rules of release do; the map is part of what is released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion
from cvxprivacy.errors import BrokenTableError
from cvxprivacy.microdata.measures import standing
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.release.tally import DrawnCounts

__all__ = ["Merging", "merging"]


@dataclass(frozen=True, eq=False)
class Merging:
    """Which released letters are released as which others.

    Attributes
    ----------
    places : ndarray of int, shape (|X̂|,)
        The output that each output is released as.
    moves : list of (letter, letter, int)
        From what, to what, and how many records: of letters that are released otherwise.
    """

    places: npt.NDArray[np.int64]
    moves: list[tuple[Any, Any, int]]

    @property
    def records(self) -> int:
        """How many records are released otherwise than they were drawn."""
        return sum(records for _, _, records in self.moves)


def merging(
    counts: DrawnCounts,
    criteria: Mapping[str, Criterion],
    alphabet: Alphabet,
    blocked: npt.NDArray[np.bool_] | None,
) -> Merging:
    """Merge groups until every one satisfies the criteria.

    Parameters
    ----------
    criteria : mapping of str to Criterion
        Per released letter.
    blocked : ndarray of bool, shape (|X̂|, |X̂|), optional
        Whether an output has records that may not be released as another.

    Raises
    ------
    BrokenTableError
        If nothing is left to merge, and a criterion is broken.
    """
    attempts = []
    for largest in (False, True):
        groups = _Groups(counts, list(criteria.values()), alphabet, blocked)
        while len(broken := groups.broken()):
            sizes = groups.sizes[broken]
            worst = int(broken[np.argmax(sizes) if largest else np.argmin(sizes)])
            if not groups.merge(worst):
                break
        attempts.append((len(broken), groups.cost, groups, broken))
    left, _, groups, broken = min(attempts, key=lambda attempt: attempt[:2])
    if left:
        names = [
            repr(rule) for rule in criteria.values()
            if not standing(rule, groups.joint, units=alphabet.units)[1].all()
        ]  # fmt: skip
        raise BrokenTableError(
            int((groups.sizes > 0).sum()), int(groups.sizes[broken].min()), names
        )
    places, sizes = groups.places, counts.joint.sum(axis=0)
    moves = [
        (counts.outputs[y], counts.outputs[to], int(sizes[y]))
        for y, to in enumerate(places)
        if to != y and sizes[y]
    ]
    return Merging(places, moves)


class _Groups:
    """The groups of a drawn table while they are merged."""

    def __init__(
        self,
        counts: DrawnCounts,
        criteria: list[Criterion],
        alphabet: Alphabet,
        blocked: npt.NDArray[np.bool_] | None,
    ) -> None:
        self.criteria, self.units = criteria, alphabet.units
        self.joint = counts.joint.copy()
        self.masses = self.joint.sum(axis=1)
        m = len(counts.outputs)
        self.places = np.arange(m)
        d = np.asarray(alphabet.d.matrix)
        if d.ndim == 2:
            costs = counts.moves.T @ d
        else:
            costs = np.zeros((m, m))
            np.add.at(costs, counts.y_at, counts.records[:, None] * d[counts.w_at, counts.x_at])
        self.costs = np.where(blocked, np.inf, costs) if blocked is not None else costs
        self.spare = {y for y in range(m) if _suppressed(counts.outputs[y])}

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        return self.joint.sum(axis=0)

    @property
    def cost(self) -> float:
        """The distortion of all records as their groups are released."""
        return float(self.costs.diagonal().sum())

    def broken(self) -> npt.NDArray[np.int64]:
        """Return the groups that break a criterion."""
        active = np.flatnonzero(self.sizes)
        return active[~self.satisfied(self.joint[:, active])]

    def satisfied(self, joint: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Tell which groups satisfy every criterion."""
        met = np.ones(joint.shape[1], bool)
        for rule in self.criteria:
            met &= standing(rule, joint, reference=self.masses, units=self.units)[1]
        return met

    def merge(self, group: int) -> bool:
        """Merge a group into the nearest one, or that one into it; False if there is none."""
        sizes = self.sizes
        others = np.array([
            y for y in range(len(sizes))
            if y != group and (sizes[y] or (y in self.spare and group not in self.spare))
        ], dtype=int)  # fmt: skip
        if not len(others):
            return False
        into = self.costs[group, others] - self.costs[group, group]
        from_them = self.costs[others, group] - self.costs[others, others]
        from_them = np.where(sizes[others] > 0, from_them, np.inf)
        added = np.minimum(into, from_them)
        met = self.satisfied(self.joint[:, [group]] + self.joint[:, others])
        order = np.lexsort((others, -sizes[others], added, ~met))
        best = int(order[0])
        if not np.isfinite(added[best]):
            best = int(np.argmin(added))
        if not np.isfinite(added[best]):
            return False
        other = int(others[best])
        source, target = (group, other) if into[best] <= from_them[best] else (other, group)
        for table in (self.joint.T, self.costs):
            table[target] += table[source]
            table[source] = 0
        self.places[self.places == source] = target
        return True


def _suppressed(label: Any) -> bool:
    """Tell whether a released letter withholds a value."""
    return label is None or (isinstance(label, tuple) and None in label)
