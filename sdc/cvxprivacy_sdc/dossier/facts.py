"""The facts of a dossier: one document that its page and its JSON both say.

Which sections there are is in :mod:`.sections`; what a command does not know stands in ``left_out``
with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cvxprivacy.certificates.certificate import refuse_other
from cvxprivacy.programs.expression import first_part
from cvxprivacy_sdc.dossier import provenance, tradeoff, words
from cvxprivacy_sdc.dossier.board import (
    audit_verdict,
    audited,
    cautions,
    check_facts,
    figures,
    release_verdict,
    unmodified_columns,
)
from cvxprivacy_sdc.dossier.leaks import counted, leaks, of_order, of_release
from cvxprivacy_sdc.dossier.provenance import Asked, Facts, Kept, input_facts, verification
from cvxprivacy_sdc.dossier.secrecy import Guard, file_name, guard_of
from cvxprivacy_sdc.dossier.sections import ABSENT, SCHEMA, SECTIONS
from cvxprivacy_sdc.dossier.tables import Drawn, counted_letters, measures, uncertainty
from cvxprivacy_sdc.dossier.words import rounded
from cvxprivacy_sdc.statements.exits import notes

if TYPE_CHECKING:
    from cvxprivacy.criteria import Criterion
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.release.channel import Channel
    from cvxprivacy.results.solution import Solution
    from cvxprivacy_sdc.auditing import Audit
    from cvxprivacy_sdc.copied.order import OrderTest
    from cvxprivacy_sdc.releases.check import Check

__all__ = [
    "audit_facts",
    "dossier_of",
    "of_files",
    "program_facts",
    "release_facts",
    "statement_rows",
]

SIGNATURES = ("Prepared by", "Approved by the disclosure board")


def release_facts(
    asked: Asked,
    data: Mapping[str, Any],
    problem: ChannelProblem,
    source: DiscreteSource,
    solution: Solution,
    document: Mapping[str, Any],
    checks: Sequence[Check],
    kept: Kept,
    seconds: float,
    progress: Callable[[str], object] | None,
    order: OrderTest,
    frame: Any,
    *,
    criteria: Sequence[Criterion] | None = None,
    channel: Channel | None = None,
) -> Facts:
    """Return the facts of a release.

    Parameters
    ----------
    data : mapping
        The problem as it was typed (:func:`cvxprivacy_sdc.statements.statement.problem_data`).
    source : DiscreteSource
        The table, counted.
    document : mapping
        What the command reports (:func:`cvxprivacy_sdc.dossier.report.report`).
    checks : sequence of Check
        How what is released stands with what was asked.
    kept : Kept
        The files as they were written.
    seconds : float
        How long the problem took to solve.
    progress : callable or None
        Is told how far the curve is.
    order : OrderTest
        What the orders that are released tell.
    frame : frame of any kind
        The original, as it was counted.
    criteria : sequence of Criterion, optional
        As they were typed; by default the problem's.
    channel : Channel, optional
        That wrote the table, of records that were drawn one by one or dealt out in whole counts.

    Raises
    ------
    InputError
        For a solution of another problem.
    """
    refuse_other(solution.certificate, problem, "solution")
    guard, schema, sequel = guard_of(source), source.schema, document.get("sequel")
    assert schema is not None
    criteria = problem.criteria if criteria is None else criteria
    drawn = Drawn.of(asked, frame, source, criteria, kept, data["units"], channel)
    minimised = _minimised(problem, sequel=sequel is not None)
    height = _height(problem, source, solution, data)
    curve, why = tradeoff.curve(
        problem, solution, minimised, height, seconds=seconds, progress=progress
    )
    why = why if guard.allows(why) else "it could not be solved"
    left_out = {**drawn.left_out, **({"The trade-off": why} if curve is None else {})}
    balanced = document.get("draw") == "balanced"
    verdict = release_verdict(document, checks, drawn.audit is not None)
    changes = guard.kept(document.get("distortion_words") or [], numbers=False)
    if not document["released"] or sequel is not None:
        changes = [f"{line} (expected of the randomisation)" for line in changes]
    seed = provenance.seed_of(asked.arguments, balanced=balanced)
    return dossier_of(
        "release",
        **of_files(
            asked,
            schema,
            guard,
            kept,
            verdict,
            _sizes(source),
            document.get("notes", []),
            seed,
            sequel=sequel is not None,
        ),
        leaks=leaks(
            schema,
            asked.opened,
            source.records or 0,
            **of_release(document, drawn.audit),
            **of_order(order),
        ),
        undecided=_undecided(checks, criteria),
        cautions=[
            *cautions(document, seed, source, checks, drawn),
            *(() if sequel is None else sequel["statements"]),
        ],
        asked=words.asked(data, criteria, schema),
        distortion_words=changes,
        figures=figures(document),
        program=program_facts(
            problem,
            solution,
            minimised,
            sees=problem.encoder,
            designed="designed" in document,
            draw=document.get("draw", "independent"),
            weights=data["distortion"].get("weights"),
        ),
        sequel=sequel and {k: v for k, v in sequel.items() if k != "statements"},
        checks=check_facts(checks, drawn.audit),
        merged=document.get("merged"),
        letters=drawn.audit and counted_letters(drawn.audit, criteria, asked.opened.labels),
        measures=drawn.audit and measures(drawn.audit, guard),
        tradeoff=curve,
        prices=tradeoff.prices(problem, solution, minimised),
        changed=drawn.changed,
        loss=drawn.losses,
        quality=drawn.quality,
        unmodified=unmodified_columns(document),
        uncertainty=uncertainty(drawn.audit, chosen="options" in document.get("recoding", {})),
        definitions=words.definitions(criteria),
        left_out=left_out,
    )


def _undecided(checks: Sequence[Check], criteria: Sequence[Any]) -> list[str]:
    """Return the criteria of a table that are not decided, as no table was drawn."""
    stated = {check.stated for check in checks}
    return [repr(rule) for rule in criteria if rule.of_table and repr(rule) not in stated]


def _sizes(source: DiscreteSource) -> dict[str, int]:
    """Return how many records a source has, and of how many values they are."""
    counted = {"records": source.records or 0, "left_out": source.dropped}
    return {**counted, "w": len(source.w), "x": len(source.x)}


def of_files(
    asked: Asked, schema: Any, guard: Guard, kept: Kept, verdict: Facts, sizes: Mapping[str, int],
    notes: Sequence[str], seed: Facts, **how: bool,
) -> Facts:  # fmt: skip
    """Return the sections of a release's files: where they come from, which leaves the house."""
    check = verification(kept, asked, guard, schema.sensitive, **how)
    released = next((row for row in check["files"] if row["option"] == "--out"), None)
    stay = [row["name"] for row in check["files"] if row is not released]
    stay = [f"{asked.house.table['name']} (the original)", *stay, asked.house.name]
    return {
        "title": f"Release of {file_name(asked.table)}",
        "verdict": verdict,
        "files": handed_on(verdict, released, stay),
        "input": input_facts(asked, schema, sizes, guard, notes, seed),
        "verification": check,
    }


def handed_on(verdict: Facts, released: Facts | None, stay: Sequence[str | None]) -> Facts:
    """Return which file leaves the house, with its SHA-256, and which never do.

    ``stay`` has the names of all other files, None for one that is not there.
    """
    return {
        "released": released and {name: released[name] for name in ("name", "sha256")},
        "leaves": released is not None and verdict["may_be_released"] is True,
        "stay": [*dict.fromkeys(name for name in stay if name), "this report"],
    }


def dossier_of(kind: str, *, left_out: Mapping[str, str], **sections: Any) -> Facts:
    """Return the sections in the order of the schema; empty those that nothing is known of."""
    return {
        **{name: None if name in ABSENT else [] for name in SECTIONS},
        "uncertainty": {"rows": []},
        "schema": SCHEMA,
        "kind": kind,
        **sections,
        "signatures": list(SIGNATURES) if sections["verdict"]["may_be_released"] else [],
        "left_out": [{"section": section, "why": why} for section, why in left_out.items()],
    }


def _minimised(problem: ChannelProblem, *, sequel: bool = False) -> tuple[str, str]:
    """Return what is minimised, in words, and its unit."""
    objective = first_part(problem.program.objective)
    if not objective.weights:
        return "the least mean change per record", ""
    measure = getattr(problem, "leakage", None)
    if getattr(problem, "prior", "source") == "any":
        return (
            "the least that the key tells, whatever is believed beforehand",
            problem.program.units,
        )
    if measure is None or measure.informs:
        what = "all releases together tell" if sequel else "the released key tells"
        return f"the least that {what}", problem.program.units
    return f"the least {measure.name}", problem.program.units if measure.in_units else ""


def _height(
    problem: ChannelProblem, source: DiscreteSource, solution: Solution, data: Mapping[str, Any]
) -> float:
    """Return how high the curve is, in the unit of the optimum."""
    measure = getattr(problem, "leakage", None)
    if "budget" not in data:
        return 2 * float(solution.terms["distortion"])
    if measure is None or measure.informs:
        return source.information(units=solution.units)
    more = measure.total(source.pmf) - measure.total(source.p_w[:, None])
    return abs(more) * measure.unit(solution.units)


def program_facts(
    problem: Any, solution: Solution, minimised: tuple[str, str], *, sees: str,
    designed: bool = False, draw: str = "independent", weights: Mapping[str, float] | None = None,
) -> Facts:  # fmt: skip
    """Return a program in mathematics, and its optimum.

    ``minimised`` is what is, in words, and its unit; parts of the distortion are told with their
    ``weights``, so that they add up to it.
    """
    scale = {f"distortion of {name}": weight for name, weight in (weights or {}).items()}
    return {
        "designed": designed,
        "draw": draw,
        "sees": sees,
        "formulation": type(problem).__name__,
        "statement": solution.statement,
        "rows": statement_rows(problem.latex),
        "status": solution.status,
        "minimised": minimised[0],
        "unit": minimised[1],
        "lower": rounded(solution.lower, 12),
        "upper": rounded(solution.upper, 12),
        "gap": rounded(solution.gap, 3),
        "terms": [
            {"name": n, "value": rounded(float(v) * scale.get(n, 1))}
            for n, v in solution.terms.items()
        ],
    }


def statement_rows(latex: str) -> list[dict[str, str]]:
    """Split a program, in LaTeX's ``aligned``, into rows of what stands left and right."""
    body = latex.replace(r"\begin{aligned}", "").replace(r"\end{aligned}", "")
    rows = []
    for line in body.split(r"\\"):
        left, _sign, right = line.partition("&")
        rows.append({"left": left.replace(r"\quad", "").strip(), "right": right.strip()})
    return rows


def audit_facts(asked: Asked, audit: Audit, released: str | None, opened: Any) -> Facts:
    """Return the facts of an audit: ``released`` is the path of the released table, if any."""
    source, original = audit.released, audit.original
    before, guard, schema = guard_of(original), guard_of(source), source.schema
    assert schema is not None
    checks = audited(audit, schema)
    alone = released is None
    measured = measures(audit, guard)
    measured["notes"] = before.kept(measured["notes"])
    verdict = audit_verdict(checks)
    table = asked.house.table
    of_released = (
        {"name": table["name"], "sha256": None}
        if released is None
        else provenance.input_file(released)
    )
    stay = [None if alone else f"{table['name']} (the original)", asked.house.name]
    return dossier_of(
        "audit",
        title=f"Audit of {file_name(released or asked.table)}",
        verdict=verdict,
        leaks=leaks(schema, opened, source.records or 0, **counted(audit)),
        files=handed_on(verdict, of_released, stay),
        cautions=[
            "the columns that are neither confidential nor key were not measured: what they tell "
            "comes on top"
        ],
        asked=words.asked({"units": audit.units, "distortion": {}}, audit.criteria, schema),
        input={
            **input_facts(asked, original.schema, _sizes(original), before, notes(), None),
            "released": None if alone else of_released,
        },
        checks=check_facts(checks, audit),
        letters=counted_letters(audit, audit.criteria, asked.opened.labels),
        measures=measured,
        uncertainty=uncertainty(audit),
        definitions=words.definitions(audit.criteria),
        left_out={
            "The program": "an audit measures a table and solves nothing",
            "The trade-off": "an audit solves nothing",
            "Changed cells and loss": "an audit does not set records side by side",
            "Unmodified columns": "an audit counts the columns that it is told of",
            "Proof": "an audit proves nothing: it counts",
        },
    )
