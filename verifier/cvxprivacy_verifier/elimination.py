"""The least of each letter, where costs are sums over attributes: one attribute after the other.

Letters of one *class* c have proportional laws, so that what scores come to, f_c(y), is the same
for each unit of their mass.  If the cost is Σ_i t_i[x_i][y_i],

    min_y f_c(y) + Σ_i t_i[x_i][y_i] = min over (y_2, …) of (min over y_1 of …) + Σ_{i>1} …,

and the inner minimum is one for all letters of the class that share x_1, and for all outputs that
share (y_2, …): a table of n m entries is never gone through.  Needs the standard library only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from .fields import parts_of
from .rationals import integers

__all__ = ["Elimination", "elimination_of", "greater", "lesser", "saving"]

_FEWER = 4  # times fewer operations than entries, from which it pays
_MANY = 32  # attributes, of which an order is looked for
_PLACES = 2**31  # of a table

Places = Sequence[int]
Taking = Callable[[Sequence[Any]], Sequence[Any]]  # of some entries
Lesser = Callable[[Sequence[Any], Sequence[Any]], Iterable[Any]]


class Elimination:
    """The order in which attributes are eliminated, and what that takes.

    Parameters
    ----------
    classes : sequence of int
        The class of each letter.
    attributes : sequence of (rows, columns)
        Where each letter and each output stands in an attribute's tables.
    """

    def __init__(
        self, classes: Sequence[int], attributes: Sequence[tuple[Places, Places]], outputs: int
    ) -> None:
        self.classes: dict[int, list[int]] = {}
        for s, c in enumerate(classes):
            self.classes.setdefault(c, []).append(s)
        order: list[int] = []
        self.operations = len(self.classes) * outputs
        left = set(range(len(attributes)))
        prefixes, suffixes = list(classes), list(zip(*(at[1] for at in attributes), strict=True))
        while left:  # the one that takes least now
            tuples = len(set(suffixes))
            joined = {
                i: len(set(zip(prefixes, attributes[i][0], strict=True))) for i in sorted(left)
            }
            best = min(joined, key=joined.__getitem__)
            self.operations += joined[best] * tuples
            left.remove(best)
            order.append(best)
            numbers: dict[Any, int] = {}
            pairs = zip(prefixes, attributes[best][0], strict=True)
            prefixes = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
            suffixes = [tuple(attributes[i][1][y] for i in sorted(left)) for y in range(outputs)]
        self._rows = [attributes[i][0] for i in order]
        self._columns = [attributes[i][1] for i in order]
        self.chosen, self.order = order, [attributes[i] for i in order]

    def prepared(self) -> list[Level]:
        """Return what is compared to eliminate one attribute after the other."""
        levels: list[Level] = []
        keys = list(zip(*self._columns, strict=True))  # of the values before an attribute is gone
        for _ in self.order:
            levels.append(Level(keys))
            keys = levels[-1].tails
        return levels

    def least(
        self,
        values: Sequence[Any],
        letters: list[int],
        tables: Sequence[Callable[[int], Sequence[Any]]],
        levels: list[Level],
        smaller: Lesser,
        joined: Callable[[Any, Any], Any] = operator.add,
    ) -> Iterator[tuple[int, Any]]:
        """Yield each letter of a class and its least.

        Parameters
        ----------
        values : sequence
            f_c at each output.
        tables : sequence of callable
            Of each attribute, in the order of elimination, the row of a place.
        smaller : callable
            The lesser of numbers side by side, :func:`lesser`; or another law over which
            ``joined`` distributes.
        """
        stack = [(0, values, letters)]
        while stack:
            k, values, letters = stack.pop()
            if k == len(levels):
                yield from ((s, values[0]) for s in letters)
                continue
            sharing: dict[int, list[int]] = {}
            for s in letters:
                sharing.setdefault(self._rows[k][s], []).append(s)
            compared = levels[k].values(values)
            for place, some in sharing.items():
                sums = list(map(joined, compared, levels[k].places(tables[k](place))))
                after = levels[k].reduced(sums, smaller)
                stack.append((k + 1, after, some))


class Level:
    """What is compared to eliminate an attribute: values whose keys share all but the first place.

    ``values`` takes values one group after the other, ``places`` where they stand in a row of a
    table, and ``tails`` are the keys of what is left.  Groups are halved all at once, again and
    again, as few long lists take Python far less time than many short ones.
    """

    def __init__(self, keys: Sequence[tuple[int, ...]]) -> None:
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, (_, *tail) in enumerate(keys):
            groups.setdefault(tuple(tail), []).append(i)
        groups = dict(sorted(groups.items(), key=lambda group: len(group[1]) > 1))
        at = [i for group in groups.values() for i in group]
        self.values, self.places = _taking(at), _taking([keys[i][0] for i in at])
        alone = [tail for tail, group in groups.items() if len(group) == 1]  # nearly all, at first
        self._alone, self.tails = len(alone), alone
        self._rounds: list[tuple[Taking, Taking, Taking, int]] = []
        places = iter(range(len(alone), len(at)))
        left = {t: list(islice(places, len(g))) for t, g in groups.items() if len(g) > 1}
        while left:
            left = dict(sorted(left.items(), key=lambda group: len(group[1]) > 2))
            first = [i for group in left.values() for i in group[:-1:2]]
            second = [i for group in left.values() for i in group[1::2]]
            odd = [group[-1] for group in left.values() if len(group) % 2]
            done = [tail for tail, group in left.items() if len(group) == 2]
            self._rounds.append((_taking(first), _taking(second), _taking(odd), len(done)))
            self.tails = [*self.tails, *done]
            halves, others = iter(range(len(first))), iter(range(len(first), len(at)))
            left = {
                tail: [*islice(halves, len(group) // 2), *islice(others, len(group) % 2)]
                for tail, group in left.items()
            }
            left = {tail: group for tail, group in left.items() if len(group) > 1}

    def reduced(self, values: Sequence[Any], smaller: Lesser) -> list[Any]:
        """Return the least of each group, of values in the order in which ``values`` takes them."""
        after = list(values[: self._alone])
        for first, second, odd, done in self._rounds:
            values = [*smaller(first(values), second(values)), *odd(values)]
            after += values[:done]
        return after


def lesser(some: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
    """Return the lesser of each two numbers side by side, in a third of the time of ``min``."""
    return [x if x < y else y for x, y in zip(some, others, strict=True)]


def greater(some: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
    """Return the greater of each two numbers side by side."""
    return [x if x > y else y for x, y in zip(some, others, strict=True)]


def _taking(at: list[int]) -> Taking:
    """Return a function that takes some entries of a sequence, as a sequence."""
    if len(at) < 2:  # of which an itemgetter makes no tuple
        return operator.itemgetter(slice(at[0], at[0] + 1) if at else slice(0))
    return operator.itemgetter(*at)


def saving(attributes: Sequence[tuple[Places, Places]], n: int, m: int) -> Elimination | None:
    """Return how attributes are eliminated of all letters alike, if that saves much."""
    return _saving([0] * n, attributes, m) if _worth_planning(attributes, n, m) else None


def _saving(
    classes: Sequence[int], attributes: Sequence[tuple[Places, Places]], m: int
) -> Elimination | None:
    plan = Elimination(classes, attributes, m)
    return plan if _FEWER * plan.operations <= len(classes) * m else None


def _worth_planning(attributes: Collection[Any], n: int, m: int) -> bool:
    """Tell whether an order is found in less time than all entries take."""
    return 0 < len(attributes) <= _MANY and len(attributes) ** 2 * (n + m) <= n * m


def elimination_of(program: Mapping[str, Any]) -> Elimination | None:
    """Return how attributes are eliminated from a channel program, or None where that saves little.

    Where entries have bounds, rows or auxiliaries are per output, or a cost is one table, each
    entry has a price of its own.
    """
    if program["lower"] is not None or program["upper"] is not None or program["auxiliaries"]:
        return None
    rows = program["rows"].values()
    if any(row["per_output"] for row in rows):
        return None
    terms = [*parts_of(program["objective"]).values(), *(row["term"] for row in rows)]
    attributes = attributes_of([term["cost"] for term in terms])
    m, law = program["outputs"], program["law"]
    labels = [row for view in program["views"].values() for row in view["labels"]]
    n = len(law[0])
    shaped = type(m) is int and all(len(row) == n for row in (*law, *labels))
    if not shaped or not _worth_planning(attributes, n, m):
        return None
    if not all(_placed(rows, n) and _placed(columns, m) for rows, columns in attributes):
        return None  # which is refused where it is read
    return _saving(_classes(law, labels), list(attributes), m)


def _placed(places: Places, count: int) -> bool:
    """Tell whether there are so many small whole numbers: others might all have one hash."""
    fits = len(places) == count and {*map(type, places)} == {int}
    return fits and min(places) >= 0 and max(places) < _PLACES


def attributes_of(costs: Sequence[Any]) -> dict[tuple[Places, Places], list[Any]]:
    """Return the parts of some costs by where letters and outputs stand; none if one is a table."""
    attributes: dict[tuple[Places, Places], list[Any]] = {}
    priced = [cost for cost in costs if cost is not None]
    if not all(isinstance(cost, dict) for cost in priced):
        return {}
    parts = [
        part for cost in {id(cost): cost for cost in priced}.values() for part in cost["parts"]
    ]
    for part in parts if len(parts) <= _MANY else ():
        key = tuple(part["rows"]), tuple(part["columns"])
        attributes.setdefault(key, []).append(part)
    return attributes


def _classes(law: Sequence[Sequence[Any]], labels: Sequence[Sequence[Any]]) -> list[int]:
    """Return a number for each letter, the same for those of proportional laws, labelled alike."""
    integers_of_law, _ = integers([list(row) for row in law])
    numbers: dict[str, int] = {}
    classes = []
    for s, atoms in enumerate(zip(*integers_of_law, strict=True)):
        common = math.gcd(*atoms) or 1
        column = (*(atom // common for atom in atoms), *(row[s] for row in labels))
        # as text, whose hashes nobody chooses
        classes.append(numbers.setdefault(" ".join(map(hex, column)), len(numbers)))
    return classes
