"""Measures of a table of counts, one number per equivalence class (released letter x̃).

Every function takes the counts N(w, x̃), shape (|W|, |X̃|), and returns one value per letter; a
letter that no record has is NaN.  The table as a whole is as good as its worst letter.  What is
compared with p(w) takes it from ``reference``, by default the row sums of the counts.

t-closeness by Kullback–Leibler divergence is :func:`cvxprivacy.model.one_symbol.i1`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion, DeltaDisclosure, KAnonymity, LDiversity, TCloseness
from cvxprivacy.errors import InputError
from cvxprivacy.model.one_symbol import SLACK, i1, laws
from cvxprivacy.validation import array, whole

__all__ = [
    "disclosure",
    "distinct_diversity",
    "earth_mover",
    "entropy_diversity",
    "likeness",
    "recursive_diversity",
    "size",
    "standing",
]

Letters = npt.NDArray[np.float64]


def _counts(counts: npt.ArrayLike) -> np.ndarray:
    remedy = "pass finite nonnegative counts of shape (|W|, |X̃|)"
    return array(counts, "counts", remedy, axes=(2,), massive=True)


# ---- identity ----------------------------------------------------------------------------


def size(counts: npt.ArrayLike) -> Letters:
    """The k of k-anonymity: the records that share a letter (Bezzi 2010, eqs. 5–6)."""
    mass = _counts(counts).sum(axis=0)
    return np.where(mass > 0, mass, math.nan)


# ---- diversity ---------------------------------------------------------------------------


def distinct_diversity(counts: npt.ArrayLike) -> Letters:
    """Distinct ℓ: how many values of W occur (Machanavajjhala et al. 2006)."""
    table = _counts(counts)
    found = np.count_nonzero(table, axis=0)
    return np.where(found > 0, found, math.nan)


def entropy_diversity(counts: npt.ArrayLike) -> Letters:
    """Entropy ℓ = 2^H(W|x̃) (Machanavajjhala et al. 2006; Bezzi 2010, eq. 10)."""
    p, _ = laws(_counts(counts))
    found: Letters = np.exp(-(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=0))
    return found


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
        found: Letters = table[0] / tail
    return found


# ---- closeness ---------------------------------------------------------------------------


def earth_mover(
    counts: npt.ArrayLike, *, ordered: bool = False, reference: npt.ArrayLike | None = None
) -> Letters:
    """The t of t-closeness by the earth mover's distance (Li, Li and Venkatasubramanian 2007).

    Parameters
    ----------
    ordered : bool
        Ground distance |i − j| / (|W| − 1) between the i-th and the j-th value, the rows being in
        order and |W| their number: Σ_i |Σ_{j ≤ i} (p_j − q_j)| / (|W| − 1).  By default all values
        are equally far: ½ Σ |p − q|.
    """
    p, prior = laws(_counts(counts), reference)
    if not ordered:
        return 0.5 * np.abs(p - prior).sum(axis=0)
    return np.abs(np.cumsum(p - prior, axis=0)).sum(axis=0) / max(len(p) - 1, 1)


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
    p, prior = laws(_counts(counts), reference)
    p, prior = p[prior[:, 0] > 0], prior[prior[:, 0] > 0]
    with np.errstate(divide="ignore"):
        distance = np.abs(np.log(p / prior))
    if observed:
        distance[p == 0] = 0.0
    found: Letters = distance.max(axis=0)
    return found


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
    p, prior = laws(_counts(counts), reference)
    p, prior = p[prior[:, 0] > 0], prior[prior[:, 0] > 0]
    gain = p / prior - 1.0
    if enhanced:
        gain = np.where(gain > -np.log(prior) * (1 + SLACK), math.inf, gain)
    found: Letters = gain.max(axis=0)
    return np.where(np.isnan(found), found, np.maximum(found, 0.0))


# ---- against criteria --------------------------------------------------------------------


def standing(
    criterion: Criterion,
    counts: npt.ArrayLike,
    *,
    reference: npt.ArrayLike | None = None,
    units: str = "bits",
) -> tuple[Letters, npt.NDArray[np.bool_]]:
    """Return each letter's measure and whether it satisfies a criterion per letter.

    A letter without records satisfies each; equality does, to a rounding of 1e-9 max(1, bound).

    Parameters
    ----------
    criterion : TCloseness, LDiversity, KAnonymity or DeltaDisclosure
    counts : array_like, shape (|W|, |X̃|)
        For k-anonymity, of records: the letters must be made of whole classes.
    units : {"bits", "nats"}
        Of a t-closeness.
    """
    least: float | None = None
    if isinstance(criterion, TCloseness):
        values, most = i1(counts, reference=reference, units=units), float(criterion.t)
    elif isinstance(criterion, DeltaDisclosure):
        values, most = disclosure(counts, reference=reference), float(criterion.delta)
    elif isinstance(criterion, LDiversity):
        values, least = entropy_diversity(counts), float(criterion.l)
    elif isinstance(criterion, KAnonymity):
        values, least = size(counts), float(criterion.k)
    else:
        known = "TCloseness, LDiversity, KAnonymity and DeltaDisclosure"
        raise InputError("criteria", f"{criterion!r} is not one per letter", f"use {known}")
    if least is not None:
        return values, ~(values < least - SLACK * max(1.0, least))
    return values, ~(values > most + SLACK * max(1.0, most))
