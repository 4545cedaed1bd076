"""``cvxprivacy audit``: what a released table still tells, beside its original."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.formats.house import House
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.columns import column_of, columns_of, folded
from cvxprivacy_sdc.statements.exits import arguments, note_reading, say
from cvxprivacy_sdc.statements.outputs import described, refuse_unwritable, write_all
from cvxprivacy_sdc.statements.recodings import mapping_files, resolved, stated

if TYPE_CHECKING:
    from cvxprivacy_sdc.auditing import Audit
    from cvxprivacy_sdc.utility.quality import Quality

__all__ = ["audit"]


@click.command(cls=shared.Grouped)
@click.argument("original", type=click.Path())
@click.argument("released", required=False, type=click.Path())
@shared.sensitive
@click.option(
    "--each",
    is_flag=True,
    help="Several confidential columns each by itself; otherwise W is their combination.",
)
@shared.key("that an intruder may know; those that RELEASED lacks are suppressed.")
@shared.bins("In RELEASED only a column of numbers or dates is binned.")
@shared.recoded
@shared.criterion(
    "NAME=NUMBER",
    "TCloseness=0.5, LDiversity=2.7, KAnonymity=5 or DeltaDisclosure=1.  If one is "
    "broken the exit code is 1.",
)
@shared.leakage(
    "Measured beside information and the distances of t-closeness, several times if you like: "
    "hockey-stick:1.5, earth-mover, …  By default chi-squared, squared-hellinger, "
    "guessing-probability, sibson:2, maximal."
)
@shared.missing(
    "not counted",
    "wildcard",
    "  wildcard: a letter too, but k and the individual risk count all records that agree where "
    "neither misses a key value, as sdcMicro does.",
)
@click.option(
    "--weights",
    metavar="COLUMN",
    help="Survey weights, in both tables: k and distinct ℓ stay counts of records, all else is of "
    "the weighted law, and the risk of each record is estimated for the population.",
)
@click.option(
    "--fraction",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Share of the population that is in the table: which share of it the key tells apart is "
    "estimated, by the models of Zayatz, Pitman and the slide negative binomial.",
)
@click.option(
    "--ordered",
    is_flag=False,
    flag_value="",
    metavar="[VALUE,…]",
    help="The values of W are in order, for the ordered earth mover's distance: text in the order "
    "given, low,mid,high.  By default numbers and bins are in order.",
)
@click.option("--unordered", is_flag=True, help="The values of W are in no order.")
@click.option(
    "--bootstrap",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    metavar="DRAWS",
    help="For the intervals of the mutual information; 0 for none.",
)
@shared.file(
    "--channel",
    "The channel that wrote RELEASED (release --channel): what margins, correlations and a "
    "regression are worth before and after, as they are and corrected, beside PRAM of as many "
    "changes.  The counts of --json are of the original: keep them in the office.",
)
@shared.units
@shared.report
@shared.as_json(", without the single letters")
@shared.force
@shared.reads_tables
def audit(
    original: str,
    released: str | None,
    each: bool,
    channel: str | None,
    fraction: float | None,
    reading: dict[str, Any],
    report: tuple[str, ...],
    **options: Any,
) -> None:
    """Measure what the RELEASED table tells about a confidential column, or ORIGINAL as it is.

    Per released combination of key values and at its worst: k-anonymity, ℓ-diversity, t-closeness,
    δ-disclosure, β-likeness, one-symbol information; and what leaks in the measures that `release`
    can minimise, beside what nothing and what the column itself would tell.
    """
    from cvxprivacy.release.channel import Channel
    from cvxprivacy_sdc.auditing import audit as audited, audit_each
    from cvxprivacy_sdc.dossier import report_outputs, report_targets
    from cvxprivacy_sdc.dossier.facts import audit_facts
    from cvxprivacy_sdc.dossier.provenance import Asked
    from cvxprivacy_sdc.dossier.report import REPORTED
    from cvxprivacy_sdc.dossier.tables import released_table
    from cvxprivacy_sdc.formats.table_files import open_table
    from cvxprivacy_sdc.utility.quality import quality

    if each and report:
        remedy = "write one for each column, with that column alone in --sensitive"
        raise InputError("--report", "a report is of one confidential column", remedy)
    if each and isinstance(options["ordered"], str) and options["ordered"]:
        remedy = "leave the values out, or audit their column alone"
        raise InputError("--ordered", "values of no column in particular, with --each", remedy)
    if channel is not None and released is None:
        remedy = "pass the table that the channel wrote, too"
        raise InputError("--channel", "without RELEASED", remedy, value=channel)
    drawn = None if channel is None else Channel.load(channel)
    coded = None if drawn is None else drawn.schema
    targets = report_targets(report)
    paths = [path for path in (original, released) if path is not None]
    refuse_unwritable(targets, *paths, *mapping_files(options["recoding"]))
    tables = [note_reading(open_table(path, reading)) for path in paths]
    if coded is not None:  # which knows what of the released table are numbers
        tables[-1] = note_reading(released_table(paths[-1], coded, reading))
    settings = _settings(options, tables[0].header)
    weights = [] if settings["weights"] is None else [settings["weights"]]
    names = dict.fromkeys([*settings["sensitive"], *settings["key"], *weights])
    for name in names:
        _refuse_other_case(name, tables[-1])
    binned = dict(settings["bins"])
    if coded is not None:
        names |= dict.fromkeys(coded.columns)
        binned |= coded.bins
    frames = [
        table.frame(
            [name for name in names if name in table.header],
            binned=binned if table is tables[0] else {},
        )
        for table in tables
    ]
    several = None
    try:
        if each:
            several = audit_each(*frames, **settings)
        else:
            result = audited(*frames, **settings)
        figures = None if drawn is None else quality(frames[0], frames[1], drawn)
    except InputError as error:
        if error.argument != "original":
            raise
        where, value = error.where, error.value
        problem, remedy = error.problem, error.remedy
        raise InputError("ORIGINAL", problem, remedy, where=where, value=value) from None
    if several is not None:
        first = next(iter(several.values()))
        document = {**several.document(letters=False), **_figures(figures)}
        say(*_estimated(first, fraction, document, [str(several), *_lines(figures)]))
        sys.exit(0 if several.holds else 1)
    house = House.of(targets, original)
    asked = Asked(arguments(), click.get_current_context().command, original, tables[0], house)
    write_all(
        report_outputs(targets, lambda: audit_facts(asked, result, released, tables[-1])), house
    )
    document = {**result.document(letters=False), **_figures(figures), "files": targets}
    lines = [str(result), *_lines(figures), *described(targets, dict.fromkeys(targets, REPORTED))]
    say(*_estimated(result, fraction, document, lines))
    if not result.holds:
        sys.exit(1)


def _figures(figures: Quality | None) -> dict[str, Any]:
    """Return what a document has of the figures before and after."""
    return {} if figures is None else {"quality": figures.document()}


def _lines(figures: Quality | None) -> list[str]:
    """Return what is said of the figures before and after."""
    return [] if figures is None else ["", str(figures)]


def _estimated(
    result: Audit, fraction: float | None, document: dict[str, Any], lines: Sequence[str]
) -> tuple[dict[str, Any], str]:
    """Return a document and its text, with the population's uniqueness where it is asked for."""
    if fraction is None:
        return document, "\n".join(lines)
    estimate = result.uniqueness(fraction)
    return document | {"uniqueness": estimate.document()}, "\n".join([*lines, "", str(estimate)])


def _refuse_other_case(name: str, table: Any) -> None:
    """Refuse a table that lacks a column and has one that differs in case: it is not suppressed."""
    alike = [n for n in table.header if folded(n) == folded(name)]
    if alike and name not in alike:
        problem = f"{table.path.name} has {alike[0]!r}, where the original has {name!r}"
        raise InputError("RELEASED", problem, "call it the same in both tables", value=alike[0])


def _settings(options: Mapping[str, Any], header: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of the audit: the options, with columns that the table has."""
    same = ("leakage", "missing", "weights", "bootstrap", "units")
    settings = {name: options[name] for name in same} | {"seed": 0}
    for role in ("sensitive", "key"):
        settings[role] = columns_of(options[role], header, f"--{role}")
    if settings["weights"] is not None:
        settings["weights"] = column_of(settings["weights"], header, "--weights")
    ordered: Any = False if options["unordered"] else options["ordered"]
    if isinstance(ordered, str):  # the values in their order, or none
        ordered = next(csv.reader([ordered])) or True
    return {
        **settings,
        "bins": shared.bins_of(options["bins"], header),
        "groups": resolved(stated(options["recoding"], header)).get("groups"),
        "criteria": [
            shared.stated_criterion({"kind": name, **values})
            for name, values in options["criterion"]
        ],
        "ordered": ordered,
    }
