"""How a program is solved: presolve, the central path, attempts and proving, in one loop.

A solver only proposes.  Every proposal goes to the prover; attempts go on, from the plainest
settings to the most patient ones, until the proved gap is small enough.  The stages are those of
:mod:`~cvxprivacy.solvers.channel` and of :mod:`~cvxprivacy.solvers.covariance.stages`; what they
share (options, settings, the log) is in :mod:`~cvxprivacy.solvers.task`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.covariance import CovarianceProgram
from cvxprivacy.solvers.bregman.task import BregmanTask
from cvxprivacy.solvers.channel import ChannelTask
from cvxprivacy.solvers.covariance.stages import CovarianceTask
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.task import Outcome, Task, attempts, checked
from cvxprivacy.solvers.threads import one_thread

__all__ = ["Outcome", "checked", "solve", "solve_gaussian"]


@one_thread()
def solve(program: ChannelProgram, *, family: Family | None = None, **options: Any) -> Outcome:
    """Minimise a channel program and prove the result.

    Parameters
    ----------
    program : ChannelProgram
    family : Family, optional
        What it shares with programs that differ in bounds alone, if that is kept.
    method : {"auto", "conic", "structured"}
        ``"structured"`` follows the central path with the package's own interior-point method;
        ``"conic"`` asks the CVXPY solver; ``"auto"`` asks it where the central path did not do,
        and before the central path where ``solver`` or ``solver_options`` are given.
    solver : str
        A CVXPY solver with exponential cones.
    accuracy : {"default", "high"}
        Aim for a gap of 1e-6 or 1e-9 in the unit of the objective.
    solver_options : mapping, optional
        Passed to the solver on top of each attempt's own settings.
    watch : Watch, optional
        When to stop, and who is told of steps.  Without one, an interrupt is raised.
    """
    if not program.dense:  # nothing else is made for sparse channels
        return _minimise(BregmanTask(program, options))
    return _minimise(ChannelTask(program, options, family))


@one_thread()
def solve_gaussian(program: CovarianceProgram, *, exact: Any = None, **options: Any) -> Outcome:
    """Minimise a covariance program and prove the result; other options as of :func:`solve`.

    Parameters
    ----------
    exact : (primal, dual) or callable, optional
        What a closed form proposes: an ``ErrorCovariance`` with its ``CovarianceDual``; or from
        the whitened program M and the multipliers in floats.
    """
    return _minimise(CovarianceTask(program, options, exact))


def _minimise(task: Task) -> Outcome:
    """Solve: the loop.  A stage that meets a smaller program calls it again."""
    try:
        with np.errstate(all="ignore"):  # what is no number proves nothing, and is told to nobody
            _stages(task)
    except KeyboardInterrupt:
        if task.watch.interrupted or not task.watched:
            raise
        task.watch.interrupted = True  # once more, and nothing is returned
        task.salvage()
    if task.watch.stopped and not task.settled:
        task.report(f"stopped: {task.watch.stopped}")
    with np.errstate(all="ignore"):
        return task.outcome()


def _stages(task: Task) -> None:
    if task.presolve(_minimise) or (not task.named and task.structured()):
        return
    # what is proved so far may do; if not, a conic solver proposes, at ever more patience
    for settings in attempts(task.solver, task.accuracy):
        if task.watch.stopped:
            return
        task.propose(settings)
        if _judged(task):
            return
        # what it proposed is next to feasible, and repair needs a point strictly inside to mix with
        if not task.has_interior:
            task.phase_one(_minimise)
            if task.settled or _judged(task):
                return
    # a solver that was asked for by name goes first, and the central path after it
    if task.named and task.method == "auto":
        task.structured()


def _judged(task: Task) -> bool:
    """Prove what was proposed, and tell whether that settles it, or time is up."""
    task.prove()
    return task.settled or bool(task.watch.stopped)
