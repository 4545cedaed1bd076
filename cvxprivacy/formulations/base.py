"""From source, distortion and criteria to a channel program, and from its proof to a solution.

A formulation states ``objective`` and ``subject_to`` in the terms defined here; nothing about
solving, proving or edge cases is written in one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.certificates import Certificate
from cvxprivacy.criteria import Criterion
from cvxprivacy.distortion import Distortion
from cvxprivacy.errors import CertificationError, InfeasibleError, InputError
from cvxprivacy.information import nat
from cvxprivacy.programs import ChannelProgram, Row, Term, View
from cvxprivacy.release import Channel
from cvxprivacy.solution import Solution
from cvxprivacy.solvers import solve
from cvxprivacy.sources import DiscreteSource

if TYPE_CHECKING:
    import cvxpy as cp

    from cvxprivacy.solvers.conic import ConicModel

__all__ = ["ChannelProblem"]


class ChannelProblem:
    """A formulation over discrete channels; subclasses state one program each.

    Attributes
    ----------
    program : ChannelProgram
        The canonical data.
    problem : cvxpy.Problem
        The conic problem that is solved, with named constraints.
    constraints : dict of str to cvxpy.Constraint
    variables : dict of str to cvxpy.Variable
    latex : str
        The program as written.
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        *,
        encoder: str = "x",
        criteria: Sequence[Criterion] = (),
        units: str = "bits",
    ) -> None:
        if not isinstance(source, DiscreteSource):
            raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource")
        if encoder not in ("x", "wx"):
            raise InputError("encoder", f"{encoder!r} is unknown", 'use "x" or "wx"')
        try:
            criteria = tuple(criteria)
        except TypeError:
            raise InputError("criteria", f"{criteria!r}", "pass a list of criteria") from None
        for i, criterion in enumerate(criteria):
            if not isinstance(criterion, Criterion):
                remedy = "pass criteria such as LeakageCap(0.1)"
                raise InputError("criteria", f"{criterion!r} is no criterion", remedy, where=i)
        nat(units)
        self.source, self.encoder, self.units = source, encoder, units
        self.criteria = criteria
        d = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
        self.measure = d.fitted(len(source.w), source.x)
        self._letters()

    # ---- what a subclass states ----------------------------------------------------------

    def objective(self) -> Term:
        """Return the term that is minimised."""
        raise NotImplementedError

    def subject_to(self) -> Mapping[str, Row]:
        """Return the constraints besides the criteria, by name."""
        return {}

    def typed(self) -> Mapping[str, str]:
        """Return numbers typed into the objective: name → term that is d value / d number."""
        return {}

    # ---- letters, views and terms --------------------------------------------------------

    def _letters(self) -> None:
        """Lay out the atoms: columns are the letters that the encoder sees, with mass > 0."""
        law = self.source.law.reshape(len(self.source.w), len(self.source.x), -1)
        cells = law.sum(axis=2)
        alive_w = np.flatnonzero(cells.sum(axis=1) > 0)
        number = np.full(len(cells), -1)
        number[alive_w] = np.arange(len(alive_w))
        if self.encoder == "x":
            self._alive = np.flatnonzero(cells.sum(axis=0) > 0)
            atoms = law[:, self._alive, :].transpose(0, 2, 1)
            labels = np.broadcast_to(number[:, None, None], atoms.shape)
            self._law = atoms.reshape(-1, len(self._alive))
            self._w_of = labels.reshape(self._law.shape)
        else:
            self._alive = np.flatnonzero(cells.ravel() > 0)
            self._law = law.reshape(cells.size, -1)[self._alive].T
            w = self._alive // len(self.source.x)
            self._w_of = np.broadcast_to(number[w], self._law.shape)
        used = self._law.any(axis=1)  # rows of impossible w
        self._law, self._w_of = self._law[used].copy(), self._w_of[used].astype(np.int64)

    @cached_property
    def _cost(self) -> np.ndarray:
        d, nx = self.measure.matrix, len(self.source.x)
        if self.encoder == "wx":
            w, x = self._alive // nx, self._alive % nx
            return d[x] if d.ndim == 2 else d[w, x]
        if d.ndim == 2:
            return d[self._alive]
        alive_w = np.flatnonzero(self.source.p_w > 0)
        return d[alive_w][self._w_of[:, 0]][:, self._alive]

    @cached_property
    def risk(self) -> Term:
        """I(W; X̂), in the problem's units."""
        return Term("risk", {"W": 1.0}, latex=r"I(W; \hat X)")

    @cached_property
    def distortion(self) -> Term:
        """E d(X, X̂), or E d(W, X, X̂)."""
        inner = r"W, X, \hat X" if self.measure.matrix.ndim == 3 else r"X, \hat X"
        return Term("distortion", cost=self._cost, latex=rf"\mathrm{{E}}\, d({inner})")

    @cached_property
    def program(self) -> ChannelProgram:
        rows = dict(self.subject_to())
        for criterion in self.criteria:
            for name, row in criterion.rows(self).items():
                copies = sum(key == name or key.startswith(f"{name}[") for key in rows)
                rows[f"{name}[{copies + 1}]" if copies else name] = row
        return ChannelProgram(
            law=self._law,
            outputs=len(self.measure.outputs),
            views={"W": View(self._w_of)},
            objective=self.objective(),
            rows=rows,
            terms={"risk": self.risk, "distortion": self.distortion},
            units=self.units,
        )

    # ---- CVXPY in sight ------------------------------------------------------------------

    @cached_property
    def model(self) -> ConicModel:
        from cvxprivacy.solvers.conic import ConicModel

        return ConicModel(self.program)

    @property
    def problem(self) -> cp.Problem:
        return self.model.problem

    @property
    def constraints(self) -> dict[str, cp.Constraint]:
        return self.model.constraints

    @property
    def variables(self) -> dict[str, cp.Variable]:
        return self.model.variables

    @property
    def latex(self) -> str:
        """The program in LaTeX, without delimiters."""
        over = r"p(\hat x \mid x)" if self.encoder == "x" else r"p(\hat x \mid w, x)"
        rows = [rf"\min_{{{over}}} \quad & {self.program.objective.latex} \\"]
        lead = r"\text{s.t.}"
        for row in self.program.rows.values():
            sense = r"\le" if row.sense == "<=" else "="
            bound = "b(y)" if isinstance(row.bound, tuple) else f"{float(row.bound):.6g}"
            rows.append(rf"{lead} \quad & {row.term.latex} {sense} {bound} \\")
            lead = ""
        return "\n".join([r"\begin{aligned}", *rows, r"\end{aligned}"])

    def _repr_latex_(self) -> str:
        program = self.program
        cones = sum(view.size for view in program.views.values()) * program.m
        size = (
            rf"\text{{{self._sizes()}; {program.n * program.m} entries of mass, "
            rf"{cones} exponential cones}}"
        )
        return f"$$\n{self.latex}\n$$\n$${size}$$"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._statement()}; {self._sizes()})"

    def _statement(self) -> str:
        plain = {r"\hat X": "X̂", r"\mathrm{E}\,": "E", r"\,": "", r"\le": "≤"}
        program = self.program
        parts = [f"min {program.objective.latex}"]
        for row in program.rows.values():
            sense = "≤" if row.sense == "<=" else "="
            bound = "b(y)" if isinstance(row.bound, tuple) else f"{float(row.bound):.6g}"
            parts.append(f"{row.term.latex} {sense} {bound}")
        text = parts[0] + (f"  s.t.  {', '.join(parts[1:])}" if parts[1:] else "")
        for latex, letter in plain.items():
            text = text.replace(latex, letter)
        return text

    def _sizes(self) -> str:
        w, x = len(self.source.w), len(self.source.x)
        return f"|W| = {w}, |X| = {x}, |X̂| = {len(self.measure.outputs)}"

    # ---- the ends of the curve -----------------------------------------------------------

    @cached_property
    def least_distortion(self) -> float:
        """D_min = E min_x̂ d, the least budget that is feasible, rounded up to a float."""
        return self._least(self.distortion)

    def _least(self, term: Term) -> float:
        """Return the least value of a linear term over the entry bounds, rounded up."""
        program = self.program
        cost = program.mass[:, None] * program.cost(term)
        channel = program.least(cost)[0]
        atomic = term.cost if term.cost is not None else np.zeros((program.n, program.m))
        layers = np.broadcast_to(
            atomic if atomic.ndim == 3 else atomic[None], (*program.law.shape, program.m)
        )
        value = total = Fraction(0)
        for (atom, s), mass in np.ndenumerate(program.law):
            total += Fraction(float(mass))
            for y in np.flatnonzero(channel[s]):
                price = Fraction(float(layers[atom, s, y])) * Fraction(float(channel[s, y]))
                value += Fraction(float(mass)) * price
        exact = value / total + Fraction(term.constant)
        return float(exact) if Fraction(float(exact)) >= exact else math.nextafter(exact, math.inf)

    @cached_property
    def greatest_distortion(self) -> float:
        """D_max = min_x̂ E d: from there on a constant is released and nothing is revealed."""
        return float((self.program.mass @ self.program.cost(self.distortion)).min())

    # ---- solving -------------------------------------------------------------------------

    def solve(
        self,
        *,
        method: str = "auto",
        solver: str = "CLARABEL",
        accuracy: str = "default",
        solver_options: Mapping[str, Any] | None = None,
        verbose: bool = False,
        certify: bool | str = True,
    ) -> Solution:
        """Solve the program and prove the optimum.

        Parameters
        ----------
        method : {"auto", "conic"}
        solver : str
            Any installed CVXPY solver with exponential cones.
        accuracy : {"default", "high"}
            ``certified`` means a gap of at most 1e-6, or 1e-9, in the unit of the objective
            (one nat of information; max d − min d of distortion).
        solver_options : mapping, optional
            Passed to the solver.
        verbose : bool
        certify : {True, "warn", False}
            What to do without a finite enclosure, or without any feasible release: raise,
            warn, or return silently.

        Returns
        -------
        Solution

        Raises
        ------
        InfeasibleError
            If no release is feasible; it carries the proof.
        CertificationError
            If no finite enclosure was proved; it carries the best bounds.
        """
        if not isinstance(certify, bool) and certify != "warn":
            raise InputError("certify", f"{certify!r}", 'use True, "warn" or False')
        outcome = solve(
            self.program,
            method=method,
            solver=solver,
            accuracy=accuracy,
            solver_options=solver_options,
            verbose=verbose,
            model=lambda: self.model,
        )
        certificate = outcome.certificate
        message = ""
        if certificate.status == "infeasible":
            message = self._why(certificate)
            if certify is True:
                raise InfeasibleError(message, certificate)
        elif certificate.status == "uncertified":
            message = (
                f"nothing finite is proved: the value is in [{certificate.lower!r}, "
                f"{certificate.upper!r}] {self.units}; the solver said: {'; '.join(outcome.log)}"
            )
            if certify is True:
                raise CertificationError(message, certificate)
        if message and certify == "warn":
            warnings.warn(message, stacklevel=2)
        return Solution(
            certificate,
            title=type(self).__name__,
            statement=self._statement(),
            sizes=self._sizes(),
            channel=None if certificate.primal is None else self._channel(certificate),
            typed=self.typed(),
            log=outcome.log,
        )

    def _channel(self, certificate: Certificate) -> Channel:
        """Restore the letters of probability zero with the released marginal as their row."""
        assert certificate.primal is not None
        kept = certificate.primal.matrix
        source = self.source
        inputs = source.x if self.encoder == "x" else [(w, x) for w in source.w for x in source.x]
        matrix = np.tile(self.program.mass @ kept, (len(inputs), 1))
        matrix /= matrix.sum(axis=1, keepdims=True)
        matrix[self._alive] = kept
        p_input = np.zeros(len(inputs))
        p_input[self._alive] = self.program.mass
        arbitrary = np.ones(len(inputs), bool)
        arbitrary[self._alive] = False
        return Channel(
            matrix,
            inputs=inputs,
            outputs=self.measure.outputs,
            p_input=p_input,
            arbitrary=arbitrary,
        )

    def _why(self, certificate: Certificate) -> str:
        """Say in the user's words which constraints contradict each other."""
        dual, program = certificate.dual, certificate.program
        assert dual is not None
        names = [name for name in program.rows if np.any(np.asarray(dual.multipliers[name]) != 0)]
        if len(names) == 1 and program.rows[names[0]].linear:
            row = program.rows[names[0]]
            bound, least = float(row.bounds(program.m)), self._least(row.term)
            least_said = next(
                text for digits in range(6, 18) if float(text := f"{least:.{digits}g}") >= least
            )
            bound_said = next(
                text for digits in range(6, 18) if float(text := f"{bound:.{digits}g}") < least
            )
            return (
                f"{names[0]} {bound_said} is below {least_said}, the least "
                f"{row.term.name} of any release"
            )
        said = []
        for name in names:
            row = program.rows[name]
            sense, bound = ("≤" if row.sense == "<=" else "="), np.min(row.bounds(program.m))
            said.append(f"{name} ({row.term.name} {sense} {bound:.6g})")
        where = " and ".join(said) or "the bounds on the channel's entries"
        return f"{where} contradict each other: no release satisfies them together"
