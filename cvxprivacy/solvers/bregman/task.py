"""The stages of solving a program too large for tables.

What needs no iterations, then the dual point of the steps on all entries, then a release of some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.solvers import presolve
from cvxprivacy.solvers.bregman.entries import storage
from cvxprivacy.solvers.bregman.method import Iterate, Relaxed, suits
from cvxprivacy.solvers.channel import prover_of
from cvxprivacy.solvers.task import Minimise, Task

__all__ = ["BregmanTask"]

# Gap in the objective's scale at which the steps end.  It takes three times the steps for a tenth
# of it: of 14,539 groups of the Adult table 3e-4 took 250 steps of half a second
_GAP = {"default": 3e-4, "high": 3e-5}
_LARGEST = 4_000_000_000  # bytes of shared rows
_MORE = 40  # steps after which a release is made, at most so many times as many


class BregmanTask(Task):
    """A channel program of which nothing of the size of a table is made."""

    def __init__(self, program: ChannelProgram, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        refuse(program, self.named or self.method == "conic")
        self.program = program
        self.prover = prover_of(program, self.accuracy)
        self.has_interior = True
        self.newest: Iterate | None = None
        self.relaxed: Relaxed | None = None

    def presolve(self, minimise: Minimise) -> bool:
        """Try contradictions, and what reveals nothing."""
        for dual in presolve.contradictions(self.program):
            if self.prover.offer_dual(dual):
                self.report("closed form: infeasible")
                return True
        if (pair := presolve.constant(self.program)) is not None:
            self.prover.offer_channel(pair[0])
            self.prover.offer_dual(pair[1])
            if self.certified:
                self.report("closed form: no constraint binds")
                return True
        return False

    def structured(self) -> bool:
        """Take steps until what they show is good enough, and release what they point at."""
        goal = max(_GAP[self.accuracy] * self.program.scale, self.prover.tolerance)
        if not self.watch.stopped:
            self.relaxed = Relaxed(self.program)
            for iterate in self.relaxed.steps():
                self.newest = iterate
                self.watch.step(iterate.number, iterate.gap, goal)
                if iterate.gap <= goal or self.watch.stopped:
                    break
        self.salvage()
        return True

    def salvage(self) -> None:
        """Offer what the last step points at."""
        iterate, relaxed = self.newest, self.relaxed
        self.newest = None
        prover, silent = self.prover, presolve.zero_multipliers(self.program)
        if relaxed is not None and iterate is not None:
            prover.offer_dual(relaxed.dual(iterate.sums))
            prover.offer_channel(relaxed.release(iterate, lambda: bool(self.watch.stopped)))
            width = f"gap {prover.upper - prover.lower:.1e}"
            self.report(f"all entries in blocks: {iterate.number} steps, {width}")
        if not prover.lower > silent.lower_bound(self.program):
            prover.offer_dual(silent)
        if prover.primal is None:  # the nearest to everybody
            prover.offer_channel(self.program.deterministic(np.arange(self.program.n)))

    def propose(self, settings: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def prove(self) -> None:
        raise NotImplementedError

    def phase_one(self, minimise: Minimise) -> None:
        raise NotImplementedError


def refuse(program: ChannelProgram, conic: bool) -> None:
    """Refuse what the method does not solve, or has no room for."""
    sizes = f"{program.n:,} letters to release as {program.m:,}"
    if conic or not suits(program):
        what = "no conic solver is asked" if conic else "only information of few labels is minimised"
        problem = f"{sizes}: {what}, under bounds of costs alone"
        raise InputError("problem", problem, "put letters together, or list fewer outputs")
    if (needed := storage(program)) > _LARGEST:
        problem = f"{sizes}, which takes {needed / 2**30:.1f} GiB"
        raise InputError("problem", problem, "put letters together, or list fewer outputs")
