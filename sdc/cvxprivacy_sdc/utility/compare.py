"""Masking methods beside the certified optimum: what each leaks, what it costs, how far it is.

The key attributes are cut into cells, each of which stands for its mean, and the confidential
ones into classes.  The frontier is the certified optimum of the counted law, proved for releases
that see X's cell alone.  A method's mark is counted from one masked table, cut likewise: it lies
beside the frontier, and may lie on either side of it, by sampling or because the method used more
than the cell.  (Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE TKDE 22(11), 2010, compare
methods with the quadratic-Gaussian bound in §6.2; the frontier is the optimum of their eq. 3.)
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.formulations.quadratic_gaussian import QuadraticGaussian
from cvxprivacy.leakage import Leakage
from cvxprivacy.leakage.base import by_name
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.information import differential_entropy, mutual_information
from cvxprivacy.results.solution import GaussianSolution, Solution
from cvxprivacy.tables.arrays import (
    Codes,
    complete,
    deviations,
    distinct,
    is_frame,
    is_numeric,
    numbers,
    paired,
)
from cvxprivacy.tables.counting import natural_order
from cvxprivacy.tables.engines import in_memory, python_values
from cvxprivacy.tables.labels import as_label
from cvxprivacy.tables.schema import TableSchema, column_names
from cvxprivacy.tables.values import ranked
from cvxprivacy.validation import array, integer, present
from cvxprivacy_sdc.loss import information_loss, probabilistic_loss
from cvxprivacy_sdc.partitions import mdav
from cvxprivacy_sdc.risk import (
    distance_linkage,
    estimated_leakage,
    interval_disclosure,
    score,
)
from cvxprivacy_sdc.utility.comparison import OPTIMUM, Comparison, Point

__all__ = ["Comparison", "Point", "compare"]

# Shares of the greatest distortion, and of the variance for the QGLB.
SHARES = (0.002, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8)
GRID = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)


def compare(
    original: Any,
    methods: Mapping[str, Any],
    *,
    sensitive: Hashable | Sequence[Hashable],
    key: Hashable | Sequence[Hashable],
    cells: int = 64,
    classes: int = 8,
    shares: Sequence[float] = SHARES,
    leakage: Leakage | str | Sequence[Leakage | str] | None = None,
    units: str = "bits",
    seed: int = 0,
) -> Comparison:
    """Put masking methods beside the certified optimum.

    Parameters
    ----------
    original : frame
        In memory, of any flavour.
    methods : mapping of name to table, estimator, or several of either
        A masked table, with the key columns and record i in row i; or what has
        ``fit_transform``, such as the estimators of :mod:`cvxprivacy_sdc.masking`, which
        is given the key columns, and the classes of W as y.  A list, or a mapping of setting to
        either, is a curve.  Estimators are copied; a random one without a state is given ``seed``.
    sensitive : column name, or several
        W.
    key : column name, or several
        X, columns of numbers, which the methods mask.
    cells, classes : int
        Cells of X and classes of W at most.  Cells are those of k-means, in standard deviations;
        a confidential column of numbers is cut at its quantiles, letters stay.
    shares : sequence of float
        Distortions, as shares > 0 and ≤ 1 of the greatest, at which the optimum is certified.
    leakage : Leakage or its name, or several, optional
        Measures of :mod:`cvxprivacy.leakage` in which the tables cut into cells are measured, too;
        matrices and the order of W are those of ``source.w``, numbers being cut from the least up.
        The frontier is of information all the same.
    units : {"bits", "nats"}
        Of information.
    seed : int
        Of the draws of the optimal channels, and of methods without a state of their own.

    Returns
    -------
    Comparison
        A point for each masked table and each optimal channel, with the bounds of the plane.

    Raises
    ------
    InputError
        For unknown columns, key columns that are not numbers or are constant, missing values, or
        masked tables that do not fit.

    Examples
    --------
    Microaggregation in groups of 3 and of 10, and noise, beside the optimum on 60 made-up people:

    >>> import numpy as np, pandas as pd
    >>> from cvxprivacy_sdc.masking import MDAV, AdditiveNoise
    >>> age = np.arange(20.0, 80.0)
    >>> people = pd.DataFrame({"age": age, "ill": np.where(age % 7 < age / 12, "yes", "no")})
    >>> methods = {"MDAV": [MDAV(k=3), MDAV(k=10)], "noise": AdditiveNoise(0.5)}
    >>> comparison = compare(people, methods, sensitive="ill", key="age", cells=6, shares=[0.3])
    >>> [(p.method, p.setting) for p in comparison.points]  # doctest: +NORMALIZE_WHITESPACE
    [('MDAV', 'k = 3'), ('MDAV', 'k = 10'), ('noise', 'scale = 0.5'),
     ('optimal channel', 'D = 0.3 of most')]
    >>> [round(point.distortion, 3) for point in comparison.points[:2]]  # (k² − 1)/(60² − 1)
    [0.002, 0.028]
    """
    if not is_frame(original, "original"):
        problem = f"a {type(original).__name__}"
        raise InputError("original", problem, "pass a frame with columns")
    if not isinstance(methods, Mapping) or not methods:
        raise InputError("methods", f"{methods!r}", "pass {name: masked table or estimator}")
    if OPTIMUM in methods:
        raise InputError("methods", f"{OPTIMUM!r} is the frontier's own name", "name it otherwise")
    fractions, measures = _shares(shares), by_name(() if leakage is None else leakage, "leakage")
    keys, hidden = column_names(key, "key"), column_names(sensitive, "sensitive")
    data = _key_data(original, keys, hidden)
    frame = in_memory(original, "original")
    w, values = classes_of(frame, hidden, integer(classes, "classes", least=2))
    table = CutTable.of(data, w, values, integer(cells, "cells", least=2))
    for measure in measures.values():
        measure.fitted(values, range(len(values)))
    frontier = _frontier(table, fractions, units)
    within = table.distortion(table.centres[table.cells])
    gaussian, entropy = _gaussian(original, hidden, keys, units)
    plane = Comparison([], table.source, frontier, within, gaussian, entropy, units, measures)
    chosen, confidential = (nw.to_native(frame.select(*names)) for names in (keys, hidden))
    points = []
    for method, curve in methods.items():
        for setting, each in _curve(curve):
            try:
                masked = paired(chosen, _masked(each, chosen, w, seed))[1]
                points.append(_point(str(method), setting, masked, plane, table, confidential))
            except InputError as error:
                problem = f"{error.argument}: {error.problem}"
                raise InputError("methods", problem, error.remedy, where=method) from None
    for share, solution in zip(fractions, frontier, strict=True):
        released = table.outputs[solution.release.apply(table.cells, seed=seed)]
        setting = f"D = {share:g} of most"
        points.append(_point(OPTIMUM, setting, released, plane, table, confidential))
    return replace(plane, points=points)


# ---- the table and its bounds ------------------------------------------------------------


def _shares(shares: Any) -> np.ndarray:
    remedy = "pass numbers > 0 and ≤ 1"
    fractions = np.sort(array(list(np.atleast_1d(shares)), "shares", remedy, axes=(1,)))
    if not (len(fractions) and fractions[0] > 0 and fractions[-1] <= 1):
        raise InputError("shares", f"{fractions.tolist()}", remedy)
    return fractions


def _key_data(original: Any, keys: Sequence[str], hidden: Sequence[str]) -> np.ndarray:
    """Return the key columns as numbers; constant or confidential ones are refused."""
    data, _ = numbers(original, "original", keys)
    for name, column in zip(keys, data.T, strict=True):
        if np.ptp(column) == 0:
            raise InputError("key", f"column {name!r} is constant", "leave it out", value=name)
    distinct(hidden, "sensitive")
    shared = next((name for name in keys if name in hidden), None)
    if shared is not None:
        problem = f"column {shared!r} is confidential, too"
        raise InputError("key", problem, "name the columns that are masked", value=shared)
    return data


def _frontier(table: CutTable, shares: np.ndarray, units: str) -> list[Solution]:
    """Return certified optima, from the least distortion to the greatest."""
    source, errors = table.source, table.errors
    greatest = float((source.p_x @ errors).min())
    measure = Distortion(errors, outputs=range(errors.shape[1]), name="squared error")
    return [
        PrivacyDistortion(source, measure, budget=float(share) * greatest, units=units).solve()
        for share in shares
    ]


def _gaussian(
    original: Any, sensitive: Sequence[str], key: Sequence[str], units: str
) -> tuple[dict[float, GaussianSolution], float | None]:
    """Return the QGLB by distortion, and h(W) if W has a density."""
    try:
        hidden, _ = numbers(original, "original", sensitive)
        source = GaussianSource.from_table(original, sensitive=sensitive, key=key, standardize=True)
    except InputError:  # W is categories, or constant
        return {}, None
    try:
        scaled = hidden / hidden.std(axis=0, ddof=1)
        entropy: float | None = differential_entropy(scaled, units=units)
    except InputError:  # too many equal records
        entropy = None
    size = len(key) * (1 - 1 / len(hidden))  # the source's variances are divided by N − 1
    return {
        share: QuadraticGaussian(source, share * size, entropy=entropy, units=units).solve()
        for share in GRID
    }, entropy


# ---- the methods -------------------------------------------------------------------------


def _point(
    method: str, setting: str, masked: np.ndarray, plane: Comparison, table: CutTable,
    confidential: Any,
) -> Point:  # fmt: skip
    """Measure a masked table, as it is and cut into cells."""
    cells = table.cells_of(masked)
    counts, cut = table.counts(cells), table.distortion(table.centres[cells])
    linkage = distance_linkage(table.data, masked)
    interval = interval_disclosure(table.data, masked)
    pil = probabilistic_loss(table.data, masked).total
    return Point(
        method,
        setting,
        distortion=table.distortion(masked),
        leakage=estimated_leakage(confidential, masked, method="neighbours", units=plane.units),
        cut=cut,
        risk=mutual_information(counts, units=plane.units),
        optimum=float(plane.lower(cut)),
        linkage=linkage,
        interval=interval,
        pil=pil,
        il=information_loss(table.data, masked).total,
        score=score(pil, linkage=linkage, interval=interval),
        measures=plane.measured(counts / counts.sum()),
    )


def _masked(method: Any, table: Any, classes: np.ndarray, seed: int) -> Any:
    """Return a masked table as it is, or what a copy of an estimator makes of the table."""
    if isinstance(method, type):
        problem, remedy = f"{method.__name__} is a class", f"pass {method.__name__}(…)"
        raise InputError("method", problem, remedy)
    if not hasattr(method, "fit_transform"):
        return method
    estimator = copy.deepcopy(method)
    if hasattr(estimator, "get_params"):
        states = {k: v for k, v in estimator.get_params().items() if k.endswith("random_state")}
        estimator.set_params(**{name: seed for name, state in states.items() if state is None})
    try:
        return estimator.fit_transform(table, classes)
    except InputError:
        raise
    except Exception as error:  # each estimator has its own
        problem = f"{type(error).__name__}: {error}"
        raise InputError("fit_transform", problem, "mend the estimator") from error


def _curve(methods: Any) -> list[tuple[str, Any]]:
    """Return the settings of a method, and what is measured at each."""
    if isinstance(methods, Mapping | list | tuple) and not methods:
        raise InputError("methods", "an empty curve", "pass at least one setting")
    if isinstance(methods, Mapping):
        return [(str(setting), each) for setting, each in methods.items()]
    several = methods if isinstance(methods, list | tuple) else [methods]
    return [(_setting(each) or str(i), each) for i, each in enumerate(several, 1)]


def _setting(method: Any) -> str:
    """Return the numbers that an estimator was given, but for its random state."""
    if isinstance(method, type) or not hasattr(method, "get_params"):
        return ""
    numeric = {
        name.rpartition("__")[2]: value
        for name, value in method.get_params().items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    numeric.pop("random_state", None)
    return ", ".join(f"{name} = {value:g}" for name, value in numeric.items())


# ---- cells and classes -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CutTable:
    """Records whose key is cut into cells, each of which stands for its mean.

    Attributes
    ----------
    data : ndarray, shape (n, p)
        The key, as it is.
    classes : ndarray of int, shape (n,)
        W of each record.
    values : list
        What the classes are called, in order.
    cells_of : callable
        From records, shape (m, p), to the numbers of their cells.
    cells : ndarray of int, shape (n,)
    centres : ndarray, shape (|X|, p)
        Mean of each cell.
    """

    data: np.ndarray
    classes: Codes
    values: list[Any]
    cells_of: Callable[[np.ndarray], Codes]
    cells: Codes
    centres: np.ndarray

    @classmethod
    def of(cls, data: np.ndarray, classes: Codes, values: list[Any], most: int) -> CutTable:
        """Cut a table into ``most`` cells at most."""
        cells_of = cell_finder(data, most)
        cells = cells_of(data)
        centres = np.array([data[cells == i].mean(axis=0) for i in range(int(cells.max()) + 1)])
        return cls(data, classes, values, cells_of, cells, centres)

    def counts(self, cells: Codes) -> np.ndarray:
        """Return the records of each class in each of these cells, shape (|W|, |X|)."""
        shape = len(self.values), len(self.centres)
        places = self.classes * shape[1] + cells
        return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape).astype(float)

    def distortion(self, released: np.ndarray) -> float:
        """Return the mean share of the variance that is error, of released records."""
        return float(((self.data - released) ** 2 / self.data.var(axis=0)).mean())

    @cached_property
    def source(self) -> DiscreteSource:
        """The counted law of classes and cells."""
        counts = self.counts(self.cells)
        return DiscreteSource.from_counts(counts, w=self.values, names=("W", "X"))

    @property
    def outputs(self) -> np.ndarray:
        """What a release may say: a cell's mean, or last the mean of all."""
        return np.vstack([self.centres, self.data.mean(axis=0)])

    @property
    def errors(self) -> np.ndarray:
        """Distortion of each output for each cell, shape (|X|, |X| + 1)."""
        difference = self.centres[:, None] - self.outputs
        return np.asarray((difference**2 / self.data.var(axis=0)).mean(axis=2))


def classes_of(
    frame: nw.DataFrame[Any], names: Sequence[str], most: int
) -> tuple[Codes, list[Any]]:
    """Return each record's class of W, and what the classes are called, in order.

    Numbers are cut at quantiles, categories are as they are; several columns make tuples.
    """
    columns, places, parts = [], [], max(2, int(most ** (1 / len(names)) + 1e-9))
    for name in names:
        present(name, frame.columns, "sensitive")
        column = complete(python_values(frame[name]), "sensitive", name)
        order = natural_order(TableSchema((), (name,)), nw.to_native(frame), name, column)
        if len(set(column)) > parts and is_numeric(frame[name]):
            data = numbers(frame, "original", [name])[0][:, 0]
            cuts = np.quantile(data, np.arange(1, parts) / parts, method="inverted_cdf")
            column, order = np.searchsorted(np.unique(cuts), data, side="left").tolist(), None
        columns.append(column)
        places.append({value: i for i, value in enumerate(ranked(set(column), order))})
    rows = list(zip(*columns, strict=True))
    values = sorted(set(rows), key=lambda row: [at[v] for at, v in zip(places, row, strict=True)])
    number = {row: i for i, row in enumerate(values)}
    return np.array([number[row] for row in rows], dtype=np.int64), [*map(as_label, values)]


def cell_finder(data: np.ndarray, most: int) -> Callable[[np.ndarray], Codes]:
    """Return what finds each record's cell: the nearest of the means of k-means."""
    from scipy.cluster.vq import kmeans2
    from scipy.spatial import cKDTree

    scale = deviations(data)
    records = data / scale
    centres = np.unique(records, axis=0)
    if len(centres) > most:
        labels = mdav(records, -(-len(records) // most))  # a start that needs no chance
        start = np.array([records[labels == i].mean(axis=0) for i in range(labels.max() + 1)])
        with warnings.catch_warnings():  # a cluster that lost its records is dropped below
            warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
            centres = kmeans2(records, np.unique(start, axis=0), iter=50, minit="matrix")[0]
    used = np.unique(np.asarray(cKDTree(centres).query(records)[1]))
    tree = cKDTree(centres[used])
    return lambda table: np.asarray(tree.query(table / scale)[1])
