"""The analyst's side: the original law p(x), estimated from records released through a channel.

Who knows the channel K = p(x̂ | x) sees n(x̂) of N records drawn from q = pK, one independent
draw of the channel each, and solves for p, by moments or by maximum likelihood:

* A. van den Hout and P. G. M. van der Heijden, Randomized response, statistical disclosure
  control and misclassification: a review, International Statistical Review 70 (2002) 269–288;
* J. M. Gouweleeuw, P. Kooiman, L. C. R. J. Willenborg and P.-P. de Wolf, Post randomisation for
  statistical disclosure control: theory and implementation, Journal of Official Statistics 14
  (1998) 463–478;
* A. P. Dempster, N. M. Laird and D. B. Rubin, Maximum likelihood from incomplete data via the EM
  algorithm, Journal of the Royal Statistical Society B 39 (1977) 1–38.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.exact import is_sparse
from cvxprivacy.extras import pd
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.tables.counting import count_letters
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.text import aligned
from cvxprivacy.validation import array, integer, labels, number, one_of, present

__all__ = ["Estimate", "estimate", "released_counts", "weights_of_outputs"]

# Rows may sum to 1 within this, and singular values below it count as zero: beyond it the matrix
# is not known, and a standard error would be of the order of 1/(RESOLUTION √N).
RESOLUTION = 1e-9

COUNT = "count the table that this channel released"


@dataclass(frozen=True, eq=False)
class Estimate(FrozenFields):
    """An estimate of the original law p(x), as :meth:`Channel.estimate` returns it.

    Attributes
    ----------
    law : ndarray, shape (|X|,)
        Shares that sum to 1; those of ``"moment"`` may be negative.
    covariance : ndarray, shape (|X|, |X|)
        Of ``law``; NaN where the data give none.
    records : float
        N, the sum of the counts.
    method : {"moment", "em"}
        How it was made.
    letters : list
        Labels of x.
    gap : float or None
        For ``"em"``, nats per record by which the log-likelihood is short of its maximum at
        most, rounding included.

    Examples
    --------
    Warner's question: one who has the trait says so with probability 0.9, one who has not with
    0.2.  Of 1,000 answers 550 are "yes", and 0.9 p + 0.2 (1 − p) = 0.55 for p = ½:

    >>> from cvxprivacy import Channel
    >>> asked = Channel([[0.9, 0.1], [0.2, 0.8]], inputs=["yes", "no"], outputs=["yes", "no"])
    >>> found = asked.estimate({"yes": 550, "no": 450})
    >>> found.law.round(6).tolist()
    [0.5, 0.5]

    The standard error is that of the answers, √(0.55 · 0.45/1000) = 0.0157, divided by 0.9 − 0.2:

    >>> found.standard_errors.round(4).tolist()
    [0.0225, 0.0225]
    """

    law: np.ndarray
    covariance: np.ndarray
    records: float
    method: str
    letters: list[Any]
    gap: float | None = None

    @property
    def standard_errors(self) -> np.ndarray:
        """Of ``law``, shape (|X|,)."""
        return np.sqrt(self.covariance.diagonal())

    @property
    def counts(self) -> np.ndarray:
        """Estimated numbers of original records, N p(x), shape (|X|,)."""
        return self.records * self.law

    @property
    def notes(self) -> list[str]:
        """What a reader of the shares should know."""
        unknown, zero = np.isnan(self.covariance.diagonal()), self.law < RESOLUTION
        masks = {
            'shares below zero: method="em" keeps to laws': self.law < 0,
            "shares at zero: the standard errors take them as known": unknown & zero,
            "shares chosen among many that fit as well": unknown & ~zero & (self.law < 1),
        }
        notes = [f"{on.sum():,} {text}" for text, on in masks.items() if on.any()]
        if self.gap is not None:
            notes.append(f"log-likelihood within {self.gap:.1e} nats per record of its maximum")
        return notes

    def to_frame(self) -> pd.DataFrame:
        """Return shares, standard errors and counts by letter, a pandas frame."""
        columns = {"share": self.law, "standard error": self.standard_errors, "count": self.counts}
        return pd.DataFrame(columns, index=pd.Index(self.letters, tupleize_cols=False))

    def __repr__(self) -> str:
        size = f"{len(self.law)} letters, {self.records:,.10g} records"
        return f"Estimate({self.method}, {size})"

    def __str__(self) -> str:
        columns = (self.letters, self.law, self.standard_errors, self.counts)
        rows = [
            [str(letter), *(f"{number:.5g}" for number in numbers)]
            for letter, *numbers in zip(*columns, strict=True)
        ]
        if len(rows) > 20:
            rows[10:-10] = [["…"] * 4]
        table = aligned([["", "share", "standard error", "count"], *rows])
        return "\n".join([repr(self), *table, *(f"  note: {note}" for note in self.notes)])


def estimate(
    matrix: npt.ArrayLike,
    counts: npt.ArrayLike,
    *,
    method: str = "moment",
    letters: Sequence[Hashable] | None = None,
    tolerance: float = 1e-9,
    iterations: int = 100_000,
) -> Estimate:
    """Estimate p(x) from the counts that a known channel released.

    ``"moment"`` solves pK = n/N.  With more outputs than inputs it is the least-squares solution
    that weighs each squared error by 1/Σ_x p(x̂ | x), fixed beforehand: a mean over records,
    exactly unbiased, that sums to 1; a small share is often estimated as negative.  Its covariance
    is Aᵀ (diag(n/N) − (n/N)(n/N)ᵀ) A / N for p = (n/N) A, with N rather than N − 1, so that it is
    that of ``"em"`` wherever the two estimates agree.

    ``"em"`` maximises the likelihood Σ n(x̂) log (pK)(x̂) over the laws: an interior-point
    solution, then EM steps until the gap to the maximum is proved.  With an invertible K it is
    the moment estimate, if that is a law.  Its covariance is the inverse of the observed Fisher
    information on the laws of the letters with positive share.  A letter whose share is 0 (or, of
    several, 1) has no error: NaN; the others' errors are those given that it is absent, which may
    be too narrow.  A share that other laws of the same likelihood do not agree upon has none
    either, and the law is one of many.

    Either way the original records are taken as draws from p(x), so the standard errors hold
    their chance and the channel's; for the shares of the very table that was released they are
    too wide.  As the channel loses rank they grow without bound.

    Parameters
    ----------
    matrix : array_like, shape (|X|, |X̂|)
        K = p(x̂ | x); rows sum to 1.
    counts : array_like, shape (|X̂|,)
        n(x̂) ≥ 0; weighted records count as their weights, and N is then their sum.
    method : {"moment", "em"}
        As above.
    letters : sequence, optional
        Labels of x, by default 0, 1, …
    tolerance : float
        Of ``"em"``, in nats per record.
    iterations : int
        EM steps at most; a warning tells if they ran out, and ``gap`` how far they came.

    Returns
    -------
    Estimate
        The law with its covariance.

    Raises
    ------
    InputError
        For what is no channel, no counts or not as many labels; for records of a letter that
        the channel never releases; for ``"moment"``, if the rank of K is below |X|, as it is for
        many an optimal channel: the released law does not determine the original one.

    Examples
    --------
    >>> estimate([[0.75, 0.25], [0.25, 0.75]], [10, 30], method="em").law.round(6).tolist()
    [0.0, 1.0]
    """
    k = stochastic(matrix)
    if is_sparse(k):
        problem = f"a sparse matrix of {k.shape[0]:,} letters"
        raise InputError("matrix", problem, "put letters together: their law is too long for it")
    k /= k.sum(axis=1, keepdims=True)
    remedy = f"pass {k.shape[1]} numbers ≥ 0, one per column of the matrix"
    n = array(counts, "counts", remedy, axes=(1,), massive=True)
    if len(n) != k.shape[1]:
        raise InputError("counts", f"shape {n.shape}", remedy)
    with np.errstate(over="ignore"):
        records = number(n.sum(), "counts", zero=False)
    names = labels(letters, len(k), "letters")
    q, even = n / records, k.mean(axis=0)  # released law, and that of evenly spread letters
    if (lost := (n > 0) & (even == 0)).any():
        y = int(lost.argmax())
        problem = f"{n[y]:g} records of a letter that the channel never releases"
        raise InputError("counts", problem, COUNT, where=y, value=float(n[y]))
    if method == "moment":
        p, covariance = _moment(k, q, even)
        return Estimate(p, covariance / records, records, method, names)
    one_of(method, "method", "moment", "em")
    tolerance = number(tolerance, "tolerance")
    iterations = integer(iterations, "iterations", least=1)
    k, q = k[:, q > 0] / even[q > 0], q[q > 0]  # no maximum depends on a column's scale
    p, gap, on = _likeliest(k, q, tolerance, iterations)
    if gap > tolerance:
        message = f"after {iterations:,} EM steps the likelihood is only known to be within "
        message += f"{gap:.1e} nats per record of its maximum, not {tolerance:.1e}"
        warnings.warn(message, stacklevel=2)
    covariance = _inverse_information(k, q, p, on) / records
    return Estimate(p, covariance, records, method, names, gap)


def stochastic(matrix: Any, shape: tuple[int, int] | None = None) -> Any:
    """Return a matrix whose rows are laws, to rounding; a sparse one as a ``csr_array``."""
    expected = "(|X|, |X̂|)" if shape is None else shape
    remedy = f"pass rows of nonnegative numbers that sum to 1, shape {expected}"
    if is_sparse(matrix):
        k: Any = sparse.csr_array(matrix, dtype=float)
        try:  # places beyond the columns would be read from other memory
            k.check_format(full_check=True)
        except ValueError as error:
            raise InputError("matrix", f"no sparse array: {error}", remedy) from None
        k.sum_duplicates()
        k.data = array(k.data, "matrix", remedy, axes=(1,))
    else:
        k = array(matrix, "matrix", remedy, axes=(2,))
    if shape is not None and k.shape != shape:
        raise InputError("matrix", f"shape {k.shape}", remedy)
    off = np.abs(k.sum(axis=1) - 1.0) > RESOLUTION
    if off.any():
        row = int(off.argmax())
        total = float(k[row].sum())
        raise InputError("matrix", f"the row sums to {total!r}", remedy, where=row, value=total)
    return k


def released_counts(
    released: Any, outputs: Sequence[Hashable], schema: TableSchema | None, column: str | None
) -> Any:
    """Return the counts of released letters: of a table, a mapping, or as they are.

    ``column`` is that of u in a table whose key columns are not released.
    """
    if schema is not None and not isinstance(released, dict | list | np.ndarray):
        if schema.weights is not None:
            remedy = "pass the weighted counts of the released letters"
            raise InputError("released", "a table whose records have weights", remedy)
        columns = schema.key if column is None else (column,)
        names = as_narwhals(released, "released").lazy().collect_schema().names()
        for name in columns:
            present(name, names, "released")
        released = count_letters(TableSchema(key=columns), released, [columns])
    if not isinstance(released, dict):
        return released
    places, counts = {label: i for i, label in enumerate(outputs)}, np.zeros(len(outputs))
    for label, count in released.items():
        if label not in places:
            problem, remedy = f"{label!r} is never released", COUNT
            raise UnknownValueError("released", problem, remedy, value=label)
        counts[places[label]] += count
    return counts


def weights_of_outputs(k: np.ndarray, least: float = RESOLUTION) -> tuple[np.ndarray, np.ndarray]:
    """Return A and the singular values of the channel, of which K A is the identity if none is 0.

    The singular values are the canonical correlations of x and x̂ for an even p(x): the first
    is 1, with the all-one functions, for which reason every row of A sums to 1.  Else K A is a
    projection: what it leaves as it is, Σ_x n(x) f(x) with K A f = f, is estimated without bias.

    Parameters
    ----------
    k : ndarray, shape (|X|, |X̂|)
        Rows are laws.
    least : float
        Singular values up to it count as zero.

    Returns
    -------
    (ndarray, ndarray)
        The share of each output in each estimate, shape (|X̂|, |X|), and the values.
    """
    root = np.sqrt(len(k) * k.mean(axis=0))
    u, values, v = np.linalg.svd(_scaled(k, root), full_matrices=False)
    kept = values > least
    share = (u[:, kept] / values[kept] @ v[kept]).T
    return np.divide(
        share, root[:, None], out=np.zeros_like(share), where=root[:, None] > 0
    ), values


def _scaled(k: np.ndarray, root: np.ndarray) -> np.ndarray:
    return np.divide(k, root, out=np.zeros_like(k), where=root > 0)


def _moment(k: np.ndarray, q: np.ndarray, even: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the moment estimate and its covariance of one record."""
    share, values = weights_of_outputs(k)
    often = (q > 0) | (k.max(axis=0) >= 1e-4)  # unseen letters of next to no mass tell nothing
    scaled = _scaled(k, np.sqrt(len(k) * even))[:, often]
    informative = np.linalg.svd(scaled, compute_uv=False) if often.any() else np.zeros(0)
    rank = min(int((values > RESOLUTION).sum()), int((informative > RESOLUTION).sum()))
    if rank < len(k):
        raise InputError(
            "matrix",
            f"its rank is {rank} where |X| = {len(k)}: the released law does not determine the "
            "original one",
            'use method="em" for one likeliest law of many, which says what is not determined',
            value=rank,
        )
    p = q @ share
    centred = np.sqrt(q)[:, None] * (share - p)
    return p, centred.T @ centred


def _gradient(k: np.ndarray, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the likelihood's gradient ∂/∂p(x) Σ q log pK, and a bound of what p falls short.

    By concavity, log-likelihood(p′) − log-likelihood(p) ≤ Σ_x (p′ − p)(x) gradient(x)
    = Σ_x p′(x) gradient(x) − 1 ≤ max gradient − 1 for every law p′ (Cover, IEEE Transactions on
    Information Theory 30, 1984, 369–373).  The last term allows for rounding.
    """
    gradient = k @ (q / (p @ k))
    return gradient, max(float(gradient.max()) - 1.0, 0.0) + _rounding(k)


def _rounding(k: np.ndarray) -> float:
    return 4 * sum(k.shape) * float(np.finfo(float).eps)


def _likeliest(
    k: np.ndarray, q: np.ndarray, tolerance: float, iterations: int
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return a law of maximal likelihood, its gap, and where it is not at zero; all q > 0."""
    p = _interior(k, q)
    gradient, gap = _gradient(k, q, p)
    for _ in range(iterations):
        if gap <= tolerance:
            break
        p = p * gradient / (p @ gradient)  # E and M step in one: p(x) ← Σ q(x̂) p(x | x̂)
        gradient, gap = _gradient(k, q, p)
    # Complementary slackness: p (1 − gradient) = 0 at the maximum, so one of the two is negligible.
    on = p > np.minimum(1.0 - gradient, RESOLUTION)
    trimmed = np.where(on, p, 0.0) / p[on].sum()
    with np.errstate(all="ignore"):  # what is trimmed may be all that explains a rare output
        shortfall = _gradient(k, q, trimmed)[1]
    return (trimmed, shortfall, on) if shortfall <= max(gap, tolerance) else (p, gap, on)


def _interior(k: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the best law that a primal–dual interior-point method finds, every share positive.

    EM alone can take millions of steps where the channel is poorly conditioned or shares vanish
    (Koenker and Mizera, Journal of the American Statistical Association 109, 2014, 674–685).
    """
    p = np.full(len(k), 1.0 / len(k))
    slack = np.ones(len(k))  # becomes 1 − gradient ≥ 0
    best, least = p, _gradient(k, q, p)[1]
    with np.errstate(all="ignore"), contextlib.suppress(np.linalg.LinAlgError):
        for _ in range(100):
            if least <= 2 * _rounding(k):
                break
            m = k * (np.sqrt(q) / (p @ k))
            aim = 0.1 * (p @ slack) / len(p) / p
            step = np.linalg.solve(m @ m.T + np.diag(slack / p), aim - 1.0 + m @ np.sqrt(q))
            turn = aim - slack - slack / p * step
            reach = 0.95 / max(0.95, float((-step / p).max()), float((-turn / slack).max()))
            p, slack = p + reach * step, slack + reach * turn
            gap = _gradient(k, q, p / p.sum())[1]
            if not np.isfinite(gap):
                break
            if gap < least:
                best, least = p / p.sum(), gap
    return best


def _inverse_information(k: np.ndarray, q: np.ndarray, p: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Return the covariance of one record's maximum-likelihood estimate, NaN where it has none.

    The information of moves of p that keep its sum is B D Bᵀ with B = K/√(pK), centred, and
    D = diag(q/pK); on the span of B, with B = U S V, its inverse is U S⁻¹ (V D Vᵀ)⁻¹ S⁻¹ Uᵀ.
    """
    covariance = np.full((len(p), len(p)), np.nan)
    r, rows, size = p @ k, k[on], int(on.sum())
    if size == 1 < len(p):
        return covariance
    u, values, v = np.linalg.svd((rows - rows.mean(axis=0)) / np.sqrt(size * r), False)
    kept = values > RESOLUTION
    u = u[:, kept]
    triangle = np.linalg.qr(np.sqrt(q / r)[:, None] * v[kept].T)[1]
    try:
        half = np.linalg.solve(triangle.T, (u / values[kept]).T)
    except np.linalg.LinAlgError:  # counts of which some are nothing beside others
        return covariance
    inverse = half.T @ half / size
    # Moves outside the span change nothing that was released: a share they change is not known.
    unknown = 1.0 - 1.0 / size - (u**2).sum(axis=1) > RESOLUTION
    inverse[unknown], inverse[:, unknown] = np.nan, np.nan
    covariance[np.ix_(on, on)] = inverse
    return covariance
