"""Tables of numbers cut into cells, and confidential columns cut into classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.sdc.partitions import mdav
from cvxprivacy.tables.arrays import complete, deviations, is_numeric, numbers
from cvxprivacy.tables.counting import natural_order
from cvxprivacy.tables.engines import python_values
from cvxprivacy.tables.labels import as_label
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import ranked
from cvxprivacy.validation import present

__all__ = ["CutTable", "cell_finder", "classes_of"]

Codes = npt.NDArray[np.int64]


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
