r"""The most useful release: a linear program over the rays of its rules.

.. math:: \max_{α ≥ 0} \sum_{r,y} α_{ry} μ(r) \quad\text{s.t.}\quad \sum α_{ry} r = 1, \quad
          \sum α_{ry} ⟨C_j(·, y), p\, r⟩ ≤ b_j

Rays are the verifier's own, corners {1, γ}ⁿ or vertices.  Few are in the linear program at a time:
those are added that its prices λ, κ find worth more than they cost.  Of corners that are too many
to list they are those near a threshold rule, and at last the verifier's own dearest corner.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from flint import arb
from scipy.optimize import linprog

from cvxprivacy.certificates.useful import UsefulProver
from cvxprivacy.errors import InputError
from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.programs.useful import UsefulDual, UsefulProgram, plain
from cvxprivacy.settings import RayGeneration
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.task import Outcome, reported
from cvxprivacy.solvers.threads import one_thread
from cvxprivacy.solvers.watch import Watch
from cvxprivacy_verifier.balls import UnaffordableError
from cvxprivacy_verifier.corners import Corners
from cvxprivacy_verifier.useful_proof import UsefulProof

__all__ = ["Master", "PricedMaster", "master_of", "prover_of", "rays_of", "solve_useful"]

_BLOCK = 2**16  # rays of which a table is made at a time
_PENALTIES = 1e3, 1e6, 1e9  # of what a row is broken by, where the greatest μ is 1
_BROKEN = 1e-9
_DUST = 1e-10  # of a ray that is taken
_LACKING = 1e-12, 1e-10  # by which λ is raised, where the greatest μ is 1: of a large γ most
_TIGHT: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_TRIED: Any = _TIGHT, {}  # where all rays are nearly alike HiGHS may reach less only


@one_thread()
def solve_useful(
    program: UsefulProgram,
    *,
    accuracy: str = "default",
    watch: Watch | None = None,
    candidate: FloatArray | None = None,
    **_: Any,
) -> Outcome:
    """Maximise what is useful, and prove both ends.

    Parameters
    ----------
    program : UsefulProgram
    accuracy : {"default", "high"}
    watch : Watch, optional
        What ends it early.
    candidate : (n, m) array, optional
        A channel of somebody else, which is proved in place of the best one.

    Raises
    ------
    InputError
        For more rays than a verifier would look at.
    """
    watch, log = watch or Watch(), list[str]()
    prover = prover_of(program, accuracy)
    master = master_of(prover.proof, program, watch)
    for penalty in _PENALTIES:
        log.append(reported(master.solve(penalty)))
        if master.broken <= _BROKEN or watch.stopped:
            break
        if not log[1:]:  # is anything feasible?  That is a convex program
            feasible = solve(plain(program), accuracy=accuracy, watch=watch)
            log += feasible.log
            if feasible.certificate.status == "infeasible":
                return Outcome(feasible.certificate, log)
    prover.candidates.append(master.inside())
    prover.take_dual(master.dual)
    prover.offer_channel(master.channel if candidate is None else candidate)
    return Outcome(prover.certificate(), log)


def prover_of(program: UsefulProgram, accuracy: str = "default") -> UsefulProver:
    """Return what proves the ends, unless there are too many rays.

    Raises
    ------
    InputError
        For too many letters, of which the verifier looks at every ray or bounds what they tell.
    """
    settings = RayGeneration.current()
    try:
        if program.n > settings.letters:
            raise UnaffordableError(f"{program.n} letters, where {settings.letters} are the most")
        prover = UsefulProver(program, accuracy)
        _ = prover.proof.corners
        return prover
    except UnaffordableError as error:
        remedy = "merge letters of x, or values of w: every ray is looked at, also by the verifier"
        raise InputError("source", str(error), remedy) from None


def master_of(proof: UsefulProof, program: UsefulProgram, watch: Watch | None = None) -> Master:
    """Return the linear program of all rays, or of those that are looked for as it is solved."""
    rays = rays_of(proof, program)
    if proof.corners is None:
        return Master(program, rays, watch)
    return PricedMaster(program, rays, proof.corners, watch)


def rays_of(proof: UsefulProof, program: UsefulProgram) -> FloatArray:
    """Return a constant and the rays that the verifier looks at, shape (rays, n), ⟨p, r⟩ = 1.

    Of corners that are too many to look at they are those of one letter.
    """
    n = program.n
    if proof.corners is not None:
        rays = _rays(np.eye(n + 1, n), proof.corners.ratio)
    elif proof.plain:
        assert proof.ratio is not None
        corners = np.arange(2**n)[:, None] >> np.arange(n) & 1
        rays = _rays(corners, proof.ratio)
    else:
        rays = np.zeros((1 + len(proof.vertices), n))
        rays[0] = 1.0  # which no rule forbids: with it the first linear program is feasible
        for row, (support, entries) in zip(rays[1:], proof.vertices, strict=True):
            row[list(support)] = [int(x.p) / int(x.q) for x in entries]
    rays /= (rays @ program.mass)[:, None]
    return rays


class Master:
    """A linear program over columns, each a ray and an output that costs as some others do.

    Attributes
    ----------
    rays : (rays, n) array
    values : (rays,) array
        μ of each.
    rows : mapping of str to Constraint
        What is of all outputs together.
    costs : (rows, n, classes) array
        p(s) C_j(s, y), of outputs that cost alike once.
    bounds : (rows,) array
    """

    enough = 1e-13  # what a column is worth beyond its price, where the greatest is 1

    def __init__(
        self, program: UsefulProgram, rays: FloatArray, watch: Watch | None = None
    ) -> None:
        self.program, self.rays, self.watch = program, rays, watch or Watch()
        self.settings = RayGeneration.current()
        self.rows = {k: row for k, row in program.constraints.items() if not row.per_output}
        rows = self.rows
        costs = [program.mass[:, None] * program.cost(row.expression) for row in rows.values()]
        stacked = np.vstack([np.zeros((1, program.m)), *costs])
        distinct, self._class_of = np.unique(stacked, axis=1, return_inverse=True)
        self.costs = distinct[1:].reshape(len(rows), program.n, distinct.shape[1])
        bounds = [float(row.bounds(1)) - float(row.expression.constant) for row in rows.values()]
        self.bounds = np.array(bounds)
        blocks = np.split(rays, range(_BLOCK, len(rays), _BLOCK))
        self.values = np.concatenate([_worth(program, block) for block in blocks])
        self._scale = max(float(np.abs(self.values).max()), TINY)
        self._columns: dict[tuple[int, int], None] = {}
        self.broken = 0.0

    def solve(self, penalty: float) -> str:
        """Add columns until none is worth more than it costs; return what was done."""
        classes = self.costs.shape[2]
        if len(self.rays) * classes <= self.settings.listed:
            self._add(np.repeat(np.arange(len(self.rays)), classes), np.arange(classes))
        else:  # the constant, and the rays that are most of one letter
            start = np.unique([0, *self.rays.argmax(axis=0), *self.rays.argmin(axis=0)])
            self._add(np.repeat(start, classes), np.arange(classes))
        for taken in range(1, self.settings.rounds + 1):
            self._restricted(penalty)
            self._look()
            best, cheapest = self._priced()
            over = float(best.max()) / self._scale
            self.watch.step(taken, max(over, 0.0), self.enough)
            few = np.argsort(-best, kind="stable")[: self.settings.added]
            few = few[best[few] > self.enough * self._scale]
            if not self._add(few, cheapest[few]) or self.watch.stopped:
                break
        return f"HiGHS: {len(self._columns):,} of {self.count:,} columns"

    @property
    def count(self) -> int:
        """How many columns there are."""
        return len(self.rays) * self.costs.shape[2]

    def _look(self) -> None:
        """Look for rays that are not listed; here all are."""

    def _add(self, rays: Any, classes: Any) -> bool:
        before = len(self._columns)
        classes = np.resize(classes, len(rays))
        self._columns |= dict.fromkeys(zip(rays.tolist(), classes.tolist(), strict=True))
        return len(self._columns) > before

    def _restricted(self, penalty: float) -> None:
        """Solve the linear program of the columns so far; rows may be broken at a price."""
        chosen = np.array(list(self._columns))
        rays = self.rays[chosen[:, 0]]
        spent = [(rays * cost.T[chosen[:, 1]]).sum(axis=1) for cost in self.costs]
        senses = [row.sense for row in self.rows.values()]
        off = [(j, sign) for j, s in enumerate(senses) for sign in (-1, 1)[: 1 + (s == "==")]]
        rows = np.zeros((len(senses), len(chosen) + len(off)))
        for i, row in enumerate(spent):
            rows[i] = [*row, *(sign * (i == j) for j, sign in off)]
        less = np.array([sense == "<=" for sense in senses], bool)
        worth = -self.values[chosen[:, 0]] / self._scale
        program: Any = {
            "c": np.concatenate([worth, np.full(len(off), penalty)]),
            "A_ub": rows[less] if less.any() else None,
            "b_ub": self.bounds[less] if less.any() else None,
            "A_eq": np.vstack(
                [np.hstack([rays.T, np.zeros((self.program.n, len(off)))]), rows[~less]]
            ),
            "b_eq": np.concatenate([np.ones(self.program.n), self.bounds[~less]]),
        }
        for options in _TRIED:
            answer = linprog(**program, method="highs-ds", options=options)
            if answer.x is not None:
                break
        else:
            raise ValueError(f"HiGHS: {answer.message}")
        self._taken, count = answer.x[: len(chosen)], self.program.n
        self.broken = float(answer.x[len(chosen) :].sum())
        equal = -answer.eqlin.marginals * self._scale
        self._letters, self._kappa = equal[:count], np.zeros(len(senses))
        self._kappa[~less] = equal[count:]
        self._kappa[less] = np.maximum(-answer.ineqlin.marginals, 0.0) * self._scale

    def _priced(self) -> tuple[FloatArray, Any]:
        """Return what each ray is worth beyond λ and κ, at its cheapest output, and which it is."""
        best = self.values - self.rays @ self._letters
        if not len(self._kappa):
            return best, np.zeros(len(best), int)
        table = np.tensordot(self._kappa, self.costs, axes=1)
        cheapest = np.empty(len(best), int)
        for start in range(0, len(best), _BLOCK):
            part = slice(start, start + _BLOCK)
            costs = self.rays[part] @ table
            cheapest[part] = costs.argmin(axis=1)
            best[part] -= costs.min(axis=1)
        return best, cheapest

    def inside(self) -> FloatArray:
        """Return a channel to repair the one that is taken by: no other outputs, and room in all.

        Rules of an output are mended by what tells nothing there, rows of all by what costs little.
        """
        law = self.program.mass @ self.channel
        constant = np.tile(law, (self.program.n, 1))
        if not self.rows:
            return constant
        other = copy(self)
        other.values, other._scale, other._columns = np.zeros(len(self.rays)), 1.0, {}
        other.bounds = -np.abs(self.costs).sum(axis=(1, 2))  # below all that it may cost
        other.solve(1.0)
        cheap, share = other.channel, self.settings.inside
        while True:
            mixed = (1 - share) * cheap + share * (constant + self.program.mass @ cheap) / 2
            share /= 4
            strict = (self._spent(mixed) < self.bounds - _BROKEN).all()
            if strict or share <= self.settings.least_inside:
                break
        return mixed

    def _spent(self, channel: FloatArray) -> FloatArray:
        """Return what each row is at a channel."""
        return (channel * self.costs[:, :, self._class_of]).sum(axis=(1, 2))

    @property
    def dual(self) -> UsefulDual:
        """λ and κ, as the last linear program has them."""
        kappa = dict(zip(self.rows, self._kappa.tolist(), strict=True))
        return UsefulDual(self._letters, kappa)

    @property
    def channel(self) -> FloatArray:
        """The columns that are taken, each at an output that costs as it does."""
        channel = np.zeros((self.program.n, self.program.m))
        free = [np.flatnonzero(self._class_of == k) for k in range(self.costs.shape[2])]
        used, columns = [0] * len(free), list(self._columns)
        large = np.flatnonzero(self._taken > _DUST)
        for i in large:
            ray, k = columns[i]
            # a sum of columns of the cone is in it: the last output takes what is over
            y = free[k][min(used[k], len(free[k]) - 1)]
            channel[:, y] += self._taken[i] * self.rays[ray]
            used[k] += 1
        # ratios of what is so little are lost in rounding: it goes to the largest column
        dust = np.flatnonzero((self._taken > 0) & (self._taken <= _DUST))
        largest = channel.sum(axis=0).argmax()
        for i in dust:
            channel[:, largest] += self._taken[i] * self.rays[columns[i][0]]
        return channel


class PricedMaster(Master):
    """A linear program over corners {1, γ}ⁿ that are too many to list."""

    enough = 1e-9  # columns are searched for, each of which takes time

    def __init__(
        self,
        program: UsefulProgram,
        rays: FloatArray,
        corners: Corners,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(program, rays, watch)
        self._corners = corners
        self._listed = {row.tobytes() for row in np.eye(program.n + 1, program.n, dtype=bool)}

    @property
    def count(self) -> int:
        return 2**self.program.n * self.costs.shape[2]

    @property
    def dual(self) -> UsefulDual:
        """λ and κ, so that no corner is worth more in rounding alone: of a mass γ it is γ times."""
        lacking = np.clip(1e-15 * float(self._corners.ratio), *_LACKING)
        raised = self._letters + lacking * self._scale * self.program.mass
        return replace(super().dual, letters=raised)

    def _look(self) -> None:
        """Add rays that are worth more than they cost, if any is there at all."""
        table = self._letters[:, None] + np.tensordot(self._kappa, self.costs, axes=1)
        if not self._join(np.vstack([self._near(prices) for prices in table.T]), table):
            dearest = (self._corners.dearest(list(map(arb, prices)))[1] for prices in table.T)
            corners = [corner for corner in dearest if corner is not None]
            self._join(np.array(corners, bool).reshape(-1, self.program.n), table)

    def _near(self, prices: FloatArray) -> Any:
        """Return corners, as masks: threshold rules, and what is better by a letter or two."""
        n, mass = self.program.n, self.program.mass
        rules = np.zeros((n + 1, n), bool)
        rules[:, np.argsort(prices / mass, kind="stable")] = np.tri(n + 1, n, -1, dtype=bool)
        near = [rules]
        for corner in rules[np.argsort(-self._left(rules, prices))[: self.settings.starts]]:
            best = -np.inf
            while (left := self._left(corner[None], prices)[0]) > best:
                best, one = left, np.eye(n, dtype=bool)
                inside, outside = one[corner], one[~corner]
                two = (inside[:, None] | outside[None]).reshape(-1, n)
                near.append(corner ^ np.vstack([one, two]))
                corner = near[-1][self._left(near[-1], prices).argmax()]
        return np.vstack(near)

    def _left(self, corners: Any, prices: FloatArray) -> FloatArray:
        """Return what corners tell beyond their prices."""
        rays = _rays(corners, self._corners.ratio)
        return _worth(self.program, rays) - rays @ prices

    def _join(self, corners: Any, table: FloatArray) -> bool:
        """Add the best of some corners, of those that are worth more than some output's price."""
        corners = np.unique(corners, axis=0)
        corners = corners[[corner.tobytes() not in self._listed for corner in corners]]
        best = np.max([self._left(corners, prices) for prices in table.T], axis=0)
        few = np.argsort(-best, kind="stable")[: self.settings.added]
        corners = corners[few[best[few] > self.enough * self._scale]]
        self._listed |= {corner.tobytes() for corner in corners}
        rays = _rays(corners, self._corners.ratio)
        rays /= (rays @ self.program.mass)[:, None]
        self.rays = np.vstack([self.rays, rays])
        self.values = np.concatenate([self.values, _worth(self.program, rays)])
        return len(rays) > 0


def _rays(corners: Any, ratio: arb) -> FloatArray:
    """Return rays that are γ at the letters of each mask, and 1 elsewhere."""
    rays: FloatArray = 1.0 + (float(ratio) - 1.0) * corners
    return rays


def _worth(program: UsefulProgram, rays: FloatArray) -> FloatArray:
    """Return μ of each ray."""
    (objective,) = program.objectives.values()
    values = np.zeros(len(rays))
    for view, weight in objective.weights.items():
        values += float(weight) * program.information(rays.T, view)
    return values
