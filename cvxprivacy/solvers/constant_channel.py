r"""Where only constant channels are allowed: a linear program in the law of the output.

Local privacy with ε = 0 and maximal leakage b = 0 allow K(s, y) = q(y) alone.  Such a release
reveals nothing, so that every term is linear in q, and the optimum is a vertex.  With G(s, y) the
minorant of its multipliers, ν and β, γ those of Σ q = 1 and of the entry bounds,
Σ_s G = ν + β − γ; what G lacks to be the same at every output, letter by letter, is the multiplier
of the auxiliary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.additive import dense
from cvxprivacy.certificates.equalities import has_equalities, project
from cvxprivacy.certificates.exact_channel import round_channel
from cvxprivacy.exact import Exact, fractions, rational
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.least_leakage import prior_leakage
from cvxprivacy.programs.worst import first_part

__all__ = ["ConstantChannel", "constant_channel"]

_TOLERANCE = 1e-10  # of the linear program, the least that HiGHS takes
_PRICED = 1e-9  # a row with a larger multiplier, in its span, holds with equality


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
    names = [
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
            own = program.views[view]
            if own.reference is not None or not own.measure.divergence:  # else the prior itself
                known = prior_leakage(program, view) * (1 + 1e-12) + 1e-15
                cost = cost + fractions(weight * known)
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
            own = cost
            if row.per_output:
                own = np.full(cost.shape, Fraction(0))
                own[0, y] = cost[0, y]
            if row.sense == "==" or bound < 0 or (own > bound).any():
                yield name, y, Constraint(Expression(name, cost=own), row.sense, bound)


def _vertex(
    merged: ChannelProgram, *, elastic: bool = False
) -> tuple[Exact | None, dict[str, Any]] | None:
    """Return the best law and the multipliers of the rows; None without either.

    ``elastic`` minimises the largest violation instead: there is no law if that is positive.
    """
    from scipy.optimize import linprog

    lines, m = list(_lines(merged)), merged.m
    matrix, right, signs, spans = np.zeros((0, m)), [], [], []
    for _, _, line in lines:
        row = merged.cost(line.expression)
        span = float(np.abs(row).max()) or 1.0
        for sign in (1.0, -1.0)[: 1 + (line.sense == "==")]:
            matrix = np.vstack([matrix, sign * row / span])
            right.append(sign * float(line.number) / span)
        signs.append(1 + (line.sense == "=="))
        spans.append(span)
    cost = merged.cost(first_part(merged.objective))[0]
    scale = float(np.abs(cost).max()) or 1.0
    assert merged.floor is not None
    assert merged.ceiling is not None
    box = list(zip(merged.floor[0], merged.ceiling[0], strict=True))
    sums = np.ones((1, m))
    if elastic:
        cost, scale = np.append(np.zeros(m), 1.0), 1.0
        matrix = np.hstack([matrix, -np.ones((len(matrix), 1))])
        box, sums = [*box, (0.0, np.inf)], np.append(sums, [[0.0]], axis=1)
    names = "primal_feasibility_tolerance", "dual_feasibility_tolerance"
    options: Any = dict.fromkeys(names, _TOLERANCE)
    found: Any = linprog(cost / scale, matrix, right, sums, [1.0], box, options=options)
    if found.status != 0 or (elastic and found.fun < _TOLERANCE):
        return None
    prices = -found.ineqlin.marginals
    multipliers: dict[str, Any] = {
        name: np.zeros(m) if row.per_output else 0.0 for name, row in merged.constraints.items()
    }
    equal: dict[str, Constraint] = {}
    first = 0
    for (name, y, line), count, span in zip(lines, signs, spans, strict=True):
        price = float(prices[first] - (prices[first + 1] if count == 2 else 0.0))
        first += count
        if merged.constraints[name].per_output:
            multipliers[name][y] = price * scale / span
        else:
            multipliers[name] = price * scale / span
        if line.sense == "==" or price > _PRICED:
            equal[f"{name}[{y}]"] = replace(line, sense="==")
    if elastic:
        return None, multipliers
    tight = replace(merged, constraints=equal)
    exact = round_channel(tight, found.x[None])
    if exact is not None and has_equalities(tight):
        exact = project(tight, exact, [])
    if exact is None:
        return None
    law = [Fraction(int(k), exact.denominator) for k in exact.numerators[0]]
    return np.array(law, dtype=object), multipliers


# ---- back to the whole program -----------------------------------------------------------------


def _lifted(program: ChannelProgram, merged: ChannelProgram, name: str, dual: Dual) -> Dual:
    """Add the auxiliary's multipliers, with which no other channel is better."""
    g = dual.minorant(program)[0]
    total = g.sum(axis=0)
    level = float(merged.least(total[None])[1][0])
    outputs, bent = np.arange(program.m), np.zeros_like(g)
    low = np.zeros_like(g) if program.floor is None else program.floor
    high = np.ones_like(g) if program.ceiling is None else program.ceiling
    # β where floors are highest, γ where ceilings are lowest
    bent[low.argmax(axis=0), outputs] += np.maximum(total - level, 0.0)
    bent[high.argmin(axis=0), outputs] -= np.maximum(level - total, 0.0)
    mass, lacks = program.mass[:, None], bent - g
    if program.auxiliaries[name].kind == "ratio":
        lacks = lacks / mass + level
        own = [np.maximum(-lacks, 0.0), np.maximum(lacks, 0.0)]
    else:
        own = [(lacks - lacks.min(axis=1, keepdims=True)) / mass]
    return replace(dual, auxiliaries={**dual.auxiliaries, name: own})
