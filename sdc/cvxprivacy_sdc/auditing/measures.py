"""Measures of a table of counts, one number per equivalence class (released letter x̃).

Functions take the counts N(w, x̃), shape (|W|, |X̃|), and return one value per letter; a letter
that no record has is NaN.  The table as a whole is as good as its worst letter.  Those of the sizes
of classes return one value of the table.  What is compared with p(w) takes it from ``reference``,
by default the row sums of the counts.

t-closeness by Kullback–Leibler divergence is :func:`cvxprivacy.model.one_symbol.i1`; what criteria
ask for is measured where they are judged (:mod:`cvxprivacy.criteria.counts`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.counts import checked_counts, leaked, observed_laws
from cvxprivacy.leakage import Leakage
from cvxprivacy.model.one_symbol import SLACK
from cvxprivacy.validation import array, integer

__all__ = [
    "ClassSizes",
    "average_class_size",
    "discernibility",
    "distinct_diversity",
    "extremes",
    "likeness",
    "recursive_diversity",
]

_MOST_VALUES = 2_000  # of W

Letters = npt.NDArray[np.float64]


# ---- classes -----------------------------------------------------------------------------


def discernibility(sizes: npt.ArrayLike, suppressed: float = 0.0) -> float:
    """Σ n² + N·suppressed: with how many a record may be confused, over all N records.

    R. J. Bayardo and R. Agrawal, Data privacy through optimal k-anonymization, ICDE 2005: a record
    of a class of n is charged n, and one that is suppressed all N, which counts these too.

    Parameters
    ----------
    sizes : array_like, shape (classes,)
        Records of each class that is released.
    suppressed : float
        Records that are not.
    """
    records = np.asarray(sizes, float)
    return float(records @ records + (records.sum() + suppressed) * suppressed)


def average_class_size(sizes: npt.ArrayLike, k: float = 1.0) -> float:
    """Records for each class that has any, as a multiple of k.

    With the k of a criterion it is the normalised average of K. LeFevre, D. J. DeWitt and
    R. Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE 2006, whose optimum is 1.

    Parameters
    ----------
    sizes : array_like, shape (classes,)
        Records of each class that is released.
    k : float
        Greater than 0.
    """
    records = np.asarray(sizes, float)
    return float(records.sum() / np.count_nonzero(records) / k)


@dataclass(frozen=True)
class ClassSizes:
    """How large the classes of a released table are, and what that costs its user.

    Attributes
    ----------
    number : int
        Of classes.
    least, greatest : int
        Records of the smallest, and of the largest.
    average : float
        Records for each class.
    normalised : float
        The average as a multiple of the least, LeFevre, DeWitt and Ramakrishnan's C_avg (2006) at
        the k that the table has.
    discernibility : float
        Bayardo and Agrawal's metric (2005), Σ n² + N·suppressed.
    classification : float
        V. S. Iyengar's metric (Transforming data to satisfy privacy constraints, KDD 2002) with W
        as the class that is predicted: the share of the N records that are suppressed, or whose W
        is not the most frequent of their class.
    suppressed : int
        How many records fewer than the original are released.

    Examples
    --------
    Classes of three and of two records; one of five has not the W of most, one was left out:

    >>> ClassSizes.of([[2, 0], [1, 2]], suppressed=1)  # doctest: +NORMALIZE_WHITESPACE
    ClassSizes(number=2, least=2, greatest=3, average=2.5, normalised=1.25, discernibility=19.0,
               classification=0.3333333333333333, suppressed=1)
    """

    number: int
    least: int
    greatest: int
    average: float
    normalised: float
    discernibility: float
    classification: float
    suppressed: int

    @classmethod
    def of(cls, counts: npt.ArrayLike, suppressed: int = 0) -> ClassSizes:
        """Measure the classes of a table of counts N(w, x̃).

        Parameters
        ----------
        counts : array_like, shape (|W|, |X̃|)
            Records; every letter has some.
        suppressed : int
            Records of the original that are not released.
        """
        table, suppressed = checked_counts(counts), integer(suppressed, "suppressed", least=0)
        sizes = table.sum(axis=0)
        others = float((sizes - table.max(axis=0)).sum())
        least = float(sizes.min())
        return cls(
            number=len(sizes),
            least=int(least),
            greatest=int(sizes.max()),
            average=average_class_size(sizes),
            normalised=average_class_size(sizes, least),
            discernibility=discernibility(sizes, suppressed),
            classification=(others + suppressed) / (float(sizes.sum()) + suppressed),
            suppressed=suppressed,
        )


# ---- diversity ---------------------------------------------------------------------------


def distinct_diversity(counts: npt.ArrayLike) -> Letters:
    """Distinct ℓ: how many values of W occur (Machanavajjhala et al. 2006)."""
    table = checked_counts(counts)
    values = np.count_nonzero(table, axis=0)
    return np.where(values > 0, values, math.nan)


def recursive_diversity(counts: npt.ArrayLike, l: int = 2) -> Letters:  # noqa: E741
    """Recursive (c, ℓ)-diversity: it holds for every c above r₁ / (r_ℓ + … + r_m).

    r₁ ≥ r₂ ≥ … are the counts of W's values in the letter (Machanavajjhala et al. 2006: r₁ <
    c (r_ℓ + … + r_m)).  Infinite with fewer than ℓ values.

    Parameters
    ----------
    l : int
        ℓ ≥ 1.
    """
    table = np.sort(checked_counts(counts), axis=0)[::-1]
    tail = table[integer(l, "l", least=1) - 1 :].sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(table[0] / tail)


# ---- closeness ---------------------------------------------------------------------------


def likeness(
    counts: npt.ArrayLike, *, enhanced: bool = False, reference: npt.ArrayLike | None = None
) -> Letters:
    """The β of β-likeness: max_w (p(w|x̃) − p(w)) / p(w) (Cao and Karras 2012).

    Parameters
    ----------
    enhanced : bool
        The least β of enhanced β-likeness, (p(w|x̃) − p(w)) / p(w) ≤ min(β, −ln p(w)) for every w:
        infinite where some gain exceeds −ln p(w), since no β mends that.
    """
    p, prior = observed_laws(counts, reference)
    gain = p / prior - 1.0
    if enhanced:
        gain = np.where(gain > -np.log(prior) * (1 + SLACK), math.inf, gain)
    return np.maximum(gain.max(axis=0), 0.0)  # NaN stays


def extremes(
    leakage: Leakage,
    masses: npt.ArrayLike,
    *,
    reference: npt.ArrayLike | None = None,
    units: str = "bits",
) -> tuple[float, float]:
    """Return what leaks if nothing is released, and if W itself is.

    The latter is NaN where W has more than 2,000 values: it would take their square.

    Parameters
    ----------
    masses : array_like, shape (|W|,)
        Of the values of W.
    """
    masses = array(masses, "masses", "pass finite nonnegative masses", axes=(1,), massive=True)
    prior = masses if reference is None else np.asarray(reference)
    how: dict[str, Any] = {"reference": prior, "units": units}
    nothing = 0.0 if leakage.divergence else float(leaked(leakage, prior[:, None], **how)[0])
    there = np.flatnonzero(masses)
    if len(there) > _MOST_VALUES:
        return nothing, math.nan
    itself = np.zeros((len(masses), len(there)))
    itself[there, np.arange(len(there))] = 1.0
    return nothing, float(leaked(leakage, itself, **how) @ masses[there] / masses.sum())
