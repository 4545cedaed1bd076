"""Write the table of ``paper.md``: the same program by three routes, as ratios of one run.

``python paper/table.py`` solves the privacy–distortion function of a Gaussian pair (ρ = 0.95) on
grids of several sizes at half the variance; ``--write`` puts the table into the paper.  Run it with
one thread (``OPENBLAS_NUM_THREADS=1``): times are medians of three runs (one, of what takes more
than ten seconds), divided by that of the package's own method.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

import cvxprivacy as cpv

PAPER = Path(__file__).with_name("paper.md")
SIZES = 11, 31, 61, 91
RUNS = 3


def problem_of(points: int) -> cpv.PrivacyDistortion:
    """Return the program on a grid of so many points."""
    source = cpv.DiscreteSource.gaussian(0.95, points=points)
    grid = np.array(source.x)
    variance = source.p_x @ grid**2 - (source.p_x @ grid) ** 2
    return cpv.PrivacyDistortion(source, cpv.squared_error(grid), budget=variance / 2, units="nats")


def by_hand(problem: cpv.PrivacyDistortion) -> float:
    """Return what CVXPY and Clarabel make of the program as a textbook states it."""
    law, d = problem.source.pmf, problem.alphabet.d.matrix
    channel = cp.Variable(d.shape, nonneg=True)
    joint = law @ channel
    alone = law.sum(axis=1)[:, None] @ cp.sum(joint, axis=0, keepdims=True)
    constraints = [
        cp.sum(channel, axis=1) == 1,
        cp.sum(cp.multiply(law.sum(axis=0)[:, None] * d, channel)) <= problem.budget,
    ]
    stated = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(joint, alone))), constraints)
    return float(stated.solve(solver="CLARABEL"))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the median of some times, and the last value."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        value = call()
        times.append(time.perf_counter() - start)
        if times[0] > 10:
            break
    return statistics.median(times), value


def power(value: float) -> str:
    """Return a size in one digit."""
    return "0" if not value else f"{value:.0e}".replace("e-0", "e-")


def rows() -> list[str]:
    """Return the lines of the table."""
    lines = [
        "| letters | optimum, proved within | own method | CVXPY, certified here | CVXPY by hand "
        "| its value is off by at least |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    problem_of(5).solve(method="conic")
    by_hand(problem_of(5))
    for points in SIZES:
        own, solution = timed(lambda n=points: problem_of(n).solve(accuracy="high"))
        conic, _ = timed(lambda n=points: problem_of(n).solve(method="conic", certify=False))
        bare, value = timed(lambda n=points: by_hand(problem_of(n)))
        off = max(value - solution.upper, solution.lower - value, 0.0)
        lines.append(
            f"| {points} | {solution.value:.9f} ± {power(solution.gap)} | 1 ({own:.2g} s) "
            f"| {conic / own:.1f} | {bare / own:.1f} | {power(off)} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Print the table, and write it where that is asked for."""
    table = "\n".join(rows())
    if "--write" in sys.argv[1:]:
        text = PAPER.read_text(encoding="utf-8")
        marked = re.compile("(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.DOTALL)
        PAPER.write_text(marked.sub(lambda _: f"{table}\n", text), encoding="utf-8")


if __name__ == "__main__":
    main()
