"""Channels on a table of counts: what is released of it on average, and what corrects that.

A function g(c, x̂) of a record's released letter, and of the columns c that are released as they
are, is summed over the released records.  Its expectation is the sum of (K g)(c, x) over the
original ones, its variance that of Σ_x̂ p(x̂ | x) g² − (K g)²; where K A f = f, g = A f estimates the
sum of f without bias (:func:`cvxprivacy.release.estimation.weights_of_outputs`).

All arrays are of shape (contexts, letters, …), where letters are whatever is recorded or released.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.estimation import weights_of_outputs
from cvxprivacy.tables.labels import shown

__all__ = ["ColumnPram", "Randomisation", "Released"]

Numbers = npt.NDArray[np.float64]

DUST = 1e-13  # of a mean square, below which a variance is rounding
UNDETERMINED = 1e-7  # of the greatest entry of f, by which K A f may be off f


class Randomisation(ABC):
    """A channel, or the PRAM beside it, of records that are drawn independently."""

    @abstractmethod
    def expected(self, values: Numbers) -> Numbers:
        """Return K g, the mean of a function of released letters for each original one."""

    @abstractmethod
    def corrected(self, functions: Numbers) -> Numbers:
        """Return A f, the function of released letters that estimates f."""

    @abstractmethod
    def released(self, counts: Numbers) -> Numbers:
        """Return the expected counts of released letters."""

    def variance(self, values: Numbers, counts: Numbers) -> Numbers:
        """Return the variance of the sum of a function of released letters."""
        spread = _spread(self.expected(values**2), self.expected(values))
        return np.asarray(np.tensordot(counts, spread, 2))


def _spread(squares: Numbers, means: Numbers) -> Numbers:
    """Return E g² − (E g)²; what is left by rounding is none."""
    spread = squares - means**2
    return np.where(spread > DUST * squares, spread, 0.0)


def _product(matrix: Numbers, values: Numbers) -> Numbers:
    """Return the matrix by each column, equal ones once: margins have few that differ."""
    columns = values.transpose(1, 0, 2).reshape(values.shape[1], -1)
    marks = np.random.default_rng(0).random(len(columns)) @ columns
    first, back = np.unique(marks, return_index=True, return_inverse=True)[1:]
    distinct = columns[:, first]
    if not np.array_equal(distinct[:, back], columns):  # two of them have one mark
        distinct, back = columns, np.arange(columns.shape[1])
    product = (matrix @ distinct)[:, back]
    return product.reshape(-1, *values.shape[::2]).transpose(1, 0, 2)


@dataclass(frozen=True, eq=False)
class _Block:
    """Contexts in which records are drawn by one matrix k, with its weights a."""

    contexts: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]  # places of the inputs among the letters
    k: Numbers
    a: Numbers


class Released(Randomisation):
    """The channel that released a table.

    Parameters
    ----------
    channel : Channel
    contexts : sequence of mapping of axis to letter
        Of what is released as it is: ``"w"``, and ``"z"`` if the channel sees it.
    letters : sequence
        Key letters, the channel's outputs among them.
    counts : ndarray, shape (contexts, letters)
        Of the original records.

    Raises
    ------
    UnknownValueError
        For records that are no input.
    """

    def __init__(
        self, channel: Channel, contexts: Sequence[Mapping[str, Any]], letters: Sequence[Any],
        counts: Numbers,
    ) -> None:  # fmt: skip
        self.dealt, places = channel.drawn_jointly, {x: i for i, x in enumerate(letters)}
        self.columns = np.array([places[y] for y in channel.outputs])
        sees = [axis for axis in channel.encoder if axis != "x"]
        inputs: dict[Any, list[tuple[int, int]]] = {}
        for row, label in enumerate(channel.inputs):
            axes = dict(zip(channel.encoder, label if sees else (label,), strict=True))
            of_input = tuple(axes[axis] for axis in sees)
            inputs.setdefault(of_input, []).append((row, places[axes["x"]]))
        of: dict[Any, list[int]] = {}
        for c, context in enumerate(contexts):
            of.setdefault(tuple(context[axis] for axis in sees), []).append(c)
        self.blocks = []
        for axes_seen, numbers in of.items():
            of_block = np.array(numbers)
            met = counts[of_block].sum(axis=0)
            used = [
                (row, x) for row, x in inputs.get(axes_seen, [])
                if met[x] or not channel.arbitrary[row]
            ]  # fmt: skip
            unknown = np.setdiff1d(np.flatnonzero(met), [x for _, x in used])
            if len(unknown):
                letter = letters[unknown[0]]
                problem = f"{met[unknown[0]]:g} records of {shown(letter)}, which is no input"
                remedy = "pass the table that the channel released"
                raise UnknownValueError("original", problem, remedy, value=letter)
            rows, at = (np.array(side, int) for side in zip(*used, strict=True))
            k = np.asarray(channel.matrix)[rows]
            # the error of a share that is told by less would be above 1
            weights = weights_of_outputs(k, 1 / np.sqrt(max(counts.sum(), 2.0)))[0]
            self.blocks.append(_Block(of_block, at, k, weights))

    def _places(self) -> Iterator[tuple[_Block, Any, Any]]:
        """Yield each block with where its original letters are, and its released ones."""
        for block in self.blocks:
            before, after = (np.ix_(block.contexts, at) for at in (block.rows, self.columns))
            yield block, before, after

    def expected(self, values: Numbers) -> Numbers:
        """Return K g."""
        out = np.zeros_like(values)
        for block, before, after in self._places():
            out[before] = _product(block.k, values[after])
        return out

    def corrected(self, functions: Numbers) -> Numbers:
        """Return A f."""
        out = np.zeros_like(functions)
        for block, before, after in self._places():
            out[after] = _product(block.a, functions[before])
        return out

    def determined(self, functions: Numbers) -> npt.NDArray[np.bool_]:
        """Tell of which functions f the released law determines the sum, whatever the table."""
        back, off = self.expected(self.corrected(functions)), np.zeros(functions.shape[2])
        for block in self.blocks:
            at = np.ix_(block.contexts, block.rows)
            off = np.maximum(off, np.abs(back[at] - functions[at]).max(axis=(0, 1)))
        most = np.abs(functions).max(axis=(0, 1), initial=0.0)
        return np.asarray(off <= UNDETERMINED * most)

    def released(self, counts: Numbers) -> Numbers:
        """Return the expected counts of released letters."""
        out = np.zeros_like(counts)
        for block, before, after in self._places():
            out[after] = counts[before] @ block.k
        return out

    def estimated(self, counts: Numbers) -> Numbers:
        """Return the original counts that released ones are corrected to."""
        out = np.zeros_like(counts)
        for block, before, after in self._places():
            out[before] = counts[after] @ block.a
        return out

    def kept(self, counts: Numbers) -> float:
        """Return how many records are expected to be released with the letter that they had."""
        total = 0.0
        for block in self.blocks:
            stays = np.array([
                probabilities[self.columns == x].sum()
                for x, probabilities in zip(block.rows, block.k, strict=True)
            ])  # fmt: skip
            total += float((counts[np.ix_(block.contexts, block.rows)] @ stays).sum())
        return total

    def variance(self, values: Numbers, counts: Numbers) -> Numbers:
        """Return the variance of the sum of g, of records that are drawn as the channel draws.

        The records of a cell that are dealt out whole counts are a random permutation, whose
        sum has Hoeffding's variance (Annals of Mathematical Statistics 22, 1951, 558–566).
        """
        if not self.dealt:
            return super().variance(values, counts)
        total = np.zeros(values.shape[2])
        for block in self.blocks:
            g = values[np.ix_(block.contexts, self.columns)]
            for x, row in zip(block.rows, block.k, strict=True):
                n = counts[block.contexts, x]
                if (size := n.sum()) > 1:
                    centred = g - np.tensordot(n / size, g, 1)
                    spread = _spread(np.tensordot(row, centred**2, (0, 1)), row @ centred)
                    total += size / (size - 1) * (n @ spread)
        return total


class ColumnPram(Randomisation):
    """PRAM of each column by itself, by invariant matrices, as sdcMicro's ``pram`` makes them.

    A column's value stays with probability 1 − μ, or is drawn evenly from all of its values; that
    channel's inverse by Bayes' rule then brings the expected counts of the column back
    (Gouweleeuw et al. 1998, §6).  μ is the same for all columns.

    Parameters
    ----------
    counts : ndarray, shape (contexts, letters)
        Of the original records; letters are all combinations of the columns' values.
    sizes : sequence of int
        How many values each column has.
    changed : float
        The share of records that are to change on average.

    Raises
    ------
    InputError
        If fewer are changed by matrices that tell nothing.
    """

    def __init__(self, counts: Numbers, sizes: Sequence[int], changed: float) -> None:
        self.shape = (len(counts), *sizes)
        law = counts.sum(axis=0).reshape(sizes) / counts.sum()
        axes = range(len(sizes))
        margins = [law.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes]

        def off(mixed: float) -> float:
            stays = law
            for axis, margin in enumerate(margins):
                diagonal = _invariant(margin, mixed).diagonal()
                stays = stays * diagonal.reshape([-1 if a == axis else 1 for a in axes])
            return float(1 - stays.sum()) - changed

        if off(1.0) <= 0:
            problem = f"{changed:.1%} of the records change, {off(1.0) + changed:.1%} by PRAM"
            raise InputError("channel", problem, "compare channels that change fewer")
        mixed = brentq(off, 0.0, 1.0, xtol=1e-14) if changed > 0 else 0.0
        self.matrices = [_invariant(margin, mixed) for margin in margins]
        self.inverses = [np.linalg.inv(matrix) for matrix in self.matrices]

    def _through(self, matrices: Sequence[np.ndarray], values: Numbers) -> Numbers:
        """Return what the product of matrices makes of the letters, the second axis."""
        made = values.reshape(*self.shape, *values.shape[2:])
        for axis, matrix in enumerate(matrices, 1):
            made = np.moveaxis(np.tensordot(matrix, made, (1, axis)), 0, axis)
        return made.reshape(values.shape)

    def expected(self, values: Numbers) -> Numbers:
        """Return K g."""
        return self._through(self.matrices, values)

    def corrected(self, functions: Numbers) -> Numbers:
        """Return A f, by the inverse matrices."""
        return self._through(self.inverses, functions)

    def released(self, counts: Numbers) -> Numbers:
        """Return the expected counts of released letters."""
        return self._through([matrix.T for matrix in self.matrices], counts)


def _invariant(margin: Numbers, mixed: float) -> Numbers:
    """Return a matrix that keeps a law, whose values are all met."""
    size = len(margin)
    plain = (1 - mixed) * np.eye(size) + mixed / size
    joint = margin[:, None] * plain
    return np.asarray(plain @ (joint / joint.sum(axis=0)).T)
