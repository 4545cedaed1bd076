"""How error is priced: d(x, x̂), or d(w, x, x̂), as a matrix with labels.

Every function returns a :class:`Distortion`; any nonnegative matrix makes one too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError

__all__ = [
    "Distortion",
    "absolute_error",
    "as_distortion",
    "hamming",
    "hierarchy_distance",
    "ordinal",
    "per_attribute",
    "squared_error",
]


class Distortion:
    """A distortion measure on finite alphabets.

    Parameters
    ----------
    matrix : array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) ≥ 0, or d(w, x, x̂), in any unit; the budget is in the same.
    outputs : sequence, optional
        Labels of the released letters x̂, by default 0, 1, ….
    name : str
        What it is called in print.

    Raises
    ------
    InputError
        For negative, NaN or infinite entries, or labels that do not fit.
    """

    def __init__(
        self,
        matrix: npt.ArrayLike,
        *,
        outputs: Sequence[Hashable] | None = None,
        name: str = "distortion",
    ) -> None:
        try:
            d = np.array(matrix, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError("distortion", f"not numbers ({error})", "pass a matrix") from None
        if d.ndim not in (2, 3) or not d.size:
            raise InputError(
                "distortion", f"shape {d.shape}", "pass shape (|X|, |X̂|) or (|W|, |X|, |X̂|)"
            )
        bad = ~np.isfinite(d) | (d < 0)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise InputError(
                "distortion",
                f"{float(d[where])!r} is no price of an error",
                "pass finite nonnegative entries (forbid a move with ForbiddenMoves)",
                where=where,
                value=float(d[where]),
            )
        d.flags.writeable = False
        self.matrix, self.name = d, name
        self.outputs = list(range(d.shape[-1])) if outputs is None else list(outputs)
        if len(self.outputs) != d.shape[-1]:
            raise InputError(
                "outputs", f"{len(self.outputs)} labels", f"pass {d.shape[-1]}, one per column"
            )

    def __repr__(self) -> str:
        return f"Distortion({self.name}, shape {self.matrix.shape})"

    def __mul__(self, factor: float) -> Distortion:
        return Distortion(self.matrix * float(factor), outputs=self.outputs, name=self.name)

    __rmul__ = __mul__

    def checked(self, shape: tuple[int, int]) -> Distortion:
        """Return itself if it fits a source of shape (|W|, |X|)."""
        wanted = (shape[1],) if self.matrix.ndim == 2 else shape
        if self.matrix.shape[:-1] != wanted:
            raise InputError(
                "distortion",
                f"shape {self.matrix.shape} beside a source with |W|, |X| = {shape}",
                f"pass shape ({shape[1]}, |X̂|) or ({shape[0]}, {shape[1]}, |X̂|)",
            )
        return self


def as_distortion(value: Distortion | npt.ArrayLike, inputs: Sequence[Hashable]) -> Distortion:
    """Return ``value`` as a distortion; a square matrix releases the letters themselves."""
    if isinstance(value, Distortion):
        return value
    d = Distortion(value)
    return Distortion(value, outputs=inputs) if d.matrix.shape[-1] == len(inputs) else d


def _numbers(values: npt.ArrayLike, argument: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(argument, "not numbers", "pass one number per letter") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise InputError(argument, f"shape {array.shape}", "pass one finite number per letter")
    return array


def _pairs(values: npt.ArrayLike, outputs: npt.ArrayLike | None) -> tuple[np.ndarray, list[Any]]:
    a = _numbers(values, "values")
    b = a if outputs is None else _numbers(outputs, "outputs")
    if a.shape[1] != b.shape[1]:
        raise InputError("outputs", f"{b.shape[1]} coordinates", f"pass {a.shape[1]} as in values")
    labels = np.asarray(values if outputs is None else outputs).tolist()
    labels = [tuple(label) if isinstance(label, list) else label for label in labels]
    return a[:, None, :] - b[None, :, :], labels


def squared_error(values: npt.ArrayLike, outputs: npt.ArrayLike | None = None) -> Distortion:
    """d(x, x̂) = ‖x − x̂‖².

    Parameters
    ----------
    values : array_like, shape (|X|,) or (|X|, k)
        The number, or vector, that each key letter stands for.
    outputs : array_like, optional
        The same for the released letters; by default the key letters themselves.
    """
    difference, labels = _pairs(values, outputs)
    return Distortion((difference**2).sum(axis=2), outputs=labels, name="squared error")


def absolute_error(values: npt.ArrayLike, outputs: npt.ArrayLike | None = None) -> Distortion:
    """d(x, x̂) = ‖x − x̂‖₁; arguments as in :func:`squared_error`."""
    difference, labels = _pairs(values, outputs)
    return Distortion(np.abs(difference).sum(axis=2), outputs=labels, name="absolute error")


def _letters(letters: int | Sequence[Hashable], argument: str = "letters") -> list[Hashable]:
    labels: list[Hashable] = list(range(letters) if isinstance(letters, int) else letters)
    if not labels:
        raise InputError(argument, "no letters", "pass their number or their labels")
    return labels


def hamming(letters: int | Sequence[Hashable]) -> Distortion:
    """d(x, x̂) = 1 if x ≠ x̂, else 0, on ``letters`` (their number, or their labels)."""
    labels = _letters(letters)
    return Distortion(1.0 - np.eye(len(labels)), outputs=labels, name="Hamming")


def ordinal(letters: int | Sequence[Hashable]) -> Distortion:
    """d(x, x̂) = |rank x − rank x̂| / (|X| − 1) for letters in increasing order."""
    labels = _letters(letters)
    rank = np.arange(len(labels)) / max(len(labels) - 1, 1)
    return Distortion(np.abs(rank[:, None] - rank), outputs=labels, name="ordinal")


def hierarchy_distance(paths: Mapping[Hashable, Sequence[Hashable]]) -> Distortion:
    """d(x, x̂) = share of levels that must be climbed until x and x̂ meet.

    Parameters
    ----------
    paths : mapping of letter to sequence
        Ancestors of each letter from the nearest up to the root, all of one length:
        ``{"Paris": ("France", "Europe"), "Rome": ("Italy", "Europe")}``.
    """
    labels = list(paths)
    chains = [(label, *paths[label]) for label in labels]
    if not labels or len({len(chain) for chain in chains}) != 1 or len(chains[0]) < 2:
        raise InputError("paths", "of different lengths", "give every letter one path to the root")
    if len({chain[-1] for chain in chains}) != 1:
        raise InputError("paths", "no common root", "end every path with the same ancestor")
    depth = len(chains[0]) - 1
    d = np.zeros((len(labels), len(labels)))
    for i, a in enumerate(chains):
        for j, b in enumerate(chains):
            d[i, j] = next(k for k in range(depth + 1) if a[k:] == b[k:]) / depth
    return Distortion(d, outputs=labels, name="hierarchy")


def per_attribute(
    distortions: Mapping[str, Distortion],
    cells: Sequence[tuple[Hashable, ...]] | None = None,
    *,
    inputs: Mapping[str, Sequence[Hashable]] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Distortion:
    """Weighted sum over key attributes, d((x₁, …), (x̂₁, …)) = Σ_i c_i d_i(x_i, x̂_i).

    Parameters
    ----------
    distortions : mapping of attribute to Distortion, shape (|X_i|, |X_i|)
        In the order in which the attributes make up a cell.
    cells : sequence of tuple, optional
        The key letters (as in ``source.x``), by default all combinations; they are also the
        released letters.
    inputs : mapping of attribute to sequence, optional
        Labels of each attribute's letters, by default its distortion's outputs.
    weights : mapping of attribute to float, optional
        c_i ≥ 0, by default 1.
    """
    if not distortions:
        raise InputError("distortions", "none", "pass at least one attribute")
    labels = {k: list((inputs or {}).get(k, d.outputs)) for k, d in distortions.items()}
    for name in [*(weights or {}), *(inputs or {})]:
        if name not in distortions:
            raise InputError("weights", f"{name!r} unknown", f"use {list(distortions)}")
    if cells is None:
        grids = np.meshgrid(*(range(len(v)) for v in labels.values()), indexing="ij")
        indices = np.stack([g.ravel() for g in grids], axis=1)
        cells = [tuple(v[i] for v, i in zip(labels.values(), row, strict=True)) for row in indices]
    total = np.zeros((len(cells), len(cells)))
    for axis, (name, d) in enumerate(distortions.items()):
        place = {label: i for i, label in enumerate(labels[name])}
        try:
            index = np.array([place[cell[axis]] for cell in cells])
        except (KeyError, IndexError) as error:
            raise InputError(
                "cells", f"{error.args[0]!r} is no letter of {name!r}", "pass inputs= for it"
            ) from None
        total += float((weights or {}).get(name, 1.0)) * d.matrix[np.ix_(index, index)]
    return Distortion(total, outputs=list(cells), name="per attribute")
