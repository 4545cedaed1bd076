"""``cvxprivacy audit``: what a released table still tells, beside its original."""

from __future__ import annotations

import csv
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from cvxprivacy.cli.common import reading_of, say_json, table_options, told
from cvxprivacy.errors import InputError

__all__ = ["audit"]


@click.command()
@click.argument("original", type=click.Path())
@click.argument("released", required=False, type=click.Path())
@click.option(
    "--sensitive",
    multiple=True,
    required=True,
    metavar="COLUMN[,…]",
    help="Confidential column W, or several.",
)
@click.option(
    "--key",
    multiple=True,
    required=True,
    metavar="COLUMN[,…]",
    help="Columns X that an intruder may know; those that RELEASED lacks are suppressed.",
)
@click.option(
    "--bins",
    multiple=True,
    metavar="COLUMN=WIDTH|EDGES",
    help="age=10 makes bands of ten anchored at 0; age=-inf:18:65:inf names the edges. "
    "In RELEASED only a column of numbers is binned.",
)
@click.option(
    "--criterion",
    multiple=True,
    metavar="NAME=NUMBER",
    help="TCloseness=0.5, LDiversity=2.7, KAnonymity=5 or DeltaDisclosure=1.  If one is "
    "broken the exit code is 1.",
)
@click.option(
    "--missing",
    type=click.Choice(["refuse", "level", "drop"]),
    default="refuse",
    show_default=True,
    help="Missing values: an error, a letter of their own, or the record is not counted.",
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
    "--reference",
    type=click.Choice(["released", "original"]),
    default="released",
    show_default=True,
    help="The table whose share of each W the letters are compared with.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    metavar="DRAWS",
    help="For the intervals of the mutual information; 0 for none.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the bootstrap.")
@click.option("--units", type=click.Choice(["bits", "nats"]), default="bits", show_default=True)
@click.option("--html", type=click.Path(), help="The audit as one self-contained page.")
@click.option(
    "--out",
    type=click.Path(),
    help="The audit as JSON, every released letter with its counts of W.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, without the single letters."
)
@table_options
@told
def audit(original: str, released: str | None, **options: Any) -> None:
    """Measure what the RELEASED table tells about a confidential column, or ORIGINAL as it is.

    Per released combination of key values and at its worst: k-anonymity, ℓ-diversity, t-closeness,
    δ-disclosure, β-likeness, one-symbol information; on average the mutual information.
    """  # fmt: skip
    from cvxprivacy.cli.release import columns_named, criteria_of, edges_of, pairs_of, writable
    from cvxprivacy.cli.tables import open_table
    from cvxprivacy.files import whole_file
    from cvxprivacy.microdata.audit import audit as audited

    targets = {name: options[name] for name in ("html", "out")}
    writable(targets, original, *([released] if released else []))
    reading = reading_of(options)
    criteria = criteria_of(options["criterion"])
    tables = [open_table(path, reading) for path in (original, released) if path is not None]
    header = tables[0].header
    sensitive, key = (columns_named(options[n], header) for n in ("sensitive", "key"))
    for role, wanted in (("--sensitive", sensitive), ("--key", key)):
        for name in wanted:
            if name not in header:
                remedy = f"use one of {', '.join(map(repr, header))}"
                raise InputError(role, f"no column {name!r}", remedy, value=name)
    asked = pairs_of(options["bins"], header, "--bins", "age=10 or age=0:18:65:120")
    bins: dict[Any, Any] = {name: edges_of(name, spec) for name, spec in asked.items()}
    frames = []
    for table in tables:
        names = [n for n in dict.fromkeys([*sensitive, *key]) if n in table.header]
        frames.append(table.frame(names, binned=list(bins) if table is tables[0] else ()))
    try:
        found = audited(
            *frames,
            key=key,
            sensitive=sensitive,
            criteria=criteria,
            bins=bins,
            missing=options["missing"],
            ordered=_order(options["ordered"], unordered=options["unordered"]),
            reference=options["reference"],
            bootstrap=options["bootstrap"],
            seed=options["seed"],
            units=options["units"],
        )
    except InputError as error:
        if error.argument != "original":
            raise
        more: dict[str, Any] = {"where": error.where, "value": error.value}
        raise type(error)("ORIGINAL", error.problem, error.remedy, **more) from None
    with ExitStack() as files:  # both take their names, or none
        for name, write in (("html", found.write_html), ("out", found.write_json)):
            if targets[name]:
                file = files.enter_context(whole_file(targets[name], private=True))
                write(file)
                file.flush()
    if options["as_json"]:
        say_json({**found.document(letters=False), "files": targets})
    else:
        click.echo(found)
        w = found.released.names[0]
        what = {
            "html": f"the page; it tells the {w} of the worst groups",
            "out": f"the audit; it holds the counts of {w} in every group",
        }
        for name, path in targets.items():
            if path:
                click.echo(f"{path}: {what[name]}{_private(path)}: keep it with the table")
    if not found.holds:
        sys.exit(1)


def _order(typed: str | None, *, unordered: bool) -> Any:
    """Return whether W is in order, or its values in their order."""
    if unordered:
        return False
    return next(csv.reader([typed])) if typed else None if typed is None else True


def _private(path: str) -> str:
    """Say that only its owner can read a file, where that is so."""
    seen = Path(path)
    return ", so only you can read it" if seen.is_file() and not seen.stat().st_mode & 0o077 else ""
