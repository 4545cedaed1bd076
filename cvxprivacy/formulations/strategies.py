"""Strategies where there are too many to list: generated, with a bound that holds for all.

A release of a few strategies bounds the minimum from above.  An encoder that knew Z could play any
strategy, so that the minimum over p(x̂ | s, z) bounds it from below (Theorem 3 below Theorem 2).
No solve of a cut list says anything from below, nor that nothing is feasible.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.certificates.differences import differences
from cvxprivacy.certificates.verify import TOLERANCE, proof_of, status
from cvxprivacy.model.information import nat
from cvxprivacy.proving.certificate import Certificate
from cvxprivacy.solvers.driver import Outcome, solve

if TYPE_CHECKING:
    from cvxprivacy.formulations.equivocation import RateDistortionEquivocation

__all__ = ["Relaxed", "first", "generated"]

_ROUNDS = 12  # of solving and looking for better strategies
_STEPS = 30  # of mirror descent on the law of a letter u
_STARTS = 200  # laws to begin with, in each round
_NEW = 48  # strategies that are added in a round, at most


class Relaxed(Certificate):
    """Two ends of two programs: a release of listed outputs, and a bound for all of them.

    The document is that of the release, which proves the upper end alone; ``relaxation`` has its
    own, which proves the lower one.

    Attributes
    ----------
    relaxation : Certificate
        Of the program with Z at the encoder too.
    """

    def __init__(self, listed: Certificate, relaxation: Certificate) -> None:
        ends = relaxation.lower, listed.upper
        found = status(
            *ends, TOLERANCE[listed.accuracy] * proof_of(listed.program.to_dict()).unit(ends[1])
        )
        if relaxation.status == "infeasible":
            found = "infeasible"
        super().__init__(
            listed.program,
            listed.accuracy,
            found,
            *ends,
            listed.primal,
            listed.dual if listed.dual is not None and listed.dual.objective else None,
            listed.terms,
            listed.raw,
        )
        self.relaxation = relaxation

    @property
    def residuals(self) -> dict[str, float]:  # type: ignore[override]
        """Return none: the two ends belong to two programs."""
        return {}

    def _claims(self) -> Certificate:
        """Return what the document says: nothing from below."""
        upper = self.upper if self.primal is not None else math.inf
        return Certificate(
            *(self.program, self.accuracy, "uncertified", -math.inf, upper),
            *(self.primal, None, self.terms, self.raw),
        )

    def document(self) -> dict[str, Any]:
        return self._claims().recorded(self.table).document()

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write two proofs: of the upper end, and beside it, as ``….lower.json``, of the lower."""
        self.relaxation.to_json(self.beside(path))
        return super().to_json(path)

    @staticmethod
    def beside(path: str | os.PathLike[str]) -> Path:
        """Return where the proof of the lower end goes, beside that of the upper one."""
        return Path(path).with_suffix(".lower.json")

    def verify(self) -> bool:
        return super().verify() and self.relaxation.verify()

    def differences(self, problem: Any) -> list[str]:
        """Return where the two programs are not those of ``problem``.

        The relaxation is compared whole.  The letters of the release were generated: what stands
        for each of them is its own, all else is compared.
        """
        if not getattr(problem, "cut", False):
            return ["outputs: generated, where the problem lists its own"]
        mine, theirs = self.program.to_dict(), problem.program.to_dict()
        return [
            *differences(mine, theirs, outputs=False),
            *(f"lower end: {said}" for said in self.relaxation.differences(problem.informed)),
        ]


def first(problem: RateDistortionEquivocation) -> np.ndarray:
    """Return strategies to begin with: constants, and best guesses of x̂ with and without s."""
    layers = problem.per_letter(problem.measure.matrix)
    whole = np.broadcast_to(layers, (*problem.law.shape, layers.shape[-1]))
    risk = np.zeros((problem.n, len(problem.source.z or ()), layers.shape[-1]))
    letters = np.broadcast_to(np.arange(problem.n), problem.law.shape)
    np.add.at(risk, (letters, problem.z_of), problem.law[:, :, None] * whole)
    constants = np.tile(np.arange(layers.shape[-1])[:, None], (1, risk.shape[1]))
    guesses = np.vstack([risk, risk.sum(axis=0)[None]]).argmin(axis=2)
    return np.unique(np.vstack([constants, guesses]), axis=0)


def generated(problem: RateDistortionEquivocation, options: Mapping[str, Any]) -> Outcome:
    """Solve with Z at the encoder too, then add strategies while they lower the optimum."""
    informed = problem.informed
    relaxation = informed.solve(**{**options, "certify": False}).certificate
    problem = _extended(problem, _coupled(problem, informed, relaxation))
    log = [f"with Z at the encoder too: {relaxation!r}"]
    best: tuple[float, RateDistortionEquivocation, Outcome | None] = math.inf, problem, None
    for _ in range(_ROUNDS):
        outcome = solve(problem.program, **options)
        log += [f"{problem.m} strategies: {outcome.certificate!r}", *outcome.log]
        upper = outcome.certificate.upper
        gained = best[0] - upper
        if best[2] is None or gained > 0:
            best = upper, problem, outcome
        new = _better(problem, informed, outcome.certificate)
        if not len(new) or not gained > 1e-7 * problem.program.scale:
            break
        problem = _extended(problem, new)
    _, stated, last = best
    assert last is not None
    return Outcome(Relaxed(last.certificate, relaxation), log, last.edges, stated=stated)


def _extended(problem: RateDistortionEquivocation, rules: np.ndarray) -> RateDistortionEquivocation:
    assert problem.strategies is not None
    return problem.listed(np.unique(np.vstack([problem.strategies, rules]), axis=0))


def _places(
    problem: RateDistortionEquivocation, informed: RateDistortionEquivocation
) -> np.ndarray:
    """Return the number of (s, z) among the informed encoder's letters, −1 where it has no mass."""
    size = len(problem.source.z or ())
    places = np.full((problem.n, size), -1)
    where = {letter: i for i, letter in enumerate(informed.alive.tolist())}
    for s, letter in enumerate(problem.alive.tolist()):
        for z in range(size):
            places[s, z] = where.get(letter * size + z, -1)
    return places


def _coupled(
    problem: RateDistortionEquivocation,
    informed: RateDistortionEquivocation,
    relaxation: Certificate,
) -> np.ndarray:
    """Return the strategies by which an encoder without Z releases what one with Z would.

    For each s, x̂ = t(z) at one quantile of p(x̂ | s, z) for all z: the law of x̂ is the same.
    """
    places = _places(problem, informed)
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


def _better(
    problem: RateDistortionEquivocation,
    informed: RateDistortionEquivocation,
    certificate: Certificate,
) -> np.ndarray:
    """Return strategies with which some law of s given u costs less than the multipliers allow.

    By turns the best guess of x̂ for each z, given the law, and a mirror step of the law.
    """
    program, dual = problem.program, certificate.dual
    known = informed.program
    if dual is None or not dual.objective or certificate.primal is None:
        return np.zeros((0, 0), dtype=np.int64)
    g, _ = program.minorant(dual)
    nu = program.least(g)[1] / program.mass
    single = [k for k, row in program.rows.items() if not row.per_output and k in known.rows]
    prices = {name: float(np.asarray(dual.multipliers[name])) for name in single}
    omega = {view: float(w.min()) for view, w in program.objective.columns(program.m).items()}
    cost = known.cost(known.objective)
    for name, price in prices.items():
        cost = cost + price * known.cost(known.rows[name].term)
        for view, weight in program.rows[name].term.columns(program.m).items():
            omega[view] = omega.get(view, 0.0) + price * float(weight.min())
    places = _places(problem, informed)
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
    points = np.eye(problem.n) + 0.05 * program.mass[:, None]
    pairs = rng.integers(columns.shape[1], size=(2, _STARTS // 2))
    mixed = columns[:, pairs[0]] + columns[:, pairs[1]] * rng.random(pairs.shape[1])
    random = rng.dirichlet(np.full(problem.n, 0.3), _STARTS // 2).T
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
        tuple(rule) for rule in (problem.strategies if problem.strategies is not None else ())
    }
    best: dict[tuple[int, ...], float] = {}
    for rule, value in zip(map(tuple, rules.tolist()), reduced.tolist(), strict=True):
        if value < -1e-8 * program.scale and rule not in listed:
            best[rule] = min(value, best.get(rule, 0.0))
    chosen = sorted(best, key=lambda rule: (best[rule], rule))[:_NEW]
    return np.array(chosen, dtype=np.int64).reshape(-1, places.shape[1])
