"""``cvxprivacy verify``: a proof proved again, and tied to its table and to its question."""

from __future__ import annotations

import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.formats.house import checked_set
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.exits import say_json, wants_json
from cvxprivacy_verifier.differences import differences
from cvxprivacy_verifier.statement import reported, stated
from cvxprivacy_verifier.verify import disagreements, read_document
from cvxprivacy_verifier.wording import quoted
from cvxprivacy_verifier.work import allowing

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem

__all__ = ["verify"]


@click.command()
@click.argument("proofs", nargs=-1, metavar="[PROOF]...", type=click.Path())
@shared.file(
    "--table",
    "The table that the proof was made for: it is counted again, with the recorded columns and "
    "bins, and compared with the proof's law.",
)
@shared.file(
    "--problem",
    "The problem, in TOML, that the proof should be of: it is stated anew, of TABLE if that is "
    "given, and compared with the proof's program, number by number.",
)
@shared.file(
    "--released",
    "The table that was released of TABLE, as text, Parquet, a workbook or of Stata: it is counted "
    "beside it, record by record, by code of its own, and compared with --report.",
)
@shared.file(
    "--report",
    "What `release --json` printed of it: criteria that hold, records that are changed, groups.",
)
@click.option(
    "--work",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    metavar="TIMES",
    help="Allow so many times the usual work and memory, ten minutes and 1 GiB: a proof that asks "
    "for more is refused before it is read.",
)
@shared.as_json()
@shared.reads_tables
def verify(
    proofs: tuple[str, ...],
    table: str | None,
    problem: str | None,
    released: str | None,
    report: str | None,
    work: float,
    reading: dict[str, Any],
) -> None:
    """Prove every claim of PROOF again, trusting none; exit 1 if one is not proved.

    What is proved is said in plain words, from the proof's own data.  Needs neither CVXPY nor a
    solver.  A copy of the table with another delimiter, encoding or quoting is the same table:
    its cells decide.  With --released the drawn table is counted beside the original, and what
    --report says of it is decided again by code that shares nothing with what designs and draws;
    no PROOF is needed for it.  Where a set of files has its `NAME.house.json` beside PROOF, they
    are compared with what was written.
    """
    if (released is None) != (report is None) or (released and table is None):
        remedy = "pass --table, --released and --report together"
        raise InputError("--released", "a table is counted beside its original", remedy)
    if not proofs and released is None:
        raise InputError("PROOF", "none", "name a proof, or pass --released")
    stated_problem = None if problem is None else _problem(problem, table, reading)
    results: dict[str, Any] = {}
    with allowing(work):
        for path in proofs:
            document = _read(path)
            results[path], lines = _result(path, document, table, reading, problem, stated_problem)
            if not wants_json():
                click.echo("\n".join(lines))
    if released and table and report:
        results[released], lines = _counted(table, released, report)
        if not wants_json():
            click.echo("\n".join(lines))
    if wants_json():
        say_json(results)
    if not all(result["verified"] for result in results.values()):
        sys.exit(1)


_PRINTED = "pass what `release … --json > FILE` printed of the same release"


def _counted(table: str, released: str, report: str) -> tuple[dict[str, Any], list[str]]:
    """Return what is counted of a released table, as data and as lines of text."""
    from cvxprivacy_sdc.formats.second_reader import prepared
    from cvxprivacy_sdc.formats.shuffle import Shuffle
    from cvxprivacy_sdc.recount import recounted

    try:
        document = read_document(report)
    except (OSError, ValueError) as error:
        raise InputError("--report", f"{report}: {error}", _PRINTED) from None
    if str(document.get("schema", "")).startswith("cvxprivacy dossier"):
        raise InputError("--report", f"{report} is a report for a board", _PRINTED)
    try:
        ready, reader = prepared(document, table)
        shuffled = document.get("order", {}).get("shuffled")
        order = Shuffle.kept(released).order if shuffled else None
        outcome = recounted(table, released, ready, reader, order)
    except InputError:
        raise
    except (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        problem = str(error) if isinstance(error, ValueError | OSError) else repr(error)
        remedy = "pass the original, the table that was released of it, and what `release --json` "
        raise InputError("--released", problem, remedy + "printed then") from None
    sound = not outcome.problems
    head = f"{released}: counted again, and as {report} says" if sound else (
        f"{released}: NOT as {report} says"
    )  # fmt: skip
    lines = [head, *(f"  {line}" for line in [*outcome.problems, *outcome.lines])]
    result = {"verified": sound, "problems": outcome.problems, "statement": outcome.lines}
    return result, lines


def _read(path: str) -> dict[str, Any]:
    try:
        return read_document(path)
    except (ValueError, RecursionError) as error:
        remedy = "pass a proof that this package wrote"
        raise InputError(path, f"unreadable ({error})", remedy) from None


def _result(
    path: str,
    document: dict[str, Any],
    table: str | None,
    reading: dict[str, Any],
    problem: str | None,
    stated_problem: ChannelProblem | None,
) -> tuple[dict[str, Any], list[str]]:
    """Return what became of one proof, as data and as lines of text."""
    problems, failure = disagreements(document), "NOT verified"
    statement = [] if problems else stated(document)
    files = checked_set(path, table)
    lines = [] if problems else [reported(path, document), *files.lines]
    again = bool((document.get("table") or {}).get("earlier"))  # the problem ties it to both tables
    if not problems and table is not None and not (again and stated_problem is not None):
        unlike = _recounted(document, table, reading)
        problems = [f"{table}: {difference}" for difference in unlike]
        if not problems:
            from cvxprivacy.results.recount import agreement

            lines.append(f"{table}: {agreement(document)}")
    if not problems and stated_problem is not None:
        unlike, note = _compared(document, stated_problem)
        problems = [f"{problem}: {difference}" for difference in unlike]
        lines.append(f"{problem}: {note}")
        if problems:
            failure = f"NOT a proof of {problem}"
    if files.problems:
        failure = failure if problems else "NOT of one set"
        problems = [*problems, *files.problems]
    if problems:
        lines = ["\n  ".join([f"{path}: {failure}", *problems])]
        if failure != "NOT verified":
            lines.append("\n    ".join(["  what it proves:", *statement]))
    claim = {} if problems else document["claim"]
    if claim and stated_problem is not None and _from_below(document, stated_problem):
        infeasible = claim["status"] == "infeasible"
        claim = {**claim, "upper": "inf", "terms": {}}
        claim["status"] = "infeasible" if infeasible else "uncertified"
    return {
        "verified": not problems, "problems": problems, "claim": claim, "statement": statement,
    }, lines  # fmt: skip


def _from_below(document: dict[str, Any], problem: Any) -> bool:
    """Tell whether a proof could be of the encoder that knows Z, which bounds from below alone."""
    return getattr(problem, "cut", False) and "strategies" not in document


def _recounted(document: dict[str, Any], table: str, reading: dict[str, Any]) -> list[str]:
    """Return how a file differs from the proof's table, however it is written."""
    from cvxprivacy.results.recount import recount, schema_of
    from cvxprivacy_sdc.formats.table_files import copies

    schema = schema_of(document)
    names = [*schema.columns, *([schema.weights] if schema.weights else [])]
    first: list[str] = []
    for opened in copies(table, schema.reading, reading, names):
        try:
            problems = recount(document, opened.frame(names, binned=schema.bins))
        except InputError as error:
            problems = [f"{error.problem}; {error.remedy}"]
        if not problems:
            return []
        first = first or problems
    return first


def _problem(path: str, table: str | None, reading: dict[str, Any]) -> ChannelProblem:
    """Return the problem of a TOML file, of the table given in place of its own."""
    from cvxprivacy_sdc.formats.table_files import copies
    from cvxprivacy_sdc.statements.problemfile import read
    from cvxprivacy_sdc.statements.statement import role_columns, source_of, table_source

    @wraps(table_source)  # whose options the problem file may use
    def source(named: Path, **how: Any) -> Any:
        if table is None:
            return table_source(named, **how)
        recorded = {name: how.pop(name, None) for name in reading}
        names = [name for group in role_columns(how).values() for name in group]
        return source_of(next(copies(table, recorded, reading, names)), **how)[1]

    return read(path, table=source).problem


def _compared(document: dict[str, Any], problem: Any) -> tuple[list[str], str]:
    """Return how a proof differs from a problem, and what is to be said if it does not."""
    from cvxprivacy_sdc.statements.statement import refuse_intractable

    program, note = document["program"], "the proof is of this problem"
    if _from_below(document, problem):
        problem = problem.informed
        note = "the lower end is one of this problem: with Z at the encoder too, less is possible"
    elif getattr(problem, "cut", False):
        if document["dual"] is not None:  # others may release with less, or at all
            return ["lower end: of the strategies that are listed, and not of all"], ""
        note += ", over the strategies that were generated: its upper end is one of it"
        try:
            problem = problem.over(document["strategies"])
            refuse_intractable(problem, "strategies")
        except InputError as error:
            return [str(error)], ""
    elif "strategies" in document:
        return ["outputs: generated, where the problem lists its own"], ""
    stated_program = problem.program.to_dict()
    if problem.source.weighted and _summed_alike(program.get("law"), stated_program["law"]):
        stated_program["law"] = program["law"]
    unlike = differences(program, stated_program)
    return [*unlike, *_recorded(document, problem)], note


def _summed_alike(law: Any, other: Any) -> bool:
    """Tell whether two laws are sums of the same weights, added in any order."""
    import numpy as np

    from cvxprivacy.results.recount import TOLERANCE

    same = np.shape(law) == np.shape(other)
    return same and np.allclose(law, other, rtol=0.0, atol=TOLERANCE * np.sum(law))


def _recorded(document: dict[str, Any], problem: Any) -> list[str]:
    """Return where the record of the table, which says what letters mean, is not the problem's."""
    from cvxprivacy.results.recount import other_records, table_record

    mine, theirs = document["table"], table_record(problem.source, problem.alphabet.encoder_inputs)
    if mine is None or theirs is None:
        return []
    return [
        f"record of the table: its {quoted(key)} is not the problem's"
        for key in other_records(mine, theirs)
    ]
