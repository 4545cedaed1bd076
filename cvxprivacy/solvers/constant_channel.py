r"""Where only constant channels are allowed: a linear program in the law of the output.

Local privacy with ε = 0 and maximal leakage b = 0 allow K(s, y) = q(y) alone.  Such a release
reveals nothing, so that every term is linear in q, and the optimum is a vertex.  With G(s, y) the
minorant of its multipliers, ν and β, γ those of Σ q = 1 and of the entry bounds,
Σ_s G = ν + β − γ (E23); the multiplier θ of the auxiliary is what makes G the same at every output,
letter by letter (E24).  Equations are those of ``docs/theory/entries.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.additive import dense
from cvxprivacy.certificates.exact_channel import round_channel
from cvxprivacy.certificates.repair import has_equalities, project
from cvxprivacy.exact import Exact, FloatArray, fractions, rational
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression, first_part
from cvxprivacy.programs.least_leakage import prior_leakage

__all__ = ["ConstantChannel", "constant_channel"]

_TOLERANCE = 1e-10  # of the linear program, the least that HiGHS takes
_PRICED = 1e-9  # a row with a larger multiplier, in its span, holds with equality
_ABOVE = 1e-12, 1e-15  # relative and absolute room for the rounding of what is known beforehand


@dataclass(frozen=True, eq=False)
class ConstantChannel:
    """The best constant channel's law (m,), exactly, and multipliers of the whole program.

    Without a law there is none, and the multipliers contradict the constraints.  ``name`` is of
    the auxiliary that allows no other channel.
    """

    name: str
    law: Exact | None
    dual: Dual


def constant_channel(
    program: ChannelProgram, silent: Callable[[ChannelProgram], Dual]
) -> ConstantChannel | None:
    """Return what is best where an auxiliary allows constants alone; None elsewhere.

    ``silent`` returns multipliers with the posteriors of a release that tells nothing.
    """
    kinds = {"ratio", "maximum"}
    names = [  # e^ε = 1, or e^b = 1
        name
        for name, aux in program.auxiliaries.items()
        if aux.kind in kinds and aux.bound == 1 and not aux.radius
    ]
    merged = _merged(program) if names and len(program.objectives) == 1 else None
    if merged is None or merged.upper is None or merged.lower is None:
        return None
    if (merged.lower > merged.upper).any() or not merged.lower.sum() <= 1 <= merged.upper.sum():
        return None  # which its multipliers say by themselves
    vertex = _vertex(merged) or _vertex(merged, elastic=True)
    if vertex is None:
        return None
    law, multipliers = vertex
    dual = replace(silent(program), multipliers=multipliers, objective=0 if law is None else 1)
    return ConstantChannel(names[0], law, _lifted(program, merged, names[0], dual.cleaned(program)))


# ---- the program over constant channels ------------------------------------------------------


def _merged(program: ChannelProgram) -> ChannelProgram:
    """Return the program of one letter whose channel is q, exactly but for what Z reveals."""
    atoms = fractions(program.law)
    atoms = atoms / atoms.sum()

    def merged(term: Expression, radius: Any = 0) -> Expression:
        cost = np.full(program.m, Fraction(0)) + rational(radius)
        if term.cost is not None:
            layers = fractions(dense(term.cost)).reshape(-1, program.n, program.m)
            masses = atoms if len(layers) == len(atoms) else atoms.sum(axis=0)[None]
            cost = cost + sum(p @ layer for p, layer in zip(masses, layers, strict=True))
        for view, weight in term.columns(program.m).items():
            observer = program.views[view]
            # without a reference of its own a view compares with the prior, and F(M p) = 0
            if observer.reference is not None or not observer.measure.divergence:
                prior = prior_leakage(program, view) * (1 + _ABOVE[0]) + _ABOVE[1]
                cost = cost + fractions(weight * prior)
        return replace(term, weights={}, cost=cost[None], cost_radius=0, constant_radius=0)

    rows: dict[str, Constraint] = {}
    for name, row in program.constraints.items():
        term = row.expression
        worst = row.sense == "<="  # at the worst of what is known to a radius
        off = rational(row.radius) + rational(term.constant_radius) if worst else Fraction(0)
        bounds = row.bound if isinstance(row.bound, tuple) else (row.bound,) * program.m
        bound = tuple(b - off for b in bounds) if row.per_output else row.number - off
        rows[name] = Constraint(merged(term, term.cost_radius if worst else 0), row.sense, bound)
    low = np.zeros((1, program.m)) if program.lower is None else program.lower
    high = np.ones((1, program.m)) if program.upper is None else program.upper
    return ChannelProgram(
        np.ones((1, 1)),
        program.m,
        {},
        merged(first_part(program.objective)),
        rows,
        low.max(axis=0)[None],
        high.min(axis=0)[None],
        units=program.units,
    )


def _lines(merged: ChannelProgram) -> Iterator[tuple[str, int, Constraint]]:
    """Yield each scalar row that not every law satisfies, with its output (0 of a whole row)."""
    for name, row in merged.constraints.items():
        assert row.expression.cost is not None
        cost = dense(row.expression.cost)
        constant = rational(row.expression.constant)
        for y in range(merged.m if row.per_output else 1):
            bound = row.bound[y] if isinstance(row.bound, tuple) else row.bound - constant
            line = cost
            if row.per_output:
                line = np.full(cost.shape, Fraction(0))
                line[0, y] = cost[0, y]
            if row.sense == "==" or bound < 0 or (line > bound).any():
                yield name, y, Constraint(Expression(name, cost=line), row.sense, bound)


def _vertex(
    merged: ChannelProgram, *, elastic: bool = False
) -> tuple[Exact | None, dict[str, Any]] | None:
    """Return the best law and the multipliers of the rows; None without either.

    ``elastic`` minimises the largest violation instead: there is no law if that is positive.
    """
    lines = list(_lines(merged))
    answer, counts, units = _linear_program(merged, [line for *_, line in lines], elastic=elastic)
    if answer.status != 0 or (elastic and answer.fun < _TOLERANCE):
        return None
    prices = -answer.ineqlin.marginals
    multipliers: dict[str, Any] = {
        name: np.zeros(merged.m) if row.per_output else 0.0
        for name, row in merged.constraints.items()
    }
    equal: dict[str, Constraint] = {}
    first = 0
    for (name, y, line), count, unit in zip(lines, counts, units, strict=True):
        # of an equality, the price of ≤ less that of ≥
        price = float(prices[first] - (prices[first + 1] if count == 2 else 0.0))
        first += count
        if merged.constraints[name].per_output:
            multipliers[name][y] = price * unit[0] / unit[1]
        else:
            multipliers[name] = price * unit[0] / unit[1]
        if line.sense == "==" or price > _PRICED:
            equal[f"{name}[{y}]"] = replace(line, sense="==")
    if elastic:
        return None, multipliers
    law = _exact_law(replace(merged, constraints=equal), answer.x)
    return None if law is None else (law, multipliers)


def _linear_program(
    merged: ChannelProgram, lines: list[Constraint], *, elastic: bool
) -> tuple[Any, list[int], list[tuple[float, float]]]:
    """Solve (E23) in floats; return HiGHS's answer, and of each line its rows and their unit.

    A multiplier is in units of the objective's scale for each of the line's span.
    """
    from scipy.optimize import linprog

    m = merged.m
    matrix, right, counts, spans = np.zeros((0, m)), [], [], []
    for line in lines:
        row = merged.cost(line.expression)
        span = float(np.abs(row).max()) or 1.0
        for sign in (1.0, -1.0)[: 1 + (line.sense == "==")]:
            matrix = np.vstack([matrix, sign * row / span])
            right.append(sign * float(line.number) / span)
        counts.append(1 + (line.sense == "=="))
        spans.append(span)
    cost = merged.cost(first_part(merged.objective))[0]
    scale = float(np.abs(cost).max()) or 1.0
    assert merged.floor is not None
    assert merged.ceiling is not None
    box = list(zip(merged.floor[0], merged.ceiling[0], strict=True))
    sums = np.ones((1, m))
    if elastic:  # one more unknown, by which every row may be violated
        cost, scale = np.append(np.zeros(m), 1.0), 1.0
        matrix = np.hstack([matrix, -np.ones((len(matrix), 1))])
        box, sums = [*box, (0.0, np.inf)], np.append(sums, [[0.0]], axis=1)
    names = "primal_feasibility_tolerance", "dual_feasibility_tolerance"
    options: Any = dict.fromkeys(names, _TOLERANCE)
    answer: Any = linprog(cost / scale, matrix, right, sums, [1.0], box, options=options)
    return answer, counts, [(scale, span) for span in spans]


def _exact_law(tight: ChannelProgram, law: FloatArray) -> Exact | None:
    """Return the vertex whose rows hold with equality, in rationals; None if that fails."""
    exact = round_channel(tight, law[None])
    if exact is not None and has_equalities(tight):
        exact = project(tight, exact)
    if exact is None:
        return None
    return np.array([Fraction(int(k), exact.denominator) for k in exact.numerators[0]], object)


# ---- back to the whole program -----------------------------------------------------------------


def _lifted(program: ChannelProgram, merged: ChannelProgram, name: str, dual: Dual) -> Dual:
    """Add the auxiliary's multipliers, with which no other channel is better (E24)."""
    g = dual.minorant(program)[0]
    total = g.sum(axis=0)
    level = float(merged.least(total[None])[1][0])  # ν: Σ_s G where q is free (E23)
    outputs, box = np.arange(program.m), np.zeros_like(g)
    low = np.zeros_like(g) if program.floor is None else program.floor
    high = np.ones_like(g) if program.ceiling is None else program.ceiling
    # B: β where floors are highest, −γ where ceilings are lowest
    box[low.argmax(axis=0), outputs] += np.maximum(total - level, 0.0)
    box[high.argmin(axis=0), outputs] -= np.maximum(level - total, 0.0)
    mass, needed = program.mass[:, None], box - g  # p θ, but for what is the same at every output
    if program.auxiliaries[name].kind == "ratio":
        theta = needed / mass + level  # θ = η − μ, which adds up to 0 over letters, by mass
        sides = [np.maximum(-theta, 0.0), np.maximum(theta, 0.0)]
    else:
        sides = [(needed - needed.min(axis=1, keepdims=True)) / mass]  # θ = μ ≥ 0
    return replace(dual, auxiliaries={**dual.auxiliaries, name: sides})
