"""Recompute both ends of a proof from program, primal and dual alone.

``python -m cvxprivacy_verifier proof.json`` forgets every number that a certificate
claims and proves its own ends in ball arithmetic (128 bits) from the program's data, a primal and
multipliers that may be anything: see ``channel_proof`` and ``covariance_proof``, and
``useful_proof`` of what is maximised, ``hamming_proof``, ``water_proof`` and ``spectral_proof`` of
closed forms.
Solving uses the same functions.  Of a channel program the ends are (C6) and (C12), rounded outwards
(C15).  Needs the standard library and python-flint only.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from flint import arb

from .balls import UnaffordableError, UnprovableError, ceil, decode, floor
from .channel_proof import ChannelProof
from .covariance_proof import CovarianceProof
from .fields import MAXIMISED, refuse_fields, refuse_unknown
from .hamming_proof import HammingProof
from .spectral_proof import SpectralProof
from .useful_proof import UsefulProof
from .water_proof import WaterProof
from .work import affordable, refuse_long

SCHEMA = "cvxprivacy/certificate/4"
TOLERANCE = {"default": 1e-6, "high": 1e-9}  # τ of (C16), a share of the program's unit

KINDS: dict[str, Any] = {
    "covariance": CovarianceProof,
    "hamming": HammingProof,
    "spectral": SpectralProof,
    "useful": UsefulProof,
    "water": WaterProof,
}
_LONG = 400  # characters of a message: what is wrong may be a text of megabytes
# Whatever a file holds, its reader says "not verified": a crash is no verdict.
_MALFORMED = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(ArithmeticError, MemoryError, RecursionError),
)

MEMORY = 2**30  # bytes that the values of a file may take, and an eighth of it the file
FIELDS = {"schema", "software", "accuracy", "table"}
FIELDS |= {"program", "primal", "dual", "claim", "sha256"}
OPTIONAL = {"strategies"}  # what outputs stand for; no claim, but what a problem is stated over


def status(lower: float, upper: float, tolerance: float) -> str:
    """Return what a pair of proved ends amounts to; ``tolerance`` is in their units."""
    # ends that cross are an error of this package, and certify nothing
    if not (math.isfinite(lower) and math.isfinite(upper) and lower <= upper):
        return "uncertified"
    return "certified" if upper - lower <= tolerance else "loose"


# ---- the document ------------------------------------------------------------------------


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its own digest, in canonical JSON."""
    # canonical: a file that was only indented or reordered has the same digest
    body = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def proof_of(program: Mapping[str, Any], primal: Any = None, dual: Any = None) -> Any:
    """Return the proof of a program of any kind, unless it or what is to be read takes too long."""
    refuse_long(program, primal, dual)
    return KINDS.get(str(program.get("kind")), ChannelProof)(program)


def recompute(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims that program, primal and dual of a document prove by themselves."""
    refuse_unknown(document)  # before any of it is used
    dual, primal = document["dual"], document["primal"]
    if dual is not None and (type(dual["objective"]) is not int or dual["objective"] not in (0, 1)):
        raise UnprovableError("the dual's objective is neither 1 nor 0")
    proof = proof_of(document["program"], primal, dual)
    lower, upper, terms = -math.inf, math.inf, {}
    bound = arb.neg_inf() if dual is None else proof.lower(dual)  # (C6)
    share, tolerance = TOLERANCE[document["accuracy"]], 0.0
    if dual is not None and not dual["objective"]:  # (C7): no primal is looked at
        verdict = "infeasible" if bound > 0 else "uncertified"
        lower = math.inf if bound > 0 else lower
    else:
        lower = floor(bound)
        if primal is not None:
            evaluation = proof.upper(primal)  # (C12)
            if not evaluation.feasible:
                raise UnprovableError(f"the primal breaks {', '.join(evaluation.broken)}")
            upper = ceil(evaluation.objective)
            terms = {k: [floor(v), ceil(v)] for k, v in evaluation.terms.items()}
        tolerance = share * proof.unit(upper)  # (C16)
        verdict = status(lower, upper, tolerance)
    if document["program"]["kind"] in MAXIMISED:  # all above is of −f
        lower, upper = 0.0 - upper, 0.0 - lower
    ends = {"lower": lower, "upper": upper, "terms": terms}
    return {"status": verdict, "tolerance": tolerance, **ends}


def disagreements(document: Mapping[str, Any]) -> list[str]:
    """Return every claim of a document that is not proved; an empty list is a verified one."""
    if document.get("schema") != SCHEMA:
        return [f"schema is not {SCHEMA!r} but {document.get('schema')!r}"[:_LONG]]
    messages: list[str] = []
    # the digest comes last: that a file was changed says less than what it does not prove
    for check in (_unproved, _resealed):
        try:
            messages += check(document)  # what it said before it failed, too
        except _MALFORMED as error:
            messages.append(f"not a certificate: {type(error).__name__}: {error}")
            if isinstance(error, UnaffordableError):  # nothing more is done for it
                break
    return [_on_one_line(message[:_LONG]) for message in messages]


def _on_one_line(message: str) -> str:
    """Return a message without line ends and control codes: names in it may hold any."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)


def _resealed(document: Mapping[str, Any]) -> Iterator[str]:
    if document.get("sha256") != digest(document):
        yield "sha256 does not match: the file was changed after it was written"


def _unproved(document: Mapping[str, Any]) -> Iterator[str]:
    refuse_fields("the proof", document, FIELDS | OPTIONAL, OPTIONAL)
    refuse_fields("the claim", document["claim"], {"status", "lower", "upper", "terms"})
    proved, claim = recompute(document), document["claim"]
    refuse_fields("the claim's terms", claim["terms"], set(proved["terms"]))
    if claim["status"] != proved["status"]:
        yield f"status {claim['status']!r} is claimed, {proved['status']!r} is proved"
    ends = [("the value", claim["lower"], claim["upper"], proved["lower"], proved["upper"])]
    for name in proved["terms"]:
        ends.append((name, *claim["terms"][name], *proved["terms"][name]))
    for name, low, high, lower, upper in ends:
        # a claim may be wider than what is proved, never narrower
        if not (decode(low) <= lower and upper <= decode(high)):
            yield f"{name} in [{low}, {high}] is claimed, [{lower}, {upper}] is proved"
    # and not so wide that it would not be called certified by itself
    wide = decode(claim["upper"]) - decode(claim["lower"]) > proved["tolerance"]
    if claim["status"] == "certified" and wide:
        yield "certified is claimed of ends too far apart"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):  # readers differ in which they take: people may see the other one
        raise ValueError("a key stands twice")
    return fields


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")  # NaN, which Python would read


def _held(text: bytearray) -> int:
    """Return about how many bytes the values of a JSON text take."""
    parts = {b"{": 100, b"[": 100, b":": 150, b",": 40, b'"': 30}
    return (1 if text.isascii() else 4) * len(text) + sum(
        size * text.count(part) for part, size in parts.items()
    )


def read_document(path: str) -> dict[str, Any]:
    """Return the JSON object that a file holds; OSError or ValueError if it holds none.

    A file whose values would take more than ``MEMORY`` is refused before it is parsed.
    """
    with open(path, "rb") as file:
        affordable(os.fstat(file.fileno()).st_size, MEMORY // 8, "a file of {} bytes")
        text = bytearray()
        while block := file.read(1 << 24):  # of a pipe nobody knows the size beforehand
            text += block
            affordable(len(text), MEMORY // 8, "over {} bytes")
    affordable(_held(text), MEMORY, "a file whose values take {} bytes")
    collecting = gc.isenabled()
    gc.disable()  # what is read has no cycles, and looking for them takes longer than reading
    try:
        document = json.loads(text.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    finally:
        if collecting:
            gc.enable()
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    return document
