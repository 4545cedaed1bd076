"""``cvxprivacy release`` and ``apply``: a table in, a released table out.

The help of ``release`` ends with everything that its options may ask for, with its unit.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.columns import (
    column_of,
    copied_columns,
    leave_out_again,
    loaded_channel,
    remarks_on_dropped,
)
from cvxprivacy_sdc.statements.exits import note_reading, say
from cvxprivacy_sdc.statements.outputs import refuse_unwritable, write_all

__all__ = ["apply", "release"]

DISTORTIONS = {
    "hamming": "1 where the value changes: its mean is the share of records",
    "ordinal": "steps between ordered values, as a share of all steps",
    "absolute_error": "the change, in the column's unit (years); bands count as their middles",
    "squared_error": "the change squared, in the square of that unit",
}
UNCHECKED = (
    "nothing that was asked of the first table is checked on this one: `cvxprivacy audit` does"
)

MERGED = (
    "groups that broke what was asked of the first table are merged in this one, too: they were "
    "chosen by looking at that table, and this one may need others"
)


class Catalogued(shared.Grouped):
    """A command whose help ends with everything that its options may ask for."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write criteria, leakages and distortions, a line each."""
        sections = {
            "Criteria (W the confidential column, X the key)": _criteria(),
            "Measures of leakage (pure numbers, but for information)": _leakages(),
            "Distortions of a key column (age=ordinal)": _distortions(),
        }
        for title, entries in sections.items():
            with formatter.section(title):
                formatter.write_dl(list(entries), col_max=34)


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
@shared.criterion(
    "NAME[=NUMBER[:MEASURE]]",
    "What the release must satisfy, several times if you like; listed below.",
)
@click.option(
    "--leakage",
    metavar="NAME[:NUMBER]",
    help="What is minimised under --budget in place of information; listed below.",
)
@shared.choice(
    "--prior",
    ["source", "any"],
    "What an intruder believes of W: the table's own shares, or anything; then --budget minimises "
    "the capacity.",
)
@click.option(
    "--ensure",
    type=click.Choice(["law", "table"]),
    help="What is to satisfy the criteria: the law, which is proved, or the table that is "
    "released, by default; with a budget alone the law is the default.  Its counts are then "
    "designed whole, blind to the confidential column unless --encoder wx, where that can be; else "
    "groups of a drawn table that break one are merged into the nearest group, or the suppressed "
    "value, and if that cannot work the exit code is 3.  With law, a table that breaks one is "
    "written and told.",
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
@click.option(
    "--time-limit",
    type=float,
    metavar="SECONDS",
    help="Seconds after which no further step is begun, of the proof and of the table's counts "
    "together.  What is best by then is released, with the enclosure that is proved of it: status "
    "loose, exit code 5.  The first Ctrl-C does the same.",
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
@shared.leaves_out(
    "Columns that are not in the released table, such as names; the confidential one may be, too."
)
@click.option(
    "--untouched/--no-untouched",
    default=True,
    show_default=True,
    help="Measure what each of the other columns reveals.",
)
@click.option(
    "--attack",
    is_flag=True,
    help="Guess from all of them together, too, as `cvxprivacy attack` does, which takes longer.",
)
@click.option(
    "--after",
    multiple=True,
    type=click.Path(),
    metavar="RELEASED",
    help="An earlier release of the same records, or several, drawn by seeds of their own: what "
    "all tell together is minimised, and proved.  Records are matched by --row-id.",
)
@click.option(
    "--after-channel",
    multiple=True,
    type=click.Path(),
    metavar="CHANNEL",
    help="The channel that `release --channel` kept of each, in the same order.",
)
@shared.as_json()
@shared.force
@shared.drawn
@shared.reads_tables
def release(table: str, **options: Any) -> None:
    """Release TABLE with its key columns optimally randomised.

    TABLE is delimited text (.csv, .tsv, .csv.gz), Parquet, a workbook (.xlsx, .xls, .ods), or of
    SPSS (.sav, .zsav), Stata (.dta) or SAS (.sas7bdat, .xpt), where values are codes, not labels.
    The confidential column and all others are copied; every byte outside the key columns of a
    text table stays as it is.  SPSS, Stata and .xpt tables keep their labels and missing values;
    these and workbooks can be released as .csv, .parquet or .xlsx, too.
    """
    if options["noise"]:
        if options["after"] or options["after_channel"]:
            remedy = "leave out either: a sequel is of groups, not of numbers"
            raise InputError("--after", "with --noise", remedy)
        from cvxprivacy_sdc.commands.noise import release_noise

        release_noise(table, options)
    from cvxprivacy_sdc.commands.releasing import release_table

    document, text, code = release_table(table, options)
    say(document, text)
    sys.exit(code)


@click.command(cls=shared.Grouped)
@click.argument("channel", type=click.Path())
@click.argument("table", type=click.Path())
@shared.file("--out", "The released table.", required=True)
@shared.criterion(
    "NAME[=NUMBER[:MEASURE]]",
    "What the table must satisfy, as of `release`: its groups are merged so that the fewest "
    "records change, and if no merging helps the exit code is 3.  It needs the confidential "
    "column.",
)
@shared.leaves_out(
    "Columns that are not in the released table, besides those that the first release left out; "
    "--keep-columns says anew which stay."
)
@shared.units
@shared.as_json()
@shared.force
@shared.drawn
@shared.reads_tables
def apply(
    channel: str, table: str, out: str, reading: dict[str, Any], seed: int, row_id: str | None,
    **options: Any,
) -> None:  # fmt: skip
    """Send TABLE through a CHANNEL that `release --channel` kept: next month's table.

    It is read as the first one was, unless options say otherwise.  A channel of whole counts
    releases the table that was counted, and no other.
    """
    from cvxprivacy.release.channel import MergedChannel
    from cvxprivacy.tables.schema import TableSchema
    from cvxprivacy_sdc.commands.releasing import released_output
    from cvxprivacy_sdc.copied.order import OrderTest
    from cvxprivacy_sdc.dossier.report import records_drawn
    from cvxprivacy_sdc.formats.framed import output_format
    from cvxprivacy_sdc.formats.house import House
    from cvxprivacy_sdc.formats.shuffle import release_shuffled
    from cvxprivacy_sdc.formats.table_files import open_table

    shuffle, draw, criterion = (options[name] for name in ("shuffle", "draw", "criterion"))
    refuse_unwritable({"out": out}, table, channel, shuffled=shuffle)
    output_format(table, out)
    kept = loaded_channel(channel)
    assert kept.schema is not None
    opened = note_reading(open_table(table, reading, recorded=kept.schema.reading, out=out))
    row_id = row_id and column_of(row_id, opened.header, "--row-id")
    leave_out_again(opened, kept.schema, options["drop"], options["keep_columns"], row_id)
    opened.refuse_unwritable()
    used = [name for group in kept.schema.input_columns(kept.encoder) for name in group]
    counted = draw == "balanced" or kept.schema.missing == "drop"  # records, as they were at first
    if counted and {*kept.schema.sensitive} <= {*opened.header}:
        used = list(dict.fromkeys([*kept.schema.sensitive, *used]))
    merged = [MERGED] if isinstance(kept, MergedChannel) else []
    unchecked = [] if kept.drawn_jointly else [UNCHECKED]  # it releases the table that was counted
    facts: dict[str, Any] = {}
    lines: list[str] = []
    if criterion:
        from cvxprivacy_sdc.commands.ensuring import DECIDED, mended

        kept, facts, lines = mended(kept, opened, criterion, seed, row_id, draw, options["units"])
        unchecked = [DECIDED]
    schema = kept.schema
    assert schema is not None
    hidden = tuple(name for name in schema.sensitive if name in opened.header)
    raw = TableSchema(schema.key, hidden, missing="level")  # its values, as they are
    frame, unseen = opened.frame(raw.columns), copied_columns(opened, raw)
    order = OrderTest.of(frame, raw, unseen=unseen, dropped=opened.dropped, shuffled=shuffle)
    house = House.of({"out": out}, table, always=shuffle)
    if shuffle:
        release_shuffled(opened, house, seed)
    output = released_output(opened, kept, out, used, seed, row_id, draw)
    drawn = write_all([output], house)["out"]
    gone = remarks_on_dropped(opened, kept.schema, row_id)
    drawn["notes"] = [*drawn["notes"], *order.lines, *merged, *unchecked, *gone]
    facts["order"] = order.document()
    if opened.dropped:
        drawn["columns_dropped"] = list(opened.dropped)
    notes = [f"note: {note}" for note in drawn["notes"]]
    text = "\n".join([f"{out}: {records_drawn(drawn)}", *lines, *notes])
    say({"table": table, "channel": channel, "out": out, **drawn, **facts}, text)


# ---- everything that may be asked for ----------------------------------------------------


def _criteria() -> Iterator[tuple[str, str]]:
    """Yield each criterion as it is typed, with what it asks for and in which unit."""
    from cvxprivacy import criteria
    from cvxprivacy_sdc.statements.options import criteria_of, stated_criterion

    kinds = (getattr(criteria, name) for name in criteria.__all__)
    examples = (text for kind in kinds if kind.words for text in kind.words.examples)
    for typed in examples:
        ((kind, arguments),) = criteria_of([typed])
        words = stated_criterion({"kind": kind, **arguments}).in_words()
        complete = "=" not in typed or not words.unit or words.unit in words.asks
        alone = "; of tables alone" if getattr(criteria, kind).of_table else ""
        yield typed, (words.asks if complete else f"{words.asks} [{words.unit}]") + alone


def _distortions() -> Iterator[tuple[str, str]]:
    """Yield each distortion as it is typed, with what it means."""
    from cvxprivacy.model.attributes import NAMES

    for name, words in DISTORTIONS.items():
        yield name, f"{words} (also {', '.join(NAMES[name])})"


def _leakages() -> Iterator[tuple[str, str]]:
    """Yield each measure of leakage as it is typed, with what it means."""
    from cvxprivacy.leakage import MEASURES
    from cvxprivacy.leakage.base import NAMES

    for kind, (typed, *also) in NAMES.items():
        parameters = inspect.signature(MEASURES[kind]).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty]
        name = f"{typed}:{needed[0].upper()}" if needed else typed
        yield name, MEASURES[kind].meaning + f" (also {', '.join(also)})" * bool(also)
