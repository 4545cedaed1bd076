"""``apply --criterion``: next month's table, judged and its groups merged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cvxprivacy.errors import InputError
from cvxprivacy.tables.labels import written
from cvxprivacy.text import cells
from cvxprivacy_sdc.formats.table_files import in_memory
from cvxprivacy_sdc.releases.ensured import Ensured, ensured
from cvxprivacy_sdc.statements.columns import refuse_unknown
from cvxprivacy_sdc.statements.options import stated_criterion
from cvxprivacy_verifier.wording import many

if TYPE_CHECKING:
    from cvxprivacy.criteria import Criterion
    from cvxprivacy.release.channel import Channel

__all__ = ["DECIDED", "mended"]

DECIDED = (
    "what was asked is decided on this table, and groups are merged by looking at it, the "
    "confidential column included; of the randomisation nothing is proved"
)


def mended(
    channel: Channel,
    opened: Any,
    typed: Sequence[tuple[str, dict[str, Any]]],
    seed: int,
    row_id: str | None,
    draw: str,
    units: str,
) -> tuple[Channel, dict[str, Any], list[str]]:
    """Return the channel that releases a table that satisfies criteria, with facts and lines."""
    schema = channel.schema
    assert schema is not None
    if schema.side:
        problem = f"it draws with {cells(schema.side)}, which no criterion of a table is about"
        raise InputError("--criterion", problem, "leave it out")
    if not schema.sensitive:
        problem = "the channel does not know which column is confidential"
        raise InputError("--criterion", problem, "pass one that `release --channel` kept")
    refuse_unknown("--criterion: the confidential column", schema.sensitive, opened.header)
    weights = [] if schema.weights is None else [schema.weights]
    names = [*schema.columns, *weights, *([] if row_id is None else [row_id])]
    names = list(dict.fromkeys(names))
    frame = in_memory(opened.frame(names, binned=schema.bins), names)
    rules = [stated_criterion({"kind": kind, **numbers}) for kind, numbers in typed]
    how: dict[str, Any] = {"seed": seed, "row_id": row_id, "draw": draw, "units": units}
    table = ensured(channel, frame, rules, **how)
    return table.channel, _facts(table, rules), _lines(table, rules, units)


def _facts(table: Ensured, rules: Sequence[Criterion]) -> dict[str, Any]:
    """Return how the table stands, as JSON holds it."""
    sizes = table.counts.sizes[table.counts.sizes > 0]
    checks = [
        {"criterion": repr(rule), "drawn": {"value": a.value, "holds": a.holds},
         "table": {"value": b.value, "holds": b.holds}}
        for rule, a, b in zip(rules, table.before, table.verdicts, strict=True)
    ]  # fmt: skip
    merged = [
        {"from": written(old, lenient=True), "to": written(new, lenient=True), "records": records}
        for old, new, records in table.merging.moves
    ]
    return {
        "checks": checks, "groups": len(sizes), "smallest": int(sizes.min()), "merged": merged,
        "changed_at_least": table.lower, "optimal_by_claim": table.optimal,
    }  # fmt: skip


def _lines(table: Ensured, rules: Sequence[Criterion], units: str) -> list[str]:
    """Return how the table stands, in words."""
    lines = ["what was asked, on the table that is released:"]
    for rule, before, after in zip(rules, table.before, table.verdicts, strict=True):
        words = rule.in_words(units=units)
        value = "" if after.value is None else f", {words.quantity} {after.value:.6g} {words.unit}"
        drawn = "" if before.holds else f"; {before.value:.6g} as it was drawn"
        if before.value is None or not math.isfinite(before.value):
            drawn = "" if before.holds else "; broken as it was drawn"
        lines.append(f"  {rule!r}: holds{value.rstrip()}{drawn}")
    if table.merging.moves:
        left = int((table.counts.sizes > 0).sum())
        line = f"merged: {many(len(table.merging.moves), 'group')} of {table.merging.records:,} "
        line += f"records, which leaves {left:,}; {table.changed:,} records are changed in all"
        if table.lower is not None:
            line += f"; no merging of these groups changes fewer than {table.lower:,}, as is proved"
            line += f", nor than {table.changed:,}, as the solver claims" * table.optimal
        lines.append(line)
    return lines
