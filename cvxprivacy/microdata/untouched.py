"""What the columns that a release leaves alone reveal by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.tables.bins import Bins
from cvxprivacy.tables.frames import Coding, absent, collected, narwhal, plain
from cvxprivacy.validation import present

__all__ = ["Leak", "untouched"]

FEW = 20  # records per value, under which a column's values are not compared one by one
PARTS = 20  # intervals of a number with more values than that


@dataclass(frozen=True)
class Leak:
    """What one column reveals about the confidential attribute.

    Attributes
    ----------
    column : str
    information : float or None
        I(W; column) in the units asked for; None where its values are too many to tell.
    bias : float or None
        Its small-sample bias (Miller–Madow); negative where fewer cells occur than values of
        both less one, and the information is expected to be too low.
    values : int
        Number of different values.
    binned : bool
        Whether the column was cut into 20 intervals, which can only lose information.
    """

    column: str
    information: float | None
    bias: float | None
    values: int
    binned: bool = False

    @property
    def corrected(self) -> float:
        """Information less bias, at least 0; 0 where nothing is known."""
        if self.information is None or self.bias is None:
            return 0.0
        return max(0.0, self.information - self.bias)


def untouched(
    frame: Any,
    coding: Coding,
    *,
    units: str = "bits",
    columns: Sequence[str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[Leak]:
    """Measure I(W; column) for every column that is neither confidential nor released.

    Parameters
    ----------
    frame : as in :meth:`cvxprivacy.DiscreteSource.from_table`
        Each column is counted by one group-by in its engine.
    coding : Coding
        ``source.coding``.
    columns : sequence of str, optional
        All others by default.
    progress : callable, optional
        Given 1 after each column.

    Returns
    -------
    list of Leak
        The greatest first.
    """
    lazy = narwhal(frame).lazy()
    schema = lazy.collect_schema()
    left = [n for n in schema.names() if n not in (*coding.columns, coding.weights)]
    found = []
    coding.known(lazy, coding.sensitive)
    for name in left if columns is None else columns:
        present(name, schema.names(), "columns")
        found.append(_leak(frame, lazy, schema[name], coding, name, units))
        if progress is not None:
            progress(1)
    return sorted(found, key=lambda leak: -leak.corrected)


def _parts(lazy: nw.LazyFrame[Any], name: str, least: float, most: float) -> Bins:
    """Cut a number into parts of equal counts; of one width in an engine without quantiles."""
    there = nw.when(~absent(lazy, name)).then(nw.col(name)).cast(nw.Float64)
    asked = [there.quantile(k / PARTS, "linear").alias(f"q{k}") for k in range(1, PARTS)]
    try:
        found = collected(lambda: lazy.select(asked))
        edges = [plain(found[column])[0] for column in found.columns]
    except InputError:
        edges = np.linspace(least, most, PARTS + 1)[1:-1].tolist()
    inner = sorted({float(e) for e in edges if e is not None and np.isfinite(e)})
    return Bins((-math.inf, *inner, math.inf))


def _leak(
    frame: Any, lazy: nw.LazyFrame[Any], dtype: Any, coding: Coding, name: str, units: str
) -> Leak:
    asked = [nw.len().alias("records"), nw.col(name).n_unique().alias("values")]
    if dtype.is_numeric():
        there = nw.when(~absent(lazy, name)).then(nw.col(name))
        asked += [there.min().alias("least"), there.max().alias("most")]
    try:
        seen = collected(lambda: lazy.select(asked))
    except InputError:  # a column of lists, say
        return Leak(name, None, None, 0)
    said = {key: plain(seen[key])[0] for key in seen.columns}
    values, bins = int(said["values"]), dict(coding.bins)
    many = values * FEW > int(said["records"])
    least, most = said.get("least"), said.get("most")
    if many and least is not None and most is not None and least < most:
        bins[name] = _parts(lazy, name, float(least), float(most))
    elif many:
        return Leak(name, None, None, values)
    missing = "drop" if coding.missing == "drop" else "level"
    own = replace(coding, key=(name,), side=(), bins=bins, missing=missing)
    try:
        source = DiscreteSource.from_coding(frame, own)
    except InputError:
        return Leak(name, None, None, values)
    return Leak(
        name, source.information(units=units), source.bias(units=units), values, name in bins
    )
