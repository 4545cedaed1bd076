"""What the equations of the interior-point method lack at a point."""

from __future__ import annotations

import numpy as np

from cvxprivacy.solvers.interior.point import HIGH, LOW, ByName, Point
from cvxprivacy.solvers.interior.program import ScaledProgram

__all__ = ["Residuals"]


class Residuals:
    """A point's joint laws, and the residuals of all equations but the pairs.

    Attributes
    ----------
    joint, rest : list of (m, |V|) array
        J, and ∇F(J) − s, of each smooth view.
    information, weights : list of (m,) array
        Φ and ω of each smooth view.
    slopes : dict of (m, k) array
        The gradient of each row.
    dual : (m, k) array
        Of the dual equation.
    missing : (n,) array
        Of the row sums.
    unshared : float
        What the multipliers of several objectives lack to have sum 1.
    off, unpriced : dict of array
        Of every other primal equation by its name, and of the dual equation of each level.
    """

    def __init__(self, program: ScaledProgram, x: Point) -> None:
        self.program, self.x = program, x
        self.joint, gradients = program.joints(x.q)
        self.rest = [g - s for g, s in zip(gradients, x.scores, strict=True)]
        self.information = program.information(self.joint, gradients)
        self.weights = [np.zeros(program.m) for _ in program.views]
        for i, weight in program.weights.items():
            self.weights[i] = self.weights[i] + weight
        for name, row in program.rows.items():
            for i, weight in row.weights.items():
                self.weights[i] = self.weights[i] + weight * x.multiplier(name)
        self.seen = [view.along(s) for s, view in zip(x.scores, program.views, strict=True)]
        self.slopes: ByName = {}
        for name, row in program.rows.items():
            slope = row.cost
            for i, weight in row.weights.items():
                slope = slope + weight[:, None] * self.seen[i]
            self.slopes[name] = slope
        self._equations()

    def _equations(self) -> None:
        program, x = self.program, self.x
        dual = program.cost - program.layout.spread(x.nu) - x.price[LOW]
        if HIGH in x.price:
            dual = dual + x.price[HIGH]
        for weight, seen in zip(self.weights, self.seen, strict=True):
            dual = dual + weight[:, None] * seen
        for recourse in program.recourses.values():
            dual = dual + recourse.priced(x)
        self.off: ByName = {}
        for name, row in program.rows.items():
            price = x.multiplier(name)
            dual = dual + row.cost * (price[:, None] if row.per_output else price)
            self.off[name] = -program.excess(name, x, self.information)
            if not row.equal:
                self.off[name] = self.off[name] - x.slack[name]
        self.unpriced: ByName = {}
        for name, level in program.levels.items():
            price = np.zeros(program.m)
            for side, sign, factor in level.sides:
                dual = dual - sign * x.price[side]
                room = sign * (x.q - factor * program.masses * x.levels[name][:, None])
                self.off[side] = room - x.slack[side]
                price = price + sign * factor * (x.price[side] * program.masses).sum(axis=1)
            if level.total is not None:
                price = price + x.price[name]
                self.off[name] = level.total - x.levels[name].sum() - x.slack[name]
            self.unpriced[name] = price
        shares = [float(x.price[row]) for row in program.worst]
        self.unshared = 1.0 - sum(shares) if shares else 0.0
        self.dual = np.where(program.free, dual, 0.0)
        self.missing = program.mass - program.layout.total(x.q)

    def error(self) -> float:
        """Return what the residuals may add to the gap, in the unit of the objective.

        Those of the dual equations by the mass that they meet, those of the primal ones at their
        prices.
        """
        program, x = self.program, self.x
        z, w = x.price[LOW], x.price.get(HIGH, np.zeros(()))
        reduced = self.dual + z - w  # cost, with scores as they will be, inside
        for view, weight, s in zip(program.views, self.weights, x.scores, strict=True):
            reduced = reduced + view.along(weight[:, None] * (view.inside(view.told(s)) - s))
        for recourse in program.recourses.values():
            reduced = reduced + recourse.repriced(x)
        open_ = program.free & ~program.capped
        below = program.layout.extreme(np.maximum, -reduced, 0.0, open_)
        found = float(below @ program.mass)
        if program.capped.any():
            low, high = program.low, np.where(program.capped, program.high, 0.0)
            least = np.where(reduced > 0, reduced * low, reduced * high)
            lost = np.where(program.capped, z * low - w * high - least, 0.0)
            found += float(np.maximum(lost, 0.0).sum())
        for name, off in self.off.items():
            found += float(np.sum(np.abs(off * self.x.multiplier(name))))
        for name, recourse in program.recourses.items():
            found += float(np.sum(np.abs(recourse.short(x) * x.equal[name])))
        found += abs(self.unshared)
        return found + float(np.abs(self.missing) @ np.abs(self.x.nu))

    def breach(self) -> float:
        """Return the largest primal residual."""
        return max(
            float(np.max(np.abs(r), initial=0.0)) for r in (self.missing, *self.off.values())
        )
