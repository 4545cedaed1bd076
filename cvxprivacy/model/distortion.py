"""How error is priced: d(x, x̂), or d(w, x, x̂), as a matrix with labels.

Every function returns a :class:`Distortion`; any nonnegative matrix makes one too.  Letters of
which some columns are suppressed have a cost of their own.
"""

from __future__ import annotations

import itertools
import math
import numbers
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy import additive
from cvxprivacy.additive import AdditiveCost, Cost, Part
from cvxprivacy.errors import InputError
from cvxprivacy.exact import (
    Exact,
    FloatArray,
    Real,
    array as exact_array,
    entries,
    fractions,
    over,
    plus,
    rational,
    times,
)
from cvxprivacy.frozen import Frozen
from cvxprivacy.model.laws import tabulated
from cvxprivacy.validation import labels, table, typed

__all__ = [
    "Distortion",
    "absolute_error",
    "hamming",
    "hierarchy_distance",
    "ordinal",
    "squared_error",
]


class Distortion(Frozen):
    """A distortion measure on finite alphabets: what it costs to release x̂ for x.

    Parameters
    ----------
    matrix : array_like or frame, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) ≥ 0, or d(w, x, x̂), in any unit; the budget is in the same.  d(x, x̂) = ∞ forbids
        the move: x is never released as x̂, and it adds nothing to E d.
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
        d, by parts where it was made ``per_attribute``; a forbidden move has a number here that no
        release pays, the greatest that its letter may.
    forbidden : ndarray of bool, shape (|X|, |X̂|), or None
        The moves of infinite distortion, which problems state as :class:`ForbiddenMoves`.

    Raises
    ------
    InputError
        For negative or NaN entries, a row that is all infinite, or labels that do not fit.

    Examples
    --------
    Three ages may be released as two bands, at a cost in years; a number multiplies it:

    >>> import cvxprivacy as cpv
    >>> years = [[0, 10], [5, 5], [10, 0]]
    >>> d = cpv.Distortion(years, inputs=[20, 25, 30], outputs=["young", "old"])
    >>> d.outputs, (2 * d).matrix[0].tolist()
    (['young', 'old'], [0.0, 20.0])
    >>> source = cpv.DiscreteSource([[0.3, 0.2, 0.0], [0.0, 0.2, 0.3]], x=[20, 25, 30])
    >>> cpv.PrivacyDistortion(source, d, budget=3).solve().channel.outputs
    ['young', 'old']

    If 20 may not become old, and 30 not young, 25 alone is released at random:

    >>> d = cpv.Distortion([[0, float("inf")], [5, 5], [float("inf"), 0]], inputs=[20, 25, 30])
    >>> cpv.PrivacyDistortion(source, d, budget=3).solve().channel.matrix.round(2).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """

    def __init__(
        self,
        matrix: npt.ArrayLike | AdditiveCost,
        *,
        outputs: Sequence[Hashable] | None = None,
        inputs: Sequence[Hashable] | None = None,
        name: str = "distortion",
    ) -> None:
        remedy = "pass nonnegative entries of shape (|X|, |X̂|), ∞ for a move that is forbidden, "
        remedy += "or finite ones of shape (|W|, |X|, |X̂|)"
        self.forbidden: npt.NDArray[np.bool_] | None = None
        if isinstance(matrix, AdditiveCost):
            d: Cost = matrix
            tables = [table(part.table, "distortion", remedy) for part in matrix.parts]
            most = sum(fractions(entries).max() for entries in tables)
            typed(most, "distortion", remedy=remedy)  # which no sum is above
        else:
            tabular = tabulated(matrix)
            finite, self.forbidden = _without_infinite(tabular.values)
            d = table(finite, "distortion", remedy, axes=(2, 3))
            if self.forbidden is not None:
                d = _filled(d, self.forbidden)
            if d.ndim == 2 and tabular.labels:
                rows, columns = tabular.labels
                inputs = rows if inputs is None else inputs
                outputs = columns if outputs is None else outputs
        self.cost, self.name = d, name
        self._outputs = None if outputs is None else list(outputs)
        self.inputs = None if inputs is None else labels(inputs, d.shape[-2], "inputs")
        self._values: list[Any] | None = None  # what the rows stand for, if they are numbers
        self.parts: Mapping[str, Cost] = {}  # per attribute, d_i of the whole letters
        self._weights: Mapping[str, Any] = {}  # of the parts
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
        near = additive.floats(self.cost)
        return near if self.forbidden is None else np.where(self.forbidden, math.inf, near)

    @property
    def outputs(self) -> list[Any]:
        """Labels of the released letters; 0, 1, … if none were given."""
        return list(range(self.cost.shape[-1])) if self._outputs is None else self._outputs

    def __repr__(self) -> str:
        return f"Distortion({self.name}, shape {self.cost.shape})"

    def __mul__(self, factor: float) -> Distortion:
        scaled = additive.times(self.cost, typed(factor, "factor"))
        product = Distortion(scaled, outputs=self._outputs, inputs=self.inputs, name=self.name)
        by = rational(factor)
        weights = {name: by * rational(weight) for name, weight in self._weights.items()}
        return product._with(parts=self.parts, _weights=weights, forbidden=self.forbidden)

    __rmul__ = __mul__

    def fitted(self, w: int, x: Sequence[Hashable]) -> Distortion:
        """Return it with its rows in the order of a source's key letters ``x``.

        Parameters
        ----------
        w : int
            Values of W.
        x : sequence
            Labels of the key letters.

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
        cost = additive.of_letters(self.cost, order)
        reordered = Distortion(cost, outputs=outputs, inputs=x, name=self.name)
        parts = {name: additive.of_letters(part, order) for name, part in self.parts.items()}
        moves = None if self.forbidden is None else self.forbidden[order]
        return reordered._with(parts=parts, _weights=self._weights, forbidden=moves)

    def with_suppression(
        self, cost: Real | Mapping[str, Real], *, columns: Sequence[str] = ()
    ) -> Distortion:
        """Return it with suppressed letters: values that are withheld, each at a cost.

        With them among the released letters the optimum decides which records to suppress, and in
        which columns.  A suppressed value is ``None``, a missing one in a table.

        Parameters
        ----------
        cost : number, or mapping of attribute to number
            What withholding a value adds to d, in d's unit, ≥ 0: one for each column of a letter,
            or one for those named, which alone may be suppressed.  A value that is missing in x is
            withheld at no cost.
        columns : sequence of str, optional
            What the columns of a letter are called, by default the attributes of
            :func:`per_attribute`.

        Returns
        -------
        Distortion
            Of the same letters x, with outputs in which every choice of these columns is ``None``.
            The columns that are left cost what they do by themselves where the distortion is
            ``per_attribute``, and else the least d of any released letter that agrees with them.

        Raises
        ------
        InputError
            For a negative cost, unknown columns, letters without labels, or infinite distortions.

        Examples
        --------
        >>> d = hamming([("young", "m"), ("young", "f"), ("old", "f")])
        >>> d = d.with_suppression({"sex": 0.25}, columns=["age", "sex"])
        >>> d.outputs[3:], d.matrix[0].tolist()
        ([('young', None), ('old', None)], [0.0, 1.0, 1.0, 0.25, 1.25])
        """
        square = self.cost.shape[-2] == self.cost.shape[-1]
        rows = self.inputs or self._values or (self._outputs if square else None)
        if self._outputs is None or rows is None:
            remedy = "name the letters: hamming(source.x), or Distortion(…, outputs=…, inputs=…)"
            raise InputError("cost", "letters without labels", remedy)
        names = [str(name) for name in columns] or list(self.parts)
        if self.forbidden is not None:
            problem, remedy = "a distortion that forbids moves", "use ForbiddenMoves for these"
            raise InputError("cost", problem, remedy)
        costs = axes_of(cost, names, self._outputs, "pass columns=[…], one for each column")
        costs = {axis: typed(price, "cost", where=axis) for axis, price in costs.items()}
        kept, added = with_suppressed_letters(self._outputs, list(costs))
        outputs = [*(self._outputs[i] for i in kept), *added]
        name, parts, d = f"{self.name} or suppressed", dict(self.parts), self.cost
        if parts:
            d, parts = suppressed_parts(parts, self._weights, rows, self._outputs, outputs, costs)
        else:
            d = suppressed(d, rows, self._outputs, kept, added, costs)
        extended = Distortion(d, outputs=outputs, inputs=self.inputs, name=name)
        return extended._with(parts=parts, _weights=self._weights, _values=self._values)


def _without_infinite(values: Any) -> tuple[Any, npt.NDArray[np.bool_] | None]:
    """Return entries with 0 in place of +∞ among them, and where that was; as they are else."""
    try:
        items = entries(values)
        infinite = np.asarray(items == math.inf, bool)
    except (TypeError, ValueError):  # said by the checks of numbers
        return values, None
    if infinite.ndim != 2 or not infinite.any():
        return values, None
    for x in np.flatnonzero(infinite.all(axis=1)).tolist():
        remedy = "leave every letter a move of finite distortion"
        raise InputError("distortion", "all infinite", remedy, where=x, value=math.inf)
    return np.where(infinite, 0, items), infinite


def _filled(d: Exact, forbidden: npt.NDArray[np.bool_]) -> Exact:
    """Return d with the greatest finite entry of a row where a move is forbidden."""
    most = np.where(forbidden, 0, d).max(axis=1)
    return exact_array(np.where(forbidden, most[:, None], d))


def _numbers(values: npt.ArrayLike, argument: str) -> Exact:
    remedy = "pass one finite number, or vector, per letter"
    vectors = table(values, argument, remedy, axes=(1, 2), negative=True)
    return vectors[:, None] if vectors.ndim == 1 else vectors


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
    measure = Distortion(d, outputs=outputs, name=name)
    items = np.asarray(values)
    if items.ndim == 1 and len(set(items.tolist())) == len(items):
        measure = measure._with(_values=items.tolist())
    return measure


def squared_error(values: npt.ArrayLike, outputs: npt.ArrayLike | None = None) -> Distortion:
    """Return d(x, x̂) = ‖x − x̂‖².

    Parameters
    ----------
    values : array_like, shape (|X|,) or (|X|, k)
        The number, or vector, that each key letter stands for, in the order of the source's
        letters (in any order, if they are those letters).
    outputs : array_like, optional
        The same for the released letters; by default the key letters themselves.

    Returns
    -------
    Distortion
        In squared units of the values.

    Raises
    ------
    InputError
        For numbers that are not finite, or vectors of different lengths.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> cpv.squared_error([1, 2, 4]).matrix.tolist()
    [[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]]

    Between 0 and 1 a release may have the middle, too:

    >>> d = cpv.squared_error([0, 1], outputs=[0, 0.5, 1])
    >>> d.outputs, d.matrix.tolist()
    ([0, 0.5, 1], [[0.0, 0.25, 1.0], [1.0, 0.25, 0.0]])
    """
    error, labels = _distances(values, outputs, 2)
    return _stands_for(values, error, labels, "squared error")


def absolute_error(values: npt.ArrayLike, outputs: npt.ArrayLike | None = None) -> Distortion:
    """Return d(x, x̂) = ‖x − x̂‖₁.

    Parameters
    ----------
    values : array_like, shape (|X|,) or (|X|, k)
        The number, or vector, that each key letter stands for, as in :func:`squared_error`.
    outputs : array_like, optional
        The same for the released letters; by default the key letters themselves.

    Returns
    -------
    Distortion
        In the unit of the values.

    Raises
    ------
    InputError
        For numbers that are not finite, or vectors of different lengths.

    Examples
    --------
    Errors of vectors are added up over their coordinates:

    >>> import cvxprivacy as cpv
    >>> cpv.absolute_error([1, 2, 4]).matrix[0].tolist()
    [0.0, 1.0, 3.0]
    >>> cpv.absolute_error([(0, 0), (3, 4)]).matrix.tolist()
    [[0.0, 7.0], [7.0, 0.0]]
    """
    error, labels = _distances(values, outputs, 1)
    return _stands_for(values, error, labels, "absolute error")


def _letters(letters: int | Sequence[Hashable]) -> tuple[int, list[Any] | None]:
    """Return the number of letters, and their labels if they have any."""
    remedy = "pass their number or their labels"
    names = None
    if isinstance(letters, numbers.Integral):
        count = max(int(letters), 0)
    elif isinstance(letters, Iterable):
        names = labels(list(letters), None, "letters")
        count = len(names)
    else:
        raise InputError("letters", f"{letters!r}", remedy)
    if not count:
        raise InputError("letters", "no letters", remedy)
    return count, names


def hamming(letters: int | Sequence[Hashable]) -> Distortion:
    """Return d(x, x̂) = 1 if x ≠ x̂, else 0: the share of records that are changed.

    Parameters
    ----------
    letters : int or sequence
        Their number, or their labels.

    Returns
    -------
    Distortion
        Of the letters, which are also what may be released.

    Raises
    ------
    InputError
        For no letters, or the same label twice.

    Examples
    --------
    With W = X its privacy–distortion function is Shannon's, h(0.2) − h(D) for D < 0.2:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.identical([0.8, 0.2], x=["no", "yes"])
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(["no", "yes"]), budget=0.1).solve()
    >>> h = cpv.information.entropy
    >>> round(solution.value, 4), round(h([0.2, 0.8]) - h([0.1, 0.9]), 4)
    (0.2529, 0.2529)
    """
    count, names = _letters(letters)
    return Distortion(1.0 - np.eye(count), outputs=names, inputs=names, name="Hamming")


def ordinal(letters: int | Sequence[Hashable]) -> Distortion:
    """Return d(x, x̂) = |rank x − rank x̂| / (|X| − 1) for letters in increasing order.

    Parameters
    ----------
    letters : int or sequence
        Their number, or their labels, the least first.

    Returns
    -------
    Distortion
        0 for the letter itself, 1 between the least and the greatest.

    Raises
    ------
    InputError
        For no letters, or the same label twice.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> cpv.ordinal(["none", "mild", "severe"]).matrix.tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 0.5], [1.0, 0.5, 0.0]]
    """
    count, names = _letters(letters)
    rank = np.arange(float(count))
    matrix = times(np.abs(rank[:, None] - rank), Fraction(1, max(count - 1, 1)))
    return Distortion(matrix, outputs=names, inputs=names, name="ordinal")


def hierarchy_distance(paths: Mapping[Hashable, Sequence[Hashable]]) -> Distortion:
    """Return d(x, x̂) = the share of levels that must be climbed until x and x̂ meet.

    Parameters
    ----------
    paths : mapping of letter to sequence
        Ancestors of each letter from the nearest up to the root, all of one length:
        ``{"Paris": ("France", "Europe"), "Rome": ("Italy", "Europe")}``.

    Returns
    -------
    Distortion
        0 for the letter itself, 1 where only the root is common.

    Raises
    ------
    InputError
        For paths of different lengths, or without a common root.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> d = cpv.hierarchy_distance({
    ...     "Paris": ("France", "Europe"),
    ...     "Lyon": ("France", "Europe"),
    ...     "Rome": ("Italy", "Europe"),
    ... })
    >>> d.matrix[0].tolist()
    [0.0, 0.5, 1.0]
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


# ---- letters of which some columns are suppressed -----------------------------------------


MOST_LETTERS = 100_000
Costs = Mapping[int, Any]  # of suppressing each column of a letter, by its place


def axes_of(
    cost: Any, names: Sequence[str], outputs: Sequence[Hashable], remedy: str
) -> dict[int, Any]:
    """Return the cost of suppressing each column by its place among the columns of a letter."""
    width = len(_cells(outputs)[0])
    if not isinstance(cost, Mapping):
        return dict.fromkeys(range(width), cost)
    if len(names) != width:
        problem = f"{len(names)} names for letters of {width} columns"
        raise InputError("columns", problem, remedy)
    for name in cost:
        if name not in names:
            columns = ", ".join(map(repr, names))
            raise InputError("cost", f"no column {name!r}", f"use {columns}", value=name)
    return {i: cost[name] for i, name in enumerate(names) if name in cost}


def with_suppressed_letters(
    outputs: Sequence[Hashable], axes: Sequence[int]
) -> tuple[list[int], list[Any]]:
    """Return the places of the outputs that stay, and the labels of those that are added.

    Each output is added with every choice of columns suppressed, which are None there.  Those
    that miss a value of such a column of themselves are among them: a reader of the release
    cannot tell why it is missing.
    """
    cells = _cells(outputs)
    kept = [i for i, cell in enumerate(cells) if all(cell[axis] is not None for axis in axes)]
    added: dict[tuple[Any, ...], None] = {}
    for size in range(1, len(axes) + 1):
        for chosen in itertools.combinations(axes, size):
            for cell in cells:
                if all(cell[axis] is not None for axis in axes if axis not in chosen):
                    added[tuple(None if i in chosen else v for i, v in enumerate(cell))] = None
        if len(added) > MOST_LETTERS:
            problem = f"more than {MOST_LETTERS:,} letters with suppressed columns"
            raise InputError("cost", problem, "suppress fewer columns, or coarsen them")
    single = not isinstance(outputs[0], tuple)
    return kept, [cell[0] if single else cell for cell in added]


def suppressed(
    cost: Cost,
    rows: Sequence[Any],
    outputs: Sequence[Hashable],
    kept: Sequence[int],
    added: Sequence[Any],
    costs: Costs,
) -> Exact:
    """Return d with the letters added: the least d of what agrees with them, and the costs."""
    d, cells = additive.dense(cost), _cells(outputs)
    columns = [d[..., list(kept)]]
    fee = {axis: _fee(rows, axis, price) for axis, price in costs.items()}
    places: dict[tuple[int, ...], dict[tuple[Any, ...], list[int]]] = {}
    for cell in _cells(added):
        gone = tuple(axis for axis in costs if cell[axis] is None)
        if gone not in places:
            places[gone] = {}
            for i, full in enumerate(cells):
                places[gone].setdefault(_without(full, gone), []).append(i)
        agreeing = d[..., places[gone][_without(cell, gone)]].min(axis=-1)
        total: Exact = agreeing[..., None]
        for axis in gone:
            total = plus(total, np.broadcast_to(fee[axis][:, None], total.shape))
        columns.append(total)
    return exact_array(np.concatenate([np.asarray(c, dtype=object) for c in columns], axis=-1))


def suppressed_parts(
    parts: Mapping[str, Cost],
    weights: Mapping[str, Any],
    rows: Sequence[Any],
    outputs: Sequence[Hashable],
    released: Sequence[Any],
    costs: Costs,
) -> tuple[Cost, dict[str, Cost]]:
    """Return a distortion per attribute with suppression, and its parts."""
    before, after = _cells(outputs), _cells(released)
    fitted: dict[str, Cost] = {}
    total: Cost | None = None
    for axis, (name, part) in enumerate(parts.items()):
        assert isinstance(part, AdditiveCost)
        (base,) = part.parts
        place = {cell[axis]: int(at) for cell, at in zip(before, base.columns, strict=True)}
        table, nothing = base.table, base.table.shape[1]
        if axis in costs:
            table = exact_array(np.pad(np.asarray(table, dtype=object), ((0, 0), (0, 1))))
            place[None] = nothing
        columns = np.array([place[cell[axis]] for cell in after])
        fitted[name] = AdditiveCost((Part(table, base.rows, columns),))
        weighed = additive.times(fitted[name], weights[name])
        if axis in costs:
            fee = exact_array([[0.0, costs[axis]], [0.0, 0.0]])
            missing = [np.array([cell[axis] is None for cell in side], np.int64)
                       for side in (_cells(rows), after)]  # fmt: skip
            paid = AdditiveCost((Part(fee, *missing),))
            weighed = additive.plus(weighed, paid)
            # of what the weight multiplies, so that weighed parts add up to d
            share = 1 / rational(weights[name]) if weights[name] else 1
            fitted[name] = additive.plus(fitted[name], additive.times(paid, share))
        total = weighed if total is None else additive.plus(total, weighed)
    assert total is not None
    return total, fitted


def _cells(labels: Sequence[Hashable]) -> list[tuple[Any, ...]]:
    return [label if isinstance(label, tuple) else (label,) for label in labels]


def _without(cell: tuple[Any, ...], axes: Sequence[int]) -> tuple[Any, ...]:
    return tuple(value for axis, value in enumerate(cell) if axis not in axes)


def _fee(rows: Sequence[Any], axis: int, price: Any) -> Exact:
    """Return what it costs to suppress a column of each letter; nothing where it is missing."""
    return exact_array([0.0 if cell[axis] is None else price for cell in _cells(rows)])
