"""Groups of values as they are typed: files, levels of hierarchies, most frequent values."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.statements.columns import refuse_unknown
from cvxprivacy_sdc.statements.options import pairs

if TYPE_CHECKING:
    from cvxprivacy.tables.schema import TableSchema
    from cvxprivacy_sdc.recoding.recoded_key import KeyRecoding

__all__ = [
    "chance_in_words", "chosen", "groups_file", "mapping_files", "placed", "recoded",
    "recoded_text", "resolved", "stated",
]  # fmt: skip


_ORDER = ("sensitive", "key", "weights", "bins", "missing", "groups", "hierarchy", "level")


def stated(recoding: Mapping[str, Sequence[str]], header: Sequence[str]) -> dict[str, Any]:
    """Return what the options say, with the keys of a problem file.

    Returns
    -------
    dict
        ``groups``: a file or a number for each column; ``hierarchy``: a file; ``level``: a number.
        Those that nothing is said of are left out.
    """
    files = pairs(recoding["group"], header, "--group", "education=groups.csv")
    groups: dict[str, Any] = dict(files)
    tops = pairs(recoding["top"], header, "--top", "country=20")
    for name, number in _integers(tops, "--top", least=1).items():
        if name in groups:
            raise InputError("--top", f"{name!r} has --group too", "say one", value=name)
        groups[name] = number
    hierarchy = pairs(recoding["hierarchy"], header, "--hierarchy", "education=education.csv")
    typed = pairs(recoding["level"], header, "--level", "education=2")
    recodings = {"groups": groups, "hierarchy": hierarchy, "level": _integers(typed, "--level")}
    return {key: value for key, value in recodings.items() if value}


def mapping_files(recoding: Mapping[str, Any]) -> list[str]:
    """Return the files of groups and hierarchies that are named, or may be.

    Parameters
    ----------
    recoding : mapping
        The texts that were typed, ``COLUMN=FILE,…``, of which the columns need not be known yet;
        or, with the keys of a problem file, a file for each column.
    """
    files: list[str] = []
    for key in ("group", "groups", "hierarchy"):
        typed = recoding.get(key) or ()
        if isinstance(typed, Mapping):
            files += [value for value in typed.values() if isinstance(value, str)]
        else:
            parts = [part for text in typed for part in (text, *text.split(","))]
            files += [part.rpartition("=")[2].strip() for part in parts]
    return files


def _integers(typed: Mapping[str, str], option: str, least: int = 0) -> dict[str, int]:
    """Return whole numbers, or say which is none."""
    for name, text in typed.items():
        if not text.isdecimal() or int(text) < least:
            remedy = f"pass a whole number ≥ {least}"
            raise InputError(option, f"{text!r} for {name!r}", remedy, value=text)
    return {name: int(text) for name, text in typed.items()}


def placed(counting: Mapping[str, Any], folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the same with files of groups and hierarchies as seen from another folder's parent."""
    relocated = dict(counting)
    for key in ("groups", "hierarchy"):
        if isinstance(relocated.get(key), Mapping):
            relocated[key] = {
                name: (Path(folder) / value).as_posix() if isinstance(value, str) else value
                for name, value in relocated[key].items()
            }
    return relocated


def resolved(
    counting: Mapping[str, Any], hierarchies: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the arguments of ``DiscreteSource.from_table``: files read, levels taken.

    Parameters
    ----------
    counting : mapping
        Its arguments, of which ``groups`` may hold paths, and ``hierarchy`` and ``level`` besides.
    hierarchies : mapping of column to Hierarchy, optional
        Those that were read already.

    Raises
    ------
    InputError
        For a file that makes no groups, a level without a hierarchy, and a hierarchy without a
        level, with the levels that there are.
    """
    arguments = {k: v for k, v in counting.items() if k not in ("hierarchy", "level")}
    levels = counting.get("level") or {}
    if hierarchies is None:
        hierarchies = read_hierarchies(counting)
    groups = {
        name: groups_file(spec) if isinstance(spec, str) else spec
        for name, spec in (counting.get("groups") or {}).items()
    }
    for name in levels:
        if name not in hierarchies:
            remedy = f"pass --hierarchy {name}=FILE too"
            raise InputError("level", f"no hierarchy of {name!r}", remedy, value=name)
    for name, hierarchy in hierarchies.items():
        if name in groups:
            raise InputError("hierarchy", f"{name!r} has groups too", "say one", value=name)
        if name not in levels:
            remedy = f"pass --level {name}=NUMBER: {hierarchy.described()}"
            raise InputError("level", f"none for {name!r}", remedy, where=name)
        try:
            groups[name] = hierarchy.mapping(levels[name])
        except InputError as error:
            more = {"where": name, "value": error.value}
            raise InputError("level", error.problem, error.remedy, **more) from None
    return {**arguments, "groups": groups} if groups else arguments


def read_hierarchies(counting: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hierarchies that are named by files, by column."""
    if not counting.get("hierarchy"):
        return {}
    from cvxprivacy_sdc.recoding.generalisation import Hierarchy

    return {name: Hierarchy.from_csv(path) for name, path in counting["hierarchy"].items()}


def groups_file(path: str) -> dict[str, str]:
    """Return the group of each value, of a CSV file of two columns; a header value,group may be.

    Raises
    ------
    InputError
        For a file that cannot be read, lines of other than two fields, and a value with two lines.
    """
    from cvxprivacy_sdc.recoding.generalisation import delimited_rows

    groups: dict[str, str] = {}
    for line, row in delimited_rows(path, ",", "group"):
        where = f"{Path(path).name}, line {line}"
        if len(row) != 2:
            problem, remedy = f"{len(row)} fields", "write value,group"
            raise InputError("group", problem, remedy, where=where)
        if row[0] in groups:
            problem = f"{row[0]!r} has a line before"
            raise InputError("group", problem, "keep one", where=where, value=row[0])
        groups[row[0]] = row[1]
    if next(iter(groups.items())) == ("value", "group"):  # a header
        del groups["value"]
    return groups


# ---- chosen for a number of cells --------------------------------------------------------


def chosen(
    opened: Any, counting: Mapping[str, Any], cells: int
) -> tuple[dict[str, Any], KeyRecoding]:
    """Choose the recodings of the columns that have none, for a key of few cells.

    Returns
    -------
    counting : dict
        What was stated, with what was chosen.
    KeyRecoding
    """
    from cvxprivacy_sdc.recoding.recoded_key import recoded_key

    fixed, levels = read_hierarchies(counting), dict(counting.get("level") or {})
    free = {name: fixed.pop(name) for name in [*fixed] if name not in levels}
    arguments = resolved(counting, fixed)
    roles = [name for role in ("sensitive", "key") for name in arguments[role]]
    columns = [*roles, *([arguments["weights"]] if arguments.get("weights") else [])]
    refuse_unknown("--key", columns, opened.header)
    frame = opened.frame(columns, binned=arguments.get("bins") or {}, dates=True)
    choice = recoded_key(frame, cells=cells, hierarchies=free, **arguments)
    more = {"bins": choice.bins, "level": choice.levels, "groups": choice.top}
    recodings = {key: {**(counting.get(key) or {}), **new} for key, new in more.items()}
    settled = {**counting, **{key: value for key, value in recodings.items() if value}}
    return {key: settled[key] for key in _ORDER if key in settled}, choice


def recoded(
    counting: Mapping[str, Any], schema: TableSchema, choice: KeyRecoding | None
) -> dict[str, Any]:
    """Return what a report says of recodings that were settled from the data; nothing if none."""
    from cvxprivacy.tables.bins import Bins, quantiles_in

    specs = counting.get("bins") or {}
    quantiles = {
        name: [e if isinstance(e, int | float) else str(e) for e in bins.edges]
        for name, bins in schema.bins.items()
        if isinstance(bins, Bins) and quantiles_in(specs.get(name)) is not None
    }
    facts: dict[str, Any] = {"quantiles": quantiles} if quantiles else {}
    if exact := [name for name in schema.key if str(specs.get(name)).endswith(":exact")]:
        facts["exact"] = exact
    if choice is None:
        typed = [n for n in schema.key if isinstance(specs.get(n), list)]
        typed += [n for n in counting.get("level") or {} if n in schema.key]
        typed += [n for n, top in (counting.get("groups") or {}).items() if isinstance(top, int)]
        return facts | ({"typed": typed} if typed else {})
    source = choice.source
    return facts | {
        "options": " ".join(options_of(choice)),
        "cells": {"before": choice.cells, "after": len(source.x)},
        "information": {"before": choice.before, "after": choice.after, "units": "bits"},
        "bias": {
            "before": choice.bias,
            "after": None if math.isnan(choice.chance) else choice.chance,
        },
    }


def recoded_text(facts: Mapping[str, Any]) -> list[str]:
    """Return the same in plain words, a line each."""
    lines = [f"--bins {shlex.quote(bins_text(name, edges))}: quantiles, settled from the data"
             for name, edges in facts.get("quantiles", {}).items()]  # fmt: skip
    if "options" in facts:
        cells, information, bias = facts["cells"], facts["information"], facts["bias"]
        lines += [
            f"key recoded: {cells['before']:,} observed cells → {cells['after']:,}",
            *(
                f"  I(W; X) {when:<9}{information[when]:.4f} bits, {words}"
                for when, words in (
                    ("before", chance_in_words(bias["before"], {})),
                    ("after", chance_in_words(bias["after"], facts)),
                )
            ),
            f"  lost             {information['before'] - information['after']:.4f} bits",
            "  chosen with the confidential column in view, which itself tells a little of it; "
            "to paste in place of --cells:",
            f"  {facts['options']}",
        ]
    return lines


def chance_in_words(bias: float | None, recoding: Mapping[str, Any]) -> str:
    """Say how much of the information that a recoded key shows is chance.

    Parameters
    ----------
    bias : number, optional
        By Miller and Madow's formula; of a key that was chosen by the records what the same choice
        shows of a shuffled confidential column, where that is known.
    recoding : mapping
        As of :func:`recoded`.
    """
    from cvxprivacy.model.information import bias_in_words

    if "options" in recoding:
        if bias is None:
            return "how much of it is chance is not known: records have weights"
        return f"about {bias:.2g} of it is chance, as shuffles with the same choice show"
    words = bias_in_words(bias or 0.0)
    typed = ", ".join(recoding.get("typed", ()))
    return f"{words}, unless the groups of {typed} were chosen by these records" if typed else words


def options_of(choice: KeyRecoding) -> list[str]:
    """Return the options that ask for the recodings that were chosen."""
    typed = [("--bins", bins_text(name, edges)) for name, edges in choice.bins.items()]
    for option, numbers in (("--level", choice.levels), ("--top", choice.top)):
        typed += [(option, f"{name}={number}") for name, number in numbers.items()]
    return [f"{option} {shlex.quote(text)}" for option, text in typed]


def bins_text(name: str, edges: Sequence[float] | str) -> str:
    """Return intervals as ``--bins`` takes them."""
    from cvxprivacy.tables.bins import short

    if isinstance(edges, str):
        return f"{name}={edges}"
    return f"{name}={':'.join(map(short, edges))}"
