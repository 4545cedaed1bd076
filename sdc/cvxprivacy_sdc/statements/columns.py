"""Columns as they are typed: one rule for every option of every command.

A name is that of a column; or of the only one that differs in case, or in blanks around it, which
is then taken and said; else it is refused, with the names that it may have been meant for.  Of
several columns of one name each is called by its place among them: ``Note#2`` for the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cvxprivacy.errors import InputError
from cvxprivacy.text import near
from cvxprivacy_sdc.formats.delimited import addresses
from cvxprivacy_sdc.statements.exits import note

if TYPE_CHECKING:
    from cvxprivacy.release.channel import Channel

__all__ = [
    "column_of", "columns_of", "copied_columns", "folded", "leave_out", "leave_out_again",
    "loaded_channel", "refuse_unknown", "remarks_on_dropped",
]  # fmt: skip

_MOST = 30  # names that an error lists


def column_of(name: str, header: Sequence[str], option: str, what: str = "column") -> str:
    """Return the column that a name means.

    Parameters
    ----------
    name : str
        As it was typed.
    header : sequence of str
        The columns that there are, each by a name of its own.
    option : str
        Which an error names.
    what : str
        What the header's names are of.

    Raises
    ------
    InputError
        For a name that is of none or may be of several.
    """
    if name in header:
        return name
    wanted = folded(name)
    alike = [other for other in header if folded(other) == wanted]
    numbered = [
        n for n in header if wanted and re.fullmatch(re.escape(wanted) + "#[0-9]+", folded(n))
    ]
    if len(alike) == 1 and not numbered:
        note(f"{name!r} is taken as the {what} {alike[0]!r}")
        return alike[0]
    several = [*alike, *numbered]
    if several:
        listed = f"{', '.join(map(repr, several[:-1]))} or {several[-1]!r}"
        problem = f"{name!r} is the name of {len(several)} columns"
        raise InputError(option, problem, f"write {listed}", value=name)
    raise _unknown(name, header, option, what)


def refuse_unknown(option: str, names: Iterable[str], header: Sequence[str]) -> None:
    """Refuse the first name that is none of a column, as a file has it and not as it was typed.

    Parameters
    ----------
    option, header
        As of :func:`column_of`.
    names : iterable of str
        Which have to be there as they are.
    """
    for name in names:
        if name not in header:
            raise _unknown(name, header, option, "column")


def _unknown(name: str, header: Sequence[str], option: str, what: str) -> InputError:
    """Return an error with the names that one may have been meant for."""
    close = near(name, header)
    if close:
        remedy = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        listed = ", ".join(map(repr, header[:_MOST])) + ", …" * (len(header) > _MOST)
        remedy = f"use one of {listed}"
    if len(header) == 1 and any(mark in header[0] for mark in ",;\t|"):
        remedy += ", or pass another --delimiter"
    return InputError(option, f"no {what} {name!r}", remedy, value=name)


def columns_of(
    texts: Iterable[str], header: Sequence[str], option: str, what: str = "column"
) -> list[str]:
    """Return the columns that texts mean, split at commas, except where a column's name has one.

    Parameters
    ----------
    texts : iterable of str
        As they were typed.
    header, option, what
        As of :func:`column_of`.

    Raises
    ------
    InputError
        As :func:`column_of`.
    """
    names: list[str] = []
    for text in texts:
        names += [text] if text in header else [part.strip() for part in text.split(",")]
    return [column_of(name, header, option, what) for name in names]


def loaded_channel(path: str) -> Channel:
    """Return a channel that knows the columns of a table, and needs no other table."""
    from cvxprivacy.release.channel import Channel

    kept = Channel.load(path)
    if kept.schema is None:
        problem = "the channel does not know a table's columns"
        raise InputError("channel", problem, "pass one that `release --channel` kept")
    if kept.schema.earlier:
        problem = "it draws with the letters of earlier releases, which this command does not read"
        raise InputError("channel", problem, "run `cvxprivacy release --after` again")
    if kept.decoder is not None:
        problem = "it releases letters u that a user decodes with Z, which this command cannot do"
        raise InputError("channel", problem, "apply it in Python: Channel.apply, Decoder.apply")
    return kept


# ---- columns that are not in the released table ------------------------------------------


def leave_out(
    opened: Any,
    drop: Sequence[str] | None,
    keep: Sequence[str] | None,
    *,
    key: Sequence[str],
    used: Sequence[str],
    row_id: str | None = None,
) -> None:
    """Settle which columns of an opened table are not in the released one.

    Parameters
    ----------
    opened : table
        Whose ``dropped`` is set, and ``dropping`` to how it was asked for.
    drop, keep : sequence of str, optional
        As they were typed: columns that are not in it, or the only others than the key, the
        confidential ones and the weights that are.
    key : sequence of str
        Which is released.
    used : sequence of str
        The key, the confidential columns, weights.
    row_id : str, optional
        The column that names records.

    Raises
    ------
    InputError
        For both, for a key column, and where a column that is used would be called otherwise.
    """
    header, option = opened.header, "--keep-columns" if drop is None else "--drop"
    if drop is None and keep is None:
        return
    if drop is not None and keep is not None:
        remedy = "name the columns that go, or those that stay"
        raise InputError("--drop", "with --keep-columns", remedy)
    names = columns_of(drop or keep or (), header, option)
    for name in key:
        if drop is not None and name in names:
            remedy = "leave it out of --drop, or of --key"
            raise InputError("--drop", f"{name!r} is of the key, which is released", remedy)
    gone = names if keep is None else [n for n in header if n not in names and n not in used]
    opened.dropping = {"drop" if keep is None else "keep": names}
    opened.dropped = [name for name in header if name in gone]
    kept = [name for name in header if name not in gone]
    titles = [title for n, title in zip(header, opened.titles, strict=True) if n not in gone]
    for name, other in zip(kept, addresses(titles, fold=opened.folds), strict=True):
        if name in (*used, row_id) and name != other:  # it will be looked for
            twins = ", ".join(
                n for n in gone if n.partition("#")[0] in (name.partition("#")[0], "")
            )
            problem = f"without {twins or gone[0]}, {name!r} would be called {other!r} in the "
            remedy = "keep it, or give the columns names of their own"
            raise InputError(option, problem + "released table", remedy, value=name)
    if not any(titles):
        remedy = "keep one that has, as the first line would be empty"
        raise InputError(option, "no column with a name is left", remedy)


def _refuse_other_spelling(
    gone: Sequence[str], drop: Sequence[str], header: Sequence[str], key: Sequence[str]
) -> None:
    """Refuse a table in which a column that a first release left out has another spelling."""
    named = {*columns_of(drop, header, "--drop"), *key}
    for name in gone:
        if name in header:
            continue
        wanted = {folded(name), folded(name).rpartition("#")[0]} - {""}
        alike = [n for n in header if folded(n).partition("#")[0] in wanted]
        if not {*alike} <= named:
            problem = f"{name!r} was left out of the first table, and here are {', '.join(alike)}"
            raise InputError("--drop", problem, "name those that go, or pass --keep-columns")
        if not alike:
            note(f"{name!r}, left out of the first table, is not here: see that it has no new name")


def leave_out_again(
    opened: Any, schema: Any, drop: Sequence[str], keep: Sequence[str], row_id: str | None
) -> None:
    """Settle the columns that a later table is released without.

    They are those that the first one was, and those of ``drop``; or all but those of ``keep``.
    """
    weights = [] if schema.weights is None else [schema.weights]
    used = [*schema.key, *schema.sensitive, *weights]
    how: dict[str, Any] = {"key": schema.key, "used": used, "row_id": row_id}
    if keep:
        leave_out(opened, drop or None, keep, **how)
        return
    recorded = {rule: schema.reading.get(rule) for rule in ("drop", "keep")}
    there = {k: of and [n for n in of if n in opened.header] for k, of in recorded.items()}
    _refuse_other_spelling(recorded["drop"] or [], drop, opened.header, schema.key)
    leave_out(opened, there["drop"], there["keep"], **how)
    if drop:
        leave_out(opened, [*opened.dropped, *drop], None, **how)


def copied_columns(opened: Any, schema: Any) -> list[str]:
    """Return the columns that a release copies, but for the confidential ones."""
    return [name for name in opened.header if name not in {*schema.columns, *opened.dropped}]


def remarks_on_dropped(opened: Any, schema: Any, row_id: str | None = None) -> list[str]:
    """Return what is to be said of the columns that are not in the released table.

    Parameters
    ----------
    opened : table
    schema : TableSchema
    row_id : str, optional
        The column that names records.
    """
    gone = opened.dropped
    if not gone:
        return []
    lines = [f"not in the released table: {', '.join(gone)}"]
    hidden = [name for name in schema.sensitive if name in gone]
    if hidden:
        lines.append(
            f"{', '.join(hidden)} is confidential and not in the released table: what is proved is "
            "what the released key tells of it; to audit the table it has to be put beside it again"
        )
    if schema.weights in gone:
        lines.append(f"without the weights {schema.weights} nobody finds the weighted law again")
    if row_id in gone:
        lines.append(
            f"without {row_id} no later release can be matched with this one (release --after)"
        )
    return lines


def folded(name: str) -> str:
    """Return a name without what its spellings may differ in: case, and blanks around it."""
    return name.strip().casefold()
