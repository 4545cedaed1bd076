"""Time-sharing: what a mixture of solved releases is proved to achieve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cvxprivacy.certificates import Prover
from cvxprivacy.certificates.certificate import Ends
from cvxprivacy.programs import ChannelProgram
from cvxprivacy.solution import Solution
from cvxprivacy.solvers import Outcome
from cvxprivacy.solvers.covariance import CovarianceProver

__all__ = ["mixture", "offer"]


def offer(ends: Ends, primal: Any, dual: Any) -> None:
    """Prove what a primal and a dual are worth, as they are."""
    if primal is not None:
        evaluation = ends.proof.upper(primal.to_dict())
        if evaluation.feasible:
            ends.take_primal(primal, evaluation)
    if dual is not None and dual.objective:
        ends.take_dual(dual.cleaned(ends.program) if hasattr(dual, "cleaned") else dual)


def mixture(
    problem: Any,
    accuracy: str,
    primals: Sequence[tuple[Any, float]],
    duals: Iterable[Any],
) -> Solution:
    """Return what is proved of a release that draws from several with the weights given.

    Rounding is mended towards the first of them; the lower end is the best that any of the
    multipliers prove.
    """
    program, first = problem.program, primals[0][0]
    mixed = sum(weight * primal.matrix for primal, weight in primals)
    ends: Any
    if isinstance(program, ChannelProgram):
        ends = Prover(program, accuracy)
        ends.anchors.append(first)
        propose = ends.offer_channel
    else:
        ends = CovarianceProver(program, accuracy)
        inverse = np.linalg.inv(ends.white.root)
        mixed = inverse @ mixed @ inverse.T
        propose = ends.offer_middle
    if len(primals) > 1:
        propose(mixed)
    for dual in duals:
        offer(ends, None, dual)
    if ends.primal is None:
        offer(ends, first, None)
    found: Solution = problem._solution(Outcome(ends.certificate()))
    return found
