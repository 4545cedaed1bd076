"""What a document asks for is estimated before it is done, and no field stands in it unread."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq, fmpz

from cvxprivacy_verifier import verify, work
from cvxprivacy_verifier.__main__ import main
from cvxprivacy_verifier.differences import differences
from cvxprivacy_verifier.measures import measure_of
from tests import malformed
from tests.lengths import rest_at_length, some_at_length
from tests.verifier.documents import Document, get, leaves, run, signed

CORPUS = [
    entry["document"]
    for entry in json.loads(
        (Path(__file__).parents[2] / "verifier" / "tests" / "frozen.json").read_text(
            encoding="utf-8"
        )
    )
]
KINDS = {str(document["program"]["kind"]): document for document in reversed(CORPUS)}
VALUES: list[Any] = [None, True, 1, 0.5, "x", [], [1], {}, {"a": 1}]
FREE = ("software", "sha256")


def objects(document: Document) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all objects that proofs read."""
    yield ()
    for path in leaves(document):
        if isinstance(get(document, path), dict) and path[0] != "table":
            yield path


NAMED = ("views", "rows", "terms", "caps", "auxiliaries", "worst")  # what the program has many of


@pytest.mark.parametrize("index", some_at_length(range(0, len(CORPUS), 3), 30))
def test_an_unknown_field_is_refused_by_name_at_every_level(index: int) -> None:
    for path in objects(CORPUS[index]):
        if path[:1] == ("program",) and path[-1] in NAMED:
            continue  # one more of them makes another program
        wrong = copy.deepcopy(CORPUS[index])
        here = get(wrong, path)
        here["strange"] = copy.deepcopy(next(iter(here.values()), None))
        problem = verify.disagreements(signed(wrong))[0]
        message = (
            "strange",
            "a measure of other data",
            "an auxiliary of unknown kind",
            "a cost that",
        )
        assert any(text in problem for text in (*message, "a part of a cost that is no")), path


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_without_a_part_is_refused_by_name(kind: str) -> None:
    for field in sorted(verify.FIELDS - {"schema"}):
        wrong = {k: v for k, v in KINDS[kind].items() if k != field}
        problems = verify.disagreements(wrong if field == "sha256" else signed(wrong))
        assert f"the proof has no field '{field}'" in problems[0]
    without = signed({**KINDS[kind], "dual": None})
    assert all("claimed" in problem for problem in verify.disagreements(without))
    proved = verify.recompute(without)
    assert np.inf in (-proved["lower"], proved["upper"])  # of what is maximised


@pytest.mark.parametrize("every", rest_at_length([27, 1], 1))
@pytest.mark.parametrize("kind", some_at_length(KINDS, 3))
def test_whatever_is_malformed_ends_in_a_refusal(kind: str, every: int) -> None:
    """Each part deleted, and replaced by types of JSON: no error leaves the verifier."""
    document = KINDS[kind]
    for place, path in enumerate(leaves(document)):
        if path[0] in FREE:
            continue
        wrong = copy.deepcopy(document)
        del get(wrong, path[:-1])[path[-1]]
        assert isinstance(verify.disagreements(signed(wrong)), list)
        for value in VALUES[place % every :: every]:
            wrong = copy.deepcopy(document)
            get(wrong, path[:-1])[path[-1]] = value
            problems = verify.disagreements(signed(wrong))
            assert all(isinstance(problem, str) for problem in problems), (path, value)
            if path[0] == "program":
                assert isinstance(differences(wrong["program"], document["program"]), list)


def test_keys_that_stand_twice_are_refused_at_every_level(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    text = json.dumps(KINDS["channel"])
    for key in ('"program": {', '"dual": {', '"claim": {', '"objective": {', '"measure": {'):
        path.write_text(text.replace(key, f'{key}"kind": 0, "kind": 0, ', 1), encoding="utf-8")
        with pytest.raises(ValueError, match="a key stands twice"):
            verify.read_document(str(path))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_of_json_is_unreadable(number: str, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    text = json.dumps(KINDS["channel"]).replace('"cost_radius": 0', f'"cost_radius": {number}', 1)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="is no number of JSON"):
        verify.read_document(str(path))


def test_a_file_whose_values_fill_memory_is_refused_unparsed(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_bytes(b"[" + b"[]," * 8_000_000 + b"[]]")
    done = run(str(path))
    assert (done.returncode, "bytes, where" in done.stderr) == (2, True)


# ---- the estimate ------------------------------------------------------------------------


def test_every_document_is_far_from_the_budget() -> None:
    for document in CORPUS:
        asked = work.work_of(*(document[key] for key in ("program", "primal", "dual")))
        assert 0 < asked < work.WORK / 1000


STARVING = (
    *(
        "multipliers_that_are_coprime",
        "weights_that_are_coprime",
        "gaussian_costs_that_are_coprime",
    ),
    *("many_views_and_rows", "many_terms", "many_auxiliaries"),
    *("outputs_of_a_general_plan", "channel_weights_that_are_coprime", "letters_times_outputs"),
)


@pytest.mark.long
@pytest.mark.parametrize("name", STARVING)
def test_what_would_starve_is_refused_by_its_work(name: str) -> None:
    document = json.loads(malformed.KINDS[name](np.random.default_rng(0), 1_000_000))
    (problem,) = verify.disagreements(document)
    assert "UnaffordableError" in problem


def test_only_the_person_at_the_keyboard_allows_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(KINDS["hamming"]), encoding="utf-8")
    parts = (KINDS["hamming"][key] for key in ("program", "primal", "dual"))
    monkeypatch.setattr(work, "WORK", work.work_of(*parts) - 1)
    assert main([str(path)]) == 1
    assert "--work allows more" in capsys.readouterr().out
    assert main(["--work", "2", str(path)]) == 0
    for wrong in ("0", "-1", "inf", "nan", "x"):
        assert main(["--work", wrong, str(path)]) == 2


# ---- least costs, exactly ----------------------------------------------------------------


def least(ground: list[list[Any]], joint: list[int], masses: list[int]) -> Fraction:
    """Return the least cost by all vertices of the dual: prices along trees of tight edges.

    By the best of all orders in which each supply is sent to one demand after another: a vertex of
    the transport polytope is what some order of its edges fills greedily.
    """
    n, total, q = len(joint), sum(masses), sum(joint)
    best = None
    edges = [(i, j) for i in range(n) for j in range(n)]
    for order in permutations(edges):
        left, wanted = [j * total for j in joint], [p * q for p in masses]
        paid = Fraction(0)
        for i, j in order:
            moved = min(left[i], wanted[j])
            left[i], wanted[j] = left[i] - moved, wanted[j] - moved
            paid += moved * Fraction(ground[i][j])
        best = paid if best is None else min(best, paid)
    assert best is not None
    return best / total


def exactly(ground: list[list[Any]], joint: list[int], masses: list[int]) -> Fraction:
    reference = [arb(fmpq(p, sum(masses))) for p in masses]
    measure = measure_of({"kind": "transport", "ground": ground}, reference, arb(1))
    value = measure.exactly([fmpz(j) for j in joint], masses)
    assert value is not None
    assert abs(measure.value([arb(j) for j in joint]) - arb(value)) < 1e-6 * (1 + sum(joint))
    return Fraction(int(value.p), int(value.q))


@pytest.mark.parametrize("seed", range(6))
def test_the_least_cost_of_two_values_is_that_of_all_plans(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ground = [[0, int(rng.integers(1, 9))], [f"{rng.integers(1, 9)}/7", 0]]
    joint, masses = rng.integers(1, 10**9, (2, 2)).tolist()
    assert exactly(ground, joint, masses) == least(ground, joint, masses)


@pytest.mark.parametrize("size", [3, 7, 20])
@pytest.mark.parametrize("scale", [10, 10**9, 10**17, 10**40])
def test_a_line_and_a_plan_agree_at_any_count(size: int, scale: int) -> None:
    """The same distances with values in another order are no line: a plan and prices prove it."""
    rng = np.random.default_rng(size)
    line = [[f"{abs(i - j)}/{size - 1}" for j in range(size)] for i in range(size)]
    turn = [*range(1, size), 0]
    other = [[line[i][j] for j in turn] for i in turn]
    masses = [scale + int(x) for x in rng.integers(1, 10, size)]
    joint = [m * int(x) // 100 for m, x in zip(masses, rng.integers(0, 100, size), strict=True)]
    beyond = np.cumsum([Fraction(j) - Fraction(p * sum(joint), sum(masses))
                        for j, p in zip(joint, masses, strict=True)])  # fmt: skip
    truth = sum(map(abs, beyond[:-1]), Fraction(0)) / (size - 1)
    assert exactly(line, joint, masses) == truth
    assert exactly(other, [joint[i] for i in turn], [masses[i] for i in turn]) == truth


def test_a_tie_is_a_tie_at_counts_near_a_thousand_million() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = (int(x) for x in rng.integers(10**9 - 1000, 10**9, 2))
        ground, masses, joint = [[0, 1], [1, 0]], [a + b, a + b], [a, b]
        assert exactly(ground, joint, masses) == abs(Fraction(a - b, 2))
