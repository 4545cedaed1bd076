"""The cases that this package and its peers are asked: laws, channels and tables, always the same.

All are whole numbers or fractions, so that a judge needs no float; a fifth of the cells are empty.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

Law = list[Fraction]
Rows = list[Law]


def normalised(counts: list[int]) -> Law:
    """Return counts over their sum."""
    return [Fraction(n, sum(counts)) for n in counts]


def law(draw: random.Random, size: int, *, empty: float = 0.2) -> Law:
    """Return a law of so many values."""
    counts = [0 if draw.random() < empty else draw.randint(1, 20) for _ in range(size)]
    counts[draw.randrange(size)] += 1
    return normalised(counts)


def channel(draw: random.Random, inputs: int, outputs: int, *, empty: float = 0.2) -> Rows:
    """Return a channel all of whose outputs occur."""
    while True:
        rows = [law(draw, outputs, empty=empty) for _ in range(inputs)]
        if all(any(column) for column in zip(*rows, strict=True)):
            return rows


def composed(first: Rows, second: Rows) -> Rows:
    """Return the product of two channels."""
    columns = list(zip(*second, strict=True))
    return [
        [sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in columns]
        for row in first
    ]


def symmetric(noise: Fraction) -> Rows:
    """Return the binary symmetric channel."""
    return [[1 - noise, noise], [noise, 1 - noise]]


def erasure(lost: Fraction) -> Rows:
    """Return the binary erasure channel."""
    return [[1 - lost, Fraction(0), lost], [Fraction(0), 1 - lost, lost]]


def textbook() -> list[Rows]:
    """Return the channels of the textbooks: some noise, erasures, Z, nothing and everything."""
    tenth, half, one, zero = Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(0)
    typewriter = [[half if j in (i, (i + 1) % 4) else zero for j in range(4)] for i in range(4)]
    return [
        symmetric(tenth), symmetric(Fraction(11, 100)), symmetric(half), erasure(Fraction(1, 4)),
        [[one, zero], [half, half]], typewriter,
        [[one if i == j else zero for j in range(3)] for i in range(3)],
    ]  # fmt: skip


def channels(seed: int, count: int) -> Iterator[tuple[Law, Rows]]:
    """Yield priors without zeros and channels: those of the textbooks, then random ones."""
    draw = random.Random(seed)
    for rows in textbook()[:count]:
        yield law(draw, len(rows), empty=0.0), rows
    for _ in range(count - len(textbook())):
        rows = channel(draw, draw.randint(2, 5), draw.randint(2, 6))
        yield law(draw, len(rows), empty=0.0), rows


def pairs(seed: int, count: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield A and B of the same inputs; in every second pair A is a garbling of B."""
    draw = random.Random(seed)
    yield symmetric(Fraction(1, 5)), erasure(Fraction(2, 5))
    yield erasure(Fraction(2, 5)), symmetric(Fraction(1, 5))
    for i in range(count - 2):
        b = channel(draw, draw.randint(2, 4), draw.randint(2, 4))
        outputs = draw.randint(2, 4)
        if i % 2:
            yield composed(b, channel(draw, len(b[0]), outputs)), b
        else:
            yield channel(draw, len(b), outputs), b


def narrowly() -> Iterator[tuple[Rows, Rows]]:
    """Yield A and B, of which A is no garbling of B, but for 1e-10."""
    little = Fraction(1, 10**10)
    for tenths in (1, 2, 3, 4):
        noise = Fraction(tenths, 10)
        first, second = symmetric(noise - little), symmetric(noise)
        yield [first[0], second[1]], second


@dataclass
class Table:
    """Records of two key attributes and a confidential one."""

    keys: list[tuple[int, int]]
    w: list[int]

    @property
    def classes(self) -> list[dict[int, int]]:
        """The counts of W in each equivalence class."""
        return self.grouped(self.keys)

    def grouped(self, keys: list[tuple[int, int]]) -> list[dict[int, int]]:
        """Return the counts of W in the classes of other keys."""
        counts: dict[tuple[int, int], dict[int, int]] = {}
        for key, value in zip(keys, self.w, strict=True):
            of = counts.setdefault(key, {})
            of[value] = of.get(value, 0) + 1
        return [counts[key] for key in sorted(counts)]

    @property
    def whole(self) -> dict[int, int]:
        """The counts of W in all."""
        return {value: self.w.count(value) for value in sorted(set(self.w))}


def tables(seed: int, count: int) -> Iterator[Table]:
    """Yield tables of 12 to 60 records; in every third W is spread evenly in each class."""
    draw = random.Random(seed)
    for i in range(count):
        first, second, values = draw.randint(1, 3), draw.randint(1, 2), draw.randint(2, 5)
        size = draw.randint(12, 60)
        keys = [(draw.randrange(first), draw.randrange(second)) for _ in range(size)]
        w = [draw.randrange(values) for _ in range(size)]
        if i % 3 == 0:
            each = draw.randint(1, 3)
            cells = [(a, b) for a in range(first) for b in range(second)]
            keys = [cell for cell in cells for _ in range(values * each)]
            w = [value for _ in cells for value in range(values) for _ in range(each)]
        if len(set(w)) > 1:
            yield Table(keys, w)
