"""Two tables counted alike, by records or by survey weights, what became of them, and W's order."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.tables.bins import Bins, bins_of, middles_of
from cvxprivacy.tables.counting import natural_order
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.groups import Groups, Ungrouped
from cvxprivacy.tables.labels import shown
from cvxprivacy.tables.periods import Periods
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS, value_counts
from cvxprivacy.validation import labels, present

__all__ = ["COUNTED", "Laws", "counted", "laws_of", "masses_of", "order_of"]

COUNTED = "k and distinct ℓ are of records, all else is of the weighted law"


@dataclass(frozen=True, eq=False)
class Laws:
    """The two tables as they are measured: counts of records, or sums of their weights.

    Attributes
    ----------
    original, released : DiscreteSource
        With the letters of the counted tables, in their order.
    weights : str or None
        The column of the weights; None where records are counted.
    """

    original: DiscreteSource
    released: DiscreteSource
    weights: str | None = None


def counted(
    original: Any,
    released: Any,
    *,
    key: Hashable | Sequence[Hashable],
    sensitive: Hashable | Sequence[Hashable],
    bins: Mapping[Hashable, Any],
    groups: Mapping[Hashable, Any],
    missing: str,
) -> tuple[DiscreteSource, DiscreteSource, list[str]]:
    """Count both tables, the released one with the columns that it has; say what is notable.

    Without a released table the original is both.
    """
    with _named("original"):
        schema = _schema(original, sensitive, key, bins, missing, groups)
    released_schema, notes = schema, list[str]()
    if released is not None:
        with _named("released", besides=True):
            schema, released_schema, notes = _schemas(schema, released, bins)
    with _named("original"):
        before = DiscreteSource.from_schema(original, schema, most=MOST_CELLS)
    if released is None:
        return before, before, notes
    with _named("released", besides=True):
        after = DiscreteSource.from_schema(released, released_schema, most=MOST_CELLS)
    return before, after, [*notes, *_unbinned(schema, after), *_changes(before, after)]


def laws_of(
    before: DiscreteSource,
    after: DiscreteSource,
    weights: Hashable | None,
    original: Any,
    released: Any,
) -> Laws:
    """Return the laws of two counted tables, given with their frames; the same without weights."""
    if weights is None:
        return Laws(before, after)
    with _named("original"):
        first = weighted(original, before, str(weights))
    if before is after:
        return Laws(first, first, str(weights))
    with _named("released", besides=True):
        return Laws(first, weighted(released, after, str(weights)), str(weights))


def weighted(frame: Any, source: DiscreteSource, weights: str) -> DiscreteSource:
    """Count a table again, with weights; every letter and every value must weigh something."""
    assert source.schema is not None
    present(weights, as_narwhals(frame).lazy().collect_schema().names(), "weights")
    if weights in source.schema.columns:
        problem = f"column {weights!r} named twice"
        raise InputError("weights", problem, "name each column once", value=weights)
    schema, levels = replace(source.schema, weights=weights), (source.w, source.x)
    law = DiscreteSource.from_schema(frame, schema, levels, most=MOST_CELLS)
    for axis, letters, name in ((0, source.x, source.names[1]), (1, source.w, source.names[0])):
        if idle := np.flatnonzero(law.joint.sum(axis=axis) == 0).tolist():
            problem = f"every record of {len(idle):,} of {len(letters):,} values of {name} weighs 0"
            remedy = "leave these records out, or give them weights"
            raise InputError("weights", problem, remedy, value=weights)
    return law


@contextmanager
def _named(table: str, *, besides: bool = False) -> Iterator[None]:
    """Say in an error which of the two tables it is about."""
    try:
        yield
    except InputError as error:
        argument, problem = error.argument, error.problem
        if argument == "frame":
            argument = table
        elif besides and argument != table:
            problem += f" (in the {table} table)"
        more: dict[str, Any] = {"where": error.where, "value": error.value}
        raise type(error)(argument, problem, error.remedy, **more) from None


def _schema(
    frame: Any, sensitive: Any, key: Any, bins: Mapping[Any, Any], missing: str,
    groups: Mapping[Any, Any],
) -> TableSchema:  # fmt: skip
    roles = {"sensitive": sensitive, "key": key, "side": None, "weights": None}
    return TableSchema.of(frame, **roles, bins=bins, groups=groups, missing=missing)


def _schemas(
    schema: TableSchema, released: Any, bins: Mapping[Hashable, Any]
) -> tuple[TableSchema, TableSchema, list[str]]:
    """Return how both tables are counted, and which columns are suppressed in the released one."""
    types = as_narwhals(released).lazy().collect_schema()
    for name in schema.sensitive:
        present(name, types.names(), "released")
    kept = tuple(name for name in schema.key if name in types.names())
    if not kept:
        remedy = "keep at least one key column, if only as a constant"
        raise InputError("released", "no key column", remedy)
    again = [n for n, b in schema.bins.items() if n in types.names() and _unbanded(released, n, b)]
    specs = {  # quantiles are those of the original
        str(name): schema.bins[str(name)] if isinstance(spec, str) else spec
        for name, spec in bins.items()
        if str(name) in again
    }
    grouped = {n: g for n, g in schema.groups.items() if n in types.names()}
    grouped = {n: g for n, g in grouped.items() if _ungrouped(released, n, g)}
    released_schema = _schema(released, schema.sensitive, kept, specs, schema.missing, grouped)
    both = dict(schema.bins)
    for column, spec in specs.items():
        edges = [b.edges for b in (schema.bins[column], released_schema.bins[column])
                 if isinstance(b, Bins)]  # fmt: skip
        if not edges:  # calendar intervals, which are the same for every table
            continue
        least, most = min(e[0] for e in edges), max(e[-2] for e in edges)
        both[column] = bins_of(column, spec, least, most)
    gone = [name for name in schema.key if name not in kept]
    notes = [f"suppressed in the release: {', '.join(gone)}"] if gone else []
    released_schema = replace(released_schema, bins={name: both[name] for name in again})
    return replace(schema, bins=both), released_schema, notes


def _unbanded(released: Any, name: str, bins: Bins | Periods) -> bool:
    """Tell a released column of numbers or dates, as the original's, from one of intervals."""
    lazy = as_narwhals(released).lazy()
    if not isinstance(bins, Periods):
        return lazy.collect_schema()[name].is_numeric()
    try:
        TableSchema(key=(name,), bins={name: bins}).check(lazy, [name])
    except InputError:
        return False
    return True


def _ungrouped(released: Any, name: str, groups: Groups) -> bool:
    """Tell a released column of the original's values from one of groups, or of something else."""
    values = [v for v in value_counts(as_narwhals(released).lazy(), name) if v is not None]
    labels = set(map(str, groups.labels))
    covered = not any(isinstance(group, Ungrouped) for group in groups.named(values))
    return covered and not all(str(value) in labels for value in values)


# ---- what is notable ---------------------------------------------------------------------


def _unbinned(schema: TableSchema, after: DiscreteSource) -> list[str]:
    """Say which released columns hold something else where the original is binned or grouped."""
    assert after.schema is not None
    notes = []
    for name in (n for n in after.schema.columns if n in schema.bins):
        levels = after.levels[name]
        texts = {*levels} - {None, *middles_of(schema.bins[name], levels)}
        if name not in after.schema.bins and texts:
            some = repr(min(map(str, texts)))
            notes.append(f"{name} holds text in the release, such as {some}: it is not binned")
    for name in (n for n in after.schema.columns if n in schema.groups):
        labels = {str(label) for label in (None, *schema.groups[name].labels)}
        strange = set(map(str, after.levels[name])) - labels
        if name not in after.schema.groups and strange:
            some = f"such as {min(strange)!r}: it is not grouped"
            notes.append(f"{name} holds other values in the release, {some}")
    return notes


def _changes(before: DiscreteSource, after: DiscreteSource) -> list[str]:
    """Say what became of the records, and of each value of W."""
    was, now = masses_of(before), masses_of(after)
    old, new = (int(sum(of.values())) + s.dropped for of, s in ((was, before), (now, after)))
    w, notes = before.names[0], []
    if old < new:
        notes.append(f"the release has {new:,} records, the original {old:,}")
    elif old > new:
        notes.append(f"{new:,} records of {old:,} are released")
    lost, added = ([v for v in a if v not in b] for a, b in ((was, now), (now, was)))
    alike = {str(value) for value in lost} & {str(value) for value in added}
    if alike:
        kinds = [type(next(v for v in of if str(v) in alike)).__name__ for of in (lost, added)]
        problem = f"{w} is {kinds[0]} in the original and {kinds[1]} in the release"
        return [*notes, f"{problem}: its values are not compared"]
    for values, of, what in ((lost, was, "vanished"), (added, now, "new")):
        if values:
            some = ", ".join(map(shown, values[:3])) + (", …" if len(values) > 3 else "")
            records = sum(of[value] for value in values)
            notes.append(f"{w} {some}: {what} in the release, {records:,.0f} records")
    changed = [value for value in was if value in now and was[value] != now[value]]
    if changed and old == new and not before.dropped and not after.dropped:
        notes.append(f"{w} itself was changed")
    elif changed and old > new:
        least = min(changed, key=lambda value: now[value] / was[value])
        share = f"{now[least]:,.0f} records of {was[least]:,.0f} are released, the least share"
        notes.append(f"{w} {shown(least)}: {share}")
    return notes


def masses_of(source: DiscreteSource) -> dict[Any, float]:
    """Return the records of each value of W."""
    return dict(zip(source.w, source.joint.sum(axis=1).tolist(), strict=True))


# ---- the order of W ----------------------------------------------------------------------


def order_of(ordered: Any, reference: str, *tables: tuple[DiscreteSource, Any]) -> list[Any] | None:
    """Return the values of W in order, or None where they have none."""
    sources = [source for source, _ in tables]
    values = set(sources[0].w) | (set(sources[1].w) if reference == "original" else set())
    if ordered is False:
        return None
    if ordered is not None and ordered is not True:
        remedy = "pass True, False, or all values of W in their order"
        if isinstance(ordered, str) or not isinstance(ordered, Sequence):
            raise InputError("ordered", f"{ordered!r}", remedy, value=ordered)
        order = labels(ordered, None, "ordered")
        if not values <= set(order):
            missing = sorted(map(repr, values - set(order)))
            raise InputError("ordered", f"it lacks {', '.join(missing)}", remedy)
        return [value for value in order if value in values]
    for source, frame in tables:
        assert source.schema is not None
        name, *more = source.schema.sensitive
        stated = more or name in source.schema.groups  # in an order that need not be W's
        natural = None if stated else natural_order(source.schema, frame, name, source.levels[name])
        if natural is not None and values <= set(natural):
            return [value for value in natural if value in values]
    if ordered:
        problem = f"{sources[0].names[0]} has no order of its own"
        raise InputError("ordered", problem, "pass its values in their order")
    return None
