"""The lines of a dossier's first page, in words that need no mathematics, and what they mean.

Figures are those that an audit counted of the released table; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cvxprivacy.leakage import GuessingProbability
from cvxprivacy.text import cells, plain
from cvxprivacy_sdc.dossier.provenance import Facts
from cvxprivacy_verifier.wording import many

if TYPE_CHECKING:
    from cvxprivacy_sdc.auditing import Audit
    from cvxprivacy_sdc.copied.order import OrderTest
    from cvxprivacy_sdc.releases.check import Check

__all__ = [
    "costs", "counted", "handed_on", "left_out", "of_order", "of_release", "others", "percent",
    "standing", "undecided", "with_meanings",
]  # fmt: skip

_ROUNDED = 1e-12  # of information: what sums of floats may be off nothing


def percent(share: float) -> str:
    """Return a share of something as people read it; what is little is not called nothing."""
    return "less than 0.1 %" if 0 < share < 5e-4 else f"{100 * share:.1f} %"


def standing(checks: Sequence[Check]) -> list[str]:
    """Return how a table stands with each thing that was asked, in words."""
    return [f"{check.asks[0].upper()}{check.asks[1:]}: {check.standing}." for check in checks]


def undecided(checks: Sequence[Check], criteria: Sequence[Any]) -> list[str]:
    """Return what was asked of a table and is not decided, as no table was drawn."""
    stated = {check.stated for check in checks}
    return [f"{rule!r}: it is of a table, and none was drawn: not decided."
            for rule in criteria if rule.of_table and repr(rule) not in stated]  # fmt: skip


def counted(audit: Audit, columns: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return what a table still tells as an audit counted it, and what that means for a person."""
    w, x = (cells(list(columns[role])) for role in ("sensitive", "key"))
    tell = "tell" if len(columns["key"]) > 1 else "tells"
    alone, units = audit.original is audit.released, audit.units
    lines = []
    guess = next((m for m in audit.leaks if isinstance(m.leakage, GuessingProbability)), None)
    if guess is not None:
        before = "" if guess.original != guess.original else (
            f"from the true {x} it is for {percent(guess.original)}, "
        )  # fmt: skip
        weighted = audit.laws.weights is not None
        of = "the people that the records stand for" if weighted else "the records"
        line = (
            f"From the released {x} the best guess of {w} is right for {percent(guess.average)} of "
            f"{of}; {before}without either for {percent(guess.nothing)}."
        )
        lines.append((line, "The nearer the first is to the last, the less the file helps."))
    after, most = audit.after, audit.before.plugin
    line = f"On average the released {x} {tell} {plain(after.plugin, 3)} {units} about {w}"
    if after.plugin <= _ROUNDED:
        line = f"On average the released {x} {tell} nothing about {w}"
    elif after.bias >= after.plugin:
        line += ", which is no more than chance shows"
    if not alone and most > _ROUNDED:
        share = percent(max(after.plugin, 0.0) / most)
        line += f": {share} of the {plain(most, 3)} {units} that the true {x} {tell}"
    one = "1 bit is what the answer to one fair yes-or-no question tells; 0 is nothing."
    if units == "nats":
        one = "1 nat is 1.44 times what the answer to one fair yes-or-no question tells."
    smallest = round(audit.measures["k"].worst)
    alike = f"No record has fewer than {many(smallest - 1, 'other')} of its {x} in the file."
    if smallest < 2:
        alike = f"Some record is the only one of its {x} in the file."
    return [
        *lines,
        (f"{line}.", one),
        (f"The smallest group of equal {x} holds {many(smallest, 'record')}.", alike),
    ]


def of_release(
    document: Mapping[str, Any], columns: Mapping[str, Sequence[str]], audit: Audit | None
) -> list[tuple[str, str]]:
    """Return what a release still tells: as it was counted, else on average; and to whom else."""
    w, x = (cells(list(columns[role])) for role in ("sensitive", "key"))
    law, units = document["released_law"], document["units"]
    lines = [] if audit is None else counted(audit, columns)
    if audit is None:
        words = (
            f"{plain(law['risk'], 3)} {units} about {w}, {plain(document['risk_before'], 3)} "
            "without change"
        )
        lines.append((f"On average over all tables that may be drawn: {words}.",
                      "No table was counted for this report."))  # fmt: skip
    if informed := document.get("informed"):
        table = informed.get("table", informed)
        words = (
            f"Who knows the true {x} of a person is sure of {w}, to 95 %, for "
            f"{percent(table['sure'])} of the records; {percent(table['sure_before'])} without "
            "the file."
        )
        lines.append((words, f"{w} was looked at when the changes were made."))
    return lines


def of_order(order: OrderTest) -> list[tuple[str, str]]:
    """Return what the order of records tells, and the orders that copied columns give."""
    lines = []
    for one in order.remaining:
        cure = f"without {one.by} there is no such order"
        if not one.by:
            cure = "--shuffle releases the records in a secret order"
        words = str(one)
        lines.append((f"{words[0].upper()}{words[1:]}.", "Who sees the neighbours of a record may "
                      f"guess its true {one.about}; {cure}."))  # fmt: skip
    if hints := order.hints:
        lines.append((f"{hints[0].upper()}{hints[1:]}.", "Records with nearly the same value of "
                      "such a column are alike more often than by chance."))  # fmt: skip
    return lines


def others(columns: Mapping[str, Sequence[str]], opened: Any) -> int:
    """Return how many columns of a file are neither confidential nor key."""
    return len({*opened.header} - {*columns["sensitive"], *columns["key"], *opened.dropped})


def with_meanings(lines: Sequence[tuple[str, str]]) -> list[Facts]:
    """Return lines with what they mean, as JSON holds them."""
    return [{"line": line, "meaning": meaning} for line, meaning in lines]


def costs(
    columns: Mapping[str, Sequence[str]], changed: Facts | None, words: Sequence[str], opened: Any,
    order: OrderTest,
) -> list[str]:  # fmt: skip
    """Return how many records were changed, how much in each column, and what was left out."""
    if changed is None:
        return [*words, *left_out(opened, order)]
    of_any, *others = changed["any"], *columns["key"]
    either = " or ".join([", ".join(others[:-1]), others[-1]][len(others) < 2 :])
    return [
        f"{many(of_any['records'], 'record')} of {changed['records']:,} "
        f"({percent(of_any['share'] or 0.0)}): another {either}, or none, in "
        "the released file than in the original.",
        *words[len(columns["key"]) > 1 :],
        *left_out(opened, order),
    ]


def left_out(opened: Any, order: OrderTest) -> list[str]:
    """Return which columns the released file has not, and that it has not the order."""
    gone = ", ".join(opened.dropped)
    lines = [f"Left out of the released file: {gone}."] if gone else []
    return [*lines, *["The order of records: it is random, and secret."] * order.shuffled]


def handed_on(
    verdict: Facts, released: Facts | None, stay: Sequence[str | None]
) -> Facts:  # fmt: skip
    """Return which file leaves the house, with its sum, and which never do.

    Parameters
    ----------
    verdict : dict
        As it stands on the page.
    released : dict or None
        Name and SHA-256 of the released table, if there is one.
    stay : sequence of str or None
        Names of all other files, None for one that is not there.
    """
    kept_in = dict.fromkeys(name for name in stay if name)
    return {
        "released": released and {name: released[name] for name in ("name", "sha256")},
        "leaves": released is not None and verdict["may_be_released"] is True,
        "stay": [*kept_in, "this report"],
    }
