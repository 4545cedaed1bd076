"""What a recoding of a table loses: the objectives by which the best levels are chosen.

Each takes the sizes of the groups and which of them are kept; the records of the others are
suppressed, that is, released as one more group.  With nothing suppressed each only grows as levels
get coarser, and never exceeds what it is with records suppressed: that is its bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.model.information import entropy, mutual_information, nat
from cvxprivacy_sdc.auditing.measures import average_class_size, discernibility

__all__ = ["OBJECTIVES", "RecodedTable", "Recodings", "cost_of"]

OBJECTIVES = {
    "W": "I(X̃; W)",
    "X": "H(X̃)",
    "discernibility": "discernibility",
    "class size": "average class size",
    "non-uniform entropy": "non-uniform entropy",
    "loss": "loss",
}

Codes = npt.NDArray[np.int64]
Masses = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Recodings:
    """The columns of a key at every level of their hierarchies.

    Attributes
    ----------
    codes : dict of column to list of arrays, shape (|X|,)
        The number of the value that each key letter has there.
    shares : dict of column to list of arrays, shape (|X|,)
        (|g| − 1)/(|D| − 1) of the group g of each letter, in leaves of the hierarchy D; 0 without
        a hierarchy.
    masses : ndarray, shape (|X|,)
        Records of each key letter.
    """

    codes: Mapping[str, Sequence[Codes]]
    shares: Mapping[str, Sequence[Masses]]
    masses: Masses

    def groups(self, levels: Mapping[str, int]) -> Codes:
        """Return the number of the group of each key letter at some levels."""
        joint = np.zeros(len(self.masses), np.int64)
        for name, level in levels.items():
            column = self.codes[name][level]
            joint = joint * (int(column.max()) + 1) + column
            joint = np.unique(joint, return_inverse=True)[1].ravel()
        return joint

    @cached_property
    def uncertainty(self) -> dict[str, list[float]]:
        """−Σ log p(value | its group) over all records in nats, by column and level."""
        nothing = {
            name: _nats_within(levels[0], self.masses) for name, levels in self.codes.items()
        }
        return {
            name: [(nothing[name] - _nats_within(level, self.masses)) for level in levels]
            for name, levels in self.codes.items()
        }


def _nats_within(codes: Codes, masses: Masses) -> float:
    """Return −Σ m log(m/Σm) of the masses of values, in nats."""
    sums = np.bincount(codes, masses)
    sums = sums[sums > 0]
    return float(-(sums * np.log(sums / sums.sum())).sum())


@dataclass(frozen=True, eq=False)
class RecodedTable:
    """A table recoded to levels.

    Attributes
    ----------
    levels : mapping of column to int
        Of every column of the key.
    at : ndarray of int, shape (|X|,)
        The group of each key letter.
    joint : ndarray, shape (|W|, groups)
        Records by value of W.
    kept : ndarray of bool, shape (groups,)
    """

    levels: Mapping[str, int]
    at: Codes
    joint: Masses
    kept: npt.NDArray[np.bool_]

    @cached_property
    def sizes(self) -> Masses:
        """Records of each group."""
        return np.asarray(self.joint.sum(axis=0), float)

    @property
    def suppressed(self) -> float:
        """Records that are suppressed."""
        return float(self.sizes[~self.kept].sum())

    @property
    def released(self) -> Masses:
        """Records by value of W and released letter, the suppressed ones last."""
        if self.kept.all():
            return self.joint
        lost = self.joint[:, ~self.kept].sum(axis=1, keepdims=True)
        return np.hstack([self.joint[:, self.kept], lost])


def cost_of(keep: str, table: RecodedTable, recodings: Recodings, units: str) -> float:
    """Return what a recoded table loses, or minus what it keeps.

    Parameters
    ----------
    keep : str
        One of ``OBJECTIVES``.
    units : {"bits", "nats"}
        Of information.
    """
    costs: dict[str, Any] = {
        "W": lambda: -mutual_information(table.released, units=units),
        "X": lambda: -entropy(table.released.sum(axis=0), units=units),
        "discernibility": lambda: discernibility(table.sizes[table.kept], table.suppressed),
        "class size": lambda: average_class_size(table.released.sum(axis=0)),
        "non-uniform entropy": lambda: _non_uniform_entropy(table, recodings) * nat(units),
        "loss": lambda: _loss(table, recodings),
    }
    return float(costs[keep]())


def _non_uniform_entropy(table: RecodedTable, recodings: Recodings) -> float:
    """−Σ log p(value | released value) over records and columns, in nats.

    A suppressed record first loses what its levels lose, then which of the values of these it has
    among those suppressed.
    """
    value = sum(recodings.uncertainty[name][level] for name, level in table.levels.items())
    if table.kept.all():
        return value
    masses = np.where(table.kept[table.at], 0.0, recodings.masses)
    return value + sum(
        _nats_within(recodings.codes[name][level], masses) for name, level in table.levels.items()
    )


def _loss(table: RecodedTable, recodings: Recodings) -> float:
    """The mean share of a domain that a value's group has, 1 if suppressed (Iyengar 2002)."""
    shares = [recodings.shares[name][level] for name, level in table.levels.items()]
    of_letters = np.where(table.kept[table.at], np.mean(shares, axis=0), 1.0)
    return float(of_letters @ recodings.masses / recodings.masses.sum())
