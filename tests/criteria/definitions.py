"""Every criterion by its definition, on the integers of a released channel or in floats."""

from __future__ import annotations

import itertools
from fractions import Fraction

import cvxpy as cp
import numpy as np
from flint import arb, ctx as flint_context, fmpq

import cvxprivacy as cpv
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.typing import Solution
from tests import referee


def exact_channel(solution: Solution) -> list[list[Fraction]]:
    primal = solution.certificate.primal
    return [[Fraction(int(k), primal.denominator) for k in row] for row in primal.numerators]


def exact_joint(problem, channel) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Return counts-weighted J(w, x̂) and the masses of W, from the program's atoms."""
    joint = [[Fraction(0)] * problem.alphabet.m for _ in problem.alphabet.w_support]
    for (a, s), mass in np.ndenumerate(problem.alphabet.law):
        if mass:
            row = joint[problem.alphabet.w_of[a, s]]
            for y in range(problem.alphabet.m):
                row[y] += Fraction(float(mass)) * channel[s][y]
    return joint, [sum(row) for row in joint]


def ball(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def divergence(column: list[Fraction], masses: list[Fraction]) -> arb:
    """D(column ‖ masses), both normalised, exactly 0 where they are proportional."""
    q, total = sum(column), sum(masses)
    if all(j * total == m * q for j, m in zip(column, masses, strict=True)):
        return arb(0)
    terms = (
        ball(j / q) * ball(j * total / (q * m)).log()
        for j, m in zip(column, masses, strict=True)
        if j
    )
    return sum(terms, arb(0))


def satisfied(problem, solution, criterion) -> bool:
    """Decide a criterion from its definition, on the integers of the returned channel."""
    with flint_context.workprec(200):
        return _satisfied(problem, solution, criterion)


def _satisfied(problem, solution, criterion) -> bool:
    channel = exact_channel(solution)[: problem.alphabet.n]  # the rest is of the law r
    joint, masses = exact_joint(problem, channel)
    unit = arb(2).log() if problem.units == "bits" else arb(1)
    total = sum(masses)
    columns = [c for c in zip(*joint, strict=True) if sum(c)]
    kind = type(criterion).__name__
    if kind == "TCloseness":
        t = ball(Fraction(criterion.t)) * unit
        return all(divergence(c, masses) <= t for c in columns)
    if kind == "LDiversity":
        return (
            all(
                -sum((ball(j / sum(c)) * ball(j / sum(c)).log() for j in c if j), arb(0))
                >= ball(Fraction(criterion.l)).log()
                for c in columns
            )
            or criterion.l == 1
        )
    if kind == "RecordEntropy":
        # every record of a cell that the encoder sees is released alike
        rows = []
        for s, column in enumerate(problem.alphabet.law.T):
            mass = sum(Fraction(float(a)) for a in column)
            rows.append([mass * channel[s][y] for y in range(problem.alphabet.m)])
        masses_x = [sum(row) for row in rows]
        records = problem.source.records
        limit = ball(Fraction(records) / Fraction(criterion.k)).log()
        return all(
            divergence(list(c), masses_x) <= limit for c in zip(*rows, strict=True) if sum(c)
        )
    if kind == "DeltaDisclosure":
        high, low = arb(criterion.delta).exp(), (-arb(criterion.delta)).exp()
        ratios = [
            ball(j * total / (sum(c) * m)) for c in columns for j, m in zip(c, masses, strict=True)
        ]
        exact = all(
            j * total == sum(c) * m for c in columns for j, m in zip(c, masses, strict=True)
        )
        return exact or all(low <= r <= high for r in ratios)
    if kind == "LeakageCap":
        parts = (ball(sum(c) / total) * divergence(c, masses) for c in columns)
        return sum(parts, arb(0)) <= ball(Fraction(criterion.b)) * unit
    if kind == "ConditionalLeakageCap":  # Σ_x of (w, x̂) at that x, each against its own p(w)
        of, parts = problem.alphabet, []
        for x in set(of.x_of.tolist()):
            rows = {}
            for (a, s), mass in np.ndenumerate(of.law):
                if mass and of.x_of[s] == x:
                    row = rows.setdefault(int(of.w_of[a, s]), [Fraction(0)] * of.m)
                    rows[int(of.w_of[a, s])] = [
                        j + Fraction(float(mass)) * k for j, k in zip(row, channel[s], strict=True)
                    ]
            prior = [sum(row) for row in rows.values()]
            parts += [
                ball(sum(c) / total) * divergence(list(c), prior)
                for c in zip(*rows.values(), strict=True)
                if sum(c)
            ]
        return sum(parts, arb(0)) <= ball(Fraction(criterion.c)) * unit
    if kind == "CapacityCap":  # by Arimoto and Blahut, the bound of the other end
        laws = np.array([[float(j) / float(sum(row)) for j in row] for row in joint if sum(row)])
        prior = np.full(len(laws), 1 / len(laws))
        for _ in range(5000):
            law = prior @ laws
            far = np.where(laws > 0, laws * np.log(np.maximum(laws, 1e-300) / law), 0.0).sum(axis=1)
            learnt = float(prior @ far)  # by this prior: the greatest distance is far slower
            prior = prior * np.exp(far - far.max())
            prior /= prior.sum()
        return learnt <= float(criterion.b) * float(unit) + 1e-9
    if kind == "LocalPrivacy":
        factor = arb(criterion.epsilon).exp()
        if criterion.delta is not None:
            return all(
                sum((max(ball(a) - factor * ball(b), arb(0)) for a, b in zip(p, q, strict=True)),
                    arb(0)) <= ball(Fraction(criterion.delta))
                for p, q in itertools.permutations(channel, 2)
            )  # fmt: skip
        if criterion.metric is not None:
            for (i, p), (j, q) in itertools.permutations(enumerate(channel), 2):
                x, other = problem.alphabet.x_of[[i, j]]
                far = ball(Fraction(criterion.metric[x, other]))
                most = (arb(criterion.epsilon) * far).exp()
                if p != q and not all(ball(a) <= most * ball(b) for a, b in zip(p, q, strict=True)):
                    return False
            return True
        return all(ball(max(c)) <= factor * ball(min(c)) for c in zip(*channel, strict=True))
    if kind == "MaximalLeakage":
        top = sum(max(c) for c in zip(*channel, strict=True))
        return top == 1 or ball(top).log() <= ball(Fraction(criterion.b)) * unit
    outputs, x_of = problem.alphabet.d.outputs, problem.alphabet.x_of
    ours = [outputs.index(problem.source.x[x]) for x in x_of]
    if kind == "KeepProbability":
        floors = np.broadcast_to(criterion.p, len(problem.source.x))
        return all(channel[s][ours[s]] >= Fraction(float(floors[x])) for s, x in enumerate(x_of))
    if kind == "ForbiddenMoves":
        return all(
            not channel[s][y] for s, x in enumerate(x_of) for y in range(problem.alphabet.m)
            if criterion.mask[x, y]
        )  # fmt: skip
    letter = [sum(Fraction(float(a)) for a in column) for column in problem.alphabet.law.T]
    released = [
        sum(m * row[y] for m, row in zip(letter, channel, strict=True))
        for y in range(problem.alphabet.m)
    ]
    before = [Fraction(0)] * problem.alphabet.m
    for s, mass in enumerate(letter):
        before[ours[s]] += mass
    if kind == "PreserveMarginal":
        return released == before
    if kind == "MarginalDistance":
        more = sum(max(y - x, 0) for x, y in zip(before, released, strict=True))
        return more <= Fraction(criterion.t) * total
    if kind == "PreserveMean":
        values = [Fraction(float(v)) for v in criterion.values]
        return sum(map(lambda p, v: p * v, released, values)) == sum(
            map(lambda p, v: p * v, before, values)
        )
    assert kind == "Linear"
    matrix = problem.alphabet.per_letter(criterion.matrix)
    value = sum(
        letter[s] * channel[s][y] * Fraction(float(matrix[s, y]))
        for s in range(problem.alphabet.n) for y in range(problem.alphabet.m)
    )  # fmt: skip
    bound = Fraction(criterion.bound) * total
    return value == bound if criterion.sense == "==" else value <= bound


COUNTS = np.array([[30, 12, 5, 3], [6, 14, 9, 4], [2, 5, 16, 21]])


SOURCE = cpv.DiscreteSource.from_counts(COUNTS)


ORDINAL = cpv.ordinal(4)


def kl(joint, p):
    q = cp.sum(joint, axis=0, keepdims=True)
    return cp.sum(cp.rel_entr(joint, p[:, None] @ q), axis=0), cp.sum(joint, axis=0)


def least(*criteria, **options) -> Solution:
    solution = cpv.MinimumDistortion(SOURCE, ORDINAL, criteria, **options).solve(accuracy="high")
    referee.check(solution)
    return solution


def exact_joint_of(solution):
    problem = cpv.MinimumDistortion(SOURCE, ORDINAL, [])
    return exact_joint(problem, exact_channel(solution))


def standing(rule, counts, reference=None, units="bits"):
    """Return the measure of each letter of counted records, and which satisfy a criterion."""
    verdict = rule.verdict(Counts.of_records(counts, units, reference=reference))
    return verdict.values, verdict.met
