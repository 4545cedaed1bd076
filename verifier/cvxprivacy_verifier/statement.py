"""What a proof is a proof of, in plain words.

A document that verifies proves *its own* program, which need not be the program that a reader has
in mind.  :func:`stated` says which one it is, from the document's data alone.  The names in a
document may lie: they stand in quotes, as labels, and beside them stands what the data say.
Needs the standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .channel_statement import channel_words
from .fields import MAXIMISED
from .wording import (
    MALFORMED,
    MOST_VIEWS,
    Table,
    constant,
    exact,
    information_terms,
    many,
    minimised,
    positive,
    quoted,
    radius_of,
    ranged,
    together,
    units_of,
    used_views,
    written,
)

__all__ = ["for_console", "headline", "reported", "stated"]


def headline(document: Mapping[str, Any]) -> str:
    """Return status, enclosure and unit of a verified document, in one line."""
    claim = document["claim"]
    if claim["status"] == "infeasible":
        return "infeasible"
    interval = f"[{claim['lower']}, {claim['upper']}]"
    return f"{claim['status']}, value in {interval} ({units_of(document)})"


def stated(document: Mapping[str, Any]) -> list[str]:
    """Return what a verified document proves, line by line.

    Parameters
    ----------
    document : mapping
        A proof that :func:`cvxprivacy_verifier.verify.disagreements` has nothing against.
    """
    # a verified document may still be malformed where no proof looks: then nothing is said of it
    try:
        program, claim = document["program"], document["claim"]
        words = WORDS.get(program["kind"], channel_words)
        greatest = program["kind"] in MAXIMISED
        lines = [
            f"proved: {_proved(claim, greatest)}",
            *words(program, claim["status"] == "infeasible"),
        ]
    except MALFORMED as error:
        text = f"{type(error).__name__}: {error}"[:200]
        return [f"WHAT IS PROVED CANNOT BE TOLD, so rely on nothing here ({quoted(text)})"]
    # the table's record is no part of the proof, and may not keep it from being told
    try:
        lines += _table(document.get("table"))
    except MALFORMED:
        lines.append("table: the record of how it was counted is malformed")
    return [*lines, "names in quotes are the file's own labels; all else is read from its data"]


def reported(path: str, document: Mapping[str, Any], encoding: str | None = None) -> str:
    """Return all that is to be said of a verified document, for a console of this encoding."""
    text = "\n  ".join([f"{path}: verified, {headline(document)}", *stated(document)])
    return for_console(text, encoding)


def for_console(text: str, encoding: str | None) -> str:
    """Return a text with escapes for what a console of this encoding cannot show."""
    return text.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


def _proved(claim: Mapping[str, Any], greatest: bool) -> str:
    """Return the status in words."""
    lower, upper = float(claim["lower"]), float(claim["upper"])
    least, less, proved, attained, side = "least", "less", "lower", "upper", "below"
    if greatest:
        lower, upper = -upper, -lower
        least, less, proved, attained, side = "greatest", "more", "upper", "lower", "above"
    if claim["status"] == "infeasible":
        return "no release satisfies these rows"
    if claim["status"] == "certified":
        return f"the {least} value that any release attains lies in this interval"
    if claim["status"] == "loose":
        return f"the {least} value that any release attains lies in this interval, which is wide"
    if math.isfinite(upper):
        text = f"some release attains the {attained} end"
        return f"{text}; nothing about the {least} value from {side}"
    if math.isfinite(lower):
        return f"no release attains {less} than the {proved} end; not that there is any release"
    return f"nothing about the {least} value"


# ---- covariance programs, and rate under Hamming distortion --------------------------------


def _covariance(program: Mapping[str, Any], infeasible: bool) -> list[str]:
    gamma, encoded, side = (program[k] for k in ("covariance", "encoded", "given"))
    views, units, objective = program["views"], program["units"], program["objective"]
    sizes = {name: len(view["of"]) for name, view in views.items()}

    def words(term: Mapping[str, Any]) -> str:
        parts = information_terms(term["weights"], sizes, "variable")
        if term["cost"] is not None:
            parts.append(f"trace of C Sigma (C: {_matrix(term['cost'])})")
        return " + ".join([*parts, *constant(term["constant"])])

    rows = []
    for name, row in program["rows"].items():
        unit = f" {units}" if row["term"]["weights"] and row["term"]["cost"] is None else ""
        right = f"{row['sense']} {{}}{radius_of(row['radius'])}{unit}"
        rows.append((name, words(row["term"]) or "nothing", right, [row["bound"]]))
    # an objective that no release changes is certified at once: it is told apart, loudly
    costs = [] if objective["cost"] is None else [c for row in objective["cost"] for c in row]
    matters = any(map(positive, objective["weights"].values())) or any(map(exact, costs))
    unit = units_of({"program": program})
    lines = [
        minimised(words(objective), matters, unit, infeasible),
        f"over: all error covariances 0 <= Sigma <= the covariance of {_variables(encoded)}"
        + (f" given {_variables(side)}" if side else ""),
        f"law: {many(len(gamma), 'jointly Gaussian variable')}, of variance "
        f"{ranged(gamma[i][i] for i in range(len(gamma)))}",
        *together(rows),
    ]
    for name, cap in program["caps"].items():
        lines.append(f"subject to {quoted(name)}: Sigma <= M (M: {_matrix(cap)})")
    for name in [name for name in views if name in used_views(program)][:MOST_VIEWS]:
        beyond = views[name]["reference"] == "conditional"
        also = f", {'beyond' if beyond else 'counting'} what those given tell" if side else ""
        lines.append(f"where {quoted(name)} is {_variables(views[name]['of'])}{also}")
    return lines


def _variables(places: Sequence[int]) -> str:
    if len(places) > 6:
        return f"{len(places):,} variables"
    return f"variable{'s' * (len(places) != 1)} {', '.join(map(str, places))}"


def _matrix(entries: Table) -> str:
    """Say what a symmetric matrix is like."""
    size, diagonal = len(entries), [row[i] for i, row in enumerate(entries)]
    off = {x for i, row in enumerate(entries) for j, x in enumerate(row) if i != j}
    if any(map(exact, off)):
        return f"{size} × {size}, of entries {ranged([*diagonal, *off], 6)}"
    if len(set(map(exact, diagonal))) > 1:
        return f"diagonal, of entries {ranged(diagonal, 6)}"
    scale = written(diagonal[0])
    return {"0": "zero", "1": "identity"}.get(scale, f"{scale} × identity")


def _hamming(program: Mapping[str, Any], infeasible: bool) -> list[str]:
    letters = many(sum(mass > 0 for mass in program["law"]), "letter")
    return [
        f"minimised: rate I(X; X^) of {letters}, in {program['units']}",
        "over: all channels from X to X^, the same letters",
        f"subject to: Pr(X != X^) <= {written(program['budget'])}",
    ]


def _water(program: Mapping[str, Any], infeasible: bool) -> list[str]:
    variances, gains = program["variances"], program["gains"]
    size = many(len(variances), "independent Gaussian variable")
    about = "X" if gains is None else "W"
    lines = [
        f"minimised: information I({about}; X^), in {program['units']}",
        "over: all error covariances 0 <= Sigma <= the covariance of X",
        f"law: X of {size}, of variance {ranged(variances)}",
        f"subject to: trace of Sigma <= {written(program['budget'])}",
    ]
    if gains is not None:
        lines.insert(3, f"W: each with independent noise of variance 1/gain, gain {ranged(gains)}")
    return lines


def _spectral(program: Mapping[str, Any], infeasible: bool) -> list[str]:
    gamma = program["covariance"]
    return [
        f"minimised: information I(X; X^), in {program['units']}",
        "over: all error covariances 0 <= Sigma <= the covariance of X",
        f"law: X of {many(len(gamma), 'jointly Gaussian variable')}, of variance "
        f"{ranged(gamma[i][i] for i in range(len(gamma)))}",
        f"subject to: trace of Sigma <= {written(program['budget'])}",
    ]


WORDS = {"covariance": _covariance, "hamming": _hamming, "water": _water, "spectral": _spectral}


# ---- the table -----------------------------------------------------------------------------


def _table(table: Any) -> list[str]:
    """Say how the law is said to have been counted."""
    if table is None:
        return []
    records = table["records"]
    parts = [f"{records:,} records" if isinstance(records, int) else "unknown records"]
    for role in ("sensitive", "key", "side"):
        parts += [f"{role} {', '.join(map(quoted, table[role]))}"] if table[role] else []
    parts += [] if table["weights"] is None else [f"weights {quoted(table['weights'])}"]
    for name, edges in table["bins"]:
        if isinstance(edges, str):
            parts.append(f"{quoted(name)} by {quoted(edges)}")
            continue
        ends = f"{float(edges[0]):g} to {float(edges[-1]):g}"
        parts.append(f"{quoted(name)} in {many(len(edges) - 1, 'interval')} from {ends}")
    for name, pairs, other in table.get("groups", ()):
        groups = {str(group) for _, group in pairs} | ({str(other)} if other is not None else set())
        parts.append(f"{quoted(name)} in {many(len(groups), 'group')}")
    if table["missing"] != "refuse":
        parts.append(f"missing values {quoted(table['missing'])}")
    encoders = {"x": "the key", "wx": "sensitive and key"}
    sees = encoders.get(table["encoder"], quoted(table["encoder"]))
    return [f"table, as recorded: {'; '.join(parts)}; the randomisation sees {sees}"]
