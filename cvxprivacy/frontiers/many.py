"""Many problems solved as they are: on the same workers, with one checkpoint, into one frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.extras import pd
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frontiers.explore import Progress, explore
from cvxprivacy.frontiers.stored import digest
from cvxprivacy.validation import one_of

__all__ = ["labelled", "solve_all"]


def labelled(problems: Any) -> Mapping[Hashable, Problem]:
    """Return problems by their labels, those of a list by their places."""
    if isinstance(problems, Sequence) and not isinstance(problems, str):
        problems = dict(enumerate(problems))
    if not isinstance(problems, Mapping) or not problems:
        remedy = "pass a list of problems, or a mapping such as {'A': ..., 'B': ...}"
        raise InputError("problems", f"{problems!r}", remedy)
    for label, problem in problems.items():
        if not isinstance(problem, Problem):
            wrong = f"a {type(problem).__name__}"
            raise InputError("problems", wrong, "pass problems that are not solved", where=label)
    return problems


def solve_all(
    problems: Mapping[Hashable, Problem] | Sequence[Problem],
    *,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = False,
    accuracy: str = "default",
) -> pd.DataFrame:
    """Solve many problems, whatever they are, and return their optima in a frame.

    Parameters
    ----------
    problems : mapping of label to Problem, or list of Problem
        They may differ in everything; those of a list are called by their places.
    n_jobs : int, optional
        Workers, as of :func:`frontier`.
    checkpoint : path, optional
        Each optimum is appended to this file as it comes, and is not solved again.
    progress : bool or callable
        Whom to tell of each solve, as of :func:`frontier`.
    accuracy : {"default", "high"}
        As of ``solve``.

    Returns
    -------
    pandas.DataFrame
        A row for each label: ``"status"``, ``"value"``, ``"lower"``, ``"upper"``, the terms of the
        release, and for each number that was typed ``"price of …"``.  After an interrupt (Ctrl-C)
        those that were solved.

    Raises
    ------
    InputError
        For anything but problems, or a checkpoint of others.

    Examples
    --------
    A fair bit: the most that may be told of it under ε-local privacy, and the least that must be
    changed for none of it to be told.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> frame = cpv.solve_all({
    ...     "useful": cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(1.0)]),
    ...     "private": cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.PerfectPrivacy()]),
    ... })
    >>> frame[["status", "value"]].round(4)
                status   value
    useful   certified  0.1601
    private  certified  0.5000
    """
    one_of(accuracy, "accuracy", "default", "high")
    searches = {label: _One(problem, accuracy) for label, problem in labelled(problems).items()}
    explore(
        [*searches.values()], n_jobs=n_jobs, checkpoint=checkpoint, progress=progress,
        labels=[*searches],
    )  # fmt: skip
    rows = {label: search.row for label, search in searches.items() if search.row is not None}
    return pd.DataFrame.from_dict(rows, orient="index")


class _One:
    """A problem that is to be solved once."""

    def __init__(self, problem: Problem, accuracy: str) -> None:
        self.digest = digest(["solve_all", accuracy, problem.program.to_dict()])
        self.work: Callable[[Any], dict[str, Any]] = partial(_solved, problem, accuracy)
        self.row: dict[str, Any] | None = None

    def next_tasks(self) -> list[Any]:
        return [None] if self.row is None else []

    def take(self, task: Any, result: dict[str, Any]) -> None:
        """Take the row of the frame."""
        numbers = {name: float(value) for name, value in result["numbers"].items()}
        self.row = {"status": result["status"], **numbers}

    @property
    def share(self) -> float:
        """Whether it is solved."""
        return float(self.row is not None)

    def progress(self) -> str:
        """Return its status, once it is solved."""
        return "being solved" if self.row is None else str(self.row["status"])


def _solved(problem: Problem, accuracy: str, task: None) -> dict[str, Any]:
    """Solve a problem; return its row as JSON has it."""
    solution = problem.solve(accuracy=accuracy, certify=False)
    numbers = {name: getattr(solution, name) for name in ("value", "lower", "upper")}
    numbers |= {name: float(term) for name, term in solution.terms.items()}
    numbers |= {f"price of {name}": float(price) for name, price in solution.prices.items()}
    return {
        "status": solution.status,
        "numbers": {name: repr(float(value)) for name, value in numbers.items()},
    }
