"""The stages of solving a covariance program, and the repair of what they propose.

What is proposed in whitened coordinates is made exact here: a covariance by (G26), multipliers by
(G25) of ``docs/theory/covariance.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from cvxprivacy.certificates.bounds import BestBounds
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, rational
from cvxprivacy.programs.covariance import CovarianceDual, CovarianceProgram, ErrorCovariance
from cvxprivacy.settings import CovariancePath
from cvxprivacy.solvers.covariance.method import Iterate, central_path, entries, step_size
from cvxprivacy.solvers.covariance.whitened import Whitened
from cvxprivacy.solvers.task import UNUSABLE, Minimise, Task
from cvxprivacy_verifier.balls import UnprovableError

__all__ = ["MOST_VARIABLES", "CovarianceProver", "CovarianceTask"]

# −log₂ of the shares of a strictly feasible M in a repair: from what rounding asks to all of it
REPAIR_BITS = range(48, -1, -3)
MOST_VARIABLES = 156  # with that many pairs of entries, of which a conic model knows no structure
RAISED = (1e-12, 1e-10, 1e-8, 1e-7)  # shares of multipliers, which a bound loses half of
# Shares by which a strictly feasible point moves towards I/2: the first that no row forbids
MOST_INWARD, LEAST_INWARD, INWARD = 1e-3, 1e-12, 8

Exact = tuple[ErrorCovariance, CovarianceDual]
Nearly = Callable[[Whitened], tuple[FloatArray, Mapping[str, float]]]


class CovarianceProver(BestBounds):
    """The best proved bounds of a covariance program, from whitened covariances Σ = L M Lᵀ."""

    def __init__(self, program: CovarianceProgram, accuracy: str = "default") -> None:
        super().__init__(program, accuracy)
        self.white = Whitened(program, self.proof)
        self.strictly_feasible = self._small_multiple()

    def _small_multiple(self) -> FloatArray:
        """Return a multiple of I strictly between 0 and I, strictly within the linear rows."""
        share = 0.5  # halfway between 0 and I; half of what each cap and row allows
        for cap in self.white.caps.values():
            share = min(share, float(np.linalg.eigvalsh(cap)[0]) / 2)
        for row in self.program.constraints.values():
            trace = float(np.trace(self.white.cost(row.expression)))
            if not row.expression.weights and trace > 0:
                share = min(share, float(row.bounds(1)) / (2 * trace))
        return max(share, 0.0) * np.eye(self.program.n)

    def offer_whitened(self, whitened: FloatArray) -> bool:
        """Repair Σ = L M Lᵀ and prove its objective; True if it is the best so far.

        M is mixed with a strictly feasible one, as little as the proof allows, and scaled where a
        linear row asks for it, (G26).
        """
        if not np.isfinite(whitened).all():
            return False
        for bits in REPAIR_BITS:
            t = 2.0**-bits
            mixed = self._scaled((1 - t) * whitened + t * self.strictly_feasible, 1 - t)
            primal = ErrorCovariance(self.white.root, (mixed + mixed.T) / 2)  # exact from here on
            evaluation = self.proof.upper(primal.to_dict())
            if evaluation.feasible:
                negative = max(0.0, -float(np.linalg.eigvalsh(whitened)[0]))
                return self.take_primal(primal, evaluation, negative)
        return False

    def _scaled(self, whitened: FloatArray, share: float) -> FloatArray:
        """Return M times what makes every linear row at most a share of its bound."""
        for row in self.program.constraints.values():
            value, bound = self.white.value(row.expression, whitened), float(row.bounds(1))
            if not row.expression.weights and value > bound * share:
                whitened = whitened * (bound / value * share)
        return whitened

    def offer_exact(self, primal: ErrorCovariance) -> bool:
        """Prove the objective at a covariance as it is, if it is feasible."""
        evaluation = self.proof.upper(primal.to_dict())
        return evaluation.feasible and self.take_primal(primal, evaluation)

    def offer_nothing(self) -> None:
        """Offer Σ = Σ̄, which releases nothing, and its posteriors: exactly, if that is rational."""
        proof = self.proof
        if not isinstance(proof.bound, fmpq_mat):
            return
        posteriors, price = {}, fmpq_mat(self.program.n, self.program.n)
        for view, weight in self.program.objective.weights.items():
            y, b = proof.covariance(view).inv(), proof.views[view][1]
            posteriors[view] = _identity(y.nrows()), _fractions(y)
            half = rational(weight) / 2
            price += b.transpose() * y * b * fmpq(half.numerator, half.denominator)  # P = −G, (G6)
        parts = {"": (_identity(self.program.n), _fractions(price))}
        with suppress(UnprovableError):
            free = dict.fromkeys(self.program.constraints, 0.0)
            self.take_dual(CovarianceDual(free, posteriors, parts))
        self.offer_exact(ErrorCovariance(_identity(self.program.n), _fractions(proof.bound)))

    def offer_multipliers(
        self,
        whitened: FloatArray,
        multipliers: Mapping[str, float],
        psd_multipliers: Mapping[str, FloatArray] | None = None,
        objective: int = 1,
    ) -> bool:
        """Prove the bound of multipliers, the posteriors being those of M.

        What has no posteriors, or is no numbers, proves nothing.
        """
        try:
            with np.errstate(all="ignore"):
                dual = self.white.dual(whitened, multipliers, psd_multipliers, objective)
                better = self.take_dual(dual)
                if objective and self.status == "loose" and self.primal is not None:
                    better |= self._offer_scaled(dual)
            return better
        except UNUSABLE:
            return False

    def _offer_scaled(self, dual: CovarianceDual) -> bool:
        """Prove the bounds of the same multipliers in coordinates of the best covariance."""
        better = False
        for share in RAISED if self.program.n <= MOST_VARIABLES else ():
            if (scaled := self.white.scaled_dual(self.primal, dual, share)) is None:
                break
            better |= self.take_dual(scaled)
            if self.status == "certified":
                break
        return better


def _identity(size: int) -> list[list[Fraction]]:
    return [[Fraction(i == j) for j in range(size)] for i in range(size)]


def _fractions(matrix: fmpq_mat) -> list[list[Fraction]]:
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in matrix.tolist()]


class CovarianceTask(Task):
    """A covariance program to be solved; ``exact`` is what a closed form proposes, if any."""

    prover: CovarianceProver

    def __init__(
        self,
        program: CovarianceProgram,
        options: Mapping[str, Any],
        exact: Exact | Nearly | None = None,
    ) -> None:
        super().__init__(options)
        if self.method == "structured" and program.caps:
            problem, remedy = "structured knows no cap Σ ≼ M", 'use "auto" or "conic"'
            raise InputError("method", problem, remedy, value=self.method)
        self.program, self.exact = program, exact
        self.newest: Iterate | None = None
        self.prover = CovarianceProver(program, self.accuracy)
        self.white, self.rows = self.prover.white, program.constraints.values()
        inner = self.prover.strictly_feasible
        self.has_interior = all(
            not row.expression.weights
            and self.white.value(row.expression, inner) < float(row.bounds(1))
            for row in self.rows
        )

    # ---- presolve ------------------------------------------------------------------------

    def presolve(self, minimise: Minimise) -> bool:
        """Try the closed form, no more privacy than there is, and no error at all."""
        self.prover.offer_nothing()
        if self.certified:
            self.report("closed form: no constraint binds")
            return True
        self._closed_form()
        if self.certified:
            self.report("closed form")
            return True
        identity = np.eye(self.program.n)  # Σ = Σ̄: nothing is released, I = 0 at the least
        self.prover.offer_multipliers(identity, {})
        if all(self.white.value(r.expression, identity) <= float(r.bounds(1)) for r in self.rows):
            self.prover.offer_whitened(identity)
            if self.certified:
                self.report("closed form: no constraint binds")
                return True
        if self.prover.strictly_feasible.any() or len(self.rows) != 1:
            return False  # one linear row of bound 0 is what leaves Σ = 0 alone
        self._no_error()
        self.report("closed form: no error is allowed")
        return True

    def _closed_form(self) -> None:
        if callable(self.exact):
            whitened, multipliers = self.exact(self.white)
            self.prover.offer_whitened(whitened)
            self.prover.offer_multipliers(whitened, multipliers)
        elif self.exact is not None:
            primal, dual = self.exact
            with suppress(UnprovableError):  # what is malformed proposes nothing
                self.prover.offer_exact(primal)
            with suppress(UnprovableError):
                self.prover.take_dual(dual)

    def _no_error(self) -> None:
        """Offer Σ = 0, all that a budget of 0 leaves."""
        (name,) = self.program.constraints
        nothing = np.zeros((self.program.n, self.program.n))
        self.prover.offer_exact(ErrorCovariance(self.white.root, nothing))
        try:
            price = self.white.last_price(name)
        except UNUSABLE:  # where X determines W, there is no finite value
            price = 0.0
        self.prover.offer_multipliers(nothing, {name: price})

    # ---- the central path ----------------------------------------------------------------

    def structured(self) -> bool:
        settings = CovariancePath.current()
        if self.white.caps:  # (G14) has no barrier for them
            return False
        if not self.has_interior:
            self.phase_one()
            if self.prover.status == "infeasible":
                return True
        prover, gap = self.prover, self.prover.tolerance / settings.gap_divisor
        if (numbers := step_size(self.white)) > settings.most_numbers:
            if self.method == "structured":
                raise self._too_large("a Newton step", numbers)
            return False
        failure = ""
        try:
            with np.errstate(all="ignore"):
                for iterate in central_path(self.white, prover.strictly_feasible, gap):
                    self.newest = iterate
                    self.watch.step(iterate.number, iterate.gap, prover.tolerance)
                    if self.watch.stopped:
                        break
        except UNUSABLE as error:
            failure = str(error)  # and the conic solver is next
        self.salvage()
        steps = 0 if self.newest is None else self.newest.number
        done = f"{steps} steps, gap {prover.upper - prover.lower:.1e}"
        self.report(f"central path: {failure or done}")
        return self.certified or self.method == "structured" or bool(self.watch.stopped)

    def salvage(self) -> None:
        """Offer the newest point of the path, and the multipliers of its last centre."""
        if (iterate := self.newest) is None:
            return
        self.prover.offer_whitened(iterate.centre)
        if iterate.whitened is not iterate.centre:  # a proof of each is dear
            self.prover.offer_whitened(iterate.whitened)
        with np.errstate(all="ignore"), suppress(*UNUSABLE):
            self.prover.offer_multipliers(iterate.centre, iterate.multipliers())

    def _too_large(self, what: str, numbers: int) -> InputError:
        need = f"{what} takes about {3 * 8 * numbers / 2**30:.1f} GiB"
        problem = f"{self.program.n} encoded variables in {len(self.white.views)} views: {need}"
        remedy = "release fewer variables, or the first principal components"
        return InputError("source", problem, remedy)

    # ---- attempts ------------------------------------------------------------------------

    def _conic(self, *, phase_one: bool = False) -> Any:
        from cvxprivacy.solvers.conic.covariance import LogDetModel

        if self.program.n > MOST_VARIABLES:
            raise self._too_large("a conic model", entries(self.program.n) ** 2)
        return LogDetModel(self.white, phase_one=phase_one)

    @cached_property
    def _model(self) -> Any:
        return self._conic()

    def propose(self, settings: Mapping[str, Any]) -> None:
        self.run(self._model, settings)

    def prove(self) -> None:
        whitened = self._model.whitened_covariance
        if whitened is not None:
            self.prover.offer_whitened(whitened)
            multipliers, psd = self._model.multipliers, self._model.psd_multipliers
            self.prover.offer_multipliers(whitened, multipliers, psd)

    # ---- phase one -----------------------------------------------------------------------

    def phase_one(self, minimise: Minimise | None = None) -> None:
        self.has_interior = True  # or this stage did not get one: it is tried once
        model = self._conic(phase_one=True)
        self.run(model, {}, "phase one")
        whitened, violation = model.whitened_covariance, model.violation
        if whitened is None:
            return
        if violation is not None and violation < 0:
            self._move_inward(whitened)
            return
        self._contradict(whitened, dict(model.multipliers), model.psd_multipliers)

    def _contradict(
        self,
        whitened: FloatArray,
        multipliers: dict[str, float],
        psd: Mapping[str, FloatArray],
    ) -> None:
        """Prove that the rows contradict each other: their bound without the objective is > 0."""
        if not self.prover.offer_multipliers(whitened, multipliers, psd, objective=0):
            return
        # the smallest first: a row without which the others still contradict each other is no part
        for name in sorted(multipliers, key=lambda key: multipliers[key]):
            fewer = {**multipliers, name: 0.0}
            if self.prover.offer_multipliers(whitened, fewer, psd, objective=0):
                multipliers = fewer

    def _move_inward(self, whitened: FloatArray) -> None:
        """Keep a strictly feasible point that is as far inside as the room allows."""
        t = MOST_INWARD
        while t > LEAST_INWARD:
            inner = (1 - t) * whitened + t / 2 * np.eye(self.program.n)
            if all(self.white.value(r.expression, inner) < float(r.bounds(1)) for r in self.rows):
                self.prover.strictly_feasible = inner
                return
            t /= INWARD
