"""What an audit finds in two counted tables: every measure, and how criteria stand."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.counts import Counts, disclosure, entropy_diversity, leaked
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.leakage import (
    ChiSquared,
    EarthMover,
    GuessingProbability,
    Leakage,
    Maximal,
    MutualInformation,
    Sibson,
    SquaredHellinger,
    TotalVariation,
)
from cvxprivacy.leakage.transport import order_in_words
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import miller_madow, mutual_information
from cvxprivacy.model.one_symbol import (
    Condition,
    average_conditions,
    greatest_diversity,
    i2,
    i3,
    i4,
)
from cvxprivacy.validation import generator, integer, one_of
from cvxprivacy_sdc.auditing import measures
from cvxprivacy_sdc.auditing.pairing import Laws, masses_of
from cvxprivacy_sdc.risk.estimators import Information, estimated
from cvxprivacy_sdc.risk.individual import re_identification
from cvxprivacy_sdc.risk.uniqueness import PopulationUniqueness
from cvxprivacy_sdc.risk.wildcards import MATCHED, matched

__all__ = [
    "RISK",
    "SHOWN",
    "STANDARD",
    "Findings",
    "Leaked",
    "Measure",
    "Verdict",
    "implied_bounds",
]

SHOWN = 10  # letters of each worst list
LEVEL = 0.95  # of the intervals
RISK, DISTINCT = "individual risk", "distinct ℓ-diversity"
# What is measured of every table besides information and the distances of t-closeness.
STANDARD: tuple[Leakage, ...] = (
    *(ChiSquared(), SquaredHellinger(), GuessingProbability(), Sibson(2), Maximal()),
)


@dataclass(frozen=True, eq=False)
class Measure(FrozenFields):
    """One measure of a released table.

    Attributes
    ----------
    name, title : str
    values : ndarray, shape (|X̃|,)
        Of each released letter.
    low : bool
        Whether low values are bad, else high ones are.
    sizes : ndarray, shape (|X̃|,)
        Records of each letter.
    masses : ndarray, shape (|X̃|,)
        What each letter weighs in the average: its records, or their survey weights where the
        measure is one of the weighted law.
    """

    name: str
    title: str
    values: npt.NDArray[np.float64]
    low: bool
    sizes: npt.NDArray[np.float64]
    masses: npt.NDArray[np.float64]

    @property
    def worst(self) -> float:
        """Of the table: the least or the greatest value of its letters."""
        return float(self.values.min() if self.low else self.values.max())

    @cached_property
    def _at_worst(self) -> npt.NDArray[np.bool_]:
        return np.isclose(self.values, self.worst, rtol=1e-12, atol=1e-15)

    @property
    def letters(self) -> int:
        """How many letters are as bad as the worst."""
        return int(self._at_worst.sum())

    @property
    def records(self) -> int:
        """How many records they hold."""
        return int(self.sizes[self._at_worst].sum())

    @property
    def average(self) -> float:
        """Over the records, or over the persons whom they stand for."""
        return float(self.values @ self.masses / self.masses.sum())

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Places of the letters, the worst first; among equals, those of the most records."""
        return np.lexsort((-self.sizes, self.values if self.low else -self.values))


@dataclass(frozen=True, eq=False)
class Leaked(Measure):
    """A measure of leakage, whose average is what the release leaks in all.

    Attributes
    ----------
    leakage : Leakage
    nothing, everything : float
        What leaks if nothing is released, and if W itself is (NaN beyond 2,000 values of W).
    original : float
        What the original leaks; NaN where there is no other table, or other values of W in it.
    """

    leakage: Leakage
    nothing: float
    everything: float
    original: float


@dataclass(frozen=True, eq=False)
class CountedLetters(FrozenFields):
    """Counts of a released table, with what they are compared with.

    Attributes
    ----------
    counts : ndarray, shape (|W|, |X̃|)
        Records, or their survey weights.
    records : ndarray, shape (|W|, |X̃|)
        Records always.
    weighted : bool
        Whether the counts are sums of survey weights.
    w : list
        The values of their rows.
    prior : ndarray, shape (|W|,), or None
        Masses of p(w), by default the row sums.
    order : list of int or None
        Rows in the order of the values of W, where that is known.
    original : ndarray, shape (|W|, |X|), or None
        The same rows of the original.
    wildcards : bool
        Whether missing values are.
    matches, persons : ndarray, shape (|X̃|,)
        Records that may have each letter, and their weights: more than its own with wildcards.
    """

    counts: npt.NDArray[np.float64]
    records: npt.NDArray[np.float64]
    weighted: bool
    w: list[Any]
    prior: npt.NDArray[np.float64] | None
    order: list[int] | None
    original: npt.NDArray[np.float64] | None
    wildcards: bool
    matches: npt.NDArray[np.float64]
    persons: npt.NDArray[np.float64]

    @classmethod
    def of(
        cls,
        laws: Laws,
        records: DiscreteSource,
        reference: str,
        order: Sequence[Any] | None,
        wildcards: bool,
    ) -> CountedLetters:
        """Lay out the counts; the values are those of the table that is referred to."""
        original, released, weighted = laws.original, laws.released, laws.weights is not None
        w = list((released if reference == "released" else original).w)
        place, before = {v: i for i, v in enumerate(w)}, None
        if original is not released and {*original.w} == {*w}:
            before = _rows(original, place)
        prior = original.joint.sum(axis=1) if reference == "original" else None
        at = None if order is None else [place[value] for value in order]
        counts, counted = _rows(released, place), _rows(records, place)
        sizes, persons = counted.sum(axis=0), counts.sum(axis=0)
        if wildcards:
            assert records.schema is not None
            columns = len(records.schema.key)
            sizes, persons = (matched(records.x, columns, of) for of in (sizes, persons))
        return cls(counts, counted, weighted, w, prior, at, before, wildcards, sizes, persons)

    def table(self, units: str) -> Counts:
        """Return what criteria are evaluated at."""
        sizes, matches = self.records.sum(axis=0), self.matches if self.wildcards else None
        return Counts(self.counts, units, self.prior, sizes, self.order, matches=matches)

    def leaked(self, name: str, title: str, leakage: Leakage, units: str) -> Leaked:
        """Return a measure of leakage of the letters."""
        table = self.table(units).in_order(leakage)
        counts, prior = table.joint, table.reference
        values = leaked(leakage, counts, reference=prior, units=units)
        masses = counts.sum(axis=1)
        ends = measures.extremes(leakage, masses, reference=prior, units=units)
        before = math.nan
        if self.original is not None:
            was = Counts(self.original, order=self.order).in_order(leakage).joint
            each = leaked(leakage, was, units=units)
            before = float(each @ was.sum(axis=0) / was.sum())
        sizes = self.records.sum(axis=0), counts.sum(axis=0)
        return Leaked(name, title, values, False, *sizes, leakage, *ends, before)


def _rows(source: DiscreteSource, place: Mapping[Any, int]) -> np.ndarray:
    """Return counts with the rows in other places."""
    counts = np.zeros((len(place), len(source.x)))
    counts[[place[value] for value in source.w]] = source.joint
    return counts


def measured(
    table: CountedLetters, family: Mapping[str, Leakage], units: str
) -> dict[str, Measure]:
    """Return every measure of the letters; the ordered distance where W has an order."""
    counts, sizes, masses = table.counts, table.records.sum(axis=0), table.counts.sum(axis=0)
    prior = table.prior
    risk, risky = re_identification(table.matches, table.persons if table.weighted else None), "1/k"
    distinct = measures.distinct_diversity(table.records)
    if table.weighted:
        risky = "estimate of E 1/F"
    how = " (wildcards)" if table.wildcards else ""
    by_name = {
        "k": Measure("k", f"k-anonymity: records{how}", table.matches, True, sizes, sizes),
        RISK: Measure(RISK, f"individual risk: {risky}{how}", risk, False, sizes, sizes),
        "distinct l": Measure("distinct l", DISTINCT, distinct, True, sizes, sizes),
    }
    rows: list[tuple[Any, ...]] = [
        ("entropy l", "entropy ℓ-diversity", entropy_diversity(counts), True),
    ]
    for l in (2, 3):  # noqa: E741
        title = f"recursive (c, {l})-diversity: c above"
        rows.append((f"c at l={l}", title, measures.recursive_diversity(counts, l)))
    observed = disclosure(counts, observed=True, reference=prior)
    enhanced = measures.likeness(counts, enhanced=True, reference=prior)
    rows += [
        ("delta", "δ-disclosure", disclosure(counts, reference=prior)),
        ("delta observed", "δ without absent values", observed),
        ("beta", "β-likeness", measures.likeness(counts, reference=prior)),
        ("enhanced beta", "enhanced β-likeness", enhanced),
        ("I2", f"specific information I2 [{units}]", i2(counts, units=units)),
        ("I3", f"weighted reduction I3 [{units}]", i3(counts, units=units)),
        ("I4", f"membership I4 [{units}]", i4(counts, units=units)),
    ]
    leaks: list[tuple[str, str, Leakage]] = [
        ("I1", f"t-closeness: divergence I1 [{units}]", MutualInformation()),
        ("equal distance", "t-closeness: equal distance", TotalVariation()),
    ]
    if table.order is not None:
        leaks.append(("ordered distance", "t-closeness: ordered distance", EarthMover()))
    for name, leakage in family.items():
        leaks.append((name, f"{name} [{units}]" if leakage.in_units else name, leakage))
    for name, title, of, *low in rows:
        by_name[name] = Measure(name, title, of, bool(low), sizes, masses)
    return by_name | {name: table.leaked(name, title, of, units) for name, title, of in leaks}


@dataclass(frozen=True, eq=False)
class Verdict(FrozenFields):
    """How a criterion stands.

    Attributes
    ----------
    criterion : Criterion
    holds : bool or None
        Whether the table satisfies it; None where the released table alone does not tell.
    value : float or None
        What the table has of the quantity that it bounds, at its worst letter.
    of_letters : bool
        Whether it speaks of each released letter by itself.
    broken : ndarray of int
        Places of the letters that break it, then.
    records : int
        How many records they hold.
    """

    criterion: Criterion
    holds: bool | None
    value: float | None
    of_letters: bool
    broken: npt.NDArray[np.intp]
    records: int

    @classmethod
    def of(cls, criterion: Criterion, table: CountedLetters, units: str) -> Verdict:
        """Return how a criterion stands on a counted table."""
        stands = criterion.verdict(table.table(units))
        broken = np.flatnonzero([] if stands.broken is None else stands.broken)
        records = int(table.records[:, broken].sum())
        of_letters = stands.broken is not None
        return cls(criterion, stands.holds, stands.value, of_letters, broken, records)

    @property
    def letters(self) -> int:
        """How many letters break it."""
        return len(self.broken)


class Findings:
    """Measures, verdicts and conditions of a released table; see ``Audit``, which has words too."""

    def __init__(
        self,
        original: DiscreteSource,
        released: DiscreteSource,
        *,
        criteria: Sequence[Criterion],
        leakage: Mapping[str, Leakage],
        order: Sequence[Any] | None,
        reference: str,
        draws: int,
        seed: Any,
        units: str,
        notes: Sequence[str],
        laws: Laws,
        wildcards: bool,
    ) -> None:
        self.original, self.released, self.units = original, released, units
        self.criteria, alike = tuple(criteria), original is released
        self.laws, self.wildcards, rng = laws, wildcards, generator(seed)
        table = CountedLetters.of(laws, released, reference, order, wildcards)
        counts = self._counts = table.counts

        def information(law: DiscreteSource, table: np.ndarray) -> Information:
            if laws.weights is not None:
                return estimated_of_weights(law, LEVEL, draws, units)
            return estimated(table, level=LEVEL, draws=draws, seed=rng, units=units)

        self.after = information(laws.released, counts)
        self.before = self.after if alike else information(laws.original, original.joint)
        self.measures = measured(table, leakage, units)
        self.verdicts = [Verdict.of(criterion, table, units) for criterion in criteria]
        comparable = not alike and masses_of(original) == masses_of(released)
        self.averages: dict[str, Condition] = average_conditions(
            counts, original=self.before.plugin if comparable else None, units=units
        )
        entropy = laws.released.entropy(units=units)
        for name, most in implied_bounds(criteria, entropy, units).items():
            self.averages[name] = Condition(mutual_information(counts, units=units), most)
        self.notes = list(notes)
        if wildcards:
            self.notes.append(f"k and individual risk: {MATCHED}; all else takes it as a value")
        used = [*leakage.values(), *(criterion.measure for criterion in criteria)]
        if order is None and any(of is not None and of.ordered for of in used):
            self.notes.append(order_in_words(released.names[0], table.w))
        if not alike:
            self.notes += [f"original: {note}" for note in laws.original.noted(units=units)]
        after = laws.released.noted(units=units)
        self.notes += [f"{'' if alike else 'released: '}{note}" for note in after]

    @property
    def letters(self) -> list[Any]:
        """Released letters x̃."""
        return self.released.x

    @property
    def classes(self) -> measures.ClassSizes:
        """Sizes of the released classes, with discernibility and classification metric.

        They are counts of records, as the released values tell them apart.  As many records as the
        original has more are taken to be suppressed.
        """
        before, after = (int(of.joint.sum()) for of in (self.original, self.released))
        return measures.ClassSizes.of(self.released.joint, max(0, before - after))

    def uniqueness(self, fraction: float) -> PopulationUniqueness:
        """Estimate which share of a population the released key tells apart.

        Parameters
        ----------
        fraction : float
            Share of the population that the table is a random sample of, in (0, 1].
        """
        sizes = self.released.joint.sum(axis=0).astype(np.int64)
        return PopulationUniqueness.of_sizes(sizes, fraction)

    @property
    def re_identified(self) -> float:
        """Expected number of records re-identified, were all looked up: the sum of their risks."""
        risk = self.measures[RISK]
        return float(risk.values @ risk.sizes)

    @property
    def leaks(self) -> list[Leaked]:
        """The measures of leakage among the measures."""
        return [measure for measure in self.measures.values() if isinstance(measure, Leaked)]

    @property
    def holds(self) -> bool:
        """Whether every criterion is decided, and holds."""
        return all(verdict.holds is True for verdict in self.verdicts)

    @property
    def greatest_diversity(self) -> float:
        """ℓ_max = 2^H(W) (eq. 15)."""
        return greatest_diversity(self.laws.released.p_w)

    def worst(self, measure: str = "I1", letters: int = SHOWN) -> list[Any]:
        """Return the released letters that are worst by a measure, the worst first."""
        many = integer(letters, "letters", least=1)
        return [self.letters[i] for i in self.measure(measure).order[:many]]

    def measure(self, name: str) -> Measure:
        """Return one of the measures, or one that is not printed of every table.

        Those are ``"c at l=4"`` of any ℓ ≥ 1, the c above which recursive (c, ℓ)-diversity holds,
        and ``"alpha"``, the greatest share of one value of W: of so much and ``"k"`` the table is
        (α, k)-anonymous, for every value (Wong, Li, Fu and Wang, *(α, k)-Anonymity*, KDD 2006).

        Parameters
        ----------
        name : str
            A key of ``measures``, or one of these.

        Raises
        ------
        InputError
            For another name.
        """
        if name in self.measures:
            return self.measures[name]
        counts, sizes = self._counts, self.measures["k"].sizes
        least = re.fullmatch(r"c at l=([1-9][0-9]*)", str(name))
        if least is not None:
            title = f"recursive (c, {least[1]})-diversity: c above"
            values = measures.recursive_diversity(counts, int(least[1]))
        else:
            one_of(name, "measure", *self.measures, "alpha")
            title = "(α, k)-anonymity: greatest share of a value"
            values = counts.max(axis=0) / counts.sum(axis=0)
        return Measure(name, title, values, False, sizes, counts.sum(axis=0))


def implied_bounds(criteria: Sequence[Criterion], entropy: float, units: str) -> dict[str, float]:
    """Return the strictest bounds on I(W; X̃) that criteria imply, by name."""
    bounds: dict[str, float] = {}
    for criterion in criteria:
        if (implied := criterion.mean_information(entropy, units)) is not None:
            name, most = implied
            bounds[name] = min(most, bounds.get(name, most))
    return bounds


def estimated_of_weights(law: DiscreteSource, level: float, draws: int, units: str) -> Information:
    """Estimate I(W; X) of weighted records, whose bias is that of Kish's effective number."""
    plugin = mutual_information(law.joint, units=units)
    bias = miller_madow(law.joint, records=law.effective, units=units)
    note = "no interval is given of weighted records" if draws else ""
    return Information(plugin, bias, None, None, level, 0, units, note)
