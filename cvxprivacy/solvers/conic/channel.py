"""The conic statement of a channel program, in CVXPY.

Each view of information is one named, vectorised exponential cone in joint mass,

    ExpCone(−T, J, π q):   T(v, y) ≥ J(v, y) log(J(v, y) / (π(v) q(y))),

because the cone's own dual (u, v, w) is the posterior that the certificate needs:
log(r/π) = −v/|u| − 1, the σ/ω of (P17).  Other measures of leakage F(J) are stated in x = A J,
whose multipliers are ω times their scores.  Bounds of rows are ``cp.Parameter``s: moving them needs
no new problem.
Costs are shifted to a minimum of 0 and scaled to [0, 1], and the objective to its own unit,
before a solver sees them; the duals are mapped back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxprivacy.exact import FloatArray, floats
from cvxprivacy.leakage import Leakage, Smooth
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression, Worst, first_part, indexed
from cvxprivacy.programs.side_conditions import Excess
from cvxprivacy.solvers.conic.run import ConicStatement

__all__ = ["ConicModel"]

_GUARD = 2.0**-60  # share of π mixed into each posterior, against log 0
_NEGLIGIBLE = 1e-13  # total mass of letters left out of the conic problem


class ConicModel(ConicStatement):
    """A channel program as an ordinary ``cp.Problem`` with named constraints.

    Attributes
    ----------
    problem : cp.Problem
        The scaled statement: the program's value is ``problem.value * scale + offset``.
    variables : dict of str to cp.Variable
        ``Q`` joint mass (n, m); ``J[view]`` and its epigraph ``T[view]`` (|V|, m),
        ``q[view]`` (1, m); ``a[name]``, ``u[name]`` auxiliaries.
    constraints : dict of str to cp.Constraint
        ``worst[name]`` (each part of an objective that is the worst of several), ``mass``
        (Σ_y Q = p), ``floor`` and ``cap`` (entry bounds), ``view[name]`` cones with
        ``joint[name]`` and ``total[name]`` (definitions of J and q), every row under its own
        name, and auxiliaries as ``name.floor``, ``name.cap``, ``name.total``.
    parameters : dict of str to cp.Parameter
        The bound of each row, scaled; ``set_bounds`` fills them.
    scale, offset : float
        One unit of the objective, and its constant with the least cost.
    letters : array of int
        Letters in the problem: all but those of negligible mass (together at most 1e-13).
    phase_one : bool
        Minimise the largest scaled violation τ of the rows instead.
    """

    def __init__(self, program: ChannelProgram, *, phase_one: bool = False) -> None:
        super().__init__()
        self.program, self.phase_one = program, phase_one
        self.scale = 1.0 if phase_one else program.scale
        first = first_part(program.objective)
        least = 0.0 if first.cost is None else program.cost(first).min()
        self.offset = 0.0 if phase_one else float(first.constant) + float(least)
        self.parameters: dict[str, cp.Parameter] = {}
        self.letters = _weighty(program)
        self._by_part: dict[tuple[str, str], cp.Constraint] = {}
        self._labels: dict[str, npt.NDArray[np.intp]] = {}
        self._spans: dict[str, tuple[float, float]] = {}
        self._phi: dict[str, Any] = {}
        self._build()
        self.problem = cp.Problem(cp.Minimize(self._objective), self._all)

    # ---- building ------------------------------------------------------------------------

    def _build(self) -> None:
        """State everything; rows come last, so that their names are theirs."""
        program, m = self.program, self.program.m
        mass = self._mass = program.mass[self.letters]
        q = self.variables["Q"] = cp.Variable((len(mass), m), name="Q")  # (P2)
        self._add("mass", cp.sum(q, axis=1) == mass)
        low = 0.0 if program.floor is None else mass[:, None] * program.floor[self.letters]
        self._add("floor", q >= low)
        if program.ceiling is not None:
            self._add("cap", q <= mass[:, None] * program.ceiling[self.letters])
        used = [] if self.phase_one else [*program.objectives.values()]
        used += [row.expression for row in program.constraints.values()]
        for view in program.views:
            if any(view in term.weights for term in used):
                self._view(view)
        slack: Any = 0.0
        if self.phase_one:
            slack = self._objective = self._violation()
        elif isinstance(program.objective, Worst):
            self._objective = self.variables["worst"] = cp.Variable(name="worst")
            for name, part in program.objectives.items():
                value = cp.sum(self._columns(part, self.scale, shift=False))
                above = (float(part.constant) - self.offset) / self.scale
                row = value + above <= self._objective
                self._by_part["worst", name] = self._add(indexed("worst", name), row)
        else:
            self._objective = cp.sum(self._columns(program.objective, self.scale, shift=True))
        for name, aux in program.auxiliaries.items():
            if isinstance(aux, Excess):
                self._excess(name, aux, slack)
            else:
                self._auxiliary(name, aux.kind, aux.bound, slack)
        for name, row in program.constraints.items():
            self._row(name, row, slack)
        self.set_bounds(program.constraints)

    def _view(self, view: str) -> None:
        """Add the cone of a view, with J and q as variables: that keeps the system sparse."""
        program, m = self.program, self.program.m
        matrix = program.view_matrix(view)[:, self.letters]
        labels = self._labels[view] = np.flatnonzero(matrix.sum(axis=1) > 0)
        measure = program.views[view].measure
        if not program.views[view].informs:
            self._measure(view, measure, matrix)
            return
        pi = program.reference(view)[labels][:, None]
        t = self.variables[f"T[{view}]"] = cp.Variable((len(labels), m), name=f"T[{view}]")
        j = self.variables[f"J[{view}]"] = cp.Variable((len(labels), m), name=f"J[{view}]")
        q = self.variables[f"q[{view}]"] = cp.Variable((1, m), name=f"q[{view}]")
        conditional = sparse.csr_array(matrix[labels] / self._mass[None, :])
        self._add(f"joint[{view}]", j == conditional @ self.variables["Q"])
        self._add(f"total[{view}]", q == cp.sum(j, axis=0, keepdims=True))
        self._by_part["view", view] = self._add(f"view[{view}]", cp.ExpCone(-t, j, pi @ q))
        self._phi[view] = cp.sum(t, axis=0) * program.unit(view)

    def _measure(self, view: str, measure: Leakage, matrix: Any) -> None:
        """Add another measure of x = A J: the multipliers of that tell the scores."""
        pi, q = self.program.reference(view), self.variables["Q"]
        conditional = np.asarray(matrix.toarray() / self._mass[None, :])
        lifted = measure.lifted(conditional, pi)
        x = self.variables[f"J[{view}]"] = cp.Variable(
            (len(lifted), self.program.m), name=f"J[{view}]"
        )
        self._by_part["view", view] = self._add(f"joint[{view}]", lifted @ q == x)
        mass = conditional.sum(axis=0, keepdims=True) @ q
        phi, parts = measure.cone(x, mass, pi)
        self._phi[view] = phi * self.program.unit(view)
        for part, constraint in parts.items():
            self._add(f"{part}[{view}]", constraint)

    def _columns(self, term: Expression, span: float, *, shift: bool) -> cp.Expression:
        """Return term(y)/span, costs shifted to a minimum of 0 where that is a constant."""
        program, q = self.program, self.variables["Q"]
        parts: list[Any] = []
        for view, weight in term.columns(program.m).items():
            parts.append(cp.multiply(weight / span, self._phi[view]))
        if term.cost is not None:
            cost = program.cost(term)
            cost = ((cost - cost.min() if shift else cost) / span)[self.letters]
            parts.append(cp.sum(cp.multiply(cost, q), axis=0))
        return sum(parts) if parts else cp.Constant(np.zeros(program.m))

    def _row(self, name: str, row: Constraint, slack: Any) -> None:
        program = self.program
        cost, shift = program.cost(row.expression), not row.per_output
        low = float(cost.min()) if shift else 0.0
        span = float(np.ptp(cost) if shift else np.abs(cost).max())
        span = (span + sum(program.sizes(row.expression))) or 1.0
        self._spans[name] = (low + float(row.expression.constant), span)
        left = self._columns(row.expression, span, shift=shift)
        left = left if row.per_output else cp.sum(left)
        bound = self.parameters[name] = cp.Parameter(left.shape, name=f"bound[{name}]")
        constraint = left == bound if row.sense == "==" else left - slack <= bound
        self._by_part["row", name] = self._add(name, constraint)

    def _auxiliary(self, name: str, kind: str, bound: float, slack: Any) -> None:
        q, p = self.variables["Q"], self._mass[:, None]
        letter = f"{'a' if kind == 'ratio' else 'u'}[{name}]"
        x = self.variables[letter] = cp.Variable((1, self.program.m), name=letter, nonneg=True)
        if kind == "ratio":  # x = e^ε a: a factor of 1e20 then only makes the floor vanish
            parts = {
                "floor": p @ x / bound <= q + slack * p,
                "cap": q <= p @ x + slack * p,
                "total": cp.sum(x) / bound <= 1.0,
            }
        else:
            top = min(bound, 2.0 * self.program.m)  # Σ max K ≤ m: a greater one says no more
            parts = {"cap": q <= p @ x, "total": cp.sum(x) - slack <= top}
        for part, constraint in parts.items():
            self._by_part[part, name] = self._add(f"{name}.{part}", constraint)

    def _excess(self, name: str, aux: Excess, slack: Any) -> None:
        q, levels = self.variables["Q"], floats(aux.levels)
        x = self.variables[f"u[{name}]"] = cp.Variable(len(levels), name=f"u[{name}]", nonneg=True)
        marginal = floats(aux.share)[self.letters] @ q
        self._by_part["cap", name] = self._add(f"{name}.cap", marginal <= levels + x)
        self._add(f"{name}.total", cp.sum(x) - slack <= float(aux.bound))

    def set_bounds(self, rows: Mapping[str, Constraint]) -> None:
        """Fill the parameters from the bounds of ``rows`` (of the program, or moved ones)."""
        for name, row in rows.items():
            low, span = self._spans[name]
            value = (row.bounds(self.program.m) - low) / span
            self.parameters[name].value = value if row.per_output else float(value)

    # ---- solving -------------------------------------------------------------------------

    def spread(self, solver: str, options: Mapping[str, Any]) -> str:
        """Find a feasible channel that releases every letter as evenly as can be.

        An output of mass 1e-12 breaks criteria per output: no strictly feasible one has any.
        """
        even = cp.minimum(cp.sum(self.variables["Q"], axis=0), 1.0 / self.program.m)
        problem = cp.Problem(cp.Maximize(cp.sum(even)), self._all)
        return self.solve(solver, options, problem=problem)

    def channel(self) -> FloatArray | None:
        """Return Q/p, or None if the solver left none.

        Letters left out for their negligible mass get the best response to the multipliers.
        """
        q = self.variables["Q"].value
        if q is None:
            return None
        channel = np.asarray(q, float) / self._mass[:, None]
        if len(self.letters) == self.program.n:
            return channel
        dual = self.dual() or Dual({}, {}).cleaned(self.program)
        full = self.program.least(dual.minorant(self.program)[0])[0]
        full[self.letters] = channel
        return full

    def dual(self) -> Dual | None:
        """Return the multipliers in the program's own scale, or None if there are none."""
        program = self.program
        multipliers: dict[str, Any] = {}
        for name in program.constraints:
            value = self._by_part["row", name].dual_value
            if value is None:
                return None
            multipliers[name] = np.asarray(value, float) * self.scale / self._spans[name][1]
        auxiliaries: dict[str, list[FloatArray]] = {}
        for name, aux in program.auxiliaries.items():
            parts = ("floor", "cap") if aux.kind == "ratio" else ("cap",)
            values = [self._by_part[part, name].dual_value for part in parts]
            if any(value is None for value in values):
                return None
            auxiliaries[name] = [np.asarray(value, float) * self.scale for value in values]
        objective = 0 if self.phase_one else 1
        worst = ((k, row.dual_value) for (kind, k), row in self._by_part.items() if kind == "worst")
        shares = {name: float(value) for name, value in worst if value is not None}
        cleaned = Dual({}, multipliers, auxiliaries, objective, shares).cleaned(program)
        weights = cleaned.weights(program)
        scores = {
            name: self._scores(name)
            if view.informs
            else self._score_parameters(name, weights[name])
            for name, view in program.views.items()
        }
        return Dual(scores, multipliers, auxiliaries, objective, shares)

    def _score_parameters(self, view: str, weight: FloatArray) -> FloatArray:
        """Return what the multipliers of x = A J say of the scores: they are ω times those."""
        program, joint = self.program, self._by_part.get(("view", view))
        measure, size = program.views[view].measure, program.views[view].size
        if joint is None or joint.dual_value is None:
            return np.zeros((measure.rows(size), program.m))
        with np.errstate(all="ignore"):
            parameters = joint.dual_value * self.scale / (weight * program.unit(view))
            if isinstance(measure, Smooth):  # x = J, or x = J − π q
                parameters = measure.parameters(np.nan_to_num(parameters), program.reference(view))
        return np.where(np.isfinite(parameters), parameters, 0.0)

    def _scores(self, view: str) -> FloatArray:
        """Return log(r/π) from the dual of ExpCone(−T, J, πq), guarded against log 0."""
        scores = np.zeros((self.program.views[view].size, self.program.m))
        cone = self._by_part.get(("view", view))
        if cone is None or any(part.value is None for part in cone.dual_variables):
            return scores
        u, v, _ = (np.asarray(part.value, float) for part in cone.dual_variables)
        with np.errstate(all="ignore"):
            psi = -v / np.abs(u) - 1.0
        psi = np.where(np.isfinite(psi), np.clip(psi, -1e4, 1e4), 0.0)
        scores[self._labels[view]] = psi
        scores[self.program.view_matrix(view).sum(axis=1) == 0] = -1e9  # never seen: r = 0
        scores -= scores.max(axis=0)
        scores -= np.log(self.program.reference(view) @ np.exp(scores))
        return np.logaddexp(np.log1p(-_GUARD) + scores, np.log(_GUARD))


def _weighty(program: ChannelProgram) -> npt.NDArray[np.intp]:
    """Return the letters worth a solver's attention.

    Masses of 1e-80 ruin its scaling and move no value: whatever their rows are, letters of
    total mass 1e-13 move no proved end by more than some 1e-11.
    """
    if program.auxiliaries:  # there every letter's row binds, however rare the letter
        return np.arange(program.n)
    order = np.argsort(program.mass, kind="stable")
    light = order[np.cumsum(program.mass[order]) <= _NEGLIGIBLE]
    return np.setdiff1d(np.arange(program.n), light)
