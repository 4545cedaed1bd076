"""The optimal randomisation as an object that is applied to data."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.checks import array, labels
from cvxprivacy.errors import InputError, UnknownValueError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Channel"]


class Channel:
    """A randomised rule p(x̂ | x), the PRAM matrix of a release.

    Parameters
    ----------
    matrix : array_like, shape (|X|, |X̂|)
        Rows are nonnegative and sum to 1.
    inputs, outputs : sequence
        Labels of rows and columns.  With the encoder of (W, X) the inputs are pairs (w, x).
    p_input : array_like, shape (|X|,), optional
        Law of the inputs, for the released marginal.
    columns : (sequence, sequence), optional
        Names of the table's columns that make up an input, and of those that are released: the
        key columns, preceded by the confidential one where the encoder sees it.
    arbitrary : array_like of bool, shape (|X|,), optional
        Rows of inputs that had probability zero: the released marginal stands there (or the
        input itself, under floors and forbidden moves); the optimum says nothing about them.
    """

    def __init__(
        self,
        matrix: npt.ArrayLike,
        *,
        inputs: Sequence[Hashable],
        outputs: Sequence[Hashable],
        p_input: npt.ArrayLike | None = None,
        columns: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
        arbitrary: npt.ArrayLike | None = None,
    ) -> None:
        self.inputs, self.outputs = labels(inputs, None, "inputs"), list(outputs)
        shape = (len(self.inputs), len(self.outputs))
        remedy = f"pass rows of nonnegative numbers that sum to 1, shape {shape}"
        k = array(matrix, "matrix", remedy, axes=(2,))
        if k.shape != shape:
            raise InputError("matrix", f"shape {k.shape}", remedy)
        off = np.abs(k.sum(axis=1) - 1.0) > 1e-9
        if off.any():
            row = int(off.argmax())
            total = float(k[row].sum())
            raise InputError("matrix", f"the row sums to {total!r}", remedy, where=row, value=total)
        k.flags.writeable = False
        self.matrix, self.columns = k, columns
        self.p_input = None
        if p_input is not None:
            self.p_input = array(p_input, "p_input", "pass one mass per input", axes=(1,))
        self.arbitrary = np.zeros(len(k), bool)
        if arbitrary is not None:
            self.arbitrary = np.asarray(arbitrary, bool)
        for argument, given in (("p_input", self.p_input), ("arbitrary", self.arbitrary)):
            if given is not None and given.shape != (len(k),):
                problem = f"shape {given.shape}"
                raise InputError(argument, problem, f"pass {len(k)} entries, one per input")

    def __repr__(self) -> str:
        return f"Channel({len(self.inputs)} inputs → {len(self.outputs)} outputs)"

    @property
    def released_marginal(self) -> np.ndarray:
        """p(x̂), shape (|X̂|,)."""
        if self.p_input is None:
            raise InputError("p_input", "unknown", "make the channel with the law of its inputs")
        return self.p_input @ self.matrix

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(self.inputs)}

    def apply(
        self,
        values: pd.Series | pd.DataFrame | npt.ArrayLike,
        *,
        seed: int | np.random.Generator,
    ) -> Any:
        """Draw a released letter for each value.

        Parameters
        ----------
        values : pandas.Series, pandas.DataFrame or array_like
            Input letters, tuples where the inputs are tuples.  Of a frame, the columns are
            found by name if the channel was made from a table, else counted off.
        seed : int or numpy.random.Generator

        Returns
        -------
        pandas.Series, pandas.DataFrame or ndarray
            In the flavour of ``values``, with its index and names; a frame comes back whole,
            with its key columns replaced.

        Raises
        ------
        UnknownValueError
            For a value that is no input; nothing is drawn.
        """
        framed = hasattr(values, "itertuples")
        items = self._cells(values) if framed else _items(values)
        rows = np.empty(len(items), dtype=np.int64)
        for i, item in enumerate(items):
            try:
                rows[i] = self._places[item]
            except (KeyError, TypeError):
                raise UnknownValueError(
                    "values",
                    f"{item!r} is no input of the channel",
                    "release only values that the source had, or rebuild it from this table",
                    where=i,
                    value=item,
                ) from None
        try:
            rng = np.random.default_rng(seed)
        except (TypeError, ValueError) as error:
            remedy = "pass a whole number ≥ 0 or a numpy.random.Generator"
            raise InputError("seed", f"{seed!r} ({error})", remedy, value=seed) from None
        cumulative = np.cumsum(self.matrix, axis=1)
        cumulative /= cumulative[:, -1:]  # a draw below 1 never falls beyond the last letter
        draws = rng.random(len(items))
        drawn = np.empty(len(items), dtype=np.int64)
        for row in np.unique(rows):
            on = rows == row
            drawn[on] = np.searchsorted(cumulative[row], draws[on], side="right")
        chosen = self._outputs[drawn]
        if framed:
            return self._replaced(values, chosen)
        if hasattr(values, "index") and hasattr(values, "to_frame"):
            series: Any = values
            return type(series)(chosen, index=series.index, name=series.name)
        return chosen

    def _used(self, frame: Any) -> tuple[list[Any], list[Any]]:
        """Return the frame's columns that are the input, and those that are released."""
        if self.columns is None:
            first = self.inputs[0]
            parts = len(first) if isinstance(first, tuple) else 1
            if frame.shape[1] != parts:
                problem = f"{frame.shape[1]} columns where an input has {parts}"
                raise InputError("values", problem, "pass the key columns alone, in their order")
            return list(frame.columns), list(frame.columns)
        for column in self.columns[0]:
            if column not in frame.columns:
                known = ", ".join(map(str, frame.columns))
                raise InputError("values", f"no column {column!r}", f"there are {known}")
        return list(self.columns[0]), list(self.columns[1])

    def _cells(self, frame: Any) -> list[Any]:
        """Return each row's input: a letter, a tuple of key letters, or (w, x)."""
        inputs, outputs = self._used(frame)
        rows = list(frame[inputs].itertuples(index=False, name=None))
        if len(inputs) == 1:
            return [row[0] for row in rows]
        if len(inputs) == len(outputs) or len(outputs) == 1:
            return rows
        return [(row[0], row[1:]) for row in rows]  # the confidential column, then several keys

    def _replaced(self, frame: Any, chosen: np.ndarray) -> Any:
        _, outputs = self._used(frame)
        released = frame.copy()
        parts: list[Any] = list(zip(*chosen, strict=True)) if len(outputs) > 1 else [chosen]
        for column, part in zip(outputs, parts, strict=True):
            released[column] = list(part)
        return released

    @cached_property
    def _outputs(self) -> np.ndarray:
        kinds = {type(label) for label in self.outputs}
        if len(kinds) > 1 or tuple in kinds:
            array = np.empty(len(self.outputs), dtype=object)
            array[:] = self.outputs
            return array
        return np.asarray(self.outputs)


def _items(values: Any) -> list[Any]:
    """Return one hashable label per record."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError("values", f"{values!r}", "pass a column or a list of letters")
    if not hasattr(values, "tolist"):
        return list(values)
    return [tuple(item) if isinstance(item, list) else item for item in values.tolist()]
