"""Time-sharing: what a mixture of solved releases is proved to achieve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.exact import array, fractions
from cvxprivacy.programs import ChannelProgram, ErrorCovariance
from cvxprivacy.proving.certificate import Ends, Prover
from cvxprivacy.proving.repair import ExactChannel
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import Outcome

__all__ = ["mixture", "offer"]

ROUNDING = 1e-13  # of a value: what a mixture on the grid of floats may cost
INWARD = (None, 100, 76, 52, 28)  # bits of the share that goes back where a ball cannot tell

Shares = Sequence[tuple[Any, Fraction]]


def offer(ends: Ends, primal: Any, dual: Any) -> None:
    """Prove what a primal and a dual are worth, as they are."""
    if primal is not None:
        evaluation = ends.proof.upper(primal.to_dict())
        if evaluation.feasible:
            ends.take_primal(primal, evaluation)
    if dual is not None and dual.objective:
        ends.take_dual(dual.cleaned(ends.program) if hasattr(dual, "cleaned") else dual)


def mixture(
    problem: Any, accuracy: str, primals: Shares, duals: Iterable[Any], most: float
) -> Solution:
    """Return what is proved of a release that draws from several.

    Parameters
    ----------
    primals : sequence of (primal, Fraction)
        Shares ≥ 0 of sum one.  A mixture that a ball cannot tell to be feasible goes back, by a
        share of 2⁻¹⁰⁰ first, towards the first of them.
    duals : iterable
        The lower end is the best that any of these multipliers prove.
    most : float
        The mixture of the values: what it achieves, by convexity.  A channel is rounded to
        integers over 2⁵² where that costs no more than rounding, and kept exact elsewhere.
    """
    program = problem.program
    discrete = isinstance(program, ChannelProgram)
    ends = Prover(program, accuracy) if discrete else Ends(program, accuracy)
    if isinstance(ends, Prover) and len(primals) > 1:
        ends.anchors.append(primals[0][0])
        ends.offer_channel(sum(float(share) * primal.matrix for primal, share in primals))
    for bits in INWARD if len(primals) > 1 else INWARD[:1]:
        if ends.upper <= most + ROUNDING * abs(most):
            break
        kept = 1 - Fraction(1, 2**bits) if bits else Fraction(1)
        back = [(primal, kept * share) for primal, share in primals[1:]]
        rest = 1 - sum((share for _, share in back), Fraction(0))
        shares = [(primals[0][0], rest), *back]
        offer(ends, _channel(shares) if discrete else _covariance(shares), None)
    for dual in duals:
        offer(ends, None, dual)
    found: Solution = problem._solution(Outcome(ends.certificate()))
    return found


def _channel(shares: Shares) -> ExactChannel:
    """Return a mixture of channels, exactly."""
    whole = math.lcm(*(primal.denominator * share.denominator for primal, share in shares))
    numerators = sum(
        primal.numerators.astype(object)
        * (whole // (primal.denominator * share.denominator) * share.numerator)
        for primal, share in shares
    )
    common = math.gcd(whole, *numerators.ravel().tolist())
    return ExactChannel(numerators // common, whole // common)


def _covariance(shares: Shares) -> ErrorCovariance:
    """Return a mixture of error covariances, exactly."""
    primals = [primal for primal, _ in shares]
    roots, middles = (
        [fractions(array(getattr(primal, part))) for primal in primals]
        for part in ("root", "middle")
    )
    root = roots[0]
    if any((other != root).any() for other in roots):
        middles = [r @ m @ r.T for r, m in zip(roots, middles, strict=True)]
        root = fractions(np.eye(len(root)))
    mixed = sum(share * m for (_, share), m in zip(shares, middles, strict=True))
    return ErrorCovariance(root.tolist(), mixed.tolist())
