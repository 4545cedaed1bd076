"""An audit in words: facts, conclusions, and the whole as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cvxprivacy.microdata.audit.findings import Findings, Verdict, implied_bounds
from cvxprivacy.microdata.audit.measured import RISK, Leaked, Measure
from cvxprivacy.microdata.audit.weighted import COUNTED
from cvxprivacy.model.one_symbol import equivalent_diversity
from cvxprivacy.sdc.risk.individual import ESTIMATE
from cvxprivacy.text import padded

COLUMNS = ("worst", "letters", "records", "average")


def shown(letter: Any) -> str:
    """Return a letter as people read it."""
    if isinstance(letter, tuple):
        return f"({', '.join(map(shown, letter))})"
    return "missing" if letter is None else _printable(str(letter))


def _printable(text: str) -> str:
    """Return text in which no character commands a terminal: those are escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def number(value: float) -> str:
    """Return a measure as people read it."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1e3 else f"{value:.4g}"


def _released(findings: Findings) -> str:
    return "I(W; X)" if findings.before is findings.after else "I(W; X̃)"


def facts(findings: Findings) -> dict[str, str]:
    """Say what the tables are."""
    source, before, after = findings.released, findings.before, findings.after
    law = findings.laws.released
    entropy = f"{law.entropy(units=findings.units):.4f} {findings.units}"
    words = {
        "records": f"{source.records:,}",
        "confidential": f"{source.names[0]}, {len(source.w)} values",
        "released": f"{source.names[1]}, {len(source.x):,} letters",
        **_weights(findings),
        "re-identified": _re_identified(findings),
        "H(W)": f"{entropy}; ℓ_max = {findings.greatest_diversity:.4g}",
    }
    bounds = implied_bounds(findings.criteria, 0.0, findings.units)
    if (t := bounds.get("t")) is not None:
        equivalent = equivalent_diversity(law.p_w, t, units=findings.units)
        words["ℓ_t"] = f"{equivalent:.4g} at t = {t:g}"
    if before is not after:
        words["I(W; X)"] = str(before)
    words[_released(findings)] = str(after)
    biased = findings.laws.original.biased or law.biased
    alike = (before.lower is None) == (after.lower is None)  # corrected alike
    if before is not after and before.corrected > 0 and alike and not biased:
        words["kept"] = f"{after.corrected / before.corrected:.1%} of I(W; X), both corrected"
    return words


def _weights(findings: Findings) -> dict[str, str]:
    """Say what records weigh, where they have survey weights."""
    law, column = findings.laws.released, findings.laws.weights
    if column is None:
        return {}
    persons = f"{law.joint.sum():,.0f} persons by {column}"
    return {"weights": f"{persons}; records weigh as {law.effective:,.0f} (Kish); {COUNTED}"}


def _re_identified(findings: Findings) -> str:
    """Say how many records are expected to be re-identified, and the greatest risk."""
    risk = findings.measures[RISK]
    model = ESTIMATE
    if findings.laws.weights is None:
        model = "1/k: too high where the table is a sample"
    expected = f"{findings.re_identified:.4g} records expected"
    many = "1 record" if risk.records == 1 else f"{risk.records:,} records"
    return f"{expected}, greatest risk {risk.worst:.4g} of {many}; {model}"


def conclusions(findings: Findings) -> list[tuple[str, str, str]]:
    """Return every condition: what it says, "holds", "BROKEN" or "seen", and by how much."""
    rows, released = [], _released(findings)
    for name, condition in findings.averages.items():
        value, bound = f"{condition.value:.4g}", f"{condition.bound:.4g}"
        if name != "I(W; X)":
            stands = "holds" if condition.holds else "BROKEN"
            rows.append((f"on average, {released} ≤ {name}", stands, f"{value}, at most {bound}"))
        elif condition.holds:
            words = f"{value}, not above the {bound} of {name}"
            rows.append((f"on average, {released}", "seen", words))
        else:
            words = f"{value}, more than the {bound} of {name}: sampling, or X̃ uses W"
            rows.append((f"on average, {released}", "seen", words))
    for verdict in findings.verdicts:
        rows.append((repr(verdict.criterion), *_standing(verdict, findings)))
    return rows


def _standing(verdict: Verdict, findings: Findings) -> tuple[str, str]:
    """Say how a criterion stands, and by how much."""
    value = "" if verdict.value is None else f", at {verdict.value:.4g}"
    if verdict.holds is None:
        return "open", "it cannot be decided on a table"
    if verdict.letters:
        some = ", ".join(shown(findings.letters[i]) for i in verdict.broken[:3])
        more = ", …" if verdict.letters > 3 else ""
        many = f"{verdict.letters:,} letters break" if verdict.letters > 1 else "1 letter breaks"
        return "BROKEN", f"{many} it, with {verdict.records:,} records: {some}{more}"
    if not verdict.holds:
        return "BROKEN", f"the table does not{value}"
    return "holds", "every letter satisfies it" if verdict.of_letters else f"the table does{value}"


def notes(findings: Findings) -> list[str]:
    """Return the notes, with those on the intervals."""
    both = {"I(W; X)": findings.before, _released(findings): findings.after}
    return [*findings.notes, *(f"{name}: {of.note}" for name, of in both.items() if of.note)]


def measured(findings: Findings) -> list[list[str]]:
    """Return the header and a row for each measure that is none of leakage."""
    others = [of for of in findings.measures.values() if not isinstance(of, Leaked)]
    return [["measure", *COLUMNS], *map(_row, others)]


def leaked(findings: Findings) -> list[list[str]]:
    """Return the header and a row for each measure of leakage: between nothing and everything."""
    compared = any(not math.isnan(of.original) for of in findings.leaks)
    ends = ["nothing", *(["original"] if compared else []), "everything"]
    rows = [[*_row(of), *(number(getattr(of, end)) for end in ends)] for of in findings.leaks]
    return [["leakage", *COLUMNS, *ends], *rows]


def _row(of: Measure) -> list[str]:
    """Return a measure's title, its worst, how many letters and records are, and its average."""
    counts = (f"{of.letters:,}", f"{of.records:,}")
    return [of.title, number(of.worst), *counts, number(of.average)]


def meanings(findings: Findings) -> dict[str, str]:
    """Say what is in the rows and columns of leakage."""
    w = findings.released.names[0]
    return {
        **{of.title: of.leakage.meaning for of in findings.leaks},
        "average": "what leaks in all",
        "nothing, everything": f"what would if nothing were released, and if {w} itself were",
    }


def text(findings: Findings) -> str:
    """Return the audit as lines for a terminal."""
    lines = ["audit of a released table"]
    lines += [f"  {padded(name, 13)}  {words}" for name, words in facts(findings).items()]
    for rows in (measured(findings), leaked(findings)):
        lines += ["", *(f"  {name:<37} {_in_columns(cells)}" for name, *cells in rows)]
    lines += ["", *(f"  {name:<37} {words}" for name, words in meanings(findings).items())]
    conditions = conclusions(findings)
    lines += [""] * bool(conditions)
    lines += [f"  {stands:<6}  {name}: {words}" for name, stands, words in conditions]
    lines += [f"  note: {note}" for note in notes(findings)]
    return "\n".join(map(_printable, lines))


def _in_columns(cells: Sequence[str]) -> str:
    widths = (9, 8, 8, 9, *[10] * (len(cells) - len(COLUMNS)))
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
