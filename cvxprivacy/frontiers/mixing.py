"""Time-sharing: what a mixture of solved releases is proved to achieve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.certificates.bounds import BestBounds, Prover
from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.exact_channel import ExactChannel
from cvxprivacy.exact import array, fractions
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.covariance import ErrorCovariance

__all__ = ["Shares", "mixture", "offer"]

ROUNDING = 1e-13  # of a value: what a mixture on the grid of floats may cost
INWARD = (None, 100, 76, 52, 28)  # bits of the share that goes back where a ball cannot tell

Shares = Sequence[tuple[Any, Fraction]]


def offer(bounds: BestBounds, primal: Any, dual: Any) -> None:
    """Prove what a primal and a dual are worth, as they are."""
    if primal is not None:
        evaluation = bounds.proof.upper(primal.to_dict())
        if evaluation.feasible:
            bounds.take_primal(primal, evaluation)
    if dual is not None and dual.objective:
        bounds.take_dual(dual.cleaned(bounds.program) if hasattr(dual, "cleaned") else dual)


def mixture(
    program: Any, accuracy: str, primals: Shares, duals: Iterable[Any], most: float
) -> Certificate:
    """Return what is proved of a release that draws from several, with shares ≥ 0 of sum one.

    By convexity it achieves ``most``, the mixture of the values.  A channel is rounded to integers
    over 2⁵² where that costs no more than rounding, and kept exact elsewhere.  Where a ball cannot
    tell it to be feasible it goes back, by a share of 2⁻¹⁰⁰ first, towards the first of them.  The
    lower end is the best that any of the multipliers ``duals`` prove.
    """
    discrete = isinstance(program, ChannelProgram)
    bounds = Prover(program, accuracy) if discrete else BestBounds(program, accuracy)
    (first, _), *others = primals
    if isinstance(bounds, Prover) and others:
        bounds.strictly_feasible.append(first)
        bounds.offer_channel(sum(float(share) * primal.matrix for primal, share in primals))
    for bits in INWARD if others else INWARD[:1]:
        if bounds.upper <= most + ROUNDING * abs(most):
            break
        kept = 1 - Fraction(1, 2**bits) if bits else Fraction(1)
        moved = [(primal, kept * share) for primal, share in others]
        shares = [(first, 1 - sum((share for _, share in moved), Fraction(0))), *moved]
        offer(bounds, _channel(shares) if discrete else _covariance(shares), None)
    for dual in duals:
        offer(bounds, None, dual)
    return bounds.certificate()


def _channel(shares: Shares) -> ExactChannel:
    """Return a mixture of channels, exactly."""
    denominator = math.lcm(*(primal.denominator * share.denominator for primal, share in shares))
    numerators = sum(
        primal.numerators.astype(object)
        * (denominator // (primal.denominator * share.denominator) * share.numerator)
        for primal, share in shares
    )
    common = math.gcd(denominator, *numerators.ravel().tolist())
    return ExactChannel(numerators // common, denominator // common)


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
