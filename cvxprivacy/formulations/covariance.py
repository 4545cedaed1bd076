"""From second moments to a covariance program, and from its proof to a solution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb_mat, fmpq_mat

from cvxprivacy.certificates.balls import UnprovableError
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.exact import Exact, FloatArray, array
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.model.gaussian import GaussianSource, proved, symmetric
from cvxprivacy.model.information import nat
from cvxprivacy.model.matrices import array as matrix_array
from cvxprivacy.model.matrices import block, diagonal, identity, rationals, rounded
from cvxprivacy.programs import CovarianceProgram, GaussianView, Row, Term
from cvxprivacy.programs.channel import tex
from cvxprivacy.proving.certificate import Certificate
from cvxprivacy.release.channel import GaussianRelease
from cvxprivacy.results.solution import GaussianSolution
from cvxprivacy.solvers.driver import Outcome, solve_gaussian
from cvxprivacy.validation import table

if TYPE_CHECKING:
    from cvxprivacy.solvers.cvxpy_covariance import LogDetModel

__all__ = ["CovarianceProblem"]


class CovarianceProblem(Problem[GaussianSolution]):
    """A formulation over error covariances; subclasses state one program each.

    Attributes
    ----------
    program : CovarianceProgram
        The canonical data.
    problem : cvxpy.Problem
        Its whitened conic statement, with named constraints.
    constraints, variables : dict
    latex : str
        The program as written.
    """

    name = ""  # of what is released

    def __init__(
        self,
        source: GaussianSource,
        *,
        weights: Any = None,
        cap: Any = None,
        given: bool = False,
        encoder: str = "x",
        units: str = "bits",
    ) -> None:
        if not isinstance(source, GaussianSource):
            raise InputError("source", f"a {type(source).__name__}", "pass a GaussianSource")
        nat(units)
        self.source, self.units, self.encoder, self.given = source, units, encoder, given
        free = source.independent(source.w, "sensitive")
        if len(free) < len(source.w):
            lost = next(source.names[w] for i, w in enumerate(source.w) if i not in free)
            problem = f"the covariance of W is singular: the others determine {lost!r}"
            raise InputError("sensitive", problem, "leave it out", value=lost)
        self.key = tuple(source.x[i] for i in source.basis)
        self.encoded = (*source.w, *self.key) if encoder == "wx" else self.key
        self.weighted = weights is not None
        self.cost = self.embedded(self._weighing(weights))
        self.caps = {} if cap is None else {"cap": self._cap(cap)}

    def _weighing(self, weights: Any) -> fmpq_mat:
        """Return C as it was typed, proved semidefinite."""
        size = len(self.source.x)
        if weights is None:
            return identity(size)
        remedy = f"pass one weight ≥ 0 per key variable, or a matrix of shape ({size}, {size})"
        if np.ndim(weights) == 2:
            found = symmetric(weights, "weights", remedy)
            if found.nrows() == size:
                proved(found, "weights", remedy)
        else:
            found = diagonal(table(weights, "weights", remedy, axes=(1,)).tolist())
        if found.nrows() != size:
            raise InputError("weights", f"shape {np.shape(weights)}", remedy)
        return found

    def embedded(self, cost: fmpq_mat) -> Exact:
        """Return ⟨C, Cov(X − X̂)⟩ as a cost of all that is encoded: TᵀCT, exactly."""
        expansion = rationals(self.source.expansion)
        inner = matrix_array(expansion.transpose() * cost * expansion)
        lead = len(self.encoded) - len(self.key)
        return array(np.pad(inner, (lead, 0))) if lead else inner

    def _cap(self, cap: Any) -> Exact:
        size = len(self.source.x)
        remedy = f"pass a positive definite matrix of shape ({size}, {size})"
        found = symmetric(cap, "cap", remedy)
        if found.nrows() != size:
            raise InputError("cap", f"shape {np.shape(cap)}", remedy)
        if not proved(found, "cap", remedy):
            raise InputError("cap", "not positive definite", remedy)
        if len(self.key) < size or self.encoder == "wx":
            remedy = "leave out variables that others determine, and let the encoder see X alone"
            raise InputError("cap", "for a singular Σ_X or an encoder of (W, X)", remedy)
        return matrix_array(found)

    # ---- what a subclass states ----------------------------------------------------------

    def objective(self) -> Term:
        """Return the term that is minimised."""
        raise NotImplementedError

    def subject_to(self) -> Mapping[str, Row]:
        """Return the constraints, by name."""
        return {}

    def terms(self) -> dict[str, Term]:
        """Return the quantities that are reported."""
        return {"risk": self.risk, "distortion": self.distortion}

    def notes(self) -> list[str]:
        """Return what the value means where the data need not be Gaussian."""
        if self.source.records is None:
            return []
        return ["of Gaussian variables with these moments; the records need not be Gaussian"]

    def proposal(self) -> Any:
        """Return the optimum and its multipliers, exactly or as a function of the whitened program.

        None if there is no closed form.
        """
        return None

    # ---- terms ---------------------------------------------------------------------------

    @cached_property
    def risk(self) -> Term:
        """I(W; X̂) (and Z, if it is given), in the problem's units."""
        held = r"\hat X, Z" if self.given else r"\hat X"
        return Term("risk", {"W": 1.0}, latex=rf"I(W; {held})")

    @cached_property
    def rate(self) -> Term:
        """I(V; X̂ | Z) of what is encoded, in the problem's units."""
        seen = "W, X" if self.encoder == "wx" else "X"
        latex = rf"I({seen}; \hat X" + (r" \mid Z)" if self.given else ")")
        return Term("rate", {"V": 1.0}, latex=latex)

    @cached_property
    def distortion(self) -> Term:
        """Tr CΣ, the expected squared error."""
        norm = r"\|X - \hat X\|" + ("_C^2" if self.weighted else "^2")
        return Term("distortion", cost=self.cost, latex=rf"\mathrm{{E}}\, {norm}")

    @cached_property
    def program(self) -> CovarianceProgram:
        source, rows = self.source, dict(self.subject_to())
        views = {
            "W": GaussianView(tuple(source.w), "marginal"),
            "V": GaussianView(tuple(self.encoded), "conditional"),
        }
        objective, terms = self.objective(), self.terms()
        said = [objective, *(row.term for row in rows.values()), *terms.values()]
        used = {view for term in said for view in term.weights}
        return CovarianceProgram(
            covariance=source.exact,
            encoded=tuple(self.encoded),
            given=tuple(source.z) if self.given else (),
            views={name: view for name, view in views.items() if name in used},
            objective=objective,
            rows=rows,
            caps=self.caps,
            terms=terms,
            units=self.units,
            statement=self._statement(),
        )

    # ---- CVXPY in sight ------------------------------------------------------------------

    @cached_property
    def model(self) -> LogDetModel:
        from cvxprivacy.certificates import verify
        from cvxprivacy.solvers.cvxpy_covariance import LogDetModel
        from cvxprivacy.solvers.whitened import Whitened

        return LogDetModel(Whitened(self.program, verify.proof_of(self.program.to_dict())))

    @property
    def latex(self) -> str:
        """The program in LaTeX, without delimiters."""
        rows = [rf"\min_{{\Sigma}} \quad & {self.objective().latex} \\"]
        said = [
            rf"{r.term.latex} \le {tex(float(r.bounds(1)))}" for r in self.subject_to().values()
        ]
        bound = r"\Sigma_{X \mid Z}" if self.given else r"\Sigma_X"
        said.append(rf"0 \preceq \Sigma \preceq {bound}" + (r", M" if self.caps else ""))
        for i, line in enumerate(said):
            lead = "" if i else r"\text{s.t.}"
            rows.append(rf"{lead} \quad & {line} \\")
        rows[-1] = rows[-1].removesuffix(r" \\")
        return "\n".join([r"\begin{aligned}", *rows, r"\end{aligned}"])

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex}\n$$"

    def _statement(self) -> str:
        plain = {
            r"\hat X": "X̂",
            r"\mathrm{E}\,": "E",
            r"\|": "‖",
            "_C^2": "²_C",
            "^2": "²",
            r"\mid": "|",
        }
        plain |= {r"\mathrm{tr}\,\Sigma": "tr Σ"}
        bounds = [f"{r.term.latex} ≤ {float(r.bounds(1)):.6g}" for r in self.subject_to().values()]
        text = f"min {self.objective().latex}  s.t.  " + ", ".join([*bounds, "0 ≼ Σ ≼ Σ_X"])
        for latex, letter in plain.items():
            text = text.replace(latex, letter)
        if self.given:
            text = text.replace("Σ_X", "Σ_X|Z")
        return text + (", Σ ≼ M" if self.caps else "")

    def _sizes(self) -> str:
        source = self.source
        sizes = f"W of {len(source.w)}, X of {len(source.x)}"
        if len(self.key) < len(source.x):
            sizes += f" (rank {len(self.key)}: the others are combinations)"
        return sizes + (f", Z of {len(source.z)}" if self.given else "")

    # ---- solving -------------------------------------------------------------------------

    def _outcome(self, options: Mapping[str, Any], model: Any = None) -> Outcome:
        source = self.source
        if self.given and len(source.independent(source.z, "side")) < len(source.z):
            remedy = "leave out what others determine"
            raise InputError("source", "the covariance of Z is singular", remedy)
        try:
            return solve_gaussian(self.program, exact=self.proposal(), **options)
        except UnprovableError as error:
            remedy = "leave out variables that others determine, or give exact numbers"
            raise InputError("covariance", str(error), remedy) from None

    def _explained(self, certificate: Certificate) -> InfeasibleError:
        """Say which rows conflict, and the least that each could be, given the others."""
        assert certificate.dual is not None
        rows, dual = self.program.rows, certificate.dual
        conflict = [name for name in rows if float(dual.multipliers.get(name, 0.0)) > 0]
        extremes, said = {}, []
        for name in conflict:
            others = {key: row for key, row in rows.items() if key != name}
            idle = replace(self.program, objective=rows[name].term, rows=others)
            found = solve_gaussian(idle).certificate
            if math.isfinite(found.upper):
                extremes[name] = found.upper
                said.append(f"{name} would have to be at least {found.upper:.6g}")
        typed = " and ".join(f"{name} {float(rows[name].bounds(1)):.6g}" for name in conflict)
        message = f"{typed} cannot hold" + (" together" if len(conflict) > 1 else "")
        message += f"; with the rest as it is, {' or '.join(said)}" if said else ""
        return InfeasibleError(message, certificate, conflict=conflict, extremes=extremes)

    def _solution(self, outcome: Outcome) -> GaussianSolution:
        certificate = outcome.certificate
        duals: dict[str, Any] = {}
        prices: dict[str, float] = {}
        posteriors: dict[str, np.ndarray] = {}
        primal = certificate.primal
        sigma = None
        if primal is not None:
            root, middle = map(rationals, (primal.root, primal.middle))
            sigma = root * middle * root.transpose()
        if certificate.dual is not None and certificate.dual.objective:
            unit = nat(self.units) if self.program.objective.weights else 1.0
            for name, row in self.program.rows.items():
                inner = 1.0 if not row.term.weights else 1.0 / nat(self.units)
                duals[name] = float(certificate.dual.multipliers.get(name, 0.0)) * unit * inner
                prices[name] = -duals[name] + 0.0
            slack = self.program.gradient(certificate.dual)
            for name, part in self.program.parts(certificate.dual).items():
                duals[name if name else f"Σ ≼ {self._above()}"] = unit * part
                slack = slack + part
            duals["0 ≼ Σ"] = unit * slack
            for view, factors in certificate.dual.posteriors.items():
                with suppress(ZeroDivisionError):  # a Y that proves nothing
                    posteriors[view] = _posterior(*map(rationals, factors))
        return GaussianSolution(
            certificate,
            title=type(self).__name__,
            sizes=self._sizes(),
            release=None if sigma is None else self._release(sigma),
            prices=prices,
            duals=duals,
            posteriors=posteriors,
            log=outcome.log,
            error_covariance=None if sigma is None else self._expanded(sigma),
            notes=self.notes(),
        )

    def _above(self) -> str:
        return "Σ_X|Z" if self.given else "Σ_X"

    def _expanded(self, sigma: fmpq_mat) -> FloatArray:
        """Return Cov(X − X̂) of all key variables."""
        lead, size = len(self.encoded) - len(self.key), len(self.encoded)
        own = block(sigma, range(lead, size), range(lead, size))
        t = rationals(self.source.expansion)
        return rounded(lambda: t * own * t.transpose())

    def _release(self, sigma: fmpq_mat) -> GaussianRelease:
        source = self.source
        seen = [*self.encoded, *(source.z if self.given else ())]
        key = list(source.x)
        return GaussianRelease(
            sigma,
            covariance=source.law(seen, seen),
            mean=source.mean[seen],
            mean_out=source.mean[key],
            given=len(source.z) if self.given else 0,
            expansion=source.expansion,
            inputs=[source.names[i] for i in seen],
            outputs=[source.names[i] for i in key],
            scale=source.scale[seen],
            scale_out=source.scale[key],
        )


def _posterior(root: fmpq_mat, middle: fmpq_mat) -> FloatArray:
    """Return Y⁻¹ = R Y'⁻¹ Rᵀ."""
    inner = arb_mat(root.transpose())
    return rounded(lambda: arb_mat(root) * arb_mat(middle).solve(inner))
