r"""Privacy criteria and release rules as constraints of a problem.

Each is one short class that yields named parts: rows, entry bounds, or a bounded auxiliary.
They compose with each other and with every discrete formulation, and the release that comes
back satisfies them *provably*, not to a tolerance.

Per released letter x̂ (convex in the joint mass; a letter of mass 0 satisfies each):

====================  ===============================================================
``TCloseness(t)``     D(p(w | x̂) ‖ p(w)) ≤ t      (Bezzi 2010, eq. 8; Rebollo-Monedero
                      et al. 2010, §4.3)
``LDiversity(l)``     H(W | x̂) ≥ log ℓ            (Bezzi 2010, eq. 10)
``KAnonymity(k)``     H(record | x̂) ≥ log k, that is D(p(x | x̂) ‖ p(x)) ≤ log(N/k)
                      (Bezzi 2010, eqs. 5–6)
``DeltaDisclosure``   abs log(p(w | x̂)/p(w)) ≤ δ for every w (Rebollo-Monedero et al. §4.3)
====================  ===============================================================

On the whole channel: ``LeakageCap(b)``, ``LocalPrivacy(epsilon)``, ``MaximalLeakage(b)``; rules
of post-randomisation: ``KeepProbability(p)``, ``ForbiddenMoves(mask)``, ``PreserveMarginal()``,
``PreserveMean(values)``, ``Linear(A, bound)``.

t, leakages and b are in the problem's units; ε and δ are natural logarithms always; k and ℓ
are counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from cvxprivacy.certificates.balls import PRECISION, ball
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real, plain, rational
from cvxprivacy.exact import array as exact_array
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.model.information import nat
from cvxprivacy.model.laws import index_of
from cvxprivacy.programs import Auxiliary, EntryBounds, Part, Row, Term
from cvxprivacy.validation import labels, table, typed

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem

__all__ = [
    "Criterion",
    "DeltaDisclosure",
    "ForbiddenMoves",
    "KAnonymity",
    "KeepProbability",
    "LDiversity",
    "LeakageCap",
    "Linear",
    "LocalPrivacy",
    "MaximalLeakage",
    "PreserveMarginal",
    "PreserveMean",
    "TCloseness",
]


class Criterion(Frozen):
    """Something that the release must satisfy; subclasses yield ``parts``.

    Attributes
    ----------
    name : str
        Its name among the constraints, duals and prices.
    value : float or array or None
        The number typed, if there is one; ``prices[name]`` is d optimum / d value.
    loosest : float or None
        A value at which the criterion forbids next to nothing, for a number that can be
        searched; None otherwise.
    latex : str
        How it is written.
    """

    name = "criterion"
    value: Any = None
    loosest: float | None = None
    latex = ""

    def _remedy(self, name: str) -> str:
        return "make another criterion, or use problem.at(…)"

    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        """Return what states it; the key "" stands for the criterion's own name."""
        raise NotImplementedError

    def at(self, value: Real) -> Criterion:
        """Return the same criterion with another number."""
        return type(self)(value)  # type: ignore[call-arg]

    def __repr__(self) -> str:
        said = "" if self.value is None else f"{float(self.value):g}"
        return f"{type(self).__name__}({said})"


def _precisely(function: Callable[..., Any]) -> Callable[..., Any]:
    """Work in balls of one precision, whatever FLINT was told: the same numbers every time."""

    @wraps(function)
    def found(*given: Any) -> Any:
        with ctx.workprec(PRECISION):
            return function(*given)

    return found


def _rounded(found: arb) -> tuple[float, float]:
    """Return a float and a radius that contain a ball."""
    value = float(found.mid())
    off = abs(found - arb(value)).upper()
    return value, math.nextafter(float(off), math.inf) if not off.is_zero() else 0.0


def _exponential(exponent: arb) -> tuple[float, float]:
    """Return e^x, x ≥ 0, as a float and a radius; its least is not below 1, as a constant's is."""
    value, radius = _rounded(exponent.exp())
    if Fraction(value) - Fraction(radius) < 1:  # where floats cannot tell it from 1
        return 1 + 2.0**-52, 2.0**-52
    return value, radius


def _log(x: arb, units: str) -> arb:
    return x.log() / arb(2).log() if units == "bits" else x.log()


@_precisely
def entropy_of(masses: Sequence[Fraction], units: str) -> tuple[float, float]:
    """Return the entropy of exact masses as a float, and how far it may be off."""
    total, value = sum(masses), arb(0)
    for mass in masses:
        share = ball(mass / total)
        value -= share * _log(share, units)
    return _rounded(value)


def _per_letter(
    problem: ChannelProblem,
    name: str,
    kind: str,
    cost: Any,
    *,
    slope: float,
    radius: Any = 0.0,
) -> Mapping[str, Row]:
    """Return Φ(y) + ⟨cost, Q⟩ ≤ 0 for every output, and every z where the user knows it.

    ``kind`` is the view of Φ, none if empty; ``cost`` one number, or one for each atom (L, n), or
    one for each observer, like its ``radius``.
    """
    found = {}
    for observer in problem.observers:
        own = cost[observer.name] if isinstance(cost, Mapping) else cost
        off = radius[observer.name] if isinstance(radius, Mapping) else radius
        here = np.where(observer.here, own, 0.0)
        share = None
        if observer.z is not None:
            share = np.where(observer.here, problem.law, 0.0).sum(axis=0) / problem.law.sum(axis=0)
        whole = observer.z is None and np.ndim(own) == 0
        layers = np.full((problem.n, problem.m), own) if whole else here[:, :, None]
        if not whole:
            layers = np.broadcast_to(layers, (*here.shape, problem.m))
        term = Term(
            name,
            {observer.view(kind): 1} if kind else {},
            layers if here.any() or off else None,
            cost_radius=off,
        )
        found[observer.name] = Row(
            term,
            "<=",
            (Fraction(0),) * problem.m,
            per_output=True,
            slope=slope,
            bound_slope=0.0,
            share=share,
        )
    return found


# ---- privacy, per released letter --------------------------------------------------------


class TCloseness(Criterion):
    """D(p(w | x̂) ‖ p(w)) ≤ t for every released letter x̂, t ≥ 0 in the problem's units."""

    name = "t_closeness"

    def __init__(self, t: Real) -> None:
        self.t = self.value = typed(t, "t")
        self.loosest = max(2 * float(self.t), 64.0)
        self.latex = rf"D(p_{{W \mid \hat x}} \,\|\, p_W) \le {float(self.t):g} \;\forall \hat x"

    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        return _per_letter(problem, "t-closeness", "W", -self.t, slope=-1.0)


class LDiversity(Criterion):
    """H(W | x̂) ≥ log ℓ for every released letter x̂: entropy ℓ-diversity, ℓ ≥ 1."""

    name = "l_diversity"

    def __init__(self, l: Real) -> None:  # noqa: E741
        self.l = self.value = typed(l, "l")
        if self.l < 1:
            raise InputError("l", f"{self.l!r} values", "pass a number ≥ 1", value=self.l)
        self.loosest = 1.0
        self.latex = rf"H(W \mid \hat x) \ge \log {float(self.l):g} \;\forall \hat x"

    @_precisely
    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        masses = problem.masses_of_w()
        if self.l > len(masses):
            problem_ = f"{float(self.l):g} exceeds the {len(masses)} values that W takes"
            raise InputError("l", problem_, f"pass at most {len(masses)}", value=self.l)
        total = sum(masses)
        found = []
        for mass in masses:  # log ℓ + log p(w), since Φ_W = Σ J log(J/q) − Σ J log p(w)
            ratio = mass / total * Fraction(self.l)
            found.append(_rounded(_log(ball(ratio), problem.units)))
        values = np.array([value for value, _ in found])
        radius, slope = max(radius for _, radius in found), nat(problem.units) / float(self.l)
        costs = values[problem.w_of]
        return _per_letter(problem, "l-diversity", "W", costs, slope=slope, radius=radius)


class KAnonymity(Criterion):
    """Record-level k-anonymity: H(record | x̂) ≥ log k for every released letter x̂, k ≥ 1.

    As H(record | x̂) = log N − D(p(s | x̂) ‖ p(s)), s what the encoder sees of a record (x, or w
    and x), it is the row Φ_S(x̂) ≤ q(x̂) log(N/k); exact for deterministic groups.  Needs the
    number of records N behind the source.
    """

    name = "k_anonymity"

    def __init__(self, k: Real) -> None:
        self.k = self.value = typed(k, "k")
        if self.k < 1:
            raise InputError("k", f"{self.k!r} records", "pass a number ≥ 1", value=self.k)
        self.loosest = 1.0
        self.latex = rf"H(\text{{record}} \mid \hat x) \ge \log {float(self.k):g} \;\forall \hat x"

    @_precisely
    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        records = problem.source.records
        if records is None:
            remedy = "make it with DiscreteSource.from_counts, from_table, or records="
            raise InputError("source", "no number of records behind it", remedy)
        if problem.source.weighted:
            raise InputError("source", "weighted records cannot be counted", "leave weights= out")
        costs, radii = {}, {}
        for observer in problem.observers:
            own = records * observer.share
            if self.k > own:
                those = f" with {problem.source.names[-1]} = {observer.name}"
                those = "" if observer.z is None else those
                problem_ = f"{float(self.k):g} exceeds the {float(own):g} records{those}"
                raise InputError("k", problem_, f"pass at most {float(own):g}", value=self.k)
            ratio = own / Fraction(self.k)
            log = _log(ball(ratio), problem.units)
            value, off = _rounded(log)
            costs[observer.name], radii[observer.name] = -value, off
        slope = nat(problem.units) / float(self.k)
        return _per_letter(problem, "k-anonymity", "S", costs, slope=slope, radius=radii)


class DeltaDisclosure(Criterion):
    """e^−δ ≤ p(w | x̂)/p(w) ≤ e^δ for every w and released x̂, δ ≥ 0 a natural logarithm."""

    name = "delta_disclosure"

    def __init__(self, delta: Real) -> None:
        self.delta = self.value = typed(delta, "delta", below=700.0)
        self.loosest = min(max(2 * float(self.delta), 20.0), 699.0)
        self.latex = (
            rf"|\ln (p(w \mid \hat x) / p(w))| \le {float(self.delta):g} \;\forall w, \hat x"
        )

    @_precisely
    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        if not self.delta:
            return TCloseness(0.0).parts(problem)  # both say that x̂ and W are independent
        masses = problem.masses_of_w()
        total, found = sum(masses), {}
        for w, mass in enumerate(masses):
            share = ball(mass / total)
            for side, sign in (("above", 1), ("below", -1)):
                # ±(1[w' = w] − e^±δ p(w)) on every atom, summed over the letter's atoms
                factor, radius = _rounded(share * (ball(self.delta) * sign).exp())
                cost = sign * ((problem.w_of == w) - factor)
                off = Fraction(radius) + Fraction(2.0**-52) * Fraction(max(1.0, factor))
                rows = _per_letter(problem, "delta", "", cost, slope=-factor, radius=off)
                for name, row in rows.items():
                    found[f"{side}[{w}]{name and f'|{name}'}"] = row
        return found


# ---- privacy of the whole channel --------------------------------------------------------


class LeakageCap(Criterion):
    """I(W; X̂) ≤ b, the average leakage (Rebollo-Monedero et al. 2010, eq. 2), b ≥ 0."""

    name = "leakage_cap"

    def __init__(self, b: Real) -> None:
        self.b = self.value = typed(b, "b")
        self.loosest = max(2 * float(self.b), 64.0)
        self.latex = rf"I(W; \hat X) \le {float(self.b):g}"

    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        return {"": problem.risk <= self.b}


class LocalPrivacy(Criterion):
    """p(x̂ | s) ≤ e^ε p(x̂ | s') for all inputs s, s' and outputs x̂: ε-local privacy.

    ε ≥ 0 is a natural logarithm.  It protects the encoder's whole input.
    """

    name = "local_privacy"

    def __init__(self, epsilon: Real) -> None:
        self.epsilon = self.value = typed(epsilon, "epsilon", below=700.0)
        self.loosest = min(max(2 * float(self.epsilon), 20.0), 699.0)
        self.latex = rf"p(\hat x \mid s) \le e^{{{float(self.epsilon):g}}} p(\hat x \mid s')"

    @_precisely
    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        bound, radius = _exponential(ball(self.epsilon))
        return {"": Auxiliary("ratio", bound, radius, slope=bound)}


class MaximalLeakage(Criterion):
    """log Σ_x̂ max_s p(x̂ | s) ≤ b, in the problem's units, b ≥ 0."""

    name = "maximal_leakage"

    def __init__(self, b: Real) -> None:
        self.b = self.value = typed(b, "b", below=700.0)
        self.loosest = min(max(2 * float(self.b), 64.0), 699.0)
        self.latex = rf"\log \sum_{{\hat x}} \max_s p(\hat x \mid s) \le {float(self.b):g}"

    @_precisely
    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        exponent = ball(self.b) * (arb(2).log() if problem.units == "bits" else 1)
        bound, radius = _exponential(exponent)
        return {"": Auxiliary("maximum", bound, radius, slope=bound / nat(problem.units))}


# ---- rules of post-randomisation ---------------------------------------------------------


class KeepProbability(Criterion):
    """p(x̂ = x | x) ≥ p: every value stays with at least this probability.

    Parameters
    ----------
    p : float or array_like, shape (|X|,)
        One floor, or one for each key letter, in [0, 1]; no series with labels of its own.
    """

    name = "keep_probability"

    def __init__(self, p: Real | npt.ArrayLike) -> None:
        if index_of(p) is not None:
            remedy = "pass its values in the order of the source's x: p[source.x].to_numpy()"
            raise InputError("p", "labelled floors", remedy)
        floors = table(p, "p", "pass a probability, or one for each key letter", axes=(0, 1))
        if (floors > 1).any():
            where = int(np.argmax(floors > 1)) if floors.ndim else None
            worst = float(floors.max())
            raise InputError("p", f"{worst!r} is above 1", "pass probabilities", where=where)
        self.p: Any = floors if floors.ndim else plain(rational(floors))
        self.value = self.p
        self.loosest = None if floors.ndim else 0.0
        said = "p_x" if floors.ndim else f"{float(self.p):g}"
        self.latex = rf"p(\hat X = x \mid x) \ge {said}"

    def __repr__(self) -> str:
        return f"KeepProbability({'…' if np.ndim(self.p) else format(float(self.p), 'g')})"

    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        if np.ndim(self.p) and np.size(self.p) != len(problem.source.x):
            remedy = f"pass {len(problem.source.x)}, one per key letter"
            raise InputError("p", f"{np.size(self.p)} floors", remedy)
        same = problem.same(problem.x_of.tolist())
        floors = np.broadcast_to(self.p, len(problem.source.x))[problem.x_of]
        if problem.strategies is None:
            return {"": EntryBounds(lower=floors[:, None] * same, lower_slope=same.astype(float))}
        if np.ndim(self.p):
            remedy = "pass one floor for all letters"
            raise InputError("p", "one for each letter, where the user decodes with Z", remedy)
        # Σ p(u | s) over the strategies that keep x, for every letter and every z that it meets
        found: dict[str, Part] = {}
        total = sum(map(Fraction, problem.law.ravel().tolist()))
        for observer in problem.observers:
            met = np.where(observer.here, problem.law, 0.0).sum(axis=0) > 0
            for s in np.flatnonzero(met & (floors > 0)):
                mass = sum(map(Fraction, problem.law[:, s].tolist()), Fraction(0)) / total
                cost = np.zeros((problem.n, problem.m))
                cost[s] = -1.0 * same[s][problem.strategies[:, observer.z]]
                bound = -mass * Fraction(floors[s])
                row = Row(Term("kept", cost=cost), "<=", bound, bound_slope=-float(mass))
                found[f"{s}|{observer.name}"] = row
        return found


class ForbiddenMoves(Criterion):
    """p(x̂ | x) = 0 wherever ``mask[x, x̂]`` is true.

    Parameters
    ----------
    mask : array_like of bool, shape (|X|, |X̂|), or callable
        A callable is asked ``mask(x, x̂)`` with labels.
    """

    name = "forbidden_moves"
    latex = r"p(\hat x \mid x) = 0 \text{ for forbidden moves}"

    def __init__(self, mask: npt.ArrayLike | Callable[[Any, Any], bool]) -> None:
        self.mask = mask if callable(mask) else frozen(np.array(mask))

    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        inputs, outputs, mask = problem.source.x, problem.measure.outputs, self.mask
        if callable(mask):
            mask = np.array([[bool(mask(x, y)) for y in outputs] for x in inputs])
        if mask.shape != (len(inputs), len(outputs)) or mask.dtype != bool:
            found = f"{mask.dtype} of shape {mask.shape}"
            remedy = f"pass booleans of shape {(len(inputs), len(outputs))}"
            raise InputError("mask", found, remedy)
        stuck = np.flatnonzero(mask.all(axis=1))
        if len(stuck):
            remedy = "leave every letter at least one move"
            raise InputError("mask", f"{inputs[stuck[0]]!r} may go nowhere", remedy, where=stuck[0])
        return {"": EntryBounds(upper=np.where(problem.possible(mask), 0.0, 1.0))}


class PreserveMarginal(Criterion):
    """p(x̂ = x) = p(x) for every key letter: invariant post-randomisation, exactly."""

    name = "preserve_marginal"
    latex = r"p_{\hat X} = p_X"

    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        masses = problem.masses_of_x()
        held = [x for x, mass in enumerate(masses) if mass]
        same, total = problem.same(held), sum(masses)
        letters = len(problem.measure.outputs)
        bounds = [Fraction(0)] * letters
        for x, row in zip(held, same, strict=True):
            bounds[int(row.argmax())] = masses[x] / total
        if problem.strategies is not None:
            costs = np.eye(letters)[:, None, :].repeat(len(problem.source.x), axis=1)
            return {
                str(y): Term("marginal", cost=problem.per_letter(cost)) == bound
                for y, (cost, bound) in enumerate(zip(costs, bounds, strict=True))
            }
        term = Term("marginal", cost=np.ones((problem.n, problem.m)))
        found: dict[str, Part] = {"": Row(term, "==", tuple(bounds), per_output=True)}
        unused = np.array([b == 0 for b in bounds])
        if unused.any():
            found["unused"] = EntryBounds(upper=np.tile(np.where(unused, 0.0, 1.0), (problem.n, 1)))
        return found


class PreserveMean(Criterion):
    """E v(X̂) = E v(X), exactly.

    Parameters
    ----------
    values : mapping of letter to float, series, or array_like, shape (|X|,)
        v of each key letter, which the index of a pandas series labels; with an array, released
        letters must be key letters.
    """

    name = "preserve_mean"
    latex = r"\mathrm{E}\, v(\hat X) = \mathrm{E}\, v(X)"

    def __init__(self, values: Mapping[Hashable, float] | npt.ArrayLike) -> None:
        index, remedy = index_of(values), "pass one number per key letter"
        given: Any = values
        if not isinstance(values, Mapping):
            given = table(values, "values", remedy, axes=(1,), negative=True)
        if index is not None:
            letters = labels(index, len(given), "values")
            given = dict(zip(letters, given.tolist(), strict=True))
        self.values = given

    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        inputs, outputs = problem.source.x, problem.measure.outputs
        given: Any = self.values
        if not isinstance(given, Mapping):
            if len(given) != len(inputs):
                raise InputError("values", f"{len(given)} numbers", f"pass {len(inputs)}")
            given = dict(zip(inputs, given.tolist(), strict=True))
        known: dict[Any, float | Fraction] = {}
        for label in (*inputs, *outputs):
            if label not in given:
                raise InputError("values", f"none for {label!r}", "pass a mapping with all letters")
            known[label] = typed(given[label], "values", negative=True, where=label)
        masses = problem.masses_of_x()
        pairs = zip(masses, inputs, strict=True)
        mean = sum((m * Fraction(known[x]) for m, x in pairs), Fraction(0))
        row = exact_array([known[y] for y in outputs])
        cost = problem.per_letter(np.tile(row, (len(inputs), 1)))
        return {"": Row(Term("mean", cost=cost), "==", mean / sum(masses, Fraction(0)))}


class Linear(Criterion):
    """Σ_x Σ_x̂ A(x, x̂) p(x, x̂) ≤ bound, or = bound.

    Parameters
    ----------
    A : array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        What a unit of joint mass at (x, x̂), or (w, x, x̂), counts.
    bound : float
    name : str
        Its name among constraints, duals and prices.
    sense : {"<=", "=="}
    """

    def __init__(
        self, A: npt.ArrayLike, bound: Real, *, name: str = "linear", sense: str = "<="
    ) -> None:
        remedy = "pass finite numbers of shape (|X|, |X̂|) or (|W|, |X|, |X̂|)"
        self.matrix = table(A, "A", remedy, axes=(2, 3), negative=True)
        self.bound = self.value = typed(bound, "bound", negative=True)
        if sense not in ("<=", "=="):
            raise InputError("sense", f"{sense!r}", 'use "<=" or "=="')
        self.name, self.sense = name, sense
        said = r"\le" if sense == "<=" else "="
        self.latex = rf"\langle A, Q \rangle {said} {float(self.bound):g}"

    def at(self, value: Real) -> Criterion:
        return Linear(self.matrix, value, name=self.name, sense=self.sense)

    def parts(self, problem: ChannelProblem) -> Mapping[str, Part]:
        shape = (len(problem.source.x), len(problem.measure.outputs))
        wanted = shape if self.matrix.ndim == 2 else (len(problem.source.w), *shape)
        if self.matrix.shape != wanted:
            raise InputError("A", f"shape {self.matrix.shape}", f"pass shape {wanted}")
        term = Term(self.name, cost=problem.per_letter(self.matrix))
        return {"": Row(term, "<=" if self.sense == "<=" else "==", Fraction(self.bound))}

    @staticmethod
    def from_cvxpy(
        constraint: Any, problem: ChannelProblem, *, name: str = "linear"
    ) -> list[Linear]:
        """Return an affine CVXPY constraint on ``problem.variables["Q"]`` as certified rows.

        Build the constraint on an existing problem's variable, then pass the result in
        ``criteria`` of a new one.

        Raises
        ------
        InputError
            If the constraint is not affine, or uses another variable.
        """
        from cvxprivacy.solvers.cvxpy_channel import affine_rows

        if problem.side_information is not None:
            remedy = "state it with Linear(A, bound)"
            raise InputError("problem", "its Q is no law of (x, x̂): the user knows Z", remedy)
        found = affine_rows(constraint, problem.model)
        many = len(found) > 1
        inputs = problem.x_of if problem.encoder == "x" else None
        rows = []
        for i, (coefficients, bound, sense) in enumerate(found):
            if inputs is None:
                nw, nx = len(problem.source.w), len(problem.source.x)
                flat = np.zeros((nw * nx, problem.m))
                flat[problem.alive] = coefficients
                matrix: np.ndarray = flat.reshape(nw, nx, problem.m)
            else:
                matrix = np.zeros((len(problem.source.x), problem.m))
                matrix[inputs] = coefficients
            label = f"{name}[{i}]" if many else name
            rows.append(Linear(matrix, bound, name=label, sense=sense))
        return rows


def criteria_listed(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return criteria as a tuple; what is no list of them is refused."""
    try:
        found = tuple(criteria)
    except TypeError:
        problem, remedy = f"{criteria!r} is no list", f"pass a list of criteria: [{criteria!r}]"
        raise InputError("criteria", problem, remedy) from None
    for i, criterion in enumerate(found):
        if not isinstance(criterion, Criterion):
            remedy = "pass criteria such as TCloseness(0.5)"
            raise InputError("criteria", f"{criterion!r} is no criterion", remedy, where=i)
    return found


def named(criteria: Sequence[Criterion], taken: Mapping[str, Any]) -> dict[str, Criterion]:
    """Return the criteria by name, a second of one name as ``name[2]``."""
    found: dict[str, Criterion] = {}
    for criterion in criteria:
        copies, name = 1, criterion.name
        while name in found or name in taken:
            copies += 1
            name = f"{criterion.name}[{copies}]"
        found[name] = criterion
    return found
