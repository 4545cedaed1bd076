"""What a released table still tells, in numbers: the page says what they mean for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cvxprivacy.leakage import GuessingProbability
from cvxprivacy_sdc.dossier.provenance import Facts
from cvxprivacy_sdc.dossier.words import NOTHING, rounded

if TYPE_CHECKING:
    from cvxprivacy_sdc.auditing import Audit
    from cvxprivacy_sdc.copied.order import OrderTest

__all__ = ["counted", "leaks", "of_order", "of_release"]

SHARE_DIGITS = 3  # of a share of the records, off which not every count can be read


def leaks(schema: Any, opened: Any, records: int, **parts: Any) -> Facts:
    """Return what is still told of so many records: null or empty is what was not counted."""
    named = {*schema.sensitive, *schema.key, *opened.dropped}
    return {
        "records": records, "others": len({*opened.header} - named),
        "explained": [], "gaussian": None, "off": [], "guess": None,
        "information": None, "smallest": None, "weighted": False, "informed": None,
        "orders": [], "hints": "", "shuffled": False, **parts,
    }  # fmt: skip


def _information(value: float) -> Any:
    return rounded(value) if value > NOTHING else 0.0


def counted(audit: Audit) -> Facts:
    """Return what a table still tells as an audit counted it."""
    guess = next((m for m in audit.leaks if isinstance(m.leakage, GuessingProbability)), None)
    shares = {} if guess is None else {
        "released": guess.average, "original": guess.original, "nothing": guess.nothing
    }  # fmt: skip
    return {
        "guess": {name: rounded(share, SHARE_DIGITS) for name, share in shares.items()} or None,
        "information": {
            "counted": True, "units": audit.units, "released": _information(audit.after.plugin),
            "original": None
            if audit.original is audit.released
            else _information(audit.before.plugin),
            "chance": audit.after.bias >= audit.after.plugin,
        },
        "smallest": round(audit.measures["k"].worst),
        "weighted": audit.laws.weights is not None,
    }  # fmt: skip


def of_release(document: Mapping[str, Any], audit: Audit | None) -> Facts:
    """Return what a release still tells: as it was counted, else on average; and to whom else."""
    law = {
        "counted": False, "units": document["units"], "chance": False,
        "released": _information(document["released_law"]["risk"]),
        "original": _information(document["risk_before"]),
    }  # fmt: skip
    informed = document.get("informed")
    sure = informed and informed.get("table", informed)
    return {
        **({"information": law} if audit is None else counted(audit)),
        "informed": sure and {n: rounded(sure[n], SHARE_DIGITS) for n in ("sure", "sure_before")},
    }  # fmt: skip


def of_order(order: OrderTest) -> Facts:
    """Return what the order of records tells, and the orders that copied columns give."""
    return {
        "orders": [{"line": str(one), "about": one.about, "by": one.by} for one in order.remaining],
        "hints": order.hints,
        "shuffled": order.shuffled,
    }
