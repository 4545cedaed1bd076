"""What is known before the release: the joint law of confidential W and key X (and Z)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.checks import array, labels, number, whole
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
        self.records = None if records is None else whole(records, "records", least=1)
        self.columns: tuple[list[Any], list[Any]] | None = None  # of a table: W's, and X's
        self.law = law
        self.law.flags.writeable = False
        self.w = labels(w, law.shape[0], "w")
        self.x = labels(x, law.shape[1], "x")
        self.z = labels(z, law.shape[2], "z") if law.ndim == 3 else None
        if law.ndim == 2 and z is not None:
            raise InputError("z", "labels for an axis that pmf lacks", "pass a pmf with three axes")
        self.names = () if isinstance(names, str) else tuple(names)[: law.ndim]
        if len(self.names) != law.ndim:
            raise InputError("names", f"{names!r}", f"pass {law.ndim} names")

    # ---- other ways in -------------------------------------------------------------------

    @classmethod
    def from_counts(cls, counts: npt.ArrayLike, **options: Any) -> DiscreteSource:
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
                f"{float(law[where])!r} is not a count",
                "pass whole numbers, or a pmf",
                where=where,
                value=float(law[where]),
            )
        known = {"w": None, "x": None, "z": None, "names": ("W", "X", "Z")}
        for name in options:
            if name not in known:
                raise InputError(name, "unknown argument", f"use {', '.join(known)}")
        given = {**known, **options}
        source = cls.__new__(cls)
        source._set(law, given["w"], given["x"], given["z"], given["names"], int(law.sum()))
        return source

    @classmethod
    def from_table(
        cls,
        frame: pd.DataFrame,
        *,
        sensitive: Hashable,
        key: Hashable | Sequence[Hashable],
        side: Hashable | None = None,
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
        if not hasattr(frame, "groupby"):
            raise InputError("frame", f"a {type(frame).__name__}", "pass a pandas DataFrame")
        one = isinstance(key, str) or not isinstance(key, Iterable)
        keys: list[Hashable] = [key] if one else list(key)  # type: ignore[arg-type]
        if not keys:
            raise InputError("key", "no column", "name at least one column")
        columns: list[Any] = [sensitive, *keys, *([side] if side is not None else [])]
        arguments = ["sensitive", *["key"] * len(keys), "side"]
        for argument, column in zip(arguments, columns, strict=False):
            if column not in frame.columns:
                known = ", ".join(map(str, frame.columns))
                raise InputError(
                    argument, f"no column {column!r}", f"use one of {known}", value=column
                )
            if columns.count(column) > 1:
                problem = f"column {column!r} named twice"
                raise InputError(argument, problem, "name each column once")
            if list(frame.columns).count(column) > 1:
                problem = f"two columns are called {column!r}"
                raise InputError(argument, problem, "give each column its own name")
            missing = np.flatnonzero(frame[column].isna().to_numpy())
            if len(missing):
                first = int(missing[0])
                problem = f"{len(missing)} missing values in column {column!r}"
                remedy = "drop those records or give them a level of their own"
                raise InputError(argument, problem, remedy, where=first)
        if not len(frame):
            raise InputError("frame", "no records", "pass a table with at least one row")
        try:
            sizes = frame.groupby(columns, observed=True, sort=True).size()
        except TypeError as error:  # a column of lists, say
            remedy = "use columns of strings, numbers or categories"
            raise InputError("frame", f"cannot be counted ({error})", remedy) from None
        cells = [cell if isinstance(cell, tuple) else (cell,) for cell in sizes.index]
        groups: list[list[Any]] = [[sensitive], keys, [side]]
        parts = [
            [cell[0] for cell in cells],
            [cell[1] if len(keys) == 1 else tuple(cell[1 : 1 + len(keys)]) for cell in cells],
            [cell[-1] for cell in cells],
        ][: 3 if side is not None else 2]
        levels = [_ordered(part, frame, named) for part, named in zip(parts, groups, strict=False)]
        places = [{label: i for i, label in enumerate(level)} for level in levels]
        counts = np.zeros([len(level) for level in levels])
        for *cell, size in zip(*parts, sizes.to_numpy(), strict=True):
            counts[tuple(p[c] for p, c in zip(places, cell, strict=True))] = size
        names = [
            str(sensitive),
            ", ".join(map(str, keys)),
            *([str(side)] if side is not None else []),
        ]
        source = cls.from_counts(
            counts, w=levels[0], x=levels[1], z=levels[2] if side is not None else None, names=names
        )
        source.columns = ([sensitive], keys)
        return source

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
        """Make the source W = X of a law of shape (|X|,): Shannon's rate–distortion problem."""
        law = array(pmf, "pmf", "pass the law of X, shape (|X|,)", axes=(1,), massive=True)
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
        return self.joint.sum(axis=1) / self.law.sum()

    @property
    def p_x(self) -> np.ndarray:
        """p(x), shape (|X|,)."""
        return self.joint.sum(axis=0) / self.law.sum()

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


def _masses(values: npt.ArrayLike, argument: str) -> np.ndarray:
    remedy = "pass finite nonnegative masses of shape (|W|, |X|) or (|W|, |X|, |Z|)"
    return array(values, argument, remedy, axes=(2, 3), massive=True)


def _ordered(found: Sequence[Any], frame: pd.DataFrame, columns: Sequence[Any]) -> list[Any]:
    """Return the distinct labels: in a categorical's order, else sorted if they compare."""
    distinct = list(dict.fromkeys(found))
    ranks: list[dict[Any, int] | None] = []
    for column in columns:
        categories = getattr(frame[column].dtype, "categories", None)
        ranks.append(None if categories is None else {c: i for i, c in enumerate(categories)})

    def rank(label: Any) -> Any:
        parts = label if len(columns) > 1 else (label,)
        return tuple(p if r is None else r[p] for p, r in zip(parts, ranks, strict=True))

    try:
        return sorted(distinct, key=rank)
    except TypeError:
        return distinct
