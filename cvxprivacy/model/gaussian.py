"""What is known before the release, when it is a covariance: W, X and Z jointly Gaussian.

Means and covariances of a table's columns are counted exactly.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from flint import fmpq_mat

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, floats as exact_floats, rational as exact_rational
from cvxprivacy.extras import required
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import nat
from cvxprivacy.model.matrices import (
    array as matrix_array,
    block as matrix_block,
    fractions,
    identity,
    independent,
    proved,
    symmetric,
    volume,
)
from cvxprivacy.tables.engines import as_narwhals, collect, python_values
from cvxprivacy.tables.schema import column_names
from cvxprivacy.text import brief, facts_html, matrix_html
from cvxprivacy.validation import array, integer, one_of, present, typed
from cvxprivacy_verifier.matrices import definite

__all__ = ["GaussianSource", "Moments", "moments_of"]

Law = tuple[tuple[Fraction, ...], ...]


class GaussianSource(Frozen):
    """Second moments of confidential W, key X and side information Z.

    Parameters
    ----------
    covariance : array_like, shape (k, k)
        Of all variables, each number as it is typed: a float is the dyadic rational that it is,
        and Fractions and Decimals are kept.  It must be positive semidefinite exactly,
        which is proved; where two entries that should be equal differ by rounding, their mean is
        taken.
    sensitive, key, side : sequence of int or str
        Which variables are W, X and Z, by place or by name.  W and X may share variables only
        if all of W is in X.
    mean : array_like, shape (k,), optional
        By default 0.
    names : sequence of str, optional
        Of the variables.
    records : int, optional
        Number of records behind the moments.
    scale : array_like, shape (k,), optional
        The unit of each variable in those of the table that is released: by default 1.

    Attributes
    ----------
    exact : tuple of tuples of Fraction
        The covariance as it was given.
    covariance : ndarray
        Its nearest floats.
    w, x, z : tuple of int
        Places of the variables.
    basis : tuple of int
        Places within ``x`` of variables that determine all of X: all of them, unless Σ_X is
        singular, which is decided in rational arithmetic; then those that do so best.
    expansion : ndarray, shape (|X|, |basis|)
        T with X − E X = T (X_basis − E X_basis): floats if all entries are, else Fractions.

    Raises
    ------
    InputError
        For an asymmetric or indefinite covariance, unknown names, or numbers that are not
        finite.  Floats that were rounded may be indefinite by 1e-17: the message tells by how
        much, and what to do.

    Examples
    --------
    One W and one X of correlation 0.8 share −½ log₂(1 − 0.8²) = 0.737 bits:

    >>> import cvxprivacy as cpv
    >>> source = cpv.GaussianSource([[1, 0.8], [0.8, 1]], sensitive=[0], key=[1])
    >>> round(source.information(), 4)
    0.737
    >>> from math import log2
    >>> round(-0.5 * log2(1 - 0.8**2), 4)
    0.737
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
        scale: npt.ArrayLike | None = None,
    ) -> None:
        remedy = "pass a symmetric positive semidefinite matrix of finite numbers"
        law = symmetric(covariance, "covariance", remedy)
        self._definite = proved(law, "covariance", f"{remedy}, or use from_table, which is exact")
        size = law.nrows()
        self.exact: Law = tuple(map(tuple, fractions(law)))
        self.covariance = frozen(np.array(self.exact, dtype=float))
        if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
            raise InputError("names", f"{names!r}", f"pass {size} distinct names")
        self.names = tuple(map(str, (f"V{i}" for i in range(size)) if names is None else names))
        if len(self.names) != size or len(set(self.names)) != size:
            raise InputError("names", f"{self.names!r}", f"pass {size} distinct names")
        self.w = _places(sensitive, self.names, "sensitive")
        self.x = _places(key, self.names, "key")
        self.z = _places(side, self.names, "side", empty=True)
        shared = set(self.w) & set(self.x)
        if shared and shared != set(self.w):
            remedy = "let W be part of X altogether, or have nothing of it"
            raise InputError("sensitive", "shares some of its variables with the key", remedy)
        if set(self.z) & {*self.w, *self.x}:
            remedy = "name each variable once"
            raise InputError("side", "shares variables with sensitive or key", remedy)
        mean = np.zeros(size) if mean is None else mean
        self.mean = _numbers(mean, size, "mean", negative=True)
        self.scale = _numbers(np.ones(size) if scale is None else scale, size, "scale")
        self.records = None if records is None else integer(records, "records", least=1)
        self.basis = self.independent(self.x, "key")
        self.expansion = matrix_array(self._expanding())

    def law(self, rows: Sequence[int], columns: Sequence[int]) -> fmpq_mat:
        """Return a block of the covariance, exactly.

        Parameters
        ----------
        rows, columns : sequence of int
            Places of variables.
        """
        return matrix_block(self.exact, rows, columns)

    def independent(self, places: Sequence[int], argument: str) -> tuple[int, ...]:
        """Return places among those given of variables that determine all of them.

        All of them, unless their covariance is exactly singular; then those least correlated.

        Parameters
        ----------
        places : sequence of int
            Places of variables.
        argument : str
            What they are called in an error.
        """
        if self._definite:
            return tuple(range(len(places)))
        return independent(self.law(places, places), self.block(places, places), argument)

    def _expanding(self) -> fmpq_mat:
        """Return T."""
        if len(self.basis) == len(self.x):
            return identity(len(self.x))
        key = [self.x[i] for i in self.basis]
        return self.law(key, key).solve(self.law(key, self.x)).transpose()

    @classmethod
    def scalar(
        cls, rho: Any, *, sigma_w: Any = 1, sigma_x: Any = 1, rho_xz: Any = None
    ) -> GaussianSource:
        """Make the source of one W and one X (and one Z with W – X – Z Markov).

        Parameters
        ----------
        rho : number
            Correlation of W and X, −1 < ρ < 1.
        sigma_w, sigma_x : number
            Standard deviations.
        rho_xz : number, optional
            Correlation of X and Z, a Z of variance 1.
        """
        r = _correlation(rho, "rho")
        s, t = (
            exact_rational(typed(sigma, argument, zero=False))
            for argument, sigma in (("sigma_w", sigma_w), ("sigma_x", sigma_x))
        )
        q = Fraction(0) if rho_xz is None else _correlation(rho_xz, "rho_xz")
        law = [
            [s * s, r * s * t, r * q * s],
            [r * s * t, t * t, q * t],
            [r * q * s, q * t, Fraction(1)],
        ]
        if rho_xz is None:
            law = [row[:2] for row in law[:2]]
        names = ["W", "X", "Z"][: len(law)]
        return cls(law, sensitive=["W"], key=["X"], side=names[2:], names=names)

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        sensitive: Hashable | Sequence[Hashable],
        key: Hashable | Sequence[Hashable],
        side: Hashable | Sequence[Hashable] | None = None,
        shrinkage: str | None = None,
        standardize: bool = False,
    ) -> GaussianSource:
        """Estimate the moments from the records of a table, divided by N − 1.

        They are exact rationals of the numbers in the table, so that a column that is a
        combination of others is known to be one.

        Parameters
        ----------
        frame : frame
            A table, as :meth:`DiscreteSource.from_table` takes it.
        sensitive : column name, or several
            W.
        key : column name, or several
            X, which is to be released.
        side : column name, or several, optional
            Z, side information of the user.
        shrinkage : {"ledoit-wolf", "oas"}, optional
            Shrink the covariance as far as scikit-learn does (extra ``masking``): the share is
            its estimate in floats, the rest is exact.
        standardize : bool
            Divide every column by the float next to its standard deviation; a release is in the
            table's own units.

        Raises
        ------
        InputError
            For columns that are missing, not numbers or constant, missing values, or fewer than
            two records.
        """
        groups = [column_names(sensitive, "sensitive"), column_names(key, "key")]
        groups.append(() if side is None else column_names(side, "side"))
        names = list(dict.fromkeys(name for group in groups for name in group))
        moments = moments_of(frame, names, shrinkage, standardize)
        places = dict(zip(("sensitive", "key", "side"), map(list, groups), strict=True))
        return cls(
            moments.covariance,
            **places,
            mean=moments.mean,
            names=names,
            records=moments.records,
            scale=moments.scale,
        )

    def __repr__(self) -> str:
        parts = [f"W: {len(self.w)}", f"X: {len(self.x)}"]
        if len(self.basis) < len(self.x):
            parts[-1] += f" of rank {len(self.basis)}"
        parts += [f"Z: {len(self.z)}"] if self.z else []
        behind = "" if self.records is None else f", {self.records:,} records"
        return f"GaussianSource({', '.join(parts)}{behind})"

    def _repr_html_(self) -> str:
        places = [("W", self.w), ("X", self.x)] + ([("Z", self.z)] if self.z else [])
        rows = [(letter, brief([self.names[i] for i in variables])) for letter, variables in places]
        rows.append(("I(W; X)", f"{self.information():.4f} bits"))
        shown = [i for _, variables in places for i in variables]
        names = [f"{letter}: {self.names[i]}" for letter, variables in places for i in variables]
        table = matrix_html("covariance", self.block(shown, shown), names, names, shaded=False)
        return facts_html(repr(self), rows, table)

    def block(self, rows: Sequence[int], columns: Sequence[int]) -> np.ndarray:
        """Return a block of the covariance, in floats.

        Parameters
        ----------
        rows, columns : sequence of int
            Places of variables.
        """
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
        others = [i for i in range(len(self.names)) if i not in self.z]
        try:
            inner = self.law(self.z, self.z).solve(self.law(self.z, others))
        except ZeroDivisionError:
            problem, remedy = "the covariance of Z is singular", "leave out what others determine"
            raise InputError("side", problem, remedy) from None
        return GaussianSource(
            matrix_array(self.law(others, others) - self.law(others, self.z) * inner),
            sensitive=[others.index(i) for i in self.w],
            key=[others.index(i) for i in self.x],
            mean=self.mean[others],
            names=[self.names[i] for i in others],
            records=self.records,
            scale=self.scale[others],
        )

    def discretise(
        self, points: int = 31, span: float = 3.0, *, z_points: int = 0
    ) -> DiscreteSource:
        """Sample the density of one W and one X on a grid of ±span standard deviations.

        Parameters
        ----------
        points : int
            Of W, and of X.
        span : float
            Standard deviations from the mean to the ends of the grid.
        z_points : int
            Of one Z, which is left out by default: the nodes of Gauss and Hermite, which share
            2 z_points − 1 moments with Z; p(w, x | z) is sampled at each of them.
        """
        return _sampled(self, points, span, z_points)

    def information(self, *, units: str = "bits") -> float:
        """Return I(W; X), of jointly Gaussian W and X; ∞ where X determines a part of W.

        Parameters
        ----------
        units : {"bits", "nats"}
            Of the information.
        """
        x = [self.x[i] for i in self.basis]
        both = [*self.w, *x]
        if set(self.w) <= set(self.x) or not definite(self.law(both, both)):
            return math.inf
        parts = [volume(self.law(places, places)) for places in (self.w, x, both)]
        return float((parts[0] + parts[1] - parts[2]) / 2) * nat(units)


def _sampled(source: GaussianSource, points: int, span: float, z_points: int) -> DiscreteSource:
    """Return p(w, x) on a grid, or p(w, x, z)."""
    if len(source.w) != 1 or len(source.x) != 1:
        raise InputError("source", "not one W and one X", "discretise scalars")
    if integer(z_points, "z_points", least=0) and len(source.z) != 1:
        raise InputError("z_points", f"{len(source.z)} Z", "make the source with one Z, or pass 0")
    both, conditional = [*source.w, *source.x], source.conditional() if z_points else source
    law = conditional.law([*conditional.w, *conditional.x], [*conditional.w, *conditional.x])
    if law.det() == 0:
        condition = ", given Z" if z_points else ""
        raise InputError("covariance", f"W and X determine each other{condition}", "pass |ρ| < 1")
    scales, centre = np.sqrt(source.covariance.diagonal()[both]), source.mean[both]
    unit = np.linspace(-span, span, integer(points, "points", least=2))
    w, x = np.meshgrid(unit * scales[0], unit * scales[1], indexing="ij")
    inverse = exact_floats(matrix_array(law.inv()))

    def density(dw: Any, dx: Any) -> FloatArray:
        exponent = inverse[0, 0] * dw**2 + 2 * inverse[0, 1] * dw * dx + inverse[1, 1] * dx**2
        sampled: FloatArray = np.exp((exponent.min() - exponent) / 2)  # never all of them 0
        return sampled / sampled.sum()

    grid = {"w": (w[:, 0] + centre[0]).tolist(), "x": (x[0] + centre[1]).tolist()}
    if not z_points:
        return DiscreteSource(density(w, x), **grid, names=[source.names[i] for i in both])
    nodes, mass = np.polynomial.hermite_e.hermegauss(z_points)
    scale = math.sqrt(source.covariance[source.z[0], source.z[0]])
    slopes = source.block(both, source.z)[:, 0] / scale  # of E[W | z] and E[X | z], by node
    given_z = [density(w - slopes[0] * node, x - slopes[1] * node) for node in nodes]
    return DiscreteSource(
        np.stack(given_z, axis=2) * (mass / mass.sum()),
        **grid,
        z=(source.mean[source.z[0]] + scale * nodes).tolist(),
        names=[source.names[i] for i in (*both, *source.z)],
    )


def _places(
    variables: Any, names: Sequence[str], argument: str, *, empty: bool = False
) -> tuple[int, ...]:
    """Return the places of variables that are named, or numbered."""
    one = isinstance(variables, str) or not isinstance(variables, Iterable)
    places = []
    for item in [variables] if one else list(variables):
        number = isinstance(item, int | np.integer) and not isinstance(item, bool)
        if isinstance(item, str) and item in names:
            places.append(names.index(item))
        elif number and 0 <= item < len(names):
            places.append(int(item))
        else:
            remedy = f"use places below {len(names)} or names: {', '.join(names)}"
            raise InputError(argument, f"no variable {item!r}", remedy, value=item)
    if len(set(places)) != len(places) or not (places or empty):
        problem = "no variable" if not places else f"{variables!r} names a variable twice"
        raise InputError(argument, problem, "name each variable once")
    return tuple(places)


def _numbers(values: Any, size: int, argument: str, *, negative: bool = False) -> np.ndarray:
    """Return one number for each variable."""
    remedy = f"pass {size} finite numbers{'' if negative else ' > 0'}"
    numbers = array(values, argument, remedy, axes=(1,), negative=negative)
    if len(numbers) != size:
        raise InputError(argument, f"{len(numbers)} numbers", remedy)
    if not negative and not numbers.all():
        raise InputError(argument, "0", remedy, where=int(np.argmin(numbers)), value=0.0)
    return cast(np.ndarray, frozen(numbers))


def _correlation(value: Any, argument: str) -> Fraction:
    try:
        rho = exact_rational(value)
    except (TypeError, ValueError, OverflowError):
        rho = Fraction(1)
    if isinstance(value, bool) or not -1 < rho < 1:
        remedy = "pass a correlation strictly between −1 and 1"
        raise InputError(argument, f"{value!r}", remedy, value=value)
    return rho


# ---- means and covariances of a table, exactly --------------------------------------------


_DIGIT = 20  # bits

Covariance = list[list[Fraction]]


@dataclass(frozen=True)
class Moments:
    """Second moments of columns, in units of ``scale`` each."""

    covariance: Covariance
    mean: list[float]
    scale: list[float]
    records: int


def moments_of(
    frame: Any, names: Sequence[Any], shrinkage: str | None, standardize: bool
) -> Moments:
    """Return the moments of a table's columns; parameters as of ``GaussianSource.from_table``."""
    lazy = as_narwhals(frame).lazy()
    schema = lazy.collect_schema()
    for name in names:
        present(name, schema.names(), "frame")
        if not schema[name].is_numeric():
            problem = f"column {name!r} is {schema[name]}, not numbers"
            raise InputError("frame", problem, "convert it, or leave it out", value=name)
    records = collect(lambda: lazy.select(*names))
    columns = [python_values(records[name]) for name in names]
    for name, column in zip(names, columns, strict=True):
        if None in column:
            problem = f"a missing value in column {name!r}"
            raise InputError(
                "frame", problem, "fill or drop such records", where=column.index(None)
            )
    if len(records) < 2:
        raise InputError("frame", f"{len(records)} records", "pass at least two")
    data = np.array(columns, float).T
    if not np.isfinite(data).all():
        raise InputError("frame", "numbers that are not finite", "drop such records")
    columns = [records[name].to_list() for name in names]  # decimals as they are
    means, law = _moments(columns)
    for i, name in enumerate(names):
        if not law[i][i]:
            raise InputError("frame", f"column {name!r} is constant", "leave it out", value=name)
    spread = [1.0] * len(names)
    if standardize:
        spread = [_deviation(law[i][i], name) for i, name in enumerate(names)]
    if standardize:
        units = [1 / Fraction(s) for s in spread]
        law = [[v * a * b for v, b in zip(row, units, strict=True)]
               for row, a in zip(law, units, strict=True)]  # fmt: skip
    if shrinkage is not None:
        law = _shrunk(law, data / spread, shrinkage)
    mean = [float(mean / Fraction(unit)) for mean, unit in zip(means, spread, strict=True)]
    return Moments(law, mean, spread, len(data))


def _moments(columns: Sequence[Sequence[Any]]) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Return means and covariances of columns of numbers exactly, divided by N − 1.

    Each number is split into digits below 2²⁰ in absolute value.  Of 2¹³ records at a time, sums
    of products of digits are whole numbers below 2⁵³, whatever order floats add them in.
    """
    size, split = len(columns[0]), [_digits(column) for column in columns]
    ends = np.cumsum([len(digits) for digits, _ in split]).tolist()
    places = [range(end - len(digits), end) for end, (digits, _) in zip(ends, split, strict=True)]
    table = np.vstack([*(digits for digits, _ in split), np.ones(size)]).T
    sums = np.zeros((ends[-1] + 1,) * 2, dtype=object)
    for start in range(0, size, 2**13):
        some = table[start : start + 2**13]
        sums += (some.T @ some).astype(np.int64).astype(object)

    def together(rows: Sequence[int], of: Sequence[int]) -> int:
        return sum(int(sums[i, j]) << _DIGIT * (i - rows[0] + j - of[0]) for i in rows for j in of)

    units = [unit for _, unit in split]
    totals = [together(column, [ends[-1]]) for column in places]
    law = [
        [
            Fraction(size * together(one, two) - s * t, size * (size - 1)) * a * b
            for two, t, b in zip(places, totals, units, strict=True)
        ]
        for one, s, a in zip(places, totals, units, strict=True)
    ]
    return [total * unit / size for total, unit in zip(totals, units, strict=True)], law


def _digits(column: Sequence[Any]) -> tuple[np.ndarray, Fraction]:
    """Return digits of numbers in units of a rational, the last ones first, and the unit."""
    near = np.array(column, dtype=float)
    small = (np.abs(near) <= 2.0**53).tolist()
    if all(type(v) is float or (type(v) is int and s) for v, s in zip(column, small, strict=True)):
        fraction, exponent = np.frexp(near)
        mantissa = np.abs(fraction * 2.0**53).astype(np.uint64)
        mantissa[mantissa == 0], sign = 2**52, np.sign(near)
        last = np.frexp((mantissa & (~mantissa + np.uint64(1))).astype(float))[1] - 1
        least = int(np.where(sign == 0, exponent.max(), exponent + last).min())
        shift = exponent - least  # the number is mantissa 2^shift, in units of 2^(least − 53)
        count = int(shift.max() + 52) // _DIGIT + 1
        digits = np.empty((count, len(near)))
        for k in range(count):
            left = shift - _DIGIT * k
            up = np.where(left > -64, mantissa >> np.clip(-left, 0, 63).astype(np.uint64), 0)
            up = np.where(left < _DIGIT, up << np.clip(left, 0, _DIGIT).astype(np.uint64), 0)
            digits[k] = sign * (up & np.uint64(2**_DIGIT - 1)).astype(float)
        return digits, Fraction(2) ** (least - 53)
    ratios = [value.as_integer_ratio() for value in column]
    unit = math.lcm(*{below for _, below in ratios})
    numbers = [above * (unit // below) for above, below in ratios]
    count = max(abs(number).bit_length() for number in numbers) // _DIGIT + 1
    mask = 2**_DIGIT - 1
    digits = np.array(
        [[(abs(n) >> _DIGIT * k & mask) * (-1 if n < 0 else 1) for n in numbers]
         for k in range(count)], dtype=float,
    )  # fmt: skip
    return digits, Fraction(1, unit)


def _deviation(variance: Fraction, name: str) -> float:
    """Return the square root of a column's variance."""
    try:
        deviation = math.sqrt(variance)
    except OverflowError:
        deviation = math.inf
    if not 0 < deviation < math.inf:
        problem = f"the variance of column {name!r} is no float"
        raise InputError("frame", problem, "choose another unit of it", value=name)
    return deviation


def _shrunk(
    law: Sequence[Sequence[Fraction]], data: np.ndarray, shrinkage: str
) -> list[list[Fraction]]:
    """Return (1 − α) S + α (tr S / k) I, with scikit-learn's α."""
    estimators = {"ledoit-wolf": "LedoitWolf", "oas": "OAS"}
    one_of(shrinkage, "shrinkage", *estimators)
    covariance = required("sklearn.covariance", "cvxprivacy[shrinkage]", "shrinkage")
    estimator = getattr(covariance, estimators[shrinkage])()
    size, share = len(law), Fraction(float(estimator.fit(data).shrinkage_))
    mean = sum((law[i][i] for i in range(size)), Fraction(0)) / size
    return [
        [(1 - share) * law[i][j] + (share * mean if i == j else 0) for j in range(size)]
        for i in range(size)
    ]
