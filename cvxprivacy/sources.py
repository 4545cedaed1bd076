"""What is known before the release: the joint law of confidential W and key X (and Z)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.information import entropy, miller_madow, mutual_information

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DiscreteSource"]

SUM_TOLERANCE = 1e-9


class DiscreteSource:
    """The joint law of a confidential attribute W and a key attribute X, both finite.

    Parameters
    ----------
    pmf : array_like, shape (|W|, |X|) or (|W|, |X|, |Z|)
        Joint probabilities p(w, x) or p(w, x, z).  The sum may be off 1 by at most 1e-9 and
        is then divided out exactly; anything further is refused.
    w, x, z : sequence, optional
        Labels of the letters, by default 0, 1, ….
    names : (str, str) or (str, str, str)
        What the attributes are called in print.
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
        names: Sequence[str] = ("W", "X", "Z"),
        records: int | None = None,
    ) -> None:
        law = _masses(pmf, "pmf")
        total = math.fsum(law.ravel())
        if abs(total - 1.0) > SUM_TOLERANCE:
            raise InputError(
                "pmf",
                f"the entries sum to {total!r}, off 1 by more than {SUM_TOLERANCE:g}",
                "normalise it yourself, or use DiscreteSource.from_counts",
                value=total,
            )
        self._set(law, w, x, z, names, records)

    def _set(
        self, law: np.ndarray, w: Any, x: Any, z: Any, names: Any, records: int | None
    ) -> None:
        if records is not None and (records != int(records) or records < 1):
            raise InputError("records", f"{records!r}", "pass a positive number of records")
        self.law = law
        self.law.flags.writeable = False
        labels = [w, x, z][: law.ndim]
        self.w, self.x = (
            _labels(given, size, name)
            for given, size, name in zip(labels[:2], law.shape, "wx", strict=False)
        )
        self.z = _labels(z, law.shape[2], "z") if law.ndim == 3 else None
        if law.ndim == 2 and z is not None:
            raise InputError("z", "labels for an axis that pmf lacks", "pass a pmf with three axes")
        self.names = tuple(names)[: law.ndim]
        if len(self.names) != law.ndim:
            raise InputError("names", f"{names!r}", f"pass {law.ndim} names")
        self.records = None if records is None else int(records)

    # ---- other ways in -------------------------------------------------------------------

    @classmethod
    def from_counts(cls, counts: npt.ArrayLike, **labels: Any) -> DiscreteSource:
        """Make a source of a contingency table, shape (|W|, |X|) or (|W|, |X|, |Z|).

        The law is the exact rational counts / N; N is kept as the number of records.

        Raises
        ------
        InputError
            For entries that are not nonnegative whole numbers, or no record at all.
        """
        law = _masses(counts, "counts")
        broken = law != np.floor(law)
        if broken.any():
            where = tuple(int(i) for i in np.argwhere(broken)[0])
            raise InputError(
                "counts",
                f"{law[where]!r} is not a count",
                "pass whole numbers, or a pmf",
                where=where,
                value=law[where],
            )
        known = {"w": None, "x": None, "z": None, "names": ("W", "X", "Z")}
        for name in labels:
            if name not in known:
                raise InputError(name, "unknown argument", f"use {', '.join(known)}")
        given = {**known, **labels}
        source = cls.__new__(cls)
        source._set(law, given["w"], given["x"], given["z"], given["names"], int(law.sum()))
        return source

    @classmethod
    def from_table(
        cls,
        frame: pd.DataFrame,
        *,
        sensitive: str,
        key: str | Sequence[str],
        side: str | None = None,
    ) -> DiscreteSource:
        """Count the records of a pandas frame.

        Parameters
        ----------
        frame : pandas.DataFrame
        sensitive : str
            Column of W.
        key : str or sequence of str
            Column of X, or several: then X is their tuple, over the observed combinations.
        side : str, optional
            Column of Z, side information of the user.

        Raises
        ------
        InputError
            For an unknown column, a missing value or an empty table.
        """
        keys = [key] if isinstance(key, str) else list(key)
        columns = [sensitive, *keys, *([side] if side is not None else [])]
        arguments = ["sensitive", *["key"] * len(keys), "side"]
        for argument, column in zip(arguments, columns, strict=False):
            if column not in frame.columns:
                known = ", ".join(map(str, frame.columns))
                raise InputError(
                    argument, f"no column {column!r}", f"use one of {known}", value=column
                )
            if columns.count(column) > 1:
                raise InputError(
                    argument, f"column {column!r} named twice", "name each column once"
                )
            missing = np.flatnonzero(frame[column].isna().to_numpy())
            if len(missing):
                raise InputError(
                    argument,
                    f"{len(missing)} values of column {column!r} are missing",
                    "drop those records or give them a level of their own",
                    where=int(missing[0]),
                )
        if not len(frame):
            raise InputError("frame", "no records", "pass a table with at least one row")
        sizes = frame.groupby(columns, observed=True, sort=True).size()
        cells = [cell if isinstance(cell, tuple) else (cell,) for cell in sizes.index]
        parts = [
            [cell[0] for cell in cells],
            [cell[1] if len(keys) == 1 else tuple(cell[1 : 1 + len(keys)]) for cell in cells],
            [cell[-1] for cell in cells],
        ][: 3 if side is not None else 2]
        labels = [_ordered(part) for part in parts]
        places = [{label: i for i, label in enumerate(level)} for level in labels]
        counts = np.zeros([len(level) for level in labels])
        for *cell, size in zip(*parts, sizes.to_numpy(), strict=True):
            counts[tuple(p[c] for p, c in zip(places, cell, strict=True))] = size
        names = [
            str(sensitive),
            ", ".join(map(str, keys)),
            *([str(side)] if side is not None else []),
        ]
        return cls.from_counts(
            counts, w=labels[0], x=labels[1], z=labels[2] if side is not None else None, names=names
        )

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
        if not -1 < rho < 1:
            raise InputError("rho", f"{rho!r}", "pass a correlation strictly between −1 and 1")
        if points != int(points) or points < 2:
            raise InputError("points", f"{points!r}", "pass a whole number of at least 2")
        if not 0 < span < math.inf:
            raise InputError("span", f"{span!r}", "pass a positive half-width")
        grid = np.linspace(-span, span, int(points))
        w, x = grid[:, None], grid[None, :]
        density = np.exp(-(w**2 - 2 * rho * w * x + x**2) / (2 * (1 - rho**2)))
        return cls(density / density.sum(), w=grid.tolist(), x=grid.tolist())

    @classmethod
    def identical(
        cls, pmf: npt.ArrayLike, *, x: Sequence[Hashable] | None = None
    ) -> DiscreteSource:
        """Make the source W = X of a law of shape (|X|,): Shannon's rate–distortion problem."""
        law = np.asarray(pmf, dtype=float)
        if law.ndim != 1:
            raise InputError("pmf", f"{law.ndim} axes", "pass the law of X, shape (|X|,)")
        return cls(np.diag(law), w=x, x=x, names=("X", "X"))

    # ---- what it says --------------------------------------------------------------------

    def __repr__(self) -> str:
        parts = ", ".join(f"{n}: {s}" for n, s in zip(self.names, self.law.shape, strict=True))
        behind = "" if self.records is None else f", {self.records:,} records"
        return f"DiscreteSource({parts}{behind})"

    @property
    def pmf(self) -> np.ndarray:
        """Joint probabilities, in the shape given."""
        return self.law / self.law.sum()

    @property
    def p_w(self) -> np.ndarray:
        """p(w), shape (|W|,)."""
        return self.pmf.sum(axis=tuple(range(1, self.law.ndim)))

    @property
    def p_x(self) -> np.ndarray:
        """p(x), shape (|X|,)."""
        return self.pmf.sum(axis=0 if self.law.ndim == 2 else (0, 2))

    @property
    def joint(self) -> np.ndarray:
        """Masses of (w, x), shape (|W|, |X|), in the unit given (counts or probabilities)."""
        return self.law if self.law.ndim == 2 else self.law.sum(axis=2)

    def entropy(self, *, units: str = "bits") -> float:
        """H(W)."""
        return entropy(self.p_w, units=units)

    def information(self, *, units: str = "bits") -> float:
        """I(W; X), the risk before any perturbation."""
        return mutual_information(self.joint, units=units)

    def bias(self, *, units: str = "bits") -> float | None:
        """Return the Miller–Madow bias of the plug-in I(W; X), or None for a given law."""
        return None if self.records is None else miller_madow(self.joint, units=units)


def _masses(array: npt.ArrayLike, argument: str) -> np.ndarray:
    try:
        law = np.array(array, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(argument, f"not numbers ({error})", "pass an array of numbers") from None
    if law.ndim not in (2, 3) or not law.size:
        raise InputError(argument, f"shape {law.shape}", "pass shape (|W|, |X|) or (|W|, |X|, |Z|)")
    bad = ~np.isfinite(law) | (law < 0)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        kind = "negative" if law[where] < 0 else "not finite"
        raise InputError(
            argument,
            f"{float(law[where])!r} is {kind}",
            "pass finite nonnegative masses",
            where=where,
            value=float(law[where]),
        )
    if not law.any():
        raise InputError(argument, "no mass at all", "pass at least one positive entry")
    return law


def _labels(given: Sequence[Hashable] | None, size: int, argument: str) -> list[Any]:
    labels = list(range(size)) if given is None else list(given)
    if len(labels) != size:
        raise InputError(argument, f"{len(labels)} labels", f"pass {size}, one per letter")
    seen: dict[Any, int] = {}
    for i, label in enumerate(labels):
        if label in seen:
            raise InputError(
                argument,
                f"{label!r} labels letters {seen[label]} and {i}",
                "make the labels distinct",
                where=i,
                value=label,
            )
        seen[label] = i
    return labels


def _ordered(labels: Sequence[Any]) -> list[Any]:
    """Return the distinct labels, sorted where they can be compared."""
    distinct = list(dict.fromkeys(labels))
    try:
        return sorted(distinct)
    except TypeError:
        return distinct
