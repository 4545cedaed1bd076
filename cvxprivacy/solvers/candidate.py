"""What is proved of a candidate that somebody else proposes: a release, with multipliers or without.

A release is repaired and evaluated like that of a solver.  At the scores s of its own posteriors
the objective and every constraint lie above linear functions of the release that touch them there
(P15), and the least of the linear program of these is the best bound that those scores prove: its
multipliers are those of the candidate.  The bound is the optimum itself where the candidate is one,
as its multipliers then satisfy (P21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.worst import Worst
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.presolve import tightened
from cvxprivacy.solvers.task import Outcome, reported
from cvxprivacy.solvers.threads import one_thread

__all__ = ["prove_channel", "with_multipliers"]

_SHARES = (0.1, 1e-2, 1e-3, 1e-5)  # of their spans, by which rows are stricter inside


@one_thread()
def prove_channel(
    program: ChannelProgram,
    channel: FloatArray,
    dual: Dual | None = None,
    *,
    accuracy: str = "default",
) -> Outcome:
    """Prove both ends of a program by a channel and multipliers.

    Parameters
    ----------
    program : ChannelProgram
    channel : (n, m) array
        Repaired, if it is not feasible.
    dual : Dual, optional
        By default that of the channel's own posteriors.
    accuracy : {"default", "high"}
        Of the status.
    """
    prover = Prover(program, accuracy)
    if not prover.offer_channel(channel):  # only then is there a look for what to mix it with (C11)
        for share in _SHARES:
            inside = solve(tightened(program, share)).certificate.primal
            if inside is not None and prover.keep(inside):
                better = prover.offer_channel(channel)
                if not better and prover.primal is not None:
                    break  # with more room less would be mixed in, and with less room more
    offered = scores_of(program, channel) if dual is None else dual
    if dual is None:
        linear = solve(linearised(program, offered), accuracy="high").certificate.dual
        if linear is not None:
            offered = replace(linear, scores=offered.scores)
    prover.offer_dual(offered)
    whose = "its own posteriors" if dual is None else "the multipliers that came with it"
    return Outcome(prover.certificate(), [reported(f"candidate: bounded by {whose}")])


def scores_of(program: ChannelProgram, channel: FloatArray) -> Dual:
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


def linearised(program: ChannelProgram, dual: Dual) -> ChannelProgram:
    """Return the program with what its scores say in place of every leakage: linear, and below."""
    slopes = {view: dual.slopes(program, view) for view in program.views}

    def linear(term: Expression) -> Expression:
        cost = program.cost(term) + sum(
            weights * (program.view_matrix(view).T @ slopes[view])
            / program.mass[:, None] * program.unit(view)
            for view, weights in term.columns(program.m).items()
        )  # fmt: skip
        return replace(term, weights={}, cost=np.asarray(cost), derivatives={}, wordings={})

    parts = {name: linear(part) for name, part in program.objectives.items()}
    objective: Any = Worst(parts) if isinstance(program.objective, Worst) else parts[""]
    rows = {
        name: replace(row, expression=linear(row.expression), derivatives={})
        for name, row in program.constraints.items()
    }
    return replace(program, views={}, objective=objective, constraints=rows, terms={})


def with_multipliers(dual: Dual, duals: Mapping[str, Any]) -> Dual:
    """Return the multipliers that somebody names, at the scores of another dual."""
    return replace(dual, multipliers={name: duals.get(name, 0.0) for name in dual.multipliers})
