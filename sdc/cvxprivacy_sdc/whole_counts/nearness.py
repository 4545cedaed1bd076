"""How far apart two letters are, by the order of each key column: what decides between moves.

Where a record goes is a matter of its distortion.  Of moves that cost the same, as all do under one
Hamming distance, those to the nearest values are taken.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.tables.bins import in_order
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import ranked

__all__ = ["orders_of", "steps_apart"]


def orders_of(
    schema: TableSchema, levels: Mapping[str, Sequence[Any]]
) -> dict[str, dict[Any, int]]:
    """Return the place of each value of the key columns that have an order.

    Bands, numbers, dates, and groups that were stated one by one have one; so have ordered
    categories, unless theirs is the order of the alphabet.  Other text has not, nor have the most
    frequent values of a column.

    Parameters
    ----------
    schema : TableSchema
        Of the table.
    levels : mapping of column to sequence
        The values of each column, in order, as ``DiscreteSource.levels`` has them.
    """
    orders = {}
    for name in schema.key:
        values = [value for value in levels.get(name, ()) if value is not None]
        if name in schema.bins:
            values = in_order(schema.bins[name], values)
        elif name in schema.groups:
            groups = schema.groups[name]
            values = groups.labels if groups.rest is None else []
        elif not all(isinstance(value, numbers.Number | date) for value in values):
            # what is not as text is sorted was declared
            values = values if values != ranked(set(values), None) else []
        if len(values) > 1:
            orders[name] = {value: place for place, value in enumerate(values)}
    return orders


def steps_apart(
    rows: Sequence[Any],
    columns: Sequence[Any],
    schema: TableSchema,
    levels: Mapping[str, Sequence[Any]],
) -> FloatArray:
    """Return how far apart key letters are: steps in each column, as shares of its scale, added.

    In a column without order another value is as far as the farthest, 1; so is one that is
    withheld, in any column.

    Parameters
    ----------
    rows, columns : sequence
        Key letters, tuples where the key has several columns.
    schema : TableSchema
        Of the table.
    levels : mapping of column to sequence
        As :func:`orders_of` takes them.

    Returns
    -------
    ndarray, shape (len(rows), len(columns))

    Examples
    --------
    >>> from cvxprivacy.tables.bins import Bins
    >>> schema = TableSchema(key=("age", "sex"), bins={"age": Bins((20, 40, 60, 80))})
    >>> letters = [("[20, 40)", "f"), ("[40, 60)", "f"), ("[60, 80)", "m")]
    >>> steps_apart(letters, letters, schema, {"sex": ["f", "m"]}).tolist()
    [[0.0, 0.5, 2.0], [0.5, 0.0, 1.5], [2.0, 1.5, 0.0]]
    """
    orders, several = orders_of(schema, levels), len(schema.key) > 1
    apart = np.zeros((len(rows), len(columns)))
    for axis, name in enumerate(schema.key):
        sides = [[v[axis] if several else v for v in side] for side in (rows, columns)]
        number = {value: i for i, value in enumerate(dict.fromkeys([*sides[0], *sides[1]]))}
        steps = 1.0 - np.eye(len(number))
        if name in orders:
            place = np.array([orders[name].get(value, np.nan) for value in number])
            between = np.abs(place[:, None] - place) / (len(orders[name]) - 1)
            steps = np.where(np.isnan(between), steps, between)
        at = [np.array([number[value] for value in side], dtype=int) for side in sides]
        apart += steps[np.ix_(*at)]
    return apart
