"""What ``release`` reports: the same facts as a document and as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cvxprivacy.model.information import mutual_information
from cvxprivacy.results.price_bounds import Price
from cvxprivacy.text import cells, upwards
from cvxprivacy_sdc.copied.untouched import advised, undoing
from cvxprivacy_sdc.dossier.words import NOTHING
from cvxprivacy_sdc.releases.check import lines_of
from cvxprivacy_sdc.releases.released_law import RANDOMISATION
from cvxprivacy_sdc.statements.outputs import described
from cvxprivacy_sdc.statements.recodings import chance_in_words
from cvxprivacy_sdc.utility.changes import Change, changes
from cvxprivacy_sdc.whole_counts.nearness import orders_of
from cvxprivacy_verifier.wording import many

if TYPE_CHECKING:
    from cvxprivacy.criteria import Criterion
    from cvxprivacy.leakage import Leakage
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.results.solution import Solution
    from cvxprivacy_sdc.copied.joint_disclosure import JointDisclosure
    from cvxprivacy_sdc.copied.untouched import Leak
    from cvxprivacy_sdc.releases.check import Check
    from cvxprivacy_sdc.releases.drawn_table import DrawnTable
    from cvxprivacy_sdc.releases.released_law import ReleasedLaw
    from cvxprivacy_sdc.whole_counts.solution import TableSolution

__all__ = [
    "CONSTANT",
    "REPORTED",
    "joint_lines",
    "proved",
    "records_drawn",
    "relaxed",
    "report",
    "report_text",
    "with_checks",
    "with_copied",
]

REPORTED = "the report for the board: it names no confidential value; hand it on yourself{private}"
CONSTANT = (
    "every record is released as one and the same group: the key became a constant, and tells "
    "nothing of anybody"
)


def proved(solution: Solution) -> dict[str, Any]:
    """Return the numbers of a solution."""
    return {
        "status": solution.status,
        "units": solution.units,
        "value_units": solution.value_units,
        "lower": solution.lower,
        "upper": solution.upper,
        "terms": {name: [term.lower, term.upper] for name, term in solution.terms.items()},
        "prices": {name: getattr(p, "number", p) for name, p in solution.prices.items()},
        **({} if solution.informed is None else {"informed": solution.informed.document()}),
        "price_words": {k: p.words for k, p in solution.prices.items() if isinstance(p, Price)},
        "notes": list(solution.notes),
    }


def report(
    table: str,
    source: DiscreteSource,
    solution: Solution,
    drawn: Mapping[str, Any],
    targets: Mapping[str, str | None],
    law: ReleasedLaw,
    leakage: Leakage | None = None,
    *,
    dropped: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the facts of a release: ``drawn`` is empty if no table was written.

    ``dropped`` are columns that are not in the released table.
    """
    units, other = solution.units, _in_another_measure(source, solution, law, leakage)
    # of the certificate where that is of this law: it has more digits than a sum of floats
    of_key = "information" if "information" in solution.terms else "risk"
    after = float(solution.terms[of_key]) if law.proved else law.risk
    after = after if after > NOTHING else 0.0
    whatever_prior: dict[str, float] = {}
    informed, to_informed = solution.informed if law.proved else law.informed, {}
    if informed is not None:
        caution = informed.caution if solution.informed else informed.caution_of_rounding
        words = {"law": law.name, "words": informed.words, "caution": caution}
        to_informed = {"informed": {**informed.document(), **words}}
    if solution.least_favourable:  # the optimum of the law that was solved for, and of no other
        whatever_prior = {"whatever_prior": solution.upper if law.proved else law.capacity}
    return {
        "table": table,
        "records": source.records,
        "dropped": source.dropped,
        **proved(solution),
        "risk_before": source.information(units=units),
        "risk_before_bias": source.bias(units=units),
        **other,
        **to_informed,
        "released_law": {
            "name": law.name,
            "proved": law.proved,
            "risk": after,
            **whatever_prior,
            "distortion": law.mean_distortion,
        },
        "released": {name: count for name, count in drawn.items() if name != "notes"},
        "files": {name: path for name, path in targets.items() if path},
        **({"columns_dropped": list(dropped)} if dropped else {}),
        "notes": [
            *solution.notes,
            *source.noted(units=units),
            *drawn.get("notes", ()),
            *_warnings(source, solution, other, dropped),
        ],
    }


def _in_another_measure(
    source: DiscreteSource, solution: Solution, law: ReleasedLaw, leakage: Leakage | None
) -> dict[str, Any]:
    """Return what the key tells, nothing at all, and the release, if not in information."""
    if leakage is None or leakage.informs:
        return {}
    unit = leakage.unit(solution.units)
    before, none = (unit * leakage.total(joint) for joint in (source.pmf, source.p_w[:, None]))
    after = float(solution.terms["risk"]) if law.proved else unit * leakage.total(law.joint)
    return {"leakage": {"measure": leakage.name, "before": before, "after": after, "none": none}}


def _warnings(
    source: DiscreteSource, solution: Solution, other: Mapping[str, Any], dropped: Sequence[str]
) -> list[str]:
    """Return what makes the release idle."""
    notes, (w, x) = [], source.names[:2]
    if source.information(units=solution.units) == 0:
        notes.append(f"{w} is independent of {x}: nothing needs to be changed")
    elif other and other["leakage"]["before"] <= other["leakage"]["none"] + NOTHING:
        notes.append(
            f"in {other['leakage']['measure']}, {x} itself tells no more about {w} than no release "
            "does: nothing needs to be changed"
        )
    assert source.schema is not None
    copied = [name for name in source.schema.sensitive if name not in dropped]
    banded = [name for name in copied if name in source.schema.bins]
    if banded:
        notes.append(
            f"{', '.join(banded)} is copied as it is: what is proved is of its intervals alone"
        )
    return notes


def report_text(document: Mapping[str, Any], source: DiscreteSource, solution: Solution) -> str:
    """Return the facts of a release in plain words."""
    units, before, (w, x) = document["units"], document["risk_before"], source.names[:2]
    after, law = document["released_law"]["risk"], document["released_law"]["name"]
    of_law = "" if law == RANDOMISATION else f", of {law}"
    share = f" = {after / before:.0%} of it" if before > 0 else ""
    chance = chance_in_words(document["risk_before_bias"], document.get("recoding", {}))
    lines = [
        f"{document['table']}: {source.records:,} records, {w} in {len(source.w)} "
        f"values, {x} in {len(source.x)} observed cells",
        str(solution),
        f"  risk before      {before:.6g} {units}, {chance}",
        f"  risk after       {after:.6g} {units}{share}{of_law}",
    ]
    if "whatever_prior" in document["released_law"]:
        most = f"at most {upwards(document['released_law']['whatever_prior'])} {units}"
        lines.append(f"  whatever prior   {most}: no belief of {w} learns more on average")
    lines += _informed_lines(document, x)
    if "leakage" in document:
        leakage = document["leakage"]
        lines.append(
            f"  {leakage['measure']}: {leakage['before']:.6g} before, "
            f"{leakage['after']:.6g} after, {leakage['none']:.6g} without any release"
        )
    lines += _check_lines(document)
    if document["untouched"]:
        lines.append(f"what the other columns reveal about {w}, each by itself:")
        lines += [f"  {leak['words']}" for leak in document["untouched"]]
        assert source.schema is not None
        gone = document.get("columns_dropped", ())
        there = [name for name in source.schema.sensitive if name not in gone]
        lines += [f"  {cells(there)} itself is copied as it is"] * bool(there)
    if document["joint_disclosure"]:
        lines += joint_lines(document["joint_disclosure"])
    lines += [f"note: {note}" for note in document["notes"] if note not in solution.notes]
    words = {
        "out": records_drawn(document["released"]),
        "certificate": f"the proof; it contains the joint law of {w}{{private}}: keep it with the "
        "original table",
        "channel": "the channel, for `cvxprivacy apply`; it holds the law of its inputs{private}",
        "problem-out": "the problem, for `cvxprivacy verify --problem` and `cvxprivacy solve`",
        **dict.fromkeys(("report", "report, again"), REPORTED),
    }
    if "merged" in document:
        words["channel"] = (
            "the channel, with its groups merged, for `cvxprivacy apply`; it holds the law of its "
            "inputs{private}"
        )
    if "sequel" in document:
        words["channel"] = "the channel of records in all tables{private}"
    words |= {f"{name}, new records": f"of new records: {text}" for name, text in words.items()}
    shuffled = document["order"]["shuffled"]
    return "\n".join([*lines, *described(document["files"], words, shuffled=shuffled)])


def joint_lines(together: Mapping[str, Any]) -> list[str]:
    """Return what copied columns reveal together, in words."""
    return [
        "what the copied columns reveal together:",
        *(f"  {line}" for line in together["lines"]),
    ]


def _informed_lines(document: Mapping[str, Any], x: str) -> list[str]:
    """Return what who knows X learns of other laws than that of the proof, and of a table."""
    if "informed" not in document:
        return []
    informed, lines = document["informed"], []
    if informed["law"] != RANDOMISATION:
        lines.append(f"  who knows {x}, of {informed['law']}: {informed['words']}")
    if "table" in informed:
        lines.append(f"  who knows {x}, of the table that was drawn: {informed['table']['words']}")
    return lines


def records_drawn(drawn: Mapping[str, Any]) -> str:
    """Return how many records were released, changed and left out; nothing if none were drawn."""
    if not drawn:
        return ""
    text = f"{drawn['records']:,} records"
    if "changed" in drawn:
        text += f", {drawn['changed']:,} of them changed"
    if drawn["dropped"]:
        text += f"; {drawn['dropped']:,} with missing values are left out"
    return text


# ---- what is copied beside the key -------------------------------------------------------


def with_copied(
    document: Mapping[str, Any],
    source: DiscreteSource,
    leaks: Sequence[Leak],
    together: JointDisclosure | None,
) -> dict[str, Any]:
    """Return a release's facts with what the copied columns reveal about W and the key."""
    assert source.schema is not None
    after, keys = document["released_law"]["risk"], source.schema.key
    about_w = [leak for leak in leaks if leak.about not in keys]
    undone = undoing(leaks, keys)
    advice = [*(entry["words"] for entry in undone), *advised(about_w, after)]
    advice += [] if together is None else together.advice()
    return {
        **document,
        "untouched": [leak.document(after) for leak in about_w],
        "joint_disclosure": None if together is None else together.document(),
        "undone": undone,
        "advice": advice,
        "notes": [*document["notes"], *advice],
    }


# ---- the drawn table beside what was asked -----------------------------------------------


def with_checks(
    document: Mapping[str, Any],
    checks: Sequence[Check],
    solution: Solution,
    source: DiscreteSource,
    drawn: DrawnTable | None,
) -> dict[str, Any]:
    """Return a release's facts with how it stands with what was asked, and what it changes.

    Of the table that was drawn, or of the law where none was.
    """
    facts = dict(document)
    facts["changes"] = [asdict(change) for change in _changes(solution, source, drawn)]
    facts["distortion_words"] = [str(Change(**change)) for change in facts["changes"]]
    facts["notes"] = [*facts["notes"], *_idle(solution, source, facts["changes"])]
    facts["checks"] = [check.document() for check in checks]
    facts["notes"] += [check.caution for check in checks if check.caution]
    if drawn is None:
        return facts
    sizes = drawn.counts.sizes[drawn.counts.sizes > 0]
    facts["drawn"] = {
        "groups": len(sizes),
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "distortion": float(drawn.distortion),
        "risk": mutual_information(drawn.counts.joint, units=solution.units),
    }
    if drawn.informed is not None and drawn.designed is None and "informed" in facts:
        table = {**drawn.informed.document(), "words": drawn.informed.words}
        facts["informed"] = {**facts["informed"], "table": table}
    if drawn.merging is not None:
        facts["merged"] = {
            "groups": len(drawn.merging.moves),
            "records": drawn.merging.records,
            "left": int((drawn.counts.sizes > 0).sum()),
            "distortion_before": float(drawn.drawn_distortion),
            "distortion_after": float(drawn.distortion),
            "distortion": drawn.law.mean_distortion,
            "risk": drawn.risk,
            "ties": _ties(source),
        }  # fmt: skip
    if drawn.designed is not None:
        facts["designed"] = _designed(drawn.designed)
        facts["notes"].append(facts["designed"]["words"])
    if drawn.undesigned is not None:
        why = drawn.undesigned
        facts["undesigned"] = {"reason": why.reason, "words": why.words}
        facts["notes"].append(why.words)
    facts["notes"] += _drawn_notes(drawn, kept="channel" in document["files"])
    return facts


def _designed(table: TableSolution) -> dict[str, Any]:
    """Return how a table that was designed in whole counts stands, in numbers and in words."""
    has, leaks = "no table has", ""
    if table.budget is not None:
        unit = "" if table.leakage else f" {table.units}"
        has = "no table within the budget tells"
        leaks = f", and {table.leakage or 'I(W; X̂)'} is {table.value:.6g}{unit}"
    ends = ["nothing is proved of other tables"]
    if table.lower > -math.inf:
        ends = [f"{has} less than {table.lower:.6g}, as is proved"]
    if table.rounding is not None and not math.isnan(table.rounding.lower):
        ends.append(f"no channel of the key alone less than {table.rounding.lower:.6g}")
    elif table.status != "proved optimal" and table.claimed > -math.inf:
        ends.append(f"and by the solver's claim none less than {table.claimed:.6g}")
    chance = "which records of a cell move"
    if table.rounding is not None:
        chance = f"which rounding it is, and {chance},"
    words = (
        f"the table was designed in whole counts, and not drawn: its distortion is "
        f"{table.distortion:.6g}{leaks}; {', '.join(ends)}; {chance} is chance"
    )
    lower, claimed = (x if math.isfinite(x) else None for x in (table.lower, table.claimed))
    return {
        "status": table.status, "distortion": table.distortion, "value": table.value,
        "minimised": "distortion" if table.budget is None else "leakage",
        "lower": lower, "claimed": claimed, "blind": table.rounding is not None,
        "words": words,
    }  # fmt: skip


def relaxed(rule: Criterion, of_law: Sequence[Criterion]) -> str:
    """Say what a program, its proof and a problem file have in place of a criterion of a table."""
    asked = f"{rule.relaxation!r}, which every such table satisfies"
    if rule.relaxation not in of_law:  # of too many cells
        asked = "nothing"
    return (
        f"{rule!r} is of a table: the program, what is proved of it and its problem file ask for "
        f"{asked}"
    )


def _ties(source: DiscreteSource) -> str:
    """Say which of the groups that cost the same were merged."""
    assert source.schema is not None
    names = ", ".join(orders_of(source.schema, source.levels))
    by = f"by the order of {names}" if names else "which are those with fewer values changed"
    return f"of merges that cost the same the one to the nearest values is made, {by}"


def _changes(solution: Solution, source: DiscreteSource, drawn: DrawnTable | None) -> list[Change]:
    """Return what the drawn table changes of its records, or the law where none was drawn."""
    channel, schema = solution.channel, source.schema
    assert channel is not None
    assert schema is not None
    if drawn is not None:
        counts = drawn.counts
        moved = counts.x_at, counts.y_at, counts.records
        return changes(moved, counts.x, counts.outputs, schema)
    from scipy import sparse

    joint: Any = sparse.coo_array(channel.matrix)
    moved = joint.row, joint.col, joint.data * channel._prior()[joint.row]
    place = channel.encoder.index("x")
    x = [letter if channel.encoder == "x" else letter[place] for letter in channel.inputs]
    return changes(moved, x, channel.outputs, schema)


def _idle(solution: Solution, source: DiscreteSource, changed: Sequence[Any]) -> list[str]:
    """Say that nothing is withheld, where it might have been."""
    channel, letters = solution.channel, set(source.x)
    assert channel is not None
    allowed = any(y not in letters for y in channel.outputs)
    if not allowed or any(change["suppressed"] for change in changed):
        return []
    return ["nothing is withheld: at the cost of --suppress another value is the cheaper lie"]


def _drawn_notes(drawn: DrawnTable, *, kept: bool) -> list[str]:
    """Return what is to be said of a table that was drawn; a channel may be kept."""
    notes = []
    if drawn.broken:
        names = ", ".join(check.stated for check in drawn.broken)
        notes.append(f"the table that was drawn breaks {names}: --ensure table does not")
    if drawn.constant:
        notes.append(CONSTANT)
    if drawn.merging is not None and kept:
        notes.append(
            "the channel that is kept merges the groups that were merged, which were chosen by "
            "looking at this table: by the same seed `cvxprivacy apply` releases it again; the "
            "proof is of the channel before that"
        )
    return notes


def _check_lines(document: Mapping[str, Any]) -> list[str]:
    """Return in words how the table stands, and what it changes."""
    lines = []
    law = document["released_law"]
    if document.get("checks") and (document["released"] or not law["proved"]):
        of = f"{law['name']} (proved)" if law["proved"] else law["name"]
        counted = document["released"] and "sequel" not in document
        drawn = " and on the table that is released" if counted else ""
        lines.append(f"what was asked, on {of}{drawn}:")
        lines += lines_of(document["checks"])
    if document.get("merged"):
        merged = document["merged"]
        lines.append(
            f"merged: {many(merged['groups'], 'group')} of {merged['records']:,} records, which "
            f"leaves {merged['left']:,}; the distortion "
            f"of the table is {merged['distortion_after']:.4g}, "
            f"{merged['distortion_before']:.4g} as it was drawn; on average it is then "
            f"{merged['distortion']:.4g}, and the release tells {merged['risk']:.6g} "
            f"{document['units']}; {merged['ties']}"
        )
    lines.append("what is changed:")
    return [*lines, *(f"  {line}" for line in document["distortion_words"])]
