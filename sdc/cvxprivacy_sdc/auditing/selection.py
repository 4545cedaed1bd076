"""The records of a table whose key is one of some letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from cvxprivacy.extras import nw
from cvxprivacy.tables.counting import code
from cvxprivacy.tables.engines import as_narwhals, is_missing
from cvxprivacy.tables.periods import Periods
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import value_counts

__all__ = ["records_with"]


def records_with(schema: TableSchema, frame: Any, letters: Sequence[Any]) -> Any:
    """Return the records of a frame whose key is one of some letters, in its own flavour.

    Records in memory are compared by their letters, as they were counted; those of an engine
    are filtered by it.
    """
    schema.check(as_narwhals(frame).lazy(), schema.key)
    table = as_narwhals(schema.counted_records(frame))
    if isinstance(table, nw.DataFrame):
        chosen = set(letters)
        return nw.to_native(table.filter([x in chosen for x in schema.letters(table, schema.key)]))
    return nw.to_native(table.filter(_is_among(schema, table, letters)))


def _is_among(schema: TableSchema, lazy: nw.LazyFrame[Any], letters: Sequence[Any]) -> nw.Expr:
    """Return whether a record's key is one of some letters, by few and shallow terms."""
    rows = [letter if len(schema.key) > 1 else (letter,) for letter in letters]
    types = lazy.collect_schema()

    def one_of(axis: int, values: Iterable[Any]) -> nw.Expr:
        name, wanted = schema.key[axis], set(values)
        present = list(wanted - {None})
        if name in schema.groups:
            present = _of_groups(schema, lazy, name, set(present))
        elif isinstance(bins := schema.bins.get(name), Periods):
            present = [bins.place(v) for v in present]
        elif bins is not None:
            present = [bins.labels.index(v) + 1 for v in present]
        if isinstance(types[name], nw.Decimal) and name not in schema.bins:
            present = [Decimal(str(v)) for v in present]
        missing = is_missing(lazy, name)
        other = missing if None in wanted else nw.lit(False)
        return other | (~missing & code(schema, lazy, name).is_in(present)) if present else other

    # letters that differ in one column alone are one term: the column of the most values
    axis = max(range(len(schema.key)), key=lambda i: len({row[i] for row in rows}), default=0)
    classes: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        classes.setdefault((*row[:axis], *row[axis + 1 :]), []).append(row[axis])
    missing = is_missing(lazy, schema.key[0])
    terms = [missing & ~missing]  # no letter, no record; engines filter by no constant
    for fixed, values in classes.items():
        term = one_of(axis, values)
        others = (i for i in range(len(schema.key)) if i != axis)
        for i, value in zip(others, fixed, strict=True):
            term = term & one_of(i, [value])
        terms.append(term)
    while len(terms) > 1:  # a balanced tree: engines limit the depth of an expression
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [pair[0] | pair[1] if len(pair) > 1 else pair[0] for pair in pairs]
    return terms[0]


def _of_groups(
    schema: TableSchema, lazy: nw.LazyFrame[Any], name: str, wanted: set[Any]
) -> list[Any]:
    """Return the values that occur in a column and are in one of some groups."""
    values = value_counts(lazy, name)
    names = schema.groups[name].named(values)
    return [v for v, group in zip(values, names, strict=True) if v is not None and group in wanted]
