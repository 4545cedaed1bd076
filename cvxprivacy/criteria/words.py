"""What criteria ask for, in the words of one who has to sign for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.postrandomisation import (
    ForbiddenMoves,
    KeepProbability,
    MarginalDistance,
    PreserveMarginal,
    PreserveMean,
)
from cvxprivacy.criteria.privacy import (
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    LeakageCap,
    LocalPrivacy,
    MaximalLeakage,
    PerfectPrivacy,
    PerLetter,
    PointwiseMaximalLeakage,
    TCloseness,
)

__all__ = ["PER_LETTER", "Said", "in_words"]

# Criteria that speak of each released letter and of the law of W there: a table can break them.
PER_LETTER = (
    *(DeltaDisclosure, KAnonymity, LDiversity, PerLetter, PerfectPrivacy),
    *(PointwiseMaximalLeakage, TCloseness),
)


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


def in_words(criterion: Criterion, *, w: str = "W", x: str = "X", units: str = "bits") -> Said:
    """Return a criterion in words.

    Parameters
    ----------
    w, x : str
        What the confidential attribute and the key are called.
    units : {"bits", "nats"}
        Of information.

    Examples
    --------
    >>> in_words(KAnonymity(5)).asks
    'every released group hides its records among 5'
    """
    value = criterion.value
    number = "" if value is None else f"{float(value):g}"
    known = _privacy(criterion, number, w, units) or _rules(criterion, number, x, units)
    return known or Said(f"{criterion!r} holds", repr(criterion))


def _privacy(criterion: Any, number: str, w: str, units: str) -> Said | None:
    """Return what a criterion asks for of the confidential attribute."""
    leakage: Any = getattr(criterion, "leakage", None)
    match criterion:
        case KAnonymity():
            said = f"every released group hides its records among {number}"
            return Said(said, "least group", "records", at_least=True)
        case LDiversity():
            said = f"in every released group {w} is as uncertain as {number} equally likely values"
            return Said(said, f"least diversity of {w}", "values", at_least=True)
        case TCloseness() if criterion.by_divergence:
            said = f"in no released group does the law of {w} diverge by more than {number} {units}"
            return Said(f"{said} from its law in the whole table", "greatest divergence", units)
        case TCloseness() | PerLetter():
            name, unit = leakage.name, units if leakage.informs else ""
            said = f"in no released group is the {name} above {number}"
            return Said(said, f"greatest {name}", unit)
        case DeltaDisclosure():
            said = f"no released group makes a value of {w} more than e^{number} times likelier"
            return Said(f"{said}, or unlikelier", "greatest log ratio", "nats")
        case PointwiseMaximalLeakage():
            said = f"no released group makes a value of {w} more than e^{number} times likelier"
            return Said(said, "greatest log ratio", "nats")
        case PerfectPrivacy():
            return Said(f"{w} is independent of what is released", "greatest divergence", units)
        case LeakageCap() if leakage is None or leakage.informs:
            said = f"on average the release tells at most {number} {units} about {w}"
            return Said(said, "information", units)
        case LeakageCap():
            said = f"the {leakage.name} is at most {number}: {leakage.meaning}"
            return Said(said, leakage.name)
    return None


def _rules(criterion: Any, number: str, x: str, units: str) -> Said | None:
    """Return what a criterion asks for of the randomisation itself."""
    match criterion:
        case LocalPrivacy():
            said = f"no released value is more than e^{number} times likelier from one {x}"
            return Said(f"{said} than from another", "greatest log ratio", "nats")
        case MaximalLeakage():
            said = f"the release tells no function of {x} with more than {number} {units}"
            return Said(said, f"maximal leakage of {x}", units)
        case KeepProbability():
            said = "every value stays as it is with at least the probability asked for"
            said = said if not number else f"every value stays with probability {number} at least"
            return Said(said, "least probability", at_least=True)
        case ForbiddenMoves():
            return Said("forbidden moves are not made", "forbidden moves")
        case PreserveMarginal():
            return Said(f"the expected counts of {x} are the original's", "marginal")
        case MarginalDistance():
            said = f"the law of what is released is within {number} of that of {x}"
            return Said(f"{said}, in total variation", "total variation")
        case PreserveMean():
            return Said("the expected mean is the original's", "mean")
    return None
