"""Bounds on ratios of probabilities: of posteriors to priors, and of inputs to each other.

ε and δ are natural logarithms always; the b of maximal leakage is in the problem's units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.criteria.base import Criterion, Words
from cvxprivacy.criteria.bounded_leakage import independent
from cvxprivacy.criteria.counts import Counts, Verdict, disclosure, leaked
from cvxprivacy.criteria.decisions import common, within
from cvxprivacy.exact import FloatArray, Real, rational
from cvxprivacy.leakage import Maximal
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.latex_symbols import Notation, PrintedCost, tex
from cvxprivacy.programs.parameter import Parameter, Scalar
from cvxprivacy.programs.side_conditions import Auxiliary, Rule

__all__ = [
    "EXPONENT",
    "DeltaDisclosure",
    "LocalInformationPrivacy",
    "MaximalLeakage",
    "PointwiseMaximalLeakage",
    "exponent",
]

EXPONENT = 700.0  # e to its power is a float


def exponent(number: float) -> float:
    """Return an exponent next to which one that was typed forbids next to nothing."""
    return min(max(2 * number, 20.0), EXPONENT - 1)


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
    of_releases = "all"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in every released group, the share of each value of {w} is within a factor {factor} of "
        "its share in the whole table",
        "greatest log ratio",
        "nats",
        definition="δ-disclosure: no value of W is more or less frequent in a group than in the "
        "table by more than a factor e^δ.",
        source="J. Brickell and V. Shmatikov, The cost of privacy, KDD (2008)",
        examples=("DeltaDisclosure=1",),
    )
    delta = Parameter(below=EXPONENT, loosens="up", loosest=exponent)

    def __init__(self, delta: Real) -> None:
        self.delta = delta

    def verdict(self, table: Counts) -> Verdict:
        values = disclosure(table.joint, reference=table.reference)
        return _ratio_verdict(table, values, rational(self.delta), below=True)

    def stated(self, of: Notation) -> str:
        left = rf"|\ln (p({of.w} \mid {of.observation}) / p({of.w}))|"
        return rf"{left} \le {tex(float(self.delta))} \quad \forall\, {of.w}, {of.observation}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if not self.delta:  # x̂ and W are independent, which t = 0 says too
            return independent(release, self.delta)
        return _ratios(release, self.delta, ("above", "below"))


def _ratios(release: Alphabet, number: Scalar, sides: Sequence[str]) -> Mapping[str, Rule]:
    """Return p(w | x̂) ≤ e^number p(w), or ≥ e^−number p(w), for every w and x̂."""
    rules: dict[str, Rule] = {}
    of = release.notation
    for w, p in enumerate(release.p_w):
        for side in sides:
            sign = 1 if side == "above" else -1
            bound = (sign * number).exp() * p
            factors = [sign * ((v == w) - bound) for v in range(len(release.p_w))]
            for o in release.observers:  # ± (J(w, x̂) − e^±δ p(w) q(x̂)) ≤ 0
                key = f"{side}[{w}]{o.name and f'|{o.name}'}"
                left = release.weighed(factors, o).named("delta")
                free = (of.w, *release.free(o))
                event = PrintedCost("", "", free, of.w)
                limit = PrintedCost(rf"e^{{{tex(sign * number.near)}}} \, {of.law}(@w)", "", free)
                words = ([event], [limit]) if sign > 0 else ([limit], [event])
                rules[key] = left.printed_as(*words[0], less=words[1]).each() <= 0
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
        "in every released group, the share of each value of {w} is within a factor {factor} of "
        "its share in the whole table",
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
    of_releases = "all"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in no released group is any value of {w} more than {factor} times as frequent as in the "
        "whole table",
        "greatest log ratio",
        "nats",
        definition="Pointwise maximal leakage: no group makes any guess about W more than e^ε "
        "times better.",
        source="S. Saeidian et al., Pointwise maximal leakage, IEEE Trans. Inf. Theory 69 (2023)",
        examples=("PointwiseMaximalLeakage=1",),
    )
    epsilon = Parameter(below=EXPONENT, loosens="up", loosest=exponent)

    def __init__(self, epsilon: Real) -> None:
        self.epsilon = epsilon

    def verdict(self, table: Counts) -> Verdict:
        how: dict[str, Any] = {"reference": table.reference}
        values = np.log(leaked(Maximal(), table.joint, **how))
        return _ratio_verdict(table, values, rational(self.epsilon), below=False)

    def stated(self, of: Notation) -> str:
        limit = rf"e^{{{tex(float(self.epsilon))}}}"
        left = rf"p({of.w} \mid {of.observation})"
        return rf"{left} \le {limit} \, p({of.w}) \quad \forall\, {of.w}, {of.observation}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if not self.epsilon:  # no posterior above the prior is the prior
            return independent(release, self.epsilon)
        return _ratios(release, self.epsilon, ("above",))


class MaximalLeakage(Criterion):
    """log Σ_x̂ max_s p(x̂ | s) ≤ b: maximal leakage of all that is encoded.

    Issa, Wagner and Kamath, *An Operational Approach to Information Leakage*, IEEE Transactions on
    Information Theory 66, 2020.  That of W alone is :class:`cvxprivacy.leakage.Maximal`.  After
    earlier releases x̂ is all that was released, and s all that any of them saw.

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
    of_releases = "all"
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
    b = Parameter(
        below=EXPONENT, loosens="up", loosest=lambda b: min(max(2 * b, 64.0), EXPONENT - 1)
    )

    def __init__(self, b: Real) -> None:
        self.b = b

    def entries_of(self, release: Alphabet, x: int) -> tuple[Any, Any] | None:
        """Return no bounds after earlier releases: how these released x is not in the law."""
        return None if release.earlier is not None else super().entries_of(release, x)

    def stated(self, of: Notation) -> str:
        most = rf"\max_{{{of.record}}} {of.all_releases()}"
        outputs = f"z, {of.y}" if of.together else of.y
        return rf"\log \sum_{{{outputs}}} {most} \le {tex(float(self.b))}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        base = ("2", 2.0) if release.units == "bits" else ("e", math.e)
        most = self.b.exp(base[1])
        if release.earlier is not None:  # F of s at each earlier z, a part of what is released
            return {"": release.leaked(Maximal(), "S") <= most * release.law_rounding}
        return {"": Auxiliary.of("maximum", most, rf"{base[0]}^{{{tex(self.b.near)}}}")}
