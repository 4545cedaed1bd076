"""``cvxprivacy solve``: a problem written down in TOML."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any

import click

from cvxprivacy.cli.common import CODES, say_json, told
from cvxprivacy.errors import InputError

__all__ = ["solve", "table_of"]


@click.command()
@click.argument("problem", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@told
def solve(problem: str, as_json: bool) -> None:
    """Solve the PROBLEM of a TOML file: any discrete formulation, with any criteria.

    `python -m pydoc cvxprivacy.cli.problemfile` describes the file.
    """
    from cvxprivacy.cli.problemfile import read
    from cvxprivacy.cli.release import solvable, writable
    from cvxprivacy.files import whole_file
    from cvxprivacy.formulations.strategies import Relaxed

    tables: list[str] = []

    @wraps(table_of)  # whose options a problem file may use
    def table(path: Path, **how: Any) -> Any:
        tables.append(str(path))
        return table_of(path, **how)

    found = read(problem, table=table)
    targets: dict[str, str | None] = {name: str(path) for name, path in found.output.items()}
    try:
        writable(targets, problem, *tables, prefix="output.")
    except InputError as error:
        raise found.located(error) from None
    solvable(found.problem, "source")
    solution = found.solution()
    with ExitStack() as files:
        for name, path in targets.items():
            written: Any = solution.certificate if name == "certificate" else solution.channel
            if written is not None and path is not None:
                file = files.enter_context(whole_file(path, private=True))
                written.write(file)
                file.flush()
                if isinstance(written, Relaxed):  # its lower end is another program's
                    beside = written.beside(path)
                    file = files.enter_context(whole_file(beside, private=True))
                    written.relaxation.write(file)
                    file.flush()
    if as_json:
        say_json(_report(solution, targets))
    else:
        click.echo(solution)
        for name, path in targets.items():
            click.echo(
                f"{path}: the {name}; it holds the law of the source, so only you can read it"
            )
            if name == "certificate" and isinstance(solution.certificate, Relaxed):
                beside = solution.certificate.beside(str(path))
                click.echo(f"{beside}: the proof of the lower end; the other proves the upper one")
    sys.exit(CODES[solution.status])


def _report(solution: Any, targets: dict[str, str | None]) -> dict[str, Any]:
    channel = solution.channel
    return {
        "status": solution.status,
        "units": solution.units,
        "value_units": solution.value_units,
        "lower": solution.lower,
        "upper": solution.upper,
        "terms": {name: [t.lower, t.upper] for name, t in solution.terms.items()},
        "prices": solution.prices,
        "duals": solution.duals,
        "channel": None if channel is None else {
            "inputs": channel.inputs, "outputs": channel.outputs, "matrix": channel.matrix,
            "decoder": None if channel.decoder is None else channel.decoder.to_dict(),
        },
        "files": targets,
    }  # fmt: skip


def table_of(path: Path, *, delimiter: str | None = None, encoding: str | None = None,
             na: list[str] | None = None, **how: Any) -> Any:  # fmt: skip
    """Return the source of a problem file's table."""
    from cvxprivacy.cli.release import few, source_of
    from cvxprivacy.cli.tables import open_table

    opened = open_table(path, {"delimiter": delimiter, "encoding": encoding, "na": na})
    source = source_of(opened, **how)[1]
    few(source, "key")
    return source
