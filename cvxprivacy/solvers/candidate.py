"""What is proved of a release that somebody else proposes, with multipliers or without.

A release is repaired and evaluated like that of a solver.  At the scores s of its own posteriors
the objective and every constraint lie above linear functions of the release that touch them there
(P15), and the least of the linear program of these is the best bound that those scores prove: its
multipliers are those of the candidate.  The bound is the optimum itself where the candidate is one,
as its multipliers then satisfy (P21).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.exact import FloatArray
from cvxprivacy.model.capacity import best_prior
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.covariance import CovarianceDual, CovarianceProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression, Worst
from cvxprivacy.solvers.covariance.stages import CovarianceTask
from cvxprivacy.solvers.covariance.whitened import Whitened, floats
from cvxprivacy.solvers.driver import solve, solve_gaussian
from cvxprivacy.solvers.presolve import TIGHTENINGS, tightened
from cvxprivacy.solvers.task import Outcome, checked, reported
from cvxprivacy.solvers.threads import one_thread

__all__ = ["prove_channel", "prove_covariance", "with_centre"]

_RARE = 1e-6  # share of what a view sees, at which an output counts as unused
_LEAST = 2.0**-40  # of an error in whitened coordinates: with none there is no posterior


def with_centre(program: ChannelProgram, rows: FloatArray) -> FloatArray:
    """Return a candidate with the best row r, where a program has one that is nobody's.

    That is πV, π the prior of the capacity of what each value of W is released as.
    """
    if len(rows) == program.n:
        return rows
    views = [name for name, view in program.views.items() if view.measure.centred]
    laws = np.vstack([program.view_matrix(view)[[0], :-1] @ rows for view in views])
    laws = np.clip(laws, 0.0, None)
    laws = laws / laws.sum(axis=1, keepdims=True)
    centre = (1.0 - _LEAST) * (best_prior(laws)[0] @ laws) + _LEAST / program.m
    return np.vstack([rows, centre])


@one_thread()
def prove_channel(
    program: ChannelProgram,
    channel: FloatArray,
    multipliers: Mapping[str, Any] | None = None,
    *,
    further: Iterable[Any] = (),
    accuracy: str = "default",
) -> Outcome:
    """Prove both ends of a program by a channel and multipliers.

    Parameters
    ----------
    program : ChannelProgram
    channel : (n, m) array
        Repaired, if it is not feasible.
    multipliers : mapping of str to float or array, optional
        Of rows, at the scores of the channel's posteriors; by default the best there are.
    further : iterable of Dual
        Whose bounds are proved, too.
    accuracy : {"default", "high"}
        Of the status.
    """
    prover = Prover(program, accuracy)
    if not prover.offer_channel(channel):  # only then is there a look for what to mix it with (C11)
        for share in TIGHTENINGS:
            inside = solve(tightened(program, share)).certificate.primal
            if inside is not None and prover.keep(inside):
                better = prover.offer_channel(channel)
                if not better and prover.primal is not None:
                    break  # with more room less would be mixed in, and with less room more
    offered = _scores(program, channel)
    if multipliers is not None:
        offered = replace(offered, multipliers=multipliers)
    unused = _unused(program, channel)
    several = len(program.objectives) > 1  # whose weights nobody types
    if multipliers is None or several or any(outputs.any() for outputs in unused.values()):
        best = solve(_linearised(program, offered, unused), accuracy="high").certificate.dual
        if best is not None:
            scores = {
                view: np.where(unused[view], best.scores.get(view, 0.0), table)
                for view, table in offered.scores.items()
            }
            offered = replace(best, scores=scores)
    if multipliers is not None:
        offered = replace(offered, multipliers=multipliers)
    for each in (Dual({}, {}), offered, *further):  # the first: no leakage is below 0
        prover.offer_dual(each)
    return Outcome(prover.certificate(), [reported("candidate")])


def _scores(program: ChannelProgram, channel: FloatArray) -> Dual:
    """Return the scores at which the minorant of every view touches it at a channel (P21)."""
    scores = {}
    for name, view in program.views.items():
        joint = program.joint(np.clip(channel, 0.0, None), name)
        scores[name] = view.measure.scores(joint, program.reference(name))
    zero = {
        name: np.zeros(program.m) if row.per_output else 0.0
        for name, row in program.constraints.items()
    }
    return Dual(scores, zero)


def _unused(program: ChannelProgram, channel: FloatArray) -> dict[str, npt.NDArray[np.bool_]]:
    """Tell of each view which outputs it hardly ever sees: their posteriors are left to chance.

    A view may be of one z alone, and what a solver never releases has a little mass all the same.
    """
    joints = {view: program.joint(np.clip(channel, 0.0, None), view) for view in program.views}
    return {view: joint.sum(axis=0) <= _RARE * joint.sum() for view, joint in joints.items()}


def _linearised(
    program: ChannelProgram, dual: Dual, unused: Mapping[str, npt.NDArray[np.bool_]]
) -> ChannelProgram:
    """Return the program with what its scores say in place of leakage, but at unused outputs.

    It is below the program, and linear but for the outputs that the candidate hardly releases:
    they have no posterior, and their scores are found with the multipliers.
    """
    slopes = {view: dual.slopes(program, view) for view in program.views}

    def linear(term: Expression) -> Expression:
        cost, weights = program.cost(term), {}
        for view, weight in term.columns(program.m).items():
            touched = np.where(unused[view], 0.0, weight)
            cost = cost + (
                touched * (program.view_matrix(view).T @ slopes[view])
                / program.mass[:, None] * program.unit(view)
            )  # fmt: skip
            if (left := np.where(unused[view], weight, 0.0)).any():
                weights[view] = left
        return replace(
            term, weights=weights, cost=np.asarray(cost), derivatives={}, printed_costs={}
        )

    parts = {name: linear(part) for name, part in program.objectives.items()}
    objective: Any = Worst(parts) if isinstance(program.objective, Worst) else parts[""]
    rows = {
        name: replace(row, expression=linear(row.expression), derivatives={})
        for name, row in program.constraints.items()
    }
    views = program.views if any(outputs.any() for outputs in unused.values()) else {}
    return replace(program, views=views, objective=objective, constraints=rows, terms={})


# ---- Gaussian ------------------------------------------------------------------------------


@one_thread()
def prove_covariance(
    program: CovarianceProgram,
    sigma: FloatArray,
    multipliers: Mapping[str, float] | None = None,
    *,
    further: Iterable[CovarianceDual] = (),
    accuracy: str = "default",
) -> Outcome:
    """Prove both ends of a program by an error covariance and multipliers, of the program in nats.

    Other arguments as of :func:`prove_channel`.
    """
    task = CovarianceTask(program, checked("auto", "CLARABEL", accuracy, None))
    if not task.has_interior:  # to mix with
        task.phase_one()
    prover, white = task.prover, task.white
    inverse = floats(white.inverse)
    whitened = inverse @ ((sigma + sigma.T) / 2) @ inverse.T
    values, vectors = np.linalg.eigh(whitened)
    whitened = vectors * np.clip(values, _LEAST, 1.0) @ vectors.T  # 0 ≼ Σ ≼ Σ̄ before the rows
    prover.offer_whitened(_inward(white, whitened, prover.strictly_feasible))
    if multipliers is None:
        tangent = _tangent(program, white, whitened)
        linear = solve_gaussian(tangent, accuracy="high").certificate.dual
        multipliers = {} if linear is None else linear.multipliers
    prover.offer_multipliers(whitened, multipliers)
    for dual in further:
        prover.take_dual(dual)
    return Outcome(prover.certificate(), [reported("candidate")])


def _inward(white: Whitened, whitened: FloatArray, inside: FloatArray) -> FloatArray:
    """Return the first point on the way to a strictly feasible one at which all rows hold."""
    rows = white.program.constraints.values()

    def holds(share: float) -> bool:
        mixed = (1 - share) * whitened + share * inside
        return all(white.value(row.expression, mixed) <= float(row.bounds(1)) for row in rows)

    if holds(0.0) or not holds(1.0):
        return whitened
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return (1 - high) * whitened + high * inside


def _tangent(program: CovarianceProgram, white: Whitened, at: FloatArray) -> CovarianceProgram:
    """Return the linear program of the slopes of objective and rows at a covariance (G6)."""
    inverse = floats(white.inverse)

    def linear(term: Expression, row: Constraint | None = None) -> Any:
        slope, constant = white.cost(term) / white.unit(term), 0.0
        for view, weight in term.weights.items():
            t = white.views[view][2]
            slope = slope - float(weight) / 2 * t.T @ np.linalg.solve(white.spread(view, at), t)
        cost = inverse.T @ slope @ inverse
        tangent = Expression(term.name, cost=(cost + cost.T) / 2)
        if row is None:
            return tangent
        value = white.value(term, at) / white.unit(term)
        constant = value - float((slope * at).sum())
        bound = float(row.bounds(1)) / white.unit(term) - constant
        return replace(row, expression=tangent, bound=Fraction(bound), radius=0, derivatives={})

    rows = {name: linear(row.expression, row) for name, row in program.constraints.items()}
    objective = linear(program.objective)
    return replace(program, views={}, objective=objective, constraints=rows, terms={}, units="nats")
