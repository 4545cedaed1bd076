r"""Polyhedral measures in the interior-point method: pairs of their own, eliminated by output.

In the objective or in a row with multiplier λ, a polyhedral measure of weight ω (β λ in a row) is
:math:`\min \{ρ^\top T : T ≥ 0, P T = A J\}` (:mod:`cvxprivacy.leakage.base`), which adds

.. math:: z = ωρ - P^\top φ, \qquad P T = A J, \qquad T z = μ

for every output (N20), and :math:`M^\top A^\top φ` to the dual equation: φ/ω tells a score.  With
D = T/z and N = P D Pᵀ,

.. math:: Δφ = e + N^{-1} A\, ΔJ + g\, Δω, \qquad g = N^{-1} P D ρ,

(N21) so that the block of an output has :math:`M^\top A^\top N^{-1} A M` more, the row's gradient
β MᵀAᵀg, and the row itself :math:`-β^2 κ\, Δλ`, κ = (ρ − Pᵀg)ᵀ D (ρ − Pᵀg) (N22).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from scipy import sparse

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.leakage import Polyhedral
from cvxprivacy.settings import InteriorPoint
from cvxprivacy.solvers.interior.blocks import factor
from cvxprivacy.solvers.interior.point import Point
from cvxprivacy.solvers.interior.views import Observer

__all__ = ["Elimination", "ExcessTerm", "RecourseTerm", "parameters"]

_RANK = 1e-13  # least singular value of A M, in terms of the largest


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

    scored = True  # its multipliers are those of its view's scores

    def __init__(self, view: Observer, measure: Polyhedral, weight: FloatArray, row: str) -> None:
        self.name, self.view, self.row = f"\0recourse {view.name} {row}", view, row
        self.weight = np.maximum(weight, InteriorPoint.current().least_weight * weight.max())
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
        inside = omega * self.view.inside(self.parameters(phi / omega))
        return self.view.along(inside - phi @ self.lift)

    def parameters(self, multipliers: FloatArray) -> FloatArray:
        """Return the multipliers that a score is made of."""
        return multipliers[:, : self.view.measure.rows(len(self.view.reference))]

    def size(self, x: Point) -> FloatArray:
        """Return what T is next to at the start, shape (m,)."""
        return self.view.joint(x.q).sum(axis=1)

    def centre(self, x: Point, mu: float) -> None:
        """Set T, z and φ where T z = μ, next to the Q and the λ of a point."""
        settings = InteriorPoint.current()
        size = self.size(x)
        x.slack[self.name] = size[:, None] * np.ones_like(self.cost)
        x.price[self.name] = mu / x.slack[self.name]
        x.equal[self.name] = np.zeros((len(size), len(self.lift)))
        for _ in range(settings.centring_steps):
            newton = Elimination(self, x)
            newton.set_targets(np.full_like(newton.t, mu), 1.0)
            step = newton.recover(np.zeros(newton.rows.shape[:2]), 0.0 * x.q, 0.0)
            worst = float(max((-step[0] / newton.t).max(), (-step[1] / newton.z).max()))
            length = min(1.0, settings.centring_boundary / max(worst, TINY))
            for values, change in zip((x.slack, x.price, x.equal), step, strict=True):
                values[self.name] = values[self.name] + length * change
            if worst < settings.centring_end:
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

    scored = False

    def __init__(self, view: Observer, levels: FloatArray, row: str) -> None:
        self.name, self.view, self.row = f"\0recourse {view.name} {row}", view, row
        self.weight, self.levels = np.ones(len(levels)), levels[:, None]
        self.matrix, self.cost = np.array([[1.0, -1.0]]), np.array([1.0, 0.0])
        self.lift = np.eye(1)

    def size(self, x: Point) -> FloatArray:  # of shares of both signs
        return (np.abs(self.view.along(np.ones((len(x.q), 1)))) * x.q).sum(axis=1)

    def short(self, x: Point) -> FloatArray:
        """Return A J − b − P T, shape (m, 1)."""
        return super().short(x) - self.levels

    def repriced(self, x: Point) -> FloatArray:
        """Return what Mᵀφ lacks to have 0 ≤ φ ≤ ω."""
        omega, phi = self.omega(x)[:, None], x.equal[self.name]
        return self.view.along(np.clip(phi, 0.0, omega) - phi)


def parameters(recourses: Iterable[RecourseTerm], x: Point) -> dict[str, FloatArray]:
    """Return what the scores of every view are made of, (m, rows): a mean over its terms."""
    sums: dict[str, list[FloatArray]] = {}
    for recourse in (recourse for recourse in recourses if recourse.scored):
        parts = [recourse.parameters(x.equal[recourse.name]), recourse.omega(x)[:, None]]
        before = sums.setdefault(recourse.view.name, [0.0 * part for part in parts])
        sums[recourse.view.name] = [a + b for a, b in zip(before, parts, strict=True)]
    return {name: phi / omega for name, (phi, omega) in sums.items()}


class Elimination:
    """A recourse at a point, with T, z and φ eliminated.

    Attributes
    ----------
    rows : (m, r, k) array
        Rows of which the square is MᵀAᵀN⁻¹AM.
    jacobian : (m, k) array
        MᵀAᵀg.
    compliance : (m,) array
        κ.
    """

    def __init__(self, recourse: RecourseTerm, x: Point) -> None:
        self.recourse = recourse
        self.t, self.z, phi = x.slack[recourse.name], x.price[recourse.name], x.equal[recourse.name]
        matrix, cost = recourse.matrix, recourse.cost
        self.ratio = self.t / self.z  # D
        self.residual_primal = recourse.short(x)
        self.residual_dual = recourse.omega(x)[:, None] * cost - self.z - phi @ matrix
        inner = (recourse.squares @ self.ratio.T).T.reshape(-1, len(matrix), len(matrix))  # N
        lower, scale = factor(inner)
        self.half = np.linalg.inv(lower) * scale[:, None, :]
        image, basis = recourse.span
        self.basis, root = np.linalg.qr(self.half @ image)
        self.rows = root @ basis
        self.response = self._solve((self.ratio * cost) @ matrix.T)  # g (N21)
        self.jacobian = recourse.view.along(self.response @ recourse.lift)
        self.compliance = (self.ratio * (cost - self.response @ matrix) ** 2).sum(axis=1)  # (N22)

    def _solve(self, right: FloatArray) -> FloatArray:
        """Return N⁻¹ right."""
        return np.einsum("yri,yr->yi", self.half, np.einsum("yri,yi->yr", self.half, right))

    def times(self, dq: FloatArray) -> FloatArray:
        """Return MᵀAᵀN⁻¹AM ΔQ."""
        recourse = self.recourse
        solved = self._solve(recourse.view.joint(dq) @ recourse.lift.T)
        return recourse.view.along(solved @ recourse.lift)

    def set_targets(self, target: FloatArray, share: float) -> None:
        """Take the products to reach, and the share of residuals to remove, of one step."""
        matrix = self.recourse.matrix
        self.share = share
        # ΔT and Δφ without ΔJ and Δω: the latter is e (N21)
        self.dt_base = target / self.z - self.t - share * self.ratio * self.residual_dual
        self.dphi_base = self._solve(share * self.residual_primal - self.dt_base @ matrix.T)

    def priced(self) -> FloatArray:
        """Return MᵀAᵀe."""
        return self.recourse.view.along(self.dphi_base @ self.recourse.lift)

    def predicted(self) -> FloatArray:
        """Return what ρᵀΔT is without ΔJ and Δω, (m,)."""
        dt = self.dt_base + self.ratio * (self.dphi_base @ self.recourse.matrix)
        return dt @ self.recourse.cost

    def recover(
        self, reached: FloatArray, dq: FloatArray, domega: FloatArray | float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ΔT, Δz and Δφ of the rows times ΔQ, of ΔQ itself and of Δω.

        Where N⁻¹ is large A ΔJ is next to nothing, and the rows times ΔQ are known better; where
        D is large ΔT is refined, so that P T = A J holds.
        """
        recourse, more = self.recourse, np.asarray(domega)[..., None]
        dphi = np.einsum("yri,yr->yi", self.half, np.einsum("yri,yi->yr", self.basis, reached))
        dphi = self.dphi_base + dphi + self.response * more  # (N21)
        beyond = recourse.cost * more - dphi @ recourse.matrix
        dt = self.dt_base - self.ratio * beyond
        target = self.share * self.residual_primal + recourse.view.joint(dq) @ recourse.lift.T
        for _ in range(InteriorPoint.current().refinements):
            missed = self._solve(target - dt @ recourse.matrix.T)
            dt = dt + self.ratio * (missed @ recourse.matrix)
        return dt, self.share * self.residual_dual + beyond, dphi
