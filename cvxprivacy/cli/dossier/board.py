"""What the first page of a release says, and what its unmodified columns reveal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cvxprivacy.cli.dossier import words
from cvxprivacy.cli.dossier.common import Facts, worst_group
from cvxprivacy.cli.dossier.drawn import Drawn
from cvxprivacy.cli.dossier.tables import rounded

if TYPE_CHECKING:
    from cvxprivacy.results.solution import Solution

__all__ = ["cautions", "found_rows", "merged_groups", "unmodified_columns"]

MOST_NAMED = 5  # columns in one advice of the first page


def found_rows(document: Mapping[str, Any], solution: Solution, drawn: Drawn) -> list[Facts]:
    """Return the few numbers of the first page."""
    units, released = document["units"], document["released"]
    after = float(solution.terms.get("information", solution.terms["risk"]))
    before = document["risk_before"]
    share = f", {after / before:.0%} of it" if before > 0 else ""
    rows = []
    if released:
        left_out = f"; {released['dropped']:,} left out" if released.get("dropped") else ""
        rows.append(("Records released", f"{released['records']:,}{left_out}"))
    if drawn.changed is not None:
        any_cell = drawn.changed["any"]
        rows.append(
            ("Records changed", f"{any_cell['records']:,} ({any_cell['share'] or 0.0:.1%})")
        )
    rows += [
        ("What the key tells before", f"{before:.4g} {units}"),
        ("What it tells after, on the law", f"{after:.4g} {units}{share}"),
    ]
    if "leakage" in document:
        told = document["leakage"]
        words_of = f"{told['before']:.4g} before, {told['after']:.4g} after, {told['none']:.4g} "
        rows.append((f"In {told['measure']}", f"{words_of}without any release"))
    if "distortion" in solution.terms:
        rows.append(("Expected distortion", f"{float(solution.terms['distortion']):.4g}"))
    if drawn.audit is not None:
        least = drawn.audit.measures["k"]
        rows.append(("Smallest released group", _records(least.worst)))
        rows.append(("Greatest divergence of a group", worst_group(drawn.audit)))
    proof = f"{solution.status}: no release does better than {solution.lower:.6g}"
    rows.append(("Optimality", f"{proof}; this one attains {solution.upper:.6g}"))
    return [{"name": name, "value": value} for name, value in rows]


def _records(number: float) -> str:
    return "1 record" if number == 1 else f"{number:,.0f} records"


def merged_groups(merged: Mapping[str, Any] | None) -> Facts | None:
    """Return how the drawn table was repaired, without its single moves."""
    if not merged:
        return None
    names = ("groups", "records", "distortion_before", "distortion_after")
    return {name: merged.get(name) for name in names}


def unmodified_columns(document: Mapping[str, Any], solution: Solution, schema: Any) -> Facts:
    """Return what the columns that are copied reveal, each with an advice."""
    after = float(solution.terms.get("information", solution.terms["risk"]))
    rows, records = [], document["records"] or 0
    for leak in document["untouched"]:
        corrected = max(0.0, (leak["information"] or 0.0) - (leak["bias"] or 0.0))
        advice = kind = ""
        if leak["values"] * 2 > records:
            kind = "drop"
            advice = f"drop {leak['column']}: it differs from record to record and names them"
        elif leak["information"] is None:
            kind = "look"
            advice = f"look at {leak['column']}: it has too many values to tell what it reveals"
        elif corrected > max(after, leak["bias"] or 0.0):
            much = after > 0 and corrected > 1.5 * after
            times = f", {corrected / after:.1f} times what the released key does" if much else ""
            kind = "coarsen"
            advice = (
                f"drop or coarsen {leak['column']}: by itself it reveals {corrected:.3g} "
                f"{document['units']}{times}"
            )
        rows.append(
            {
                "column": leak["column"],
                "information": rounded(leak["information"]),
                "bias": rounded(leak["bias"]),
                "values": leak["values"],
                "intervals": leak.get("intervals"),
                "kind": kind,
                "advice": advice,
            }
        )
    return {"unit": document["units"], "released": rounded(after), "rows": rows}


def cautions(
    document: Mapping[str, Any],
    seed: Facts,
    unmodified: Facts,
    source: Any,
    checks: list[Facts],
    smallest: float | None,
) -> list[str]:
    """Return what the board should weigh before it signs; ``smallest`` is the least group."""
    said = _advised(unmodified)
    if smallest is not None and not any(c["unit"] == "records" for c in checks):
        said.append(
            "no criterion was asked of the size of groups: the smallest that is released holds "
            f"{_records(smallest)}"
        )
    if document["released"] and seed["given"]:
        said.append(
            "draw the release anew without --seed: this one's was typed, and whoever knows it can "
            "undo the release"
        )
    if document["status"] == "loose":
        said.append(
            "the release satisfies what was asked, but a better one may exist: the enclosure of "
            "the optimum is wide"
        )
    if source.biased:
        said.append("the records are so few for their cells that much of the measured risk is bias")
    beyond = [
        check["criterion"]
        for check in checks
        if check["table"] and check["table"]["holds"] is False and not check["per_group"]
    ]
    if beyond:
        said.append(
            f"{words.cells(beyond)}: the law is within it, as is proved; this draw is beyond it, "
            "by chance"
        )
    unchecked = [c["criterion"] for c in checks if not c["table"] or c["table"]["holds"] is None]
    if unchecked and document["released"]:
        said.append(
            f"{words.cells(unchecked)}: proved of the law that the table was drawn from; the drawn "
            "table itself was not checked for it"
        )
    return said


def _advised(unmodified: Facts) -> list[str]:
    """Return the advice on unmodified columns in a sentence for each kind."""
    by_kind: dict[str, list[str]] = {}
    for row in unmodified["rows"]:
        if row["advice"]:
            by_kind.setdefault(row["kind"], []).append(row["column"])
    words_of = {
        "coarsen": "drop or coarsen {}: {} tells more by itself than the released key",
        "drop": "drop {}: such a value differs from record to record, and names the record",
        "look": "look at {}: too many values to tell what they reveal",
    }
    said = []
    for kind, text in words_of.items():
        names = by_kind.get(kind, [])
        each = "each" if len(names) > 1 else "it"
        if names:
            more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
            said.append(text.format(words.cells([*names[:MOST_NAMED], *more]), each))
    return said
