"""A frontier's document: its points, and the proof of each.

The program is written once; of each point's program only what differs from it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.exact import plain, written
from cvxprivacy.frontiers.curve import CONCAVE, CONVEX, MONOTONE, Axis, Number
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import number
from cvxprivacy_verifier.differences import differences
from cvxprivacy_verifier.wording import units_of

__all__ = [
    "SCHEMA",
    "difference",
    "digest",
    "disagreements",
    "from_json",
    "read",
    "refuse_no_axis",
    "refuse_other_axis",
    "refuse_unproved",
    "to_json",
]

SCHEMA = "cvxprivacy frontier 4"


def read(path: str | os.PathLike[str]) -> Any:
    """Read a frontier's document."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        problem = f"{os.fspath(path)!r} cannot be read ({error.strerror})"
        raise InputError("path", problem, "pass a file that exists") from None
    if document["schema"] != SCHEMA:
        raise ValueError(f"its schema is {document['schema']!r}")
    return document


def disagreements(
    document: Mapping[str, Any],
    record: Mapping[str, Any],
    program_at: Callable[[Number], dict[str, Any]] | None,
) -> list[str]:
    """Return what is not proved of a point, or is not of the program at its number."""
    program = patched(document["program"], record["program"])
    proof = {key: record[key] for key in verify.FIELDS if key in record}
    wrong = verify.disagreements({**proof, "program": program, "table": document["table"]})
    if program_at is None:
        same = _is_at(document, record)
    else:
        here = json.loads(json.dumps(program_at(from_json(record["x"]))))
        same = here == program or not (wrong or differences(program, here))
    return wrong if same else [*wrong, "its program is another"]


def _is_at(document: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Tell whether a point's program is the first one with the right-hand side of its number."""
    base, part = document["program"], record["program"]
    rows, kind = document["facts"]["rows"], document["facts"]["kind"]
    group = "rows" if kind == CONVEX else "auxiliaries"
    bound, *others = (patched(base, part)[group][row]["bound"] for row in rows)
    moved = {group: {row: {"bound": {"=": bound}} for row in rows}}
    if part not in (None, moved) or any(other != bound for other in others):
        return False
    low, high = Axis(kind, base["units"]).bound(from_json(record["x"]))
    if kind == CONVEX:
        return Fraction(bound) == low
    center, radius = map(Fraction, bound)
    return center - radius <= high and low <= center + radius


def refuse_other_axis(facts: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` unless the number moves what it moves in the problem."""
    for key in ("kind", "falling", "rows", "units"):
        if facts[key] != expected[key]:
            raise ValueError(f"its {key} {facts[key]!r} are not the problem's, {expected[key]!r}")


def refuse_unproved(document: Mapping[str, Any]) -> None:
    """Refuse a document of which the points alone do not prove what is said of it.

    Raises
    ------
    InputError
        For a number that is no right-hand side: what it means is in the problem.
    ValueError
        For a direction, a unit or a completeness that is not the points'.
    """
    facts, program = document["facts"], document["program"]
    if facts["kind"] in (MONOTONE, CONCAVE):
        problem = f"what {facts['parameter']!r} means is not in the file"
        raise InputError("problem", problem, "pass the problem that the frontier is of")
    if facts["falling"] is not False or facts["units"] != program["units"]:
        raise ValueError("its direction or its units are not those of a right-hand side")
    if facts["rows"][0] != facts["parameter"]:
        raise ValueError(f"{facts['parameter']!r} is not the right-hand side that moves")
    unit = units_of(document)
    if (facts["unit"] == program["units"]) != (unit == program["units"]):
        raise ValueError(f"its unit {facts['unit']!r} is not that of the objective, {unit}")


def refuse_no_axis(facts: Mapping[str, Any], program: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` unless right-hand sides of the program are what the number moves."""
    rows = facts["rows"]
    if facts["kind"] == CONVEX:
        moving = [program["rows"][row] for row in rows]
        bounds = all(row["sense"] == "<=" and not row["per_output"] for row in moving)
    elif facts["kind"] == CONCAVE:
        bounds = len(rows) == 1 and rows[0] in program["terms"]
    else:
        bounds = facts["kind"] == MONOTONE or len(rows) == 1
    if not (rows and bounds and len(set(rows)) == len(rows)):
        raise ValueError(f"its number is no bound of {rows!r}")


def difference(base: Any, other: Any) -> dict[str, Any] | None:
    """Return how to make ``other`` of ``base``; None if it is the same."""
    if isinstance(base, dict) and isinstance(other, dict) and set(base) == set(other):
        parts = {key: difference(base[key], other[key]) for key in base}
        return {key: part for key, part in parts.items() if part is not None} or None
    return None if base == other else {"=": other}


def patched(base: Any, part: Mapping[str, Any] | None) -> Any:
    """Return what ``difference`` was told of."""
    if part is None:
        return base
    if "=" in part:
        return part["="]
    return {**base, **{key: patched(base[key], inner) for key, inner in part.items()}}


def digest(parts: Any) -> str:
    """Return the SHA-256 of what JSON can hold."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def to_json(value: Number) -> float | str:
    """Return a number as JSON can hold it: fractions and infinities as text."""
    return written(value) if math.isfinite(value) else str(value)


def from_json(value: Any) -> Number:
    """Return the number that :func:`to_json` wrote."""
    return float(value) if value in ("inf", "-inf") else plain(number(value))
