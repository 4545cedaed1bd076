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
from cvxprivacy.validation import array, number, one_of, whole

__all__ = [
    "bias_in_words",
    "bias_notes",
    "conditional_entropy",
    "differential_entropy",
    "divergence",
    "entropy",
    "miller_madow",
    "mutual_information",
    "nat",
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
    law = array(values, argument, remedy, axes=axes, massive=True)
    return law / law.sum()


def entropy(pmf: npt.ArrayLike, *, units: str = "bits") -> float:
    """Entropy H = −Σ p log p of a law of any shape.

    Examples
    --------
    >>> entropy([0.5, 0.5])
    1.0
    """
    p = _law(pmf, "pmf")
    p = p[p > 0]
    return float(-(p * np.log(p)).sum() * nat(units)) + 0.0


def divergence(p: npt.ArrayLike, q: npt.ArrayLike, *, units: str = "bits") -> float:
    """Kullback–Leibler divergence D(p ‖ q) = Σ p log(p/q); infinite where q = 0 < p."""
    a, b = _law(p, "p"), _law(q, "q")
    if a.shape != b.shape:
        raise InputError("q", f"shape {b.shape} beside {a.shape}", "pass laws of one alphabet")
    on = a > 0
    if (b[on] == 0).any():
        return math.inf
    return max(0.0, float((a[on] * np.log(a[on] / b[on])).sum() * nat(units)))


def conditional_entropy(joint: npt.ArrayLike, *, units: str = "bits") -> float:
    """Conditional entropy H(A | B) of a joint law of shape (|A|, |B|)."""
    p = _law(joint, "joint", (2,))
    return entropy(p, units=units) - entropy(p.sum(axis=0), units=units)


def mutual_information(joint: npt.ArrayLike, *, units: str = "bits") -> float:
    """Mutual information I(A; B) = Σ p(a, b) log(p(a, b) / p(a)p(b)), shape (|A|, |B|).

    Rebollo-Monedero et al. 2010, eq. (2), with A = W and B = X̂ the privacy risk.
    """
    p = _law(joint, "joint", (2,))
    product = np.outer(p.sum(axis=1), p.sum(axis=0))
    on = p > 0
    return max(0.0, float((p[on] * np.log(p[on] / product[on])).sum() * nat(units)))


def miller_madow(
    counts: npt.ArrayLike, *, records: float | None = None, units: str = "bits"
) -> float:
    """Miller–Madow estimate of the upward bias of the plug-in I(A; B) from counts.

    (cells − rows − columns + 1) / 2N with occupied cells, rows and columns counted: what an
    independent pair would show on average, to first order; negative where
    :func:`bias_in_words` says.  N is the sum of the counts, or
    ``records`` where they are weighted.
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
        k.

    Raises
    ------
    InputError
        For fewer than k + 1 records, or so many equal ones that a distance is 0: such an
        attribute has no density.
    """
    from scipy.spatial import cKDTree
    from scipy.special import digamma, gammaln

    data = array(sample, "sample", "pass finite records", axes=(1, 2), negative=True)
    data = data[:, None] if data.ndim == 1 else data
    size, d = data.shape
    k = whole(neighbours, "neighbours", least=1)
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
