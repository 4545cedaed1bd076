"""All entries of a program, or some of them, as the method evaluates them.

Both return what letters choose when an entry (x, y) weighs exp(−g(x, y)/L), of the sum g of what
the method has met (B2): joint laws, costs, and how these answer to their prices.  Of all entries
costs are rows that many letters share, in single precision, looked at a block at a time; nothing of
the size of a table is made.  Equations are those of ``docs/theory/large_tables.md``.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.additive import AdditiveCost
from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.programs.channel import ChannelProgram, IntArray
from cvxprivacy.programs.expression import Expression

__all__ = ["AllEntries", "Chosen", "SomeEntries", "Sums", "storage"]

_BLOCK = 250_000  # entries looked at together, a megabyte: at 4 × or ¼ up to 1.9 × the time
_SHARED = 300_000_000  # bytes of shared rows, beyond which they are sums of more than two tables
_AT_ONCE = 256  # rows that are made in double precision
_PARTS = 4  # sums of letters that are made apart, so that the number of cores changes no digit
# least exponent that is told from 0: below it numbers of single precision are denormal, and slow
_DEEPEST = np.float32(-50.0)
_SAMPLE = 8  # of so many blocks one tells how costs answer to prices
Single = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Sums:
    """What has been met: slopes of all labels (|V|, m), weight of the cost, prices of rows (J,)."""

    slopes: FloatArray
    weight: float
    prices: FloatArray

    def met(self, step: float, slopes: FloatArray, prices: FloatArray) -> Sums:
        return Sums(self.slopes + step * slopes, self.weight + step, prices)


@dataclass(frozen=True, eq=False)
class Chosen:
    """What letters choose: joint laws (|V|, m), E C_0 and E C_j, −dE C_j/dΛ, Σ p min_y g.

    ``soft`` is that minimum softened, −L Σ p log Σ_y exp(−g/L) (B4).
    """

    joint: FloatArray
    cost: float
    spent: FloatArray
    answers: FloatArray
    least: float = 0.0
    soft: float = 0.0

    def mixed(self, other: Chosen, share: float) -> Chosen:
        """Return the mean of this and of another that has a share in it."""
        left = 1.0 - share
        return Chosen(
            left * self.joint + share * other.joint,
            left * self.cost + share * other.cost,
            left * self.spent + share * other.spent,
            other.answers,
        )


class _Rows:
    """A cost as the sum of few tables in single precision, of rows that letters share."""

    def __init__(self, program: ChannelProgram, term: Expression) -> None:
        cost, n = term.cost, program.n
        if not isinstance(cost, AdditiveCost):
            self.tables = [(program.cost(term).astype(np.float32), np.arange(n))]
            return
        places = np.array([part.rows for part in cost.parts])
        self.tables = []
        for group in _groups(places, program.m):
            _, first, which = np.unique(
                _numbered(places[group]), return_index=True, return_inverse=True
            )
            few = AdditiveCost(tuple(cost.parts[i] for i in group))
            table = np.empty((len(first), program.m), np.float32)
            for start in range(0, len(first), _AT_ONCE):
                rows = first[start : start + _AT_ONCE]
                table[start : start + _AT_ONCE] = few.of(rows)
            self.tables.append((table, which))

    def of(self, letters: slice, out: Single) -> Single:
        """Return the rows of some letters."""
        (table, rows), *others = self.tables
        np.take(table, rows[letters], axis=0, out=out)
        for table, rows in others:
            out += table[rows[letters]]
        return out


def _groups(places: IntArray, m: int) -> list[list[int]]:
    """Group the parts of a cost so that each group has few different rows.

    Two groups, as each more is a table more to add up; others where their tables would be large.
    """
    groups = [list(range(len(places)))]
    while len(groups) < len(places):
        counts = [_different(places[group]) for group in groups]
        if len(groups) > 1 and 4 * sum(counts) * m <= _SHARED:
            break
        largest = max(
            (i for i, group in enumerate(groups) if len(group) > 1), key=lambda i: counts[i]
        )
        group = groups.pop(largest)
        groups += [[group[i] for i in half] for half in _halves(places[group])]
    return groups


def _different(places: IntArray) -> int:
    return len(np.unique(_numbered(places)))


def _numbered(places: IntArray) -> IntArray:
    """Return a number for each letter, the same for those of the same places."""
    numbers = np.zeros(places.shape[1], np.int64)
    for row in places:  # renumbered each time, so that no product grows
        numbers = np.unique(numbers * (row.max() + 1) + row, return_inverse=True)[1]
    return numbers


def _halves(places: IntArray) -> tuple[list[int], list[int]]:
    """Split the parts of a cost in two, so that each half has few different rows."""
    parts, splits = range(len(places)), []
    for size in range(1, len(places) // 2 + 1):
        for some in combinations(parts, size):
            halves = list(some), [i for i in parts if i not in some]
            splits.append((sum(_different(places[half]) for half in halves), halves))
            if len(splits) > 50:  # of many attributes, what is found by then
                break
    return min(splits)[1]


def storage(program: ChannelProgram) -> int:
    """Return about how many bytes the shared rows take."""
    terms = [*program.objectives.values(), *(r.expression for r in program.constraints.values())]
    size = 0
    for cost in {id(term.cost): term.cost for term in terms if term.cost is not None}.values():
        if isinstance(cost, AdditiveCost):
            places = np.array([part.rows for part in cost.parts])
            groups = _groups(places, program.m)
            size += 4 * program.m * sum(_different(places[group]) for group in groups)
        else:
            size += 4 * program.n * program.m
    return size


class AllEntries:
    """Every entry of a program, in blocks of letters.

    Parameters
    ----------
    program : ChannelProgram
    likelihood : (n, |V|) array
        p(v | x) of the labels of all views, one view after the other.
    law : (|V|, n) array
        p(v, x).
    smoothness : float
        L, in the program's units.
    """

    def __init__(
        self,
        program: ChannelProgram,
        likelihood: FloatArray,
        law: FloatArray,
        smoothness: float,
    ) -> None:
        self.program, self.smoothness = program, smoothness
        self._likelihood, self._law = likelihood.astype(np.float32), law.astype(np.float32)
        (objective,) = program.objectives.values()
        terms = [objective, *(row.expression for row in program.constraints.values())]
        made: dict[int, _Rows] = {}
        for term in terms:  # which may share one cost
            if term.cost is not None and id(term.cost) not in made:
                made[id(term.cost)] = _Rows(program, term)
        self._terms = [None if term.cost is None else made[id(term.cost)] for term in terms]
        self._distinct = list(made.values())
        self._block = max(1, min(_BLOCK // program.m, -(-program.n // _PARTS)))
        self._closed = None if program.ceiling is None else program.ceiling <= 0

    def chosen(self, sums: Sums) -> Chosen:
        """Return what letters choose by the weights of all entries."""
        plan = self._plan(sums)
        blocks = list(range(0, self.program.n, self._block))
        with ThreadPoolExecutor(min(_PARTS, len(os.sched_getaffinity(0)))) as threads:
            parts = list(
                threads.map(lambda k: self._summed(plan, blocks[k::_PARTS], k), range(_PARTS))
            )
        joint, spent, answers, sampled, *least = (sum(each) for each in zip(*parts, strict=True))
        return Chosen(joint, spent[0], spent[1:], answers / max(sampled, TINY), *least)

    def _plan(self, sums: Sums) -> tuple[Single, FloatArray]:
        """Return slopes, and prices of the distinct costs, for exponents −g/L."""
        prices = np.zeros(len(self._distinct))
        for weight, rows in zip([sums.weight, *sums.prices], self._terms, strict=True):
            if rows is not None:
                prices[self._distinct.index(rows)] += weight
        slopes = (-sums.slopes / self.smoothness).astype(np.float32)
        return slopes, -prices / self.smoothness

    def _exponents(
        self, plan: tuple[Single, FloatArray], letters: slice, room: list[Single]
    ) -> tuple[Single, list[Single]]:
        """Return −g/L of a block of letters, and the costs."""
        slopes, prices = plan
        a, free, *others = (table[: letters.stop - letters.start] for table in room)
        np.matmul(self._likelihood[letters], slopes, out=a)
        costs = []
        for rows, price, table in zip(self._distinct, prices, others, strict=True):
            costs.append(rows.of(letters, table))
            np.multiply(costs[-1], np.float32(price), out=free)
            a += free
        if self._closed is not None:
            a[self._closed[letters]] = -np.inf
        return a, costs

    def _room(self) -> list[Single]:
        count = 2 + len(self._distinct)
        return [np.empty((self._block, self.program.m), np.float32) for _ in range(count)]

    def _summed(self, plan: tuple[Single, FloatArray], firsts: list[int], part: int) -> Any:
        with np.errstate(all="ignore"):  # which a thread has of its own
            return self._sums_of(plan, firsts, part)

    def _sums_of(self, plan: tuple[Single, FloatArray], firsts: list[int], part: int) -> Any:
        program, room = self.program, self._room()
        joint = np.zeros((len(self._law), program.m))
        spent, answers = np.zeros(len(self._terms)), np.zeros((len(self._terms) - 1,) * 2)
        sampled = least = soft = 0.0
        for turn, first in enumerate(firsts):
            letters = slice(first, min(first + self._block, program.n))
            a, costs = self._exponents(plan, letters, room)
            top = a.max(axis=1, keepdims=True)
            a -= top
            np.maximum(a, _DEEPEST, out=a)
            np.exp(a, out=a)
            total = a.sum(axis=1)
            mass = program.mass[letters]
            joint += (self._law[:, letters] / total) @ a
            least -= float(mass @ top[:, 0]) * self.smoothness
            soft -= float(mass @ (top[:, 0] + np.log(total))) * self.smoothness
            means = [np.einsum("xy,xy->x", a, cost) / total for cost in costs]
            by_term = [None if r is None else self._distinct.index(r) for r in self._terms]
            spent += [0.0 if i is None else float(mass @ means[i]) for i in by_term]
            if turn % _SAMPLE == part % _SAMPLE and len(answers):
                sampled += float(mass.sum())
                rows = by_term[1:]
                for j, i in enumerate(rows):
                    for k, other in enumerate(rows[: j + 1]):
                        if i is not None and other is not None:
                            second = np.einsum("xy,xy,xy->x", a, costs[i], costs[other]) / total
                            answer = float(mass @ (second - means[i] * means[other]))
                            answers[j, k] += answer / self.smoothness
                            answers[k, j] = answers[j, k]
        return joint, spent, answers, sampled, least, soft

    def nearest(self, sums: Sums, popular: IntArray, most: int) -> tuple[IntArray, IntArray]:
        """Return the entries of each letter that weigh most: of all outputs, and of some."""
        plan, room = self._plan(sums), self._room()
        letters, outputs = [], []
        of_all, shared = (min(most, k) for k in (self.program.m, len(popular)))
        for first in range(0, self.program.n, self._block):
            block = slice(first, min(first + self._block, self.program.n))
            a, _ = self._exponents(plan, block, room)
            best = np.argpartition(-a, of_all - 1, axis=1)[:, :of_all]
            few = np.argpartition(-a[:, popular], shared - 1, axis=1)[:, :shared]
            for letter, row in enumerate(np.hstack([best, popular[few]])):
                outputs.append(np.unique(row[a[letter, row] > -np.inf]))
                letters.append(np.full(len(outputs[-1]), first + letter))
        return np.concatenate(letters), np.concatenate(outputs)


class SomeEntries:
    """Some entries of a program, at least one of each letter, in the order of letters."""

    def __init__(
        self,
        program: ChannelProgram,
        likelihood: FloatArray,
        law: FloatArray,
        smoothness: float,
        letters: IntArray,
        outputs: IntArray,
    ) -> None:
        self.program, self.smoothness = program, smoothness
        self.letters, self.outputs = letters, outputs
        self._likelihood, self._law = likelihood[letters].T.copy(), law[:, letters]
        self._starts = np.searchsorted(letters, np.arange(program.n))
        (objective,) = program.objectives.values()
        terms = [objective, *(row.expression for row in program.constraints.values())]
        self.costs = np.array([program.cost_at(term, letters, outputs) for term in terms])

    @cached_property
    def mass(self) -> FloatArray:
        return self.program.mass

    def slope(self, slopes: FloatArray) -> FloatArray:
        """Return what slopes (|V|, m) come to at each entry, with the objective's cost."""
        g: FloatArray = self.costs[0].copy()
        for likelihood, row in zip(self._likelihood, slopes, strict=True):
            g += likelihood * row[self.outputs]
        return g

    def law_of(self, exponents: FloatArray) -> FloatArray:
        """Return the channel's entries that weigh exp(exponents)."""
        channel = np.exp(exponents - np.maximum.reduceat(exponents, self._starts)[self.letters])
        channel /= np.add.reduceat(channel, self._starts)[self.letters]
        return channel

    def of(self, channel: FloatArray) -> Chosen:
        """Return what a channel's entries come to."""
        joint = np.array(
            [np.bincount(self.outputs, channel * row, self.program.m) for row in self._law]
        )
        means = np.array([np.add.reduceat(channel * cost, self._starts) for cost in self.costs])
        spent, rows = means @ self.mass, self.costs[1:]
        answers = np.zeros((len(rows),) * 2)
        for j, cost in enumerate(rows):
            for k, other in enumerate(rows[: j + 1]):
                second = np.add.reduceat(channel * cost * other, self._starts)
                variance = self.mass @ (second - means[1 + j] * means[1 + k])
                answers[j, k] = answers[k, j] = variance / self.smoothness
        return Chosen(joint, float(spent[0]), spent[1:], answers)
