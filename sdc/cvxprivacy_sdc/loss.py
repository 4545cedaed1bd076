"""What a masked table has lost: of numbers, unbounded and as probabilities, and of categories.

J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebé, Probabilistic information loss measures in
confidentiality protection of continuous microdata, Data Mining and Knowledge Discovery 11 (2005)
181–193: Table 1, IL1 to IL5; the probabilistic information loss (PIL), each measure a probability;
and the losses of categories, bounded by themselves (Remark 3.1).  The stable variant of IL1 is that
of W. E. Yancey, W. E. Winkler and R. H. Creecy, Disclosure risk assessment in perturbative
microdata protection, in: Inference Control in Statistical Databases, LNCS 2316 (2002) 135–152.

Every measure is finite.  In Table 1 a percent variation of an original 0 is 0 if the masked number
is 0 too, else 1 (100 %).  Where the paper leaves a PIL undefined, equal statistics lose nothing,
whatever their variance; unequal ones lose all, PIL = 1, if their variance is 0, and nothing if it
is infinite (a quantile where the density is 0).  A constant attribute has correlation 0 with all
others; measures of pairs of attributes do not exist for a single attribute, and no total has them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import pd
from cvxprivacy.model.information import entropy
from cvxprivacy.tables.arrays import codes, deviations, is_frame, paired, same_records
from cvxprivacy.tables.engines import as_narwhals, python_values
from cvxprivacy.validation import one_of, present

__all__ = [
    "CategoricalLoss",
    "InformationLoss",
    "ProbabilisticLoss",
    "categorical_loss",
    "information_loss",
    "probabilistic_loss",
]

DUST = 1e-12  # relative differences below this are rounding
PARTS = 20  # quantiles at 1/20, …, 19/20


class Loss:
    """Named parts, and their mean in percent."""

    @property
    def parts(self) -> dict[str, float]:
        """Each part by its name."""
        raise NotImplementedError

    @property
    def total(self) -> float:
        """100 times the mean of the parts."""
        return 100 * float(np.mean(list(self.parts.values())))


def correlation(law: np.ndarray) -> np.ndarray:
    """Return the correlations of a covariance matrix, those of a constant attribute 0."""
    spread = np.sqrt(law.diagonal())
    scale = np.outer(spread, spread)
    result = np.divide(law, scale, out=np.eye(len(law)), where=scale > 0)
    np.fill_diagonal(result, 1.0)
    return np.clip(result, -1.0, 1.0)


# ---- Table 1 -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InformationLoss(Loss):
    """The measures of Table 1, unbounded, as :func:`information_loss` returns them.

    Attributes
    ----------
    table : dict of str to dict of str to float
        By what is compared, ``"X"``, ``"mean"``, ``"V"``, ``"S"``, ``"R"``, ``"RF"``, ``"C"``,
        ``"F"``, and how: ``"mean square error"``, ``"mean absolute error"``,
        ``"mean variation"``.
    yancey : float
        The mean of abs(x − x̂) / (√2 S_j) over the n records and p attributes.

    Examples
    --------
    Values 10 % too large: so is each of them (IL1) and the mean (IL2), and the variance (IL3) is
    1.1² = 1.21 times as large.  Of a single attribute there are no covariances:

    >>> import numpy as np
    >>> numbers = np.arange(1.0, 101)[:, None]
    >>> loss = information_loss(numbers, 1.1 * numbers)
    >>> {name: round(part, 4) for name, part in loss.parts.items()}
    {'IL1': 0.1, 'IL2': 0.1, 'IL3': 0.21}
    >>> round(loss.total, 2)
    13.67
    """

    table: dict[str, dict[str, float]]
    yancey: float

    @property
    def parts(self) -> dict[str, float]:
        """IL1 to IL5: variation of values, means, variances, covariances, error of correlations."""
        kinds = [("X", "mean variation"), ("mean", "mean variation"), ("S", "mean variation")]
        kinds += [("V", "mean variation"), ("R", "mean absolute error")]
        return {
            f"IL{i}": self.table[what][how]
            for i, (what, how) in enumerate(kinds, 1)
            if what in self.table
        }

    def to_frame(self) -> pd.DataFrame:
        """Return Table 1, a row for each thing compared."""
        return pd.DataFrame.from_dict(self.table, orient="index")


def information_loss(
    original: Any, masked: Any, columns: Sequence[Hashable] | None = None
) -> InformationLoss:
    """Compare a masked table with the original by Table 1 of Mateo-Sanz et al. 2005.

    Compared are the values X, their means, covariances V (of different attributes), variances S,
    correlations R, and of the principal components of R: the correlations RF of attributes and
    components, the communality C of each attribute with the first, and the coefficients F with
    which standardised attributes enter each component.  The weights w_j of RF and F, which the
    paper leaves open, are the components' shares of the original variance.  Components are
    ordered by variance, and signed so that each masked one points along its original.

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p)
        Finite numbers, record i the same in both; columns of frames are matched by name.
    columns : sequence of str, optional
        Of frames, by default all.

    Returns
    -------
    InformationLoss
        Table 1, the total of IL1 to IL5, and the stable variant of IL1 (Yancey et al. 2002).

    Raises
    ------
    InputError
        For what is no table of finite numbers, or tables that do not match.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"wages": [1.0, 2.0, 3.0, 6.0], "rent": [1.0, 1.0, 2.0, 2.0]})
    >>> information_loss(table, table).total
    0.0
    >>> loss = information_loss(table, table.assign(rent=[2.0, 1.0, 1.0, 2.0]))
    >>> loss.table["R"]["mean absolute error"] > 0.5, loss.table["S"]["mean variation"]
    (True, 0.0)
    """
    before, after, _ = paired(original, masked, columns)
    means = before.mean(axis=0), after.mean(axis=0)
    laws = [(x - m).T @ (x - m) / len(x) for x, m in zip((before, after), means, strict=True)]
    for x, law in zip((before, after), laws, strict=True):
        constant = np.ptp(x, axis=0) == 0
        law[constant], law[:, constant] = 0.0, 0.0
    spread = np.sqrt(np.maximum(laws[0].diagonal(), laws[1].diagonal()))
    pairs = np.triu_indices(len(spread), 1)
    r = [correlation(law) for law in laws]
    shares, rf, f = _components(*r)
    table = {  # each original and masked, the scale of rounding, weights
        "X": _errors(before, after, 0.0),
        "mean": _errors(*means, np.abs(before).max(axis=0)),
        "V": _errors(laws[0][pairs], laws[1][pairs], np.outer(spread, spread)[pairs]),
        "S": _errors(laws[0].diagonal(), laws[1].diagonal(), spread**2),
        "R": _errors(r[0][pairs], r[1][pairs], 1.0),
        "RF": _errors(rf[0], rf[1], 1.0, shares),
        "C": _errors(rf[0][:, 0] ** 2, rf[1][:, 0] ** 2, 1.0),
        "F": _errors(f[0], f[1], 1.0, shares),
    }
    yancey = _variation(np.sqrt(2 * laws[0].diagonal()), np.abs(before - after)).mean()
    return InformationLoss({name: row for name, row in table.items() if row}, float(yancey))


def _errors(
    before: np.ndarray, after: np.ndarray, scale: float | np.ndarray, weights: Any = 1.0
) -> dict[str, float]:
    """Return the three kinds of error; what is smaller than rounding in ``scale`` is 0."""
    if not before.size:  # a single attribute has no pairs
        return {}
    dust = DUST * scale
    before = np.where(np.abs(before) <= dust, 0.0, before)
    error = np.abs(before - after)
    error[error <= dust] = 0.0
    return {
        "mean square error": float((weights * error**2).mean()),
        "mean absolute error": float((weights * error).mean()),
        "mean variation": float((weights * _variation(np.abs(before), error)).mean()),
    }


def _variation(of: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return errors as shares of numbers ≥ 0; of 0, any error is the whole."""
    base = np.broadcast_to(of, error.shape)
    return np.divide(error, base, out=(error > 0).astype(float), where=base > 0)


def _components(
    before: np.ndarray, after: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Return the components' shares of the original variance, RF and F of both tables."""
    pairs = [np.linalg.eigh(r) for r in (before, after)]
    values, others = (np.maximum(pair[0][::-1], 0.0) for pair in pairs)
    first, second = (pair[1][:, ::-1] for pair in pairs)
    signs = np.where((first * second).sum(axis=0) < 0, -1.0, 1.0)
    f = [first, second * signs]
    return values / values.sum(), [f[0] * np.sqrt(values), f[1] * np.sqrt(others)], f


# ---- probabilities -----------------------------------------------------------------------


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
    >>> from cvxprivacy_sdc.masking import MDAV
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


# ---- categories --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CategoricalLoss(Loss):
    """Losses of categorical attributes, each in [0, 1], as :func:`categorical_loss` returns them.

    Attributes
    ----------
    columns : list of str
        The attributes.
    changed : ndarray, shape (p,)
        Share of records whose category is another one.
    uncertainty : ndarray, shape (p,)
        H(X | X̂) / H(X), what the released category leaves open of the original one.
    marginals : ndarray, shape (p,)
        Total variation distance of the counts.
    tables : ndarray, shape (p, p)
        Of the two-way tables; symmetric, the diagonal NaN.
    ranks : dict of str to float
        Of ordered attributes, the mean difference in rank, as a share of the greatest.

    Examples
    --------
    >>> import pandas as pd
    >>> before = pd.DataFrame({"edu": ["low", "mid", "mid", "high"]})
    >>> after = pd.DataFrame({"edu": ["low", "mid", "high", "high"]})
    >>> loss = categorical_loss(before, after, orders={"edu": ["low", "mid", "high"]})
    >>> {name: round(part, 3) for name, part in loss.parts.items()}
    {'changed': 0.25, 'uncertainty': 0.333, 'marginals': 0.25, 'ranks': 0.125}

    Of the released categories only "high" leaves one bit open, in half of the records, of the 1.5
    bits that the education has; the total is the mean of the parts, in percent:

    >>> round(loss.total, 2)
    23.96
    """

    columns: list[str]
    changed: np.ndarray
    uncertainty: np.ndarray
    marginals: np.ndarray
    tables: np.ndarray
    ranks: dict[str, float]

    @property
    def parts(self) -> dict[str, float]:
        """Each measure's mean over attributes, or over pairs of them."""
        values = {name: getattr(self, name) for name in ("changed", "uncertainty", "marginals")}
        if len(self.columns) > 1:
            values["tables"] = self.tables[np.triu_indices(len(self.columns), 1)]
        if self.ranks:
            values["ranks"] = np.array(list(self.ranks.values()))
        return {name: float(each.mean()) for name, each in values.items()}


def categorical_loss(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    orders: Mapping[Hashable, Sequence[Hashable]] | None = None,
) -> CategoricalLoss:
    """Measure what categorical attributes have lost.

    Parameters
    ----------
    original, masked : frame
        Categories of any kind, a missing one among them; record i the same in both.
    columns : sequence of str, optional
        By default all of the original.
    orders : mapping of column to sequence, optional
        The categories of ordered attributes, in order.

    Returns
    -------
    CategoricalLoss
        The losses of each attribute, and of pairs.

    Raises
    ------
    InputError
        If the tables have other columns, or other numbers of records.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": list("ffmm"), "smokes": list("ynny")})
    >>> categorical_loss(people, people).total
    0.0
    >>> categorical_loss(people, people.assign(sex=list("fmmm"))).changed.tolist()
    [0.25, 0.0]
    """
    names, pairs = _paired_columns(original, masked, columns)
    coded = {name: np.split(codes([*a, *b]), 2) for name, (a, b) in pairs.items()}
    for column in orders or {}:
        if column not in names:
            remedy = f"use one of {', '.join(names)}"
            raise InputError("orders", f"no column {column!r}", remedy, value=column)
    tables = np.full((len(names), len(names)), np.nan)
    for i, one in enumerate(names):
        for j, other in enumerate(names[:i]):
            width = max(part.max() for part in coded[other]) + 1
            both = [a * width + c for a, c in zip(coded[one], coded[other], strict=True)]
            tables[i, j] = tables[j, i] = _total_variation(*both)
    return CategoricalLoss(
        names,
        np.array([float((a != b).mean()) for a, b in coded.values()]),
        np.array([_uncertainty(a, b) for a, b in coded.values()]),
        np.array([_total_variation(a, b) for a, b in coded.values()]),
        tables,
        {str(c): _rank_error(*pairs[str(c)], order, c) for c, order in (orders or {}).items()},
    )


def _paired_columns(
    original: Any, masked: Any, columns: Sequence[Hashable] | None
) -> tuple[list[str], dict[str, tuple[list[Any], list[Any]]]]:
    """Return the names of the columns, and the values of each in both tables."""
    for argument, table in (("original", original), ("masked", masked)):
        if not is_frame(table, argument):
            raise InputError(argument, f"a {type(table).__name__}", "pass a frame with columns")
    before, after = as_narwhals(original), as_narwhals(masked)
    names = list(before.columns) if columns is None else list(map(str, columns))
    for argument, frame in (("original", before), ("masked", after)):
        for name in names:
            present(name, frame.columns, argument)
    pairs = {name: (python_values(before[name]), python_values(after[name])) for name in names}
    sizes = [len(column) for column in next(iter(pairs.values()), ([], []))]
    if not sizes[0]:
        raise InputError("original", "no records or no columns", "pass at least one")
    same_records(sizes[1], "masked", sizes[0], "the original")
    return names, pairs


def _rank_error(before: list[Any], after: list[Any], order: Sequence[Any], column: Any) -> float:
    """Return the mean difference in rank, as a share of the greatest."""
    rank = {category: i for i, category in enumerate(order)}
    unknown = next((category for category in {*before, *after} if category not in rank), None)
    if not rank.keys() >= {*before, *after}:
        problem = f"{unknown!r} is not among them"
        raise InputError("orders", problem, "name every category", where=column, value=unknown)
    first, second = (np.array([rank[category] for category in part]) for part in (before, after))
    return float(np.abs(first - second).mean() / max(len(order) - 1, 1))


def _total_variation(before: np.ndarray, after: np.ndarray) -> float:
    _, both = np.unique(np.concatenate([before, after]), return_inverse=True)
    first, second = (np.bincount(part, minlength=both.max() + 1) for part in np.split(both, 2))
    return float(np.abs(first - second).sum() / (2 * len(before)))


def _uncertainty(before: np.ndarray, after: np.ndarray) -> float:
    """H(X | X̂) / H(X), 0 where X is constant."""
    original, released = (np.unique(part, return_counts=True)[1] for part in (before, after))
    initial = entropy(original)
    if initial == 0:
        return 0.0
    _, joint = np.unique(before * (after.max() + 1) + after, return_counts=True)
    return min(1.0, max(0.0, (entropy(joint) - entropy(released)) / initial))
