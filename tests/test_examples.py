"""Every example in a docstring prints what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "cvxprivacy"
EXAMPLES = [p for p in sorted(PACKAGE.rglob("*.py")) if ">>> " in p.read_text(encoding="utf-8")]
SLOW = {
    "frontiers/frontier.py",
    "frontiers/surface.py",
    "frontiers/sweep.py",
    "sdc/risk/linkage.py",
}


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("tables", ["sample"], indirect=True)
@pytest.mark.parametrize("path", [
    pytest.param(p, marks=[pytest.mark.long] * (p.relative_to(PACKAGE).as_posix() in SLOW))
    for p in EXAMPLES
], ids=lambda p: str(p.relative_to(PACKAGE)))  # fmt: skip
def test_the_examples_of_a_module_hold(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(p for p in parts if p != "__init__"))
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed
