"""Formulations over error covariances: from second moments to a solution."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from flint import fmpq_mat

from cvxprivacy.criteria.added import Affine, Stated, symmetrized
from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.stated_rules import names_of, numbers_of, stated_rules
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.exact import Exact, array
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.information import nat
from cvxprivacy.model.matrices import (
    array as matrix_array,
    diagonal,
    identity,
    proved,
    rationals,
    symmetric,
)
from cvxprivacy.programs.alphabet import check_encoder
from cvxprivacy.programs.covariance import CovarianceProgram, GaussianView
from cvxprivacy.programs.covariance_latex import CovarianceStatement
from cvxprivacy.programs.expression import Constraint, Expression, first_part
from cvxprivacy.programs.latex_symbols import PrintedCost, aligned, upright
from cvxprivacy.release.gaussian import GaussianRelease
from cvxprivacy.results.covariance import covariance_solution, explained
from cvxprivacy.results.solution import GaussianSolution
from cvxprivacy.solvers.candidate import prove_covariance
from cvxprivacy.solvers.driver import Outcome, solve_gaussian
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.validation import array as float_array, table
from cvxprivacy_verifier.balls import UnprovableError
from cvxprivacy_verifier.matrices import definite

__all__ = ["CovarianceProblem"]


class CovarianceProblem(Problem[GaussianSolution]):
    """A formulation over error covariances Σ; a subclass states its program in one method.

    Parameters
    ----------
    source : GaussianSource
        Second moments of W, X and Z.
    weights : array_like, shape (|X|,) or (|X|, |X|), optional
        C of the distortion tr CΣ: one weight ≥ 0 per key variable, or a semidefinite matrix; by
        default the identity.
    cap : array_like, shape (|X|, |X|), optional
        M ≻ 0 of a further constraint Σ ≼ M.
    given : bool
        Whether the user knows Z.
    encoder : {"x", "wx"}
        What is encoded: X, or W and X.
    units : {"bits", "nats"}
        Of information.

    Attributes
    ----------
    program : CovarianceProgram
        The canonical data.
    key, encoded : tuple of int
        The independent key variables, and all that is encoded: V.
    cost : ndarray
        C of tr CΣ; ``weighted`` says that it is not the identity.
    caps : dict of str to ndarray
        Further bounds Σ ≼ M.

    Raises
    ------
    InputError
        For what is no source, a singular covariance of W, or weights and caps that do not fit.

    Examples
    --------
    A program of one's own: the least rate, with one number D.  Two independent variables of
    variances 4 and 1 at D = 1 share the error equally: ½ log₂ 4/½ + ½ log₂ 1/½ = 2 bits.

    >>> import cvxprivacy as cpv
    >>> class LeastRate(cpv.CovarianceProblem):
    ...     "min I(X; X̂)  s.t.  tr Σ ≤ D."
    ...
    ...     budget = cpv.Parameter(zero=False)
    ...
    ...     def __init__(self, source, budget, **options):
    ...         super().__init__(source, **options)
    ...         self.budget = budget
    ...
    ...     def formulation(self):
    ...         return self.rate, {"budget": self.distortion <= self.budget}
    >>> source = cpv.GaussianSource([[4, 0], [0, 1]], sensitive=[0], key=[0, 1])
    >>> solution = LeastRate(source, 1).solve()
    >>> solution.status, round(solution.value, 4)
    ('certified', 2.0)
    """

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
        check_encoder(encoder)
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
        self.cost = self._embedded(self._weighing(weights))
        self.caps = {} if cap is None else {"cap": self._cap(cap)}

    def _seal(self) -> Self:
        super()._seal()
        if "source" in vars(self):  # not of a closed form, whose matrices are made when asked for
            _ = self._formulated  # what cannot be stated is refused now that all is typed
        return self

    def _weighing(self, weights: Any) -> fmpq_mat:
        """Return C as it was typed, proved semidefinite."""
        size = len(self.source.x)
        if weights is None:
            return identity(size)
        remedy = f"pass one weight ≥ 0 per key variable, or a matrix of shape ({size}, {size})"
        if np.ndim(weights) == 2:
            cost = symmetric(weights, "weights", remedy)
            if cost.nrows() == size:
                proved(cost, "weights", remedy)
        else:
            cost = diagonal(table(weights, "weights", remedy, axes=(1,)).tolist())
        if cost.nrows() != size:
            raise InputError("weights", f"shape {np.shape(weights)}", remedy)
        return cost

    def _embedded(self, cost: fmpq_mat) -> Exact:
        """Return ⟨C, Cov(X − X̂)⟩ as a cost of all that is encoded: TᵀCT, exactly."""
        expansion = rationals(self.source.expansion)
        inner = matrix_array(expansion.transpose() * cost * expansion)
        lead = len(self.encoded) - len(self.key)
        return array(np.pad(inner, (lead, 0))) if lead else inner

    def _cap(self, cap: Any) -> Exact:
        size = len(self.source.x)
        remedy = f"pass a positive definite matrix of shape ({size}, {size})"
        matrix = symmetric(cap, "cap", remedy)
        if matrix.nrows() != size:
            raise InputError("cap", f"shape {np.shape(cap)}", remedy)
        if not proved(matrix, "cap", remedy):
            raise InputError("cap", "not positive definite", remedy)
        if len(self.key) < size or self.encoder == "wx":
            remedy = "leave out variables that others determine, and let the encoder see X alone"
            raise InputError("cap", "for a singular Σ_X or an encoder of (W, X)", remedy)
        return matrix_array(matrix)

    def _refuse_nothing(self, budget: Any) -> None:
        """Refuse a budget of 0 where some error counts nothing: Σ would not be bounded."""
        if budget == 0 and not definite(rationals(self.cost)):
            remedy = "pass a budget > 0, or weigh every key variable"
            raise InputError("budget", "0 where some error counts nothing", remedy)

    # ---- what a subclass states ----------------------------------------------------------

    def quantities(self) -> Mapping[str, Expression]:
        return {"risk": self.risk, "distortion": self.distortion}

    def _notes(self) -> list[str]:
        """Return what the value means where the data need not be Gaussian."""
        if self.source.records is None:
            return []
        return ["of Gaussian variables with these moments; the records need not be Gaussian"]

    def _proposal(self) -> Any:
        """Return the optimum and its multipliers, exactly or as a function of the whitened program.

        None if there is no closed form.
        """
        return None

    # ---- quantities ---------------------------------------------------------------------------

    @cached_property
    def risk(self) -> Expression:
        """I(W; X̂) (and Z, if it is given), in the problem's units."""
        held = r"\hat X, Z" if self.given else r"\hat X"
        latex = rf"I({self._hidden}; {held})"
        return Expression("risk", {"W": 1.0}, views=self._views("W"), latex=latex)

    @property
    def _hidden(self) -> str:
        """W, or X where it is the same."""
        return "X" if set(self.source.w) == set(self.source.x) else "W"

    @cached_property
    def rate(self) -> Expression:
        """I(V; X̂ | Z) of what is encoded, in the problem's units."""
        encoded = "W, X" if self.encoder == "wx" else "X"
        latex = rf"I({encoded}; \hat X" + (r" \mid Z)" if self.given else ")")
        return Expression("rate", {"V": 1.0}, views=self._views("V"), latex=latex)

    @cached_property
    def distortion(self) -> Expression:
        """Tr CΣ, the expected squared error."""
        norm = r"\|X - \hat X\|" + ("_C^2" if self.weighted else "^2")
        total = Expression("distortion", cost=self.cost, latex=rf"\mathrm{{E}}\, {norm}")
        return total.printed_as(PrintedCost("C"))

    def distortion_of(self, names: tuple[str, ...]) -> Expression:
        """Return E ‖X − X̂‖², or of some attributes.

        Parameters
        ----------
        names : tuple of str
            Key variables whose squared errors are added up; () stands for the whole distortion.

        Raises
        ------
        InputError
            For what is no key variable.
        """
        if not names:
            return self.distortion
        key = [self.source.names[i] for i in self.source.x]
        for name in names:
            if name not in key:
                remedy = f"use one of {', '.join(key)}"
                raise InputError("budget", f"no key variable {name!r}", remedy, value=name)
        label = ", ".join(names)
        cost = self._embedded(diagonal([int(name in names) for name in key]))
        latex = rf"\mathrm{{E}}\, (X - \hat X)_{{{upright(label)}}}^2"
        return Expression(label, cost=cost, latex=latex).printed_as(
            PrintedCost(f"C_{{{upright(label)}}}")
        )

    def _views(self, name: str) -> dict[str, GaussianView]:
        if name == "W":
            return {"W": GaussianView(tuple(self.source.w), "marginal")}
        return {"V": GaussianView(tuple(self.encoded), "conditional")}

    # ---- the program ---------------------------------------------------------------------

    @cached_property
    def _rows(self) -> dict[str, Any]:
        """All constraints by name: the formulation's own, and those that were added."""
        groups = stated_rules(self._formulated[1], self._added, None).values()
        return {name: row for group in groups for name, row in group.items()}

    @cached_property
    def program(self) -> CovarianceProgram:
        """The canonical data: what solvers see and certificates are about."""
        objective, rows, terms = first_part(self._formulated[0]), self._rows, self.quantities()
        views: dict[str, Any] = {}
        for each in (objective, *(row.expression for row in rows.values()), *terms.values()):
            views.update(each.views)
        return CovarianceProgram(
            covariance=self.source.exact,
            encoded=tuple(self.encoded),
            given=tuple(self.source.z) if self.given else (),
            views={name: views[name] for name in ("W", "V") if name in views},
            objective=objective,
            constraints=rows,
            caps=self.caps,
            terms=terms,
            units=self.units,
            statement=self._statement(),
        )

    def _in_cvxpy(self) -> Any:
        from cvxprivacy.solvers.conic.covariance import covariance_problem

        # Σ by its size alone, which is meant: what is made of a problem keeps what V is, and only
        # moves numbers, so that a constraint stated in one's Σ is of any other's as well
        return covariance_problem(self.program, partial(self._shared.one, self.program.n))

    def _covered(self, name: str, constraint: Any) -> Criterion:
        if isinstance(constraint, Constraint):
            rule: Any = Stated(name, constraint)
        else:
            rule = symmetrized(Affine.from_cvxpy(name, constraint, self.variables["Sigma"]))
        rows = list(rule.constraints(None).values())
        if any(row.sense != "<=" for row in rows):
            remedy = "pass an inequality"
            raise InputError("constraint", f"{name} is an equality of covariances", remedy)
        return rule

    def _taken(self) -> set[str]:
        reserved = {"0 ≼ Σ", "Σ ≼ Cov(V | Z)", *self.caps}
        return reserved | names_of({"": self._rows}, self._formulated[0])

    def _numbers(self) -> list[str]:
        return numbers_of({"": self._rows}, self._formulated[0])

    # ---- in print ------------------------------------------------------------------------

    @property
    def _above(self) -> str:
        encoded = "(W, X)" if self.encoder == "wx" else "X"
        return rf"\Sigma_{{{encoded}" + (r" \mid Z}" if self.given else "}")

    @property
    def latex(self) -> str:
        lines = [row.stated() for row in self._rows.values()]
        lines.append(rf"0 \preceq \Sigma \preceq {self._above}" + (", M" if self.caps else ""))
        return aligned(r"\Sigma", self._formulated[0].latex, lines)

    @property
    def _written(self) -> Any:
        stated = first_part(self._formulated[0]), self._rows, self.caps, self.units
        dependent = len(self.key) < len(self.source.x)
        return CovarianceStatement(self.encoded, self.given, self._above, *stated, dependent)

    def _statement(self) -> str:
        lines = [row.stated("{:.6g}".format) for row in self._rows.values()]
        above = ("Σ_(W, X)" if self.encoder == "wx" else "Σ_X") + ("|Z" if self.given else "")
        return self._sentence([*lines, f"0 ≼ Σ ≼ {above}" + (", Σ ≼ M" if self.caps else "")])

    def _sizes(self) -> str:
        source = self.source
        sizes = f"W of {len(source.w)}, X of {len(source.x)}"
        if len(self.key) < len(source.x):
            sizes += f" (rank {len(self.key)}: the others are combinations)"
        return sizes + (f", Z of {len(source.z)}" if self.given else "")

    # ---- solving -------------------------------------------------------------------------

    def _outcome(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        source = self.source
        if self.given and len(source.independent(source.z, "side")) < len(source.z):
            remedy = "leave out what others determine"
            raise InputError("source", "the covariance of Z is singular", remedy)
        try:
            proposal = None if self._added else self._proposal()
            return solve_gaussian(self.program, exact=proposal, **options)
        except UnprovableError as error:
            remedy = "leave out variables that others determine, or give exact numbers"
            raise InputError("covariance", str(error), remedy) from None

    def _candidate(
        self, candidate: Any, duals: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> tuple[Outcome, float]:
        program, size = self.program, len(self.encoded)
        if isinstance(candidate, GaussianRelease):
            candidate = (np.eye(size) - candidate.gain) @ program.above  # Σ = A Σ_X
        remedy = f"pass a GaussianRelease, or an error covariance of shape ({size}, {size})"
        sigma = float_array(candidate, "candidate", remedy, axes=(2,), negative=True)
        if sigma.shape != (size, size) or not np.allclose(sigma, sigma.T, rtol=1e-6):
            wrong = f"shape {sigma.shape}" if sigma.shape != (size, size) else "not symmetric"
            raise InputError("candidate", wrong, remedy)
        units = None if duals is None else self._in_nats(duals)
        outcome = prove_covariance(program, sigma, units, **options)
        primal = outcome.certificate.primal
        return outcome, 0.0 if primal is None else float(np.abs(primal.matrix - sigma).max())

    def _in_nats(self, duals: Mapping[str, Any]) -> dict[str, float]:
        """Return multipliers of the program in its units as those of the program in nats."""
        program = self.program
        size = program.in_nats(program.objective)
        rows = program.constraints
        return {k: float(v) * size / program.in_nats(rows[k].expression) for k, v in duals.items()}

    def _explained(self, certificate: Any, watch: Watch | None = None) -> InfeasibleError:
        return explained(certificate, watch)

    def _solution(self, outcome: Outcome) -> GaussianSolution:
        return covariance_solution(
            outcome,
            self.source,
            self.key,
            title=type(self).__name__,
            sizes=self._sizes(),
            notes=self._notes(),
        )
