"""The README's code does what the README says it does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

import cvxprivacy as cpv
from cvxprivacy import errors
from tests.public_tables import SAMPLE, adult_csv
from tests.test_architecture import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+\.\d+(?:e[-+]\d+)?|[-+]?\d+(?:e[-+]\d+)")


def output(folder, *command):
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=True,
        encoding="utf-8",
    ).stdout  # fmt: skip


def test_the_example_prints_what_is_shown(tmp_path):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    shown, verified = re.findall(r"```text\n(.*?)```", README, re.DOTALL)[:2]
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    assert_same(output(tmp_path, "example.py"), shown)
    command, expected = verified.split("\n", 1)
    printed = output(tmp_path, *command.removeprefix("$ python ").split())
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", expected)


def assert_same(printed: str, shown: str) -> None:
    """Compare words to the letter, numbers to what the gap allows (the gap is the solver's)."""
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", shown)
    for mine, theirs in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(mine) == pytest.approx(float(theirs), abs=2e-6, rel=1e-4)


def kinds_of_lines(text: str) -> set[str]:
    """Return the lines without numbers, and without what depends on the size of a table."""
    text = re.sub(
        r"^(  [\w-]+) +(?:at least .*|\S+ bits \(bias.*|too many values.*)", r"\1", text, flags=re.M
    )
    return set(re.sub(r"each by itself, than.*|[-+]?\d[\d.,e+-]*", "#", text).splitlines())


def test_the_commands_on_adult_print_what_is_shown(tmp_path):
    """To the number on the whole table, line by line on the sample."""
    shutil.copy(adult_csv(), tmp_path)
    for block in re.findall(r"```text\n\$ (cvxprivacy .*?)```", README, re.DOTALL):
        command, shown = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", block, re.DOTALL).groups()
        real = adult_csv() != SAMPLE
        if shown.startswith("…") and not real:  # groups of 100 records, of 200
            continue
        printed = output(tmp_path, "-m", *command.replace("\\\n", " ").split())
        if shown.startswith("…"):
            assert shown.removeprefix("…\n") in printed
        elif not real:
            assert kinds_of_lines(shown) <= kinds_of_lines(printed)
        else:
            assert_same(printed, shown)


def test_every_name_in_the_tables_exists():
    for name in re.findall(r"`([A-Z]\w+Error)`", README):
        assert hasattr(errors, name) or name in ("ValueError", "RuntimeError")
    for name in re.findall(r"^\| `([A-Z]\w+)\(", README, re.MULTILINE):
        assert hasattr(cpv, name)
    measures = re.findall(r"`leakage\.(\w+)\(", README)
    assert {*measures} == {*cpv.leakage.MEASURES}


def test_a_criterion_and_a_formulation_of_ones_own_work():
    code = next(b for b in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "class " in b)
    names: dict[str, object] = {"cpv": cpv}
    exec(code, names)
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    rule = names["GuessingProbability"](0.7)
    problem = names["RatePlusLeakage"](source, cpv.hamming(2), budget=0.4, criteria=[rule])
    solution = problem.solve()
    assert solution.status == "certified"
    assert set(solution.prices) == {"budget", "guessing_probability"}
