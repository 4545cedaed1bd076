r"""A primal–dual interior-point method for channel programs, column by column.

Newton's method on the perturbed optimality conditions

.. math:: ∇L(Q, λ, ν) = z - v, \quad z∘(Q - lo) = v∘(hi - Q) = λ∘s = μ, \quad f(Q) + s = b,
          \quad \sum_y Q = p,

with μ driven to 0.  The Hessian of Σ_y Φ_k(y) is block diagonal, one block for each output,

.. math:: H_y = M_k^\top(\mathrm{diag}(1/J) - 11^\top/q) M_k,

so that one step costs m factorisations of n × n blocks and one Schur complement for the row sums
and the rows that couple the outputs.  What is found goes to the prover like any other proposal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.model.information import nat
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.solvers.presolve import total_weight

__all__ = ["central_path", "fits"]

_STEPS = 100
_FIRST = 1e-6  # μ at the beginning, in the unit of the objective
_OFFERED = 1e-8  # … of the first point that is proposed
_LAST = 1e-12  # … and of the last
_LARGEST = 2e6  # numbers in the borders of all blocks

ByName = dict[str, FloatArray]  # of rows or views


def fits(program: ChannelProgram) -> bool:
    """Tell whether the method knows the program: no auxiliary, and room for its borders."""
    rows = program.constraints.values()
    many = sum(row.per_output for row in rows if row.sense == "==")
    columns = program.n + len(rows) + many * program.m
    small = program.n * program.m * columns <= _LARGEST
    return small and not program.auxiliaries and not any(row.silences for row in rows)


def central_path(
    program: ChannelProgram, start: FloatArray, dual: Dual
) -> Iterator[tuple[FloatArray, Dual]]:
    """Follow the central path from near an optimum; yield channels and multipliers on it.

    Parameters
    ----------
    program : ChannelProgram
        For which :func:`fits`.
    start : (n, m) array
        A channel near the optimum.
    dual : Dual
        Multipliers near the optimal ones.
    """
    path, size = _Path(program), program.n * program.m
    mu = _FIRST / size
    x = path.near(start, dual.cleaned(program), mu)
    norm, gradient, off = path.residual(x, mu, x)
    for _ in range(_STEPS):
        if norm < 0.5:
            if mu * size < _OFFERED:
                yield path.proposal(x)
            if mu * size <= _LAST:
                return
            mu *= 0.1
            norm, gradient, off = path.residual(x, mu, x)
        try:
            direction = path.newton(x, mu, gradient, off)
        except np.linalg.LinAlgError:
            return
        t = x.longest(direction, path)
        for _ in range(12):
            trial = x.moved(direction, t)
            if path.residual(trial, mu, x)[0] < (1 - 1e-2 * t) * norm:
                break
            t *= 0.5
        else:
            return
        x = trial
        norm, gradient, off = path.residual(x, mu, x)


@dataclass
class _Point:
    """A point near the path: ``slack`` and ``price`` of inequalities, ``nu`` of equalities."""

    q: FloatArray
    z: FloatArray
    v: FloatArray
    nu: FloatArray
    slack: FloatArray
    price: FloatArray

    def moved(self, d: _Point, t: float) -> _Point:
        return _Point(*(getattr(self, f.name) + t * getattr(d, f.name) for f in fields(self)))

    def longest(self, d: _Point, path: _Path) -> float:
        """Return the largest step that keeps everything positive, cut by a hundredth, at most 1."""
        most = 1.0
        for have, change in (
            *((self.q - path.low, d.q), (path.high - self.q, -d.q), (self.z, d.z), (self.v, d.v)),
            *((self.slack, d.slack), (self.price, d.price)),
        ):
            down = change < 0
            if np.any(down):
                most = min(most, 0.99 * float(np.min(have[down] / -change[down])))
        return most


class _Path:
    """A program in joint mass, its functions, and the Newton steps."""

    def __init__(self, program: ChannelProgram) -> None:
        self.program, mass = program, program.mass[:, None]
        shape, rows = (program.n, program.m), program.constraints
        self.low = np.zeros(shape) if program.floor is None else mass * program.floor
        self.high = np.full(shape, np.inf)
        if program.ceiling is not None:
            self.high = np.where(program.ceiling < 1, mass * program.ceiling, np.inf)
        self.free = self.high > self.low
        self.nat = nat(program.units)
        self.views = {
            view: (program.view_matrix(view).toarray() / program.mass, program.reference(view))
            for view in program.views
        }
        inequalities = {k: row for k, row in rows.items() if row.sense == "<="}
        sizes = [program.m if row.per_output else 1 for row in inequalities.values()]
        ends = np.cumsum([0, *sizes]).tolist()
        self.size = ends[-1]
        self.rows = {k: slice(*e) for k, e in zip(inequalities, pairwise(ends), strict=True)}
        self.span = {k: self._span(row) for k, row in rows.items()}
        self.cost = {k: program.cost(row.expression) / self.span[k] for k, row in rows.items()}
        self.bound = {
            k: (row.bounds(program.m) - float(row.expression.constant)) / self.span[k]
            for k, row in rows.items()
        }
        self.weights = {
            k: {v: w * self.nat / self.span[k] for v, w in r.expression.columns(program.m).items()}
            for k, r in rows.items()
        }
        self.objective = program.cost(program.objective) / program.scale
        self.objective_weights = {
            view: weight * self.nat / program.scale
            for view, weight in program.objective.columns(program.m).items()
        }
        self.equal, self.target = self._equalities()

    def _span(self, row: Constraint) -> float:
        information = total_weight(self.program, row.expression) * self.nat
        return float(np.abs(self.program.cost(row.expression)).max() + information) or 1.0

    def _equalities(self) -> tuple[FloatArray, FloatArray]:
        """Return all equalities as borders (m, n, c), A_yᵀ, and their right-hand sides (c,)."""
        n, m = self.program.n, self.program.m
        borders, targets = [np.broadcast_to(np.eye(n), (m, n, n))], [self.program.mass]
        for name, row in self.program.constraints.items():
            if row.sense == "==":
                columns = self.cost[name].T[:, :, None]
                borders.append(columns * np.eye(m)[:, None, :] if row.per_output else columns)
                targets.append(np.atleast_1d(self.bound[name]))
        return np.concatenate(borders, axis=2), np.concatenate(targets)

    # ---- points --------------------------------------------------------------------------

    def near(self, start: FloatArray, dual: Dual, mu: float) -> _Point:
        """Return a point inside, as near to a channel and multipliers as μ allows."""
        program, mass = self.program, self.program.mass[:, None]
        g, _ = dual.minorant(program)
        nu = program.least(g)[1] / program.mass / program.scale
        reduced = g / mass / program.scale - nu[:, None]
        z, v = np.maximum(reduced, 0.0), np.maximum(-reduced, 0.0)
        width = np.where(np.isfinite(self.high), self.high - self.low, mass)
        away = np.minimum(mu / np.maximum(z, 1e-300), 1e-3 * width)
        q = np.maximum(mass * np.maximum(start, 0.0), self.low + away)
        below = np.minimum(mu / np.maximum(v, 1e-300), 1e-3 * width)
        q = np.where(self.free, np.minimum(q, self.high - below), self.low)
        room, above = np.where(self.free, q - self.low, 1.0), self.high - q
        bounded = np.isfinite(above) & self.free
        lam, equal = np.zeros(self.size), [-nu]
        for name in program.constraints:
            own = np.asarray(dual.multipliers[name], float) * self.span[name] / program.scale
            if name in self.rows:
                lam[self.rows[name]] = own
            else:
                equal.append(np.atleast_1d(own))
        gap = np.maximum(-self.excess(q, self.views_at(q)[0]), mu / np.maximum(lam, 1e-6))
        price = np.maximum(lam, mu / gap)
        z = np.where(self.free, np.maximum(z, mu / room), 0.0)
        v = np.where(bounded, np.maximum(v, mu / np.where(bounded, above, 1.0)), 0.0)
        return _Point(q, z, v, np.concatenate(equal), mu / price, price)

    def proposal(self, x: _Point) -> tuple[FloatArray, Dual]:
        """Return channel and multipliers in the program's own scale."""
        program = self.program
        _, scores, _ = self.views_at(x.q)
        multipliers: ByName = {}
        place = program.n
        for name, row in program.constraints.items():
            if name in self.rows:
                own = x.price[self.rows[name]]
            else:
                count = program.m if row.per_output else 1
                own, place = x.nu[place : place + count], place + count
            own = own if row.per_output else own[0]
            multipliers[name] = np.asarray(own) * program.scale / self.span[name]
        return x.q / program.mass[:, None], Dual(scores, multipliers)

    # ---- functions -----------------------------------------------------------------------

    def views_at(self, q: FloatArray) -> tuple[ByName, ByName, ByName]:
        """Return Φ_k(y), log(J/(π q)) and the joint law J of each view."""
        phi, scores, joints = {}, {}, {}
        for view, (matrix, reference) in self.views.items():
            joint = matrix @ q
            other = np.maximum(reference[:, None] * joint.sum(axis=0), 1e-300)
            scores[view] = np.log(np.maximum(joint, 1e-300) / other)
            phi[view] = (joint * scores[view]).sum(axis=0)
            joints[view] = joint
        return phi, scores, joints

    def excess(self, q: FloatArray, phi: ByName) -> FloatArray:
        """Return f − b of all inequalities."""
        excess = np.zeros(self.size)
        for name, where in self.rows.items():
            columns = (self.cost[name] * q).sum(axis=0)
            columns = columns + sum(w * phi[v] for v, w in self.weights[name].items())
            per_output = self.program.constraints[name].per_output
            excess[where] = (columns if per_output else columns.sum()) - self.bound[name]
        return excess

    def slope(self, cost: FloatArray, weights: ByName, scores: ByName) -> FloatArray:
        """Return the gradient of ⟨cost, Q⟩ + Σ_k w_k Φ_k."""
        slope = cost
        for view, weight in weights.items():
            slope = slope + self.views[view][0].T @ (weight * scores[view])
        return slope

    def row_slope(self, name: str, scores: ByName) -> FloatArray:
        return self.slope(self.cost[name], self.weights[name], scores)

    def unmet(self, q: FloatArray) -> FloatArray:
        """Return A Q − b of the equalities."""
        return q.T.ravel() @ self.equal.reshape(q.size, -1) - self.target

    def residual(self, x: _Point, mu: float, at: _Point) -> tuple[float, FloatArray, FloatArray]:
        """Return the norm, scaled as at the point ``at``, ∇L without z and v, and rows' f − b."""
        phi, scores, _ = self.views_at(x.q)
        gradient = self.slope(self.objective, self.objective_weights, scores)
        gradient = gradient + (self.equal @ x.nu).T
        off = self.excess(x.q, phi)
        room = np.where(self.free, x.q - self.low, 0.0)
        above = np.where(np.isfinite(self.high) & self.free, self.high - x.q, 0.0)
        terms = [(x.z * room / mu - 1.0)[self.free], (x.v * above / mu - 1.0)[above > 0]]
        terms += [(off + x.slack) * at.price / mu, x.price * x.slack / mu - 1.0]
        for name, where in self.rows.items():
            gradient = gradient + x.price[where] * self.row_slope(name, scores)
        scale = np.where(self.free, at.q - self.low, 0.0)
        terms.append(scale * (gradient - x.z + x.v) / mu)
        terms.append(1e-2 * self.unmet(x.q) * (np.abs(at.nu) + 1.0) / mu)
        return float(sum((term**2).sum() for term in terms)) ** 0.5, gradient, off

    # ---- steps ---------------------------------------------------------------------------

    def newton(self, x: _Point, mu: float, gradient: FloatArray, off: FloatArray) -> _Point:
        """Return the Newton direction."""
        _, scores, joints = self.views_at(x.q)
        room = np.where(self.free, x.q - self.low, 1.0)
        above = np.where(self.free, self.high - x.q, np.inf)
        slopes = {name: self.row_slope(name, scores) for name in self.rows}
        ratio, gap = x.price / x.slack, off + mu / x.price
        per_output = {name: self.program.constraints[name].per_output for name in self.rows}
        coupling = [name for name in self.rows if not per_output[name]]
        single = [self.rows[name].start for name in coupling]

        blocks = self._curvature(x, joints)
        right = -(gradient - mu / room + mu / above)
        for name, where in self.rows.items():
            if per_output[name]:  # it couples no outputs: into the blocks
                g = slopes[name]
                blocks += (ratio[where] * g).T[:, :, None] * g.T[:, None, :]
                right = right - g * (ratio[where] * gap[where])
        diagonal = np.arange(self.program.n)
        blocks[:, diagonal, diagonal] += (x.z / room + x.v / above).T
        border = np.concatenate([self.equal, *(slopes[k].T[:, :, None] for k in coupling)], axis=2)
        if not self.free.all():
            fixed = ~self.free.T
            blocks[fixed] = 0.0
            blocks.transpose(0, 2, 1)[fixed] = 0.0
            blocks[:, diagonal, diagonal] += fixed
            border = np.where(fixed[:, :, None], 0.0, border)
            right = np.where(self.free, right, 0.0)
        size = self.equal.shape[2]
        corner = np.concatenate([np.zeros(size), 1.0 / ratio[single]])
        rest = np.concatenate([-self.unmet(x.q), -gap[single]])
        dq, duals = _bordered(blocks, border, corner, right, rest)
        dq = np.where(self.free, dq, 0.0)

        dprice = np.zeros(self.size)
        dprice[single] = duals[size:]
        for name, where in self.rows.items():
            if per_output[name]:
                dprice[where] = ratio[where] * ((slopes[name] * dq).sum(axis=0) + gap[where])
        dslack = mu / x.price - x.slack - dprice / ratio
        dz = np.where(self.free, (mu - x.z * dq) / room - x.z, 0.0)
        dv = np.where(np.isfinite(above), (mu + x.v * dq) / above - x.v, 0.0)
        return _Point(dq, dz, dv, duals[:size], dslack, dprice)

    def _curvature(self, x: _Point, joints: ByName) -> FloatArray:
        """Return the Hessian of the Lagrangian in Q, a block (n, n) for each output."""
        omega = dict(self.objective_weights)
        for name, where in self.rows.items():
            for view, weight in self.weights[name].items():
                omega[view] = omega.get(view, 0.0) + x.price[where] * weight
        blocks = np.zeros((self.program.m, self.program.n, self.program.n))
        for view, weight in omega.items():
            matrix, joint = self.views[view][0], joints[view]
            inner = matrix[None] * (weight / np.maximum(joint, 1e-300)).T[:, :, None]
            total, mean = matrix.sum(axis=0), weight / np.maximum(joint.sum(axis=0), 1e-300)
            blocks += matrix.T @ inner - mean[:, None, None] * np.outer(total, total)
        return blocks


def _bordered(
    blocks: FloatArray, border: FloatArray, corner: FloatArray, right: FloatArray, rest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve [H B; Bᵀ −diag(corner)] (dq, duals) = (right, rest), H block diagonal."""
    m, n, _ = blocks.shape
    diagonal = np.arange(n)
    root = np.sqrt(blocks[:, diagonal, diagonal])
    scaled = blocks / root[:, :, None] / root[:, None, :]
    sides = np.concatenate([border, right.T[:, :, None]], axis=2) / root[:, :, None]
    solved = np.linalg.solve(scaled, sides) / root[:, :, None]
    schur = border.reshape(m * n, -1).T @ solved.reshape(m * n, -1)
    system = schur[:, :-1] + np.diag(corner)
    scale = np.sqrt(np.maximum(np.diag(system), 1e-300))
    target = (schur[:, -1] - rest) / scale
    system = system / scale[:, None] / scale
    good = np.isfinite(system).all() and np.isfinite(target).all()
    if not (good and (np.diag(schur[:, :-1]) > 0).all()):
        raise np.linalg.LinAlgError("no direction")  # on which LAPACK need not return
    duals = np.linalg.lstsq(system, target, rcond=1e-15)[0] / scale
    return (solved[:, :, -1] - solved[:, :, :-1] @ duals).T, duals
