"""The certificate of reverse water-filling of a covariance, along nearly its eigenvectors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.spectral import SpectralDual, SpectralPrimal, SpectralProgram
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ceil, exactly, floor
from cvxprivacy_verifier.spectral_proof import SpectralProof

__all__ = ["SpectralCertificate"]

# How far y of a wet axis is below 2 μ: more than axes are from orthonormal, which makes p_i = 0
_SHY = 2.0**-42
_TRIES = 4  # of a trace that is above the budget by rounding alone


class SpectralCertificate(Certificate):
    """What is proved of a covariance by axes, their variances, and a level (None: all is error)."""

    def __init__(
        self,
        program: SpectralProgram,
        accuracy: str,
        axes: FloatArray,
        powers: FloatArray,
        level: Fraction | None,
    ) -> None:
        with ctx.workprec(ctx.prec):  # which the proof sets
            proof, rows = SpectralProof(program.to_dict()), axes.tolist()
            near = math.inf if level is None else float(level)
            errors = np.minimum(powers, near)  # min(θ, κ_i)
            wet = np.where(errors < near, 1.0, 1.0 - _SHY)
            price = 0.0 if level is None else 0.5 / near  # μ = 1/2θ
            dual = SpectralDual(axes, wet / errors, price)
            primal = SpectralPrimal(axes, _removed(proof, rows, powers - errors))
            evaluation = proof.upper({**primal.to_dict(), "axes": rows})
            lower = proof.lower({**dual.to_dict(), "axes": rows})
            terms = {name: (floor(v), ceil(v)) for name, v in evaluation.terms.items()}
            upper = ceil(evaluation.objective)
        if not evaluation.feasible:
            upper, terms = math.inf, {}
        status = verify.status(floor(lower), upper, verify.TOLERANCE[accuracy] * proof.unit(upper))
        ends, raw = (floor(lower), upper), {"primal": 0.0, "dual": 0.0}
        held = primal if evaluation.feasible else None
        super().__init__(program, accuracy, status, *ends, held, dual, terms, raw)

    @property
    def value_units(self) -> str:
        return str(self.program.units)  # information is minimised

    @property
    def residuals(self) -> dict[str, float]:
        """The optimality conditions; the gap is rounding alone."""
        return {**self.raw, "complementarity": self.gap, "stationarity": 0.0}


def _removed(proof: SpectralProof, rows: list[list[float]], removed: FloatArray) -> FloatArray:
    """Return r, with as much more removed as the trace is above the budget."""
    _, g = proof.along(rows)
    some = np.flatnonzero(removed > 0)
    for _ in range(_TRIES):
        excess = proof.trace - arb(exactly(proof.budget))  # tr Σ − D, by (G39)
        excess -= sum((arb(float(removed[i])) * g[int(i), int(i)] for i in some), arb(0))
        if excess <= 0 or not len(some):
            break
        removed = removed.copy()
        removed[some] += max(float(excess.upper()), 0.0) / len(some)
        removed[some] = np.nextafter(removed[some], np.inf)
    return removed
