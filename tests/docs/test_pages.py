"""README and pages: commands print what is shown, code does what is said, links lead somewhere.

A fence of ``text`` that begins with ``$ `` shows commands and what they print; ``…`` alone on a
line stands for lines that are left out, and between spaces for a number that machines do not share
(of one optimal release among several); ``$ echo $?`` shows the exit code, which is 0 where it is
not shown.  A fence of ``python`` that is not run when the page is built is run here.  All of a page
run in one folder, in order, where ``adult.csv`` and ``census.csv`` lie.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy import errors
from tests.docs.blocks import NUMBER, PAGES, README, blocks, code_cells, commands
from tests.lengths import rest_at_length
from tests.repository import ROOT

REFERENCE = ROOT / "docs" / "reference"
ELLIPSIS = "…\n"
TABLES = {"adult.csv", "census.csv"}


def shows(page):
    return any(
        b.language == "python" or (b.language == "text" and b.text.startswith("$ "))
        for b in blocks(page)
    )


def called(page):
    return str(page.relative_to(ROOT))


def run(folder, *words, code=0):
    """Run Python in a folder; return what it printed, errors last."""
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False,
        encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout + (done.stderr if code > 1 else "")


def assert_same(printed: str, shown: str) -> None:
    """Compare words to the letter, numbers to what the gap allows (the gap is the solver's)."""
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", shown)
    for mine, theirs in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(mine) == pytest.approx(float(theirs), abs=2e-6, rel=1e-4)


def assert_parts(printed: str, shown: str) -> None:
    """Find what is shown between ellipses, to the letter and in order."""
    place = 0
    for part in filter(None, re.split(r"^…\n| … +", shown, flags=re.MULTILINE)):
        assert part in printed[place:]
        place = printed.index(part, place) + len(part)


def kinds_of_lines(text: str) -> set[str]:
    """Return the lines without numbers, and without what depends on the size of a table."""
    text = re.sub(
        r"^(  [\w-]+) +(?:(?:at least )?\S+ bits \(.*|nothing beyond chance.*|cannot be told.*)",
        r"\1",
        text,
        flags=re.M,
    )
    # of few records nothing is guessed, no order tells, and others are unique or proposed
    sized = (
        r"^(?:  .+, guessed from|  unique, of|note: leave out of|note: copied columns whose) .*\n"
    )
    text = re.sub(sized, "", text, flags=re.M)
    return set(re.sub(r"each by itself, than.*|[-+]?\d[\d.,e+-]*", "#", text).splitlines())


class Session:
    """A folder in which the commands of a page are run, one after the other."""

    def __init__(self, folder: Path, *, real: bool) -> None:
        self.folder, self.real = folder, real
        self.derived = {*TABLES}  # files whose numbers are those of the tables

    def check(self, block):
        """Run the commands of a block and compare."""
        outcome = commands(block)
        for (command, shown), (after, code) in zip(outcome, [*outcome[1:], ([], "")], strict=True):
            if command != ["echo", "$?"]:
                self.compare(command, shown, int(code) if after == ["echo", "$?"] else 0)

    def compare(self, command, shown, code):
        assert command[0] in ("cvxprivacy", "python"), command
        derived = any(name in " ".join(command) for name in self.derived)
        if not self.real and derived and (code or "--criterion" in command):
            return  # groups of 100 records, of 200
        if not self.real and not self.has_inputs(command):
            return
        before = {path.name for path in self.folder.iterdir()}
        words = command[1:] if command[0] == "python" else ["-m", "cvxprivacy_sdc", *command[1:]]
        printed = run(self.folder, *words, code=code)
        if derived:
            self.derived |= {path.name for path in self.folder.iterdir()} - before
        if derived and not self.real:
            assert ELLIPSIS in shown or kinds_of_lines(shown) <= kinds_of_lines(printed)
        elif ELLIPSIS in shown:
            assert_parts(printed, shown)
        elif shown:
            assert_same(printed, shown)

    def has_inputs(self, command):
        """Tell whether the files that a command reads were made: some are of the whole table."""
        made = ("--out", "--certificate", "--channel", "--problem-out", "--report", "--picture")
        read = [w for before, w in pairwise(command) if before not in made]
        files = [w for w in read if re.fullmatch(r"[\w-]+\.(csv|json|toml)", w)]
        return all((self.folder / name).is_file() for name in files)


@pytest.mark.long
@pytest.mark.parametrize("page", rest_at_length([p for p in PAGES if shows(p)], 1), ids=called)
def test_commands_and_code_print_what_is_shown(page, tmp_path, tables):
    """To the number on the whole tables, line by line on what stands in for them."""
    for name in TABLES:
        shutil.copy(tables.folder / name, tmp_path)
    session = Session(tmp_path, real=tables.real)
    built = "file_format: mystnb" in page.read_text(encoding="utf-8")
    shown = blocks(page)
    for block, after in zip(shown, [*shown[1:], None], strict=True):
        if block.language == "text" and block.text.startswith("$ "):
            session.check(block)
        elif block.language == "python" and not built:
            (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
            printed = run(tmp_path, "example.py")
            if after is not None and after.language == "text" and not after.text.startswith("$ "):
                assert_same(printed, after.text)


def test_the_readme_shows_its_twelve_lines_and_a_proof_and_a_release():
    shown = [b for b in blocks(README) if b.language in ("python", "text")]
    assert [b.language for b in shown] == ["python", "text", "text", "text"]
    code = [line for line in shown[0].text.splitlines() if line]
    assert len(code) <= 16
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
    assert [commands(b)[0][0][1] for b in shown[2:]] == ["-m", "release"]


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_what_a_page_links_to_is_there(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", re.sub(r"```.*?```|`[^`]*`", "", text))
    made = ("gallery/", "generated/", "_static/front.svg")
    for link in links:
        assert (page.parent / link).exists() or any(part in link for part in made), link


def test_every_name_in_the_tables_exists():
    """Of errors, of programs and criteria, and all of the measures."""
    faults = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    matches = re.findall(r"`([A-Z]\w+Error)`", faults)
    assert len({*matches}) >= 5
    builtin = {"ImportError", "ValueError", "RuntimeError"}
    for name in {*matches} - builtin:
        assert hasattr(errors, name) or hasattr(sdc, name)
    programs = (REFERENCE / "programs.md").read_text(encoding="utf-8")
    matches = re.findall(r"^\| `([A-Z]\w+)\(", programs, re.MULTILINE)
    assert len({*matches}) >= 20
    for name in matches:
        assert hasattr(cpv, name) or hasattr(sdc, name)
    measures = re.findall(r"`leakage\.(\w+)\(", programs)
    assert {*measures} == {*cpv.leakage.MEASURES}


def test_a_criterion_and_a_formulation_of_ones_own_work():
    code = next(cell for cell in code_cells(REFERENCE / "programs.md") if "class " in cell)
    names: dict[str, object] = {"cpv": cpv}
    exec(code, names)
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    rule = names["GuessingProbability"](0.7)
    problem = names["RatePlusLeakage"](source, cpv.hamming(2), budget=0.4, criteria=[rule])
    solution = problem.solve()
    assert solution.status == "certified"
    assert set(solution.prices) == {"budget", "guessing_probability"}
