"""Groups of values as they are typed: files, levels of hierarchies, most frequent values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cvxprivacy.cli.options import pairs
from cvxprivacy.errors import InputError

__all__ = ["groups_file", "placed", "resolved", "stated"]


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
    for name, number in _whole(tops, "--top", least=1).items():
        if name in groups:
            raise InputError("--top", f"{name!r} has --group too", "say one", value=name)
        groups[name] = number
    hierarchy = pairs(recoding["hierarchy"], header, "--hierarchy", "education=education.csv")
    typed = pairs(recoding["level"], header, "--level", "education=2")
    found = {"groups": groups, "hierarchy": hierarchy, "level": _whole(typed, "--level")}
    return {key: value for key, value in found.items() if value}


def _whole(typed: Mapping[str, str], option: str, least: int = 0) -> dict[str, int]:
    """Return whole numbers, or say which is none."""
    for name, text in typed.items():
        if not text.isdecimal() or int(text) < least:
            remedy = f"pass a whole number ≥ {least}"
            raise InputError(option, f"{text!r} for {name!r}", remedy, value=text)
    return {name: int(text) for name, text in typed.items()}


def placed(counting: Mapping[str, Any], folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the same with files of groups and hierarchies as seen from another folder's parent."""
    found = dict(counting)
    for key in ("groups", "hierarchy"):
        if isinstance(found.get(key), Mapping):
            found[key] = {
                name: str(Path(folder) / value) if isinstance(value, str) else value
                for name, value in found[key].items()
            }
    return found


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
    found = {k: v for k, v in counting.items() if k not in ("hierarchy", "level")}
    levels = counting.get("level") or {}
    known = read_hierarchies(counting) if hierarchies is None else hierarchies
    groups = {
        name: groups_file(spec) if isinstance(spec, str) else spec
        for name, spec in (counting.get("groups") or {}).items()
    }
    for name in levels:
        if name not in known:
            remedy = f"pass --hierarchy {name}=FILE too"
            raise InputError("level", f"no hierarchy of {name!r}", remedy, value=name)
    for name, hierarchy in known.items():
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
    return {**found, "groups": groups} if groups else found


def read_hierarchies(counting: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hierarchies that are named by files, by column."""
    if not counting.get("hierarchy"):
        return {}
    from cvxprivacy.microdata.hierarchy import Hierarchy

    return {name: Hierarchy.from_csv(path) for name, path in counting["hierarchy"].items()}


def groups_file(path: str) -> dict[str, str]:
    """Return the group of each value, of a CSV file of two columns; a header value,group may be.

    Raises
    ------
    InputError
        For a file that cannot be read, lines of other than two fields, and a value with two lines.
    """
    from cvxprivacy.microdata.hierarchy import delimited_rows

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
