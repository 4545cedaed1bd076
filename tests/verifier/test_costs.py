"""Costs by parts, and channels that list what they have: the same as tables, or refused."""

from __future__ import annotations

import copy
import itertools
import resource
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy_verifier import channel_data, verify, work
from cvxprivacy_verifier.balls import UnaffordableError, floor
from cvxprivacy_verifier.differences import differences
from cvxprivacy_verifier.statement import stated
from tests import second_checker
from tests.claims import claimed
from tests.instances import solved
from tests.lengths import seeds, some_at_length
from tests.primals import INFORMATION, listed
from tests.proofs import BLANK, document, multipliers

N, M = 4, 5
Program = dict[str, Any]


def parts(rng: np.random.Generator, count: int) -> Any:
    """Return a cost by parts of thirds, sevenths and floats."""
    values = []
    for _ in range(count):
        shape = rng.integers(1, 4, 2)
        entries = [[str(Fraction(int(rng.integers(-5, 9)), int(rng.choice([1, 3, 7]))))
                    for _ in range(shape[1])] for _ in range(shape[0])]  # fmt: skip
        entries[0][0] = float(rng.random())
        rows, columns = rng.integers(shape[0], size=N), rng.integers(shape[1], size=M)
        values.append({"table": entries, "rows": rows.tolist(), "columns": columns.tolist()})
    return {"parts": values}


def tabled(cost: Any) -> list[list[str]]:
    """Return the table of a cost by parts."""
    return [
        [
            str(sum(Fraction(p["table"][p["rows"][s]][p["columns"][y]]) for p in cost["parts"]))
            for y in range(M)
        ]
        for s in range(N)
    ]


def program_of(rng: np.random.Generator, *costs: Any, **more: Any) -> Program:
    """Return a program of an objective, a row, a row per output, and reported terms."""
    objective, budget, each = costs
    law = [[float(x) for x in row] for row in rng.uniform(0.1, 1, (2, N)).round(3)]
    plain = {"sense": "<=", "radius": 0, "per_output": False}
    term = {**BLANK, "name": "t", "weights": {}}
    return {
        "kind": "channel",
        "units": "bits",
        "law": law,
        "outputs": M,
        "views": {"W": {"labels": [[0] * N, [1] * N], "reference": None, "measure": INFORMATION}},
        "objective": {**term, "weights": {"W": "1/2"}, "cost": objective},
        "rows": {
            "budget": {"term": {**term, "cost": budget, "cost_radius": "1/9"}, "bound": 9, **plain},
            "each": {"term": {**term, "cost": each}, "bound": 9, **plain, "per_output": True},
        },
        "lower": None,
        "upper": None,
        "auxiliaries": {},
        "terms": {"d": {**term, "cost": budget}, "e": {**term, "cost": each}},
        **more,
    }


def primal_of(rng: np.random.Generator) -> Any:
    table = rng.integers(0, 4, (N, M))
    table[:, 0] = 30 - table[:, 1:].sum(axis=1)
    return listed(table.tolist(), 30)


def pair_of(seed: int) -> tuple[Program, Program, Any, Any]:
    """Return a program by parts and the same with tables, a channel, and multipliers."""
    rng = np.random.default_rng(seed)
    costs = [parts(rng, int(rng.integers(1, 4))) for _ in range(3)]
    state = rng.bit_generator.state
    mine = program_of(rng, *costs)
    rng.bit_generator.state = state
    theirs = program_of(rng, *map(tabled, costs))
    return mine, theirs, primal_of(rng), multipliers(rng, mine)


@pytest.mark.parametrize("seed", range(20))
def test_of_costs_alone_the_least_of_each_letter_is_proved(seed: int) -> None:
    """Each number of a table is looked at once: columns without an output are none of them."""
    rng = np.random.default_rng(seed)
    cost = parts(rng, 1 + seed % 3)
    program = program_of(rng, cost, cost, cost, rows={}, terms={})
    program["objective"]["weights"] = {}
    mass = [sum(map(Fraction, column)) for column in zip(*program["law"], strict=True)]
    table = [list(map(Fraction, row)) for row in tabled(cost)]
    least = sum(p * min(row) for p, row in zip(mass, table, strict=True)) / sum(mass)
    dual = {"weights": {}, "multipliers": {}, "scores": {}, "auxiliaries": {}}
    bound = floor(verify.proof_of(program).lower(dual))
    assert bound <= least
    assert float(bound) == pytest.approx(float(least), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_parts_prove_what_their_table_does(seed: int) -> None:
    mine, theirs, primal, dual = pair_of(seed)
    one, other = verify.proof_of(mine), verify.proof_of(theirs)
    low, high = one.lower(dual), other.lower(dual)
    assert low.overlaps(high)
    assert floor(low) == pytest.approx(floor(high), abs=1e-9)  # a radius has 30 bits
    a, b = one.upper(primal), other.upper(primal)
    assert a.broken == b.broken
    for x, y in ((a.objective, b.objective), *((a.terms[k], b.terms[k]) for k in "de")):
        assert x.overlaps(y)
        assert abs(x.mid() - y.mid()) < 1e-30
    assert one.unit(1.0) == pytest.approx(other.unit(1.0), rel=1e-12)
    assert differences(mine, theirs) == differences(theirs, mine) == []


def repeated(rng: np.random.Generator, layers: int) -> tuple[Any, Any]:
    """Return a cost of one row, of one column or of both, and the same in full."""
    rows, columns = [(1, M), (N, 1), (1, 1)][rng.integers(3)]
    tables = [
        [[str(Fraction(int(rng.integers(-5, 9)), 7)) for _ in range(columns)] for _ in range(rows)]
        for _ in range(layers)
    ]
    full = [[row * (M // columns) for row in table] * (N // rows) for table in tables]
    return (tables, full) if layers > 1 else (tables[0], full[0])


@pytest.mark.parametrize("seed", seeds(20, 8))
def test_one_row_or_one_column_stands_for_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [repeated(rng, int(layers)) for layers in rng.integers(1, 3, 3)]
    state = rng.bit_generator.state
    mine = program_of(rng, *(short for short, _ in pairs))
    rng.bit_generator.state = state
    theirs = program_of(rng, *(full for _, full in pairs))
    primal, dual = primal_of(rng), multipliers(rng, mine)
    one, other = document(mine, primal, dual), document(theirs, primal, dual)
    assert one["claim"]["terms"].keys() == other["claim"]["terms"].keys()
    for key in ("lower", "upper"):
        assert float(one["claim"][key]) == pytest.approx(float(other["claim"][key]), abs=1e-9)
    assert differences(mine, theirs) == differences(theirs, mine) == []
    assert stated(one)[1:] == stated(other)[1:]
    for results in (one, other):
        assert verify.disagreements(results) == []
        second_checker.check(results)
    moved = [Fraction(x) for x in one["claim"]["terms"]["e"]]
    assert moved == pytest.approx([Fraction(x) for x in other["claim"]["terms"]["e"]], abs=1e-12)
    cost = mine["rows"]["each"]["term"]["cost"]
    entry = cost[0] if isinstance(cost[0][0], list) else cost
    entry[0][0] = str(Fraction(entry[0][0]) + 1)  # counts wherever it stands for
    assert differences(mine, theirs)


@pytest.mark.parametrize("seed", seeds(20, 8))
def test_rows_by_parts_are_met_exactly_or_not_at_all(seed: int) -> None:
    """At their very values, in thirds and sevenths, and beside them by less than a ball."""
    mine, theirs, primal, _ = pair_of(seed)
    table = np.zeros((N, M), dtype=int)
    for s, row in enumerate(zip(primal["outputs"], primal["numerators"], strict=True)):
        table[s, row[0]] = row[1]
    mass = [sum(Fraction(row[s]) for row in mine["law"]) for s in range(N)]
    cost = theirs["rows"]["each"]["term"]["cost"]
    value = [
        sum(p * Fraction(cost[s][y]) * int(table[s, y]) for s, p in enumerate(mass))
        / sum(mass) / 30
        for y in range(M)
    ]  # fmt: skip
    tiny = Fraction(1, 2**300)
    for program, sense, by in itertools.product((mine, theirs), ("<=", "=="), (0, tiny, -tiny)):
        row = {**program["rows"]["each"], "sense": sense}
        full = {**row, "per_output": False, "bound": str(sum(value) + by)}
        each = {**row, "bound": [str(v + by) for v in value]}
        for argument in (full, each):
            proof = verify.proof_of({**program, "rows": {"r": argument}})
            met = by == 0 or (by > 0 and sense == "<=")
            assert proof.upper(primal).broken == ([] if met else ["r"])


def test_statements_of_parts_are_those_of_their_table() -> None:
    for seed in range(5):
        mine, theirs, primal, dual = pair_of(seed)
        messages = [stated(claimed(document(p, primal, dual))) for p in (mine, theirs)]
        assert messages[0] == messages[1]


def test_a_difference_of_one_place_is_told() -> None:
    mine = pair_of(3)[0]
    part = mine["rows"]["budget"]["term"]["cost"]["parts"][0]
    part["table"] = [["1/3", "1/3"], ["1/2", "1/3"]]
    part["rows"], part["columns"] = [0, 1, 0, 0], [1, 0, 1, 1, 1]
    other = copy.deepcopy(mine)
    other["rows"]["budget"]["term"]["cost"]["parts"][0]["columns"] = [1] * M
    text, term = differences(mine, other)
    assert term.startswith('term "d": cost: 1 of 20 differ')
    assert text.startswith('row "budget": cost: 1 of 20 differ, the first at [1, 1]:')
    other["rows"]["budget"]["term"]["cost"] = None
    text, _ = differences(mine, other)
    assert "cost: " in text


Change = Callable[[Any], Any]
WRONG: dict[str, Change] = {
    "a mapping without parts": lambda c: c.pop("parts"),
    "a part that is a text": lambda c: c["parts"].append("table rows columns"),
    "no parts": lambda c: c.update(parts=[]),
    "parts of none": lambda c: c.update(parts=None),
    "parts in a mapping": lambda c: c.update(parts={"0": c["parts"][0]}),
    "another key": lambda c: c.update(more=1),
    "a key less": lambda c: c["parts"][0].pop("rows"),
    "a key more": lambda c: c["parts"][0].update(more=[]),
    "a table of none": lambda c: c["parts"][0].update(table=[]),
    "a table of nothing": lambda c: c["parts"][0].update(table=[[]]),
    "a ragged table": lambda c: c["parts"][0].update(table=[[1, 2], [1]]),
    "a table of texts": lambda c: c["parts"][0].update(table=["11", "11"]),
    "a table of layers": lambda c: c["parts"][0].update(table=[[[1, 2]], [[1, 2]]]),
    "no number": lambda c: c["parts"][0]["table"][0].append("0.5"),
    "a truth value": lambda c: c["parts"][0]["table"][1].__setitem__(0, True),
    "not finite": lambda c: c["parts"][0]["table"][1].__setitem__(0, float("nan")),
    **{
        f"{key} {name}": (lambda c, key=key, change=change: c["parts"][0].update(
            {key: change(c["parts"][0][key])}))
        for key in ("rows", "columns")
        for name, change in {
            "negative": lambda p: [-1, *p[1:]],
            "out of range": lambda p: [2, *p[1:]],
            "true": lambda p: [True, *p[1:]],
            "float": lambda p: [0.0, *p[1:]],
            "text": lambda p: ["0", *p[1:]],
            "none": lambda p: [None, *p[1:]],
            "short": lambda p: p[1:],
            "long": lambda p: [*p, 0],
            "empty": lambda p: [],
            "a number": lambda p: 0,
            "a mapping": lambda p: dict.fromkeys(map(str, range(len(p))), 0),
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("where", some_at_length(["objective", "row", "term"], 1))
@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_cost_by_parts_is_refused(name: str, where: str) -> None:
    mine, _, primal, dual = pair_of(1)
    cost = {
        "parts": [
            {"table": [[1, "1/3"], [0.5, 2]], "rows": [0, 1, 0, 1], "columns": [0, 1, 1, 0, 0]}
        ]
    }
    place_of(mine, where)["cost"] = cost
    wrong = document(mine, primal, dual)
    assert verify.disagreements(wrong) == []
    WRONG[name](place_of(wrong["program"], where)["cost"])
    wrong["sha256"] = verify.digest(wrong)
    assert any("not a certificate" in text for text in verify.disagreements(wrong))


def place_of(program: Program, where: str) -> Any:
    """Return the objective, a row's term, or a reported one."""
    rows, terms = program["rows"], program["terms"]
    return {"objective": program["objective"], "row": rows["budget"]["term"], "term": terms["d"]}[
        where
    ]


def test_more_numbers_than_have_a_common_denominator_are_refused() -> None:
    mine, _, primal, dual = pair_of(1)
    summary = document(mine, primal, dual)
    odd = [f"1/{3**4000}", f"1/{5**2800}", f"1/{7**2300}", f"1/{11**1900}"]
    cost = {"parts": [{"table": [odd], "rows": [0] * N, "columns": [0] * M}]}
    summary["program"]["terms"]["d"]["cost"] = cost
    (text, *_) = verify.disagreements(summary)
    assert "common denominator" in text


def test_a_floor_is_broken_where_nothing_stands() -> None:
    rng = np.random.default_rng(0)
    program = program_of(rng, None, None, None)
    program["rows"] = {}
    program["terms"] = {}
    primal = listed([[1, 0, 0, 0, 1]] * N, 2)
    for place, expected in (((0, 0), []), ((2, 4), []), ((2, 3), ["lower"]), ((3, 1), ["lower"])):
        lower = [[0] * M for _ in range(N)]
        lower[place[0]][place[1]] = "1/1000000000"
        proof = verify.proof_of({**program, "lower": lower})
        assert proof.upper(primal).broken == expected
        results = {**document(program, primal, None), "program": {**program, "lower": lower}}
        if expected:
            with pytest.raises(second_checker.Refused):
                second_checker.check(results)
        else:
            second_checker.check(results)


def test_a_ratio_is_broken_where_a_letter_has_nothing() -> None:
    program = program_of(np.random.default_rng(0), None, None, None)
    program |= {"rows": {}, "terms": {}}
    for kind, bound, expected in (("ratio", [1000, 0], ["a"]), ("maximum", [2, 0], [])):
        auxiliary = {"a": {"kind": kind, "bound": bound}}
        primal = listed([[1, 1, 0, 0, 0], *[[2, 0, 0, 0, 0]] * (N - 1)], 2)
        assert (
            verify.proof_of({**program, "auxiliaries": auxiliary}).upper(primal).broken == expected
        )


def test_too_much_for_a_short_file_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = pair_of(0)[0]
    few, many = listed([[30, 0, 0, 0, 0]] * N, 30), listed([[6] * M] * N, 30)
    alone, one, all_ = work.work_of(mine), work.work_of(mine, few), work.work_of(mine, many)
    assert alone < one < all_
    monkeypatch.setattr(work, "WORK", one)
    verify.proof_of(mine, few).upper(few)
    with pytest.raises(UnaffordableError, match=f"{all_:,} products .--work allows more., where"):
        verify.proof_of(mine, many)
    with work.allowing(1 + 1e-6 + (all_ - one) / one):
        verify.proof_of(mine, many).upper(many)
    with pytest.raises(UnaffordableError):
        verify.proof_of(mine, many)


def test_blocks_prove_what_one_block_does(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, _, primal, dual = pair_of(2)
    mine["auxiliaries"] = {
        "r": {"kind": "ratio", "bound": [31, "1/9"]},
        "m": {"kind": "maximum", "bound": [3, 0]},
    }
    mine["lower"] = [["1/100"] * M] * N
    dual = multipliers(np.random.default_rng(5), mine)
    one = verify.proof_of(mine)
    monkeypatch.setattr(channel_data, "BLOCK", 3)
    monkeypatch.setattr(channel_data, "KEPT", 0)
    other = verify.proof_of(mine)
    assert [len(letters) for letters in other.blocks] == [3, 1]
    assert abs(one.lower(dual).mid() - other.lower(dual).mid()) < 1e-30
    a, b = one.upper(primal), other.upper(primal)
    assert a.broken == b.broken
    assert abs(a.objective.mid() - b.objective.mid()) < 1e-30
    assert one.unit(1.0) == other.unit(1.0)


def test_a_solved_problem_keeps_its_parts() -> None:
    rng = np.random.default_rng(1)
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(18)).reshape(2, 9))
    cells = list(itertools.product(range(3), range(3)))
    d = cpv.per_attribute({"a": cpv.ordinal(3), "b": cpv.hamming(3)}, cells, weights={"a": 1 / 3})
    certificate = solved(cpv.PrivacyDistortion(source, cpv.Distortion(d.cost), budget=0.3))
    table = solved(cpv.PrivacyDistortion(source, cpv.Distortion(d.exact), budget=0.3))
    cost = certificate.document()["program"]["rows"]["budget"]["term"]["cost"]
    assert [len(part["table"]) for part in cost["parts"]] == [3, 3]
    assert certificate.verify()
    assert certificate.lower == pytest.approx(table.lower, abs=1e-9)
    assert certificate.status == table.status == "certified"
    assert not differences(certificate.document()["program"], table.document()["program"])


HELD = """
import re, sys
def held():
    return re.findall(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[0]
"""

LARGE = (
    HELD
    + """
import numpy as np
import cvxprivacy as cpv
from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.programs.dual import Dual

n, rng = 2000, np.random.default_rng(0)
cells = [(i // 20, i % 20) for i in range(n)]
d = cpv.per_attribute({"a": cpv.ordinal(100), "b": cpv.ordinal(20)}, cells, weights={"a": 1 / 3})
source = cpv.DiscreteSource.from_counts(rng.integers(1, 50, (7, n)), x=cells)
problem = cpv.PrivacyDistortion(source, d, budget=0.2)
prover = Prover(problem.program)
channel = np.zeros((n, n))
for k in range(8):
    channel[np.arange(n), (np.arange(n) + rng.integers(1, 90, n)) % n] += rng.random(n)
prover.offer_channel(channel / channel.sum(axis=1, keepdims=True))
prover.offer_dual(Dual({"W": rng.normal(size=(7, n))}, {"budget": 0.5}))
certificate = prover.certificate()
assert certificate.status == "loose", certificate
certificate.to_json(sys.argv[1])
print(held())
"""
)


WATCHED = (
    HELD
    + """
from cvxprivacy_verifier.__main__ import main
code = main(sys.argv[1:])
print(held())
sys.exit(code)
"""
)


@pytest.mark.long
def test_thousands_of_letters_fit_in_memory_and_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2 * 2**20  # KiB, all that it takes to state, prove and write it
    assert path.stat().st_size < 5_000_000
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(path)], capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "verified, loose" in done.stdout
    assert int(done.stdout.splitlines()[-1]) < 2**20
    assert after.ru_utime - before.ru_utime < 60
