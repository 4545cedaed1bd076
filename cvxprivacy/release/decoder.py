"""The user's side of a release: x̂ = f(u, z), read by one who knows z."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.extras import nw, pd
from cvxprivacy.frozen import Frozen
from cvxprivacy.tables.engines import (
    in_memory,
    is_frame,
    python_values,
    replace_columns,
    series_like,
)
from cvxprivacy.tables.labels import read, written
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.validation import labels, present

__all__ = ["Decoder"]


class Decoder(Frozen):
    """What a released u means to a user who knows z: a strategy z ↦ f(u, z) for each u.

    ``solution.channel.decoder`` is one, where the user alone knows the side information Z
    (Sankar, Rajagopalan and Poor, IEEE TIFS 8(6), 2013, Theorem 2).

    Parameters
    ----------
    table : sequence of m sequences of |Z| letters
        x̂ = f(u, z), a row for each u.
    side : sequence of |Z| labels
        Labels of z, in the order of the columns.
    schema : TableSchema, optional
        The table's columns that make z, and those that x̂ stands for; without it sequences are
        decoded, and no frame.
    column : str
        Name of the column of u in a released table.

    Raises
    ------
    InputError
        If a row has not one letter for each z.

    Examples
    --------
    Whoever knows the sex reads u = 0 as "no" of a woman, and as "yes" of a man:

    >>> schema = TableSchema(key=("smokes",), side=("sex",))
    >>> rules = [["no", "yes"], ["yes", "yes"]]
    >>> decoder = Decoder(rules, side=["female", "male"], schema=schema)
    >>> decoder(0, "female"), decoder(0, "male")
    ('no', 'yes')
    >>> import pandas as pd
    >>> released = pd.DataFrame({"sex": ["female", "male", "female"], "U": [0, 0, 1]})
    >>> decoder.apply(released)["smokes"].tolist()
    ['no', 'yes', 'yes']
    """

    def __init__(
        self,
        table: Sequence[Sequence[Any]],
        *,
        side: Sequence[Hashable],
        schema: TableSchema | None = None,
        column: str = "U",
    ) -> None:
        self.side = labels(side, None, "side")
        try:
            self.table = [list(rule) for rule in table]
        except TypeError:
            remedy = "pass one sequence of letters for each u"
            raise InputError("table", f"{table!r}", remedy) from None
        for u, rule in enumerate(self.table):
            if len(rule) != len(self.side):
                remedy = "pass one letter for each value of Z"
                raise InputError("table", f"{len(rule)} letters", remedy, where=u)
        self.schema, self.column = schema, column
        self._places = {label: i for i, label in enumerate(self.side)}

    def __repr__(self) -> str:
        return f"Decoder({len(self.table)} letters u, {len(self.side)} values of Z)"

    def __call__(self, u: int, z: Hashable) -> Any:
        """Return f(u, z); an unknown u or z raises an :class:`UnknownValueError`."""
        return self._read([u], [z])[0]

    def _read(self, u: Iterable[Any], z: Iterable[Any]) -> list[Any]:
        decoded = []
        for i, (letter, side) in enumerate(zip(u, z, strict=True)):
            valid = not isinstance(letter, str | tuple) and letter in range(len(self.table))
            if not valid:
                remedy = "decode a table that the channel released"
                raise UnknownValueError("u", f"{letter!r}", remedy, where=i, value=letter)
            if not isinstance(side, Hashable) or side not in self._places:
                remedy = f"use values that the source had: {self.side[:5]!r} …"
                raise UnknownValueError("z", f"{side!r}", remedy, where=i, value=side)
            decoded.append(self.table[int(letter)][self._places[side]])
        return decoded

    def apply(self, values: Any, side: Any = None) -> Any:
        """Replace each released u by x̂ = f(u, z).

        Parameters
        ----------
        values : frame in memory, or sequence of u
            A frame has the column of u and those of Z; the key columns come in place of u.
        side : sequence of z, optional
            Beside a sequence of u.

        Returns
        -------
        frame or list
            A frame in its own flavour, with the key columns; of a sequence, a list of x̂.

        Raises
        ------
        UnknownValueError
            For a u or a z that the decoder does not know.
        """
        if side is not None or not is_frame(values):
            if side is None:
                raise InputError("side", "missing", "pass one z for each u")
            u, z = _items(values, "values"), _items(side, "side")
            if len(u) != len(z):
                problem = f"{len(z)} values of z for {len(u)} of u"
                raise InputError("side", problem, "pass one z for each u")
            return self._read(u, z)
        frame = in_memory(values, "values")
        if self.schema is None:
            remedy = "pass sequences of u and of z"
            raise InputError("values", "the decoder knows no columns", remedy)
        for name in (self.column, *self.schema.side):
            present(name, frame.columns, "values")
        letters = self._read(
            python_values(frame[self.column]), self.schema.letters(frame, self.schema.side)
        )
        key, columns = self.schema.key, {}
        for i, name in enumerate(key):
            column = [x[i] if len(key) > 1 else x for x in letters]
            like = nw.new_series(name, column[:1], backend=frame.implementation)
            columns[name] = series_like(column, like)
        return replace_columns(values, columns, instead_of=(self.column,))

    def to_frame(self) -> pd.DataFrame:
        """Return the strategies, a pandas frame with a row for each u and a column for each z."""
        frame = pd.DataFrame(
            index=range(len(self.table)),
            columns=pd.Index(self.side, tupleize_cols=False),
            dtype=object,
        )
        for u, rule in enumerate(self.table):
            for i, letter in enumerate(rule):  # a letter may be a tuple
                frame.iat[u, i] = letter
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it, without the schema."""
        return {
            "table": [[written(letter) for letter in rule] for rule in self.table],
            "side": [written(label) for label in self.side],
            "column": self.column,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], schema: TableSchema | None) -> Decoder:
        """Return what :meth:`to_dict` wrote.

        Parameters
        ----------
        data : mapping
            With ``table``, ``side`` and ``column``.
        schema : TableSchema or None
            The columns, which a dictionary does not hold.
        """
        return cls(
            [[read(letter) for letter in rule] for rule in data["table"]],
            side=[read(label) for label in data["side"]],
            schema=schema,
            column=str(data["column"]),
        )


def _items(values: Any, argument: str) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(argument, f"{values!r}", "pass a sequence")
    return list(values)
