"""Released groups that break a criterion, merged into others.

For every map g of released letters that is taken as fixed, I(W; g(X̂)) ≤ I(W; X̂), in every measure
of leakage; criteria on released letters that hold hold after it.  Which groups are merged depends
on the table, the confidential column included, as rules of release do: that one was merged tells
that it broke a criterion, which no bound here covers.

Groups that break a criterion are merged one by one: with the group, or into the suppressed letter,
at which the distortion of the table's records rises least among those with which every criterion is
satisfied; else where it rises least.  They are taken from the smallest to the largest, and the
other way round, and what costs less is kept: a rule of thumb, not an optimum.  Then, while a cap is
exceeded, the two groups are merged that lessen what leaks most for the distortion that it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.additive import floats
from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.counts import Counts, leaked
from cvxprivacy.errors import BrokenTableError
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
    criteria: Sequence[Criterion],
    alphabet: Alphabet,
    blocked: npt.NDArray[np.bool_] | None,
) -> Merging:
    """Merge groups until every one satisfies the criteria, and the table those on sums of leakage.

    Criteria of other kinds are left to be judged on the table that comes out.

    Parameters
    ----------
    blocked : ndarray of bool, shape (|X̂|, |X̂|), optional
        Whether an output has records that may not be released as another.

    Raises
    ------
    BrokenTableError
        If nothing is left to merge, and a criterion is broken.
    """
    table = Counts.of_records(counts.joint, alphabet.units)
    stands = [(rule, rule.verdict(table)) for rule in criteria]
    letters = [rule for rule, verdict in stands if verdict.met is not None]
    sums = [
        rule
        for rule, verdict in stands
        if verdict.met is None and verdict.value is not None and rule.measure is not None
    ]
    attempts = []
    for largest in (False, True):
        groups = _Groups(counts, letters, alphabet, blocked)
        while len(broken := groups.broken()):
            sizes = groups.sizes[broken]
            worst = int(broken[np.argmax(sizes) if largest else np.argmin(sizes)])
            if not groups.merge(worst):
                break
        over = [repr(rule) for rule in sums if not len(broken) and not groups.lessen(rule)]
        attempts.append((len(broken), len(over), groups.cost, groups, over))
    left, exceeded, _, groups, over = min(attempts, key=lambda attempt: attempt[:3])
    if left or exceeded:
        names = over or [repr(rule) for rule in letters if not groups.satisfied_by(rule).all()]
        raise BrokenTableError(int((groups.sizes > 0).sum()), names)
    places, sizes = groups.places, counts.sizes
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
        d = floats(alphabet.d.cost)
        if d.ndim == 2:
            costs = counts.moves.T @ d
        else:
            costs = np.zeros((m, m))
            np.add.at(costs, counts.y_at, counts.masses[:, None] * d[counts.w_at, counts.x_at])
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
            met &= self.satisfied_by(rule, joint)
        return met

    def satisfied_by(
        self, rule: Criterion, joint: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.bool_]:
        """Tell which groups satisfy one criterion, by default of those that there are."""
        groups = self.joint if joint is None else joint
        met = rule.verdict(Counts.of_records(groups, self.units, reference=self.masses)).met
        return np.zeros(groups.shape[1], bool) if met is None else met

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
        if into[best] <= from_them[best]:
            self._join(group, other)
        else:
            self._join(other, group)
        return True

    def _join(self, source: int, target: int) -> None:
        """Release a group as another."""
        for table in (self.joint.T, self.costs):
            table[target] += table[source]
            table[source] = 0
        self.places[self.places == source] = target

    def lessen(self, cap: Criterion) -> bool:
        """Merge the pairs that lessen what leaks most for their distortion, until a cap is met.

        False if no pair that may be merged is left.
        """
        how: dict[str, Any] = {"reference": self.masses, "units": self.units}
        total, bound = self.masses.sum(), float(cap.value) - _MARGIN
        measure = cap.measure
        assert measure is not None

        def leaks(joint: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
            """Return what each group adds to what leaks."""
            return np.nan_to_num(leaked(measure, joint, **how) * joint.sum(axis=0) / total)

        active = np.flatnonzero(self.sizes)
        each = leaks(self.joint[:, active])
        both = np.array([leaks(self.joint[:, [y]] + self.joint[:, active]) for y in active])
        while each.sum() > bound:
            costs = self.costs[np.ix_(active, active)]
            into = costs - costs.diagonal()[:, None]
            added = np.maximum(np.minimum(into, into.T), _MARGIN)
            gained = np.where(np.isfinite(added), each[:, None] + each - both, -np.inf)
            np.fill_diagonal(gained, -np.inf)
            a, b = np.unravel_index(int(np.argmax(gained / added)), gained.shape)
            if not gained[a, b] > 0:
                return False
            source, target = (a, b) if into[a, b] <= into[b, a] else (b, a)
            self._join(int(active[source]), int(active[target]))
            kept = np.arange(len(active)) != source
            place = int(target - (source < target))
            active, each, both = active[kept], each[kept], both[np.ix_(kept, kept)]
            each[place] = leaks(self.joint[:, active[[place]]])[0]
            both[place] = leaks(self.joint[:, active[[place]]] + self.joint[:, active])
            both[:, place] = both[place]
        return True


_MARGIN = 1e-12  # of leakage in floats, and of a distortion that costs nothing


def _suppressed(label: Any) -> bool:
    """Tell whether a released letter withholds a value."""
    return label is None or (isinstance(label, tuple) and None in label)
