"""Each criterion on the law and on the drawn table, and what follows: release it, or do not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cvxprivacy.cli.dossier.tables import rounded
from cvxprivacy.cli.dossier.words import cells

if TYPE_CHECKING:
    from cvxprivacy.microdata.audit import Audit
    from cvxprivacy.results.solution import Solution

__all__ = ["audit_verdict", "checks_of", "release_verdict"]

Check = dict[str, Any]


def checks_of(
    document: Mapping[str, Any],
    criteria: Sequence[Any],
    solution: Solution | None,
    audit: Audit | None,
    schema: Any,
) -> list[Check]:
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


def _plain(check: Mapping[str, Any]) -> Check:
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


def _finite(side: Check) -> Check:
    """Return a side of a check, its value None where a measure has no bound in some group."""
    value = side["value"]
    return {**side, "value": None if value is None or not math.isfinite(value) else value}


def _number(value: Any) -> float | None:
    try:
        return rounded(float(value))
    except (TypeError, ValueError):
        return None


def _broken(checks: Sequence[Check], what: str) -> list[str]:
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
    document: Mapping[str, Any], checks: Sequence[Check], counted: bool
) -> dict[str, Any]:
    """Return whether a release may go out, in words; None where nothing was drawn."""
    broken = _broken(checks, "the drawn table")
    if document["status"] not in ("certified", "loose"):
        broken.append(f"nothing is proved of it (status {document['status']})")
    if broken:
        words = f"This table must not be released: {'; '.join(broken)}."
        return {"may_be_released": False, "words": words, "reasons": broken}
    if not document["released"]:
        words = (
            "No table was drawn: this report prices a release that could be made, and nothing is "
            "approved by signing it."
        )
        return {"may_be_released": None, "words": words, "reasons": []}
    limits = []
    for standing, names in _standings(checks).items():
        if names:
            limits.append(f"{cells(names)} {standing if len(names) > 1 else _SINGULAR[standing]}")
    words = "This table may be released under what was asked"
    words += f": {'; '.join(limits)}." if limits else "."
    if not counted:
        words += " The drawn table itself was not counted."
    return {"may_be_released": True, "words": words, "reasons": []}


_SINGULAR = {
    "hold": "holds",
    "hold on average": "holds on average",
    "are not met": "is not met",
    "are not proved of this release": "is not proved of this release",
}


def _standings(checks: Sequence[Check]) -> dict[str, list[str]]:
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


def audit_verdict(checks: Sequence[Check]) -> dict[str, Any]:
    """Return whether an audited table satisfies what was asked."""
    broken = _broken(checks, "the table")
    if broken:
        words = f"This table must not be released: {'; '.join(broken)}."
        return {"may_be_released": False, "words": words, "reasons": broken}
    if not checks:
        words = "Nothing was asked of this table: it is measured, and no criterion is judged."
        return {"may_be_released": None, "words": words, "reasons": []}
    if undecided := [check["criterion"] for check in checks if not check["table"]]:
        words = f"Not approved: {cells(undecided)} cannot be decided on a table."
        return {"may_be_released": None, "words": words, "reasons": undecided}
    names = cells([check["criterion"] for check in checks])
    words = f"This table may be released under what was asked: {names} "
    words += "hold." if len(checks) > 1 else "holds."
    return {"may_be_released": True, "words": words, "reasons": []}
