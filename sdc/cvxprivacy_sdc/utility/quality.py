"""Quality of a randomised table: figures before, as released, and corrected by the channel.

Each figure is a function T of the counts n(w, x).  As released it is T of the released counts;
corrected it is T of the counts that :meth:`cvxprivacy.Channel.estimate` has for each w.  Errors
are those of T's linear part, the influence ψ(w, x) of one record: exact for margins, the delta
method for correlations and the regression.

* A. van den Hout and P. G. M. van der Heijden, International Statistical Review 70 (2002) 269–288;
* J. M. Gouweleeuw et al., Journal of Official Statistics 14 (1998) 463–478.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, combinations_with_replacement
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.exact import is_sparse
from cvxprivacy.extras import pd
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.model.information import mutual_information
from cvxprivacy.release.channel import Channel
from cvxprivacy.tables.bins import Bins, middles_of
from cvxprivacy.tables.counting import count_letters
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.labels import shown
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.tables.values import ranked
from cvxprivacy.text import aligned
from cvxprivacy.validation import present
from cvxprivacy_sdc.utility.corrected import ColumnPram, Randomisation, Released

__all__ = ["Figure", "Quality", "quality"]

KINDS = ("one-way", "two-way", "correlation", "regression")
MOST_CELLS = 2_000_000  # numbers of all combinations of values, for PRAM of each column
BATCH = 1_000_000  # numbers that are handled at once
LISTED = 12  # correlations and coefficients in words

_DRAWN = "standard errors are of independent draws; balanced ones scatter otherwise"
_DEALT = (
    "whole counts are dealt out: standard errors are of which records of a cell move, and who has "
    "this channel has the original counts of its cells"
)

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Figure:
    """One figure of a table, before and after, with what it is off by.

    Attributes
    ----------
    kind : {"one-way", "two-way", "correlation", "regression"}
    name : str
    before : float or None
        Of the original table: a number of records, a correlation, or a coefficient; None where it
        has none, as of columns that are constant or depend on each other.
    released : float or None
        Of the released table as it is; None where a value that a coefficient is of is not released.
    corrected : float or None
        Of the counts that are estimated from it; None where it does not determine them.
    standard_error : float or None
        Of ``corrected``, over the draws of this table by this channel.
    stated_error : float or None
        Of ``corrected``, as :meth:`cvxprivacy.Channel.estimate` has it from the released table
        alone, the chance by which the original records are a sample in it.
    error : float or None
        Of ``released``: root of the mean squared distance from ``before``, over the draws.
    pram_error, pram_standard_error : float or None
        ``error`` and ``standard_error`` by the PRAM that changes as many records.

    Examples
    --------
    >>> Figure("one-way", "smokes = yes", 40.0, 42.0, 40.0, 3.75, 7.2, 3.6).error
    3.6
    """

    kind: str
    name: str
    before: float | None
    released: float | None
    corrected: float | None
    standard_error: float | None
    stated_error: float | None
    error: float | None
    pram_error: float | None = None
    pram_standard_error: float | None = None


@dataclass(frozen=True, eq=False)
class Quality(FrozenFields):
    """Figures of a table before and after its release, as :func:`quality` returns them.

    It has counts of the confidential column: who reads it may read the original table.

    Attributes
    ----------
    figures : list of Figure
    records : int
    changed : float
        Share of the records that the channel changes on average; PRAM changes as many.
    information, pram_information : float or None
        I(W; X̂) in bits, of the channel and of PRAM; None without W, and without PRAM.
    notes : list of str

    Examples
    --------
    One answer in ten is turned over, of those who are ill and of the others:

    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy.tables import TableSchema
    >>> import cvxprivacy_sdc as sdc
    >>> people = pd.DataFrame({"ill": list("yyyynnnn") * 20, "smokes": list("yyynnnny") * 20})
    >>> schema = TableSchema(key=("smokes",), sensitive=("ill",))
    >>> asked = cpv.Channel([[0.9, 0.1], [0.1, 0.9]], inputs="yn", outputs="yn", schema=schema)
    >>> after = sdc.quality(people, asked.apply(people, seed=1), asked)
    >>> after, after.summary["correlation"]["worst"]
    (Quality(9 figures, 160 records), 'ill = y ~ smokes = y')
    >>> [figure.before for figure in after.figures if figure.kind == "correlation"]
    [0.5]
    """

    figures: list[Figure]
    records: int
    changed: float
    information: float | None
    pram_information: float | None
    notes: list[str]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each figure, a pandas frame."""
        table = pd.DataFrame([asdict(figure) for figure in self.figures])
        return table.astype(dict.fromkeys(table.columns[2:], float))

    @property
    def summary(self) -> dict[str, dict[str, Any]]:
        """By kind: how many figures, how many are determined, median errors, and the worst one.

        ``nearer`` is how many are nearer to the original corrected than as released, on average;
        ``within`` how many of the corrected ones are within two standard errors of the original.
        """
        table = self.to_frame()
        return {kind: _summed(table[table["kind"] == kind]) for kind in KINDS
                if (table["kind"] == kind).any()}  # fmt: skip

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it, counts of the confidential column among it."""
        return {**asdict(self), "summary": self.summary}

    def __repr__(self) -> str:
        return f"Quality({len(self.figures):,} figures, {self.records:,} records)"

    def __str__(self) -> str:
        leaks = [
            "" if bits is None else f"; I(W; X̂) {bits:.4f} bits"
            for bits in (self.information, self.pram_information)
        ]
        lines = [f"{self!r}: {self.changed:.2%} of the records change{leaks[0]}"]
        if any(figure.pram_error is not None for figure in self.figures):
            lines.append(f"  PRAM: each column by itself, invariant, as many changes{leaks[1]}")
        head = ["medians", "figures", "error", "by PRAM", "determined", "std. error", "by PRAM",
                "nearer", "within 2"]  # fmt: skip
        rows = [
            [kind, f"{each['figures']:,}", _short(each["error"]), _short(each["pram_error"]),
             f"{each['determined']:,}", _short(each["standard_error"]),
             _short(each["pram_standard_error"]), f"{each['nearer']:,}", f"{each['within']:,}"]
            for kind, each in self.summary.items()
        ]  # fmt: skip
        lines += [f"  {line}" for line in aligned([head, *rows])]
        worst = {f"worst {kind}": each["worst"] for kind, each in self.summary.items()}
        table = [figure for figure in self.figures if figure.kind in KINDS[2:]][:LISTED]
        named = {f.name: f for f in self.figures}
        listed = [[title, name, *_row(named[name])] for title, name in worst.items()]
        listed += [[f.kind, f.name, *_row(f)] for f in table if f.name not in worst.values()]
        head = ["", "", "before", "as released", "corrected"]
        lines += [f"  {line}" for line in aligned([head, *listed])]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _row(figure: Figure) -> list[str]:
    """Return the cells of a figure in words."""
    digits = ",.0f" if figure.kind in KINDS[:2] else ".4f"
    numbers = (figure.before, figure.released, figure.corrected)
    before, after, corrected = ("–" if n is None else f"{n:{digits}}" for n in numbers)
    if figure.corrected is None:
        return [before, after, "not determined"]
    return [before, after, f"{corrected} ± {_short(figure.standard_error)}"]


def _summed(table: pd.DataFrame) -> dict[str, Any]:
    """Return the summary of figures of one kind."""
    determined = table[table["corrected"].notna()]
    distance = (determined["corrected"] - determined["before"]).abs()
    medians = {name: table[name].median() for name in ("error", "pram_error")}
    columns = ("standard_error", "pram_standard_error")
    medians |= {name: determined[name].median() for name in columns}
    off = (table["released"] - table["before"]).abs().fillna(-1.0)
    return {
        "figures": len(table),
        "determined": len(determined),
        **{name: None if np.isnan(value) else float(value) for name, value in medians.items()},
        "nearer": int((determined["standard_error"] < determined["error"]).sum()),
        "within": int((distance <= 2 * determined["standard_error"] + 1e-9).sum()),
        "worst": str(table["name"].iloc[int(off.to_numpy().argmax())]),
    }


def quality(
    original: Any,
    released: Any,
    channel: Channel,
    *,
    scores: Mapping[Hashable, Mapping[Any, float]] | None = None,
) -> Quality:
    """Set figures of a released table beside those of the original, as they are and corrected.

    The figures are the margins of each key column, and of each two columns of which one is a key
    column, in records; the correlations of columns with scores; and the regression by least squares
    of each confidential column on the key.  Who knows the channel corrects all of them: margins
    without bias, the others but for terms of the second order.

    Parameters
    ----------
    original : frame of any kind
        The table that was released; weights are passed over, records count.
    released : frame of any kind
        With the key columns as the channel released them, and the confidential ones as they were.
    channel : Channel
        That made it, with the columns of the table in its schema.
    scores : mapping of column to mapping of value to number, optional
        Of ordered categories.  By default numbers are themselves, intervals their middles, and of
        two values the second is 1; other columns have none: they are no part of correlations, and
        indicators of all values but the first in a regression.  Without scores a confidential
        column is regressed as the indicator of its most frequent value.

    Returns
    -------
    Quality
        With the figures, ``to_frame()`` and a table in words.

    Raises
    ------
    InputError
        For a channel without columns, one that releases letters for a decoder or after earlier
        releases, a sparse one; tables without its columns, with records that it does not take or
        has not released, or of different records; scores that leave out a value.

    Notes
    -----
    ``standard_error`` is of independent draws, or of the whole counts that a channel deals out.
    Balanced draws have the same mean and scatter otherwise, as a rule less.  Groups that were
    merged after a look at the drawn table are taken as if the channel had always merged them.

    A channel of least leakage often gives several letters the same row, or proportional columns:
    a figure that tells them apart is then *not determined* by any release through it, however
    many records there are; likewise one that is told by a canonical correlation of less than 1/√N.
    ``KeepProbability(p)`` with p above ½ makes a channel that can be inverted.

    PRAM draws each column by itself by an invariant matrix, as sdcMicro's ``pram`` does, with the
    probability that makes the same share of records change.  Its errors are exact, as the channel's
    are: nothing is drawn.

    Examples
    --------
    Nine in ten answers stay.  Of 40 smokers 0.9 · 40 + 0.1 · 60 = 42 are expected to be released:

    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy.tables import TableSchema
    >>> import cvxprivacy_sdc as sdc
    >>> people = pd.DataFrame({"smokes": ["yes"] * 40 + ["no"] * 60})
    >>> asked = cpv.Channel([[0.9, 0.1], [0.1, 0.9]], inputs=["yes", "no"], outputs=["yes", "no"],
    ...                     schema=TableSchema(key=("smokes",)))
    >>> after = sdc.quality(people, asked.apply(people, seed=5), asked)
    >>> figure = after.figures[1]
    >>> figure.name, figure.before, figure.released
    ('smokes = yes', 40.0, 47.0)

    Corrected it is (47 − 0.1 · 100)/(0.9 − 0.1), whose standard error is √(100 · 0.9 · 0.1)/0.8:

    >>> round(figure.corrected, 6), round(figure.standard_error, 6)
    (46.25, 3.75)
    """
    table = _Tables.of(original, released, channel, scores or {})
    drawn = Released(channel, table.contexts, table.letters, table.before)
    _refuse_impossible(table, drawn.released(table.before))
    size, notes = table.before.sum(), list[str]()
    changed = 1 - drawn.kept(table.before) / size
    pram: _Pram | None = None
    try:
        pram = _Pram.of(table, changed)
    except InputError as error:
        notes.append(f"no PRAM beside it: {error.problem}")
    figures = [
        figure
        for statistic in _statistics(table)
        for figure in _figures(statistic, table, drawn, pram)
    ]
    if undefined := sum(figure.before is None for figure in figures):
        notes.append(f"{undefined:,} figures are not defined in the original: of columns that are "
                     "constant, or that depend on each other")  # fmt: skip
    if lost := sum(f.corrected is None and f.before is not None for f in figures):
        notes.append(
            f"{lost:,} figures are not determined: so many records, released by this channel, tell "
            "nothing of them; KeepProbability(p), p above ½, makes one that can be inverted"
        )
    notes.append(_DEALT if drawn.dealt else _DRAWN)
    information = _information(table, drawn.released(table.before))
    by_pram = None if pram is None else _information(table, pram.how.released(pram.counts))
    return Quality(figures, int(size), changed, information, by_pram, notes)


# ---- the tables --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Column:
    """A column's values in order, and their scores if they have any."""

    name: str
    levels: list[Any]
    scores: Numbers | None

    def indicator(self, level: int) -> tuple[str, Numbers]:
        """Return 1 for one value, and what it is called."""
        return f"{self.name} = {shown(self.levels[level])}", np.eye(len(self.levels))[level]

    def scored(self) -> tuple[str, Numbers] | None:
        """Return the scores, and what they are called: of two values the second."""
        if self.scores is None or self.scores.tolist() == [0, 1]:
            return None if self.scores is None else self.indicator(1)
        return self.name, self.scores


@dataclass(frozen=True, eq=False)
class _Cells:
    """Where the columns' values are: of each column a code per context, or per letter."""

    codes: list[npt.NDArray[np.intp]]  # shapes (contexts, 1) or (1, letters)
    shape: tuple[int, int]

    def spread(self, values: Numbers, column: int) -> Numbers:
        """Return a number for each cell, by its value in a column."""
        return np.asarray(np.broadcast_to(values[self.codes[column]], self.shape), float)


@dataclass(frozen=True, eq=False)
class _Tables:
    """Both tables, counted: contexts are what is released as it is, letters are those of the key.

    Attributes
    ----------
    contexts : list of dict of axis to letter
    letters : list
        Inputs and outputs of the channel.
    before, after : ndarray, shape (contexts, letters)
    columns : list of _Column
        Those of the key last.
    cells : _Cells
    keys, hidden : list of int
        Which columns are of the key, and which confidential.
    """

    contexts: list[dict[str, Any]]
    letters: list[Any]
    before: Numbers
    after: Numbers
    columns: list[_Column]
    cells: _Cells
    keys: list[int]
    hidden: list[int]

    @classmethod
    def of(
        cls, original: Any, released: Any, channel: Any, scores: Mapping[Hashable, Any]
    ) -> _Tables:
        """Count two tables."""
        schema = _schema_of(channel)
        roles = {"w": schema.sensitive, "z": schema.side if "z" in channel.encoder else ()}
        roles = {axis: names for axis, names in roles.items() if names}
        place = channel.encoder.index("x")
        inputs = [x if channel.encoder == "x" else x[place] for x in channel.inputs]
        kept: dict[str, Any] = {
            part: {n: how for n, how in getattr(schema, part).items() if n not in schema.key}
            for part in ("bins", "groups")
        }
        coding = replace(schema, **kept, missing="level")
        before = _counted("original", original, schema, roles, inputs)
        after = _counted("released", released, coding, roles, channel.outputs)
        letters = list(dict.fromkeys([*inputs, *channel.outputs]))
        contexts = ranked({context for context, _ in [*before, *after]}, None)
        places = {x: i for i, x in enumerate(letters)}, {c: i for i, c in enumerate(contexts)}
        tables = [np.zeros((len(contexts), len(letters))) for _ in (before, after)]
        for table, counts in zip(tables, (before, after), strict=True):
            for (context, letter), count in counts.items():
                table[places[1][context], places[0][letter]] = count
        _refuse_other_records(tables[0], tables[1], contexts)
        if not tables[0].any():
            raise InputError("original", "no records", "pass the table that was released")
        for name in scores:
            present(name, [n for group in (*roles.values(), schema.key) for n in group], "scores")
        groups = list(roles.values())
        others = [
            sum(map(_values, context, groups), start=tuple[Any, ...]()) for context in contexts
        ]
        keys = [_values(letter, schema.key) for letter in letters]
        columns, codes = [], []
        for names, rows, shape in (
            ([name for group in groups for name in group], others, (-1, 1)),
            (list(schema.key), keys, (1, -1)),
        ):
            for i, name in enumerate(names):
                column, code = _column(name, [row[i] for row in rows], schema, scores)
                columns.append(column)
                codes.append(code.reshape(shape))
        first = len(columns) - len(schema.key)
        return cls(
            [dict(zip(roles, context, strict=True)) for context in contexts],
            letters,
            tables[0],
            tables[1],
            columns,
            _Cells(codes, (len(contexts), len(letters))),
            list(range(first, len(columns))),
            list(range(len(schema.sensitive))),
        )


def _schema_of(channel: Any) -> TableSchema:
    """Return the columns of a channel; one whose tables cannot be set side by side is refused."""
    if not isinstance(channel, Channel):
        problem = f"a {type(channel).__name__}"
        raise InputError("channel", problem, "pass a Channel of the columns of a table")
    if channel.schema is None:
        raise InputError("channel", "it has no schema", "make it with the columns of a table")
    if channel.decoder is not None or channel.schema.earlier:
        problem = "it releases letters for a decoder, or after earlier releases"
        raise InputError("channel", problem, "pass one that releases the key columns, and once")
    if is_sparse(channel.matrix):
        problem = f"a sparse matrix of {len(channel.inputs):,} letters"
        raise InputError("channel", problem, "put letters together: their law is too long for it")
    return channel.schema


def _counted(
    argument: str, frame: Any, schema: TableSchema, roles: Mapping[str, Sequence[str]],
    letters: Sequence[Any],
) -> dict[tuple[tuple[Any, ...], Any], int]:  # fmt: skip
    """Return how many records have each context and letter; other letters are refused."""
    groups = [*roles.values(), schema.key]
    names = as_narwhals(frame, argument).lazy().collect_schema().names()
    for name in (name for group in groups for name in group):
        present(name, names, argument)
    counts, allowed = dict[tuple[tuple[Any, ...], Any], int](), set(letters)
    for label, count in count_letters(schema, schema.counted_records(frame), groups).items():
        *context, letter = label if roles else (label,)
        if letter not in allowed:
            problem = f"{count:,} records of {shown(letter)}, which the channel does not have"
            remedy = "pass the two tables before and after this channel"
            raise UnknownValueError(argument, problem, remedy, value=letter)
        counts[tuple(context), letter] = count
    return counts


def _refuse_other_records(before: Numbers, after: Numbers, contexts: Sequence[Any]) -> None:
    """Refuse tables whose records differ in what is released as it is."""
    originally, now = before.sum(axis=1), after.sum(axis=1)
    for c in np.flatnonzero(originally != now)[:1]:
        of = ", ".join(map(shown, contexts[c])) or "the table"
        problem = f"{now[c]:,.0f} records of {of} where the original has {originally[c]:,.0f}"
        remedy = "pass the table that the channel made of the original"
        raise InputError("released", problem, remedy, value=float(now[c]))


def _refuse_impossible(table: _Tables, expected: Numbers) -> None:
    """Refuse a released table that the channel never makes of the original."""
    for c, x in np.argwhere((table.after > 0) & (expected <= 0))[:1]:
        problem = (
            f"{table.after[c, x]:,.0f} records of {shown(table.letters[x])}, which the channel "
            "never makes of these records"
        )
        remedy = "pass the table that the channel made of the original"
        raise UnknownValueError("released", problem, remedy, value=table.letters[x])


def _values(letter: Any, names: Sequence[str]) -> tuple[Any, ...]:
    return (letter,) if len(names) == 1 else letter


def _column(
    name: str, values: Sequence[Any], schema: TableSchema, scores: Mapping[Hashable, Any]
) -> tuple[_Column, npt.NDArray[np.intp]]:
    """Return a column, and the number of each of some values in it."""
    bins = schema.bins.get(name)
    levels = ranked(set(values), bins.labels if isinstance(bins, Bins) else None)
    middles = middles_of(bins, levels)
    numbers: Numbers | None = None
    if name in scores:
        for level in levels:
            if level not in scores[name]:
                remedy = "pass a number for every value"
                raise InputError("scores", f"none of {shown(level)}", remedy, where=name)
        numbers = np.array([scores[name][level] for level in levels], float)
        if not np.isfinite(numbers).all():
            raise InputError("scores", "one that is not finite", "pass numbers", where=name)
    elif bins is not None and set(levels) <= set(middles):
        numbers = np.array([middles[level] for level in levels])
    elif all(isinstance(level, Number) for level in levels):
        numbers = np.array(levels, float)
    elif len(levels) == 2 and None not in levels:
        numbers = np.array([0.0, 1.0])
    places = {level: i for i, level in enumerate(levels)}
    return _Column(name, levels, numbers), np.array([places[v] for v in values], np.intp)


def _information(table: _Tables, counts: Numbers) -> float | None:
    """Return I(W; X̂) in bits of expected counts, Z summed out."""
    if not table.hidden:
        return None
    places: dict[Any, int] = {}
    classes = [places.setdefault(context["w"], len(places)) for context in table.contexts]
    joint = np.zeros((len(places), counts.shape[1]))
    np.add.at(joint, classes, counts)
    return mutual_information(joint)


@dataclass(frozen=True, eq=False)
class _Pram:
    """PRAM on the combinations of all values of the key columns that the original has."""

    how: ColumnPram
    cells: _Cells
    counts: Numbers

    @classmethod
    def of(cls, table: _Tables, changed: float) -> _Pram:
        """Return the PRAM that changes as many records."""
        met = table.before.any(axis=0)
        codes = [table.cells.codes[i][0] for i in table.keys]
        values = [np.unique(code[met]) for code in codes]
        sizes = [len(value) for value in values]
        if (size := len(table.contexts) * int(np.prod(sizes, dtype=float))) > MOST_CELLS:
            problem = f"the values of the columns have {size:,} combinations"
            raise InputError("channel", problem, "put values together")
        at = [np.searchsorted(value, code[met]) for value, code in zip(values, codes, strict=True)]
        counts = np.zeros((len(table.contexts), int(np.prod(sizes))))
        np.add.at(counts.T, np.ravel_multi_index(at, sizes), table.before[:, met].T)
        grid = np.meshgrid(*values, indexing="ij")
        others = table.cells.codes[: table.keys[0]]
        cells = _Cells([*others, *(axis.reshape(1, -1) for axis in grid)], counts.shape)
        return cls(ColumnPram(counts, sizes, changed), cells, counts)


# ---- the figures -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Margin:
    """Numbers of records of some combinations of values of one or two columns.

    Like a correlation or a regression, it has figures that are functions of the counts in cells:
    their ``values``, the ``influence`` of one more record of each cell on them, shape (contexts,
    letters, figures), and which of them the released law has ``determined``.
    """

    kind: str
    names: list[str]
    columns: tuple[int, ...]
    combinations: npt.NDArray[np.intp]  # shape (figures, columns)

    def influence(self, cells: _Cells, counts: Numbers) -> Numbers:
        """Return 1 for the cells of a combination."""
        on = np.ones((*cells.shape, len(self.combinations)), bool)
        for column, levels in zip(self.columns, self.combinations.T, strict=True):
            on &= cells.codes[column][..., None] == levels
        return on.astype(float)

    def values(self, cells: _Cells, counts: Numbers) -> Numbers:
        """Return the sums."""
        return np.asarray(np.tensordot(counts, self.influence(cells, counts), 2))

    def determined(self, cells: _Cells, drawn: Released) -> npt.NDArray[np.bool_]:
        """Tell which sums are determined."""
        return drawn.determined(self.influence(cells, np.zeros(cells.shape)))


@dataclass(frozen=True, eq=False)
class _Moments:
    """What is determined by means of products of variables: each a column and its numbers."""

    kind: str
    names: list[str]
    variables: list[tuple[int, Numbers]]

    def _spread(self, cells: _Cells) -> Numbers:
        """Return the constant 1 and the variables, shape (contexts, letters, 1 + variables)."""
        spread = [cells.spread(numbers, column) for column, numbers in self.variables]
        return np.stack([np.ones(cells.shape), *spread], axis=2)

    def determined(self, cells: _Cells, drawn: Released) -> npt.NDArray[np.bool_]:
        """Tell whether all products of two variables are determined."""
        spread = self._spread(cells)
        all_are = all(
            drawn.determined((spread[:, :, i] * spread[:, :, j])[..., None])[0]
            for i, j in combinations_with_replacement(range(spread.shape[2]), 2)
        )
        return np.full(len(self.names), all_are)


class _Correlation(_Moments):
    """r of two variables."""

    def _standardised(self, cells: _Cells, counts: Numbers) -> Numbers:
        spread, law = self._spread(cells)[:, :, 1:], counts / counts.sum()
        centred = spread - np.tensordot(law, spread, 2)
        variances = np.tensordot(law, centred**2, 2)
        with np.errstate(all="ignore"):  # of a column that is constant none is
            return np.where(variances > 0, centred / np.sqrt(variances), np.nan)

    def values(self, cells: _Cells, counts: Numbers) -> Numbers:
        """Return Σ p z₁ z₂."""
        z = self._standardised(cells, counts)
        return np.tensordot(counts / counts.sum(), z[:, :, :1] * z[:, :, 1:], 2)

    def influence(self, cells: _Cells, counts: Numbers) -> Numbers:
        """Return (z₁ z₂ − r (z₁² + z₂²)/2)/N."""
        z, r = self._standardised(cells, counts), self.values(cells, counts)
        product, squares = z[:, :, :1] * z[:, :, 1:], (z**2).sum(axis=2, keepdims=True)
        return np.asarray((product - r / 2 * squares) / counts.sum())


class _Regression(_Moments):
    """β of the last variable on a constant and the others, by least squares."""

    def _solved(self, cells: _Cells, counts: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return β, the inverse of the moments of the regressors, and all variables."""
        spread = self._spread(cells)
        x = spread[:, :, :-1]
        moments = np.tensordot(counts[..., None] * x, spread, ([0, 1], [0, 1])) / counts.sum()
        square, size = moments[:, :-1], len(moments)
        scale = np.sqrt(np.maximum(square.diagonal(), np.finfo(float).tiny))
        if np.linalg.matrix_rank(square / scale / scale[:, None], tol=1e-9) < size:
            return np.full(size, np.nan), np.full((size, size), np.nan), spread
        inverse = np.linalg.inv(square / scale / scale[:, None]) / scale / scale[:, None]
        return inverse @ moments[:, -1], inverse, spread

    def values(self, cells: _Cells, counts: Numbers) -> Numbers:
        """Return β; NaN where the regressors of this table depend on each other."""
        return self._solved(cells, counts)[0]

    def influence(self, cells: _Cells, counts: Numbers) -> Numbers:
        """Return M⁻¹ x (y − xβ)/N."""
        beta, inverse, spread = self._solved(cells, counts)
        x, y = spread[:, :, :-1], spread[:, :, -1]
        residual = y - x @ beta
        return np.asarray((x * residual[..., None]) @ inverse / counts.sum())


_Statistic = _Margin | _Correlation | _Regression


def _statistics(table: _Tables) -> Iterator[_Statistic]:
    """Yield what is compared: margins in parts that fit into memory."""
    cells, columns, keys = table.cells, table.columns, table.keys
    part = max(1, BATCH // int(np.prod(cells.shape)))
    groups: list[tuple[int, ...]] = [(key,) for key in keys]
    groups += [pair for pair in combinations(range(len(columns)), 2) if pair[1] in keys]
    for group in groups:
        codes = [np.broadcast_to(cells.codes[i], cells.shape).ravel() for i in group]
        levels_of = np.unique(np.array(codes), axis=1).T
        for first in range(0, len(levels_of), part):
            some = levels_of[first : first + part]
            names = [
                ", ".join(columns[i].indicator(j)[0] for i, j in zip(group, levels, strict=True))
                for levels in some
            ]
            yield _Margin(KINDS[len(group) - 1], names, group, some)
    variables = {i: of.scored() for i, of in enumerate(columns) if len(_met(table, i)) > 1}
    scored = {i: each for i, each in variables.items() if each is not None}
    for a, b in combinations(scored, 2):
        if b in keys:
            titles = f"{scored[a][0]} ~ {scored[b][0]}"
            yield _Correlation(KINDS[2], [titles], [(a, scored[a][1]), (b, scored[b][1])])
    regressors = [(i, *term) for i in keys if i in variables for term in _terms(table, i)]
    yield from (_regression(table, i, regressors) for i in table.hidden if i in variables)


def _met(table: _Tables, column: int) -> npt.NDArray[np.intp]:
    """Return the codes of the values that the original has in a column."""
    code = np.broadcast_to(table.cells.codes[column], table.cells.shape)
    return np.unique(code[table.before > 0])


def _regression(table: _Tables, response: int, regressors: Sequence[Any]) -> _Regression:
    """Return the regression of a confidential column on the key."""
    column = table.columns[response]
    records = np.bincount(
        np.broadcast_to(table.cells.codes[response], table.cells.shape).ravel(),
        table.before.ravel(),
    )
    title, numbers = column.scored() or column.indicator(int(records.argmax()))
    names = [f"{title} on {name}" for name in ("constant", *(r[1] for r in regressors))]
    variables = [(i, values) for i, _, values in regressors]
    return _Regression(KINDS[3], names, [*variables, (response, numbers)])


def _terms(table: _Tables, column: int) -> list[tuple[str, Numbers]]:
    """Return the scores of a column, or indicators of the values that are met but the first."""
    of = table.columns[column]
    scored = of.scored()
    if scored is not None:
        return [scored]
    return [of.indicator(int(level)) for level in _met(table, column)[1:]]


def _figures(
    statistic: _Statistic, table: _Tables, drawn: Released, pram: _Pram | None
) -> Iterator[Figure]:
    """Yield the figures of a statistic."""
    cells, before, after = table.cells, table.before, table.after
    sure = statistic.determined(cells, drawn)
    weights = drawn.corrected(statistic.influence(cells, before))
    back = drawn.estimated(after)
    stated = drawn.corrected(statistic.influence(cells, back))
    law = after / after.sum()
    squares = np.tensordot(law, stated**2, 2) - np.tensordot(law, stated, 2) ** 2
    columns = [
        statistic.values(cells, before),
        statistic.values(cells, after),
        np.where(sure, statistic.values(cells, back), np.nan),
        np.where(sure, np.sqrt(drawn.variance(weights, before)), np.nan),
        np.where(sure, np.sqrt(after.sum() * np.maximum(squares, 0.0)), np.nan),
        _error(statistic, cells, before, drawn),
    ]
    if pram is not None:
        influence = pram.how.corrected(statistic.influence(pram.cells, pram.counts))
        columns += [
            _error(statistic, pram.cells, pram.counts, pram.how),
            np.sqrt(pram.how.variance(influence, pram.counts)),
        ]
    for name, *numbers in zip(statistic.names, *columns, strict=True):
        values = [None if np.isnan(number) else float(number) for number in numbers]
        values[2:] = [None if values[0] is None else value for value in values[2:]]
        yield Figure(statistic.kind, name, *values)


def _error(statistic: _Statistic, cells: _Cells, before: Numbers, how: Randomisation) -> Numbers:
    """Return the root of the mean squared distance of figures as released."""
    law = how.released(before)
    bias = statistic.values(cells, law) - statistic.values(cells, before)
    return np.sqrt(bias**2 + how.variance(statistic.influence(cells, law), before))
