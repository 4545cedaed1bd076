"""A criterion on a table by its own rows: the constraints that it states, at the table's law.

With N(l, s, x̂) records of the atoms l of letters s, every quantity of a program is a sum over
them; a row f(Q) ≤ b is f(N) ≤ b Σ N, as f is homogeneous.  Of a table of which N(w, x̂) alone is
known, the rows are stated for letters that tell nothing more, and decided where they use no more.
Rules of single chances, such as bounds on p(x̂ | s), are of the randomisation: no table tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from cvxprivacy.additive import AdditiveCost, Cost
from cvxprivacy.criteria.counts import Cells, Counts, Verdict
from cvxprivacy.criteria.decisions import LeakageTerm, at_most, common
from cvxprivacy.errors import InputError
from cvxprivacy.exact import floats, rational
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import nat
from cvxprivacy.model.laws import tabulated
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import View
from cvxprivacy.programs.compiler import is_centred
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.parameter import tracing
from cvxprivacy.programs.side_conditions import EntryBounds, Excess

__all__ = ["verdict_by_rows"]


def verdict_by_rows(criterion: Any, table: Counts) -> Verdict:
    """Return how a table stands with what a criterion states."""
    release, cells = table.release, table.cells
    of_letters = release is None or cells is None
    if release is None or cells is None:
        if (laid_out := _anonymous(table)) is None:
            return Verdict(None)
        release, cells = laid_out
    try:
        with tracing():
            rules = list(criterion.constraints(release).values())
    except InputError:
        if not of_letters:
            raise
        return Verdict(None)  # it speaks of letters that are not known
    rows = [rule for rule in rules if isinstance(rule, Constraint)]
    if not all(_of_law(row, release) for row in rows):
        return Verdict(None)
    if any(row.expression.of_channel for row in rows) or is_centred(rows):
        return Verdict(None)
    if of_letters and not (rows == rules and all(_blind(row, release) for row in rows)):
        return Verdict(None)
    stands: list[_Row | _Entries] = [_Row(row, release, cells, table) for row in rows]
    if rows and rows == rules and all(row.per_output for row in rows):
        decided = zip(*(each.decided() for each in stands), strict=True)
        return Verdict.of_letters([_all(each) for each in decided])
    stands += [_Entries(rule, cells, table) for rule in rules if not isinstance(rule, Constraint)]
    holds = _all([verdict for each in stands for verdict in each.decided()])
    number = criterion.value
    typed = isinstance(number, int | float | Fraction)
    single = typed and len(stands) == 1 and stands[0].bound == number
    return Verdict(holds, stands[0].value if single else None)


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _anonymous(table: Counts) -> tuple[Alphabet, Cells] | None:
    """Return letters of which nothing but W and what is released matters.

    Two key letters, apart in every distortion and independent of W: what tells them apart speaks
    of more than is known.
    """
    at = slice(None) if table.order is None else list(table.order)
    masses, joint = np.asarray(table.masses, float)[at], table.joint[at]
    values = np.flatnonzero(masses > 0)
    if not len(values) or joint[masses == 0].any():
        return None
    m = joint.shape[1]
    apart = np.arange(2.0)[:, None] + np.arange(m)  # d(x, x̂) differs in both
    both = np.tile(masses[:, None], 2)
    law = both if table.integral else both / both.sum()
    names = [f"value {w}" for w in range(len(masses))]  # labels are not known: none is the rule's
    # no number of records, which are there twice
    source = DiscreteSource._of(law, tabulated(law), (names, None, None))
    release = Alphabet(source, apart, units=table.units)
    w, y = np.nonzero(joint[values])
    place = {int(w): atom for atom, w in enumerate(release.w_of[:, 0].tolist())}
    atoms = np.array([place[value] for value in w.tolist()], np.int64)
    return release, Cells(atoms, np.zeros(len(w), np.int64), y, joint[values][w, y])


def _of_law(row: Constraint, release: Alphabet) -> bool:
    """Tell whether a row is of these very letters, and not of those of another law."""
    expression, letters = row.expression, (release.n, release.m)
    if expression.origin not in (None, release.origin):
        return False
    return expression.cost is None or tuple(expression.cost.shape[-2:]) == letters


def _blind(row: Constraint, release: Alphabet) -> bool:
    """Tell whether a row depends on J alone, and is the same of all letters."""
    expression = row.expression
    views = (expression.views[view] for view in expression.weights)
    labels = (table for view in views for table in (view.labels, view.reference))
    if any(table is not None and (table != table[:, :1]).any() for table in labels):
        return False
    alike = [np.asarray(weight) for weight in expression.weights.values()]
    if any(weight.ndim and (weight != weight[0]).any() for weight in alike):
        return False
    if isinstance(row.bound, tuple) and len(set(row.bound)) > 1:
        return False
    if expression.cost is None:
        return True
    cost = np.asarray(expression.cost)
    layers = np.broadcast_to(cost, (*release.law.shape, release.m))
    return bool((layers == layers[:, :1, :1]).all())


class _Row:
    """One row of a program at a table's records."""

    def __init__(self, row: Constraint, release: Alphabet, cells: Cells, table: Counts) -> None:
        self.row, self.release, self.cells, self.table = row, release, cells, table
        self.expression = row.expression
        self.m, self.bound = release.m, row.bound
        self.records = _totals(cells, self.m)

    @property
    def value(self) -> float:
        """The left-hand side of a row of all outputs, in floats."""
        terms = (term for column in self._leaked() for term in column)
        in_units = arb(nat(self.table.units))
        leaked = sum(float(term.enclosure(in_units).mid()) for term in terms)
        return (leaked + float(sum(self._costs()))) / float(sum(self.records, Fraction(0)))

    def decided(self) -> list[bool | None]:
        """Tell of each output, or of all together, whether the row holds."""
        letters = [[y] for y in range(self.m)] if self.row.per_output else [list(range(self.m))]
        costs, leaked = self._costs(), self._leaked()
        return [self._decided(each, costs, leaked) for each in letters]

    def _decided(
        self, letters: list[int], costs: list[Fraction], leaked: list[list[LeakageTerm]]
    ) -> bool | None:
        expression, table, bound = self.expression, self.table, self.bound
        total = sum(self.records, Fraction(0))
        limit = bound[letters[0]] if isinstance(bound, tuple) else bound
        spare = limit * total - sum((costs[y] for y in letters), Fraction(0))
        off = rational(expression.cost_radius) * sum(self.records[y] for y in letters)
        off += rational(self.row.radius) * total
        slack = table.slack(limit) * total
        if self.row.sense == "==":
            return False if abs(spare) > off + slack else None if off else True
        terms = [term for y in letters for term in leaked[y]]
        return at_most(terms, spare + slack, table.units, off)

    def _costs(self) -> list[Fraction]:
        """Return ⟨C, N⟩ of each output's records."""
        sums = [Fraction(0)] * self.m
        if self.expression.cost is None:
            return sums
        values = cost_at(self.expression.cost, self.cells)
        for y, n, value in zip(
            self.cells.output.tolist(), self.cells.masses.tolist(), values, strict=True
        ):
            if value:
                sums[y] += rational(n) * rational(value)
        return sums

    def _leaked(self) -> list[list[LeakageTerm]]:
        """Return what each output's records leak in each view."""
        terms: list[list[LeakageTerm]] = [[] for _ in range(self.m)]
        for name, weight in self.expression.weights.items():
            view = self.expression.views[name]
            masses = common(_masses(view, self.release))
            there = [v for v, mass in enumerate(masses) if mass]
            columns = self._joint(view)
            data = view.measure.data()
            for y, column in enumerate(columns):
                share = rational(weight[y] if np.ndim(weight) else weight)
                if share and any(column):
                    joint = [column[v] for v in there]
                    references = [masses[v] for v in there]
                    terms[y].append(LeakageTerm(data, joint, references, share / self.unit))
        return terms

    def _joint(self, view: View) -> list[list[int]]:
        """Return J(v, y) in whole units, a list for each output."""
        labels = view.labels[self.cells.atom, self.cells.letter]
        columns = [[Fraction(0)] * view.size for _ in range(self.m)]
        for v, y, n in zip(
            labels.tolist(), self.cells.output.tolist(), self.cells.masses.tolist(), strict=True
        ):
            if v >= 0:
                columns[y][v] += rational(n)
        return [[int(j * self.unit) for j in column] for column in columns]

    @cached_property
    def unit(self) -> int:
        """How many units of whole masses a record is: more than one if weights are fractions."""
        return int(np.lcm.reduce([rational(n).denominator for n in self.cells.masses.tolist()]))


def cost_at(cost: Cost, cells: Cells) -> list[Any]:
    """Return C(l, s, x̂) of each cell, exactly."""
    if isinstance(cost, AdditiveCost):
        sums = [Fraction(0)] * len(cells.letter)
        for part in cost.parts:
            entries = part.table[part.rows[cells.letter], part.columns[cells.output]].tolist()
            sums = [a + rational(b) for a, b in zip(sums, entries, strict=True)]
        return sums
    table = np.asarray(cost)
    if table.ndim == 2:
        return list(table[cells.letter, cells.output].tolist())
    atom = cells.atom if len(table) > 1 else np.zeros_like(cells.atom)
    return list(table[atom, cells.letter, cells.output].tolist())


def _totals(cells: Cells, m: int) -> list[Fraction]:
    totals = [Fraction(0)] * m
    for y, n in zip(cells.output.tolist(), cells.masses.tolist(), strict=True):
        totals[y] += rational(n)
    return totals


def _masses(view: View, release: Alphabet) -> list[Fraction]:
    """Return the masses whose shares are the reference law of a view."""
    labels = view.labels if view.reference is None else view.reference
    masses = [Fraction(0)] * view.size
    for v, mass in zip(labels.ravel().tolist(), release.law.ravel().tolist(), strict=True):
        if v >= 0:
            masses[v] += Fraction(mass)
    return masses


class _Entries:
    """A rule that is no constraint: of forbidden moves, of the released marginal, or of chances."""

    def __init__(self, rule: Any, cells: Cells, table: Counts) -> None:
        self.rule, self.cells, self.table = rule, cells, table
        self.bound = getattr(rule, "bound", None)

    @property
    def value(self) -> float | None:
        """What a marginal exceeds its levels by, in floats."""
        return float(self._exceeded / self._total) if isinstance(self.rule, Excess) else None

    def decided(self) -> list[bool | None]:
        rule = self.rule
        if isinstance(rule, Excess) and rule.pair is None:
            # Σ_y (Σ_s a(s) N(s, y) − b_y Σ N)₊ ≤ t Σ N
            bound = rational(rule.bound)
            spare = (bound + self.table.slack(bound)) * self._total - self._exceeded
            off = rational(rule.radius) * self._total
            return [None if -off <= spare < off else spare >= off]
        if not isinstance(rule, EntryBounds):
            return [None]
        at = self.cells.letter, self.cells.output
        if rule.upper is not None and (np.asarray(rule.upper)[at] == 0).any():
            return [False]
        forbids = rule.upper is not None and bool(np.isin(floats(rule.upper), (0.0, 1.0)).all())
        free = rule.lower is None or not np.asarray(rule.lower).any()
        return [True if forbids and free else None]

    @property
    def _total(self) -> Fraction:
        return sum(map(rational, self.cells.masses.tolist()), Fraction(0))

    @property
    def _exceeded(self) -> Fraction:
        above = [-rational(level) * self._total for level in self.rule.levels.tolist()]
        share, cells = self.rule.share.tolist(), self.cells
        places = zip(cells.letter.tolist(), cells.output.tolist(), strict=True)
        for (s, y), n in zip(places, cells.masses.tolist(), strict=True):
            above[y] += rational(share[s]) * rational(n)
        return sum((x for x in above if x > 0), Fraction(0))
