"""A released table, counted again beside its original, against what the report of the release says.

Nothing of the package that designs and draws is used, nor of what evaluates proofs: two files of
delimited text are read record by record, N(w, x, x̂) is counted, and what was asked is decided
there by its definition, in rationals, and in balls that are made narrower until they tell.  What
speaks of chances, and not of a table, is left open.
"""

from __future__ import annotations

import csv
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any

from flint import arb, ctx, fmpq

__all__ = ["Recount", "recounted"]

BITS = 4096  # of a ball that is to tell a sum from zero; one that it cannot tell is taken for zero
_W, _X, _Y = range(3)  # places in a cell
_UNITS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}  # months
_DATE = re.compile(r"[0-9]{1,8}([-/.][0-9]+){0,2}([T ]\s*[0-9].*)?", re.DOTALL)
NEAR = 1e-9  # what a figure of the report may be off: it is a sum of floats

Rows = Callable[[str, Mapping[str, Any]], Iterator[list[str]]]
Law = list[tuple[Fraction, Fraction]]  # p(w | x̂) and p(w), W in order


@dataclass
class Recount:
    """What was counted, as lines to be read, and what of the report it denies."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def compare(self, name: str, reported: Any, counted: float) -> None:
        """Note a figure of the report that is not the one counted."""
        if not math.isclose(reported, counted, rel_tol=NEAR, abs_tol=NEAR):
            self.problems.append(f"{name}: {reported:.10g} is reported, {counted:.10g} is counted")


def recounted(
    original: str,
    released: str,
    report: Mapping[str, Any],
    rows: Rows | None = None,
    order: Callable[[int], Iterable[int]] | None = None,
) -> Recount:
    """Count a released table beside its original, and compare it with the report of its release.

    Parameters
    ----------
    original, released : str
        Paths of delimited text.
    report : mapping
        The document that ``cvxprivacy release --json`` printed of a table that was written.
    rows : callable, optional
        Of a path, and of how it was read, yields the names of the columns and the records, as lists
        of text: for tables of another format.
    order : callable, optional
        Of how many records were released, which of the original's is the first, second, … of them:
        for a table in a secret order.

    Raises
    ------
    ValueError
        For what is no such report, and for tables of other columns or other numbers of records.
    """
    if not {"asked", "drawn"} <= report.keys():
        raise ValueError("the report is not what `release --out --json` printed of a single table")
    if not all("kind" in check for check in report["checks"]):
        raise ValueError("the report is of an earlier version, whose checks have no kind")
    outcome, coding = Recount(), report["asked"]["coding"]
    dropped = report.get("columns_dropped", [])
    before, after = ((rows or _records)(path, coding["reading"]) for path in (original, released))
    after = after if order is None else _restored(after, order)
    counts, differ = _counted((original, before), (released, after), coding, dropped)
    if differ:
        outcome.problems.append(f"{differ:,} records differ in columns that are to be copied")
    units, drawn, sizes = report["units"], report["drawn"], counts.sizes.values()
    for name, reported, counted in (
        ("records", report["released"]["records"], counts.records),
        ("changed records", report["released"].get("changed", counts.changed), counts.changed),
        ("groups", drawn["groups"], len(sizes)),
        ("records of the least group", drawn["smallest"], min(sizes)),
        ("I(W; X̂) of the table", drawn["risk"], _value(counts.information(), units)),
    ):
        outcome.compare(name, reported, counted)
    if report["asked"]["distortion"] == {"kind": "hamming"}:
        outcome.compare("distortion", drawn["distortion"], float(counts.moved / counts.total))
    if (table := report.get("informed", {}).get("table")) is not None:
        both = _value(counts.information(_X).plus(counts.information(condition=(_X,))), units)
        outcome.compare("I(W; X, X̂) of the table", table["after"], both)
    outcome.lines.append(
        f"{counts.records:,} records, {counts.changed:,} of them changed; {len(sizes):,} groups of "
        f"{min(sizes):,} to {max(sizes):,} records; {_value(counts.information(), units):.6g} "
        f"{units} told"
    )
    _judge(outcome, counts, report)
    return outcome


def _judge(outcome: Recount, counts: _Counts, report: Mapping[str, Any]) -> None:
    """Decide what was asked, and compare what is reported of each."""
    checks, rules = list(report["checks"]), list(report["asked"]["criteria"])
    if checks and checks[0]["kind"] == "budget":
        rules.insert(0, {"kind": "budget", "most": report["asked"]["budget"]})
    if len(checks) != len(rules):
        outcome.problems.append(f"{len(checks)} verdicts on the {len(rules)} that were asked for")
    for check, rule in zip(checks, rules, strict=False):
        name, reported = check["criterion"], check["table"]
        number = next((v for v in rule.values() if isinstance(v, int | float)), 0)
        if not _is_of(check, rule["kind"], number):
            outcome.problems.append(f"{name}: what was asked is {rule}")
            name = f"{rule['kind']}({number:g})"
        margins = _margins(counts, rule, Fraction(number), report)
        if margins is None:
            outcome.lines.append(f"{name}: cannot be told here")
            continue
        broken = [y for y, sums in margins.items() if any(s.above(counts.slack) for s in sums)]
        groups = f" by {len(broken):,} groups" if check["per_group"] else ""
        counted = f"broken{groups}" if broken else "holds"
        outcome.lines.append(f"{name}: {counted}")
        claims = {True: "holds", False: "broken", None: "nothing"}
        claim = claims[None if reported is None else reported["holds"]]
        if claim != counted.partition(" ")[0] or (broken and check["standing"] == "holds"):
            claim = "holds" if check["standing"] == "holds" else claim
            outcome.problems.append(f"{name}: {claim} is reported, {counted} is counted")
            continue
        if check["per_group"]:
            outcome.compare(f"{name}, groups", reported["groups"], len(broken))
            records = sum(counts.sizes[y] for y in broken)
            outcome.compare(f"{name}, records of these", reported["records"], records)
        value = _worst(rule["kind"], number, margins, report["units"])
        if reported["value"] is not None and value is not None:
            outcome.compare(f"{name}, at its worst", reported["value"], value)


def _is_of(check: Mapping[str, Any], kind: str, number: float) -> bool:
    """Return whether a check is of what was asked: its kind, its bounds, and what it is called."""
    parts = [part for part in (check["law"], check["table"]) if part]
    bounds = [part["bound"] for part in parts if part["bound"] is not None]
    word = rf"(?<![\d.]){re.escape(f'{number:g}')}(?![\d.])"
    text = check["criterion"]
    called = text.startswith(kind) and (not number or re.search(word, text))
    stated = all(math.isclose(bound, number) for bound in bounds) and (bounds or not number)
    return bool(check["kind"] == kind and called and stated)


# ---- counting ----------------------------------------------------------------------------


class _Counts:
    """Masses N(w, x, x̂) of a table, and sums of them."""

    def __init__(self, *, weighted: bool) -> None:
        self.cells: Counter[tuple[Any, Any, Any]] = Counter()
        self.sizes: Counter[Any] = Counter()  # records of each x̂, whatever they weigh
        self.records = self.changed = 0
        self.total = self.moved = Fraction(0)
        self.slack = Fraction(1, 10**9) if weighted else Fraction(0)

    def add(self, w: Any, x: Any, y: Any, mass: Any) -> None:
        """Count a record."""
        self.cells[w, x, y] += mass
        self.sizes[y] += 1
        self.records += 1
        self.changed += x != y
        self.total += mass
        self.moved += mass * (x != y)

    def by(self, *axes: int) -> Counter[Any]:
        """Return masses by some of w, x, x̂."""
        sums: Counter[Any] = Counter()
        for cell, mass in self.cells.items():
            sums[tuple(cell[axis] for axis in axes)] += mass
        return sums

    def information(self, axis: int = _Y, condition: tuple[int, ...] = ()) -> _Sum:
        """Return what one axis tells about W, in nats, given others."""
        joint, rows, columns, both = (
            self.by(*axes, *condition) for axes in ((_W, axis), (_W,), (axis,), ())
        )
        logs = []
        for (w, v, *z), n in joint.items():
            ratio = Fraction(n * both[tuple(z)], rows[(w, *z)] * columns[(v, *z)])
            logs.append((n / self.total, ratio))
        return _Sum(logs=logs)


def _counted(
    of_original: tuple[str, Iterator[list[str]]],
    of_released: tuple[str, Iterator[list[str]]],
    coding: Mapping[str, Any],
    dropped: Collection[str],
) -> tuple[_Counts, int]:
    """Return the counts of two tables, and how many records differ where they were copied."""
    (original, before), (released, after) = of_original, of_released
    titles, others = next(before, []), next(after, [])
    names = _addresses(titles, fold=coding["reading"].get("format") == "parquet")
    kept = [i for i, name in enumerate(names) if name not in dropped]
    expected = [titles[i] for i in kept]
    if others != expected:
        raise ValueError(f"{released} has the columns {others}, and not {expected}")
    place = {i: j for j, i in enumerate(kept)}  # of a column in the released table
    for name in (*coding["key"], *coding["sensitive"]):
        if name not in names:
            raise ValueError(f"{original} has no column {name!r}")
    hidden, key = ([names.index(n) for n in coding[role]] for role in ("sensitive", "key"))
    weight = names.index(coding["weights"]) if coding["weights"] else None
    letter = {i: _reader(names[i], coding) for i in (*hidden, *key)}
    copied = [i for i in kept if i not in key]
    if coding["missing"] == "drop":
        gaps = {i: _gaps(names[i], coding["reading"]) for i in letter}
        before = (row for row in before if not any(row[i] in gaps[i] for i in letter))
    counts, differ = _Counts(weighted=weight is not None), 0
    spelled: dict[tuple[int, Any], str] = {}
    for row, out in zip_longest(before, after):
        if row is None or out is None:
            more = "more" if row is None else "fewer"
            raise ValueError(f"{released} has {more} records than {original} has to release")
        differ += any(row[i] != out[place[i]] for i in copied)
        w, x = (tuple(letter[i](row[i], False) for i in of) for of in (hidden, key))
        y = tuple(letter[i](out[place[i]], True) for i in key)
        for i, value in zip(key, y, strict=True):  # which could tell who was changed
            cell = out[place[i]]
            if spelled.setdefault((i, value), cell) != cell:
                both = f"{spelled[i, value]!r} and {cell!r}"
                raise ValueError(f"{both} of {names[i]!r} are released, which are the same")
        counts.add(w, x, y, 1 if weight is None else Fraction(row[weight]))
    if not counts.records:
        raise ValueError(f"{original} has no record to release")
    return counts, differ


def _restored(
    rows: Iterator[list[str]], order: Callable[[int], Iterable[int]]
) -> Iterator[list[str]]:
    """Yield the names above the columns, and the records in the order of the original."""
    yield from [row for row in [next(rows, None)] if row is not None]
    records = list(rows)
    places = list(order(len(records)))
    if sorted(places) != list(range(len(records))):
        raise ValueError("the order that was kept is none of the released records")
    for _, record in sorted(zip(places, records, strict=True), key=lambda pair: pair[0]):
        yield record


def _records(path: str, reading: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the names above the columns, and the records, of delimited text.

    Where the header is one field short, the first field of each record is its name.
    """
    if reading.get("format", "text") != "text":
        what = reading["format"]
        raise ValueError(f"{path}: the report is of {what}, and delimited text alone is counted")
    encoding = reading.get("encoding", "utf-8")
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    with Path(path).open(newline="", encoding=encoding) as file:
        lines = _uncommented(file, reading.get("comment"))
        rows = csv.reader(lines, delimiter=reading.get("delimiter", ","))
        header: list[str] = next(filter(any, rows), [])
        records = filter(None, rows)
        first = next(records, [])
        yield [""] * (1 < len(header) == len(first) - 1) + header
        yield from chain(filter(None, [first]), records)


def _addresses(titles: list[str], *, fold: bool = False) -> list[str]:
    """Return what columns are called: of several of one name each has its place among them.

    ``fold`` says that names that differ in case alone are told apart so, too.
    """
    names = []
    for i, title in enumerate(titles):
        twins, place = titles.count(title) > 1, titles[:i].count(title)
        if fold and not twins:
            place = [other.lower() for other in titles[:i]].count(title.lower())
        numbered = f"{title}#{place + 1}" if twins or place else title
        names.append(numbered if title else f"#{i + 1}")
    return names


def _uncommented(lines: Iterable[str], comment: str | None) -> Iterator[str]:
    """Yield the lines that are no comment: one begins outside of quotes, whose number is even."""
    quotes = 0
    for line in lines:
        if comment is None or quotes % 2 or not line.startswith(comment):
            quotes += line.count('"')
            yield line


def _gaps(name: str, reading: Mapping[str, Any]) -> set[str]:
    """Return the texts of a missing cell of a column."""
    return {*reading.get("na", [""]), *reading.get("codes", {}).get(name, ())}


def _number(text: str) -> Fraction | float:
    """Return the number that a text is, exactly; infinite ones are floats."""
    try:
        return Fraction(text)
    except ValueError:
        return float(text)


def _reader(name: str, coding: Mapping[str, Any]) -> Callable[[str, bool], Any]:
    """Return what makes a letter of a cell: of a value as it was, or as it is released."""
    reading, bands = coding["reading"], dict(coding["bins"])
    gaps, mark = _gaps(name, reading), reading.get("decimal", ".")
    groups = {column: (dict(pairs), other) for column, pairs, other in coding.get("groups", ())}
    numeric = name in reading.get("numbers", ())

    @cache
    def of_numbers(column: str) -> dict[Any, Any]:
        """Return the group of each number, of which the texts may differ."""
        listed = {}
        for text, label in groups[column][0].items():
            with suppress(ValueError):  # of another column's kind, which no number is
                listed[_number(text)] = label
        return listed

    def plain(cell: str, _: bool) -> Any:
        return _number(cell.replace(mark, ".")) if numeric else cell

    def band(cell: str, released: bool) -> int:
        edges = [_number(str(edge)) for edge in bands[name]]
        if released:
            parts = re.fullmatch(r"\[(\S+), (\S+)\)|< (\S+)|≥ (\S+)|all", cell)
            if parts is None:
                raise ValueError(f"{cell!r} of {name!r} is released, which is no band")
            low, high, below, above = parts.groups()
            ends = _number(low or above or "-inf"), _number(high or below or "inf")
            return [*pairwise(edges)].index(ends)
        place = bisect_right(edges, _number(cell.replace(mark, "."))) - 1
        if not 0 <= place < len(edges) - 1:
            raise ValueError(f"{cell!r} of {name!r} is in no band")
        return place

    def period(cell: str, released: bool) -> int:
        unit: str = bands[name]
        months = _UNITS.get(unit) or 12 * int(unit.removesuffix("years"))
        if not released:
            order = reading.get("dates", {}).get(name, "year-month-day")
            digits = re.findall("[0-9]+", re.sub("[.]0+$", "", cell.strip()))
            if order == "yearmonthday":
                order, digits = "year-month", [cell.strip()[:4], cell.strip()[4:6]]
            texts = dict(zip(re.split("[-/.]", order), digits, strict=False))
            precise = months >= _UNITS["year"] or "month" in texts
            if not _DATE.fullmatch(cell.strip()) or len(texts["year"]) != 4 or not precise:
                raise ValueError(f"{cell!r} of {name!r} does not tell its {unit}")
            parts = {part: int(text) for part, text in texts.items()}
            return (12 * parts["year"] + parts.get("month", 1) - 1) // months
        match = re.fullmatch("([0-9]{4})(?:-([0-9]{2})|-Q([1-4])|-([0-9]{4,5}))?", cell)
        year, month, quarter, last = (int(n or 0) for n in (match.groups() if match else [0] * 4))
        first = 12 * year + (month - 1 if month else 3 * (quarter - 1) if quarter else 0)
        length = 1 if month else 3 if quarter else 12 * (last - year + 1 if last else 1)
        if match is None or length != months or first % months:
            raise ValueError(f"{cell!r} of {name!r} is released, which is no {unit}")
        return first // months

    def group(cell: str, released: bool) -> int:
        values, other = groups[name]
        labels = [*map(str, dict.fromkeys([*values.values(), other]))]
        if released:
            return labels.index(cell)
        if numeric:
            number = _number(cell.replace(mark, "."))
            return labels.index(str(of_numbers(name).get(number, other)))
        return labels.index(str(values.get(cell, other)))

    read = band if name in bands else group if name in groups else plain
    read = period if isinstance(bands.get(name), str) else read
    return lambda cell, released: None if cell in gaps else read(cell, released)


# ---- what was asked ----------------------------------------------------------------------


@dataclass
class _Sum:
    """A rational number and Σ a log r, in nats."""

    rational: Fraction = Fraction(0)
    logs: list[tuple[Fraction, Fraction]] = field(default_factory=list)

    def plus(self, other: _Sum, times: Fraction = Fraction(1)) -> _Sum:
        logs = [*self.logs, *((times * a, r) for a, r in other.logs)]
        return _Sum(self.rational + times * other.rational, logs)

    def above(self, slack: Fraction) -> bool:
        """Tell whether it is above a number; one that no ball tells from it is that number."""
        exact, bits = self.rational - slack, 64
        while self.logs and bits <= BITS:
            with ctx.workprec(bits):
                value = arb(_exact(exact))
                for a, r in self.logs:
                    value += arb(_exact(a)) * arb(_exact(r)).log()
                if value > 0 or value <= 0:
                    return bool(value > 0)
            bits *= 2
        return not self.logs and exact > 0

    def __float__(self) -> float:
        logs = (float(a) * (math.log(r.numerator) - math.log(r.denominator)) for a, r in self.logs)
        return math.fsum([float(self.rational), *logs])


def _value(nats: _Sum, units: str) -> float:
    return float(nats) / (math.log(2) if units == "bits" else 1)


def _exact(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _margins(
    counts: _Counts, rule: Mapping[str, Any], number: Fraction, report: Mapping[str, Any]
) -> dict[Any, list[_Sum]] | None:
    """Return what each group, or the table, has too much: it breaks a rule where one is above 0.

    None for a rule that a table cannot tell, or that is not known here.
    """
    kind, asked = rule["kind"], report["asked"]
    bits = report["units"] == "bits"
    information = _Sum(logs=[(-number, Fraction(2))]) if bits else _Sum(-number)
    if kind == "budget":  # 3 of 10 records meet a budget of 0.3, though that float is less
        most = max(number, Fraction(repr(float(number))))
        of_records = asked["distortion"] == {"kind": "hamming"}
        return {None: [_Sum(counts.moved / counts.total - most)]} if of_records else None
    if kind == "ConditionalLeakageCap":
        informed = "w" in asked["encoder"]
        return {None: [information.plus(counts.information(condition=(_X,)))]} if informed else None
    if kind == "KAnonymity":
        return {y: [_Sum(number - size)] for y, size in counts.sizes.items()}
    if kind == "RecordEntropy":
        return _of_records(counts, number, (_W, _X) if "w" in asked["encoder"] else (_X,))
    masses, groups = counts.by(_W, _Y), counts.by(_Y)
    values = sorted(counts.by(_W).items(), key=lambda v: [(w is None, w) for w in v[0][0]])
    laws = {
        y: [(masses[w, y] / Fraction(q), p / counts.total) for (w,), p in values]
        for (y,), q in groups.items()
    }
    if kind in _EACH:
        return {y: _EACH[kind](law, number) for y, law in laws.items()}
    measured = rule.get("leakage") or {}
    name = rule.get("distance", measured.get("kind", "kl"))
    measure = _MEASURES.get(name if isinstance(name, str) and measured.keys() <= {"kind"} else "")
    if measure is None or kind not in {"TCloseness", "PerLetter", "LeakageCap", "PerfectPrivacy"}:
        return None
    limit = information if measure is _divergence else _Sum(-number)
    if kind != "LeakageCap":
        return {y: [limit.plus(measure(law))] for y, law in laws.items()}
    for y, law in laws.items():
        limit = limit.plus(measure(law), groups[y,] / counts.total)
    return {None: [limit]}


def _divergence(law: Law) -> _Sum:
    return _Sum(logs=[(p, p / prior) for p, prior in law if p])


def _variation(law: Law) -> _Sum:
    return _Sum(sum((abs(p - prior) for p, prior in law), Fraction(0)) / 2)


def _mover(law: Law) -> _Sum:
    """Earth mover's distance of values in order."""
    sums = [sum((p - prior for p, prior in law[: i + 1]), Fraction(0)) for i in range(len(law))]
    return _Sum(sum(map(abs, sums), Fraction(0)) / max(len(law) - 1, 1))


def _guess(law: Law) -> _Sum:
    return _Sum(max(p for p, _ in law))


def _above(law: Law, most: Fraction) -> list[_Sum]:
    """Return log p(w | x̂)/p(w) − ε."""
    return [_Sum(-most, [(Fraction(1), p / prior)]) for p, prior in law if p]


def _aside(law: Law, most: Fraction) -> list[_Sum]:
    """Return the same, and of the inverse: what is missing from a group discloses no end."""
    inverse = [(Fraction(1), prior / p) if p else _ENDLESS for p, prior in law]
    return [*_above(law, most), *(_Sum(-most, [each]) for each in inverse)]


def _diversity(law: Law, least: Fraction) -> list[_Sum]:
    """Return log ℓ − H(W | x̂)."""
    return [_Sum(logs=[(Fraction(1), least), *((p, p) for p, _ in law if p)])]


def _of_records(counts: _Counts, least: Fraction, axes: tuple[int, ...]) -> dict[Any, list[_Sum]]:
    """Return log k − H(record | x̂): any of the N_s records of s may be each of the n_s."""
    letters, full, sizes = counts.by(_Y, *axes), counts.by(*axes), counts.by(_Y)
    sums = {y: _Sum(logs=[(Fraction(1), least)]) for (y,) in sizes}
    for (y, *s), n in letters.items():
        ratio = Fraction(n, sizes[y,] * full[tuple(s)])
        sums[y].logs.append((Fraction(n, sizes[y,]), ratio))
    return {y: [each] for y, each in sums.items()}


_ENDLESS = Fraction(10**9), Fraction(2)  # more than any number that may be typed
_EACH: dict[str, Callable[[Law, Fraction], list[_Sum]]] = {
    "DeltaDisclosure": _aside,
    "LocalInformationPrivacy": _aside,
    "PointwiseMaximalLeakage": _above,
    "LDiversity": _diversity,
}
_MEASURES: dict[str, Callable[[Law], _Sum]] = {
    **dict.fromkeys(("kl", "MutualInformation"), _divergence),
    **dict.fromkeys(("tv", "TotalVariation"), _variation),
    **dict.fromkeys(("emd", "EarthMover"), _mover),
    "GuessingProbability": _guess,
}


def _worst(kind: str, number: float, margins: Mapping[Any, list[_Sum]], units: str) -> float | None:
    """Return the quantity that is bounded, where it is worst; None where it is without bound."""
    sums = [each for several in margins.values() for each in several]
    if any(_ENDLESS in each.logs for each in sums):
        return None
    worst = max(map(float, sums))
    if kind in {"LDiversity", "RecordEntropy"}:
        return number * math.exp(-worst)
    if kind == "KAnonymity":
        return number - worst
    informs = any(each.logs for each in sums) and kind not in _EACH
    return number + (worst / math.log(2) if informs and units == "bits" else worst)
