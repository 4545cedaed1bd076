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
from dataclasses import dataclass

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.model.information import nat
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint

__all__ = ["fits", "follow"]

_STEPS = 100
_OFFERED = 1e-8  # μ of the first point that is proposed, in the unit of the objective
_LAST = 1e-12  # … and of the last
_LARGEST = 2e6  # numbers in the borders of all blocks


def fits(program: ChannelProgram) -> bool:
    """Tell whether the method knows the program: no auxiliary, and room for its borders."""
    many = sum(row.per_output for row in program.constraints.values() if row.sense == "==")
    columns = program.n + len(program.constraints) + many * program.m
    small = program.n * program.m * columns <= _LARGEST
    silenced = any(row.silences for row in program.constraints.values())
    return small and not program.auxiliaries and not silenced


@dataclass
class _Point:
    """A point near the central path; ``slack`` and ``price`` by row, ``nu`` of all equalities."""

    q: FloatArray
    z: FloatArray
    v: FloatArray
    nu: FloatArray
    slack: dict[str, FloatArray]
    price: dict[str, FloatArray]


class _Path:
    """A program in joint mass, its functions, and the Newton steps."""

    def __init__(self, program: ChannelProgram) -> None:
        self.program, mass = program, program.mass[:, None]
        shape = (program.n, program.m)
        self.low = np.zeros(shape) if program.floor is None else mass * program.floor
        self.high = np.full(shape, np.inf)
        if program.ceiling is not None:
            self.high = np.where(program.ceiling < 1, mass * program.ceiling, np.inf)
        self.free = self.high > self.low
        self.nat = nat(program.units)
        self.seen = {
            view: (program.view_matrix(view).toarray() / program.mass, program.reference(view))
            for view in program.views
        }
        self.rows = {k: row for k, row in program.constraints.items() if row.sense == "<="}
        self.span = {k: self._span(row) for k, row in program.constraints.items()}
        self.cost = {
            k: program.cost(r.expression) / self.span[k] for k, r in program.constraints.items()
        }
        self.bound = {
            k: (row.bounds(program.m) - float(row.expression.constant)) / self.span[k]
            for k, row in program.constraints.items()
        }
        self.weights = {
            k: {v: w * self.nat / self.span[k] for v, w in r.expression.columns(program.m).items()}
            for k, r in program.constraints.items()
        }
        self.objective = program.cost(program.objective) / program.scale
        self.own = {
            view: weight * self.nat / program.scale
            for view, weight in program.objective.columns(program.m).items()
        }
        self.equal, self.target = self._equalities()

    def _span(self, row: Constraint) -> float:
        cost = self.program.cost(row.expression)
        weights = [
            float(np.max(w, initial=0.0)) for w in row.expression.columns(self.program.m).values()
        ]
        return float(np.abs(cost).max() + sum(weights) * self.nat) or 1.0

    def _equalities(self) -> tuple[FloatArray, FloatArray]:
        """Return all equalities as borders (m, n, c), A_yᵀ, and their right-hand sides (c,)."""
        n, m = self.program.n, self.program.m
        borders, targets = [np.broadcast_to(np.eye(n), (m, n, n))], [self.program.mass]
        for name, row in self.program.constraints.items():
            if row.sense != "==":
                continue
            columns = self.cost[name].T[:, :, None]
            if row.per_output:
                columns = columns * np.eye(m)[:, None, :]
            borders.append(columns)
            targets.append(np.atleast_1d(self.bound[name]))
        return np.concatenate(borders, axis=2), np.concatenate(targets)

    # ---- functions -----------------------------------------------------------------------

    def value(self, name: str, q: FloatArray, phi: dict[str, FloatArray]) -> FloatArray:
        row = self.program.constraints[name]
        columns = (self.cost[name] * q).sum(axis=0)
        columns = columns + sum(w * phi[v] for v, w in self.weights[name].items())
        return columns if row.per_output else np.asarray(columns.sum())

    def at(self, q: FloatArray) -> tuple[dict[str, FloatArray], ...]:
        """Return Φ_k(y), log(J/(π q)) and the joint law J of each view."""
        phi, scores, joints = {}, {}, {}
        for view, (matrix, reference) in self.seen.items():
            joint = matrix @ q
            other = np.maximum(reference[:, None] * joint.sum(axis=0), 1e-300)
            scores[view] = np.log(np.maximum(joint, 1e-300) / other)
            phi[view] = (joint * scores[view]).sum(axis=0)
            joints[view] = joint
        return phi, scores, joints

    def unmet(self, q: FloatArray) -> FloatArray:
        """Return A Q − b of the equalities."""
        return q.T.ravel() @ self.equal.reshape(q.size, -1) - self.target

    def slope(self, weights: dict[str, FloatArray], scores: dict[str, FloatArray]) -> FloatArray:
        found = np.zeros_like(self.low)
        for view, weight in weights.items():
            found = found + self.seen[view][0].T @ (weight * scores[view])
        return found

    # ---- steps ---------------------------------------------------------------------------

    def residual(
        self, x: _Point, mu: float, at: _Point
    ) -> tuple[float, FloatArray, dict[str, FloatArray]]:
        """Return the norm, scaled as at the point ``at``, ∇L without z and v, and rows' f − b."""
        phi, scores, _ = self.at(x.q)
        gradient = self.objective + self.slope(self.own, scores)
        gradient = gradient + (self.equal @ x.nu).T
        off = {}
        total = 0.0
        for name in self.rows:
            price = x.price[name]
            gradient = gradient + price * (self.cost[name] + self.slope(self.weights[name], scores))
            off[name] = self.value(name, x.q, phi) - self.bound[name]
            total += float((((off[name] + x.slack[name]) * at.price[name] / mu) ** 2).sum())
            total += float(((price * x.slack[name] / mu - 1.0) ** 2).sum())
        room = np.where(self.free, x.q - self.low, 0.0)
        above = np.where(np.isfinite(self.high) & self.free, self.high - x.q, 0.0)
        scale = np.where(self.free, at.q - self.low, 0.0)
        total += float(((scale * (gradient - x.z + x.v) / mu) ** 2).sum())
        total += float(((x.z * room / mu - 1.0)[self.free] ** 2).sum())
        total += float(((x.v * above / mu - 1.0)[above > 0] ** 2).sum())
        left = self.unmet(x.q)
        total += float(((left * (np.abs(at.nu) + 1.0) / mu) ** 2).sum()) * 1e-4
        return total**0.5, gradient, off

    def step(
        self, x: _Point, mu: float, gradient: FloatArray, off: dict[str, FloatArray]
    ) -> _Point:
        """Return the Newton direction."""
        program, n, m = self.program, self.program.n, self.program.m
        _, scores, joints = self.at(x.q)
        room = np.where(self.free, x.q - self.low, 1.0)
        above = np.where(self.free, self.high - x.q, np.inf)
        right = -(gradient - mu / room + mu / above)
        blocks = np.zeros((m, n, n))
        omega = dict(self.own)
        for name in self.rows:
            for view, weight in self.weights[name].items():
                omega[view] = omega.get(view, 0.0) + x.price[name] * weight
        for view, weight in omega.items():
            matrix, joint = self.seen[view][0], joints[view]
            inner = matrix[None] * (weight / np.maximum(joint, 1e-300)).T[:, :, None]
            blocks += matrix.T @ inner
            total = matrix.sum(axis=0)
            mean = weight / np.maximum(joint.sum(axis=0), 1e-300)
            blocks -= mean[:, None, None] * np.outer(total, total)
        diagonal = x.z / room + x.v / above
        borders, rest = [self.equal], [-self.unmet(x.q)]
        corner = [np.zeros(self.equal.shape[2])]
        slopes: dict[str, FloatArray] = {}
        for name in self.rows:
            slopes[name] = self.cost[name] + self.slope(self.weights[name], scores)
            ratio = x.price[name] / x.slack[name]
            gap = off[name] + mu / x.price[name]
            if program.constraints[name].per_output:
                g = slopes[name]
                blocks += (ratio * g).T[:, :, None] * g.T[:, None, :]
                right = right - g * (ratio * gap)
            else:
                borders.append(slopes[name].T[:, :, None])
                rest.append(np.atleast_1d(-gap))
                corner.append(np.atleast_1d(1.0 / ratio))
        blocks[:, np.arange(n), np.arange(n)] += diagonal.T
        fixed = ~self.free.T
        border = np.concatenate(borders, axis=2)
        if fixed.any():
            blocks[fixed] = 0.0
            blocks.transpose(0, 2, 1)[fixed] = 0.0
            blocks[:, np.arange(n), np.arange(n)] += fixed
            border = np.where(fixed[:, :, None], 0.0, border)
            right = np.where(self.free, right, 0.0)
        root = np.sqrt(blocks[:, np.arange(n), np.arange(n)])
        scaled = blocks / root[:, :, None] / root[:, None, :]
        sides = np.concatenate([border, right.T[:, :, None]], axis=2) / root[:, :, None]
        solved = np.linalg.solve(scaled, sides) / root[:, :, None]
        flat = border.reshape(m * n, -1)
        schur = flat.T @ solved.reshape(m * n, -1)
        system = schur[:, :-1] + np.diag(np.concatenate(corner))
        scale = np.sqrt(np.maximum(np.diag(system), 1e-300))
        wanted = (schur[:, -1] - np.concatenate(rest)) / scale
        system = system / scale[:, None] / scale
        good = np.isfinite(system).all() and np.isfinite(wanted).all()
        if not (good and (np.diag(schur[:, :-1]) > 0).all()):
            raise np.linalg.LinAlgError("no direction")  # on which LAPACK need not return
        duals = np.linalg.lstsq(system, wanted, rcond=1e-15)[0] / scale
        dq = (solved[:, :, -1] - solved[:, :, :-1] @ duals).T
        dq = np.where(self.free, dq, 0.0)
        size = self.equal.shape[2]
        dslack, dprice, place = {}, {}, size
        for name in self.rows:
            price, slack = x.price[name], x.slack[name]
            if program.constraints[name].per_output:
                moved = (slopes[name] * dq).sum(axis=0)
                dprice[name] = price / slack * (moved + off[name] + mu / price)
            else:
                dprice[name] = np.asarray(duals[place])
                place += 1
            dslack[name] = mu / price - slack - slack / price * dprice[name]
        dz = np.where(self.free, (mu - x.z * dq) / room - x.z, 0.0)
        dv = np.where(np.isfinite(above), (mu + x.v * dq) / above - x.v, 0.0)
        return _Point(dq, dz, dv, duals[:size], dslack, dprice)

    def proposal(self, x: _Point) -> tuple[FloatArray, Dual]:
        """Return channel and multipliers in the program's own scale."""
        program = self.program
        _, scores, _ = self.at(x.q)
        found: dict[str, FloatArray] = {}
        place = program.n
        for name, row in program.constraints.items():
            if row.sense == "==":
                count = program.m if row.per_output else 1
                own, place = x.nu[place : place + count], place + count
                own = own if row.per_output else own[0]
            else:
                own = x.price[name]
            found[name] = np.asarray(own) * program.scale / self.span[name]
        return x.q / program.mass[:, None], Dual(scores, found)

    def moved(self, x: _Point, d: _Point, t: float) -> _Point:
        def both(a: dict[str, FloatArray], b: dict[str, FloatArray]) -> dict[str, FloatArray]:
            return {k: a[k] + t * b[k] for k in a}

        return _Point(
            *(x.q + t * d.q, x.z + t * d.z, x.v + t * d.v, x.nu + t * d.nu),
            *(both(x.slack, d.slack), both(x.price, d.price)),
        )

    def longest(self, x: _Point, d: _Point) -> float:
        """Return the largest step that keeps everything positive, cut by a hundredth, at most 1."""
        pairs = [(x.q - self.low, d.q), (x.z, d.z), (x.v, d.v), (self.high - x.q, -d.q)]
        pairs += [(x.slack[k], d.slack[k]) for k in x.slack]
        pairs += [(x.price[k], d.price[k]) for k in x.price]
        most = 1.0
        for have, change in pairs:
            down = change < 0
            if np.any(down):
                most = min(most, 0.99 * float(np.min((have / -np.where(down, change, -1))[down])))
        return most


def follow(
    program: ChannelProgram, start: FloatArray, dual: Dual, *, first: float = 1e-6
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
    first : float
        μ at the beginning, in the unit of the objective.
    """
    path, mass = _Path(program), program.mass[:, None]
    mu = first / (program.n * program.m)
    dual = dual.cleaned(program)
    g, _ = dual.minorant(program)
    nu = program.least(g)[1] / program.mass / program.scale
    reduced = g / mass / program.scale - nu[:, None]
    z, v = np.maximum(reduced, 0.0), np.maximum(-reduced, 0.0)
    width = np.where(np.isfinite(path.high), path.high - path.low, mass)
    away = np.minimum(mu / np.maximum(z, 1e-300), 1e-3 * width)
    q = np.maximum(mass * np.maximum(start, 0.0), path.low + away)
    below = np.minimum(mu / np.maximum(v, 1e-300), 1e-3 * width)
    q = np.where(path.free, np.minimum(q, path.high - below), path.low)
    inside, above = np.where(path.free, q - path.low, 1.0), path.high - q
    phi, _, _ = path.at(q)
    slack, price = {}, {}
    for name in path.rows:
        lam = np.asarray(dual.multipliers[name], float) * path.span[name] / program.scale
        gap = path.bound[name] - path.value(name, q, phi)
        slack[name] = np.maximum(gap, mu / np.maximum(lam, 1e-6))
        price[name] = np.maximum(lam, mu / slack[name])
        slack[name] = mu / price[name]
    equal = [-nu]
    for name, row in program.constraints.items():
        if row.sense == "==":
            lam = np.asarray(dual.multipliers[name], float) * path.span[name] / program.scale
            equal.append(np.atleast_1d(lam))
    bounded = np.isfinite(above) & path.free
    x = _Point(
        q,
        np.where(path.free, np.maximum(z, mu / inside), 0.0),
        np.where(bounded, np.maximum(v, mu / np.where(bounded, above, 1.0)), 0.0),
        np.concatenate(equal),
        slack,
        price,
    )
    norm, gradient, off = path.residual(x, mu, x)
    for _ in range(_STEPS):
        if norm < 0.5:
            if mu * program.n * program.m < _OFFERED:
                yield path.proposal(x)
            if mu * program.n * program.m <= _LAST:
                return
            mu *= 0.1
            norm, gradient, off = path.residual(x, mu, x)
        try:
            direction = path.step(x, mu, gradient, off)
        except np.linalg.LinAlgError:
            return
        t = path.longest(x, direction)
        for _ in range(12):
            trial = path.moved(x, direction, t)
            if path.residual(trial, mu, x)[0] < (1 - 1e-2 * t) * norm:
                break
            t *= 0.5
        else:
            return
        x = trial
        norm, gradient, off = path.residual(x, mu, x)
