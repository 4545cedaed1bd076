"""``cvxprivacy verify``: a proof proved again, and tied to its table and to its question."""

from __future__ import annotations

import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvxprivacy.certificates.differences import differences
from cvxprivacy.certificates.statement import quoted, reported, stated
from cvxprivacy.certificates.verify import disagreements, read_document
from cvxprivacy.cli.common import reading_of, say_json, table_options, told
from cvxprivacy.errors import InputError

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem

__all__ = ["verify"]


@click.command()
@click.argument("proofs", nargs=-1, required=True, metavar="PROOF...", type=click.Path())
@click.option("--table", type=click.Path(), help="The table that the proof was made for: it is "
              "counted again, with the recorded columns and bins, and compared with the proof's "
              "law.")  # fmt: skip
@click.option("--problem", type=click.Path(), help="The problem, in TOML, that the proof should be "
              "of: it is stated anew, of TABLE if that is given, and compared with the proof's "
              "program, number by number.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options
@told
def verify(
    proofs: tuple[str, ...], table: str | None, problem: str | None, as_json: bool, **options: Any
) -> None:
    """Prove every claim of PROOF again, trusting none; exit 1 if one is not proved.

    What is proved is said in plain words, from the proof's own data.  Needs neither CVXPY nor a
    solver.  A copy of the table with another delimiter, encoding or quoting is the same table:
    its cells decide.
    """
    reading = reading_of(options)
    asked = None if problem is None else _asked(problem, table, reading)
    results: dict[str, Any] = {}
    for path in proofs:
        try:
            document = read_document(path)
        except (ValueError, RecursionError) as error:
            said, remedy = f"unreadable ({error})", "pass a proof that this package wrote"
            raise InputError(path, said, remedy) from None
        problems, another, note = disagreements(document), False, ""
        statement = [] if problems else stated(document)
        if not problems and table is not None:
            problems = [f"{table}: {said}" for said in _recounted(document, table, reading)]
        if not problems and asked is not None:
            found, note = _compared(document, asked)
            problems, another = [f"{problem}: {said}" for said in found], bool(found)
        claim: dict[str, Any] = document["claim"] if not problems else {}
        results[path] = {
            "verified": not problems, "problems": problems, "claim": claim, "statement": statement,
        }  # fmt: skip
        if as_json:
            continue
        if problems:
            failed = f"NOT a proof of {problem}" if another else "NOT verified"
            click.echo("\n  ".join([f"{path}: {failed}", *problems]))
            if another:
                click.echo("\n    ".join(["  what it proves:", *statement]))
        else:
            click.echo(reported(path, document))
            if table is not None:
                from cvxprivacy.results.recount import recounted

                click.echo(f"{table}: {recounted(document)}")
            if problem is not None:
                click.echo(f"{problem}: the proof is of this problem{note}")
    if as_json:
        say_json(results)
    if not all(result["verified"] for result in results.values()):
        sys.exit(1)


def _recounted(document: dict[str, Any], table: str, reading: dict[str, Any]) -> list[str]:
    """Return how a file differs from the proof's table, however it is written."""
    from cvxprivacy.cli.tables import alike
    from cvxprivacy.results.recount import coding_of, recount

    coding = coding_of(document)
    names = [*coding.columns, *([coding.weights] if coding.weights else [])]
    found: list[str] = []
    for opened in alike(table, coding.reading, reading, names):
        try:
            frame = opened.frame(names, binned=list(coding.bins))
        except InputError as error:
            problems = [error.problem]
        else:
            problems = recount(document, frame)
        if not problems:
            return []
        found = found or problems
    return found


# ---- the question ------------------------------------------------------------------------


def _asked(path: str, table: str | None, reading: dict[str, Any]) -> ChannelProblem:
    """Return the problem of a TOML file, of the table given in place of its own."""
    from cvxprivacy.cli.problemfile import read
    from cvxprivacy.cli.release import source_of
    from cvxprivacy.cli.solve import table_of
    from cvxprivacy.cli.tables import alike
    from cvxprivacy.tables.frames import listed

    @wraps(table_of)  # whose options the problem file may use
    def opened(named: Path, **how: Any) -> Any:
        if table is None:
            return table_of(named, **how)
        said = {name: how.pop(name, None) for name in reading}
        roles = ("sensitive", "key", "side", "weights")
        names = [name for role in roles if how.get(role) for name in listed(how[role], role)]
        return source_of(next(alike(table, said, reading, names)), **how)[1]

    return read(path, table=opened).problem


def _compared(document: dict[str, Any], problem: Any) -> tuple[list[str], str]:
    """Return how a proof differs from a problem, and what is to be said if it does not."""
    program, note, outputs = document["program"], "", True
    if getattr(problem, "cut", False):  # strategies are generated as it is solved
        informed = problem.informed
        if len(program.get("law", [[]])[0]) == informed.n != problem.n:
            problem, note = informed, ", and of its lower end: Z is at the encoder too"
        else:
            note, outputs = "; its letters were generated, and all else is as stated", False
    asked = problem.program.to_dict()
    if problem.source.weighted and _summed_alike(program.get("law"), asked["law"]):
        asked["law"] = program["law"]
    found = differences(program, asked, outputs=outputs)
    return [*found, *_recorded(document, problem)], note


def _summed_alike(law: Any, other: Any) -> bool:
    """Tell whether two laws are sums of the same weights, added in any order."""
    import numpy as np

    from cvxprivacy.results.recount import TOLERANCE

    if np.shape(law) != np.shape(other):
        return False
    return bool((np.abs(np.subtract(law, other)) <= TOLERANCE * np.sum(law)).all())


def _recorded(document: dict[str, Any], problem: Any) -> list[str]:
    """Return where the record of the table, which says what letters mean, is not the problem's."""
    from cvxprivacy.results.recount import record

    mine, theirs = document["table"], record(problem.source, problem.seen)
    if mine is None or theirs is None:
        return []
    return [
        f"record of the table: its {quoted(key)} is not the problem's"
        for key in theirs
        if key != "reading" and mine.get(key) != theirs[key]
    ]
