"""Plain words of a dossier: its numbers, what was asked, its terms and their sources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cvxprivacy.text import cells

__all__ = [
    "INFINITE",
    "against",
    "asked",
    "definitions",
    "extended",
    "quantity",
    "rounded",
]

INFINITE = "infinite"  # which JSON has no number for

KNOWS = "Who knows with which chances records are changed"
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


def against(
    schema: Any, encoder: str = "", *, sequel: bool = False, balanced: bool = False,
    designed: bool = False, dropped: Sequence[str] = (),
) -> list[dict[str, str]]:  # fmt: skip
    """Say against whom a released table protects, and against whom it does not.

    Parameters
    ----------
    schema : TableSchema
    encoder : str
        What the randomisation saw, such as "wx"; "" where the table is only audited.
    sequel : bool
        Whether what it tells together with earlier releases was designed.
    balanced : bool
        Whether records were drawn together.
    designed : bool
        Whether the table's counts were designed, and not drawn.
    dropped : sequence of str
        Columns that are not in the released table.
    """
    w, x = cells(schema.sensitive), cells(schema.key)
    sees = f" It saw {w} too: a released {x} is then chosen by what it is to hide." * (
        "w" in encoder
    )
    beyond = (
        f" The randomisation saw {w}: who has both the true {x} and the released {x} of a person "
        f"may learn more than from the true {x} alone: the first page says how much."
    ) * ("w" in encoder)
    beside = [name for name in schema.sensitive if name not in dropped]
    recognised = (
        f"By a column that is copied, or by its place, such a reader reads {cells(beside)}, which "
        "is copied as it is: nothing here protects against that."
        if beside
        else "By a column that is copied, or by its place, such a reader reads the released "
        f"{x} of that person, and all that is copied; {w} is not in the released table."
    )
    people = {
        f"Who sees a released {x}, and nothing else of the record": "This is what the figures "
        f"are of: how much it tells about {w}, on average or in the worst group, as stated.",
        f"Who knows a person’s true {x}, and not which record is theirs": "Such a reader can "
        f"estimate from the whole table how {w} is distributed among people of that {x}, as from "
        "any statistic of the original: a release limits what a record tells about its person, "
        f"not what the table tells about people.{beyond}",
        "Who recognises the record": recognised,
        KNOWS: "The chances of every change are no secret, and every figure holds for who has "
        f"them; the seed of the draws is one.{sees}",
        "Who reads this report, and knows all records but one or two": "Its figures of the "
        "original let such a reader try what the others may be: it is for the board, not for "
        "publication.",
        "Who has two releases of the same records": "Nothing is proved of a pair: two independent "
        "draws tell more than either, and releases of other columns add to what these tell.",
    }
    if sequel:
        people["Who has two releases of the same records"] = (
            "The figures are of this release together with the earlier ones that are named, for "
            "records that are in all of them; of any further release nothing is proved."
        )
    if balanced:
        people[f"Who knows all other records of the same {w} and {x}, and what they became"] = (
            "Knows what the last one became: records were drawn together, so that every count is "
            "what is expected of it, rounded up or down, before any groups are merged. The "
            "figures are of one record against the table."
        )
    if designed:
        people[KNOWS] = (
            f"How many records became what was fixed by looking at {w}: keep it in the house. What "
            f"is published of it is the table.{sees}"
        )
        people[f"Who knows all other records of the same {w} and {x}, and what they became"] = (
            "Knows what the last one became: the counts are certain, and only which records of a "
            "group move is chance. The figures are of one record against the table."
        )
        if "w" not in encoder:
            people["Who knows how the table was made"] = (
                f"Each count is that of a randomisation that sees {x} alone, rounded up or down "
                f"with {w} in view; chance picked among the roundings that keep the criteria. That "
                "a group would otherwise have broken one is not told by which was picked."
            )
    return [{"who": who, "words": words} for who, words in people.items()]


def definitions(criteria: Iterable[Any]) -> list[dict[str, str]]:
    """Return what criteria are, each in one sentence with its source."""
    return [
        {"term": type(c).__name__, "sentence": c.words.definition, "source": c.words.source}
        for c in {type(c): c for c in criteria}.values()
        if c.words is not None and c.words.definition
    ]
