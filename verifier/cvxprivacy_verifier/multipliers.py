"""Untrusted multipliers of a channel program's document: whatever they are, they prove a bound.

They are made admissible by (C3); what they add to the bound is (P23), (P24) or (P25).
Needs the standard library and python-flint only.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from flint import arb

from .balls import Matrix, enclosure, smallest, total as _sum
from .channel_data import ChannelData

__all__ = ["AuxiliaryMultipliers", "ExcessMultipliers", "finite", "float_table"]


class AuxiliaryMultipliers:
    """(μ, η) of a ``ratio`` or (μ,) of a ``maximum``, as far as they are numbers ≥ 0."""

    def __init__(self, proof: ChannelData, name: str, dual: Any) -> None:
        aux = proof.program["auxiliaries"][name]
        count = {"ratio": 2, "maximum": 1}[aux["kind"]]
        # what has another shape counts as 0: a worse bound, and no reason to refuse a proof
        tables = dual if isinstance(dual, list) and len(dual) == count else [None] * count
        self._tables = [float_table(d, proof.n, proof.m) for d in tables]
        self._sums = [[arb(0)] * proof.m for _ in tables]  # Σ_s p(s) μ(s, y), and of η
        self._proof, self._bound = proof, enclosure(aux["bound"])

    def add_to(self, table: Matrix, letters: range) -> None:
        """Add what they are worth inside the braces to the table of some letters."""
        for i, s in enumerate(letters):
            p = self._proof.mass[s]
            # p(s) μ(s, y) and p(s) η(s, y), with the multipliers made ≥ 0 (C3)
            rows = [[p * max(x, 0.0) for x in multipliers[s]] for multipliers in self._tables]
            # gathered on the way: what is outside needs the sums over all blocks of letters
            self._sums = [list(map(operator.add, *x)) for x in zip(self._sums, rows, strict=True)]
            mu, *eta = rows
            sign = operator.sub if eta else operator.add  # η − μ of (P23), μ of (P24)
            table[i] = list(map(sign, table[i], mu))
            for row in eta:
                table[i] = list(map(operator.add, table[i], row))

    def outside(self) -> arb:
        """Return what is left outside the braces, when all letters were added."""
        mu, *eta = self._sums
        for row in eta:
            outside = [m - self._bound * e for m, e in zip(mu, row, strict=True)]
            return smallest([arb(0), *outside]) / self._proof.total  # (P23)
        return self._bound * smallest([-m for m in mu]) / self._proof.total  # (P24): −B max


class ExcessMultipliers:
    """μ ≥ 0 of each output's marginal above its level, as far as they are numbers."""

    def __init__(self, proof: ChannelData, name: str, dual: Any) -> None:
        (values,) = dual if isinstance(dual, list) and len(dual) == 1 else [None]
        none = [0.0] * proof.m
        mu = values if isinstance(values, list) and len(values) == proof.m else none
        self._mu = [max(finite(x), 0.0) for x in mu]
        self._weights, self._levels = proof.excesses[name]
        self._bound = enclosure(proof.program["auxiliaries"][name]["bound"])

    def add_to(self, table: Matrix, letters: range) -> None:
        """Add Σ_y μ(y) a(s) p(s) K(s, y) to the table of some letters."""
        for i, s in enumerate(letters):
            table[i] = [x + self._weights[s] * mu for x, mu in zip(table[i], self._mu, strict=True)]

    def outside(self) -> arb:
        """Return −Σ_y μ(y) b(y) − t max μ."""
        pairs = zip(self._mu, self._levels, strict=True)
        return -_sum(level * mu for mu, level in pairs) - self._bound * max(self._mu)  # (P25)


def float_table(values: Any, rows: int, columns: int) -> Matrix:
    """Return a matrix of finite floats, zeros if it has another shape."""
    fits = isinstance(values, list) and len(values) == rows
    # zeros, as a whole: a table that was read halfway would still be sound, but nobody's meaning
    if not fits or any(not isinstance(row, list) or len(row) != columns for row in values):
        return [[0.0] * columns] * rows
    return [[finite(x) for x in row] for row in values]


def finite(x: Any) -> float:
    """Return a number as a float, 0 where it is no finite one."""
    try:  # the type itself: True is an int, and no multiplier
        return float(x) if type(x) in (int, float) and math.isfinite(x) else 0.0
    except OverflowError:  # an integer beyond every float
        return 0.0
