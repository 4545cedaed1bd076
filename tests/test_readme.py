"""The README's code does what the README says it does."""

from __future__ import annotations

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
    shown, verified = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    printed = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    # words to the letter; numbers to what the gap allows (the gap itself is the solver's)
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", shown)
    for mine, theirs in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(mine) == pytest.approx(float(theirs), abs=2e-6, rel=1e-4)
    command = verified.splitlines()[0].removeprefix("$ python ").split()
    again = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert re.sub(NUMBER, "#", again) == re.sub(NUMBER, "#", verified.split("\n", 1)[1])


def test_every_name_in_the_tables_exists():
    for name in re.findall(r"`([A-Z]\w+Error)`", README):
        assert hasattr(errors, name) or name in ("ValueError", "RuntimeError")
    for name in re.findall(r"^\| `([A-Z]\w+)\(", README, re.MULTILINE):
        assert hasattr(cpv, name)
