"""A law laid out for an encoder: which letters it sees, and the atoms behind each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.frozen import FrozenFields
from cvxprivacy.validation import untaken

__all__ = ["Atoms", "labels_by_x", "lay_out"]


@dataclass(frozen=True, eq=False)
class Atoms(FrozenFields):
    """A source's law as a program has it: a column per letter that the encoder sees.

    Attributes
    ----------
    law : ndarray, shape (L, n)
        Masses > 0 in total per column: atoms of letter s.
    w_of : ndarray of int, shape (L, n)
        Each atom's w, numbered among the values with mass.
    w_support : ndarray of int
        Those values, among the source's.
    support : ndarray of int, shape (n,)
        The letters, among x, the pairs (w, x) or (x, z), or the triples (w, x, z).
    x_of : ndarray of int, shape (n,)
        Each letter's x.
    z_of : ndarray of int, shape (L, n)
        Each atom's z; 0 without side information.
    shape : (int, int, int)
        |W|, |X|, |Z| of the source.
    """

    law: np.ndarray
    w_of: np.ndarray
    w_support: np.ndarray
    support: np.ndarray
    x_of: np.ndarray
    z_of: np.ndarray
    shape: tuple[int, int, int]


def lay_out(law: np.ndarray, encoder: str) -> Atoms:
    """Lay out masses of shape (|W|, |X|, |Z|) for an encoder of x, (w, x), (x, z) or (w, x, z).

    Letters without mass are left out; the encoder's letters are in the order of w, x, z.
    """
    nw, nx, nz = law.shape
    w_support = np.flatnonzero(law.sum(axis=(1, 2)) > 0)
    number = np.full(nw, -1)
    number[w_support] = np.arange(len(w_support))
    observed = [axis for axis, name in enumerate("wxz") if name in encoder]
    hidden = [axis for axis in range(3) if axis not in observed]
    places: np.ndarray = np.indices(law.shape)

    def laid(table: np.ndarray) -> np.ndarray:
        size = math.prod(law.shape[axis] for axis in hidden)
        return table.transpose(*hidden, *observed).reshape(size, -1)

    masses = laid(law)
    support = np.flatnonzero(masses.sum(axis=0) > 0)
    atoms = masses[:, support]
    occupied = laid(np.broadcast_to(law.sum(axis=(1, 2))[:, None, None] > 0, law.shape))
    kept = occupied[:, support].all(axis=1) if 0 in hidden else np.ones(len(atoms), bool)
    w, x, z = (laid(place)[:, support][kept] for place in places)
    return Atoms(atoms[kept], number[w].astype(np.int64), w_support, support, x[0], z, (nw, nx, nz))


def labels_by_x(
    name: str, there: np.ndarray, w_of: np.ndarray, x_of: np.ndarray, x: Sequence[Any]
) -> dict[str, np.ndarray]:
    """Return what those see of W who know x, at each x that leaves it open: −1 of other atoms.

    Parameters
    ----------
    name : str
        Of the view of W without x.
    there : ndarray of bool, shape (L, n)
        Atoms with mass that are seen.
    w_of, x_of : ndarray of int, shape (L, n) and (n,)
        As of :class:`Atoms`; values of W are numbered anew at each x.
    x : sequence
        The labels of X.
    """
    labels: dict[str, np.ndarray] = {}
    for place in np.unique(x_of).tolist():
        atoms = there & (x_of == place)
        values = np.unique(w_of[atoms])
        if len(values) > 1:
            view = untaken(f"{name}|X = {x[place]}", labels)
            labels[view] = np.where(atoms, np.searchsorted(values, w_of), -1)
    return labels
