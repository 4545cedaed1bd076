"""Options that several commands share, and what is typed in them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from cvxprivacy.cli.exits import AS_JSON, FORCED
from cvxprivacy.cli.typed import criteria_of, leakage_of, stated_leakage
from cvxprivacy.errors import InputError

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


# ---- options -----------------------------------------------------------------------------


def _columns(name: str, purpose: str) -> Decorator:
    return click.option(name, multiple=True, required=True, metavar="COLUMN[,…]", help=purpose)


def report(command: Command) -> Command:
    """Add the option for a report that a disclosure board signs."""
    return click.option(
        "--report",
        multiple=True,
        type=click.Path(),
        metavar="PATH.html|PATH.json",
        help="What a disclosure board reads and signs: the verdict, what was asked and found, and "
        "how to check it, as one page that needs nothing else, or as JSON; or both.  It names no "
        "confidential value.",
    )(command)


def choice(name: str, values: Sequence[str], purpose: str = "") -> Decorator:
    """Add an option of which the first value is the default."""
    kind = click.Choice(values)
    return click.option(name, type=kind, default=values[0], show_default=True, help=purpose)


def file(name: str, purpose: str, **more: Any) -> Decorator:
    """Add an option that names a file."""
    return click.option(name, type=click.Path(), help=purpose, **more)


sensitive = _columns("--sensitive", "Confidential column W, or several.")
units = choice("--units", ["bits", "nats"])


def key(purpose: str) -> Decorator:
    """Add the option that names the columns X."""
    return _columns("--key", f"Columns X {purpose}")


def bins(purpose: str) -> Decorator:
    """Add the option that makes intervals of numbers."""
    edges = "age=10 makes bands of ten anchored at 0; age=-inf:18:65:inf names the edges; age=q10 "
    edges += "makes ten intervals of about equal counts."
    metavar = "COLUMN=WIDTH|EDGES|qN"
    return click.option("--bins", multiple=True, metavar=metavar, help=f"{edges} {purpose}")


def recoded(command: Command) -> Command:
    """Add the options that put values into groups: one argument ``recoding``."""

    @click.option(
        "--group",
        multiple=True,
        metavar="COLUMN=FILE",
        help="Values put into groups by a CSV file of two columns: value, group.",
    )
    @click.option(
        "--hierarchy",
        multiple=True,
        metavar="COLUMN=FILE",
        help="Values put into the groups of a hierarchy as ARX writes it: a line per "
        "value, value;level 1;level 2;…  Its level is chosen by --level.",
    )
    @click.option(
        "--level",
        multiple=True,
        metavar="COLUMN=NUMBER",
        help="The level of a hierarchy; 0 is the values themselves.",
    )
    @click.option(
        "--top",
        multiple=True,
        metavar="COLUMN=NUMBER",
        help='That many most frequent values, and all others as one group "other".',
    )
    @wraps(command)
    def run(*, group: Any, hierarchy: Any, level: Any, top: Any, **options: Any) -> Any:
        recoding = {"group": group, "hierarchy": hierarchy, "level": level, "top": top}
        return command(recoding=recoding, **options)  # fmt: skip

    return run


def missing(dropped: str) -> Decorator:
    """Add the option for missing values; ``dropped`` says what becomes of their records."""
    kinds = f"an error, a letter of their own, or the record is {dropped}"
    return choice("--missing", ["refuse", "level", "drop"], f"Missing values: {kinds}.")


def as_json(more: str = "") -> Decorator:
    """Add ``--json``, which is no argument of the command but a setting of its context."""

    def note(ctx: click.Context, _: click.Parameter, chosen: bool) -> None:
        ctx.meta[AS_JSON] = chosen

    return click.option(
        "--json", is_flag=True, is_eager=True, expose_value=False, callback=note,
        help=f"Print one JSON document{more}.",
    )  # fmt: skip


def _note_force(ctx: click.Context, _: click.Parameter, chosen: bool) -> None:
    ctx.meta[FORCED] = chosen


force = click.option(  # no argument of the command but a setting of its context, as --json is
    "--force", is_flag=True, expose_value=False, callback=_note_force,
    help="Replace files that are there already.",
)  # fmt: skip


def _nonnegative(_: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    if value is not None and value < 0:
        raise InputError(parameter.opts[0], f"{value}", "pass a whole number ≥ 0", value=value)
    return value


def seed(purpose: str, **more: Any) -> Decorator:
    """Add the option for a seed."""
    return click.option("--seed", type=int, callback=_nonnegative, help=purpose, **more)


def drawn(command: Command) -> Command:
    """Add the options of random draws: ``seed`` and ``row_id``."""

    @seed(
        "Of the draws.  The risk holds only while nobody can guess it: leave it out for a fresh "
        "one of 128 bits."
    )
    @click.option(
        "--row-id",
        metavar="COLUMN",
        help="Names each record: its draw then depends on seed and name alone, so that releases "
        "of two months cannot be averaged.",
    )
    @wraps(command)
    def run(*, seed: int | None, row_id: str | None, **options: Any) -> Any:
        if row_id is not None and seed is None:
            remedy = "name the seed that all releases of these records share, and keep it secret"
            raise InputError("--row-id", "no --seed: the next release would draw anew", remedy)
        fresh = secrets.randbits(128) if seed is None else seed
        return command(seed=fresh, row_id=row_id, **options)

    return run


def reads_tables(command: Command) -> Command:
    """Add the options that say how a table is read: one argument ``reading``."""

    @click.option(
        "--delimiter",
        help="Of a text table; by default a tab for .tsv, else a comma, "
        "or the semicolon, tab or bar of a header without commas.",
    )
    @click.option(
        "--decimal",
        metavar="SIGN",
        help="Decimal sign of a text table, a point or a comma; a point by default.",
    )
    @click.option(
        "--encoding",
        help="Of a text table, utf-8 by default, and of SPSS, Stata and "
        "SAS tables that do not tell theirs.",
    )
    @click.option("--sheet", metavar="NAME", help="Of a workbook that has several.")
    @click.option("--na", multiple=True, metavar="TEXT",
                  help="Text of a missing cell; by default the empty one.  May be given several "
                  "times.")  # fmt: skip
    @wraps(command)
    def run(*, delimiter: str | None, na: Any, **options: Any) -> Any:
        if delimiter in ("tab", "\\t"):
            delimiter = "\t"
        reading = {"delimiter": delimiter, "na": na or None}
        reading |= {name: options.pop(name) for name in ("encoding", "decimal", "sheet")}
        return command(reading=reading, **options)

    return run


def criterion(metavar: str, purpose: str) -> Decorator:
    """Add the option for criteria, which become names and arguments."""
    return click.option(
        "--criterion", multiple=True, metavar=metavar, callback=_criteria, help=purpose
    )


def _criteria(
    _: click.Context, __: click.Parameter, texts: Sequence[str]
) -> list[tuple[str, dict[str, Any]]]:
    return criteria_of(texts)


def leakage(purpose: str) -> Decorator:
    """Add the option for measures of leakage, which become an argument of that name."""

    def measured(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> Any:
        return [stated_leakage(leakage_of(text, "--leakage")) for text in texts] or None

    return click.option(
        "--leakage", multiple=True, metavar="NAME[:NUMBER]", callback=measured, help=purpose
    )
