"""The law of a table's records, over the letters of a schema."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.model.laws import SHAPE, Table
from cvxprivacy.tables.counting import Counts, count_records
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS
from cvxprivacy.validation import array

__all__ = ["counted_law"]


def counted_law(
    frame: Any, schema: TableSchema, levels: Sequence[Sequence[Hashable]] | None, most: int
) -> tuple[np.ndarray, Table, Counts]:
    """Return the masses of a table's cells, with labels and names, and the counts themselves.

    Parameters
    ----------
    levels : (w, x) or (w, x, z), optional
        The letters to count; by default those observed.
    most : int
        Letters allowed.
    """
    counts = count_records(schema, frame, most=most)
    groups = [g for g in (schema.sensitive, schema.key, schema.side) if g]
    if levels is None:
        levels = [counts.ordered(group, axis) for axis, group in enumerate(groups)]
    places = [{label: i for i, label in enumerate(level)} for level in levels]
    shape = [len(level) for level in levels]
    if math.prod(shape) > MOST_CELLS * 20:
        problem = f"a law of {' × '.join(map(str, shape))} cells"
        raise InputError("key", problem, "bin numbers, or name fewer columns")
    law = np.zeros(shape)
    for letters, mass in zip(counts.cells, counts.masses, strict=True):
        for place, letter, group in zip(places, letters, groups, strict=True):
            if letter not in place:
                problem = f"{letter!r} of {', '.join(map(str, group))} is no known letter"
                remedy = "count a table with the same values"
                raise UnknownValueError("frame", problem, remedy, value=letter)
        law[tuple(p[x] for p, x in zip(places, letters, strict=True))] += mass
    law = array(law, "frame", SHAPE, massive=True)
    return law, Table(law, list(map(list, levels)), [", ".join(g) for g in groups]), counts
