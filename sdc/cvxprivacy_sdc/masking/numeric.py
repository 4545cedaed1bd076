"""Columns of numbers masked: microaggregation, additive noise with its rescaling, rank swapping.

Microaggregation replaces every record by the mean of a group of at least k: J. Domingo-Ferrer and
J. M. Mateo-Sanz, Practical data-oriented microaggregation for statistical disclosure control, IEEE
Transactions on Knowledge and Data Engineering 14 (2002) 189–201.  Noise, and the rescaling that
restores means and variances: J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebé, Probabilistic
information loss measures in confidentiality protection of continuous microdata, Data Mining and
Knowledge Discovery 11 (2005) 181–193, §5.  Rank swapping, in which each attribute's values change
places within a window of ranks: R. Moore, Controlled data swapping techniques for masking public
use microdata sets, U.S. Bureau of the Census, 1996.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.tables.arrays import deviations, is_frame, like, numbers, paired
from cvxprivacy.validation import integer, number
from cvxprivacy_sdc import partitions

__all__ = [
    "MDAV",
    "AdditiveNoise",
    "HansenMukherjee",
    "Masking",
    "MuApprox",
    "RankSwapping",
    "Rescaled",
    "generator",
    "rescale",
]

Groups = int | Sequence[Sequence[Hashable]] | None


# ---- what the methods share: tables in, tables out, in scikit-learn's manner -------------


class Masking(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """A method that replaces every column of a table.

    A frame comes back as a frame of its own flavour, with its index and names, an array as an
    array; ``set_output`` overrides that.
    """

    n_features_in_: int

    def _numbers(self, X: Any, *, reset: bool = True) -> np.ndarray:
        """Return the table as finite numbers, shape (n, p), or say which cell is none."""
        if is_frame(X, "X"):
            numbers(X, "X")
        data = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        bad = ~np.isfinite(data)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            value = float(data[row, column])
            problem = "NaN" if np.isnan(value) else repr(value)
            remedy = "fill or drop what is missing or infinite"
            raise InputError("X", problem, remedy, where=(row, column), value=value)
        return np.asarray(data)

    def _output(self, released: Any) -> Any:
        """Return a frame as it is, or for ``set_output`` as one that scikit-learn can convert."""
        config = getattr(self, "_sklearn_output_config", {})
        wanted = config.get("transform", get_config()["transform_output"])
        if wanted == "default" or not is_frame(released, "X"):
            return released
        return nw.from_native(released, eager_only=True).to_pandas()


class TableMasking(Masking):
    """A method whose promise concerns the records that it is fitted on: there is no ``transform``.

    Ranks or groups of further records would not be those of these.
    """

    def _masked(self, data: np.ndarray) -> np.ndarray:
        """Set what is fitted; return the masked records, shape (n, p)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the groups, or the swaps, of the records of X, a table of finite numbers."""
        self._masked(self._numbers(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the masked table."""
        return self._output(like(X, self._masked(self._numbers(X))))


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from a seed, a generator of either kind, or fresh entropy (None)."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**32, size=4, dtype=np.uint32).tolist()
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        remedy = "pass None, a whole number ≥ 0 or a numpy.random.Generator"
        problem = f"{random_state!r} ({error})"
        raise InputError("random_state", problem, remedy, value=random_state) from None


# ---- microaggregation --------------------------------------------------------------------


class Microaggregation(TableMasking):
    """What the microaggregations share; they differ in how the records are partitioned."""

    groups: Groups
    standardize: bool
    _partition: Callable[[np.ndarray, int], partitions.Labels]

    def __init__(self, k: int = 3, *, groups: Groups = None, standardize: bool = True) -> None:
        self.k, self.groups, self.standardize = k, groups, standardize

    @property
    def _most(self) -> int:
        """How many records a group has at most."""
        return 2 * self.k - 1

    def _masked(self, data: np.ndarray) -> np.ndarray:
        k = partitions.least_size(self.k, len(data))
        self.groups_ = self._attribute_groups()
        spread = deviations(data)
        scaled = data / np.where(self.standardize & (spread > 0), spread, 1.0)
        masked, labels = np.empty_like(data), []
        for places in self.groups_:
            partition = self._partition(scaled[:, places], k)
            sizes = np.bincount(partition)
            assert k <= sizes.min(), "a group of fewer than k"
            assert sizes.max() <= self._most, "a group larger than the method allows"
            masked[:, places] = partitions.means(data[:, places], partition)
            labels.append(partition)
        self.labels_ = labels[0] if len(labels) == 1 else np.array(labels).T
        return masked

    def _attribute_groups(self) -> list[list[int]]:
        """Return the places of the attributes that are grouped together."""
        size, groups = self.n_features_in_, self.groups
        if groups is None:
            return [list(range(size))]
        if isinstance(groups, int | np.integer):
            each = min(integer(groups, "groups", least=1), size)
            starts = list(range(0, size - each + 1, each))  # the last one takes the remainder
            return [list(range(a, b)) for a, b in zip(starts, [*starts[1:], size], strict=True)]
        names = list(getattr(self, "feature_names_in_", range(size)))
        remedy = f"put each of {', '.join(map(str, names))} into one group"
        places_of = []
        for i, group in enumerate(groups):
            one = isinstance(group, str) or not isinstance(group, Sequence | np.ndarray)
            places = []
            for name in [group] if one else list(group):
                if name not in names:
                    raise InputError("groups", f"no column {name!r}", remedy, where=i, value=name)
                places.append(names.index(name))
            places_of.append(places)
        named = [place for places in places_of for place in places]
        if sorted(named) != list(range(size)) or not all(places_of):
            raise InputError("groups", f"{groups!r}", remedy)
        return places_of


class MDAV(Microaggregation):
    """Microaggregation by maximum distance to average vector: groups of k to 2k − 1 records.

    The algorithm and its source: :func:`cvxprivacy_sdc.partitions.mdav`.

    Parameters
    ----------
    k : int
        Least size of a group.
    groups : int or sequence of sequences of columns, optional
        Attributes that are grouped together: by default all at once; a number takes so many at
        a time in the order of the table, the last group with the remainder (1: each by itself);
        else the columns of each group, by name in a frame, by number in an array.
    standardize : bool
        Measure distances in standard deviations; the means are of the values themselves.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n,) or (n, attribute groups)
        Group of each record; one column per attribute group where there are several.
    groups_ : list of lists of int
        Places of the attributes of each attribute group.

    Examples
    --------
    >>> MDAV(k=2).fit_transform([[1.0], [2.0], [10.0], [12.0]]).ravel()
    array([ 1.5,  1.5, 11. , 11. ])
    """

    _partition = staticmethod(partitions.mdav)


class MuApprox(Microaggregation):
    """μ-Approx microaggregation: groups of k to max(2k − 1, 3k − 5) records.

    The algorithm and its source: :func:`cvxprivacy_sdc.partitions.mu_approx`.

    Parameters
    ----------
    k : int
        Least size of a group.
    groups : int or sequence of sequences of columns, optional
        Attributes that are grouped together, as of :class:`MDAV`.
    standardize : bool
        Measure distances in standard deviations; the means are of the values themselves.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n,) or (n, attribute groups)
        Group of each record; one column per attribute group where there are several.
    groups_ : list of lists of int
        Places of the attributes of each attribute group.

    Examples
    --------
    MDAV takes the two ends off, and leaves a pair that is far apart; here the forest of nearest
    neighbours has two trees:

    >>> table = [[0.0], [1.0], [2.0], [6.0], [7.0], [8.0]]
    >>> MDAV(k=2).fit_transform(table).ravel()
    array([0.5, 0.5, 4. , 4. , 7.5, 7.5])
    >>> MuApprox(k=2).fit_transform(table).ravel()
    array([1., 1., 1., 7., 7., 7.])
    """

    _partition = staticmethod(partitions.mu_approx)

    @property
    def _most(self) -> int:
        return max(2 * self.k - 1, 3 * self.k - 5)


class HansenMukherjee(Microaggregation):
    """Optimal univariate microaggregation, each attribute by itself ("individual ranking").

    The sum of squared errors is the least of all partitions into groups of at least k:
    :func:`cvxprivacy_sdc.partitions.hansen_mukherjee`.

    Parameters
    ----------
    k : int
        Least size of a group.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n,) or (n, p)
        Group of each record; one column per attribute where there are several.

    Examples
    --------
    >>> table = [[0.0], [1.0], [2.0], [6.0], [7.0], [8.0]]
    >>> HansenMukherjee(k=2).fit_transform(table).ravel()
    array([1., 1., 1., 7., 7., 7.])

    Each attribute has groups of its own: a record may be with one neighbour by age, and with
    another by income.

    >>> HansenMukherjee(k=2).fit([[0, 9], [1, 3], [6, 10], [7, 2]]).labels_.tolist()
    [[0, 1], [0, 0], [1, 1], [1, 0]]
    """

    groups, standardize = 1, False  # not of the constructor
    _partition = staticmethod(partitions.hansen_mukherjee)

    def __init__(self, k: int = 3) -> None:
        self.k = k


# ---- noise -------------------------------------------------------------------------------


class AdditiveNoise(Masking):
    """Add Gaussian noise: X̂ = X + N.

    Parameters
    ----------
    scale : float
        Uncorrelated, N has standard deviation scale · s_j in attribute j (``Noise16`` of the
        paper is 0.16).  Correlated, its covariance is scale² Σ_X, so that correlations are kept.
    correlated : bool
        Whether the noise has the correlations of the table.
    random_state : int, numpy.random.Generator or numpy.random.RandomState, optional
        Of the draws; fresh ones by default.  An int gives every call of ``transform`` the same
        draws: whoever holds two releases with them can subtract one from the other.

    Attributes
    ----------
    covariance_ : ndarray, shape (p, p)
        Of the noise.

    Examples
    --------
    Correlated noise of half the size makes the covariance 1.25 times as large, and keeps the
    correlation; uncorrelated noise lowers it:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = rng.standard_normal((5_000, 2)) @ [[1.0, 1.0], [0.0, 0.5]]
    >>> alike = AdditiveNoise(0.5, correlated=True, random_state=1).fit_transform(table)
    >>> apart = AdditiveNoise(0.5, random_state=1).fit_transform(table)
    >>> [round(float(np.corrcoef(each.T)[0, 1]), 1) for each in (table, alike, apart)]
    [0.9, 0.9, 0.7]
    >>> bool(np.allclose(np.var(alike, axis=0), 1.25 * np.var(table, axis=0), rtol=0.05))
    True
    """

    def __init__(
        self, scale: float = 0.1, *, correlated: bool = False, random_state: Any = None
    ) -> None:
        self.scale, self.correlated, self.random_state = scale, correlated, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # a record's noise depends on its place
        return tags

    def fit(self, X: Any, y: Any = None) -> AdditiveNoise:
        """Measure the covariance of a table X of finite numbers.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            The table.
        y : None
            Ignored.
        """
        data, size = self._numbers(X), number(self.scale, "scale")
        centred = (data - data.mean(axis=0)) * (deviations(data) > 0)
        scaled = size * centred
        with np.errstate(over="ignore", invalid="ignore"):
            law = scaled.T @ scaled / len(data)
        if not np.isfinite(law).all():
            problem = f"noise of {size:g} deviations overflows"
            raise InputError("scale", problem, "pass a smaller one")
        self.covariance_ = law if self.correlated else np.diag(law.diagonal())
        return self

    def transform(self, X: Any) -> Any:
        """Return the table with noise of the fitted covariance added.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            Finite numbers, in the columns that were fitted.
        """
        check_is_fitted(self)
        data = self._numbers(X, reset=False)
        values, vectors = np.linalg.eigh(self.covariance_)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = generator(self.random_state).standard_normal(data.shape) @ root.T
        return self._output(like(X, data + noise))


def rescale(original: Any, masked: Any) -> Any:
    """Return a masked table with the means and variances of the original (§5).

    Each masked attribute becomes (x̂ − m̂_j) s_j / ŝ_j + m_j.  One that is constant becomes the
    mean, whose variance cannot be restored.

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p)
        The records may differ in number; columns of frames are matched by name.  The result is in
        the flavour of ``masked``.

    Returns
    -------
    frame or ndarray
        The rescaled table, in the flavour of ``masked``.

    Examples
    --------
    >>> rescale([[0.0], [2.0], [4.0]], [[10.0], [11.0], [12.0]]).ravel()
    array([0., 2., 4.])
    """
    before, after, names = paired(original, masked, records=False)
    shift, spread = after.mean(axis=0), deviations(after)
    factor = np.divide(deviations(before), spread, out=np.zeros_like(spread), where=spread > 0)
    return like(masked, (after - shift) * factor + before.mean(axis=0), names)


class Rescaled(Masking):
    """A masking method followed by :func:`rescale`.

    Parameters
    ----------
    method : estimator with ``fit_transform``
        ``Rescaled(MDAV(k=3))`` is ``Scal_Micmul3`` of the paper's Table 3.

    Attributes
    ----------
    method_ : estimator
        The fitted method, a clone of ``method``.

    Examples
    --------
    The means of groups vary less than the records do; rescaled, they vary as much:

    >>> import numpy as np
    >>> from cvxprivacy_sdc.masking import MDAV
    >>> table = [[1.0], [2.0], [10.0], [12.0]]
    >>> masked = MDAV(k=2).fit_transform(table)
    >>> rescaled = Rescaled(MDAV(k=2)).fit_transform(table)
    >>> [round(float(np.var(each)), 4) for each in (table, masked, rescaled)]
    [23.1875, 22.5625, 23.1875]
    """

    def __init__(self, method: Any) -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None) -> Rescaled:
        """Fit the method to X and y.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            Finite numbers.
        y : array_like, optional
            Passed to the method.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return the rescaled table of the method.  There is no ``transform``."""
        self._numbers(X)
        self.method_ = clone(self.method)
        return self._output(rescale(X, self.method_.fit_transform(X, y)))


# ---- rank swapping -----------------------------------------------------------------------


class RankSwapping(TableMasking):
    """Swap each value of an attribute with one whose rank differs by at most p % of the records.

    From the least value up, each one that still stands in its place is swapped with one drawn
    evenly from those above it in the window that do; it stays if there is none.  Each attribute
    is swapped by itself; its values, as a whole, are untouched.

    Parameters
    ----------
    p : float
        Width of the window, in percent of the records: 0 ≤ p ≤ 100.
    random_state : int, numpy.random.Generator or numpy.random.RandomState, optional
        Of the draws; fresh ones by default.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n,) or (n, p)
        The record whose value each record has received, itself if it was not swapped; one column
        per attribute where there are several.

    Notes
    -----
    Equal values are ranked in a random order, so that a swap between them changes nothing.

    Examples
    --------
    Ten ages, each swapped within two ranks: the column keeps its values.

    >>> import numpy as np
    >>> ages = np.arange(20.0, 30.0)[:, None]
    >>> swapped = RankSwapping(p=20, random_state=1).fit_transform(ages)
    >>> bool(np.all(np.sort(swapped, axis=0) == ages)), float(np.abs(swapped - ages).max())
    (True, 2.0)
    """

    def __init__(self, p: float = 5.0, *, random_state: Any = None) -> None:
        self.p, self.random_state = p, random_state

    def _masked(self, data: np.ndarray) -> np.ndarray:
        share = number(self.p, "p", below=100.0 + 1e-9) / 100
        size, draws = len(data), generator(self.random_state)
        window = int(share * size + 1e-9)  # 7 % of 100 is 7
        donors = np.empty(data.shape, dtype=np.int64)
        for j, column in enumerate(data.T):
            order = np.lexsort((draws.random(size), column))
            donors[order, j] = order[_partners(size, window, draws)]
        self.labels_ = donors[:, 0] if data.shape[1] == 1 else donors
        return np.take_along_axis(data, donors, axis=0)


def _partners(size: int, window: int, draws: np.random.Generator) -> np.ndarray:
    """Return with which rank each rank is swapped."""
    partner, free = np.arange(size), np.ones(size, dtype=bool)
    for rank in range(size if window else 0):
        if free[rank]:
            above = np.flatnonzero(free[rank + 1 : rank + 1 + window])
            if len(above):
                other = rank + 1 + int(above[draws.integers(len(above))])
                partner[rank], partner[other] = other, rank
                free[other] = False
    return partner
