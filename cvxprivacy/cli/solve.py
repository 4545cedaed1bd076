"""``cvxprivacy solve``: a problem written down in TOML."""

from __future__ import annotations

import sys
from functools import wraps
from pathlib import Path
from typing import Any

import click

from cvxprivacy.cli import options as shared
from cvxprivacy.cli.exits import CODES, say
from cvxprivacy.cli.outputs import Output, described, refuse_unwritable, steps, write_all
from cvxprivacy.cli.recodings import mapping_files
from cvxprivacy.cli.statement import refuse_intractable, table_source
from cvxprivacy.errors import InputError

__all__ = ["solve"]


@click.command()
@click.argument("problem", type=click.Path())
@shared.as_json()
@shared.force
def solve(problem: str) -> None:
    """Solve the PROBLEM of a TOML file: any discrete formulation, with any criteria.

    `python -m pydoc cvxprivacy.cli.problemfile` describes the file.
    """
    from cvxprivacy.certificates.certificate import Relaxed
    from cvxprivacy.cli.problemfile import read
    from cvxprivacy.cli.report import proved

    tables: list[str] = []

    @wraps(table_source)  # whose options a problem file may use
    def table(path: Path, **how: Any) -> Any:
        tables.extend([str(path), *mapping_files(how)])
        return table_source(path, **how)

    file = read(problem, table=table)
    targets = {name: str(path) for name, path in file.output.items()}
    try:
        refuse_unwritable(targets, problem, *tables, prefix="output.")
    except InputError as error:
        raise file.located(error) from None
    refuse_intractable(file.problem, "source")
    with steps() as on_step:
        solution = file.solution(progress=on_step)
    channel, certificate = solution.channel, solution.certificate
    outputs, words = [], {}
    for name, path in targets.items():
        result: Any = certificate if name == "certificate" else channel
        if result is not None:
            outputs.append(Output(name, path, result.write, private=True))
            words[name] = f"the {name}; it holds the law of the source{{private}}"
        if isinstance(result, Relaxed):  # its lower bound is another program's
            beside = str(result.beside(path))
            refuse_unwritable({name: beside}, problem, *tables, prefix="output.")
            outputs.append(Output("lower", beside, result.relaxation.write, private=True))
            words["lower"] = "the proof of the lower end; the other proves the upper one"
    write_all(outputs)
    document = {
        **proved(solution),
        "duals": solution.duals,
        "channel": None if channel is None else {
            "inputs": channel.inputs, "outputs": channel.outputs, "matrix": channel.matrix,
            "decoder": None if channel.decoder is None else channel.decoder.to_dict(),
        },
        "files": targets,
    }  # fmt: skip
    written = {output.option: output.path for output in outputs}
    say(document, "\n".join([str(solution), *described(written, words)]))
    sys.exit(CODES[solution.status])
