"""Microaggregation: every record is replaced by the mean of a group of at least k.

J. Domingo-Ferrer and J. M. Mateo-Sanz, Practical data-oriented microaggregation for statistical
disclosure control, IEEE Transactions on Knowledge and Data Engineering 14 (2002) 189–201.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.microdata import partitions
from cvxprivacy.microdata.masking.base import Masking
from cvxprivacy.microdata.tables import deviations, like
from cvxprivacy.validation import whole

__all__ = ["MDAV", "HansenMukherjee", "MuApprox"]

Groups = int | Sequence[Sequence[Hashable]] | None


class Microaggregation(Masking):
    """What the microaggregations share; they differ in how the records are partitioned."""

    k: int
    groups: Groups
    standardise: bool

    def _partition(self, data: np.ndarray, k: int) -> partitions.Labels:
        raise NotImplementedError

    @property
    def _most(self) -> int:
        """How many records a group has at most."""
        return 2 * self.k - 1

    def fit(self, X: Any, y: Any = None) -> Microaggregation:
        """Group the records.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            Finite numbers.
        y : ignored

        Raises
        ------
        InputError
            For fewer than k records, text, missing or infinite values, or attribute groups that
            do not name every column once.
        """
        self._masked(self._numbers(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Group the records, and return the table of their groups' means.

        There is no ``transform``: further records sent to the nearest mean would leave groups of
        other sizes, and with them the promise of k.
        """
        return self._given_back(like(X, self._masked(self._numbers(X))))

    def _masked(self, data: np.ndarray) -> np.ndarray:
        k = whole(self.k, "k", least=1)
        if k > len(data):
            problem = f"groups of {k} from {len(data)} samples"
            raise InputError("k", problem, f"pass at most {len(data)}", value=k)
        self.groups_ = self._groups()
        spread = deviations(data)
        scaled = data / np.where(self.standardise & (spread > 0), spread, 1.0)
        masked, labels = np.empty_like(data), []
        for places in self.groups_:
            found = self._partition(scaled[:, places], k)
            sizes = np.bincount(found)
            assert k <= sizes.min(), "a group of fewer than k"
            assert sizes.max() <= self._most, "a group larger than the method allows"
            masked[:, places] = partitions.means(data[:, places], found)
            labels.append(found)
        self.labels_ = labels[0] if len(labels) == 1 else np.array(labels).T
        return masked

    def _groups(self) -> list[list[int]]:
        """Return the places of the attributes that are grouped together."""
        size, given = self.n_features_in_, self.groups
        if given is None:
            return [list(range(size))]
        if isinstance(given, int | np.integer):
            each = min(whole(given, "groups", least=1), size)
            starts = list(range(0, size - each + 1, each))  # the last one takes the remainder
            return [list(range(a, b)) for a, b in zip(starts, [*starts[1:], size], strict=True)]
        names = list(getattr(self, "feature_names_in_", range(size)))
        remedy = f"put each of {', '.join(map(str, names))} into one group"
        found = []
        for i, group in enumerate(given):
            one = isinstance(group, str) or not isinstance(group, Sequence | np.ndarray)
            places = []
            for name in [group] if one else list(group):
                if name not in names:
                    raise InputError("groups", f"no column {name!r}", remedy, where=i, value=name)
                places.append(names.index(name))
            found.append(places)
        named = [place for places in found for place in places]
        if sorted(named) != list(range(size)) or not all(found):
            raise InputError("groups", f"{given!r}", remedy)
        return found


class MDAV(Microaggregation):
    """Microaggregation by maximum distance to average vector: groups of k to 2k − 1 records.

    Parameters
    ----------
    k : int
        Least size of a group.
    groups : int or sequence of sequences of columns, optional
        Attributes that are grouped together: by default all at once; a number takes so many at
        a time in the order of the table, the last group with the remainder (1: each by itself);
        else the columns of each group, by name in a frame, by number in an array.
    standardise : bool
        Measure distances in standard deviations; the means are of the values themselves.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n,) or (n, attribute groups)
        Group of each record; one column per attribute group where there are several.
    groups_ : list of lists of int
        Places of the attributes of each attribute group.

    See Also
    --------
    cvxprivacy.microdata.partitions.mdav : the algorithm and its source.

    Examples
    --------
    >>> MDAV(k=2).fit_transform([[1.0], [2.0], [10.0], [12.0]]).ravel()
    array([ 1.5,  1.5, 11. , 11. ])
    """

    def __init__(self, k: int = 3, *, groups: Groups = None, standardise: bool = True) -> None:
        self.k, self.groups, self.standardise = k, groups, standardise

    def _partition(self, data: np.ndarray, k: int) -> partitions.Labels:
        return partitions.mdav(data, k)


class MuApprox(Microaggregation):
    """μ-Approx microaggregation: groups of k to max(2k − 1, 3k − 5) records.

    Parameters and attributes are those of :class:`MDAV`.

    See Also
    --------
    cvxprivacy.microdata.partitions.mu_approx : the algorithm and its source.
    """

    def __init__(self, k: int = 3, *, groups: Groups = None, standardise: bool = True) -> None:
        self.k, self.groups, self.standardise = k, groups, standardise

    def _partition(self, data: np.ndarray, k: int) -> partitions.Labels:
        return partitions.mu_approx(data, k)

    @property
    def _most(self) -> int:
        return max(2 * self.k - 1, 3 * self.k - 5)


class HansenMukherjee(Microaggregation):
    """Optimal univariate microaggregation, each attribute by itself ("individual ranking").

    The sum of squared errors is the least of all partitions into groups of at least k.

    Parameters
    ----------
    k : int
        Least size of a group.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n,) or (n, p)
        Group of each record; one column per attribute where there are several.

    See Also
    --------
    cvxprivacy.microdata.partitions.hansen_mukherjee : the algorithm and its source.
    """

    groups = 1
    standardise = False

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def _partition(self, data: np.ndarray, k: int) -> partitions.Labels:
        return partitions.hansen_mukherjee(data, k)
