"""The verifier and a checker that shares neither code nor arithmetic with it agree."""

from __future__ import annotations

import ast
import collections
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy_verifier import verify
from tests import second_checker
from tests.instances import KINDS, Document, as_covariance, documents, solved
from tests.second_checker import Refused, check
from tests.verifier.documents import changed

STATUSES = {"certified", "loose", "infeasible", "uncertified"}


def agree(document: Document) -> str:
    """Return the status, which both find, of ends that overlap and are equally far apart."""
    proved = verify.recompute(document)
    lower, upper, status = check(document)
    assert proved["lower"] <= upper
    assert lower <= proved["upper"]
    if math.isfinite(proved["lower"]):  # neither loses what the multipliers prove
        assert float(lower) == pytest.approx(proved["lower"], rel=1e-12, abs=1e-13)
    if math.isfinite(proved["upper"]):
        assert float(upper) == pytest.approx(proved["upper"], rel=1e-12, abs=1e-13)
    ours = math.inf
    if math.isfinite(upper):
        program = second_checker.program_of(document)
        ours = float(second_checker.tolerance(program, document["accuracy"], upper))
        if verify.SCHEMA != "cvxprivacy/certificate/1":  # which measured otherwise
            assert ours == pytest.approx(proved["tolerance"], rel=1e-9)
    if status != proved["status"]:  # only where they measure, or round, otherwise
        both = sorted((ours, proved["tolerance"]))
        assert {status, proved["status"]} == {"certified", "loose"}
        assert both[0] / 1.001 <= proved["upper"] - proved["lower"] <= both[1] * 1.001
    return str(proved["status"])


def campaign(seed: int, count: int) -> tuple[collections.Counter[str], set[str]]:
    """Compare so many documents; return how many have each status, and their formulations."""
    statuses: collections.Counter[str] = collections.Counter()
    names = set()
    for name, document in documents(seed, count):
        assert verify.disagreements(document) == []
        statuses[agree(document)] += 1
        names.add(name)
    return statuses, names


def test_two_checkers_agree() -> None:
    statuses, names = campaign(5, 20)
    assert names == set(KINDS)
    assert statuses["certified"] >= 9
    assert statuses["infeasible"] >= 1


@pytest.mark.long
def test_two_checkers_agree_at_length() -> None:
    statuses, names = campaign(2, 160)
    assert names == set(KINDS)
    assert statuses["certified"] >= 80
    assert statuses["infeasible"] >= 3


@pytest.fixture(scope="module")
def binary() -> Document:
    """Return R(1/8) of a fair bit in a document."""
    source = cpv.DiscreteSource([[0.5, 0.0], [0.0, 0.5]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.125)
    return solved(problem).document()


@pytest.fixture(scope="module")
def scalar() -> Document:
    """Return min ½ log₂ 1/D s.t. D ≤ 1/4, which is 1 bit, in a document of a covariance program."""
    return as_covariance(cpv.ReverseWaterFilling([1.0], 0.25)).document()


def test_great_multipliers_lose_nothing_where_entries_are_bounded() -> None:
    # only the identity preserves the marginals where no value may move down: its price is free
    pmf = np.array([[0, 0, 0, 5], [3, 3, 6, 2]]) / 19
    criteria = [cpv.PreserveMarginal(), cpv.ForbiddenMoves(np.tril(np.ones((4, 4)), -1) > 0)]
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource(pmf), cpv.hamming(4), criteria=criteria)
    document = solved(problem).document()
    prices = [-6109022.784617835, -2433068.025981797, 373585.09325830283, 2108884.6714183614]
    path = ("dual", "multipliers", "preserve_marginal")
    assert agree(changed(document, *path, value=prices)) == "certified"


def test_closed_forms_are_enclosed(binary: Document, scalar: Document) -> None:
    expected = 1 + 0.125 * math.log2(0.125) + 0.875 * math.log2(0.875)
    lower, upper, status = check(binary)
    assert status == "certified"
    assert lower - 1e-15 <= expected <= upper + 1e-15
    assert upper - lower <= 1e-6
    lower, upper, status = check(scalar)
    assert status == "certified"
    assert lower <= 1 <= upper
    assert upper - lower <= 1e-30


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("program", "law", 0, 0), -0.5),
        (("program", "law", 0, 0), math.nan),
        (("program", "outputs"), 2.0),
        (("program", "outputs"), True),
        (("program", "units"), "digits"),
        (("program", "objective", "weights", "W"), -1.0),
        (("program", "rows", "budget", "sense"), ">="),
        (("program", "rows", "budget", "bound"), "1/0"),
        (("program", "rows", "budget", "bound"), "0.1"),
        (("program", "rows", "budget", "bound"), "1/100000"),
        (("program", "rows", "budget", "radius"), -1.0),
        (("program", "views", "W", "labels", 0, 0), 7),
        (("primal", "denominator"), 0),
        (("primal", "denominator"), 2**53),
        (("primal", "numerators", 0, 0), -1),
        (("primal", "numerators", 0, 0), 0.5),
        (("schema",), "another/1"),
    ],
    ids=str,
)
def test_what_is_no_proof_is_refused(path: Any, value: Any, binary: Document) -> None:
    with pytest.raises(Refused):
        check(changed(binary, *path, value=value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("program", "covariance"), [[-1.0]]),
        (("program", "covariance"), [[0.0]]),
        (("program", "encoded"), [1]),
        (("program", "rows", "budget", "bound"), "1/5"),
        (("primal", "middle"), [["5/4"]]),
        (("primal", "middle"), [["-1/4"]]),
    ],
    ids=str,
)
def test_what_is_no_gaussian_proof_is_refused(path: Any, value: Any, scalar: Document) -> None:
    with pytest.raises(Refused):
        check(changed(scalar, *path, value=value))


def test_wrong_multipliers_prove_less(binary: Document, scalar: Document) -> None:
    """A multiplier of the wrong sign counts as none, and others bound the same minimum."""
    truth = check(binary)[1]
    price = binary["dual"]["multipliers"]["budget"]
    assert check(changed(binary, "dual", "multipliers", "budget", value=-price))[0] <= 0
    for factor in (0.5, 0.9, 1.1, 2.0):
        checked = check(changed(binary, "dual", "multipliers", "budget", value=factor * price))
        assert checked[0] < truth - Fraction(1, 1000)
        assert checked[2] == "loose"
    for price in (0, "1/2", "3/1"):
        assert check(changed(scalar, "dual", "multipliers", "budget", value=price))[0] < 1


def test_a_hamming_document_is_a_channel_program() -> None:
    law, level = [0.5, 0.25, 0.125, 0.125], Fraction(1, 10)
    program = {"kind": "hamming", "units": "bits", "law": law, "budget": "3/10"}
    document = {
        "schema": second_checker.SCHEMA,
        "accuracy": "high",
        "program": program,
        "primal": {"level": str(level)},  # δ = 3 λ
        "dual": {"level": str(level), "objective": 1},
    }
    expected = 1.75 + 0.7 * math.log2(0.7) + 0.3 * math.log2(0.1)
    lower, upper, status = check(document)
    assert status == "certified"
    assert float(lower) == pytest.approx(expected, abs=1e-14)
    assert float(upper) == pytest.approx(expected, abs=1e-14)
    for wrong in ("1/100", "1/5", "2/5", "0", "3/4"):
        loose = check({**document, "primal": {"level": wrong}, "dual": {"level": wrong}})
        assert loose[0] <= upper
        assert lower <= loose[1]
    with pytest.raises(Refused):
        check({**document, "program": {**program, "budget": "3/2"}})


def test_the_second_checker_shares_no_code_with_the_first() -> None:
    folder = Path(second_checker.__file__).parent
    imported = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module))
    assert not [name for name in imported if name.split(".")[0] in ("cvxprivacy", "flint", "numpy")]
    assert {n for n in imported if n.startswith("tests")} <= {
        f"tests.second_checker.{path.stem}" for path in folder.glob("*.py")
    }
