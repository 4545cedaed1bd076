r"""Measures by a convex function f of how much more likely a value is, f(1) = 0:

.. math:: F(J) = q \sum_w π(w)\, f\!\left(\frac{J(w)}{π(w) q}\right)
          = q\, D_f\!\left(p_{W \mid \hat x} \,\|\, p_W\right).

Csiszár, *Information-type measures of difference of probability distributions and indirect
observations*, Studia Scientiarum Mathematicarum Hungarica 2, 1967.  For any scores s,
s − Σ π f*(s) is a minorant, f* the convex conjugate (P11).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import TINY, Exact, FloatArray, Real, fractions, rational, written
from cvxprivacy.leakage.base import (
    GUARD,
    Curvature,
    Entries,
    Face,
    Places,
    Polyhedral,
    Recourse,
    Smooth,
    beyond,
    relative_change,
)
from cvxprivacy.model.information import divergence
from cvxprivacy.validation import typed

__all__ = [
    "ChiSquared",
    "Differentiable",
    "HockeyStick",
    "MutualInformation",
    "SquaredHellinger",
    "TotalVariation",
    "logarithmic_mean",
    "ratios",
]

_NORMALISING = 12  # steps to a mass of 1
_NEAR = 2.0**-50  # how near 1 a score of Hellinger's measure comes


def ratios(joint: FloatArray, reference: FloatArray) -> FloatArray:
    """Return J/(π q), 1 where q = 0."""
    mass = joint.sum(axis=0)
    other = reference[:, None] * mass
    ratio = np.divide(joint, other, out=np.ones_like(joint), where=other > TINY)
    few = (other <= TINY) & (mass > 0)  # products that no float need hold
    if few.any():
        posterior = np.divide(joint, mass, out=np.ones_like(joint), where=mass > 0)
        with np.errstate(over="ignore"):  # where 1/π is no float
            near = posterior / reference[:, None]
        ratio[few] = np.minimum(near, np.finfo(float).max)[few]
    return ratio


def _shifted(
    name: str, at: Places, conjugate: str, domain: str, size: str = ""
) -> tuple[str, list[str]]:
    """Return s = t − Σ π f*(t) in LaTeX, "@" in f* standing for t, and where t may be."""
    letter = rf"{{{name}{at.mark}}}"
    score, t = at.score(f"s_{letter}"), at.score(f"t_{letter}")
    other = f"{at.index}'"
    law, inner = at.law.replace("@", other), conjugate.replace("@", at.score(f"t_{letter}", other))
    mean = at.sum(rf"{law} \, {inner}", other)
    return score, [
        at.each(rf"{score} = {t} - {size}{mean}"),
        at.each(domain.replace("@", t)),
    ]


def _less_mean(scores: FloatArray, conjugate: FloatArray, reference: FloatArray) -> FloatArray:
    """Return s − Σ π f*(s)."""
    shifted: FloatArray = scores - reference @ conjugate
    return shifted


def logarithmic_mean(a: FloatArray, log_ratio: FloatArray) -> FloatArray:
    """Return (a − b)/(log a − log b), with b = a exp(−log_ratio)."""
    near = np.abs(log_ratio) < 1e-5
    safe = np.where(near, 1.0, np.clip(log_ratio, -600.0, 600.0))
    ratio = np.where(near, 1.0 - 0.5 * log_ratio, -np.expm1(-safe) / safe)
    return np.maximum(a * ratio, TINY)


class Differentiable(Smooth):
    """A measure by a smooth f, which states derivatives of f and of its conjugate."""

    def _derivatives(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f''(t), and t times the third derivative."""
        raise NotImplementedError

    def _inverse(self, slope: FloatArray) -> FloatArray:
        """Return t ≥ 0 where f' is the slope, or 0 where it is above that for all."""
        raise NotImplementedError

    def curvature(self, joint: FloatArray, reference: FloatArray, slopes: FloatArray) -> Curvature:
        other = self._inverse(self.parameters(slopes, reference))
        middle, mass = 0.5 * (ratios(joint, reference) + other), joint.sum(axis=0)
        mean = reference[:, None] * mass / self._derivatives(middle)[0]
        return Curvature(mean, reference[:, None] * middle, np.ones_like(joint))

    def second_order(
        self, joint: FloatArray, change: FloatArray, reference: FloatArray
    ) -> FloatArray:
        ratio = ratios(joint, reference)
        common = relative_change(change.sum(axis=0), joint.sum(axis=0))
        deviation = relative_change(change, joint) - common
        second, third = (ratio * derivative for derivative in self._derivatives(ratio))
        scores = 0.5 * third * deviation**2 - second * deviation * common
        return _less_mean(scores, ratio * (scores + 0.5 * second * deviation**2), reference)


class MutualInformation(Smooth):
    """I(W; X̂) in the problem's units: f(t) = t log t.

    Shannon, *A mathematical theory of communication*, 1948.

    Examples
    --------
    It is the risk that problems minimise unless they are told otherwise.  Two fair bits that differ
    with probability 0.2 share 1 − h(0.2) bits:

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> round(cpv.leakage.MutualInformation().total(source.pmf) / log(2), 4)  # nats into bits
    0.2781
    >>> round(1 - cpv.information.entropy([0.2, 0.8]), 4)
    0.2781
    """

    kind = "mutual information"
    informs = in_units = True
    meaning = "how many bits, or nats, a release tells about W on average"

    @property
    def symbol(self) -> str:
        return "I"

    def latex(self, at: Places) -> str:
        return at.sum(rf"{at.j} \, {at.log} \frac{{{at.j}}}{{{at.expected}}}")

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        """Return log r/π, r a posterior."""
        r = at.score(at.posterior)
        sound = [at.each(rf"{r} \ge 0"), rf"{at.sum(r)} = 1"]
        return rf"{at.log} \frac{{{r}}}{{{at.pi}}}", sound

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        ratio = ratios(joint, reference)
        return (joint * np.log(np.where(ratio > 0, ratio, 1.0))).sum(axis=0)

    def between(self, p: FloatArray, q: FloatArray) -> float:
        return divergence(p, q, units="nats")

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return np.log(np.maximum(ratios(joint, reference), GUARD))

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        """Return log(r/π), r ∝ π e^s (P8)."""
        psi = scores - scores.max(axis=0)
        less = reference @ np.expm1(psi)  # Σ π e^ψ − 1, exact for the least of scores
        large = np.log(np.maximum(reference @ np.exp(psi), TINY))
        log_sum: FloatArray = np.where(less > -0.5, np.log1p(np.maximum(less, -0.5)), large)
        return psi - log_sum

    def tangent(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        t = np.maximum(ratio, GUARD)
        return np.log(t) + 1.0, t

    def gradient(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        # (P7), by J: what π q contributes cancels with J under its own logarithm
        log_ratio: FloatArray = np.log(
            joint / np.maximum(reference[:, None] * joint.sum(axis=0), TINY)
        )
        return log_ratio

    def curvature(self, joint: FloatArray, reference: FloatArray, slopes: FloatArray) -> Curvature:
        mean = logarithmic_mean(joint, self.gradient(joint, reference) - slopes)
        return Curvature(mean, mean / mean.sum(axis=0), np.ones_like(mean))

    def second_order(
        self, joint: FloatArray, change: FloatArray, reference: FloatArray
    ) -> FloatArray:
        common = relative_change(change.sum(axis=0), joint.sum(axis=0))
        return 0.5 * common**2 - 0.5 * relative_change(change, joint) ** 2

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        return cp.sum(cp.rel_entr(x, reference[:, None] @ mass), axis=0), {}


class ChiSquared(Differentiable):
    """χ²(W; X̂) = Σ p(w, x̂)²/(p(w) p(x̂)) − 1: f(t) = (t − 1)².

    Pearson's mean square contingency of W and X̂, which no function of W and of X̂ correlate more
    than the root of (Rényi, *On measures of dependence*, 1959).

    Examples
    --------
    Two fair bits that differ with probability 0.2 have the correlation 0.6, and χ² = 0.36.  If one
    is flipped with probability D it is (0.6 (1 − 2D))², and no release leaks less:

    >>> import cvxprivacy as cpv
    >>> source, chi = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.leakage.ChiSquared()
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=chi)
    >>> round(chi.total(source.pmf), 4), round(problem.solve().value, 4)
    (0.36, 0.1296)
    """

    kind = "chi-squared"
    meaning = "mean square contingency: no function of W is told with a larger R²"

    @property
    def symbol(self) -> str:
        return r"\chi^2"

    def latex(self, at: Places) -> str:
        return at.sum(rf"\frac{{\left({at.j} - {at.expected}\right)^2}}{{{at.expected}}}")

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        return _shifted(self.symbol, at, r"\left(@ + \tfrac{1}{4} @^2\right)", r"@ \ge -2")

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        mass, root = joint.sum(axis=0), np.sqrt(reference)[:, None]
        posterior = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
        # q Σ (r − π)²/π, of factors that are floats where 1/π is none
        beyond_prior = np.sqrt(mass) * ((posterior - reference[:, None]) / root)
        return (beyond_prior**2).sum(axis=0)

    def between(self, p: FloatArray, q: FloatArray) -> float:
        on = p != q
        with np.errstate(divide="ignore"):
            return float(((p[on] - q[on]) ** 2 / q[on]).sum())

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return 2.0 * (ratios(joint, reference) - 1.0)

    def tangent(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 2.0 * (ratio - 1.0), ratio**2 - 1.0

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        return beyond(joint, reference)

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        conjugate = np.where(scores >= -2.0, scores + scores**2 / 4.0, -1.0)
        return _less_mean(scores, conjugate, reference)

    def parameters(self, slopes: FloatArray, reference: FloatArray) -> FloatArray:
        """Return 2 (t − 1), with Σ π t = 1, t ≥ 0."""
        scores = slopes - reference @ slopes
        for _ in range(len(reference)):  # by Newton's method, from above
            on = scores >= -2.0
            less = reference @ np.where(on, scores, -2.0)
            scores = scores - less / (reference @ on)
        return scores

    def _inverse(self, slope: FloatArray) -> FloatArray:
        return np.maximum(1.0 + 0.5 * slope, 0.0)

    def _derivatives(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(ratio, 2.0), np.zeros_like(ratio)

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        t, weighed = cp.Variable((1, x.shape[1])), cp.multiply(2 / np.sqrt(reference)[:, None], x)
        square = cp.SOC((t + mass)[0], cp.vstack([weighed, t - mass]), axis=0)  # t q ≥ Σ x²/π
        return t[0], {"square": square}


class SquaredHellinger(Differentiable):
    """2 − 2 Σ √(p(w, x̂) p(w) p(x̂)), the squared Hellinger distance from independence.

    f(t) = (1 − √t)²; Hellinger, Journal für die reine und angewandte Mathematik 136, 1909.

    Examples
    --------
    Two fair bits that differ with probability p have H² = 2 − √(2 (1 − p)) − √(2p).  One of them is
    flipped in a fifth of the records, and p = 0.2 becomes 0.32:

    >>> import cvxprivacy as cpv
    >>> from math import sqrt
    >>> source, h2 = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.leakage.SquaredHellinger()
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=h2)
    >>> round(problem.solve().value, 5), round(2 - sqrt(2 * 0.68) - sqrt(2 * 0.32), 5)
    (0.03381, 0.03381)
    """

    kind = "squared Hellinger"
    meaning = "squared Hellinger distance from independence, between 0 and 2"

    @property
    def symbol(self) -> str:
        return "H^2"

    def latex(self, at: Places) -> str:
        root = rf"\sqrt{{{at.j}}} - \sqrt{{{at.expected}}}"
        return at.sum(rf"\left({root}\right)^2")

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        return _shifted(self.symbol, at, r"\frac{@}{1 - @}", "@ < 1")

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return joint.sum(axis=0) * (reference @ (np.sqrt(ratios(joint, reference)) - 1.0) ** 2)

    def between(self, p: FloatArray, q: FloatArray) -> float:
        return float(((np.sqrt(p) - np.sqrt(q)) ** 2).sum())

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return 1.0 - 1.0 / np.sqrt(np.maximum(ratios(joint, reference), GUARD))

    def tangent(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        root = np.sqrt(np.maximum(ratio, GUARD))
        return 1.0 - 1.0 / root, root - 1.0

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        return beyond(joint, reference)

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        kept = np.minimum(scores, 1.0 - _NEAR)
        return _less_mean(kept, kept / (1.0 - kept), reference)

    def parameters(self, slopes: FloatArray, reference: FloatArray) -> FloatArray:
        """Return 1 − t^−½, with Σ π t = 1."""
        top = slopes.argmax(axis=0)
        below = slopes.max(axis=0) - slopes
        least = np.sqrt(reference[top])  # t^−½ of the largest is no less
        for _ in range(_NORMALISING):  # by Newton's method on a mean of t^−½, which is concave
            root = below + least
            mass = reference @ root**-2.0
            least = least + (1.0 - mass**-0.5) * mass**1.5 / (reference @ root**-3.0)
        scores: FloatArray = 1.0 - below - least
        return scores

    def _inverse(self, slope: FloatArray) -> FloatArray:
        ratio: FloatArray = (1.0 - slope) ** -2.0
        return ratio

    def _derivatives(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        power = np.maximum(ratio, GUARD) ** -1.5
        return 0.5 * power, -0.75 * power

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        e, both = cp.Variable(x.shape), x + 2.0 * reference[:, None] @ mass  # J + π q
        flat = [cp.vec(part, order="F") for part in (e + both, x, 2.0 * e, e - both)]
        root = cp.SOC(flat[0], cp.vstack(flat[1:]), axis=0)  # (J + π q)/2 − e ≤ √(J π q)
        return 2.0 * cp.sum(e, axis=0), {"root": root}


class HockeyStick(Polyhedral):
    """Σ (p(w, x̂) − γ p(w) p(x̂))₊, γ ≥ 1: what the posterior has beyond γ times the prior.

    f(t) = (t − γ)₊; with γ = e^ε the δ of approximate privacy (ε, δ) of posterior against prior.
    Sason and Verdú, *f-divergence inequalities*, IEEE Transactions on Information Theory 62, 2016.

    Parameters
    ----------
    gamma : number
        γ ≥ 1; 1 is the total variation.

    Raises
    ------
    InputError
        For a γ below 1.

    Examples
    --------
    Of two fair bits that differ with probability 0.32, each pair of equal ones has 0.34 of the
    mass, 0.04 beyond 1.2 times the quarter that independent bits have:

    >>> import cvxprivacy as cpv
    >>> source, stick = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.leakage.HockeyStick(1.2)
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=stick)
    >>> round(stick.total(source.pmf), 4), round(problem.solve().value, 4)
    (0.2, 0.08)
    """

    kind = "hockey-stick"
    meaning = "the probability by which posteriors exceed γ times the prior"

    def __init__(self, gamma: Real) -> None:
        remedy = "pass a number ≥ 1, such as e^ε"
        self.gamma = typed(gamma, "gamma", remedy=remedy)
        if self.gamma < 1:
            raise InputError("gamma", f"{gamma!r} is out of range", remedy, value=gamma)

    @property
    def name(self) -> str:
        return f"hockey-stick {float(self.gamma):g}"

    @property
    def symbol(self) -> str:
        return rf"E_{{{float(self.gamma):g}}}"

    def latex(self, at: Places) -> str:
        factor = "" if self.gamma == 1 else rf"{float(self.gamma):g} \, "
        return at.sum(rf"\left({at.j} - {factor}{at.expected}\right)_+")

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        factor = "" if self.gamma == 1 else rf"{float(self.gamma):g} \, "
        return _shifted(self.symbol, at, "@", r"0 \le @ \le 1", factor)

    def data(self) -> dict[str, Any]:
        return {"kind": self.kind, "gamma": written(Fraction(self.gamma))}

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return np.maximum(self.lifted(joint, reference), 0.0).sum(axis=0)

    def between(self, p: FloatArray, q: FloatArray) -> float:
        return float(np.maximum(p - float(self.gamma) * q, 0.0).sum())

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return (self.lifted(joint, reference) > 0).astype(float)

    def tangent(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope = (ratio > float(self.gamma)).astype(float)
        return slope, float(self.gamma) * slope

    def face(self, prior: Exact, reference: Exact) -> Face:
        """Return where no posterior exceeds γ times the prior."""
        none, each = np.zeros(len(prior)), np.eye(len(prior))
        beyond = fractions(each) - rational(self.gamma) * reference[:, None]
        return Face(fractions(none), beyond, none, each)

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        kept = np.clip(scores, 0.0, 1.0)
        return _less_mean(kept, float(self.gamma) * kept, reference)

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        return beyond(joint, reference, float(self.gamma))

    def recourse(self, reference: FloatArray) -> Recourse:
        """Return x as a difference of numbers ≥ 0, the first of which cost 1."""
        one = np.eye(len(reference))
        cost = np.repeat([1.0, 0.0], len(reference))
        return Recourse(np.hstack([one, -one]), np.zeros(len(reference)), cost)

    def entries(self, reference: FloatArray) -> Entries:
        return Entries(float(self.gamma) * reference, True, np.ones(len(reference)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({float(self.gamma):g})"


class TotalVariation(HockeyStick):
    """½ Σ abs(p(w, x̂) − p(w) p(x̂)): f(t) = ½ abs(t − 1), the hockey-stick of γ = 1.

    How much better a test that sees x̂ can be at telling the pair from independent ones.

    Examples
    --------
    A fair bit that is guessed right with probability 0.8 has posteriors 0.3 from its prior; if X is
    flipped with probability D it is 0.3 (1 − 2D):

    >>> import cvxprivacy as cpv
    >>> source, tv = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.leakage.TotalVariation()
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=tv)
    >>> round(tv.total(source.pmf), 4), round(problem.solve().value, 4)
    (0.3, 0.18)
    """

    meaning = "mean total variation between posterior and prior, between 0 and 1"

    def __init__(self) -> None:
        super().__init__(1)

    @property
    def name(self) -> str:
        return "total variation"

    @property
    def symbol(self) -> str:
        return r"\mathrm{TV}"

    def latex(self, at: Places) -> str:
        return at.sum(rf"\tfrac{{1}}{{2}} \left|{at.j} - {at.expected}\right|")

    def __repr__(self) -> str:
        return "TotalVariation()"
