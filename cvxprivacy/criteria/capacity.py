"""A bound on what a release tells whatever is believed beforehand."""

from __future__ import annotations

from collections.abc import Mapping

from cvxprivacy.criteria.base import Criterion, Words
from cvxprivacy.criteria.counts import Counts, Verdict
from cvxprivacy.exact import Real, rational
from cvxprivacy.leakage import Leakage, MutualInformation
from cvxprivacy.model.capacity import capacity_of_table
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.latex_symbols import Notation, tex
from cvxprivacy.programs.parameter import Parameter
from cvxprivacy.programs.side_conditions import Rule
from cvxprivacy.validation import typed

__all__ = ["CapacityCap"]


class CapacityCap(Criterion):
    """max_π I_π(W; X̂) ≤ b: the capacity of W → X̂ bounds what is told to anybody.

    :class:`LeakageCap` is of an intruder who believes the table's own p(w).  The source counts with
    p(x | w) alone, so that the bound holds of every part of it, region or year, whose p(x | w) is
    the same.  Shannon, *A mathematical theory of communication*, 1948; min_r max_w D(p(x̂ | w) ‖ r)
    as Gallager and Csiszár have it.

    Parameters
    ----------
    b : number
        In the problem's units, ≥ 0.

    Raises
    ------
    InputError
        For a negative b; with several laws, side information or earlier releases.

    Examples
    --------
    W is rare, and a release that may change a fifth of the records tells 0.009 bits of it on the
    average.  One who finds both values as likely learns 0.042, and to cap that at 0.02 costs more:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.04, 0.01], [0.3, 0.65]])
    >>> first = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve()
    >>> round(first.value, 3), round(float(cpv.capacity(first.channel, source)), 3)
    (0.009, 0.042)
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.CapacityCap(0.02)])
    >>> round(problem.solve().value, 3)
    0.262
    """

    name = "capacity_cap"
    survives_merging = True
    _divergence = "information"
    words = Words(
        "whatever is believed beforehand, the released columns tell at most {n} about {w} ({how})",
        "{measure}, whatever is believed beforehand",
        "{unit}",
        definition="A cap on capacity bounds what is told on average to anybody, whatever shares "
        "of the values they believe in.",
        source="C. E. Shannon, A mathematical theory of communication, Bell System Technical "
        "Journal 27 (1948)",
        examples=("CapacityCap=0.05",),
    )
    b = Parameter(loosens="up")

    def __init__(self, b: Real) -> None:
        self.b = typed(b, "b")

    def at(self, value: Real) -> Criterion:
        return type(self)(value)

    def stated(self, of: Notation) -> str:
        w = of.sensitive
        return rf"\max_{{\pi}} I_{{\pi}}({w}; {of.held}) \le {tex(float(self.b))}"

    @property
    def measure(self) -> Leakage:
        """Mutual information, for the prior that learns most."""
        return MutualInformation()

    def verdict(self, table: Counts) -> Verdict:
        low, high = capacity_of_table(table.joint.tolist()).ends(table.units)
        bound = rational(self.b)
        most = bound + table.slack(bound)
        return Verdict(True if high <= most else False if low > most else None, high)

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        rows: Mapping[str, Rule] = release.whatever_prior() <= self.b
        return rows

    def __repr__(self) -> str:
        return f"CapacityCap({float(self.b):g})"
