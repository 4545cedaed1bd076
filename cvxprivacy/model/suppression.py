"""Letters of which some columns are suppressed, and what it costs to release them."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from cvxprivacy import additive
from cvxprivacy.additive import AdditiveCost, Cost, Part
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, array as exact_array, plus

__all__ = ["Costs", "axes_of", "suppressed", "suppressed_parts", "with_suppressed_letters"]

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
            fitted[name] = additive.plus(fitted[name], paid)
            weighed = additive.plus(weighed, paid)
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
