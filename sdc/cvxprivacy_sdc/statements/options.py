"""Options that several commands share, and what is typed in them."""

from __future__ import annotations

import inspect
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy.text import named, near
from cvxprivacy_sdc.formats.delimited import CODES
from cvxprivacy_sdc.statements.columns import column_of
from cvxprivacy_sdc.statements.exits import AS_JSON, FORCED

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

HEADINGS = {  # of the help: which options stand under each
    "What is counted": ("sensitive", "each", "key", "weights", "missing"),
    "Groups of values": ("bins", "group", "hierarchy", "level", "top", "cells"),
    "What is asked": ("budget", "criterion", "distortion", "suppress", "leakage", "prior",
                      "encoder", "ensure", "noise", "units", "time_limit"),
    "What is measured": ("fraction", "ordered", "unordered", "bootstrap"),
    "How the table is drawn": ("seed", "row_id", "draw", "shuffle", "after", "after_channel"),
    "Other columns": ("drop", "keep_columns", "untouched", "attack"),
    "Files": ("out", "certificate", "channel", "problem_out", "report", "force"),
    "How a table is read": ("delimiter", "decimal", "encoding", "comment", "sheet", "na"),
}  # fmt: skip


class Grouped(click.Command):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each heading, and last those of none."""
        options = (p for p in self.get_params(ctx) if isinstance(p, click.Option))
        records = {p.name: record for p in options if (record := p.get_help_record(ctx))}
        for heading, names in HEADINGS.items():
            if rows := [records.pop(name) for name in names if name in records]:
                with formatter.section(heading):
                    formatter.write_dl(rows)
        with formatter.section("Other"):
            formatter.write_dl(list(records.values()))


def columns(name: str, purpose: str, **more: Any) -> Decorator:
    """Add an option that names columns."""
    return click.option(name, multiple=True, metavar="COLUMN[,…]", help=purpose, **more)


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


sensitive = columns("--sensitive", "Confidential column W, or several.", required=True)
units = choice("--units", ["bits", "nats"])


def key(purpose: str) -> Decorator:
    """Add the option that names the columns X."""
    return columns("--key", f"Columns X {purpose}", required=True)


def bins(purpose: str) -> Decorator:
    """Add the option that makes intervals of numbers."""
    edges = "age=10 makes bands of ten anchored at 0; age=-inf:18:65:inf names the edges; age=q10 "
    edges += "makes ten intervals of about equal counts; birth=year those of dates, as do month, "
    edges += "quarter, decade and 5years."
    metavar = "COLUMN=WIDTH|EDGES|qN|UNIT"
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


def missing(dropped: str, *more: str) -> Decorator:
    """Add the option for missing values; ``dropped`` says what becomes of their records.

    ``more`` are a further convention and what it means.
    """
    kinds = f"an error, a letter of their own, or the record is {dropped}"
    values = ["refuse", "level", "drop", *more[:1]]
    return choice("--missing", values, f"Missing values: {kinds}.{''.join(more[1:])}")


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
    """Add the options of random draws: ``seed``, ``row_id``, ``draw`` and ``shuffle``."""

    @seed(
        "Of the draws.  The risk holds only while nobody can guess it, and a short one is found "
        "by trying: leave it out for a fresh one of 128 bits."
    )
    @click.option(
        "--row-id",
        metavar="COLUMN",
        help="Names each record: its draw then depends on seed and name alone, so that releases "
        "of two months cannot be averaged.",
    )
    @click.option(
        "--draw",
        type=click.Choice(["independent", "balanced"]),
        default="independent",
        help="Each record by itself, or together, so that every count of a group, and of a "
        "confidential value in it, is its expectation rounded up or down.",
    )
    @click.option(
        "--shuffle",
        is_flag=True,
        help="Write the records in a secret random order, which the file NAME.house.json beside "
        "--out keeps: the order of the original may tell what was changed.  Of --seed, if one is "
        "typed.",
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
        "or the semicolon, tab or bar of a header without commas, or the blank between quoted "
        "names.",
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
    @click.option(
        "--comment",
        metavar="TEXT",
        help="What lines of comment begin with in a text table, such as '#'; they are copied.  By "
        "default there are none.",
    )
    @click.option("--sheet", metavar="NAME", help="Of a workbook that has several.")
    @click.option("--na", multiple=True, metavar="TEXT",
                  help="Text of a missing cell, several times if you like.  By default the empty "
                  "one; and, where a column is of numbers but for them, each of "
                  f"{' '.join(CODES)}, which is said.")  # fmt: skip
    @wraps(command)
    def run(*, delimiter: str | None, na: Any, **options: Any) -> Any:
        if delimiter in ("tab", "\\t"):
            delimiter = "\t"
        reading = {"delimiter": delimiter, "na": na or None}
        reading |= {name: options.pop(name) for name in ("encoding", "decimal", "comment", "sheet")}
        return command(reading=reading, **options)

    return run


def leaves_out(purpose: str) -> Decorator:
    """Add the options for columns that are not in the released table."""

    def added(command: Command) -> Command:
        kept = "The only other columns in the released table, besides the key, the confidential "
        kept += "columns and the weights."
        return columns("--drop", purpose)(columns("--keep-columns", kept)(command))

    return added


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


# ---- what is typed in them: columns, numbers, criteria, measures -------------------------


def criteria_of(texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return names and arguments of criteria written NAME or NAME=NUMBER."""
    if not texts:
        return []
    from cvxprivacy import criteria

    # what a criterion's words show is typed here: one number at most, and maybe a measure
    parameters = {
        name: needed
        for name in criteria.__all__
        if (words := getattr(criteria, name).words)
        and words.examples
        and len(needed := _needed(getattr(criteria, name))) < 2
    }
    rules = []
    for text in texts:
        name, _sign, value = text.partition("=")
        value, _sign, measure = value.partition(":")
        name, colon, number = name.partition(":")
        try:
            name = named(name, "--criterion", dict.fromkeys(parameters, ()), "criterion")
        except InputError as error:
            remedy = error.remedy
            if not near(name, parameters):
                remedy += ", or `cvxprivacy solve` for others"
            raise InputError("--criterion", f"{name!r} is unknown", remedy, value=name) from None
        if colon:  # KAnonymity:5, as measures are written
            meant = f"{name}={number or 'NUMBER'}" if parameters[name] else name
            raise InputError("--criterion", f"{text!r}", f"did you mean {meant}?", value=text)
        remedy = f"write {name}=NUMBER" if parameters[name] else f"write {name}"
        if bool(parameters[name]) != bool(value):
            raise InputError("--criterion", f"{text!r}", remedy, value=text)
        problem = f"{value!r} of {name}"
        numbers = [number_of(value, "--criterion", problem, remedy)] if value else []
        arguments: dict[str, Any] = dict(zip(parameters[name], numbers, strict=True))
        rules.append((name, arguments | _measured(getattr(criteria, name), measure, text)))
    return rules


def _needed(kind: Any) -> list[str]:
    """Return the arguments that a criterion needs besides a measure."""
    return [
        argument.name
        for argument in inspect.signature(kind).parameters.values()
        if argument.default is argument.empty and argument.name != "leakage"
    ]


def _measured(kind: Any, measure: str, text: str) -> dict[str, Any]:
    """Return the argument that NUMBER:MEASURE adds: a distance, or a measure of leakage."""
    parameters = inspect.signature(kind).parameters
    if measure and "distance" in parameters:
        return {"distance": kind(1, measure).distance}  # by its usual name
    if measure and "leakage" in parameters:
        return {"leakage": leakage_of(measure, "--criterion")}
    missing = "leakage" in parameters and parameters["leakage"].default is inspect.Parameter.empty
    if not measure and not missing:
        return {}
    remedy = f"write {kind.__name__}=0.1:total-variation" if missing else "leave it out"
    problem = "without a measure" if missing else f"with {measure!r}"
    raise InputError("--criterion", f"{text!r} {problem}", remedy, value=text)


def stated_leakage(data: Mapping[str, Any]) -> Any:
    """Return the measure of leakage that a problem file states in this way."""
    from cvxprivacy.leakage import MEASURES

    arguments = {name: value for name, value in data.items() if name != "kind"}
    return MEASURES[data["kind"]](**arguments)


def stated_criterion(data: Mapping[str, Any]) -> Any:
    """Return the criterion that a problem file states in this way."""
    from cvxprivacy import criteria

    arguments = {name: value for name, value in data.items() if name != "kind"}
    if "leakage" in arguments:
        arguments["leakage"] = stated_leakage(arguments["leakage"])
    return getattr(criteria, data["kind"])(**arguments)


def leakage_of(text: str, option: str) -> dict[str, Any]:
    """Return what a problem file says of a measure NAME, or NAME:NUMBER (hockey-stick:1.5)."""
    from cvxprivacy.leakage.base import measure_of

    kind, number = type(measure_of(text, option)), text.partition(":")[2]
    needed = [n for n, p in inspect.signature(kind).parameters.items() if p.default is p.empty]
    return {"kind": kind.__name__, **({needed[0]: float(number)} if needed else {})}


def number_of(
    text: str,
    option: str,
    problem: str,
    remedy: str,
    *,
    value: str | None = None,
    number: Callable[[str], Any] = float,
) -> Any:
    """Return the number that a text is, or refuse the value that it is of: by default itself."""
    try:
        return number(text)
    except ValueError:
        raise InputError(option, problem, remedy, value=value or text) from None


def pairs(
    texts: Sequence[str], header: Sequence[str], option: str, example: str, what: str = "column"
) -> dict[str, str]:
    """Split COLUMN=VALUE,… at commas, except where a column's name has one."""
    values: dict[str, str] = {}
    for text in texts:
        undivided = text.rpartition("=")[0] in header
        for part in [text] if undivided else text.split(","):
            name, sign, value = part.rpartition("=")
            name = name if name in header else name.strip()
            if not sign or not name or not value.strip():
                raise InputError(option, f"{part!r}", f"write it like {example}", value=part)
            name = column_of(name, header, option, what)
            if name in values:
                raise InputError(option, f"{name!r} twice", "say it once", value=name)
            values[name] = value.strip()
    return values


def bins_of(texts: Sequence[str], header: Sequence[str]) -> dict[str, Any]:
    """Return a width, the edges of intervals, or the name of some, for each column named.

    Names are "q10" of quantiles, "year" or "5years" of calendar intervals.
    """
    from cvxprivacy.tables.bins import edge_of
    from cvxprivacy.tables.periods import is_unit

    made: dict[str, Any] = {}
    for name, value in pairs(texts, header, "--bins", "age=10 or age=0:18:65:120").items():
        if re.fullmatch(r"q[0-9]+(:exact)?", value) or is_unit(value.lower()):
            made[name] = value.lower()
            continue
        problem = f"{value!r} for {name!r}"
        remedy = "write a width, age=10, edges, age=-inf:18:65:inf, quantiles, age=q10, or, of "
        remedy += "dates, month, quarter, year, decade, 5years"
        parts = value.split(":")
        how: dict[str, Any] = {"value": value, "number": edge_of}
        numbers = [number_of(part, "--bins", problem, remedy, **how) for part in parts]
        made[name] = numbers[0] if len(numbers) == 1 else numbers
    return made


def measures_of(
    texts: Sequence[str], columns: Sequence[str]
) -> tuple[dict[str, str], dict[str, float]]:
    """Return measures and weights of key columns, written COLUMN=KIND or COLUMN=WEIGHT*KIND."""
    from cvxprivacy.model.attributes import NAMES

    kinds: dict[str, str] = {}
    weights: dict[str, float] = {}
    if [text.strip().lower() for text in texts] == ["hamming"] and "hamming" not in columns:
        return kinds, weights  # a record counts once if anything changed
    number = r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+"
    for name, kind in pairs(texts, columns, "--distortion", "age=ordinal", "key column").items():
        match = re.fullmatch(rf"(?:({number})\*)?(\w[\w -]*)", kind)
        if match is None:
            remedy = "write it like age=ordinal or age=2*ordinal"
            raise InputError("--distortion", f"{kind!r} for {name!r}", remedy, value=kind)
        what = f"distortion, for {name!r}"
        weights[name], kinds[name] = (
            float(match[1] or 1), named(match[2], "--distortion", NAMES, what)
        )  # fmt: skip
    return kinds, weights


def prices_of(texts: Sequence[str], columns: Sequence[str]) -> float | dict[str, float]:
    """Return what it costs to suppress any key column, or those named: COST or COLUMN=COST,…."""
    example = "0.3, or age=0.3,sex=0.5"
    named = len(texts) > 1 or "=" in texts[0]
    typed = pairs(texts, columns, "--suppress", example, "key column") if named else {"": texts[0]}
    prices = {
        name: number_of(text, "--suppress", f"{text!r}", f"write a cost, {example}")
        for name, text in typed.items()
    }
    return prices if named else prices[""]
