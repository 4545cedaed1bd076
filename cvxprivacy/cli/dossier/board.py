"""What a disclosure board decides by: the verdict, the numbers of the first page, cautions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cvxprivacy.cli.dossier.provenance import Facts
from cvxprivacy.cli.dossier.tables import Drawn, worst_group
from cvxprivacy.cli.dossier.words import cells, rounded
from cvxprivacy.cli.report import information_after
from cvxprivacy.tables.labels import shown

if TYPE_CHECKING:
    from cvxprivacy.microdata.audit import Audit
    from cvxprivacy.results.solution import Solution

__all__ = [
    "audit_verdict", "cautions", "checks_of", "found_rows", "merged_groups", "release_verdict",
    "unmodified_columns",
]  # fmt: skip

# ---- each criterion on the law and on the table, and what follows ------------------------


def checks_of(
    document: Mapping[str, Any],
    criteria: Sequence[Any],
    solution: Solution | None,
    audit: Audit | None,
    schema: Any,
) -> list[Facts]:
    """Return the checks of a document, or those that a proof and an audit imply.

    A certified or loose release satisfies every criterion on the law, by proof.
    """
    if "checks" in document:
        return [_plain(check) for check in document["checks"]]
    units = solution.units if solution is not None else audit.units if audit is not None else ""
    verdicts = {id(v.criterion): v for v in (audit.verdicts if audit is not None else ())}
    checks = []
    for criterion in criteria:
        bound, law = _number(getattr(criterion, "value", None)), None
        if solution is not None:
            law = {
                "value": None, "bound": bound, "holds": solution.status in ("certified", "loose")
            }  # fmt: skip
        verdict, table = verdicts.get(id(criterion)), None
        if verdict is not None and verdict.holds is not None:
            table = {
                "value": rounded(verdict.value),
                "bound": bound,
                "holds": verdict.holds,
                "groups": verdict.letters,
                "records": verdict.records,
            }
        w, x = cells(schema.sensitive), cells(schema.key)
        words = criterion.in_words(w=w, x=x, units=units)
        checks.append(
            {
                "criterion": repr(criterion),
                "says": words.asks,
                "law": law,
                "table": table,
                "unit": words.unit,
                "per_group": verdict is not None and verdict.of_letters,
                "breaks": bool(table and table["holds"] is False),
            }
        )
    return checks


def _plain(check: Mapping[str, Any]) -> Facts:
    """Return a check with the keys of the schema alone."""
    law, table = check.get("law"), check.get("table")
    return {
        "criterion": check["criterion"],
        "says": check["says"],
        "law": law and _finite({n: law.get(n) for n in ("value", "bound", "holds")}),
        "table": table
        and _finite({n: table.get(n) for n in ("value", "bound", "holds", "groups", "records")}),
        "unit": check.get("unit", ""),
        "per_group": bool(check.get("per_group", True)),
        "breaks": bool(check["breaks"])
        if "breaks" in check
        else bool(table and table["holds"] is False),
    }


def _finite(side: Facts) -> Facts:
    """Return a side of a check, its value None where a measure has no bound in some group."""
    value = side["value"]
    return {**side, "value": None if value is None or not math.isfinite(value) else value}


def _number(value: Any) -> float | None:
    try:
        return rounded(float(value))
    except (TypeError, ValueError):
        return None


def _broken(checks: Sequence[Facts], what: str) -> list[str]:
    """Say which criteria are broken, and by how much."""
    sentences = []
    for check in checks:
        law, table = check["law"], check["table"]
        if check["breaks"] and not check["per_group"]:
            by = "" if table["value"] is None else f", at {table['value']:.4g}"
            sentences.append(f"{check['criterion']} is broken by {what}{by}")
        elif check["breaks"]:
            groups = table.get("groups") or 0
            by = f"{groups:,} group{'s' * (groups != 1)} of {what}"
            records = f", with {table['records']:,} records" if table.get("records") else ""
            sentences.append(f"{check['criterion']} is broken by {by}{records}")
        if law and law["holds"] is False and check["per_group"] and not table:
            sentences.append(f"{check['criterion']} is broken by the law of the release")
    return sentences


def release_verdict(
    document: Mapping[str, Any], checks: Sequence[Facts], counted: bool
) -> dict[str, Any]:
    """Return whether a release may go out, in words; None where nothing was drawn."""
    broken = _broken(checks, "the drawn table")
    if document["status"] not in ("certified", "loose"):
        broken.append(f"nothing is proved of it (status {document['status']})")
    if broken:
        return _refusal(broken)
    if not document["released"]:
        words = "No table was drawn: this report prices a release that could be made, and nothing "
        return _verdict(None, f"{words}is approved by signing it.")
    limits = [
        f"{cells(names)} {standing if len(names) > 1 else _SINGULAR[standing]}"
        for standing, names in _standings(checks).items()
        if names
    ]
    words = "This table may be released under what was asked"
    words += f": {'; '.join(limits)}." if limits else "."
    return _verdict(True, words + ("" if counted else " The drawn table itself was not counted."))


def _verdict(may: bool | None, words: str, reasons: Sequence[str] = ()) -> Facts:
    return {"may_be_released": may, "words": words, "reasons": list(reasons)}


def _refusal(broken: Sequence[str]) -> Facts:
    return _verdict(False, f"This table must not be released: {'; '.join(broken)}.", broken)


_SINGULAR = {
    "hold": "holds",
    "hold on average": "holds on average",
    "are not met": "is not met",
    "are not proved of this release": "is not proved of this release",
}


def _standings(checks: Sequence[Facts]) -> dict[str, list[str]]:
    """Return the criteria by how they stand, where no released group breaks one."""
    by_standing: dict[str, list[str]] = {standing: [] for standing in _SINGULAR}
    for check in checks:
        law, table = (check["law"] or {}).get("holds"), (check["table"] or {}).get("holds")
        if table is True or (table is None and law):
            by_standing["hold"].append(check["criterion"])
        elif table is None:
            by_standing["are not proved of this release"].append(check["criterion"])
        else:
            by_standing["hold on average" if law else "are not met"].append(check["criterion"])
    return by_standing


def audit_verdict(checks: Sequence[Facts]) -> Facts:
    """Return whether an audited table satisfies what was asked."""
    if broken := _broken(checks, "the table"):
        return _refusal(broken)
    if not checks:
        words = "Nothing was asked of this table: it is measured, and no criterion is judged."
        return _verdict(None, words)
    if undecided := [check["criterion"] for check in checks if not check["table"]]:
        words = f"Not approved: {cells(undecided)} cannot be decided on a table."
        return _verdict(None, words, undecided)
    names = cells([check["criterion"] for check in checks])
    hold = "hold" if len(checks) > 1 else "holds"
    return _verdict(True, f"This table may be released under what was asked: {names} {hold}.")


# ---- the first page ----------------------------------------------------------------------


def found_rows(document: Mapping[str, Any], solution: Solution, drawn: Drawn) -> list[Facts]:
    """Return the few numbers of the first page."""
    units, released = document["units"], document["released"]
    law: Any = document.get("released_law")
    of_channel = law is None or law["proved"]
    after = information_after(solution) if of_channel else law["risk"]
    before = document["risk_before"]
    share = f", {after / before:.0%} of it" if before > 0 else ""
    rows = {}
    if released:
        left_out = f"; {released['dropped']:,} left out" if released.get("dropped") else ""
        rows["Records released"] = f"{released['records']:,}{left_out}"
    if drawn.changed is not None:
        of_any = drawn.changed["any"]
        rows["Records changed"] = f"{of_any['records']:,} ({of_any['share'] or 0.0:.1%})"
    if information := (document.get("recoding") or {}).get("information"):
        rows["What it told before recoding"] = f"{information['before']:.4g} {information['units']}"
    rows["What the key tells before"] = f"{before:.4g} {units}"
    rows["What it tells after, on the law"] = f"{after:.4g} {units}{share}"
    if "leakage" in document:
        leakage = document["leakage"]
        rows[f"In {leakage['measure']}"] = (
            f"{leakage['before']:.4g} before, {leakage['after']:.4g} after, "
            f"{leakage['none']:.4g} without any release"
        )
    if "distortion" in solution.terms:
        mean = float(solution.terms["distortion"]) if of_channel else law["distortion"]
        rows["Expected distortion"] = f"{mean:.4g}"
    if bound := document.get("population"):
        words = f"at most {bound['upper']:.4g} {units}, at {bound['level']:.0%}"
        rows["In the population, proved"] = words
    if drawn.audit is not None:
        rows["Smallest released group"] = _records(drawn.audit.measures["k"].worst)
        rows["Greatest divergence of a group"] = worst_group(drawn.audit)
    rows["Optimality"] = (
        f"{solution.status}: no release does better than {solution.lower:.6g}; "
        f"{'this one' if of_channel else 'the channel as it was designed'} attains "
        f"{solution.upper:.6g}"
    )
    return [{"name": name, "value": value} for name, value in rows.items()]


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


def unmodified_columns(document: Mapping[str, Any]) -> Facts:
    """Return what the columns that are copied reveal, each with its advice."""
    numbers = ("information", "bias", "corrected", "lower", "upper")
    texts = ("column", "values", "intervals", "records", "kind", "advice")
    rows = [
        {**{name: entry[name] for name in texts}, **{n: rounded(entry[n]) for n in numbers}}
        for entry in document["untouched"]
    ]
    together = combined = document["combined"]
    if combined is not None:
        tabled = {guess["words"] for guess in combined["guesses"]}
        together = {name: combined[name] for name in ("guesses", "proposals")}
        together["lines"] = [line for line in combined["lines"] if line not in tabled]
    return {
        "unit": document["units"],
        "released": rounded(document["key_tells"]),
        "rows": rows,
        "together": together,
    }


def cautions(
    document: Mapping[str, Any],
    seed: Facts,
    source: Any,
    checks: list[Facts],
    smallest: float | None,
) -> list[str]:
    """Return what the board should weigh before it signs; ``smallest`` is the least group."""
    merged, released = document.get("merged"), document["released"]

    def named(which: Callable[[Facts, Facts], Any]) -> str:
        """Return the criteria whose law and table are so."""
        sides = [(c, c["law"] or {"holds": ""}, c["table"] or {"holds": None}) for c in checks]
        return cells([c["criterion"] for c, law, table in sides if which(law, table)])

    on_average = named(lambda law, _: law["holds"] is False)
    unproved = named(lambda law, _: law["holds"] is None)
    asks_records = any(check["unit"] == "records" for check in checks)
    reasons: dict[str, Any] = {
        "small groups": smallest is not None and not asks_records and _records(smallest),
        "intervals": cells([n for n in source.schema.sensitive if n in source.schema.bins]),
        "typed seed": released and seed["given"],
        "loose": document["status"] == "loose" and f"{document['upper'] - document['lower']:.2g}",
        "bias": source.biased,
        "chance": cells([c["criterion"] for c in checks if _beyond(c) and c["law"]["holds"]]),
        "merged": merged and on_average,
        "all records": not merged and on_average,
        "unproved, merged": merged and document.get("law") and unproved,
        "unproved, all records": not merged and document.get("law") and unproved,
        "population": document.get("population"),
        "unchecked": released and named(lambda law, table: table["holds"] is None and law["holds"]),
    }
    return [
        *document["advice"],
        *(_CAUTIONS[name].format(detail) for name, detail in reasons.items() if detail),
    ]


_CAUTIONS = {
    "small groups": "no criterion was asked of the size of groups: the smallest that is released "
    "holds {}",
    "intervals": "{}: copied as it is; what is proved is of its intervals alone",
    "typed seed": "draw the release anew without --seed: this one's was typed, and whoever knows "
    "it can undo the release",
    "loose": "the release satisfies what was asked, and is proved to be within {} of the best one "
    "only",
    "bias": "the records are so few for their cells that much of the measured risk is bias",
    "chance": "{}: the law is within it, as is proved; this draw is beyond it, by chance",
    "merged": "{}: no longer met, as groups were merged",
    "all records": "{}: proved of the records that the channel was designed on; over all records "
    "the release is beyond it",
    "unproved, merged": "{}: proved of the channel before groups were merged, not of this release",
    "unproved, all records": "{}: proved of the channel on a part of the records, not of this "
    "release",
    "population": "the channel was designed on a part of the records: the optimum and its proof "
    "are of that part",
    "unchecked": "{}: proved of the law that the table was drawn from; the drawn table itself was "
    "not checked for it",
}


def _beyond(check: Facts) -> bool:
    """Tell whether the table is beyond a bound on an average."""
    table = check["table"]
    return bool(table and table["holds"] is False and not check["breaks"])
