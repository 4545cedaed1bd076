"""From the certificate of a covariance program to a solution and its prices, or to why not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb_mat, fmpq_mat

from cvxprivacy.errors import InfeasibleError
from cvxprivacy.exact import FloatArray
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.matrices import block, rationals, rounded
from cvxprivacy.programs.covariance import CovarianceProgram, ErrorCovariance
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.release.gaussian import GaussianRelease
from cvxprivacy.results.price_bounds import (
    FIVE_DIGITS,
    Price,
    PriceBounds,
    is_narrow,
    price_within,
)
from cvxprivacy.results.prices import (
    LEAST_UNIT,
    MovingBounds,
    constant_rate,
    nearby_steps,
)
from cvxprivacy.results.solution import GaussianSolution
from cvxprivacy.solvers.covariance.stages import CovarianceProver
from cvxprivacy.solvers.driver import Outcome, solve_gaussian
from cvxprivacy.solvers.task import UNUSABLE
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.text import sufficient
from cvxprivacy_verifier.balls import UnprovableError

__all__ = ["CovariancePrices", "covariance_solution", "explained"]


def covariance_solution(
    outcome: Outcome,
    source: GaussianSource,
    key: Sequence[int],
    *,
    title: str,
    sizes: str,
    notes: list[str],
) -> GaussianSolution:
    """Return what a solve returns; ``key`` are the independent key variables."""
    certificate = outcome.certificate
    program, primal = certificate.program, certificate.primal
    sigma = None
    if primal is not None:
        root, middle = map(rationals, (primal.root, primal.middle))
        sigma = root * middle * root.transpose()
    duals, posteriors = _multipliers(program, certificate.dual, primal)
    priced: Any = {}
    if duals:
        nearby = certificate.status == "certified"
        priced = CovariancePrices(program, primal, certificate.dual, duals, nearby)
    return GaussianSolution(
        certificate,
        title=title,
        sizes=sizes,
        release=None if sigma is None else _release(program, source, sigma),
        prices=priced,
        duals=duals,
        posteriors=posteriors,
        log=outcome.log,
        error_covariance=None if sigma is None else _expanded(program, source, key, sigma),
        notes=notes,
    )


def _multipliers(
    program: CovarianceProgram, dual: Any, primal: Any
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Return multipliers, and the posterior covariance of each view."""
    duals: dict[str, Any] = {}
    posteriors: dict[str, FloatArray] = {}
    if dual is None or primal is None or not dual.objective:
        return duals, posteriors
    unit = 1.0 / program.in_nats(program.objective)
    for name, row in program.constraints.items():
        multiplier = float(dual.multipliers.get(name, 0.0)) * unit
        duals[name] = multiplier * program.in_nats(row.expression)
    slack = dual.gradient(program)
    none = np.zeros((program.n, program.n))  # of what binds nothing
    for name, part in {**dict.fromkeys(program.caps, none), **dual.matrices()}.items():
        duals[name or f"Σ ≼ {'Σ_X|Z' if program.given else 'Σ_X'}"] = unit * part
        slack = slack + part
    duals["0 ≼ Σ"] = unit * slack
    for view, (root, middle) in dual.posteriors.items():
        with suppress(ZeroDivisionError):  # a Y that proves nothing
            posteriors[view] = _posterior(rationals(root), rationals(middle))
    return duals, posteriors


def _posterior(root: fmpq_mat, middle: fmpq_mat) -> FloatArray:
    """Return Y⁻¹ = R Y'⁻¹ Rᵀ."""
    inner = arb_mat(root.transpose())
    return rounded(lambda: arb_mat(root) * arb_mat(middle).solve(inner))


def _expanded(
    program: CovarianceProgram, source: GaussianSource, key: Sequence[int], sigma: fmpq_mat
) -> FloatArray:
    """Return Cov(X − X̂) of all key variables."""
    last = range(program.n - len(key), program.n)
    inner, t = block(sigma, last, last), rationals(source.expansion)
    return rounded(lambda: t * inner * t.transpose())


def _release(
    program: CovarianceProgram, source: GaussianSource, sigma: fmpq_mat
) -> GaussianRelease:
    inputs, key = [*program.encoded, *program.given], list(source.x)
    return GaussianRelease(
        sigma,
        covariance=source.law(inputs, inputs),
        mean=source.mean[inputs],
        mean_out=source.mean[key],
        side=len(program.given),
        expansion=source.expansion,
        inputs=[source.names[i] for i in inputs],
        outputs=[source.names[i] for i in key],
        scale=source.scale[inputs],
        scale_out=source.scale[key],
    )


def explained(certificate: Any, watch: Watch | None = None) -> InfeasibleError:
    """Say which constraints conflict, and the least that each could be, given the others."""
    program, dual = certificate.program, certificate.dual
    rows, clock = program.constraints, watch or Watch()
    conflict = [name for name in rows if float(dual.multipliers.get(name, 0.0)) > 0]
    extremes, alternatives = {}, []
    for name in conflict:
        if clock.stopped:
            break
        others = {key: row for key, row in rows.items() if key != name}
        relaxed = replace(program, objective=rows[name].expression, constraints=others)
        least = solve_gaussian(relaxed, watch=watch).certificate.upper
        if math.isfinite(least) and not clock.stopped:
            extremes[name] = least
            alternatives.append(f"{name} would have to be at least {sufficient(least, up=True)}")
    typed = " and ".join(f"{name} {float(rows[name].bounds(1)):.6g}" for name in conflict)
    message = f"{typed} cannot hold" + (" together" if len(conflict) > 1 else "")
    message += f"; with the rest as it is, {' or '.join(alternatives)}" if alternatives else ""
    return InfeasibleError(message, certificate, conflict=conflict, extremes=extremes)


# ---- prices -------------------------------------------------------------------------------


MOST_SOLVED = 12  # variables, up to which nearby programs are solved
RAISED = (0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3)  # shares by which multipliers are raised
MOVES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-2)  # shares of the error, by which releases are moved


class CovariancePrices:
    """The prices of a covariance program's numbers.

    Parameters
    ----------
    duals : mapping of str to float
        Multipliers of the rows, in the program's units.
    nearby : bool
        Whether nearby programs may be solved: not if this one was broken off.
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
        self.nearby = nearby and program.n <= MOST_SOLVED

    def by_multipliers(self) -> dict[str, Any]:
        """Return ∂f/∂θ + Σ_j λ_j ∂g_j/∂θ of every number θ, which is not proved."""
        program, prices = self.program, dict[str, float]()
        weighted = [(program.objective.derivatives, 1.0)]
        rows = program.constraints.items()
        weighted += [(row.derivatives, self.duals[name]) for name, row in rows]
        for derivatives, weight in weighted:
            for symbol, derivative in derivatives.items():
                price = weight * symbol.slope * program.value(derivative, self.primal.matrix)
                prices[symbol.name] = prices.get(symbol.name, 0.0) + price
        return {name: price + 0.0 for name, price in prices.items()}

    @np.errstate(all="ignore")  # what is no number proves nothing
    def proved(self) -> dict[str, Any]:
        """Return the prices with their proved ends."""
        prices = self.by_multipliers()
        for name, multiplier in prices.items():
            bounds = MovingBounds.of(self._places(name))
            unproved = Price(multiplier, -math.inf, math.inf, "not proved")
            prices[name] = unproved if bounds is None else self._proved(multiplier, bounds)
        return prices

    def _places(self, name: str) -> Iterator[tuple[str, Symbol, Fraction | None]]:
        for key, row in self.program.constraints.items():
            for symbol, derivative in row.derivatives.items():
                if symbol.name == name:
                    yield key, symbol, constant_rate(derivative)
        yield from (("", s, None) for s in self.program.objective.derivatives if s.name == name)

    def _proved(self, multiplier: float, bounds: MovingBounds) -> Price:
        prover, slopes = CovarianceProver(self.program), PriceBounds(falls=True)
        proof, unit = prover.proof, self._unit(bounds, prover)
        slopes.add_here(proof.lower(self.dual.to_dict()))
        nothing, everything = np.zeros((self.program.n,) * 2), np.eye(self.program.n)
        extreme = [ErrorCovariance(prover.white.root, each) for each in (nothing, everything)]
        for release in (self.primal, *extreme):
            slopes.add_release(proof, bounds.rates, release)
        for middle in _moved(np.array(self.primal.middle, float)):
            if is_narrow(*slopes.ends, unit, FIVE_DIGITS):
                break
            slopes.add_release(proof, bounds.rates, ErrorCovariance(self.primal.root, middle))
        _add_raised(prover, slopes, self.dual, np.array(self.primal.middle, float))
        if self.nearby and not is_narrow(*slopes.ends, unit):
            for room, near in self._solved_nearby(bounds, prover):
                slopes.add_nearby(room, near.upper)
                _add_raised(prover, slopes, near.dual, np.array(near.primal.middle, float))
                if is_narrow(*slopes.ends, unit):
                    break
        low, high = slopes.ends
        least = math.isinf(low) and self._is_least(bounds)
        return price_within(multiplier, (low, high), bounds.factor, unit, least)

    def _span(self, bounds: MovingBounds, prover: CovarianceProver) -> float:
        """Return the greatest value of the costs that move, per unit of room; 1 without any."""
        rows = self.program.constraints
        spans = [
            abs(float(np.trace(prover.white.cost(rows[name].expression)))) / float(rate)
            for name, rate in bounds.rates.items()
            if rows[name].expression.cost is not None
        ]
        return min(spans, default=1.0) or 1.0

    def _unit(self, bounds: MovingBounds, prover: CovarianceProver) -> float:
        """Return the price at which the optimum falls by all that it can over the span."""
        least, most = np.zeros((self.program.n,) * 2), np.eye(self.program.n)
        objective = self.program.objective
        information = prover.white.value(objective, least) - prover.white.value(objective, most)
        return min(max(abs(information), LEAST_UNIT), 1.0) / self._span(bounds, prover)

    def _solved_nearby(
        self, bounds: MovingBounds, prover: CovarianceProver
    ) -> Iterator[tuple[Fraction, Any]]:
        """Yield certificates of nearby programs, with less and with more room."""
        rows, span = self.program.constraints, self._span(bounds, prover)
        name, rate = next(iter(bounds.rates.items()))
        size = abs(float(rows[name].bounds(1))) / float(rate)
        for room in map(Fraction, nearby_steps(size, span)):
            moved = {
                key: replace(row, bound=row.number + bounds.rates.get(key, 0) * room)
                for key, row in rows.items()
            }
            if all(row.number >= 0 for row in moved.values()):
                near = replace(self.program, constraints=moved)
                certificate = solve_gaussian(near, accuracy="high").certificate
                if certificate.primal is not None and certificate.dual is not None:
                    yield room, certificate

    def _is_least(self, bounds: MovingBounds) -> bool:
        """Return whether no room is left: costs are no less than 0."""
        rows = [self.program.constraints[name] for name in bounds.rates]
        linear = all(not row.expression.weights and not row.expression.constant for row in rows)
        return linear and any(row.number <= 0 for row in rows)


def _moved(middle: Any) -> Iterator[Any]:
    """Yield covariances with less and more error in the directions that have some, but not all."""
    values, vectors = np.linalg.eigh(middle)
    some = np.where(values < 1 - 1e-6, values, 0.0)
    step = (vectors * some) @ vectors.T
    for share in MOVES:
        yield middle - share * (step + step.T) / 2
        yield middle + share * (step + step.T) / 2


def _add_raised(prover: CovarianceProver, slopes: PriceBounds, dual: Any, middle: Any) -> None:
    """Add multipliers with the posteriors of a release, and raised ones.

    Those have some slack in Σ ≼ Σ_X, so that no multiplier of that is needed.
    """
    multipliers = {name: float(lam) for name, lam in dual.multipliers.items()}
    for share in RAISED:
        raised = {name: lam * (1 + share) for name, lam in multipliers.items()}
        with suppress(*UNUSABLE, UnprovableError):
            proposed = prover.white.dual(middle, raised)
            slopes.add_here(prover.proof.lower(proposed.to_dict()))
            free = {
                name: (root, 0 * part) for name, (root, part) in proposed.psd_multipliers.items()
            }
            freed = replace(proposed, psd_multipliers=free)
            slopes.add_here(prover.proof.lower(freed.to_dict()))
