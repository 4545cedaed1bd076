"""Solvers that lie, under every formulation: whatever is returned must be true all the same.

Each problem is solved honestly first.  Then what solvers, the central paths and closed forms
propose is spoilt, and whatever status comes of it has to agree with the honest enclosure; only
the errors that are documented may be raised.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import cvxpy as cp
import numpy as np

import cvxprivacy as cpv
from cvxprivacy.programs.covariance import CovarianceDual, ErrorCovariance
from cvxprivacy.programs.dual import Dual
from cvxprivacy.settings import Stages, using
from cvxprivacy.solvers import presolve
from cvxprivacy.solvers.conic import channel as cvxpy_channel
from cvxprivacy.solvers.covariance import stages as covariance
from cvxprivacy.solvers.entries import generation as entry_generation
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy_verifier import verify
from tests.instances import KINDS, Chance, Instance, Program, instance
from tests.second_checker import Refused, check
from tests.tally import Tally

LIES = 6  # of each problem
Wrong = Callable[[Any], Any]


# ---- lies --------------------------------------------------------------------------------


class Liar:
    """One way of spoiling numbers, the same throughout a solve; ``memory`` is of other solves."""

    def __init__(self, rng: Chance, memory: list[np.ndarray]) -> None:
        self.rng, self.memory = rng, memory
        self.move = int(rng.integers(16))
        self.size = float(10 ** rng.uniform(-14, 2))
        self.share = float(rng.choice([1.0, 1.0, 0.5]))  # how often it lies

    def __call__(self, value: Any) -> Any:
        """Return the array, or something in its place that has the same shape."""
        if value is None or self.rng.random() > self.share:
            return value
        table = np.asarray(value, float)
        if len(self.memory) < 200:
            self.memory.append(table.copy())
        return self.spoilt(table)

    def spoilt(self, table: np.ndarray) -> np.ndarray:
        rng, flat = self.rng, table.ravel().copy()
        if self.move < 5:
            value = (math.nan, math.inf, -math.inf, 1e300, 0.0)[self.move]
            if rng.random() < 0.5:
                return np.full_like(table, value)
            if flat.size:
                flat[rng.integers(flat.size)] = value
            return flat.reshape(table.shape)
        if self.move == 5:
            return -table
        if self.move == 6:
            return rng.permutation(flat).reshape(table.shape)
        if self.move == 7:
            square = table.ndim == 2 and table.shape[0] == table.shape[1]
            return table.T.copy() if square else flat[::-1].reshape(table.shape)
        if self.move == 8 and self.memory:
            return np.resize(self.memory[int(rng.integers(len(self.memory)))], table.shape)
        if self.move == 9:
            return table * self.size
        if self.move == 10:
            return rng.normal(size=table.shape) * self.size
        if self.move == 11:
            return table + self.size * rng.normal(size=table.shape)
        if self.move == 12:
            return table[rng.permutation(len(table))] if table.ndim else -table
        if self.move == 13:
            return np.abs(table) * 1e6
        if self.move == 14:
            return np.round(table, 1)
        return table * (1 + self.size * rng.normal(size=table.shape))

    def dual(self, value: Dual | None) -> Dual | None:
        """Return multipliers of a channel program, some of them wrong."""
        if value is None:
            return None
        which = self.rng.random(3) < 0.7
        scores, multipliers, parts = value.scores, value.multipliers, value.auxiliaries
        if which[0]:
            scores = {k: self(v) for k, v in scores.items()}
        if which[1]:
            multipliers = {k: self(v) for k, v in multipliers.items()}
        if which[2]:
            parts = {k: [self(a) for a in v] for k, v in parts.items()}
        if self.rng.random() < 0.1:
            multipliers = dict(zip(multipliers, reversed(multipliers.values()), strict=True))
        objective = 0 if self.rng.random() < 0.1 else value.objective
        return Dual(scores, multipliers, parts, objective)


def patches(liar: Liar) -> Iterator[Any]:
    """Yield patches of all that proposes something to a prover."""
    model, log_det = cvxpy_channel.ConicModel, covariance_model()
    dual, channel, path = model.dual, model.channel, covariance.central_path
    run, constant, contradictions = cp.Problem.solve, presolve.constant, presolve.contradictions

    def wrong_path(*argument: Any, follow: Any = interior.central_path) -> Iterator[Any]:
        for iterate in follow(*argument):

            def proposal(objective: int = 1, iterate: Any = iterate) -> Any:
                values, multipliers = iterate.proposal(objective)
                return liar(values), liar.dual(multipliers)

            gap, breach = (liar.rng.choice([0.0, true]) for true in (iterate.gap, iterate.breach))
            yield SimpleNamespace(
                number=iterate.number,
                gap=gap,
                progress=gap,
                breach=breach,
                proposal=proposal,
                stage=iterate.stage,
            )

    def wrong_central(*argument: Any) -> Any:
        middle, multipliers = path(*argument)
        return liar(middle), {k: float(liar(v)) for k, v in multipliers.items()}

    def wrong_run(self: Any, *argument: Any, **options: Any) -> Any:
        value = run(self, *argument, **options)
        for variable in self.variables():
            if variable.value is not None:
                variable.save_value(liar(np.asarray(variable.value, float)))
        for constraint in self.constraints:
            for variable in constraint.dual_variables:
                if variable.value is not None:
                    variable.save_value(liar(np.asarray(variable.value, float)))
        return value

    def wrong_constant(program: Any) -> Any:
        values = constant(program)
        return None if values is None else (liar(values[0]), liar.dual(values[1]))

    def wrong_contradictions(program: Any) -> list[Any]:
        values = [*contradictions(program), presolve.zero_multipliers(program)]
        return [Dual(d.scores, liar.dual(d).multipliers, d.auxiliaries, 0) for d in values]  # type: ignore[union-attr]

    yield mock.patch.object(model, "dual", lambda self: liar.dual(dual(self)))
    yield mock.patch.object(model, "channel", lambda self: liar(channel(self)))
    yield mock.patch.object(interior, "central_path", wrong_path)
    few, many = entry_generation.rounds, liar.rng.random() < 0.5
    wrong_rounds = partial(wrong_path, follow=few)
    yield mock.patch.object(entry_generation, "rounds", wrong_rounds)
    yield using([Stages(few_entries_beyond=1)] if many else [])
    yield mock.patch.object(covariance, "central_path", wrong_central)
    yield mock.patch.object(cp.Problem, "solve", wrong_run)
    yield mock.patch.object(presolve, "constant", wrong_constant)
    yield mock.patch.object(presolve, "contradictions", wrong_contradictions)
    whitened, multipliers, psd = (
        log_det.whitened_covariance,
        log_det.multipliers,
        log_det.psd_multipliers,
    )
    yield mock.patch.object(
        log_det, "whitened_covariance", property(lambda s: liar(whitened.fget(s)))
    )
    yield mock.patch.object(
        log_det,
        "multipliers",
        property(lambda s: {k: float(liar(v)) for k, v in multipliers.fget(s).items()}),
    )
    yield mock.patch.object(
        log_det,
        "psd_multipliers",
        property(lambda s: {k: liar(v) for k, v in psd.fget(s).items()}),
    )


def covariance_model() -> Any:
    from cvxprivacy.solvers.conic.covariance import LogDetModel

    return LogDetModel


def spoil_closed_form(problem: Instance, liar: Liar) -> None:
    """Make the closed form of a covariance problem propose something else."""
    honest = getattr(problem, "proposal", None)
    if honest is None or (obtained := honest()) is None:
        return

    if callable(obtained):  # proposes M and multipliers, in floats

        def nearly(white: Any) -> Any:
            middle, multipliers = obtained(white)
            return liar(middle), {k: float(liar(v)) for k, v in multipliers.items()}

        mock.patch.object(type(problem), "proposal", return_value=nearly).start()
        return

    def wrong(rows: Any) -> Any:
        table = liar(np.array([[float(x) for x in row] for row in rows]))
        finite = np.where(np.isfinite(table), table, 0.0)
        return [[Fraction(float(x)) for x in row] for row in finite]

    primal, dual = obtained
    spoilt = (
        ErrorCovariance(primal.root, wrong(primal.middle)),
        CovarianceDual(
            {k: float(np.nan_to_num(liar(float(v)))) for k, v in dual.multipliers.items()},
            {k: (root, wrong(middle)) for k, (root, middle) in dual.posteriors.items()},
            {k: (root, wrong(part)) for k, (root, part) in dual.psd_multipliers.items()},
        ),
    )
    mock.patch.object(type(problem), "proposal", return_value=spoilt).start()


# ---- truth -------------------------------------------------------------------------------


def outcome(problem: Instance, **options: Any) -> Any:
    """Return the certificate, by way of the errors that are documented."""
    if isinstance(problem, Program):
        return problem.solve(**options)
    try:
        solution = problem.solve(**options)
    except cpv.InfeasibleError as error:
        return one_of_statuses(error.certificate, "infeasible")
    except cpv.CertificationError as error:
        return one_of_statuses(error.certificate, "uncertified")
    return one_of_statuses(solution.certificate, "certified", "loose")


def one_of_statuses(certificate: Any, *expected: str) -> Any:
    if certificate.status not in expected:
        raise AssertionError(f"{certificate.status}, and not {' or '.join(expected)}")
    return certificate


def falsehood(obtained: Any, honest: Any) -> str:
    """Return what is false about a certificate, given an honest one; empty if nothing is."""
    document = obtained.document()
    problems = verify.disagreements(document)
    if problems:
        return f"not verified: {problems[0]}"
    if obtained.status == "infeasible" and math.isfinite(honest.upper):
        return "infeasible is claimed of what has a feasible point"
    if honest.status == "infeasible" and math.isfinite(obtained.upper):
        return "a feasible point of what is infeasible"
    both = {obtained.status, honest.status}
    if "infeasible" not in both and not (
        obtained.lower <= honest.upper and honest.lower <= obtained.upper
    ):
        return f"{obtained!r} does not meet {honest!r}"
    try:
        lower, upper, status = check(document)
    except Refused as error:
        return f"the second checker refuses it: {error}"
    if (status == "infeasible") != (obtained.status == "infeasible"):
        return f"{obtained.status} is claimed, {status} is found"
    if status != "infeasible" and not (lower <= obtained.upper and obtained.lower <= upper):
        return f"{obtained!r} does not meet the second checker's enclosure"
    return ""


def lied_to(problem: Instance, honest: Any, rng: Chance, memory: list[np.ndarray]) -> str:
    """Solve with lies; return the status, or what is false, after a colon."""
    liar = Liar(rng, memory)
    chosen = [patch for patch in patches(liar) if rng.random() < 0.6]
    options = {"method": "conic"} if rng.random() < 0.2 else {}
    with ExitStack() as stack:
        for patch in chosen:
            stack.enter_context(patch)
        stack.callback(mock.patch.stopall)
        if rng.random() < 0.8:
            spoil_closed_form(problem, liar)
        try:
            obtained = outcome(problem, **options)
        except Exception as error:  # nothing else is documented
            return f": lie {liar.move} raises {type(error).__name__}: {str(error)[:150]}"
    wrong = falsehood(obtained, honest)
    return f": lie {liar.move}: {wrong}" if wrong else obtained.status


def campaign(count: int, seed: int = 0, first: int = 0) -> Tally:
    """Lie about problems, each formulation in turn; numbers ``first`` on."""
    tally, names = Tally(), list(KINDS)
    memory: list[np.ndarray] = []
    for index in range(first, first + count, LIES):
        rng = np.random.default_rng([seed, index])
        name, problem = instance(rng, names[(index // LIES) % len(names)])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                honest = outcome(problem)
            except cpv.InputError:  # refused where it is solved, lies or none
                tally.refusals["InputError"] += 1
                continue
            for _ in range(min(LIES, first + count - index)):
                status = lied_to(problem, honest, rng, memory)
                tally.tried += 1
                if status.startswith(":"):
                    tally.false.append(f"trial {index} ({name}){status}")
                else:
                    tally.verified += status != "uncertified"
                    tally.refusals[status] += 1
    return tally
