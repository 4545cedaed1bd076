"""Which fields a document has, of each kind of program: nothing that no proof reads stands in it.

Needs the standard library only.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

from .rationals import UnprovableError

__all__ = ["MAXIMISED", "parts_of", "refuse_fields", "refuse_unknown"]

MAXIMISED = {"useful"}  # kinds of programs whose objective is not minimised


def parts_of(objective: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the terms of which the greatest is minimised, by name; "" where it is one alone."""
    # both kinds as one: a single term is the greatest of itself (P26)
    if set(objective) != {"worst"}:
        return {"": objective}
    parts = objective["worst"]
    if not isinstance(parts, dict) or not parts:
        raise ValueError("the worst of nothing")
    return parts


# ---- the fields of each kind of program ---------------------------------------------------


_TERM = {"name", "weights", "cost", "cost_radius", "constant"}
_ROW = {"term", "sense", "bound", "radius", "per_output"}
_PROGRAM = {
    "channel": {
        *("kind", "units", "law", "outputs", "views", "objective", "rows", "lower", "upper"),
        *("auxiliaries", "terms"),
    },
    "covariance": {
        *("kind", "units", "covariance", "given", "encoded", "views", "objective", "rows"),
        *("terms", "caps"),
    },
    "hamming": {"kind", "units", "law", "budget"},
    "spectral": {"kind", "units", "covariance", "budget"},
    "water": {"kind", "units", "gains", "variances", "budget"},
}
_PROGRAM["useful"] = _PROGRAM["channel"]
_PRIMAL = {
    "channel": {"outputs", "numerators", "denominator"},
    "covariance": {"root", "middle"},
    "hamming": {"level"},
    "spectral": {"axes", "removed"},
    "water": {"level"},
}
_PRIMAL["useful"] = _PRIMAL["channel"]
_DUAL = {
    "channel": {"scores", "multipliers", "auxiliaries", "objective", "shares"},
    "covariance": {"multipliers", "posteriors", "parts", "objective"},
    "hamming": {"level", "objective"},
    "spectral": {"axes", "precisions", "price", "objective"},
    "useful": {"letters", "multipliers", "objective"},
    "water": {"level", "objective"},
}
_VIEW = {"channel": {"labels", "reference", "measure"}, "covariance": {"of", "reference"}}
_VIEW["useful"] = _VIEW["channel"]
_NAMES = {"multipliers": "rows", "scores": "views", "posteriors": "views"}


def refuse_fields(
    place: str, fields: Any, names: set[str], optional: set[str] | None = None
) -> None:
    """Refuse what is no object, has a field that is unknown, or not one that is needed."""
    # an unknown field is refused, not ignored: a reader may take it for what was proved
    if not isinstance(fields, dict):
        raise UnprovableError(f"{place} is no object")
    if unknown := sorted(str(key) for key in fields if key not in names):
        raise UnprovableError(f"{place} has an unknown field {reprlib.repr(unknown[0])}")
    if optional is names:  # any of which may be left out
        return
    if missing := sorted(names - fields.keys() - (optional or set())):
        raise UnprovableError(f"{place} has no field {missing[0]!r}")


def refuse_unknown(document: Mapping[str, Any]) -> None:
    """Refuse a document whose program, primal or dual has other fields than those of its kind."""
    for place, fields, names, optional in _objects(document):
        refuse_fields(place, fields, names, optional)


def _objects(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, set[str], set[str]]]:
    """Yield where an object stands, the object, its fields, and those that it need not have."""
    program, primal, dual = (document[name] for name in ("program", "primal", "dual"))
    kind = str(program.get("kind")) if isinstance(program, dict) else ""
    if kind not in _PROGRAM:
        raise UnprovableError(f"no program of kind {reprlib.repr(kind)} is known")
    yield "the program", program, _PROGRAM[kind], set()
    if primal is not None:
        yield "the primal", primal, _PRIMAL[kind], set()
    if dual is not None:
        yield "the dual", dual, _DUAL[kind], {"shares"}
    if kind not in _VIEW:  # a closed form's
        return
    # names are the file's own and may be any; that they are those of an object is all that is asked
    named = {key: program[key] for key in ("views", "rows", "terms", "caps") if key in program}
    named |= {key: program[key] for key in ("auxiliaries",) if key in program}
    for key, objects in named.items():
        yield f"the program's {key}", objects, set(objects), set()
    for name, view in named["views"].items():
        yield f"view {reprlib.repr(name)}", view, _VIEW[kind], set()
    for name, row in named["rows"].items():
        yield f"row {reprlib.repr(name)}", row, _ROW, set()
    views = set(named["views"])
    rows = {f"of row {name}": row["term"] for name, row in named["rows"].items()}
    for name, term in {**parts_of(program["objective"]), **named["terms"], **rows}.items():
        yield f"term {reprlib.repr(name)}", term, _TERM, {"name"}
        # a view without weight may be left out, one that is not there may not be weighed
        yield f"weights of {reprlib.repr(name)}", term["weights"], views, views
    yield from _multipliers(program, dual)


def _multipliers(
    program: Mapping[str, Any], dual: Any
) -> Iterator[tuple[str, Any, set[str], set[str]]]:
    """Yield the objects of a dual: their fields are names of the program."""
    # what is left out counts as 0 (C3); what stands under another name would be no multiplier
    for key in (dual or {}).keys() - {"objective", "level", "letters"}:
        if key == "parts":
            names = {"", *program["caps"]}
        else:
            named = parts_of(program["objective"]) if key == "shares" else None
            names = set(program[_NAMES.get(key, key)] if named is None else named)
        yield f"the dual's {key}", dual[key], names, names
        for name, factors in dual[key].items() if key in ("posteriors", "parts") else ():
            yield f"{key} of {reprlib.repr(name)}", factors, _PRIMAL["covariance"], set()
