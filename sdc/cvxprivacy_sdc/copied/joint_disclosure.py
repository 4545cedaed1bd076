"""What all the columns that a release leaves alone reveal together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv
from threadpoolctl import threadpool_limits

from cvxprivacy.extras import nw
from cvxprivacy.release.channel import Channel
from cvxprivacy.tables.engines import as_narwhals, python_values
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.text import cells
from cvxprivacy_sdc.copied.dependencies import Dependency, functions, sums
from cvxprivacy_sdc.copied.sample import Codes, Column, Sample, codes_of, joint_codes
from cvxprivacy_sdc.copied.untouched import Leak, first, surveyed, target_codes

__all__ = ["Guess", "JointDisclosure", "Recovery", "copied_disclosure"]

GUESSED = 20_000  # records: half of them to learn from, half to be guessed
CANDIDATES = 12  # columns that tell most by themselves, of which pairs are tried, and dropped
TRIED = 40  # columns of most values, of which those are sought that make most records unique
LEARNT_FROM = 50  # columns that a predictor sees
CLASSES = 30  # values of the target: rarer ones are never guessed
FEW_CHANGED = 20  # changed records, under which it is not told how many are recovered
LEVEL = 0.95  # of each bound, one-sided
MOST_DROPPED = 6  # columns that are proposed for each target

LEAST = 500  # records from which anything is learnt


@dataclass(frozen=True)
class Recovery:
    """How many of some records are guessed, and how many without the copied columns.

    ``lower`` bounds the share of the law behind the records from below, at a level of 95 %
    (Clopper and Pearson 1934, *Biometrika* 26): what guesses was learnt from other records.
    """

    hits: int
    records: int
    without: int

    @property
    def share(self) -> float:
        """Of the records that are guessed."""
        return self.hits / max(self.records, 1)

    @property
    def lower(self) -> float:
        """What the share is at least."""
        failures = self.records - self.hits
        exact = float(betaincinv(self.hits, failures + 1, 1 - LEVEL)) if self.hits else 0.0
        return math.floor(1000 * exact) / 1000  # as it is printed: a bound is rounded down

    @property
    def tells(self) -> bool:
        """Whether it is more than without the copied columns, beyond chance."""
        failures = self.records - self.without
        return bool(failures) and self.lower > float(betaincinv(self.without + 1, failures, LEVEL))

    def __str__(self) -> str:
        """The shares."""
        without = self.without / max(self.records, 1)
        return f"{self.share:.1%} (at least {self.lower:.1%}; {without:.1%} without them)"

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {**asdict(self), "share": self.share, "lower": self.lower}


@dataclass(frozen=True)
class Guess:
    """How well boosted trees guess a protected column from all copied ones.

    Attributes
    ----------
    target : str
    columns : tuple of str
        From which it is guessed: all, or the 50 that tell most.
    of_all : Recovery
        Of all records.
    of_changed : Recovery or None
        Of those whose value the channel changed; None for W and where they are few.
    coarse : bool
        Whether the interval of a number is guessed, of 20.
    """

    target: str
    columns: tuple[str, ...]
    of_all: Recovery
    of_changed: Recovery | None
    coarse: bool = False

    @property
    def tells(self) -> bool:
        """Whether more is told than nothing: of what was changed, where anything was."""
        return (self.of_changed or self.of_all).tells

    def __str__(self) -> str:
        """What is guessed, from what, and how often that is right."""
        of = "all copied columns"
        if len(self.columns) == LEARNT_FROM:
            of = f"the {LEARNT_FROM} copied columns that tell most"
        target = f"which of 20 intervals of {self.target}" if self.coarse else self.target
        text = f"{target}, guessed from {of}: {self.of_all} of the records"
        if self.of_changed is not None:
            text += f", {self.of_changed} of those where it was changed"
        return text

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        changed = None if self.of_changed is None else self.of_changed.document()
        return {
            "target": self.target, "columns": list(self.columns),
            "of_all": self.of_all.document(), "of_changed": changed, "words": str(self),
        }  # fmt: skip


@dataclass(frozen=True)
class JointDisclosure:
    """What copied columns reveal together: read off, guessed, or by which records are unique.

    Attributes
    ----------
    records : int
        That were looked at.
    sampled : bool
        Whether they are a sample: records that are unique in it need not be so in the table.
    dependencies : tuple of Dependency
        From which a protected column is read off.
    guesses : tuple of Guess
        Learnt from half of up to 20,000 records; all figures are of the other half.
    unique : tuple of (columns, int)
        How many records are unique on the best one, two, three of the columns that are not
        proposed, on all of these, and on all copied columns.
    proposals : tuple of (column, reason)
        What to leave out or coarsen, in this order, until what is told meets the goal.
    met : bool or None
        Whether guesses are then no better than without any copied column; None where that is not
        known.
    unknown : str
        Why that is not known, where it is to be told.
    """

    records: int
    sampled: bool
    dependencies: tuple[Dependency, ...]
    guesses: tuple[Guess, ...]
    unique: tuple[tuple[tuple[str, ...], int], ...]
    proposals: tuple[tuple[str, str], ...]
    met: bool | None
    unknown: str = ""

    @classmethod
    def of(
        cls,
        sample: Sample,
        copied: Sequence[Column],
        leaks: Sequence[Leak],
        channel: Channel | None = None,
        *,
        hidden: Sequence[str] = (),
        progress: Callable[[int], object] | None = None,
    ) -> JointDisclosure:
        """Look at all copied columns of a sample together.

        Parameters
        ----------
        sample : Sample
            Of the original table.
        copied : sequence of Column
            Its copied columns.
        leaks : sequence of Leak
            What each column reveals by itself, of W and of the key: the columns that reveal most
            are tried first.
        channel : Channel, optional
            Which changes the key.  What it changes is drawn anew, with a fixed seed.  Without one
            the key is as it is.
        hidden : sequence of str
            Columns of W that are not released: nothing is read off from them.
        progress : callable, optional
            Given 1 after W and after each key column.
        """
        schema = sample.schema
        columns = {column.name: column for column in copied}
        released = _released_key(sample, channel)
        learns, unknown = sample.records >= LEAST, ""
        if not learns:
            unknown = f"nothing is guessed: {sample.records:,} records are too few to learn from"
        else:
            import_module("sklearn.ensemble")  # before its threads are limited
        dependencies: list[Dependency] = []
        guesses: list[Guess] = []
        naming = [n for n, column in columns.items() if 2 * column.values > sample.records]
        proposals, met = dict.fromkeys(naming, "fewer than two records share a value"), True
        for names in (schema.sensitive, *((name,) for name in schema.key)):
            target = _Target.of(sample, names, columns, leaks, released)
            read_off = target.dependencies(sample, hidden)
            dependencies += read_off
            for dependency in read_off:
                needed = [name for name in target.columns if name in dependency.columns]
                if needed and not proposals.keys() & {*needed}:
                    proposals[needed[0]] = str(dependency)
            if learns and target.columns:
                with threadpool_limits(1):  # threads that wait for each other take far longer
                    guesses.append(target.guessed([*target.columns][:LEARNT_FROM]))
                    met &= target.propose(proposals)
            if progress is not None:
                progress(1)
        return cls(
            sample.records, sample.sampled, tuple(dependencies), tuple(guesses),
            _unique(columns, proposals), tuple(proposals.items()), met if learns else None,
            unknown,
        )  # fmt: skip

    def lines(self) -> list[str]:
        """Return the finding in words, a line for each part."""
        lines = [str(dependency) for dependency in self.dependencies]
        lines += map(str, self.guesses)
        return [*lines, *[self.unknown] * bool(self.unknown), *self.uniqueness()]

    def uniqueness(self) -> list[str]:
        """Say how many records are unique: on all columns, on those that are left, on few."""
        if not self.unique:
            return []
        of = f"{self.records:,} records" + " that were drawn" * self.sampled
        texts = [
            f"{number / self.records:.1%} on "
            + (cells(names) if len(names) <= 3 else f"{len(names)} copied columns")
            for names, number in self.unique
        ]
        return [f"unique, of {of}: {'; '.join(texts)}"]

    def advice(self) -> list[str]:
        """Say what to leave out or coarsen."""
        if not self.proposals:
            return []
        names = first([name for name, _ in self.proposals])
        until = {
            True: ": from the others together nothing is guessed better than without them",
            False: ": even then the others together guess more than is guessed without them",
            None: "",
        }[self.met]
        return [f"leave out of the file, or coarsen, {names}{until}"]

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "records": self.records,
            "sampled": self.sampled,
            "dependencies": [{**asdict(d), "words": str(d)} for d in self.dependencies],
            "guesses": [guess.document() for guess in self.guesses],
            "unique": [{"columns": list(c), "records": number} for c, number in self.unique],
            "proposals": [{"column": name, "why": why} for name, why in self.proposals],
            "met": self.met,
            "lines": self.lines(),
            "advice": self.advice(),
        }


def copied_disclosure(
    frame: Any,
    schema: TableSchema,
    dropped: Sequence[str],
    progress: Callable[[int, str], AbstractContextManager[Callable[[int], object] | None]],
    *,
    units: str = "bits",
    channel: Channel | None = None,
    together: bool = False,
) -> tuple[list[Leak], JointDisclosure | None]:
    """Return what each copied column of the original reveals, and what they do ``together``.

    ``progress(steps, what)`` is a context, which is given 1 after each step.
    """
    sample = Sample.of(frame, schema)
    copied = [sample.column(name) for name in sample.copied if name not in dropped]
    with progress(len(copied), "other columns") as counted:
        leaks = surveyed(sample, copied, units=units, progress=counted)
    if not together:
        return leaks, None
    with progress(1 + len(schema.key), "other columns, together") as judged:
        how: dict[str, Any] = {"hidden": dropped, "progress": judged}
        return leaks, JointDisclosure.of(sample, copied, leaks, channel, **how)


def _released_key(sample: Sample, channel: Channel | None) -> dict[str, Sequence[Any]]:
    """Return the key columns as a channel releases them, or as they are."""
    schema = sample.schema
    if channel is None:
        return {name: schema.letters(sample.frame, [name]) for name in schema.key}
    if sample.sampled and channel.drawn_jointly:  # counts of all records: here by their law
        channel = Channel(**channel._arguments())
    used = nw.to_native(sample.frame.select(schema.columns))
    with warnings.catch_warnings():  # of values without mass: said of the release itself
        warnings.simplefilter("ignore")
        released = as_narwhals(channel.apply(used, seed=0))
    return {name: python_values(released[name]) for name in schema.key}


# ---- one protected column ----------------------------------------------------------------


@dataclass(frozen=True)
class _Target:
    """A protected column as it is guessed: on half of the records, from the other half."""

    name: str
    names: tuple[str, ...]
    coarse: bool
    codes: Codes  # −1 for rare letters, which are never guessed
    without: Codes  # what is known without copied columns: the released key, of W; else nothing
    changed: npt.NDArray[np.bool_]  # no record for W
    columns: Mapping[str, Column]  # those that tell most first
    learnt: npt.NDArray[np.int64]
    guesses: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        sample: Sample,
        names: tuple[str, ...],
        columns: Mapping[str, Column],
        leaks: Sequence[Leak],
        released: Mapping[str, Sequence[Any]],
    ) -> _Target:
        """Order the columns by what each tells of this one, and draw the halves."""
        name, (codes, coarse) = ", ".join(names), target_codes(sample, names)
        about = {leak.column: leak for leak in leaks if leak.about == name}
        ordered = sorted(columns, key=lambda column: -about[column].corrected)
        ordered = [column for column in ordered if columns[column].values > 1]
        if names[0] in released:
            before = sample.schema.letters(sample.frame, names)
            pairs = zip(before, released[names[0]], strict=True)
            changed = np.array([one != other for one, other in pairs])
            without = np.zeros(sample.records, np.int64)
        else:
            changed = np.zeros(sample.records, bool)
            without = codes_of(zip(*released.values(), strict=True))
        order = np.random.default_rng(0).permutation(sample.records)[:GUESSED]
        frequent = np.argsort(-np.bincount(codes), kind="stable")[:CLASSES]
        codes = np.where(np.isin(codes, frequent), codes, -1)
        return cls(
            name, names, coarse, codes, without, changed, {n: columns[n] for n in ordered},
            order[: len(order) // 2], order[len(order) // 2 :],
        )  # fmt: skip

    def dependencies(self, sample: Sample, hidden: Sequence[str]) -> list[Dependency]:
        """Return what it is read off from; from W too, which is copied as it is."""
        others = {**self.columns}
        beside = [n for n in sample.schema.sensitive if n not in (*self.names, *hidden)]
        others |= {n: sample.column(n) for n in beside}
        values = {n: c.codes for n, c in [*others.items()][:CANDIDATES]}
        letters = functions(self.name, sample.letters(self.names), values)
        goal = sample.column(self.names[0]).numbers if len(self.names) == 1 else None
        if goal is None:
            return letters
        numbers = {n: c.numbers for n, c in others.items() if c.numbers is not None}
        added = sums(self.name, goal, numbers)
        return [*added, *(d for d in letters if all(d.columns != a.columns for a in added))]

    def guessed(self, names: Sequence[str]) -> Guess:
        """Return what columns guess together, by boosted trees."""
        return self._judged(tuple(names), self._fitted(names)(self.guesses, None))

    def propose(self, proposals: dict[str, str]) -> bool:
        """Add columns to leave out until the others guess no more; tell whether they do not."""
        names = [n for n in self.columns if n not in proposals][:LEARNT_FROM]
        for _ in range(MOST_DROPPED):
            if not names:
                return True
            predict = self._fitted(names)
            guess = self._judged(tuple(names), predict(self.guesses, None))
            if not guess.tells:
                return True
            at = self.guesses
            at = at[self.changed[at]] if guess.of_changed is not None else at[:2000]
            hits = {n: int((predict(at, n) == self.codes[at]).sum()) for n in names[:CANDIDATES]}
            worst = min(hits, key=lambda name: hits[name])  # what is guessed least without
            proposals[worst] = f"helps to guess {self.name}"
            names.remove(worst)
        return not (names and self.guessed(names).tells)

    def _judged(self, names: tuple[str, ...], guessed: Codes) -> Guess:
        """Return how many guesses are right, and how many without copied columns."""
        at, before = self.guesses, self.learnt
        right, changed, of_changed = guessed == self.codes[at], self.changed[at], None
        if changed.sum() >= FEW_CHANGED:
            among = before[self.changed[before]]  # the best constant guess of these
            of_changed = Recovery(
                int(right[changed].sum()), int(changed.sum()), self._without(among, at[changed])
            )
        of_all = Recovery(int(right.sum()), len(at), self._without(before, at))
        return Guess(self.name, names, of_all, of_changed, self.coarse)

    def _without(self, learnt: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> int:
        guessed = _by_value(self.without[learnt], self.codes[learnt], self.without[at])
        return int((guessed == self.codes[at]).sum())

    def _fitted(self, names: Sequence[str]) -> Callable[[npt.NDArray[np.int64], str | None], Codes]:
        """Return what guesses records; it takes a column that is shuffled among them."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        columns = [self.columns[name] for name in names]
        numbers = [c.codes if c.numbers is None else c.numbers for c in columns]
        matrix = np.column_stack([np.asarray(values, float) for values in numbers])
        learnt = self.learnt[self.codes[self.learnt] >= 0]
        letters = np.unique(self.codes[learnt])
        if len(letters) < 2:
            return lambda at, _: np.full(len(at), letters[0] if letters.size else 0)
        # small trees: of 10,000 records larger ones learn rare letters by heart
        model = HistGradientBoostingClassifier(
            max_iter=40, max_leaf_nodes=8, learning_rate=0.1, l2_regularization=1.0,
            categorical_features=[c.numbers is None and c.values <= 255 for c in columns],
            early_stopping=False, random_state=0,
        ).fit(matrix[learnt], self.codes[learnt])  # fmt: skip

        def predict(at: npt.NDArray[np.int64], shuffled: str | None) -> Codes:
            rows = matrix[at]
            if shuffled is not None:
                place = list(names).index(shuffled)
                rows[:, place] = np.random.default_rng(0).permutation(rows[:, place])
            return model.predict(rows)

        return predict


def _by_value(value: Codes, letters: Codes, at: Codes) -> Codes:
    """Return the most frequent letter of each value, of all where a value is new."""
    value, letters = value[letters >= 0], letters[letters >= 0]
    if not letters.size:
        return np.full(len(at), -2)  # no letter
    width = int(letters.max()) + 1
    places, records = np.unique(value * width + letters, return_counts=True)
    places = places[np.argsort(records, kind="stable")]  # the greatest is written last
    most = np.full(max(int(value.max()), int(at.max(initial=0))) + 1, np.bincount(letters).argmax())
    most[places // width] = places % width
    return most[at]


def _unique(
    columns: Mapping[str, Column], without: Mapping[str, str]
) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return how many records are unique on the best one, two, three columns, and on all."""
    every = {n: c.codes for n, c in columns.items()}
    left = {n: c for n, c in every.items() if n not in without}
    several = [n for n in left if 2 * columns[n].values <= len(left[n])]
    tried = sorted(several, key=lambda n: -columns[n].values)[:TRIED]
    rows: dict[tuple[str, ...], int] = {}
    chosen: tuple[str, ...] = ()
    for _ in range(min(3, len(tried))):
        counts = {
            name: _alone([left[n] for n in (*chosen, name)]) for name in tried if name not in chosen
        }
        chosen = (*chosen, max(counts, key=lambda name: counts[name]))
        rows[tuple(n for n in left if n in chosen)] = counts[chosen[-1]]
    rows |= {tuple(group): _alone([*group.values()]) for group in (left, every) if group}
    return tuple(rows.items())


def _alone(columns: Sequence[Codes]) -> int:
    """Return how many records have values that no other record has."""
    return int((np.bincount(joint_codes(columns)) == 1).sum())
