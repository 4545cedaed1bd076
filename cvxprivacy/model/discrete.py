"""What is known before the release: the joint law of confidential W and key X (and Z)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.frozen import Frozen, FrozenFields, owned
from cvxprivacy.model.information import (
    bias_in_words,
    bias_notes,
    entropy,
    miller_madow,
    mutual_information,
)
from cvxprivacy.model.laws import (
    SHAPE,
    Table,
    axes_of,
    frequencies,
    probabilities,
    scaling,
    tabulated,
)
from cvxprivacy.tables.counting import MOST_LEVELS, Counts, count_records
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS
from cvxprivacy.text import brief, facts_html
from cvxprivacy.validation import array, integer, number, untaken

__all__ = ["Atoms", "DiscreteSource", "counted_law", "labels_by_x", "lay_out"]


class DiscreteSource(Frozen):
    """The joint law of a confidential attribute W and a key attribute X, both finite.

    Parameters
    ----------
    pmf : array_like, frame or distribution, shape (|W|, |X|) or (|W|, |X|, |Z|)
        Joint probabilities p(w, x) or p(w, x, z).  The sum may be off 1 by at most 1e-9, or 1e-6
        where they are floats of 32 bits, and is then divided out exactly; anything further is
        refused.  Fractions and Decimals are kept exactly, or refused.  A pandas, polars or pyarrow
        frame brings its labels, and so does a ``dit.Distribution`` of two or three variables.
    w, x, z : sequence, optional
        Labels of the letters, by default those of the frame, or 0, 1, ….  In pandas the index
        labels w; elsewhere a first column that is not numeric does.
    names : (str, str) or (str, str, str), optional
        What the attributes are called in print, by default as in the frame, or W, X, Z.
    records : int, optional
        Number of records behind the law; criteria on records need it.

    Raises
    ------
    InputError
        For negative, NaN or infinite entries, a sum off 1, or labels that do not fit.

    Examples
    --------
    Two fair bits that differ with probability 0.2 share 1 − h(0.2) bits, the risk before any
    perturbation:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]], names=["illness", "sex"])
    >>> source
    DiscreteSource(illness: 2, sex: 2)
    >>> round(source.information(), 4), round(1 - cpv.information.entropy([0.2, 0.8]), 4)
    (0.2781, 0.2781)

    The same of counts, which know their own bias:

    >>> counted = cpv.DiscreteSource.from_counts([[40, 10], [10, 40]])
    >>> round(counted.information(), 4), round(counted.bias(), 4)
    (0.2781, 0.0072)
    """

    def __init__(
        self,
        pmf: npt.ArrayLike,
        *,
        w: Sequence[Hashable] | None = None,
        x: Sequence[Hashable] | None = None,
        z: Sequence[Hashable] | None = None,
        names: Sequence[str] | None = None,
        records: int | None = None,
    ) -> None:
        typed, otherwise = tabulated(pmf), "DiscreteSource.from_counts"
        law = probabilities(typed.values, "pmf", SHAPE, axes=(2, 3), otherwise=otherwise)
        self._set(law, typed, (w, x, z), names, records=records)

    def _set(
        self,
        law: np.ndarray,
        typed: Table,
        axes: tuple[Any, ...] = (None, None, None),  # labels of w, x and z
        names: Any = None,
        *,
        records: int | None = None,
        schema: TableSchema | None = None,
        counts: Counts | None = None,
    ) -> None:
        self.records = None if records is None else integer(records, "records", least=1)
        self.effective = None if self.records is None else float(self.records)
        self.schema = schema  # how a table's records became letters
        self.levels: dict[str, list[Any]] = {}  # of a table's columns
        self.dropped = 0
        self.earlier: np.ndarray | None = None  # p(z | w, x), where Z is of earlier releases
        if counts is not None:
            self.effective = counts.effective
            self.levels, self.dropped = counts.levels, counts.dropped
        self.law = owned(law)
        (self.w, self.x, self.z), self.names = axes_of(law, typed, axes, names)

    @classmethod
    def _of(cls, law: np.ndarray, typed: Table, *labels: Any, **options: Any) -> DiscreteSource:
        """Make a source of masses that were checked otherwise."""
        source = cls.__new__(cls)
        source._set(law, typed, *labels, **options)
        return source._seal()

    # ---- other ways in -------------------------------------------------------------------

    @classmethod
    def from_counts(cls, counts: npt.ArrayLike, **options: Any) -> DiscreteSource:
        """Make a source of a contingency table.

        The law is the exact rational counts / N; N is kept as the number of records.

        Parameters
        ----------
        counts : array_like or frame, shape (|W|, |X|) or (|W|, |X|, |Z|)
            Records of each combination, whole numbers from 0 to 2⁵³.
        **options : optional
            ``w``, ``x``, ``z`` and ``names``, as of the class.

        Raises
        ------
        InputError
            For entries that are not whole numbers from 0 to 2⁵³, or no record at all.
        """
        typed = tabulated(counts)
        law, records = frequencies(typed.values, "counts", SHAPE, axes=(2, 3))
        allowed = ("w", "x", "z", "names")
        for name in options:
            if name not in allowed:
                raise InputError(name, "unknown argument", f"use {', '.join(allowed)}")
        *axes, names = (options.get(name) for name in allowed)
        return cls._of(law, typed, tuple(axes), names, records=records)

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        sensitive: Hashable | Sequence[Hashable] | None,
        key: Hashable | Sequence[Hashable],
        side: Hashable | Sequence[Hashable] | None = None,
        weights: Hashable | None = None,
        bins: Mapping[Hashable, float | str | Sequence[float]] | None = None,
        missing: str = "refuse",
        groups: Mapping[Hashable, int | Mapping[Hashable, Hashable]] | None = None,
        most: int = MOST_LEVELS,
    ) -> DiscreteSource:
        """Count the records of a table.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, DuckDB relation, polars LazyFrame, Dask frame
            Counted by one group-by in its own engine; only the counts are collected.
        sensitive : column name, or several, or None
            W; with several columns, their tuple.  None: nothing is confidential, and W has one
            value, for :func:`full_domain` under k-anonymity.
        key : column name, or several
            X, over the observed combinations.
        side : column name, or several, optional
            Z, side information of the user.
        weights : column name, optional
            Survey weights: the law is that of the weighted records, as the frame's engine adds
            the weights, in floats.
        bins : mapping of column to number, text or sequence, optional
            A number is the width of bands anchored at 0 (``{"age": 10}`` makes ``[20, 30)``, …);
            a sequence holds the edges of intervals closed below, and may begin with −inf and
            end with inf; "q10" makes ten intervals of about equal counts; "year" puts dates into
            calendar intervals, as :class:`Periods` has them.  They are kept in ``schema`` and
            used again on every other table.
        missing : {"refuse", "level", "drop"}
            Whether a missing value is an error, a letter of its own (``None``), or its record
            is left out.
        groups : mapping of column to mapping or number, optional
            A mapping names the group of every value, ``{"education": {"9th": "school", …}}``, as
            :meth:`cvxprivacy.Hierarchy.mapping` returns it for a level; a number keeps that
            many most frequent values and calls the rest "other".  Kept in ``schema`` as bins are.
        most : int
            Values of a column that are allowed: by default as many as a program could use.  What
            is recoded, as by :func:`full_domain`, may have more.

        Raises
        ------
        InputError
            For an unknown column, a refused missing value, values outside the bins or in no
            group, more levels than a program could use, or an empty table.

        Examples
        --------
        Ages in bands of ten years, as what is released; illness is confidential:

        >>> import cvxprivacy as cpv
        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [23, 28, 31, 38, 39], "ill": [*"nnnyy"]})
        >>> source = cpv.DiscreteSource.from_table(
        ...     table, sensitive="ill", key="age", bins={"age": 10}
        ... )
        >>> source.x, source.law.tolist(), source.records
        (['[20, 30)', '[30, 40)'], [[2.0, 1.0], [0.0, 2.0]], 5)
        """
        most = integer(most, "most", least=1)
        columns = {"sensitive": sensitive, "key": key, "side": side, "weights": weights}
        schema = TableSchema.of(frame, **columns, bins=bins, groups=groups, missing=missing)
        return cls.from_schema(frame, schema, most=most)

    @classmethod
    def from_schema(
        cls,
        frame: Any,
        schema: TableSchema,
        levels: Sequence[Sequence[Hashable]] | None = None,
        *,
        most: int = MOST_LEVELS,
    ) -> DiscreteSource:
        """Count the records of a table as another table was counted.

        Parameters
        ----------
        frame : frame
            A table, as :meth:`from_table` takes it.
        schema : TableSchema
            ``source.schema`` of a source made by :meth:`from_table`.
        levels : (w, x) or (w, x, z), optional
            The letters to count; by default those observed.
        most : int
            Values of a column that are allowed: by default as many as a program could use.

        Raises
        ------
        UnknownValueError
            For a record whose letters are not among ``levels``.
        InputError
            As :meth:`from_table`.
        """
        law, typed, counts = counted_law(frame, schema, levels, most)
        return cls._of(law, typed, records=counts.records, schema=schema, counts=counts)

    def read_as(self, reading: Mapping[str, Any]) -> DiscreteSource:
        """Return the same source with a note of how its table's file was read.

        Parameters
        ----------
        reading : mapping
            What tells a reader of the file how to read it again, such as its delimiter.
        """
        assert self.schema is not None
        return self._with(schema=replace(self.schema, reading=reading))

    @classmethod
    def gaussian(cls, rho: float, *, points: int = 31, span: float = 3.0) -> DiscreteSource:
        """Sample a standard bivariate Gaussian density on a square grid, and normalise.

        Both alphabets are ``points`` equally spaced values in [−span, span]: the source of
        Rebollo-Monedero et al. 2010, §6.1 (31 points, span 3).

        Parameters
        ----------
        rho : float
            Correlation, −1 < ρ < 1.
        points : int
            Values of W, and of X.
        span : float
            Standard deviations from the mean to the ends of the grid.

        Raises
        ------
        InputError
            For a ρ that is no such correlation, fewer than two points, or a span that is not
            positive.
        """
        if not -1 < (rho if isinstance(rho, int | float) else math.nan) < 1:
            raise InputError("rho", f"{rho!r}", "pass a correlation strictly between −1 and 1")
        span = number(span, "span", zero=False)
        grid = np.linspace(-span, span, integer(points, "points", least=2))
        w, x = grid[:, None], grid[None, :]
        density = np.exp(-(w**2 - 2 * rho * w * x + x**2) / (2 * (1 - rho**2)))
        return cls(density / density.sum(), w=grid.tolist(), x=grid.tolist())

    @classmethod
    def identical(
        cls, pmf: npt.ArrayLike, *, x: Sequence[Hashable] | None = None
    ) -> DiscreteSource:
        """Make the source W = X of a law of X: Shannon's rate–distortion problem.

        Parameters
        ----------
        pmf : array_like or series, shape (|X|,)
            Law of X.  The index of a pandas series labels x, and its name is that of X.
        x : sequence, optional
            Labels of the letters, by default that index, or 0, 1, ….

        Raises
        ------
        InputError
            As of the class.
        """
        typed, remedy = tabulated(pmf, variables=[1]), "pass the law of X, shape (|X|,)"
        otherwise = "DiscreteSource.from_counts"
        law = probabilities(typed.values, "pmf", remedy, axes=(1,), otherwise=otherwise)
        name = next(iter(typed.names), None) or "X"
        twice = Table(law, [*typed.labels[:1]] * 2)
        return cls._of(np.diag(law), twice, (x, x, None), (name, name))

    # ---- what it says --------------------------------------------------------------------

    def __repr__(self) -> str:
        parts = ", ".join(f"{n}: {s}" for n, s in zip(self.names, self.law.shape, strict=True))
        behind = "" if self.records is None else f", {self.records:,} records"
        if self.weighted:
            behind += f" that weigh as {self.effective:,.0f}"
        return f"DiscreteSource({parts}{behind})"

    def __str__(self) -> str:
        lines = [
            repr(self),
            f"  I({self.names[0]}; {self.names[1]}) = {self.information():.4f} bits",
        ]
        bias = self.bias()
        if bias is not None:
            lines[1] += f", {bias_in_words(bias)}"
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        axes: list[list[Any]] = [self.w, self.x, self.z or []]
        rows = [
            (f"{letter}: {name}", f"{len(values):,} values: {brief(values)}")
            for letter, name, values in zip("WXZ", self.names, axes, strict=False)
        ]
        rows.append(("H(W)", f"{self.entropy():.4f} bits"))
        rows.append(("I(W; X)", f"{self.information():.4f} bits"))
        notes = [("note", note) for note in self.notes]
        return facts_html(repr(self), [*rows, *notes])

    @property
    def identity(self) -> bool:
        """Whether W is X: the same letters, and no mass elsewhere."""
        return self.w == self.x and bool((self.joint == np.diag(np.diag(self.joint))).all())

    @property
    def weighted(self) -> bool:
        """Whether the records have survey weights."""
        return self.schema is not None and self.schema.weights is not None

    @property
    def biased(self) -> bool:
        """Whether I(W; X) of the counts is mostly bias, or may be: so few are the records."""
        return bool(bias_notes(self.joint, self.effective))

    @property
    def notes(self) -> list[str]:
        """What a reader of the risk should know, in bits."""
        return self.noted()

    def noted(self, *, units: str = "bits") -> list[str]:
        """Return the notes, with their amounts of information in ``units``.

        Parameters
        ----------
        units : {"bits", "nats"}
            Of the amounts.
        """
        notes = bias_notes(self.joint, self.effective, units=units)
        if scaled := scaling(self.law):
            notes.append(scaled)
        if self.dropped:
            notes.append(f"{self.dropped:,} records with missing values are left out")
        return notes

    @property
    def in_order(self) -> bool:
        """Whether the values of W have an order of their own: numbers, dates and bins have."""
        sensitive = () if self.schema is None else self.schema.sensitive
        binned = (
            self.schema is not None and len(sensitive) == 1 and sensitive[0] in self.schema.bins
        )
        without = (tuple, type(None)) if binned else (str, tuple, type(None))
        return not any(isinstance(value, without) for value in self.w)

    @property
    def pmf(self) -> np.ndarray:
        """Joint probabilities, in the shape given."""
        return self.law / self.law.sum()

    @property
    def p_w(self) -> np.ndarray:
        """p(w), shape (|W|,)."""
        return self.joint.sum(axis=1) / self.law.sum()

    @property
    def p_x(self) -> np.ndarray:
        """p(x), shape (|X|,)."""
        return self.joint.sum(axis=0) / self.law.sum()

    @property
    def joint(self) -> np.ndarray:
        """Masses of (w, x), shape (|W|, |X|), in the unit given (counts or probabilities)."""
        return self.law if self.law.ndim == 2 else self.law.sum(axis=2)

    def atoms(self, encoder: str = "x") -> Atoms:
        """Lay out the law for an encoder of x, (w, x), (x, z) or (w, x, z).

        Letters without mass are left out; the encoder's letters are in the order of w, x, z.

        Parameters
        ----------
        encoder : {"x", "wx", "xz", "wxz"}
            What the randomisation sees.
        """
        return lay_out(self.law.reshape(*self.joint.shape, -1), encoder)

    @property
    def z_names(self) -> list[str]:
        """What the values of Z are called among views: their labels as text, or their numbers."""
        names = [str(label) for label in self.z or ()]
        return names if len(set(names)) == len(names) else [str(i) for i in range(len(names))]

    def entropy(self, *, units: str = "bits") -> float:
        """Return H(W).

        Parameters
        ----------
        units : {"bits", "nats"}
            Of the entropy.
        """
        return entropy(self.p_w, units=units)

    def information(self, *, units: str = "bits") -> float:
        """Return I(W; X), the risk before any perturbation.

        Parameters
        ----------
        units : {"bits", "nats"}
            Of the information.
        """
        return mutual_information(self.joint, units=units)

    def bias(self, *, units: str = "bits") -> float | None:
        """Return the Miller–Madow bias of the plug-in I(W; X), or None for a given law.

        With survey weights the records count as (Σ weight)² / Σ weight² (Kish's effective
        sample size).

        Parameters
        ----------
        units : {"bits", "nats"}
            Of the bias.
        """
        if self.effective is None:
            return None
        return miller_madow(self.joint, records=self.effective, units=units)


# ---- the law of a table -------------------------------------------------------------------


def counted_law(
    frame: Any, schema: TableSchema, levels: Sequence[Sequence[Hashable]] | None, most: int
) -> tuple[np.ndarray, Table, Counts]:
    """Return the masses of a table's cells, with labels and names, and the counts themselves.

    Parameters
    ----------
    levels : (w, x) or (w, x, z), optional
        The letters to count; by default those observed.
    most : int
        Values of a column that are allowed.
    """
    counts = count_records(schema, frame, most=most)
    groups = [g for g in (schema.sensitive, schema.key, schema.side) if g]
    if levels is None:
        levels = [counts.ordered(group, axis) for axis, group in enumerate(groups)]
    elif not schema.sensitive:
        levels = levels[1:]
    places = [{label: i for i, label in enumerate(level)} for level in levels]
    shape = [len(level) for level in levels]
    if math.prod(shape) > MOST_CELLS * 20:
        problem = f"a law of {' × '.join(map(str, shape))} cells"
        raise InputError("key", problem, "bin numbers, or name fewer columns")
    law = np.zeros(shape)
    for letters, mass in zip(counts.cells, counts.masses, strict=True):
        for place, letter, group in zip(places, letters, groups, strict=True):
            if letter not in place:
                problem = f"{letter!r} of {', '.join(map(str, group))} is no known letter"
                remedy = "count a table with the same values"
                raise UnknownValueError("frame", problem, remedy, value=letter)
        law[tuple(p[x] for p, x in zip(places, letters, strict=True))] += mass
    names, letters_of = [", ".join(g) for g in groups], list(map(list, levels))
    if not schema.sensitive:  # W has one value
        law, names, letters_of = law[None], ["nothing", *names], [[None], *letters_of]
    law = array(law, "frame", SHAPE, massive=True)
    return law, Table(law, letters_of, names), counts


@dataclass(frozen=True, eq=False)
class Atoms(FrozenFields):
    """A source's law as a program has it: a column per letter that the encoder sees.

    Attributes
    ----------
    law : ndarray, shape (L, n)
        Masses > 0 in total per column: atoms of letter s.
    w_of : ndarray of int, shape (L, n)
        Each atom's w, numbered among the values with mass.
    w_support : ndarray of int
        Those values, among the source's.
    support : ndarray of int, shape (n,)
        The letters, among x, the pairs (w, x) or (x, z), or the triples (w, x, z).
    x_of : ndarray of int, shape (n,)
        Each letter's x.
    z_of : ndarray of int, shape (L, n)
        Each atom's z; 0 without side information.
    shape : (int, int, int)
        |W|, |X|, |Z| of the source.
    """

    law: np.ndarray
    w_of: np.ndarray
    w_support: np.ndarray
    support: np.ndarray
    x_of: np.ndarray
    z_of: np.ndarray
    shape: tuple[int, int, int]


def lay_out(law: np.ndarray, encoder: str) -> Atoms:
    """Lay out masses of shape (|W|, |X|, |Z|) for an encoder of x, (w, x), (x, z) or (w, x, z).

    Letters without mass are left out; the encoder's letters are in the order of w, x, z.
    """
    nw, nx, nz = law.shape
    w_support = np.flatnonzero(law.sum(axis=(1, 2)) > 0)
    number = np.full(nw, -1)
    number[w_support] = np.arange(len(w_support))
    observed = [axis for axis, name in enumerate("wxz") if name in encoder]
    hidden = [axis for axis in range(3) if axis not in observed]
    places: np.ndarray = np.indices(law.shape)

    def laid(table: np.ndarray) -> np.ndarray:
        size = math.prod(law.shape[axis] for axis in hidden)
        return table.transpose(*hidden, *observed).reshape(size, -1)

    masses = laid(law)
    support = np.flatnonzero(masses.sum(axis=0) > 0)
    atoms = masses[:, support]
    occupied = laid(np.broadcast_to(law.sum(axis=(1, 2))[:, None, None] > 0, law.shape))
    kept = occupied[:, support].all(axis=1) if 0 in hidden else np.ones(len(atoms), bool)
    w, x, z = (laid(place)[:, support][kept] for place in places)
    return Atoms(atoms[kept], number[w].astype(np.int64), w_support, support, x[0], z, (nw, nx, nz))


def labels_by_x(
    name: str, there: np.ndarray, w_of: np.ndarray, x_of: np.ndarray, x: Sequence[Any]
) -> dict[str, np.ndarray]:
    """Return what those see of W who know x, at each x that leaves it open: −1 of other atoms.

    Parameters
    ----------
    name : str
        Of the view of W without x.
    there : ndarray of bool, shape (L, n)
        Atoms with mass that are seen.
    w_of, x_of : ndarray of int, shape (L, n) and (n,)
        As of :class:`Atoms`; values of W are numbered anew at each x.
    x : sequence
        The labels of X.
    """
    labels: dict[str, np.ndarray] = {}
    for place in np.unique(x_of).tolist():
        atoms = there & (x_of == place)
        values = np.unique(w_of[atoms])
        if len(values) > 1:
            view = untaken(f"{name}|X = {x[place]}", labels)
            labels[view] = np.where(atoms, np.searchsorted(values, w_of), -1)
    return labels
