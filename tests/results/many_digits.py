"""Another solver of small channel programs: a barrier method in two hundred digits.

Nothing but a program's exact data is shared with the package: no scaling, presolve or float.  Its
multipliers are slopes to some thirty digits, also where a bound is 1e-15 of its range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from cvxprivacy.additive import dense
from cvxprivacy.exact import fractions

BITS = 700
END = arb(10) ** -34  # the gap
STEP = Fraction(1, 2**30)  # of a number, in which rows are all but affine
Numbers = list[Any]


class UnfitError(Exception):
    """A program that this solver does not know, or has no strictly feasible point for."""


class Term(NamedTuple):
    weights: Mapping[str, Numbers]  # of each output
    costs: Numbers
    constant: Any


class Row(NamedTuple):
    term: Term
    output: int | None  # of one alone, or of all
    bound: Any


class Value(NamedTuple):
    value: Any
    gradient: Numbers
    hessian: dict[tuple[int, int], Any]


def number(value: Any) -> Any:
    ctx.prec = BITS  # which what compiles a program sets to less
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def middle(ball: Any) -> Any:
    return arb(ball.mid())


def total(values: Any) -> Any:
    return sum(values, arb(0))


class Reference:
    """A program of information, χ² or Hellinger, of plain inequalities and floors."""

    def __init__(self, program: Any) -> None:
        ctx.prec = BITS
        self.n, self.m = program.n, program.m
        self.size = self.n * self.m
        atoms = fractions(program.law)
        self.atoms = atoms / atoms.sum()
        self.mass = [sum(column, Fraction(0)) for column in self.atoms.T]
        plain = len(program.objectives) == 1 and program.upper is None and program.dense
        if not plain or any(row.sense == "==" for row in program.constraints.values()):
            raise UnfitError("the worst of several, ceilings, or an equality")
        self.views = {name: self._view(view, program) for name, view in program.views.items()}
        (objective,) = program.objectives.values()
        self.objective, self.rows = self._term(objective), list[Row]()
        for row in program.constraints.values():
            term = self._term(row.expression)
            if not row.per_output:
                self.rows.append(Row(term, None, number(row.number) - term.constant))
                continue
            bounds = row.bound if isinstance(row.bound, tuple) else (row.bound,) * self.m
            self.rows += [Row(term, y, number(b)) for y, b in enumerate(bounds)]
        for aux in program.auxiliaries.values():
            self._add_ratios(aux)
        low = np.zeros((self.n, self.m)) if program.lower is None else program.lower
        self.low = [number(x) for x in np.asarray(low, object).ravel()]

    def _view(self, view: Any, program: Any) -> Any:
        kind = type(view.measure).__name__
        if view.reference is not None or kind not in _MEASURES:
            raise UnfitError(kind)
        joint = [[Fraction(0)] * self.n for _ in range(view.size)]
        for (place, s), mass in np.ndenumerate(self.atoms):
            if 0 <= (label := int(view.labels[place, s])) < view.size:
                joint[label][s] += mass
        joint = [row for row in joint if any(row)]
        law = [sum(row, Fraction(0)) for row in joint]
        bits = kind == "MutualInformation" and program.units == "bits"
        unit = 1 / arb(2).log() if bits else arb(1)
        matrix = [[number(x) for x in row] for row in joint]
        return matrix, [number(p / sum(law)) for p in law], _MEASURES[kind], unit

    def _term(self, term: Any) -> Term:
        columns = term.columns(self.m).items()
        weights = {view: [number(x) for x in weight] for view, weight in columns}
        costs = np.zeros((self.n, self.m), object)
        if term.cost is not None:
            table = fractions(dense(term.cost))
            table = table.reshape(-1, *table.shape[-2:])
            masses = self.atoms if len(table) > 1 else np.array([self.mass])
            costs = sum(
                (np.broadcast_to(m[:, None] * layer, costs.shape)
                 for m, layer in zip(masses, table, strict=True)), costs
            )  # fmt: skip
        flat = [number(x) for x in costs.ravel()]
        return Term(weights, flat, number(Fraction(term.constant)))

    def _add_ratios(self, aux: Any) -> None:
        if aux.kind != "ratio":
            raise UnfitError(aux.kind)
        for y in range(self.m):
            for s in range(self.n):
                for other in {*range(self.n)} - {s}:
                    costs = [arb(0)] * self.size
                    costs[s * self.m + y] = arb(1)
                    costs[other * self.m + y] = -number(aux.bound)
                    self.rows.append(Row(Term({}, costs, arb(0)), None, arb(0)))

    # ---- quantities and their derivatives --------------------------------------------------

    def at(self, term: Term, channel: Numbers, output: int | None = None) -> Value:
        m, outputs = self.m, range(self.m) if output is None else [output]
        places = [s * m + y for s in range(self.n) for y in outputs]
        value = total(term.costs[i] * channel[i] for i in places)
        gradient: Numbers = [arb(0)] * self.size
        hessian: dict[tuple[int, int], Any] = {}
        for i in places:
            gradient[i] = term.costs[i]
        for view, weights in term.weights.items():
            matrix, law, measure, unit = self.views[view]
            for y in outputs:
                column = [channel[s * m + y] for s in range(self.n)]
                joint = [total(a * k for a, k in zip(row, column, strict=True)) for row in matrix]
                leaked, slopes, curves = measure(joint, law)
                weight = weights[y] * unit
                value += weight * leaked
                for s in range(self.n):
                    along = [row[s] for row in matrix]
                    i = s * m + y
                    gradient[i] += weight * total(map(_times, slopes, along))
                    bent = [total(map(_times, row, along)) for row in curves]
                    for other in range(self.n):
                        place = i, other * m + y
                        across = [row[other] for row in matrix]
                        more = weight * total(map(_times, bent, across))
                        hessian[place] = hessian.get(place, arb(0)) + more
        return Value(value, gradient, hessian)

    def slacks(self, channel: Numbers) -> Numbers:
        return [row.bound - self.at(row.term, channel, row.output).value for row in self.rows]

    # ---- the barrier method ----------------------------------------------------------------

    def solve(self) -> None:
        ctx.prec = BITS
        channel, mu = self._start(), arb(1)
        pairs = self.size + len(self.rows)
        while True:
            for _ in range(80):
                channel, decrement = self._step(channel, mu)
                if decrement < arb(10) ** -16:
                    break
            else:
                raise UnfitError("no centre")
            if mu * pairs < END:
                break
            mu = mu / 20
        self.channel = channel
        self.floors = [middle(mu / (k - low)) for k, low in zip(channel, self.low, strict=True)]
        self.multipliers = [middle(mu / slack) for slack in self.slacks(channel)]
        self.value = self.at(self.objective, channel).value + self.objective.constant
        self._check()

    def _check(self) -> None:
        """Refuse multipliers that are not stationary: G − z is the same at all outputs (P20)."""
        slopes = self.at(self.objective, self.channel).gradient
        for row, lam in zip(self.rows, self.multipliers, strict=True):
            gradient = self.at(row.term, self.channel, row.output).gradient
            slopes = [a + lam * b for a, b in zip(slopes, gradient, strict=True)]
        reduced = [float(a - z) for a, z in zip(slopes, self.floors, strict=True)]
        table = np.array(reduced).reshape(self.n, self.m) / np.array(self.mass, float)[:, None]
        if np.ptp(table, axis=1).max() > 1e-9:
            raise UnfitError("not stationary")

    def _start(self) -> Numbers:
        n, m = self.n, self.m
        left = [1 - total(self.low[s * m : (s + 1) * m]) for s in range(n)]
        if not all(part > 0 for part in left):
            raise UnfitError("full rows")

        def filled(shares: Any) -> Numbers:
            return [
                self.low[s * m + y] + left[s] * shares(s, y) for s in range(n) for y in range(m)
            ]

        even = filled(lambda s, y: arb(1) / m)
        candidates = [even]
        for costs in [self.objective.costs, *(row.term.costs for row in self.rows)]:
            table = np.array([float(c) for c in costs]).reshape(n, m)
            best, same = table.argmin(axis=1), table.sum(axis=0).argmin()
            candidates.append(filled(lambda s, y, best=best: arb(int(best[s] == y))))
            candidates.append(filled(lambda s, y, same=same: arb(int(same == y))))
        for candidate in candidates:
            for power in range(1, 240, 2):
                share = arb(2) ** -power
                mixed = [
                    middle((1 - share) * a + share * b)
                    for a, b in zip(candidate, even, strict=True)
                ]
                if all(slack > 0 for slack in self.slacks(mixed)):
                    return mixed
        raise UnfitError("no start")

    def _step(self, channel: Numbers, mu: Any) -> tuple[Numbers, Any]:
        """Take a Newton step for f/μ − Σ log slacks, in units of the entries."""
        size, n, m = self.size, self.n, self.m
        room = [k - low for k, low in zip(channel, self.low, strict=True)]
        objective = self.at(self.objective, channel)
        matrix = [[arb(0)] * (size + n) for _ in range(size + n)]

        def add(hessian: Mapping[tuple[int, int], Any], factor: Any) -> None:
            for (i, j), entry in hessian.items():
                matrix[i][j] += factor * entry

        add(objective.hessian, 1 / mu)
        gradient = [g / mu - 1 / r for g, r in zip(objective.gradient, room, strict=True)]
        for row in self.rows:
            value = self.at(row.term, channel, row.output)
            slack = row.bound - value.value
            add(value.hessian, 1 / slack)
            places = [i for i in range(size) if not value.gradient[i].is_zero()]
            for i in places:
                gradient[i] += value.gradient[i] / slack
                for j in places:
                    matrix[i][j] += value.gradient[i] * value.gradient[j] / slack**2
        for i in range(size):
            for j in range(size):
                matrix[i][j] *= room[i] * room[j]
            matrix[i][i] += 1
            gradient[i] *= room[i]
            matrix[size + i // m][i] = matrix[i][size + i // m] = room[i]
        left = arb_mat([[middle(x) for x in row] for row in matrix])
        right = arb_mat([[middle(-x)] for x in [*gradient, *[arb(0)] * n]])
        moves = left.solve(right)
        steps = [middle(moves[i, 0]) for i in range(size)]
        decrement = total(-g * step for g, step in zip(gradient, steps, strict=True))
        here, length = self._merit(channel, mu), arb(1)
        for _ in range(300):
            moved = [
                middle(k + length * r * step)
                for k, r, step in zip(channel, room, steps, strict=True)
            ]
            merit = self._merit(moved, mu)
            least = arb(10) ** -60 * (1 + abs(here))
            if merit is not None and merit <= here - length * decrement / 10 + least:
                return moved, decrement
            length = middle(length / 2)
        raise UnfitError("no step")

    def _merit(self, channel: Numbers, mu: Any) -> Any:
        slacks = self.slacks(channel)
        slacks += [k - low for k, low in zip(channel, self.low, strict=True)]
        if not all(slack > 0 for slack in slacks):
            return None
        barrier = total(slack.log() for slack in slacks)
        return self.at(self.objective, channel).value / mu - barrier

    def lagrangian(self, other: Reference) -> Any:
        """Return f + Σ λ (g − b) + Σ z (floor − K) of these numbers at another's optimum."""
        ctx.prec = BITS
        value = self.at(self.objective, other.channel).value + self.objective.constant
        for row, lam in zip(self.rows, other.multipliers, strict=True):
            value += lam * (self.at(row.term, other.channel, row.output).value - row.bound)
        for floor, low, k in zip(other.floors, self.low, other.channel, strict=True):
            value += floor * (low - k)
        return value


def slope(problem: Any, name: str, typed: Any, reference: Reference) -> float:
    """Return d optimum / d number: that of the Lagrangian, which is all but affine in it."""
    moved = Reference(problem.at(**{name: Fraction(typed) + STEP}).program)
    rise = moved.lagrangian(reference) - reference.lagrangian(reference)
    return float(rise / number(STEP))


# ---- measures: value, gradient and Hessian by J of one output ---------------------------------


def _times(a: Any, b: Any) -> Any:
    return a * b


def _diagonal(entries: Sequence[Any], rest_of: Any) -> list[Numbers]:
    size = range(len(entries))
    return [[(entries[i] if i == j else arb(0)) + rest_of(i, j) for j in size] for i in size]


def _information(joint: Numbers, law: Numbers) -> Any:
    q = total(joint)
    logs = [(j / (p * q)).log() for j, p in zip(joint, law, strict=True)]
    curves = _diagonal([1 / j for j in joint], lambda i, j: -1 / q)
    return total(map(_times, joint, logs)), logs, curves


def _chi_squared(joint: Numbers, law: Numbers) -> Any:
    q, ratios = total(joint), [j / p for j, p in zip(joint, law, strict=True)]
    squares = total(map(_times, joint, ratios))
    slopes = [2 * ratio / q - squares / q**2 - 1 for ratio in ratios]
    curves = _diagonal(
        [2 / (p * q) for p in law],
        lambda i, j: 2 * (squares / q - ratios[i] - ratios[j]) / q**2,
    )
    return squares / q - q, slopes, curves


def _hellinger(joint: Numbers, law: Numbers) -> Any:
    q = total(joint)
    root, roots = q.sqrt(), total((j * p).sqrt() for j, p in zip(joint, law, strict=True))
    halves = [(p / j).sqrt() / 2 for j, p in zip(joint, law, strict=True)]
    slopes = [2 - 2 * half * root - roots / root for half in halves]
    curves = _diagonal(
        [half * root / j for half, j in zip(halves, joint, strict=True)],
        lambda i, j: roots / (2 * q * root) - (halves[i] + halves[j]) / root,
    )
    return 2 * q - 2 * roots * root, slopes, curves


_MEASURES = {
    "MutualInformation": _information,
    "ChiSquared": _chi_squared,
    "SquaredHellinger": _hellinger,
}
