r"""The table itself as the variable: whole counts of least distortion.

.. math::
   \begin{aligned}
   \min_{m}          \quad & Σ\, d(x, x̂)\, m(w, x, x̂) \\
   \text{subject to} \quad & Σ_{x̂} m(w, x, x̂) = n(w, x), \quad m \text{ whole} \\
                           & \text{every criterion at } N(w, x̂) = Σ_x m(w, x, x̂) \\
                           & N(x̂) = 0 \text{ or } N(x̂) ≥ k
   \end{aligned}

m/n is a channel, so that the convex program's certificate bounds every table from below.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.counts import Cells, Counts, Verdict, is_whole
from cvxprivacy.criteria.own_rows import cost_at
from cvxprivacy.errors import CertificationError, InputError
from cvxprivacy.exact import rational
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.formulations.problem import Restatable
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs.side_conditions import EntryBounds
from cvxprivacy.release.counted import CountedChannel
from cvxprivacy.results.solution import Solution
from cvxprivacy.results.table import TableSolution
from cvxprivacy.solvers.group_sizes import least_grouping
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.solvers.whole_counts import Answer, Places, least_table, one_hamming
from cvxprivacy.validation import integer, number

__all__ = ["WholeCounts"]


class WholeCounts(Restatable):
    """min E d(X, X̂) over whole counts m(w, x, x̂), s.t. criteria and a least group size.

    The released table has exactly these counts, so that what holds of them holds of it; which
    records of a cell move is chance.

    Parameters
    ----------
    source : DiscreteSource
        The table in whole records: ``from_table`` without weights, or ``from_counts``.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) or d(w, x, x̂).
    criteria : sequence of Criterion
        What the table must satisfy; decided of the counts, exactly.
    smallest_group : int
        k: a released value has no records, or k of them at least.
    encoder : {"x", "wx"}
        What the counts may depend on: x alone, where no criterion is about W, or w and x.
    units : {"bits", "nats"}
        Of information.

    Attributes
    ----------
    relaxed : MinimumDistortion
        The convex program over all channels, whose certificate bounds every table from below.

    Raises
    ------
    InputError
        For a table of no whole records, or a criterion that whole counts do not take.

    Examples
    --------
    Groups of five, of 3, 4 and 10 records: three leave the first, one of them fills the second.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[1, 3, 6], [2, 1, 4]], x=["a", "b", "c"])
    >>> table = cpv.WholeCounts(source, cpv.hamming(3), smallest_group=5).solve()
    >>> table.status, float(table.total), table.groups.tolist()
    ('proved optimal', 3.0, [0, 5, 12])

    No share of a value of W more than 1.2 times, or less than 1/1.2 times, what it was:

    >>> from math import log
    >>> rules = [cpv.DeltaDisclosure(log(1.2))]
    >>> table = cpv.WholeCounts(source, cpv.hamming(3), rules, encoder="wx").solve()
    >>> table.status, float(table.total), table.joint.tolist()
    ('proved optimal', 2.0, [[2.0, 2.0, 6.0], [1.0, 2.0, 4.0]])
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        criteria: Sequence[Criterion] = (),
        *,
        smallest_group: int = 1,
        encoder: str = "x",
        units: str = "bits",
    ) -> None:
        self.relaxed = MinimumDistortion(source, distortion, criteria, encoder=encoder, units=units)
        self.source, self.criteria = source, self.relaxed.criteria
        self.smallest_group = integer(smallest_group, "smallest_group", least=1)
        self.encoder, self.units = encoder, units
        _refuse(self)

    @property
    def problem(self) -> Any:
        """The program in CVXPY, with integer variables, which HiGHS solves if rows are linear."""
        from cvxprivacy.solvers.conic.paper_table import paper_table

        relaxed = self.relaxed
        return paper_table(
            relaxed.program, relaxed.program_rules, self._records, self.smallest_group
        )

    def solve(
        self, *, gap: float = 1e-6, time_limit: float | None = None, verbose: bool = False
    ) -> TableSolution:
        """Find the best table, and prove what can be proved of it.

        Parameters
        ----------
        gap : float
            Of the distortion, relatively, at which HiGHS may stop.
        time_limit : float, optional
            Seconds; then, or at Ctrl-C, the best table so far is returned.
        verbose : bool
            Print the steps of the convex program on standard error.

        Raises
        ------
        InfeasibleError
            If no release satisfies the criteria, by proof.
        """
        gap, watch = number(gap, "gap"), Watch(time_limit, verbose=bool(verbose))
        solved = self._proved(watch)
        grouping = self._grouping()
        answer = Answer() if grouping is None else Answer(grouping, finished=True)
        if grouping is None and not watch.stopped:
            answer = least_table(
                self.relaxed.program, self._records, _home(self), self._broken,
                group=self.smallest_group, support=_support(solved),
                gap=gap, watch=watch,
            )  # fmt: skip
        if watch.interrupted:
            warnings.warn("interrupted: the best table so far is returned", stacklevel=2)
        return _solution(self, solved, answer)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_statement(self)})"

    # ---- the table -----------------------------------------------------------------------

    @cached_property
    def _records(self) -> Places:
        """n(s), of the encoder's letters with mass."""
        return np.rint(self.relaxed.alphabet.law.sum(axis=0)).astype(np.int64)

    def _proved(self, watch: Watch) -> Solution | None:
        """Return the convex program's optimum; without criteria nothing is asked of a channel."""
        if not self.criteria:
            return None
        try:
            return self.relaxed.solve(time_limit=watch.limit)
        except CertificationError:  # nothing is proved in time: the lower end is 0, as costs are
            return None

    def _grouping(self) -> Places | None:
        """Return the optimum where groups alone are asked for, by dynamic programming."""
        pool = one_hamming(self.relaxed.program, _home(self))
        if self.criteria or pool is None or self.encoder != "x":
            return None
        return _moved(self._records, _home(self), least_grouping(_sizes(self), self.smallest_group))

    def _broken(self, counts: Places) -> npt.NDArray[np.bool_] | None:
        verdicts = [verdict for verdict in _verdicts(self, counts).values() if not verdict.holds]
        if not verdicts:
            return None
        each = [v.broken for v in verdicts if v.broken is not None]
        return np.logical_or.reduce(each) if each else np.zeros(counts.shape[1], bool)


# ---- what is refused ---------------------------------------------------------------------


def _refuse(problem: WholeCounts) -> None:
    """Refuse a table of no whole records, and what counts cannot be asked for."""
    source, program = problem.source, problem.relaxed.program
    if source.weighted or source.records is None or not is_whole(source.law):
        remedy = "make it with DiscreteSource.from_counts, or from_table without weights"
        raise InputError("source", "no whole records behind it", remedy)
    if problem.smallest_group > source.records:
        wrong = f"{problem.smallest_group:,} exceeds the {source.records:,} records"
        remedy = f"pass at most {source.records:,}"
        raise InputError("smallest_group", wrong, remedy, value=problem.smallest_group)
    alphabet = problem.relaxed.alphabet
    for name, criterion in problem.relaxed._criteria().items():
        rules = list(problem.relaxed.program_rules[name].values())
        if criterion.counts_records:
            wrong = f"{criterion!r} is of what a law leaves open, not of the sizes of groups"
            raise InputError("criteria", wrong, "pass smallest_group=", where=name)
        if any(rule not in program.constraints.values() for rule in rules
               if not isinstance(rule, EntryBounds)):  # fmt: skip
            wrong = f"{criterion!r} is of the randomisation, not of a table"
            remedy = "leave it out, or solve MinimumDistortion; PreserveMarginal is taken"
            raise InputError("criteria", wrong, remedy, where=name)
        if problem.encoder == "x" and any(_about_w(problem, rule) for rule in rules):
            wrong = f"{criterion!r} is about {source.names[0]}, which encoder x does not see"
            remedy = 'pass encoder="wx"; smallest_group= alone needs no W'
            raise InputError("criteria", wrong, remedy, where=name)
        if problem.encoder == "wx" and not all(isinstance(rule, EntryBounds) for rule in rules):
            together = np.zeros((alphabet.n, alphabet.m), np.int64)
            together[:, 0] = problem._records
            if criterion.verdict(_table(problem, together)).holds is None:
                wrong = f"{criterion!r} cannot be decided on a table"
                raise InputError("criteria", wrong, "leave it out", where=name)
    if problem.encoder == "x" and alphabet.d.cost.ndim == 3:
        raise InputError("distortion", "d(w, x, x̂) of encoder x", 'pass encoder="wx"')


def _about_w(problem: WholeCounts, rule: Any) -> bool:
    """Tell whether a row differs among the records of one x."""
    if isinstance(rule, EntryBounds):
        return False
    cost = rule.expression.cost
    several = cost is not None and cost.ndim == 3 and len(cost) > 1
    return bool(rule.expression.weights) or (several and bool((cost != cost[:1]).any()))


# ---- tables ------------------------------------------------------------------------------


def _home(problem: WholeCounts) -> Places:
    """Return the output that is a letter's own value, −1 for none."""
    alphabet = problem.relaxed.alphabet
    place = {label: y for y, label in enumerate(alphabet.outputs)}
    return np.array([place.get(alphabet.source.x[x], -1) for x in alphabet.x_of.tolist()])


def _sizes(problem: WholeCounts) -> Places:
    """Return the records of each output before any moves."""
    sizes = np.zeros(problem.relaxed.alphabet.m, np.int64)
    np.add.at(sizes, _home(problem), problem._records)
    return sizes


def _moved(n: Places, home: Places, groups: Places) -> Places:
    """Return counts m(x, x̂) of groups of these sizes, of the fewest moves."""
    counts = np.zeros((len(n), len(groups)), np.int64)
    letters = np.arange(len(n))
    counts[letters, home] = np.minimum(n, groups[home])
    leave, arrive = n - counts[letters, home], groups - counts.sum(axis=0)
    s = np.repeat(letters, leave)
    np.add.at(counts, (s, np.repeat(np.arange(len(groups)), arrive)), 1)
    return counts


def _support(solved: Solution | None) -> npt.NDArray[np.bool_] | None:
    """Return the moves that the optimal law makes."""
    if solved is None or solved.certificate.primal is None:
        return None
    matrix = solved.certificate.primal.matrix
    return np.asarray((matrix if isinstance(matrix, np.ndarray) else matrix.toarray()) > 1e-6)


def _table(problem: WholeCounts, counts: Places) -> Counts:
    """Return counts as criteria are evaluated at them."""
    alphabet = problem.relaxed.alphabet
    s, y = np.nonzero(counts)
    if problem.encoder == "x":  # of criteria that see x alone: as good with any split by W
        shares = alphabet.law / alphabet.law.sum(axis=0)
        w, at = np.nonzero(shares[:, s])
        moves = alphabet.w_support[alphabet.w_of[w, s[at]]], alphabet.x_of[s[at]], y[at]
        masses = np.array([
            Fraction(int(counts[s[i], y[i]])) * Fraction(float(alphabet.law[v, s[i]]))
            / int(problem._records[s[i]]) for v, i in zip(w.tolist(), at.tolist(), strict=True)
        ], object)  # fmt: skip
        unit = math.lcm(*(mass.denominator for mass in masses))
        whole_units = np.array([float(mass * unit) for mass in masses])
        return Counts.of_moves(alphabet, moves, whole_units)
    moves = alphabet.w_support[alphabet.w_of[0, s]], alphabet.x_of[s], y
    return Counts.of_moves(alphabet, moves, counts[s, y].astype(float), counts.sum(axis=0))


def _verdicts(problem: WholeCounts, counts: Places) -> dict[str, Verdict]:
    """Return how each criterion stands on counts, decided exactly."""
    table = _table(problem, counts)
    verdicts = {}
    for name, criterion in problem.relaxed._criteria().items():
        rules = problem.relaxed.program_rules[name].values()
        if all(isinstance(rule, EntryBounds) for rule in rules):
            verdicts[name] = Verdict(all(_within(problem, rule, counts) for rule in rules))
        else:
            verdicts[name] = criterion.verdict(table)
    return verdicts


def _within(problem: WholeCounts, rule: Any, counts: Places) -> bool:
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


def _total(problem: WholeCounts, counts: Places) -> Fraction:
    """Return Σ d m, exactly."""
    s, y = np.nonzero(counts)
    cells = Cells(np.zeros_like(s), s, y, counts[s, y])
    cost = problem.relaxed.distortion.cost
    each = zip(cost_at(cost, cells), counts[s, y].tolist(), strict=True)
    return sum((rational(d) * m for d, m in each), Fraction(0))


def _least_total(problem: WholeCounts, solved: Solution | None) -> Fraction:
    """Return what no table's total is below, by proof: a multiple of the step of the costs."""
    program, least = problem.relaxed.program, Fraction(0)
    if solved is not None and math.isfinite(solved.lower):
        least = max(least, Fraction(solved.lower) * int(problem._records.sum()))
    if problem.smallest_group > 1 and one_hamming(program, _home(problem)) is not None:
        before = _sizes(problem)
        grouped = least_grouping(before, problem.smallest_group)
        price = Fraction(program.cost(program.objectives[""]).max())
        least = max(least, price * int(np.maximum(before - grouped, 0).sum()))
    costs = {Fraction(d) for d in np.unique(program.cost(program.objectives[""])).tolist() if d}
    unit = math.lcm(*(d.denominator for d in costs)) if costs else 1
    step = Fraction(math.gcd(*(int(d * unit) for d in costs)), unit) if costs else Fraction(1)
    return math.ceil(least / step) * step


def _statement(problem: WholeCounts) -> str:
    """Return the program in one line."""
    rules = list(map(repr, problem.criteria))
    if problem.smallest_group > 1:
        rules.append(f"groups of {problem.smallest_group:,} records or none")
    over = "x, x̂" if problem.encoder == "x" else "w, x, x̂"
    return f"min E d(X, X̂)  s.t.  {', '.join([*rules, f'm({over}) whole'])}"


def _solution(problem: WholeCounts, solved: Solution | None, answer: Answer) -> TableSolution:
    source, alphabet = problem.source, problem.relaxed.alphabet
    records, least = int(problem._records.sum()), _least_total(problem, solved)
    lower = float(least / records)
    lower = lower if Fraction(lower) * records <= least else math.nextafter(lower, -math.inf)
    how: dict[str, Any] = {
        "title": type(problem).__name__, "statement": _statement(problem),
        "units": problem.units, "records": records, "law": source.joint, "lower": lower,
        "claimed": answer.claimed / records, "smallest_group": problem.smallest_group,
        "relaxed": solved, "rounds": answer.rounds, "cuts": answer.cuts,
    }  # fmt: skip
    if answer.counts is None:
        status = "infeasible by the solver's claim" if answer.infeasible else "stopped"
        return TableSolution(status=status, **how)
    counts, total = answer.counts, _total(problem, answer.counts)
    claimed = answer.finished and answer.claimed > -math.inf
    status = "optimal by the solver's claim" if claimed else "feasible"
    labels = [alphabet.inputs[i] for i in alphabet.support.tolist()]
    channel = CountedChannel(
        counts, inputs=labels, outputs=alphabet.outputs, schema=source.schema,
        encoder=problem.encoder,
    )  # fmt: skip
    joint = np.zeros((len(source.w), alphabet.m))
    places = alphabet.w_support[alphabet.w_of]
    for atoms, masses in zip(places, alphabet.law, strict=True):
        np.add.at(joint, atoms, masses[:, None] * counts / problem._records[:, None])
    return TableSolution(
        status="proved optimal" if total == least else status, counts=counts, joint=joint,
        total=total, channel=channel, verdicts=_verdicts(problem, counts), **how,
    )  # fmt: skip
