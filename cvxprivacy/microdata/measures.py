"""Measures of a table of counts, one number per equivalence class (released letter x̃).

Every function takes the counts N(w, x̃), shape (|W|, |X̃|), and returns one value per letter; a
letter that no record has is NaN.  The table as a whole is as good as its worst letter.  What is
compared with p(w) takes it from ``reference``, by default the row sums of the counts.

t-closeness by Kullback–Leibler divergence is :func:`cvxprivacy.model.one_symbol.i1`; what criteria
ask for is measured where they are judged (:mod:`cvxprivacy.criteria.counts`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.counts import checked_counts, leaked, observed_laws
from cvxprivacy.leakage import Leakage
from cvxprivacy.model.one_symbol import SLACK
from cvxprivacy.validation import array, integer

__all__ = ["distinct_diversity", "extremes", "likeness", "recursive_diversity"]

_MOST_VALUES = 2_000  # of W

Letters = npt.NDArray[np.float64]


# ---- diversity --------------------------------------------------------------


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
