"""The words that statements of all programs are made of: numbers, names, terms and rows.

Names in a document may lie: they are quoted.  Needs the standard library only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import groupby
from typing import Any

from .fields import parts_of

__all__ = [
    "INFORMATION",
    "MALFORMED",
    "MOST_VIEWS",
    "Table",
    "constant",
    "exact",
    "extremes",
    "information_terms",
    "many",
    "measured",
    "minimised",
    "names_of",
    "positive",
    "quoted",
    "radius_of",
    "ranged",
    "together",
    "units_of",
    "used_views",
    "written",
]

MALFORMED = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(ArithmeticError, MemoryError, RecursionError),
)
MOST_VIEWS = 20  # that are described
INFORMATION = {"mutual information", "Jensen-Shannon", "relative entropy"}  # in bits or in nats

_FRACTION = re.compile(r"-?\d{1,4000}(/\d{1,4000})?")
_LONGEST = 60  # characters of a name that are printed
Table = list[list[Any]]


def exact(value: Any) -> Fraction:
    """Return the very number that a document holds: a float is a dyadic, a text a fraction."""
    # Fraction would read "1e99999999" too, and take for ever
    if isinstance(value, str) and not _FRACTION.fullmatch(value):
        raise ValueError(f"{value[:20]!r} is no number")
    return Fraction(value)


def written(value: Any, digits: int = 12) -> str:
    """Return a number in print: a decimal or a fraction is meant exactly, ≈ tells the others."""
    number = exact(value)
    try:
        near = float(number)
    except OverflowError:
        near = math.inf
    # the shortest text that reads as this very number; ≈ only where none is short
    if number == near:
        if number.denominator == 1 and abs(number) < 10**15:
            return str(number)
        short = min(repr(near), f"{near:.12g}", key=len)
        if float(short) == near:
            return short
    elif len(str(number)) <= 16:
        return str(number)
    with localcontext(prec=digits):
        return f"≈ {(Decimal(number.numerator) / number.denominator).normalize():g}"


def ranged(values: Iterable[Any], digits: int = 12) -> str:
    """Return the least and the greatest of some numbers in print."""
    low, high = (written(end, digits) for end in extremes(values))
    return low if low == high else f"{low} to {high}"


def extremes(values: Iterable[Any]) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest of some numbers."""
    # exact comparison of millions of numbers would take minutes; floats compare exactly as they are
    entries = set(values)
    numbers = [
        value for value in entries if not isinstance(value, str)
    ]  # floats are compared as such
    some = [min(numbers), max(numbers)] if numbers else []
    exactly = [exact(value) for value in (*some, *(v for v in entries if isinstance(v, str)))]
    return min(exactly), max(exactly)


def quoted(name: Any) -> str:
    """Return a name as a label, without anything that a terminal would obey."""
    # a name could move the cursor, or end its own quotes and go on as if it were a verdict
    text = str(name)
    cut = text[:_LONGEST]
    shown = "".join(
        c if c.isprintable() and c not in '"\\' else c.encode("unicode_escape").decode()
        for c in cut
    ).replace('"', '\\"')
    return f'"{shown}"' + (f"… ({len(text):,} characters)" if cut != text else "")


def names_of(names: Sequence[Any]) -> str:
    """Return labels in a list, the first three and the last if there are many."""
    shown = [quoted(name) for name in names]
    if len(shown) <= 4:
        return ", ".join(shown)
    return f"{', '.join(shown[:3])}, … {shown[-1]}"


def many(count: int, what: str) -> str:
    """Return a count with what is counted, in the plural unless it is one."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def radius_of(radius: Any) -> str:
    """Return a radius in print, nothing if it is 0."""
    return f" (± {float(exact(radius)):.2g})" if radius and exact(radius) else ""


def units_of(document: Mapping[str, Any]) -> str:
    """Return what a value of the objective is measured in."""
    program = document["program"]
    if "objective" not in program:  # a closed form's, which is information
        return str(program["units"])
    objective = next(iter(parts_of(program["objective"]).values()))
    weights = dict(objective["weights"])
    views = [program["views"][view] for view, w in weights.items() if positive(w)]
    kinds = {view["measure"]["kind"] for view in views if "measure" in view}
    costly = objective["cost"] is not None
    if views and (costly or len(kinds) > 1):
        return "units of the objective"
    if kinds - INFORMATION:
        return "units of the measure"
    if views:
        return str(program["units"])
    return "units of distortion" if costly else "of an empty objective"


def positive(weight: Any) -> bool:
    """Tell whether a weight is positive, for some output at least."""
    return any(exact(w) > 0 for w in (weight if isinstance(weight, list) else [weight]))


def minimised(text: str, matters: bool, unit: str, infeasible: bool, how: str = "minimised") -> str:
    """Say what is minimised, or maximised, and loudly if nothing is."""
    if text and matters:
        return f"{how}: {text}, in {unit}"
    empty = f"{text} is the same for every release" if text else "the objective is empty"
    proved = "" if infeasible else ", so this proves only that a release exists"
    return f"{how}: NOTHING: {empty}{proved}"


def measured(data: Mapping[str, Any]) -> str:
    """Say in what measure of leakage a view is."""
    kind = data["kind"]
    if kind == "mutual information":
        return "information about"
    if kind == "hockey-stick":
        gamma = exact(data["gamma"])
        name = f"hockey-stick divergence (γ = {written(gamma)})"
        return "total variation of" if gamma == 1 else f"{name} of"
    if kind == "relative entropy":
        return "relative entropy of label 0's outputs from label 1's, times the mass of that, of"
    if kind == "transport":
        distances = ranged(c for row in data["ground"] for c in row)
        return f"earth mover's distance (ground distances {distances}) of"
    if kind == "gain":
        gains, count = ranged(c for row in data["matrix"] for c in row), len(data["matrix"])
        return f"gain ({gains}) from the best of {count:,} guess{'' if count == 1 else 'es'} about"
    if kind == "Sibson":
        return f"Sibson's measure of order {written(data['order'])} of"
    if kind == "power divergence":
        return f"power divergence of order {written(data['order'])} of"
    if kind == "f-information":
        return f"f-information with {_function(data['terms'])}, less f(1), of"
    if kind == "maximal leakage":
        return "sum of the greatest p(· | v) of"
    return f"{kind} divergence of"


def _function(terms: Any) -> str:
    """Return f(t) of its terms in print."""
    parts = []
    for row in terms:
        (u, v), (c, a) = (_affine(*row[i : i + 2]) for i in (2, 4)), map(exact, row[:2])
        if a == 1:
            parts.append(f"+ {written(c)} ({u}) log(({u})/({v}))")
        else:
            power = f"|{u}|^{written(a)} ({v})^({written(1 - a)})"
            parts.append(f"{'+' if a > 1 else '-'} {written(c)} {power}")
    return f"f(t) = {' '.join(parts).removeprefix('+ ')}"


def _affine(slope: Any, constant: Any) -> str:
    """Return slope t + constant in print."""
    a, b = exact(slope), exact(constant)
    if not a:
        return written(b)
    text = "t" if a == 1 else f"{written(a)} t"
    return f"{text} {'-' if b < 0 else '+'} {written(abs(b))}" if b else text


def information_terms(
    weights: Mapping[str, Any],
    sizes: Mapping[str, int],
    what: str,
    measures: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the informations of a term, those of one weight and measure together."""
    terms = []

    def alike(pair: tuple[str, Any]) -> tuple[str, str]:
        return _weight(pair[1]), (measures or {}).get(pair[0], "information about")

    # side information makes a view for each of its values: hundreds, said in one line
    for (weight, of), group in groupby(sorted(dict(weights).items(), key=alike), key=alike):
        names = [name for name, _ in group]
        size = sorted({sizes[name] for name in names})
        count = many(size[0], what) if len(size) == 1 else f"{size[0]:,} to {size[-1]:,} {what}s"
        if len(names) == 1:
            terms.append(f"{weight} × {of} {quoted(names[0])} ({count})")
        else:
            each = f"each of {names_of(names)}"
            terms.append(f"{weight} × {of} {each} ({len(names):,} views of {count})")
    return terms


def _weight(weight: Any) -> str:
    return f"({ranged(weight)})" if isinstance(weight, list) else written(weight)


def constant(pair: Sequence[Any]) -> list[str]:
    """Return the constant of a term in print, nothing if it is 0."""
    value, radius = pair
    if not exact(value) and not exact(radius):
        return []
    return [f"the constant {written(value)}{radius_of(radius)}"]


def together(rows: Iterable[tuple[str, str, str, list[Any]]]) -> list[str]:
    """Return rows (name, left, right, bounds), those alike but for their bounds in one line."""
    lines = []
    for (left, right), group in groupby(rows, key=lambda row: row[1:3]):
        members = list(group)
        if len(members) < 3:
            members_of = [(quoted(name), bounds) for name, _, _, bounds in members]
        else:
            label = f"each of {names_of([row[0] for row in members])} ({len(members):,} rows)"
            members_of = [(label, [bound for row in members for bound in row[3]])]
        for name, bounds in members_of:
            lines.append(f"subject to {name}: {left} {right.format(ranged(bounds))}")
    return lines


def used_views(program: Mapping[str, Any]) -> set[str]:
    """Return the views of which the objective or a row has some information."""
    objectives = parts_of(program["objective"]).values()
    terms = [*objectives, *(row["term"] for row in program["rows"].values())]
    return {view for term in terms for view in term["weights"]}
