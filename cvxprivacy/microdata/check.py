"""One thing that was asked of a release, on its law and on the table that was drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cvxprivacy.text import aligned

__all__ = ["Check", "lines_of"]


@dataclass(frozen=True)
class Check:
    """One thing that was asked, on the law and on the drawn table.

    Attributes
    ----------
    name : str
        Among the constraints of the problem.
    stated, asks : str
        As it was typed, and in words.
    quantity, unit : str
        What is bounded.
    at_least : bool
        Whether ``bound`` is the least that there may be, else the most.
    bound : float or None
        The number typed.
    law : float or None
        What the release has under the law, at its worst letter.
    law_holds : bool or None
        Whether that is within the bound: as is proved, or as is counted where groups were merged
        or the channel was designed on a part of the records; None where it is not known.
    table : float or None
        The same of the drawn table, where it has a number.
    holds : bool or None
        Whether the table satisfies it, decided exactly; None where that cannot be decided on a
        table, as it is about chances.
    on_average : bool
        Whether it bounds an expectation, as a budget does: draws scatter about it.
    budget : bool
        Whether it is the budget of distortion, which no criterion is.
    per_group : bool
        Whether it speaks of each released group by itself, else of the table as a whole.
    groups, records : int
        How many groups break it, and how many records they hold.
    """

    name: str
    stated: str
    asks: str
    quantity: str
    unit: str
    at_least: bool
    bound: float | None
    law: float | None
    law_holds: bool | None
    table: float | None
    holds: bool | None
    on_average: bool = False
    budget: bool = False
    per_group: bool = False
    groups: int = 0
    records: int = 0

    @property
    def breaks(self) -> bool:
        """Whether the table breaks it, and not only scatters about what is met on average."""
        return self.holds is False and not self.on_average

    @property
    def unmet(self) -> bool:
        """Whether the table does not satisfy it, be that of no account on average; not a budget."""
        return self.holds is False and not self.budget

    @property
    def standing(self) -> str:
        """How the table stands with it, in words."""
        if self.holds is None:
            return "cannot be decided on a table: it is of the randomisation"
        if self.holds:
            return "holds"
        if self.on_average:
            return "beyond it by this table" if self.law_holds else "beyond it"
        if not self.per_group:
            return "BROKEN by this table" if self.law_holds else "BROKEN"
        groups = "1 group" if self.groups == 1 else f"{self.groups:,} groups"
        records = "1 record" if self.records == 1 else f"{self.records:,} records"
        return f"BROKEN by {groups} of {records}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        table: dict[str, Any] | None = None
        if self.holds is not None:
            table = {"value": self.table, "bound": self.bound, "holds": self.holds,
                     "groups": self.groups, "records": self.records}  # fmt: skip
        return {
            "name": self.name,
            "criterion": self.stated,
            "says": self.asks,
            "quantity": self.quantity,
            "unit": self.unit,
            "at_least": self.at_least,
            "per_group": self.per_group,
            "breaks": self.breaks,
            "law": {"value": self.law, "bound": self.bound, "holds": self.law_holds},
            "table": table,
            "standing": self.standing,
        }


def lines_of(checks: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return checks, as ``Check.document`` has them, a line each under a head."""
    rows: list[tuple[str, ...]] = [("", "bound", "law", "table", "")]
    for check in checks:
        bound, sign = check["law"]["bound"], "≥" if check["at_least"] else "≤"
        numbers = [check["law"]["value"], (check["table"] or {}).get("value")]
        cells = ["–" if value is None else f"{value:.6g}" for value in numbers]
        limit = "" if bound is None else f"{sign} {bound:.6g} {check['unit']}".rstrip()
        rows.append((check["criterion"], limit, *cells, check["standing"]))
    return [f"  {line}" for line in aligned(rows)]
