"""Earth mover's distance between posterior and prior, by a ground distance between values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, floats as exact_floats, fractions, over, written
from cvxprivacy.frozen import owned
from cvxprivacy.highs import quiet_highs
from cvxprivacy.leakage.base import Face, Places, Polyhedral, Recourse, beyond
from cvxprivacy.validation import one_of, table
from cvxprivacy_verifier.transport import plan

__all__ = ["EarthMover", "order_in_words", "worth"]

SHOWN = 12  # values of W whose order is told in full


class EarthMover(Polyhedral):
    """The least cost of moving the posterior to the prior, averaged over released letters.

    F(J) is the optimum of min Σ ρ(v, w) T(v, w) over plans T ≥ 0 that take J to π q.  As a bound
    for every released letter it is the t-closeness of Li, Li and Venkatasubramanian, *t-Closeness:
    Privacy Beyond k-Anonymity and ℓ-Diversity*, ICDE 2007, §5.

    Parameters
    ----------
    ground : "ordered", "equal" or array_like, shape (|W|, |W|)
        ρ: abs(i − j)/(|W| − 1) for values in their order, 1 between any two different ones (total
        variation), or a table with zeros on its diagonal.  In a table, values without mass count.
        The order is that of ``source.w``: of numbers, dates and bins their own, of ordered
        categories the one declared; of text it is the alphabet, and answers say so in print.

    Raises
    ------
    InputError
        For numbers that are no distances; once there is a source, for another number of values.

    Examples
    --------
    W is low, middle or high, and told outright.  From low, a third goes half the way and a third
    all of it, 1/2; from the middle two thirds go half the way, 1/3.  The mean is 4/9, against 2/3
    if all values are equally far apart:

    >>> import cvxprivacy as cpv
    >>> import numpy as np
    >>> told = np.eye(3) / 3
    >>> round(cpv.leakage.EarthMover().total(told), 4)
    0.4444
    >>> round(cpv.leakage.EarthMover("equal").total(told), 4)
    0.6667

    If a fifth of the records may be changed, 4/9 − 1/5 must leak:

    >>> problem = cpv.PrivacyDistortion(
    ...     cpv.DiscreteSource(told), cpv.hamming(3), budget=0.2, leakage=cpv.leakage.EarthMover()
    ... )
    >>> round(problem.solve().value, 4)
    0.2444
    """

    kind = "transport"
    meaning = "the mean share of ground distance by which the law of W moves when x̂ is seen"
    _called = "ground"

    def __init__(self, ground: str | npt.ArrayLike = "ordered") -> None:
        remedy = "pass a table (|W|, |W|) of numbers ≥ 0, 0 on its diagonal"
        self.ground: str | Exact
        self._fitted: tuple[int, npt.NDArray[np.intp]] | None = None  # values, those with mass
        if isinstance(ground, str):
            one_of(ground, "ground", "ordered", "equal")
            self.ground = ground
            return
        self.ground = table(ground, self._called, remedy, axes=(2,))
        if self.ground.shape[0] != self.ground.shape[1]:
            raise InputError(self._called, f"shape {self.ground.shape}", remedy)
        for i, far in enumerate(self.ground.diagonal()):
            if far:
                raise InputError(self._called, f"{far} is not 0", remedy, where=(i, i), value=far)

    def fitted(self, values: Sequence[Hashable], support: Sequence[int]) -> Self:
        size = len(values)
        if not isinstance(self.ground, str) and len(self.ground) != size:
            problem = f"ground distances of {len(self.ground)} values, where W has {size}"
            raise InputError(self._called, problem, f"pass a table ({size}, {size})")
        return self._with(_fitted=(size, np.asarray(support, dtype=np.intp)))

    @property
    def ordered(self) -> bool:
        return isinstance(self.ground, str) and self.ground == "ordered"

    @property
    def name(self) -> str:
        how = f" ({self.ground})" if isinstance(self.ground, str) else ""
        return f"earth mover's distance{how}"

    @property
    def label(self) -> str:
        return self.name if isinstance(self.ground, str) else super().label

    @property
    def symbol(self) -> str:
        return r"\mathrm{EMD}"

    def latex(self, at: Places) -> str:
        """Return the least cost of a plan T."""
        v, w = at.index, f"{at.index}'"
        plan = rf"T({v}, {w} \mid {at.observation})"
        expected = rf"{at.law.replace('@', w)} \, {at.mass}"
        ends = rf"{at.sum(plan, w)} = {at.j},\; {at.sum(plan)} = {expected}"
        rho = at.constant(r"\rho")
        cost = rf"{rho}({v}, {w}) \, {plan}"
        return rf"\min_{{T \ge 0}} \left\{{ {at.sum(cost, f'{v}, {w}')} : {ends} \right\}}"

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        """Return prices of the two ends of each way, which ρ bounds."""
        w, letter = f"{at.index}'", rf"{{{self.symbol}{at.mark}}}"
        f, g = at.score(f"f_{letter}"), at.score(f"g_{letter}", w)
        law = at.law.replace("@", w)
        mean = at.sum(rf"{law} \, {g}", w)
        rho = at.constant(r"\rho")
        sound = rf"{f} + {g} \le {rho}({at.index}, {w})"
        return rf"\left({f} + {mean}\right)", [at.each(sound, f"{at.index}, {w}")]

    def data(self) -> dict[str, Any]:
        rows = self._table.tolist()
        return {"kind": self.kind, "ground": [[written(c) for c in row] for row in rows]}

    @property
    def _places(self) -> tuple[int, npt.NDArray[np.intp]]:
        """How many values there are, and which of them have mass."""
        if self._fitted is None:
            raise TypeError("ground distances of no W in particular: use .fitted(values, support)")
        return self._fitted

    @cached_property
    def _table(self) -> Exact:
        size, at = self._places
        if not isinstance(self.ground, str):
            return owned(self.ground[np.ix_(at, at)])
        apart = np.abs(np.subtract.outer(at, at))
        return over(apart, max(size - 1, 1)) if self.ordered else over(np.sign(apart), 1)

    @cached_property
    def _floats(self) -> FloatArray:
        return exact_floats(self._table)

    @property
    def span(self) -> float:
        apart = self._floats[self._floats > 0]
        return float(np.median(apart)) if apart.size else 1.0

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        costs: FloatArray
        if self.ordered:  # what passes from a value to the next
            size, at = self._places
            passing = beyond(joint, reference).cumsum(axis=0)[:-1]
            costs = np.diff(at) @ np.abs(passing) / max(size - 1, 1)
        elif isinstance(self.ground, str):
            costs = np.abs(beyond(joint, reference)).sum(axis=0) / 2
        else:
            prices = worth(self._floats, joint, joint.sum(axis=0) * reference[:, None])
            unsure = np.isnan(prices[:1]).any(axis=0)
            prices[:, unsure] = self.scores(joint[:, unsure], reference)
            costs = (self.inside(prices, reference) * joint).sum(axis=0)
        return costs

    def between(self, p: FloatArray, q: FloatArray) -> float:
        values = range(len(p))
        return float(self.fitted(values, values).value(p[:, None], q)[0])

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        costs = self._floats.tolist()
        prices = [
            plan(column.tolist(), (column.sum() * reference).tolist(), costs)[1]
            for column in joint.T
        ]
        return np.array(prices).T

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        """Return f + Σ π g, g the most that f(v) + g(w) ≤ ρ(v, w) allows."""
        g = (self._floats[:, :, None] - scores[:, None, :]).min(axis=0)
        shifted: FloatArray = scores + reference @ g
        return shifted

    def face(self, prior: Exact, reference: Exact) -> Face | None:
        """Return the face of a law: classes of values at distance 0 have their shares of π q.

        None where such values are no classes.
        """
        alike = np.asarray(self._table == 0, bool)
        if (alike != alike.T).any() or (alike @ alike != alike).any():
            return None
        none, each = np.zeros(len(prior)), fractions(np.unique(alike, axis=0)[:-1].astype(float))
        apart = each - (each @ reference)[:, None]
        return Face(fractions(none), apart, none, exact_floats(apart))

    def recourse(self, reference: FloatArray) -> Recourse:
        """Return plans: what leaves each value, and what reaches each but the last."""
        size = len(reference)
        one, eye = np.ones((1, size)), np.eye(size)
        ends = np.vstack([np.kron(eye, one), np.kron(one, eye)[:-1]])
        mass = np.concatenate([np.zeros(size), reference[:-1]])
        return Recourse(ends, mass, self._floats.reshape(-1))

    def __repr__(self) -> str:
        if isinstance(self.ground, str):
            return f"EarthMover({self.ground!r})"
        return f"EarthMover(ground of {len(self.ground)} values)"


def order_in_words(name: str, values: Sequence[Hashable]) -> str:
    """Say in which order the earth mover's distance takes the values of W."""
    labels = ["missing" if value is None else str(value) for value in values]
    alphabetical = labels == values == sorted(labels)
    if len(labels) > SHOWN:
        labels[SHOWN - 2 : -1] = ["…"]
    how = ", which is the alphabet's" if alphabetical else ""
    return f"the earth mover's distance takes {name} in the order {', '.join(labels)}{how}"


_TOLERANCE = 1e-10  # the least that HiGHS takes, of masses of 1 and costs of at most 1
_CLOSE = 1e-11  # of the least cost, within which prices prove it, or they are not returned


def worth(costs: FloatArray, supply: FloatArray, demand: FloatArray) -> FloatArray:
    """Return f of the most Σ supply f + Σ demand g with f(v) + g(w) ≤ costs(v, w), by letter.

    Where no way over a third value is cheaper, mass moves over arcs between the values, and what
    a value has of its own demand stays; else from every value to each of another side.

    Parameters
    ----------
    costs : ndarray, shape (values, values)
        At least 0, and 0 on the diagonal.
    supply, demand : ndarray, shape (values, letters)
        Of each letter of one sum.

    Returns
    -------
    ndarray, shape (values, letters)
        NaN in letters for which the solver is not exact, as among costs of many sizes.
    """
    size, letters = supply.shape
    unit, mass = float(costs.max(initial=0.0)) or 1.0, supply.sum(axis=0)
    if all((costs[:, [u]] + costs[u] >= costs - 1e-12 * unit).all() for u in range(size)):
        nodes, (tail, head) = size, np.nonzero(~np.eye(size, dtype=bool))
        excess = supply - demand
    else:
        nodes, (tail, head) = 2 * size, np.indices((size, size)).reshape(2, -1)
        excess = np.vstack([supply, -demand])
    length = costs[tail, head] / unit
    if nodes > size:
        head = head + size
    excess = np.divide(excess, mass, out=np.zeros_like(excess), where=mass > 0)
    solver = _program(nodes, tail, head, length)
    prices = np.full((size, letters), np.nan)
    least = float(costs.min(initial=unit, where=costs > 0))
    for letter in range(letters):
        for node, amount in enumerate(excess[:-1, letter].tolist()):
            solver.changeRowBounds(node, amount, amount)
        solver.run()
        cost = solver.getInfo().objective_function_value * unit * mass[letter]
        price = np.append(solver.getSolution().row_dual, 0.0)[:size] * unit
        other = (costs - price[:, None]).min(axis=0)
        proved = price @ supply[:, letter] + other @ demand[:, letter]
        if abs(cost - proved) <= _CLOSE * cost + 1e-15 * least:
            prices[:, letter] = price
    return prices


def _program(nodes: int, tail: Any, head: Any, length: FloatArray) -> Any:
    """Return HiGHS with a flow along arcs, of what leaves each node but the last, which follows."""
    import highspy

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(tail), nodes - 1
    program.col_cost_, program.col_lower_ = length, np.zeros(len(tail))
    program.col_upper_ = np.full(len(tail), highspy.kHighsInf)
    program.row_lower_ = program.row_upper_ = np.zeros(nodes - 1)
    ends, signs = np.stack([tail, head], axis=1), np.tile([1.0, -1.0], (len(tail), 1))
    there = ends < nodes - 1
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_ = np.append(0, np.cumsum(there.sum(axis=1))).astype(np.int32)
    matrix.index_, matrix.value_ = ends[there].astype(np.int32), signs[there]
    solver = quiet_highs(
        presolve="off",
        solver="simplex",
        primal_feasibility_tolerance=_TOLERANCE,
        dual_feasibility_tolerance=_TOLERANCE,
    )
    solver.passModel(program)
    return solver
