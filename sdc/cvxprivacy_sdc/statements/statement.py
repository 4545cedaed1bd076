"""The problem that a release's options state: its source, its program, its problem file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cvxprivacy.errors import InputError
from cvxprivacy.files import relative
from cvxprivacy_sdc.statements.columns import column_of, columns_of, refuse_unknown
from cvxprivacy_sdc.statements.exits import note_reading
from cvxprivacy_sdc.statements.options import (
    bins_of,
    leakage_of,
    measures_of,
    prices_of,
    stated_criterion,
    stated_leakage,
)
from cvxprivacy_sdc.statements.recodings import placed, resolved, stated

if TYPE_CHECKING:
    from cvxprivacy.criteria import Criterion
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.model.discrete import DiscreteSource

__all__ = [
    "counting_of",
    "law_criteria",
    "of_table",
    "problem_data",
    "problem_of",
    "problem_text",
    "refuse_intractable",
    "role_columns",
    "source_of",
    "table_source",
]

MOST_ENTRIES = 16_000_000  # of a channel: 4,000 cells fit in 4 GiB, and in a proof of a minute
_MOST_FREE = 64_000_000  # of one of which nothing is asked, whose proof reads each cost once


def role_columns(counting: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the columns that are counted, by the argument that names them."""
    from cvxprivacy.tables.schema import column_names

    roles = ("sensitive", "key", "side", "weights")
    return {role: column_names(counting[role], role) for role in roles if counting.get(role)}


def source_of(
    opened: Any,
    *,
    all_columns: bool = False,
    also: str | None = None,
    progress: Callable[[int], object] | None = None,
    **counting: Any,
) -> tuple[Any, DiscreteSource]:
    """Count a table's records as ``DiscreteSource.from_table`` does, and record how it was read.

    With ``all_columns``, they are read and not only those that are counted and ``also``.
    """
    from cvxprivacy.model.discrete import DiscreteSource

    counting = resolved(counting)
    roles = role_columns(counting)
    for role, names in roles.items():
        refuse_unknown(role, names, opened.header)
    columns = [name for group in roles.values() for name in group]
    binned = counting.get("bins") or {}
    read = list(dict.fromkeys([*columns, *([] if also is None else [also])]))
    if all_columns:
        read = [name for name in opened.header if name in read or name not in opened.dropped]
    frame = opened.frame(read, binned=binned, progress=progress)
    source = DiscreteSource.from_table(frame, **counting)
    return frame, source.read_as({**opened.reading(columns, frame), **opened.dropping})


def table_source(
    path: Path, *, delimiter: str | None = None, decimal: str | None = None,
    encoding: str | None = None, comment: str | None = None, sheet: str | None = None,
    na: list[str] | None = None,
    hierarchy: Mapping[str, str] | None = None, level: Mapping[str, int] | None = None,
    groups: Mapping[str, Any] | None = None,
    **counting: Any,
) -> Any:  # fmt: skip
    """Return the source of a problem file's table; its options are those of the file.

    ``groups`` may name files, and ``hierarchy`` does, for columns of which ``level`` is taken.
    """
    from cvxprivacy_sdc.formats.table_files import open_table

    how = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "comment": comment}
    opened = note_reading(open_table(path, {**how, "sheet": sheet, "na": na}))
    recoding: dict[str, Any] = {"hierarchy": hierarchy, "level": level, "groups": groups}
    source = source_of(opened, **recoding, **counting)[1]
    refuse_intractable(source, "key", each=True)  # of all cells it depends on the distortion
    return source


def refuse_intractable(
    stated: DiscreteSource | ChannelProblem, argument: str, *, each: bool = False,
    free: bool = False,
) -> None:  # fmt: skip
    """Refuse more letters than a table of all pairs has room for.

    Of a source, before that is made, or those of ``each`` of its columns; of a problem, unless its
    distortion is a sum over columns.  Of a ``free`` law, of which nothing is asked, there may be
    more.
    """
    from cvxprivacy.additive import AdditiveCost
    from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
    from cvxprivacy.model.discrete import DiscreteSource

    remedy = "bin numbers, or name fewer columns"
    if isinstance(stated, DiscreteSource):
        n = m = len(stated.x)
        if each and stated.schema is not None:
            n = m = max(len(stated.levels[name]) for name in stated.schema.key)
        problem = f"{len(stated.x):,} observed cells of {_multiplied(stated)}"
        if (band := _band(stated, n / MOST_ENTRIES**0.5)) is not None:
            remedy = f"pass --bins {band}, bin other numbers, or name fewer columns"
        if stated.schema is not None and len(stated.schema.key) > 1:
            remedy += ", or measure each column by itself: --distortion COLUMN=hamming,…"
        remedy += "; `release --cells 300` chooses bins"
    else:
        if isinstance(stated.alphabet.d.cost, AdditiveCost):
            return
        free = isinstance(stated, MinimumDistortion) and not stated.criteria
        n, m = stated.alphabet.n, stated.alphabet.m
        problem = f"{n:,} letters to release as {m:,}"
    most = int((_MOST_FREE if free else MOST_ENTRIES) ** 0.5)
    if n * m > most**2:
        raise InputError(argument, problem, f"about {most:,} can be solved for: {remedy}")


def _multiplied(source: DiscreteSource) -> str:
    """Return the key columns with how many levels each has, those of most levels first."""
    if source.schema is None:
        return str(source.names[1])
    counts = {name: len(source.levels[name]) for name in source.schema.key}
    names = sorted(counts, key=lambda name: -counts[name])
    return " × ".join(f"{name} ({counts[name]:,} levels)" for name in names)


def _band(source: DiscreteSource, excess: float) -> str | None:
    """Return bins of the column of numbers that has most levels, wide enough if it alone is cut.

    Of dates, where no column is of numbers.
    """
    from cvxprivacy.tables.bins import MOST_BINS
    from cvxprivacy.tables.labels import as_fraction
    from cvxprivacy.tables.periods import Periods, are_dates

    if source.schema is None:
        return None
    free = [name for name in source.schema.key if name not in source.schema.bins]
    of: Mapping[str, Any] = source.levels
    numbers = {
        name: of[name]
        for name in free
        if all(isinstance(v, Number) and math.isfinite(cast(Any, v)) for v in of[name])
    }
    if not numbers:
        dated = [name for name in free if are_dates(source.levels[name])]
        fewer = ((name, unit, {*Periods(unit).named(source.levels[name])})
                 for unit in ("month", "year", "decade") for name in dated)  # fmt: skip
        enough = (f"{name}={unit}" for name, unit, periods in fewer
                  if excess * len(periods) <= len(source.levels[name]))  # fmt: skip
        return next(enough, None)
    name = max(numbers, key=lambda key: len(numbers[key]))
    levels = numbers[name]
    if len(levels) < 2 * excess:
        return None
    extent = float(as_fraction(max(levels)) - as_fraction(min(levels)))
    width = max(1.2 * excess / len(levels), 1.1 / MOST_BINS) * extent
    step = 10.0 ** math.floor(math.log10(width)) if width > 0 else 1.0
    return f"{name}={next(step * k for k in (1, 2, 5, 10) if step * k >= width):g}"


def counting_of(options: Mapping[str, Any], header: Sequence[str]) -> dict[str, Any]:
    """Return which columns are counted, and how: the arguments of :func:`source_of`."""
    counting = {
        **{role: columns_of(options[role], header, f"--{role}") for role in ("sensitive", "key")},
        "weights": options["weights"] and column_of(options["weights"], header, "--weights"),
        "bins": bins_of(options["bins"], header) or None,
        "missing": options["missing"],
        **stated(options["recoding"], header),
    }
    return {name: value for name, value in counting.items() if value is not None}


def problem_data(options: Mapping[str, Any], header: Sequence[str]) -> dict[str, Any]:
    """Return what the options of ``release`` state, with the keys of a problem file.

    The table's path and how it is read are not among them.
    """
    criteria = options["criterion"]
    if options["budget"] is None and not criteria:
        problem = "neither a budget nor a criterion"
        raise InputError(
            "--budget", problem, "pass one of them, such as --criterion LeakageCap=0.05"
        )
    if options["leakage"] and options["budget"] is None:
        problem, remedy = "nothing is minimised of it", "pass --budget"
        remedy += ", or --criterion LeakageCap=0.1:MEASURE"
        raise InputError("--leakage", problem, remedy, value=options["leakage"])
    if options["prior"] == "any" and options["budget"] is None:
        problem = "nothing is minimised of it"
        remedy = "pass --budget, or --criterion CapacityCap=0.1 in its place"
        raise InputError("--prior", problem, remedy, value=options["prior"])
    if options["prior"] == "any" and options["after"]:
        problem, remedy = "any, of several releases together", "leave out --after, or --prior any"
        raise InputError("--prior", problem, remedy, value=options["prior"])
    if options["prior"] == "any" and options["leakage"]:
        problem, remedy = f"any, of {options['leakage']}", "leave out --leakage, or --prior any"
        raise InputError("--prior", problem, remedy, value=options["leakage"])
    counting = counting_of(options, header)
    kinds, weights = measures_of(options["distortion"], counting["key"])
    distortion: dict[str, Any] = {"attributes": kinds, "weights": weights}
    if not kinds:
        distortion = {"kind": "hamming"}
    if options["suppress"]:
        distortion |= {"suppress": prices_of(options["suppress"], counting["key"])}
    budget = {} if options["budget"] is None else {"budget": options["budget"]}
    return {
        "formulation": "PrivacyDistortion" if budget else "MinimumDistortion",
        **budget,
        **({"leakage": leakage_of(options["leakage"], "--leakage")} if options["leakage"] else {}),
        **({"prior": options["prior"]} if budget and options["prior"] != "source" else {}),
        **({"after": list(options["after_channel"])} if options["after_channel"] else {}),
        "encoder": options["encoder"],
        "units": options["units"],
        "source": counting,
        "distortion": distortion,
        "criteria": [{"kind": kind, **numbers} for kind, numbers in criteria],
    }


def problem_of(data: Mapping[str, Any], source: DiscreteSource) -> ChannelProblem:
    """Return the problem that :func:`problem_data` holds, of its source."""
    import cvxprivacy
    from cvxprivacy.model.attributes import per_attribute
    from cvxprivacy.model.distortion import hamming

    measure, stated = data["distortion"], law_criteria(data, source)
    refuse_intractable(
        source, "--key", each="attributes" in measure, free=not stated and "budget" not in data
    )
    if "attributes" in measure:
        d = per_attribute(measure["attributes"], source, weights=measure["weights"])
    else:
        d = hamming(source.x)
    if "suppress" in measure:
        d = suppressible(d, measure["suppress"], data["source"]["key"])
    rules = [stated_criterion(rule) for rule in stated]
    numbers = ("budget", "prior", "encoder", "units")
    settings = {name: data[name] for name in numbers if name in data}
    if "leakage" in data:
        settings["leakage"] = stated_leakage(data["leakage"])
    if "after" in data:
        settings["after"] = [cvxprivacy.Channel.load(path) for path in data["after"]]
    formulation = getattr(cvxprivacy, data["formulation"])
    problem: ChannelProblem = formulation(source, d, criteria=rules, **settings)
    refuse_intractable(problem, "--encoder")
    return problem


def law_criteria(data: Mapping[str, Any], source: DiscreteSource) -> list[dict[str, Any]]:
    """Return the criteria of a problem's data as a law keeps them, with the keys of the data.

    Of a table alone a law is asked nothing where the key has too many cells for a program, unless
    each column is measured by itself.
    """
    together = "attributes" not in data["distortion"] and len(source.x) ** 2 > MOST_ENTRIES
    if together and len(of_table(data)) == len(data["criteria"]):
        return []
    return [
        {**rule, "kind": type(stated_criterion(rule).relaxation).__name__}
        for rule in data["criteria"]
    ]


def of_table(data: Mapping[str, Any]) -> list[Criterion]:
    """Return the criteria of a problem's data that no law satisfies, and a table may."""
    return [rule for rule in map(stated_criterion, data["criteria"]) if rule.of_table]


@contextmanager
def too_many(source: DiscreteSource) -> Iterator[None]:
    """Say of a program that no proof holds which columns multiply, and what would do."""
    try:
        yield
    except InputError as error:
        if error.argument != "problem":
            raise
        problem = f"{len(source.x):,} observed cells of {_multiplied(source)} are more than can be "
        problem += "solved for so"
        remedy = "pass --cells 100, which chooses bands and groups, or wider --bins"
        raise InputError("--key", problem, remedy) from error


def suppressible(d: Any, cost: Any, columns: Sequence[str]) -> Any:
    """Return a distortion whose key columns may be suppressed at a cost."""
    try:
        return d.with_suppression(cost, columns=columns)
    except InputError as error:
        raise InputError("--suppress", error.problem, error.remedy, value=error.value) from None


def problem_text(
    path: str, data: Mapping[str, Any], table: str, reading: Mapping[str, Any],
    criteria: Sequence[Mapping[str, Any]],
) -> str:  # fmt: skip
    """Return the problem file at ``path``, with the table as seen from its folder.

    Its ``criteria`` are those of the law.
    """
    from cvxprivacy_sdc.statements.toml import written

    folder = os.path.realpath(Path(path).absolute().parent)
    how = {name: value for name, value in reading.items() if value is not None}
    files = placed(data["source"], relative(Path.cwd(), folder))
    if "after" in data:
        data = {**data, "after": [relative(Path(p).absolute(), folder) for p in data["after"]]}
    source = {"table": relative(Path(table).absolute(), folder), **files, **how}
    try:
        return written({**data, "source": source, "criteria": [*criteria]})
    except InputError as error:
        raise InputError("--problem-out", error.problem, error.remedy, value=error.value) from None
