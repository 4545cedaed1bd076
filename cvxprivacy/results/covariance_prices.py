"""Prices of a covariance program's numbers, and what chords prove of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.programs.covariance import CovarianceProgram, ErrorCovariance
from cvxprivacy.results.chords import Chords
from cvxprivacy.results.price import SHARP, Price, useful
from cvxprivacy.results.prices import Moving, constants, enclosed, moving
from cvxprivacy.solvers.covariance.stages import CovarianceProver
from cvxprivacy.solvers.driver import solve_gaussian
from cvxprivacy.solvers.task import UNUSABLE
from cvxprivacy.verifier.balls import UnprovableError

__all__ = ["CovariancePrices"]

FEW = 12  # variables, up to which neighbours are solved
_RAISED = (0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3)  # shares by which multipliers are raised
_MOVES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-2)  # shares of the error
_SHARES = (0.1, 1e-2, 1e-4, 1.0)  # of the bound, by which neighbours have less or more room
_STEPS = (1e-6, 1e-4, 1e-2)  # of the row's greatest value, by which they have more


class CovariancePrices:
    """The prices of a covariance program's numbers: those of its multipliers, and proved ones.

    Parameters
    ----------
    duals : mapping of str to float
        Multipliers of the rows, in the program's units.
    nearby : bool
        Whether programs nearby may be solved: not where this one was broken off.
    """

    def __init__(
        self,
        program: CovarianceProgram,
        primal: Any,
        dual: Any,
        duals: Mapping[str, Any],
        nearby: bool = True,
    ) -> None:
        self.program, self.primal, self.dual, self.duals = program, primal, dual, duals
        self.nearby = nearby and program.n <= FEW

    def by_multipliers(self) -> dict[str, Any]:
        """Return what the multipliers say, whatever they are worth."""
        program, prices = self.program, dict[str, float]()
        weighted = [(program.objective.derivatives, 1.0)]
        rows = program.constraints.items()
        weighted += [(row.derivatives, self.duals[name]) for name, row in rows]
        for derivatives, weight in weighted:
            for symbol, derivative in derivatives.items():
                amount = weight * symbol.slope * program.value(derivative, self.primal.matrix)
                prices[symbol.name] = prices.get(symbol.name, 0.0) + amount
        return {name: price + 0.0 for name, price in prices.items()}

    def proved(self) -> dict[str, Any]:
        """Return the prices with the ends that are proved of them."""
        prices = self.by_multipliers()
        for name, amount in prices.items():
            of = moving(name, self._places())
            unproved = Price(amount, -math.inf, math.inf, "not proved")
            prices[name] = unproved if of is None else self._proved(amount, of)
        return prices

    def _places(self) -> Iterable[tuple[str, Any]]:
        for name, row in self.program.constraints.items():
            yield name, constants(row.derivatives)
        yield "", dict.fromkeys(self.program.objective.derivatives)

    def _proved(self, amount: float, of: Moving) -> Price:
        prover = CovarianceProver(self.program)
        chords, nothing = Chords(prover.proof, of.rates), np.zeros((self.program.n,) * 2)
        chords.take_primal(self.primal)
        chords.take_dual(self.dual)
        for middle in (nothing, np.eye(self.program.n)):
            chords.take_primal(ErrorCovariance(prover.white.root, middle))
        unit = self._unit(of, prover)
        for middle in _moved(np.array(self.primal.middle, float)):
            if useful(*chords.ends, unit, SHARP):
                break
            chords.take_primal(ErrorCovariance(self.primal.root, middle))
        lam = {name: float(value) for name, value in self.dual.multipliers.items()}
        _offer_raised(prover, chords, np.array(self.primal.middle, float), lam)
        if self.nearby and not useful(*chords.ends, unit):
            for near in self._solved_nearby(of, prover):
                chords.take_primal(near.primal)
                kept = {name: float(value) for name, value in near.dual.multipliers.items()}
                for middle in (np.array(near.primal.middle, float), nothing):
                    _offer_raised(prover, chords, middle, kept)
                if useful(*chords.ends, unit):
                    break
        return enclosed(amount, chords.ends, of.factor, unit, self._is_least(of, chords))

    def _unit(self, of: Moving, prover: CovarianceProver) -> float:
        """Return what a price of 1 is, a nat per greatest value of a row."""
        rows = self.program.constraints
        spans = [
            abs(float(np.trace(prover.white.cost(rows[name].expression)))) / float(rate)
            for name, rate in of.rates.items()
            if rows[name].expression.cost is not None
        ]
        return 1.0 / (min(spans, default=1.0) or 1.0)

    def _solved_nearby(self, of: Moving, prover: CovarianceProver) -> Iterator[Any]:
        """Yield what a solver proposes with other room."""
        name, rate = next(iter(of.rates.items()))
        row = self.program.constraints[name]
        bound = abs(float(row.bounds(1))) / float(rate)
        span = 1.0 / self._unit(of, prover)
        rooms = [*(step * span for step in _STEPS), -bound]
        rooms += [side * share * bound for share in _SHARES for side in (-1, 1)]
        for room in rooms:
            rows = {
                key: replace(row, bound=row.number + of.rates.get(key, 0) * Fraction(room))
                for key, row in self.program.constraints.items()
            }
            if not room or any(row.number < 0 for row in rows.values()):
                continue
            near = replace(self.program, constraints=rows)
            certificate = solve_gaussian(near, accuracy="high").certificate
            if certificate.primal is not None and certificate.dual is not None:
                yield certificate

    def _is_least(self, of: Moving, chords: Chords) -> bool:
        """Tell whether no room is left: costs are no less than 0."""
        rows = [self.program.constraints[name] for name in of.rates]
        linear = all(not row.expression.weights and not row.expression.constant for row in rows)
        return not chords.steepest.is_finite() and linear and any(row.number <= 0 for row in rows)


def _moved(middle: Any) -> Iterator[Any]:
    """Yield covariances with less and more error in the directions that have some, but not all."""
    values, vectors = np.linalg.eigh(middle)
    some = np.where(values < 1 - 1e-6, values, 0.0)
    step = (vectors * some) @ vectors.T
    for share in _MOVES:
        yield middle - share * (step + step.T) / 2
        yield middle + share * (step + step.T) / 2


def _offer_raised(
    prover: CovarianceProver, chords: Chords, middle: Any, multipliers: Mapping[str, float]
) -> None:
    """Offer multipliers with posteriors of a covariance, and raised ones: they have room."""
    for share in _RAISED:
        raised = {name: lam * (1 + share) for name, lam in multipliers.items()}
        try:
            with np.errstate(all="ignore"):
                dual = prover.white.dual(middle, raised)
            chords.take_dual(dual)
            free = {name: (root, 0 * part) for name, (root, part) in dual.psd_multipliers.items()}
            chords.take_dual(replace(dual, psd_multipliers=free))  # where what is raised has room
        except (*UNUSABLE, UnprovableError):
            return
