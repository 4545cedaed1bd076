r"""Privacy criteria, per released letter and of the whole channel.

Per released letter x̂ (convex in the joint mass; a letter of mass 0 satisfies each):

====================  ===============================================================
``TCloseness(t)``     D(p(w | x̂) ‖ p(w)) ≤ t      (Bezzi 2010, eq. 8; Rebollo-Monedero
                      et al. 2010, §4.3)
``LDiversity(l)``     H(W | x̂) ≥ log ℓ            (Bezzi 2010, eq. 10)
``KAnonymity(k)``     H(record | x̂) ≥ log k, that is D(p(x | x̂) ‖ p(x)) ≤ log(N/k)
                      (Bezzi 2010, eqs. 5–6)
``DeltaDisclosure``   abs log(p(w | x̂)/p(w)) ≤ δ for every w (Rebollo-Monedero et al. §4.3)
``PerLetter``         another measure of leakage ≤ its bound (:mod:`cvxprivacy.leakage`)
====================  ===============================================================

On the whole channel: ``LeakageCap(b)``, ``LocalPrivacy(epsilon)``, ``MaximalLeakage(b)``.  The
release that comes back satisfies them *provably*, not to a tolerance.

t, leakages and b are in the problem's units; ε and δ are natural logarithms always; k and ℓ
are counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real
from cvxprivacy.leakage import EarthMover, Leakage, MutualInformation, TotalVariation, checked
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.parameter import Parameter, Scalar
from cvxprivacy.programs.side_conditions import Auxiliary, Rule
from cvxprivacy.validation import one_of, typed

__all__ = [
    "DeltaDisclosure",
    "KAnonymity",
    "LDiversity",
    "LeakageCap",
    "LocalInformationPrivacy",
    "LocalPrivacy",
    "MaximalLeakage",
    "PerLetter",
    "PerfectPrivacy",
    "PointwiseMaximalLeakage",
    "TCloseness",
]

_EXPONENT = 700.0  # e to its power is a float
_DISTANCES: dict[str, Callable[[], Leakage]] = {
    "kl": MutualInformation,
    "tv": TotalVariation,
    "emd": EarthMover,
}


def _larger(number: float) -> float:
    return max(2 * number, 64.0)


def _exponent(number: float) -> float:
    return min(max(2 * number, 20.0), _EXPONENT - 1)


class PerLetter(Criterion):
    """A measure of leakage, bounded for every released letter: F(J(·, x̂)) ≤ bound · q(x̂).

    Parameters
    ----------
    leakage : Leakage
        Such as ``cpv.leakage.TotalVariation()``: then TV(p(w | x̂), p(w)) ≤ bound for every x̂.
    bound : number
        In the measure's unit; ≥ 0 unless that may be negative, as gains may.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rule = cpv.PerLetter(cpv.leakage.TotalVariation(), 0.2)
    >>> round(cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve().value, 4)
    0.1667
    """

    name = "per_letter"
    bound = Parameter(negative=True, loosest=_larger)

    def __init__(self, leakage: Leakage, bound: Real) -> None:
        self.leakage = checked(leakage, "leakage")
        self.bound = typed(bound, "bound", negative=self.leakage.signed)

    def at(self, value: Real) -> Criterion:
        return type(self)(self.leakage, value)

    @property
    def latex(self) -> str:
        left = rf"{self.leakage.symbol}(p_{{W \mid \hat x}}, p_W)"
        return rf"{left} \le {float(self.bound):g} \;\forall \hat x"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return _per_letter(release, self.leakage, self.bound, self.leakage.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.leakage!r}, {float(self.bound):g})"


def _per_letter(
    release: Alphabet, measure: Leakage, bound: Real | Scalar, name: str
) -> Mapping[str, Rule]:
    """Return F(J(·, x̂)) ≤ bound · q(x̂), for what each observer sees."""
    return {
        o.name: release.leaked(measure, "W", o).named(name).each()
        <= bound * release.mass(None, o).each()
        for o in release.observers
    }


def _independent(release: Alphabet, zero: Real | Scalar) -> Mapping[str, Rule]:
    """Return that no letter tells anything about W; ``zero`` is the number that was typed."""
    return _per_letter(release, MutualInformation(), zero, "t-closeness")


class _Distance(EarthMover):
    """Earth mover's distance, of which t-closeness calls the ground so."""

    _called = "distance"


class TCloseness(Criterion):
    """The law of W at every released letter x̂ is t-close to its law at large.

    Parameters
    ----------
    t : number
        t ≥ 0.
    distance : "kl", "tv", "emd" or array_like, shape (|W|, |W|)
        D(p(w | x̂) ‖ p(w)) in the problem's units (Bezzi; Rebollo-Monedero et al.); total variation;
        earth mover's distance of ordered values, abs(i − j)/(|W| − 1), or of any ground distances
        (N. Li, T. Li and S. Venkatasubramanian, ICDE 2007, who name t-closeness).
    """

    name = "t_closeness"
    t = Parameter(loosest=_larger)

    def __init__(self, t: Real, distance: str | npt.ArrayLike = "kl") -> None:
        self.t = t
        self.distance = distance
        if isinstance(distance, str):
            one_of(distance, "distance", *_DISTANCES)
            self.leakage = _DISTANCES[distance]()
        else:
            self.leakage = _Distance(distance)

    def at(self, value: Real) -> Criterion:
        return type(self)(value, self.distance)

    @property
    def by_divergence(self) -> bool:
        """Whether it is Kullback and Leibler's divergence that t bounds."""
        return self.leakage.informs

    @property
    def latex(self) -> str:
        other = rf"{self.leakage.symbol}(p_{{W \mid \hat x}}, p_W)"
        left = r"D(p_{W \mid \hat x} \,\|\, p_W)" if self.by_divergence else other
        return rf"{left} \le {float(self.t):g} \;\forall \hat x"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return _per_letter(release, self.leakage, self.t, "t-closeness")

    def __repr__(self) -> str:
        named = self.distance if isinstance(self.distance, str) else self.leakage
        how = "" if self.by_divergence else f", {named!r}"
        return f"TCloseness({float(self.t):g}{how})"


class LDiversity(Criterion):
    """H(W | x̂) ≥ log ℓ for every x̂: entropy ℓ-diversity, ℓ ≥ 1; maximum information leakage."""

    name = "l_diversity"
    l = Parameter(least=1.0, loosest=1.0)  # noqa: E741

    def __init__(self, l: Real) -> None:  # noqa: E741
        self.l = l

    @property
    def latex(self) -> str:
        return rf"H(W \mid \hat x) \ge \log {float(self.l):g} \;\forall \hat x"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if self.l > len(release.p_w):
            problem = f"{self.l:g} exceeds the {len(release.p_w)} values that W takes"
            remedy = f"pass at most {len(release.p_w)}"
            raise InputError("l", problem, remedy, value=self.l.near)
        log_l, units = self.l.log(release.units), release.units
        factors = [log_l + Scalar(p).log(units) for p in release.p_w]
        rules = {}
        for o in release.observers:  # Φ_W(x̂) + Σ_w J(w, x̂) log p(w) ≤ −q(x̂) log ℓ
            left = release.information("W", o) + release.weighed(factors, o)
            rules[o.name] = left.named("l-diversity").each() <= 0
        return rules


class KAnonymity(Criterion):
    """Record-level k-anonymity: H(record | x̂) ≥ log k for every released letter x̂, k ≥ 1.

    As H(record | x̂) = log N − D(p(s | x̂) ‖ p(s)), s what the encoder sees of a record (x, or w
    and x), it is Φ_S(x̂) ≤ q(x̂) log(N/k); exact for deterministic groups.  Needs the number of
    records N behind the source.
    """

    name = "k_anonymity"
    k = Parameter(least=1.0, loosest=1.0)

    def __init__(self, k: Real) -> None:
        self.k = k

    @property
    def latex(self) -> str:
        return rf"H(\text{{record}} \mid \hat x) \ge \log {float(self.k):g} \;\forall \hat x"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        source = release.source
        if source.records is None:
            remedy = "make it with DiscreteSource.from_counts, from_table, or records="
            raise InputError("source", "no number of records behind it", remedy)
        if source.weighted:
            raise InputError("source", "weighted records cannot be counted", "leave weights= out")
        rules = {}
        for o in release.observers:
            records = source.records * o.share
            if self.k > records:
                those = "" if o.z is None else f" with {source.names[-1]} = {o.name}"
                problem = f"{self.k:g} exceeds the {float(records):g} records{those}"
                remedy = f"pass at most {float(records):g}"
                raise InputError("k", problem, remedy, value=self.k.near)
            log = -(self.k / records).log(release.units)  # log N/k
            information = release.information("S", o).named("k-anonymity")
            rules[o.name] = information.each() <= log * release.mass(None, o).each()
        return rules


class DeltaDisclosure(Criterion):
    """e^−δ ≤ p(w | x̂)/p(w) ≤ e^δ for every w and released x̂, δ ≥ 0 a natural logarithm."""

    name = "delta_disclosure"
    delta = Parameter(below=_EXPONENT, loosest=_exponent)

    def __init__(self, delta: Real) -> None:
        self.delta = delta

    @property
    def latex(self) -> str:
        return rf"|\ln (p(w \mid \hat x) / p(w))| \le {float(self.delta):g} \;\forall w, \hat x"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if not self.delta:  # x̂ and W are independent, which t = 0 says too
            return _independent(release, self.delta)
        return _ratios(release, self.delta, ("above", "below"))


def _ratios(release: Alphabet, number: Scalar, sides: Sequence[str]) -> Mapping[str, Rule]:
    """Return p(w | x̂) ≤ e^number p(w), or ≥ e^−number p(w), for every w and x̂."""
    rules: dict[str, Rule] = {}
    for w, p in enumerate(release.p_w):
        for side in sides:
            sign = 1 if side == "above" else -1
            bound = (sign * number).exp() * p
            factors = [sign * ((v == w) - bound) for v in range(len(release.p_w))]
            for o in release.observers:  # ± (J(w, x̂) − e^±δ p(w) q(x̂)) ≤ 0
                key = f"{side}[{w}]{o.name and f'|{o.name}'}"
                rules[key] = release.weighed(factors, o).named("delta").each() <= 0
    return rules


class LocalInformationPrivacy(DeltaDisclosure):
    """e^−ε ≤ p(w | x̂)/p(w) ≤ e^ε: δ-disclosure privacy under another name, ε a natural logarithm.

    Calmon and Fawaz, *Privacy against statistical inference*, Allerton 2012 (information privacy).
    """

    name = "local_information_privacy"

    def __init__(self, epsilon: Real) -> None:
        super().__init__(epsilon)


class PointwiseMaximalLeakage(Criterion):
    """max_w p(w | x̂)/p(w) ≤ e^ε for every released x̂, ε ≥ 0 a natural logarithm.

    Saeidian, Cervia, Oechtering and Skoglund, *Pointwise Maximal Leakage*, IEEE Transactions on
    Information Theory 69, 2023: no function of W is e^ε times more easily guessed from any x̂.
    """

    name = "pointwise_maximal_leakage"
    epsilon = Parameter(below=_EXPONENT, loosest=_exponent)

    def __init__(self, epsilon: Real) -> None:
        self.epsilon = epsilon

    @property
    def latex(self) -> str:
        limit = rf"e^{{{float(self.epsilon):g}}}"
        return rf"p(w \mid \hat x) \le {limit}\, p(w) \;\forall w, \hat x"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if not self.epsilon:  # no posterior above the prior is the prior
            return _independent(release, self.epsilon)
        return _ratios(release, self.epsilon, ("above",))


class PerfectPrivacy(Criterion):
    """W and X̂ are independent: nothing at all is leaked, in any measure."""

    name = "perfect_privacy"

    @property
    def latex(self) -> str:
        return r"I(W; \hat X) = 0"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return _independent(release, 0)


class LeakageCap(Criterion):
    """I(W; X̂) ≤ b, the average information leakage (Rebollo-Monedero et al. 2010, eq. 2).

    Parameters
    ----------
    b : number
        In the problem's units, or in the unit of the measure; ≥ 0 unless that may be negative.
    leakage : Leakage, optional
        Another measure: Σ_x̂ F(J(·, x̂)) ≤ b.
    """

    name = "leakage_cap"
    b = Parameter(negative=True, loosest=_larger)

    def __init__(self, b: Real, leakage: Leakage | None = None) -> None:
        self.leakage = None if leakage is None else checked(leakage, "leakage")
        self.b = typed(b, "b", negative=self.measure.signed)

    def at(self, value: Real) -> Criterion:
        return type(self)(value, self.leakage)

    @property
    def latex(self) -> str:
        return rf"{self.measure.symbol}(W; \hat X) \le {float(self.b):g}"

    @property
    def measure(self) -> Leakage:
        """What leaks: mutual information, unless another measure was named."""
        return MutualInformation() if self.leakage is None else self.leakage

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        leaked = release.risk if self.leakage is None else release.leaked(self.leakage)
        return {"": leaked <= self.b}

    def __repr__(self) -> str:
        of = "" if self.leakage is None else f", {self.leakage!r}"
        return f"LeakageCap({float(self.b):g}{of})"


class LocalPrivacy(Criterion):
    """p(x̂ | s) ≤ e^ε p(x̂ | s') for all inputs s, s' and outputs x̂: ε-local privacy.

    ε ≥ 0 is a natural logarithm.  It protects the encoder's whole input.
    """

    name = "local_privacy"
    epsilon = Parameter(below=_EXPONENT, loosest=_exponent)

    def __init__(self, epsilon: Real) -> None:
        self.epsilon = epsilon

    @property
    def latex(self) -> str:
        return rf"p(\hat x \mid s) \le e^{{{float(self.epsilon):g}}} p(\hat x \mid s')"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return {"": Auxiliary.of("ratio", self.epsilon.exp())}


class MaximalLeakage(Criterion):
    """log Σ_x̂ max_s p(x̂ | s) ≤ b, in the problem's units, b ≥ 0."""

    name = "maximal_leakage"
    b = Parameter(below=_EXPONENT, loosest=lambda b: min(_larger(b), _EXPONENT - 1))

    def __init__(self, b: Real) -> None:
        self.b = b

    @property
    def latex(self) -> str:
        return rf"\log \sum_{{\hat x}} \max_s p(\hat x \mid s) \le {float(self.b):g}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return {"": Auxiliary.of("maximum", self.b.exp(2.0 if release.units == "bits" else math.e))}
