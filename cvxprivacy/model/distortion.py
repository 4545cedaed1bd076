"""How error is priced: d(x, x̂), or d(w, x, x̂), as a matrix with labels.

Every function returns a :class:`Distortion`; any nonnegative matrix makes one too.
"""

from __future__ import annotations

import itertools
import math
import numbers
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy import additive
from cvxprivacy.additive import AdditiveCost, Cost, Part
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, entries, fractions, over, times
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.laws import tabulated
from cvxprivacy.validation import labels, one_of, table, typed

__all__ = [
    "Distortion",
    "absolute_error",
    "hamming",
    "hierarchy_distance",
    "ordinal",
    "per_attribute",
    "squared_error",
]


class Distortion(Frozen):
    """A distortion measure on finite alphabets.

    Parameters
    ----------
    matrix : array_like or frame, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) ≥ 0, or d(w, x, x̂), in any unit; the budget is in the same.
    outputs : sequence, optional
        Labels of the released letters x̂, by default the columns of a frame, or those of the
        source if their number fits.
    inputs : sequence, optional
        Labels of the rows, by default the index of a pandas frame, or a first column of another
        that is not numeric; they are then matched to the source's letters, not counted off.
    name : str
        What it is called in print.

    Attributes
    ----------
    cost : ndarray or AdditiveCost
        d, by parts where it was made ``per_attribute``.
    exact : ndarray
        The very numbers that were typed, or follow from them: of floats, or of ``Fraction``s where
        some are no floats.

    Raises
    ------
    InputError
        For negative, NaN or infinite entries, or labels that do not fit.
    """

    def __init__(
        self,
        matrix: npt.ArrayLike | AdditiveCost,
        *,
        outputs: Sequence[Hashable] | None = None,
        inputs: Sequence[Hashable] | None = None,
        name: str = "distortion",
    ) -> None:
        remedy = "pass finite nonnegative entries of shape (|X|, |X̂|) or (|W|, |X|, |X̂|)"
        if isinstance(matrix, AdditiveCost):
            d: Cost = matrix
            tables = [table(part.table, "distortion", remedy) for part in matrix.parts]
            most = sum(fractions(entries).max() for entries in tables)
            typed(most, "distortion", remedy=remedy)  # which no sum is above
        else:
            given = tabulated(matrix)
            d = table(given.values, "distortion", remedy, axes=(2, 3))
            if d.ndim == 2 and given.labels:
                rows, columns = given.labels
                inputs = rows if inputs is None else inputs
                outputs = columns if outputs is None else outputs
        self.cost, self.name = d, name
        self._outputs = None if outputs is None else list(outputs)
        self.inputs = None if inputs is None else labels(inputs, d.shape[-2], "inputs")
        self._values: list[Any] | None = None  # what the rows stand for, if they are numbers
        self.parts: Mapping[str, Cost] = {}  # per attribute, d_i of the whole letters
        if self._outputs is not None and len(self._outputs) != d.shape[-1]:
            problem, remedy = f"{len(self._outputs)} labels", f"pass {d.shape[-1]}, one per column"
            raise InputError("outputs", problem, remedy)

    @cached_property
    def exact(self) -> Exact:
        """The very numbers that d is."""
        return additive.dense(self.cost)

    @cached_property
    def matrix(self) -> FloatArray:
        """The nearest floats to d, for sums and pictures; proofs are of the very numbers."""
        return additive.floats(self.cost)

    @property
    def outputs(self) -> list[Any]:
        """Labels of the released letters; 0, 1, … if none were given."""
        return list(range(self.cost.shape[-1])) if self._outputs is None else self._outputs

    def __repr__(self) -> str:
        return f"Distortion({self.name}, shape {self.cost.shape})"

    def __mul__(self, factor: float) -> Distortion:
        scaled = additive.times(self.cost, typed(factor, "factor"))
        found = Distortion(scaled, outputs=self._outputs, inputs=self.inputs, name=self.name)
        return found._with(parts=self.parts)

    __rmul__ = __mul__

    def fitted(self, w: int, x: Sequence[Hashable]) -> Distortion:
        """Return it with its rows in the order of a source's key letters ``x``.

        Raises
        ------
        InputError
            If the shape or the labels of the rows are not those of the source.
        """
        wanted = (len(x),) if self.cost.ndim == 2 else (w, len(x))
        if self.cost.shape[:-1] != wanted:
            problem = f"shape {self.cost.shape} beside a source with |W|, |X| = {(w, len(x))}"
            remedy = f"pass shape ({len(x)}, |X̂|) or ({w}, {len(x)}, |X̂|)"
            raise InputError("distortion", problem, remedy)
        outputs, rows = self._outputs, self.inputs
        if rows is None and self._values is not None and set(self._values) == set(x):
            rows = self._values  # the source's own numbers, perhaps in another order
        if rows is not None:
            place = {label: i for i, label in enumerate(rows)}
            for label in x:
                if label not in place:
                    remedy = f"label its rows as the source's: {list(x)[:5]} …"
                    raise InputError("distortion", f"no row for {label!r}", remedy, value=label)
            order = [place[label] for label in x]
        else:
            order = list(range(len(x)))
        if outputs is None and self.cost.shape[-1] == len(x):
            outputs = list(x)
        fitted = additive.of_letters(self.cost, order)
        found = Distortion(fitted, outputs=outputs, inputs=x, name=self.name)
        parts = {name: additive.of_letters(part, order) for name, part in self.parts.items()}
        return found._with(parts=parts)


def _numbers(values: npt.ArrayLike, argument: str) -> Exact:
    remedy = "pass one finite number, or vector, per letter"
    found = table(values, argument, remedy, axes=(1, 2), negative=True)
    return found[:, None] if found.ndim == 1 else found


def _distances(
    values: npt.ArrayLike, outputs: npt.ArrayLike | None, power: int
) -> tuple[Exact, list[Any]]:
    """Return Σ_k |x_k − x̂_k|^power, exactly, and the labels of the outputs."""
    a = _numbers(values, "values")
    b = a if outputs is None else _numbers(outputs, "outputs")
    if a.shape[1] != b.shape[1]:
        raise InputError("outputs", f"{b.shape[1]} coordinates", f"pass {a.shape[1]} as in values")
    items = entries(values if outputs is None else outputs).tolist()
    names = [label if not isinstance(label, list) else tuple(label) for label in items]
    names = [label[0] if isinstance(label, tuple) and len(label) == 1 else label for label in names]
    pair = fractions(a), fractions(b)  # over one denominator all is done in whole numbers
    common = math.lcm(*(v.denominator for side in pair for row in side.tolist() for v in row))
    x, y = (np.array([[int(v * common) for v in row] for row in s], dtype=object) for s in pair)
    largest = 2 * max(int(np.abs(side).max()) for side in (x, y))
    if a.shape[1] * largest**power < 2**62:
        x, y = x.astype(np.int64), y.astype(np.int64)
    total = sum(np.abs(u[:, None] - v[None]) ** power for u, v in zip(x.T, y.T, strict=True))
    if Fraction(int(np.max(total)), common**power) > sys.float_info.max:
        problem, remedy = f"distances beyond {sys.float_info.max:.2g}", "give them in another unit"
        raise InputError("values", problem, remedy)
    return over(np.asarray(total), common**power), names


def _stands_for(values: npt.ArrayLike, d: np.ndarray, outputs: list[Any], name: str) -> Distortion:
    found = Distortion(d, outputs=outputs, name=name)
    items = np.asarray(values)
    if items.ndim == 1 and len(set(items.tolist())) == len(items):
        found = found._with(_values=items.tolist())
    return found


def squared_error(values: npt.ArrayLike, outputs: npt.ArrayLike | None = None) -> Distortion:
    """d(x, x̂) = ‖x − x̂‖².

    Parameters
    ----------
    values : array_like, shape (|X|,) or (|X|, k)
        The number, or vector, that each key letter stands for, in the order of the source's
        letters (in any order, if they are those letters).
    outputs : array_like, optional
        The same for the released letters; by default the key letters themselves.
    """
    error, labels = _distances(values, outputs, 2)
    return _stands_for(values, error, labels, "squared error")


def absolute_error(values: npt.ArrayLike, outputs: npt.ArrayLike | None = None) -> Distortion:
    """d(x, x̂) = ‖x − x̂‖₁; arguments as in :func:`squared_error`."""
    error, labels = _distances(values, outputs, 1)
    return _stands_for(values, error, labels, "absolute error")


def _letters(letters: int | Sequence[Hashable]) -> tuple[int, list[Any] | None]:
    """Return the number of letters, and their labels if they have any."""
    remedy = "pass their number or their labels"
    found = None
    if isinstance(letters, numbers.Integral):
        count = max(int(letters), 0)
    elif isinstance(letters, Iterable):
        found = labels(list(letters), None, "letters")
        count = len(found)
    else:
        raise InputError("letters", f"{letters!r}", remedy)
    if not count:
        raise InputError("letters", "no letters", remedy)
    return count, found


def hamming(letters: int | Sequence[Hashable]) -> Distortion:
    """d(x, x̂) = 1 if x ≠ x̂, else 0, on ``letters`` (their number, or their labels)."""
    count, names = _letters(letters)
    return Distortion(1.0 - np.eye(count), outputs=names, inputs=names, name="Hamming")


def ordinal(letters: int | Sequence[Hashable]) -> Distortion:
    """d(x, x̂) = |rank x − rank x̂| / (|X| − 1) for letters in increasing order."""
    count, names = _letters(letters)
    rank = np.arange(float(count))
    matrix = times(np.abs(rank[:, None] - rank), Fraction(1, max(count - 1, 1)))
    return Distortion(matrix, outputs=names, inputs=names, name="ordinal")


def hierarchy_distance(paths: Mapping[Hashable, Sequence[Hashable]]) -> Distortion:
    """d(x, x̂) = share of levels that must be climbed until x and x̂ meet.

    Parameters
    ----------
    paths : mapping of letter to sequence
        Ancestors of each letter from the nearest up to the root, all of one length:
        ``{"Paris": ("France", "Europe"), "Rome": ("Italy", "Europe")}``.
    """
    if not isinstance(paths, Mapping):
        remedy = "pass {letter: (parent, …, root)}"
        raise InputError("paths", f"a {type(paths).__name__}", remedy)
    names = list(paths)
    chains = [(name, *paths[name]) for name in names]
    if not names or len({len(chain) for chain in chains}) != 1 or len(chains[0]) < 2:
        raise InputError("paths", "of different lengths", "give every letter one path to the root")
    if len({chain[-1] for chain in chains}) != 1:
        raise InputError("paths", "no common root", "end every path with the same ancestor")
    depth = len(chains[0]) - 1
    d: Exact = np.zeros((len(names), len(names)))
    for i, a in enumerate(chains):
        for j, b in enumerate(chains):
            d[i, j] = next(k for k in range(depth + 1) if a[k:] == b[k:])
    d = times(d, Fraction(1, depth))
    return Distortion(d, outputs=names, inputs=names, name="hierarchy")


def per_attribute(
    distortions: Mapping[str, Distortion | str],
    cells: Sequence[tuple[Hashable, ...]] | DiscreteSource | None = None,
    *,
    inputs: Mapping[str, Sequence[Hashable]] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Distortion:
    """Weighted sum over key attributes, d((x₁, …), (x̂₁, …)) = Σ_i c_i d_i(x_i, x̂_i).

    Its parts E d_i are terms of every solution: ``solution.terms["distortion of age"]``.

    Parameters
    ----------
    distortions : mapping of attribute to Distortion, shape (|X_i|, |X_i|)
        In the order in which the attributes make up a cell.  With a source that was counted
        from a table, also ``"hamming"``, ``"ordinal"``, ``"absolute_error"`` or
        ``"squared_error"``, of the column's levels; bins stand for their middles, and to or
        from a missing value it is as far as between the farthest two levels.
    cells : sequence of tuple, or DiscreteSource, optional
        The key letters (as in ``source.x``), by default all combinations; they are also the
        released letters.
    inputs : mapping of attribute to sequence, optional
        Labels of each attribute's letters, by default its distortion's outputs.
    weights : mapping of attribute to float, optional
        c_i ≥ 0, by default 1.
    """
    if not distortions:
        raise InputError("distortions", "none", "pass at least one attribute")
    for argument, given in (("weights", weights), ("inputs", inputs)):
        for name in given or {}:
            one_of(name, argument, *distortions)
    factors = {k: typed((weights or {}).get(k, 1.0), "weights", where=k) for k in distortions}
    measures, labels = dict(distortions), None
    if isinstance(cells, DiscreteSource):
        measures, labels = _of_columns(distortions, cells), cells.x
        cells = [x if isinstance(x, tuple) else (x,) for x in cells.x]
    letters: dict[str, list[Any]] = {}
    for name, d in measures.items():
        if not isinstance(d, Distortion) or d.cost.ndim != 2 or np.ptp(d.cost.shape):
            remedy = "pass a Distortion from the attribute's letters to themselves"
            raise InputError("distortions", f"{name!r} is {d!r}", remedy)
        letters[name] = list((inputs or {}).get(name, d.outputs))
        if len(letters[name]) != d.cost.shape[0]:
            problem = f"{len(letters[name])} letters of {name!r}"
            raise InputError("inputs", problem, f"pass {d.cost.shape[0]}, one per row")
    if cells is None:
        cells = list(itertools.product(*letters.values()))
    if not len(cells):
        raise InputError("cells", "none", "pass at least one combination")
    parts: dict[str, Cost] = {}
    for axis, (name, d) in enumerate(measures.items()):
        assert isinstance(d, Distortion)
        place = {label: i for i, label in enumerate(letters[name])}
        index = np.empty(len(cells), dtype=int)
        for i, cell in enumerate(cells):
            if not isinstance(cell, tuple) or len(cell) != len(measures):
                remedy = f"pass tuples of {len(measures)} letters"
                raise InputError("cells", f"{cell!r}", remedy, where=i, value=cell)
            if cell[axis] not in place:
                problem, remedy = f"{cell[axis]!r} is no letter of {name!r}", "pass inputs= for it"
                raise InputError("cells", problem, remedy, where=i, value=cell[axis])
            index[i] = place[cell[axis]]
        places = frozen(index)
        parts[name] = AdditiveCost((Part(d.exact, places, places),))
    weighed = (additive.times(part, factors[k]) for k, part in parts.items())
    total = reduce(additive.plus, weighed)
    names = list(cells) if labels is None else labels
    found = Distortion(total, outputs=names, inputs=names, name="per attribute")
    return found._with(parts=parts)


def _of_columns(
    distortions: Mapping[str, Distortion | str], source: DiscreteSource
) -> dict[str, Distortion | str]:
    """Return a measure for each key column of a source, those given by name made."""
    if source.schema is None:
        remedy = "pass the key letters, or a source made by DiscreteSource.from_table"
        raise InputError("cells", "a source that was not counted from a table", remedy)
    keys = source.schema.key
    for name in (*keys, *distortions):
        if name not in distortions or name not in keys:
            remedy = f"pass one distortion for each key column: {', '.join(keys)}"
            raise InputError("distortions", f"{name!r} has none or is no key column", remedy)
    found: dict[str, Distortion | str] = {}
    for name in keys:
        given, levels = distortions[name], source.levels[name]
        if not isinstance(given, str):
            found[name] = given
            continue
        one_of(given, "distortions", *_BY_NAME, where=name)
        if given == "hamming":
            found[name] = hamming(levels)
            continue
        seen = [level for level in levels if level is not None]
        stand: list[Any] = list(range(len(seen)))
        if given != "ordinal":
            bins = source.schema.bins.get(name)
            middles = dict(zip(bins.labels, bins.middles, strict=True)) if bins else {}
            stand = [middles.get(level, level) for level in seen]
            if not all(isinstance(v, numbers.Real) for v in stand):
                problem = f"{given} of {name!r}, whose levels are no numbers ({stand[0]!r})"
                raise InputError("distortions", problem, 'use "hamming" or "ordinal"', where=name)
        d = ordinal(seen).exact if given == "ordinal" else _BY_NAME[given](stand).exact
        whole = np.full((len(levels), len(levels)), d.max() if d.any() else 1.0)
        whole[: len(seen), : len(seen)] = d  # a missing value is the last level
        np.fill_diagonal(whole, 0.0)
        found[name] = Distortion(whole, outputs=levels, inputs=levels, name=given)
    return found


_BY_NAME: dict[str, Callable[[Any], Distortion]] = {
    "hamming": hamming,
    "ordinal": ordinal,
    "absolute_error": absolute_error,
    "squared_error": squared_error,
}
