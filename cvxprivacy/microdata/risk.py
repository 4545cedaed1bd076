"""Disclosure risk of a masked table: linkage, intervals, leakage, and the score of both sides.

Linkage, intervals and score: J. Domingo-Ferrer and V. Torra, A quantitative comparison of
disclosure control methods for microdata, in: Confidentiality, Disclosure and Data Access,
North-Holland (2001) 111–134, the explicit approach of Mateo-Sanz et al. 2005, §3.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.microdata.tables import deviations, framed, is_numeric, numbers, paired
from cvxprivacy.model.information import nat
from cvxprivacy.tables.frames import narwhal, plain
from cvxprivacy.validation import array, number, whole

__all__ = [
    "Leakage",
    "distance_linkage",
    "interval_disclosure",
    "leakage",
    "probabilistic_linkage",
    "score",
]

APART = 1e6  # between different letters, in standard deviations of numbers
PERCENTS = tuple(range(1, 11))  # of Domingo-Ferrer and Torra


# ---- linkage -----------------------------------------------------------------------------


def distance_linkage(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    standardise: bool = True,
) -> float:
    """Return the share of masked records whose nearest original record is their own.

    Of several originals at the same distance one is guessed: a record whose own is one of m
    counts 1/m.

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p)
        Finite numbers, record i the same in both.
    columns : sequence of str, optional
        Those the intruder knows, by default all of the original.
    standardise : bool
        Divide each attribute by its standard deviation in the original.
    """
    from scipy.spatial import cKDTree

    before, after, _ = paired(original, masked, columns)
    spread = deviations(before)
    scale = np.where(standardise & (spread > 0), spread, 1.0)
    origin = before[0]  # a constant column is 0, whatever its size
    before, after = (before - origin) / scale, (after - origin) / scale
    tree = cKDTree(before)
    nearest = np.asarray(tree.query(after)[0]) * (1 + 1e-9)
    nearest += 1e-12 * np.abs(before).max(initial=1.0)
    own = np.sqrt(((before - after) ** 2).sum(axis=1)) <= nearest
    if not own.any():
        return 0.0
    ties = np.asarray(tree.query_ball_point(after[own], nearest[own], return_length=True))
    return float((1 / np.maximum(ties, 1)).sum() / len(after))


def probabilistic_linkage(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    steps: Sequence[float] = (0.02, 0.1, 0.3, 1.0),
    iterations: int = 25,
) -> float:
    """Return the share of masked records whose likeliest original record is their own.

    The model of I. P. Fellegi and A. B. Sunter (A theory for record linkage, JASA 64, 1969,
    1183–1210), fitted by expectation–maximisation by the library Splink (extra ``linkage``).
    Attributes agree at the levels of ``steps``; 1 in n pairs is a match.  All n² pairs are
    compared: some thousands of records at most.

    Parameters
    ----------
    original, masked, columns : as in :func:`distance_linkage`
    steps : sequence of float
        Increasing differences, in standard deviations of the original.
    iterations : int
        Of expectation–maximisation at most.

    Raises
    ------
    InputError
        If Splink is not installed.
    """
    try:
        import splink.comparison_level_library as levels
        from splink import DuckDBAPI, Linker, SettingsCreator
        from splink.comparison_library import CustomComparison
    except ImportError:
        remedy = "install it with: pip install 'cvxprivacy[linkage]'"
        raise InputError("probabilistic_linkage", "needs Splink 5", remedy) from None
    import pandas as pd

    before, after, _ = paired(original, masked, columns)
    remedy = "pass increasing numbers > 0"
    bounds = array(steps, "steps", remedy, axes=(1,))
    if not (np.diff(bounds, prepend=0.0) > 0).all():
        raise InputError("steps", f"{list(steps)!r}", remedy)
    spread = deviations(before)
    scale = np.where(spread > 0, spread, 1.0)
    names = [f"a{j}" for j in range(before.shape[1])]
    comparisons = [
        CustomComparison(
            output_column_name=name,
            comparison_levels=[
                levels.NullLevel(name),
                *(levels.AbsoluteDifferenceLevel(name, float(step)) for step in bounds),
                levels.ElseLevel(),
            ],
        )
        for name in names
    ]
    everything = "1=1"
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=comparisons,
        blocking_rules_to_generate_predictions=[everything],
        probability_two_random_records_match=1 / len(before),
        max_iterations=whole(iterations, "iterations", least=1),
        em_convergence=1e-3,
    )
    database = DuckDBAPI()
    tables = [
        database.register(
            pd.DataFrame(data / scale, columns=names).assign(unique_id=range(len(data))),
            dataset_display_name=name,
        )
        for name, data in (("masked", after), ("original", before))
    ]
    linker = Linker(tables, settings, log_level=None)
    linker.training.estimate_u_using_random_sampling(
        max_pairs=len(before) ** 2 + 1,
        min_count_per_level=None,  # all pairs: none is drawn
    )
    linker.training.estimate_parameters_using_expectation_maximisation(
        everything, fix_probability_two_random_records_match=True
    )
    found = linker.inference.predict().as_pandas_dataframe()
    swapped = found["source_dataset_l"].eq("original")
    record = found["unique_id_l"].where(~swapped, found["unique_id_r"])
    best = found["match_weight"].groupby(record).transform("max")
    first = found["match_weight"] >= best - 1e-9
    ties = record[first].value_counts()
    own = record[first & found["unique_id_l"].eq(found["unique_id_r"])]
    return float((1 / ties.loc[own]).sum() / len(after))


# ---- intervals and score -----------------------------------------------------------------


def interval_disclosure(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    percents: Sequence[float] = PERCENTS,
    by: str = "rank",
) -> float:
    """Return the share of original values in an interval about their masked value.

    Parameters
    ----------
    original, masked, columns : as in :func:`distance_linkage`
    percents : sequence of float
        Half widths p; the share is averaged over them and over the attributes.
    by : {"rank", "deviation"}
        The interval reaches from the masked value as far as p % of the records rank, in the
        masked table, or p % of a standard deviation of the original.
    """
    before, after, _ = paired(original, masked, columns)
    widths = array(percents, "percents", "pass percentages ≥ 0", axes=(1,)) / 100
    if by not in ("rank", "deviation"):
        raise InputError("by", f"{by!r} is unknown", 'use "rank" or "deviation"', value=by)
    size, shares = len(after), []
    for x, y in zip(before.T, after.T, strict=True):
        ranked = np.sort(y)
        first, last = (np.searchsorted(ranked, y, side=side) for side in ("left", "right"))
        for width in widths:
            if by == "rank":
                reach = int(width * size + 1e-9)
                low = ranked[np.maximum(first - reach, 0)]
                high = ranked[np.minimum(last - 1 + reach, size - 1)]
            else:
                low, high = y - width * x.std(), y + width * x.std()
            shares.append(((low <= x) & (x <= high)).mean())
    return float(np.mean(shares))


def score(
    loss: float, *, linkage: float, interval: float, probabilistic: float | None = None
) -> float:
    """Return the score of Domingo-Ferrer and Torra 2001, the mean of loss and risk in percent.

    ½ loss + ½ · 100 (½ linkage + ½ interval): 0 is best.  With a bounded loss, such as PIL, it
    is at most 100.

    Parameters
    ----------
    loss : float
        In percent: ``InformationLoss.total`` or ``ProbabilisticLoss.total``.
    linkage, interval : float
        :func:`distance_linkage` and :func:`interval_disclosure`.
    probabilistic : float, optional
        :func:`probabilistic_linkage`; linkage is then the mean of both.
    """
    shares = {"linkage": linkage, "interval": interval, "probabilistic": probabilistic}
    for name, share in shares.items():
        if share is not None:
            number(share, name, below=1.0 + 1e-9)
    linked = linkage if probabilistic is None else (linkage + probabilistic) / 2
    return number(loss, "loss") / 2 + 100 * (linked + interval) / 4


# ---- leakage -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Leakage:
    """An estimate of I(W; X̂) from records.

    Attributes
    ----------
    raw : float
        As it is measured.
    bias : float
        Its small-sample bias by the jackknife; 0 by nearest neighbours.  Where it is most of the
        measure, so are its own errors.
    standard_error : float
        Of the mean over the records of what each contributes.
    units : str
    """

    raw: float
    bias: float
    standard_error: float
    units: str

    @property
    def value(self) -> float:
        """The measure less its bias, at least 0."""
        return max(0.0, self.raw - self.bias)


def leakage(
    sensitive: Any,
    released: Any,
    *,
    method: str = "quantised",
    step: float | Sequence[float] | None = 0.15,
    neighbours: int = 3,
    units: str = "bits",
) -> Leakage:
    """Estimate I(W; X̂) from records of the confidential W and the released X̂.

    ``"quantised"`` cuts numbers into intervals of one length, counts, and corrects the plug-in
    information for its bias: what Rebollo-Monedero et al. 2010, §6.2, do in steps of 0.15.  The
    cut itself can only lose information.

    ``"neighbours"`` counts neighbours within the distance of the k-th nearest one in (W, X̂),
    for continuous, discrete and mixed attributes (W. Gao, S. Kannan, S. Oh and P. Viswanath,
    Estimating mutual information for discrete–continuous mixtures, NeurIPS 2017), numbers in
    standard deviations.

    Parameters
    ----------
    sensitive, released : frame, or array_like of shape (n, d) or (n,)
        Columns that are not numbers are letters.
    method : {"quantised", "neighbours"}
    step : float or sequence of float, optional
        Length of the intervals, in the data's own units: one for all columns of numbers, or one
        for each, those of W first.  None takes numbers as letters.
    neighbours : int
        k.
    units : {"bits", "nats"}

    Returns
    -------
    Leakage

    Raises
    ------
    InputError
        If the tables differ in length, or have missing values.
    """
    sides = [_columns(sensitive, "sensitive"), _columns(released, "released")]
    size = len(sides[0][0])
    if len(sides[1][0]) != size:
        problem = f"{len(sides[1][0]):,} records beside {size:,} of sensitive"
        raise InputError("released", problem, "pass the same records, in the same order")
    if method == "neighbours":
        pieces, bias = _by_neighbours(sides, whole(neighbours, "neighbours", least=1)), 0.0
    elif method == "quantised":
        w, x = _cells(sides, step)
        of_w, of_x = np.bincount(w), np.bincount(x)
        _, place, both = np.unique(w * len(of_x) + x, return_inverse=True, return_counts=True)
        pieces = np.log(both[place] / (of_w[w] * of_x[x]) * size)
        bias = _excess(of_w) + _excess(of_x) - _excess(both)
    else:
        remedy = 'use "quantised" or "neighbours"'
        raise InputError("method", f"{method!r} is unknown", remedy, value=method)
    unit = nat(units)
    error = float(pieces.std() / math.sqrt(size) * unit)
    return Leakage(float(pieces.mean()) * unit, bias * unit, error, units)


def _excess(counts: npt.NDArray[np.int64]) -> float:
    """Return the jackknife estimate of the bias of the plug-in entropy of counts, in nats.

    (N − 1)(mean of the entropies without one record − entropy); negative, as entropies are too
    small.  Where cells have few records it tells two to four times as much of the bias as Miller
    and Madow's formula, which is its first term.
    """
    size, own = int(counts.sum()), counts[counts > 0].astype(float)
    if size == 1:
        return 0.0
    terms = own * np.log(own)
    without = np.log(size - 1) - (terms.sum() - terms + _xlogx(own - 1)) / (size - 1)
    entropy = np.log(size) - terms.sum() / size
    return float((size - 1) * ((own * without).sum() / size - entropy))


def _xlogx(values: np.ndarray) -> np.ndarray:
    return values * np.log(np.maximum(values, 1.0))


def _columns(table: Any, argument: str) -> list[np.ndarray]:
    """Return the columns of a table: floats of numbers, whole numbers of letters."""
    if not framed(table, argument):
        items = np.asarray(table)
        if items.dtype.kind in "biuf":
            return list(numbers(items, argument)[0].T)
        items = items[:, None] if items.ndim == 1 else items
        gone = np.array([[v is None or v != v for v in row] for row in items.tolist()], dtype=bool)
        if gone.any():
            where = tuple(int(i) for i in np.argwhere(gone)[0])
            raise InputError(argument, "a missing value", "fill or drop it", where=where)
        return [np.unique(column.astype(str), return_inverse=True)[1] for column in items.T]
    frame = narwhal(table)
    assert isinstance(frame, nw.DataFrame)
    found = []
    for name in frame.columns:
        if is_numeric(frame[name]):
            found.append(numbers(table, argument, [name])[0][:, 0])
        else:
            values, place = plain(frame[name]), dict[Any, int]()
            if None in values:
                row = (values.index(None), name)
                raise InputError(argument, "a missing value", "fill or drop it", where=row)
            codes = [place.setdefault(value, len(place)) for value in values]
            found.append(np.array(codes, dtype=np.int64))
    if not found or not len(found[0]):
        raise InputError(argument, "no records or no columns", "pass at least one")
    return found


def _cells(
    sides: list[list[np.ndarray]], step: float | Sequence[float] | None
) -> list[npt.NDArray[np.int64]]:
    """Return the cell of each record on both sides, 0, 1, …."""
    count = sum(column.dtype.kind == "f" for side in sides for column in side)
    given = [step] * count if step is None or np.ndim(step) == 0 else list(step)  # type: ignore[arg-type]
    if len(given) != count:
        remedy = f"pass one, or {count}, one per column of numbers"
        raise InputError("step", f"{len(given)} lengths", remedy)
    lengths = iter(None if s is None else number(s, "step", zero=False) for s in given)
    found = []
    for side in sides:
        codes: np.ndarray = np.zeros(len(side[0]), dtype=np.int64)
        for column in side:
            length = next(lengths) if column.dtype.kind == "f" else None
            cut = column if length is None else np.floor(column / length)
            _, code = np.unique(cut, return_inverse=True)
            _, codes = np.unique(codes * (int(code.max()) + 1) + code, return_inverse=True)
        found.append(codes)
    return found


def _by_neighbours(sides: list[list[np.ndarray]], k: int) -> np.ndarray:
    """Return what each record contributes to the estimate of Gao et al., in nats."""
    from scipy.spatial import cKDTree
    from scipy.special import digamma

    points = [np.array([_scaled(column) for column in side]).T for side in sides]
    both = np.hstack(points)
    size = len(both)
    if size <= k:
        raise InputError("sensitive", f"{size} records", f"pass more than {k}")
    reach = np.asarray(cKDTree(both).query(both, k + 1, p=np.inf)[0])[:, -1]
    same = reach == 0
    inside = reach * (1 - 1e-10)  # nearer than the k-th
    near = np.full(size, float(k))
    if same.any():
        near[same] = _within(both, inside)[same]
    alone = sum(digamma(_within(side, inside)) for side in points)
    return np.asarray(digamma(near) + math.log(size) - alone)


def _scaled(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind != "f":
        return column * APART
    spread = column.std()
    return np.asarray((column - column.mean()) / spread) if spread > 0 else np.zeros(len(column))


def _within(points: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return how many records, itself among them, lie within each record's reach."""
    if points.shape[1] == 1:
        value = points[:, 0]
        ranked = np.sort(value)
        high = np.searchsorted(ranked, value + reach, side="right")
        return np.asarray(high - np.searchsorted(ranked, value - reach, side="left"))
    from scipy.spatial import cKDTree

    tree = cKDTree(points)
    return np.asarray(tree.query_ball_point(points, reach, p=np.inf, return_length=True))
