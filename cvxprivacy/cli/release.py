"""``cvxprivacy release`` and ``apply``: a table in, a released table out."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvxprivacy.cli.common import CODES, reading_of, say_json, table_options, told
from cvxprivacy.errors import InputError
from cvxprivacy.files import whole_file

if TYPE_CHECKING:
    from cvxprivacy.criteria import Criterion
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.microdata.untouched import Leak
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.model.distortion import Distortion
    from cvxprivacy.results.solution import Solution

__all__ = [
    "apply",
    "columns_named",
    "criteria_of",
    "edges_of",
    "few",
    "pairs_of",
    "release",
    "solvable",
    "source_of",
    "writable",
]

MOST_LETTERS = 500  # more than that the conic solver cannot do in the memory of a common machine


@click.command()
@click.argument("table", type=click.Path())
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
    help="Columns X that are released in perturbed form.",
)
@click.option(
    "--bins",
    multiple=True,
    metavar="COLUMN=WIDTH|EDGES",
    help="age=10 makes bands of ten anchored at 0; age=-inf:18:65:inf names the edges. "
    "The bands are what is released.",
)
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
    help="Greatest expected distortion E d.  Without it, the "
    "least distortion under the criteria is found.",
)
@click.option(
    "--criterion",
    multiple=True,
    metavar="NAME[=NUMBER]",
    help="Such as TCloseness=0.1, KAnonymity=5, KeepProbability=0.6, PreserveMarginal.",
)
@click.option("--weights", metavar="COLUMN", help="Survey weights.")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "level", "drop"]),
    default="refuse",
    show_default=True,
    help="Missing values: an error, a letter of their own, or the "
    "record is left out of the released table too.",
)
@click.option(
    "--encoder",
    type=click.Choice(["x", "wx"]),
    default="x",
    show_default=True,
    help="What the randomisation sees: X, or W and X.",
)
@click.option("--units", type=click.Choice(["bits", "nats"]), default="bits", show_default=True)
@click.option("--accuracy", type=click.Choice(["default", "high"]), default="default")
@click.option(
    "--seed",
    type=int,
    help="Of the draws.  The risk holds only while nobody can guess it: leave it out for a fresh "
    "one of 128 bits.",
)
@click.option(
    "--row-id",
    metavar="COLUMN",
    help="Names each record: its draw then depends on "
    "seed and name alone, so that releases of two months cannot be averaged.",
)
@click.option(
    "--out",
    type=click.Path(),
    help="The released table; without it nothing is drawn, and the release is only priced.",
)
@click.option("--certificate", type=click.Path(), help="The proof, for `cvxprivacy verify`.")
@click.option("--channel", type=click.Path(), help="The channel, for `cvxprivacy apply`.")
@click.option(
    "--problem-out",
    type=click.Path(),
    metavar="PATH",
    help="The problem as typed here, in TOML: for `cvxprivacy verify --problem`, which tells "
    "whether a proof is of this question, and for `cvxprivacy solve`.",
)
@click.option(
    "--untouched/--no-untouched",
    default=True,
    show_default=True,
    help="Measure what the other columns reveal.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options
@told
def release(table: str, **options: Any) -> None:
    """Release TABLE (CSV, TSV or Parquet) with its key columns optimally randomised.

    The confidential column and all others are copied; every byte outside the key columns of a
    text table stays as it is.
    """
    from cvxprivacy import MinimumDistortion, PrivacyDistortion
    from cvxprivacy.cli.tables import open_table

    as_json, out = options["as_json"], options["out"]
    targets = {name: options[name] for name in ("out", "certificate", "channel")}
    targets["problem-out"] = options["problem_out"]
    writable(targets, table)
    _alike(table, out)
    reading = reading_of(options)
    opened = open_table(table, reading)
    seed = _seed(options["seed"], options["row_id"])
    if options["row_id"] is not None and options["row_id"] not in opened.header:
        problem_ = f"no column {options['row_id']!r}"
        raise InputError("--row-id", problem_, _known(opened.header))
    if options["budget"] is None and not options["criterion"]:
        raise InputError("--budget", "neither a budget nor a criterion", "pass one of them")
    asked = pairs_of(options["bins"], opened.header, "--bins", "age=10 or age=0:18:65:120")
    how = {
        **{name: columns_named(options[name], opened.header) for name in ("sensitive", "key")},
        "weights": options["weights"],
        "bins": {name: edges_of(name, spec) for name, spec in asked.items()},
        "missing": options["missing"],
    }
    with _progress(opened.size, f"reading {Path(table).name}", as_json) as read:
        whole = options["untouched"]
        frame, source = source_of(opened, whole=whole, progress=read, **how)
    few(source, "--key")
    d, criteria = _distortion(options["distortion"], source), criteria_of(options["criterion"])
    shared = {"encoder": options["encoder"], "units": options["units"]}
    if options["budget"] is None:
        problem: ChannelProblem = MinimumDistortion(source, d, criteria, **shared)
    else:
        problem = PrivacyDistortion(
            source, d, budget=options["budget"], criteria=criteria, **shared
        )
    solvable(problem, "--encoder")
    stated = ""
    if targets["problem-out"]:
        stated = _stated(targets["problem-out"], {"table": table, **how, **reading}, options)
    solution = problem.solve(accuracy=options["accuracy"])
    assert solution.channel is not None
    assert source.coding is not None
    leaks: list[Leak] = []
    if options["untouched"]:
        leaks = _leaks(frame, source, options, as_json)
    done: dict[str, Any] = {}
    with ExitStack() as files:  # all of them take their names, or none
        if out is not None:
            file = files.enter_context(whole_file(out, binary=True))
            with _progress(opened.size, f"writing {Path(out).name}", as_json) as written:
                done = opened.release(
                    solution.channel,
                    file,
                    seed=seed,
                    row_id=options["row_id"],
                    used=source.coding.columns,
                    progress=written,
                )
        for name, what in (("certificate", solution.certificate), ("channel", solution.channel)):
            if targets[name]:
                file = files.enter_context(whole_file(targets[name], private=True))
                what.write(file)
                file.flush()
        if targets["problem-out"]:
            file = files.enter_context(whole_file(targets["problem-out"]))
            file.write(stated)
            file.flush()
    report = _report(table, source, solution, leaks, done, targets)
    if as_json:
        say_json(report)
    else:
        click.echo(_said(report, source, solution))
    sys.exit(CODES[solution.status])


@click.command()
@click.argument("channel", type=click.Path())
@click.argument("table", type=click.Path())
@click.option("--out", type=click.Path(), required=True, help="The released table.")
@click.option(
    "--seed",
    type=int,
    help="Of the draws.  The risk holds only while nobody can guess it: leave it out for a fresh "
    "one of 128 bits.",
)
@click.option("--row-id", metavar="COLUMN", help="Names each record, as for `release`.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options
@told
def apply(channel: str, table: str, **options: Any) -> None:
    """Send TABLE through a CHANNEL that `release --channel` kept: next month's table.

    A text table is read as the first one was, unless options say otherwise.
    """
    from cvxprivacy.cli.tables import open_table
    from cvxprivacy.release.channel import Channel, columns_of

    out, as_json = options["out"], options["as_json"]
    writable({"out": out}, table, channel)
    _alike(table, out)
    kept = Channel.load(channel)
    if kept.coding is None:
        problem = "the channel does not know a table's columns"
        raise InputError("channel", problem, "pass one that `release --channel` kept")
    given = {k: v for k, v in reading_of(options).items() if v is not None}
    opened = open_table(table, {**kept.coding.reading, **given})
    if kept.decoder is not None:
        problem = "it releases letters u that a user decodes with Z, which this command cannot do"
        raise InputError("channel", problem, "apply it in Python: Channel.apply, Decoder.apply")
    used = [name for group in columns_of(kept.coding, kept.encoder) for name in group]
    seed = _seed(options["seed"], options["row_id"])
    with (
        whole_file(out, binary=True) as file,
        _progress(opened.size, f"writing {Path(out).name}", as_json) as written,
    ):
        done = opened.release(
            kept, file, seed=seed, row_id=options["row_id"], used=used, progress=written
        )
    if as_json:
        say_json({"table": table, "channel": channel, "out": out, **done})
    else:
        click.echo("\n".join([f"{out}: {_drawn(done)}", *(f"note: {n}" for n in done["notes"])]))


def source_of(
    opened: Any, *, whole: bool = False, progress: Any = None, **how: Any
) -> tuple[Any, DiscreteSource]:
    """Count a table's records as ``DiscreteSource.from_table`` does, and say how it was read.

    Parameters
    ----------
    opened : TextTable or ParquetTable
    whole : bool
        Read all columns, not only those that are counted.
    """
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.tables.frames import listed

    roles = {k: listed(how[k], k) for k in ("sensitive", "key", "side", "weights") if how.get(k)}
    for role, group in roles.items():
        for name in group:
            if name not in opened.header:
                raise InputError(role, f"no column {name!r}", _known(opened.header), value=name)
    names = [name for group in roles.values() for name in group]
    frame = opened.frame(
        None if whole else names, binned=list(how.get("bins") or ()), progress=progress
    )
    source = DiscreteSource.from_table(frame, **how)
    assert source.coding is not None
    return frame, source.read_as(opened.reading(names, frame))


def _seed(given: int | None, row_id: str | None) -> int:
    """Return the seed given, or a fresh one that nobody knows."""
    if row_id is not None and given is None:
        remedy = "name the seed that all releases of these records share, and keep it secret"
        raise InputError("--row-id", "no --seed: the next release would draw anew", remedy)
    if given is not None and given < 0:
        raise InputError("--seed", f"{given}", "pass a whole number ≥ 0", value=given)
    return secrets.randbits(128) if given is None else given


# ---- options -----------------------------------------------------------------------------


def writable(targets: dict[str, str | None], *inputs: str, prefix: str = "--") -> None:
    """Refuse, before any work, outputs that cannot be or that would destroy an input."""
    seen = {os.path.realpath(path): f"the input {path}" for path in inputs}
    for name, path in targets.items():
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in seen:
            raise InputError(f"{prefix}{name}", f"{path} is {seen[real]}", "name another file")
        folder = Path(real).parent
        if not folder.is_dir():
            raise InputError(
                f"{prefix}{name}", f"{path}: there is no folder {folder}", "make it first"
            )
        if Path(real).is_dir() or not os.access(folder, os.W_OK):
            raise InputError(f"{prefix}{name}", f"{path} cannot be written", "name another file")
        seen[real] = f"also {prefix}{name}"


def _alike(path: str, out: str | None) -> None:
    """Refuse an output whose name says another format than it will have."""
    parquet = [Path(p).suffix.lower() in (".parquet", ".pq") for p in (path, out or path)]
    if parquet[0] != parquet[1]:
        kind = "Parquet" if parquet[0] else "text"
        problem = f"{out} would hold {kind}, as {path} does"
        raise InputError("--out", problem, "give both the same ending", value=out)


def few(source: DiscreteSource, argument: str) -> None:
    """Refuse more letters than can be solved for, before a matrix of all pairs is made."""
    if len(source.x) > MOST_LETTERS:
        raise _too_many(argument, f"{len(source.x):,} observed cells of {source.names[1]}")


def solvable(problem: ChannelProblem, argument: str) -> None:
    """Refuse a program that no common machine can solve."""
    if problem.n * problem.m > MOST_LETTERS**2:
        raise _too_many(argument, f"{problem.n:,} letters to release as {problem.m:,}")


def _too_many(argument: str, many: str) -> InputError:
    remedy = f"at most {MOST_LETTERS} can be solved for: bin numbers, or name fewer columns"
    return InputError(argument, many, remedy)


def columns_named(given: Sequence[str], header: Sequence[str]) -> list[str]:
    """Split at commas, except where a column's name has one."""
    found: list[str] = []
    for text in given:
        found += [text] if text in header else [part.strip() for part in text.split(",")]
    return found


def _known(header: Sequence[str]) -> str:
    """Return the remedy for a column that is not there."""
    remedy = f"use one of {', '.join(map(repr, header))}"
    if len(header) == 1 and any(mark in header[0] for mark in ",;\t|"):
        remedy += ", or pass another --delimiter"
    return remedy


def pairs_of(
    given: Sequence[str], header: Sequence[str], option: str, example: str, what: str = "column"
) -> dict[str, str]:
    """Split COLUMN=VALUE,… at commas, except where a column's name has one."""
    found: dict[str, str] = {}
    for text in given:
        whole = text.rpartition("=")[0] in header
        for part in [text] if whole else text.split(","):
            name, sign, value = part.rpartition("=")
            name = name if name in header else name.strip()
            if not sign or not name or not value.strip():
                raise InputError(option, f"{part!r}", f"write it like {example}", value=part)
            if name not in header:
                raise InputError(option, f"no {what} {name!r}", _known(header), value=name)
            if name in found:
                raise InputError(option, f"{name!r} twice", "say it once", value=name)
            found[name] = value.strip()
    return found


def edges_of(name: str, spec: str) -> Any:
    """Return a width, or the edges of intervals."""
    try:
        numbers = [float(part) for part in spec.split(":")]
    except ValueError:
        remedy = "write a width, age=10, or edges, age=-inf:18:65:inf"
        raise InputError("--bins", f"{spec!r} for {name!r}", remedy, value=spec) from None
    return numbers[0] if len(numbers) == 1 else numbers


def _distortion(given: Sequence[str], source: DiscreteSource) -> Distortion:
    from cvxprivacy.model.distortion import hamming, per_attribute

    assert source.coding is not None
    if not given:
        return hamming(source.x)
    kinds, weights = _measures(given, source.coding.key)
    return per_attribute(kinds, source, weights=weights)


def _measures(given: Sequence[str], key: Sequence[str]) -> tuple[dict[str, Any], dict[str, float]]:
    """Return measures and weights of key columns, written COLUMN=KIND or COLUMN=WEIGHT*KIND."""
    kinds: dict[str, Any] = {}
    weights: dict[str, float] = {}
    for name, kind in pairs_of(given, key, "--distortion", "age=ordinal", "key column").items():
        match = re.fullmatch(r"(?:([0-9.eE+-]+)\*)?(\w+)", kind)
        if match is None:
            remedy = "write it like age=ordinal or age=2*ordinal"
            raise InputError("--distortion", f"{kind!r} for {name!r}", remedy, value=kind)
        kinds[name] = match[2]
        try:
            weights[name] = float(match[1] or 1)
        except ValueError:
            remedy = "write a number before *"
            raise InputError("--distortion", f"{match[1]!r}", remedy, value=match[1]) from None
    return kinds, weights


def criteria_of(given: Sequence[str]) -> list[Criterion]:
    """Return criteria written NAME or NAME=NUMBER."""
    from cvxprivacy import criteria

    return [getattr(criteria, name)(**typed) for name, typed in _criteria(given)]


def _criteria(given: Sequence[str]) -> list[tuple[str, dict[str, float]]]:
    """Return names and arguments of criteria written NAME or NAME=NUMBER."""
    import inspect

    from cvxprivacy import criteria

    known = {
        name: [*inspect.signature(getattr(criteria, name)).parameters]
        for name in criteria.__all__
        if name not in ("Criterion", "ForbiddenMoves", "PreserveMean", "Linear")
    }
    found = []
    for text in given:
        name, _, value = text.partition("=")
        if name not in known:
            remedy = f"use one of {', '.join(known)}, or `cvxprivacy solve` for others"
            raise InputError("--criterion", f"{name!r} is unknown", remedy, value=name)
        if bool(known[name]) != bool(value):
            remedy = f"write {name}=NUMBER" if known[name] else f"write {name}"
            raise InputError("--criterion", f"{text!r}", remedy, value=text)
        try:
            numbers = [float(value)] if value else []
        except ValueError:
            remedy = f"write {name}=NUMBER"
            raise InputError("--criterion", f"{value!r} of {name}", remedy, value=value) from None
        found.append((name, dict(zip(known[name], numbers, strict=True))))
    return found


def _stated(path: str, source: dict[str, Any], options: dict[str, Any]) -> str:
    """Return the problem as typed, in TOML, with the table as seen from the folder of ``path``."""
    from cvxprivacy.cli.problemfile import written

    folder = os.path.realpath(Path(path).absolute().parent)
    place: str | Path = Path(source["table"]).absolute()
    with suppress(ValueError):  # of another drive
        place = os.path.relpath(place, folder)
    source = {**source, "table": Path(place).as_posix(), "bins": source["bins"] or None}
    kinds, weights = _measures(options["distortion"], source["key"])
    budget = options["budget"]
    data: dict[str, Any] = {
        "formulation": "MinimumDistortion" if budget is None else "PrivacyDistortion",
        **({} if budget is None else {"budget": budget}),
        "encoder": options["encoder"],
        "units": options["units"],
        "source": {name: value for name, value in source.items() if value is not None},
        "distortion": {"attributes": kinds, "weights": weights} if kinds else {"kind": "hamming"},
        "criteria": [{"kind": k, **typed} for k, typed in _criteria(options["criterion"])],
        "solve": {"accuracy": options["accuracy"]},
    }
    try:
        return written(data)
    except InputError as error:
        raise InputError("--problem-out", error.problem, error.remedy, value=error.value) from None


# ---- what is said ------------------------------------------------------------------------


@contextmanager
def _progress(size: int, label: str, quiet: bool) -> Iterator[Any]:
    """Show a bar on a terminal's standard error, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=size, label=label, file=sys.stderr) as bar:
        yield bar.update


def _leaks(frame: Any, source: DiscreteSource, options: dict[str, Any], quiet: bool) -> list[Leak]:
    from cvxprivacy.microdata.untouched import untouched

    assert source.coding is not None
    columns = [name for name in frame.columns if name not in source.coding.columns]
    with _progress(len(columns), "other columns", quiet) as counted:
        return untouched(
            frame, source.coding, units=options["units"], columns=columns, progress=counted
        )


def _report(
    table: str,
    source: DiscreteSource,
    solution: Solution,
    leaks: list[Leak],
    done: dict[str, Any],
    targets: dict[str, str | None],
) -> dict[str, Any]:
    units = solution.units
    terms = {name: [term.lower, term.upper] for name, term in solution.terms.items()}
    report: dict[str, Any] = {
        "table": table,
        "records": source.records,
        "dropped": source.dropped,
        "units": units,
        "value_units": solution.value_units,
        "status": solution.status,
        "lower": solution.lower,
        "upper": solution.upper,
        "risk_before": source.information(units=units),
        "risk_before_bias": source.bias(units=units),
        "terms": terms,
        "prices": solution.prices,
        "released": {name: count for name, count in done.items() if name != "notes"},
        "untouched": [
            {"column": leak.column, "information": leak.information, "bias": leak.bias,
             "values": leak.values, "binned": leak.binned}
            for leak in leaks
        ],
        "files": {name: path for name, path in targets.items() if path},
        "notes": [*source.noted(units=units), *done.get("notes", ())],
    }  # fmt: skip
    after = float(solution.terms["risk"])
    if report["risk_before"] == 0:
        report["notes"].append(
            f"{source.names[0]} is independent of {source.names[1]}: nothing needs to be changed"
        )
    above = [leak for leak in leaks if leak.corrected > max(after, leak.bias or 0.0)]
    naming = [leak.column for leak in leaks if leak.values * 2 > (source.records or 0)]
    if naming:
        report["notes"].append(
            f"{', '.join(naming)} differ from record to record: whoever knows such a value knows "
            f"the record, and its {source.names[0]}"
        )
    if above:
        names = ", ".join(f"{leak.column} ({leak.corrected:.3g})" for leak in above[:5])
        if len(above) > 5:
            names += f" and {len(above) - 5} more"
        report["notes"].append(
            f"columns left as they are reveal more {units} about {source.names[0]}, each by "
            f"itself, than the {after:.3g} of the released ones: {names}; whoever has them gains "
            "little from the columns that you protected"
        )
    return report


def _said(report: dict[str, Any], source: DiscreteSource, solution: Solution) -> str:
    from cvxprivacy.model.information import FEW_CELLS, bias_in_words

    units, before, bias = report["units"], report["risk_before"], report["risk_before_bias"]
    after = float(solution.terms["risk"])
    share = f" = {after / before:.0%} of it" if before > 0 else ""
    lines = [
        f"{report['table']}: {source.records:,} records, {source.names[0]} in {len(source.w)} "
        f"values, {source.names[1]} in {len(source.x)} observed cells",
        str(solution),
        f"  risk before      {before:.6g} {units}, {bias_in_words(bias)}",
        f"  risk after       {after:.6g} {units}{share}",
    ]
    if report["untouched"]:
        lines.append(f"what the other columns reveal about {source.names[0]}, each by itself:")
        for leak in report["untouched"]:
            if leak["information"] is None:
                lines.append(f"  {leak['column']:<20} too many values to tell ({leak['values']:,})")
                continue
            size = f"{leak['values']:,} values" + (" in 20 intervals" if leak["binned"] else "")
            least = "at least " if leak["binned"] else ""
            off = f"bias {leak['bias']:.4f}"
            if leak["bias"] < 0:
                off = f"too low by about {-leak['bias']:.4f}, as {FEW_CELLS}"
            lines.append(
                f"  {leak['column']:<20} {least}{leak['information']:.4f} {units} ({off}; {size})"
            )
        lines.append(f"  {source.names[0]} itself is copied as it is")
    lines += [f"note: {note}" for note in report["notes"]]
    files = report["files"]
    if "out" in files:
        lines.append(f"{files['out']}: {_drawn(report['released'])}")
    if "certificate" in files:
        lines.append(
            f"{files['certificate']}: the proof; it contains the joint law of "
            f"{source.names[0]}, so only you can read it: keep it with the original table"
        )
    if "channel" in files:
        lines.append(
            f"{files['channel']}: the channel, for `cvxprivacy apply`; it holds the law of its "
            "inputs, so only you can read it"
        )
    if "problem-out" in files:
        lines.append(
            f"{files['problem-out']}: the problem, for `cvxprivacy verify --problem` and "
            "`cvxprivacy solve`"
        )
    return "\n".join(lines)


def _drawn(done: dict[str, Any]) -> str:
    said = f"{done['records']:,} records"
    if "changed" in done:
        said += f", {done['changed']:,} of them changed"
    if done["dropped"]:
        said += f"; {done['dropped']:,} with missing values are left out"
    return said
