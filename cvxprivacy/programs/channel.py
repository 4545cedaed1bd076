r"""The channel program: the one convex program behind every discrete formulation.

Letters s = 1 … n with mass p(s), outputs y = 1 … m, channel K(s, y) = p(y | s), joint mass
Q(s, y) = p(s) K(s, y).  A *view* k sees every letter through a label v, J_k(v, y) =
Σ_s p(v, s) K(s, y), and what it leaks at output y is in a measure of its own
(:mod:`cvxprivacy.leakage`), Φ_k(y) = F(J_k(·, y)); as information it is

.. math:: Φ_k(y) = \sum_v J_k(v, y) \log \frac{J_k(v, y)}{π_k(v) q_k(y)},
          \qquad q_k = \sum_v J_k(v, ·),

convex and homogeneous in column y of Q (P4, P6).  The program is (P13),

.. math::
   \begin{aligned}
   \text{minimise}   \quad & \sum_k \sum_y α_k(y) Φ_k(y) + ⟨C_0, Q⟩ \\
   \text{subject to} \quad & \sum_k \sum_y β_{jk}(y) Φ_k(y) + ⟨C_j, Q⟩ ≤ b_j,\quad j = 1, …\\
                           & \sum_y K(s, y) = 1,\quad ℓ(s, y) ≤ K(s, y) ≤ u(s, y),
   \end{aligned}

with α, β ≥ 0; what is minimised may also be the greatest of several such sums; a row may be an
equality (then linear), or one row per output (then the sum over y is left out).  Bounded
auxiliaries extend it (:mod:`cvxprivacy.programs.side_conditions`).

Everything here is data.  The letters' masses are not stored but *defined* as sums of the
atoms ``law[l, s]``, divided by the sum of all atoms, so that a table of counts or of floats
is the exact rational law that a certificate speaks about; views and reference laws are
labels on the same atoms.  Information is in the program's ``units`` throughout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxprivacy.additive import AdditiveCost, entries, in_blocks, span
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, floats, is_sparse, listed
from cvxprivacy.frozen import FrozenFields, core, frozen
from cvxprivacy.leakage import Leakage, MutualInformation
from cvxprivacy.model.information import nat
from cvxprivacy.programs.expression import Constraint, Expression, Worst, parts_of, refuse_nonconvex
from cvxprivacy.programs.side_conditions import Auxiliary, Excess
from cvxprivacy.validation import table

__all__ = ["DENSE", "INFORMATION", "ChannelProgram", "View"]

INFORMATION = MutualInformation()
# Entries of a table of floats that is made, 160 MB: beyond them channels are sparse, and costs are
# looked at a block of letters at a time
DENSE = 20_000_000

IntArray = npt.NDArray[np.int64]
Matrix = Any  # of floats, an array; of a program that is not dense, a ``scipy.sparse.csr_array``


@dataclass(frozen=True, eq=False)
class View(FrozenFields):
    """What an observer of atoms sees: ``labels[l, s]`` in 0 … |V|−1, or −1 for unseen atoms.

    ``reference`` labels the atoms whose masses, normalised, are π; None means ``labels``.
    ``measure`` is what its leakage is in, and ``kind`` what v is, in LaTeX, for print: of W, of the
    encoder's letter S, or of a part of W; ``scale`` is the mass of all atoms in terms of its law's.
    """

    labels: IntArray
    reference: IntArray | None = None
    measure: Leakage = INFORMATION
    kind: str = "W"
    scale: Any = 1

    def restricted(self, atoms: npt.NDArray[np.bool_]) -> View:
        """Return what is seen of some atoms alone, against the same law."""
        reference = self.labels if self.reference is None else self.reference
        return replace(self, labels=np.where(atoms, self.labels, -1), reference=reference)

    @property
    def size(self) -> int:
        last = self.labels.max()
        return int(last if self.reference is None else max(last, self.reference.max())) + 1

    def to_dict(self) -> dict[str, Any]:
        reference = None if self.reference is None else self.reference.tolist()
        labels, measure = self.labels.tolist(), self.measure.data()
        return {"labels": labels, "reference": reference, "measure": measure}

    def __eq__(self, other: object) -> bool:
        """Tell whether another view sees the same, in the same measure."""
        if self is other or not isinstance(other, View):
            return self is other
        reference = self.labels if self.reference is None else self.reference
        other_reference = other.labels if other.reference is None else other.reference
        return (
            np.array_equal(self.labels, other.labels)
            and np.array_equal(reference, other_reference)
            and self.measure.data() == other.measure.data()
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    @property
    def informs(self) -> bool:
        """Whether its leakage is mutual information."""
        return self.measure.informs


@dataclass(frozen=True, eq=False)
class ChannelProgram(FrozenFields):
    """A channel program (see the module's docstring) as plain data.

    Attributes
    ----------
    law : (L, n) array
        Masses of the atoms; Σ_l law[l, s] / Σ law = p(s) > 0.
    outputs : int
        m.
    views : mapping of str to View
    objective : Expression, or Worst of several
    constraints : mapping of str to Constraint
    lower, upper : (n, m) array, optional
        Entry bounds of the channel; None means 0 and 1.
    auxiliaries : mapping of str to Auxiliary
    terms : mapping of str to Expression
        Quantities that are reported with the solution, in the order of interest.
    units : {"bits", "nats"}
    statement : str
        The program in one line, for people; no proof reads it.
    """

    law: FloatArray
    outputs: int
    views: Mapping[str, View]
    objective: Expression | Worst
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    lower: Exact | None = None
    upper: Exact | None = None
    auxiliaries: Mapping[str, Auxiliary] = field(default_factory=dict)
    terms: Mapping[str, Expression] = field(default_factory=dict)
    units: str = "bits"
    statement: str = ""

    def __post_init__(self) -> None:
        for name in ("law", "lower", "upper"):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(
                    self, name, table(values, name, "pass finite numbers", negative=True)
                )
        super().__post_init__()
        _check(self)

    # ---- the data in floats, for solvers and pictures ------------------------------------

    @property
    def n(self) -> int:
        return self.law.shape[1]

    @property
    def m(self) -> int:
        return self.outputs

    @property
    def dense(self) -> bool:
        """Whether tables (n, m) are made; otherwise channels are sparse."""
        return self.n * self.m <= DENSE

    @property
    def blocks(self) -> Iterator[IntArray]:
        """Letters, a block at a time; all of them where tables are made."""
        return iter([np.arange(self.n)]) if self.dense else in_blocks(self.n, self.m)

    @cached_property
    def total(self) -> float:
        return float(self.law.sum())

    @cached_property
    def mass(self) -> FloatArray:
        """p(s), shape (n,) (P1)."""
        masses: FloatArray = frozen(self.law.sum(axis=0) / self.total)
        return masses

    def view_matrix(self, view: str) -> sparse.csr_array:
        """Return p(v, s), shape (|V|, n): J = view_matrix @ K (P1, P3)."""
        labels = self.views[view].labels
        observed = np.nonzero(labels >= 0)
        entries = self.law[observed] / self.total
        shape = (self.views[view].size, self.n)
        return sparse.csr_array((entries, (labels[observed], observed[1])), shape=shape)

    def reference(self, view: str) -> FloatArray:
        """Return π_k, shape (|V|,)."""
        labels = self.views[view].reference
        labels = self.views[view].labels if labels is None else labels
        observed = labels >= 0
        masses = np.bincount(labels[observed], self.law[observed], minlength=self.views[view].size)
        return masses / masses.sum()  # its own atoms may be some of all: it is a law by itself

    def prior(self, view: str) -> FloatArray:
        """Return the law of what a view sees, shape (|V|,): r of a release that tells nothing."""
        masses = np.asarray(self.view_matrix(view).sum(axis=1))
        return masses / masses.sum()

    def cost(self, term: Expression, letters: IntArray | None = None) -> FloatArray:
        """Return C(s, y) per unit of Q, shape (n, m), or of some letters."""
        if letters is not None and not self.dense:
            if isinstance(term.cost, AdditiveCost):
                return term.cost.of(letters)
            return self.cost_at(term, letters[:, None], np.arange(self.m))
        costs = term.costs
        if costs is None:
            return np.zeros((self.n, self.m))
        if costs.ndim == 2:
            return costs
        # a cost of atoms is its mean given the letter, which is all that a channel of letters sees
        share, costs = self.law / self.law.sum(axis=0), core(costs)
        costs = np.broadcast_to(costs, (*self.law.shape, costs.shape[-1]))
        return np.broadcast_to(np.einsum("ls,lsy->sy", share, costs), (self.n, self.m))

    def cost_at(self, term: Expression, letters: IntArray, outputs: IntArray) -> FloatArray:
        """Return C(s, y) of some entries, of letters and outputs that are broadcast."""
        if term.cost is None:
            return np.zeros(np.broadcast_shapes(letters.shape, outputs.shape))
        if term.cost.ndim == 2:
            return entries(term.cost, letters, outputs)
        costs: FloatArray = self.cost(term)[letters, outputs]
        return costs

    def weighted(self, term: Expression, weights: FloatArray) -> FloatArray:
        """Return Σ_s weights(s) C(s, y), shape (m,)."""
        if isinstance(term.cost, AdditiveCost):
            return term.cost.weighted(weights)
        parts = (weights[block] @ self.cost(term, block) for block in self.blocks)
        return sum(parts, np.zeros(self.m))

    @cached_property
    def floor(self) -> FloatArray | None:
        """Lower entry bounds in floats."""
        return None if self.lower is None else floats(self.lower)

    @cached_property
    def ceiling(self) -> FloatArray | None:
        """Upper entry bounds in floats."""
        return None if self.upper is None else floats(self.upper)

    @cached_property
    def scale(self) -> float:
        """What a solver should take for 1: a nat of information, max C_0 − min C_0 of cost.

        Views of one observer each count once, not one by one.
        """
        scales = []
        for part in self.objectives.values():
            cost = part.costs if self.dense else part.cost
            scales.append(max(self.sizes(part), default=0.0) + span(cost))
        return float(max(scales)) or 1.0

    def sizes(self, term: Expression) -> list[float]:
        """Return what the leakage of each view may be in a term, as a nat of information is 1."""
        spans = []
        for view, weights in term.columns(self.m).items():
            most = float(np.max(weights, initial=0.0))
            observed = float(self.law[self.views[view].labels >= 0].sum()) / self.total
            size = min(most, max(most * observed, 1.0))  # what makes up for mass unseen is no more
            spans.append(size * self.views[view].measure.span * self.unit(view))
        return spans

    @cached_property
    def other_measures(self) -> list[Leakage]:
        """Measures in the objective and in constraints that are not mutual information."""
        rows = (row.expression for row in self.constraints.values())
        terms = [*self.objectives.values(), *rows]
        views = dict.fromkeys(view for term in terms for view in term.weights)
        return [self.views[view].measure for view in views if not self.views[view].informs]

    def unit(self, view: str) -> float:
        """Return what the measure of a view is in: a nat for information, else 1."""
        return self.views[view].measure.unit(self.units)

    @property
    def objectives(self) -> Mapping[str, Expression]:
        """What is minimised the greatest of, by name; one without a name, as a rule."""
        return parts_of(self.objective)

    # ---- functions of a channel ----------------------------------------------------------

    def joint(self, channel: Matrix, view: str) -> FloatArray:
        """Return J(v, y), shape (|V|, m) (P3)."""
        joint = self.view_matrix(view) @ channel
        return joint.toarray() if is_sparse(joint) else np.asarray(joint)

    def information(self, channel: Matrix, view: str) -> FloatArray:
        """Return Φ_k(y), shape (m,), in the program's units (P4)."""
        joint, reference = self.joint(channel, view), self.reference(view)
        return self.views[view].measure.value(joint, reference) * self.unit(view)

    def columns(self, term: Expression, channel: Matrix) -> FloatArray:
        """Return the contribution of each output to ``term`` (without its constant)."""
        if is_sparse(channel):
            some = channel.tocoo()
            spent = self.mass[some.row] * some.data * self.cost_at(term, some.row, some.col)
            value: FloatArray = np.bincount(some.col, spent, minlength=self.m).astype(float)
        else:
            value = (self.mass[:, None] * channel * self.cost(term)).sum(axis=0)
        for view, weight in term.columns(self.m).items():
            value = value + weight * self.information(channel, view)
        return value

    def value(self, term: Expression, channel: Matrix) -> float:
        return float(self.columns(term, channel).sum()) + float(term.constant)

    def attained(self, channel: Matrix) -> float:
        """Return the value of the objective, the greatest of its parts (P26)."""
        return max(self.value(part, channel) for part in self.objectives.values())

    def violation(self, channel: Matrix) -> float:
        """Return the largest amount by which ``channel`` breaks a constraint, in floats."""
        numbers = channel.data if is_sparse(channel) else channel
        if not np.isfinite(numbers).all():
            return math.inf
        low = 0.0 if self.floor is None else self.floor
        high = 1.0 if self.ceiling is None else self.ceiling
        worst = [np.max(np.abs(channel.sum(axis=1) - 1.0))]
        worst += [np.max(low - numbers), np.max(numbers - high)]
        positive = channel.maximum(0.0) if is_sparse(channel) else np.clip(channel, 0.0, None)
        for row in self.constraints.values():
            value = self.columns(row.expression, positive)
            value = value if row.per_output else value.sum() + float(row.expression.constant)
            off = value - row.bounds(self.m)
            worst.append(np.max(np.abs(off) if row.sense == "==" else off))
        for aux in self.auxiliaries.values():
            if isinstance(aux, Excess):
                over = np.maximum(aux.exceeded(self.mass, positive), 0.0)
                worst.append(over.sum() - float(aux.bound))
                continue
            # the best auxiliaries of a channel are its extremes, so that they are no variables here
            top = positive.max(axis=0)
            off = top - aux.bound * positive.min(axis=0) if aux.kind == "ratio" else top.sum()
            worst.append(np.max(off) - (aux.bound if aux.kind == "maximum" else 0.0))
        return float(max(0.0, *worst))

    def least(self, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minimise ⟨g, K⟩ over the simple set; return the channel and its row thresholds ν (P22).

        Of some letters, where there are no entry bounds.

        Greedy: every letter starts at its floors and fills outputs in the order of g up to
        their caps; ν(s) is the last g needed.
        """
        rows = np.arange(len(g))
        if self.floor is None and self.ceiling is None:
            best = g.argmin(axis=1)
            channel = np.zeros_like(g)
            channel[rows, best] = 1.0
            return channel, g[rows, best]
        low = np.zeros_like(g) if self.floor is None else self.floor
        room = (np.ones_like(g) if self.ceiling is None else self.ceiling) - low
        order = np.argsort(g, axis=1, kind="stable")
        left = 1.0 - low.sum(axis=1, keepdims=True)
        filled = np.cumsum(np.take_along_axis(room, order, axis=1), axis=1)
        before = np.hstack([np.zeros((self.n, 1)), filled[:, :-1]])
        sorted_room = np.take_along_axis(room, order, axis=1)
        take = np.clip(left - before, 0.0, sorted_room)
        channel = np.empty_like(g)
        np.put_along_axis(channel, order, take, axis=1)
        last = np.minimum((filled < left).sum(axis=1), self.m - 1)
        return channel + low, np.take_along_axis(g, order, axis=1)[rows, last]

    def cheapest(self, terms: Sequence[Expression]) -> Matrix:
        """Return the channel in the simple set that costs least, of the costs of several terms."""
        if len(terms) == 1 and isinstance(terms[0].cost, AdditiveCost) and not self.dense:
            return self.deterministic(terms[0].cost.cheapest)
        costs = (
            sum((self.cost(term, letters) for term in terms), np.zeros((len(letters), self.m)))
            for letters in self.blocks
        )
        if self.dense:
            return self.completed(self.least(self.mass[:, None] * next(costs))[0])
        best = np.concatenate([cost.argmin(axis=1) for cost in costs])
        return self.deterministic(best)

    @cached_property
    def centred(self) -> bool:
        """Whether the last letter is nobody's: its row is a law r that others are compared with."""
        return any(view.measure.centred for view in self.views.values())

    def completed(self, channel: Matrix) -> Matrix:
        """Return a channel in which that row, if there is one, is the mean of all others."""
        if self.centred:
            channel = channel.copy()
            channel[-1] = self.mass[:-1] @ channel[:-1] / self.mass[:-1].sum()
        return channel

    def deterministic(self, outputs: IntArray) -> Matrix:
        """Return the channel that releases each letter as the output of its own."""
        ones = (np.ones(self.n), outputs, np.arange(self.n + 1))
        channel = sparse.csr_array(ones, shape=(self.n, self.m))
        return channel.toarray() if self.dense else channel

    # ---- what a proof file stores ---------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the program in lists, numbers and strings: what a proof file stores."""
        lists: dict[Any, Any] = {}
        return {
            "kind": "channel",
            "units": self.units,
            "law": self.law.tolist(),
            "outputs": self.outputs,
            "views": {name: view.to_dict() for name, view in self.views.items()},
            "objective": self.objective.to_dict(lists),
            "rows": {name: row.to_dict(lists) for name, row in self.constraints.items()},
            "lower": None if self.lower is None else listed(self.lower),
            "upper": None if self.upper is None else listed(self.upper),
            "auxiliaries": {name: aux.to_dict() for name, aux in self.auxiliaries.items()},
            "terms": {name: term.to_dict(lists) for name, term in self.terms.items()},
        }


def _check(program: ChannelProgram) -> None:
    """Refuse data that is no channel program; formulations never get here with such."""
    law, m = program.law, program.outputs
    nat(program.units)
    if law.ndim != 2 or law.dtype == object or (law < 0).any():
        raise InputError("law", f"shape {law.shape}", "pass finite nonnegative atoms (L, n)")
    if (law.sum(axis=0) == 0).any():
        raise InputError("law", "a letter without mass", "drop it and restore it afterwards")
    n = program.n
    for name, view in program.views.items():
        if view.labels.shape != law.shape:
            raise InputError(f"views[{name!r}]", "labels of another shape", f"use {law.shape}")
        if (program.reference(name) == 0).any():
            raise InputError(f"views[{name!r}]", "a label of reference mass 0", "renumber labels")
    for name, term in program.terms.items():
        _check_term(program, name, term)
    for part in program.objectives.values():
        _check_term(program, "objective", part)
    for name, row in program.constraints.items():
        _check_term(program, name, row.expression)
        if row.radius < 0 or row.expression.cost_radius < 0 or row.expression.constant_radius < 0:
            raise InputError(name, "a negative radius", "pass a distance")
        if isinstance(row.bound, tuple) and (not row.per_output or len(row.bound) != m):
            raise InputError(name, f"{len(row.bound)} bounds", f"pass one, or {m} per output")
        if row.per_output and row.expression.constant:
            raise InputError(name, "a constant in a row per output", "put it into the bound")
    refuse_nonconvex(program.objectives.values(), program.constraints)
    low: Any = 0 if program.lower is None else program.lower
    high: Any = 1 if program.upper is None else program.upper
    for bounds in (program.lower, program.upper):
        if bounds is not None and bounds.shape != (n, m):
            raise InputError("lower", f"entry bounds {bounds.shape}", f"use {(n, m)}")
    if not np.all((low >= 0) & (low <= high) & (high <= 1)):
        raise InputError("lower", "entry bounds out of order", "use 0 ≤ lower ≤ upper ≤ 1")


def _check_term(program: ChannelProgram, name: str, term: Expression) -> None:
    n, m = program.n, program.m
    for view, weight in term.weights.items():
        if view not in program.views:
            raise InputError(name, f"no view {view!r}", f"use one of {list(program.views)}")
        if np.shape(weight) not in ((), (m,)):
            raise InputError(name, f"weights of shape {np.shape(weight)}", f"use () or {(m,)}")
    shapes = ((n, m), (*program.law.shape, m), (1, n, m))
    if term.cost is not None and term.cost.shape not in shapes:
        raise InputError(name, f"cost of shape {term.cost.shape}", f"use one of {shapes}")
