"""The values of a column: how often each occurs, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.tables.engines import coded, collect, python_values

__all__ = ["MOST_CELLS", "compares", "ranked", "value_counts"]

MOST_CELLS = 1_000_000  # of what is collected


def compares(lazy: nw.LazyFrame[Any], name: str) -> bool:
    """Tell whether a column's engine groups and compares it exactly.

    Pandas takes objects of Python for floats, Dask compares neither decimals nor large integers.
    """
    dtype = lazy.select(name).collect_schema()[name]
    large = lazy.implementation.is_dask() and isinstance(dtype, nw.Decimal | nw.UInt64)
    return not (large or dtype == nw.Object)


def value_counts(lazy: nw.LazyFrame[Any], name: str) -> dict[Any, int]:
    """Return how many records have each value of a column, by one group-by in its engine.

    Values are in order, a missing one (``None``) last.

    Raises
    ------
    InputError
        For more values than are collected.
    """
    if lazy.implementation.is_pandas_like() and not compares(lazy, name):
        codes, distinct = coded(collect(lambda: lazy.select(name))[name])  # pandas makes floats
        tally: dict[Any, int] = {}
        for value, count in zip(distinct, np.bincount(codes).tolist(), strict=True):
            tally[value] = tally.get(value, 0) + count
        return {value: tally[value] for value in ranked(set(tally), None)}
    query = lazy.select(value=nw.col(name)).group_by("value").agg(nw.len().alias("records"))
    table = collect(lambda: query.head(MOST_CELLS + 1))
    if len(table) > MOST_CELLS:
        problem = f"column {name!r} has more than {MOST_CELLS:,} different values"
        raise InputError("frame", problem, "give it bins with edges of your own", value=name)
    counts: dict[Any, int] = {}
    values, records = python_values(table["value"].alias(name)), python_values(table["records"])
    for value, count in zip(values, records, strict=True):  # null and NaN are one
        counts[value] = counts.get(value, 0) + int(count)
    return {value: counts[value] for value in ranked(set(counts), None)}


def ranked(distinct: set[Any], order: list[Any] | None) -> list[Any]:
    """Sort values: as their type says, else by size, else by kind and text; missing last."""
    values = distinct - {None}
    last = [None] if None in distinct else []
    if order is not None and values <= set(order):
        return [v for v in order if v in values] + last
    try:
        return sorted(values) + last
    except TypeError:
        return sorted(values, key=lambda v: (type(v).__name__, repr(v))) + last
