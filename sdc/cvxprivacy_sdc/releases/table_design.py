"""Whole counts for a release: designed, or why they are not."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cvxprivacy.criteria import Criterion
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.results.solution import Solution
from cvxprivacy_sdc.releases.check import as_typed
from cvxprivacy_sdc.whole_counts.solution import TableSolution
from cvxprivacy_sdc.whole_counts.whole_counts import WholeCounts

__all__ = ["Undesigned", "solved_law", "whole_counts"]

_SECONDS = 60.0  # for whole counts, unless a limit is typed
_GAP = 1e-6  # of the distortion, relatively
_LEAKED = 1e-4  # of what leaks, relatively or in its unit
_CELLS = 600  # key letters up to which whole counts are designed blind to W, in a minute

_REASONS = {
    "balanced": "balanced draws were asked for",
    "streamed": "the table is read batch by batch, and counts need it at once",
    "formulation": "counts are designed for least distortion, or for least leakage under a budget, "
    "and neither was asked for",
    "prior": "counts are designed for who believes the table's own shares, and any prior was asked "
    "for",
    "weights": "the records have weights, and counts are of whole records",
    "criterion": "counts do not take what was asked: {problem}",
    "cells": "the key has {cells:,} cells, and counts that do not look at the confidential column "
    "are designed for at most {most:,}",
    "no time": "the time limit was spent before",
    "time": "none that keep what was asked were found in {seconds:.3g} seconds",
    "infeasible": "there are none that keep what was asked, as the solver claims",
    "none": "none that keep what was asked were found",
    "dearer": "counts that were found have a distortion of {designed:.6g}, and the drawn table has "
    "less",
}


@dataclass(frozen=True)
class Undesigned:
    """Why a table was drawn, though it was to satisfy the criteria.

    Attributes
    ----------
    reason : str
        A key of all reasons that there are.
    facts : mapping
        What its words tell besides.
    """

    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The reason in a sentence."""
        why = _REASONS[self.reason].format(**self.facts)
        return f"the table was drawn, and not designed in whole counts: {why}"


def solved_law(problem: ChannelProblem, *, ensure: str, **how: Any) -> Solution:
    """Solve the problem of a table's channel.

    Parameters
    ----------
    problem : ChannelProblem
    ensure : {"law", "table"}
        What is to satisfy the criteria.
    how
        As of ``problem.solve``.

    Raises
    ------
    InfeasibleError
        If no channel satisfies them; of encoder ``"x"`` a table still may, and the message says so.
    """
    try:
        return problem.solve(**how)
    except InfeasibleError as error:
        if ensure == "law" or problem.encoder != "x":
            raise  # whole counts of encoder wx are such a channel
        message = (
            f"of channels that do not look at the confidential column: {error}; whole counts, each "
            "less than a record off such a channel, may satisfy it: try encoder wx, or WholeCounts"
        )
        about: Any = {"conflict": error.conflict, "extremes": error.extremes}
        raise InfeasibleError(message, error.certificate, **about) from error


def whole_counts(
    problem: ChannelProblem,
    of_table: Sequence[Criterion],
    solution: Solution,
    *,
    seed: int,
    time_limit: float | None = None,
) -> TableSolution | Undesigned:
    """Return whole counts of the least that a problem minimises, or why there are none.

    Parameters
    ----------
    problem : ChannelProblem
    of_table : sequence of Criterion
        Of the table alone.
    solution : Solution
        Of the problem, which is not solved again where the counts' own law is the same program.
    seed : int
        Of the rounding.
    time_limit : float, optional
        Seconds.
    """
    how: dict[str, Any] = {"encoder": problem.encoder, "units": problem.units}
    if isinstance(problem, PrivacyDistortion):
        if problem.prior == "any":
            return Undesigned("prior")
        how |= {"budget": problem.budget, "leakage": problem.leakage}
    elif type(problem) is not MinimumDistortion:
        return Undesigned("formulation")
    if "budget" in how and how["budget"] is None:  # a price, or criteria alone
        return Undesigned("formulation")
    if problem.source.weighted:
        return Undesigned("weights")
    rules = list(as_typed(problem._criteria(), of_table).values())
    try:
        table = WholeCounts(problem.source, problem.alphabet.d, rules, **how)
    except InputError as error:
        return Undesigned("criterion", {"problem": error.problem})
    if table.blind and (cells := len(problem.source.x)) > _CELLS:
        return Undesigned("cells", {"cells": cells, "most": _CELLS})
    limit, began = _SECONDS if time_limit is None else time_limit, time.monotonic()
    if limit <= 0:
        return Undesigned("no time")
    law = solution if solution.certificate.proves(table.law) else None
    gap = _GAP if table.budget is None else _LEAKED
    counted = table.solve(seed=seed, time_limit=limit, law=law, gap=gap)
    if counted.counts is not None:
        return counted
    if counted.status.startswith("infeasible"):
        return Undesigned("infeasible")
    seconds = time.monotonic() - began
    return Undesigned("none") if seconds < limit else Undesigned("time", {"seconds": seconds})
