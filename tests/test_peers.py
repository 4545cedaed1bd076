"""The cases and the judge of benchmarks/peers, which need no peer, and the page with its table."""

from __future__ import annotations

import ast
import math
import re
from fractions import Fraction

import numpy as np
import pytest

import cvxprivacy as cpv
from benchmarks.peers import cases, judge
from benchmarks.peers.tally import Tally
from tests.repository import ROOT

PEERS = ROOT / "benchmarks" / "peers"
PAGE = ROOT / "docs" / "reference" / "peers.md"
SCRIPTS = sorted(PEERS.glob("with_*.py"))


def test_cases_are_laws_and_always_the_same():
    asked = list(cases.channels(1, 40))
    assert asked == list(cases.channels(1, 40)) != list(cases.channels(2, 40))
    for prior, rows in asked:
        assert sum(prior) == 1
        assert all(prior)
        assert all(sum(row) == 1 for row in rows)
        assert all(any(column) for column in zip(*rows, strict=True))
    assert any(not all(row) for _, rows in asked for row in rows)  # empty cells
    garbled = [
        cpv.compare_channels(np.array(a), np.array(b)).verdict for a, b in cases.pairs(4, 12)
    ]
    assert garbled[0] is True
    assert garbled[1] is False
    assert all(garbled[3::2])
    for table in cases.tables(3, 12):
        assert len(table.keys) == len(table.w) == sum(sum(of.values()) for of in table.classes)


def test_the_judge_knows_the_textbook():
    noise = Fraction(11, 100)
    symmetric, half = cases.symmetric(noise), [Fraction(1, 2)] * 2
    expected = 1 - judge.entropy([noise, 1 - noise])
    assert judge.information(half, symmetric) == pytest.approx(expected, abs=1e-14)
    assert judge.capacity(symmetric, [[0.5, 0.5]]) == pytest.approx((expected, expected), abs=1e-14)
    low, high = judge.capacity(cases.erasure(noise), [[0.5, 0.5], [0.4, 0.6]])
    assert low == pytest.approx(0.89, abs=1e-14)
    assert high == pytest.approx(0.89, abs=1e-14)
    assert judge.sibson(half, symmetric, Fraction(2)) > expected
    assert judge.renyi([Fraction(1), Fraction(0)], half, Fraction(2)) == pytest.approx(1)
    assert judge.renyi(half, [Fraction(1), Fraction(0)], Fraction(1)) == math.inf


def test_the_judge_knows_the_definitions_of_tables():
    even, total = [{0: 2, 1: 2}, {0: 1, 1: 1}], {0: 3, 1: 3}
    assert judge.entropy_diversity(even) == 2
    assert judge.closeness(even, total, ordered=False) == 0
    skewed, all_of_it = [{0: 3, 1: 1}, {2: 4}], {0: 3, 1: 1, 2: 4}
    assert judge.recursive_c(skewed, 1) == 2
    assert judge.basic_beta(skewed, all_of_it) == 1
    assert judge.enhanced_beta(skewed, all_of_it) == math.inf  # a gain of 1 for p = 1/2, 1 > ln 2
    assert judge.delta(skewed, all_of_it, missed=True) == math.inf
    assert judge.delta(skewed, all_of_it, missed=False) == pytest.approx(math.log(2))
    assert judge.closeness(skewed, all_of_it, ordered=False) == Fraction(1, 2)


def test_a_tally_says_who_is_right():
    line = Tally("quantity", "closed form")
    for ours, theirs, truth in (
        (1.0, 1.0, 1.0), (1.0, 1.1, 1.0), (math.inf, 2.0, math.inf), (math.nan, 1.0, 0.0),
        (0.5, 0.5 + 1e-6, (0.5, 0.5 + 1e-12)),
    ):  # fmt: skip
        line.add(ours, theirs, truth)
    assert (line.differences, line.ours, line.theirs, line.wrong, line.undecided) == (4, 4, 1, 0, 1)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_page_has_the_lines_that_a_script_prints(path):
    """Its quantities are names in the script, and all cases are right here, or unanswered."""
    text = path.read_text(encoding="utf-8")
    words = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    section = rf"^{path.stem.removeprefix('with_')}\n((?:.* \d+  .*\n)+)"
    shown = re.search(section, PAGE.read_text(encoding="utf-8"), re.M)
    assert shown is not None
    line = r"^(.*\S) +(\d+) +[\d.]+ +[\d.]+ +\d+ +(\d+) +\d+  (.*)$"
    lines = re.findall(line, shown[1], re.M)
    assert len(lines) == len(shown[1].splitlines())
    for quantity, count, right, judged in lines:
        silent = re.search(r"no answer here: (\d+)", judged)
        assert quantity in words
        assert int(count) == int(right) + (int(silent[1]) if silent else 0), quantity


def test_the_page_names_the_versions_that_are_asked():
    pins = dict(re.findall(r"^(\w+)==([\d.]+\d)", (PEERS / "requirements.txt").read_text(), re.M))
    page = PAGE.read_text(encoding="utf-8")
    assert {"dit", "qif", "pycanon", "POT"} <= set(pins)
    for name in ("dit", "qif", "pycanon", "POT"):
        assert f"{name} {pins[name]}" in page
