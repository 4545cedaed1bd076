"""``cvxprivacy plan``: five questions about a table, and the problem and the command they make."""

from __future__ import annotations

import sys
from typing import Any

import click

from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.exits import say, wants_json

__all__ = ["plan"]


@click.command(cls=shared.Grouped)
@click.argument("table", type=click.Path())
@click.option(
    "--sensitive", multiple=True, metavar="COLUMN[,…]", help="1. Which column is confidential?"
)
@click.option(
    "--key",
    multiple=True,
    metavar="COLUMN[,…]",
    help="2. Which columns could a stranger know?  They are what is changed.",
)
@click.option(
    "--criterion",
    multiple=True,
    metavar="NAME[=NUMBER[:MEASURE]]|none",
    help="3. What is promised of every group, beside the average?  As of `release`.",
)
@click.option("--budget", metavar="NUMBER", help="4. How much change is bearable?")
@shared.file("--out", "5. Where does the released table go?")
@click.option(
    "--row-id",
    metavar="COLUMN",
    help="Names each record, if these records will be released again.  The command then has a "
    "fresh seed: keep it secret.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN[,…]",
    help="Columns that are not in the released table; without it all are.",
)
@shared.bins("Other numbers are cut by --cells.")
@click.option(
    "--cells",
    type=int,
    metavar="NUMBER",
    help="Observed cells of the key at most: bins and most frequent values are chosen so.  By "
    "default 250, or one to 20 records if that is less.",
)
@click.option(
    "--distortion",
    multiple=True,
    metavar="COLUMN=KIND,…",
    help="As of `release`; by default steps between numbers, and whether a category changed.",
)
@click.option(
    "--missing",
    type=click.Choice(["level", "drop"]),
    help="Missing values: a letter of their own, as is proposed, or the record is left out.",
)
@click.option(
    "--plan",
    "name",
    default="plan",
    show_default=True,
    type=click.Path(),
    metavar="NAME",
    help="NAME.toml is the problem, for `cvxprivacy solve`, and NAME.sh the command.",
)
@click.option("--yes", is_flag=True, help="Ask nothing: take what is proposed.")
@shared.as_json(", and ask nothing")
@shared.force
@shared.reads_tables
def plan(table: str, reading: dict[str, Any], yes: bool, **options: Any) -> None:
    """Look at TABLE, propose how to release it, and write that down.

    Five questions are asked on a terminal, each with a proposal and why; an option answers its
    question beforehand.  Nothing is released: NAME.sh does that, from any folder.
    """
    from cvxprivacy_sdc.commands.planning import Planning

    asks = not yes and not wants_json() and _at_terminal()
    work = Planning(table, reading, options, asks=asks)
    try:
        work.ask()
    except click.Abort:
        raise KeyboardInterrupt from None
    work.write()
    if not asks:
        say(work.document, "\n".join(work.lines))


def _at_terminal() -> bool:
    return sys.stdin.isatty()
