"""Plain words of a dossier: its numbers, what was asked, its terms and their sources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cvxprivacy.text import cells

__all__ = ["INFINITE", "asked", "definitions", "extended", "quantity", "rounded"]

INFINITE = "infinite"  # which JSON has no number for

_DISTORTIONS = {
    "hamming": "1 if it is changed, else 0",
    "ordinal": "difference in rank, as a share of the greatest",
    "absolute_error": "absolute difference",
    "squared_error": "squared difference",
}


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Return a number to so many digits, None for what is no finite number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{float(value):.{digits}g}")


def extended(value: float, digits: int = 4) -> float | str | None:
    """Return a number to so many digits, or that it is infinite; None for none."""
    return INFINITE if math.isinf(value) else rounded(value, digits)


def quantity(name: str) -> str:
    """Say what a term of a solution is."""
    descriptions = {
        "risk": "leakage of the channel, on the law that the proof is of",
        "information": "information of the channel, on the law that the proof is of",
        "informed_risk": "what the key and the release together tell who knows the key",
        "distortion": "expected distortion, on the same law",
    }
    return descriptions.get(name, f"expected {name}" if name.startswith("distortion") else name)


def asked(data: Mapping[str, Any], criteria: Iterable[Any], schema: Any) -> list[str]:
    """Say what a release was asked for, from the problem as it was typed.

    Parameters
    ----------
    data : mapping
        As :func:`cvxprivacy_sdc.statements.statement.problem_data` returns it.
    """
    w, x = cells(schema.sensitive), cells(schema.key)
    units, measure = data["units"], data.get("leakage")
    if "budget" in data:
        minimised, whatever = f"information, in {units}" if measure is None else measure["kind"], ""
        if data.get("prior") == "any":
            whatever = ", whatever is believed of it beforehand"
        they = "they tell" if len(schema.key) > 1 else "it tells"
        lines = [
            f"Release {x} so that {they} as little as possible about {w}{whatever} ({minimised}).",
            f"Mean change per record: at most {data['budget']:g}, counted as follows.",
        ]
    else:
        lines = [f"Change {x} as little as can be for what is asked of the release below."]
    kinds, weights = data["distortion"].get("attributes"), data["distortion"].get("weights", {})
    if kinds:
        parts = [
            f"{name} ({_DISTORTIONS.get(kind, kind.replace('_', ' '))})"
            + (f", weight {weights[name]:g}" if weights.get(name, 1.0) != 1.0 else "")
            for name, kind in kinds.items()
        ]
        of = "the sum over " if len(parts) > 1 else ""
        lines.append(f"Change of a record: {of}{'; '.join(parts)}.")
    else:
        lines.append(f"Change of a record: 1 where its {x} is another one, 0 where it is kept.")
    suppress = data["distortion"].get("suppress")
    if isinstance(suppress, Mapping):
        prices = "; ".join(f"{name}, at {price:g}" for name, price in suppress.items())
        lines.append(f"Values may be withheld instead: {prices} each.")
    elif suppress is not None:
        lines.append(f"Values may be withheld instead, at {suppress:g} each.")
    names = {"w": w, "x": x, "units": units}
    lines += [f"{rule!r}: {rule.in_words(**names).asks}." for rule in criteria]
    return lines


def definitions(criteria: Iterable[Any]) -> list[dict[str, str]]:
    """Return what criteria are, each in one sentence with its source."""
    return [
        {"term": type(c).__name__, "sentence": c.words.definition, "source": c.words.source}
        for c in {type(c): c for c in criteria}.values()
        if c.words is not None and c.words.definition
    ]
