"""What the equations of the interior-point method lack at a point."""

from __future__ import annotations

import numpy as np

from cvxprivacy.solvers.interior_blocks import TINY
from cvxprivacy.solvers.interior_program import HIGH, LOW, ByName, Point, ScaledProgram

__all__ = ["Residuals"]


class Residuals:
    """A point's joint laws, and the residuals of all equations but the pairs.

    Attributes
    ----------
    joint, rest : list of (m, |V|) array
        J, and log(J/(π q)) − s, of each view.
    information, weights : list of (m,) array
        Φ and ω of each view.
    slopes : dict of (m, n) array
        The gradient of each row.
    dual : (m, n) array
        Of the dual equation.
    missing : (n,) array
        Of the row sums.
    off, unpriced : dict of array
        Of every other primal equation by its name, and of the dual equation of each level.
    """

    def __init__(self, program: ScaledProgram, x: Point) -> None:
        self.program, self.x = program, x
        self.joint, logs = program.joints(x.q)
        self.rest = [log - s for log, s in zip(logs, x.scores, strict=True)]
        self.information = program.information(self.joint, logs)
        self.weights = [np.zeros(program.m) for _ in program.views]
        for i, weight in program.weights.items():
            self.weights[i] = self.weights[i] + weight
        for name, row in program.rows.items():
            for i, weight in row.weights.items():
                self.weights[i] = self.weights[i] + weight * x.multiplier(name)
        self.seen = [s @ view.matrix for s, view in zip(x.scores, program.views, strict=True)]
        self.slopes: ByName = {}
        for name, row in program.rows.items():
            slope = row.cost
            for i, weight in row.weights.items():
                slope = slope + weight[:, None] * self.seen[i]
            self.slopes[name] = slope
        self._equations()

    def _equations(self) -> None:
        program, x = self.program, self.x
        dual = program.cost - x.nu - x.price[LOW]
        if HIGH in x.price:
            dual = dual + x.price[HIGH]
        for weight, seen in zip(self.weights, self.seen, strict=True):
            dual = dual + weight[:, None] * seen
        self.off: ByName = {}
        for name, row in program.rows.items():
            price = x.multiplier(name)
            dual = dual + row.cost * (price[:, None] if row.per_output else price)
            self.off[name] = -program.excess(name, x.q, self.information)
            if not row.equal:
                self.off[name] = self.off[name] - x.slack[name]
        self.unpriced: ByName = {}
        for name, level in program.levels.items():
            price = np.zeros(program.m)
            for side, sign, factor in level.sides:
                dual = dual - sign * x.price[side]
                room = sign * (x.q - factor * program.mass * x.levels[name][:, None])
                self.off[side] = room - x.slack[side]
                price = price + sign * factor * (x.price[side] @ program.mass)
            if level.total is not None:
                price = price + x.price[name]
                self.off[name] = level.total - x.levels[name].sum() - x.slack[name]
            self.unpriced[name] = price
        self.dual = np.where(program.free, dual, 0.0)
        self.missing = program.mass - x.q.sum(axis=0)

    def error(self) -> float:
        """Return by how much the multipliers may fail to bound the objective, in its unit."""
        program = self.program
        below = np.abs(self.dual) if HIGH in self.x.price else -(self.dual + self.x.price[LOW])
        found = float(np.max(below, axis=0, initial=0.0, where=program.free) @ program.mass)
        for view, weight, s, joint in zip(
            program.views, self.weights, self.x.scores, self.joint, strict=True
        ):
            normal = np.log(np.maximum(np.exp(np.minimum(s, 700.0)) @ view.reference, TINY))
            found += float(weight @ (joint.sum(axis=1) * np.abs(normal)))
        return found

    def breach(self) -> float:
        """Return the largest primal residual."""
        return max(
            float(np.max(np.abs(r), initial=0.0)) for r in (self.missing, *self.off.values())
        )
