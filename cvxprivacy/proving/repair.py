"""From a solver's almost feasible point to an exactly feasible channel.

A channel is kept as integers over one denominator, so that row sums, entry bounds and linear
rows are decided exactly.  Repair clips and rounds, projects onto equalities in rationals, and
mixes with an *anchor*, a channel that satisfies the rows strictly, by the smallest weight with
which the proof goes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat
from scipy.linalg import qr

from cvxprivacy.certificates.channel_proof import ChannelProof, Evaluation
from cvxprivacy.exact import Exact, FloatArray, rational
from cvxprivacy.frozen import frozen
from cvxprivacy.programs.channel import ChannelProgram

__all__ = ["DENOMINATOR", "ExactChannel", "repair", "round_channel"]

DENOMINATOR = 2**52  # every multiple of 2⁻⁵² up to 1 is a float64: the matrix is the proof's


@dataclass(frozen=True, eq=False)
class ExactChannel:
    """A channel as integers ``numerators`` (n, m) over ``denominator``; rows sum to it."""

    numerators: np.ndarray
    denominator: int = DENOMINATOR

    def __post_init__(self) -> None:
        object.__setattr__(self, "numerators", frozen(self.numerators))

    @cached_property
    def matrix(self) -> FloatArray:
        """The channel in floats: exact over 2⁵², to half an ulp otherwise."""
        if self.denominator == DENOMINATOR:
            found = self.numerators.astype(float) / DENOMINATOR
        else:
            rows = [[int(k) / self.denominator for k in row] for row in self.numerators]
            found = np.array(rows, dtype=float)
        found.flags.writeable = False
        return found

    def to_dict(self) -> dict[str, Any]:
        rows = [[int(k) for k in row] for row in self.numerators]
        return {"numerators": rows, "denominator": self.denominator}


def round_channel(program: ChannelProgram, channel: FloatArray) -> ExactChannel | None:
    """Round to integers over 2⁵², rows summing to one within the entry bounds.

    Over a finer power of two where the bounds themselves need one (an entry fixed at 0.3);
    None if no row of sum one is within the bounds.
    """
    k = np.nan_to_num(np.asarray(channel, float), nan=0.0, posinf=1.0, neginf=0.0)
    k = np.clip(k, 0.0, 1.0)
    sums = k.sum(axis=1, keepdims=True)
    k = np.where(sums > 0, k / np.where(sums > 0, sums, 1.0), 1.0 / program.m)
    shape = (program.n, program.m)
    low, high = np.zeros(shape, np.int64), np.full(shape, DENOMINATOR)
    if program.lower is not None:
        low = _whole(program.lower, math.ceil)
    if program.upper is not None:
        high = _whole(program.upper, math.floor)
    numerators = _fill(np.rint(k * DENOMINATOR).astype(np.int64), low, high, DENOMINATOR)
    if numerators is not None:
        return ExactChannel(numerators)
    bounds = [b.ravel() for b in (program.lower, program.upper) if b is not None]
    fine = {Fraction(b).denominator for b in np.concatenate(bounds).tolist()}
    scale = math.lcm(DENOMINATOR, *fine)
    low = _whole(np.zeros(shape) if program.lower is None else program.lower, math.ceil, scale)
    high = _whole(np.ones(shape) if program.upper is None else program.upper, math.floor, scale)
    numerators = _fill(_whole(k, math.floor, scale), low, high, scale)
    return None if numerators is None else ExactChannel(numerators, scale)


def _whole(values: Exact, rounded: Callable[[Any], int], scale: int = DENOMINATOR) -> np.ndarray:
    """Return values times ``scale``, rounded to one side; floats are enough for the coarse one."""
    if scale == DENOMINATOR and values.dtype != object:
        ends: Any = {math.ceil: np.ceil, math.floor: np.floor}
        return ends[rounded](values * DENOMINATOR).astype(np.int64)
    whole = [[rounded(Fraction(v) * scale) for v in row] for row in values.tolist()]
    return np.array(whole, np.int64 if scale == DENOMINATOR else object)


def _fill(
    numerators: np.ndarray, low: np.ndarray, high: np.ndarray, total: int
) -> np.ndarray | None:
    """Clip to the bounds and move the largest entries until every row sums to ``total``."""
    if (low > high).any():
        return None
    numerators = np.clip(numerators, low, high)
    for s in range(len(numerators)):
        row = numerators[s]
        missing = total - sum(row.tolist())
        for y in np.argsort(-row, kind="stable") if missing else ():
            old = int(row[y])
            row[y] = min(max(old + missing, int(low[s, y])), int(high[s, y]))
            missing -= int(row[y]) - old
            if not missing:
                break
        if missing:
            return None
    return numerators


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
    if start is None or not _has_equalities(program):
        return start
    return _project(program, start, anchors)


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
    if _has_equalities(program):
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
    if start.denominator == anchor.denominator == DENOMINATOR and not _has_equalities(program):
        return round_channel(program, (1 - weight) * start.matrix + weight * anchor.matrix)
    t = Fraction(weight).limit_denominator(2**60)
    common = math.lcm(start.denominator, anchor.denominator)
    a = start.numerators.astype(object) * (common // start.denominator)
    b = anchor.numerators.astype(object) * (common // anchor.denominator)
    mixed = (t.denominator - t.numerator) * a + t.numerator * b
    return ExactChannel(mixed, common * t.denominator)


# ---- equalities: an exact rational projection --------------------------------------------


def _has_equalities(program: ChannelProgram) -> bool:
    return any(row.sense == "==" or row.silences for row in program.constraints.values())


def _equalities(program: ChannelProgram) -> list[tuple[list[tuple[int, Fraction]], Fraction]]:
    """Return every equality row as (coefficients of the flat channel, right-hand side)."""
    n, m = program.n, program.m
    atoms = [[Fraction(a) for a in row] for row in program.law.tolist()]
    mass = [sum(column, Fraction(0)) for column in zip(*atoms, strict=True)]
    total = sum(mass, Fraction(0))
    found: list[tuple[list[tuple[int, Fraction]], Fraction]] = []
    for row in program.constraints.values():
        if row.silences:
            for view in row.expression.weights:
                found += _independence(program, view, atoms)
        if row.sense != "==" or row.expression.cost is None:
            continue
        cost = row.expression.cost
        layers = [(mass, cost)] if cost.ndim == 2 else list(zip(atoms, cost, strict=False))
        if cost.ndim == 3 and cost.shape[0] == 1:
            layers = [(mass, cost[0])]
        columns: list[list[tuple[int, Fraction]]] = [[] for _ in range(m)]
        for masses, layer in layers:
            for s, y in zip(*np.nonzero(layer), strict=True):
                value = masses[s] * Fraction(layer[s, y])
                columns[y].append((int(s) * m + int(y), value))
        if row.per_output:
            bounds = row.bound if isinstance(row.bound, tuple) else (row.bound,) * m
            found += [(c, b * total) for c, b in zip(columns, bounds, strict=True)]
        else:
            assert isinstance(row.bound, Fraction)
            constant = rational(row.expression.constant)
            whole = [pair for column in columns for pair in column]
            found.append((whole, (row.bound - constant) * total))
    rows = [([(s * m + y, Fraction(1)) for y in range(m)], Fraction(1)) for s in range(n)]
    return rows + found


def _independence(
    program: ChannelProgram, view: str, atoms: list[list[Fraction]]
) -> list[tuple[list[tuple[int, Fraction]], Fraction]]:
    """Return Σ J(v, y) whole − π(v) whole Σ_v' J(v', y) = 0 for every v and y, in rationals."""
    labels, m = program.views[view].labels, program.m
    reference = program.views[view].reference
    reference = labels if reference is None else reference
    size = program.views[view].size
    masses = [Fraction(0)] * size
    seen = [[Fraction(0)] * program.n for _ in range(size)]
    for at, label in np.ndenumerate(labels):
        if label >= 0:
            seen[label][at[1]] += atoms[at[0]][at[1]]
        if reference[at] >= 0:
            masses[reference[at]] += atoms[at[0]][at[1]]
    whole = sum(masses, Fraction(0))
    q = [sum(column, Fraction(0)) for column in zip(*seen, strict=True)]
    found = []
    for v in range(size):
        weights = [seen[v][s] * whole - masses[v] * q[s] for s in range(program.n)]
        found += [([(s * m + y, c) for s, c in enumerate(weights)], Fraction(0)) for y in range(m)]
    return found


def _project(
    program: ChannelProgram, start: ExactChannel, anchors: Sequence[ExactChannel]
) -> ExactChannel | None:
    """Move well-positive entries of ``start`` onto the equalities, exactly.

    A basis of entries is chosen by pivoted QR weighted with the entries themselves; the rest
    stay where they are.  A vertex may have fewer positive entries than there are equalities:
    then its small entries are exactly 0.  Where an entry would leave its bounds, the start is
    mixed with an anchor.
    """
    system = _equalities(program)
    size = program.n * program.m
    matrix = np.zeros((len(system), size))
    for i, (coefficients, _) in enumerate(system):
        for j, value in coefficients:
            matrix[i, j] += float(value)
    scale = np.abs(matrix).max(axis=1)
    matrix /= np.where(scale > 0, scale, 1.0)[:, None]
    inner = [a.matrix for a in anchors] or [np.full((program.n, program.m), 1.0 / program.m)]
    near = start.matrix
    tried = [near] + [np.where(near < least, 0.0, near) for least in (1e-9, 1e-7, 1e-5)]
    for weight in (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2):
        tried += [(1 - weight) * near + weight * anchor for anchor in inner]
    for channel in tried:
        rounded = round_channel(program, channel)
        if rounded is not None:
            projected = _basic_solution(program, system, matrix, rounded)
            if projected is not None:
                return projected
    return None


def _basic_solution(
    program: ChannelProgram,
    system: list[tuple[list[tuple[int, Fraction]], Fraction]],
    matrix: FloatArray,
    start: ExactChannel,
) -> ExactChannel | None:
    flat = start.matrix.ravel()
    room = flat if program.floor is None else flat - program.floor.ravel()
    if program.ceiling is not None:
        high = program.ceiling.ravel()
        room = np.minimum(room, np.where(high < 1, high - flat, 1))
    weighted = matrix * np.clip(room, 0.0, None)
    _, r, order = qr(weighted, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(r))
    rank = int((diagonal > 1e-11 * max(diagonal[0], 1e-300)).sum())
    basis = [int(j) for j in order[:rank]]
    _, _, independent = qr(weighted[:, basis].T, mode="economic", pivoting=True)
    chosen = [int(i) for i in independent[:rank]]
    place = {j: i for i, j in enumerate(basis)}
    fixed = [Fraction(int(k), start.denominator) for k in start.numerators.ravel()]
    left = fmpq_mat(rank, rank)
    right = fmpq_mat(rank, 1)
    for i, row in enumerate(chosen):
        coefficients, rest = system[row]
        for j, value in coefficients:
            if j in place:
                left[i, place[j]] += fmpq(value.numerator, value.denominator)
            else:
                rest -= value * fixed[j]
        right[i, 0] = fmpq(rest.numerator, rest.denominator)
    try:
        moved = left.solve(right)
    except ZeroDivisionError:
        return None
    for j, i in place.items():
        fixed[j] = Fraction(int(moved[i, 0].p), int(moved[i, 0].q))
    if any(sum((v * fixed[j] for j, v in c), Fraction(0)) != b for c, b in system):
        return None
    shape = (program.n, program.m)
    least = np.zeros(shape) if program.lower is None else program.lower
    most = np.ones(shape) if program.upper is None else program.upper
    boxes = zip(fixed, least.ravel().tolist(), most.ravel().tolist(), strict=True)
    if any(not Fraction(a) <= x <= Fraction(b) for x, a, b in boxes):
        return None
    common = math.lcm(*(x.denominator for x in fixed))
    numerators = np.array([int(x * common) for x in fixed], dtype=object)
    return ExactChannel(numerators.reshape(program.n, program.m), common)
