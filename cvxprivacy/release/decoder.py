"""The user's side of a release: x̂ = f(u, z), read by one who knows z."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.frozen import Frozen
from cvxprivacy.tables.frames import Coding, narwhal, palette, plain
from cvxprivacy.tables.labels import read, written
from cvxprivacy.validation import labels, present

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Decoder"]


class Decoder(Frozen):
    """What a released u means to a user who knows z: a strategy t_u : Z → X̂ for each u.

    Parameters
    ----------
    table : sequence of m sequences of |Z| letters
        x̂ = f(u, z).
    side : sequence
        Labels of z.
    coding : Coding, optional
        The table's columns that make z, and those that x̂ stands for.
    column : str
        Name of the column of u in a released table.
    """

    def __init__(
        self,
        table: Sequence[Sequence[Any]],
        *,
        side: Sequence[Hashable],
        coding: Coding | None = None,
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
        self.coding, self.column = coding, column
        self._places = {label: i for i, label in enumerate(self.side)}

    def __repr__(self) -> str:
        return f"Decoder({len(self.table)} letters u, {len(self.side)} values of Z)"

    def __call__(self, u: int, z: Hashable) -> Any:
        """Return f(u, z).

        Raises
        ------
        UnknownValueError
            For a u that is never released, or an unknown z.
        """
        return self._read([u], [z])[0]

    def _read(self, u: Iterable[Any], z: Iterable[Any]) -> list[Any]:
        found = []
        for i, (letter, side) in enumerate(zip(u, z, strict=True)):
            known = not isinstance(letter, str | tuple) and letter in range(len(self.table))
            if not known:
                remedy = "decode a table that the channel released"
                raise UnknownValueError("u", f"{letter!r}", remedy, where=i, value=letter)
            if not isinstance(side, Hashable) or side not in self._places:
                remedy = f"use values that the source had: {self.side[:5]!r} …"
                raise UnknownValueError("z", f"{side!r}", remedy, where=i, value=side)
            found.append(self.table[int(letter)][self._places[side]])
        return found

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
        """
        if side is not None or not _framed(values):
            if side is None:
                raise InputError("side", "missing", "pass one z for each u")
            pairs = [_listed(values, "values"), _listed(side, "side")]
            if len(pairs[0]) != len(pairs[1]):
                problem = f"{len(pairs[1])} values of z for {len(pairs[0])} of u"
                raise InputError("side", problem, "pass one z for each u")
            return self._read(*pairs)
        frame = narwhal(values)
        if isinstance(frame, nw.LazyFrame):
            raise InputError("values", "a lazy frame", "collect it first")
        if self.coding is None:
            remedy = "pass sequences of u and of z"
            raise InputError("values", "the decoder knows no columns", remedy)
        for name in (self.column, *self.coding.side):
            present(name, frame.columns, "values")
        z = self.coding.letters(frame, self.coding.side)
        found = self._read(plain(frame[self.column]), z)
        key = self.coding.key
        rows = [x if len(key) > 1 else (x,) for x in found]
        made = []
        for i, name in enumerate(key):
            like = nw.new_series(name, [rule[0] for rule in rows[:1]], backend=frame.implementation)
            column = palette([row[i] for row in rows], like).alias(name)
            if hasattr(values, "set_axis"):  # pandas aligns by index
                column = nw.maybe_set_index(column, index=values.index)
            made.append(column)
        names = [name for name in frame.columns if name not in key]
        place = names.index(self.column)
        order = [*names[:place], *key, *names[place + 1 :]]
        return nw.to_native(frame.drop(self.column).with_columns(*made).select(order))

    def to_frame(self) -> pd.DataFrame:
        """Return the strategies, a pandas frame with a row for each u and a column for each z."""
        import pandas as pd

        columns = pd.Index(self.side, tupleize_cols=False)
        found = pd.DataFrame(index=range(len(self.table)), columns=columns, dtype=object)
        for u, rule in enumerate(self.table):
            for i, letter in enumerate(rule):
                found.iat[u, i] = letter
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it, without the coding."""
        return {
            "table": [[written(letter) for letter in rule] for rule in self.table],
            "side": [written(label) for label in self.side],
            "column": self.column,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], coding: Coding | None) -> Decoder:
        """Return what :meth:`to_dict` wrote."""
        return cls(
            [[read(letter) for letter in rule] for rule in data["table"]],
            side=[read(label) for label in data["side"]],
            coding=coding,
            column=str(data["column"]),
        )


def _listed(values: Any, argument: str) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(argument, f"{values!r}", "pass a sequence")
    return list(values)


def _framed(values: Any) -> bool:
    return any(hasattr(type(values), name) for name in ("columns", "column_names", "schema"))
