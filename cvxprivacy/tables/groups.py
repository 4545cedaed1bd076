"""Values put into groups: by name, or all but the most frequent into one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.frozen import frozen
from cvxprivacy.tables.bins import short
from cvxprivacy.tables.labels import read, written
from cvxprivacy.validation import integer, untaken

__all__ = ["Groups", "Ungrouped", "groups_of", "raw", "without_group"]

REST = "other"
SHOWN = 3  # values that an error names


@dataclass(frozen=True)
class Ungrouped:
    """A value that is in no group: no letter, whatever the groups are called."""

    value: Any

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Groups:
    """A group for each value of a column, and perhaps one for all the rest.

    Values are compared by their text, so that ``25`` of a file of text is the number 25 of a
    column.  A missing value stays missing.

    Parameters
    ----------
    groups : mapping of value to group
        In the order that the groups have as letters: that of their first appearance.
    rest : optional
        The group of whatever value has none, also of one that was never seen; without it such a
        value is refused.

    Raises
    ------
    InputError
        For no value at all, for a group that is no label, and for two values of one text in two
        groups.

    Examples
    --------
    >>> schooling = Groups({"9th": "school", "10th": "school", "Masters": "university"})
    >>> schooling.labels, schooling.named(["Masters", None, "9th"])
    (['school', 'university'], ['university', None, 'school'])
    """

    groups: Mapping[Any, Any]
    rest: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.groups, Mapping) or not self.groups:
            problem = "no value" if isinstance(self.groups, Mapping) else f"{self.groups!r}"
            raise InputError("groups", problem, "pass {value: group}, every value named")
        by_text: dict[str, Any] = {}
        for value, group in self.groups.items():
            if value is None:
                remedy = "leave it out: it stays missing"
                raise InputError("groups", "a group for missing values", remedy)
            if not isinstance(group, str | int | float) or group != group:
                problem = f"the group {group!r} of {value!r}"
                raise InputError("groups", problem, "pass text or numbers", value=value)
            if by_text.setdefault(as_text(value), group) != group:
                problem = f"{as_text(value)!r} is in two groups"
                raise InputError("groups", problem, "name each value once", value=value)
        object.__setattr__(self, "groups", frozen(by_text))

    @classmethod
    def most_frequent(cls, counts: Mapping[Any, int], number: int) -> Groups:
        """Keep the most frequent values, and put the rest into one group.

        Of equally frequent ones those that come first in ``counts`` are kept.  The rest is called
        "other", or "other[2]" if a value that is kept is called so.  Where nothing is left for
        the rest there is none.

        Parameters
        ----------
        counts : mapping of value to number of records
            In the order of the values; a missing one is passed over.
        number : int
            Values kept, at least 1.
        """
        number = integer(number, "groups", least=1)
        values = [value for value in counts if value is not None]
        kept = set(sorted(values, key=lambda value: -counts[value])[:number])  # a stable sort
        names = {value: as_text(value) for value in values if value in kept}
        other = untaken(REST, names.values()) if len(values) > number else None
        return cls(names, other)

    @cached_property
    def labels(self) -> list[Any]:
        """The groups, in order, the rest last."""
        last = [] if self.rest is None else [self.rest]
        return list(dict.fromkeys([*self.groups.values(), *last]))

    def named(self, values: Iterable[Any]) -> list[Any]:
        """Return each value's group, ``None`` for a missing one, ``Ungrouped`` without.

        Parameters
        ----------
        values : iterable
            Values of a column, ``None`` where they are missing.
        """
        groups: dict[Any, Any] = {None: None}
        names = []
        for value in values:
            if value not in groups:
                groups[value] = self.of(value)
            names.append(groups[value])
        return names

    def of(self, value: Any) -> Any:
        """Return the group of a value that is not missing.

        Parameters
        ----------
        value : str, int or float
            Compared by its text.
        """
        other = Ungrouped(value) if self.rest is None else self.rest
        return self.groups.get(as_text(value), other)

    def to_list(self) -> list[Any]:
        """Return them as JSON holds them."""
        return [[[v, written(g)] for v, g in self.groups.items()], written(self.rest)]

    @classmethod
    def from_list(cls, data: Sequence[Any]) -> Groups:
        """Return what :meth:`to_list` gave.

        Parameters
        ----------
        data : sequence
            Pairs of value and group, and the group of the rest.
        """
        pairs, other = data
        return cls({value: read(group) for value, group in pairs}, read(other))


def groups_of(name: str, spec: Any, counts: Callable[[], Mapping[Any, int]]) -> Groups | None:
    """Return the groups that a mapping or a number means for a column.

    Parameters
    ----------
    spec : mapping of value to group, Groups, or int
        A number is that of the most frequent values that are kept.
    counts : callable
        Returns how many records have each value of the column; asked only where it matters.

    Returns
    -------
    Groups or None
        None where a column without values is to be grouped by frequency.
    """
    try:
        if isinstance(spec, Mapping):
            return Groups(spec)
        if isinstance(spec, Groups):
            return spec
        if isinstance(spec, bool):
            raise InputError("groups", f"{spec!r} is no number", "", value=spec)
        number = integer(spec, "groups", least=1)
        frequencies = counts()
        return Groups.most_frequent(frequencies, number) if set(frequencies) - {None} else None
    except InputError as error:
        remedy = error.remedy
        if not isinstance(spec, Mapping | int) or isinstance(spec, bool):
            remedy = "pass {value: group}, or how many of the most frequent values are kept"
        raise InputError("groups", error.problem, remedy, where=name, value=error.value) from None


def as_text(value: Hashable) -> str:
    """Return the text by which values are compared: 25 for 25.0."""
    return short(value) if isinstance(value, float) else str(value)


def raw(letter: Any) -> Any:
    """Return a letter with the values themselves in place of those that are in no group."""
    if isinstance(letter, tuple):
        return tuple(map(raw, letter))
    return letter.value if isinstance(letter, Ungrouped) else letter


def without_group(name: str, values: Iterable[Ungrouped]) -> InputError:
    """Return the error for values of a column that are in no group, the first of them named."""
    texts = sorted({repr(value) for value in values})
    more = f" and {len(texts) - SHOWN:,} more" if len(texts) > SHOWN else ""
    problem = f"column {name!r} has values of no group: {', '.join(texts[:SHOWN])}{more}"
    return InputError("groups", problem, "name a group for each of them", value=name)
