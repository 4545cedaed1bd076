"""Probabilistic information loss (PIL): each measure a probability, and the total in [0, 100].

J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebé, Probabilistic information loss measures in
confidentiality protection of continuous microdata, Data Mining and Knowledge Discovery 11 (2005)
181–193.  Where they leave a measure undefined: equal statistics lose nothing, whatever their
variance; unequal ones lose all, PIL = 1, if their variance is 0, and nothing if it is infinite (a
quantile where the density is 0); a constant attribute has correlation 0 with all others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.microdata.arrays import deviations, paired
from cvxprivacy.microdata.loss.base import DUST, Loss, correlation
from cvxprivacy.validation import one_of

if TYPE_CHECKING:
    import pandas as pd

PARTS = 20  # quantiles at 1/20, …, 19/20


@dataclass(frozen=True, eq=False)
class ProbabilisticLoss(Loss):
    """Probabilistic information loss (PIL): each measure a probability, 0 if nothing is lost.

    :func:`probabilistic_loss` returns it.

    Attributes
    ----------
    columns : list of str
        The attributes.
    quantiles : ndarray, shape (19, p)
        PIL of the quantiles at 5 %, …, 95 %.
    means, variances : ndarray, shape (p,)
        PIL of the means and of the variances.
    covariances, correlations : ndarray, shape (p, p)
        PIL of pairs; symmetric, the diagonal NaN: a pair has two attributes.

    Examples
    --------
    The numbers 1 to 100, each raised by 3: the mean is off by 3, where a sample's would be off by
    2.89 in standard deviation, and a variance is not touched:

    >>> import numpy as np
    >>> numbers = np.arange(1.0, 101)[:, None]
    >>> loss = probabilistic_loss(numbers, numbers + 3)
    >>> loss.means.round(4).tolist(), loss.variances.tolist()
    ([0.7013], [0.0])
    >>> from scipy.special import erf
    >>> round(float(erf(3 / np.sqrt(2 * numbers.var() / 100))), 4)
    0.7013
    """

    columns: list[str]
    quantiles: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    covariances: np.ndarray
    correlations: np.ndarray

    @property
    def parts(self) -> dict[str, float]:
        """PIL of quantiles, means, variances, covariances and correlations, each an average."""
        values = {"Q": self.quantiles, "mean": self.means, "var": self.variances}
        if len(self.columns) > 1:
            pairs = np.triu_indices(len(self.columns), 1)
            values |= {"cov": self.covariances[pairs], "r": self.correlations[pairs]}
        return {f"PIL({name})": float(each.mean()) for name, each in values.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return the measures by attribute; those of pairs are averaged over the other ones."""
        import pandas as pd

        values = {"Q": self.quantiles.mean(axis=0), "mean": self.means, "var": self.variances}
        if len(self.columns) > 1:
            values["cov"] = np.nanmean(self.covariances, axis=0)
            values["r"] = np.nanmean(self.correlations, axis=0)
        return pd.DataFrame(values, index=pd.Index(self.columns)).rename(columns="PIL({})".format)


def probabilistic_loss(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    density: str = "interval",
) -> ProbabilisticLoss:
    r"""Measure the probabilistic information loss of Mateo-Sanz et al. 2005.

    The original is a population, the masked table a sample of n̂ records.  A statistic θ̂ of the
    latter has normal law about θ under simple random sampling, and by their expression 1

    .. math:: \mathrm{pil}(θ̂) = 2 P(0 ≤ Z ≤ |θ̂ − θ| / \sqrt{\mathrm{Var}\, θ̂})

    with the variances of §4.4, whose moments are those of the original.  Quantiles are those
    that halve steps of the distribution function (averaged inverse).

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p) and (n̂, p)
        Finite numbers; columns of frames are matched by name.
    columns : sequence of str, optional
        Of frames, by default all.
    density : {"interval", "kernel"}
        Of the original at its quantiles: the share of records in (Q − ε, Q + ε), ε a thousandth
        of the range, divided by 2ε; or by a Gaussian kernel of Scott's width (Remark 4.4).

    Returns
    -------
    ProbabilisticLoss
        The measures, whose mean in percent is ``total``.

    Raises
    ------
    InputError
        For what is no table of finite numbers, or columns that do not match.

    Examples
    --------
    Groups of three keep the means; variances and quantiles are lost to some degree:

    >>> import numpy as np
    >>> from cvxprivacy.microdata.masking import MDAV
    >>> table = np.random.default_rng(0).exponential(size=(60, 2))
    >>> loss = probabilistic_loss(table, MDAV(k=3).fit_transform(table), density="kernel")
    >>> loss.parts["PIL(mean)"], 0 < loss.parts["PIL(var)"] < 1, 0 < loss.total < 100
    (0.0, True, True)
    """
    one_of(density, "density", "interval", "kernel")
    before, after, names = paired(original, masked, columns, records=False)
    size = len(after)
    shift, spread = before.mean(axis=0), deviations(before)
    unit = np.where(spread > 0, spread, np.maximum(np.abs(shift), 1.0))
    dust = DUST * (1 + np.abs(shift) / unit)
    a, b = (before - shift) / unit, (after - shift) / unit
    a[:, spread == 0] = 0.0  # mean 0 and variance 1, or 0
    c = b - b.mean(axis=0)
    c[:, np.ptp(after, axis=0) == 0] = 0.0
    law, m11, m22 = c.T @ c / size, _moment(a, 1, 1), _moment(a, 2, 2)
    rho = correlation(m11)
    m2, m4 = m11.diagonal(), m22.diagonal()
    q = np.arange(1, PARTS)[:, None] / PARTS
    at = _quantiles(a)
    with np.errstate(divide="ignore"):
        of_q = q * (1 - q) / (size * _density(a, at, density) ** 2)
    pairs = dust[:, None] + dust
    covariances = _pil(law - m11, (m22 - m11**2) / size, pairs)
    correlations = _pil(correlation(law) - rho, _variance_of_correlation(a, rho) / size, pairs)
    for matrix in (covariances, correlations):
        np.fill_diagonal(matrix, np.nan)
    return ProbabilisticLoss(
        names,
        _pil(_quantiles(b) - at, of_q, dust),
        _pil(b.mean(axis=0), m2 / size, dust),
        _pil(law.diagonal() - m2, (m4 - m2**2) / size, dust),
        covariances,
        correlations,
    )


def _moment(data: np.ndarray, i: int, j: int) -> np.ndarray:
    """Return μ_ij of all pairs of attributes whose means are 0."""
    return np.asarray((data**i).T @ data**j / len(data))


def _variance_of_correlation(data: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Return n̂ Var r̂ of all pairs of attributes, by their moments."""
    m22 = _moment(data, 2, 2)
    m2, m4 = _moment(data, 1, 1).diagonal(), m22.diagonal()
    products = np.maximum(np.outer(m2, m2), np.finfo(float).tiny)
    fourth = np.divide(m4, m2**2, out=np.zeros_like(m4), where=m2 > 0)
    m13 = _moment(data, 1, 3)
    kappa = np.divide(m13, m2, out=np.zeros_like(m13), where=m2 > 0)  # μ_13 / μ_02
    variance = m22 / products + rho**2 / 4 * (fourth[:, None] + fourth + 2 * m22 / products)
    return np.asarray(variance - rho / np.sqrt(products) * (kappa + kappa.T))


def _pil(off: np.ndarray, variance: np.ndarray, dust: np.ndarray) -> np.ndarray:
    """Return expression (1) of deviations θ̂ − θ; those of rounding are none."""
    from scipy.special import erf

    off, variance = np.abs(off), np.maximum(variance, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = erf(off / np.sqrt(2 * variance))
    return np.asarray(np.where(off <= dust, 0.0, share))


def _quantiles(data: np.ndarray) -> np.ndarray:
    """Return the quantiles at 1/20, …, 19/20, shape (19, p), in whole numbers of records."""
    ranked = np.sort(data, axis=0)
    places = np.arange(1, PARTS) * len(data)
    upper = ranked[np.minimum(places // PARTS, len(data) - 1)]
    lower = ranked[np.maximum(-(-places // PARTS) - 1, 0)]
    return (lower + upper) / 2


def _density(data: np.ndarray, at: np.ndarray, kind: str) -> np.ndarray:
    """Return each attribute's density at its quantiles, shape (19, p); ∞ of a constant one."""
    from scipy.stats import gaussian_kde

    heights = np.full(at.shape, np.inf)
    for j, (column, places) in enumerate(zip(data.T, at.T, strict=True)):
        half = np.ptp(column) / 1000
        if half == 0:
            continue
        if kind == "kernel":
            heights[:, j] = gaussian_kde(column)(places)
        else:
            ranked = np.sort(column)
            inside = np.searchsorted(ranked, places + half, side="left")
            inside -= np.searchsorted(ranked, places - half, side="right")
            heights[:, j] = inside / (len(column) * 2 * half)
    return heights
