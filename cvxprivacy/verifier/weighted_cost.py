"""A cost times the law: what multiplies a channel's entries.

Needs the standard library and python-flint only.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from flint import arb_mat

from cvxprivacy.verifier.balls import Matrix
from cvxprivacy.verifier.costs import Layer

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

    def block(self, letters: range) -> arb_mat:
        """Return what some letters cost: their masses times the rows that they have."""
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
