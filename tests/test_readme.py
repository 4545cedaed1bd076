"""The README's code does what the README says it does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cvxprivacy as cpv
from cvxprivacy import errors

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+\.\d+(?:e[-+]\d+)?|[-+]?\d+(?:e[-+]\d+)")


def test_the_example_prints_what_is_shown(tmp_path):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    shown, verified = re.findall(r"```text\n(.*?)```", README, re.DOTALL)[:2]
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    printed = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert_same(printed, shown)
    command = verified.splitlines()[0].removeprefix("$ python ").split()
    again = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert re.sub(NUMBER, "#", again) == re.sub(NUMBER, "#", verified.split("\n", 1)[1])


def assert_same(printed: str, shown: str) -> None:
    """Compare words to the letter, numbers to what the gap allows (the gap is the solver's)."""
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", shown)
    for mine, theirs in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(mine) == pytest.approx(float(theirs), abs=2e-6, rel=1e-4)


def test_the_commands_on_adult_print_what_is_shown(tmp_path):
    folder = os.environ.get("CVXPRIVACY_DATA")
    if not folder or not (Path(folder) / "adult.csv").is_file():
        pytest.skip("CVXPRIVACY_DATA does not name a folder with adult.csv (UCI Adult)")
    (tmp_path / "adult.csv").write_bytes((Path(folder) / "adult.csv").read_bytes())
    for block in re.findall(r"```text\n\$ (cvxprivacy .*?)```", README, re.DOTALL):
        lines = block.split("\n")
        last = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
        command = " ".join(line.rstrip("\\") for line in lines[: last + 1]).split()
        printed = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True,
            check=True, encoding="utf-8",
        ).stdout  # fmt: skip
        assert_same(printed, "\n".join(lines[last + 1 :]))


def test_every_name_in_the_tables_exists():
    for name in re.findall(r"`([A-Z]\w+Error)`", README):
        assert hasattr(errors, name) or name in ("ValueError", "RuntimeError")
    for name in re.findall(r"^\| `([A-Z]\w+)\(", README, re.MULTILINE):
        assert hasattr(cpv, name)


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
