"""The theory's equations have numbers, and the code names none that is not there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

from tests.repository import ROOT
from tests.test_architecture import PACKAGE, VERIFIER

PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))
DERIVED = [page for page in PAGES if page.stem != "index"]
MODULES = sorted(p for room in (PACKAGE, VERIFIER) for p in room.rglob("*.py"))

TAG = re.compile(r"\\tag\{([^}]*)\}")
NAME = r"[APCNEGU][1-9][0-9]*"
REFERENCE = re.compile(rf"\(({NAME}(?:(?:, |–){NAME})*)\)")
LETTERS = {
    "channel_program": "P",
    "certificate": "C",
    "interior_point": "N",
    "entries": "E",
    "large_tables": "B",
    "covariance": "G",
    "useful": "U",
    "any_prior": "A",
    "whole_counts": "T",
}


def tags(page: Path) -> list[str]:
    return TAG.findall(page.read_text(encoding="utf-8"))


def referred(text: str) -> set[str]:
    return {name for outcome in REFERENCE.findall(text) for name in re.findall(NAME, outcome)}


def prose(module: Path) -> str:
    """Return the comments and docstrings of a module."""
    source = module.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, documented))
    return "\n".join([*comments, *(ast.get_docstring(node) or "" for node in nodes)])


EQUATIONS = {tag for page in DERIVED for tag in tags(page)}


@cache
def named() -> dict[Path, set[str]]:
    """Return the equations that each module names."""
    return {module: referred(prose(module)) for module in MODULES}


@pytest.mark.parametrize("page", DERIVED, ids=lambda page: page.stem)
def test_equations_are_numbered_in_order(page):
    outcome = tags(page)
    assert outcome == [f"{LETTERS[page.stem]}{i}" for i in range(1, len(outcome) + 1)]


@pytest.mark.parametrize("page", DERIVED, ids=lambda page: page.stem)
def test_an_equation_has_a_block_of_its_own(page):
    """So that a link, or a reader, finds it by its number."""
    parts = re.split(r"^\$\$$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(parts) % 2  # every block is closed
    assert not any(TAG.search(text) for text in parts[::2])
    assert all(len(TAG.findall(block)) <= 1 for block in parts[1::2])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_refer_to_equations_that_are_there(page):
    expected = {letter for stem, letter in LETTERS.items() if any(p.stem == stem for p in DERIVED)}
    names = {name for name in referred(page.read_text(encoding="utf-8")) if name[0] in expected}
    assert names <= EQUATIONS


@pytest.mark.long
def test_the_code_refers_to_equations_that_are_there():
    missing = {
        str(module.relative_to(ROOT)): sorted(names - EQUATIONS)
        for module, names in named().items()
        if names - EQUATIONS
    }
    assert not missing


@pytest.mark.long
def test_most_equations_are_lines_of_the_code():
    used = set().union(*named().values())
    for letter in "PCNEGU":
        stated = {name for name in EQUATIONS if name[0] == letter}
        assert len(used & stated) >= 0.9 * len(stated), sorted(stated - used)


def test_what_counts_as_a_reference():
    text = "weak duality (C4), and (P23)–(P25); also (N7, N8); not N(0), (P0), (C 4) or F(G2)x"
    assert referred(text) == {"C4", "P23", "P25", "N7", "N8", "G2"}
