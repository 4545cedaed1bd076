"""The program of a table in CVXPY: the paper's over channels, at whole counts."""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.solvers.conic.paper_problem import channel_problem

__all__ = ["paper_table"]


def paper_table(program: ChannelProgram, rules: Rules, n: Any, group: int) -> cp.Problem:
    """Return a channel program with N Q = m whole, and groups of none or ``group`` at least."""
    paper = channel_problem(program, rules, lambda make: make())
    [q] = [variable for variable in paper.variables() if variable.name() == "Q"]
    m = cp.Variable((program.n, program.m), name="m", integer=True)
    z = cp.Variable(program.m, name="z", boolean=True)
    sizes = cp.sum(m, axis=0)
    whole_counts = {
        "counts": int(n.sum()) * q == m,
        "smallest_group": sizes >= group * z,
        "empty": m <= cp.multiply(n[:, None], cp.reshape(z, (1, program.m), "C")),
    }
    for name, constraint in whole_counts.items():
        constraint.set_label(name)
    return cp.Problem(paper.objective, [*paper.constraints, *whole_counts.values()])
