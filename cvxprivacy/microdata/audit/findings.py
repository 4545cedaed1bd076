"""What an audit finds in two counted tables: numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion, LDiversity, TCloseness
from cvxprivacy.microdata import measures
from cvxprivacy.microdata.bootstrap import estimated
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.one_symbol import (
    Condition,
    average_conditions,
    greatest_diversity,
    i1,
    i2,
    i3,
    i4,
)
from cvxprivacy.validation import generator, one_of, whole

SHOWN = 10  # letters of each worst list


@dataclass(frozen=True, eq=False)
class Measure:
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
    """

    name: str
    title: str
    values: npt.NDArray[np.float64]
    low: bool
    sizes: npt.NDArray[np.float64]

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
        """Over the records."""
        return float(self.values @ self.sizes / self.sizes.sum())

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Places of the letters, the worst first; among equals, those of the most records."""
        return np.lexsort((-self.sizes, self.values if self.low else -self.values))


@dataclass(frozen=True, eq=False)
class Verdict:
    """How a criterion per released letter stands.

    Attributes
    ----------
    criterion : Criterion
    broken : ndarray of int
        Places of the letters that break it.
    records : int
        How many records they hold.
    """

    criterion: Criterion
    broken: npt.NDArray[np.intp]
    records: int

    @property
    def letters(self) -> int:
        """How many letters break it."""
        return len(self.broken)

    @property
    def holds(self) -> bool:
        """Whether none breaks it."""
        return not self.letters


class Findings:
    """Measures, verdicts and conditions of a released table; see ``Audit``, which has words too."""

    def __init__(
        self,
        original: DiscreteSource,
        released: DiscreteSource,
        *,
        criteria: Sequence[Criterion],
        order: Sequence[Any] | None,
        reference: str,
        draws: int,
        seed: Any,
        units: str,
        notes: Sequence[str],
    ) -> None:
        self.original, self.released, self.units = original, released, units
        self.criteria, alike = tuple(criteria), original is released
        counts, w, prior = _table(original, released, reference)
        rng = generator(seed)
        self.after = estimated(counts, draws=draws, seed=rng, units=units)
        self.before = self.after
        if not alike:
            self.before = estimated(original.joint, draws=draws, seed=rng, units=units)
        self.measures = _measured(counts, w, prior, order, units)
        self.verdicts = []
        for criterion in criteria:
            _, holds = measures.standing(criterion, counts, reference=prior, units=units)
            records = int(counts[:, ~holds].sum())
            self.verdicts.append(Verdict(criterion, np.flatnonzero(~holds), records))
        comparable = not alike and masses_of(original) == masses_of(released)
        self.averages: dict[str, Condition] = average_conditions(
            counts,
            t=strictest(criteria, TCloseness),
            l=strictest(criteria, LDiversity),
            original=self.before.plugin if comparable else None,
            units=units,
        )
        self.notes = list(notes)
        if not alike:
            self.notes += [f"original: {note}" for note in original.noted(units=units)]
        self.notes += [f"{'' if alike else 'released: '}{n}" for n in released.noted(units=units)]

    @property
    def letters(self) -> list[Any]:
        """Released letters x̃."""
        return self.released.x

    @property
    def holds(self) -> bool:
        """Whether every criterion holds for every released letter."""
        return all(verdict.holds for verdict in self.verdicts)

    @property
    def greatest_diversity(self) -> float:
        """ℓ_max = 2^H(W) (eq. 15)."""
        return greatest_diversity(self.released.p_w)

    def worst(self, measure: str = "I1", letters: int = SHOWN) -> list[Any]:
        """Return the released letters that are worst by a measure, the worst first."""
        many = whole(letters, "letters", least=1)
        return [self.letters[i] for i in self._measure(measure).order[:many]]

    def _measure(self, name: str) -> Measure:
        one_of(name, "measure", *self.measures)
        return self.measures[name]


def masses_of(source: DiscreteSource) -> dict[Any, float]:
    """Return the records of each value of W."""
    return dict(zip(source.w, source.joint.sum(axis=1).tolist(), strict=True))


def strictest(criteria: Sequence[Criterion], kind: type[Criterion]) -> float | None:
    """Return the strictest number typed into criteria of a kind, t-closeness by divergence."""
    alike = [c for c in criteria if isinstance(c, kind)]
    values = [float(c.value) for c in alike if getattr(c, "by_divergence", True)]
    return (max if kind is LDiversity else min)(values, default=None)


def _table(
    original: DiscreteSource, released: DiscreteSource, reference: str
) -> tuple[np.ndarray, list[Any], np.ndarray | None]:
    """Return the released counts, the values of their rows, and what these are compared with."""
    counts, w = released.joint, list(released.w)
    if reference == "released":
        return counts, w, None
    w += [value for value in original.w if value not in set(w)]
    counts = np.vstack([counts, np.zeros((len(w) - len(counts), counts.shape[1]))])
    mass = masses_of(original)
    return counts, w, np.array([mass[value] for value in w])


def _measured(
    counts: np.ndarray,
    w: Sequence[Any],
    prior: np.ndarray | None,
    order: Sequence[Any] | None,
    units: str,
) -> dict[str, Measure]:
    """Return every measure of the letters; the ordered distance where W has an order."""
    own: dict[str, Any] = {"reference": prior}
    rows: list[tuple[Any, ...]] = [
        ("k", "k-anonymity: records", measures.size(counts), True),
        ("distinct l", "distinct ℓ-diversity", measures.distinct_diversity(counts), True),
        ("entropy l", "entropy ℓ-diversity", measures.entropy_diversity(counts), True),
    ]
    for l in (2, 3):  # noqa: E741
        title = f"recursive (c, {l})-diversity: c above"
        rows.append((f"c at l={l}", title, measures.recursive_diversity(counts, l)))
    rows += [
        ("I1", f"t-closeness: divergence I1 [{units}]", i1(counts, units=units, **own)),
        ("equal distance", "t-closeness: equal distance", measures.earth_mover(counts, **own)),
    ]
    if order is not None:
        at = [w.index(value) for value in order]
        ranked = None if prior is None else prior[at]
        values = measures.earth_mover(counts[at], ordered=True, reference=ranked)
        rows.append(("ordered distance", "t-closeness: ordered distance", values))
    observed = measures.disclosure(counts, observed=True, **own)
    enhanced = measures.likeness(counts, enhanced=True, **own)
    rows += [
        ("delta", "δ-disclosure", measures.disclosure(counts, **own)),
        ("delta observed", "δ without absent values", observed),
        ("beta", "β-likeness", measures.likeness(counts, **own)),
        ("enhanced beta", "enhanced β-likeness", enhanced),
        ("I2", f"specific information I2 [{units}]", i2(counts, units=units)),
        ("I3", f"weighted reduction I3 [{units}]", i3(counts, units=units)),
        ("I4", f"membership I4 [{units}]", i4(counts, units=units)),
    ]
    sizes = counts.sum(axis=0)
    return {
        name: Measure(name, title, values, bool(low), sizes) for name, title, values, *low in rows
    }
