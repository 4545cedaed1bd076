"""``cvxprivacy solve`` and ``certify``: a problem written down in TOML."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.exits import CODES, say
from cvxprivacy_sdc.statements.outputs import Output, described, refuse_unwritable, steps, write_all
from cvxprivacy_sdc.statements.recodings import mapping_files
from cvxprivacy_sdc.statements.statement import refuse_intractable, table_source

__all__ = ["certify", "solve"]


@click.command()
@click.argument("problem", type=click.Path())
@shared.as_json()
@shared.force
def solve(problem: str) -> None:
    """Solve the PROBLEM of a TOML file: any discrete formulation, with any criteria.

    `python -m pydoc cvxprivacy_sdc.statements.problemfile` has an example of the file, and the
    manual's page on files describes it.
    """
    _answer(problem, (), lambda file, on_step: file.solution(progress=on_step))


@click.command()
@click.argument("problem", type=click.Path())
@click.argument("channel", type=click.Path())
@click.option("--solve", "further", is_flag=True, help="Solve the problem, too, for the lower end.")
@shared.as_json()
@shared.force
def certify(problem: str, channel: str, further: bool) -> None:
    """Prove what a CHANNEL of somebody else is worth in the PROBLEM of a TOML file.

    CHANNEL is what `solve` and `release` write, or a CSV file: outputs in the first line, and in
    each further line an input and its probabilities.  What is infeasible, as digits that were
    rounded, is repaired, and both ends are proved.
    """

    def certified(file: Any, _: Any) -> Any:
        if Path(channel).suffix.lower() == ".csv":
            candidate = _matrix(channel, file.problem)
        else:
            from cvxprivacy.release.channel import Channel

            candidate = Channel.load(channel)
        return file.problem.certify(candidate, solve=further)

    _answer(problem, (channel,), certified)


def _answer(problem: str, inputs: tuple[str, ...], make: Callable[[Any, Any], Any]) -> None:
    """Read a problem file, make a solution of it, and write and print what that is."""
    from cvxprivacy.certificates.certificate import Relaxed
    from cvxprivacy_sdc.dossier.report import proved
    from cvxprivacy_sdc.statements.problemfile import read

    tables: list[str] = []

    @wraps(table_source)  # whose options a problem file may use
    def table(path: Path, **how: Any) -> Any:
        tables.extend([str(path), *mapping_files(how)])
        return table_source(path, **how)

    file = read(problem, table=table)
    targets = {name: str(path) for name, path in file.output.items()}
    try:
        refuse_unwritable(targets, problem, *inputs, *tables, prefix="output.")
    except InputError as error:
        raise file.located(error) from None
    refuse_intractable(file.problem, "source")
    with steps() as on_step:
        solution = make(file, on_step)
    channel, certificate = solution.channel, solution.certificate
    outputs, words = [], {}
    for name, path in targets.items():
        result: Any = certificate if name == "certificate" else channel
        if result is not None:
            outputs.append(Output(name, path, result.write, private=True))
            words[name] = f"the {name}; it holds the law of the source{{private}}"
        if isinstance(result, Relaxed):  # its lower bound is another program's
            beside = str(result.beside(path))
            refuse_unwritable({name: beside}, problem, *inputs, *tables, prefix="output.")
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


def _matrix(path: str, problem: Any) -> Any:
    """Return the matrix of a CSV file with its labels, which are those of the problem."""
    from cvxprivacy.model.laws import Table

    remedy = "write outputs in the first line, then an input and its probabilities in each"
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, f"cannot be read ({error})", "name a CSV file in UTF-8") from None
    if len(lines) < 2 or len({len(line) for line in lines}) != 1:
        raise InputError(path, "lines of different lengths, or fewer than two", remedy)
    names = {_text(label): label for label in (*problem.alphabet.outputs, *problem.alphabet.inputs)}
    (_, *columns), *rows = lines
    numbers = []
    for i, row in enumerate(rows, 2):
        try:
            numbers.append([float(number) for number in row[1:]])
        except ValueError as error:
            raise InputError(path, f"line {i}: {error}", remedy) from None
    labels = ([row[0] for row in rows], columns)
    return Table(numbers, [[names.get(text, text) for text in axis] for axis in labels])


def _text(label: Any) -> str:
    return "|".join(map(str, label)) if isinstance(label, tuple) else str(label)
