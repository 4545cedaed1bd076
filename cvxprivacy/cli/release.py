"""``cvxprivacy release`` and ``apply``: a table in, a released table out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import click

from cvxprivacy.cli import options as shared
from cvxprivacy.cli.catalogue import Catalogued
from cvxprivacy.cli.exits import CODES, say
from cvxprivacy.cli.formats import output_format
from cvxprivacy.cli.outputs import Output, progress, refuse_unwritable, steps, write_all
from cvxprivacy.cli.population import halves_of, held_out, measured_of, noted, refuse_with_holdout
from cvxprivacy.cli.recodings import chosen, recoded, recoded_text
from cvxprivacy.cli.statement import problem_data, problem_of, problem_text, source_of
from cvxprivacy.errors import InputError

__all__ = ["apply", "release"]


@click.command(cls=Catalogued)
@click.argument("table", type=click.Path())
@shared.sensitive
@shared.key("that are released in perturbed form.")
@shared.bins("The bands are what is released.")
@shared.recoded
@click.option(
    "--cells",
    type=int,
    metavar="NUMBER",
    help="Choose bins, levels and most frequent values of the key columns that have none, so that "
    "at most so many observed cells are left and they tell most of W; the choice is printed as "
    "options.",
)
@click.option(
    "--distortion",
    multiple=True,
    metavar="COLUMN=KIND,…",
    help="hamming, ordinal, absolute_error or squared_error for each key column, with a "
    "weight if you like: age=2*ordinal.  By default hamming for all of them together: a record "
    "counts once if anything in its key is changed.",
)
@click.option(
    "--suppress",
    multiple=True,
    metavar="COST|COLUMN=COST,…",
    help="Key values may be withheld, one by one or all, at this cost in the distortion: the "
    "optimum decides which.  A withheld value is a missing one in the released table.",
)
@click.option(
    "--budget",
    type=float,
    help="Greatest expected distortion E d.  Without it, the least distortion under the criteria "
    "is found.",
)
@click.option(
    "--at-most",
    metavar="NUMBER[:MEASURE]",
    help="In place of a budget: the least distortion with so much leakage at most, 0.05 (in "
    "bits) or 0.6:guessing-probability.",
)
@shared.criterion(
    "NAME[=NUMBER[:MEASURE]]",
    "What the release must satisfy, several times if you like; listed below.",
)
@click.option(
    "--leakage",
    metavar="NAME[:NUMBER]",
    help="What is minimised under --budget in place of information; listed below.",
)
@click.option(
    "--ensure",
    type=click.Choice(["law", "table"]),
    help="What is to satisfy the criteria: the law, which is proved, or the drawn table too.  "
    "Groups of it that break one are then merged into the nearest group, or the suppressed value; "
    "if that cannot work the exit code is 3.  By default a table that breaks one is written and "
    "told, with exit code 1.",
)
@click.option(
    "--noise",
    is_flag=True,
    help="Release numbers as numbers, through the optimal Gaussian rule.  --budget is then the "
    "mean share of the key columns' variances that is error.  The proof holds for second moments: "
    "of the leakage if the columns were jointly Gaussian.",
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
@click.option(
    "--untouched/--no-untouched",
    default=True,
    show_default=True,
    help="Measure what the other columns reveal.",
)
@held_out
@shared.as_json()
@shared.force
@shared.drawn
@shared.reads_tables
def release(
    table: str, reading: dict[str, Any], seed: int, row_id: str | None, **options: Any
) -> None:
    """Release TABLE with its key columns optimally randomised.

    TABLE is delimited text (.csv, .tsv, .csv.gz), Parquet, a workbook (.xlsx, .xls, .ods), or of
    SPSS (.sav, .zsav), Stata (.dta) or SAS (.sas7bdat, .xpt), where values are codes, not labels.
    The confidential column and all others are copied; every byte outside the key columns of a
    text table stays as it is.  SPSS, Stata and .xpt tables keep their labels and missing values;
    these and workbooks can be released as .csv, .parquet or .xlsx, too.
    """
    from cvxprivacy.cli.checks import with_checks
    from cvxprivacy.cli.report import report, report_text
    from cvxprivacy.cli.table_files import open_table
    from cvxprivacy.microdata.drawn_table import DrawnTable

    if options["noise"]:
        from cvxprivacy.cli.noise import release_noise

        release_noise(table, reading, seed, options)
    targets = {name: options[name] for name in ("out", "certificate", "channel")}
    targets["problem-out"] = options["problem_out"]
    refuse_unwritable(targets, table)
    refuse_with_holdout(options)
    if options["ensure"] == "table" and targets["out"] is None:
        raise InputError("--ensure", "no table is drawn", "pass --out, the released table")
    opened = open_table(table, reading, out=targets["out"])
    if row_id is not None and row_id not in opened.header:
        raise shared.unknown_column("--row-id", row_id, opened.header)
    data, choice = problem_data(options, opened.header), None
    if options["cells"] is not None:
        data["source"], choice = chosen(opened, data["source"], options["cells"])
    with progress(opened.size, f"reading {Path(table).name}") as read:
        frame, source = source_of(
            opened, whole=options["untouched"], progress=read, **data["source"]
        )
    halves = halves_of(source, options, seed)
    problem = problem_of(data, source if halves is None else halves.design)
    stated = ""
    if targets["problem-out"] is not None:
        stated = problem_text(targets["problem-out"], data, table, reading)
    with steps() as told:
        solution = problem.solve(
            accuracy=options["accuracy"], time_limit=options["time_limit"], progress=told
        )
    channel, schema = solution.channel, source.schema
    assert channel is not None
    assert solution.channel is not None
    assert schema is not None
    population = measured_of(halves, problem, solution, options, seed)
    drawn = None
    if targets["out"] is not None:
        draws: dict[str, Any] = {"seed": seed, "row_id": row_id}
        ensure = options["ensure"] or "law"
        drawn = DrawnTable.of(problem, solution, frame, **draws, source=source, ensure=ensure)
        channel = drawn.channel
    leaks = _leaks(frame, source, options["units"]) if options["untouched"] else []
    results = write_all(
        [
            _released(opened, channel, targets["out"], schema.columns, seed, row_id),
            Output("certificate", targets["certificate"], solution.certificate.write, private=True),
            Output("channel", targets["channel"], solution.channel.write, private=True),
            Output("problem-out", targets["problem-out"], lambda file: file.write(stated)),
        ]
    )
    leakage = getattr(problem, "leakage", None)
    written = results.get("out", {})
    document = report(table, source, solution, leaks, written, targets, leakage)
    document = with_checks(document, solution, source, drawn)
    settled = recoded(data["source"], schema, choice)
    document |= {"recoding": settled} if settled else {}
    text = "\n".join([*recoded_text(settled), report_text(document, source, solution)])
    say(*noted(document, text, population))
    broken = drawn is not None and not drawn.holds and options["ensure"] is None
    sys.exit(CODES["broken"] if broken else CODES[solution.status])


@click.command()
@click.argument("channel", type=click.Path())
@click.argument("table", type=click.Path())
@shared.file("--out", "The released table.", required=True)
@shared.as_json()
@shared.force
@shared.drawn
@shared.reads_tables
def apply(
    channel: str, table: str, out: str, reading: dict[str, Any], seed: int, row_id: str | None
) -> None:
    """Send TABLE through a CHANNEL that `release --channel` kept: next month's table.

    It is read as the first one was, unless options say otherwise.
    """
    from cvxprivacy.cli.report import records_drawn
    from cvxprivacy.cli.table_files import open_table
    from cvxprivacy.release.channel import Channel

    refuse_unwritable({"out": out}, table, channel)
    output_format(table, out)
    kept = Channel.load(channel)
    if kept.schema is None:
        problem = "the channel does not know a table's columns"
        raise InputError("channel", problem, "pass one that `release --channel` kept")
    opened = open_table(table, reading, recorded=kept.schema.reading, out=out)
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


def _leaks(frame: Any, source: Any, units: str) -> list[Any]:
    """Return what each column that is copied reveals."""
    from cvxprivacy.microdata.untouched import untouched

    columns = [name for name in frame.columns if name not in source.schema.columns]
    with progress(len(columns), "other columns") as counted:
        return untouched(frame, source.schema, units=units, columns=columns, progress=counted)
