"""A released table audited for several confidential columns, each by itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.frozen import frozen
from cvxprivacy.tables.labels import printable
from cvxprivacy.tables.schema import column_names
from cvxprivacy.text import aligned
from cvxprivacy.validation import one_of
from cvxprivacy_sdc.auditing import view
from cvxprivacy_sdc.auditing.report import Audit, audit

__all__ = ["Audits", "audit_each"]

SCHEMA = "cvxprivacy audits 1"


class Audits(Mapping[str, Audit]):
    """Audits of one released table, by confidential column; :func:`audit_each` returns them.

    Attributes
    ----------
    holds : bool
        Whether every criterion is decided, and holds of every column.

    Examples
    --------
    One of the three young has debts, and all three are ill: what holds of one column need not
    hold of the other.

    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> people = pd.DataFrame({"age": [1, 1, 1, 2, 2], "ill": [*"yyyyn"], "debts": [*"ynnyn"]})
    >>> audits = sdc.audit_each(people, key="age", sensitive=["ill", "debts"])
    >>> list(audits), audits["ill"].measures["distinct l"].worst, audits.worst("distinct l")
    (['ill', 'debts'], 1.0, 1.0)
    """

    def __init__(self, audits: Mapping[str, Audit]) -> None:
        self._audits: Mapping[str, Audit] = frozen(audits)

    def __getitem__(self, column: str) -> Audit:
        one_of(column, "column", *self._audits)
        return self._audits[column]

    def __contains__(self, column: object) -> bool:
        return column in self._audits

    def get(self, column: str, default: Any = None) -> Any:
        """Return the audit of a column, or the default for what is none."""
        return self._audits.get(column, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._audits)

    def __len__(self) -> int:
        return len(self._audits)

    @property
    def holds(self) -> bool:
        """Whether every criterion is decided, and holds of every column."""
        return all(of.holds for of in self.values())

    def worst(self, measure: str) -> float:
        """Return a measure of the column that is worst by it, as pycanon does.

        Parameters
        ----------
        measure : str
            As :meth:`Audit.measure` takes it.

        Raises
        ------
        InputError
            For a measure that some column has not.
        """
        every = [of.measure(measure) for of in self.values()]
        return (min if every[0].low else max)(of.worst for of in every)

    def __repr__(self) -> str:
        return f"Audits({', '.join(self)}: criteria {'hold' if self.holds else 'broken'})"

    def __str__(self) -> str:
        first, *_ = self.values()
        facts = {name: first.facts[name] for name in ("released", "classes")}
        each = (
            f"{len(self)} confidential columns each" if len(self) > 1 else "a confidential column"
        )
        lines = [f"audit of a released table, {each} by itself"]
        lines += [f"  {name:<13}  {fact}" for name, fact in facts.items()]
        lines += ["", *(f"  {line}" for line in aligned(self._rows()))]
        for column, of in self.items():
            stands = [f"{s:<6}  {name}: {words}" for name, s, words in of.conclusions]
            words = [*stands, *(f"note: {note}" for note in of.all_notes)]
            lines += ["", f"  {column}"] * bool(words) + [f"    {line}" for line in words]
        return "\n".join(map(printable, lines))

    def _rows(self) -> list[list[str]]:
        """Return the worst of every measure, a row each, with a column for each attribute."""
        titles = {of.name: of.title for one in self.values() for of in one.measures.values()}
        rows = [["worst of every measure", *self]]
        for name, title in titles.items():
            by_column = [of.measures.get(name) for of in self.values()]
            worst = ["–" if of is None else view.number(of.worst) for of in by_column]
            rows.append([title, *worst])
        return rows

    def document(self, *, letters: bool = True) -> dict[str, Any]:
        """Return the audits as JSON holds them.

        Parameters
        ----------
        letters : bool
            As of :meth:`Audit.document`.
        """
        return {
            "schema": SCHEMA,
            "holds": self.holds,
            "audits": {column: of.document(letters=letters) for column, of in self.items()},
        }


def audit_each(
    original: Any,
    released: Any = None,
    *,
    sensitive: Sequence[Hashable],
    bins: Mapping[Hashable, Any] | None = None,
    groups: Mapping[Hashable, Any] | None = None,
    ordered: bool | Mapping[Hashable, Any] | None = None,
    **options: Any,
) -> Audits:
    """Audit a released table for several confidential columns, each by itself.

    :func:`audit` takes several columns as one attribute, their combination.  Here each is W in
    turn, and the others are left aside, as ARX and pycanon judge a table of several.

    Parameters
    ----------
    original, released : frame of any kind
        As of :func:`audit`.
    sensitive : sequence of column names
        Each is W.
    bins, groups : mapping of column to what ``audit`` takes, optional
        Of key columns, and of confidential ones.
    ordered : bool or mapping of column to what ``audit`` takes, optional
        One of all columns, or the order of the values of some.
    **options : optional
        ``key``, ``criteria`` and everything else that :func:`audit` takes, alike for every column.

    Returns
    -------
    Audits
        A mapping of each column to its audit.

    Raises
    ------
    InputError
        As ``audit``.

    Examples
    --------
    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> people = pd.DataFrame({"age": [1, 1, 1, 2, 2], "ill": [*"yyyyn"], "debts": [*"ynnyn"]})
    >>> audits = sdc.audit_each(
    ...     people, key="age", sensitive=["ill", "debts"], criteria=[cpv.LDiversity(1.5)]
    ... )
    >>> {column: audit.holds for column, audit in audits.items()}, audits.holds
    ({'ill': False, 'debts': True}, False)
    """
    columns = column_names(sensitive, "sensitive")
    orders = {str(n): order for n, order in ordered.items()} if isinstance(ordered, Mapping) else {}
    for name in orders:
        one_of(name, "ordered", *columns)
    if not isinstance(ordered, bool | Mapping | None):
        remedy = "pass True, False, or {column: its values in order}"
        raise InputError("ordered", "values of no column in particular", remedy, value=ordered)
    audits: dict[str, Audit] = {}
    for column in columns:
        if column in audits:
            problem = f"column {column!r} named twice"
            raise InputError("sensitive", problem, "name each column once", value=column)
        others = set(columns) - {column}
        specs: dict[str, Any] = {
            argument: {n: spec for n, spec in of.items() if str(n) not in others}
            if isinstance(of, Mapping)
            else of  # which is refused there
            for argument, of in (("bins", bins), ("groups", groups))
        }
        order = orders.get(column) if isinstance(ordered, Mapping) else ordered
        audits[column] = audit(
            original, released, sensitive=column, ordered=order, **specs, **options
        )
    return Audits(audits)
