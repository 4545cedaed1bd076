"""Newton steps of the interior-point method: blocks by output, one Schur complement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import lapack

from cvxprivacy.exact import FloatArray
from cvxprivacy.solvers.interior.blocks import TINY, Blocks, Square
from cvxprivacy.solvers.interior.point import HIGH, LOW, WORST, ByName, Point
from cvxprivacy.solvers.interior.program import Level, ScaledProgram
from cvxprivacy.solvers.interior.recourse import Elimination
from cvxprivacy.solvers.interior.residuals import Residuals
from cvxprivacy.solvers.interior.views import Hessian

__all__ = ["Newton"]

_NEAR = 1e-4  # complementarity below which steps are refined
_SMALL = 40  # blocks up to this size are inverted in full


class Newton:
    """The Newton system at a point; :meth:`step` solves it for given targets."""

    def __init__(self, program: ScaledProgram, x: Point) -> None:
        self.program, self.x, self.at = program, x, Residuals(program, x)
        self.refined = 2 if program.complementarity(x) < _NEAR else 1
        rows = program.rows
        self.coupling = [k for k, row in rows.items() if not row.per_output]
        self.caps = [k for k, level in program.levels.items() if level.total is not None]
        self.local = [k for k, row in rows.items() if row.per_output and not row.equal]
        self.pinned = [k for k, row in rows.items() if row.per_output and row.equal]
        self.theta = {k: x.price[k] / x.slack[k] for k in x.slack}
        self.slopes = dict(self.at.slopes)
        self.give: ByName = {}
        self.eliminated = {k: Elimination(r, x) for k, r in program.recourses.items()}
        for name in rows:
            self._give_way(name)
        self.stiff: ByName = {}
        self.bend: ByName = {}
        self._factor()

    def _give_way(self, name: str) -> None:
        """Add to a row what its recourses have: slopes, and what it gives way to its own price.

        θ becomes that of its slack and of them in series.
        """
        for recourse in self.program.recourses_of(name):
            part, weight = self.eliminated[recourse.name], recourse.weight
            self.slopes[name] = self.slopes[name] + weight[:, None] * part.slope
            give = self.program.rows[name].total(weight**2 * part.give)
            self.give[name] = self.give.get(name, 0.0) + give
        if name in self.give:
            self.theta[name] = self.theta[name] / (1.0 + self.theta[name] * self.give[name])

    # ---- factors -------------------------------------------------------------------------

    def _factor(self) -> None:
        program = self.program
        diagonal = self.theta[LOW] + self.theta.get(HIGH, 0.0)
        tall, squares = [part.rows for part in self.eliminated.values()], []
        self.hessians = [
            Hessian(view, joint, s)
            for view, joint, s in zip(program.views, self.at.joint, self.x.scores, strict=True)
        ]
        for hessian, weight in zip(self.hessians, self.at.weights, strict=True):
            if hessian.view.label is not None:
                squares.append(hessian.square(hessian.view.label, weight))
            elif weight.any():
                tall.append(hessian.rows(weight))
        for name, level in program.levels.items():
            square, self.stiff[name], self.bend[name] = _without(level, self.theta, program.masses)
            squares.append(square)
        size = program.layout.shape[1]
        empty = np.zeros((program.m, 0, size))
        rows = _one(tall) if tall else empty
        local = [np.sqrt(self.theta[k])[:, None] * self.slopes[k] for k in self.local]
        local_rows = np.stack(local, axis=1) if local else empty
        if not (squares or self.eliminated) and (size <= _SMALL or 3 * rows.shape[1] > 2 * size):
            self.first_local = 0
            blocks = Blocks.dense(diagonal, rows, local_rows, program.free)
        else:
            self.first_local = rows.shape[1]
            rows = _one([rows, local_rows]) if local else rows
            blocks = Blocks.of(diagonal, squares, rows, program.free)
        self.blocks = blocks
        pins = [self.slopes[k] for k in self.pinned]
        self.pins = np.stack(pins, axis=1) if pins else empty
        borders = [self.slopes[k] for k in self.coupling] + [-self.bend[k] for k in self.caps]
        self.border = np.stack(borders, axis=1) if borders else empty
        self._schur()

    def _schur(self) -> None:
        """Factor the Schur complement of row sums, equalities by output and coupling rows."""
        m, border, pins, layout = self.program.m, self.border, self.pins, self.program.layout
        system = self.blocks.total(layout)
        each, count = pins.shape[1], border.shape[1]
        if each or count:
            half, pinned = self.blocks.rows(border), self.blocks.rows(pins)
            side = np.concatenate([layout.rows(pinned), layout.total(half)])
            corner = np.zeros((len(side),) * 2)
            for y, block in enumerate(pinned @ pins.transpose(0, 2, 1)):
                corner[y * each : (y + 1) * each, y * each : (y + 1) * each] = block
            shared = (pinned @ border.transpose(0, 2, 1)).reshape(m * each, count)
            corner[: m * each, m * each :], corner[m * each :, : m * each] = shared, shared.T
            corner[m * each :, m * each :] = np.einsum("yck,ydk->cd", half, border)
            for i, name in enumerate((*self.coupling, *self.caps), m * each):
                if name in self.theta:
                    corner[i, i] += 1.0 / self.theta[name]
                if name in self.caps:
                    corner[i, i] += (1.0 / self.stiff[name]).sum()
            inner, order = system, layout.n + len(side)
            system = np.empty((order, order), order="F")
            system[: layout.n, : layout.n], system[layout.n :, layout.n :] = inner, corner
            system[layout.n :, : layout.n], system[: layout.n, layout.n :] = side, side.T
        self.system = _Cholesky(system)
        self.shared = np.zeros(len(system))  # rows that the greatest of several objectives is in
        for i, name in enumerate(self.coupling, layout.n + m * each):
            self.shared[i] = float(name in self.program.worst)
        self.along_worst = self.system.solved(self.shared) if self.program.worst else self.shared

    # ---- a step --------------------------------------------------------------------------

    def step(
        self,
        targets: ByName,
        weight: float,
        posterior: list[FloatArray] | None = None,
        cross: FloatArray | float = 0.0,
        bent: Mapping[str, Any] | None = None,
    ) -> Point:
        """Return the step to products ``targets``.

        ``weight`` is the share of dual and primal residuals to be removed; ``posterior``,
        ``cross`` and ``bent`` are right-hand sides of the posteriors, the dual equation and the
        rows to second order.
        """
        program, x = self.program, self.x
        posterior = self.at.rest if posterior is None else posterior
        off = {name: weight * value for name, value in self.at.off.items()}
        for name, part in self.eliminated.items():
            part.aim(targets[name], weight)
            if row := part.recourse.row:
                spent = part.recourse.weight * part.spent()
                off[row] = off[row] - program.rows[row].total(spent)
        for name, more in (bent or {}).items():
            off[name] = off[name] + more
        gain = {
            k: targets[k] / x.slack[k] - x.price[k] - self.theta[k] * off.get(k, 0.0)
            for k in x.slack.keys() - self.eliminated.keys() - self.give.keys()
        }
        for k in self.give:
            gain[k] = self.theta[k] * (targets[k] / x.price[k] - x.slack[k] - off[k])
        right = gain[LOW] - weight * self.at.dual - cross - gain.get(HIGH, 0.0)
        for view, omega, lacks in zip(program.views, self.at.weights, posterior, strict=True):
            right = right - omega[:, None] * view.along(lacks)
        for part in self.eliminated.values():
            right = right - part.priced()
        for name in self.local:
            right = right - gain[name][:, None] * self.slopes[name]
        pull: ByName = {}
        for name, level in program.levels.items():
            own = -weight * self.at.unpriced[name]
            for side, sign, factor in level.sides:
                right = right + sign * gain[side]
                own = own - sign * factor * (gain[side] * program.masses).sum(axis=1)
            pull[name] = own
            right = right - own[:, None] * self.bend[name]
        right = np.where(program.free, right, 0.0)

        q, g, whole, worst = self._columns(right, off, gain, weight, pull)
        n, by_pin = program.n, -g[program.n :][: self.pins.shape[1] * program.m]
        by_pin = by_pin.reshape(program.m, -1)
        equal: ByName = {name: by_pin[:, i] for i, name in enumerate(self.pinned)}
        slack: ByName = {LOW: q}
        price: ByName = {}
        levels: ByName = {WORST: worst} if program.worst else {}
        if HIGH in x.slack:
            slack[HIGH] = -q * program.capped
        for i, name in enumerate((*self.coupling, *self.caps), n + by_pin.size):
            (price if name in x.price else equal)[name] = -g[i]
        for name in self.coupling:
            if name in x.slack:
                slack[name] = off[name] - (self.slopes[name] * q).sum()
                slack[name] = slack[name] + self.give.get(name, 0.0) * price[name]
                if name in program.worst:
                    slack[name] = slack[name] + worst
        for name, level in program.levels.items():
            own = (pull[name] - price.get(name, 0.0)) / self.stiff[name]
            own = own - np.einsum("yk,yk->y", self.bend[name], q)
            levels[name] = own
            for side, sign, factor in level.sides:
                slack[side] = off[side] + sign * (q - factor * program.masses * own[:, None])
            if level.total is not None:
                slack[name] = off[name] - own.sum()
        if self.local or self.eliminated:  # by way of H⁻¹a, where a · ΔQ would cancel
            reached = self.blocks.reached(whole)
            for i, name in enumerate(self.local, self.first_local):
                price[name] = gain[name] + np.sqrt(self.theta[name]) * reached[:, i]
                missed = targets[name] - x.slack[name] * price[name]
                slack[name] = missed / x.price[name] - x.slack[name]
            first = 0
            for name, part in self.eliminated.items():
                last = first + part.rows.shape[1]
                more = part.recourse.weight * price[row] if (row := part.recourse.row) else 0.0
                moved = part.changes(reached[:, first:last], q, more)
                slack[name], price[name], equal[name] = moved
                first = last
        for name in x.slack.keys() - price.keys():
            missed = targets[name] - x.price[name] * slack[name]
            price[name] = missed / x.slack[name] - x.price[name]
        scores = [
            lacks + hessian.times(hessian.view.joint(q))
            for hessian, lacks in zip(self.hessians, posterior, strict=True)
        ]
        return Point(q, g[:n], scores, equal, levels, slack, price)

    def _columns(
        self, right: FloatArray, off: ByName, gain: ByName, weight: float, pull: ByName
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return ΔQ, (Δν, −Δλ of equalities by output, −Δλ of coupling rows), H ΔQ, and Δτ."""
        base, extra = self._borders(off, gain, weight, pull)
        g, q, worst = np.zeros(len(base)), self.blocks.times(right), np.zeros(())
        shared, lacks = self.shared, weight * self.at.unshared
        for _ in range(self.refined):
            more = self.system.solved(base - self._across(q) - extra * g + shared * worst)
            if self.program.worst:  # g of these rows has sum −lacks
                change = -(lacks + shared @ (g + more)) / (shared @ self.along_worst)
                more, worst = more + change * self.along_worst, worst + change
            g = g + more
            whole = right + self._along(g)
            q = self.blocks.times(whole)
        return q, g, whole, worst

    def _borders(
        self, off: ByName, gain: ByName, weight: float, pull: ByName
    ) -> tuple[FloatArray, FloatArray]:
        """Return what row sums, equalities and coupling rows should reach, and their corner."""
        program = self.program
        found = [weight * self.at.missing]
        pins = [np.broadcast_to(off[name], (program.m,)) for name in self.pinned]
        found += [np.stack(pins, axis=1).ravel()] if pins else []
        extra = np.zeros(sum(map(len, found)) + self.border.shape[1])
        for i, name in enumerate((*self.coupling, *self.caps), sum(map(len, found[:2]))):
            target = -gain[name] / self.theta[name] if name in self.theta else off[name]
            extra[i] = 1.0 / self.theta[name] if name in self.theta else 0.0
            if name in self.caps:
                target = target - (pull[name] / self.stiff[name]).sum()
                extra[i] += (1.0 / self.stiff[name]).sum()
            found.append(np.atleast_1d(target))
        return np.concatenate(found), extra

    def _across(self, q: FloatArray) -> FloatArray:
        """Return Σ_y Bᵀq: row sums, then what rows of single outputs and coupling rows have."""
        pinned = np.einsum("yek,yk->ye", self.pins, q).ravel()
        coupled = np.einsum("yck,yk->c", self.border, q)
        return np.concatenate([self.program.layout.total(q), pinned, coupled])

    def _along(self, g: FloatArray) -> FloatArray:
        """Return B g, shape (m, k)."""
        n, last = self.program.n, self.program.n + self.pins.shape[1] * self.program.m
        layout = self.program.layout
        found = np.broadcast_to(layout.spread(g[:n]), layout.shape)
        if self.pinned:
            by_pin = g[n:last].reshape(self.program.m, -1)
            found = found + np.einsum("ye,yek->yk", by_pin, self.pins)
        if self.border.shape[1]:
            found = found + np.einsum("c,yck->yk", g[last:], self.border)
        return found


def _without(
    level: Level, theta: ByName, masses: FloatArray
) -> tuple[Square, FloatArray, FloatArray]:
    """Eliminate a level a: return what that leaves in the blocks, its own θ, and its border."""
    stiff, bend, added, rest = (np.zeros_like(masses) for _ in range(4))
    for side, _, factor in level.sides:
        own = theta[side]
        rest = rest + added * own * ((factor - 1.0) * masses) ** 2
        stiff = stiff + (factor * masses) ** 2 * own
        bend = bend - factor * masses * own
        added = added + own
    whole = stiff.sum(axis=1)
    square = Square(stiff / whole[:, None], added, rest / np.maximum(stiff, TINY))
    return square, whole, bend / whole[:, None]


class _Cholesky:
    """The factor of a positive semidefinite system, scaled, and shifted as far as it needs."""

    def __init__(self, system: FloatArray) -> None:
        size = np.diag(system)  # 0 where a letter or a row has nothing to choose
        self.scale = np.where(size > 0, 1.0 / np.sqrt(np.maximum(size, TINY)), 0.0)
        for shift in (1e-14, 1e-12, 1e-10, 1e-8, 1e-6):
            scaled = system * self.scale[:, None]
            scaled *= self.scale
            np.einsum("ii->i", scaled)[...] += shift
            self.factor, failed = lapack.dpotrf(scaled, lower=1, clean=0, overwrite_a=1)
            if not failed:
                return
        raise np.linalg.LinAlgError(f"no direction for {len(system)} letters and rows")

    def solved(self, right: FloatArray) -> FloatArray:
        found: FloatArray = self.scale * lapack.dpotrs(self.factor, self.scale * right, lower=1)[0]
        if not np.isfinite(found).all():
            raise np.linalg.LinAlgError("a direction that is not finite")
        return found


def _one(rows: list[FloatArray]) -> FloatArray:
    """Return all rows (m, r, k) of each output in one array, without a copy where they are."""
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
