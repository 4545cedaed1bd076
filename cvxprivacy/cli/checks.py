"""How a drawn table stands with what was asked, for ``release`` to report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cvxprivacy.microdata.changes import Change, changes
from cvxprivacy.microdata.drawn_table import DrawnTable, lines_of
from cvxprivacy.tables.labels import written

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
    facts = dict(document)
    facts["changes"] = [asdict(change) for change in _changes(solution, source, drawn)]
    facts["distortion_words"] = [str(Change(**change)) for change in facts["changes"]]
    facts["notes"] = [*facts["notes"], *_idle(solution, source, facts["changes"])]
    if drawn is None:
        return facts
    facts["checks"] = [check.document() for check in drawn.checks]
    law = drawn.law
    facts["law"] = _law_of(drawn)
    facts["released_law"] = {
        "proved": law.proved, "risk": law.risk, "distortion": law.mean_distortion
    }  # fmt: skip
    if drawn.merging is not None:
        facts["merged"] = {
            "groups": len(drawn.merging.moves),
            "records": drawn.merging.records,
            "distortion_before": float(drawn.drawn_distortion),
            "distortion_after": float(drawn.distortion),
            "distortion": drawn.law.mean_distortion,
            "risk": drawn.risk,
            "moves": [
                {"from": written(old, lenient=True), "to": written(new, lenient=True),
                 "records": records} for old, new, records in drawn.merging.moves
            ],
        }  # fmt: skip
    facts["notes"] = [*facts["notes"], *_notes(drawn, kept="channel" in document["files"])]
    return facts


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


def _idle(solution: Solution, source: DiscreteSource, changed: Sequence[Any]) -> list[str]:
    """Say that nothing is withheld, where it might have been."""
    channel, letters = solution.channel, set(source.x)
    assert channel is not None
    allowed = any(y not in letters for y in channel.outputs)
    if not allowed or any(change["suppressed"] for change in changed):
        return []
    return ["nothing is withheld: at the cost of --suppress another value is the cheaper lie"]


def _law_of(drawn: DrawnTable) -> str:
    """Say which law the checks are of."""
    if drawn.law.proved:
        return "the law (proved)"
    merged = "" if drawn.merging is None else " after groups were merged"
    if drawn.law.designed:
        return f"the law{merged}"
    return f"the law of all records{merged} (proved of those that it was designed on)"


def _notes(drawn: DrawnTable, *, kept: bool) -> list[str]:
    """Return what is to be said of a table that breaks what was asked; a channel may be kept."""
    notes = []
    if drawn.broken:
        names = ", ".join(check.stated for check in drawn.broken)
        notes.append(
            f"the table that was drawn breaks {names}, though its law does not: --ensure table "
            "merges groups until it does not"
        )
    averages = [c for c in drawn.checks if c.holds is False and not c.breaks]
    if names := ", ".join(c.stated for c in averages if c.law_holds):
        notes.append(
            f"this table is beyond {names}: what is proved of the law is met on average, and the "
            "draws scatter about it"
        )
    beyond = ", ".join(c.stated for c in drawn.checks if c.law_holds is False)
    if beyond and drawn.merging is not None:
        notes.append(f"with the groups merged, the release is beyond {beyond}, on average too")
    elif beyond:
        notes.append(
            f"over all records the law is beyond {beyond}, which is proved of the records that the "
            "channel was designed on"
        )
    rules = ", ".join(c.stated for c in drawn.checks if c.law_holds is None)
    if rules:
        of = "channel before groups were merged"
        of = "records that the channel was designed on" if drawn.merging is None else of
        notes.append(f"{rules}: proved of the {of}, not of the release")
    if drawn.merging is not None and kept:
        notes.append(
            "the channel that is kept does not merge: `cvxprivacy apply` releases what it draws; "
            "the groups that were merged are listed in the report and under --json"
        )
    return notes


def check_lines(document: Mapping[str, Any]) -> list[str]:
    """Return in words how the table stands, and what it changes."""
    lines = []
    if document.get("checks"):
        lines.append(f"what was asked, on {document['law']} and on the table that is released:")
        lines += lines_of(document["checks"])
    if document.get("merged"):
        merged = document["merged"]
        lines.append(
            f"merged: {merged['groups']:,} groups of {merged['records']:,} records; the distortion "
            f"of the table is {merged['distortion_after']:.4g}, "
            f"{merged['distortion_before']:.4g} as it was drawn; on average it is then "
            f"{merged['distortion']:.4g}, and the release tells {merged['risk']:.6g} "
            f"{document['units']}"
        )
    lines.append("what is changed:")
    return [*lines, *(f"  {line}" for line in document["distortion_words"])]
