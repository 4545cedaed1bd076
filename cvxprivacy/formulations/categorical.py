"""The categorical example's base: a law of letters, its water level, and what a proof means."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import ctx

from cvxprivacy.certificates.hamming import HammingCertificate, Masses, enclosed
from cvxprivacy.certificates.sums import PRECISION, exact_sum
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.formulations.problem import Formulation, Problem
from cvxprivacy.frozen import owned
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import hamming
from cvxprivacy.model.information import nat
from cvxprivacy.model.laws import Table, scaling
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.channel_latex import categorical
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.hamming import HammingProgram
from cvxprivacy.programs.latex_symbols import Written, aligned, displayed, tex
from cvxprivacy.programs.parameter import Parameter
from cvxprivacy.release.hamming import HammingChannel, few
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.price_bounds import ClosedFormPrice
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.task import Outcome, refuse_choice, reported
from cvxprivacy.solvers.water_level import common_level
from cvxprivacy.validation import labels, typed
from cvxprivacy_verifier.hamming_proof import Filling

__all__ = ["SHAPE", "CategoricalProblem"]

FloatArray = npt.NDArray[np.float64]
SHAPE = "pass the law of X, shape (|X|,)"


class CategoricalProblem(Problem[Solution]):
    """A law of X whose letters nothing tells apart, and how often one may be changed."""

    budget = Parameter()

    def _set(
        self,
        law: FloatArray,
        table: Table,
        budget: Real,
        x: Sequence[Hashable] | None,
        units: str,
        records: int | None,
    ) -> None:
        nat(units)
        self.budget = budget
        if self.budget > 1:
            problem, remedy = f"{float(budget)!r} is no probability", "pass a number from 0 to 1"
            raise InputError("budget", problem, remedy, value=budget)
        self.law, self.total, self.units, self.records = owned(law), exact_sum(law), units, records
        self.x = labels(next(iter(table.labels), None) if x is None else x, len(law), "x")
        self.masses = np.sort(law[law > 0])
        self._letters = Masses(self.masses, self.total)

    @cached_property
    def _letters(self) -> Masses:
        return Masses(self.masses, self.total)

    # ---- the water level -----------------------------------------------------------------

    @cached_property
    def level(self) -> Fraction:
        """λ.

        D(λ) + λ = Σ_x min(p(x), λ), with kinks at the letters' probabilities.
        """
        p, budget = self.masses, Fraction(self.budget) * self.total
        if budget >= self.total - Fraction(float(p[-1])):
            return Fraction(float(p[-1])) / self.total
        return common_level(p, budget, fewer=1) / self.total

    def enclosure(self, level: float | Fraction | None = None) -> Enclosure:
        """Return an interval that contains R(D), proved with any level λ ≥ 0, good or bad.

        By default with the optimal one, for which both ends are the mutual information of the
        release but for rounding: see :mod:`cvxprivacy_verifier.hamming_proof`.
        """
        filling = Filling(
            self._letters, self.level if level is None else Fraction(typed(level, "level"))
        )
        with ctx.workprec(PRECISION):
            ends = filling.lower(Fraction(self.budget)), filling.upper(Fraction(self.budget))
            return Enclosure(*enclosed(*ends, self.units))

    # ---- the same as a channel program ---------------------------------------------------

    def channel_problem(self) -> PrivacyDistortion:
        """Return the equal channel problem, which knows no closed form.

        Raises
        ------
        InputError
            For more than 2,000 letters.
        """
        return self._equal

    @cached_property
    def _equal(self) -> PrivacyDistortion:
        few(len(self.x), "a channel program")
        if self.records is not None:
            names = "X", "X"
            source = DiscreteSource.from_counts(np.diag(self.law), w=self.x, x=self.x, names=names)
        else:
            law = self.law
            if self.total > 1.5:  # it was multiplied by a common denominator
                law = np.array([Fraction(m) / self.total for m in law.tolist()], dtype=object)
            source = DiscreteSource.identical(law, x=self.x)
        return PrivacyDistortion(source, hamming(self.x), budget=self.budget, units=self.units)

    def formulation(self) -> Formulation:
        return self.channel_problem()._formulated

    def quantities(self) -> Mapping[str, Expression]:
        return {}

    def _in_cvxpy(self) -> Any:
        return self.channel_problem()._in_cvxpy()

    def _taken(self) -> set[str]:
        return {"budget"}

    def _covered(self, name: str, constraint: Any) -> Any:
        problem, remedy = "a closed form has no others", "add it to channel_problem()"
        raise InputError("constraint", problem, remedy)

    @property
    def program(self) -> ChannelProgram:
        """The equal channel program, of at most 2,000 letters."""
        return self.channel_problem().program

    @property
    def exact_program(self) -> HammingProgram:
        """The law and the budget, which is all that a proof of the closed form speaks of."""
        return HammingProgram(self.law, Fraction(self.budget), self.units, self._statement())

    @property
    def latex(self) -> str:
        such_that = rf"\Pr(X \ne \hat X) \le {tex(float(self.budget))}"
        return aligned(r"p(\hat x \mid x)", r"I(X; \hat X)", [such_that])

    @property
    def _written(self) -> Written:
        return categorical(float(self.budget), self.units)

    def _statement(self) -> str:
        return f"min I(X; X̂)  s.t.  Pr(X ≠ X̂) ≤ {float(self.budget):.6g}"

    def _repr_latex_(self) -> str:
        return displayed(self.latex, rf"|X| = |\hat X| = {len(self.x)}")

    def _sizes(self) -> str:
        return f"|X| = |X̂| = {len(self.x):,}"

    # ---- solving -------------------------------------------------------------------------

    def _outcome(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        refuse_choice(options, "a closed form needs no solver", "solve channel_problem() instead")
        return Outcome(self._closed_form(options["accuracy"]), [reported("closed form")])

    def _closed_form(self, accuracy: str) -> HammingCertificate:
        """Return what the level proves."""
        filling = Filling(self._letters, self.level)
        return HammingCertificate(self.exact_program, accuracy, filling)

    def _programmed(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        return self.channel_problem()._programmed(options, family)

    def _candidate(
        self, candidate: Any, duals: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> tuple[Outcome, float]:
        """Take a level for its release, and a release for one of the equal channel problem."""
        if np.ndim(candidate) == 0 and not hasattr(candidate, "matrix"):
            most = Fraction(float(self.masses[-1])) / self.total
            remedy = f"pass a level from 0 to max p(x) = {float(most):g}, or p(x̂ | x)"
            level = Fraction(typed(candidate, "candidate", remedy=remedy))
            if level > most:
                problem = f"{candidate!r} is above every probability"
                raise InputError("candidate", problem, remedy, value=candidate)
            distortion = Filling(self._letters, level).distortion
            candidate = HammingChannel(self.law, self.total, level, distortion, self.x).to_channel()
        return self.channel_problem()._candidate(candidate, duals, options)

    def _solution(self, outcome: Outcome) -> Solution:
        certificate = outcome.certificate
        if not isinstance(certificate, HammingCertificate):
            return self.channel_problem()._solution(outcome)
        reached = min(Fraction(self.budget), 1 - Fraction(float(self.masses[-1])) / self.total)
        release = HammingChannel(self.law, self.total, self.level, reached, self.x)
        slope = certificate.slope * nat(self.units)
        with np.errstate(divide="ignore"):  # the multiplier of a letter without mass may be ∞
            level = np.maximum(self.law / float(self.total), float(self.level))
            mass = -np.log(level / float(1 - release.distortion)) * nat(self.units)
        return Solution(
            certificate,
            title=type(self).__name__,
            sizes=f"{self._sizes()}, {len(release.outputs):,} of them released",
            release=release,
            prices=ClosedFormPrice(self, "budget", -slope + 0.0, certificate, most=1),
            duals={"budget": slope, "mass": mass},
            posteriors={},
            log=outcome.log,
            notes=[scaled] if (scaled := scaling(self.law)) else [],
        )
