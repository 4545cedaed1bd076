"""What an intruder finds in a masked table: records linked, and values within an interval.

Distance linkage is the explicit approach of Mateo-Sanz et al. 2005, §3, after J. Domingo-Ferrer
and V. Torra, A quantitative comparison of disclosure control methods for microdata, in:
Confidentiality, Disclosure and Data Access, North-Holland (2001) 111–134, who have interval
disclosure and the score too.  One to one, all records are linked at once by an assignment, as
J. Herranz, J. Nin, P. Rodríguez and T. Tassa do (Revisiting distance-based record linkage for
privacy-preserving release of statistical datasets, Data & Knowledge Engineering 100, 2015); here it
is of squared distances, the likeliest under Gaussian noise.  Probabilistic linkage is the model of
I. P. Fellegi and A. B. Sunter, A theory for record linkage, JASA 64 (1969) 1183–1210.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import pd, required
from cvxprivacy.tables.arrays import deviations, paired
from cvxprivacy.validation import array, integer, number, one_of

__all__ = ["distance_linkage", "interval_disclosure", "probabilistic_linkage", "score"]

MOST = 5_000  # records that are assigned in several columns: their distances take 200 MB
PERCENTS = tuple(range(1, 11))  # of Domingo-Ferrer and Torra


def distance_linkage(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    standardize: bool = True,
    one_to_one: bool = False,
) -> float:
    """Return the share of masked records whose nearest original record is their own.

    Of several originals at the same distance one is guessed: a record whose own is one of m
    counts 1/m.

    One to one, each original is linked to one masked record, so that the sum of the squared
    distances is least: an intruder who knows that all are there does so.  Records that are equal
    are guessed among themselves, in the mean.

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p)
        Finite numbers, record i the same in both.
    columns : sequence of str, optional
        Those the intruder knows, by default all of the original.
    standardize : bool
        Divide each attribute by its standard deviation in the original.
    one_to_one : bool
        Link all records at once.  In one column they are sorted; in several at most 5,000 are
        assigned, by a matrix of all their distances and in up to a minute.

    Returns
    -------
    float
        In [0, 1]; of records all different 1 if nothing was changed.

    Raises
    ------
    InputError
        For what are no finite numbers, tables that differ in size, or too many records.

    Examples
    --------
    Both records of a group have one mean, which is as near to the one as to the other:

    >>> from cvxprivacy_sdc.masking import MDAV
    >>> table = [[0.0], [1.0], [5.0], [6.0]]
    >>> distance_linkage(table, table), distance_linkage(table, MDAV(k=2).fit_transform(table))
    (1.0, 0.5)

    If each is raised by 0.9, two of four are nearest to the next one; their order tells all:

    >>> moved = [[0.9], [1.9], [5.9], [6.9]]
    >>> distance_linkage(table, moved), distance_linkage(table, moved, one_to_one=True)
    (0.5, 1.0)
    """
    from scipy.spatial import cKDTree

    before, after, _ = paired(original, masked, columns)
    spread = deviations(before)
    scale = np.where(standardize & (spread > 0), spread, 1.0)
    origin = before[0]  # a constant column is 0, whatever its size
    before, after = (before - origin) / scale, (after - origin) / scale
    if one_to_one:
        return _assigned(before, after)
    tree = cKDTree(before)
    nearest = np.asarray(tree.query(after)[0]) * (1 + 1e-9)
    nearest += 1e-12 * np.abs(before).max(initial=1.0)
    linked = np.sqrt(((before - after) ** 2).sum(axis=1)) <= nearest
    if not linked.any():
        return 0.0
    ties = np.asarray(tree.query_ball_point(after[linked], nearest[linked], return_length=True))
    return float((1 / np.maximum(ties, 1)).sum() / len(after))


def _assigned(before: np.ndarray, after: np.ndarray) -> float:
    """Return the share of records that the assignment of least squared distances links rightly."""
    from scipy.optimize import linear_sum_assignment

    size, columns = before.shape
    if columns == 1:
        partner = np.empty(size, dtype=np.int64)
        partner[np.argsort(after[:, 0])] = np.argsort(before[:, 0])
    elif size > MOST:
        problem = f"{size:,} records in {columns} columns are too many to be linked one to one"
        remedy = f"draw {MOST:,} of both, of which more are linked, or name one column"
        raise InputError("masked", problem, remedy, value=size)
    else:  # in no order, so that no record is linked to its own because it has its place
        order = np.random.default_rng(0).permutation(size)
        middle = before.mean(axis=0)
        products = (after - middle) @ (before[order] - middle).T
        partner = order[linear_sum_assignment(products, maximize=True)[1]]
    original, masked = (
        np.unique(table, axis=0, return_inverse=True)[1].ravel() for table in (before, after)
    )
    pair, number_of = masked * size + original, np.bincount(original)[original]
    pairs, links = np.unique(masked * size + original[partner], return_counts=True)
    place = np.searchsorted(pairs, pair).clip(max=len(pairs) - 1)
    right = np.where(pairs[place] == pair, links[place], 0)
    return float((right / (number_of * np.bincount(masked)[masked])).sum() / size)


def probabilistic_linkage(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    steps: Sequence[float] = (0.02, 0.1, 0.3, 1.0),
    iterations: int = 25,
) -> float:
    """Return the share of masked records whose likeliest original record is their own.

    Fitted by expectation–maximisation by the library Splink (extra ``linkage``).  Attributes
    agree at the levels of ``steps``; 1 in n pairs is a match.  All n² pairs are compared: some
    thousands of records at most.

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p)
        Finite numbers, record i the same in both.
    columns : sequence of str, optional
        Those the intruder knows, by default all of the original.
    steps : sequence of float
        Increasing differences, in standard deviations of the original.
    iterations : int
        Of expectation–maximisation at most.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    MissingPackageError
        If Splink is not installed.

    Examples
    --------
    Noise of a hundredth of a standard deviation hides nobody:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = rng.standard_normal((30, 2))
    >>> probabilistic_linkage(table, table + 0.01 * rng.standard_normal((30, 2)))
    1.0
    """
    required("splink", "cvxprivacy-sdc[linkage]", "probabilistic_linkage")
    before, after, _ = paired(original, masked, columns)
    remedy = "pass increasing numbers > 0"
    bounds = array(steps, "steps", remedy, axes=(1,))
    if not (np.diff(bounds, prepend=0.0) > 0).all():
        raise InputError("steps", f"{list(steps)!r}", remedy)
    spread = deviations(before)
    scale = np.where(spread > 0, spread, 1.0)
    most = integer(iterations, "iterations", least=1)
    pairs = _weighted_pairs(before / scale, after / scale, bounds, most)
    swapped = pairs["source_dataset_l"].eq("original")
    record = pairs["unique_id_l"].where(~swapped, pairs["unique_id_r"])
    best = pairs["match_weight"].groupby(record).transform("max")
    likeliest = pairs["match_weight"] >= best - 1e-9
    ties = record[likeliest].value_counts()
    linked = record[likeliest & pairs["unique_id_l"].eq(pairs["unique_id_r"])]
    return float((1 / ties.loc[linked]).sum() / len(after))


def _weighted_pairs(before: np.ndarray, after: np.ndarray, steps: np.ndarray, most: int) -> Any:
    """Return Splink's frame of all pairs of records, with the weight of each pair's match."""
    import splink.comparison_level_library as levels
    from splink import DuckDBAPI, Linker, SettingsCreator
    from splink.comparison_library import CustomComparison

    names = [f"a{j}" for j in range(before.shape[1])]
    everything = "1=1"
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[
            CustomComparison(
                output_column_name=name,
                comparison_levels=[
                    levels.NullLevel(name),
                    *(levels.AbsoluteDifferenceLevel(name, float(step)) for step in steps),
                    levels.ElseLevel(),
                ],
            )
            for name in names
        ],
        blocking_rules_to_generate_predictions=[everything],
        probability_two_random_records_match=1 / len(before),
        max_iterations=most,
        em_convergence=1e-3,
    )
    database = DuckDBAPI()
    tables = [
        database.register(
            pd.DataFrame(data, columns=names).assign(unique_id=range(len(data))),
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
    return linker.inference.predict().as_pandas_dataframe()


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
    original, masked : frame, or array_like of shape (n, p)
        Finite numbers, record i the same in both.
    columns : sequence of str, optional
        Of frames, by default all of the original.
    percents : sequence of float
        Half widths p; the share is averaged over them and over the attributes.
    by : {"rank", "deviation"}
        The interval reaches from the masked value as far as p % of the records rank, in the
        masked table, or p % of a standard deviation of the original.

    Returns
    -------
    float
        In [0, 1]; 1 where nothing was changed.

    Examples
    --------
    The numbers 1 to 100, each raised by 3, lie within 5 ranks of where they were, except the three
    least; within 2 ranks none does:

    >>> import numpy as np
    >>> numbers = np.arange(1.0, 101)[:, None]
    >>> interval_disclosure(numbers, numbers + 3, percents=[5])
    0.97
    >>> interval_disclosure(numbers, numbers + 3, percents=[2])
    0.0
    """
    before, after, _ = paired(original, masked, columns)
    widths = array(percents, "percents", "pass percentages ≥ 0", axes=(1,)) / 100
    one_of(by, "by", "rank", "deviation")
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
        ``distance_linkage`` and :func:`interval_disclosure`, shares in [0, 1].
    probabilistic : float, optional
        ``probabilistic_linkage``; linkage is then the mean of both.

    Returns
    -------
    float
        The score, at least 0.

    Examples
    --------
    A loss of 20 %, three records in ten linked, half of the values within their intervals:
    ½ · 20 + ½ · 100 · (0.15 + 0.25)

    >>> score(20, linkage=0.3, interval=0.5)
    30.0
    """
    shares = {"linkage": linkage, "interval": interval, "probabilistic": probabilistic}
    for name, share in shares.items():
        if share is not None:
            number(share, name, below=1.0 + 1e-9)
    linked = linkage if probabilistic is None else (linkage + probabilistic) / 2
    return number(loss, "loss") / 2 + 100 * (linked + interval) / 4
