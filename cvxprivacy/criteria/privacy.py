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
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.counts import (
    Counts,
    Verdict,
    disclosure,
    entropy_diversity,
    leaked,
    refuse_uncounted,
)
from cvxprivacy.criteria.decisions import at_least_zero, common, within
from cvxprivacy.criteria.words import Words
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, Real, rational
from cvxprivacy.leakage import (
    EarthMover,
    Leakage,
    MaximalLeakageOf,
    MutualInformation,
    TotalVariation,
)
from cvxprivacy.leakage.base import checked
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import nat
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.lettering import Lettering, Wording
from cvxprivacy.programs.notation import tex
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

    Raises
    ------
    InputError
        For what is no measure, or a bound that it cannot have.

    Examples
    --------
    The posterior of a fair bit may be 0.7 at most, 0.2 from the prior.  X = W but for a share 0.2,
    and p(w | x̂) = 0.8 − 0.6 D if X is flipped with probability D: D = 1/6.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rule = cpv.PerLetter(cpv.leakage.TotalVariation(), 0.2)
    >>> solution = cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve()
    >>> round(solution.value, 4), round(solution.prices["per_letter"], 4)
    (0.1667, -1.6667)
    """

    name = "per_letter"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in every released group, {how} is at most {n}",
        "greatest {measure}",
        "{unit}",
        examples=("PerLetter=0.2:total-variation",),
    )
    bound = Parameter(negative=True, loosens="up", loosest=_larger)

    def __init__(self, leakage: Leakage, bound: Real) -> None:
        self.leakage = checked(leakage, "leakage")
        self.bound = typed(bound, "bound", negative=self.leakage.signed)

    @property
    def measure(self) -> Leakage:
        """What leaks."""
        return self.leakage

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_by_letter(self.leakage, rational(self.bound))

    def at(self, value: Real) -> Criterion:
        return type(self)(self.leakage, value)

    def stated(self, of: Lettering) -> str:
        left = rf"{self.leakage.symbol}({_laws(of, ', ')})"
        return rf"{left} \le {tex(float(self.bound))} \quad \forall\, {of.seen}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return _per_letter(release, self.leakage, self.bound, self.leakage.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.leakage!r}, {float(self.bound):g})"


def _laws(of: Lettering, between: str) -> str:
    """Return the law of W as what is released tells it, and as it is."""
    hidden = of.w.upper()
    return rf"p_{{{hidden} \mid {of.seen}}}{between}p_{hidden}"


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
        t ≥ 0: in the problem's units with ``"kl"``, else a share of the largest distance.
    distance : "kl", "tv", "emd" or array_like, shape (|W|, |W|)
        D(p(w | x̂) ‖ p(w)) (Bezzi; Rebollo-Monedero et al.); total variation; earth mover's
        distance of ordered values, abs(i − j)/(|W| − 1), or of any ground distances (N. Li, T. Li
        and S. Venkatasubramanian, ICDE 2007, who name t-closeness).

    Raises
    ------
    InputError
        For a negative t, or what is no distance.

    Examples
    --------
    Two fair bits differ with probability 0.2.  At t = 1 − h(0.3) the posterior may be 0.7 at
    most, and X is flipped with the probability 1/6 that makes it so:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> t = 1 - cpv.information.entropy([0.3, 0.7])
    >>> solution = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.TCloseness(t)]).solve()
    >>> round(t, 4), round(solution.value, 4)
    (0.1187, 0.1667)

    In total variation that is t = 0.7 − 0.5:

    >>> rule = cpv.TCloseness(0.2, distance="tv")
    >>> round(cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve().value, 4)
    0.1667
    """

    name = "t_closeness"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in every released group, the distribution of {w} is within {n} of that in the whole table "
        "({how})",
        "greatest {measure}",
        "{unit}",
        definition="t-closeness: no group's distribution of W is farther than t from the whole "
        "table's.",
        source="N. Li, T. Li and S. Venkatasubramanian, t-closeness, ICDE (2007)",
        examples=("TCloseness=0.1", "TCloseness=0.15:emd"),
    )
    t = Parameter(loosens="up", loosest=_larger)

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
    def measure(self) -> Leakage:
        """The distance that t bounds."""
        return self.leakage

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_by_letter(self.leakage, rational(self.t))

    def mean_information(self, entropy: float, units: str) -> tuple[str, float] | None:
        return ("t", float(self.t)) if self.leakage.informs else None

    def stated(self, of: Lettering) -> str:
        other = rf"{self.leakage.symbol}({_laws(of, ', ')})"
        divergence = _laws(of, r" \,\|\, ")
        left = f"D({divergence})" if self.leakage.informs else other
        return rf"{left} \le {tex(float(self.t))} \quad \forall\, {of.seen}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return _per_letter(release, self.leakage, self.t, "t-closeness")

    def __repr__(self) -> str:
        named = self.distance if isinstance(self.distance, str) else self.leakage
        how = "" if self.leakage.informs else f", {named!r}"
        return f"TCloseness({float(self.t):g}{how})"


class LDiversity(Criterion):
    """H(W | x̂) ≥ log ℓ for every x̂: entropy ℓ-diversity; maximum information leakage.

    Bezzi 2010, eq. (10).

    Parameters
    ----------
    l : number
        ℓ, 1 ≤ ℓ ≤ |W|, a number of values as likely as each other, which need not be whole.

    Raises
    ------
    InputError
        For an ℓ < 1; once there is a source, for one above the values that W takes.

    Examples
    --------
    A posterior (0.3, 0.7) is as uncertain as 2^h(0.3) = 1.842 equal values.  Two fair bits that
    differ with probability 0.2 have it if X is flipped with probability 1/6:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> diverse = cpv.LDiversity(2 ** cpv.information.entropy([0.3, 0.7]))
    >>> solution = cpv.MinimumDistortion(source, cpv.hamming(2), [diverse]).solve()
    >>> diverse, round(solution.value, 4), solution.prices["l_diversity"] > 0
    (LDiversity(1.84202), 0.1667, True)
    """

    name = "l_diversity"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in every released group, {w} is as uncertain as {n} equally likely values, or more",
        "least diversity",
        "values",
        at_least=True,
        definition="ℓ-diversity: in no group is W less uncertain than ℓ equally likely values.",
        source="A. Machanavajjhala et al., ℓ-diversity, ACM TKDD 1(1) (2007)",
        examples=("LDiversity=2.5",),
    )
    only_perfect_when_tightest = True
    l = Parameter(least=1.0, loosens="down", loosest=1.0)  # noqa: E741

    def __init__(self, l: Real) -> None:  # noqa: E741
        self.l = l

    def verdict(self, table: Counts) -> Verdict:
        bound = rational(self.l)

        def decide(y: int) -> bool:  # Σ J log(q/J) ≥ q log ℓ
            joint = common(table.joint[:, y].tolist())
            q = sum(joint)
            return at_least_zero([(j, Fraction(q, j)) for j in joint if j] + [(-q, bound)])

        return table.of_letters(entropy_diversity(table.joint), bound, decide, at_least=True)

    def tightest(self, laws: Sequence[DiscreteSource]) -> float:
        """On average H(W | x̂) is at most H(W)."""
        return math.exp(min(law.entropy(units="nats") for law in laws)) * (1 - 1e-12)

    def mean_information(self, entropy: float, units: str) -> tuple[str, float]:
        return "H(W) − log ℓ", entropy - math.log(self.l) * nat(units)

    def stated(self, of: Lettering) -> str:
        left = rf"H({of.w.upper()} \mid {of.seen})"
        return rf"{left} \ge \log {tex(float(self.l))} \quad \forall\, {of.seen}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if self.l > len(release.p_w):
            problem = f"{self.l:g} exceeds the {len(release.p_w)} values that W takes"
            remedy = f"pass at most {len(release.p_w)}"
            raise InputError("l", problem, remedy, value=self.l.near)
        log_l, units = self.l.log(release.units), release.units
        factors = [log_l + Scalar(p).log(units) for p in release.p_w]
        rules = {}
        for o in release.observers:  # Φ_W(x̂) + Σ_w J(w, x̂) log p(w) ≤ −q(x̂) log ℓ
            of, free = release.lettering, release.free(o)
            words = Wording(rf"{of.log} {of.law}(@w)", "w", free)
            least = Wording(rf"{of.log} {tex(self.l.near)}", "", free)
            left = release.information("W", o) + release.weighed(factors, o).worded(words, least)
            rules[o.name] = left.named("l-diversity").each() <= 0
        return rules


class KAnonymity(Criterion):
    """Record-level k-anonymity: H(record | x̂) ≥ log k for every released letter x̂.

    Bezzi 2010, eqs. (5) and (6).  As H(record | x̂) = log N − D(p(s | x̂) ‖ p(s)), s what the
    encoder sees of a record (x, or w and x), it is Φ_S(x̂) ≤ q(x̂) log(N/k); exact for
    deterministic groups.  Needs the number of records N behind the source.

    Parameters
    ----------
    k : number
        k, 1 ≤ k ≤ N.

    Raises
    ------
    InputError
        For a k < 1; once there is a source, for one above its records, or without any number of
        them.

    Examples
    --------
    Ten records, five of each x.  Every x stands for five, so that 5-anonymity costs nothing; with
    k = 10 all must look alike, and half of them are changed:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[4, 1], [1, 4]])
    >>> for k in (5, 8, 10):
    ...     solution = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.KAnonymity(k)]).solve()
    ...     print(k, f"{abs(solution.value):.4f}")
    5 0.0000
    8 0.1791
    10 0.5000
    """

    name = "k_anonymity"
    survives_merging = survives_informed_encoder = True
    counts_records = True
    words = Words(
        "every released group stands for at least {n} records",
        "least group",
        "records",
        at_least=True,
        definition="k-anonymity: nobody hides among fewer than k records.",
        source="P. Samarati, Protecting respondents' identities in microdata release, TKDE 13 "
        "(2001)",
        examples=("KAnonymity=5",),
    )
    k = Parameter(least=1.0, loosens="down", loosest=1.0)

    def __init__(self, k: Real) -> None:
        self.k = k

    def tightest(self, laws: Sequence[DiscreteSource]) -> float | None:
        """All records are one group."""
        counted = [law.records for law in laws if law.records is not None]
        return float(min(counted)) if len(counted) == len(laws) else None

    def verdict(self, table: Counts) -> Verdict:
        sizes, bound = refuse_uncounted(table), rational(self.k)
        values = np.where(sizes > 0, sizes, math.nan)
        records = Counts(np.asarray(sizes)[None], table.units)  # whole, whatever W weighs
        return records.of_letters(
            values, bound, lambda y: rational(sizes[y]) >= bound, at_least=True
        )

    def stated(self, of: Lettering) -> str:
        left = rf"H(\text{{record}} \mid {of.seen})"
        return rf"{left} \ge \log {tex(float(self.k))} \quad \forall\, {of.seen}"

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
            of, share = release.lettering, "" if o.z is None else r" \, p(z)"
            number = "N_k" if of.several else str(source.records)
            ratio = rf"\frac{{{number}{share}}}{{{tex(self.k.near)}}}"
            words = Wording(rf"{of.log} {ratio}", "", release.free(o))
            most = (log * release.mass(None, o)).worded(words)
            rules[o.name] = information.each() <= most.each()
        return rules


class DeltaDisclosure(Criterion):
    """e^−δ ≤ p(w | x̂)/p(w) ≤ e^δ for every w and released x̂.

    Rebollo-Monedero et al. 2010, §4.3, after Brickell and Shmatikov.

    Parameters
    ----------
    delta : number
        δ ≥ 0, a natural logarithm whatever the problem's units; 0 is perfect privacy.

    Raises
    ------
    InputError
        For a negative or a huge δ.

    Examples
    --------
    No value may become more than 1.4 times, or less than 1/1.4 times, as likely as before: the
    posterior of a fair bit is at least 0.5/1.4.  Two bits that differ with probability 0.2, and
    with 0.2 + 0.6 D if one is flipped with probability D, meet that at D = 0.2619:

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rule = cpv.DeltaDisclosure(log(1.4))
    >>> round(cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve().value, 4)
    0.2619
    """

    name = "delta_disclosure"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in every released group, the share of each value of {w} is within a factor e^{n} of its "
        "share in the whole table",
        "greatest log ratio",
        "nats",
        definition="δ-disclosure: no value of W is more or less frequent in a group than in the "
        "table by more than a factor e^δ.",
        source="J. Brickell and V. Shmatikov, The cost of privacy, KDD (2008)",
        examples=("DeltaDisclosure=1",),
    )
    delta = Parameter(below=_EXPONENT, loosens="up", loosest=_exponent)

    def __init__(self, delta: Real) -> None:
        self.delta = delta

    def verdict(self, table: Counts) -> Verdict:
        values = disclosure(table.joint, reference=table.reference)
        return _ratio_verdict(table, values, rational(self.delta), below=True)

    def stated(self, of: Lettering) -> str:
        ratio = rf"p({of.w} \mid {of.seen}) / p({of.w})"
        return rf"|\ln ({ratio})| \le {tex(float(self.delta))} \quad \forall\, {of.w}, {of.seen}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if not self.delta:  # x̂ and W are independent, which t = 0 says too
            return _independent(release, self.delta)
        return _ratios(release, self.delta, ("above", "below"))


def _ratios(release: Alphabet, number: Scalar, sides: Sequence[str]) -> Mapping[str, Rule]:
    """Return p(w | x̂) ≤ e^number p(w), or ≥ e^−number p(w), for every w and x̂."""
    rules: dict[str, Rule] = {}
    of = release.lettering
    for w, p in enumerate(release.p_w):
        for side in sides:
            sign = 1 if side == "above" else -1
            bound = (sign * number).exp() * p
            factors = [sign * ((v == w) - bound) for v in range(len(release.p_w))]
            for o in release.observers:  # ± (J(w, x̂) − e^±δ p(w) q(x̂)) ≤ 0
                key = f"{side}[{w}]{o.name and f'|{o.name}'}"
                left = release.weighed(factors, o).named("delta")
                free = (of.w, *release.free(o))
                event = Wording("", "", free, of.w)
                limit = Wording(rf"e^{{{tex(sign * number.near)}}} \, {of.law}(@w)", "", free)
                words = ([event], [limit]) if sign > 0 else ([limit], [event])
                rules[key] = left.worded(*words[0], less=words[1]).each() <= 0
    return rules


def _ratio_verdict(table: Counts, values: FloatArray, bound: Fraction, *, below: bool) -> Verdict:
    """Return whether p(w | x̂)/p(w) is at most e^bound, and at least e^−bound if ``below``."""

    def decide(y: int) -> bool:
        joint, masses = common(table.joint[:, y].tolist()), common(table.masses.tolist())
        q, total = sum(joint), sum(masses)
        ratios = [Fraction(j * total, p * q) for j, p in zip(joint, masses, strict=True) if p]
        inverse = [1 / ratio for ratio in ratios if ratio] if below else []
        return not (below and 0 in ratios) and all(within(r, bound) for r in ratios + inverse)

    return table.of_letters(values, bound, decide)


class LocalInformationPrivacy(DeltaDisclosure):
    """e^−ε ≤ p(w | x̂)/p(w) ≤ e^ε for every w and released x̂, as ``DeltaDisclosure`` asks.

    Calmon and Fawaz, *Privacy against statistical inference*, Allerton 2012 (information privacy).

    Parameters
    ----------
    epsilon : number
        ε ≥ 0, a natural logarithm whatever the problem's units; 0 is perfect privacy.

    Raises
    ------
    InputError
        For a negative or a huge ε.

    Examples
    --------
    It costs what δ-disclosure does, and more than a bound from above alone, which
    :class:`PointwiseMaximalLeakage` is:

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> source, d = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.hamming(2)
    >>> kinds = cpv.LocalInformationPrivacy, cpv.DeltaDisclosure, cpv.PointwiseMaximalLeakage
    >>> problems = [cpv.MinimumDistortion(source, d, [kind(log(1.4))]) for kind in kinds]
    >>> [round(problem.solve().value, 4) for problem in problems]
    [0.2619, 0.2619, 0.1667]
    """

    name = "local_information_privacy"
    words = Words(
        "in every released group, the share of each value of {w} is within a factor e^{n} of its "
        "share in the whole table",
        "greatest log ratio",
        "nats",
        definition="Local information privacy: no value of W is more or less frequent in a group "
        "than in the table by more than a factor e^ε.",
        source="F. P. Calmon and N. Fawaz, Privacy against statistical inference, Allerton (2012)",
        examples=("LocalInformationPrivacy=1",),
    )

    def __init__(self, epsilon: Real) -> None:
        super().__init__(epsilon)


class PointwiseMaximalLeakage(Criterion):
    """max_w p(w | x̂)/p(w) ≤ e^ε for every released x̂.

    Saeidian, Cervia, Oechtering and Skoglund, *Pointwise Maximal Leakage*, IEEE Transactions on
    Information Theory 69, 2023: no function of W is e^ε times more easily guessed from any x̂.

    Parameters
    ----------
    epsilon : number
        ε ≥ 0, a natural logarithm whatever the problem's units; 0 is perfect privacy.

    Raises
    ------
    InputError
        For a negative or a huge ε.

    Examples
    --------
    A fair bit may become 1.4 times as likely, 0.7 instead of 0.5.  Two bits that differ with
    probability 0.2, and with 0.2 + 0.6 D if one is flipped with probability D, meet that at
    D = 1/6:

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rule = cpv.PointwiseMaximalLeakage(log(1.4))
    >>> round(cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve().value, 4)
    0.1667
    """

    name = "pointwise_maximal_leakage"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in no released group is any value of {w} more than e^{n} times as frequent as in the "
        "whole table",
        "greatest log ratio",
        "nats",
        definition="Pointwise maximal leakage: no group makes any guess about W more than e^ε "
        "times better.",
        source="S. Saeidian et al., Pointwise maximal leakage, IEEE Trans. Inf. Theory 69 (2023)",
        examples=("PointwiseMaximalLeakage=1",),
    )
    epsilon = Parameter(below=_EXPONENT, loosens="up", loosest=_exponent)

    def __init__(self, epsilon: Real) -> None:
        self.epsilon = epsilon

    def verdict(self, table: Counts) -> Verdict:
        how: dict[str, Any] = {"reference": table.reference}
        values = np.log(leaked(MaximalLeakageOf(), table.joint, **how))
        return _ratio_verdict(table, values, rational(self.epsilon), below=False)

    def stated(self, of: Lettering) -> str:
        limit = rf"e^{{{tex(float(self.epsilon))}}}"
        left = rf"p({of.w} \mid {of.seen})"
        return rf"{left} \le {limit} \, p({of.w}) \quad \forall\, {of.w}, {of.seen}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if not self.epsilon:  # no posterior above the prior is the prior
            return _independent(release, self.epsilon)
        return _ratios(release, self.epsilon, ("above",))


class PerfectPrivacy(Criterion):
    """W and X̂ are independent: nothing at all is leaked, in any measure.

    Examples
    --------
    Two bits that depend on each other: only a release that tells nothing about X is silent about
    W, and half of the records are changed.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.PerfectPrivacy()])
    >>> round(problem.solve().value, 4)
    0.5

    Where X has a part that W does not depend on, that part is released.  Of four values of X the
    last bit is independent of W:

    >>> source = cpv.DiscreteSource([[0.2, 0.2, 0.05, 0.05], [0.05, 0.05, 0.2, 0.2]])
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(4), [cpv.PerfectPrivacy()])
    >>> round(problem.solve().value, 4)  # 3/4 for a release that tells nothing about X
    0.5
    """

    name = "perfect_privacy"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "the released columns tell nothing at all about {w}",
        "greatest {measure}",
        "{unit}",
        examples=("PerfectPrivacy",),
    )

    @property
    def measure(self) -> Leakage:
        """Mutual information, which is 0 where all others are."""
        return MutualInformation()

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_by_letter(self.measure, Fraction(0))

    def stated(self, of: Lettering) -> str:
        return rf"I({of.w.upper()}; {of.held}) = 0"

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

    Raises
    ------
    InputError
        For a b that the measure cannot have, or what is no measure.

    Examples
    --------
    Two fair bits differ with probability 0.2, and with 0.2 + 0.6 D if X is flipped with
    probability D.  A cap of 1 − h(0.3) bits asks for D = 1/6; so does one guess in 0.7 right:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> caps = [
    ...     cpv.LeakageCap(1 - cpv.information.entropy([0.3, 0.7])),
    ...     cpv.LeakageCap(0.7, leakage=cpv.leakage.GuessingProbability()),
    ... ]
    >>> [round(cpv.MinimumDistortion(source, cpv.hamming(2), [c]).solve().value, 4) for c in caps]
    [0.1667, 0.1667]
    """

    name = "leakage_cap"
    survives_merging = survives_informed_encoder = True
    _divergence = "information"
    words = Words(
        "on average, the released columns tell at most {n} about {w} ({how})",
        "{measure}",
        "{unit}",
        definition="A leakage cap bounds what is told on average over the records.",
        source="D. Rebollo-Monedero, J. Forné and J. Domingo-Ferrer, From t-closeness-like privacy "
        "to postrandomization via information theory, IEEE TKDE 22(11) (2010)",
        examples=("LeakageCap=0.05", "LeakageCap=0.6:guessing-probability"),
    )
    b = Parameter(negative=True, loosens="up", loosest=_larger)

    def __init__(self, b: Real, leakage: Leakage | None = None) -> None:
        self.leakage = None if leakage is None else checked(leakage, "leakage")
        self.b = typed(b, "b", negative=self.measure.signed)

    def at(self, value: Real) -> Criterion:
        return type(self)(value, self.leakage)

    def stated(self, of: Lettering) -> str:
        return rf"{self.measure.symbol}({of.w.upper()}; {of.held}) \le {tex(float(self.b))}"

    @property
    def measure(self) -> Leakage:
        """What leaks: mutual information, unless another measure was named."""
        return MutualInformation() if self.leakage is None else self.leakage

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_in_all(self.measure, rational(self.b))

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        leaked = release.risk if self.leakage is None else release.leaked(self.leakage)
        return {"": leaked <= self.b}

    def __repr__(self) -> str:
        of = "" if self.leakage is None else f", {self.leakage!r}"
        return f"LeakageCap({float(self.b):g}{of})"


class LocalPrivacy(Criterion):
    """p(x̂ | s) ≤ e^ε p(x̂ | s') for all inputs s, s' and outputs x̂: ε-local privacy.

    It protects the encoder's whole input, and holds under any law of it.

    Parameters
    ----------
    epsilon : number
        ε ≥ 0, a natural logarithm whatever the problem's units.

    Raises
    ------
    InputError
        For a negative or a huge ε.

    Examples
    --------
    The optimum for a fair bit is randomised response, which lies with probability 1/(1 + e^ε):

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> source = cpv.DiscreteSource.identical([0.5, 0.5])
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.LocalPrivacy(log(3))])
    >>> problem.solve().channel.matrix.round(4).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    name = "local_privacy"
    survives_merging = True
    words = Words(
        "no record's own {x} makes any released value more than e^{n} times as probable as another "
        "record's would",
        "greatest log ratio",
        "nats",
        examples=("LocalPrivacy=2",),
    )
    epsilon = Parameter(below=_EXPONENT, loosens="up", loosest=_exponent)

    def __init__(self, epsilon: Real) -> None:
        self.epsilon = epsilon

    def stated(self, of: Lettering) -> str:
        other = ", ".join(f"{letter}'" for letter in of.inputs)
        left = rf"{of.channel} \le e^{{{tex(float(self.epsilon))}}} \, p({of.y} \mid {other})"
        return rf"{left} \quad \forall\, {of.s}, {other}, {of.y}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        most = self.epsilon.exp()
        return {"": Auxiliary.of("ratio", most, rf"e^{{{tex(self.epsilon.near)}}}")}


class MaximalLeakage(Criterion):
    """log Σ_x̂ max_s p(x̂ | s) ≤ b: maximal leakage of all that is encoded.

    Issa, Wagner and Kamath, *An Operational Approach to Information Leakage*, IEEE Transactions on
    Information Theory 66, 2020.  That of W alone is :class:`cvxprivacy.leakage.MaximalLeakageOf`.

    Parameters
    ----------
    b : number
        b ≥ 0, in the problem's units.

    Raises
    ------
    InputError
        For a negative or a huge b.

    Examples
    --------
    A bit that is flipped with probability D has Σ max = 2(1 − D): log₂ 1.5 bits ask for D = ¼.

    >>> import cvxprivacy as cpv
    >>> from math import log2
    >>> source = cpv.DiscreteSource.identical([0.5, 0.5])
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.MaximalLeakage(log2(1.5))])
    >>> round(problem.solve().value, 4)
    0.25
    """

    name = "maximal_leakage"
    survives_merging = True
    words = Words(
        "whatever function of {x} an intruder guesses, the logarithm of the factor by which the "
        "release helps is at most {n}",
        "maximal leakage",
        "{units}",
        definition="Maximal leakage: the greatest gain in guessing any function of a record.",
        source="I. Issa, A. B. Wagner and S. Kamath, An operational approach to information "
        "leakage, IEEE Trans. Inf. Theory 66 (2020)",
        examples=("MaximalLeakage=1",),
    )
    b = Parameter(below=_EXPONENT, loosens="up", loosest=lambda b: min(_larger(b), _EXPONENT - 1))

    def __init__(self, b: Real) -> None:
        self.b = b

    def stated(self, of: Lettering) -> str:
        most = rf"\max_{{{of.s}}} {of.channel}"
        return rf"\log \sum_{{{of.y}}} {most} \le {tex(float(self.b))}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        base = ("2", 2.0) if release.units == "bits" else ("e", math.e)
        most = self.b.exp(base[1])
        return {"": Auxiliary.of("maximum", most, rf"{base[0]}^{{{tex(self.b.near)}}}")}
