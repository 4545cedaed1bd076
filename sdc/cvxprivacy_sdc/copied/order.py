"""Whether the order of records tells of a protected column: tests of exchangeability.

A release copies records in their order.  Where a table was sorted by its key, the neighbours of a
record tell its true key, whatever was released in its place; and a running number or a time stamp
that is copied gives the order back after a shuffle, as do year, month and day in columns of their
own: two or three columns that stand beside each other are ordered together too.  If an order has
nothing to do with a column, each arrangement of the column's values along it is equally probable.
Three counts test that:

* in how many of the pairs of records that are ℓ apart both have the same value, for ℓ up to 400
  (for ℓ = 1 the complement of the runs of Wald and Wolfowitz 1940; of several categories Barton and
  David 1957, *Biometrika* 44).  Mean and variance are those of all arrangements; the tail is
  Chernoff's bound for a binomial law with this mean and variance, on both sides;
* χ² of the values in up to 64 blocks of equal length.

Each p-value is multiplied by the number of tests (Bonferroni), and judged at 1/1000.  A further
test is of codes 0, 1, 2, …: programs that number values as they come make code 0 the true key of
the first record.  The chance that codes first stand in their order is exact; it is not small where
they are few, and so judged at 1/20: the remedy, ``--shuffle``, costs nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc

from cvxprivacy.extras import nw, pd
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.text import cells
from cvxprivacy_sdc.copied.sample import FEW, PARTS, Codes, Sample, joint_codes, parts_of
from cvxprivacy_sdc.copied.untouched import MOSTLY, first

__all__ = ["LEVEL", "Finding", "OrderTest"]

LEVEL = 1e-3  # probability that any test is wrong where no order tells anything
NUMBERED = 0.05  # the same of the numbering of codes
LAGS = 400  # distances of records that are compared: a year of days is among them
BLOCKS = 64  # at most, of 50 records at least
BLOCK = 50
EXPECTED = 10  # records of a value in each block; rarer values are counted together
WINDOW = 1 << 10  # records that follow each other
WINDOWS = 64  # which are looked at in a table of more records than they hold
_DATE = re.compile(r"([0-9]{1,2}|[A-Za-z]{3,9})[-/. ]{1,2}([0-9]{1,2}|[A-Za-z]{3,9})[-/., ]{1,2}"
                   "([0-9]{4}|[0-9]{2})(?![0-9])")  # fmt: skip
EXACT = 2**53  # from which on floats are no exact numbers
SWEEP = 0.9  # correlation with the order of the file
NEAR = 1 / 30  # of the records, apart on average: a tenth of what a random order makes


@dataclass(frozen=True)
class Finding:
    """An order that tells of a protected column.

    Attributes
    ----------
    by : str
        The copied column that gives the order; empty for the order of the file.
    about : str
        The protected column; of a column with the order of the file all that this tells of.
    kind : {"neighbours", "blocks", "numbering"}
        What is unlike a random order.
    lag : int
        How far apart the records are that are compared.
    agreement, chance : float
        In which share of their pairs both have the same value, and would by chance.
    p : float
        Probability of as much by chance, times the number of tests.
    predicted : float
        Which share of what is open a neighbour in the order tells of a value; of several columns,
        of what the order without the last of them leaves open.
    follows : bool
        Whether the column has the order of the file.
    """

    by: str
    about: str
    kind: str
    lag: int
    agreement: float
    chance: float
    p: float
    predicted: float = 0.0
    follows: bool = False

    @property
    def undoes(self) -> bool:
        """Whether an order that ``--shuffle`` does not remove tells most of the column."""
        return bool(self.by) and (self.follows or self.predicted > MOSTLY)

    def __str__(self) -> str:
        """What tells of what, and by which figures."""
        if self.follows:
            return (
                f"{self.by}, which is copied, has the order of the file and tells of {self.about}"
            )
        order = f"the order of {self.by}" if self.by else "the order of records"
        far = "next to each other" if self.lag == 1 else f"{self.lag} apart"
        if self.kind == "numbering":
            return (
                f"the codes of {self.about} are numbered as they first stand: the lowest is that "
                "of the first record"
            )
        figures = "its shares change along the way, and " * (self.kind == "blocks")
        return (
            f"{order} tells of {self.about}: {figures}records {far} have the same in "
            f"{self.agreement:.1%} of the pairs, where chance makes {self.chance:.1%}"
        )


@dataclass(frozen=True)
class OrderTest:
    """What the orders that a release copies tell of its key and of the confidential columns.

    Attributes
    ----------
    findings : tuple of Finding
        Those at a level of 1/1000 of all tests together, and of 1/20 of the numbering of codes.
    tests : int
        Orders times columns that were tested.
    records : int
        That were looked at.
    shuffled : bool
        Whether the released records are in a secret random order.
    unseen : tuple of str
        Copied columns whose orders were not looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"number": range(80), "town": ["a"] * 40 + ["b"] * 40,
    ...                        "ill": [i**3 % 83 % 2 for i in range(80)]})
    >>> schema = TableSchema(key=("town",), sensitive=("ill",))
    >>> [(one.by, one.about) for one in OrderTest.of(people, schema).findings]
    [('', 'town'), ('number', 'town')]
    """

    findings: tuple[Finding, ...]
    tests: int
    records: int
    shuffled: bool = False
    unseen: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        frame: Any,
        schema: TableSchema,
        *,
        unseen: Sequence[str] = (),
        dropped: Sequence[str] = (),
        shuffled: bool = False,
    ) -> OrderTest:
        """Test the order of a table, and those of copied columns with few records to a value.

        Parameters
        ----------
        frame : frame of any kind
            The table, in the order of its file.
        schema : TableSchema
        unseen : sequence of str
            Copied columns that are not to be looked at.
        dropped : sequence of str
            Columns that are not released.
        shuffled : bool
            As of the class.
        """
        counted = schema.counted_records(frame)
        sample = Sample(_windows(counted), schema)
        copied = [name for name in sample.copied if name not in {*dropped, *unseen}]
        letters = _letters(sample)
        targets, orders = _targets(letters), _orders(sample, copied)
        tests = len(targets) * (1 + len(orders))
        place = np.arange(sample.records)
        findings = [*_findings("", targets, place, [], tests, LAGS), *_numberings(letters)]
        enough: set[str] = set()  # columns that undo it already
        for names, ranks in orders.items():
            if not enough & {*names}:
                of_order = _of_columns(names, ranks, targets, tests, sample, counted)
                enough |= {*names} if any(one.undoes for one in of_order) else set()
                findings += of_order
        return cls(tuple(findings), tests, sample.records, shuffled, tuple(unseen))

    @property
    def remaining(self) -> list[Finding]:
        """What undoes the release that is made: the order of its records, or of a copied column."""
        return [one for one in self.findings if one.undoes or not (one.by or self.shuffled)]

    @property
    def hints(self) -> str:
        """Which other copied columns tell something by their order, and of what; may be empty."""
        about: dict[str, list[str]] = {}
        for one in self.findings:
            if one.by and not one.undoes:
                about.setdefault(one.by, []).append(one.about)
        listed = [f"{by} (of {cells(names)})" for by, names in about.items()]
        return f"copied columns whose order tells something: {first(listed)}" if listed else ""

    @property
    def refusals(self) -> list[str]:
        """Why the table must not be released: a sentence for each order that undoes it."""
        about: dict[str, list[str]] = {}
        for one in self.remaining:
            about.setdefault(one.by, []).append(one.about)
        return [
            f"the order of {by}, which is copied, tells of {cells(names)}: drop or coarsen it"
            if by
            else f"the order of records tells of {cells(names)}: release it with --shuffle"
            for by, names in ((by, list(dict.fromkeys(names))) for by, names in about.items())
        ]

    @property
    def lines(self) -> list[str]:
        """What is to be said on the terminal."""
        figures = {one: f"= {one.p:.1g}" if one.p > 1e-12 else "< 1e-12" for one in self.remaining}
        lines = [f"{one} (p {p}, corrected for {self.tests} tests)" for one, p in figures.items()]
        lines += [f"not to be published so: {line}" for line in self.refusals]
        lines += [self.hints] if self.hints else []
        if self.shuffled:
            lines.append("the records are released in a secret random order")
        if self.shuffled and self.unseen:
            lines.append("the orders that copied columns give were not looked at: a running number "
                         "or a time stamp undoes a shuffle")  # fmt: skip
        return lines

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "findings": [
                {**asdict(one), "undoes": one.undoes, "words": str(one)} for one in self.findings
            ],
            "tests": self.tests,
            "levels": {"order": LEVEL, "numbering": NUMBERED},
            "records": self.records,
            "shuffled": self.shuffled,
            "unseen": list(self.unseen),
            "refusals": self.refusals,
        }


# ---- the records that are looked at, and their orders ------------------------------------


def _windows(frame: Any) -> nw.DataFrame[Any]:
    """Return the records of a table in its order; of a large one those of 64 stretches of it."""
    table: Any = as_narwhals(frame)
    eager = isinstance(table, nw.DataFrame)
    records = len(table) if eager else table.select(nw.len()).collect().item()
    if records <= WINDOW * WINDOWS or not (eager or table.implementation.is_duckdb()):
        taken: nw.DataFrame[Any] = table if eager else table.collect()
        return taken
    starts = np.linspace(0, records - WINDOW, WINDOWS).astype(int)
    places = (starts[:, None] + np.arange(WINDOW)).ravel()
    if eager:
        return nw.from_native(table[places.tolist()].to_native(), eager_only=True)
    import pyarrow as pa

    reader, done, parts = nw.to_native(table).to_arrow_reader(WINDOW * WINDOWS), 0, []
    for batch in reader:
        inside = (places >= done) & (places < done + len(batch))
        parts.append(batch.take(pa.array(places[inside] - done)))
        done += len(batch)
    return nw.from_native(pa.Table.from_batches(parts, reader.schema), eager_only=True)


def _letters(sample: Sample) -> dict[str, Sequence[Any]]:
    """Return the letters of protected columns, record by record."""
    schema = sample.schema
    names = (*schema.key, *schema.sensitive)
    return {name: schema.letters(sample.frame, (name,)) for name in names}


def _targets(letters: Mapping[str, Sequence[Any]]) -> dict[str, Codes]:
    """Return numbers of letters in their natural order; of many, of 20 intervals.

    Two records of a column of names or dates seldom have the same value, whatever its order is.
    """
    targets = {}
    for name, values in letters.items():
        ranks = _numbered(_dated(values))
        if len({*values}) > PARTS:
            missing = np.array([_is_missing(value) for value in values])
            ranks = parts_of(np.where(missing, np.nan, ranks))
        targets[name] = ranks
    return targets


def _numbered(values: Sequence[Any]) -> Codes:
    """Number values in their natural order."""
    rank = {value: i for i, value in enumerate(sorted(dict.fromkeys(values), key=_natural))}
    return np.array([rank[value] for value in values], np.int64)


def _is_missing(value: Any) -> bool:
    return value is None or value != value  # NaN is no number


def _natural(value: Any) -> tuple[bool, bool, Any, str]:
    """Return what sorts numbers, texts (digits in them count as numbers), missing values."""
    missing = _is_missing(value)
    number = isinstance(value, int | float | Decimal) and not missing
    text = "" if number else re.sub("[0-9]+", lambda digits: digits[0].zfill(20), str(value))
    return missing, not number, value if number else 0, text


def _orders(sample: Sample, copied: Sequence[str]) -> dict[tuple[str, ...], list[Codes]]:
    """Return the ranks of copied columns, of one alone or of two or three beside each other.

    Of several, each order of precedence is one, as long as all but the last leave it open.  Values
    that many records have in common give no order.
    """
    ranks = {name: _ranks(sample, name) for name in copied}
    columns, orders = list(ranks), dict[tuple[str, ...], list[Codes]]()
    counts: dict[frozenset[str], int] = {}

    def values(names: Sequence[str]) -> int:
        if (places := frozenset(names)) not in counts:
            counts[places] = int(joint_codes([ranks[name] for name in names]).max(initial=-1)) + 1
        return counts[places]

    for run in (columns[i : i + k] for k in (1, 2, 3) for i in range(len(columns) - k + 1)):
        for names in permutations(run) if FEW * values(run) > sample.records else ():
            if len(names) == 1 or 2 * values(names[:-1]) < sample.records:
                orders[names] = [ranks[name] for name in names]
    return orders


def _along(ranks: Sequence[Codes]) -> Codes:
    """Return records by their ranks; among equal ones in an order that is not that of the file."""
    mixed = np.random.default_rng(0).permutation(len(ranks[0]))
    return mixed[np.argsort(joint_codes(ranks)[mixed], kind="stable")]


def _ranks(sample: Sample, name: str) -> Codes:
    """Return the ranks of a column's values."""
    numbers = sample.column(name).numbers if sample.frame[name].dtype.is_numeric() else None
    if numbers is not None:  # of dates they are days, without hours
        finite = numbers[np.isfinite(numbers)]
        if not (np.abs(finite) >= EXACT).any():
            ranks: Codes = np.unique(numbers, return_inverse=True)[1]
            return ranks
    return _numbered(_dated(sample.values(name)))


def _of_columns(
    names: Sequence[str],
    ranks: Sequence[Codes],
    targets: Mapping[str, Codes],
    tests: int,
    sample: Sample,
    counted: Any,
) -> list[Finding]:
    """Return what the order of a copied column tells, or that of several undoes."""
    order, several = _along(ranks), len(names) > 1
    if _follows(order) and (not several or _is_one_sweep(order)):
        findings = _findings(cells(names), targets, order, ranks, tests, LAGS)
        about = cells([one.about for one in findings])
        return [replace(findings[0], about=about, follows=True)] if findings else []
    if not several and _orders_a_larger_table(sample, names[0]):
        return _of_its_stretches(names[0], counted, sample, tests)
    findings = _findings(cells(names), targets, order, ranks, tests, 1)
    return _beyond(findings, targets, ranks[:-1]) if several else findings


def _beyond(
    findings: Sequence[Finding], targets: Mapping[str, Codes], ranks: Sequence[Codes]
) -> list[Finding]:
    """Return what undoes a column beyond what the order of all columns but the last predicts."""
    further = []
    for one in findings:
        before = _predicted(targets[one.about], ranks)
        if before < 1:
            further.append(replace(one, predicted=(one.predicted - before) / (1 - before)))
    return [one for one in further if one.undoes]


def _orders_a_larger_table(sample: Sample, name: str) -> bool:
    """Tell whether these are stretches of a larger table, which a column can put in its order."""
    dtype = sample.frame[name].dtype
    return sample.records == WINDOW * WINDOWS and not (dtype.is_nested() or dtype == nw.Object)


def _of_its_stretches(name: str, counted: Any, sample: Sample, tests: int) -> list[Finding]:
    """Return what the order of a column of a large table tells: by stretches of that order.

    In stretches of the file few records have a neighbour in it.
    """
    schema = sample.schema
    table: Any = as_narwhals(counted).select([name, *schema.columns])
    part = Sample(_windows(nw.to_native(table.sort(name))), schema)
    ranks = [_ranks(part, name)]
    return _findings(name, _targets(_letters(part)), _along(ranks), ranks, tests, 1)


def _dated(values: Sequence[Any]) -> Sequence[Any]:
    """Return days such as 31.12.2025, 12/31/25 or 31 Dec 2025 as dates; else all as they are.

    Of 03/04/2026 the first number is the day, unless another value says otherwise.
    """
    texts = {*values} - {None}
    days = {text: day for text in texts if isinstance(text, str) and (day := _DATE.match(text))}
    if not days or len(days) < len(texts):
        return values
    if not all(day[1].isdecimal() and day[2].isdecimal() for day in days.values()):
        guess = pd.tseries.api.guess_datetime_format
        formats = {shown for text in [*days][:100] if (shown := guess(text))}  # May is short, too
        for shown in sorted(formats):
            times = pd.to_datetime([*days], format=shown, errors="coerce")
            if not times.hasnans:
                named = dict(zip(days, times, strict=True))
                return [named.get(value) for value in values]
        return values
    most = [max(int(day[i]) for day in days.values()) for i in (1, 2)]
    first, second = (2, 1) if most[0] <= 12 < most[1] else (1, 2)
    iso = {}
    for text, day in days.items():
        year = day[3] if len(day[3]) == 4 else ("19" if day[3] >= "69" else "20") + day[3]
        iso[text] = f"{year}-{day[second]:>02}-{day[first]:>02}{text[day.end() :]}"
    return [iso.get(value) for value in values]


def _follows(order: Codes) -> bool:
    """Tell whether records that follow each other in an order are near each other in the file."""
    return len(order) > 1 and float(np.abs(np.diff(order)).mean()) < max(NEAR * len(order), 1.5)


def _is_one_sweep(order: Codes) -> bool:
    """Tell whether an order runs through the file once, and not once for each value of a column."""
    return abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) > SWEEP


# ---- tests of one order ------------------------------------------------------------------


def _findings(
    by: str,
    targets: Mapping[str, Codes],
    order: Codes,
    ranks: Sequence[Codes],
    tests: int,
    lags: int,
) -> list[Finding]:
    """Return what an order tells of each column, by the least p-value of its counts.

    It is that of the ranks of columns, or of the file, which has none.
    """
    findings = []
    for about, codes in targets.items():
        along = codes[order]
        if len(along) < 4 or along.min() == along.max():
            continue
        agreement, chance, tails = _lagged(along, min(lags, len(along) // 4))
        far = int(tails[1:].argmin()) + 1 if len(tails) > 1 else 0
        p_value, kind, place = min(
            (float(tails[0]), "neighbours", 0),
            (float(tails[far]) * max(len(tails) - 1, 1), "neighbours", far),
            (_of_blocks(along), "blocks", 0),
        )
        p = min(1.0, 3 * tests * p_value)
        if p < LEVEL:
            predicted = _predicted(codes, ranks) if ranks else 0.0
            figures = float(agreement[place]), chance, p, predicted
            findings.append(Finding(by, about, kind, place + 1, *figures))
    return findings


def _predicted(codes: Codes, ranks: Sequence[Codes]) -> float:
    """Return which share of what is open a neighbour in an order tells of a value.

    That is by agreement; by agreement of records with the same rank, as far as there are others; or
    by information, as values that always differ tell each other, too.
    """
    order = _along(ranks)
    along, rank = codes[order], joint_codes(ranks)[order]
    before, after = along[:-1], along[1:]
    same, tied = before == after, rank[:-1] == rank[1:]
    chance = float(((np.bincount(codes) / len(codes)) ** 2).sum())
    agreement = (float(same.mean()) - chance) / (1 - chance)
    if tied.any():
        others = float((np.append(tied, False) | np.insert(tied, 0, False)).mean())  # have others
        agreement = max(agreement, others * (float(same[tied].mean()) - chance) / (1 - chance))
    pairs = joint_codes([before, after])
    cells, rows, columns = (len(np.unique(codes)) for codes in (pairs, before, after))
    information = _entropy(before) + _entropy(after) - _entropy(pairs)
    information -= (cells - rows - columns + 1) / (2 * len(pairs))  # bias: Miller and Madow
    return max(agreement, information / _entropy(codes))


def _entropy(codes: Codes) -> float:
    share = np.unique(codes, return_counts=True)[1] / len(codes)
    return float(-(share * np.log(share)).sum())


def _lagged(codes: Codes, lags: int) -> tuple[npt.NDArray[Any], float, npt.NDArray[Any]]:
    """Return shares of equal pairs at each distance, that of all pairs, and p-values.

    Of the n - l pairs (i, i + l) that share a record n - 2 l are pairs of pairs, if that is
    positive; under a random arrangement the chances that two, three and two times two records are
    equal follow from how often each value is there.
    """
    n, lag = len(codes), np.arange(1, lags + 1)
    small = codes.astype(np.int32)
    equal = np.array([np.count_nonzero(small[k:] == small[:-k]) for k in lag], float)
    sizes = np.bincount(codes).astype(float)
    two, three, four = (_falling(sizes, k).sum() / _falling(np.float64(n), k) for k in (2, 3, 4))
    twice = _falling(sizes, 2)
    pairs = twice.sum() ** 2 - (twice**2).sum()
    four += pairs / _falling(np.float64(n), 4)
    m, shared = n - lag, np.maximum(n - 2 * lag, 0)
    variance = m * two + 2 * shared * three + (m * (m - 1) - 2 * shared) * four - (m * two) ** 2
    effective = m * np.minimum(m * two * (1 - two) / np.maximum(variance, 1e-300), 1.0)
    share = equal / m
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.where(share > 0, share * np.log(share / two), 0.0)
        kl = kl + np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - two)), 0.0)
    return share, float(two), np.minimum(2 * np.exp(-effective * kl), 1.0)


def _falling(n: Any, factors: int) -> Any:
    """Return n (n - 1) … of so many factors, at least 0."""
    return math.prod(np.maximum(n - k, 0.0) for k in range(factors))


def _of_blocks(codes: Codes) -> float:
    """Return the p-value of χ² of values by blocks of the order; rare values are one."""
    n = len(codes)
    blocks = min(BLOCKS, n // BLOCK)
    if blocks < 2:
        return 1.0
    sizes = np.bincount(codes)
    often = sizes >= EXPECTED * blocks
    place = np.where(often, np.cumsum(often), 0)[codes]
    values, place = np.unique(place, return_inverse=True)
    sizes = np.bincount(place)
    if sizes.min() < EXPECTED * blocks:  # the rare ones together are few, too
        place = np.where(place == sizes.argmin(), sizes.argmax(), place)
        values, place = np.unique(place, return_inverse=True)
    if len(values) < 2:
        return 1.0
    block = np.arange(n) * blocks // n
    table = np.bincount(block * len(values) + place, minlength=blocks * len(values))
    table = table.reshape(blocks, len(values)).astype(float)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    statistic = ((table - expected) ** 2 / expected).sum()
    return float(gammaincc((blocks - 1) * (len(values) - 1) / 2, statistic / 2))


def _code(value: Any) -> Any:
    """Return a value that is a code, of text too; None for others, such as a group of values."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _numberings(letters: Mapping[str, Sequence[Any]]) -> list[Finding]:
    """Return the columns whose codes, 0, 1, … or 1, 2, …, first stand in this order.

    Frequent values come first more often: the chance of an order is the product of the share of
    each value among those that are still to come.
    """
    findings = []
    for name, values in letters.items():
        sizes = Counter(code for code in map(_code, values) if code is not None)
        codes = list(sizes)  # as they first stand
        if not codes or codes[0] not in (0, 1):
            continue
        left = np.cumsum([*sizes.values()][::-1])[::-1]
        p = min(1.0, float(np.prod([*sizes.values()] / left)) * len(letters))
        if codes == [codes[0] + i for i in range(len(codes))] and p < NUMBERED:
            findings.append(Finding("", name, "numbering", 1, 0.0, 0.0, p))
    return findings
