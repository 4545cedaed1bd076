"""A cost times the law: what multiplies a channel's entries.

Needs the standard library and python-flint only.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from flint import arb_mat

from .balls import Matrix
from .costs import Layer, Part

__all__ = ["WeightedCost"]


class WeightedCost:
    """Σ_l law[l][s] C(l, s, y), which multiplies K(s, y): in balls, or in whole numbers (C13).

    Parameters
    ----------
    layers : list of Layer
    law : list of list
        Masses of the letters in each layer, in numbers of the same kind.
    """

    def __init__(self, layers: list[Layer], law: Matrix) -> None:
        self._layers = list(zip(law, layers, strict=True))

    @cached_property
    def by_letter(self) -> list[Any] | None:
        """What each letter costs, times its mass, where that is the same at every output."""
        parts = [part for _, layer in self._layers for part in layer]
        if any(len(set(part.columns)) > 1 for part in parts):
            return None
        letters = range(len(self._layers[0][0]))
        return [sum(mass * costs[0] for mass, costs in self.of(s, [0])) for s in letters]

    @property
    def parts(self) -> list[Part]:
        """The parts of a cost that is one for all atoms of a letter, without its radius."""
        return list(self._layers[0][1])

    def of(self, s: int, outputs: Sequence[int]) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the mass of a letter in each layer, and its costs at some outputs."""
        # at the outputs that a letter uses: a sparse channel never asks for a whole row
        for masses, layer in self._layers:
            sums: list[Any] = []
            for table, rows, columns in layer:
                row = table[rows[s]]
                costs = [row[columns[y]] for y in outputs]
                sums = list(map(operator.add, sums, costs)) if sums else costs
            yield masses[s], sums

    def total(self, channel: Sequence[tuple[Sequence[int], Sequence[int]]], zero: Any) -> Any:
        """Return Σ_s,y of this times k(s, y), with the outputs and the numbers of each letter."""
        value = zero
        for masses, layer in self._layers:
            for table, rows, columns in layer:
                few = len(table[0]) < len(columns)  # an attribute has fewer values than outputs
                for mass, at, (outputs, k) in zip(masses, rows, channel, strict=True):
                    row, counts = table[at], k
                    places: Any = list(map(columns.__getitem__, outputs))
                    if few:  # what all outputs of one place have, in whole numbers
                        gathered: dict[int, int] = {}
                        for place, x in zip(places, k, strict=True):
                            gathered[place] = gathered.get(place, 0) + x
                        places, counts = gathered, list(gathered.values())
                    costs = map(row.__getitem__, places)
                    value += mass * sum(map(operator.mul, costs, counts), zero)
        return value

    def different(self, letters: range) -> Matrix:
        """Return what some letters cost at any output, each number of one table once."""
        if len(self._layers) > 1 or len(self._layers[0][1]) > 1:
            return self.block(letters).tolist()
        masses, (part,) = self._layers[0]
        places = {*part.columns}
        every = len(places) == len(part.table[0])
        costs = []
        for s in letters:
            row = part.table[part.rows[s]]
            row = row if every else list(map(row.__getitem__, places))
            # a number that stands there twice is one object, as it was read
            once = dict(zip(map(id, row), row, strict=True))
            costs.append([masses[s] * c for c in once.values()])
        return costs

    def block(self, letters: range) -> arb_mat:
        """Return what some letters cost: their masses times the rows that they have."""
        m = len(self._layers[0][1][0].columns)
        if (each := self.by_letter) is not None:  # no row of it is made for each layer
            return arb_mat([[each[s]] for s in letters]) * arb_mat([[1] * m])
        # different rows of tables, each made once however many letters have it
        rows: dict[tuple[int, int, int], int] = {}
        picked = [
            (i, rows.setdefault((at, p, part.rows[s]), len(rows)), masses[s])
            for i, s in enumerate(letters)
            for at, (masses, layer) in enumerate(self._layers)
            for p, part in enumerate(layer)
        ]
        chosen = ((self._layers[at][1][p], place) for at, p, place in rows)
        costs = [[table[place][y] for y in columns] for (table, _, columns), place in chosen]
        if len(rows) == len(picked) == len(letters):  # a table with a row for each letter
            return arb_mat(
                [[mass * c for c in row] for (*_, mass), row in zip(picked, costs, strict=True)]
            )
        # else a product of matrices, (letters × rows)(rows × outputs), which FLINT does
        weights = arb_mat(len(letters), len(rows))
        for i, place, mass in picked:
            weights[i, place] = mass
        return weights * arb_mat(costs)
