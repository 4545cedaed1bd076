r"""Linear programs of guesses and of total variation, where every letter is its own value of W.

There a polyhedral measure has a row for each entry of the channel (:class:`Entries
<cvxprivacy.leakage.base.Entries>`),

.. math:: w(v)\, J(v, y) ≤ τ_y \qquad\text{or}\qquad J(v, y) - w(v)\, q_y ≤ T(v, y),

with as many rows as entries and two or three numbers in each.  HiGHS solves it by the simplex
method, while a Newton step of the package's own methods takes n³ for each output.  Optima have few
entries: the program begins with those of least cost, and goes on with those that pay at the
multipliers of the rows so far, an entry and its row together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from cvxprivacy.exact import FloatArray
from cvxprivacy.leakage.base import Entries, Polyhedral
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Expression
from cvxprivacy.settings import EntryRows
from cvxprivacy.solvers.integer_program import IntegerProgram
from cvxprivacy.solvers.interior.views import labels_differ
from cvxprivacy.solvers.watch import Watch

__all__ = ["optimum", "pays"]

_TOLERANCE = 1e-9  # of HiGHS, in the reduced cost of an entry
_PRIMAL = 4  # HiGHS' number of the primal simplex, from which the release so far goes on


def pays(program: ChannelProgram) -> bool:
    """Tell whether a program is linear, and has a measure that is told entry by entry."""
    if len(program.objectives) > 1 or program.auxiliaries:
        return False
    views = _views(program)
    return bool(views) and all(map(bool, views.values()))


def _views(program: ChannelProgram) -> dict[str, Entries | None]:
    """Return the rows of every view that counts; None where it has none of this form."""
    terms = [*program.objectives.values(), *(r.expression for r in program.constraints.values())]
    views: dict[str, Entries | None] = {}
    for view in dict.fromkeys(view for term in terms for view in term.weights):
        measure, matrix = program.views[view].measure, program.view_matrix(view)
        views[view] = None
        if isinstance(measure, Polyhedral) and labels_differ(matrix):
            views[view] = measure.entries(program.reference(view))
    return views


def optimum(program: ChannelProgram, watch: Watch) -> tuple[FloatArray, Dual, str] | None:
    """Return the channel and the multipliers of the simplex method, and its own words.

    None where it stopped without any.
    """
    statement = _Statement(program)
    answer = _grown(statement, watch)
    if answer is None:
        return None
    x, prices, words = answer
    return statement.channel(x), statement.dual(prices), words


class _Statement:
    """A program as rows of entries J(s, y), and of the levels τ, or q and T, of each view.

    Attributes
    ----------
    rows : sparse array, shape (rows, columns)
    cost, low, high : ndarray, shape (columns,)
    least, most : ndarray, shape (rows,)
    of_row, of_column : ndarray of int
        The entry without which a row or column says nothing; −1 where there is none.
    """

    def __init__(self, program: ChannelProgram) -> None:
        self.program = program
        n, m = program.n, program.m
        self.views = {view: rows for view, rows in _views(program).items() if rows is not None}
        self.size, self._levels, columns = n * m, {}, n * m
        for view, entries in self.views.items():
            self._levels[view] = columns
            columns += m * (1 + entries.excess * len(entries.weights))
        self.of_column = np.append(np.arange(self.size), np.full(columns - self.size, -1))
        self._rows: list[Any] = []
        self._ends: list[tuple[FloatArray, FloatArray, np.ndarray]] = []
        self._count = 0
        self._add(self._spread(np.repeat(np.arange(n), m), np.arange(self.size), 1.0, n),
                  program.mass, program.mass)  # fmt: skip
        self._places = {view: self._stated(view) for view in self.views}
        self._prices: dict[str, slice] = {}
        for name, constraint in program.constraints.items():
            rows, bound = self._gradient(constraint.expression), constraint.bounds(m)
            if not constraint.per_output:
                rows = sparse.csr_array(rows.sum(axis=0).reshape(1, -1))
                bound = np.array([float(bound) - float(constraint.expression.constant)])
            low = bound if constraint.sense == "==" else np.full(len(bound), -np.inf)
            self._prices[name] = self._add(rows, low, bound)
        (objective,) = program.objectives.values()
        self.cost = np.asarray(self._gradient(objective).sum(axis=0)).ravel()
        self.low, self.high = np.zeros(columns), np.full(columns, np.inf)
        mass = program.mass[:, None]  # rows of sum 1 have their own multipliers
        if program.floor is not None:
            self.low[: self.size] = (mass * program.floor).ravel()
        if program.ceiling is not None:
            self.high[: self.size] = (mass * program.ceiling).ravel()
        self.rows = sparse.vstack(self._rows, format="csr")
        self.least, self.most, self.of_row = map(np.concatenate, zip(*self._ends, strict=True))

    def _spread(self, rows: Any, columns: Any, values: Any, count: int) -> Any:
        """Return sparse rows of all columns."""
        values = np.broadcast_to(values, np.shape(columns))
        shape = (count, len(self.of_column))
        return sparse.csr_array((values, (rows, columns)), shape=shape)

    def _add(self, rows: Any, least: Any, most: Any, of: Any = -1) -> slice:
        """Add rows, and return their place."""
        count = rows.shape[0]
        self._rows.append(rows)
        self._ends.append((least, most, np.broadcast_to(of, count)))
        self._count += count
        return slice(self._count - count, self._count)

    def _stated(self, view: str) -> tuple[np.ndarray, slice]:
        """Add the rows of a view, and return their labels and their place."""
        program, entries, start = self.program, self.views[view], self._levels[view]
        m, matrix = program.m, program.view_matrix(view).toarray()
        v, s = np.nonzero(matrix)
        count = len(v) * m  # a row for each label's letter, and each output
        row, y = np.arange(count), np.tile(np.arange(m), len(v))
        entry, label = np.repeat(s, m) * m + y, np.repeat(v, m)
        joint, weight = np.repeat(matrix[v, s] / program.mass[s], m), entries.weights[label]
        if entries.excess:
            q = self._spread(y, entry, joint, m)
            q -= self._spread(np.arange(m), start + np.arange(m), 1.0, m)
            self._add(q, np.zeros(m), np.zeros(m))
            rows = self._spread(row, entry, joint, count)
            rows -= self._spread(row, start + y, weight, count)
            rows -= self._spread(row, start + m + label * m + y, 1.0, count)
            self.of_column[start + m + label * m + y] = entry
        else:
            rows = self._spread(row, entry, joint * weight, count)
            rows -= self._spread(row, start + y, 1.0, count)
        return v, self._add(rows, np.full(count, -np.inf), np.zeros(count), entry)

    def _gradient(self, term: Expression) -> Any:
        """Return a quantity at each output, a row each."""
        n, m = self.program.n, self.program.m
        cost = self.program.cost(term).ravel()
        rows = self._spread(np.tile(np.arange(m), n), np.arange(self.size), cost, m)
        for view, weight in term.columns(m).items():
            weight, start = weight * self.program.unit(view), self._levels[view]
            if self.views[view].excess:
                count = len(self.views[view].weights)
                place = start + m + np.arange(count * m)
                weight = np.tile(weight, count)
            else:
                place = start + np.arange(m)
            rows += self._spread(np.arange(len(place)) % m, place, weight, m)
        return rows

    # ---- the entries ---------------------------------------------------------------------

    def first(self) -> np.ndarray:
        """Return the entries to begin with: of least cost, and those of a constant release."""
        settings = EntryRows.current()
        n, m, mass = self.program.n, self.program.m, self.program.mass
        if self.size <= settings.listed:
            return np.ones(self.size, dtype=bool)
        chosen = (self.low[: self.size] > 0).reshape(n, m)
        closed = (self.high[: self.size] <= 0).reshape(n, m)
        terms = [*self.program.objectives.values()]
        terms += [constraint.expression for constraint in self.program.constraints.values()]
        for cost in (np.where(closed, np.inf, self.program.cost(term)) for term in terms):
            count = min(settings.cheapest, m)
            cheap = np.argpartition(cost, count - 1, axis=1)[:, :count]
            chosen[np.arange(n)[:, None], cheap] = True
            chosen[:, np.argmin(mass @ cost)] = True
        return (chosen & ~closed).ravel()

    def lacking(self, prices: FloatArray, chosen: np.ndarray) -> FloatArray:
        """Return by how much each entry that is not there pays, and complete the prices.

        The multiplier of its row may be any that its level has room for, which may suffice.
        """
        reduced = self.cost - self.rows.T @ prices
        need = np.where(chosen, 0.0, np.maximum(-reduced[: self.size], 0.0))
        need[self.high[: self.size] <= 0] = 0.0
        if len(self.views) == 1:
            ((view, entries),) = self.views.items()
            labels, place = self._places[view]
            if not entries.excess:
                m, start = self.program.m, self._levels[view]
                entry = self.of_row[place]
                unit = np.asarray(self.rows[place][:, : self.size].sum(axis=1)).ravel()
                price = need[entry] / unit
                room = np.maximum(reduced[start : start + m], 0.0) + _TOLERANCE
                enough = price.reshape(-1, m).sum(axis=0) <= room
                price *= np.tile(enough, len(labels))
                prices[place] -= price
                need[entry[price > 0]] = 0.0
        return need

    # ---- the answer ----------------------------------------------------------------------

    def channel(self, x: FloatArray) -> FloatArray:
        joint = np.clip(x[: self.size].reshape(self.program.n, self.program.m), 0.0, None)
        return joint / self.program.mass[:, None]

    def dual(self, prices: FloatArray) -> Dual:
        program, multipliers = self.program, {}
        for name, place in self._prices.items():
            price = -prices[place]
            multipliers[name] = price if program.constraints[name].per_output else float(price[0])
        weights = Dual({}, multipliers).cleaned(program).weights(program)
        scores = {}
        for view, entries in self.views.items():
            labels, place = self._places[view]
            score = np.zeros((len(entries.weights), program.m))
            score[labels] = -prices[place].reshape(-1, program.m)
            with np.errstate(divide="ignore", invalid="ignore"):
                score = score * entries.parameters[:, None] / (weights[view] * program.unit(view))
            scores[view] = np.where(np.isfinite(score), score, 0.0)
        return Dual(scores, multipliers)


def _grown(statement: _Statement, watch: Watch) -> tuple[FloatArray, FloatArray, str] | None:
    """Return the optimum, the multipliers of all rows, and words, by generation of entries."""
    program, by_column = IntegerProgram(), statement.rows.T.tocsr()
    chosen, more = np.zeros(statement.size, dtype=bool), statement.first()
    row_at, column_at = (np.full(size, -1) for size in statement.rows.shape)
    answer, rounds, steps = None, 0, 0
    while not watch.stopped:
        new, ahead = [], not chosen.any()
        for owner in (statement.of_row, statement.of_column):
            of_new = np.where(owner >= 0, more[owner], ahead)
            new.append(np.flatnonzero(of_new))
        rows, columns = new
        program.add_rows(
            statement.least[rows], statement.most[rows], _places(statement.rows[rows], column_at)
        )
        row_at[rows] = row_at.max() + 1 + np.arange(len(rows))
        program.add_columns(
            statement.cost[columns], statement.low[columns], statement.high[columns],
            _places(by_column[columns], row_at),
        )  # fmt: skip
        column_at[columns] = column_at.max() + 1 + np.arange(len(columns))
        chosen |= more
        x, solved, _ = program.solve(watch)
        rounds, steps = rounds + 1, steps + program.solver.getInfo().simplex_iteration_count
        if program.infeasible and not chosen.all():
            more = ~chosen
            continue
        if x is None or not solved:
            break
        values = np.where(column_at >= 0, x[column_at], 0.0)
        prices = np.where(row_at >= 0, program.prices[row_at], 0.0)
        need = statement.lacking(prices, chosen)
        words = f"HiGHS, entry by entry: {rounds} rounds, {steps} steps"
        answer = values, prices, words
        lacking = np.flatnonzero(need > _TOLERANCE)
        if not len(lacking):
            break
        program.solver.setOptionValue("simplex_strategy", _PRIMAL)
        most = EntryRows.current().added * statement.program.n
        more = np.zeros(statement.size, dtype=bool)
        more[lacking[np.argsort(-need[lacking])[:most]]] = True
    return answer


def _places(lines: Any, at: np.ndarray) -> Any:
    """Return rows or columns in the numbers that HiGHS has of what is there."""
    table = lines.tocoo()
    kept = at[table.col] >= 0
    shape = (lines.shape[0], int(at.max()) + 1)
    return sparse.csr_array((table.data[kept], (table.row[kept], at[table.col[kept]])), shape=shape)
