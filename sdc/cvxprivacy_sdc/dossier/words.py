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
    "glossary",
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
_BEZZI = (
    "M. Bezzi, An information theoretic approach for privacy metrics, Transactions on Data Privacy "
    "3 (2010)"
)
_REBOLLO = (
    "D. Rebollo-Monedero, J. Forné and J. Domingo-Ferrer, From t-closeness-like privacy to "
    "postrandomization via information theory, IEEE TKDE 22(11) (2010)"
)
_MATEO = (
    "J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebé, Probabilistic information loss measures in "
    "confidentiality protection of continuous microdata, DMKD 11 (2005)"
)
_COVER = "T. M. Cover and J. A. Thomas, Elements of Information Theory, Wiley (2006)"
_PRAM = "J. M. Gouweleeuw et al., Post randomisation for statistical disclosure control, J. Official Statistics 14 (1998)"  # noqa: E501
_MILLER = "G. A. Miller, Note on the bias of information estimates (1955)"
_BOYD = "S. Boyd and L. Vandenberghe, Convex Optimization, Cambridge (2004), ch. 5"

_ALWAYS = ["confidential attribute", "key", "information", "divergence", "bias"]
_TERMS: dict[str, tuple[str, str]] = {
    "confidential attribute": (
        "W: what nobody is to learn about a person; its values are named nowhere in this report.",
        _REBOLLO,
    ),
    "key": (
        "X: the columns by which an intruder may know a person, released as X̂; a released cell, or "
        "group, is one combination of their values.",
        _REBOLLO,
    ),
    "information": (
        "I(W; X̂): by how much knowing X̂ lowers the uncertainty about W on average; in bits, 1 "
        "bit being the answer to one fair yes-or-no question; 0 if X̂ tells nothing.",
        _COVER,
    ),
    "divergence": (
        "D(p(w | x̂) ‖ p(w)): how far the distribution of W in a group is from that in the whole "
        "table; its average over records is I(W; X̂).",
        _BEZZI,
    ),
    "bias": (
        "By how much information counted from a sample exceeds, on average, that of the law behind "
        "the sample.",
        _MILLER,
    ),
    "distortion": (
        "E d(X, X̂): the expected damage per record, by the distance d stated above.",
        _REBOLLO,
    ),
    "law and drawn table": (
        "The law is what the randomisation makes on average over all tables that it could draw: "
        "proofs are of it. The drawn table is the one file that came out: it is counted.",
        _PRAM,
    ),
    "proved": (
        "Established by interval arithmetic from the proof file, whatever the solver said; the "
        "enclosure holds the least value that any release of this kind attains.",
        _BOYD,
    ),
    "price": (
        "The derivative of the optimum in a number that was typed: what the next small step costs.",
        _BOYD,
    ),
    "loss": (
        "IL1 to IL5 compare values, means, variances, covariances and correlations; the "
        "probabilistic losses PIL are the probability that sampling alone would do less.",
        _MATEO,
    ),
    "categorical": (
        "Of a categorical column: the share of records changed; what the released category leaves "
        "open of the original, H(X | X̂)/H(X); and the total variation of its counts.",
        _MATEO,
    ),
}


_GLOSSARY = {
    "Beyond it by chance": "One drawn table is a little more than was asked on average over all "
    "tables that might have been drawn.",
    "Change per record": "What a changed record counts by the rule under “What was asked”, on "
    "average over all records.",
    "Confidential column": "What nobody is to learn about a person; its values are not named in "
    "this report.",
    "Copied column": "One that is neither confidential nor key: it is released as it is.",
    "Difference from the whole table": "How unlike all records together the records of a group are "
    "in the confidential column: 0 where the shares of its values are those of the whole table. "
    "Statisticians call it divergence.",
    "Group": "All records that are released with the same key.",
    "House": "The office that holds the original table and answers for it.",
    "Key": "The columns by which somebody may know a person from elsewhere; they are what is "
    "changed.",
    "Proved": "Established by a computation in which every rounding is accounted for, and which "
    "anybody can repeat; all else is counted, or called an estimate.",
    "Randomisation": "The rule by which chance decides which records get another key. What is "
    "proved is proved of the rule; what is counted is counted in the one table that is released.",
    "Record": "One row of the table, most often one person.",
    "Seed": "The number from which the chances were drawn: who knows it can undo the release.",
    "SHA-256": "A fingerprint of a file: change one sign of it, and it is another. A keyed "
    "one can be compared only in the house.",
}
_OF_NOISE = {
    "Jointly Gaussian": "Bell-shaped, each column by itself and every sum of them; incomes, "
    "turnovers and ages hardly ever are.",
    "Variance": "How widely the values of a column are spread: the mean square of how far they are "
    "from their average.",
}
_UNITS = {
    "bits": ("Bit", "The unit of what is told: 1 bit is what the answer to one fair yes-or-no "
             "question tells, and 0 is nothing."),
    "nats": ("Nat", "The unit of what is told: 1 nat is 1.44 bits, and 1 bit is what the answer to "
             "one fair yes-or-no question tells."),
}  # fmt: skip


def glossary(units: str, *, noise: bool = False) -> list[dict[str, str]]:
    """Return the terms that a board meets, each in a sentence.

    Parameters
    ----------
    units : {"bits", "nats"}
        Of information.
    noise : bool
        Whether numbers are released as numbers.
    """
    terms = sorted({**_GLOSSARY, **dict([_UNITS[units]]), **(_OF_NOISE if noise else {})}.items())
    return [{"term": term, "sentence": sentence} for term, sentence in terms]


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


def definitions(terms: Iterable[str], criteria: Iterable[Any]) -> list[dict[str, str]]:
    """Return the terms and criteria in use, each in one sentence with its source."""
    used = {*_ALWAYS, *terms}
    entries = {term: entry for term, entry in _TERMS.items() if term in used}
    for rule in criteria:
        if rule.words is not None and rule.words.definition:
            entries[type(rule).__name__] = rule.words.definition, rule.words.source
    return [
        {"term": term, "sentence": sentence, "source": source}
        for term, (sentence, source) in entries.items()
    ]
