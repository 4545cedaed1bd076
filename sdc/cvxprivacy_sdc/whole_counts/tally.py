"""What a release drew: records by confidential letter, key letter and released letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.frozen import FrozenFields, owned
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import Draws

__all__ = ["DrawnCounts", "drawn_counts"]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DrawnCounts(FrozenFields):
    """Counts N(w, x, x̂) of a drawn table, those that are not 0.

    Attributes
    ----------
    w, x, outputs : list
        Values of W, key letters and released letters.
    w_at, x_at, y_at : ndarray of int, shape (cells,)
        Each cell's place among these.
    records : ndarray of int, shape (cells,)
    masses : ndarray, shape (cells,)
        Their survey weights, or the records themselves.
    weighted : bool
        Whether the records have weights.
    drawn : ndarray of int or None
        The output that each record drew, as the channel numbers them, of a table in memory.
    """

    w: list[Any]
    x: list[Any]
    outputs: list[Any]
    w_at: Places
    x_at: Places
    y_at: Places
    records: Places
    masses: npt.NDArray[Any]
    weighted: bool = False
    drawn: Places | None = None

    @classmethod
    def of(
        cls, w: Sequence[Any], x: Sequence[Any], outputs: Sequence[Any],
        counts: Mapping[tuple[Any, Any, int], int],
        masses: Mapping[tuple[Any, Any, int], float] | None = None, drawn: Places | None = None,
    ) -> DrawnCounts:  # fmt: skip
        """Lay out counts, and masses if the records have weights, by w, x and the number of x̂.

        Raises
        ------
        UnknownValueError
            For a letter that is none of these.
        """
        places = [{label: i for i, label in enumerate(axis)} for axis in (w, x)]
        cells = []
        for *letters, y in counts:
            for place, letter in zip(places, letters, strict=True):
                if letter not in place:
                    remedy = "draw the table that the source was counted from"
                    problem = f"{letter!r} is no letter of the source"
                    raise UnknownValueError("frame", problem, remedy, value=letter)
            cells.append((places[0][letters[0]], places[1][letters[1]], y))
        at = np.array(cells, np.int64).reshape(-1, 3).T
        records = np.array(list(counts.values()), np.int64)
        weighed = records if masses is None else np.array([masses[cell] for cell in counts])
        return cls(
            *(list(w), list(x), list(outputs), at[0], at[1], at[2]), records, weighed,
            weighted=masses is not None, drawn=drawn,
        )  # fmt: skip

    @property
    def total(self) -> int:
        """How many records there are."""
        return int(self.records.sum())

    @property
    def sizes(self) -> Places:
        """Records of each output, shape (|X̂|,)."""
        return np.bincount(self.y_at, self.records, len(self.outputs)).astype(np.int64)

    @cached_property
    def joint(self) -> npt.NDArray[Any]:
        """Masses of (w, x̂), shape (|W|, |X̂|)."""
        return self._summed(self.w_at, self.y_at, (len(self.w), len(self.outputs)))

    @cached_property
    def moves(self) -> npt.NDArray[Any]:
        """Masses of (x, x̂), shape (|X|, |X̂|): a table, which few letters have room for."""
        return self._summed(self.x_at, self.y_at, (len(self.x), len(self.outputs)))

    @property
    def letters(self) -> npt.NDArray[Any]:
        """Masses of (w, x), shape (|W|, |X|)."""
        return self._summed(self.w_at, self.x_at, (len(self.w), len(self.x)))

    def _summed(self, rows: Places, columns: Places, shape: tuple[int, int]) -> npt.NDArray[Any]:
        sums = np.zeros(shape, self.masses.dtype)
        np.add.at(sums, (rows, columns), self.masses)
        return owned(sums)

    def relabelled(self, places: Places) -> DrawnCounts:
        """Return the counts after the output y was released as ``places[y]``."""
        return replace(self, y_at=places[self.y_at])


def drawn_counts(
    channel: Channel, frame: Any, source: DiscreteSource, *, seed: int, row_id: Any = None,
    draw: str = "independent",
) -> DrawnCounts:  # fmt: skip
    """Count what ``channel.apply`` with this seed releases of the table that ``source`` is of.

    Parameters
    ----------
    frame : frame of any kind that :meth:`Channel.apply` takes
        Tables beyond memory are drawn batch by batch, and nothing of them is kept.
    """
    if channel.schema is None or not channel.schema.sensitive or channel.decoder is not None:
        remedy = "make the source with DiscreteSource.from_table, and use no decoder"
        raise InputError("channel", "it does not know the table's columns", remedy)
    if seed is None or isinstance(seed, np.random.Generator):
        remedy = "pass a whole number ≥ 0: the table is drawn twice by it"
        raise InputError("seed", f"a {type(seed).__name__}", remedy)
    draws = Draws(seed, balanced=channel.is_balanced(draw))
    counts, masses, drawn = channel._mechanism.tallied(frame, draws, row_id)
    weights = masses if channel.schema.weights is not None else None
    return DrawnCounts.of(source.w, source.x, channel.outputs, counts, weights, drawn)
