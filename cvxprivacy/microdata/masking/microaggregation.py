"""Microaggregation: every record is replaced by the mean of a group of at least k.

J. Domingo-Ferrer and J. M. Mateo-Sanz, Practical data-oriented microaggregation for statistical
disclosure control, IEEE Transactions on Knowledge and Data Engineering 14 (2002) 189–201.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.microdata import partitions
from cvxprivacy.microdata.arrays import deviations
from cvxprivacy.microdata.masking.base import TableMasking
from cvxprivacy.validation import integer

__all__ = ["MDAV", "HansenMukherjee", "MuApprox"]

Groups = int | Sequence[Sequence[Hashable]] | None


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

    The algorithm and its source: :func:`cvxprivacy.microdata.partitions.mdav`.

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

    The algorithm and its source: :func:`cvxprivacy.microdata.partitions.mu_approx`.

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
    :func:`cvxprivacy.microdata.partitions.hansen_mukherjee`.

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
