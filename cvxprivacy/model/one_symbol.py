r"""One-symbol information: what a single released letter x̃ tells about W, and criteria in it.

Bezzi, *An Information Theoretic Approach for Privacy Metrics*, Transactions on Data Privacy 3,
2010.  Every function takes the joint law or the counts of W and X̃, shape (|W|, |X̃|), and
normalises them by their sum.

=====================================  ====================================================
I1(x̃) = Σ_w p(w|x̃) log p(w|x̃)/p(w)     surprise; t-closeness is I1 ≤ t
I2(x̃) = H(W) − H(W|x̃)                  specific information; ℓ-diversity is I2 ≤ H(W) − log ℓ
I3(x̃) = Σ_w p(w|x̃) [H(X̃) − H(X̃|w)]     weighted reduction of uncertainty
I4(x̃) = I({x̃, not x̃}; W)               what membership in the group tells
=====================================  ====================================================

I1, I2 and I3 average to I(X̃; W) over p(x̃), I4 does not; I1 and I4 are never negative.  Splitting
the averaged attribute W = (W₁, W₂), all four have a chain rule; splitting the symbol,
f(x₁x₂) = f(x₁) + f(x₂|x₁), only I2 has.  (The paper's Table 1 has the two columns of chain rules
exchanged.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.model.information import entropy, mutual_information, nat, shares
from cvxprivacy.validation import array, number

__all__ = [
    "Condition",
    "average_conditions",
    "equivalent_diversity",
    "greatest_diversity",
    "i1",
    "i2",
    "i3",
    "i4",
    "privacy_loss",
    "surprise_of_inputs",
    "surprise_under",
]

SLACK = 1e-9  # of max(1, bound), for rounding: what is met with equality is met
_REMEDY = "pass finite nonnegative masses of shape (|W|, |X̃|)"


def _law(joint: npt.ArrayLike) -> np.ndarray:
    return shares(array(joint, "joint", _REMEDY, axes=(2,), massive=True))


def _posteriors(law: np.ndarray) -> np.ndarray:
    """Return p(w | x̃), NaN where p(x̃) = 0."""
    mass = law.sum(axis=0)
    return law / np.where(mass > 0, mass, math.nan)


def laws(
    joint: np.ndarray, reference: npt.ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return p(w | x̃), and p(w) as a column: of the joint masses, or given apart from them."""
    if reference is None:
        return _posteriors(joint), shares(joint.sum(axis=1, keepdims=True))
    remedy = f"pass {len(joint)} masses, one per value of W, positive where it occurs"
    prior = array(reference, "reference", remedy, axes=(1,), massive=True)
    if len(prior) != len(joint) or joint[prior == 0].any():
        raise InputError("reference", f"{prior.tolist()!r}", remedy)
    return _posteriors(joint), shares(prior[:, None])


def _plogp(p: np.ndarray) -> np.ndarray:
    return p * np.log(np.where(p > 0, p, 1.0))


def _log_ratio(p: np.ndarray, *factors: np.ndarray) -> np.ndarray:
    """Return p log p/(q r …), 0 where p = 0; the product of the factors may be no float."""
    logs = (np.log(np.where(each > 0, each, 1.0)) for each in factors)
    return _plogp(p) - p * sum(logs)


# ---- one symbol --------------------------------------------------------------------------


def i1(
    joint: npt.ArrayLike, *, reference: npt.ArrayLike | None = None, units: str = "bits"
) -> npt.NDArray[np.float64]:
    """Return the surprise I1(x̃) = D(p(w|x̃) ‖ p(w)) of every letter (eq. 8).

    A letter without mass has no law p(w|x̃): its value is NaN, here and in i2 to i4.

    Parameters
    ----------
    joint : array_like, shape (|W|, |X̃|)
        Masses or counts ≥ 0 of W and the released letter.
    reference : array_like, shape (|W|,), optional
        Masses of W, positive where it occurs; by default the row sums of ``joint``.
    units : {"bits", "nats"}
        Of the surprise.

    Returns
    -------
    ndarray, shape (|X̃|,)
        I1 ≥ 0; t-closeness is I1 ≤ t for every letter.

    Raises
    ------
    InputError
        For negative masses, another shape, or a reference that does not fit.

    Examples
    --------
    Five records of the first letter, three of the second, which all have the second value of W:

    >>> import cvxprivacy as cpv
    >>> counts = [[3, 0], [2, 3]]
    >>> cpv.one_symbol.i1(counts).round(3).tolist()
    [0.149, 0.678]

    The second is log₂ 8/5, and the mean by their records is I(W; X̃):

    >>> round(float(cpv.one_symbol.i1(counts) @ [5 / 8, 3 / 8]), 4)
    0.3476
    >>> round(cpv.information.mutual_information(counts), 4)
    0.3476
    """
    terms = _log_ratio(*laws(_law(joint), reference))
    return np.maximum(terms.sum(axis=0), 0.0) * nat(units)


def i2(joint: npt.ArrayLike, *, units: str = "bits") -> npt.NDArray[np.float64]:
    """Return the specific information I2(x̃) = H(W) − H(W|x̃) of every letter (eqs. 3, 10).

    Parameters
    ----------
    joint : array_like, shape (|W|, |X̃|)
        Masses or counts ≥ 0 of W and the released letter.
    units : {"bits", "nats"}
        Of the information.

    Returns
    -------
    ndarray, shape (|X̃|,)
        I2, negative where a letter makes W less certain; ℓ-diversity is I2 ≤ H(W) − log ℓ.

    Raises
    ------
    InputError
        For negative masses, or another shape.

    Examples
    --------
    The first letter makes W = (3/8, 5/8) less certain, (3/5, 2/5); the second tells all, H(W):

    >>> import cvxprivacy as cpv
    >>> cpv.one_symbol.i2([[3, 0], [2, 3]]).round(3).tolist()
    [-0.017, 0.954]
    >>> round(cpv.information.entropy([3, 5]), 3)
    0.954
    """
    law = _law(joint)
    return (_plogp(_posteriors(law)).sum(axis=0) - _plogp(law.sum(axis=1)).sum()) * nat(units)


def i3(joint: npt.ArrayLike, *, units: str = "bits") -> npt.NDArray[np.float64]:
    """Return I3(x̃) = Σ_w p(w|x̃) [H(X̃) − H(X̃|w)] of every letter (Table 1).

    Parameters
    ----------
    joint : array_like, shape (|W|, |X̃|)
        Masses or counts ≥ 0 of W and the released letter.
    units : {"bits", "nats"}
        Of the information.

    Returns
    -------
    ndarray, shape (|X̃|,)
        I3, of any sign.

    Raises
    ------
    InputError
        For negative masses, or another shape.

    Examples
    --------
    Its mean is I(W; X̃), as those of I1 and I2 are, but it is shared out otherwise: here the second
    letter, which tells W outright, has less than nothing of it.

    >>> import cvxprivacy as cpv
    >>> counts = [[3, 0], [2, 3]]
    >>> found = cpv.one_symbol.i3(counts)
    >>> found.round(3).tolist(), round(float(found @ [5 / 8, 3 / 8]), 4)
    ([0.566, -0.017], 0.3476)
    """
    law = _law(joint)
    reduced = _plogp(_posteriors(law.T)).sum(axis=0) - _plogp(law.sum(axis=0)).sum()
    return np.nan_to_num(reduced) @ _posteriors(law) * nat(units)


def i4(joint: npt.ArrayLike, *, units: str = "bits") -> npt.NDArray[np.float64]:
    """Return I4(x̃) = I({x̃, not x̃}; W) of every letter (Table 1).

    Parameters
    ----------
    joint : array_like, shape (|W|, |X̃|)
        Masses or counts ≥ 0 of W and the released letter.
    units : {"bits", "nats"}
        Of the information.

    Returns
    -------
    ndarray, shape (|X̃|,)
        I4 ≥ 0: what is told by whether the letter was released.

    Raises
    ------
    InputError
        For negative masses, or another shape.

    Examples
    --------
    Of two letters each tells all that both tell, I(W; X̃):

    >>> import cvxprivacy as cpv
    >>> cpv.one_symbol.i4([[3, 0], [2, 3]]).round(4).tolist()
    [0.3476, 0.3476]
    """
    law = _law(joint)
    p_w, mass = law.sum(axis=1, keepdims=True), law.sum(axis=0)
    complement = np.maximum(p_w - law, 0.0)
    terms = _log_ratio(law, p_w, mass) + _log_ratio(complement, p_w, complement.sum(axis=0))
    total = np.where(mass > 0, terms.sum(axis=0), math.nan)
    return np.maximum(total, 0.0) * nat(units)


# ---- criteria in one unit ----------------------------------------------------------------


class Condition(NamedTuple):
    """A quantity and the most that it may be.

    Attributes
    ----------
    value : float
        The quantity.
    bound : float
        The most that it may be.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> condition = cpv.one_symbol.average_conditions([[3, 0], [2, 3]], t=0.3)["t"]
    >>> round(condition.value, 4), condition.bound, condition.holds
    (0.3476, 0.3, False)
    """

    value: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether value ≤ bound, to a rounding of 1e-9 max(1, |bound|)."""
        return self.value <= self.bound + SLACK * max(1.0, abs(self.bound))


def greatest_diversity(p_w: npt.ArrayLike) -> float:
    """Return ℓ_max = 2^H(W): no grouping is more diverse than W itself (eq. 15).

    Parameters
    ----------
    p_w : array_like, shape (|W|,)
        Masses or counts ≥ 0 of W.

    Returns
    -------
    float
        From 1 to the number of values that occur.

    Raises
    ------
    InputError
        For negative masses.

    Examples
    --------
    Four equal values are as diverse as four can be, unequal ones less so:

    >>> import cvxprivacy as cpv
    >>> cpv.one_symbol.greatest_diversity([1, 1, 1, 1])
    4.0
    >>> round(cpv.one_symbol.greatest_diversity([7, 1, 1, 1]), 3)
    2.561
    """
    return float(2.0 ** entropy(p_w))


def equivalent_diversity(p_w: npt.ArrayLike, t: float, *, units: str = "bits") -> float:
    """Return ℓ_t = 2^(H(W) − t), the ℓ that bounds I(W; X̃) as t-closeness does (eq. 12).

    Parameters
    ----------
    p_w : array_like, shape (|W|,)
        Masses or counts ≥ 0 of W.
    t : float
        t ≥ 0, in ``units``.
    units : {"bits", "nats"}
        Of t.

    Returns
    -------
    float
        It is below 1, which no ℓ is, where t exceeds H(W).

    Raises
    ------
    InputError
        For negative masses, or a negative t.

    Examples
    --------
    To tell one bit of four equal values leaves two:

    >>> import cvxprivacy as cpv
    >>> round(cpv.one_symbol.equivalent_diversity([1, 1, 1, 1], 1.0), 6)
    2.0
    """
    return math.exp(entropy(p_w, units="nats") - number(t, "t") / nat(units))


def average_conditions(
    joint: npt.ArrayLike,
    *,
    t: float | None = None,
    l: float | None = None,  # noqa: E741
    original: float | None = None,
    units: str = "bits",
) -> dict[str, Condition]:
    """Return conditions on the average I(W; X̃), necessary and not sufficient (eq. 13).

    Per letter, necessary and sufficient, they are I1(x̃) ≤ t and I2(x̃) ≤ H(W) − log ℓ (eq. 14).

    Parameters
    ----------
    joint : array_like, shape (|W|, |X̃|)
        Masses or counts ≥ 0 of W and the released letter.
    t : float, optional
        Of t-closeness, in ``units``.
    l : float, optional
        ℓ ≥ 1 of ℓ-diversity.
    original : float, optional
        I(W; X) before the release, in ``units``.  The condition on it holds of the law of every X̃
        that is made of X alone (data processing).  A table that was drawn at random may exceed it
        by chance, as may one whose W is not the same.
    units : {"bits", "nats"}
        Of t, of ``original`` and of what is returned.

    Returns
    -------
    dict of str to Condition
        By the names ``"I(W; X)"``, ``"t"`` and ``"H(W) − log ℓ"``.

    Raises
    ------
    InputError
        For negative masses, another shape, or numbers that are out of range.

    Examples
    --------
    The mean is below t = 0.5, and yet the second letter breaks t-closeness: its I1 is 0.678.

    >>> import cvxprivacy as cpv
    >>> counts = [[3, 0], [2, 3]]
    >>> conditions = cpv.one_symbol.average_conditions(counts, t=0.5)
    >>> round(conditions["t"].value, 4), conditions["t"].holds
    (0.3476, True)
    >>> bool((cpv.one_symbol.i1(counts) <= 0.5).all())
    False
    """
    law = _law(joint)
    conditions, average = {}, mutual_information(law, units=units)
    if original is not None:
        conditions["I(W; X)"] = Condition(average, number(original, "original"))
    if t is not None:
        conditions["t"] = Condition(average, number(t, "t"))
    if l is not None:
        least = number(l, "l")
        if least < 1:
            raise InputError("l", f"{l!r} values", "pass a number ≥ 1", value=l)
        most = entropy(law.sum(axis=1), units=units) - math.log(least) * nat(units)
        conditions["H(W) − log ℓ"] = Condition(average, most)
    return conditions


# ---- differential privacy of a channel ---------------------------------------------------


def _channel(
    channel: npt.ArrayLike, neighbours: npt.ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the channel, and which inputs are neighbours: the relation closed and reflexive."""
    remedy = "pass rows p(s | x) of nonnegative numbers that sum to 1, shape (|X|, |S|)"
    rows = array(channel, "channel", remedy, axes=(2,))
    off = np.abs(rows.sum(axis=1) - 1.0)
    if off.max() > 1e-9:
        where = int(np.argmax(off))
        total = float(rows[where].sum())
        raise InputError("channel", f"sums to {total!r}", remedy, where=where, value=total)
    n = len(rows)
    if neighbours is None:
        return rows, np.ones((n, n), bool)
    remedy = f"pass a symmetric boolean matrix of shape {(n, n)}"
    try:
        near = np.asarray(neighbours)
    except ValueError as error:
        raise InputError("neighbours", f"no matrix ({error})", remedy) from None
    if near.shape != (n, n) or near.dtype != bool or (near != near.T).any():
        raise InputError("neighbours", f"{near.dtype} of shape {near.shape}", remedy)
    return rows, near | np.eye(n, dtype=bool)


def privacy_loss(channel: npt.ArrayLike, neighbours: npt.ArrayLike | None = None) -> float:
    """Return the least ε of ε-differential privacy: max |ln p(s|x)/p(s|x')| (eq. 16).

    Parameters
    ----------
    channel : array_like, shape (|X|, |S|)
        p(s | x): the law of the outcome s, for each data set x.
    neighbours : array_like of bool, shape (|X|, |X|), optional
        Which data sets differ in one record; by default all (local privacy).

    Returns
    -------
    float
        A natural logarithm; infinite where an outcome is possible for one neighbour only.

    Raises
    ------
    InputError
        For rows that are no laws, or neighbours that are no symmetric relation.

    Examples
    --------
    Randomised response that lies in a quarter of the answers has ε = ln 3:

    >>> import cvxprivacy as cpv
    >>> round(cpv.one_symbol.privacy_loss([[0.75, 0.25], [0.25, 0.75]]), 4)
    1.0986
    """
    rows, near = _channel(channel, neighbours)
    worst = 0.0
    for x, row in enumerate(rows):
        others = rows[near[x]]
        if ((others > 0) != (row > 0)).any():
            return math.inf
        on = row > 0
        worst = max(worst, float(np.abs(np.log(others[:, on]) - np.log(row[on])).max()))
    return worst


def surprise_of_inputs(
    channel: npt.ArrayLike,
    prior: npt.ArrayLike | None = None,
    neighbours: npt.ArrayLike | None = None,
    *,
    units: str = "bits",
) -> npt.NDArray[np.float64]:
    """Return I1(F, x) = Σ_s p(s|x) log p(s|x)/p(s): differential privacy as surprise (eq. 17).

    p(s) = Σ p(s|x') p(x') runs over x and its neighbours x', with their prior normalised.  It
    bounds an average over outcomes against an average over neighbours, where ε bounds every ratio:
    see :func:`surprise_under` for the direction that follows.

    Parameters
    ----------
    channel : array_like, shape (|X|, |S|)
        p(s | x): the law of the outcome s, for each data set x.
    prior : array_like, shape (|X|,), optional
        p(x), positive; uniform by default.
    neighbours : array_like of bool, shape (|X|, |X|), optional
        Which data sets differ in one record; by default all.
    units : {"bits", "nats"}
        Of the surprise.

    Returns
    -------
    ndarray, shape (|X|,)
        Surprise of the outcome for each data set; θ of eq. 17 is their greatest.

    Raises
    ------
    InputError
        As :func:`privacy_loss`, and for a prior that is not positive.

    Examples
    --------
    Of randomised response that lies in a quarter of the answers it is 1 − h(¼):

    >>> import cvxprivacy as cpv
    >>> cpv.one_symbol.surprise_of_inputs([[0.75, 0.25], [0.25, 0.75]]).round(4).tolist()
    [0.1887, 0.1887]
    >>> round(1 - cpv.information.entropy([0.25, 0.75]), 4)
    0.1887
    """
    rows, near = _channel(channel, neighbours)
    remedy = f"pass {len(rows)} positive numbers, one per row of the channel"
    mass = array(np.ones(len(rows)) if prior is None else prior, "prior", remedy, axes=(1,))
    if len(mass) != len(rows) or not mass.all():
        raise InputError("prior", f"{mass.tolist()!r}", remedy)
    weights = near * mass
    mixed = (weights / weights.sum(axis=1, keepdims=True)) @ rows
    return np.maximum(_log_ratio(rows, mixed).sum(axis=1), 0.0) * nat(units)


def surprise_under(epsilon: float, *, units: str = "bits") -> float:
    """Return θ = ε tanh(ε/2): no surprise of eq. 17 is greater under ε-differential privacy.

    Every ratio p(s|x)/p(s) is in [e^−ε, e^ε], p(s) being an average over neighbours; among pairs
    of laws with such ratios the divergence is greatest for two outcomes, (e^ε, 1)/(1 + e^ε)
    against its mirror image.  Nothing follows in the other direction: a rare outcome that only
    one data set has makes ε infinite and adds next to nothing to the surprise.

    Parameters
    ----------
    epsilon : float
        ε ≥ 0, a natural logarithm.
    units : {"bits", "nats"}
        Of the result.

    Returns
    -------
    float
        θ, in ``units``.

    Raises
    ------
    InputError
        For a negative ε.

    Examples
    --------
    Randomised response of ε = ln 3 has a surprise of 0.19 bits; ½ log₂ 3 = 0.79 is the most that
    any channel of this ε has:

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> round(cpv.one_symbol.surprise_under(log(3)), 4)
    0.7925
    """
    ε = number(epsilon, "epsilon")
    return ε * math.tanh(ε / 2) * nat(units)
