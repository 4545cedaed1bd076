"""From a solver's almost feasible point to an exactly feasible channel.

Row sums, entry bounds and linear rows of an exact channel are decided exactly.  Repair clips and
rounds (C8), projects onto equalities in rationals (C10), and mixes with a strictly feasible channel
by the smallest weight with which the proof goes through (C11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import fmpq, fmpq_mat
from scipy.linalg import qr

from cvxprivacy.additive import dense
from cvxprivacy.certificates.exact_channel import DENOMINATOR, ExactChannel, round_channel
from cvxprivacy.exact import Exact, FloatArray, floats, rational
from cvxprivacy.programs.channel import ChannelProgram, Matrix
from cvxprivacy.programs.side_conditions import Excess
from cvxprivacy_verifier.channel_proof import ChannelProof, Evaluation

__all__ = ["Feasible", "has_equalities", "project", "repair"]

_LITTLE = 1e-6  # mass below which an output that breaks a row is closed, with nothing mixed in
_MOST = 1e-3  # … and above which never: what it carries is part of the optimum
_ENLARGED = 1 + 1e-9, 2.0**-50  # (C11) holds of numbers that are not rounded, as a mixture is


class Feasible(NamedTuple):
    """A channel in which every row is proved to hold."""

    channel: ExactChannel
    evaluation: Evaluation


Inside = Callable[[], Iterable[Feasible]]  # strictly feasible ones, which may be proved only then


def repair(
    program: ChannelProgram,
    proof: ChannelProof,
    channel: Matrix | ExactChannel,
    inside: Inside = tuple,
    enough: Callable[[Evaluation], bool] = lambda _: False,
) -> Feasible | None:
    """Return a channel near ``channel`` that provably satisfies every constraint, or None.

    Parameters
    ----------
    channel : (n, m) array or ExactChannel
        Anything of that shape; NaN and infinities are replaced.  An exact channel that
        satisfies everything is returned as it is.
    inside : callable
        Returns channels to mix with, beyond those that the program itself suggests.
    enough : callable
        Tells of what is proved to be feasible that nothing better is needed.
    """
    if isinstance(channel, ExactChannel):
        evaluation = proof.upper(channel.to_dict())
        if evaluation.feasible:
            return Feasible(channel, evaluation)
        channel = channel.matrix
    # first what changes the objective least: rounding moves it by 2⁻⁵³ or so (C9)
    start = _exact(program, channel, inside)
    if start is None:
        return None
    evaluation = proof.upper(start.to_dict())
    if evaluation.feasible:
        return Feasible(start, evaluation)
    # then every K₀ of (C11) is tried: which of them costs least is known only when it is proved
    best: Feasible | None = None
    for interior in _interiors(program, proof, start, evaluation, inside):
        negligible = _negligible_outputs(program, start, evaluation, interior)
        current: Feasible | None = Feasible(start, evaluation)
        if negligible.any():  # no mixture mends these, and they may be all that is broken
            current = _without_outputs(program, proof, start, negligible, inside)
        if current is None:
            continue
        repaired = current if current.evaluation.feasible else None
        if repaired is None and interior is not None:
            repaired = _mix_until_proved(program, proof, current, interior)
        if repaired and (best is None or repaired.evaluation.objective < best.evaluation.objective):
            best = repaired
            if enough(best.evaluation):
                break
    return best


def _interiors(
    program: ChannelProgram,
    proof: ChannelProof,
    start: ExactChannel,
    evaluation: Evaluation,
    inside: Inside,
) -> Iterator[Feasible | None]:
    """Yield every K₀, and None: what is broken may be negligible."""
    yield from inside()
    for channel in _simple_channels(program, start, evaluation):
        feasible = Feasible(channel, proof.upper(channel.to_dict()))
        if feasible.evaluation.feasible:  # else mixtures need not be, either
            yield feasible
    yield None


def _exact(program: ChannelProgram, channel: Matrix, inside: Inside) -> ExactChannel | None:
    """Round, and project onto the equalities if there are any."""
    start = round_channel(program, channel)
    if start is None or not has_equalities(program):
        return start
    return project(program, start, inside)


def _negligible_outputs(
    program: ChannelProgram,
    start: ExactChannel,
    evaluation: Evaluation,
    interior: Feasible | None,
) -> np.ndarray:
    """Tell which outputs break a row of their own and carry next to nothing.

    A criterion per output holds at mass 0; if ``interior`` has mass 0 there, no mixing helps.
    """
    broken = np.zeros(program.m, bool)
    for name in evaluation.broken:
        row = program.constraints.get(name)
        if row is not None and row.per_output and row.sense == "<=":
            # posteriors do not depend on mass: that of 1e-12 of rounding may be anything
            broken |= np.array([float(v.upper()) > 0 for v in evaluation.violation[name]])
    mass = program.mass @ start.matrix
    unused = mass < _LITTLE if interior is None else (program.mass @ interior.channel.matrix) == 0
    return broken & unused & (mass < _MOST)


def _without_outputs(
    program: ChannelProgram,
    proof: ChannelProof,
    start: ExactChannel,
    negligible: np.ndarray,
    inside: Inside,
) -> Feasible | None:
    """Move the mass of some outputs to the others."""
    upper: Exact = np.ones((program.n, program.m))
    if program.upper is not None:
        upper = program.upper.copy()
    upper[:, negligible] = 0.0  # as entry bounds, which rounding and projection respect
    if program.lower is not None and (program.lower[:, negligible] > 0).any():
        return None
    exact = _exact(replace(program, upper=upper), start.matrix, inside)
    return None if exact is None else Feasible(exact, proof.upper(exact.to_dict()))


def _simple_channels(
    program: ChannelProgram, start: ExactChannel, evaluation: Evaluation
) -> list[ExactChannel]:
    """Suggest channels that may satisfy the broken rows strictly: of least cost, or constant."""
    if has_equalities(program):  # which a mixture keeps only if both its ends do
        return _constants(program)
    channels: list[Matrix] = []
    broken = [
        program.constraints[name] for name in evaluation.broken if name in program.constraints
    ]
    linear = [row for row in broken if row.linear and not row.per_output]
    if linear:
        # what has the most room in all of them together; of one row it is the least there is
        channels.append(program.cheapest([row.expression for row in linear]))
    for name, aux in program.auxiliaries.items():
        if name in evaluation.broken and isinstance(aux, Excess) and aux.pair is None:
            # the marginal itself
            channels.append(np.tile(floats(aux.levels), (program.n, 1)))
    if len(linear) < len(broken) or len(evaluation.broken) > len(broken):
        # a constant channel reveals nothing: the cheapest, the uniform, and one of this law;
        # half of it uniform, so that every output has mass (one of 0 mends no row of its own)
        law = program.mass @ start.matrix
        cost = sum(map(program.cost, program.objectives.values()))
        uniform = np.full(program.m, 1.0 / program.m)
        cheapest = np.eye(program.m)[(program.mass @ cost).argmin()]
        for output in (cheapest, 0.5 * (cheapest + uniform), 0.5 * (law + uniform), uniform):
            channels.append(np.tile(output, (program.n, 1)))
    rounded = [round_channel(program, channel) for channel in channels]
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
    program: ChannelProgram, proof: ChannelProof, start: Feasible, interior: Feasible
) -> Feasible:
    """Mix ``start`` with ``interior``; by convexity f((1−t)K + tK₀) ≤ (1−t)f(K) + t f(K₀) (C11)."""
    violation, strict, weight = start.evaluation.violation, interior.evaluation.violation, 0.0
    for name in start.evaluation.broken:
        pairs = zip(violation[name], strict[name], strict=True)
        for off, slack in pairs:
            excess, room = float(off.upper()), -float(slack.upper())
            if excess > 0:  # v/(v − v⁰) of (C11), both at their worst
                weight = max(weight, excess / (excess + max(room, 0.0)))
    share, step = _ENLARGED
    weight = weight * share + step
    while weight < 1.0:
        mixed = _mix(program, start.channel, interior.channel, weight)
        if mixed is not None:
            repaired = proof.upper(mixed.to_dict())
            if repaired.feasible:
                return Feasible(mixed, repaired)
        weight *= 2.0  # from 2⁻⁵⁰, fifty proofs at most
    return interior  # the far end of the segment, if nothing before it


def _mix(
    program: ChannelProgram, start: ExactChannel, interior: ExactChannel, weight: float
) -> ExactChannel | None:
    if start.denominator == interior.denominator == DENOMINATOR and not has_equalities(program):
        return round_channel(program, (1 - weight) * start.matrix + weight * interior.matrix)
    # equalities survive a mixture only if it is exact; a short t keeps the numbers short
    t = Fraction(weight).limit_denominator(2**60)
    common = math.lcm(start.denominator, interior.denominator)
    a = start.numerators.astype(object) * (common // start.denominator)
    b = interior.numerators.astype(object) * (common // interior.denominator)
    mixed = (t.denominator - t.numerator) * a + t.numerator * b
    return ExactChannel(mixed, common * t.denominator)


# ---- equalities, in rationals -------------------------------------------------------------


# Where the first start leaves its bounds, (C10) is tried from others.  At a vertex fewer entries
# are positive than there are equations: what a solver left of the others is set to 0 …
_NEXT_TO_NOTHING = (1e-9, 1e-7, 1e-5)
# … and elsewhere the start is moved inside, by as little as will do: a weight raises the upper end
# by about as much, as in (C11).
_INWARDS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
_RANK = 1e-11  # of the first pivot: below it a row follows from others, but for rounding

Equality = tuple[list[tuple[int, Fraction]], Fraction]  # coefficients of the flat channel, and b


def has_equalities(program: ChannelProgram) -> bool:
    """Tell whether some row is an equality."""
    return any(row.sense == "==" for row in program.constraints.values())


def _equalities(program: ChannelProgram) -> list[Equality]:
    """Return every equality row as (coefficients of the flat channel, right-hand side)."""
    n, m = program.n, program.m
    atoms = [[Fraction(a) for a in row] for row in program.law.tolist()]
    mass = [sum(column, Fraction(0)) for column in zip(*atoms, strict=True)]  # (P1), times Σ law
    total = sum(mass, Fraction(0))
    equalities: list[Equality] = []
    for row in program.constraints.values():
        if row.sense != "==" or row.expression.cost is None:
            continue
        cost = dense(row.expression.cost)
        layers = [(mass, cost)] if cost.ndim == 2 else list(zip(atoms, cost, strict=False))
        if cost.ndim == 3 and cost.shape[0] == 1:  # one table for all layers of atoms
            layers = [(mass, cost[0])]
        columns: list[list[tuple[int, Fraction]]] = [[] for _ in range(m)]
        for masses, layer in layers:
            for s, y in zip(*np.nonzero(layer), strict=True):
                value = masses[s] * Fraction(layer[s, y])  # C̄ of (C13), multiplying K
                columns[y].append((int(s) * m + int(y), value))
        if row.per_output:
            bounds = row.bound if isinstance(row.bound, tuple) else (row.bound,) * m
            # multiplied by Σ law, not divided: tables of counts then stay whole numbers
            equalities += [(c, b * total) for c, b in zip(columns, bounds, strict=True)]
        else:
            assert isinstance(row.bound, Fraction)
            constant = rational(row.expression.constant)
            coefficients = [pair for column in columns for pair in column]
            equalities.append((coefficients, (row.bound - constant) * total))
    # rows of sum 1 belong to the system: what moves an equality must not break them
    rows = [([(s * m + y, Fraction(1)) for y in range(m)], Fraction(1)) for s in range(n)]
    return rows + equalities


def project(
    program: ChannelProgram, start: ExactChannel, inside: Inside = tuple
) -> ExactChannel | None:
    """Move well-positive entries of ``start`` onto the equalities, exactly.

    A basis of entries is chosen by pivoted QR weighted with the entries themselves; the rest
    stay where they are.  A vertex may have fewer positive entries than there are equalities:
    then its small entries are exactly 0.  Where an entry would leave its bounds, the start is
    mixed with a strictly feasible channel.
    """
    system = _equalities(program)
    size = program.n * program.m
    matrix = np.zeros((len(system), size))
    for i, (coefficients, _) in enumerate(system):
        for j, value in coefficients:
            matrix[i, j] += float(value)
    scale = np.abs(matrix).max(axis=1)  # rows of small numbers would look dependent otherwise
    matrix /= np.where(scale > 0, scale, 1.0)[:, None]
    uniform = np.full((program.n, program.m), 1.0 / program.m)
    near = start.matrix

    def tried() -> Iterator[FloatArray]:
        yield near
        yield from (np.where(near < least, 0.0, near) for least in _NEXT_TO_NOTHING)
        interior = [feasible.channel.matrix for feasible in inside()] or [uniform]
        for weight in _INWARDS:
            yield from ((1 - weight) * near + weight * inner for inner in interior)

    for channel in tried():
        rounded = round_channel(program, channel)
        if rounded is not None:
            projected = _basic_solution(program, system, matrix, rounded)
            if projected is not None:
                return projected
    return None


def _basic_solution(
    program: ChannelProgram,
    system: list[Equality],
    matrix: FloatArray,
    start: ExactChannel,
) -> ExactChannel | None:
    flat = start.matrix.ravel()
    # how far an entry may move: a basis of entries at their bounds would leave them at once
    room = flat if program.floor is None else flat - program.floor.ravel()
    if program.ceiling is not None:
        high = program.ceiling.ravel()
        room = np.minimum(room, np.where(high < 1, high - flat, 1))
    weighted = matrix * np.clip(room, 0.0, None)
    # floats choose the basis B; whatever they choose, the rationals below decide
    _, r, order = qr(weighted, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(r))
    rank = int((diagonal > _RANK * max(diagonal[0], 1e-300)).sum())
    basis = [int(j) for j in order[:rank]]
    # and as many equations, independent ones: preserved marginals repeat what row sums say
    _, _, independent = qr(weighted[:, basis].T, mode="economic", pivoting=True)
    chosen = [int(i) for i in independent[:rank]]
    place = {j: i for i, j in enumerate(basis)}
    fixed = [Fraction(int(k), start.denominator) for k in start.numerators.ravel()]
    left = fmpq_mat(rank, rank)
    right = fmpq_mat(rank, 1)
    for i, row in enumerate(chosen):
        coefficients, remainder = system[row]
        for j, value in coefficients:
            if j in place:
                left[i, place[j]] += fmpq(value.numerator, value.denominator)
            else:
                remainder -= value * fixed[j]  # b − A_N x_N of (C10)
        right[i, 0] = fmpq(remainder.numerator, remainder.denominator)
    try:
        moved = left.solve(right)  # A_B⁻¹, exactly
    except ZeroDivisionError:
        return None
    for j, i in place.items():
        fixed[j] = Fraction(int(moved[i, 0].p), int(moved[i, 0].q))
    # the equations that were not chosen follow from these, unless the rank was misjudged
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
