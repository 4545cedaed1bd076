"""Strategies where there are too many to list: generated, with a bound that holds for all.

A release of a few strategies bounds the minimum from above.  An encoder that knew Z could play any
strategy, so that the minimum over p(x̂ | s, z) bounds it from below (Theorem 3 below Theorem 2).
No solve of a cut list says anything from below, nor that nothing is feasible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.model.information import nat
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.proving.certificate import Certificate
from cvxprivacy.proving.relaxed import Relaxed
from cvxprivacy.solvers.driver import Outcome, solve

__all__ = ["Generation", "first", "generated"]

_ROUNDS = 12  # of solving and looking for better strategies
_STEPS = 30  # of mirror descent on the law of a letter u
_STARTS = 200  # laws to begin with, in each round
_NEW = 48  # strategies that are added in a round, at most


def first(alphabet: Alphabet) -> np.ndarray:
    """Return strategies to begin with: constants, and best guesses of x̂ with and without s."""
    layers = alphabet.per_letter(alphabet.d.matrix)
    whole = np.broadcast_to(layers, (*alphabet.law.shape, layers.shape[-1]))
    risk = np.zeros((alphabet.n, len(alphabet.source.z or ()), layers.shape[-1]))
    letters = np.broadcast_to(np.arange(alphabet.n), alphabet.law.shape)
    np.add.at(risk, (letters, alphabet.z_of), alphabet.law[:, :, None] * whole)
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


def generated(problem: Generation, options: Mapping[str, Any]) -> Outcome:
    """Solve with Z at the encoder too, then add strategies while they lower the optimum."""
    relaxation = solve(problem.informed_program, **options).certificate
    alphabet = _extended(problem.alphabet, _coupled(problem, relaxation))
    log = [f"with Z at the encoder too: {relaxation!r}"]
    best: tuple[float, Alphabet, Outcome | None] = math.inf, alphabet, None
    for _ in range(_ROUNDS):
        program = problem.program_of(alphabet)
        outcome = solve(program, **options)
        log += [f"{alphabet.m} strategies: {outcome.certificate!r}", *outcome.log]
        upper = outcome.certificate.upper
        gain = best[0] - upper
        if best[2] is None or gain > 0:
            best = upper, alphabet, outcome
        new = _better(problem, alphabet, outcome.certificate)
        if not len(new) or not gain > 1e-7 * program.scale:
            break
        alphabet = _extended(alphabet, new)
    _, alphabet, last = best
    assert last is not None
    certificate = Relaxed(last.certificate, relaxation)
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
    found = [np.zeros((0, places.shape[1]), dtype=np.int64)]
    for at in places if relaxation.primal is not None else ():
        met = at >= 0
        assert relaxation.primal is not None
        upto = np.cumsum(relaxation.primal.matrix[at[met]], axis=1)
        steps = np.unique(np.concatenate([[0.0], upto.ravel()]).round(6))
        middles = (steps[:-1] + steps[1:]) / 2
        middles = middles[np.diff(steps) > 1e-4]
        rules = np.zeros((len(middles), len(at)), dtype=np.int64)
        rules[:, met] = (upto[None] < middles[:, None, None]).sum(axis=2)
        found.append(np.minimum(rules, upto.shape[1] - 1))
    return np.vstack(found)


def _better(problem: Generation, alphabet: Alphabet, certificate: Certificate) -> np.ndarray:
    """Return strategies with which some law of s given u costs less than the multipliers allow.

    By turns the best guess of x̂ for each z, given the law, and a mirror step of the law.
    """
    program, dual = certificate.program, certificate.dual
    known = problem.informed_program
    if dual is None or not dual.objective or certificate.primal is None:
        return np.zeros((0, 0), dtype=np.int64)
    g, _ = dual.minorant(program)
    nu = program.least(g)[1] / program.mass
    rows = program.constraints.items()
    single = [k for k, row in rows if not row.per_output and k in known.constraints]
    prices = {name: float(np.asarray(dual.multipliers[name])) for name in single}
    omega = {view: float(w.min()) for view, w in program.objective.columns(program.m).items()}
    cost = known.cost(known.objective)
    for name, price in prices.items():
        cost = cost + price * known.cost(known.constraints[name].expression)
        for view, weight in program.constraints[name].expression.columns(program.m).items():
            omega[view] = omega.get(view, 0.0) + price * float(weight.min())
    places = _places(problem)
    table = np.where((places >= 0)[:, :, None], (known.mass[:, None] * cost)[places], 0.0)
    table = table / program.mass[:, None, None]  # c(s, z, x̂) per unit of Q(s, u)
    seen = {
        view: (program.view_matrix(view).toarray() / program.mass, program.reference(view))
        for view, weight in omega.items()
        if weight > 0
    }
    step = 1.0 / max(sum(omega.values()) * nat(program.units), 1e-9)

    rng = np.random.default_rng(0)  # where to look first; what is found is proved
    columns = program.mass[:, None] * certificate.primal.matrix
    columns = columns[:, columns.sum(axis=0) > 1e-7]
    points = np.eye(problem.alphabet.n) + 0.05 * program.mass[:, None]
    pairs = rng.integers(columns.shape[1], size=(2, _STARTS // 2))
    mixed = columns[:, pairs[0]] + columns[:, pairs[1]] * rng.random(pairs.shape[1])
    random = rng.dirichlet(np.full(problem.alphabet.n, 0.3), _STARTS // 2).T
    law = np.hstack([columns, points, mixed, random]) + 1e-12
    law /= law.sum(axis=0)
    for _ in range(_STEPS):
        rules = np.einsum("szk,sr->rzk", table, law).argmin(axis=2)
        slope = np.array([table[:, np.arange(len(t)), t].sum(axis=1) for t in rules]).T
        for view, (matrix, reference) in seen.items():
            joint = matrix @ law
            other = reference[:, None] * joint.sum(axis=0)
            log = np.log(np.maximum(joint, 1e-300) / np.maximum(other, 1e-300))
            slope = slope + omega[view] * nat(program.units) * (matrix.T @ log)
        reduced = (law * (slope - nu[:, None])).sum(axis=0)
        law = law * np.exp(-np.clip(step * (slope - nu[:, None]), -30, 30))
        law = np.maximum(law / law.sum(axis=0), 1e-300)
    listed = {
        tuple(rule) for rule in (alphabet.strategies if alphabet.strategies is not None else ())
    }
    best: dict[tuple[int, ...], float] = {}
    for rule, value in zip(map(tuple, rules.tolist()), reduced.tolist(), strict=True):
        if value < -1e-8 * program.scale and rule not in listed:
            best[rule] = min(value, best.get(rule, 0.0))
    chosen = sorted(best, key=lambda rule: (best[rule], rule))[:_NEW]
    return np.array(chosen, dtype=np.int64).reshape(-1, places.shape[1])
