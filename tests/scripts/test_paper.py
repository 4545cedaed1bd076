"""The paper's table is what its script prints, and its example what the package says."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.repository import ROOT, script

PAPER = ROOT / "paper" / "paper.md"


def test_the_table_is_made_by_its_script(monkeypatch, tmp_path):
    module = script(ROOT / "paper" / "table.py")
    copy = tmp_path / "paper.md"
    copy.write_text(PAPER.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(module, "SIZES", (7,))
    monkeypatch.setattr(module, "PAPER", copy)
    monkeypatch.setattr("sys.argv", ["table.py", "--write"])
    module.main()
    heads = [
        re.search(r"<!-- table -->\n(.*)\n(.*)\n\| \d+ ", path.read_text(encoding="utf-8"))
        for path in (PAPER, copy)
    ]
    assert all(heads)
    assert heads[0].groups() == heads[1].groups()
    assert module.by_hand(module.problem_of(7)) == pytest.approx(
        module.problem_of(7).solve().value, abs=1e-6
    )


def test_the_example_prints_what_it_says():
    (code,) = re.findall(r"```python\n(.*?)```", PAPER.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(code.rsplit("\n", 2)[0], names)  # without the file
    solution = names["solution"]
    assert round(solution.lower, 8) == round(solution.upper, 8) == 0.11366406
    assert float(solution.prices["budget"]) == pytest.approx(-0.023953, abs=5e-7)
    assert "0.11366406" in code
    assert "−0.023953" in code
    assert np.isin(solution.channel.apply([25, 70, 55]), [25, 40, 55, 70]).all()
