"""Copied columns that determine a protected one: sums, differences and functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.text import cells
from cvxprivacy_sdc.copied.sample import Codes, joint_codes

__all__ = ["Dependency", "functions", "sums"]

HOLDS = 0.99  # of the records
REPEATED = 0.5  # of the records whose value occurs again: others are names of records
TRIED = 64  # records on which sums are tried before all are looked at
MOST_SUMMED = {1: 500, 2: 120, 3: 30}  # columns that are tried in sums of one, two, three
DOMINANT = 0.9  # a target of which more is one value is determined by nothing in particular

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dependency:
    """Copied columns from which a protected one is read off.

    Attributes
    ----------
    target : str
        The protected column.
    columns : tuple of str
        The copied ones.
    signs : tuple of int
        Of a sum; empty for a function.
    holds, records : int
        In how many records it holds, of how many that could tell.
    """

    target: str
    columns: tuple[str, ...]
    signs: tuple[int, ...]
    holds: int
    records: int

    def __str__(self) -> str:
        """What determines what, and how often."""
        often = f"in {self.holds:,} of {self.records:,} records"
        if not self.signs:
            verb = "determine" if len(self.columns) > 1 else "determines"
            return f"{cells(self.columns)} {verb} {self.target} {often}"
        terms = [
            f"{'+' if s > 0 else '−'} {c}" for c, s in zip(self.columns, self.signs, strict=True)
        ]
        return f"{' '.join(terms).removeprefix('+ ')} = {self.target} {often}"


def sums(target: str, goal: Numbers, columns: Mapping[str, Numbers]) -> list[Dependency]:
    """Return the sums and differences of up to three columns that are another one.

    Of sums that hold, none contains another one.

    Parameters
    ----------
    target : str
        Name of the other one.
    goal : array of float
        Its numbers, NaN where one is missing.
    columns : mapping of str to array
        Numbers of the columns.

    Examples
    --------
    >>> wages, rents = np.arange(30.0) ** 2 % 17, np.arange(30.0) % 7
    >>> [text] = sums("income", wages + rents, {"rents": rents, "age": rents * 9, "wages": wages})
    >>> print(text)
    rents + wages = income in 30 of 30 records
    """
    present = np.flatnonzero(np.isfinite(goal))
    if not present.size or not _varied(np.unique(goal[present], return_inverse=True)[1]):
        return []
    tried = np.random.default_rng(0).permutation(present)[:TRIED]
    dependencies: list[Dependency] = []
    for size, most in MOST_SUMMED.items():
        tables = dict([*columns.items()][:most])
        for names, signs in _near(goal[tried], {n: c[tried] for n, c in tables.items()}, size):
            if any({*entry.columns} <= {*names} for entry in dependencies):
                continue
            total = np.sum(
                [s * tables[n][present] for s, n in zip(signs, names, strict=True)], axis=0
            )
            holds, records = _equal(total, goal[present])
            if _holds(int(holds), int(records), len(present)):
                dependencies.append(Dependency(target, names, signs, int(holds), int(records)))
    return dependencies


def _near(
    goal: Numbers, columns: Mapping[str, Numbers], size: int
) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Yield the sums of so many columns that are often a number, those that are added first."""
    names, width = list(columns), len(columns)
    matrix = np.column_stack([*columns.values()]) if columns else np.zeros((len(goal), 0))
    for begun in combinations(range(width), size - 1):
        after = begun[-1] + 1 if begun else 0  # the last column is tried for all at once
        for signs in product((1, -1), repeat=size):
            partial = sum(
                (s * matrix[:, i] for s, i in zip(signs[:-1], begun, strict=True)),
                np.zeros(len(goal)),
            )
            totals = partial[:, None] + signs[-1] * matrix[:, after:]
            holds, records = _equal(totals, goal[:, None])
            often = (holds >= 0.9 * records) & (2 * records >= REPEATED * len(goal))
            for last in (np.flatnonzero(often & (records > 0)) + after).tolist():
                order = sorted(zip(signs, (*begun, last), strict=True), key=lambda term: -term[0])
                yield tuple(names[i] for _, i in order), tuple(sign for sign, _ in order)


def _equal(totals: Numbers, goal: Numbers) -> tuple[Any, Any]:
    """Return in how many records sums are a number, and of how many that have both."""
    apart = np.abs(totals - goal)
    near = apart <= 1e-9 * np.maximum(1.0, np.abs(goal))  # but for rounding
    return near.sum(axis=0), np.isfinite(apart).sum(axis=0)


def _holds(holds: int, records: int, present: int, least: float = HOLDS) -> bool:
    return records >= max(REPEATED * present, 20) and holds >= least * records


def functions(target: str, goal: Codes, columns: Mapping[str, Codes]) -> list[Dependency]:
    """Return the columns, and pairs of them, whose value determines a letter of the other one.

    Values that one record alone has tell nothing of that: of records that share a value, each must
    have the letter of the most.

    Parameters
    ----------
    target : str
        Name of the other one.
    goal : array of int
        Its letters.
    columns : mapping of str to array
        The numbers of each column's values.

    Examples
    --------
    >>> plant = np.arange(90) % 30
    >>> [text] = functions("state", plant % 7, {"plant": plant, "year": np.arange(90) // 45})
    >>> print(text)
    plant determines state in 90 of 90 records
    """
    if not _varied(goal):
        return []
    dependencies: list[Dependency] = []
    for size in (1, 2):
        for names in combinations(columns, size):
            if any({*entry.columns} <= {*names} for entry in dependencies):
                continue
            value = joint_codes([columns[name] for name in names])
            again = np.bincount(value)[value] > 1
            width = int(goal.max()) + 1
            letters = np.bincount(value[again] * width + goal[again])
            letters = np.pad(letters, (0, -len(letters) % width)).reshape(-1, width)
            holds, records = int(letters.max(axis=1, initial=0).sum()), int(again.sum())
            if _holds(holds, records, len(goal)) and _varied(goal[again]):
                dependencies.append(Dependency(target, names, (), holds, records))
    return dependencies


def _varied(codes: Codes) -> bool:
    """Tell whether no value is that of nearly all records."""
    return bool(codes.size) and np.bincount(codes).max() <= DOMINANT * codes.size
