"""What was asked for, criteria with their sources, and the numbers of a dossier, rounded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cvxprivacy.text import cells

__all__ = ["INFINITE", "NOTHING", "asked", "definitions", "extended", "rounded"]

NOTHING = 1e-12  # in any unit: what two sums of floats may be apart
INFINITE = "infinite"  # which JSON has no number for


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Return a number to so many digits, None for what is no finite number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{float(value):.{digits}g}")


def extended(value: float, digits: int = 4) -> float | str | None:
    """Return a number to so many digits, or that it is infinite; None for none."""
    return INFINITE if math.isinf(value) else rounded(value, digits)


def asked(data: Mapping[str, Any], criteria: Iterable[Any], schema: Any) -> dict[str, Any]:
    """Return what a release was asked for, from the problem as it was typed.

    Parameters
    ----------
    data : mapping
        As :func:`cvxprivacy_sdc.statements.statement.problem_data` returns it.
    """
    distortion, leakage = data["distortion"], data.get("leakage")
    weights, prices = distortion.get("weights") or {}, distortion.get("suppress")
    prices = {} if prices is None else prices if isinstance(prices, Mapping) else {"": prices}
    names = {"w": cells(schema.sensitive), "x": cells(schema.key), "units": data["units"]}
    return {
        "budget": data.get("budget"), "units": data["units"],
        "leakage": "" if leakage is None else leakage["kind"],
        "prior": (data.get("prior") or "source") if "budget" in data else None,
        "attributes": [
            {"column": name, "kind": kind, "weight": float(weights.get(name, 1.0))}
            for name, kind in (distortion.get("attributes") or {}).items()
        ],
        "suppress": [{"column": name, "price": float(price)} for name, price in prices.items()],
        "criteria": [
            {"criterion": repr(rule), "asks": rule.in_words(**names).asks} for rule in criteria
        ],
    }  # fmt: skip


def definitions(criteria: Iterable[Any]) -> list[dict[str, str]]:
    """Return what criteria are, each in one sentence with its source."""
    return [
        {"term": type(c).__name__, "sentence": c.words.definition, "source": c.words.source}
        for c in {type(c): c for c in criteria}.values()
        if c.words is not None and c.words.definition
    ]
