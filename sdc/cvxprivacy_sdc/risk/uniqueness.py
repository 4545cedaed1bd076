"""How many persons of a population a key tells apart, estimated from a sample of them.

A record that is unique in a sample need not be unique in the population.  Of the sizes of the
classes of n records, drawn at random from N = n/π persons, c_i classes of i records and u in all,

* L. Zayatz (Estimation of the percent of unique population elements on a microdata file using the
  sample, Statistical Research Division Report 91/08, US Bureau of the Census, 1991) takes the sizes
  of the population's classes to be distributed as those of the sample.  With h(i) the
  hypergeometric probability that one of i persons of a class is drawn, the share of the sample's
  uniques that are the population's is c₁ h(1)/Σ c_i h(i); all of these are c₁/π times it.
* N. Hoshino (Applying Pitman's sampling formula to microdata disclosure risk assessment, Journal of
  Official Statistics 17, 2001) takes the partition into classes to be Pitman's with parameters
  0 ≤ α < 1 and θ > −α, which are fitted by maximum likelihood.  The expected number of uniques is
  Γ(θ + 1)/Γ(θ + α) N^α, the leading term for N that is large beside θ.
* G. Chen and S. Keller-McNulty (Estimation of identification disclosure risk in microdata, Journal
  of Official Statistics 14, 1998) take the sizes of the population's K classes, less 1, to be
  negative binomial (a slide of it), P(F = 1) = β^a, and records to be drawn independently, so that
  with d = (1 − π)(1 − β)

      E c₁ = Kπ (β/(1 − d))^a (1 + a d/(1 − d)),
      E c₂ = ½ Kπ² a (1 − β) β^a (1 − d)^{−a−2} (2 − (1 − a)d),

  which are solved for a and β.  K is Shlosser's estimate in the form Sh₃ of P. J. Haas and
  L. Stokes, Estimating the number of classes in a finite population, JASA 93 (1998).  Kβ^a persons
  are unique.

F. K. Dankar, K. El Emam, A. Neisa and T. Roffey (Estimating the re-identification risk of clinical
data sets, BMC Medical Informatics and Decision Making 12:66, 2012) compared them on samples of
known populations: Pitman's model is best for π ≤ 0.1, beyond it the smaller of the other two.
Where Pitman's likelihood has no maximum, Zayatz' estimate stands in, as in ARX.  (Beyond 0.1 ARX
takes Zayatz' estimate on Adult, where its equations for the slide negative binomial have no
solution; those above have one, which is smaller and nearer to the truth: on samples of a fifth of
Adult's 30,162 complete records, of whom 51.4 % are unique, 54.2 % against Zayatz' 60.2 %.)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.tables.counting import count_records
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS
from cvxprivacy.validation import ABOVE_ONE, typed

__all__ = ["PopulationUniqueness", "population_uniqueness"]

ASSUMED = {
    "zayatz": "classes of the population are as large as those of the sample",
    "pitman": "the partition into classes is Pitman's, fitted by likelihood",
    "snb": "sizes of classes less 1 are negative binomial, fitted by moments",
}
FEW = 0.1  # sampling fraction up to which Dankar et al. use Pitman's model
MOST_PERSONS = 1e15  # that floats count one by one
_SOLVED = 1e-7
_STARTS = [(a, b) for a in (-3.0, -1.0, 1.0, 3.0) for b in (-6.0, -3.0, -1.0, 1.0)]

Counts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PopulationUniqueness:
    """Estimates of the share of a population that is unique by a key, under models.

    :func:`population_uniqueness` returns it.

    Attributes
    ----------
    records, classes, unique : int
        Of the sample; ``unique`` are the classes of one record.
    fraction : float
        Share of the population that is in the sample.
    zayatz, pitman, snb : float
        Estimated unique persons as a share of the population; NaN where a model does not fit.  Of
        a whole population (``fraction=1``) they are counted.
    model : {"pitman", "zayatz", "snb"}
        Which of them Dankar's rule takes.

    Examples
    --------
    >>> sizes = np.repeat([1, 2, 3, 4], [40, 20, 10, 5])
    >>> estimate = PopulationUniqueness.of_sizes(sizes, 0.05)
    >>> round(estimate.sample, 3), estimate.model, round(estimate.dankar, 3)
    (0.308, 'pitman', 0.028)
    """

    records: int
    classes: int
    unique: int
    fraction: float
    zayatz: float
    pitman: float
    snb: float
    model: str

    @classmethod
    def of_sizes(cls, sizes: npt.ArrayLike, fraction: float) -> PopulationUniqueness:
        """Estimate it from the sizes of the classes of a sample.

        Parameters
        ----------
        sizes : array_like of int, shape (classes,)
            Records of each class, at least 1.
        fraction : float
            In (0, 1].

        Raises
        ------
        InputError
            For sizes that are no such numbers, and other fractions.
        """
        each = np.asarray(sizes)
        if each.ndim != 1 or not each.size or each.dtype.kind not in "iu" or (each < 1).any():
            raise InputError("sizes", "not whole numbers of at least 1", "pass records of classes")
        remedy = "pass a share of the population, above 0 and at most 1"
        share = float(typed(fraction, "fraction", zero=False, below=ABOVE_ONE, remedy=remedy))
        if int(each.sum()) > MOST_PERSONS * share:
            problem = f"{share!r}: the population would be of more than {MOST_PERSONS:.0e} persons"
            raise InputError("fraction", problem, remedy, value=fraction)
        size, count = (of.astype(float) for of in np.unique(each, return_counts=True))
        unique = int(count[0]) if size[0] == 1 else 0
        zayatz = pitman = snb = unique / int(each.sum())  # no model where all persons are there
        if unique and share < 1:
            zayatz = _zayatz(size, count, share)
            pitman = _pitman(size, count, share)
            snb = _slide_negative_binomial(size, count, share)
        model = "zayatz" if math.isnan(pitman) else "pitman"
        if share > FEW:
            model = "snb" if snb < zayatz else "zayatz"
        records = int(each.sum())
        return cls(records, len(each), unique, share, zayatz, pitman, snb, model)

    @property
    def population(self) -> float:
        """N, records over fraction."""
        return self.records / self.fraction

    @property
    def sample(self) -> float:
        """Share of the records that are unique in the sample."""
        return self.unique / self.records

    @property
    def dankar(self) -> float:
        """The estimate that Dankar's rule takes."""
        return float(getattr(self, self.model))

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it: an estimate that there is none of is None."""
        facts = {**asdict(self), "population": self.population, "sample": self.sample}
        facts |= {"dankar": self.dankar, "assumed": dict(ASSUMED)}
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in facts.items()}

    def __str__(self) -> str:
        lines = [
            f"unique persons of a population of {self.population:,.0f}, estimates under models",
            f"  records    {self.records:,} in {self.classes:,} classes, {self.unique:,} of one "
            f"record: {self.sample:.4g} of the sample",
        ]
        for name, assumed in ASSUMED.items():
            value = getattr(self, name)
            share = "does not fit" if math.isnan(value) else f"{value:.4g}"
            lines.append(f"  {name:<9}  {share}: if {assumed}")
        rule = f"by the rule of Dankar et al. for a sample of {self.fraction:.4g}"
        return "\n".join([*lines, f"  taken      {self.dankar:.4g}, {self.model}, {rule}"])


def population_uniqueness(
    frame: Any,
    key: Hashable | Sequence[Hashable],
    *,
    fraction: float,
    bins: Mapping[Hashable, float | Sequence[float]] | None = None,
    missing: str = "refuse",
) -> PopulationUniqueness:
    """Estimate which share of the population is unique by a key, from a sample of it.

    Three models are fitted to the sizes of the sample's classes, which each assume something of
    the population that no sample tells, and Dankar's rule takes one of them.

    Parameters
    ----------
    frame : frame of any kind
        A simple random sample, as :meth:`cvxprivacy.DiscreteSource.from_table` takes it.
    key : column name, or several
        What an intruder knows of everybody.
    fraction : float
        Share of the population that is in the sample, in (0, 1].
    bins : mapping of column to width or edges, optional
        Numbers cut into intervals, as in ``from_table``.
    missing : {"refuse", "level", "drop"}
        A missing value is an error, is a letter, or leaves its record uncounted.

    Returns
    -------
    PopulationUniqueness
        The estimates, and which one the rule takes.

    Raises
    ------
    InputError
        As ``from_table``.

    Examples
    --------
    Every second person was asked:

    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 20, 20, 30, 30, 40, 50, 60]})
    >>> estimate = population_uniqueness(people, "age", fraction=0.5)
    >>> estimate.sample, round(estimate.zayatz, 3), estimate.model
    (0.375, 0.231, 'snb')
    """
    schema = TableSchema.of(
        frame, sensitive=None, key=key, side=None, weights=None, bins=bins, missing=missing
    )
    counts = count_records(schema, frame, most=MOST_CELLS)
    return PopulationUniqueness.of_sizes(counts.masses.astype(np.int64), fraction)


# ---- the models: size i of a class, and c_i, in increasing sizes -------------------------


def _zayatz(size: Counts, count: Counts, share: float) -> float:
    from scipy.stats import hypergeom

    records = int(size @ count)
    one = np.asarray(hypergeom.pmf(1, round(records / share), size.astype(int), records))
    both = count[0] * one[0] / (count @ one)
    return float(count[0] * both / records)


def _pitman(size: Counts, count: Counts, share: float) -> float:
    """Maximise the likelihood of θ + α = exp x and α = 1/(1 + exp −y)."""
    from scipy.optimize import minimize
    from scipy.special import digamma, expit, gammaln

    classes, records = int(count.sum()), int(size @ count)
    rank = np.arange(1.0, classes)

    def parameters(at: Counts) -> tuple[float, float]:
        alpha = float(expit(at[1]))
        return float(np.exp(at[0])) - alpha, alpha

    def negative(at: Counts) -> tuple[float, Counts]:
        theta, alpha = parameters(at)
        steps = theta + rank * alpha
        value = np.log(steps).sum() - gammaln(theta + records) + gammaln(theta + 1)
        value += count @ (gammaln(size - alpha) - gammaln(1 - alpha))
        of_theta = (1 / steps).sum() - digamma(theta + records) + digamma(theta + 1)
        of_alpha = (rank / steps).sum() - count @ (digamma(size - alpha) - digamma(1 - alpha))
        turned = (of_alpha - of_theta) * alpha * (1 - alpha)
        gradient = np.array([of_theta * (theta + alpha), turned])
        return -float(value) / records, -gradient / records

    if classes == records or classes == 1:  # the likelihood increases for ever
        return math.nan
    bounds = [(-20.0, math.log(records) + 10), (-12.0, 12.0)]
    start = np.array([math.log(classes), 0.0])
    fit = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds,
                   options={"ftol": 0.0, "gtol": 1e-12, "maxiter": 1_000})  # fmt: skip
    theta, alpha = parameters(fit.x)
    inside = bounds[0][0] < fit.x[0] < bounds[0][1] and fit.x[1] < bounds[1][1]  # α may be 0
    log = gammaln(theta + 1) - gammaln(theta + alpha) + (alpha - 1) * math.log(records / share)
    unique = math.exp(log)
    return unique if inside and unique <= 1 else math.nan


def _slide_negative_binomial(size: Counts, count: Counts, share: float) -> float:
    from scipy.optimize import root
    from scipy.special import expit

    if len(size) == 1 or size[1] != 2:
        return math.nan  # no class of two
    classes, left = _shlosser(size, count, share), 1 - share

    def logs(at: Counts) -> Counts:
        """Return log E c₁/c₁ and log E c₂/c₂ of a = exp x and β = 1/(1 + exp −y)."""
        a, beta = np.exp(at[0]), expit(at[1])
        d = left * expit(-at[1])
        both = np.log(classes) + a * np.log(beta) + np.log(share)
        first = both - a * np.log1p(-d) + np.log1p(a * d / (1 - d))
        second = both + np.log(share * a * expit(-at[1]) / 2) - (a + 2) * np.log1p(-d)
        second += np.log(2 - (1 - a) * d)
        return np.array([first, second]) - np.log(count[:2])

    for start in _STARTS:
        with np.errstate(all="ignore"):
            fit = root(logs, np.array(start))
        if fit.success and np.abs(fit.fun).max() < _SOLVED:
            unique = classes * float(expit(fit.x[1]) ** np.exp(fit.x[0]))
            return unique * share / float(size @ count)
    return math.nan


def _shlosser(size: Counts, count: Counts, share: float) -> float:
    """Estimate the classes of a population: Sh₃ of Haas and Stokes 1998."""
    left = 1 - share
    unseen = count @ left**size
    first = count @ (size * share**2 * (1 - share**2) ** (size - 1))
    second = count @ ((1 - share**2) ** size - left**size)  # (1 + π)^i would overflow
    third = count @ (size * share * left ** (size - 1))
    return float(count.sum() + count[0] * first / second * (unseen / third) ** 2)
