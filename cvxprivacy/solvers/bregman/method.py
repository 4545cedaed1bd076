r"""The accelerated Bregman proximal gradient method on a channel program.

A leakage F is smooth relative to the entropy of Q: D_F(Q, Q′) ≤ D(Q ‖ Q′), as labels are less than
letters.  So a step that is taken with Q's own entropy needs no step size, and is a soft choice of
each letter (B2); with momentum (B3) the gap falls as the square of the steps (F. Hanzely,
P. Richtárik and L. Xiao, *Accelerated Bregman proximal gradient methods for relatively smooth
convex optimization*, Computational Optimization and Applications 79, 2021).  Scores and prices in
the mean of all steps are the dual point (B5), so that a few numbers per output are all that is
kept.  Equations are those of ``docs/theory/large_tables.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.settings import MirrorDescent
from cvxprivacy.solvers.bregman.entries import AllEntries, Chosen, Sums
from cvxprivacy.solvers.bregman.prices import Prices

__all__ = ["Iterate", "Relaxed", "suits"]

_DEAR, _ROOM = 1e6, 1e-3  # price at which a row spends the least, and room that counts as none
_BOUNDLESS = 1e9  # what a row's size costs at the price of a step, where nothing is feasible


def suits(program: ChannelProgram) -> bool:
    """Tell whether a program is (B1): information of few labels, linear rows, no entry bounds."""
    rows = program.constraints.values()
    linear = all(row.linear and row.sense == "<=" and not row.per_output for row in rows)
    bounded = program.lower is not None or program.upper is not None
    plain = not (program.other_measures or program.auxiliaries or bounded)
    flat = all(
        term.cost is None or term.cost.ndim == 2
        for term in (*program.objectives.values(), *(row.expression for row in rows))
    )
    few = all(view.size * program.m <= 20_000_000 for view in program.views.values())
    return linear and plain and flat and few and program.objectives.keys() == {""}


@dataclass(frozen=True, eq=False)
class Iterate:
    """A step: what it has shown of both ends, in floats, and what makes its multipliers."""

    number: int
    lower: float
    upper: float
    sums: Sums
    mass: FloatArray

    @property
    def gap(self) -> float:
        return self.upper - self.lower


class Relaxed:
    """A program whose letters choose softly.

    Parameters
    ----------
    program : ChannelProgram
        One that ``suits``.
    """

    def __init__(self, program: ChannelProgram) -> None:
        self.program, self.settings = program, MirrorDescent.current()
        (objective,) = program.objectives.values()
        weights = objective.columns(program.m)
        self.views = [name for name in program.views if name in weights]
        self.weights = [weights[name] * program.unit(name) for name in self.views]
        matrices = [program.view_matrix(name).toarray() for name in self.views]
        self.law = np.vstack([*matrices, program.mass])
        self.likelihood = np.ascontiguousarray((self.law[:-1] / program.mass).T)
        # each label's likelihood is at most what of the letter its view sees
        shown = [matrix.sum(axis=0) / program.mass for matrix in matrices]
        pairs = zip(self.weights, shown, strict=True)
        self.smoothness = sum(float(w.max() * s.max()) for w, s in pairs) or 1.0  # L
        self.bounds = np.array(
            [float(row.number) - float(row.expression.constant) for row in self._rows]
        )
        self.all = AllEntries(program, self.likelihood, self.law, self.smoothness)
        self.sizes = self._sizes()

    def _sizes(self) -> FloatArray:
        """Return what counts as much of each row: by how far it may be above the least there is.

        At most what its cost varies by; a constant that is added to both sides changes nothing.
        """
        rows = len(self.bounds)
        even = Sums(np.zeros((len(self.law) - 1, self.program.m)), 0.0, np.zeros(rows))
        varies = np.sqrt(np.diag(self.all.chosen(even).answers) * self.smoothness)
        bounds = np.maximum(np.abs(self.bounds), TINY)
        sizes = np.where(varies > _ROOM * bounds, varies, bounds)
        for j in range(rows):
            price = np.where(np.arange(rows) == j, _DEAR * self.smoothness / sizes, 0.0)
            least = self.all.chosen(Sums(even.slopes, 0.0, price)).spent[j]
            sizes[j] = np.clip(self.bounds[j] - least, _ROOM * sizes[j], sizes[j])
        return sizes

    @property
    def _rows(self) -> list:
        return list(self.program.constraints.values())

    # ---- values ---------------------------------------------------------------------------

    def _parts(self, joint: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield J, π and weight of each view."""
        first = 0
        for name, weight in zip(self.views, self.weights, strict=True):
            size = self.program.views[name].size
            yield joint[first : first + size], self.program.reference(name), weight
            first += size

    def slopes(self, joint: FloatArray) -> FloatArray:
        """Return α log(J/π q), shape (|V|, m), and 0 where an output has no mass (B2)."""
        parts = []
        for j, reference, weight in self._parts(joint):
            posterior = np.divide(j, j.sum(axis=0), out=np.ones_like(j), where=j.sum(axis=0) > 0)
            ratio = np.maximum(posterior / reference[:, None], self.settings.least_ratio)
            ratio[:, j.sum(axis=0) <= 0] = 1.0
            parts.append(weight * (np.log(ratio) - np.log(reference @ ratio)))
        return np.vstack([*parts, np.zeros((0, self.program.m))])

    def value(self, chosen: Chosen) -> float:
        """Return the objective."""
        value = chosen.cost
        for j, reference, weight in self._parts(chosen.joint):
            marginal = reference[:, None] * j.sum(axis=0)
            ratio = np.divide(j, marginal, out=np.ones_like(j), where=(j > 0) & (marginal > 0))
            value += float((weight * (j * np.log(ratio)).sum(axis=0)).sum())
        return value

    def dual(self, sums: Sums) -> Dual:
        """Return the mean of scores and prices: a dual point (B5)."""
        program, scores, first = self.program, {}, 0
        for name, weight in zip(self.views, self.weights, strict=True):
            size = program.views[name].size
            mean = sums.slopes[first : first + size] / sums.weight
            scores[name] = np.divide(mean, weight, out=np.zeros_like(mean), where=weight > 0)
            first += size
        for name in program.views.keys() - scores.keys():
            scores[name] = np.zeros((program.views[name].size, program.m))
        prices = sums.prices / sums.weight
        return Dual(scores, dict(zip(program.constraints, prices, strict=True)))

    def contradicted(self, prices: FloatArray) -> bool:
        """Tell whether at these prices no letters cost as little as the rows' bounds ask."""
        free = Sums(np.zeros((len(self.law) - 1, self.program.m)), 0.0, prices)
        return self.all.chosen(free).least > float(prices @ self.bounds)

    # ---- the steps ------------------------------------------------------------------------

    def steps(self) -> Iterator[Iterate]:
        """Yield the steps of the method on all entries.

        They end where the ends cross or prices have no end: rounding is all that is left, or rows
        contradict each other.
        """
        m, rows, settings = self.program.m, len(self.bounds), self.settings
        sums = Sums(np.zeros((len(self.law) - 1, m)), 0.0, np.zeros(rows))
        z = mean = self.all.chosen(sums)
        rates = np.full(rows, self.smoothness)
        number, gap, size, gain = 0, np.inf, self.sizes, 1.0
        while True:
            number += 1
            # what a step spends beyond its bounds is to cost little of the gap; the mean is brought
            # to them, a little of what is missing in each step
            cheap = (
                settings.step_tolerance_cost * min(gap, _BOUNDLESS) / np.maximum(rates, TINY**0.5)
            )
            room = np.clip(
                cheap, settings.least_step_tolerance * size, settings.step_tolerance * size
            )
            aims = self.bounds - np.clip(mean.spent - self.bounds, -room, room)
            gain = max(gain / settings.gain_decrease, 1.0)
            for _ in range(settings.repeats):
                # γ a² = A + a (B3)
                step = (1.0 + np.sqrt(1.0 + 4.0 * gain * sums.weight)) / (2.0 * gain)
                share = step / (sums.weight + step)
                between = mean.mixed(z, share)
                slopes = self.slopes(between.joint)
                begun = sums.met(step, slopes, np.maximum(sums.prices + step * rates, 0.0))
                met, chosen = self._answered(begun, aims, room)
                mixed = mean.mixed(chosen, share)
                curved = self._divergence(mixed.joint, between.joint)
                moved = share**2 * self._moved(sums, z, met, chosen, slopes)
                if not curved > gain * moved + settings.slack * share * gap:  # (B4)
                    break
                increase = min(curved / max(moved, TINY) / gain, settings.gain_increase**8)
                gain *= max(settings.gain_increase, increase)
            rates = (met.prices - sums.prices) / step
            sums, z, mean = met, chosen, mixed
            prices = sums.prices / sums.weight
            # what the mean spends beyond its bounds is charged at their prices
            upper = self.value(mean) + float(prices @ np.maximum(mean.spent - self.bounds, 0.0))
            lower = z.least / sums.weight - float(prices @ self.bounds)
            gap = upper - lower
            yield Iterate(number, lower, upper, sums, mean.joint[-1])
            if not gap > 0 or (np.abs(rates) * size > _BOUNDLESS * self.smoothness).any():
                return

    def _divergence(self, joint: FloatArray, other: FloatArray) -> float:
        """Return what the leakage of a joint law is above its tangent at another."""
        value = 0.0
        for (j, _, weight), (k, _, _) in zip(self._parts(joint), self._parts(other), strict=True):
            crossed = k * j.sum(axis=0)
            ratio = np.divide(j * k.sum(axis=0), crossed, out=np.ones_like(j), where=crossed > 0)
            terms = np.where(j > 0, j * np.log(np.maximum(ratio, TINY)), 0.0)
            value += float((weight * terms.sum(axis=0)).sum())
        return value

    @staticmethod
    def _moved(before: Sums, z: Chosen, after: Sums, chosen: Chosen, slopes: FloatArray) -> float:
        """Return L D(Z ‖ Z′) of two soft choices, of the sums after and before a step."""
        step = after.weight - before.weight
        gone = float((slopes * chosen.joint[:-1]).sum()) + chosen.cost
        paid = float((after.prices - before.prices) @ chosen.spent)
        return max(chosen.soft - z.soft - step * gone - paid, 0.0)

    def _answered(self, sums: Sums, aims: FloatArray, room: FloatArray) -> tuple[Sums, Chosen]:
        """Move prices until what is chosen spends about the aims; return both."""
        search = Prices(sums.prices)
        for k in range(self.settings.price_trials):
            tried = Sums(sums.slopes, sums.weight, search.prices.copy())
            z = self.all.chosen(tried)
            if search.settled(z.spent - aims, room * self.settings.trial_growth**k, z.answers):
                break
        return tried, z
