"""A point of the interior-point method, and where the entries of its Q stand.

Arrays of entries are (m, k): a row for each output, and in it the n letters in their order, or
the few that its list names, padded to the longest list.  What differs between the two is here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas

from cvxprivacy.exact import FloatArray

__all__ = ["HIGH", "LOW", "WORST", "ByName", "Layout", "Point"]


@dataclass(frozen=True, eq=False)
class Layout:
    """For each of ``outputs`` the entries of all letters, or of those in ``letters``.

    Attributes
    ----------
    n : int
    outputs : (m',) array
        Their numbers in the whole program.
    letters : (m', k) array, or None for all
        Numbers of letters, without repetition in the first ``counts`` of each row.
    counts : (m',) array, or None
    """

    n: int
    outputs: np.ndarray
    letters: np.ndarray | None = None
    counts: np.ndarray | None = None

    @classmethod
    def full(cls, n: int, m: int) -> Layout:
        return cls(n, np.arange(m))

    @classmethod
    def of(cls, chosen: np.ndarray) -> Layout:
        """Return the entries where a table (m, n) is true, of the outputs that have some."""
        counts = chosen.sum(axis=1)
        outputs = np.nonzero(counts)[0]
        counts = counts[outputs]
        letters = np.zeros((len(outputs), int(counts.max())), dtype=np.intp)
        rows, columns = np.nonzero(chosen[outputs])
        letters[rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)] = (
            columns
        )
        return cls(chosen.shape[1], outputs, letters, counts)

    @property
    def m(self) -> int:
        return len(self.outputs)

    @property
    def shape(self) -> tuple[int, int]:
        return self.m, self.n if self.letters is None else self.letters.shape[1]

    @cached_property
    def present(self) -> np.ndarray:
        """Where an entry stands, shape (m, k)."""
        if self.counts is None:
            return np.ones(self.shape, dtype=bool)
        present: np.ndarray = np.arange(self.shape[1]) < self.counts[:, None]
        return present

    def take(self, table: FloatArray) -> FloatArray:
        """Return the entries of an (n, m) table."""
        if self.letters is None:
            return table.T if self.m == table.shape[1] else table[:, self.outputs].T
        return np.where(self.present, table[self.letters, self.outputs[:, None]], 0.0)

    def put(self, entries: FloatArray, m: int) -> FloatArray:
        """Return the (n, m) table that has these entries, and 0 elsewhere."""
        if self.letters is None and self.m == m:
            return entries.T
        table = np.zeros((self.n, m))
        if self.letters is None:
            table[:, self.outputs] = entries.T
            return table
        y, i = np.nonzero(self.present)
        table[self.letters[y, i], self.outputs[y]] = entries[y, i]
        return table

    def widened(self, by_output: FloatArray, m: int) -> FloatArray:
        """Return what outputs have, with 0 for those that are not here."""
        if self.m == m or not by_output.ndim:
            return by_output
        by_all = np.zeros((m, *by_output.shape[1:]))
        by_all[self.outputs] = by_output
        return by_all

    def spread(self, by_letter: np.ndarray) -> np.ndarray:
        """Return what every entry's letter has, (m, k), or (n,) where that is the same."""
        return by_letter if self.letters is None else by_letter[self.letters]

    def gathered(self, matrix: FloatArray) -> FloatArray:
        """Return the columns of every output's letters, (m, |V|, k); or the matrix itself."""
        return matrix if self.letters is None else matrix[:, self.letters].transpose(1, 0, 2).copy()

    def lifted(self, rows: FloatArray, outputs: np.ndarray) -> FloatArray:
        """Return rows (e, k), each of one output, as rows of all letters, shape (e, n)."""
        if self.letters is None:
            return rows
        lifted = np.zeros((len(rows), self.n))
        e, i = np.nonzero(self.present[outputs])
        lifted[e, self.letters[outputs[e], i]] = rows[e, i]
        return lifted

    def total(self, x: FloatArray) -> FloatArray:
        """Return the sums over outputs, (n,), or (c, n) of an array (m, c, k)."""
        if self.letters is None:
            return x.sum(axis=0)
        if x.ndim == 3:
            return np.stack([self.total(x[:, i]) for i in range(x.shape[1])]).reshape(-1, self.n)
        sums = np.bincount(self.letters[self.present], x[self.present], minlength=self.n)
        return sums.astype(float)

    def extreme(
        self, function: Any, x: FloatArray, initial: float, where: np.ndarray
    ) -> FloatArray:
        """Return the least or the largest over outputs by letter, shape (n,)."""
        if self.letters is None:
            extreme: FloatArray = function.reduce(x, axis=0, initial=initial, where=where)
            return extreme
        extreme = np.full(self.n, initial)
        on = self.present & where
        function.at(extreme, self.letters[on], x[on])
        return extreme

    def square(self, full: FloatArray | None, down: FloatArray, up: FloatArray) -> FloatArray:
        """Return Σ_y (full − downᵀ down + upᵀ up), shape (n, n)."""
        square = np.zeros((self.n, self.n), order="F")
        if self.letters is not None:
            assert self.counts is not None
            linear = square.reshape(-1, order="F")
            for y, (letters, count) in enumerate(zip(self.letters, self.counts, strict=True)):
                minus, place = down[y, :, :count], letters[:count]
                block = -(minus.T @ minus)
                if up.shape[1]:
                    block += up[y, :, :count].T @ up[y, :, :count]
                if full is not None:
                    block += full[y, :count, :count]
                # one index in place of two: less than half of the time; no letter is there twice
                linear[place[:, None] * self.n + place] += block
            return square
        if full is not None:
            square += full.sum(axis=0)
        for sign, half in ((-1.0, down), (1.0, up)):
            if half.shape[1]:
                flat = half.reshape(-1, half.shape[2])
                square = blas.dsyrk(sign, flat.T, beta=1.0, c=square, lower=1, overwrite_c=1)
        square += np.tril(square, -1).T - np.triu(square, 1)
        return square


LOW, HIGH = "\0low", "\0high"  # pairs of entries with their bounds; no row has such a name
WORST = "\0worst"  # the level that is the greatest of several objectives

ByName = dict[str, FloatArray]


@dataclass(eq=False)
class Point:
    """A point, or a step: Q, ν, scores, multipliers of equalities, levels, slacks and prices."""

    q: FloatArray
    nu: FloatArray
    scores: list[FloatArray]
    equal: ByName
    levels: ByName
    slack: ByName
    price: ByName

    def moved(self, step: Point, t: float) -> Point:
        return Point(
            *(_moved(getattr(self, f.name), getattr(step, f.name), t) for f in fields(self))
        )

    def multiplier(self, name: str) -> FloatArray:
        return self.price[name] if name in self.price else self.equal[name]

    def longest(self, step: Point) -> float:
        """Return the length at which a slack or a price is 0."""
        most = np.inf
        for have, change in ((self.slack, step.slack), (self.price, step.price)):
            for name, value in have.items():
                ratio = np.divide(change[name], value, out=np.zeros(value.shape), where=value > 0)
                if (least := float(ratio.min())) < 0:
                    most = min(most, -1.0 / least)
        return most


def _moved(have: Any, step: Any, t: float) -> Any:
    if isinstance(have, dict):
        return {k: v + t * step[k] for k, v in have.items()}
    return (
        [v + t * d for v, d in zip(have, step, strict=True)]
        if isinstance(have, list)
        else have + t * step
    )
