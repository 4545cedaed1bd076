"""Entropy, divergence and mutual information of discrete laws, in bits or in nats.

Every function takes a nonnegative array, counts or probabilities, and normalises it by its
own sum, because the quantities are those of the empirical law.  ``units`` is ``"bits"``
(default) or ``"nats"``; the two are never mixed in one result.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.validation import array, integer, number, one_of

__all__ = [
    "conditional_entropy",
    "differential_entropy",
    "divergence",
    "entropy",
    "miller_madow",
    "mutual_information",
    "renyi_divergence",
    "sibson_information",
]

FEW_CELLS = "fewer cells occur than values of both less one"


def nat(units: str) -> float:
    """Return the size of one nat in ``units``: 1 for nats, 1/ln 2 for bits."""
    one_of(units, "units", "bits", "nats")
    return 1.0 if units == "nats" else 1.0 / math.log(2.0)


def _law(values: npt.ArrayLike, argument: str, axes: tuple[int, ...] | None = None) -> np.ndarray:
    remedy = "pass finite nonnegative numbers"
    if axes == (2,):
        remedy += " of shape (|A|, |B|)"
    return shares(array(values, argument, remedy, axes=axes, massive=True))


def shares(masses: np.ndarray) -> np.ndarray:
    """Return masses ≥ 0 by their sum, which no float need hold."""
    with np.errstate(over="ignore"):
        total = masses.sum()
    if not 1e-290 < total < math.inf:
        masses = masses / masses.max()
        total = masses.sum()
    return masses / total


def laws(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return two laws of one alphabet, flat."""
    a, b = _law(p, "p"), _law(q, "q")
    if a.shape != b.shape:
        raise InputError("q", f"shape {b.shape} beside {a.shape}", "pass laws of one alphabet")
    return a.ravel(), b.ravel()


def entropy(pmf: npt.ArrayLike, *, units: str = "bits") -> float:
    """Return the entropy H = −Σ p log p of a law of any shape.

    Parameters
    ----------
    pmf : array_like
        Probabilities or counts ≥ 0, which are divided by their sum.
    units : {"bits", "nats"}
        Of the entropy.

    Returns
    -------
    float
        H ≥ 0.

    Raises
    ------
    InputError
        For negative numbers or none that is positive.

    Examples
    --------
    Four equal values take two bits; a bit that is 1 in every tenth record is worth 0.469 bits:

    >>> import cvxprivacy as cpv
    >>> cpv.information.entropy([1, 1, 1, 1])
    2.0
    >>> round(cpv.information.entropy([0.9, 0.1]), 4)
    0.469
    """
    p = _law(pmf, "pmf")
    p = p[p > 0]
    return float(-(p * np.log(p)).sum() * nat(units)) + 0.0


def divergence(p: npt.ArrayLike, q: npt.ArrayLike, *, units: str = "bits") -> float:
    """Return Kullback and Leibler's divergence D(p ‖ q) = Σ p log(p/q).

    Parameters
    ----------
    p, q : array_like
        Probabilities or counts ≥ 0 of one shape, each divided by its own sum.
    units : {"bits", "nats"}
        Of the divergence.

    Returns
    -------
    float
        D ≥ 0, infinite where q = 0 < p.

    Raises
    ------
    InputError
        For negative numbers, or shapes that differ.

    Examples
    --------
    Of a certain bit against a fair one it is a bit; the other way round it is infinite:

    >>> import cvxprivacy as cpv
    >>> cpv.information.divergence([1, 0], [0.5, 0.5]), cpv.information.divergence([1, 1], [1, 0])
    (1.0, inf)
    """
    a, b = laws(p, q)
    on = a > 0
    if (b[on] == 0).any():
        return math.inf
    return max(0.0, float((a[on] * (np.log(a[on]) - np.log(b[on]))).sum() * nat(units)))


def conditional_entropy(joint: npt.ArrayLike, *, units: str = "bits") -> float:
    """Return the conditional entropy H(A | B) of a joint law.

    Parameters
    ----------
    joint : array_like, shape (|A|, |B|)
        Probabilities or counts ≥ 0, which are divided by their sum.
    units : {"bits", "nats"}
        Of the entropy.

    Returns
    -------
    float
        H(A, B) − H(B).

    Raises
    ------
    InputError
        For negative numbers, or another shape.

    Examples
    --------
    A bit that differs from a fair one in a fifth of the records keeps h(0.2) bits to itself:

    >>> import cvxprivacy as cpv
    >>> round(cpv.information.conditional_entropy([[0.4, 0.1], [0.1, 0.4]]), 4)
    0.7219
    >>> round(cpv.information.entropy([0.2, 0.8]), 4)
    0.7219
    """
    p = _law(joint, "joint", (2,))
    return entropy(p, units=units) - entropy(p.sum(axis=0), units=units)


def mutual_information(joint: npt.ArrayLike, *, units: str = "bits") -> float:
    """Return the mutual information I(A; B) = Σ p(a, b) log(p(a, b) / p(a)p(b)).

    Rebollo-Monedero et al. 2010, eq. (2), with A = W and B = X̂ the privacy risk.

    Parameters
    ----------
    joint : array_like, shape (|A|, |B|)
        Probabilities or counts ≥ 0, which are divided by their sum.
    units : {"bits", "nats"}
        Of the information.

    Returns
    -------
    float
        I ≥ 0.

    Raises
    ------
    InputError
        For negative numbers, or another shape.

    Examples
    --------
    Counts of 40 and 10 are the law of two fair bits that differ in a fifth of the records, which
    share 1 − h(0.2) bits:

    >>> import cvxprivacy as cpv
    >>> round(cpv.information.mutual_information([[40, 10], [10, 40]]), 4)
    0.2781
    >>> round(1 - cpv.information.entropy([0.2, 0.8]), 4)
    0.2781
    """
    p = _law(joint, "joint", (2,))
    a, b = np.nonzero(p)
    terms = p[a, b]  # p log p(a | b)/p(a): p(a)p(b) may be no float
    logs = np.log(terms / p.sum(axis=0)[b]) - np.log(p.sum(axis=1)[a])
    return max(0.0, float((terms * logs).sum() * nat(units)))


def renyi_divergence(
    p: npt.ArrayLike, q: npt.ArrayLike, order: float, *, units: str = "bits"
) -> float:
    """Return Rényi's divergence D_α(p ‖ q) = 1/(α − 1) log Σ p^α q^(1 − α).

    Its limits are −log q(p > 0) at 0, Kullback and Leibler's divergence at 1, and the greatest log
    ratio at ∞ (Rényi, *On measures of entropy and information*, 1961).  It is convex in (p, q) up
    to the order 1, and in q beyond.

    Parameters
    ----------
    p, q : array_like
        Probabilities or counts ≥ 0 of one shape, each divided by its own sum.
    order : float
        α ≥ 0, which may be ``math.inf``.
    units : {"bits", "nats"}
        Of the divergence.

    Returns
    -------
    float
        D_α ≥ 0; infinite where p and q have no value in common, and from 1 on where q = 0 < p.

    Raises
    ------
    InputError
        For negative numbers, shapes that differ, or an order that is negative or no number.

    Examples
    --------
    Of order 2 it is log(1 + χ²), here with χ² = 0.36; that of order ½ is −2 log Σ √(p q):

    >>> import cvxprivacy as cpv
    >>> from math import log2, sqrt
    >>> p, q = [0.8, 0.2], [0.5, 0.5]
    >>> round(cpv.information.renyi_divergence(p, q, 2), 6), round(log2(1.36), 6)
    (0.443607, 0.443607)
    >>> round(cpv.information.renyi_divergence(p, q, 0.5), 6), round(-2 * log2(3 * sqrt(0.1)), 6)
    (0.152003, 0.152003)
    """
    alpha, (a, b) = _order(order), laws(p, q)
    return max(0.0, _renyi(a, b, alpha) * nat(units))


def sibson_information(joint: npt.ArrayLike, order: float, *, units: str = "bits") -> float:
    """Return Sibson's information I_α(W; X̂) = α/(α − 1) log Σ_x̂ (Σ_w p(w) p(x̂ | w)^α)^(1/α).

    Mutual information is that of order 1, maximal leakage that of order ∞ (Sibson, *Information
    radius*, 1969; Verdú, *α-mutual information*, ITA 2015).  In the channel p(x̂ | w) it is convex
    up to the order 1, and its exponential (α − 1)/α I_α beyond, which is what
    :class:`~cvxprivacy.leakage.Sibson` minimises.

    Parameters
    ----------
    joint : array_like, shape (|W|, |X̂|)
        Probabilities or counts ≥ 0, which are divided by their sum.
    order : float
        α ≥ 0, which may be ``math.inf``; 0 is the limit from above.
    units : {"bits", "nats"}
        Of the information.

    Returns
    -------
    float
        I_α ≥ 0, which grows with the order.

    Raises
    ------
    InputError
        For negative numbers, another shape, or an order that is negative or no number.

    Examples
    --------
    Two fair bits that differ with probability 0.2, at the orders of mutual information and of
    maximal leakage, log₂ 1.6, and between them:

    >>> import cvxprivacy as cpv
    >>> from math import inf
    >>> joint = [[0.4, 0.1], [0.1, 0.4]]
    >>> for order in (0.5, 1, 2, inf):
    ...     print(order, round(cpv.information.sibson_information(joint, order), 4))
    0.5 0.152
    1 0.2781
    2 0.4436
    inf 0.6781
    """
    alpha, law = _order(order), _law(joint, "joint", (2,))
    prior, mass = law.sum(axis=1), law.sum(axis=0)
    there = np.flatnonzero(mass)
    values = np.array([_renyi(law[:, y] / mass[y], prior, alpha) for y in there])
    rate = 1.0 if math.isinf(alpha) else (alpha - 1.0) / alpha if alpha else -math.inf
    return max(0.0, _exponential_mean(mass[there], values, rate) * nat(units))


def _order(value: float) -> float:
    return math.inf if np.ndim(value) == 0 and value == math.inf else number(value, "order")


def _renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Return D_α in nats, the exponential mean of log p/q at the rate α − 1 by p."""
    on = p > 0
    with np.errstate(divide="ignore"):
        return _exponential_mean(p[on], np.log(p[on]) - np.log(q[on]), order - 1.0)


def _exponential_mean(weights: np.ndarray, values: np.ndarray, rate: float) -> float:
    """Return log(Σ weights e^(rate values))/rate, the mean at 0, and the extremes at ±∞.

    To digits near 0 too, where weights sum to 1.
    """
    if rate == 0:
        return float(weights @ values)
    if math.isinf(rate):
        return float(values.max() if rate > 0 else values.min())
    exponents = rate * values
    top = float(exponents.max())
    if math.isinf(top):
        return math.inf
    if top < 700 and abs(more := float(weights @ np.expm1(exponents))) < 0.5:
        return math.log1p(more) / rate
    return (top + math.log(float(weights @ np.exp(exponents - top)))) / rate


def miller_madow(
    counts: npt.ArrayLike, *, records: float | None = None, units: str = "bits"
) -> float:
    """Estimate the upward bias of the plug-in I(A; B) of counts (Miller and Madow).

    (cells − rows − columns + 1) / 2N with occupied cells, rows and columns counted: what an
    independent pair would show on average, to first order.  It is negative where fewer cells occur
    than rows and columns together less one: the plug-in information is then too low.

    Parameters
    ----------
    counts : array_like, shape (|A|, |B|)
        Records of each pair, or what these weigh.
    records : number, optional
        N, by default the sum of the counts; for weighted records an effective number of them.
    units : {"bits", "nats"}
        Of the bias.

    Returns
    -------
    float
        To be subtracted from :func:`mutual_information` of the counts.

    Raises
    ------
    InputError
        For negative counts, another shape, or an N that is not positive.

    Examples
    --------
    Of 25 records in a table of four cells, 1/50 nats are bias, about a third of what they show:

    >>> import cvxprivacy as cpv
    >>> counts = [[9, 4], [4, 8]]
    >>> cpv.information.miller_madow(counts, units="nats")
    0.02
    >>> round(cpv.information.mutual_information(counts, units="nats"), 4)
    0.0659
    """
    table = array(counts, "counts", "pass counts of shape (|A|, |B|)", axes=(2,), massive=True)
    size = table.sum() if records is None else number(records, "records", zero=False)
    cells = np.count_nonzero(table)
    rows = np.count_nonzero(table.sum(axis=1))
    columns = np.count_nonzero(table.sum(axis=0))
    return float((cells - rows - columns + 1) / (2 * size) * nat(units))


def bias_in_words(bias: float) -> str:
    """Say what Miller and Madow's term means for the plug-in information beside it.

    It is negative if and only if cells + 1 < rows + columns, occupied ones: then H(A) and H(B) are
    expected to be too low by more, (rows − 1)/2N + (columns − 1)/2N, than H(A, B), by
    (cells − 1)/2N, and so is I(A; B) = H(A) + H(B) − H(A, B).
    """
    if bias >= 0:
        return f"of which about {bias:.2g} is small-sample bias (Miller–Madow)"
    return f"too low by about {-bias:.2g} (Miller–Madow), as {FEW_CELLS}"


def bias_notes(
    joint: npt.NDArray[np.float64], records: float | None, *, units: str = "bits"
) -> list[str]:
    """Return a note if I(A; B) of so many records is mostly bias, or may be; else nothing."""
    risk = mutual_information(joint, units=units)
    if records is None or risk <= 0:
        return []
    bias, cells = miller_madow(joint, records=records, units=units), int(np.count_nonzero(joint))
    each = records / cells
    if each >= 5 and risk >= 2 * bias:
        return []
    if each >= 5:
        return [
            f"of the plug-in risk of {risk:.4f} {units} about {bias:.2g} is bias: no "
            "dependence beyond chance is visible"
        ]
    formula = f"which Miller and Madow's formula understates with so few ({bias:.2g})"
    if bias < 0:
        formula = f"of which Miller and Madow's formula tells nothing, as {FEW_CELLS}"
    return [
        f"{cells:,} observed cells have {each:.1f} records each: the plug-in risk of "
        f"{risk:.4f} {units} may be mostly bias, {formula}: coarsen"
    ]


def differential_entropy(
    sample: npt.ArrayLike, *, neighbours: int = 3, units: str = "bits"
) -> float:
    """Estimate h(W) from records by nearest neighbours (Kozachenko and Leonenko, 1987).

    ψ(N) − ψ(k) + log V_d + (d/N) Σ log ε_i, ε_i the Euclidean distance of record i to its k-th
    nearest neighbour and V_d the volume of the unit ball in d dimensions.

    Parameters
    ----------
    sample : array_like, shape (N,) or (N, d)
        Records of a continuous attribute.
    neighbours : int
        k ≥ 1; more of them scatter less and blur more.
    units : {"bits", "nats"}
        Of the entropy.

    Returns
    -------
    float
        The estimate, of any sign.

    Raises
    ------
    InputError
        For fewer than k + 1 records, or so many equal ones that a distance is 0: such an
        attribute has no density.

    Examples
    --------
    A normal variable of variance 1 has h = ½ log₂ 2πe = 2.047 bits, which 2,000 records tell to
    within a twentieth:

    >>> import cvxprivacy as cpv
    >>> import numpy as np
    >>> sample = np.random.default_rng(0).normal(size=2000)
    >>> abs(cpv.information.differential_entropy(sample) - 2.047) < 0.05
    True
    """
    from scipy.spatial import cKDTree
    from scipy.special import digamma, gammaln

    data = array(sample, "sample", "pass finite records", axes=(1, 2), negative=True)
    data = data[:, None] if data.ndim == 1 else data
    size, d = data.shape
    k = integer(neighbours, "neighbours", least=1)
    if size <= k:
        raise InputError("sample", f"{size} records", f"pass more than {k}")
    distances = np.asarray(cKDTree(data).query(data, k + 1)[0])[:, -1]
    if not distances.all():
        where = int(np.argmin(distances))
        problem = f"more than {k} records equal to {data[where].tolist()!r}"
        raise InputError("sample", problem, "pass a continuous attribute", where=where)
    volume = d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)
    nats = digamma(size) - digamma(k) + volume + d * np.log(distances).mean()
    return float(nats * nat(units))
