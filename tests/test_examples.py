"""Every example in a docstring prints what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from tests.repository import HAS_SDC, ROOT

PACKAGES = [ROOT / "cvxprivacy", *[ROOT / "sdc" / "cvxprivacy_sdc"] * HAS_SDC]
FILES = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
EXAMPLES = [path for path in FILES if ">>> " in path.read_text(encoding="utf-8")]
SLOW = {
    "cvxprivacy.frontiers.frontier",
    "cvxprivacy.frontiers.surface",
    "cvxprivacy.frontiers.sweep",
    "cvxprivacy_sdc.risk.linkage",
}


def dotted(path: Path) -> str:
    """Return the name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part not in ("sdc", "__init__"))


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("tables", ["sample"], indirect=True)
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in map(dotted, EXAMPLES)
])  # fmt: skip
def test_the_examples_of_a_module_hold(name):
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed
