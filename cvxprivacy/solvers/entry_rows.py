r"""Linear programs of guesses and of total variation, where every letter is its own value of W.

There a polyhedral measure has a row for each entry of the channel (:class:`Entries
<cvxprivacy.leakage.polyhedral.Entries>`),

.. math:: w(v)\, J(v, y) ≤ τ_y \qquad\text{or}\qquad J(v, y) - w(v)\, q_y ≤ T(v, y),

with as many rows as entries and two or three numbers in each.  HiGHS solves it by the simplex
method, while a Newton step of the package's own methods takes n³ for each output.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from cvxprivacy.exact import FloatArray
from cvxprivacy.leakage.polyhedral import Entries, Polyhedral
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Expression
from cvxprivacy.solvers.interior.views import labels_differ
from cvxprivacy.solvers.watch import Watch

__all__ = ["optimum", "pays"]

_ENTRIES = 25_000  # beyond which the simplex method takes minutes


def pays(program: ChannelProgram) -> bool:
    """Tell whether a program is linear, and has a measure that is told entry by entry."""
    if len(program.objectives) > 1 or program.auxiliaries:
        return False
    views = _views(program)
    return bool(views) and program.n * program.m <= _ENTRIES and all(map(bool, views.values()))


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
    n, m = program.n, program.m
    size, mass = n * m, program.mass[:, None]
    views = {view: rows for view, rows in _views(program).items() if rows is not None}
    columns, levels = size, {}  # of each view τ, or q and T
    labels: dict[str, Any] = {}
    for view, entries in views.items():
        levels[view] = columns
        columns += m * (1 + entries.excess * len(entries.weights))
    least: list[Any] = []
    right: list[FloatArray] = []
    equal, sums = (
        [_spread(np.repeat(np.arange(n), m), np.arange(size), 1.0, n, columns)],
        [program.mass],
    )
    for view, entries in views.items():
        matrix = program.view_matrix(view).toarray()
        v, s = np.nonzero(matrix)
        share, labels[view] = matrix[v, s] / program.mass[s], v
        count = len(v) * m  # a row for each label's letter, and each output
        row, y = np.arange(count), np.tile(np.arange(m), len(v))
        entry, label = np.repeat(s, m) * m + y, np.repeat(v, m)
        joint, level = np.repeat(share, m), levels[view] + y
        weight = entries.weights[label]
        if entries.excess:
            q = _spread(y, entry, joint, m, columns)
            q -= _spread(np.arange(m), levels[view] + np.arange(m), 1.0, m, columns)
            equal.append(q)
            sums.append(np.zeros(m))
            rows = _spread(row, entry, joint, count, columns)
            rows -= _spread(row, level, weight, count, columns)
            rows -= _spread(row, levels[view] + m + label * m + y, 1.0, count, columns)
        else:
            rows = _spread(row, entry, joint * weight, count, columns)
            rows -= _spread(row, level, 1.0, count, columns)
        least.append(rows)
        right.append(np.zeros(count))

    def gradient(term: Expression) -> Any:
        """Return a quantity at each output, a row each."""
        y, cost = np.tile(np.arange(m), n), program.cost(term).ravel()
        rows = _spread(y, np.arange(size), cost, m, columns)
        for view, weight in term.columns(m).items():
            weight, start = weight * program.unit(view), levels[view]
            if views[view].excess:
                count = len(views[view].weights)
                place = start + m + np.arange(count * m)
                weight = np.tile(weight, count)
            else:
                place = start + np.arange(m)
            rows += _spread(np.arange(len(place)) % m, place, weight, m, columns)
        return rows

    places: dict[str, tuple[bool, slice]] = {}
    for name, constraint in program.constraints.items():
        rows, bound = gradient(constraint.expression), constraint.bounds(m)
        if not constraint.per_output:
            rows = sparse.csr_array(rows.sum(axis=0).reshape(1, -1))
            bound = np.array([float(bound) - float(constraint.expression.constant)])
        table, ends = (equal, sums) if constraint.sense == "==" else (least, right)
        before = sum(map(len, ends))
        places[name] = constraint.sense == "==", slice(before, before + len(bound))
        table.append(rows)
        ends.append(bound)
    (objective,) = program.objectives.values()
    low = np.zeros((n, m)) if program.floor is None else program.floor
    bounds = np.full((columns, 2), [0.0, np.inf])  # rows of sum 1 have their own multipliers
    bounds[:size, 0] = (mass * low).ravel()
    if program.ceiling is not None:
        bounds[:size, 1] = (mass * program.ceiling).ravel()
    answer: Any = linprog(
        np.asarray(gradient(objective).sum(axis=0)).ravel(),
        sparse.vstack(least, format="csr"),
        np.concatenate(right),
        sparse.vstack(equal, format="csr"),
        np.concatenate(sums),
        bounds=cast(Any, bounds),
        method="highs-ds",
        options={"time_limit": np.inf if watch.limit is None else max(watch.left, 1e-3)},
    )
    if answer.x is None or answer.ineqlin.marginals is None:
        return None
    channel = np.clip(answer.x[:size].reshape(n, m), 0.0, None) / mass
    prices = -answer.ineqlin.marginals, -answer.eqlin.marginals
    multipliers: dict[str, Any] = {}
    for name, (is_equal, place) in places.items():
        price = prices[is_equal][place]
        multipliers[name] = price if program.constraints[name].per_output else float(price[0])
    weights = Dual({}, multipliers).cleaned(program).weights(program)
    scores, start = {}, 0
    for view, entries in views.items():
        score, count = np.zeros((len(entries.weights), m)), len(labels[view])
        score[labels[view]] = prices[0][start : start + count * m].reshape(count, m)
        start += count * m
        with np.errstate(divide="ignore", invalid="ignore"):
            score = score * entries.parameters[:, None] / (weights[view] * program.unit(view))
        scores[view] = np.where(np.isfinite(score), score, 0.0)
    words = f"HiGHS, entry by entry: {answer.message.split('(')[0].strip()}, {answer.nit} steps"
    return channel, Dual(scores, multipliers), words


def _spread(rows: Any, columns: Any, values: Any, count: int, width: int) -> Any:
    """Return a sparse table of entries."""
    values = np.broadcast_to(values, np.shape(columns))
    return sparse.csr_array((values, (rows, columns)), shape=(count, width))
