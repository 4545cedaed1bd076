r"""Measures by a convex function f that is stated in numbers, as a sum of perspectives.

.. math:: F(J) = \sum_w π q\, f\!\left(\frac{J}{π q}\right) - f(1)\, q, \qquad
          f(t) = \sum_i c_i\, v_i\, φ_{a_i}(u_i/v_i), \quad
          u_i = α_i t + β_i, \; v_i = γ_i t + δ_i,

with :math:`φ_1(r) = r \log r`, :math:`φ_a(r) = |r|^a` for a > 1 and :math:`-r^a` below.  φ is
convex, hence its perspective v φ(u/v), hence f: whoever checks a proof reads that off the numbers,
and needs no function of the user's.  Scores are tangents: at any points t(w) > 0

.. math:: s = f'(t) - \sum_w π\, (t f'(t) - f(t) + f(1))

is a minorant (P11): f* is evaluated at slopes f'(t) alone, where it is t f'(t) − f(t).
The points t are told by their logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.exact import TINY, Exact, FloatArray, Real, rational, written
from cvxprivacy.leakage.base import GUARD, Face, Places, beyond
from cvxprivacy.leakage.f_information import Differentiable, ratios
from cvxprivacy.validation import table, typed
from cvxprivacy_verifier.perspectives import MOST_TERMS

__all__ = ["FInformation", "JensenShannon", "PowerDivergence", "VinczeLeCam"]

_LOGARITHMS = -200.0, 50.0  # of points of tangency, as in proofs
_GRID = 5_001  # points between them, from which f' is inverted
_POLISHING = 4  # steps of Newton's method from a cell of that grid
_NORMALISING, _MASS = 60, 1e-14  # steps to a mass of 1, and how near it is enough
_ORDERS = 0.1, 10.0
_APART = 0.01  # from 1, the limit that is a logarithm


class FInformation(Differentiable):
    """An f-divergence of one's own: Σ π q f(J/πq) of a convex f that is a sum of perspectives.

    Each row ``(c, a, α, β, γ, δ)`` of ``terms`` is, with u = αt + β and v = γt + δ,

    * a = 1: c u log(u/v), in nats;
    * a > 1: c abs(u)^a v^(1 − a);
    * a < 1: − c u^a v^(1 − a),

    and f is their sum, less f(1).  Affine terms c (t − 1) add nothing to the measure and are left
    out.  Such an f is convex by its form, which is what a proof needs to know of it: no function of
    Python's is trusted, and none is taken.

    Parameters
    ----------
    terms : array_like, shape (terms, 6)
        c > 0; 0.1 ≤ a ≤ 10, no nearer to 1 than 0.01 unless it is 1; γ ≥ 0, δ > 0; α, β ≥ 0, of any
        sign where a = 2.  Fractions are taken exactly.

    Raises
    ------
    InputError
        For other numbers, with the place; for a function of Python's; for an f that is affine, by
        which nothing is leaked.

    Notes
    -----
    δ > 0 makes f(0) finite.  Divergences that are infinite where a release rules out a value of W,
    such as −log t, are refused: one probability that is rounded to 0 would make any upper end
    infinite.  A function with a kink is a
    :class:`~cvxprivacy.leakage.HockeyStick`; sums with it are stated in a formulation.

    Csiszár, *Information-type measures of difference of probability distributions and indirect
    observations*, Studia Scientiarum Mathematicarum Hungarica 2, 1967; perspectives: Boyd and
    Vandenberghe, *Convex Optimization*, 2004, section 3.2.6.

    Examples
    --------
    Lin's divergence of the posterior from the mean of it and the prior is f(t) = t log(2t/(t + 1)).
    Of two fair bits that differ with probability p, equal ones have t = 2 (1 − p) and others 2p.
    One bit is flipped in a fifth of the records, and p = 0.2 becomes 0.32:

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> lin = cpv.leakage.FInformation([(1, 1, 1, 0, 0.5, 0.5)])  # u = t, v = (t + 1)/2
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=lin)
    >>> by_hand = sum(p * log(4 * p / (2 * p + 1)) for p in (0.68, 0.32))
    >>> round(problem.solve().value, 5), round(by_hand, 5)
    (0.01723, 0.01723)
    """

    kind = "f-information"
    meaning = "an f-divergence of posterior from prior, by an f stated in numbers"

    def __init__(self, terms: npt.ArrayLike | Sequence[Sequence[Real]]) -> None:
        self.terms: Exact = _checked(terms)
        if not self.curvature_at_one > 0:
            problem = "an affine function, by which nothing is leaked"
            raise InputError("terms", problem, "pass a term with α δ ≠ γ β", value=terms)

    @property
    def symbol(self) -> str:
        return "D_f"

    def data(self) -> dict[str, Any]:
        return {"kind": self.kind, "terms": [list(map(written, row)) for row in self._rows]}

    @cached_property
    def _rows(self) -> list[list[Fraction]]:
        return [[rational(x) for x in row] for row in self.terms.tolist()]

    @cached_property
    def _numbers(self) -> list[list[float]]:
        return [list(map(float, row)) for row in self._rows]

    # ---- f -------------------------------------------------------------------------------

    def f(self, t: npt.ArrayLike) -> FloatArray:
        """Return f(t), which is 0 at 1, to be compared with a formula.

        Parameters
        ----------
        t : array_like
            Numbers ≥ 0.
        """
        return self._f(np.asarray(t, float)) - self._at_one

    def _f(self, t: FloatArray) -> FloatArray:
        value = np.zeros_like(t)
        for c, a, alpha, beta, gamma, delta in self._numbers:
            u, v = alpha * t + beta, gamma * t + delta
            ratio = np.abs(u / v)
            if a == 1:
                value += c * u * np.log(np.where(ratio > 0, ratio, 1.0))
            else:
                value += np.sign(a - 1) * c * v * ratio**a
        return value

    @cached_property
    def _at_one(self) -> float:
        return float(self._f(np.ones(())))

    @cached_property
    def curvature_at_one(self) -> float:
        """f''(1), by which sizes of F are judged."""
        return float(self._derivatives(np.ones(()))[0])

    @property
    def span(self) -> float:
        return self.curvature_at_one

    def _tangent(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f'(t), and t f'(t) − f(t)."""
        slope, conjugate = np.zeros_like(t), np.zeros_like(t)
        for c, a, alpha, beta, gamma, delta in self._numbers:
            v = gamma * t + delta
            r, turn = (alpha * t + beta) / v, (alpha * delta - gamma * beta) / v
            if a == 1:
                along, more = np.log(r), np.ones_like(t)
            else:
                along = r if a == 2 else np.sign(a - 1) * r ** (a - 1)
                more = (a - 1) * along
            slope += c * (alpha * along + turn * more)
            conjugate += c * (turn * t * more - beta * along)
        return slope, conjugate

    def tangent(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope, conjugate = self._tangent(np.maximum(ratio, GUARD))
        return slope, conjugate + self._at_one

    def _derivatives(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        t = np.maximum(ratio, GUARD)
        second, third = np.zeros_like(t), np.zeros_like(t)
        for c, a, alpha, beta, gamma, delta in self._numbers:
            v, det = gamma * t + delta, alpha * delta - gamma * beta
            if not det:
                continue
            r, size = (alpha * t + beta) / v, c * (1.0 if a == 1 else abs(a * (a - 1)))
            at = size * (np.ones_like(t) if a == 2 else r ** (a - 2)) * det**2 / v**3
            second += at  # φ'' u'² with (u/v)' = det/v²
            third += t * at * ((0.0 if a == 2 else (a - 2) * det / (r * v**2)) - 3 * gamma / v)
        return second, third

    # ---- scores --------------------------------------------------------------------------

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        # ≥ 0 by Jensen's inequality, whatever was rounded
        return joint.sum(axis=0) * np.maximum(reference @ self.f(ratios(joint, reference)), 0.0)

    def between(self, p: FloatArray, q: FloatArray) -> float:
        total = -self._at_one
        for c, a, alpha, beta, gamma, delta in self._numbers:
            u, v = alpha * p + beta * q, gamma * p + delta * q
            on = u != 0  # φ(0) = 0
            u, v = u[on], v[on]
            with np.errstate(divide="ignore"):  # v is 0 only where q is, and nothing bounds f
                size = np.log(u / v) * u if a == 1 else np.abs(u) ** a * v ** (1.0 - a)
            total += c * (1.0 if a >= 1 else -1.0) * float(size.sum())
        return max(total, 0.0)

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return log(J/πq)."""
        return np.log(np.maximum(ratios(joint, reference), np.exp(_LOGARITHMS[0])))

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        slopes, conjugates = self._tangent(self._inverse(scores))
        shifted: FloatArray = slopes - reference @ (conjugates + self._at_one)
        return np.where(scores.any(axis=0), shifted, 0.0)

    def _inverse(self, slope: FloatArray) -> FloatArray:
        """Return the point of a parameter."""
        point: FloatArray = np.exp(np.clip(slope, *_LOGARITHMS))
        return point

    def parameters(self, slopes: FloatArray, reference: FloatArray) -> FloatArray:
        """Return log t, f'(t) a slope up to a constant, with Σ π t = 1."""
        scores = slopes - slopes.max(axis=0)
        # some t is ≥ 1, none is above 1/π
        low = np.full(scores.shape[1], float(self._tangent(np.ones(()))[0]))
        high = (self._tangent(1.0 / reference)[0][:, None] - scores).min(axis=0)
        high, constant = np.maximum(low, high), low
        for _ in range(_NORMALISING):  # by Newton's method, within bounds
            points = self._points(scores + constant)
            t = np.exp(points)
            excess = reference @ t - 1.0
            if np.abs(excess).max(initial=0.0) < _MASS:
                break
            low, high = np.where(excess < 0, constant, low), np.where(excess < 0, high, constant)
            step = constant - excess / (reference @ (1.0 / self._derivatives(t)[0]))
            constant = np.where((low < step) & (step < high), step, 0.5 * (low + high))
        return points

    def _points(self, slopes: FloatArray) -> FloatArray:
        """Return log t where f'(t) is a slope, at an end where it is none."""
        logs, table = self._grid
        cell = np.clip(np.searchsorted(table, slopes) - 1, 0, len(logs) - 2)
        points: FloatArray = np.interp(slopes, table, logs)
        for _ in range(_POLISHING):
            t = np.exp(points)
            step = (slopes - self._tangent(t)[0]) / (t * self._derivatives(t)[0])
            points = np.clip(points + step, logs[cell], logs[cell + 1])
        return points

    @cached_property
    def _grid(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of t, and f'(t)."""
        logs = np.linspace(*_LOGARITHMS, _GRID)
        return logs, np.maximum.accumulate(self._tangent(np.exp(logs))[0])

    def face(self, prior: Exact, reference: Exact) -> Face | None:
        """Return the face of a law, where J = π q: near t = 1 a slope is f''(1) log t."""
        face = super().face(prior, reference)
        if face is None:
            return None
        return replace(face, parameter_directions=face.parameter_directions / self.curvature_at_one)

    # ---- in CVXPY ------------------------------------------------------------------------

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        return beyond(joint, reference)

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        expected, cones = reference[:, None] @ mass, {}
        value = -self._at_one * mass[0]
        for i, (c, a, alpha, beta, gamma, delta) in enumerate(self._numbers):
            u = alpha * x + (alpha + beta) * expected  # J = x + π q
            v = gamma * x + (gamma + delta) * expected
            if a == 1:
                value = value + c * cp.sum(cp.rel_entr(u, v), axis=0)
                continue
            t = cp.Variable(x.shape)
            ends = (t, v, u, 1 / a) if a > 1 else (u, v, t, a)
            flat = [cp.vec(part, order="F") for part in ends[:3]]
            cones[f"power {i}"] = cp.PowCone3D(*flat, np.full(flat[0].size, ends[3]))
            value = value + np.sign(a - 1) * c * cp.sum(t, axis=0)
        return value, cones

    # ---- in LaTeX ------------------------------------------------------------------------

    def latex(self, at: Places) -> str:
        parts = []
        for c, a, alpha, beta, gamma, delta in self._numbers:
            u = _affine(alpha, at.j, beta, at.expected)
            v = _affine(gamma, at.j, delta, at.expected)
            sign = "-" if a < 1 else "+"
            if a == 1:
                text = rf"\left({u}\right) \ln \frac{{{u}}}{{{v}}}"
            elif a == 2:
                text = rf"\frac{{\left({u}\right)^2}}{{{v}}}"
            else:
                text = rf"\left({u}\right)^{{{a:.12g}}} \left({v}\right)^{{{1 - a:.12g}}}"
            parts.append(f"{sign} {_factor(c)}{text}")
        text = " ".join(parts).removeprefix("+ ")
        less = _signed(-self._at_one, rf" \, {at.expected}")
        return at.sum(rf"\left({text}{less}\right)")

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        return self._tangents(at, *self._slope_latex())

    def _slope_latex(self) -> tuple[str, str]:
        """Return f'(t) and t f'(t) − f(t) + f(1) in LaTeX, of a point "@"."""
        slopes, conjugates = [], []
        for c, a, alpha, beta, gamma, delta in self._numbers:
            v = _affine(gamma, "@", delta, "")
            r = rf"\frac{{{_affine(alpha, '@', beta, '')}}}{{{v}}}"
            along, more, size = rf" \, \ln {r}", "", c * (alpha * delta - gamma * beta)
            if a != 1:
                along = more = rf" \, \left({r}\right)^{{{a - 1:.12g}}}"
                c, size = c * np.sign(a - 1), size * abs(a - 1)
            slopes += [_signed(c * alpha, along)]
            slopes += [_signed(size, rf" \, \frac{{1}}{{{v}}}{more}")]
            conjugates += [_signed(size, rf" \, \frac{{@}}{{{v}}}{more}")]
            conjugates += [_signed(-c * beta, along)]
        conjugates.append(_signed(self._at_one, ""))
        slope, conjugate = ("".join(parts).removeprefix(" + ") for parts in (slopes, conjugates))
        return slope or "0", rf"\left({conjugate or '0'}\right)"

    def _tangents(self, at: Places, slope: str, conjugate: str) -> tuple[str, list[str]]:
        """Return s = f'(t) − Σ π f*(f'(t)), and t > 0."""
        letter, other = rf"{{{self.symbol}{at.mark}}}", f"{at.index}'"
        score, t = at.score(f"s_{letter}"), at.score(f"t_{letter}")
        law = at.law.replace("@", other)
        mean = at.sum(rf"{law} \, {conjugate.replace('@', at.score(f't_{letter}', other))}", other)
        slope = slope.replace("@", t)
        return score, [at.each(rf"{score} = {slope} - {mean}"), at.each(rf"0 < {t}")]

    def __repr__(self) -> str:
        rows = ", ".join(f"({', '.join(f'{x:g}' for x in row)})" for row in self._numbers)
        return f"FInformation([{rows}])"


class VinczeLeCam(FInformation):
    """Σ (p(w, x̂) − p(w) p(x̂))²/(p(w, x̂) + p(w) p(x̂)), between 0 and 2.

    f(t) = (t − 1)²/(t + 1), also called triangular discrimination; some halve it.  Vincze, *On the
    concept and measure of information contained in an observation*, in Contributions to
    Probability, 1981; Le Cam, *Asymptotic Methods in Statistical Decision Theory*, 1986.

    Examples
    --------
    Of two fair bits that differ with probability p, equal ones have t = 2 (1 − p) and others 2p.
    One bit is flipped in a fifth of the records, and p = 0.2 becomes 0.32:

    >>> import cvxprivacy as cpv
    >>> source, lecam = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.leakage.VinczeLeCam()
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=lecam)
    >>> by_hand = sum((2 * p - 1) ** 2 / (2 * p + 1) for p in (0.68, 0.32)) / 2
    >>> round(problem.solve().value, 5), round(by_hand, 5)
    (0.06697, 0.06697)
    """

    kind = "Vincze-Le Cam"
    meaning = "Vincze and Le Cam's divergence from independence, between 0 and 2"

    def __init__(self) -> None:
        super().__init__([(1, 2, 1, -1, 1, 1)])

    @property
    def symbol(self) -> str:
        return r"\mathrm{LC}"

    def data(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def _slope_latex(self) -> tuple[str, str]:
        over = r"\left(@ + 1\right)^2"
        conjugate = rf"\frac{{\left(@ - 1\right) \left(3 \, @ + 1\right)}}{{{over}}}"
        return rf"1 - \frac{{4}}{{{over}}}", conjugate

    def _points(self, slopes: FloatArray) -> FloatArray:
        t = 2.0 / np.sqrt(np.maximum(1.0 - slopes, 1e-40)) - 1.0
        return np.clip(np.log(np.maximum(t, TINY)), *_LOGARITHMS)

    def __repr__(self) -> str:
        return "VinczeLeCam()"


class JensenShannon(FInformation):
    """½ D(J ‖ M) + ½ D(πq ‖ M), M the mean of J and πq: the Jensen–Shannon divergence.

    With weight ½ on either side it is at most log 2, one bit, and as information in the problem's
    units: what x̂ and W tell about whether they were drawn together or apart, where a fair coin
    decides.  f(t) = ½ t log t − ½ (t + 1) log((t + 1)/2).  Lin, *Divergence measures based on the
    Shannon entropy*, IEEE Transactions on Information Theory 37, 1991.

    Examples
    --------
    Two fair bits that differ with probability p = 0.32, after one is flipped in a fifth of the
    records, in bits:

    >>> import cvxprivacy as cpv
    >>> from math import log2
    >>> source, js = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.leakage.JensenShannon()
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=js)
    >>> by_hand = sum(2 * p * log2(2 * p) - (2 * p + 1) * log2(p + 0.5) for p in (0.68, 0.32)) / 4
    >>> round(problem.solve().value, 5), round(by_hand, 5)
    (0.02431, 0.02431)
    """

    kind = "Jensen-Shannon"
    meaning = "Jensen-Shannon divergence from independence, at most one bit"
    in_units = True

    def __init__(self) -> None:
        half = Fraction(1, 2)
        super().__init__([(half, 1, 1, 0, half, half), (half, 1, 0, 1, half, half)])

    @property
    def symbol(self) -> str:
        return r"\mathrm{JS}"

    def data(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def latex(self, at: Places) -> str:
        both = rf"{at.j} + {at.expected}"
        parts = [rf"{x} \, {at.log} \frac{{2 \, {x}}}{{{both}}}" for x in (at.j, at.expected)]
        return at.sum(rf"\tfrac{{1}}{{2}} \left({' + '.join(parts)}\right)")

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        slope = rf"\tfrac{{1}}{{2}} {at.log} \frac{{2 \, @}}{{@ + 1}}"
        return self._tangents(at, slope, rf"\tfrac{{1}}{{2}} {at.log} \frac{{@ + 1}}{{2}}")

    def _points(self, slopes: FloatArray) -> FloatArray:
        # 2t/(t + 1) = e^{2s}
        over = np.maximum(2.0 * np.exp(-2.0 * np.minimum(slopes, 1.0)) - 1.0, 1e-30)
        return np.clip(-np.log(over), *_LOGARITHMS)

    def __repr__(self) -> str:
        return "JensenShannon()"


class PowerDivergence(FInformation):
    """(Σ p(w, x̂)^a (p(w) p(x̂))^(1 − a) − 1)/(a (a − 1)), Cressie and Read's power divergence.

    f(t) = (t^a − 1 − a (t − 1))/(a (a − 1)), whose second derivative at 1 is 1.  Order 2 is half of
    :class:`~cvxprivacy.leakage.ChiSquared`, ½ twice
    :class:`~cvxprivacy.leakage.SquaredHellinger`; towards 1 it is
    :class:`~cvxprivacy.leakage.MutualInformation` in nats.  Cressie and Read, *Multinomial
    Goodness-of-Fit Tests*, Journal of the Royal Statistical Society B 46, 1984, with λ = a − 1 and
    half of their factor 2.

    Parameters
    ----------
    order : number
        a, from 0.1 to 10 and no nearer to 1 than 0.01.

    Raises
    ------
    InputError
        For another order.  At 0 and below F is infinite for every release that rules out a value of
        W, if only by one probability that is rounded to 0, so that no upper end could be proved.

    Examples
    --------
    Of two fair bits that differ with probability p, equal ones have t = 2 (1 − p) and others 2p.
    One bit is flipped in a fifth of the records, and p = 0.2 becomes 0.32:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> power = cpv.leakage.PowerDivergence(1.5)
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=power)
    >>> by_hand = (sum((2 * p) ** 1.5 for p in (0.68, 0.32)) / 2 - 1) / 0.75
    >>> round(problem.solve().value, 5), round(by_hand, 5)
    (0.06535, 0.06535)
    """

    kind = "power divergence"
    meaning = "Cressie and Read's power divergence from independence, of an order"

    def __init__(self, order: Real) -> None:
        self.order = typed(order, "order", negative=True, remedy=_REMEDY)
        exact = rational(self.order)
        if reason := _refused(exact) or ("" if exact != 1 else "is MutualInformation"):
            raise InputError("order", f"{order!r} {reason}", _REMEDY, value=order)
        super().__init__([(1 / abs(exact * (exact - 1)), exact, 1, 0, 0, 1)])

    @property
    def name(self) -> str:
        return f"power divergence {float(self.order):g}"

    @property
    def symbol(self) -> str:
        return rf"\mathrm{{CR}}_{{{float(self.order):g}}}"

    def data(self) -> dict[str, Any]:
        return {"kind": self.kind, "order": written(Fraction(self.order))}

    def _slope_latex(self) -> tuple[str, str]:
        order = float(self.order)
        slope = rf"\frac{{@^{{{order - 1:.12g}}} - 1}}{{{order - 1:.12g}}}"
        return slope, rf"\frac{{@^{{{order:.12g}}} - 1}}{{{order:.12g}}}"

    def _points(self, slopes: FloatArray) -> FloatArray:
        rate = float(self.order) - 1.0  # of f'(t) = t^rate/rate: the other part of f is affine
        points: FloatArray = np.log(np.maximum(rate * slopes, TINY)) / rate
        return np.clip(points, *_LOGARITHMS)

    def __repr__(self) -> str:
        return f"PowerDivergence({float(self.order):g})"


_REMEDY = (
    f"pass a number from {_ORDERS[0]:g} to {_ORDERS[1]:g}, no nearer to 1 than {_APART:g}: at 1 it "
    "is MutualInformation"
)


def _refused(order: Fraction) -> str:
    """Return why an order is refused, nothing if it is not."""
    if order <= 0:
        return "is out of range: it is infinite where a release rules out a value of W"
    if not Fraction(_ORDERS[0]) <= order <= Fraction(_ORDERS[1]):
        return "is out of range"
    return "is too near 1" if order != 1 and abs(order - 1) < Fraction(_APART) else ""


def _checked(terms: Any) -> Exact:
    """Return the numbers of terms, each of which is convex and finite at 0."""
    remedy = "pass rows (c, a, α, β, γ, δ), a term c v φ(u/v) each, u = αt + β, v = γt + δ"
    if callable(terms) or isinstance(terms, str):
        problem = "a function that nobody who checks a proof could trust"
        raise InputError("terms", problem, remedy, value=terms)
    rows = table(terms, "terms", remedy, axes=(2,), negative=True)
    if rows.shape[1] != 6 or not 0 < len(rows) <= MOST_TERMS:
        raise InputError("terms", f"of shape {rows.shape}", remedy, value=terms)
    for i, row in enumerate(rows.tolist()):
        c, order, alpha, beta, gamma, delta = map(rational, row)
        reason = _refused(order)
        checks = [
            (c <= 0, 0, "a weight c ≤ 0", "pass c > 0: a difference of convex functions is none"),
            (bool(reason), 1, f"an order {float(order):g} that {reason}", _REMEDY),
            (gamma < 0, 4, "γ < 0", "pass γ ≥ 0, so that v > 0 for all t ≥ 0"),
            (delta <= 0, 5, "δ ≤ 0: f is infinite at 0, or affine",
             "pass δ > 0; for a < 1 the same term has u and v exchanged, and 1 − a"),
            (order != 2 and (alpha < 0 or beta < 0 or not alpha + beta), 2,
             "u = αt + β that is not positive", "pass α, β ≥ 0, not both 0, or the order 2"),
        ]  # fmt: skip
        for wrong, column, problem, more in checks:
            if wrong:
                raise InputError("terms", problem, more, where=(i, column), value=terms)
    return rows


# ---- LaTeX -------------------------------------------------------------------------------


def _factor(value: float) -> str:
    return "" if value == 1 else rf"{value:.12g} \, "


def _affine(a: float, x: str, b: float, y: str) -> str:
    """Return a x + b y."""
    first = "" if not a else f"{'-' if a < 0 else ''}{_factor(abs(a))}{x}"
    number = f"{_factor(abs(b))}{y}" if y else f"{abs(b):.12g}"
    if not b:
        return first or "0"
    sign = ("-" if b < 0 else "") if not first else (" - " if b < 0 else " + ")
    return f"{first}{sign}{number}"


def _signed(value: float, text: str) -> str:
    """Return a product with its sign in front, nothing where it is 0."""
    return "" if not value else f" {'-' if value < 0 else '+'} {abs(value):.12g}{text}"
