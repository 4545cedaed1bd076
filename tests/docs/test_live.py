"""The live notebook runs from top to bottom, and says what the package proves."""

from __future__ import annotations

import pytest

from tests.repository import ROOT, script


@pytest.mark.long
def test_the_notebook_runs():
    pytest.importorskip("marimo", reason="the notebook is marimo's")
    _, summary = script(ROOT / "docs" / "explorer" / "live.py").app.run()
    curve, solution, budget = summary["curve"], summary["solution"], summary["budget"].value
    assert curve.outer(budget) <= solution.value <= curve.inner(budget) + 1e-12
    assert solution.distortion.upper <= budget
    assert summary["outwards"](0.123456, 0.123457) == "between 0.12345 and 0.12346"
    figure = summary["figure"]
    figure.draw_without_rendering()
    (legend,) = figure.legends
    for ax in summary["axes"]:  # which covers nothing
        assert not legend.get_window_extent().overlaps(ax.get_tightbbox())
    assert [len(ax.get_xticks()) > 0 for ax in summary["axes"]] == [True] * 3
