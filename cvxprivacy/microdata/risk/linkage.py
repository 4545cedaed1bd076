"""Record linkage: the share of masked records that lead back to their own original.

Distance linkage is the explicit approach of Mateo-Sanz et al. 2005, §3, after J. Domingo-Ferrer
and V. Torra (2001).  Probabilistic linkage is the model of I. P. Fellegi and A. B. Sunter, A
theory for record linkage, JASA 64 (1969) 1183–1210.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.microdata.arrays import deviations, paired
from cvxprivacy.validation import array, whole


def distance_linkage(
    original: Any,
    masked: Any,
    columns: Sequence[Hashable] | None = None,
    *,
    standardize: bool = True,
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
    standardize : bool
        Divide each attribute by its standard deviation in the original.

    Returns
    -------
    float
        In [0, 1]; of records all different 1 if nothing was changed.

    Examples
    --------
    Both records of a group have one mean, which is as near to the one as to the other:

    >>> from cvxprivacy.microdata.masking import MDAV
    >>> table = [[0.0], [1.0], [5.0], [6.0]]
    >>> distance_linkage(table, table), distance_linkage(table, MDAV(k=2).fit_transform(table))
    (1.0, 0.5)
    """
    from scipy.spatial import cKDTree

    before, after, _ = paired(original, masked, columns)
    spread = deviations(before)
    scale = np.where(standardize & (spread > 0), spread, 1.0)
    origin = before[0]  # a constant column is 0, whatever its size
    before, after = (before - origin) / scale, (after - origin) / scale
    tree = cKDTree(before)
    nearest = np.asarray(tree.query(after)[0]) * (1 + 1e-9)
    nearest += 1e-12 * np.abs(before).max(initial=1.0)
    linked = np.sqrt(((before - after) ** 2).sum(axis=1)) <= nearest
    if not linked.any():
        return 0.0
    ties = np.asarray(tree.query_ball_point(after[linked], nearest[linked], return_length=True))
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
    InputError
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
    try:
        import splink  # noqa: F401
    except ImportError:
        remedy = "install it with: pip install 'cvxprivacy[linkage]'"
        raise InputError("probabilistic_linkage", "needs Splink 5", remedy) from None
    before, after, _ = paired(original, masked, columns)
    remedy = "pass increasing numbers > 0"
    bounds = array(steps, "steps", remedy, axes=(1,))
    if not (np.diff(bounds, prepend=0.0) > 0).all():
        raise InputError("steps", f"{list(steps)!r}", remedy)
    spread = deviations(before)
    scale = np.where(spread > 0, spread, 1.0)
    most = whole(iterations, "iterations", least=1)
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
    import pandas as pd
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
