"""Losses of categorical attributes, bounded by themselves (Mateo-Sanz et al. 2005, Remark 3.1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.microdata.arrays import codes, is_frame, same_records
from cvxprivacy.microdata.loss.base import Loss
from cvxprivacy.model.information import entropy
from cvxprivacy.tables.engines import as_narwhals, python_values
from cvxprivacy.validation import present


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
