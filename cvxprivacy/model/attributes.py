"""Distortions of several attributes: weighted sums over the columns of a key."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from cvxprivacy import additive
from cvxprivacy.additive import AdditiveCost, Cost, Part
from cvxprivacy.errors import InputError
from cvxprivacy.frozen import frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import (
    Distortion,
    absolute_error,
    hamming,
    ordinal,
    squared_error,
)
from cvxprivacy.tables.bins import middles_of
from cvxprivacy.text import named
from cvxprivacy.validation import one_of, typed

__all__ = ["NAMES", "per_attribute"]

NAMES = {  # of distortions of a column, with what else they are called
    "hamming": ("0-1",),
    "ordinal": ("ranks",),
    "absolute_error": ("absolute", "l1"),
    "squared_error": ("squared", "l2"),
}


def per_attribute(
    distortions: Mapping[str, Distortion | str],
    cells: Sequence[tuple[Hashable, ...]] | DiscreteSource | None = None,
    *,
    inputs: Mapping[str, Sequence[Hashable]] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Distortion:
    """Return a weighted sum over key attributes, d((x₁, …), (x̂₁, …)) = Σ_i c_i d_i(x_i, x̂_i).

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

    Returns
    -------
    Distortion
        Of cells, kept by parts: a large key never makes one dense matrix of it.

    Raises
    ------
    InputError
        For what is no distortion of an attribute's letters, or cells that do not fit.

    Examples
    --------
    An age that is off by a year costs 1, a sex that is changed 5:

    >>> import cvxprivacy as cpv
    >>> d = cpv.per_attribute(
    ...     {"age": cpv.absolute_error([30, 40]), "sex": cpv.hamming(["f", "m"])},
    ...     weights={"sex": 5},
    ... )
    >>> d.outputs
    [(30, 'f'), (30, 'm'), (40, 'f'), (40, 'm')]
    >>> d.matrix[0].tolist()
    [0.0, 5.0, 10.0, 15.0]
    """
    if not distortions:
        raise InputError("distortions", "none", "pass at least one attribute")
    for argument, mapping in (("weights", weights), ("inputs", inputs)):
        for name in mapping or {}:
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
    forbidden: Any = np.False_  # a move that some attribute forbids
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
        if d.forbidden is not None:
            forbidden = forbidden | d.forbidden[np.ix_(index, index)]
        parts[name] = AdditiveCost((Part(d.exact, places, places),))
    weighed = (additive.times(part, factors[k]) for k, part in parts.items())
    total = reduce(additive.plus, weighed)
    names = list(cells) if labels is None else labels
    measure = Distortion(total, outputs=names, inputs=names, name="per attribute")
    moves = forbidden if forbidden.any() else None
    for i in np.flatnonzero(np.atleast_2d(forbidden).all(axis=1)).tolist():
        problem, remedy = "all infinite", "leave every cell a move of finite distortion"
        raise InputError("distortions", problem, remedy, where=i, value=names[i])
    return measure._with(parts=parts, _weights=factors, forbidden=moves)


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
    measures: dict[str, Distortion | str] = {}
    for name in keys:
        measure, levels = distortions[name], source.levels[name]
        if not isinstance(measure, str):
            measures[name] = measure
            continue
        measure = named(measure, "distortions", NAMES, "distortion", where=name)
        if measure == "hamming":
            measures[name] = hamming(levels)
            continue
        values = [level for level in levels if level is not None]
        stand: list[Any] = list(range(len(values)))
        if measure != "ordinal":
            middles = middles_of(source.schema.bins.get(name), values)
            stand = [middles.get(level, level) for level in values]
            if not all(isinstance(v, numbers.Number) for v in stand):
                problem = f"{measure} of {name!r}, whose levels are no numbers ({stand[0]!r})"
                raise InputError("distortions", problem, 'use "hamming" or "ordinal"', where=name)
        d = ordinal(values).exact if measure == "ordinal" else _BY_NAME[measure](stand).exact
        extended = np.full((len(levels), len(levels)), d.max() if d.any() else 1.0)
        extended[: len(values), : len(values)] = d  # a missing value is the last level
        np.fill_diagonal(extended, 0.0)
        measures[name] = Distortion(extended, outputs=levels, inputs=levels, name=measure)
    return measures


_BY_NAME: dict[str, Callable[[Any], Distortion]] = {
    "hamming": hamming,
    "ordinal": ordinal,
    "absolute_error": absolute_error,
    "squared_error": squared_error,
}
