"""Criteria of released groups that are decided on counts, and that no program states.

They recode tables, as :func:`cvxprivacy_sdc.full_domain` does, and are judged by
:func:`cvxprivacy_sdc.audit`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.base import TableCriterion, Words
from cvxprivacy.criteria.counts import Counts, Verdict, observed_laws
from cvxprivacy.criteria.decisions import common, within
from cvxprivacy.exact import FloatArray, Real, rational
from cvxprivacy.programs.parameter import Parameter
from cvxprivacy.validation import integer
from cvxprivacy_sdc.auditing.measures import distinct_diversity, likeness, recursive_diversity

__all__ = ["BetaLikeness", "DistinctDiversity", "RecursiveDiversity"]


class DistinctDiversity(TableCriterion):
    """Every group has at least ℓ different values of W: distinct ℓ-diversity.

    Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, *ℓ-diversity*, ACM TKDD 1(1), 2007.

    Parameters
    ----------
    l : int
        ℓ ≥ 1.

    Raises
    ------
    InputError
        For what is no such number; from a program, as it is decided on tables alone.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> source = cpv.DiscreteSource.from_counts([[9, 8, 2, 0], [0, 2, 8, 9]])
    >>> sdc.optimal_intervals(source, [sdc.DistinctDiversity(2)]).outputs
    ['[0, 1]', '[2, 3]']
    """

    name = "distinct_diversity"
    survives_merging = survives_company = True
    words = Words(
        "every released group has at least {n} different values of {w}",
        "least number of values",
        "values",
        at_least=True,
    )
    l = Parameter(least=1.0, loosens="down", loosest=1.0)  # noqa: E741

    def __init__(self, l: int) -> None:  # noqa: E741
        self.l = integer(l, "l", least=1)

    def verdict(self, table: Counts) -> Verdict:
        values = distinct_diversity(table.joint)
        met = [bool(math.isnan(value) or value >= self.l) for value in values.tolist()]
        return Verdict.of_letters(met, values, at_least=True)


class RecursiveDiversity(TableCriterion):
    """r₁ < c (r_ℓ + … + r_m) in every group: recursive (c, ℓ)-diversity.

    r₁ ≥ r₂ ≥ … are the records of its values of W.  Machanavajjhala, Kifer, Gehrke and
    Venkitasubramaniam, *ℓ-diversity*, ACM TKDD 1(1), 2007, who prove that it survives merging.

    Parameters
    ----------
    c : number
        c > 0.
    l : int
        ℓ ≥ 1.

    Raises
    ------
    InputError
        For what are no such numbers; from a program, as it is decided on tables alone.

    Examples
    --------
    The most frequent value must be less than twice as frequent as all others together:

    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> source = cpv.DiscreteSource.from_counts([[9, 8, 2, 0], [0, 3, 8, 9]])
    >>> sdc.optimal_intervals(source, [sdc.RecursiveDiversity(2, 2)]).outputs
    ['[0, 3]']
    """

    name = "recursive_diversity"
    survives_merging = True
    c = Parameter(zero=False, loosens="up")
    l = Parameter(least=1.0, loosens="down", loosest=1.0)  # noqa: E741

    def __init__(self, c: Real, l: int) -> None:  # noqa: E741
        self.c, self.l = c, integer(l, "l", least=1)

    def verdict(self, table: Counts) -> Verdict:
        values, bound = recursive_diversity(table.joint, int(self.l)), rational(self.c)

        def decide(y: int) -> bool:
            counts = sorted(common(table.joint[:, y].tolist()), reverse=True)
            return counts[0] < bound * sum(counts[int(self.l) - 1 :])

        return table.of_letters(values, bound, decide)


class BetaLikeness(TableCriterion):
    """(p(w | x̂) − p(w))/p(w) ≤ β for every value w in every group; or enhanced β-likeness.

    Cao and Karras, *Publishing microdata with a robust privacy guarantee*, PVLDB 5(11), 2012.
    Of channels β-likeness is :class:`PointwiseMaximalLeakage` of ε = ln(1 + β).

    Parameters
    ----------
    beta : number
        β ≥ 0.
    enhanced : bool
        At most min(β, −ln p(w)) instead: rare values may gain more, frequent ones less.

    Raises
    ------
    InputError
        For a negative β; from a program, as it is decided on tables alone.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> source = cpv.DiscreteSource.from_counts([[9, 8, 2, 0], [0, 3, 8, 9]])
    >>> sdc.optimal_intervals(source, [sdc.BetaLikeness(0.8)]).outputs
    ['[0, 1]', '[2, 3]']
    """

    name = "beta_likeness"
    survives_merging = True
    words = Words(
        "in no released group does the share of a value of {w} exceed that in the whole table by "
        "more than {n} times the latter",
        "greatest gain",
    )
    beta = Parameter(loosens="up")

    def __init__(self, beta: Real, *, enhanced: bool = False) -> None:
        self.beta, self.enhanced = beta, bool(enhanced)

    def at(self, value: Real) -> Criterion:
        return type(self)(value, enhanced=self.enhanced)

    def verdict(self, table: Counts) -> Verdict:
        bound, masses = rational(self.beta), common(table.masses.tolist())
        total = sum(masses)

        def decide(y: int) -> bool:
            joint = common(table.joint[:, y].tolist())
            shares = ((p, Fraction(j * total, sum(joint) * p))
                      for j, p in zip(joint, masses, strict=True) if j)  # fmt: skip
            return all(
                ratio - 1 <= bound
                and (not self.enhanced or within(Fraction(p, total), 1 - ratio))  # e^gain p ≤ 1
                for p, ratio in shares
                if ratio > 1
            )

        values = likeness(table.joint, enhanced=self.enhanced, reference=table.reference)
        if not self.enhanced:
            return table.of_letters(values, bound, decide)
        p, prior = observed_laws(table.joint, table.reference)
        excess = p / prior - 1 - np.minimum(float(bound), -np.log(prior))
        scale = float(1 / prior.min())
        verdict = table.of_letters(excess.max(axis=0), Fraction(0), decide, scale=scale)
        return Verdict(verdict.holds, _greatest(values), values, verdict.met, verdict.broken)

    def in_words(
        self, *, w: str = "W", x: str = "X", units: str = "bits", number: str = ""
    ) -> Words:
        words = super().in_words(w=w, x=x, units=units, number=number)
        if not self.enhanced:
            return words
        return replace(words, asks=f"{words.asks}, nor by more than minus its logarithm times")

    def __repr__(self) -> str:
        return f"BetaLikeness({float(self.beta):g}{', enhanced=True' * self.enhanced})"


def _greatest(values: FloatArray) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmax(values))
