"""The optimal randomisation as an object that is applied to data, kept in a file, and passed on."""

from __future__ import annotations

import csv
import json
import operator
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.exact import is_sparse
from cvxprivacy.extras import pd
from cvxprivacy.files import whole_file
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.release.apply import (
    Mechanism,
    Places,
    check_letters,
    inverse_transform,
    inverse_transform_sparse,
)
from cvxprivacy.release.balanced import balanced, dealt
from cvxprivacy.release.decoder import Decoder
from cvxprivacy.release.draws import Draws, Numbers, numerators
from cvxprivacy.release.estimation import Estimate, estimate, released_counts, stochastic
from cvxprivacy.tables.labels import read, written
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.text import SHOWN, matrix_html
from cvxprivacy.validation import array, labels, one_of

__all__ = ["Channel", "CountedChannel", "MergedChannel", "load", "write", "write_sdcmicro"]


class Channel(Frozen):
    """A randomised rule p(x̂ | x), the PRAM matrix of a release.

    ``solution.channel`` is one; a matrix in use can be made one, to be applied, inverted and
    compared.  Each argument is an attribute of the same name.

    Parameters
    ----------
    matrix : array_like or sparse array, shape (|X|, |X̂|)
        p(x̂ | x): rows are nonnegative and sum to 1.  That of an optimum of over twenty million
        entries is a ``scipy.sparse.csr_array``.
    inputs, outputs : sequence
        Labels of rows and columns.  With the encoder of (W, X) the inputs are pairs (w, x).
    p_input : array_like, shape (|X|,), optional
        Law of the inputs, for the released marginal.
    schema : TableSchema, optional
        How the records of a table become inputs: ``TableSchema(key=("age", "sex"))``.
    encoder : {"x", "wx", "xz", "wxz"}
        What makes an input: a key letter, with a confidential letter before it, or a letter of
        the side information after it.
    arbitrary : array_like of bool, shape (|X|,), optional
        Rows of inputs that had probability zero: the released marginal stands there (or the
        input itself, under floors and forbidden moves, or what these allow); the optimum says
        nothing about them, and :meth:`apply` warns of records that need them.  An input without
        any allowed row is none of the channel's.
    decoder : Decoder, optional
        What an output u = 0, 1, … means to a user who knows z; a released table has a column of
        u in place of the key columns, and ``decoder.apply`` reads it.
    independent : bool
        Whether its promise holds of records that are drawn independently alone, as local privacy
        does: balanced draws are then refused.

    Raises
    ------
    InputError
        If a row is no law, or labels or masses do not fit the shape of the matrix.

    See Also
    --------
    HammingChannel : The same without a matrix, for many letters.

    Examples
    --------
    Nine in ten records of ``a`` keep their letter, eight in ten of ``b``; half of all are ``a``:

    >>> channel = Channel([[0.9, 0.1], [0.2, 0.8]], inputs="ab", outputs="ab", p_input=[0.5, 0.5])
    >>> channel.released_marginal.round(2).tolist()
    [0.55, 0.45]
    >>> channel.apply(["a", "b", "b"], seed=3).tolist()
    ['a', 'b', 'a']

    One who sees ``a`` and knows the channel believes in ``a`` with 0.45/0.55:

    >>> channel.posterior.round(3).tolist()
    [[0.818, 0.182], [0.111, 0.889]]

    The channel of an optimum comes with its labels and law:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> best = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve().channel
    >>> best.matrix.round(4).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """

    def __init__(
        self,
        matrix: npt.ArrayLike,
        *,
        inputs: Sequence[Hashable],
        outputs: Sequence[Hashable],
        p_input: npt.ArrayLike | None = None,
        schema: TableSchema | None = None,
        encoder: str = "x",
        arbitrary: npt.ArrayLike | None = None,
        decoder: Decoder | None = None,
        independent: bool = False,
    ) -> None:
        self.inputs, self.outputs = labels(inputs, None, "inputs"), list(outputs)
        self.matrix = stochastic(matrix, (len(self.inputs), len(self.outputs)))
        one_of(encoder, "encoder", "x", "wx", "xz", "wxz")
        self.schema, self.encoder, self.decoder = schema, encoder, decoder
        self.independent = bool(independent)
        self._check_letters()
        self.p_input, self.arbitrary = None, np.zeros(len(self.inputs), bool)
        if p_input is not None:
            self.p_input = array(p_input, "p_input", "pass one mass per input", axes=(1,))
        if arbitrary is not None:
            marks = np.asarray(arbitrary)
            if not np.isin(marks, (0, 1)).all():
                problem = f"{marks.dtype} entries"
                raise InputError("arbitrary", problem, "pass one boolean per input")
            self.arbitrary = marks.astype(bool)
        for argument, values in (("p_input", self.p_input), ("arbitrary", self.arbitrary)):
            if values is not None and values.shape != (len(self.inputs),):
                remedy = f"pass {len(self.inputs)} entries, one per input"
                raise InputError(argument, f"shape {values.shape}", remedy)

    def _check_letters(self) -> None:
        """Refuse outputs that the decoder does not read, or letters that fit no columns."""
        decoder = self.decoder
        if not isinstance(decoder, Decoder | None):
            raise InputError("decoder", f"{decoder!r}", "pass a Decoder")
        if decoder is not None and self.outputs != list(range(len(decoder.table))):
            problem, remedy = f"{len(decoder.table)} strategies", "pass one for each output 0, 1, …"
            raise InputError("decoder", problem, remedy)
        if self.schema is not None:
            check_letters("inputs", self.inputs, self.schema.input_columns(self.encoder))
        if self.schema is not None and decoder is None:
            check_letters("outputs", self.outputs, [self.schema.key])

    def __repr__(self) -> str:
        return f"Channel({len(self.inputs)} inputs → {len(self.outputs)} outputs)"

    def _repr_html_(self) -> str:
        corner = f"rows are p(released | {', '.join(self.encoder)})"
        return matrix_html(
            repr(self), self._first_rows(SHOWN), self.inputs, self.outputs, corner=corner
        )

    def _first_rows(self, count: int) -> np.ndarray:
        first = self.matrix[:count]
        return first.toarray() if self._sparse else first

    @property
    def _sparse(self) -> bool:
        return is_sparse(self.matrix)

    # ---- what it says --------------------------------------------------------------------

    @property
    def released_marginal(self) -> np.ndarray:
        """p(x̂), shape (|X̂|,)."""
        return self._prior() @ self.matrix

    @property
    def posterior(self) -> Any:
        """p(x | x̂), shape (|X̂|, |X|), by Bayes' rule; NaN for a letter never released.

        Of a sparse matrix a sparse one, without any entry for such a letter.
        """
        if self._sparse:
            joint = self.matrix.multiply(self._prior()[:, None]).T.tocsr()
            joint.data /= np.repeat(joint.sum(axis=1), np.diff(joint.indptr))
            return joint
        joint = (self._prior()[:, None] * self.matrix).T
        mass = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, mass, out=np.full_like(joint, np.nan), where=mass > 0)

    def _prior(self) -> np.ndarray:
        if self.p_input is None:
            raise InputError("p_input", "unknown", "make the channel with the law of its inputs")
        return self.p_input

    def to_frame(self) -> pd.DataFrame:
        """Return the matrix with its labels, a pandas frame; sparse if the matrix is."""
        index, columns = (pd.Index(x, tupleize_cols=False) for x in (self.inputs, self.outputs))
        if self._sparse:
            sparse_frame: Any = pd.DataFrame.sparse
            return sparse_frame.from_spmatrix(self.matrix, index=index, columns=columns)
        return pd.DataFrame(self.matrix, index=index, columns=columns)

    # ---- other channels ------------------------------------------------------------------

    def named(self, column: str) -> Channel:
        """Return the same channel, whose released letters u stand in a column of another name.

        Parameters
        ----------
        column : str
            Name of the column of u in released tables, ``"U"`` until then.

        Raises
        ------
        InputError
            If the channel has no decoder: it then releases key letters in their own columns.
        """
        if self.decoder is None:
            problem, remedy = "it releases key letters", "rename the columns of the table"
            raise InputError("column", problem, remedy, value=column)
        return self._with(decoder=self.decoder._with(column=str(column)))

    def then(self, other: Channel) -> Channel:
        """Return the channel that applies this one, and ``other`` to what it releases.

        What either promises of records that are drawn independently, the whole promises.

        Parameters
        ----------
        other : Channel
            Every output of this channel is among its inputs.

        Raises
        ------
        UnknownValueError
            If a released letter is no input of ``other``.
        """
        for i, label in enumerate(self.outputs):
            if label not in other._rows:
                problem = f"{label!r} is released and is no input of the second channel"
                remedy = "compose channels whose letters fit"
                raise UnknownValueError("other", problem, remedy, where=i, value=label)
        second = other.matrix[[other._rows[label] for label in self.outputs]]
        changes = {
            "outputs": other.outputs,
            "decoder": other.decoder,
            "independent": self.independent or other.independent,
        }
        return Channel(**{**self._arguments(), "matrix": self.matrix @ second, **changes})

    def _arguments(self) -> dict[str, Any]:
        """Return what the channel is made of, by the names of the arguments."""
        names = ("matrix", "inputs", "outputs", "p_input", "schema", "encoder", "arbitrary")
        return {name: getattr(self, name) for name in (*names, "decoder", "independent")}

    # ---- its use -------------------------------------------------------------------------

    def apply(
        self,
        values: Any,
        *,
        seed: int | np.random.Generator | None = None,
        row_id: Any = None,
        draw: str = "independent",
    ) -> Any:
        """Draw a released letter for each record.

        Parameters
        ----------
        values : frame, series or array_like
            Input letters, tuples where the inputs are tuples.  Of a frame, the columns are
            found by name if the channel was made from a table, else counted off.
        seed : int or numpy.random.Generator, optional
            By default the system's own randomness, which nobody can repeat.  The risk of a release
            holds only while nobody can guess the seed: of one that is to be repeated keep many
            secret bits, such as ``secrets.randbits(128)``.  A seed is stretched, so that trying
            one takes some 45 ms; 0, 1 and 2026 are guessed all the same.  A generator gives the
            key and moves on: the draws are worth what its secrecy is worth.  Channels of several
            columns of the same records need a seed each: by the same numbers two releases tell
            more together than by independent ones, up to all.  A further release that was solved
            for with ``after=`` is drawn record by record, with numbers of its own.
        row_id : column name of a frame, or array_like, optional
            A name of each record.  Its draw then depends on seed and name alone, not on its
            place: the same record meets the same draw in another order, batch or month (so that
            repeated releases cannot be averaged).  It takes the same seed, kept secret.
        draw : {"independent", "balanced"}
            Each record by itself; or so that counts hardly scatter.  Balanced, each record's own
            probabilities are the same, and each count of an input and an output, of a confidential
            value and an output (of a frame with such columns), and of an output is its expectation
            rounded up or down.  What is promised of one record against the table is untouched; who
            knows all other records of a cell, and the counts, knows the last one's letter.  With
            ``row_id`` the table is the same in any order of its records, but a record's draw
            depends on which others there are: take a seed for each table.  Records are balanced,
            not their weights.

        Returns
        -------
        frame, series or ndarray
            In the flavour of ``values``, with its index, names, column order and types; a frame
            comes back whole, with its key columns replaced.  A polars LazyFrame and a Dask frame
            come back lazy, a DuckDB relation as a ``pyarrow.RecordBatchReader``: they are
            streamed.  The draws of a LazyFrame and of a relation are those of the same table in
            memory, whatever the batches; those of a Dask frame are spawned for each partition
            (name ``row_id`` for draws that do not depend on them).

        Raises
        ------
        UnknownValueError
            For a value that is no input; nothing is drawn.
        InputError
            For balanced draws of a channel that is ``independent``, or of a lazy frame.

        Warns
        -----
        UnseenValueWarning
            For values whose rows are ``arbitrary``; of a lazy frame as soon as it is asked for.

        Notes
        -----
        A number below 2⁵² decides each letter, by whole numbers alone.  Entries of a solved channel
        are multiples of 2⁻⁵²: they are drawn with the very probabilities that were proved.  Those
        of a matrix of another origin are rounded to such multiples, by at most 2⁻⁵² (2⁻⁵¹ where a
        row does not sum to one), a zero not at all; so are those of a proof with a finer
        denominator, as a preserved marginal needs.
        """
        return self._mechanism.apply(values, Draws(seed, balanced=self.is_balanced(draw)), row_id)

    @property
    def drawn_jointly(self) -> bool:
        """Whether it needs all records at once, as whole counts do."""
        return False

    def is_balanced(self, draw: str) -> bool:
        """Tell whether draws are balanced, if they may be.

        Parameters
        ----------
        draw : {"independent", "balanced"}
            As of :meth:`apply`.

        Raises
        ------
        InputError
            For balanced draws of a channel that is ``independent``.
        """
        one_of(draw, "draw", "independent", "balanced")
        if draw == "balanced" and self.independent:
            problem = "what was promised, such as local privacy, holds of independent draws alone"
            raise InputError("draw", problem, 'pass draw="independent"', value=draw)
        return draw == "balanced"

    def relabelled(self, labels: Sequence[Hashable]) -> Channel:
        """Return the channel that draws as this one, and releases output i as ``labels[i]``.

        Parameters
        ----------
        labels : sequence of |X̂| labels
            New names of the outputs; those of one name are one output of a
            :class:`cvxprivacy.typing.MergedChannel`.
        """
        if len(set(labels)) < len(labels):
            return MergedChannel(self, labels)
        return Channel(**{**self._arguments(), "outputs": list(labels)})

    def estimate(self, released: Any, *, method: str = "moment", **options: Any) -> Estimate:
        """Estimate the original law from released records, as one who knows the channel.

        Parameters
        ----------
        released : mapping of letter to count, array_like, or frame
            Counts of the released letters, one per output; or the released table itself, if the
            channel was made from one.
        method : {"moment", "em"}
            Invert the channel, or maximise the likelihood, whose shares are never negative.
        **options
            ``tolerance`` and ``iterations`` of ``"em"``: see
            :func:`cvxprivacy.release.estimation.estimate`.
        """
        counts = released_counts(released, self.outputs, self.schema, self._column)
        return estimate(self.matrix, counts, method=method, letters=self.inputs, **options)

    @property
    def _column(self) -> str | None:
        """The column of u, where there is a decoder."""
        return None if self.decoder is None else self.decoder.column

    @cached_property
    def _mechanism(self) -> Mechanism:
        drawing = (self._rows, self.outputs, self.arbitrary, self._draw, self._each)
        return Mechanism(*drawing, self._balanced, self.schema, self.encoder, self._column)

    def _balanced(
        self, rows: Places, values: Sequence[Any] | None, draws: Draws, names: Any
    ) -> Places:
        """Return the number of each record's released letter, drawn together."""
        return balanced(self._numerators, rows, values, draws, names)

    _each = 1  # numbers that decide a record's released letter

    def _draw(self, rows: Places, numbers: Numbers) -> Places:
        """Return the number of each record's released letter."""
        if self._sparse:
            return inverse_transform_sparse(self._numerators, rows, numbers[0])
        return inverse_transform(self._cumulative, rows, numbers[0])

    @cached_property
    def _rows(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(self.inputs)}

    @cached_property
    def _numerators(self) -> Any:
        """The probabilities that are drawn by, over 2⁵²: those of a proof, or next to them."""
        return numerators(self.matrix)

    @cached_property
    def _cumulative(self) -> Numbers:
        return np.cumsum(self._numerators, axis=1)

    # ---- files ---------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the channel as JSON, whole or not at all, readable by its owner only.

        The file holds the law of the inputs, and how a table's records become letters, so that
        next month's table goes through the same channel.

        Parameters
        ----------
        path : str or path
            Where it is written; the path is returned.

        Raises
        ------
        InputError
            For labels that JSON cannot hold.
        """
        with whole_file(path, private=True) as file:
            self.write(file)
        return Path(path)

    def write(self, file: IO[str]) -> None:
        """Write what :meth:`save` writes into an open file.

        Parameters
        ----------
        file : text file
            Open for writing; the caller closes it.
        """
        write(self._arguments(), file)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Channel:
        """Read what :meth:`save` wrote: a channel of the kind that the file holds.

        A Hamming channel is read as a :class:`Channel` of the same law, whose draws are others.

        Parameters
        ----------
        path : str or path
            A file of JSON.

        Raises
        ------
        InputError
            For any other file.
        """
        return load(path, cls if cls.__init__ is Channel.__init__ else Channel)

    def to_sdcmicro(self, path: str | os.PathLike[str], *, separator: str = "|") -> Path:
        """Write the matrix as CSV for ``sdcMicro::pram(pd=)`` of R.

        There, ``pd <- as.matrix(read.csv(path, check.names=FALSE)[-1])`` and
        ``rownames(pd) <- colnames(pd)``, with the variable coded as
        ``factor(x, levels=rownames(pd))``.

        Parameters
        ----------
        path : str or path
            Where the file is written; the path is returned.
        separator : str
            What joins letters of several columns, as R's ``paste(sep="|")`` does.

        Raises
        ------
        InputError
            If the outputs are not the inputs, which sdcMicro asks for, or letters read the same
            as text.
        """
        if self._sparse:
            problem = f"a file of {self.matrix.shape[0]:,} rows as long"
            raise InputError("matrix", problem, "put letters together, or save the channel")
        write_sdcmicro(path, self.matrix, self.inputs, self.outputs, separator)
        return Path(path)


class MergedChannel(Channel):
    """A channel of which several outputs are released as one: ``channel.relabelled(labels)``.

    It is the law p(g(x̂) | x) of a map g, with the sum of probabilities wherever they are one.  It
    draws x̂ as the first channel does and releases g(x̂), so that the same seed makes the same table,
    also after ``save`` and ``load``.  The channel of a table that ``ensure="table"`` mended is one:
    its g was chosen by looking at that table, W included, which no bound on its leakage covers.

    Parameters
    ----------
    drawn : Channel
        What draws.
    labels : sequence of label
        What each output of it is released as.

    Examples
    --------
    >>> first = Channel(np.eye(3), inputs="abc", outputs="abc", p_input=[0.5, 0.3, 0.2])
    >>> merged = first.relabelled(["a", "b", "b"])
    >>> merged, merged.matrix.tolist(), merged.released_marginal.tolist()
    (MergedChannel(3 inputs → 2 of 3 outputs), [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [0.5, 0.5])
    >>> merged.apply(["c", "a"], seed=1).tolist()
    ['b', 'a']
    """

    def __init__(self, drawn: Channel, labels: Sequence[Hashable]) -> None:
        self.drawn, self.labels = drawn, list(labels)
        place = {label: i for i, label in enumerate(dict.fromkeys(self.labels))}
        self._places = np.array([place[label] for label in self.labels])
        size = len(drawn.outputs)
        if len(self.labels) != size:
            remedy = f"pass {size}, one per output"
            raise InputError("labels", f"{len(self.labels)} labels", remedy)
        ones = sparse.csr_array((np.ones(size), (np.arange(size), self._places)))
        arguments = {"matrix": drawn.matrix @ ones, "outputs": list(place)}
        super().__init__(**{**drawn._arguments(), **arguments})

    def __repr__(self) -> str:
        sizes = f"{len(self.outputs)} of {len(self.labels)}"
        return f"MergedChannel({len(self.inputs)} inputs → {sizes} outputs)"

    def is_balanced(self, draw: str) -> bool:
        """Tell whether draws are balanced, if they may be; what is merged may differ by more.

        Parameters
        ----------
        draw : {"independent", "balanced"}
            As of :meth:`Channel.apply`.
        """
        return self.drawn.is_balanced(draw)

    def relabelled(self, labels: Sequence[Hashable]) -> Channel:
        """Return the channel that draws as this one, and releases output i as ``labels[i]``.

        Parameters
        ----------
        labels : sequence of |X̂| labels
            As of :meth:`Channel.relabelled`.
        """
        return self.drawn.relabelled([labels[place] for place in self._places.tolist()])

    def write(self, file: IO[str]) -> None:
        """Write what :meth:`save` writes into an open file.

        Parameters
        ----------
        file : text file
            Open for writing; the caller closes it.
        """
        _extended(self.drawn.write, file, released_as=[written(label) for label in self.labels])

    @property
    def drawn_jointly(self) -> bool:
        """Whether it needs all records at once."""
        return self.drawn.drawn_jointly

    @property
    def _each(self) -> int:  # type: ignore[override]
        return self.drawn._each

    def _draw(self, rows: Places, numbers: Numbers) -> Places:
        return np.asarray(self._places[self.drawn._draw(rows, numbers)])

    def _balanced(
        self, rows: Places, values: Sequence[Any] | None, draws: Draws, names: Any
    ) -> Places:
        return np.asarray(self._places[self.drawn._balanced(rows, values, draws, names)])


_WHOLE = "pass whole numbers of records ≥ 0, a row for each input"


class CountedChannel(Channel):
    """The channel p(x̂ | s) = m(s, x̂)/n(s) of whole counts, applied so that these come out.

    The records of a cell s are put in a random order, in which the first m(s, x̂₁) are released as
    x̂₁, and so on: each record's own probabilities are those of the channel, and the counts are
    certain.  Records are not drawn independently of each other, and ``draw="balanced"`` changes
    nothing.  It is of one table, and releases no other.

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

    @property
    def drawn_jointly(self) -> bool:
        """It does: they are dealt to the counts."""
        return True

    def relabelled(self, labels: Sequence[Hashable]) -> Channel:
        """Return the channel that deals as this one, and releases output i as ``labels[i]``.

        Parameters
        ----------
        labels : sequence of |X̂| labels
            As of :meth:`Channel.relabelled`.
        """
        if len(set(labels)) < len(labels):
            return MergedChannel(self, labels)
        how: Any = {"inputs": self.inputs, "schema": self.schema, "encoder": self.encoder}
        return CountedChannel(self.counts, outputs=list(labels), **how)

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
        """Write what :meth:`save` writes into an open file: the counts, of which the law is made.

        Parameters
        ----------
        file : text file
            Open for writing; the caller closes it.
        """
        _extended(super().write, file, counts=_listed(sparse.csr_array(self.counts)))

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


# ---- files --------------------------------------------------------------------------------


FORMAT = "cvxprivacy channel 1"


def write(arguments: Mapping[str, Any], file: IO[str]) -> None:
    """Write a channel, given as the arguments it is made of, into an open file."""
    p_input, schema, decoder = (arguments[name] for name in ("p_input", "schema", "decoder"))
    document = {
        "schema": FORMAT,
        "inputs": [written(label) for label in arguments["inputs"]],
        "outputs": [written(label) for label in arguments["outputs"]],
        "matrix": _listed(arguments["matrix"]),
        "p_input": None if p_input is None else p_input.tolist(),
        "arbitrary": arguments["arbitrary"].tolist(),
        "encoder": arguments["encoder"],
        "coding": None if schema is None else schema.to_dict(),
        "decoder": None if decoder is None else decoder.to_dict(),
        "independent": arguments["independent"],
        "released_as": None,
    }
    json.dump(document, file, ensure_ascii=False, allow_nan=False)


def _extended(written_by: Callable[[IO[str]], None], file: IO[str], **more: Any) -> None:
    """Write what another channel writes, with more fields."""
    text = StringIO()
    written_by(text)
    document = {**json.loads(text.getvalue()), **more}
    json.dump(document, file, ensure_ascii=False, allow_nan=False)


def _listed(matrix: Any) -> Any:
    """Return a matrix in lists: of a sparse one the places and numbers of each row."""
    if not is_sparse(matrix):
        return matrix.tolist()
    rows = (np.split(part, matrix.indptr[1:-1]) for part in (matrix.indices, matrix.data))
    places, values = ([row.tolist() for row in part] for part in rows)
    return {"places": places, "values": values, "columns": matrix.shape[1]}


def _matrix(listed: Any) -> Any:
    """Return the matrix that lists hold."""
    if not isinstance(listed, dict):
        return listed
    places, values, columns = listed["places"], listed["values"], listed["columns"]
    if [*map(len, places)] != [*map(len, values)]:
        raise ValueError("rows of places and values of different lengths")
    for row in places:
        if {*map(type, row)} != {int} or not all(map(operator.lt, [-1, *row], [*row, columns])):
            raise ValueError("places that are out of order, or not among the columns")
    ends = np.cumsum([0, *map(len, places)])
    parts = np.concatenate(values), np.concatenate(places).astype(np.int64), ends
    return sparse.csr_array(parts, shape=(len(places), columns))


def _counts(listed: Any, channel: Channel) -> np.ndarray:
    """Return the counts that a file holds, which are those of its law."""
    counts, shape = _matrix(listed), channel.matrix.shape
    if counts.shape != shape:
        raise ValueError(f"counts of shape {counts.shape}, where the matrix has {shape}")
    table = counts.toarray()
    sizes = table.sum(axis=1)
    whole_records = (table == np.rint(table)).all() and (sizes > 0).all()
    if not whole_records or not np.allclose(table / sizes[:, None], channel.matrix, atol=1e-12):
        raise ValueError("counts that are not those of the matrix")
    return table


def load(path: str | os.PathLike[str], make: Callable[..., Any]) -> Any:
    """Return what ``make`` makes of the arguments that a file holds.

    Raises
    ------
    InputError
        If the file is not a channel's.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            document = json.load(file)
        arguments = _arguments(document)
        channel = make(**arguments)
        if (counts := document.get("counts")) is not None:
            some = {name: arguments[name] for name in ("inputs", "outputs", "schema", "encoder")}
            channel = CountedChannel(_counts(counts, channel), **some)
        labels = document.get("released_as")
        return channel if labels is None else channel.relabelled([*map(read, labels)])
    except OSError as error:
        problem = f"{os.fspath(path)!r} cannot be read ({error.strerror})"
        raise InputError("path", problem, "pass a file that exists") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        problem = f"{os.fspath(path)!r} is no channel ({message})"
        raise InputError("path", problem, "pass a file that Channel.save wrote") from None


def _arguments(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a document holds; what it lacks came after it was written."""
    if document["schema"] != FORMAT:
        raise ValueError(f"its schema is {document['schema']!r}")
    schema, decoder = document["coding"], document.get("decoder")
    schema = None if schema is None else TableSchema.from_dict(schema)
    return {
        "inputs": [read(label) for label in document["inputs"]],
        "outputs": [read(label) for label in document["outputs"]],
        "matrix": _matrix(document["matrix"]),
        **{name: document[name] for name in ("p_input", "arbitrary", "encoder")},
        "schema": schema,
        "decoder": None if decoder is None else Decoder.from_dict(decoder, schema),
        "independent": document.get("independent", False),
    }


def write_sdcmicro(
    path: str | os.PathLike[str],
    matrix: np.ndarray,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    separator: str,
) -> None:
    """Write a matrix as CSV, as ``Channel.to_sdcmicro`` has it."""
    parts = [x if isinstance(x, tuple) else (x,) for x in inputs]
    names = [separator.join("NA" if p is None else str(p) for p in x) for x in parts]
    if set(outputs) != set(inputs) or len(outputs) != len(inputs):
        remedy = "release key letters, each under its own column"
        raise InputError("outputs", "not the inputs, as sdcMicro wants them", remedy)
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        problem = f"two letters read {twice!r}"
        raise InputError("separator", problem, "pass another separator", value=twice)
    columns = [outputs.index(x) for x in inputs]
    with whole_file(path) as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["", *names])
        for name, row in zip(names, matrix[:, columns].tolist(), strict=True):
            writer.writerow([name, *row])
