r"""Measures by a convex function f of how much more likely a value is, f(1) = 0:

.. math:: F(J) = q \sum_w π(w)\, f\!\left(\frac{J(w)}{π(w) q}\right)
          = q\, D_f\!\left(p_{W \mid \hat x} \,\|\, p_W\right).

Csiszár, *Information-type measures of difference of probability distributions and indirect
observations*, Studia Scientiarum Mathematicarum Hungarica 2, 1967.  For any scores s,
s − Σ π f*(s) is a minorant, f* the convex conjugate.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, Real, written
from cvxprivacy.leakage.base import Leakage, beyond
from cvxprivacy.model.information import nat
from cvxprivacy.validation import typed

__all__ = [
    "ChiSquared",
    "HockeyStick",
    "MutualInformation",
    "SquaredHellinger",
    "TotalVariation",
]

_GUARD = 2.0**-60  # least ratio of a posterior to π, against log 0
_NEAR = 2.0**-50  # how near 1 a score of Hellinger's measure comes


def _ratio(joint: FloatArray, reference: FloatArray) -> FloatArray:
    """Return J/(π q), 1 where q = 0."""
    other = reference[:, None] * joint.sum(axis=0)
    return np.divide(joint, other, out=np.ones_like(joint), where=other > 0)


def _less_mean(scores: FloatArray, conjugate: FloatArray, reference: FloatArray) -> FloatArray:
    """Return s − Σ π f*(s)."""
    found: FloatArray = scores - reference @ conjugate
    return found


class MutualInformation(Leakage):
    """I(W; X̂) in the problem's units: f(t) = t log t.

    Shannon, *A mathematical theory of communication*, 1948.
    """

    kind = "mutual information"
    informs = True
    meaning = "how many bits, or nats, a release tells about W on average"

    @property
    def symbol(self) -> str:
        return "I"

    def unit(self, units: str) -> float:
        return nat(units)

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        other, on = reference[:, None] * joint.sum(axis=0), joint > 0
        found = np.zeros_like(joint)
        found[on] = joint[on] * np.log(joint[on] / other[on])
        return found.sum(axis=0)

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return np.log(np.maximum(_ratio(joint, reference), _GUARD))

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        """Return log(r/π), r ∝ π e^s."""
        psi = scores - scores.max(axis=0)
        less = reference @ np.expm1(psi)  # Σ π e^ψ − 1, exact for the least of scores
        whole: FloatArray = np.where(less > -0.5, np.log1p(less), np.log(reference @ np.exp(psi)))
        return psi - whole

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        return cp.sum(cp.rel_entr(x, reference[:, None] @ mass), axis=0), {}


class ChiSquared(Leakage):
    """χ²(W; X̂) = Σ p(w, x̂)²/(p(w) p(x̂)) − 1: f(t) = (t − 1)².

    Pearson's mean square contingency of W and X̂, which no function of W and of X̂ correlate more
    than the root of (Rényi, *On measures of dependence*, 1959).
    """

    kind = "chi-squared"
    meaning = "mean square contingency: no function of W is told with a larger R²"

    @property
    def symbol(self) -> str:
        return r"\chi^2"

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        excess = _ratio(joint, reference) - 1.0
        return joint.sum(axis=0) * (reference @ excess**2)

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return 2.0 * (_ratio(joint, reference) - 1.0)

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        return beyond(joint, reference)

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        conjugate = np.where(scores >= -2.0, scores + scores**2 / 4.0, -1.0)
        return _less_mean(scores, conjugate, reference)

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        t, weighed = cp.Variable((1, x.shape[1])), cp.multiply(2 / np.sqrt(reference)[:, None], x)
        square = cp.SOC((t + mass)[0], cp.vstack([weighed, t - mass]), axis=0)  # t q ≥ Σ x²/π
        return t[0], {"square": square}


class SquaredHellinger(Leakage):
    """2 − 2 Σ √(p(w, x̂) p(w) p(x̂)), the squared Hellinger distance from independence.

    f(t) = (1 − √t)²; Hellinger, Journal für die reine und angewandte Mathematik 136, 1909.
    """

    kind = "squared Hellinger"
    meaning = "squared Hellinger distance from independence, between 0 and 2"

    @property
    def symbol(self) -> str:
        return "H^2"

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return joint.sum(axis=0) * (reference @ (np.sqrt(_ratio(joint, reference)) - 1.0) ** 2)

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return 1.0 - 1.0 / np.sqrt(np.maximum(_ratio(joint, reference), _GUARD))

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        return beyond(joint, reference)

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        kept = np.minimum(scores, 1.0 - _NEAR)
        return _less_mean(kept, kept / (1.0 - kept), reference)

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        e, both = cp.Variable(x.shape), x + 2.0 * reference[:, None] @ mass  # J + π q
        flat = [cp.vec(part, order="F") for part in (e + both, x, 2.0 * e, e - both)]
        root = cp.SOC(flat[0], cp.vstack(flat[1:]), axis=0)  # (J + π q)/2 − e ≤ √(J π q)
        return 2.0 * cp.sum(e, axis=0), {"root": root}


class HockeyStick(Leakage):
    """Σ (p(w, x̂) − γ p(w) p(x̂))₊, γ ≥ 1: what the posterior has beyond γ times the prior.

    f(t) = (t − γ)₊; with γ = e^ε the δ of approximate privacy (ε, δ) of posterior against prior.
    Sason and Verdú, *f-divergence inequalities*, IEEE Transactions on Information Theory 62, 2016.

    Parameters
    ----------
    gamma : number
        γ ≥ 1; 1 is the total variation.
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

    def data(self) -> dict[str, Any]:
        return {"kind": self.kind, "gamma": written(Fraction(self.gamma))}

    @property
    def separates(self) -> bool:
        return self.gamma == 1

    def told(self, slopes: FloatArray) -> FloatArray:
        return slopes + 0.5

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return np.maximum(self.lifted(joint, reference), 0.0).sum(axis=0)

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return (self.lifted(joint, reference) > 0).astype(float)

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        kept = np.clip(scores, 0.0, 1.0)
        return _less_mean(kept, float(self.gamma) * kept, reference)

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        return beyond(joint, reference, float(self.gamma))

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        return cp.sum(cp.pos(x), axis=0), {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({float(self.gamma):g})"


class TotalVariation(HockeyStick):
    """½ Σ abs(p(w, x̂) − p(w) p(x̂)): f(t) = ½ abs(t − 1), the hockey-stick of γ = 1.

    How much better a test that sees x̂ can be at telling the pair from independent ones.
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

    def __repr__(self) -> str:
        return "TotalVariation()"
