"""What programs over whole counts share: what they refuse, how they are solved and proved."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from cvxprivacy.additive import AdditiveCost
from cvxprivacy.certificates.certificate import refuse_other
from cvxprivacy.certificates.sums import rounded_down
from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.counts import Cells, Counts, Verdict, is_whole
from cvxprivacy.criteria.diversity import KAnonymity
from cvxprivacy.criteria.own_rows import cost_at
from cvxprivacy.errors import CertificationError, InfeasibleError, InputError
from cvxprivacy.exact import FloatArray, Real, rational, typed_most
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.problem import Restatable
from cvxprivacy.leakage import Leakage
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.side_conditions import EntryBounds
from cvxprivacy.release.balanced import balanced_counts
from cvxprivacy.release.channel import Channel, CountedChannel
from cvxprivacy.release.draws import Draws, numerators
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.validation import number
from cvxprivacy_sdc.whole_counts.blind import blind_table, rounded_law
from cvxprivacy_sdc.whole_counts.group_sizes import least_grouping
from cvxprivacy_sdc.whole_counts.moves import (
    BUDGET,
    Places,
    bounds_in_records,
    distances,
    matched,
    nearest_counts,
    one_hamming,
)
from cvxprivacy_sdc.whole_counts.nearness import steps_apart
from cvxprivacy_sdc.whole_counts.repair import Repair
from cvxprivacy_sdc.whole_counts.rounds import Answer, Broken, least_table
from cvxprivacy_sdc.whole_counts.rows import TableRow
from cvxprivacy_sdc.whole_counts.solution import Rounding, TableSolution

_SHARE = 0.5  # of the time that is left, for a proof of what leaks
_QUICK = 3  # kinds of records up to which HiGHS comes near to the least in seconds
_LAW = 5_000_000  # entries of a law that is laid out
_BYTES = 64  # of a count that there may be, in all tables of them: 2.7 GiB of 6,538 groups
_MOST = 8 * 2**30  # bytes

__all__ = ["TableProblem"]


class TableProblem(Restatable):
    """A formulation over tables; a subclass says of which counts.

    Attributes
    ----------
    relaxed : ChannelProblem
        The convex program whose certificate bounds every table.
    law : ChannelProblem
        That of channels of the encoder.
    budget : number or None
        Of the mean distortion, where a leakage is minimised.
    leakage : Leakage or None
        Which one.
    source : DiscreteSource
    criteria : tuple of Criterion
    smallest_group : int
    encoder : {"x", "wx"}
    units : {"bits", "nats"}
    """

    relaxed: ChannelProblem
    law: ChannelProblem
    budget: Real | None
    leakage: Leakage | None
    source: DiscreteSource
    criteria: Sequence[Criterion]
    smallest_group: int
    encoder: str
    units: str

    @cached_property
    def blind(self) -> bool:
        """Whether criteria or what is minimised are about W, which counts may not look at.

        Where each x has one value of W, any counts are those of a channel of x.
        """
        if self.encoder != "x" or (np.count_nonzero(self.source.law, axis=0) <= 1).all():
            return False
        rules = (rule for each in self.law.program_rules.values() for rule in each.values())
        return self.budget is not None or any(map(_about_w, rules))

    @property
    def problem(self) -> Any:
        """The program in CVXPY, with integer variables, which HiGHS solves if rows are linear.

        Of counts that may depend on what the criteria are about, be they blind or not.
        """
        from cvxprivacy_sdc.whole_counts.paper_table import paper_table

        relaxed = self.relaxed
        return paper_table(
            relaxed.program, relaxed.program_rules, self._records, self.smallest_group
        )

    def solve(
        self, *, gap: float = 1e-6, time_limit: float | None = None, verbose: bool = False,
        seed: int | np.random.Generator | None = None, law: Solution | None = None,
    ) -> TableSolution:  # fmt: skip
        """Find the best table, and prove what can be proved of it.

        Parameters
        ----------
        gap : float
            Of the distortion, relatively, at which HiGHS may stop; of a leakage relatively or in
            its own unit, whichever is more.
        time_limit : float, optional
            Seconds; then, or at Ctrl-C, the best table so far is returned.
        verbose : bool
            Print the steps of the convex program, and the rounds, on standard error.
        seed : int or numpy.random.Generator, optional
            Of the rounding of a blind table; by default the system's own randomness.
        law : Solution, optional
            Of the problem that is ``law``, if that has been solved.

        Raises
        ------
        InfeasibleError
            If no table satisfies the criteria, by proof: of ``relaxed``, which bounds them all.
        InputError
            For a ``law`` of another problem.
        """
        gap, watch = number(gap, "gap"), Watch(time_limit, verbose=bool(verbose))
        if law is not None:
            refuse_other(law.certificate, self.law, "law")
        blind, solved, grouping = None, None, self._grouping()
        answer = Answer() if grouping is None else Answer(grouping, finished=True)
        if self.blind:  # what only bounds it comes last
            chance, infeasible = Draws(seed).generator("rounding"), False
            try:
                law = law or self._proved(self.law, watch)
            except InfeasibleError:  # no channel of x; its roundings may be off by a record
                infeasible, solved = True, self._proved(self.relaxed, watch)
            answer, blind = self._rounded(law, chance, watch, infeasible=infeasible, gap=gap)
        if solved is None:
            of_all = law if self.relaxed is self.law else None
            solved = of_all or self._proved(self.relaxed, watch)
        if not self.blind and grouping is None and not watch.stopped:
            about: Any = {"group": self.smallest_group, "watch": watch}
            program, channel, first = self.relaxed.program, _law(solved), None
            if channel is not None and self.leakage is None:
                first = self._mended(channel, watch)
            elif channel is not None:  # what it takes long to come near
                chance, letters = np.random.default_rng(0), np.arange(len(self._records))
                draw = partial(self._balanced, letters=letters, chance=chance)
                rounded = program, self._records, self._broken, draw, channel
                first = rounded_law(*rounded, **about)
            answer = least_table(
                program, self._records, self._home, self._broken,
                law=channel, apart=self._apart, first=first, gap=gap, **about,
            )  # fmt: skip
        if watch.interrupted:
            warnings.warn("interrupted: the best table so far is returned", stacklevel=2)
        return _solution(self, solved, answer, blind)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_statement(self)})"

    def _check(self) -> None:
        """Refuse what is no program over whole counts."""
        _refuse(self)

    # ---- the table -----------------------------------------------------------------------

    @cached_property
    def _records(self) -> Places:
        """n(s), of the encoder's letters with mass."""
        return np.rint(self.relaxed.alphabet.law.sum(axis=0)).astype(np.int64)

    @cached_property
    def _home(self) -> Places:
        """The output that is a letter's own value, −1 for none."""
        alphabet = self.relaxed.alphabet
        place = {label: y for y, label in enumerate(alphabet.outputs)}
        return np.array([place.get(alphabet.source.x[x], -1) for x in alphabet.x_of.tolist()])

    @cached_property
    def _apart(self) -> FloatArray | None:
        """How far letters and outputs are apart in a table's key, between moves of one cost."""
        alphabet, schema = self.relaxed.alphabet, self.source.schema
        if schema is None:
            return None
        letters = [self.source.x[x] for x in alphabet.x_of.tolist()]
        return steps_apart(letters, alphabet.outputs, schema, self.source.levels)

    @cached_property
    def _sizes(self) -> Places:
        """The records of each output before any moves."""
        sizes = np.zeros(self.relaxed.alphabet.m, np.int64)
        np.add.at(sizes, self._home, self._records)
        return sizes

    @cached_property
    def _at_most(self) -> Fraction:
        """N D, exactly."""
        return rational(typed_most(self.budget)) * int(self._records.sum())

    @cached_property
    def _groups(self) -> Places | None:
        """The sizes of groups that the fewest moves make, of one Hamming distance; else None."""
        if one_hamming(self.relaxed.program, self._home) is None:
            return None
        return least_grouping(self._sizes, self.smallest_group)

    def _proved(self, problem: ChannelProblem, watch: Watch) -> Solution | None:
        """Return a convex program's optimum; without criteria nothing is asked of a channel."""
        if not (problem.criteria or self.budget is not None) or watch.stopped:
            return None
        share = 1.0 if self.leakage is None else _SHARE  # its law is the first table
        limit = None if watch.limit is None else watch.left * share
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                solved = problem.solve(time_limit=limit)
            except CertificationError:  # nothing is proved in time; but costs are ≥ 0
                solved = None
            except KeyboardInterrupt:  # while the program was prepared
                watch.interrupted, solved = True, None
        for each in caught:
            if "interrupted" in str(each.message):
                watch.interrupted = True
            else:
                warnings.warn(each.message, stacklevel=3)
        return solved

    def _rounded(
        self, law: Solution | None, chance: np.random.Generator, watch: Watch, *,
        infeasible: bool, gap: float,
    ) -> tuple[Answer, Rounding | None]:  # fmt: skip
        """Return a rounding of a channel of x, and the channel."""
        x_of = self.law.alphabet.x_of
        place = {int(x): s for s, x in enumerate(x_of.tolist())}
        letters = np.array([place[x] for x in self.relaxed.alphabet.x_of.tolist()])

        draw = partial(self._balanced, letters=letters, chance=chance)
        answer, blind = blind_table(
            self.relaxed.program, self._records, letters, self._broken, chance, draw,
            law=_law(law), infeasible=infeasible, gap=gap, group=self.smallest_group, watch=watch,
            apart=None if self._apart is None else self._apart[np.unique(letters, True)[1]],
        )  # fmt: skip
        if blind is None:
            return answer, None
        sizes = blind.expected.sum(axis=1)
        rounded = Channel(
            blind.expected / sizes[:, None],
            inputs=[self.source.x[x] for x in x_of.tolist()],
            outputs=self.law.alphabet.outputs,
            p_input=sizes / sizes.sum(),
            schema=self.source.schema,
        )
        least = math.inf if infeasible else math.nan
        if law is not None:
            least = law.lower if self.leakage is None else _least_leaked(self.leakage, law)
        return answer, Rounding(rounded, least)

    def _mended(self, law: FloatArray, watch: Watch) -> Places | None:
        """Return the law in whole counts, with records moved until it satisfies all."""
        program, n = self.relaxed.program, self._records
        how = *bounds_in_records(program, n), watch, distances(program)
        first = None
        try:
            repair = Repair(program, n, self._broken, group=self.smallest_group)
            first = repair.table(nearest_counts(law * n[:, None]), *how)
            if first is not None and len(repair.first) > _QUICK:
                for cheaper in repair.cheaper(first, self._home, *how):
                    first = cheaper  # which Ctrl-C leaves
        except KeyboardInterrupt:
            watch.interrupted = True
        return first

    def _balanced(
        self, expected: FloatArray, letters: Places, chance: np.random.Generator
    ) -> Places:
        """Return a balanced draw of n(x) p(x̂ | x): all sums about w, too, are within one."""
        values, sizes = self.relaxed.alphabet.w_of[0], expected.sum(axis=1)
        cells = values * len(sizes) + letters
        order = np.argsort(cells)
        cell, y, count = balanced_counts(
            numerators(expected / sizes[:, None]), cells[order], self._records[order],
            int(values.max()) + 1, lambda most: int(chance.integers(most)),
        )  # fmt: skip
        counts = np.zeros((len(letters), expected.shape[1]), np.int64)
        np.add.at(counts, (order[cell], y), count)
        return counts

    def _grouping(self) -> Places | None:
        """Return the optimum where groups alone are asked for, by dynamic programming."""
        others = self.relaxed.criteria or self.budget is not None or self.encoder != "x"
        if others or self._groups is None:
            return None
        return _moved(self._records, self._home, self._groups, self._apart)

    def _broken(self, counts: Places) -> Broken | None:
        """Return the rows of criteria that counts break, and at which outputs; None if none is."""
        verdicts = {
            n: verdict for n, verdict in _verdicts(self, counts).items() if not verdict.holds
        }
        spent = self.budget is not None and _total(self, counts) > self._at_most
        if not (verdicts or spent):
            return None
        rules = self.relaxed.program_rules
        rows = {row: v.broken for name, v in verdicts.items() for row in rules.get(name, ())}
        return {**rows, BUDGET: None} if spent else rows


def smallest_group(criteria: Sequence[Criterion]) -> int:
    """Return the k of k-anonymity in whole records, 1 without one."""
    of_groups = [rule.value for rule in criteria if isinstance(rule, KAnonymity)]
    return max([1, *(math.ceil(rational(k)) for k in of_groups)])


# ---- what is refused ---------------------------------------------------------------------


def _refuse(problem: TableProblem) -> None:
    """Refuse a table of no whole records, and what counts cannot be asked for."""
    source = problem.source
    if source.weighted or source.records is None or not is_whole(source.law):
        remedy = "make it with DiscreteSource.from_counts, or from_table without weights"
        raise InputError("source", "no whole records behind it", remedy)
    if problem.smallest_group > source.records:
        wrong = f"KAnonymity({problem.smallest_group:,}) of {source.records:,} records"
        remedy = f"ask for at most {source.records:,}"
        raise InputError("criteria", wrong, remedy, value=problem.smallest_group)
    alphabet = problem.relaxed.alphabet
    if (needed := _BYTES * alphabet.n * alphabet.m) > _MOST:
        wrong = f"{alphabet.n:,} letters to release as {alphabet.m:,}, in {needed / 2**30:.0f} GiB"
        side = int((_MOST / needed) ** 0.5 * alphabet.m)
        remedy = f"put letters together, to about {side:,}"
        raise InputError("source", wrong, remedy)
    if problem.law._centre is not None:
        remedy = "leave it out, or solve MinimumDistortion"
        raise InputError("criteria", "a bound on what leaks whatever the prior", remedy)
    for name, criterion in problem.relaxed._criteria().items():
        rules = list(problem.relaxed.program_rules[name].values())
        if criterion.counts_records:
            wrong = f"{criterion!r} is of what a law leaves open, not of the sizes of groups"
            raise InputError("criteria", wrong, "pass KAnonymity", where=name)
        if not all(isinstance(rule, Constraint | EntryBounds) for rule in rules):
            wrong = f"{criterion!r} is no row of a program over whole counts"
            remedy = "leave it out, or solve MinimumDistortion; PreserveMarginal is taken"
            raise InputError("criteria", wrong, remedy, where=name)
        if not all(isinstance(rule, EntryBounds) for rule in rules):
            together = np.zeros((alphabet.n, alphabet.m), np.int64)
            together[:, 0] = problem._records
            if criterion.verdict(_table(problem, together)).holds is None:
                wrong = f"{criterion!r} cannot be decided on a table"
                raise InputError("criteria", wrong, "leave it out", where=name)
    if problem.encoder == "x" and alphabet.d.cost.ndim == 3:
        raise InputError("distortion", "d(w, x, x̂) of encoder x", 'pass encoder="wx"')


def _about_w(rule: Any) -> bool:
    """Tell whether a row differs among the records of one x."""
    if not isinstance(rule, Constraint):
        return False
    cost = rule.expression.cost
    several = isinstance(cost, np.ndarray) and cost.ndim == 3 and bool((cost != cost[:1]).any())
    return bool(rule.expression.weights) or several


# ---- tables ------------------------------------------------------------------------------


def _moved(n: Places, home: Places, groups: Places, apart: FloatArray | None) -> Places:
    """Return counts m(x, x̂) of groups of these sizes, of the fewest moves, the nearest."""
    kept = np.zeros((len(n), len(groups)), np.int64)
    letters = np.arange(len(n))
    kept[letters, home] = np.minimum(n, groups[home])
    return kept + matched(n - kept[letters, home], groups - kept.sum(axis=0), apart)


def _law(solved: Solution | None) -> FloatArray | None:
    """Return p(x̂ | s) of the optimal channel, where one was certified."""
    if solved is None or solved.certificate.primal is None:
        return None
    if math.prod(solved.certificate.primal.matrix.shape) > _LAW:
        return None
    matrix = solved.certificate.primal.matrix
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), float)


def _table(problem: TableProblem, counts: Places) -> Counts:
    """Return counts as criteria are evaluated at them."""
    alphabet = problem.relaxed.alphabet
    s, y = np.nonzero(counts)
    # criteria of encoder x see x alone, so that all records of a letter may have one value of W
    atom = 0 if "w" in alphabet.encoder_inputs else (alphabet.law > 0).argmax(axis=0)[s]
    moves = alphabet.w_support[alphabet.w_of[atom, s]], alphabet.x_of[s], y
    return Counts.of_moves(alphabet, moves, counts[s, y].astype(float), counts.sum(axis=0))


def _verdicts(problem: TableProblem, counts: Places) -> dict[str, Verdict]:
    """Return how each criterion stands on counts, decided exactly."""
    table = _table(problem, counts)
    verdicts = {}
    for name, criterion in problem.relaxed._criteria().items():
        rules = problem.relaxed.program_rules[name].values()
        if all(isinstance(rule, EntryBounds) for rule in rules):
            verdicts[name] = Verdict(all(_within(problem, rule, counts) for rule in rules))
        else:
            verdicts[name] = criterion.verdict(table)
    if problem.smallest_group > 1:
        rule = KAnonymity(problem.smallest_group)
        verdicts[rule.name] = rule.verdict(table)
    return verdicts


def _within(problem: TableProblem, rule: Any, counts: Places) -> bool:
    """Tell whether m/n is within bounds on entries, exactly."""
    for bounds, sign in ((rule.lower, 1), (rule.upper, -1)):
        if bounds is None:
            continue
        table = np.broadcast_to(np.asarray(bounds), counts.shape)
        for s, y in np.argwhere(table != (0 if sign > 0 else 1)).tolist():
            spare = int(counts[s, y]) - rational(table[s, y]) * int(problem._records[s])
            if sign * spare < 0:
                return False
    return True


def _total(problem: TableProblem, counts: Places) -> Fraction:
    """Return Σ d m, exactly."""
    s, y = np.nonzero(counts)
    cells = Cells(np.zeros_like(s), s, y, counts[s, y])
    cost = problem.relaxed.distortion.cost
    each = zip(cost_at(cost, cells), counts[s, y].tolist(), strict=True)
    return sum((rational(d) * m for d, m in each), Fraction(0))


def _least_total(problem: TableProblem, solved: Solution | None) -> Fraction:
    """Return what no table's total is below, by proof: a multiple of the step of the costs."""
    least = Fraction(0)
    if solved is not None and math.isfinite(solved.lower):
        least = max(least, Fraction(solved.lower) * int(problem._records.sum()))
    step = _step(problem.relaxed.distortion.cost)
    if problem.smallest_group > 1 and problem._groups is not None:
        moved = np.maximum(problem._sizes - problem._groups, 0)
        least = max(least, step * int(moved.sum()))
    return math.ceil(least / step) * step


def _least_leaked(leakage: Leakage, solved: Solution | None) -> float:
    """Return what nothing within the budget leaks less than, by proof; −inf if that is unknown."""
    lower = -math.inf if solved is None else solved.lower
    return max(lower, 0.0) if leakage.divergence else lower


def _step(cost: Any) -> Fraction:
    """Return the greatest number of which all costs, as they were typed, are multiples."""
    tables = [part.table for part in cost.parts] if isinstance(cost, AdditiveCost) else [cost]
    costs = {
        rational(d) for table in tables if table is not None for d in {*np.ravel(table).tolist()}
    }
    costs -= {Fraction(0)}
    unit = math.lcm(*(d.denominator for d in costs))
    return Fraction(math.gcd(*(int(d * unit) for d in costs)), unit) if costs else Fraction(1)


def _statement(problem: TableProblem) -> str:
    """Return the program in one line."""
    over = "w, x, x̂" if problem.blind or problem.encoder == "wx" else "x, x̂"
    counts = f"m({over}) whole"
    if problem.blind:
        counts += ", |m − n p(x̂ | x)| < 1"
    rules = [*map(repr, problem.criteria), counts]
    if problem.budget is None:
        return f"min E d(X, X̂)  s.t.  {', '.join(rules)}"
    leaked = _leaked(problem) or "I(W; X̂)"
    return f"min {leaked}  s.t.  E d(X, X̂) ≤ {float(problem.budget):g}, {', '.join(rules)}"


def _in_the_way(problem: TableProblem, answer: Answer) -> tuple[str, ...]:
    """Say what the nearest table breaks, where HiGHS says that none satisfies all."""
    if answer.nearest is None:
        return ()
    outputs, sizes = problem.relaxed.alphabet.outputs, answer.nearest.sum(axis=0)
    lines = []
    for name, verdict in _verdicts(problem, answer.nearest).items():
        if verdict.holds:
            continue
        broken = np.flatnonzero(sizes if verdict.broken is None else verdict.broken & (sizes > 0))
        first = int(broken[sizes[broken].argmin()])
        groups = f"{len(broken):,} of {np.count_nonzero(sizes):,} groups"
        least = f"the least of {sizes[first]:,} released as {outputs[first]!r}"
        lines.append(f"{name}: {groups}, {least}")
    return tuple(lines)


def _leaked(problem: TableProblem) -> str:
    """Return the measure that is minimised, if that is not mutual information."""
    if problem.leakage is None or problem.leakage.informs:
        return ""
    return repr(problem.leakage)


def _solution(
    problem: TableProblem, solved: Solution | None, answer: Answer, blind: Rounding | None
) -> TableSolution:
    source, alphabet = problem.source, problem.relaxed.alphabet
    records = int(problem._records.sum())
    if problem.leakage is None:
        least = _least_total(problem, solved)
        lower, constant = rounded_down(least / records), 0.0
    else:
        least, lower = None, _least_leaked(problem.leakage, solved)
        objective = TableRow.minimised(problem.relaxed.program)
        constant = objective.constant
    how: dict[str, Any] = {
        "title": type(problem).__name__, "statement": _statement(problem),
        "units": problem.units, "records": records, "law": source.joint,
        "lower": lower,
        "claimed": -math.inf if problem.blind else answer.claimed / records + constant,
        "budget": None if problem.budget is None else float(problem.budget),
        "leakage": _leaked(problem),
        "relaxed": solved, "rounds": answer.rounds, "cuts": answer.cuts, "rounding": blind,
    }  # fmt: skip
    if answer.counts is None:
        status = "infeasible by the solver's claim" if answer.infeasible else "stopped"
        return TableSolution(status=status, in_the_way=_in_the_way(problem, answer), **how)
    counts, total = answer.counts, _total(problem, answer.counts)
    joint = np.zeros((len(source.w), alphabet.m))
    places = alphabet.w_support[alphabet.w_of]
    for atoms, masses in zip(places, alphabet.law, strict=True):
        np.add.at(joint, atoms, masses[:, None] * counts / problem._records[:, None])
    value, proved = float(total / records), total == least
    if problem.leakage is not None:
        value = max(objective.total(counts) / records + constant, lower)
        independent = joint * records == np.outer(joint.sum(axis=1), joint.sum(axis=0))
        proved = problem.leakage.divergence and "w" in alphabet.encoder_inputs and independent.all()
    claimed = answer.finished and how["claimed"] > -math.inf
    status = "optimal by the solver's claim" if claimed else "feasible"
    inputs = alphabet.inputs
    labels = [inputs[i] for i in alphabet.support.tolist()]
    channel = CountedChannel(
        counts, inputs=labels, outputs=alphabet.outputs, schema=source.schema,
        encoder=alphabet.encoder,
    )  # fmt: skip
    return TableSolution(
        status="proved optimal" if proved else status, counts=counts, joint=joint,
        total=total, value=value, channel=channel,
        verdicts=_verdicts(problem, counts), **how,
    )  # fmt: skip
