"""``cvxprivacy solve``: a problem written down in TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cvxprivacy.cli.common import say_json, told

__all__ = ["solve"]


@click.command()
@click.argument("problem", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@told
def solve(problem: str, as_json: bool) -> None:
    """Solve the PROBLEM of a TOML file: any formulation, with any criteria.

    `python -m pydoc cvxprivacy.problemfile` describes the file.
    """
    from cvxprivacy.cli.release import _writable
    from cvxprivacy.problemfile import read

    found = read(problem, table=_table)
    targets = {name: str(path) for name, path in found.output.items()}
    _writable(dict(targets), problem)
    solution = found.solution()
    if "certificate" in targets:
        solution.certificate.to_json(targets["certificate"])
    if "channel" in targets and solution.channel is not None:
        solution.channel.save(targets["channel"])
    if as_json:
        channel = solution.channel
        say_json(
            {
                "status": solution.status,
                "units": solution.units,
                "lower": solution.lower,
                "upper": solution.upper,
                "terms": {name: [t.lower, t.upper] for name, t in solution.terms.items()},
                "prices": solution.prices,
                "duals": solution.duals,
                "channel": None if channel is None else {
                    "inputs": channel.inputs, "outputs": channel.outputs, "matrix": channel.matrix,
                },
                "files": targets,
            }
        )  # fmt: skip
        return
    click.echo(solution)
    for name, path in targets.items():
        click.echo(f"{path}: the {name}, readable by you only")


def _table(path: Path, *, delimiter: str | None = None, encoding: str | None = None,
           na: list[str] | None = None, **how: Any) -> Any:  # fmt: skip
    from cvxprivacy.cli.release import source_of
    from cvxprivacy.cli.tables import open_table

    opened = open_table(path, {"delimiter": delimiter, "encoding": encoding, "na": na})
    return source_of(opened, **how)[1]
