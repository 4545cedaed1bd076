"""A released table against the original: every measure, its worst letters, and the verdicts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from unicodedata import combining

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion, LDiversity, TCloseness
from cvxprivacy.criteria.privacy import criteria_listed
from cvxprivacy.errors import InputError
from cvxprivacy.files import whole_file
from cvxprivacy.microdata import measures
from cvxprivacy.microdata.bootstrap import draws_of, estimated
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.one_symbol import (
    Condition,
    average_conditions,
    equivalent_diversity,
    greatest_diversity,
    i1,
    i2,
    i3,
    i4,
)
from cvxprivacy.tables.bins import bins_of
from cvxprivacy.tables.frames import MOST_CELLS, Coding, listed, narwhal, own_order
from cvxprivacy.tables.labels import written
from cvxprivacy.validation import generator, labels, present, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Audit", "Measure", "Verdict", "audit"]

SCHEMA = "cvxprivacy audit 1"
SHOWN = 10  # letters of each worst list
KEYS = {"I(W; X)": "before", "t": "t", "H(W) − log ℓ": "l"}  # of conditions on the average, in JSON


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
    def letters(self) -> int:
        """How many letters break it."""
        return len(self.broken)

    @property
    def holds(self) -> bool:
        return not self.letters


class Audit:
    """What :func:`audit` found; print it, draw it, or write it down.

    Attributes
    ----------
    original, released : DiscreteSource
        The tables as they were counted; ``released.joint`` holds the counts N(w, x̃).
    letters : list
        Released letters x̃.
    measures : dict of str to Measure
        ``"k"``, ``"distinct l"``, ``"entropy l"``, ``"c at l=2"`` and ``"c at l=3"`` (recursive,
        infinite where W has fewer values), ``"I1"`` to ``"I4"``, ``"equal distance"``,
        ``"ordered distance"`` (where W is ordered), ``"delta"``, ``"delta observed"``, ``"beta"``,
        ``"enhanced beta"``.
    before, after : Information
        I(W; X) and I(W; X̃), with bias and interval.
    verdicts : list of Verdict
        Eq. 14 of Bezzi 2010, and its like for k and δ: necessary and sufficient.
    averages : dict of str to Condition
        Eq. 13: necessary, not sufficient.  ``"I(W; X)"``, where both tables have the same records
        of each W, is an observation: a drawn table may exceed it by chance, and it is part of no
        verdict.
    notes : list of str
    """

    def __init__(
        self,
        original: DiscreteSource,
        released: DiscreteSource,
        *,
        frame: Any,
        criteria: Sequence[Criterion],
        order: Sequence[Any] | None,
        reference: str,
        draws: int,
        seed: Any,
        units: str,
        notes: Sequence[str],
    ) -> None:
        self.original, self.released, self.units = original, released, units
        self.criteria, self._frame = tuple(criteria), frame
        self.letters = released.x
        counts, w, prior = released.joint, list(released.w), None
        if reference == "original":
            mass = masses_of(original)
            w += [value for value in original.w if value not in set(w)]
            counts = np.vstack([counts, np.zeros((len(w) - len(counts), counts.shape[1]))])
            prior = np.array([mass[value] for value in w])
        sizes = counts.sum(axis=0)
        alike = original is released
        same_w = masses_of(original) == masses_of(released)
        rng = generator(seed)
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
        for l in (2, 3):  # noqa: E741
            recursive = measures.recursive_diversity(counts, l)
            measure(f"c at l={l}", f"recursive (c, {l})-diversity: c above", recursive)
        given: dict[str, Any] = {"reference": prior}
        values = i1(counts, units=units, **given)
        measure("I1", f"t-closeness: divergence I1 [{units}]", values)
        values = measures.earth_mover(counts, **given)
        measure("equal distance", "t-closeness: equal distance", values)
        if order is not None:
            rows = [w.index(value) for value in order]
            values = measures.earth_mover(
                counts[rows], ordered=True, reference=None if prior is None else prior[rows]
            )
            measure("ordered distance", "t-closeness: ordered distance", values)
        measure("delta", "δ-disclosure", measures.disclosure(counts, **given))
        values = measures.disclosure(counts, observed=True, **given)
        measure("delta observed", "δ without absent values", values)
        measure("beta", "β-likeness", measures.likeness(counts, **given))
        values = measures.likeness(counts, enhanced=True, **given)
        measure("enhanced beta", "enhanced β-likeness", values)
        measure("I2", f"specific information I2 [{units}]", i2(counts, units=units))
        measure("I3", f"weighted reduction I3 [{units}]", i3(counts, units=units))
        measure("I4", f"membership I4 [{units}]", i4(counts, units=units))

        self.verdicts = []
        for criterion in criteria:
            _, holds = measures.standing(criterion, counts, reference=prior, units=units)
            broken = np.flatnonzero(~holds)
            self.verdicts.append(Verdict(criterion, broken, int(sizes[broken].sum())))
        self.averages: dict[str, Condition] = average_conditions(
            counts,
            t=self._typed(TCloseness),
            l=self._typed(LDiversity),
            original=self.before.plugin if same_w and not alike else None,
            units=units,
        )
        self.notes = list(notes)
        for name, source in (("original", original), ("released", released))[alike:]:
            said = source.noted(units=units)
            self.notes += said if alike else [f"{name}: {note}" for note in said]

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
        many = whole(letters, "letters", least=1)
        return [self.letters[i] for i in self._measure(measure).order[:many]]

    def _measure(self, name: str) -> Measure:
        if name not in self.measures:
            remedy = f"use one of {', '.join(self.measures)}"
            raise InputError("measure", f"{name!r} is unknown", remedy, value=name)
        return self.measures[name]

    def records(self, letters: Sequence[Any]) -> Any:
        """Return the records of some released letters, such as ``audit.records(audit.worst())``.

        The rows come in the flavour of the released table; a lazy one is filtered in its own
        engine, when it is asked for them.
        """
        assert self.released.coding is not None
        place = {letter: i for i, letter in enumerate(self.letters)}
        at = set()
        for i, letter in enumerate(letters):
            try:
                at.add(place[letter])
            except (KeyError, TypeError):
                remedy = "pass some of audit.letters, such as audit.worst()"
                problem = f"{letter!r} is no released letter"
                raise InputError("letters", problem, remedy, where=i, value=letter) from None
        found = self.released.coding.only(self._frame, [self.letters[i] for i in sorted(at)])
        seen = narwhal(found)
        expected = int(self.released.joint[:, sorted(at)].sum())
        if isinstance(seen, nw.DataFrame) and len(seen) != expected:
            problem = f"{len(seen):,} records have these letters, and {expected:,} were counted"
            raise InputError("released", problem, "audit the table again: it has changed since")
        return found

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
        found = values[[place.get(x, -1) for x in coding.letters(frame, coding.key)]]
        if coding.missing == "drop":
            w = coding.letters(frame, coding.sensitive)
            rows = w if len(coding.sensitive) > 1 else [(value,) for value in w]
            found[[None in row for row in rows]] = math.nan
        return found

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
        biased = self.original.biased or self.released.biased
        alike = (self.before.lower is None) == (self.after.lower is None)  # corrected alike
        if self.before is not self.after and self.before.corrected > 0 and alike and not biased:
            share = self.after.corrected / self.before.corrected
            found["kept"] = f"{share:.1%} of I(W; X), both corrected"
        return found

    @property
    def conclusions(self) -> list[tuple[str, str, str]]:
        """Every condition: what it says, "holds", "BROKEN" or "seen", and by how much."""
        found = []
        for name, condition in self.averages.items():
            title, stands = f"on average, {self._released} ≤ {name}", "holds"
            said = f"{condition.value:.4g}, at most {condition.bound:.4g}"
            if name == "I(W; X)":
                title, stands = f"on average, {self._released}", "seen"
                said = f"{condition.value:.4g}, not above the {condition.bound:.4g} of {name}"
                if not condition.holds:
                    said = f"{condition.value:.4g}, more than the {condition.bound:.4g} of {name}: "
                    said += "sampling, or X̃ uses W"
            elif not condition.holds:
                stands = "BROKEN"
            found.append((title, stands, said))
        for verdict in self.verdicts:
            said = "every letter satisfies it"
            if not verdict.holds:
                some = ", ".join(shown(self.letters[i]) for i in verdict.broken[:3])
                more = ", …" if len(verdict.broken) > 3 else ""
                many = verdict.letters
                said = f"{many:,} letters break" if many > 1 else "1 letter breaks"
                said += f" it, with {verdict.records:,} records: {some}{more}"
            found.append((repr(verdict.criterion), "holds" if verdict.holds else "BROKEN", said))
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
        for name, stands, said in self.conclusions:
            lines.append(f"  {stands:<6}  {name}: {said}")
        lines += [f"  note: {note}" for note in self.all_notes]
        return "\n".join(map(printable, lines))

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

    def document(self, *, letters: bool = True) -> dict[str, Any]:
        """Return the audit as JSON holds it.

        Parameters
        ----------
        letters : bool
            With every released letter and its counts of the confidential attribute, and the places
            among them of those that break a criterion.
        """
        source = self.released
        assert source.coding is not None
        assert self.original.coding is not None
        document = {
            "schema": SCHEMA,
            "units": self.units,
            "original": {"records": self.original.records, **self.original.coding.to_dict()},
            "released": {"records": source.records, **source.coding.to_dict()},
            "entropy": source.entropy(units=self.units),
            "l_max": self.greatest_diversity,
            "information": {
                name: {
                    "plugin": of.plugin, "bias": of.bias, "remainder": of.remainder,
                    "corrected": of.corrected, "lower": of.lower, "upper": of.upper,
                    "level": of.level, "draws": of.draws, "note": of.note,
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
                KEYS[name]: {"title": name, "value": c.value, "bound": c.bound, "holds": c.holds}
                for name, c in self.averages.items()
            },
            "criteria": [
                {
                    "criterion": repr(v.criterion), "holds": v.holds, "letters": v.letters,
                    "records": v.records, **({"places": v.broken.tolist()} if letters else {}),
                }
                for v in self.verdicts
            ],
            "holds": self.holds,
            "notes": self.all_notes,
            "w": [written(w, lenient=True) for w in source.w],
        }  # fmt: skip
        if letters:
            document["letters"] = [
                {
                    "letter": written(letter, lenient=True),
                    "counts": source.joint[:, i].astype(int).tolist(),
                    **{m.name: written(float(m.values[i])) for m in self.measures.values()},
                }
                for i, letter in enumerate(self.letters)
            ]
        return document

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write the audit as JSON, readable by its owner only; return where it is.

        It discloses the counts of the confidential attribute in every released letter: keep it
        with the original table.
        """
        with whole_file(path, private=True) as file:
            self.write_json(file)
        return Path(path)

    def write_json(self, file: IO[str]) -> None:
        """Write what :meth:`to_json` writes into an open file."""
        json.dump(self.document(), file, ensure_ascii=False, indent=1)
        file.write("\n")

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the audit as one self-contained HTML page, readable by its owner only.

        It names the worst letters and what they reveal: keep it with the original table.
        """
        with whole_file(path, private=True) as file:
            self.write_html(file)
        return Path(path)

    def write_html(self, file: IO[str]) -> None:
        """Write what :meth:`to_html` writes into an open file."""
        from cvxprivacy.microdata.audit_page import page

        file.write(page(self))


def shown(letter: Any) -> str:
    """Return a letter as people read it."""
    if isinstance(letter, tuple):
        return f"({', '.join(map(shown, letter))})"
    return "missing" if letter is None else printable(str(letter))


def printable(text: str) -> str:
    """Return text in which no character commands a terminal: those are escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def masses_of(source: DiscreteSource) -> dict[Any, float]:
    """Return the records of each value of W."""
    return dict(zip(source.w, source.joint.sum(axis=1).tolist(), strict=True))


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
    ordered: bool | Sequence[Hashable] | None = None,
    reference: str = "released",
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
        Bands of a width cover both tables.
    missing : {"refuse", "level", "drop"}
    ordered : bool or sequence of values, optional
        Whether W's values are in order, for the ordered earth mover's distance, or the values in
        their order.  By default they are where their type says so, in the released table or in the
        original: numbers, dates, bins and ordered categories; text has no order of its own.
    reference : {"released", "original"}
        The table whose p(w) the letters are compared with, in I1, the distances, δ, β, and the
        criteria on I1 and δ.  Where records were suppressed the released p(w) hides what that
        tells.  I2 to I4 and ℓ-diversity are of the released table alone.
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
    bootstrap = draws_of(bootstrap, "bootstrap")
    criteria = criteria_listed(criteria)
    if reference not in ("released", "original"):
        problem = f"{reference!r} is unknown"
        raise InputError("reference", problem, 'use "released" or "original"', value=reference)
    with _named("original"):
        coding = Coding.of(
            original, sensitive=sensitive, key=key, side=None, weights=None, bins=bins,
            missing=missing,
        )  # fmt: skip
    own, notes = coding, list[str]()
    if released is not None:
        with _named("released", besides=True):
            coding, own, notes = _own(coding, released, bins or {})
    with _named("original"):
        before = DiscreteSource.from_coding(original, coding, most=MOST_CELLS)
    frame, after = original, before
    if released is not None:
        frame = released
        with _named("released", besides=True):
            after = DiscreteSource.from_coding(released, own, most=MOST_CELLS)
        notes += [*_unbinned(coding, after), *_compared(before, after)]
    new = set(after.w) - set(before.w)
    if reference == "original" and new:
        problem = f"the original has no {' nor '.join(sorted(map(repr, new)))}"
        raise InputError("reference", problem, 'use reference="released"')
    return Audit(
        before,
        after,
        frame=frame,
        criteria=criteria,
        order=_ranked(ordered, reference, (after, frame), (before, original)),
        reference=reference,
        draws=bootstrap,
        seed=seed,
        units=units,
        notes=notes,
    )


@contextmanager
def _named(table: str, *, besides: bool = False) -> Iterator[None]:
    """Say in an error which of the two tables it is about."""
    try:
        yield
    except InputError as error:
        argument, problem = error.argument, error.problem
        if argument == "frame":
            argument = table
        elif besides and argument != table:
            problem += f" (in the {table} table)"
        more: dict[str, Any] = {"where": error.where, "value": error.value}
        raise type(error)(argument, problem, error.remedy, **more) from None


def _own(
    coding: Coding, released: Any, asked: Mapping[Hashable, Any]
) -> tuple[Coding, Coding, list[str]]:
    """Return how both tables are counted, and which columns are suppressed in the released one."""
    schema = narwhal(released).lazy().collect_schema()
    for name in listed(coding.sensitive, "sensitive"):
        present(name, schema.names(), "released")
    kept = tuple(name for name in coding.key if name in schema.names())
    gone = [name for name in coding.key if name not in kept]
    if not kept:
        remedy = "keep at least one key column, if only as a constant"
        raise InputError("released", "no key column", remedy)
    numeric = {n for n in coding.bins if n in schema.names() and schema[n].is_numeric()}
    bins: dict[Hashable, Any] = {str(n): spec for n, spec in asked.items() if str(n) in numeric}
    own = Coding.of(
        released, sensitive=coding.sensitive, key=kept, side=None, weights=None, bins=bins,
        missing=coding.missing,
    )  # fmt: skip
    both = dict(coding.bins)
    for column, spec in bins.items():
        edges = [of.bins[str(column)].edges for of in (coding, own)]
        least, most = min(e[0] for e in edges), max(e[-2] for e in edges)
        both[str(column)] = bins_of(column, spec, least, most)
    notes = [f"suppressed in the release: {', '.join(gone)}"] if gone else []
    own = replace(own, bins={name: both[name] for name in numeric})
    return replace(coding, bins=both), own, notes


def _unbinned(coding: Coding, after: DiscreteSource) -> list[str]:
    """Say which released columns hold text where the original is binned."""
    assert after.coding is not None
    found = []
    for name in (n for n in after.coding.columns if n in coding.bins):
        own = set(after.levels[name]) - {None, *coding.bins[name].labels}
        if name not in after.coding.bins and own:
            some = repr(min(map(str, own)))
            found.append(f"{name} holds text in the release, such as {some}: it is not binned")
    return found


def _compared(before: DiscreteSource, after: DiscreteSource) -> list[str]:
    """Say what became of the records, and of each value of W."""
    was, now = masses_of(before), masses_of(after)
    rows = [int(sum(of.values())) + s.dropped for of, s in ((was, before), (now, after))]
    w, found = before.names[0], []
    if rows[0] < rows[1]:
        found.append(f"the release has {rows[1]:,} records, the original {rows[0]:,}")
    elif rows[0] > rows[1]:
        found.append(f"{rows[1]:,} records of {rows[0]:,} are released")
    gone, new = ([v for v in a if v not in b] for a, b in ((was, now), (now, was)))
    alike = {str(value) for value in gone} & {str(value) for value in new}
    if alike:
        kinds = [type(next(v for v in of if str(v) in alike)).__name__ for of in (gone, new)]
        problem = f"{w} is {kinds[0]} in the original and {kinds[1]} in the release"
        return [*found, f"{problem}: its values are not compared"]
    for values, of, said in ((gone, was, "vanished"), (new, now, "new")):
        if values:
            some = ", ".join(map(shown, values[:3])) + (", …" if len(values) > 3 else "")
            records = sum(of[value] for value in values)
            found.append(f"{w} {some}: {said} in the release, {records:,.0f} records")
    changed = [value for value in was if value in now and was[value] != now[value]]
    if changed and rows[0] == rows[1] and not before.dropped and not after.dropped:
        found.append(f"{w} itself was changed")
    elif changed and rows[0] > rows[1]:
        least = min(changed, key=lambda value: now[value] / was[value])
        found.append(
            f"{w} {shown(least)}: {now[least]:,.0f} records of {was[least]:,.0f} are released, the "
            "least share"
        )
    return found


def _ranked(ordered: Any, reference: str, *tables: tuple[DiscreteSource, Any]) -> list[Any] | None:
    """Return the values of W in order, or None where they have none."""
    sources = [source for source, _ in tables]
    values = set(sources[0].w) | (set(sources[1].w) if reference == "original" else set())
    if ordered is False:
        return None
    if ordered is not None and ordered is not True:
        remedy = "pass True, False, or all values of W in their order"
        if isinstance(ordered, str) or not isinstance(ordered, Sequence):
            raise InputError("ordered", f"{ordered!r}", remedy, value=ordered)
        order = labels(ordered, None, "ordered")
        if not values <= set(order):
            missing = sorted(map(repr, values - set(order)))
            raise InputError("ordered", f"it lacks {', '.join(missing)}", remedy)
        return [value for value in order if value in values]
    for source, table in tables:
        assert source.coding is not None
        name, *more = source.coding.sensitive
        own = None if more else own_order(source.coding, table, name, source.levels[name])
        if own is not None and values <= set(own):
            return [value for value in own if value in values]
    if ordered:
        problem = f"{sources[0].names[0]} has no order of its own"
        remedy = "pass its values in their order"
        raise InputError("ordered", problem, remedy)
    return None
