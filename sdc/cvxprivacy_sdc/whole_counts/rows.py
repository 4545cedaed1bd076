"""A row of a channel program at whole counts: its value, and the tangents that stand for it.

⟨C, J⟩ + Σ α F(J) ≤ b is ⟨C + α s, J⟩ ≤ b for every score s ∈ 𝒮 (P10).  What a solution breaks is
cut off by the score that is tight on the way from it to the law at large, where the row begins to
hold (Duran and Grossmann 1986).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Constraint
from cvxprivacy_sdc.whole_counts.moves import Places

__all__ = ["TableRow", "shares"]

_HALVINGS = 40
_STEEPEST = 100.0  # f' of next to nothing: a logarithm is less
_MANY = 3  # values of which a sum is taken apart: of two, one tangent is as good


def shares(program: ChannelProgram, view: str) -> FloatArray:
    """Return p(v | s), shape (|V|, n)."""
    law: FloatArray = program.view_matrix(view).toarray() / program.mass
    return law


class TableRow:
    """A constraint of a program: its value at the letters' masses u(s, x̂), and its tangents."""

    def __init__(self, program: ChannelProgram, row: Constraint) -> None:
        self.row, self.program = row, program
        self.cost = np.asarray(program.cost(row.expression))
        self.weights = row.expression.columns(program.m)
        self.shares = {view: shares(program, view) for view in self.weights}
        self.bound = np.broadcast_to(row.bounds(program.m), program.m)
        self.constant = float(row.expression.constant)
        numbers = [self.cost, self.bound, *self.weights.values()]
        self.alike = all((each == each[..., :1]).all() for each in numbers)  # of all outputs

    @classmethod
    def minimised(cls, program: ChannelProgram) -> TableRow:
        """Return the objective as a row, of whatever bound."""
        return cls(program, Constraint(program.objectives[""], "<=", Fraction(0)))

    def values(self, u: FloatArray, outputs: Places) -> FloatArray:
        """Return what each of some outputs contributes, u of shape (n, outputs)."""
        value: FloatArray = (self.cost[:, outputs] * u).sum(axis=0)
        for view, weight in self.weights.items():
            measure, reference = self.program.views[view].measure, self.program.reference(view)
            leaked = measure.value(self.shares[view] @ u, reference) * self.program.unit(view)
            value = value + weight[outputs] * leaked
        return value

    def total(self, counts: Places) -> float:
        """Return the sum over all outputs, times the records, at whole counts (n, m)."""
        outputs, records = np.flatnonzero(counts.sum(axis=0)), int(counts.sum())
        return float(self.values(counts[:, outputs] / records, outputs).sum() * records)

    def tangents(self, u: FloatArray, outputs: Places) -> FloatArray:
        """Return coefficients (n, outputs) of rows ≤ the row itself that are equal to it at u."""
        slope = self.cost[:, outputs].copy()
        for view, weight in self.weights.items():
            measure, reference = self.program.views[view].measure, self.program.reference(view)
            scores = measure.scores(self.shares[view] @ u, reference)
            unit = weight[outputs] * self.program.unit(view)
            slope += unit * (self.shares[view].T @ measure.inside(scores, reference))
        return slope

    @cached_property
    def view(self) -> str | None:
        """The view whose values the row is a sum over, Σ_v π q f(J_v/π q), if there are many."""
        if len(self.weights) != 1 or self.forbids_all:
            return None
        [view] = self.weights
        tangent = self._tangent(np.zeros(1))
        few = len(self.shares[view]) < _MANY
        # a slope without end, as of a root, touches the row nowhere near no records
        return None if few or tangent is None or abs(tangent[0][0]) > _STEEPEST else view

    def _tangent(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        [view] = self.weights
        return self.program.views[view].measure.tangent(ratio)

    def tangents_of_values(self, ratio: FloatArray, y: int) -> FloatArray:
        """Return coefficients (|V|, n) below what each value v adds at an output, tight at t(v)."""
        [view] = self.weights
        share, reference = self.shares[view], self.program.reference(view)
        tangent = self._tangent(ratio)
        assert tangent is not None
        slope, conjugate = tangent
        unit = float(self.weights[view][y] * self.program.unit(view))
        return unit * (slope[:, None] * share - np.outer(conjugate * reference, share.sum(axis=0)))

    def ratios(self, u: FloatArray) -> FloatArray:
        """Return t(v) = J_v/π q of an output, u of shape (n,)."""
        [view] = self.weights
        joint = self.shares[view] @ u
        ratio: FloatArray = joint / (self.program.reference(view) * joint.sum())
        return ratio

    def edge(self, u: FloatArray, outputs: Places) -> FloatArray:
        """Return where the row begins to hold between u and as much mass of the law at large."""
        law = self.program.mass[:, None] * u.sum(axis=0)
        low, high, bound = np.zeros(len(outputs)), np.ones(len(outputs)), self.bound[outputs]
        for _ in range(_HALVINGS):
            half = (low + high) / 2
            holds = self.values(law + half * (u - law), outputs) <= bound
            low, high = np.where(holds, half, low), np.where(holds, high, half)
        return law + np.maximum(high, 1e-3) * (u - law)

    def independent(self) -> Iterator[FloatArray]:
        """Yield what is 0 where J = π q, by letters (n,): of a row that allows nothing else."""
        [view] = self.weights
        law, reference = self.shares[view], self.program.reference(view)
        for share, prior in zip(law[:-1], reference[:-1].tolist(), strict=True):
            yield share - prior * law.sum(axis=0)

    @property
    def forbids_all(self) -> bool:
        """Whether nothing but independence satisfies it: a divergence of at most 0."""
        if len(self.weights) != 1 or self.cost.any() or not self.row.per_output:
            return False
        [view] = self.weights
        return self.program.views[view].measure.divergence and not self.bound.any()
