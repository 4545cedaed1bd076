"""The base of reverse water-filling: of variances, or along eigenvectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq_mat

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.spectral import SpectralCertificate
from cvxprivacy.exact import FloatArray, array
from cvxprivacy.formulations.filling import FillingProblem
from cvxprivacy.frozen import owned
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.information import nat
from cvxprivacy.model.matrices import array as matrix_array, rationals
from cvxprivacy.programs.spectral import SpectralProgram
from cvxprivacy.release.gaussian import GaussianRelease, diagonal
from cvxprivacy.results.price_bounds import ClosedFormPrice
from cvxprivacy.results.solution import GaussianSolution
from cvxprivacy.solvers.covariance.stages import MOST_VARIABLES
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.task import Outcome, reported
from cvxprivacy.solvers.threads import one_thread

__all__ = ["DENSE", "SpectralFilling"]

DENSE = 40  # variables of a covariance that is solved as any other


class SpectralFilling(FillingProblem):
    """Variances, or a covariance: what is poured along its eigenvectors.

    A covariance of up to 40 variables, or of up to 200 where these prove little, is solved and
    proved as any covariance program; a larger one along the eigenvectors that floats know.
    """

    _covariance: fmpq_mat | None = None  # the covariance; its eigenvalues are about the caps
    _vectors: FloatArray

    @cached_property
    def axes(self) -> FloatArray:
        """Eigenvectors of a covariance, as columns; the identity for variances."""
        return diagonal(np.ones(len(self._caps))) if self._covariance is None else self._vectors

    @cached_property
    def source(self) -> GaussianSource:  # type: ignore[override]
        """The covariance of X, which is W."""
        if self._covariance is None:
            return super().source
        places = range(self._covariance.nrows())
        return GaussianSource(matrix_array(self._covariance), sensitive=places, key=places)

    @property
    def exact_program(self) -> Any:
        """Variances or covariance, and budget, of which the proof speaks; None of a small one."""
        if self._covariance is None:
            return super().exact_program
        if self._added or len(self._caps) <= DENSE:
            return None
        return SpectralProgram(
            array(matrix_array(self._covariance)), self.total, self.units, self._statement()
        )

    def _outcome(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        if not isinstance(self.exact_program, SpectralProgram):
            return super()._outcome(options, family)
        certificate = self._closed_form(options["accuracy"])
        if certificate.status == "certified" or len(self._caps) > MOST_VARIABLES:
            return Outcome(certificate, [reported("closed form, along eigenvectors")])
        return self._programmed(options, family)

    def _closed_form(self, accuracy: str) -> Certificate:
        program = self.exact_program
        if not isinstance(program, SpectralProgram):
            return super()._closed_form(accuracy)
        with one_thread():
            return SpectralCertificate(program, accuracy, self._vectors, self._caps, self.level)

    def _solution(self, outcome: Outcome) -> GaussianSolution:
        certificate, v = outcome.certificate, getattr(self, "_vectors", None)
        if (
            not isinstance(certificate, SpectralCertificate)
            or v is None
            or self._covariance is None
        ):
            return super()._solution(outcome)
        unit, dual, primal = nat(self.units), certificate.dual, certificate.primal
        spread = self._caps if self.level is None else np.minimum(self._caps, float(self.level))
        slopes = 0.5 / spread
        sigma = None
        if primal is not None:
            turned = rationals(v.tolist())
            parts = rationals((v * primal.removed).T.tolist())
            sigma = self._covariance - turned * parts
        names = [f"V{i}" for i in range(len(v))]
        ones, zeros = np.ones(len(v)), np.zeros(len(v))
        return GaussianSolution(
            certificate,
            title=type(self).__name__,
            sizes=self._sizes(),
            release=sigma
            and GaussianRelease(
                sigma, covariance=self._covariance, mean=zeros, mean_out=zeros, side=0,
                expansion=np.diag(ones), inputs=names, outputs=names,
            ),
            prices=ClosedFormPrice(self, self._total, -dual.price * unit + 0.0, certificate),
            duals={
                self._total: dual.price * unit,
                "Σ ≼ Σ_X": _along(v, unit * np.maximum(slopes - dual.price, 0.0)),
                "0 ≼ Σ": _along(v, unit * np.maximum(dual.price - slopes, 0.0)),
            },
            posteriors={"W": _along(v, spread)},
            log=outcome.log,
            error_covariance=None if sigma is None else _along(v, spread),
            notes=self._notes(),
        )  # fmt: skip


def _along(axes: FloatArray, values: FloatArray) -> FloatArray:
    matrix = (axes * values) @ axes.T
    return owned((matrix + matrix.T) / 2)
