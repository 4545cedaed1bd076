"""What an audit finds in two counted tables: numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.leakage import Leakage
from cvxprivacy.leakage.transport import order_in_words
from cvxprivacy.microdata.audit.measured import RISK, CountedLetters, Leaked, Measure, measured
from cvxprivacy.microdata.audit.weighted import Laws, estimated_of_weights
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import mutual_information
from cvxprivacy.model.one_symbol import Condition, average_conditions, greatest_diversity
from cvxprivacy.sdc.risk.estimators import Information, estimated
from cvxprivacy.validation import generator, integer, one_of

SHOWN = 10  # letters of each worst list
LEVEL = 0.95  # of the intervals


@dataclass(frozen=True, eq=False)
class Verdict(FrozenFields):
    """How a criterion stands.

    Attributes
    ----------
    criterion : Criterion
    holds : bool or None
        Whether the table satisfies it; None where that cannot be decided on a table.
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
    ) -> None:
        self.original, self.released, self.units = original, released, units
        self.criteria, alike = tuple(criteria), original is released
        self.laws, rng = laws, generator(seed)
        table = CountedLetters.of(laws, released, reference, order)
        counts = table.counts

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
        return [self.letters[i] for i in self._measure(measure).order[:many]]

    def _measure(self, name: str) -> Measure:
        one_of(name, "measure", *self.measures)
        return self.measures[name]


def masses_of(source: DiscreteSource) -> dict[Any, float]:
    """Return the records of each value of W."""
    return dict(zip(source.w, source.joint.sum(axis=1).tolist(), strict=True))


def implied_bounds(criteria: Sequence[Criterion], entropy: float, units: str) -> dict[str, float]:
    """Return the strictest bounds on I(W; X̃) that criteria imply, by name."""
    bounds: dict[str, float] = {}
    for criterion in criteria:
        if (implied := criterion.mean_information(entropy, units)) is not None:
            name, most = implied
            bounds[name] = min(most, bounds.get(name, most))
    return bounds
