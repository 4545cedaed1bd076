"""Strategies where there are too many to list: generated, with a bound that holds for all.

A release of a few strategies bounds the minimum from above.  An encoder that knew Z could play any
strategy (E14), so that the minimum over p(x̂ | s, z) bounds it from below (Theorem 3 below
Theorem 2).  No solve of a cut list says anything from below, nor that nothing is feasible.
Equations are those of ``docs/theory/entries.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.additive import floats
from cvxprivacy.certificates.certificate import Certificate, Relaxed
from cvxprivacy.exact import TINY, FloatArray
from cvxprivacy.model.information import nat
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import first_part
from cvxprivacy.settings import StrategyGeneration
from cvxprivacy.solvers.driver import Outcome, solve
from cvxprivacy.solvers.task import reported
from cvxprivacy.solvers.watch import Watch

__all__ = ["Generation", "initial_strategies", "solve_generated"]


def initial_strategies(alphabet: Alphabet) -> np.ndarray:
    """Return strategies to begin with: constants, and best guesses of x̂ with and without s."""
    layers = alphabet.per_letter(floats(alphabet.d.cost))
    costs = np.broadcast_to(layers, (*alphabet.law.shape, layers.shape[-1]))
    risk = np.zeros((alphabet.n, len(alphabet.source.z or ()), layers.shape[-1]))
    letters = np.broadcast_to(np.arange(alphabet.n), alphabet.law.shape)
    np.add.at(risk, (letters, alphabet.z_of), alphabet.law[:, :, None] * costs)
    constants = np.tile(np.arange(layers.shape[-1])[:, None], (1, risk.shape[1]))
    guesses = np.vstack([risk, risk.sum(axis=0)[None]]).argmin(axis=2)
    return np.unique(np.vstack([constants, guesses]), axis=0)


@dataclass(frozen=True)
class Generation:
    """A program over strategies, and the same with Z at the encoder, which has no strategies.

    Attributes
    ----------
    alphabet : Alphabet
        With strategies to begin with.
    program_of : callable
        Returns the program over an alphabet with other strategies.
    informed : Alphabet
        Of the encoder that knows Z.
    informed_program : ChannelProgram
        Its optimum is no greater.
    """

    alphabet: Alphabet
    program_of: Callable[[Alphabet], ChannelProgram]
    informed: Alphabet
    informed_program: ChannelProgram


def solve_generated(problem: Generation, options: Mapping[str, Any]) -> Outcome:
    """Solve with Z at the encoder too, then add strategies while they lower the optimum.

    Once the watch says stop no further round begins, and the best so far is returned.
    """
    settings = StrategyGeneration.current()
    watch = options.get("watch", Watch())
    relaxation = solve(problem.informed_program, **options).certificate
    log = [reported(f"with Z at the encoder too: {relaxation!r}")]
    best: tuple[float, Alphabet, Outcome | None] = math.inf, problem.alphabet, None
    try:
        alphabet = _extended(problem.alphabet, _coupled(problem, relaxation))
        for _ in range(settings.rounds):
            program = problem.program_of(alphabet)
            outcome = solve(program, **options)
            line = reported(f"{alphabet.m} strategies: {outcome.certificate!r}")
            log += [line, *outcome.log]
            upper = outcome.certificate.upper
            gain = best[0] - upper
            if best[2] is None or gain > 0:
                best = upper, alphabet, outcome
            if watch.stopped or not gain > settings.gain * program.scale:
                break
            new = _better(problem, alphabet, outcome.certificate)
            if watch.stopped or not len(new):
                break
            alphabet = _extended(alphabet, new)
    except KeyboardInterrupt:  # between solves, which see to their own
        if best[2] is None or watch.interrupted or "watch" not in options:
            raise
        watch.interrupted = True
    _, alphabet, last = best
    assert last is not None
    if watch.stopped and not log[-1].startswith("stopped"):
        log.append(reported(f"stopped: {watch.stopped}"))
    # two ends of two programs: the list above, the relaxation below (E14)
    certificate = Relaxed(last.certificate, relaxation, alphabet.strategies)
    return Outcome(certificate, log, last.edges, strategies=alphabet.strategies)


def _extended(alphabet: Alphabet, rules: np.ndarray) -> Alphabet:
    assert alphabet.strategies is not None
    return alphabet.with_strategies(np.unique(np.vstack([alphabet.strategies, rules]), axis=0))


def _places(problem: Generation) -> np.ndarray:
    """Return the number of (s, z) among the informed encoder's letters, −1 where it has no mass."""
    size = len(problem.alphabet.source.z or ())
    places = np.full((problem.alphabet.n, size), -1)
    where = {letter: i for i, letter in enumerate(problem.informed.support.tolist())}
    for s, letter in enumerate(problem.alphabet.support.tolist()):
        for z in range(size):
            places[s, z] = where.get(letter * size + z, -1)
    return places


def _coupled(problem: Generation, relaxation: Certificate) -> np.ndarray:
    """Return the strategies by which an encoder without Z releases what one with Z would.

    For each s, x̂ = t(z) at one quantile of p(x̂ | s, z) for all z: the law of x̂ is the same.
    """
    places = _places(problem)
    strategies = [np.zeros((0, places.shape[1]), dtype=np.int64)]
    for at in places if relaxation.primal is not None else ():
        occurs = at >= 0
        assert relaxation.primal is not None
        upto = np.cumsum(relaxation.primal.matrix[at[occurs]], axis=1)
        # t is the same between two steps of any of the laws: one quantile of each such interval
        steps = np.unique(np.concatenate([[0.0], upto.ravel()]).round(6))
        quantiles = (steps[:-1] + steps[1:]) / 2
        quantiles = quantiles[np.diff(steps) > StrategyGeneration.current().rare]
        rules = np.zeros((len(quantiles), len(at)), dtype=np.int64)
        rules[:, occurs] = (upto[None] < quantiles[:, None, None]).sum(axis=2)  # (E15)
        strategies.append(np.minimum(rules, upto.shape[1] - 1))
    return np.vstack(strategies)


def _better(problem: Generation, alphabet: Alphabet, certificate: Certificate) -> np.ndarray:
    """Return strategies with which some law of s given u costs less than the multipliers allow."""
    settings = StrategyGeneration.current()
    program, dual = certificate.program, certificate.dual
    if dual is None or not dual.objective or certificate.primal is None:
        return np.zeros((0, 0), dtype=np.int64)
    nu = program.least(dual.minorant(program)[0])[1] / program.mass
    table, omega = _prices(problem, program, dual)
    start = _starts(program.mass[:, None], certificate.primal.matrix)
    rules, reduced = _alternated(program, table, omega, nu, start)
    assert alphabet.strategies is not None
    listed = set(map(tuple, alphabet.strategies.tolist()))
    best: dict[tuple[int, ...], float] = {}
    for rule, value in zip(map(tuple, rules.tolist()), reduced.tolist(), strict=True):
        if value < -settings.reduced_cost * program.scale and rule not in listed:
            best[rule] = min(value, best.get(rule, 0.0))
    chosen = sorted(best, key=lambda rule: (best[rule], rule))[: settings.added]
    return np.array(chosen, dtype=np.int64).reshape(-1, table.shape[1])


def _alternated(
    program: ChannelProgram,
    table: FloatArray,
    omega: dict[str, float],
    nu: FloatArray,
    law: FloatArray,
) -> tuple[np.ndarray, FloatArray]:
    """Return the last strategy of each column of ``law``, and its reduced cost (E16).

    By turns the best guess of x̂ for each z, given the law c, and a mirror step of the law.
    """
    unit = nat(program.units)
    views = {
        view: (program.view_matrix(view).toarray() / program.mass, program.reference(view))
        for view, weight in omega.items()
        if weight > 0
    }
    # D_F(Mc, Mc') ≤ ω KL(c, c'), by data processing: with 1/ω no step raises the cost
    step = 1.0 / max(sum(omega.values()) * unit, 1e-9)
    for _ in range(StrategyGeneration.current().descent_steps):
        rules = np.einsum("szk,sr->rzk", table, law).argmin(axis=2)  # (E17): t(z)
        slope = np.array([table[:, np.arange(len(t)), t].sum(axis=1) for t in rules]).T
        for view, (matrix, reference) in views.items():
            joint = matrix @ law
            independent = reference[:, None] * joint.sum(axis=0)
            log = np.log(np.maximum(joint, TINY) / np.maximum(independent, TINY))
            slope = slope + omega[view] * unit * (matrix.T @ log)
        # F is homogeneous: ⟨∇F(Mc), Mc⟩ = F(Mc), so that the slope tells the cost itself
        reduced = (law * (slope - nu[:, None])).sum(axis=0)  # (E16)
        law = law * np.exp(-np.clip(step * (slope - nu[:, None]), -30, 30))  # (E17): c
        law = np.maximum(law / law.sum(axis=0), TINY)
    return rules, reduced


def _prices(
    problem: Generation, program: ChannelProgram, dual: Dual
) -> tuple[FloatArray, dict[str, float]]:
    """Return h(s, z, x̂) of (E16) per unit of Q(s, u), and ω of each view, by the multipliers."""
    informed, rows = problem.informed_program, program.constraints
    terms = [(1.0, first_part(program.objective), first_part(informed.objective))]
    for name, row in rows.items():
        if not row.per_output and name in informed.constraints:
            price = float(np.asarray(dual.multipliers[name]))
            terms.append((price, row.expression, informed.constraints[name].expression))
    cost = np.zeros((informed.n, informed.m))
    omega: dict[str, float] = {}
    for price, term, informed_term in terms:
        cost = cost + price * informed.cost(informed_term)
        for view, weight in term.columns(program.m).items():
            omega[view] = omega.get(view, 0.0) + price * float(weight.min())
    # an informed letter is a pair (s, z), whose costs are per unit of its own mass p(s, z)
    places = _places(problem)
    table = np.where((places >= 0)[:, :, None], (informed.mass[:, None] * cost)[places], 0.0)
    return table / program.mass[:, None, None], omega


def _starts(mass: FloatArray, channel: FloatArray) -> FloatArray:
    """Return laws of s given u to begin with, one a column: where to look, not what is proved."""
    settings = StrategyGeneration.current()
    rng = np.random.default_rng(0)
    columns = mass * channel  # of the strategies in use: where the optimum is
    columns = columns[:, columns.sum(axis=0) > 1e-7]
    points = np.eye(len(mass)) + 0.05 * mass
    pairs = rng.integers(columns.shape[1], size=(2, settings.starts // 2))
    mixed = columns[:, pairs[0]] + columns[:, pairs[1]] * rng.random(pairs.shape[1])
    random = rng.dirichlet(np.full(len(mass), settings.sparse), settings.starts // 2).T
    law = np.hstack([columns, points, mixed, random]) + 1e-12
    return law / law.sum(axis=0)
