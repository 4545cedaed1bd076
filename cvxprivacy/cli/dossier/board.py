"""What the first page of a release says, and what its unmodified columns reveal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cvxprivacy.cli.dossier import words
from cvxprivacy.cli.dossier.common import Facts, worst_group
from cvxprivacy.cli.dossier.drawn import Drawn
from cvxprivacy.cli.dossier.tables import rounded
from cvxprivacy.cli.report import information_after
from cvxprivacy.microdata.untouched import Leak, undone_words
from cvxprivacy.tables.labels import shown

if TYPE_CHECKING:
    from cvxprivacy.results.solution import Solution

__all__ = ["cautions", "found_rows", "merged_groups", "unmodified_columns"]

MOST_NAMED = 5  # columns in one advice of the first page


def found_rows(document: Mapping[str, Any], solution: Solution, drawn: Drawn) -> list[Facts]:
    """Return the few numbers of the first page."""
    units, released = document["units"], document["released"]
    law = document.get("released_law")
    after = information_after(solution) if law is None or law["proved"] else law["risk"]
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
    information = (document.get("recoding") or {}).get("information")
    if information:
        rows.append(
            ("What it told before recoding", f"{information['before']:.4g} {information['units']}")
        )
    rows += [
        ("What the key tells before", f"{before:.4g} {units}"),
        ("What it tells after, on the law", f"{after:.4g} {units}{share}"),
    ]
    if "leakage" in document:
        leakage = document["leakage"]
        amounts = f"{leakage['before']:.4g} before, {leakage['after']:.4g} after, "
        amounts += f"{leakage['none']:.4g} without any release"
        rows.append((f"In {leakage['measure']}", amounts))
    if "distortion" in solution.terms:
        mean = float(solution.terms["distortion"])
        mean = mean if law is None or law["proved"] else law["distortion"]
        rows.append(("Expected distortion", f"{mean:.4g}"))
    population = document.get("population")
    if population:
        bound = f"at most {population['upper']:.4g} {units}, at {population['level']:.0%}"
        rows.append(("In the population, proved", bound))
    if drawn.audit is not None:
        least = drawn.audit.measures["k"]
        rows.append(("Smallest released group", _records(least.worst)))
        rows.append(("Greatest divergence of a group", worst_group(drawn.audit)))
    proof = f"{solution.status}: no release does better than {solution.lower:.6g}"
    one = "this one" if law is None or law["proved"] else "the channel as it was designed"
    rows.append(("Optimality", f"{proof}; {one} attains {solution.upper:.6g}"))
    return [{"name": name, "value": value} for name, value in rows]


def _records(number: float) -> str:
    return "1 record" if number == 1 else f"{number:,.0f} records"


def merged_groups(merged: Mapping[str, Any] | None) -> Facts | None:
    """Return how the drawn table was repaired: which groups were merged into which."""
    if not merged:
        return None
    names = ("groups", "records", "distortion_before", "distortion_after")
    moves = [
        {"from": _letter(move["from"]), "to": _letter(move["to"]), "records": move["records"]}
        for move in merged.get("moves", ())
    ]
    return {**{name: merged.get(name) for name in names}, "moves": moves}


def _letter(label: Any) -> str:
    """Return a key letter as it is read, a withheld value as a star."""
    parts = label if isinstance(label, list) else [label]
    return ", ".join("*" if part is None else shown(part) for part in parts)


def unmodified_columns(document: Mapping[str, Any], solution: Solution) -> Facts:
    """Return what the columns that are copied reveal, each with an advice."""
    after, rows = information_after(solution), []
    for entry in document["untouched"]:
        leak = Leak(**{name: entry[name] for name in entry if name != "binned"})
        advice = kind = ""
        if leak.names_records(document["records"] or 0):
            kind = "drop"
            advice = f"drop {leak.column}: it differs from record to record and names them"
        elif leak.information is None:
            kind = "look"
            advice = f"look at {leak.column}: it has too many values to tell what it reveals"
        elif leak.exceeds(after):
            times = leak.corrected / after if after > 0 else 0.0
            much = f", {times:.1f} times what the released key does" if times > 1.5 else ""
            kind = "coarsen"
            advice = (
                f"drop or coarsen {leak.column}: by itself it reveals {leak.corrected:.3g} "
                f"{document['units']}{much}"
            )
        rows.append(
            {
                "column": leak.column,
                "information": rounded(leak.information),
                "bias": rounded(leak.bias),
                "values": leak.values,
                "intervals": leak.intervals,
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
    sentences = [undone_words(entry) for entry in document.get("undone", ())]
    sentences += _advised(unmodified)
    if smallest is not None and not any(c["unit"] == "records" for c in checks):
        sentences.append(
            "no criterion was asked of the size of groups: the smallest that is released holds "
            f"{_records(smallest)}"
        )
    banded = [name for name in source.schema.sensitive if name in source.schema.bins]
    if banded:
        sentences.append(
            f"{words.cells(banded)}: copied as it is; what is proved is of its intervals alone"
        )
    if document["released"] and seed["given"]:
        sentences.append(
            "draw the release anew without --seed: this one's was typed, and whoever knows it can "
            "undo the release"
        )
    if document["status"] == "loose":
        sentences.append(
            "the release satisfies what was asked, and is proved to be within "
            f"{document['upper'] - document['lower']:.2g} of the best one only"
        )
    if source.biased:
        sentences.append(
            "the records are so few for their cells that much of the measured risk is bias"
        )
    by_chance = [c["criterion"] for c in checks if _beyond(c) and c["law"]["holds"]]
    if by_chance:
        sentences.append(
            f"{words.cells(by_chance)}: the law is within it, as is proved; this draw is beyond "
            "it, by chance"
        )
    on_average = [c["criterion"] for c in checks if c["law"] and c["law"]["holds"] is False]
    if on_average and document.get("merged"):
        sentences.append(f"{words.cells(on_average)}: no longer met, as groups were merged")
    elif on_average:
        sentences.append(
            f"{words.cells(on_average)}: proved of the records that the channel was designed on; "
            "over all records the release is beyond it"
        )
    unproved = [c["criterion"] for c in checks if c["law"] and c["law"]["holds"] is None]
    if unproved and document.get("law"):
        of = "before groups were merged" if document.get("merged") else "on a part of the records"
        sentences.append(
            f"{words.cells(unproved)}: proved of the channel {of}, not of this release"
        )
    if document.get("population"):
        sentences.append(
            "the channel was designed on a part of the records: the optimum and its proof are of "
            "that part"
        )
    unchecked = [
        c["criterion"]
        for c in checks
        if (not c["table"] or c["table"]["holds"] is None) and (c["law"] or {}).get("holds")
    ]
    if unchecked and document["released"]:
        sentences.append(
            f"{words.cells(unchecked)}: proved of the law that the table was drawn from; the drawn "
            "table itself was not checked for it"
        )
    return sentences


def _beyond(check: Facts) -> bool:
    """Tell whether the table is beyond a bound on an average."""
    table = check["table"]
    return bool(table and table["holds"] is False and not check["breaks"])


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
    sentences = []
    for kind, text in words_of.items():
        names = by_kind.get(kind, [])
        each = "each" if len(names) > 1 else "it"
        if names:
            more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
            sentences.append(text.format(words.cells([*names[:MOST_NAMED], *more]), each))
    return sentences
