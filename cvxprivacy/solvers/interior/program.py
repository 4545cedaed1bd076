r"""A channel program as the interior-point method reads it: scaled, outputs first.

Arrays are (m, k): a row for each output, k = n where all entries are there.  Information is in
nats, the objective in its own scale, every constraint in its span.  A point has the joint mass Q,
the scores s of each smooth view as independent unknowns, log(posterior/π) for information, and
pairs of a slack and its price, all positive:

.. math::
   \begin{aligned}
   \text{(N1, dual)}      \quad & \sum_k ω_k\, s_k M_k + C_0 + \sum_j λ_j C_j - ν - z + w = 0, \\
   \text{(N2, N3, primal)} \quad & \sum_y Q = p, \qquad f_j(Q) + σ_j = b_j, \\
   \text{(N4, posterior)} \quad & s_k = ∇F_k(J_k), \\
   \text{(N5, pairs)} \quad & (Q - \mathrm{lo})\, z = (\mathrm{hi} - Q)\, w = μ a,\; σ_j λ_j = μ,
   \end{aligned}

with ω_k = α_k + Σ_j λ_j β_jk.  An auxiliary adds a level for each output (a_y or u_y) and a pair
for each of the entries that it bounds (N7, N8), and a polyhedral measure what
:mod:`~cvxprivacy.solvers.interior.recourse` says.  Of the worst of several objectives each is a row
f_k(Q) − τ + σ_k = 0 with Σ λ_k = 1 (N9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from cvxprivacy.exact import TINY, FloatArray, floats
from cvxprivacy.leakage import Polyhedral, Smooth
from cvxprivacy.programs.channel import INFORMATION, ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.side_conditions import Excess
from cvxprivacy.solvers.interior.point import HIGH, LOW, WORST, ByName, Layout, Point
from cvxprivacy.solvers.interior.recourse import ExcessTerm, RecourseTerm, parameters
from cvxprivacy.solvers.interior.views import Observer, SmoothView

__all__ = ["Level", "Row", "ScaledProgram"]


@dataclass(frozen=True, eq=False)
class Row:
    """A constraint f(Q) ≤ b or = b in its span: cost (m, k), weights of information by view."""

    cost: FloatArray
    weights: Mapping[int, FloatArray]
    bound: FloatArray
    span: float
    equal: bool
    per_output: bool

    def total(self, columns: FloatArray) -> FloatArray:
        """Return the sum over outputs, or the values per output if it is one row for each."""
        return columns if self.per_output else np.asarray(columns.sum())


@dataclass(frozen=True, eq=False)
class Level:
    """An auxiliary's level a_y, and the bounds ±(Q − factor p a) ≥ 0 that it sets on entries."""

    sides: tuple[tuple[str, float, float], ...]  # name of the pair, sign, factor
    total: float | None  # bound of Σ_y a_y, or none


class ScaledProgram:
    """See the module's docstring; without ``layout``, of all outputs that may have mass."""

    def __init__(self, program: ChannelProgram, layout: Layout | None = None) -> None:
        self.program = program
        self.layout = layout = layout or Layout(program.n, _possible(program))
        self.n, self.m, shape = program.n, layout.m, layout.shape
        self.mass, mass = program.mass, layout.spread(program.mass)
        self.masses = mass  # of every entry's letter
        self.low, self.high = np.zeros(shape), np.full(shape, np.inf)
        if program.floor is not None:
            self.low = mass * layout.take(program.floor)
        if program.ceiling is not None:
            ceiling = layout.take(program.ceiling)
            self.high = np.where(ceiling < 1, mass * ceiling, np.inf)
        filled = program.mass - layout.total(self.low) <= 1e-14 * program.mass  # no choice is left
        self.free = (self.high > self.low) & ~layout.spread(filled) & layout.present
        self.capped = self.free & np.isfinite(self.high)
        observers = _observers(program, layout)
        self.views = [view for view in observers.values() if isinstance(view, SmoothView)]
        self.recourses: dict[str, RecourseTerm] = {}
        self.cost, self.weights = np.zeros(shape), {}
        self.rows: dict[str, Row] = {}
        self.worst: dict[str, str] = {}  # names of objectives, by those of their rows
        if isinstance(program.objective, Expression):
            self.cost = layout.take(program.cost(program.objective)) / program.scale
            self.weights = self._weights(observers, program.objective, program.scale)
        else:
            for objective, part in program.objectives.items():
                self.worst[name := f"{WORST} {objective}"] = objective
                below = Constraint(part, "<=", Fraction(0))  # … τ, in the scale of that
                self.rows[name] = self._row(observers, below, name, program.scale)
        for name, row in program.constraints.items():
            self.rows[name] = self._row(observers, row, name)
        self.levels: dict[str, Level] = {}
        self.excesses: dict[str, ExcessTerm] = {}
        for name, aux in program.auxiliaries.items():
            if isinstance(aux, Excess):
                marginal = Observer(name, floats(aux.share)[None], np.ones(1), layout, INFORMATION)
                excess = ExcessTerm(marginal, floats(aux.levels)[layout.outputs], name)
                self.recourses[excess.name] = self.excesses[name] = excess
                bound = np.asarray(float(aux.bound))
                self.rows[name] = Row(np.zeros(shape), {}, bound, 1.0, False, False)
                continue
            sides = (f"\0below {name}", 1.0, 1.0), (f"\0above {name}", -1.0, aux.bound)
            ratio = aux.kind == "ratio"
            above = (f"\0above {name}", -1.0, 1.0)
            self.levels[name] = Level(sides if ratio else (above,), None if ratio else aux.bound)
        a = np.sqrt(self.n * program.mass)  # (N6): without it masses of three orders do not end
        self.share = layout.spread(a / a.mean())  # of μ that a letter's pairs have

    def _row(
        self, observers: Mapping[str, Observer], row: Constraint, name: str, span: float = 0.0
    ) -> Row:
        cost, bound, span = _linear(self.program, self.layout, row, span)
        weights = self._weights(observers, row.expression, span, name)
        return Row(cost, weights, bound, span, row.sense == "==", row.per_output)

    def _weights(
        self, observers: Mapping[str, Observer], term: Expression, span: float, row: str = ""
    ) -> dict[int, FloatArray]:
        """Return weights of smooth views by their place, and take up the recourses of others."""
        weights = {}
        place = {view.name: i for i, view in enumerate(self.views)}
        for name, columns in term.columns(self.program.m).items():
            weight = columns[self.layout.outputs] * self.program.unit(name) / span
            view = observers[name]
            if name in place:
                weights[place[name]] = weight
            elif isinstance(view.measure, Polyhedral) and weight.any():
                recourse = RecourseTerm(view, view.measure, weight, row)
                self.recourses[recourse.name] = recourse
        return weights

    @cached_property
    def shares(self) -> ByName:
        """The weight of every pair: its product on the central path is that times μ; 0: no pair."""
        shares = {LOW: np.where(self.free, self.share, 0.0)}
        if self.capped.any():
            shares[HIGH] = np.where(self.capped, self.share, 0.0)
        for name, row in self.rows.items():
            if not row.equal:
                shares[name] = (
                    np.full(self.m, self.share_of_rows) if row.per_output else np.ones(())
                )
        for name, level in self.levels.items():
            for side, *_ in level.sides:
                shares[side] = np.where(self.layout.present, self.share, 0.0)
            if level.total is not None:
                shares[name] = np.ones(())
        for name, recourse in self.recourses.items():
            shares[name] = np.ones((self.m, len(recourse.cost)))
        return shares

    @cached_property
    def count(self) -> float:
        return float(sum(share.sum() for share in self.shares.values()))

    @property
    def share_of_rows(self) -> float:
        """√(n/r), if r rows of single outputs are of each (N6)."""
        count = sum(row.per_output and not row.equal for row in self.rows.values())
        return float(np.sqrt(self.n / count))

    def complementarity(self, x: Point) -> float:
        """Return Σ slack · price."""
        return float(sum((x.slack[name] * x.price[name]).sum() for name in x.slack))

    # ---- a point -------------------------------------------------------------------------

    def joints(self, q: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return J and ∇F, log(J/(π q)) for information, of each smooth view."""
        joint = [np.maximum(view.joint(q), TINY) for view in self.views]
        return joint, [view.gradient(j) for view, j in zip(self.views, joint, strict=True)]

    def information(self, joint: list[FloatArray], gradients: list[FloatArray]) -> list[FloatArray]:
        """Return Φ of each smooth view, (m,), from what :meth:`joints` returns."""
        return [(j * s).sum(axis=1) for j, s in zip(joint, gradients, strict=True)]

    def excess(self, name: str, x: Point, information: list[FloatArray]) -> FloatArray:
        """Return f − b of a row."""
        row, left = self.rows[name], self.left(name, x.q, information)
        for recourse in self.recourses_of(name):
            left = left + row.total(recourse.weight * recourse.value(x))
        level = x.levels[WORST] if name in self.worst else 0.0
        return left - row.bound - level

    def left(self, name: str, q: FloatArray, information: list[FloatArray]) -> FloatArray:
        """Return what costs and smooth measures are on the left of a row."""
        row = self.rows[name]
        columns = np.einsum("yk,yk->y", row.cost, q)
        for i, weight in row.weights.items():
            columns = columns + weight * information[i]
        return row.total(columns)

    def recourses_of(self, row: str) -> list[RecourseTerm]:
        """Return the recourses in a row, or in the objective if the name is empty."""
        return [recourse for recourse in self.recourses.values() if recourse.row == row]

    def proposal(self, x: Point, objective: int = 1) -> tuple[FloatArray, Dual]:
        """Return channel and multipliers in the program's scale."""
        scale, m, layout = self.program.scale, self.program.m, self.layout
        by_view = {v.name: v.parameters(s) for v, s in zip(self.views, x.scores, strict=True)}
        by_view.update(parameters(self.recourses.values(), x))
        scores = {name: layout.widened(s, m).T for name, s in by_view.items()}
        multipliers = {
            name: layout.widened(np.asarray(x.multiplier(name)), m) * scale / row.span
            for name, row in self.rows.items()
            if name not in self.worst and name not in self.excesses
        }
        auxiliaries = {
            name: [layout.put(x.price[side], m) * scale for side, *_ in level.sides]
            for name, level in self.levels.items()
        }
        for name, excess in self.excesses.items():
            auxiliaries[name] = [layout.widened(x.equal[excess.name][:, 0], m) * scale]
        shares = {name: float(x.price[row]) for row, name in self.worst.items()}
        total = sum(shares.values())
        shares = {name: share / total for name, share in shares.items()}
        channel = layout.put(x.q / layout.spread(layout.total(x.q)), m)
        return channel, Dual(scores, multipliers, auxiliaries, objective, shares)


def _possible(program: ChannelProgram) -> np.ndarray:
    """Return the outputs that some letter may be released as."""
    possible = np.ones((program.n, program.m), dtype=bool)
    if program.ceiling is not None:
        possible &= program.ceiling > 0
    if program.floor is not None:
        possible &= (program.floor > 0) | (program.floor.sum(axis=1, keepdims=True) < 1.0 - 1e-14)
    return np.nonzero(possible.any(axis=0))[0]


def _observers(program: ChannelProgram, layout: Layout) -> dict[str, Observer]:
    """Return the views that the objective or a row weighs."""
    rows = (row.expression for row in program.constraints.values())
    terms = [*program.objectives.values(), *rows]
    observers: dict[str, Observer] = {}
    for name in {view: None for term in terms for view in term.weights}:
        matrix = program.view_matrix(name).toarray() / program.mass
        data = name, matrix, program.reference(name), layout
        measure = program.views[name].measure
        if isinstance(measure, Smooth):
            observers[name] = SmoothView(*data, measure)
        else:
            observers[name] = Observer(*data, measure)
    return observers


def _linear(
    program: ChannelProgram, layout: Layout, row: Constraint, span: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return a row's cost and bound in its span, and that, unless it is chosen."""
    cost = program.cost(row.expression)
    base = np.zeros(program.n) if row.per_output else cost.min(axis=1)
    cost = cost - base[:, None]  # row sums are fixed: what all moves of a letter cost is no choice
    span = span or float(np.abs(cost).max() + sum(program.sizes(row.expression))) or 1.0
    constant = float(row.expression.constant) + float(base @ program.mass)
    bound = (row.bounds(program.m) - constant) / span
    if row.per_output:
        bound = bound[layout.outputs]
    return layout.take(cost) / span, bound, span
