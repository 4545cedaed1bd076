r"""Balanced draws: every record's own probabilities, and counts within one of their expectation.

Of n(w, s) records with confidential value w and input s, n(w, s) p(y | s) are expected to be
released as y.  A *balanced* table has whole counts m(w, s, y) of which each, and each sum over s,
and each sum over w and s, is its expectation rounded up or down.  A law of such tables exists whose
means are the expectations: rows have whole sums, and the three families are a bihierarchy
(E. Budish, Y.-K. Che, F. Kojima and P. Milgrom, American Economic Review 103, 2013; of two families
L. H. Cox, *A Constructive Procedure for Unbiased Controlled Rounding*, JASA 82, 1987).

Counts flow through (w, s), (w, y) and y.  Where a flow is not whole there is a cycle of such edges,
as what comes to a node is what goes.  To push as much as fits along it one way or the other, by a
chance that keeps the means, makes one edge whole at least (R. Gandhi, S. Khuller, S. Parthasarathy
and A. Srinivasan, *Dependent Rounding*, Journal of the ACM 53, 2006).  Within a cell (w, s) the
records take its letters in a random order: each is released as y with probability p(y | s).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cvxprivacy.certificates.exact_channel import DENOMINATOR
from cvxprivacy.exact import is_sparse
from cvxprivacy.release.apply import by_row
from cvxprivacy.release.draws import Draws, Numbers

__all__ = ["balanced", "balanced_counts", "dealt"]

FEW = 64  # records of a cell on average, from which each cell is sorted by itself


def balanced(
    laws: Any, rows: Numbers, values: Sequence[Any] | None, draws: Draws, names: Any = None
) -> Numbers:
    """Return the number of each record's output.

    Parameters
    ----------
    laws : (inputs, outputs) array
        p(y | s) in whole numbers over 2⁵².
    rows : (records,) array
        s of each record.
    values : sequence, optional
        w of each record; without them counts are of s and y alone.
    draws : Draws
        Their chance is of a key of its own.
    names : sequence, optional
        What tells records apart whatever their order; by default their places.
    """
    fresh = draws.fresh("balanced")
    w, count = _groups(values, len(rows))
    cells, of_record = np.unique(w * laws.shape[0] + rows, return_inverse=True)
    sizes = np.bincount(of_record, minlength=len(cells))
    flow = _Flow(laws, cells, sizes, count)
    flow.make_whole(fresh.below("rounding"))
    # an order of 104 bits, whose ties are as rare as guesses
    return dealt(of_record, flow.outputs(), fresh(len(rows), names, each=2))


def balanced_counts(
    laws: Any, cells: Numbers, sizes: Numbers, groups: int, below: Callable[[int], int]
) -> tuple[Numbers, Numbers, Numbers]:
    """Return whole counts: places of cells, y, and summands of m(w, s, y) > 0.

    Parameters
    ----------
    laws : (inputs, outputs) array
        p(y | s) in whole numbers over 2⁵².
    cells : (cells,) array
        w · inputs + s of each, in order.
    sizes : (cells,) array
        n(w, s).
    groups : int
        How many w there are.
    below : callable
        A random number below one.
    """
    flow = _Flow(laws, cells, sizes, groups)
    flow.make_whole(below)
    return flow.counts()


def dealt(cells: Numbers, outputs: Numbers, numbers: Numbers) -> Numbers:
    """Return the output of each record, where those of a cell are in a random order.

    Parameters
    ----------
    cells : (records,) array
        Of each record.
    outputs : (records,) array
        What the records of one cell after the other get.
    numbers : (words, records) array
        By which they are put in order.
    """
    drawn, count = np.empty(len(cells), np.int64), int(cells.max(initial=0)) + 1
    if len(cells) < FEW * count:
        drawn[np.lexsort((*numbers[::-1], cells))] = outputs
        return drawn
    first = 0
    for _, on in by_row(cells, count):  # a cell at a time is the same order, sooner
        order = on[np.argsort(numbers[0][on])]
        words = numbers[0][order]
        if (words[1:] == words[:-1]).any():
            order = on[np.lexsort(numbers[::-1][:, on])]
        drawn[order] = outputs[first : first + len(on)]
        first += len(on)
    return drawn


def _groups(values: Sequence[Any] | None, size: int) -> tuple[Numbers, int]:
    """Return a number of each record's w, whatever the order of the records, and how many w."""
    if values is None:
        return np.zeros(size, np.int64), 1
    letters = sorted(set(values), key=lambda value: (type(value).__name__, repr(value)))
    place = {letter: i for i, letter in enumerate(letters)}
    return np.array([place[value] for value in values], np.int64), max(len(letters), 1)


class _Flow:
    """Counts as a flow through (w, s), (w, y) and y to one end, in parts of 2⁻⁵² of a record."""

    def __init__(self, laws: Any, cells: Numbers, sizes: Numbers, groups: int) -> None:
        n, m = laws.shape
        of_value = len(cells)  # nodes: cells, then (w, y), then y, then the end
        of_output = of_value + groups * m
        self._least: list[tuple[int, int, int]] = []  # cell, output, records that it has for sure
        self._entries: list[tuple[int, int, int]] = []  # cell, output, edge that is not whole
        self._ends: list[tuple[int, int]] = []  # of each edge
        self._part: list[int] = []  # what its flow is above the whole number below
        sums: dict[tuple[int, int], int] = {}
        for cell, (key, size) in enumerate(zip(cells.tolist(), sizes.tolist(), strict=True)):
            w, s = divmod(key, n)
            for y, numerator in _nonzero(laws, s):
                least, part = divmod(size * numerator, DENOMINATOR)
                self._least.append((cell, y, least))
                if part:
                    node = of_value + w * m + y
                    self._entries.append((cell, y, len(self._part)))
                    self._edge((cell, node), part)
                    for ends in ((node, of_output + y), (of_output + y, of_output + m)):
                        sums[ends] = (sums.get(ends, 0) + part) % DENOMINATOR
        for ends, part in sums.items():
            if part:
                self._edge(ends, part)
        self._open: dict[int, dict[int, None]] = {}  # edges at a node that are not whole
        for edge, ends in enumerate(self._ends):
            for node in ends:
                self._open.setdefault(node, {})[edge] = None

    def _edge(self, ends: tuple[int, int], part: int) -> None:
        self._ends.append(ends)
        self._part.append(part)

    def make_whole(self, below: Callable[[int], int]) -> None:
        """Push along cycles until all flows are whole; ``below`` is a random number below one."""
        opened, ends = self._open, self._ends
        for start, edges in opened.items():
            path: list[tuple[int, bool]] = []  # edges, and whether they are walked as they flow
            nodes, place, last = [start], {start: 0}, -1
            while edges or path:
                # of an edge that is not whole there is another at the node: it is not walked back
                at = nodes[-1]
                others = iter(opened[at])
                edge = next(others)
                edge = next(others) if edge == last else edge
                tail, head = ends[edge]
                node = head if tail == at else tail
                path.append((edge, tail == at))
                first = place.setdefault(node, len(nodes))
                if first == len(nodes):
                    nodes.append(node)
                else:  # the walk goes on from where an edge of it has become whole
                    first += self._push(path[first:], below)
                    for passed in nodes[first + 1 :]:
                        del place[passed]
                    del path[first:], nodes[first + 1 :]
                last = path[-1][0] if path else -1

    def _push(self, cycle: list[tuple[int, bool]], below: Callable[[int], int]) -> int:
        """Push along a cycle as much as fits, one way or the other, with a mean of nothing.

        Returns how many of its edges come before the first that is whole now.
        """
        part, most, least = self._part, DENOMINATOR, DENOMINATOR
        for edge, forward in cycle:
            down, up = part[edge], DENOMINATOR - part[edge]
            if not forward:
                down, up = up, down
            if up < most:
                most = up
            if down < least:
                least = down
        step = most if below(most + least) < least else -least
        before = len(cycle)
        for i, (edge, forward) in enumerate(cycle):
            part[edge] = moved = part[edge] + (step if forward else -step)
            if moved in (0, DENOMINATOR):
                before = min(before, i)
                for at in self._ends[edge]:
                    del self._open[at][edge]
        return before

    def counts(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return cells, outputs, and how many records get them: for sure, then by chance."""
        up = [(cell, y, self._part[edge] // DENOMINATOR) for cell, y, edge in self._entries]
        cell, y, count = np.array([*self._least, *up], np.int64).reshape(-1, 3).T
        return cell, y, count

    def outputs(self) -> Numbers:
        """Return what records get, cell by cell, as often as it is counted."""
        cell, y, count = self.counts()
        order = np.argsort(cell, kind="stable")
        return np.repeat(y[order], count[order])


def _nonzero(laws: Any, s: int) -> Iterator[tuple[int, int]]:
    """Yield outputs and whole probabilities of an input."""
    if is_sparse(laws):
        span = slice(laws.indptr[s], laws.indptr[s + 1])
        yield from zip(laws.indices[span].tolist(), laws.data[span].tolist(), strict=True)
    else:
        row = laws[s]
        places = np.flatnonzero(row)
        yield from zip(places.tolist(), row[places].tolist(), strict=True)
