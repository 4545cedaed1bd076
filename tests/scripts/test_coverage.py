"""What the coverage table names exists, and its counts are right."""

from __future__ import annotations

import re
from collections import Counter

import cvxprivacy as cpv
from tests.repository import ROOT

PAGE = (ROOT / "figures" / "COVERAGE.md").read_text(encoding="utf-8")
STATES = ("covered", "partly", "impossible")


def rows():
    """Return (paper, item, what, covered by, state) of every row."""
    values = []
    for paper in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        name, *lines = paper.splitlines()
        table = [line for line in lines if line.startswith("|")][2:]
        values += [(name, *re.split(r" (?<!\\)\| ", line.strip("| "))) for line in table]
    return values


def test_every_row_has_a_state_and_the_counts_are_right():
    counts = Counter()
    for paper, *cells in rows():
        assert len(cells) == 4, cells
        state = re.match(r"\w+", cells[3])[0]
        assert state in STATES, cells
        if state != "covered":
            assert len(cells[3]) > len(state) + 10, f"no reason: {cells}"
        counts[paper, state] += 1
    papers = list(dict.fromkeys(paper for paper, _ in counts))
    assert len(papers) == 4
    for paper in papers:
        numbers = [counts[paper, state] for state in STATES]
        text = " | ".join(map(str, [sum(numbers), *numbers]))
        assert f"| {paper} | {text} |" in PAGE
    numbers = [sum(counts[paper, state] for paper in papers) for state in STATES]
    assert f"| all | {' | '.join(map(str, [sum(numbers), *numbers]))} |" in PAGE


def test_what_is_named_exists():
    texts = {}
    for *_, cell in ((r[3] + " " + r[4],) for r in rows()):
        file = None
        for path, name in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", cell):
            file = path or file
            if not name and not path:
                continue
            assert file, cell
            text = texts.setdefault(file, (ROOT / file).read_text(encoding="utf-8"))
            assert not name or f"def {name}(" in text, f"{file}::{name}"
    for folder, name in re.findall(r"`(figures|problems)/(\w+\.py)`", PAGE):
        assert (ROOT / folder / name).is_file(), name
    for dotted in re.findall(r"`cpv\.([\w.]+)", PAGE):
        value = cpv
        for part in dotted.split("."):
            value = getattr(value, part)
