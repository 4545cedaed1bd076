"""An almost feasible channel moved onto the equalities of its program, in rationals (C10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat
from scipy.linalg import qr

from cvxprivacy.additive import dense
from cvxprivacy.certificates.exact_channel import ExactChannel, round_channel
from cvxprivacy.exact import FloatArray, rational
from cvxprivacy.programs.channel import ChannelProgram

__all__ = ["has_equalities", "project"]

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
    program: ChannelProgram, start: ExactChannel, strictly_feasible: Sequence[ExactChannel]
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
    interior = [channel.matrix for channel in strictly_feasible] or [uniform]
    near = start.matrix
    tried = [near] + [np.where(near < least, 0.0, near) for least in _NEXT_TO_NOTHING]
    for weight in _INWARDS:
        tried += [(1 - weight) * near + weight * inner for inner in interior]
    for channel in tried:
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
