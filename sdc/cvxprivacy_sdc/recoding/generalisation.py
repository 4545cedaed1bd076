"""Deterministic releases, in which every key letter x has one x̃, and how they stand.

Hierarchies are coarser and coarser groupings of one attribute, from which such releases are made.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.counts import Counts, Verdict
from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.information import entropy, mutual_information
from cvxprivacy.release.channel import Channel
from cvxprivacy.tables.arrays import codes
from cvxprivacy.tables.bins import bins_of
from cvxprivacy.validation import array, integer, labels
from cvxprivacy_sdc.recoding.recoding_costs import OBJECTIVES

__all__ = [
    "Generalisation",
    "Hierarchy",
    "allowed",
    "checked",
    "counted",
    "delimited_rows",
    "fitted_to",
    "grouped_table",
    "merged",
    "parted",
    "refuse_hopeless",
    "represented",
]


# ---- hierarchies -------------------------------------------------------------------------


class Hierarchy:
    """Coarser and coarser groupings of an attribute's letters.

    Parameters
    ----------
    letters : sequence
        The attribute's values, distinct.
    levels : sequence of sequence
        For each level above the letters themselves, the group of each letter.  Letters of one
        group stay together above.

    Raises
    ------
    InputError
        For a level that is no coarsening of the one below, with two letters that it parts.

    Examples
    --------
    >>> ages = Hierarchy.intervals([18, 22, 37, 41], 10, 20)
    >>> ages.levels[1:]
    [['[10, 20)', '[20, 30)', '[30, 40)', '[40, 50)'], ['[0, 20)', '[20, 40)', '[20, 40)', \
'[40, 60)'], ['*', '*', '*', '*']]
    """

    def __init__(self, letters: Sequence[Hashable], levels: Sequence[Sequence[Hashable]]) -> None:
        self.letters = _several(letters, "letters")
        if not self.letters:
            raise InputError("letters", "none", "pass at least one letter")
        labels(self.letters, None, "letters")
        self.levels: list[list[Any]] = [self.letters]
        for number, level in enumerate(_several(levels, "levels"), 1):
            groups = _several(level, "levels", number)
            if len(groups) != len(self.letters):
                problem = f"{len(groups)} groups for {len(self.letters)} letters"
                raise InputError("levels", problem, "name each letter's group", where=number)
            try:
                hash(tuple(groups))
            except TypeError as error:
                remedy = "use strings, numbers or tuples"
                raise InputError("levels", f"{error}", remedy, where=number) from None
            above: dict[Any, tuple[Any, Any]] = {}
            for letter, below, group in zip(self.letters, self.levels[-1], groups, strict=True):
                first = above.setdefault(below, (letter, group))
                if first[1] != group:
                    problem = f"{first[0]!r} and {letter!r} share {below!r} below and part here"
                    remedy = "make each level a coarsening of the one before"
                    raise InputError("levels", problem, remedy, where=number, value=letter)
            self.levels.append(groups)

    @classmethod
    def intervals(
        cls, letters: Sequence[float], *levels: float | Sequence[float], suppress: bool = True
    ) -> Hierarchy:
        """Group numbers into intervals, closed below.

        Parameters
        ----------
        letters : sequence of numbers
            The attribute's values.
        *levels : number, or sequence of numbers
            The width of bands anchored at 0, or edges, which may begin with −inf and end with inf;
            from fine to coarse.
        suppress : bool
            Whether a last level has all letters in one group ``*``.
        """
        numbers = array(letters, "letters", "pass finite numbers", axes=(1,), negative=True)
        grouped = []
        for number, spec in enumerate(levels, 1):
            bins = bins_of(f"level {number}", spec, numbers.min(), numbers.max())
            groups = bins.named(list(letters))
            outside = next((x for x, g in zip(letters, groups, strict=True) if x is g), None)
            if outside is not None:
                problem = f"{outside!r} is in no interval"
                remedy = "add edges, such as −inf or inf"
                raise InputError("levels", problem, remedy, where=number, value=outside)
            grouped.append(groups)
        return cls(letters, [*grouped, *([["*"] * len(letters)] if suppress else [])])

    @classmethod
    def tree(cls, paths: Mapping[Hashable, Sequence[Hashable]]) -> Hierarchy:
        """Group letters by their ancestors in a tree.

        Parameters
        ----------
        paths : mapping of letter to sequence
            Ancestors of each letter from the nearest up to the root, all of one length:
            ``{"Paris": ("France", "Europe"), "Rome": ("Italy", "Europe")}``, as for
            :func:`cvxprivacy.hierarchy_distance`.
        """
        if not isinstance(paths, Mapping):
            remedy = "pass {letter: (parent, …, root)}"
            raise InputError("paths", f"a {type(paths).__name__}", remedy)
        paths = {letter: _several(path, "paths", letter) for letter, path in paths.items()}
        heights = {len(path) for path in paths.values()}
        if len(heights) != 1:
            remedy = "give every letter one path to the root"
            raise InputError("paths", "none, or of different lengths", remedy)
        return cls(list(paths), [[path[i] for path in paths.values()] for i in range(*heights)])

    @classmethod
    def suppression(cls, letters: Sequence[Hashable], mark: Hashable = "*") -> Hierarchy:
        """Keep the letters, or put all of them into one group.

        Parameters
        ----------
        letters : sequence
            The attribute's values.
        mark : label
            The name of the one group.
        """
        letters = _several(letters, "letters")
        return cls(letters, [[mark] * len(letters)])

    def __repr__(self) -> str:
        sizes = " → ".join(str(len(set(level))) for level in self.levels)
        return f"Hierarchy({sizes} groups)"

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], *, delimiter: str = ";") -> Hierarchy:
        """Read a hierarchy as ARX writes it: a line per value, without a header.

        The first field is the value, the next ones its groups from fine to coarse.

        Parameters
        ----------
        path : path
            Of a file in UTF-8.
        delimiter : str
            What parts the fields, ";" in ARX.

        Raises
        ------
        InputError
            For a file that cannot be read, a value with two lines, an empty field, lines of
            different lengths, and a level that is no coarsening of the one below.
        """
        rows = delimited_rows(path, delimiter, "hierarchy")
        lines: dict[str, int] = {}
        for line, row in rows:
            where = f"{Path(path).name}, line {line}"
            if len(row) != len(rows[0][1]) or len(row) < 2:
                problem = "one field alone"
                if len(row) > 1:
                    problem = f"{len(row)} fields, where the first line has {len(rows[0][1])}"
                remedy = f"write a value and its groups, parted by {delimiter!r}"
                raise InputError("hierarchy", problem, remedy, where=where)
            if lines.setdefault(row[0], line) != line:
                problem = f"{row[0]!r} is in line {lines[row[0]]} too"
                raise InputError("hierarchy", problem, "keep one", where=where, value=row[0])
        levels = list(zip(*(row for _, row in rows), strict=True))
        try:
            return cls(levels[0], levels[1:])
        except InputError as error:
            where = f"{Path(path).name}, level {error.where}"
            more = {"where": where, "value": error.value}
            raise InputError("hierarchy", error.problem, error.remedy, **more) from None

    def mapping(self, level: int) -> dict[Any, Any]:
        """Return the group of each letter at a level, for ``DiscreteSource.from_table(groups=…)``.

        Parameters
        ----------
        level : int
            0 for the letters themselves, then 1, 2, … up to the coarsest.

        Raises
        ------
        InputError
            For a level that is not there; the error says how many groups each level has.
        """
        if integer(level, "level", least=0) >= len(self.levels):
            remedy = f"the levels are {self.described()}"
            raise InputError("level", f"{level}", remedy, value=level)
        return dict(zip(self.letters, self.levels[level], strict=True))

    def described(self) -> str:
        """Return the levels with their numbers of groups, as "0 (16 groups), 1 (4 groups)"."""
        sizes = [len(set(level)) for level in self.levels]
        return ", ".join(f"{i} ({n} group{'s' * (n > 1)})" for i, n in enumerate(sizes))

    def channel(self, level: int) -> Channel:
        """Return a level as a channel from letters to groups.

        Parameters
        ----------
        level : int
            As of :meth:`mapping`.
        """
        groups = list(self.mapping(level).values())
        outputs = list(dict.fromkeys(groups))
        return Channel(indicator(groups), inputs=self.letters, outputs=outputs)


def delimited_rows(
    path: str | os.PathLike[str], delimiter: str, argument: str
) -> list[tuple[int, list[str]]]:
    """Return the lines of a small text table with their numbers, blank ones left out.

    Raises
    ------
    InputError
        For a file that cannot be read or has no line, and for an empty field.
    """
    name = Path(path).name
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            rows = [(reader.line_num, [field.strip() for field in row]) for row in reader if row]
    except OSError as error:
        problem = f"{os.fspath(path)} cannot be read ({error.strerror})"
        raise InputError(argument, problem, "name a file that is there") from None
    except (UnicodeDecodeError, csv.Error) as error:
        reason = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"is broken: {error}"
        raise InputError(argument, f"{name} {reason}", "save it as CSV in UTF-8") from None
    if not rows:
        raise InputError(argument, f"{name} has no line", "write a line for each value")
    for line, row in rows:
        if "" in row[1:]:
            problem, where = f"no group for {row[0]!r}", f"{name}, line {line}"
            raise InputError(argument, problem, "name one", where=where, value=row[0])
    return rows


def _several(values: Any, argument: str, where: Any = None) -> list[Any]:
    """Return a list; what is none is refused, as is text for a level or a path: it is one name."""
    try:
        if isinstance(values, str) and argument != "letters":
            raise TypeError
        return list(values)
    except TypeError:
        problem, remedy = f"{values!r} is no list", "pass a list of names"
        raise InputError(argument, problem, remedy, where=where, value=values) from None


# ---- generalisations ---------------------------------------------------------------------


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
        What every group but that of suppressed records satisfies, or the release as a whole.
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
    keep : str
        By what the levels of a full-domain search were chosen.
    score : float or None
        What they have of it, or E d(X, X̂).
    suppressed : ndarray of bool, shape (|X|,), or None
        Which key letters are suppressed: released as one group, which the criteria exempt.

    Examples
    --------
    The heights of Bezzi's twelve people in intervals of three people or more, those that keep most
    of the diagnosis:

    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> people = cpv.datasets.load_bezzi()
    >>> source = cpv.DiscreteSource.from_table(people, sensitive="diagnosis", key="height")
    >>> best = sdc.optimal_intervals(source, [cpv.KAnonymity(3)])
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
    keep: str = ""
    score: float | None = None
    suppressed: np.ndarray | None = None

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
        """How each criterion stands on the generalised table, suppressed records being exempt."""
        verdicts = {c: c.verdict(self._table()) for c in self.criteria}
        if self._exempt.any():
            nobody, kept = Verdict.of_letters([]), self._table(~self._exempt)
            for c, verdict in verdicts.items():
                if verdict.met is not None:  # not of the release as a whole
                    verdicts[c] = nobody if self._exempt.all() else c.verdict(kept)
        return {str(c): verdict for c, verdict in verdicts.items()}

    @property
    def standing_of_suppressed(self) -> dict[str, bool | None]:
        """Whether the one group of suppressed records satisfies each criterion of groups, too."""
        if not self._exempt.any():
            return {}
        verdicts = {str(c): c.verdict(self._table(self._exempt)) for c in self.criteria}
        return {name: v.holds for name, v in verdicts.items() if v.met is not None}

    @property
    def share_suppressed(self) -> float:
        """Share of the records that are suppressed."""
        masses = self.joint.sum(axis=0)
        return float(masses[self._exempt].sum() / masses.sum())

    @cached_property
    def _exempt(self) -> np.ndarray:
        """Which released letters are of suppressed records."""
        if self.suppressed is None:
            return np.zeros(self.joint.shape[1], bool)
        return np.bincount(codes(self.groups), self.suppressed) > 0

    def _table(self, letters: Any = slice(None)) -> Counts:
        counts = counted(self.source, self.joint)[:, letters]
        return grouped_table(self.source, counts, self.units)

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
        elif self.keep not in ("", "W"):
            unit = f" {self.units}" * (self.keep in ("X", "non-uniform entropy"))
            lines.append(f"  {OBJECTIVES[self.keep]} = {self.score:,.6g}{unit}")
        width = max(18, *map(len, self.standing))
        lines += [f"  {name:<{width}} {self._stands(of)}" for name, of in self.standing.items()]
        if self._exempt.any():
            alone = self.standing_of_suppressed
            breaks = [name for name, holds in alone.items() if not holds]
            words = f"it breaks {', '.join(breaks)}" if breaks else "it satisfies them"
            words = f"; by itself {words}" if alone else ""
            share = f"{self.share_suppressed:.2%} of the records"
            lines.append(f"  {'suppressed':<{width}} {share}, one group that is exempt{words}")
        return "\n".join(lines)

    def _stands(self, verdict: Verdict) -> str:
        """Say how a criterion stands over the groups that it is asked of, or of the whole."""
        if verdict.met is None:
            value = "" if verdict.value is None else f"{verdict.value:.4g} "
            holds = {True: "holds", False: "BROKEN", None: "open"}[verdict.holds]
            return f"{value}of the release as a whole, {holds}"
        values, kept = verdict.values, " that are kept" * bool(self._exempt.any())
        if not len(verdict.met):
            return "no group is kept"
        extent = "" if values is None else f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g} "
        broken = 0 if verdict.broken is None else int(verdict.broken.sum())
        return f"{extent}over the groups{kept}, {broken} break it"


# ---- shared by the searches --------------------------------------------------------------


def indicator(groups: Sequence[Any]) -> np.ndarray:
    """Return which letter is in which group, shape (letters, groups)."""
    at = codes(groups)
    return np.eye(int(at.max()) + 1)[at]


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


def parted(measure: Distortion) -> tuple[np.ndarray, np.ndarray]:
    """Return the finite costs, 0 elsewhere, and which are infinite; shape (|X|, |X̂|) each.

    Sums and differences of both are exact where those of infinite costs are not numbers.
    """
    forbidden = np.isinf(measure.matrix)
    return np.where(forbidden, 0.0, measure.matrix), forbidden


def represented(
    source: DiscreteSource, measure: Distortion, groups: Sequence[Any]
) -> tuple[list[Any], float]:
    """Release each group as its best letter; return the letters and E d(X, X̂).

    It is infinite where some group has none that all of its letters may be released as.
    """
    masses = indicator(groups).T * source.p_x
    finite, forbidden = parted(measure)
    costs = np.where(masses @ forbidden > 0, np.inf, masses @ finite)
    names = dict(zip(dict.fromkeys(groups), costs.argmin(axis=1).tolist(), strict=True))
    return [measure.outputs[names[group]] for group in groups], float(costs.min(axis=1).sum())


def counted(source: DiscreteSource, joint: np.ndarray) -> np.ndarray:
    """Return records per cell where they are known, else the masses."""
    return joint if source.records is None else joint * (source.records / source.law.sum())


def grouped_table(source: DiscreteSource, counts: np.ndarray, units: str) -> Counts:
    """Return groups of the records of a source, of which those are counted where that may be.

    Key letters are not parted: each record of a group is as likely as any other.
    """
    countable = source.records is not None and not source.weighted
    masses = counted(source, source.joint).sum(axis=1)
    sizes = counts.sum(axis=0) if countable else None
    return Counts(counts, units, masses, sizes, origins=sizes)


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
    for i, criterion in enumerate(criteria):
        refuse_hopeless(source, i, criterion, units)


def refuse_hopeless(source: DiscreteSource, i: int, criterion: Criterion, units: str) -> None:
    """Refuse the i-th criterion if not even one group of all records satisfies it."""
    whole_table = counted(source, source.joint.sum(axis=1, keepdims=True))
    if not allowed(source, [criterion], whole_table, units)[0]:
        most = 2 ** entropy(whole_table.ravel())
        problem = f"{criterion!r} fails even with all records in one group"
        remedy = f"relax it: ℓ is {most:.4g} and k {whole_table.sum():,.0f} there"
        raise InputError("criteria", problem, remedy, where=i)
