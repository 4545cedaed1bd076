"""Beside pycanon: what a table reveals, of random tables."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd
from pycanon import anonymity

import cvxprivacy_sdc as sdc

from . import judge
from .cases import Table, tables
from .tally import Tally

KEY, W = ["a", "b"], ["w"]
LINES = {
    "k": "whole numbers",
    "α of (α, k)": "fractions",
    "distinct ℓ": "whole numbers",
    "entropy ℓ, its whole part": "Nᴺ ≥ ℓᴺ ∏ nⁿ, whole numbers",
    "recursive (c, ℓ), least whole c": "r₁ < c Σ, whole numbers",
    "basic β": "fractions",
    "enhanced β": "gain ≤ min(β, −ln p), in balls",
    "δ of the values that occur": "definition in balls",
    "δ-disclosure": "definition in balls",
    "t, equal distances": "fractions",
    "t, W a number": "fractions",
}


def frame(table: Table, *, numbers: bool) -> pd.DataFrame:
    """Return a table with W as numbers, or as letters of the same order."""
    w = [value if numbers else "abcdefgh"[value] for value in table.w]
    a, b = zip(*table.keys, strict=True)
    return pd.DataFrame({"a": a, "b": b, "w": w})


def tallies() -> Iterator[Tally]:
    """Yield the lines of the table."""
    lines = {name: Tally(name, how) for name, how in LINES.items()}
    for table in tables(21, 180):
        for name, numbers in compared(table).items():
            lines[name].add(*numbers, (table.classes, table.whole))
    yield from lines.values()


def compared(table: Table) -> dict[str, tuple[float, float, float]]:
    """Return what is said here, what there, and the truth, of each line."""
    text, numbered = frame(table, numbers=False), frame(table, numbers=True)
    classes, whole = table.classes, table.whole
    audit = sdc.audit(text, key=KEY, sensitive="w")
    ours = {name: measure.worst for name, measure in audit.measures.items()}
    ordered = sdc.audit(numbered, key=KEY, sensitive="w").measures["ordered distance"].worst
    distinct = min(len(of) for of in classes)
    delta = anonymity.delta_disclosure(text, KEY, W)
    lines = {
        "k": (
            ours["k"], anonymity.k_anonymity(text, KEY), min(sum(of.values()) for of in classes)
        ),
        "α of (α, k)": (
            audit.measure("alpha").worst,
            anonymity.alpha_k_anonymity(text, KEY, W)[0],
            max(max(of.values()) / sum(of.values()) for of in classes),
        ),
        "distinct ℓ": (ours["distinct l"], anonymity.l_diversity(text, KEY, W), distinct),
        "entropy ℓ, its whole part": (
            math.floor(ours["entropy l"] + 1e-9),
            anonymity.entropy_l_diversity(text, KEY, W),
            judge.entropy_diversity(classes),
        ),
        "basic β": (
            ours["beta"],
            anonymity.basic_beta_likeness(text, KEY, W),
            judge.basic_beta(classes, whole),
        ),
        "enhanced β": (
            ours["enhanced beta"],
            anonymity.enhanced_beta_likeness(text, KEY, W),
            judge.enhanced_beta(classes, whole),
        ),
        "δ of the values that occur": (
            ours["delta observed"], delta, judge.delta(classes, whole, missed=False)
        ),
        "δ-disclosure": (ours["delta"], delta, judge.delta(classes, whole, missed=True)),
        "t, equal distances": (
            ours["equal distance"],
            anonymity.t_closeness(text, KEY, W),
            judge.closeness(classes, whole, ordered=False),
        ),
        "t, W a number": (
            ordered,
            anonymity.t_closeness(numbered, KEY, W),
            judge.closeness(classes, whole, ordered=True),
        ),
    }  # fmt: skip
    if distinct > 1:
        lines["recursive (c, ℓ), least whole c"] = (
            math.floor(audit.measure(f"c at l={distinct}").worst + 1e-9) + 1,
            anonymity.recursive_c_l_diversity(text, KEY, W)[0],
            judge.recursive_c(classes, distinct),
        )
    return lines
