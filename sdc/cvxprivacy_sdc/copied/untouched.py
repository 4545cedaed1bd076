"""What the columns that a release leaves alone reveal by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.model.information import nat
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.text import cells, plain
from cvxprivacy.validation import present
from cvxprivacy_sdc.copied.sample import FEW, PARTS, Codes, Column, Sample, parts_of

__all__ = ["MOSTLY", "Leak", "advised", "first", "surveyed", "target_codes", "undoing", "untouched"]

TELLING = 0.25  # of a key column's entropy: a copied column that tells as much is named
MOSTLY = 0.5  # of what is open: what tells more undoes the changes of a key column
MOST_NAMED = 5  # columns in one sentence

SHUFFLES = 100  # of which mean and deviation are wanted, to a tenth of the deviation
SHUFFLED = 2_000_000  # values in all shuffles: of many records fewer tell as much
DEVIATIONS = 2.576  # either side: 99 %, as the greater of two countings is taken, of many columns
BY_CHANCE = 0.5  # of the greatest possible information: if chance shows more, nothing can be told


@dataclass(frozen=True)
class Leak:
    """What one column reveals about the confidential attribute, or about a key column.

    The plug-in I(W; column) is too high by what chance shows.  That is measured, by shuffles of the
    column against W, and taken off in proportion to what is left open: all of it where nothing but
    chance is seen, nothing where the column tells all of W.  So does the adjusted information of
    Vinh, Epps and Bailey (2010, *J. Machine Learning Research* 11, eq. 16), times the greatest
    possible one, min(H(W), H(column)).  The lower end of the interval takes all of it off; the
    upper end takes off Miller and Madow's term of the occupied cells, if that is less.  Both ends
    are 2.576 standard errors further out: of the delta method and of the shuffles, together.

    A number is counted value by value, and in 20 intervals of equal counts; what is more, less
    chance, is reported.  Where chance alone shows more than half of what could be shown, W's
    entropy or the column's, records are too few to tell anything, and no number is reported.

    Attributes
    ----------
    column : str
    about : str
        The columns that it tells of.
    units : {"bits", "nats"}
    records : int
        That were counted: of a large table a sample.
    values : int
        Number of different values among them.
    information : float or None
        I(W; column) as it is counted; None where it cannot be told.
    bias : float or None
        What is taken off, at least 0.
    lower, upper : float or None
        Where the information of the law behind the records is, at a level of 99 %.
    entropy : float
        Of what it tells of, as that is counted.
    intervals : int or None
        Of 20 parts of equal counts, how many hold records: so the column was cut, which can only
        lose information; None where its values are compared one by one.
    otherwise : float or None
        What the other way of counting shows, less chance; None where that tells nothing.
    coarse : bool
        Whether what it tells of was cut into 20 intervals too.
    sampled : bool
        Whether not all records were counted.
    """

    column: str
    about: str
    units: str
    records: int
    values: int
    information: float | None = None
    bias: float | None = None
    lower: float | None = None
    upper: float | None = None
    entropy: float = 0.0
    intervals: int | None = None
    otherwise: float | None = None
    coarse: bool = False
    sampled: bool = False

    @property
    def corrected(self) -> float:
        """Information less bias, at least 0; 0 where it cannot be told."""
        return max(0.0, (self.information or 0.0) - (self.bias or 0.0))

    @property
    def names_records(self) -> bool:
        """Whether fewer than two records share a value of it, on average."""
        return self.values * 2 > self.records

    @property
    def share(self) -> float:
        """Of the entropy of what it tells of, chance taken off."""
        return min(self.corrected / self.entropy, 1.0) if self.entropy else 0.0

    def exceeds(self, after: float) -> bool:
        """Tell whether it reveals more than what the released columns do, chance left out."""
        return (self.lower or 0.0) > after

    def kind(self, after: float) -> str:
        """Return what is to be done beside a release that tells ``after``; empty for nothing."""
        if self.names_records:
            return "drop"
        if self.information is None:
            return "look"
        return "coarsen" if self.exceeds(after) else ""

    def advice(self, after: float) -> str:
        """Say what is to be done, and why; empty for nothing."""
        times = self.corrected / after if after > 0 else 0.0
        much = f", {times:.1f} times what the released key does" if times > 1.5 else ""
        reveals = f"by itself it reveals {plain(self.corrected, 3)} {self.units}{much}"
        return {
            "": "",
            "drop": f"drop {self.column}: fewer than two records share a value of it",
            "look": f"look at {self.column}: {_UNTOLD}",
            "coarsen": f"drop or coarsen {self.column}: {reveals}",
        }[self.kind(after)]

    def __str__(self) -> str:
        """What it reveals, in one line."""
        size = f"{self.values:,} values"
        if self.intervals is not None:
            size += f" in {self.intervals} intervals"
        if self.sampled:
            size += f", in {self.records:,} records drawn of all"
        if self.information is None:
            return f"{self.column:<20} {_UNTOLD} ({size})"
        least = "at least " if self.coarse or self.intervals is not None else ""
        text = (
            f"{self.column:<20} {least}{self.corrected:.4f} {self.units} ({self.lower:.4f} to "
            f"{self.upper:.4f}; bias {self.bias:.4f} taken off; {size}"
        )
        if not self.lower:
            most = f"up to {self.upper:.4f} {self.units}"
            text = f"{self.column:<20} nothing beyond chance ({most}; {size}"
        if self.otherwise is not None:
            way = "in intervals" if self.intervals is None else "value by value"
            text += f"; {way} {self.otherwise:.4f}"
        return f"{text})"

    def document(self, after: float) -> dict[str, Any]:
        """Return it as JSON holds it, with an advice beside a release that tells ``after``."""
        return {
            **asdict(self),
            "corrected": self.corrected,
            "kind": self.kind(after),
            "advice": self.advice(after),
            "words": str(self),
        }


_UNTOLD = "cannot be told: too few records for each value"


def advised(leaks: Sequence[Leak], after: float) -> list[str]:
    """Return what is to be done with copied columns, in a sentence for each kind of advice."""
    by_kind: dict[str, list[str]] = {}
    for leak in leaks:
        amount = f" ({plain(leak.corrected, 3)})" if leak.kind(after) == "coarsen" else ""
        by_kind.setdefault(leak.kind(after), []).append(leak.column + amount)
    sentences = {
        "coarsen": "drop or coarsen {}: {} tells more {} about {} by itself than the {} of the "
        "released key, and whoever has such a column gains little from the columns that you "
        "protected",
        "drop": "drop {}: {} has fewer than two records to a value, and whoever knows such a value "
        "nearly knows the record",
        "look": "look at {}: what {} reveals " + _UNTOLD,
    }
    lines = []
    for kind, words in sentences.items():
        if names := by_kind.get(kind):
            each = "each" if len(names) > 1 else "it"
            lines.append(
                words.format(first(names), each, leaks[0].units, leaks[0].about, plain(after, 3))
            )
    return lines


def undoing(leaks: Sequence[Leak], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return, as JSON holds it, which copied columns tell much of a key column."""
    return [
        {
            "key": leak.about,
            "column": leak.column,
            "share": leak.share,
            "undoes": (leak.lower or 0.0) > MOSTLY * leak.entropy,
            "words": f"{leak.column} is copied and tells {leak.share:.0%} of {leak.about}: whoever "
            f"has both may see where {leak.about} was changed; drop or coarsen it",
        }
        for leak in leaks
        if leak.about in keys and leak.share > TELLING and not leak.names_records
    ]


def first(names: Sequence[str]) -> str:
    """Return the first of some names as a phrase, and how many more there are."""
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return cells([*names[:MOST_NAMED], *more])


def untouched(
    frame: Any,
    schema: TableSchema,
    *,
    units: str = "bits",
    columns: Sequence[str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[Leak]:
    """Measure I(W; column) of every column neither confidential nor released, greatest first.

    Parameters
    ----------
    frame : frame of any kind
        The table, as :meth:`cvxprivacy.DiscreteSource.from_table` takes it.  Of more than 50,000
        records so many are drawn, with a fixed seed.
    schema : TableSchema
        ``source.schema``.
    units : {"bits", "nats"}
        Of information.
    columns : sequence of str, optional
        All others by default.
    progress : callable, optional
        Given 1 after each column.

    Returns
    -------
    list of Leak
        With ``column``, ``corrected``, the information less its bias, its interval from
        ``lower`` to ``upper``, and ``values``, the number of different ones.

    Raises
    ------
    InputError
        For a column that is not there.

    Examples
    --------
    A release changes the age alone.  The ward, which is copied, tells the illness outright, and the
    town tells nothing:

    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> people = pd.DataFrame({
    ...     "age": [20, 20, 30, 30] * 10, "ward": list("xyxy") * 10, "town": list("aabb") * 10,
    ...     "ill": ["no", "yes", "no", "yes"] * 10,
    ... })
    >>> source = cpv.DiscreteSource.from_table(people, sensitive="ill", key="age")
    >>> [(leak.column, round(leak.information, 3)) for leak in untouched(people, source.schema)]
    [('ward', 1.0), ('town', 0.0)]
    """
    sample = Sample.of(frame, schema)
    names = sample.copied if columns is None else columns
    for name in names:
        present(name, sample.frame.columns, "columns")
    each = (sample.column(name) for name in names)  # one after the other: all may be too many
    return surveyed(sample, each, units=units, keys=False, progress=progress)


def surveyed(
    sample: Sample,
    columns: Iterable[Column],
    *,
    units: str = "bits",
    keys: bool = True,
    progress: Callable[[int], object] | None = None,
) -> list[Leak]:
    """Return what copied columns reveal about W, and with ``keys`` about each key column.

    Each is counted against all of these; other parameters are those of :func:`untouched`.
    """
    schema = sample.schema
    schema.check(sample.frame.lazy(), schema.sensitive)
    groups = [schema.sensitive, *((name,) for name in schema.key if keys)]
    targets = [(", ".join(names), *target_codes(sample, names)) for names in groups]
    orders = _shuffles(sample.records)
    leaks = []
    for column in columns:
        leaks += [_leak(column, *target, sample, orders, units) for target in targets]
        if progress is not None:
            progress(1)
    return sorted(leaks, key=lambda leak: -leak.corrected)


# ---- one column against one other --------------------------------------------------------


def target_codes(sample: Sample, names: tuple[str, ...]) -> tuple[Codes, bool]:
    """Return the letters of columns, or intervals of a number with too many values, and which."""
    codes = sample.letters(names)
    recoded = {*sample.schema.bins, *sample.schema.groups} & {*names}
    if len(names) == 1 and not recoded and FEW * (codes.max() + 1) > sample.records:
        numbers = sample.column(names[0]).numbers
        if numbers is not None:
            return parts_of(numbers), True
    return codes, False


def _leak(
    column: Column,
    about: str,
    w: Codes,
    coarse: bool,
    sample: Sample,
    orders: npt.NDArray[np.int64],
    units: str,
) -> Leak:
    """Return what a column reveals, by the way of counting that shows more."""
    nothing = Leak(
        column.name, about, units, sample.records, column.values,
        coarse=coarse, sampled=sample.sampled,
    )  # fmt: skip
    ways: list[tuple[Codes, int | None]] = [(column.codes, None)]
    if column.numbers is not None and column.values > PARTS:
        parts = parts_of(column.numbers)
        ways.append((parts, int(parts.max()) + 1))
    leaks = []
    for codes, intervals in ways:
        counted = _counted(w, codes, sample.weights, orders)
        if counted is not None:
            in_units: Any = {name: value * nat(units) for name, value in counted.items()}
            leaks.append(replace(nothing, **in_units, intervals=intervals))
    if not leaks:
        return nothing
    best, *others = sorted(leaks, key=lambda leak: -leak.corrected)
    return replace(best, otherwise=others[0].corrected) if others else best


def _shuffles(records: int) -> npt.NDArray[np.int64]:
    """Return orders of the records, by a fixed seed."""
    count = min(max(SHUFFLED // max(records, 1), 20), SHUFFLES)
    orders = np.tile(np.arange(records), (count, 1))
    return np.random.default_rng(0).permuted(orders, axis=1)


def _counted(
    w: Codes, c: Codes, weights: npt.NDArray[np.float64] | None, orders: npt.NDArray[np.int64]
) -> dict[str, float] | None:
    """Return the information of codes, in nats, chance and an interval; None if it is chance."""
    width = int(c.max()) + 1
    cell = np.unique(w * width + c, return_inverse=True)[1]
    of_w, of_c = (float(_entropies(codes[None], weights)[0]) for codes in (w, c))
    information = max(0.0, of_w + of_c - float(_entropies(cell[None], weights)[0]))
    shuffled = c[orders]
    by_chance = of_w - _entropies(w * width + shuffled, weights)
    by_chance += of_c if weights is None else _entropies(shuffled, weights)
    chance, spread = max(0.0, float(by_chance.mean())), float(by_chance.std(ddof=1))
    most = max(min(of_w, of_c), information)
    if chance > BY_CHANCE * most:
        return None
    masses = np.ones(len(w)) if weights is None else weights
    total = masses.sum()
    in_w, in_c, in_cell = (np.bincount(codes, masses)[codes] for codes in (w, c, cell))
    on = masses > 0
    ratio = np.log(in_cell[on] * total / (in_w[on] * in_c[on]))
    delta = math.sqrt(((masses[on] * (ratio - information)) ** 2).sum()) / total
    effective = total**2 / (masses**2).sum()
    occupied = len(np.unique(cell[on])) - len(np.unique(w[on])) - len(np.unique(c[on])) + 1
    error = DEVIATIONS * math.hypot(delta, spread)
    return {
        "information": information,
        "bias": chance * (most - information) / (most - chance) if chance else 0.0,
        "lower": max(0.0, information - chance - error),
        "upper": max(0.0, information - min(chance, occupied / (2 * effective)) + error),
        "entropy": of_w,
    }


def _entropies(
    codes: npt.NDArray[np.int64], weights: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64]:
    """Return the entropy, in nats, of each row of codes."""
    rows, width = len(codes), int(codes.max()) + 1
    places = (codes + width * np.arange(rows)[:, None]).ravel()
    if rows * width > 4 * places.size:  # mostly empty: only the cells that occur
        at, places = np.unique(places, return_inverse=True)
        row = at // width
    else:
        row = np.repeat(np.arange(rows), width)
    repeated = None if weights is None else np.tile(weights, rows)
    masses = np.bincount(places, repeated, minlength=len(row)).astype(float)
    logs = np.bincount(row, masses * np.log(np.maximum(masses, 1e-300)), minlength=rows)
    total = codes.shape[1] if weights is None else weights.sum()
    return np.log(total) - logs / total
