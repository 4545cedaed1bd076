"""A frontier in a file: its points, and the proof of each.

The program is written once; of each point's program only what differs from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvxprivacy.certificates import verify
from cvxprivacy.errors import InputError
from cvxprivacy.files import whole_file
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frontiers.curve import Convex, Curve, Staircase
from cvxprivacy.frontiers.family import CONVEX, MONOTONE, Family, axes, knot

if TYPE_CHECKING:
    from cvxprivacy.frontiers.frontier import Frontier

__all__ = ["load", "save"]

SCHEMA = "cvxprivacy frontier 1"


def save(frontier: Frontier, path: str | os.PathLike[str]) -> Path:
    """Write a frontier, whole or not at all, readable by its owner only."""
    documents = frontier.documents()
    program = documents[0]["program"] if documents else {}
    points = [
        {
            **point.record,
            **{key: document[key] for key in document if key not in ("program", "table")},
            "program": _difference(program, document["program"]),
        }
        for point, document in zip(frontier.points, documents, strict=True)
    ]
    table = documents[0]["table"] if documents else None
    body = {"schema": SCHEMA, "facts": frontier.facts, "table": table, "program": program}
    with whole_file(path, private=True) as file:
        json.dump({**body, "points": points}, file, ensure_ascii=False, allow_nan=False)
    return Path(path)


def load(
    cls: type[Frontier], path: str | os.PathLike[str], problem: Problem | None, prove: bool
) -> Frontier:
    """Read a frontier; ``prove`` every point of it again."""
    name = os.fspath(path)
    try:
        with Path(path).open(encoding="utf-8") as file:
            body = json.load(file)
        if body["schema"] != SCHEMA:
            raise ValueError(f"its schema is {body['schema']!r}")
        return _read(cls, body, problem, prove)
    except OSError as error:
        found = f"{name!r} cannot be read ({error.strerror})"
        raise InputError("path", found, "pass a file that exists") from None
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        remedy = "pass a file that Frontier.save wrote"
        raise InputError("path", f"{name!r} is no frontier ({said})", remedy) from None


def _read(
    cls: type[Frontier], body: Mapping[str, Any], problem: Problem | None, prove: bool
) -> Frontier:
    facts, program, records = body["facts"], body["program"], body["points"]
    parameter, kind = facts["parameter"], facts["kind"]
    family = None
    if problem is not None:
        family = Family(problem, parameter, facts["accuracy"])
        if family.digest != facts["digest"]:
            found = "the frontier in the file is of another problem"
            raise InputError("problem", found, "pass the problem that it was made of")
    if prove:
        for i, record in enumerate(records):
            if wrong := _wrong(body, record, family):
                found = f"the proof at {record['x']!r} fails: {'; '.join(wrong)}"
                raise InputError("path", found, "make the frontier again", where=i)
    knots = [knot(record, program, parameter, kind) for record in records]
    curve: Curve
    if kind == MONOTONE:
        curve = Staircase(knots, facts["falling"])
    else:
        curve = Convex(knots, *axes(kind, program["units"]))
    return cls(records, curve, family, facts)


def _wrong(body: Mapping[str, Any], record: Mapping[str, Any], family: Family | None) -> list[str]:
    """Return what is not proved of a point, or is not of the program at its place."""
    facts, x = body["facts"], record["x"]
    program = _patched(body["program"], record["program"])
    document = {key: record[key] for key in verify.FIELDS if key in record}
    found = verify.disagreements({**document, "program": program, "table": body["table"]})
    if family is not None:
        same = json.loads(json.dumps(family.at(x).program.to_dict())) == program
    else:
        same = _plausible(facts["parameter"], facts["kind"], x, body["program"], record["program"])
    return found if same else [*found, "its program is another"]


def _plausible(
    parameter: str, kind: str, x: float, base: Mapping[str, Any], part: Mapping[str, Any] | None
) -> bool:
    """Tell whether a point's program is the first one with the right-hand side of x.

    The number of a monotone frontier cannot be told from its program.
    """
    if kind == MONOTONE:
        return True
    where = "rows" if kind == CONVEX else "auxiliaries"
    bound = _patched(base, part)[where][parameter]["bound"]
    if part not in (None, {where: {parameter: {"bound": {"=": bound}}}}):
        return False
    low, high = axes(kind, base["units"])[0](x)
    if kind == CONVEX:
        return Fraction(bound) == low
    middle, off = map(Fraction, bound)
    return middle - off <= high and low <= middle + off


def _difference(base: Any, other: Any) -> dict[str, Any] | None:
    """Return how to make ``other`` of ``base``; None if it is the same."""
    if isinstance(base, dict) and isinstance(other, dict) and set(base) == set(other):
        parts = {key: _difference(base[key], other[key]) for key in base}
        return {key: part for key, part in parts.items() if part is not None} or None
    return None if base == other else {"=": other}


def _patched(base: Any, part: Mapping[str, Any] | None) -> Any:
    if part is None:
        return base
    if "=" in part:
        return part["="]
    return {**base, **{key: _patched(base[key], inner) for key, inner in part.items()}}
