"""The residuals of the interior-point method's equations at a point."""

from __future__ import annotations

import numpy as np

from cvxprivacy.solvers.interior.point import HIGH, LOW, ByName, Point
from cvxprivacy.solvers.interior.program import ScaledProgram

__all__ = ["Residuals"]


class Residuals:
    """A point's joint laws, and the residuals of all equations but the pairs.

    Attributes
    ----------
    joint : list of (m, |V|) array
        J of each smooth view.
    information, omega : list of (m,) array
        F(J) and ω of each smooth view.
    jacobian : dict of (m, k) array
        The slope a of each row, C + Σ β Mᵀs: its gradient where (N4) holds.
    posterior : list of (m, |V|) array
        Of (N4), ∇F(J) − s of each smooth view.
    dual : (m, k) array
        Of (N1).
    row_sums : (n,) array
        Of (N2).
    primal : dict of array
        Of every other primal equation by its name: (N3), and sides and totals of levels (N7).
    level_dual : dict of (m,) array
        Of (N8), the dual equation of each level.
    shares : float
        Of (N9): what the multipliers of several objectives lack to have sum 1.
    """

    def __init__(self, program: ScaledProgram, x: Point) -> None:
        self.program, self.x = program, x
        self.joint, gradients = program.joints(x.q)
        self.posterior = [g - s for g, s in zip(gradients, x.scores, strict=True)]  # (N4)
        self.information = program.information(self.joint, gradients)
        self.omega = [np.zeros(program.m) for _ in program.views]
        for i, weight in program.weights.items():
            self.omega[i] = self.omega[i] + weight
        for name, row in program.rows.items():
            for i, weight in row.weights.items():
                self.omega[i] = self.omega[i] + weight * x.multiplier(name)
        # Mᵀs in place of Mᵀ∇F(J): where scores and posteriors differ, (N1) is of the scores
        self.scored = [view.along(s) for s, view in zip(x.scores, program.views, strict=True)]
        self.jacobian: ByName = {}
        for name, row in program.rows.items():
            gradient = row.cost
            for i, weight in row.weights.items():
                gradient = gradient + weight[:, None] * self.scored[i]
            self.jacobian[name] = gradient
        self._equations()

    def _equations(self) -> None:
        program, x = self.program, self.x
        dual = program.cost - program.layout.spread(x.nu) - x.price[LOW]  # (N1), term by term
        if HIGH in x.price:
            dual = dual + x.price[HIGH]
        for omega, scored in zip(self.omega, self.scored, strict=True):
            dual = dual + omega[:, None] * scored
        for recourse in program.recourses.values():
            dual = dual + recourse.priced(x)
        self.primal: ByName = {}
        for name, row in program.rows.items():
            price = x.multiplier(name)
            dual = dual + row.cost * (price[:, None] if row.per_output else price)
            self.primal[name] = -program.excess(name, x, self.information)  # (N3)
            if not row.equal:
                self.primal[name] = self.primal[name] - x.slack[name]
        self.level_dual: ByName = {}
        for name, level in program.levels.items():
            price = np.zeros(program.m)
            for side, sign, factor in level.sides:
                dual = dual - sign * x.price[side]
                room = sign * (x.q - factor * program.masses * x.levels[name][:, None])
                self.primal[side] = room - x.slack[side]  # (N7)
                price = price + sign * factor * (x.price[side] * program.masses).sum(axis=1)
            if level.total is not None:
                price = price + x.price[name]
                self.primal[name] = level.total - x.levels[name].sum() - x.slack[name]
            self.level_dual[name] = price  # (N8)
        shares = [float(x.price[row]) for row in program.worst]
        self.shares = 1.0 - sum(shares) if shares else 0.0  # (N9)
        self.dual = np.where(program.free, dual, 0.0)
        self.row_sums = program.mass - program.layout.total(x.q)  # (N2)

    def error(self) -> float:
        """Return what the residuals may add to the gap, in the unit of the objective: (N31).

        Those of the dual equations by the mass that they meet, those of the primal ones at their
        prices.
        """
        program, x = self.program, self.x
        z, w = x.price[LOW], x.price.get(HIGH, np.zeros(()))
        # reduced costs at the scores that the prover will make of these, which are inside 𝒮
        reduced = self.dual + z - w
        for view, omega, s in zip(program.views, self.omega, x.scores, strict=True):
            reduced = reduced + view.along(omega[:, None] * (view.inside(view.parameters(s)) - s))
        for recourse in program.recourses.values():
            reduced = reduced + recourse.repriced(x)
        open_ = program.free & ~program.capped
        below = program.layout.extreme(np.maximum, -reduced, 0.0, open_)
        error = float(below @ program.mass)
        if program.capped.any():
            low, high = program.low, np.where(program.capped, program.high, 0.0)
            least = np.where(reduced > 0, reduced * low, reduced * high)
            lost = np.where(program.capped, z * low - w * high - least, 0.0)
            error += float(np.maximum(lost, 0.0).sum())
        # ω (F(J) − ⟨s, J⟩): scores that are not yet those of the posteriors bound less than F
        short = zip(self.omega, self.joint, self.posterior, strict=True)
        error += max(sum(float(w @ (j * r).sum(axis=1)) for w, j, r in short), 0.0)
        for name, residual in self.primal.items():
            error += float(np.sum(np.abs(residual * self.x.multiplier(name))))
        for name, recourse in program.recourses.items():
            error += float(np.sum(np.abs(recourse.short(x) * x.equal[name])))
        error += abs(self.shares)
        return error + float(np.abs(self.row_sums) @ np.abs(self.x.nu))

    def breach(self) -> float:
        """Return the largest primal residual."""
        return max(
            float(np.max(np.abs(r), initial=0.0)) for r in (self.row_sums, *self.primal.values())
        )
