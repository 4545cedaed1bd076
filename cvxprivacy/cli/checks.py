"""How a drawn table stands with what was asked, for ``release`` to report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cvxprivacy.microdata.changes import Change, changes
from cvxprivacy.microdata.check import lines_of
from cvxprivacy.microdata.drawn_table import DrawnTable

if TYPE_CHECKING:
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.results.solution import Solution

__all__ = ["check_lines", "with_checks"]


def with_checks(
    document: Mapping[str, Any],
    solution: Solution,
    source: DiscreteSource,
    drawn: DrawnTable | None,
) -> dict[str, Any]:
    """Return a release's facts with those of its drawn table, and what it changes in each column.

    Of the table that was drawn, or of the law where none was.
    """
    found = dict(document)
    found["changes"] = [asdict(change) for change in _changes(solution, source, drawn)]
    found["distortion_words"] = [str(Change(**change)) for change in found["changes"]]
    if drawn is None:
        return found
    found["checks"] = [check.document() for check in drawn.checks]
    if drawn.merging is not None:
        found["merged"] = {
            "groups": len(drawn.merging.moves),
            "records": drawn.merging.records,
            "distortion_before": float(drawn.drawn_distortion),
            "distortion_after": float(drawn.distortion),
            "risk": drawn.risk,
        }
    found["notes"] = [*found["notes"], *_notes(drawn)]
    return found


def _changes(solution: Solution, source: DiscreteSource, drawn: DrawnTable | None) -> list[Change]:
    """Return what the drawn table changes, or the law where none was drawn."""
    channel, schema = solution.channel, source.schema
    assert channel is not None
    assert schema is not None
    if drawn is not None:
        counts = drawn.counts
        return changes(counts.moves, counts.x, counts.outputs, schema)
    joint = channel.matrix * channel._prior()[:, None]
    place = channel.encoder.index("x")
    x = [letter if channel.encoder == "x" else letter[place] for letter in channel.inputs]
    return changes(joint, x, channel.outputs, schema)


def _notes(drawn: DrawnTable) -> list[str]:
    """Return what is to be said of a table that breaks what was asked."""
    notes = []
    if drawn.broken:
        names = ", ".join(check.stated for check in drawn.broken)
        notes.append(
            f"the table that was drawn breaks {names}, though its law does not: "
            "--ensure table merges the groups that do"
        )
    beyond = [c.stated for c in drawn.checks if c.holds is False and not c.per_group]
    if beyond:
        notes.append(
            f"this table is beyond {', '.join(beyond)}: what is proved of the law is met on "
            "average, and the draws scatter about it"
        )
    rules = [c.stated for c in drawn.checks if c.holds is None]
    if drawn.merging is not None and rules:
        notes.append(
            f"{', '.join(rules)} speak of the randomisation before groups were merged, and are "
            "proved of that"
        )
    return notes


def check_lines(document: Mapping[str, Any]) -> list[str]:
    """Return in words how the table stands, and what it changes."""
    lines = []
    if document.get("checks"):
        lines.append("what was asked, on the law (proved) and on the table that was drawn:")
        lines += lines_of(document["checks"])
    if document.get("merged"):
        merged = document["merged"]
        lines.append(
            f"merged: {merged['groups']:,} groups of {merged['records']:,} records; the distortion "
            f"of the table is {merged['distortion_after']:.4g}, "
            f"{merged['distortion_before']:.4g} as it was drawn; under the law the merged release "
            f"tells {merged['risk']:.6g} {document['units']}"
        )
    lines.append("what is changed:")
    return [*lines, *(f"  {line}" for line in document["distortion_words"])]
