"""Whether two programs are the same exact data, and where they are not.

Numbers are compared as the rationals that they are (0.5 is "1/2"), rows, views, auxiliaries and
terms by name.  What a term calls itself is no data.  A cost by parts is the sum that it stands for.
Needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from .costs import integer_layers, layers_of, rows_of, tabled
from .fields import parts_of
from .wording import MALFORMED, exact, measured, quoted, written
from .work import affordable, refuse_long

__all__ = ["differences"]

_CHANNEL = {"kind", "units", "law", "outputs", "views", "objective", "rows", "lower", "upper"}
_CHANNEL |= {"auxiliaries", "terms"}
Program = Mapping[str, Any]


def differences(program: Program, other: Program) -> list[str]:
    """Return what is different in a program, where ``other`` is the problem's; empty if nothing.

    Parameters
    ----------
    program, other : mapping
        Programs as documents hold them (``ChannelProgram.to_dict()``).
    """
    try:
        refuse_long(program)  # a stranger's file, as in ``verify``
        return list(_Comparison(program, other).all())
    except MALFORMED as error:
        return [f"cannot be compared with the problem's ({type(error).__name__}: {quoted(error)})"]


class _Comparison:
    """Two programs side by side: the one that was proved, and the problem's."""

    def __init__(self, program: Program, other: Program) -> None:
        self.mine, self.theirs = program, other
        self.discrete = program["kind"] in ("channel", "useful")

    def all(self) -> Iterator[str]:
        mine, theirs = self.mine, self.theirs
        if mine["kind"] != theirs["kind"]:
            yield _instead("kind of program", quoted(mine["kind"]), quoted(theirs["kind"]))
            return
        sizes = list(self.sizes()) if self.discrete else []
        yield from sizes
        if sizes:  # nothing else is comparable
            return
        sections: dict[str, Callable[..., Iterator[str]]] = {
            "views": self.view, "rows": self.row, "auxiliaries": self.auxiliary,
            "caps": self.entries, "terms": self.term,
        }  # fmt: skip
        # all keys of either: what only one of the two has is a difference, whatever it means
        for key in dict.fromkeys([*theirs, *mine]):
            if key not in mine or key not in theirs:
                yield f"{quoted(key)} is {_only(key in mine)}"
            elif key in sections:
                yield from self.named(key, sections[key])
            elif key == "objective":
                yield from self.objectives(parts_of(mine[key]), parts_of(theirs[key]))
            elif self.discrete and key in ("lower", "upper"):
                yield from self.entry_bounds(key)
            elif key == "units":
                if mine[key] != theirs[key]:
                    yield _instead(key, mine[key], theirs[key])
            elif key not in ("kind", "outputs"):
                yield from self.entries(key, mine[key], theirs[key])

    def sizes(self) -> Iterator[str]:
        counts: dict[str, Callable[[Program], Any]] = {
            "letters": lambda program: len(program["law"][0]),
            "atoms of a letter": lambda program: len(program["law"]),
            "outputs": lambda program: program["outputs"],
        }
        for what, count in counts.items():
            mine, theirs = count(self.mine), count(self.theirs)
            if exact(mine) != exact(theirs):
                yield _instead(what, _number(mine), _number(theirs))

    def named(self, key: str, compare: Callable[..., Iterator[str]]) -> Iterator[str]:
        """Compare entries by name; one that only one of the two has is named."""
        mine, theirs = self.mine[key], self.theirs[key]
        what = {"auxiliaries": "auxiliary"}.get(key, key.removesuffix("s"))
        for name in dict.fromkeys([*theirs, *mine]):
            label = f"{what} {quoted(name)}"
            if name not in mine or name not in theirs:
                yield f"{label} is {_only(name in mine)}"
            else:
                yield from compare(label, mine[name], theirs[name])

    def objectives(self, mine: Program, theirs: Program) -> Iterator[str]:
        for name in dict.fromkeys([*theirs, *mine]):
            label = f"objective {quoted(name)}" if name else "objective"
            if name not in mine or name not in theirs:
                yield f"{label} is {_only(name in mine)}"
            else:
                yield from self.term(label, mine[name], theirs[name])

    def fields(self, label: str, mine: Program, theirs: Program) -> Iterator[str]:
        for key in sorted(({*mine} ^ {*theirs}) - {"name"}):
            yield f"{label}: {quoted(key)} is {_only(key in mine)}"

    def view(self, label: str, mine: Program, theirs: Program) -> Iterator[str]:
        yield from self.fields(label, mine, theirs)
        if not self.discrete:
            yield from self.entries(f"{label}: variables", mine["of"], theirs["of"])
            if mine["reference"] != theirs["reference"]:
                references = quoted(mine["reference"]), quoted(theirs["reference"])
                yield _instead(f"{label}: reference", *references)
            return
        yield from self.entries(f"{label}: labels", mine["labels"], theirs["labels"])
        # none means the labels themselves: the same program, said in two ways
        pair = [view["reference"] or view["labels"] for view in (mine, theirs)]
        yield from self.entries(f"{label}: reference", *pair)
        measure, other = mine["measure"], theirs["measure"]
        if measure["kind"] != other["kind"]:
            yield _instead(f"{label}: measure", quoted(measure["kind"]), quoted(other["kind"]))
            return
        yield from self.fields(f"{label}: measure", measure, other)
        for key in sorted(measure.keys() & other.keys() - {"kind"}):
            yield from self.entries(f"{label}: {key}", measure[key], other[key])

    def term(self, label: str, mine: Program, theirs: Program) -> Iterator[str]:
        yield from self.fields(label, mine, theirs)
        for view in dict.fromkeys([*theirs["weights"], *mine["weights"]]):
            pair = mine["weights"].get(view, 0), theirs["weights"].get(view, 0)  # none is 0
            weight = f"{label}: {self.measured(view)} {quoted(view)} has weight"
            yield from self.per_output(weight, *pair)
        yield from self.costs(f"{label}: cost", mine["cost"], theirs["cost"])
        pair = mine["cost_radius"], theirs["cost_radius"]
        yield from self.entries(f"{label}: radius of cost", *pair)
        yield from self.pairs(f"{label}: constant", mine["constant"], theirs["constant"])

    def measured(self, view: str) -> str:
        """Say what a view measures: the problem's, if it has it."""
        views = (program["views"].get(view, {}) for program in (self.theirs, self.mine))
        data = next((fields["measure"] for fields in views if "measure" in fields), None)
        return "information about" if data is None else measured(data)

    def row(self, label: str, mine: Program, theirs: Program) -> Iterator[str]:
        yield from self.fields(label, mine, theirs)
        yield from self.term(label, mine["term"], theirs["term"])
        if mine["sense"] != theirs["sense"]:
            yield _instead(f"{label}: sense", quoted(mine["sense"]), quoted(theirs["sense"]))
        if mine["per_output"] is not theirs["per_output"]:
            yield f"{label}: a row for each output is {_only(bool(mine['per_output']))}"
        yield from self.per_output(f"{label}: bound", mine["bound"], theirs["bound"])
        yield from self.entries(f"{label}: radius of bound", mine["radius"], theirs["radius"])

    def auxiliary(self, label: str, mine: Program, theirs: Program) -> Iterator[str]:
        yield from self.fields(label, mine, theirs)
        if mine["kind"] != theirs["kind"]:
            yield _instead(f"{label}: kind", quoted(mine["kind"]), quoted(theirs["kind"]))
        yield from self.pairs(f"{label}: bound", mine["bound"], theirs["bound"])
        for key in ("share", "levels") if mine["kind"] == theirs["kind"] == "excess" else ():
            yield from self.entries(f"{label}: {key}", mine[key], theirs[key])

    def entry_bounds(self, key: str) -> Iterator[str]:
        shape = [len(self.mine["law"][0]), int(self.mine["outputs"])]
        default = _full(shape, int(key == "upper"))  # 0 and 1, as in (P2)
        pair = [default if p[key] is None else p[key] for p in (self.mine, self.theirs)]
        yield from self.entries(f"{key} bound of moves", *pair)

    # ---- numbers -------------------------------------------------------------------------

    def per_output(self, label: str, mine: Any, theirs: Any) -> Iterator[str]:
        """Compare one number, or one for each output."""
        # one number for all outputs is the same as that number for each
        many = [x if isinstance(x, list) else [x] for x in (mine, theirs)]
        count = max(map(len, many))
        mine, theirs = (x * count if len(x) == 1 else x for x in many)
        single = len(mine) == len(theirs) == 1
        yield from self.entries(label, *((mine[0], theirs[0]) if single else (mine, theirs)))

    def costs(self, label: str, mine: Any, theirs: Any) -> Iterator[str]:
        """Compare costs per letter, or per atom; no cost is one of 0."""
        if mine == theirs:  # as Python compares: 1 and 1.0 are one, and no number is read exactly
            return
        mine, theirs = (self.added(cost) for cost in (mine, theirs))
        shape = _shape(theirs if mine is None else mine)
        pair = [_full(shape, 0) if cost is None else cost for cost in (mine, theirs)]
        pair = [cost[0] if _shape(cost)[2:] and len(cost) == 1 else cost for cost in pair]
        # a cost per letter is that cost for each of its atoms
        if len({len(_shape(cost)) for cost in pair}) > 1:  # one of them is per atom
            count = len(self.mine["law"])
            pair = [cost if len(_shape(cost)) == 3 else [cost] * count for cost in pair]
        yield from self.entries(label, *pair)

    def added(self, cost: Any) -> Any:
        """Return the table of a cost, with all rows and columns."""
        size = len(self.mine["law"][0]), int(self.mine["outputs"])
        if not isinstance(cost, dict):
            if cost is None:
                return None
            affordable(len(self.mine["law"]) * size[0] * size[1])  # a short one may stand for many
            return tabled(cost, *size)
        (layer,), common = integer_layers(layers_of(cost, *size))
        fraction = cache(lambda c: Fraction(c, common))  # a few numbers, many times
        return [[fraction(c) for c in row] for row in rows_of(layer)]

    def pairs(self, label: str, mine: Any, theirs: Any) -> Iterator[str]:
        (mine, radius), (theirs, other) = mine, theirs
        yield from self.entries(label, mine, theirs)
        yield from self.entries(f"{label}: radius", radius, other)

    def entries(self, label: str, mine: Any, theirs: Any) -> Iterator[str]:
        """Compare numbers, or tables of numbers, exactly."""
        if mine == theirs:
            return
        shapes = _shape(mine), _shape(theirs)
        if shapes[0] != shapes[1]:
            yield _instead(f"{label}: size", *(" × ".join(map(str, s)) or "1" for s in shapes))
            return
        count = apart = 0
        first: tuple[Any, Any, Any] = ((), 0, 0)
        for at, a, b in _cells(mine, theirs):
            count += 1
            if a != b and exact(a) != exact(b):  # 0.5 and "1/2" differ in kind alone
                first = first if apart else (at, a, b)
                apart += 1
        if apart:
            at, a, b = first
            if at:
                places = ", ".join(map(str, at))
                label += f": {apart:,} of {count:,} differ, the first at [{places}]:"
            yield _instead(label, _number(a), _number(b))


def _instead(what: str, mine: str, theirs: str) -> str:
    return f"{what} {mine}, where the problem has {theirs}"


def _only(mine: bool) -> str:
    return "not in the problem" if mine else "missing"


def _number(value: Any) -> str:
    """Return a number with enough digits to tell it from its neighbour."""
    number = exact(value)
    if number.denominator & (number.denominator - 1) == 0 < abs(number) < 2**53:  # a dyadic
        near = float(number)
        if near == number:
            return str(number) if number.denominator == 1 else repr(near)
    return str(number) if len(str(number)) <= 40 else written(value, 30)


def _shape(table: Any) -> list[int]:
    if not isinstance(table, list):
        return []
    return [len(table), *(_shape(table[0]) if table else ())]


def _full(shape: list[int], value: int) -> Any:
    return [_full(shape[1:], value)] * shape[0] if shape else value


def _cells(mine: Any, theirs: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[Any, Any, Any]]:
    """Yield place and entries of two tables of one shape."""
    if not isinstance(mine, list):
        yield at, mine, theirs
        return
    for i, pair in enumerate(zip(mine, theirs, strict=True)):
        yield from _cells(*pair, (*at, i))
