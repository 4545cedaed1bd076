r"""What a measure of leakage is, and how a new one is written.

Let :math:`J_{\hat x}(w) = \Pr(W = w, \hat X = \hat x)`, q its sum and π the law of W.  A measure is
a function F(J), convex and homogeneous of degree 1, so that

.. math:: F(J) = \sup \{⟨s, J⟩ : s ∈ 𝒮\}

for a convex set of *scores* (P10); what a release leaks is :math:`\sum_{\hat x} F(J_{\hat x})`.
Every s ∈ 𝒮 is a minorant, which is all that a proof needs; so each measure can be minimised,
bounded, and bounded for every released letter (``F(J) ≤ t q``), with a certified optimum.

A measure of one's own is a subclass of one whose parameters it computes:

>>> import cvxprivacy as cpv
>>> class NearGuess(cpv.leakage.Gain):
...     "The probability of guessing an ordered W to within one of its values."
...
...     def __init__(self, count):
...         values = range(count)
...         super().__init__([[abs(guess - w) <= 1 for w in values] for guess in values])
>>> source = cpv.DiscreteSource([[0.3, 0.0], [0.1, 0.2], [0.0, 0.4]])
>>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1, leakage=NearGuess(3))
>>> round(problem.solve().value, 4)
1.0

The interior-point method follows measures that are :class:`~cvxprivacy.leakage.Smooth`, or
:class:`~cvxprivacy.leakage.Polyhedral` as this one is; others are left to CVXPY's solvers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, floats, fractions
from cvxprivacy.frozen import Frozen
from cvxprivacy.model.information import nat
from cvxprivacy.text import named
from cvxprivacy.validation import array, untaken
from cvxprivacy_verifier.measures import KINDS

__all__ = [
    "GUARD",
    "NAMES",
    "Curvature",
    "Entries",
    "Face",
    "Leakage",
    "Places",
    "Polyhedral",
    "Recourse",
    "Smooth",
    "beyond",
    "by_name",
    "checked",
    "measure_of",
    "relative_change",
]

NAMES: dict[str, tuple[str, ...]] = {  # of classes: as they are typed, the usual name first
    "MutualInformation": ("mutual-information", "information", "mi", "kl"),
    "ChiSquared": ("chi-squared", "chi-square", "chi2"),
    "SquaredHellinger": ("squared-hellinger", "hellinger"),
    "TotalVariation": ("total-variation", "tv"),
    "HockeyStick": ("hockey-stick",),
    "VinczeLeCam": ("vincze-le-cam", "le-cam"),
    "JensenShannon": ("jensen-shannon", "js"),
    "PowerDivergence": ("power-divergence", "power"),
    "EarthMover": ("earth-mover", "emd"),
    "GuessingProbability": ("guessing-probability", "guessing"),
    "Sibson": ("sibson",),
    "Maximal": ("maximal", "maximal-leakage"),
}


@dataclass(frozen=True)
class Places:
    r"""The letters, in LaTeX, in which a measure is written; ``@`` stands for a value of W.

    Attributes
    ----------
    index, observation : str
        The letter of W, and what is seen with it: ``w``, ``\\hat x``.
    joint, law, mass : str
        J(w, x̂), π(w) and q(x̂).
    posterior : str
        What p(w | x̂) is called in a dual.
    log : str
        The logarithm in the problem's units.
    mark : str
        What is below the letter of scores, to tell measures and laws apart.
    """

    index: str = "w"
    joint: str = r"J(@, \hat x)"
    law: str = "p(@)"
    mass: str = r"q(\hat x)"
    observation: str = r"\hat x"
    posterior: str = "r"
    log: str = r"\ln"
    mark: str = ""

    @property
    def j(self) -> str:
        return self.joint.replace("@", self.index)

    @property
    def pi(self) -> str:
        return self.law.replace("@", self.index)

    @property
    def expected(self) -> str:
        """π q, what J is where nothing is told."""
        return rf"{self.pi} \, {self.mass}"

    def score(self, letter: str, index: str = "") -> str:
        """Return a variable of a dual for a value of W, or of another index, and what is seen."""
        return rf"{letter}({index or self.index} \mid {self.observation})"

    def constant(self, letter: str) -> str:
        """Return the letter of a measure's constants, of which another of its kind has others."""
        number = self.mark.removesuffix(", k").removeprefix(", ")
        return f"{letter}_{{{number}}}" if number and number != "k" else letter

    def sum(self, text: str, index: str = "") -> str:
        return rf"\sum_{{{index or self.index}}} {text}"

    def each(self, text: str, index: str = "") -> str:
        return rf"{text} \quad \forall\, {index or self.index}"


@dataclass(frozen=True, eq=False)
class Face:
    """A minorant ⟨s, J⟩ of F that is F at the law of W, and where else F is all such minorants.

    Attributes
    ----------
    score : (|W|,) array
        s, exactly.
    directions : (k, |W|) array
        Of scores, exactly: F is all of them where ⟨d, J⟩ ≤ 0 for each, = 0 if it is at the law.
    parameters, parameter_directions : (rows,) and (k, rows) array
        The parameters of s, and what moves them in each direction.
    """

    score: Exact
    directions: Exact
    parameters: FloatArray
    parameter_directions: FloatArray


class Leakage(Frozen):
    """A measure F(J) of leakage; subclasses state it for proofs, for CVXPY and in floats.

    Arrays have a column for each released letter: ``joint`` is J, shape (|W|, m), ``reference`` is
    π, shape (|W|,).  Proofs know the measures of this package: one of one's own is a subclass of
    these.

    Attributes
    ----------
    kind : str
        What proofs call it.
    meaning : str
        What a value means, in words.
    divergence : bool
        Whether F is 0 where J = π q, and nowhere below.
    informs : bool
        Whether it is mutual information.
    in_units : bool
        Whether it is in the program's units of information.
    centred : bool
        Whether its last label is that of a letter that is nobody's: see ``programs/compiler.py``.

    Examples
    --------
    What a released bit that differs from W with probability 0.2 leaks, in several measures:

    >>> import cvxprivacy as cpv
    >>> import numpy as np
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> for kind in ("ChiSquared", "TotalVariation", "GuessingProbability", "Maximal"):
    ...     measure = cpv.leakage.MEASURES[kind]()
    ...     print(f"{measure.total(joint):.2f} {measure.meaning}")
    0.36 mean square contingency: no function of W is told with a larger R²
    0.30 mean total variation between posterior and prior, between 0 and 1
    0.80 the probability of guessing W right from x̂
    1.60 the most by which seeing x̂ multiplies the chance of guessing a function of W
    """

    kind: ClassVar[str]
    meaning: ClassVar[str]
    divergence: ClassVar[bool] = True
    informs: ClassVar[bool] = False
    in_units: ClassVar[bool] = False
    centred: ClassVar[bool] = False

    @property
    def ordered(self) -> bool:
        """Whether it goes by the order in which the values of W come."""
        return False

    @property
    def signed(self) -> bool:
        """Whether F may be negative."""
        return False

    @property
    def name(self) -> str:
        """What tells it from other measures, in print and among the views of a program."""
        return self.kind

    @property
    def label(self) -> str:
        """A name that no other measure has, among the views of a program."""
        data = [value for key, value in self.data().items() if key != "kind"]
        if not data:
            return self.name
        if any(isinstance(value, list) for value in data):
            return f"{self.name} #{hashlib.sha256(repr(data).encode()).hexdigest()[:16]}"
        return f"{self.kind} {', '.join(map(str, data))}"

    @property
    def symbol(self) -> str:
        r"""Its letter in LaTeX, such as \chi^2 of \chi^2(W; \hat X)."""
        return rf"\text{{{self.name}}}"

    def latex(self, at: Places) -> str:
        """Return F(J) in LaTeX; by default its name.

        Parameters
        ----------
        at : Places
            The letters of J, of p(w) and of q, and the logarithm.
        """
        return rf"F_{{{self.symbol}}}({at.joint.replace('@', chr(92) + 'cdot')})"

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        """Return a score s(w) in LaTeX, and what s must satisfy to be in 𝒮, for what is seen.

        By default, that it is a minorant.

        Parameters
        ----------
        at : Places
            The letters of the posterior, of p(w) and of the score, and the logarithm.
        """
        score = at.score(rf"s_{{{self.symbol}{at.mark}}}")
        least = at.sum(rf"{score} \, j({at.index})")
        return score, [rf"{least} \le F_{{{self.symbol}}}(j) \quad \forall\, j \ge 0"]

    def data(self) -> dict[str, Any]:
        """Return what a proof file stores of it."""
        return {"kind": self.kind}

    def fitted(self, values: Sequence[Hashable], support: Sequence[int]) -> Self:
        """Return the measure for the values of W that have mass.

        Parameters
        ----------
        values : sequence
            Labels of W.
        support : sequence of int
            Places of those with mass.

        Raises
        ------
        InputError
            If it is for another number of values.
        """
        return self

    def rows(self, values: int) -> int:
        """Return how many numbers tell a score.

        Parameters
        ----------
        values : int
            Values of W with mass.
        """
        return values

    def unit(self, units: str) -> float:
        """Return what a program's value of F is in: a nat for measures ``in_units``, else 1.

        Parameters
        ----------
        units : {"bits", "nats"}
            Of the program.
        """
        return nat(units) if self.in_units else 1.0

    @property
    def span(self) -> float:
        """What values of F may differ by, as a nat does for information."""
        return 1.0

    # ---- in floats -----------------------------------------------------------------------

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return F of every column.

        Parameters
        ----------
        joint : ndarray, shape (|W|, m)
            J, for each released letter.
        reference : ndarray, shape (|W|,)
            π.
        """
        raise NotImplementedError

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return numbers, (rows, m), that tell the scores at which the supremum (P10) is attained.

        Parameters
        ----------
        joint : ndarray, shape (|W|, m)
            J, for each released letter.
        reference : ndarray, shape (|W|,)
            π.
        """
        raise NotImplementedError

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        """Return members of 𝒮, (|W|, m), that any finite numbers tell (C2).

        Parameters
        ----------
        scores : ndarray, shape (rows, m)
            Such numbers, for each released letter.
        reference : ndarray, shape (|W|,)
            π.
        """
        raise NotImplementedError

    def tangent(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return f'(t), and t f'(t) − f(t), where F is Σ π q f(J/πq); None where it is no such sum.

        Parameters
        ----------
        ratio : ndarray
            t ≥ 0.
        """
        return None

    def total(self, joint: npt.ArrayLike) -> float:
        """Return what a joint law p(w, x̂) leaks, Σ_x̂ F; information in nats.

        Parameters
        ----------
        joint : array_like, shape (|W|, |X̂|)
            Probabilities, with a row for each value of W, those without mass too.

        Raises
        ------
        InputError
            For what is no table of numbers ≥ 0.
        """
        masses = array(joint, "joint", "pass probabilities, shape (|W|, |X̂|)", axes=(2,))
        prior = masses.sum(axis=1)
        there = np.flatnonzero(prior > 0)
        fitted = self.fitted(range(len(masses)), there.tolist())
        return float(fitted.value(masses[there], prior[there]).sum())

    def between(self, p: FloatArray, q: FloatArray) -> float:
        """Return the divergence of two laws that F is of posterior and prior; a log in nats.

        Parameters
        ----------
        p, q : ndarray, shape (|W|,)
            Laws, either of which may lack values.
        """
        problem, remedy = f"{self!r} is of no two laws", "pass a divergence, such as ChiSquared()"
        raise InputError("kind", problem, remedy, value=self)

    # ---- where a release tells nothing ---------------------------------------------------

    def face(self, prior: Exact, reference: Exact) -> Face | None:
        """Return the face of a law, in rationals; None where it is not told in linear rows.

        By default that is where J = π q.

        Parameters
        ----------
        prior : ndarray, shape (|W|,)
            The law of W, exactly.
        reference : ndarray, shape (|W|,)
            π, exactly: the same law, unless another one was named.
        """
        none = np.zeros(len(prior))
        apart = fractions(np.eye(len(prior))[:-1]) - reference[:-1, None]  # ⟨d, J⟩ = J(w) − π(w) q
        return Face(fractions(none), apart, none, floats(apart))

    # ---- in CVXPY ------------------------------------------------------------------------

    def parameters(self, slopes: FloatArray, reference: FloatArray) -> FloatArray:
        """Return the parameters of scores, which of a divergence are in 𝒮 up to a constant.

        Parameters
        ----------
        slopes : ndarray, shape (rows, m)
            Multipliers of x = A J, as a solver returns them.
        reference : ndarray, shape (|W|,)
            π.
        """
        return slopes

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        """Return x = A J, in floats or in CVXPY: its multipliers tell the scores.

        Parameters
        ----------
        joint : ndarray or cvxpy expression, shape (|W|, m)
            J, for each released letter.
        reference : ndarray, shape (|W|,)
            π.
        """
        return joint

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        """Return F as a CVXPY expression (m,) of x = A J and q, and constraints by name.

        Parameters
        ----------
        x : cvxpy expression, shape (rows, m)
            A J.
        mass : cvxpy expression, shape (1, m)
            q.
        reference : ndarray, shape (|W|,)
            π.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def beyond(joint: Any, reference: FloatArray, gamma: float = 1.0) -> Any:
    """Return J − γ π q, in floats or in CVXPY."""
    expected = gamma * reference[:, None]
    if isinstance(joint, np.ndarray):
        return joint - expected * joint.sum(axis=0)
    return (np.eye(len(reference)) - expected) @ joint


def by_name(leakage: Any, argument: str) -> dict[str, Leakage]:
    """Return measures by name, of one or several; a second of one name is ``name[2]``."""
    listed = isinstance(leakage, Sequence) and not isinstance(leakage, str)
    several = leakage if listed else [leakage]
    names: dict[str, Leakage] = {}
    for each in several:
        measure = checked(each, argument)
        names[untaken(measure.name, names)] = measure
    return names


def checked(leakage: Any, argument: str) -> Leakage:
    """Return a measure, which a text may name; what is none is refused."""
    if isinstance(leakage, str):
        return measure_of(leakage, argument)
    if isinstance(leakage, Leakage):
        kind = getattr(leakage, "kind", type(leakage).__name__)
        if kind not in KINDS:
            remedy = "subclass a measure whose parameters tell yours, such as leakage.Gain"
            raise InputError(argument, f"no proof knows a measure {kind!r}", remedy)
        if leakage.centred:
            remedy = 'use prior="any", or the criterion CapacityCap'
            raise InputError(argument, f"{leakage!r} is of one value of W alone", remedy)
        return leakage
    remedy = "pass a measure such as leakage.ChiSquared()"
    if isinstance(leakage, type) and issubclass(leakage, Leakage) and leakage is not Leakage:
        parameters = signature(leakage).parameters.values()
        needed = ", ".join(p.name for p in parameters if p.default is p.empty)
        remedy = f"call it: {leakage.__name__}({needed})"
    raise InputError(argument, f"{leakage!r} is no measure of leakage", remedy, value=leakage)


def measure_of(text: str, argument: str) -> Leakage:
    """Return the measure that a text names: NAME, or NAME:NUMBER of those that need one.

    Parameters
    ----------
    text : str
        By any of the names in ``NAMES``, such as ``"tv"`` or ``"hockey-stick:1.5"``.
    argument : str
        What an error names.

    Raises
    ------
    InputError
        For a name that is none, and for a number that is missing, is none or is one too many.

    Examples
    --------
    >>> measure_of("tv", "leakage"), measure_of("Hockey-stick:1.5", "leakage")
    (TotalVariation(), HockeyStick(1.5))
    """
    name, colon, typed = text.partition(":")
    usual = {names[0]: (*names[1:], kind) for kind, names in NAMES.items()}
    name = named(name.strip(), argument, usual, "measure of leakage")
    measure = next(k for k in _kinds(Leakage) if NAMES.get(k.__name__, ("",))[0] == name)
    parameters = signature(measure).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty]
    remedy = f"write {name}:NUMBER" if needed else f"write {name}"
    if bool(needed) != bool(colon):
        raise InputError(argument, f"{text!r}", remedy, value=text)
    if not needed:
        return measure()
    try:
        number = float(typed)
    except ValueError:
        raise InputError(argument, f"{typed!r} of {name}", remedy, value=typed) from None
    try:
        return measure(number)
    except InputError as error:
        problem = f"{error.argument} of {name}: {error.problem}"
        raise InputError(argument, problem, error.remedy, value=text) from None


def _kinds(kind: type[Leakage]) -> Iterator[Any]:
    """Yield the package's measures, of which a class of a user's own may have the name."""
    for other in kind.__subclasses__():
        if other.__module__.startswith(__package__ or ""):
            yield other
        yield from _kinds(other)


GUARD = 2.0**-60  # least ratio of a posterior to π that derivatives are taken at
_GREATEST = 2.0  # relative change of a mass that a second order is taken of


class Curvature(NamedTuple):
    """A Hessian (I − u ηᵀ)ᵀ diag(1/ω) (I − u ηᵀ) for every column, ``mean`` being ω."""

    mean: FloatArray
    along: FloatArray
    normal: FloatArray


class Smooth(Leakage):
    r"""A measure that states its own gradient and Hessian, which the interior-point method follows.

    A function that is homogeneous of degree 1 has :math:`∇^2 F\, J = 0`; those here have

    .. math:: ∇^2 F(J) = K^\top \mathrm{diag}(1/ω)\, K, \qquad K = I - u\, η^\top,

    with u along J and :math:`η^\top u = 1`; of information that is (P5), summed.

    Examples
    --------
    F is homogeneous of degree 1, so that its gradient says all: F(J) = ⟨∇F(J), J⟩.

    >>> import cvxprivacy as cpv
    >>> import numpy as np
    >>> joint, prior = np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([0.5, 0.5])
    >>> measure = cpv.leakage.ChiSquared()
    >>> isinstance(measure, cpv.leakage.Smooth)
    True
    >>> (measure.gradient(joint, prior) * joint).sum(axis=0).round(6).tolist()
    [0.18, 0.18]
    >>> measure.value(joint, prior).round(6).tolist()
    [0.18, 0.18]
    """

    def gradient(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return ∇F of every column: the scores in 𝒮 at which the supremum is attained (P7, P9).

        Parameters
        ----------
        joint : ndarray, shape (|W|, m)
            J > 0, for each released letter.
        reference : ndarray, shape (|W|,)
            π.
        """
        return self.inside(self.scores(joint, reference), reference)

    def curvature(self, joint: FloatArray, reference: FloatArray, slopes: FloatArray) -> Curvature:
        """Return ∇²F half-way between J and where the gradient is ``slopes``, by J's own mass.

        At either end alone far more steps are taken: outputs that lose their mass are the reason.

        Parameters
        ----------
        joint : ndarray, shape (|W|, m)
            J > 0, for each released letter.
        reference : ndarray, shape (|W|,)
            π.
        slopes : ndarray, shape (|W|, m)
            The gradient at the other end.
        """
        raise NotImplementedError

    def second_order(
        self, joint: FloatArray, change: FloatArray, reference: FloatArray
    ) -> FloatArray:
        """Return what ∇F has of second order in a change of J, relative changes clipped at 2.

        Parameters
        ----------
        joint : ndarray, shape (|W|, m)
            J > 0, for each released letter.
        change : ndarray, shape (|W|, m)
            What is added to J.
        reference : ndarray, shape (|W|,)
            π.
        """
        raise NotImplementedError


def relative_change(change: FloatArray, masses: FloatArray) -> FloatArray:
    """Return changes as shares of the masses > 0 that change, clipped at 2."""
    return np.clip(change / masses, -_GREATEST, _GREATEST)


class Recourse(NamedTuple):
    """P, shape (r, t); b, shape (r,); and ρ, shape (t,)."""

    matrix: FloatArray
    mass: FloatArray
    cost: FloatArray


class Entries(NamedTuple):
    """F(J) = max_v w(v) J(v), or Σ (J(v) − w(v) q)₊ if it is an ``excess``.

    ``parameters`` are by what multipliers of these rows are to be weighed to tell a score.
    """

    weights: FloatArray
    excess: bool
    parameters: FloatArray


class Polyhedral(Leakage):
    r"""The largest of linear functions, stated once as a linear program (P12):

    .. math:: F(J) = \min \{ρ^\top T : T ≥ 0,\ P T = x + b q\}
                   = \max \{f^\top (x + b q) : P^\top f ≤ ρ\},

    with x = A J from :meth:`lifted` in the first rows and 0 in others: T is the *recourse* that J
    calls for, as in stochastic programming, and the first of f tell a score.  The interior-point
    method takes the program in.

    Examples
    --------
    The program of total variation, for a letter with the masses (0.4, 0.1) and a fair W.  Its
    optimum is q TV(p(w | x̂), p(w)) = 0.5 · 0.3:

    >>> import cvxprivacy as cpv
    >>> import numpy as np
    >>> from scipy.optimize import linprog
    >>> joint, prior = np.array([[0.4], [0.1]]), np.array([0.5, 0.5])
    >>> measure = cpv.leakage.TotalVariation()
    >>> matrix, mass, cost = measure.recourse(prior)
    >>> x = measure.lifted(joint, prior)[:, 0]  # J − π q
    >>> round(linprog(cost, A_eq=matrix, b_eq=x + mass * 0.5).fun, 6)
    0.15
    >>> measure.value(joint, prior).round(6).tolist()
    [0.15]
    """

    def recourse(self, reference: FloatArray) -> Recourse:
        """Return the linear program of which F is the value: P, b and ρ.

        Parameters
        ----------
        reference : ndarray, shape (|W|,)
            π.
        """
        raise NotImplementedError

    def entries(self, reference: FloatArray) -> Entries | None:
        """Return a statement with a row for each entry of J, if it has one.

        Parameters
        ----------
        reference : ndarray, shape (|W|,)
            π.
        """
        return None

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        matrix, share, cost = self.recourse(reference)
        moved = cp.Variable((matrix.shape[1], x.shape[1]), nonneg=True)
        first = np.eye(len(matrix), x.shape[0])
        return cost @ moved, {"recourse": matrix @ moved == first @ x + share[:, None] @ mass}
