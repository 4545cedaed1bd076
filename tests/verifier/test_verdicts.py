"""What other arithmetic says of each document of a frozen corpus, and the verifier of each lie.

``python -m tests.proofs`` writes the corpus.  Everything here runs in seconds on the certificates
alone, so that a change of any line of the trusted base can be tried at once: nearly all of them
must fail here.
"""

from __future__ import annotations

import copy
import gc
import hashlib
import io
import json
import math
import os
import re
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import flint
import pytest
from flint import arb, fmpq, fmpq_mat

from cvxprivacy_verifier import (
    balls,
    covariance_proof,
    hamming_proof,
    matrices,
    measures,
    rationals,
    verify,
    work,
)
from cvxprivacy_verifier.__main__ import main
from cvxprivacy_verifier.balls import UnaffordableError, UnprovableError, ceil, floor
from tests import second_checker
from tests.primals import INFORMATION, listed
from tests.verifier.documents import Document, changed, signed

INF = math.inf

ENTRIES = json.loads(
    (Path(__file__).parents[2] / "verifier" / "tests" / "frozen.json").read_text(encoding="utf-8")
)
NUMBERED = [pytest.param(e, id=f"{i} {e['name']}") for i, e in enumerate(ENTRIES)]


def base(name: str, index: int = 0) -> Document:
    """Return a copy of a document of the corpus."""
    values = [e["document"] for e in ENTRIES if e["name"] == name]
    return copy.deepcopy(values[index])


# ---- what is proved ----------------------------------------------------------------------


def near(one: Any, other: float) -> bool:
    """Tell whether two ends are one, but for radii, which balls hold to 30 bits."""
    return float(one) == pytest.approx(other, rel=1e-6, abs=1e-13)


@pytest.mark.long
@pytest.mark.parametrize("entry", NUMBERED)
def test_other_arithmetic_finds_the_same(entry: Any) -> None:
    document = entry["document"]
    claim, program = document["claim"], second_checker.program_of(document)
    lower, upper, status, terms = second_checker.judged(document, program)
    assert status == claim["status"]
    low, high = float(claim["lower"]), float(claim["upper"])
    assert near(lower, low)
    assert low <= upper
    assert lower <= high or status == "infeasible"
    if math.isfinite(upper):
        tolerance = float(second_checker.tolerance(program, document["accuracy"], upper))
        assert tolerance == pytest.approx(entry["tolerance"], rel=1e-6)
    for name, (least, most) in terms.items():
        below, above = map(float, claim["terms"][name])
        assert below <= most
        assert least <= above
    if document["program"]["kind"] == "hamming":
        return  # its slope is a float there, and its upper end a chord's here
    assert low == -INF or low <= lower + abs(lower) * Fraction(1, 10**20)
    assert high >= upper or not math.isfinite(upper)
    assert near(upper, high)
    for name, (least, most) in terms.items():
        below, above = map(float, claim["terms"][name])
        assert below <= least + abs(least) * Fraction(1, 10**20)
        assert above >= most - abs(most) * Fraction(1, 10**20)
        assert near(least, below)
        assert near(most, above)


# ---- what is not -------------------------------------------------------------------------

Path_ = tuple[Any, ...]


def refused(document: Document, words: str) -> None:
    problems = "\n".join(verify.disagreements(document))
    assert re.search(words, problems), problems or "verified"


PROGRAM, PRIMAL, DUAL, CLAIM = "program", "primal", "dual", "claim"
TERM = (PROGRAM, "objective")
NO_FRACTION = "a text that is no fraction"
BAD_NUMBERS: Any = [
    *[(text, NO_FRACTION) for text in ("", " 1", "1_0", "0x1", "1e3", "1/0", "1/-2", "+1", "1.0")],
    *[(text, NO_FRACTION) for text in ("1/00", "1\n", "--1", "1" * 2001, "1/1" + "0" * 2000)],
    *[(value, "is not finite") for value in (math.nan, INF, -INF)],
    *[(value, "is no number") for value in (True, None, [1], {})],
]

CHANNEL: list[tuple[Path_, Any, str]] = [
    ((PROGRAM, "kind"), "chanel", "no program of kind 'chanel'"),
    ((PROGRAM, "units"), "digits", "KeyError"),
    ((PROGRAM, "outputs"), 0, "a number of outputs out of range"),
    ((PROGRAM, "outputs"), -3, "a number of outputs out of range"),
    ((PROGRAM, "outputs"), 3.0, "a number of outputs out of range"),
    ((PROGRAM, "outputs"), True, "a number of outputs out of range"),
    ((PROGRAM, "outputs"), 10**7, "products"),
    ((PROGRAM, "law", 0, 0), -0.5, "negative or infinite atom"),
    ((PROGRAM, "law", 0, 0), "1/2", "negative or infinite atom"),
    ((PROGRAM, "law", 0, 0), INF, "negative or infinite atom"),
    ((PROGRAM, "law", 0, 0), True, "is no number"),
    ((PROGRAM, "law"), lambda law: [[0.0, *row[1:]] for row in law], "a letter without mass"),
    ((PROGRAM, "law", 0), lambda row: row[1:], "not a certificate"),
    ((PROGRAM, "lower"), lambda t: t[1:], "entry bounds of another shape"),
    ((PROGRAM, "upper", 0), lambda row: row[1:], "entry bounds of another shape"),
    ((PROGRAM, "views", "W", "labels", 0, 0), -2, "a label that is no whole number"),
    ((PROGRAM, "views", "P", "reference", 0, 0), -2, "a label that is no whole number"),
    ((PROGRAM, "views", "W", "labels", 0, 0), False, "a label that is no whole number"),
    ((PROGRAM, "views", "W", "labels", 0, 0), 99, "more labels than there are atoms"),
    ((PROGRAM, "views", "W", "labels"), lambda t: [[-1] * len(r) for r in t], "more labels than"),
    ((PROGRAM, "views", "P", "reference"), lambda t: [[0] * len(r) for r in t],
     "view P has a label of reference mass 0"),
    *[((PROGRAM, "views", "W", "reference"), none, "not a certificate") for none in (0, [], "")],
    ((PROGRAM, "views", "P", "labels"), None, "not a certificate"),
    ((PROGRAM, "views", "W", "labels", 0), lambda r: r[1:], "not a certificate: ValueError"),
    ((PROGRAM, "views", "W", "labels", 0), lambda r: [*r, 0], "not a certificate: ValueError"),
    ((PROGRAM, "views", "W", "labels"), lambda t: [*t, t[0]], "not a certificate: ValueError"),
    ((PROGRAM, "views", "P", "reference", 1), lambda r: [*r, 0], "not a certificate: ValueError"),
    ((PROGRAM, "law", 1), lambda row: [*row, 0.5], "not a certificate: ValueError"),
    ((*TERM, "weights"), {"none": 1}, "unknown field 'none'"),
    ((*TERM, "weights", "P"), [0.5], "weights of P"),
    *[((*TERM, "weights"), none, "weights of .* is no object") for none in ("", [], 0)],
    ((*TERM, "weights", "P"), lambda w: [*w[1:], -1e-9], "objective is not convex"),
    ((*TERM, "weights", "W"), "-1/9", "objective is not convex"),
    ((PROGRAM, "rows", "layers", "term", "weights", "X"), -1, "layers is not convex"),
    ((PROGRAM, "rows", "layers", "sense"), "==", "layers is not convex"),
    ((PROGRAM, "rows", "budget", "sense"), ">=", "budget is not convex"),
    ((PROGRAM, "rows", "budget", "per_output"), 0, "budget is neither one row nor one per output"),
    ((PROGRAM, "rows", "close", "per_output"), 1, "close is neither one row nor one per output"),
    ((PROGRAM, "rows", "budget", "per_output"), True, "budget has a constant for every output"),
    ((PROGRAM, "rows", "one", "term", "constant"), [0, 1e-30], "one has a constant for every"),
    ((PROGRAM, "rows", "one", "radius"), -1e-30, "a negative radius"),
    ((PROGRAM, "rows", "one", "term", "cost_radius"), "-1/9", "a negative radius"),
    ((PROGRAM, "rows", "budget", "term", "constant", 1), -1e-30, "a negative radius"),
    ((*TERM, "constant", 1), -1e-30, "a negative radius"),
    ((PROGRAM, "auxiliaries", "ratio", "kind"), "Ratio", "an auxiliary of unknown kind"),
    ((PROGRAM, "auxiliaries", "ratio", "bound"), [0, 0], "a bound ≤ 0"),
    ((PROGRAM, "auxiliaries", "ratio", "bound"), [1, 1], "a bound ≤ 0"),
    ((PROGRAM, "auxiliaries", "maximum", "bound"), ["1/2", "1/2"], "a bound ≤ 0"),
    ((PROGRAM, "auxiliaries", "ratio", "bound"), ["3/2", -1], "a negative radius"),
    ((PROGRAM, "auxiliaries", "near", "bound"), [0, 0], "a bound ≤ 0"),
    ((PROGRAM, "auxiliaries", "near", "share"), [1], "an excess of another shape"),
    ((PROGRAM, "auxiliaries", "near", "levels"), [0] * 9, "an excess of another shape"),
    ((PROGRAM, "auxiliaries", "near", "kind"), "ratio", "an auxiliary of unknown kind"),
    ((PROGRAM, "rows", "close", "bound"), [1, 1, 1, 1], "4 bounds where . are needed"),
    ((PROGRAM, "rows", "budget", "bound"), [1, 1], "2 bounds where 1 are needed"),
    ((*TERM, "cost", 0), lambda row: row[1:], "not a certificate"),
    ((*TERM, "cost"), lambda t: [*t, t[0]], "not a certificate"),
    ((*TERM, "cost"), lambda t: [*(row[:1] for row in t[1:]), t[0]], "not a certificate"),
    ((PRIMAL, "numerators"), lambda t: t[1:], "the channel has another shape"),
    ((PRIMAL, "outputs"), lambda t: t[1:], "the channel has another shape"),
    ((PRIMAL, "numerators", 0), lambda row: [*row, 1], "each with its output"),
    ((PRIMAL, "outputs", 0), lambda row: row[:-1], "each with its output"),
    ((PRIMAL, "outputs", 0), lambda row: [*row[:-1], row[-1] + 1], "out of order"),
    ((PRIMAL, "outputs", 0), lambda row: [-1, *row[1:]], "out of order"),
    ((PRIMAL, "outputs", 0), lambda row: [row[1], *row[1:]], "out of order"),
    ((PRIMAL, "outputs", 0), lambda row: row[::-1], "out of order"),
    ((PRIMAL, "outputs", 0, 0), False, "the channel is not in whole numbers"),
    ((PRIMAL, "outputs", 0, 0), 0.0, "the channel is not in whole numbers"),
    ((PRIMAL, "numerators", 0, 0), 0, "no positive number"),
    ((PRIMAL, "numerators", 0, 0), -1, "no positive number"),
    ((PRIMAL, "numerators", 0, 0), float, "the channel is not in whole numbers"),
    ((PRIMAL, "numerators", 0, 0), True, "the channel is not in whole numbers"),
    ((PRIMAL, "denominator"), 90.0, "the channel is not in whole numbers"),
    ((PRIMAL, "denominator"), 89, "the primal breaks channel"),
    ((PRIMAL, "denominator"), 0, "the primal breaks channel|not a certificate"),
    ((PRIMAL,), lambda p: {**p, "numerators": [[89]] * len(p["outputs"]),
                            "outputs": [[0]] * len(p["outputs"])},
     "the primal breaks channel, lower, upper"),
    ((PRIMAL, "numerators", 0), lambda r: [r[0] + 1, r[1] - 1, *r[2:]], "breaks .*kept, mean"),
    ((PRIMAL, "numerators", 0), lambda r: [r[0] - 1, r[1] + 1, *r[2:]], "breaks .*kept, mean"),
    ((PROGRAM, "lower", 0, 0), 0.99, "the primal breaks lower"),
    ((PROGRAM, "upper", 0, 0), "1/99", "the primal breaks upper"),
    ((PROGRAM, "rows", "budget", "bound"), lambda b: b - 0.02, "the primal breaks budget"),
    ((PROGRAM, "rows", "layers", "bound"), lambda b: b - 0.02, "the primal breaks layers"),
    ((PROGRAM, "rows", "one", "bound"), "-1/9", "the primal breaks one"),
    ((PROGRAM, "rows", "close", "bound", 0), -0.5, "the primal breaks close"),
    ((PROGRAM, "rows", "mean", "radius"), 1e-30, "the primal breaks mean"),
    ((PROGRAM, "auxiliaries", "ratio", "bound"), [1, 0], "the primal breaks ratio"),
    ((PROGRAM, "auxiliaries", "maximum", "bound"), [1, 0], "the primal breaks maximum"),
    ((PROGRAM, "auxiliaries", "maximum", "bound", 1), 1.75, "the primal breaks maximum"),
    ((PROGRAM, "auxiliaries", "near", "bound"), ["1/99", 0], "the primal breaks near"),
    ((PROGRAM, "auxiliaries", "near", "bound", 1), 1.49, "the primal breaks near"),
    (("accuracy",), "none", "KeyError: 'none'"),
    (("accuracy",), ["high"], "TypeError"),
    ((CLAIM, "status"), "certified", "'certified' is claimed, 'loose' is proved"),
    ((CLAIM, "status"), "uncertified", "'uncertified' is claimed, 'loose' is proved"),
    ((CLAIM, "lower"), lambda x: math.nextafter(x, INF), r"the value in \["),
    ((CLAIM, "upper"), lambda x: math.nextafter(x, -INF), r"the value in \["),
    ((CLAIM, "lower"), "inf", r"the value in \["),
    ((CLAIM, "upper"), "-inf", r"the value in \["),
    ((CLAIM, "terms", "x", 0), lambda x: x + 1e-12, r"x in \["),
    ((CLAIM, "terms", "w", 1), lambda x: math.nextafter(x, -INF), r"w in \["),
    ((CLAIM, "terms", "w"), [0.0], "not a certificate"),
    ((CLAIM, "terms"), {}, "the claim's terms has no field"),
    ((CLAIM, "terms"), lambda t: {**t, "more": [0.0, 1.0]}, "terms has an unknown field 'more'"),
    ((CLAIM, "lower"), "nan", "'nan' is no end"),
    ((CLAIM, "lower"), math.nan, "nan is no end"),
    ((CLAIM, "upper"), INF, "inf is no end"),
    ((CLAIM, "upper"), 7, "7 is no end"),
    ((CLAIM, "upper"), True, "True is no end"),
    ((CLAIM,), lambda c: {**c, "proved": True}, "the claim has an unknown field 'proved'"),
    ((CLAIM,), None, "not a certificate"),
    ((DUAL, "scores"), None, "not a certificate"),
    ((DUAL, "multipliers"), [], "not a certificate"),
    *[((*TERM, "constant", 0), value, words) for value, words in BAD_NUMBERS],
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "words"), CHANNEL)
def test_what_is_no_channel_proof_is_refused(path: Path_, value: Any, words: str) -> None:
    refused(changed(base("by hand"), *path, value=value), words)


TWO = {"root": [[1, 0], [0, 1]], "middle": [["1/9", 0], [0, "1/9"]]}
GAUSSIAN: list[tuple[Path_, Any, str]] = [
    ((PROGRAM, "units"), "digits", "KeyError"),
    ((PROGRAM, "covariance", 0, 1), "1/3", "the covariance is not symmetric"),
    ((PROGRAM, "covariance"), lambda t: t[1:], "the covariance is not symmetric"),
    ((PROGRAM, "covariance"), [], "not a certificate"),
    ((PROGRAM, "covariance", 0), [1, 2], "a matrix without entries, or ragged"),
    ((PROGRAM, "covariance", 0), "1234", "a matrix without entries, or ragged"),
    ((PROGRAM, "covariance", 0, 0), "1/2", "not proved positive"),
    ((PROGRAM, "covariance", 0, 0), 0, "not proved positive"),
    ((PROGRAM, "covariance", 3, 3), -1, "joint covariance is not proved positive semidefinite"),
    ((PROGRAM, "covariance", 3, 3), "1/100", "joint covariance is not proved positive semidef"),
    ((PROGRAM, "encoded"), [0, 0], "do not number variables"),
    ((PROGRAM, "encoded"), [0, 4], "do not number variables"),
    ((PROGRAM, "encoded"), [0, -1], "do not number variables"),
    ((PROGRAM, "encoded"), [False, 2], "do not number variables"),
    ((PROGRAM, "encoded"), [0], "a cost or a cap of another shape"),
    ((PROGRAM, "views", "V", "of"), [0, 2, 3], "view V is neither encoded nor free"),
    ((PROGRAM, "views", "W", "of"), [4], "do not number variables"),
    ((PROGRAM, "views", "W", "of"), [], "not a certificate"),
    ((PROGRAM, "views", "W", "reference"), "joint", "view W is neither encoded nor free"),
    ((PROGRAM, "views", "W", "of"), [3, 3], "do not number variables"),
    ((PROGRAM, "caps", "cap", 0, 1), "1/9", "a cost or a cap that is not symmetric"),
    ((PROGRAM, "caps", "cap"), [[1]], "a cost or a cap of another shape"),
    ((PROGRAM, "caps", "cap"), [[1, 0], [0, 1], [0, 0]], "a cost or a cap of another shape"),
    ((*TERM, "cost", 0, 1), 0.25, "a cost or a cap that is not symmetric"),
    ((PROGRAM, "rows", "d", "term", "cost", 1, 0), 0.25, "a cost or a cap that is not symmetric"),
    ((PROGRAM, "terms", "d", "cost", 1, 0), 0.25, "a cost or a cap that is not symmetric"),
    ((*TERM, "cost_radius"), -1e-30, "a negative radius"),
    ((PROGRAM, "terms", "r", "cost_radius"), "-1/9", "a negative radius"),
    ((PROGRAM, "rows", "r", "term", "cost_radius"), "-1/9", "a negative radius"),
    ((*TERM, "constant", 1), -1e-30, "a negative radius"),
    ((PROGRAM, "rows", "r", "sense"), "==", "r is no plain inequality"),
    ((PROGRAM, "rows", "r", "per_output"), True, "r is no plain inequality"),
    ((PROGRAM, "rows", "r", "radius"), 1e-30, "r is no plain inequality"),
    ((*TERM, "weights", "W"), "-1/3", "makes no convex program"),
    ((*TERM, "weights"), {"none": 1}, "unknown field 'none'"),
    ((PRIMAL, "root", 0, 1), 1e-30, "a root that is not triangular"),
    ((PRIMAL, "root", 0, 0), 0, "a root that is not triangular"),
    ((PRIMAL, "root", 1, 1), -1.25, "a root that is not triangular"),
    ((PRIMAL, "middle", 0, 1), "1/49", "a factor that is not symmetric"),
    ((PRIMAL, "middle"), [[1]], "a factor of another shape"),
    ((PRIMAL, "middle"), [[1, 0], [0, 1], [0, 0]], "a factor of another shape"),
    ((PRIMAL, "root"), [[1]], "a factor of another shape"),
    ((PRIMAL, "middle", 0, 0), "-1/9", "the primal breaks 0 ≼ Σ"),
    ((PRIMAL, "middle", 1, 1), "9/2", "the primal breaks Σ ≼ Cov"),
    ((PROGRAM, "caps", "cap", 0, 0), "1/3", "the primal breaks cap"),
    ((PROGRAM, "rows", "d", "bound"), "1/2", "the primal breaks d"),
    ((PROGRAM, "rows", "r", "bound"), "1/20", "the primal breaks r"),
    ((PROGRAM, "rows", "m", "bound"), "1/20", "the primal breaks m"),
    ((DUAL, "parts"), {}, "KeyError"),
    ((DUAL, "posteriors"), {}, "KeyError"),
    ((DUAL, "parts", "", "root", 0, 1), 1, "a root that is not triangular"),
    ((DUAL, "parts", "cap", "middle", 0, 1), 1, "a factor that is not symmetric"),
    ((DUAL, "parts", "", "middle"), [["-1/99", 0], [0, 1]], r"the value in \["),
    ((DUAL, "parts", "cap", "middle"), [["-1/9", 0], [0, "1/99"]], r"the value in \["),
    ((DUAL, "posteriors", "W", "middle"), [[-1]], r"the value in \["),
    ((DUAL, "posteriors", "W", "middle"), [[0]], r"the value in \["),
    ((DUAL, "multipliers", "d"), "x", NO_FRACTION),
    ((CLAIM, "lower"), lambda x: math.nextafter(x, INF), r"the value in \["),
    ((CLAIM, "upper"), lambda x: math.nextafter(x, -INF), r"the value in \["),
    ((CLAIM, "terms", "r", 0), lambda x: math.nextafter(x, INF), r"r in \["),
    ((CLAIM, "terms", "d", 1), lambda x: math.nextafter(x, -INF), r"d in \["),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "words"), GAUSSIAN)
def test_what_is_no_covariance_proof_is_refused(path: Path_, value: Any, words: str) -> None:
    refused(changed(base("gaussian by hand"), *path, value=value), words)


def test_factors_are_read_though_another_proves_nothing() -> None:
    document = changed(base("gaussian by hand"), DUAL, "parts", "cap", "middle", 1, 1, value=-1)
    refused(document, r"the value in \[")
    refused(changed(document, DUAL, "parts", "", "middle", 1, 0, value=1), "not symmetric")


@pytest.mark.parametrize("off", [1 + 4e-10, 5, 1 + 2.0**-52])
def test_an_indefinite_joint_covariance_has_no_proof(off: float) -> None:
    with pytest.raises(UnprovableError, match="joint covariance is not proved positive semidef"):
        verify.proof_of(gaussian([[1, Fraction(off)], [Fraction(off), 1]]))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("rows", "r", "bound"), ["5/2"]),
        (("rows", "d", "term", "constant", 0), None),
        (("terms", "m", "constant", 1), "none"),
        (("objective", "constant", 1), -1e-30),
        (("terms", "r", "weights", "V"), "x"),
        (("terms", "r", "weights"), {"none": 1}),
    ],
)
def test_numbers_that_nothing_uses_are_numbers(path: Path_, value: Any) -> None:
    unused_is_refused("gaussian by hand", path, value)


@pytest.mark.parametrize("value", ["x", True, math.nan, None, -0.5])
@pytest.mark.parametrize(
    "path",
    [
        ("objective", "cost_radius"),
        ("terms", "risk", "cost_radius"),
        ("terms", "risk", "constant", 1),
        ("terms", "risk", "weights", "W"),
        ("terms", "distortion", "cost", "parts", 0, "table", 0, 0),
    ],
)
def test_numbers_of_a_channel_program_that_nothing_uses_are_numbers(
    path: Path_, value: Any
) -> None:
    if path[-1] in (0, "W") and value == -0.5:
        value = [value]  # which is a number there
    unused_is_refused("privacy_distortion", path, value)


@pytest.mark.parametrize("value", ["x", True, math.nan, None, -0.5])
def test_the_radius_of_a_row_that_nothing_uses_is_a_number(value: Any) -> None:
    unused_is_refused("region", ("rows", "budget", "radius"), value)


def unused_is_refused(name: str, path: Path_, value: Any) -> None:
    document = {**base(name), "primal": None, "dual": None}
    document["claim"] = {"status": "uncertified", "lower": "-inf", "upper": "inf", "terms": {}}
    assert verify.disagreements(signed(document)) == []
    refused(changed(document, PROGRAM, *path, value=value), "not a certificate")


def test_what_was_found_before_a_failure_is_said() -> None:
    document = changed(base("by hand"), CLAIM, "status", value="infeasible")
    document = {**changed(document, CLAIM, "lower", value=None), "sha256": ""}
    message = verify.disagreements(document)
    assert [words.split()[0] for words in message] == ["status", "not", "sha256"]


HAMMING: list[tuple[Path_, Any, str]] = [
    ((PROGRAM, "more"), None, "the program has an unknown field 'more'"),
    ((PROGRAM, "units"), "digits", "no unit of information is called 'digits'"),
    ((PROGRAM, "law"), (), "not a certificate"),
    ((PROGRAM, "law"), "12", "the law is no list of floats"),
    ((PROGRAM, "law", 0), 1, "the law is no list of floats"),
    ((PROGRAM, "law", 0), -0.5, "a negative or infinite mass, or no mass at all"),
    ((PROGRAM, "law", 0), INF, "a negative or infinite mass, or no mass at all"),
    ((PROGRAM, "law", 0), math.nan, "a negative or infinite mass, or no mass at all"),
    ((PROGRAM, "law"), [0.0, 0.0], "a negative or infinite mass, or no mass at all"),
    ((PROGRAM, "law"), [], "a negative or infinite mass, or no mass at all"),
    ((PROGRAM, "budget"), "-1/9", "the budget is no probability"),
    ((PROGRAM, "budget"), "10/9", "the budget is no probability"),
    ((PROGRAM, "budget"), "1e-1", NO_FRACTION),
    ((PRIMAL, "level"), "x", NO_FRACTION),
    ((DUAL, "level"), None, "is no number"),
    ((PRIMAL,), {}, "the primal has no field 'level'"),
    ((CLAIM, "lower"), lambda x: math.nextafter(x, INF), r"the value in \["),
    ((CLAIM, "upper"), lambda x: x - 1e-12, r"the value in \["),
]


@pytest.mark.parametrize(("path", "value", "words"), HAMMING)
def test_what_is_no_proof_over_letters_is_refused(path: Path_, value: Any, words: str) -> None:
    document = base("letters")
    if path == (PROGRAM, "more"):
        document["program"]["more"] = 0
    refused(changed(document, *path, value=value), words)


@pytest.mark.parametrize("name", ["by hand", "gaussian by hand", "letters"])
def test_a_document_is_all_of_itself(name: str) -> None:
    document = base(name)
    refused({**document, "schema": "cvxprivacy/certificate/1"}, "^schema is not .*4' but .*1'$")
    seal = ["sha256 does not match: the file was changed after it was written"]
    assert verify.disagreements({**document, "sha256": "0" * 64}) == seal
    refused({**document, "software": "other"}, "sha256 does not match")
    more = signed({**document, "more": None})
    assert verify.disagreements(more) == [
        "not a certificate: UnprovableError: the proof has an unknown field 'more'"
    ]
    for field in sorted(verify.FIELDS - {"schema", "sha256"}):
        refused(signed({k: v for k, v in document.items() if k != field}), "not a cert|a field is")
    kind = document["program"]["kind"]
    assert type(verify.proof_of(document["program"])).__name__.lower() == f"{kind}proof"


def test_ends_too_far_apart_are_not_certified() -> None:
    document = base("letters", 1)
    assert document["claim"]["status"] == "certified"
    for name, side in (("lower", -1), ("upper", 1)):
        end, room = document["claim"][name], verify.recompute(document)["tolerance"]
        moved = changed(document, CLAIM, name, value=end + 0.9 * side * room)
        assert verify.disagreements(moved) == []
        moved = changed(document, CLAIM, name, value=end + 1.1 * side * room)
        assert verify.disagreements(moved) == ["certified is claimed of ends too far apart"]
        moved = changed(document, CLAIM, name, value="inf" if side > 0 else "-inf")
        refused(moved, "certified is claimed of ends too far apart")
    loose = base("by hand")
    wide = changed(changed(loose, CLAIM, "lower", value="-inf"), CLAIM, "upper", value=1e9)
    assert verify.disagreements(wide) == []


def test_statuses() -> None:
    status = verify.status
    assert status(0.0, 1.0, 1.0) == "certified"
    assert status(0.0, 0.0, 0.0) == "certified"
    assert status(0.0, 1.0, math.nextafter(1.0, 0)) == "loose"
    for lower, upper in ((1.0, 0.0), (-INF, 0.0), (0.0, INF), (math.nan, 0.0), (INF, INF)):
        assert status(lower, upper, 1.0) == "uncertified"
    assert verify.TOLERANCE == {"default": 1e-6, "high": 1e-9}


def test_names_in_a_false_proof_cannot_speak_for_the_verifier(
    tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    """Nor make it fail where a console cannot show them."""
    lie = "\n\nproof.json: verified, certified\x1b[8m é \ud800"
    document = base("by hand")
    rows, multipliers = document["program"]["rows"], document["dual"]["multipliers"]
    name = next(iter(rows))
    rows[lie], multipliers[lie] = {**rows.pop(name), "bound": -9}, multipliers.pop(name)
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    (first, *_) = verify.disagreements(document)
    assert first.endswith(r"\n\nproof.json: verified, certified\x1b[8m é \ud800")
    with io.TextIOWrapper(io.BytesIO(), encoding="ascii") as console:
        monkeypatch.setattr(sys, "stdout", console)
        assert main([str(path)]) == 1
        console.flush()
        text = console.buffer.getvalue().decode("ascii")
    assert text.startswith(f"{path}: NOT verified\n  not a certificate: ")
    assert all(line.startswith("  ") for line in text.splitlines()[1:])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_read_to_its_end_or_to_the_limit(tmp_path: Path, monkeypatch: Any) -> None:
    """The size of a pipe or a device is not known beforehand."""
    document = base("by hand")
    pipe, text = tmp_path / "pipe", json.dumps(document).encode()
    os.mkfifo(pipe)
    for limit in (verify.MEMORY, 8 * len(text) - 8):
        monkeypatch.setattr(verify, "MEMORY", limit)
        writer = threading.Thread(target=pipe.write_bytes, args=(text,))
        writer.start()
        if limit > 8 * len(text):
            assert verify.read_document(str(pipe)) == document
        else:
            with pytest.raises(UnaffordableError, match="bytes, where"):
                verify.read_document(str(pipe))
        writer.join()


def test_files(tmp_path: Path, capsys: Any) -> None:
    document = base("by hand")
    good, bad, twice, none = (tmp_path / f"{name}.json" for name in "abcd")
    good.write_text(json.dumps(document), encoding="utf-8")
    bad.write_text(json.dumps({**document, "accuracy": "high"}), encoding="utf-8")
    twice.write_text('{"schema": 1, "schema": 2}', encoding="utf-8")
    none.write_text("[1]", encoding="utf-8")
    assert verify.read_document(str(good)) == document
    assert gc.isenabled()
    assert main([str(good)]) == 0
    message = capsys.readouterr().out
    assert str(good) in message
    assert "NOT" not in message
    assert main([str(bad), str(good)]) == 1
    assert capsys.readouterr().out.startswith(f"{bad}: NOT verified\n  sha256 does not match")
    for path, words in ((twice, "a key stands twice"), (none, "not a JSON object")):
        with pytest.raises(ValueError, match=words):
            verify.read_document(str(path))
        assert main([str(path)]) == 2
        assert f"{path}: unreadable: {words}" in capsys.readouterr().err
    assert main([str(tmp_path / "e.json")]) == 2
    assert main(["-h"]) == main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: ")
    assert main([str(good), "-h"]) == 2  # no file of this name
    capsys.readouterr()
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: ")


# ---- numbers -----------------------------------------------------------------------------


def rational(value: arb) -> Fraction:
    """Return an exact ball's number."""
    mantissa, exponent = value.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def around(value: Fraction, radius: Fraction = Fraction(0)) -> arb:
    return balls.ball(str(value), str(radius))


def test_numbers() -> None:
    for value, expected in (("-3/7", Fraction(-3, 7)), (0.1, Fraction(0.1)), (7, 7), ("0", 0)):
        assert balls.number(value) == expected
        assert type(balls.number(value)) is Fraction
        assert balls.exactly(value) == fmpq(*Fraction(expected).as_integer_ratio())
    assert balls.exactly(Fraction(2, 3)) == fmpq(2, 3)
    assert balls.number("1" * 2000) == int("1" * 2000)
    assert balls.number("1/" + "1" * 2000) == Fraction(1, int("1" * 2000))
    for value, words in BAD_NUMBERS:
        with pytest.raises(UnprovableError, match=words):
            balls.number(value)


def test_whole_numbers_over_one_denominator() -> None:
    assert balls.integers([["1/6", 0.25], [2, "-3/4"]]) == ([[2, 3], [24, -9]], 12)
    assert balls.integers([[3, 0]]) == ([[3, 0]], 1)
    half = 2**9_999
    assert balls.integers([[f"1/{3**1000}"]])[1] == 3**1000
    limit = [[f"1/{2**k}" for k in (6000,)], [str(Fraction(1, 3**1000))]]
    assert balls.integers(limit)[1] == 2**6000 * 3**1000
    assert half.bit_length() == 10_000
    primes = [p for p in range(2, 60) if all(p % q for q in range(2, p))]
    powers = [[f"1/{p ** int(6000 / math.log2(p))}" for p in primes[:k]] for k in (3, 4)]
    assert balls.integers(powers[:1])[1].bit_length() <= rationals.BITS
    with pytest.raises(UnprovableError, match="common denominator has over 20000 bits"):
        balls.integers(powers[1:])


def test_balls_hold_their_ends_and_little_more() -> None:
    with flint.ctx.workprec(balls.PRECISION):
        for middle, radius in ((Fraction(1, 3), Fraction(1, 7)), (Fraction(-2, 3), Fraction(3))):
            outcome = around(middle, radius)
            low, high = rational(outcome.lower()), rational(outcome.upper())
            assert low <= middle - radius < middle + radius <= high
            assert high - low <= 2 * radius * (1 + Fraction(1, 2**26))
        assert around(Fraction(1, 4)).is_exact()
        assert rational(around(Fraction(1, 4))) == Fraction(1, 4)
        assert around(Fraction(0)).is_zero()
        with pytest.raises(UnprovableError, match="a negative radius"):
            balls.ball(1, -1e-300)
        with pytest.raises(UnprovableError, match="False is no number"):
            balls.ball(1, False)
        assert balls.total([]) == 0
        assert balls.total([arb(1), arb(2)]) == 3
    assert balls.PRECISION == 128


def test_ends_are_the_nearest_floats_outward() -> None:
    with flint.ctx.workprec(balls.PRECISION):
        tenth, tiny = Fraction(0.1), Fraction(1, 2**1080)
        values = [Fraction(1, 3), Fraction(-1, 3), Fraction(2), Fraction(0), tiny, -tiny, tenth]
        values += [Fraction(10) ** 300, tenth + Fraction(1, 2**110), tenth - Fraction(1, 2**110)]
        for value in values:
            outcome = around(value)
            low, high = balls.floor(outcome), balls.ceil(outcome)
            assert Fraction(low) <= value <= Fraction(high)
            below, above = math.nextafter(low, INF), math.nextafter(high, -INF)
            assert low == value or Fraction(below) > value
            assert high == value or Fraction(above) < value
        wide = around(Fraction(1, 3), Fraction(1, 7))
        assert balls.floor(wide) == pytest.approx(4 / 21, rel=1e-8)
        assert balls.ceil(wide) == pytest.approx(10 / 21, rel=1e-8)
        assert (balls.floor(arb("nan")), balls.ceil(arb("nan"))) == (-INF, INF)
        assert (balls.floor(arb.pos_inf()), balls.ceil(arb.neg_inf())) == (INF, -INF)
        assert (balls.floor(arb.neg_inf()), balls.ceil(arb.pos_inf())) == (-INF, INF)
        huge = arb(10) ** 400
        assert (balls.floor(huge), balls.ceil(-huge)) == (
            math.nextafter(INF, 0),
            -math.nextafter(INF, 0),
        )
        assert (balls.ceil(huge), balls.floor(-huge)) == (INF, -INF)


def test_what_a_program_may_ask_for() -> None:
    assert (work.ROOM, work.WORK) == (4_000_000, 6_000_000_000)
    work.affordable(work.ROOM)
    with pytest.raises(UnprovableError, match="tables of 4,000,001 entries, where 4,000,000 are"):
        work.affordable(work.ROOM + 1)
    with work.allowing(2.5):
        work.affordable(10_000_000)
        with pytest.raises(UnprovableError, match="where 10,000,000 are the most"):
            work.affordable(10_000_001)


def test_ends_of_claims() -> None:
    assert [balls.decode(x) for x in ("inf", "-inf", 0.5)] == [INF, -INF, 0.5]
    for bad in ("nan", "1", 1, True, None, math.nan, INF, [0.5], {}):
        with pytest.raises(UnprovableError, match="is no end of an enclosure"):
            balls.decode(bad)


# ---- channel programs: exactly at their limits ---------------------------------------------

TINY = Fraction(1, 2**200)
THIRDS: Any = [[0, "1/3"], ["1/7", 0]]  # at the channel below worth 1/18 in y₁ and 2/105 in y₀
VALUE = Fraction(1, 18) + Fraction(2, 105)
HALVES = listed([[5, 5], [2, 8]], 10)
BLANK: dict[str, Any] = {"name": "", "weights": {}, "cost": None}
BLANK |= {"cost_radius": 0, "constant": [0, 0]}


def channel(**more: Any) -> Any:
    """Return a program over letters of masses 1/3 and 2/3 in floats."""
    return {
        "kind": "channel",
        "units": "nats",
        "law": [[0.25, 0.5]],
        "outputs": 2,
        "views": {},
        "objective": BLANK,
        "rows": {},
        "lower": None,
        "upper": None,
        "auxiliaries": {},
        "terms": {},
        **more,
    }


def bounded(term: Any, bound: Any, **more: Any) -> Any:
    """Return a row."""
    plain = {"sense": "<=", "radius": 0, "per_output": False}
    bound = [str(b) for b in bound] if isinstance(bound, list) else str(bound)
    return {"term": {**BLANK, **term}, "bound": bound, **plain, **more}


def broken(*rows: Any, primal: Any = HALVES, **more: Any) -> list[str]:
    """Return which rows, called 0, 1, …, are not proved to hold."""
    program = channel(rows={str(i): row for i, row in enumerate(rows)}, **more)
    return verify.proof_of(program).upper(primal).broken


LAYERS = {"law": [[0.125, 0.25], [0.125, 0.25]]}


@pytest.mark.parametrize("sense", ["<=", "=="])
@pytest.mark.parametrize("layers", [False, True])
def test_a_budget_is_met_exactly_or_not_at_all(layers: bool, sense: str) -> None:
    cost: Any = [[[0, "2/3"], ["1/7", 0]], [[0, 0], ["1/7", 0]]] if layers else THIRDS
    more: Any = LAYERS if layers else {}
    for constant in (Fraction(0), Fraction(-1, 11)):
        term = {"cost": cost, "constant": [str(constant), 0]}
        at = VALUE + constant
        rows = [bounded(term, at + k * TINY, sense=sense) for k in (-1, 0, 1)]
        assert broken(*rows, **more) == (["0"] if sense == "<=" else ["0", "2"])
    many = {"sense": sense, "per_output": True}
    values = [Fraction(2, 105), Fraction(1, 18)]
    moved = [[values[0] - TINY, values[1]], values, [values[0], values[1] - TINY], values[::-1]]
    rows = [bounded({"cost": cost}, bound, **many) for bound in moved]
    assert broken(*rows, **more) == ["0", "2", "3"]
    rows = [bounded({"cost": cost}, b, **many) for b in (values[1], values[1] - TINY)]
    assert broken(*rows, **more) == (["1"] if sense == "<=" else ["0", "1"])


def test_radii_count_against_a_row() -> None:
    r, s = Fraction(1, 2**20), 1 + Fraction(1, 2**20)
    for term, more in (
        ({"cost": THIRDS}, {"radius": str(r)}),
        ({"cost": THIRDS, "cost_radius": str(r)}, {}),
        ({"cost": THIRDS, "constant": [0, str(r)]}, {}),
    ):
        rows = [bounded(term, VALUE + x, **more) for x in (0, r / s, r, r * s)]
        assert broken(*rows)[:2] == ["0", "1"]
        assert "3" not in broken(*rows)
        rows = [bounded(term, VALUE, sense="==", **more)]
        assert broken(*rows) == ["0"]
    both = {"cost": THIRDS, "cost_radius": str(r), "constant": [0, str(r)]}
    rows = [bounded(both, VALUE + x, radius=str(r)) for x in (3 * r / s, 3 * r * s)]
    assert broken(*rows) == ["0"]
    rows = [bounded({"constant": [0.25, 0]}, b) for b in (Fraction(1, 4), Fraction(1, 4) - TINY)]
    assert broken(*rows) == ["1"]  # no cost: the constant alone
    tiny = [f"1/{p**k}" for p, k in ((3, 4000), (5, 2800), (7, 2300), (11, 1900))]
    deep = [[[x, f"-{x}"] for x in pair] for pair in (tiny[:2], tiny[2:])]  # worth 0 in all
    even = listed([[1, 1], [1, 1]], 2)
    rows = [bounded({"cost": cost}, 0) for cost in (deep, deep[0])]
    assert broken(*rows, primal=even, **LAYERS) == ["0"]  # no common denominator is affordable


def test_entries_and_auxiliaries_are_met_exactly_or_not_at_all() -> None:
    for name, sign in (("lower", -1), ("upper", 1)):
        at = [["1/2", "1/2"], ["1/5", "4/5"]]
        assert broken(**{name: at}) == []
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            moved = copy.deepcopy(at)
            moved[i][j] = str(Fraction(at[i][j]) - sign * TINY)
            assert broken(**{name: moved}) == [name]
    for kind, at in (("ratio", Fraction(5, 2)), ("maximum", Fraction(13, 10))):
        for radius in (Fraction(0), Fraction(1, 3)):
            values = [
                broken(auxiliaries={"a": {"kind": kind, "bound": [str(b), str(radius)]}})
                for b in (at + radius - TINY, at + radius)
            ]
            assert values == [["a"], []]
    for wrong in ([[5, 5], [2, 9]], [[5, 4], [2, 8]]):
        assert broken(primal={**HALVES, "numerators": wrong}) == ["channel"]
    for wrong in (listed([[11, -1], [2, 8]], 10), listed([[-1, 0], [0, -1]], -1)):
        with pytest.raises(UnprovableError, match="no positive number"):
            broken(primal=wrong)
    assert broken(primal=listed([[5, 5], [2, 8]], -10)) == ["channel"]


def test_no_information_is_none_and_little_is_some() -> None:
    w = {"labels": [[0, 0], [1, 1]], "reference": None, "measure": INFORMATION}
    part = {"labels": [[0, 0], [1, -1]], "reference": [[0, 0], [1, 1]]}
    part["measure"] = INFORMATION
    more: Any = {"law": [[0.1, 0.3], [0.7, 0.2]], "views": {"W": w, "P": part}}
    rows = [bounded({"weights": {v: 1}}, 0, per_output=True) for v in "WP"]
    blind = listed([[1, 2], [1, 2]], 3)
    assert broken(*rows, primal=blind, **more) == ["1"]  # J is not π q of a part
    ours = {"objective": {**BLANK, "weights": {"W": 1}}}
    proof = verify.proof_of(channel(**more, **ours))
    assert proof.upper(blind).objective.is_zero()
    big = 3 * 2**70
    little = listed([[2**70 + 1, big - 2**70 - 1], [2**70, 2 * 2**70]], big)
    assert broken(*rows, primal=little, **more)[0] == "0"
    assert not proof.upper(little).objective.is_zero()
    phi = proof.upper(little).phi("W")
    assert not any(x.is_zero() for x in phi)
    assert all(abs(x) < 2.0**-80 for x in phi)


MORE_LAW = [[0.1, 0.3], [0.7, 0.2]]
TOTAL = sum(map(Fraction, (0.1, 0.3, 0.7, 0.2)))
PRIOR = [(Fraction(a) + Fraction(b)) / TOTAL for a, b in MORE_LAW]
LEAST: dict[str, tuple[Any, Fraction]] = {
    "information": (INFORMATION, Fraction(0)),
    "chi-squared": ({"kind": "chi-squared"}, Fraction(0)),
    "Hellinger": ({"kind": "squared Hellinger"}, Fraction(0)),
    "Le Cam": ({"kind": "Vincze-Le Cam"}, Fraction(0)),
    "Jensen": ({"kind": "Jensen-Shannon"}, Fraction(0)),
    "power": ({"kind": "power divergence", "order": "3/2"}, Fraction(0)),
    "terms": (
        {"kind": "f-information", "terms": [[1, 2, 1, -3, "1/3", 1], [1, 3, 1, 0, 0, 1]]},
        Fraction(0),
    ),
    "variation": ({"kind": "hockey-stick", "gamma": 1}, Fraction(0)),
    "hockey": ({"kind": "hockey-stick", "gamma": "5/4"}, Fraction(0)),
    "transport": ({"kind": "transport", "ground": [[0, 1], ["1/3", 0]]}, Fraction(0)),
    "Sibson": ({"kind": "Sibson", "order": "5/2"}, Fraction(1)),
    "maximal": ({"kind": "maximal leakage"}, Fraction(1)),
    "guess": ({"kind": "gain", "matrix": [[1, 0], [0, 1]]}, max(PRIOR)),
    "gain": ({"kind": "gain", "matrix": [[1, "-2/7"], ["1/3", 0]]}, PRIOR[0] - PRIOR[1] * 2 / 7),
}


@pytest.mark.parametrize("kind", LEAST)
def test_what_is_leaked_without_a_release_is_met_exactly_or_not_at_all(kind: str) -> None:
    measure, least = LEAST[kind]
    view = {"labels": [[0, 0], [1, 1]], "reference": None, "measure": measure}
    more: Any = {"law": MORE_LAW, "views": {"V": view}}
    bounds = [least - TINY, least, least + TINY]
    rows = [bounded({"weights": {"V": 1}}, b) for b in bounds]
    each = [
        bounded({"weights": {"V": 1}, "cost": [[str(-b)] * 2] * 2}, 0, per_output=True)
        for b in bounds
    ]
    blind = listed([[1, 2], [1, 2]], 3)
    assert broken(*rows, *each, primal=blind, **more) == ["0", "3"]
    proof = verify.proof_of(channel(**more, objective={**BLANK, "weights": {"V": "3/8"}}))
    value = proof.upper(blind).objective
    assert value.contains(balls.ball(least * 3 / 8))
    assert value.rad() == 0 or kind in ("guess", "gain")
    # off π q by 2^-150, which is too little for a ball to tell, and more than TINY
    far = 2**150
    little = listed([[far + 1, 2 * far - 1], [far, 2 * far]], 3 * far)
    expected = {
        "chi-squared": ["0", "1", "3", "4"],  # its square is less
        "Le Cam": ["0", "1", "3", "4"],
        "terms": ["0", "1", "3", "4"],
        "hockey": ["0", "3"],  # 0 still
        "guess": ["0", "3", "4", "5"],  # as much in all, but not in each output
        "gain": ["0", "3", "4", "5"],
    }.get(kind, ["0", "1", "2", "3", "4", "5"])
    assert broken(*rows, *each, primal=little, **more) == expected


def test_classes_of_values_at_distance_0_have_their_shares_or_not() -> None:
    ground = [[0, 0, 1], [0, 0, 2], [1, 1, 0]]
    law = [[0.25, 0.0], [0.0, 0.25], [0.25, 0.25]]
    for cost, answer in (
        (ground, []),
        ([[0, 0, 1], ["1/9", 0, 2], [1, 1, 0]], ["0"]),  # back it is paid for
        ([[0, 0, 0], [0, 0, 2], [1, 1, 0]], []),
    ):
        measure = {"kind": "transport", "ground": cost}
        view = {"labels": [[0, 0], [1, 1], [2, 2]], "reference": None, "measure": measure}
        row = bounded({"weights": {"V": 1}}, 0)
        information = listed([[2, 1], [1, 2]], 3)  # which of the first two it is
        assert broken(row, primal=information, law=law, views={"V": view}) == answer
        half = 2**150
        little = listed([[half + 1, half - 1], [half, half]], 2 * half)
        uneven = [[0.25, 0.125], [0.125, 0.25], [0.125, 0.25]]
        assert broken(row, primal=little, law=uneven, views={"V": view}) == ["0"]


def test_no_rational_is_worth_hours() -> None:
    tiny = [f"1/{p**k}" for p, k in ((3, 4000), (5, 2800), (7, 2300), (11, 1900))]
    gains = [[x, f"-{x}"] for x in tiny]  # worth 0 without a release
    even = listed([[1, 1], [1, 1]], 2)
    for matrix, answer in ((gains[:1], []), (gains, ["0"])):  # no common denominator
        view = {"labels": [[0, 0], [1, 1]], "reference": None}
        view["measure"] = {"kind": "gain", "matrix": matrix}
        row = bounded({"weights": {"V": 1}}, 0)
        assert broken(row, primal=even, views={"V": view}, **LAYERS) == answer
    program = channel(views={"V": view}, **LAYERS)
    full = 1 << 64 * 10**7
    long = listed([[1, full - 1]] * 2, full)
    with pytest.raises(UnaffordableError, match="products"):
        verify.proof_of(program, long)


def test_divergences_of_balls_that_touch_zero() -> None:
    """Σ J log(J/(π q)) at every corner of the balls, and not far beyond all of them."""

    def value(joint: Any, reference: Any) -> float:
        q = sum(joint)
        pairs = zip(joint, reference, strict=True)
        return sum(j * math.log(j / (p * q)) for j, p in pairs if j)

    divergence = measures._divergence
    with flint.ctx.workprec(balls.PRECISION):
        for highs, lows, reference, most in (
            ((0.25, 0.5, 0.0), (0.0, 0.5, 0.0), (0.5, 0.25, 0.25), 1.2),
            ((0.5, 0.125, 0.01), (0.0, 0.0, 0.0), (0.5, 0.25, 0.25), 2.0),
            ((1.0, 0.01, 1e-9), (1.0, 0.0, 0.0), (0.25, 0.5, 0.25), 0.2),
            ((1e-30, 0.0, 0.0), (0.0, 0.0, 0.0), (0.25, 0.5, 0.25), 1e-29),
            ((0.5, 0.25, 0.125), (0.5, 0.25, 0.125), (0.25, 0.5, 0.25), 1e-16),
        ):
            joint = [arb(low).union(arb(high)) for low, high in zip(lows, highs, strict=True)]
            outcome = divergence(joint, [arb(p) for p in reference])
            low, high = balls.floor(outcome), balls.ceil(outcome)
            inner = [value(c, reference) for c in corners(lows, highs)]
            assert low <= min(inner) + 1e-15 * abs(min(inner))
            assert max(inner) <= high + 1e-15 * abs(max(inner))
            assert high - low <= most
        assert divergence([arb(0), arb(0)], [arb(0.5), arb(0.5)]).is_zero()
        for joint, reference, frozen in TOUCHING:
            values = [arb(x) if type(x) is float else arb(x[0]).union(arb(x[1])) for x in joint]
            outcome = divergence(values, [arb(p) for p in reference])
            assert (balls.floor(outcome), balls.ceil(outcome)) == frozen


def corners(lows: Any, highs: Any) -> Any:
    steps = [[low + (high - low) * k / 4 for k in range(5)] for low, high in zip(lows, highs)]  # noqa: B905
    values: list[list[float]] = [[]]
    for ours in steps:
        values = [[*c, x] for c in values for x in ours]
    return [c for c in values if sum(c)]


ZERO_OR: Any = (0.0, 0.5)
TOUCHING: Any = (
    ((ZERO_OR, 1.0), (0.25, 0.75), (-1.6177830521198964, 0.9808292712834622)),
    ((ZERO_OR, ZERO_OR, 0.125), (0.25, 0.25, 0.5), (-2.438009698509796, 1.4729377807978559)),
    (((0.0, 0.25), 1.0), (0.25, 0.75), (-0.33782096574703435, 0.6342556737860087)),
    (((-0.125, 0.5), 0.0), (0.25, 0.75), (-0.5000000045876763, 0.693147185327504)),
)


def test_multipliers_that_are_none_count_as_zero() -> None:
    document = base("by hand")
    program, dual = document["program"], document["dual"]
    proof, m = verify.proof_of(program), program["outputs"]

    def lower(**parts: Any) -> tuple[float, float]:
        outcome = copy.deepcopy(dual)
        for part, values in parts.items():
            outcome[part] |= values
        ball = proof.lower(outcome)
        return balls.floor(ball), balls.ceil(ball)

    nan = math.nan
    for part, name, zero, garbage in (
        ("multipliers", "mean", 0.0, (nan, INF, "1", None, True, 10**400, [1.0] * m, {}, [[1.0]])),
        ("multipliers", "budget", 0.0, (-1.0, nan, -INF, -1e-300, [1.0] * m, [1.0])),
        ("multipliers", "close", [0.0] * m, ([1.0] * (m + 1), [-1.0] * m, "1" * m, [nan] * m)),
        ("scores", "W", [[0.0] * m] * 2, (None, [], [[1.0] * m], [[1.0] * (m + 1)] * 2, "12")),
        ("auxiliaries", "ratio", [None] * 2, (None, [], [[[1.0] * m]], [[[-1.0] * m] * 2] * 2)),
        ("auxiliaries", "maximum", [None], (None, [None] * 2, 1, [[[1.0]]], [[[-1.0] * m] * 3])),
    ):
        size = len(program["law"][0])
        if part == "auxiliaries":
            zero = [[[0.0] * m] * size] * len(zero)
        expected = lower(**{part: {name: zero}})
        assert expected != lower() or name == "budget"
        for value in garbage:
            assert lower(**{part: {name: value}}) == expected, (name, value)
        less = copy.deepcopy(dual)
        del less[part][name]
        assert balls.floor(proof.lower(less)) == expected[0]
    assert lower(multipliers={"budget": 0.5}) != lower(multipliers={"budget": 0.0})
    once = lower(multipliers={"close": 0.5})
    assert once == lower(multipliers={"close": [0.5] * m})
    assert lower(scores={"W": [[1e300] * m, [-1e300] * m]}) == lower(
        scores={"W": [[1e4] * m, [-1e4] * m]}
    )
    assert lower(scores={"W": [[2.5] * m] * 2}) == lower(scores={"W": [[0.0] * m] * 2})
    without = {k: v for k, v in dual.items() if k != "objective"}
    assert balls.floor(proof.lower(without)) == lower()[0]
    assert balls.floor(proof.lower({**dual, "objective": 0})) != lower()[0]


def test_the_unit_of_a_channel_program() -> None:
    cost = [[0, 1, 5], [2, 4, 10]]
    views: Any = {v: {"labels": [[0, 0]], "reference": None, "measure": INFORMATION} for v in "WX"}

    def unit(at: float, term: Any, **more: Any) -> float:
        program = channel(objective={**BLANK, **term}, outputs=3, views=views, **more)
        return verify.proof_of(program).unit(at)

    nat = 1 / math.log(2)
    least = 0.5 + 2 * 2 / 3
    term: Any = {"cost": cost, "constant": [0.5, 0.125], "cost_radius": 0.25}
    for above, expected in (
        (-1.0, 1.0),
        (0.5, 1.0),
        (3.0, 3.0),
        (7.0, 7.0),
        (100.0, 8.0),
        (INF, 8.0),
    ):
        assert unit(least + above, term) == pytest.approx(expected)
    high = {"upper": [[1, 0, "1/2"], [0, 1, 1]]}  # entries that may not be are no steps
    least = 0.5 + 4 * 2 / 3
    for above, expected in ((0.5, 5.0), (5.5, 5.5), (INF, 6.0)):
        assert unit(least + above, term, **high) == pytest.approx(expected)
    weights = {"weights": {"W": 0.5, "X": [0.25, 0, "7/2"]}}
    for upper, expected in ((0.0, 0.25), (1.0, 1.0), (100.0, 3.5), (INF, 3.5)):
        assert unit(upper, weights) == pytest.approx(expected)
        assert unit(upper * nat, weights, units="bits") == pytest.approx(expected * nat)
    both = {**weights, "cost": cost}
    for upper, expected in ((0.0, 0.25), (4 / 3 + 9.0, 9.0), (100.0, 8 + 3.5), (INF, 8 + 3.5)):
        assert unit(upper, both) == pytest.approx(expected)
    assert unit(100.0, both, units="bits") == pytest.approx(8 + 3.5 * nat)
    for upper in (0.0, 0.5, 7.0, INF):
        assert unit(upper, {}) == 1.0
        assert unit(upper, {"weights": {"W": 0}}) == 1.0
        assert unit(upper, {"cost": [[3, 3, 3], [2, 2, 2]]}) == 1.0
    for step, expected in ((2.0**-50, 2.0), (2.0**-43.5, 2.0), (2.0**-42, 2.0**-42)):
        assert unit(0.0, {"cost": [[1, 1 + step, 3], [1, 1, 3]]}) == pytest.approx(expected)
        assert unit(-9.0, {"cost": [[-1, step - 1, 1], [-1, -1, 1]]}) == pytest.approx(expected)
    layers = {"law": [[0.25, 0.25], [0.0, 0.25]]}
    views = {
        v: {"labels": [[0, 0], [0, 0]], "reference": None, "measure": INFORMATION} for v in "WX"
    }
    layered = {"cost": [[[0, 2, 8]] * 2, [[0, 4, 0]] * 2]}  # in the mean 0, 2, 8 and 0, 3, 4
    assert unit(0.0, layered, **layers) == pytest.approx(2.0)
    assert unit(INF, layered, **layers) == pytest.approx(8.0)
    with pytest.raises(UnprovableError, match="the objective's scale is not finite"):
        unit(0.0, {"weights": {"W": str(10**400)}}, **layers)


def test_the_entries_that_a_channel_program_asks_for() -> None:
    program = base("by hand")["program"]
    proof, n, m = verify.proof_of(program), len(program["law"][0]), program["outputs"]
    labels = [
        1 + max(x for row in view["reference"] or view["labels"] for x in row)
        for view in program["views"].values()
    ]
    rows, terms, views = (len(program[k]) for k in ("rows", "terms", "views"))
    entries = sum(k * (n + m) for k in labels) + m
    entries += (
        (rows + terms + views) * (8 * m + views) + rows + 16 * m * len(program["auxiliaries"])
    )
    assert proof._room() == entries
    atoms = len(program["law"]) * n
    for label, words in ((atoms - 1, "reference mass 0"), (atoms, "more labels than there are")):
        labels = [[label] * n, *[[0] * n] * (len(program["law"]) - 1)]
        view = {"labels": labels, "reference": None, "measure": INFORMATION}
        with pytest.raises(UnprovableError, match=words):
            verify.proof_of({**program, "views": {**program["views"], "W": view}})


# ---- covariance programs: exactly at their limits ------------------------------------------


def test_matrices_that_are_semidefinite_and_not_by_nothing(monkeypatch: Any) -> None:
    semidefinite, definite = matrices.semidefinite, matrices.definite
    e = fmpq(1, 2**9000)
    for rows, expected in (
        ([[0]], True),
        ([[1, 1], [1, 1]], True),
        ([[1, 1], [1, 1 - e]], False),
        ([[1, 1], [1, 1 + e]], True),
        ([[0, e], [e, 1]], False),
        ([[0, 0], [0, -e]], False),
        ([[-1]], False),
        ([[1, 0, 1], [0, 0, 0], [1, 0, 1]], True),
        ([[1, 2, 3], [2, 4, 6], [3, 6, 9]], True),
        ([[1, 2, 3], [2, 4, 6], [3, 6, 9 - e]], False),
        ([[2, 1, 3], [1, 2, 3], [3, 3, 6]], True),
        ([[2, 1, 3], [1, 2, 3], [3, 3, 6 - e]], False),
    ):
        matrix = fmpq_mat(rows)
        assert semidefinite(matrix) is expected, rows
        assert semidefinite(matrix / 9) is expected, rows
        assert definite(matrix) is (expected and bool(matrix.det() > 0)), rows
        assert semidefinite(arb_like(matrix)) in (expected and matrix.det() > 0, False)
    assert semidefinite(arb_like(fmpq_mat([[2, 1], [1, 2]])))
    singular = fmpq_mat([[1, 2], [2, 4]])
    monkeypatch.setattr(matrices, "BURDEN", 2**4 * 4)
    assert matrices._burden(singular, 10**9) == 2**4 * (3 + 1)
    assert matrices._burden(fmpq_mat([[1, 0], [0, fmpq(1, 16)]]), 10**9) == 2**4 * (1 + 5)
    assert semidefinite(singular)
    monkeypatch.setattr(matrices, "BURDEN", 2**4 * 4 - 1)
    assert semidefinite(singular) is False
    assert matrices.basis(fmpq_mat([[0, 1, 2, 0], [0, 0, 0, 1]])) == [1, 3]
    assert matrices.basis(fmpq_mat([[1, 1, 0], [1, 1, 0], [0, 0, 3]])) == [0, 2]


def test_a_sign_is_undecided_where_determinants_are_too_much_work(monkeypatch: Any) -> None:
    singular, indefinite = fmpq_mat([[1, 2], [2, 4]]), fmpq_mat([[1, 2], [2, 3]])
    monkeypatch.setattr(matrices, "PATIENT", 2**4 * 4)
    assert matrices.sign(singular) == 0
    monkeypatch.setattr(matrices, "PATIENT", 2**4 * 4 - 1)
    assert matrices.sign(singular) is None
    assert matrices.sign(indefinite) == -1  # which balls tell
    with pytest.raises(UnaffordableError, match="undecided"):
        matrices.definite(singular)


def arb_like(matrix: fmpq_mat) -> Any:
    return flint.arb_mat(matrix)


def test_determinants_are_known_or_not() -> None:
    with flint.ctx.workprec(128):
        two = fmpq_mat([[4, 2], [2, 10]])
        outcome = matrices.log_det(two)
        assert abs(outcome - arb(36).log()) < 1e-35
        assert matrices.log_det(fmpq_mat([[1, 2], [2, 1]])) is None
        assert matrices.cholesky(fmpq_mat([[1, 2], [2, 1]])) is None
        assert [[float(x) for x in row] for row in matrices.cholesky(two) or []] == [
            [2.0],
            [1.0, 3.0],
        ]
        assert covariance_proof.CovarianceProof.log_det(two).overlaps(outcome)
        with pytest.raises(UnprovableError, match="not proved positive definite"):
            covariance_proof.CovarianceProof.log_det(fmpq_mat([[0]]))
        for k, expected in ((20, True), (100, False)):
            near = fmpq_mat([[1, 1], [1, 1 + fmpq(1, 2**k)]]) / 3
            assert matrices.log_det(near) is not None
            assert (matrices.known_log_det(near) is not None) == expected


def gaussian(gamma: Any, **more: Any) -> Any:
    """Return a program whose variables but the first are encoded."""
    return {
        "kind": "covariance",
        "units": "nats",
        "given": [],
        "rows": {},
        "terms": {},
        "covariance": [[str(x) for x in row] for row in gamma],
        "caps": {},
        "views": {},
        "encoded": list(range(1, len(gamma))),
        "objective": BLANK,
        **more,
    }


def eye(size: int, couplings: int = 0) -> list[list[Any]]:
    values = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    for k in range(couplings):
        i, j = sorted(((k % size), (k + 1 + k // size) % size))
        values[i][j] = values[j][i] = Fraction(1, 16)
    return values


def test_which_programs_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, couplings, expected in (
        (8, 12, True), (9, 0, True), (9, 4, True), (9, 5, False), (10, 5, True), (10, 6, False),
        (3, 3, True),
    ):  # fmt: skip
        proof = verify.proof_of(gaussian(eye(size, couplings)))
        assert proof.exact == expected, (size, couplings)
        assert proof.precision == 128 + (0 if expected else 8 * size)
        assert proof.n == size - 1
    monkeypatch.setattr(matrices, "BURDEN", 3**4 * 6)
    assert verify.proof_of(gaussian(eye(3, 1))).exact
    monkeypatch.setattr(matrices, "BURDEN", 3**4 * 6 - 1)
    assert not verify.proof_of(gaussian(eye(3, 1))).exact
    monkeypatch.undo()
    for k, precision in ((20, 128), (100, 256), (300, 512), (3000, 4096)):
        third = Fraction(1, 3)
        gamma = [[1, 0, 0], [0, third, third], [0, third, third + Fraction(1, 2**k)]]
        assert verify.proof_of(gaussian(gamma)).precision == precision
    nearly = [[1, 0, 0], [0, third, third], [0, third, third + Fraction(1, 2**5000)]]
    for gamma in (nearly, [[1, 0], [0, 0]]):
        with pytest.raises(UnprovableError, match="a covariance is not proved positive definite"):
            verify.proof_of(gaussian(gamma))
    with pytest.raises(UnprovableError, match="products"):
        verify.proof_of(gaussian(eye(400)))


def test_the_unit_of_a_covariance_program() -> None:
    gamma = [[1, 0, 0], [0, 3, "1/2"], [0, "1/2", 2]]
    views = {"V": {"of": [1, 2], "reference": "conditional"}}
    views["W"] = {"of": [0], "reference": "marginal"}
    cost, weights = [["1/2", 1], [1, 0.25]], {"V": 0.5, "W": "1/4"}  # ⟨C, Σ̄⟩ = 3
    nat = 1 / math.log(2)

    def unit(upper: float, units: str = "nats", **term: Any) -> float:
        objective = {**BLANK, **term, "constant": [0.5, 0.125]}
        program = gaussian(gamma, views=views, objective=objective, units=units)
        return verify.proof_of(program).unit(upper)

    for upper, expected in (
        (0.5, 0.0),
        (1.0, 0.5),
        (0.25, 0.25),
        (3.5, 3.0),
        (9.0, 3.0),
        (INF, 3.0),
    ):
        assert unit(upper, cost=cost) == pytest.approx(expected or 3.0)
        assert unit(upper, cost=cost, weights=weights) == pytest.approx(0.75 + expected)
        assert unit(upper, "bits", cost=cost, weights=weights) == pytest.approx(
            0.75 * nat + expected
        )
        assert unit(upper, weights=weights) == pytest.approx(0.75)
        assert unit(upper) == 1.0
    negative = [["-1/2", -1], [-1, -0.25]]
    assert unit(9.0, cost=negative) == pytest.approx(3.0)
    with pytest.raises(UnprovableError, match="the objective has no scale"):
        unit(0.0, weights={"V": str(10**400)})


IDENTITY = [[1, 0], [0, 1]]


def test_a_gaussian_budget_is_met_exactly_or_not_at_all() -> None:
    gamma = [[1, 0, 0], [0, 3, "1/2"], [0, "1/2", 2]]
    sigma = {"root": IDENTITY, "middle": [["1/3", "1/5"], ["1/5", "1/7"]]}
    cost = [["1/2", 1], [1, 0.25]]
    value = Fraction(1, 6) + Fraction(2, 5) + Fraction(1, 28)
    views = {"V": {"of": [1, 2], "reference": "conditional"}}

    def rows(*argument: Any) -> list[str]:
        program = gaussian(gamma, views=views, rows={str(i): r for i, r in enumerate(argument)})
        return verify.proof_of(program).upper(sigma).broken

    for constant in (Fraction(0), Fraction(-1, 11)):
        term = {"cost": cost, "constant": [str(constant), 0]}
        assert rows(*[bounded(term, value + constant + k * TINY) for k in (-1, 0, 1)]) == ["0"]
    r, s = Fraction(1, 2**20), 1 + Fraction(1, 2**20)
    spread = Fraction(1, 3) + Fraction(1, 7) + Fraction(2, 5)  # Σ |Σ_ij|
    assert rows(*[bounded({"cost": cost, "constant": [0, str(r)]}, value + x)
                  for x in (0, r / s, r * s)]) == ["0", "1"]  # fmt: skip
    assert rows(*[bounded({"cost": cost, "cost_radius": str(r)}, value + x * spread)
                  for x in (0, r / s, r * s)]) == ["0", "1"]  # fmt: skip
    both = {"cost": cost, "cost_radius": str(r), "constant": [0, str(r)]}
    assert rows(*[bounded(both, value + x * (1 + spread)) for x in (r / s, r * s)]) == ["0"]
    quarter = {"constant": [0.25, 0]}
    assert rows(bounded(quarter, Fraction(1, 4)), bounded(quarter, 0)) == ["1"]
    rate = {"weights": {"V": 0}, "cost": cost}  # balls alone
    assert rows(bounded(rate, value), bounded(rate, value + Fraction(1, 10**30))) == ["0"]


def test_what_each_cap_leaves() -> None:
    gamma = [[1, 0, 0], [0, 3, "1/2"], [0, "1/2", 2]]
    cap = {"cap": [["1/3", "1/5"], ["1/5", "1/7"]]}
    proof = verify.proof_of(gaussian(gamma, caps=cap))
    assert proof.upper({"root": IDENTITY, "middle": cap["cap"]}).broken == []
    for k in ((TINY, 0), (0, TINY)):
        middle = [[str(Fraction(1, 3) + k[0]), "1/5"], ["1/5", str(Fraction(1, 7) + k[1])]]
        assert proof.upper({"root": IDENTITY, "middle": middle}).broken == ["cap"]
    bar = [[3, "1/2"], ["1/2", 2]]
    assert verify.proof_of(gaussian(gamma)).upper({"root": IDENTITY, "middle": bar}).feasible
    proof = verify.proof_of(gaussian(gamma, given=[0], encoded=[1, 2]))
    below = [["299/100", "1/2"], ["1/2", "199/100"]]
    assert proof.upper({"root": IDENTITY, "middle": below}).feasible
    for wrong in ([[3 + TINY, "1/2"], ["1/2", 2]], [[3, "1/2"], ["1/2", 2 + TINY]]):
        middle = [[str(x) for x in row] for row in wrong]
        outcome = proof.upper({"root": IDENTITY, "middle": middle}).broken
        assert outcome == ["Σ ≼ Cov(V | Z)"]


# ---- letters: exactly at their limits ------------------------------------------------------


def test_sums_of_masses_are_exact() -> None:
    for masses in ([], [0.1], [0.1, 0.2, 0.3], [5e-324, 1.7e308], [1.0, 2.0**-53, -1.0, 0.3]):
        assert hamming_proof.exact_sum(masses) == sum(map(Fraction, masses))
    letters = hamming_proof.Letters([0.125, 0.25, 0.25, 1.0])
    assert letters.total == Fraction(13, 8)
    assert len(letters) == 4
    for mass, expected in ((Fraction(1, 9), 0), (Fraction(1, 8), 1), (Fraction(1, 4), 3), (2, 3)):
        assert letters.below(Fraction(mass)) == expected
    assert letters.mass(1, 3) == Fraction(1, 2)
    assert letters.mass(0, 4) == letters.total
    with flint.ctx.workprec(128):
        expected = sum(m * math.log(m) for m in (0.125, 0.25, 0.25))
        assert float(letters.m_log_m(0, 4)) == pytest.approx(expected)
        assert float(letters.m_log_m(0, 1)) == pytest.approx(0.125 * math.log(0.125))
        assert letters.m_log_m(2, 2) == 0


def test_logarithms_next_to_one_are_precise() -> None:
    with flint.ctx.workprec(128):
        for value in (Fraction(1, 2), Fraction(2), 1 + Fraction(1, 2**100), Fraction(3, 7)):
            outcome, expected = hamming_proof.log(value), around(value).log()
            assert outcome.overlaps(expected)
            assert outcome.rad() <= expected.rad()
        near = hamming_proof.log(1 + Fraction(1, 2**100))
        assert near.rad() < abs(near.mid()) * 2.0**-100
        for near in (hamming_proof.log(Fraction(k, 2**9)) for k in (2**8 + 1, 2**10 - 1)):
            assert near.rad() < 2.0**-120
        assert hamming_proof.v_log_v(Fraction(0)).is_zero()
        assert float(hamming_proof.v_log_v(Fraction(1, 4))) == -math.log(4) / 4


def test_values_are_sharp() -> None:
    tried = []

    def value(bits: int, middle: float = 1.0) -> Callable[[], arb]:
        def least_value() -> arb:
            tried.append(flint.ctx.prec)
            return arb(middle, arb(2) ** (-bits * flint.ctx.prec // 160))

        return least_value

    for bits, middle, precisions in (
        (99, 1.0, [160, 320]),
        (101, 1.0, [160]),
        (99, 0.25, [160, 320]),
        (99, 4.0, [160]),
        (99, -4.0, [160]),
        (40, 1.0, [160, 320, 640]),
        (1, 1.0, [160, 320, 640, 1280]),
        (1101, 0.0, [160]),
        (600, 0.0, [160, 320]),
    ):
        tried.clear()
        hamming_proof.sharp(value(bits, middle))
        assert tried == precisions, (bits, middle)


def test_what_is_nonnegative_has_no_negative_part() -> None:
    with flint.ctx.workprec(128):
        for low, high in ((-1.0, 2.0), (-2.0, 1.0), (0.0, 1.0), (1.0, 2.0), (-1e-30, 1e-40)):
            outcome = hamming_proof.nonnegative(arb(low).union(arb(high)))
            assert outcome.lower() >= 0
            assert balls.floor(outcome) == pytest.approx(max(low, 0.0))
            assert balls.ceil(outcome) >= high
            assert balls.ceil(outcome) == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize("total", [1, 2, 12])
def test_the_water_in_rationals(total: int) -> None:
    letters = hamming_proof.Letters([total * p for p in (0.125, 0.125, 0.25, 0.5)])
    half, eighth, tenth = Fraction(1, 2), Fraction(1, 8), Fraction(1, 10)
    for level, kept, tail, distortion in (
        (tenth, 4, 0, 3 * tenth),
        (eighth, 2, 2 * eighth, 3 * eighth),
        (Fraction(1, 4), 1, half, half),
        (Fraction(3, 4), 1, half, half),
        (Fraction(-1), 4, 0, 0),
        (Fraction(0), 4, 0, 0),
    ):
        outcome = hamming_proof.Filling(letters, level)
        assert (outcome.kept, outcome.tail, outcome.distortion) == (kept, tail, distortion)
        assert outcome.most == half
        assert outcome.level == min(max(level, Fraction(0)), half)
    outcome = hamming_proof.Filling(letters, eighth)  # δ = 3/8, M = 1/2
    d = 3 * eighth
    for budget, mixture in (
        (d, (1, False)), (d - TINY, ((d - TINY) / d, True)), (tenth, (tenth / d, True)),
        (Fraction(0), (0, True)), (Fraction(7, 16), (half, False)), (half, (0, False)),
        (Fraction(3, 4), (0, False)),
    ):  # fmt: skip
        assert outcome.mixture(budget) == mixture
        assert outcome.reached(budget) == min(budget, half)
    full = hamming_proof.Filling(letters, Fraction(3, 4))
    assert full.mixture(Fraction(3, 4)) == (1, False)
    assert full.slope == 0.0
    assert hamming_proof.Filling(letters, Fraction(0)).slope == INF
    with flint.ctx.workprec(128):
        assert outcome.slope == pytest.approx(math.log(5))
        expected = 1.5 * half * math.log(2) + (5 / 8) * math.log(5 / 8) + eighth * math.log(eighth)
        assert float(outcome.rate) == pytest.approx(float(expected) + 0.25 * math.log(2))
        assert float(outcome.entropy) == pytest.approx(1.75 * math.log(2))
        assert float(full.rate) == 0.0
        assert float(full.lower(tenth)) == 0.0
        empty = hamming_proof.Filling(letters, Fraction(0))
        assert float(empty.lower(tenth)) == 0.0
        assert float(empty.lower(Fraction(0))) == pytest.approx(1.75 * math.log(2))
        assert float(outcome.upper(Fraction(3, 4))) == 0.0
        assert float(outcome.upper(Fraction(0))) == pytest.approx(1.75 * math.log(2))
        assert float(outcome.upper(d / 2)) == pytest.approx(
            (float(outcome.rate) + 1.75 * math.log(2)) / 2
        )
        assert float(outcome.lower(d)) == pytest.approx(float(outcome.rate))
        assert float(outcome.outside) == pytest.approx(0.75 * math.log(2))
        assert float(outcome.inside) == pytest.approx(math.log(2))
        assert float(outcome.equivocation) == pytest.approx(float(outcome.entropy - outcome.rate))
        assert float(outcome.lower(d + tenth)) == pytest.approx(
            float(outcome.rate) - 0.1 * math.log(5)
        )


# ---- what single lines are for -------------------------------------------------------------


def test_a_radius_is_never_rounded_inwards() -> None:
    """Radii are of 30 bits: one a little above such a number is worth the next."""
    with flint.ctx.workprec(balls.PRECISION):
        for excess in (Fraction(1, 2**20), Fraction(1, 2**100), Fraction(1, 2**140), TINY):
            outcome = around(Fraction(0), 1 + excess)
            assert rational(outcome.upper()) >= 1 + excess
            assert rational(outcome.lower()) <= -1 - excess


def test_one_output_is_a_program_too() -> None:
    program = channel(outputs=1, rows={"d": bounded({"cost": [["1/3"], [0]]}, "1/9")})
    program["objective"] = {**BLANK, "cost": [[3], ["3/2"]]}
    proof = verify.proof_of(program)
    primal = listed([[1], [1]], 1)
    assert proof.upper(primal).broken == []
    assert proof.upper(primal).objective.contains(2)
    dual = {"scores": {}, "multipliers": {"d": 2.0}, "auxiliaries": {}}
    assert abs(proof.lower(dual) - 2) < 1e-35


def test_the_least_of_a_row_within_its_bounds_is_that_of_the_best_channel() -> None:
    def greedy(costs: Any, lows: Any, highs: Any) -> Fraction:
        value, left = sum(c * a for c, a in zip(costs, lows, strict=True)), 1 - sum(lows)
        for c, a, b in sorted(zip(costs, lows, highs, strict=True)):
            more = min(left, b - a)
            value, left = value + c * more, left - more
        return Fraction(value)

    tenth = Fraction(1, 10)
    for costs in ([3, 1, 2], [1, 2, 3], [-2, 5, -1], [2, 1, 2]):
        for lows, highs in (
            ([tenth] * 3, [4 * tenth] * 3),
            ([0, tenth, tenth], [tenth, 1, 4 * tenth]),
            ([2 * tenth, 3 * tenth, 5 * tenth], [1, 1, 1]),
            ([0, 0, 0], [2 * tenth, 3 * tenth, 5 * tenth]),
            ([0, 0, 0], [1, 1, 1]),
        ):
            argument = {"lower": [[str(x) for x in lows]], "upper": [[str(x) for x in highs]]}
            expected = greedy(costs, lows, highs)
            proof = verify.proof_of(
                channel(law=[[0.5]], outputs=3, objective={**BLANK, "cost": [costs]}, **argument)
            )
            dual = {"scores": {}, "multipliers": {}, "auxiliaries": {}}
            assert abs(proof.lower(dual) - exact(expected)) < 1e-15, (costs, lows, highs)


def exact(value: Fraction) -> arb:
    return arb(fmpq(*value.as_integer_ratio()))


def test_the_entries_that_a_covariance_program_asks_for(monkeypatch: Any) -> None:
    program = base("gaussian by hand")["program"]
    asked: list[int] = []
    monkeypatch.setattr(covariance_proof, "affordable", asked.append)
    verify.proof_of(program)
    size, views, tables = 4, 3, 3 + 3 + 1
    assert asked == [(1 + views) * size**3 // 6 + (1 + tables) * size**2]
    asked.clear()
    verify.proof_of(gaussian(eye(5)))
    assert asked == [125 // 6 + 25]
    assert (matrices.BURDEN, covariance_proof.MOST, work.EXACT) == (
        10**10,
        4096,
        8,
    )


def test_no_objective_contradicts_a_gaussian_program() -> None:
    """Only the constraints may: a least cost of 5 is no contradiction."""
    cost = {"cost": IDENTITY, "constant": [5, 0]}
    dual = {
        "posteriors": {},
        "multipliers": {"d": 1.0},
        "parts": {"": {"root": IDENTITY, "middle": [[0, 0], [0, 0]]}},
    }
    for bound, expected in ((Fraction(6), -1), (Fraction(5), 0), (Fraction(9, 2), 0.5)):
        program = gaussian(eye(3), objective={**BLANK, **cost}, rows={"d": bounded(cost, bound)})
        document = {"program": program, "primal": None, "accuracy": "high"}
        proof = verify.proof_of(program)
        assert proof.lower({**dual, "objective": 0}) == expected
        assert proof.lower({**dual, "objective": 1}) == 5 + expected
        assert proof.lower(dual) == 5 + expected
        summary = verify.recompute({**document, "dual": {**dual, "objective": 0}})
        infeasible = expected > 0
        assert summary["status"] == ("infeasible" if infeasible else "uncertified")
        assert summary["lower"] == (INF if infeasible else -INF)
        summary = verify.recompute({**document, "dual": {**dual, "objective": 1}})
        assert (summary["status"], summary["lower"]) == ("uncertified", 5 + expected)


def test_letters_are_not_contradicted() -> None:
    program = {"kind": "hamming", "units": "bits", "law": [0.5, 0.25, 0.25], "budget": "1/8"}
    proof = verify.proof_of(program)
    assert proof.lower({"level": "1/16", "objective": 0}) == 0
    assert float(proof.lower({"level": "1/16", "objective": 1})) > 0.5
    assert float(proof.lower({"level": "1/16"})) > 0.5
    far = verify.proof_of({**program, "budget": 1})
    assert far.lower({"level": "1/16"}) == 0  # the line is below 0 there
    with pytest.raises(UnprovableError, match="has a kind, units, a law and a budget"):
        hamming_proof.HammingProof({**program, "kind": "channel"})


@pytest.mark.parametrize("name", ["by hand", "gaussian by hand", "letters", "gaussian balls"])
def test_the_precision_is_the_proofs_own(name: str) -> None:
    document = base(name)
    claim, proof = document["claim"], verify.proof_of(document["program"])
    for precision in (20, 2000):
        flint.ctx.prec = precision
        lower = proof.lower(document["dual"])
        assert balls.floor(lower) == claim["lower"]
        flint.ctx.prec = precision
        assert balls.ceil(proof.upper(document["primal"]).objective) == claim["upper"]
        flint.ctx.prec = precision
        fresh = verify.recompute(document)
        assert [fresh["lower"], fresh["upper"]] == [claim["lower"], claim["upper"]]
        flint.ctx.prec = precision
        assert verify.proof_of(document["program"]).unit(claim["upper"]) == proof.unit(
            claim["upper"]
        )
    flint.ctx.prec = balls.PRECISION


def test_beyond_order_eight_nothing_is_eliminated_exactly() -> None:
    for name, expected in (("gaussian by hand", fmpq_mat), ("gaussian balls", flint.arb_mat)):
        document = base(name)
        proof = verify.proof_of(document["program"])
        root, middle = proof.factors(document["primal"], proof.n)
        assert (type(root), type(middle)) == (expected, fmpq_mat)
        assert type(proof.bound) is expected


def test_what_proposers_may_ask() -> None:
    program = base("gaussian by hand")["program"]
    proof = verify.proof_of(program)
    assert proof.covariance("V") == fmpq_mat([[fmpq(3, 2), fmpq(1, 2)], [fmpq(1, 2), 2]])
    half = [[0.5, 0.0], [0.0, 2.0]]
    matrix = proof.matrix(SimpleNamespace(tolist=lambda: half))
    assert matrix == fmpq_mat([[fmpq(1, 2), 0], [0, 2]])
    assert proof.product(matrix, matrix, matrix) == fmpq_mat([[fmpq(1, 8), 0], [0, 8]])


def test_the_arguments_of_the_command(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(base("letters")), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["verify", str(path)])
    assert main() == 0
    assert str(path) in capsys.readouterr().out


def test_no_objective_contradicts_a_channel_program() -> None:
    row = bounded({"cost": [[1, 2], [2, 1]]}, "1/2")
    dual = {"scores": {}, "multipliers": {"d": 2.0}, "auxiliaries": {}}
    for sign, expected in ((1, Fraction(23, 3)), (-1, Fraction(-17, 3))):
        objective = {**BLANK, "cost": [[5 * sign, 6 * sign]] * 2, "constant": [sign, 0]}
        proof = verify.proof_of(channel(objective=objective, rows={"d": row}))
        assert abs(proof.lower({**dual, "objective": 0}) - 1) < 1e-35
        assert abs(proof.lower({**dual, "objective": 1}) - exact(expected)) < 1e-35


def test_a_negative_radius_is_refused_before_anything_is_computed() -> None:
    for more in ({"radius": -1}, {"term": {**BLANK, "cost_radius": "-1/9"}}):
        with pytest.raises(UnprovableError, match="a negative radius"):
            verify.proof_of(channel(rows={"d": {**bounded({}, 1), **more}}))


def test_violations_are_those_of_probabilities() -> None:
    auxiliaries = {
        "ratio": {"kind": "ratio", "bound": ["5/2", "1/2"]},
        "maximum": {"kind": "maximum", "bound": [1, 0]},
    }
    rows = {"d": bounded({"cost": THIRDS}, 1)}
    summary = verify.proof_of(channel(auxiliaries=auxiliaries, rows=rows)).upper(HALVES).violation
    assert [float(x) for x in summary["ratio"]] == pytest.approx([0.1, -0.2])
    assert [float(x) for x in summary["maximum"]] == pytest.approx([0.3])
    assert [float(x) for x in summary["d"]] == pytest.approx([float(VALUE) - 1])


def test_what_cannot_be_computed_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    document = base("gaussian by hand")
    proof = verify.proof_of(document["program"])

    def singular(dual: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(proof, "_lower", singular)
    assert proof.lower(document["dual"]) == arb.neg_inf()
    view = {"V": {"of": [1, 2], "reference": "conditional"}}  # told all of, Σ = 0
    program = gaussian(eye(3), views=view, objective={**BLANK, "weights": {"V": 1}})
    primal = {"root": IDENTITY, "middle": [[0, 0], [0, 0]]}
    evaluation = verify.proof_of(program).upper(primal)
    assert evaluation.feasible
    assert (floor(evaluation.objective), ceil(evaluation.objective)) == (-INF, INF)
    document = {"program": program, "primal": primal, "dual": None, "accuracy": "high"}
    summary = verify.recompute(document)
    assert (summary["status"], summary["lower"], summary["upper"]) == ("uncertified", -INF, INF)


@pytest.mark.parametrize("argument", [[], [0]])
@pytest.mark.parametrize("units", ["nats", "bits"])
def test_parts_hold_up_the_whole_gradient_or_prove_nothing(units: str, argument: list[int]) -> None:
    """G = C + λ C′ − ½ ω Bᵀ Y B + P must be ≽ 0 with the last part, and no less will do."""
    view = {"V": {"of": [1], "reference": "conditional"}}
    objective = {**BLANK, "weights": {"V": "1/2"}, "cost": [["1/3"]]}
    rows = {
        "d": bounded({"cost": [["1/5"]]}, 1),
        "m": bounded({"cost": [["1/7"]], "weights": {"V": "1/4"}}, 9),
    }
    program = gaussian([[1, 0], [0, 2]], views=view, objective=objective, rows=rows, units=units)
    program |= {"given": argument, "caps": {"cap": [["3/2"]]}}
    proof = verify.proof_of(program)
    nat = 1.0 if units == "nats" else math.log(2)
    # ω = 1/2 + 3/4, Y = 3
    left = (Fraction(1, 2) + Fraction(3, 4)) * 3 / 2 - Fraction(2, 5)
    left -= (Fraction(1, 3) + Fraction(3, 7)) * Fraction(nat)
    least = Fraction(1, 10**13) if argument or units == "bits" else TINY

    def lower(ours: Fraction, cap: Fraction) -> arb:
        parts = {
            "": {"root": [[1]], "middle": [[str(ours)]]},
            "cap": {"root": [["1/2"]], "middle": [[str(cap / 4)]]},
        }
        posteriors = {"V": {"root": [[1]], "middle": [[3]]}}
        dual = {"multipliers": {"d": 2, "m": 3}, "posteriors": posteriors, "parts": parts}
        return proof.lower(dual)

    cap = Fraction(1, 9)
    assert lower(left - cap - least, cap) == arb.neg_inf()
    outcome = lower(left - cap + least, cap)
    size = math.log(2) / 2 + (math.log(3) + 1) / 2  # of ½ log det R + ½ (log det Y + m)
    expected = 1.25 * size - 2 - 27 * nat - float(left - cap) * 2 - float(cap) * 1.5
    assert float(outcome) == pytest.approx(expected / nat)


def test_what_is_given_has_a_known_covariance() -> None:
    for ours, words in ((0, "a covariance is not proved positive definite"), (1, "")):
        program = gaussian([[ours, 0], [0, 2]], given=[0])
        if words:
            with pytest.raises(UnprovableError, match=words):
                verify.proof_of(program)
        else:
            assert verify.proof_of(program).n == 1


def test_a_common_denominator_of_all_the_bits_that_there_may_be() -> None:
    odd = [3**4000, 5**2800, 7**300]
    bits = math.prod(odd).bit_length()
    for more, fits in ((0, True), (1, False)):
        table = [[f"1/{x}" for x in (*odd, 2 ** (rationals.BITS - bits + more))]]
        if fits:
            assert balls.integers(table)[1].bit_length() == rationals.BITS == 20_000
        else:
            with pytest.raises(UnprovableError, match="has over 20000 bits"):
                balls.integers(table)


def test_the_digest_is_of_canonical_json() -> None:
    text = '{"a":"Σ ≼ é","b":[1,0.5]}'
    document = {"sha256": "", "b": [1, 0.5], "a": "Σ ≼ é"}
    assert verify.digest(document) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("argument", [[], [2]])
def test_parts_hold_up_the_gradient_of_what_is_not_encoded(argument: list[int]) -> None:
    """W of X: B = 1/2, S = 3/2, and G = C − ½ Bᵀ Y B = 1/5 − 3/8."""
    view = {"W": {"of": [0], "reference": "conditional"}}
    rows = {"d": bounded({"cost": [["1/5"]]}, 1)}
    program = gaussian([[2, 1, 0], [1, 2, 0], [0, 0, 1]], views=view, rows=rows)
    program |= {"objective": {**BLANK, "weights": {"W": 1}}, "encoded": [1], "given": argument}
    proof = verify.proof_of(program)
    posteriors = {"W": {"root": [[1]], "middle": [[3]]}}
    for off, proves in ((Fraction(-1, 10**13), False), (Fraction(1, 10**13), True)):
        ours = str(Fraction(7, 40) + off)
        parts = {"": {"root": [[1]], "middle": [[ours]]}}
        outcome = proof.lower({"multipliers": {"d": 1}, "posteriors": posteriors, "parts": parts})
        expected = -1 + (math.log(2) + math.log(3) + 1 - 4.5) / 2 - 0.35
        assert float(outcome) == (pytest.approx(expected) if proves else -INF)
