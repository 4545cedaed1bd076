"""``cvxprivacy verify``: a proof proved again, and tied to its table."""

from __future__ import annotations

import sys
from typing import Any

import click

from cvxprivacy.certificates.verify import disagreements, read_document
from cvxprivacy.cli.common import reading_of, say_json, table_options, told
from cvxprivacy.errors import InputError

__all__ = ["verify"]


@click.command()
@click.argument("proofs", nargs=-1, required=True, metavar="PROOF...", type=click.Path())
@click.option("--table", type=click.Path(), help="The table that the proof was made for: it is "
              "counted again, with the recorded columns and bins, and compared with the proof's "
              "law.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options
@told
def verify(proofs: tuple[str, ...], table: str | None, as_json: bool, **options: Any) -> None:
    """Prove every claim of PROOF again, trusting none; exit 1 if one is not proved.

    Needs neither CVXPY nor a solver.  A copy of the table with another delimiter, encoding or
    quoting is the same table: its cells decide.
    """
    reading = reading_of(options)
    results: dict[str, Any] = {}
    for path in proofs:
        try:
            document = read_document(path)
        except (ValueError, RecursionError) as error:
            problem, remedy = f"unreadable ({error})", "pass a proof that this package wrote"
            raise InputError(path, problem, remedy) from None
        problems = disagreements(document)
        if not problems and table is not None:
            problems = [f"{table}: {problem}" for problem in _differences(document, table, reading)]
        claim: dict[str, Any] = document["claim"] if not problems else {}
        results[path] = {"verified": not problems, "problems": problems, "claim": claim}
        if as_json:
            continue
        if problems:
            click.echo("\n  ".join([f"{path}: NOT verified", *problems]))
        else:
            units = document["program"]["units"]
            ends = f"[{claim['lower']}, {claim['upper']}]"
            click.echo(f"{path}: verified, {claim['status']}, value in {ends} ({units})")
            if table is not None:
                from cvxprivacy.readback import recounted

                click.echo(f"{table}: {recounted(document)}")
    if as_json:
        say_json(results)
    if not all(result["verified"] for result in results.values()):
        sys.exit(1)


def _differences(document: dict[str, Any], table: str, reading: dict[str, Any]) -> list[str]:
    """Return how a file differs from the proof's table, however it is written."""
    from cvxprivacy.cli.tables import alike
    from cvxprivacy.readback import coding_of, recount

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
