"""How many values, or records, a released letter leaves possible: from below.

H(W | x̂) ≥ log ℓ (Bezzi 2010, eq. 10) and H(record | x̂) ≥ log k (eqs. 5–6) are convex in the joint
mass; that every group has k records is not.  k and ℓ are counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion, TableCriterion, Words
from cvxprivacy.criteria.counts import Cells, Counts, Verdict, entropy_diversity, refuse_uncounted
from cvxprivacy.criteria.decisions import at_least_zero, common
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real, rational
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import nat
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.latex_symbols import Notation, PrintedCost, tex
from cvxprivacy.programs.parameter import Parameter, Scalar
from cvxprivacy.programs.side_conditions import Rule

__all__ = ["KAnonymity", "LDiversity", "RecordEntropy"]


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
    of_releases = "all"
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

    def stated(self, of: Notation) -> str:
        left = rf"H({of.sensitive} \mid {of.observation})"
        return rf"{left} \ge \log {tex(float(self.l))} \quad \forall\, {of.observation}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if self.l > len(release.p_w):
            problem = f"{self.l:g} exceeds the {len(release.p_w)} values that W takes"
            remedy = f"pass at most {len(release.p_w)}"
            raise InputError("l", problem, remedy, value=self.l.near)
        log_l, units = self.l.log(release.units), release.units
        factors = [log_l + Scalar(p).log(units) for p in release.p_w]
        rules = {}
        for o in release.observers:  # Φ_W(x̂) + Σ_w J(w, x̂) log p(w) ≤ −q(x̂) log ℓ
            of, free = release.notation, release.free(o)
            words = PrintedCost(rf"{of.log} {of.law}(@w)", "w", free)
            least = PrintedCost(rf"{of.log} {tex(self.l.near)}", "", free)
            left = release.information("W", o) + release.weighed(factors, o).printed_as(
                words, least
            )
            rules[o.name] = left.named("l-diversity").each() <= 0
        return rules


class RecordEntropy(Criterion):
    """H(record | x̂) ≥ log k for every released letter x̂: k-anonymity as an entropy.

    Bezzi 2010, eqs. (5) and (6).  Given what is released, the record that it came from is as
    uncertain as k equally likely ones: 2^H is the effective anonymity set size of Serjantov and
    Danezis 2002.  As H(record | x̂) = log N − D(p(s | x̂) ‖ p(s)), s what the encoder sees of a
    record (x, or w and x), it is Φ_S(x̂) ≤ q(x̂) log(N/k).  Needs the number of records N behind the
    source.

    After earlier releases x̂ is all that was released, and s all that any of them saw.

    It does not bound how many records a released group has: under randomisation a group of one may
    have come from any of thousands.  A group of k satisfies it whatever it came from; one that has
    all records of its key letters, as of a deterministic release, only then.  :class:`KAnonymity`
    is of the groups of a table.

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
    Ten records, five of each x.  Every x stands for five, so that k = 5 costs nothing; with k = 10
    all must look alike, and half of them are changed:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[4, 1], [1, 4]])
    >>> for k in (5, 8, 10):
    ...     rules = [cpv.RecordEntropy(k)]
    ...     solution = cpv.MinimumDistortion(source, cpv.hamming(2), rules).solve()
    ...     print(k, f"{abs(solution.value):.4f}")
    5 0.0000
    8 0.1791
    10 0.5000
    """

    name = "record_entropy"
    of_releases = "all"
    # H is concave in p(s | x̂), so that merging keeps it; a record of its own letter joined to one
    # of a thousand alike leaves 2^(½ log 1000 + log 2) = 63 instead of 1000: company may break it
    survives_merging = survives_informed_encoder = True
    counts_records = True
    words = Words(
        "given what is released, the record that it came from is as uncertain as {n} equally "
        "likely records, or more",
        "least anonymity set",
        "equally likely records",
        at_least=True,
        definition="Record entropy: given what is released, the record that it came from is as "
        "uncertain as k equally likely records, which is the effective size of its anonymity set; "
        "a released group may have fewer records.",
        source="M. Bezzi, An information theoretic approach for privacy metrics, Transactions on "
        "Data Privacy 3 (2010); A. Serjantov and G. Danezis, Towards an information theoretic "
        "metric for anonymity, PET (2002)",
        examples=("RecordEntropy=5",),
    )
    k = Parameter(least=1.0, loosens="down", loosest=1.0)

    def __init__(self, k: Real) -> None:
        self.k = k

    def tightest(self, laws: Sequence[DiscreteSource]) -> float | None:
        """All records are one group."""
        counted = [law.records for law in laws if law.records is not None]
        return float(min(counted)) if len(counted) == len(laws) else None

    def verdict(self, table: Counts) -> Verdict:
        """Return how a table stands with it: exactly where it is known what became what.

        Else groups of k records satisfy it, whatever they came from, as H(record | x̂) =
        log n + Σ_s (n_s/n) log(N_s/n_s) for n_s of the N_s records of each s; of smaller ones
        nothing is known.
        """
        bound = rational(self.k)
        if table.cells is not None and table.release is not None:
            if table.release.side_information:
                return super().verdict(table)
            refuse_uncounted(table)
            values, decide = _origins(table, table.cells, bound)
            return table.of_letters(values, bound, decide, at_least=True)
        if table.origins is not None:
            return _at_least(table, table.origins, bound)
        sizes = refuse_uncounted(table)
        return Verdict.of_letters([not n or rational(n) >= bound or None for n in sizes.tolist()])

    def stated(self, of: Notation) -> str:
        left = rf"H(\text{{record}} \mid {of.observation})"
        return rf"{left} \ge \log {tex(float(self.k))} \quad \forall\, {of.observation}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        source = release.source
        if source.records is None:
            remedy = "make it with DiscreteSource.from_counts, from_table, or records="
            raise InputError("source", "no number of records behind it", remedy)
        if source.weighted:
            raise InputError("source", "weighted records cannot be counted", "leave weights= out")
        rules = {}
        for o in release.observers:
            attribute = o.z is not None and release.earlier is None  # of records: not drawn of them
            records = source.records * (o.share if attribute else 1)
            if self.k > records:
                those = f" with {source.names[-1]} = {o.name}" if attribute else ""
                problem = f"{self.k:g} exceeds the {float(records):g} records{those}"
                remedy = f"pass at most {float(records):g}"
                raise InputError("k", problem, remedy, value=self.k.near)
            log = -(self.k / records).log(release.units)  # log N/k
            information = release.information("S", o).named("record entropy")
            of, share = release.notation, r" \, p(z)" if attribute else ""
            number = "N_k" if of.several else str(source.records)
            ratio = rf"\frac{{{number}{share}}}{{{tex(self.k.near)}}}"
            words = PrintedCost(rf"{of.log} {ratio}", "", release.free(o))
            most = (log * release.mass(None, o)).printed_as(words)
            rules[o.name] = information.each() <= most.each()
        return rules


class KAnonymity(TableCriterion):
    """Every released group has at least k records, or none: k-anonymity.

    Samarati 2001.  It speaks of a table, whose groups can be counted.  It is not convex, as a mass
    is 0 or at least k/N, so that no convex program states it; :class:`RecordEntropy` is what a law
    can promise: all tables of such groups satisfy it.

    Parameters
    ----------
    k : number
        k ≥ 1.

    Raises
    ------
    InputError
        For a k < 1; from a convex program, and of a table of which records cannot be counted.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[4, 1, 1], [1, 2, 2]])
    >>> try:
    ...     cpv.MinimumDistortion(source, cpv.hamming(3), [cpv.KAnonymity(5)])
    ... except cpv.InputError as error:
    ...     print(error.remedy)
    ask a law for RecordEntropy, which every table of such groups satisfies
    """

    name = "k_anonymity"
    survives_merging = survives_company = True  # sizes add
    counts_records = True
    words = Words(
        "every released group has at least {n} records",
        "least group",
        "records",
        at_least=True,
        definition="k-anonymity: no released group has fewer than k records.",
        source="P. Samarati, Protecting respondents' identities in microdata release, TKDE 13 "
        "(2001)",
        examples=("KAnonymity=5",),
    )
    _instead = "ask a law for RecordEntropy, which every table of such groups satisfies"
    k = Parameter(least=1.0, loosens="down", loosest=1.0)

    def __init__(self, k: Real) -> None:
        self.k = k

    @property
    def relaxation(self) -> RecordEntropy:
        """Record entropy, which groups of k records satisfy."""
        return RecordEntropy(self.k)

    def verdict(self, table: Counts) -> Verdict:
        sizes = refuse_uncounted(table)
        sizes = sizes if table.matches is None else table.matches
        return _at_least(table, sizes, rational(self.k))

    def stated(self, of: Notation) -> str:
        number = rf"N({of.observation})"
        least = rf"{number} \ge {tex(float(self.k))}"
        return rf"{least} \;\text{{or}}\; {number} = 0 \quad \forall\, {of.observation}"


def _at_least(table: Counts, numbers: npt.NDArray[Any], bound: Fraction) -> Verdict:
    """Return whether the number of each letter that is released is at least k."""
    values = np.where(numbers > 0, numbers, math.nan)
    records = Counts(np.asarray(numbers)[None], table.units)  # whole, whatever W weighs
    return records.of_letters(values, bound, lambda y: rational(numbers[y]) >= bound, at_least=True)


def _origins(
    table: Counts, cells: Cells, bound: Fraction
) -> tuple[npt.NDArray[np.float64], Callable[[int], bool]]:
    """Return 2^H(record | x̂) of each letter by what became what, and what decides H ≥ log k.

    Records of one s are alike: n H = Σ_s n_s log(n N_s/n_s), of n in all.
    """
    groups: dict[int, Counter[int]] = {}
    places = zip(cells.letter.tolist(), cells.output.tolist(), strict=True)
    for (s, y), records in zip(places, common(cells.masses.tolist()), strict=True):
        groups.setdefault(y, Counter())[s] += records
    full: Counter[int] = Counter()
    for group in groups.values():
        full.update(group)
    values = np.full(table.joint.shape[1], math.nan)
    for y, group in groups.items():
        if n := group.total():
            nats = math.fsum(k * math.log(full[s] / k) for s, k in group.items() if k)
            values[y] = n * math.exp(nats / n)

    def decide(y: int) -> bool:
        n, group = groups[y].total(), groups[y].items()
        form = [(k, Fraction(n * full[s], k)) for s, k in group if k]
        return at_least_zero([*form, (-n, bound)])

    return values, decide
