"""How likely each record is re-identified: 1/f in the table, and an estimate for the population.

An intruder who knows the key finds the f records of a class, and one of F persons of the
population is meant: guessing right has probability 1/F.  F is unknown where the table is a sample.
R. Benedetti and L. Franconi (Statistical and technological solutions for controlled data
dissemination, Pre-proceedings of New Techniques and Technologies for Statistics, 1998) take F given
f to be negative binomial, P(F = h) = C(h − 1, f − 1) pᶠ (1 − p)ʰ⁻ᶠ for h ≥ f; they estimate p by
f/F̂, with F̂ the sum of the survey weights in the class.  With q = 1 − p, and s = pt/(1 − qt) in
E 1/F = ∫₀¹ E tᶠ⁻¹ dt,

    r = E[1/F | f] = p ∫₀¹ sᶠ⁻¹/(p + qs) ds = (p/f) ₂F₁(1, 1; f + 1; q);
    f = 1: (p/q) log(1/p);    f = 2: (p/q²)(q + p log p);    f = 3: (p/2q³)(q(3q − 2) − 2p² log p),

which is what μ-Argus computes, and sdcMicro nearly for f > 2.  It is an estimate under a model, and
no bound: of a class that is rare by chance it may be too low, or too high.

Where missing values are wildcards, f and F̂ are of the records that are compatible with the class.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.tables.counting import count_records
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.labels import written
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import MOST_CELLS
from cvxprivacy.validation import array, integer, number
from cvxprivacy_sdc.risk.wildcards import MATCHED, convention, matched

__all__ = ["ESTIMATE", "IndividualRisk", "individual_risk", "re_identification"]

ESTIMATE = "an estimate under a model, no bound (Benedetti and Franconi 1998)"
_STEPS = 30  # from this f on, and for small q, the series is short
_TERMS = 64


def re_identification(
    records: npt.ArrayLike, population: npt.ArrayLike | None = None
) -> npt.NDArray[np.float64]:
    """Return the risk of each class: 1/f, or E[1/F | f] under Benedetti and Franconi's model.

    Parameters
    ----------
    records : array_like of whole numbers ≥ 1, shape (classes,)
        f.
    population : array_like, shape (classes,), optional
        F̂, the sums of the survey weights; one below f stands for f, whose risk is 1/f.

    Examples
    --------
    >>> re_identification([1, 2, 2], [8, 110, 2]).round(3).tolist()
    [0.297, 0.017, 0.5]
    """
    remedy = "pass a whole number of records for each class"
    f = array(records, "records", remedy, axes=(1,))
    if (f % 1 != 0).any() or (f < 1).any():
        raise InputError("records", "not whole numbers of at least 1", remedy)
    if population is None:
        return 1.0 / f
    sizes = array(population, "population", "pass a sum of weights for each class", axes=(1,))
    if sizes.shape != f.shape:
        raise InputError("population", f"{len(sizes)} classes beside {len(f)}", remedy)
    excess = np.maximum(sizes - f, 0.0) / f  # q/p
    p, q = 1 / (1 + excess), excess / (1 + excess)
    term, total = np.ones(len(f)), np.ones(len(f))
    for k in range(_TERMS):  # of ₂F₁(1, 1; f + 1; q); all are positive
        term = term * q * (k + 1) / (f + 1 + k)
        total = total + term
    risk = total * p / f
    few = np.flatnonzero((excess >= 1) & (f < _STEPS))
    ratio = excess[few]
    upwards = np.log1p(ratio) / ratio  # ∫ sᶠ⁻¹/(1 + sq/p) ds of f = 1, then of the next f
    for k in range(1, _STEPS):
        risk[few] = np.where(f[few] == k, upwards, risk[few])
        upwards = (1 / k - upwards) / ratio
    return risk


@dataclass(frozen=True, eq=False)
class IndividualRisk(FrozenFields):
    """How likely the records of a table are re-identified by a key; an estimate under a model.

    :func:`individual_risk` returns it.

    Attributes
    ----------
    letters : list
        Classes: the values of the key that occur.
    records : ndarray of int, shape (classes,)
        How many records are of each.
    population : ndarray, shape (classes,), or None
        F̂, the persons that the f records stand for; None without survey weights.
    sample : ndarray, shape (classes,)
        1/f, the risk of one who knows that the person is in the table.
    risk : ndarray, shape (classes,)
        The estimate for the population; that of the sample without weights.
    threshold : float
        Above which records are counted.
    schema : TableSchema
        The key columns, weights and bins.
    frame : frame
        The table as it came.
    matches : ndarray of int, shape (classes,)
        f: the records of each class, or, where missing values are wildcards, those that are
        compatible with it.
    persons : float or None
        Sum of the survey weights.

    Examples
    --------
    Two records of one class stand for 110 persons, and a unique one for 8.  In the table the
    unique one is known for certain; in the population it has (p/q) log(1/p), p = 1/8:

    >>> import numpy as np, pandas as pd
    >>> people = pd.DataFrame({"age": [30, 30, 40], "w": [60, 50, 8]})
    >>> risks = individual_risk(people, "age", "w")
    >>> risks.sample.tolist(), risks.risk.round(4).tolist()
    ([0.5, 1.0], [0.0171, 0.2971])
    >>> round(float(np.log(8) / 7), 4)
    0.2971
    >>> risks.worst(1), risks.above, round(risks.expected, 3)
    ([40], 1, 0.331)
    """

    letters: list[Any]
    records: npt.NDArray[np.int64]
    population: npt.NDArray[np.float64] | None
    sample: npt.NDArray[np.float64]
    risk: npt.NDArray[np.float64]
    threshold: float
    schema: TableSchema
    frame: Any
    matches: npt.NDArray[np.int64]
    persons: float | None

    @property
    def expected(self) -> float:
        """Expected number of records re-identified, were all of them looked up."""
        return float(self.records @ self.risk)

    @property
    def rate(self) -> float:
        """The same as a share of the records: the risk of an average record."""
        return self.expected / int(self.records.sum())

    @property
    def above(self) -> int:
        """How many records have a risk above the threshold."""
        return int(self.records[self.risk > self.threshold].sum())

    @property
    def greatest(self) -> float:
        """The greatest risk of a record."""
        return float(self.risk.max())

    def worst(self, classes: int = 10) -> list[Any]:
        """Return the classes of the greatest risk; among equals, those of the most records.

        Parameters
        ----------
        classes : int
            How many.
        """
        many = integer(classes, "classes", least=1)
        return [self.letters[i] for i in np.lexsort((-self.records, -self.risk))[:many]]

    def per_record(self, *, sample: bool = False) -> npt.NDArray[np.float64]:
        """Return the risk of each record of a table in memory, in its order.

        NaN where a record was left out for missing values.

        Parameters
        ----------
        sample : bool
            1/f instead.
        """
        table = as_narwhals(self.frame)
        if isinstance(table, nw.LazyFrame):
            raise InputError("frame", "a lazy table", "collect it to have its records in order")
        values = np.append(self.sample if sample else self.risk, math.nan)
        place = {letter: i for i, letter in enumerate(self.letters)}
        return values[[place.get(x, -1) for x in self.schema.letters(table, self.schema.key)]]

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        sizes = [None] * len(self.letters) if self.population is None else self.population.tolist()
        rows = zip(
            self.letters, self.records.tolist(), self.matches.tolist(), sizes,
            self.sample.tolist(), self.risk.tolist(), strict=True,
        )  # fmt: skip
        return {
            "key": list(self.schema.key), "weights": self.schema.weights,
            "model": None if self.population is None else ESTIMATE,
            "expected": self.expected, "rate": self.rate, "greatest": self.greatest,
            "threshold": self.threshold, "above": self.above,
            "classes": [
                {
                    "letter": written(x, lenient=True), "records": records, "matches": f,
                    "population": size, "sample_risk": sample, "risk": r,
                }
                for x, records, f, size, sample, r in rows
            ],
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"IndividualRisk({int(self.records.sum()):,} records, {len(self.letters):,} classes)"

    def __str__(self) -> str:
        size, unique = int(self.records.sum()), int((self.matches == 1).sum())
        shares = [f"{100 * share:.3g}%" for share in (self.rate, self.above / size)]
        model = ESTIMATE
        if self.population is None:
            model = "1/f: the population's where the table is all of it, and too high for a sample"
        lines = [
            f"individual risk by {', '.join(self.schema.key)}: {model}",
            f"  records          {size:,} in {len(self.letters):,} classes, {unique:,} unique",
        ]
        if self.persons is not None:
            stand = f"{self.persons:,.0f} persons (Σ {self.schema.weights})"
            lines.append(f"  population       {stand}")
        if (self.matches != self.records).any():
            lines.append(f"  wildcards        {MATCHED}")
        return "\n".join([
            *lines,
            f"  re-identified    {self.expected:.4g} records expected, {shares[0]} of them",
            f"  greatest risk    {self.greatest:.4g}",
            f"  above {self.threshold:<10g} {self.above:,} records, {shares[1]}",
        ])  # fmt: skip


def individual_risk(
    frame: Any,
    key: Hashable | Sequence[Hashable],
    weights: Hashable | None = None,
    *,
    bins: Mapping[Hashable, float | Sequence[float]] | None = None,
    missing: str = "refuse",
    threshold: float = 0.1,
) -> IndividualRisk:
    """Estimate how likely each record is re-identified by one who knows the key.

    Parameters
    ----------
    frame : frame of any kind
        The table, as :meth:`cvxprivacy.DiscreteSource.from_table` takes it.
    key : column name, or several
        What an intruder knows of everybody.
    weights : column name, optional
        Survey weights, of which the sum over a class estimates its persons in the population.
        Without them the risk is 1/f.
    bins : mapping of column to width or edges, optional
        Numbers cut into intervals, as in ``from_table``.
    missing : {"refuse", "level", "drop", "wildcard"}
        A missing value is an error, is a letter, leaves its record uncounted, or matches every
        value: a record's class is then all records that agree with it where neither misses one.
    threshold : float
        In [0, 1): records above it are counted.

    Returns
    -------
    IndividualRisk
        The risk of each class of the key, and of each record.

    Raises
    ------
    InputError
        As ``from_table``.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [30, 30, 40], "sex": list("ffm"), "w": [60, 50, 8]})
    >>> risks = individual_risk(people, ["age", "sex"], "w")
    >>> risks.per_record().round(3).tolist(), round(risks.expected, 3)
    ([0.017, 0.017, 0.297], 0.331)
    """
    threshold = number(threshold, "threshold", below=1.0)
    counted, wild = convention(missing)
    schema = TableSchema.of(
        frame, sensitive=None, key=key, side=None, weights=weights, bins=bins, missing=counted
    )
    counts = count_records(replace(schema, weights=None), frame, most=MOST_CELLS)
    letters = counts.ordered(schema.key, 0)
    place = {letter: i for i, letter in enumerate(letters)}
    rows = [place[letter] for (letter,) in counts.cells]
    records, population, persons = np.zeros(len(letters)), None, None
    records[rows] = counts.masses
    if weights is not None:
        population = np.zeros(len(letters))
        weighted = count_records(schema, frame, most=MOST_CELLS)
        population[[place[letter] for (letter,) in weighted.cells]] = weighted.masses
        persons = float(population.sum())
    f = records
    if wild:
        f = matched(letters, len(schema.key), records)
        if population is not None:
            population = matched(letters, len(schema.key), population)
    return IndividualRisk(
        letters, records.astype(np.int64), population, 1 / f, re_identification(f, population),
        threshold, schema, frame, f.astype(np.int64), persons,
    )  # fmt: skip
