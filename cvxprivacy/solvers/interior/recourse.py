r"""Polyhedral measures in the interior-point method: pairs of their own, eliminated by output.

In the objective or in a row with multiplier λ, a polyhedral measure of weight ω (β λ in a row) is
:math:`\min \{ρ^\top T : T ≥ 0, P T = A J\}` (:mod:`cvxprivacy.leakage.polyhedral`), which adds

.. math:: z = ωρ - P^\top φ, \qquad P T = A J, \qquad T z = μ

for every output, and :math:`M^\top A^\top φ` to the dual equation: φ/ω tells a score.  With
D = T/z and N = P D Pᵀ,

.. math:: Δφ = e + N^{-1} A\, ΔJ + g\, Δω, \qquad g = N^{-1} P D ρ,

so that the block of an output has :math:`M^\top A^\top N^{-1} A M` more, the row's slope
β MᵀAᵀg, and the row itself :math:`-β^2 κ\, Δλ`, κ = (ρ − Pᵀg)ᵀ D (ρ − Pᵀg).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from scipy import sparse

from cvxprivacy.exact import FloatArray
from cvxprivacy.leakage import Polyhedral
from cvxprivacy.solvers.interior.blocks import TINY, factor
from cvxprivacy.solvers.interior.point import Point
from cvxprivacy.solvers.interior.views import Observer

__all__ = ["Elimination", "ExcessTerm", "RecourseTerm", "told"]

_RANK = 1e-13  # least singular value of A M, in terms of the largest
_CENTRING = 40  # steps at the start, at most
_BOUNDARY = 0.9  # share of the way to the boundary there
_NEAR = 1e-3  # relative change of a step that ends them
_REFINED = 2  # times that changes of T are refined
_LEAST = 1e-9  # weight of an output, in terms of the largest


class RecourseTerm:
    """A polyhedral measure in a row, or in the objective (no row's name); arrays by output.

    Attributes
    ----------
    name : str
        Of the pair T, z and of the multipliers φ, in a point.
    lift, matrix : (r, |V|) and (r, t) array
        A and P.
    cost : (t,) array
        ρ.
    weight : (m,) array
        ω in the objective, β in a row.
    """

    tells = True  # the scores of its view

    def __init__(self, view: Observer, measure: Polyhedral, weight: FloatArray, row: str) -> None:
        self.name, self.view, self.row = f"\0recourse {view.name} {row}", view, row
        self.weight = np.maximum(weight, _LEAST * weight.max())
        self.matrix, mass, self.cost = measure.recourse(view.reference)
        x = measure.lifted(np.eye(len(view.reference)), view.reference)
        self.lift = np.eye(len(mass), len(x)) @ x + mass[:, None]

    def omega(self, x: Point) -> FloatArray:
        """Return ω, shape (m,)."""
        return self.weight * x.multiplier(self.row) if self.row else self.weight

    def value(self, x: Point) -> FloatArray:
        """Return ρᵀT, which is F where P T = A J."""
        return x.slack[self.name] @ self.cost

    def priced(self, x: Point) -> FloatArray:
        """Return MᵀAᵀφ, shape (m, k)."""
        return self.view.along(x.equal[self.name] @ self.lift)

    def short(self, x: Point) -> FloatArray:
        """Return A J − P T, shape (m, r)."""
        return self.view.joint(x.q) @ self.lift.T - x.slack[self.name] @ self.matrix.T

    def repriced(self, x: Point) -> FloatArray:
        """Return what MᵀAᵀφ lacks to be ω times scores of the measure."""
        omega, phi = self.omega(x)[:, None], x.equal[self.name]
        inside = omega * self.view.inside(self.told(phi / omega))
        return self.view.along(inside - phi @ self.lift)

    def told(self, multipliers: FloatArray) -> FloatArray:
        """Return the numbers that tell a score."""
        return multipliers[:, : self.view.measure.rows(len(self.view.reference))]

    def centre(self, x: Point, mu: float) -> None:
        """Set T, z and φ where T z = μ, next to the Q and the λ of a point."""
        joint = self.view.joint(x.q)
        x.slack[self.name] = joint.sum(axis=1, keepdims=True) * np.ones_like(self.cost)
        x.price[self.name] = mu / x.slack[self.name]
        x.equal[self.name] = np.zeros((len(joint), len(self.lift)))
        for _ in range(_CENTRING):
            own = Elimination(self, x)
            own.aim(np.full_like(own.t, mu), 1.0)
            step = own.changes(np.zeros(own.rows.shape[:2]), 0.0 * x.q, 0.0)
            worst = float(max((-step[0] / own.t).max(), (-step[1] / own.z).max()))
            length = min(1.0, _BOUNDARY / max(worst, TINY))
            for have, change in zip((x.slack, x.price, x.equal), step, strict=True):
                have[self.name] = have[self.name] + length * change
            if worst < _NEAR:
                return

    @cached_property
    def squares(self) -> sparse.csr_array:
        """What takes D to the entries of P D Pᵀ, (r r, t): few of either are not 0."""
        matrix = sparse.csr_array(self.matrix)
        return sparse.csr_array(sparse.vstack([matrix.multiply(row[None]) for row in self.matrix]))

    @cached_property
    def span(self) -> tuple[FloatArray, FloatArray]:
        """A M as a product of full rank, (r, i) and (i, n)."""
        left, singular, right = np.linalg.svd(self.lift @ self.view.matrix, full_matrices=False)
        rank = int((singular > _RANK * singular[0]).sum())
        return left[:, :rank] * singular[:rank], self.view.layout.gathered(right[:rank])


class ExcessTerm(RecourseTerm):
    """What a marginal, as the only label of a view, has above the level of each output."""

    tells = False

    def __init__(self, view: Observer, levels: FloatArray, row: str) -> None:
        self.name, self.view, self.row = f"\0recourse {view.name} {row}", view, row
        self.weight, self.levels = np.ones(len(levels)), levels[:, None]
        self.matrix, self.cost = np.array([[1.0, -1.0]]), np.array([1.0, 0.0])
        self.lift = np.eye(1)

    def short(self, x: Point) -> FloatArray:
        """Return A J − b − P T, shape (m, 1)."""
        return super().short(x) - self.levels

    def repriced(self, x: Point) -> FloatArray:
        """Return what Mᵀφ lacks to have 0 ≤ φ ≤ ω."""
        omega, phi = self.omega(x)[:, None], x.equal[self.name]
        return self.view.along(np.clip(phi, 0.0, omega) - phi)


def told(recourses: Iterable[RecourseTerm], x: Point) -> dict[str, FloatArray]:
    """Return what tells the scores of every view, (m, rows): a mean over its terms."""
    found: dict[str, list[FloatArray]] = {}
    for recourse in (recourse for recourse in recourses if recourse.tells):
        own = [recourse.told(x.equal[recourse.name]), recourse.omega(x)[:, None]]
        before = found.setdefault(recourse.view.name, [0.0 * part for part in own])
        found[recourse.view.name] = [a + b for a, b in zip(before, own, strict=True)]
    return {name: phi / omega for name, (phi, omega) in found.items()}


class Elimination:
    """A recourse at a point, with T, z and φ eliminated.

    Attributes
    ----------
    rows : (m, r, k) array
        Rows of which the square is MᵀAᵀN⁻¹AM.
    slope : (m, k) array
        MᵀAᵀg.
    give : (m,) array
        κ.
    """

    def __init__(self, recourse: RecourseTerm, x: Point) -> None:
        self.recourse = recourse
        self.t, self.z, phi = x.slack[recourse.name], x.price[recourse.name], x.equal[recourse.name]
        matrix, cost = recourse.matrix, recourse.cost
        self.ratio = self.t / self.z
        self.short = recourse.short(x)
        self.over = recourse.omega(x)[:, None] * cost - self.z - phi @ matrix
        inner = (recourse.squares @ self.ratio.T).T.reshape(-1, len(matrix), len(matrix))
        lower, scale = factor(inner)
        self.half = np.linalg.inv(lower) * scale[:, None, :]
        reached, basis = recourse.span
        self.basis, root = np.linalg.qr(self.half @ reached)
        self.rows = root @ basis
        self.gain = self._solved((self.ratio * cost) @ matrix.T)
        self.slope = recourse.view.along(self.gain @ recourse.lift)
        self.give = (self.ratio * (cost - self.gain @ matrix) ** 2).sum(axis=1)

    def _solved(self, right: FloatArray) -> FloatArray:
        """Return N⁻¹ right."""
        return np.einsum("yri,yr->yi", self.half, np.einsum("yri,yi->yr", self.half, right))

    def aim(self, target: FloatArray, weight: float) -> None:
        """Take up the products to reach, and the share of residuals to remove."""
        matrix = self.recourse.matrix
        self.weight = weight
        self.moved = target / self.z - self.t - weight * self.ratio * self.over
        self.base = self._solved(weight * self.short - self.moved @ matrix.T)

    def priced(self) -> FloatArray:
        """Return MᵀAᵀe."""
        return self.recourse.view.along(self.base @ self.recourse.lift)

    def spent(self) -> FloatArray:
        """Return what ρᵀΔT is without ΔJ and Δω, (m,)."""
        moved = self.moved + self.ratio * (self.base @ self.recourse.matrix)
        return moved @ self.recourse.cost

    def changes(
        self, reached: FloatArray, change: FloatArray, omega: FloatArray | float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ΔT, Δz and Δφ of the rows times ΔQ, of ΔQ itself and of Δω.

        Where N⁻¹ is large A ΔJ is next to nothing, and the rows times ΔQ are known better; where
        D is large ΔT is refined, so that P T = A J holds.
        """
        recourse, more = self.recourse, np.asarray(omega)[..., None]
        phi = np.einsum("yri,yr->yi", self.half, np.einsum("yri,yi->yr", self.basis, reached))
        phi = self.base + phi + self.gain * more
        beyond = recourse.cost * more - phi @ recourse.matrix
        t = self.moved - self.ratio * beyond
        target = self.weight * self.short + recourse.view.joint(change) @ recourse.lift.T
        for _ in range(_REFINED):
            missed = self._solved(target - t @ recourse.matrix.T)
            t = t + self.ratio * (missed @ recourse.matrix)
        return t, self.weight * self.over + beyond, phi
