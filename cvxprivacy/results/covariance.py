"""From the certificate of a covariance program to a solution, or to why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flint import arb_mat, fmpq_mat

from cvxprivacy.errors import InfeasibleError
from cvxprivacy.exact import FloatArray
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.matrices import block, rationals, rounded
from cvxprivacy.programs.covariance import CovarianceProgram
from cvxprivacy.programs.notation import above
from cvxprivacy.release.gaussian import GaussianRelease
from cvxprivacy.results.covariance_prices import CovariancePrices
from cvxprivacy.results.solution import GaussianSolution
from cvxprivacy.solvers.driver import Outcome, solve_gaussian

__all__ = ["covariance_solution", "explained"]


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
    for name, part in dual.matrices().items():
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


def explained(certificate: Any) -> InfeasibleError:
    """Say which constraints conflict, and the least that each could be, given the others."""
    program, dual = certificate.program, certificate.dual
    rows = program.constraints
    conflict = [name for name in rows if float(dual.multipliers.get(name, 0.0)) > 0]
    extremes, alternatives = {}, []
    for name in conflict:
        others = {key: row for key, row in rows.items() if key != name}
        relaxed = replace(program, objective=rows[name].expression, constraints=others)
        least = solve_gaussian(relaxed).certificate.upper
        if math.isfinite(least):
            extremes[name] = least
            alternatives.append(f"{name} would have to be at least {above(least)}")
    typed = " and ".join(f"{name} {float(rows[name].bounds(1)):.6g}" for name in conflict)
    message = f"{typed} cannot hold" + (" together" if len(conflict) > 1 else "")
    message += f"; with the rest as it is, {' or '.join(alternatives)}" if alternatives else ""
    return InfeasibleError(message, certificate, conflict=conflict, extremes=extremes)
