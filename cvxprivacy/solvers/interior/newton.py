"""Newton steps of the interior-point method: residuals, right-hand side, solve, recover.

Slacks, prices, scores, levels and recourses are eliminated by output.  What is left couples ΔQ, in
the blocks of the outputs, with Δg = (Δν, −Δλ of equalities by output, −Δλ of coupling rows):

    ┌          ┐ ┌    ┐   ┌            ┐
    │ H    −B  │ │ ΔQ │ = │ rhs_dual   │    H = diag(H_y), B = (row sums | pins | borders)   (N14)
    │ Bᵀ    E  │ │ Δg │   │ rhs_border │
    └          ┘ └    ┘   └            ┘

so that S = BᵀH⁻¹B + E is all that is factored besides the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.settings import InteriorPoint
from cvxprivacy.solvers.interior.blocks import Blocks, Square
from cvxprivacy.solvers.interior.point import HIGH, LOW, WORST, ByName, Point
from cvxprivacy.solvers.interior.program import Level, ScaledProgram
from cvxprivacy.solvers.interior.recourse import Elimination
from cvxprivacy.solvers.interior.views import Hessian

__all__ = ["Newton", "Residuals", "SecondOrder"]

# Shifts of the scaled Schur complement, whose least eigenvalue is 0 where a letter has no choice.
_SHIFTS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6)


@dataclass(eq=False)
class SecondOrder:
    """What equations that are not linear have of second order along a step (N24).

    Attributes
    ----------
    posterior : list of (m, |V|) array
        Right-hand sides of (N10): residual and second order of s = ∇F(J).
    dual : (m, k) array or 0
        Of (N1): Σ Δω Mᵀ Δs.
    rows : dict of array
        Of (N3).
    """

    posterior: list[FloatArray]
    dual: FloatArray | float = 0.0
    rows: ByName = field(default_factory=dict)


@dataclass(eq=False)
class _RightHandSide:
    """Right-hand sides of the linearised equations, for one step.

    Attributes
    ----------
    target : dict of array
        Products of the pairs that the step is to reach.
    share : float
        Of dual and primal residuals that it is to remove.
    primal, pair, level : dict of array
        Of (N3) and (N7), of the prices in (N11), of the levels in (N17).
    posterior : list of (m, |V|) array
    dual : (m, k) array
    """

    target: ByName
    share: float
    primal: ByName
    pair: ByName
    level: ByName
    posterior: list[FloatArray]
    dual: FloatArray


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


class Newton:
    """The Newton system at a point; :meth:`step` solves it for given targets."""

    def __init__(self, program: ScaledProgram, x: Point, at: Residuals | None = None) -> None:
        self.program, self.x, self.at = program, x, at or Residuals(program, x)
        self.refined = 2 if program.complementarity(x) < InteriorPoint.current().refined else 1
        rows = program.rows
        self.coupling = [k for k, row in rows.items() if not row.per_output]
        self.totals = [k for k, level in program.levels.items() if level.total is not None]
        self.local = [k for k, row in rows.items() if row.per_output and not row.equal]
        self.pinned = [k for k, row in rows.items() if row.per_output and row.equal]
        self.single = bool(self.local or self.pinned or program.levels)
        self.theta = {k: x.price[k] / x.slack[k] for k in x.slack}  # (N11)
        self.jacobian = dict(self.at.jacobian)
        self.compliance: ByName = {}
        self.eliminated = {k: Elimination(r, x) for k, r in program.recourses.items()}
        for name in rows:
            self._soften(name)
        self.level_theta: ByName = {}
        self.level_border: ByName = {}
        self._factor()

    def _soften(self, name: str) -> None:
        """Add the recourses of a row: to its gradient βMᵀAᵀg, to its compliance β²κ (N22).

        θ becomes that of the slack and of the recourses in series.
        """
        for recourse in self.program.recourses_of(name):
            part, weight = self.eliminated[recourse.name], recourse.weight
            self.jacobian[name] = self.jacobian[name] + weight[:, None] * part.jacobian
            more = self.program.rows[name].total(weight**2 * part.compliance)
            self.compliance[name] = self.compliance.get(name, 0.0) + more
        if name in self.compliance:
            self.theta[name] = self.theta[name] / (1.0 + self.theta[name] * self.compliance[name])

    # ---- factor --------------------------------------------------------------------------

    def _factor(self) -> None:
        """Factor the blocks H_y (N13), and then the Schur complement."""
        program = self.program
        diagonal = self.theta[LOW] + self.theta.get(HIGH, 0.0)
        tall, squares = [part.rows for part in self.eliminated.values()], []
        self.hessians = [
            Hessian(view, joint, s)
            for view, joint, s in zip(program.views, self.at.joint, self.x.scores, strict=True)
        ]
        for hessian, omega in zip(self.hessians, self.at.omega, strict=True):
            if hessian.view.label is not None:  # a rate: diagonal less one square
                squares.append(hessian.square(hessian.view.label, omega))
            elif omega.any():
                tall.append(hessian.rows(omega))
        for name, level in program.levels.items():
            square, self.level_theta[name], self.level_border[name] = _without(
                level, self.theta, program.masses
            )
            squares.append(square)
        size = program.layout.shape[1]
        empty = np.zeros((program.m, 0, size))
        rows = _one(tall) if tall else empty
        self._choose_edges(diagonal)
        local = [np.sqrt(self.loose[k])[:, None] * self.jacobian[k] for k in self.local]
        local_rows = np.stack(local, axis=1) if local else empty
        small = size <= InteriorPoint.current().inverted
        # a full inverse costs k³ by output, the rows r of (N16) r k² and a factor of r
        if not (squares or self.eliminated) and (small or 3 * rows.shape[1] > 2 * size):
            self.first_local = 0
            blocks = Blocks.dense(diagonal, rows, local_rows, program.free)
        else:
            self.first_local = rows.shape[1]
            rows = _one([rows, local_rows]) if local else rows
            blocks = Blocks.of(diagonal, squares, rows, program.free)
        self.blocks = blocks
        borders = [self.jacobian[k] for k in self.coupling]
        borders += [-self.level_border[k] for k in self.totals]
        self.border = np.stack(borders, axis=1) if borders else empty
        self._factor_schur()

    def _choose_edges(self, diagonal: FloatArray) -> None:
        """Choose which rows of single outputs stand in B: equalities, and what is nearly one.

        In the block of its output a row with θ aᵀD⁻¹a large would leave of H⁻¹a, which is then
        next to nothing, rounding alone.
        """
        if self.local:
            none = np.zeros_like(diagonal)
            inverse = np.divide(1.0, diagonal, out=none, where=self.program.free)
        every = np.arange(self.program.m)
        edges = [(k, every, np.zeros(self.program.m)) for k in self.pinned]
        self.loose: ByName = {}
        self.tight: dict[str, np.ndarray] = {}
        for k in self.local:
            weight = self.theta[k] * np.einsum("yk,yk->y", self.jacobian[k] ** 2, inverse)
            self.tight[k] = tight = weight > InteriorPoint.current().tight
            edges.append((k, np.nonzero(tight)[0], 1.0 / self.theta[k][tight]))
            self.loose[k] = np.where(tight, 0.0, self.theta[k])
        self.edges = _Edges(edges, self.jacobian, self.program.layout.shape[1])

    def _factor_schur(self) -> None:
        """Factor S = BᵀH⁻¹B + E (N15), of row sums, rows of single outputs and coupling rows."""
        border, edges, layout = self.border, self.edges, self.program.layout
        schur = self.blocks.total(layout)
        each, count = len(edges.outputs), border.shape[1]
        if each or count:
            half, reached = self.blocks.rows(border), self.blocks.rows_of(edges.outputs, edges.rows)
            lifted = layout.lifted(reached, edges.outputs)
            coupling_columns = np.concatenate([lifted, layout.total(half)])
            corner = np.zeros((len(coupling_columns),) * 2)
            corner[:each, :each] = edges.products(reached)
            shared = np.einsum("ek,eck->ec", reached, border[edges.outputs])
            corner[:each, each:], corner[each:, :each] = shared, shared.T
            corner[each:, each:] = np.einsum("yck,ydk->cd", half, border)
            corner[np.arange(each), np.arange(each)] += edges.softness
            for i, name in enumerate((*self.coupling, *self.totals), each):  # E
                if name in self.theta:
                    corner[i, i] += 1.0 / self.theta[name]
                if name in self.totals:
                    corner[i, i] += (1.0 / self.level_theta[name]).sum()
            inner, order = schur, layout.n + len(coupling_columns)
            schur = np.empty((order, order), order="F")
            schur[: layout.n, : layout.n], schur[layout.n :, layout.n :] = inner, corner
            schur[layout.n :, : layout.n] = coupling_columns
            schur[: layout.n, layout.n :] = coupling_columns.T
        self.schur = _Cholesky(schur)
        self.worst_rows = np.zeros(len(schur))  # where the rows of several objectives stand in g
        for i, name in enumerate(self.coupling, layout.n + each):
            self.worst_rows[i] = float(name in self.program.worst)
        self.along_worst = self.worst_rows
        if self.program.worst:
            self.along_worst = self.schur.solve(self.worst_rows)

    # ---- a step --------------------------------------------------------------------------

    def step(self, targets: ByName, share: float, second_order: SecondOrder | None = None) -> Point:
        """Return the step to products ``targets``.

        ``share`` is the part of dual and primal residuals to be removed, ``second_order`` what is
        added to the linearised equations: without it residuals alone.
        """
        rhs = self._right_hand_side(targets, share, second_order)
        dq, dg, reach, dworst = self._solve(rhs)
        return self._recover(rhs, dq, dg, reach, dworst)

    def _right_hand_side(
        self, targets: ByName, share: float, second_order: SecondOrder | None
    ) -> _RightHandSide:
        """Return the right-hand sides, with all but ΔQ and Δg eliminated from (N1)."""
        program, x = self.program, self.x
        order = second_order or SecondOrder(self.at.posterior)
        rhs_primal = {name: share * residual for name, residual in self.at.primal.items()}
        for name, part in self.eliminated.items():
            part.set_targets(targets[name], share)
            if row := part.recourse.row:
                spent = part.recourse.weight * part.predicted()
                rhs_primal[row] = rhs_primal[row] - program.rows[row].total(spent)
        for name, more in order.rows.items():
            rhs_primal[name] = rhs_primal[name] + more
        # Δλ = target/σ − λ − θ (rhs_primal − a ΔQ) but for what is of ΔQ (N11)
        rhs_pair = {
            k: targets[k] / x.slack[k] - x.price[k] - self.theta[k] * rhs_primal.get(k, 0.0)
            for k in x.slack.keys() - self.eliminated.keys() - self.compliance.keys()
        }
        for k in self.compliance:
            missing = targets[k] / x.price[k] - x.slack[k] - rhs_primal[k]
            rhs_pair[k] = self.theta[k] * missing
        rhs_dual = rhs_pair[LOW] - share * self.at.dual - order.dual - rhs_pair.get(HIGH, 0.0)
        for view, omega, rhs in zip(program.views, self.at.omega, order.posterior, strict=True):
            rhs_dual = rhs_dual - omega[:, None] * view.along(rhs)  # Δs by (N10)
        for part in self.eliminated.values():
            rhs_dual = rhs_dual - part.priced()
        for name in self.local:
            loose = np.where(self.tight[name], 0.0, rhs_pair[name])
            rhs_dual = rhs_dual - loose[:, None] * self.jacobian[name]
        rhs_level: ByName = {}
        for name, level in program.levels.items():  # (N17)
            of_level = -share * self.at.level_dual[name]
            for side, sign, factor in level.sides:
                rhs_dual = rhs_dual + sign * rhs_pair[side]
                pair_sums = (rhs_pair[side] * program.masses).sum(axis=1)
                of_level = of_level - sign * factor * pair_sums
            rhs_level[name] = of_level
            rhs_dual = rhs_dual - of_level[:, None] * self.level_border[name]
        rhs_dual = np.where(program.free, rhs_dual, 0.0)
        return _RightHandSide(
            targets, share, rhs_primal, rhs_pair, rhs_level, order.posterior, rhs_dual
        )

    def _solve(self, rhs: _RightHandSide) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Solve (N14) by (N15), with refinement: return ΔQ, Δg, H ΔQ, and Δτ.

        Of several objectives τ is one more unknown: its column of B is ``worst_rows``, and its row
        says that their prices have sum 1 (N9).
        """
        rhs_border, corner = self._border_sides(rhs)
        dg, dworst = np.zeros(len(rhs_border)), np.zeros(())
        worst_rows, missing = self.worst_rows, rhs.share * self.at.shares
        reach, dq = rhs.dual, self.blocks.times(rhs.dual)
        for i in range(self.refined):
            if i and self.single:  # where they are tight, H⁻¹ has lost digits
                residual = np.where(self.program.free, reach - self._times(dq), 0.0)
                dq = dq + self.blocks.times(residual)
            residual = rhs_border - self._across(dq) - corner * dg + worst_rows * dworst
            more = self.schur.solve(residual)
            if self.program.worst:  # Δg of these rows has sum −missing
                change = -(missing + worst_rows @ (dg + more)) / (worst_rows @ self.along_worst)
                more, dworst = more + change * self.along_worst, dworst + change
            dg = dg + more
            dq = dq + self.blocks.times(np.where(self.program.free, self._along(more), 0.0))
            reach = rhs.dual + self._along(dg)
        return dq, dg, reach, dworst

    def _times(self, dq: FloatArray) -> FloatArray:
        """Return H ΔQ, by (N13), for what an inverse that was rounded leaves of it."""
        program = self.program
        diagonal = self.theta[LOW] + self.theta.get(HIGH, 0.0)
        times = np.where(program.free, diagonal, 0.0) * dq
        for hessian, omega in zip(self.hessians, self.at.omega, strict=True):
            times = times + hessian.view.along(
                omega[:, None] * hessian.times(hessian.view.joint(dq))
            )
        for part in self.eliminated.values():
            times = times + part.times(dq)
        for name in self.local:
            row = self.jacobian[name]
            times = times + (self.loose[name] * np.einsum("yk,yk->y", row, dq))[:, None] * row
        for name, level in program.levels.items():
            dlevel = -np.einsum("yk,yk->y", self.level_border[name], dq)
            for side, _, factor in level.sides:
                times = times + self.theta[side] * (dq - factor * program.masses * dlevel[:, None])
        return times

    def _border_sides(self, rhs: _RightHandSide) -> tuple[FloatArray, FloatArray]:
        """Return rhs_border and the diagonal of E."""
        program = self.program
        sides, edges = [rhs.share * self.at.row_sums], self.edges
        for name, at, _ in edges.parts:  # a ΔQ − Δλ/θ as below
            pinned = name in self.pinned
            sides.append(
                np.broadcast_to(rhs.primal[name], (program.m,))
                if pinned
                else -rhs.pair[name][at] / self.theta[name][at]
            )
        first = program.n + len(edges.outputs)
        corner = np.zeros(first + self.border.shape[1])
        corner[program.n : first] = edges.softness
        for i, name in enumerate((*self.coupling, *self.totals), first):
            # a ΔQ − Δλ/θ = −rhs_pair/θ by (N11); an equality has no Δλ in it
            paired = name in self.theta
            side = -rhs.pair[name] / self.theta[name] if paired else rhs.primal[name]
            corner[i] = 1.0 / self.theta[name] if paired else 0.0
            if name in self.totals:
                side = side - (rhs.level[name] / self.level_theta[name]).sum()
                corner[i] += (1.0 / self.level_theta[name]).sum()
            sides.append(np.atleast_1d(side))
        return np.concatenate(sides), corner

    def _recover(
        self,
        rhs: _RightHandSide,
        dq: FloatArray,
        dg: FloatArray,
        reach: FloatArray,
        dworst: FloatArray,
    ) -> Point:
        """Return the whole step from ΔQ, Δg, H ΔQ and Δτ: the eliminations backwards."""
        program, x = self.program, self.x
        n, edges = program.n, self.edges
        dedges = edges.split(-dg[n : n + len(edges.outputs)])
        dequal: ByName = {name: dedges[name] for name in self.pinned}
        dslack: ByName = {LOW: dq}
        dprice: ByName = {}
        dlevels: ByName = {WORST: dworst} if program.worst else {}
        if HIGH in x.slack:
            dslack[HIGH] = -dq * program.capped
        for i, name in enumerate((*self.coupling, *self.totals), n + len(edges.outputs)):
            (dprice if name in x.price else dequal)[name] = -dg[i]
        for name in self.coupling:
            if name in x.slack:  # (N3): Δσ = rhs_primal − a ΔQ
                dslack[name] = rhs.primal[name] - (self.jacobian[name] * dq).sum()
                dslack[name] = dslack[name] + self.compliance.get(name, 0.0) * dprice[name]
                if name in program.worst:
                    dslack[name] = dslack[name] + dworst
        for name, level in program.levels.items():
            # (N17) for Δa, then (N7) for what it leaves of each side
            dlevel = (rhs.level[name] - dprice.get(name, 0.0)) / self.level_theta[name]
            dlevel = dlevel - np.einsum("yk,yk->y", self.level_border[name], dq)
            dlevels[name] = dlevel
            for side, sign, factor in level.sides:
                room = sign * (dq - factor * program.masses * dlevel[:, None])
                dslack[side] = rhs.primal[side] + room
            if level.total is not None:
                dslack[name] = rhs.primal[name] - dlevel.sum()
        if self.local or self.eliminated:  # by way of H⁻¹a, where a · ΔQ would cancel
            reached = self.blocks.reached(reach)
            for i, name in enumerate(self.local, self.first_local):
                dprice[name] = rhs.pair[name] + np.sqrt(self.loose[name]) * reached[:, i]
                dprice[name][self.tight[name]] = dedges[name]
                missed = rhs.target[name] - x.slack[name] * dprice[name]
                dslack[name] = missed / x.price[name] - x.slack[name]
            first = 0
            for name, part in self.eliminated.items():
                last = first + part.rows.shape[1]
                domega = part.recourse.weight * dprice[row] if (row := part.recourse.row) else 0.0
                parts = part.recover(reached[:, first:last], dq, domega)
                dslack[name], dprice[name], dequal[name] = parts
                first = last
        for name in x.slack.keys() - dprice.keys():  # (N11), of the slack's change
            missed = rhs.target[name] - x.price[name] * dslack[name]
            dprice[name] = missed / x.slack[name] - x.price[name]
        dscores = [
            posterior + hessian.times(hessian.view.joint(dq))  # (N10)
            for hessian, posterior in zip(self.hessians, rhs.posterior, strict=True)
        ]
        return Point(dq, dg[:n], dscores, dequal, dlevels, dslack, dprice)

    def _across(self, dq: FloatArray) -> FloatArray:
        """Return BᵀΔQ: row sums, then what rows of single outputs and coupling rows have."""
        single = np.einsum("ek,ek->e", self.edges.rows, dq[self.edges.outputs])
        coupled = np.einsum("yck,yk->c", self.border, dq)
        return np.concatenate([self.program.layout.total(dq), single, coupled])

    def _along(self, dg: FloatArray) -> FloatArray:
        """Return BΔg, shape (m, k)."""
        n, edges, layout = self.program.n, self.edges, self.program.layout
        last = n + len(edges.outputs)
        columns = np.broadcast_to(layout.spread(dg[:n]), layout.shape)
        if len(edges.outputs):
            columns, by_name = columns.copy(), edges.split(dg[n:last])
            for name, at, _ in edges.parts:
                columns[at] += by_name[name][:, None] * self.jacobian[name][at]
        if self.border.shape[1]:
            columns = columns + np.einsum("c,yck->yk", dg[last:], self.border)
        return columns


def _without(
    level: Level, theta: ByName, masses: FloatArray
) -> tuple[Square, FloatArray, FloatArray]:
    """Eliminate a level (N18): return its square in the blocks, Σ (c p)² θ, and its border."""
    level_theta, border, added, remainder = (np.zeros_like(masses) for _ in range(4))
    for side, _, factor in level.sides:
        theta_side = theta[side]
        # what stays of two sides, the first at factor 1, without cancellation (N19)
        remainder = remainder + added * theta_side * ((factor - 1.0) * masses) ** 2
        level_theta = level_theta + (factor * masses) ** 2 * theta_side
        border = border - factor * masses * theta_side
        added = added + theta_side
    total = level_theta.sum(axis=1)
    share = level_theta / total[:, None]
    square = Square(share, added, remainder / np.maximum(level_theta, TINY))
    return square, total, border / total[:, None]


class _Edges:
    """Rows of single outputs that stand in B, name by name.

    Attributes
    ----------
    parts : list of (name, outputs, softness)
    outputs : (e,) array
    rows : (e, k) array
    softness : (e,) array
        Entries of E: 1/θ, or 0 of an equality.
    """

    def __init__(
        self, parts: list[tuple[str, np.ndarray, FloatArray]], rows: ByName, size: int
    ) -> None:
        self.parts = parts
        self.outputs = np.concatenate([np.zeros(0, np.intp), *(at for _, at, _ in parts)])
        self.softness = np.concatenate([np.zeros(0), *(soft for *_, soft in parts)])
        self.rows = np.concatenate([np.zeros((0, size)), *(rows[k][at] for k, at, _ in parts)])

    def products(self, reached: FloatArray) -> FloatArray:
        """Return aᵀH⁻¹a' of all pairs: 0 unless they are of the same output."""
        products = np.zeros((len(self.outputs),) * 2)
        order = np.argsort(self.outputs, kind="stable")
        for same in np.split(order, np.nonzero(np.diff(self.outputs[order]))[0] + 1):
            products[np.ix_(same, same)] = reached[same] @ self.rows[same].T
        return products

    def split(self, values: FloatArray) -> ByName:
        """Return the values of every name."""
        ends = np.cumsum([len(at) for _, at, _ in self.parts])
        return {
            k: values[end - len(at) : end] for (k, at, _), end in zip(self.parts, ends, strict=True)
        }


class _Cholesky:
    """The factor of a positive semidefinite system, scaled, and shifted as far as it needs."""

    def __init__(self, system: FloatArray) -> None:
        size = np.diag(system)  # 0 where a letter or a row has nothing to choose
        self.scale = np.where(size > 0, 1.0 / np.sqrt(np.maximum(size, TINY)), 0.0)
        for shift in _SHIFTS:
            scaled = system * self.scale[:, None]
            scaled *= self.scale
            np.einsum("ii->i", scaled)[...] += shift
            self.factor, failed = lapack.dpotrf(scaled, lower=1, clean=0, overwrite_a=1)
            if not failed:
                return
        raise np.linalg.LinAlgError(f"no direction for {len(system)} letters and rows")

    def solve(self, right: FloatArray) -> FloatArray:
        solution: FloatArray = (
            self.scale * lapack.dpotrs(self.factor, self.scale * right, lower=1)[0]
        )
        if not np.isfinite(solution).all():
            raise np.linalg.LinAlgError("a direction that is not finite")
        return solution


def _one(rows: list[FloatArray]) -> FloatArray:
    """Return all rows (m, r, k) of each output in one array, without a copy where they are."""
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
