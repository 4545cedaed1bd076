"""The optimal randomisation as an object that is applied to data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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
        k = np.array(matrix, dtype=float)
        if k.ndim != 2 or k.shape != (len(inputs), len(outputs)):
            raise InputError("matrix", f"shape {k.shape}", f"pass {(len(inputs), len(outputs))}")
        if not (np.isfinite(k).all() and (k >= 0).all() and np.allclose(k.sum(axis=1), 1.0)):
            bad = int(np.argmax(~np.isclose(k.sum(axis=1), 1.0) | (k < 0).any(axis=1)))
            raise InputError("matrix", "not row-stochastic", "rows must sum to 1", where=bad)
        k.flags.writeable = False
        self.matrix = k
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.p_input = None if p_input is None else np.asarray(p_input, float)
        rows = np.zeros(len(inputs), bool) if arbitrary is None else np.asarray(arbitrary, bool)
        self.arbitrary = rows

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
        values: pd.Series | npt.ArrayLike,
        *,
        seed: int | np.random.Generator,
    ) -> Any:
        """Draw a released letter for each value.

        Parameters
        ----------
        values : pandas.Series or array_like
            Input letters; tuples where the inputs are tuples.
        seed : int or numpy.random.Generator

        Returns
        -------
        pandas.Series or ndarray
            In the flavour of ``values``, with its index and name.

        Raises
        ------
        UnknownValueError
            For a value that is no input; nothing is drawn.
        """
        items = list(values.tolist() if hasattr(values, "tolist") else values)  # type: ignore[union-attr, arg-type]
        rows = np.empty(len(items), dtype=np.int64)
        for i, item in enumerate(items):
            label = tuple(item) if isinstance(item, list) else item
            try:
                rows[i] = self._places[label]
            except (KeyError, TypeError):
                raise UnknownValueError(
                    "values",
                    f"{item!r} is no input of the channel",
                    "release only values that the source had, or rebuild it from this table",
                    where=i,
                    value=item,
                ) from None
        rng = np.random.default_rng(seed)
        cumulative = np.cumsum(self.matrix, axis=1)
        cumulative /= cumulative[:, -1:]  # a draw below 1 never falls beyond the last letter
        draws = rng.random(len(items))
        drawn = np.empty(len(items), dtype=np.int64)
        for row in np.unique(rows):
            on = rows == row
            drawn[on] = np.searchsorted(cumulative[row], draws[on], side="right")
        chosen = self._outputs[drawn]
        if hasattr(values, "index") and hasattr(values, "to_frame"):
            series: Any = values
            return type(series)(chosen, index=series.index, name=series.name)
        return chosen

    @cached_property
    def _outputs(self) -> np.ndarray:
        if any(isinstance(label, tuple) for label in self.outputs):
            array = np.empty(len(self.outputs), dtype=object)
            array[:] = self.outputs
            return array
        return np.asarray(self.outputs)
