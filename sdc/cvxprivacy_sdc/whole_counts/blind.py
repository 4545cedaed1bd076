r"""Whole counts that are blind to W: a channel of x alone, each of its counts rounded up or down.

.. math::
   m(w, x, \hat x) \text{ whole}, \qquad |m(w, x, \hat x) - n(w, x)\, p(\hat x | x)| < 1

First the channel: of least cost, or of least leakage under a budget, under every row with a
*margin* of records, on the outputs that are *filled*.  Each record of a row then may be one off,
and the margin leaves room for that.  Then the rounding: an integer program over the fractional
counts alone, under the rows themselves; of all roundings that satisfy them the one that is nearest
to a *balanced draw* of the channel, so that nothing but chance chooses what W was seen for, and no
group tells more by accident than it must.  Where that is beyond HiGHS, as of a dozen values of W it
is, the draw itself is mended record by record.  Margins are tried from a half on, then less while
there is room; letters of few expected records are closed, more of them while that is better.

A table may satisfy criteria that no channel of x satisfies, as each of its counts is less than a
record off.  Where no channel leads to a table, p is an unknown of a small integer program, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.solvers.watch import Watch
from cvxprivacy_sdc.whole_counts.moves import (
    Booleans,
    Places,
    bounds_in_records,
    budgeted,
    distances,
    roundings,
    some_moves,
)
from cvxprivacy_sdc.whole_counts.repair import Repair
from cvxprivacy_sdc.whole_counts.rounds import Answer, Judge, Rounds
from cvxprivacy_sdc.whole_counts.rows import TableRow

__all__ = ["Blind", "blind_table", "rounded_law"]

Draw = Callable[[FloatArray], Places]

_MARGINS = (0.5, 0.75, 1.0, 2.0)  # records: what a rounded count is off by, and more
_MARGIN = _MARGINS[0]
_NARROWER = 2  # margins that are tried below the one that has a rounding, each half the way
_SMALL = 10_000  # moves up to which margins are narrowed on each set of letters
_WORSE = 2  # sets of letters, each smaller than the last, that are worse before the search ends
_FEW = 1e-3  # expected records of a move that a law is rounded without
_GAP = 0.5  # of a random cost, which need not be the least
_TINY = 1_000  # moves up to which the channel that is rounded is an unknown, too
_PATIENCE = 10  # rounds of HiGHS's cuts for a rounding: most take two, and some never end
_WITHIN = 1 - 1e-6  # records that a count may be off: less than one, beyond HiGHS's tolerance


@dataclass
class Blind:
    """A blind table.

    Attributes
    ----------
    counts : ndarray of int, shape (n, m)
        m(w, x, x̂), by the program's letters (w, x).
    expected : ndarray, shape (|X|, m)
        n(x) p(x̂ | x), whose parts n(w, x) p(x̂ | x) are rounded.
    """

    counts: Places
    expected: FloatArray


def blind_table(
    program: ChannelProgram,
    n: Places,
    x_of: Places,
    judge: Judge,
    chance: np.random.Generator,
    draw: Draw,
    *,
    law: FloatArray | None = None,
    infeasible: bool = False,
    gap: float = _GAP,
    group: int = 1,
    apart: FloatArray | None = None,
    watch: Watch | None = None,
) -> tuple[Answer, Blind | None]:
    """Return whole counts of small cost that round a channel of x.

    Parameters
    ----------
    program : ChannelProgram
        Least cost under rows, of letters (w, x).
    n : ndarray of int, shape (n,)
        Records of each letter.
    x_of : ndarray of int, shape (n,)
        The x of each letter.
    judge : callable
        As of :func:`~cvxprivacy_sdc.whole_counts.rounds.least_table`.
    chance : numpy.random.Generator
        By which ties are broken.
    draw : callable
        A table (n, m) that is drawn of a channel's expected records (|X|, m), each count within one
        of its expectation.
    law : ndarray, shape (|X|, m), optional
        p(x̂ | x) of the best channel of x: which letters are released, and the first moves.
    infeasible : bool
        Whether no channel of x satisfies the rows.
    gap : float
        Of the least that a table of an unknown p costs, relatively.
    group : int
        The least size of a group that is not empty.
    apart : ndarray, shape (|X|, m), optional
        Between 0 and a few, by which moves of the same cost are told apart.
    watch : Watch, optional
        The clock.
    """
    watch = Watch() if watch is None else watch
    search = _Search(program, n, x_of, judge, chance, draw, law, group, apart, watch)
    best: Blind | None = None
    try:
        for blind in () if infeasible else search.tables():
            if best is None or search.cost(blind) < search.cost(best):
                best = blind
        if best is None:
            best = search.of_any_channel(gap)
    except KeyboardInterrupt:
        watch.interrupted = True
    answer = search.answer
    answer.counts = None if best is None else best.counts
    return answer, best


def rounded_law(
    program: ChannelProgram, n: Places, judge: Judge, draw: Draw, law: FloatArray, *,
    group: int, watch: Watch,
) -> Places | None:  # fmt: skip
    """Return counts (n, m) that round a law of the program's own letters and satisfy all.

    Of encoder (W, X), which may look: a first table, the same each time.
    """
    chance, letters = np.random.default_rng(0), np.arange(program.n)
    search = _Search(program, n, letters, judge, chance, draw, law, group, None, watch)
    try:
        table = search.law()
        if table is None and search.costs.size <= _SMALL:
            table = next(search.by_margins(), None)
    except KeyboardInterrupt:
        watch.interrupted = True
        return None
    return None if table is None else table.counts


class _Search:
    """Margins and letters that are tried one after the other."""

    def __init__(
        self, program: ChannelProgram, n: Places, x_of: Places, judge: Judge,
        chance: np.random.Generator, draw: Draw, law: FloatArray | None, group: int,
        apart: FloatArray | None, watch: Watch,
    ) -> None:  # fmt: skip
        self.program, self.n, self.judge, self.chance = program, n, judge, chance
        self.draw = draw
        self.group, self.watch, self.answer, self.x_of = group, watch, Answer(), x_of
        self.lost = False  # whether a rounding was beyond HiGHS
        self.sizes = np.bincount(x_of, n).astype(float)
        share = n / self.sizes[x_of]
        shape = len(self.sizes), program.n
        self.spread: Any = sparse.csr_array((share, (x_of, np.arange(program.n))), shape=shape)
        self.by_letter, self.budget = distances(program), budgeted(program, n)
        self.costs: FloatArray = self.spread @ self.by_letter
        few = 1e-4 * float(self.costs[self.costs > 0].min(initial=1.0))
        self.unit = float(self.costs.max()) or 1.0  # HiGHS's tolerances are of costs as they are
        self.told_apart = (self.costs if apart is None else self.costs + few * apart) / self.unit
        self.leaked = None if self.budget is None else TableRow.minimised(program)
        self.least, self.most = bounds_in_records(program, n)
        lower, upper = np.zeros(self.costs.shape), np.ones(self.costs.shape)
        if program.floor is not None:
            np.maximum.at(lower, x_of, program.floor)
        if program.ceiling is not None:
            np.minimum.at(upper, x_of, program.ceiling)
        self.lower, self.upper = lower * self.sizes[:, None], upper * self.sizes[:, None]
        self.support = None if law is None else law > 0
        cheapest = np.eye(program.m)[self.costs.argmin(axis=1)]
        self.near = self.sizes[:, None] * (cheapest if law is None else law)
        self.expected = self.near.sum(axis=0)

    @cached_property
    def repair(self) -> Repair:
        """What mends a draw."""
        return Repair(self.program, self.n, self.judge, group=self.group)

    @property
    def levels(self) -> list[float]:
        """From how many expected records on a letter is released: all letters, then fewer."""
        steps = {scale * 10.0**power for power in range(7) for scale in (1, 2, 5)}
        levels = {0.0, 3.0, self.group / 4, self.group / 2, *steps}
        released = {int((self.expected >= level).sum()): level for level in sorted(levels)[::-1]}
        return sorted(level for count, level in released.items() if count > 1)

    def cost(self, blind: Blind) -> float:
        """Return ⟨d, m⟩, or under a budget what leaks."""
        if self.leaked is None:
            return float((self.by_letter * blind.counts).sum())
        return self.leaked.total(blind.counts)

    def tables(self) -> Iterator[Blind]:
        """Yield the tables that are tried: what needs no rounding, then by margins and letters."""
        for blind in self._constant():
            yield blind
            if self.cost(blind) == 0:
                return
        yield from self.by_margins()

    def by_margins(self) -> Iterator[Blind]:
        """Yield tables by letters that are released, and margins of each."""
        if self.budget is not None and len(self.program.constraints) == 1 and self.group == 1:
            law = self.law()  # there is nothing to leave a margin for
            yield from () if law is None else (law,)
            return
        best: tuple[float, float, float, float] | None = None  # cost, level, margins
        worse, small = 0, self.costs.size <= _SMALL
        for filled in self.levels:
            pairs = itertools.pairwise((_MARGIN / 2, *_MARGINS))
            tried = ((pair, self._table(filled, pair[1])) for pair in pairs)
            first = next(((pair, table) for pair, table in tried if table is not None), None)
            if first is None:
                continue
            (low, margin), table = first
            tables = [table, *(self._narrower(filled, low, margin) if small else ())]
            yield from tables
            cost = min(map(self.cost, tables))
            if best is None or cost < best[0]:
                best, worse = (cost, filled, low, margin), 0
            elif (worse := worse + 1) == _WORSE:
                break
        if best is not None and not small:
            yield from self._narrower(*best[1:])

    def law(self) -> Blind | None:
        """Return a rounding of the law itself, without moves that hardly anyone makes."""
        some = np.where(self.near < _FEW, 0.0, self.near)
        return self._rounded(some * (self.sizes / some.sum(axis=1))[:, None])

    def _constant(self) -> Iterator[Blind]:
        """Yield what needs no rounding: every x as its cheapest output, and all as one."""
        m = self.program.m
        totals = np.where((self.upper > 0).all(axis=0), self.sizes @ self.costs, np.inf)
        for outputs in (self.costs.argmin(axis=1), np.full(len(self.sizes), totals.argmin())):
            expected = np.eye(m)[outputs] * self.sizes[:, None]
            counts = (np.eye(m, dtype=np.int64)[outputs[self.x_of]]) * self.n[:, None]
            filled = counts.sum(axis=0)
            if ((filled == 0) | (filled >= self.group)).all() and self.judge(counts) is None:
                yield Blind(counts, expected)

    def _narrower(self, filled: float, low: float, high: float) -> Iterator[Blind]:
        """Yield tables with less margin on the same letters, while there are any."""
        for _ in range(_NARROWER):
            half = (low + high) / 2
            if (blind := self._table(filled, half)) is None:
                low = half
            else:
                high = half
                yield blind

    def _table(self, filled: float, margin: float) -> Blind | None:
        if self.watch.stopped or (expected := self._channel(filled, margin)) is None:
            return None
        return self._rounded(expected)

    def _rounded(self, expected: FloatArray) -> Blind | None:
        """Return a rounding of expected counts (|X|, m) that satisfies all, by chance."""
        parts, drawn = self.spread.T @ expected, self.draw(expected)
        up = drawn > np.floor(parts)
        moves = roundings(parts, self.n, self.chance.random(parts.shape) - 2.0 * up)
        at = moves.source, moves.output
        moves.lower = np.maximum(moves.lower, self.least[at])
        moves.upper = np.minimum(moves.upper, self.most[at])
        spent = None if self.budget is None else self.by_letter[at]
        rounds = Rounds(self.program, moves, group=self.group, budget=self.budget, spent=spent)
        if not self.lost:
            rounds.highs.patience = _PATIENCE
            answer = rounds.run(self.watch, _GAP, self.judge)
            self.answer.rounds += answer.rounds
            self.answer.cuts += answer.cuts
            if answer.counts is not None:
                return Blind(answer.counts, expected)
            if answer.infeasible or self.budget is not None:
                return None
            self.lost = rounds.highs.broken_off
        lower, upper = np.zeros(parts.shape), np.zeros(parts.shape)
        lower[at], upper[at] = moves.lower, moves.upper
        mended = self.repair.table(drawn, lower, upper, self.watch)
        return None if mended is None else Blind(mended, expected)

    def of_any_channel(self, gap: float) -> Blind | None:
        """Return a table that rounds some channel of x, whatever rows that channel breaks.

        The channel is that of the best such table: n(x) p(x̂ | x) are columns, beside the counts.
        """
        moves = some_moves(
            self.by_letter / self.unit, self.n.astype(float),
            sparse.eye_array(self.program.n, format="csr"), None, possible=self.most > 0,
        )  # fmt: skip
        if self.watch.stopped or self.by_letter.size > _TINY or moves.left_out is not None:
            return None
        at = moves.source, moves.output
        moves.lower, moves.upper = self.least[at], self.most[at]
        budget = None if self.budget is None else self.budget / self.unit
        rounds = Rounds(self.program, moves, group=self.group, budget=budget)
        highs, (letters, m) = rounds.highs, self.costs.shape
        first = highs.add_columns(np.zeros(letters * m), 0.0, np.repeat(self.sizes, m))
        columns = first + np.arange(letters * m).reshape(letters, m)
        highs.free += columns.ravel().tolist()
        for x, size in enumerate(self.sizes):
            highs.add_row(size, size, columns[x], np.ones(m))
        for column, s, y in zip(rounds.columns, *at, strict=True):  # |m − n p| < 1
            x = self.x_of[s]
            share = self.n[s] / self.sizes[x]
            highs.add_row(-_WITHIN, _WITHIN, [column, columns[x, y]], [1.0, -share])
        answer = rounds.run(self.watch, gap, self.judge)
        self.answer.rounds += answer.rounds
        self.answer.cuts += answer.cuts
        # HiGHS's claim, of rows in floats, which nothing proves: the status says so
        self.answer.infeasible = answer.infeasible
        if answer.counts is None or highs.start is None:
            return None
        expected = np.maximum(highs.start[columns], 0.0)
        expected *= (self.sizes / expected.sum(axis=1))[:, None]
        return self._rounded(expected) or Blind(answer.counts, expected)

    def _channel(self, filled: float, margin: float) -> FloatArray | None:
        """Return n(x) p(x̂ | x) of least cost with the margin, on letters of so many records."""
        released = (self.expected >= filled) | (self.lower > 0).any(axis=0)
        possible: Booleans = released & (self.upper > 0)
        if not possible.any(axis=1).all():
            return None
        moves = some_moves(
            self.told_apart, self.sizes, self.spread, self.support, self.lower > 0, possible
        )
        at = moves.source, moves.output
        moves.lower, moves.upper, moves.most = self.lower[at], self.upper[at], self.upper
        budget = None if self.budget is None else self.budget / self.unit
        rounds = Rounds(self.program, moves, margin=margin, elastic=True, budget=budget)
        if self.group > 1:
            rounds.fill(self.group + margin)
        rounds.touch(self.spread.T @ (self.near / self.sizes.sum()))
        x = rounds.relax(self.watch, self.answer)
        if x is None:
            return None
        moves = rounds.moves
        expected = np.zeros(self.costs.shape)
        expected[moves.source, moves.output] = np.maximum(x[rounds.columns], 0.0)
        scaled: FloatArray = expected * (self.sizes / expected.sum(axis=1))[:, None]
        self.near = scaled
        return scaled
