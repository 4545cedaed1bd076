"""Information loss: what a masked table has lost, as the literature measures it.

J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebé, Probabilistic information loss measures in
confidentiality protection of continuous microdata, Data Mining and Knowledge Discovery 11 (2005)
181–193: Table 1, IL1–IL5 and PIL.  The stable variant of the first is that of W. E. Yancey,
W. E. Winkler and R. H. Creecy, Disclosure risk assessment in perturbative microdata protection,
in: Inference Control in Statistical Databases, LNCS 2316 (2002) 135–152.

Every measure is finite.  Where the literature leaves one undefined, these are the conventions:

* a percent variation of an original 0 is 0 if the masked number is 0 too, else 1 (100 %);
* a constant attribute has correlation 0 with all others;
* equal statistics lose nothing, whatever their variance; unequal ones lose all, PIL = 1, if their
  variance is 0, and nothing if it is infinite (a quantile where the density is 0);
* measures of pairs of attributes do not exist for a single attribute, and no total has them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.microdata.tables import deviations, framed, paired
from cvxprivacy.model.information import entropy
from cvxprivacy.tables.frames import narwhal, plain
from cvxprivacy.validation import present

if TYPE_CHECKING:
    import pandas as pd

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


# ---- Table 1 -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InformationLoss:
    """The measures of Table 1, unbounded.

    Attributes
    ----------
    table : dict of str to dict of str to float
        By what is compared, ``"X"``, ``"mean"``, ``"V"``, ``"S"``, ``"R"``, ``"RF"``, ``"C"``,
        ``"F"``, and how: ``"mean square error"``, ``"mean absolute error"``,
        ``"mean variation"``.
    yancey : float
        Σ |x − x̂| / (√2 S_j) / (np).
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

    @property
    def total(self) -> float:
        """IL, 100 times the mean of the parts."""
        return 100 * float(np.mean(list(self.parts.values())))

    def to_frame(self) -> pd.DataFrame:
        """Return Table 1, a row for each thing compared."""
        import pandas as pd

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
    """
    before, after, _ = paired(original, masked, columns)
    size = before.shape[1]
    means = before.mean(axis=0), after.mean(axis=0)
    laws = [(x - m).T @ (x - m) / len(x) for x, m in zip((before, after), means, strict=True)]
    for x, law in zip((before, after), laws, strict=True):
        constant = np.ptp(x, axis=0) == 0
        law[constant], law[:, constant] = 0.0, 0.0
    spread = np.sqrt(np.maximum(laws[0].diagonal(), laws[1].diagonal()))
    pairs = np.triu_indices(size, 1)
    r = [_correlation(law) for law in laws]
    shares, rf, f = _components(*r)
    weights = np.broadcast_to(shares, f[0].shape)
    one = np.ones(size)
    compared: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]] = {
        "X": (before, after, np.zeros_like(before), None),
        "mean": (means[0], means[1], np.abs(before).max(axis=0), None),
        "V": (laws[0][pairs], laws[1][pairs], np.outer(spread, spread)[pairs], None),
        "S": (laws[0].diagonal(), laws[1].diagonal(), spread**2, None),
        "R": (r[0][pairs], r[1][pairs], np.ones(len(pairs[0])), None),
        "RF": (rf[0], rf[1], np.ones_like(f[0]), weights),
        "C": (rf[0][:, 0] ** 2, rf[1][:, 0] ** 2, one, None),
        "F": (f[0], f[1], np.ones_like(f[0]), weights),
    }
    return InformationLoss(
        {name: _errors(*given) for name, given in compared.items() if given[0].size},
        float(_variation(np.sqrt(2 * laws[0].diagonal()), np.abs(before - after)).mean()),
    )


def _errors(
    before: np.ndarray, after: np.ndarray, scale: np.ndarray, weights: np.ndarray | None
) -> dict[str, float]:
    """Return the three kinds of error; what is smaller than rounding in ``scale`` is 0."""
    dust = DUST * scale
    before = np.where(np.abs(before) <= dust, 0.0, before)
    error = np.abs(before - after)
    error[error <= dust] = 0.0
    w = np.ones_like(error) if weights is None else weights
    return {
        "mean square error": float((w * error**2).mean()),
        "mean absolute error": float((w * error).mean()),
        "mean variation": float((w * _variation(np.abs(before), error)).mean()),
    }


def _variation(of: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return errors as shares of numbers ≥ 0; of 0, any error is the whole."""
    whole = np.broadcast_to(of, error.shape)
    return np.divide(error, whole, out=(error > 0).astype(float), where=whole > 0)


def _correlation(law: np.ndarray) -> np.ndarray:
    spread = np.sqrt(law.diagonal())
    scale = np.outer(spread, spread)
    found = np.divide(law, scale, out=np.eye(len(law)), where=scale > 0)
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1.0, 1.0)


def _components(
    before: np.ndarray, after: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Return the components' shares of the original variance, RF and F of both tables."""
    found = []
    for r in (before, after):
        values, vectors = np.linalg.eigh(r)
        found.append((np.maximum(values[::-1], 0.0), vectors[:, ::-1]))
    (values, first), (others, second) = found
    signs = np.where((first * second).sum(axis=0) < 0, -1.0, 1.0)
    f = [first, second * signs]
    rf = [f[0] * np.sqrt(values), f[1] * np.sqrt(others)]
    return values / values.sum(), rf, f


# ---- probabilistic measures --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ProbabilisticLoss:
    """Probabilistic information loss (PIL): each measure a probability, 0 if nothing is lost.

    Attributes
    ----------
    columns : list of str
    quantiles : ndarray, shape (19, p)
        Of the quantiles at 5 %, …, 95 %.
    means, variances : ndarray, shape (p,)
    covariances, correlations : ndarray, shape (p, p)
        Symmetric, the diagonal NaN: a pair has two attributes.
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
        found = {"Q": self.quantiles, "mean": self.means, "var": self.variances}
        if len(self.columns) > 1:
            pairs = np.triu_indices(len(self.columns), 1)
            found |= {"cov": self.covariances[pairs], "r": self.correlations[pairs]}
        return {f"PIL({name})": float(values.mean()) for name, values in found.items()}

    @property
    def total(self) -> float:
        """PIL, 100 times the mean of the parts."""
        return 100 * float(np.mean(list(self.parts.values())))

    def to_frame(self) -> pd.DataFrame:
        """Return the measures by attribute; those of pairs are averaged over the other ones."""
        import pandas as pd

        found = {"Q": self.quantiles.mean(axis=0), "mean": self.means, "var": self.variances}
        if len(self.columns) > 1:
            found |= {
                "cov": np.nanmean(self.covariances, axis=0),
                "r": np.nanmean(self.correlations, axis=0),
            }
        names = {name: f"PIL({name})" for name in found}
        return pd.DataFrame(found, index=pd.Index(self.columns)).rename(columns=names)


def probabilistic_loss(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    density: str = "interval",
) -> ProbabilisticLoss:
    """Measure the probabilistic information loss of Mateo-Sanz et al. 2005.

    The original is a population, the masked table a sample of n̂ records.  A statistic θ̂ of the
    latter has normal law about θ under simple random sampling, and

        pil(θ̂) = 2 P(0 ≤ Z ≤ |θ̂ − θ| / √Var θ̂)                                      (1)

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
    """
    if density not in ("interval", "kernel"):
        remedy = 'use "interval" or "kernel"'
        raise InputError("density", f"{density!r} is unknown", remedy, value=density)
    before, after, names = paired(original, masked, columns, records=False)
    size = len(after)
    shift, spread = before.mean(axis=0), deviations(before)
    unit = np.where(spread > 0, spread, np.maximum(np.abs(shift), 1.0))
    dust = DUST * (1 + np.abs(shift) / unit)
    a, b = (before - shift) / unit, (after - shift) / unit
    a[:, spread == 0] = 0.0  # mean 0 and variance 1, or 0
    c = b - b.mean(axis=0)
    c[:, np.ptp(after, axis=0) == 0] = 0.0

    def moment(i: int, j: int) -> np.ndarray:
        """Return μ_ij of all pairs of original attributes."""
        return np.asarray((a**i).T @ a**j / len(a))

    m11, m22, m13 = moment(1, 1), moment(2, 2), moment(1, 3)
    m2, m4 = m11.diagonal(), m22.diagonal()
    law = c.T @ c / size
    rho, r = _correlation(m11), _correlation(law)
    own = np.maximum(np.outer(m2, m2), np.finfo(float).tiny)
    fourth = np.divide(m4, m2**2, out=np.zeros_like(m4), where=m2 > 0)
    kappa = np.divide(m13, m2, out=np.zeros_like(m13), where=m2 > 0)  # μ_13 / μ_02
    of_r = m22 / own + rho**2 / 4 * (fourth[:, None] + fourth + 2 * m22 / own)
    of_r -= rho / np.sqrt(own) * (kappa + kappa.T)
    q = np.arange(1, PARTS)[:, None] / PARTS
    at = _quantiles(a)
    height = _density(a, at, density)
    with np.errstate(divide="ignore"):
        of_q = q * (1 - q) / (size * height**2)
    pairs = dust[:, None] + dust
    covariances = _pil(law - m11, (m22 - m11**2) / size, pairs)
    correlations = _pil(r - rho, of_r / size, pairs)
    for found in (covariances, correlations):
        np.fill_diagonal(found, np.nan)
    return ProbabilisticLoss(
        names,
        _pil(_quantiles(b) - at, of_q, dust),
        _pil(b.mean(axis=0), m2 / size, dust),
        _pil(law.diagonal() - m2, (m4 - m2**2) / size, dust),
        covariances,
        correlations,
    )


def _pil(off: np.ndarray, variance: np.ndarray, dust: np.ndarray) -> np.ndarray:
    """Return expression (1) of deviations θ̂ − θ; those of rounding are none."""
    from scipy.special import erf

    off, variance = np.abs(off), np.maximum(variance, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = erf(off / np.sqrt(2 * variance))
    return np.asarray(np.where(off <= dust, 0.0, found))


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

    found = np.full(at.shape, np.inf)
    for j, (column, places) in enumerate(zip(data.T, at.T, strict=True)):
        half = np.ptp(column) / 1000
        if half == 0:
            continue
        if kind == "kernel":
            found[:, j] = gaussian_kde(column)(places)
        else:
            ranked = np.sort(column)
            inside = np.searchsorted(ranked, places + half, side="left")
            inside -= np.searchsorted(ranked, places - half, side="right")
            found[:, j] = inside / (len(column) * 2 * half)
    return found


# ---- categorical attributes --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CategoricalLoss:
    """Losses of categorical attributes, each in [0, 1].

    Attributes
    ----------
    columns : list of str
    changed : ndarray, shape (p,)
        Share of records whose letter is another one.
    uncertainty : ndarray, shape (p,)
        H(X | X̂) / H(X), what the released letter leaves open of the original one.
    marginals : ndarray, shape (p,)
        Total variation distance of the counts.
    tables : ndarray, shape (p, p)
        Of the two-way tables; symmetric, the diagonal NaN.
    ranks : dict of str to float
        Of ordered attributes, the mean difference in rank, as a share of the greatest.
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
        found = {
            "changed": self.changed, "uncertainty": self.uncertainty, "marginals": self.marginals
        }  # fmt: skip
        if len(self.columns) > 1:
            found["tables"] = self.tables[np.triu_indices(len(self.columns), 1)]
        if self.ranks:
            found["ranks"] = np.array(list(self.ranks.values()))
        return {name: float(values.mean()) for name, values in found.items()}

    @property
    def total(self) -> float:
        """100 times the mean of the parts."""
        return 100 * float(np.mean(list(self.parts.values())))


def categorical_loss(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    orders: Mapping[Hashable, Sequence[Hashable]] | None = None,
) -> CategoricalLoss:
    """Measure what categorical attributes have lost: bounded by themselves (Remark 3.1).

    Parameters
    ----------
    original, masked : frame
        Letters of any kind, a missing one among them; record i the same in both.
    columns : sequence of str, optional
        By default all of the original.
    orders : mapping of column to sequence, optional
        The letters of ordered attributes, in order.

    Returns
    -------
    CategoricalLoss
    """
    for argument, table in (("original", original), ("masked", masked)):
        if not framed(table, argument):
            raise InputError(argument, f"a {type(table).__name__}", "pass a frame with columns")
    before, after = narwhal(original), narwhal(masked)
    names = list(before.columns) if columns is None else list(map(str, columns))
    for argument, frame in (("original", before), ("masked", after)):
        for name in names:
            present(name, frame.columns, argument)
    pairs = [(plain(before[name]), plain(after[name])) for name in names]
    size = len(pairs[0][0]) if pairs else 0
    if not size:
        raise InputError("original", "no records or no columns", "pass at least one")
    if len(pairs[0][1]) != size:
        problem = f"{len(pairs[0][1]):,} records beside {size:,} of the original"
        raise InputError("masked", problem, "pass the same records, in the same order")
    coded = [_coded(*pair) for pair in pairs]
    ranks = {}
    for column, order in (orders or {}).items():
        if column not in names:
            remedy = f"use one of {', '.join(names)}"
            raise InputError("orders", f"no column {column!r}", remedy, value=column)
        pair = pairs[names.index(str(column))]
        place = {letter: i for i, letter in enumerate(order)}
        for letter in {*pair[0], *pair[1]}:
            if letter not in place:
                problem, remedy = f"{letter!r} is not among them", "name every letter"
                raise InputError("orders", problem, remedy, where=column, value=letter)
        first, second = (np.array([place[letter] for letter in letters]) for letters in pair)
        ranks[str(column)] = float(np.abs(first - second).mean() / max(len(order) - 1, 1))
    tables = np.full((len(names), len(names)), np.nan)
    for i, (a, b) in enumerate(coded):
        for j, (c, d) in enumerate(coded[:i]):
            width = max(c.max(), d.max()) + 1
            tables[i, j] = tables[j, i] = _variation_distance(a * width + c, b * width + d)
    return CategoricalLoss(
        names,
        np.array([float((a != b).mean()) for a, b in coded]),
        np.array([_uncertainty(a, b) for a, b in coded]),
        np.array([_variation_distance(a, b) for a, b in coded]),
        tables,
        ranks,
    )


def _coded(before: list[Any], after: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return two columns of letters as numbers."""
    place: dict[Any, int] = {}
    first, second = ([place.setdefault(v, len(place)) for v in c] for c in (before, after))
    return np.array(first), np.array(second)


def _variation_distance(before: np.ndarray, after: np.ndarray) -> float:
    letters, both = np.unique(np.concatenate([before, after]), return_inverse=True)
    first = np.bincount(both[: len(before)], minlength=len(letters))
    second = np.bincount(both[len(before) :], minlength=len(letters))
    return float(np.abs(first - second).sum() / (2 * len(before)))


def _uncertainty(before: np.ndarray, after: np.ndarray) -> float:
    """H(X | X̂) / H(X), 0 where X is constant."""
    _, x = np.unique(before, return_inverse=True)
    released, y = np.unique(after, return_inverse=True)
    own = entropy(np.bincount(x))
    if own == 0:
        return 0.0
    _, joint = np.unique(x * len(released) + y, return_counts=True)
    return min(1.0, max(0.0, (entropy(joint) - entropy(np.bincount(y))) / own))
