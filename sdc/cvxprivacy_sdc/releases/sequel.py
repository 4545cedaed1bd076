"""A further release of a table, of whose records some were released before.

Records are matched by name.  Those of which every earlier table has a letter are drawn by
p(x̂ | x, earlier letters); the others by p(x̂ | x).  All numbers are of a key of their own: with
those of the first release x̂ would not be independent of it, given x and its letter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.exact import is_sparse
from cvxprivacy.extras import nw
from cvxprivacy.formulations.sequel import joined
from cvxprivacy.frozen import Frozen
from cvxprivacy.release.apply import rows_of
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import Draws, distinct, numerators
from cvxprivacy.tables.engines import as_narwhals, collect, in_memory, python_values
from cvxprivacy.tables.labels import written
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.validation import present

__all__ = ["Matching", "Sequel", "earlier_letters", "in_one", "names_of", "purpose"]

LEAST = 5.0  # records expected in a cell that counts by itself
LEVEL = 1e-9  # at which letters are told not to be of their channels


@dataclass(frozen=True)
class Matching:
    """How many records of a table are in the earlier ones.

    Attributes
    ----------
    matched : int
        In all of them, with letters that a record of this value may have there.
    new : int
        In none.
    changed : int
        In all of them, with letters that no record of this value can have there: its value was
        another one then.
    partly : int
        In some of them only.
    gone : int
        Names of earlier tables that are not in this one.
    fits : bool
        Whether the letters of matched records are such as their channels draw of today's values:
        Pearson's χ², given the values, at a level of 1e-9; cells that fewer than five records are
        expected in count as one.  Letters of another channel do not fit, nor those of two releases
        by one seed, nor of many values that changed.

    Examples
    --------
    :meth:`Sequel.matching` returns one:

    >>> print(Matching(matched=2, new=1, changed=0, partly=0, gone=2, fits=True))
    2 records in all, 1 new, 2 gone
    """

    matched: int
    new: int
    changed: int
    partly: int
    gone: int
    fits: bool

    @property
    def apart(self) -> int:
        """How many are drawn without earlier letters."""
        return self.new + self.changed + self.partly

    def __str__(self) -> str:
        parts = [f"{self.matched:,} records in all", f"{self.new:,} new", f"{self.gone:,} gone"]
        parts += [f"{self.changed:,} changed"] if self.changed else []
        return ", ".join([*parts, *([f"{self.partly:,} in some"] if self.partly else [])])


class Sequel(Frozen):
    """What draws a further release of a table.

    Parameters
    ----------
    together : Channel
        p(x̂ | x, earlier letters): of a problem that was made with ``after=``.
    alone : Channel
        p(x̂ | x), of records that are new: of the same problem without.
    after : Channel, or several
        Of the earlier releases, as in the problem.
    released : frame in memory or DuckDB relation, or several
        The earlier tables, in the same order.
    row_id : column name
        Which names each record, in all tables.

    Raises
    ------
    InputError
        For channels that do not fit each other, and records that are not named each by itself.
    UnknownValueError
        For an earlier letter that its channel does not release.

    Examples
    --------
    Two in three persons of February were in January's table:

    >>> import cvxprivacy as cpv, pandas as pd
    >>> import cvxprivacy_sdc as sdc
    >>> january = pd.DataFrame({"id": [1, 2, 3, 4], "age": [30, 30, 50, 50], "ill": [0, 0, 0, 1]})
    >>> february = pd.DataFrame({"id": [4, 2, 7], "age": [50, 30, 30], "ill": [1, 0, 1]})
    >>> def stated(table, **options):
    ...     source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    ...     return cpv.PrivacyDistortion(source, cpv.hamming(source.x), 0.2, **options).solve()
    >>> first = stated(january).channel
    >>> released = first.apply(january, seed=1, row_id="id")
    >>> together, alone = stated(february, after=first).channel, stated(february).channel
    >>> sequel = sdc.Sequel(together, alone, after=first, released=released, row_id="id")
    >>> sequel.matching(february)
    Matching(matched=2, new=1, changed=0, partly=0, gone=2, fits=True)
    >>> list(sequel.apply(february, seed=1).columns)
    ['id', 'age', 'ill']
    """

    def __init__(
        self,
        together: Channel,
        alone: Channel,
        *,
        after: Channel | Sequence[Channel],
        released: Any,
        row_id: Hashable,
    ) -> None:
        self.together, self.alone, self.row_id = together, alone, str(row_id)
        self.after = list(after) if isinstance(after, Sequence) else [after]
        channels = [("together", together), ("alone", alone), *(("after", c) for c in self.after)]
        for argument, channel in channels:
            if not isinstance(channel, Channel):
                raise InputError(argument, f"a {type(channel).__name__}", "pass a Channel")
        tables = list(released) if isinstance(released, list | tuple) else [released]
        if len(tables) != len(self.after):
            problem = f"{len(tables)} tables of {len(self.after)} channels"
            raise InputError("released", problem, "pass one table for each channel, in their order")
        schema = alone.schema
        if schema is None or together.schema != schema.after(len(self.after)):
            remedy = "solve the same problem of this table with after= and without"
            raise InputError("together", "a channel of other columns or releases", remedy)
        if together.outputs != alone.outputs or together.encoder != f"{alone.encoder}z":
            remedy = "solve the same problem with after= and without"
            raise InputError("alone", "it sees or releases other letters", remedy)
        self.schema: TableSchema = schema
        self.letters = earlier_letters(tables, self.after, schema.key, self.row_id)

    def __repr__(self) -> str:
        return f"Sequel({self.together!r}, {self.alone!r}, after {len(self.after)})"

    def matching(self, frame: Any) -> Matching:
        """Return how many records of a table are in the earlier ones.

        Parameters
        ----------
        frame : frame in memory, or DuckDB relation
            With the columns that the channels were made from.
        """
        counts, rows, matched = self._matched(in_one(frame))
        return Matching(**counts, fits=self._fit(rows[matched]))

    def _fit(self, rows: np.ndarray) -> bool:
        """Tell whether matched records, by their rows, are such as the channels draw."""
        law = self.together._prior()
        counts = np.bincount(rows, minlength=len(law)).astype(float)
        numbers: dict[Any, int] = {}
        of = [numbers.setdefault(letter[:-1], len(numbers)) for letter in self.together.inputs]
        records, masses = np.bincount(of, counts), np.bincount(of, law)
        expected = law * np.divide(records, masses, out=np.zeros_like(masses), where=masses > 0)[of]
        rare = expected < LEAST
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(counts[~rare], counts[rare].sum())
        there = expected > 0
        statistic = ((observed - expected)[there] ** 2 / expected[there]).sum()
        return bool(statistic <= chdtri(max(int(there.sum()), 1), LEVEL))

    def apply(self, frame: Any, *, seed: Any, row_id: Hashable | None = None) -> Any:
        """Draw a released letter for each record.

        Parameters
        ----------
        frame : frame in memory, or DuckDB relation
            The table.
        seed : int
            As of :meth:`Channel.apply`.  It may be that of the earlier releases: the numbers are
            others.
        row_id : column name, optional
            None but that of the sequel.

        Returns
        -------
        frame
            In the flavour of ``frame``, its key columns replaced; of a relation a
            ``pyarrow.RecordBatchReader``.

        Raises
        ------
        UnknownValueError
            For a value that is no input; nothing is drawn.
        """
        if row_id not in (None, self.row_id):
            remedy = f"name {self.row_id!r}, or none"
            raise InputError("row_id", "another column than in earlier tables", remedy)
        table = in_one(frame)
        _, rows, matched = self._matched(table)
        names = python_values(table[self.row_id])
        numbers = Draws(seed).fresh(purpose(self.after))(len(table), names)
        drawn = np.empty(len(table), np.int64)
        for channel, those in ((self.together, matched), (self.alone, ~matched)):
            drawn[those] = channel._draw(rows[those], numbers[:, those])
        replaced = self.alone._mechanism.replaced(nw.to_native(table), table, drawn)
        return replaced.to_reader() if _is_relation(frame) else replaced

    @property
    def drawn_jointly(self) -> bool:
        """Whether it needs all records at once: as a :class:`Channel` says it."""
        return False

    def _matched(self, table: nw.DataFrame[Any]) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
        """Return the counts, each record's row in its channel, and whether that is the first."""
        names = names_of(table, self.row_id, "row_id")
        groups = self.schema.input_columns(self.alone.encoder)
        parts = [self.schema.letters(table, group) for group in groups]
        inputs = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
        rows = rows_of(self.alone._rows, inputs)
        matched = np.zeros(len(names), bool)
        counts = dict.fromkeys(("matched", "new", "changed", "partly"), 0)
        for i, name in enumerate(names):
            before = [letters[name] for letters in self.letters if name in letters]
            kind = "new" if not before else "partly"
            if len(before) == len(self.letters):
                letter = (*(parts_of[i] for parts_of in parts), joined(before))
                row = self.together._rows.get(letter)
                kind = "changed"
                if row is not None and not self.together.arbitrary[row]:
                    kind, matched[i], rows[i] = "matched", True, row
            counts[kind] += 1
        gone = len({name for letters in self.letters for name in letters} - {*names})
        return {**counts, "gone": gone}, rows, matched


def earlier_letters(
    tables: Sequence[Any], after: Sequence[Channel], key: Sequence[str], row_id: str
) -> list[dict[str, Any]]:
    """Return the letter of each name in each earlier table, whose channel released it."""
    letters = []
    for place, (frame, channel) in enumerate(zip(tables, after, strict=True)):
        argument = "released" if len(tables) == 1 else f"released[{place}]"
        table = in_one(frame, argument)
        for name in (row_id, *key):
            present(name, table.columns, argument)
        released = TableSchema(tuple(key)).letters(table, key)
        outputs = {*channel.outputs}
        for i, letter in enumerate(released):
            if letter not in outputs:
                problem = f"{letter!r} is no letter that its channel releases"
                remedy = "pass the channel that released this table"
                raise UnknownValueError(argument, problem, remedy, where=i, value=letter)
        letters.append(dict(zip(names_of(table, row_id, argument), released, strict=True)))
    return letters


def purpose(after: Sequence[Channel]) -> str:
    """Return what the key of a sequel is derived for: the channels that it comes after."""
    return " ".join(["after", *map(_digest, after)])


def _digest(channel: Channel) -> str:
    """Return the SHA-256 of a channel's letters and its probabilities over 2⁵²."""
    table = numerators(channel.matrix)
    rows = (table.toarray() if is_sparse(table) else table).tolist()
    inputs, outputs = ([written(x, lenient=True) for x in axis]
                       for axis in (channel.inputs, channel.outputs))  # fmt: skip
    text = json.dumps([inputs, outputs, rows], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def names_of(frame: Any, row_id: str, argument: str) -> list[str]:
    """Return the names of records as text; one that is missing or names two is refused."""
    table = in_one(frame, argument)
    present(row_id, table.columns, argument)
    return distinct(python_values(table[row_id]), argument)


def _is_relation(frame: Any) -> bool:
    return isinstance(as_narwhals(frame), nw.LazyFrame)


def in_one(frame: Any, argument: str = "frame") -> nw.DataFrame[Any]:
    """Return a frame in memory; a relation of DuckDB is collected."""
    table = as_narwhals(frame, argument)
    if isinstance(table, nw.LazyFrame) and table.implementation.is_duckdb():
        return collect(lambda: table)
    return in_memory(frame, argument)
