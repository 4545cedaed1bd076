"""How a release stands with one thing that was asked, and every sentence that says so.

On the law that is meant, which has a name, and on the table; a page or a command that speaks of a
criterion says what is said here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from cvxprivacy.criteria import Criterion
from cvxprivacy.errors import InputError
from cvxprivacy.exact import rational, typed_most
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.results.solution import Solution
from cvxprivacy.text import aligned, plain
from cvxprivacy.validation import untaken
from cvxprivacy_sdc.releases.released_law import CountedLaw, ReleasedLaw, clearly
from cvxprivacy_verifier.wording import many

__all__ = ["Check", "as_typed", "asked", "lines_of"]

_CHANGE = "mean change per record"


class OnTable(Protocol):
    """A table, as checks are of it."""

    @property
    def distortion(self) -> Fraction:
        """Of the table itself."""

    def standing(self, rule: Criterion) -> dict[str, Any]:
        """Return how the table stands with a criterion: what a check has of it."""


def asked(
    problem: ChannelProblem, solution: Solution, law: ReleasedLaw, drawn: OnTable | None = None,
    of_table: Sequence[Criterion] = (),
) -> list[Check]:  # fmt: skip
    """Return everything that was asked, on the law and on the table, if one was drawn.

    Parameters
    ----------
    problem : ChannelProblem
    solution : Solution
        Of the problem.
    law : ReleasedLaw
        Of what is released of all records.
    drawn : DrawnTable, optional
        The table.
    of_table : sequence of Criterion
        Of the table alone.
    """
    budget = [_budget(problem, solution, law, drawn)] if "budget" in problem._formulated[1] else []
    rules = as_typed(problem._criteria(), of_table).items()
    return [*budget, *(_criterion(problem, law, drawn, name, rule) for name, rule in rules)]


def as_typed(rules: Mapping[str, Criterion], of_table: Sequence[Criterion]) -> dict[str, Criterion]:
    """Return criteria of a problem by name, those of a table in place of what is asked of a law.

    Those of which the law is asked nothing come last.

    Parameters
    ----------
    rules : mapping of str to Criterion
        Of the problem, with the relaxations of those of the table.
    of_table : sequence of Criterion
    """
    left, typed = list(of_table), dict[str, Criterion]()
    for name, rule in rules.items():
        place = next((i for i, each in enumerate(left) if each.relaxation == rule), None)
        stated = rule if place is None else left.pop(place)
        typed[untaken(name if place is None else stated.name, typed)] = stated
    for stated in left:
        typed[untaken(stated.name, typed)] = stated
    return typed


def _criterion(
    problem: ChannelProblem, law: ReleasedLaw, drawn: OnTable | None, name: str, rule: Criterion
) -> Check:
    source, (value, holds) = problem.source, law.standing(rule)
    words = rule.in_words(w=source.names[0], x=source.names[1], units=problem.units)
    bound = float(rule.value) if isinstance(rule.value, int | float | Fraction) else None
    return Check(
        name, type(rule).__name__, repr(rule), words.asks, words.quantity, words.unit,
        words.at_least, bound, value, holds, law_of=law.name,
        because=law.because(holds, lambda of: of.standing(rule)[1]),
        on_average=rule.on_average, of_channel=rule.of_channel, of_table=rule.of_table,
        drawn=drawn is not None, **({} if drawn is None else drawn.standing(rule)),
    )  # fmt: skip


def _budget(
    problem: ChannelProblem, solution: Solution, law: ReleasedLaw, drawn: OnTable | None
) -> Check:
    budget: Any = getattr(problem, "budget", None)
    if budget is None:
        raise InputError("problem", "a budget of parts", "pass a problem of one budget")
    bound = rational(typed_most(budget))
    value, holds = law.mean_distortion, None
    if law.proved:
        value, holds = float(solution.terms["distortion"]), True
    elif isinstance(law, CountedLaw) and drawn is not None:  # the table itself: exactly
        holds = drawn.distortion <= bound
    else:
        holds = clearly(value, float(bound))
    table: dict[str, Any] = {} if drawn is None else {
        "table": float(drawn.distortion), "holds": drawn.distortion <= bound
    }  # fmt: skip
    return Check(
        "budget", "budget", f"budget {float(bound):g}",
        f"the {_CHANGE} is at most {float(bound):g}", _CHANGE, "", False, float(bound), value,
        holds, law_of=law.name,
        because=law.because(holds, lambda of: clearly(of.mean_distortion, float(bound))),
        on_average=True, drawn=drawn is not None, **table,
    )  # fmt: skip


@dataclass(frozen=True)
class Check:
    """One thing that was asked, on the law and on the drawn table; and what is said of it.

    Attributes
    ----------
    name : str
        Among the constraints of the problem.
    kind : str
        The class of the criterion; "budget" of a budget.
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
        Whether that is within the bound: as is proved, or as is counted where groups were merged;
        None where it is not known.
    table : float or None
        The same of the drawn table, where it has a number.
    holds : bool or None
        Whether the table satisfies it, decided exactly; None where that cannot be decided on a
        table, as it is about chances, or where no table was drawn.
    law_of : str
        Which law that is; of no law, as of a table that is audited, "".
    because : str
        Why that law does not satisfy it, or is not known to.
    on_average : bool
        Whether it bounds an expectation, as a budget does: draws scatter about it.
    of_channel : bool
        Whether it speaks of the randomisation alone, whatever the law.
    of_table : bool
        Whether it speaks of tables alone, which no law is asked for.
    per_group : bool
        Whether it speaks of each released group by itself, else of the table as a whole.
    groups, records : int
        How many groups break it, and how many records they hold.
    drawn : bool
        Whether there is a table: one that was drawn, or one that is audited.
    """

    name: str
    kind: str
    stated: str
    asks: str
    quantity: str
    unit: str
    at_least: bool
    bound: float | None
    law: float | None
    law_holds: bool | None
    table: float | None = None
    holds: bool | None = None
    law_of: str = ""
    because: str = ""
    on_average: bool = False
    of_channel: bool = False
    of_table: bool = False
    per_group: bool = False
    groups: int = 0
    records: int = 0
    drawn: bool = True

    @property
    def _unproved(self) -> bool:
        """Whether it is asked of a law of which it is not known."""
        return self.law_holds is None and bool(self.law_of) and not self.of_table

    @property
    def breaks(self) -> bool:
        """Whether the table breaks it, and not only scatters about what is met on average."""
        return self.holds is False and not self.on_average

    @property
    def unmet(self) -> bool:
        """Whether the table does not satisfy it, be that of no account on average; not a budget."""
        return self.holds is False and self.kind != "budget"

    @property
    def refuses(self) -> bool:
        """Whether it forbids the release: a bound on an average is one on what is lost."""
        return self.breaks or (self.law_holds is False and not self.on_average)

    @property
    def standing(self) -> str:
        """How what is released stands with it, in words."""
        law = f"beyond it by {self.law_of}" if self.law_holds is False else ""
        if self.breaks:
            table = f"BROKEN by {self._broken_by}"
        elif self.holds is False:
            table = "beyond it by this table" + (", by chance" if self.law_holds else "")
        elif self.holds is None and self.drawn and not law:
            table = "cannot be decided on a table"
            table += ": it is of the randomisation" if self.of_channel else ""
            law = "holds by the randomisation" if self.law_holds else ""
        elif self.holds is None and not law and self.law_holds:
            law, table = "holds by the randomisation", ""
        else:
            table = "holds in this table" if law and self.holds else ""
        if self._unproved:
            law = "not proved of this release"
        return ", ".join(part for part in (law, table) if part) or "holds"

    @property
    def _broken_by(self) -> str:
        if not self.per_group:
            return "this table"
        return f"{many(self.groups, 'group')} of {many(self.records, 'record')}"

    @property
    def sentence(self) -> str:
        """What a board is told of it, after "this table must not be released", or "may be"."""
        law_at, at = ("" if v is None else f", at {plain(v)}" for v in (self.law, self.table))
        if self.breaks:
            table = "the drawn table" if self.law_of else "the table"
            by = table + at if not self.per_group else (
                f"{many(self.groups, 'group')} of {table}, with {many(self.records, 'record')}"
            )  # fmt: skip
            law = f", and by {self.law_of}{law_at}" if self.law_holds is False else ""
            return f"{self.stated} is broken by {by}{law}"
        if self.law_holds is False:
            verb = "exceeded" if self.on_average else "broken"
            return f"{self.stated} is {verb} by {self.law_of}{law_at} ({self.because})"
        if self._unproved:
            words = {True: "; the drawn table satisfies it", False: "; this draw is beyond it"}
            drawn = "" if self.holds is None else words[self.holds]
            return f"{self.stated} is not proved of this release ({self.because}){drawn}"
        if self.holds is False:
            return f"{self.stated} holds on average; this draw is beyond it, by chance{at}"
        if self.holds is None and not self.law_of:
            return f"{self.stated} cannot be decided on the released table alone"
        return f"{self.stated} holds"

    @property
    def caution(self) -> str:
        """What is to be weighed of it before a release is signed; "" where it plainly holds."""
        words = ""
        if self.law_holds is False:
            words = f"{self.law_of} is beyond it, {self.because}"
        elif self._unproved:
            words = self.because
        elif self.holds is False and not self.breaks:
            words = (
                "the randomisation is within it, as is proved; this draw is beyond it, by chance"
            )
        elif self.holds is None and self.law_of and self.drawn and not self.of_channel:
            words = (
                "proved of the randomisation that drew the table; the drawn table itself was not "
                "checked for it"
            )
        return f"{self.stated}: {words}" if words else ""

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        table: dict[str, Any] | None = None
        if self.holds is not None:
            table = {"value": self.table, "bound": self.bound, "holds": self.holds,
                     "groups": self.groups, "records": self.records}  # fmt: skip
        law = {"of": self.law_of, "value": self.law, "bound": self.bound, "holds": self.law_holds}
        return {
            "name": self.name,
            "kind": self.kind,
            "criterion": self.stated,
            "says": self.asks,
            "quantity": self.quantity,
            "unit": self.unit,
            "at_least": self.at_least,
            "per_group": self.per_group,
            "breaks": self.breaks,
            "refuses": self.refuses,
            "law": law if self.law_of else None,
            "table": table,
            "standing": self.standing,
        }


def lines_of(checks: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return checks, as ``Check.document`` has them, a line each under a head."""
    rows: list[tuple[str, ...]] = [("", "bound", "law", "table", "")]
    for check in checks:
        law, sign = check["law"], "≥" if check["at_least"] else "≤"
        bound, numbers = law["bound"], [law["value"], (check["table"] or {}).get("value")]
        cells = ["–" if value is None else f"{value:.6g}" for value in numbers]
        limit = "" if bound is None else f"{sign} {bound:.6g} {check['unit']}".rstrip()
        rows.append((check["criterion"], limit, *cells, check["standing"]))
    return [f"  {line}" for line in aligned(rows)]
