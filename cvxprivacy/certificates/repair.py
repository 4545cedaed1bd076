"""From a solver's almost feasible point to an exactly feasible channel.

Row sums, entry bounds and linear rows of an exact channel are decided exactly.  Repair clips and
rounds, projects onto equalities in rationals, and mixes with an *anchor*, a channel that
satisfies the rows strictly, by the smallest weight with which the proof goes through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from cvxprivacy.certificates.equalities import has_equalities, project
from cvxprivacy.certificates.exact_channel import DENOMINATOR, ExactChannel, round_channel
from cvxprivacy.exact import Exact, FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.verifier.channel_proof import ChannelProof, Evaluation

__all__ = ["repair"]


def repair(
    program: ChannelProgram,
    proof: ChannelProof,
    channel: FloatArray | ExactChannel,
    anchors: Iterable[ExactChannel] = (),
) -> tuple[ExactChannel, Evaluation] | None:
    """Return a channel near ``channel`` that provably satisfies every constraint, or None.

    Parameters
    ----------
    channel : (n, m) array or ExactChannel
        Anything of that shape; NaN and infinities are replaced.  An exact channel that
        satisfies everything is returned as it is.
    anchors : iterable of ExactChannel
        Candidates to mix with, beyond those that the program itself suggests.
    """
    anchors = list(anchors)
    if isinstance(channel, ExactChannel):
        evaluation = proof.upper(channel.to_dict())
        if evaluation.feasible:
            return channel, evaluation
        channel = channel.matrix
    start = _exact(program, channel, anchors)
    if start is None:
        return None
    evaluation = proof.upper(start.to_dict())
    if evaluation.feasible:
        return start, evaluation
    best: tuple[ExactChannel, Evaluation] | None = None
    for anchor in [*_own_anchors(program, start, evaluation), *anchors, None]:
        closed = _closable(program, start, evaluation, anchor)
        here: tuple[ExactChannel, Evaluation] | None = (start, evaluation)
        if closed.any():
            here = _close(program, proof, start, closed, anchors)
        if here is None:
            continue
        mended = here if here[1].feasible else None
        if mended is None and anchor is not None:
            mended = _mix_until_proved(program, proof, *here, anchor)
        if mended and (best is None or mended[1].objective < best[1].objective):
            best = mended
    return best


def _exact(
    program: ChannelProgram, channel: FloatArray, anchors: Sequence[ExactChannel]
) -> ExactChannel | None:
    """Round, and project onto the equalities if there are any."""
    start = round_channel(program, channel)
    if start is None or not has_equalities(program):
        return start
    return project(program, start, anchors)


def _closable(
    program: ChannelProgram,
    start: ExactChannel,
    evaluation: Evaluation,
    anchor: ExactChannel | None,
) -> np.ndarray:
    """Tell which outputs break a row of their own and carry next to nothing.

    A criterion per output holds at mass 0; if the anchor has mass 0 there, no mixing helps.
    """
    closed = np.zeros(program.m, bool)
    for name in evaluation.broken:
        row = program.constraints.get(name)
        if row is not None and row.per_output and row.sense == "<=":
            closed |= np.array([float(v.upper()) > 0 for v in evaluation.violation[name]])
    mass = program.mass @ start.matrix
    unused = mass < 1e-6 if anchor is None else (program.mass @ anchor.matrix) == 0
    return closed & unused & (mass < 1e-3)


def _close(
    program: ChannelProgram,
    proof: ChannelProof,
    start: ExactChannel,
    closed: np.ndarray,
    anchors: Sequence[ExactChannel],
) -> tuple[ExactChannel, Evaluation] | None:
    """Move the mass of some outputs to the others."""
    upper: Exact = np.ones((program.n, program.m))
    if program.upper is not None:
        upper = program.upper.copy()
    upper[:, closed] = 0.0
    if program.lower is not None and (program.lower[:, closed] > 0).any():
        return None
    exact = _exact(replace(program, upper=upper), start.matrix, anchors)
    return None if exact is None else (exact, proof.upper(exact.to_dict()))


def _own_anchors(
    program: ChannelProgram, start: ExactChannel, evaluation: Evaluation
) -> list[ExactChannel]:
    """Suggest closed-form anchors for the broken rows: a least-cost or a constant channel."""
    if has_equalities(program):
        return _constants(program)
    found: list[FloatArray] = []
    broken = [
        program.constraints[name] for name in evaluation.broken if name in program.constraints
    ]
    linear = [row for row in broken if row.linear]
    if linear:
        cost = sum(program.cost(row.expression) for row in linear)
        found.append(program.least(program.mass[:, None] * cost)[0])
    if len(linear) < len(broken) or len(evaluation.broken) > len(broken):
        # a constant channel reveals nothing: the cheapest, the uniform, and one of this law
        law, cost = program.mass @ start.matrix, program.cost(program.objective)
        uniform = np.full(program.m, 1.0 / program.m)
        cheapest = np.eye(program.m)[(program.mass @ cost).argmin()]
        for output in (cheapest, 0.5 * (cheapest + uniform), 0.5 * (law + uniform), uniform):
            found.append(np.tile(output, (program.n, 1)))
    rounded = [round_channel(program, channel) for channel in found]
    return [channel for channel in rounded if channel is not None]


def _constants(program: ChannelProgram) -> list[ExactChannel]:
    """Return the constant channel of a prescribed output law, exactly, if one is prescribed."""
    for row in program.constraints.values():
        if row.sense == "==" and isinstance(row.bound, tuple) and sum(row.bound) == 1:
            common = math.lcm(*(b.denominator for b in row.bound))
            law = np.array([int(b * common) for b in row.bound], dtype=object)
            return [ExactChannel(np.tile(law, (program.n, 1)), common)]
    return []


def _mix_until_proved(
    program: ChannelProgram,
    proof: ChannelProof,
    start: ExactChannel,
    evaluation: Evaluation,
    anchor: ExactChannel,
) -> tuple[ExactChannel, Evaluation] | None:
    """Mix ``start`` with ``anchor``; by convexity f((1−t)K + tK₀) ≤ (1−t)f(K) + t f(K₀)."""
    there = proof.upper(anchor.to_dict())
    if not there.feasible:
        return None
    weight = 0.0
    for name in evaluation.broken:
        for here, slack in zip(evaluation.violation[name], there.violation[name], strict=True):
            excess, room = float(here.upper()), -float(slack.upper())
            if excess > 0:
                weight = max(weight, excess / (excess + max(room, 0.0)))
    weight = weight * (1 + 1e-9) + 2.0**-50
    while weight < 1.0:
        mixed = _mix(program, start, anchor, weight)
        if mixed is not None:
            mended = proof.upper(mixed.to_dict())
            if mended.feasible:
                return mixed, mended
        weight *= 2.0
    return anchor, there


def _mix(
    program: ChannelProgram, start: ExactChannel, anchor: ExactChannel, weight: float
) -> ExactChannel | None:
    if start.denominator == anchor.denominator == DENOMINATOR and not has_equalities(program):
        return round_channel(program, (1 - weight) * start.matrix + weight * anchor.matrix)
    t = Fraction(weight).limit_denominator(2**60)
    common = math.lcm(start.denominator, anchor.denominator)
    a = start.numerators.astype(object) * (common // start.denominator)
    b = anchor.numerators.astype(object) * (common // anchor.denominator)
    mixed = (t.denominator - t.numerator) * a + t.numerator * b
    return ExactChannel(mixed, common * t.denominator)
