"""Whole counts as a channel: in each cell a random order of its records hands out the letters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import IO, Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.frozen import frozen
from cvxprivacy.release.apply import Places
from cvxprivacy.release.balanced import dealt
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import Numbers
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.validation import array, one_of

__all__ = ["CountedChannel"]


_WHOLE = "pass whole numbers of records ≥ 0, a row for each input"


class CountedChannel(Channel):
    """The channel p(x̂ | s) = m(s, x̂)/n(s) of whole counts, applied so that these come out.

    The records of a cell s are put in a random order, in which the first m(s, x̂₁) are released as
    x̂₁, and so on: each record's own probabilities are those of the channel, and the counts are
    certain.  Records are not drawn independently of each other, and ``draw="balanced"`` changes
    nothing.  It is of one table, so that no file keeps it for the next.

    Parameters
    ----------
    counts : array_like of int, shape (|S|, |X̂|)
        m(s, x̂), with records in every row.
    inputs, outputs : sequence
        Labels of rows and columns; pairs (w, x) with ``encoder="wx"``.
    schema : TableSchema, optional
        How the records of a table become inputs.
    encoder : {"x", "wx"}
        What makes an input.

    Raises
    ------
    InputError
        For what is no count, an input without records, or labels that do not fit.

    Examples
    --------
    Two of the three records of ``a`` are released as ``b``, whatever the draw:

    >>> channel = CountedChannel([[1, 2], [0, 2]], inputs="ab", outputs="ab")
    >>> sorted(channel.apply(list("aabab"), seed=1).tolist())
    ['a', 'b', 'b', 'b', 'b']
    """

    def __init__(
        self,
        counts: Any,
        *,
        inputs: Sequence[Hashable],
        outputs: Sequence[Hashable],
        schema: TableSchema | None = None,
        encoder: str = "x",
    ) -> None:
        typed = array(counts, "counts", _WHOLE, axes=(2,))
        for where in np.argwhere(typed != np.rint(typed)).tolist()[:1]:
            value = float(typed[tuple(where)])
            raise InputError(
                "counts", f"{value!r} is no count", _WHOLE, where=tuple(where), value=value
            )
        for row in np.flatnonzero(~typed.any(axis=1)).tolist()[:1]:
            raise InputError("counts", "no records", "leave out the input", where=row)
        self.counts = typed.astype(np.int64)
        sizes = self.counts.sum(axis=1)
        super().__init__(
            self.counts / sizes[:, None],
            inputs=inputs,
            outputs=outputs,
            p_input=sizes / sizes.sum(),
            schema=schema,
            encoder=encoder,
        )
        self.counts = frozen(self.counts)

    def is_balanced(self, draw: str) -> bool:
        """Tell whether counts have to be rounded: they are whole.

        Parameters
        ----------
        draw : {"independent", "balanced"}
            As of :meth:`cvxprivacy.Channel.apply`.
        """
        one_of(draw, "draw", "independent", "balanced")
        return False

    def write(self, file: IO[str]) -> None:
        """Refuse: a file has the law, whose records other tables draw one by one.

        Parameters
        ----------
        file : text file

        Raises
        ------
        InputError
            Always.
        """
        problem = "whole counts are of one table, and a file keeps a law alone"
        remedy = "keep the table that apply releases, or make a Channel of .matrix and save that"
        raise InputError("channel", problem, remedy)

    def _draw(self, rows: Places, numbers: Numbers) -> Places:
        """Return the number of each record's letter, by the order of the records' numbers."""
        sizes = np.bincount(rows, minlength=len(self.counts))
        wrong = np.flatnonzero(sizes != self.counts.sum(axis=1))
        if len(wrong):
            row = int(wrong[0])
            label, expected = self.inputs[row], int(self.counts[row].sum())
            problem = f"{sizes[row]:,} records of {label!r} where the counts are of {expected:,}"
            remedy = (
                "pass the table that was counted, without records that it left out, all of it at "
                "once and in memory"
            )
            raise InputError("values", problem, remedy, value=label)
        letters = np.tile(np.arange(self.counts.shape[1]), len(self.counts))
        return dealt(rows, np.repeat(letters, self.counts.ravel()), numbers)
