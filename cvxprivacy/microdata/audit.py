"""A released table against the original: every measure, its worst letters, and the verdicts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any
from unicodedata import combining

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.checks import whole
from cvxprivacy.criteria import Criterion, LDiversity, TCloseness
from cvxprivacy.errors import InputError
from cvxprivacy.files import whole_file
from cvxprivacy.frames import MOST_CELLS, Coding, listed, narwhal
from cvxprivacy.labels import written
from cvxprivacy.microdata import measures
from cvxprivacy.microdata.bootstrap import estimated
from cvxprivacy.one_symbol import (
    Condition,
    average_conditions,
    equivalent_diversity,
    greatest_diversity,
    i1,
    i2,
    i3,
    i4,
)
from cvxprivacy.sources import DiscreteSource

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Audit", "Measure", "Verdict", "audit"]

SCHEMA = "cvxprivacy audit 1"
SHOWN = 10  # letters of each worst list


@dataclass(frozen=True, eq=False)
class Measure:
    """One measure of a released table.

    Attributes
    ----------
    name, title : str
    values : ndarray, shape (|X̃|,)
        Of each released letter.
    worst : float
        Of the table: the least or the greatest of them.
    letters : int
        How many letters are as bad as the worst.
    records : int
        How many records they hold.
    average : float
        Over the records.
    """

    name: str
    title: str
    values: npt.NDArray[np.float64]
    low: bool  # is bad
    sizes: npt.NDArray[np.float64]

    @property
    def worst(self) -> float:
        return float(self.values.min() if self.low else self.values.max())

    @cached_property
    def _at_worst(self) -> npt.NDArray[np.bool_]:
        return np.isclose(self.values, self.worst, rtol=1e-12, atol=1e-15)

    @property
    def letters(self) -> int:
        return int(self._at_worst.sum())

    @property
    def records(self) -> int:
        return int(self.sizes[self._at_worst].sum())

    @property
    def average(self) -> float:
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
    def holds(self) -> bool:
        return not len(self.broken)


class Audit:
    """What :func:`audit` found; print it, draw it, or write it down.

    Attributes
    ----------
    original, released : DiscreteSource
        The tables as they were counted; ``released.joint`` holds the counts N(w, x̃).
    letters : list
        Released letters x̃.
    measures : dict of str to Measure
        ``"k"``, ``"distinct l"``, ``"entropy l"``, ``"c at l=2"`` and ``"c at l=3"`` (recursive),
        ``"I1"`` to ``"I4"``, ``"equal distance"``, ``"ordered distance"`` (where W is ordered),
        ``"delta"``, ``"delta observed"``, ``"beta"``, ``"enhanced beta"``.
    before, after : Information
        I(W; X) and I(W; X̃), with bias and interval.
    verdicts : list of Verdict
        Eq. 14 of Bezzi 2010, and its like for k and δ: necessary and sufficient.
    averages : dict of str to Condition
        Eq. 13: necessary, not sufficient.
    notes : list of str
    """

    def __init__(
        self,
        original: DiscreteSource,
        released: DiscreteSource,
        *,
        frame: Any,
        criteria: Sequence[Criterion],
        ordered: bool,
        draws: int,
        seed: Any,
        units: str,
        notes: Sequence[str],
    ) -> None:
        self.original, self.released, self.units = original, released, units
        self.criteria, self._frame = tuple(criteria), frame
        self.letters = released.x
        counts = released.joint
        sizes = counts.sum(axis=0)
        alike = original is released
        rng = np.random.default_rng(seed)
        self.after = estimated(counts, draws=draws, seed=rng, units=units)
        self.before = self.after if alike else estimated(
            original.joint, draws=draws, seed=rng, units=units
        )  # fmt: skip

        def measure(name: str, title: str, values: np.ndarray, low: bool = False) -> None:
            self.measures[name] = Measure(name, title, values, low, sizes)

        self.measures: dict[str, Measure] = {}
        measure("k", "k-anonymity: records", measures.size(counts), True)
        measure("distinct l", "distinct ℓ-diversity", measures.distinct_diversity(counts), True)
        measure("entropy l", "entropy ℓ-diversity", measures.entropy_diversity(counts), True)
        for l in range(2, min(len(released.w), 3) + 1):  # noqa: E741
            recursive = measures.recursive_diversity(counts, l)
            measure(f"c at l={l}", f"recursive (c, {l})-diversity: c above", recursive)
        measure("I1", f"t-closeness: divergence I1 [{units}]", i1(counts, units=units))
        measure("equal distance", "t-closeness: equal distance", measures.earth_mover(counts))
        if ordered:
            values = measures.earth_mover(counts, ordered=True)
            measure("ordered distance", "t-closeness: ordered distance", values)
        measure("delta", "δ-disclosure", measures.disclosure(counts))
        measure(
            "delta observed", "δ without absent values", measures.disclosure(counts, observed=True)
        )
        measure("beta", "β-likeness", measures.likeness(counts))
        measure("enhanced beta", "enhanced β-likeness", measures.likeness(counts, enhanced=True))
        measure("I2", f"specific information I2 [{units}]", i2(counts, units=units))
        measure("I3", f"weighted reduction I3 [{units}]", i3(counts, units=units))
        measure("I4", f"membership I4 [{units}]", i4(counts, units=units))

        self.verdicts = []
        for criterion in criteria:
            _, holds = measures.standing(criterion, counts, units=units)
            broken = np.flatnonzero(~holds)
            self.verdicts.append(Verdict(criterion, broken, int(sizes[broken].sum())))
        self.averages: dict[str, Condition] = average_conditions(
            counts,
            t=self._typed(TCloseness),
            l=self._typed(LDiversity),
            original=None if alike else self.before.plugin,
            units=units,
        )
        self.notes = [*notes, *([] if alike else [f"original: {n}" for n in original.notes])]
        self.notes += [n if alike else f"released: {n}" for n in released.notes]

    def _typed(self, kind: type[Criterion]) -> float | None:
        """Return the strictest number typed into criteria of a kind."""
        values = [float(c.value) for c in self.criteria if isinstance(c, kind)]
        return (max if kind is LDiversity else min)(values, default=None)

    # ---- what was asked ------------------------------------------------------------------

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
        return [self.letters[i] for i in self._measure(measure).order[:letters]]

    def _measure(self, name: str) -> Measure:
        if name not in self.measures:
            remedy = f"use one of {', '.join(self.measures)}"
            raise InputError("measure", f"{name!r} is unknown", remedy, value=name)
        return self.measures[name]

    def records(self, letters: Sequence[Any]) -> Any:
        """Return the records of some released letters, such as ``audit.records(audit.worst())``.

        The rows come in the flavour of the released table, filtered in its own engine.
        """
        assert self.released.coding is not None
        for i, letter in enumerate(letters):
            if letter not in self.letters:
                remedy = "pass some of audit.letters, such as audit.worst()"
                problem = f"{letter!r} is no released letter"
                raise InputError("letters", problem, remedy, where=i, value=letter)
        return self.released.coding.only(self._frame, letters)

    def per_record(self, measure: str = "I1") -> npt.NDArray[np.float64]:
        """Return a measure for each record of a released table in memory, in its order.

        NaN where a record was left out for missing values.
        """
        coding, frame = self.released.coding, narwhal(self._frame)
        assert coding is not None
        if isinstance(frame, nw.LazyFrame):
            raise InputError("released", "a lazy table", "collect it to have its records in order")
        place = {letter: i for i, letter in enumerate(self.letters)}
        values = np.append(self._measure(measure).values, math.nan)
        return values[[place.get(x, -1) for x in coding.letters(frame, coding.key)]]

    # ---- said ----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"Audit({self.released.records:,} records, {len(self.letters):,} letters, "
            f"{len(self.verdicts)} criteria: {'hold' if self.holds else 'broken'})"
        )

    @property
    def _released(self) -> str:
        return "I(W; X)" if self.before is self.after else "I(W; X̃)"

    @property
    def facts(self) -> dict[str, str]:
        """What the tables are, in words."""
        source = self.released
        entropy = source.entropy(units=self.units)
        found = {
            "records": f"{source.records:,}",
            "confidential": f"{source.names[0]}, {len(source.w)} values",
            "released": f"{source.names[1]}, {len(source.x):,} letters",
            "H(W)": f"{entropy:.4f} {self.units}; ℓ_max = {self.greatest_diversity:.4g}",
        }
        t = self._typed(TCloseness)
        if t is not None:
            equivalent = equivalent_diversity(source.p_w, t, units=self.units)
            found["ℓ_t"] = f"{equivalent:.4g} at t = {t:g}"
        if self.before is not self.after:
            found["I(W; X)"] = str(self.before)
        found[self._released] = str(self.after)
        if self.before is not self.after and self.before.plugin > 0:
            found["kept"] = f"{self.after.plugin / self.before.plugin:.1%} of I(W; X)"
        return found

    @property
    def conclusions(self) -> list[tuple[str, bool, str]]:
        """Every condition: what it says, whether it holds, and by how much."""
        found = []
        for name, condition in self.averages.items():
            said = f"{condition.value:.4g}, at most {condition.bound:.4g}"
            found.append((f"on average, {self._released} ≤ {name}", condition.holds, said))
        for verdict in self.verdicts:
            said = "every letter satisfies it"
            if not verdict.holds:
                some = ", ".join(shown(self.letters[i]) for i in verdict.broken[:3])
                more = ", …" if len(verdict.broken) > 3 else ""
                many = len(verdict.broken)
                said = f"{many:,} letters break" if many > 1 else "1 letter breaks"
                said += f" it, with {verdict.records:,} records: {some}{more}"
            found.append((repr(verdict.criterion), verdict.holds, said))
        return found

    @property
    def all_notes(self) -> list[str]:
        """Notes, with those on the intervals."""
        both = {"I(W; X)": self.before, self._released: self.after}
        return [*self.notes, *(f"{name}: {of.note}" for name, of in both.items() if of.note)]

    def __str__(self) -> str:
        facts = self.facts
        lines = ["audit of a released table"]
        lines += [f"  {_padded(name, 12)}  {said}" for name, said in facts.items()]
        lines += [
            "",
            f"  {'measure':<40} {'worst':>9} {'letters':>8} {'records':>8} {'average':>9}",
        ]
        for m in self.measures.values():
            lines.append(
                f"  {m.title:<40} {number(m.worst):>9} {m.letters:>8,} {m.records:>8,} "
                f"{number(m.average):>9}"
            )
        if self.conclusions:
            lines.append("")
        for name, holds, said in self.conclusions:
            lines.append(f"  {'holds ' if holds else 'BROKEN'}  {name}: {said}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.all_notes)])

    def _repr_html_(self) -> str:
        from cvxprivacy.microdata.audit_page import body

        return body(self, picture=False)

    def draw(self, figure: Figure | None = None) -> Figure:
        """Draw the average and the letters, in the layout of Bezzi's Fig. 2.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            A new one by default.
        """
        from cvxprivacy.microdata.audit_page import drawn

        return drawn(self, figure)

    # ---- written -------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """Return the audit as JSON holds it.

        It has the counts of the confidential attribute for every released letter.
        """
        source = self.released
        assert source.coding is not None
        assert self.original.coding is not None
        return {
            "schema": SCHEMA,
            "units": self.units,
            "original": {"records": self.original.records, **self.original.coding.to_dict()},
            "released": {"records": source.records, **source.coding.to_dict()},
            "entropy": source.entropy(units=self.units),
            "l_max": self.greatest_diversity,
            "information": {
                name: {
                    "plugin": of.plugin, "bias": of.bias, "corrected": of.corrected,
                    "lower": of.lower, "upper": of.upper, "level": of.level, "draws": of.draws,
                    "note": of.note,
                }
                for name, of in (("before", self.before), ("after", self.after))
            },
            "measures": {
                m.name: {
                    "title": m.title, "worst": written(m.worst), "average": written(m.average),
                    "letters": m.letters, "records": m.records,
                }
                for m in self.measures.values()
            },
            "averages": {
                name: {"value": c.value, "bound": c.bound, "holds": c.holds}
                for name, c in self.averages.items()
            },
            "criteria": [
                {
                    "criterion": repr(v.criterion), "holds": v.holds, "letters": v.broken.tolist(),
                    "records": v.records,
                }
                for v in self.verdicts
            ],
            "holds": self.holds,
            "notes": self.all_notes,
            "w": [written(w, lenient=True) for w in source.w],
            "letters": [
                {
                    "letter": written(letter, lenient=True),
                    "counts": source.joint[:, i].astype(int).tolist(),
                    **{m.name: written(float(m.values[i])) for m in self.measures.values()},
                }
                for i, letter in enumerate(self.letters)
            ],
        }  # fmt: skip

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the audit as JSON, readable by its owner only.

        It discloses the counts of the confidential attribute in every released letter: keep it
        with the original table.
        """
        with whole_file(path, private=True) as file:
            self.write_json(file)

    def write_json(self, file: IO[str]) -> None:
        """Write what :meth:`to_json` writes into an open file."""
        json.dump(self.document(), file, ensure_ascii=False, indent=1)
        file.write("\n")

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the audit as one self-contained HTML page, readable by its owner only.

        It names the worst letters and what they reveal: keep it with the original table.
        """
        with whole_file(path, private=True) as file:
            self.write_html(file)

    def write_html(self, file: IO[str]) -> None:
        """Write what :meth:`to_html` writes into an open file."""
        from cvxprivacy.microdata.audit_page import page

        file.write(page(self))


def shown(letter: Any) -> str:
    """Return a letter as people read it."""
    if isinstance(letter, tuple):
        return f"({', '.join(map(shown, letter))})"
    return "missing" if letter is None else str(letter)


def _padded(text: str, width: int) -> str:
    """Fill up to a width in which combining marks take no place."""
    return text + " " * (width - sum(not combining(mark) for mark in text))


def number(value: float) -> str:
    """Return a measure as people read it."""
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1e3 else f"{value:.4g}"


def audit(
    original: Any,
    released: Any = None,
    *,
    key: Hashable | Sequence[Hashable],
    sensitive: Hashable | Sequence[Hashable],
    criteria: Sequence[Criterion] = (),
    bins: Mapping[Hashable, float | Sequence[float]] | None = None,
    missing: str = "refuse",
    ordered: bool | None = None,
    bootstrap: int = 0,
    seed: int | np.random.Generator | None = None,
    units: str = "bits",
) -> Audit:
    """Measure a released table against the original: every measure, per letter and at its worst.

    Parameters
    ----------
    original, released : frame of any kind that :meth:`DiscreteSource.from_table` takes
        Each is counted by one group-by in its own engine.  Without ``released`` the original is
        audited as it stands.
    key : column name, or several
        X in the original.  Those that the released table lacks are suppressed; the others are X̃.
    sensitive : column name, or several
        W.  The measures compare with its law in the released table.
    criteria : sequence of Criterion
        ``TCloseness(t)``, ``LDiversity(l)``, ``KAnonymity(k)``, ``DeltaDisclosure(delta)``.
    bins : mapping of column to number or sequence, optional
        As for :meth:`DiscreteSource.from_table`; for a released column only where it is numeric.
    missing : {"refuse", "level", "drop"}
    ordered : bool, optional
        Whether W's values are in order, for the ordered earth mover's distance; by default numbers,
        bins and ordered categories are.
    bootstrap : int
        Draws for intervals of the mutual information; 0 for none, a few hundred otherwise.
    seed : int or Generator, optional
        Of the bootstrap.
    units : {"bits", "nats"}
        Of information and of t; δ is a natural logarithm always.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        For what cannot be counted, and for criteria that are not per released letter.

    Notes
    -----
    Class sizes (k) speak of identity only where the release is deterministic in the key: under a
    randomised one a small class need not hold the record that it seems to.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [1, 1, 2, 2], "ill": ["no", "yes", "no", "no"]})
    >>> found = audit(people, key="age", sensitive="ill")
    >>> found.measures["k"].worst, found.worst("distinct l", 1)
    (2.0, [2])
    """
    bootstrap = whole(bootstrap, "bootstrap", least=0)
    for i, criterion in enumerate(criteria):
        if not isinstance(criterion, Criterion):
            remedy = "pass criteria such as TCloseness(0.5)"
            raise InputError("criteria", f"{criterion!r} is no criterion", remedy, where=i)
    coding = Coding.of(
        original, sensitive=sensitive, key=key, side=None, weights=None, bins=bins, missing=missing
    )
    before = DiscreteSource.from_coding(original, coding, most=MOST_CELLS)
    if released is None:
        frame, after, notes = original, before, list[str]()
    else:
        frame = released
        own, notes = _own(coding, released)
        after = DiscreteSource.from_coding(released, own, most=MOST_CELLS)
        masses = [dict(zip(s.w, s.joint.sum(axis=1), strict=True)) for s in (before, after)]
        if before.records != after.records:
            notes.append(f"{after.records:,} records of {before.records:,} are released")
        elif masses[0] != masses[1]:
            notes.append(f"{', '.join(coding.sensitive)} itself was changed")
    if ordered is None:
        ordered = _in_order(frame, after)
    return Audit(
        before,
        after,
        frame=frame,
        criteria=criteria,
        ordered=ordered,
        draws=bootstrap,
        seed=seed,
        units=units,
        notes=notes,
    )


def _own(coding: Coding, released: Any) -> tuple[Coding, list[str]]:
    """Return how the released table is counted, and which columns are suppressed in it."""
    schema = narwhal(released).lazy().collect_schema()
    for name in listed(coding.sensitive, "sensitive"):
        if name not in schema.names():
            said = ", ".join(schema.names())
            raise InputError("released", f"no column {name!r}", f"there are {said}", value=name)
    kept = tuple(name for name in coding.key if name in schema.names())
    gone = [name for name in coding.key if name not in kept]
    if not kept:
        remedy = "keep at least one key column, if only as a constant"
        raise InputError("released", "no key column", remedy)
    bins = {n: b for n, b in coding.bins.items() if n in schema.names() and schema[n].is_numeric()}
    notes = [f"suppressed in the release: {', '.join(gone)}"] if gone else []
    return replace(coding, key=kept, bins=bins), notes


def _in_order(frame: Any, source: DiscreteSource) -> bool:
    """Tell whether the values of W have an order of their own."""
    assert source.coding is not None
    names = source.coding.sensitive
    if len(names) > 1 or None in source.w:
        return False
    dtype = narwhal(frame).lazy().collect_schema()[names[0]]
    return names[0] in source.coding.bins or dtype.is_numeric() or isinstance(dtype, nw.Enum)
