"""What criteria ask for, in the words of one who has to sign for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.privacy import (
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    PerfectPrivacy,
    PerLetter,
    PointwiseMaximalLeakage,
    TCloseness,
)
from cvxprivacy.programs.notation import in_place

__all__ = ["PER_LETTER", "Said", "in_words"]

# Criteria that speak of each released letter and of the law of W there: a table can break them.
PER_LETTER = (
    *(DeltaDisclosure, KAnonymity, LDiversity, PerLetter, PerfectPrivacy),
    *(PointwiseMaximalLeakage, TCloseness),
)
_RATIO = (
    "in every released group, the share of each value of {w} is within a factor e^{n} of its share "
    "in the whole table"
)
# What is asked, with {n} the number, {w} and {x} the columns, {how} what is measured and in which
# unit; what is bounded; its unit, where it is not that of a measure of leakage.
_WORDS = {
    "KAnonymity": (
        "every released group stands for at least {n} records", "least group", "records",
    ),
    "LDiversity": (
        "in every released group, {w} is as uncertain as {n} equally likely values, or more",
        "least diversity", "values",
    ),
    "TCloseness": (
        "in every released group, the distribution of {w} is within {n} of that in the whole table "
        "({how})", "greatest {name}", "",
    ),
    "DeltaDisclosure": (_RATIO, "greatest log ratio", "nats"),
    "LocalInformationPrivacy": (_RATIO, "greatest log ratio", "nats"),
    "PointwiseMaximalLeakage": (
        "in no released group is any value of {w} more than e^{n} times as frequent as in the "
        "whole table", "greatest log ratio", "nats",
    ),
    "PerfectPrivacy": ("the released columns tell nothing at all about {w}",
                       "greatest divergence", ""),
    "PerLetter": ("in every released group, {how} is at most {n}", "greatest {name}", ""),
    "LeakageCap": (
        "on average, the released columns tell at most {n} about {w} ({how})", "{name}", "",
    ),
    "LocalPrivacy": (
        "no record's own {x} makes any released value more than e^{n} times as probable as another "
        "record's would", "greatest log ratio", "nats",
    ),
    "MaximalLeakage": (
        "whatever function of {x} an intruder guesses, the logarithm of the factor by which the "
        "release helps is at most {n}", "maximal leakage", "",
    ),
    "KeepProbability": (
        "each record keeps its own value with probability at least {n}", "least probability", "",
    ),
    "ForbiddenMoves": ("no value is released as one that is forbidden for it", "moves", ""),
    "MarginalDistance": (
        "the shares of the released values differ from the original ones by at most {n} in all "
        "(total variation)", "total variation", "",
    ),
    "PreserveMarginal": (
        "the expected share of each released value is its original share", "shares", "",
    ),
    "PreserveMean": ("the expected mean is the original's", "mean", ""),
}  # fmt: skip
_AT_LEAST = ("KAnonymity", "LDiversity", "KeepProbability")


@dataclass(frozen=True)
class Said:
    """A criterion in words.

    Attributes
    ----------
    asks : str
        What it asks for, a sentence without its end.
    quantity, unit : str
        What it bounds, and in which unit; no unit for a pure number.
    at_least : bool
        Whether its number is the least that there may be, else the most.
    """

    asks: str
    quantity: str
    unit: str = ""
    at_least: bool = False


def in_words(
    criterion: Criterion, *, w: str = "W", x: str = "X", units: str = "bits", number: str = ""
) -> Said:
    """Return a criterion in words.

    Parameters
    ----------
    w, x : str
        What the confidential attribute and the key are called.
    units : {"bits", "nats"}
        Of information.
    number : str
        What its number is called; by default it is written.

    Examples
    --------
    >>> in_words(KAnonymity(5)).asks
    'every released group stands for at least 5 records'
    """
    kind, typed = type(criterion).__name__, _number(criterion)
    if kind not in _WORDS:
        said = in_place(repr(criterion), typed, number) if number and typed else repr(criterion)
        return Said(f"{said} holds", said)
    asks, quantity, unit = _WORDS[kind]
    measure: Any = getattr(criterion, "leakage", None)
    informs = measure is None or measure.informs
    name = "information" if kind == "LeakageCap" else "divergence"
    own = ("TCloseness", "PerLetter", "LeakageCap", "PerfectPrivacy")
    if kind == "MaximalLeakage" or (informs and kind in own):
        unit = units
    name = name if informs else measure.name
    names = {"n": number or typed, "w": w, "x": x, "name": name}
    names["how"] = f"{name}, in {units}" if informs else name
    return Said(asks.format(**names), quantity.format(**names), unit, kind in _AT_LEAST)


def _number(criterion: Criterion) -> str:
    """Return the number typed, if there is one."""
    value = getattr(criterion, "p", criterion.value)
    try:
        return "" if value is None else f"{float(value):g}"
    except (TypeError, ValueError):  # one for each letter
        return "its own"
