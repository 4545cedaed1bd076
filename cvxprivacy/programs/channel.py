r"""The channel program: the one convex program behind every discrete formulation.

Letters s = 1 … n with mass p(s), outputs y = 1 … m, channel K(s, y) = p(y | s), joint mass
Q(s, y) = p(s) K(s, y).  A *view* k sees every letter through a label v, J_k(v, y) =
Σ_s p(v, s) K(s, y), and its information at output y is

.. math:: Φ_k(y) = \sum_v J_k(v, y) \log \frac{J_k(v, y)}{π_k(v) q_k(y)},
          \qquad q_k = \sum_v J_k(v, ·),

convex and homogeneous in column y of Q.  The program is

.. math::
   \begin{aligned}
   \text{minimise}   \quad & \sum_k \sum_y α_k(y) Φ_k(y) + ⟨C_0, Q⟩ \\
   \text{subject to} \quad & \sum_k \sum_y β_{jk}(y) Φ_k(y) + ⟨C_j, Q⟩ ≤ b_j,\quad j = 1, …\\
                           & \sum_y K(s, y) = 1,\quad ℓ(s, y) ≤ K(s, y) ≤ u(s, y),
   \end{aligned}

with α, β ≥ 0; a row may also be an equality (then linear), or one row per output (then the
sum over y is left out).  Two bounded auxiliaries extend it: ``ratio`` (some a with
a_y ≤ K(s, y) ≤ e^ε a_y, local differential privacy) and ``maximum`` (some u with
K(s, y) ≤ u_y, Σ u_y ≤ e^b, maximal leakage).

Everything here is data.  The letters' masses are not stored but *defined* as sums of the
atoms ``law[l, s]``, divided by the sum of all atoms, so that a table of counts or of floats
is the exact rational law that a certificate speaks about; views and reference laws are
labels on the same atoms.  Information is in the program's ``units`` throughout.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, Number, floats, plus, rational, written
from cvxprivacy.exact import array as exact_array
from cvxprivacy.exact import times as product
from cvxprivacy.frozen import FrozenDict, frozen
from cvxprivacy.model.information import nat
from cvxprivacy.validation import table, typed

__all__ = [
    "Auxiliary",
    "ChannelProgram",
    "Dual",
    "EntryBounds",
    "Minimize",
    "Part",
    "Row",
    "Term",
    "View",
]

IntArray = npt.NDArray[np.int64]


def _number(value: Any, argument: str) -> float | Fraction:
    return typed(value, argument, negative=True)


def _table(values: Any, argument: str, remedy: str = "pass finite numbers") -> Exact:
    return table(values, argument, remedy, negative=True)


@dataclass(frozen=True, eq=False)
class View:
    """What an observer of atoms sees: ``labels[l, s]`` in 0 … |V|−1, or −1 for unseen atoms.

    ``reference`` labels the atoms whose masses, normalised, are π; None means ``labels``.
    """

    labels: IntArray
    reference: IntArray | None = None

    def __post_init__(self) -> None:
        for name in ("labels", "reference"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def size(self) -> int:
        last = self.labels.max()
        return int(last if self.reference is None else max(last, self.reference.max())) + 1

    def to_dict(self) -> dict[str, Any]:
        reference = None if self.reference is None else self.reference.tolist()
        return {"labels": self.labels.tolist(), "reference": reference}


@dataclass(frozen=True, eq=False)
class Term:
    """A named quantity Σ_k Σ_y α_k(y) Φ_k(y) + ⟨C, Q⟩ + c of the release.

    Terms add, scale, and compare like CVXPY expressions: ``term <= bound`` and
    ``term == bound`` are rows.

    Attributes
    ----------
    name : str
        The quantity's name, as in "the least *distortion*".
    weights : mapping of str to number or (m,) array
        α_k, by view.
    cost : (n, m) or (L, n, m) array, optional
        C, per unit of letter mass, or per unit of atom mass; ``cost_radius`` bounds the
        distance to the number meant where it is irrational.
    constant, constant_radius : number
        c, likewise.
    latex : str
        How the quantity is written.

    Every number is exact: a float as the dyadic rational that it is, else a ``Fraction``; sums
    and products are exact too.
    """

    name: str = ""
    weights: Mapping[str, Any] = field(default_factory=dict)
    cost: Exact | None = None
    cost_radius: Any = 0
    constant: Any = 0
    constant_radius: Any = 0
    latex: str = ""

    def __post_init__(self) -> None:
        def kept(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        weights: dict[str, Any] = {}
        for view, weight in self.weights.items():
            many = np.ndim(weight) > 0
            weights[view] = _table(weight, view) if many else _number(weight, view)
        kept("weights", FrozenDict(weights))
        if self.cost is not None:
            kept("cost", _table(self.cost, "cost", "forbid the move with upper = 0"))
        for name in ("cost_radius", "constant", "constant_radius"):
            kept(name, _number(getattr(self, name), name))

    def __add__(self, other: Term) -> Term:
        if not isinstance(other, Term):
            return NotImplemented
        weights: dict[str, Any] = dict(self.weights)
        for view, weight in other.weights.items():
            weights[view] = _sum(weights[view], weight) if view in weights else weight
        cost = self.cost if other.cost is None else other.cost
        if self.cost is not None and other.cost is not None:
            cost = plus(_atomic(self.cost), _atomic(other.cost))
            cost = cost[0] if cost.shape[0] == 1 else cost
        return Term(
            name=" + ".join(filter(None, (self.name, other.name))),
            weights=weights,
            cost=cost,
            cost_radius=_sum(self.cost_radius, other.cost_radius),
            constant=_sum(self.constant, other.constant),
            constant_radius=_sum(self.constant_radius, other.constant_radius),
            latex=" + ".join(filter(None, (self.latex, other.latex))),
        )

    def __mul__(self, factor: Number) -> Term:
        by = Fraction(_number(factor, "factor"))

        def times(value: Any, by: Fraction) -> Any:
            return product(value, by) if np.ndim(value) else rational(value) * by

        return replace(
            self,
            name=f"{float(by):g} {self.name}",
            weights={view: times(weight, by) for view, weight in self.weights.items()},
            cost=None if self.cost is None else product(self.cost, by),
            cost_radius=times(self.cost_radius, abs(by)),
            constant=times(self.constant, by),
            constant_radius=times(self.constant_radius, abs(by)),
            latex=f"{tex(float(by))}\\, {self.latex}",
        )

    __rmul__ = __mul__

    def __neg__(self) -> Term:
        return self * -1

    def __le__(self, bound: Number | Sequence[Number]) -> Row:
        return Row(self, "<=", bound)  # type: ignore[arg-type]

    def __eq__(self, bound: object) -> Row:  # type: ignore[override]
        return Row(self, "==", bound)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def costs(self) -> FloatArray | None:
        """The nearest floats to the cost."""
        return None if self.cost is None else floats(self.cost)

    def columns(self, m: int) -> dict[str, FloatArray]:
        """Return the weights in floats, as arrays of shape (m,)."""
        return {v: np.broadcast_to(np.asarray(w, float), (m,)) for v, w in self.weights.items()}

    def to_dict(self, lists: dict[int, Any] | None = None) -> dict[str, Any]:
        """Return the term in lists; terms that share a cost array share its list."""
        lists = {} if lists is None else lists
        cost = self.cost
        return {
            "name": self.name,
            "weights": {view: _listed(w) for view, w in self.weights.items()},
            "cost": None if cost is None else lists.setdefault(id(cost), _listed(cost)),
            "cost_radius": written(self.cost_radius),
            "constant": [written(self.constant), written(self.constant_radius)],
        }


def _sum(a: Any, b: Any) -> Any:
    """Return the sum of two numbers, or of weights for each output."""
    if not (np.ndim(a) or np.ndim(b)):
        return rational(a) + rational(b)
    return plus(*(x if np.ndim(x) else exact_array([x]) for x in (a, b)))


def _listed(values: Any) -> Any:
    """Return numbers in lists, as JSON can hold them."""
    if not np.ndim(values):
        return written(values)
    if values.dtype != object:
        return values.tolist()
    return [_listed(entry) for entry in values]


def tex(number: float) -> str:
    """Return a number in LaTeX, to six digits."""
    mantissa, _, exponent = f"{number:.6g}".partition("e")
    if not exponent:
        return mantissa
    power = rf"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"


def _as(values: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return ``values`` as finite floats of ``shape``, zeros where they are not."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return np.zeros(shape)
    if array.shape != shape:
        return np.zeros(shape)
    return np.where(np.isfinite(array), array, 0.0)


def _atomic(cost: Exact) -> Exact:
    return cost if cost.ndim == 3 else cost[None]


def Minimize(term: Term) -> Term:
    """Return ``term``; it only makes a formulation read like the paper's program."""
    return term


@dataclass(frozen=True, eq=False)
class Row:
    """One constraint ``term <= bound`` or ``term == bound``, or one for each output.

    Attributes
    ----------
    term : Term
        Left-hand side; an equality has no information in it.
    sense : {"<=", "=="}
    bound : number, or sequence of m numbers with ``per_output``
        Kept exactly; a float is the rational that it is.
    radius : number
        Distance of ``bound`` from the number meant, where that is irrational.
    per_output : bool
        One row for each output y, of column y alone.
    slope, bound_slope : float
        d(term)/dθ = slope · q(y) and d(bound)/dθ, θ the number that the user typed.
    share : array of shape (n,), optional
        What share of each letter's mass counts in q(y); all of it by default.
    """

    term: Term
    sense: Literal["<=", "=="]
    bound: Fraction | tuple[Fraction, ...]
    radius: Any = 0
    per_output: bool = False
    slope: float = 0.0
    bound_slope: float = 1.0
    share: FloatArray | None = None

    def __post_init__(self) -> None:
        bound: Any = self.bound
        if isinstance(bound, Iterable):
            found: Any = tuple(Fraction(_number(b, "bound")) for b in bound)
        else:
            found = Fraction(_number(bound, "bound"))
        object.__setattr__(self, "bound", found)
        object.__setattr__(self, "radius", _number(self.radius, "radius"))

    def __bool__(self) -> bool:
        raise TypeError("a constraint has no truth value: name it in a dict of constraints")

    @property
    def linear(self) -> bool:
        return not self.term.weights

    def bounds(self, m: int) -> FloatArray:
        """Return the bound in floats, shape () or, per output, (m,)."""
        if isinstance(self.bound, tuple):
            return np.array([float(b) for b in self.bound])
        return np.full(m, float(self.bound)) if self.per_output else np.array(float(self.bound))

    def price(self, multiplier: npt.ArrayLike, output_mass: FloatArray) -> float:
        """Return d value / dθ for the multiplier of this row."""
        lam = np.asarray(multiplier, dtype=float)
        moved = self.slope * output_mass - self.bound_slope if self.slope else -self.bound_slope
        return float((lam * moved).sum())

    def to_dict(self, lists: dict[int, Any] | None = None) -> dict[str, Any]:
        bound = self.bound
        return {
            "term": self.term.to_dict(lists),
            "sense": self.sense,
            "bound": [str(b) for b in bound] if isinstance(bound, tuple) else str(bound),
            "radius": written(self.radius),
            "per_output": self.per_output,
        }


def silent(row: Row) -> bool:
    """Tell whether an information row with bound 0 allows no information at all."""
    bounds = row.bound if isinstance(row.bound, tuple) else (row.bound,)
    free = row.term.cost is None or not row.term.cost.any()
    sure = not (row.radius or row.term.cost_radius or row.term.constant)
    sure = sure and not row.term.constant_radius
    return bool(row.term.weights) and free and sure and all(b == 0 for b in bounds)


@dataclass(frozen=True)
class Auxiliary:
    """A bounded auxiliary: ``ratio`` with factor e^ε, or ``maximum`` with total e^b.

    ``bound`` is that exponential as a float, within ``radius`` of the number meant; ``slope``
    its derivative with respect to the number typed.
    """

    kind: Literal["ratio", "maximum"]
    bound: float
    radius: float = 0.0
    slope: float = 1.0

    def price(self, duals: Sequence[FloatArray], mass: FloatArray, channel: FloatArray) -> float:
        """Return d value / dθ for the multipliers; −inf at ratio or total 1, the least there is."""
        if self.bound == 1.0 and not self.radius:
            return -math.inf
        last = mass[:, None] * np.asarray(duals[-1], float)
        if self.kind == "ratio":
            return -self.slope * float((last.sum(axis=0) * channel.min(axis=0)).sum())
        return -self.slope * float(last.sum(axis=0).max())

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "bound": [written(self.bound), written(self.radius)]}


@dataclass(frozen=True, eq=False)
class EntryBounds:
    """Bounds (n, m) on the channel's entries; ``lower_slope`` is d lower / d(number typed)."""

    lower: Exact | None = None
    upper: Exact | None = None
    lower_slope: FloatArray | None = None


Part = Row | Auxiliary | EntryBounds


@dataclass(frozen=True, eq=False)
class Dual:
    """Untrusted multipliers of a channel program; whatever they are, they prove a bound.

    Attributes
    ----------
    scores : mapping of str to (|V|, m) array
        log(r_k(v | y) / π_k(v)) up to a constant for each y, r_k the posterior of view k.
    multipliers : mapping of str to float or (m,) array
        λ_j of each row.
    auxiliaries : mapping of str to sequence of (n, m) arrays
        (μ, η) of a ``ratio``, (μ,) of a ``maximum``.
    objective : {1, 0}
        Weight of the objective; 0 states a contradiction of the constraints.
    """

    scores: Mapping[str, FloatArray]
    multipliers: Mapping[str, npt.ArrayLike]
    auxiliaries: Mapping[str, Sequence[FloatArray]] = field(default_factory=dict)
    objective: int = 1

    def __post_init__(self) -> None:
        for name in ("scores", "multipliers", "auxiliaries"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def cleaned(self, program: ChannelProgram) -> Dual:
        """Return multipliers a proof can use: finite, of the right shape and sign."""
        scores = {k: _as(self.scores.get(k), (v.size, program.m)) for k, v in program.views.items()}
        multipliers: dict[str, npt.ArrayLike] = {}
        for name, row in program.rows.items():
            lam = _as(self.multipliers.get(name), (program.m,) if row.per_output else ())
            multipliers[name] = lam if row.sense == "==" else np.maximum(lam, 0.0)
        auxiliaries = {}
        for name, aux in program.auxiliaries.items():
            count = 2 if aux.kind == "ratio" else 1
            given = list(self.auxiliaries.get(name, ()))
            given = given if len(given) == count else [np.zeros(0)] * count
            shape = (program.n, program.m)
            auxiliaries[name] = [np.maximum(_as(a, shape), 0.0) for a in given]
        return Dual(scores, multipliers, auxiliaries, 1 if self.objective else 0)

    def violation(self, program: ChannelProgram) -> float:
        """Return the largest amount by which a multiplier has the wrong sign."""
        signed = {name: row for name, row in program.rows.items() if row.sense == "<="}
        worst = 0.0
        for name, row in signed.items():
            lam = _as(self.multipliers.get(name), (program.m,) if row.per_output else ())
            worst = max(worst, float(np.max(-lam)))
        for name in program.auxiliaries:
            for part in self.auxiliaries.get(name, ()):
                worst = max(worst, float(np.max(-_as(part, (program.n, program.m)))))
        return worst

    def to_dict(self) -> dict[str, Any]:
        return {
            "scores": {k: np.asarray(v, float).tolist() for k, v in self.scores.items()},
            "multipliers": {k: np.asarray(v, float).tolist() for k, v in self.multipliers.items()},
            "auxiliaries": {
                k: [np.asarray(a, float).tolist() for a in v] for k, v in self.auxiliaries.items()
            },
            "objective": self.objective,
        }


@dataclass(frozen=True, eq=False)
class ChannelProgram:
    """A channel program (see the module's docstring) as plain data.

    Attributes
    ----------
    law : (L, n) array
        Masses of the atoms; Σ_l law[l, s] / Σ law = p(s) > 0.
    outputs : int
        m.
    views : mapping of str to View
    objective : Term
    rows : mapping of str to Row
    lower, upper : (n, m) array, optional
        Entry bounds of the channel; None means 0 and 1.
    auxiliaries : mapping of str to Auxiliary
    terms : mapping of str to Term
        Quantities that are reported with the solution, in the order of interest.
    units : {"bits", "nats"}
    statement : str
        The program in one line, for people; no proof reads it.
    """

    law: FloatArray
    outputs: int
    views: Mapping[str, View]
    objective: Term
    rows: Mapping[str, Row] = field(default_factory=dict)
    lower: Exact | None = None
    upper: Exact | None = None
    auxiliaries: Mapping[str, Auxiliary] = field(default_factory=dict)
    terms: Mapping[str, Term] = field(default_factory=dict)
    units: str = "bits"
    statement: str = ""

    def __post_init__(self) -> None:
        for name in ("law", "lower", "upper"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, _table(given, name))
        for name in ("views", "rows", "auxiliaries", "terms"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        _check(self)

    # ---- the data in floats, for solvers and pictures ------------------------------------

    @property
    def n(self) -> int:
        return self.law.shape[1]

    @property
    def m(self) -> int:
        return self.outputs

    @cached_property
    def total(self) -> float:
        return float(self.law.sum())

    @cached_property
    def mass(self) -> FloatArray:
        """p(s), shape (n,)."""
        found: FloatArray = frozen(self.law.sum(axis=0) / self.total)
        return found

    def view_matrix(self, view: str) -> sparse.csr_array:
        """Return p(v, s), shape (|V|, n): J = view_matrix @ K."""
        labels = self.views[view].labels
        seen = np.nonzero(labels >= 0)
        entries = self.law[seen] / self.total
        shape = (self.views[view].size, self.n)
        return sparse.csr_array((entries, (labels[seen], seen[1])), shape=shape)

    def reference(self, view: str) -> FloatArray:
        """Return π_k, shape (|V|,)."""
        labels = self.views[view].reference
        labels = self.views[view].labels if labels is None else labels
        seen = labels >= 0
        masses = np.bincount(labels[seen], self.law[seen], minlength=self.views[view].size)
        return masses / masses.sum()

    def prior(self, view: str) -> FloatArray:
        """Return the law of what a view sees, shape (|V|,): r of a release that tells nothing."""
        masses = np.asarray(self.view_matrix(view).sum(axis=1))
        return masses / masses.sum()

    def cost(self, term: Term) -> FloatArray:
        """Return C(s, y) per unit of Q, shape (n, m)."""
        costs = term.costs
        if costs is None:
            return np.zeros((self.n, self.m))
        if costs.ndim == 2:
            return costs
        share = self.law / self.law.sum(axis=0)
        return np.einsum("ls,lsy->sy", share, np.broadcast_to(costs, (*self.law.shape, self.m)))

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
        weights = [np.max(w, initial=0.0) for w in self.objective.columns(self.m).values()]
        cost = self.objective.costs
        span = 0.0 if cost is None else float(cost.max() - cost.min())
        return float(max(weights, default=0.0) * nat(self.units) + span) or 1.0

    # ---- functions of a channel ----------------------------------------------------------

    def joint(self, channel: FloatArray, view: str) -> FloatArray:
        """Return J(v, y), shape (|V|, m)."""
        return np.asarray(self.view_matrix(view) @ channel)

    def information(self, channel: FloatArray, view: str) -> FloatArray:
        """Return Φ_k(y), shape (m,), in the program's units."""
        j = self.joint(channel, view)
        other = np.outer(self.reference(view), j.sum(axis=0))
        on = j > 0
        phi = np.zeros_like(j)
        phi[on] = j[on] * np.log(j[on] / other[on])
        return phi.sum(axis=0) * nat(self.units)

    def columns(self, term: Term, channel: FloatArray) -> FloatArray:
        """Return the contribution of each output to ``term`` (without its constant)."""
        value = (self.mass[:, None] * channel * self.cost(term)).sum(axis=0)
        for view, weight in term.columns(self.m).items():
            value = value + weight * self.information(channel, view)
        return value

    def value(self, term: Term, channel: FloatArray) -> float:
        return float(self.columns(term, channel).sum()) + float(term.constant)

    def violation(self, channel: FloatArray) -> float:
        """Return the largest amount by which ``channel`` breaks a constraint, in floats."""
        if not np.isfinite(channel).all():
            return math.inf
        low = 0.0 if self.floor is None else self.floor
        high = 1.0 if self.ceiling is None else self.ceiling
        worst = [np.max(np.abs(channel.sum(axis=1) - 1.0))]
        worst += [np.max(low - channel), np.max(channel - high)]
        positive = np.clip(channel, 0.0, None)
        for row in self.rows.values():
            value = self.columns(row.term, positive)
            value = value if row.per_output else value.sum() + float(row.term.constant)
            off = value - row.bounds(self.m)
            worst.append(np.max(np.abs(off) if row.sense == "==" else off))
        for aux in self.auxiliaries.values():
            top = positive.max(axis=0)
            off = top - aux.bound * positive.min(axis=0) if aux.kind == "ratio" else top.sum()
            worst.append(np.max(off) - (aux.bound if aux.kind == "maximum" else 0.0))
        return float(max(0.0, *worst))

    # ---- the minorant --------------------------------------------------------------------

    def weights(self, dual: Dual) -> dict[str, FloatArray]:
        """Return ω_k(y) = α_k(y) + Σ_j λ_j β_jk(y) by view, shape (m,)."""
        omega = {view: np.zeros(self.m) for view in self.views}
        for view, weight in self.objective.columns(self.m).items():
            omega[view] = omega[view] + dual.objective * weight
        for name, row in self.rows.items():
            for view, weight in row.term.columns(self.m).items():
                omega[view] = omega[view] + np.asarray(dual.multipliers[name]) * weight
        return omega

    def log_posterior(self, dual: Dual, view: str) -> FloatArray:
        """Return log(r(v|y)/π(v)) in nats, shape (|V|, m)."""
        psi = np.asarray(dual.scores[view], dtype=float)
        psi = psi - psi.max(axis=0)
        less = self.reference(view) @ np.expm1(psi)  # Σ π e^ψ − 1, exact for the least of scores
        return psi - np.where(
            less > -0.5, np.log1p(less), np.log(self.reference(view) @ np.exp(psi))
        )

    def minorant(self, dual: Dual) -> tuple[FloatArray, float]:
        """Return (G, c): objective ≥ ⟨G, K⟩ + c at every feasible channel K, in floats.

        G(s, y) = Σ_k ω_k(y) Σ_v p(v, s) log(r(v|y)/π(v)) + p(s)(C_0 + Σ_j λ_j C_j)(s, y),
        for any posteriors r and any λ ≥ 0 (either sign on equalities).
        """
        g = dual.objective * self.mass[:, None] * self.cost(self.objective)
        c = dual.objective * float(self.objective.constant)
        for view, omega in self.weights(dual).items():
            if not omega.any():
                continue
            psi = self.log_posterior(dual, view)
            g = g + np.asarray(self.view_matrix(view).T @ (omega * psi)) * nat(self.units)
        for name, row in self.rows.items():
            lam = np.asarray(dual.multipliers[name], dtype=float)
            g = g + self.mass[:, None] * (lam * self.cost(row.term))
            c = c + float((lam * (float(row.term.constant) - row.bounds(self.m))).sum())
        for name, aux in self.auxiliaries.items():
            duals = [self.mass[:, None] * np.asarray(a, float) for a in dual.auxiliaries[name]]
            if aux.kind == "ratio":
                mu, eta = duals
                g = g + eta - mu
                c += min(0.0, float((mu - aux.bound * eta).sum(axis=0).min()))
            else:
                (mu,) = duals
                g = g + mu
                c -= aux.bound * float(mu.sum(axis=0).max())
        return g, c

    def least(self, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minimise ⟨g, K⟩ over the simple set; return the channel and its row thresholds ν.

        Greedy: every letter starts at its floors and fills outputs in the order of g up to
        their caps; ν(s) is the last g needed.
        """
        rows = np.arange(self.n)
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

    def lower_bound(self, dual: Dual) -> float:
        """Return the dual bound in floats; the certificate proves it in balls."""
        g, c = self.minorant(dual)
        return float((g * self.least(g)[0]).sum() + c)

    # ---- what a proof file stores ---------------------------------------------------------

    def residuals(self, channel: FloatArray, dual: Dual) -> dict[str, float]:
        """Return complementarity and stationarity, which add up to the gap."""
        stationarity = 0.0
        for view, omega in self.weights(dual).items():
            if omega.any():
                psi = self.log_posterior(dual, view)
                minorant = (self.joint(channel, view) * psi).sum(axis=0) * nat(self.units)
                phi = self.information(channel, view)
                stationarity += float((omega * (phi - minorant)).sum())
        g, constant = self.minorant(dual)
        slack = self.value(self.objective, channel) - float((g * channel).sum()) - constant
        entries = float((g * (channel - self.least(g)[0])).sum())
        return {"complementarity": entries + slack - stationarity, "stationarity": stationarity}

    def to_dict(self) -> dict[str, Any]:
        """Return the program in lists, numbers and strings: what a proof file stores."""
        lists: dict[int, Any] = {}
        return {
            "kind": "channel",
            "units": self.units,
            "law": self.law.tolist(),
            "outputs": self.outputs,
            "views": {name: view.to_dict() for name, view in self.views.items()},
            "objective": self.objective.to_dict(lists),
            "rows": {name: row.to_dict(lists) for name, row in self.rows.items()},
            "lower": None if self.lower is None else _listed(self.lower),
            "upper": None if self.upper is None else _listed(self.upper),
            "auxiliaries": {name: aux.to_dict() for name, aux in self.auxiliaries.items()},
            "terms": {name: term.to_dict(lists) for name, term in self.terms.items()},
        }


def _check(program: ChannelProgram) -> None:
    """Refuse data that is no channel program; formulations never get here with such."""
    law, m, n = program.law, program.outputs, program.law.shape[1]
    nat(program.units)
    if law.ndim != 2 or law.dtype == object or (law < 0).any():
        raise InputError("law", f"shape {law.shape}", "pass finite nonnegative atoms (L, n)")
    if (law.sum(axis=0) == 0).any():
        raise InputError("law", "a letter without mass", "drop it and restore it afterwards")
    for name, view in program.views.items():
        if view.labels.shape != law.shape:
            raise InputError(f"views[{name!r}]", "labels of another shape", f"use {law.shape}")
        if (program.reference(name) == 0).any():
            raise InputError(f"views[{name!r}]", "a label of reference mass 0", "renumber labels")
    for name, term in {"objective": program.objective, **program.terms}.items():
        _check_term(program, name, term)
    for name, row in program.rows.items():
        _check_term(program, name, row.term)
        weights = row.term.columns(m).values()
        if any((w < 0).any() for w in weights) or (row.sense == "==" and row.term.weights):
            raise InputError(name, "not convex", "weigh information by α ≥ 0 and only in <=")
        if row.radius < 0 or row.term.cost_radius < 0 or row.term.constant_radius < 0:
            raise InputError(name, "a negative radius", "pass a distance")
        if isinstance(row.bound, tuple) and (not row.per_output or len(row.bound) != m):
            raise InputError(name, f"{len(row.bound)} bounds", f"pass one, or {m} per output")
        if row.per_output and row.term.constant:
            raise InputError(name, "a constant in a row per output", "put it into the bound")
    if any((w < 0).any() for w in program.objective.columns(m).values()):
        raise InputError("objective", "not convex", "weigh information by α ≥ 0")
    low = np.zeros((n, m)) if program.lower is None else program.lower
    high = np.ones((n, m)) if program.upper is None else program.upper
    if low.shape != (n, m) or high.shape != (n, m):
        raise InputError("lower", f"entry bounds {low.shape}, {high.shape}", f"use {(n, m)}")
    if not ((low >= 0) & (low <= high) & (high <= 1)).all():
        raise InputError("lower", "entry bounds out of order", "use 0 ≤ lower ≤ upper ≤ 1")


def _check_term(program: ChannelProgram, name: str, term: Term) -> None:
    n, m = program.n, program.m
    for view, weight in term.weights.items():
        if view not in program.views:
            raise InputError(name, f"no view {view!r}", f"use one of {list(program.views)}")
        if np.shape(weight) not in ((), (m,)):
            raise InputError(name, f"weights of shape {np.shape(weight)}", f"use () or {(m,)}")
    shapes = ((n, m), (*program.law.shape, m), (1, n, m))
    if term.cost is not None and term.cost.shape not in shapes:
        raise InputError(name, f"cost of shape {term.cost.shape}", f"use one of {shapes}")
