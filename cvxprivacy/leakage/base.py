r"""What a measure of leakage is, and how a new one is written.

Let :math:`J_{\hat x}(w) = \Pr(W = w, \hat X = \hat x)`, q its sum and π the law of W.  A measure is
a function F(J), convex and homogeneous of degree 1, so that

.. math:: F(J) = \sup \{⟨s, J⟩ : s ∈ 𝒮\}

for a convex set of *scores*; what a release leaks is :math:`\sum_{\hat x} F(J_{\hat x})`.  Every
s ∈ 𝒮 is a minorant, which is all that a proof needs; so each measure can be minimised, bounded, and
bounded for every released letter (``F(J) ≤ t q``), with a certified optimum.

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
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, floats, fractions
from cvxprivacy.frozen import Frozen
from cvxprivacy.validation import untaken

__all__ = ["Face", "Leakage", "beyond", "by_name", "checked"]


@dataclass(frozen=True, eq=False)
class Face:
    """A minorant ⟨s, J⟩ of F that is F at the law of W, and where else F is all such minorants.

    Attributes
    ----------
    score : (|W|,) array
        s, exactly.
    directions : (k, |W|) array
        Of scores, exactly: F is all of them where ⟨d, J⟩ ≤ 0 for each, = 0 if it is at the law.
    told, told_directions : (rows,) and (k, rows) array
        What tells s, and what moves it in each direction.
    """

    score: Exact
    directions: Exact
    told: FloatArray
    told_directions: FloatArray


class Leakage(Frozen):
    """A measure F(J) of leakage; subclasses state it for proofs, for CVXPY and in floats.

    Arrays have a column for each released letter: ``joint`` is J, shape (|W|, m), ``reference`` is
    π, shape (|W|,).

    Attributes
    ----------
    kind : str
        What proofs call it.
    meaning : str
        What a value means, in words.
    divergence : bool
        Whether F is 0 where J = π q, and nowhere below.
    informs : bool
        Whether it is mutual information, which has the program's units.
    signed : bool
        Whether F may be negative.
    """

    kind: ClassVar[str]
    meaning: ClassVar[str]
    divergence: ClassVar[bool] = True
    informs: ClassVar[bool] = False

    @property
    def ordered(self) -> bool:
        """Whether it goes by the order in which the values of W come."""
        return False

    @property
    def signed(self) -> bool:
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

    def data(self) -> dict[str, Any]:
        """Return what a proof file stores of it."""
        return {"kind": self.kind}

    def fitted(self, values: Sequence[Hashable], support: Sequence[int]) -> Self:
        """Return the measure for the values of W that have mass.

        Raises
        ------
        InputError
            If it is for another number of values.
        """
        return self

    def rows(self, values: int) -> int:
        """Return how many numbers tell a score, for so many values of W."""
        return values

    def unit(self, units: str) -> float:
        """Return what a program's value of F is in: a nat for information, else 1."""
        return 1.0

    @property
    def span(self) -> float:
        """What values of F may differ by, as a nat does for information."""
        return 1.0

    # ---- in floats -----------------------------------------------------------------------

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return F of every column."""
        raise NotImplementedError

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return numbers, (rows, m), that tell the scores at which the supremum is attained."""
        raise NotImplementedError

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        """Return members of 𝒮, (|W|, m), that any finite numbers (rows, m) tell."""
        raise NotImplementedError

    def total(self, joint: FloatArray) -> float:
        """Return what a joint law p(w, x̂) leaks, Σ_x̂ F; information in nats.

        It has a row for each value of W, those without mass too.
        """
        prior = joint.sum(axis=1)
        there = np.flatnonzero(prior > 0)
        fitted = self.fitted(range(len(joint)), there.tolist())
        return float(fitted.value(joint[there], prior[there]).sum())

    # ---- where a release tells nothing ---------------------------------------------------

    def face(self, prior: Exact, reference: Exact) -> Face | None:
        """Return the face of a law, in rationals; None where it is not told in linear rows.

        By default that is where J = π q.
        """
        none = np.zeros(len(prior))
        apart = fractions(np.eye(len(prior))[:-1]) - reference[:-1, None]  # ⟨d, J⟩ = J(w) − π(w) q
        return Face(fractions(none), apart, none, floats(apart))

    # ---- in CVXPY ------------------------------------------------------------------------

    def told(self, slopes: FloatArray, reference: FloatArray) -> FloatArray:
        """Return what tells scores, which of a divergence are in 𝒮 up to a constant."""
        return slopes

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        """Return x = A J, in floats or in CVXPY: its multipliers tell the scores."""
        return joint

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        """Return F as a CVXPY expression (m,) of x = A J and q, shape (1, m), and constraints."""
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
    several = leakage if isinstance(leakage, Sequence) else [leakage]
    names: dict[str, Leakage] = {}
    for each in several:
        measure = checked(each, argument)
        names[untaken(measure.name, names)] = measure
    return names


def checked(leakage: Any, argument: str) -> Leakage:
    """Return a measure; what is none is refused."""
    if isinstance(leakage, Leakage):
        return leakage
    remedy = "pass a measure such as leakage.ChiSquared()"
    if isinstance(leakage, type) and issubclass(leakage, Leakage) and leakage is not Leakage:
        parameters = signature(leakage).parameters.values()
        needed = ", ".join(p.name for p in parameters if p.default is p.empty)
        remedy = f"call it: {leakage.__name__}({needed})"
    raise InputError(argument, f"{leakage!r} is no measure of leakage", remedy, value=leakage)
