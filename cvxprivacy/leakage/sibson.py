r"""Sibson's information of order α > 1, and maximal leakage, its limit.

.. math:: F(J) = \Big( \sum_w π(w)^{1-α} J(w)^α \Big)^{1/α}, \qquad
          I_α = \frac{α}{α-1} \log \sum_{\hat x} F(J_{\hat x})

Sibson, *Information radius*, Zeitschrift für Wahrscheinlichkeitstheorie und verwandte Gebiete 14,
1969; Issa, Wagner and Kamath, *An Operational Approach to Information Leakage*, IEEE Transactions
on Information Theory 66, 2020, for α = ∞.  What is minimised and bounded is the sum of F, of which
the information is an increasing function: ``information`` and ``sum_of`` go between the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import TINY, Exact, FloatArray, Real, fractions, written
from cvxprivacy.leakage.base import (
    Curvature,
    Entries,
    Face,
    Leakage,
    Places,
    Polyhedral,
    Recourse,
    Smooth,
    relative_change,
)
from cvxprivacy.model.information import nat
from cvxprivacy.validation import typed

__all__ = ["Maximal", "Sibson"]

_MOST = 1e9  # orders, beyond which norms are the greatest entry to nine digits
_GUARD = 1e-30  # least ratio
_LEAST = 1e-140  # and least power of one, of large orders


class _Norm(Leakage):
    """F = ‖J/π‖ in the space of π, of order α."""

    divergence = False
    _order: float

    @property
    def _share(self) -> float:
        """α/(α − 1)."""
        return 1.0 if math.isinf(self._order) else self._order / (self._order - 1.0)

    def information(self, total: float, units: str = "bits") -> float:
        """Return the information of which Σ F is ``total``.

        Parameters
        ----------
        total : number
            Σ_x̂ F > 0, the value of a program.
        units : {"bits", "nats"}
            Of the information.
        """
        number = typed(total, "total", zero=False, remedy="pass Σ F, a number > 0")
        return self._share * math.log(number) * nat(units)

    def sum_of(self, information: float, units: str = "bits") -> float:
        """Return Σ F of an information, as caps on it are stated.

        Parameters
        ----------
        information : number
            In ``units``.
        units : {"bits", "nats"}
            Of the information.
        """
        number = typed(information, "information", negative=True)
        try:
            return math.exp(float(number) / (self._share * nat(units)))
        except OverflowError:
            problem = f"{information!r} is out of range"
            raise InputError("information", problem, "pass less", value=information) from None

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return _norm(joint / reference[:, None], reference, self._order)

    def face(self, prior: Exact, reference: Exact) -> Face | None:
        """Return the face of a law: F is q where J = π q."""
        face, one = super().face(prior, reference), np.ones((len(prior), 1))
        parameters = self.parameters(one, np.asarray(reference, float))[:, 0]
        return (
            None
            if face is None
            else replace(face, score=fractions(one[:, 0]), parameters=parameters)
        )


class Sibson(_Norm, Smooth):
    """Σ_x̂ (Σ_w p(w)^{1−α} p(w, x̂)^α)^{1/α}, 1 without a release, of an order α > 1.

    α/(α − 1) log of it is the information of order α (Sibson, *Information radius*, 1969), which
    ``information`` gives and from which ``sum_of`` comes back.  Scores are told by what they exceed
    1, which is the score of a release that tells nothing.

    Parameters
    ----------
    order : number
        α > 1.

    Raises
    ------
    InputError
        For an order ≤ 1 or above 1e9.

    Examples
    --------
    Two fair bits that differ with probability 0.32 have Σ F = √(1 + 0.36²) at order 2, so that
    their information of that order, 2 log₂ Σ F, is log₂(1 + 0.36²):

    >>> import cvxprivacy as cpv
    >>> from math import log2
    >>> source, sibson = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.leakage.Sibson(2)
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=sibson)
    >>> solution = problem.solve()
    >>> round(solution.value, 4), round(sibson.information(solution.value), 4)
    (1.0628, 0.1758)
    >>> round(log2(1 + 0.36**2), 4)
    0.1758
    """

    kind = "Sibson"
    meaning = "how many times likelier x̂ makes the values of W, in the mean of order α"

    def __init__(self, order: Real) -> None:
        remedy = f"pass a number > 1 and < {_MOST:g}: MutualInformation and Maximal are "
        remedy += "its limits, and information.sibson_information evaluates orders from 0 on"
        self.order = typed(order, "order", below=_MOST, remedy=remedy)
        if not self.order > 1:
            raise InputError("order", f"{order!r} is out of range", remedy, value=order)
        self._order = float(self.order)

    @property
    def name(self) -> str:
        return f"Sibson {self._order:g}"

    @property
    def symbol(self) -> str:
        return rf"F_{{{self._order:g}}}"

    def latex(self, at: Places) -> str:
        order = f"{self._order:.9g}"
        inner = at.sum(rf"{at.pi}^{{{1.0 - self._order:.9g}}} \, {at.j}^{{{order}}}")
        return rf"\left({inner}\right)^{{1/{order}}}"

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        score = at.score(rf"s_{{{self.symbol}{at.mark}}}")
        dual = f"{self._order:.9g}/{self._order - 1.0:.9g}"
        norm = at.sum(rf"{at.pi} \, {score}^{{{dual}}}")
        return score, [at.each(rf"{score} \ge 0"), rf"{norm} \le 1"]

    def data(self) -> dict[str, Any]:
        return {"kind": self.kind, "order": written(Fraction(self.order))}

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return self._slopes(joint, reference) - 1.0

    def _slopes(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return scores, up to a factor."""
        ratio = joint / reference[:, None]
        relative: FloatArray = ratio / np.maximum(ratio.max(axis=0), TINY)
        return relative ** (self._order - 1.0)

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        return self._of_norm_one(1.0 + scores, reference)

    def parameters(self, slopes: FloatArray, reference: FloatArray) -> FloatArray:
        return slopes - 1.0

    def gradient(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return self._of_norm_one(self._slopes(joint, reference), reference)

    def _of_norm_one(self, slopes: FloatArray, reference: FloatArray) -> FloatArray:
        kept = _some(slopes)
        return kept / _norm(kept, reference, self._share)

    def curvature(self, joint: FloatArray, reference: FloatArray, slopes: FloatArray) -> Curvature:
        rate, (ratio, norm) = self._order - 1.0, self._ratio(joint, reference)
        inside = self._of_norm_one(slopes, reference)
        middle = 0.5 * (ratio + inside ** (1.0 / rate))
        along, normal = norm * reference[:, None] * middle, ratio**rate + inside
        mean = along / (rate * np.maximum(middle**rate, _LEAST))
        return Curvature(mean, along, normal / (normal * along).sum(axis=0))

    def second_order(
        self, joint: FloatArray, change: FloatArray, reference: FloatArray
    ) -> FloatArray:
        rate, (ratio, _) = self._order - 1.0, self._ratio(joint, reference)
        share = reference[:, None] * ratio**self._order
        relative = relative_change(change, joint)
        common = (share * relative).sum(axis=0)
        deviation = relative - common
        spread = (
            rate * deviation**2
            - relative**2
            + common**2
            - rate * (share * deviation**2).sum(axis=0)
        )
        slopes: FloatArray = 0.5 * rate * ratio**rate * spread
        return slopes

    def _ratio(self, joint: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return J/(π F), and F."""
        norm = self.value(joint, reference)
        return np.maximum(joint / (reference[:, None] * norm), _GUARD), norm

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        # T ≥ ‖z‖_α of z = π^{1/α − 1} x: z ≤ r^{1/α} T^{1 − 1/α}, Σ r = T
        z = cp.multiply(reference[:, None] ** (1.0 / self._order - 1.0), x)
        r, t = cp.Variable(x.shape, nonneg=True), cp.Variable((1, x.shape[1]), nonneg=True)
        total = np.ones((len(reference), 1)) @ t
        flat = [cp.vec(part, order="F") for part in (r, total, z)]
        power = cp.PowCone3D(*flat, np.full(flat[0].size, 1.0 / self._order))
        return t[0], {"power": power, "sum": cp.sum(r, axis=0, keepdims=True) == t}

    def __repr__(self) -> str:
        return f"Sibson({self._order:g})"


class Maximal(_Norm, Polyhedral):
    """Σ_x̂ max_w p(x̂ | w), the exponential of the maximal leakage of W.

    The most by which seeing x̂ multiplies the chance of guessing any function of W.  The criterion
    ``MaximalLeakage`` bounds that of all that is encoded.

    Parameters
    ----------
    of : {"W"}
        What is protected.

    Raises
    ------
    InputError
        For anything but ``"W"``.

    Examples
    --------
    A bit that differs from W with probability 0.32 has Σ max = 2 · 0.68, a leakage of log₂ 1.36
    bits:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> most = cpv.leakage.Maximal("W")
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=most)
    >>> solution = problem.solve()
    >>> round(solution.value, 4), round(most.information(solution.value), 4)
    (1.36, 0.4436)
    """

    kind = "maximal leakage"
    meaning = "the most by which seeing x̂ multiplies the chance of guessing a function of W"
    _order = math.inf

    def __init__(self, of: str = "W") -> None:
        if of != "W":
            remedy = 'pass "W", or use the criterion MaximalLeakage for what is encoded'
            raise InputError("of", f"{of!r} is unknown", remedy, value=of)
        self.of = of

    @property
    def symbol(self) -> str:
        return r"F_{\infty}"

    def latex(self, at: Places) -> str:
        return rf"\max_{{{at.index}}} \frac{{{at.j}}}{{{at.pi}}}"

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        score = at.score(rf"s_{{{self.symbol}{at.mark}}}")
        norm = at.sum(rf"{at.pi} \, {score}")
        return score, [at.each(rf"{score} \ge 0"), rf"{norm} \le 1"]

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return np.eye(len(reference))[:, (joint / reference[:, None]).argmax(axis=0)]

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        kept = _some(scores)
        normalised: FloatArray = kept / (reference @ kept)
        return normalised

    def recourse(self, reference: FloatArray) -> Recourse:
        """Return the level τ with π τ ≥ J."""
        size = len(reference)
        level = np.hstack([reference[:, None], -np.eye(size)])
        return Recourse(level, np.zeros(size), np.eye(1, size + 1)[0])

    def entries(self, reference: FloatArray) -> Entries:
        return Entries(1.0 / reference, False, 1.0 / reference)

    def __repr__(self) -> str:
        return 'Maximal("W")'


def _some(scores: FloatArray) -> FloatArray:
    """Return numbers ≥ 0, ones where all of a column are 0."""
    kept = np.maximum(scores, 0.0)
    return np.where(kept.any(axis=0), kept, 1.0)


def _norm(values: FloatArray, reference: FloatArray, order: float) -> FloatArray:
    """Return (Σ π x^α)^{1/α} of every column, max x for α = ∞."""
    most = values.max(axis=0)
    if math.isinf(order):
        return most
    part = values / np.where(most > 0, most, 1.0)
    norm: FloatArray = most * (reference @ part**order) ** (1.0 / order)
    return norm
