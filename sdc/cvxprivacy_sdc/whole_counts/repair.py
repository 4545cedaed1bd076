r"""Whole counts that break rows of outputs, mended record by record.

Of all single records and all places, the one moves that lowers what is broken in all,

.. math::
   V(m) = Σ_{\hat x} Σ_i N \max(0,\, F_i(\hat x) - b_i(\hat x)),

by most for what it costs; where none does, the smallest output that is broken is emptied.  What a
record more or less does to an output depends on how the rows see it and on nothing else, so that a
table of outputs and kinds of records tells it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.solvers.watch import Watch
from cvxprivacy_sdc.whole_counts.moves import BUDGET, Places, letters_alike
from cvxprivacy_sdc.whole_counts.rounds import Judge
from cvxprivacy_sdc.whole_counts.rows import TableRow

__all__ = ["Repair"]

_PRICES = (1e-2, 1e-3)  # records of what is broken, for the greatest cost: the dearer looks further
_NEAR = 1e-7  # records by which rows may be broken, and less than which no move is worth
_SHUT = 100.0  # records by which each record breaks an output that is shut
_PASSES = 3  # over all outputs: a third gains next to nothing
_KINDS = 100  # of records, up to which all of them are tried at an output
_ENTRIES = 1_000_000  # of a table, all of which are looked at for each record


class Repair:
    """Records moved one by one to where less is broken.

    Parameters
    ----------
    program : ChannelProgram
        Whose rows they are; those that are sums over all outputs are left to who judges.
    n : ndarray of int, shape (n,)
        Records of each letter.
    judge : callable
        As of :func:`~cvxprivacy_sdc.whole_counts.rounds.least_table`, of what it comes to.
    group : int
        The least size of a group that is not empty.
    """

    def __init__(self, program: ChannelProgram, n: Places, judge: Judge, *, group: int = 1) -> None:
        self.judge, self.group = judge, group
        self.letters, self.total = program.n, float(n.sum())
        self.few = program.n * program.m <= _ENTRIES
        self.kind = letters_alike(program) if self.few else np.arange(program.n)
        self.first = np.unique(self.kind, return_index=True)[1]  # a letter of each kind
        self.few &= len(self.first) <= _KINDS
        rows = program.constraints.items() if self.few else ()
        stated = [row for name, row in rows if row.per_output and name != BUDGET]
        self.rows = [TableRow(program, row) for row in stated]
        self.memory: dict[tuple[int, bytes], tuple[float, FloatArray, FloatArray]] = {}

    def table(
        self, counts: Places, lower: FloatArray, upper: FloatArray, watch: Watch,
        costs: FloatArray | None = None,
    ) -> Places | None:  # fmt: skip
        """Return counts (n, m) within bounds that satisfy all, if it comes to that.

        None of more letters than a search of all records is quick for.

        Parameters
        ----------
        counts : ndarray of int, shape (n, m)
            To begin with; what is beyond bounds is put within them.
        lower, upper : ndarray, shape (n, m)
        watch : Watch
        costs : ndarray, shape (n, m), optional
            Of a record; without, as few records move as may be.
        """
        within = _within(counts, lower, upper, costs) if self.few else None
        if within is None:
            return None
        most = 0.0 if costs is None else float(costs.max())
        for price in _PRICES if most else (0.0,):
            paid = np.zeros(counts.shape) if costs is None or not most else costs * (price / most)
            mended = self._mended(within.copy(), lower, upper, paid, watch)
            if mended is not None or watch.stopped:
                return mended
        return None

    def cheaper(
        self, counts: Places, home: Places, lower: FloatArray, upper: FloatArray, watch: Watch,
        costs: FloatArray,
    ) -> Iterator[Places]:  # fmt: skip
        """Yield counts that satisfy all and cost ever less: who comes home, and what that mends.

        One output after the other takes its records back, from the one with the fewest to take;
        the best counts so far are yielded after each.

        Parameters
        ----------
        counts : ndarray of int, shape (n, m)
            That satisfy all.
        home : ndarray of int, shape (n,)
            The output that is a letter's value, −1 for none.
        lower, upper, watch, costs
            As of :meth:`table`.
        """
        best, n = float((costs * counts).sum()), counts.sum(axis=1)
        at_home, before = home >= 0, math.inf
        for _ in range(_PASSES):
            if best == before or watch.stopped:
                break
            before, away = best, np.zeros(counts.shape[1], np.int64)
            letters = np.flatnonzero(at_home)
            np.add.at(away, home[letters], (n - counts[np.arange(len(n)), home])[letters])
            for y in np.argsort(away, kind="stable")[np.count_nonzero(away == 0) :].tolist():
                back, trial = home == y, counts.copy()
                trial[back] = 0
                trial[back, y] = n[back]
                mended = self.table(trial, lower, upper, watch, costs)
                if mended is not None and (cost := float((costs * mended).sum())) < best:
                    counts, best = mended, cost
                yield counts

    def _mended(
        self, counts: Places, lower: FloatArray, upper: FloatArray, costs: FloatArray, watch: Watch
    ) -> Places | None:
        """Move the best record, again and again, until nothing is broken; None where that ends."""
        kinds, m = len(self.first), counts.shape[1]
        sums = np.zeros((kinds, m))
        np.add.at(sums, self.kind, counts)
        broken, more, less = np.zeros(m), np.zeros((kinds, m)), np.zeros((kinds, m))
        letters, shut, can_be_shut = np.arange(len(counts)), np.zeros(m, bool), ~lower.any(axis=0)
        changed: list[int] = list(range(m))
        while not watch.stopped:
            for y in changed:
                if shut[y]:
                    broken[y], more[:, y], less[:, y] = _SHUT * sums[:, y].sum(), _SHUT, -_SHUT
                else:
                    broken[y], more[:, y], less[:, y] = self._about(sums[:, y], y)
            if broken.sum() <= _NEAR:
                return counts if self.judge(counts) is None else None
            leave = np.where(counts > lower, less[self.kind] - costs, np.inf)
            arrive = np.where(counts < upper, more[self.kind] + costs, np.inf)
            old, new = leave.argmin(axis=1), arrive.argmin(axis=1)
            change = leave[letters, old] + arrive[letters, new]
            change[old == new] = np.inf  # the best place is where it is
            s = int(change.argmin())
            if change[s] > -_NEAR:
                left = np.flatnonzero(can_be_shut & ~shut & (broken > _NEAR))
                if not len(left):
                    return None
                changed = [int(left[sums[:, left].sum(axis=0).argmin()])]  # the smallest
                shut[changed] = True
                continue
            changed = [int(old[s]), int(new[s])]
            for y, by in zip(changed, (-1, 1), strict=True):
                counts[s, y] += by
                sums[self.kind[s], y] += by
        return None

    def _about(self, sums: FloatArray, y: int) -> tuple[float, FloatArray, FloatArray]:
        """Return what an output breaks, and by how much more with one of each kind more, or less.

        In records; ``sums`` of shape (kinds,).  It is asked of the same ones again and again.
        """
        key = y, sums.tobytes()
        if key not in self.memory:
            self.memory[key] = self._counted(sums, y)
        return self.memory[key]

    def _counted(self, sums: FloatArray, y: int) -> tuple[float, FloatArray, FloatArray]:
        kinds = len(sums)
        one = np.eye(kinds)
        near = np.concatenate([sums + one, np.maximum(sums - one, 0.0), sums[None]]).T
        masses, sizes = np.zeros((self.letters, near.shape[1])), near.sum(axis=0)
        masses[self.first] = near / self.total
        off = np.where(sizes > 0, np.maximum(self.group - sizes, 0.0), 0.0)
        for row in self.rows:
            at = np.flatnonzero((sizes > 0) | (not row.weights))  # nothing is told by no records
            value = row.values(masses[:, at], np.full(len(at), y))
            over = (value - row.bound[y]) * self.total
            by = np.abs(over) if row.row.sense == "==" else np.maximum(over, 0.0)
            off[at] += np.minimum(by, _SHUT * self.total)  # a leakage may be without end
        return float(off[-1]), off[:kinds] - off[-1], off[kinds:-1] - off[-1]


def _within(
    counts: Places, lower: FloatArray, upper: FloatArray, costs: FloatArray | None
) -> Places | None:
    """Return counts of the same sums within bounds, where there is room for the least cost."""
    costs = np.zeros(counts.shape) if costs is None else costs
    near = np.clip(counts, lower, upper)
    missing = (counts - near).sum(axis=1, keepdims=True)
    for sign, room in ((1, upper - near), (-1, near - lower)):
        order = np.argsort(sign * costs, axis=1, kind="stable")
        places = np.take_along_axis(room, order, axis=1)
        before = places.cumsum(axis=1) - places
        moved = np.minimum(np.maximum(sign * missing - before, 0.0), places)
        near = near + sign * np.take_along_axis(moved, np.argsort(order, axis=1), axis=1)
    fits = (near >= lower).all() and (near <= upper).all()
    if not fits or (near.sum(axis=1) != counts.sum(axis=1)).any():
        return None
    within: Places = near.astype(np.int64)
    return within
