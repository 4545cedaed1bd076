"""Costs as documents hold them, read as sums of tables.

A cost C(s, y) is one table, or Σ_i table_i[rows_i[s]][columns_i[y]] by parts; a list of tables is
one for each layer of atoms.  A table of one row is of all letters, and one of one column of all
outputs.  Needs the standard library only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .rationals import Matrix, UnprovableError, distinct, integers

__all__ = ["Layer", "Part", "integer_layers", "layers_of", "read", "rows_of", "steps_of", "tabled"]


# A sum over attributes takes Σ |values|² numbers in parts, and (Π |values|)² in one table.
class Part(NamedTuple):
    """A table in which letters and outputs have their places: table[rows[s]][columns[y]]."""

    table: Matrix
    rows: Sequence[int]
    columns: Sequence[int]


Layer = list[Part]


def layers_of(cost: Any, n: int, m: int) -> list[Layer]:
    """Return the parts of a cost, for each layer of atoms or once for all of them."""
    if isinstance(cost, dict):  # by parts, of letters: atoms of one letter cost the same
        if set(cost) != {"parts"} or not cost["parts"]:
            raise UnprovableError("a cost that is neither a table nor parts")
        return [[_part(part, n, m) for part in cost["parts"]]]
    # three axes are one table for each layer of atoms
    layers = cost if isinstance(cost[0][0], list) else [cost]
    for layer in layers:
        if (
            not layer
            or len(layer) not in (1, n)
            or not any(_table(layer, width) for width in (1, m))
        ):
            raise UnprovableError("a cost of another shape")
    # made once: layers may be as many as atoms
    rows, columns = {1: [0] * n, n: range(n)}, {1: [0] * m, m: list(range(m))}
    return [[Part(layer, rows[len(layer)], columns[len(layer[0])])] for layer in layers]


def tabled(cost: Any, n: int, m: int) -> Any:
    """Return a table with a row for each letter and a column for each output, or one by layers."""
    tables = [list(rows_of(layer)) for layer in layers_of(cost, n, m)]
    return tables if isinstance(cost[0][0], list) else tables[0]


def _part(part: Any, n: int, m: int) -> Part:
    """Return a part of a cost, with every place in its table."""
    if not isinstance(part, dict) or set(part) != {"table", "rows", "columns"}:
        raise UnprovableError("a part of a cost that is no table with rows and columns")
    if not all(isinstance(part[k], list) and part[k] for k in part):
        raise UnprovableError("a part of a cost with an empty list, or none")
    table, rows, columns = part["table"], part["rows"], part["columns"]
    width = len(table[0]) if isinstance(table[0], list) else 0
    if not _table(table, width):
        raise UnprovableError("a part of a cost with a ragged table")
    for places, size, count in ((rows, len(table), n), (columns, width, m)):
        # a place below 0 would be read from the end, and True as 1
        if len(places) != count or set(map(type, places)) != {int}:
            raise UnprovableError("a part of a cost without a place for each letter and output")
        if not 0 <= min(places) <= max(places) < size:
            raise UnprovableError("a part of a cost with a place that is not in its table")
    return Part(table, rows, columns)


def _table(rows: Any, width: int) -> bool:
    return isinstance(rows, list) and all(isinstance(r, list) and len(r) == width for r in rows)


def read(
    layers: list[Layer], kind: Callable[[Any], Any], plain: Callable[[float], Any]
) -> list[Layer]:
    """Return layers with every number, used or not, as ``kind`` reads it, and ``plain`` a float."""
    # each different number once: a cost of counts or steps has few, however large its table
    rows = (row for layer in layers for part in layer for row in part.table)
    floats, readings = distinct(rows, kind)
    readings.update(zip(floats, map(plain, floats), strict=True))
    reading = readings.__getitem__
    return [
        [p._replace(table=[list(map(reading, row)) for row in p.table]) for p in layer]
        for layer in layers
    ]


def integer_layers(layers: list[Layer]) -> tuple[list[Layer], int]:
    """Return layers in whole numbers over one common denominator."""
    # one denominator for all parts, so that their numerators may be added
    tables, common = integers([row for layer in layers for part in layer for row in part.table])
    rows = iter(tables)
    return [[p._replace(table=[next(rows) for _ in p.table]) for p in la] for la in layers], common


def rows_of(layer: Layer) -> Iterator[list[Any]]:
    """Yield the costs of each letter; what it shares with the letter before is added once."""
    sums: list[list[Any]] = []
    before: tuple[int, ...] = ()
    for places in zip(*(part.rows for part in layer), strict=True):
        # neighbours in the order of letters differ in their last attributes alone, as a rule
        shared = 0
        while shared < len(before) and places[shared] == before[shared]:
            shared += 1
        del sums[shared:]
        for part, place in zip(layer[shared:], places[shared:], strict=True):
            row = part.table[place]
            costs = [row[y] for y in part.columns]
            sums.append(list(map(operator.add, sums[-1], costs)) if sums else costs)
        before = places
        yield sums[-1]


def steps_of(ground: Sequence[Sequence[int]]) -> list[int] | None:
    """Return the distances of neighbours, if values lie on a line in their order; else None."""
    # how far each value is from the first: on a line that is where it stands
    places = ground[0] if ground else [1]
    on = all(
        c == abs(places[j] - places[i]) for i, row in enumerate(ground) for j, c in enumerate(row)
    )
    steps = [b - a for a, b in pairwise(places)]
    return steps if ground and on and min(steps, default=0) >= 0 else None
