"""The facts of a dossier: one document that its page and its JSON both say.

Which sections there are is in ``schema.json``; what a command does not know stands in ``left_out``
with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cvxprivacy.certificates.certificate import refuse_other
from cvxprivacy.cli.dossier import provenance, tradeoff, words
from cvxprivacy.cli.dossier.board import (
    cautions,
    found_rows,
    merged_groups,
    unmodified_columns,
)
from cvxprivacy.cli.dossier.checks import audit_verdict, checks_of, release_verdict
from cvxprivacy.cli.dossier.common import (
    Asked,
    Facts,
    guard_of,
    input_facts,
    measures,
    uncertainty,
    worst_group,
)
from cvxprivacy.cli.dossier.drawn import Drawn
from cvxprivacy.cli.dossier.mathematics import statement_rows
from cvxprivacy.cli.dossier.secrecy import file_name
from cvxprivacy.cli.dossier.tables import counted_letters, rounded
from cvxprivacy.cli.dossier.verification import verification
from cvxprivacy.programs.worst import first_part

if TYPE_CHECKING:
    from cvxprivacy.cli.dossier.provenance import Kept
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.microdata.audit import Audit
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.results.solution import Solution

__all__ = ["SCHEMA", "audit_facts", "release_facts"]

SCHEMA = "cvxprivacy dossier 1"
SIGNATURES = ("Prepared by", "Approved by the disclosure board")


def release_facts(
    asked: Asked,
    data: Mapping[str, Any],
    problem: ChannelProblem,
    source: DiscreteSource,
    solution: Solution,
    document: Mapping[str, Any],
    kept: Kept,
    seconds: float,
    progress: Callable[[str], object] | None = None,
) -> Facts:
    """Return the facts of a release.

    Parameters
    ----------
    data : mapping
        The problem as it was typed (:func:`cvxprivacy.cli.statement.problem_data`).
    source : DiscreteSource
        Of the whole table, of which the problem's may be a part.
    document : mapping
        What the command reports (:func:`cvxprivacy.cli.report.report`).
    kept : Kept
        The files as they were written.
    seconds : float
        How long the problem took to solve.
    progress : callable, optional
        Is told how far the curve is.

    Raises
    ------
    InputError
        For a solution of another problem.
    """
    refuse_other(solution.certificate, problem, "solution")
    guard, schema = guard_of(source), source.schema
    assert schema is not None
    drawn = Drawn.of(asked, source, problem.criteria, kept, data["units"])
    minimised = _minimised(problem)
    measure = getattr(problem, "leakage", None)
    height = source.information(units=solution.units)
    if "budget" not in data:
        height = 2 * float(solution.terms["distortion"])
    elif measure is not None and not measure.informs:
        height = abs(measure.total(source.pmf) - measure.total(source.p_w[:, None]))
    curve, no_curve = tradeoff.curve(
        problem, solution, minimised, height, seconds=seconds, progress=progress
    )
    checks = checks_of(document, problem.criteria, solution, drawn.audit, schema)
    left_out = [*drawn.left_out]
    if curve is None:
        why = no_curve if guard.allows(no_curve) else "it could not be solved"
        left_out.append({"section": "The trade-off", "why": why})
    if data.get("weights") or source.weighted:
        why = "records are counted, not weighted, in the tables of groups and in their measures"
        left_out.append({"section": "Survey weights", "why": why})
    seed = provenance.seed_of(asked.arguments)
    unmodified = unmodified_columns(document, solution)
    smallest = None if drawn.audit is None else drawn.audit.measures["k"].worst
    return {
        "schema": SCHEMA,
        "kind": "release",
        "title": f"Release of {file_name(asked.table)}",
        "verdict": release_verdict(document, checks, drawn.audit is not None),
        "cautions": cautions(document, seed, unmodified, source, checks, smallest),
        "asked": words.asked(data, problem.criteria, schema),
        "distortion_words": guard.kept(document.get("distortion_words") or [], numbers=False),
        "found": found_rows(document, solution, drawn),
        "signatures": list(SIGNATURES),
        "input": input_facts(asked, source, guard, document.get("notes", []), seed),
        "program": _program(problem, solution, minimised),
        "checks": checks,
        "merged": merged_groups(document.get("merged")),
        "letters": drawn.audit and counted_letters(drawn.audit, problem.criteria),
        "measures": drawn.audit and measures(drawn.audit, guard),
        "tradeoff": curve,
        "prices": tradeoff.prices(problem, solution, minimised),
        "changed": drawn.changed,
        "loss": drawn.losses,
        "unmodified": unmodified,
        "uncertainty": uncertainty(drawn.audit, guard, document.get("population")),
        "definitions": words.definitions(_terms(drawn), problem.criteria),
        "verification": verification(
            kept, asked, guard, schema.sensitive, all_records=source is problem.source
        ),
        "left_out": left_out,
    }


def _minimised(problem: ChannelProblem) -> tuple[str, str]:
    """Return what is minimised, in words, and its unit."""
    objective = first_part(problem.program.objective)
    if not objective.weights:
        return f"the least expected {objective.name}", ""
    measure = getattr(problem, "leakage", None)
    if measure is None or measure.informs:
        return "the least leakage", problem.program.units
    return f"the least {measure.name}", ""


def _program(problem: ChannelProblem, solution: Solution, minimised: tuple[str, str]) -> Facts:
    """Return the statement in mathematics, what its letters are, and what was proved of it."""
    schema = problem.source.schema
    assert schema is not None
    w, x = words.cells(schema.sensitive), words.cells(schema.key)
    symbols = [
        {"symbol": "W", "meaning": f"{w}, which is confidential"},
        {"symbol": "X", "meaning": f"{x}, the key"},
        {"symbol": r"\hat X", "meaning": f"the released {x}"},
        {
            "symbol": r"p(\hat x \mid x)" if problem.encoder == "x" else r"p(\hat x \mid w, x)",
            "meaning": "with which probability a record's cell is released as another"
            + ("" if problem.encoder == "x" else f"; it depends on {w} too"),
        },
    ]
    return {
        "formulation": type(problem).__name__,
        "statement": solution.statement,
        "rows": statement_rows(problem.latex),
        "symbols": symbols,
        "status": solution.status,
        "minimised": minimised[0],
        "unit": minimised[1],
        "lower": rounded(solution.lower, 12),
        "upper": rounded(solution.upper, 12),
        "gap": rounded(solution.gap, 3),
        "terms": [
            {"name": name, "words": words.quantity(name), "value": rounded(float(term))}
            for name, term in solution.terms.items()
        ],
    }


def _terms(drawn: Drawn) -> list[str]:
    """Return the terms that a report on a release uses."""
    terms = ["distortion", "law and drawn table", "proved", "price"]
    if drawn.losses is not None:
        terms += ["categorical"] + ["loss"] * (drawn.losses["numeric"] is not None)
    return terms


def audit_facts(asked: Asked, audit: Audit, released: str | None) -> Facts:
    """Return the facts of an audit: ``released`` is the path of the released table, if any."""
    source, original = audit.released, audit.original
    before, guard, schema = guard_of(original), guard_of(source), source.schema
    assert schema is not None
    checks = checks_of({}, audit.criteria, None, audit, schema)
    alone = released is None
    missing = [
        ("The program", "an audit measures a table and solves nothing"),
        ("The trade-off", "an audit solves nothing"),
        ("Changed cells and loss", "an audit does not set records side by side"),
        ("Unmodified columns", "an audit counts the columns that it is told of"),
        ("Proof", "an audit proves nothing: it counts"),
    ]
    measured = measures(audit, guard)
    measured["notes"] = before.kept(measured["notes"])
    title = file_name(released or asked.table)
    rows = [
        ("Records", f"{source.records:,}"),
        ("Released groups", f"{len(source.x):,}"),
        ("What the key tells", f"{audit.after.plugin:.4g} {audit.units}"),
        ("Smallest group", f"{audit.measures['k'].worst:,.0f} records"),
        ("Greatest divergence of a group", worst_group(audit)),
    ]
    if not alone:
        row = ("What the original key tells", f"{audit.before.plugin:.4g} {audit.units}")
        rows.insert(2, row)
    w = words.cells(schema.sensitive)
    return {
        "schema": SCHEMA,
        "kind": "audit",
        "title": f"Audit of {title}",
        "verdict": audit_verdict(checks),
        "cautions": [
            "the columns that are neither confidential nor key were not measured: what they tell "
            "comes on top"
        ],
        "asked": [f"{c!r}: {c.in_words(w=w, units=audit.units).asks}." for c in audit.criteria],
        "distortion_words": [],
        "found": [{"name": name, "value": value} for name, value in rows],
        "signatures": list(SIGNATURES),
        "input": {
            **input_facts(asked, original, before, [], None),
            "released": None if alone else provenance.input_file(str(released)),
        },
        "program": None,
        "checks": checks,
        "merged": None,
        "letters": counted_letters(audit, audit.criteria),
        "measures": measured,
        "tradeoff": None,
        "prices": [],
        "changed": None,
        "loss": None,
        "unmodified": None,
        "uncertainty": uncertainty(audit, guard),
        "definitions": words.definitions([], audit.criteria),
        "verification": None,
        "left_out": [{"section": section, "why": why} for section, why in missing],
    }
