r"""A channel program as the interior-point method reads it: scaled, outputs first.

Arrays are (m, k): a row for each output, k = n where all entries are there.  Information is in
nats, the objective in its own scale, every constraint in its span.  A point has the joint mass Q,
the scores s = log(posterior/π) of each view as independent unknowns, and pairs of a slack and its
price, all positive:

.. math::
   \begin{aligned}
   \text{(dual)}      \quad & \sum_k ω_k\, s_k M_k + C_0 + \sum_j λ_j C_j - ν - z + w = 0, \\
   \text{(primal)}    \quad & \sum_y Q = p, \qquad f_j(Q) + σ_j = b_j, \\
   \text{(posterior)} \quad & s_k = \log(J_k / π_k q_k), \\
   \text{(pairs)}     \quad & (Q - \mathrm{lo})\, z = (\mathrm{hi} - Q)\, w = μ a,\quad σ_j λ_j = μ,
   \end{aligned}

with ω_k = α_k + Σ_j λ_j β_jk.  An auxiliary adds a level for each output (a_y or u_y) and a pair
for each of the entries that it bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.model.information import nat
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.worst import first_part
from cvxprivacy.solvers.interior_blocks import TINY
from cvxprivacy.solvers.interior_layout import Layout

__all__ = ["Level", "Observer", "Point", "Row", "ScaledProgram", "labels_differ"]

LOW, HIGH = "\0low", "\0high"  # pairs of entries with their bounds; no row has such a name

ByName = dict[str, FloatArray]


def labels_differ(matrix: Any) -> bool:
    """Tell whether a view, dense or sparse, sees no two letters under one label, as a rate's."""
    on = matrix > 0
    return bool(on.shape[0] > 1 and on.sum(axis=0).max() <= 1 and on.sum(axis=1).max() <= 1)


@dataclass(frozen=True, eq=False)
class Observer:
    """A view: M (|V|, n) with columns p(v | s), its reference π, and how M is best kept.

    ``label`` is the one label of each letter (−1: none) where labels differ by letter, as for a
    rate; elsewhere M = ``left @ right`` where that is of lower rank.
    """

    name: str
    matrix: FloatArray
    reference: FloatArray
    layout: Layout

    @cached_property
    def columns(self) -> FloatArray:
        """M, or for each output the columns of its letters."""
        return self.layout.gathered(self.matrix)

    @cached_property
    def sums(self) -> FloatArray:
        """Σ_v p(v | s) of every entry."""
        return self.layout.spread(self.matrix.sum(axis=0))

    def joint(self, q: FloatArray) -> FloatArray:
        """Return J = M q of every output, shape (m, |V|)."""
        if self.layout.letters is None:
            return q @ self.matrix.T
        return (self.columns @ q[:, :, None])[:, :, 0]

    def along(self, s: FloatArray) -> FloatArray:
        """Return Mᵀ s of every output, s (m, |V|)."""
        if self.layout.letters is None:
            return s @ self.matrix
        return (s[:, None, :] @ self.columns)[:, 0, :]

    @cached_property
    def label(self) -> np.ndarray | None:
        if not labels_differ(self.matrix):
            return None
        on = self.matrix > 0
        return np.where(on.any(axis=0), on.argmax(axis=0), -1)

    @cached_property
    def factors(self) -> tuple[FloatArray, FloatArray] | None:
        """(|V|, r) and (r, n) or (m, r, k) with product M, if r is well below both sizes."""
        if min(self.matrix.shape) < 16:
            return None
        left, singular, right = np.linalg.svd(self.matrix, full_matrices=False)
        rank = int((singular > 1e-13 * singular[0]).sum())
        if rank > 0.8 * min(self.matrix.shape):
            return None
        return left[:, :rank] * singular[:rank], self.layout.gathered(right[:rank])


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


@dataclass(eq=False)
class Point:
    """A point, or a step: Q, ν, scores, multipliers of equalities, levels, slacks and prices."""

    q: FloatArray
    nu: FloatArray
    scores: list[FloatArray]
    equal: ByName
    levels: ByName
    slack: ByName
    price: ByName

    def moved(self, step: Point, t: float) -> Point:
        return Point(
            *(_moved(getattr(self, f.name), getattr(step, f.name), t) for f in fields(self))
        )

    def multiplier(self, name: str) -> FloatArray:
        return self.price[name] if name in self.price else self.equal[name]

    def longest(self, step: Point) -> float:
        """Return the length at which a slack or a price is 0."""
        most = np.inf
        for have, change in ((self.slack, step.slack), (self.price, step.price)):
            for name, value in have.items():
                ratio = np.divide(change[name], value, out=np.zeros(value.shape), where=value > 0)
                if (least := float(ratio.min())) < 0:
                    most = min(most, -1.0 / least)
        return most


def _moved(have: Any, step: Any, t: float) -> Any:
    if isinstance(have, dict):
        return {k: v + t * step[k] for k, v in have.items()}
    return (
        [v + t * d for v, d in zip(have, step, strict=True)]
        if isinstance(have, list)
        else have + t * step
    )


class ScaledProgram:
    """See the module's docstring; without ``layout``, of all entries."""

    def __init__(self, program: ChannelProgram, layout: Layout | None = None) -> None:
        self.program = program
        self.layout = layout = layout or Layout.whole(program.n, program.m)
        self.n, self.m, shape, unit = program.n, layout.m, layout.shape, nat(program.units)
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
        self.views = [
            Observer(
                name,
                program.view_matrix(name).toarray() / program.mass,
                program.reference(name),
                layout,
            )
            for name in program.views
        ]
        place = {view.name: i for i, view in enumerate(self.views)}
        self.cost = layout.take(program.cost(first_part(program.objective))) / program.scale
        self.weights = {
            place[name]: weight[layout.outputs] * unit / program.scale
            for name, weight in first_part(program.objective).columns(program.m).items()
        }
        self.rows: dict[str, Row] = {}
        for name, row in program.constraints.items():
            self.rows[name] = _row(program, layout, row, place)
        self.levels: dict[str, Level] = {}
        for name, aux in program.auxiliaries.items():
            sides = (f"\0below {name}", 1.0, 1.0), (f"\0above {name}", -1.0, aux.bound)
            ratio = aux.kind == "ratio"
            above = (f"\0above {name}", -1.0, 1.0)
            self.levels[name] = Level(sides if ratio else (above,), None if ratio else aux.bound)
        a = np.sqrt(self.n * program.mass)
        self.share = layout.spread(a / a.mean())  # of μ that a letter's pairs have

    @cached_property
    def shares(self) -> ByName:
        """The weight of every pair: its product on the central path is that times μ; 0: no pair."""
        shares = {LOW: np.where(self.free, self.share, 0.0)}
        if self.capped.any():
            shares[HIGH] = np.where(self.capped, self.share, 0.0)
        for name, row in self.rows.items():
            if not row.equal:
                shares[name] = np.ones(self.m if row.per_output else ())
        for name, level in self.levels.items():
            for side, *_ in level.sides:
                shares[side] = np.where(self.layout.present, self.share, 0.0)
            if level.total is not None:
                shares[name] = np.ones(())
        return shares

    @cached_property
    def count(self) -> float:
        return float(sum(share.sum() for share in self.shares.values()))

    def complementarity(self, x: Point) -> float:
        """Return Σ slack · price."""
        return float(sum((x.slack[name] * x.price[name]).sum() for name in x.slack))

    # ---- a point -------------------------------------------------------------------------

    def joints(self, q: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return J and log(J/(π q)) of each view."""
        joint = [np.maximum(view.joint(q), TINY) for view in self.views]
        logs = [
            np.log(j / np.maximum(view.reference * j.sum(axis=1, keepdims=True), TINY))
            for view, j in zip(self.views, joint, strict=True)
        ]
        return joint, logs

    def information(self, joint: list[FloatArray], logs: list[FloatArray]) -> list[FloatArray]:
        """Return Φ of each view, (m,), from what :meth:`joints` returns."""
        return [(j * log).sum(axis=1) for j, log in zip(joint, logs, strict=True)]

    def excess(self, name: str, q: FloatArray, information: list[FloatArray]) -> FloatArray:
        """Return f − b of a row."""
        row = self.rows[name]
        columns = np.einsum("yk,yk->y", row.cost, q)
        for i, weight in row.weights.items():
            columns = columns + weight * information[i]
        return row.total(columns) - row.bound

    def proposal(self, x: Point, objective: int = 1) -> tuple[FloatArray, Dual]:
        """Return channel and multipliers in the program's own scale."""
        scale, m, layout = self.program.scale, self.program.m, self.layout
        scores = {v.name: layout.widened(s, m).T for v, s in zip(self.views, x.scores, strict=True)}
        multipliers = {
            name: layout.widened(np.asarray(x.multiplier(name)), m) * scale / row.span
            for name, row in self.rows.items()
        }
        auxiliaries = {
            name: [layout.put(x.price[side], m) * scale for side, *_ in level.sides]
            for name, level in self.levels.items()
        }
        channel = layout.put(x.q / layout.spread(layout.total(x.q)), m)
        return channel, Dual(scores, multipliers, auxiliaries, objective)


def _row(program: ChannelProgram, layout: Layout, row: Constraint, place: Mapping[str, int]) -> Row:
    cost, weights = program.cost(row.expression), row.expression.columns(program.m)
    base = np.zeros(program.n) if row.per_output else cost.min(axis=1)
    cost = cost - base[:, None]  # row sums are fixed: what all moves of a letter cost is no choice
    unit = nat(program.units)
    information = sum(float(np.max(w, initial=0.0)) for w in weights.values()) * unit
    span = float(np.abs(cost).max() + information) or 1.0
    constant = float(row.expression.constant) + float(base @ program.mass)
    bound = (row.bounds(program.m) - constant) / span
    if row.per_output:
        bound = bound[layout.outputs]
    by_view = {
        place[view]: weight[layout.outputs] * unit / span for view, weight in weights.items()
    }
    cost = layout.take(cost) / span
    return Row(cost, by_view, bound, span, row.sense == "==", row.per_output)
