"""Deterministic releases, in which every key letter x has one x̃, and how they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.counts import Counts, Verdict
from cvxprivacy.errors import InputError
from cvxprivacy.microdata.hierarchy import indicator
from cvxprivacy.microdata.measures import size
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.information import entropy, mutual_information
from cvxprivacy.release.channel import Channel
from cvxprivacy.tables.arrays import codes

__all__ = ["Generalisation", "allowed", "checked", "counted", "fitted_to", "merged", "represented"]


@dataclass(frozen=True, eq=False)
class Generalisation:
    """A deterministic release, in which every key letter has one x̃, and how it stands.

    :func:`optimal_intervals` and :func:`full_domain` return one.

    Attributes
    ----------
    source : DiscreteSource
        What is generalised.
    groups : list
        The released letter of each of the source's key letters.
    criteria : tuple of Criterion
        What every group satisfies.
    units : {"bits", "nats"}
        Of information.
    distortion : float or None
        E d(X, X̂), where one was minimised.
    levels : dict of str to int
        Level of each attribute's hierarchy, in a full-domain generalisation.
    minimal : list of dict
        All levels of a full-domain search that satisfy the criteria and no finer ones do.
    evaluated, nodes : int
        Generalisations looked at, of how many.

    Examples
    --------
    The heights of Bezzi's twelve people in intervals of three people or more, those that keep most
    of the diagnosis:

    >>> import cvxprivacy as cpv
    >>> people = cpv.datasets.load_bezzi()
    >>> source = cpv.DiscreteSource.from_table(people, sensitive="diagnosis", key="height")
    >>> best = cpv.optimal_intervals(source, [cpv.KAnonymity(3)])
    >>> best.outputs
    ['[161, 167]', '[170, 181]', '[183, 195]']
    >>> verdict = best.standing["KAnonymity(3)"]
    >>> verdict.values.tolist(), verdict.holds
    ([4.0, 5.0, 3.0], True)
    >>> round(source.information(), 4), round(best.information, 4)
    (0.4138, 0.1842)
    >>> best.channel.apply(people, seed=0)["height"].tolist()[:2]  # no draw depends on the seed
    ['[161, 167]', '[161, 167]']
    """

    source: DiscreteSource
    groups: list[Any]
    criteria: tuple[Criterion, ...]
    units: str = "bits"
    distortion: float | None = None
    levels: Mapping[str, int] | None = None
    minimal: Sequence[Mapping[str, int]] = ()
    evaluated: int = 1
    nodes: int = 1

    @cached_property
    def outputs(self) -> list[Any]:
        """The released letters, in the order of the key letters."""
        return list(dict.fromkeys(self.groups))

    @cached_property
    def joint(self) -> np.ndarray:
        """Masses of (w, x̃), shape (|W|, |X̃|), in the source's unit."""
        return merged(self.source.joint, self.groups)

    @property
    def information(self) -> float:
        """I(X̃; W)."""
        return mutual_information(self.joint, units=self.units)

    @property
    def standing(self) -> dict[str, Verdict]:
        """How each criterion stands on the generalised table."""
        table = grouped_table(self.source, counted(self.source, self.joint), self.units)
        return {str(c): c.verdict(table) for c in self.criteria}

    @cached_property
    def channel(self) -> Channel:
        """The release as a channel, to be applied to tables."""
        return Channel(
            indicator(self.groups),
            inputs=self.source.x,
            outputs=self.outputs,
            p_input=self.source.p_x,
            schema=self.source.schema,
        )

    def __repr__(self) -> str:
        return f"Generalisation({len(self.groups)} → {len(self.outputs)} letters)"

    def __str__(self) -> str:
        before = self.source.information(units=self.units)
        lines = [
            f"{len(self.groups)} key letters in {len(self.outputs)} groups",
            f"  I(X̃; W) = {self.information:.4f} {self.units} of {before:.4f}",
        ]
        if self.levels is not None:
            levels = ", ".join(f"{name} {level}" for name, level in self.levels.items())
            lines.append(
                f"  levels {levels}; {len(self.minimal)} minimal of {self.nodes:,} "
                f"generalisations, {self.evaluated:,} looked at"
            )
        if self.distortion is not None:
            lines.append(f"  E d(X, X̂) = {self.distortion:.6g}")
        for name, verdict in self.standing.items():
            values = np.array([]) if verdict.values is None else verdict.values
            extent = f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g} " if len(values) else ""
            broken = 0 if verdict.broken is None else int(verdict.broken.sum())
            lines.append(f"  {name:<18} {extent}over the groups, {broken} break it")
        return "\n".join(lines)


# ---- shared by the searches --------------------------------------------------------------


def merged(table: np.ndarray, groups: Sequence[Any]) -> np.ndarray:
    """Add up the columns of each group."""
    at = codes(groups)
    return np.array([np.bincount(at, row) for row in table])


def fitted_to(source: DiscreteSource, distortion: Distortion | None) -> Distortion | None:
    """Return a distortion with its rows in the source's order."""
    if distortion is None:
        return None
    measure = distortion.fitted(len(source.w), source.x)
    if measure.matrix.ndim != 2:
        raise InputError("distortion", "d(w, x, x̂)", "pass d(x, x̂), shape (|X|, |X̂|)")
    return measure


def represented(
    source: DiscreteSource, measure: Distortion, groups: Sequence[Any]
) -> tuple[list[Any], float]:
    """Release each group as its best letter; return the letters and E d(X, X̂)."""
    costs = indicator(groups).T @ (source.p_x[:, None] * measure.matrix)
    names = dict(zip(dict.fromkeys(groups), costs.argmin(axis=1).tolist(), strict=True))
    return [measure.outputs[names[group]] for group in groups], float(costs.min(axis=1).sum())


def counted(source: DiscreteSource, joint: np.ndarray) -> np.ndarray:
    """Return records per cell where they are known, else the masses."""
    return joint if source.records is None else joint * (source.records / source.law.sum())


def grouped_table(source: DiscreteSource, counts: np.ndarray, units: str) -> Counts:
    """Return groups of the records of a source, of which those are counted where that may be."""
    countable = source.records is not None and not source.weighted
    masses = counted(source, source.joint).sum(axis=1)
    return Counts(counts, units, masses, counts.sum(axis=0) if countable else None)


def allowed(
    source: DiscreteSource, criteria: Sequence[Criterion], counts: np.ndarray, units: str
) -> np.ndarray:
    """Return which columns of a table of groups satisfy every criterion.

    Raises
    ------
    InputError
        For a criterion that does not speak of each group by itself.
    """
    table, satisfied = grouped_table(source, counts, units), np.ones(counts.shape[1], bool)
    for i, criterion in enumerate(criteria):
        met = criterion.verdict(table).met
        if met is None:
            problem = f"{criterion!r} does not speak of each group by itself"
            raise InputError("criteria", problem, "use one per released letter", where=i)
        satisfied &= met
    return satisfied


def checked(source: DiscreteSource, criteria: Sequence[Criterion], units: str) -> None:
    """Refuse what not even one group of all records satisfies."""
    if not isinstance(source, DiscreteSource):
        raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource")
    whole_table = counted(source, source.joint.sum(axis=1, keepdims=True))
    for i, criterion in enumerate(criteria):
        if not allowed(source, [criterion], whole_table, units)[0]:
            most = 2 ** entropy(whole_table.ravel())
            problem = f"{criterion!r} fails even with all records in one group"
            remedy = f"relax it: ℓ is {most:.4g} and k {size(whole_table)[0]:,.0f} there"
            raise InputError("criteria", problem, remedy, where=i)
