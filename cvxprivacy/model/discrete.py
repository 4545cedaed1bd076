"""What is known before the release: the joint law of confidential W and key X (and Z)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.model.information import (
    FEW_CELLS,
    bias_in_words,
    entropy,
    miller_madow,
    mutual_information,
)
from cvxprivacy.model.laws import Table, frequencies, probabilities, tabulated
from cvxprivacy.tables.counting import MOST_CELLS, MOST_LEVELS, Counts, count_records
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.validation import array, labels, number, whole

__all__ = ["DiscreteSource"]

SHAPE = "pass finite nonnegative masses of shape (|W|, |X|) or (|W|, |X|, |Z|)"


@dataclass(frozen=True, eq=False)
class Atoms:
    """A source's law as a program has it: a column per letter that the encoder sees.

    Attributes
    ----------
    law : ndarray, shape (L, n)
        Masses > 0 in total per column: atoms of letter s.
    w_of : ndarray of int, shape (L, n)
        Each atom's w, numbered among the values with mass.
    alive_w : ndarray of int
        Those values, among the source's.
    alive : ndarray of int, shape (n,)
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
    alive_w: np.ndarray
    alive: np.ndarray
    x_of: np.ndarray
    z_of: np.ndarray
    shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        for name in ("law", "w_of", "alive_w", "alive", "x_of", "z_of"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


class DiscreteSource(Frozen):
    """The joint law of a confidential attribute W and a key attribute X, both finite.

    Parameters
    ----------
    pmf : array_like, frame or distribution, shape (|W|, |X|) or (|W|, |X|, |Z|)
        Joint probabilities p(w, x) or p(w, x, z).  The sum may be off 1 by at most 1e-9 and
        is then divided out exactly; anything further is refused.  Fractions and Decimals are
        kept exactly, or refused.  A pandas, polars or pyarrow frame brings its labels, and so
        does a ``dit.Distribution`` of two or three variables.
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
    >>> source = DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> round(source.information(units="bits"), 4)
    0.2781
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
        self._set(law, w, x, z, names, records, typed=typed)

    def _set(
        self,
        law: np.ndarray,
        w: Any,
        x: Any,
        z: Any,
        names: Any,
        records: int | None,
        *,
        typed: Table | None = None,
        schema: TableSchema | None = None,
        counted: Counts | None = None,
    ) -> None:
        typed = Table(law) if typed is None else typed
        self.records = None if records is None else whole(records, "records", least=1)
        self.effective = None if self.records is None else float(self.records)
        self.schema = schema  # how a table's records became letters
        self.levels: dict[str, list[Any]] = {}  # of a table's columns
        self.dropped = 0
        if counted is not None:
            self.effective = counted.effective
            self.levels, self.dropped = counted.levels, counted.dropped
        self.law = law
        self.law.flags.writeable = False
        axes = itertools.zip_longest((w, x, z), typed.labels)
        w, x, z = (own if given is None else given for given, own in axes)
        self.w = labels(w, law.shape[0], "w")
        self.x = labels(x, law.shape[1], "x")
        self.z = labels(z, law.shape[2], "z") if law.ndim == 3 else None
        if law.ndim == 2 and z is not None:
            raise InputError("z", "labels for an axis that pmf lacks", "pass a pmf with three axes")
        if names is None:
            defaults = itertools.zip_longest(typed.names, "WXZ"[: law.ndim])
            names = [own or default for own, default in defaults]
        self.names = () if isinstance(names, str) else tuple(names)[: law.ndim]
        if len(self.names) != law.ndim:
            raise InputError("names", f"{names!r}", f"pass {law.ndim} names")

    # ---- other ways in -------------------------------------------------------------------

    @classmethod
    def from_counts(cls, counts: npt.ArrayLike, **options: Any) -> DiscreteSource:
        """Make a source of a contingency table, shape (|W|, |X|) or (|W|, |X|, |Z|).

        The law is the exact rational counts / N; N is kept as the number of records.  Labels and
        names are as of the class.

        Raises
        ------
        InputError
            For entries that are not whole numbers from 0 to 2⁵³, or no record at all.
        """
        typed = tabulated(counts)
        law, records = frequencies(typed.values, "counts", SHAPE, axes=(2, 3))
        known = dict.fromkeys(("w", "x", "z", "names"))
        for name in options:
            if name not in known:
                raise InputError(name, "unknown argument", f"use {', '.join(known)}")
        source = cls.__new__(cls)
        source._set(law, **{**known, **options}, records=records, typed=typed)
        return source._seal()

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        sensitive: Hashable | Sequence[Hashable],
        key: Hashable | Sequence[Hashable],
        side: Hashable | Sequence[Hashable] | None = None,
        weights: Hashable | None = None,
        bins: Mapping[Hashable, float | Sequence[float]] | None = None,
        missing: str = "refuse",
    ) -> DiscreteSource:
        """Count the records of a table.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, DuckDB relation, polars LazyFrame, Dask frame
            Counted by one group-by in its own engine; only the counts are collected.
        sensitive : column name, or several
            W; with several columns, their tuple.
        key : column name, or several
            X, over the observed combinations.
        side : column name, or several, optional
            Z, side information of the user.
        weights : column name, optional
            Survey weights: the law is that of the weighted records, as the frame's engine adds
            the weights, in floats.
        bins : mapping of column to number or sequence, optional
            A number is the width of bands anchored at 0 (``{"age": 10}`` makes ``[20, 30)``, …);
            a sequence holds the edges of intervals closed below, and may begin with −inf and
            end with inf.  They are kept in ``schema`` and used again on every other table.
        missing : {"refuse", "level", "drop"}
            Whether a missing value is an error, a letter of its own (``None``), or its record
            is left out.

        Raises
        ------
        InputError
            For an unknown column, a refused missing value, values outside the bins, more levels
            than a program could use, or an empty table.
        """
        schema = TableSchema.of(
            frame,
            sensitive=sensitive,
            key=key,
            side=side,
            weights=weights,
            bins=bins,
            missing=missing,
        )
        return cls.from_schema(frame, schema)

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
        frame : as in :meth:`from_table`
        schema : TableSchema
            ``source.schema`` of a source made by :meth:`from_table`.
        levels : (w, x) or (w, x, z), optional
            The letters to count; by default those observed.
        most : int
            Letters allowed: by default as many as a program could use.

        Raises
        ------
        UnknownValueError
            For a record whose letters are not among ``levels``.
        InputError
            As :meth:`from_table`.
        """
        counts = count_records(schema, frame, most=most)
        groups = [g for g in (schema.sensitive, schema.key, schema.side) if g]
        if levels is None:
            levels = [counts.ordered(group, axis) for axis, group in enumerate(groups)]
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
        z = levels[2] if schema.side else None
        names = [", ".join(group) for group in groups]
        law = array(law, "frame", SHAPE, massive=True)
        source = cls.__new__(cls)
        w, x = levels[:2]
        source._set(law, w, x, z, names, counts.records, schema=schema, counted=counts)
        return source._seal()

    def read_as(self, reading: Mapping[str, Any]) -> DiscreteSource:
        """Return the same source with a note of how its table's file was read."""
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
        """
        if not -1 < (rho if isinstance(rho, int | float) else math.nan) < 1:
            raise InputError("rho", f"{rho!r}", "pass a correlation strictly between −1 and 1")
        span = number(span, "span", zero=False)
        grid = np.linspace(-span, span, whole(points, "points", least=2))
        w, x = grid[:, None], grid[None, :]
        density = np.exp(-(w**2 - 2 * rho * w * x + x**2) / (2 * (1 - rho**2)))
        return cls(density / density.sum(), w=grid.tolist(), x=grid.tolist())

    @classmethod
    def identical(
        cls, pmf: npt.ArrayLike, *, x: Sequence[Hashable] | None = None
    ) -> DiscreteSource:
        """Make the source W = X of a law of shape (|X|,): Shannon's rate–distortion problem.

        The index of a pandas series labels x, and its name is that of X.
        """
        typed, remedy = tabulated(pmf, variables=[1]), "pass the law of X, shape (|X|,)"
        otherwise = "DiscreteSource.from_counts"
        law = probabilities(typed.values, "pmf", remedy, axes=(1,), otherwise=otherwise)
        name = next(iter(typed.names), None) or "X"
        source = cls.__new__(cls)
        twice = Table(law, [*typed.labels[:1]] * 2)
        source._set(np.diag(law), x, x, None, (name, name), None, typed=twice)
        return source

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

    @property
    def weighted(self) -> bool:
        """Whether the records have survey weights."""
        return self.schema is not None and self.schema.weights is not None

    @property
    def biased(self) -> bool:
        """Whether I(W; X) of the counts is mostly bias, or may be: so few are the records."""
        bias, risk = self.bias(), self.information()
        if bias is None or self.effective is None or risk <= 0:
            return False
        return self.effective < 5 * int(np.count_nonzero(self.joint)) or risk < 2 * bias

    @property
    def notes(self) -> list[str]:
        """What a reader of the risk should know, in bits."""
        return self.noted()

    def noted(self, *, units: str = "bits") -> list[str]:
        """Return the notes, with their amounts of information in ``units``."""
        found, bias, risk = [], self.bias(units=units), self.information(units=units)
        if self.biased and bias is not None and self.effective is not None:
            cells = np.count_nonzero(self.joint)
            each = self.effective / cells
            if each < 5:
                told = f"which Miller and Madow's formula understates with so few ({bias:.2g})"
                if bias < 0:
                    told = f"of which Miller and Madow's formula tells nothing, as {FEW_CELLS}"
                found.append(
                    f"{cells:,} observed cells have {each:.1f} records each: the plug-in risk of "
                    f"{risk:.4f} {units} may be mostly bias, {told}: coarsen"
                )
            else:
                found.append(
                    f"of the plug-in risk of {risk:.4f} {units} about {bias:.2g} is bias: no "
                    "dependence beyond chance is visible"
                )
        if self.dropped:
            found.append(f"{self.dropped:,} records with missing values are left out")
        return found

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
        """
        law = self.law.reshape(len(self.w), len(self.x), -1)
        nw, nx, nz = law.shape
        alive_w = np.flatnonzero(law.sum(axis=(1, 2)) > 0)
        number = np.full(nw, -1)
        number[alive_w] = np.arange(len(alive_w))
        seen = [axis for axis, name in enumerate("wxz") if name in encoder]
        hidden = [axis for axis in range(3) if axis not in seen]
        places = np.indices(law.shape)

        def laid(table: np.ndarray) -> np.ndarray:
            size = math.prod(law.shape[axis] for axis in hidden)
            return table.transpose(*hidden, *seen).reshape(size, -1)

        masses = laid(law)
        alive = np.flatnonzero(masses.sum(axis=0) > 0)
        atoms = masses[:, alive]
        occupied = laid(np.broadcast_to(law.sum(axis=(1, 2))[:, None, None] > 0, law.shape))
        kept = occupied[:, alive].all(axis=1) if 0 in hidden else np.ones(len(atoms), bool)
        w, x, z = (laid(place)[:, alive][kept] for place in places)
        return Atoms(atoms[kept], number[w].astype(np.int64), alive_w, alive, x[0], z, (nw, nx, nz))

    @property
    def z_names(self) -> list[str]:
        """What the values of Z are called among views: their labels as text, or their numbers."""
        names = [str(label) for label in self.z or ()]
        return names if len(set(names)) == len(names) else [str(i) for i in range(len(names))]

    def entropy(self, *, units: str = "bits") -> float:
        """H(W)."""
        return entropy(self.p_w, units=units)

    def information(self, *, units: str = "bits") -> float:
        """I(W; X), the risk before any perturbation."""
        return mutual_information(self.joint, units=units)

    def bias(self, *, units: str = "bits") -> float | None:
        """Return the Miller–Madow bias of the plug-in I(W; X), or None for a given law.

        With survey weights the records count as (Σ weight)² / Σ weight² (Kish's effective
        sample size).
        """
        if self.effective is None:
            return None
        return miller_madow(self.joint, records=self.effective, units=units)
