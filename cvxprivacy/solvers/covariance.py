"""Solving a covariance program: candidates from closed forms and a conic solver, all judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from cvxprivacy.certificates.balls import UnprovableError
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.covariance import CovarianceDual, CovarianceProgram, ErrorCovariance
from cvxprivacy.proving.certificate import Ends
from cvxprivacy.solvers.covariance_interior import central_path
from cvxprivacy.solvers.whitened import Whitened

__all__ = ["UNUSABLE", "CovarianceProver", "solve_covariance"]

Nearly = Callable[[Whitened], tuple[FloatArray, Mapping[str, float]]]
UNUSABLE = (np.linalg.LinAlgError, ValueError, OverflowError)  # numbers that are none


class CovarianceProver(Ends):
    """The ends of a covariance program."""

    def __init__(self, program: CovarianceProgram, accuracy: str = "default") -> None:
        super().__init__(program, accuracy)
        self.white = Whitened(program, self.proof)
        self.anchor = self._interior()

    def _interior(self) -> FloatArray:
        """Return a middle strictly between 0 and I that satisfies the linear rows strictly."""
        share = 0.5
        for cap in self.white.caps.values():
            share = min(share, float(np.linalg.eigvalsh(cap)[0]) / 2)
        for row in self.program.constraints.values():
            trace = float(np.trace(self.white.cost(row.expression)))
            if not row.expression.weights and trace > 0:
                share = min(share, float(row.bounds(1)) / (2 * trace))
        return max(share, 0.0) * np.eye(self.program.n)

    def offer_middle(self, middle: FloatArray) -> bool:
        """Repair Σ = L M Lᵀ and prove its objective; True if it is the best so far.

        M is mixed with the anchor, as little as the proof allows, and scaled where a linear row
        asks for it.
        """
        if not np.isfinite(middle).all():
            return False
        for exponent in range(-48, 1, 3):
            t = 2.0**exponent
            mixed = (1 - t) * middle + t * self.anchor
            for row in self.program.constraints.values():
                value, bound = self.white.value(row.expression, mixed), float(row.bounds(1))
                if not row.expression.weights and value > bound * (1 - t):
                    mixed = mixed * (bound / value * (1 - t))
            primal = ErrorCovariance(self.white.root, (mixed + mixed.T) / 2)
            evaluation = self.proof.upper(primal.to_dict())
            if evaluation.feasible:
                return self.take_primal(primal, evaluation, _negative(middle))
        return False

    def offer_primal(self, middle: FloatArray) -> bool:
        """Prove the objective at Σ = L M Lᵀ as it is, if it is feasible."""
        primal = ErrorCovariance(self.white.root, middle)
        evaluation = self.proof.upper(primal.to_dict())
        return evaluation.feasible and self.take_primal(primal, evaluation)

    def offer_multipliers(
        self,
        middle: FloatArray,
        multipliers: Mapping[str, float],
        parts: Mapping[str, FloatArray] | None = None,
        objective: int = 1,
    ) -> bool:
        """Prove the bound of multipliers, the posteriors being those of M.

        What has no posteriors, or is no numbers, proves nothing.
        """
        try:
            with np.errstate(all="ignore"):
                dual = self.white.dual(middle, multipliers, parts, objective)
            return self.offer_dual(dual)
        except UNUSABLE:
            return False

    def offer_dual(self, dual: CovarianceDual) -> bool:
        """Prove the bound of ``dual``; True if it is the best so far (or a contradiction)."""
        return self.take_dual(dual)


def solve_covariance(
    program: CovarianceProgram,
    attempts: Sequence[Mapping[str, Any]],
    *,
    method: str = "auto",
    solver: str = "CLARABEL",
    accuracy: str = "default",
    options: Mapping[str, Any] | None = None,
    verbose: bool = False,
    exact: tuple[ErrorCovariance, CovarianceDual] | Nearly | None = None,
) -> tuple[CovarianceProver, list[str]]:
    """Minimise a covariance program and prove what was found.

    Parameters
    ----------
    attempts : sequence of mapping
        Settings to try, one after the other, until the gap is small enough.
    exact : (primal, dual) or callable, optional
        What a closed form proposes; or from the whitened program M and the multipliers in floats.
    """
    prover = CovarianceProver(program, accuracy)
    log: list[str] = []
    white, identity = prover.white, np.eye(program.n)
    if callable(exact):
        middle, multipliers = exact(white)
        prover.offer_middle(middle)
        prover.offer_multipliers(middle, multipliers)
        if prover.status == "certified":
            return prover, ["closed form"]
    elif exact is not None:
        with suppress(UnprovableError):  # a proposal that is none proposes nothing
            evaluation = prover.proof.upper(exact[0].to_dict())
            if evaluation.feasible:
                prover.take_primal(exact[0], evaluation)
        with suppress(UnprovableError):
            prover.offer_dual(exact[1])
        if prover.status == "certified":
            return prover, ["closed form"]
    prover.offer_multipliers(identity, {})
    rows = program.constraints.values()
    if all(white.value(row.expression, identity) <= float(row.bounds(1)) for row in rows):
        prover.offer_middle(identity)
        if prover.status == "certified":
            return prover, ["closed form: no constraint binds"]
    if not prover.anchor.any() and len(program.constraints) == 1:  # a budget of 0
        (name,) = program.constraints
        nothing = np.zeros_like(identity)
        prover.offer_primal(nothing)
        try:
            price = white.last_price(name)
        except UNUSABLE:  # where X determines W, there is no finite value
            price = 0.0
        prover.offer_multipliers(nothing, {name: price})
        return prover, ["closed form: no error is allowed"]
    anchored = all(not row.expression.weights for row in rows)
    if method != "conic" and not white.caps:
        if not anchored and _contradicted(prover, solver, options, log):
            return prover, log
        anchored = True
        try:
            with np.errstate(all="ignore"):
                middle, multipliers = central_path(white, prover.anchor, prover.tolerance / 20)
        except UNUSABLE as error:
            log.append(f"central path: {error}")
        else:
            prover.offer_middle(middle)
            prover.offer_multipliers(middle, multipliers)
            log.append(f"central path: gap {prover.upper - prover.lower:.1e}")
        if prover.status == "certified" or method == "structured":
            return prover, log
    from cvxprivacy.solvers.cvxpy_covariance import LogDetModel

    model = LogDetModel(white)
    for settings in attempts:
        said = model.solve(solver, {**settings, **(options or {})}, verbose=verbose)
        log.append(f"{solver} {dict(settings) or 'defaults'}: {said}")
        found = model.middle
        if not anchored:
            anchored = True
            if _contradicted(prover, solver, options, log):
                return prover, log
        if found is None:
            continue
        prover.offer_middle(found)
        prover.offer_multipliers(found, model.multipliers, model.parts)
        if prover.status == "certified":
            break
    return prover, log


def _contradicted(
    prover: CovarianceProver, solver: str, options: Mapping[str, Any] | None, log: list[str]
) -> bool:
    """Find a point that satisfies the rows strictly, or prove that none satisfies them."""
    from cvxprivacy.solvers.cvxpy_covariance import LogDetModel

    model = LogDetModel(prover.white, phase_one=True)
    log.append(f"{solver} phase one: {model.solve(solver, dict(options or {}))}")
    middle, tau = model.middle, model.violation
    if middle is None:
        return False
    if tau is not None and tau < 0:
        t = 1e-3  # inward, as far as the room allows
        while t > 1e-12:
            inner = (1 - t) * middle + t / 2 * np.eye(prover.program.n)
            rows = prover.program.constraints.values()
            if all(prover.white.value(r.expression, inner) < float(r.bounds(1)) for r in rows):
                prover.anchor = inner
                break
            t /= 8
        return False
    if not prover.offer_multipliers(middle, model.multipliers, model.parts, objective=0):
        return False
    kept = dict(model.multipliers)
    for name in sorted(kept, key=lambda key: kept[key]):  # what is left conflicts by itself
        if prover.offer_multipliers(middle, {**kept, name: 0.0}, model.parts, objective=0):
            kept[name] = 0.0
    return True


def _negative(middle: FloatArray) -> float:
    """Return how far M is from 0 ≼ M."""
    return max(0.0, -float(np.linalg.eigvalsh(middle)[0]))
