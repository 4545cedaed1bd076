r"""A primal–dual interior-point method for channel programs, which knows their structure.

Mehrotra's predictor–corrector method on the equations of
:mod:`~cvxprivacy.solvers.interior.program`, with up to three centrality correctors (J. Gondzio,
*Multiple centrality corrections in a primal–dual method for linear programming*, Computational
Optimization and Applications 6, 1996).  Scores are unknowns of their own, so that the only equation
that is not linear besides the products is s = ∇F(J), log(J/π q) for information; what it ends with
goes to the prover like any other proposal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.leakage import Leakage, Polyhedral, Smooth
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.settings import InteriorPoint
from cvxprivacy.solvers.interior.newton import Newton, Residuals, SecondOrder
from cvxprivacy.solvers.interior.point import ByName, Point
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy.solvers.interior.start import start
from cvxprivacy.solvers.interior.views import labels_differ

__all__ = ["Iterate", "block_size", "central_path", "fits", "foreign_measures"]


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point of the path; ``gap`` estimates the width of the enclosure that it would prove."""

    program: ScaledProgram
    point: Point
    number: int
    gap: float
    breach: float
    stage: ClassVar[str] = "central path"

    @property
    def progress(self) -> float:
        """The gap that is shown."""
        return self.gap

    def proposal(self, objective: int = 1) -> tuple[FloatArray, Dual]:
        """Return the channel and the multipliers, for the prover."""
        return self.program.proposal(self.point, objective)


def block_size(program: ChannelProgram) -> int:
    """Return how many numbers the blocks of all outputs have."""
    rank, plans = 0, 0
    for name, view in program.views.items():
        matrix = program.view_matrix(name)
        rank += 1 if view.informs and labels_differ(matrix) else min(matrix.shape)
        if isinstance(view.measure, Polyhedral):
            plans += view.measure.recourse(program.reference(name)).matrix.shape[1]
    rank += sum(row.per_output for row in program.constraints.values())
    return 4 * program.m * (program.n * max(min(rank, program.n), 1) + 2 * plans)


def foreign_measures(program: ChannelProgram) -> list[Leakage]:
    """Return the measures that state neither a Hessian nor a linear program."""
    return [m for m in program.other_measures if not isinstance(m, Smooth | Polyhedral)]


def fits(program: ChannelProgram) -> bool:
    """Tell whether there is room for the blocks of all outputs."""
    return block_size(program) <= InteriorPoint.current().most_numbers


def central_path(scaled: ScaledProgram, begin: Point | None = None) -> Iterator[Iterate]:
    """Yield the points of the path, from its start or from another point.

    It ends where steps lead no further.
    """
    settings = InteriorPoint.current()
    program = scaled.program
    path = _Path(scaled, begin)
    best, since = np.inf, 0
    for number in range(settings.steps):
        at = Residuals(scaled, path.x)
        gap = (scaled.complementarity(path.x) + at.error()) * program.scale
        yield Iterate(scaled, path.x, number, gap, at.breach())
        if gap < 0.7 * best:
            best, since = gap, number
        patience = settings.patience if best < 1e-4 * program.scale else 5 * settings.patience
        # the system is factored only where the path goes on
        if number - since > patience or not path.advance(Newton(scaled, path.x, at)):
            return


class _Path:
    def __init__(self, program: ScaledProgram, begin: Point | None) -> None:
        self.program, self.settings = program, InteriorPoint.current()
        self.x, self.first = start(program) if begin is None else (begin, 0.0)
        self.centring = 15 if begin is None else 0  # full steps at the first μ that are left
        self.restored = False  # the last step was towards feasibility alone

    def advance(self, newton: Newton) -> bool:
        """Take a step; False where none is possible."""
        if self.centring:
            step, t = self._centring(newton)
        elif self._outside(newton) and not self.restored:
            step, t = self._restoring(newton)
        else:
            self.restored = False
            step, t = self._corrected(newton)
        after = self.x.moved(step, t)
        for _ in range(20):
            if self.centring or self._least_product(after) >= self.settings.centred:
                break
            t *= 0.9
            after = self.x.moved(step, t)
        self.x = after
        self._take_up_slack()
        return t > 1e-6

    def _take_up_slack(self) -> None:
        """Let the slack of a row be what its leakage leaves, where that is not far off."""
        program, x = self.program, self.x
        curved = [k for k, row in program.rows.items() if row.weights and not row.equal]
        if not curved:
            return
        information = program.information(*program.joints(x.q))
        for name in curved:
            room, slack = -program.excess(name, x, information), x.slack[name]
            x.slack[name] = np.where((room > 0.5 * slack) & (room < 2.0 * slack), room, slack)

    # ---- steps ---------------------------------------------------------------------------

    def _centring(self, newton: Newton) -> tuple[Point, float]:
        """Step towards the centre at the first μ; the path begins where products are near it."""
        step = newton.step(self._targets(self.first), 1.0)
        t = self._length(step)
        after, mu = self.x.moved(step, t), self.first
        near = all(
            ((share == 0) | (ratio > 0.5 * mu * share) & (ratio < 2.0 * mu * share)).all()
            for share, ratio in self._products(after)
        )
        self.centring = 0 if near and t == 1.0 else self.centring - 1
        return step, t

    def _outside(self, newton: Newton) -> bool:
        """Tell whether a row lacks a few times its slack, near the end."""
        if self.program.complementarity(self.x) > self.settings.feasible:
            return False
        rows = [name for name, row in self.program.rows.items() if not row.equal]
        most = self.settings.residual
        return any((-newton.at.primal[k] > most * self.x.slack[k]).any() for k in rows)

    def _restoring(self, newton: Newton) -> tuple[Point, float]:
        """Step to the products that there are, where that gets far: rows then lack little.

        Every other step at most.
        """
        self.restored = True
        products = {name: self.x.slack[name] * self.x.price[name] for name in self.x.slack}
        step = newton.step(products, 1.0)
        t = self._length(step)
        return (step, t) if t >= self.settings.restoring_step else self._corrected(newton)

    def _corrected(self, newton: Newton) -> tuple[Point, float]:
        """Predict, correct to second order, and centre while that makes the step longer."""
        mu = self.program.complementarity(self.x) / self.program.count
        affine = newton.step(self._targets(0.0), 1.0)
        sigma = max((1.0 - min(1.0, self.x.longest(affine))) ** 3, 1e-6)  # (N23)
        second_order = self._second_order(newton, affine)
        targets = {  # (N25)
            name: sigma * mu * share - affine.slack[name] * affine.price[name]
            for name, share in self.program.shares.items()
        }
        step = newton.step(targets, 1.0 - sigma, second_order)
        t = self._length(step)
        for _ in range(self.settings.correctors):  # (N27)
            better = self._centred(targets, sigma * mu, self.x.moved(step, min(1.0, 1.5 * t + 0.3)))
            trial = newton.step(better, 1.0 - sigma, second_order)
            longer = self._length(trial)
            if longer <= 1.01 * t:
                break
            step, t, targets = trial, longer, better
        if t >= self.settings.short_step:
            return step, t
        return self._plain(newton, mu, (step, t), t * (1.0 - sigma))

    def _centred(self, targets: ByName, mu: float, enlarged: Point) -> ByName:
        """Return targets moved by what an enlarged step's products are off their range (N26)."""
        return {
            name: targets[name] + _pushed(product, mu * share)
            for (share, product), name in zip(
                self._products(enlarged), self.program.shares, strict=True
            )
        }

    def _plain(
        self, newton: Newton, mu: float, best: tuple[Point, float], progress: float
    ) -> tuple[Point, float]:
        """Return the step without second order that gets furthest, where none gets far."""
        for sigma in (0.3, 0.7, 0.9):  # not 1, at which it may cycle for ever
            step = newton.step(self._targets(sigma * mu), 1.0 - sigma)
            t = self._length(step)
            if t * (1.0 - sigma) > progress:
                best, progress = (step, t), t * (1.0 - sigma)
        return best

    def _second_order(self, newton: Newton, affine: Point) -> SecondOrder:
        """Return what equations have of second order along the affine step (N24)."""
        program, at = self.program, newton.at
        order, djoint = SecondOrder([]), []
        for view, joint, residual in zip(program.views, at.joint, at.posterior, strict=True):
            change = view.joint(affine.q)
            order.posterior.append(residual + view.second_order(joint, change))
            djoint.append(change)
        for name, row in program.rows.items():
            for i, weight in row.weights.items():
                turned = (weight * affine.multiplier(name))[:, None] * affine.scores[i]
                order.dual = order.dual + program.views[i].along(turned)
                # F moves by (s + r)·ΔJ + ½ ΔJᵀ∇²FΔJ, where (N3) has s·ΔJ, and Δs = ∇²FΔJ + r
                columns = weight * ((affine.scores[i] + at.posterior[i]) * djoint[i]).sum(axis=1)
                order.rows[name] = order.rows.get(name, 0.0) - 0.5 * row.total(columns)
        return order

    # ---- what steps share ----------------------------------------------------------------

    def _targets(self, mu: float) -> ByName:
        return {name: mu * share for name, share in self.program.shares.items()}

    def _products(self, x: Point) -> list[tuple[FloatArray, FloatArray]]:
        """Return share and product of every pair."""
        return [(share, x.slack[k] * x.price[k]) for k, share in self.program.shares.items()]

    def _length(self, step: Point) -> float:
        views = zip(self.program.views, step.scores, strict=True)
        logs = [float(np.abs(s).max()) for view, s in views if view.measure.informs]
        largest = max(logs, default=0.0)
        most = self.settings.boundary * self.x.longest(step)  # (N28)
        return min(1.0, most, self.settings.score_change / max(largest, TINY))

    def _least_product(self, x: Point) -> float:
        """Return the least product in terms of the mean, both by share."""
        mean = self.program.complementarity(x) / self.program.count
        least = min(
            float(np.min(product, where=share > 0, initial=np.inf) if np.ndim(share) else product)
            for share, product in ((s, p / np.where(s > 0, s, 1.0)) for s, p in self._products(x))
        )
        return least / mean


def _pushed(product: FloatArray, target: FloatArray) -> FloatArray:
    """Return what moves a product into the range around its target, never by too much."""
    settings = InteriorPoint.current()
    low, high = settings.least_product, settings.greatest_product
    return np.maximum(np.clip(product, low * target, high * target) - product, -high * target)
