"""The optimal randomisation as an object that is applied to data, kept, and passed on."""

from __future__ import annotations

import csv
import json
import os
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from flint import arb_mat

from cvxprivacy.errors import InputError, UnknownValueError, UnseenValueWarning
from cvxprivacy.files import whole_file
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.model.matrices import block, identity, rationals, rounded
from cvxprivacy.release.decoder import Decoder
from cvxprivacy.release.draws import Draws
from cvxprivacy.tables.frames import Coding, cell, narwhal, palette, plain, replaced
from cvxprivacy.tables.labels import read, written
from cvxprivacy.validation import array, labels, present

if TYPE_CHECKING:
    import pandas as pd

    from cvxprivacy.release.estimation import Estimate

__all__ = ["Channel", "GaussianRelease"]

SCHEMA = "cvxprivacy channel 1"


class Channel(Frozen):
    """A randomised rule p(x̂ | x), the PRAM matrix of a release.

    Parameters
    ----------
    matrix : array_like, shape (|X|, |X̂|)
        Rows are nonnegative and sum to 1.
    inputs, outputs : sequence
        Labels of rows and columns.  With the encoder of (W, X) the inputs are pairs (w, x).
    p_input : array_like, shape (|X|,), optional
        Law of the inputs, for the released marginal.
    coding : Coding, optional
        How the records of a table become inputs: ``Coding(key=("age", "sex"))``.
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
    """

    def __init__(
        self,
        matrix: npt.ArrayLike,
        *,
        inputs: Sequence[Hashable],
        outputs: Sequence[Hashable],
        p_input: npt.ArrayLike | None = None,
        coding: Coding | None = None,
        encoder: str = "x",
        arbitrary: npt.ArrayLike | None = None,
        decoder: Decoder | None = None,
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
        if encoder not in ("x", "wx", "xz", "wxz"):
            remedy = 'use "x", "wx", "xz" or "wxz"'
            raise InputError("encoder", f"{encoder!r} is unknown", remedy)
        if not isinstance(decoder, Decoder | None):
            raise InputError("decoder", f"{decoder!r}", "pass a Decoder")
        if decoder is not None and self.outputs != list(range(len(decoder.table))):
            problem, remedy = f"{len(decoder.table)} strategies", "pass one for each output 0, 1, …"
            raise InputError("decoder", problem, remedy)
        if coding is not None:
            groups = columns_of(coding, encoder)
            letters = [("inputs", label, i, groups) for i, label in enumerate(self.inputs)]
            if decoder is None:
                letters += [("outputs", y, i, [coding.key]) for i, y in enumerate(self.outputs)]
            for argument, label, i, parts in letters:
                if not _fits(label, parts):
                    names = ", ".join(map(str, parts))
                    problem = f"{label!r} is no letter of the columns {names}"
                    remedy = "pass one value per column, in a tuple where there are several"
                    raise InputError(argument, problem, remedy, where=i, value=label)
        k.flags.writeable = False
        self.matrix, self.coding, self.encoder, self.decoder = k, coding, encoder, decoder
        self.p_input = None
        if p_input is not None:
            self.p_input = array(p_input, "p_input", "pass one mass per input", axes=(1,))
        self.arbitrary = np.zeros(len(k), bool)
        if arbitrary is not None:
            marks = np.asarray(arbitrary)
            if not np.isin(marks, (0, 1)).all():
                problem = f"{marks.dtype} entries"
                raise InputError("arbitrary", problem, "pass one boolean per input")
            self.arbitrary = marks.astype(bool)
        for argument, given in (("p_input", self.p_input), ("arbitrary", self.arbitrary)):
            if given is not None and given.shape != (len(k),):
                problem = f"shape {given.shape}"
                raise InputError(argument, problem, f"pass {len(k)} entries, one per input")

    def __repr__(self) -> str:
        return f"Channel({len(self.inputs)} inputs → {len(self.outputs)} outputs)"

    # ---- what it says --------------------------------------------------------------------

    @property
    def released_marginal(self) -> np.ndarray:
        """p(x̂), shape (|X̂|,)."""
        return self._prior() @ self.matrix

    @property
    def posterior(self) -> np.ndarray:
        """p(x | x̂), shape (|X̂|, |X|), by Bayes' rule; NaN for a letter never released."""
        joint = (self._prior()[:, None] * self.matrix).T
        mass = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, mass, out=np.full_like(joint, np.nan), where=mass > 0)

    def _prior(self) -> np.ndarray:
        if self.p_input is None:
            raise InputError("p_input", "unknown", "make the channel with the law of its inputs")
        return self.p_input

    def named(self, column: str) -> Channel:
        """Return the same channel, whose released letters u stand in a column of another name."""
        if self.decoder is None:
            problem, remedy = "it releases key letters", "rename the columns of the table"
            raise InputError("column", problem, remedy)
        return self._with(decoder=self.decoder._with(column=str(column)))

    def then(self, other: Channel) -> Channel:
        """Return the channel that applies this one, and ``other`` to what it releases.

        Raises
        ------
        UnknownValueError
            If a released letter is no input of ``other``.
        """
        for i, label in enumerate(self.outputs):
            if label not in other._places:
                problem = f"{label!r} is released and is no input of the second channel"
                remedy = "compose channels whose letters fit"
                raise UnknownValueError("other", problem, remedy, where=i, value=label)
        rows = other.matrix[[other._places[label] for label in self.outputs]]
        return Channel(
            self.matrix @ rows,
            inputs=self.inputs,
            outputs=other.outputs,
            p_input=self.p_input,
            coding=self.coding,
            encoder=self.encoder,
            arbitrary=self.arbitrary,
            decoder=other.decoder,
        )

    def estimate(self, released: Any, *, method: str = "moment", **options: Any) -> Estimate:
        """Estimate the original law from released records, as one who knows the channel.

        Parameters
        ----------
        released : mapping of letter to count, array_like, or frame
            Counts of the released letters, one per output; or the released table itself, if the
            channel was made from one.
        method : {"moment", "em"}
            See :func:`cvxprivacy.release.estimation.estimate`, which takes further ``options`` too.

        Returns
        -------
        Estimate
            Law, standard errors and covariance over ``inputs``.
        """
        from cvxprivacy.release.estimation import estimate

        places = {label: i for i, label in enumerate(self.outputs)}
        if self.coding is not None and not isinstance(released, dict | list | np.ndarray):
            if self.coding.weights is not None:
                remedy = "pass the weighted counts of the released letters"
                raise InputError("released", "a table whose records have weights", remedy)
            frame = narwhal(released).lazy()
            names = self.coding.key if self.decoder is None else (self.decoder.column,)
            known = frame.collect_schema().names()
            for name in names:
                present(name, known, "released")
            found = frame.group_by(*names).agg(nw.len().alias("records")).collect()
            keys = [cell(row) for row in zip(*(plain(found[n]) for n in names), strict=True)]
            released = dict(zip(keys, plain(found["records"]), strict=True))
        if isinstance(released, dict):
            counts = np.zeros(len(self.outputs))
            for label, count in released.items():
                if label not in places:
                    remedy = "count the table that this channel released"
                    problem = f"{label!r} is never released"
                    raise UnknownValueError("released", problem, remedy, value=label)
                counts[places[label]] += count
            released = counts
        return estimate(self.matrix, released, method=method, letters=self.inputs, **options)

    # ---- drawing -------------------------------------------------------------------------

    def apply(
        self,
        values: Any,
        *,
        seed: int | np.random.Generator,
        row_id: Any = None,
    ) -> Any:
        """Draw a released letter for each record.

        Parameters
        ----------
        values : frame, series or array_like
            Input letters, tuples where the inputs are tuples.  Of a frame, the columns are
            found by name if the channel was made from a table, else counted off.
        seed : int or numpy.random.Generator
            The risk of the release holds only while nobody can guess it: use a fresh one of
            many bits, such as ``secrets.randbits(128)``.
        row_id : column name of a frame, or array_like, optional
            A name of each record.  Its draw then depends on seed and name alone, not on its
            place: the same record meets the same draw in another order, batch or month (so that
            repeated releases cannot be averaged).  Keep the seed secret.

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

        Warns
        -----
        UnseenValueWarning
            For values whose rows are ``arbitrary``; of a lazy frame as soon as it is asked for.
        """
        draws = Draws(seed, keyed=row_id is not None)
        if hasattr(type(values), "columns") or hasattr(type(values), "column_names"):
            frame = narwhal(values)
            if isinstance(frame, nw.LazyFrame):
                from cvxprivacy.release.streaming import streamed

                return streamed(self, values, frame, draws, row_id)
            rows = self.rows(self._letters(frame, self.columns_of(frame.columns)[0]))
            self.warn_of_unseen(self._unseen(rows))
            return self.released(frame, values, draws, row_id, rows=rows)
        series = nw.from_native(values, series_only=True, pass_through=True)
        named = isinstance(series, nw.Series)
        items = _tuples(plain(series)) if isinstance(series, nw.Series) else _items(values)
        rows = self.rows(items)
        self.warn_of_unseen(self._unseen(rows))
        drawn = self.drawn(rows, draws, None if row_id is None else _items(row_id))
        if not named:
            return self._outputs[drawn]
        chosen = nw.to_native(palette(self.outputs, series)[drawn])
        if hasattr(values, "set_axis"):  # pandas
            return chosen.set_axis(values.index).rename(values.name)
        return nw.to_native(nw.from_native(chosen, series_only=True).alias(series.name))

    def rows(self, items: Sequence[Any], first: int = 0) -> npt.NDArray[np.int64]:
        """Return each input's row of the matrix; ``first`` is the number of the first record."""
        places, found = self._places, np.empty(len(items), dtype=np.int64)
        for i, item in enumerate(items):
            try:
                found[i] = places[item]
            except (KeyError, TypeError):
                raise UnknownValueError(
                    "values",
                    f"{item!r} is no input of the channel",
                    "release only values that the source had, or rebuild it from this table",
                    where=first + i,
                    value=item,
                ) from None
        return found

    def _unseen(self, rows: npt.NDArray[np.int64]) -> dict[Any, int]:
        """Return how many records have each input that the source never had."""
        found, counts = np.unique(rows[self.arbitrary[rows]], return_counts=True)
        return {self.inputs[i]: n for i, n in zip(found, counts.tolist(), strict=True)}

    def warn_of_unseen(self, counts: Mapping[Any, int], *, stacklevel: int = 3) -> None:
        """Warn of the inputs that the source never had, among records counted by input."""
        unseen = {x: n for x, n in counts.items() if self.arbitrary[self._places[x]]}
        if unseen:
            warnings.warn(UnseenValueWarning(unseen), stacklevel=stacklevel)

    def drawn(
        self, rows: npt.NDArray[np.int64], draws: Draws, names: Sequence[Any] | None, first: int = 0
    ) -> npt.NDArray[np.int64]:
        """Return the number of each record's released letter."""
        uniform = draws(len(rows), names, first)
        found = np.empty(len(rows), dtype=np.int64)
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], np.arange(len(self.inputs) + 1))
        for row in np.unique(rows):
            on = order[starts[row] : starts[row + 1]]
            found[on] = np.searchsorted(self._cumulative[row], uniform[on], side="right")
        return found

    def released(
        self,
        frame: nw.DataFrame[Any],
        values: Any,
        draws: Draws,
        row_id: Any,
        *,
        first: int = 0,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> Any:
        """Return a frame in memory with its key columns replaced; ``rows`` if they are known."""
        known = list(frame.columns)
        groups, outputs = self.columns_of(known)
        drawn = self.drawn(
            self.rows(self._letters(frame, groups), first) if rows is None else rows,
            draws,
            None if row_id is None else plain(frame[self._id(row_id, frame.columns)]),
            first,
        )
        if self.decoder is not None:
            columns = [nw.new_series(outputs[0], drawn, backend=frame.implementation)]
            key = groups[self.encoder.index("x")]
            order = [outputs[0] if n == key[0] else n for n in known if n not in key[1:]]
            frame = frame.drop(*key)
        else:
            palettes = self.palettes([frame[name] for name in outputs])
            columns = [palette[drawn].alias(name) for palette, name in palettes]
        if hasattr(values, "set_axis"):  # pandas aligns by index
            columns = [nw.maybe_set_index(c, index=values.index) for c in columns]
        framed = frame.with_columns(*columns)
        if self.decoder is not None:
            return nw.to_native(framed.select(order))
        done = nw.to_native(framed)
        return done.set_axis(values.columns, axis=1) if hasattr(values, "set_axis") else done

    def columns_of(self, known: Sequence[str]) -> tuple[list[Sequence[str]], list[str]]:
        """Return the groups of columns that make an input, and the columns that are released."""
        if self.coding is None:
            first = self.inputs[0]
            parts = len(first) if isinstance(first, tuple) else 1
            if len(known) != parts:
                problem = f"{len(known)} columns where an input has {parts}"
                raise InputError("values", problem, "pass the key columns alone, in their order")
            if self.decoder is not None:
                remedy = "make the source with from_table, or pass a list of letters"
                raise InputError("values", "columns that the channel does not know", remedy)
            for i, label in enumerate(self.outputs):
                if not _fits(label, [known]):
                    problem = f"{label!r} is no letter of the columns {', '.join(known)}"
                    raise InputError("outputs", problem, "name the columns in coding=", where=i)
            return [list(known)], list(known)
        groups = columns_of(self.coding, self.encoder)
        for name in (name for group in groups for name in group):
            present(name, known, "values")
        if self.decoder is None:
            return groups, list(self.coding.key)
        if self.decoder.column in known:
            problem = f"a column {self.decoder.column!r} is there already"
            remedy = (
                "rename it, or use channel.named(…), which releases u in a column of another name"
            )
            raise InputError("values", problem, remedy)
        return groups, [self.decoder.column]

    def _letters(self, frame: nw.DataFrame[Any], groups: Sequence[Sequence[str]]) -> list[Any]:
        coding = self.coding or Coding(key=tuple(groups[0]))
        parts = [coding.letters(frame, group) for group in groups]
        return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))

    def palettes(self, columns: Sequence[nw.Series[Any]]) -> list[tuple[nw.Series[Any], str]]:
        """Return each released column's letters, one per output, in the column's own type."""
        rows: list[Any] = [y if len(columns) > 1 else (y,) for y in self.outputs]
        return [
            (palette([y[i] for y in rows], column), column.name) for i, column in enumerate(columns)
        ]

    def _id(self, row_id: Any, known: Sequence[str]) -> str:
        present(row_id, known, "row_id")
        return str(row_id)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(self.inputs)}

    @cached_property
    def _cumulative(self) -> np.ndarray:
        cumulative = np.cumsum(self.matrix, axis=1)
        return cumulative / cumulative[:, -1:]  # a draw below 1 never falls beyond the last letter

    @cached_property
    def _outputs(self) -> np.ndarray:
        kinds = {type(label) for label in self.outputs}
        if len(kinds) > 1 or tuple in kinds:
            found = np.empty(len(self.outputs), dtype=object)
            found[:] = self.outputs
            return found
        return np.asarray(self.outputs)

    # ---- kept and passed on --------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the channel as JSON, whole or not at all, readable by its owner only.

        The file holds the law of the inputs, and how a table's records become letters, so that
        next month's table goes through the same channel.

        Raises
        ------
        InputError
            For labels that JSON cannot hold: use text, numbers or dates.
        """
        with whole_file(path, private=True) as file:
            self.write(file)
        return Path(path)

    def write(self, file: IO[str]) -> None:
        """Write the channel into an open file."""
        document = {
            "schema": SCHEMA,
            "inputs": [written(label) for label in self.inputs],
            "outputs": [written(label) for label in self.outputs],
            "matrix": self.matrix.tolist(),
            "p_input": None if self.p_input is None else self.p_input.tolist(),
            "arbitrary": self.arbitrary.tolist(),
            "encoder": self.encoder,
            "coding": None if self.coding is None else self.coding.to_dict(),
            "decoder": None if self.decoder is None else self.decoder.to_dict(),
        }
        json.dump(document, file, ensure_ascii=False, allow_nan=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Channel:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InputError
            If the file is not a channel's.
        """
        try:
            with Path(path).open(encoding="utf-8") as file:
                document = json.load(file)
            if document["schema"] != SCHEMA:
                raise ValueError(f"its schema is {document['schema']!r}")
            coding, decoder = document["coding"], document.get("decoder")
            coding = None if coding is None else Coding.from_dict(coding)
            return cls(
                document["matrix"],
                inputs=[read(label) for label in document["inputs"]],
                outputs=[read(label) for label in document["outputs"]],
                p_input=document["p_input"],
                arbitrary=document["arbitrary"],
                encoder=document["encoder"],
                coding=coding,
                decoder=None if decoder is None else Decoder.from_dict(decoder, coding),
            )
        except OSError as error:
            problem = f"{os.fspath(path)!r} cannot be read ({error.strerror})"
            raise InputError("path", problem, "pass a file that exists") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            said = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            problem = f"{os.fspath(path)!r} is no channel ({said})"
            raise InputError("path", problem, "pass a file that Channel.save wrote") from None

    def to_frame(self) -> pd.DataFrame:
        """Return the matrix with its labels, a pandas frame."""
        import pandas as pd

        return pd.DataFrame(
            self.matrix,
            index=pd.Index(self.inputs, tupleize_cols=False),
            columns=pd.Index(self.outputs, tupleize_cols=False),
        )

    def to_sdcmicro(self, path: str | os.PathLike[str], *, separator: str = "|") -> Path:
        """Write the matrix as CSV for ``sdcMicro::pram(pd=)`` of R.

        There, ``pd <- as.matrix(read.csv(path, check.names=FALSE)[-1])`` and
        ``rownames(pd) <- colnames(pd)``, with the variable coded as
        ``factor(x, levels=rownames(pd))``.  Letters of several columns are
        joined by ``separator``, as R's ``paste(sep="|")`` does.

        Raises
        ------
        InputError
            Unless the outputs are the inputs, which sdcMicro asks for, or if two letters read
            the same as text.
        """
        parts = [x if isinstance(x, tuple) else (x,) for x in self.inputs]
        names = [separator.join("NA" if p is None else str(p) for p in x) for x in parts]
        if set(self.outputs) != set(self.inputs) or len(self.outputs) != len(self.inputs):
            remedy = "release key letters, each under its own column"
            raise InputError("outputs", "not the inputs, as sdcMicro wants them", remedy)
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise InputError("separator", f"two letters read {twice!r}", "pass another separator")
        columns = [self.outputs.index(x) for x in self.inputs]
        with whole_file(path) as file:
            writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
            writer.writerow(["", *names])
            for name, row in zip(names, self.matrix[:, columns].tolist(), strict=True):
                writer.writerow([name, *row])
        return Path(path)


class GaussianRelease(Frozen):
    """X̂ = E[X|Z] + (I − A)(X − E[X|Z]) + N', N' Gaussian, with Cov(X − X̂) = Σ.

    A = Σ Σ_X⁻¹ and Cov(N') = Σ − Σ Σ_X⁻¹ Σ (given Z, where Z is known to the encoder), so that
    E[X | X̂] = X̂ and the conditional mean of X loses nothing: Rebollo-Monedero et al. 2010,
    Theorem 2, in a form that inverts no A.

    Attributes
    ----------
    gain : ndarray
        I − A, of the independent encoded variables.
    noise : ndarray
        Cov(N').
    inputs, outputs : tuple of str
        Variables that are read, and that are released.
    """

    def __init__(
        self,
        sigma: Any,
        *,
        covariance: Any,
        mean: np.ndarray,
        mean_out: np.ndarray,
        given: int,
        expansion: Any,
        inputs: Sequence[str],
        outputs: Sequence[str],
        scale: np.ndarray | None = None,
        scale_out: np.ndarray | None = None,
    ) -> None:
        own = rationals(sigma)
        size = own.nrows()
        law, x, z = rationals(covariance), range(size), range(size, size + given)
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.scale = frozen(np.ones(len(inputs)) if scale is None else scale)
        self.scale_out = frozen(np.ones(len(outputs)) if scale_out is None else scale_out)
        self.mean, self.mean_out = frozen(mean), frozen(mean_out)
        self.expansion = frozen(np.asarray(expansion, dtype=float))

        def regression() -> Any:
            return arb_mat(block(law, z, z)).solve(arb_mat(block(law, z, x))).transpose()

        def kept() -> Any:
            """Return Σ_X⁻¹ Σ (given Z)."""
            whole = arb_mat(block(law, x, x))
            if given:
                whole = whole - regression() * arb_mat(block(law, z, x))
            return whole.solve(arb_mat(own))

        least = min(float(own[i, i]) for i in x)
        self.regression = frozen(rounded(regression) if given else np.zeros((size, 0)))
        self.gain = frozen(rounded(lambda: arb_mat(identity(size)) - kept().transpose(), 1.0))
        noise = rounded(lambda: arb_mat(own) - arb_mat(own) * kept(), least)
        self.noise = frozen((noise + noise.T) / 2)

    def __repr__(self) -> str:
        return f"GaussianRelease({len(self.inputs)} variables → {len(self.outputs)})"

    def apply(self, values: Any, *, seed: int | np.random.Generator) -> Any:
        """Draw a released vector for each record.

        Parameters
        ----------
        values : frame or array_like, shape (N, k)
            Columns ``inputs``: by name in a frame, else in their order; N may be left out.
        seed : int or numpy.random.Generator

        Returns
        -------
        frame or ndarray
            A frame comes back whole, with the key columns replaced, in its own flavour.
        """
        draws = Draws(seed, keyed=False)
        framed = hasattr(type(values), "columns") or hasattr(type(values), "column_names")
        if not framed:
            remedy = f"pass finite numbers, {len(self.inputs)} in each row"
            if np.shape(values) == (0, len(self.inputs)):
                return np.zeros((0, len(self.outputs)))
            data = array(values, "values", remedy, axes=(1, 2), negative=True)
            if data.shape[-1] != len(self.inputs):
                raise InputError("values", f"shape {data.shape}", remedy)
            return self._released(np.atleast_2d(data), draws).reshape(*data.shape[:-1], -1)
        frame = narwhal(values)
        if isinstance(frame, nw.LazyFrame):
            raise InputError("values", "a lazy frame", "collect it first")
        if not len(frame):
            return values
        missing = [name for name in self.inputs if name not in frame.columns]
        if missing:
            said = ", ".join(frame.columns)
            raise InputError("values", f"no column {missing[0]!r}", f"there are {said}")
        remedy = "pass finite numbers"
        columns = [
            array(plain(frame[name]), f"column {name!r}", remedy, axes=(1,), negative=True)
            for name in self.inputs
        ]
        released = self._released(np.array(columns).T, draws)
        return replaced(values, dict(zip(self.outputs, released.T, strict=True)))

    def _released(self, data: np.ndarray, draws: Draws) -> np.ndarray:
        size = len(self.gain)
        centred = data / self.scale - self.mean
        guess = centred[:, size:] @ self.regression.T
        values, vectors = np.linalg.eigh(self.noise)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = draws.generator.standard_normal((len(data), size)) @ root.T
        found = guess + (centred[:, :size] - guess) @ self.gain.T + noise
        own = found[:, size - self.expansion.shape[1] :] @ self.expansion.T + self.mean_out
        return own * self.scale_out


def columns_of(coding: Coding, encoder: str) -> list[Sequence[str]]:
    """Return the groups of columns that make an input."""
    groups = {"w": coding.sensitive, "x": coding.key, "z": coding.side}
    return [groups[axis] for axis in encoder]


def _fits(label: Any, groups: Sequence[Sequence[str]]) -> bool:
    """Tell whether a label has one value per column of each group."""
    if len(groups) > 1:
        many = isinstance(label, tuple) and len(label) == len(groups)
        return many and all(_fits(x, [g]) for x, g in zip(label, groups, strict=True))
    if len(groups[0]) == 1:
        return not isinstance(label, tuple)
    return isinstance(label, tuple) and len(label) == len(groups[0])


def _items(values: Any) -> list[Any]:
    """Return one hashable label per record."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError("values", f"{values!r}", "pass a column or a list of letters")
    if not hasattr(values, "tolist"):
        return list(values)
    return _tuples(values.tolist())


def _tuples(items: Iterable[Any]) -> list[Any]:
    return [tuple(item) if isinstance(item, list) else item for item in items]
