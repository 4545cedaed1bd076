"""``cvxprivacy release`` and ``apply``: a table in, a released table out."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import click

from cvxprivacy.cli import options as shared
from cvxprivacy.cli.exits import CODES, arguments, say
from cvxprivacy.cli.outputs import Output, progress, refuse_unwritable, steps, write_all
from cvxprivacy.cli.statement import problem_data, problem_of, problem_text, source_of
from cvxprivacy.errors import InputError

__all__ = ["apply", "release"]


@click.command()
@click.argument("table", type=click.Path())
@shared.sensitive
@shared.key("that are released in perturbed form.")
@shared.bins("The bands are what is released.")
@click.option(
    "--distortion",
    multiple=True,
    metavar="COLUMN=KIND,…",
    help="hamming, ordinal, absolute_error or squared_error for each key column, with a "
    "weight if you like: age=2*ordinal.  By default the share of changed records.",
)
@click.option(
    "--budget",
    type=float,
    help="Greatest expected distortion E d.  Without it, the least distortion under the criteria "
    "is found.",
)
@shared.criterion(
    "NAME[=NUMBER[:MEASURE]]",
    "Such as TCloseness=0.1, TCloseness=0.15:emd, KAnonymity=5, KeepProbability=0.6, "
    "PreserveMarginal, LeakageCap=0.6:guessing-probability.",
)
@click.option(
    "--leakage",
    metavar="NAME[:NUMBER]",
    help="What is minimised under --budget in place of information: chi-squared, total-variation, "
    "hockey-stick:1.5, earth-mover, guessing-probability, sibson:2, …",
)
@click.option("--weights", metavar="COLUMN", help="Survey weights.")
@shared.missing("left out of the released table too")
@shared.choice("--encoder", ["x", "wx"], "What the randomisation sees: X, or W and X.")
@shared.units
@shared.choice("--accuracy", ["default", "high"])
@click.option(
    "--time-limit",
    type=float,
    metavar="SECONDS",
    help="Seconds after which no further step is begun.  What is best by then is released, with "
    "the enclosure that is proved of it: status loose, exit code 5.  The first Ctrl-C does the "
    "same.",
)
@shared.file(
    "--out", "The released table; without it nothing is drawn, and the release is only priced."
)
@shared.file("--certificate", "The proof, for `cvxprivacy verify`.")
@shared.file("--channel", "The channel, for `cvxprivacy apply`.")
@shared.file(
    "--problem-out",
    "The problem as typed here, in TOML: for `cvxprivacy verify --problem`, which tells "
    "whether a proof is of this question, and for `cvxprivacy solve`.",
    metavar="PATH",
)
@shared.report
@click.option(
    "--untouched/--no-untouched",
    default=True,
    show_default=True,
    help="Measure what the other columns reveal.",
)
@shared.as_json()
@shared.drawn
@shared.reads_tables
def release(
    table: str, reading: dict[str, Any], seed: int, row_id: str | None, **options: Any
) -> None:
    """Release TABLE (CSV, TSV or Parquet) with its key columns optimally randomised.

    The confidential column and all others are copied; every byte outside the key columns of a
    text table stays as it is.
    """
    from cvxprivacy.cli.dossier import report_outputs, report_targets
    from cvxprivacy.cli.dossier.common import Asked
    from cvxprivacy.cli.dossier.facts import release_facts
    from cvxprivacy.cli.dossier.provenance import Kept
    from cvxprivacy.cli.report import report, report_text
    from cvxprivacy.cli.table_files import open_table

    targets = {name: options[name] for name in ("out", "certificate", "channel")}
    targets["problem-out"] = options["problem_out"]
    targets |= (reports := report_targets(options["report"]))
    refuse_unwritable(targets, table)
    _refuse_another_format(table, targets["out"])
    opened = open_table(table, reading)
    if row_id is not None and row_id not in opened.header:
        raise shared.unknown_column("--row-id", row_id, opened.header)
    data = problem_data(options, opened.header)
    with progress(opened.size, f"reading {Path(table).name}") as read:
        frame, source = source_of(
            opened, whole=options["untouched"], progress=read, **data["source"]
        )
    problem = problem_of(data, source)
    stated = ""
    if targets["problem-out"] is not None:
        stated = problem_text(targets["problem-out"], data, table, reading)
    started = time.monotonic()
    with steps() as told:
        solution = problem.solve(
            accuracy=options["accuracy"], time_limit=options["time_limit"], progress=told
        )
    seconds = time.monotonic() - started
    channel, schema = solution.channel, source.schema
    assert channel is not None
    assert schema is not None
    leaks = _leaks(frame, source, options["units"]) if options["untouched"] else []
    kept = Kept(
        [
            _released(opened, channel, targets["out"], schema.columns, seed, row_id),
            Output("certificate", targets["certificate"], solution.certificate.write, private=True),
            Output("channel", targets["channel"], channel.write, private=True),
            Output("problem-out", targets["problem-out"], lambda file: file.write(stated)),
        ]
    )

    def document_of() -> dict[str, Any]:
        drawn, leakage = kept.results.get("out", {}), getattr(problem, "leakage", None)
        return report(table, source, solution, leaks, drawn, targets, leakage)

    def facts() -> dict[str, Any]:
        asked = Asked(arguments(), click.get_current_context().command, table, opened)
        with steps() as told:
            return release_facts(asked, data, problem, solution, document_of(), kept, seconds, told)

    write_all([*kept.outputs, *report_outputs(reports, facts)])
    document = document_of()
    say(document, report_text(document, source, solution))
    sys.exit(CODES[solution.status])


@click.command()
@click.argument("channel", type=click.Path())
@click.argument("table", type=click.Path())
@shared.file("--out", "The released table.", required=True)
@shared.as_json()
@shared.drawn
@shared.reads_tables
def apply(
    channel: str, table: str, out: str, reading: dict[str, Any], seed: int, row_id: str | None
) -> None:
    """Send TABLE through a CHANNEL that `release --channel` kept: next month's table.

    A text table is read as the first one was, unless options say otherwise.
    """
    from cvxprivacy.cli.report import records_drawn
    from cvxprivacy.cli.table_files import open_table
    from cvxprivacy.release.channel import Channel

    refuse_unwritable({"out": out}, table, channel)
    _refuse_another_format(table, out)
    kept = Channel.load(channel)
    if kept.schema is None:
        problem = "the channel does not know a table's columns"
        raise InputError("channel", problem, "pass one that `release --channel` kept")
    typed = {name: value for name, value in reading.items() if value is not None}
    opened = open_table(table, {**kept.schema.reading, **typed})
    if kept.decoder is not None:
        problem = "it releases letters u that a user decodes with Z, which this command cannot do"
        raise InputError("channel", problem, "apply it in Python: Channel.apply, Decoder.apply")
    used = [name for group in kept.schema.input_columns(kept.encoder) for name in group]
    drawn = write_all([_released(opened, kept, out, used, seed, row_id)])["out"]
    notes = [f"note: {note}" for note in drawn["notes"]]
    text = "\n".join([f"{out}: {records_drawn(drawn)}", *notes])
    say({"table": table, "channel": channel, "out": out, **drawn}, text)


def _released(
    opened: Any, channel: Any, out: str | None, used: Sequence[str], seed: int, row_id: str | None
) -> Output:
    """Return the released table, which is drawn as it is written."""

    def write(file: IO[bytes]) -> dict[str, Any]:
        with progress(opened.size, f"writing {Path(out or '').name}") as written:
            return opened.release(channel, file, used, seed, row_id, written)

    return Output("out", out, write, binary=True)


def _refuse_another_format(path: str, out: str | None) -> None:
    """Refuse an output whose name says another format than it will have."""
    parquet = [Path(p).suffix.lower() in (".parquet", ".pq") for p in (path, out or path)]
    if parquet[0] != parquet[1]:
        kind = "Parquet" if parquet[0] else "text"
        problem = f"{out} would hold {kind}, as {path} does"
        raise InputError("--out", problem, "give both the same ending", value=out)


def _leaks(frame: Any, source: Any, units: str) -> list[Any]:
    """Return what each column that is copied reveals."""
    from cvxprivacy.microdata.untouched import untouched

    columns = [name for name in frame.columns if name not in source.schema.columns]
    with progress(len(columns), "other columns") as counted:
        return untouched(frame, source.schema, units=units, columns=columns, progress=counted)
