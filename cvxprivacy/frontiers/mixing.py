"""Time-sharing: what a mixture of two solved releases is proved to achieve."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cvxprivacy.certificates import Certificate, Prover
from cvxprivacy.certificates.certificate import Ends
from cvxprivacy.programs import ChannelProgram
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
    program: Any,
    accuracy: str,
    pair: tuple[Certificate, Certificate],
    share: float,
    duals: Iterable[Any],
) -> Certificate:
    """Return what is proved of the release that is the second of two with probability ``share``.

    The lower end is the best that any of the multipliers prove.
    """
    first, second = (certificate.primal for certificate in pair)
    mixed = (1.0 - share) * first.matrix + share * second.matrix
    ends: Any
    if isinstance(program, ChannelProgram):
        ends = Prover(program, accuracy)
        if share:
            ends.offer_channel(mixed)
    else:
        ends = CovarianceProver(program, accuracy)
        if share:
            inverse = np.linalg.inv(ends.white.root)
            ends.offer_middle(inverse @ mixed @ inverse.T)
    for dual in duals:
        offer(ends, None, dual)
    if ends.primal is None:
        offer(ends, first, None)
    certificate: Certificate = ends.certificate()
    return certificate
