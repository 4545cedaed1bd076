"""A released table, held against what was asked: the law is proved, a table is a draw of it.

A criterion per released letter, a cap or a budget that the law satisfies may be broken by the
table that is drawn, where few records share a letter.  Here each is evaluated on the counts of the
table itself.  If the table is to satisfy them, its counts are designed whole
(:class:`~cvxprivacy_sdc.WholeCounts`) where that can be; else groups of a drawn table that break
one are merged (``merging``).  Drawing again until a table fits is not offered: the table would then
not be one of the channel that the proof is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.additive import AdditiveCost, Cost, Part
from cvxprivacy.certificates.certificate import refuse_other
from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.base import criteria_listed
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.errors import InputError
from cvxprivacy.exact import rational
from cvxprivacy.extras import nw
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frozen import frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.one_symbol import SLACK
from cvxprivacy.release.channel import Channel, MergedChannel
from cvxprivacy.results.informed import Informed, informed_by_table
from cvxprivacy.results.recount import other_records, table_record
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.validation import one_of
from cvxprivacy_sdc.errors import BrokenTableError
from cvxprivacy_sdc.releases.check import Check, as_typed, asked, lines_of
from cvxprivacy_sdc.releases.merging import Merging, merging
from cvxprivacy_sdc.releases.released_law import CountedLaw, ReleasedLaw, law_of
from cvxprivacy_sdc.releases.table_design import Undesigned, solved_law, whole_counts
from cvxprivacy_sdc.whole_counts.nearness import steps_apart
from cvxprivacy_sdc.whole_counts.solution import TableSolution
from cvxprivacy_sdc.whole_counts.tally import DrawnCounts, drawn_counts

__all__ = ["DrawnTable", "release_table"]


@dataclass(frozen=True, eq=False)
class DrawnTable:
    """What a channel drew of a table, what was asked of it, and the channel that writes it.

    :func:`release_table` returns one.

    Attributes
    ----------
    problem : ChannelProblem
        What was asked.
    solution : Solution
        Its optimum, which drew.
    counts : DrawnCounts
        Of the table that is released: after groups were merged.
    merging : Merging or None
        How groups were merged, where ``ensure="table"`` found some that break a criterion.
    drawn_distortion : Fraction
        Of the table before groups were merged, where some were.
    designed : TableSolution or None
        The whole counts that are released, where the table was designed and not drawn.
    undesigned : Undesigned or None
        Why it was drawn, where ``ensure="table"`` asked for the other.
    of_table : tuple of Criterion
        Criteria that no law satisfies, as k-anonymity, which the table is to satisfy.
    frame : frame or None
        The released table, as :func:`release_table` returns it.

    Examples
    --------
    By the law every released age leaves as much open as three equally likely records would; in the
    table of this draw 40 leaves two, as either of those who were 40 may be the one who still is:

    >>> import cvxprivacy as cpv, pandas as pd
    >>> import cvxprivacy_sdc as sdc
    >>> table = pd.DataFrame({"age": [30, 30, 40, 40, 50, 50], "ill": list("nnyyny")})
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    >>> measure = cpv.absolute_error(source.x)
    >>> problem = cpv.MinimumDistortion(source, measure, [cpv.RecordEntropy(3)])
    >>> drawn = sdc.release_table(problem, table, seed=7)
    >>> drawn.frame["age"].tolist(), drawn.holds
    ([30, 30, 30, 40, 50, 50], False)
    >>> [check] = drawn.broken
    >>> round(check.law, 6), check.table
    (3.0, 2.0)

    ``ensure="table"`` merges groups of the same draw, and says which:

    >>> merged = sdc.release_table(problem, table, seed=7, ensure="table")
    >>> merged.frame["age"].tolist(), merged.holds, merged.merging.moves
    ([30, 30, 30, 50, 50, 50], True, [(40, 50, 1)])
    """

    problem: ChannelProblem
    solution: Solution
    counts: DrawnCounts
    merging: Merging | None = None
    drawn_distortion: Fraction = Fraction(0)
    frame: Any = None
    designed: TableSolution | None = None
    of_table: tuple[Criterion, ...] = ()
    undesigned: Undesigned | None = None

    @classmethod
    def of(
        cls,
        problem: ChannelProblem,
        solution: Solution,
        frame: Any,
        *,
        seed: int,
        row_id: Any = None,
        ensure: str = "law",
        draw: str = "independent",
        of_table: Sequence[Criterion] = (),
        time_limit: float | None = None,
    ) -> DrawnTable:
        """Draw the table that a problem's source was counted from; see :func:`release_table`.

        Parameters
        ----------
        problem : ChannelProblem
            Of one law, without side information.
        solution : Solution
            Of the problem.
        frame : frame of any kind
            The table.
        seed : int
            Of the draws.
        row_id : column name, optional
            Which names each record.
        ensure : {"law", "table"}
            What is to satisfy the criteria.
        draw : {"independent", "balanced"}
            As of :meth:`cvxprivacy.Channel.apply`.
        of_table : sequence of Criterion
            Criteria that no law satisfies, for ``ensure="table"``.
        time_limit : float, optional
            Seconds for the design of whole counts.

        Raises
        ------
        InputError
            For a solution of another problem.
        BrokenTableError
            If no merging of groups makes the table satisfy the criteria.
        """
        one_of(ensure, "ensure", "law", "table")
        refuse_other(solution.certificate, problem, "solution")
        channel = solution.channel
        if channel is None or problem.side_information is not None or problem.alphabet.several:
            remedy = "pass a solved problem of one law, without side information"
            raise InputError("problem", "no channel that draws this table", remedy)
        record = table_record(problem.source, problem.alphabet.encoder_inputs)
        apart = other_records(solution.certificate.table, record)
        if apart or channel.outputs != problem.alphabet.outputs:
            wrong, remedy = "of letters or columns of another table", "pass this problem's own"
            raise InputError("solution", wrong, remedy)
        kept = with_values(problem, frame)
        how: dict[str, Any] = {"seed": seed, "row_id": row_id, "draw": draw}

        def drawn_by(some: Channel) -> DrawnTable:
            counts = drawn_counts(some, kept, problem.source, **how)
            _refuse_other_records(counts.total, counts.letters, problem.source)
            return cls(problem, solution, counts, of_table=tuple(of_table))

        if ensure == "law":
            return drawn_by(channel)
        designed, why = None, _without_design(draw, frame)
        if why is None:
            _refuse_another(frame, problem.source)  # before counts are designed for minutes
            counted = whole_counts(problem, of_table, solution, seed=seed, time_limit=time_limit)
            if isinstance(counted, Undesigned):
                why = counted
            else:
                assert counted.channel is not None
                designed = replace(drawn_by(counted.channel), designed=counted)
                if counted.status != "feasible" or counted.budget is not None:
                    return designed
        try:
            mended = drawn_by(channel)._mended()
        except BrokenTableError:
            if designed is None:
                raise
            return designed
        if designed is None:
            return replace(mended, undesigned=why)
        if designed.distortion <= mended.distortion:
            return designed
        # a table of one group may be all that was met
        dearer = Undesigned("dearer", {"designed": float(designed.distortion)})
        return replace(mended, undesigned=dearer)

    def _mended(self) -> DrawnTable:
        """Return the table with groups merged until none breaks a criterion."""
        if self.holds is not False:
            return self
        counts, problem = self.counts, self.problem
        source = problem.source
        assert source.schema is not None
        rules = self._rules
        steps = steps_apart(counts.x, counts.outputs, source.schema, source.levels)
        merged = merging(counts, rules, problem.alphabet, _blocked(problem, counts), steps)
        before, after = self.distortion, counts.relabelled(merged.places)
        mended = replace(self, counts=after, merging=merged, drawn_distortion=before)
        if left := [check.stated for check in mended.checks if check.unmet]:
            raise BrokenTableError(int((after.sizes > 0).sum()), left)
        return mended

    @property
    def _rules(self) -> list[Criterion]:
        """The criteria as they were typed."""
        return list(as_typed(self.problem._criteria(), self.of_table).values())

    @property
    def channel(self) -> Channel:
        """What releases this table, with the same seed: whole counts, or the solution's channel,
        merged.
        """
        channel = self.solution.channel if self.designed is None else self.designed.channel
        assert channel is not None
        if self.merging is None:
            return channel
        return channel.relabelled([channel.outputs[y] for y in self.merging.places])

    @property
    def places(self) -> np.ndarray | None:
        """The number of each record's output of ``channel``; None unless drawn in memory."""
        drawn, channel = self.counts.drawn, self.channel
        return channel._places[drawn] if isinstance(channel, MergedChannel) else drawn

    @property
    def broken(self) -> list[Check]:
        """The criteria and caps that the table breaks; budgets and the like bound averages."""
        return [check for check in self.checks if check.breaks]

    @property
    def holds(self) -> bool | None:
        """Whether the table satisfies every criterion and cap; None if it breaks none that a table
        can tell, and some cannot be decided on a table.  A budget bounds an average.
        """
        verdicts = [check.holds for check in self.checks if check.kind != "budget"]
        return False if False in verdicts else None if None in verdicts else True

    @cached_property
    def distortion(self) -> Fraction:
        """The distortion of the table itself, Σ N(w, x, x̂) d / N."""
        return mean_cost(self.problem.alphabet.d.cost, self.counts)

    @cached_property
    def law(self) -> ReleasedLaw:
        """The law of what is released of the table."""
        problem = self.problem
        if self.designed is None:
            return law_of(problem, self.solution, self.merging)
        about = problem.source, problem.alphabet.d, problem.units, True, None
        return CountedLaw(self.channel, *about, self.table, self._rules)

    @property
    def risk(self) -> float:
        """I(W; X̂) of the law of what is released, in the problem's units."""
        return self.law.risk

    @cached_property
    def informed(self) -> Informed | None:
        """What this table tells who knows x, where the randomisation saw W, if only to round."""
        if "w" not in self.channel.encoder:
            return None
        counts = self.counts
        moves = counts.w_at, counts.x_at, counts.y_at
        problem = self.problem
        how: Any = (counts.x, counts.outputs, problem.units, problem.source.names[:2])
        return informed_by_table(moves, counts.masses, *how)

    @property
    def constant(self) -> bool:
        """Whether every record is released as the same letter, which tells nothing."""
        return int((self.counts.sizes > 0).sum()) == 1

    @cached_property
    def checks(self) -> list[Check]:
        """Everything that was asked, in the order of the problem's statement."""
        return asked(self.problem, self.solution, self.law, self, self.of_table)

    @cached_property
    def table(self) -> Counts:
        """The records of the table, as criteria are evaluated at them."""
        counts = self.counts
        sizes = None if counts.weighted else counts.sizes
        moves = counts.w_at, counts.x_at, counts.y_at
        return Counts.of_moves(self.problem.alphabet, moves, counts.masses, sizes)

    def standing(self, rule: Criterion) -> dict[str, Any]:
        """Return how the table stands with a criterion: what a check has of it.

        Parameters
        ----------
        rule : Criterion
            Of the problem, or another one.
        """
        verdict, broken = rule.verdict(self.table), 0
        if verdict.broken is not None:
            broken = int(verdict.broken.sum())
        return {
            "table": verdict.value, "holds": verdict.holds,
            "per_group": verdict.met is not None, "groups": broken,
            "records": int(self.counts.sizes[verdict.broken].sum()) if broken else 0,
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(lines_of(check.document() for check in self.checks))


def _without_design(draw: str, frame: Any) -> Undesigned | None:
    """Return why whole counts are not even tried, whatever is asked of the table."""
    if draw != "independent":
        return Undesigned(draw)
    streamed = isinstance(nw.from_native(frame, pass_through=True), nw.LazyFrame)
    return Undesigned("streamed") if streamed else None


def with_values(problem: ChannelProblem, frame: Any) -> Any:
    """Return the records that were counted, of a problem whose source was counted from a table."""
    schema = problem.source.schema
    if schema is None:
        remedy = "make the source with DiscreteSource.from_table"
        raise InputError("problem", "its source was not counted from a table", remedy)
    return schema.counted_records(frame)


def _refuse_another(frame: Any, source: DiscreteSource) -> None:
    """Refuse a table other than the one that a source was counted from, without drawing."""
    assert source.schema is not None
    assert source.records is not None
    letters = source.w, source.x, *(() if source.z is None else (source.z,))
    counted = DiscreteSource.from_schema(frame, source.schema, letters, most=source.records)
    _refuse_other_records(counted.records or 0, counted.joint, source)


def _refuse_other_records(records: int, counted: np.ndarray, source: DiscreteSource) -> None:
    """Refuse a table of more or fewer records, or of others, by masses (w, x)."""
    if records != source.records:
        wrong = f"{records:,} records, where the source has {source.records:,}"
        raise InputError("frame", wrong, "pass the table that the source was counted from")
    apart = np.abs(counted / counted.sum() - source.joint / source.joint.sum())
    if apart.max() > SLACK:  # of shares: any record of fewer than 1 / SLACK tells
        w, x = np.unravel_index(apart.argmax(), apart.shape)
        problem = f"other records of {source.w[w]!r} and {source.x[x]!r} than the source counted"
        raise InputError("frame", problem, "pass the table that the source was counted from")


def mean_cost(cost: Cost, counts: DrawnCounts) -> Fraction:
    """Return Σ N(w, x, x̂) d / N, exactly of whole records."""
    parts: Sequence[Part]
    rows, total = counts.x_at, Fraction(0)
    if isinstance(cost, AdditiveCost):
        parts = cost.parts
    else:
        table = np.asarray(cost)
        if table.ndim == 3:
            rows = counts.w_at * table.shape[1] + counts.x_at
        table = frozen(table.reshape(-1, table.shape[-1]))
        parts = [Part(table, np.arange(len(table)), np.arange(table.shape[1]))]
    for part in parts:
        width = part.table.shape[1]
        at = part.rows[rows] * width + part.columns[counts.y_at]
        entries, place = np.unique(at, return_inverse=True)
        weights = map(rational, np.bincount(place, counts.masses).tolist())
        values = part.table.ravel()[entries].tolist()
        total += sum((n * rational(v) for n, v in zip(weights, values, strict=True)), Fraction(0))
    return total / rational(float(counts.masses.sum()))


def _blocked(problem: ChannelProblem, counts: DrawnCounts) -> np.ndarray | None:
    """Tell which outputs may not be released as which others: of a record that may not go there."""
    upper = problem.program.upper
    if upper is None:
        return None
    alphabet = problem.alphabet
    letters = counts.x_at if alphabet.encoder == "x" else (
        counts.w_at * len(counts.x) + counts.x_at
    )  # fmt: skip
    place = np.full(len(counts.w) * len(counts.x), -1)
    place[alphabet.support] = np.arange(alphabet.n)
    blocked = np.zeros((alphabet.m, alphabet.m), bool)
    forbidden = np.vstack([upper == 0, np.zeros((1, alphabet.m), bool)])  # none of a letter unseen
    np.logical_or.at(blocked, counts.y_at, forbidden[place[letters]])
    return blocked


def release_table(
    problem: ChannelProblem,
    frame: Any,
    *,
    seed: int,
    solution: Solution | None = None,
    row_id: Any = None,
    ensure: str = "law",
    draw: str = "independent",
    criteria: Sequence[Criterion] = (),
    time_limit: float | None = None,
) -> DrawnTable:
    """Release a table by the optimal channel, and check what was drawn.

    Parameters
    ----------
    problem : PrivacyDistortion or MinimumDistortion
        Of a source that was made of this table by ``DiscreteSource.from_table``.
    frame : frame of any kind
        The table, as :meth:`cvxprivacy.Channel.apply` takes it.
    seed : int
        As of :meth:`cvxprivacy.Channel.apply`: keep it secret.
    solution : Solution, optional
        Of the problem, if it has been solved.
    row_id : column name, optional
        Which names each record.
    ensure : {"law", "table"}
        What is to satisfy the criteria: the law, which is proved whatever is drawn; or the table:
        its counts are designed whole where that can be (:class:`WholeCounts`), else groups of a
        drawn one are merged until it breaks no criterion and no cap.
    draw : {"independent", "balanced"}
        As of :meth:`cvxprivacy.Channel.apply`: balanced counts hardly scatter.
    criteria : sequence of Criterion
        What the table is to satisfy besides the problem's own, with ``ensure="table"``: those that
        no law satisfies, such as :class:`KAnonymity`.  What such a criterion asks of a law, as
        :class:`RecordEntropy` does of the same k, is the problem's to state.
    time_limit : float, optional
        Seconds for the problem, if it is to be solved, and whole counts together; of these 120 by
        default.

    Returns
    -------
    DrawnTable
        With the released ``frame``; records that were left out for missing values are not in it.

    Raises
    ------
    InputError
        For a solution of another problem, and for what is no such table.
    InfeasibleError
        If no channel of the problem's encoder satisfies the criteria.
    BrokenTableError
        If no merging makes the table satisfy the criteria.

    Examples
    --------
    >>> import cvxprivacy as cpv, pandas as pd
    >>> import cvxprivacy_sdc as sdc
    >>> table = pd.DataFrame({"age": [30, 30, 30, 50, 50, 50], "ill": [0, 1, 0, 0, 1, 1]})
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(source.x), [cpv.RecordEntropy(3)])
    >>> released = sdc.release_table(problem, table, seed=1, ensure="table")
    >>> released.holds, released.checks[0].table
    (True, 3.0)

    Groups of three are asked of the table alone:

    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(source.x), [])
    >>> rules = [cpv.KAnonymity(3)]
    >>> released = sdc.release_table(problem, table, seed=1, ensure="table", criteria=rules)
    >>> released.holds, released.checks[0].stated, released.designed.status
    (True, 'KAnonymity(3)', 'proved optimal')
    """
    rules = _of_tables(criteria, ensure)
    watch = Watch(time_limit)
    solved = solution or solved_law(problem, ensure=ensure, time_limit=time_limit)
    how: dict[str, Any] = {"seed": seed, "row_id": row_id, "draw": draw}
    left = None if time_limit is None else watch.left
    asked_for: dict[str, Any] = {"ensure": ensure, "of_table": rules, "time_limit": left}
    drawn = DrawnTable.of(problem, solved, frame, **how, **asked_for)
    released = drawn.channel.apply(with_values(problem, frame), **how)
    return replace(drawn, frame=released)


def _of_tables(criteria: Sequence[Criterion], ensure: str) -> tuple[Criterion, ...]:
    """Return criteria of tables; refuse those of a law, and where a table is to satisfy none."""
    rules = criteria_listed(criteria)
    for i, rule in enumerate(rules):
        if not rule.of_table:
            remedy = "state it in the problem"
            raise InputError("criteria", f"{rule!r} is of a law, too", remedy, where=i)
        if ensure == "law":
            remedy = 'pass ensure="table", or ask the law for RecordEntropy'
            raise InputError("criteria", f"{rule!r} is of a table, and no law keeps it", remedy)
    return rules
