"""What is known before the release, when it is a covariance: W, X and Z jointly Gaussian."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpq, fmpq_mat

from cvxprivacy.checks import array, number, whole
from cvxprivacy.errors import InputError
from cvxprivacy.frames import collected, listed, narwhal, plain
from cvxprivacy.information import nat
from cvxprivacy.sources import DiscreteSource

__all__ = ["GaussianSource", "independent", "rational"]

Exact = list[list[Fraction]]


class GaussianSource:
    """Second moments of confidential W, key X and side information Z.

    Parameters
    ----------
    covariance : array_like, shape (k, k)
        Of all variables: floats, or ``Fraction``s, which are kept exactly.
    sensitive, key, side : sequence of int or str
        Which variables are W, X and Z, by place or by name.  W and X may share variables only
        if all of W is in X.
    mean : array_like, shape (k,), optional
        By default 0.
    names : sequence of str, optional
        Of the variables.
    records : int, optional
        Number of records behind the moments.

    Attributes
    ----------
    exact : list of lists of Fraction
        The covariance as it was given.
    w, x, z : list of int
        Places of the variables.
    basis : list of int
        Places within ``x`` of variables that determine all of X: all of them, unless Σ_X is
        singular, which is decided in rational arithmetic.
    expansion : ndarray, shape (|X|, |basis|)
        T with X − E X = T (X_basis − E X_basis).

    Raises
    ------
    InputError
        For an asymmetric or indefinite covariance, unknown names, or numbers that are not
        finite.
    """

    def __init__(
        self,
        covariance: Any,
        *,
        sensitive: Sequence[Hashable],
        key: Sequence[Hashable],
        side: Sequence[Hashable] = (),
        mean: npt.ArrayLike | None = None,
        names: Sequence[str] | None = None,
        records: int | None = None,
    ) -> None:
        self.exact = _exactly(covariance)
        size = len(self.exact)
        self.covariance = np.array([[float(v) for v in row] for row in self.exact])
        if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
            raise InputError("names", f"{names!r}", f"pass {size} distinct names")
        self.names = [f"V{i}" for i in range(size)] if names is None else list(map(str, names))
        if len(self.names) != size or len(set(self.names)) != size:
            raise InputError("names", f"{self.names!r}", f"pass {size} distinct names")
        self.w = self._places(sensitive, "sensitive")
        self.x = self._places(key, "key")
        self.z = self._places(side, "side", empty=True)
        shared = set(self.w) & set(self.x)
        if shared and shared != set(self.w):
            remedy = "let W be part of X altogether, or have nothing of it"
            raise InputError("sensitive", "shares some of its variables with the key", remedy)
        if set(self.z) & {*self.w, *self.x}:
            remedy = "name each variable once"
            raise InputError("side", "shares variables with sensitive or key", remedy)
        remedy = f"pass {size} finite numbers"
        self.mean = np.zeros(size)
        if mean is not None:
            self.mean = array(mean, "mean", remedy, axes=(1,), negative=True)
        if len(self.mean) != size:
            raise InputError("mean", f"{len(self.mean)} numbers", remedy)
        self.records = None if records is None else whole(records, "records", least=1)
        self.scale: np.ndarray = np.ones(size)  # a unit of each variable, in the table's own
        self.basis, exact = independent([[self.exact[i][j] for j in self.x] for i in self.x])
        self.expansion = np.array([[float(v) for v in row] for row in exact])

    def _places(
        self, given: Sequence[Hashable], argument: str, *, empty: bool = False
    ) -> list[int]:
        one = isinstance(given, str) or not isinstance(given, Iterable)
        found = []
        for item in [given] if one else list(given):
            if isinstance(item, str) and item in self.names:
                found.append(self.names.index(item))
            elif (
                isinstance(item, int | np.integer)
                and not isinstance(item, bool)
                and 0 <= item < len(self.names)
            ):
                found.append(int(item))
            else:
                remedy = f"use places below {len(self.names)} or names: {', '.join(self.names)}"
                raise InputError(argument, f"no variable {item!r}", remedy, value=item)
        if len(set(found)) != len(found) or not (found or empty):
            problem = "no variable" if not found else f"{given!r} names a variable twice"
            raise InputError(argument, problem, "name each variable once")
        return found

    # ---- other ways in -------------------------------------------------------------------

    @classmethod
    def scalar(
        cls, rho: float, *, sigma_w: float = 1.0, sigma_x: float = 1.0, rho_xz: float | None = None
    ) -> GaussianSource:
        """Make the source of one W and one X (and one Z with W – X – Z Markov).

        Parameters
        ----------
        rho : float or Fraction
            Correlation of W and X, −1 < ρ < 1.
        sigma_w, sigma_x : float or Fraction
            Standard deviations.
        rho_xz : float or Fraction, optional
            Correlation of X and Z, a Z of variance 1.
        """
        for argument, value in (("rho", rho), ("rho_xz", 0 if rho_xz is None else rho_xz)):
            real = isinstance(value, int | float | Fraction | np.floating)
            if not real or isinstance(value, bool) or not -1 < value < 1:
                remedy = "pass a correlation strictly between −1 and 1"
                raise InputError(argument, f"{value!r}", remedy, value=value)
        sigmas = []
        for argument, sigma in (("sigma_w", sigma_w), ("sigma_x", sigma_x)):
            number(sigma, argument, zero=False)
            sigmas.append(Fraction(sigma if isinstance(sigma, Fraction) else float(sigma)))
        r = Fraction(rho if isinstance(rho, Fraction) else float(rho))
        s, t = sigmas
        if rho_xz is None:
            law = [[s * s, r * s * t], [r * s * t, t * t]]
            return cls(law, sensitive=["W"], key=["X"], names=["W", "X"])
        q = Fraction(rho_xz if isinstance(rho_xz, Fraction) else float(rho_xz))
        law = [
            [s * s, r * s * t, r * q * s],
            [r * s * t, t * t, q * t],
            [r * q * s, q * t, q - q + 1],
        ]
        return cls(law, sensitive=["W"], key=["X"], side=["Z"], names=["W", "X", "Z"])

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        sensitive: Hashable | Sequence[Hashable],
        key: Hashable | Sequence[Hashable],
        side: Hashable | Sequence[Hashable] | None = None,
        shrinkage: str | None = None,
        standardise: bool = False,
    ) -> GaussianSource:
        """Estimate the moments from the records of a table, divided by N − 1.

        Parameters
        ----------
        frame : as in :meth:`DiscreteSource.from_table`
        sensitive, key, side : column name, or several
        shrinkage : {"ledoit-wolf", "oas"}, optional
            Shrink the covariance as scikit-learn does (extra ``examples``); by default the
            moments of tables of integers are exact rationals, so that a column that is a sum of
            others is known to be one.
        standardise : bool
            Divide every column by its standard deviation; a release is in the table's own units.

        Raises
        ------
        InputError
            For columns that are missing, not numbers or constant, missing values, or fewer than
            two records.
        """
        groups = [listed(sensitive, "sensitive"), listed(key, "key")]
        groups.append(() if side is None else listed(side, "side"))
        names = list(dict.fromkeys(name for group in groups for name in group))
        lazy = narwhal(frame).lazy()
        schema = lazy.collect_schema()
        for name in names:
            if name not in schema.names():
                known = ", ".join(schema.names())
                raise InputError("frame", f"no column {name!r}", f"use one of {known}", value=name)
            if not schema[name].is_numeric():
                problem = f"column {name!r} is {schema[name]}, not numbers"
                raise InputError("frame", problem, "convert it, or leave it out", value=name)
        table = collected(lambda: lazy.select(*names))
        columns = [plain(table[name]) for name in names]
        for name, column in zip(names, columns, strict=True):
            if None in column:
                problem = f"a missing value in column {name!r}"
                raise InputError(
                    "frame", problem, "fill or drop such records", where=column.index(None)
                )
        if len(table) < 2:
            raise InputError("frame", f"{len(table)} records", "pass at least two")
        data = np.array(columns, float).T
        if not np.isfinite(data).all():
            raise InputError("frame", "numbers that are not finite", "drop such records")
        for name, column in zip(names, columns, strict=True):
            if len(set(column)) == 1:
                raise InputError(
                    "frame", f"column {name!r} is constant", "leave it out", value=name
                )
        spread = data.std(axis=0, ddof=1) if standardise else np.ones(len(names))
        data = data / spread
        law: Any
        if shrinkage is not None:
            law = _shrunk(data, shrinkage)
        elif all(isinstance(v, int) for c in columns for v in c):
            units = [1 / Fraction(s) for s in spread.tolist()]
            law = [
                [value * a * b for value, b in zip(row, units, strict=True)]
                for row, a in zip(_integer_moments(columns), units, strict=True)
            ]
        else:
            law = np.cov(data, rowvar=False, ddof=1).reshape(len(names), len(names))
            law = (law + law.T) / 2
        source = cls(
            law,
            sensitive=list(groups[0]),
            key=list(groups[1]),
            side=list(groups[2]),
            mean=data.mean(axis=0),
            names=names,
            records=len(data),
        )
        source.scale = spread
        return source

    # ---- what it says --------------------------------------------------------------------

    def __repr__(self) -> str:
        parts = [f"W: {len(self.w)}", f"X: {len(self.x)}"]
        if len(self.basis) < len(self.x):
            parts[-1] += f" of rank {len(self.basis)}"
        parts += [f"Z: {len(self.z)}"] if self.z else []
        behind = "" if self.records is None else f", {self.records:,} records"
        return f"GaussianSource({', '.join(parts)}{behind})"

    def block(self, rows: Sequence[int], columns: Sequence[int]) -> np.ndarray:
        """Return a block of the covariance, in floats."""
        return self.covariance[np.ix_(rows, columns)]

    def conditional(self) -> GaussianSource:
        """Return the source given Z: Cov(W, X | Z), in exact arithmetic.

        Raises
        ------
        InputError
            Without side information, or if Cov(Z) is singular.
        """
        if not self.z:
            raise InputError("side", "there is none", "make the source with side=")
        law = fmpq_mat([[_fmpq(v) for v in row] for row in self.exact])
        others = [i for i in range(len(self.names)) if i not in self.z]

        def part(a: Sequence[int], b: Sequence[int]) -> fmpq_mat:
            return fmpq_mat([[law[i, j] for j in b] for i in a])

        try:
            left = part(others, others) - part(others, self.z) * part(self.z, self.z).solve(
                part(self.z, others)
            )
        except ZeroDivisionError:
            problem, remedy = "the covariance of Z is singular", "leave out what others determine"
            raise InputError("side", problem, remedy) from None
        size = len(others)
        exact = [
            [Fraction(int(left[i, j].p), int(left[i, j].q)) for j in range(size)]
            for i in range(size)
        ]
        source = GaussianSource(
            exact,
            sensitive=[others.index(i) for i in self.w],
            key=[others.index(i) for i in self.x],
            mean=self.mean[others],
            names=[self.names[i] for i in others],
            records=self.records,
        )
        source.scale = self.scale[others]
        return source

    def discretise(self, points: int = 31, span: float = 3.0) -> DiscreteSource:
        """Sample the density of one W and one X on a grid of ±span standard deviations."""
        if len(self.w) != 1 or len(self.x) != 1:
            raise InputError("source", "not one W and one X", "discretise scalars")
        law = self.block(self.w + self.x, self.w + self.x)
        if np.linalg.det(law) <= 0:
            raise InputError("covariance", "W and X determine each other", "pass |ρ| < 1")
        scales, centre = np.sqrt(law.diagonal()), self.mean[self.w + self.x]
        unit = np.linspace(-span, span, whole(points, "points", least=2))
        w, x = np.meshgrid(unit * scales[0], unit * scales[1], indexing="ij")
        inverse = np.linalg.inv(law)
        exponent = inverse[0, 0] * w**2 + 2 * inverse[0, 1] * w * x + inverse[1, 1] * x**2
        density = np.exp(-exponent / 2)
        return DiscreteSource(
            density / density.sum(),
            w=(w[:, 0] + centre[0]).tolist(),
            x=(x[0] + centre[1]).tolist(),
            names=[self.names[i] for i in self.w + self.x],
        )

    def information(self, *, units: str = "bits") -> float:
        """I(W; X), of jointly Gaussian W and X; ∞ where X determines a part of W."""
        x = [self.x[i] for i in self.basis]
        if set(self.w) <= set(self.x):
            return math.inf
        cross = self.block(self.w, x)
        both = [*self.w, *x]
        exact = [[self.exact[i][j] for j in both] for i in both]
        if len(independent(exact)[0]) < len(both):
            return math.inf
        given = self.block(self.w, self.w) - cross @ np.linalg.solve(self.block(x, x), cross.T)
        before = np.linalg.slogdet(self.block(self.w, self.w))[1]
        return float(before - np.linalg.slogdet(given)[1]) / 2 * nat(units)


def rational(value: Any) -> Fraction:
    """Return a number exactly."""
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def _fmpq(value: Fraction) -> fmpq:
    return fmpq(*value.as_integer_ratio())


def _exactly(covariance: Any) -> Exact:
    """Return a symmetric matrix exactly, or say what is wrong with it."""
    remedy = "pass a symmetric positive semidefinite matrix of finite numbers"
    values = array(covariance, "covariance", remedy, axes=(2,), negative=True)
    if values.shape[0] != values.shape[1]:
        raise InputError("covariance", f"shape {values.shape}", remedy)
    rows = covariance.to_numpy() if hasattr(covariance, "to_numpy") else covariance
    rows = rows.tolist() if hasattr(rows, "tolist") else rows
    exact = [[rational(v) for v in row] for row in rows]
    for i, own in enumerate(values.diagonal().tolist()):
        if own < 0:
            raise InputError("covariance", f"{own!r}", remedy, where=(i, i), value=own)
    scale = np.sqrt(np.outer(np.abs(values.diagonal()), np.abs(values.diagonal())))
    off = np.abs(values - values.T) > 1e-12 * scale
    if off.any():
        i, j = (int(k) for k in np.argwhere(off)[0])
        problem = f"{float(values[i, j])!r} at ({i}, {j}), {float(values[j, i])!r} at ({j}, {i})"
        raise InputError("covariance", problem, remedy, where=(i, j), value=float(values[i, j]))
    for i in range(len(exact)):
        for j in range(i):  # rounding is settled in favour of the lower triangle
            exact[j][i] = exact[i][j]
    norm = np.sqrt(np.maximum(values.diagonal(), 1e-300))
    least = np.linalg.eigvalsh(values / np.outer(norm, norm))[0]
    if least < -1e-9:
        problem = f"indefinite: the least eigenvalue of its correlations is {least:.3g}"
        raise InputError("covariance", problem, remedy, value=float(least))
    return exact


def independent(law: Exact) -> tuple[list[int], Exact]:
    """Return variables that determine all, and how, by exact elimination where it might matter."""
    values = np.array([[float(v) for v in row] for row in law])
    norm = np.sqrt(np.maximum(values.diagonal(), 1e-300))
    if np.linalg.eigvalsh(values / np.outer(norm, norm))[0] > 1e-8:  # far above all rounding
        size = len(law)
        return list(range(size)), [
            [Fraction(int(i == j)) for j in range(size)] for i in range(size)
        ]
    matrix = fmpq_mat([[_fmpq(v) for v in row] for row in law])
    reduced, rank = matrix.rref()
    size, pivots = len(law), []
    for i in range(rank):
        pivots.append(next(j for j in range(size) if reduced[i, j] != 0))
    if not pivots:
        raise InputError("key", "constant variables", "name variables that vary")
    if rank == size:
        return pivots, [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    rows = [[reduced[k, i] for k in range(rank)] for i in range(size)]
    return pivots, [[Fraction(int(v.p), int(v.q)) for v in row] for row in rows]


def _integer_moments(columns: Sequence[Sequence[int]]) -> Exact:
    """Return the covariance of whole numbers exactly, divided by N − 1."""
    size = len(columns[0])
    sums = [sum(column) for column in columns]
    return [
        [
            Fraction(size * sum(a * b for a, b in zip(one, two, strict=True)) - s * t,
                     size * (size - 1))
            for two, t in zip(columns, sums, strict=True)
        ]
        for one, s in zip(columns, sums, strict=True)
    ]  # fmt: skip


def _shrunk(data: np.ndarray, shrinkage: str) -> np.ndarray:
    try:
        from sklearn import covariance
    except ImportError:
        remedy = "install it with: pip install 'cvxprivacy[examples]'"
        raise InputError("shrinkage", "needs scikit-learn", remedy) from None
    known: Mapping[str, Any] = {"ledoit-wolf": covariance.LedoitWolf, "oas": covariance.OAS}
    if shrinkage not in known:
        remedy = f"use one of {', '.join(map(repr, known))}"
        raise InputError("shrinkage", f"{shrinkage!r} is unknown", remedy, value=shrinkage)
    found = known[shrinkage]().fit(data).covariance_ * (len(data) / (len(data) - 1))
    return (found + found.T) / 2
