"""The errata page prints what it shows."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from tests.docs.blocks import NUMBER
from tests.public_tables import real_folder
from tests.repository import ROOT

SDC = "cvxprivacy_sdc"  # what imports it is run by ``tests/sdc/scripts/test_errata.py``
PAGE = (ROOT / "figures" / "ERRATA.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def entries():
    """Return each computation of the page, by its paper and its slip."""
    values = []
    for paper in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        name = paper.split()[0].strip(",-").lower()
        for slip in re.split(r"^### ", paper, flags=re.MULTILINE)[1:]:
            for code, shown in BLOCK.findall(slip):
                marks = pytest.mark.real if re.search("load_(adult|census)", code) else ()
                slip_id = f"{name}: {slip.splitlines()[0]}"
                values.append(pytest.param(code, shown, id=slip_id, marks=marks))
    return values


def test_every_block_has_its_output():
    assert PAGE.count("```python") == PAGE.count("```text") == len(entries()) > 25


@pytest.mark.long
@pytest.mark.parametrize(("code", "shown"), [e for e in entries() if SDC not in e.values[0]])
def test_a_slip_is_shown(code, shown, request):
    check(code, shown, request)


def check(code, shown, request):
    """Run a computation of the page."""
    if request.node.get_closest_marker("real"):
        real_folder("adult", "census")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert NUMBER.sub("#", printed.getvalue()).split() == NUMBER.sub("#", shown).split()
    for here, there in zip(NUMBER.findall(printed.getvalue()), NUMBER.findall(shown), strict=True):
        assert float(here) == pytest.approx(float(there), rel=5e-3, abs=1e-4)
