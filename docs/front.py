"""The picture of the front page: the program of its own code, solved when the pages are built."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import cvxprivacy as cpv
from cvxprivacy import style

__all__ = ["write"]


def write(page: Path, target: Path) -> None:
    """Draw the curve of the page's program, and the release that its code asks for."""
    code = re.search(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert code is not None, f"{page} shows no code"
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code[1], names)
    problem, solution = names["problem"], names["solution"]
    with rc_context({**style.HOUSE, "font.size": 9, "axes.labelsize": 9}):
        figure = Figure(figsize=(7.2, 2.5), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
        curve = cpv.frontier(problem, tol=1e-3)
        curve.plot(left, color=style.BLUE)
        left.plot(problem.budget, solution.value, **{**style.OPTIMUM, "color": style.VERMILION})
        words = f"{solution.value:.3f} bits at {problem.budget:g} years of error"
        left.annotate(words, (problem.budget, solution.value), (6, 4), textcoords="offset points")
        left.set(
            xlabel="allowed error of the age, $D$ [years]",
            ylabel="told about illness, $R(D)$ [bits]",
        )
        channel = solution.channel
        right.imshow(channel.matrix, cmap="Blues", vmin=0, vmax=1.2)
        for (x, y), p in np.ndenumerate(channel.matrix):
            if p > 5e-3:
                color = "white" if p > 0.6 else "black"
                right.text(y, x, f"{p:.2f}", ha="center", va="center", color=color)
        places = range(len(channel.inputs))
        right.set_xticks(places, channel.outputs)
        right.set_yticks(places, channel.inputs)
        right.set(xlabel="released age", ylabel="age")
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, format="svg")
