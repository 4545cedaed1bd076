"""Which fields a document has, of each kind of program: nothing that no proof reads stands in it.

Needs the standard library only.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

from cvxprivacy.verifier.objective import parts_of
from cvxprivacy.verifier.rationals import UnprovableError

__all__ = ["refuse_unknown"]

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
}
_PRIMAL = {
    "channel": {"outputs", "numerators", "denominator"},
    "covariance": {"root", "middle"},
    "hamming": {"level"},
}
_DUAL = {
    "channel": {"scores", "multipliers", "auxiliaries", "objective", "shares"},
    "covariance": {"multipliers", "posteriors", "parts", "objective"},
    "hamming": {"level", "objective"},
}
_VIEW = {"channel": {"labels", "reference", "measure"}, "covariance": {"of", "reference"}}
_OPTIONAL = {"shares", "objective"}  # of multipliers


def refuse_unknown(document: Mapping[str, Any]) -> None:
    """Refuse a document with a field that is unknown, or without one that is needed."""
    for place, fields, wanted, optional in _parts(document):
        if not isinstance(fields, dict):
            raise UnprovableError(f"{place} is no object")
        if unknown := sorted(map(str, fields.keys() - wanted)):
            raise UnprovableError(f"{place} has an unknown field {reprlib.repr(unknown[0])}")
        if missing := sorted(wanted - fields.keys() - optional):
            raise UnprovableError(f"{place} has no {missing[0]!r}")


def _parts(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, set[str], set[str]]]:
    """Yield the objects of a document: where, what, the fields that it has and that it may lack."""
    program, none = document["program"], set[str]()
    kind = str(program.get("kind"))
    if kind not in _PROGRAM:
        raise UnprovableError(f"no program of kind {reprlib.repr(kind)} is known")
    yield "the program", program, _PROGRAM[kind], none
    for name, fields in (("primal", _PRIMAL), ("dual", _DUAL)):
        if document[name] is not None:
            yield f"the {name}", document[name], fields[kind], _OPTIONAL
    if kind == "hamming":
        return
    if kind == "covariance" and document["dual"] is not None:
        for part in ("posteriors", "parts"):
            for name, factors in document["dual"][part].items():
                yield f"{part} of {reprlib.repr(name)}", factors, _PRIMAL[kind], none
    for name, view in program["views"].items():
        yield f"view {reprlib.repr(name)}", view, _VIEW[kind], none
    terms = {**parts_of(program["objective"]), **program["terms"]}
    for name, row in program["rows"].items():
        yield f"row {reprlib.repr(name)}", row, _ROW, none
        terms[f"of row {name}"] = row["term"]
    for name, term in terms.items():
        yield f"term {reprlib.repr(name)}", term, _TERM, {"name"}
