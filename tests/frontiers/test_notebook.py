"""What is shown in a notebook leaves the notebook as it was."""

from __future__ import annotations

import pytest

SHOWN = """
import cvxprivacy as cpv
source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
"""
FIRST = {
    "frontier": "cpv.frontier(problem, tol=0.1)",
    "solution": "problem.solve()",
    "channel": "problem.solve().channel",
}


@pytest.mark.long
@pytest.mark.parametrize("first", FIRST)
def test_a_picture_that_follows_is_shown_by_itself(first, monkeypatch):
    check(SHOWN + FIRST[first], monkeypatch)


def check(first, monkeypatch):
    """Run a cell and two that draw; each picture is shown, once."""
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel's own, as a user has it
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install -e .[dev]")
    client = pytest.importorskip("nbclient", reason="needs nbclient: pip install -e .[dev]")
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    cells = [nbformat.v4.new_code_cell(code) for code in (first, plot, plot)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    kinds = [[set(output.get("data", {})) for output in cell.outputs] for cell in notebook.cells]
    assert "text/html" in kinds[0][-1]
    assert all(any("image/png" in kind for kind in shown) for shown in kinds[1:])
