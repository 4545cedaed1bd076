"""Measures of a table of counts, one number per equivalence class (released letter x̃).

Every function takes the counts N(w, x̃), shape (|W|, |X̃|), and returns one value per letter; a
letter that no record has is NaN.  The table as a whole is as good as its worst letter.  What is
compared with p(w) takes it from ``reference``, by default the row sums of the counts.

t-closeness by Kullback–Leibler divergence is :func:`cvxprivacy.model.one_symbol.i1`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import (
    Criterion,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    PerfectPrivacy,
    PerLetter,
    PointwiseMaximalLeakage,
    TCloseness,
)
from cvxprivacy.errors import InputError
from cvxprivacy.leakage import Leakage, MaximalLeakageOf, MutualInformation
from cvxprivacy.microdata.exact_standing import meets
from cvxprivacy.model.one_symbol import SLACK, i1, laws
from cvxprivacy.validation import array, whole

__all__ = [
    "disclosure",
    "distinct_diversity",
    "entropy_diversity",
    "extremes",
    "leaked",
    "likeness",
    "recursive_diversity",
    "size",
    "standing",
]

_MOST_VALUES = 2_000  # of W
_NEAR = 1e-6  # of max(1, bound): beyond it no rounding of a float tells a letter wrongly

Letters = npt.NDArray[np.float64]


def _counts(counts: npt.ArrayLike) -> np.ndarray:
    remedy = "pass finite nonnegative counts of shape (|W|, |X̃|)"
    return array(counts, "counts", remedy, axes=(2,), massive=True)


def _laws_of_observed(
    counts: npt.ArrayLike, reference: npt.ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return p(w|x̃) and p(w) of the values of W that occur."""
    p, prior = laws(_counts(counts), reference)
    return p[prior[:, 0] > 0], prior[prior[:, 0] > 0]


# ---- identity and diversity --------------------------------------------------------------


def size(counts: npt.ArrayLike) -> Letters:
    """The k of k-anonymity: the records that share a letter (Bezzi 2010, eqs. 5–6)."""
    mass = _counts(counts).sum(axis=0)
    return np.where(mass > 0, mass, math.nan)


def distinct_diversity(counts: npt.ArrayLike) -> Letters:
    """Distinct ℓ: how many values of W occur (Machanavajjhala et al. 2006)."""
    table = _counts(counts)
    values = np.count_nonzero(table, axis=0)
    return np.where(values > 0, values, math.nan)


def entropy_diversity(counts: npt.ArrayLike) -> Letters:
    """Entropy ℓ = 2^H(W|x̃) (Machanavajjhala et al. 2006; Bezzi 2010, eq. 10)."""
    p, _ = laws(_counts(counts))
    return np.asarray(np.exp(-(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=0)))


def recursive_diversity(counts: npt.ArrayLike, l: int = 2) -> Letters:  # noqa: E741
    """Recursive (c, ℓ)-diversity: it holds for every c above r₁ / (r_ℓ + … + r_m).

    r₁ ≥ r₂ ≥ … are the counts of W's values in the letter (Machanavajjhala et al. 2006: r₁ <
    c (r_ℓ + … + r_m)).  Infinite with fewer than ℓ values.

    Parameters
    ----------
    l : int
        ℓ ≥ 1.
    """
    table = np.sort(_counts(counts), axis=0)[::-1]
    tail = table[whole(l, "l", least=1) - 1 :].sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(table[0] / tail)


# ---- closeness ---------------------------------------------------------------------------


def disclosure(
    counts: npt.ArrayLike, *, observed: bool = False, reference: npt.ArrayLike | None = None
) -> Letters:
    """The δ of δ-disclosure privacy: max_w |ln p(w|x̃)/p(w)| (Brickell and Shmatikov 2008).

    They ask it to be below δ; the criterion here, at most δ.

    A value of W that is missing from a letter discloses without bound: δ is infinite there.

    Parameters
    ----------
    observed : bool
        Leave out the values that a letter misses, as pycanon does: that is no longer δ-disclosure
        privacy, but it compares letters of which none is complete.
    """
    p, prior = _laws_of_observed(counts, reference)
    with np.errstate(divide="ignore"):
        distance = np.abs(np.log(p / prior))
    if observed:
        distance[p == 0] = 0.0
    return np.asarray(distance.max(axis=0))


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
    p, prior = _laws_of_observed(counts, reference)
    gain = p / prior - 1.0
    if enhanced:
        gain = np.where(gain > -np.log(prior) * (1 + SLACK), math.inf, gain)
    return np.maximum(gain.max(axis=0), 0.0)  # NaN stays


def leaked(
    leakage: Leakage,
    counts: npt.ArrayLike,
    *,
    reference: npt.ArrayLike | None = None,
    units: str = "bits",
) -> Letters:
    """F(p(w|x̃)) of a measure of leakage, against p(w); ``units`` are those of information."""
    if leakage.informs:
        return i1(counts, reference=reference, units=units)
    p, prior = laws(_counts(counts), reference)
    there = prior[:, 0] > 0
    fitted = leakage.fitted(range(len(p)), np.flatnonzero(there).tolist())
    values = fitted.value(np.nan_to_num(p[there]), prior[there, 0])
    return np.where(np.isnan(p[there]).any(axis=0), math.nan, values)


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
    own = array(masses, "masses", "pass finite nonnegative masses", axes=(1,), massive=True)
    prior = own if reference is None else np.asarray(reference)
    how: dict[str, Any] = {"reference": prior, "units": units}
    nothing = 0.0 if leakage.divergence else float(leaked(leakage, prior[:, None], **how)[0])
    there = np.flatnonzero(own)
    if len(there) > _MOST_VALUES:
        return nothing, math.nan
    itself = np.zeros((len(own), len(there)))
    itself[there, np.arange(len(there))] = 1.0
    return nothing, float(leaked(leakage, itself, **how) @ own[there] / own.sum())


# ---- against criteria --------------------------------------------------------------------


def standing(
    criterion: Criterion,
    counts: npt.ArrayLike,
    *,
    reference: npt.ArrayLike | None = None,
    units: str = "bits",
) -> tuple[Letters, npt.NDArray[np.bool_]]:
    """Return each letter's measure and whether it satisfies a criterion per letter.

    A letter without records satisfies each.  Of whole records it is decided exactly: in floats
    where these are far from the bound, else in whole numbers and balls
    (:mod:`cvxprivacy.microdata.exact_standing`); of other masses equality is met, to a rounding of
    1e-9 max(1, bound).

    Parameters
    ----------
    criterion : TCloseness, PerLetter, LDiversity, KAnonymity, DeltaDisclosure,
        PointwiseMaximalLeakage or PerfectPrivacy
    counts : array_like, shape (|W|, |X̃|)
        For k-anonymity, of records: the letters must be made of whole classes.
    units : {"bits", "nats"}
        Of a t-closeness.
    """
    if isinstance(criterion, TCloseness | PerLetter):
        values, sign = leaked(criterion.leakage, counts, reference=reference, units=units), 1
    elif isinstance(criterion, PointwiseMaximalLeakage):
        values, sign = np.log(leaked(MaximalLeakageOf(), counts, reference=reference)), 1
    elif isinstance(criterion, DeltaDisclosure):
        values, sign = disclosure(counts, reference=reference), 1
    elif isinstance(criterion, LDiversity):
        values, sign = entropy_diversity(counts), -1
    elif isinstance(criterion, KAnonymity):
        values, sign = size(counts), -1
    elif isinstance(criterion, PerfectPrivacy):
        values, sign = leaked(MutualInformation(), counts, reference=reference, units=units), 1
    else:
        known = "TCloseness, PerLetter, LDiversity, KAnonymity and DeltaDisclosure"
        raise InputError("criteria", f"{criterion!r} is not one per letter", f"use {known}")
    bound = float(criterion.value or 0.0)
    table = _counts(counts)
    masses = table.sum(axis=1) if reference is None else np.asarray(reference, float)
    if not (_whole(table) and _whole(masses)):
        return values, ~(sign * values > sign * bound + SLACK * max(1.0, bound))
    holds = ~(sign * values > sign * bound)
    own, near = [int(p) for p in masses], abs(values - bound) <= _NEAR * max(1.0, bound)
    for i in np.flatnonzero(near):
        holds[i] = meets(criterion, [int(j) for j in table[:, i]], own, units)
    return values, holds


def _whole(masses: np.ndarray) -> bool:
    """Tell whether masses are whole numbers of records."""
    return bool((masses == np.rint(masses)).all() and masses.max(initial=0.0) < 2**53)
