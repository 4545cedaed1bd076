"""Released groups that break a criterion, merged into others.

For every map g of released letters that is taken as fixed, I(W; g(X̂)) ≤ I(W; X̂), in every measure
of leakage; criteria on released letters that hold hold after it.  Which groups are merged depends
on the table, the confidential column included, as rules of release do: that one was merged tells
that it broke a criterion, which no bound here covers.

Groups that break a criterion are merged one by one: with the group, or into the suppressed letter,
at which the distortion of the table's records rises least among those with which every criterion is
satisfied; else where it rises least.  They are taken from the smallest to the largest, and the
other way round, and what costs less is kept: a rule of thumb, not an optimum.  Then, while a cap is
exceeded, the two groups are merged that lessen what leaks most for the distortion that it costs;
where no pair lessens it, those that cost least.  One group is left at last, which leaks the least.

Of merges that cost the same, the one is made after which the records are released as the nearest
values (:mod:`cvxprivacy_sdc.whole_counts.nearness`), then that with the largest group.
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
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy_sdc.errors import BrokenTableError
from cvxprivacy_sdc.whole_counts.tally import DrawnCounts

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

    @classmethod
    def of(cls, counts: DrawnCounts, places: npt.NDArray[np.int64]) -> Merging:
        """Return the merging of a drawn table's outputs by the places of what they become."""
        sizes, outputs = counts.sizes.tolist(), counts.outputs
        moved = ((y, to) for y, to in enumerate(places.tolist()) if to != y and sizes[y])
        return cls(places, [(outputs[y], outputs[to], sizes[y]) for y, to in moved])

    @property
    def records(self) -> int:
        """How many records are released otherwise than they were drawn."""
        return sum(records for _, _, records in self.moves)


def merging(
    counts: DrawnCounts,
    criteria: Sequence[Criterion],
    alphabet: Alphabet,
    blocked: npt.NDArray[np.bool_] | None,
    apart: FloatArray,
) -> Merging:
    """Merge groups until every one satisfies the criteria, and the table those on sums of leakage.

    Criteria of other kinds are left to be judged on the table that comes out.

    Parameters
    ----------
    blocked : ndarray of bool, shape (|X̂|, |X̂|), optional
        Whether an output has records that may not be released as another.
    apart : ndarray, shape (|X|, |X̂|)
        How far what is released is from what was: decides between merges of the same distortion.

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
        groups = _Groups(counts, letters, alphabet, blocked, apart)
        while len(broken := groups.broken()):
            sizes = groups.sizes[broken]
            worst = int(broken[np.argmax(sizes) if largest else np.argmin(sizes)])
            if not groups.merge(worst):
                break
        over = [repr(rule) for rule in sums if not len(broken) and not groups.lessen(rule)]
        cost = (round(groups.cost, _DIGITS), groups.far)
        attempts.append((len(broken), len(over), cost, groups, over))
    left, exceeded, _, groups, over = min(attempts, key=lambda attempt: attempt[:3])
    if left or exceeded:
        names = over or [repr(rule) for rule in letters if not groups.keeps(rule)]
        raise BrokenTableError(int((groups.sizes > 0).sum()), names)
    return Merging.of(counts, groups.places)


class _Groups:
    """The groups of a drawn table while they are merged."""

    def __init__(
        self,
        counts: DrawnCounts,
        criteria: list[Criterion],
        alphabet: Alphabet,
        blocked: npt.NDArray[np.bool_] | None,
        apart: FloatArray,
    ) -> None:
        self.criteria, self.units = criteria, alphabet.units
        self.joint = counts.joint.copy()
        self.masses = self.joint.sum(axis=1)
        # which key letters records came from: what a group leaves open of them depends on it
        of_letters = any(rule.counts_records and not rule.of_table for rule in criteria)
        self.moves = counts.moves.copy() if of_letters and alphabet.encoder == "x" else None
        m = len(counts.outputs)
        self.places = np.arange(m)
        d = floats(alphabet.d.cost)
        if d.ndim == 2:
            costs = counts.moves.T @ d
        else:
            costs = np.zeros((m, m))
            np.add.at(costs, counts.y_at, counts.masses[:, None] * d[counts.w_at, counts.x_at])
        self.costs = np.where(blocked, np.inf, costs) if blocked is not None else costs
        self.steps = counts.moves.T @ apart
        self.spare = {y for y in range(m) if _suppressed(counts.outputs[y])}

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        return self.joint.sum(axis=0)

    @property
    def cost(self) -> float:
        """The distortion of all records as their groups are released."""
        return float(self.costs.diagonal().sum())

    @property
    def far(self) -> float:
        """How far all records are from what they were."""
        return float(self.steps.diagonal().sum())

    def broken(self) -> npt.NDArray[np.int64]:
        """Return the groups that break a criterion."""
        active = np.flatnonzero(self.sizes)
        return active[~self.satisfied(self.joint[:, active], self._moves(active))]

    def _moves(self, groups: Any) -> npt.NDArray[Any] | None:
        return None if self.moves is None else self.moves[:, groups]

    def satisfied(
        self, joint: npt.NDArray[np.int64], moves: npt.NDArray[Any] | None
    ) -> npt.NDArray[np.bool_]:
        """Tell which groups satisfy every criterion."""
        met = np.ones(joint.shape[1], bool)
        for rule in self.criteria:
            met &= self.satisfied_by(rule, joint, moves)
        return met

    def satisfied_by(
        self, rule: Criterion, joint: npt.NDArray[np.int64], moves: npt.NDArray[Any] | None
    ) -> npt.NDArray[np.bool_]:
        """Tell which groups satisfy one criterion."""
        origins = None if moves is None or self.moves is None else left_open(moves, self.moves)
        table = Counts.of_records(joint, self.units, reference=self.masses, origins=origins)
        met = rule.verdict(table).met
        return np.zeros(joint.shape[1], bool) if met is None else met

    def keeps(self, rule: Criterion) -> bool:
        """Tell whether every group satisfies a criterion."""
        return bool(self.satisfied_by(rule, self.joint, self.moves).all())

    def merge(self, group: int) -> bool:
        """Merge a group into the nearest one, or that one into it; False if there is none."""
        sizes = self.sizes
        others = np.array([
            y for y in range(len(sizes))
            if y != group and (sizes[y] or (y in self.spare and group not in self.spare))
        ], dtype=int)  # fmt: skip
        if not len(others):
            return False
        (into, far), (from_them, far_of_them) = (
            tuple((table[a, b] - table[a, a]).round(_DIGITS) for table in (self.costs, self.steps))
            for a, b in ((group, others), (others, group))
        )
        from_them = np.where(sizes[others] > 0, from_them, np.inf)
        joins = (into < from_them) | ((into == from_them) & (far <= far_of_them))
        added, apart = np.where(joins, into, from_them), np.where(joins, far, far_of_them)
        moves = None if self.moves is None else self.moves[:, [group]] + self.moves[:, others]
        met = self.satisfied(self.joint[:, [group]] + self.joint[:, others], moves)
        ties = others, -sizes[others], apart, added
        best = int(np.lexsort((*ties, ~met))[0])
        if not np.isfinite(added[best]):
            best = int(np.lexsort(ties)[0])
        if not np.isfinite(added[best]):
            return False
        other = int(others[best])
        self._join(*((group, other) if joins[best] else (other, group)))
        return True

    def _join(self, source: int, target: int) -> None:
        """Release a group as another."""
        moves = [] if self.moves is None else [self.moves.T]
        for table in (self.joint.T, self.costs, self.steps, *moves):
            table[target] += table[source]
            table[source] = 0
        self.places[self.places == source] = target

    def lessen(self, cap: Criterion) -> bool:
        """Merge the pairs that lessen what leaks most for their distortion, until a cap is met.

        Where no pair lessens it, the cheapest one is merged.  False if no pair may be merged.
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
            into, far = (
                table[np.ix_(active, active)] - table[active, active][:, None]
                for table in (self.costs, self.steps)
            )
            possible = np.isfinite(into) & (into <= into.T)  # of a row into a column
            np.fill_diagonal(possible, False)
            worth = np.full(into.shape, -np.inf)
            np.divide(each[:, None] + each - both, np.maximum(into, _MARGIN), worth, where=possible)
            if not possible.any():
                return False
            if (best := worth.max()) > 0:
                chosen = worth >= _SAME * best
            else:  # no pair by itself: three groups together may, so the cheapest pair comes first
                chosen = possible & (into <= into[possible].min() + _MARGIN)
            nearest = np.where(chosen, far, np.inf)
            source, target = map(int, np.unravel_index(int(nearest.argmin()), worth.shape))
            self._join(int(active[source]), int(active[target]))
            kept = np.arange(len(active)) != source
            place = target - (source < target)
            active, each, both = active[kept], each[kept], both[np.ix_(kept, kept)]
            each[place] = leaks(self.joint[:, active[[place]]])[0]
            both[place] = leaks(self.joint[:, active[[place]]] + self.joint[:, active])
            both[:, place] = both[place]
        return True


_MARGIN = 1e-12  # of leakage in floats, and of a distortion that costs nothing
_SAME = 1 - 1e-12  # as a part of what is best: as good
_DIGITS = 9  # of distortions that are the same: sums of floats differ in their last digits


def left_open(moves: npt.NDArray[Any], every: npt.NDArray[Any]) -> FloatArray:
    """Return 2^H(record | x̂) of groups by the letters of their records: as many equally likely.

    n H = Σ_s n_s log(n N_s/n_s), of n records in all, n_s of the N_s of each letter.

    Parameters
    ----------
    moves : ndarray, shape (|X|, groups)
        n_s.
    every : ndarray, shape (|X|, |X̂|)
        Those of all groups, of which N_s are the sums.
    """
    n, full = moves.sum(axis=0), every.sum(axis=1, keepdims=True)
    share = np.divide(moves, n, out=np.zeros(moves.shape), where=n > 0)
    ratio = np.divide(full, moves, out=np.ones(moves.shape), where=moves > 0)
    return np.asarray(n * np.exp((share * np.log(ratio)).sum(axis=0)))


def _suppressed(label: Any) -> bool:
    """Tell whether a released letter withholds a value."""
    return label is None or (isinstance(label, tuple) and None in label)
