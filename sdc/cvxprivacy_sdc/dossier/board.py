"""What a disclosure board decides by: the verdict, the checks, the figures, the cautions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cvxprivacy.text import cells, plain, upwards
from cvxprivacy_sdc.copied.untouched import first
from cvxprivacy_sdc.dossier.provenance import Facts
from cvxprivacy_sdc.dossier.report import CONSTANT
from cvxprivacy_sdc.dossier.tables import FEWEST, Drawn
from cvxprivacy_sdc.dossier.words import rounded
from cvxprivacy_sdc.releases.check import Check
from cvxprivacy_verifier.wording import many

if TYPE_CHECKING:
    from cvxprivacy_sdc.auditing import Audit

__all__ = [
    "TYPED_SEED", "audit_verdict", "audited", "cautions", "check_facts", "figures",
    "release_verdict", "unmodified_columns",
]  # fmt: skip

TYPED_SEED = (
    "draw the release anew without --seed: this one's was typed, and whoever knows it can undo the "
    "release"
)


# ---- what follows from the checks --------------------------------------------------------


def audited(audit: Audit, schema: Any) -> list[Check]:
    """Return what was asked of a table that is audited: of no law."""
    names = {"w": cells(schema.sensitive), "x": cells(schema.key), "units": audit.units}
    checks = []
    for verdict in audit.verdicts:
        rule, words = verdict.criterion, verdict.criterion.in_words(**names)
        checks.append(Check(
            rule.name, type(rule).__name__, repr(rule), words.asks, words.quantity, words.unit,
            words.at_least, _number(rule.value), None, None, verdict.value, verdict.holds,
            per_group=verdict.of_letters, groups=verdict.letters, records=verdict.records,
        ))  # fmt: skip
    return checks


def check_facts(checks: Sequence[Check], audit: Audit | None) -> list[Facts]:
    """Return checks with the keys of the schema alone.

    What is counted in the worst group is not told where that may be one of few records.
    """
    small = audit is not None and audit.measures["k"].worst < FEWEST
    more = {"name", "kind", "at_least"}
    documents = (check.document() for check in checks)
    plain = [{k: v for k, v in document.items() if k not in more} for document in documents]
    for check in plain:
        check["law"], check["table"] = _finite(check["law"]), _finite(check["table"])
        if small and check["table"] and check["per_group"] and check["unit"] != "records":
            check["table"]["value"] = None
    return plain


def _finite(side: Facts | None) -> Facts | None:
    """Return a side of a check, its value None where a measure has no bound in some group."""
    if side is None or side["value"] is None:
        return side
    return {**side, "value": side["value"] if math.isfinite(side["value"]) else None}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float | Fraction) else None


def release_verdict(
    document: Mapping[str, Any], checks: Sequence[Check], counted: bool
) -> dict[str, Any]:
    """Return whether a release may go out, in words; None where nothing was drawn."""
    broken = [check.sentence for check in checks if check.refuses]
    if document["status"] not in ("certified", "loose"):
        broken.append(f"nothing is proved of it (status {document['status']})")
    if document["released"]:
        broken += document["order"]["refusals"]
        broken += [entry["words"] for entry in document["undone"] if entry["undoes"]]
    if broken:
        return _refusal(broken)
    if not document["released"]:
        words = "No table was drawn: this report prices a release that could be made, and nothing "
        return _verdict(None, f"{words}is approved by it.")
    if unseen := document["order"]["unseen"]:
        words = f"nobody looked at what {first(unseen)} tell of the changes, and they are copied"
        if len(unseen) == 1:
            words = f"nobody looked at what {unseen[0]} tells of the changes, and it is copied"
        return _verdict(None, f"Not approved: {words}.", [words])
    plain = [check.stated for check in checks if check.sentence == f"{check.stated} holds"]
    lost = [check.sentence for check in checks if check.law_holds is False]
    others = [c.sentence for c in checks if c.stated not in plain and c.law_holds is not False]
    limits = [f"{cells(plain)} {'hold' if len(plain) > 1 else 'holds'}"] if plain else []
    reasons = "; ".join([*limits, *others])
    text = f"This table may be released{': ' * bool(reasons)}{reasons}."
    text += f" More is lost than was asked: {'; '.join(lost)}." * bool(lost)
    return _verdict(True, text + " The drawn table itself was not counted." * (not counted))


def _verdict(may: bool | None, words: str, reasons: Sequence[str] = ()) -> Facts:
    return {"may_be_released": may, "words": words, "reasons": list(reasons)}


def _refusal(broken: Sequence[str]) -> Facts:
    return _verdict(False, f"This table must not be released: {'; '.join(broken)}.", broken)


def audit_verdict(checks: Sequence[Check]) -> Facts:
    """Return whether an audited table satisfies what was asked."""
    if broken := [check.sentence for check in checks if check.unmet]:
        return _refusal(broken)
    if not checks:
        words = "Nothing was asked of this table: it is measured, and no criterion is judged."
        return _verdict(None, words)
    if undecided := [check.stated for check in checks if check.holds is None]:
        words = f"Not approved: {cells(undecided)} cannot be decided on the released table alone."
        return _verdict(None, words, undecided)
    names = cells([check.stated for check in checks])
    hold = "hold" if len(checks) > 1 else "holds"
    return _verdict(True, f"This table may be released under what was asked: {names} {hold}.")


# ---- what is known beside the verdict -----------------------------------------------------


def figures(document: Mapping[str, Any]) -> Facts:
    """Return the figures of the law of the release."""
    law, recoding = document["released_law"], document.get("recoding") or {}
    information, informed = recoding.get("information"), document.get("informed")
    leakage, prior = document.get("leakage"), law.get("whatever_prior")
    ends = ("before", "after", "sure_before", "sure", "greatest_before", "greatest")
    return {
        "units": document["units"], "law": law["name"], "before": rounded(document["risk_before"]),
        "after": rounded(law["risk"]), "distortion": rounded(law["distortion"]),
        "whatever_prior": None if prior is None else float(upwards(prior)),
        "before_recoding": information
        and {"value": rounded(information["before"]), "units": information["units"]},
        "informed": informed and {name: rounded(informed[name], 4) for name in ends},
        "leakage": leakage and {
            "measure": leakage["measure"],
            **{name: rounded(leakage[name]) for name in ("before", "after", "none")},
        },
    }  # fmt: skip


def unmodified_columns(document: Mapping[str, Any]) -> Facts:
    """Return what the columns that are copied reveal, each with its advice."""
    numbers = ("information", "bias", "corrected", "lower", "upper")
    texts = ("column", "values", "intervals", "records", "kind", "advice")
    rows = [
        {**{name: entry[name] for name in texts}, **{n: rounded(entry[n]) for n in numbers}}
        for entry in document["untouched"]
    ]
    together = document["joint_disclosure"]
    if together is not None:
        together = {name: together[name] for name in ("lines", "proposals")}
    return {
        "unit": document["units"],
        "released": rounded(document["released_law"]["risk"]),
        "rows": rows,
        "together": together,
    }


def cautions(
    document: Mapping[str, Any], seed: Facts, source: Any, checks: Sequence[Check], drawn: Drawn
) -> list[str]:
    """Return what the board should weigh before it signs."""
    asks_records = any(check.unit == "records" for check in checks)
    smallest = 0 if drawn.audit is None else round(drawn.audit.measures["k"].worst)
    dropped = document.get("columns_dropped", ())
    beside = [name for name in source.schema.sensitive if name not in dropped]
    informed = (document.get("informed") or {}).get("caution")
    within = f"{document['upper'] - document['lower']:.2g}"
    reasons: dict[str, Any] = {
        CONSTANT: drawn.audit is not None and len(drawn.audit.letters) == 1,
        "{}: edges of bands are values of single records, as was asked, and are published":
            cells((document.get("recoding") or {}).get("exact", [])),
        "what the columns that are copied tell was not measured: it comes on top":
            document["released"] and document["order"]["unseen"],
        "what the copied columns reveal together was not measured: `cvxprivacy attack`, or "
        "`release --attack`, guesses from all of them":
            document["joint_disclosure"] is None and len(document["untouched"]) > 1,
        "no criterion was asked of the size of groups: the smallest that is released holds {}":
            smallest and not asks_records and many(smallest, "record"),
        "{}: copied as it is; what is proved is of its intervals alone":
            cells([n for n in beside if n in source.schema.bins]),
        "what is told, and the mean change per record, count each record by its weight, {}: shares "
        "of records differ from them": source.schema.weights,
        TYPED_SEED: document["released"] and seed["given"] and not document.get("sequel"),
        "the release satisfies what was asked, and is proved to be within {} of the best one only":
            document["status"] == "loose" and within,
        "the records are so few for their cells that much of the measured risk is bias":
            source.biased,
        "{}": _merged(document.get("merged")),
    }  # fmt: skip
    return [
        *document["advice"],
        *(text.format(detail) for text, detail in reasons.items() if detail),
        *([informed] if informed else []),
        *(check.caution for check in checks if check.caution),
    ]


def _merged(merged: Mapping[str, Any] | None) -> str:
    """Say what it means that groups of the drawn table were merged."""
    if not merged:
        return ""
    before, after = (plain(merged[f"distortion_{when}"], 3) for when in ("before", "after"))
    return (
        f"{many(merged['groups'], 'group')} of the drawn table, of {merged['records']:,} records, "
        "broke what was asked and are released as others: who notices knows that they broke it; "
        f"the mean change per record went from {before} to {after}, and what is proved is of the "
        "randomisation before"
    )
