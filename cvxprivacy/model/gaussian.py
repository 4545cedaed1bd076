"""What is known before the release, when it is a covariance: W, X and Z jointly Gaussian."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq_mat

from cvxprivacy.certificates.covariance_proof import basis, definite, log_det, semidefinite
from cvxprivacy.errors import InputError
from cvxprivacy.exact import floats as exact_floats, rational as exact_rational
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import nat
from cvxprivacy.model.matrices import (
    PRECISIONS,
    array as matrix_array,
    block as matrix_block,
    identity,
    rationals as matrix_rationals,
)
from cvxprivacy.tables.engines import as_narwhals, collect, python_values
from cvxprivacy.tables.schema import column_names
from cvxprivacy.validation import array, present, table, typed, whole

__all__ = ["GaussianSource", "entropy", "proved", "symmetric", "volume"]

Law = tuple[tuple[Fraction, ...], ...]

_DIGIT = 20  # bits


class GaussianSource(Frozen):
    """Second moments of confidential W, key X and side information Z.

    Parameters
    ----------
    covariance : array_like, shape (k, k)
        Of all variables, each number as it is typed: a float is the dyadic rational that it is,
        and ``Fraction``s and ``Decimal``s are kept.  It must be positive semidefinite exactly,
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
        T with X − E X = T (X_basis − E X_basis): floats if all entries are, else ``Fraction``s.

    Raises
    ------
    InputError
        For an asymmetric or indefinite covariance, unknown names, or numbers that are not
        finite.  Floats that were rounded may be indefinite by 1e-17: the message tells by how
        much, and what to do.
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
        self.exact: Law = tuple(
            tuple(Fraction(int(v.p), int(v.q)) for v in row) for row in law.tolist()
        )
        self.covariance = frozen(np.array(self.exact, dtype=float))
        if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
            raise InputError("names", f"{names!r}", f"pass {size} distinct names")
        given = (f"V{i}" for i in range(size)) if names is None else map(str, names)
        self.names = tuple(given)
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
        self.mean = self._numbers(np.zeros(size) if mean is None else mean, "mean", negative=True)
        self.scale = self._numbers(np.ones(size) if scale is None else scale, "scale")
        self.records = None if records is None else whole(records, "records", least=1)
        self.basis = self.independent(self.x, "key")
        self.expansion = matrix_array(self._expanding())

    def _places(
        self, given: Sequence[Hashable], argument: str, *, empty: bool = False
    ) -> tuple[int, ...]:
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
        return tuple(found)

    def _numbers(self, values: Any, argument: str, *, negative: bool = False) -> np.ndarray:
        size = len(self.names)
        remedy = f"pass {size} finite numbers{'' if negative else ' > 0'}"
        found = array(values, argument, remedy, axes=(1,), negative=negative)
        if len(found) != size:
            raise InputError(argument, f"{len(found)} numbers", remedy)
        if not negative and not found.all():
            raise InputError(argument, "0", remedy, where=int(np.argmin(found)), value=0.0)
        return frozen(found)  # type: ignore[no-any-return]

    def law(self, rows: Sequence[int], columns: Sequence[int]) -> fmpq_mat:
        """Return a block of the covariance, exactly."""
        return matrix_block(self.exact, rows, columns)

    def independent(self, places: Sequence[int], argument: str) -> tuple[int, ...]:
        """Return places among those given of variables that determine all of them.

        All of them, unless their covariance is exactly singular; then variables that are as
        little correlated as can be, so that the others are moderate combinations.
        """
        size = len(places)
        if self._definite or definite(self.law(places, places)):
            return tuple(range(size))
        order = _apart(self.block(places, places))
        ordered = [places[i] for i in order]
        pivots = basis(self.law(ordered, ordered))
        if not pivots:
            raise InputError(argument, "constant variables", "name variables that vary")
        return tuple(sorted(order[i] for i in pivots))

    def _expanding(self) -> fmpq_mat:
        """Return T."""
        if len(self.basis) == len(self.x):
            return identity(len(self.x))
        key = [self.x[i] for i in self.basis]
        return self.law(key, key).solve(self.law(key, self.x)).transpose()

    # ---- other ways in -------------------------------------------------------------------

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
        if rho_xz is None:
            law = [[s * s, r * s * t], [r * s * t, t * t]]
            return cls(law, sensitive=["W"], key=["X"], names=["W", "X"])
        q = _correlation(rho_xz, "rho_xz")
        law = [
            [s * s, r * s * t, r * q * s],
            [r * s * t, t * t, q * t],
            [r * q * s, q * t, Fraction(1)],
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

        They are exact rationals of the numbers in the table, so that a column that is a
        combination of others is known to be one.

        Parameters
        ----------
        frame : as in :meth:`DiscreteSource.from_table`
        sensitive, key, side : column name, or several
        shrinkage : {"ledoit-wolf", "oas"}, optional
            Shrink the covariance as far as scikit-learn does (extra ``examples``): the share is
            its estimate in floats, the rest is exact.
        standardise : bool
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
                raise InputError(
                    "frame", f"column {name!r} is constant", "leave it out", value=name
                )
        spread = [1.0] * len(names)
        if standardise:
            spread = [_deviation(law[i][i], name) for i, name in enumerate(names)]
        if standardise:
            units = [1 / Fraction(s) for s in spread]
            law = [[v * a * b for v, b in zip(row, units, strict=True)]
                   for row, a in zip(law, units, strict=True)]  # fmt: skip
        if shrinkage is not None:
            law = _shrunk(law, data / spread, shrinkage)
        return cls(
            law,
            sensitive=list(groups[0]),
            key=list(groups[1]),
            side=list(groups[2]),
            mean=[float(mean / Fraction(unit)) for mean, unit in zip(means, spread, strict=True)],
            names=names,
            records=len(data),
            scale=spread,
        )

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

    def discretise(self, points: int = 31, span: float = 3.0) -> DiscreteSource:
        """Sample the density of one W and one X on a grid of ±span standard deviations."""
        if len(self.w) != 1 or len(self.x) != 1:
            raise InputError("source", "not one W and one X", "discretise scalars")
        both = [*self.w, *self.x]
        law = self.law(both, both)
        if law.det() == 0:
            raise InputError("covariance", "W and X determine each other", "pass |ρ| < 1")
        scales, centre = np.sqrt(self.covariance.diagonal()[both]), self.mean[both]
        unit = np.linspace(-span, span, whole(points, "points", least=2))
        w, x = np.meshgrid(unit * scales[0], unit * scales[1], indexing="ij")
        inverse = exact_floats(matrix_array(law.inv()))
        exponent = inverse[0, 0] * w**2 + 2 * inverse[0, 1] * w * x + inverse[1, 1] * x**2
        density = np.exp(-exponent / 2)
        return DiscreteSource(
            density / density.sum(),
            w=(w[:, 0] + centre[0]).tolist(),
            x=(x[0] + centre[1]).tolist(),
            names=[self.names[i] for i in both],
        )

    def information(self, *, units: str = "bits") -> float:
        """I(W; X), of jointly Gaussian W and X; ∞ where X determines a part of W."""
        x = [self.x[i] for i in self.basis]
        both = [*self.w, *x]
        if set(self.w) <= set(self.x) or not definite(self.law(both, both)):
            return math.inf
        parts = [volume(self.law(places, places)) for places in (self.w, x, both)]
        return float((parts[0] + parts[1] - parts[2]) / 2) * nat(units)


def _correlation(value: Any, argument: str) -> Fraction:
    try:
        found = exact_rational(value)
    except (TypeError, ValueError, OverflowError):
        found = Fraction(1)
    if isinstance(value, bool) or not -1 < found < 1:
        remedy = "pass a correlation strictly between −1 and 1"
        raise InputError(argument, f"{value!r}", remedy, value=value)
    return found


def volume(law: fmpq_mat) -> arb:
    """Return log det of a positive definite matrix, to a hundred bits at least."""
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            found = log_det(law)
            if found is not None and found.rad() <= 2.0**-100 * (1 + abs(found)).lower():
                return found
    raise InputError("covariance", "too nearly singular", "leave out what others determine")


def entropy(law: fmpq_mat, units: str) -> arb:
    """Return h(W) = ½ log det 2πe Cov(W) of Gaussian W in a ball, about thirty digits of it."""
    with ctx.workprec(PRECISIONS[0]):
        nats = (volume(law) + law.nrows() * (1 + (2 * arb.pi()).log())) / 2
        return nats / arb(2).log() if units == "bits" else nats


def symmetric(values: Any, argument: str, remedy: str) -> fmpq_mat:
    """Return a symmetric matrix of typed numbers exactly, or say what is wrong with it.

    Where (i, j) and (j, i) differ by rounding their mean is taken, whatever their order.
    """
    given = np.asarray(table(values, argument, remedy, axes=(2,), negative=True))
    if given.shape[0] != given.shape[1]:
        raise InputError(argument, f"shape {given.shape}", remedy)
    near = exact_floats(given)
    for i, own in enumerate(near.diagonal().tolist()):
        if own < 0:
            raise InputError(argument, f"{own!r}", remedy, where=(i, i), value=own)
    scale = np.sqrt(np.abs(near.diagonal()))
    off = np.abs(near - near.T) > 1e-12 * np.outer(scale, scale)
    if off.any():
        i, j = (int(k) for k in np.argwhere(off)[0])
        problem = (
            f"asymmetric, {float(near[i, j])!r} at ({i}, {j}), {float(near[j, i])!r} at ({j}, {i})"
        )
        raise InputError(argument, problem, remedy, where=(i, j), value=float(near[i, j]))
    found = matrix_rationals(given)
    return (found + found.transpose()) / 2


def proved(matrix: fmpq_mat, argument: str, remedy: str) -> bool:
    """Tell whether a matrix is positive definite rather than semidefinite; refuse any other."""
    with ctx.workprec(PRECISIONS[0]):
        if log_det(matrix) is not None:
            return True
        if semidefinite(matrix):
            return False
        least, factor = _lacking(matrix)
    problem = f"indefinite: the least eigenvalue of its correlations is {least:.3g}"
    if factor is not None:
        problem += f"; multiply its diagonal by {factor!r} to lift it above 0"
    raise InputError(argument, problem, remedy, value=least)


def _lacking(matrix: fmpq_mat) -> tuple[float, float | None]:
    """Return the least eigenvalue of the correlations, and what the diagonal lacks a factor of.

    Where floats cannot tell it from 0, it is known to a factor of two.
    """
    size = matrix.nrows()
    diagonal = [matrix[i, i] for i in range(size)]
    if any(own == 0 and any(matrix[i, j] != 0 for j in range(size))
           for i, own in enumerate(diagonal)):  # fmt: skip
        return -math.inf, None
    near = exact_floats(matrix_array(matrix))
    norm = np.sqrt(np.where(near.diagonal() > 0, near.diagonal(), 1.0))
    least = float(np.linalg.eigvalsh(near / norm[:, None] / norm)[0])
    if least > -1e-12:
        low, high = -1074, -39  # 2^low is too little, 2^high enough
        while high - low > 1:
            middle = (low + high) // 2
            enough = semidefinite(_lifted(matrix, Fraction(2) ** middle))
            low, high = (low, middle) if enough else (middle, high)
        least = -(2.0**high)
    return least, 1 + max(-2 * least, 2.0**-50)


def _lifted(matrix: fmpq_mat, share: Fraction) -> fmpq_mat:
    """Return the matrix with (1 + share) times its diagonal."""
    found = fmpq_mat(matrix)
    by = matrix_rationals([[1 + share]])[0, 0]
    for i in range(matrix.nrows()):
        found[i, i] = by * matrix[i, i]
    return found


def _apart(law: np.ndarray) -> list[int]:
    """Return variables in order, each one that those before it explain least, in floats."""
    norm = np.sqrt(np.where(law.diagonal() > 0, law.diagonal(), 1.0))
    left, order = law / norm[:, None] / norm, []
    rest = list(range(len(law)))
    while rest:
        first = max(rest, key=lambda i: (left[i, i], -i))
        rest.remove(first)
        order.append(first)
        if left[first, first] > 0:
            left = left - np.outer(left[first], left[first]) / left[first, first]
    return order


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
    totals = [together(own, [ends[-1]]) for own in places]
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
        found = math.sqrt(variance)
    except OverflowError:
        found = math.inf
    if not 0 < found < math.inf:
        problem = f"the variance of column {name!r} is no float"
        raise InputError("frame", problem, "choose another unit of it", value=name)
    return found


def _shrunk(
    law: Sequence[Sequence[Fraction]], data: np.ndarray, shrinkage: str
) -> list[list[Fraction]]:
    """Return (1 − α) S + α (tr S / k) I, with scikit-learn's α."""
    try:
        from sklearn import covariance
    except ImportError:
        remedy = "install it with: pip install 'cvxprivacy[examples]'"
        raise InputError("shrinkage", "needs scikit-learn", remedy) from None
    known: Mapping[str, Any] = {"ledoit-wolf": covariance.LedoitWolf, "oas": covariance.OAS}
    if shrinkage not in known:
        remedy = f"use one of {', '.join(map(repr, known))}"
        raise InputError("shrinkage", f"{shrinkage!r} is unknown", remedy, value=shrinkage)
    size, share = len(law), Fraction(float(known[shrinkage]().fit(data).shrinkage_))
    mean = sum((law[i][i] for i in range(size)), Fraction(0)) / size
    return [
        [(1 - share) * law[i][j] + (share * mean if i == j else 0) for j in range(size)]
        for i in range(size)
    ]
