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
    arbitrary : array_like of bool, shape (|X|,), optional
        Rows of inputs that had probability zero: the released marginal stands there, and the
        optimum says nothing about them.
    """

    def __init__(
        self,
        matrix: npt.ArrayLike,
        *,
        inputs: Sequence[Hashable],
        outputs: Sequence[Hashable],
        p_input: npt.ArrayLike | None = None,
        arbitrary: npt.ArrayLike | None = None,
    ) -> None:
        self.inputs, self.outputs = labels(inputs, None, "inputs"), list(outputs)
        shape = (len(self.inputs), len(self.outputs))
        remedy = f"pass rows of nonnegative numbers that sum to 1, shape {shape}"
        k = array(matrix, "matrix", remedy, axes=(2,))
        if k.shape != shape:
            raise InputError("matrix", f"shape {k.shape}", remedy)
        off = ~np.isclose(k.sum(axis=1), 1.0)
        if off.any():
            row = int(off.argmax())
            total = float(k[row].sum())
            raise InputError("matrix", f"the row sums to {total!r}", remedy, where=row, value=total)
        k.flags.writeable = False
        self.matrix = k
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
            Input letters.  Where the inputs are tuples: tuples, or one column for each part.
        seed : int or numpy.random.Generator

        Returns
        -------
        pandas.Series, pandas.DataFrame or ndarray
            In the flavour of ``values``, with its index and names.

        Raises
        ------
        UnknownValueError
            For a value that is no input; nothing is drawn.
        """
        items = _items(values)
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
        if hasattr(values, "itertuples"):
            frame: Any = values
            split = list(zip(*chosen, strict=True)) if frame.shape[1] > 1 else [list(chosen)]
            columns = dict(zip(frame.columns, split, strict=True))
            return type(frame)(columns, index=frame.index)
        if hasattr(values, "index") and hasattr(values, "to_frame"):
            series: Any = values
            return type(series)(chosen, index=series.index, name=series.name)
        return chosen

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
    if hasattr(values, "itertuples"):
        rows = list(values.itertuples(index=False, name=None))
        return [row[0] for row in rows] if values.shape[1] == 1 else rows
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError("values", f"{values!r}", "pass a column or a list of letters")
    if not hasattr(values, "tolist"):
        return list(values)
    return [tuple(item) if isinstance(item, list) else item for item in values.tolist()]
