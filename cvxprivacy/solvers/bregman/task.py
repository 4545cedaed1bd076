"""The stages of solving a program too large for tables.

What needs no iterations, then the dual point of the steps on all entries, then a release of some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.settings import MirrorDescent
from cvxprivacy.solvers import presolve
from cvxprivacy.solvers.bregman.entries import storage
from cvxprivacy.solvers.bregman.method import Iterate, Relaxed, suits
from cvxprivacy.solvers.bregman.release import Release
from cvxprivacy.solvers.channel import prover_of
from cvxprivacy.solvers.task import Minimise, Task

__all__ = ["BregmanTask"]


class BregmanTask(Task):
    """A channel program of which nothing of the size of a table is made."""

    def __init__(self, program: ChannelProgram, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        refuse(program, self.named or self.method == "conic")
        self.program, self.settings = program, MirrorDescent.current()
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
        if not self.watch.stopped:
            self.relaxed = Relaxed(self.program)
            gaps, patience = [], self.settings.patience
            for iterate in self.relaxed.steps():
                self.newest = iterate
                gaps.append(iterate.gap)
                self.watch.step(iterate.number, iterate.gap, self.goal)
                slow = min(gaps[-patience:]) > 0.8 * min(gaps[:-patience], default=np.inf)
                # a release takes steps of its own, and what stops early is not worth its proof
                late = self.watch.left <= self.settings.release_time * (self.watch.limit or 0.0)
                if iterate.gap <= self.goal or slow or late:
                    break
        self.salvage()
        return True

    @property
    def goal(self) -> float:
        gap = self.settings.high_gap if self.accuracy == "high" else self.settings.gap
        return float(max(gap * self.program.scale, self.prover.tolerance))

    def salvage(self) -> None:
        """Offer what the last step points at."""
        iterate, relaxed = self.newest, self.relaxed
        self.newest = None
        prover, silent = self.prover, presolve.zero_multipliers(self.program)
        prover.offer_dual(silent)
        least = prover.lower
        if relaxed is not None and iterate is not None and not 0 <= iterate.gap <= self.goal:
            # prices of rows that contradict each other outgrow the objective
            ray = replace(relaxed.dual(iterate.sums), objective=0)
            if relaxed.contradicted(iterate.sums.prices) and prover.offer_dual(ray):
                self.report(f"all entries in blocks: {iterate.number} steps, infeasible")
                return
        if relaxed is not None and iterate is not None:
            enough = max(iterate.lower, least) + self.settings.release_gap * self.goal
            release = Release(relaxed, iterate, enough, lambda: bool(self.watch.stopped))
            if iterate.lower > least:
                prover.offer_dual(relaxed.dual(iterate.sums))
            prover.offer_channel(release.channel())
            width = f"gap {prover.upper - prover.lower:.1e}"
            self.report(f"all entries in blocks: {iterate.number} steps, {width}")
        if prover.primal is None:
            rows = self.program.constraints.values()
            prover.offer_channel(self.program.cheapest([row.expression for row in rows]))

    # no conic solver is asked: ``structured`` is all, and a solver by name is refused

    def propose(self, settings: Mapping[str, Any]) -> None:
        raise AssertionError

    def prove(self) -> None:
        raise AssertionError

    def phase_one(self, minimise: Minimise) -> None:
        raise AssertionError


def refuse(program: ChannelProgram, conic: bool) -> None:
    """Refuse what the method does not solve, or has no room for."""
    sizes = f"{program.n:,} letters to release as {program.m:,}"
    if conic or not suits(program):
        what = (
            "no conic solver is asked" if conic else "only information of few labels is minimised"
        )
        problem = f"{sizes}: {what}, under bounds of costs alone"
        raise InputError("problem", problem, "put letters together, or list fewer outputs")
    if (needed := storage(program)) > MirrorDescent.current().most_bytes:
        problem = f"{sizes}, which takes {needed / 2**30:.1f} GiB"
        raise InputError("problem", problem, "put letters together, or list fewer outputs")
